# SPDX-License-Identifier: Apache-2.0
"""Circles of source files: no more than four .c files call each other, directly or by way of others.

A circle is a strongly connected component of the graph "file A names a function that file B defines". Names with leat_
or sim_ count wherever they stand, as a function may be passed by its address; other names count where they are called.
Not seen: functions that a macro defines, and calls in headers."""
import os
import re

FILES_MAX = 4
DEFINED = re.compile(r"(?m)^(?!static\b|typedef\b|#|\}|\s)[\w \t*\n]*?\b(\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*\{")
OWN = re.compile(r"(?m)^static [^=;{]*?\b(\w+)\(")
NAMED = re.compile(r"(?<![.>\w])(?<!struct )(?<!enum )(?<!union )((?:leat_|sim_)\w+\b|[a-z_]\w*(?=\())")


def code_of(text):
    """Without comments and strings."""
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', '""', text, flags=re.S)


def definer(name, path, defined):
    """The file that defines the function for this file; None: this file, nobody, or nobody knows. Tests define functions
    of the product anew, for the product to call: a name with leat_ is the product's, and no product file calls a test."""
    files = defined.get(name, set())
    of_product = {file for file in files if not file.startswith("tests/")}
    near = {file for file in files if os.path.dirname(file) == os.path.dirname(path)}
    of_test = path.startswith("tests/") and not name.startswith("leat_")
    chosen = (near or of_product) if of_test else of_product
    return next(iter(chosen)) if len(chosen) == 1 and path not in files else None


def calls(sources):
    """{file: {file that it calls: function names}}; sources: {path of a .c file: text}."""
    codes = {path: code_of(text) for path, text in sources.items()}
    defined, graph = {}, {}
    for path, code in codes.items():
        for name in DEFINED.findall(code):
            defined.setdefault(name, set()).add(path)
    for path, code in codes.items():
        graph[path] = {}
        for name in set(NAMED.findall(code)) - set(OWN.findall(code)):
            other = definer(name, path, defined)
            if other:
                graph[path].setdefault(other, set()).add(name)
    return graph


def reached(graph, start):
    seen, todo = set(), [start]
    while todo:
        for other in graph[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def circles(graph):
    """Each set of files that reach each other, largest first."""
    reach = {path: reached(graph, path) for path in graph}
    found = {frozenset([path] + [other for other in reach[path] if path in reach[other]]) for path in graph}
    return sorted((circle for circle in found if len(circle) > 1), key=lambda circle: (-len(circle), sorted(circle)))


def check(sources):
    """sources: (path, text) of each source. Complaints."""
    graph = calls({path: text for path, text in sources if path.endswith(".c")})
    return [f"{len(circle)} files call each other, {FILES_MAX} at most may: {', '.join(sorted(circle))}"
            for circle in circles(graph) if len(circle) > FILES_MAX]
