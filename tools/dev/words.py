# SPDX-License-Identifier: Apache-2.0
"""Words that Leat no longer uses, and the field's words in their place: tools/dev/words.txt.

A row is "RETIRED | WORD | LOOK | WHERE". RETIRED is one word, or several with '_' between them, which stands for a space and a
hyphen, too. LOOK says what is looked at:
  all    each use, in code, comments, messages and pages
  names  names alone: identifiers, file names, and what has a '_' beside the word; in prose the word has an ordinary meaning
WHERE says where the word may stand until it is gone: nothing (nowhere), files and folders, or a number: so many different names
with the word are left. The number may only fall: a name that exists may be used again, and no new one may be made."""
import os
import re

LIST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt")
EXCUSED = ("tools/dev/words.txt", "tests/tools/words_test.py")  # they name the words


def is_read(path):
    """Sources, pages, build files, and scripts, which have no suffix. Measurements of a release stay as they were written."""
    name = os.path.basename(path)
    script = "." not in name and path.startswith(("tools/", "tests/tools/"))
    return path not in EXCUSED and not path.startswith("docs/releases/") and (script or name.endswith((".c", ".h", ".def", ".py", ".md", ".build")))


def rows(text):
    """{retired: (word, look, where)}"""
    found = {}
    for line in text.split("\n"):
        if line and not line.startswith("#"):
            retired, word, look, where = (part.strip() for part in line.split("|"))
            assert look in ("all", "names") and retired not in found, line
            found[retired] = (word, look, where)
    return found


def without_prose(path, text):
    """The code of a C source; comments and strings are blank, and so is all of another file."""
    if not path.endswith((".c", ".h", ".def")):
        return " " * len(text)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda match: " " * len(match.group(0)), text, flags=re.S)


def uses(path, text, table):
    """(retired, line, name) of each use in a file; line 0: in the file's own name."""
    finder = re.compile(r"(?:(?<![A-Za-z])|(?<=\\n))(?:" + "|".join(table).replace("_", "[_ -]") + r")(?![A-Za-z])", re.I)

    def key(match):
        return re.sub("[ -]", "_", match.group(0).lower())
    found = [(key(match), 0, path) for match in finder.finditer(path)]
    code = None
    for match in finder.finditer(text):
        retired = key(match)
        first, last = match.span()
        if table[retired][1] == "names" and "_" not in (text[first - 1:first], text[last:last + 1]):
            code = code or without_prose(path, text)
            if code[first] == " ":
                continue
        before = re.search(r"\w*$", text[max(0, first - 100):first]).group(0)
        after = re.match(r"\w*", text[last:last + 100]).group(0)
        found.append((retired, text.count("\n", 0, first) + 1, before + text[first:last] + after))
    return found


def check(sources, table):
    """sources: (path, text) of each; table: rows(). Complaints."""
    complaints = []
    left = {retired: set() for retired, row in table.items() if row[2].isdigit()}
    idle = {(retired, place) for retired, row in table.items() if not row[2].isdigit() for place in row[2].split()}
    for path, text in sources:
        if not is_read(path):
            continue
        for retired, line, name in uses(path, text, table):
            word, _, where = table[retired]
            places = [place for place in where.split() if path == place or path.startswith(place + "/")]
            if retired in left:
                left[retired].add(name)
            elif places:
                idle -= {(retired, place) for place in places}
            else:
                complaints.append(f"{path}:{line}: {name}: '{retired}' is retired: {word}")
    for retired, names in left.items():
        word, _, most = table[retired]
        if len(names) > int(most):
            complaints.append(f"'{retired}' is retired, {word}: {len(names)} names have it; {most} at most (tools/dev/words.txt)")
        elif len(names) < int(most):
            complaints.append(f"{retired}: say {len(names)} instead of {most} in tools/dev/words.txt, which may only shrink")
    return complaints + [f"{place}: has no '{retired}': take it out of tools/dev/words.txt" for retired, place in sorted(idle)]
