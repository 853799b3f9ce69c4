/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a home and of a classic group: each step from one to another is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "groups/internal.h"
#include "tests/broken.h"

/* Goal: a home and a classic group take the steps of the diagrams in groups/README.md, and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    static struct leat_groups home;
    static const char *const life_may[] = {
        [LIFE_NEW] = ".W.", [LIFE_WAKING] = "..A", [LIFE_AWAKE] = "..."};
    assert_steps(home.life, life_may, "follow[groups->life] & 1u << to",
                 leat_groups_enter(&home, step_to));
    static struct leat_classic classic;
    static const char *const may[] = {[LEAT_CLASSIC_EMPTY] = ".P..",
                                      [LEAT_CLASSIC_PREPARING] = "E.C.",
                                      [LEAT_CLASSIC_COMPLETING] = ".P.S",
                                      [LEAT_CLASSIC_STABLE] = ".PC."};
    assert_steps(classic.phase, may, "follow[classic->phase] & 1u << to",
                 leat_classic_enter(&classic, step_to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_checked)};
    return cmocka_run_group_tests_name("groups states", tests, NULL, NULL);
}
