# SPDX-License-Identifier: Apache-2.0
"""Who does not have the cluster's key, at the ports where nodes meet: as one who sends what nodes send, as a leatd of its own,
as many connections. And where the key comes from."""
import os
import re
import select
import shutil
import socket
import stat
import struct
import threading
import time

from cluster import PATIENT, Cluster, free_ports, owned
from rig import WAIT_S, Server, check, check_in, cluster_key, directory, equal, frame, main, on_end, pack, until

HELLO, PING, NONCE = 256, 257, 258
VERSION = 3  # link/link.h
STATE, RAFT, FORM, SUBMIT, DETECT_PING, COLLECT, PULL = 272, 273, 275, 276, 282, 283, 284
ATTACH, AUDIT, SEAL, SETTLE, DATA_WRITE = 320, 326, 327, 328, 340
NOBODY = bytes(16)
NONCE_ANSWER_BYTES = 24 + 1 + 2 + 32
STRANGERS_OF_ADDRESS_MAX = 256  # link/link.h


def hello(name, incarnation=0, purpose=1, cluster=NOBODY, to=-1, tag=b''):
    return frame(HELLO, [VERSION, VERSION, cluster, name, incarnation, 1, purpose, to], payload=tag, version=VERSION)


def hello_old(name, incarnation=0, purpose=1, to=-1):
    return frame(HELLO, [1, 1, NOBODY, name, incarnation, 1, purpose, to])


def record(command):
    entry = pack([1, 10, 0x1234567, 1, command])
    return struct.pack('<I', len(entry)) + entry


def said_to(port, *frames):
    """All that the node answers until it closes the connection, which it has to."""
    answer = b''
    with socket.create_connection(('127.0.0.1', port), timeout=WAIT_S) as s:
        try:
            for one in frames:
                s.sendall(one)
            while piece := s.recv(1 << 16):
                answer += piece
        except (ConnectionResetError, BrokenPipeError):  # closed while we still spoke
            pass
    return answer


def demands(owner, incarnation):
    """What each frame below did to a cluster that believes whoever connects."""
    return {
        'delete a stream': frame(SUBMIT, [], payload=record(pack([1, 3, 's'])), version=VERSION),
        'stop all coordinators': frame(SUBMIT, [], payload=record(pack([1, 1, NOBODY])), version=VERSION),
        'invent a node': frame(SUBMIT, [], payload=record(pack([1, 6, 'ghost', '127.0.0.1:9', 1, '127.0.0.1:9', '', NOBODY])),
                               version=VERSION),
        'burn the terms': frame(RAFT, [1, 1, 7, 8, 1, 2**64 - 1, 0, 0, 0], request=0, version=VERSION),
        'end a node': frame(DETECT_PING, [True, 2, incarnation, True, 1, 1, False], request=0, version=VERSION),
        'fence an owner': frame(COLLECT, [1, 1], payload=pack([[[owner, incarnation]], []]), version=VERSION),
        'connect elsewhere': frame(PULL, [1], payload=pack([[1, 0, 0, 0, 4096, 1, 1, 1, 1, 1, [['n9', '127.0.0.1:9', 7]]]]),
                                   version=VERSION),
        'write as the owner': frame(ATTACH, [], version=VERSION),
    }


def test_what_a_stranger_demands_is_not_even_read():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--logs', 1, '--copies', 3, '--durability', 'memory')
    lines = [f'{i:05d}' for i in range(3000)]
    cluster.produce('s', lines)
    owner = next(f'n{i}' for i in range(3) if owned(cluster)[f'n{i}'])
    before = {n['name']: n['incarnation'] for n in cluster.status()['nodes']}
    for port in cluster.node_ports:
        for what, demand in demands(owner, before[owner]).items():
            for purpose in (1, 2):
                # As it was before there was a key; with a hello of now and no tag or an invented one; behind a nonce.
                greetings = ([hello_old(owner, before[owner], purpose)], [hello(owner, before[owner], purpose)],
                             [hello(owner, before[owner], purpose, tag=bytes(16))], [])
                for greeting in greetings:
                    equal(said_to(port, *greeting, demand), b'', f'{what}: told to a stranger')
                    nonce = frame(NONCE, ['n' * 32], version=VERSION)
                    told = said_to(port, nonce, *greeting, demand)
                    check(len(told) in (0, NONCE_ANSWER_BYTES), what, told)
                    check(not told or struct.unpack_from('<H', told, 4)[0] == NONCE, what, told)
    status = cluster.status()
    equal({n['name']: n['incarnation'] for n in status['nodes']}, before, 'nobody was ended, nobody joined')
    equal({n['state'] for n in status['nodes']}, {'up'})
    cluster.nodes[int(owner[1])].kill()  # what its backups hold is whole
    others = [i for i in range(3) if f'n{i}' != owner]
    equal(until(lambda: (got := cluster.consume('s', which=others)) and len(got) == len(lines) and got,
                'others have taken it over'), lines)
    refusals = sum(len(re.findall(r'link: 127.0.0.1:\d+ was refused', node.node_log())) for node in cluster.nodes)
    check(0 < refusals < 60, f'{refusals} lines of the node logs tell of it')


def test_a_nonce_is_answered_by_another_each_time():
    cluster = Cluster(**PATIENT).start()
    answers = set()
    for _ in range(20):
        with socket.create_connection(('127.0.0.1', cluster.node_ports[0]), timeout=WAIT_S) as s:
            s.sendall(frame(NONCE, ['n' * 32], version=VERSION))
            answer = b''
            while len(answer) < NONCE_ANSWER_BYTES:
                answer += s.recv(1 << 16)
            answers.add(answer[-32:])
    equal(len(answers), 20)


def test_a_node_of_an_older_version_is_not_sent_to_the_port_that_it_is_at():
    cluster = Cluster(1, 1).start()
    said_to(cluster.node_ports[0], frame(HELLO, [1, 1, NOBODY, 'old', 0, 1, 1, -1], payload=bytes(4096)))
    cluster.nodes[0].node_log_wait('its first frame is not that of a node, or of one of an older version')
    check('--node-listen (7701)' not in cluster.nodes[0].node_log(), cluster.nodes[0].node_log())
    equal(said_to(cluster.node_ports[0], frame(NONCE, ['n' * 32], version=VERSION - 1)), b'', 'told to an older node')
    cluster.nodes[0].node_log_wait('it is a node of an older version: upgrade it')


def test_a_leatd_with_another_key_does_not_join_and_both_say_why():
    cluster = Cluster(**PATIENT).start()
    other = os.path.join(directory(), 'other.key')
    ports = free_ports(2)
    evil = cluster.node(0, **{'node': 'evil', 'listen': f'127.0.0.1:{ports[0]}', 'node-listen': f'127.0.0.1:{ports[1]}',
                              'cluster-key': other})
    evil.launch()
    evil.node_log_wait(f'cluster key: made {re.escape(other)}.*need a copy')
    equal(stat.S_IMODE(os.stat(other).st_mode), 0o600)
    evil.node_log_wait('does not let this node in: .*the cluster keys differ .--cluster-key.')
    evil.node_log_wait(r'not ready.* not met: .*the cluster keys differ \(--cluster-key\), or that node is stopping, 127')  # of each
    refused = r'was refused: its proof is wrong: it has another cluster key than this node.*--cluster-key'
    until(lambda: any(re.search(refused, node.node_log()) for node in cluster.nodes), 'a node of the cluster says so, too')
    equal(sorted(n['name'] for n in cluster.status()['nodes']), ['n0', 'n1', 'n2'])
    cluster.leat('stream', 'create', 's', '--streamlets', 4)
    until(lambda: sum(owned(cluster).values()) == 4, 'node 0 knows the streamlets')  # another node may have made them
    evil.kill()
    os.remove(other)
    with open(cluster_key()) as key, open(os.open(other, os.O_WRONLY | os.O_CREAT, 0o600), 'w') as copy:
        copy.write(key.read())
    evil.start()  # with a copy of the right one it is a node as any
    equal(sorted(n['name'] for n in cluster.status()['nodes'] if n['state'] == 'up'), ['evil', 'n0', 'n1', 'n2'])


def test_what_was_in_the_way_of_a_voter_is_over_when_it_is_met():
    """Something else answers at its address while it is down; or it has another key. Each is named by the address."""
    cluster = Cluster(**PATIENT).start()
    until(lambda: cluster.status()['healthy'], 'all is well')
    port = cluster.node_ports[2]
    cluster.nodes[2].stop()
    listener = socket.create_server(('127.0.0.1', port))
    listener.settimeout(0.2)

    def in_the_way():
        try:
            one = listener.accept()[0]
            one.sendall(b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n' + bytes(64))
            one.close()
        except OSError:
            pass
        return f'127.0.0.1:{port} answers with what is no frame of a node' in \
            cluster.leat('cluster', 'status', which=(0,), code=1).stdout.decode()
    until(in_the_way, 'it is named by its address')
    listener.close()
    cluster.nodes[2].start()
    until(lambda: cluster.status(which=(0,))['healthy'] and cluster.status(which=(1,))['healthy'], 'all is well again')
    cluster.leat('cluster', 'status', which=(0,))

    cluster.nodes[2].stop()
    flags, other = cluster.nodes[2].flags, os.path.join(directory(), 'other.key')
    right = list(flags)
    flags[flags.index('--cluster-key') + 1] = other
    cluster.nodes[2].launch()
    until(lambda: re.search(f'127.0.0.1:{port}.*--cluster-key', cluster.leat('cluster', 'status', which=(0,), code=1)
                            .stdout.decode()), 'the keys differ')
    cluster.nodes[2].kill()
    flags[:] = right
    cluster.nodes[2].start()
    until(lambda: cluster.status(which=(0,))['healthy'] and cluster.status(which=(1,))['healthy'], 'all is well again')


class Crowd:
    """Connections that say little or nothing, and come again as soon as they are closed."""

    def __init__(self, ports, count, what):
        self.ports, self.count, self.what = ports, count, what
        self.over, self.made = threading.Event(), 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        on_end(self.end)

    def run(self):
        crowd = {port: [] for port in self.ports}
        while not self.over.is_set():
            for port, here in crowd.items():
                for gone in select.select(here, [], [], 0)[0]:
                    gone.close()
                    here.remove(gone)
                while len(here) < self.count and not self.over.is_set():
                    try:
                        one = socket.create_connection(('127.0.0.1', port), timeout=1)
                        here.append(one)
                        one.sendall(self.what)
                        self.made += 1
                    except OSError:
                        break
            self.over.wait(0.01)  # a pace that leaves the machine to the servers
        for here in crowd.values():
            for one in here:
                one.close()

    def end(self):
        self.over.set()
        self.thread.join()


LARGE = struct.pack('<IHBBIIII', (8 << 20) - 8, HELLO, 1, 0, 1, 1 << 20, 0, 0)


def test_a_client_at_the_port_of_nodes_is_told_where_to_go_by_both_ends():
    node = alone().start()
    address = node.flags[node.flags.index('--node-listen') + 1]
    said = node.leat('-b', address, 'stream', 'list', code=3).stderr
    check_in('is that the port of its --listen (7700)?', said)
    node.node_log_wait(r"was refused: it speaks Leat's own protocol, whose port is that of --listen \(7700\)")


def test_a_crowd_at_the_door_neither_deafens_a_leader_nor_keeps_a_node_away():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--logs', 1, '--copies', 2)
    leader = cluster.leader()
    for what, count in ((b'', 90), (LARGE, 12), (b'', STRANGERS_OF_ADDRESS_MAX + 50), (frame(NONCE, ['n' * 32], version=VERSION), 90)):
        crowd = Crowd(cluster.node_ports, count, what)
        until(lambda: crowd.made >= count, 'all of them are there')
        victim = (leader + 1) % 3
        cluster.nodes[victim].kill()
        begun = time.monotonic()
        cluster.nodes[victim].start()  # ready: it has met a majority
        until(lambda: {n['state'] for n in cluster.status()['nodes']} == {'up'}, 'it is up, whoever is at the door')
        took = time.monotonic() - begun
        check(took < 20, f'{took} s until it was up')
        equal(cluster.leader(), leader, 'nobody was deposed')
        cluster.produce('s', ['one'])
        crowd.end()


# ---- where the key comes from ----

def alone(*flags, **other):
    """A cluster of one node, to look at its start."""
    ports = free_ports(2)
    given = {'node': 'a', 'listen': f'127.0.0.1:{ports[0]}', 'node-listen': f'127.0.0.1:{ports[1]}',
             'coordinators': f'127.0.0.1:{ports[1]}', 'cores': '1', 'memory': '512M', 'kafka': 'off', **other}
    return Server(*[w for k, v in given.items() for w in ('--' + k, v)], *flags)


def test_a_key_that_others_can_read_or_that_is_none_is_refused_by_name():
    path = os.path.join(directory(), 'key')
    for text, mode, said in (('5eed' * 16, 0o644, 'can be read or changed by others: chmod 600'),
                             ('5eed' * 16, 0o620, 'can be read or changed by others'),
                             ('5eed' * 15, 0o600, 'holds no key'), ('', 0o600, 'holds no key'),
                             ('g' * 64, 0o600, 'holds no key'), ('5eed' * 17, 0o600, 'holds no key')):
        with open(path, 'w') as file:
            file.write(text + '\n')
        os.chmod(path, mode)
        code, told = alone(**{'cluster-key': path}).start_refused()
        equal(code, 2)
        check_in(said, told)
        check_in(path, told)
        check('5eed' not in told, 'the key is told', told)
    if os.geteuid() == 0:  # nobody else may give a file away
        with open(path, 'w') as file:
            file.write('5eed' * 16 + '\n')
        os.chmod(path, 0o600)
        os.chown(path, 4711, -1)
        check_in('belongs to another account', alone(**{'cluster-key': path}).start_refused()[1])
    os.remove(path)
    os.mkdir(path)
    check_in('is no file', alone(**{'cluster-key': path}).start_refused()[1])
    missing = os.path.join(directory(), 'nowhere', 'key')
    check_in('nowhere/key: No such file or directory', alone(**{'cluster-key': missing}).start_refused()[1])


def test_a_key_and_a_configuration_may_lie_in_the_data_directory_before_the_first_start():
    data = os.path.join(directory(), 'data')
    os.mkdir(data)
    key, config = os.path.join(data, 'cluster.key'), os.path.join(data, 'leatd.conf')
    shutil.copy(cluster_key(), key)
    with open(config, 'w') as file:
        file.write('log-level = debug\n')
    node = alone(data=data, **{'cluster-key': key})
    code, told = node.start_refused()
    equal(code, 3)
    check_in("has 'leatd.conf' in it and no file", told)
    elsewhere = os.path.join(directory(), 'link')  # the file counts, not what it is called
    os.symlink(data, elsewhere)
    node.start('--config', os.path.join(elsewhere, 'leatd.conf'))
    node.stop()
    node.start()


def test_a_port_that_other_machines_reach_needs_a_key():
    for address in ('192.0.2.1:7701', 'no-such-host.invalid:7701', '[2001:db8::1]:7701'):
        code, told = alone(**{'node-listen': address, 'coordinators': address}).start_refused()
        equal(code, 2)
        check_in(f'other machines reach --node-listen {address}', told)
        check_in('--cluster-key', told)
    code, told = Server('--cluster-key', '/nowhere').start_refused()  # a server alone
    equal(code, 2)
    check_in('--cluster-key is for a node of a cluster', told)


def test_nodes_of_one_account_share_a_key_that_nobody_named():
    state = directory()
    os.environ['XDG_STATE_HOME'] = os.path.join(state, 'made', 'by it')
    on_end(lambda: os.environ.pop('XDG_STATE_HOME'))
    ports = free_ports(6)
    voters = ','.join(f'127.0.0.1:{p}' for p in ports[3:])
    nodes = [alone(**{'node': f'n{i}', 'listen': f'127.0.0.1:{ports[i]}', 'node-listen': f'127.0.0.1:{ports[3 + i]}',
                      'coordinators': voters}) for i in range(3)]
    for node in nodes:  # at once: they must not make three
        node.launch()
    for node in nodes:
        node.ready_wait()
    path = os.path.join(os.environ['XDG_STATE_HOME'], 'leat.key')
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
    equal(os.listdir(os.path.dirname(path)), ['leat.key'], 'nothing is left of the other attempts')
    made = [node for node in nodes if '(made now)' in node.node_log()]
    equal(len(made), 1, 'one of them made it')
    for node in nodes:
        check_in(f"cluster key: {path}, this account's own", node.node_log())


if __name__ == '__main__':
    main()
