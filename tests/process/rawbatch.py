# SPDX-License-Identifier: Apache-2.0
"""Record batches made by hand: any records, or one each, cheaply."""
import struct

from rig import _TABLE, crc32c


def varint(number):
    zigzag = number << 1 ^ (number >> 63 if number < 0 else 0)
    out = b''
    while zigzag > 127:
        out += bytes([zigzag & 127 | 128])
        zigzag >>= 7
    return out + bytes([zigzag])


def _head(count, first_ms, last_ms):
    """Of what the checksum covers, up to the records. No producer id."""
    return struct.pack('>HiqqqhiI', 0, count - 1, first_ms, last_ms, -1, -1, -1, count)


def _framed(covered_bytes, crc):
    return struct.pack('>QiIBI', 0, covered_bytes + 9, 0, 2, crc)


def compressed(batch, codec, body):
    """The same header around other bytes, called compressed by that codec (1 gzip, 2 snappy, 3 lz4, 4 zstd)."""
    covered = struct.pack('>H', codec) + batch[23:61] + body
    return _framed(len(covered), crc32c(covered)) + covered


def batch_of(records, highest=None):
    """records: [(time, key or None, value)]. highest: what the header says of their times; None: what is so."""
    first, blob = records[0][0], b''
    for n, (time, key, value) in enumerate(records):
        body = b'\0' + varint(time - first) + varint(n) + (varint(-1) if key is None else varint(len(key)) + key)
        body += varint(len(value)) + value + varint(0)
        blob += varint(len(body)) + body
    covered = _head(len(records), first, max(r[0] for r in records) if highest is None else highest) + blob
    return _framed(len(covered), crc32c(covered)) + covered


def _crc_on(crc, blob):
    for byte in blob:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc


class BatchMaker:
    """Of one record each, that differ in their last bytes only: values are `filler` bytes and then the text given, always as long.
    Nothing is sent twice by itself."""

    def __init__(self, filler, text_bytes):
        body = b'\0' + varint(0) + varint(0) + b'\1' + varint(filler + text_bytes) + b'z' * filler
        self.text_bytes = text_bytes
        self.covered = _head(1, 1, 1) + varint(len(body) + text_bytes + 1) + body
        self.crc = _crc_on(0xffffffff, self.covered)

    def batch(self, text):
        assert len(text) == self.text_bytes
        tail = text.encode() + b'\0'
        return _framed(len(self.covered) + len(tail), _crc_on(self.crc, tail) ^ 0xffffffff) + self.covered + tail
