# SPDX-License-Identifier: Apache-2.0
"""Kafka's protocol for tests: fields of requests and answers, a connection, and what more than one test asks over it."""
import os
import re
import socket
import struct

from rig import WAIT_S, check, equal, on_end

PRODUCE, FETCH_RECORDS, LIST_OFFSETS, METADATA, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 2, 3, 19, 20
CREATE_PARTITIONS = 37
NONE, EXISTS, INVALID_PARTITIONS = 0, 36, 37
BATCH_HEAD = 61
CODECS = ('none', 'gzip', 'snappy', 'lz4', 'zstd')


def flexible_from():
    """key -> first version in the newer form, as the server's own table says."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../kafka/codec/apis.def')) as table:
        return {int(key): int(version) for key, version in re.findall(r'^API\(\w+, (\d+), \d+, \d+, (\d+),', table.read(), re.M)}


FLEXIBLE = flexible_from()


def uvarint(n):
    out = b''
    while n >= 0x80:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


class Out:
    """Fields of a request. Strings and arrays have two forms."""

    def __init__(self, flexible):
        self.flexible, self.bytes = flexible, b''

    def i(self, form, *numbers):
        self.bytes += struct.pack('>' + form, *numbers)
        return self

    def run(self, value, long=False):
        blob = value.encode() if isinstance(value, str) else value
        if self.flexible:
            self.bytes += b'\0' if blob is None else uvarint(len(blob) + 1) + blob
        else:
            self.i('i' if long else 'h', -1 if blob is None else len(blob))
            self.bytes += blob or b''
        return self

    def array(self, items, write):
        if self.flexible:
            self.bytes += uvarint(0 if items is None else len(items) + 1)
        else:
            self.i('i', -1 if items is None else len(items))
        for item in items or ():
            write(item)
        return self

    def end(self):
        """Of a struct."""
        self.bytes += b'\0' if self.flexible else b''
        return self


class In:
    def __init__(self, blob, flexible):
        self.blob, self.at, self.flexible = blob, 0, flexible

    def i(self, form):
        values = struct.unpack_from('>' + form, self.blob, self.at)
        self.at += struct.calcsize('>' + form)
        return values[0] if len(values) == 1 else values

    def count(self, form):
        if not self.flexible:
            return self.i(form)
        value = shift = 0
        while True:
            byte = self.blob[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value - 1

    def run(self, long=False):
        n = self.count('i' if long else 'h')
        if n < 0:
            return None
        self.at += n
        return bytes(self.blob[self.at - n:self.at])

    def array(self, read):
        return [read() for _ in range(self.count('i'))]

    def end(self):
        if self.flexible:
            equal(self.blob[self.at], 0, 'tagged fields')
            self.at += 1


class Connection:
    def __init__(self, host, port, source=None):
        self.socket = socket.create_connection((host, int(port)), WAIT_S, source and (source, 0))
        on_end(self.socket.close)
        self.number = 0

    def send(self, key, version, out):
        self.number += 1
        head = struct.pack('>hhih', key, version, self.number, 4) + b'test' + (b'\0' if out.flexible else b'')
        self.socket.sendall(struct.pack('>i', len(head + out.bytes)) + head + out.bytes)
        return self.number

    def receive(self, key, version):
        size = struct.unpack('>i', self.read(4))[0]
        back = In(self.read(size), version >= FLEXIBLE[key])
        equal(back.i('i'), self.number, 'correlation')
        back.end()
        return back

    def read(self, count):
        blob = b''
        while len(blob) < count:
            piece = self.socket.recv(count - len(blob))
            check(piece, 'the connection was closed')
            blob += piece
        return blob

    def ask(self, key, version, out):
        self.send(key, version, out)
        return self.receive(key, version)


# ---- topics ----

def topic_create(conn, topic, partitions):
    """Error."""
    out = Out(False)

    def row(name):
        out.run(name).i('ih', partitions, -1).array([], None).array([], None)

    out.array([topic], row).i('i?', 30000, False)
    back = conn.ask(CREATE_TOPICS, 2, out)
    back.i('i')
    equal((back.i('i'), back.run()), (1, topic.encode()))
    return back.i('h')


def topic_delete(conn, topic):
    """Error; when it is answered the name is free."""
    out = Out(False)
    back = conn.ask(DELETE_TOPICS, 1, out.array([topic], out.run).i('i', 30000))
    back.i('i')
    equal((back.i('i'), back.run()), (1, topic.encode()))
    return back.i('h')


def topic_enlarge(conn, topic, partitions):
    """Error and its sentence."""
    out = Out(False)
    out.array([topic], lambda name: out.run(name).i('i', partitions).array(None, None)).i('i?', 30000, False)
    back = conn.ask(CREATE_PARTITIONS, 0, out)
    back.i('i')
    equal((back.i('i'), back.run()), (1, topic.encode()))
    return back.i('h'), back.run()


# ---- records ----

def batches_fetch(conn, topic, partition, offset):
    """([batch], high watermark): what lies behind an offset, as it is stored; a while passes before that is nothing."""
    out = Out(False).i('iiiib', -1, 100, 1, 1 << 20, 0)
    out.array([0], lambda _: out.run(topic).array([0], lambda _: out.i('iqi', partition, offset, 1 << 20)))
    back = conn.ask(FETCH_RECORDS, 4, out)
    back.i('i')
    equal((back.i('i'), back.run(), back.i('i'), back.i('i')), (1, topic.encode(), 1, partition))
    error, high, _, aborted = back.i('hqqi')
    equal((error, max(aborted, 0)), (NONE, 0), 'fetch')
    blob, batches, at = back.run(True), [], 0
    while at + BATCH_HEAD <= len(blob):
        end = at + 12 + struct.unpack_from('>i', blob, at + 8)[0]
        batches.append(blob[at:end])
        at = end
    return batches, high


def produce_request(topic, blob, partition=0):
    out = Out(False).run(None).i('hi', -1, 30000)
    return out.array([0], lambda _: out.run(topic).array([0], lambda _: out.i('i', partition).run(blob, True)))


def produce_answer(conn, topic, partition=0):
    """(error, first offset) of one batch."""
    back = conn.receive(PRODUCE, 3)
    equal((back.i('i'), back.run(), back.i('i'), back.i('i')), (1, topic.encode(), 1, partition))
    return back.i('h'), back.i('q')


def produce(conn, topic, blob, partition=0):
    conn.send(PRODUCE, 3, produce_request(topic, blob, partition))
    return produce_answer(conn, topic, partition)


def batch_offsets(batch):
    """(first, the next one behind it)"""
    first, last = struct.unpack_from('>q', batch)[0], struct.unpack_from('>i', batch, 23)[0]
    return first, first + last + 1


def batch_codec(batch):
    return CODECS[struct.unpack_from('>h', batch, 21)[0] & 7]
