/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions that are to fail: a test that includes this has its own leat_assert_failed(), which the linker takes
 * before the library's. One file of a program includes it. Include after cmocka.h. */
#ifndef LEAT_TESTS_BROKEN_H
#define LEAT_TESTS_BROKEN_H

#include <string.h>

#include "base/assert.h"

static jmp_buf broken_at;
static const char *broken_rule;

_Noreturn void leat_assert_failed(const char *file, int line, const char *condition)
{
    (void)file, (void)line;
    broken_rule = condition;
    longjmp(broken_at, 1);
}
_Noreturn void leat_assert_cmp_failed(const char *file, int line, const char *condition,
                                      unsigned long long a, unsigned long long b)
{
    (void)a, (void)b;
    leat_assert_failed(file, line, condition);
}

/* The call fails by this assertion; NULL: it returns. */
#define assert_broken(expected, call)                                                              \
    do {                                                                                           \
        broken_rule = NULL;                                                                        \
        if (setjmp(broken_at) == 0) call;                                                          \
        if ((expected) == NULL)                                                                    \
            assert_null(broken_rule);                                                              \
        else                                                                                       \
            assert_string_equal(broken_rule, expected);                                            \
    } while (0)

static __attribute__((unused)) unsigned step_from, step_to; /* assert_broken() jumps */

/* Takes each step from a state to a state: a step with a dot in may[from][to] must fail by the assertion `expected`,
 * any other step must succeed. state: the state, in a static struct; enter: the call that takes the step to step_to.
 * may: a string for each state. */
#define assert_steps(state, may, expected, enter)                                                  \
    do {                                                                                           \
        assert_int_equal(strlen((may)[0]), sizeof(may) / sizeof *(may));                           \
        for (step_from = 0; step_from < sizeof(may) / sizeof *(may); step_from++)                  \
            for (step_to = 0; step_to < sizeof(may) / sizeof *(may); step_to++) {                  \
                (state) = (__typeof__(state))step_from;                                            \
                assert_broken((may)[step_from][step_to] != '.' ? NULL : (expected), enter);        \
                assert_int_equal(state, (may)[step_from][step_to] != '.' ? step_to : step_from);   \
            }                                                                                      \
    } while (0)

#endif
