# SPDX-License-Identifier: Apache-2.0
"""The whole cluster loses its power: every process and all that was in memory only is gone at once. Nodes come up
again in any order, one at a time. What was promised to be on disks is there; of what was in memory the cluster
says which logs lack it and why, and an operator goes on without it.

A power cut of one machine is played by kills: the shared memory of the killed is removed, by its exact names, before
anything is started again.
"""
import json
import os
import random
import re
import socket

import leftovers
from cluster import PATIENT, Cluster
from rig import BATCH, CLOSED, START, TRAILER, Failure, check, check_in, node_logs_print, entries, equal, main, until


def power_cut(cluster, which=None):
    nodes = [cluster.nodes[i] for i in which or range(len(cluster.nodes))]
    for node in nodes:
        node.process.kill()
    for node in nodes:
        node.wait()
    for node in nodes:
        for pool in leftovers.pools(node.home):
            os.unlink(pool)


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0


def start_one_by_one(cluster, order):
    """A voter alone can't do anything yet; what it can do is listen to the others."""
    for i in order:
        cluster.nodes[i].launch()
        until(lambda: listens(cluster.node_ports[i]), f'n{i} listens to the others')
    for i in order:
        cluster.nodes[i].ready_wait()


def waiting(cluster, which=()):
    return cluster.status(which=which)['recovery']['waiting_logs']


def nothing_waits(cluster):
    try:
        until(lambda: not waiting(cluster), 'nothing waits any more')
    except Failure as failure:
        node_logs_print(cluster.nodes)
        raise Failure(f'{failure}: {json.dumps(waiting(cluster))}')


def served(cluster, stream, which=()):
    done = cluster.leat('consume', stream, '--until-end', which=which, code=None)
    return done.stdout.decode().splitlines() if done.returncode == 0 else None


def test_disk_streams_lose_nothing_in_whatever_order_the_nodes_come_back():
    dice = random.Random(int(os.environ.get('POWER_SEED', '1')))
    cluster = Cluster(memory='256M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 2, '--copies', 3, '--durability', 'disk')
    lines = []
    for cut in range(2):
        more = [f'{cut}-{i:05d}' for i in range(4000)]
        cluster.produce('s', more, '--batch-bytes', '2K')
        lines += more
        power_cut(cluster)
        order = dice.sample(range(3), 3)
        start_one_by_one(cluster, order)
        equal(sorted(until(lambda: served(cluster, 's'), 'it is served')), lines, f'order {order}')


def test_logs_of_which_nothing_is_left_are_named_whatever_was_appended_last():
    """Nothing was appended since its owner came back: where it ends is a tail record, and bytes of it are nowhere."""
    cluster = Cluster(memory='256M', **PATIENT).start()
    cluster.leat('stream', 'create', 'gone', '--streamlets', 3, '--logs', 1, '--copies', 3, '--durability', 'memory')
    for streamlet in range(3):
        cluster.leat('produce', 'gone', '--streamlet', streamlet, input=b'x\n' * 300)
    cluster.nodes[1].kill()
    cluster.nodes[1].start()
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'it is well again')
    power_cut(cluster)
    start_one_by_one(cluster, [0, 1, 2])

    def told():
        status = cluster.status(code=1)
        logs = [log for node in status['nodes'] for log in (node['report'] or {}).get('troubled_logs', [])]
        return {log['streamlet'] for log in logs + status['recovery']['waiting_logs'] if log['stream'] == 'gone'}
    until(lambda: told() == {0, 1, 2}, 'each of them is named')
    check_in('leat log recover', cluster.leat('cluster', 'status', code=1).stdout.decode())
    for streamlet in range(3):
        until(lambda: cluster.leat('log', 'recover', 'gone', '--streamlet', streamlet, '--accept-loss',
                                   code=None).returncode == 0, 'its loss is accepted')
    until(lambda: cluster.leat('cluster', 'status', code=None).returncode == 0, 'it is well when that is given up')


def acked_by_log(cluster, stream, which=()):
    told = json.loads(cluster.leat('stream', 'describe', stream, '--json', which=which).stdout)
    return {(g['streamlet'], g['log']): g for g in told['log_list']}


def test_memory_streams_are_named_and_go_on_when_their_loss_is_accepted():
    """Streams of level memory whose copies all went: each log that was written to is named, with the reason; the
    disk stream beside them is whole; loss is accepted log by log, and offsets jump ahead."""
    cluster = Cluster(memory='256M', **PATIENT).start()
    cluster.leat('stream', 'create', 'kept', '--streamlets', 2, '--logs', 1, '--copies', 3, '--durability', 'disk')
    cluster.leat('stream', 'create', 'gone', '--streamlets', 2, '--logs', 2, '--copies', 3, '--durability', 'memory')
    lines = [f'{i:05d}' for i in range(4000)]
    for stream in ('kept', 'gone'):
        cluster.produce(stream, lines, '--batch-bytes', '2K')
    told = acked_by_log(cluster, 'gone')
    before = {at: log for at, log in told.items() if log['end_offset'] > 0}
    check(len(before) >= 2, told)
    power_cut(cluster)
    start_one_by_one(cluster, [1, 2, 0])
    equal(sorted(until(lambda: served(cluster, 'kept'), 'it is served')), lines, 'on disks')
    # Exactly those that had something to lose, once every node has been heard.
    all_heard = f'{len(cluster.nodes)} lost the bytes'
    rows = until(lambda: (lambda r: r if r and all(all_heard in row['why'] for row in r) else None)(waiting(cluster)),
                 'what is missing is named')
    equal(sorted((r['stream'], r['streamlet'], r['log']) for r in rows), sorted(('gone', *at) for at in before))
    for row in rows:
        check_in('no open segment', row['why'])
    check_in('gone', cluster.leat('cluster', 'status', code=1).stdout.decode())
    # A reader is told that the end of what is left is none.
    said = cluster.leat('consume', 'gone', '--until-end', code=4).stderr.decode()
    for streamlet, log in before:
        told = re.search(f'stream gone streamlet {streamlet} log {log} could not be read to its end: (.*)', said)
        check(told and 'no open segment' in told.group(1), said)
    equal(len(re.findall('could not be read to its end', said)), len(before), said)
    for streamlet, log in before:
        def accepted():
            done = cluster.leat('log', 'recover', 'gone', '--streamlet', streamlet, '--log', log, '--accept-loss',
                                code=None)
            return done.returncode == 0 and done.stdout.decode()
        until(accepted, 'the loss can be accepted, once all nodes were heard')
    nothing_waits(cluster)
    cluster.produce('gone', ['more1', 'more2'])
    after = acked_by_log(cluster, 'gone')
    for at in before:
        log = after[at]
        check(log['state'] == 'ok' and log['end_offset'] > before[at]['end_offset'], log)
    left = cluster.consume('gone')
    check({'more1', 'more2'} <= set(left) <= set(lines) | {'more1', 'more2'}, left[-3:])
    equal(sorted(cluster.consume('kept')), lines, 'untouched')
    # A second time: whatever was given out after the first jump is not given out again.
    power_cut(cluster)
    start_one_by_one(cluster, [0, 2, 1])
    written = [at for at, log in after.items() if log['end_offset'] > 0]  # some had nothing the first time
    for streamlet, log in written:
        def again():
            done = cluster.leat('log', 'recover', 'gone', '--streamlet', streamlet, '--log', log, '--accept-loss',
                                code=None)
            return done.returncode == 0 or 'nothing is missing' in done.stderr.decode()
        until(again, 'the loss can be accepted again')
    nothing_waits(cluster)
    last = acked_by_log(cluster, 'gone')
    for at in written:
        check(last[at]['end_offset'] >= after[at]['end_offset'], last[at], after[at])
    equal(sorted(until(lambda: served(cluster, 'kept'), 'it is served')), lines, 'untouched again')


def is_well(cluster):
    return cluster.leat('cluster', 'status', code=None).returncode == 0


def one_log(cluster):
    return json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['log_list'][0]


def last_write_damaged(cluster, node, stream):
    """The power goes before a trailer, or the row, says that what came last was acknowledged: (whole up to, end of it)."""
    for attempt in range(10):
        cluster.produce('s', [f'{i:06d}'.ljust(100, '.') for i in range(200)], '--batch-bytes', '4K')
        power_cut(cluster, [cluster.nodes.index(node)])
        row = next(r for r in node.segments(stream) if r['state'] != CLOSED and
                   any(e[0] == START for e in entries(node.segment_bytes(r))))
        *_, batch, last = [e for e in entries(node.segment_bytes(row)) if e[0] in (BATCH, TRAILER)]
        if batch[0] == BATCH and row['prefix_id_bytes'] <= batch[1]:
            node.segment_flip(row, batch[1] + 32 + batch[2] // 2)
            return row['segment'], batch[3]
        node.launch()
        node.ready_wait()
        until(lambda: is_well(cluster), 'all three are up')
    raise Failure('each power cut came too late')


def test_what_a_node_passes_over_of_a_log_of_one_copy_is_a_note_of_the_cluster():
    cluster = Cluster(**PATIENT).start()
    until(lambda: is_well(cluster), 'all three are up')
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 1, '--durability', 'disk')
    stream = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['id']
    node = cluster.nodes[int(one_log(cluster)['node'][1:])]
    segment, offset = last_write_damaged(cluster, node, stream)
    for _ in range(2):
        node.launch()
        node.ready_wait()
        until(lambda: one_log(cluster)['state'] == 'ok', 'its log is served')
        passed = one_log(cluster)['passed_over']
        equal((passed['segments'], passed['last_segment'], passed['end_offset']), (1, segment, offset))
        words = f'at least {passed["bytes"]} bytes behind offset {offset}, the end of segment {segment}'
        for i in range(len(cluster.nodes)):  # each hears of the node that has just started in its own time
            until(lambda: words in cluster.leat('cluster', 'status', which=[i], code=1).stdout.decode(), words)
        node.stop()
    node.launch()
    node.ready_wait()
    until(lambda: one_log(cluster)['state'] == 'ok', 'its log is served')
    # It goes with the log, also where its new owner starts anew, until it was seen; and comes back with nobody.
    other = cluster.nodes[(cluster.nodes.index(node) + 1) % 3]

    def moved(to):
        name = f'n{cluster.nodes.index(to)}'
        until(lambda: cluster.leat('streamlet', 'move', 's', 0, name, code=None).returncode == 0, 'its log moves')
        until(lambda: (one_log(cluster)['node'], one_log(cluster)['state']) == (name, 'ok'), 'it has moved')
    moved(other)
    equal(one_log(cluster)['passed_over'], passed, 'at its new owner')
    other.stop()
    other.launch()
    other.ready_wait()
    until(lambda: one_log(cluster)['state'] == 'ok', 'its log is served')
    equal(one_log(cluster)['passed_over'], passed, 'after a start of its new owner')
    until(lambda: cluster.leat('log', 'recover', 's', '--accept-loss', code=None).returncode == 0, 'the note is seen')
    equal(one_log(cluster)['passed_over'], None)
    moved(node)
    equal(one_log(cluster)['passed_over'], None, 'where it was first')
    until(lambda: is_well(cluster), 'it is well again')


if __name__ == '__main__':
    main()
