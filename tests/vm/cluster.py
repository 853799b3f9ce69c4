# SPDX-License-Identifier: Apache-2.0
"""A cluster over verbs, on the real RDMA stack of a guest (Soft-RoCE). Run in guests by tests/vm/run.

  cluster.py alone                three nodes in this guest
  cluster.py first|second FIRST SECOND PORT   the two halves of a cluster over two guests: nodes n0 and n2 in the first, which
                                  has the clients too, n1 in the second
"""
import os
import re
import socket
import sys

# Only variables of the name LEAT_... come into a guest.
BUILD = os.environ['LEAT_BUILD']
os.environ['LEATD'], os.environ['LEAT'] = f'{BUILD}/tools/leatd', f'{BUILD}/tools/leat'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'process'))

from accounts import accounts  # noqa: E402
from cluster import Cluster, free_ports, owned  # noqa: E402
import rig  # noqa: E402
from rig import Server, check, cluster_key, equal, until  # noqa: E402

VERBS = 4
ROLES = {'alone': (0, 1, 2), 'first': (0, 2), 'second': (1,)}


def address():
    """Of the card that the device stands on: nodes must be reached there, not on the loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(('10.0.2.250', 9))
        return s.getsockname()[0]


class VerbsCluster(Cluster):
    """Nodes are everywhere; those of `here` are run by this process."""

    def __init__(self, hosts, here, ports):
        self.hosts = hosts
        self.client_ports, self.node_ports = ports[:3], ports[3:]
        self.voters = ','.join(f'{h}:{p}' for h, p in zip(hosts, self.node_ports))
        # An emulated machine stands still for seconds when others work beside it: that is no death.
        self.flags = ['--replication', 'verbs', '--ping-ms', '500', '--suspect-ms', '20000', '--confirm-ms', '10000']
        self.nodes = [self.node(i) if i in here else None for i in range(3)]

    def node(self, i):
        flags = {'node': f'n{i}', 'listen': f'{self.hosts[i]}:{self.client_ports[i]}',
                 'node-listen': f'{self.hosts[i]}:{self.node_ports[i]}', 'coordinators': self.voters, 'cluster-key': cluster_key(),
                 'host': self.hosts[i], 'cores': '1', 'memory': '256M', 'kafka': 'off'}
        return Server(*[w for k, v in flags.items() for w in ('--' + k, v)], *self.flags)

    def start(self, order=None):
        here = [n for n in self.nodes if n]
        for node in here:
            node.launch()
        for node in here:
            node.ready_wait()
        return self

    def brokers(self, *which):
        return ','.join(f'{self.hosts[i]}:{self.client_ports[i]}' for i in which or range(3))


def lines_of(count):
    return [f'{i:06d} {"z" * (i * 37 % 900)}' for i in range(count)]


def load(cluster, stream, count):
    """Into a stream of three logs, one owned by each node; back by way of each node, byte for byte."""
    cluster.leat('stream', 'create', stream, '--streamlets', 3, '--logs', 1, '--copies', 3,
                 '--durability', 'memory', '--segment-bytes', '1M')
    until(lambda: sorted(owned(cluster).values()) == [1, 1, 1], 'each node owns a streamlet')
    lines = lines_of(count)
    cluster.produce(stream, lines, '--batch-bytes', '8K')
    for i in range(3):
        equal(sorted(cluster.consume(stream, which=[i])), lines, f'by way of n{i}')
    one = [f'{i}' for i in range(2000)]
    cluster.leat('produce', stream, '--streamlet', 1, input=''.join(f'{x}\n' for x in one).encode())
    equal(sorted(cluster.consume(stream)), sorted(lines + one))
    return lines + one


def verbs_alone(cluster):
    for i, node in enumerate(cluster.nodes):
        if node is None:
            continue
        equal(accounts(cluster, i)['transports'], 1 << VERBS, f'transports of n{i}')
        check(accounts(cluster, i)['replicated_bytes'] > 1000000, accounts(cluster, i))
        equal(accounts(cluster, i)['cpu_data_path'] + accounts(cluster, i)['cpu_emulation'], 0)


def alone():
    here = address()
    cluster = VerbsCluster([here] * 3, ROLES['alone'], free_ports(6)).start()
    lines = load(cluster, 's', 8000)
    verbs_alone(cluster)
    cluster.nodes[2].kill()
    more = [f'more {i}' for i in range(1000)]
    others = [0, 1]
    until(lambda: {n['name']: n['state'] for n in cluster.status(which=others)['nodes']}['n2'] == 'down',
          'the others notice')
    cluster.nodes[2].start()
    cluster.produce('s', more)
    equal(sorted(cluster.consume('s')), sorted(lines + more), 'after a node was killed and came back')
    for node in cluster.nodes:
        node.stop()


def meet(role, hosts, port):
    """A line of TCP between the two scripts: each step is said by one and awaited by the other."""
    if role == 'first':
        with socket.create_server((hosts[0], port)) as listener:
            listener.settimeout(rig.WAIT_S)
            line, _ = listener.accept()
    else:
        def reach():
            try:
                return socket.create_connection((hosts[0], port), timeout=5)
            except OSError:
                return None
        line = until(reach, 'the first guest answers')
    line.settimeout(rig.WAIT_S * 5)
    return line


def two(role, first, second, port):
    hosts = [first, second, first]
    line = meet(role, hosts, port)
    ports = [port + 1 + i for i in range(6)]
    cluster = VerbsCluster(hosts, ROLES[role], ports).start()
    if role == 'second':
        line.sendall(b'ready')
        equal(line.recv(16), b'look', 'what the first guest said')
        verbs_alone(cluster)
        line.sendall(b'seen')
        equal(line.recv(16), b'end', 'what the first guest said')
        cluster.nodes[1].process.terminate()
        cluster.nodes[1].wait()
        return
    equal(line.recv(16), b'ready', 'what the second guest said')
    load(cluster, 's', 6000)
    verbs_alone(cluster)
    line.sendall(b'look')
    equal(line.recv(16), b'seen', 'what the second guest said')
    line.sendall(b'end')


def main():
    role = sys.argv[1]
    check(re.fullmatch('alone|first|second', role), role)
    try:
        if role == 'alone':
            alone()
        else:
            two(role, sys.argv[2], sys.argv[3], int(sys.argv[4]))
    finally:
        rig._clean()
    print(f'ok cluster over verbs, {role} (Soft-RoCE)')


if __name__ == '__main__':
    main()
