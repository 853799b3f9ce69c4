/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies between primary and backup: one msgpack array each, whose fields are listed in bodies.def; which
 * request has which is in docs/cluster-protocol.md. Everything comes from outside: bounds are checked, nothing is
 * allocated. */
#ifndef LEAT_REPLICATION_CONTROL_MESSAGES_H
#define LEAT_REPLICATION_CONTROL_MESSAGES_H

#include "base/rmem.h"
#include "replication/control/control.h"
#include "wire/row.h"

enum {
    REP_BODY_BYTES_MAX = 192, /* of a request about one replica */
    REP_PAIR_BYTES_MAX = 24,  /* of a row of RESTAMP, FLUSH, SETTLE */
    REP_ROW_BYTES_MAX = 96,   /* of AUDIT */
    REP_PULL_BYTES_MAX = 96,
    REP_ATTACHED_BYTES_MAX = LEAT_RMEM_GRANT_BYTES_MAX + 32,
};

struct rep_body {
    uint64_t handle;
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_epoch epoch;
    uint32_t version;
    uint32_t capacity;
    uint32_t durability;
    bool incomplete;
    struct leat_prefix_id prefix_id;
    uint64_t next_offset;
    int64_t max_timestamp_ms;
    struct leat_epoch owner; /* under which its sender owns the log; `epoch` is the segment's */
    uint32_t
        passed_bytes; /* CLOSE: of the segment, see leat_segment.passed_bytes; at most its capacity */
};
uint32_t rep_body_encode(const struct rep_body *body, uint8_t out[REP_BODY_BYTES_MAX]);

struct rep_pull {
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_prefix_id prefix_id;
    uint32_t from, count;
    bool whole; /* see leat_backup_pull */
};
uint32_t rep_pull_encode(const struct rep_pull *pull, uint8_t out[REP_PULL_BYTES_MAX]);

struct rep_answer {
    uint64_t handle;
    uint64_t place; /* of the buffer in the arena */
    uint64_t load_bytes;
};
uint32_t rep_answer_encode(const struct rep_answer *answer, uint8_t out[REP_BODY_BYTES_MAX]);

struct rep_attached {
    struct leat_rmem_grant grant;
    uint64_t load_bytes;
};
uint32_t rep_attached_encode(const struct rep_attached *attached,
                             uint8_t out[REP_ATTACHED_BYTES_MAX]);
leat_err rep_attached_decode(const void *bytes, size_t count,
                             struct rep_attached *out) LEAT_NODISCARD;

/* An owner's word. LEAVE: drop it, but its memory may still be written: a session ended with writes
 * under way, and what was detached may land until the arena is revoked (base/rmem.h). */
enum rep_settle {
    REP_SETTLE_DROP = 0,
    REP_SETTLE_KEEP = 1,
    REP_SETTLE_LEAVE = 2,
    REP_SETTLE_WORDS = 4, /* the value: word + this * the owner's epoch */
};

struct rep_pair {
    uint64_t handle, value;
    uint32_t passed; /* KEEP of a closed one: 1 + its passed_bytes; 0: not told */
};
/** Rows of RESTAMP, FLUSH, SETTLE and their answers. out: count * REP_PAIR_BYTES_MAX + 8. */
uint32_t rep_pairs_encode(const struct rep_pair *pairs, uint32_t count, uint8_t *out,
                          size_t out_bytes);
/** At most LEAT_REP_BATCH_MAX. */
leat_err rep_pairs_decode(const void *bytes, size_t count, struct rep_pair *out,
                          uint32_t *out_count) LEAT_NODISCARD;

struct rep_row {
    uint64_t handle;
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_epoch epoch;
    uint32_t version;
    uint32_t state; /* enum leat_segment_state */
    struct leat_prefix_id prefix_id;
};
struct rep_granted {
    struct leat_msg_bin grant;
    uint64_t load_bytes;
};
struct rep_audit {
    uint64_t from;
    bool all; /* not only unconfirmed replicas */
};
struct rep_audited {
    uint64_t next; /* 0: that was the last */
    uint32_t count;
};
struct rep_piece {
    struct leat_msg_bin piece;
    uint32_t passed_bytes;
};

#define LEAT_ROWS "replication/control/bodies.def"
#include "wire/rows_declare.h"

#endif
