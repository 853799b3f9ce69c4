# SPDX-License-Identifier: Apache-2.0
"""What an earlier commit stored is read by this one: records, settings, groups' offsets, producers' sequences.

stored.tar.xz has two data directories, of a server that was killed while segments were open, and of the same server stopped
after another start; and said.json, what that commit's own programs read there. It was made by the programs of d70bf49f, from
before the code was reshaped:

    git worktree add /tmp/then COMMIT && cd /tmp/then && meson setup build --buildtype=release && ninja -C build
    then=/tmp/then/build/tools
    LEATD=$then/leatd LEAT=$then/leat python3 -B tests/process/stored.py --make tests/process/stored.tar.xz
"""
import base64
import gzip
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile

from kafka_door import producer_id
from kafka_groups import Client
from kafka_wire import BATCH_HEAD, NONE, batch_offsets, batches_fetch, produce
from rawbatch import compressed, varint
from rig import OPEN, Server, _clean, check, crc32c, directory, equal, main

ARCHIVE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'stored.tar.xz')
FORMAT = r'%t\t%p\t%o\t%T\t%K\t%k\t%S\t%s\t%h\n'
ASKED = '--logs 2 --segment-bytes 16K --max-batch-bytes 8K --retention-bytes 512M --retention-time 36500d --durability disk'
SETTINGS = {'streamlets': 1, 'logs': 2, 'segment_bytes': 16384, 'max_batch_bytes': 8192, 'retention_bytes': 512 << 20,
            'retention_ms': 36500 * 86_400_000, 'durability': 'disk', 'copies': 1, 'append_time': False, 'validate': 'full'}
BASE_MS, PARTITIONS, ROUNDS, NATIVE, READ = 1_700_000_000_123, 2, 12, 90, 301


# ---- what is stored ----

def run_of(blob):
    return varint(-1) if blob is None else varint(len(blob)) + blob


def batch(first, count, producer=-1, sequence=-1):
    """With keys, values and headers of all kinds: none, empty, some."""
    blob = b''
    for n in range(count):
        key = (None, b'', b'key-%d' % (first + n))[n % 3]
        value = None if n == 7 else b'value %d: ' % (first + n) + b'as it was stored then; ' * 12
        headers = [(b'h%d' % h, (b'', None, b'header %d' % n)[h]) for h in range(n % 4)]
        body = b'\0' + varint(13 * n) + varint(n) + run_of(key) + run_of(value) + varint(len(headers))
        body += b''.join(run_of(name) + run_of(text) for name, text in headers)
        blob += varint(len(body)) + body
    start = BASE_MS + 1000 * first
    epoch = 0 if producer >= 0 else -1
    covered = struct.pack('>HiqqqhiI', 0, count - 1, start, start + 13 * (count - 1), producer, epoch, sequence, count)
    return struct.pack('>QiIBI', 0, len(covered) + len(blob) + 9, 0, 2, crc32c(covered + blob)) + covered + blob


def snappy(blob):
    """One literal."""
    size, rest = b'', len(blob)
    while rest > 127:
        size, rest = size + bytes([rest & 127 | 128]), rest >> 7
    return size + bytes([rest]) + struct.pack('<BH', 61 << 2, len(blob) - 1) + blob


def lz4(blob):
    """A frame of one block that is as it was."""
    return bytes.fromhex('04224d18604082') + struct.pack('<I', len(blob) | 1 << 31) + blob + bytes(4)


def zstd(blob):
    """Likewise."""
    head = bytes.fromhex('28b52ffd60') + struct.pack('<H', len(blob) - 256)
    return head + struct.pack('<I', len(blob) << 3 | 1)[:3] + blob


PACKED = (lambda blob: gzip.compress(blob, mtime=0), snappy, lz4, zstd)


def batches(first, producer, sequence):
    """One of each codec, and one of a producer that repeats what was not answered."""
    plain = [batch(first + 10 * n, 10) for n in range(5)]
    packed = [compressed(plain[n + 1], n + 1, pack(plain[n + 1][BATCH_HEAD:])) for n, pack in enumerate(PACKED)]
    return plain[:1] + packed + [batch(first + 50, 10, producer, sequence)]


# ---- how it was made ----

def said_by(server):
    """What its own programs read of it."""
    client = Client(server)
    fetched = [kafka_batches(client, p) for p in range(PARTITIONS)]
    return {'records': records(server), 'batches': fetched}


def kafka_batches(client, partition):
    found, at = [], 0
    while True:
        some, high = batches_fetch(client, 'topic', partition, at)
        found += [base64.b64encode(b).decode() for b in some]
        if some:
            at = batch_offsets(some[-1])[1]
        if at >= high:
            return found


def records(server):
    """In the order of each log; that between logs is nobody's."""
    lines = server.leat('consume', 'topic', '--until-end', '--from', 'earliest', '--format', FORMAT).stdout.splitlines()
    return sorted(lines, key=lambda line: int(line.split('\t')[1]))


def make(archive):
    home, no_files = directory(), shutil.ignore_patterns('*.sock', 'pool')
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 'topic', *ASKED.split())
    client = Client(server)
    producer = producer_id(client)
    offsets = [0] * PARTITIONS
    for turn in range(ROUNDS):
        for p in range(PARTITIONS):
            for b in batches(60 * turn, producer, 10 * turn):
                equal(produce(client, 'topic', b, p), (NONE, offsets[p]))
                offsets[p] += 10
    for codec in 'lz4', 'zstd':
        lines = b''.join(b'k%d=native %d\n' % (n % 9, n) for n in range(NATIVE))
        server.leat('produce', 'topic', '--key-separator', '=', '-z', codec, input=lines)
    option = next(o for o in ('--group', '--set') if f'{o} ' in server.leat('consume', '--help').stdout)  # its name then
    read = server.leat('consume', 'topic', option, 'readers', '--max-records', READ, '--format', FORMAT).stdout.splitlines()
    equal(client.commit(2, -1, '', [(0, 77, 'where it was'), (1, 5, None)]), [NONE, NONE])
    said = dict(said_by(server), read=read, producer=producer)
    with open(os.path.join(home, 'said.json'), 'w') as file:
        json.dump(said, file, indent=0)
    server.kill()
    check(any(row['state'] == OPEN for row in server.rows()), 'segments are open')
    shutil.copytree(server.data, os.path.join(home, 'killed'), ignore=no_files)
    server.start()
    equal(said_by(server), {key: said[key] for key in ('records', 'batches')})
    server.stop()
    shutil.copytree(server.data, os.path.join(home, 'stopped'), ignore=no_files)
    options = '--sparse --sort=name --owner=0 --group=0 --numeric-owner --mtime=@1700000000 --xz'.split()
    subprocess.run(['tar', *options, '-cf', os.path.abspath(archive), 'killed', 'said.json', 'stopped'], cwd=home, check=True, env=dict(os.environ, XZ_OPT='-9e'))


# ---- and read again ----

def unpacked(name):
    home = directory()
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(home)
    with open(os.path.join(home, 'said.json')) as file:
        return Server('--kafka', '127.0.0.1:0', data=os.path.join(home, name)), json.load(file)


def all_is_there(name):
    server, said = unpacked(name)
    server.start()
    equal(len(said['records']), PARTITIONS * ROUNDS * 60 + 2 * NATIVE)
    equal(records(server), said['records'], 'records')
    client = Client(server)
    for p in range(PARTITIONS):
        equal(kafka_batches(client, p), said['batches'][p], f'batches of partition {p}')
    described = server.describe('topic')
    equal({key: described[key] for key in SETTINGS}, SETTINGS)
    equal(client.fetch(2, [0, 1])[0], [[(0, 77, None, b'where it was', NONE), (1, 5, None, b'', NONE)]])
    rest = server.leat('consume', 'topic', '--group', 'readers', '--until-end', '--format', FORMAT).stdout.splitlines()
    equal(sorted(said['read'] + rest), sorted(said['records']), 'each record once by the group')
    logs = [[line for line in said['records'] if line.split('\t')[1] == str(p)] for p in range(PARTITIONS)]
    for p, log in enumerate(logs):
        go_on(client, p, said['producer'], len(log))
    server.produce('topic', [f'new {n}' for n in range(100)])
    now = records(server)
    server.stop()
    server.start()
    equal(records(server), now, 'records after another start')
    values = []
    for p, log in enumerate(logs):
        rows = [line for line in now if line.split('\t')[1] == str(p)]
        equal(rows[:len(log)], log, 'what was there before stays')
        equal([int(line.split('\t')[2]) for line in rows], list(range(len(rows))), 'offsets')
        values += [line.split('\t')[7] for line in rows[len(log) + 10:]]
    equal(sorted(values), sorted(f'new {n}' for n in range(100)))


def go_on(client, partition, producer, end):
    """As the producer of then, which repeats its last batch and sends the next one."""
    last, sequence = 60 * ROUNDS - 10, 10 * (ROUNDS - 1)
    new = batch(last + 10, 10, producer, sequence + 10)
    equal(produce(client, 'topic', batch(last, 10, producer, sequence), partition), (NONE, last), 'where it is already')
    equal(produce(client, 'topic', new, partition), (NONE, end), 'after all that was')


def test_of_a_server_that_was_stopped():
    all_is_there('stopped')


def test_of_a_server_that_was_killed():
    all_is_there('killed')


if __name__ == '__main__':
    if sys.argv[1:2] == ['--make']:
        try:
            make(sys.argv[2])
        finally:
            _clean()
    else:
        main()
