/* SPDX-License-Identifier: Apache-2.0 */
/* The streams that a core knows: by id, by name, and how many logs they have, however many come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/core_admin.h"
#include "broker/admin/places.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"
#include "tests/broker/parts.h"

enum { BUCKETS = 4, LOGS = 3, GROUPS_ID = 7 };

struct desk {
    struct leat_node node;
    struct leat_core core;
    struct core_parts parts;
    size_t memory_bytes;
};

static struct desk *desk_create(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->memory_bytes = leat_mem_bytes(LEAT_MEM_ROWS);
    struct leat_core *core = &desk->core;
    core->node = &desk->node;
    core_parts_set(core, &desk->parts);
    core->data->stream_mask = BUCKETS - 1;
    core->data->streams_by_id =
        leat_mem_calloc(LEAT_MEM_ROWS, BUCKETS, sizeof *core->data->streams_by_id);
    core->data->streams_by_name =
        leat_mem_calloc(LEAT_MEM_ROWS, BUCKETS, sizeof *core->data->streams_by_name);
    leat_list_init(&core->admin->placer->known);
    leat_list_init(&core->admin->placer->asks);
    leat_list_init(&core->admin->placer->waits);
    return desk;
}

static void desk_destroy(struct desk *desk)
{
    leat_mem_free(desk->core.data->streams_by_id);
    leat_mem_free(desk->core.data->streams_by_name);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS), desk->memory_bytes);
    free(desk);
}

static void name_of(uint32_t id, char out[16])
{
    if (id == GROUPS_ID)
        snprintf(out, 16, "%s", LEAT_GROUPS_STREAM_NAME);
    else
        snprintf(out, 16, "stream-%u", id);
}

static struct leat_stream_desc *desc_make(uint32_t id, uint32_t streamlets)
{
    struct leat_stream_desc *desc =
        leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *desc + streamlets * sizeof desc->streamlets[0]);
    assert_non_null(desc);
    desc->refs = 1;
    desc->id = id;
    name_of(id, desc->name);
    desc->streamlet_count = streamlets;
    desc->settings.logs = LOGS;
    return desc;
}

/* Under a new descriptor, to which nobody else refers. */
static struct leat_stream *put(struct desk *desk, uint32_t id, uint32_t streamlets)
{
    struct leat_stream_desc *desc = desc_make(id, streamlets);
    struct leat_stream *stream = NULL;
    assert_int_equal(leat_stream_put(&desk->core, desc, &stream), LEAT_OK);
    assert_int_equal(desc->refs, 2);
    assert_ptr_equal(stream->desc, desc);
    leat_stream_desc_unref(desc);
    return stream;
}

static void assert_found(struct desk *desk, uint32_t id, const struct leat_stream *stream)
{
    char name[16];
    name_of(id, name);
    assert_ptr_equal(leat_stream_find(&desk->core, id), stream);
    assert_ptr_equal(leat_stream_find_name(&desk->core, name, strlen(name)), stream);
    if (stream != NULL) assert_int_equal(stream->has_groups, id == GROUPS_ID);
}

static void streams_are_found_however_many_there_are(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct desk *desk = desk_create();
    struct leat_stream *streams[COUNT + 1];
    for (uint32_t id = 1; id <= COUNT; id++) {
        assert_found(desk, id, NULL);
        streams[id] = put(desk, id, id);
        assert_true(leat_list_empty(&streams[id]->waiters));
        assert_int_equal(desk->core.data->stream_count, id);
        /* A table has as many buckets as streams, at least. */
        assert_true(desk->core.data->stream_mask + 1 >= id &&
                    desk->core.data->stream_mask < 2 * id + BUCKETS);
        assert_int_equal(desk->core.logs_known, id * (id + 1) / 2 * LOGS);
        for (uint32_t known = 1; known <= id; known++)
            assert_found(desk, known, streams[known]);
    }
    assert_int_equal(desk->core.data->stream_mask, 63);
    for (uint32_t id = 1; id <= COUNT; id += 2)
        leat_stream_remove(&desk->core, streams[id]);
    for (uint32_t id = 1; id <= COUNT; id++)
        assert_found(desk, id, id % 2 == 0 ? streams[id] : NULL);
    for (uint32_t id = 2; id <= COUNT; id += 2)
        leat_stream_remove(&desk->core, streams[id]);
    assert_int_equal(desk->core.data->stream_count, 0);
    assert_int_equal(desk->core.logs_known, 0);
    desk_destroy(desk);
}

/* Goal: streams that share a bucket before and after the table grows are all found. */
static void streams_of_one_bucket_are_found(void **state)
{
    (void)state;
    enum { COUNT = 10, STEP = 64 };
    struct desk *desk = desk_create();
    for (uint32_t i = 1; i <= COUNT; i++) {
        (void)put(desk, i * STEP, 1);
        for (uint32_t k = 1; k <= COUNT; k++) {
            const struct leat_stream *found = leat_stream_find(&desk->core, k * STEP);
            assert_int_equal(found != NULL, k <= i);
            if (found != NULL) assert_int_equal(found->desc->id, k * STEP);
        }
    }
    assert_int_equal(desk->core.data->stream_mask, 15);
    for (uint32_t i = 1; i <= COUNT; i++)
        leat_stream_remove(&desk->core, leat_stream_find(&desk->core, i * STEP));
    desk_destroy(desk);
}

static void table_is_full_before_it_grows(void **state)
{
    (void)state;
    struct desk *desk = desk_create();
    struct leat_stream *streams[BUCKETS + 1];
    for (uint32_t i = 0; i < BUCKETS; i++)
        streams[i] = put(desk, i + 1, 1);
    assert_int_equal(desk->core.data->stream_mask, BUCKETS - 1);
    streams[BUCKETS] = put(desk, BUCKETS + 1, 1);
    assert_int_equal(desk->core.data->stream_mask, 2 * BUCKETS - 1);
    for (uint32_t i = 0; i <= BUCKETS; i++)
        leat_stream_remove(&desk->core, streams[i]);
    desk_destroy(desk);
}

/* Goal: a changed stream keeps its struct, and its logs count once. */
static void stream_changes(void **state)
{
    (void)state;
    struct desk *desk = desk_create();
    struct leat_stream *stream = put(desk, 7, 2);
    struct leat_stream *other = put(desk, 9, 5);
    assert_int_equal(desk->core.logs_known, 7 * LOGS);
    assert_ptr_equal(put(desk, 7, 4), stream);
    assert_int_equal(stream->logs, 4 * LOGS);
    assert_int_equal(desk->core.logs_known, 9 * LOGS);
    assert_int_equal(desk->core.data->stream_count, 2);
    assert_found(desk, 7, stream);
    leat_stream_remove(&desk->core, stream);
    assert_int_equal(desk->core.logs_known, 5 * LOGS);
    leat_stream_remove(&desk->core, other);
    desk_destroy(desk);
}

/* Goal: the highest id that ever came is known, whatever ids came after it. */
static void highest_id_is_remembered(void **state)
{
    (void)state;
    static const uint32_t ids[] = {5, 3, 6, 6, 4};
    static const uint32_t seen[] = {5, 5, 6, 6, 6};
    struct desk *desk = desk_create();
    for (unsigned i = 0; i < 5; i++) {
        (void)put(desk, ids[i], 1);
        assert_int_equal(desk->core.data->stream_seen, seen[i]);
    }
    for (uint32_t id = 3; id <= 6; id++)
        leat_stream_remove(&desk->core, leat_stream_find(&desk->core, id));
    assert_int_equal(desk->core.data->stream_seen, 6);
    desk_destroy(desk);
}

/* Goal: without memory a stream is not known, or the table stays as it is. */
static void table_without_memory(void **state)
{
    (void)state;
    struct desk *desk = desk_create();
    struct leat_stream_desc *desc = desc_make(1, 1);
    struct leat_stream *stream = NULL;
    leat_mem_fail_at(1);
    assert_int_equal(leat_stream_put(&desk->core, desc, &stream), LEAT_E_NO_MEMORY);
    assert_null(stream);
    assert_int_equal(desc->refs, 1);
    leat_stream_desc_unref(desc);
    assert_int_equal(desk->core.data->stream_count, 0);
    struct leat_stream *streams[BUCKETS + 2];
    for (uint32_t i = 0; i < BUCKETS + 2; i++) {
        desc = desc_make(i + 1, 1);
        if (i >= BUCKETS) leat_mem_fail_at(i - BUCKETS + 2);
        assert_int_equal(leat_stream_put(&desk->core, desc, &streams[i]), LEAT_OK);
        leat_mem_fail_at(0);
        leat_stream_desc_unref(desc);
        assert_int_equal(desk->core.data->stream_mask, BUCKETS - 1);
    }
    for (uint32_t i = 0; i < BUCKETS + 2; i++)
        assert_found(desk, i + 1, streams[i]);
    for (uint32_t i = 0; i < BUCKETS + 2; i++)
        leat_stream_remove(&desk->core, streams[i]);
    desk_destroy(desk);
}

struct waiter {
    struct leat_stream_wait wait;
    unsigned told;
};
static void on_ready(struct leat_stream_wait *wait)
{
    LEAT_CONTAINER(wait, struct waiter, wait)->told++;
}

/* Goal: a caller that waits for a stream is told once: when the stream is published, or when the stream goes. */
static void waiters_are_told(void **state)
{
    (void)state;
    struct desk *desk = desk_create();
    struct leat_stream *stream = put(desk, 7, 2);
    struct waiter waiters[3] = {0};
    for (unsigned i = 0; i < 3; i++)
        waiters[i].wait.on_ready = on_ready;
    leat_list_push_back(&stream->waiters, &waiters[0].wait.link);
    leat_list_push_back(&stream->waiters, &waiters[1].wait.link);
    assert_false(stream->published);
    leat_stream_publish(stream);
    assert_true(stream->published);
    assert_int_equal(waiters[0].told + 10 * waiters[1].told, 11);
    leat_list_push_back(&stream->waiters, &waiters[2].wait.link);
    stream->begun = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *stream->begun);
    assert_non_null(stream->begun);
    atomic_init(&stream->begun->refs, 1); /* it goes with its stream */
    leat_stream_remove(&desk->core, stream);
    assert_int_equal(waiters[0].told + 10 * waiters[1].told + 100 * waiters[2].told, 111);
    desk_destroy(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_found_however_many_there_are),
        cmocka_unit_test(streams_of_one_bucket_are_found),
        cmocka_unit_test(table_is_full_before_it_grows),
        cmocka_unit_test(stream_changes),
        cmocka_unit_test(highest_id_is_remembered),
        cmocka_unit_test(table_without_memory),
        cmocka_unit_test(waiters_are_told),
    };
    return cmocka_run_group_tests_name("broker stream_table", tests, NULL, NULL);
}
