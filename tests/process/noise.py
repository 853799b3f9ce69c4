# SPDX-License-Identifier: Apache-2.0
"""For trials.py: a cable that flips bits. The cable's two ends are joined by a process that hands on each packet as it is, and
now and then flips one bit in the bytes that TCP carries.

Checksums do not stop that bit: between the namespaces of one machine nobody computes TCP's checksum (the kernel marks the
packet so, and the mark is handed on); where somebody has computed it, it is made right again. `tc netem corrupt` is of no use
here: it has the checksum computed before it flips the bit, so the receiver's kernel drops the packet.
"""
import random
import select
import socket
import struct
import subprocess
import sys
import threading
import time

import tied
from rig import WAIT_S, equal, line_read, on_end, process_end

# linux/if_packet.h, linux/if_ether.h, linux/virtio_net.h: Python's socket module has no names for these.
SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING = 263, 1, 15, 23
PACKET_MR_PROMISC, ETH_P_ALL, ETH_P_IP, NEEDS_CSUM = 1, 3, 0x0800, 1
MARKS_BYTES, ETHERNET_BYTES, CHECKSUM_AT = 10, 14, 16
PACKET_BYTES_MAX = 1 << 17


def end_open(device):
    """The end of a cable, as a socket: each packet has the kernel's marks in front."""
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.bind((device, ETH_P_ALL))
    promiscuous = struct.pack('iHH8s', socket.if_nametoindex(device), PACKET_MR_PROMISC, 0, bytes(8))
    end.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, promiscuous)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    end.setblocking(False)
    return end


def carried(packet):
    """(where TCP's header begins, where the bytes that it carries begin, where they end, the two ports), or None."""
    ip = MARKS_BYTES + ETHERNET_BYTES
    if len(packet) < ip + 40 or struct.unpack_from('>H', packet, ip - 2)[0] != ETH_P_IP or packet[ip + 9] != socket.IPPROTO_TCP:
        return None
    tcp = ip + (packet[ip] & 15) * 4
    begin = tcp + (packet[tcp + 12] >> 4) * 4
    end = min(len(packet), ip + struct.unpack_from('>H', packet, ip + 2)[0])
    return (tcp, begin, end, struct.unpack_from('>HH', packet, tcp)) if begin < end else None


def flip(packet, tcp, begin, at, mask):
    """One bit of what is carried; a checksum that somebody has computed follows (RFC 1624)."""
    word = tcp + (at - tcp) // 2 * 2
    old = struct.unpack('>H', bytes(packet[word:word + 2]).ljust(2, b'\0'))[0]
    packet[at] ^= mask
    if packet[0] & NEEDS_CSUM:
        return
    new = struct.unpack('>H', bytes(packet[word:word + 2]).ljust(2, b'\0'))[0]
    total = (~struct.unpack_from('>H', packet, tcp + CHECKSUM_AT)[0] & 0xffff) + (~old & 0xffff) + new
    total = (total & 0xffff) + (total >> 16)
    total = (total & 0xffff) + (total >> 16)
    struct.pack_into('>H', packet, tcp + CHECKSUM_AT, ~total & 0xffff)


class Due:
    """When the next bit flips of packets with a port that carry at least so many bytes: at random, and the mean is known."""

    def __init__(self, port, least, mean_s, dice):
        self.port, self.least, self.mean_s, self.dice = port, least, mean_s, dice
        self.next()

    def now(self, ports, count):
        return self.port in ports and count >= self.least and self.at <= time.monotonic()

    def next(self):
        self.at = time.monotonic() + self.dice.expovariate(1 / self.mean_s)


def hand_on(receiver, sender, dues, dice):
    """One packet, if there is one."""
    try:
        packet = bytearray(receiver.recv(PACKET_BYTES_MAX))
    except OSError:
        return  # the cable's other end is gone, or was cut
    found = carried(packet)
    if found:
        tcp, begin, end, ports = found
        due = next((d for d in dues if d.now(ports, end - begin)), None)
        if due:
            at, bit = dice.randrange(begin, end), dice.randrange(8)
            flip(packet, tcp, begin, at, 1 << bit)
            due.next()
            print(f'{due.port} {"to" if ports[1] == due.port else "from"} bit {bit} of byte {at - begin} of {end - begin}', flush=True)
    try:
        sender.send(packet)
    except OSError:
        pass  # a packet that is lost comes again: TCP's business


def relay(one, other, seed, rates):
    """Until somebody ends this process. rates: [(port, bytes at least, seconds from one flip to the next, in the mean)]"""
    dice = random.Random(seed)
    dues = [Due(int(port), int(least), float(mean_s), dice) for port, least, mean_s in rates]
    ends = end_open(one), end_open(other)
    print('ready', flush=True)
    while True:
        for end in select.select(ends, [], [])[0]:
            hand_on(end, ends[1] if end is ends[0] else ends[0], dues, dice)


class NoisyCable:
    """The cable of node `node`, from now until end(). rates: as of relay(). change: the function that calls `ip`."""

    def __init__(self, node, rates, seed, change):
        self.cable, self.inner, self.outer, self.change = f'cable{node}', f'inner{node}', f'outer{node}', change
        self.flips = []  # (port, text)
        self.process = None
        change('link', 'add', self.outer, 'type', 'veth', 'peer', 'name', self.inner)
        on_end(self.end)
        change('link', 'set', self.inner, 'up')
        change('link', 'set', self.outer, 'master', 'bridge', 'up')
        change('link', 'set', self.cable, 'nomaster')
        words = [sys.executable, '-B', __file__, self.cable, self.inner, str(seed), *(f'{p}:{n}:{s}' for p, n, s in rates)]
        self.process = tied.start(words, stdout=subprocess.PIPE)
        equal(line_read(self.process.stdout), 'ready\n', 'the relay begins')
        self.thread = threading.Thread(target=self.hear, daemon=True)
        self.thread.start()

    def hear(self):
        for line in self.process.stdout:
            port, _, text = line.decode().rstrip('\n').partition(' ')
            self.flips.append((int(port), text))

    def ports(self):
        """Those of what has had a flipped bit."""
        return {port for port, _ in self.flips}

    def end(self):
        """The cable is whole again."""
        if self.process is None:
            return
        process, self.process = self.process, None
        equal(process.poll(), None, 'the relay has not ended before')
        process.kill()
        self.thread.join(WAIT_S)
        process_end(process)
        self.change('link', 'delete', self.outer)
        self.change('link', 'set', self.cable, 'master', 'bridge')


if __name__ == '__main__':
    relay(sys.argv[1], sys.argv[2], float(sys.argv[3]), [word.split(':') for word in sys.argv[4:]])
