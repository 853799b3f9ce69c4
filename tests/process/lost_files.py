# SPDX-License-Identifier: Apache-2.0
"""What a start finds missing or damaged stays so by name at each later one, until the bytes are back or an operator gives
them up: the file is made again, and nothing but the catalogue tells then that it had something."""
import json
import os
import re
import shutil
import struct
import subprocess

from damage import batches, closed_segments, lines, named, power_off
from one_copy import closed_in_memory
from recovery import owner
from rig import RESERVED, ROW_BYTES, ROW_FILE_AT, SLOT_UNIT, Server, check, check_in, crc32c, equal, main, until
from corrupt import all_count, closed, filled as filled_cluster, is_well

STARTS = 3


def troubled(server, first):
    """The same words wherever an operator looks, at this start as at the first."""
    log = server.logs('hurt')[0, 0]
    check(log['code'] in ('DAMAGED', 'LOG_INCOMPLETE'), log)
    check_in(log['text'], server.leat('cluster', 'status', code=1).stdout)
    report = json.loads(server.leat('cluster', 'status', '--json', code=1).stdout)['nodes'][0]['report']
    equal([r['why'] for r in report['troubled_logs'] if r['stream'] == 'hurt'], [log['text']])
    check(server.status()['logs_in_trouble'] > 0, 'status')
    check(re.search(r'segment \d+ of log ' + f'{server.hurt_id}/0/0', server.node_log()), server.node_log())
    # Where the end of the log is missing its sentence is of that, and a place that was made again says more.
    words = (log['state'], log['text'] if log['state'] == 'ok' else '',
             sorted(set(re.findall(r'segment (\d+) of log ' + f'{server.hurt_id}/0/0', server.node_log()))))
    equal(words, first or words, 'said at the first start')
    return words


def lost_at_each_start(server, lose, restore, end):
    lose()
    first = None
    for _ in range(STARTS):
        server.start()
        first = troubled(server, first)
        end(server)
    restore()
    server.start()
    equal(server.values('hurt'), server.wanted, 'with the file back')
    equal(server.logs('hurt')[0, 0]['code'], 'OK')
    server.leat('cluster', 'status')
    server.produce('hurt', ['more'])
    server.stop()
    server.start()
    equal(server.values('hurt'), server.wanted + ['more'])
    server.leat('cluster', 'status')
    server.end()


def kept(server):
    """What the file was, and a way to put it back."""
    name, copy = server.path('store', '0'), server.path('store-0-kept')
    shutil.copy(name, copy)
    return name, lambda: shutil.copy(copy, name)


def test_a_missing_store_file_is_told_of_at_each_start():
    for durability in 'disk', 'memory':
        for end in Server.stop, Server.kill:
            server, _ = closed_segments(durability=durability)
            name, restore = kept(server)
            lost_at_each_start(server, lambda: os.unlink(name), restore, end)
            server.end()


def test_a_store_file_that_lost_its_end_is_told_of_at_each_start():
    """In the middle of a closed segment: those behind it are gone, too."""
    for durability in 'disk', 'memory':
        server, rows = closed_segments(durability=durability)
        name, restore = kept(server)
        at = sorted(row['unit'] for row in rows)[2] * SLOT_UNIT + 8192
        lost_at_each_start(server, lambda: os.truncate(name, at), restore, power_off_if_any)


def test_a_lost_file_of_many_segments_is_summed_and_names_the_stream_and_the_command():
    server, rows = closed_segments()
    os.unlink(server.path('store', '0'))
    server.start()
    server.node_log_wait(r'stream "hurt", streamlet 0, log 0.*leat log recover hurt --streamlet 0 --log 0 --accept-loss')
    said = server.node_log()
    equal(len(re.findall(r'error store: segment \d+ of log', said)), 10, said)
    check(re.search(r'[.]{3} and [0-9]+ more segments are missing or damaged', said), said)


def second_file(server, rows):
    """As if these segments had been written to another store file, as some of them are under load."""
    number = next(n for n in range(1, 9) if not os.path.exists(server.path('store', str(n))))
    shutil.copy(server.path('store', '0'), server.path('store', str(number)))
    with open(server.path('catalogue'), 'r+b') as file:
        for row in (row for row in rows if row['file'] == 0):
            file.seek(row['at'])
            said = bytearray(file.read(ROW_BYTES))
            struct.pack_into('<I', said, ROW_FILE_AT, number)
            struct.pack_into('<I', said, 0, crc32c(struct.pack('<I', row['number']) + said[4:]))
            file.seek(row['at'])
            file.write(said)


def test_a_lost_file_with_the_front_of_a_log_names_the_stream_and_the_command():
    """Whether a front is missing is known when what follows has been read, after the start."""
    server, rows = closed_segments()
    second_file(server, [row for row in server.segments(server.hurt_id) if row['segment'] > 5])
    os.unlink(server.path('store', '0'))
    server.start()
    server.node_log_wait(r'stream "hurt", streamlet 0, log 0: segment 0 .*leat log recover hurt --streamlet 0 --log 0 --accept-loss')
    equal(server.node_log().count('--accept-loss'), 1, 'said once')


def power_off_if_any(server):
    (power_off if server.pool and os.path.exists(server.pool) else Server.kill)(server)


def test_what_the_scrub_or_a_reader_found_is_told_of_at_each_start():
    """A header of zeros; another segment's bytes; a bit. The later starts read nothing of their own."""
    for found_by in 'scrub', 'reader':
        server, rows = closed_segments()
        name, restore = kept(server)
        with open(name, 'r+b') as file:
            file.seek(rows[1]['unit'] * SLOT_UNIT)
            file.write(bytes(4096))
            there = server.segment_bytes(rows[3])
            file.seek(rows[2]['unit'] * SLOT_UNIT)
            file.write(there)
        server.segment_flip(rows[4], batches(server, rows[4])[1][1] + 32 + 80)
        server.start('--scrub', '64M' if found_by == 'scrub' else '0')
        for row in rows[1], rows[2], rows[4]:
            if found_by == 'reader':
                check_in('damaged', server.leat('consume', 'hurt', '--from', row['base'], '--until-end', code=1).stderr)
            else:
                server.node_log_wait(rf'scrub: closed segment {row["segment"]} .*damaged')
        words = until(lambda: 'and 1 place' in (text := server.logs('hurt')[0, 0]['text']) and text, 'all are named')
        for end in 'stop', 'kill', 'kill':
            getattr(server, end)()
            server.start()
            named(server, words)
            check_in(f'segment {rows[2]["segment"]} of log', server.node_log())
        server.stop()
        restore()
        server.start()
        server.leat('cluster', 'status')
        equal(server.values('hurt'), server.wanted)
        server.end()


def test_a_loss_that_is_accepted_is_told_of_no_more():
    server, rows = closed_segments()
    end = sorted(row['unit'] for row in rows if row['file'] == 0)[2]
    every = rows + [server.segments(server.hurt_id)[len(rows)]]  # with the one that is open
    bases = [row['base'] for row in every] + [None]
    os.truncate(server.path('store', '0'), end * SLOT_UNIT)
    # Under load the last of them lie in a second file.
    kept = [server.wanted[bases[i]:bases[i + 1]] for i, row in enumerate(every)
            if row['file'] != 0 or row['unit'] < end]
    for _ in range(2):
        server.start()
        troubled(server, None)
        server.stop()
    server.start()
    accepted = 0
    while accepted < 5 and server.leat('consume', 'hurt', '--until-end', code=None).returncode:
        server.leat('log', 'recover', 'hurt', '--accept-loss')
        accepted += 1
    check(0 < accepted <= 2, 'all that is missing is known', accepted)
    left = server.values('hurt')
    equal(left, sum(kept, []), [(row['segment'], row['file'], row['unit']) for row in rows])
    for _ in range(2):
        server.stop()
        server.start()
        equal(server.logs('hurt')[0, 0]['code'], 'OK')
        server.leat('cluster', 'status')
        equal(server.values('hurt'), left)


def accepted(server):
    """All that is missing or damaged is given up; what can be read then."""
    for _ in range(4):
        if server.logs('hurt')[0, 0]['code'] == 'OK':
            break
        server.leat('log', 'recover', 'hurt', '--accept-loss')
    return server.values('hurt')


def stays_accepted(server, left):
    """No later start goes back on what was accepted, or takes more."""
    place = ('first_offset', 'first_segment', 'end_offset', 'offsets_lost', 'code', 'text')
    before = [server.logs('hurt')[0, 0][name] for name in place]
    for number, end in enumerate((Server.stop, Server.stop, Server.kill)):
        name = f'other{len(left)}-{number}'
        server.leat('stream', 'create', name, '--logs', 1)
        server.produce(name, lines('other', 2000, 100))
        end(server)
        server.start()
        equal([server.logs('hurt')[0, 0][name] for name in place], before, 'after another start')
        equal(server.values('hurt'), left, 'after another start')
        server.leat('cluster', 'status')
        check_in('nothing to give up', server.leat('log', 'recover', 'hurt', code=1).stderr)


def test_an_accepted_loss_of_rows_and_of_a_file_stays_so():
    """In front, between others, and at the end; before and after the next append."""
    for durability in 'disk', 'memory':
        server, rows = closed_segments(durability=durability)
        last = server.segments(server.hurt_id)[-1]
        for row in rows[0], rows[3]:
            server.flip('catalogue', row['at'] + 20, 8)
        os.unlink(server.path('store', str(last['file'])))
        server.start()
        left = accepted(server)
        check(0 < server.logs('hurt')[0, 0]['first_offset'] < 1 << 40, 'where it begins', server.logs('hurt'))
        stays_accepted(server, left)
        server.produce('hurt', ['behind'])
        stays_accepted(server, left + ['behind'])
        server.end()


def test_an_accepted_loss_of_the_last_segment_keeps_those_in_front():
    """Found damaged at the first append, by a log that has not waited: the loss is of that segment alone."""
    for durability in 'disk', 'memory':
        for appended in False, True:
            server, _ = closed_segments(durability=durability)
            server.start()
            last = server.segments(server.hurt_id)[-1]
            damaged, behind = batches(server, last)[:2]
            server.segment_flip(last, damaged[1] + 100)
            check_in('DAMAGED', server.leat('produce', 'hurt', '--timeout', '5s', input=b'x\n', code=1).stderr)
            server.leat('log', 'recover', 'hurt', '--accept-loss')
            left = server.values('hurt')
            equal(left, server.wanted[:last['base']] + server.wanted[behind[3]:], 'all but that batch')
            if appended:
                server.produce('hurt', ['behind'])
                left = left + ['behind']
            stays_accepted(server, left)
            server.end()


def test_before_a_loss_is_accepted_the_holes_that_are_known_are_told():
    """Rows in the middle, and the end: of as many records as can be read then it is said that they would be kept."""
    server, rows = closed_segments()
    holes = rows[3], rows[6]
    for row in *holes, server.segments(server.hurt_id)[-1]:
        server.flip('catalogue', row['at'] + 20, 8)
    server.start()
    told = server.leat('log', 'recover', 'hurt', code=2).stderr
    said = re.search(r'offsets 0 to (\d+) would be kept, and can be read now, but for (\d+) of them '
                     r'\((\d+) to (\d+), and 1 place more\)', told)
    check(said, told)
    last, lost, first, end = map(int, said.groups())
    equal((first, end), (holes[0]['base'], holes[0]['next'] - 1))
    check_in('nobody has read', told)
    server.leat('log', 'recover', 'hurt', '--accept-loss')
    between = server.leat('log', 'recover', 'hurt', '--accept-loss').stdout
    check_in(f'offsets {first} to {end}', between)
    check_in('begins at offset 0', between)
    equal(len(server.values('hurt')), last + 1 - lost)


def test_what_was_being_written_to_a_missing_file_is_told_of_at_each_start():
    """Its row may still say that it is but reserved: acknowledged records are gone all the same."""
    server = Server().start()
    server.leat('stream', 'create', 'hurt', '--logs', 1, '--durability', 'disk')
    server.wanted = ['one', 'two']
    server.produce('hurt', server.wanted)
    server.hurt_id = server.describe('hurt')['id']
    power_off(server)
    equal([row['state'] for row in server.segments(server.hurt_id)], [RESERVED], 'a row that is behind')
    name, restore = kept(server)
    lost_at_each_start(server, lambda: os.unlink(name), restore, power_off)


def test_a_missing_file_comes_from_the_memory_that_outlived_the_server():
    for durability in 'disk', 'memory':
        server, rows = closed_in_memory(durability, '0')
        server.kill()
        os.unlink(server.path('store', '0'))
        server.start()
        for row in (row for row in rows if row['file'] == 0):  # under load the last may lie in a second file
            server.node_log_wait(rf'the file of segment {row["segment"]} was damaged, and is written anew')
        for _ in range(2):
            server.leat('cluster', 'status')
            equal(server.values('hurt'), server.wanted)
            server.stop()
            server.start()
        server.end()


def lose_files(node):
    for name in os.listdir(node.path('store')):
        os.unlink(node.path('store', name))


def comes_from_the_others(durability, which):
    cluster, stream, lines, owns = filled_cluster(durability=durability, scrub='0')
    node = cluster.nodes[(owns + (which == 'copy')) % 3]
    before = {row['segment']: node.segment_bytes(row)[:row['prefix_id_bytes']] for row in closed(node, stream)}
    for each in cluster.nodes:
        each.stop()
    lose_files(node)
    for start in range(2):
        cluster.start()
        until(lambda: is_well(cluster) and all_count(cluster), 'every copy counts')
        equal(cluster.consume('s'), lines)
        until(lambda: {r['segment']: node.segment_bytes(r)[:r['prefix_id_bytes']] for r in closed(node, stream)}.items()
              >= before.items(), 'that node has them again')
        for each in cluster.nodes:
            each.stop()


def test_what_the_owner_of_a_disk_stream_lost_comes_from_the_others():
    comes_from_the_others('disk', 'owner')


def test_what_a_copy_of_a_disk_stream_lost_comes_from_the_others():
    comes_from_the_others('disk', 'copy')


def test_what_the_owner_of_a_memory_stream_lost_comes_from_the_others():
    comes_from_the_others('memory', 'owner')


def test_what_a_copy_of_a_memory_stream_lost_comes_from_the_others():
    comes_from_the_others('memory', 'copy')


def stop_in_turn(cluster):
    """The owner first: others take its log over before they stop, too."""
    first = until(lambda: owner(cluster), 'somebody serves')[0]
    cluster.nodes[first].stop()
    until(lambda: owner(cluster) not in ([], [first]), 'another node serves')
    for each in (node for node in cluster.nodes if node is not cluster.nodes[first]):
        each.stop()


def test_what_all_three_lost_is_told_of_at_each_start():
    """Also while a reader, who tries again, has it looked for again: it is refused by what status names."""
    cluster, stream, lines, owns = filled_cluster(scrub='0')
    gone = closed(cluster.nodes[owns], stream)[2]
    stop_in_turn(cluster)
    for each in cluster.nodes:
        row = next(r for r in closed(each, stream) if r['segment'] == gone['segment'])
        with open(each.path('store', str(row['file'])), 'r+b') as file:
            file.seek(row['unit'] * SLOT_UNIT)
            file.write(bytes(row['capacity']))
    # Who gets the log from another node finds nothing that names the segments before it (docs/recovery.md).
    words = rf'segment(s 0 to)? {gone["segment"]} with offsets \d+ to {gone["next"] - 1} (is|are) (damaged|missing)'

    def is_named(or_unheard=False):
        """On a busy machine a node may not be heard in time, which status says."""
        status = cluster.leat('cluster', 'status', code=None)
        told = status.stdout.decode()
        return status.returncode == 1 and (re.search(words, told) or or_unheard and 'was not heard' in told)

    cluster.start()
    until(lambda: cluster.leat('consume', 's', '--until-end', code=None).returncode == 1, 'a reader is told')
    for start in range(3):
        until(is_named, 'it is named')
        for _ in range(2):
            reader = cluster.leat_start('consume', 's', '--until-end', stdout=subprocess.DEVNULL)
            while reader.poll() is None:
                check(is_named(or_unheard=True), 'it stays named', cluster.leat('cluster', 'status', code=None).stdout.decode())
            check_in(f'to {gone["next"] - 1} are missing or damaged', reader.stderr.read().decode())
        if start < 2:
            stop_in_turn(cluster)
            cluster.start()


if __name__ == '__main__':
    main()
