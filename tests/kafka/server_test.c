/* SPDX-License-Identifier: Apache-2.0 */
/* A real leatd and requests of Kafka's protocol: the traps that clients in the wild have met, each
 * as a test. docs/kafka.md tells of the clients themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "calls.h"

/* Stored bytes are those sent, but for the offset and the leader epoch, which the CRC leaves out. */
static void assert_same_batch(const uint8_t *stored, const uint8_t *sent, uint32_t bytes,
                              uint64_t offset)
{
    assert_int_equal(leat_get_be64(stored), offset);
    assert_memory_equal(stored + 8, sent + 8, 4);
    assert_memory_equal(stored + 16, sent + 16, bytes - 16);
}

/* ---- versions ---- */

/* The answer's header is of version 0 whatever is asked; a version that nobody knows is answered in
 * version 0, with the versions that are known. */
static void api_versions_of_unknown_version_is_answered_in_version_0(void **state)
{
    (void)state;
    struct wire_client client;
    const uint8_t *bytes;
    size_t count;
    wire_open(&client, port);
    const uint8_t frame[] = {0, 0, 0, 14, 0, 18, 0, 99, 0, 0, 0, 7, 0xff, 0xff, 1, 2, 3, 4};
    wire_send_bytes(&client, frame, sizeof frame);
    assert_true(wire_next(&client, &bytes, &count));
    assert_int_equal(leat_get_be32(bytes), 7);
    assert_int_equal(leat_get_be16(bytes + 4), LEAT_KAFKA_UNSUPPORTED_VERSION);
    uint32_t keys = leat_get_be32(bytes + 6);
    assert_int_equal(count, 10 + 6 * keys);
    uint32_t apis;
    (void)leat_kafka_apis(&apis);
    assert_int_equal(keys, apis);
    struct leat_kafka_api_versions_request body = {text("tests"), text("1")};
    for (int16_t version = 0; version <= 4; version++) {
        struct leat_kafka_api_versions_response *answer =
            wire_call(&client, LEAT_KAFKA_API_VERSIONS, version, &body);
        assert_int_equal(answer->error_code, LEAT_KAFKA_NONE);
        assert_int_equal(answer->api_keys.count, apis);
    }
    wire_close(&client);
}

/* librdkafka up to 2.11.0 compresses nothing, joins no group and writes no records of format 2
 * unless the very versions by which it knows a feature lie inside what is advertised; zstd wants
 * Produce 7 and Fetch 10; old clients end before the compact versions, new ones begin there. */
static void advertised_ranges_hold_what_clients_look_for(void **state)
{
    (void)state;
    static const struct {
        int16_t key, version;
    } looked_for[] = {{0, 0},  {0, 3},  {0, 7},  {0, 9},  {0, 11}, {1, 4},  {1, 10}, {1, 11},
                      {1, 12}, {1, 17}, {2, 1},  {2, 7},  {3, 0},  {3, 4},  {3, 12}, {8, 1},
                      {8, 2},  {9, 1},  {10, 0}, {10, 4}, {11, 0}, {11, 5}, {12, 0}, {13, 0},
                      {14, 0}, {18, 0}, {18, 3}, {19, 2}, {20, 1}, {22, 0}, {22, 4}, {23, 2},
                      {15, 0}, {16, 0}, {19, 7}, {20, 6}, {21, 0}, {21, 2}, {32, 1}, {32, 4},
                      {33, 0}, {35, 1}, {35, 4}, {37, 0}, {42, 0}, {44, 0}, {60, 0}, {75, 0}};
    struct wire_client client;
    wire_open(&client, port);
    struct leat_kafka_api_versions_request body = {text(""), text("")};
    struct leat_kafka_api_versions_response *answer =
        wire_call(&client, LEAT_KAFKA_API_VERSIONS, 0, &body);
    for (size_t i = 0; i < sizeof looked_for / sizeof *looked_for; i++) {
        bool there = false;
        for (int32_t k = 0; k < answer->api_keys.count; k++)
            there |= answer->api_keys.at[k].api_key == looked_for[i].key &&
                     answer->api_keys.at[k].min_version <= looked_for[i].version &&
                     answer->api_keys.at[k].max_version >= looked_for[i].version;
        if (!there) fail_msg("%d of version %d", looked_for[i].key, looked_for[i].version);
    }
    wire_close(&client);
}

/* Transactions, authentication, quotas, share groups and telemetry: a client that sees these APIs advertised would use
 * them. A client that sends such a request all the same is disconnected. */
static void what_is_not_served_is_not_advertised_and_refused_by_name(void **state)
{
    (void)state;
    static const uint8_t absent[] = {17, 24, 25, 26, 27, 28, 36, 38, 48, 49, 50,
                                     51, 61, 65, 66, 69, 71, 72, 76, 77, 78, 79};
    struct wire_client client;
    wire_open(&client, port);
    struct leat_kafka_api_versions_request body = {text(""), text("")};
    struct leat_kafka_api_versions_response *answer =
        wire_call(&client, LEAT_KAFKA_API_VERSIONS, 3, &body);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        for (int32_t k = 0; k < answer->api_keys.count; k++)
            assert_int_not_equal(answer->api_keys.at[k].api_key, absent[i]);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        const uint8_t frame[] = {0, 0, 0, 10, 0, absent[i], 0, 0, 0, 0, 0, 1, 0xff, 0xff};
        struct wire_client asking;
        wire_open(&asking, port);
        wire_send_bytes(&asking, frame, sizeof frame);
        wire_expect_closed(&asking);
        wire_close(&asking);
    }
    struct leat_kafka_find_coordinator_request find = {.key = text("tx"), .key_type = 1};
    struct leat_kafka_find_coordinator_response *found =
        wire_call(&client, LEAT_KAFKA_FIND_COORDINATOR, 2, &find);
    assert_int_equal(found->error_code, LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 1, "tx", -1, -1);
    make_topic(&client, "transacted");
    struct leat_kafka_produce_request_partition partition = {0, {batch, (int32_t)bytes, NULL}};
    struct leat_kafka_produce_request_topic topic = {text("transacted"), {&partition, 1}};
    struct leat_kafka_produce_request produce_body = {text("tx"), -1, 1000, {&topic, 1}};
    struct leat_kafka_produce_response *produced =
        wire_call(&client, LEAT_KAFKA_PRODUCE, 9, &produce_body);
    assert_int_equal(produced->topics.at[0].partitions.at[0].error_code,
                     LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    wire_close(&client);
}

/* A version that is advertised is read and answered, and its answer can be read. */
static void every_advertised_version_is_answered(void **state)
{
    (void)state;
    uint32_t count;
    const struct leat_kafka_api *apis = leat_kafka_apis(&count);
    struct wire_client client;
    wire_open(&client, port);
    for (uint32_t i = 0; i < count; i++) {
        for (int16_t version = apis[i].first; version <= apis[i].last; version++) {
            const struct leat_kafka_type *type = apis[i].request();
            void *body = calloc(1, type->bytes);
            assert_non_null(body);
            leat_kafka_defaults(type, body);
            if (apis[i].key == LEAT_KAFKA_PRODUCE)
                ((struct leat_kafka_produce_request *)body)->acks = -1; /* 0 asks for no answer */
            (void)wire_call(&client, (enum leat_kafka_key)apis[i].key, version, body);
            free(body);
        }
    }
    wire_close(&client);
}

static void produce_of_versions_0_to_2_is_refused_not_closed(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 1, "x", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "old");
    for (int16_t version = 0; version <= 2; version++)
        assert_int_equal(produce(&client, version, "old", batch, bytes).error_code,
                         LEAT_KAFKA_UNSUPPORTED_VERSION);
    assert_int_equal(produce(&client, 3, "old", batch, bytes).error_code, LEAT_KAFKA_NONE);
    wire_close(&client);
}

static void request_of_unknown_kind_or_version_closes_that_connection_only(void **state)
{
    (void)state;
    const uint8_t unknown[] = {0, 0, 0, 10, 3, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff};
    const uint8_t version[] = {0, 0, 0, 10, 0, 3, 0, 99, 0, 0, 0, 1, 0xff, 0xff};
    const uint8_t huge[] = {0x7f, 0xff, 0xff, 0xff, 0, 3};
    const uint8_t tiny[] = {0, 0, 0, 2, 0, 3};
    const uint8_t lying[] = {0, 0,    0,    18,   0,    3,    0,    1, 0, 0, 0,
                             1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0};
    const struct {
        const uint8_t *bytes;
        size_t count;
    } frames[] = {{unknown, sizeof unknown},
                  {version, sizeof version},
                  {huge, sizeof huge},
                  {tiny, sizeof tiny},
                  {lying, sizeof lying}};
    struct wire_client witness, client;
    wire_open(&witness, port);
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        wire_open(&client, port);
        wire_send_bytes(&client, frames[i].bytes, frames[i].count);
        wire_expect_closed(&client);
        wire_close(&client);
    }
    (void)metadata(&witness, 1, NULL, -1, false);
    wire_close(&witness);
}

static void frame_cut_off_disturbs_nobody(void **state)
{
    (void)state;
    struct wire_client client, other;
    const uint8_t half[] = {0, 0, 1, 0, 0, 3, 0};
    wire_open(&client, port);
    wire_send_bytes(&client, half, sizeof half);
    wire_open(&other, port);
    (void)metadata(&other, 1, NULL, -1, false);
    wire_close(&client);
    (void)metadata(&other, 1, NULL, -1, false);
    wire_close(&other);
}

/* ---- metadata ---- */

/* Version 0: an empty list is all topics. From 1 on null is all, and empty is none. */
static void metadata_empty_and_null_lists_mean_what_their_version_says(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "listed");
    assert_true(metadata(&client, 0, NULL, 0, false)->topics.count > 0);
    assert_true(metadata(&client, 1, NULL, -1, false)->topics.count > 0);
    assert_int_equal(metadata(&client, 1, NULL, 0, false)->topics.count, 0);
    assert_true(metadata(&client, 12, NULL, -1, false)->topics.count > 0);
    assert_int_equal(metadata(&client, 12, NULL, 0, false)->topics.count, 0);
    wire_close(&client);
}

static void metadata_creates_only_when_the_client_allows_it(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    struct leat_kafka_metadata_response *answer = metadata(&client, 4, "by-asking", 1, false);
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    /* Before version 4 nothing says so, and it is allowed. */
    answer = metadata(&client, 1, "by-asking", 1, false);
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_NONE);
    assert_int_equal(answer->topics.at[0].partitions.at[0].leader_id,
                     answer->brokers.at[0].node_id);
    answer = metadata(&client, 4, "not a name", 1, true);
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_INVALID_TOPIC_EXCEPTION);
    wire_close(&client);
}

static struct leat_kafka_uuid topic_id(struct wire_client *client, const char *name)
{
    struct leat_kafka_metadata_response *answer = metadata(client, 12, name, 1, true);
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_NONE);
    return answer->topics.at[0].topic_id;
}

/* A topic of the same name is another topic: its id was never used before. */
static void topic_ids_are_found_and_never_used_again(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    struct leat_kafka_uuid first = topic_id(&client, "phoenix");
    struct leat_kafka_metadata_request_topic by_id = {.topic_id = first, .name = {NULL, -1}};
    struct leat_kafka_metadata_request body = {.topics = {&by_id, 1}};
    struct leat_kafka_metadata_response *answer =
        wire_call(&client, LEAT_KAFKA_METADATA, 12, &body);
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_NONE);
    assert_int_equal(answer->topics.at[0].name.bytes, 7);

    struct leat_kafka_delete_topics_request_topic gone = {text("phoenix"), {{0}}};
    struct leat_kafka_delete_topics_request delete = {.topics = {&gone, 1}, .timeout_ms = 1000};
    struct leat_kafka_delete_topics_response *deleted =
        wire_call(&client, LEAT_KAFKA_DELETE_TOPICS, 6, &delete);
    assert_int_equal(deleted->topics.at[0].error_code, LEAT_KAFKA_NONE);
    struct leat_kafka_uuid second = topic_id(&client, "phoenix");
    assert_memory_not_equal(&first, &second, sizeof first);
    answer = wire_call(&client, LEAT_KAFKA_METADATA, 12, &body);
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_UNKNOWN_TOPIC_ID);
    assert_int_equal(fetch_one(&client, 13, (struct fetching){.id = first, .epoch = -1}).error_code,
                     LEAT_KAFKA_UNKNOWN_TOPIC_ID);
    assert_int_equal(
        fetch_one(&client, 13, (struct fetching){.id = second, .epoch = -1}).error_code,
        LEAT_KAFKA_NONE);
    wire_close(&client);
}

/* Versions 10 and 11 have a place for an id that nobody may ask by; a name counts, whatever stands there. */
static void metadata_is_asked_by_id_from_version_12_on_only(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    const struct leat_kafka_uuid id = topic_id(&client, "numbered");
    for (int16_t version = 10; version <= 13; version++) {
        struct leat_kafka_metadata_request_topic asked = {.topic_id = id, .name = {NULL, -1}};
        struct leat_kafka_metadata_request body = {.topics = {&asked, 1}};
        struct leat_kafka_metadata_response *answer =
            wire_call(&client, LEAT_KAFKA_METADATA, version, &body);
        assert_int_equal(answer->topics.count, 1);
        assert_int_equal(answer->topics.at[0].error_code,
                         version < 12 ? LEAT_KAFKA_INVALID_REQUEST : LEAT_KAFKA_NONE);
        asked =
            (struct leat_kafka_metadata_request_topic){.topic_id = {{1}}, .name = text("numbered")};
        answer = wire_call(&client, LEAT_KAFKA_METADATA, version, &body);
        assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_NONE);
        assert_memory_equal(&answer->topics.at[0].topic_id, &id, sizeof id);
    }
    wire_close(&client);
}

/* Pages of two: each goes on where the cursor of the one before points. */
static void topic_partitions_are_described_in_pages(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    struct leat_kafka_create_topics_request_topic topic = {
        .name = text("paged"), .num_partitions = 5, .replication_factor = -1};
    struct leat_kafka_create_topics_request create = {.topics = {&topic, 1}, .timeout_ms = 1000};
    struct leat_kafka_create_topics_response *made =
        wire_call(&client, LEAT_KAFKA_CREATE_TOPICS, 7, &create);
    assert_int_equal(made->topics.at[0].error_code, LEAT_KAFKA_NONE);
    struct leat_kafka_describe_topic_partitions_request_topic names[] = {{text("zz-nowhere")},
                                                                         {text("paged")}};
    struct leat_kafka_describe_topic_partitions_request body = {
        .topics = {names, 2}, .response_partition_limit = 2, .cursor = {{NULL, -1}, 0}};
    for (int32_t from = 0; from < 4; from += 2) {
        struct leat_kafka_describe_topic_partitions_response *page =
            wire_call(&client, LEAT_KAFKA_DESCRIBE_TOPIC_PARTITIONS, 0, &body);
        assert_int_equal(page->topics.count, 1);
        assert_int_equal(page->topics.at[0].partitions.count, 2);
        assert_int_equal(page->topics.at[0].partitions.at[0].partition_index, from);
        assert_int_equal(page->next_cursor.partition_index, from + 2);
        assert_memory_equal(page->next_cursor.topic_name.text, "paged", 5);
        body.cursor.topic_name = text("paged");
        body.cursor.partition_index = from + 2;
    }
    struct leat_kafka_describe_topic_partitions_response *page =
        wire_call(&client, LEAT_KAFKA_DESCRIBE_TOPIC_PARTITIONS, 0, &body);
    assert_int_equal(page->topics.count, 2);
    assert_int_equal(page->topics.at[0].partitions.count, 1);
    assert_int_equal(page->topics.at[1].error_code, LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_null(page->next_cursor.topic_name.text);
    wire_close(&client);
}

/* ---- records ---- */

/* A batch is read as it was sent, byte for byte, in every version, by Kafka's clients and by native clients. */
static void batch_is_read_as_it_was_sent_in_every_version(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint64_t offset = 0;
    wire_open(&client, port);
    make_topic(&client, "same");
    struct leat_kafka_uuid id = topic_id(&client, "same");
    for (int16_t version = 3; version <= 11; version++) {
        uint32_t bytes = make_batch(batch, 3, "value of a record", -1, -1);
        struct leat_kafka_produce_response_partition put =
            produce(&client, version, "same", batch, bytes);
        assert_int_equal(put.error_code, LEAT_KAFKA_NONE);
        assert_int_equal(put.base_offset, offset);
        for (int16_t reading = 4; reading <= 17; reading++) {
            struct leat_kafka_fetch_response_partition got = fetch_one(
                &client, reading,
                (struct fetching){
                    .name = "same", .id = id, .offset = (int64_t)offset + 1, .epoch = -1});
            assert_int_equal(got.error_code, LEAT_KAFKA_NONE);
            assert_int_equal(got.high_watermark, offset + 3);
            assert_int_equal(got.records.count, bytes);
            assert_same_batch(got.records.at, batch, bytes, offset);
        }
        offset += 3;
    }
    wire_close(&client);

    struct rig_conn native;
    struct rig_stream stream;
    rig_open(&server, &native, -1);
    assert_int_equal(rig_metadata(&native, "same", false, &stream), LEAT_OK);
    assert_int_equal(stream.logs, 1);
    char last[64];
    assert_int_equal(rig_read_all(&native, &stream, 0, last, sizeof last), offset);
    assert_string_equal(last, "value of a record");
    uint32_t bytes = make_batch(batch, 2, "native", -1, -1);
    assert_int_equal(rig_append(&native, &stream, 0, batch, bytes, NULL, NULL), LEAT_OK);
    rig_close(&native);
    wire_open(&client, port);
    struct leat_kafka_fetch_response_partition got = fetch_one(
        &client, 11, (struct fetching){.name = "same", .offset = (int64_t)offset, .epoch = -1});
    assert_same_batch(got.records.at, batch, bytes, offset);
    wire_close(&client);
}

/* A batch sent twice is there once and gets its first offset; a gap is refused by name. */
static void producer_sequences_are_checked(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    wire_open(&client, port);
    make_topic(&client, "once");
    struct leat_kafka_init_producer_id_request body = {{NULL, -1}, 60000, -1, -1};
    struct leat_kafka_init_producer_id_response *id =
        wire_call(&client, LEAT_KAFKA_INIT_PRODUCER_ID, 4, &body);
    assert_int_equal(id->error_code, LEAT_KAFKA_NONE);
    int64_t producer = id->producer_id;
    assert_true(producer >= 0);
    uint32_t bytes = make_batch(batch, 2, "a", producer, 0);
    for (int i = 0; i < 3; i++) {
        struct leat_kafka_produce_response_partition put =
            produce(&client, 7, "once", batch, bytes);
        assert_int_equal(put.error_code, LEAT_KAFKA_NONE);
        assert_int_equal(put.base_offset, 0);
    }
    bytes = make_batch(batch, 2, "b", producer, 4);
    struct leat_kafka_produce_response_partition gap = produce(&client, 9, "once", batch, bytes);
    assert_int_equal(gap.error_code, LEAT_KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER);
    assert_true(gap.error_message.bytes > 0);
    bytes = make_batch(batch, 2, "b", producer, 2);
    assert_int_equal(produce(&client, 7, "once", batch, bytes).base_offset, 2);
    /* An id that is named is not given again: of two clients that name 0 one would be taken for the
     * other's duplicates. */
    body.producer_id = producer;
    body.producer_epoch = 0;
    id = wire_call(&client, LEAT_KAFKA_INIT_PRODUCER_ID, 4, &body);
    assert_int_not_equal(id->producer_id, producer);
    assert_int_equal(id->producer_epoch, 0);
    /* The next epoch of an id shuts out the one before. */
    bytes = rig_batch(batch, sizeof batch, 1, "c", producer, 1, 0);
    assert_int_equal(produce(&client, 7, "once", batch, bytes).base_offset, 4);
    bytes = make_batch(batch, 2, "d", producer, 4);
    assert_int_equal(produce(&client, 7, "once", batch, bytes).error_code,
                     LEAT_KAFKA_INVALID_PRODUCER_EPOCH);
    body.transactional_id = text("tx");
    id = wire_call(&client, LEAT_KAFKA_INIT_PRODUCER_ID, 1, &body);
    assert_int_equal(id->error_code, LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    wire_close(&client);
}

/* Its topic is deleted and made again: the producer goes on with its next sequence, which only such a
 * topic takes, and is watched from there on. */
static void producer_goes_on_in_a_topic_made_again(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    const int64_t producer = 90000001;
    wire_open(&client, port);
    uint32_t bytes = make_batch(batch, 2, "a", producer, 0);
    for (int life = 0; life < 2; life++) {
        (void)topic_id(&client, "undead");
        struct leat_kafka_produce_response_partition put =
            produce(&client, 7, "undead", batch, bytes);
        assert_int_equal(put.error_code, LEAT_KAFKA_NONE);
        assert_int_equal(put.base_offset, 0);
        if (life == 1) break;
        struct leat_kafka_delete_topics_request_topic gone = {text("undead"), {{0}}};
        struct leat_kafka_delete_topics_request delete = {.topics = {&gone, 1}, .timeout_ms = 1000};
        (void)wire_call(&client, LEAT_KAFKA_DELETE_TOPICS, 6, &delete);
        bytes = make_batch(batch, 2, "b", producer, 2);
    }
    bytes = make_batch(batch, 2, "c", producer, 8);
    assert_int_equal(produce(&client, 7, "undead", batch, bytes).error_code,
                     LEAT_KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER);
    (void)topic_id(&client, "fresh");
    assert_int_equal(produce(&client, 7, "fresh", batch, bytes).error_code,
                     LEAT_KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER);
    wire_close(&client);
}

static void batch_that_is_damaged_or_none_is_refused_by_name(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    wire_open(&client, port);
    make_topic(&client, "strict");
    uint32_t bytes = make_batch(batch, 2, "fine", -1, -1);
    batch[bytes - 1] ^= 1;
    assert_int_equal(produce(&client, 8, "strict", batch, bytes).error_code,
                     LEAT_KAFKA_CORRUPT_MESSAGE);
    batch[bytes - 1] ^= 1;
    assert_int_equal(produce(&client, 8, "strict", batch, bytes - 1).error_code,
                     LEAT_KAFKA_INVALID_RECORD);
    batch[16] = 1; /* a format of old */
    assert_int_not_equal(produce(&client, 8, "strict", batch, bytes).error_code, LEAT_KAFKA_NONE);
    batch[16] = 2;
    assert_int_equal(produce(&client, 8, "nowhere", batch, bytes).error_code,
                     LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(produce(&client, 8, "strict", batch, bytes).base_offset, 0);
    wire_close(&client);
}

/* A batch with acks 0 is appended like any other, and gets no answer. */
static void produce_without_acks_is_appended_and_not_answered(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 1, "quiet", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "quiet");
    (void)send_produce(&client, 7, 0, "quiet", batch, bytes);
    (void)send_produce(&client, 7, 0, "quiet", batch, bytes);
    struct leat_kafka_produce_response_partition put = produce(&client, 7, "quiet", batch, bytes);
    assert_int_equal(put.base_offset, 2);
    (void)send_produce(&client, 7, 0, "no-such-topic", batch, bytes);
    wire_expect_closed(&client);
    wire_close(&client);
}

/* ---- fetch ---- */

/* A request that comes after a waiting request is answered after it. */
static void answers_keep_the_order_of_requests(void **state)
{
    (void)state;
    struct wire_client reader, writer;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 1, "late", -1, -1);
    wire_open(&reader, port);
    make_topic(&reader, "late");
    wire_open(&writer, port);
    struct fetching f = {.name = "late", .epoch = -1, .wait_ms = 20000};
    int32_t first = send_fetch(&reader, 11, f);
    f.wait_ms = 0;
    int32_t second = send_fetch(&reader, 11, f);
    struct leat_kafka_metadata_request body = {.topics = {NULL, 0}};
    int32_t third = wire_send(&reader, LEAT_KAFKA_METADATA, 1, &body);
    assert_int_equal(produce(&writer, 7, "late", batch, bytes).base_offset, 0);
    struct leat_kafka_fetch_response *answer = wire_answer(&reader, LEAT_KAFKA_FETCH, 11, first);
    assert_int_equal(answer->topics.at[0].partitions.at[0].records.count, bytes);
    answer = wire_answer(&reader, LEAT_KAFKA_FETCH, 11, second);
    assert_int_equal(answer->topics.at[0].partitions.at[0].records.count, bytes);
    (void)wire_answer(&reader, LEAT_KAFKA_METADATA, 1, third);
    /* One that waits is no hindrance to going. */
    f.offset = 1;
    f.wait_ms = 20000;
    (void)send_fetch(&reader, 11, f);
    wire_close(&reader);
    assert_int_equal(produce(&writer, 7, "late", batch, bytes).base_offset, 1);
    wire_close(&writer);
}

static void fetch_session_is_declined(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "session");
    struct fetching f = {.name = "session", .epoch = -1};
    assert_int_equal(fetch(&client, 7, f)->session_id, 0);
    f.session_id = 77;
    f.session_epoch = 3;
    assert_int_equal(fetch(&client, 12, f)->error_code, LEAT_KAFKA_FETCH_SESSION_ID_NOT_FOUND);
    wire_close(&client);
}

static void leader_epochs_of_others_are_refused(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "epochs");
    int32_t epoch =
        metadata(&client, 7, "epochs", 1, false)->topics.at[0].partitions.at[0].leader_epoch;
    assert_true(epoch > 0);
    struct fetching f = {.name = "epochs", .epoch = epoch};
    assert_int_equal(fetch_one(&client, 12, f).error_code, LEAT_KAFKA_NONE);
    f.epoch = epoch - 1;
    assert_int_equal(fetch_one(&client, 12, f).error_code, LEAT_KAFKA_FENCED_LEADER_EPOCH);
    f.epoch = epoch + 1;
    assert_int_equal(fetch_one(&client, 12, f).error_code, LEAT_KAFKA_UNKNOWN_LEADER_EPOCH);
    f.epoch = -1;
    f.offset = 5;
    assert_int_equal(fetch_one(&client, 12, f).error_code, LEAT_KAFKA_OFFSET_OUT_OF_RANGE);
    wire_close(&client);
}

/* The first batch comes whatever its size; the limits hold for what follows. */
static void fetch_limits_hold_behind_the_first_batch(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 10, "a value of some length, so that it adds up", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "limits");
    for (int i = 0; i < 4; i++)
        assert_int_equal(produce(&client, 7, "limits", batch, bytes).error_code, LEAT_KAFKA_NONE);
    struct fetching f = {.name = "limits", .epoch = -1, .partition_max_bytes = 1};
    assert_int_equal(fetch_one(&client, 11, f).records.count, bytes);
    f.partition_max_bytes = (int32_t)bytes * 2;
    assert_int_equal(fetch_one(&client, 11, f).records.count, 2 * bytes);
    wire_close(&client);
}

/* Bytes of records in one answer about all of them. */
static uint32_t records_of_all(struct wire_client *client, int16_t version, const char **names,
                               int32_t count, uint32_t limit)
{
    struct leat_kafka_fetch_request_partition partitions[3];
    struct leat_kafka_fetch_request_topic topics[3] = {0};
    struct leat_kafka_fetch_request body;
    leat_kafka_defaults(leat_kafka_type_fetch_request(), &body);
    for (int32_t i = 0; i < count; i++) {
        partitions[i] = (struct leat_kafka_fetch_request_partition){
            .current_leader_epoch = -1, .last_fetched_epoch = -1, .partition_max_bytes = 1 << 20};
        topics[i].topic = text(names[i]);
        topics[i].partitions.at = &partitions[i];
        topics[i].partitions.count = 1;
    }
    body.max_bytes = (int32_t)limit;
    body.topics.at = topics;
    body.topics.count = count;
    body.rack_id = text("");
    struct leat_kafka_fetch_response *answer = wire_call(client, LEAT_KAFKA_FETCH, version, &body);
    uint32_t records = 0;
    for (int32_t i = 0; i < answer->topics.count; i++)
        records += (uint32_t)answer->topics.at[i].partitions.at[0].records.count;
    return records;
}

/* "At least one batch" holds for the answer, not for each partition: a client has room for the bytes that it asked for,
 * and for that one batch. */
static void fetch_exceeds_its_limit_by_no_batch_of_a_later_partition(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    const char *names[] = {"later-a", "later-b", "later-c"};
    uint32_t bytes = make_batch(batch, 10, "a value of some length, so that it adds up", -1, -1);
    wire_open(&client, port);
    for (int topic = 0; topic < 3; topic++) {
        make_topic(&client, names[topic]);
        for (int i = 0; i < 2; i++)
            assert_int_equal(produce(&client, 7, names[topic], batch, bytes).error_code,
                             LEAT_KAFKA_NONE);
    }
    for (int16_t version = 4; version <= 12; version++) {
        for (uint32_t limit = 1; limit <= 7 * bytes; limit += bytes / 2) {
            uint32_t count = limit < bytes ? 1 : limit / bytes > 6 ? 6 : limit / bytes;
            assert_int_equal(records_of_all(&client, version, names, 3, limit), count * bytes);
        }
    }
    wire_close(&client);
}

/* ---- offsets ---- */

static void offsets_are_listed_by_end_and_by_time(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 3, "timed", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "timed");
    assert_int_equal(produce(&client, 7, "timed", batch, bytes).error_code, LEAT_KAFKA_NONE);
    int64_t newest = (int64_t)leat_get_be64(batch + 35);
    for (int16_t version = 1; version <= 8; version++) {
        assert_int_equal(list_offset(&client, version, "timed", -1).offset, 3);
        assert_int_equal(list_offset(&client, version, "timed", -2).offset, 0);
        assert_int_equal(list_offset(&client, version, "timed", 0).offset, 0);
        /* Nothing is that young: -1, not the end. */
        assert_int_equal(list_offset(&client, version, "timed", newest + 1).offset, -1);
        assert_int_equal(list_offset(&client, version, "timed", -3).timestamp, newest);
        assert_int_equal(list_offset(&client, version, "nowhere", -1).error_code,
                         LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    }
    wire_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(api_versions_of_unknown_version_is_answered_in_version_0),
        cmocka_unit_test(advertised_ranges_hold_what_clients_look_for),
        cmocka_unit_test(what_is_not_served_is_not_advertised_and_refused_by_name),
        cmocka_unit_test(every_advertised_version_is_answered),
        cmocka_unit_test(produce_of_versions_0_to_2_is_refused_not_closed),
        cmocka_unit_test(request_of_unknown_kind_or_version_closes_that_connection_only),
        cmocka_unit_test(frame_cut_off_disturbs_nobody),
        cmocka_unit_test(metadata_empty_and_null_lists_mean_what_their_version_says),
        cmocka_unit_test(metadata_creates_only_when_the_client_allows_it),
        cmocka_unit_test(topic_ids_are_found_and_never_used_again),
        cmocka_unit_test(metadata_is_asked_by_id_from_version_12_on_only),
        cmocka_unit_test(topic_partitions_are_described_in_pages),
        cmocka_unit_test(batch_is_read_as_it_was_sent_in_every_version),
        cmocka_unit_test(producer_sequences_are_checked),
        cmocka_unit_test(producer_goes_on_in_a_topic_made_again),
        cmocka_unit_test(batch_that_is_damaged_or_none_is_refused_by_name),
        cmocka_unit_test(produce_without_acks_is_appended_and_not_answered),
        cmocka_unit_test(answers_keep_the_order_of_requests),
        cmocka_unit_test(fetch_session_is_declined),
        cmocka_unit_test(leader_epochs_of_others_are_refused),
        cmocka_unit_test(fetch_limits_hold_behind_the_first_batch),
        cmocka_unit_test(fetch_exceeds_its_limit_by_no_batch_of_a_later_partition),
        cmocka_unit_test(offsets_are_listed_by_end_and_by_time),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
