/* SPDX-License-Identifier: Apache-2.0 */
/* A leatd that serves Kafka's protocol, and calls of it that tests share. After cmocka.h. */
#ifndef LEAT_TESTS_KAFKA_CALLS_H
#define LEAT_TESTS_KAFKA_CALLS_H

#include <stdio.h>
#include <string.h>

#include "tests/broker/rig.h"
#include "wire_client.h"

static struct rig_server server;
static unsigned port;

static inline int setup(void **state)
{
    (void)state;
    char address[32];
    port = wire_free_port();
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    const char *flags[] = {"--kafka", address, "--cores", "2", "--memory", "256M", NULL};
    rig_dir(&server);
    rig_start(&server, flags);
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    int code = rig_end(&server, 15);
    rig_remove_dir(&server);
    return code;
}

/* ---- requests ---- */

static inline struct leat_kafka_string text(const char *value)
{
    return leat_kafka_text(value);
}

static inline struct leat_kafka_metadata_response *
metadata(struct wire_client *client, int16_t version, const char *name, int32_t count, bool create)
{
    struct leat_kafka_metadata_request_topic topic = {.name = text(name)};
    struct leat_kafka_metadata_request body = {.topics = {&topic, count},
                                               .allow_auto_topic_creation = create};
    return wire_call(client, LEAT_KAFKA_METADATA, version, &body);
}

static inline void make_topic(struct wire_client *client, const char *name)
{
    struct leat_kafka_metadata_response *answer = metadata(client, 4, name, 1, true);
    assert_int_equal(answer->topics.count, 1);
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_NONE);
    assert_int_equal(answer->topics.at[0].partitions.count, 1);
}

static inline int32_t send_produce(struct wire_client *client, int16_t version, int16_t acks,
                                   const char *name, const uint8_t *batch, uint32_t bytes)
{
    struct leat_kafka_produce_request_partition partition = {0, {batch, (int32_t)bytes, NULL}};
    struct leat_kafka_produce_request_topic topic = {text(name), {&partition, 1}};
    struct leat_kafka_produce_request body = {{NULL, -1}, acks, 1000, {&topic, 1}};
    return wire_send(client, LEAT_KAFKA_PRODUCE, version, &body);
}

static inline struct leat_kafka_produce_response_partition
produce(struct wire_client *client, int16_t version, const char *name, const uint8_t *batch,
        uint32_t bytes)
{
    int32_t correlation = send_produce(client, version, -1, name, batch, bytes);
    struct leat_kafka_produce_response *answer =
        wire_answer(client, LEAT_KAFKA_PRODUCE, version, correlation);
    assert_int_equal(answer->topics.count, 1);
    assert_int_equal(answer->topics.at[0].partitions.count, 1);
    return answer->topics.at[0].partitions.at[0];
}

struct fetching {
    const char *name;
    struct leat_kafka_uuid id;
    int64_t offset;
    int32_t epoch, wait_ms, partition_max_bytes;
    int32_t session_id, session_epoch;
};
static inline int32_t send_fetch(struct wire_client *client, int16_t version, struct fetching f)
{
    struct leat_kafka_fetch_request_partition partition = {
        .current_leader_epoch = f.epoch,
        .fetch_offset = f.offset,
        .last_fetched_epoch = -1,
        .partition_max_bytes = f.partition_max_bytes > 0 ? f.partition_max_bytes : 1 << 20};
    struct leat_kafka_fetch_request_topic topic = {text(f.name), f.id, {&partition, 1}};
    struct leat_kafka_fetch_request body;
    leat_kafka_defaults(leat_kafka_type_fetch_request(), &body);
    body.max_wait_ms = f.wait_ms;
    body.min_bytes = 1;
    body.max_bytes = 1 << 22;
    body.session_id = f.session_id;
    body.session_epoch = f.session_epoch;
    body.topics.at = &topic;
    body.topics.count = 1;
    body.rack_id = text("");
    return wire_send(client, LEAT_KAFKA_FETCH, version, &body);
}

static inline struct leat_kafka_fetch_response *fetch(struct wire_client *client, int16_t version,
                                                      struct fetching f)
{
    return wire_answer(client, LEAT_KAFKA_FETCH, version, send_fetch(client, version, f));
}

static inline struct leat_kafka_fetch_response_partition
fetch_one(struct wire_client *client, int16_t version, struct fetching f)
{
    struct leat_kafka_fetch_response *answer = fetch(client, version, f);
    assert_int_equal(answer->error_code, LEAT_KAFKA_NONE);
    assert_int_equal(answer->topics.count, 1);
    return answer->topics.at[0].partitions.at[0];
}

static inline uint32_t make_batch(uint8_t *out, uint32_t count, const char *value, int64_t producer,
                                  int32_t sequence)
{
    return rig_batch(out, 4096, count, value, producer, producer < 0 ? -1 : 0, sequence);
}

static inline struct leat_kafka_list_offsets_response_partition
list_offset(struct wire_client *client, int16_t version, const char *name, int64_t time)
{
    struct leat_kafka_list_offsets_request_partition partition = {0, -1, time};
    struct leat_kafka_list_offsets_request_topic topic = {text(name), {&partition, 1}};
    struct leat_kafka_list_offsets_request body = {-1, 0, {&topic, 1}};
    struct leat_kafka_list_offsets_response *answer =
        wire_call(client, LEAT_KAFKA_LIST_OFFSETS, version, &body);
    return answer->topics.at[0].partitions.at[0];
}

#endif
