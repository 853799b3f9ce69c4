#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/words.py: a retired word is found wherever it stands, and the number of names that still have one may only fall.

words_test.py TOOLS_DEV_FOLDER"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import words

ALL = "ledger | log | all |\n"
NAMES = "fog | gap | names |\n"


class Words(unittest.TestCase):
    def told(self, text, rows=ALL, path="a/b.c"):
        return words.check([(path, text)], words.rows(rows))

    def test_word_is_found_everywhere(self):
        said = ["a/b.c:2: ledger: 'ledger' is retired: log"]
        for line in ("int ledger;", "/* The ledger. */", '"the ledger"', "// ledger"):
            self.assertEqual(self.told("\n" + line), said)
        self.assertEqual(len(self.told(r'"first\nledger"')), 1)
        self.assertEqual(self.told("The ledger.", path="docs/a.md"), ["docs/a.md:1: ledger: 'ledger' is retired: log"])
        self.assertEqual(self.told("LEAT_LEDGER_MAX"), ["a/b.c:1: LEAT_LEDGER_MAX: 'ledger' is retired: log"])
        self.assertEqual(self.told("ledger_1"), ["a/b.c:1: ledger_1: 'ledger' is retired: log"])

    def test_file_name_is_found(self):
        for path in ("a/ledger.c", "ledger/a.c", "a/b-ledger.md"):
            self.assertEqual(self.told("", path=path), [f"{path}:0: {path}: 'ledger' is retired: log"])

    def test_part_of_a_word_is_another_word(self):
        self.assertEqual(self.told("ledgers sledger pledgerous"), [])

    def test_names_are_found_and_prose_is_not(self):
        self.assertEqual(self.told('/* fog */ f("fog");', NAMES), [])
        self.assertEqual(self.told("The fog.", NAMES, "docs/a.md"), [])
        self.assertEqual(len(self.told('int fog; "log_fog" /* fog_of(x) */', NAMES)), 3)
        self.assertEqual(len(self.told("`fog_of`", NAMES, "docs/a.md")), 1)

    def test_several_words(self):
        row = "voter_fog | voter | names |\n"
        self.assertEqual(len(self.told("LEAT_VOTER_FOG", row)), 1)
        self.assertEqual(self.told("fog, voter", row), [])
        row = "front_fog | haze | all |\n"
        self.assertEqual([len(self.told(text, row)) for text in ("// The front fog.", "front-fog", "front_fog", "front, fog")], [1, 1, 1, 0])

    def test_other_files_are_not_read(self):
        self.assertEqual(self.told("ledger", path="tests/fuzz/corpus/x/y"), [])
        self.assertEqual(self.told("ledger", path="tools/dev/words.txt"), [])
        self.assertEqual(len(self.told("ledger", path="tools/check")), 1)

    def test_place_until_it_is_gone(self):
        rows = "ledger | log | all | a c/d.c\n"
        table = words.rows(rows)
        self.assertEqual(words.check([("a/b.c", "ledger"), ("c/d.c", "ledger")], table), [])
        self.assertEqual(words.check([("a/b.c", "ledger"), ("c/d.c", "")], table),
                         ["c/d.c: has no 'ledger': take it out of tools/dev/words.txt"])
        self.assertEqual(len(words.check([("a/b.c", "ledger"), ("c/d.c", "ledger"), ("ab/c.c", "ledger")], table)), 1)

    def test_number_of_names_may_only_fall(self):
        rows = "ledger | log | all | 2\n"
        self.assertEqual(self.told("ledger_a ledger_b ledger_a", rows), [])
        self.assertIn("3 names have it; 2 at most", self.told("ledger_a ledger_b ledger_c", rows)[0])
        self.assertIn("say 1 instead of 2", self.told("ledger_a ledger_a", rows)[0])

    def test_each_word_of_the_list_is_refused(self):
        """A new name with a word of the list, whether it may stand nowhere or in as many names as there are."""
        with open(words.LIST, encoding="utf-8") as source:
            table = words.rows(source.read())
        self.assertGreater(len(table), 0)
        for retired in table:
            text = f"int {retired}_that_is_new;"
            self.assertTrue(words.check([("new.c", text)], {retired: table[retired][:2] + ("0",)}), retired)
            self.assertTrue(words.check([("new.c", text)], {retired: table[retired][:2] + ("",)}), retired)


unittest.main()
