/* SPDX-License-Identifier: Apache-2.0 */
/* The node log's lines, each with the letter of its level, since the last look at them. For one test program only. */
#ifndef LEAT_TESTS_COORDINATOR_TOLD_H
#define LEAT_TESTS_COORDINATOR_TOLD_H

#include <stdio.h>
#include <string.h>

#include "base/node_log.h"

static char told[4096];

static void told_add(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    size_t used = strlen(told);
    assert_true(used < sizeof told - 1);
    snprintf(told + used, sizeof told - used, "%c %s\n", "EWID"[level], line);
}

static inline void told_from_now_on(void)
{
    told[0] = '\0';
    leat_node_log_set(told_add, NULL, LEAT_NODE_LOG_DEBUG);
}

#define expect_told(expected)                                                                      \
    do {                                                                                           \
        assert_string_equal(told, expected);                                                       \
        told[0] = '\0';                                                                            \
    } while (0)

#endif
