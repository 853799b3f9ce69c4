"""What became of each mutant: tests/mutants/FOLDER.tsv, a line each. A line counts as long as its function is what it was."""
import os

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
                file.write('\t'.join((key, *row)) + '\n')

    def report(self, mutants):
        """Per cent of those that are not equivalent, and have a verdict, that died."""
        verdicts = [self.rows[m.key()][2] for m in mutants if self.has(m)]
        counted = [v for v in verdicts if not v.startswith(('equivalent', 'masked'))]
        died = sum(v.startswith('dies') for v in counted)
        score = 100 * died / len(counted) if counted else 0
        print(f'{self.folder}: {died} of {len(counted)} died, {score:.1f} %; {len(verdicts) - len(counted)} equivalent or masked; '
              f'{len(mutants) - len(verdicts)} without a verdict')
        return score
