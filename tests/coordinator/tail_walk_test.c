/* SPDX-License-Identifier: Apache-2.0 */
/* The rule for the end of a log in a random world (tail_walk.h): with all rules kept no acked record is ever
 * lost. With any one rule broken a walk loses a record, except for the rules whose effect the model can't see.
 *
 *   coordinator_tail_walk_test [--long | --walks N [RULE]]
 *
 * --long walks 10,000,000 times with all rules kept, and 400,000 times without each of the rules that
 * the model can't see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/metadata/tail.h"
#include "tests/coordinator/tail_walk.h"

enum { STEPS = 400, FIND_WALKS = 600000 };

static uint64_t kept_walks = 200000, blind_walks = 20000;

static void tell(enum walk_rule rule, const struct walk_count *count)
{
    printf("%-20s %" PRIu64 " walks, %" PRIu64 " lost, the first %" PRIu64 "; %" PRIu64
           " owners, %" PRIu64 " heads, %" PRIu64 " generations, %" PRIu64 " attempts in vain\n",
           walk_rule_name(rule), count->walks, count->lost, count->first_lost, count->commits,
           count->heads, count->versions, count->waits);
}

static void walk(enum walk_rule rule, uint64_t walks, bool first_only, struct walk_count *count)
{
    *count = (struct walk_count){0};
    for (uint64_t seed = 0; seed < walks; seed++)
        if (!walk_once(rule, seed, STEPS, count) && first_only) break;
    tell(rule, count);
}

static void walks_lose_nothing(void **state)
{
    (void)state;
    struct walk_count count;
    walk(WALK_NONE, kept_walks, false, &count);
    assert_int_equal(count.lost, 0);
    /* It goes everywhere. */
    assert_true(count.commits > kept_walks / 2 && count.heads > kept_walks / 2);
    assert_true(count.versions > kept_walks / 20 && count.waits > kept_walks / 20);
    const enum leat_tail_reason reasons[] = {LEAT_TAIL_EMPTY,   LEAT_TAIL_RECORDED,
                                             LEAT_TAIL_BY_OPEN, LEAT_TAIL_NO_BYTES,
                                             LEAT_TAIL_NO_OPEN, LEAT_TAIL_NO_PREVIOUS};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        assert_true(count.reasons[reasons[i]] > 0);
}

static void walks_find_each_rule_that_is_broken(void **state)
{
    (void)state;
    for (enum walk_rule rule = WALK_IDLE_CLOSES; rule < WALK_OTHERS_EPOCH; rule++) {
        struct walk_count count;
        walk(rule, FIND_WALKS, true, &count);
        if (count.lost == 0) fail_msg("%s loses nothing", walk_rule_name(rule));
    }
}

/* Goal: were the model to see more of them, this tells. */
static void walks_do_not_see_others(void **state)
{
    (void)state;
    for (enum walk_rule rule = WALK_OTHERS_EPOCH; rule < WALK_RULES_END; rule++) {
        struct walk_count count;
        walk(rule, blind_walks, false, &count);
        if (count.lost > 0) fail_msg("%s loses something now", walk_rule_name(rule));
    }
}

static int walks_of_one(uint64_t walks, const char *name)
{
    for (enum walk_rule rule = WALK_NONE; rule < WALK_RULES_END; rule++) {
        struct walk_count count;
        if (name == NULL || strcmp(name, walk_rule_name(rule)) == 0)
            walk(rule, walks, false, &count);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_lose_nothing),
        cmocka_unit_test(walks_find_each_rule_that_is_broken),
        cmocka_unit_test(walks_do_not_see_others),
    };
    if (argc > 2 && strcmp(argv[1], "--walks") == 0)
        return walks_of_one(strtoull(argv[2], NULL, 10), argc > 3 ? argv[3] : NULL);
    if (argc > 1 && strcmp(argv[1], "--long") == 0) {
        kept_walks = 10 * 1000 * 1000;
        blind_walks = 400 * 1000;
    }
    return cmocka_run_group_tests_name("coordinator tail_walk", tests, NULL, NULL);
}
