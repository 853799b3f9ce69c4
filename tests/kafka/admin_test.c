/* SPDX-License-Identifier: Apache-2.0 */
/* A real leatd and what administrators of Kafka ask of it: records deleted, configurations changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "calls.h"

/* ---- DeleteRecords ---- */

static struct leat_kafka_delete_records_response_partition
delete_records(struct wire_client *client, int16_t version, const char *name, int64_t before)
{
    struct leat_kafka_delete_records_request_partition partition = {0, before};
    struct leat_kafka_delete_records_request_topic topic = {text(name), {&partition, 1}};
    struct leat_kafka_delete_records_request body = {{&topic, 1}, 1000};
    struct leat_kafka_delete_records_response *answer =
        wire_call(client, LEAT_KAFKA_DELETE_RECORDS, version, &body);
    assert_int_equal(answer->topics.count, 1);
    assert_int_equal(answer->topics.at[0].partitions.count, 1);
    return answer->topics.at[0].partitions.at[0];
}

/* The partition begins there, whoever is asked: and below it the answer names the range. */
static void begins_at(struct wire_client *client, const char *name, int64_t first)
{
    assert_int_equal(list_offset(client, 5, name, -2).offset, first);
    struct fetching f = {.name = name, .offset = first, .epoch = -1};
    struct leat_kafka_fetch_response_partition part = fetch_one(client, 11, f);
    assert_int_equal(part.error_code, LEAT_KAFKA_NONE);
    assert_int_equal(part.log_start_offset, first);
    if (first == 0) return;
    f.offset = first - 1;
    part = fetch_one(client, 11, f);
    assert_int_equal(part.error_code, LEAT_KAFKA_OFFSET_OUT_OF_RANGE);
}

static void records_deleted_inside_a_batch_stay_deleted(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 10, "deleted", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "deleted");
    for (int i = 0; i < 3; i++)
        assert_int_equal(produce(&client, 7, "deleted", batch, bytes).error_code, LEAT_KAFKA_NONE);
    for (int16_t version = 0; version <= 2; version++) {
        int64_t before = 4 + 7 * version;
        struct leat_kafka_delete_records_response_partition part =
            delete_records(&client, version, "deleted", before);
        assert_int_equal(part.error_code, LEAT_KAFKA_NONE);
        assert_int_equal(part.low_watermark, before);
        begins_at(&client, "deleted", before);
    }
    /* Nothing comes back, and nothing goes that was not asked for. */
    assert_int_equal(delete_records(&client, 2, "deleted", 3).low_watermark, 18);
    begins_at(&client, "deleted", 18);
    assert_int_equal(list_offset(&client, 5, "deleted", -1).offset, 30);
    wire_close(&client);
    assert_int_equal(rig_end(&server, 9), -9);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    const char *flags[] = {"--kafka", address, "--cores", "2", "--memory", "256M", NULL};
    rig_start(&server, flags);
    wire_open(&client, port);
    begins_at(&client, "deleted", 18);
    assert_int_equal(list_offset(&client, 5, "deleted", -1).offset, 30);
    /* All of it: the end stays where it is. */
    assert_int_equal(delete_records(&client, 1, "deleted", -1).low_watermark, 30);
    begins_at(&client, "deleted", 30);
    assert_int_equal(produce(&client, 7, "deleted", batch, bytes).base_offset, 30);
    wire_close(&client);
}

static void deletion_of_records_that_are_not_there_is_refused_by_name(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 10, "kept", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "kept");
    assert_int_equal(produce(&client, 7, "kept", batch, bytes).error_code, LEAT_KAFKA_NONE);
    struct leat_kafka_delete_records_response_partition part =
        delete_records(&client, 2, "kept", 11);
    assert_int_equal(part.error_code, LEAT_KAFKA_OFFSET_OUT_OF_RANGE);
    assert_int_equal(part.low_watermark, -1);
    assert_int_equal(delete_records(&client, 2, "kept", -2).error_code,
                     LEAT_KAFKA_OFFSET_OUT_OF_RANGE);
    assert_int_equal(delete_records(&client, 2, "nowhere", 0).error_code,
                     LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    begins_at(&client, "kept", 0);
    wire_close(&client);
}

/* ---- DescribeLogDirs ---- */

/* Bytes stored of a partition; -1: the answer does not have the partition. topic NULL: the request is for all
 * topics. */
static int64_t stored_bytes(struct wire_client *client, int16_t version, const char *topic,
                            int32_t partition, const char *wanted)
{
    struct leat_kafka_describe_log_dirs_request_topic asked = {text(topic), {&partition, 1}};
    struct leat_kafka_describe_log_dirs_request body = {{&asked, topic != NULL ? 1 : -1}};
    struct leat_kafka_describe_log_dirs_response *answer =
        wire_call(client, LEAT_KAFKA_DESCRIBE_LOG_DIRS, version, &body);
    assert_int_equal(answer->error_code, LEAT_KAFKA_NONE);
    assert_int_equal(answer->results.count, 1);
    struct leat_kafka_describe_log_dirs_response_result *dir = answer->results.at;
    assert_int_equal(dir->error_code, LEAT_KAFKA_NONE);
    assert_true(dir->log_dir.bytes > 0);
    assert_int_equal(dir->total_bytes, -1); /* not known */
    for (int32_t t = 0; t < dir->topics.count; t++) {
        struct leat_kafka_describe_log_dirs_response_topic *found = &dir->topics.at[t];
        if (found->name.bytes != (int32_t)strlen(wanted) ||
            memcmp(found->name.text, wanted, strlen(wanted)) != 0)
            continue;
        for (int32_t p = 0; p < found->partitions.count; p++) {
            if (found->partitions.at[p].partition_index != partition) continue;
            assert_int_equal(found->partitions.at[p].offset_lag, 0);
            assert_false(found->partitions.at[p].is_future_key);
            return found->partitions.at[p].partition_size;
        }
    }
    return -1;
}

static void log_dirs_tell_how_much_is_stored(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 20, "stored", -1, -1);
    wire_open(&client, port);
    struct leat_kafka_create_topics_request_topic topic = {
        .name = text("weighed"), .num_partitions = 3, .replication_factor = -1};
    struct leat_kafka_create_topics_request create = {.topics = {&topic, 1}, .timeout_ms = 1000};
    struct leat_kafka_create_topics_response *made =
        wire_call(&client, LEAT_KAFKA_CREATE_TOPICS, 7, &create);
    assert_int_equal(made->topics.at[0].error_code, LEAT_KAFKA_NONE);
    assert_int_equal(produce(&client, 7, "weighed", batch, bytes).error_code, LEAT_KAFKA_NONE);
    for (int16_t version = 0; version <= 4; version++) {
        int64_t before = stored_bytes(&client, version, "weighed", 0, "weighed");
        assert_true(before >= (version + 1) * (int64_t)bytes);
        assert_int_equal(stored_bytes(&client, version, NULL, 0, "weighed"), before);
        assert_int_equal(produce(&client, 7, "weighed", batch, bytes).error_code, LEAT_KAFKA_NONE);
        assert_true(stored_bytes(&client, version, "weighed", 0, "weighed") >= before + bytes);
        /* The others of the topic, which live on other cores too: next to nothing. */
        for (int32_t p = 1; p < 3; p++) {
            assert_in_range(stored_bytes(&client, version, "weighed", p, "weighed"), 0, before - 1);
            assert_in_range(stored_bytes(&client, version, NULL, p, "weighed"), 0, before - 1);
        }
        assert_int_equal(stored_bytes(&client, version, "weighed", 3, "weighed"), -1);
        assert_int_equal(stored_bytes(&client, version, "nowhere", 0, "nowhere"), -1);
    }
    wire_close(&client);
}

/* ---- configurations ---- */

static int16_t alter(struct wire_client *client, const char *topic, const char *name,
                     const char *value)
{
    struct leat_kafka_incremental_alter_configs_request_config config = {
        text(name), (int8_t)(value == NULL), text(value)};
    struct leat_kafka_incremental_alter_configs_request_resource resource = {
        2, text(topic), {&config, 1}};
    struct leat_kafka_incremental_alter_configs_request body = {{&resource, 1}, false};
    struct leat_kafka_incremental_alter_configs_response *answer =
        wire_call(client, LEAT_KAFKA_INCREMENTAL_ALTER_CONFIGS, 1, &body);
    struct leat_kafka_alter_configs_response_result *result = answer->results.at;
    assert_int_equal(answer->results.count, 1);
    if (result->error_code != LEAT_KAFKA_NONE) {
        /* Whatever is refused is named. */
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%.*s", result->error_message.bytes,
                 result->error_message.text);
        assert_non_null(strstr(sentence, name));
    }
    return result->error_code;
}

static void expect_config(struct wire_client *client, const char *topic, const char *name,
                          const char *value)
{
    struct leat_kafka_string key = text(name);
    struct leat_kafka_describe_configs_request_resource resource = {2, text(topic), {&key, 1}};
    struct leat_kafka_describe_configs_request body = {{&resource, 1}, false, false};
    struct leat_kafka_describe_configs_response *answer =
        wire_call(client, LEAT_KAFKA_DESCRIBE_CONFIGS, 4, &body);
    assert_int_equal(answer->results.count, 1);
    assert_int_equal(answer->results.at[0].configs.count, 1);
    const struct leat_kafka_describe_configs_response_config *config =
        &answer->results.at[0].configs.at[0];
    assert_false(config->read_only);
    assert_int_equal(config->value.bytes, strlen(value));
    assert_memory_equal(config->value.text, value, strlen(value));
}

static void max_message_bytes_is_enforced_as_soon_as_it_is_changed(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t small[4096], large[4096], sent[4096];
    uint32_t small_bytes = make_batch(small, 1, "sized", -1, -1);
    uint32_t large_bytes = make_batch(large, 20, "sized", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "sized");
    expect_config(&client, "sized", "max.message.bytes", "2097152");
    assert_true(small_bytes <= 128 && large_bytes > 128);
    assert_int_equal(produce(&client, 7, "sized", large, large_bytes).error_code, LEAT_KAFKA_NONE);
    struct leat_kafka_init_producer_id_request body = {{NULL, -1}, 60000, -1, -1};
    struct leat_kafka_init_producer_id_response *id =
        wire_call(&client, LEAT_KAFKA_INIT_PRODUCER_ID, 4, &body);
    uint32_t sent_bytes = make_batch(sent, 20, "sized", id->producer_id, 0);
    assert_int_equal(produce(&client, 7, "sized", sent, sent_bytes).base_offset, 20);
    assert_int_equal(alter(&client, "sized", "max.message.bytes", "128"), LEAT_KAFKA_NONE);
    expect_config(&client, "sized", "max.message.bytes", "128");
    assert_int_equal(produce(&client, 7, "sized", large, large_bytes).error_code,
                     LEAT_KAFKA_MESSAGE_TOO_LARGE);
    assert_int_equal(produce(&client, 7, "sized", small, small_bytes).base_offset, 40);
    /* What was appended before is there: told otherwise, a producer would append it in pieces. */
    assert_int_equal(produce(&client, 7, "sized", sent, sent_bytes).base_offset, 20);
    const char *const refused[] = {"127", "2097153", "many", "-1"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(alter(&client, "sized", "max.message.bytes", refused[i]),
                         LEAT_KAFKA_INVALID_CONFIG);
    expect_config(&client, "sized", "max.message.bytes", "128");
    assert_int_equal(alter(&client, "sized", "max.message.bytes", NULL), LEAT_KAFKA_NONE);
    assert_int_equal(produce(&client, 7, "sized", large, large_bytes).base_offset, 41);
    wire_close(&client);
}

/* The stored batch has the time of its append, and a CRC that is right; the answer says that time; a
 * time is found by it. What is repeated is there once. */
static void log_append_time_is_set_in_the_stored_batch(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 5, "timed", -1, -1);
    wire_open(&client, port);
    make_topic(&client, "stamped");
    assert_int_equal(produce(&client, 7, "stamped", batch, bytes).log_append_time_ms, -1);
    assert_int_equal(alter(&client, "stamped", "message.timestamp.type", "LogAppendTime"),
                     LEAT_KAFKA_NONE);
    expect_config(&client, "stamped", "message.timestamp.type", "LogAppendTime");
    struct leat_kafka_produce_response_partition answer =
        produce(&client, 7, "stamped", batch, bytes);
    assert_int_equal(answer.base_offset, 5);
    assert_true(answer.log_append_time_ms > 1600000000000);
    struct fetching f = {.name = "stamped", .offset = 5, .epoch = -1};
    struct leat_kafka_fetch_response_partition part = fetch_one(&client, 11, f);
    struct leat_batch stored;
    assert_int_equal(leat_batch_check(part.records.at, (size_t)part.records.count, &stored, NULL),
                     LEAT_OK);
    assert_int_equal(stored.attributes, 8);
    assert_int_equal(stored.max_timestamp_ms, answer.log_append_time_ms);
    assert_int_equal(stored.base_timestamp_ms, 1000);
    assert_int_equal(list_offset(&client, 7, "stamped", 2000).offset, 5);
    assert_int_equal(list_offset(&client, 7, "stamped", answer.log_append_time_ms).offset, 5);
    assert_int_equal(list_offset(&client, 7, "stamped", answer.log_append_time_ms + 1).offset, -1);
    assert_int_equal(list_offset(&client, 7, "stamped", -3).timestamp, answer.log_append_time_ms);
    assert_int_equal(alter(&client, "stamped", "message.timestamp.type", "Yesterday"),
                     LEAT_KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(&client, "stamped", "message.timestamp.type", "CreateTime"),
                     LEAT_KAFKA_NONE);
    assert_int_equal(produce(&client, 7, "stamped", batch, bytes).log_append_time_ms, -1);
    /* A producer that claims to be the log is refused. */
    leat_batch_set_append_time(batch, bytes, 77);
    assert_int_equal(produce(&client, 7, "stamped", batch, bytes).error_code,
                     LEAT_KAFKA_UNSUPPORTED_FOR_MESSAGE_FORMAT);
    wire_close(&client);
}

static void configurations_that_are_not_here_are_refused_by_name(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"cleanup.policy", "compact"},
        {"compression.type", "brotli"},
        {"flush.messages", "9223372036854775807"}, /* another durability */
        {"leat.segment.bytes", "16384"},
        {"message.format.version", "2.0"},
        {"unclean.leader.election.enable", "true"},
        {"min.insync.replicas", "2"}, /* of one copy */
        {"min.insync.replicas", "0"},
        {"leat.durability", "memory"},
        {"remote.storage.enable", "true"},
        {"segment.bytes", "1"},
        {"retention.ms", "soon"},
    };
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "configured");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(alter(&client, "configured", rows[i][0], rows[i][1]),
                         LEAT_KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(&client, "configured", "min.insync.replicas", "1"), LEAT_KAFKA_NONE);
    assert_int_equal(alter(&client, "configured", "cleanup.policy", "delete"), LEAT_KAFKA_NONE);
    /* Nor is it said that something goes back to its default which does not. */
    struct leat_kafka_create_topics_request_config config = {text("leat.durability"),
                                                             text("memory")};
    struct leat_kafka_create_topics_request_topic topic = {.name = text("chosen"),
                                                           .num_partitions = -1,
                                                           .replication_factor = -1,
                                                           .configs = {&config, 1}};
    struct leat_kafka_create_topics_request create = {.topics = {&topic, 1}, .timeout_ms = 1000};
    struct leat_kafka_create_topics_response *made =
        wire_call(&client, LEAT_KAFKA_CREATE_TOPICS, 7, &create);
    assert_int_equal(made->topics.at[0].error_code, LEAT_KAFKA_NONE);
    assert_int_equal(alter(&client, "chosen", "leat.durability", NULL), LEAT_KAFKA_INVALID_CONFIG);
    assert_int_equal(alter(&client, "chosen", "leat.durability", "memory"), LEAT_KAFKA_NONE);
    assert_int_equal(alter(&client, "configured", "leat.durability", NULL), LEAT_KAFKA_NONE);
    wire_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_deleted_inside_a_batch_stay_deleted),
        cmocka_unit_test(deletion_of_records_that_are_not_there_is_refused_by_name),
        cmocka_unit_test(log_dirs_tell_how_much_is_stored),
        cmocka_unit_test(max_message_bytes_is_enforced_as_soon_as_it_is_changed),
        cmocka_unit_test(log_append_time_is_set_in_the_stored_batch),
        cmocka_unit_test(configurations_that_are_not_here_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
