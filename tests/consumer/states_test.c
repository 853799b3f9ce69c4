/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a consumer's log, and of a member of a group: each step from one to another is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "consumer/internal.h"
#include "tests/broken.h"

/* Goal: a log and a member take the steps of the diagrams in consumer/README.md and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    static struct leat_consumer_log log;
    static const char *const may[] = {[CLOG_LOCATE] = "LIR.",
                                      [CLOG_LOCATING] = "L.R.",
                                      [CLOG_READY] = "L.RF",
                                      [CLOG_FETCHING] = "L.R."};
    assert_steps(log.state, may, "follow[log->state] & 1u << to",
                 leat_consumer_log_enter(&log, step_to));
    static struct leat_consumer_engine engine;
    static const char *const member_may[] = {[GROUP_NONE] = ".J..",
                                             [GROUP_JOINING] = "N.F.",
                                             [GROUP_FETCHING] = "N..I",
                                             [GROUP_IN] = "N..."};
    assert_steps(engine.group_state, member_may, "follow[engine->group_state] & 1u << to",
                 leat_consumer_member_enter(&engine, step_to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_checked)};
    return cmocka_run_group_tests_name("consumer states", tests, NULL, NULL);
}
