/* SPDX-License-Identifier: Apache-2.0 */
/* What the looks of waits.c and waits_kafka.c share: which logs, nodes and clients no fault concerns. Private to the
 * simulator. */
#ifndef LEAT_TESTS_SIM_WAITS_H
#define LEAT_TESTS_SIM_WAITS_H

#include "tests/sim/scenario.h"

enum {
    SIM_WAITS_WHOLE_US_MAX = 260 * 1000, /* an ack, and the next records */
    SIM_WAITS_FOUND_US_MAX =
        5 * 1000 * 1000,            /* an ack, of a producer that has yet to find the owner */
    SIM_WAITS_CONNS_US = 30 * 1000, /* connections are looked at when a wait has lasted as long */
};

struct sim_wait {
    uint64_t seen_us, since_us;
    uint64_t at, limit_us; /* for what, and how long at most */
};
/** goes_on: what was waited for at the last look is waited for still, and `at` is where. limit_us 0: a fault concerns
 * the wait. true: for too long. */
bool sim_wait_is_late(struct sim_wait *wait, bool goes_on, uint64_t at, uint64_t limit_us,
                      uint64_t now_us);

struct sim_waits_log {
    struct sim_wait ack; /* of what is appended before `at` */
    uint64_t looked_us;
    unsigned owner; /* of the look at that time */
    uint32_t epoch;
    uint64_t first, acked;
    bool readable, ackable;
};
/** As this look found the log at its owner, which serves. NULL: not found. log.stream: the scenario's. */
const struct sim_waits_log *sim_waits_log(const struct scenario *scenario, struct leat_log_ref log);
/** The node and the leader are whole and have reached each other for a while, and the node has no troubled log of that
 * stream, one of the scenario's. */
bool sim_waits_node_reads(const struct scenario *scenario, uint32_t stream, unsigned server);
/** The node, the leader and a majority of the coordinators are whole and have reached each other for a while, as of a
 * look not long ago. */
bool sim_waits_node_is_well(const struct scenario *scenario, unsigned server);
/** No fault has concerned the client's process for a while. */
bool sim_waits_client_is_whole(const struct scenario *scenario, unsigned client);
/** Bytes between them come late, one end of a connection has not heard that the other is gone, or nobody is let in. */
bool sim_waits_conns_are_troubled(const struct sim_process *one, const struct sim_process *other);

/* ---- waits_kafka.c ---- */
/** Whatever clients of Kafka have waited for so far is forgotten. */
void sim_waits_kafka_forget(void);
void sim_waits_kafka_look(struct scenario *scenario);

#endif
