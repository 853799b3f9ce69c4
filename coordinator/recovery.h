/* Recovery inside the coordinator: collect.c (the side that is asked), recovery*.c (the leader). */
#ifndef LEAT_COORDINATOR_RECOVERY_H
#define LEAT_COORDINATOR_RECOVERY_H

#include "coordinator/private.h"

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
struct co_collect_asked {
    const struct leat_crashed_node *crashed;
    size_t crashed_count;
    const struct co_streamlet *streamlets;
    size_t streamlet_count;
};
/* One COLLECT that this node answers. */
struct co_collecting {
    struct leat_list list;
    struct leat_collect collect;
    bool local; /* of the leader here */
    bool told;
    struct leat_link_ticket ticket;
    uint64_t index; /* to be applied here first */
    struct leat_collect_log *logs;
    struct leat_crashed_node *crashed;
    struct co_streamlet *streamlets;
    size_t streamlet_count;
};

/* collect.c */
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
leat_err co_tails_answer(struct leat_coordinator *coordinator,
                         struct leat_coordinate *request) LEAT_NODISCARD;

/* recovery.c */
/** A node's answer; rows may be taken (set to NULL). */
void co_recovery_rows(struct leat_coordinator *coordinator, uint64_t incarnation,
                      struct leat_collect *collect);
void co_recovery_pulled(struct leat_coordinator *coordinator, uint64_t incarnation,
                        uint64_t attempt, const leat_err *codes, uint32_t count);

#endif
