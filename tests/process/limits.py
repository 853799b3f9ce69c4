# SPDX-License-Identifier: Apache-2.0
"""Many, slow, broken and large: memory stays bounded, and others are served meanwhile."""
import ctypes
import errno
import json
import os
import re
import resource
import socket
import struct
import subprocess
import sys
import threading

from rig import (FETCH, HELLO, METADATA, PING, STREAM_CREATE, Failure, Raw, Server, Skipped, WAIT_S, check, check_in,
                 directory, equal, frame, line_read, main, on_end, process_end,
                 reader_that_takes_nothing, until)
import tied
from kafka_groups import Client
from kafka_native import kafka_write
from kafka_wire import INVALID_PARTITIONS, topic_enlarge

IDLE_WAKES = 200  # a second; five with nothing, 35 with five readers that wait
MIB = 1 << 20

HOLDER = r'''
import resource, socket, sys
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
hello = bytes.fromhex(sys.argv[3])
held = []
for i in range(int(sys.argv[2])):
    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 60, (sys.argv[4], 0))
    s.sendall(hello)
    held.append(s)
for s in held:
    if not s.recv(65536):
        sys.exit('closed by the server')
print('held', flush=True)
sys.stdin.read()
for s in held:  # none was thrown out meanwhile
    s.setblocking(False)
    try:
        if not s.recv(1):
            sys.exit('closed by the server')
    except BlockingIOError:
        pass
print('kept', flush=True)
'''


def holders_start(server, count):
    """Four processes, of an address each, with so many connections together that have said who they are."""
    hello = frame(HELLO, [1, 1, 'idle', -1]).hex()
    holders = []
    for i in range(4):  # one address has no more than half of the files, and of the place in the budget
        holder = tied.start([sys.executable, '-c', HOLDER, str(server.port), str(count // 4), hello, f'127.0.0.{i + 1}'],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        on_end(lambda holder=holder: process_end(holder))
        holders.append(holder)
    for holder in holders:
        equal(line_read(holder.stdout), 'held\n', f'a process with {count // 4} connections')
    return holders


def test_ten_thousand_idle_connections():
    server = Server().start()
    server.produce('s', ['before'])
    empty = server.memory_bytes()
    holders = holders_start(server, 10000)
    check(server.status()['connections'] >= 10000, server.status())
    grown = server.memory_bytes() - empty
    check(grown < 100 * MIB, 'memory for 10,000 idle connections', grown)
    check(server.memory_bytes() < 256 * MIB, 'budget', server.memory_bytes())
    server.produce('s', ['during'])
    equal(sorted(server.values('s')), ['before', 'during'], 'others are served')
    for holder in holders:
        holder.stdin.close()
        equal(line_read(holder.stdout), 'kept\n')
    for holder in holders:
        equal(holder.wait(WAIT_S), 0)
    until(lambda: server.status()['connections'] < 100, 'connections are given back')


def test_half_a_frame_and_garbage_harm_nobody():
    server = Server().start()
    server.produce('s', ['one'])
    whole = frame(PING, [])
    held = []
    for cut in range(1, len(whole)):
        conn = Raw(server)
        conn.socket.sendall(whole[:cut])
        held.append(conn)
    garbage = [b'GET / HTTP/1.1\r\nHost: x\r\n\r\n' + bytes(64), os.urandom(4096), b'\xff' * 64,
               struct.pack('<I', 4) + bytes(20), struct.pack('<I', 0xffffffff) + bytes(20),
               bytes(8192)]
    for blob in garbage:
        for hello in (True, False):
            conn = Raw(server, hello=hello)
            try:
                conn.socket.sendall(blob)
            except ConnectionError:
                pass
            check(conn.closed(), f'{blob[:16]!r} is not answered by closing')
    # A flipped byte anywhere in header or control is found by the CRC.
    for at in range(4, len(whole)):
        conn = Raw(server)
        conn.socket.sendall(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        check(conn.closed(), f'byte {at} flipped and not noticed')
    # Those with half a frame still can send the rest.
    for cut, conn in zip(range(1, len(whole)), held):
        conn.socket.sendall(whole[cut:])
        equal(conn.answer()[0], 1, 'answer to a frame sent in two parts')
    server.produce('s', ['two'])
    equal(sorted(server.values('s')), ['one', 'two'])


def test_no_hello_and_wrong_versions():
    server = Server().start()
    conn = Raw(server, hello=False)
    conn.send(PING, [])
    try:
        flags, control, _ = conn.answer()
        equal(flags & 2, 2, 'a request before hello is an error')
        check(len(control) == 3 and control[2], control)
    except EOFError:
        pass
    conn = Raw(server, hello=False)
    flags, control, _ = conn.call(HELLO, [200, 201, 'new', -1])
    equal((flags & 2, control[0]), (2, 31), 'UNSUPPORTED')
    check(conn.closed(), 'no common version: closed')
    conn = Raw(server)
    flags, control, _ = conn.call(999, [])
    equal((flags & 2, control[1]), (2, 3), 'an unknown kind is rejected')
    conn.call(PING, [])


def numbers_of_the_page():
    """Names of errors and kinds -> numbers, as docs/protocol.md has them."""
    with open(os.path.join(os.path.dirname(__file__), '..', '..', 'docs', 'protocol.md')) as page:
        text = page.read()
    return {name: int(number) for number, name in re.findall(r'^\| (\d+) \|? ?([A-Z_]+) \|', text, re.M)}


def test_beyond_each_limit_of_the_protocol_stands_what_its_page_says():
    page = numbers_of_the_page()
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    raw = Raw(server)
    log = [server.describe('s')['id'], 0, 0]
    epoch = server.logs('s')[0, 0]['epoch']
    row = [*log, epoch, 0]
    settings = [1, 1, 1, 1, 0, 0, 0, 0]
    for kind, control, refusal in (
            ('APPEND', [*log, epoch, 1025], 'TOO_MANY'), ('APPEND', [*log, epoch, 0], 'TOO_MANY'),
            ('FETCH', [0, 1, 0, [row] * 1024], None), ('FETCH', [0, 1, 0, [row] * 1025], 'TOO_MANY'),
            ('FETCH', [0, 1, 0, []], 'TOO_MANY'),
            ('LOCATE', [[[*log, 0, 0]] * 1024], None), ('LOCATE', [[[*log, 0, 0]] * 1025], 'INVALID'),
            ('LOCATE', [[]], 'INVALID'),
            ('METADATA', [['s'] * 1024, False], None), ('METADATA', [['s'] * 1025, False], 'TOO_MANY'),
            ('METADATA', [['s']], None), ('METADATA', [['x' * 250], False], 'BAD_NAME'),
            *((kind, [name, *rest], 'BAD_NAME') for name in ('x' * 250, '', 'a/b') for kind, rest in (
                ('STREAM_DESCRIBE', []), ('SEGMENTS', [0, 0, 0]), ('STREAM_DELETE', []), ('STREAM_TRIM', [0, 0, 0]),
                ('STREAMLET_MOVE', [0, 'n1']), ('LOG_RECOVER', [0, 0, True]))),
            ('STREAM_DESCRIBE', ['x' * 249], 'UNKNOWN_STREAM'), ('SEGMENTS', ['x' * 249, 0, 0, 0], 'UNKNOWN_STREAM'),
            ('STREAM_DESCRIBE', [7], 'INVALID'), ('SEGMENTS', ['s', 0, 0], 'INVALID'),
            ('GROUP_LEAVE', ['g', 'm', json.loads('[' * 9 + ']' * 9)], 'UNKNOWN_MEMBER'),  # what is within the eighth
            ('GROUP_LEAVE', ['g', 'm', json.loads('[' * 10 + ']' * 10)], 'INVALID'),
            ('LOG_RECOVER', ['s', 0, 0, False], 'INVALID'),
            ('LOG_RECOVER', ['s', 0, 0], 'INVALID'),
            ('STREAM_CREATE', ['a'], None), ('STREAM_CREATE', ['x' * 249, settings], None),
            ('STREAM_CREATE', ['x' * 250, settings], 'BAD_NAME'), ('STREAM_CREATE', ['', settings], 'BAD_NAME'),
            ('STREAM_CREATE', ['a/b', settings], 'BAD_NAME'), ('STREAM_CREATE', ['leat.x', settings], 'BAD_NAME'),
            ('STREAM_CREATE', ['b', [1, 257] + settings[2:]], 'INVALID'),
            ('STREAM_CREATE', ['b', [129, 256] + settings[2:]], 'TOO_MANY'),
            ('STREAM_CREATE', ['b', [1, 1, 9] + settings[3:]], 'INVALID'),
            ('STREAM_CREATE', ['b', settings[:5] + [8192, 0, 0]], 'INVALID'),
            ('STREAM_CREATE', ['b', settings[:5] + [16 << 20, 0, 0]], 'INVALID'),
            ('STREAM_CREATE', ['b', settings + [127]], 'INVALID'),
            ('STREAM_CREATE', ['b', settings + [(2 << 20) + 1]], 'INVALID'),
            ('STREAM_CREATE', ['b', settings + [128]], None),
            ('GROUP_JOIN', ['x' * 249, '', 0, 0, ['s']], None), ('GROUP_JOIN', ['x' * 250, '', 0, 0, ['s']], 'BAD_NAME'),
            ('GROUP_JOIN', ['', '', 0, 0, ['s']], 'BAD_NAME'), ('GROUP_LEAVE', ['x' * 250, 'm'], 'BAD_NAME'),
            ('GROUP_JOIN', ['g', 'm' * 63, 0, 0, ['s']], 'UNKNOWN_MEMBER'),
            ('GROUP_JOIN', ['g', 'm' * 64, 0, 0, ['s']], 'INVALID'),
            ('GROUP_JOIN', ['g', '', 0, 0, ['s'] * 17], 'TOO_MANY'), ('GROUP_JOIN', ['g', '', 0, 0, []], 'TOO_MANY'),
            ('GROUP_JOIN', ['g', '', 0, 99, ['s']], 'INVALID'), ('GROUP_JOIN', ['g', '', 0, 1800001, ['s']], 'INVALID'),
            ('GROUP_COMMIT', ['new', '', 0, [[*log, -1, 0]] * 32769], 'TOO_MANY'),
            ('GROUP_FETCH', ['new', [log] * 32769], 'TOO_MANY'), ('GROUP_FETCH', ['new', [log]], None),
            ('HELLO', [1, 1, 'again', -1], 'UNSUPPORTED')):
        flags, said, _ = raw.call(page[kind], control)
        wanted = (3, page[refusal]) if refusal else (1, None)
        equal((flags, said[0] if flags == 3 else None), wanted, f'{kind} {str(control)[:80]}: {str(said)[:200]}')
    equal(raw.call(99, [])[1][0], page['UNSUPPORTED'], 'a kind that there is not')
    equal(raw.call(page['PING'], [])[0], 1, 'the connection goes on')


def test_slow_reader_is_bounded_and_alone():
    """It asks for everything again and again, and reads nothing."""
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.leat('bench', 'append', '--stream', 's', '--producers', 1, '--records', 300000, '--logs', 1)
    conn = Raw(server, receive_bytes=4096)
    _, control, _ = conn.call(METADATA, [['s'], False])
    stream = control[2][0]
    log = stream[4][0]

    def others_are_served():
        server.produce('other', ['x'])
        equal(server.values('other'), ['x'], 'others are served')

    request = frame(FETCH, [1, 4 * MIB, 0, [[stream[2], 0, 0, log[3], 0]]], 7)
    reader_that_takes_nothing(server, conn.socket, request, others_are_served)
    equal(len(server.values('s', '--format', '%o')), 300001, 'another reader of the same stream')


def test_a_reader_that_stalls_leaves_others_something_to_read_with():
    """Its answers are many small ones: they fit no limit of bytes, and each holds a struct of the
    core's. A second reader is served while the first stalls, and the first gets its answers later."""
    server = Server('--cores', '1', '--hibernate-after', '3600').start()  # all is read from memory
    logs, batch = 64, 12000
    server.leat('stream', 'create', 's', '--streamlets', logs, '--logs', 1)
    for streamlet in range(logs):
        server.produce('s', ['x' * batch], '--streamlet', streamlet)
    conn = Raw(server, receive_bytes=4096)
    _, control, _ = conn.call(METADATA, [['s'], False])
    stream = control[2][0]
    epochs = {log[0]: log[3] for log in stream[4]}
    wanted = [[stream[2], s, 0, epochs[s], 0] for s in range(logs)]
    # 16 x 64 answers of 12 KB: more than the 512 structs, and not much more than is queued for one.
    for _ in range(16):
        conn.send(FETCH, [1, 4 * MIB, 0, wanted])
    told = [0]

    def stands():
        told.append(server.status()['fetched_records'])
        return len(told) > 8 and told[-1] == told[-8] >= 256
    until(stands, 'it has been given all that may be its')
    other = Raw(server)
    flags, rows, payload = other.call(FETCH, [1, 4 * MIB, 0, wanted[:8]])
    equal((flags, [row[0] for row in rows], len(payload) > 8 * batch), (1, [0] * 8, True), rows)
    for _ in range(16):
        flags, rows, payload = conn.answer()
        equal((flags, len(rows), {row[0] for row in rows}), (1, logs, {0}))
        check(len(payload) > batch, len(payload))


def held_bytes(server):
    """Private memory and the pool's file, which is what shared memory it may have at most."""
    found = dict(re.findall(r'(RssAnon|RssShmem):\s+(\d+) kB', server.proc('status')))
    pool = os.stat(server.pool).st_blocks * 512 if server.pool else 0
    return int(found['RssAnon']) * 1024 + max(int(found['RssShmem']) * 1024, pool)


def budget(durability, records):
    server = Server('--memory', '256M').start()
    peak, over = [0], threading.Event()

    def watch():
        while not over.wait(0.02):  # a peak gives no event: it is looked for
            peak[0] = max(peak[0], held_bytes(server))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        done = server.leat('bench', 'append', '--stream', 's', '--durability', durability,
                           '--producers', 4, '--records', records, '--json', '-', timeout=300)
        appended = json.loads(done.stdout)
        pulled = json.loads(server.leat('bench', 'pull', '--stream', 's', '--verify', '--json', '-',
                                        timeout=300).stdout)
    finally:
        over.set()
        watcher.join()
    equal(appended['records'], records, 'appended')
    equal(appended['failed_records'], 0)
    # The bench sends one record per producer before its clock runs.
    equal(pulled['records'], records + 4, 'read back')
    equal(pulled['settings']['wrong_records'], 0)
    check(sum(g['bytes'] for g in server.logs('s').values()) > records * 100, 'stored bytes')
    print(f'  {durability}: peak {peak[0] / MIB:.0f} MiB of 256, '
          f'{appended["bytes_per_second"] / 1e6:.0f} MB/s, pull {pulled["bytes_per_second"] / 1e6:.0f} MB/s')
    check(peak[0] <= 256 * MIB, 'the budget of 256 MiB was exceeded', peak[0])
    check(peak[0] > 64 * MIB, 'nothing was measured', peak[0])


def test_memory_budget_with_ten_times_the_data_memory():
    budget('memory', 26_000_000)  # of 100 B


def test_memory_budget_with_ten_times_the_data_disk():
    # Every byte is flushed before its ack: ten times the memory for segments, to be done in time.
    budget('disk', 13_500_000)


def shared_bytes(server):
    return int(re.search(r'RssShmem:\s+(\d+) kB', server.proc('status')).group(1)) << 10


def test_memory_budget_with_thousands_of_logs():
    # Segments give way to what logs take, and have it back when those are deleted.
    server = Server('--memory', '256M', '--kafka', 'off').start()
    peak, over = [0], threading.Event()

    def watch():
        while not over.wait(0.05):  # a peak gives no event: it is looked for
            peak[0] = max(peak[0], held_bytes(server))

    def load():
        server.leat('bench', 'append', '--stream', 'busy', '--logs', 2, '--durability', 'memory', '--producers', 4,
                    '--records', 3_000_000, '--json', '-', timeout=300)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        load()
        check(shared_bytes(server) > 65 * MIB, 'a pool of more than a step', shared_bytes(server))
        refused = server.leat('stream', 'create', 'most', '--streamlets', 15000, '--logs', 2, code=1)
        check_in('its memory budget of 256 MiB leaves', refused.stderr)
        check_in('larger --memory', refused.stderr)
        # One that is there is no matter of memory.
        done = server.leat('stream', 'create', 'busy', '--streamlets', 15000, '--logs', 2, code=1)
        check_in('exists', done.stderr)
        server.leat('stream', 'create', 'many', '--streamlets', 4000, '--logs', 2, '--durability', 'memory')
        server.node_log_wait('logs of stream "many" wait for memory that segments give back')
        server.node_log_wait('memory for segments: 64 MiB of 128')
        server.leat('bench', 'append', '--stream', 'many', '--streamlets', 4000, '--logs', 2, '--durability', 'memory',
                    '--producers', 2, '--records', 120_000, '--batch-records', 10, '--json', '-', timeout=300)
        load()
        until(lambda: shared_bytes(server) < 66 * MIB, 'the second step goes back to the kernel')
        status = server.status()
        check(status['memory_used'] <= status['memory_budget'], status)
        server.leat('stream', 'delete', 'many')
        server.node_log_wait('memory for segments: 128 MiB of 128')
        load()
        check(shared_bytes(server) > 65 * MIB, 'the pool has grown again', shared_bytes(server))
    finally:
        over.set()
        watcher.join()
    print(f'  peak {peak[0] / MIB:.0f} MiB of 256')
    check(peak[0] <= 256 * MIB, 'the budget of 256 MiB was exceeded', peak[0])


def test_a_budget_that_what_is_stored_does_not_fit_is_refused():
    server = Server('--kafka', 'off').start('--memory', '512M')
    server.leat('stream', 'create', 'many', '--streamlets', 6000, '--logs', 2, '--durability', 'memory')
    server.leat('produce', 'many', input=b'kept\n')
    server.leat('stream', 'create', 'closed', '--segment-bytes', '64K', '--durability', 'memory')
    server.produce('closed', ['x' * 1000] * 200)
    server.kill()  # closed segments are in memory alone; a start that is refused ends without them
    code, text = server.start_refused('--memory', '192M')
    equal(code, 2)
    least = int(re.search(r'12\d\d\d logs and \d+ stored segments need at least (\d+) MiB \(--memory\)', text).group(1))
    check(192 < least < 300, least)
    server.start('--memory', f'{least}M')
    holders_start(server, 4000)  # the first connections have their place, too
    server.leat('produce', 'many', input=b'and more\n')
    equal(sorted(server.leat('consume', 'many', '--until-end').stdout.split('\n')), ['', 'and more', 'kept'])
    equal(server.values('closed'), ['x' * 1000] * 200, 'what was acked before the kill')
    check(held_bytes(server) <= least * MIB, 'the budget was exceeded', held_bytes(server), least)
    server.kill()
    server.start('--memory', f'{least}M')


def test_appends_that_need_another_segment_are_refused_where_the_heap_is_full():
    # What is stored takes memory of the heap, wherever its bytes are: it stays within the budget, and goes on.
    server = Server('--memory', '128M', '--cores', '1', '--kafka', 'off').start()
    server.leat('stream', 'create', 'small', '--segment-bytes', '16K', '--durability', 'memory')
    refused = server.leat('stream', 'create', 'most', '--streamlets', 32768, '--logs', 1, code=1)
    left = int(re.search(r'leaves (\d+) MiB', refused.stderr).group(1))
    server.leat('stream', 'create', 'many', '--streamlets', (left - 1) * MIB // 7168, '--logs', 1)
    lines = [f'{i:06} {"x" * 1000}\n' for i in range(60_000)]
    server.leat('produce', 'small', input=lines[0].encode())
    producer = server.leat_start('produce', 'small', '--batch-bytes', '8K', stdin=subprocess.PIPE)
    writer = threading.Thread(target=lambda: producer.communicate(''.join(lines[1:]).encode()))
    writer.start()
    server.node_log_wait('take all that the memory budget leaves them')
    first = server.leat('consume', 'small', '--max-records', 1).stdout
    check(first.startswith('000000 '), 'reads go on', first[:80])
    check(held_bytes(server) <= 128 * MIB, 'the budget of 128 MiB was exceeded', held_bytes(server))
    check(producer.poll() is None, 'the producer waits for room', producer.returncode)
    server.leat('stream', 'delete', 'many')
    writer.join()
    equal(producer.returncode, 0, 'what was refused was taken when there was room')
    stored = server.leat('consume', 'small', '--until-end', timeout=120).stdout
    check(stored == ''.join(lines), 'each line is there once, in its order', len(stored))


def test_streams_that_are_made_when_missing_stay_within_the_budget():
    server = Server('--memory', '128M', '--cores', '1').start()
    refused = server.leat('stream', 'create', 'most', '--streamlets', 32768, '--logs', 1, code=1)
    left = int(re.search(r'leaves (\d+) MiB', refused.stderr).group(1))
    server.leat('stream', 'create', 'many', '--streamlets', left * MIB // 7168, '--logs', 1)
    page = numbers_of_the_page()
    for logs in 64, 32, 16:  # of what is left of that MiB: a client may have a hundred made at once
        server.leat('stream', 'create', f'many-{logs}', '--streamlets', logs, '--logs', 1, code=None)
    names = [f'made-{i}' for i in range(400)]
    rows = Raw(server).call(page['METADATA'], [names, True])[1][2]
    said = [row[0] for row in rows]
    check(said[0] == 0 and said[-1] == page['TOO_MANY'], said)
    check_in('larger --memory', rows[-1][2].decode())


def stream_name(server, name):
    """A stream that is not there, named by a client that would use it: (made, why not)."""
    _, control, _ = Raw(server).call(METADATA, [[name], True])
    stream = control[2][0]
    return not stream[0], stream[-1].decode() if stream[0] else ''


def streams_create(server, first, count):
    """(made, why others were not), asked for on one connection without waiting for each answer."""
    raw, refused, made = Raw(server), set(), 0
    for i in range(count):
        raw.send(STREAM_CREATE, [f'auto{first + i:05}'])
    for _ in range(count):
        flags, control, _ = raw.answer()
        if flags & 2:  # an error: [code, class, text]
            refused.add(control[2].decode())
        else:
            made += 1
    return made, refused


def waiting_is_summed_up(server):
    """Streams of which the node log says that logs wait for memory: ten lines in ten seconds and core, and a line about the others."""
    def more_in(said):
        return [int(count) for count in re.findall(r'and (\d+) more streams have logs that wait for memory', said)]

    said = until(lambda: sum(more_in(server.node_log())) > 1000 and server.node_log(), 'streams that only a sum tells of: over a thousand')
    lines = said.count('wait for memory that segments give back')
    check(lines <= 10 * (len(more_in(said)) + 2), lines, 'lines, and those that say how many more:', more_in(said))


def test_memory_budget_with_thousands_of_streams():
    # What `stream create` refuses is refused to a client that names a stream, too, and to one that enlarges a topic.
    server = Server('--memory', '256M', '--cores', '2', '--kafka', '127.0.0.1:0').start()
    peak, over = [0], threading.Event()

    def watch():
        while not over.wait(0.05):  # a peak gives no event: it is looked for
            peak[0] = max(peak[0], held_bytes(server))

    watcher = threading.Thread(target=watch)
    watcher.start()
    made, refused = [0], set()

    def create_all(part):
        for first in range(part * 5000, (part + 1) * 5000, 100):
            count, why = streams_create(server, first, 100)
            made[0] += count
            refused.update(why)

    def load():
        server.leat('bench', 'append', '--stream', 'busy', '--logs', 2, '--durability', 'memory', '--producers', 4,
                    '--records', 3_000_000, '--json', '-', timeout=300)

    try:
        load()
        check(shared_bytes(server) > 65 * MIB, 'a pool of more than a step', shared_bytes(server))
        makers = [threading.Thread(target=create_all, args=(part,)) for part in range(3)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        # Each has two logs of 7 KB, and 97 MiB are there for them, less what streams take besides.
        check(5000 < made[0] < 8000, 'streams of 15,000 that were made', made[0], refused)
        check(any('its memory budget of 256 MiB leaves' in why for why in refused), 'the cause is named', refused)
        ok, why = stream_name(server, 'named')
        check(not ok and 'its memory budget of 256 MiB leaves' in why, 'the same for a stream that is named', why)
        server.node_log_wait('asked for by who would use it, is not made: ')
        conn = Client(server)
        error, text = topic_enlarge(conn, 'auto00000', 4000)
        equal(error, INVALID_PARTITIONS)
        check_in(b'its memory budget of 256 MiB leaves', text)
        waiting_is_summed_up(server)
        load()
        for name in ('auto00001', 'auto00002'):
            server.leat('stream', 'delete', name)
        until(lambda: stream_name(server, 'named')[0], 'what was deleted makes room')
    finally:
        over.set()
        watcher.join()
    print(f'  {made[0]} streams, peak {peak[0] / MIB:.0f} MiB of 256')
    check(peak[0] <= 256 * MIB, 'the budget of 256 MiB was exceeded', peak[0])


def tmpfs_mount(point):
    """For root a failure, unless the kernel says that this root may not mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b'tmpfs', point.encode(), b'tmpfs', 0, b'size=96m') == 0:
        return
    code = ctypes.get_errno()
    if code in (errno.EPERM, errno.EACCES):
        raise Skipped(f'no file system can be mounted here: {os.strerror(code)}')
    raise Failure(f'mount of a tmpfs at {point}: {os.strerror(code)}')


class CrampedServer(Server):
    """Its /dev/shm, which nobody else sees, has room for nothing."""

    def command(self, extra=()):
        return ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"', 'sh',
                *super().command(extra)]


def test_memory_of_segments_in_a_file_is_told():
    if os.geteuid() != 0 or subprocess.run(['unshare', '--mount', 'true'], capture_output=True).returncode:
        raise Skipped('this account may not make mount namespaces')
    server = CrampedServer().start()
    check_in('of it for segments, in a file on disk)', server.ready)
    equal(server.status()['pool_in_file'], True)
    check_in('of segments in a file on disk', server.leat('status').stdout)
    equal(Server().start().status()['pool_in_file'], False)


def mounted():
    """A small file system of its own."""
    place = directory()
    image, point = os.path.join(place, 'image'), os.path.join(place, 'point')
    os.mkdir(point)
    with open(image, 'wb') as file:
        file.truncate(96 * MIB)
    made = subprocess.run(['mkfs.ext4', '-q', '-m', '0', image], capture_output=True)
    if made.returncode or subprocess.run(['mount', '-o', 'loop', image, point],
                                         capture_output=True).returncode:
        tmpfs_mount(point)
    on_end(lambda: subprocess.run(['umount', '-l', point], check=True))
    return point


def disk_full(durability):
    point = mounted()
    server = Server(data=os.path.join(point, 'data')).start()
    server.leat('stream', 'create', 's', '--logs', 1, '--durability', durability)
    server.leat('stream', 'create', 'small', '--logs', 1)
    server.produce('small', ['a'])
    ballast = os.path.join(point, 'ballast')
    with open(ballast, 'wb') as file:
        os.posix_fallocate(file.fileno(), 0, 40 * MIB)
    line = 'x' * 990
    wanted = [f'{i:08d} {line}' for i in range(80000)]
    done = server.produce('s', wanted, '--timeout', '10s', code=1) # a busy machine's disk takes long to fill
    check_in('no space left', done.stderr)
    server.node_log_wait('no space left in the data directory')
    # Reads go on; what was acked is there.
    got = server.values('s')
    check(len(got) > 1000, 'records before the disk was full', len(got))
    acked = int(re.search(r'^(\d+) records?,', done.stderr, re.M).group(1))
    check(len(got) >= acked, 'acked and not there', acked, len(got))
    # In order, each once. One that waited for longer than its time on a slow disk was given up, and told to be, before those behind it.
    places = [int(text[:8]) for text in got]
    check(all(a < b for a, b in zip(places, places[1:])), 'order', next((p for p in zip(places, places[1:]) if p[0] >= p[1]), ''))
    given_up = places[-1] + 1 - len(got)
    told = re.search(r'^leat: (\d+) records? (?:has |have )?failed', done.stderr, re.M)
    check(given_up == 0 or (told and given_up <= int(told.group(1))), given_up, 'are missing in between', done.stderr)
    equal(got, [wanted[place] for place in places], 'what was appended before the disk was full')
    equal(server.values('small'), ['a'])
    server.status()
    # And space comes back, without a restart.
    os.unlink(ballast)
    server.produce('s', ['back'])
    check(server.node_log().count('no space left') < 5, 'told again and again:', server.node_log_end())
    equal(server.values('s')[:len(got)], got)
    equal(server.values('s')[-1], 'back')
    after = server.values('s')
    server.kill()
    server.start()
    equal(server.values('s'), after, 'after a kill')
    server.stop()


def test_disk_full_disk():
    disk_full('disk')


def test_disk_full_memory():
    disk_full('memory')


def test_more_logs_than_one_fetch_takes_are_read_all():
    """3,000 logs on one core: a fetch names 1,024."""
    server = Server('--cores', '1').start()
    server.leat('stream', 'create', 's', '--streamlets', 3000, '--logs', 1, '--durability', 'memory')
    lines = [f'{number:06d}' + 'x' * 1000 for number in range(4000)]
    server.produce('s', lines, '--batch-bytes', '1K')
    check(sum(g['end_offset'] > 0 for g in server.logs('s').values()) > 2000, 'they are spread')
    for _ in range(4):  # a core has 512 structs to read with: what they did not suffice for is not the end
        equal(sorted(server.values('s')), lines)
    # One that waits for all of them hears of each.
    reader = server.leat_start('consume', 's', '--format', '%p %S')
    for _ in lines:
        check_in(' 1006', line_read(reader.stdout))
    for streamlet in (2999, 0, 1500, 2047):
        server.produce('s', ['new'], '--streamlet', streamlet)
        equal(line_read(reader.stdout), f'{streamlet} 3\n')


def test_connections_leave_files_for_segments():
    """Who holds as many connections as there can be takes nothing from those who are served."""
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 's', '--logs', 1)
    client = Client(server)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (128, 128))
    held = [socket.create_connection(('127.0.0.1', server.port), WAIT_S) for _ in range(300)]
    for one in held[200:]:
        one.settimeout(WAIT_S)
        equal(one.recv(1), b'', 'one too many is closed')
    server.node_log_wait('LimitNOFILE=')
    check(not os.listdir(os.path.join(server.data, 'store')), 'the first segment has its file already')
    kafka_write(client, 's', 0, [(1, None, b'first'), (1, None, b'second')])
    refused = server.leat('stream', 'list', code=3)
    check_in('no server answers at', refused.stderr)
    for one in held:
        one.close()
    until(lambda: server.status()['connections'] < 100, 'connections are given back')
    equal(server.values('s'), ['first', 'second'])
    equal(server.node_log().count('LimitNOFILE='), 1, 'said once')


def idle_look(server):
    """How often its threads wake is the same on each machine, and what a wake costs is not: only a thread that never sleeps costs
    half a core on the slowest."""
    wakes, ticks = server.wakes(), server.cpu_ticks()
    # The time of idling is what is measured, so it has to pass.
    threading.Event().wait(4)
    woken = (server.wakes() - wakes) / 4
    used = (server.cpu_ticks() - ticks) / os.sysconf('SC_CLK_TCK') / 4
    check(woken < IDLE_WAKES and used < 0.5, f'an idle server wakes {woken:.0f} times a second, and uses {used:.1%} of a core')


def test_idle_server_after_its_first_produce_and_a_delete():
    """Its pool fell behind for a moment, then not: 10 s later (LEAT_STORE_GROW_FIRST_US) nobody waits for a step."""
    server = Server().start()
    server.produce('s', ['x'])
    server.leat('stream', 'delete', 's')
    threading.Event().wait(12)
    idle_look(server)


def test_idle_server_with_a_hundred_streams():
    server = Server().start()
    for i in range(100):
        server.produce(f's{i}', ['x'])
    waiting = [server.leat_start('consume', f's{i}') for i in range(5)]
    for process in waiting:
        equal(line_read(process.stdout), 'x\n')
    idle_look(server)


if __name__ == '__main__':
    main()
