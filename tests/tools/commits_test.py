#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/commits.py and the hook tools/dev/hooks/commit-msg: which messages they take.

commits_test.py TOOLS_DEV_FOLDER"""
import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = sys.argv.pop(1)
sys.path.insert(0, TOOLS)
import commits


def hook(message):
    with tempfile.NamedTemporaryFile("w", suffix=".msg") as file:
        file.write(message)
        file.flush()
        out = subprocess.run([os.path.join(TOOLS, "hooks", "commit-msg"), file.name], capture_output=True, text=True)
        return out.returncode, out.stderr


class Messages(unittest.TestCase):
    def test_good_ones(self):
        for subject in ("broker: refuse trims past the acked end", "tests/sim, tools: filter traces",
                        "tools/check --fresh: install git", "a: " + "x" * 69):
            self.assertEqual(commits.complaints(subject + "\n\nWhy.\n"), [], subject)
            self.assertEqual(hook(subject + "\n\nWhy.\n"), (0, ""))

    def test_too_long(self):
        self.assertIn("73 characters; 72", commits.complaints("a: " + "x" * 70)[0])
        self.assertIn("73 characters; 72", hook("a: " + "x" * 70)[1])

    def test_form(self):
        for subject in ("", "Repair it", "broker: repair it.", "broker:", ": repair it", "fixup! broker: repair it"):
            self.assertIn("is not", commits.complaints(subject)[0], subject)
        self.assertNotEqual(hook("Repair it\n")[0], 0)

    def test_body_begins_below_an_empty_line(self):
        self.assertIn("not empty", commits.complaints("a: b c\nand d\n")[0])

    def test_comments_of_git_do_not_count(self):
        self.assertEqual(commits.complaints("a: b c\n# Please enter the message\n"), [])

    def test_hook_lets_fixups_pass(self):
        self.assertEqual(hook("fixup! broker: repair it\n")[0], 0)


class Checked(unittest.TestCase):
    """Which commits are looked at: in a clone, those that the upstream branch does not have."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder.name)
        self.git("init", "-q", "-b", "main", "up")
        os.chdir("up")
        self.commit("an old one without an area")
        os.chdir("..")
        self.git("clone", "-q", "up", "down")
        os.chdir("down")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], check=True, capture_output=True)

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def test_those_of_upstream_are_not(self):
        self.commit("tools: do it")
        self.assertEqual(commits.check(), [])

    def test_all_others_are(self):
        self.commit("Do it")
        self.commit("tools: do it")
        self.assertEqual(len(commits.check()), 1)

    def test_last_one_is_where_there_is_no_other(self):
        self.assertEqual(len(commits.check()), 1)


unittest.main()
