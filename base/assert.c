/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a process that found itself wrong: one line on stderr, then abort; and which actor runs.
 * This file alone writes to stderr: no node log can be trusted any more. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void leat_assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "leat: %s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

_Noreturn void leat_assert_cmp_failed(const char *file, int line, const char *condition,
                                      unsigned long long a, unsigned long long b)
{
    fprintf(stderr, "leat: %s:%d: assertion failed: %s (%llu, %llu)\n", file, line, condition, a,
            b);
    abort();
}

static _Thread_local const void *runs;

void leat_actor_runs(const void *actor)
{
    runs = actor;
}

bool leat_actor_may(const void *actor)
{
    return runs == NULL || runs == actor;
}
