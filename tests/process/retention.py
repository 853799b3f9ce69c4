# SPDX-License-Identifier: Apache-2.0
"""Retention drops whole segments from the front, says the valid range, and gives the space back."""
import os
import re
import struct
import time

import kafka_wire
from kafka_groups import Client
from rawbatch import batch_of
from rig import CLOSED, Server, check, crc32c, equal, main, until

MIB = 1 << 20


def lines(first, count):
    return [f'{i:08d}'.ljust(1000, '.') for i in range(first, first + count)]


def first_offset_of(server, stream):
    return server.logs(stream)[0, 0]['first_offset']


def first_offset(server):
    return first_offset_of(server, 's')


def test_by_size():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1, '--segment-bytes', '256K',
                '--retention-bytes', '2M')
    server.produce('s', lines(0, 10000))
    until(lambda: server.logs('s')[0, 0]['bytes'] <= 2 * MIB + 256 * 1024, 'the log gets smaller')
    log = server.logs('s')[0, 0]
    check(log['bytes'] > MIB, 'more than asked for was dropped', log)
    first = log['first_offset']
    check(0 < first < 10000 and log['first_segment'] > 0, log)
    equal(log['end_offset'], 10000)
    # From the front, whole segments: what is left is dense and begins where the log says.
    got = server.leat('consume', 's', '--until-end', '--format', '%o %v').stdout.splitlines()
    equal(got, [f'{i} {v}' for i, v in zip(range(first, 10000), lines(first, 10000 - first))])
    # Below the first offset the valid range is named, and reading goes on there.
    done = server.leat('consume', 's', '--from', 3, '--until-end', '--format', '%o')
    check(re.search(rf'offset 3 is outside the valid range {first} to 10000', done.stderr), done.stderr)
    equal(done.stdout.split()[0], str(first))
    # Not one byte comes back with a kill.
    server.kill()
    server.start()
    check(first_offset(server) >= first, 'the first offset went back', first_offset(server), first)
    equal(server.values('s', '--from', 9999), lines(9999, 1))
    rows = server.segments(server.describe('s')['id'])
    segments = [r['segment'] for r in rows]
    equal(segments, list(range(segments[0], segments[0] + len(segments))), 'segments that are left')


def trim(server, before, code=0):
    return server.leat('stream', 'trim', 's', '--streamlet', 0, '--log', 0, '--before', before, code=code)


def test_records_before_an_offset_are_given_up():
    for level in ('memory', 'disk'):
        server = Server().start()
        server.leat('stream', 'create', 's', '--logs', 1, '--segment-bytes', '256K', '--durability', level)
        server.produce('s', lines(0, 3000))
        equal(trim(server, 1234).stdout, 'stream s streamlet 0 log 0 begins at offset 1234\n')
        equal(trim(server, 99).stdout, 'stream s streamlet 0 log 0 begins at offset 1234\n')
        check(re.search('past the log.s end, 3000', trim(server, 3001, code=1).stderr))
        own = server.leat('stream', 'trim', 'leat.sets', '--streamlet', 0, '--log', 0, '--before', 'end', code=1)
        check(own.stderr, "the server's own logs are not trimmed")
        for _ in range(3):
            log = server.logs('s')[0, 0]  # right after a start: nothing was read yet
            equal((log['first_offset'], log['end_offset']), (1234, 3000))
            equal(server.values('s'), lines(1234, 1766))
            done = server.leat('consume', 's', '--from', 3, '--until-end', '--format', '%o')
            check(re.search('offset 3 is outside the valid range 1234 to 3000', done.stderr), done.stderr)
            equal(server.values('s', '-G', f'set-{_}', '--mode', 'parallel', '--from', 'earliest'), lines(1234, 1766), 'by position')
            server.kill()
            server.start()
        check(server.logs('s')[0, 0]['first_segment'] > 0, 'whole segments are gone')
        equal(trim(server, 'end').stdout, 'stream s streamlet 0 log 0 begins at offset 3000\n')
        server.stop()
        server.start()
        equal(server.values('s'), [])
        server.produce('s', lines(3000, 5))
        equal(server.leat('consume', 's', '--until-end', '--format', '%o').stdout.split(), [str(i) for i in range(3000, 3005)])
        server.stop()


def test_space_is_used_again():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1, '--segment-bytes', '256K',
                '--retention-bytes', '2M')

    def files():
        return sum(os.stat(server.path('store', f)).st_blocks * 512
                   for f in os.listdir(server.path('store')))

    turns = 16  # files grow by doubling, and one step ahead: enough turns to tell reuse from growth
    for turn in range(turns):
        server.produce('s', lines(turn * 8000, 8000))
        until(lambda: server.logs('s')[0, 0]['bytes'] <= 2 * MIB + 256 * 1024, 'retention')
    written = turns * 8000 * 1000
    print(f'  {files() >> 20} MiB of files after {written >> 20} MiB')
    check(files() < written // 2, 'the files grew as if nothing were dropped', files())


def test_by_time():
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1, '--segment-bytes', '64K',
                '--retention-time', '2s')
    server.leat('stream', 'create', 'kept', '--logs', 1, '--segment-bytes', '64K')
    server.produce('s', lines(0, 1000))
    server.produce('kept', lines(0, 1000))
    until(lambda: first_offset(server) > 0, 'the first segments grow old')
    until(lambda: server.logs('s')[0, 0]['segments'] <= 2, 'all closed segments grow old')
    log = server.logs('s')[0, 0]
    equal(log['end_offset'], 1000, 'the end stays')
    got = server.values('s')
    equal(got, lines(log['first_offset'], 1000 - log['first_offset'])[-len(got):] if got else [])
    server.produce('s', lines(1000, 1))
    equal(server.values('s', '--from', 1000), lines(1000, 1), 'it goes on')
    equal(server.values('kept'), lines(0, 1000), 'another stream')
    check([r for r in server.segments(server.describe('kept')['id']) if r['state'] == CLOSED])


def test_times_that_cannot_be_right():
    """As old clients for Go send them: a header whose highest time is -1, around records of now. And what nobody should send: times
    of the next century. Both count from when they came."""
    server = Server('--kafka', '127.0.0.1:0').start()
    conn = Client(server)
    now = int(time.time() * 1000)
    server.leat('stream', 'create', 'kept', '--logs', 1, '--segment-bytes', '64K', '--retention-time', '1d')
    server.leat('stream', 'create', 'goes', '--logs', 1, '--segment-bytes', '64K', '--retention-time', '2s')
    values = [f'{n:06d}'.encode() * 100 for n in range(300)]
    for at in range(0, len(values), 10):
        kept = batch_of([(now + n, None, v) for n, v in enumerate(values[at:at + 10])], highest=-1)
        goes = batch_of([(now + 10 ** 12, None, v) for v in values[at:at + 10]])
        for topic, blob in ('kept', kept), ('goes', goes):
            equal(kafka_wire.produce(conn, topic, blob), (0, at), topic)
    until(lambda: first_offset_of(server, 'goes') == 300, 'records of the next century go')
    equal(first_offset_of(server, 'kept'), 0)
    equal(server.values('kept'), [v.decode() for v in values])
    server.kill()  # what is read back from the segments is no other
    server.start()
    batches, high = kafka_wire.batches_fetch(Client(server), 'kept', 0, 0)
    equal(high, 300)
    for batch in batches:
        equal(struct.unpack_from('>q', batch, 35)[0], now + 9, 'the highest time in the header')
        equal(crc32c(batch[21:]), struct.unpack_from('>I', batch, 17)[0], 'and its checksum')


def test_a_hibernated_log_is_trimmed_too():
    server = Server('--hibernate-after', '1').start()
    server.leat('stream', 'create', 's', '--logs', 1, '--segment-bytes', '64K',
                '--retention-time', '3s')
    server.produce('s', lines(0, 1000))
    until(lambda: server.logs('s')[0, 0]['memory_bytes'] == 0, 'it hibernates')
    until(lambda: server.logs('s')[0, 0]['segments'] <= 2, 'it is trimmed')
    server.produce('s', lines(1000, 5))
    equal(server.values('s', '--from', 1000), lines(1000, 5))


def test_a_reader_far_behind():
    """It reads slower than retention drops: it gets the valid range, and goes on in order."""
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1, '--segment-bytes', '256K',
                '--retention-bytes', '1M')
    server.produce('s', lines(0, 500))
    process = server.leat_start('consume', 's', '--format', '%o %v')
    first = process.stdout.readline()
    equal(first.split()[0], b'0')
    for turn in range(8):  # its pipe is full after a while
        server.produce('s', lines(500 + turn * 3000, 3000))
    server.produce('s', ['end'])
    last, gaps = 0, 0
    for line in process.stdout:
        offset, value = line.decode().split()
        check(int(offset) > last, 'order', offset, last)
        gaps += int(offset) != last + 1
        last = int(offset)
        if value == 'end':
            break
        equal(int(value.rstrip('.')), last, 'the value at this offset')
    check(gaps <= 10, 'gaps', gaps)


if __name__ == '__main__':
    main()
