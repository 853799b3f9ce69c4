# SPDX-License-Identifier: Apache-2.0
"""Records given up stay so when their owner dies, twice in a row; and what was left stays when the log goes elsewhere."""
import json
import re

from cluster import PATIENT, Cluster
from power import nothing_waits, power_cut
from recovery import others, owner
from rig import CLOSED, RESERVED, WAIT_S, check, equal, main, until


def test_what_was_given_up_does_not_come_back_with_another_owner():
    cluster = Cluster(nodes=4, voters=3, **PATIENT).start()
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


def described(cluster):
    told = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)
    return told['id'], told['log_list'][0]


def end_is_lost(cluster, stream_id):
    """The power goes, and what the disks have of the newest segment can't be read. Its id."""
    power_cut(cluster)
    newest = max(row['segment'] for node in cluster.nodes for row in node.segments(stream_id)
                 if row['state'] != RESERVED)
    for node in cluster.nodes:
        for row in node.segments(stream_id):
            if row['segment'] == newest:
                check(row['state'] != CLOSED, row)
                node.segment_flip(row, 40)
    return newest


def would_be_kept(cluster):
    """The last offset that is left, as an operator is told before a loss is accepted."""
    done = cluster.leat('log', 'recover', 's', code=None)
    said = done.stderr.decode()
    told = re.search(r'(?:up to offset (\d+) \(in segment \d+\)|offsets 0 to (\d+)) would be kept, .*; missing: ', said)
    if not told:
        return None
    equal(done.returncode, 2, said)
    return int(told.group(1) or told.group(2))


def left_wherever_the_log_goes(copies):
    """Nothing names the segment before a jump: a new owner that has none of it asks the others."""
    cluster = Cluster(nodes=4, voters=3, **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', copies,
                 '--durability', 'disk', '--segment-bytes', '16K')
    cluster.produce('s', [f'{i:06d} {"x" * 50}' for i in range(5000)], '--batch-bytes', '1K')
    lost = end_is_lost(cluster, described(cluster)[0])
    cluster.start()
    kept = until(lambda: would_be_kept(cluster), 'what would be kept is told')
    said = cluster.leat('consume', 's', '--until-end', code=4)
    check('nothing is there' not in said.stderr.decode(), said.stderr)
    check(said.stdout or re.search('nothing of it can be read now .*leat log recover s --streamlet 0 --log 0',
                                   said.stderr.decode()), said.stderr)
    equal(would_be_kept(cluster), kept, 'asking gives nothing up')
    until(lambda: cluster.leat('log', 'recover', 's', '--accept-loss', code=None).returncode == 0,
          'the loss is accepted')
    nothing_waits(cluster)
    cluster.produce('s', ['more'])
    left = cluster.consume('s')
    check(len(left) > 3000 and left[-1] == 'more', len(left), left[-1])
    equal(len(left) - 1, kept + 1, 'as was told')
    log = described(cluster)[1]
    has = {log['node']} | {copy['node'] for segment in log.get('segment_list', []) if segment['segment'] == lost - 1
                           for copy in segment['copies']}
    target = next(name for name in ('n0', 'n1', 'n2', 'n3') if name not in has)
    cluster.leat('streamlet', 'move', 's', 0, target)
    equal(cluster.consume('s'), left, f'{copies} copies, on {target}, which had none of it')


def test_what_was_left_in_one_copy_is_there_wherever_the_log_goes():
    left_wherever_the_log_goes(1)


def test_what_was_left_in_two_copies_is_there_wherever_the_log_goes():
    left_wherever_the_log_goes(2)


def test_what_was_left_waits_for_nodes_that_are_down():
    """Those that are up have older ones: nothing in between is taken for gone."""
    cluster = Cluster(nodes=5, voters=5, **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 2,
                 '--durability', 'disk', '--segment-bytes', '16K')
    cluster.produce('s', [f'{i:06d} {"x" * 50}' for i in range(10000)], '--batch-bytes', '1K')
    lost = end_is_lost(cluster, described(cluster)[0])
    cluster.start()
    until(lambda: cluster.leat('log', 'recover', 's', '--accept-loss', code=None).returncode == 0, 'the loss is accepted')
    nothing_waits(cluster)
    cluster.produce('s', ['more'])
    wanted = cluster.consume('s') + ['again', 'another']
    check(len(wanted) > 8000, len(wanted))
    log = described(cluster)[1]
    backup = next(copy['node'] for segment in log['segment_list'] if segment['segment'] == lost - 1
                  for copy in segment['copies'])
    dead = [int(name[1]) for name in (backup, log['node'])]
    left = [i for i in range(5) if i not in dead]
    cluster.nodes[dead[0]].kill()
    cluster.produce('s', ['again'], which=left + dead[1:])  # its place is taken by one that has no copy of the newest left
    cluster.nodes[dead[1]].kill()
    until(lambda: cluster.leat('produce', 's', which=left, code=None, input=b'another\n').returncode == 0,
          'another node serves it')
    reader = cluster.leat_start('consume', 's', '--until-end', which=left)
    for i in dead:
        cluster.nodes[i].launch()
    for i in dead:
        cluster.nodes[i].ready_wait()
    out, error = reader.communicate(timeout=WAIT_S)
    equal(reader.returncode, 0, error.decode())
    equal(out.decode().splitlines(), wanted)


if __name__ == '__main__':
    main()
