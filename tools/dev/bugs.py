# SPDX-License-Identifier: Apache-2.0
"""The tables of tests/sim/bugs.md: each deliberate bug has one row, and so has each repaired fault of the past.

A merge of two branches that both rewrote a table keeps both wordings of a row, and the two may contradict each other."""
import re

PAGE = "tests/sim/bugs.md"
COMMITS = re.compile(r"\(([0-9a-f]{7,}(?:, [0-9a-f]{7,})*)\)")


def names_of(cells):
    """What only one row may have: a bug; the commits that repaired a fault; or the seeds, where no commit is named."""
    if len(cells) == 5:
        return [cells[0]]
    commits = COMMITS.search(cells[1])
    return commits.group(1).split(", ") if commits else ["seeds " + cells[0]]


def check(page):
    told, seen = [], {}
    for number, line in enumerate(page.split("\n"), 1):
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) not in (3, 5) or cells[0] in ("bug", "seed") or set(cells[0]) == {"-"}:
            continue
        for name in names_of(cells):
            if name in seen:
                told.append(f"{PAGE}:{number}: {name} has a row already, at line {seen[name]}")
            seen[name] = number
    if not seen:
        told.append(f"{PAGE}: no rows found")
    return told
