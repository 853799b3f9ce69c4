"""Record what clients of Kafka send, as seeds of tests/fuzz/corpus/kafka: one file for each API and version that is new.

    tests/clients/record.py LISTEN-PORT SERVER-PORT DIR

It stands between clients and a leatd that advertises it, for example below tests/clients/run:
    --flag --kafka --flag 127.0.0.1:19092 --flag --kafka-advertise --flag 127.0.0.1:19093
A seed is [key, version, body]: the header is stepped over. Ends by Ctrl-C."""
import os
import re
import socket
import struct
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = 4000  # of a seed: larger ones teach a fuzzer nothing more


def flexible_from():
    rows = re.findall(r'^API\(\w+, (\d+), \d+, \d+, (\d+),', open(f'{HERE}/../../kafka/apis.def').read(), re.M)
    return {int(key): int(version) for key, version in rows}


def seed(frame, flexible):
    key, version = struct.unpack_from('>hh', frame)
    at = 8
    name = struct.unpack_from('>h', frame, at)[0]
    at += 2 + max(0, name)
    if key in flexible and version >= flexible[key]:
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


def requests(client, server, directory, flexible):
    while True:
        head = exactly(client, 4)
        frame = exactly(client, struct.unpack('>i', head)[0])
        key, version, blob = seed(frame, flexible)
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
    flexible = flexible_from()
    os.makedirs(directory, exist_ok=True)
    with socket.create_server(('127.0.0.1', listen)) as server:
        while True:
            client, _ = server.accept()
            try:
                back = socket.create_connection(('127.0.0.1', to))
            except OSError:
                client.close()
                continue
            run(requests, client, back, directory, flexible)
            run(answers, client, back)


main()
