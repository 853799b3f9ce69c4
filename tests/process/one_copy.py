# SPDX-License-Identifier: Apache-2.0
"""What a server alone makes of damage in its files: memory that still has the bytes is used, and of a last write that
can't be told from a torn one the node log says how much is passed over."""
import json
import re

from damage import batches, filled, head, lines, power_off
from rig import BATCH, CLOSED, ENTRY_BYTES, FLUSHED, TRAILER, Server, check, check_in, entries, equal, main, until

REPAIRED = r'the file of segment {} was damaged, and is written anew by what this node\'s memory has of it'


def closed_in_memory(durability, scrub):
    """Closed segments that are in their file, and in memory still."""
    server = Server('--scrub', scrub).start()
    server.leat('stream', 'create', 'hurt', '--logs', 1, '--segment-bytes', '64K', '--durability', durability)
    server.wanted = lines('hurt', 8000, 100)
    server.produce('hurt', server.wanted, '--batch-bytes', '4K')
    server.hurt_id = server.describe('hurt')['id']

    def flushed():
        rows = [r for r in server.segments(server.hurt_id) if r['state'] == CLOSED and r['flags'] & FLUSHED]
        return rows if len(rows) >= 6 else None
    return server, until(flushed, 'closed segments are in the file')


def flip(server, row):
    server.segment_flip(row, batches(server, row)[1][1] + 32 + 80)


def nothing_is_damaged(server, rows):
    for row in rows:
        equal(len(re.findall(REPAIRED.format(row['segment']), server.node_log())), 1, server.node_log())
    equal(server.node_log().count('damaged'), len(rows), server.node_log())
    server.leat('cluster', 'status')
    equal(server.logs('hurt')[0, 0]['code'], 'OK')
    equal(server.values('hurt'), server.wanted)


def test_a_closed_segment_that_the_scrub_finds_damaged_is_written_anew_from_memory():
    for durability in 'disk', 'memory':
        server, rows = closed_in_memory(durability, '64M')
        before = server.segment_bytes(rows[2])[:rows[2]['prefix_id_bytes']]
        flip(server, rows[2])
        server.node_log_wait(REPAIRED.format(rows[2]['segment']))
        equal(server.segment_bytes(rows[2])[:rows[2]['prefix_id_bytes']], before, 'in its place')
        nothing_is_damaged(server, rows[2:3])
        server.stop()
        server.start()
        equal(server.values('hurt'), server.wanted, 'after a stop')
        server.end()


def test_a_closed_segment_damaged_before_a_kill_is_written_anew_from_the_memory_that_outlived_it():
    for scrub in '0', '64M':
        server, rows = closed_in_memory('disk', '0')
        server.kill()
        for row in rows[1], rows[4]:
            flip(server, row)
        server.start('--scrub', scrub)
        if scrub == '0':
            check('damaged' not in server.node_log(), 'the start read closed segments:', server.node_log())
            equal(server.values('hurt'), server.wanted)  # who reads finds it, and does not get it
        for row in rows[1], rows[4]:
            server.node_log_wait(REPAIRED.format(row['segment']))
        nothing_is_damaged(server, [rows[1], rows[4]])
        power_off(server)
        server.start()
        equal(server.values('hurt'), server.wanted, 'it is in the file')
        server.end()


def test_without_that_memory_it_is_damaged_by_name():
    server, rows = closed_in_memory('disk', '0')
    power_off(server)
    flip(server, rows[1])
    server.start()
    check_in('damaged', server.leat('consume', 'hurt', '--until-end', code=1).stderr)
    check('written anew' not in server.node_log(), server.node_log())
    equal(server.logs('hurt')[0, 0]['code'], 'DAMAGED')


PASSED_OVER = r'ends at offset (\d+), (\d+) bytes into segment (\d+): at least (\d+) bytes behind that are no whole write'


def appended_and_power_off(server, values):
    """The power goes before a trailer, or the row, says that what came last was acknowledged. False: it came sooner."""
    server.produce('hurt', values)
    power_off(server)
    row = head(server)
    *_, batch, last = [e for e in entries(server.segment_bytes(row)) if e[0] in (BATCH, TRAILER)]
    return batch[0] == BATCH and row['prefix_id_bytes'] <= batch[1]


def passed_over(server, wanted):
    """Wherever an operator looks, until one has said that it was seen."""
    equal(server.logs('hurt')[0, 0]['passed_over'], wanted)
    words = server.leat('stream', 'describe', 'hurt').stdout
    code = 1 if wanted else 0
    status = server.leat('cluster', 'status', code=code).stdout + server.leat('status', code=code).stdout
    for report in json.loads(server.leat('cluster', 'status', '--json', code=code).stdout)['nodes'][0]['report'], server.status():
        equal(report['logs_passed_over'], 1 if wanted else 0)
        equal(report['passed_over'], [dict(wanted, stream='hurt', streamlet=0, log=0)] if wanted else [])
    if not wanted:
        return check('passed over' not in words + status, words, status)
    said = (f'at least {wanted["bytes"]} bytes behind offset {wanted["end_offset"]}, the end of segment '
            f'{wanted["last_segment"]}, were no whole write when the node started, and were passed over')
    check_in(f'note: streamlet 0 log 0: {said}', words)
    check_in(f'note     stream hurt streamlet 0 log 0 on node ', status)
    check_in(said, status)


def seen_or_trimmed(server, passed):
    """It stays over a kill as well, until an operator says that it was seen."""
    server.kill()
    server.start()
    passed_over(server, passed)
    told = server.leat('log', 'recover', 'hurt', '--streamlet', 0, '--log', 0, code=2).stderr
    check_in(f'at least {passed["bytes"]} bytes that a start has passed over', told)
    before = server.values('hurt')
    said = server.leat('log', 'recover', 'hurt', '--streamlet', 0, '--log', 0, '--accept-loss').stdout
    check_in(f'log 0: seen: at least {passed["bytes"]} bytes', said)
    passed_over(server, None)
    equal(server.values('hurt'), before, 'nothing is given up')
    server.kill()
    server.start()
    passed_over(server, None)


def test_what_was_passed_over_goes_with_its_segment():
    for attempt in range(10):
        server = filled()
        if appended_and_power_off(server, lines('last', 80)):
            break
        server.end()
    row = head(server)
    last = [e for e in entries(server.segment_bytes(row)) if e[0] == BATCH][-1]
    server.segment_flip(row, last[1] + 32 + last[2] // 2)
    server.start()
    check(server.logs('hurt')[0, 0]['passed_over'], 'it is not told')
    server.produce('hurt', ['more'])
    server.leat('stream', 'trim', 'hurt', '--streamlet', 0, '--log', 0, '--before', 'end')
    server.produce('hurt', ['more'])
    until(lambda: server.logs('hurt')[0, 0]['passed_over'] is None, 'its segment is gone')


def test_how_much_of_a_last_write_is_passed_over_is_said_once():
    for flips in True, False:
        for attempt in range(10):
            server = filled()
            if appended_and_power_off(server, lines('last', 80)):
                break
            server.end()
        row = head(server)
        there = list(entries(server.segment_bytes(row)))
        last = max(i for i, e in enumerate(there) if e[0] == BATCH)
        whole = [e for e in there[:last] if e[0] == TRAILER][-1][1] + ENTRY_BYTES
        first = next(e[3] for e in there if e[0] == BATCH and e[1] >= whole)
        end = there[-1][1] + ENTRY_BYTES
        if flips:
            server.segment_flip(row, there[last][1] + 32 + there[last][2] // 2)
        server.start()
        told = re.findall(PASSED_OVER, server.node_log())
        equal([tuple(map(int, t)) for t in told],
              [(first, whole, row['segment'], end - whole)] if flips else [], server.node_log())
        passed = {'bytes': end - whole, 'segments': 1, 'last_segment': row['segment'], 'end_offset': first} if flips else None
        passed_over(server, passed)
        left = server.wanted + lines('last', 80)
        equal(server.values('hurt'), left[:first] if flips else left)
        equal(server.logs('hurt')[0, 0]['code'], 'OK')
        server.produce('hurt', ['more'])
        server.stop()
        server.start()
        check('no whole write' not in server.node_log(), 'said again:', server.node_log())
        passed_over(server, passed)
        if flips:
            seen_or_trimmed(server, passed)
        server.end()


if __name__ == '__main__':
    main()
