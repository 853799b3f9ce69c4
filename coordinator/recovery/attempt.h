/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt of recovery, as the files of this folder share it. collect.c is the side of the nodes that are asked,
 * report.c has both sides of a report, and the rest is the leader's. */
#ifndef LEAT_COORDINATOR_RECOVERY_ATTEMPT_H
#define LEAT_COORDINATOR_RECOVERY_ATTEMPT_H

#include "base/assert.h"
#include "coordinator/membership/services.h"
#include "coordinator/metadata/machine.h"
#include "coordinator/metadata/tail.h"
#include "coordinator/recovery/recovery.h"
#include "wire/msg.h"

enum {
    CO_COLLECT_LOGS_MAX = 8192, /* of one attempt */
    CO_COLLECT_ROWS_MAX = 4 * CO_COLLECT_LOGS_MAX,
    CO_COLLECTS_MAX = 8,  /* that a node answers at once; more are refused */
    CO_PULLS_MAX = 256,   /* of one message */
    CO_PULLINGS_MAX = 16, /* messages of pulls that a node works on at once */
};

struct co_streamlet {
    uint32_t stream, streamlet;
};

/* Bodies: their fields are listed in bodies.def, docs/cluster-protocol.md explains them. */
struct co_collect_said {
    uint64_t attempt, index;
};
struct co_collect_node {
    struct leat_msg_string node;
    uint64_t incarnation;
};
struct co_collect_whom {
    uint32_t node_count, streamlet_count;
};
struct co_attempt_said {
    uint64_t attempt;
};
struct co_pull_source {
    struct leat_msg_string node, node_address;
    uint64_t incarnation;
};
struct co_pulled_said {
    struct leat_msg_string text;
    uint32_t count;
};
struct co_waiting_said {
    struct leat_log_ref log;
    struct leat_msg_string why;
};
struct co_report_said {
    uint64_t ended;
    struct leat_recovery_status now, last;
    uint32_t waiting, rows;
};
#define LEAT_ROWS "coordinator/recovery/bodies.def"
#include "wire/rows_declare.h"

struct co_collect_asked {
    const struct leat_crashed_node *crashed;
    size_t crashed_count;
    const struct co_streamlet *streamlets;
    size_t streamlet_count;
};
/* A COLLECT that this node answers. */
struct co_collecting {
    struct leat_list list;
    struct leat_collect collect;
    bool local; /* this node leads, and asks itself */
    bool told;  /* the broker has it */
    struct leat_link_ticket ticket;
    uint64_t index; /* entries up to this one are applied here before the broker gets it */
    struct leat_collect_log *logs;
    struct leat_crashed_node *crashed;
    struct co_streamlet *streamlets;
    size_t streamlet_count;
};

/* recovery/collect.c */
/** ticket NULL: asked by the leader here. */
leat_err co_collect_add(struct leat_coordinator *coordinator, uint64_t attempt, uint64_t index,
                        const struct co_collect_asked *asked,
                        const struct leat_link_ticket *ticket) LEAT_NODISCARD;
leat_err co_pull_add(struct leat_coordinator *coordinator, const struct leat_pull *pulls,
                     uint32_t count, const struct leat_link_ticket *ticket) LEAT_NODISCARD;
void co_collect_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                     const struct leat_link_ticket *ticket);
void co_pull_take(struct leat_coordinator *coordinator, const struct leat_frame *frame,
                  const struct leat_link_ticket *ticket);
void co_collect_advance(struct leat_coordinator *coordinator);
void co_collect_fini(struct leat_coordinator *coordinator);
leat_err co_rows_decode(const uint8_t *bytes, size_t count, struct leat_replica_row **out_rows,
                        size_t *out_count) LEAT_NODISCARD;

/* ---- the leader's side ---- */

struct co_row {
    struct leat_replica_row row;
    uint32_t node; /* index in the tables */
    bool holds;    /* the replica has the log's decided end */
    bool
        before; /* it has the whole segment before the tail, and that is prepared, too: before_find() */
};
struct co_recover_log {
    struct leat_log_ref ref;
    struct leat_log_record seen;
    struct leat_epoch seen_epoch;
    enum leat_recover_decision decision;
    bool undecided; /* WAITS by the answers of the nodes, not because a copy failed */
    /* The log waits, and all nodes were heard: the entry reports as `tail` the best end that any node has. */
    bool tells;
    struct leat_tail_record tail;
    /* The segment before the tail, if that is prepared, too: before_find(). bytes 0: it is not. */
    struct leat_prefix_id before;
    uint64_t before_next_offset;
    uint32_t row_first, row_count; /* its rows, once sorted */
};
struct co_recover_streamlet {
    struct co_streamlet ref;
    uint64_t seen_owner, owner; /* incarnations */
    struct leat_epoch seen_epoch;
    uint32_t first, logs; /* in the array of logs */
    bool takes; /* it gets a new owner; otherwise its owner lives, and some of its logs wait */
};
/* A copy that is asked for. */
struct co_task {
    uint32_t log, node;
    bool before; /* of the segment before the tail */
};
/* What a node says in an attempt (README.md, "An attempt"). */
enum co_node_answer {
    CO_NODE_UNASKED,
    CO_NODE_ASKED,
    CO_NODE_HEARD, /* its rows are there */
    CO_NODE_MUTE,  /* it has no answer, or is gone: nothing more is waited for */
};
struct co_recovery {
    enum leat_recovery_phase phase; /* co_phase_enter() */
    uint64_t attempt, index;        /* index: of the last entry that was applied at its beginning */
    uint64_t begun_us, phase_us, lost_us; /* lost: when a look first found work; 0: none since */
    uint64_t again_us;                    /* look again then; UINT64_MAX: nothing waits */
    uint64_t node_changes_seen;
    bool looked; /* since this node leads */
    struct co_cursor {
        uint32_t pass, stream, streamlet;
    } cursor;                    /* where the next attempt looks on; zeros: a new round */
    uint32_t round_waits, waits; /* logs that wait: in this round, in this attempt */
    uint64_t look_us, now_us;    /* of the last look at the tables; of the last turn */
    struct {
        uint64_t us, node_changes; /* the last pause between two rounds, and what was known then */
        uint32_t waits;
        bool missed; /* since then a node did not answer, or a log was decided */
    } paced;
    struct co_recover_streamlet *streamlets;
    uint32_t streamlet_count;
    struct co_recover_log *logs;
    uint32_t log_count;
    struct leat_crashed_node *crashed;
    size_t crashed_count;
    struct co_row *rows;
    size_t row_count, row_capacity;
    bool sorted;
    enum co_node_answer nodes[LEAT_NODES_MAX]; /* co_node_enter() */
    uint32_t asked, answered, good;            /* nodes; answered: HEARD or MUTE; good: HEARD */
    struct co_task *tasks;                     /* by node */
    uint32_t task_count, tasks_open;
    struct {
        uint32_t next, end, in_flight; /* of tasks */
    } pulls[LEAT_NODES_MAX];
    struct leat_coordinate request;
    bool committing; /* the request is with the coordinator, even after its attempt was dropped */
    uint8_t *command;
    uint32_t next_streamlet, recovered;
    uint64_t collected_us, prepared_us; /* durations of the attempt */
    struct {
        uint64_t incarnation, since_us;
    } seen[LEAT_NODES_MAX];           /* how long a node's newest incarnation is known here */
    struct leat_recovery_status last; /* of the last attempt that gave a streamlet an owner */
    struct leat_recovery_waiting waiting[LEAT_RECOVERY_WAITING_MAX];
    uint32_t waiting_count;      /* of all logs, also logs without a row */
    uint64_t attempts, fruitful; /* fruitful: attempts that gave a streamlet an owner */
    struct {
        uint64_t attempt, ended, us;
        enum leat_recovery_phase phase;
        uint32_t waits;
    } told;
    struct leat_recovery_report heard; /* the last report of a leader on another node */
    uint64_t heard_from;               /* its voter id */
    /* COLLECTs and PULLs of the leader that this node has not answered. */
    struct leat_list collects, pullings;
    unsigned collecting_count, pulling_count;
};
/** The step of an attempt from one phase to the next. NONE may follow each phase: the attempt is dropped. */
static inline void co_phase_enter(struct co_recovery *it, enum leat_recovery_phase to)
{
    static const unsigned follow[] = {
        [LEAT_RECOVERY_NONE] = 1u << LEAT_RECOVERY_NONE | 1u << LEAT_RECOVERY_COLLECT,
        [LEAT_RECOVERY_COLLECT] = 1u << LEAT_RECOVERY_NONE | 1u << LEAT_RECOVERY_PREPARE,
        [LEAT_RECOVERY_PREPARE] = 1u << LEAT_RECOVERY_NONE | 1u << LEAT_RECOVERY_COMMIT,
        [LEAT_RECOVERY_COMMIT] = 1u << LEAT_RECOVERY_NONE,
    };
    LEAT_ASSERT(follow[it->phase] & 1u << to);
    it->phase = to;
}
/** The step of a node in an attempt; each attempt begins with UNASKED. */
static inline void co_node_enter(struct co_recovery *it, uint32_t node, enum co_node_answer to)
{
    static const unsigned follow[] = {
        [CO_NODE_UNASKED] = 1u << CO_NODE_ASKED,
        [CO_NODE_ASKED] = 1u << CO_NODE_HEARD | 1u << CO_NODE_MUTE,
        [CO_NODE_HEARD] = 0,
        [CO_NODE_MUTE] = 0,
    };
    LEAT_ASSERT(follow[it->nodes[node]] & 1u << to);
    it->nodes[node] = to;
    it->asked += to == CO_NODE_ASKED;
    it->answered += to == CO_NODE_HEARD || to == CO_NODE_MUTE;
    it->good += to == CO_NODE_HEARD;
}
static inline bool co_node_heard(const struct co_recovery *it, uint32_t node)
{
    return it->nodes[node] == CO_NODE_HEARD;
}
enum {
    /* then the missing answers are not waited for, if all logs are decided without them */
    CO_COLLECT_WAIT_US = 100 * 1000,
    CO_COLLECT_WAIT_US_MAX = 2 * 1000 * 1000,
    CO_PULL_US_MAX = 10 * 1000 * 1000,
    CO_RECOVER_NEXT_US = 1000,
    CO_RECOVER_AGAIN_US = 500 * 1000,      /* something waits: twice as long each time ... */
    CO_RECOVER_AGAIN_US_MAX = 4000 * 1000, /* ... up to this, while no node comes or goes */
    /* all nodes are up for so long: an end that no node has is missing */
    CO_ALL_HEARD_US = 5 * 1000 * 1000,
    CO_ADOPT_GRACE_US = 2 * 1000 * 1000, /* a node that came up adopts its own streamlets first */
    CO_RECOVER_COMMAND_BYTES = 1000 * 1000, /* an entry stays below 1 MiB */
};

/* recovery/recovery.c */
void co_recovery_fini(struct leat_coordinator *coordinator);
void co_recovery_advance(struct leat_coordinator *coordinator);
/** A node's answer to COLLECT. rows: taken over when the attempt is the current one. */
void co_recovery_rows(struct leat_coordinator *coordinator, uint64_t incarnation,
                      struct leat_collect *collect);
void co_recovery_pulled(struct leat_coordinator *coordinator, uint64_t incarnation,
                        uint64_t attempt, const leat_err *codes, uint32_t count);
void co_recovery_wait(struct leat_coordinator *coordinator, struct co_recover_log *log,
                      const char *why);

struct leat_recovery_status co_recovery_status(struct leat_coordinator *coordinator);

/* recovery/report.c */
/** The leader sends its report to all nodes: when it has changed, and every second. */
void co_report_tell(struct leat_coordinator *coordinator);
void co_report_take(struct leat_coordinator *coordinator, struct co_peer *peer,
                    const struct leat_frame *frame);

/* recovery/prepare.c */
/** Decides all logs by the rows that have come. last: reports the reason of each log that waits. Returns how many logs
 * can't be decided. */
uint32_t co_recovery_decide(struct leat_coordinator *coordinator, bool last);
/** Choose owners, and the nodes that must make copies. */
leat_err co_recovery_plan(struct leat_coordinator *coordinator) LEAT_NODISCARD;
/** Write streamlets from next_streamlet on into a command; 0: none is left. */
size_t co_recovery_command(struct leat_coordinator *coordinator);

/* recovery/wait.c */
/** Every node that may come back has been up for `up_us`, and has answered this attempt. A node that was drained while
 * it is down, or that is GONE, does not come back. */
bool co_recovery_all_heard(const struct leat_coordinator *coordinator, uint64_t up_us);
/** The best end that any node has of a log that waits (leat_tail_left()); false: no node has any. Rows: sorted. */
bool co_recovery_best(const struct co_recovery *it, const struct co_recover_log *log,
                      struct leat_tail_record *out_best);
/** No log of the streamlet can be decided, and all nodes were heard: the node that gets the streamlet only to answer
 * its clients, as an index in the tables. -1: a log is decided, or a node was not heard. */
int co_recovery_answers(const struct leat_coordinator *coordinator,
                        const struct co_recover_streamlet *streamlet);

/* recovery/calls.c */
void co_recovery_ask(struct leat_coordinator *coordinator, uint32_t node);
/** Ask the node for its next tasks. */
void co_recovery_pull(struct leat_coordinator *coordinator, uint32_t node);

#endif
