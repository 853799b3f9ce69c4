"""kcat: the scenario through its command line. It produces no headers per record and no timestamps of its own
choice, so those are compared in a small run of their own."""

import subprocess
import sys
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


def group():
    """Three at once; the first is ended in the middle by -c. Each commits as it goes."""
    def member(*more):
        return subprocess.Popen(["kcat", "-b", BROKER, "-G", TOPIC + "-group", "-q", "-X", "auto.offset.reset=earliest", "-X",
                                 "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=500", "-f", "%p %o\\n", *more, TOPIC],
                                stdout=subprocess.PIPE)

    first, others = member("-c", "300"), [member("-e"), member("-e")]
    lines = b"".join(one.communicate(timeout=90)[0] for one in [first, *others])
    last = member("-e")  # what the others left when they had reached the end of their own
    lines += last.communicate(timeout=90)[0]
    seen = {tuple(map(int, line.split())) for line in lines.splitlines()}
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
