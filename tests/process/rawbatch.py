"""Record batches made by hand, one record each, cheaply: batches of a maker differ in their last bytes only."""
import struct

from rig import _TABLE


def _varint(value):
    value = value << 1 ^ (value >> 63 if value < 0 else 0)
    out = b''
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _crc_on(crc, blob):
    for byte in blob:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    return crc


class BatchMaker:
    """Values are `filler` bytes and then the text given, always as long. No producer id: nothing is sent twice by itself."""

    def __init__(self, filler, text_bytes):
        value_bytes = filler + text_bytes
        body = b'\0' + _varint(0) + _varint(0) + b'\1' + _varint(value_bytes) + b'z' * filler
        record = _varint(len(body) + text_bytes + 1) + body
        covered = struct.pack('>HiqqqhiI', 0, 0, 1, 1, -1, -1, -1, 1) + record
        self.text_bytes = text_bytes
        self.after_length = 4 + 1 + 4 + len(covered) + text_bytes + 1
        self.covered = covered
        self.crc = _crc_on(0xffffffff, covered)

    def batch(self, text):
        assert len(text) == self.text_bytes
        tail = text.encode() + b'\0'
        crc = _crc_on(self.crc, tail) ^ 0xffffffff
        return struct.pack('>QiIBI', 0, self.after_length, 0, 2, crc) + self.covered + tail
