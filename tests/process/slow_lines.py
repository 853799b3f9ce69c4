# SPDX-License-Identifier: Apache-2.0
"""Readers over slow lines: whatever they read, and however slowly they take it, nobody else waits for them.

The whole script runs in a network namespace that it makes for itself, where sockets hold as little as over a
network: on the loopback interface of a machine they hold megabytes, and hide everything.
"""
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import namespaces
import tied
from rig import (FETCH, HELLO, METADATA, Failure, Raw, Server, WAIT_S, check, check_in, equal, frame, line_read, main, on_end,
                 process_end, until)

MIB = 1 << 20
TOO_SLOW = 'closed: it takes its answers too slowly, and others need the memory'
KCATS, KCAT_RECORDS = 40, 20_000
STOPPED_S = 12  # longer than a connection may take nothing of its answer (LEAT_PEER_STALL_US, and 5 s to notice)
PULL_S = 2  # of one pull, beside other tests; without the rule it is 9 s
SOON_S = 3  # each of several commands at once, beside other tests; without the rule it is 8 to 30 s


def need_namespace():
    namespaces.need()
    subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True, timeout=WAIT_S)
    for name in 'wmem', 'rmem':
        with open(f'/proc/sys/net/ipv4/tcp_{name}', 'w') as limits:
            limits.write('4096 16384 131072')


def log_of(server, stream):
    """(stream, epoch) of its only log."""
    _, control, _ = Raw(server).call(METADATA, [[stream], False])
    return control[2][0][2], control[2][0][4][0][3]


class Trickle:
    """Connections that have asked, and take a few kilobytes of their answers now and then."""

    def __init__(self, server, requests, piece=4096):
        self.server, self.connections, self.over, self.piece = server, [], threading.Event(), piece
        self.taken = []  # bytes of each connection's answer
        for request in requests:
            raw = Raw(server, receive_bytes=4096)
            raw.socket.sendall(request)
            self.connections.append(raw)
            self.taken.append(bytearray())
        for raw in self.connections:
            raw.socket.setblocking(False)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        on_end(self.over.set)

    def run(self):
        while not self.over.wait(0.5):  # slowness is what is tried
            for i in range(len(self.connections)):
                try:
                    self.take(i, self.piece)
                except OSError:
                    pass

    def take(self, i, most):
        """False: it was closed."""
        try:
            piece = self.connections[i].socket.recv(most)
        except ConnectionError:
            piece = b''
        self.taken[i] += piece
        return len(piece) > 0

    def owed(self, i):
        """Bytes of its answer that it has not taken."""
        taken = self.taken[i]
        return 4 + int.from_bytes(taken[:4], 'little') - len(taken) if len(taken) >= 4 else 4 - len(taken)

    def whole(self, i):
        while self.owed(i):
            if not self.take(i, self.owed(i)):
                return False
        equal(self.taken[i][7], 1, f'flags of the answer to reader {i}')
        return True

    def go_on(self, least):
        """They have been slow up to now: none has the whole of its answer. At least so many get it as soon as they take it; the
        server has closed no others than those of which it says that they were in the way."""
        self.over.set()
        self.thread.join(WAIT_S)
        check(all(self.owed(i) for i in range(len(self.connections))), 'one has the whole of its answer: they were not slow')
        for raw in self.connections:
            raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)
            raw.socket.settimeout(WAIT_S)
        whole = sum(self.whole(i) for i in range(len(self.connections)))
        print(f'  {whole} of {len(self.connections)} have the whole of their answers')
        check(whole >= least, f'{whole} of {len(self.connections)} slow readers were not closed, and not {least}')
        closed = len(self.connections) - whole

        def told():
            node_log = self.server.node_log()
            return node_log.count(TOO_SLOW) + sum(map(int, re.findall(r'and (\d+) more connections were refused or closed', node_log)))
        until(lambda: told() >= closed, f'the node log tells of all {closed} that were closed')
        equal(told(), closed, 'connections that the node log says were closed')


def sending_wait(connections):
    """The server has begun to answer: from now on whoever does not read holds what is being sent."""
    readable, _, _ = select.select([raw.socket for raw in connections], [], [], WAIT_S)
    check(readable, 'no answer comes')


def timed(server, *commands):
    """All at once; each has to be done soon. Commands: (arguments, input, lines wanted)."""
    took, failed = {}, []

    def run(arguments, text, lines):
        begun = time.monotonic()
        try:
            done = server.leat(*arguments, input=text, timeout=WAIT_S)
            if lines is not None:
                equal(len(done.stdout.splitlines()), lines, f'lines of {arguments}')
        except (Failure, subprocess.TimeoutExpired) as error:
            failed.append(f'{arguments}: {str(error)[:200]}')
        took[' '.join(map(str, arguments))] = time.monotonic() - begun

    threads = [threading.Thread(target=run, args=command) for command in commands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('  ' + ', '.join(f'{name}: {took[name]:.2f} s' for name in sorted(took)))
    check(not failed, failed)
    check(max(took.values()) < SOON_S, took)


def cold_server(kafka='off'):
    """One with old data in files, none of it in memory, and a stream that is appended to now."""
    server = Server('--cores', '1', '--memory', '512M', '--kafka', kafka).start()
    server.leat('stream', 'create', 'old', '--logs', 1, '--durability', 'disk')
    server.leat('bench', 'append', '--stream', 'old', '--logs', 1, '--durability', 'disk', '--records', 1_000_000,
                '--producers', 2, timeout=300)
    server.produce('cold', [str(i) for i in range(20000)])
    server.stop()
    server.start()
    server.produce('hot', [str(i) for i in range(20000)])
    return server


def others_are_served(server, mark):
    timed(server, (['consume', 'hot', '-e'], None, 20000),
          (['consume', 'hot', '-e', '--from', 'latest'], None, 0),
          (['consume', 'cold', '-e', '-c', 5000], None, 5000),
          (['produce', f'new{mark}', '-q'], b'x\n' * 100, None),
          (['consume', 'cold', '-e', '--from', 19900], None, 100))


def test_slow_readers_of_old_data_keep_nobody_waiting():
    need_namespace()
    server = cold_server()
    stream, epoch = log_of(server, 'old')
    slow = Trickle(server, [frame(FETCH, [1, MIB, 0, [[stream, 0, 0, epoch, 20 + i * 10000]]], 7) for i in range(40)])
    sending_wait(slow.connections)
    for mark in range(2):
        others_are_served(server, mark)
    slow.go_on(20)  # 16 have a read buffer each, and there is room for 8 MiB of the rests of others


def test_one_connection_with_many_requests_for_old_data_keeps_nobody_waiting():
    need_namespace()
    server = cold_server()
    stream, epoch = log_of(server, 'old')
    for mark in range(2):
        raw = Raw(server, receive_bytes=4096)
        for i in range(100):
            raw.send(FETCH, [1, 4 * MIB, 0, [[stream, 0, 0, epoch, 20 + i * 1000]]])
        sending_wait([raw])
        others_are_served(server, mark)
        equal(raw.answer()[0], 1, 'flags of the first answer, which it still has to take')


class Pulls:
    """An honest consumer of old data and of new: one pull after the other, from all over the log, and how long each took."""

    def __init__(self, server, *streams):
        self.raw, self.took = Raw(server), []
        self.places = [(name, *log_of(server, name)) for name in streams]

    def pull(self):
        name, stream, epoch = self.places[len(self.took) % len(self.places)]
        offset = len(self.took) * 997 % 19_000
        begun = time.monotonic()
        kind, control, payload = self.raw.call(FETCH, [1, MIB, 0, [[stream, 0, 0, epoch, offset]]])
        self.took.append((time.monotonic() - begun, name, offset))
        check(len(payload) > 0, f'a pull of {name} from offset {offset} brings nothing: {kind} {control}')


def test_kcats_that_are_stopped_while_they_read_old_data_keep_nobody_waiting():
    """Real ones, which ask for as much as they do: what is on its way to them when they are stopped is never taken."""
    need_namespace()
    check(shutil.which('kcat'), 'there is no kcat: tools/install check')
    server = cold_server(kafka='127.0.0.1:0')
    port = server.node_log_wait(r'clients of Kafka: listening on [^:]*:(\d+)').group(1)
    command = ['kcat', '-b', f'127.0.0.1:{port}', '-C', '-t', 'old', '-o', 'beginning', '-c', str(KCAT_RECORDS), '-q', '-u', '-f', '%o\n']
    pulls = Pulls(server, 'cold', 'hot', 'old')
    kcats = [tied.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(KCATS)]
    for kcat in kcats:
        on_end(lambda kcat=kcat: process_end(kcat))
    for kcat in kcats:
        equal(line_read(kcat.stdout), '0\n', 'the first record of a kcat')
        kcat.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    while time.monotonic() < begun + STOPPED_S:
        pulls.pull()
    took, name, offset = max(pulls.took)
    print(f'  {len(pulls.took)} pulls beside {KCATS} kcats that are stopped; the longest took {took * 1000:.0f} ms ({name}, {offset})')
    check(took < PULL_S, f'a pull of {name} from offset {offset} took {took:.2f} s')
    for kcat in kcats:
        kcat.send_signal(signal.SIGCONT)
    closed = 0
    for kcat in kcats:
        said, wrong = kcat.communicate(timeout=WAIT_S)
        read = [int(line) for line in said.split()]
        equal(read, list(range(1, 1 + len(read))), 'what a kcat reads from there on')
        if kcat.returncode == 0:
            equal(len(read), KCAT_RECORDS - 1, 'how much it reads')
        else:  # it does not connect anew
            check_in('All broker connections are down', wrong.decode())
            closed += 1
    print(f'  {KCATS - closed} went on reading, {closed} found their connection closed')


def test_slow_readers_of_memory_keep_no_segment_from_appends():
    """Each reads another part of what lies in memory, which is the whole of it."""
    need_namespace()
    server = Server('--cores', '1', '--memory', '256M', '--kafka', 'off').start()
    append = ['bench', 'append', '--stream', 's', '--logs', 1, '--durability', 'memory', '--producers', 1, '--json', '-']
    server.leat(*append, '--records', 2_000_000, timeout=300)
    stream, epoch = log_of(server, 's')
    slow = Trickle(server, [frame(FETCH, [1, MIB, 0, [[stream, 0, 0, epoch, 2_000_000 - (i + 1) * 12000]]], 7) for i in range(100)])
    sending_wait(slow.connections)
    begun = time.monotonic()
    server.leat(*append, '--records', 3_000_000, timeout=300)
    took = time.monotonic() - begun
    print(f'  appended beside them in {took:.1f} s')
    check(took < 12, took)
    slow.go_on(10)  # there is room for 6 MiB of the rests of their answers, and some keep what nobody needs


class Asker:
    """A client, from an address of its own, that asks for metadata of a wide stream, again and again, and always waits for more
    than its socket takes. It takes so many bytes each tenth of a second."""

    REQUEST = frame(METADATA, [['wide'], False])
    HEAD_BYTES = 8  # with the length and the flags of an answer

    def __init__(self, port, address, takes):
        self.where, self.takes = ((address, 0), ('127.0.0.1', port)), takes
        self.answers = self.refusals = self.closed = 0
        self.connect()

    def connect(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096 if self.takes < 4096 else 65536)
        self.socket.bind(self.where[0])
        self.socket.connect(self.where[1])
        self.socket.setblocking(False)
        self.owed, self.head, self.left = frame(HELLO, [1, 1, 'asker', -1]) + self.REQUEST * (60 if self.takes > 4096 else 3000), b'', 0

    def step(self):
        try:
            self.owed = self.owed[self.socket.send(self.owed):]
        except BlockingIOError:
            pass
        except OSError:
            return self.again()
        left = self.takes
        try:
            while left > 0:
                piece = self.socket.recv(min(left, 65536))
                if not piece:
                    return self.again()
                left -= len(piece)
                self.count(piece)
        except BlockingIOError:
            pass
        except OSError:
            self.again()

    def count(self, piece):
        """One request more for each answer that has begun to come."""
        while piece:
            taken = piece[:self.left]
            piece, self.left = piece[len(taken):], self.left - len(taken)
            missed = self.HEAD_BYTES - len(self.head)
            self.head, piece = self.head + piece[:missed], piece[missed:]
            if self.left or len(self.head) < self.HEAD_BYTES:
                return
            self.left = 4 + int.from_bytes(self.head[:4], 'little') - self.HEAD_BYTES
            self.answers += self.head[7] == 1
            self.refusals += self.head[7] != 1
            self.owed += self.REQUEST
            self.head = b''

    def again(self):
        self.closed += 1
        self.socket.close()
        self.connect()


STEP_S = 0.1  # between two steps of an Asker, each of which takes so many bytes


def test_who_takes_its_answers_stays_beside_those_who_do_not():
    need_namespace()
    server = Server('--cores', '1', '--memory', '256M', '--kafka', 'off').start()
    server.leat('stream', 'create', 'wide', '--streamlets', 4, '--logs', 250)
    slow = [Asker(server.port, f'127.0.0.{2 + i % 2}', 10) for i in range(40)]
    honest = Asker(server.port, '127.0.0.1', 100 * 1024)
    begun = time.monotonic()
    while time.monotonic() < begun + 25:
        for one in [*slow, honest]:
            one.step()
        time.sleep(STEP_S)  # nothing is waited for: how fast clients take their answers is what is tried
    gone = sum(one.closed > 0 for one in slow)
    print(f'  {gone} of {len(slow)} were closed; who takes its answers has {honest.answers}, and {honest.refusals} times none')
    equal(honest.closed, 0, 'closed though it takes its answers')
    check(honest.answers > 50, honest.answers)
    check(gone > len(slow) / 4, gone)
    check('while others have no room for theirs' in server.node_log(), 'the account was never full')


if __name__ == '__main__':
    namespaces.enter('mount -t sysfs sysfs /sys 2>/dev/null')
    main()
