#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool that breaks rules, on a source where every broken rule shows in what the program prints."""
import concurrent.futures
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MUTANTS = os.path.join(ROOT, 'tools', 'dev', 'mutants')
sys.path.insert(0, MUTANTS)
import build as builds  # noqa: E402
import pairs  # noqa: E402
import sanitized  # noqa: E402
import sites  # noqa: E402
import trial as trials  # noqa: E402
import verdicts  # noqa: E402

SWITCH = ['-DLEAT_MUTANTS_MAX=100000', os.path.join(MUTANTS, 'switch.c')]
KINDS = {'negate', 'clause', 'compare', 'constant', 'operands', 'turn', 'swap', 'arguments', 'branches', 'leave', 'return', 'jump',
         'swallow', 'result'}
SOURCE = r'''
#include <stdbool.h>
#include <stdio.h>
typedef enum leat_err { LEAT_OK, LEAT_E_INVALID } leat_err;
struct bits { unsigned low : 3, high : 5; };
static int calls;
static int call(int x) { calls += x; return x; }
#define TWICE(x) ((x) + (x))
static bool between(int x, int from, int to) { return x > from && x <= to; }
static bool odd(unsigned x) { return x & 1; }
static leat_err check(int x) { if (x == 7) return LEAT_E_INVALID; return LEAT_OK; }
static int width(const char *from, const char *to) { return (int)(to - from); }
static int walk(int to)
{
    int sum = 0;
    for (int x = 2;; x++) {
        if (odd((unsigned)x)) continue;
        if (x > to) break;
        sum += x;
    }
    return sum;
}
static long minus(long from, long to) { return from - to; }
static long apart(long from, long to)
{
    long more = (from + 1 < to && from != 2) || from + to == 6 ? from * 7 : to;
    return minus(more, (int)from) + minus(-1, (unsigned)to) + (from << to) + (from >> to) + from * 5 / to + from * 5 % to;
}
static int choose(int x)
{
    struct bits bits = {.low = (unsigned)(x + 1) & 7};
    if (odd((unsigned)x)) call(10); else call(20);
    if (x < 0) return -1;
    while (bits.high < 2 && odd((unsigned)x)) bits.high++;
    switch (x) {
    case 3: return TWICE(x);
    default: break;
    }
    return x < 4 || x > 6 ? x - calls : (int)(5 + bits.low * bits.high);
}
int main(void)
{
    static const int table[] = {1, 2};
    for (int x = -2; x < 9; x++)
        printf("%d %d %d %d %d %d\n", between(x, 2, 4), odd((unsigned)x), check(x), walk(x), choose(x), calls);
    for (int x = 1; x < 6; x++) printf("%ld %ld %ld\n", apart(x, 3), apart(3, x), apart(2, x));
    static const char text[] = "abc";
    printf("%d %d\n", width(text, text + 3), table[1]);
    return 0;
}
'''


def test_every_broken_rule_shows(folder):
    path = os.path.join(folder, 'sample.c')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(SOURCE)
    source = sites.Source(path, 'sample.c', ['cc', '-std=gnu17'], folder)
    for number, mutant in enumerate(source.mutants, 1):
        mutant.number = number
    broken = os.path.join(folder, 'broken.c')
    with open(broken, 'w', encoding='utf-8') as file:
        file.write(source.rewritten())
    program = os.path.join(folder, 'program')
    subprocess.run(['cc', '-std=gnu17', '-w', '-include', os.path.join(MUTANTS, 'switch.h'), '-o', program, broken,
                    *SWITCH], check=True)

    def said(number, **more):
        done = subprocess.run([program], env={**os.environ, 'LEAT_MUTANT': str(number), **more}, capture_output=True, text=True,
                              timeout=5)
        return done.returncode, done.stdout

    plain = os.path.join(folder, 'plain')
    subprocess.run(['cc', '-std=gnu17', '-w', '-o', plain, path], check=True)
    whole = subprocess.run([plain], capture_output=True, text=True, check=True)
    assert said(0) == (0, whole.stdout), 'with no mutant chosen the program does something else'

    seen = os.path.join(folder, 'seen')
    said(0, LEAT_MUTANTS_SEEN=seen)
    with open(seen, 'rb') as file:
        came = file.read()
    for mutant in source.mutants:
        assert came[mutant.number] == 1, f'{mutant} was not come to'

    def shows(mutant):
        try:
            return said(mutant.number) != (0, whole.stdout)
        except subprocess.TimeoutExpired:
            return True
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # a loop without an end waits
        quiet = [str(mutant) for mutant, shown in zip(source.mutants, pool.map(shows, source.mutants)) if not shown]
    assert not quiet, quiet
    kinds = Counter(mutant.kind for mutant in source.mutants)
    missing = KINDS - set(kinds)
    assert not missing, f'no mutant of {missing}: {json.dumps(kinds)}'


def test_a_digest_goes_by_what_a_function_does(folder):
    path = os.path.join(folder, 'digest.c')

    def digests(text):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)
        return sites.Source(path, 'digest.c', ['cc'], folder).functions

    one = digests('int f(int x)\n{\n    return x + 1;\n}\nint g(void) { return 1; }\n')
    two = digests('/* moved */\nint f(int x) { /* says more */\n return x + 1;\n}\nint g(void) { return 2; }\n')
    assert one['f'] == two['f'], 'comments and lines count'
    assert one['g'] != two['g'], 'a change does not count'


def test_a_line_that_asserts_whose_thread_it_is_does_not_count(folder):
    path, head = os.path.join(folder, 'owner.c'), '#define LEAT_ASSERT_OWNER(actor) ((void)((actor) != 0))\n'

    def source(line):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(head + 'int f(int *core)\n{\n' + line + '    return *core + 1;\n}\n')
        source = sites.Source(path, 'owner.c', ['cc'], folder)
        return source.functions['f'], [mutant.key() for mutant in source.mutants]

    plain = source('')
    assert plain[1], 'no mutants at all'
    assert source('    LEAT_ASSERT_OWNER(core);  /* says why */\n') == plain, 'it counts, or is mutated'
    assert source('    *core = 2; LEAT_ASSERT_OWNER(core);\n')[0] != plain[0], 'what else a line says does not count'
    assert source('    LEAT_ASSERT_OWNER(core); f(core);\n')[0] != plain[0], 'what a line says after it does not count'


def test_a_function_that_is_declared_with_an_attribute_is_looked_into(folder):
    path = os.path.join(folder, 'attribute.c')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('int f(int x) __attribute__((warn_unused_result));\nint f(int x) { if (x > 1) x = 2; return x; }\n')
    source = sites.Source(path, 'attribute.c', ['cc'], folder)
    kinds = {mutant.kind for mutant in source.mutants}
    assert kinds >= {'negate', 'compare', 'constant', 'leave'}, kinds


def test_two_rules_at_once(folder):
    """Either of two rules keeps what the other does: only both broken show."""
    path, program = os.path.join(folder, 'two.c'), os.path.join(folder, 'two')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('int inner(int x) { if (x > 9) return 9; return x; }\n'
                   'int main(void) { int x = inner(12); if (x > 9) return 1; return x > 9 ? 2 : 0; }\n')
    source = sites.Source(path, 'two.c', ['cc'], folder)
    for number, mutant in enumerate(source.mutants, 1):
        mutant.number = number
    with open(path, 'w', encoding='utf-8') as file:
        file.write(source.rewritten())
    subprocess.run(['cc', '-w', '-include', os.path.join(MUTANTS, 'switch.h'), '-o', program, path,
                    *SWITCH], check=True)

    def ends(numbers):
        return subprocess.run([program], env={**os.environ, 'LEAT_MUTANT': numbers}, check=False).returncode
    first = next(m for m in source.mutants if m.kind == 'return' and m.function == 'inner').number
    second = next(m for m in source.mutants if m.kind == 'return' and m.function == 'main').number
    assert (ends('0'), ends(f'{second}'), ends(f'{first}'), ends(f'{first},{second}')) == (0, 0, 1, 2)
    assert ends(f'{first},{second},{first}') == -6, 'a third one is taken in silence'
    assert ends('first') == -6, 'what is no number is taken in silence'


def test_what_changed_while_a_build_ran_is_compiled_by_the_next(folder):
    here, there = os.path.join(folder, 'here.c'), os.path.join(folder, 'source', 'here.c')

    def put(text, time):
        with open(here, 'w', encoding='utf-8') as file:
            file.write(text)
        os.utime(here, (time, time))
        builds.put(there, here)
        with open(there, encoding='utf-8') as file:
            assert file.read() == text, 'no copy'
        return os.stat(there).st_mtime
    made = put('one', 1000)
    assert put('one', 2000) == made, 'what is the same is compiled again'
    assert put('two', 1500) >= made, 'it is older than what a build made of the one before'


def test_a_build_of_an_older_tree_knows_the_files_of_this_one(folder):
    here, out = os.path.join(folder, 'here'), os.path.join(folder, 'out')

    def names(*files):
        for file in files:
            builds.write(os.path.join(here, 'groups', file), b'int main(void) { return 0; }\n')
        sources = [f'groups/{file}' for file in files]
        builds.write(os.path.join(here, 'meson.build'), f"project('two', 'c')\nexecutable('two', {sources})\n".encode())
        return list(builds.Build(out, ['groups']).names())
    kept, builds.ROOT = builds.ROOT, here
    try:
        assert names('old.c', 'same.c') == ['groups/old.c', 'groups/same.c']
        os.unlink(os.path.join(here, 'groups', 'old.c'))
        assert names('new.c', 'same.c') == ['groups/new.c', 'groups/same.c'], 'a file that has gone, or none of those that came'
    finally:
        builds.ROOT = kept


# A header that two sources include: no source has the function's rule.
BOTH = """static inline int both(int x) { if (x > LIMIT) return 9; return x; }
static inline int none(int x) { if (x == 0) return 0; return x; }
static inline int idle(int x) { return x < 7; }
"""
PROJECT = {
    'meson.build': """project('two', 'c')
program = executable('two', 'groups/one.c', 'groups/two.c')
test('two', program, suite : 'groups')
subdir('tests/sim')
""",
    'tests/sim/meson.build': "executable('leat-sim', '../../groups/one.c', '../../groups/two.c')\n",
    'groups/limit.h': '#pragma once\nenum { LIMIT = 2 };\n',
    'groups/both.h': '#pragma once\n#include "limit.h"\n' + BOTH,
    'groups/one.c': '#include "both.h"\nint one(int x) { return both(x); }\n',
    'groups/two.c': '#include "both.h"\nint one(int x);\n'
                    'int main(void) { return (one(2) != 2) + 2 * (both(2) != 2) + 4 * (both(3) != 9) + none(0); }\n',
}


def project(folder, **changed):
    """A build of it with all mutants, in the folder of builds that is there."""
    for name, text in {**PROJECT, **changed}.items():
        builds.write(os.path.join(folder, 'here', name), text.encode())
    subprocess.run(['git', 'init', '-q', os.path.join(folder, 'here')], check=True)
    builds.ROOT = os.path.join(folder, 'here')
    build = builds.Build(os.path.join(folder, 'out'), ['groups'])
    build.rewrite_all()
    build.compile()
    return build


def broken_in(build, key):
    """(the mutant, how the program ends with it)."""
    mutant = next(m for m in build.mutants if m.key() == key)
    return mutant, subprocess.run([os.path.join(build.build, 'two')], env={**os.environ, 'LEAT_MUTANT': str(mutant.number)},
                                  check=False).returncode


def test_a_rule_of_a_header_is_broken_in_all_that_include_it(folder):
    kept = builds.ROOT
    try:
        build = project(folder)
        assert [name for name in build.names() if name.endswith('.h')] == ['groups/both.h'], 'limit.h has no function'
        mutant, ended = broken_in(build, 'groups/both.h:both:compare:1')
        assert ended == 1 + 2, f'{ended}: it is not broken in both'
        trial = trials.Trial(build, 0)
        assert trial.verdict(mutant) == 'dies in two: exit 3'
        same, ended = broken_in(build, 'groups/both.h:none:return:1')
        assert ended == 0 and trial.verdict(same) == 'equivalent: compiled, it is the same'
        idle, ended = broken_in(build, 'groups/both.h:idle:compare:1')
        assert ended == 0 and trial.verdict(idle).startswith('lives'), 'what nothing uses is taken for equivalent'
        before = build.functions['groups/both.h']
        build = project(folder, **{'groups/both.h': PROJECT['groups/both.h'].replace('x > LIMIT', 'x > LIMIT - 1')})
        changed = {name for name, digest in build.functions['groups/both.h'].items() if before[name] != digest}
        assert changed == {'both'}, changed
        assert broken_in(build, 'groups/both.h:idle:compare:1')[1] == 3, 'what includes the header was not compiled again'
    finally:
        builds.ROOT = kept


def test_a_header_that_needs_another_before_it_is_no_silent_gap(folder):
    kept = builds.ROOT
    try:
        project(folder, **{'groups/both.h': '#pragma once\n' + BOTH, 'groups/one.c': '#include "limit.h"\n' + PROJECT['groups/one.c'],
                           'groups/two.c': '#include "limit.h"\n' + PROJECT['groups/two.c']})
    except ValueError as error:
        assert 'groups/both.h by itself' in str(error), error
        return
    finally:
        builds.ROOT = kept
    raise AssertionError('nothing is said of a header whose functions are not known')


class FakeStep:
    """A test of which is known what it notices: sets of mutants that are broken at once."""
    share, extra = 1, []

    def __init__(self, name, *noticed):
        self.name, self.noticed = name, [set(numbers) for numbers in noticed]
        self.against = type('Quick', (), {'seconds': 0.1})

    def kills(self, *mutants):
        return 'exit 1' if {m.number for m in mutants} in self.noticed else ''


class FakeTrial:
    def __init__(self, *tests):
        self.tests = tests

    def unit_tests(self, mutant, own):
        return list(self.tests) if own else []

    def seeds(self, mutant):
        return iter(())

    def steps(self, mutant):
        return iter(self.tests)


def mutant_of(number, file='groups/two.c'):
    mutant = sites.Mutant('return', 'f', 1, 'return')
    mutant.number = mutant.ordinal = number
    mutant.file, mutant.digest = file, 'd'
    return mutant


def test_what_becomes_of_a_pair(folder):
    one, mask = mutant_of(1), mutant_of(2)

    def outcome(*tests):
        return pairs.outcome(FakeTrial(*tests), one, mask).split(':')[0]
    assert outcome(FakeStep('t', [2], [1, 2])) == 'as said'
    assert outcome(FakeStep('t', [2], [1, 2]), FakeStep('u', [1, 2])) == 'shown'
    assert outcome(FakeStep('t', [1], [2], [1, 2])) == 'wrong'
    assert outcome(FakeStep('t', [2])) == 'hole'
    assert outcome(FakeStep('t', [1, 2])) == 'shown'
    assert pairs.mask_of('masked: by groups/two.c:f:return:2 because it does the same') == mask.key()
    assert pairs.mask_of('masked: by f(), which does the same') is None


def test_a_long_run_goes_on_where_it_was_ended(folder):
    loader = importlib.machinery.SourceFileLoader('mutate', os.path.join(ROOT, 'tools', 'mutate'))
    mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader('mutate', loader))
    loader.exec_module(mutate)
    mutants, asked = [mutant_of(number) for number in range(1, 7)], []

    class Ended:
        """Mutant 3 lives, the others die; after `most` of them somebody ends the run."""
        build = type('Out', (), {'out': folder})

        def __init__(self, most):
            self.most = most

        def digest(self):
            return 'programs'

        def verdict(self, mutant):
            if len(asked) == self.most:
                raise trials.Stopped
            asked.append(mutant.number)
            return 'lives' if mutant.number == 3 else 'dies in t: exit 1'

    def go(most):
        table = verdicts.Table('groups', {'groups/two.c': {'f': 'd'}})
        wanted = [m for m in mutants if not table.has(m)]
        mutate.Judge(Ended(most), wanted, {'groups': table}, True).run(1, 0)
        return table
    verdicts.TABLES = folder
    go(4)
    table = go(100)
    assert asked == [1, 2, 3, 4, 5, 6], f'asked again, or never: {asked}'
    assert [table.rows[m.key()][2].split(':')[0] for m in mutants] == ['dies in t'] * 2 + ['lives'] + ['dies in t'] * 3
    with open(os.path.join(folder, 'groups.tsv'), encoding='utf-8') as file:
        assert len(file.readlines()) == 5, 'one that lives is kept, or one that died is not'


def test_a_row_is_stale_when_its_function_has_changed_or_gone(folder):
    verdicts.TABLES = folder
    rows = [('groups/two.c:f:return:1', 'd'), ('groups/two.c:f:return:2', 'old'), ('groups/two.c:gone:return:1', 'd'),
            ('groups/gone.c:f:return:1', 'd')]
    verdicts.replace(os.path.join(folder, 'groups.tsv'), ('\t'.join((*row, 'return', 'dies in t')) for row in rows))
    table = verdicts.Table('groups', {'groups/two.c': {'f': 'd'}})
    assert list(table.rows) == ['groups/two.c:f:return:1'] and table.stale == 3


def test_a_sanitizer_says_what_a_mutant_died_of(folder):
    path, program = os.path.join(folder, 'past.c'), os.path.join(folder, 'past')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('#include <stdlib.h>\n'
                   'static int sum(const int *at, int count)\n'
                   '{ int sum = 0; for (int i = 0; i < count; i++) sum |= at[i]; return sum; }\n'
                   'struct rows { int n[4]; int more; };\n'
                   'static int rows(const struct rows *r) { int s = 0; for (int k = 0; k < 4; k++) s |= r->n[k]; return s; }\n'
                   'int main(void)\n'
                   '{\n'
                   '    int *four = calloc(4, sizeof *four), none = four ? sum(four, 4) : 1;\n'
                   '    free(four);\n'
                   '    struct rows r = {{0, 0, 0, 0}, 0};\n'
                   '    return none + rows(&r) == 0 ? 0 : 3;\n'
                   '}\n')
    source = sites.Source(path, 'past.c', ['cc', '-std=gnu17'], folder)
    for number, mutant in enumerate(source.mutants, 1):
        mutant.number = number
    with open(path, 'w', encoding='utf-8') as file:
        file.write(source.rewritten())
    subprocess.run(['clang', '-std=gnu17', '-w', '-O1', '-fsanitize=address,undefined', '-include', os.path.join(MUTANTS, 'switch.h'),
                    '-o', program, path, *SWITCH], check=True)
    number = {m.key().split(':', 1)[1]: m.number for m in source.mutants}

    def died(key):
        return sanitized.Runs().one([program], [number[key] if key else 0], 20)
    assert died('') == '', 'it dies with nothing broken'
    assert died('sum:compare:1') == 'ASan, heap-buffer-overflow'
    assert died('rows:compare:1') == "UBSan, index 4 out of bounds for type 'const int[4]'", died('rows:compare:1')
    assert died('main:compare:1') == 'exit 3, built with sanitizers', 'a sanitizer is said to have seen what none saw'


def test_a_verdict_that_names_a_sanitizer_is_a_claim_until_it_has_been_run(folder):
    assert sanitized.claims('equivalent: because the read is past the table, which ASan sees')
    assert sanitized.claims('masked: by the compiler: UBSan sees the index')
    assert not sanitized.claims('equivalent: because no sanitizer sees the row behind, and it is empty')
    assert not sanitized.claims('dies in store slots: ASan, heap-buffer-overflow')
    verdicts.TABLES = folder
    rows = [('groups/two.c:f:return:1', 'which ASan sees'), ('groups/two.c:f:return:2', 'dies in t: UBSan, shift')]
    verdicts.replace(os.path.join(folder, 'groups.tsv'), ('\t'.join((key, 'd', 'return', verdict)) for key, verdict in rows))
    assert verdicts.found(['groups'], sanitized.claims) == ['groups/two.c:f:return:1']


def test_what_lives_where_sanitizers_watch_keeps_its_verdict(folder):
    loader = importlib.machinery.SourceFileLoader('mutate', os.path.join(ROOT, 'tools', 'mutate'))
    mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader('mutate', loader))
    loader.exec_module(mutate)
    verdicts.TABLES = folder
    mutants, claim = [mutant_of(1), mutant_of(2)], 'equivalent: because ASan sees the read'
    verdicts.replace(os.path.join(folder, 'groups.tsv'), ('\t'.join((m.key(), 'd', 'return', claim)) for m in mutants))

    class Watched:
        build = type('Out', (), {'out': folder})

        def digest(self):
            return 'programs'

        def verdict(self, mutant):
            return 'lives' if mutant.number == 1 else 'dies in t: ASan, heap-buffer-overflow'
    judge = mutate.SanitizedJudge(Watched(), mutants, {'groups': verdicts.Table('groups', {'groups/two.c': {'f': 'd'}})}, True)
    judge.run(1, 0)
    table = verdicts.Table('groups', {'groups/two.c': {'f': 'd'}})
    assert [table.rows[m.key()][2] for m in mutants] == [claim, 'dies in t: ASan, heap-buffer-overflow']
    assert (judge.died, judge.lives) == (1, 1)


def test_no_verdict_claims_what_a_sanitizer_would_see(_folder):
    verdicts.TABLES = os.path.join(ROOT, 'tests', 'mutants')
    folders = [name[:-len('.tsv')] for name in os.listdir(verdicts.TABLES) if name.endswith('.tsv') and name != 'pairs.tsv']
    assert folders, 'no tables'
    claims = verdicts.found(folders, sanitized.claims)
    assert not claims, f'tools/mutate --sanitize --keep runs these: {claims}'


def main():
    for name, test in list(globals().items()):
        if name.startswith('test_'):
            with tempfile.TemporaryDirectory(prefix='leat-mutants-') as folder:
                test(folder)
            print(f'[       OK ] {name}')


if __name__ == '__main__':
    main()
