# SPDX-License-Identifier: Apache-2.0
"""Closed segments that rot on the disks of a running cluster: other nodes have them, and nobody is asked."""
import json
import os
import re
import select
import struct

from cluster import PATIENT, Cluster
from failures import kill_at_once
from given_up import end_is_lost
from power import power_cut, served
from recovery import owner
from rig import (BATCH, CLOSED, FETCH, FLUSHED, START, ROW_BYTES, ROW_FLAGS_AT, SLOT_UNIT, TRAILER, WAIT_S, Raw, check, crc32c, entries, equal,
                 main, until)

STARTING = 7  # class retry: ask again


def closed(node, stream):
    return [r for r in node.segments(stream) if r['state'] == CLOSED and r['flags'] & FLUSHED]


def one_row(node, stream, segment):
    """Where another node has the log by now: once that has asked for the copies here, every 30 s."""
    until(lambda: len([r for r in node.segments(stream) if r['segment'] == segment]) == 1, f'one row of segment {segment}', 3 * WAIT_S)


def is_well(cluster):
    return cluster.leat('cluster', 'status', code=None).returncode == 0


def all_count(cluster):
    """Somebody serves the log, and counts on both copies of each segment: one that is found damaged before that is made anew
    without a word. A cluster in which nobody serves it yet lacks nothing."""
    log = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['log_list'][0]
    return log['state'] == 'ok' and log.get('segment_list') and all(
        len(segment['copies']) == 2 and not segment['missing'] for segment in log['segment_list'])


def filled(durability='disk', **flags):
    """Three nodes with a log of some closed segments on each, none of them in memory."""
    cluster = Cluster(nodes=3, voters=3, **PATIENT, **flags).start()
    until(lambda: is_well(cluster), 'all three are up')
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 3, '--durability',
                 durability, '--segment-bytes', '64K')
    stream = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['id']
    lines = [f'{i:06d}'.ljust(100, '.') for i in range(6000)]
    cluster.produce('s', lines, '--batch-bytes', '4K')
    for node in cluster.nodes:
        node.stop()
    cluster.start()
    until(lambda: is_well(cluster) and all_count(cluster), 'somebody serves, and every copy counts')
    return cluster, stream, lines, until(lambda: owner(cluster), 'its owner is up')[0]


def test_readers_get_what_the_owner_fetches_from_another_node():
    cluster, stream, lines, owns = filled(scrub='0')
    node = cluster.nodes[owns]
    rows = closed(node, stream)
    check(len(rows) >= 6, 'closed segments', len(rows))
    before = [node.segment_bytes(row)[:row['prefix_id_bytes']] for row in rows]
    for i, row in enumerate(rows[:-1]):
        node.segment_flip(row, row['prefix_id_bytes'] * (i + 1) // (len(rows) + 1), 1 + 700 * (i % 2))
    equal(cluster.consume('s'), lines)
    for row in rows[:-1]:
        node.node_log_wait(rf'log {stream}/0/0: segment {row["segment"]} is repaired, by the copy of node n')
    equal([node.segment_bytes(row)[:row['prefix_id_bytes']] for row in rows], before, 'in their places')
    cluster.produce('s', ['more'])
    equal(cluster.consume('s'), lines + ['more'])


def test_a_copy_that_the_scrub_finds_damaged_is_made_anew():
    cluster, stream, lines, owns = filled(scrub='64M')
    at = (owns + 1) % 3
    node = cluster.nodes[at]
    row = closed(node, stream)[2]
    node.segment_flip(row, row['prefix_id_bytes'] // 2)
    node.node_log_wait(rf'log {stream}/0/0: the copy of segment {row["segment"]} here is damaged')

    def again():
        there = [r for r in closed(node, stream) if r['segment'] == row['segment']]
        return len(there) == 1 and there[0]['unit'] != row['unit']

    # The owner asks its backups every 30 s; the first time may be just before the scrub comes by. Its node log has a line
    # where it had counted on that copy. It need not have: where it was told of the damage as the first that it heard.
    until(again, 'there is another copy, and the damaged one has gone', 3 * WAIT_S)
    equal(cluster.consume('s'), lines)


def test_how_much_a_log_of_one_copy_passes_over_is_said_by_its_node():
    """Its end is decided by recovery, which has nothing else to go by."""
    cluster = Cluster(nodes=3, voters=3, **PATIENT).start()
    cluster.leat('stream', 'create', 's', '--streamlets', 1, '--logs', 1, '--copies', 1, '--durability', 'disk')
    stream = json.loads(cluster.leat('stream', 'describe', 's', '--json').stdout)['id']
    node = cluster.nodes[owner(cluster)[0]]

    def head():
        started = [r for r in node.segments(stream) if r['state'] != CLOSED and
                   any(e[0] == START for e in entries(node.segment_bytes(r)))]
        return started[-1], [e for e in entries(node.segment_bytes(started[-1])) if e[0] in (BATCH, TRAILER)]

    # A second after the last append a trailer says that all is acknowledged: the power has to go before that.
    wanted = 0
    for _ in range(10):
        cluster.produce('s', ['first'])
        until(lambda: [e[0] for e in head()[1][-2:]] == [TRAILER, TRAILER], 'a trailer closes the run')
        cluster.produce('s', [f'{i:06d}' for i in range(500)])
        power_cut(cluster)
        wanted += 501
        row, written = head()
        batch = written[-2]
        if batch[0] == BATCH and row['prefix_id_bytes'] <= batch[1]:
            break
        cluster.start()
        until(lambda: len(served(cluster, 's') or []) == wanted, 'it is served')
    node.segment_flip(row, batch[1] + 32 + batch[2] // 2)
    cluster.start()
    left = until(lambda: served(cluster, 's'), 'it is served')
    check(wanted - 501 < len(left) < wanted, len(left))
    node.node_log_wait(rf'stream "s", streamlet 0, log 0 ends at offset {len(left)}, .* bytes behind that are no whole write')


def power_takes(node, row, other):
    """The row as it was before the segment was flushed, and in its place another one: its memory is gone."""
    there = node.segment_bytes(other)
    with open(node.path('catalogue'), 'r+b') as file:
        file.seek(row['at'])
        said = bytearray(file.read(ROW_BYTES))
        said[ROW_FLAGS_AT] &= ~FLUSHED
        struct.pack_into('<I', said, 0, crc32c(struct.pack('<I', row['number']) + said[4:]))
        file.seek(row['at'])
        file.write(said)
    with open(node.path('store', str(row['file'])), 'r+b') as file:
        file.seek(row['unit'] * SLOT_UNIT)
        file.write(there[:row['capacity']])


def test_what_was_in_memory_alone_comes_from_other_nodes():
    """Its end is committed, so its owner takes it back, and finds by itself what it has of it, and what it has not."""
    cluster, stream, lines, owns = filled(durability='memory', scrub='0')
    node = cluster.nodes[owns]
    rows = closed(node, stream)
    check(len(rows) >= 6, 'closed segments', len(rows))
    before = [node.segment_bytes(row)[:row['prefix_id_bytes']] for row in rows]
    kill_at_once(cluster)
    gone = [rows[0], rows[2], rows[4]]
    for row in gone:
        power_takes(node, row, rows[1])
    cluster.start()
    equal(cluster.consume('s'), lines)
    for row in gone:
        node.node_log_wait(rf'segment {row["segment"]} of log {stream}/0/0: its memory did not survive')
    for row in gone[1:]:
        node.node_log_wait(rf'log {stream}/0/0: segment {row["segment"]} is repaired, by the copy of node n')
    equal([node.segment_bytes(row)[:row['prefix_id_bytes']] for row in rows[1:]], before[1:], 'in their places')
    cluster.produce('s', ['more'])
    kill_at_once(cluster)
    # The first one came as older ones do, into another row: the next start has one of each.
    equal(len([r for r in node.segments(stream) if r['segment'] == rows[0]['segment']]), 2, 'rows of the first')
    cluster.start()
    equal(cluster.consume('s'), lines + ['more'])
    one_row(node, stream, rows[0]['segment'])


def test_what_a_damaged_row_named_comes_from_other_nodes():
    """Between others: its owner takes the log back, and the others are not told to drop what the owner does not know."""
    cluster, stream, lines, owns = filled(scrub='0')
    node = cluster.nodes[owns]
    rows = closed(node, stream)
    check(len(rows) >= 8, 'closed segments', len(rows))
    before = {row['segment']: node.segment_bytes(row)[:row['prefix_id_bytes']] for row in rows}
    kill_at_once(cluster)
    gone = [rows[1], rows[4], rows[5]]
    for row in gone:
        node.flip('catalogue', row['at'] + 40)
    cluster.start()
    equal(cluster.consume('s'), lines)
    until(lambda: all_count(cluster) and {row['segment'] for row in closed(node, stream)} >= set(before), 'every copy counts')
    there = {row['segment']: node.segment_bytes(row)[:row['prefix_id_bytes']] for row in closed(node, stream)}
    equal({number: there.get(number) for number in before}, before, 'in their new places')
    cluster.produce('s', ['more'])
    kill_at_once(cluster)
    # The row is readable again: there are two of one segment, and the log has it once.
    node.flip('catalogue', gone[0]['at'] + 40)
    cluster.start()
    equal(cluster.consume('s'), lines + ['more'])
    one_row(node, stream, gone[0]['segment'])


def bytes_read(stream, count):
    blob = b''
    while len(blob) < count:
        check(select.select([stream], [], [], WAIT_S)[0], f'nothing came for {WAIT_S} s after {len(blob)} of {count} bytes')
        piece = os.read(stream.fileno(), count - len(blob))
        check(piece, f'it ended after {len(blob)} of {count} bytes')
        blob += piece
    return blob


def test_what_a_damaged_row_named_is_waited_for_while_nodes_are_down():
    cluster, stream, lines, owns = filled(scrub='0')
    node = cluster.nodes[owns]
    before, row = closed(node, stream)[2:4]
    _, _, _, base, records = [e for e in entries(node.segment_bytes(before)[:before['prefix_id_bytes']]) if e[0] == BATCH][-1]
    there = ''.join(f'{line}\n' for line in lines[:base + records])
    kill_at_once(cluster)
    # No other node has it but one, and that one is away: a damaged row there, too.
    other, away = (cluster.nodes[(owns + i) % 3] for i in (1, 2))
    node.flip('catalogue', row['at'] + 40)
    other.flip('catalogue', next(r for r in closed(other, stream) if r['segment'] == row['segment'])['at'] + 40)
    for each in node, other:
        each.launch()
    for each in node, other:
        each.ready_wait()
    # Either the start finds the log open under its epoch, with a hole; or recovery gives it to this node anew, under a later
    # epoch: then the older segments come one after the other, each named by the segment behind it.
    with_hole = rf'log {stream}/0/0: segments {row["segment"]} to {row["segment"]} are not here'
    anew = rf'log {stream}/0/0 of s: segment {row["segment"]} is on no node that is up: reads in front of segment {row["segment"] + 1} wait'
    if re.fullmatch(anew, node.node_log_wait(f'{with_hole}|{anew}').group()):
        base, records, there = 0, 0, ''
    reader = cluster.leat_start('consume', 's', '--until-end', which=[owns, cluster.nodes.index(other)])
    # All that is in front comes: then its next read is of what is missing, and such a read is told to ask again.
    equal(bytes_read(reader.stdout, len(there)).decode(), there)
    epoch = json.loads(cluster.leat('stream', 'describe', 's', '--json', which=[owns]).stdout)['log_list'][0]['epoch']
    _, (found, *_), payload = Raw(node).call(FETCH, [1, 1 << 20, WAIT_S * 1000, [[stream, 0, 0, epoch, base + records]]])
    equal((found[0], payload), (STARTING, b''), found)
    equal(reader.poll(), None, 'it waits')
    away.launch()
    away.ready_wait()
    out, error = reader.communicate(timeout=WAIT_S)
    equal(reader.returncode, 0, error.decode())
    equal(there + out.decode(), ''.join(f'{line}\n' for line in lines))
    until(lambda: all_count(cluster), 'every copy counts')


def test_an_older_segment_that_was_being_written_and_is_damaged_comes_from_other_nodes():
    """Its row says that it is open, its file has a part of it: that part is not served as the whole."""
    cluster, stream, lines, owns = filled(scrub='0')
    node = cluster.nodes[owns]
    rows = closed(node, stream)
    check(len(rows) >= 8, 'closed segments', len(rows))
    before = {row['segment']: node.segment_bytes(row)[:row['prefix_id_bytes']] for row in rows}
    kill_at_once(cluster)
    # In the middle: more was acknowledged. The last entry: nothing behind it says so.
    torn = {rows[2]['segment']: rows[2]['prefix_id_bytes'] // 2, rows[5]['segment']: rows[5]['prefix_id_bytes'] - 8}
    for row in rows[2], rows[5]:
        node.row_open(row)
        node.segment_flip(row, torn[row['segment']])
    cluster.start()
    equal(cluster.consume('s'), lines)
    until(lambda: all_count(cluster), 'every copy counts')
    there = {row['segment']: node.segment_bytes(row)[:row['prefix_id_bytes']] for row in closed(node, stream)}
    equal({number: there.get(number) for number in before}, before, 'in their new places')
    for each in cluster.nodes:
        held = {row['segment']: each.segment_bytes(row)[:row['prefix_id_bytes']] for row in closed(each, stream)}
        equal({number: held.get(number) for number in before}, before, 'whole on every node')
    cluster.produce('s', ['more'])
    kill_at_once(cluster)
    cluster.start()
    equal(cluster.consume('s'), lines + ['more'])
    for number in torn:
        one_row(node, stream, number)


def test_what_a_damaged_row_named_in_front_of_a_jump_of_offsets_is_not_dropped():
    """Nothing names it there: its owner can't tell it from what was given up. The next owner asks for it."""
    cluster, stream, lines, _ = filled(scrub='0')
    for _ in range(50):  # each is a write of its own: the row says in the end that it was written to
        cluster.produce('s', ['lost' * 100])
    lost = end_is_lost(cluster, stream)
    cluster.start()
    until(lambda: cluster.leat('log', 'recover', 's', '--accept-loss', code=None).returncode == 0, 'the loss is accepted')
    more = [f'{i:06d}'.ljust(100, ':') for i in range(3000)]
    cluster.produce('s', more, '--batch-bytes', '4K')
    for each in cluster.nodes:
        each.stop()
    cluster.start()
    until(lambda: is_well(cluster) and all_count(cluster), 'somebody serves, and every copy counts')
    left = cluster.consume('s')
    equal(left[:len(lines)] + left[-len(more):], lines + more)
    owns = owner(cluster)[0]
    node, others = cluster.nodes[owns], [each for i, each in enumerate(cluster.nodes) if i != owns]
    row, following = (next(r for r in closed(node, stream) if r['segment'] == number) for number in (lost - 1, lost))
    check(following['base'] > row['next'], 'offsets jump', following)

    def copies():
        return [[(r['prefix_id_bytes'], r['prefix_id_crc']) for r in closed(each, stream) if r['segment'] == row['segment']]
                for each in others]
    def later_segment_has_come():
        """A reader gets past the gap when its owner has ended to look for what was there, and asks the others for their copies.
        What it says of these comes before the segments that it makes later."""
        cluster.consume('s')
        newest = [max(r['segment'] for r in each.segments(stream)) for each in others]
        new = [f'{len(left) + i:06d}'.ljust(100, '+') for i in range(1000)]
        cluster.produce('s', new, '--batch-bytes', '4K')
        left.extend(new)
        until(lambda: all(max(r['segment'] for r in each.segments(stream)) > was for each, was in zip(others, newest)),
              'the others have a later segment')

    wanted = 2 * [[(row['prefix_id_bytes'], row['prefix_id_crc'])]]
    equal(copies(), wanted, 'before')
    kill_at_once(cluster)
    node.flip('catalogue', row['at'] + 40)
    cluster.start()
    until(lambda: all_count(cluster), 'every copy counts')
    node.node_log_wait(rf'log {stream}/0/0: rows .* segments {lost - 1} to {lost - 1}, which are not here')
    later_segment_has_come()
    equal(copies(), wanted, 'on the others')
    cluster.leat('node', 'drain', f'n{owns}')
    until(lambda: owner(cluster) not in ([], [owns]), 'another node has it')
    until(lambda: cluster.consume('s') == left, 'all that was left is there')


if __name__ == '__main__':
    main()
