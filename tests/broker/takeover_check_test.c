/* SPDX-License-Identifier: Apache-2.0 */
/* What is asserted of logs that come, after each turn and of each step: each rule is broken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/ownership/takeover.h"
#include "tests/broken.h"
#include "tests/broker/alone.h"

static struct leat_takeover
    two[2]; /* of one log: the first goes on, and the other waits for the first */

static void is_of_another_node(void)
{
    static struct leat_core cores[1];
    static struct leat_node other = {.cores = cores};
    two[0].node = &other;
}
static void has_a_segment(void)
{
    two[0].seg = (void *)&alone;
}
static void is_under_way(void)
{
    two[0].busy = true;
}
static void fills_a_hole(void)
{
    two[0].hole_end = 9;
}
static void is_behind_none(void)
{
    two[0].queued = true;
}
static void is_behind_one_of_another_log(void)
{
    two[1].ref.log++;
}
static void is_behind_one_and_goes_on(void)
{
    two[1].busy = true;
}
static void both_go_on(void)
{
    two[0].replaced = true;
    two[1].queued = false;
}
static void is_over(void)
{
    two[0].replaced = true;
}
static void is_over_without_another(void)
{
    two[0].replaced = two[1].replaced = true;
}
static void is_not_counted(void)
{
    alone.cores[0].takeovers->older_count--;
}
static void is_as_it_is(void)
{
}

static const char taken[] = "takeover->seg == NULL || takeover->state == TAKEOVER_TAIL || "
                            "takeover->state == TAKEOVER_OLDER";
static const char visits[] = "takeover->busy || takeover->state != TAKEOVER_ABSENT";
static const char hole[] = "takeover->hole_end == 0 || !takeover_wants_tail(takeover)";
static const char behind[] = "going == 1";
static const char count[] = "older_count == core->takeovers->older_count";
static const char over[] = "lasting > 0";

static void takeovers_are_checked_after_each_turn(void **state)
{
    (void)state;
    static const struct {
        void (*broken)(void);
        const char *rule; /* NULL: none is broken */
        enum takeover_state state;
    } cases[] = {
        {is_as_it_is, NULL, TAKEOVER_TAIL},
        {is_as_it_is, NULL, TAKEOVER_NODE_DOWN},
        {is_as_it_is, visits, TAKEOVER_ABSENT},
        {is_under_way, NULL, TAKEOVER_ABSENT},
        {is_of_another_node, "takeover_core(takeover) == core", TAKEOVER_OLDER},
        {has_a_segment, NULL, TAKEOVER_TAIL},
        {has_a_segment, NULL, TAKEOVER_OLDER},
        {has_a_segment, taken, TAKEOVER_ABSENT},
        {has_a_segment, taken, TAKEOVER_COMPLETE},
        {has_a_segment, taken, TAKEOVER_MISSING},
        {fills_a_hole, NULL, TAKEOVER_OLDER},
        {fills_a_hole, NULL, TAKEOVER_COMPLETE},
        {fills_a_hole, hole, TAKEOVER_TAIL},
        {is_behind_none, behind, TAKEOVER_OLDER},
        {is_behind_one_of_another_log, behind, TAKEOVER_OLDER},
        {is_behind_one_and_goes_on, "!takeover->queued || !takeover->busy", TAKEOVER_OLDER},
        {both_go_on, behind, TAKEOVER_OLDER},
        {is_over, NULL, TAKEOVER_OLDER},
        {is_over_without_another, over, TAKEOVER_OLDER},
        {is_not_counted, count, TAKEOVER_OLDER},
        {is_not_counted, count, TAKEOVER_TAIL},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        alone_begin();
        struct leat_core *core = &alone.cores[0];
        leat_list_init(&core->takeovers->all);
        for (unsigned q = 0; q < 2; q++) {
            two[q] = (struct leat_takeover){
                .node = &alone.node, .ref = {ALONE_STREAM, 0, 1}, .state = TAKEOVER_OLDER};
            leat_list_init(&two[q].link);
            leat_list_push_back(&core->takeovers->all, &two[q].link);
        }
        two[1].queued = true;
        core->takeovers->older_count = 2;
        assert_broken(NULL, leat_takeovers_check(core));
        two[0].state = cases[i].state;
        core->takeovers->older_count = cases[i].state == TAKEOVER_OLDER ? 2 : 1;
        cases[i].broken();
        assert_broken(cases[i].rule, leat_takeovers_check(core));
        alone_end();
    }
}

/* Goal: a takeover takes the steps of the diagram in the README, and no others. */
static void takeover_steps_are_checked(void **state)
{
    (void)state;
    static const char *const may[] = {
        [TAKEOVER_TAIL] = ".AOC...",      [TAKEOVER_ABSENT] = "T......",
        [TAKEOVER_OLDER] = "..OCLMD",     [TAKEOVER_COMPLETE] = ".......",
        [TAKEOVER_NONE_LEFT] = ".......", [TAKEOVER_MISSING] = ".......",
        [TAKEOVER_NODE_DOWN] = "......."};
    alone_begin();
    two[0] = (struct leat_takeover){.node = &alone.node};
    assert_steps(two[0].state, may, "follow[takeover->state] & 1u << to",
                 takeover_enter(&two[0], step_to));
    for (unsigned i = 0; i < sizeof may / sizeof *may; i++) {
        two[0].state = i;
        assert_int_equal(takeover_has_ended(&two[0]), i >= TAKEOVER_COMPLETE);
    }
    alone_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takeovers_are_checked_after_each_turn),
        cmocka_unit_test(takeover_steps_are_checked),
    };
    return cmocka_run_group_tests_name("broker takeover_check", tests, NULL, NULL);
}
