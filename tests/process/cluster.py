# SPDX-License-Identifier: Apache-2.0
"""Several nodes, each a process of its own: forming, spreading, moving around, losing one."""
import collections
import fcntl
import functools
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from rig import (LEAT, Raw, Server, WAIT_S, check, check_in, cluster_key, equal, main, on_end, process_end,
                 refusal, until)
import tied


STREAM_DESCRIBE, GROUP_JOIN, GROUP_COMMIT, GROUP_FETCH, LOG_RECOVER, STREAMLET_MOVE, STREAM_TRIM = 6, 11, 14, 15, 16, 23, 24
TOO_MANY = 38
# For what does not try this: that a node which stands still for a moment is called dead, and its streamlets go elsewhere.
# Whoever is killed is missed as fast as ever, since nobody listens at its address.
PATIENT = {'suspect_ms': '2000', 'confirm_ms': '1000'}
PORTS, PORT_PARTS = range(10240, 32000), 40  # so many processes with clusters at once; more wait
# Who has been given one listens there later, or again.
ports_given = collections.deque(maxlen=len(PORTS) // PORT_PARTS // 2)


@functools.cache
def own_ports():
    """A part of the ports for this process, as other tests run beside it: what one has found free the other would find
    free as well, until a node listens there."""
    for part in itertools.count():
        lock = open(os.path.join(tempfile.gettempdir(), f'leat-ports-{os.getuid()}-{part % PORT_PARTS}'), 'w')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if part < PORT_PARTS else 0))
        except BlockingIOError:
            continue
        first = PORTS.start + part % PORT_PARTS * (len(PORTS) // PORT_PARTS)
        return lock, range(first, first + len(PORTS) // PORT_PARTS)


def free_ports(count):
    """Ports that nobody listens on, below those that outgoing connections take by themselves: one of
    these could be given to somebody's connection before the node listens."""
    ports = []
    while len(ports) < count:
        port = random.choice(own_ports()[1])
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(('127.0.0.1', port))
            except OSError:
                continue
        if port not in ports_given:
            ports_given.append(port)
            ports.append(port)
    return ports


class Cluster:
    def __init__(self, nodes=3, voters=3, **flags):
        ports = free_ports(2 * nodes)
        self.client_ports, self.node_ports = ports[:nodes], ports[nodes:]
        self.voters = ','.join(f'127.0.0.1:{p}' for p in self.node_ports[:voters])
        self.flags = [w for k, v in flags.items() for w in ('--' + k.replace('_', '-'), v)]
        self.nodes = [self.node(i) for i in range(nodes)]

    def node(self, i, **other):
        flags = {'node': f'n{i}', 'listen': f'127.0.0.1:{self.client_ports[i]}',
                 'node-listen': f'127.0.0.1:{self.node_ports[i]}', 'coordinators': self.voters, 'cluster-key': cluster_key(),
                 'cores': '1', 'memory': '512M', 'kafka': 'off', **other}
        return Server(*[w for k, v in flags.items() for w in ('--' + k, v)], *self.flags)

    def start(self, order=None):
        """All at once: a voter alone is not ready before it has met most of the others."""
        nodes = [self.nodes[i] for i in order or range(len(self.nodes))]
        for node in nodes:
            node.launch()
        for node in nodes:
            node.ready_wait()
        return self

    def brokers(self, *which):
        return ','.join(f'127.0.0.1:{self.client_ports[i]}'
                        for i in which or range(len(self.nodes)))

    def leat(self, *arguments, which=(), code=0, input=None):
        done = tied.run([LEAT, *map(str, arguments)], input=input, capture_output=True,
                        timeout=WAIT_S, env=dict(os.environ, LEAT_BROKERS=self.brokers(*which)))
        if code is not None:
            check(done.returncode == code, refusal(arguments, done, code))
        return done

    def leat_start(self, *arguments, which=(), **more):
        process = tied.start([LEAT, *map(str, arguments)], env=dict(os.environ, LEAT_BROKERS=self.brokers(*which)),
                             **{'stdout': subprocess.PIPE, 'stderr': subprocess.PIPE, **more})
        on_end(lambda: process_end(process))
        return process

    def status(self, which=(), code=None):
        return json.loads(self.leat('cluster', 'status', '--json', which=which, code=code).stdout)

    def leader(self):
        """Index of the node that leads. On a busy machine an election may be under way just then: then nobody does."""
        address = until(lambda: self.status()['leader_address'], 'somebody leads')
        return self.node_ports.index(int(address.rsplit(':', 1)[1]))

    def produce(self, stream, lines, *options, which=()):
        self.leat('produce', stream, *options, which=which,
                  input=''.join(f'{line}\n' for line in lines).encode())

    def consume(self, stream, *options, which=()):
        return self.leat('consume', stream, '--until-end', *options,
                         which=which).stdout.decode().splitlines()


def test_three_nodes_form_a_cluster_in_any_order():
    cluster = Cluster(**PATIENT).start(order=[2, 0, 1])
    for i in range(3):
        # On a busy machine the leader may be followed by another one just then.
        status = until(lambda: (told := cluster.status(which=[i]))['leader_address'] and told, 'somebody leads')
        equal(sorted(n['name'] for n in status['nodes']), ['n0', 'n1', 'n2'])
        equal({n['state'] for n in status['nodes']}, {'up'})
        equal(len(status['voters']), 3)
    equal(len({cluster.status(which=[i])['cluster_id'] for i in range(3)}), 1, 'cluster ids')


def test_logs_of_a_cluster_that_has_just_formed_are_not_called_refused():
    cluster = Cluster(memory='512M', suspect_ms='10000', confirm_ms='1000').start()  # logs of a node that is suspected are refused rightly
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'all are up')
    cluster.leat('stream', 'create', 's', '--streamlets', 6, '--copies', 3, '--logs', 1)
    writer = cluster.leat_start('produce', 's', '--streamlet', 0, stdin=subprocess.PIPE)
    writer.stdin.write(b'first\n')
    writer.stdin.close()
    while True:
        ended = writer.poll() is not None  # looked at before, so that the last look is behind the first ack
        said = cluster.leat('cluster', 'status', code=None).stdout.decode()
        check('are refused' not in said, said)
        if ended:
            break
    equal(writer.returncode, 0)


def test_streamlets_are_spread_and_any_address_is_enough():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 6, '--logs', 1, which=[1])
    until(lambda: list(owned(cluster).values()) == [2, 2, 2], 'streamlets are spread evenly')
    lines = [f'{i:06d} {"x" * (i % 50)}' for i in range(20000)]
    cluster.produce('s', lines, '--batch-bytes', '2K', which=[0])
    for i in range(3):
        equal(sorted(cluster.consume('s', which=[i])), lines, f'read by way of node {i}')
    owners = {line.split()[0] for line in cluster.consume('s', '--format', '%p %o')}
    equal(owners, {str(p) for p in range(6)}, 'all partitions have records')


def test_a_stream_of_one_line_keeps_its_bytes_and_order():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1)
    lines = [f'{i}' for i in range(5000)]
    cluster.produce('s', lines, which=[2])
    equal(cluster.consume('s', which=[1]), lines)


def test_a_stream_is_known_everywhere_as_soon_as_it_was_made():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 'first')
    cluster.consume('first', '--group', 'group')  # the groups' own stream is there
    for i in range(12):
        name, at, other = f's{i}', i % 3, (i + 1 + i // 3 % 2) % 3
        cluster.leat('stream', 'create', name, '--streamlets', 3, which=[at])
        if i % 4 == 0:
            check_in(f'"{name}"', cluster.leat('stream', 'list', '--json', which=[other]).stdout.decode())
        elif i % 4 == 1:
            described = json.loads(cluster.leat('stream', 'describe', name, '--json',
                                                which=[other]).stdout)
            equal(described['name'], name)
        elif i % 4 == 2:
            equal(cluster.consume(name, '--group', 'group', which=[other]), [])
        else:
            cluster.produce(name, ['a', 'b'], which=[other])
        cluster.leat('stream', 'delete', name, which=[other])


def test_a_node_that_has_not_heard_of_a_stream_yet_asks_before_it_says_that_there_is_none():
    cluster = Cluster(**PATIENT).start()
    leader = cluster.leader()
    late = (leader + 1) % 3
    questions = [(STREAM_DESCRIBE, []), (STREAMLET_MOVE, [0, f'n{leader}']), (STREAM_TRIM, [0, 0, 0]),
                 (LOG_RECOVER, [0, 0, True])]
    clients = [Raw(cluster.nodes[late]) for _ in questions]
    os.kill(cluster.nodes[late].process.pid, signal.SIGSTOP)
    try:
        cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, which=[i for i in range(3) if i != late])
        for client, (kind, words) in zip(clients, questions):
            client.send(kind, ['s', *words])
    finally:
        os.kill(cluster.nodes[late].process.pid, signal.SIGCONT)
    for client, (kind, _) in zip(clients, questions):
        _, said, _ = client.answer()
        check('no stream is named' not in str(said), kind, said)
    client = clients[0]
    for kind, words in questions:  # while a leader is being elected nobody knows that
        until(lambda: 'no stream is named' in str(client.call(kind, ['none', *words])[1]), f'request {kind} is refused by name')


def test_a_set_is_served_by_way_of_any_node():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1)
    cluster.produce('s', [f'a{i}' for i in range(300)])
    seen = []
    for i in range(3):
        seen += cluster.consume('s', '--group', 'group', '--max-records', 100, which=[i])
    equal(sorted(seen), sorted(f'a{i}' for i in range(300)), 'each record once, offsets kept')


def test_a_killed_node_comes_back_with_its_streamlets():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--durability', 'memory')
    lines = [f'{i:05d}' for i in range(9000)]
    cluster.produce('s', lines, '--batch-bytes', '1K')
    victim = (cluster.leader() + 1) % 3
    cluster.nodes[victim].kill()
    until(lambda: {n['name']: n['state'] for n in cluster.status(
        which=[i for i in range(3) if i != victim])['nodes']}[f'n{victim}'] == 'down',
        'the others notice')
    # Two of three vote: streams can still be made, and are put where somebody is.
    others = [i for i in range(3) if i != victim]
    cluster.leat('stream', 'create', 'meanwhile', '--streamlets', 2, '--logs', 1, which=others)
    cluster.produce('meanwhile', ['one', 'two'], which=others)
    equal(sorted(cluster.consume('meanwhile', which=others)), ['one', 'two'])
    cluster.nodes[victim].start()
    equal(sorted(cluster.consume('s')), lines, 'after it came back')
    cluster.produce('s', ['more'])
    equal(sorted(cluster.consume('s')), lines + ['more'])


def test_a_parallel_set_knows_the_groups_of_logs_on_other_nodes():
    """A commit at or behind a group's end says that the group is done. Where it ends only the log's
    owner knows: the group's home asks it."""
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--segment-bytes', '16K')
    # Groups are of 16 segments: two of them in each log.
    cluster.produce('s', [f'{i:05d} {"x" * 300}' for i in range(6000)], '--batch-bytes', '8K')
    described = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)
    logs = described['log_list']
    equal(sorted(log['node'] for log in logs), ['n0', 'n1', 'n2'])
    check(all(log['groups'] >= 2 for log in logs), logs)
    for i in range(3):
        node, name = cluster.nodes[i], f'set{i}'
        raw = Raw(node)
        join = [name, '', 1, 10000, ['s']]
        _, (member, generation, shares), _ = until(lambda: (a := raw.call(GROUP_JOIN, join))[0] == 1 and a, 'the group has a home')
        equal(len(shares), 3)
        rows = [[described['id'], log['streamlet'], 0, 0, log['end_offset'] - 1] for log in logs]
        flags, answer, _ = raw.call(GROUP_COMMIT, [name, member.decode(), generation, rows])
        equal((flags, answer), (1, []))
        flags, (_, offsets), _ = raw.call(GROUP_FETCH, [name, []])
        told = sorted((row[1], row[3], row[4]) for row in offsets)
        equal(told, [(s, 1, 0) for s in range(3)], 'group 1 of each log is next')


def crc32c(text):
    crc = 0xffffffff
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_a_set_counts_for_the_address_at_the_node_that_hands_it_on():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1)
    homes, per_streamlet, mine = 64, 4, 7
    names = [name for name in (f'set-{n}' for n in range(90000)) if crc32c(name) % homes == mine][:700]
    until(lambda: Raw(cluster.nodes[0]).call(GROUP_JOIN, ['first', '', 0, 0, ['s']])[0] == 1, 'there are homes')
    described = json.loads(cluster.leat('stream', 'describe', 'leat.sets', '--json').stdout)
    home = next(int(log['node'][1:]) for log in described['log_list']
                if (log['streamlet'], log['log']) == divmod(mine, per_streamlet))
    other = cluster.nodes[(home + 1) % 3]

    def joins(node, source, sets):
        """How many of them are refused as too many."""
        raw, refused = Raw(node, source=source), 0
        for at in range(0, len(sets), 200):
            for name in sets[at:at + 200]:
                raw.send(GROUP_JOIN, [name, '', 0, 600000, ['s']])
            for _ in sets[at:at + 200]:
                flags, told, _ = raw.answer()
                check(flags == 1 or told[0] == TOO_MANY, flags, told)
                refused += flags != 1
        return refused

    equal(joins(other, '127.0.0.2', names[:600]), 600 - 512, 'half of 1,024')
    equal(joins(cluster.nodes[home], '127.0.0.2', names[600:610]), 10, 'the same address at the node itself')
    equal(joins(other, '127.0.0.1', names[610:700]), 0, 'another one')


def state_wait(cluster, victim, state):
    others = [i for i in range(3) if i != victim]
    until(lambda: {n['name']: n['state'] for n in cluster.status(which=others)['nodes']}[
        f'n{victim}'] == state, f'n{victim} is {state}')


def test_a_reader_that_begins_while_a_node_is_down_goes_on_with_it():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--durability', 'memory')
    lines = [f'{i:04d}' for i in range(3000)]
    cluster.produce('s', lines, '--batch-bytes', '1K')
    victim = 1
    cluster.nodes[victim].kill()
    state_wait(cluster, victim, 'down')
    reader = cluster.leat_start('consume', 's', '--until-end', which=(0, 2))
    cluster.nodes[victim].start()
    out, error = reader.communicate(timeout=WAIT_S)
    equal(reader.returncode, 0, error.decode())
    equal(sorted(out.decode().splitlines()), lines)


def test_a_log_whose_owner_is_down_does_not_keep_the_others_from_being_read():
    """What has one copy waits for its node. The rest is read meanwhile, to its end, and what was not is named."""
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--durability', 'memory')
    told = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)
    owners = {log['node']: log['streamlet'] for log in told['log_list']}
    lines = {node: [f'{node} {i:04d}' for i in range(500)] for node in owners}
    for node, streamlet in owners.items():
        cluster.produce('s', lines[node], '--streamlet', streamlet)
    cluster.nodes[1].kill()
    state_wait(cluster, 1, 'down')
    alone = cluster.leat_start('consume', 's', '--until-end', '--streamlet', owners['n1'], which=[0, 2])
    done = cluster.leat('consume', 's', '--until-end', which=[0, 2], code=4)
    equal(sorted(done.stdout.decode().splitlines()), sorted(lines['n0'] + lines['n2']))
    check_in(f'streamlet {owners["n1"]} log 0 could not be read to its end: its state is not known: node n1',
             done.stderr.decode())
    equal(alone.wait(WAIT_S), 4)
    said = alone.stderr.read().decode()
    check('no server answered' not in said, said)
    check_in('not ready within 11000 ms', said)  # as soon as others are done: it does not wait for all of its 30 s
    check_in('could not be read to its end', said)
    rows = until(lambda: cluster.status(which=[0, 2])['recovery']['waiting_logs'], 'a log waits')
    equal([(row['stream'], row['streamlet']) for row in rows], [('s', owners['n1'])])
    check_in('it has one copy, and node n1, which served it, is down; ', rows[0]['why'])
    shown = cluster.leat('cluster', 'status', which=[0, 2], code=1).stdout.decode()
    check_in('start those that', shown)
    check('--accept-loss' not in shown, shown)
    # It is looked for all the time, and that is told as long as there is something new.
    told = [line for i in (0, 2) for line in cluster.nodes[i].node_log().splitlines() if 'fenced' in line]
    check(len(told) <= 4, '\n'.join(told))
    cluster.nodes[1].start()
    equal(sorted(cluster.consume('s')), sorted(sum(lines.values(), [])))
    # The leader says once that the new incarnation is up. Whether it adds when it last heard the one before depends on whether it
    # ever did: a node that is killed some milliseconds after it joined has not been heard.
    again = next(node['incarnation'] for node in cluster.status()['nodes'] if node['name'] == 'n1')
    said = f'node n1 (incarnation {again}) is up'
    until(lambda: any(said in node.node_log() for node in cluster.nodes), 'the leader says that n1 is up')
    told = [line for node in cluster.nodes for line in node.node_log().splitlines() if said in line]
    equal(len(told), 1, told)


def test_the_leader_is_replaced():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 'before')
    leader = cluster.leader()
    cluster.nodes[leader].kill()
    others = [i for i in range(3) if i != leader]
    cluster.leat('stream', 'create', 'after', which=others)
    until(lambda: cluster.status(which=others)['leader_address'] not in
          ('', f'127.0.0.1:{cluster.node_ports[leader]}'), 'another leads')
    cluster.nodes[leader].start()
    names = cluster.leat('stream', 'list', which=[leader]).stdout.decode()
    check_in('before', names)
    check_in('after', names)


def test_a_whole_cluster_restarts():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 6, '--durability', 'disk')
    lines = [f'{i:05d}' for i in range(5000)]
    cluster.produce('s', lines)
    for node in cluster.nodes:
        node.kill()
    cluster.start(order=[1, 2, 0])
    equal(sorted(cluster.consume('s')), lines)
    for node in cluster.nodes:
        node.stop()
    cluster.start()
    equal(sorted(cluster.consume('s')), lines)


def owned(cluster):
    """How many streamlets each node has, as node 0 knows."""
    return {n['name']: n['streamlets'] for n in cluster.status(which=[0])['nodes']}


def test_a_server_alone_becomes_a_cluster():
    cluster = Cluster(nodes=3, voters=1, **PATIENT)
    alone = Server('--node', 'n0', '--kafka', 'off').start()
    lines = [f'{i} {"y" * (i % 70)}' for i in range(3000)]
    alone.leat('produce', 'old', input='\n'.join(lines).encode())
    told = json.loads(alone.leat('cluster', 'status', '--json').stdout)
    equal((told['leader_address'], [v['address'] for v in told['voters']]), ('', ['']), 'no other node can reach it')
    alone.stop()
    cluster.nodes[0].data = alone.data
    cluster.start()
    equal([v['votes'] for v in cluster.status()['voters']], [True])
    refused = cluster.leat('node', 'add-voter', 'n7', code=None)
    check(refused.returncode != 0 and b'n7' in refused.stderr, refused)
    added = cluster.leat('node', 'add-voter', 'n1').stdout
    check(b'2 nodes vote: add another one' in added, added)
    added = cluster.leat('node', 'add-voter', 'n2').stdout
    check(b'nodes vote' not in added, added)
    until(lambda: [v['votes'] for v in cluster.status()['voters']] == [True] * 3, 'three vote')
    cluster.leat('stream', 'create', 'new', '--copies', 3)
    cluster.produce('new', lines)

    cluster.nodes[0].kill()  # who was alone is not needed any more
    cluster.leat('stream', 'create', 'newer', '--copies', 2, which=[1, 2])
    equal(sorted(cluster.consume('new', which=[1, 2])), sorted(lines), 'a stream of the cluster')
    cluster.nodes[0].start()
    until(lambda: cluster.status(code=None)['healthy'], 'the cluster is healthy')
    equal(sorted(cluster.consume('old')), sorted(lines), 'a stream from before')


def test_a_node_that_does_not_vote_joins_and_drains():
    cluster = Cluster(nodes=4, voters=3, **PATIENT).start()
    equal(len(cluster.status()['voters']), 3)
    equal(sorted(n['name'] for n in cluster.status()['nodes']), ['n0', 'n1', 'n2', 'n3'])
    cluster.leat('node', 'drain', 'n3')
    cluster.leat('stream', 'create', 's', '--streamlets', 6, '--logs', 1)
    until(lambda: sum(owned(cluster).values()) == 6, 'all nodes know of it')
    equal(owned(cluster)['n3'], 0)
    cluster.leat('node', 'undrain', 'n3')
    cluster.leat('stream', 'create', 't', '--streamlets', 6, '--logs', 1)
    until(lambda: sum(owned(cluster).values()) == 12, 'all nodes know of it')
    check(owned(cluster)['n3'] > 0, owned(cluster))
    done = cluster.leat('node', 'drain', 'nobody', code=1)
    check_in('nobody', done.stderr.decode())


class ManyAddresses(Cluster):
    """Each node at an address of its own, and, where it is said so, on a machine of its own."""

    def __init__(self, many_hosts):
        super().__init__(**PATIENT)
        self.voters = ','.join(f'127.0.0.{i + 1}:{p}' for i, p in enumerate(self.node_ports))
        self.nodes = [self.node(i, **{'coordinators': self.voters, 'node-listen': f'127.0.0.{i + 1}:{self.node_ports[i]}',
                                      **({'host': f'h{i}'} if many_hosts else {})})
                      for i in range(3)]


def test_the_default_durability_is_memory_with_three_copies_on_three_hosts_only():
    for cluster, three in ((ManyAddresses(True), 'memory'), (ManyAddresses(False), 'disk')):
        cluster.start()
        for name, copies, options, wanted in (('one', 1, [], 'disk'), ('two', 2, [], 'disk'), ('three', 3, [], three),
                                              ('chosen', 3, ['--durability', 'disk'], 'disk')):
            # On a machine where everybody is late a node may be called dead for a moment: then three copies have
            # no place.
            done = until(lambda: (d := cluster.leat('stream', 'create', name, '--copies', copies, *options, '--json',
                                                    code=None)).returncode == 0 and d, f'{copies} copies have a place')
            said = json.loads(done.stdout)
            equal(said['durability'], wanted, f'{copies} copies, told at once')
            equal(json.loads(cluster.leat('stream', 'describe', name, '--json').stdout)['durability'], wanted,
                  f'{copies} copies')


def test_a_second_node_of_the_same_name_is_refused():
    cluster = Cluster(nodes=4, voters=3, **PATIENT)
    cluster.nodes[3] = cluster.node(3, node='n1')
    for node in cluster.nodes[:3]:
        node.launch()
    for node in cluster.nodes[:3]:
        node.ready_wait()
    code, text = cluster.nodes[3].start_refused()
    check_in('n1', text)
    equal(len(cluster.status()['nodes']), 3)


def test_a_stopped_process_whose_name_was_taken_over_is_not_heard():
    cluster = Cluster(nodes=4, voters=3).start()
    stopped = cluster.nodes[3]

    def connected():
        # Whom it has never met it does not ask again once it wakes.
        nodes = cluster.status(which=[3], code=None)['nodes']
        return len(nodes) == 4 and all(
            node['report'] and sum(peer['up'] for peer in node['report']['peers']) == 3 for node in nodes)
    until(connected, 'all nodes have met')
    os.kill(stopped.process.pid, signal.SIGSTOP)
    until(lambda: {n['name']: n['state'] for n in cluster.status(which=[0])['nodes']}['n3'] == 'down',
          'it is missed')
    ports = free_ports(2)
    other = cluster.node(3, **{'listen': f'127.0.0.1:{ports[0]}',
                               'node-listen': f'127.0.0.1:{ports[1]}'})
    other.start()
    os.kill(stopped.process.pid, signal.SIGCONT)
    stopped.node_log_wait('this node was declared crashed')
    stopped.node_log_wait("a node named 'n3' is up at .*: choose another name")
    state_wait(cluster, 3, 'up')


def test_a_node_of_another_cluster_is_refused():
    one, other = Cluster(**PATIENT).start(), Cluster(**PATIENT).start()
    stranger = other.nodes[2]
    stranger.stop()
    stranger.flags[stranger.flags.index('--coordinators') + 1] = one.voters
    stranger.flags[stranger.flags.index('--node') + 1] = 'stranger'
    _, text = stranger.start_refused()
    check_in('cluster', text)
    equal(len(one.status()['nodes']), 3)


def test_a_voter_that_lost_its_disk_stays_out_until_it_is_replaced():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's')
    victim = (cluster.leader() + 1) % 3
    cluster.nodes[victim].kill()
    shutil.rmtree(cluster.nodes[victim].data)
    cluster.nodes[victim].launch()
    cluster.nodes[victim].node_log_wait('replace')
    others = [i for i in range(3) if i != victim]
    address = f'127.0.0.1:{cluster.node_ports[victim]}'
    until(lambda: not {v['address']: v['reachable']
                       for v in cluster.status(which=others)['voters']}[address],
          'the others see that it does not vote')
    until(lambda: f'is up: if its disk was lost for good: leat node replace n{victim}' in
          cluster.leat('cluster', 'status', which=others, code=1).stdout.decode(), 'status names the command')
    cluster.leat('node', 'replace', f'n{victim}', which=others)
    cluster.nodes[victim].ready_wait()
    check_in('s', cluster.leat('stream', 'list', which=[victim]).stdout.decode())


def test_who_votes_is_not_replaced():
    cluster = Cluster(nodes=4, **PATIENT).start()
    for i in range(3):  # the leader among them
        done = cluster.leat('node', 'replace', f'n{i}', code=1)
        check_in('the node votes: there is nothing to replace', done.stderr.decode())
    check_in('no vote that could be replaced', cluster.leat('node', 'replace', 'n3', code=1).stderr.decode())
    for node in cluster.nodes[:3]:
        node.kill()
    until(lambda: b'leader   none that the node asked knows of\n' in cluster.leat('cluster', 'status', which=[3], code=1).stdout,
          'a node that does not vote hears of no leader, nor of a term')


def test_a_stream_is_described_whole_by_any_node():
    cluster = Cluster(suspect_ms='60000', confirm_ms='1000').start()  # who is not heard keeps its own
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--copies', 2,
                 '--min-copies', 1, '--durability', 'memory', '--segment-bytes', '16K')
    cluster.produce('s', [f'{i:04d} {"x" * 100}' for i in range(3000)], '--batch-bytes', '2K')

    def described(node):
        return json.loads(cluster.leat('stream', 'describe', 's', '--json', which=[node]).stdout)

    def rows(node):
        return [(g['node'], g['state'], g['end_offset'], g['segments'], g['copies'],
                 g['copies_now']) for g in described(node)['log_list']]
    # Of an owner that a node has no connection to, yet, it knows nothing, and says so.
    until(lambda: not any(segment['missing'] for log in described(0)['log_list'] for segment in log['segment_list']),
          'every segment has its copies')
    first = until(lambda: (r := rows(0)) and {row[1] for row in r} == {'ok'} and r, 'all owners answer')
    equal(sorted(row[0] for row in first), ['n0', 'n1', 'n2'], 'an owner each')
    equal(sum(row[2] for row in first), 3000, 'records of all')
    equal({row[4:] for row in first}, {(2, 2)})
    for node in (1, 2):
        until(lambda: rows(node) == first, f'node {node} tells the same')
    for told in described(1)['log_list']:
        check(len(told['segment_list']) >= 2, told)
        for segment in told['segment_list']:
            nodes = [c['node'] for c in segment['copies']]
            equal((len(nodes), told['node'] in nodes, segment['missing']), (1, False, 0), segment)
    said = cluster.leat('stream', 'describe', 's', which=[2]).stdout.decode()
    check_in('where the copies lie', said)
    cluster.nodes[2].stand_still()
    done = cluster.leat('stream', 'describe', 's', which=[0])
    os.kill(cluster.nodes[2].process.pid, signal.SIGCONT)
    said = done.stdout.decode()
    check(re.search(r' n2 +unknown +\? +\? +\? +\?\n', said), 'zeros for what is not known:', said)
    check_in('at least ', said)  # the records of the other two logs
    check_in('its state is not known', done.stderr.decode())


def keys(value):
    if isinstance(value, dict):
        return set(value) | keys(list(value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) else set()


def test_the_status_counts_the_streams_that_are_listed():
    cluster = Cluster().start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 2)
    cluster.produce('s', ['x'])
    equal(cluster.consume('s', '-G', 'set', '--from', 'earliest'), ['x'], 'makes a stream of its own')
    check(sum(owned(cluster).values()) > 3, 'which is there:', owned(cluster))
    for i in range(3):
        until(lambda: len(json.loads(cluster.leat('stream', 'list', '--json', which=[i]).stdout)) == 1, 'one is listed')
        status = cluster.status(which=[i])
        equal((status['streams'], status['logs']), (1, 6), f'node {i}')


def test_every_field_of_the_status_is_documented():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--copies', 2)
    cluster.produce('s', ['x'])
    status = until(lambda: (lambda s: s if all((n['report'] or {}).get('peers') for n in s['nodes']) else None)(
        cluster.status()), 'all nodes are heard')
    equal(sorted(n['role'] for n in status['nodes']), ['leader', 'voter', 'voter'])
    with open(os.path.join(os.path.dirname(__file__), '..', '..', 'docs', 'cluster.md')) as page:
        text = page.read()
    shown = keys(status) | {'report_missing', 'why', 'stream', 'log'}
    equal([name for name in sorted(shown) if f'`{name}`' not in text], [])


def test_status_shows_memory_transports_and_logs_that_lack_copies():
    cluster = Cluster(replication='shm', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--copies', 3,
                 '--min-copies', 3, '--durability', 'memory')
    cluster.produce('s', [f'{i}' for i in range(3000)], '--batch-bytes', '1K')
    for i in range(3):
        until(lambda: cluster.leat('cluster', 'status', which=[i], code=None).returncode == 0, 'all is well')
        status = cluster.status(which=[i])
        for used in ('pool_used_bytes', 'replicas_used_bytes'):
            check(sum(node['report'][used] for node in status['nodes']) > 0, used, status)
        for node in status['nodes']:
            report = node['report']
            check(report['pool_limit_bytes'] > 0 and report['replicas_limit_bytes'] > 0, report)
            equal((report['logs'], report['logs_under_replicated'],
                   report['logs_below_min_copies']), (1, 0, 0), f'as node {i} tells of {node}')
            others = sorted({'n0', 'n1', 'n2'} - {node['name']})
            equal(sorted((p['node'], p['transport'], p['up']) for p in report['peers']),
                  [(name, 'shm', True) for name in others])
    check_in('n1 copies to', cluster.leat('cluster', 'status', which=[0]).stdout.decode())
    cluster.nodes[2].kill()
    state_wait(cluster, 2, 'down')
    appender = cluster.leat_start('produce', 's', '--timeout', '120s', which=(0, 1), stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL)
    appender.stdin.write(b''.join(b'more%d\n' % i for i in range(300)))
    appender.stdin.close()

    def lacking():
        nodes = {n['name']: n for n in cluster.status(which=[0], code=1)['nodes']}
        check(nodes['n2']['report'] is None and nodes['n2']['report_missing'], nodes['n2'])
        reports = [nodes[n]['report'] for n in ('n0', 'n1')]
        return all(reports) and all(sum(report[key] for report in reports) == 3 for key in (
            'logs_under_replicated', 'logs_below_min_copies'))
    until(lacking, 'the others, which have all logs now, say that these lack a copy and refuse appends')
    check_in('are refused', cluster.leat('cluster', 'status', which=[0], code=1).stdout.decode())
    cluster.nodes[2].start()
    equal(appender.wait(WAIT_S), 0, appender.stderr.read())
    until(lambda: all(n['report'] and n['report']['logs_below_min_copies'] == 0
                      for n in cluster.status()['nodes']), 'all logs have their copies again')


def copies(transport):
    """Three copies of everything: a backup dies under load, comes back, then the owner dies."""
    cluster = Cluster(replication=transport, **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--logs', 1, '--copies', 3, '--durability', 'memory')
    until(lambda: sum(owned(cluster).values()) == 1, 'all nodes know of it')
    owner = next(i for i in range(3) if owned(cluster)[f'n{i}'] == 1)
    backup = (owner + 1) % 3
    others = [i for i in range(3) if i != backup]
    lines = [f'{i:06d}' for i in range(60000)]
    cluster.produce('s', lines[:20000], which=[owner])
    appender = cluster.leat_start('produce', 's', '--batch-bytes', '1K', which=others, stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL)
    for line in lines[20000:30000]:
        appender.stdin.write(f'{line}\n'.encode())
    appender.stdin.flush()
    cluster.nodes[backup].kill()
    for line in lines[30000:40000]:
        appender.stdin.write(f'{line}\n'.encode())
    appender.stdin.close()
    equal(appender.wait(WAIT_S), 0, appender.stderr.read())
    equal(cluster.consume('s', which=others), lines[:40000], 'while a backup is dead')
    cluster.nodes[backup].start()
    cluster.produce('s', lines[40000:50000])
    cluster.nodes[owner].kill()
    cluster.nodes[owner].start()
    equal(cluster.consume('s'), lines[:50000], 'after the owner was killed')
    cluster.produce('s', lines[50000:])
    equal(cluster.consume('s'), lines)
    for node in cluster.nodes:
        node.stop()
    cluster.start()
    equal(cluster.consume('s'), lines, 'after an orderly stop of all')


def test_three_copies_by_shared_memory():
    copies('shm')


def test_three_copies_by_tcp():
    copies('tcp')


def test_three_copies_by_requests():
    copies('rpc')


def test_one_voter_of_two_nodes_is_no_server_alone():
    cluster = Cluster(nodes=2, voters=1, **PATIENT).start()
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'all is well')
    check_in('others\' copies', cluster.leat('cluster', 'status').stdout.decode())
    cluster.nodes[1].kill()
    until(lambda: cluster.leat('cluster', 'status', which=[0], code=None).returncode == 1, 'a node is down, and that is told')
    check_in('a server alone', Server().start().leat('cluster', 'status').stdout)


def test_wrong_flags_are_named():
    server = Server('--rack', 'r1')
    code, text = server.start_refused()
    equal(code, 2)
    check_in('--coordinators', text)
    server = Server('--coordinators', 'nowhere')
    code, text = server.start_refused()
    equal(code, 2)
    check_in('HOST:PORT', text)
    server = Server('--coordinators', '127.0.0.1:1', '--listen', '0.0.0.0:0')
    code, text = server.start_refused()
    equal(code, 2)
    check_in('--node-listen', text)
    node = ('--coordinators', '127.0.0.1:1', '--node-listen', '127.0.0.1:1')
    for words, said in [(('--listen', '127.0.0.1:0'), 'clients can.t be told 127.0.0.1:0.*--advertise'),
                        (('--listen', '127.0.0.1:1', '--advertise', 'broker.example:0'), 'broker.example:0'),
                        (('--listen', '0.0.0.0:1'), 'clients can.t be told 0.0.0.0:1.*every address'),
                        (('--node-listen', '127.0.0.1:0'), 'other nodes can.t be told.*--node-listen'),
                        (('--rack', 'r\x1b[31m'), '--rack may have no control characters')]:
        code, text = Server(*node, *words).start_refused()
        equal(code, 2)
        check(re.search(said, text), said, text)


if __name__ == '__main__':
    main()
