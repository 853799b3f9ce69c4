/* SPDX-License-Identifier: Apache-2.0 */
/* What the yardsticks share. */
#ifndef LEAT_TESTS_BENCH_YARDSTICK_H
#define LEAT_TESTS_BENCH_YARDSTICK_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Seconds, of a clock that only goes on. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#endif
