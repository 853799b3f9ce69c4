#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/sizes.py: what is too long is told of, and a list of excuses that has become too generous, too.

sizes_test.py TOOLS_DEV_FOLDER"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import sizes


def function(lines):
    return "void f(void)\n{\n" + "    x();\n" * (lines - 1) + "}\n"


class Sizes(unittest.TestCase):
    def told(self, text, excuses=()):
        return sizes.check([("a.c", text)], dict(excuses))

    def test_file(self):
        self.assertEqual(self.told("\n" * 700), [])
        self.assertEqual(self.told("\n" * 701), ["a.c: 701 lines; 700 at most"])

    def test_function(self):
        self.assertEqual(self.told(function(75)), [])
        self.assertEqual(self.told(function(76)), ["a.c:2: f(): 76 lines; 75 at most"])

    def test_line(self):
        self.assertEqual(self.told("x" * 120), [])
        self.assertEqual(self.told("x" * 121), ["a.c:1: 121 columns; 120 at most"])

    def test_excuse_holds_for_its_length(self):
        self.assertEqual(self.told("\n" * 710, {"a.c": 710}), [])
        self.assertEqual(self.told("\n" * 711, {"a.c": 710}), ["a.c: 711 lines; 710 at most"])
        self.assertEqual(self.told(function(80), {"a.c:f": 80}), [])

    def test_excuse_shrinks(self):
        self.assertIn("say 709 instead of 710", self.told("\n" * 709, {"a.c": 710})[0])
        self.assertIn("take its row out", self.told("\n" * 700, {"a.c": 710})[0])
        self.assertIn("there is none", self.told("", {"b.c": 710})[0])

    def test_pages(self):
        self.assertEqual(sizes.check_pages(["x " * 39999, "|\n"]), [])
        self.assertEqual(sizes.check_pages(["x " * 39999, "a b"]), ["docs/*.md: 40001 words; 40000 at most"])

    def test_readmes(self):
        self.assertEqual(sizes.check_readmes([("a/README.md", "x\n" * 80), ("tests/sim/README.md", "x\n" * 81)]), [])
        self.assertEqual(sizes.check_readmes([("a/README.md", "x\n" * 81)]), ["a/README.md: 81 lines; 80 at most"])
        self.assertEqual(sizes.check_readmes([("a/README.md", "x" * 121)]), ["a/README.md:1: 121 columns; 120 at most"])

    def test_list_is_read(self):
        self.assertEqual(sizes.excused("# words\n\n710 a.c\n80 a.c:f\n"), {"a.c": 710, "a.c:f": 80})


unittest.main()
