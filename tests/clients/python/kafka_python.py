# SPDX-License-Identifier: Apache-2.0
"""kafka-python, 2.0 and later: the same program for all."""

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import CommitFailedError, KafkaError, RebalanceInProgressError

from scenario import Record, main

MAJOR = int(kafka.__version__.split(".")[0])


class Client:
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")

    def __init__(self, broker):
        self.base = {"bootstrap_servers": broker}
        self.admin = KafkaAdminClient(**self.base)

    def create(self, topic, partitions):
        self.admin.create_topics([NewTopic(topic, partitions, 1)])

    def delete(self, topic):
        self.admin.delete_topics([topic])

    def produce(self, topic, codec, records):
        more = {"enable_idempotence": True} if MAJOR >= 3 else {}
        producer = KafkaProducer(compression_type=None if codec == "none" else codec, linger_ms=5, acks="all",
                                 max_in_flight_requests_per_connection=1, **more, **self.base)
        futures = [producer.send(topic, r.value, r.key, r.headers, r.partition, r.timestamp) for r in records]
        producer.flush(60)
        for future in futures:
            future.get(30)
        producer.close()

    @staticmethod
    def record(m):
        return Record(m.partition, m.offset, m.key, m.value, list(m.headers), m.timestamp)

    def read_all(self, topic, partitions):
        consumer, records = KafkaConsumer(auto_offset_reset="earliest", **self.base), []
        parts = [TopicPartition(topic, p) for p in range(partitions)]
        want = sum(consumer.end_offsets(parts).values()) - sum(consumer.beginning_offsets(parts).values())
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        while len(records) < want:
            got = self.poll(consumer, 20000)
            if not got:
                break
            records += got
        consumer.close()
        return records

    def group_consumer(self, topic, group):
        return KafkaConsumer(topic, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
                             session_timeout_ms=6000, heartbeat_interval_ms=1000, **self.base)

    def poll(self, consumer, wait_ms=500):
        return [self.record(m) for ms in consumer.poll(wait_ms, 200).values() for m in ms]

    def commit(self, consumer):
        try:
            consumer.commit()
        except (CommitFailedError, RebalanceInProgressError):
            pass

    def close(self, consumer):
        consumer.close()

    def committed(self, topic, group, partitions):
        consumer = KafkaConsumer(group_id=group, **self.base)
        found = [consumer.committed(TopicPartition(topic, p)) for p in range(partitions)]
        consumer.close()
        return found

    def offsets_for_time(self, topic, partitions, at_ms):
        consumer = KafkaConsumer(**self.base)
        parts = [TopicPartition(topic, p) for p in range(partitions)]
        found = consumer.offsets_for_times({p: at_ms for p in parts})
        consumer.close()
        return [found[p].offset for p in parts]

    if hasattr(KafkaAdminClient, "delete_records"):
        def trim(self, topic, before):
            self.admin.delete_records({TopicPartition(topic, p): offset for p, offset in enumerate(before)})

    def beginnings(self, topic, partitions):
        consumer = KafkaConsumer(**self.base)
        parts = [TopicPartition(topic, p) for p in range(partitions)]
        found = consumer.beginning_offsets(parts)
        consumer.close()
        return [found[p] for p in parts]

    def idempotent_producer(self):
        more = {"enable_idempotence": True, "delivery_timeout_ms": 10000} if MAJOR >= 3 else {"retries": 5}
        return KafkaProducer(acks="all", request_timeout_ms=5000, **more, **self.base)

    def send_one(self, producer, topic, value):
        try:
            producer.send(topic, value, partition=0).get(30)
        except AssertionError as error:  # "Unrecognized partition", while its metadata is old
            raise KafkaError(str(error)) from error


main(Client)
