# SPDX-License-Identifier: Apache-2.0
"""What an operator is told: every kind of damage, in each place that there is to look; and what to do about a wrong port, a
data directory that is none, and a full disk."""
import json
import os
import re

from cluster import PATIENT, Cluster, free_ports
from damage import batches, closed_segments, filled, head, lines, power_off, rows_lost
from one_copy import appended_and_power_off
from limits import mounted
from rig import BATCH, SLOT_UNIT, TRAILER, Server, check, check_in, directory, entries, equal, main


def flip_batch(server, row, batch):
    server.segment_flip(row, batch[1] + 32 + batch[2] // 2)


def closed_damaged():
    server, rows = closed_segments()
    row = rows[2]
    flip_batch(server, row, batches(server, row)[1])
    server.start()
    server.leat('consume', 'hurt', '--until-end', code=1)  # who reads it finds it
    said = f'segment {row["segment"]} with offsets {row["base"]} to {row["next"] - 1} is damaged'
    return server, said, rf'segment {row["segment"]} is damaged'


def middle_lost():
    """Rows that are gone without a word: the log names what lies between."""
    server, rows = closed_segments(durability='memory')
    rows_lost(server, rows[2:4])
    server.start()
    said = (f'segments {rows[2]["segment"]} to {rows[3]["segment"]} with offsets {rows[2]["base"]} to '
            f'{rows[3]["next"] - 1} are missing')
    return server, said, re.escape(said)


def front_lost():
    server, rows = closed_segments(durability='memory')
    rows_lost(server, rows[:3])
    server.start()
    said = f'segments 0 to {rows[2]["segment"]} with offsets 0 to {rows[2]["next"] - 1} are missing'
    return server, said, r'segments 0 to 2 '


def row_damaged():
    server, rows = closed_segments()
    server.flip('catalogue', rows[2]['at'] + 60)
    server.start()
    said = f'segment {rows[2]["segment"]} with offsets {rows[2]["base"]} to {rows[2]["next"] - 1} is missing'
    return server, said, r'row \d+ .*damaged'


def file_lost():
    server, rows = closed_segments()
    os.unlink(server.path('store', '0'))
    server.start()
    return server, None, r'error store: segment \d+ of log'


def file_short():
    server, rows = closed_segments()
    os.truncate(server.path('store', '0'), sorted(row['unit'] for row in rows)[2] * SLOT_UNIT + 8192)
    server.start()
    return server, None, r'error store: segment \d+ of log'


def open_damaged():
    """In the middle: what comes behind says that it was acknowledged, and the log waits."""
    server = filled()
    power_off(server)
    row = head(server)
    flip_batch(server, row, batches(server, row)[1])
    server.start()
    return server, None, 'damaged'


def memory_lost():
    server = filled(durability='memory')
    power_off(server)
    server.start()
    return server, None, 'memory did not survive'


def tail_passed_over():
    """What came last before the power went: whether that was acknowledged nobody can tell."""
    for attempt in range(10):
        server = filled()
        if appended_and_power_off(server, lines('last', 80)):
            break
        server.end()
    row = head(server)
    there = list(entries(server.segment_bytes(row)))
    last = [e for e in there if e[0] == BATCH][-1]
    flip_batch(server, row, last)
    whole = [e for e in there if e[0] == TRAILER and e[1] < last[1]][-1][1]
    first = next(e[3] for e in there if e[0] == BATCH and e[1] >= whole)
    server.start()
    said = f'bytes behind offset {first}, the end of segment {row["segment"]}, were no whole write'
    return server, said, rf'ends at offset {first}, .* passed over'


# kind: (how it comes about, is it a note: nothing is known to be lacking)
KINDS = {
    'a closed segment in the middle': (closed_damaged, False),
    'segments in the middle that are not there': (middle_lost, False),
    'segments in front that are not there': (front_lost, False),
    'a row of the catalogue': (row_damaged, False),
    'a store file that is not there': (file_lost, False),
    'a store file that lost its end': (file_short, False),
    'an open segment': (open_damaged, False),
    'memory that did not survive': (memory_lost, False),
    'bytes behind an open tail': (tail_passed_over, True),
}


def one_row(rows):
    rows = [row for row in rows if row['stream'] == 'hurt']
    equal(len(rows), 1, f'rows of its log: {rows}')
    return rows[0]


def told_in_each_place(server, note, said, line):
    # 1. leat stream describe, for people and for programs
    describe, log = server.leat('stream', 'describe', 'hurt'), server.logs('hurt')[0, 0]
    if said is None:
        said = log['text']
    check(said and log['code'] == 'OK' if note else log['code'] in ('DAMAGED', 'LOG_INCOMPLETE'), log)
    check_in(said, describe.stdout + describe.stderr)
    passed = log['passed_over']
    check((passed is not None and passed['bytes'] > 0) if note else said in log['text'], log)
    # 2. leat cluster status, which ends with 1
    check_in(said, server.leat('cluster', 'status', code=1).stdout)
    # 3. leat status, as well
    check_in(said, server.leat('status', code=1).stdout)
    # 4. both for programs
    cluster = json.loads(server.leat('cluster', 'status', '--json', code=1).stdout)
    equal(cluster['healthy'], False)
    for report in cluster['nodes'][0]['report'], json.loads(server.leat('status', '--json', code=1).stdout):
        if note:
            equal(one_row(report['passed_over']), dict(passed, stream='hurt', streamlet=0, log=0))
            check(report['logs_passed_over'] >= 1, report)
        else:
            check_in(said, one_row(report['troubled_logs'])['why'])
            check(report['logs_in_trouble'] >= 1, report)
    # 5. the log
    check(re.search(line, server.node_log()), line, 'is not in the log:', server.node_log_end())


def test_each_kind_of_damage_is_told_in_each_place():
    failed = []
    for kind, (make, note) in KINDS.items():
        server, said, line = make()
        try:
            told_in_each_place(server, note, said, line)
        except Exception as error:
            failed.append(f'{kind}: {error}')
        server.end()
    check(not failed, '\n'.join(failed))


def test_a_data_directory_that_can_not_be_is_refused_with_what_to_do():
    place, full = directory(), mounted()
    file = os.path.join(place, 'file')
    with open(file, 'w') as out:
        out.write('a letter')
    with open(os.path.join(full, 'ballast'), 'wb') as out:
        try:
            while out.write(bytes(1 << 16)):
                out.flush()
        except OSError:
            pass
    for data, said in ((file, f"can't make the directory {file}: Not a directory: name another by --data"),
                       (os.path.join(file, 'below'), f"can't make the directory {file}: Not a directory: name another by --data"),
                       (os.path.join(full, 'new'), ': free space there, or name another by --data')):
        code, text = Server(data=data).start_refused()
        equal(code, 3, text)
        check_in(said, text)
        if data.startswith(full):
            check(re.search('no space left', text, re.I), text)
    with open(file) as left:
        equal(left.read(), 'a letter')


def test_a_client_at_another_port_is_told_of_the_right_one_and_not_asked_whether_a_server_runs():
    ports = free_ports(2)
    server = Server('--listen', f'127.0.0.1:{ports[0]}', '--kafka', f'127.0.0.1:{ports[1]}').start()
    told = server.leat('status', '-b', f'127.0.0.1:{ports[1]}', code=3).stderr
    check_in('this port is for clients of Kafka; that of Leat\'s own protocol is the one of --listen (7700)', told)
    check_in('-b HOST:PORT or LEAT_BROKERS names that port', told)
    check('is leatd running there?' not in told, told)
    told = server.leat('status', '-b', f'127.0.0.1:{free_ports(1)[0]}', code=3).stderr
    check_in('is leatd running there?', told)


def test_a_node_that_is_sent_to_the_port_of_clients_is_told_so():
    cluster = Cluster(**PATIENT).start()
    ports, wrong = free_ports(2), cluster.client_ports[0]
    lost = cluster.node(0, **{'node': 'lost', 'listen': f'127.0.0.1:{ports[0]}', 'node-listen': f'127.0.0.1:{ports[1]}',
                              'coordinators': f'127.0.0.1:{wrong}'})
    lost.launch()
    said = r'that is its port for clients \(--listen, 7700\): name the one for nodes, its --node-listen \(7701\)'
    lost.node_log_wait(rf'link: 127.0.0.1:{wrong} does not let this node in: {said}')
    lost.node_log_wait(rf'not ready.* not met: 127.0.0.1:{wrong}: {said}')
    check('older version' not in lost.node_log(), lost.node_log())
    cluster.nodes[0].node_log_wait(r'it speaks as a node of a cluster, whose port is that of --node-listen \(7701\)')


if __name__ == '__main__':
    main()
