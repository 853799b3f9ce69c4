/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of Kafka's protocol, alone or a member of a group: kafka_pull.c reads, kafka_pull_group.c is a member. */
#ifndef LEAT_TESTS_SIM_KAFKA_PULL_H
#define LEAT_TESTS_SIM_KAFKA_PULL_H

#include "tests/sim/kafka_client.h"

enum {
    GROUP_SET = 1, /* the checkers' */
    HEARTBEAT_US = 600 * 1000,
    MEMBERS_MAX = 8,
    MEMBER_ID_BYTES = 80,
};

enum stage { STAGE_FIND, STAGE_JOIN, STAGE_SYNC, STAGE_OFFSETS, STAGE_READ };

struct part {
    bool mine, placed; /* placed: `position` says where to read on */
    uint64_t position;
    int64_t end; /* high watermark as told last; -1: not told */
    bool asked;  /* in a fetch under way */
};
struct puller {
    struct sim_kafka kafka; /* first: sim_kafka_of() */
    struct part parts[SIM_KAFKA_PARTITIONS_MAX];
    uint32_t part_count;
    unsigned fetches; /* under way */
    bool tick_posted, placing, refresh;
    uint64_t turn; /* of the sharing out: answers to questions of an earlier one are void */
    /* a member */
    bool member, heart_posted;
    enum stage stage;
    bool waiting; /* for the answer that the stage is about */
    int32_t coordinator, generation;
    char id[MEMBER_ID_BYTES];
    bool leader;
    char ids[MEMBERS_MAX][MEMBER_ID_BYTES]; /* of the leader's members */
    unsigned id_count;
};

static inline struct sim_rng *rng_of(struct puller *puller)
{
    return &puller->kafka.client->rng;
}

static inline uint32_t stream_of(const struct puller *puller)
{
    return puller->kafka.client->stream;
}

static inline struct leat_kafka_string topic_of(const struct puller *puller)
{
    return sim_kafka_topic_name(puller->kafka.client->scenario, stream_of(puller));
}

/* ---- kafka_pull.c ---- */
/** The next step is due after so long, unless one is due already. */
void puller_later(struct puller *puller, uint64_t delay_us);
void puller_read_on(struct puller *puller);

/* ---- kafka_pull_group.c ---- */
/** A step of a member: join the group, be told the shares and offsets, or read. */
void puller_group_step(struct puller *puller);
/** A member's heartbeat, and then again and again; a member that reads may also commit, or leave for a while. */
void puller_heart(struct sim_world *world, struct sim_event *event);

#endif
