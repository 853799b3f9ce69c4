"""Whoever knocks on the ports, and whatever they send, others are answered meanwhile and the diary stays readable."""
import re
import socket
import struct
import threading
import time

from rig import HELLO, PING, WAIT_S, Raw, Server, check, check_in, equal, frame, main, on_end, until

ANSWERED_WITHIN_S = 5
ATTACK_S = 6  # longer than it takes to throw out who brings nothing
MIB = 1 << 20
KAFKA_FRAME = struct.pack('>I', 8 * MIB)
API_VERSIONS = struct.pack('>Ihhih', 10, 18, 0, 1, -1)


def kafka_port(server):
    server.diary_wait(r'clients of Kafka: listening on ')
    return int(re.search(r'clients of Kafka: listening on [^:]*:(\d+)', server.diary()).group(1))


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


def others_are_answered(server, for_s=ATTACK_S):
    """New connections and a request on each, every one within its time; at least one."""
    until_s = time.monotonic() + for_s
    began = 0
    while began < until_s:
        began = time.monotonic()
        for lane in (0, 1):
            with socket.create_connection((server.host, server.port), ANSWERED_WITHIN_S) as one:
                one.settimeout(ANSWERED_WITHIN_S)
                one.sendall(frame(HELLO, [1, 1, 'honest', lane], 1) + frame(PING, [], 2))
                got = b''
                while len(got) < 48:
                    piece = one.recv(1 << 16)
                    check(piece, 'an honest connection was closed')
                    got += piece
        took = time.monotonic() - began
        check(took < ANSWERED_WITHIN_S, 'an honest client waited for', took)


def gone(server, before):
    until(lambda: server.status()['connections'] <= before + 1, 'nothing is left of connections that have gone')


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
    check_in('it has not said who it is for 10 s', server.diary())
    known = Raw(server)  # however quiet
    known.call(PING, [])


def test_one_address_has_so_many_connections():
    server = Server('--connections-per-address', '20', '--kafka', 'off').start()
    held = [Raw(server) for _ in range(20)]
    with socket.create_connection((server.host, server.port), WAIT_S) as one:
        one.settimeout(WAIT_S)
        equal(one.recv(1), b'', 'one more')
    server.diary_wait('its address has as many connections as one may have')
    other = socket.create_connection((server.host, server.port), WAIT_S, ('127.0.0.2', 0))
    other.settimeout(WAIT_S)
    other.sendall(frame(HELLO, [1, 1, 'elsewhere', -1]))
    check(other.recv(1), 'an address that has fewer')
    other.close()
    for one in held:
        one.socket.close()
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


def test_the_wrong_port_is_named():
    server = Server('--kafka', '127.0.0.1:0').start()
    kafka = kafka_port(server)
    tls = bytes([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3])
    refused(server.port, API_VERSIONS)
    check_in("it speaks Kafka's protocol, whose port is that of --kafka", server.diary())
    refused(server.port, tls)
    check_in('it speaks TLS', server.diary())
    refused(kafka, tls)
    equal(server.diary().count('it speaks TLS'), 2, 'on both ports')
    refused(kafka, b'GET / HTTP/1.1\r\n\r\n')
    check_in('it speaks HTTP', server.diary())
    check_in(b'--listen', refused(kafka, frame(HELLO, [1, 1, 'lost', -1])))
    done = server.leat('-b', f'127.0.0.1:{kafka}', 'stream', 'list', code=3)
    check_in('--listen', done.stderr)


def test_what_kafka_asks_in_vain_is_named():
    server = Server('--kafka', '127.0.0.1:0').start()
    for key, version, text in ((77, 0, 'API key 77, version 0'), (1, 3, 'versions 4 to 17 of it are served')):
        body = struct.pack('>hhih', key, version, 5, 4) + b'goka'
        refused(kafka_port(server), struct.pack('>I', len(body)) + body)
        server.diary_wait(r'\(goka\) closed: a request .*' + re.escape(text))


def test_a_name_stays_in_its_line():
    server = Server().start()
    name = 'x)\n2026-01-01T00:00:00.000Z error \x1b[31mforged\x1b[0m ('
    one = Raw(server, hello=False)
    one.call(HELLO, [1, 1, name, -1])
    one.socket.sendall(b'garbage ' * 8)
    check(one.closed(), 'it is refused')
    server.diary_wait('refused and closed')
    check('\x1b' not in server.diary(), 'an escape in the diary')
    check(not [line for line in server.diary().splitlines() if line.startswith('2026-01-01')], 'a forged line')


def test_a_flood_of_refusals_is_summed_up():
    server = Server().start()
    before = len(server.diary())
    for _ in range(500):
        refused(server.port, b'no frame of any protocol ' * 2)
    others_are_answered(server, 0)
    server.diary_wait(r'\.\.\. and \d+ more connections were refused or closed')
    check(len(server.diary()) - before < 20000, 'lines of 500 refusals', len(server.diary()) - before)


main()
