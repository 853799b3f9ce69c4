# SPDX-License-Identifier: Apache-2.0
"""aiokafka: a loop in a thread of its own, so that the scenario is the same as of the others."""

import asyncio
import threading

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from aiokafka.errors import CommitFailedError, IllegalGenerationError, RebalanceInProgressError

from scenario import Record, main


class Client:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, broker):
        self.base = {"bootstrap_servers": broker}
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        self.admin = self.do(self.started(lambda: AIOKafkaAdminClient(**self.base)))

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    @staticmethod
    async def started(make):
        it = make()
        await it.start()
        return it

    def create(self, topic, partitions):
        answer = self.do(self.admin.create_topics([NewTopic(topic, partitions, 1)]))
        for row in answer.topic_errors:
            assert row[1] == 0, f"error {row[1:]}"

    def delete(self, topic):
        self.do(self.admin.delete_topics([topic]))

    def produce(self, topic, codec, records):
        async def run():
            producer = await self.started(lambda: AIOKafkaProducer(
                compression_type=None if codec == "none" else codec, linger_ms=5, enable_idempotence=True, **self.base))
            futures = [await producer.send(topic, r.value, r.key, r.partition, r.timestamp, r.headers) for r in records]
            await asyncio.gather(*futures)
            await producer.stop()

        self.do(run())

    @staticmethod
    def record(m):
        return Record(m.partition, m.offset, m.key, m.value, list(m.headers), m.timestamp)

    def consumer(self, *topics, **more):
        return self.do(self.started(lambda: AIOKafkaConsumer(
            *topics, enable_auto_commit=False, auto_offset_reset="earliest", **more, **self.base)))

    def read_all(self, topic, partitions):
        consumer, records = self.consumer(), []
        parts = [TopicPartition(topic, p) for p in range(partitions)]
        want = sum(self.do(consumer.end_offsets(parts)).values()) - sum(self.do(consumer.beginning_offsets(parts)).values())

        async def begin():
            consumer.assign(parts)
            await consumer.seek_to_beginning(*parts)

        self.do(begin())
        while len(records) < want:
            got = self.poll(consumer, 20000)
            if not got:
                break
            records += got
        self.close(consumer)
        return records

    def group_consumer(self, topic, group):
        return self.consumer(topic, group_id=group, session_timeout_ms=6000, heartbeat_interval_ms=1000)

    def poll(self, consumer, wait_ms=500):
        got = self.do(consumer.getmany(timeout_ms=wait_ms, max_records=200))
        return [self.record(m) for ms in got.values() for m in ms]

    def commit(self, consumer):
        try:
            self.do(consumer.commit())
        except (CommitFailedError, IllegalGenerationError, RebalanceInProgressError):
            pass

    def close(self, consumer):
        self.do(consumer.stop())

    def committed(self, topic, group, partitions):
        consumer = self.consumer(group_id=group)
        found = [self.do(consumer.committed(TopicPartition(topic, p))) for p in range(partitions)]
        self.close(consumer)
        return found

    def offsets_for_time(self, topic, partitions, at_ms):
        consumer = self.consumer()
        parts = [TopicPartition(topic, p) for p in range(partitions)]
        found = self.do(consumer.offsets_for_times({p: at_ms for p in parts}))
        self.close(consumer)
        return [found[p].offset for p in parts]

    def trim(self, topic, before):
        asked = {TopicPartition(topic, p): RecordsToDelete(offset) for p, offset in enumerate(before)}
        assert self.do(self.admin.delete_records(asked)) == {part: at.before_offset for part, at in asked.items()}

    def beginnings(self, topic, partitions):
        consumer = self.consumer()
        parts = [TopicPartition(topic, p) for p in range(partitions)]
        found = self.do(consumer.beginning_offsets(parts))
        self.close(consumer)
        return [found[p] for p in parts]

    def idempotent_producer(self):
        return self.do(self.started(lambda: AIOKafkaProducer(
            enable_idempotence=True, request_timeout_ms=5000, **self.base)))

    def send_one(self, producer, topic, value):
        self.do(asyncio.wait_for(producer.send_and_wait(topic, value, partition=0), 15))


main(Client)
