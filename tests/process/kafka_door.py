# SPDX-License-Identifier: Apache-2.0
"""Kafka's listener: its flags, topics made by asking for them or not, and a reader that reads nothing."""
import gzip
import os
import select
import socket
import struct
import time

from kafka_groups import Client, FIND
from kafka_wire import FETCH_RECORDS as FETCH, METADATA, NONE, Out, PRODUCE, batches_fetch, produce, produce_answer, produce_request
from rawbatch import batch_of, compressed, varint
from rig import Server, check, check_in, equal, main, on_end, reader_that_takes_nothing, until

UNKNOWN_TOPIC, MESSAGE_TOO_LARGE, INVALID_RECORD = 3, 10, 87
INIT_PRODUCER_ID = 22
MIB, USUAL_PORT = 1 << 20, 9092


def brokers_told(client):
    """[(host, port)], by Metadata of no topic."""
    client.send(METADATA, 1, Out(False).i('i', 0))
    back = client.receive(METADATA, 1)
    return [row[1:3] for row in back.array(lambda: (back.i('i'), back.run(), back.i('i'), back.run()))]


def asked_for(client, topic, version):
    """Error of one topic that is asked for, and may be made by that."""
    out = Out(False)
    out.array([topic], out.run)
    if version >= 4:
        out.i('?', True)
    client.send(METADATA, version, out)
    back = client.receive(METADATA, version)
    if version >= 3:
        back.i('i')
    back.array(lambda: (back.i('i'), back.run(), back.i('i'), back.run()))
    if version >= 2:
        back.run()
    back.i('i')
    equal(back.i('i'), 1)
    return back.i('h')


def produced(client, topic, version=3):
    out = Out(False).run(None).i('hi', -1, 30000)
    blob = batch_of([(0, None, b'x')])
    client.send(PRODUCE, version, out.array([0], lambda _: out.run(topic).array([0], lambda _: out.i('i', 0).run(blob, True))))
    back = client.receive(PRODUCE, version)
    equal((back.i('i'), back.run(), back.i('i'), back.i('i')), (1, topic.encode(), 1, 0))
    return back.i('h')


def producer_id(client):
    """A new one, by InitProducerId."""
    client.send(INIT_PRODUCER_ID, 0, Out(False).run(None).i('i', 1000))
    back = client.receive(INIT_PRODUCER_ID, 0)
    equal(back.i('ih'), (0, NONE))
    return back.i('q')


def held(port):
    """A listener of somebody else's on that port; None: it has one already."""
    try:
        listener = socket.create_server(('127.0.0.1', port))
    except OSError:
        return None
    on_end(listener.close)
    return listener


def test_usual_address_is_no_must_and_one_that_was_named_is():
    """127.0.0.1:9092 where nothing is said: where that is somebody else's, only native clients are served."""
    usual, named = held(USUAL_PORT), held(0)
    server = Server().start()
    said = server.node_log_wait(r"clients of Kafka(: listening on| are not served: can't listen on) 127\.0\.0\.1:9092")
    check(not usual or 'not served' in said.group(1), said.group(0))
    server.produce('s', ['native clients are served'])
    server.stop()
    address = '127.0.0.1:%d' % named.getsockname()[1]
    _, text = server.start_refused('--kafka', address)
    check_in(address, text)
    server.start('--kafka', 'off')
    equal(server.values('s'), ['native clients are served'])
    check('clients of Kafka' not in server.node_log(), server.node_log())
    server.stop()
    if usual:
        usual.close()
        server.start()
        server.node_log_wait(r'clients of Kafka.* 127\.0\.0\.1:9092')
        server.stop()


def test_clients_are_told_the_address_that_is_advertised():
    server = Server('--kafka', '127.0.0.1:0', '--kafka-advertise', 'broker.example:19092').start()
    client = Client(server)
    equal(brokers_told(client), [(b'broker.example', 19092)])
    client.send(FIND, 0, Out(False).run('group'))
    back = client.receive(FIND, 0)
    equal((back.i('h'), back.i('i'), back.run(), back.i('i')), (NONE, 1, b'broker.example', 19092))


def test_topics_are_made_by_asking_only_where_that_is_on():
    server = Server('--kafka', '127.0.0.1:0', '--auto-create', 'no').start()
    client = Client(server)
    for version in (1, 3, 4, 5):
        equal(asked_for(client, 'wanted', version), UNKNOWN_TOPIC, f'version {version}')
    equal(produced(client, 'wanted'), UNKNOWN_TOPIC)
    equal(server.leat('stream', 'list').stdout.count('wanted'), 0)
    server.leat('stream', 'create', 'wanted', '--logs', 1)
    equal(produced(client, 'wanted'), NONE)
    server.stop()
    server.start()
    client = Client(server)
    equal(asked_for(client, 'also', 4), UNKNOWN_TOPIC, 'still off')
    server.stop()
    server.flags[-1] = 'yes'
    server.start()
    client = Client(server)
    equal(asked_for(client, 'also', 4), NONE)
    equal(produced(client, 'also'), NONE)


def test_topics_made_without_saying_how_large_are_as_the_server_says():
    server = Server('--kafka', '127.0.0.1:0', '--num-partitions', '3').start()
    client = Client(server)
    equal(asked_for(client, 'asked', 4), NONE)
    equal(len(server.logs('asked')), 3)
    server.stop()
    code, said = server.start_refused('--num-partitions', '0')
    equal(code, 2)
    check_in('num-partitions has to lie in 1 to', said)
    # More copies than nodes: refused by name, as Kafka does, and not made with fewer.
    server.flags += ['--default-replication-factor', '2']
    server.start()
    client = Client(server)
    equal(asked_for(client, 'copied', 4), 38)
    check('copied' not in server.leat('stream', 'list').stdout)


def test_reader_that_reads_nothing_is_bounded_and_alone():
    """It asks for everything again and again, and takes none of it."""
    server = Server('--kafka', '127.0.0.1:0').start()
    server.leat('stream', 'create', 's', '--logs', 1)
    server.leat('bench', 'append', '--stream', 's', '--producers', 1, '--records', 300000, '--logs', 1)
    slow, other = Client(server), Client(server)
    out = Out(False).i('iiiibii', -1, 100, 1, 4 * MIB, 0, 0, -1)
    out.array([0], lambda _: out.run('s').array([0], lambda _: out.i('iiqqi', 0, -1, 0, -1, 4 * MIB))).i('i', 0).run('')
    head = struct.pack('>hhih', FETCH, 11, 1, 4) + b'test'
    frame = struct.pack('>i', len(head + out.bytes)) + head + out.bytes

    def others_are_served():
        equal(asked_for(other, 'made-meanwhile', 4), NONE)
        equal(produced(other, 'made-meanwhile'), NONE, 'others are served')

    reader_that_takes_nothing(server, slow.socket, frame, others_are_served)
    equal(produced(other, 'made-meanwhile'), NONE)


def test_batches_that_nobody_could_read_are_refused():
    """Compressed ones, too, whatever their checksum says: one of them would stop all consumers of its partition for good."""
    server = Server('--kafka', '127.0.0.1:0').start()
    client = Client(server)
    server.leat('stream', 'create', 't', '--logs', 1)
    now = 1700000000000
    good = batch_of([(now + n, None, b'%d' % n) for n in range(100)], highest=-1)
    equal(produce(client, 't', compressed(good, 1, gzip.compress(good[61:]))), (NONE, 0))
    swapped = good[:61] + good[61:][::-1]
    short = compressed(good, 1, gzip.compress(good[61:-9]))
    for codec in range(1, 5):
        equal(produce(client, 't', compressed(good, codec, b'\xff' * 20))[0], INVALID_RECORD, codec)
    for blob in (compressed(good, 1, gzip.compress(swapped[61:])), short, compressed(good, 1, gzip.compress(good[61:] + b'\0'))):
        equal(produce(client, 't', blob)[0], INVALID_RECORD)
    # One record that goes on for 20 MiB, in 20 KB.
    start = varint(20 * MIB) + b'\0\0\0\1' + varint(20 * MIB - 9)
    bomb = compressed(batch_of([(now, None, b'')]), 1, gzip.compress(start + bytes(20 * MIB)))
    for _ in range(20):
        client.send(PRODUCE, 3, produce_request('t', bomb))
    other = Client(server)
    began = time.monotonic()
    equal(produce(other, 't', compressed(good, 1, gzip.compress(good[61:]))), (NONE, 100))
    print(f'  beside 20 bombs: {time.monotonic() - began:.2f} s')
    for number in range(20):
        client.number = client.number - 19 if number == 0 else client.number + 1
        equal(produce_answer(client, 't')[0], MESSAGE_TOO_LARGE)
    equal(server.values('t'), [str(n) for n in range(100)] * 2)
    batches, _ = batches_fetch(client, 't', 0, 0)
    equal([struct.unpack_from('>q', batch, 35)[0] for batch in batches], [now + 99] * 2, 'the greatest time')


def test_many_who_send_bombs_keep_nobody_waiting():
    """64 connections send batches of 15 KB that uncompress to 15 MiB, each to a log of its own, as fast as they are taken. How long
    somebody else waits is counted in what the server does meanwhile, as the machine may have more to do."""
    server = Server('--kafka', '127.0.0.1:0', '--cores', '1').start()
    client = Client(server)
    server.leat('stream', 'create', 'many', '--logs', 64)
    server.leat('stream', 'create', 't', '--logs', 1)
    good = batch_of([(1700000000000, None, b'%d' % n) for n in range(10)])
    packed = compressed(good, 1, gzip.compress(good[61:]))
    start = varint(15 * MIB) + b'\0\0\0\1' + varint(15 * MIB - 9)
    bomb = compressed(batch_of([(1700000000000, None, b'')]), 1, gzip.compress(start + bytes(15 * MIB - 8)))
    equal(produce(client, 'many', bomb)[0], NONE, 'it is right, and large')
    attackers = [Client(server) for _ in range(64)]
    for partition, attacker in enumerate(attackers):
        for _ in range(8):
            attacker.send(PRODUCE, 3, produce_request('many', bomb, partition))
    worst = {}
    for number in range(20):
        honest = Client(server) if number % 4 == 0 else honest
        for what, blob in ('compressed', packed), ('plain', good):
            began = server.cpu_ticks()
            equal(produce(honest, 't', blob), (NONE, 20 * number + (10 if what == 'plain' else 0)))
            worst[what] = max(worst.get(what, 0), (server.cpu_ticks() - began) / os.sysconf('SC_CLK_TCK'))
    print('  beside 64 connections: ' + ', '.join(f'{what} {s:.2f} s' for what, s in worst.items()))
    check(max(worst.values()) < 1.5, 'of the server\'s time went by before an answer:', worst)
    check(len(server.values('t')) == 400)
    answered = sum(bool(select.select([a.socket], [], [], 0)[0]) for a in attackers)
    print(f'  {answered} of them had an answer by then')


def test_compressed_batches_for_logs_of_all_cores_are_checked():
    """One request for eight partitions: those that are not on the connection's core are checked before they are sent there."""
    server = Server('--kafka', '127.0.0.1:0', '--cores', '2').start()
    client = Client(server)
    server.leat('stream', 'create', 's', '--logs', 8)
    now = 1700000000000
    good = batch_of([(now + n, None, b'%d' % n) for n in range(100)], highest=-1)
    right = compressed(good, 1, gzip.compress(good[61:]))
    wrong = compressed(good, 1, gzip.compress(good[61:-9]))
    for bad in range(8):
        out = Out(False).run(None).i('hi', -1, 30000)
        out.array([0], lambda _: out.run('s').array(range(8), lambda p: out.i('i', p).run(wrong if p == bad else right, True)))
        client.send(PRODUCE, 3, out)
        back = client.receive(PRODUCE, 3)
        equal((back.i('i'), back.run()), (1, b's'))
        rows = sorted(back.array(lambda: (back.i('i'), back.i('h'), back.i('q'), back.i('q'))))
        equal([row[:2] for row in rows], [(p, INVALID_RECORD if p == bad else NONE) for p in range(8)])
    for partition in range(8):
        batches, _ = batches_fetch(client, 's', partition, 0)
        equal([struct.unpack_from('>q', batch, 35)[0] for batch in batches], [now + 99] * 7, 'the greatest time')


def test_stream_whose_compressed_batches_are_not_read_takes_what_it_gets():
    """leat.validate=crc. Whoever reads it is told where the batch is, and how to get past it."""
    server = Server('--kafka', '127.0.0.1:0').start()
    client = Client(server)
    server.leat('stream', 'create', 't', '--logs', 1, '--validate', 'crc')
    check_in('"validate":"crc"', server.leat('stream', 'describe', 't', '--json').stdout)
    good = batch_of([(1700000000000 + n, None, b'%d' % n) for n in range(10)])
    for blob in good, compressed(good, 1, b'\xff' * 20), good:
        equal(produce(client, 't', blob)[0], NONE)
    done = server.leat('consume', 't', '--until-end', code=1)
    equal(done.stdout.split(), [str(n) for n in range(10)])
    check_in('offset 10: ', done.stderr)
    check_in('begin behind it (offset 20)', done.stderr)
    equal(server.values('t', '--from', 20), [str(n) for n in range(10)])


def test_producer_ids_are_not_guessed_from_each_other():
    server = Server('--kafka', '127.0.0.1:0').start()
    client = Client(server)
    ids = [producer_id(client) for _ in range(20)]
    equal(len(set(ids)), 20)
    check(len({n >> 32 for n in ids}) > 15 and min(ids) >= 0, ids)


def test_client_that_vanishes_in_the_middle_takes_its_requests_along():
    """Of fetches that wait, a produce half sent, answers not taken: nothing stays, and others go on."""
    server = Server('--kafka', '127.0.0.1:0').start()
    other = Client(server)
    equal(asked_for(other, 's', 4), NONE)
    equal(produced(other, 's'), NONE)
    out = Out(False).i('iiiibii', -1, 60000, 1, MIB, 0, 0, -1)
    out.array([0], lambda _: out.run('s').array([0], lambda _: out.i('iiqqi', 0, -1, 1, -1, MIB))).i('i', 0).run('')
    half = struct.pack('>ihhih', 100000, PRODUCE, 3, 7, 4) + b'test' + bytes(5000)
    for _ in range(20):
        client = Client(server)
        for _ in range(30):
            client.send(FETCH, 11, out)  # waits for a minute
        client.socket.sendall(half)
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        client.socket.close()
        equal(produced(other, 's'), NONE)
    until(lambda: server.status()['connections'] <= 3, 'connections are given back')
    equal(len(server.values('s')), 21)


if __name__ == '__main__':
    main()
