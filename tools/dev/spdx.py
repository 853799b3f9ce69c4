# SPDX-License-Identifier: Apache-2.0
"""The line that names the licence, first in each source file (after a #! line).

  tools/tidy --spdx   adds it where it is missing"""
import os

WORDS = "SPDX-License-Identifier: Apache-2.0"
BLOCK, HASH, SLASHES = f"/* {WORDS} */", f"# {WORDS}", f"// {WORDS}"
BY_SUFFIX = {".c": BLOCK, ".h": BLOCK, ".def": BLOCK, ".map": BLOCK, ".py": HASH, ".bash": HASH, ".supp": HASH,
             ".ignore": HASH, ".go": SLASHES, ".java": SLASHES, ".mjs": SLASHES}


def line_for(path, text):
    """The line that a file has to have; None: it is no source (a page, data, an input that was found)."""
    if os.path.basename(path) in ("meson.build", "meson_options.txt") or text.startswith("#!"):
        return HASH
    return BY_SUFFIX.get(os.path.splitext(path)[1])


def is_named(text, line):
    lines = text.split("\n", 2)
    return line in lines[:2] and (lines[0] == line or lines[0].startswith("#!"))


def with_line(text, line):
    if not text.startswith("#!"):
        return line + "\n" + text
    first, rest = text.split("\n", 1)
    return first + "\n" + line + "\n" + rest


def sources(files):
    """(path, text, line) of each."""
    for path in files:
        if "/corpus/" in path or os.path.islink(path):
            continue
        try:
            text = open(path, encoding="utf-8").read()
        except UnicodeDecodeError:
            continue
        line = line_for(path, text)
        if line:
            yield path, text, line


def check(files):
    return [f"{path}: its first line is not '{line}': tools/tidy --spdx adds it"
            for path, text, line in sources(files) if not is_named(text, line)]


def add(files):
    for path, text, line in sources(files):
        if not is_named(text, line):
            with open(path, "w", encoding="utf-8") as file:
                file.write(with_line(text, line))
