# SPDX-License-Identifier: Apache-2.0
"""The official console tools, started as classes of their jars: console.py BROKER TOPIC JARS MAJOR."""

import json
import os
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [HERE + "/python", HERE + "/../process"]
import tied  # noqa: E402
from scenario import Step  # noqa: E402

BROKER, TOPIC, JARS, MAJOR = sys.argv[1:5]
GROUP = TOPIC + "-tools"


def tool(name, *arguments, input=None, code=0):
    done = tied.run(["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*", name, *arguments], input=input,
                    capture_output=True, timeout=120)
    text = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
    assert code is None or done.returncode == code, f"{name}: {text[-400:]}"
    return text


def at(*arguments):
    return ("--bootstrap-server", BROKER, *arguments)


TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"

with Step("versions"):
    text = tool("org.apache.kafka.tools.BrokerApiVersionsCommand" if MAJOR >= "4" else "kafka.admin.BrokerApiVersionsCommand", *at())
    assert "JoinGroup(11): 0 to 9" in text, text[-400:]
with Step("topics"):
    tool(TOPICS, *at("--create", "--topic", TOPIC, "--partitions", "3", "--replication-factor", "1"))
    assert TOPIC in tool(TOPICS, *at("--list")).split()
    assert "PartitionCount: 3" in tool(TOPICS, *at("--describe", "--topic", TOPIC))
    tool(TOPICS, *at("--alter", "--topic", TOPIC, "--partitions", "6"))
    assert "PartitionCount: 6" in tool(TOPICS, *at("--describe", "--topic", TOPIC))
with Step("configs"):
    entity = ("--entity-type", "topics", "--entity-name", TOPIC)
    tool(CONFIGS, *at("--alter", *entity, "--add-config", "retention.ms=86400000"))
    assert "retention.ms=86400000" in tool(CONFIGS, *at("--describe", *entity))
with Step("perf"):
    name = "org.apache.kafka.tools.ProducerPerformance"
    text = tool(name, "--topic", TOPIC, "--num-records", "20000", "--record-size", "100", "--throughput", "-1",
                "--producer-props", f"bootstrap.servers={BROKER}", "acks=all")
    assert "20000 records sent" in text, text[-400:]
    name = "org.apache.kafka.tools.ConsumerPerformance"
    more = ("--messages", "20000", "--group", GROUP, "--timeout", "20000")
    text = tool(name, *at("--topic", TOPIC, *more))
    assert re.search(r", 20\d\d\d, ", text), text[-400:]
with Step("console"):
    name = "org.apache.kafka.tools.ConsoleProducer" if MAJOR >= "4" else "kafka.tools.ConsoleProducer"
    tool(name, *at("--topic", TOPIC + "-lines"), input=b"one\ntwo\nthree\n")
    name = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    text = tool(name, *at("--topic", TOPIC + "-lines", "--from-beginning", "--max-messages", "3", "--timeout-ms", "20000"))
    assert text.split()[:3] == ["one", "two", "three"], text[-400:]
# By itself it gives up after 5 s, which a busy machine takes for the start of Java alone; and ends with 0 then.
PATIENT = ("--timeout", "60000")
with Step("groups"):
    assert GROUP in tool(GROUPS, *at("--list", *PATIENT)).split()
    text = tool(GROUPS, *at("--describe", "--group", GROUP, *PATIENT))
    assert TOPIC in text, text[-400:]
    assert "Empty" in tool(GROUPS, *at("--describe", "--group", GROUP, "--state", *PATIENT))
    text = tool(GROUPS, *PATIENT, *at("--group", GROUP, "--topic", TOPIC, "--reset-offsets", "--to-earliest", "--execute"))
    rows = re.findall(rf"{GROUP}\s+{TOPIC}\s+(\d+)\s+(\d+)", text)
    assert sorted(rows) == [(str(p), "0") for p in range(6)], text[-400:]
    later = ("--reset-offsets", "--to-datetime", "2099-01-01T00:00:00.000", "--execute")  # where no record is that young: the end
    text = tool(GROUPS, *PATIENT, *at("--group", GROUP, "--topic", TOPIC, *later))
    assert sum(int(row[1]) for row in re.findall(rf"{GROUP}\s+{TOPIC}\s+(\d+)\s+(\d+)", text)) == 20000, text[-400:]
    text = tool(GROUPS, *at("--delete", "--group", GROUP, *PATIENT))
    assert "was successful" in text, text[-400:]
    assert GROUP not in tool(GROUPS, *at("--list", *PATIENT)).split()
with Step("offsets"):
    text = tool("org.apache.kafka.tools.GetOffsetShell", *at("--topic", TOPIC, "--time", "latest"))
    ends = re.findall(rf"^{TOPIC}:(\d+):(\d+)$", text, re.M)
    assert len(ends) == 6 and sum(int(end) for _, end in ends) == 20000, text[-400:]
with Step("trim"):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        parts = [{"topic": TOPIC, "partition": p, "offset": -1 if p else 7} for p in range(6)]
        json.dump({"partitions": parts, "version": 1}, file)
        file.flush()
        text = tool("org.apache.kafka.tools.DeleteRecordsCommand", *at("--offset-json-file", file.name))
    assert "low_watermark: 7" in text and text.count("low_watermark") == 6, text[-600:]
with Step("logdirs"):
    text = tool("org.apache.kafka.tools.LogDirsCommand", *at("--describe", "--topic-list", TOPIC))
    told = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    sizes = {part["partition"]: part["size"] for node in told["brokers"] for directory in node["logDirs"]
             for part in directory["partitions"]}
    assert sorted(sizes) == [f"{TOPIC}-{p}" for p in range(6)], text[-600:]
    assert sizes[f"{TOPIC}-0"] > 0, text[-600:]
with Step("delete"):
    tool(TOPICS, *at("--delete", "--topic", TOPIC))
