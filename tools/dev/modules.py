# SPDX-License-Identifier: Apache-2.0
"""The libraries of the source and what each links, as meson.build has them and as docs/architecture.md says."""
import os
import re

PAGE = "docs/architecture.md"
# What a folder includes of another one: no other header of that one. Other tests may include more.
FACES = {
    ("coordinator/recovery", "coordinator/membership"): {
        "coordinator/membership/services.h", "coordinator/membership/coordinate.h"},
    ("kafka", "broker"): {"broker/front.h", "broker/front_logs.h"},
    ("tests/sim", "broker"): {"broker/probe.h", "broker/node.h"},
    ("tests/sim", "client"): {"client/probe.h", "client/client.h"},
    ("tests/sim", "consumer"): {"consumer/probe.h", "consumer/engine.h"},
    ("tests/sim", "coordinator"): {
        "coordinator/probe.h", "coordinator/coordinator.h", "coordinator/membership/coordinate.h",
        "coordinator/metadata/machine.h", "coordinator/metadata/records.h", "coordinator/metadata/tail.h"},
    ("tests/sim", "groups"): {
        "groups/probe.h", "groups/groups.h", "groups/room.h", "groups/table.h", "groups/classic.h",
        "groups/classic_table.h"},
    ("tests/sim", "multilog"): {"multilog/probe.h", "multilog/log.h"},
    ("tests/sim", "producer"): {"producer/probe.h", "producer/engine.h"},
    ("tests/sim", "replication/backup"): {"replication/backup/probe.h", "replication/backup/backup.h"},
    ("tests/sim", "replication/primary"): {"replication/primary/probe.h", "replication/primary/primary.h"},
    ("tests/sim", "store"): {"store/probe.h", "store/row.h", "store/store.h"},
}

# Which headers of a folder files of other folders may include, and what for: no other header. Tests may include more;
# headers of base/ and wire/ are each about one thing, and all may be included.
SEEN = {
    "broker": {"node.h": "a node", "front.h": "front ends: node, cores, connections", "front_logs.h": "front ends: streams, logs"},
    "broker/net": {"core.h": "a core and its connections", "call.h": "a request of Leat's protocol", "hooks.h": "calls to higher libraries",
                   "gather.h": "one question to several nodes"},
    "broker/data": {
        "core_data.h": "a core's logs", "partition.h": "a core's logs", "stream.h": "a core's streams",
        "lookup.h": "look-ups", "route.h": "look-ups", "seek.h": "look-ups", "call_find.h": "look-ups", "begun.h": "look-ups",
        "replicate.h": "copies", "serve.h": "broker/node", "news.h": "broker/node"},
    "broker/admin": {"calls.h": "broker/node", "core_admin.h": "a core's requests", "streams.h": "what is allowed"},
    "broker/ownership": {"handover.h": "logs that come and leave", "calls.h": "broker/node", "collect.h": "the coordinator's events"},
    "client": {"client.h": "producer and consumer", "shared.h": "producer and consumer, on threads"},
    "coordinator": {"coordinator.h": "the interface"},
    "coordinator/raft": {"drive.h": "the interface"},
    "coordinator/metadata": {
        "machine.h": "the tables", "records.h": "the tables' records", "tail.h": "where a log ends", "assign.h": "which node gets what",
        "decide.h": "where a log ends"},
    "coordinator/membership": {
        "coordinate.h": "the interface, by coordinator.h", "actor.h": "coordinator.c", "services.h": "recovery"},
    "coordinator/recovery": {"recovery.h": "the interface"},
    "crypto": {"mac.h": "the interface"},
    "groups": {"groups.h": "the interface", "classic.h": "Kafka's groups"},
    "kafka": {"kafka.h": "the interface"},
    "kafka/codec": {"messages.h": "structs of messages", "errors.h": "error codes"},
    "kafka/front": {"request.h": "a request", "pieces.h": "requests in pieces", "options.h": "what the operator says"},
    "kafka/handlers": {"handlers.h": "the interface"},
    "link": {"link.h": "the interface"},
    "multilog": {"log.h": "the interface"},
    "os": {"os.h": "the interface"},
    "replication": {"over_link.h": "the interface"},
    "replication/backup": {"backup.h": "the interface"},
    "replication/control": {"control.h": "what both ends are given", "messages.h": "structs of messages"},
    "replication/primary": {"primary.h": "the interface"},
    "replication/transport": {"transport.h": "the interface", "data.h": "transports of replication/rpc"},
    "store": {"store.h": "the interface"},
    "tools/bench": {"bench.h": "the interface"},
    "tools/leat": {"cli.h": "calls and output", "cluster.h": "what a cluster says of itself"},
}


def calls(text, name):
    """(variable, arguments) of each `variable = name(arguments)`, comments left out."""
    text = re.sub(r"(?m)^\s*#.*$", "", text)
    for match in re.finditer(rf"(?m)^\s*(\w+) = {name}\(", text):
        depth, at = 1, match.end()
        while depth and at < len(text):
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield match.group(1), text[match.end():at - 1]


def dependencies(arguments):
    match = re.search(r"dependencies : (?:\[([^\]]*)\]|(\w+))", arguments)
    return [name.strip() for name in (match.group(1) or match.group(2)).split(",")] if match else []


def built(recipes):
    """recipes: {path: text} of meson.build files. ({library: (folder, links)} in the order of building, complaints).
    A library's folder is that of its first source.

    Each library has a declare_dependency() of its name, with the same dependencies: else who links it gets others than
    it was built with."""
    libraries, complaints, declared, variables = {}, [], {}, {}
    for path, text in recipes.items():
        for variable, arguments in calls(text, "static_library"):
            name = re.match(r"\s*'leat_(\w+)'(?:,\s*'([\w/.]+)/[\w.]+')?", arguments)
            if not name:
                complaints.append(f"{path}: {variable}: a library is called leat_ and its module's name")
                continue
            variables[variable] = name.group(1)
            folder = os.path.normpath(os.path.join(os.path.dirname(path), name.group(2) or ""))
            libraries[name.group(1)] = (folder, dependencies(arguments))
        for variable, arguments in calls(text, "declare_dependency"):
            linked = re.search(r"link_with : (\w+_lib)\b", arguments)
            if linked:
                declared[variable] = (linked.group(1), dependencies(arguments), path)
    for text in recipes.values():  # other names: broker_dep = broker_node_dep
        for alias, variable in re.findall(r"(?m)^(\w+_dep) = (\w+_dep)$", text):
            declared.setdefault(alias, declared.get(variable))
    declared = {variable: row for variable, row in declared.items() if row}
    of_dependency = {variable: variables[lib] for variable, (lib, _, _) in declared.items() if lib in variables}
    for variable, (lib, wanted, path) in declared.items():
        if lib in variables and wanted != libraries[variables[lib]][1]:
            complaints.append(f"{path}: {variable} names other dependencies than {lib}")
    for name, (folder, wanted) in libraries.items():
        libraries[name] = (folder, {of_dependency[one] for one in wanted if one in of_dependency})
    return libraries, complaints


def documented(page):
    """[(library, folder, links)] of the page's table, in its order: rows are | `name` | links | `folder/` | purpose |."""
    rows = []
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"`\w+`", cells[0]) and re.fullmatch(r"`[\w/]+/`", cells[2]):
            rows.append((cells[0].strip("`"), cells[2].strip("`").rstrip("/"), set(re.findall(r"`(\w+)`", cells[1]))))
    return rows


def differences(recipes, page):
    """What the page says otherwise than meson.build. Each library's row comes after those of what it links."""
    libraries, complaints = built(recipes)
    above = set()
    for name, folder, links in documented(page):
        have = libraries.pop(name, None)
        if have is None:
            complaints.append(f"{PAGE}: no meson.build has a library leat_{name}")
            continue
        if have[0] != folder:
            complaints.append(f"{PAGE}: {name} is in {have[0]}/, not in {folder}/")
        if have[1] != links:
            complaints.append(f"{PAGE}: {name} links {', '.join(sorted(have[1])) or 'nothing'} by meson.build, and the "
                              f"page says {', '.join(sorted(links)) or 'nothing'}")
        for link in sorted(links - above):
            complaints.append(f"{PAGE}: {name} links {link}, whose row comes later")
        above.add(name)
    return complaints + [f"{PAGE}: library {name} has no row" for name in libraries]


def upward(libraries, sources):
    """Includes of a module that the including file's module does not link: sources is {path: text}. A header belongs to
    the module of the nearest folder that has one; headers of other folders (include/) and of tests are nobody's."""
    of_folder = {folder: name for name, (folder, _) in libraries.items()}

    def module(path):
        folder = os.path.dirname(path)
        while folder and folder not in of_folder:
            folder = os.path.dirname(folder)
        return of_folder.get(folder)

    def below(name):
        return {name}.union(*(below(link) for link in libraries[name][1]))

    reach = {name: below(name) for name in libraries}
    complaints = []
    for path, text in sources.items():
        mine = module(path)
        for header in re.findall(r'(?m)^#include "([\w/]+\.h)"', text) if mine else []:
            other = module(header)
            if other and other not in reach[mine]:
                complaints.append(f"{path}: includes {header} of {other}, which {mine} does not link")
    return complaints


def past_face(sources, faces):
    """Includes of another folder's headers that are not its face for the including file's folder, also by way of the face.
    sources: {path: text}; faces: {(folder, other folder): headers of its face}."""
    complaints, seen = [], set()
    for path, text in sources.items():
        for header in re.findall(r'(?m)^#include "([\w/]+\.h)"', text):
            seen.add(header)
            for (folder, of), face in faces.items():
                if header.startswith(of + "/") and header not in face and (path.startswith(folder + "/") or path in face):  # it shows no more
                    complaints.append(f"{path}: includes {header}; {folder}/ sees of {of}/ only {', '.join(sorted(face))}")
    return complaints + [f"FACES: nobody includes {header}" for face in faces.values() for header in sorted(face - seen)]


def hidden(sources, seen):
    """Includes of another folder's headers that are not seen from outside. sources: {path: text}; seen: {folder: {header: purpose}}."""
    complaints, used = [], set()
    folders = {os.path.dirname(path) for path in sources if path.endswith(".h")}
    for path, text in sources.items():
        for header in re.findall(r'(?m)^#include "([\w/]+\.h)"', text):
            folder, name = os.path.split(header)
            if folder == os.path.dirname(path) or folder not in folders:
                continue
            if os.path.basename(path) == "probe.c" and folder.split("/")[0] == path.split("/")[0]:
                continue  # shows tests what is private
            used.add((folder, name))
            if folder in seen and name not in seen[folder]:
                complaints.append(f"{path}: includes {header}, which is private: other folders include {', '.join(sorted(seen[folder]))}")
    complaints += [f"SEEN: {folder} has no row" for folder in sorted(folders - set(seen)) if any(folder == f for f, _ in used)]
    return complaints + [f"SEEN: no other folder includes {folder}/{name}" for folder in seen for name in seen[folder]
                         if (folder, name) not in used]


def check(files):
    paths = [f for f in files if os.path.basename(f) == "meson.build" and not f.startswith("tests/")]
    recipes = {path: open(path, encoding="utf-8").read() for path in paths}
    sources = {path: open(path, encoding="utf-8").read() for path in files
               if path.endswith((".c", ".h")) and not path.startswith("tools/")}  # programs link all
    product = {path: text for path, text in sources.items() if not path.startswith("tests/")}
    programs = {path: open(path, encoding="utf-8").read() for path in files
                if path.endswith((".c", ".h")) and path.startswith("tools/")}
    open_ones = ("base/", "wire/", "include/", "docs/")
    inside = {path: text for path, text in {**product, **programs}.items() if not (path.endswith(".h") and path.startswith(open_ones))}
    return (differences(recipes, open(PAGE, encoding="utf-8").read()) + upward(built(recipes)[0], product)
            + past_face(sources, FACES) + hidden(inside, SEEN))
