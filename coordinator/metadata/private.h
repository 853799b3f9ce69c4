/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the state machine share: machine*.c. */
#ifndef LEAT_COORDINATOR_METADATA_PRIVATE_H
#define LEAT_COORDINATOR_METADATA_PRIVATE_H

#include "base/assert.h"
#include "coordinator/metadata/assign.h"
#include "coordinator/metadata/machine.h"

/* One kind of entry: reads it (entries.h), checks it against the tables, changes these. */
typedef leat_err leat_machine_apply_fn(struct leat_machine *machine, struct leat_msg_reader *reader,
                                       struct leat_machine_result *result);

/* entry.c */
leat_err leat_machine_malformed(struct leat_machine_result *result);
/** The next of the cluster-wide epochs, or 0 when they are used up. */
uint32_t leat_machine_epoch_draw(struct leat_machine *machine);
leat_err leat_machine_epochs_used_up(struct leat_machine_result *result);
void leat_machine_stream_told(struct leat_machine *machine, struct leat_stream_desc *desc);

/* machine.c */
/** A command without its wrapping. */
leat_err leat_machine_apply_plain(struct leat_machine *machine, const uint8_t *bytes, size_t count,
                                  struct leat_machine_result *result);

/** Note a change to what this owner (an index, or LEAT_OWNER_NONE) has. */
void leat_machine_owner_changed(struct leat_machine *machine, uint16_t owner);

/* tables.c, for apply and restore */
leat_err leat_machine_stream_add(struct leat_machine *machine, struct leat_stream_desc *desc,
                                 struct leat_machine_log **out_logs) LEAT_NODISCARD;
void leat_machine_stream_drop(struct leat_machine *machine, struct leat_machine_stream *stream);
struct leat_stream_desc *leat_machine_desc_create(uint32_t id, const char *name, size_t name_bytes,
                                                  const struct leat_stream_settings *settings);
/** The same again, to be changed before it is told. */
struct leat_stream_desc *leat_machine_desc_copy(const struct leat_stream_desc *old);
/**
 * Is there memory for so many logs more, also without the node that has most, by the nodes' announcements when they
 * came up? A node without an announcement counts as the least of the other nodes; without any announcement nothing is
 * known, and the answer is yes. If false, result says why.
 *
 * SUBTLE: brokers check before they ask, each by its own tables. (1) Clients make streams through N nodes in the same
 * moment. (2) Each node finds room for them. (3) All are committed: N times as many as there is room for, and at the
 * next start every node has them again. So the check is repeated when entries are applied, in order, with numbers
 * that all voters have.
 */
bool leat_machine_has_room(const struct leat_machine *machine, uint64_t more,
                           struct leat_machine_result *result);

/* apply_stream.c */
leat_machine_apply_fn leat_machine_apply_form;
leat_machine_apply_fn leat_machine_apply_stream_create;
leat_machine_apply_fn leat_machine_apply_stream_delete;
leat_machine_apply_fn leat_machine_apply_producer_ids;
leat_machine_apply_fn leat_machine_apply_barrier;

/** The step of a log's record from one state to the next: from each state to the states that an owner or an
 * assignment decides. But a log with a tail record never waits, and the answers about a log that waits are not
 * forgotten. */
static inline void leat_record_enter(enum leat_record_state *state, enum leat_record_state to)
{
    enum {
        DECIDED = 1u << LEAT_RECORD_EMPTY | 1u << LEAT_RECORD_ENDED | 1u << LEAT_RECORD_LEFT |
                  1u << LEAT_RECORD_OPENED,
    };
    static const unsigned follow[] = {
        [LEAT_RECORD_EMPTY] = DECIDED,
        [LEAT_RECORD_ENDED] = DECIDED,
        [LEAT_RECORD_LEFT] = DECIDED,
        [LEAT_RECORD_OPENED] = DECIDED | 1u << LEAT_RECORD_WAITS | 1u << LEAT_RECORD_WAITS_HEARD,
        [LEAT_RECORD_WAITS] = DECIDED | 1u << LEAT_RECORD_WAITS | 1u << LEAT_RECORD_WAITS_HEARD,
        [LEAT_RECORD_WAITS_HEARD] = DECIDED | 1u << LEAT_RECORD_WAITS_HEARD,
    };
    LEAT_ASSERT(follow[*state] & 1u << to);
    *state = to;
}

/* apply_log.c */
/** Another record, or another owner's epoch: the only way to change them. */
void leat_machine_log_enter(struct leat_machine_log *log, const struct leat_log_record *record,
                            struct leat_epoch epoch);
leat_machine_apply_fn leat_machine_apply_opened;
leat_machine_apply_fn leat_machine_apply_version;
void leat_machine_refuse_log(struct leat_machine_result *result, bool stream_known,
                             struct leat_log_ref ref);
/* Which logs, in whose name. */
struct leat_claim {
    uint64_t incarnation; /* 0: not said (entries of old) */
    uint32_t epoch;
};
/** An entry in the name of an incarnation that is not the newest of its node comes from the grave. */
bool leat_claim_of_living(struct leat_machine *machine, uint64_t incarnation,
                          struct leat_machine_result *result);
/** The log, if it is the claimant's under this epoch; else NULL, and result says why. */
struct leat_machine_log *leat_claim_check(struct leat_machine *machine, struct leat_log_ref ref,
                                          const struct leat_claim *claim,
                                          struct leat_machine_result *result);

/* apply_assign.c */
struct leat_assign_reader;
/* The next row. false: there is none, or (msg.failed) it does not decode. */
typedef bool leat_assign_next_fn(struct leat_assign_reader *reader, struct leat_assign_row *row);
struct leat_assign_reader { /* copied, to read the rows again */
    struct leat_msg_reader msg;
    leat_assign_next_fn *next;
    uint32_t streamlets, rows; /* that are still to come; rows: of this streamlet */
    bool numbered;             /* ASSIGN: rows say which log; else they come in order */
    bool rest;                 /* the last head was that of the rest */
    const uint8_t *head_at;
    struct leat_assign_row head;
};
struct leat_assign {
    enum leat_assign_reason reason;
    uint64_t incarnation; /* in whose name: all but RECOVERY */
    uint64_t owner; /* the new one, an incarnation: all but RECOVERY, whose rows each say it */
    uint64_t seen;  /* START: what leat_machine_seen() was */
    bool leaves;    /* START: streamlets with a row that WAITS are left to recovery */
    struct leat_assign_reader rows;
};
/** Rows are checked and applied: by streamlet in a RECOVERY, otherwise all or none. */
leat_err leat_machine_assign(struct leat_machine *machine, const struct leat_assign *assign,
                             struct leat_machine_result *result);

/* assign.c */
leat_machine_apply_fn leat_machine_apply_assign;
/** Rows of streamlets, as ASSIGN and RECOVER have them. */
leat_assign_next_fn leat_assign_next;
/** One part of a start has come: the assignment is made with the last part, and not before. row_bytes: the longest
 * possible row, so that an attempt with more rows than there are logs is not kept. */
struct leat_assign_part {
    uint64_t attempt;
    uint32_t number;
    bool last;
    const uint8_t *bytes;
    size_t count, row_bytes;
};
leat_err leat_machine_start_part(struct leat_machine *machine, const struct leat_assign_part *part,
                                 struct leat_assign *assign, struct leat_machine_result *result);

/* apply_legacy.c */
leat_machine_apply_fn leat_machine_apply_adopt;
leat_machine_apply_fn leat_machine_apply_accept_loss;
leat_machine_apply_fn leat_machine_apply_move;
leat_machine_apply_fn leat_machine_apply_recover;

/* apply_change.c */
leat_machine_apply_fn leat_machine_apply_stream_change;

/* apply_node.c */
leat_machine_apply_fn leat_machine_apply_node_up;
leat_machine_apply_fn leat_machine_apply_node_drain;
leat_machine_apply_fn leat_machine_apply_node_state;
leat_machine_apply_fn leat_machine_apply_crash;
/** The owner for an additional streamlet with `logs` logs: among nodes that are up, not draining, and announced
 * memory for the logs, the node with the fewest streamlets; if no node has memory, among all nodes that are up and
 * not draining. NULL: there is none. */
struct leat_machine_node *leat_machine_owner_choose(struct leat_machine *machine, uint32_t logs);
/** The node has an additional streamlet with `logs` logs, or (not more) loses such a streamlet. */
void leat_machine_owner_count(struct leat_machine_node *node, uint32_t logs, bool more);

/* apply_request.c */
leat_machine_apply_fn leat_machine_apply_request;

#endif
