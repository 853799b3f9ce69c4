#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/bugs.py: which tables of deliberate bugs and past faults it takes.

bugs_test.py TOOLS_DEV_FOLDER"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import bugs

HEAD = "| bug | world | seed | as | after |\n|---|---|---|---|---|\n"
PAST = "| seed | fault, and the commit that repaired it | today |\n|---|---|---|\n"


class Rows(unittest.TestCase):
    def test_all_different(self):
        page = HEAD + "| a | three | 1 | A1 | |\n| b | three | 1 | A1 | |\n" + PAST
        page += "| 567 | one fault (aaaaaaa) | a |\n| 567 | another (bbbbbbb) | b |\n| 7, 8 | no commit | a |\n"
        self.assertEqual(bugs.check(page), [])

    def test_bug_twice(self):
        page = HEAD + "| a | three | 1 | A1 | |\n\n" + HEAD + "| a | one | 2 | A10 | |\n"
        self.assertEqual(bugs.check(page), ["tests/sim/bugs.md:7: a has a row already, at line 3"])

    def test_commit_twice(self):
        page = PAST + "| 1 | old words (aaaaaaa, bbbbbbb) | a |\n| 2 | new words (bbbbbbb) | a |\n"
        self.assertEqual(bugs.check(page), ["tests/sim/bugs.md:4: bbbbbbb has a row already, at line 3"])

    def test_seeds_twice(self):
        page = PAST + "| 7, 8 | no commit | a |\n| 7, 8 | none again | a |\n"
        self.assertEqual(bugs.check(page), ["tests/sim/bugs.md:4: seeds 7, 8 has a row already, at line 3"])

    def test_none(self):
        self.assertEqual(bugs.check("words\n"), ["tests/sim/bugs.md: no rows found"])


if __name__ == "__main__":
    unittest.main()
