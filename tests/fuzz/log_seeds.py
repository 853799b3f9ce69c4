#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the changes to a log's segments from which its fuzz target begins: tests/fuzz/log_seeds.py DIRECTORY

Each is a byte of what is changed, then pieces: tests/fuzz/log_fuzz.c.
"""
import os
import struct
import sys

LAST, FIRST, CRC_STAYS, RECORD_STAYS, JUMPED = 0, 1, 2, 4, 8
PRODUCER_COUNT, APP_BYTES, TABLE = 32, 36, 48  # in struct leat_start, and behind it
BATCH_COUNT = 22  # in a producer's state
MOST = b'\xff' * 8


def piece(from_start, at, data):
    return bytes([from_start]) + struct.pack('<HH', len(data) + 2, at) + data


def start(at, data):
    return piece(1, at, data)


def seeds():
    yield 'true', LAST, b''
    yield 'first', FIRST, b''
    yield 'jumped', JUMPED, b''
    for at in range(0, 48, 8):
        yield 'start_%d_most' % at, LAST, start(at, MOST)
        yield 'start_%d_one' % at, LAST, start(at, b'\1' + bytes(7))
    for count in 0, 1, 5, 7, 60, 5000:
        yield 'producers_%d' % count, LAST, start(PRODUCER_COUNT, struct.pack('<I', count))
    yield 'app_bytes', LAST, start(APP_BYTES, struct.pack('<I', 100))
    yield 'producer_twice', LAST, start(TABLE, bytes(8)) + start(TABLE + 8, bytes(8))
    for at in range(0, 64, 8):
        yield 'producer_%d_most' % at, LAST, start(TABLE + at, MOST)
        yield 'producer_%d_half' % at, LAST, start(TABLE + at, struct.pack('<Q', 2**63 - 1))
    for count in 0, 6, 255:
        yield 'producer_batches_%d' % count, LAST, start(TABLE + BATCH_COUNT, bytes([count]))
    yield 'damaged', CRC_STAYS | RECORD_STAYS, piece(0, 600, b'xx')
    yield 'damaged_first', FIRST | CRC_STAYS | RECORD_STAYS, piece(0, 600, b'xx')
    yield 'shorter', CRC_STAYS, piece(0, 4000, b'xx')
    yield 'shorter_first', FIRST | CRC_STAYS, piece(0, 4000, b'xx')


def main():
    os.makedirs(sys.argv[1], exist_ok=True)
    for name, first, pieces in seeds():
        with open(os.path.join(sys.argv[1], name), 'wb') as file:
            file.write(bytes([first]) + pieces)


main()
