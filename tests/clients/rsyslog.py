"""rsyslog's omkafka ships a log file: every line once, in order, as it was."""

import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, __file__.rsplit("/", 1)[0] + "/python")
from scenario import Step, tell  # noqa: E402

BROKER, TOPIC = sys.argv[1], sys.argv[2]
HOST, PORT = BROKER.rsplit(":", 1)
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


def ship(codec, lines, topic):
    with tempfile.TemporaryDirectory() as home:
        log, config = os.path.join(home, "app.log"), os.path.join(home, "rsyslog.conf")
        with open(log, "wb") as file:
            file.write(b"".join(line + b"\n" for line in lines))
        with open(config, "w") as file:
            file.write(f'''
global(workDirectory="{home}" maxMessageSize="64k")
module(load="imfile")
module(load="omkafka")
template(name="raw" type="string" string="%msg%")
input(type="imfile" File="{log}" Tag="app" readTimeout="1")
action(type="omkafka" broker="{BROKER}" topic="{topic}" template="raw" partitions.auto="on"
       confParam=["compression.codec={codec}", "enable.idempotence=true"] errorFile="{home}/errors")
''')
        server = subprocess.Popen(["rsyslogd", "-n", "-f", config, "-i", os.path.join(home, "pid")],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            until, got = time.monotonic() + 60, []
            while len(got) < len(lines) and time.monotonic() < until:
                time.sleep(1)
                done = subprocess.run(["kcat", "-b", BROKER, "-C", "-t", topic, "-o", "beginning", "-e", "-q"],
                                      capture_output=True, timeout=30)
                got = done.stdout.splitlines()
        finally:
            server.terminate()
            server.wait(20)
    assert len(got) == len(lines), f"{len(got)} of {len(lines)} lines came"
    assert sorted(got) == sorted(lines), "lines differ"
    return got


lines, source = real_lines()
print(f"shipping {source}", file=sys.stderr)
for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    with Step(codec):
        got = ship(codec, lines[:1000], f"{TOPIC}-{codec}")
        assert got == lines[:1000], "lines are out of order"
with Step("bytes"):
    assert ship("none", lines, TOPIC) == lines, "lines are out of order"
for feature in ("create", "group", "commit", "time", "trim", "recreate"):
    tell("none", feature, "a producer only")
