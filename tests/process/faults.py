# SPDX-License-Identifier: Apache-2.0
"""What trials.py does to a cluster of four nodes, and takes back.

Kinds:
  kill    kill -9 of a streamlet's owner, started again later
  leader  kill -9 of the node that leads the coordinators
  pair    kill -9 of an owner and, moments later, of another node (while it recovers the first, often)
  stop    SIGSTOP of an owner, SIGCONT later: it wakes up as one that was declared dead
  short   an owner gets 4 to 64 MiB more memory from the kernel, and no more, while somebody appends a lot: it is refused more, or
          the kernel kills it (short_memory.py)
  stuff   somebody appends to a stream on all nodes as fast as they take it: memory for segments is short
  stale   kill -9 of a node with copies; while that one is away the head rolls; then kill -9 of the owner and a third node, and the
          one that was away comes back first, with what it had (its copies are too old to count)
  remake  kill -9 of a node with copies, and of the owner while those copies are made anew elsewhere
  chain   kill -9 of an owner, of the leader amid the recovery, and of a third node when the first one is back
  room    kill -9 of all nodes at once; they come back one by one, in any order
  rot     a bit flips in the file of a closed segment while its node runs; another node has the segment whole. The node is to name
          the damage and to have the right bytes again, there or in another copy
  flips   kill -9 of an owner; bits flip in its files and its shared memory; another node is killed while its logs are recovered; it comes
          back with what it has. A stream whose only copies those are loses no more than the segment that is hit, and that is told
  cut     an owner's cable is cut (both ways, nobody is told), and repaired later
  oneway  an owner can send nothing to one other node, but hears it: some logs move, or none
  parted  an owner and one other node can send each other nothing
  split   an owner and one other node can send nothing to the other two, nor hear them
  unled   an owner and the coordinators' leader can send each other nothing; it reaches all its backups but that one
  late    kill -9 of a node with copies, which comes back while it can't hear the leader: it does not know who else has gone
  lag     another node's cable takes 16 KB/s when an owner dies: copies there are behind, or not made yet
  slow    an owner's cable takes 16 KB/s
  full    an owner's disk has no space left
  noise   bits flip in what passes over a node's cable, between nodes and between clients and nodes, while another node is killed and
          comes back (noise.py)

All from `cut` on need network namespaces, and a mount namespace for the small disks.
"""
import errno
import json
import os
import signal
import subprocess
import time

from flips import Sole, flips, start
from netns import CLIENTS, NODES, ip, tc
from noise import NoisyCable
from rig import CLOSED, FLUSHED, WAIT_S, check, equal, on_end, process_end, until
from short_memory import MIB, ShortMemory

NEAR_KINDS = ('kill', 'leader', 'pair', 'stop', 'short', 'stuff', 'stale', 'remake', 'chain', 'room', 'rot', 'flips')
FAR_KINDS = ('cut', 'oneway', 'parted', 'split', 'unled', 'late', 'lag', 'slow', 'full', 'noise')
WITH_ANOTHER = ('pair', 'oneway', 'parted', 'split', 'stale', 'remake', 'chain', 'late', 'lag', 'noise', 'flips')
LASTS_S = {'slow': (1, 4), 'full': (3, 6), 'stuff': (1, 3), 'short': (1, 3), 'noise': (0.5, 1), 'flips': (0, 0.3)}  # what takes its time to be felt
# Nobody else can serve what those hold, or need: appends may wait until all are back.
MAY_WAIT = ('pair', 'split', 'slow', 'full', 'short', 'stuff', 'stale', 'remake', 'chain', 'room', 'late', 'lag', 'noise', 'flips')
BESIDE_LEADER = ('unled', 'late')  # the leader is cut off from somebody: that is another node
NOISE = [(port, least, mean_s) for port in (CLIENTS, NODES) for least, mean_s in ((200, 0.15), (1, 0.4))]  # most packets are small
DISK_BYTES = 512 << 20  # of a node, in a cluster of namespaces
STUFF_RECORDS = 12000  # three copies take more than the nodes' memory for segments, and less than their disks


def address(node):
    return f'10.77.0.{node + 1}'


def blackhole(change, sender, receiver):
    ip('-n', f'n{sender}', 'route', change, 'blackhole', f'{address(receiver)}/32')


class Fault:
    """One trial's. struck: the nodes that the fault hits."""

    def __init__(self, cluster, kind, victim, second, leader, dice, streams=()):
        self.cluster, self.kind, self.dice = cluster, kind, dice
        self.streams = streams  # whose segments stay
        self.corrupt = None  # (stream, row, where in the segment, what was there)
        self.victim, self.second, self.leader = victim, second, leader
        self.stopped = None  # the process that stands still
        self.stuffing = None
        self.noisy = None  # the cable that flips bits
        self.flipped, self.sole = [], None  # bits of the victim; a stream that nobody else has
        self.memory, self.ended = None, None  # of a node that was short of memory: the exit code, if it has ended
        self.struck = (victim, second) if kind in WITH_ANOTHER else tuple(self.all()) if kind == 'room' else (victim,)

    def strike(self):
        getattr(self, {'leader': 'kill', 'parted': 'oneway'}.get(self.kind, self.kind))(True)

    def heal(self):
        getattr(self, {'leader': 'kill', 'parted': 'oneway'}.get(self.kind, self.kind))(False)

    def all(self):
        return range(len(self.cluster.nodes))

    def die(self, *which):
        for i in which:
            self.cluster.nodes[i].process.kill()

    def back(self, *which):
        for i in which:
            self.cluster.nodes[i].kill()  # waits for its end, notes it
            self.cluster.nodes[i].launch()

    def ready(self, *which):
        for i in which:
            self.cluster.nodes[i].ready_wait()

    def kill(self, on):
        if on:
            self.die(self.victim)
        else:
            self.back(*self.struck)
            self.ready(*self.struck)

    def pair(self, on):
        self.kill(on)
        if on:
            time.sleep(self.dice.choice((0, 0.01, 0.03, 0.06, 0.1)))  # how far apart is what is tried
            self.die(self.second)

    def stale(self, on):
        third = next(i for i in self.all() if i not in self.struck)
        if on:
            self.die(self.second)
            time.sleep(self.dice.uniform(0.5, 3))  # how far the head has gone on is what is tried
            self.die(self.victim, third)
        else:
            self.back(self.second)
            time.sleep(self.dice.uniform(0, 1))  # for how long it is the first is what is tried
            self.back(self.victim, third)
            self.ready(self.second, self.victim, third)

    def remake(self, on):
        if on:
            self.die(self.second)
            time.sleep(self.dice.uniform(0.1, 1.5))  # how many copies are made by then is what is tried
            self.die(self.victim)
        else:
            self.kill(False)

    def chain(self, on):
        if on:
            self.die(self.victim)
            time.sleep(self.dice.uniform(0.02, 0.4))  # how far the recovery is is what is tried
            if self.leader != self.victim:
                self.die(self.leader)
            return
        gone = {self.victim, self.leader}
        self.back(*gone)
        self.ready(*gone)
        self.die(self.second)
        self.back(self.second)
        self.ready(self.second)

    def room(self, on):
        if on:
            self.die(*self.all())
            return
        order = list(self.all())
        self.dice.shuffle(order)
        for i in order:
            self.back(i)
            time.sleep(self.dice.choice((0, 0.1, 0.5)))  # how far apart is what is tried
        self.ready(*order)

    def whole_elsewhere(self):
        """[(stream, row)]: closed segments of the victim that another node has in its file, too."""
        ids = {json.loads(self.cluster.leat('stream', 'describe', name, '--json').stdout)['id']: name for name in self.streams}
        what = lambda r: tuple(r[k] for k in ('stream', 'streamlet', 'log', 'segment', 'prefix_id_bytes', 'prefix_id_crc'))
        there = lambda i: [r for r in self.cluster.nodes[i].rows() if r['state'] == CLOSED and r['flags'] & FLUSHED and r['stream'] in ids]
        others = {what(r) for i in self.all() if i != self.victim for r in there(i)}
        return [(ids[r['stream']], r) for r in there(self.victim) if what(r) in others]

    def rot(self, on):
        node = self.cluster.nodes[self.victim]
        if on:
            stream, row = self.dice.choice(until(self.whole_elsewhere, f'n{self.victim} has closed segments'))
            at = self.dice.randrange(row['prefix_id_bytes'])
            self.corrupt = stream, row, at, node.segment_bytes(row)[at]
            node.segment_flip(row, at, mask=1 << self.dice.randrange(8))
            return
        stream, row, at, byte = self.corrupt
        log, s = f'log {row["stream"]}/{row["streamlet"]}/{row["log"]}', row['segment']
        copy_gone = lambda: not any(r == row for r in node.rows())
        repaired = lambda: copy_gone() or node.segment_bytes(row)[at] == byte
        # A backup's owner hears of the damage at its next audit, 30 s later at most, and copies are made after a while.
        until(repaired, f'{log}: segment {s}, byte {at} is right again at n{self.victim}, or another copy is made', 3 * WAIT_S)
        node.node_log_wait(rf'{log}: (segment {s} is repaired|the copy of segment {s} here is damaged|the file of segment {s} was damaged)')

    def flips(self, on):
        node = self.cluster.nodes[self.victim]
        if on:
            self.sole = Sole(self.cluster, f'n{self.victim}')
            node.kill()
            self.sole.hit(node, self.dice)
            self.flipped = flips(node, self.dice)
            print(f'flipped at n{self.victim}: {"; ".join(map(str, self.flipped))}', flush=True)
            time.sleep(self.dice.uniform(0, 0.4))  # how far the recovery is is what is tried
            self.die(self.second)
            return
        start(node, self.flipped)
        self.back(self.second)
        self.ready(self.second)
        self.sole.check(len(self.flipped))

    def stop(self, on):
        process = self.cluster.nodes[self.victim].process
        self.stopped = process if on else None
        os.kill(process.pid, signal.SIGSTOP if on else signal.SIGCONT)

    def stuff(self, on):
        if not on:
            process_end(self.stuffing)
            until(lambda: self.cluster.leat('stream', 'delete', 'stuff', code=None).returncode == 0, 'the stuffing is gone')
            return
        self.stuffing = self.cluster.leat_start('bench', 'append', '--stream', 'stuff', '--fresh', '--streamlets', 4, '--copies', 3,
                                                '--record-bytes', '16K', '--batch-records', 10, '--records', STUFF_RECORDS,
                                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: self.cluster.leat('stream', 'describe', 'stuff', code=None).returncode == 0, 'the stuffing has begun')

    def short(self, on):
        server = self.cluster.nodes[self.victim]
        if on:
            self.memory = ShortMemory(server.process.pid, self.dice.choice((4, 16, 64)) * MIB, self.dice.random() < 0.5)
            self.stuff(True)
            return
        self.memory.end()
        self.ended = server.process.poll()
        if self.ended is not None:
            self.back(self.victim)
            self.ready(self.victim)
        self.stuff(False)

    def cut(self, on):
        (self.cluster.cut if on else self.cluster.repair)(self.victim)

    def oneway(self, on):
        change = 'add' if on else 'del'
        blackhole(change, self.victim, self.second)
        if self.kind == 'parted':
            blackhole(change, self.second, self.victim)

    def apart(self, on, one, other):
        if one != other:
            blackhole('add' if on else 'del', one, other)
            blackhole('add' if on else 'del', other, one)

    def unled(self, on):
        self.apart(on, self.victim, self.leader)

    def late(self, on):
        if on:
            self.die(self.second)
            self.apart(True, self.second, self.leader)
            self.back(self.second)
            time.sleep(self.dice.uniform(0, 0.5))  # what it has heard by then is what is tried
            self.die(self.victim)
        else:
            self.apart(False, self.second, self.leader)
            self.back(self.victim)
            self.ready(self.second, self.victim)

    def lag(self, on):
        if on:
            self.thin(True, self.second)
            time.sleep(self.dice.uniform(0, 2))  # how far that node is behind is what is tried
            self.die(self.victim)
        else:
            self.thin(False, self.second)
            self.back(self.victim)
            self.ready(self.victim)

    def split(self, on):
        for here in self.struck:
            for there in set(range(len(self.cluster.nodes))) - set(self.struck):
                blackhole('add' if on else 'del', here, there)
                blackhole('add' if on else 'del', there, here)

    def slow(self, on):
        self.thin(on, self.victim)

    @staticmethod
    def thin(on, node):
        limit = ('tbf', 'rate', '128kbit', 'burst', '16k', 'latency', '500ms') if on else ()
        for device in (('dev', f'cable{node}'), ('-n', f'n{node}', 'dev', 'eth0')):
            inside, device = device[:-2], device[-2:]
            tc(*inside, 'qdisc', 'add' if on else 'del', *device, 'root', *limit)

    def noise(self, on):
        if on:
            self.noisy = NoisyCable(self.victim, NOISE, self.dice.random(), ip)
            time.sleep(self.dice.uniform(0, 1))  # which connections have ended by then is what is tried
            self.die(self.second)
            return
        self.back(self.second)
        self.ready(self.second)
        wanted = {CLIENTS, NODES}
        until(lambda: self.noisy.ports() >= wanted, 'bits flip between nodes, and between clients and a node')
        self.noisy.end()
        print(f'bits flipped at n{self.victim}: ' + '; '.join(f'{port} {text}' for port, text in self.noisy.flips), flush=True)

    def full(self, on):
        ballast = os.path.join(os.path.dirname(self.cluster.nodes[self.victim].data), 'ballast')
        if not on:
            os.unlink(ballast)
            return
        with open(ballast, 'wb', buffering=0) as file:
            try:
                while file.write(bytes(1 << 16)):
                    pass
            except OSError as error:
                equal(error.errno, errno.ENOSPC)


def small_disk(node):
    """A data directory on a file system of its own, in the mount namespace of this program."""
    point = node.home + '/disk'
    os.mkdir(point)
    subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK_BYTES}', 'tmpfs', point], check=True, timeout=WAIT_S)
    on_end(lambda: subprocess.run(['umount', '-l', point], check=True, timeout=WAIT_S))
    return point + '/data'
