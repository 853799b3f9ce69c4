#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/modules.py: each way in which docs/architecture.md and meson.build can differ is told of.

modules_test.py TOOLS_DEV_FOLDER"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import modules

BASE = """
# base_lib = static_library('leat_old')
base_lib = static_library('leat_base', 'a.c', files('b.c'), dependencies : [isal])
base_dep = declare_dependency(link_with : base_lib, dependencies : [isal])
"""
WIRE = """
wire_lib = static_library('leat_wire', 'a.c',
  c_args : zlib.found() ? ['-DZ'] : [], dependencies : [base_dep, lz4])
wire_dep = declare_dependency(link_with : wire_lib,
  dependencies : [base_dep, lz4])
"""
PAGE = """
| library | links | folder | purpose |
|---|---|---|---|
| `base` | | `base/` | leaves |
| `wire` | `base` | `a/wire/` | bytes |
"""


class Differences(unittest.TestCase):
    def told(self, page=PAGE, wire=WIRE, more=""):
        return modules.differences({"base/meson.build": BASE, "a/wire/meson.build": wire + more}, page)

    def one(self, words, **changed):
        told = self.told(**changed)
        self.assertEqual(len(told), 1, told)
        self.assertIn(words, told[0])

    def test_same_is_silent(self):
        self.assertEqual(self.told(), [])

    def test_links_differ(self):
        self.one("links base by meson.build, and the page says nothing", page=PAGE.replace("| `base` | `a", "| | `a"))

    def test_folder_differs(self):
        self.one("wire is in a/wire/, not in wire/", page=PAGE.replace("a/wire", "wire"))

    def test_folder_is_that_of_the_first_source(self):
        more = "raft_lib = static_library('leat_raft',\n 'raft/a.c', 'b/c.c', dependencies : [base_dep])"
        page = PAGE + "| `raft` | `base` | `a/wire/raft/` | log |"
        self.assertEqual(self.told(more=more, page=page), [])
        self.one("raft is in a/wire/raft/, not in a/wire/", more=more, page=page.replace("raft/`", "`"))

    def test_library_has_no_row(self):
        more = "raft_lib = static_library('leat_raft', 'a.c', dependencies : base_dep)"
        self.one("library raft has no row", more=more)

    def test_row_has_no_library(self):
        self.one("no meson.build has a library leat_raft", page=PAGE + "| `raft` | `base` | `raft/` | log |")

    def test_row_stands_before_what_it_links(self):
        base, wire = PAGE.strip().split("\n")[2:]
        self.one("wire links base, whose row comes later", page=wire + "\n" + base)

    def test_declared_differs_from_linked(self):
        wire = WIRE.replace("dependencies : [base_dep, lz4])\nwire_dep", "dependencies : [base_dep])\nwire_dep")
        self.one("wire_dep names other dependencies than wire_lib", wire=wire)

    def test_other_name_of_a_library(self):
        more = "a_dep = wire_dep\nraft_lib = static_library('leat_raft', dependencies : [a_dep])"
        self.assertEqual(self.told(more=more, page=PAGE + "| `raft` | `wire` | `a/wire/` | log |"), [])

    def test_name_is_no_modules(self):
        self.one("is called leat_", more="odd_lib = static_library('odd', 'a.c')")

    def test_include_upwards(self):
        libraries = {"base": ("base", set()), "wire": ("wire", {"base"}), "log": ("log", {"wire"})}

        def told(path, header):
            return modules.upward(libraries, {path: f'#include "{header}"\n'})

        self.assertEqual(told("log/a.c", "base/list.h"), [])  # by way of wire
        self.assertEqual(told("log/a.c", "include/leat.h"), [])  # nobody's
        self.assertIn("which wire does not link", told("wire/deep/a.c", "log/log.h")[0])

    def test_include_past_a_face(self):
        faces = {("kafka", "broker"): {"broker/front.h"}}

        def told(header, path="kafka/front/a.c"):
            return modules.past_face({path: f'#include "{header}"\n#include "broker/front.h"\n'}, faces)

        self.assertEqual(told("broker/front.h"), [])
        self.assertEqual(told("kafka/front/b.h"), [])
        self.assertEqual(told("broker/net/core.h", path="tools/leatd/main.c"), [])
        self.assertIn("kafka/front/a.c: includes broker/net/core.h", told("broker/net/core.h")[0])
        self.assertIn("broker/node.h", told("broker/node.h")[0])
        self.assertIn("broker/front.h: includes broker/net/core.h", told("broker/net/core.h", path="broker/front.h")[0])
        self.assertEqual(told("broker/net/core.h", path="broker/net/a.c"), [])
        faces["tests/sim", "broker"] = {"broker/front.h"}
        self.assertEqual(told("broker/front.h", path="tests/sim/a.c"), [])
        self.assertIn("tests/sim/a.c: includes broker/net/core.h", told("broker/net/core.h", path="tests/sim/a.c")[0])
        self.assertEqual(told("broker/net/core.h", path="tests/broker/a.c"), [])
        self.assertIn("nobody includes broker/front.h", modules.past_face({"kafka/a.c": ""}, faces)[0])

    def test_private_headers_are_not_included_from_outside(self):
        sources = {"store/store.h": "", "store/private.h": "", "store/a.c": '#include "store/private.h"\n',
                   "multilog/a.c": '#include "store/store.h"\n'}
        seen = {"store": {"store.h": "the interface"}}
        self.assertEqual(modules.hidden(sources, seen), [])
        sources["multilog/b.c"] = '#include "store/private.h"\n'
        self.assertIn("multilog/b.c: includes store/private.h, which is private", modules.hidden(sources, seen)[0])
        del sources["multilog/b.c"]
        self.assertIn("SEEN: store has no row", modules.hidden(sources, {}))
        sources["store/index/index.h"] = '#include "store/private.h"\n'  # a folder inside is another folder
        self.assertIn("store/index/index.h: includes", modules.hidden(sources, seen)[0])
        del sources["store/index/index.h"], sources["multilog/a.c"]
        self.assertEqual(modules.hidden(sources, seen), ["SEEN: no other folder includes store/store.h"])


unittest.main()
