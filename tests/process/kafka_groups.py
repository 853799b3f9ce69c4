# SPDX-License-Identifier: Apache-2.0
"""Consumer groups as Kafka's clients see them, byte for byte: rules of versions, members on several
connections, a server that is killed and comes back."""
import json

from kafka_wire import Connection, Out
from rig import BATCH, Server, check_in, crc32c, entries, equal, main, until

COMMIT, FETCH, FIND, JOIN, HEARTBEAT, LEAVE, SYNC, DESCRIBE, LIST, DELETE = 8, 9, 10, 11, 12, 13, 14, 15, 16, 42
NONE, NOT_AVAILABLE, ILLEGAL_GENERATION, INVALID_GROUP, UNKNOWN_MEMBER = 0, 15, 22, 24, 25
METADATA_TOO_LARGE, INVALID_SESSION = 12, 26
REBALANCING, NON_EMPTY, NOT_FOUND, MEMBER_ID_REQUIRED, FENCED = 27, 68, 69, 79, 82


class Client(Connection):
    """Of a server of rig's."""

    def __init__(self, server, source=None):
        super().__init__(*server.node_log_wait(r'clients of Kafka: listening on (\S+):(\d+)').groups(), source)

    def listed(self, version, states=()):
        out = Out(version >= 3)
        if version >= 4:
            out.array(list(states), out.run)
        self.send(LIST, version, out.end())
        back = self.receive(LIST, version)
        if version >= 1:
            back.i('i')
        equal(back.i('h'), NONE)

        def row():
            found = (back.run(), back.run(), back.run() if version >= 4 else None)
            back.end()
            return found

        return back.array(row)

    def join_send(self, version, member='', instance=None, metadata=b'm', session=6000):
        out = Out(version >= 6).run('group').i('i', session)
        if version >= 1:
            out.i('i', 6000)
        out.run(member)
        if version >= 5:
            out.run(instance)
        out.run('consumer').array([metadata], lambda m: out.run('range').run(m, True).end())
        if version >= 8:
            out.run(None)
        self.send(JOIN, version, out.end())

    def join_answer(self, version):
        back = self.receive(JOIN, version)
        if version >= 2:
            back.i('i')
        error, generation = back.i('h'), back.i('i')
        if version >= 7:
            back.run()
        protocol, leader = back.run(), back.run()
        skip = back.i('?') if version >= 9 else False
        member = back.run()

        def row():
            found = (back.run(), back.run() if version >= 5 else None, back.run(True))
            back.end()
            return found

        members = back.array(row)
        back.end()
        equal(back.at, len(back.blob), 'bytes behind the answer')
        return {'error': error, 'generation': generation, 'leader': leader, 'member': member,
                'members': members, 'skip': skip, 'protocol': protocol}

    def join(self, version, **more):
        self.join_send(version, **more)
        return self.join_answer(version)

    def sync(self, version, joined, shares=(), instance=None):
        out = Out(version >= 4).run('group').i('i', joined['generation']).run(joined['member'])
        if version >= 3:
            out.run(instance)
        if version >= 5:
            out.run('consumer').run('range')
        out.array(list(shares), lambda s: out.run(s[0]).run(s[1], True).end())
        self.send(SYNC, version, out.end())

    def sync_answer(self, version):
        back = self.receive(SYNC, version)
        if version >= 1:
            back.i('i')
        error = back.i('h')
        if version >= 5:
            back.run(), back.run()
        return error, back.run(True)

    def heartbeat(self, version, joined, instance=None):
        out = Out(version >= 4).run('group').i('i', joined['generation']).run(joined['member'])
        if version >= 3:
            out.run(instance)
        self.send(HEARTBEAT, version, out.end())
        back = self.receive(HEARTBEAT, version)
        if version >= 1:
            back.i('i')
        return back.i('h')

    def commit(self, version, generation, member, rows, group='group'):
        out = Out(version >= 8).run(group).i('i', generation).run(member)
        if version >= 7:
            out.run(None)
        if 2 <= version <= 4:
            out.i('q', -1)

        def row(r):
            out.i('iq', r[0], r[1])
            if version >= 6:
                out.i('i', 3)
            if version == 1:
                out.i('q', -1)
            out.run(r[2]).end()

        def topic(rows):
            out.run('topic').array(rows, row).end()

        out.array([rows], topic)
        self.send(COMMIT, version, out.end())
        back = self.receive(COMMIT, version)
        if version >= 3:
            back.i('i')

        def error():
            number, code = back.i('ih')
            back.end()
            return code

        def errors():
            back.run()
            codes = back.array(error)
            back.end()
            return codes

        return back.array(errors)[0]

    def fetch(self, version, partitions, group='group'):
        """[(partition, offset, epoch, metadata, error)] of each topic, error"""
        out = Out(version >= 6)
        topics = None if partitions is None else [partitions]

        def topic(ps):
            out.run('topic').array(ps, lambda p: out.i('i', p)).end()

        def one(_):
            out.run(group)
            if version >= 9:
                out.run(None).i('i', -1)
            out.array(topics, topic).end()

        if version < 8:
            out.run(group).array(topics, topic)
        else:
            out.array([group], one)
        if version >= 7:
            out.i('?', True)
        self.send(FETCH, version, out.end())
        back = self.receive(FETCH, version)
        if version >= 3:
            back.i('i')

        def row():
            partition, offset = back.i('iq')
            epoch = back.i('i') if version >= 5 else None
            found = (partition, offset, epoch, back.run(), back.i('h'))
            back.end()
            return found

        def rows():
            back.run()
            found = back.array(row)
            back.end()
            return found

        def group_rows():
            back.run()
            found = back.array(rows), back.i('h')
            back.end()
            return found

        if version >= 8:
            return back.array(group_rows)[0]
        found = back.array(rows)
        return found, back.i('h') if version >= 2 else 0


def served(streamlets=2):
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 'topic', '--streamlets', streamlets, '--logs', 1)
    return server


def lone(client, version=5, **more):
    joined = client.join(version, **more)
    if joined['error'] == MEMBER_ID_REQUIRED:
        joined = client.join(version, member=joined['member'].decode(), **more)
    equal(joined['error'], NONE, 'join')
    equal(joined['leader'], joined['member'])
    client.sync(3, joined, [(joined['member'], b'all')], more.get('instance'))
    equal(client.sync_answer(3), (NONE, b'all'))
    return joined


def test_coordinator_is_found_in_all_versions():
    server = served()
    client = Client(server)
    port = client.socket.getpeername()[1]
    for version in range(5):
        out = Out(version >= 3)
        if version < 4:
            out.run('group')
        if version >= 1:
            out.i('b', 0)
        if version >= 4:
            out.array(['group', 'other'], out.run)
        client.send(FIND, version, out.end())
        back = client.receive(FIND, version)
        if version >= 1:
            back.i('i')
        if version >= 4:
            equal(back.count('i'), 2)
            equal(back.run(), b'group')
            node, host, at, error = back.i('i'), back.run(), back.i('i'), back.i('h')
        else:
            error = back.i('h')
            if version >= 1:
                back.run()
            node, host, at = back.i('i'), back.run(), back.i('i')
        equal((node, host, at, error), (1, b'127.0.0.1', port, NONE), f'version {version}')


def test_every_version_joins_commits_and_fetches():
    server = served()
    for version in range(10):
        client = Client(server)
        joined = lone(client, version)
        commit, fetch = max(1, version), max(1, version)
        offset = 10 + version
        equal(client.commit(commit, joined['generation'], joined['member'],
                            [(0, offset, f'v{version}'), (1, 7, None), (2, 1, None)]), [0, 0, 3], 'commit')
        found, error = client.fetch(fetch, [1, 0, 5])
        equal(error, NONE)
        equal([(r[0], r[1]) for r in found[0]], [(1, 7), (0, offset), (5, -1)], f'fetch {fetch}')
        equal(found[0][1][3], f'v{version}'.encode())
        if fetch >= 6:
            equal(found[0][1][2], 3, 'leader epoch')
        if fetch >= 2:
            equal(sum(len(rows) for rows in client.fetch(fetch, None)[0]), 2, 'all')
        equal(client.heartbeat(min(version, 4), joined), NONE)
        equal(client.commit(commit, joined['generation'] + 1, joined['member'], [(0, 1, '')]), [ILLEGAL_GENERATION])
        equal(client.commit(commit, joined['generation'], 'nobody', [(0, 1, '')]), [UNKNOWN_MEMBER])
        if version < 3:
            client.send(LEAVE, version, Out(False).run('group').run(joined['member']))
        else:
            out = Out(version >= 4).run('group')
            leave = min(version, 5)

            def leaver(member):
                out.run(member).run(None)
                if leave >= 5:
                    out.run('enough')
                out.end()

            client.send(LEAVE, leave, out.array([joined['member'], 'nobody'], leaver).end())
        back = client.receive(LEAVE, min(version, 5))
        if version >= 1:
            back.i('i')
        equal(back.i('h'), NONE, 'leave')
        if version >= 3:
            rows = []
            for _ in range(back.count('i')):
                rows.append((back.run(), back.run(), back.i('h')))
                back.end()
            equal([r[2] for r in rows], [NONE, UNKNOWN_MEMBER])


def test_new_member_is_told_its_id_first_from_version_4_on():
    """But for those with names of their own, which are known by them."""
    server = served()
    for version, instance, error in ((3, None, NONE), (4, None, MEMBER_ID_REQUIRED), (5, None, MEMBER_ID_REQUIRED),
                                     (5, 'cellar', NONE), (9, None, MEMBER_ID_REQUIRED), (9, 'attic', NONE)):
        client = Client(server)
        joined = client.join(version, instance=instance)
        equal(joined['error'], error, f'version {version}, {instance}')
        equal(bool(joined['member']), True, 'an id')
        out = Out(False).run('group')
        client.send(LEAVE, 3, out.array([joined['member']], lambda member: out.run(member).run(instance)))
        client.receive(LEAVE, 3)


def members_told(client):
    out = Out(False)
    client.send(DESCRIBE, 0, out.array(['group'], out.run).end())
    back = client.receive(DESCRIBE, 0)
    equal((back.count('i'), back.i('h')), (1, NONE))
    for _ in range(4):
        back.run()
    return len(back.array(lambda: [back.run(), back.run(), back.run(), back.run(True), back.run(True)]))


def test_three_members_rebalance_and_go_on_over_a_kill():
    server = served()
    clients = [Client(server) for _ in range(3)]
    joined = lone(clients[0])
    for client in clients[1:]:
        client.join_send(3)  # before version 4: in at once
    # Both, before the one who has to come again makes the generation whole.
    until(lambda: members_told(clients[0]) == 3, 'all have asked')
    equal(clients[0].heartbeat(3, joined), REBALANCING)
    clients[0].join_send(5, member=joined['member'].decode())
    members = [clients[0].join_answer(5), clients[1].join_answer(3), clients[2].join_answer(3)]
    equal({m['generation'] for m in members}, {joined['generation'] + 1})
    equal(len(members[0]['members']), 3)
    for client, member in zip(clients[1:], members[1:]):
        client.sync(3, member)
    clients[0].sync(3, members[0], [(m['member'], m['member'][-4:]) for m in members])
    for client, member in zip(clients, members):
        equal(client.sync_answer(3), (NONE, member['member'][-4:]))
    equal(clients[1].commit(7, members[1]['generation'], members[1]['member'], [(1, 99, 'kept')]), [NONE])
    server.kill()
    server.start('--kafka', '127.0.0.1:0')
    for member in members:
        client = Client(server)
        equal(until_served(lambda: client.heartbeat(3, member)), NONE, 'no rebalance after a kill')
        equal(client.fetch(7, [1])[0][0][0][:2], (1, 99))


def until_served(ask):
    """Not yet, says a home that is waking up."""
    found = []

    def asked():
        found.append(ask())
        return found[-1] not in (14, 15, 16)

    until(asked, 'a home that is served')
    return found[-1]


def test_static_member_is_fenced_by_its_successor():
    server = served()
    client = Client(server)
    old = lone(client, 7, instance='cellar')
    again = client.join(9, instance='cellar')
    equal((again['error'], again['generation'], again['skip']), (NONE, old['generation'], True))
    equal(client.heartbeat(3, old, 'cellar'), FENCED)
    equal(client.heartbeat(3, again, 'cellar'), NONE)


def test_groups_are_listed_described_and_deleted():
    server = served()
    client = Client(server)

    def described(version, group):
        out = Out(version >= 5)
        out.array([group], out.run)
        if version >= 3:
            out.i('?', False)
        client.send(DESCRIBE, version, out.end())
        back = client.receive(DESCRIBE, version)
        if version >= 1:
            back.i('i')
        equal(back.count('i'), 1)
        head = back.i('h'), back.run(), back.run(), back.run(), back.run()

        def row():
            found = [back.run()]
            if version >= 4:
                back.run()
            found += [back.run(), back.run(), back.run(True), back.run(True)]
            back.end()
            return found

        return head, back.array(row)

    def deleted(version, group):
        out = Out(version >= 2)
        client.send(DELETE, version, out.array([group], out.run).end())
        back = client.receive(DELETE, version)
        back.i('i')
        equal(back.count('i'), 1)
        back.run()
        return back.i('h')

    equal(client.listed(0), [], 'nobody has come')
    equal(described(0, 'group')[0][2], b'Dead')
    equal(deleted(0, 'group'), NOT_FOUND)
    joined = lone(client)
    for version in range(5):
        equal(client.listed(version), [(b'group', b'consumer', b'Stable' if version == 4 else None)])
    equal(client.listed(4, ['Empty']), [])
    for version in range(6):
        head, members = described(version, 'group')
        equal(head, (NONE, b'group', b'Stable', b'consumer', b'range'), f'version {version}')
        equal(members, [[joined['member'], b'test', b'/127.0.0.1', b'm', b'all']])
    equal(deleted(2, 'group'), NON_EMPTY)
    equal(deleted(2, ''), INVALID_GROUP)
    client.send(LEAVE, 0, Out(False).run('group').run(joined['member']))
    client.receive(LEAVE, 0)
    until(lambda: deleted(1, 'group') == NONE, 'the group is empty')
    equal(client.listed(4), [])


def home_of(group):
    """(streamlet, log) of leat.sets"""
    return divmod(crc32c(group.encode()) % 64, 4)


def test_groups_of_a_damaged_home_are_left_out_of_the_list_and_the_home_is_named():
    server = served()
    client = Client(server)
    names = [f'g{i}' for i in range(40)]
    for name in names:
        equal(client.commit(2, -1, '', [(0, 1, 'm')], group=name), [NONE])
    equal(sorted(row[0].decode() for row in client.listed(4)), sorted(names))
    server.stop()
    streamlet, log = home_of('g7')
    hurt = sorted(name for name in names if home_of(name) == (streamlet, log))
    stream_id = server.rows()[0]['stream']
    row = server.segments(stream_id, log, streamlet)[-1]
    last = [e for e in entries(server.segment_bytes(row)) if e[0] == BATCH][-1]
    server.segment_flip(row, last[1] + 32 + last[2] // 2)
    server.start()
    client = Client(server)
    equal(sorted(row[0].decode() for row in client.listed(4)), sorted(set(names) - set(hurt)))
    equal(client.commit(2, -1, '', [(0, 2, 'm')], group='g7'), [NOT_AVAILABLE])
    told = server.leat('cluster', 'status', code=1).stdout
    check_in(f'trouble  stream leat.sets streamlet {streamlet} log {log} on node', told)
    check_in('a home of consumer groups, which are neither served nor listed', told)
    trouble = json.loads(server.leat('cluster', 'status', '--json', code=1).stdout)['nodes'][0]['report']['troubled_logs']
    equal([(t['stream'], t['streamlet'], t['log']) for t in trouble], [('leat.sets', streamlet, log)])
    server.leat('log', 'recover', 'leat.sets', '--streamlet', streamlet, '--log', log, '--accept-loss')
    equal(client.commit(2, -1, '', [(0, 2, 'm')], group='g7'), [NONE])
    check_in('g7', [row[0].decode() for row in client.listed(4)])
    server.leat('cluster', 'status')


def test_offsets_of_several_groups_are_told_in_one_answer():
    """From version 8 on; each with its topics, or all, and one that nobody has heard of."""
    server = served()
    client = Client(server)
    for n, group in enumerate(('one', 'two', 'three')):
        equal(client.commit(8, -1, '', [(0, 10 * n, group), (1, 10 * n + 1, '')], group), [NONE, NONE])
    for version in (8, 9):
        out = Out(True)

        def asked(row):
            group, partitions = row
            out.run(group)
            if version >= 9:
                out.run(None).i('i', -1)
            topics = None if partitions is None else [partitions]
            out.array(topics, lambda ps: out.run('topic').array(ps, lambda p: out.i('i', p)).end()).end()

        rows = [('two', [1]), ('nobody', [0]), ('three', None), ('one', [1, 0])]
        client.send(FETCH, version, out.array(rows, asked).i('?', True).end())
        back = client.receive(FETCH, version)
        back.i('i')

        def partition():
            found = back.i('iq')
            back.i('i'), back.run()
            equal(back.i('h'), NONE)
            back.end()
            return found

        def topic():
            equal(back.run(), b'topic')
            found = back.array(partition)
            back.end()
            return found

        def told():
            found = back.run(), back.array(topic), back.i('h')
            back.end()
            return found

        equal(back.array(told), [(b'two', [[(1, 11)]], NONE), (b'nobody', [[(0, -1)]], NONE),
                                 (b'three', [[(0, 20), (1, 21)]], NONE), (b'one', [[(1, 1), (0, 0)]], NONE)], f'version {version}')


def test_what_is_beyond_a_limit_is_refused_by_its_code():
    server = served()
    client = Client(server)
    for session in (99, 30 * 60 * 1000 + 1, -1):
        equal(client.join(3, session=session)['error'], INVALID_SESSION, f'session of {session} ms')
    joined = lone(client)
    member = joined['generation'], joined['member']
    equal(client.commit(7, *member, [(0, 1, 'x' * 4097), (1, 2, 'x' * 4096)]), [METADATA_TOO_LARGE, NONE])
    equal([row[1] for row in client.fetch(7, [0, 1])[0][0]], [-1, 2])
    equal(client.commit(7, -1, '', [(0, 1, '')], ''), [INVALID_GROUP], 'a group without a name')


def test_native_offsets_are_a_groups_offsets():
    server = served()
    client = Client(server)
    server.produce('topic', [f'line {n}' for n in range(20)])
    server.leat('consume', 'topic', '--group', 'both', '--until-end')
    found = client.fetch(8, None, 'both')[0][0]
    equal(sum(row[1] for row in found), 20, 'what the native group has read')
    partition = found[0][0]
    equal(client.commit(8, -1, '', [(partition, 0, '')], 'both'), [NONE])
    equal(client.fetch(8, [partition], 'both')[0][0][0][1], 0, 'set back by a tool')


def test_members_that_hang_up_give_their_places_back():
    server = served()
    first = Client(server)
    joined = lone(first)
    for _ in range(20):
        gone = Client(server)
        gone.join_send(3)
        until(lambda: first.heartbeat(3, joined) == REBALANCING, 'a rebalance')
        gone.socket.close()
        again = first.join(5, member=joined['member'].decode())
        equal(again['error'], NONE)
        first.sync(3, again, [(again['member'], b'all')])
        error, _ = first.sync_answer(3)
        equal(error, NONE)
        joined = again
    equal(len(joined['members']), 1)


if __name__ == '__main__':
    main()
