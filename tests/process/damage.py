# SPDX-License-Identifier: Apache-2.0
"""What bit rot, lost files, lost memory and foreign files get: a name, a refusal that touches one log,
reads of what is valid, and a way out that an operator has to ask for."""
import json
import os
import re
import shutil
import struct

from rig import (BATCH, CLOSED, HIBERNATED, START, STREAM_CREATE, STREAM_DELETE, TRAILER, Raw, Server, check,
                 check_in, crc32c, entries, equal, main, until)

GROUP, LOG_INCOMPLETE = 22, 41


def lines(prefix, count, width=40):
    return [f'{prefix}-{i:06d}'.ljust(width, '.') for i in range(count)]


def filled(*flags, durability='disk', runs=5, count=40):
    """A server with the stream 'hurt' (one log, one segment, a batch per run) and 'well'."""
    server = Server(*flags).start()
    for name in ('hurt', 'well'):
        server.leat('stream', 'create', name, '--logs', 1, '--durability', durability)
    for run in range(runs):
        server.produce('hurt', lines(f'hurt{run}', count))
        server.produce('well', lines(f'well{run}', count))
    server.wanted = [v for run in range(runs) for v in lines(f'hurt{run}', count)]
    server.well = [v for run in range(runs) for v in lines(f'well{run}', count)]
    server.hurt_id = server.describe('hurt')['id']
    return server


def power_off(server):
    """Its memory goes with it, and what it had written is on the disk."""
    pool = server.pool
    server.kill()
    os.unlink(pool)


def head(server):
    """The row of the segment that 'hurt' was appending to."""
    started = [r for r in server.segments(server.hurt_id) if r['state'] != CLOSED and
               any(e[0] == START for e in entries(server.segment_bytes(r)))]
    equal(len(started), 1, 'open segments')
    return started[0]


def batches(server, row):
    return [e for e in entries(server.segment_bytes(row)) if e[0] == BATCH]


def refused(server, name='hurt'):
    """Appends to it are refused by name and soon; the reason comes back with its code."""
    done = server.leat('produce', name, '--timeout', '5s', input=b'x\n', code=1)
    check(re.search(r'DAMAGED|LOG_INCOMPLETE', done.stderr), done.stderr)
    return done.stderr


def others_untouched(server):
    equal(server.values('well'), server.well, 'the other stream')
    server.produce('well', ['more'])
    server.well.append('more')


def recovered(server, valid, name='hurt'):
    """After `log recover`: appends go on, far ahead, and what was valid is still there."""
    before = server.logs(name)[0, 0]
    told = server.leat('log', 'recover', name, code=2).stderr
    check_in(f'offsets 0 to {len(valid) - 1} would be kept' if valid else 'nothing would be kept', told)
    said = server.leat('log', 'recover', name, '--accept-loss').stdout
    next_offset = int(re.search(r'offset (\d+)', said).group(1))
    check(next_offset > before['end_offset'] + 1000, 'offsets have to jump ahead', said)
    server.produce(name, ['after'])
    got = server.leat('consume', name, '--until-end', '--format', '%o %v').stdout.splitlines()
    equal(got, [f'{i} {v}' for i, v in enumerate(valid)] + [f'{next_offset} after'],
          'records after recovery')
    check(server.logs(name)[0, 0]['state'] == 'ok', 'its state after recovery')


def open_segment_after(end):
    server = filled()
    end(server)
    row = head(server)
    # The second batch: the first stays valid, and three follow it.
    found = batches(server, row)
    check(len(found) >= 5, 'batches', found)
    second = found[1]
    server.segment_flip(row, second[1] + 32 + second[2] // 2)
    size = os.path.getsize(server.path('store', str(row['file'])))
    server.start()
    # The sentence names the log and says what to do.
    check(re.search(rf'log {server.hurt_id}/0/0|stream "?hurt', server.node_log()),
          'the start did not name it:', server.node_log())
    named_in = [line for line in server.node_log().splitlines() if f'segment {row["segment"]} of log' in line and 'damaged' in line]
    equal(len(named_in), 1, named_in)
    equal(server.logs('hurt')[0, 0]['state'], 'waiting', 'describe does not show it')
    # Where its groups end is not said either: a consumer group would take the growing one for done.
    flags, said, _ = Raw(server).call(GROUP, [server.hurt_id, 0, 0, 0])
    equal((flags, said[0]), (3, LOG_INCOMPLETE), 'its first group')
    others_untouched(server)
    check_in('recover', refused(server))
    valid = server.wanted[:second[3]]
    got = server.leat('consume', 'hurt', '--until-end', code=4)
    equal(got.stdout.splitlines(), valid, 'what is valid')
    check(re.search(f'stream hurt streamlet 0 log 0 could not be read to its end: offsets 0 to {len(valid) - 1} are there,'
                    ' and then: .*damaged', got.stderr), got.stderr)
    # Nothing is given up without an operator: the same after another start.
    server.stop()
    equal(os.path.getsize(server.path('store', str(row['file']))), size, 'size of the file')
    check(any(r['number'] == row['number'] for r in server.rows()), 'its row is gone')
    server.start()
    refused(server)
    recovered(server, valid)
    others_untouched(server)
    server.stop()
    server.start()
    server.produce('hurt', ['again'])
    equal(server.values('hurt'), valid + ['after', 'again'], 'after recovery and a restart')


def test_open_segment_damaged_after_a_power_cut():
    open_segment_after(power_off)


def test_hibernated_segment_damaged_after_stop():
    open_segment_after(Server.stop)


def last_write_damaged(power):
    """A bit of what was acked last, of a log that was silent since: nothing was appended behind it."""
    server = filled()
    row = head(server)

    def closed_run():
        *_, last = entries(server.segment_bytes(row))
        return last[0] == TRAILER and last[3] == last[1]
    until(closed_run, 'a trailer says that all is acked')
    (power_off if power else Server.kill)(server)
    last = batches(server, row)[-1]
    server.segment_flip(row, last[1] + 32 + last[2] // 2)
    server.start()
    return server, last[3]


def test_last_write_of_an_open_segment_damaged_is_named():
    server, left = last_write_damaged(power=True)
    check_in('damaged', server.node_log())
    equal(len(re.findall('segment 0 of log', server.node_log())), 1, server.node_log())
    equal(server.logs('hurt')[0, 0]['state'], 'waiting', 'describe does not show it')
    check_in('recover', refused(server))
    recovered(server, server.wanted[:left])
    others_untouched(server)


def test_last_write_of_an_open_segment_damaged_comes_from_memory_that_outlived_the_server():
    server, _ = last_write_damaged(power=False)
    check_in('come from the memory of the server before', server.node_log())
    equal(server.values('hurt'), server.wanted)
    server.produce('hurt', ['more'])
    server.kill()
    server.start()
    equal(server.values('hurt'), server.wanted + ['more'])


def test_header_of_open_segment_damaged():
    server = filled()
    power_off(server)
    row = head(server)
    server.segment_flip(row, 40)
    server.start()
    check_in('damaged', server.node_log())
    others_untouched(server)
    refused(server)
    recovered(server, [])


def test_repair_of_the_bytes_brings_everything_back():
    """Damage is not made worse: the right bytes, brought back from a copy, are served again."""
    server = filled()
    power_off(server)
    row = head(server)
    at = batches(server, row)[2][1] + 50
    server.segment_flip(row, at)
    server.start()
    refused(server)
    server.stop()
    server.segment_flip(row, at)
    server.start()
    equal(server.values('hurt'), server.wanted, 'after the repair')
    server.produce('hurt', ['more'])
    equal(server.values('hurt'), server.wanted + ['more'])


def test_row_of_the_catalogue_damaged():
    server = filled()
    server.kill()
    row = head(server)
    server.flip('catalogue', row['at'] + 60)
    server.start()
    check_in('catalogue', server.node_log())
    check(re.search(r'row|damaged', server.node_log()), server.node_log())
    others_untouched(server)
    refused(server)
    # Not deleted: with the row back everything is back.
    server.stop()
    server.flip('catalogue', row['at'] + 60)
    server.start()
    equal(server.values('hurt'), server.wanted)
    server.produce('hurt', ['more'])


def test_row_damaged_then_loss_accepted():
    server = filled()
    server.stop()
    row = head(server)
    server.flip('catalogue', row['at'] + 8)
    server.start()
    others_untouched(server)
    refused(server)
    recovered(server, [])
    server.kill()
    server.start()
    equal(server.values('hurt'), ['after'])
    others_untouched(server)


def test_header_of_the_catalogue_damaged():
    server = filled()
    server.stop()
    server.flip('catalogue', 20)
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in('catalogue', text)
    server.flip('catalogue', 20)
    server.start()
    equal(server.values('hurt'), server.wanted)


def closed_segments(*flags, durability='disk'):
    """A log with several closed segments of 64 KiB, in their file and not in memory."""
    server = Server('--scrub', '0', *flags).start()
    server.leat('stream', 'create', 'hurt', '--logs', 1, '--segment-bytes', '64K', '--durability',
                durability)
    server.wanted = lines('hurt', 8000, 100)
    server.produce('hurt', server.wanted, '--batch-bytes', '4K')
    server.hurt_id = server.describe('hurt')['id']
    server.stop()
    closed = [r for r in server.segments(server.hurt_id) if r['state'] == CLOSED]
    check(len(closed) >= 4, 'closed segments', len(closed))
    return server, closed


def named(server, words):
    """Wherever an operator looks."""
    log = server.logs('hurt')[0, 0]
    equal((log['state'], log['takes_appends'], log['code'], log['text']), ('damaged', True, 'DAMAGED', words))
    told = server.leat('stream', 'describe', 'hurt')
    check_in(words, told.stderr)
    check(re.search(r'^ +0 .* damaged ', told.stdout, re.M), told.stdout)
    check_in(words, server.leat('cluster', 'status', code=1).stdout)
    status = json.loads(server.leat('cluster', 'status', '--json', code=1).stdout)
    report = status['nodes'][0]['report']
    equal((status['healthy'], report['logs_in_trouble']), (False, 1))
    equal(report['troubled_logs'], [{'stream': 'hurt', 'streamlet': 0, 'log': 0, 'why': words}])
    check_in(f'1 log of this node takes no appends or lacks records:\n             stream hurt streamlet 0 log 0: {words}\n',
             server.leat('status', code=1).stdout)
    status = server.status()
    equal((status['logs_in_trouble'], status['troubled_logs']), (1, report['troubled_logs']))


def test_closed_segment_damaged_is_named_at_first_read():
    server, closed = closed_segments()
    row = closed[2]
    batch = batches(server, row)[1]
    server.segment_flip(row, batch[1] + 32 + 80)
    server.start()
    check('damaged' not in server.node_log(), 'the start read closed segments:', server.node_log())
    done = server.leat('consume', 'hurt', '--until-end', code=1)
    check_in('damaged', done.stderr)
    check_in('hurt', done.stderr)
    equal(done.stdout.splitlines(), server.wanted[:batch[3]], 'what lies before')
    check(re.search(rf'segment {row["segment"]} is damaged', server.node_log()), server.node_log())
    named(server, f'segment {row["segment"]} with offsets {row["base"]} to {row["next"] - 1} is damaged')
    member = server.leat('consume', 'hurt', '--until-end', '--group', 'several', '--mode', 'parallel', code=1)
    check_in(f'records of segment {row["segment"]} are', member.stderr)
    check_in('leat log recover hurt --streamlet 0 --log 0 --accept-loss', member.stderr)
    # Other offsets are not touched, nor are appends.
    after = row['next']
    equal(server.values('hurt', '--from', after), server.wanted[after:], 'what lies behind')
    server.produce('hurt', ['more'])
    equal(server.values('hurt', '--from', after)[-1], 'more')


def test_segment_of_which_a_part_is_left_is_named():
    """Its row says that it was being written: what is valid of it is served, and nobody goes on behind it without a word."""
    server, closed = closed_segments()
    row = closed[2]
    batch = batches(server, row)[len(batches(server, row)) // 2]
    server.row_open(row)
    server.segment_flip(row, batch[1] + 32 + 80)
    for _ in range(2):
        server.start()
        done = server.leat('consume', 'hurt', '--until-end', code=1)
        check_in('damaged', done.stderr)
        check_in(f'--from {row["next"]}', done.stderr)
        left = len(done.stdout.splitlines())  # up to the trailer in front of that batch, which is one of several
        check(row['base'] < left <= batch[3], 'what is left ends in front of the damage', left, row, batch)
        equal(done.stdout.splitlines(), server.wanted[:left], 'what lies before')
        check(re.search(rf'segment {row["segment"]} is damaged at \d+: offsets {left} to {row["next"] - 1} are not there',
                        server.node_log()), server.node_log())
        equal(server.values('hurt', '--from', row['next']), server.wanted[row['next']:], 'what lies behind')
        server.stop()


def test_a_log_does_not_end_with_an_older_segment_that_is_damaged():
    """The row of one in the middle says that it was being written, as after a power cut, and its end is damaged; behind
    it others were acknowledged, and the log was being appended to."""
    for at_the_end in True, False:
        server, closed = closed_segments()
        server.start()
        more = lines('more', 4000, 100)
        server.produce('hurt', more, '--batch-bytes', '4K')
        server.wanted += more
        power_off(server)
        row = [r for r in server.segments(server.hurt_id) if r['state'] == CLOSED][-2]
        check(row['base'] > len(server.wanted) - len(more), 'of this start', row)
        server.row_open(row)
        server.segment_flip(row, row['prefix_id_bytes'] - 8 if at_the_end else batches(server, row)[-1][1] + 32 + 80)
        server.start()
        equal(server.values('hurt', '--from', row['next']), server.wanted[row['next']:], 'what lies behind')
        done = server.leat('consume', 'hurt', '--until-end', code=0 if at_the_end else 1)
        left = done.stdout.splitlines()
        equal(left, server.wanted[:len(left)])
        check(len(left) == len(server.wanted) if at_the_end else len(left) > row['base'], len(left), row)
        for word in 'again', 'and again':  # its row stays as it is
            server.produce('hurt', [word])
            server.kill()
            server.start()
            equal(server.values('hurt', '--from', row['next'])[-1], word)
        server.end()


def test_damage_that_an_operator_gives_up_is_passed_over():
    """Two batches with a flipped bit, and a segment of which nothing is there: readers go on behind them, members of a
    set among them, and what lies beside them in the same segments is read."""
    server, closed = closed_segments()
    gone = set()
    for row, which in (closed[2], 1), (closed[4], 0):
        batch = batches(server, row)[which]
        after = batches(server, row)[which + 1]
        server.segment_flip(row, batch[1] + 32 + 80)
        gone |= set(range(batch[3], after[3]))
    rows_lost(server, [closed[3]])
    gone |= set(range(closed[3]["base"], closed[3]["next"]))
    server.start()
    server.leat('consume', 'hurt', '--group', 'readers', '--until-end', code=1)
    accepted = 0
    while (done := server.leat('consume', 'hurt', '--until-end', code=None)).returncode:
        check_in('leat log recover hurt --streamlet 0 --log 0 --accept-loss', done.stderr)
        told = server.leat('log', 'recover', 'hurt', code=2).stderr
        check(re.search('all else would be kept, .*; given up: .*segment', told), told)
        server.leat('log', 'recover', 'hurt', '--accept-loss')
        accepted += 1
    equal(accepted, 2, 'what nobody had read was not known to be damaged')
    left = [line for i, line in enumerate(server.wanted) if i not in gone]
    equal(done.stdout.splitlines(), left)
    server.leat('cluster', 'status')
    equal(server.logs('hurt')[0, 0]['code'], 'OK')
    check_in('there is nothing to give up', server.leat('log', 'recover', 'hurt', '--accept-loss', code=1).stderr)
    at = len([i for i in range(closed[4]["next"]) if i not in gone])
    equal(server.values('hurt', '--from', closed[4]["next"]), left[at:])
    before = server.values('hurt', '--group', 'readers')
    check(left[-1] == before[-1] and left[-len(before):] == before, 'the group goes on', len(before))
    server.produce('hurt', ['more'])
    server.kill()
    server.start()
    equal(server.values('hurt'), left + ['more'], 'after another start')


def test_closed_segment_damaged_is_named_by_the_scrub():
    server, closed = closed_segments()
    row = closed[3]
    server.segment_flip(row, batches(server, row)[2][1] + 100)
    server.start('--scrub', '64M')
    server.node_log_wait(rf'scrub: closed segment {row["segment"]} of log {server.hurt_id}/0/0 .*damaged')
    until(lambda: server.logs('hurt')[0, 0]['code'] != 'OK', 'its log has heard of it')  # from the store, after the line
    named(server, f'segment {row["segment"]} with offsets {row["base"]} to {row["next"] - 1} is damaged')
    check_in('damaged', server.leat('consume', 'hurt', '--until-end', code=1).stderr)
    # A log that is opened behind that says so, too.
    equal(len(re.findall(rf'scrub: closed segment {row["segment"]} .*is damaged', server.node_log())), 1, 'lines of one segment')


def rows_lost(server, rows):
    """As a power cut leaves a segment of durability memory whose row was not on the disk yet."""
    with open(server.path('catalogue'), 'r+b') as file:
        for row in rows:
            file.seek(row['at'])
            file.write(bytes(128))


def front_is_missing(server, first):
    """Whoever begins at the earliest offset hears of it, and how to go on."""
    for origin in ('earliest', 0, first - 1):
        done = server.leat('consume', 'hurt', '--from', origin, '--until-end', code=1)
        equal(done.stdout, '', 'nothing is skipped unasked')
        check(re.search(rf'offsets \d+ to {first - 1} are missing', done.stderr), done.stderr)
        check_in(f'--from {first}', done.stderr)
    check_in('leat log recover', server.leat('consume', 'hurt', '--until-end', code=1).stderr)
    equal(server.values('hurt', '--from', first), server.wanted[first:], 'what lies behind')
    log = server.logs('hurt')[0, 0]
    equal((log['state'], log['takes_appends'], log['code'], log['first_offset']), ('damaged', True, 'DAMAGED', 0))
    said = server.leat('stream', 'describe', 'hurt').stderr
    check_in(f'offsets 0 to {first - 1} are missing', said)
    check_in(f'offsets 0 to {first - 1} are missing', server.leat('cluster', 'status', code=1).stdout)


def test_front_lost_is_named_until_it_is_given_up():
    server, closed = closed_segments(durability='memory')
    rows_lost(server, closed[:3])
    first = closed[3]['base']
    server.start()
    front_is_missing(server, first)
    server.produce('hurt', ['more'])
    server.wanted.append('more')
    server.kill()
    server.start()
    front_is_missing(server, first)
    said = server.leat('log', 'recover', 'hurt', '--accept-loss').stdout
    check(re.search(rf'offset {first}\b', said), said)
    for turn in range(2):
        log = server.logs('hurt')[0, 0]
        equal((log['state'], log['code'], log['first_offset']), ('ok', 'OK', first))
        server.leat('cluster', 'status')
        equal(server.values('hurt'), server.wanted[first:], 'after the loss was accepted')
        check_in('nothing is missing',
                 server.leat('log', 'recover', 'hurt', '--accept-loss', code=1).stderr)
        server.kill()
        server.start()


def test_unreadable_tail_given_up_is_jumped_over():
    server, closed = closed_segments()
    row = head(server)
    server.segment_flip(row, 40)
    server.start()
    refused(server)
    valid = server.wanted[:closed[-1]['next']]
    recovered(server, valid)
    server.kill()
    server.start()
    equal(server.values('hurt'), valid + ['after'], 'after a kill')
    server.stop()
    server.start()
    equal(server.values('hurt'), valid + ['after'], 'after a stop')
    equal(server.values('hurt', '--from', closed[-1]['next'] + 1), ['after'], 'from within the gap')
    log = server.logs('hurt')[0, 0]
    equal(log['end_offset'] - log['first_offset'] - log['offsets_lost'], len(valid) + 1, 'offsets that have records')
    check_in(f'{len(valid) + 1} records', server.leat('stream', 'describe', 'hurt').stdout)


def raft_file(server, prefix):
    found = sorted(f for f in os.listdir(server.path('raft')) if f.startswith(prefix))
    check(found, 'files of raft', os.listdir(server.path('raft')))
    return os.path.join('raft', found[-1])


def test_raft_log_damaged():
    server = filled()
    server.stop()
    name = raft_file(server, 'log-')
    at = 64 + 48 + 32 + 8  # inside the first round's first frame
    server.flip(name, at)
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in(os.path.basename(name), text)
    server.flip(name, at)
    server.start()
    equal(server.values('hurt'), server.wanted)


def test_raft_vote_damaged():
    server = filled()
    server.stop()
    # One of its two copies: served from the other. Both: named and refused.
    server.flip('raft/vote', 16)
    server.start()
    equal(server.values('hurt'), server.wanted)
    server.stop()
    server.flip('raft/vote', 16)
    server.flip('raft/vote', 4096 + 16)
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in('vote', text)


def test_raft_files_missing():
    server = filled()
    server.stop()
    kept = server.path('raft') + '-kept'
    shutil.copytree(server.path('raft'), kept)
    for name in (raft_file(server, 'log-'), 'raft/vote'):
        os.unlink(server.path(name))
        code, text = server.start_refused()
        equal(code, 3, text)
        check_in('raft', text)
        shutil.copy(os.path.join(kept, os.path.basename(name)), server.path('raft'))
    shutil.rmtree(server.path('raft'))
    code, text = server.start_refused()
    equal(code, 3, text)
    shutil.copytree(kept, server.path('raft'), dirs_exist_ok=True)
    server.start()
    equal(server.values('hurt'), server.wanted)
    equal(server.values('well'), server.well)


def test_raft_snapshot_damaged():
    """Streams of long names come and go until the coordinator takes a snapshot; then that rots."""
    server = Server().start()
    server.leat('stream', 'create', 'kept', '--logs', 1)
    server.produce('kept', ['a', 'b'])
    conn = Raw(server)
    for turn in range(200):
        names = [f'{turn}-{i}'.ljust(240, 'x') for i in range(50)]
        for kind, more in ((STREAM_CREATE, [[1, 1, 1, 1, 2, 0, 0, 0]]), (STREAM_DELETE, [])):
            for name in names:
                conn.send(kind, [name] + more)
            for name in names:
                flags, control, _ = conn.answer()
                equal(flags, 1, control)
        if any(f.startswith('snapshot-') for f in os.listdir(server.path('raft'))):
            break
    server.stop()
    name = raft_file(server, 'snapshot-')
    middle = os.path.getsize(server.path(name)) // 2
    server.flip(name, middle)
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in('snapshot', text)
    server.flip(name, middle)
    server.start()
    equal(server.values('kept'), ['a', 'b'])


def test_store_file_truncated():
    server = filled()
    server.stop()
    row = head(server)
    other = [r for r in server.segments(server.hurt_id + 1) if r['state'] == HIBERNATED][-1]
    last = max(row, other, key=lambda r: r['unit'])
    name = server.path('store', str(row['file']))
    shutil.copy(name, name + '-kept')
    os.truncate(name, last['unit'] * 16384 + 4096)
    server.start()
    check_in('store/', server.node_log())
    hurt, well = ('hurt', 'well') if last is row else ('well', 'hurt')
    wanted = {'hurt': server.wanted, 'well': server.well}
    equal(server.values(well), wanted[well], 'the log that was not cut')
    refused(server, hurt)
    server.stop()
    os.rename(name + '-kept', name)
    server.start()
    equal(server.values(hurt), wanted[hurt], 'with the file back')


def test_store_file_missing():
    server = filled()
    server.stop()
    os.rename(server.path('store', '0'), server.path('kept'))
    server.start()
    check_in('store/0', server.node_log())
    refused(server)
    server.stop()
    os.rename(server.path('kept'), server.path('store', '0'))
    server.start()
    equal(server.values('hurt'), server.wanted)


def test_memory_lost_as_in_a_power_cut():
    """Durability memory: acked records were in the pool alone. Nothing is lost silently."""
    server = filled(durability='memory')
    server.kill()
    check(server.pool and os.path.exists(server.pool), 'no pool', server.pool)
    os.unlink(server.pool)
    server.start()
    check(re.search(r'memory did not survive', server.node_log()), server.node_log())
    for name in ('hurt', 'well'):
        check(server.logs(name)[0, 0]['state'] != 'ok', 'its state')
        refused(server, name)
    before = server.values('hurt', code=None)
    equal(before, server.wanted[:len(before)], 'what is left')
    recovered(server, before)


def test_memory_survives_a_kill():
    server = filled(durability='memory')
    for _ in range(3):
        server.kill()
        server.start()
        equal(server.values('hurt'), server.wanted)
        others_untouched(server)


def test_memory_is_on_disk_after_a_stop():
    server = filled(durability='memory')
    server.stop()
    check(not os.path.exists(server.pool), 'the pool outlives a clean stop')
    server.start()
    equal(server.values('hurt'), server.wanted)
    others_untouched(server)


def test_a_directory_of_somebody_elses_is_refused():
    server = Server()
    os.makedirs(server.data)
    with open(server.path('thesis.txt'), 'w') as file:
        file.write('mine')
    # Names that a server uses do not make it one's: anybody has a folder or a file of such a name.
    for name in ('store', 'raft', 'catalogue', 'lock', 'identity'):
        os.mkdir(server.path(name))
        code, text = server.start_refused()
        equal(code, 3)
        check_in('in it and no file "identity" of a server\'s', text)
        equal(sorted(os.listdir(server.data)), sorted(['thesis.txt', name]))
        os.rmdir(server.path(name))
    code, text = server.start_refused()
    equal(code, 3)
    check_in("has 'thesis.txt' in it", text)
    os.unlink(server.path('thesis.txt'))
    server.start()


def test_data_of_another_cluster():
    one, two = filled(runs=1), filled(runs=1)
    one.stop()
    two.stop()
    for name in ('identity', 'raft', 'catalogue'):
        kept = one.path(name) + '-kept'
        os.rename(one.path(name), kept)
        (shutil.copytree if os.path.isdir(two.path(name)) else shutil.copy)(
            two.path(name), one.path(name))
        code, text = one.start_refused()
        equal(code, 3, text)
        check_in('cluster', text)
        (shutil.rmtree if os.path.isdir(one.path(name)) else os.unlink)(one.path(name))
        os.rename(kept, one.path(name))
    one.start()
    equal(one.values('hurt'), one.wanted)


def test_identity_damaged_or_missing():
    server = filled(runs=1)
    server.stop()
    server.flip('identity', 9)
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in('identity', text)
    server.flip('identity', 9)
    os.rename(server.path('identity'), server.path('kept'))
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in('identity', text)
    os.rename(server.path('kept'), server.path('identity'))
    server.start()
    equal(server.values('hurt'), server.wanted)


def test_newer_format_of_the_catalogue():
    server = filled(runs=1)
    server.stop()
    with open(server.path('catalogue'), 'r+b') as file:
        header = bytearray(file.read(56))
        struct.pack_into('<I', header, 8, struct.unpack_from('<I', header, 8)[0] + 1)
        struct.pack_into('<I', header, 0, crc32c(header[4:]))
        file.seek(0)
        file.write(header)
    code, text = server.start_refused()
    equal(code, 3, text)
    check_in('version', text)


def test_second_server_on_the_directory():
    server = Server().start()
    code, text = Server("--data", server.data).start_refused()
    equal(code, 3, text)
    check_in(str(server.process.pid), text)
    server.leat('stream', 'list')




if __name__ == '__main__':
    main()
