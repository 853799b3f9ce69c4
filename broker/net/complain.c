/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of a node, for operators: in the node log, and kept until the node has ended. */
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/node_log.h"
#include "broker/net/core.h"

void leat_complaint_keep(struct leat_node *node, const char *line)
{
    /* SUBTLE: cores give up their logs in the same tick when the node stops, each on its own thread. */
    uint32_t at = atomic_fetch_add_explicit(&node->complaint_count, 1, memory_order_relaxed);
    if (at < LEAT_COMPLAINTS_MAX) node->complaints[at] = leat_mem_strdup(LEAT_MEM_BROKER, line);
}

void leat_node_complain(struct leat_node *node, const char *format, ...)
{
    char line[LEAT_COMPLAINT_BYTES_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    leat_node_log_error("%s", line);
    leat_complaint_keep(node, line);
}

void leat_node_complaints(const struct leat_node *node, void (*each)(void *arg, const char *line),
                          void *arg)
{
    uint32_t dropped = atomic_load_explicit(&node->complaint_count, memory_order_relaxed);
    for (uint32_t i = 0; i < LEAT_COMPLAINTS_MAX; i++) {
        if (node->complaints[i] == NULL) continue;
        each(arg, node->complaints[i]);
        dropped--;
    }
    if (dropped == 0) return;
    char line[96];
    snprintf(line, sizeof line, "and %u complaints more, see the node log", dropped);
    each(arg, line);
}
