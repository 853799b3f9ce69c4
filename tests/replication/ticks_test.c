/* SPDX-License-Identifier: Apache-2.0 */
/* When the primary's timer runs next: in a tick while something waits that no event may ever end. Each reason by
 * itself, with nothing that would arm the timer besides. */
#include "tests/replication/case_rig.h"

static void timer(void)
{
    rig->quiet = true;
    calm();
    rig->primary->timer.on_expired(&rig->primary->timer);
    trace("-> ");
    armed_trace();
}

static void at_rest(void)
{
    size_t used = trace_used;
    begun();
    rig->primary->crowded_left = rig->primary->crowded_count = 0;
    trace_text[trace_used = used] = '\0';
}

static void op_waits(void)
{
    struct rep_op *op = rep_op_get(rig->primary);
    assert_non_null(op);
    op->copy = copy;
    leat_list_push_back(&rig_peer(rig, 1)->ops_waiting, &op->link);
    rig_peer(rig, 1)->ops = LEAT_REP_CALLS_MAX; /* no answer has come */
}

static void version_waits(void)
{
    leat_list_push_back(&rig->primary->versions, &owned->version_link);
    rig->primary->versions_busy = true; /* others are being told */
}

static void log_waits(void)
{
    leat_list_push_back(&rig->primary->waits, &owned->waits_link);
}

static void timer_runs_in_a_tick_while_something_waits(void **state)
{
    (void)state;
    CASE_AS_IT_IS(at_rest, timer);
    CASE(at_rest, timer, op_waits());
    CASE(at_rest, timer, op_waits(), rig_peer(rig, 1)->state = REP_PEER_UP,
         rig_peer(rig, 1)->retry_us = UINT64_MAX);
    CASE(at_rest, timer, version_waits());
    CASE(at_rest, timer, log_waits());
    TRACE_IS("(void)0: -> , again in 30000000 us\n"
             "op_waits(): -> , again in 20000 us\n"
             "op_waits(), rig_peer(rig, 1)->state = REP_PEER_UP, rig_peer(rig, 1)->retry_us = "
             "UINT64_MAX: -> , again in 20000 us\n"
             "version_waits(): -> , again in 20000 us\n"
             "log_waits(): -> , again in 20000 us\n");
}

/* Goal: a look that is due comes in a tick: with a delay of 0 the timer would run again and again. */
static void look_that_is_due_comes_in_a_tick(void **state)
{
    (void)state;
    const struct {
        uint64_t again_us, next_us;
        uint32_t left;
    } cases[] = {{0, UINT64_MAX, 0}, {1000, REP_TICK_US, 0}, {999, REP_TICK_US, 0},
                 {1001, 1, 0},       {5000, 4000, 0},        {5000, REP_TICK_US, 1}};
    rig = rig_new(0);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        rig->primary->crowded_again_us = cases[c].again_us;
        rig->primary->crowded_left = cases[c].left;
        assert_int_equal(rep_better_next_us(rig->primary, 1000), cases[c].next_us);
    }
    rig->primary->crowded_again_us = rig->primary->crowded_left = 0;
    trace_begin();
}

/* Goal: a segment that was settled is looked at again, together with its log. */
static void segment_that_is_active_again_makes_its_log_step(void **state)
{
    (void)state;
    begun();
    assert_true(leat_list_empty(&owned->dirty_link));
    rep_set_activate(set);
    assert_false(leat_list_empty(&owned->dirty_link));
    trace_begin();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(timer_runs_in_a_tick_while_something_waits),
        TRACE_TEST(look_that_is_due_comes_in_a_tick),
        TRACE_TEST(segment_that_is_active_again_makes_its_log_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
