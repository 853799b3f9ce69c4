# SPDX-License-Identifier: Apache-2.0
"""Mutants in a build with the address and undefined-behaviour sanitizers: of those that live without, who reads or writes where
no memory is meant.

A read past the last element of an array seldom changes a result. It is a fault nevertheless, and not an equivalent mutant: a
sanitizer sees it, if a test fills the array to its end. So a verdict may say that a sanitizer sees a mutant only if this build
has shown it."""
import re
import tempfile

import trial as trials
from pairs import DIES

DIED = re.compile(r'ERROR: (Address|Leak)Sanitizer: ([\w-]+)')
UNDEFINED = re.compile(r'runtime error: ([^\n]*)')
ADDRESS = re.compile(r'0x[0-9a-f]+')  # another one in each run
# A verdict by hand with one of these words is a claim that nobody has run. "no sanitizer" makes no claim.
CLAIMS = re.compile(r'\b[AU][A-Z]*San\b')
OPTIONS = {'UBSAN_OPTIONS': 'halt_on_error=1', 'ASAN_OPTIONS': 'detect_leaks=1'}
OF_THE_SIMULATOR = {'ASAN_OPTIONS': 'detect_leaks=0'}  # a node that is killed leaks
SEEDS_MAX = 40  # of each world, and the sweeps


def claims(verdict):
    """Does somebody say that a sanitizer sees the mutant, whom none was asked about?"""
    return not verdict.startswith(DIES) and CLAIMS.search(verdict) is not None


def word_of(text):
    """What a sanitizer says first, in a few words, or ''."""
    said = []
    for pattern, name in ((DIED, None), (UNDEFINED, 'UBSan')):
        found = pattern.search(text)
        if found:
            said.append((found.start(), f'UBSan, {found.group(1)}' if name else f'{found.group(1)[0]}San, {found.group(2)}'))
    return ADDRESS.sub('an address', min(said)[1]).replace('\t', ' ')[:100].strip() if said else ''


class Runs(trials.Runs):
    """What dies says why: a sanitizer's own word, where it was one."""

    def one(self, command, numbers, seconds, env=None, cwd=None, seen=None, said=None):
        with tempfile.TemporaryFile() as text:
            died = super().one(command, numbers, seconds, {**OPTIONS, **(env or {})}, cwd, seen, text)
            text.seek(0)
            word = word_of(text.read().decode(errors='replace'))
        if died == 'hangs' and not word and any(numbers):
            return ''  # sanitizers make everything slow: that says nothing
        return word or (f'{died}, built with sanitizers' if died else '')


class Trial(trials.Trial):
    """The same tests, the first seeds and the sweeps."""

    def __init__(self, build, seeds):
        super().__init__(build, min(seeds, SEEDS_MAX), Runs(), OF_THE_SIMULATOR)

    def verdict(self, mutant):
        for step in self.steps(mutant):
            died = step.kills(mutant)
            if died:
                step.against.killed.update([mutant.file, (mutant.file, mutant.function)])
                return f'{DIES}{step.name}: {died}'
        return 'lives'
