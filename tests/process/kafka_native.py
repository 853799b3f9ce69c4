# SPDX-License-Identifier: Apache-2.0
"""What one kind of client writes the other reads: same offsets, keys, values and times."""
import struct

from kafka_groups import Client
from kafka_wire import BATCH_HEAD, batch_offsets, batches_fetch, In, LIST_OFFSETS, NONE, Out, PRODUCE
from rawbatch import batch_of
from rig import Server, equal, main

BASE_MS = 1_700_000_000_123


class Records(In):
    def varint(self):
        value = shift = 0
        while True:
            byte = self.i('B')
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value >> 1 ^ -(value & 1)

    def taken(self):
        n = self.varint()
        self.at += max(n, 0)
        return None if n < 0 else bytes(self.blob[self.at - n:self.at])


def records_in(batch):
    """[(offset, time, key, value)] of an uncompressed batch."""
    found, base = [], batch_offsets(batch)[0]
    first_ms, count = struct.unpack_from('>q', batch, 27)[0], struct.unpack_from('>i', batch, 57)[0]
    reader = Records(batch[BATCH_HEAD:], False)
    for _ in range(count):
        reader.varint(), reader.i('b')
        time, offset = first_ms + reader.varint(), base + reader.varint()
        found.append((offset, time, reader.taken(), reader.taken()))
        for _ in range(reader.varint()):
            reader.taken(), reader.taken()
    return found


def kafka_read(client, topic, partition):
    batches, high = batches_fetch(client, topic, partition, 0)
    found = [record for batch in batches for record in records_in(batch)]
    equal(len(found), high, 'records up to the high watermark')
    return found


def kafka_write(client, topic, partition, records):
    """The offset of the first."""
    out = Out(False).run(None).i('hi', -1, 30000)
    out.array([0], lambda _: out.run(topic).array([0], lambda _: out.i('i', partition).run(batch_of(records), True)))
    back = client.ask(PRODUCE, 3, out)
    equal((back.i('i'), back.run(), back.i('i'), back.i('i')), (1, topic.encode(), 1, partition))
    error, first, _ = back.i('hqq')
    equal(error, NONE)
    return first


def native_read(server, stream):
    """{partition: [(offset, time, key, value)]}"""
    found = {}
    said = server.leat('consume', stream, '--until-end', '--from', 'earliest', '--format', r'%p\t%o\t%T\t%k\t%s\n', text=False).stdout
    for line in said.splitlines():
        partition, offset, time, key, value = line.split(b'\t')
        found.setdefault(int(partition), []).append((int(offset), int(time), key, value))
    return found


def test_partitions_named_twice_in_a_list_of_offsets_are_refused():
    """As by Kafka, INVALID_REQUEST: a short request that names one a thousand times costs as much as it likes."""
    invalid_request, latest = 42, -1
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 's', '--streamlets', 3, '--logs', 1)
    for streamlet in range(3):
        server.produce('s', ['a'] * (streamlet + 1), '--streamlet', streamlet)
    client = Client(server)
    asked = [0, 1, 0, 2] + [0] * 100
    out = Out(False).i('i', -1)
    client.send(LIST_OFFSETS, 1, out.array([0], lambda _: out.run('s').array(asked, lambda p: out.i('iq', p, latest))))
    back = client.receive(LIST_OFFSETS, 1)
    equal((back.i('i'), back.run(), back.i('i')), (1, b's', len(asked)))
    answers = [(back.i('i'), back.i('h'), back.i('q'), back.i('q')) for _ in asked]
    equal(answers[:4], [(0, invalid_request, -1, -1), (1, NONE, -1, 2), (0, invalid_request, -1, -1), (2, NONE, -1, 3)])
    equal({a[:2] for a in answers[4:]}, {(0, invalid_request)})


def test_what_one_writes_the_other_reads():
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 's', '--streamlets', 2, '--logs', 2)
    client = Client(server)
    written = {p: [(BASE_MS + 1000 * p + 7 * n, b'key-%d' % n, b'kafka %d.%d' % (p, n)) for n in range(50)] for p in range(4)}
    for partition, records in written.items():
        equal(kafka_write(client, 's', partition, records), 0)
    rows = {p: [(n, *record) for n, record in enumerate(records)] for p, records in written.items()}
    equal(native_read(server, 's'), rows, 'what a native client reads')
    lines = b''.join(b'k%d=native %d\n' % (n % 9, n) for n in range(500))
    server.leat('produce', 's', '--key-separator', '=', input=lines)
    native = native_read(server, 's')
    equal({p: kafka_read(client, 's', p) for p in range(4)}, native, 'what a client of Kafka reads')
    equal(sum(len(rows) for rows in native.values()), 700)
    equal({p: rows[:50] for p, rows in native.items()}, rows)


if __name__ == '__main__':
    main()
