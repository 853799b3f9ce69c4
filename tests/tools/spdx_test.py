#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/dev/spdx.py: which files need the line, where it stands, and that adding it twice changes nothing.

spdx_test.py TOOLS_DEV_FOLDER"""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop(1))
import sizes
import spdx

FILES = {
    "a.c": ("int x;\n", "/* SPDX-License-Identifier: Apache-2.0 */\nint x;\n"),
    "err.def": ("ROW(a)\n", "/* SPDX-License-Identifier: Apache-2.0 */\nROW(a)\n"),
    "meson.build": ("x = 1\n", "# SPDX-License-Identifier: Apache-2.0\nx = 1\n"),
    "run": ("#!/usr/bin/env bash\nls\n", "#!/usr/bin/env bash\n# SPDX-License-Identifier: Apache-2.0\nls\n"),
    "rig.py": ("import os\n", "# SPDX-License-Identifier: Apache-2.0\nimport os\n"),
    "main.go": ("package main\n", "// SPDX-License-Identifier: Apache-2.0\npackage main\n"),
    "page.md": ("# Page\n", "# Page\n"),
    "data.json": ("{}\n", "{}\n"),
}


class Lines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for path, (text, _) in FILES.items():
            open(path, "w").write(text)

    def test_missing_lines_are_told_and_added(self):
        self.assertEqual(len(spdx.check(FILES)), 6)
        for _ in range(2):
            spdx.add(FILES)
            self.assertEqual(spdx.check(FILES), [])
            for path, (_, wanted) in FILES.items():
                self.assertEqual(open(path).read(), wanted, path)

    def test_line_stands_first(self):
        open("a.c", "w").write("int x;\n/* SPDX-License-Identifier: Apache-2.0 */\n")
        self.assertEqual(len(spdx.check(["a.c"])), 1)

    def test_it_is_no_line_of_a_file(self):
        text = spdx.BLOCK + "\n" + "\n" * sizes.FILE_LINES_MAX
        self.assertEqual(sizes.check([("a.c", text)], {}), [])


unittest.main()
