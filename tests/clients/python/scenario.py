# SPDX-License-Identifier: Apache-2.0
"""The scenario that every client goes through, and what it must find. Told by lines on standard output:
"ok FEATURE", "none FEATURE why" (the client does not have it) or "fail FEATURE why".

A client is a class with the functions that scenario() calls; see the programs beside this one.
"""

import collections
import sys
import threading
import time
import traceback

RECORDS = 10000
PARTITIONS = 6
BEGIN_S = 2  # that a member waits, for each piece that it reads, for the others to read something too
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

Record = collections.namedtuple("Record", "partition offset key value headers timestamp")


def key_of(i):
    return b"key-%d" % (i % 101)


def value_of(i):
    return b"value-%d-" % i + b"x" * (i % 200)


def headers_of(i):
    return [("number", b"%d" % i), ("empty", b"")]


def expected(i, base_ms, headers=True):
    return Record(i % PARTITIONS, i // PARTITIONS, key_of(i), value_of(i), headers_of(i) if headers else [], base_ms + i)


def number_of(record):
    return record.offset * PARTITIONS + record.partition


def tell(result, feature, why=""):
    print(f"{result} {feature} {str(why).strip().splitlines()[0] if str(why).strip() else ''}".strip(), flush=True)


class Step:
    """A feature: told ok, or fail with the reason; the scenario goes on."""

    def __init__(self, feature):
        self.feature = feature

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            tell("ok", self.feature)
            return False
        if not issubclass(kind, Exception):
            return False
        tell("fail", self.feature, f"{kind.__name__}: {error}")
        traceback.print_exception(kind, error, trace, file=sys.stderr)
        return True


def differing(records, base_ms, headers):
    """The first difference between what was read and what was produced, or None. Records: sorted."""
    for i, record in enumerate(sorted(records, key=number_of)):
        if i != number_of(record):
            return f"record {i} is missing or twice: found {number_of(record)}"
        if record != expected(i, base_ms, headers):
            return f"record {i} is {record}, not {expected(i, base_ms, headers)}"
    return None


def group_consume(client, topic, group):
    """Three members; one leaves in the middle; all is read at least once and committed to the end. Nobody hurries before all have
    begun: on a busy machine one starts seconds after the others."""
    seen, lock, members = set(), threading.Condition(), [0, 0, 0]
    failures = []

    def member(n):
        try:
            consumer = client.group_consumer(topic, group)
            until = time.monotonic() + 90
            while time.monotonic() < until:
                records = client.poll(consumer)
                with lock:
                    seen.update(number_of(r) for r in records)
                    members[n] += len(records)
                    lock.notify_all()
                    begun = not records or lock.wait_for(lambda: min(members) > 0, BEGIN_S)
                    done = len(seen) == RECORDS
                    leaves = n == 0 and begun and len(seen) > RECORDS // 4
                if records:
                    client.commit(consumer)
                    time.sleep(0.02)
                if done or leaves:
                    break
            client.close(consumer)
        except Exception as error:  # told by the thread that waits
            traceback.print_exc()
            failures.append(error)

    threads = [threading.Thread(target=member, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert len(seen) == RECORDS, f"only {len(seen)} of {RECORDS} records were read"
    assert min(members[1:]) > 0, f"a member read nothing: {members}"


def trim(client, topic):
    """Records are deleted up to an offset, inside a batch too: what is behind it is there, and nothing else."""
    ends = [len(range(p, RECORDS, PARTITIONS)) for p in range(PARTITIONS)]
    before = [100 + 7 * p for p in range(PARTITIONS - 1)] + [ends[-1]]
    client.trim(topic, before)
    assert client.beginnings(topic, PARTITIONS) == before, f"begins at {client.beginnings(topic, PARTITIONS)}, not at {before}"
    found = sorted((r.partition, r.offset) for r in client.read_all(topic, PARTITIONS))
    assert found == [(p, o) for p in range(PARTITIONS) for o in range(before[p], ends[p])], f"{len(found)} records are left"


def recreate(client, topic):
    """A topic is deleted and made again under a running idempotent producer, which then goes on."""
    client.create(topic, 1)
    producer = client.idempotent_producer()
    for i in range(50):
        client.send_one(producer, topic, b"before-%d" % i)
    client.delete(topic)  # its answer is the event: the name is free
    try:
        client.create(topic, 1)
    except Exception as error:  # by the producer itself, when it asked for the topic's partitions
        if "exists" not in str(error).lower():
            raise
    acked, in_a_row, number = [], 0, 0
    until = time.monotonic() + 60
    while in_a_row < 20:
        assert time.monotonic() < until, f"the producer does not go on: {acked[-3:]}"
        value = b"after-%d" % number
        number += 1
        try:
            client.send_one(producer, topic, value)
            acked.append(value)
            in_a_row += 1
        except Exception as error:
            print(f"{topic}: {value}: {error}", file=sys.stderr)
            in_a_row = 0
            time.sleep(0.2)
    found = [r.value for r in client.read_all(topic, 1)]
    assert [v for v in found if v in set(acked)] == acked, "acknowledged records are missing, twice or out of order"
    assert not [v for v in found if v.startswith(b"before")], "records of the deleted topic came back"


def scenario(client, topic):
    base_ms = int(time.time() * 1000) - RECORDS - 1000
    codecs = [c for c in CODECS if c in client.codecs]
    for codec in CODECS:
        if codec not in client.codecs:
            tell("none", codec, "not in this client")
    with Step("create"):
        client.create(topic, PARTITIONS)
    for n, codec in enumerate(codecs):
        with Step(codec):
            first, end = RECORDS * n // len(codecs), RECORDS * (n + 1) // len(codecs)
            client.produce(topic, codec, [expected(i, base_ms) for i in range(first, end)])
    with Step("bytes"):
        records = client.read_all(topic, PARTITIONS)
        assert len(records) == RECORDS, f"{len(records)} of {RECORDS} records were read"
        assert differing(records, base_ms, True) is None, differing(records, base_ms, True)
    with Step("group"):
        group_consume(client, topic, topic + "-group")
    with Step("commit"):
        committed = client.committed(topic, topic + "-group", PARTITIONS)
        ends = [len(range(p, RECORDS, PARTITIONS)) for p in range(PARTITIONS)]
        assert committed == ends, f"committed {committed}, not {ends}"
    with Step("time"):
        # One in each codec's part: in the middle of a compressed batch as a rule.
        for at in (1000, 3000, 5000, 7000, 9000):
            found = client.offsets_for_time(topic, PARTITIONS, base_ms + at)
            want = [next(o for o in range(RECORDS) if o * PARTITIONS + p >= at) for p in range(PARTITIONS)]
            assert found == want, f"found {found}, not {want}"
    if hasattr(client, "trim"):
        with Step("trim"):
            trim(client, topic)
    else:
        tell("none", "trim", "not in this client")
    if hasattr(client, "limits"):
        with Step("limits"):
            client.limits(topic + "-limits")
    if hasattr(client, "statics"):
        with Step("statics"):
            client.statics(topic + "-statics", topic + "-static-group")
    with Step("recreate"):
        recreate(client, topic + "-again")
    client.delete(topic)


def main(client_class):
    broker, topic = sys.argv[1], sys.argv[2]
    scenario(client_class(broker), topic)
