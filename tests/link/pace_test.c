/* SPDX-License-Identifier: Apache-2.0 */
/* Links in time and in number: when calls end, which buffers of sent frames are kept, which address counts. */
#include "tests/link/rig.h"

#include "link/internal.h"

static const uint8_t words[] = {0x93, 1, 2, 3};

/* How many free slots there are, and that they are counted. */
static uint32_t slots_free(const struct leat_links *links)
{
    uint32_t count = 0;
    const struct leat_link_slot *it = links->free_slots.first;
    for (; it; memcpy(&it, (const void *)it, sizeof it)) {
        assert_null(it->big);
        assert_null(it->call);
        assert_null(it->answer);
        count++;
    }
    assert_int_equal(links->free_slot_count, count);
    assert_true(count <= LINK_SLOTS_KEPT_MAX);
    return count;
}

/* Goal: a slot that carried a frame carries a later frame, no more slots are kept than permitted, and they are counted
 * right. */
static void pace_slots_are_used_again(void **state)
{
    (void)state;
    enum { MANY = 900 };
    static struct caller callers[MANY];
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    struct leat_links *near = left->ends[0].links;
    for (unsigned round = 0; round < 3; round++) {
        unsigned count = round == 1 ? MANY : 20;
        for (unsigned i = 0; i < count; i++) {
            callers[i] = (struct caller){
                .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
            call_start(left, 0, &callers[i]);
        }
        run(SECOND);
        unsigned answered = 0;
        for (unsigned i = 0; i < count; i++)
            answered += callers[i].done == 1 && callers[i].matched;
        assert_true(answered >= 20);
        uint32_t there = slots_free(near);
        (void)slots_free(right->ends[0].links);
        if (round == 0) assert_in_range(there, 1, 40);
    }
}

/* Goal: each call ends when its own time is over, whatever the order in which they were asked; those without a limit
 * wait on. */
static void pace_calls_end_each_in_its_time(void **state)
{
    (void)state;
    static const uint64_t limits[] = {700000, 200000, 0, 450000, 200001};
    enum { CALLS = sizeof limits / sizeof limits[0] };
    static struct caller callers[CALLS];
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    for (unsigned i = 0; i < CALLS; i++) {
        callers[i] = (struct caller){.call = {.kind = KIND_HOLD,
                                              .control = words,
                                              .control_bytes = sizeof words,
                                              .timeout_us = limits[i]}};
        call_start(left, 0, &callers[i]);
    }
    for (uint64_t at = 10000; at <= 900000; at += 10000) {
        run(10000);
        for (unsigned i = 0; i < CALLS; i++) {
            bool over = limits[i] && at >= limits[i] + 10000;
            if (limits[i] && at < limits[i]) assert_int_equal(callers[i].done, 0);
            if (over) assert_int_equal(callers[i].done, 1);
            if (over) assert_int_equal(callers[i].rc, LEAT_E_TIMEOUT);
        }
    }
    assert_int_equal(callers[2].done, 0);
    assert_int_equal(left->ends[0].downs, 0); /* their bytes have left: the link stays */
}

static void retry_all(void *arg)
{
    struct node *node = arg;
    if (node->ends[0].link) leat_link_retry(node->ends[0].link);
    if (node->ends[0].accepted) leat_link_retry(node->ends[0].accepted);
}

/* Goal: a retry of a link that is up, or that was accepted, does nothing. */
static void pace_retry_of_what_is_up_does_nothing(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(sim_process_enter(left->process, retry_all, left));
        assert_true(sim_process_enter(right->process, retry_all, right));
        run(SECOND);
    }
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(left->ends[0].downs + left->ends[0].downs_unborn, 0);
    assert_int_equal(right->ends[0].ups, 1);
    assert_int_equal(right->ends[0].downs, 0);
}

/* Goal: a link on which nothing is asked stays, by its pings, and each side hears of the other. */
static void pace_link_stays_up_without_calls(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    const struct leat_link *near = left->ends[0].link, *far = right->ends[0].accepted;
    for (unsigned i = 0; i < 20; i++) {
        run(SECOND);
        uint64_t now = sim_process_now_us(left->process);
        assert_true(now - near->heard_us <= LINK_PING_US + 50000);
        assert_true(sim_process_now_us(right->process) - far->heard_us <= LINK_PING_US + 50000);
    }
    assert_int_equal(left->ends[0].downs + right->ends[0].downs, 0);
    assert_int_equal(near->request_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pace_slots_are_used_again, setup_world, teardown_world),
        cmocka_unit_test_setup_teardown(pace_calls_end_each_in_its_time, setup_world,
                                        teardown_world),
        cmocka_unit_test_setup_teardown(pace_retry_of_what_is_up_does_nothing, setup_world,
                                        teardown_world),
        cmocka_unit_test_setup_teardown(pace_link_stays_up_without_calls, setup_world,
                                        teardown_world),
    };
    return cmocka_run_group_tests_name("link pace", tests, NULL, NULL);
}
