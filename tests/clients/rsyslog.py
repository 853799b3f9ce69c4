# SPDX-License-Identifier: Apache-2.0
"""rsyslog's omkafka ships a log file: every line once, in order, as it was. What it can't ask for is asked for beside it."""

import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE + "/python", HERE + "/../process"]
import tied  # noqa: E402
from kafka_wire import batch_codec, batches_fetch, Connection, EXISTS, NONE, topic_create, topic_delete  # noqa: E402
from scenario import CODECS, Step, tell  # noqa: E402

BROKER, TOPIC = sys.argv[1], sys.argv[2]
LINES = 5000


def real_lines():
    """A log that this machine has written, or one made up where there is none of enough lines."""
    for path in ("/var/log/dpkg.log", "/var/log/syslog", "/var/log/messages"):
        try:
            lines = [line for line in open(path, "rb").read().splitlines() if line.strip()]
        except OSError:
            continue
        if len(lines) >= 100:
            return (lines * (LINES // len(lines) + 1))[:LINES], path
    return [b"line %d of a log that was made up" % n for n in range(LINES)], "made up"


def listing():
    return tied.run(["kcat", "-b", BROKER, "-L"], capture_output=True, timeout=30).stdout.decode()


class Shipping:
    """A log file, and an rsyslogd that ships it to a topic as it grows."""

    def __init__(self, topic, codec):
        self.topic, self.codec, self.got = topic, codec, []

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        home = self.directory.name
        self.log, config = open(os.path.join(home, "app.log"), "wb", buffering=0), os.path.join(home, "rsyslog.conf")
        with open(config, "w") as file:
            file.write(f'''
global(workDirectory="{home}" maxMessageSize="64k")
module(load="imfile")
module(load="omkafka")
template(name="raw" type="string" string="%msg%")
input(type="imfile" File="{self.log.name}" Tag="app" readTimeout="1")
action(type="omkafka" broker="{BROKER}" topic="{self.topic}" template="raw" partitions.auto="on"
       confParam=["compression.codec={self.codec}", "enable.idempotence=true"] errorFile="{home}/errors")
''')
        self.server = tied.start(["rsyslogd", "-n", "-f", config, "-i", os.path.join(home, "pid")], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        self.server.terminate()
        try:
            self.server.wait(20)
        except subprocess.TimeoutExpired:  # it waits for what it can't deliver
            self.server.kill()
            self.server.wait()
        self.log.close()
        self.directory.cleanup()

    def write(self, lines):
        self.log.write(b"".join(line + b"\n" for line in lines))

    def arrive(self, done):
        """Read the topic until that is so of its lines, or for a minute: what it has is compared anyway."""
        until = time.monotonic() + 60
        while time.monotonic() < until and not done(self.got):
            time.sleep(0.5)
            self.got = tied.run(["kcat", "-b", BROKER, "-C", "-t", self.topic, "-o", "beginning", "-e", "-q"],
                                capture_output=True, timeout=30).stdout.splitlines()


def ship(codec, lines, topic):
    with Shipping(topic, codec) as shipping:
        shipping.write(lines)
        shipping.arrive(lambda got: len(got) >= len(lines))
    got = shipping.got
    assert len(got) == len(lines), f"{len(got)} of {len(lines)} lines came"
    assert sorted(got) == sorted(lines), "lines differ"
    assert got == lines, "lines are out of order"
    stored = {batch_codec(batch) for batch in batches_fetch(CONNECTION, topic, 0, 0)[0]}
    assert codec in stored, f"stored as {sorted(stored)}"


def recreate():
    """The topic is deleted and made again while the log grows: what had been shipped is gone with it, every other line is in the new
    topic once and in order. The first of those may be lines that had arrived and were not confirmed before the topic was gone."""
    topic, lines = TOPIC + "-again", [b"line %d of a log that grows" % n for n in range(3000)]
    assert topic_create(CONNECTION, topic, 1) == NONE
    with Shipping(topic, "none") as shipping:
        shipping.write(lines[:1000])
        shipping.arrive(lambda got: len(got) >= 1000)
        assert shipping.got == lines[:1000], f"{len(shipping.got)} of 1000 lines came"
        assert topic_delete(CONNECTION, topic) == NONE
        shipping.write(lines[1000:1500])
        assert topic_create(CONNECTION, topic, 1) in (NONE, EXISTS)  # by the producer, which asked for the topic's partitions
        for n in range(1500, 3000, 100):
            shipping.write(lines[n:n + 100])
            time.sleep(0.1)
        shipping.arrive(lambda got: lines[-1] in got)
    got = shipping.got
    assert got and got[0] in lines[:1001], f"{len(got)} lines are in the new topic, from {got[:1]} on"
    assert got == lines[lines.index(got[0]):], f"{len(got)} lines are in the new topic: some are missing, twice or out of order"


CONNECTION = Connection(*BROKER.rsplit(":", 1))
lines, source = real_lines()
print(f"shipping {source}", file=sys.stderr)
before = listing()
for codec in CODECS:
    with Step(codec):
        ship(codec, lines[:1000], f"{TOPIC}-{codec}")
with Step("bytes"):
    ship("none", lines, TOPIC)
with Step("create"):  # topics are made as omkafka asks for them
    assert f'topic "{TOPIC}"' not in before, before
    assert f'topic "{TOPIC}" with 1 partitions' in listing(), listing()
with Step("recreate"):
    recreate()
for feature in ("group", "commit", "time", "trim"):
    tell("none", feature, "a producer only")
