# SPDX-License-Identifier: Apache-2.0
"""What mutants run against, and how each ends: unit tests first, then seeds of each world, then sweeps."""
import hashlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter

import build as builds

# Worlds of seeds, in order of what a seed costs: name, arguments, how many seeds each mutant gets at most.
SEEDED = [('one node', [], 1000),
          ('--hard', ['--nodes', '3', '--hard'], 300), ('three nodes', ['--nodes', '3'], 1000),
          ('--deletes', ['--nodes', '3', '--deletes'], 150)]
# The sweeps of one seed of one node, with steps at which each takes about as long as 10 to 30 seeds of one node.
SWEEPS = [('allocations', ['--allocations', '--step', '50']), ('errors', ['--errors', '--step', '20']),
          ('power cuts', ['--sweep', '--step', '20', '--subsets', '2'])]
# In order of cost: (first, count) of seeds in each world in turn; what is None are the sweeps.
STEPS = [(1, 10), (11, 30), None, (41, 110), (151, 350), (501, 500)]
REACH_SEEDS = 30


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Stopped(Exception):
    """Somebody has ended us: what is under way has no verdict."""


class Runs:
    """The programs that run now, so that none outlives us."""

    def __init__(self):
        self.lock, self.running, self.stopped = threading.Lock(), set(), False

    def stop(self):
        """Called by a signal's handler, amid anything: the lock may be this thread's own."""
        self.stopped = True
        for process in list(self.running):
            end(process)

    def one(self, command, numbers, seconds, env=None, cwd=None, seen=None, said=subprocess.DEVNULL):
        """'' when it passes, else how it died. said: a file for what it says on stderr."""
        env = {**os.environ, **(env or {}), 'LEAT_MUTANT': ','.join(map(str, numbers)), 'CMOCKA_TEST_ABORT': '1'}
        if seen:
            env['LEAT_MUTANTS_SEEN'] = seen
        with self.lock:
            if self.stopped:
                raise Stopped
            process = subprocess.Popen(command, env=env, cwd=cwd, stdout=subprocess.DEVNULL, stderr=said,
                                       start_new_session=True, preexec_fn=no_core)
            self.running.add(process)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            end(process)
            process.wait()
            return 'hangs'
        finally:
            self.running.discard(process)
            if self.stopped:
                end(process)
                process.wait()
                raise Stopped
        return '' if code == 0 else f'exit {code}' if code > 0 else f'signal {-code}'


def end(process):
    """Its whole group, as tests start programs of their own."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Against:
    """A test, a world or a sweep: what reaches which mutants, and how long it takes when nothing is broken."""

    def __init__(self, runs, name, command, env=None, cwd=None, suites=(), seeds=0):
        self.runs, self.name, self.command, self.env, self.cwd, self.suites = runs, name, command, env, cwd, suites
        self.seeds = seeds  # how many a mutant gets; 0 where it is not seeds that are run
        self.seconds, self.seen, self.notes = None, b'', True
        self.anyway = {}
        self.killed = Counter()  # file, and file and function: how many of its mutants died in this

    def measure(self, out):
        """What it comes to is kept as long as its programs are the same."""
        extra = ['--seeds', str(REACH_SEEDS)] if self.seeds else []
        kept = os.path.join(out, 'seen', self.digest(extra))
        if not os.path.exists(kept):
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            begun = time.monotonic()
            died = self.runs.one([*self.command, *extra], [0], 600, self.env, self.cwd, kept + '.new')
            self.seconds, seen = time.monotonic() - begun, b''
            if os.path.exists(kept + '.new'):  # otherwise none of the programs of this build ran
                seen = builds.read(kept + '.new')
                os.unlink(kept + '.new')
            if died:
                print(f'{self.name} fails with nothing broken ({died}): not used', file=sys.stderr)
                return
            builds.write(kept, f'{self.seconds:.3f}\n'.encode() + zlib.compress(seen))
        seconds, seen = builds.read(kept).split(b'\n', 1)
        self.seconds, self.seen = float(seconds) / (REACH_SEEDS if self.seeds else 1), zlib.decompress(seen)
        self.notes = any(self.seen)

    def digest(self, extra=()):
        whole = hashlib.sha256(repr((self.name, self.command, list(extra))).encode())
        for word in self.command:
            if os.path.isfile(word):
                whole.update(builds.read(word))
        return whole.hexdigest()[:16]

    def turn(self, mutant):
        """Who killed most of the neighbours in least time comes first."""
        near = 10 * self.killed[mutant.file, mutant.function] + self.killed[mutant.file]
        return (near + 0.1) / (0.05 + self.seconds)

    def reaches(self, mutant):
        if not self.notes:  # the system's calls stand in the test: it may come to all of its folder
            return mutant.file.split('/')[0] in self.suites
        return mutant.number < len(self.seen) and self.seen[mutant.number] != 0

    def fails_anyway(self, extra, share):
        """Of seeds that fail with nothing broken none says anything."""
        if tuple(extra) not in self.anyway:
            seconds = 600 + 10 * self.seconds * share
            self.anyway[tuple(extra)] = self.runs.one([*self.command, *extra], [0], seconds, self.env, self.cwd)
        return self.anyway[tuple(extra)]

    def kills(self, mutants, extra=(), share=1.0):
        """How these die when all are broken at once. A machine with more to do takes longer: a test that hangs takes ten times
        its time, and 5 s at least."""
        numbers = [m.number for m in mutants]
        died = self.runs.one([*self.command, *extra], numbers, 5 + 10 * self.seconds * share, self.env, self.cwd)
        return '' if died and extra and self.fails_anyway(extra, share) else died


class Step:
    """One run of one of them, as long as its part of the budget."""

    def __init__(self, against, first=0, count=0):
        self.against, self.share = against, count or 1
        self.extra = ['--from', str(first), '--seeds', str(count)] if count else []
        self.name = f'{against.name}, seeds from {first}' if count else against.name

    def kills(self, *mutants):
        return self.against.kills(mutants, self.extra, self.share)


class Trial:
    def __init__(self, build, seeds, runs=None, env=None):
        """env: the environment of the simulator."""
        self.build, self.runs = build, runs or Runs()
        self.lock = threading.Lock()
        self.tests = [Against(self.runs, name, *rest) for name, rest in build.unit_tests().items()]
        simulator = [build.simulator, '--jobs', '1']
        self.worlds = [Against(self.runs, name, [*simulator, *words], env, seeds=min(most, seeds))
                       for name, words, most in SEEDED if seeds]
        # Whoever asks for fewer seeds than come before the sweeps asks for less than these.
        before = max(first + count - 1 for first, count in STEPS[:STEPS.index(None)])
        self.sweeps = [Against(self.runs, name, [*simulator, *words], env) for name, words in SWEEPS if seeds >= before]

    def measured(self, several):
        with self.lock:
            for one in several:
                if one.seconds is None:
                    one.measure(self.build.out)
        return several

    def unit_tests(self, mutant, own):
        """Those that come to it: of its own folder, or all others."""
        folder = mutant.file.split('/')[0]
        reaching = [t for t in self.measured([t for t in self.tests if (folder in t.suites) == own]) if t.reaches(mutant)]
        return [Step(t) for t in sorted(reaching, key=lambda t: -t.turn(mutant))]

    def seeds(self, mutant):
        for step in STEPS:
            for one in self.measured(self.sweeps) if step is None else self.measured(self.worlds):
                if one.reaches(mutant):
                    first, count = step or (0, 0)
                    count = min(count, one.seeds - first + 1)
                    if step is None or count > 0:
                        yield Step(one, first, count)

    def steps(self, mutant):
        """All that comes to a mutant, in the order in which it runs against it."""
        yield from self.unit_tests(mutant, True)
        yield from self.unit_tests(mutant, False)
        yield from self.seeds(mutant)

    def verdict(self, mutant):
        came = False
        for own in (True, False):
            for step in self.unit_tests(mutant, own):
                came, died = True, step.kills(mutant)
                if died:
                    step.against.killed.update([mutant.file, (mutant.file, mutant.function)])
                    return f'dies in {step.name}: {died}'
            if own and self.build.equivalent(mutant):
                return 'equivalent: compiled, it is the same'
        for step in self.seeds(mutant):
            came, died = True, step.kills(mutant)
            if died:
                return f'dies in {step.name}: {died}'
        return 'lives' if came else 'lives: nothing comes there'

    def digest(self):
        """Of all that a mutant runs against."""
        whole = hashlib.sha256(repr((SEEDED, SWEEPS, STEPS, [w.seeds for w in self.worlds])).encode())
        for one in self.tests + self.worlds[:1]:
            whole.update(one.digest().encode())
        return whole.hexdigest()[:16]
