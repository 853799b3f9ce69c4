/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a link: each step from one to another is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "link/internal.h"
#include "tests/broken.h"

/* Goal: a link takes the steps of the diagram in link/README.md and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    static struct leat_link link;
    static const char *const may[] = {
        [LINK_WAITING] = "WCN...", [LINK_CONNECTING] = "..N..C", [LINK_NONCE] = "...H.C",
        [LINK_HELLO] = "....UC",   [LINK_UP] = ".....C",         [LINK_CLOSING] = "W....C"};
    assert_steps(link.state, may, "follow[link->state] & 1u << to",
                 leat_link_state_enter(&link, step_to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_checked)};
    return cmocka_run_group_tests_name("link states", tests, NULL, NULL);
}
