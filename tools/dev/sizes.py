# SPDX-License-Identifier: Apache-2.0
"""Lengths of files, functions, lines and pages, and the list of those that are longer than allowed: tools/dev/sizes.txt.

The list may only shrink: a row allows the length that it names and no more, and has to go once the length is allowed."""
import os
import re

import spdx

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 75
PAGES_WORDS_MAX = 40000  # of docs/*.md together
README_LINES_MAX = 80  # of a module; tests/sim's is a page
LINE_COLUMNS_MAX = 120  # of comments and tables; .clang-format wraps code at 100
LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sizes.txt")


def functions(lines):
    """(name, first line, length) of top-level function bodies: a '{' in column 0 to a '}' in column 0."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            name = "?"
            for back in range(start - 2, max(start - 12, -1), -1):
                match = re.search(r"(\w+)\(", lines[back])
                if match and not lines[back].startswith((" ", "\t")):
                    name = match.group(1)
                    break
            yield name, start, number - start
            start = None


def excused(text):
    """{name: length} of rows "LENGTH NAME"; a name is a file, or FILE:FUNCTION."""
    rows = [line.split() for line in text.split("\n") if line and not line.startswith("#")]
    return {name: int(length) for length, name in rows}


def check_pages(pages):
    """pages: the texts of docs/*.md. Complaints."""
    words = sum(len(text.split()) for text in pages)
    return [f"docs/*.md: {words} words; {PAGES_WORDS_MAX} at most"] if words > PAGES_WORDS_MAX else []


def check_readmes(readmes):
    """readmes: (path, text) of each. Complaints."""
    complaints = []
    for path, text in readmes:
        lines = text.split("\n")
        if len(lines) - 1 > README_LINES_MAX and path != "tests/sim/README.md":
            complaints.append(f"{path}: {len(lines) - 1} lines; {README_LINES_MAX} at most")
        complaints += [f"{path}:{number}: {len(line)} columns; {LINE_COLUMNS_MAX} at most"
                       for number, line in enumerate(lines, 1) if len(line) > LINE_COLUMNS_MAX]
    return complaints


def check(sources, excuses):
    """sources: (path, text) of each. Complaints."""
    complaints = []
    excuses = dict(excuses)

    def judge(name, where, length, most):
        allowed = excuses.pop(name, None)
        if allowed is not None and length <= most:
            complaints.append(f"{name}: {length} lines are allowed: take its row out of tools/dev/sizes.txt")
        elif allowed is not None and length < allowed:
            complaints.append(f"{name}: say {length} instead of {allowed} lines in tools/dev/sizes.txt, which may only shrink")
        elif length > max(allowed or 0, most):
            complaints.append(f"{where}: {length} lines; {max(allowed or 0, most)} at most")

    for path, text in sources:
        lines = text.split("\n")
        judge(path, path, text.count("\n") - text.startswith(spdx.BLOCK), FILE_LINES_MAX)
        for name, first, length in functions(lines):
            judge(f"{path}:{name}", f"{path}:{first}: {name}()", length, FUNCTION_LINES_MAX)
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_COLUMNS_MAX:
                complaints.append(f"{path}:{number}: {len(line)} columns; {LINE_COLUMNS_MAX} at most")
    return complaints + [f"{name}: there is none: take its row out of tools/dev/sizes.txt" for name in excuses]
