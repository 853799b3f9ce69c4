# SPDX-License-Identifier: Apache-2.0
"""What became of each mutant: tests/mutants/FOLDER.tsv, a line each. A line counts as long as its function is what it was.

That a mutant lives is not kept: the next look may find it. By hand go in: "equivalent: because ...", and "masked: by ...", the rule
that has to be broken too before something shows: `masked: by FILE:FUNCTION:KIND:N because ...` where that rule has a mutant
(pairs.py)."""
import collections
import os

Score = collections.namedtuple('Score', 'died counted left')  # those that are equivalent or masked don't count
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
TABLES = os.path.join(ROOT, 'tests', 'mutants')


def replace(path, lines):
    """What is there stays whole whenever we are ended."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + '.new', 'w', encoding='utf-8') as file:
        file.writelines(line + '\n' for line in lines)
    os.replace(path + '.new', path)


def found(folders, wanted):
    """The keys of verdicts of which wanted(verdict) is true, whether their functions have changed since or not."""
    keys = []
    for folder in folders:
        path = os.path.join(TABLES, folder + '.tsv')
        if os.path.exists(path):
            with open(path, encoding='utf-8') as file:
                rows = [line.rstrip('\n').split('\t') for line in file]
            keys += [row[0] for row in rows if wanted(row[3])]
    return keys


class Table:
    def __init__(self, folder, functions):
        self.folder, self.path = folder, os.path.join(TABLES, folder + '.tsv')
        self.rows, self.stale = {}, 0  # key: (digest, what it does, verdict); how many count no more
        if os.path.exists(self.path):
            with open(self.path, encoding='utf-8') as file:
                for line in file:
                    key, digest, what, verdict = line.rstrip('\n').split('\t')
                    name, function = key.split(':')[:2]
                    if name not in functions:  # it was not rewritten: nothing is known of it
                        kept = os.path.exists(os.path.join(ROOT, name))
                    else:
                        kept = functions[name].get(function) == digest
                    self.stale += not kept
                    if kept:
                        self.rows[key] = (digest, what, verdict)

    def has(self, mutant):
        return mutant.key() in self.rows

    def note(self, mutant, verdict):
        self.rows[mutant.key()] = (mutant.digest, mutant.what.replace('\t', ' '), verdict)

    def write(self):
        replace(self.path, ('\t'.join((key, *row)) for key, row in sorted(self.rows.items())
                            if not row[2].startswith('lives')))

    def report(self, mutants):
        verdicts = [self.rows[m.key()][2] for m in mutants if self.has(m)]
        same = sum(v.startswith('equivalent') for v in verdicts)
        masked = sum(v.startswith('masked') for v in verdicts)
        died, counted = sum(v.startswith('dies') for v in verdicts), len(verdicts) - same - masked
        if mutants:
            print(f'{self.folder}: {died} of {counted} died, {100 * died / (counted or 1):.1f} %; {same} equivalent, '
                  f'{masked} masked; {len(mutants) - len(verdicts)} without a verdict')
        return Score(died, counted, len(mutants) - len(verdicts))


class Lived:
    """Mutants that lived through all that there is, kept in the folder of builds as long as none of it changes: so a long run that
    was ended goes on where it was."""

    def __init__(self, out, digest):
        self.path, self.digest, self.keys = os.path.join(out, 'lived.tsv'), digest, {}
        if os.path.exists(self.path):
            with open(self.path, encoding='utf-8') as file:
                for line in file:
                    row = line.rstrip('\n').split('\t')
                    if len(row) == 4 and row[2] == digest:  # a last line may be cut short
                        self.keys[row[0], row[1]] = row[3]

    def verdict(self, mutant):
        return self.keys.get((mutant.key(), mutant.digest))

    def note(self, mutant, verdict):
        with open(self.path, 'a', encoding='utf-8') as file:
            file.write(f'{mutant.key()}\t{mutant.digest}\t{self.digest}\t{verdict}\n')
