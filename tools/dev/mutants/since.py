# SPDX-License-Identifier: Apache-2.0
"""Which functions have changed since a commit, by git: those whose words (comments and line breaks apart) stood in none of the files
that differ, as they were at that commit. So a function that only moved has not changed, and no list is kept of what was known.

What is compared with:
  1. a commit that is named (--since);
  2. where commits, or sources that are not committed, have not landed: the last commit that they share with `origin`;
  3. where all has landed: the commit before the last `commits_back` that changed a source of these folders;
  4. where there is no history (a clone of depth 1): nothing. Then files are drawn by the name of HEAD, others with each commit."""
import hashlib
import subprocess

import build as builds
import sites


class Since:
    commits_back, files_drawn = 20, 20

    def __init__(self, build, root=builds.ROOT):
        self.build, self.root, self.then = build, root, {}

    def git(self, *words):
        """What it says, or '' where it fails: there is no such commit."""
        done = subprocess.run(['git', '-C', self.root, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ''

    def mutants(self, commit):
        """Those of functions that are not what they were."""
        files = set(self.git('diff', '--name-only', '--no-renames', '--relative', commit).splitlines())
        before = ' '.join(self.words_then(commit, name) for name in sorted(files) if name.endswith(('.c', '.h')))
        files |= set(self.git('ls-files', '-o', '--exclude-standard').splitlines())
        found = []
        for name in sorted(files & set(self.build.names())):
            words = self.build.rewrite(name)
            changed = {function for function, text in words.items() if text not in before}
            found += [m for m in self.build.mutants if m.file == name and m.function in changed]
        return found

    def words_then(self, commit, name):
        if (commit, name) not in self.then:
            self.then[commit, name] = sites.words(self.git('show', f'{commit}:./{name}').encode())
        return self.then[commit, name]

    def shared(self):
        """The last commit that HEAD shares with what has landed; HEAD itself where no other place is known."""
        for upstream in ('origin/HEAD', '@{upstream}'):
            commit = self.git('merge-base', 'HEAD', upstream)
            if commit:
                return commit
        return 'HEAD'

    def find(self, named):
        """(mutants, a sentence that says since when)."""
        if named:
            if not self.git('rev-parse', '--verify', named + '^{commit}'):
                raise ValueError(f'{named} is no commit that this clone has')
            return self.mutants(named), f'changed since {named}'
        commit = self.shared()
        found = self.mutants(commit)
        if found:
            return found, f'changed since {self.say(commit)}, on which all that has landed ends'
        folders = sorted({name.split('/')[0] for name in self.build.names()})
        lines = self.git('rev-list', '--first-parent', '--parents', f'--max-count={self.commits_back}', 'HEAD', '--', *folders).splitlines()
        before = [line.split()[1] for line in lines if ' ' in line]
        if not before:
            return self.drawn(), 'in files drawn by the name of HEAD, as this clone has no commit to compare with'
        return self.mutants(before[-1]), f'changed since {self.say(before[-1])}; nothing is here that has not landed'

    def drawn(self):
        head = self.git('rev-parse', 'HEAD')
        names = sorted(self.build.names(), key=lambda n: hashlib.sha256((head + n).encode()).digest())[:self.files_drawn]
        for name in names:
            self.build.rewrite(name)
        return [m for m in self.build.mutants if m.file in names]

    def say(self, commit):
        return self.git('log', '-1', '--format=%h of %cs', commit) or commit
