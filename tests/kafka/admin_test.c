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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_deleted_inside_a_batch_stay_deleted),
        cmocka_unit_test(deletion_of_records_that_are_not_there_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
