"""kcat: the scenario through its command line. It produces no headers per record and no timestamps of its own
choice, so those are compared in a small run of their own."""

import subprocess
import sys
import threading
import time

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/python")
from scenario import CODECS, PARTITIONS, RECORDS, Step, key_of, tell, value_of  # noqa: E402

BROKER, TOPIC = sys.argv[1], sys.argv[2]


def kcat(*arguments, input=None, timeout=60):
    done = subprocess.run(["kcat", "-b", BROKER, "-m", "20", *arguments], input=input, capture_output=True, timeout=timeout)
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
        self.process = subprocess.Popen(
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
                Member.begun.wait_for(lambda: Member.waited_for == 0, 0.003)
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
    """Three; the one that was there first is ended in the middle. Each commits as it goes."""
    members = [Member()]
    try:
        with Member.begun:
            assert Member.begun.wait_for(lambda: Member.waited_for == 0, 60), "the first member was given nothing"
        members += [Member("-e"), Member("-e")]
        with Member.begun:
            assert Member.begun.wait_for(lambda: Member.waited_for == 0, 60), "three members were not given parts"
        members[0].process.terminate()
        parts = sum((one.end() for one in members), [])
        members.append(Member("-e"))  # what the others left when they had reached the end of their own
        parts += members[-1].end()
    finally:
        for one in members:
            one.process.kill()
    seen = set(parts)
    assert len(seen) == RECORDS, f"only {len(seen)} of {RECORDS} records were read"


def offsets_for_time():
    small = TOPIC + "-small"
    kcat("-P", "-t", small, "-p", "0", input=b"one\n")
    stamp = int(kcat("-C", "-t", small, "-o", "beginning", "-e", "-q", "-f", "%T\\n"))
    time.sleep(0.01)
    kcat("-P", "-t", small, "-p", "0", input=b"two\n")
    assert f"{small} [0] offset 1" in kcat("-Q", "-t", f"{small}:0:{stamp + 1}").decode(), "not the second record"


with Step("create"):
    listing = kcat("-L", "-t", TOPIC).decode()
    assert f"{PARTITIONS} partitions" in listing or "1 broker" in listing, listing
for n, codec in enumerate(CODECS):
    with Step(codec):
        produce(codec, RECORDS * n // len(CODECS), RECORDS * (n + 1) // len(CODECS))
with Step("bytes"):
    compare()
with Step("group"):
    group()
tell("none", "commit", "kcat does not show what is committed")
with Step("time"):
    offsets_for_time()
tell("none", "trim", "kcat does not delete records")
tell("none", "recreate", "kcat does not delete topics")
