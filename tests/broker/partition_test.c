/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of a core, by partition.c alone: their table, what they are made with, where clients are sent, and what each
 * log reports. */
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "tests/broker/partition_rig.h"

/* ---- the table ---- */

static void any_number_of_logs_is_found(void **state)
{
    (void)state;
    enum { MANY = 300 };
    static struct leat_partition *made[MANY];
    for (unsigned pass = 0; pass < 2; pass++) {
        begin();
        struct leat_core *core = core_of_all();
        for (uint32_t i = 0; i < MANY; i++) {
            assert_null(leat_partition_find(core, (struct leat_log_ref){ALONE_STREAM, 1, i}));
            made[i] = make(i);
            assert_int_equal(core->data->partition_count, i + 1);
            assert_int_equal(atomic_load(&alone.node.partition_count), i + 1);
        }
        assert_in_range(core->data->partition_mask, MANY / 2, 2 * MANY);
        for (uint32_t i = 0; i <= core->data->partition_mask; i++) {
            unsigned chain = 0;
            for (const struct leat_partition *at = core->data->partitions[i]; at != NULL;
                 at = at->hash_next)
                assert_in_range(++chain, 1, 6);
        }
        for (uint32_t i = 0; i < MANY; i += 2)
            leat_partition_destroy(made[i]);
        for (uint32_t i = 0; i < MANY; i++) {
            struct leat_log_ref ref = {ALONE_STREAM, 1, i};
            assert_ptr_equal(leat_partition_find(core, ref), i % 2 ? made[i] : NULL);
            ref.streamlet = 0;
            assert_null(leat_partition_find(core, ref));
            ref.streamlet = 1, ref.stream++;
            assert_null(leat_partition_find(core, ref));
        }
        end();
    }
}

/* Goal: without memory for a larger table the logs are all there. */
static void table_without_memory_has_longer_chains(void **state)
{
    (void)state;
    begin();
    struct leat_core *core = core_of_all();
    (void)make(0);
    said_enough();
    leat_mem_fail_at(3); /* behind the partition's own, of which there are two with the next */
    (void)make(1);
    leat_mem_fail_at(2);
    (void)make(2);
    leat_mem_fail_at(0);
    (void)make(3);
    for (uint32_t i = 0; i < 4; i++)
        assert_non_null(leat_partition_find(core, (struct leat_log_ref){ALONE_STREAM, 1, i}));
    end();
}

/* Goal: a log that goes is in no list of its core any more. */
static void log_that_goes_is_nowhere(void **state)
{
    (void)state;
    begin();
    struct leat_core *core = core_of_all();
    struct leat_partition *partition = make(0);
    struct leat_list homes;
    leat_list_init(&homes);
    leat_list_push_back(&homes, &partition->home);
    partition->log->options.events.on_opening(partition, partition->log);
    partition->log->options.events.on_dirty(partition, partition->log);
    leat_partition_destroy(partition);
    assert_true(leat_list_empty(&homes));
    assert_true(leat_list_empty(&core->data->opening_logs) &&
                leat_list_empty(&core->data->dirty_logs));
    end();
}

static void so_many_logs_are_made_and_no_more(void **state)
{
    (void)state;
    begin();
    struct leat_core *core = core_of_all();
    struct leat_partition *partition;
    const struct leat_log_tail tail = {0};
    struct leat_log_ref ref = {ALONE_STREAM, 1, 0};
    core->data->partition_count = LEAT_CORE_LOGS_MAX;
    assert_int_equal(leat_partition_create(core, &alone.stream, ref, (struct leat_epoch){9}, NULL,
                                           0, &tail, &partition),
                     LEAT_E_TOO_MANY);
    core->data->partition_count = 0;
    leat_mem_fail_at(1);
    assert_int_equal(leat_partition_create(core, &alone.stream, ref, (struct leat_epoch){9}, NULL,
                                           0, &tail, &partition),
                     LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    uint32_t mask = core->data->partition_mask;
    core->data->partition_count = mask; /* that is one less than the table has places */
    (void)make(2);
    assert_int_equal(core->data->partition_mask, mask);
    (void)make(3);
    assert_int_equal(core->data->partition_mask, 2 * mask + 1);
    core->data->partition_count = 2;
    end();
    begin();
    core->data->partition_count = LEAT_CORE_LOGS_MAX - 1;
    (void)make(1);
    core->data->partition_count = 1;
    end();
}

/* ---- what a log is made with ---- */

static void log_is_made_with_what_its_stream_says(void **state)
{
    (void)state;
    begin();
    memset(alone.node.cluster_id, 7, sizeof alone.node.cluster_id);
    alone.desc->remade = true;
    struct leat_segment *segs[2] = {NULL, NULL};
    struct leat_partition *partition;
    struct leat_log_tail tail = {.next_segment = 3, .backfill_follows = true, .holes = true};
    assert_int_equal(leat_partition_create(core_of_all(), &alone.stream,
                                           (struct leat_log_ref){ALONE_STREAM, 1, 4},
                                           (struct leat_epoch){9}, segs, 2, &tail, &partition),
                     LEAT_OK);
    assert_said("attach, 2 segments, older follow, holes\n"
                "create the log, next 3\n");
    const struct leat_log_options *options = &partition->log->options;
    assert_string_equal(ref_text(options->ref), "7/1/4");
    assert_int_equal(options->epoch.v, 9);
    assert_string_equal(options->stream_name, "orders");
    assert_memory_equal(&options->settings, &alone.desc->settings, sizeof options->settings);
    assert_int_equal(options->incarnation, ALONE_SELF);
    assert_int_equal(options->durability, LEAT_DURABILITY_DISK);
    assert_int_equal(options->producer_expiry_ms, 24 * 60 * 60 * 1000);
    assert_true(options->remade);
    assert_ptr_equal(options->restore_budget, &core_of_all()->data->restore_budget);
    assert_ptr_equal(options->owner, partition);
    assert_memory_equal(options->cluster_id, alone.node.cluster_id, 16);
    assert_int_equal(partition->unsure.first, 2);
    assert_int_equal(partition->unsure.end, 5);
    assert_int_equal(partition->backfill, LEAT_BACKFILL_UNDER_WAY);
    assert_true(partition->hole_below == UINT64_MAX);
    assert_ptr_equal(core_of_all()->data->care_logs.next, &partition->care);
    it.heap_full = true;
    assert_true(options->memory_is_full(partition, true, 11));
    it.heap_full = false;
    assert_false(options->memory_is_full(partition, false, 12));
    char expected[256];
    snprintf(expected, sizeof expected,
             "is the heap full, by 11, with 0 left?\nis the heap full, by 12, with %llu left?\n",
             (unsigned long long)LEAT_HEAP_SPARE_BYTES);
    assert_said(expected);
    end();
}

static void log_of_a_stream_that_is_being_deleted_goes_at_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        alone.stream.deleted = i == 1;
        (void)make(0);
        assert_said(i == 1 ? "attach, 0 segments\ncreate the log, next 3\ndelete 7/1/0\n"
                           : "attach, 0 segments\ncreate the log, next 3\n");
        end();
    }
}

/* Goal: a log that can't be made leaves nothing behind. */
static void log_that_cant_be_made_leaves_nothing(void **state)
{
    (void)state;
    static const char *const expected[] = {
        "attach, 0 segments\ndetach\n",
        "attach, 0 segments\nattach groups\ndestroy groups\ndetach\n",
        "attach, 0 segments\nattach groups\ncreate the log, next 0\ndestroy groups\ndetach\n",
        "attach, 0 segments\ncreate the log, next 0\ndetach\n",
    };
    for (unsigned i = 0; i < 4; i++) {
        begin();
        struct leat_partition *partition;
        const struct leat_log_tail tail = {0};
        if (i < 3) alone.stream.has_groups = true;
        if (i == 0) it.attach = LEAT_E_DISK;
        if (i == 1) it.groups = LEAT_E_DISK;
        if (i >= 2) it.create = LEAT_E_DISK;
        assert_int_equal(leat_partition_create(core_of_all(), &alone.stream,
                                               (struct leat_log_ref){ALONE_STREAM, 1, 4},
                                               (struct leat_epoch){9}, NULL, 0, &tail, &partition),
                         LEAT_E_DISK);
        assert_said(expected[i]);
        end();
    }
}

/* Goal: a log that is made again looks for its missing segments anew. A node that was down may have some of these:
 * their loss is not accepted before all nodes have been asked again. */
static void log_is_made_again(void **state)
{
    (void)state;
    for (unsigned follows = 0; follows < 2; follows++) {
        begin();
        struct leat_partition *partition = make(0);
        leat_log_destroy(&partition->log);
        partition->backfill = LEAT_BACKFILL_DUE;
        partition->backfill_node_down = partition->backfill_pass_node_down = true;
        partition->hole_below = 7;
        const struct leat_log_tail tail = {.next_segment = 3, .backfill_follows = follows};
        assert_int_equal(leat_partition_open(partition, NULL, 0, &tail), LEAT_OK);
        assert_non_null(partition->log);
        assert_int_equal(partition->backfill,
                         follows ? LEAT_BACKFILL_UNDER_WAY : LEAT_BACKFILL_NONE);
        assert_int_equal(partition->backfill_node_down, follows);
        assert_false(partition->backfill_pass_node_down);
        assert_true(partition->hole_below == UINT64_MAX);
        end();
    }
}

static void log_of_groups_is_made_with_them(void **state)
{
    (void)state;
    begin();
    alone.stream.has_groups = true;
    struct leat_partition *partition = make(0);
    assert_said("attach, 0 segments\n"
                "attach groups\n"
                "create the log, next 3\n"
                "groups: the log is made\n");
    partition->log->options.events.on_room(partition, partition->log);
    assert_said("room in 7/1/0\ngroups: room\n");
    partition->moving = (void *)&it;
    leat_partition_destroy(partition);
    assert_said("room in 7/1/0\n"
                "acked in 7/1/0\n"
                "destroy groups\n"
                "destroy the log\n"
                "detach\n"
                "its move is told that it has gone\n");
    end();
}

/* ---- who is sent where ---- */

static leat_err placed(uint32_t streamlet, uint32_t log, uint32_t epoch, uint32_t *out_home,
                       char *out, size_t bytes)
{
    struct leat_error error = {LEAT_OK, ""};
    struct leat_log_ref ref = {ALONE_STREAM, streamlet, log};
    *out_home = 77;
    leat_err rc = leat_partition_route(core_of_all(), ref, epoch, out_home, &error);
    snprintf(out, bytes, "%s", error.text);
    assert_int_equal(error.code, rc);
    return rc;
}

static void request_is_sent_where_its_log_is(void **state)
{
    (void)state;
    begin();
    char text[256];
    uint32_t home;
    for (uint32_t log = 0; log < ALONE_LOGS; log++) {
        assert_int_equal(placed(1, log, 5, &home, text, sizeof text), LEAT_OK);
        assert_int_equal(home, log);
        assert_string_equal(text, "");
    }
    struct leat_core *core = core_of_all();
    core->members.links = (void *)&it;
    core->data->stream_seen = ALONE_STREAM - 1; /* what is here is, whatever came by */
    assert_int_equal(placed(1, 0, 5, &home, text, sizeof text), LEAT_OK);
    static const unsigned stands[] = {0, LEAT_STANDING_CONFIRMED, LEAT_STANDING_ALONE,
                                      LEAT_STANDING_CRASHED};
    for (unsigned i = 0; i < 4; i++) {
        atomic_store(&alone.node.standing, stands[i]);
        assert_int_equal(placed(1, 0, 5, &home, text, sizeof text),
                         i < 2 ? LEAT_OK : LEAT_E_NOT_OWNER);
        if (i >= 2)
            assert_string_equal(text,
                                "this node does not know whether it is still up: ask another one "
                                "for metadata, or wait");
    }
    end();
}

static void request_for_what_is_not_here_is_refused_by_name(void **state)
{
    (void)state;
    begin();
    char text[256];
    uint32_t home;
    assert_int_equal(placed(2, 0, 5, &home, text, sizeof text), LEAT_E_UNKNOWN_LOG);
    assert_string_equal(text,
                        "stream \"orders\" has streamlets 0 to 1, each with logs 0 to 1; there is "
                        "no streamlet 2, log 0");
    assert_int_equal(placed(0, 2, 5, &home, text, sizeof text), LEAT_E_UNKNOWN_LOG);
    assert_int_equal(placed(1, 1, 4, &home, text, sizeof text), LEAT_E_STALE_EPOCH);
    assert_string_equal(text,
                        "streamlet 1 of \"orders\" is owned under epoch 5, the request names 4: "
                        "ask for metadata again");
    assert_int_equal(placed(1, 1, 6, &home, text, sizeof text), LEAT_E_NOT_OWNER);
    assert_string_equal(text,
                        "streamlet 1 of \"orders\" is served here under epoch 5, the request names "
                        "the newer 6: ask for metadata again");
    alone.desc->streamlets[1].owner = 200;
    assert_int_equal(placed(1, 1, 5, &home, text, sizeof text), LEAT_E_NOT_OWNER);
    assert_string_equal(text,
                        "streamlet 1 of \"orders\" is served by node 200: ask for metadata again");
    assert_int_equal(
        leat_partition_place(core_of_all(), (struct leat_log_ref){7, 1, 1}, &home, NULL),
        LEAT_E_NOT_OWNER);
    assert_int_equal(home, 77);
    assert_int_equal(
        leat_partition_place(core_of_all(), (struct leat_log_ref){7, 0, 1}, &home, NULL), LEAT_OK);
    assert_int_equal(home, 1);
    end();
}

/* Goal: a stream of which this node may not have heard yet is to be tried again, in a cluster. */
static void stream_that_is_not_known_is_refused_by_name(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        char text[256];
        uint32_t home;
        bool seen = i & 1, links = i & 2;
        alone.no_stream = true;
        core_of_all()->data->stream_seen = seen ? ALONE_STREAM : ALONE_STREAM - 1;
        core_of_all()->members.links = links ? (void *)&it : NULL;
        bool later = !seen && links;
        assert_int_equal(placed(1, 0, 5, &home, text, sizeof text),
                         later ? LEAT_E_STARTING : LEAT_E_UNKNOWN_STREAM);
        assert_string_equal(text, later
                                      ? "this node has not heard of stream 7 yet: try again"
                                      : "no stream has id 7; it was deleted, or the id is another "
                                        "cluster's");
        end();
    }
}

/* Goal: why a log is not on its own core: it comes, or has gone, or there is no memory for it. */
static void log_that_is_absent_has_a_reason(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        bool stream = i & 1, seen = i & 2, stopping = i & 4, missing = i & 8, refuses = i & 16;
        begin();
        alone.no_stream = !stream;
        core_of_all()->data->stream_seen = seen ? ALONE_STREAM : ALONE_STREAM - 1;
        core_of_all()->stopping = stopping;
        alone.stream.logs_missing = missing;
        it.heap_refuses = refuses;
        leat_err wanted = stream && missing && !stopping && refuses ? LEAT_E_NO_MEMORY
                          : stopping || stream || !seen             ? LEAT_E_STARTING
                                                                    : LEAT_E_UNKNOWN_STREAM;
        assert_int_equal(
            leat_partition_absent(core_of_all(), (struct leat_log_ref){ALONE_STREAM, 1, 0}),
            wanted);
        end();
    }
    assert_string_equal(leat_partition_absent_words(LEAT_E_UNKNOWN_STREAM),
                        "the stream was deleted meanwhile");
    assert_string_equal(leat_partition_absent_words(LEAT_E_STARTING),
                        "the log is not ready here: it is being made, moved or taken over, or the "
                        "server stops; try again");
    assert_string_equal(
        leat_partition_absent_words(LEAT_E_NO_MEMORY),
        "the memory budget has no room for another log: delete streams, shorten their "
        "retention, or give the server a larger --memory");
}

/* ---- what a log tells ---- */

static void log_is_dirty_once_a_turn(void **state)
{
    (void)state;
    begin();
    struct leat_partition *partition = make(0), *other = make(1);
    struct leat_core *core = core_of_all();
    leat_list_remove(&other->care); /* it was hibernated */
    leat_list_push_back(&core->data->idle_logs, &other->care);
    other->care_index = 1;
    partition->log->options.events.on_dirty(partition, partition->log);
    partition->log->options.events.on_dirty(partition, partition->log);
    other->log->options.events.on_dirty(other, other->log);
    assert_ptr_equal(core->data->dirty_logs.next, &partition->dirty);
    assert_ptr_equal(core->data->dirty_logs.next->next, &other->dirty);
    assert_ptr_equal(core->data->dirty_logs.prev, &other->dirty);
    assert_true(leat_list_empty(&core->data->idle_logs)); /* it is looked at every second again */
    assert_int_equal(other->care_index, 0);
    assert_ptr_equal(core->data->care_logs.prev, &other->care);
    said_enough();
    struct leat_list waiter;
    partition->log->options.events.on_acked(partition, partition->log);
    assert_said("");
    leat_list_init(&waiter);
    leat_list_push_back(&partition->waiters, &waiter);
    partition->log->options.events.on_acked(partition, partition->log);
    assert_said("acked in 7/1/0\n");
    partition->log->options.events.on_room(partition, partition->log);
    assert_said("room in 7/1/0\n");
    leat_list_remove(&waiter);
    end();
}

/* Goal: another copy is looked for of a last segment that is damaged, where the coordinators say that the log ends with
 * this segment; nothing was written behind it then. */
static void last_segment_that_is_damaged_may_be_had_from_others(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        begin();
        struct leat_partition *partition = make(0);
        struct leat_segment seg = {.id = {4}};
        struct leat_begun_log row = {.epoch = {9}, .record = {.tail = {.segment = 4}}};
        it.row = &row;
        if (i == 1) partition->copies = NULL;
        if (i == 2) partition->state = LEAT_PARTITION_GOES;
        if (i == 3) core_of_all()->stopping = true;
        if (i == 4) it.row = NULL;
        if (i == 5) row.epoch.v = 8;
        if (i == 6) row.record.opened = true;
        if (i == 7) row.record.tail.segment = 3;
        said_enough();
        assert_int_equal(
            partition->log->options.events.on_last_damaged(partition, partition->log, &seg),
            i == 0);
        assert_ptr_equal(partition->last_damaged, i == 0 ? &seg : NULL);
        assert_said(i == 0 ? "node log warn: stream 7, streamlet 1, log 0\n" : "");
        end();
    }
}

static void damaged_segment_is_repaired_by_others(void **state)
{
    (void)state;
    begin();
    struct leat_partition *partition = make(0);
    struct leat_segment seg = {.id = {4}};
    said_enough();
    assert_int_equal(partition->log->options.events.on_damaged(partition, &seg), LEAT_E_NO_MEMORY);
    assert_said("repair 4 of 7/1/0\n");
    core_of_all()->stopping = true;
    assert_int_equal(partition->log->options.events.on_damaged(partition, &seg), LEAT_E_STARTING);
    assert_said("");
    end();
}

/* ---- what a read did not find ---- */

static void read_lacks_what_may_come(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 128; i++) {
        bool damaged = i & 1, first = i & 2, holes = i & 4, held = i & 8, away = i & 16;
        unsigned next = i >> 5; /* 0: in front of the first, 1: at it, 2: behind */
        begin();
        struct leat_partition *partition = make(0);
        struct leat_segment seg = {.base_offset = 50};
        struct leat_read read = {.rc = damaged ? LEAT_E_DAMAGED : LEAT_E_DISK,
                                 .next = {49 + next},
                                 .next_position = {.segment = 5}};
        partition->log->first = first ? &seg : NULL;
        partition->log->held = held ? &seg : NULL;
        partition->holes = holes;
        partition->backfill_node_down = away;
        bool lacks = damaged && first && (next <= 1 || (holes && !held));
        assert_int_equal(leat_partition_lacks(partition, &read), lacks);
        assert_int_equal(leat_partition_hope(partition, &read),
                         lacks && away ? LEAT_E_STARTING : read.rc);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_logs_is_found),
        cmocka_unit_test(table_without_memory_has_longer_chains),
        cmocka_unit_test(log_that_goes_is_nowhere),
        cmocka_unit_test(so_many_logs_are_made_and_no_more),
        cmocka_unit_test(log_is_made_with_what_its_stream_says),
        cmocka_unit_test(log_of_a_stream_that_is_being_deleted_goes_at_once),
        cmocka_unit_test(log_that_cant_be_made_leaves_nothing),
        cmocka_unit_test(log_is_made_again),
        cmocka_unit_test(log_of_groups_is_made_with_them),
        cmocka_unit_test(request_is_sent_where_its_log_is),
        cmocka_unit_test(request_for_what_is_not_here_is_refused_by_name),
        cmocka_unit_test(stream_that_is_not_known_is_refused_by_name),
        cmocka_unit_test(log_that_is_absent_has_a_reason),
        cmocka_unit_test(log_is_dirty_once_a_turn),
        cmocka_unit_test(last_segment_that_is_damaged_may_be_had_from_others),
        cmocka_unit_test(damaged_segment_is_repaired_by_others),
        cmocka_unit_test(read_lacks_what_may_come),
    };
    return cmocka_run_group_tests_name("broker partition", tests, NULL, NULL);
}
