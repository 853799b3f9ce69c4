# SPDX-License-Identifier: Apache-2.0
"""Nodes that are hosts of their own: network namespaces joined by a bridge. What cables, disks and
strangers do to a cluster over tcp.

The whole script runs in a network and a mount namespace that it makes for itself, so nothing of it is
seen outside and all of it goes with it. A cable is cut by taking its end at the bridge down: as on a
switch, nobody is told, and connections over it stay half open.
"""
import errno
import json
import os
import signal
import socket
import subprocess

import namespaces
from cluster import Cluster, owned
from rig import LEAT, Server, Skipped, WAIT_S, check, check_in, cluster_key, equal, frame, main, on_end, until

CLIENTS, NODES = 7700, 7701


def ip(*words):
    subprocess.run(['ip', *map(str, words)], check=True, capture_output=True, timeout=WAIT_S)


def tc(*words):
    done = subprocess.run(['tc', *map(str, words)], capture_output=True, timeout=WAIT_S)
    if done.returncode:
        raise Skipped(f'tc: {done.stderr.decode().strip()}')


def need_namespaces():
    namespaces.need()


class FarServer(Server):
    """A server in the namespace of its name."""

    def __init__(self, name, *flags, **more):
        super().__init__(*flags, **more)
        self.name = name

    def command(self, extra=()):
        return ['ip', 'netns', 'exec', self.name] + super().command(extra)


class FarCluster(Cluster):
    made = False

    def __init__(self, nodes=3, voters=3, **flags):
        need_namespaces()
        if not FarCluster.made:
            ip('link', 'set', 'lo', 'up')
            ip('link', 'add', 'bridge', 'type', 'bridge')
            ip('address', 'add', '10.77.0.100/24', 'dev', 'bridge')
            ip('link', 'set', 'bridge', 'up')
            FarCluster.made = True
        self.data = {}
        self.flags = [w for k, v in {'replication': 'tcp', **flags}.items()
                      for w in ('--' + k.replace('_', '-'), v)]
        self.voters = ','.join(f'10.77.0.{i + 1}:{NODES}' for i in range(voters))
        for i in range(nodes):
            self.plug(i)
        self.nodes = [self.node(i) for i in range(nodes)]

    @staticmethod
    def plug(i):
        ip('netns', 'add', f'n{i}')
        on_end(lambda: ip('netns', 'delete', f'n{i}'))
        ip('link', 'add', f'cable{i}', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', f'n{i}')
        on_end(lambda: ip('link', 'delete', f'cable{i}'))  # the namespace goes some time later
        ip('link', 'set', f'cable{i}', 'master', 'bridge', 'up')
        ip('-n', f'n{i}', 'address', 'add', f'10.77.0.{i + 1}/24', 'dev', 'eth0')
        ip('-n', f'n{i}', 'link', 'set', 'lo', 'up')
        ip('-n', f'n{i}', 'link', 'set', 'eth0', 'up')

    def node(self, i, data=None, **other):
        flags = {'node': f'n{i}', 'listen': f'10.77.0.{i + 1}:{CLIENTS}',
                 'node-listen': f'10.77.0.{i + 1}:{NODES}', 'coordinators': self.voters, 'cluster-key': cluster_key(),
                 'host': f'n{i}', 'cores': '1', 'memory': '512M', 'kafka': 'off', **other}
        return FarServer(f'n{i}', *[w for k, v in flags.items() for w in ('--' + k, v)],
                         *self.flags, data=data)

    def brokers(self, *which):
        return ','.join(f'10.77.0.{i + 1}:{CLIENTS}' for i in which or range(len(self.nodes)))

    def administer(self, i, *arguments, code=0):
        """By the Unix socket of a node: its file can be reached from here, unlike its loopback address."""
        return self.leat(*arguments, '-b', f'unix:{self.nodes[i].data}/leatd.sock', code=code)

    def cut(self, i):
        ip('link', 'set', f'cable{i}', 'down')

    def repair(self, i):
        ip('link', 'set', f'cable{i}', 'up')

    def roles(self, copies=3, **settings):
        """A stream of one log; its owner first, then the others."""
        options = [w for k, v in settings.items() for w in ('--' + k.replace('_', '-'), v)]
        create = ('stream', 'create', 's', '--logs', 1, '--copies', copies, '--durability', 'memory', *options)
        until(lambda: self.leat(*create, code=None).returncode == 0, f'{copies} nodes are up')
        until(lambda: sum(owned(self).values()) == 1, 'all nodes know of it')
        owner = next(i for i in range(len(self.nodes)) if owned(self)[f'n{i}'] == 1)
        return owner, *[i for i in range(len(self.nodes)) if i != owner]

    def states(self, which=()):
        return {n['name']: n['state'] for n in self.status(which=which)['nodes']}


class Feed:
    """`leat produce` that is given lines a few at a time."""

    def __init__(self, cluster, which=()):
        self.sent = []
        self.process = cluster.leat_start('produce', 's', '--batch-bytes', '1K', which=which, stdin=subprocess.PIPE,
                                          stdout=subprocess.DEVNULL)

    def lines(self, count):
        new = [f'{len(self.sent) + i:07d}' for i in range(count)]
        self.sent += new
        self.process.stdin.write(''.join(f'{line}\n' for line in new).encode())
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        equal(self.process.wait(WAIT_S), 0, self.process.stderr.read())


def end_offset(cluster, owner):
    log = json.loads(cluster.leat('stream', 'describe', 's', '--json', which=[owner]).stdout)
    return log['log_list'][0]['end_offset']


def test_a_backup_behind_a_cut_cable_is_left_and_taken_back():
    cluster = FarCluster().start()
    owner, backup, other = cluster.roles()
    feed = Feed(cluster, which=[owner, other])
    feed.lines(5000)
    until(lambda: end_offset(cluster, owner) == 5000, 'all acked by three')
    cluster.cut(backup)
    feed.lines(5000)
    until(lambda: end_offset(cluster, owner) == 10000, 'acked by two: enough')
    until(lambda: cluster.states([owner, other])[f'n{backup}'] == 'down', 'it is called down')
    cluster.repair(backup)
    until(lambda: cluster.states([owner, other])[f'n{backup}'] == 'up', 'it is back')
    feed.lines(5000)
    feed.end()
    equal(cluster.consume('s'), feed.sent)
    equal(cluster.consume('s', which=[backup]), feed.sent, 'by way of the one that was away')


def test_an_owner_behind_a_cut_cable_loses_nothing_acked():
    cluster = FarCluster().start()
    owner, *others = cluster.roles()
    feed = Feed(cluster)
    feed.lines(5000)
    until(lambda: end_offset(cluster, owner) == 5000, 'all acked')
    cluster.cut(owner)
    feed.lines(5000)
    until(lambda: cluster.states(others)[f'n{owner}'] == 'down', 'it is called down')
    cluster.repair(owner)
    feed.lines(5000)
    feed.end()
    equal(cluster.consume('s'), feed.sent, 'each line once, in order')


def test_connections_to_a_node_that_died_behind_its_cable_are_given_up():
    cluster = FarCluster().start()
    owner, backup, other = cluster.roles()
    feed = Feed(cluster, which=[owner, other])
    feed.lines(3000)
    until(lambda: end_offset(cluster, owner) == 3000, 'all acked by three')
    cluster.cut(backup)  # its farewell is not heard: the others' connections stay half open
    cluster.nodes[backup].kill()
    feed.lines(3000)
    until(lambda: end_offset(cluster, owner) == 6000, 'acked without it')
    cluster.repair(backup)
    cluster.nodes[backup].start()
    feed.lines(3000)
    feed.end()
    equal(cluster.consume('s'), feed.sent)


def test_a_backup_behind_a_slow_cable_harms_nobody_else():
    cluster = FarCluster().start()
    owner, backup, other = cluster.roles()
    cluster.leat('stream', 'create', 'alone', '--logs', 1, '--copies', 1)
    tc('qdisc', 'add', 'dev', f'cable{backup}', 'root', 'tbf', 'rate', '1mbit', 'burst', '16k',
       'latency', '50ms')
    line = 'x' * 1000
    cluster.leat('produce', 's', '--batch-bytes', '100K', which=[owner, other],
                 input=''.join(f'{i:06d} {line}\n' for i in range(20000)).encode())
    equal(len(cluster.consume('s', which=[owner, other])), 20000)
    check(cluster.nodes[owner].memory_bytes() < 512 << 20, cluster.nodes[owner].memory_bytes())
    cluster.produce('alone', ['still', 'here'], which=[owner, other])
    equal(cluster.consume('alone', which=[owner, other]), ['still', 'here'])
    tc('qdisc', 'del', 'dev', f'cable{backup}', 'root')
    cluster.produce('s', ['last'])
    equal(cluster.consume('s')[-1], 'last')


def test_a_backup_that_stands_still_is_left_and_wakes_up_to_no_harm():
    cluster = FarCluster().start()
    owner, backup, other = cluster.roles()
    feed = Feed(cluster, which=[owner, other])
    feed.lines(3000)
    until(lambda: end_offset(cluster, owner) == 3000, 'all acked by three')
    cluster.nodes[backup].process.send_signal(signal.SIGSTOP)
    feed.lines(3000)
    until(lambda: end_offset(cluster, owner) == 6000, 'acked without it')
    check(cluster.nodes[owner].memory_bytes() < 512 << 20, cluster.nodes[owner].memory_bytes())
    cluster.nodes[backup].process.send_signal(signal.SIGCONT)
    feed.lines(3000)
    feed.end()
    equal(cluster.consume('s'), feed.sent)


def small_disk(size):
    """A file system of its own, gone with the mount namespace."""
    server = Server()  # its directories, and their removal
    os.mkdir(server.data)
    done = subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={size}', 'small', server.data],
                          capture_output=True)
    if done.returncode:
        raise Skipped(f'mount: {done.stderr.decode().strip()}')
    on_end(lambda: subprocess.run(['umount', '-l', server.data], capture_output=True))
    return server.data


def test_a_backup_whose_disk_is_full_is_passed_over():
    cluster = FarCluster(nodes=4)
    small = 3
    cluster.nodes[small] = cluster.node(small, data=small_disk('96m'))
    cluster.start()
    cluster.administer(0, 'node', 'drain', f'n{small}')  # it shall not own the log, only keep copies
    owner, *_ = cluster.roles(segment_bytes='1M')
    cluster.administer(0, 'node', 'undrain', f'n{small}')
    line = 'y' * 1000
    for part in range(4):  # 200 MB in all
        cluster.leat('produce', 's', '--batch-bytes', '100K', which=[owner],
                     input=''.join(f'{part}{i:06d} {line}\n' for i in range(50000)).encode())
    seen = cluster.consume('s', which=[owner])
    equal(len(seen), 200000)
    equal([text[:7] for text in seen], [f'{p}{i:06d}' for p in range(4) for i in range(50000)])
    disk = os.statvfs(cluster.nodes[small].data)
    check(disk.f_bavail * disk.f_frsize < 8 << 20, 'the disk was not filled', disk)
    done = cluster.leat('status', which=[small], code=1)  # it lives and answers, and says so
    check_in('its disk is full', (done.stdout + done.stderr).decode())
    cluster.nodes[small].stop()
    cluster.nodes[small].start()  # and comes back, full as it is
    equal(len(cluster.consume('s', which=[owner])), 200000)


def test_more_heads_than_backups_have_room_for_wait_and_get_it():
    cluster = FarCluster(memory='256M').start()
    done = cluster.leat('bench', 'append', '--producers', 1, '--record-bytes', 160, '--copies', 3, '--logs', 1,
                        '--streamlets', 3000, '--records', 300000, '--json', '-')
    result = json.loads(done.stdout)
    equal((result['records'], result['failed_records']), (300000, 0))
    # Heads are hibernated only where one has waited for half a second: on a fast machine none is.
    for node in cluster.nodes:
        check(node.memory_bytes() < 512 << 20, node.memory_bytes())


def test_what_changes_the_cluster_is_not_taken_from_another_machine():
    cluster = FarCluster().start()
    owner, other, _ = cluster.roles()
    for words in (('node', 'drain', f'n{other}'), ('node', 'replace', f'n{other}'), ('node', 'add-voter', f'n{other}'),
                  ('streamlet', 'move', 's', 0, f'n{other}'), ('log', 'recover', 's', '--accept-loss')):
        said = cluster.leat(*words, which=[owner], code=1).stderr.decode()
        check_in('is not taken from 10.77.0.100:', said)
        check_in(f'-b unix:{os.path.realpath(cluster.nodes[owner].data)}/leatd.sock', said)
    equal(owned(cluster)[f'n{owner}'], 1, 'nothing has moved')
    cluster.produce('s', ['one'])  # what streams are for is everybody's
    # The one who is asked hands it on to the owner: it is where the client is that counts.
    cluster.administer(other, 'streamlet', 'move', 's', 0, f'n{other}')
    until(lambda: owned(cluster)[f'n{other}'] == 1, 'it has moved')
    at = f'10.77.0.{other + 1}:{CLIENTS}'  # its own address is as good as a loopback one
    subprocess.run(['ip', 'netns', 'exec', f'n{other}', LEAT, '-b', at, 'streamlet', 'move', 's', '0', f'n{owner}'],
                   check=True, timeout=WAIT_S)
    until(lambda: owned(cluster)[f'n{owner}'] == 1, 'it is back')
    equal(cluster.consume('s'), ['one'])


def test_strangers_at_the_node_port_are_shown_out():
    cluster = FarCluster().start()
    owner, *_ = cluster.roles()
    hello = frame(1, [1, 1, 'stranger', -1])
    foreign = frame(1, [1, 1, 'n9', 7, bytes(16).decode(), 'node'])
    garbage = bytes(range(256)) * 64
    damaged = bytearray(hello)
    damaged[-1] ^= 1
    huge = (0xffffffff).to_bytes(4, 'little') + hello[4:]
    for what in (hello, foreign, garbage, bytes(damaged), huge, b'GET / HTTP/1.1\r\n\r\n'):
        with socket.create_connection((f'10.77.0.{owner + 1}', NODES), timeout=WAIT_S) as s:
            try:
                s.sendall(what)
                s.shutdown(socket.SHUT_WR)
                while s.recv(1 << 16):
                    pass
            except OSError as error:  # shown out already, while it was still sending or about to say that it is done
                check_in(error.errno, (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN))
    cluster.produce('s', ['one', 'two'])
    equal(cluster.consume('s'), ['one', 'two'])
    equal(set(cluster.states().values()), {'up'})


def enter():
    namespaces.enter('set -e; mkdir -p /run/netns; mount -t tmpfs netns /run/netns')


if __name__ == '__main__':
    enter()
    main(at_once=3)  # nodes that are missed as soon as they are silent, and elections, want processors now and then
