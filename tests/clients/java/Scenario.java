// SPDX-License-Identifier: Apache-2.0
// The official client: the scenario of python/scenario.py, with the same lines on standard output.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.*;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

public class Scenario {
    static final int RECORDS = 10000, PARTITIONS = 6;
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static String broker;
    static Admin admin;
    static long base;

    interface Step {
        void run() throws Exception;
    }

    static void step(String feature, Step step) {
        try {
            step.run();
            System.out.println("ok " + feature);
        } catch (Throwable error) {
            error.printStackTrace();
            System.out.println("fail " + feature + " " + String.valueOf(error).split("\n")[0]);
        }
    }

    static void check(boolean condition, String why) {
        if (!condition) throw new AssertionError(why);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static byte[] key(int i) {
        return bytes("key-" + i % 101);
    }

    static byte[] value(int i) {
        return bytes("value-" + i + "-" + "x".repeat(i % 200));
    }

    static Map<String, Object> settings(Object... pairs) {
        Map<String, Object> map = new HashMap<>();
        map.put("bootstrap.servers", broker);
        for (int i = 0; i < pairs.length; i += 2) map.put((String) pairs[i], pairs[i + 1]);
        return map;
    }

    static KafkaProducer<byte[], byte[]> producer(Object... pairs) {
        return new KafkaProducer<>(settings(pairs), new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<byte[], byte[]> consumer(Object... pairs) {
        Map<String, Object> map = settings("enable.auto.commit", "false", "auto.offset.reset", "earliest");
        map.putAll(settings(pairs));
        return new KafkaConsumer<>(map, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static List<TopicPartition> partitions(String topic, int count) {
        List<TopicPartition> list = new ArrayList<>();
        for (int p = 0; p < count; p++) list.add(new TopicPartition(topic, p));
        return list;
    }

    static void create(String topic, int count) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, count, (short) 1))).all().get(30, TimeUnit.SECONDS);
    }

    static void delete(String topic) throws Exception {
        admin.deleteTopics(List.of(topic)).all().get(30, TimeUnit.SECONDS);
    }

    static void produce(String topic, String codec, int first, int end) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = producer("compression.type", codec, "linger.ms", "5")) {
            for (int i = first; i < end; i++) {
                var record = new ProducerRecord<>(topic, i % PARTITIONS, base + i, key(i), value(i));
                record.headers().add("number", bytes("" + i)).add("empty", new byte[0]);
                sent.add(producer.send(record));
            }
            producer.flush();
            for (var one : sent) one.get(30, TimeUnit.SECONDS);
        }
    }

    static List<ConsumerRecord<byte[], byte[]>> readAll(String topic, int count) {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        try (var consumer = consumer()) {
            var parts = partitions(topic, count);
            long want = consumer.endOffsets(parts).values().stream().mapToLong(o -> o).sum()
                    - consumer.beginningOffsets(parts).values().stream().mapToLong(o -> o).sum();
            consumer.assign(parts);
            consumer.seekToBeginning(parts);
            while (records.size() < want) {
                var got = consumer.poll(Duration.ofSeconds(20));
                if (got.isEmpty()) break;
                got.forEach(records::add);
            }
        }
        return records;
    }

    static int number(ConsumerRecord<byte[], byte[]> r) {
        return (int) r.offset() * PARTITIONS + r.partition();
    }

    static void compare(String topic) {
        var records = readAll(topic, PARTITIONS);
        check(records.size() == RECORDS, records.size() + " of " + RECORDS + " records were read");
        boolean[] seen = new boolean[RECORDS];
        for (var r : records) {
            int i = number(r);
            check(i < RECORDS && !seen[i], "record " + i + " twice, or none that was produced");
            seen[i] = true;
            Header[] headers = r.headers().toArray();
            check(Arrays.equals(r.key(), key(i)) && Arrays.equals(r.value(), value(i)) && r.timestamp() == base + i
                    && headers.length == 2 && headers[0].key().equals("number") && headers[1].key().equals("empty")
                    && Arrays.equals(headers[0].value(), bytes("" + i)) && headers[1].value().length == 0,
                    "record " + i + " differs: " + r);
        }
    }

    /** Three members; one leaves in the middle; all is read at least once and committed to the end. Nobody hurries before
     * all have begun: on a busy machine one starts seconds after the others. */
    static void group(String topic, String group, String assignor) throws Exception {
        Set<Integer> seen = ConcurrentHashMap.newKeySet();
        AtomicIntegerArray members = new AtomicIntegerArray(3);
        CountDownLatch begun = new CountDownLatch(3);
        ExecutorService threads = Executors.newFixedThreadPool(3);
        List<Future<?>> ends = new ArrayList<>();
        for (int m = 0; m < 3; m++) {
            final int n = m;
            ends.add(threads.submit(() -> {
                try (var consumer = consumer("group.id", group, "session.timeout.ms", "6000", "heartbeat.interval.ms",
                        "1000", "max.poll.records", "200", "partition.assignment.strategy", assignor)) {
                    consumer.subscribe(List.of(topic));
                    long until = System.nanoTime() + 90_000_000_000L;
                    while (System.nanoTime() < until) {
                        var records = consumer.poll(Duration.ofMillis(500));
                        for (var r : records) seen.add(number(r));
                        if (members.addAndGet(n, records.count()) == records.count() && !records.isEmpty()) begun.countDown();
                        if (!records.isEmpty()) begun.await(2, TimeUnit.SECONDS);
                        if (!records.isEmpty()) {
                            try {
                                consumer.commitSync();
                            } catch (CommitFailedException | RebalanceInProgressException late) {
                                System.err.println(late);
                            }
                            Thread.sleep(20);
                        }
                        if (seen.size() == RECORDS || (n == 0 && begun.getCount() == 0 && seen.size() > RECORDS / 4)) break;
                    }
                }
                return null;
            }));
        }
        for (var end : ends) end.get();
        threads.shutdown();
        check(seen.size() == RECORDS, "only " + seen.size() + " of " + RECORDS + " records were read");
        check(members.get(1) > 0 && members.get(2) > 0, "a member read nothing: " + members);
    }

    static void committed(String topic, String group) throws Exception {
        var found = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get(30, TimeUnit.SECONDS);
        for (var part : partitions(topic, PARTITIONS)) {
            var at = found.get(part);
            check(at != null && at.offset() == end(part.partition()), part + ": committed " + at);
        }
    }

    static void time(String topic, int at) {
        try (var consumer = consumer()) {
            Map<TopicPartition, Long> ask = new HashMap<>();
            for (var part : partitions(topic, PARTITIONS)) ask.put(part, base + at);
            consumer.offsetsForTimes(ask).forEach((part, found) -> {
                long want = (at - part.partition() + PARTITIONS - 1) / PARTITIONS;
                check(found != null && found.offset() == want, part + ": found " + found + ", not " + want);
            });
        }
    }

    static long end(int partition) {
        return (RECORDS - partition + PARTITIONS - 1) / PARTITIONS;
    }

    /** Records are deleted up to an offset, inside a batch too: what is behind it is there, and nothing else. */
    static void trim(String topic) throws Exception {
        Map<TopicPartition, RecordsToDelete> ask = new HashMap<>();
        Map<TopicPartition, Long> before = new HashMap<>();
        for (var part : partitions(topic, PARTITIONS)) {
            int p = part.partition();
            before.put(part, p == PARTITIONS - 1 ? end(p) : 100 + 7 * p);
            ask.put(part, RecordsToDelete.beforeOffset(before.get(part)));
        }
        for (var one : admin.deleteRecords(ask).lowWatermarks().entrySet())
            check(one.getValue().get(30, TimeUnit.SECONDS).lowWatermark() == before.get(one.getKey()), one.getKey() + ": another low watermark");
        try (var consumer = consumer()) {
            var begins = consumer.beginningOffsets(before.keySet());
            check(begins.equals(before), "begins at " + begins + ", not at " + before);
        }
        Set<Integer> want = new HashSet<>(), found = new HashSet<>();
        before.forEach((part, offset) -> {
            for (long o = offset; o < end(part.partition()); o++) want.add((int) o * PARTITIONS + part.partition());
        });
        for (var r : readAll(topic, PARTITIONS)) check(found.add(number(r)), "record " + number(r) + " twice");
        check(found.equals(want), found.size() + " records are left, not " + want.size());
    }

    static void recreate(String topic) throws Exception {
        create(topic, 1);
        List<String> acked = new ArrayList<>();
        try (var producer = producer("delivery.timeout.ms", "10000", "request.timeout.ms", "5000", "linger.ms", "0",
                "max.block.ms", "5000")) {
            for (int i = 0; i < 50; i++) producer.send(new ProducerRecord<>(topic, 0, null, bytes("before-" + i))).get();
            delete(topic); // its answer is the event: the name is free
            try {
                create(topic, 1);
            } catch (ExecutionException error) { // by the producer itself, when it asked for the topic's partitions
                if (!(error.getCause() instanceof TopicExistsException)) throw error;
            }
            long until = System.nanoTime() + 60_000_000_000L;
            for (int row = 0, n = 0; row < 20; n++) {
                check(System.nanoTime() < until, "the producer does not go on");
                String value = "after-" + n;
                try {
                    producer.send(new ProducerRecord<>(topic, 0, null, bytes(value))).get();
                    acked.add(value);
                    row++;
                } catch (Exception error) {
                    System.err.println(topic + ": " + value + ": " + error);
                    row = 0;
                    Thread.sleep(200);
                }
            }
        }
        List<String> found = new ArrayList<>();
        for (var r : readAll(topic, 1)) found.add(new String(r.value(), StandardCharsets.UTF_8));
        check(found.stream().noneMatch(v -> v.startsWith("before")), "records of the deleted topic came back");
        found.retainAll(new HashSet<>(acked));
        check(found.equals(acked), "acknowledged records are missing, twice or out of order");
    }

    /** What tools and consoles ask. */
    static void tools(String topic, String group) throws Exception {
        check(admin.describeCluster().nodes().get(30, TimeUnit.SECONDS).size() >= 1, "no nodes");
        var groups = admin.listConsumerGroups().all().get(30, TimeUnit.SECONDS);
        check(groups.stream().anyMatch(g -> g.groupId().equals(group)), "the group is not listed: " + groups);
        admin.describeConsumerGroups(List.of(group)).all().get(30, TimeUnit.SECONDS);
        admin.deleteConsumerGroups(List.of(group)).all().get(30, TimeUnit.SECONDS);
    }

    public static void main(String[] args) {
        broker = args[0];
        String topic = args[1], group = topic + "-group";
        base = System.currentTimeMillis() - RECORDS - 1000;
        admin = Admin.create(settings());
        step("create", () -> create(topic, PARTITIONS));
        for (int c = 0; c < CODECS.length; c++) {
            int first = RECORDS * c / CODECS.length, end = RECORDS * (c + 1) / CODECS.length;
            String codec = CODECS[c];
            step(codec, () -> produce(topic, codec, first, end));
        }
        step("bytes", () -> compare(topic));
        step("group", () -> group(topic, group, "org.apache.kafka.clients.consumer.RangeAssignor"));
        step("commit", () -> committed(topic, group));
        step("cooperative", () -> group(topic, group + "-c", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"));
        step("time", () -> {
            // One in each codec's part: in the middle of a compressed batch as a rule.
            for (int at = 1000; at < RECORDS; at += 2000) time(topic, at);
        });
        step("trim", () -> trim(topic));
        step("recreate", () -> recreate(topic + "-again"));
        step("tools", () -> tools(topic, group));
        step("delete", () -> delete(topic));
        admin.close(Duration.ofSeconds(5));
        System.exit(0);
    }
}
