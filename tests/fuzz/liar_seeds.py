#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the schedules from which the fuzz target of a node that lies begins: tests/fuzz/liar_seeds.py DIRECTORY

Each is a byte which world, a byte which node lies, then pieces: tests/fuzz/liar_fuzz.c.
"""
import os
import struct
import sys

LIE, WAIT, ASK, FAULT, BELOW = range(5)
BODY, FIELD, BYTES, CUT, PAYLOAD, PAYLOAD_BYTES, ERROR, BECOME = range(8)
IS, ADD, ARRAY, BIN, NONE, TWICE = range(6)
ALWAYS = 15
HELLO, LINK_PING, NONCE = range(3)  # kinds between nodes, less 256
STATE, RAFT, INSTALL, FORM, SUBMIT, FEED, ENTRIES, SNAPSHOT, JOIN, ADMIN, PING, COLLECT, PULL, LOST, PONG, RECOVERY = range(16, 32)
REP_FIRST, REP_LAST = 64, 77
DATA_ATTACH, DATA_WRITE, DATA_DONE, DATA_REQUEST = range(120, 124)
BROKER = 128  # and a client's kind
(METADATA, CREATE, DELETE, DESCRIBE, PRODUCER, LOCATE, GROUP_JOIN, GROUP_HEARTBEAT, GROUP_LEAVE, GROUP_COMMIT, GROUP_FETCH, RECOVER,
 STATUS, CLUSTER, CHANGE, SEGMENTS, REPORT, GROUP, MOVE, TRIM, PLACES, LOG_BELOW) = (3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17,
                                                                              18, 19, 20, 21, 22, 23, 24, 25, 26)
MANY = 2**64 - 1


def msgpack(value):
    if isinstance(value, bool):
        return b'\xc3' if value else b'\xc2'
    if isinstance(value, int):
        return bytes([value]) if 0 <= value < 128 else b'\xff' if value == -1 else b'\xcf' + struct.pack('>Q', value)
    if isinstance(value, bytes):
        return b'\xc4' + bytes([len(value)]) + value
    if isinstance(value, str):
        return b'\xd9' + bytes([len(value.encode())]) + value.encode()
    return bytes([0x90 | len(value)]) + b''.join(map(msgpack, value))


def piece(what, body):
    return bytes([what]) + struct.pack('<H', len(body)) + body


def wait(ms):
    return piece(WAIT, struct.pack('<H', ms // 4))


def lie(kind, op, body=b'', answers=True, times=ALWAYS, skip=0):
    return piece(LIE, bytes([kind, times * 16 + op * 2 + answers, skip]) + body)


def field(number, how, value):
    return bytes([number, how]) + struct.pack('<Q', value % 2**64)


def ask(node, kind, *values):
    return piece(ASK, bytes([node, kind]) + msgpack(list(values)))


def requests(node):
    """What a client may ask that one broker asks others for."""
    name = 'stream-0'
    body = b''
    for stream in range(4):
        body += ask(node, DESCRIBE, 'stream-%d' % stream)
    body += ask(node, CLUSTER) + ask(node, SEGMENTS, name, 0, 0, 0) + ask(node, LOCATE, [1, 0, 0, 1, 0])
    for place in range(6):  # each has a home, some node or other
        its = 'set %d' % place
        body += ask(node, GROUP_JOIN, its, '', 1, 10000, ['stream-1']) + ask(node, GROUP_COMMIT, its, '', 0, [[2, 0, 0, 0, MANY]])
        body += ask(node, GROUP_FETCH, its, []) + ask(node, GROUP_HEARTBEAT, its, 'm', 1) + ask(node, GROUP_LEAVE, its, 'm')
    body += ask(node, TRIM, name, 0, 0, 1) + ask(node, RECOVER, name, 0, 0, False) + ask(node, PRODUCER, -1, -1)
    return body + ask(node, CREATE, 'another', [1, 1, 2, 1, 0, 65536, -1, -1, 0, False]) + ask(node, METADATA, [], False)


def everything(node):
    body = requests(node)
    for stream in range(4):
        body += piece(BELOW, bytes([node, stream, 0, 0, 9]))
    return body + wait(300)


ANSWERED = {
    'describe': DESCRIBE, 'join': GROUP_JOIN, 'heartbeat': GROUP_HEARTBEAT, 'leave': GROUP_LEAVE, 'commit': GROUP_COMMIT,
    'fetch': GROUP_FETCH, 'report': REPORT, 'group': GROUP, 'move': MOVE, 'trim': TRIM, 'places': PLACES, 'below': LOG_BELOW,
    'segments': SEGMENTS, 'recover': RECOVER,
}
CALLS = {  # of a broker, by one that has them from no client
    'places': (PLACES, [1]), 'places_unknown': (PLACES, [77]), 'below': (LOG_BELOW, [[1, 0, 0], 3]),
    'below_nowhere': (LOG_BELOW, [[1, 99, 99], MANY]), 'below_cut': (LOG_BELOW, [[1, 0, 0]]), 'group': (GROUP, [1, 0, 0, MANY]),
    'describe': (DESCRIBE, ['stream-1']), 'report': (REPORT, [True]), 'move': (MOVE, ['stream-0', 0, 'node1']),
    'trim': (TRIM, ['stream-2', 0, 0, MANY]), 'recover': (RECOVER, ['stream-0', 0, 0, True]), 'change': (CHANGE, [1, 'node1']),
    'segments': (SEGMENTS, ['stream-0', 0, 0, MANY]), 'commit': (GROUP_COMMIT, ['a set', '', 0, [[1, 0, 0, -1, MANY]]]),
}
BELOW_ANSWERS = {
    'none': [], 'newest': [[9, 65536, 7, 3]], 'older_form': [[4, 65536, 7]], 'longer_form': [[4, 65536, 7, 3, 8, 8]],
    'above': [[10, 65536, 7, 3]], 'huge': [[4, 2**32 - 1, 7, 3]], 'many': [[4, 4096 + i, i, 3] for i in range(15)],
}
PLACES_ANSWERS = {
    'none': [], 'far': [bytes([2, 200, 255])] * 15, 'more_whole': [bytes([9, 1])] * 9, 'long': [bytes([3] + [1] * 200)] * 15,
    'own': [bytes([1, 0])] * 9, 'empty': [b''] * 12,
}


def coordinators():
    yield 'state_version', lie(STATE, FIELD, field(3, ADD, 1), False) + piece(FAULT, bytes([1, 1]))
    yield 'state_voter', lie(STATE, FIELD, field(5, IS, 1), False) + piece(FAULT, bytes([1, 1]))
    yield 'state_applied', lie(STATE, FIELD, field(8, IS, MANY), False) + piece(FAULT, bytes([1, 1]))
    for number in range(1, 8):
        yield 'raft_add_%d' % number, lie(RAFT, FIELD, field(number, ADD, 1), False)
        yield 'raft_less_%d' % number, lie(RAFT, FIELD, field(number, ADD, MANY), False)
        yield 'raft_much_%d' % number, lie(RAFT, FIELD, field(number, IS, MANY), False)
    yield 'raft_entries', lie(RAFT, PAYLOAD_BYTES, struct.pack('<H', 30) + bytes(8), False)
    yield 'raft_cut', lie(RAFT, CUT, struct.pack('<H', 6), False)
    for name, kind in ('ping', PING), ('pong', PONG), ('submit', SUBMIT), ('feed', FEED), ('entries', ENTRIES), ('lost', LOST):
        yield name + '_times', lie(kind, FIELD, field(1, IS, MANY), False) + piece(FAULT, bytes([2, 0]))
        yield name + '_answered', lie(kind, FIELD, field(1, IS, MANY)) + piece(FAULT, bytes([2, 0]))
    for name, kind in ('collect', COLLECT), ('pull', PULL), ('recovery', RECOVERY), ('snapshot', SNAPSHOT), ('install', INSTALL):
        yield name + '_rows', lie(kind, FIELD, field(2, ADD, 1)) + piece(FAULT, bytes([2, 0])) + wait(3000)
        yield name + '_bytes', lie(kind, PAYLOAD_BYTES, struct.pack('<H', 11) + b'\xff\xff\xff') + piece(FAULT, bytes([2, 0])) + wait(3000)
    for kind in range(STATE, RECOVERY + 1):
        yield 'says_%d' % kind, lie(PONG, BECOME, bytes([kind]) + msgpack([1, 2, 3]), False) + lie(
            PING, BECOME, bytes([kind]) + msgpack([1, 2, 3]), False)


def replication():
    for kind in range(REP_FIRST, REP_LAST + 1):
        for number in range(0, 8, 2):
            yield 'rep_%d_is_%d' % (kind, number), lie(kind, FIELD, field(number, IS, 2**32 - 1)) + lie(
                kind, FIELD, field(number, IS, 2**32 - 1), False, 3, 2)
        yield 'rep_%d_add' % kind, lie(kind, FIELD, field(2, ADD, 1)) + lie(kind, FIELD, field(3, ADD, MANY), False, 5, 1)
        yield 'rep_%d_refused' % kind, lie(kind, ERROR, b'\x05', times=4)
        yield 'rep_%d_bytes' % kind, lie(kind, PAYLOAD_BYTES, struct.pack('<H', 40) + b'\xff\0\xff\0', times=4)
    for kind in (DATA_ATTACH, DATA_WRITE, DATA_DONE, DATA_REQUEST):
        for at in range(0, 56, 8):
            yield 'data_%d_%d' % (kind, at), lie(kind, BYTES, struct.pack('<H', at) + b'\xff' * 8, False, 2, 3) + lie(
                kind, BYTES, struct.pack('<H', at) + b'\xff' * 8)


def brokers():
    for name, kind in ANSWERED.items():
        kind += BROKER
        yield name + '_much', lie(kind, FIELD, field(1, IS, MANY))
        yield name + '_array', lie(kind, FIELD, field(0, ARRAY, 2**32 - 1))
        yield name + '_cut', lie(kind, CUT, struct.pack('<H', 3))
        yield name + '_refused', lie(kind, ERROR, b'\x07')
        yield name + '_asked', lie(kind, FIELD, field(1, ADD, 1), False)
    for name, answer in BELOW_ANSWERS.items():
        yield 'below_' + name, lie(BROKER + LOG_BELOW, BODY, msgpack(answer))
    for name, answer in PLACES_ANSWERS.items():
        yield 'places_' + name, lie(BROKER + PLACES, BODY, msgpack(answer))
    for name, (kind, values) in CALLS.items():
        yield 'calls_' + name, lie(BROKER + DESCRIBE, BECOME, bytes([BROKER + kind]) + msgpack(values), False)


def together(lies, count):
    """Several at once, of kinds that differ: a world's run takes longer than all the lies in it."""
    seeds = []
    for name, body in lies:
        told = (body[3], body[4] & 1)  # the first one's kind, and whether it is of answers
        place = next((seed for seed in seeds if told not in seed[1] and len(seed[1]) < count), None)
        if place is None:
            place = [name, set(), b'']
            seeds.append(place)
        place[1].add(told)
        place[2] += body + wait(80)
    return [(name, body) for name, _, body in seeds]


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    seeds = {}
    for kind, lies, count in ('broker', brokers(), 6), ('coordinator', coordinators(), 6), ('replication', replication(), 8):
        for number, (name, body) in enumerate(together(lies, count)):
            world, liar = number % 4, number // 4 % 3
            others = [node for node in range(3) if node != liar]
            asked = everything(others[0]) + everything(others[1]) if kind == 'broker' else b''
            seeds[kind + '_' + name] = bytes([world, liar]) + body + asked + wait(500)
    for name, data in seeds.items():
        with open(os.path.join(folder, name), 'wb') as file:
            file.write(data)


main()
