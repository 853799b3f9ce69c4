# SPDX-License-Identifier: Apache-2.0
"""Record what clients of Kafka send, as seeds of tests/fuzz/corpus/kafka: one file for each API and version that is new.

    tests/clients/record.py LISTEN-PORT SERVER-PORT DIR

It stands between clients and a leatd that advertises it, for example below tests/clients/run:
    --flag --kafka --flag 127.0.0.1:19092 --flag --kafka-advertise --flag 127.0.0.1:19093
A seed is [key, version, body]: the header is stepped over. Ends by Ctrl-C."""
import os
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'process'))
from kafka_wire import FLEXIBLE  # noqa: E402

BYTES_MAX = 4000  # of a seed: larger ones teach a fuzzer nothing more


def seed(frame):
    key, version = struct.unpack_from('>hh', frame)
    at = 8
    name = struct.unpack_from('>h', frame, at)[0]
    at += 2 + max(0, name)
    if key in FLEXIBLE and version >= FLEXIBLE[key]:
        at += 1  # no tags in headers so far
    return key, version, bytes([key, version]) + frame[at:]


def exactly(conn, count):
    blob = b''
    while len(blob) < count:
        piece = conn.recv(count - len(blob))
        if not piece:
            raise OSError('closed')
        blob += piece
    return blob


def requests(client, server, directory):
    while True:
        head = exactly(client, 4)
        frame = exactly(client, struct.unpack('>i', head)[0])
        key, version, blob = seed(frame)
        path = os.path.join(directory, f'{key}-{version}')
        if len(blob) <= BYTES_MAX and not os.path.exists(path):
            with open(path, 'wb') as file:
                file.write(blob)
        server.sendall(head + frame)


def answers(client, server):
    while piece := server.recv(1 << 16):
        client.sendall(piece)


def run(function, *arguments):
    def body():
        try:
            function(*arguments)
        except OSError:
            pass
        for conn in arguments[:2]:
            try:
                conn.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    threading.Thread(target=body, daemon=True).start()


def main():
    listen, to, directory = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    os.makedirs(directory, exist_ok=True)
    with socket.create_server(('127.0.0.1', listen)) as server:
        while True:
            client, _ = server.accept()
            try:
                back = socket.create_connection(('127.0.0.1', to))
            except OSError:
                client.close()
                continue
            run(requests, client, back, directory)
            run(answers, client, back)


main()
