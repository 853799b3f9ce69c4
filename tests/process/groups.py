# SPDX-License-Identifier: Apache-2.0
"""Consumers that share a stream: every record once while nothing fails, others take over when one is
killed, and what was committed stays."""
import os
import selectors
import signal
import time

from rig import PING, Raw, Server, check, check_in, equal, main, until, WAIT_S


class Members:
    """Several `leat consume --group`; their lines as they come."""

    def __init__(self, server, stream, count, mode):
        self.server, self.stream, self.mode = server, stream, mode
        self.selector = selectors.DefaultSelector()
        self.got, self.rest = {}, {}
        for _ in range(count):
            self.add()

    def add(self):
        process = self.server.leat_start('consume', self.stream, '--group', 'readers', '--mode', self.mode,
                                         '--format', '%p %o %v')
        self.selector.register(process.stdout, selectors.EVENT_READ, process)
        self.got[process], self.rest[process] = [], b''
        return process

    def read_until(self, enough):
        deadline = time.monotonic() + WAIT_S
        while not enough():
            check(time.monotonic() < deadline, 'waited in vain;', [len(g) for g in self.got.values()])
            for key, _ in self.selector.select(1):
                process = key.data
                blob = os.read(key.fileobj.fileno(), 1 << 16)
                if not blob:
                    self.selector.unregister(key.fileobj)
                    continue
                parts = (self.rest[process] + blob).split(b'\n')
                self.rest[process] = parts.pop()
                self.got[process] += [p.decode() for p in parts]

    def lines(self):
        return [line for got in self.got.values() for line in got]

    def values(self):
        return {line.split()[2] for line in self.lines()}

    def stop(self):
        for process in self.got:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.got:
            process.wait(WAIT_S)


def made(streamlets=2, logs=2):
    server = Server().start()
    server.leat('stream', 'create', 's', '--streamlets', streamlets, '--logs', logs,
                '--segment-bytes', '16K')
    return server


def spread(server, first, count):
    """To all logs: each produce has its own producer id, hence its log; streamlets take turns."""
    for part in range(8):
        chosen = [f'v{i}' for i in range(first, first + count) if i % 8 == part]
        server.produce('s', chosen, '--batch-bytes', '1K')
    return {f'v{i}' for i in range(first, first + count)}


def quiet(mode):
    server = made()
    wanted = spread(server, 0, 4000)
    members = Members(server, 's', 3, mode)
    # While members come, logs change hands; from here on nothing does.
    members.read_until(lambda: members.values() >= wanted)
    before = len(members.lines())
    more = spread(server, 4000, 4000)
    members.read_until(lambda: members.values() >= wanted | more)
    quiet_lines = [l for l in members.lines() if int(l.split()[2][1:]) >= 4000]
    equal(len(quiet_lines), 4000, 'each record once over the group')
    check(before >= 4000)
    if mode == 'ordered':
        for got in members.got.values():
            last = {}
            for line in got:
                partition, offset, value = line.split()
                if int(value[1:]) < 4000:
                    continue
                check(int(offset) > last.get(partition, -1), 'order within a log', line)
                last[partition] = int(offset)
    members.stop()
    # All was committed: a new member finds nothing, before and after a kill of the server.
    again = ('--listen', server.address)
    equal(server.values('s', '--group', 'readers', '--mode', mode), [], 'committed')
    server.kill()
    server.start(*again)
    equal(server.values('s', '--group', 'readers', '--mode', mode), [], 'committed, after a kill')


def test_quiet_ordered():
    quiet('ordered')


def test_quiet_parallel():
    quiet('parallel')


def killed(mode):
    server = made()
    wanted = spread(server, 0, 2000)
    members = Members(server, 's', 3, mode)
    members.read_until(lambda: members.values() >= wanted)
    victim = max(members.got, key=lambda p: len(members.got[p]))
    victim.kill()
    wanted |= spread(server, 2000, 2000)
    members.read_until(lambda: members.values() >= wanted)
    # The others took over what it had: all of it came, from them.
    late = {l.split()[2] for p, got in members.got.items() if p != victim for l in got}
    check(late >= {f'v{i}' for i in range(2000, 4000)}, 'the others have what came after the kill')
    members.stop()
    equal(server.values('s', '--group', 'readers', '--mode', mode), [], 'committed')


def test_member_killed_ordered():
    killed('ordered')


def test_member_killed_parallel():
    killed('parallel')


def test_server_killed_under_a_set():
    server = made()
    again = ('--listen', server.address)
    wanted = spread(server, 0, 1000)
    members = Members(server, 's', 2, 'ordered')
    members.read_until(lambda: members.values() >= wanted)
    server.kill()
    server.start(*again)
    wanted |= spread(server, 1000, 1000)
    members.read_until(lambda: members.values() >= wanted)
    members.stop()


GROUP_JOIN, GROUP_HEARTBEAT, GROUP_FETCH = 11, 12, 15
SESSION_MS = 5 * WAIT_S * 1000


def connections(server, count):
    until(lambda: server.status()['connections'] == count, f'{count} connections')


def test_a_member_that_never_catches_up_commits_on_its_way():
    """Its reader is slower than the stream, so there is always something more to print."""
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.produce('s', range(3000000))
    raw = Raw(server)
    member = server.leat_start('consume', 's', '--group', 'slow')
    printed = b''

    def committed():
        nonlocal printed
        printed += os.read(member.stdout.fileno(), 65536)
        rows = raw.call(GROUP_FETCH, ['slow', []])[1][1]
        return rows[0][4] if rows else 0

    until(committed, 'a commit before the end')
    check(member.poll() is None, 'the member ended')
    member.kill()
    printed += member.stdout.read()
    lines = printed.count(b'\n')
    check(lines < 3000000, 'it had caught up')
    at = committed()
    check(0 < at <= lines, 'what was not printed is not committed', at, lines)


def test_a_set_keeps_its_mode():
    """Members and offsets are of one mode; who comes with the other one is told which."""
    server = Server().start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.produce('s', ['a', 'b'])
    for mode, other in (('ordered', 'parallel'), ('parallel', 'ordered')):
        equal(server.values('s', '--group', mode, '--mode', mode, '--max-records', 1), ['a'])
        done = server.leat('consume', 's', '--group', mode, '--mode', other, '--until-end', code=1)
        check_in(f'the group is of mode {mode}: join in that, or use another name', done.stderr)
        equal(server.values('s', '--group', mode, '--mode', mode), ['b'])


def test_member_that_vanishes_as_it_joins_holds_nothing():
    """A join is held until the group has settled, up to a session. Whoever closes its connection
    meanwhile gets no share, and those who stay do not wait a session for it."""
    server = made(streamlets=2, logs=2)
    probe = Raw(server)  # of which leat status is one more, as it asks
    stays = Raw(server)
    stays.call(GROUP_FETCH, ['readers', []])  # makes the home of the groups
    flags, answer, _ = stays.call(GROUP_JOIN, ['readers', '', 0, SESSION_MS, ['s']])
    equal(flags, 1, answer)
    member, generation, assigned = answer[0].decode(), answer[1], answer[2]
    equal(len(assigned), 4, 'alone it reads all')
    for _ in range(3):
        goes = Raw(server)
        goes.send(GROUP_JOIN, ['readers', '', 0, SESSION_MS, ['s']])
        # Its join has arrived, and waits: the other has to join again.
        until(lambda: stays.call(GROUP_HEARTBEAT, ['readers', member, generation])[0] != 1, 'a rebalance')
        connections(server, 4)
        goes.socket.close()
        connections(server, 3)
        for _ in range(4):
            probe.call(PING, [])
        flags, answer, _ = stays.call(GROUP_JOIN, ['readers', member, 0, SESSION_MS, ['s']])
        equal(flags, 1, answer)
        _, generation, assigned = answer
        equal(len(assigned), 4, 'logs of the one that stays')
        equal(stays.call(GROUP_HEARTBEAT, ['readers', member, generation])[0], 1, 'it has settled')
    server.stop()


if __name__ == '__main__':
    main()
