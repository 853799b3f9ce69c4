"""What trials.py does to a cluster of four nodes, and takes back.

Kinds:
  kill    kill -9 of a streamlet's owner, started again later
  leader  kill -9 of the node that leads the coordinators
  pair    kill -9 of an owner and, moments later, of another node (while it recovers the first, often)
  stop    SIGSTOP of an owner, SIGCONT later: it wakes up as one that was declared dead
  stuff   an owner's memory is stuffed: somebody appends to a stream of its own there as fast as it takes
  cut     an owner's cable is cut (both ways, nobody is told), and mended later
  oneway  an owner can send nothing to one other node, but hears it: some logs move, or none
  parted  an owner and one other node can send each other nothing
  split   an owner and one other node can send nothing to the other two, nor hear them
  slow    an owner's cable takes 16 KB/s
  full    an owner's disk has no space left

All from `cut` on need network namespaces, and a mount namespace for the small disks.
"""
import errno
import os
import signal
import subprocess
import time

from netns import ip, tc
from rig import WAIT_S, equal, on_end, process_end, until

NEAR_KINDS = ('kill', 'leader', 'pair', 'stop', 'stuff')
FAR_KINDS = ('cut', 'oneway', 'parted', 'split', 'slow', 'full')
WITH_ANOTHER = ('pair', 'oneway', 'parted', 'split')
# Nobody else can serve what those hold, or need: appends may wait until all are back.
LASTS_S = {'slow': (1, 4), 'full': (3, 6)}  # what takes its time to be felt
MAY_WAIT = ('pair', 'split', 'slow', 'full', 'stuff')
DISK_BYTES = 1 << 30  # of a node, in a cluster of namespaces
STUFF_RECORDS = 12000  # three copies take more than the nodes' memory for segments, and less than their disks


def address(node):
    return f'10.77.0.{node + 1}'


def blackhole(change, sender, receiver):
    ip('-n', f'n{sender}', 'route', change, 'blackhole', f'{address(receiver)}/32')


class Blow:
    """One trial's. struck: the nodes that the blow hits."""

    def __init__(self, cluster, kind, victim, second, dice):
        self.cluster, self.kind, self.victim, self.second, self.dice = cluster, kind, victim, second, dice
        self.stopped = None  # the process that stands still
        self.stuffing = None
        self.struck = (victim, second) if kind in WITH_ANOTHER else (victim,)

    def strike(self):
        getattr(self, {'leader': 'kill', 'parted': 'oneway'}.get(self.kind, self.kind))(True)

    def heal(self):
        getattr(self, {'leader': 'kill', 'parted': 'oneway'}.get(self.kind, self.kind))(False)

    def nodes(self):
        return [self.cluster.nodes[i] for i in self.struck]

    def kill(self, on):
        if on:
            self.cluster.nodes[self.victim].process.kill()
            return
        for node in self.nodes():
            node.kill()  # waits for its end, notes it
            node.launch()
        for node in self.nodes():
            node.ready_wait()

    def pair(self, on):
        self.kill(on)
        if on:
            time.sleep(self.dice.choice((0, 0.01, 0.03, 0.06, 0.1)))  # how far apart is what is tried
            self.cluster.nodes[self.second].process.kill()

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

    def cut(self, on):
        (self.cluster.cut if on else self.cluster.mend)(self.victim)

    def oneway(self, on):
        change = 'add' if on else 'del'
        blackhole(change, self.victim, self.second)
        if self.kind == 'parted':
            blackhole(change, self.second, self.victim)

    def split(self, on):
        for here in self.struck:
            for there in set(range(len(self.cluster.nodes))) - set(self.struck):
                blackhole('add' if on else 'del', here, there)
                blackhole('add' if on else 'del', there, here)

    def slow(self, on):
        cable = f'cable{self.victim}'
        inside = ('-n', f'n{self.victim}')
        if on:
            tc('qdisc', 'add', 'dev', cable, 'root', 'tbf', 'rate', '128kbit', 'burst', '16k', 'latency', '500ms')
            tc(*inside, 'qdisc', 'add', 'dev', 'eth0', 'root', 'tbf', 'rate', '128kbit', 'burst', '16k', 'latency', '500ms')
        else:
            tc('qdisc', 'del', 'dev', cable, 'root')
            tc(*inside, 'qdisc', 'del', 'dev', 'eth0', 'root')

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
