# SPDX-License-Identifier: Apache-2.0
"""Nodes that are known by host names alone, and in racks.

The whole script runs in a mount namespace that it makes for itself, where /etc/hosts is its own and
nobody else is asked for a name. All nodes are on this machine, on loopback addresses of their own.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import leftovers
from cluster import Cluster, free_ports, owned
from namespaces import INSIDE
from rig import Server, Skipped, WAIT_S, check, check_in, cluster_key, equal, main, until

NAMES = ['alpha', 'beta', 'gamma', 'delta', 'epsilon']


def need_namespace():
    if os.environ.get('LEAT_NAMES') == 'refused':
        raise Skipped('this account may not make mount namespaces')


class NamedCluster(Cluster):
    def __init__(self, nodes=3, voters=3, racks=None):
        need_namespace()
        self.racks = racks
        self.client_port, self.node_port = free_ports(2)
        self.voters = ','.join(f'{name}:{self.node_port}' for name in NAMES[:voters])
        # Nobody dies here without being killed: a machine that stands still is to move nothing.
        self.flags = ['--ping-ms', '500', '--suspect-ms', '20000', '--confirm-ms', '10000']
        self.known({name: f'127.0.77.{i + 1}' for i, name in enumerate(NAMES)})
        self.nodes = [self.node(i) for i in range(nodes)]

    def known(self, addresses):
        """From now on these names have these addresses, and no others."""
        with open('/etc/hosts', 'w') as file:
            file.write('127.0.0.1 localhost\n' + ''.join(f'{a} {n}\n' for n, a in addresses.items()))

    def node(self, i, **other):
        name = NAMES[i]
        flags = {'node': name, 'listen': f'{name}:{self.client_port}',
                 'node-listen': f'{name}:{self.node_port}', 'coordinators': self.voters, 'cluster-key': cluster_key(),
                 'host': name, 'cores': '1', 'memory': '512M', 'kafka': 'off', **other}
        if self.racks:
            flags['rack'] = self.racks[i]
        return Server(*[w for k, v in flags.items() for w in ('--' + k, v)], *self.flags)

    def brokers(self, *which):
        return ','.join(f'{NAMES[i]}:{self.client_port}' for i in which or range(len(self.nodes)))


def test_host_names_do_in_every_address_and_may_be_told_late_and_move():
    cluster = NamedCluster()
    here = {name: f'127.0.77.{i + 1}' for i, name in enumerate(NAMES[:3])}
    cluster.known({name: here[name] for name in NAMES[:2]})
    for i in (0, 1):
        cluster.nodes[i].launch()
        cluster.nodes[i].node_log_wait('gamma:.* name is not known')  # awaited, and said to be
    cluster.known(here)
    cluster.nodes[2].launch()
    for node in cluster.nodes:
        node.ready_wait()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--copies', 3,
                 '--durability', 'memory')
    until(lambda: sorted(owned(cluster).values()) == [1, 1, 1], 'each node owns a streamlet')
    lines = [f'{i}' for i in range(3000)]
    cluster.produce('s', lines, '--batch-bytes', '1K', which=[1])
    for i in range(3):
        equal(sorted(cluster.consume('s', which=[i])), sorted(lines), f'by way of {NAMES[i]}')
    seen = cluster.leat('cluster', 'status').stdout.decode()
    rows = [line.split()[:4] for line in seen.splitlines() if line.split()[:1] and line.split()[0] in NAMES
            and line.split()[1] == 'up']
    equal(sorted(row[2] for row in rows), ['leader', 'voter', 'voter'], seen)
    equal(sorted(row[3] for row in rows), ['1', '2', '3'], seen)  # incarnations
    # It comes back somewhere else, under its name.
    cluster.nodes[2].stop()
    cluster.known({**here, 'gamma': '127.0.77.33'})
    cluster.nodes[2].start()
    more = [f'more {i}' for i in range(3000)]
    cluster.produce('s', more, '--batch-bytes', '1K', which=[0])
    for i in range(3):
        equal(sorted(cluster.consume('s', which=[i])), sorted(lines + more), f'by way of {NAMES[i]}')
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'all copies are there again')


def places(cluster, stream, which=()):
    """For each segment the nodes that have it, and whether two of them are called too near."""
    out = []
    for log in json.loads(cluster.leat('stream', 'describe', stream, '--json', which=which).stdout)['log_list']:
        for segment in log['segment_list']:
            out.append(([log['node']] + [c['node'] for c in segment['copies']], segment['misplaced']))
    return out


def whole_wait(cluster, stream, copies, which=()):
    """On a busy machine a node that stood still is left, and another copy is made, of an idle log before
    its next ack."""
    def whole():
        if {len(nodes) for nodes, _ in places(cluster, stream, which)} == {copies}:
            return True
        cluster.produce(stream, [f'again {i}' for i in range(1000)], '--batch-bytes', '1K', which=which)
        return False
    until(whole, 'all copies are there')


def test_copies_are_kept_in_different_racks_where_there_are_enough():
    racks = ['r1', 'r1', 'r2', 'r2', 'r3']
    cluster = NamedCluster(nodes=5, racks=racks).start()
    # What is not attached yet can't be chosen.
    until(lambda: [sum(p['up'] and p['transport'] != '' for p in (n['report'] or {'peers': []})['peers'])
                   for n in cluster.status()['nodes']] == [4] * 5, 'each copies to all others')
    rack_of = dict(zip(NAMES, racks))
    cluster.leat('stream', 'create', 's', '--streamlets', 10, '--logs', 1, '--copies', 3,
                 '--durability', 'memory')
    until(lambda: sum(owned(cluster).values()) == 10, 'all nodes know of it')
    cluster.produce('s', [f'{i}' for i in range(4000)], '--batch-bytes', '1K')
    whole_wait(cluster, 's', 3)
    seen = places(cluster, 's')
    equal(len(seen), 10, seen)
    for nodes, misplaced in seen:
        equal((sorted(rack_of[n] for n in nodes), misplaced), (['r1', 'r2', 'r3'], False), nodes)
    # More copies than racks: two share one, and that is said.
    cluster.leat('stream', 'create', 'wide', '--logs', 1, '--copies', 4, '--durability', 'memory')
    until(lambda: sum(owned(cluster).values()) == 11, 'all nodes know of it')
    cluster.produce('wide', [f'{i}' for i in range(100)])
    whole_wait(cluster, 'wide', 4)
    equal([misplaced for _, misplaced in places(cluster, 'wide')], [True])
    check_in('two copies on one host or rack', cluster.leat('cluster', 'status').stdout.decode())
    check_in('two on one host or rack', cluster.leat('stream', 'describe', 'wide').stdout.decode())


def test_copies_on_one_machine_move_when_another_machine_joins():
    cluster = NamedCluster(voters=1)
    cluster.nodes = [cluster.node(i, host='m2' if i == 2 else 'm1') for i in range(3)]
    for node in cluster.nodes[:2]:
        node.launch()
    for node in cluster.nodes[:2]:
        node.ready_wait()
    cluster.leat('stream', 'create', 's', '--logs', 1, '--streamlets', 2, '--copies', 2, '--durability', 'memory',
                 '--segment-bytes', '64K', which=[0])
    until(lambda: sum(owned(cluster).values()) == 2, 'both nodes know of it')
    lines = [f'{i:0100d}' for i in range(10000)]
    cluster.produce('s', lines, '--batch-bytes', '1K', which=[0])
    whole_wait(cluster, 's', 2, which=[0])
    seen = places(cluster, 's', which=[0])
    check(len(seen) > 6 and all(misplaced for _, misplaced in seen), seen)
    check_in('two copies on one host or rack', cluster.leat('cluster', 'status', code=None, which=[0]).stdout.decode())
    cluster.nodes[2].launch()
    cluster.nodes[2].ready_wait()
    # Heads, which nobody writes any more, and closed segments.
    until(lambda: not any(misplaced for _, misplaced in places(cluster, 's', which=[0])), 'none is misplaced')
    until(lambda: 'two copies on one host' not in cluster.leat('cluster', 'status', code=None, which=[0]).stdout.decode(),
          'status says so no more')
    for nodes, _ in places(cluster, 's', which=[0]):
        equal((len(nodes), 'gamma' in nodes), (2, True), nodes)
    equal(sorted(line for line in cluster.consume('s', which=[0]) if 'again' not in line), sorted(lines))


def enter():
    """Again, in a namespace of our own."""
    for inside in (['unshare', '--mount', '--propagation', 'private'],
                   ['unshare', '--user', '--map-root-user', '--mount', '--propagation', 'private']):
        try:
            done = subprocess.run([*inside, 'mount', '--bind', '/etc/hosts', '/etc/hosts'],
                                  capture_output=True, timeout=WAIT_S)
        except OSError:
            break
        if done.returncode == 0:
            os.environ['LEAT_NAMES'] = INSIDE
            os.execvp(inside[0], [*inside, sys.executable, '-B', *sys.argv])
    os.environ['LEAT_NAMES'] = 'refused'


def run():
    files = tempfile.mkdtemp(prefix='leat-names-')
    leftovers.note(files)
    try:
        for name, text in (('hosts', ''), ('nsswitch.conf', 'hosts: files\n')):
            if os.environ['LEAT_NAMES'] == INSIDE:
                with open(f'{files}/{name}', 'w') as file:
                    file.write(text)
                subprocess.run(['mount', '--bind', f'{files}/{name}', f'/etc/{name}'], check=True, timeout=WAIT_S)
        main()
    finally:
        shutil.rmtree(files, ignore_errors=True)


if __name__ == '__main__':
    if os.environ.get('LEAT_NAMES') not in (INSIDE, 'refused'):
        enter()
    run()
