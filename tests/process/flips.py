# SPDX-License-Identifier: Apache-2.0
"""For trials.py: bits that flip in what a dead node has left, in its files and in its shared memory, and a stream whose only copy
that was."""
import json
import mmap
import os
import re
import select
import time

from leftovers import pools
from rig import CLOSED, FLUSHED, Failure, check, equal, line_read, until

BLOCK = 4096
DATA_FLIPS, MEMORY_FLIPS = 3, 3
# What a start says of a file of which it takes nothing: the operator is to put the file back from a copy.
REFUSALS = re.compile(r'(?P<file>raft/[\w-]+|(?<=file ["\'])(identity|boots|catalogue)).*restore')
SOLE, STREAMLETS, SOLE_LINES = 'sole', 4, 1500
ENDS_WAIT_S = 5  # a log whose end is on a node that has come back is served before


def written(path):
    """[where a block lies that is not all zeros], of a file that may be large and mostly empty."""
    found, at = [], 0
    with open(path, 'rb', buffering=0) as file:
        while True:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                return found  # nothing more is there
            end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            while at < end:
                piece = os.pread(file.fileno(), 256 * BLOCK, at)
                if not piece:
                    return found
                found += [at + i for i in range(0, len(piece), BLOCK) if piece[i:i + BLOCK].strip(b'\0')]
                at += len(piece)


class Flip:
    """One bit, beside bytes that are in use."""

    def __init__(self, path, dice):
        self.path = path
        block = dice.choice(written(path))
        with open(path, 'r+b', buffering=0) as file:
            there = os.pread(file.fileno(), BLOCK, block)
            self.at = block + dice.choice([i for i, byte in enumerate(there) if byte])
            self.before, self.bit = file.read() if '/raft/' in path else None, dice.randrange(8)
            self.byte = there[self.at - block]
            os.pwrite(file.fileno(), bytes([self.byte ^ 1 << self.bit]), self.at)

    def __str__(self):
        return f'bit {self.bit} of byte {self.at} of {os.path.basename(os.path.dirname(self.path))}/{os.path.basename(self.path)}'

    def undo(self):
        """From a copy; of the coordinator's files a whole one, as a start erases what it takes for a torn write."""
        with open(self.path, 'r+b') as file:
            file.seek(0 if self.before else self.at)
            file.write(self.before or bytes([self.byte]))


def files(node, folder):
    """Those of a folder of the data directory that have something in them."""
    there = os.path.join(node.data, folder)
    paths = [os.path.join(there, name) for name in sorted(os.listdir(there))] if os.path.isdir(there) else []
    return [path for path in paths if written(path)]


def flips(node, dice):
    """A few bits of a dead node: segments on the disk, segments in memory, rows of the catalogue, one file of the coordinator or of
    the node itself."""
    store, memory = files(node, 'store'), list(pools(node.home))  # the first page of memory names its data directory
    itself = files(node, 'raft') + [node.path(name) for name in ('identity', 'boots')]
    paths = [dice.choice(store) for _ in range(DATA_FLIPS) if store] + [dice.choice(memory) for _ in range(MEMORY_FLIPS) if memory]
    return [Flip(path, dice) for path in paths + [node.path('catalogue'), dice.choice(itself)]]


def refused(node):
    """Starts it: the name of a file of which a start takes nothing, or None when the node serves."""
    node.launch()
    forgot = lambda: 'its data directory is an older state of itself' in node.node_log()
    until(lambda: select.select([node.process.stdout], [], [], 0)[0] or forgot(), f'{node.flags[1]} starts, or is refused')
    if not select.select([node.process.stdout], [], [], 0)[0]:
        node.kill()
        return 'raft/log'  # the last round was not known to be whole, so it was taken for a torn one
    if 'listening on' in line_read(node.process.stdout):
        return None
    equal(node.wait(), 3, 'exit code')
    named = REFUSALS.search(node.node_log())
    return named.group('file') if named else ''


def start(node, flipped):
    """As an operator does: a start that names a damaged file is repeated once that file is right again."""
    left = list(flipped)
    while (file := refused(node)) is not None:
        again = [flip for flip in left if file and os.path.basename(flip.path).startswith(os.path.basename(file))]
        check(again, f'a start over flipped bits ended, and names none of the files: {", ".join(map(str, left))}\n{node.node_log()}')
        for flip in again:
            flip.undo()
            left.remove(flip)
        print(f'refused, rightly, for {file}: {node.node_log().strip().splitlines()[-1]}', flush=True)


class Sole:
    """A stream of which each streamlet has one copy. Where a bit of it flips, records may be lost: those of the segment that is hit.
    Whatever is lost is told; what is not lost is read, at its offsets."""

    def __init__(self, cluster, victim):
        self.cluster = cluster
        cluster.leat('stream', 'create', SOLE, '--streamlets', STREAMLETS, '--logs', 1, '--copies', 1, '--durability', 'disk',
                     '--segment-bytes', '64K')
        described = lambda: json.loads(cluster.leat('stream', 'describe', SOLE, '--json').stdout)
        owned = lambda: {log['streamlet']: log['node'] for log in described()['log_list']}
        owners = until(lambda: (o := owned()) and all(o.values()) and o, f'{SOLE} has owners')
        self.id = described()['id']
        here = [s for s, node in owners.items() if node == victim]
        self.filled = here + [s for s in owners if s not in here][:1]  # one elsewhere, which loses nothing
        for s in self.filled:
            cluster.leat('produce', SOLE, '--streamlet', s, '--batch-bytes', '4K', input='\n'.join(self.lines(s)).encode())
        self.rows, self.hits, self.given_up = [], 0, []

    @staticmethod
    def lines(streamlet):
        return [f'{streamlet} {i:06d}'.ljust(100, '.') for i in range(SOLE_LINES)]

    def hit(self, node, dice):
        """A bit of a closed segment, on the disk and, if it is still there, in memory: nothing else has these bytes."""
        self.rows = [r for r in node.rows() if r['stream'] == self.id]
        closed = [r for r in self.rows if r['state'] == CLOSED and r['flags'] & FLUSHED]
        if not closed:
            return
        row, mask = dice.choice(closed), 1 << dice.randrange(8)
        whole = node.segment_bytes(row)[:row['prefix_id_bytes']]
        at = dice.randrange(len(whole))
        node.segment_flip(row, at, mask=mask)
        self.hits = 1
        for path in pools(node.home):
            with open(path, 'r+b') as file, mmap.mmap(file.fileno(), 0) as memory:
                place = memory.find(whole[:BLOCK])
                if place >= 0:
                    memory[place + at] ^= mask

    def log(self, streamlet):
        described = self.cluster.leat('stream', 'describe', SOLE, '--json', code=None)
        logs = json.loads(described.stdout)['log_list'] if described.stdout else []
        return next((log for log in logs if log['streamlet'] == streamlet), None)

    def read(self, streamlet):
        """(rows, what was said where they can't be read to the end)"""
        done = self.cluster.leat('consume', SOLE, '--streamlet', streamlet, '--until-end', '--format', '%o %v', code=None)
        rows = [row.split(' ', 1) for row in done.stdout.decode().splitlines()]
        return [(int(offset), value) for offset, value in rows], done.stderr.decode() if done.returncode else ''

    def settled(self, streamlet):
        """A log whose end is lost waits for nodes; all are back."""
        answer = lambda: (log := self.log(streamlet)) and log['state'] in ('ok', 'damaged') and log
        late = time.monotonic() + ENDS_WAIT_S
        return until(lambda: answer() or time.monotonic() > late, 'it is served, or waits') is not True

    def check(self, flips_count):
        """Then the stream goes. flips_count: bits of the same node that may be of this stream, too."""
        for s in self.filled:
            wanted = list(enumerate(self.lines(s)))
            for _ in range(2 + flips_count):
                rows, said = self.read(s) if self.settled(s) else ([], 'waits')
                equal([row for row in rows if row not in wanted], [], f'{SOLE}, streamlet {s}: records that nobody appended')
                equal(rows, sorted(set(rows)), f'{SOLE}, streamlet {s}: offsets')
                if not said:
                    break
                self.accept(s, said)
            equal(said, '', f'{SOLE}, streamlet {s}, when all that was told as lost is given up')
            self.lost(s, {offset for offset, _ in wanted} - {offset for offset, _ in rows}, flips_count)
        self.cluster.leat('stream', 'delete', SOLE)

    def accept(self, s, said):
        check([r for r in self.rows if r['streamlet'] == s], f'{SOLE}, streamlet {s} was on other nodes, and is told as damaged: {said}')
        check(said == 'waits' or 'missing or damaged' in said, said)
        told = self.cluster.leat('cluster', 'status', code=1).stdout.decode()
        check(re.search(rf'stream "?{SOLE}"?,? streamlet {s},? log 0\b', told), f'{SOLE}, streamlet {s} is not told as damaged ({said}) in:\n{told}')
        self.given_up.append(f'streamlet {s}: {said.strip()}')
        door = f'unix:{self.cluster.nodes[0].data}/leatd.sock'
        accept = ('log', 'recover', SOLE, '--streamlet', s, '--log', 0, '--accept-loss', '-b', door)
        try:
            until(lambda: self.cluster.leat(*accept, code=None).returncode == 0, 'the loss is accepted', 20)
        except Failure as failure:
            last = self.cluster.leat(*accept, code=None)
            raise Failure(f'{failure}: {last.stderr.decode()}\n{self.given_up}\n{self.log(s)}\n{told}')

    def lost(self, s, offsets, flips_count):
        """No flipped bit costs more than its segment."""
        if not offsets:
            return
        check(self.given_up, f'{SOLE}, streamlet {s}: {len(offsets)} records are gone, and nothing was said of that')
        ranges = [range(r['base'], r['next']) for r in self.rows if r['streamlet'] == s and r['state'] == CLOSED]
        behind = max((r.stop for r in ranges), default=0)  # the last one, which is not closed
        hit = {next((r for r in ranges if offset in r), behind) for offset in offsets}
        check(len(hit) <= self.hits + flips_count, f'{SOLE}, streamlet {s}: records of {len(hit)} segments are gone', hit)
        print(f'{len(offsets)} records of {SOLE}, streamlet {s}, had one copy, were damaged, and are told as that: {self.given_up}', flush=True)
