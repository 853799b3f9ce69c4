#!/usr/bin/env python3
"""The tool that breaks rules, on a source where every broken rule shows in what the program prints."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MUTANTS = os.path.join(ROOT, 'tools', 'mutants')
sys.path.insert(0, MUTANTS)
import sites  # noqa: E402

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
    printf("%d %d\n", width("abc", "abc" + 0) == 0, table[1]);
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
    subprocess.run(['cc', '-std=gnu17', '-w', '-include', os.path.join(MUTANTS, 'switch.h'), '-o', program, broken], check=True)

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
    missing = {'negate', 'clause', 'compare', 'constant', 'operands', 'leave', 'return', 'jump', 'swallow', 'result'} - set(kinds)
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


def test_a_function_that_is_declared_with_an_attribute_is_looked_into(folder):
    path = os.path.join(folder, 'attribute.c')
    with open(path, 'w', encoding='utf-8') as file:
        file.write('int f(int x) __attribute__((warn_unused_result));\nint f(int x) { if (x > 1) x = 2; return x; }\n')
    source = sites.Source(path, 'attribute.c', ['cc'], folder)
    kinds = {mutant.kind for mutant in source.mutants}
    assert kinds >= {'negate', 'compare', 'constant', 'leave'}, kinds


def main():
    for name, test in list(globals().items()):
        if name.startswith('test_'):
            with tempfile.TemporaryDirectory(prefix='leat-mutants-') as folder:
                test(folder)
            print(f'[       OK ] {name}')


if __name__ == '__main__':
    main()
