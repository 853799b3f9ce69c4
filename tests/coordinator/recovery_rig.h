/* SPDX-License-Identifier: Apache-2.0 */
/* A broker that holds rows and writes records, for the coordinator's recovery: what was acked, on
 * which copies, is known to the world, and every committed end of a log is held against it. */
#ifndef LEAT_TESTS_COORDINATOR_RECOVERY_RIG_H
#define LEAT_TESTS_COORDINATOR_RECOVERY_RIG_H

#include "tests/coordinator/cluster_rig.h"

enum {
    MODEL_STREAMS = 2,
    MODEL_STREAMLETS = 4,
    MODEL_Q = 2,
    MODEL_LOGS = MODEL_STREAMS * MODEL_STREAMLETS * MODEL_Q,
    MODEL_RECORDS_MAX = 24, /* of a segment */
    MODEL_ACKED_MAX = 32768,
    MODEL_COPIES_MAX = 4096,
    MODEL_TRUTHS_MAX = 65536,
    MODEL_EPOCHS_MAX = 65536,
};

/* The bytes that one writer wrote, or tried to write, into one segment. Every copy is a prefix of these bytes. */
struct truth {
    unsigned log;
    uint64_t segment, base;
    uint32_t epoch;
    const struct truth *previous;
    uint32_t previous_count;
    bool previous_closed;
    uint32_t count; /* records */
    uint32_t records[MODEL_RECORDS_MAX];
};
struct copy {
    struct truth *truth; /* NULL: free */
    uint32_t version, count, durable;
    bool closed, pulled;
    uint32_t boot; /* of the node, when the writer got its address */
    char writer[16];
    uint64_t incarnation; /* of the writer */
};
struct own {
    bool active, opened, rolling, busy;
    uint32_t epoch, version;
    unsigned mask; /* nodes of the copies, its own among them */
    struct truth *head, *next;
    struct rig_request *request;
    /* where the log ended when it was taken over */
    const struct truth *tail;
    uint32_t tail_count;
    bool tail_closed;
    uint64_t tail_segment, tail_next;
};
struct model_node {
    struct copy copies[MODEL_COPIES_MAX];
    unsigned copy_count;
    struct own own[MODEL_LOGS];
    uint64_t fenced[RIG_NODES_MAX]; /* incarnations of each node, up to */
    bool zombie_writes;             /* cut off from messages, not from others' memory */
    bool crashed;                   /* it knows */
    enum leat_standing standing;    /* what it was told last; 0: nothing yet */
    unsigned confirmed_late;        /* times told "up" while another node knew of its crash */
    bool came_up, adopting;
    uint64_t logs_most; /* that it says it has memory for; 0: it does not say */
    uint64_t restart_us;
    struct rig_request *adopt, *up;
    bool take[MODEL_STREAMS][MODEL_STREAMLETS];
    struct rig_request *tails[MODEL_STREAMS][MODEL_STREAMLETS];
    struct leat_collect *collects[32];
    uint64_t collect_at[32];
    struct leat_pull *pulls[1024];
    unsigned pull_count;
};
struct model_log {
    uint32_t acked[MODEL_ACKED_MAX];
    uint32_t acked_count;
    uint32_t sealed_epoch; /* newest owner's that anybody has applied */
    uint32_t tail_epoch;   /* the same with a tail: nothing may be acked under an older one */
    bool checked;
    struct leat_tail_record checked_tail;
};
struct model {
    struct rig *rig;
    bool disk;    /* level of the streams */
    bool forgets; /* such things happen */
    bool forgot;  /* a node has lost its disk and its memory: some logs may wait for ever */
    bool slow;    /* answers come late, some after seconds */
    uint32_t stream_ids[MODEL_STREAMS];
    struct model_node nodes[RIG_NODES_MAX];
    struct model_log logs[MODEL_LOGS];
    struct truth *truths[MODEL_TRUTHS_MAX];
    unsigned truth_count;
    uint32_t next_record;
    uint64_t acks;
    struct {
        uint64_t owner;
    } owners[MODEL_STREAMS][MODEL_STREAMLETS][MODEL_EPOCHS_MAX];
};

struct model *model_create(uint64_t seed, unsigned nodes, uint32_t voters, bool disk);
void model_destroy(struct model *model);
/** All nodes boot and come up; the streams are made. */
void model_begin(struct model *model);
/** The node has lost everything. It must be down. */
void model_wipe(struct model *model, unsigned node);
/** Run for so long, in slices between which brokers do their part. */
void model_run(struct model *model, uint64_t us);
/** Run until every log is served by an owner that acks, at most for so long. */
bool model_until_served(struct model *model, uint64_t us);
/** The same, until the leader's tables give every streamlet a living owner. */
bool model_until_owned(struct model *model, uint64_t us);
void model_dump(struct model *model);
bool model_served(struct model *model);

#endif
