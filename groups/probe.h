/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers see of a home beyond its table: where it is with its commits.
 * Nothing here changes a home. Only tests call this; no program of the product links it.
 *
 * Thread: the home's core, or any while its actor does not run. */
#ifndef LEAT_GROUPS_PROBE_H
#define LEAT_GROUPS_PROBE_H

#include "groups/table.h"

struct leat_groups_seen {
    bool serves;    /* it has read its log, and is not broken */
    bool in_flight; /* a batch is on its way to the log */
    bool waits;     /* requests wait for batches to be acked */
    bool joins;     /* joins wait for other members */
    bool asks;      /* commits wait for answers about segment groups */
    bool gathers;   /* records are there that are in no batch on its way */
    uint64_t acked; /* batches below this number are acked */
};
void leat_groups_see(const struct leat_groups *groups, struct leat_groups_seen *out_seen);
/** The group of this name; NULL: none. The caller does not change it. */
struct leat_group *leat_groups_see_group(struct leat_groups *groups, const char *name);

#endif
