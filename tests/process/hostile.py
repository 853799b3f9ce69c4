# SPDX-License-Identifier: Apache-2.0
"""Whoever knocks on the ports, and whatever they send, others are answered meanwhile and the node log stays readable."""
import os
import re
import signal
import socket
import struct
import threading
import time
import zlib

from cluster import free_ports
from kafka_wire import DELETE_TOPICS, FETCH_RECORDS, NONE, Connection, In, Out, batches_fetch, produce, topic_create
from rawbatch import batch_of, compressed
from rig import (FETCH, HELLO, LOCATE, METADATA, PING, WAIT_S, Failure, Raw, Server, check, check_in, crc32c, equal, frame, main,
                 on_end, until)

# On a machine that others use, too, a single answer may take some seconds, the median of many does not; whoever is kept
# waiting by strangers waits until those are thrown out, after 10 s, or for as long as they like.
ANSWERED_WITHIN_S, MEDIAN_WITHIN_S = 30, 2
ATTACK_S = 6  # longer than it takes to throw out who brings nothing
MIB = 1 << 20
NODE_NONCE = 258
APPEND, PRODUCER_ID = 8, 7
JOIN, INIT_PRODUCER_ID = 11, 22  # of Kafka
UNKNOWN_TOPIC = 3
HALF_AN_HOUR_MS = 30 * 60 * 1000
KAFKA_FRAME = struct.pack('>I', 8 * MIB)
API_VERSIONS = struct.pack('>Ihhih', 10, 18, 0, 1, -1)


def kafka_port(server):
    server.node_log_wait(r'clients of Kafka: listening on ')
    return int(re.search(r'clients of Kafka: listening on [^:]*:(\d+)', server.node_log()).group(1))


class Crowd:
    """Connections that begin something and never finish it: one byte more now and then, until end()."""

    def __init__(self, port, count, begin, more=b'\0'):
        self.over = threading.Event()
        self.begin, self.more = begin, more
        self.sockets = [self.connect(port) for _ in range(count)]
        self.thread = threading.Thread(target=self.dribble, args=(port,), daemon=True)
        self.thread.start()
        on_end(self.end)

    def connect(self, port):
        one = socket.create_connection(('127.0.0.1', port), WAIT_S)
        one.settimeout(WAIT_S)
        one.sendall(self.begin)
        one.setblocking(False)
        return one

    def dribble(self, port):
        while not self.over.wait(0.2):  # slowness is the attack
            for i, one in enumerate(self.sockets):
                try:
                    one.send(self.more)
                except BlockingIOError:
                    pass  # it is not read from
                except OSError:  # thrown out: here again
                    one.close()
                    try:
                        self.sockets[i] = self.connect(port)
                    except OSError:
                        pass

    def end(self):
        self.over.set()
        self.thread.join()
        for one in self.sockets:
            one.close()
        self.sockets = []


class Pipeline(Crowd):
    """Connections that ask for more at once than they may have under way, and for more whenever something is answered."""

    def __init__(self, port, count, requests, hellos=(b'',)):
        """requests: what one asks again and again, the next asks, ..."""
        self.requests, self.hellos, self.owed = requests, hellos, {}
        super().__init__(port, count, b'')

    def connect(self, port):
        one = super().connect(port)
        i = len(self.owed)
        self.owed[one] = self.hellos[i % len(self.hellos)] + self.requests[i % len(self.requests)] * 300
        return one

    def dribble(self, port):
        while not self.over.wait(0.02):
            for i, one in enumerate(self.sockets):
                try:
                    self.owed[one] = self.owed[one][one.send(self.owed[one][:1 << 16]):]
                    if one.recv(1 << 16) and len(self.owed[one]) < 20000:
                        self.owed[one] += self.requests[i % len(self.requests)] * 50
                except OSError:
                    pass  # it is not read from, or has been thrown out


class Waits:
    """How long requests of each kind have waited for their answers."""

    def __init__(self):
        self.seconds = {}

    def within(self, what, ask):
        began = time.monotonic()
        answer = ask()
        took = time.monotonic() - began
        self.seconds.setdefault(what, []).append(took)
        check(took < ANSWERED_WITHIN_S, f'{what} waited for', took)
        return answer

    def end(self):
        for what, seconds in self.seconds.items():
            median = sorted(seconds)[(len(seconds) - 1) // 2]
            check(median < MEDIAN_WITHIN_S, f'{what} waited for', seconds)


def both_ports_are_served(server, logs, for_s=ATTACK_S):
    """New connections that ask for one thing at a time: of each log, on each core and by each port, records are appended and
    read, and all logs at once."""
    until_s = time.monotonic() + for_s
    host, port = server.host, kafka_port(server)
    blob = batch_of([(1, None, b'x' * 100000)])
    waits = Waits()
    within = waits.within
    while True:
        for partition in (0, 1):
            client = Connection(host, port)
            client.socket.settimeout(ANSWERED_WITHIN_S)
            equal(within('a producer', lambda: produce(client, 'honest', blob, partition))[0], NONE)
            within('a reader', lambda: batches_fetch(client, 'honest', partition, 0))
            within('a reader of all', lambda: client.ask(FETCH_RECORDS, 4, all_fetched(len(logs))))
            client.socket.close()
        for lane in (0, 1):
            raw = Raw(server, hello=False)
            raw.socket.settimeout(ANSWERED_WITHIN_S)
            within('hello', lambda: raw.call(HELLO, [1, 1, 'honest', lane]))
            for control, payload, kind in (([*logs[0], 1], blob, APPEND), ([1, 1, 0, [[*logs[0], 0]]], b'', FETCH),
                                           ([1, 1, 0, [[*log, 0] for log in logs]], b'', FETCH),
                                           ([['honest'], False], b'', METADATA)):
                answer = within(f'a request of kind {kind}', lambda: raw.call(kind, control, payload))
                equal(answer[0], 1, f'no error to a request of kind {kind}: {answer[1]}')
            raw.socket.close()
        if time.monotonic() > until_s:
            return waits.end()


def all_fetched(count):
    out = Out(False).i('iiiib', -1, 0, 1, 1 << 20, 0)
    return out.array([0], lambda _: out.run('honest').array(range(count), lambda p: out.i('iqi', p, 0, 1 << 20)))


def logs_of(server, name):
    """[stream, streamlet, log, epoch] of each."""
    answer = Raw(server).call(METADATA, [[name], False])[1]
    _, _, stream, _, logs = answer[2][0][:5]
    return [[stream, log[0], log[1], log[3]] for log in logs]


def kafka_frame(key, version, body):
    head = struct.pack('>hhih', key, version, 7, 6) + b'greedy'
    return struct.pack('>I', len(head + body)) + head + body


def waiting_fetch():
    out = Out(False).i('iiiib', -1, 60000, 1 << 30, 1 << 30, 0)
    out.array([0], lambda _: out.run('empty').array([0], lambda p: out.i('iqi', p, 0, 1 << 20)))
    return kafka_frame(FETCH_RECORDS, 4, out.bytes)


def waiting_join(group):
    """The first is answered; the second waits until the first of them comes again."""
    out = Out(False).run(group).i('ii', HALF_AN_HOUR_MS, HALF_AN_HOUR_MS).run('').run('consumer')
    return kafka_frame(JOIN, 1, out.array([b'm'], lambda m: out.run('range').run(m, True)).bytes)


def test_requests_that_wait_leave_room_for_who_asks_for_one():
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 'honest', '--logs', 200)
    server.leat('stream', 'create', 'empty', '--logs', 64)
    logs, empty = logs_of(server, 'honest'), logs_of(server, 'empty')
    before = server.status()['connections']
    hellos = [frame(HELLO, [1, 1, 'greedy', lane]) for lane in (0, 1)]
    joins = [waiting_join(f'group-{i}') for i in range(50)]
    for crowd in (lambda: Pipeline(kafka_port(server), 100, [waiting_fetch()]),
                  lambda: Pipeline(kafka_port(server), 100, joins),
                  lambda: Pipeline(kafka_port(server), 100, [API_VERSIONS], [join * 2 for join in joins]),
                  lambda: Pipeline(server.port, 100, [frame(FETCH, [MIB, MIB, 60000, [[*log, 0] for log in empty]])], hellos)):
        crowd = crowd()
        both_ports_are_served(server, logs)
        crowd.end()
        gone(server, before)
    check(server.memory_bytes() < 256 * MIB, 'budget', server.memory_bytes())


def test_who_has_gone_with_requests_unread_keeps_nothing():
    """Twenty addresses have as much under way as they may, of what waits for a minute, and more behind it; then they close."""
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 'empty', '--logs', 64)
    port, hello = kafka_port(server), frame(HELLO, [1, 1, 'greedy', 0])
    native = frame(FETCH, [MIB, MIB, 60000, [[*log, 0] for log in logs_of(server, 'empty')]])
    before = server.status()['connections']
    for to, begin, request in ((port, b'', waiting_fetch()), (server.port, hello, native)):
        held = []
        for i in range(20):
            held.append(socket.create_connection(('127.0.0.1', to), WAIT_S, (f'127.0.0.{i + 2}', 0)))
            held[-1].sendall(begin + request * 300)
        until(lambda: server.status()['connections'] >= before + len(held), 'they are all here')
        time.sleep(0.5)  # what they ask for is read until it waits
        for one in held[::2]:
            one.sendall(request * 10)  # and this stays where the kernel has it
        began = time.monotonic()
        for one in held:
            one.close()
        gone(server, before)
        took = time.monotonic() - began
        check(took < 20, 'places were given back after', took)  # a second and a look; what they ask for waits for a minute


class Deaf(Pipeline):
    """They ask for what is there, again and again, and read none of it."""

    def connect(self, port):
        one = super().connect(port)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        return one

    def dribble(self, port):
        while not self.over.wait(0.02):
            for i, one in enumerate(self.sockets):
                try:
                    self.owed[one] = self.owed[one][one.send(self.owed[one][:1 << 16]):]
                except BlockingIOError:
                    pass
                except OSError:  # thrown out: here again
                    one.close()
                    del self.owed[one]
                    try:
                        self.sockets[i] = self.connect(port)
                    except OSError:
                        pass


def test_readers_of_many_logs_who_take_nothing_leave_room_for_who_reads_as_many():
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 'honest', '--logs', 200)
    logs = logs_of(server, 'honest')
    blob = batch_of([(1, None, b'x' * 100000)])
    raw = Raw(server)
    for log in logs[:40]:
        raw.call(APPEND, [*log, 1], blob)
    before = server.status()['connections']
    hellos = [frame(HELLO, [1, 1, 'deaf', lane]) for lane in (0, 1)]
    many = frame(FETCH, [1, 4 * MIB, 0, [[*log, 0] for log in logs]])
    for crowd in (lambda: Deaf(server.port, 100, [many], hellos),
                  lambda: Deaf(kafka_port(server), 100, [kafka_frame(FETCH_RECORDS, 4, all_fetched(len(logs)).bytes)])):
        crowd = crowd()
        both_ports_are_served(server, logs, 2 * ATTACK_S)
        crowd.end()
        gone(server, before)
    check(server.memory_bytes() < 256 * MIB, 'budget', server.memory_bytes())


def others_are_answered(server, for_s=ATTACK_S):
    """New connections and a request on each, every one within its time; at least one."""
    until_s = time.monotonic() + for_s
    waits = Waits()

    def ask():
        for lane in (0, 1):
            with socket.create_connection((server.host, server.port), ANSWERED_WITHIN_S) as one:
                one.settimeout(ANSWERED_WITHIN_S)
                one.sendall(frame(HELLO, [1, 1, 'honest', lane], 1) + frame(PING, [], 2))
                got = b''
                while len(got) < 48:
                    piece = one.recv(1 << 16)
                    check(piece, 'an honest connection was closed')
                    got += piece

    while True:
        waits.within('an honest client', ask)
        if time.monotonic() > until_s:
            return waits.end()


def gone(server, before):
    """Of who has as many requests under way as may be nothing is read, also not that they have gone, before one of these ends: a fetch
    may wait for 60 s."""
    until(lambda: server.status()['connections'] <= before + 1, 'nothing is left of connections that have gone', WAIT_S + 60)


def test_cut_frames_of_strangers_silence_nobody():
    server = Server('--kafka', '127.0.0.1:0').start()
    before = server.status()['connections']
    for port, begin in ((kafka_port(server), KAFKA_FRAME + b'\0'),
                        (kafka_port(server), struct.pack('>I', 60000) + bytes(30000)),
                        (server.port, frame(HELLO, [1, 1, 'x' * 60000, 0])[:30000])):
        crowd = Crowd(port, 100, begin)
        others_are_answered(server)
        crowd.end()
        others_are_answered(server, 0)
        gone(server, before)


def test_cut_frames_of_clients_silence_nobody():
    server = Server('--kafka', '127.0.0.1:0').start()
    server.produce('s', ['before'])
    before = server.status()['connections']
    hello = frame(HELLO, [1, 1, 'slow', 0])
    for port, begin in ((kafka_port(server), API_VERSIONS + KAFKA_FRAME + bytes(300000)),
                        (server.port, hello + struct.pack('<I', 8 * MIB - 4) + bytes(20) + bytes(300000))):
        crowd = Crowd(port, 60, begin)
        others_are_answered(server)
        equal(server.values('s'), ['before'])
        crowd.end()
        gone(server, before)
    check(server.memory_bytes() < 256 * MIB, 'budget', server.memory_bytes())


class Stopped(Crowd):
    """Each of an address of its own stops in the middle of an append of a megabyte, but for some bytes five times a
    second, and is back when it is closed."""

    def __init__(self, port, count, drip=b''):
        self.owed, self.addresses, self.drip = {}, iter(range(count)), drip
        self.whole = API_VERSIONS + struct.pack('>Ihhih', 1000000, 0, 3, 1, -1) + bytes(400000)
        super().__init__(port, count, b'')

    def connect(self, port, address=None):
        one = socket.create_connection(('127.0.0.1', port), WAIT_S, (address or f'127.0.1.{next(self.addresses) + 1}', 0))
        one.setblocking(False)
        self.owed[one] = self.whole
        return one

    def dribble(self, port):
        dripped = 0
        while not self.over.wait(0.02):
            drips = time.monotonic() - dripped > 0.2
            dripped = time.monotonic() if drips else dripped
            for i, one in enumerate(self.sockets):
                try:
                    if drips and not self.owed[one]:
                        one.send(self.drip)
                    self.owed[one] = self.owed[one][one.send(self.owed[one]):]
                    if one.recv(1 << 16):
                        continue
                except BlockingIOError:
                    continue
                except OSError:
                    pass
                address = one.getsockname()[0]
                del self.owed[one]
                one.close()
                self.sockets[i] = self.connect(port, address)


def appends_beside_stopped(drip):
    """A client whose append finds no room on a core is closed, and tries again as Kafka's clients do."""
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 'honest', '--logs', 2)
    port = kafka_port(server)
    blob = batch_of([(1, None, b'x' * 900000)])
    Stopped(port, 12, drip)
    time.sleep(2)  # all places are taken
    took = []
    for i in range(10):
        began = time.monotonic()
        while True:
            check(time.monotonic() < began + WAIT_S, 'no append of a megabyte came through')
            client = Connection('127.0.0.1', port)
            try:
                equal(produce(client, 'honest', blob, i % 2)[0], NONE)
                break
            except (OSError, EOFError, Failure):
                time.sleep(0.1)
            finally:
                client.socket.close()
        took.append(time.monotonic() - began)
    took.sort()
    check(took[len(took) // 2] < MEDIAN_WITHIN_S, 'appends of a megabyte waited for', took)


def test_who_stops_in_the_middle_loses_its_place():
    appends_beside_stopped(b'')


def test_who_brings_next_to_nothing_loses_its_place():
    appends_beside_stopped(b'\0')


def test_slow_producers_are_all_answered():
    """Each sends one large request in two halves; all first halves come before any second."""
    server = Server('--kafka', 'off').start()
    server.leat('stream', 'create', 's')
    body = frame(PING, [], 7, bytes(MIB))
    slow = [Raw(server) for _ in range(60)]
    for one in slow:
        one.socket.sendall(body[:MIB // 2])
    sent = [threading.Thread(target=one.socket.sendall, args=(body[MIB // 2:],), daemon=True) for one in slow]
    for thread in sent:
        thread.start()
    for one in slow:
        one.answer()
    for thread in sent:
        thread.join()


def test_who_says_nothing_is_closed():
    server = Server('--kafka', '127.0.0.1:0').start()
    for port in (server.port, kafka_port(server)):
        silent = socket.create_connection(('127.0.0.1', port), WAIT_S)
        silent.settimeout(WAIT_S)
        equal(silent.recv(1), b'', 'a connection that says nothing')
    check_in('it has not said who it is for 10 s', server.node_log())
    known = Raw(server)  # however quiet
    known.call(PING, [])


def test_one_address_has_so_many_connections():
    server = Server('--connections-per-address', '20', '--kafka', 'off').start()
    held = [Raw(server) for _ in range(20)]
    with socket.create_connection((server.host, server.port), WAIT_S) as one:
        one.settimeout(WAIT_S)
        equal(one.recv(1), b'', 'one more')
    server.node_log_wait('its address has as many connections as one may have')
    other = socket.create_connection((server.host, server.port), WAIT_S, ('127.0.0.2', 0))
    other.settimeout(WAIT_S)
    other.sendall(frame(HELLO, [1, 1, 'elsewhere', -1]))
    check(other.recv(1), 'an address that has fewer')
    other.close()
    for one in held:
        one.socket.close()
    until(lambda: server.status()['connections'] < 5, 'places are given back')


def connected_all(port, address, count):
    """Of that many connections from an address those that the server keeps."""
    held = []
    for _ in range(count):
        one = socket.create_connection(('127.0.0.1', port), WAIT_S, (address, 0))
        one.sendall(frame(HELLO, [1, 1, 'many', -1]))
        held.append(one)
    kept = []
    for one in held:
        one.settimeout(WAIT_S)
        try:
            if one.recv(1):
                kept.append(one)
                continue
        except ConnectionError:
            pass
        one.close()
    return kept


class FewFiles(Server):
    """Its limit is a hard one: leatd takes all that it may."""

    def command(self, extra=()):
        return ['prlimit', '--nofile=512:512', *super().command(extra)]


def test_no_address_takes_the_last_files():
    """One address has half of the files that clients have; all of them together leave some to the operator and to nodes."""
    node_port, port = free_ports(2)
    own = f'127.0.0.1:{node_port}'
    server = FewFiles('--node', 'a', '--node-listen', own, '--coordinators', own, '--listen', f'127.0.0.1:{port}',
                      '--kafka', 'off').start()
    half = (512 - 512 // 8) // 2
    first = connected_all(server.port, '127.0.0.1', 500)
    check(len(first) <= half, 'one address has', len(first))
    check(len(first) > half - 8, 'and no less than its half:', len(first))
    others = connected_all(server.port, '127.0.0.2', 10)
    equal(len(others), 10, 'another address gets in')
    rest = connected_all(server.port, '127.0.0.2', 300)
    check(len(rest) < half - 10, 'there were files left:', len(rest))
    server.node_log_wait('LimitNOFILE=')
    for _ in range(3):
        server.leat('-b', f'unix:{server.data}/leatd.sock', 'status')
    strangers = [socket.create_connection(('127.0.0.1', node_port), WAIT_S, ('127.0.0.3', 0)) for _ in range(60)]
    with socket.create_connection(('127.0.0.1', node_port), WAIT_S, ('127.0.0.4', 0)) as node:
        node.settimeout(WAIT_S)
        node.sendall(frame(NODE_NONCE, [b'n' * 32], version=3))
        check(node.recv(1), 'a node gets in, also while strangers knock')
    for one in first + others + rest + strangers:
        one.close()
    until(lambda: server.status()['connections'] < 5, 'places are given back')


def refused(port, blob):
    with socket.create_connection(('127.0.0.1', port), WAIT_S) as one:
        one.settimeout(WAIT_S)
        one.sendall(blob)
        got = b''
        try:
            while True:
                piece = one.recv(1 << 16)
                if not piece:
                    return got
                got += piece
        except ConnectionError:
            return got


def test_a_large_first_request_is_refused_by_its_header():
    """Before its body has come. Who has said who it is may send as much, and so may a client of Kafka that is told versions."""
    server = Server('--kafka', '127.0.0.1:0').start()
    large = frame(PING, [], payload=bytes(64 << 10))
    check_in(b'64 KiB at most', refused(server.port, large[:64]))
    known = Raw(server)
    known.socket.sendall(large[:64])
    known.socket.sendall(large[64:])
    equal(known.answer()[0], 1, 'behind a hello it is a request as any')
    kafka = kafka_port(server)
    refused(kafka, struct.pack('>Ihhih', 64 << 10 | 1, 77, 0, 1, -1))
    check_in('its first request is larger than 64 KiB', server.node_log())
    with socket.create_connection(('127.0.0.1', kafka), WAIT_S) as producer:
        producer.sendall(struct.pack('>Ihhih', 64 << 10 | 1, 0, 9, 1, -1))
        producer.settimeout(1)
        try:
            producer.recv(1)
            check(False, 'a large Produce is closed')
        except TimeoutError:
            pass


def test_the_wrong_port_is_named():
    server = Server('--kafka', '127.0.0.1:0').start()
    kafka = kafka_port(server)
    tls = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])
    refused(server.port, API_VERSIONS)
    check_in("it speaks Kafka's protocol, whose port is that of --kafka", server.node_log())
    refused(server.port, tls)
    check_in('it speaks TLS', server.node_log())
    refused(kafka, tls)
    equal(server.node_log().count('it speaks TLS'), 2, 'on both ports')
    refused(kafka, b'GET / HTTP/1.1\r\n\r\n')
    check_in('it speaks HTTP', server.node_log())
    check_in(b'--listen', refused(kafka, frame(HELLO, [1, 1, 'lost', -1])))
    done = server.leat('-b', f'127.0.0.1:{kafka}', 'stream', 'list', code=3)
    check_in('--listen', done.stderr)


def numbers_between(server, pipeline, answers, ask, count):
    """A pipeline of requests for producer ids, and one of who asks for one; ids are numbered as they are given out. Whether
    one of the others had its own between two of the pipeline."""
    server.stand_still()
    pipeline()
    for one in ask:
        one.send(PRODUCER_ID, [-1, -1])
    os.kill(server.process.pid, signal.SIGCONT)
    between = [one.answer()[1][0] & 0xffffffff for one in ask]
    numbers = {answers() & 0xffffffff for _ in range(count)}
    return any({number - 1, number + 1} <= numbers for number in between)


def test_a_pipeline_lets_others_come_between():
    """All of it is there when the server looks, so it might be answered in one go: without turns it was, every time. Who of
    the two is looked at first is chance, so it may take some tries."""
    count = 100
    server = Server('--kafka', '127.0.0.1:0').start()
    honest = [Raw(server, hello=False) for _ in (0, 1)]
    for lane, one in enumerate(honest):
        one.call(HELLO, [1, 1, 'honest', lane])
        one.call(PRODUCER_ID, [-1, -1])
    raw = Raw(server, hello=False)
    raw.call(HELLO, [1, 1, 'greedy', 0])
    native = frame(PRODUCER_ID, [-1, -1]) * count
    until(lambda: numbers_between(server, lambda: raw.socket.sendall(native), lambda: raw.answer()[1][0], honest, count),
          'an id that is given amid a pipeline of the native port')
    client = Connection(server.host, kafka_port(server))
    kafka = kafka_frame(INIT_PRODUCER_ID, 0, struct.pack('>hi', -1, 1000)) * count

    def kafka_answer():
        return struct.unpack_from('>q', client.read(4 + 20), 4 + 4 + 4 + 2)[0]
    client.socket.sendall(kafka)
    for _ in range(count):
        kafka_answer()  # it is on its core now
    until(lambda: numbers_between(server, lambda: client.socket.sendall(kafka), kafka_answer, honest, count),
          'an id that is given amid a pipeline of a client of Kafka')


def test_a_request_of_many_names_leaves_the_coordinator_to_others():
    """20,000 names in each of eight DeleteTopics, all of a topic that is there: each would be a request to the coordinator, of
    which 65,536 may wait. Nobody is told to try again, who names them neither."""
    count, connections = 20000, 8
    server = Server('--kafka', '127.0.0.1:0', '--memory', '4G').start()
    port = kafka_port(server)
    honest = Connection(server.host, port)
    equal(topic_create(honest, 'named', 1), NONE)
    body = struct.pack('>i', count) + Out(False).run('named').bytes * count + struct.pack('>i', 30000)
    greedy = [Connection(server.host, port) for _ in range(connections)]
    for one in greedy:
        one.socket.sendall(kafka_frame(DELETE_TOPICS, 1, body))
    waits = Waits()
    for i in range(50):
        equal(waits.within('a topic that is made', lambda: topic_create(honest, f'honest{i}', 1)), NONE)
    waits.end()
    codes = set()
    for one in greedy:
        back = In(one.read(struct.unpack('>i', one.read(4))[0]), False)
        equal(back.i('iii')[2], count)
        codes |= {(back.run(), back.i('h'))[1] for _ in range(count)}
    equal(codes, {NONE, UNKNOWN_TOPIC}, 'answers to who named one topic again and again')


def test_look_ups_of_who_has_gone_keep_no_buffer():
    """A core has two buffers for bytes that have left memory. Who waits for one, and goes, gives it back at its turn."""
    server = Server('--memory', '128M', '--cores', '1', '--kafka', 'off').start()
    server.leat('bench', 'append', '--stream', 'old', '--logs', 1, '--durability', 'memory', '--producers', 1, '--records', 1_000_000,
                '--json', '-')
    _, control, _ = Raw(server).call(METADATA, [['old'], False])
    asked = frame(LOCATE, [[[control[2][0][2], 0, 0, 3, i * 500] for i in range(200)]])  # old offsets: each row reads a file
    for _ in range(2):
        held = [Raw(server) for _ in range(40)]
        for raw in held:
            raw.socket.sendall(asked)
        held[0].answer()  # all others are at work, or wait for a buffer
        for raw in held:
            raw.socket.close()
    equal(server.values('old', '--max-records', 5, '--format', '%o'), ['0', '1', '2', '3', '4'], 'others read what is old')


def test_look_ups_by_time_of_one_address_let_others_come_between():
    """A crowd has times looked up in a batch that takes a millisecond to uncompress: who comes from its address waits for all of
    them, whoever comes from another does not."""
    server = Server('--cores', '1').start()
    server.leat('stream', 'create', 'honest')
    log = logs_of(server, 'honest')[0]
    records = batch_of([(1000 + i, None, b'%08d' % i * 10) for i in range(10000)])
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    batch = compressed(records, 1, packed.compress(records[61:]) + packed.flush())
    equal(Raw(server).call(APPEND, [*log, 1], batch)[:2], (1, [[0, 0]]), 'appended')
    row = [*log[:3], 2, 10998]  # the first record at or after a time: all but the last are passed over
    others = Raw(server, source='127.0.0.2')
    equal(others.call(LOCATE, [[row]])[1][0][:2], [0, 9998], 'found')
    crowd = [Raw(server) for _ in range(100)]
    for one in crowd:
        one.send(LOCATE, [[row] * 300])
    mate, waits = Raw(server), {}
    for _ in range(5):
        for name, who in ('of its own', mate), ('of another address', others):
            began = time.monotonic()
            equal(who.call(LOCATE, [[row]])[1][0][:2], [0, 9998], name)
            waits.setdefault(name, []).append(time.monotonic() - began)
    own, other = (sorted(some)[2] for some in waits.values())
    check(other < own / 4, 'a look-up waited for those of another address:', waits)
    for one in crowd:
        one.socket.close()


def test_producers_of_one_address_leave_half_of_a_log_to_others():
    """Of 16,384 producers that a log remembers. Each appends one batch, under an id of its own."""
    server = Server().start()
    server.leat('stream', 'create', 'few', '--streamlets', 1, '--logs', 1)
    log = logs_of(server, 'few')[0]
    plain = batch_of([(1, None, b'x')])

    def appended(raw, ids):
        for producer in ids:
            covered = plain[21:43] + struct.pack('>qhi', producer, 0, 0) + plain[57:]
            blob = plain[:17] + struct.pack('>I', crc32c(covered)) + covered
            raw.send(APPEND, [*log, 1], blob)
        answers = [raw.answer()[1] for _ in ids]
        return sum(answer[0][0] == 0 for answer in answers), answers[-1]
    raw = Raw(server)
    taken, last = 0, None
    for first in range(0, 9000, 100):
        count, last = appended(raw, range(first, first + 100))
        taken += count
    equal(taken, 8192, f'producers of one address, of 9,000: {last}')
    other = Raw(server, hello=False)
    other.socket.close()
    other.socket = socket.create_connection((server.host, server.port), WAIT_S, ('127.0.0.2', 0))
    other.call(HELLO, [1, 1, 'other', -1])
    equal(appended(other, range(10000, 10100))[0], 100, 'producers of another address')


def test_what_kafka_asks_in_vain_is_named():
    server = Server('--kafka', '127.0.0.1:0').start()
    for key, version, text in ((77, 0, 'API key 77, version 0'), (1, 3, 'versions 4 to 17 of it are served')):
        body = struct.pack('>hhih', key, version, 5, 4) + b'goka'
        refused(kafka_port(server), struct.pack('>I', len(body)) + body)
        server.node_log_wait(r'\(goka\) closed: a request .*' + re.escape(text))


def test_a_name_stays_in_its_line():
    server = Server().start()
    name = 'x)\n2026-01-01T00:00:00.000Z error \x1b[31mforged\x1b[0m ('
    one = Raw(server, hello=False)
    one.call(HELLO, [1, 1, name, -1])
    one.socket.sendall(b'garbage ' * 8)
    check(one.closed(), 'it is refused')
    server.node_log_wait('refused and closed')
    check('\x1b' not in server.node_log(), 'an escape in the node log')
    check(not [line for line in server.node_log().splitlines() if line.startswith('2026-01-01')], 'a forged line')


def test_a_flood_of_refusals_is_summed_up():
    server = Server().start()
    before = len(server.node_log())
    for _ in range(500):
        refused(server.port, b'no frame of any protocol ' * 2)
    others_are_answered(server, 0)
    server.node_log_wait(r'\.\.\. and \d+ more connections were refused or closed')
    check(len(server.node_log()) - before < 20000, 'lines of 500 refusals', len(server.node_log()) - before)


main()
