# SPDX-License-Identifier: Apache-2.0
"""Groups of Kafka's clients on several nodes: every node names the same coordinator, the others refuse, and what was
committed is there when the coordinator has crashed and its logs are served again."""
import json

from cluster import PATIENT, Cluster
from kafka_groups import Client, FIND, lone
from kafka_wire import FETCH_RECORDS, LIST_OFFSETS, METADATA, NONE, Out, PRODUCE
from rawbatch import batch_of
from rig import check, equal, main, until

ALTER, INVALID_CONFIG, NOT_LEADER = 44, 40, 6
NOT_YET, NOT_COORDINATOR, UNKNOWN_MEMBER = (14, 15, 16), 16, 25


def found(client, group='group'):
    """(error, node, port) of the coordinator of a group."""
    client.send(FIND, 2, Out(False).run(group).i('b', 0))
    back = client.receive(FIND, 2)
    back.i('i')
    error = back.i('h')
    back.run()
    node = back.i('i')
    equal(back.run() or b'', b'127.0.0.1' if error == NONE else b'')
    return error, node, back.i('i')


def kafka_port(node):
    return int(node.node_log_wait(r'clients of Kafka: listening on \S+:(\d+)').group(1))


def partitions_of(client, topic):
    """[(error, number, leader, replicas, in sync)], {broker: port}."""
    client.send(METADATA, 1, Out(False).i('i', 1).run(topic))
    back = client.receive(METADATA, 1)
    brokers = back.array(lambda: (back.i('i'), back.run(), back.i('i'), back.run()))
    back.i('i')
    equal((back.i('i'), back.i('h'), back.run(), back.i('b')), (1, NONE, topic.encode(), 0))
    rows = back.array(lambda: (back.i('h'), back.i('i'), back.i('i'), back.array(lambda: back.i('i')),
                               back.array(lambda: back.i('i'))))
    return rows, {number: port for number, _, port, _ in brokers}


def partition_of(client, topic):
    """(leader, replicas, in sync) of partition 0."""
    rows, brokers = partitions_of(client, topic)
    return rows[0][2:] + (sorted(brokers),)


def port_of(client, topic):
    """Where clients of Kafka find the owner of partition 0."""
    rows, brokers = partitions_of(client, topic)
    return brokers[rows[0][2]]


def places_of(cluster, stream, up):
    """By streamlet, the nodes that have its newest segment as its owner says: (owner, all, those that have it whole)."""
    told = json.loads(cluster.leat('stream', 'describe', stream, '--segments', '--json', which=up[:1], code=None).stdout or '{}')
    places = {}
    for log in told.get('log_list', []):
        copies = log['segment_list'][-1]['copies'] if log.get('segment_list') else []
        places[log['streamlet']] = (log['node'], {c['node'] for c in copies} | {log['node']},
                                    {c['node'] for c in copies if c['complete']} | {log['node']})
    return places


def test_metadata_names_the_nodes_that_have_the_copies():
    """On every node; again when one of them has gone and its copies are made elsewhere."""
    cluster = Cluster(nodes=4, voters=3, kafka='127.0.0.1:0', **PATIENT).start()
    streamlets = 8
    cluster.leat('stream', 'create', 's', '--logs', 1, '--copies', 2, '--streamlets', streamlets)
    for s in range(streamlets):
        cluster.produce('s', ['a'], '--streamlet', s)
    name_of = {kafka_port(node): f'n{i}' for i, node in enumerate(cluster.nodes)}
    clients = [Client(node) for node in cluster.nodes]

    def agree(which):
        want = places_of(cluster, 's', which)
        for i in which:
            rows, brokers = partitions_of(clients[i], 's')
            if any(row[0] != NONE for row in rows):
                return False
            names = {number: name_of[port] for number, port in brokers.items()}
            for _, number, leader, replicas, in_sync in rows:
                said = names.get(leader), {names.get(r) for r in replicas}, {names.get(r) for r in in_sync}
                if said != want.get(number) or len(replicas) != 2 or replicas[0] != leader:
                    return False
        return True
    until(lambda: agree([0, 1, 2, 3]), 'all nodes name those that the owners name')
    cluster.nodes[3].kill()
    until(lambda: agree([0, 1, 2]), 'those that are left name those that have the copies now')


def test_metadata_names_as_many_replicas_as_there_are_copies():
    cluster = Cluster(kafka='127.0.0.1:0', **PATIENT)
    cluster.start()
    for copies in (1, 2, 3):
        cluster.leat('stream', 'create', f't{copies}', '--logs', 1, '--copies', copies)
    for copies in (1, 2, 3):
        for node in cluster.nodes:
            leader, replicas, in_sync, brokers = until(
                lambda: (lambda a: a if len(a[3]) == 3 and a[0] > 0 else None)(partition_of(Client(node), f't{copies}')),
                'the node knows all')
            equal((len(replicas), replicas[0], in_sync), (copies, leader, replicas))
            equal(set(replicas) <= set(brokers), True, 'brokers')
    cluster.nodes[2].kill()
    survivor = Client(cluster.nodes[0])

    def lacking():
        leader, replicas, in_sync, brokers = partition_of(survivor, 't3')
        return len(replicas) == 3 and leader in in_sync and len(in_sync) == 2 and set(in_sync) < set(replicas)
    if partition_of(survivor, 't3')[0] != 3:
        until(lacking, 'one of three is not in sync')


def served_by(client, topic, partition, records):
    """Errors of a produce, a fetch and a question for the end of one partition."""
    out = Out(False).run(None).i('hi', -1, 30000)
    client.send(PRODUCE, 3, out.array([0], lambda _: out.run(topic).array([0], lambda _: out.i('i', partition).run(batch_of(records), True))))
    back = client.receive(PRODUCE, 3)
    equal((back.i('i'), back.run(), back.i('i'), back.i('i')), (1, topic.encode(), 1, partition))
    produced = back.i('h')
    out = Out(False).i('iiiibii', -1, 0, 1, 1 << 20, 0, 0, -1)
    out.array([0], lambda _: out.run(topic).array([0], lambda _: out.i('iiqqi', partition, -1, 0, -1, 1 << 20))).i('i', 0).run('')
    client.send(FETCH_RECORDS, 11, out)
    back = client.receive(FETCH_RECORDS, 11)
    equal((back.i('i'), back.i('h'), back.i('i'), back.i('i'), back.run(), back.i('i'), back.i('i')),
          (0, NONE, 0, 1, topic.encode(), 1, partition))
    fetched = back.i('h')
    back.i('qqq'), back.i('i')
    equal(back.i('i'), -1, 'preferred read replica')
    out = Out(False).i('i', -1)
    client.send(LIST_OFFSETS, 1, out.array([0], lambda _: out.run(topic).array([0], lambda _: out.i('iq', partition, -1))))
    back = client.receive(LIST_OFFSETS, 1)
    equal((back.i('i'), back.run(), back.i('i'), back.i('i')), (1, topic.encode(), 1, partition))
    return produced, fetched, back.i('h')


def test_only_the_owner_serves_a_partition():
    """Copies are on all nodes; who asks another one is told so, and never sent to a follower."""
    cluster = Cluster(kafka='127.0.0.1:0', **PATIENT)
    cluster.start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--copies', 3)
    cluster.produce('s', ['a'])
    clients = [Client(node) for node in cluster.nodes]
    ports = [kafka_port(node) for node in cluster.nodes]
    for partition in range(3):
        def owners():
            rows = [partitions_of(client, 's') for client in clients]
            told = {brokers.get({row[1]: row[2] for row in rows}.get(partition)) for rows, brokers in rows}
            return told if len(told) == 1 and None not in told else None
        owner = ports.index(until(owners, 'all know the owner').pop())
        for i, client in enumerate(clients):
            wanted = NONE if i == owner else NOT_LEADER
            # An owner that has only just come is not known to be one by itself.
            until(lambda: served_by(client, 's', partition, [(0, None, b'x')]) == (wanted,) * 3, f'node {i} and partition {partition}')


def alter(client, topic, name, value):
    """Error of one configuration that is set."""
    out = Out(False)
    out.array([0], lambda _: out.i('b', 2).run(topic).array([0], lambda _: out.run(name).i('b', 0).run(value)))
    client.send(ALTER, 0, out.i('b', 0))
    back = client.receive(ALTER, 0)
    back.i('i')
    return back.array(lambda: (back.i('h'), back.run(), back.i('b'), back.run())[0])[0]


def test_min_insync_replicas_is_changed_while_appends_wait_for_it():
    cluster = Cluster(nodes=3, voters=3, kafka='127.0.0.1:0', **PATIENT)
    cluster.start()
    cluster.leat('stream', 'create', 's', '--logs', 1, '--copies', 3, '--durability', 'memory')
    cluster.produce('s', ['a'])

    def log(which):
        told = json.loads(cluster.leat('stream', 'describe', 's', '--json', which=which, code=None).stdout or '{}')
        return told['log_list'][0] if 'log_list' in told else {}
    client = Client(cluster.nodes[0])
    equal(log([0])['min_copies'], 2)
    equal(alter(client, 's', 'min.insync.replicas', '4'), INVALID_CONFIG)
    equal(alter(client, 's', 'min.insync.replicas', '3'), NONE)
    until(lambda: log([0]).get('min_copies') == 3, 'the owner knows')
    owner = next(i for i, n in enumerate(cluster.nodes) if kafka_port(n) == port_of(client, 's'))
    victim, other = [i for i in range(3) if i != owner]
    client = Client(cluster.nodes[owner])
    cluster.nodes[victim].kill()
    until(lambda: log([owner]).get('below_min_copies') is True, 'two of three are too few')
    until(lambda: alter(client, 's', 'min.insync.replicas', '2') == NONE, 'the change')
    until(lambda: log([owner]).get('below_min_copies') is False, 'two are enough')
    cluster.produce('s', ['b'], which=[owner, other])
    equal(cluster.consume('s', which=[owner, other]), ['a', 'b'])


def test_every_node_names_the_coordinator_and_only_that_one_serves():
    cluster = Cluster(kafka='127.0.0.1:0', **PATIENT)  # the last flag of a name counts
    cluster.start()
    cluster.leat('stream', 'create', 'topic', '--streamlets', 3, '--logs', 1)
    clients = [Client(node) for node in cluster.nodes]
    answers = [until(lambda: (lambda a: a if a[0] == NONE else None)(found(c)), 'a coordinator') for c in clients]
    equal(len(set(answers)), 1, 'coordinators')
    home = next(i for i, node in enumerate(cluster.nodes) if kafka_port(node) == answers[0][2])
    for i, client in enumerate(clients):
        if i != home:
            equal(client.join(3)['error'], NOT_COORDINATOR, 'another node')
    joined = lone(clients[home])
    equal(clients[home].commit(7, joined['generation'], joined['member'], [(0, 41, 'a'), (1, 42, 'b'), (2, 43, '')]), [0, 0, 0])
    cluster.nodes[home].kill()
    cluster.nodes[home].start()

    def served():
        for node in cluster.nodes:
            client = Client(node)
            error, _, port = found(client)
            if error == NONE and port == kafka_port(node):
                rows, error = client.fetch(7, [0, 1, 2])
                if error == NONE:
                    return client, [r[:2] + r[3:4] for r in rows[0]]
        return None

    client, rows = until(served, 'what was committed')
    equal(rows, [(0, 41, b'a'), (1, 42, b'b'), (2, 43, b'')])
    error = until(lambda: (lambda e: None if e in NOT_YET else (e,))(client.heartbeat(3, joined)), 'the group')[0]
    equal(error, NONE, 'the member goes on')
    check(joined['generation'] >= 1)


def test_groups_have_their_coordinators_on_all_nodes():
    cluster = Cluster(kafka='127.0.0.1:0', **PATIENT)
    cluster.start()
    clients = [Client(node) for node in cluster.nodes]
    nodes = set()
    for n in range(24):
        answers = [until(lambda: (lambda a: a if a[0] == NONE else None)(found(c, f'group-{n}')), 'a coordinator') for c in clients]
        equal(len(set(answers)), 1, 'coordinators of one group')
        nodes.add(answers[0][1])
    equal(len(nodes), len(cluster.nodes), 'nodes that coordinate groups')


if __name__ == '__main__':
    main()
