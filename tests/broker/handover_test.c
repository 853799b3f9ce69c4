/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that go to another node, and which logs have begun, by handover.c alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/ownership/handover.h"
#include "tests/broker/alone.h"

enum { SEGMENTS = 3, LOGS_MOST = 40 };

static struct {
    struct leat_partition partition;
    struct leat_segment segs[SEGMENTS];
    struct leat_list others; /* what the log's segments stand among */
    unsigned popped;
    void (*on_released)(void *arg, struct leat_log *log);
    void (*on_idle)(void *arg);
    void *released_arg, *idle_arg;
    bool unknown[LOGS_MOST]; /* to the coordinator, by streamlet and log */
    struct leat_log_record records[LOGS_MOST];
    _Alignas(struct leat_begun)
        uint8_t begun[sizeof(struct leat_begun) + sizeof(struct leat_begun_log)]; /* one row */
} it;

static struct leat_begun *begun_table(void)
{
    return (struct leat_begun *)(void *)it.begun;
}

/* ---- what it calls ---- */

bool leat_coordinator_log(const struct leat_coordinator *coordinator, struct leat_log_ref ref,
                          struct leat_log_record *out_record, struct leat_epoch *out_epoch)
{
    uint32_t at = ref.streamlet * alone.desc->settings.logs + ref.log;
    assert_ptr_equal(coordinator, &it);
    assert_int_equal(ref.stream, ALONE_STREAM);
    assert_in_range(at, 0, LOGS_MOST - 1);
    if (it.unknown[at]) return false;
    *out_record = it.records[at];
    out_epoch->v = 100 + at;
    return true;
}
leat_err leat_backup_take_own(struct leat_backup *backup, struct leat_segment *seg,
                              uint64_t incarnation, bool useless)
{
    assert_ptr_equal(backup, &it);
    assert_int_equal(incarnation, ALONE_SELF);
    assert_int_equal(seg->owner_actor, LEAT_ACTOR_CORE_0);
    assert_true(leat_list_empty(&seg->by_log));
    said("the backup takes %llu%s", (unsigned long long)seg->id.v, useless ? ", useless" : "");
    return LEAT_OK;
}
void leat_core_log_stopped(struct leat_core *core)
{
    said("core %u has one log less to stop", core->index);
}
void leat_partition_destroy(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    memset(partition, 0xa5, sizeof *partition);
    said("destroy the partition");
}
void leat_partition_wake(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    assert_true(leat_partition_goes(partition));
    said("wake");
}
void leat_log_release(struct leat_log *log, void (*on_released)(void *arg, struct leat_log *log),
                      void *arg)
{
    assert_ptr_equal(log, &it);
    said("release the log");
    it.on_released = on_released;
    it.released_arg = arg;
}
struct leat_segment *leat_log_segment_pop(struct leat_log *log)
{
    assert_ptr_equal(log, &it);
    return it.popped < SEGMENTS ? &it.segs[it.popped++] : NULL;
}
void leat_primary_log_release(struct leat_primary_log *rep, void (*on_idle)(void *arg), void *arg)
{
    assert_ptr_equal(rep, &it.segs);
    said("release its copies");
    it.on_idle = on_idle;
    it.idle_arg = arg;
}
void leat_walk_log_released(struct leat_core *core, struct leat_log_ref ref)
{
    said("core %u: %s is released", core->index, ref_text(ref));
}

/* ---- the tests' own ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    it.partition = (struct leat_partition){.ref = {ALONE_STREAM, 1, 1},
                                           .core = &alone.cores[1],
                                           .log = (void *)&it,
                                           .copies = (void *)&it.segs};
    alone.cores[0].data->replicate->backup = (void *)&it;
    alone.desc->streamlets[1].owner = ALONE_SELF + 1;
    alone.stream.begun = begun_table();
    leat_list_init(&it.others);
    for (unsigned i = 0; i < SEGMENTS; i++) {
        it.segs[i] = (struct leat_segment){.id = {i}, .owner_actor = 77};
        leat_list_init(&it.segs[i].by_log);
        leat_list_push_back(&it.others, &it.segs[i].by_log);
    }
}

static void end(void)
{
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
}

/* ---- giving up ---- */

static void log_is_given_up_step_by_step(void **state)
{
    (void)state;
    begin();
    it.partition.last_damaged = &it.segs[1];
    leat_partition_give_up(&it.partition);
    assert_said("wake\nrelease the log\n");
    assert_true(leat_partition_goes(&it.partition));
    struct give_up *first = it.partition.give_up;
    leat_partition_give_up(&it.partition); /* once */
    assert_said("");
    assert_ptr_equal(it.partition.give_up, first);
    it.on_released(it.released_arg, it.partition.log);
    assert_said("release its copies\n");
    it.on_idle(it.idle_arg);
    assert_said("destroy the partition\nmail to 0\ncore 1: 7/1/1 is released\n");
    assert_true(leat_list_empty(&it.others));
    alone_deliver();
    assert_said("the backup takes 2\nthe backup takes 1, useless\nthe backup takes 0\n");
    assert_false(alone.cores[1].data->logs_missing);
    end();
}

/* Goal: a log of one copy has no other copies to release, and copies that are released already are not released
 * again. */
static void copies_are_released_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.partition.recover = (void *)&it;
        it.partition.state = i == 1 ? LEAT_PARTITION_LOSS_STOPS : LEAT_PARTITION_ASKS_LOSS;
        leat_partition_give_up(&it.partition);
        assert_said(i == 1 ? "wake\n" : "wake\nrelease the log\n");
        if (i == 0) it.partition.copies = NULL;
        if (i == 1) leat_partition_give_up_go_on(&it.partition, true);
        said_enough();
        it.on_released(it.released_arg, it.partition.log);
        assert_said("destroy the partition\nmail to 0\ncore 1: 7/1/1 is released\n");
        alone_deliver();
        said_enough();
        end();
    }
    begin();
    it.partition.recover = (void *)&it;
    it.partition.state = LEAT_PARTITION_LOSS_STOPS;
    leat_partition_give_up(&it.partition);
    leat_partition_give_up_go_on(&it.partition, false);
    said_enough();
    it.on_released(it.released_arg, it.partition.log);
    assert_said("release its copies\n");
    it.on_idle(it.idle_arg);
    alone_deliver();
    said_enough();
    end();
}

/* Goal: an accepted loss that ended because its node stops does not release the log. The log is released when the
 * partition is given up. */
static void log_is_released_although_an_accepted_loss_stopped_it(void **state)
{
    (void)state;
    begin();
    it.partition.recover = NULL;
    it.partition.state = LEAT_PARTITION_LOSS_STOPS;
    leat_partition_give_up(&it.partition);
    assert_said("wake\nrelease the log\n");
    it.on_released(it.released_arg, it.partition.log);
    assert_said("release its copies\n");
    it.on_idle(it.idle_arg);
    alone_deliver();
    said_enough();
    end();
}

/* Goal: nothing comes back to a core that stops. */
static void log_of_a_core_that_stops_is_counted(void **state)
{
    (void)state;
    begin();
    it.partition.copies = NULL;
    alone.cores[1].stopping = true;
    leat_partition_give_up(&it.partition);
    said_enough();
    it.on_released(it.released_arg, it.partition.log);
    assert_said("destroy the partition\nmail to 0\ncore 1 has one log less to stop\n");
    alone_deliver();
    said_enough();
    end();
}

/* ---- which have begun ---- */

/* Goal: the logs of which anything is told are named, of the streamlets that this incarnation owns. */
static void logs_that_have_begun_are_told(void **state)
{
    (void)state;
    begin();
    assert_null(leat_begun_of(NULL, alone.desc, ALONE_SELF));
    for (unsigned i = 0; i < 4; i++)
        it.records[i].tail.segment = UINT64_MAX; /* fresh */
    alone.desc->streamlets[1].owner = ALONE_SELF;
    assert_null(leat_begun_of((void *)&it, alone.desc, ALONE_SELF));
    it.records[0].opened = true;
    it.records[1].tail.segment = 0;
    it.records[2].tail.jumped = true;
    it.records[3].tail.next_offset = 1;
    struct leat_begun *begun = leat_begun_of((void *)&it, alone.desc, ALONE_SELF);
    assert_int_equal(begun->count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct leat_begun_log *row = &begun->rows[i];
        assert_true(
            leat_log_ref_equal(row->ref, (struct leat_log_ref){ALONE_STREAM, i / 2, i % 2}));
        assert_int_equal(row->epoch.v, 100 + i);
        assert_memory_equal(&row->record, &it.records[i], sizeof row->record);
    }
    assert_int_equal(begun->refs, 1);
    assert_ptr_equal(leat_begun_ref(begun), begun);
    assert_int_equal(begun->refs, 2);
    leat_begun_unref(begun);
    assert_int_equal(begun->refs, 1);
    leat_begun_unref(begun);
    alone.desc->streamlet_count = 1; /* what lies behind the last is no streamlet */
    begun = leat_begun_of((void *)&it, alone.desc, ALONE_SELF);
    assert_int_equal(begun->count, 2);
    leat_begun_unref(begun);
    alone.desc->streamlet_count = ALONE_STREAMLETS;
    it.unknown[0] = it.unknown[2] = true;
    alone.desc->streamlets[0].owner = ALONE_SELF + 1;
    begun = leat_begun_of((void *)&it, alone.desc, ALONE_SELF);
    assert_int_equal(begun->count, 1);
    assert_int_equal(begun->rows[0].epoch.v, 103);
    leat_begun_unref(begun);
    assert_null(leat_begun_ref(NULL));
    leat_begun_unref(NULL);
    end();
}

/* Goal: any number of them is found. */
static void any_number_of_logs_is_found(void **state)
{
    (void)state;
    for (uint32_t logs = 1; logs <= LOGS_MOST / 2; logs++) {
        begin();
        alone.desc->settings.logs = logs;
        alone.desc->streamlets[1].owner = ALONE_SELF;
        it.unknown[logs / 2] = true; /* one is not among them */
        struct leat_begun *begun = leat_begun_of((void *)&it, alone.desc, ALONE_SELF);
        assert_int_equal(begun->count, 2 * logs - 1);
        for (uint32_t i = 0; i < 2 * logs; i++) {
            struct leat_log_ref ref = {ALONE_STREAM, i / logs, i % logs};
            const struct leat_begun_log *row = leat_begun_find(begun, ref);
            if (i == logs / 2)
                assert_null(row);
            else
                assert_int_equal(row->epoch.v, 100 + i);
        }
        assert_null(leat_begun_find(begun, (struct leat_log_ref){ALONE_STREAM, 2, 0}));
        assert_null(leat_begun_find(begun, (struct leat_log_ref){ALONE_STREAM, 1, logs}));
        assert_null(leat_begun_find(NULL, (struct leat_log_ref){ALONE_STREAM, 0, 0}));
        begun->count--; /* what lies behind the last row is none */
        assert_null(leat_begun_find(begun, (struct leat_log_ref){ALONE_STREAM, 1, logs - 1}));
        leat_begun_unref(begun);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_is_given_up_step_by_step),
        cmocka_unit_test(copies_are_released_once),
        cmocka_unit_test(log_is_released_although_an_accepted_loss_stopped_it),
        cmocka_unit_test(log_of_a_core_that_stops_is_counted),
        cmocka_unit_test(logs_that_have_begun_are_told),
        cmocka_unit_test(any_number_of_logs_is_found),
    };
    return cmocka_run_group_tests_name("broker handover", tests, NULL, NULL);
}
