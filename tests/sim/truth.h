/* SPDX-License-Identifier: Apache-2.0 */
/* How each log is, seen from inside the nodes: what operators and clients have to be told. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_TRUTH_H
#define LEAT_TESTS_SIM_TRUTH_H

#include "groups/table.h"
#include "multilog/log.h"
#include "tests/sim/scenario.h"

struct truth_log {
    struct leat_log_ref ref; /* by the product's ids */
    const char *stream;
    const struct sim_server *owner; /* by the coordinators' tables; NULL: nobody owns it */
    bool served;                    /* its owner is up and has it; else nothing below is known */
    enum leat_log_state state;
    bool damaged; /* records that were acked can't be read */
    bool full;    /* it asked for a segment last, and its node's disk has no space */
    bool
        passed; /* a start passed over bytes behind a segment's end, and nobody has seen that yet */
    bool below_min;
    uint32_t copies,
        whole;        /* that it should have; that its last segment has, the owner's included */
    uint32_t lacking; /* segments with fewer whole copies than there should be */
    uint32_t
        in_sync; /* of the segment that was begun last: whole, on nodes that serve; 0: none was begun */
    uint64_t first, end; /* offsets */
};
/** Each log of each stream that the coordinators know, internal ones too. false: no node serves whose tables could be
 * asked. */
bool truth_each(struct scenario *scenario, void (*each)(void *arg, const struct truth_log *log),
                void *arg);
bool truth_find(struct scenario *scenario, struct leat_log_ref ref, struct truth_log *out);
/** It waits, is damaged, has stopped, or is nobody's: operators have to hear of it. */
bool truth_is_troubled(const struct truth_log *log);

/* The home of consumer groups whose names come to it. */
struct truth_home {
    bool known;                     /* the coordinators know the stream of homes */
    const struct sim_server *owner; /* NULL: nobody has it */
    struct leat_groups *groups;     /* NULL: its owner is not up, or its log does not serve */
};
void truth_home_find(struct scenario *scenario, const char *group, struct truth_home *out);
/** NULL: no such group; or its home is not there. */
struct leat_group *truth_group_find(struct scenario *scenario, const char *group);

#endif
