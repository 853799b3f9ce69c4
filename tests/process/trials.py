# SPDX-License-Identifier: Apache-2.0
"""Trials on a cluster of four nodes under load: a node is killed, stopped or cut off, somebody else serves
its streamlets, the node comes back. Measured is what a producer sees: from the fault to the first ack of
a record that was handed over after it. A checker that knows nothing of the cluster but what producers
were told reads everything back.

  trials.py [--trials N] [--kinds kill,stop,...] [--per-round N] [--seed N] [--transports shm,tcp]
            [--json FILE] [--limit-ms MS] [--stand-still 30,250 --every-ms 150] [--tell-s S] [--calm-s S]

--stand-still: as on a busy machine, nodes stand still for that many ms, one or some, every now and then.
--tell-s: what the cluster says of itself while nobody acks for so long.
--calm-s: so long before each trial nothing happens. Nodes forget within some ten seconds how long others were
silent of late, and are given longer until then: 12 shows what the first fault of a quiet cluster costs.

Kinds: those of faults.py. Where network namespaces are refused those that need them are left out. Trials come in rounds:
each round has streams of its own, and at its end everything is read back.

What is checked, of each partition: every acked record is there once, at the offset that was told with its
ack, in the order in which it was handed over; nothing else is there; offsets are dense. Readers that
follow while all that happens, and never begin anew, see the same; so no offset ever has two contents.
The end that a client is told never goes back, and is never below what was acked before it asked.
Members of a group that come and go leave nothing out, and what was committed stays so. A log that is trimmed begins
no earlier than was told before, and no later than somebody asked for; nothing behind that is lost. And each pause
ends: nobody waits longer than 60 s for anything once all is healed.
"""
import argparse
import array
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import rig
from faults import BESIDE_LEADER, FAR_KINDS, LASTS_S, MAY_WAIT, NEAR_KINDS, WITH_ANOTHER, Fault, address, small_disk
from busy import StandStill, Teller, whole_node_log
from cluster import Cluster
import namespaces
import netns
from netns import FarCluster
from rig import LEAT, WAIT_S, Failure, check, equal, process_end, until
import tied

STREAMS = {'m': (4, 'memory', '256K'), 'd': (2, 'disk', '64K'), 't': (1, 'disk', '64K')}  # streamlets, level, a segment's bytes
TRIMMED = 't'  # records of it are given up all the time
LINES, EVERY_S = 10, 0.01                         # what a producer hands over, how often


class Feed:
    """A producer of one streamlet: hands over lines, notes the acks and when they came."""

    def __init__(self, cluster, stream, streamlet):
        self.stream, self.streamlet = stream, streamlet
        self.count = 0  # lines handed over
        self.offsets = array.array('q')
        self.acked_at = time.monotonic()
        self.longest = 0.0
        self.lock = threading.Lock()
        self.waits = []  # [line, time, None or seconds]
        self.over = threading.Event()
        self.errors = open(os.path.join(cluster.nodes[0].home, f'{stream}{streamlet}.errors'), 'w+b')
        self.process = cluster.leat_start('produce', stream, '--streamlet', streamlet, '--acks', '--quiet', '--batch-bytes', '4K',
                                          stdin=subprocess.PIPE, stderr=self.errors)
        self.threads = [threading.Thread(target=t, daemon=True) for t in (self.feed, self.hear)]
        for thread in self.threads:
            thread.start()

    def line(self, i):
        """Line i, from 1."""
        return f'{self.stream}.{self.streamlet} {i:08d}'

    def feed(self):
        try:
            while not self.over.wait(EVERY_S):
                if self.count - len(self.offsets) > 20000:
                    continue  # a long pause: what waits is enough
                new = ''.join(self.line(self.count + i) + '\n' for i in range(1, LINES + 1)).encode()
                with self.lock:
                    self.count += LINES
                self.process.stdin.write(new)
                self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def hear(self):
        try:
            self.acks_hear()
        except (ValueError, OSError):
            pass  # the pipe was closed: a test that failed ends

    def acks_hear(self):
        for text in self.process.stdout:
            now = time.monotonic()
            streamlet, log, offset, line = map(int, text.split())
            with self.lock:
                if (streamlet, log, line) != (self.streamlet, 0, len(self.offsets) + 1):
                    self.offsets.append(-2)  # out of order: told by verify()
                    continue
                self.offsets.append(offset)
                self.longest = max(self.longest, now - self.acked_at)
                self.acked_at = now
                for wait in self.waits:
                    if wait[2] is None and line > wait[0]:
                        wait[2] = now - wait[1]

    def expect(self):
        """From now on: how long until a line that comes after this moment is acked."""
        with self.lock:
            wait = [self.count, time.monotonic(), None]
            self.waits.append(wait)
            self.longest, self.acked_at = 0.0, max(self.acked_at, wait[1])
        return wait

    def end(self):
        self.over.set()
        self.threads[0].join(WAIT_S)
        self.process.stdin.close()
        code = self.process.wait(2 * WAIT_S)
        self.threads[1].join(WAIT_S)
        self.errors.seek(0)
        equal(code, 0, f'producer of {self.stream}.{self.streamlet}: {self.errors.read().decode()[-1000:]}')
        equal(len(self.offsets), self.count, f'acks of {self.stream}.{self.streamlet}')


class Tail:
    """A reader that follows from the beginning."""

    def __init__(self, cluster, stream):
        self.rows = []
        self.ends = {}  # partition: behind what was read
        self.process = cluster.leat_start('consume', stream, '--format', '%p %o %v')
        self.thread = threading.Thread(target=self.hear, daemon=True)
        self.thread.start()

    def hear(self):
        try:
            for text in self.process.stdout:
                self.rows.append(text)
                partition, offset, _ = text.split(b' ', 2)
                self.ends[int(partition)] = int(offset) + 1
        except (ValueError, OSError):
            pass

    def end(self, feeds, what):
        wanted = {f.streamlet: f.count for f in feeds}
        try:
            until(lambda: self.ends == wanted or self.process.poll() is not None, f'{what}: it reads to {wanted}')
        except Failure as failure:
            raise Failure(f'{failure}; it is at {self.ends}')
        if self.process.poll() is not None:
            raise Failure(f'{what} ended at {self.ends}, with {self.process.returncode}: {self.process.stderr.read().decode()[-2000:]}')
        self.process.send_signal(signal.SIGINT)
        self.process.wait(WAIT_S)
        self.thread.join(WAIT_S)
        return [row.decode().rstrip('\n') for row in self.rows]


class Trimmer:
    """Somebody who gives up records of a stream's partitions, again and again; now and then fewer than before. Where nobody
    answered it may have been done, or not, or later. An owner of before that does not know yet that others have its logs answers
    with its own beginning: that no beginning goes back under the last epoch is what Ends looks at."""

    def __init__(self, cluster, stream, feeds, dice):
        self.cluster, self.stream, self.dice = cluster, stream, random.Random(dice.random())
        self.feeds = {f.streamlet: f for f in feeds if f.stream == stream}
        self.asked = dict.fromkeys(self.feeds, 0)  # the most that anybody has asked for
        self.told = dict.fromkeys(self.feeds, 0)   # where the log begins at least
        self.answers, self.failed = 0, None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def trim(self):
        streamlet = self.dice.choice(list(self.feeds))
        acked = len(self.feeds[streamlet].offsets)
        before = max(0, acked - self.dice.randrange(1, 4000))
        self.asked[streamlet] = max(self.asked[streamlet], before)
        done = self.cluster.leat('stream', 'trim', self.stream, '--streamlet', streamlet, '--log', 0, '--before', before, code=None)
        if done.returncode != 0:
            return
        begins = int(done.stdout.split()[-1])
        check(before <= begins <= self.asked[streamlet], f'{self.stream} partition {streamlet} is told to begin at {begins} by who '
              f'gives up what is before {before}, and nobody asked for more than {self.asked[streamlet]}')
        self.told[streamlet] = max(begins, self.told[streamlet])
        self.answers += 1

    def run(self):
        try:
            while not self.over.wait(self.dice.uniform(0.1, 1)):  # between two trims
                self.trim()
        except Exception as error:
            self.failed = error

    def end(self):
        self.over.set()
        self.thread.join(2 * WAIT_S)
        if self.failed:
            raise self.failed
        # A round of one long fault may be over before anybody answered a trim: all nodes are back now.
        until(lambda: self.answers > 0 or self.trim(), f'something of {self.stream} is given up')


class Ends:
    """Somebody who asks again and again where the logs of a stream begin and end, by way of any node. An owner of before that does not know
    yet that others have its logs may answer what it knew: under the last epoch of a log its end covers all that was acked and told
    before, its beginning all that was told to be given up, and under none does one of these go back."""

    def __init__(self, cluster, stream, feeds, trimmer):
        self.cluster, self.stream, self.trimmer = cluster, stream, trimmer
        self.feeds = {f.streamlet: f for f in feeds if f.stream == stream}
        self.ends = dict.fromkeys(self.feeds, 0)
        self.begins = dict.fromkeys(self.feeds, 0)
        self.short = []  # (streamlet, epoch, what was wrong)
        self.epochs = dict.fromkeys(self.feeds, 0)
        self.under = {}  # (streamlet, epoch): the highest end that was told
        self.back = []
        self.asked, self.failed = 0, None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def ask(self):
        acked = {streamlet: len(feed.offsets) for streamlet, feed in self.feeds.items()}
        given_up = dict(self.trimmer.told) if self.trimmer else dict.fromkeys(self.feeds, 0)
        told = self.cluster.leat('stream', 'describe', self.stream, '--json', code=None)
        for log in json.loads(told.stdout)['log_list'] if told.stdout else ():
            if log['state'] != 'ok':
                continue
            self.asked += 1
            streamlet, end = log['streamlet'], log['end_offset']
            if end < max(self.ends[streamlet], acked[streamlet]):
                self.short.append((streamlet, log['epoch'], f'{self.stream} partition {streamlet} ends at {end}, though '
                                   f'{acked[streamlet]} records were acked and it ended at {self.ends[streamlet]} before: {log}'))
            self.begin_check(log, max(self.begins[streamlet], given_up[streamlet]))
            of_epoch = streamlet, log['epoch']
            if end < self.under.get(of_epoch, 0):
                self.back.append(f'{self.stream} partition {streamlet} ended at {self.under[of_epoch]} under this epoch before: {log}')
            self.under[of_epoch] = max(self.under.get(of_epoch, 0), end)
            self.ends[streamlet] = max(self.ends[streamlet], end)
            self.epochs[streamlet] = max(self.epochs[streamlet], log['epoch'])

    def begin_check(self, log, lowest):
        streamlet, begin = log['streamlet'], log['first_offset']
        most = self.trimmer.asked[streamlet] if self.trimmer else 0
        check(begin <= most, f'{self.stream} partition {streamlet} begins at {begin}, and nobody gave up more than {most}: {log}')
        if begin < lowest:
            self.short.append((streamlet, log['epoch'], f'{self.stream} partition {streamlet} begins at {begin}, though it began at '
                               f'{lowest} before: {log}'))
        self.begins[streamlet] = max(self.begins[streamlet], begin)

    def run(self):
        try:
            while not self.over.wait(0.1):  # between two questions
                self.ask()
        except Exception as error:
            self.failed = error

    def end(self):
        self.over.set()
        self.thread.join(WAIT_S)
        if self.failed:
            raise self.failed
        self.ask()
        check(self.asked > len(self.feeds), f'nobody was told where {self.stream} ends')
        check(not self.back, self.back[:1])
        for streamlet, epoch, what in self.short:
            check(epoch < self.epochs[streamlet], what)


class Members:
    """Members of a group, one after the other, a hundred or so records each."""

    def __init__(self, cluster, stream, dice):
        self.runs, self.failed, self.gave_up = [], None, 0
        self.cluster, self.stream, self.dice = cluster, stream, dice
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def member(self, *options, last=False):
        """One that begins, or commits, while the group's home dies again and again may give up: the next one goes
        on where it was. Members that did not say goodbye are missed for ten seconds."""
        process = tied.start(
            [LEAT, 'consume', self.stream, '--group', f'set-{self.stream}', '--format', '%p %o %v', *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, LEAT_BROKERS=self.cluster.brokers()))
        try:
            out, error = process.communicate(timeout=2 * WAIT_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # it says what it has been waiting for
            try:
                out, error = process.communicate(timeout=WAIT_S)
                raise Failure(f'a member of the group hangs; it had {len(out)} bytes and said {error.decode()[-2000:]}')
            except subprocess.TimeoutExpired:
                raise Failure('a member of the group hangs, and does not even end')
        finally:
            process_end(process)
        allowed = (0,) if last else (0, 1, 3)
        check(process.returncode in allowed, f'a member of the group: {process.returncode}: {error.decode()[-1000:]}')
        if process.returncode != 0:
            self.gave_up += 1
            print(f'{time.time() % 1000:.3f} a member of the group gave up, with {process.returncode}: {error.decode()[-2000:].strip()}', flush=True)
        self.runs.append(out.decode().splitlines())

    def run(self):
        try:
            while not self.over.wait(0.2):  # the group is without a member for so long
                self.member('--max-records', str(self.dice.randrange(500, 5000)))
        except Exception as error:
            self.failed = error

    def stop(self):
        """Producers go on meanwhile: the last one waits for its number of records."""
        self.over.set()
        self.thread.join(3 * WAIT_S)
        if self.failed:
            raise self.failed

    def end(self, count):
        """Until all is read: one that died unheard keeps its share until it is missed."""
        deadline = time.monotonic() + WAIT_S
        while True:
            self.member('--until-end', last=True)
            seen = {tuple(row.split(' ', 2)[:2]) for rows in self.runs for row in rows}
            if len(seen) >= count or time.monotonic() > deadline:
                return self.runs


def lines_check(feed, got, asked, what):
    """got: [(offset, value)], as read one after the other; asked: no more than so many records were given up meanwhile. Returns what
    would be next."""
    due = 0
    for offset, value in got:
        check(offset == due or due < offset <= asked, f'{what}: offset {offset} where {due} was due (value {value!r}; {asked} may be gone)')
        wanted = feed.line(offset + 1) if offset < feed.count else 'nothing'
        check(value == wanted, f'{what}: {value!r} at offset {offset}, not {wanted!r}')
        due = offset + 1
    return due


def by_partition(rows):
    """rows: 'partition offset value', as read."""
    seen = {}
    for row in rows:
        partition, offset, value = row.split(' ', 2)
        seen.setdefault(int(partition), []).append((int(offset), value))
    return seen


def verify(feeds, rows, what, trimmer=None):
    """feeds: whose acks the rows must be, but for what the trimmer gave up."""
    seen = by_partition(rows)
    for feed in feeds:
        got = seen.pop(feed.streamlet, [])
        name = f'{what}, {feed.stream} partition {feed.streamlet}'
        end = lines_check(feed, got, trimmer.asked[feed.streamlet] if trimmer else 0, name)
        equal(end, feed.count, f'{name}: records')
        for i, offset in enumerate(feed.offsets):
            check(offset in (i, -1), f'{name}: line {i + 1} was acked with offset {offset}')
    equal(seen, {}, f'{what}: partitions that nobody wrote')


def verify_begins(feeds, rows, trimmer):
    """rows: as read when nothing is given up any more: what was told to be gone is not there, and nothing else is missing."""
    seen = by_partition(rows)
    for feed in feeds:
        offsets = [offset for offset, _ in seen[feed.streamlet]]
        name = f'read back, {feed.stream} partition {feed.streamlet}'
        check(offsets[0] >= trimmer.told[feed.streamlet], f'{name}: it begins at {offsets[0]}, and {trimmer.told[feed.streamlet]} was told')
        equal(len(offsets), feed.count - offsets[0], f'{name}: records from its beginning on')


def verify_members(feeds, runs):
    """runs: what each member of the group printed, one after the other. What a member had not committed yet when
    the group's home died is handed over again; what was committed never is, and nothing is left out."""
    ends, starts = {f.streamlet: 0 for f in feeds}, {f.streamlet: 0 for f in feeds}
    feeds = {f.streamlet: f for f in feeds}
    for number, rows in enumerate(runs):
        begun = set()
        for row in rows:
            partition, offset, value = row.split(' ', 2)
            partition, offset = int(partition), int(offset)
            name = f'member {number} of {len(runs)}, partition {partition}'
            equal(value, feeds[partition].line(offset + 1), f'{name}: value at offset {offset}')
            if partition not in begun:
                begun.add(partition)
                check(offset >= starts[partition],
                      f'{name}: begins at {offset}, committed was at least {starts[partition]}')
                starts[partition] = offset
            check(starts[partition] <= offset <= ends[partition],
                  f'{name}: offset {offset} is not within {starts[partition]} to {ends[partition]}')
            ends[partition] = max(ends[partition], offset + 1)
    for partition, end in ends.items():
        equal(end, feeds[partition].count, f'members of a group, partition {partition}: records')


class Round:
    """Streams of its own, their producers and readers."""

    def __init__(self, cluster, number, dice):
        self.cluster, self.number = cluster, number
        self.names = {f'{kind}{number}': kind for kind in STREAMS}
        for name, kind in self.names.items():
            streamlets, level, segment_bytes = STREAMS[kind]
            cluster.leat('stream', 'create', name, '--streamlets', streamlets, '--logs', 1, '--copies', 3,
                         '--durability', level, '--segment-bytes', segment_bytes)
        self.feeds = [Feed(cluster, name, s) for name, kind in self.names.items() for s in range(STREAMS[kind][0])]
        self.tails = {name: Tail(cluster, name) for name in self.names}
        self.trimmers = {name: Trimmer(cluster, name, self.feeds, dice) for name, kind in self.names.items() if kind == TRIMMED}
        self.ends = [Ends(cluster, name, self.feeds, self.trimmers.get(name)) for name in self.names]
        self.members = Members(cluster, f'd{number}', dice)

    def owners(self):
        """{node name: [its feeds]}"""
        found = {}
        for name in self.names:
            told = json.loads(self.cluster.leat('stream', 'describe', name, '--json').stdout)
            for log in told['log_list']:
                feed = next(f for f in self.feeds if f.stream == name and f.streamlet == log['streamlet'])
                found.setdefault(log['node'], []).append(feed)
        return found

    def untrimmed(self):
        return [name for name in self.names if name not in self.trimmers]

    def look(self, name):
        """A new reader, while producers go on."""
        acked = {f: len(f.offsets) for f in self.feeds if f.stream == name}
        seen = by_partition(self.cluster.consume(name, '--format', '%p %o %v'))
        for feed, least in acked.items():
            what = f'read amid a trial, {name} partition {feed.streamlet}'
            end = lines_check(feed, seen.get(feed.streamlet, []), 0, what)
            check(end >= least, f'{what}: it ends at {end}, and {least} records were acked before')

    def end(self):
        self.members.stop()
        for trimmer in self.trimmers.values():
            trimmer.end()
        for feed in self.feeds:
            feed.end()
        for ends in self.ends:
            ends.end()
        for name, kind in self.names.items():
            feeds = [f for f in self.feeds if f.stream == name]
            trimmer = self.trimmers.get(name)
            rows = self.cluster.consume(name, '--format', '%p %o %v')
            verify(feeds, rows, 'read back', trimmer)
            if trimmer:
                verify_begins(feeds, rows, trimmer)
            verify(feeds, self.tails[name].end(feeds, f'the reader of {name}'), 'followed', trimmer)
            if kind == 'd':
                verify_members(feeds, self.members.end(sum(f.count for f in feeds)))
                if self.members.gave_up:
                    print(f'{self.members.gave_up} of {len(self.members.runs)} members of the group gave up', flush=True)
        for name in self.names:
            self.cluster.leat('stream', 'delete', name)
        return sum(f.count for f in self.feeds)


def well(cluster):
    """All nodes are up, all logs are served and take appends. Older segments may lack copies: what a node
    of before held is copied elsewhere a minute later."""
    told = cluster.leat('cluster', 'status', '--json', code=None)
    if not told.stdout:
        print(f'leat cluster status: {told.returncode}: {told.stderr.decode()}', flush=True)
        return None
    status = json.loads(told.stdout)
    if len(status['nodes']) < len(cluster.nodes) or not status['leader_address']:
        return None
    if any(n['state'] != 'up' or not n['report'] or n['report']['logs_below_min_copies'] for n in status['nodes']):
        return None
    recovery = status['recovery']
    return status if recovery['phase'] == 'none' and recovery['waiting'] == 0 else None


class Trials:
    def __init__(self, cluster, transport, dice, args):
        self.cluster, self.transport, self.dice, self.args = cluster, transport, dice, args
        self.results = []
        self.round = self.fault = None

    @property
    def stopped(self):
        """The process that the trial of now has stopped."""
        return self.fault and self.fault.stopped

    def names(self):
        return [f'n{i}' for i in range(len(self.cluster.nodes))]

    def leader(self):
        def found():
            address = well(self.cluster)
            return address and [i for i in range(len(self.cluster.nodes)) if self.cluster.node_address(i) == address['leader_address']]
        return until(found, 'somebody says who leads')[0]

    def victim(self, kind, owners, leader):
        if kind == 'leader':
            return leader
        served = [int(name[1:]) for name in sorted(owners)]
        return self.dice.choice([i for i in served if i != leader or kind not in BESIDE_LEADER] or served)

    def second(self, kind, victim, leader):
        """Two of three voters must live."""
        others = [i for i in range(4) if i != victim and (kind not in ('pair', 'flips') or victim > 2 or i > 2)]
        return self.dice.choice([i for i in others if i != leader or kind not in BESIDE_LEADER])

    def trial(self, number, kind):
        self.well_wait('all is well before a trial')
        time.sleep(self.args.calm_s)  # nothing is waited for: calm is a part of the trial (--calm-s)
        owners = until(lambda: (o := self.round.owners()) and set(o) <= set(self.names()) and o, 'all have owners')
        leader = self.leader()
        victim = self.victim(kind, owners, leader)
        second = self.second(kind, victim, leader)
        self.fault = fault = Fault(self.cluster, kind, victim, second, leader, self.dice, self.round.untrimmed())
        struck = [feed for node in fault.struck for feed in owners.get(f'n{node}', [])]
        led = leader in fault.struck
        waits = [feed.expect() for feed in self.round.feeds]
        at = time.time()
        fault.strike()
        going = lambda: all(w[2] is not None for w in waits)
        if kind in MAY_WAIT:
            late = time.monotonic() + 3
            until(lambda: going() or time.monotonic() > late, 'three seconds are over')
        else:
            until(going, f'trial {number} ({kind} of n{victim}): all go on')
        longest = max(feed.longest for feed in self.round.feeds)
        time.sleep(self.dice.choice(LASTS_S.get(kind, (0, 0, 0.1, 0.5, 1, 2))))  # how long it is away is what is tried
        if fault.corrupt:
            self.round.look(fault.corrupt[0])
        fault.heal()
        until(going, f'trial {number} ({kind} of n{victim}): all go on once all are back')
        ms = [round(w[2] * 1000, 1) for feed, w in zip(self.round.feeds, waits) if feed in struck]
        others = [round(w[2] * 1000, 1) for feed, w in zip(self.round.feeds, waits) if feed not in struck]
        result = {'trial': number, 'kind': kind, 'transport': self.transport, 'victim': f'n{victim}',
                  'second': f'n{second}' if kind in WITH_ANOTHER else None, 'led': led,
                  'ended': fault.ended, 'at': at, 'struck_ms': ms, 'others_ms': others, 'longest_ms': round(longest * 1000, 1)}
        self.results.append(result)
        if self.args.json:
            with open(self.args.json, 'a') as out:
                out.write(json.dumps(result) + '\n')
        if self.args.verbose:
            print(json.dumps(result), flush=True)

    def well_wait(self, what):
        try:
            until(lambda: well(self.cluster), what)
        except Failure as failure:
            asked = [('cluster', 'status')] + [('stream', 'describe', name, '--segments') for name in self.round.names]
            raise Failure('\n'.join([str(failure)] + [self.cluster.leat(*words, code=None).stdout.decode()
                                                      for words in asked]))

    def run(self, first, kinds):
        for i, kind in enumerate(kinds):
            if self.round is None:
                self.round = Round(self.cluster, first + i, self.dice)
            self.trial(first + i, kind)
            if (i + 1) % self.args.per_round == 0 or i + 1 == len(kinds):
                self.well_wait('all is well after a round')
                records = self.round.end()
                self.round = None
                print(f'{first + i + 1} trials; {self.transport}: {records} records, read back and by those who followed, are right',
                      flush=True)


def summary(results, limit_ms):
    """Of each kind: how long until a line handed over after the fault was acked where the victim served."""
    rows = []
    for kind in [*NEAR_KINDS, *FAR_KINDS, 'all']:
        of = [r for r in results if kind in (r['kind'], 'all')]
        ms = sorted(max(r['struck_ms']) for r in of if r['struck_ms'])
        if not of:
            continue
        if not ms:
            rows.append((kind, len(of), *['-'] * 6))
            continue
        at = lambda share: f'{ms[min(len(ms) - 1, int(share * len(ms)))]:.0f}'
        within = sum(m <= limit_ms for m in ms)
        rows.append((kind, len(of), at(0), at(0.5), at(0.9), at(0.99), f'{ms[-1]:.0f}',
                     f'{within} of {len(ms)}'))
    head = ('kind', 'trials', 'least', 'half', '90 %', '99 %', 'most ms', f'within {limit_ms} ms')
    return '\n'.join('| ' + ' | '.join(map(str, row)) + ' |' for row in (head, ['---'] * len(head), *rows))


class NearCluster(Cluster):
    def node_address(self, i):
        return f'127.0.0.1:{self.node_ports[i]}'


class ApartCluster(FarCluster):
    def node_address(self, i):
        return f'{address(i)}:7701'

    def node(self, i, **other):
        node = super().node(i, **other)
        node.data = small_disk(node)
        return node


def parts(args, may_cut):
    """[(transport, kinds)]: each kind over each transport, in random order, before a pair comes again."""
    kinds = [k for k in args.kinds.split(',') if may_cut or k not in FAR_KINDS]
    check(kinds, 'no network namespaces here, and nothing else is wanted')
    left_out = [k for k in args.kinds.split(',') if k not in kinds]
    if left_out:
        print(f'no network namespaces here: left out are {", ".join(left_out)}', flush=True)
    dice = random.Random(args.seed)
    transports = args.transports.split(',')
    pairs = [(transport, kind) for transport in transports for kind in kinds]
    trials = []
    while len(trials) < (args.trials or len(pairs)):
        dice.shuffle(pairs)
        trials += pairs
    del trials[args.trials or len(pairs):]
    print(f'{len(set(trials))} of {len(pairs)} pairs of a kind and a transport are tried', flush=True)
    wanted = [(transport, [kind for at, kind in trials if at == transport]) for transport in transports]
    return wanted, dice


def run(args):
    may_cut = os.environ.get('LEAT_NETNS') == namespaces.INSIDE
    wanted, dice = parts(args, may_cut)
    results, first = [], 0
    begun = time.monotonic()
    for transport, kinds in wanted:
        if not kinds:
            continue
        flags = {'replication': transport, 'memory': '512M'}
        cluster = ApartCluster(nodes=4, **flags) if may_cut else NearCluster(nodes=4, **flags)
        trials = Trials(cluster.start(), transport, dice, args)
        still = None
        if args.stand_still:
            still = StandStill(trials, *map(int, args.stand_still.split(',')), args.every_ms, args.seed)
        if args.tell_s:
            Teller(trials, args.tell_s)
        try:
            trials.run(first, kinds)
        except BaseException:
            for node in cluster.nodes if args.log else ():
                print(f'---- {node.flags[1]}\n{whole_node_log(node)[-args.log:]}')
            raise
        finally:
            if still:
                still.end()
            if args.logs:
                os.makedirs(args.logs, exist_ok=True)
                for node in cluster.nodes:
                    with open(os.path.join(args.logs, f'{transport}-{node.flags[1]}'), 'w') as out:
                        out.write(whole_node_log(node))
            results += trials.results
            print(f'{transport}:\n{summary(trials.results, args.limit_ms)}', flush=True)
            rig._clean()
        first += len(kinds)
    print(f'{len(results)} trials in {time.monotonic() - begun:.0f} s, seed {args.seed}\n'
          f'{summary(results, args.limit_ms)}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--trials', type=int, default=int(os.environ.get('LEAT_TRIALS', 12)),
                        help='0: each kind over each transport once')
    parser.add_argument('--kinds', default=','.join(NEAR_KINDS + FAR_KINDS))
    parser.add_argument('--per-round', type=int, default=25, help='trials until everything is read back')
    parser.add_argument('--seed', type=int, default=int(time.time()))
    parser.add_argument('--transports', default='shm,tcp')
    parser.add_argument('--json', help='a line for each trial goes there')
    parser.add_argument('--limit-ms', type=int, default=300, help='for the count in the table; nothing fails by it')
    parser.add_argument('--log', type=int, default=6000, help='how much of the node logs a failure shows')
    parser.add_argument('--logs', help='the nodes\' node logs go to that folder')
    parser.add_argument('--stand-still', metavar='LEAST,MOST', help='nodes stand still for that many ms, at random')
    parser.add_argument('--every-ms', type=int, default=150, help='how long until the next one does, in the mean')
    parser.add_argument('--tell-s', type=float, help='pauses that are longer are described')
    parser.add_argument('--calm-s', type=float, default=0, help='so long before each trial nothing happens')
    parser.add_argument('--verbose', action='store_true')
    args = parser.parse_args()
    unknown = set(args.kinds.split(',')) - set(NEAR_KINDS + FAR_KINDS)
    if unknown:
        parser.error(f'no such kinds: {", ".join(sorted(unknown))}')
    print(f'seed {args.seed}', flush=True)
    code = 0
    try:
        run(args)
    except Failure as failure:
        print(f'NOT OK: {failure}')
        code = 1
    finally:
        rig._clean()
    return code


if __name__ == '__main__':
    netns.enter()
    sys.exit(main())
