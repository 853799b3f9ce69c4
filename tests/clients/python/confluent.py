# SPDX-License-Identifier: Apache-2.0
"""librdkafka, as current as its Python package."""

import time

import confluent_kafka
from confluent_kafka import admin, Consumer, KafkaException, Producer, TopicPartition

from scenario import Record, main


class Client:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, broker):
        self.base = {"bootstrap.servers": broker}
        self.admin = admin.AdminClient(self.base)

    def create(self, topic, partitions):
        for future in self.admin.create_topics([admin.NewTopic(topic, partitions, 1)]).values():
            future.result(30)

    def delete(self, topic):
        for future in self.admin.delete_topics([topic]).values():
            future.result(30)

    def produce(self, topic, codec, records):
        failures = []

        def told(error, _message):
            if error:
                failures.append(error)

        producer = Producer({**self.base, "compression.type": codec, "enable.idempotence": True, "linger.ms": 5})
        for r in records:
            producer.produce(topic, r.value, r.key, r.partition, on_delivery=told, timestamp=r.timestamp, headers=r.headers)
        if producer.flush(60) or failures:
            raise KafkaException(failures[0] if failures else "not all was acknowledged")

    def consumer(self, group, **more):
        settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest", **more}
        return Consumer({**self.base, **settings})

    @staticmethod
    def record(message):
        if message.error():
            raise KafkaException(message.error())
        return Record(message.partition(), message.offset(), message.key(), message.value(),
                      [(k, v or b"") for k, v in message.headers() or []], message.timestamp()[1])

    def read_all(self, topic, partitions):
        consumer, records = self.consumer("none"), []
        parts = [TopicPartition(topic, p, 0) for p in range(partitions)]
        want = sum(end - begin for begin, end in (consumer.get_watermark_offsets(p, 20) for p in parts))
        consumer.assign(parts)
        while len(records) < want:
            got = consumer.consume(min(1000, want - len(records)), 20)  # waits for so many
            if not got:
                break
            records += [self.record(m) for m in got]
        consumer.close()
        return records

    def group_consumer(self, topic, group):
        consumer = self.consumer(group, **{"session.timeout.ms": 6000})
        consumer.subscribe([topic])
        return consumer

    def poll(self, consumer):
        return [self.record(m) for m in consumer.consume(200, 0.5)]

    def commit(self, consumer):
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            late = (confluent_kafka.KafkaError.REBALANCE_IN_PROGRESS, confluent_kafka.KafkaError._NO_OFFSET,
                    confluent_kafka.KafkaError.ILLEGAL_GENERATION)
            if error.args[0].code() not in late:
                raise

    def close(self, consumer):
        consumer.close()

    def committed(self, topic, group, partitions):
        consumer = self.consumer(group)
        found = consumer.committed([TopicPartition(topic, p) for p in range(partitions)], 20)
        consumer.close()
        return [p.offset for p in found]

    def offsets_for_time(self, topic, partitions, at_ms):
        consumer = self.consumer("none")
        found = consumer.offsets_for_times([TopicPartition(topic, p, at_ms) for p in range(partitions)], 20)
        consumer.close()
        return [p.offset for p in found]

    def trim(self, topic, before):
        parts = [TopicPartition(topic, p, offset) for p, offset in enumerate(before)]
        for part, future in self.admin.delete_records(parts).items():
            assert future.result(30).low_watermark == before[part.partition]

    def beginnings(self, topic, partitions):
        consumer = self.consumer("none")
        found = [consumer.get_watermark_offsets(TopicPartition(topic, p), 20)[0] for p in range(partitions)]
        consumer.close()
        return found

    def configure(self, topic, **values):
        entries = [admin.ConfigEntry(name.replace("_", "."), value, incremental_operation=admin.AlterConfigOpType.SET)
                   for name, value in values.items()]
        resource = admin.ConfigResource(admin.ResourceType.TOPIC, topic, incremental_configs=entries)
        for future in self.admin.incremental_alter_configs([resource]).values():
            future.result(30)
        found = list(self.admin.describe_configs([admin.ConfigResource(admin.ResourceType.TOPIC, topic)]).values())[0].result(30)
        for name, value in values.items():
            assert found[name.replace("_", ".")].value == value, f"{name} is {found[name.replace('_', '.')].value}"

    def limits(self, topic):
        """max.message.bytes is held, and LogAppendTime is what a consumer is told."""
        self.create(topic, 1)
        self.configure(topic, max_message_bytes="5000", message_timestamp_type="LogAppendTime", min_insync_replicas="1")
        producer = self.idempotent_producer()
        self.send_one(producer, topic, b"small")
        try:
            self.send_one(Producer(self.base), topic, bytes(range(250)) * 40)
            raise AssertionError("a batch of more than max.message.bytes was taken")
        except KafkaException as error:
            assert error.args[0].code() == confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE, error
        consumer = self.consumer("none")
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.consume(1, 20)[0]
        consumer.close()
        assert message.value() == b"small", message.value()
        kind, time_ms = message.timestamp()
        assert kind == confluent_kafka.TIMESTAMP_LOG_APPEND_TIME and time_ms > 1600000000000, message.timestamp()
        self.delete(topic)

    def statics(self, topic, group):
        """Members with names of their own and a cooperative assignor: one goes and comes back, and the other notices nothing."""
        self.create(topic, 4)
        revoked = []

        def member(name):
            consumer = self.consumer(group, **{"group.instance.id": name, "session.timeout.ms": 45000,
                                               "partition.assignment.strategy": "cooperative-sticky"})
            consumer.subscribe([topic], on_revoke=lambda _c, parts: revoked.append((name, parts)),
                               on_lost=lambda _c, parts: revoked.append((name, parts)))
            return consumer

        def shared_out(*members):
            until = time.monotonic() + 60
            while True:
                for one in members:
                    one.poll(0.1)
                found = [sorted(p.partition for p in one.assignment()) for one in members]
                if [len(parts) for parts in found] == [2, 2] and sorted(sum(found, [])) == [0, 1, 2, 3]:
                    return found
                assert time.monotonic() < until, f"not shared out: {found}"

        first, other = member("first"), member("other")
        before = shared_out(first, other)
        first.close()
        revoked.clear()
        again = member("first")
        after = shared_out(again, other)
        assert after == before, f"{after}, and {before} before"
        assert not revoked, f"taken away: {revoked}"
        again.close()
        other.close()
        self.delete(topic)

    def idempotent_producer(self):
        return Producer({**self.base, "enable.idempotence": True, "message.timeout.ms": 10000})

    def send_one(self, producer, topic, value):
        told = []
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _m: told.append(error))
        producer.flush(30)
        if not told or told[0]:
            raise KafkaException(told[0] if told else "no answer")


main(Client)
