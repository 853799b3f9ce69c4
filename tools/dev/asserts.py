# SPDX-License-Identifier: Apache-2.0
"""How many assertions there are to a thousand lines of code: at least so many in a module, and in all of the product.

Lines are those without comments and blanks; LEAT_ASSERT, LEAT_ASSERT_CMP, LEAT_ASSERT_SLOW and LEAT_ASSERT_OWNER count alike."""
import re

LEAST = {"broker": 12, "coordinator": 12, "kafka": 12, "groups": 12}  # per 1,000 lines
LEAST_OF_ALL = 10
NO_PRODUCT = ("tests", "docs")


def counted(text):
    """(lines of code, assertions) of a source. Definitions of the macros are none."""
    code = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda found: '""' if found.group(0)[0] == '"' else "", text, flags=re.S)
    lines = [line for line in code.split("\n") if line.strip()]
    return len(lines), sum(len(re.findall(r"\bLEAT_ASSERT(?:_CMP|_SLOW|_OWNER)?\(", line)) for line in lines if not line.startswith("#"))


def check(sources):
    """sources: (path, text) of each. Complaints."""
    sums = {}
    for path, text in sources:
        folder = path.split("/")[0]
        if folder in NO_PRODUCT:
            continue
        lines, asserts = counted(text)
        for name in (folder, ""):
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + lines, before[1] + asserts)
    complaints = []
    for name, least in list(LEAST.items()) + [("", LEAST_OF_ALL)]:
        lines, asserts = sums.get(name, (0, 0))
        if asserts * 1000 < least * lines:
            complaints.append(f"{name or 'all modules'}: {asserts} assertions in {lines} lines of code; {least} per 1,000 at least")
    return complaints
