/* SPDX-License-Identifier: Apache-2.0 */
/* The raft log alone: what it is when it is opened again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/state.h"
#include "coordinator/raft/drive.h"
#include "tests/coordinator/fake.h"

/* ---- the log alone ---- */

static void log_durable(void *owner, uint64_t index, leat_err rc)
{
    (void)owner;
    (void)index;
    assert_int_equal(rc, LEAT_OK);
}
static void log_saved(void *owner, leat_err rc)
{
    (void)owner;
    assert_int_equal(rc, LEAT_OK);
}

static void log_open(struct leat_raft_log *log, struct fake_world *world)
{
    bool is_new;
    struct leat_error error;
    assert_int_equal(leat_raft_log_open(log, &world->disk, 0, &is_new, &error), LEAT_OK);
    log->on_durable = log_durable;
    log->on_snapshot = log_saved;
}

static void log_put(struct leat_raft_log *log, uint64_t first, uint64_t last, uint64_t term)
{
    if (log->vote.term < term) assert_int_equal(leat_raft_log_vote(log, term, 0), LEAT_OK);
    for (uint64_t i = first; i <= last; i++)
        assert_int_equal(leat_raft_log_append(log, i, term, RAFT_COMMAND, &i, sizeof i), LEAT_OK);
    assert_int_equal(leat_raft_log_flush_now(log), LEAT_OK);
}

/* The first configuration of a cluster of one voter. */
static struct raft_buffer configuration_make(void)
{
    struct raft_configuration configuration;
    struct raft_buffer bytes;
    raft_configuration_init(&configuration);
    assert_int_equal(raft_configuration_add(&configuration, 1, "1", RAFT_VOTER), 0);
    assert_int_equal(raft_configuration_encode(&configuration, &bytes), 0);
    raft_configuration_close(&configuration);
    return bytes;
}

/* A received snapshot is stored, and the process dies before it has removed the entries that the snapshot replaces: the
 * log is shorter than the snapshot, or has other entries. Entries that are written after the restart are still there
 * after the next restart. */
static void log_that_a_snapshot_replaced_goes_on_after_a_death(void **state)
{
    (void)state;
    for (uint64_t last = 62; last <= 70; last += 8) {
        struct fake_world *world = calloc(1, sizeof *world);
        struct leat_raft_log log;
        struct leat_error error;
        struct raft_buffer conf = configuration_make();
        struct leat_raft_entry first[2] = {
            {.type = RAFT_CHANGE, .data = conf.base, .bytes = (uint32_t)conf.len},
            {.type = RAFT_COMMAND, .data = (uint8_t *)"y", .bytes = 1}};
        fake_world_init(world, last);
        log_open(&log, world);
        assert_int_equal(leat_raft_log_form(&log, first, 2, &error), LEAT_OK);
        log_put(&log, 3, last, 1);
        struct leat_raft_snapshot snapshot = {.index = 64, .term = 2, .conf_index = 1};
        snapshot.conf = leat_mem_calloc(LEAT_MEM_COORDINATOR, conf.len, 1);
        snapshot.data = leat_mem_calloc(LEAT_MEM_COORDINATOR, 8, 1);
        memcpy(snapshot.conf, conf.base, conf.len);
        snapshot.conf_bytes = conf.len;
        snapshot.data_bytes = 8;
        raft_free(conf.base);
        assert_int_equal(leat_raft_log_vote(&log, 2, 0), LEAT_OK); /* as whoever receives it has */
        leat_raft_log_snapshot_save(&log, &snapshot);
        fake_world_settle(world);
        leat_raft_log_close(&log);
        log_open(&log, world);
        assert_int_equal(leat_raft_log_last_index(&log), 64);
        log_put(&log, 65, 66, 2);
        leat_raft_log_close(&log);
        log_open(&log, world);
        assert_int_equal(leat_raft_log_last_index(&log), 66);
        assert_non_null(leat_raft_log_get(&log, 65));
        assert_int_equal(leat_raft_log_get(&log, 65)->term, 2);
        leat_raft_log_close(&log);
        fake_world_fini(world);
        free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_that_a_snapshot_replaced_goes_on_after_a_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
