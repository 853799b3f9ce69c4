#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the grants from which the fuzz target of one-sided writes begins: tests/fuzz/rmem_seeds.py DIRECTORY

Each is a byte by which transport and how many writes, then pieces: tests/fuzz/rmem_fuzz.c.
"""
import os
import struct
import sys

SECTION, PATCHED, CUT, PATH, PATHS, FILED, HELLO, WELCOME = range(8)
ADDRESS, TCP, SHM, VERBS = 0, 2, 3, 4
BY_SHM, BY_VERBS = 14, 15  # all writes
PATHS_COUNT = 12
WRONG_MAGIC = b'\0\0\0\0'


def piece(what, *parts):
    body = b''.join(bytes([x]) if isinstance(x, int) else x for x in parts)
    return bytes([what]) + struct.pack('<H', len(body)) + body


def true(kind):
    return piece(PATCHED, kind, 0)


def seeds():
    yield 'shm_true', BY_SHM, b''
    yield 'verbs_true', BY_VERBS, b''
    yield 'shm_alone', BY_SHM, true(ADDRESS) + true(SHM)
    yield 'verbs_alone', BY_VERBS, true(ADDRESS) + true(VERBS)
    yield 'verbs_not_offered', BY_VERBS, true(ADDRESS) + true(SHM)
    yield 'unknown_kind', BY_SHM, true(ADDRESS) + piece(SECTION, 9, b'of a newer version') + true(SHM)
    yield 'no_address', BY_SHM, true(SHM)
    for bytes_left in 0, 55, 63, 64:
        yield 'shm_cut_%d' % bytes_left, BY_SHM, true(ADDRESS) + piece(CUT, SHM, bytes_left)
    for bytes_left in 0, 23, 25:
        yield 'verbs_cut_%d' % bytes_left, BY_VERBS, true(ADDRESS) + piece(CUT, VERBS, bytes_left)
    for path in range(PATHS_COUNT):
        yield 'shm_path_%d' % path, BY_SHM, true(ADDRESS) + piece(PATH, path)
    yield 'shm_long_path', BY_SHM, true(ADDRESS) + piece(PATHS, b'/leat-rmem-' + b'x' * 180)
    yield 'shm_longer_path', BY_SHM, true(ADDRESS) + piece(PATHS, b'/' + b'x' * 191)
    yield 'shm_path_ends', BY_SHM, true(ADDRESS) + piece(PATHS, b'/dev/null\0/leat-rmem-')
    yield 'shm_other_arena', BY_SHM, piece(PATCHED, ADDRESS, 0, b'other') + true(SHM)
    yield 'shm_other_limit', BY_SHM, piece(PATCHED, ADDRESS, 16, struct.pack('<Q', 512 << 26)) + true(SHM)
    yield 'shm_other_process', BY_SHM, true(ADDRESS) + piece(PATCHED, SHM, 56, struct.pack('<I', 1))
    yield 'shm_other_start', BY_SHM, true(ADDRESS) + piece(PATCHED, SHM, 40, struct.pack('<Q', 1))
    yield 'shm_other_host', BY_SHM, true(ADDRESS) + piece(PATCHED, SHM, 0, b'0000')
    for name, at, value in (('magic', 0, 1), ('steps', 72, 2), ('many_steps', 72, 1 << 60), ('no_steps', 72, 0)):
        yield 'shm_file_' + name, BY_SHM, true(ADDRESS) + piece(FILED, 1, struct.pack('<HQ', at, value)) + piece(PATH, 1)
    yield 'verbs_six', BY_VERBS, true(ADDRESS) + piece(PATCHED, VERBS, 0, struct.pack('<H', 10))
    yield 'verbs_family', BY_VERBS, true(ADDRESS) + piece(PATCHED, VERBS, 0, struct.pack('<H', 77))
    yield 'verbs_hello_none', BY_VERBS, piece(HELLO, 1)
    yield 'verbs_hello_magic', BY_VERBS, piece(HELLO, 0, WRONG_MAGIC)
    yield 'verbs_hello_number', BY_VERBS, piece(HELLO, 8, struct.pack('<I', 999))
    yield 'verbs_hello_id', BY_VERBS, piece(HELLO, 16, b'id')
    yield 'verbs_hello_long', BY_VERBS, piece(HELLO, 48, b'of a newer version')
    yield 'verbs_welcome_none', BY_VERBS, piece(WELCOME, 1)
    yield 'verbs_welcome_table', BY_VERBS, piece(WELCOME, 16, bytes(8))
    yield 'verbs_welcome_base', BY_VERBS, piece(WELCOME, 0, b'\xff' * 8)
    yield 'verbs_welcome_key', BY_VERBS, piece(WELCOME, 32, bytes(4))
    yield 'verbs_welcome_magic', BY_VERBS, piece(WELCOME, 40, WRONG_MAGIC)


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, first, pieces in seeds():
        with open(os.path.join(sys.argv[1], name), 'wb') as file:
            file.write(bytes([first]) + pieces)


main()
