#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the schedules from which the fuzz target of whole worlds begins: tests/fuzz/world_seeds.py DIRECTORY

Each is one byte (bit 0: three nodes; bit 7: old records), then operations of tests/sim/stranger.c: argument * 16 + operation, then what it takes.
The named ones are attacks that earlier versions did not survive; the world has to survive each of them.
"""
import os
import struct
import sys

(WAIT, CONNECT, BYTES, ANNOUNCE, HELLO, REQUEST, KAFKA, NODE_HELLO, NODE_FRAME, CLOSE, DEAF, HEAR, REPEAT, DRIBBLE, PULL,
 FAULT) = range(16)
ALONE, THREE = 2, 3  # the world's choice: seed 2 of one node, of three nodes
OLD = 128  # ... and most of its records have left memory before the stranger comes
ALONE_OLD, THREE_OLD = OLD | 44, OLD | 3  # seed 23 of one node: stream-1 has one log of 130 KB; seed 2 of three
ALONE_POWER = 40  # seed 21 of one node, whose power may go
CLIENTS, FOR_KAFKA, FOR_NODES = range(3)
SUBMIT, RAFT, JOIN = 20, 16, 25  # kinds between nodes, less 256


def op(operation, argument=0, *rest):
    return bytes([argument * 16 + operation]) + b''.join(bytes([x]) if isinstance(x, int) else x for x in rest)


def wait(log2_quarters_ms):
    return op(WAIT, log2_quarters_ms)


def counted(data):
    return bytes([len(data)]) + data


def msgpack(value):
    if isinstance(value, bool):
        return b'\xc3' if value else b'\xc2'
    if isinstance(value, int):
        return bytes([value]) if value < 128 else b'\xcf' + struct.pack('>Q', value)
    if isinstance(value, bytes):
        return b'\xc4' + counted(value)
    if isinstance(value, str):
        return b'\xd9' + counted(value.encode())
    return bytes([0x90 | len(value)]) + b''.join(map(msgpack, value))


def repeat(times_of_four, body):
    return op(REPEAT, times_of_four - 1, len(body) - 1) + body


def submitted(command, session):
    """A command as a node proposes it: wrapped, with its length in front."""
    entry = msgpack([1, 10, session, 1, msgpack(command)])
    return struct.pack('<I', len(entry)) + entry


def to_nodes(server, command, session):
    body = op(CONNECT, FOR_NODES + 4 * server) + op(NODE_HELLO, 2, server, 0) + wait(6)
    return body + op(NODE_FRAME, 0, SUBMIT, counted(msgpack([])), counted(submitted(command, session))) + wait(9)


NOTHING, SLOWLY = 0, 8  # how somebody reads
NAMES = 255  # what to pull: what is said of 300 streams that there are not
# ... or what is said of groups that there are not: enum sim_crowd of tests/sim/stranger.h, and how
JOINS, COMMITS, OFFSETS, DESCRIBES, FINDS, LISTS = range(240, 246)
ANY_HOME, LONG, LARGE, SAME = 8, 16, 32, 64  # else all in the home of that one of the honest groups


def asks(port, reads, streams, times_of_eight=15):
    """A connection that asks for all of a log of each stream, over and over."""
    return op(CONNECT, port) + (op(HELLO, 1) if port % 4 == CLIENTS else b'') + wait(6) + op(DEAF, reads) + b''.join(
        op(PULL, times_of_eight, stream) for stream in streams)


def crowd(what, how, times_of_eight=15):
    """Of a connection to Kafka's port: requests about groups that nobody has heard of."""
    return op(PULL, times_of_eight, what, how)


def crowds(connections_of_four, *requests):
    return repeat(connections_of_four, op(CONNECT, FOR_KAFKA) + wait(4) + b''.join(requests) + wait(8))


# A commit is on its way in the home of each honest group, so that the next one waits for it.
BUSY_HOMES = b''.join(crowd(COMMITS, group, 0) for group in range(8))


def kafka(key, version, body):
    return op(KAFKA, version, key, counted(body))


STREAM = [2, 1, 1, 1, 0, 0, 0, 0, 0, False]
SEEDS = {
    'nothing': bytes([ALONE]) + wait(8),
    'nothing-of-three': bytes([THREE]) + wait(8),
    'native-requests': bytes([ALONE]) + op(CONNECT) + op(HELLO, 1) + wait(6) + b''.join(
        op(REQUEST, 0, kind - 1, counted(msgpack(body)), counted(b'')) for kind, body in (
            (2, []), (3, [['stream-0'], False]), (6, ['stream-0']), (7, [128, 128]), (9, [1, 65536, 100, 1, [[1, 0, 0, 1, 0]]]),
            (17, []), (18, []))) + wait(9),
    'kafka-requests': bytes([ALONE]) + op(CONNECT, FOR_KAFKA) + kafka(18, 0, b'') +
    kafka(3, 1, b'\0\0\0\1\0\x08stream-0') + kafka(2, 1, struct.pack('>ii', -1, 1) + b'\0\x08stream-0' +
                                                   struct.pack('>iiq', 1, 0, -1)) + wait(9),
    'frames-begun-and-left': bytes([ALONE]) + repeat(4, op(CONNECT, FOR_KAFKA) + op(ANNOUNCE, 15)) + wait(13) + wait(15),
    'a-byte-a-second': bytes([ALONE]) + repeat(2, op(CONNECT, FOR_KAFKA) + op(ANNOUNCE, 15)) + op(DRIBBLE, 15) + wait(15) * 2,
    'asks-and-does-not-read': bytes([ALONE]) + repeat(4, op(CONNECT) + op(HELLO, 1)) + wait(9) +
    repeat(4, op(CONNECT) + op(HELLO, 1) + wait(4) + op(DEAF) + op(PULL, 15, 0)) + wait(15) * 2,
    'a-second-cluster-is-formed': bytes([THREE]) + b''.join(to_nodes(i, [1, 1, b'A' * 16], 77 + i) for i in range(3)) + wait(12),
    'a-stream-by-the-port-of-nodes': bytes([THREE]) +
    b''.join(to_nodes(i, [1, 2, 'strange', STREAM], 88 + i) for i in range(3)) + wait(12),
    'strangers-announce-to-nodes': bytes([THREE]) + repeat(16, op(CONNECT, FOR_NODES) + op(ANNOUNCE, 15)) + wait(13) + wait(14),
    'old-records-asked-for-and-not-read': bytes([ALONE | OLD]) + repeat(4, asks(CLIENTS, NOTHING, [0])) + wait(15) * 2,
    'old-records-read-slowly': bytes([ALONE_OLD]) + repeat(4, asks(CLIENTS, SLOWLY, [1])) + wait(15) * 2,
    'old-records-read-slowly-by-kafka': bytes([ALONE_OLD]) + repeat(4, asks(FOR_KAFKA, SLOWLY, [1])) + wait(15) * 2,
    'old-records-read-slowly-of-three': bytes([THREE_OLD]) + repeat(4, asks(CLIENTS, SLOWLY, [0, 1, 3])) + wait(15) * 2,
    'large-answers-asked-for-and-not-read': bytes([ALONE]) + repeat(16, asks(CLIENTS, NOTHING, [NAMES], 3)) + wait(13),
    'groups-joined-in-one-home': bytes([ALONE]) + crowds(3, crowd(JOINS, 2 | LONG)) + wait(15) * 2,
    'groups-joined-with-much-to-keep': bytes([ALONE]) + crowds(16, crowd(JOINS, ANY_HOME | LARGE, 2)) + wait(15) * 2,
    'one-group-joined-over-and-over': bytes([ALONE]) + crowds(8, crowd(JOINS, 3 | LARGE | SAME)) + wait(15) * 2,
    'groups-committed-in-one-home': bytes([ALONE]) + crowds(3, crowd(COMMITS, 4 | LONG)) + wait(15) * 2,
    'groups-committed-with-much-to-keep': bytes([ALONE]) + crowds(3, crowd(COMMITS, 5 | LONG | LARGE)) + wait(15) * 2,
    'groups-committed-of-three': bytes([THREE]) + crowds(3, crowd(COMMITS, 6 | LONG)) + wait(15) * 2,
    'groups-asked-for': bytes([ALONE]) + crowds(
        4, crowd(OFFSETS, ANY_HOME | LONG, 2) + crowd(DESCRIBES, ANY_HOME | LONG, 2) + crowd(FINDS, ANY_HOME | LONG, 2) +
        crowd(LISTS, 0, 2)) + wait(14),
    'groups-asked-for-and-not-read': bytes([ALONE]) + crowds(2, crowd(COMMITS, 1 | LONG, 4)) + repeat(
        4, op(CONNECT, FOR_KAFKA) + wait(4) + op(DEAF) + crowd(OFFSETS, 1 | LONG, 2) + crowd(LISTS, 0, 4) + wait(8)) + wait(15) * 2,
    'a-node-dies-amid-groups': bytes([THREE]) + crowds(4, crowd(COMMITS, ANY_HOME | LONG, 4) + crowd(JOINS, ANY_HOME, 4)) +
    op(FAULT, 8) + wait(15) * 2,
    'all-die-when-a-commit-is-answered': bytes([ALONE_POWER]) + (
        repeat(16, op(CONNECT, FOR_KAFKA) + op(FAULT, 12) + BUSY_HOMES + wait(4)) + wait(12)) * 6 + wait(14),
    'all-die-when-a-commit-is-answered-of-three': bytes([THREE]) + (
        repeat(16, op(CONNECT, FOR_KAFKA) + op(FAULT, 12) + BUSY_HOMES + wait(4)) + wait(14)) * 3 + wait(14),
    'a-server-dies-again-and-again': bytes([ALONE]) + (wait(13) + op(FAULT, 8)) * 10 + wait(14),
    'nodes-die-in-turn': bytes([THREE]) + b''.join(wait(14) + op(FAULT, 8 + i % 3) for i in range(9)) + wait(15),
    'a-node-dies-amid-all': bytes([THREE]) + repeat(4, op(CONNECT, FOR_KAFKA) + op(ANNOUNCE, 12)) + op(FAULT, 8) + wait(14),
}


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, data in SEEDS.items():
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(data)


if __name__ == '__main__':
    main()
