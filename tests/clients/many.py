# SPDX-License-Identifier: Apache-2.0
"""Many groups at once: what they cost a server in memory, and what they wait.

    many.py LEATD LEAT [GROUPS [MEMBERS [PARTITIONS]]]      by default 1000 groups of 2, 10 partitions each

Every member has a connection of its own, joins, shares out, and then beats every 3 s and commits its partitions every second for
30 s. Times are a client's: they hold the waiting of one Python process, which is why a second table says what a request costs that
asks for nothing (ApiVersions), sent just as often."""
import asyncio
import os
import random
import re
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'process'))
os.environ.update(LEATD=sys.argv[1], LEAT=sys.argv[2])
from kafka_groups import COMMIT, HEARTBEAT, JOIN, SYNC  # noqa: E402
from kafka_wire import In, Out  # noqa: E402
from rig import Server, _clean, equal  # noqa: E402

GROUPS, MEMBERS, PARTITIONS = ([int(n) for n in sys.argv[3:]] + [1000, 2, 10][len(sys.argv) - 3:])
TOPICS, SECONDS, VERSIONS = 10, 30, 18
times = {}


class Member:
    def __init__(self, host, port, group, index):
        self.host, self.port, self.group, self.index = host, port, f'group-{group}', index
        first = group * PARTITIONS
        mine = range(first + index, first + PARTITIONS, MEMBERS)
        self.parts = {}
        for p in mine:
            self.parts.setdefault(f'topic-{p % TOPICS}', []).append(p // TOPICS)
        self.offset = 0

    async def ask(self, key, version, out, what=None):
        head = struct.pack('>hhih', key, version, 7, 4) + b'many'
        begun = time.perf_counter()
        self.writer.write(struct.pack('>i', len(head + out.bytes)) + head + out.bytes)
        size = struct.unpack('>i', await self.reader.readexactly(4))[0]
        blob = await self.reader.readexactly(size)
        if what:
            times.setdefault(what, []).append(time.perf_counter() - begun)
        return In(blob[4:], False)

    async def join(self):
        self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        self.member, self.leader = b'', False
        for _ in range(50):
            out = Out(False).run(self.group).i('ii', 30000, 30000).run(self.member).run(None).run('consumer')
            back = await self.ask(JOIN, 5, out.array([b'm' * 60], lambda m: out.run('range').run(m, True)))
            _, error, self.generation = back.i('ihi')
            back.run()
            leader, self.member = back.run(), back.run()
            members = back.array(lambda: (back.run(), back.run(), back.run(True))) if not error else []
            if error:
                continue
            shares = [(m[0], b'a' * 60) for m in members]
            out = Out(False).run(self.group).i('i', self.generation).run(self.member).run(None)
            back = await self.ask(SYNC, 3, out.array(shares, lambda s: out.run(s[0]).run(s[1], True)))
            if not back.i('ih')[1]:
                return
        raise RuntimeError(f'{self.group} is not shared out: {error}')

    async def beat(self):
        out = Out(False).run(self.group).i('i', self.generation).run(self.member).run(None)
        equal((await self.ask(HEARTBEAT, 3, out, 'heartbeat')).i('ih')[1], 0)
        await self.ask(VERSIONS, 0, Out(False), 'ApiVersions')

    async def commit(self):
        self.offset += 1
        out = Out(False).run(self.group).i('i', self.generation).run(self.member).run(None)
        out.array(list(self.parts.items()), lambda t: out.run(t[0]).array(
            t[1], lambda p: out.i('iqi', p, self.offset, -1).run('')))
        back = await self.ask(COMMIT, 7, out, 'commit')
        back.i('i')
        for errors in back.array(lambda: (back.run(), back.array(lambda: back.i('ih')[1]))[1]):
            equal(set(errors), {0})

    async def live(self, until):
        await asyncio.sleep(random.random() * 3)
        beats = 0
        while time.monotonic() < until:
            if beats % 3 == 0:
                await self.beat()
            await self.commit()
            beats += 1
            await asyncio.sleep(1)


def megabytes(server):
    status = server.proc('status')
    anon, shared = (int(re.search(name + r':\s+(\d+) kB', status).group(1)) / 1024 for name in ('RssAnon', 'RssShmem'))
    return f'{anon:.0f} MB of its own, {shared:.0f} MB of the pool'


async def run(server, host, port):
    members = [Member(host, port, g, m) for g in range(GROUPS) for m in range(MEMBERS)]
    begun = time.monotonic()
    await asyncio.gather(*(m.join() for m in members))
    print(f'{len(members)} members of {GROUPS} groups on as many connections are shared out after '
          f'{time.monotonic() - begun:.1f} s: {megabytes(server)}', flush=True)
    ticks = server.cpu_ticks()
    begun = time.monotonic()
    await asyncio.gather(*(m.live(begun + SECONDS) for m in members))
    took = time.monotonic() - begun
    cpu = (server.cpu_ticks() - ticks) / os.sysconf('SC_CLK_TCK')
    count = sum(map(len, times.values()))
    print(f'{count / took:.0f} requests/s, {100 * cpu / took:.0f} % of a CPU, {megabytes(server)}')
    print('| request | count | p50 ms | p99 ms | longest |\n|---|---|---|---|---|')
    for what, all_times in times.items():
        found = sorted(all_times)
        cells = (found[len(found) // 2], found[len(found) * 99 // 100], found[-1])
        print(f'| {what} | {len(found)} | ' + ' | '.join(f'{1000 * c:.1f}' for c in cells) + ' |')


def main():
    server = Server('--kafka', '127.0.0.1:0', '--memory', '2G', data='/var/tmp/leat-many-%d' % os.getpid()).start()
    try:
        host, port = server.node_log_wait(r'clients of Kafka: listening on (\S+):(\d+)').groups()
        print(f'empty: {megabytes(server)}')
        for t in range(TOPICS):
            server.leat('stream', 'create', f'topic-{t}', '--streamlets', GROUPS * PARTITIONS // TOPICS, '--logs', 1)
        print(f'{GROUPS * PARTITIONS} partitions: {megabytes(server)}', flush=True)
        asyncio.run(run(server, host, int(port)))
        server.stop()
    finally:
        _clean()
        import shutil
        shutil.rmtree(server.data, ignore_errors=True)


main()
