# SPDX-License-Identifier: Apache-2.0
"""Streamlets that are handed from node to node while producers and consumers go on."""
import json
import os
import signal
import subprocess
import threading

from cluster import PATIENT, Cluster, owned
from rig import CLOSED, PING, START, STREAM_DELETE, WAIT_S, Raw, check, check_in, entries, equal, main, until


class Load:
    """A producer that is fed lines until it is told to stop: one stream's records, in one order."""

    def __init__(self, cluster, stream, *options):
        self.lines = []
        self.process = cluster.leat_start('produce', stream, '--batch-bytes', '2K', *options, stdin=subprocess.PIPE)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.feed, daemon=True)
        self.thread.start()

    def feed(self):
        try:
            while not self.over.wait(0.002):  # a pace that leaves the machine to the servers
                new = [f'{i:08d}' for i in range(len(self.lines), len(self.lines) + 200)]
                self.process.stdin.write(''.join(f'{line}\n' for line in new).encode())
                self.process.stdin.flush()
                self.lines += new
        except BrokenPipeError:
            pass

    def grown_wait(self, count):
        wanted = len(self.lines) + count
        until(lambda: len(self.lines) >= wanted or self.process.poll() is not None,
              'the producer goes on')
        check(self.process.poll() is None, 'the producer has ended')

    def end(self):
        self.over.set()
        self.thread.join(WAIT_S)
        out, error = self.process.communicate(timeout=WAIT_S)
        equal(self.process.returncode, 0, error.decode()[-2000:])
        return self.lines


def moves_under_load(copies, durability, rounds=6):
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', copies,
                 '--durability', durability, '--segment-bytes', '256K')
    load = Load(cluster, 's')
    load.grown_wait(4000)
    for i in range(rounds):
        cluster.leat('streamlet', 'move', 's', 0, f'n{i % 3}')
        load.grown_wait(4000)
    lines = load.end()
    equal(cluster.consume('s'), lines, f'{rounds} moves with {copies} copies, {durability}')
    return cluster, lines


def test_one_copy_moves_and_nothing_is_lost_or_doubled():
    moves_under_load(1, 'memory')


def test_two_copies_on_disk_move():
    moves_under_load(2, 'disk')


def test_three_copies_move_and_survive_a_restart():
    cluster, lines = moves_under_load(3, 'memory')
    for node in cluster.nodes:
        node.stop()
    cluster.start()
    equal(cluster.consume('s'), lines, 'after a restart of all')


def test_a_consumer_goes_on_through_moves():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1, '--copies', 2)
    load = Load(cluster, 's')
    load.grown_wait(1000)
    reader = cluster.leat_start('consume', 's', '--max-records', '30000')
    for i in range(6):
        cluster.leat('streamlet', 'move', 's', i % 3, f'n{(i + i // 3 + 1) % 3}')
        load.grown_wait(5000)
    out, error = reader.communicate(timeout=WAIT_S)
    equal(reader.returncode, 0, error.decode())
    lines = load.end()
    seen = out.decode().splitlines()
    equal(len(seen), 30000)
    equal(len(set(seen)), 30000, 'each once')
    equal(sorted(cluster.consume('s')), lines)
    # A move is no news for who reads; each of the six may be told of once, on a busy machine.
    check(error.decode().count('ask for metadata again') <= 6, error.decode())


def test_records_given_up_stay_so_at_every_owner():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 2, '--segment-bytes', '64K')
    lines = [f'{i:06d}' for i in range(30000)]
    cluster.produce('s', lines, '--batch-bytes', '2K')
    first = 0
    for i in range(4):
        first += 4321
        trim = ('stream', 'trim', 's', '--streamlet', 0, '--log', 0, '--before', first)
        check_in(f'begins at offset {first}', cluster.leat(*trim, which=[i % 3]).stdout.decode())
        equal(cluster.consume('s'), lines[first:], f'before move {i}')
        cluster.leat('streamlet', 'move', 's', 0, f'n{i % 3}')
        equal(cluster.consume('s'), lines[first:], f'after move {i}')
    trim = ('stream', 'trim', 's', '--streamlet', 0, '--log', 0, '--before', 'end')
    check_in('begins at offset 30000', cluster.leat(*trim).stdout.decode())
    cluster.leat('streamlet', 'move', 's', 0, 'n1')
    equal(cluster.consume('s'), [])
    cluster.produce('s', ['more'])
    equal(cluster.consume('s'), ['more'])


def first_of_a_run(node, stream):
    """A closed segment that lies there, and the one before it does not."""
    closed = {row['segment']: row for row in node.segments(stream) if row['state'] == CLOSED}
    return next((row for segment, row in closed.items() if segment > 0 and segment - 1 not in closed), None)


def test_a_damaged_start_on_the_new_owner_costs_nothing():
    """The chain back to the older segments is broken there: the segment comes from another node, and what is in front of it stays
    where it is."""
    cluster = Cluster(scrub='0', **PATIENT).start()  # which would find it, too, and have it made good
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 2, '--durability', 'disk',
                 '--segment-bytes', '64K')
    stream = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['id']
    cluster.leat('streamlet', 'move', 's', 0, 'n1')
    lines, at = [], None
    while at is None:
        check(len(lines) < 500000, 'one node has all segments')
        new = [f'{i:06d}' for i in range(len(lines), len(lines) + 20000)]
        cluster.produce('s', new, '--batch-bytes', '2K')
        lines += new
        at = next((i for i in (0, 2) if first_of_a_run(cluster.nodes[i], stream)), None)
    node = cluster.nodes[at]
    node.stop()
    row = first_of_a_run(node, stream)
    start = next(e for e in entries(node.segment_bytes(row)) if e[0] == START)
    node.segment_flip(row, start[1] + 32 + 8)
    node.start()
    # Its owner may hear last that the node is up.
    until(lambda: cluster.leat('streamlet', 'move', 's', 0, f'n{at}', code=None).returncode == 0, 'it goes there')
    equal(cluster.consume('s'), lines, 'at the node with the damage')
    check_in("can't be read here", node.node_log())
    cluster.leat('streamlet', 'move', 's', 0, f'n{2 - at}')
    equal(cluster.consume('s'), lines, 'at the next owner')


def test_a_drained_node_gives_its_streamlets_away():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 6, '--logs', 1, '--copies', 2)
    lines = [f'{i:06d}' for i in range(20000)]
    cluster.produce('s', lines, '--batch-bytes', '2K')
    cluster.leat('node', 'drain', 'n1')
    until(lambda: owned(cluster)['n1'] == 0, 'n1 is empty')
    equal(sorted(cluster.consume('s')), lines)
    cluster.leat('node', 'undrain', 'n1')
    until(lambda: {n['state'] for n in cluster.status()['nodes']} == {'up'}, 'n1 is back')
    check_in('moved', cluster.leat('stream', 'rebalance', 's').stdout.decode())
    until(lambda: owned(cluster)['n1'] >= 2, 'n1 has some again')
    for node in ('n2', 'n0'):
        cluster.leat('node', 'drain', node)
    refused = cluster.leat('node', 'drain', 'n1', code=1).stderr.decode()
    check_in("node 'n1' is the last that is not drained", refused)
    check_in('leat node undrain', refused)
    cluster.leat('stream', 'create', 't')
    equal(sorted(cluster.consume('s')), lines)


LOCATE, LOCATE_OFFSET, STARTING = 10, 3, 7


def stopped(client, stream):
    """Its owner says of both logs of streamlet 0 that it serves them no more."""
    flags, rows, _ = client.call(LOCATE, [[[stream, 0, log, LOCATE_OFFSET, 0] for log in (0, 1)]])
    return flags == 1 and all(row[0] == STARTING for row in rows)


def delete_amid_move(cluster):
    """While the leader stands still the deletion waits with the owner, and behind it the move, whose log has stopped.
    True: so it was. Where another leader is quicker than the move, that finds no stream."""
    leader = cluster.leader()
    owner, target = (i for i in range(3) if i != leader)
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 2, '--copies', 1, '--durability', 'memory')
    cluster.produce('s', [f'{n:06d}' for n in range(10000)])
    until(lambda: cluster.leat('streamlet', 'move', 's', 0, f'n{owner}', code=None).returncode == 0, 'it moves')
    until(cluster.nodes[owner].rows, 'there is something')
    stream = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['id']
    client, other = Raw(cluster.nodes[owner]), Raw(cluster.nodes[owner])
    os.kill(cluster.nodes[leader].process.pid, signal.SIGSTOP)
    try:
        client.send(STREAM_DELETE, ['s'])
        client.send(PING, [])
        client.answer()  # of the ping: the deletion, which came before it, is on its way to the leader
        move = cluster.leat_start('streamlet', 'move', 's', 0, f'n{target}', which=[owner])
        until(lambda: move.poll() is not None or stopped(other, stream), 'the move has stopped the logs')
    finally:
        os.kill(cluster.nodes[leader].process.pid, signal.SIGCONT)
    refused = move.communicate(timeout=WAIT_S)[1].decode()
    equal(client.answer()[0], 1, 'it is deleted')
    until(lambda: not any(node.rows() for node in cluster.nodes), 'nothing is left of it')
    return 'any more' in refused


def test_a_stream_deleted_while_it_moves_leaves_nothing():
    cluster = Cluster(**PATIENT).start()
    check(any(delete_amid_move(cluster) for _ in range(10)), 'no deletion met a move')


def test_a_node_that_has_just_joined_has_met_others_before_it_is_given_anything():
    """Else a streamlet of two copies would take no appends until that node has memory on another one."""
    cluster = Cluster(nodes=4, voters=3, memory='512M', **PATIENT)
    for node in cluster.nodes[:3]:
        node.launch()
    for node in cluster.nodes[:3]:
        node.ready_wait()
    old = range(3)
    cluster.leat('stream', 'create', 's', '--streamlets', 4, '--copies', 2, '--min-copies', 2, '--logs', 1, which=old)
    cluster.produce('s', ['first'], '--streamlet', 0, which=old)
    cluster.nodes[3].launch()
    until(lambda: any(n['name'] == 'n3' and n['state'] == 'up' for n in cluster.status(which=old)['nodes']), 'it is up')
    cluster.leat('streamlet', 'move', 's', 0, 'n3', which=old)
    told = next(n for n in cluster.status(which=old)['nodes'] if n['name'] == 'n3')
    check(any(peer['transport'] for peer in told['report']['peers']), told)
    cluster.nodes[3].ready_wait()
    cluster.produce('s', ['second'], '--streamlet', 0)
    equal(cluster.consume('s'), ['first', 'second'])


def test_a_move_to_nowhere_is_refused_and_changes_nothing():
    cluster = Cluster(**PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1)
    cluster.produce('s', ['a', 'b'])
    refused = cluster.leat('streamlet', 'move', 's', 0, 'n9', code=1).stderr.decode()
    check_in('not known', refused)
    cluster.produce('s', ['c'])
    equal(cluster.consume('s'), ['a', 'b', 'c'])


def test_a_move_of_more_logs_than_a_node_has_memory_for_is_refused_by_name():
    cluster = Cluster(memory='512M', **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 120, '--logs', 256, '--copies', 1)
    begun, moved, refused = owned(cluster)['n0'], 0, ''
    for streamlet in range(120):
        done = cluster.leat('streamlet', 'move', 's', streamlet, 'n0', code=None)
        moved += done.returncode == 0
        refused = refused or done.stderr.decode()
    check_in('a memory budget of 512 MiB leaves', refused)
    check(begun < moved < 120, 'streamlets that node n0 has of 120', moved, 'it began with', begun)
    equal(owned(cluster)['n0'], moved, 'streamlets of node n0')
    cluster.leat('streamlet', 'move', 's', 0, 'n1')  # others have room
    cluster.produce('s', ['a', 'b', 'c'])
    equal(sorted(cluster.consume('s')), ['a', 'b', 'c'])


if __name__ == '__main__':
    main()
