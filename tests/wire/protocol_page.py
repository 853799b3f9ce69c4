#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md says what the code says: every kind, flag, error and limit, and none that there is not.

protocol_page.py SOURCE_ROOT. (What codecs make, the hex and how many fields an array has, is protocol_doc_test.c.)"""
import os
import re
import sys

ROOT = sys.argv[1]
FAILURES = []


def read(*parts):
    with open(os.path.join(ROOT, *parts)) as file:
        return file.read()


PAGE = read('docs', 'protocol.md')


def same(page, code, what):
    """Two dictionaries or sets; each difference is a failure of its own."""
    if isinstance(page, set):
        page, code = dict.fromkeys(page, 'there'), dict.fromkeys(code, 'there')
    if not page or not code:
        FAILURES.append(f'{what}: nothing was found to compare')
    for key in sorted(set(page) | set(code), key=str):
        if page.get(key) != code.get(key):
            FAILURES.append(f'{what} {key}: the page says {page.get(key)!r}, the code {code.get(key)!r}')


def section(title):
    found = re.search(rf'^## {title}\n(.*?)(?=^## |\Z)', PAGE, re.M | re.S)
    if not found:
        sys.exit(f'docs/protocol.md has no section "{title}"')
    return found.group(1)


def table(title):
    """The cells of a section's table, without its heading."""
    rows = [line.strip('|').split('|') for line in section(title).splitlines() if line.startswith('|')]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def enums(*parts):
    """Enumerators that are given a value: name -> number. Values name enumerators of before, of any file read."""
    text = re.sub(r'/\*.*?\*/', '', read(*parts), flags=re.S)
    for name, value in re.findall(r'\b(LEAT_\w+)\s*=\s*([^,}{;]+?)\s*[,}]', text):
        try:
            CONSTANTS[name] = eval(value.replace('/', '//'), {'__builtins__': {}}, CONSTANTS)
        except (NameError, SyntaxError):
            continue  # a sizeof, say: who needs it by name is told below that it is not there
    return text


CONSTANTS = {}
HEADERS = [('base', 'types.h'), ('wire', 'frame.h'), ('wire', 'batch.h'), ('wire', 'message.h'),
           ('wire', 'message_cluster.h'), ('groups', 'groups.h'), ('broker', 'net', 'core.h'),
           ('broker', 'data', 'core_data.h'),
           ('broker', 'admin', 'core_admin.h'), ('broker', 'node', 'bringup.h'),
           ('broker', 'net', 'state.h'), ('broker', 'front.h'), ('broker', 'front_logs.h')]
TEXTS = {parts: enums(*parts) for parts in HEADERS}

# ---- kinds ----
kinds = {name[len('LEAT_KIND_'):]: value for name, value in CONSTANTS.items() if name.startswith('LEAT_KIND_')}
shown = dict((cell[0].split()[1], int(cell[0].split()[0])) for cell in table('Messages'))
same(shown, kinds, 'kind')
rows = len(table('Messages'))
if rows != len(shown):
    FAILURES.append('a kind is shown twice')
served = set(re.findall(r'LEAT_KIND_(\w+)', read('broker', 'node', 'native.c')))
same(set(shown), served, 'kind, as broker/node/native.c serves it,')

# ---- flags, versions ----
same({'answer': int(re.search(r'`flg`: (\d+) = an answer', PAGE).group(1)),
      'error': int(re.search(r'; (\d+) = the answer is an error', PAGE).group(1)),
      'version': int(re.search(r'There is version (\d+) so far', PAGE).group(1)),
      'bytes before the control body': 4 + int(re.search(r'everything behind itself: (\d+) \+', PAGE).group(1))},
     {'answer': CONSTANTS['LEAT_FRAME_ANSWER'], 'error': CONSTANTS['LEAT_FRAME_ERROR'],
      'version': CONSTANTS['LEAT_PROTOCOL_VERSION_MAX'],
      'bytes before the control body': CONSTANTS['LEAT_FRAME_HEADER_BYTES']}, 'frame')

# ---- numbers that stand in the text ----
message_row = {cell[0].split()[1]: ' | '.join(cell) for cell in table('Messages')}
changes = re.search(r'what: (.*?) \|', message_row['NODE_CHANGE']).group(1)
same(set(map(int, re.findall(r'\b(\d)\b', changes))),
     {value for name, value in CONSTANTS.items() if name.startswith('LEAT_NODE_CHANGE_')}, 'NODE_CHANGE')
locate = re.search(r'enum leat_locate \{(.*?)\}', TEXTS['wire', 'message.h'], re.S).group(1)
told = re.search(r'\*\*LOCATE\.\*\* what: (.*?)\. The timestamp', PAGE, re.S).group(1)
same(set(map(int, re.findall(r'(?:^|, )(\d) ', told.replace('\n', ' ')))),
     set(range(len(re.findall(r'LEAT_LOCATE_\w+', locate)))), 'LOCATE of what')

# ---- errors ----
codes = {}
for number, name, class_name, text in re.findall(r'LEAT_ERR\((\d+), (\w+), (\w+), "(.*)"\)', read('base', 'err.def')):
    if name != 'OK':
        codes[name] = (int(number), class_name.lower(), text)
same({cell[1]: (int(cell[0]), cell[2], cell[3]) for cell in table('Errors')}, codes, 'error')
named = set(re.findall(r'\b[A-Z]{2,}(?:_[A-Z]+)*\b', ' '.join(cell[2] for cell in table('Limits')))) - {'APPEND'}
same(named & set(codes), named, 'error that a limit leads to,')

# ---- limits ----
# What the page says of each, and the names of the numbers in it, in their order.
LIMITS = {
    'whole frame': ['FRAME_BYTES_MAX'],
    'control body': ['CONTROL_BYTES_MAX'],
    'first frame, which is HELLO': ['FIRST_FRAME_BYTES_MAX'],
    'one record batch, header included': ['BATCH_BYTES_MAX'],
    'records in one batch': ['RECORDS_PER_BATCH_MAX'],
    'batches in one APPEND': [1, 'APPEND_BATCHES_MAX'],
    'logs in one FETCH': [1, 'FETCH_LOGS_MAX'],
    "records in a FETCH's answer": ['FETCH_BYTES_MAX'],
    'wait of a FETCH': ['FETCH_WAIT_MS_MAX'],
    'logs in one LOCATE': [1, 'LOCATE_LOGS_MAX'],
    'names in one METADATA': ['broker/admin/meta.c METADATA_NAMES_MAX'],
    'rows in the answer to SEGMENTS': ['SEGMENT_ROWS_MAX'],
    'nesting of a value that a decoder does not know': ['wire/msg_reader.c NESTING_MAX'],
    'stream name': [1, 'STREAM_NAME_BYTES_MAX'],
    'batches in flight per producer id and log': ['BATCHES_IN_FLIGHT_MAX'],
    'logs of a streamlet': ['LOGS_MAX'],
    'logs of a stream (streamlets times logs)': ['BROKER_STREAM_LOGS_MAX'],
    'copies': ['COPIES_MAX'],
    'segment bytes max': ['SEGMENT_BYTES_MIN', 'SEGMENT_BYTES_MAX'],
    'batch bytes max': ['BATCH_BYTES_LIMIT_MIN', 'BATCH_BYTES_MAX'],
    'group name': [1, 'GROUPS_NAME_BYTES_MAX'],
    'member name': ['GROUPS_MEMBER_BYTES_MAX'],
    'streams that a member names': [1, 'GROUPS_STREAMS_MAX'],
    'session of a member': ['GROUPS_SESSION_MS_MIN', 'GROUPS_SESSION_MS_MAX', 0, 'GROUPS_SESSION_MS_DEFAULT'],
    'rows in one GROUP_COMMIT': ['GROUPS_COMMIT_ROWS_MAX', 'GROUPS_COMMIT_ROWS_PARALLEL_MAX'],
    'logs in one GROUP_FETCH': ['GROUPS_LOGS_MAX'],
}
# Limits of the same headers that no client meets by a request of its own: docs/operations.md names those that an operator
# meets. Whoever adds a limit says here or above which it is.
NOT_OF_THE_PROTOCOL = set('''START_BYTES_MAX PRODUCERS_PER_LOG_MAX STREAMLETS_MAX CORES_MAX
    FRONT_REQUESTS_MAX CORE_PEERS_MAX CORE_LOGS_MAX CORE_APPENDS_MAX CORE_PARTS_MAX CORE_FETCHES_MAX CORE_FETCH_ITEMS_MAX
    CORE_READS_MAX
    CORE_FETCH_ITEMS_MIN CORE_READS_MIN
    CORE_STRANGERS_MAX CORE_CALLS_MAX PEER_REQUESTS_MAX PEER_QUEUED_BYTES_MAX NAME_TRIES_MAX CATCH_UP_US_MAX OPENERS_MAX
    OPENER_LOGS_MAX GROUPS_PER_HOME_MAX GROUPS_MEMBERS_MAX GROUPS_AHEAD_MAX GROUPS_WAITING_MAX GROUPS_TABLE_BYTES_MAX
    GROUPS_BATCH_BYTES_MAX GROUPS_READ_US_MAX COMPLAINTS_MAX COMPLAINT_BYTES_MAX GROUPS_ACK_WAIT_US_MAX PROTOCOL_VERSION_MIN PROTOCOL_VERSION_MAX'''.split())
UNITS = {'KiB': 1 << 10, 'MiB': 1 << 20}


def constant(name):
    if isinstance(name, int):
        return name
    if ' ' not in name:
        return CONSTANTS.get('LEAT_' + name)
    path, name = name.split()
    found = re.search(rf'\b{name} = (\d+)', read(*path.split('/')))
    return int(found.group(1)) if found else None


def numbers(cell):
    return [int(number.replace(',', '')) * UNITS.get(unit, 1)
            for number, unit in re.findall(r'(?<![\w.])(\d[\d,]*)(?: (KiB|MiB))?', cell)]


limits = {cell[0]: numbers(cell[1]) for cell in table('Limits')}
same(limits, {what: [constant(name) for name in names] for what, names in LIMITS.items()}, 'limit')
ours = {name for names in LIMITS.values() for name in names if isinstance(name, str) and ' ' not in name}
limited = set()
for parts, text in TEXTS.items():
    limited |= set(re.findall(r'\bLEAT_(\w+_(?:MAX|MIN|DEFAULT))\b(?=\s*=)', text))
limited -= {'DURABILITY_DEFAULT', 'GROUPS_SETTLE_US_DEFAULT', 'KIND_MIN'}
same(ours | NOT_OF_THE_PROTOCOL, limited, 'limit in a header:')

if FAILURES:
    sys.exit('docs/protocol.md and the code differ:\n  ' + '\n  '.join(FAILURES))
print(f'{len(kinds)} kinds, {len(codes)} errors, {len(limits)} limits')
