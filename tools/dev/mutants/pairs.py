# SPDX-License-Identifier: Apache-2.0
"""Two rules at once: of a mutant that changes nothing because another rule keeps what it kept.

A verdict `masked: by FILE:FUNCTION:KIND:N because ...` names the mutant by which that other rule is broken. What became of the two
is in tests/mutants/pairs.tsv: mutant, its function's digest, mask, its function's digest, outcome. A line counts as long as neither
function has changed. The outcome begins with one of

  shown    both at once die in a test or a seed in which each alone lives (each may mask the other: then neither ever dies alone)
  as said  the mask alone dies, and both at once do, but nowhere where the mask alone lives
  wrong    the mutant dies alone
  hole     both at once live"""
import collections
import os
import re

import verdicts

PATH = os.path.join(verdicts.TABLES, 'pairs.tsv')
DIES = 'dies in '
NAMED = re.compile(r'^masked: by (\S+/\S+:\w+:\w+:\d+) because ')
# Of the mutant's folder, and of all others: how many are asked whether both die where the mask alone lives, and none that is slow.
UNIT_TESTS_MAX, UNIT_TEST_SECONDS_MAX = 8, 30


def mask_of(verdict):
    """The mutant that a verdict names, or None."""
    found = NAMED.match(verdict)
    return found and found.group(1)


def outcome(trial, mutant, mask, alone=None):
    """What becomes of the two, in the words of the table. alone: what the mask died of, where that is known."""
    alone = alone or death(trial, [mask], quick(trial, mask)) or death(trial, [mask], trial.seeds(mask)) or 'nothing'
    both = ''
    for step in quick(trial, mutant, UNIT_TESTS_MAX):
        died = step.kills(mutant, mask)
        if not died:
            continue
        if step.kills(mutant):
            return f'wrong: alone it dies in {step.name}'
        both = both or f'{step.name}: {died}'
        if not step.kills(mask):
            return f'shown: both die in {step.name}: {died}; the mask alone in {alone}'
    for one in (mask, mutant):
        both = both or death(trial, [mutant, mask], quick(trial, one)) or death(trial, [mutant, mask], trial.seeds(one))
    if not both:
        return f'hole: both live; the mask alone in {alone}'
    return f'{"shown" if alone == "nothing" else "as said"}: both die in {both}; the mask alone in {alone}'


def quick(trial, mutant, most=None):
    """Unit tests that come to the mutant and cost little: of its folder, and then of all others."""
    for own in (True, False):
        yield from [step for step in trial.unit_tests(mutant, own) if step.against.seconds < UNIT_TEST_SECONDS_MAX][:most]


def death(trial, mutants, steps):
    for step in steps:
        died = step.kills(*mutants)
        if died:
            return f'{step.name}: {died}'
    return ''


class Pairs:
    def __init__(self, functions):
        self.path, self.rows, self.stale = PATH, {}, 0  # (mutant, mask): (digest, digest, outcome)
        if os.path.exists(PATH):
            with open(PATH, encoding='utf-8') as file:
                for line in file:
                    key, digest, mask, of_mask, what = line.rstrip('\n').split('\t')
                    if digest_of(functions, key) == digest and digest_of(functions, mask) == of_mask:
                        self.rows[key, mask] = (digest, of_mask, what)
                    else:
                        self.stale += 1

    def has(self, mutant, mask):
        return (mutant.key(), mask.key()) in self.rows

    def note(self, mutant, mask, what):
        self.rows[mutant.key(), mask.key()] = (mutant.digest, mask.digest, what)

    def write(self):
        verdicts.replace(PATH, ('\t'.join((key, digest, mask, of_mask, what))
                                for (key, mask), (digest, of_mask, what) in sorted(self.rows.items())
                                if not what.startswith('hole')))


def digest_of(functions, key):
    name, function = key.split(':')[:2]
    return functions.get(name, {}).get(function)


def judge(trial, tables, all_tables, mutants, others, kept, args):
    """The pairs of all verdicts that name a mask; with args.keep they are kept as they come, but for holes, which the next look
    may close. How many are not as they say?"""
    verdict_of = {key: row[2] for folder in all_tables for key, row in folder.rows.items()}
    alone = {key: verdict[len(DIES):] for key, verdict in verdict_of.items() if verdict.startswith(DIES)}
    mutants, others, counts = {m.key(): m for m in mutants}, {m.key(): m for m in others}, collections.Counter()
    rows = [(key, row[2]) for table in tables.values() for key, row in table.rows.items()]
    for key, verdict in sorted(rows, key=lambda row: (mask_of(row[1]) not in alone, row)):  # what takes long comes last
        if key not in mutants or not verdict.startswith('masked'):
            continue
        mutant, mask = mutants[key], others.get(mask_of(verdict))
        if mask_of(verdict) is None:
            counts['name no mutant'] += 1
            continue
        if mask is None:
            what = f'wrong: there is no mutant {mask_of(verdict)}'
        else:
            if args.again or not kept.has(mutant, mask):
                what = outcome(trial, mutant, mask, alone.get(mask.key()))
                alone[mask.key()] = what.rsplit('the mask alone in ', 1)[1] if 'the mask alone in ' in what else None
                kept.note(mutant, mask, what)
                if args.keep:
                    kept.write()
            what = kept.rows[key, mask.key()][2]
        counts[what.split(':')[0]] += 1
        print(f'{mutant} and {mask}: {what}', flush=True)
    print(', '.join(f'{count} {word}' for word, count in sorted(counts.items())) or 'no verdict names a mask')
    return counts['wrong'] + counts['hole']
