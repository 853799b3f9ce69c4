# SPDX-License-Identifier: Apache-2.0
"""What replication costs, as the servers count it: requests, bytes and CPU of each node."""
import json

from cluster import PATIENT, Cluster, owned
from rig import Raw, STATUS, check, equal, main, until

NAMES = ('transports cpu_cores cpu_replicate cpu_data_path cpu_emulation cpu_control cpu_flush cpu_zeroing '
         'replicated_bytes writes segments control_rpcs open_rpcs hibernate_rpcs resume_rpcs flush_rpcs '
         'other_rpcs lost_backups replaced_copies own_buffers copy_buffers').split()
KINDS = {'rpc': 1, 'tcp': 2, 'shm': 3}


def accounts(cluster, node):
    raw = Raw(cluster.nodes[node])
    _, answer, _ = raw.call(STATUS, [])
    raw.socket.close()
    return dict(zip(NAMES, answer[12]))


def loaded(transport, durability='memory', **flags):
    """A stream with three copies and a few segments; gives the cluster, its owner and what the
    benchmark said."""
    cluster = Cluster(replication=transport, **PATIENT, **flags).start()
    cluster.leat('stream', 'create', 's', '--logs', 1, '--copies', 3, '--durability', durability,
                 '--segment-bytes', '1M')
    until(lambda: sum(owned(cluster).values()) == 1, 'all nodes know of it')
    owner = next(i for i in range(3) if owned(cluster)[f'n{i}'] == 1)
    done = cluster.leat('bench', 'append', '--stream', 's', '--producers', 2, '--records', 200000,
                        '--copies', 3, '--replication', transport, '--json', '-')
    return cluster, owner, json.loads(done.stdout)


def undisturbed(transport):
    """The counts hold when nothing fails: where this machine stood still so long that a copy was given up, again."""
    for _ in range(5):
        cluster, owner, result = loaded(transport)
        if accounts(cluster, owner)['replaced_copies'] == 0:
            break
    return cluster, owner, result


def requests(transport):
    cluster, owner, result = undisturbed(transport)
    # A close is asked for when its bytes are everywhere: it may still be on its way.
    quiet = until(lambda: (a := accounts(cluster, owner)) and
                  a['control_rpcs'] - a['open_rpcs'] == 2 * a['segments'] and a,
                  'each closed segment has had one close at each backup')
    check(quiet['segments'] >= 20, quiet)
    # What is open now, the head and at most one segment reserved ahead, has had one open at each.
    still = quiet['open_rpcs'] - 2 * quiet['segments']
    check(still in (2, 4), quiet)
    for name in ('hibernate_rpcs', 'resume_rpcs', 'flush_rpcs', 'lost_backups', 'replaced_copies'):
        equal(quiet[name], 0, name)
    check(quiet['replicated_bytes'] >= 2 * 200000 * 100, quiet)
    equal(quiet['transports'], 1 << KINDS[transport])
    equal(result['transports'], [transport])
    for key in ('segments', 'control_rpcs', 'replicated_bytes'):
        check(0 < result[key] <= quiet[key], key, result)
    equal({n['name'] for n in result['nodes']}, {'n0', 'n1', 'n2'})
    equal([n['appended_records'] for n in result['nodes'] if n['name'] == f'n{owner}'], [200000])
    return result['cpu_seconds']


def test_memory_by_shm_takes_two_requests_per_segment_and_backup_and_no_cpu_there():
    cpu = requests('shm')
    equal((cpu['backup_data_path'], cpu['emulation']), (0, 0))
    check(cpu['append'] > cpu['replicate'] > 0, cpu)


def test_memory_by_rpc_takes_two_requests_per_segment_and_backup_and_cpu_there():
    cpu = requests('rpc')
    check(cpu['backup_data_path'] > 0, cpu)
    equal(cpu['emulation'], 0)


def test_memory_by_tcp_takes_two_requests_per_segment_and_backup_and_emulates_a_card():
    cpu = requests('tcp')
    check(cpu['emulation'] > 0, cpu)
    equal(cpu['backup_data_path'], 0)


def test_disk_counts_its_flushes_apart():
    cluster, owner, result = loaded('shm', 'disk')
    check(result['flush_rpcs'] > 0, result)
    until(lambda: (a := accounts(cluster, owner))['control_rpcs'] - a['open_rpcs'] ==
          2 * a['segments'], 'each closed segment has had one close at each backup')


def test_hibernates_are_counted_apart():
    cluster, owner, _ = loaded('shm', hibernate_after='1')
    hibernated = until(lambda: (a := accounts(cluster, owner))['hibernate_rpcs'] and a, 'it hibernates')
    equal(hibernated['resume_rpcs'], 0)
    cluster.produce('s', ['one more'])
    after = accounts(cluster, owner)
    # Resumed at both, or, where it was large, rolled.
    check(after['resume_rpcs'] == 2 or after['open_rpcs'] > hibernated['open_rpcs'], hibernated, after)


def test_another_transport_than_the_named_one_is_not_measured():
    cluster = Cluster(replication='tcp', **PATIENT).start()
    done = cluster.leat('bench', 'append', '--producers', 1, '--records', 1000, '--copies', 2,
                        '--replication', 'shm', code=1)
    check(b'tcp, not shm' in done.stderr, done.stderr)


if __name__ == '__main__':
    main()
