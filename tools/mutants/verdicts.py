"""What became of each mutant: tests/mutants/FOLDER.tsv, a line each. A line counts as long as its function is what it was.

That a mutant lives is not kept: the next look may find it. By hand go in: "equivalent: because ...", and "masked: by ...", the rule
that has to be broken too before something shows.

tests/mutants/functions.tsv has the digests of all functions of each file as they were when samples of all folders were last tried.
What is not in it has changed since."""
import collections
import os

Score = collections.namedtuple('Score', 'died counted left')  # those that are equivalent or masked don't count
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Table:
    def __init__(self, folder, functions):
        self.folder, self.path = folder, os.path.join(ROOT, 'tests', 'mutants', folder + '.tsv')
        self.rows = {}  # key: (digest, what it does, verdict)
        if os.path.exists(self.path):
            with open(self.path, encoding='utf-8') as file:
                for line in file:
                    key, digest, what, verdict = line.rstrip('\n').split('\t')
                    name, function = key.split(':')[:2]
                    if functions.get(name, {}).get(function) == digest:
                        self.rows[key] = (digest, what, verdict)

    def has(self, mutant):
        return mutant.key() in self.rows

    def note(self, mutant, verdict):
        self.rows[mutant.key()] = (mutant.digest, mutant.what.replace('\t', ' '), verdict)

    def write(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, 'w', encoding='utf-8') as file:
            for key, row in sorted(self.rows.items()):
                if row[2].startswith('lives'):
                    continue
                file.write('\t'.join((key, *row)) + '\n')

    def report(self, mutants):
        verdicts = [self.rows[m.key()][2] for m in mutants if self.has(m)]
        same = sum(v.startswith('equivalent') for v in verdicts)
        masked = sum(v.startswith('masked') for v in verdicts)
        died, counted = sum(v.startswith('dies') for v in verdicts), len(verdicts) - same - masked
        if mutants:
            print(f'{self.folder}: {died} of {counted} died, {100 * died / (counted or 1):.1f} %; {same} equivalent, '
                  f'{masked} masked; {len(mutants) - len(verdicts)} without a verdict')
        return Score(died, counted, len(mutants) - len(verdicts))


SHORT = 8
FUNCTIONS = os.path.join(ROOT, 'tests', 'mutants', 'functions.tsv')


def known():
    """file: the digests of its functions."""
    if not os.path.exists(FUNCTIONS):
        return {}
    with open(FUNCTIONS, encoding='utf-8') as file:
        rows = [line.rstrip('\n').split('\t') for line in file]
    return {name: set(digests.split()) for name, digests in rows}


def know(functions):
    os.makedirs(os.path.dirname(FUNCTIONS), exist_ok=True)
    with open(FUNCTIONS, 'w', encoding='utf-8') as file:
        for name, digests in sorted(functions.items()):
            file.write(f'{name}\t{" ".join(sorted(d[:SHORT] for d in digests.values()))}\n')
