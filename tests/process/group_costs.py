# SPDX-License-Identifier: Apache-2.0
"""What requests to consumer groups may cost others: memory for answers is counted, and who waits for a group's
other members holds little. Memory is the most that a process ever had, as the kernel says it."""
import re

from kafka_groups import Client, COMMIT, DESCRIBE, FETCH, JOIN, LIST, MEMBER_ID_REQUIRED, NONE, lone
from kafka_wire import Out
from rig import Raw, Server, check, equal, main

METADATA, GROUP_FETCH, MIB = 3, 15, 1 << 20
LOADING, COMMIT_TOO_LARGE, INVALID, GROUP_FULL = 14, 28, 42, 81


def most_bytes(server):
    return int(re.search(r'VmHWM:\s+(\d+) kB', server.proc('status')).group(1)) * 1024


def served(logs, memory='256M'):
    server = Server('--kafka', '127.0.0.1:0', '--memory', memory).start()
    server.leat('stream', 'create', 'topic', '--streamlets', -(-logs // 128), '--logs', min(logs, 128))
    return server


def fetched(client, groups):
    """{group: [error]} of all that these have committed, asked for by one request"""
    out = Out(True)
    out.array(groups, lambda group: out.run(group).array(None, None).end()).i('?', False)
    client.send(FETCH, 8, out.end())
    back = client.receive(FETCH, 8)
    back.i('i')
    told = {}

    def partition():
        back.i('iqi'), back.run(), back.i('h')
        back.end()

    def topic():
        back.run(), back.array(partition)
        back.end()

    def group():
        name = back.run()
        back.array(topic)
        told.setdefault(name.decode(), []).append(back.i('h'))
        back.end()

    back.array(group)
    return told


def test_offsets_of_a_group_that_is_named_a_thousand_times():
    server = served(128)
    client = Client(server)
    equal(set(client.commit(8, -1, '', [(p, 1, 'x' * 4096) for p in range(100)])), {NONE})
    before = most_bytes(server)
    equal(fetched(client, ['group'] * 1000), {'group': [INVALID] * 1000})
    equal(fetched(client, ['group', 'other', 'group']), {'group': [INVALID] * 2, 'other': [NONE]})
    equal(fetched(client, ['group', 'other']), {'group': [NONE], 'other': [NONE]})
    check(most_bytes(server) < before + 32 * MIB, before, most_bytes(server))


def test_offsets_of_more_groups_than_there_is_memory_for():
    server = served(128, '512M')
    client = Client(server)
    groups = [f'group{n}' for n in range(70)]
    for group in groups:
        equal(set(client.commit(8, -1, '', [(p, 1, 'x' * 4096) for p in range(25)], group)), {NONE})
    before = most_bytes(server)
    told = fetched(client, groups)
    errors = [told[group][0] for group in groups]
    equal(set(errors), {NONE, LOADING}, 'some, and the others are to be asked for again')
    equal(fetched(client, [groups[errors.index(LOADING)]]), {groups[errors.index(LOADING)]: [NONE]})
    check(most_bytes(server) < before + 32 * MIB, before, most_bytes(server))


def test_groups_that_are_described_a_thousand_times():
    server = served(1)
    client = Client(server)
    lone(client, metadata=b'm' * 60000)
    before = most_bytes(server)
    out = Out(True)
    client.send(DESCRIBE, 5, out.array(['group'] * 1000, out.run).i('?', False).end())
    back = client.receive(DESCRIBE, 5)
    back.i('i')
    equal((back.count('i'), back.i('h')), (1000, INVALID))
    check(most_bytes(server) < before + 32 * MIB, before, most_bytes(server))


def test_offsets_of_a_set_that_many_ask_for_at_once():
    server = served(4096)
    client = Client(server)
    equal(set(client.commit(8, -1, '', [(p, 1, '') for p in range(4096)], 'set')), {NONE})
    before = most_bytes(server)
    conns = [Raw(server) for _ in range(8)]
    for conn in conns:
        for _ in range(256):
            conn.send(GROUP_FETCH, ['set', []])
    for conn in conns:
        for _ in range(256):
            flags, told, _ = conn.answer()
            check(len(told[1]) == 4096 if flags == 1 else flags == 3, flags, told[:2])
    check(most_bytes(server) < before + 64 * MIB, before, most_bytes(server))
    flags, told, _ = conns[0].call(GROUP_FETCH, ['set', []])
    equal((flags, len(told[1])), (1, 4096), 'alone it has room')


def join_send(client):
    out = Out(False).run('full').i('ii', 1800000, 1800000).run('').run('consumer')
    client.send(JOIN, 3, out.array([0], lambda _: out.run('range').run(b'', True)))


def test_joins_that_wait_leave_memory_for_others():
    server = served(1)
    first = Client(server)
    join_send(first)
    back = first.receive(JOIN, 3)
    back.i('i')
    equal(back.i('h'), NONE)  # and never joins again: all others wait for half an hour
    waiting = [Client(server) for _ in range(700)]
    for client in waiting:
        join_send(client)
    for _ in range(8):  # on both cores
        other = Client(server)
        names = [f'no-topic-of-that-name-{n}' for n in range(200)]
        ask = Out(False)
        ask.array(names, ask.run).i('?', False)
        equal(other.ask(METADATA, 4, ask).i('ii')[1], 1, 'one broker')
    lone(other)
    equal(other.ask(LIST, 0, Out(False)).i('h'), NONE)


def pipelined(client, key, version, bodies, error_of):
    """[error] of requests that are sent a hundred at a time."""
    errors = []
    for at in range(0, len(bodies), 100):
        some = bodies[at:at + 100]
        for body in some:
            client.send(key, version, body)
        for n in range(len(some)):
            client.number -= len(some) - 1 - n
            errors.append(error_of(client.receive(key, version)))
            client.number += len(some) - 1 - n
    return errors


def joins(client, groups):
    """Of members that never come to join under the id that they are told."""
    def body(group):
        out = Out(False).run(group).i('ii', 1800000, 1800000).run('').run(None).run('consumer')
        return out.array([0], lambda _: out.run('range').run(b'm' * 100, True))
    return pipelined(client, JOIN, 5, [body(group) for group in groups], lambda back: back.i('ih')[1])


def commits(client, groups, metadata):
    def body(group):
        out = Out(False).run(group).i('i', -1).run('').run(None)
        return out.array([0], lambda _: out.run('topic').array([0], lambda _: out.i('iqi', 0, 1, 3).run(metadata)))

    def error(back):
        back.i('ii'), back.run()
        return back.i('iih')[2]
    return pipelined(client, COMMIT, 7, [body(group) for group in groups], error)


def invented(word, count):
    return [f'{word}-{n}-'.ljust(249, 'x') for n in range(count)]


def honest_goes_on(server, word):
    client = Client(server)
    joined = lone(client)
    equal(lone(client, member=joined['member'].decode())['member'], joined['member'], 'joins again')
    names = [f'{word}-{n}' for n in range(200)]  # in all homes
    equal(set(joins(client, names[:100])), {MEMBER_ID_REQUIRED})
    equal(set(commits(client, names, 'm' * 100)), {NONE})
    equal(fetched(client, names[:20]), {name: [NONE] for name in names[:20]})
    server.produce('topic', [word] * 10)
    server.leat('stream', 'create', word)  # a log more needs memory
    server.produce(word, [word] * 10)
    equal(server.values(word), [word] * 10)


def small():
    server = Server('--kafka', '127.0.0.1:0', '--memory', '192M').start()
    server.leat('stream', 'create', 'topic', '--streamlets', 1, '--logs', 1)
    honest_goes_on(server, 'before')
    return server


def test_members_that_one_address_invents_leave_room_for_others():
    server = small()
    hostile = Client(server, '127.0.0.2')
    errors = joins(hostile, invented('join', 8200))
    equal(set(errors), {MEMBER_ID_REQUIRED, GROUP_FULL})
    check(2000 < errors.count(MEMBER_ID_REQUIRED) < 6000, errors.count(MEMBER_ID_REQUIRED))
    honest_goes_on(server, 'beside-joins')
    server.kill()
    server.start()
    honest_goes_on(server, 'after-restart')
    hostile = Client(server, '127.0.0.2')
    equal(set(joins(hostile, invented('again', 8200))), {MEMBER_ID_REQUIRED, GROUP_FULL})
    honest_goes_on(server, 'beside-joins-again')


def test_offsets_that_one_address_invents_leave_room_for_others():
    server = small()
    hostile = Client(server, '127.0.0.2')
    errors = commits(hostile, invented('commit', 20000), 'm' * 2000)
    equal(set(errors), {NONE, COMMIT_TOO_LARGE})
    check(errors.count(NONE) < 3000, 'of half of a 32nd of the budget', errors.count(NONE))
    honest_goes_on(server, 'beside-commits')
    for n in range(2):
        server.kill()
        server.start()
        hostile = Client(server, '127.0.0.2')
        errors = commits(hostile, invented(f'again-{n}', 5000), 'm' * 2000)
        check(errors.count(NONE) < 1500, 'what it has is known after a restart', errors.count(NONE))
        honest_goes_on(server, f'after-restart-{n}')


if __name__ == '__main__':
    main()
