# SPDX-License-Identifier: Apache-2.0
"""kcat: the scenario through its command line. It produces no headers per record and no timestamps of its own
choice, so those are compared in a small run of their own. What it can't ask for (topics that are deleted) is asked for beside it."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE + "/python", HERE + "/../process"]
import tied  # noqa: E402
from kafka_wire import Connection, EXISTS, NONE, topic_create, topic_delete  # noqa: E402
from scenario import CODECS, PARTITIONS, RECORDS, Step, key_of, tell, value_of  # noqa: E402

BROKER, TOPIC = sys.argv[1], sys.argv[2]
LEAVER_RECORDS = RECORDS // 4  # less than its share when all are there
PIECE_LINES, PIECE_S, DELIVERED = 512, 0.04, 2000  # fed at a time (64 KiB), how often, and how many make sure that it works


def kcat(*arguments, input=None, timeout=60):
    done = tied.run(["kcat", "-b", BROKER, "-m", "20", *arguments], input=input, capture_output=True, timeout=timeout)
    assert done.returncode == 0, f"kcat {' '.join(arguments)}: {done.stderr.decode(errors='replace')[-300:]}"
    return done.stdout


def produce(codec, first, end):
    for p in range(PARTITIONS):
        mine = [i for i in range(first, end) if i % PARTITIONS == p]
        lines = b"".join(key_of(i) + b"=" + value_of(i) + b"\n" for i in mine)
        kcat("-P", "-t", TOPIC, "-p", str(p), "-z", codec, "-K=", "-H", "origin=kcat", "-X", "enable.idempotence=true", input=lines)


def compare():
    lines = kcat("-C", "-t", TOPIC, "-o", "beginning", "-e", "-q", "-f", "%p %o %k %h %s\\n").splitlines()
    assert len(lines) == RECORDS, f"{len(lines)} of {RECORDS} records were read"
    for line in lines:
        partition, offset, key, headers, value = line.split(b" ")
        i = int(offset) * PARTITIONS + int(partition)
        assert (key, headers, value) == (key_of(i), b"origin=kcat", value_of(i)), f"record {i} is {line}"


class Member:
    """One of the group, read by a thread of its own: whose pipe is full does not take part. Lines are taken slowly until all
    members have begun, so that nobody has read everything before the last has started."""

    begun = threading.Condition()
    waited_for = 0

    def __init__(self, *more):
        with Member.begun:
            Member.waited_for += 1
        self.lines = []
        self.process = tied.start(
            ["kcat", "-b", BROKER, "-G", TOPIC + "-group", "-q", "-u", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000",
             "-X", "heartbeat.interval.ms=500", "-f", "%p %o %s\\n", *more, TOPIC], stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        began = False
        for line in self.process.stdout:
            self.lines.append(line)
            with Member.begun:
                Member.waited_for -= not began
                Member.begun.notify_all()
                began = True
                Member.begun.wait_for(lambda: Member.waited_for == 0, 0.01)
        with Member.begun:
            Member.waited_for -= not began
            Member.begun.notify_all()

    def end(self):
        try:
            self.process.wait(90)
        finally:
            self.process.kill()
            self.thread.join()
        return [tuple(map(int, line.split()[:2])) for line in self.lines]


def group():
    """Three; the one that was there first leaves in the middle, when it has shown so many (one that is sent a signal has now and then
    committed a record that it does not show any more). Each commits as it goes."""
    members = [Member("-c", str(LEAVER_RECORDS))]
    try:
        with Member.begun:
            assert Member.begun.wait_for(lambda: Member.waited_for == 0, 60), "the first member was given nothing"
        members += [Member("-e"), Member("-e")]
        with Member.begun:
            assert Member.begun.wait_for(lambda: Member.waited_for == 0, 60), "three members were not given parts"
        parts = sum((one.end() for one in members), [])
        members.append(Member("-e"))  # what the others left when they had reached the end of their own
        parts += members[-1].end()
    finally:
        for one in members:
            one.process.kill()
    assert len(members[0].lines) == LEAVER_RECORDS, f"the one that leaves has read {len(members[0].lines)}"
    seen = set(parts)
    assert len(seen) == RECORDS, f"only {len(seen)} of {RECORDS} records were read"


def offsets_for_time():
    small = TOPIC + "-small"
    kcat("-P", "-t", small, "-p", "0", input=b"one\n")
    stamp = int(kcat("-C", "-t", small, "-o", "beginning", "-e", "-q", "-f", "%T\\n"))
    time.sleep(0.01)
    kcat("-P", "-t", small, "-p", "0", input=b"two\n")
    assert f"{small} [0] offset 1" in kcat("-Q", "-t", f"{small}:0:{stamp + 1}").decode(), "not the second record"


def create():
    """A topic is made by asking for it; and one of several partitions, made before, is told as it is."""
    asked = TOPIC + "-asked"
    assert asked not in kcat("-L").decode()
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"one\ntwo\nthree\n")
        file.flush()
        kcat("-P", "-t", asked, "-l", file.name)
    assert kcat("-C", "-t", asked, "-o", "beginning", "-e", "-q") == b"one\ntwo\nthree\n"
    assert f'topic "{asked}" with 1 partitions' in kcat("-L").decode()
    listing = kcat("-L", "-t", TOPIC).decode()
    assert f'topic "{TOPIC}" with {PARTITIONS} partitions' in listing, listing


def commit():
    """A group that comes back is given what came since, and nothing else."""
    late = {(p, -(-(RECORDS - p) // PARTITIONS)) for p in range(PARTITIONS)}  # offsets behind what it has read
    assert not Member("-e").end(), "what was committed is read again"
    for p in range(PARTITIONS):
        kcat("-P", "-t", TOPIC, "-p", str(p), input=b"late\n")
    parts = Member("-e").end()
    assert sorted(parts) == sorted(late), f"{parts} was read, not {sorted(late)}"


class Fed:
    """A kcat that produces what it is fed, a piece every moment, as from a pipe. It reports as long as pieces come."""

    def __init__(self, topic):
        self.lines, self.reports, self.said, self.over = [], [], [], threading.Event()
        self.process = tied.start(
            ["kcat", "-b", BROKER, "-P", "-t", topic, "-p", "0", "-vv", "-X", "enable.idempotence=true", "-X", "linger.ms=1",
             "-X", "batch.num.messages=100"],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        self.threads = [threading.Thread(target=self.feed), threading.Thread(target=self.listen)]
        for thread in self.threads:
            thread.start()

    def feed(self):
        try:
            while not self.over.is_set():
                # Lines are as long as kcat reads at a time: of shorter ones it holds back more and more.
                piece = [b"%08d-" % (len(self.lines) + n) + b"x" * 118 for n in range(PIECE_LINES)]
                self.lines += piece
                self.process.stdin.write(b"".join(line + b"\n" for line in piece))
                self.process.stdin.flush()
                self.over.wait(PIECE_S)
            self.process.stdin.close()
        except OSError as error:  # it has ended
            self.said.append(str(error))

    def listen(self):
        for line in self.process.stderr:
            delivered = re.search(rb"Message delivered to partition 0 \(offset (-?\d+)\)", line)
            if delivered:
                self.reports.append(int(delivered.group(1)))
            else:
                self.said.append(line.decode(errors="replace").strip())

    def delivered(self, count):
        """Wait until more than that are."""
        until = time.monotonic() + 60
        while len(self.reports) <= count:
            assert time.monotonic() < until and self.process.poll() is None, f"the producer does not go on: {self.said[-5:]}"
            time.sleep(0.01)

    def end(self):
        """Exit code."""
        self.over.set()
        try:
            return self.process.wait(60)
        finally:
            self.process.kill()
            for thread in self.threads:
                thread.join()


def recreate():
    """The topic of a running idempotent producer, several batches under way, is deleted and made again. Each line is delivered once:
    those that were delivered before lay in the topic that is gone, all others are in the new one, in order, where they are told to be."""
    topic, conn = TOPIC + "-again", Connection(*BROKER.rsplit(":", 1))
    assert topic_create(conn, topic, 1) == NONE
    producer = Fed(topic)
    try:
        producer.delivered(DELIVERED)
        assert topic_delete(conn, topic) == NONE
        fed = len(producer.lines)  # before the topic was gone
        assert topic_create(conn, topic, 1) in (NONE, EXISTS)  # by the producer, which asked for the topic's partitions
        producer.delivered(fed + DELIVERED)
    finally:
        code = producer.end()
    lines, reports = producer.lines, producer.reports
    assert code == 0, f"kcat ended with {code}: {producer.said[-5:]}"
    assert len(reports) == len(lines), f"{len(reports)} of {len(lines)} lines were delivered: {producer.said[-5:]}"
    old = reports.index(0, 1)
    assert DELIVERED < old <= fed, f"{old} lines went to the deleted topic, of {fed} that were fed before that was gone"
    assert reports == [*range(old), *range(len(lines) - old)], "what was delivered lies elsewhere"
    found = kcat("-C", "-t", topic, "-o", "beginning", "-e", "-q").splitlines()
    assert found == lines[old:], f"{len(found)} lines are in the new topic, not the {len(lines) - old} that were delivered there"


with Step("create"):
    create()
for n, codec in enumerate(CODECS):
    with Step(codec):
        produce(codec, RECORDS * n // len(CODECS), RECORDS * (n + 1) // len(CODECS))
with Step("bytes"):
    compare()
with Step("group"):
    group()
with Step("commit"):
    commit()
with Step("time"):
    offsets_for_time()
tell("none", "trim", "kcat does not delete records")
with Step("recreate"):
    recreate()
