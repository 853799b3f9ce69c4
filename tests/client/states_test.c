/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a client's connection: each step from one to another is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/internal.h"
#include "tests/broken.h"

/* Goal: a connection takes the steps of the diagram in client/README.md and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    static struct leat_client_conn conn;
    static const char *const may[] = {[CONN_IDLE] = ".C...",
                                      [CONN_CONNECTING] = "..H.C",
                                      [CONN_HELLO] = "...OC",
                                      [CONN_OPEN] = "....C",
                                      [CONN_CLOSING] = "....."};
    assert_steps(conn.state, may, "follow[conn->state] & 1u << to",
                 leat_client_conn_enter(&conn, step_to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_checked)};
    return cmocka_run_group_tests_name("client states", tests, NULL, NULL);
}
