/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of consumer groups. Private to the simulator. */
#ifndef LEAT_TESTS_SIM_TOLD_GROUPS_H
#define LEAT_TESTS_SIM_TOLD_GROUPS_H

#include "tests/sim/kafka_client.h"

enum sim_group {
    SIM_GROUP_MEMBERS, /* pull.c's, native */
    SIM_GROUP_KAFKA,   /* kafka_pull_group.c's */
    SIM_GROUP_SHARERS, /* pull.c's, in parallel mode: it commits no offsets of logs */
    SIM_GROUP_KEPT,    /* the clerk's: what it has committed is known exactly */
    SIM_GROUP_GONE,    /* the clerk's: deleted, whenever somebody looks */
    SIM_GROUPS,
};
const char *sim_group_name(enum sim_group group);

enum { SIM_GROUP_NOTHING = -1 };
/* What has to be told at least: from before somebody was asked. */
struct sim_groups_seen {
    bool there[SIM_GROUPS];
    uint64_t members; /* a digest of the classic group's members and phase */
    uint64_t shares;  /* a digest of what the parallel group has committed */
    const struct sim_client
        *readers[SIM_CLIENTS_MAX]; /* members that read, as they say themselves */
    unsigned reader_count;
    int64_t committed[SIM_GROUPS][SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX];
    uint64_t ends[SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX];
};
void sim_groups_see(struct scenario *scenario, struct sim_groups_seen *out);

/* What is wrong with an answer: the first. */
struct sim_wrong {
    char text[200];
};
void sim_wrong(struct sim_wrong *wrong, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- told_groups.c ---- */
/** It is quiet: each node, or (not SIM_GROUPS) only the home of that group, has to tell of groups by Kafka's protocol;
 * else the seed fails (A13). */
void sim_groups_look(struct scenario *scenario, const char *when, enum sim_group group);
/* ---- told_groups_native.c ---- */
enum {
    SIM_GROUPS_NATIVE = SIM_GROUPS + SIM_STREAMS,
    SIM_GROUPS_NATIVE_BYTES = SIM_GROUPS_NATIVE * 512
};
/** The nth request: what a group has committed, or where a stream's logs end. How many bytes it has. */
size_t sim_groups_native_ask(struct scenario *scenario, uint32_t nth, uint8_t *out,
                             uint32_t number);
/** frame: the answer to the nth of them. */
void sim_groups_native_judge(struct scenario *scenario, const struct sim_server *server,
                             const struct sim_groups_seen *before, uint32_t nth,
                             const struct leat_frame *frame, struct sim_wrong *wrong);
/** One offset that was told; SIM_GROUP_NOTHING: none. */
void sim_groups_committed_judge(struct scenario *scenario, const struct sim_groups_seen *before,
                                enum sim_group group, uint32_t stream, uint32_t partition,
                                int64_t told, struct sim_wrong *wrong);
/** Where a log ends. refused: nothing was told. */
void sim_groups_end_judge(struct scenario *scenario, const struct sim_server *server,
                          const struct sim_groups_seen *before, uint32_t stream, uint32_t partition,
                          bool refused, uint64_t told, struct sim_wrong *wrong);

uint64_t sim_groups_shares_digest(struct scenario *scenario);

/* ---- told_clerk.c ---- */
/** In most looks somebody commits as one of two groups, and deletes the other. Each step until it is done. */
void sim_clerk_start(struct scenario *scenario, struct sim_kafka *kafka, bool may);
bool sim_clerk_done(void);
const char *sim_clerk_why(void);
/** false: nobody has ever committed as that group, or it was deleted. */
bool sim_clerk_has(enum sim_group group);
int64_t sim_clerk_committed(uint32_t stream, uint32_t partition);

#endif
