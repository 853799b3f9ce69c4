#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which functions the tool that breaks rules takes for changed, in small repositories of git: with what has not landed, when all
has, and without a history."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, 'tools', 'dev', 'mutants'))
import since  # noqa: E402
import sites  # noqa: E402

F = 'int f(int x)\n{\n    return x + 1;\n}\n'
G = 'int g(int x)\n{\n    return x + 2;\n}\n'


class Build:
    """Of two folders' sources, and nothing is compiled."""

    def __init__(self, root):
        self.root, self.mutants, self.words = root, [], {}

    def names(self):
        return {name: None for name in ('a/one.c', 'a/two.c', 'b/three.c', 'b/head.h') if os.path.exists(os.path.join(self.root, name))}

    def rewrite(self, name):
        if name not in self.words:
            source = sites.Source(os.path.join(self.root, name), name, ['cc'], self.root)
            self.words[name] = source.words
            self.mutants += source.mutants
        return self.words[name]


def git(root, *words):
    return subprocess.run(['git', '-C', root, '-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'protocol.file.allow=always', *words],
                          check=True, capture_output=True, text=True).stdout.strip()


def commit(root, **files):
    """The text of a/one.c, a/two.c, b/three.c, b/head.h; None: it goes."""
    for name, text in files.items():
        path = os.path.join(root, name.replace('_', '/') + ('.h' if name == 'b_head' else '.c'))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if text is None:
            os.unlink(path)
        else:
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
    git(root, 'add', '-A')
    git(root, 'commit', '-q', '--allow-empty', '-m', 'next')
    return git(root, 'rev-parse', 'HEAD')


def repository(folder):
    root = os.path.join(folder, 'whole')
    git(folder, 'init', '-q', '-b', 'main', root)
    return root


def clone(folder, root, *words):
    there = os.path.join(folder, 'clone')
    git(folder, 'clone', '-q', *words, 'file://' + root, there)
    return there


def asked(root, named=None, back=20, drawn=20):
    """(functions, the sentence)."""
    asks = since.Since(Build(root), root)
    asks.commits_back, asks.files_drawn = back, drawn
    mutants, sentence = asks.find(named)
    return sorted({f'{m.file}:{m.function}' for m in mutants}), sentence


def test_a_function_that_says_the_same_has_not_changed(folder):
    root = repository(folder)
    first = commit(root, a_one=F + G, a_two=F.replace('f(', 'h('))
    commit(root, a_one='/* moved */\n' + F.replace('{', '{ /* says more */'), a_two=None, b_three=G + F.replace('f(', 'h('))
    assert asked(root, first)[0] == [], 'a comment, or a place, counts'
    commit(root, a_one=F.replace('1', '3'))
    assert asked(root, first)[0] == ['a/one.c:f']
    with open(os.path.join(root, 'b', 'three.c'), 'a', encoding='utf-8') as file:
        file.write('int late(int x) { return x + 5; }\n')
    with open(os.path.join(root, 'a', 'two.c'), 'a', encoding='utf-8') as file:
        file.write('int new(int x) { return x + 6; }\n')
    assert asked(root, first)[0] == ['a/one.c:f', 'a/two.c:new', 'b/three.c:late'], 'what is not committed does not count'
    try:
        asked(root, 'nothing')
    except ValueError:
        return
    raise AssertionError('a commit that is not there is taken in silence')


def test_functions_of_headers_change_like_those_of_sources(folder):
    root = repository(folder)
    inline = 'static inline ' + F + 'static inline ' + G
    first = commit(root, b_head=inline)
    second = commit(root, b_head=inline.replace('2', '4'), a_one='#include "../b/head.h"\n')
    assert asked(root, first)[0] == ['b/head.h:g'], 'a header does not count, or all of it does'
    commit(root, b_head=None, b_three=inline.replace('2', '4'))
    assert asked(root, second)[0] == [], 'a function that moved out of a header counts'


def test_what_has_not_landed_comes_first(folder):
    root = repository(folder)
    commit(root, a_one=F, b_three=G)
    commit(root, b_three=G.replace('2', '4'))
    here = clone(folder, root)
    commit(here, a_one=F.replace('1', '3'))
    commit(here)
    functions, sentence = asked(here)
    assert functions == ['a/one.c:f'], f'{functions}: more than what has not landed'
    assert 'on which all that has landed ends' in sentence, sentence


def test_where_all_has_landed_the_last_commits_count(folder):
    root = repository(folder)
    commit(root, a_one=F, a_two='int h(int x) { return x + 7; }\n', b_three=G)
    commit(root, a_one=F.replace('1', '3'))
    commit(root, b_three=G.replace('2', '4'))
    commit(root)  # nothing of ours
    here = clone(folder, root)
    assert asked(here, back=1)[0] == ['b/three.c:g'], 'a commit that changes no source counts'
    assert asked(here, back=2)[0] == ['a/one.c:f', 'b/three.c:g']
    assert asked(here)[0] == ['a/one.c:f', 'b/three.c:g'], 'what the first commit brought has changed since none'
    assert 'nothing is here that has not landed' in asked(here)[1]


def test_a_clone_without_history_says_so_and_draws(folder):
    root = repository(folder)
    names = {'a_one': F, 'a_two': 'int h(int x) { return x + 7; }\n', 'b_three': G}
    drawn = set()
    commit(root, **names)
    for turn in range(12):
        commit(root, a_one=F.replace('1', str(turn)))
        here = clone(folder, root, '--depth', '1')
        functions, sentence = asked(here, drawn=1)
        assert len(functions) == 1 and 'no commit to compare with' in sentence, (functions, sentence)
        assert len(asked(here)[0]) == 3, 'it ends before there are enough'
        drawn.add(functions[0])
        subprocess.run(['rm', '-rf', here], check=True)
    assert len(drawn) > 1, f'always {drawn}'
    here = clone(folder, root, '--depth', '2')
    functions, sentence = asked(here)
    assert functions == ['a/one.c:f'] and 'changed since' in sentence, 'a short history is none'


def main():
    for name, test in list(globals().items()):
        if name.startswith('test_'):
            with tempfile.TemporaryDirectory(prefix='leat-since-') as folder:
                test(folder)
            print(f'[       OK ] {name}')


if __name__ == '__main__':
    main()
