"""Records given up stay so when their owner dies, twice in a row."""
from cluster import Cluster
from recovery import others, owner
from rig import equal, main, until


def test_what_was_given_up_does_not_come_back_with_another_owner():
    cluster = Cluster(nodes=4, voters=3, recovery='yes').start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 3,
                 '--durability', 'memory', '--segment-bytes', '64K')
    lines = [f'{i:06d}' for i in range(20000)]
    cluster.produce('s', lines, '--batch-bytes', '2K')
    for before in (12345, 20000):  # the second: what is left of the head is a start entry
        done = cluster.leat('stream', 'trim', 's', '--streamlet', 0, '--log', 0, '--before', before)
        equal(done.stdout.decode().split()[-1], str(before))
        victim = until(lambda: owner(cluster), 'somebody serves')[0]
        cluster.nodes[victim].kill()
        left = others(cluster, victim)
        equal(cluster.consume('s', which=left), lines[before:], f'before {before}')
        cluster.nodes[victim].start()
        until(lambda: {n['state'] for n in cluster.status()['nodes']} == {'up'}, 'all are up')
    cluster.produce('s', ['more'])
    equal(cluster.consume('s'), ['more'])


if __name__ == '__main__':
    main()
