/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder and the encoder over all tables: every API, every version, requests and answers. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fill.h"
#include "kafka/apis.h"
#include "kafka/codec/errors.h"

enum { MESSAGE_BYTES_MAX = 64 * 1024, ROUNDS = 20, LIES = 200 };

struct messages {
    struct leat_kafka_arena filled, decoded;
    uint8_t bytes[MESSAGE_BYTES_MAX], again[MESSAGE_BYTES_MAX];
};

typedef void (*each_fn)(struct messages *messages, const struct leat_kafka_type *type,
                        int16_t version, bool flexible, size_t count, struct fill *fill);

static leat_err decode(struct messages *messages, const struct leat_kafka_type *type,
                       int16_t version, bool flexible, const uint8_t *bytes, size_t count,
                       void **out)
{
    leat_kafka_arena_fini(&messages->decoded);
    struct leat_kafka_reader reader = {.at = bytes,
                                       .end = bytes + count,
                                       .version = version,
                                       .flexible = flexible,
                                       .arena = &messages->decoded};
    *out = leat_kafka_arena_take(&messages->decoded, 1, type->bytes);
    leat_err rc = leat_kafka_decode(&reader, type, *out);
    if (rc == LEAT_OK && reader.at != reader.end) rc = LEAT_E_INVALID;
    assert_int_equal(rc == LEAT_OK, reader.wrong == NULL && reader.at == reader.end);
    return rc;
}

static size_t encode(uint8_t *bytes, const struct leat_kafka_type *type, int16_t version,
                     bool flexible, const void *in)
{
    struct leat_kafka_writer writer = {
        .bytes = bytes, .capacity = MESSAGE_BYTES_MAX, .version = version, .flexible = flexible};
    leat_kafka_encode(&writer, type, in);
    assert_true(writer.used <= writer.capacity);
    return writer.used;
}

static void each_message(each_fn each)
{
    struct messages *messages = calloc(1, sizeof *messages);
    assert_non_null(messages);
    leat_kafka_arena_init(&messages->filled, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    leat_kafka_arena_init(&messages->decoded, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    uint32_t count;
    const struct leat_kafka_api *apis = leat_kafka_apis(&count);
    struct fill fill = {.state = 0x9e3779b97f4a7c15u, .arena = &messages->filled};
    for (uint32_t i = 0; i < count; i++) {
        for (int16_t version = apis[i].first; version <= apis[i].last; version++) {
            for (int round = 0; round < 2 * ROUNDS; round++) {
                const struct leat_kafka_type *type =
                    round % 2 == 0 ? apis[i].request() : apis[i].response();
                bool flexible = version >= apis[i].flexible;
                leat_kafka_arena_fini(&messages->filled);
                fill.version = version;
                fill.flexible = flexible;
                void *made = leat_kafka_arena_take(&messages->filled, 1, type->bytes);
                fill_struct(&fill, type, made);
                size_t bytes = encode(messages->bytes, type, version, flexible, made);
                each(messages, type, version, flexible, bytes, &fill);
            }
        }
    }
    leat_kafka_arena_fini(&messages->filled);
    leat_kafka_arena_fini(&messages->decoded);
    free(messages);
}

static void check_round_trip(struct messages *messages, const struct leat_kafka_type *type,
                             int16_t version, bool flexible, size_t count, struct fill *fill)
{
    void *decoded;
    (void)fill;
    assert_int_equal(decode(messages, type, version, flexible, messages->bytes, count, &decoded),
                     LEAT_OK);
    assert_int_equal(encode(messages->again, type, version, flexible, decoded), count);
    assert_memory_equal(messages->bytes, messages->again, count);
}

static void check_truncated(struct messages *messages, const struct leat_kafka_type *type,
                            int16_t version, bool flexible, size_t count, struct fill *fill)
{
    void *decoded;
    (void)fill;
    for (size_t cut = 0; cut < count; cut++) {
        /* A copy of its own, so that a look past the end is one past an allocation. */
        uint8_t *bytes = malloc(cut + (cut == 0));
        assert_non_null(bytes);
        memcpy(bytes, messages->bytes, cut);
        assert_int_not_equal(decode(messages, type, version, flexible, bytes, cut, &decoded),
                             LEAT_OK);
        free(bytes);
    }
}

static void check_lies(struct messages *messages, const struct leat_kafka_type *type,
                       int16_t version, bool flexible, size_t count, struct fill *fill)
{
    static const uint8_t bad[] = {0xff, 0x7f, 0x80, 0x00, 0xfe, 0x01};
    void *decoded;
    if (count == 0) return;
    for (int i = 0; i < LIES; i++) {
        memcpy(messages->again, messages->bytes, count);
        uint64_t change = fill_next(fill);
        for (uint64_t n = 0; n < 1 + change % 4; n++)
            messages->again[fill_next(fill) % count] = bad[fill_next(fill) % sizeof bad];
        leat_err rc = decode(messages, type, version, flexible, messages->again, count, &decoded);
        assert_true(rc == LEAT_OK || rc == LEAT_E_INVALID);
        /* What it took is bounded by what came, whatever the lengths said. */
        assert_true(messages->decoded.bytes_allocated <=
                    count * 256 + LEAT_KAFKA_ARENA_CHUNK_BYTES);
    }
}

static void message_round_trip_gives_same_bytes(void **state)
{
    (void)state;
    each_message(check_round_trip);
}

static void message_truncated_anywhere_is_refused(void **state)
{
    (void)state;
    each_message(check_truncated);
}

static void message_lying_lengths_take_bounded_memory(void **state)
{
    (void)state;
    each_message(check_lies);
}

/* An array of 2^31 - 1 elements in a message of five bytes. */
static void array_claiming_too_much_is_refused_before_allocation(void **state)
{
    (void)state;
    struct leat_kafka_arena arena;
    leat_kafka_arena_init(&arena, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    const uint8_t bytes[] = {0x7f, 0xff, 0xff, 0xff, 0x00};
    struct leat_kafka_metadata_request body;
    struct leat_kafka_reader reader = {
        .at = bytes, .end = bytes + sizeof bytes, .version = 1, .arena = &arena};
    assert_int_equal(leat_kafka_decode(&reader, leat_kafka_type_metadata_request(), &body),
                     LEAT_E_INVALID);
    assert_int_equal(arena.bytes_allocated, 0);
    leat_kafka_arena_fini(&arena);
}

/* Tags that nobody knows are stepped over; they may not stand out of order. */
static void tags_unknown_are_skipped_and_must_ascend(void **state)
{
    (void)state;
    struct leat_kafka_arena arena;
    leat_kafka_arena_init(&arena, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    const uint8_t good[] = {2, 'a', 2, 'b', 2, 5, 1, 0xaa, 9, 0};
    const uint8_t bad[] = {2, 'a', 2, 'b', 2, 9, 1, 0xaa, 5, 0};
    struct leat_kafka_api_versions_request body;
    struct leat_kafka_reader reader = {
        .at = good, .end = good + sizeof good, .version = 3, .flexible = true, .arena = &arena};
    assert_int_equal(leat_kafka_decode(&reader, leat_kafka_type_api_versions_request(), &body),
                     LEAT_OK);
    assert_ptr_equal(reader.at, reader.end);
    assert_int_equal(body.client_software_version.bytes, 1);
    reader.at = bad;
    reader.end = bad + sizeof bad;
    assert_int_equal(leat_kafka_decode(&reader, leat_kafka_type_api_versions_request(), &body),
                     LEAT_E_INVALID);
    leat_kafka_arena_fini(&arena);
}

static void arena_past_its_limits_gives_nothing(void **state)
{
    (void)state;
    struct leat_kafka_arena_share share = {.bytes_max = 100 * 1024};
    struct leat_kafka_arena a, b;
    leat_kafka_arena_init(&a, &share, 64 * 1024);
    leat_kafka_arena_init(&b, &share, 64 * 1024);
    assert_null(leat_kafka_arena_take(&a, 64 * 1024 + 1, 1));
    assert_null(leat_kafka_arena_take(&a, SIZE_MAX / 2, 4));
    assert_non_null(leat_kafka_arena_take(&a, 60 * 1024, 1));
    assert_null(leat_kafka_arena_take(&b, 60 * 1024, 1)); /* the share is used up */
    leat_kafka_arena_fini(&a);
    assert_int_equal(share.bytes_used, 0);
    assert_non_null(leat_kafka_arena_take(&b, 60 * 1024, 1));
    leat_kafka_arena_fini(&b);
    assert_int_equal(share.bytes_used, 0);
    share.bytes_max = 10 * 1024 * 1024; /* in pieces there is no more than at once */
    assert_non_null(leat_kafka_arena_take(&a, 30 * 1024, 1));
    assert_non_null(leat_kafka_arena_take(&a, 30 * 1024, 1));
    assert_null(leat_kafka_arena_take(&a, 30 * 1024, 1));
    assert_int_equal(a.bytes_missed, 0); /* there never will be */
    leat_kafka_arena_fini(&a);
    /* Of the share's last eighth each only request has a little. */
    share.bytes_used = leat_kafka_arena_share_most(&share);
    assert_null(leat_kafka_arena_take(&a, 8 * 1024, 1));
    assert_true(a.bytes_missed >= 8 * 1024);
    leat_kafka_arena_fini(&a);
    a.own_bytes_max = LEAT_KAFKA_ARENA_OWN_BYTES;
    assert_non_null(leat_kafka_arena_take(&a, 8 * 1024, 1));
    assert_null(leat_kafka_arena_take(&a, 8 * 1024, 1));
    leat_kafka_arena_fini(&a);
    assert_int_equal(share.bytes_used, leat_kafka_arena_share_most(&share));
}

/* A seed of the fuzzer's: what a client sent, behind its key and version. */
static void seed_check(struct messages *messages, const char *path, bool *seen)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(messages->bytes, 1, sizeof messages->bytes, file);
    fclose(file);
    if (count < 2 || (messages->bytes[1] & 0x80) != 0) return; /* an answer */
    const struct leat_kafka_api *api = leat_kafka_api_find(messages->bytes[0]);
    assert_non_null(api);
    leat_kafka_arena_fini(&messages->decoded);
    struct leat_kafka_reader reader = {.at = messages->bytes + 2,
                                       .end = messages->bytes + count,
                                       .version = messages->bytes[1],
                                       .arena = &messages->decoded};
    reader.flexible = reader.version >= api->flexible;
    void *out = leat_kafka_arena_take(&messages->decoded, 1, api->request()->bytes);
    /* Bytes behind the last field are stepped over: kafka/front/conn.c says whose they are. */
    if (leat_kafka_decode(&reader, api->request(), out) != LEAT_OK)
        fail_msg("%s: %s", path, reader.wrong);
    seen[api->key] = true;
}

/* Goal: no decoder of requests is without a seed that a real client sent (tests/clients/record.py). */
static void requests_of_real_clients_are_read_and_every_kind_was_recorded(void **state)
{
    (void)state;
    bool seen[256] = {false};
    const char *folder = getenv("CORPUS");
    if (folder == NULL) skip();
    struct messages *messages = calloc(1, sizeof *messages);
    assert_non_null(messages);
    leat_kafka_arena_init(&messages->decoded, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (struct dirent *entry; (entry = readdir(files)) != NULL;) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.') seed_check(messages, path, seen);
    }
    closedir(files);
    uint32_t count;
    const struct leat_kafka_api *apis = leat_kafka_apis(&count);
    for (uint32_t i = 0; i < count; i++)
        if (!seen[apis[i].key]) fail_msg("no client's %s is among the seeds", apis[i].name);
    leat_kafka_arena_fini(&messages->decoded);
    free(messages);
}

/* A passing fault gets an error that clients retry; error 44 would end a producer of Java's client. */
static void errors_of_what_passes_are_tried_again(void **state)
{
    (void)state;
    assert_int_equal(leat_kafka_error_of(LEAT_E_TOO_MANY_PRODUCERS),
                     LEAT_KAFKA_KAFKA_STORAGE_ERROR);
    assert_int_equal(leat_kafka_error_of(LEAT_E_NO_MEMORY), LEAT_KAFKA_KAFKA_STORAGE_ERROR);
    assert_int_equal(leat_kafka_error_of(LEAT_E_AGAIN), LEAT_KAFKA_REQUEST_TIMED_OUT);
    assert_int_equal(leat_kafka_error_of(LEAT_E_STARTING), LEAT_KAFKA_LEADER_NOT_AVAILABLE);
    assert_int_equal(leat_kafka_error_of(LEAT_E_TOO_MANY), LEAT_KAFKA_POLICY_VIOLATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_round_trip_gives_same_bytes),
        cmocka_unit_test(message_truncated_anywhere_is_refused),
        cmocka_unit_test(message_lying_lengths_take_bounded_memory),
        cmocka_unit_test(array_claiming_too_much_is_refused_before_allocation),
        cmocka_unit_test(tags_unknown_are_skipped_and_must_ascend),
        cmocka_unit_test(arena_past_its_limits_gives_nothing),
        cmocka_unit_test(errors_of_what_passes_are_tried_again),
        cmocka_unit_test(requests_of_real_clients_are_read_and_every_kind_was_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
