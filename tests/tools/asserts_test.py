#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/asserts.py: a module with fewer assertions than it is to have is told of.

asserts_test.py TOOLS_DEV_FOLDER"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import asserts


def source(lines, of_them):
    return "    LEAT_ASSERT(x);\n" * of_them + "    x();\n" * (lines - of_them)


class Asserts(unittest.TestCase):
    def test_all_kinds_count(self):
        text = "LEAT_ASSERT(a);\nLEAT_ASSERT_CMP(a, <, b);\nLEAT_ASSERT_SLOW(a);\nLEAT_ASSERT_OWNER(a);\n"
        self.assertEqual(asserts.counted(text), (4, 4))

    def test_comments_blanks_strings_and_definitions_do_not(self):
        text = '/* LEAT_ASSERT(a)\n LEAT_ASSERT(b) */\n\n#define LEAT_ASSERT(x) x\nf("LEAT_ASSERT(");\n// LEAT_ASSERT(c)\n'
        self.assertEqual(asserts.counted(text), (2, 0))

    def test_module(self):
        self.assertEqual(asserts.check([("broker/net/a.c", source(1000, 12))]), [])
        told = asserts.check([("broker/net/a.c", source(1000, 11))])
        self.assertEqual(told, ["broker: 11 assertions in 1000 lines of code; 12 per 1,000 at least"])

    def test_all(self):
        self.assertEqual(asserts.check([("wire/a.c", source(1000, 10))]), [])
        told = asserts.check([("wire/a.c", source(500, 9)), ("tools/leat/a.c", source(500, 0))])
        self.assertEqual(told, ["all modules: 9 assertions in 1000 lines of code; 10 per 1,000 at least"])

    def test_tests_do_not_count(self):
        self.assertEqual(asserts.check([("tests/a.c", source(1000, 0))]), [])


unittest.main()
