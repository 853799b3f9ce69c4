# SPDX-License-Identifier: Apache-2.0
"""The RDMA device is taken away under a whole cluster. Run in a guest by tests/vm/run.

Each node has a /dev/shm of its own, as on hosts of their own, so that transport shm does not come into it.

  auto    with `--replication auto` the nodes use verbs; the device goes while a producer runs: they go on over tcp
  verbs   with `--replication verbs` nothing is acknowledged any more, nothing hangs, and what was acknowledged is there when the nodes
          start again with another transport
"""
import json
import os
import socket
import subprocess
import sys

BUILD = os.environ['LEAT_BUILD']
os.environ['LEATD'], os.environ['LEAT'] = f'{BUILD}/tools/leatd', f'{BUILD}/tools/leat'
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'process'))

from accounts import accounts  # noqa: E402
from cluster import Cluster, owned  # noqa: E402
from copies import same_on_all_nodes  # noqa: E402
from recovery import Load  # noqa: E402
import rig  # noqa: E402
from rig import LEAT, Server, check, cluster_key, equal, until  # noqa: E402

TCP, VERBS = 1 << 2, 1 << 4


def address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(('10.0.2.250', 9))
        return s.getsockname()[0]


class ApartServer(Server):
    """Sees nothing of the shared memory of others."""

    def command(self, extra=()):
        alone = 'mount -t tmpfs -o size=600m shm /dev/shm && exec "$@"'
        return ['unshare', '--mount', 'sh', '-c', alone, 'sh'] + super().command(extra)


class ApartCluster(Cluster):
    def __init__(self, replication):
        self.host = address()
        super().__init__(replication=replication, ping_ms='500', suspect_ms='20000', confirm_ms='10000')

    def node(self, i, **other):
        self.voters = ','.join(f'{self.host}:{p}' for p in self.node_ports)
        flags = {'node': f'n{i}', 'listen': f'{self.host}:{self.client_ports[i]}',
                 'node-listen': f'{self.host}:{self.node_ports[i]}', 'coordinators': self.voters, 'cluster-key': cluster_key(),
                 'cores': '1', 'memory': '256M', 'kafka': 'off', **other}
        return ApartServer(*[w for k, v in flags.items() for w in ('--' + k, v)], *self.flags)

    def brokers(self, *which):
        return ','.join(f'{self.host}:{self.client_ports[i]}' for i in which or range(3))

    def transports(self):
        return [accounts(self, i)['transports'] for i in range(3)]

    def made(self, stream):
        self.leat('stream', 'create', stream, '--streamlets', 3, '--logs', 1, '--copies', 3, '--durability', 'memory',
                  '--segment-bytes', '256K')
        until(lambda: sorted(owned(self).values()) == [1, 1, 1], 'each node owns a streamlet')
        return json.loads(self.leat('stream', 'describe', stream, '--json').stdout)['id']


def device_delete():
    """Not waited for here: Soft-RoCE's removal ends when all processes have closed the device."""
    return subprocess.Popen(['rdma', 'link', 'delete', 'rxe0'])


def device_back(removal):
    equal(removal.wait(rig.WAIT_S), 0, 'end of the removal')
    equal(subprocess.run(['rdma', 'link', 'add', 'rxe0', 'type', 'rxe', 'netdev', 'eth0']).returncode, 0, 'the device is back')


def ended(cluster, stream_id):
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'all copies are in place')
    for node in cluster.nodes:
        node.stop()
    return same_on_all_nodes(cluster.nodes, stream_id, 3)[0]


def auto():
    cluster = ApartCluster('auto').start()
    stream_id = cluster.made('s')
    load = Load(cluster, 's', pace_s=0.1)
    until(lambda: cluster.transports() == [VERBS] * 3 and load.count > 3000, 'all go over verbs')
    removal = device_delete()
    until(lambda: cluster.transports() == [TCP] * 3, 'all go over tcp')
    begun = load.count
    until(lambda: load.count > begun + 3000, 'the producer goes on')
    lines = load.end()
    for i in range(3):
        equal(sorted(cluster.consume('s', which=[i])), lines, f'by way of n{i}')
    print(f'{len(lines)} records over verbs, then tcp; {ended(cluster, stream_id)} segments the same on all nodes')
    device_back(removal)


def verbs():
    cluster = ApartCluster('verbs').start()
    stream_id = cluster.made('s')
    lines = [f'{i:06d} {"y" * (i * 13 % 300)}' for i in range(3000)]
    cluster.produce('s', lines, '--batch-bytes', '4K')
    equal(cluster.transports(), [VERBS] * 3)
    removal = device_delete()
    until(lambda: cluster.transports() == [0] * 3, 'no node reaches the memory of another')
    check(cluster.leat('cluster', 'status', code=None).returncode == 1, 'the status says that copies lack')
    # Refused by name, for as long as it is told to try; nothing of it counts as appended.
    more = ''.join(f'more {i}\n' for i in range(200)).encode()
    done = subprocess.run([LEAT, 'produce', 's', '--timeout', '5s'], input=more, capture_output=True, timeout=rig.WAIT_S,
                          env=dict(os.environ, LEAT_BROKERS=cluster.brokers()))
    check(done.returncode != 0, f'it was acknowledged: {done.stderr}')
    print(done.stderr.decode().strip()[-300:])
    for i in range(3):
        equal(sorted(cluster.consume('s', which=[i])), lines, f'read by way of n{i} while nothing can be appended')
    for node in cluster.nodes:
        node.stop()
        node.flags[node.flags.index('--replication') + 1] = 'tcp'
    cluster.start()
    found = cluster.consume('s')
    rest = sorted(set(found) - set(lines))
    equal(sorted(x for x in found if not x.startswith('more')), lines, 'what was acknowledged')
    check(len(set(found)) == len(found) and all(x.startswith('more ') for x in rest), rest[:20])
    cluster.produce('s', ['after'])
    equal(sorted(cluster.consume('s')), sorted(found + ['after']))
    print(f'{len(lines)} records acknowledged over verbs are there over tcp, {len(rest)} of the 200 refused ones too; '
          f'{ended(cluster, stream_id)} segments the same on all nodes')
    device_back(removal)


def main():
    place = '/mnt'
    subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=800m', 'data', place], check=True)
    os.environ['LEAT_TEST_DIR'] = place
    for part in (auto, verbs):
        try:
            part()
        finally:
            rig._clean()
        print(f'ok device taken away under a cluster, {part.__name__} (Soft-RoCE)', flush=True)


if __name__ == '__main__':
    main()
