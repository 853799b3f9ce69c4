#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/circles.py: a circle of five files is told of; what is no call makes no circle.

circles_test.py TOOLS_DEV_FOLDER"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import circles


def ring(count, call="next_{}();", folder="store"):
    """(path, text) of so many files of which each calls the next one, and the last calls the first."""
    return [(f"{folder}/f{i}.c", f"void next_{i}(void)\n{{\n    {call.format((i + 1) % count)}\n}}\n") for i in range(count)]


class Check(unittest.TestCase):
    def test_five_are_too_many(self):
        self.assertEqual(circles.check(ring(5)), ["5 files call each other, 4 at most may: store/f0.c, store/f1.c, "
                                                  "store/f2.c, store/f3.c, store/f4.c"])

    def test_four_may(self):
        self.assertEqual(circles.check(ring(4)), [])

    def test_tests_are_judged_too(self):
        self.assertEqual(len(circles.check(ring(5, folder="tests/sim"))), 1)

    def test_a_chain_is_no_circle(self):
        self.assertEqual(circles.check(ring(6)[:5]), [])

    def test_two_circles_with_one_file_are_one(self):
        files = {f"a/{i}.c": f"void go_{i}(void)\n{{\n{calls}}}\n"
                 for i, calls in enumerate(["go_1(); go_3();", "go_2();", "go_0();", "go_4();", "go_0();"])}
        self.assertEqual(len(circles.check(list(files.items()))), 1)

    def test_members_comments_and_strings_are_no_calls(self):
        for call in ("at->next_{}();", "at.next_{}();", "/* next_{}() */", "// next_{}()", 'say("next_{}()");'):
            self.assertEqual(circles.check(ring(5, call)), [], call)


class Calls(unittest.TestCase):
    def graph(self, **bodies):
        return circles.calls({name.replace("__", "/") + ".c": text for name, text in bodies.items()})

    def test_address_of_a_function(self):
        graph = self.graph(a="int leat_a(void)\n{\n}\n", b="struct s s = {.run = leat_a};\n",
                           c="void f(struct leat_a *a)\n{\n}\n")
        self.assertEqual(graph, {"a.c": {}, "b.c": {"a.c": {"leat_a"}}, "c.c": {}})

    def test_own_static_function(self):
        self.assertEqual(self.graph(a="int look(void)\n{\n}\n", b="static int look(void)\n{\n}\nint b(void)\n{\nlook();\n}\n")["b.c"], {})

    def test_head_of_several_lines(self):
        graph = self.graph(a="struct s *\nlong_name(int (*each)(int),\n          int b)\n{\n}\n", b="int b(void)\n{\nlong_name(0, 0);\n}\n")
        self.assertEqual(graph["b.c"], {"a.c": {"long_name"}})

    def test_product_does_not_call_tests(self):
        graph = self.graph(store__a="int leat_a(void)\n{\n}\n", tests__b="int leat_a(void)\n{\n}\n", store__c="int c(void)\n{\nleat_a();\n}\n",
                           tests__d="int d(void)\n{\nleat_a();\n}\n")
        self.assertEqual((graph["store/c.c"], graph["tests/d.c"]), ({"store/a.c": {"leat_a"}},) * 2)

    def test_folder_goes_first_in_tests(self):
        graph = self.graph(tests__x__a="int go(void)\n{\n}\n", tests__y__a="int go(void)\n{\n}\n", tests__x__b="int b(void)\n{\ngo();\n}\n")
        self.assertEqual(graph["tests/x/b.c"], {"tests/x/a.c": {"go"}})


unittest.main()
