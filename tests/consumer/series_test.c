/* SPDX-License-Identifier: Apache-2.0 */
/* The segment groups that a member of a parallel group reads. */
#include "consumer/internal.h"
#include "tests/consumer/engine_rig.h"

static bool is_located(void *owner)
{
    struct rig *rig = owner;
    return rig->engine->logs[0].state != CLOG_LOCATE && rig->engine->logs[0].state != CLOG_LOCATING;
}

/* Goal: a member whose committed offset lies behind its segment group has read the group whole: the group is finished,
 * and the member goes on with its next group. A committed offset within the group is where the member reads on. */
static void consumer_group_committed_to_its_end_is_finished(void **state)
{
    (void)state;
    for (unsigned whole = 0; whole < 2; whole++) {
        struct rig *rig = rig_make(5, LEAT_ENGINE_EARLIEST, 0);
        fill(rig, LOGS * (LEAT_SEGMENTS_PER_GROUP * FAKE_SEGMENT_BATCHES + 3));
        assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
        uint32_t batch = LEAT_SEGMENTS_PER_GROUP * FAKE_SEGMENT_BATCHES - (whole ? 0 : 2);
        struct leat_consumer_log *log = &rig->engine->logs[0];
        struct leat_consumer_row row = {log->ref, 0, rig->world.log[0].batches[batch].offset};
        rig->engine->rows = &row;
        rig->engine->row_count = 1;
        rig->holding = true;
        leat_consumer_lanes_cancel(rig->engine);
        leat_consumer_log_enter(log, CLOG_READY);
        log->group_step = 2;
        leat_consumer_group_enter(rig->engine, log, 0);
        assert_int_equal(log->state, CLOG_LOCATE);
        assert_true(fake_run(&rig->world, rig->world.now_us + 1000000, is_located));
        assert_int_equal(rig->engine->finished_count, whole);
        assert_int_equal(log->group, whole ? 2 : 0);
        assert_int_equal(log->position.group, log->group);
        assert_int_equal(log->position.segment,
                         whole ? 2 * LEAT_SEGMENTS_PER_GROUP : fake_place(batch).segment);
        assert_int_equal(log->next, row.offset);
        if (whole) {
            assert_int_equal(rig->engine->finished[0].group, 0);
            assert_true(leat_log_ref_equal(rig->engine->finished[0].log, row.log));
        }
        rig->engine->rows = NULL;
        rig->engine->row_count = 0;
        rig_end(rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumer_group_committed_to_its_end_is_finished),
    };
    return cmocka_run_group_tests_name("consumer series", tests, NULL, NULL);
}
