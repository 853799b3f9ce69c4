/* SPDX-License-Identifier: Apache-2.0 */
/* Control bodies between primary and backup: one msgpack array each (wire/message.h). Fields added
 * later go to the end; decoders skip what they do not know. Everything comes from outside: bounds
 * are checked, nothing is allocated.
 *
 * ATTACH  []                           answer [grant bin, load bytes]
 * OPEN, CLOSE, PARK, RESUME, COMPLETE, DROP
 *         [handle, stream, streamlet, log, segment, epoch, version, capacity, durability,
 *          incomplete, bytes, crc, next offset, max timestamp, owner's epoch, passed over]
 *                                      answer [handle, place, load bytes]
 * RESTAMP [[handle, version]...]       answer [[handle, code]...]
 * FLUSH   [[handle, bytes]...]         answer [[handle, code]...]
 * SETTLE  [[handle, enum rep_settle + 4 * owner's epoch, told with KEEP: 1 + passed over]...]
 *                                      answer [[handle, code]...] of those refused
 * AUDIT   [from, all]                  answer [next or 0, [row...]]
 * PULL    [stream, streamlet, log, segment, bytes, crc, from, count]   answer [bin, passed over]
 *         row [handle, stream, streamlet, log, segment, epoch, version, state, bytes, crc]
 * passed over: bytes behind the end of a closed segment, see leat_segment.passed_bytes; at most its capacity
 */
#ifndef LEAT_REPLICATION_CONTROL_MESSAGES_H
#define LEAT_REPLICATION_CONTROL_MESSAGES_H

#include "base/rmem.h"
#include "replication/control/control.h"

enum {
    REP_BODY_BYTES_MAX = 192, /* of what concerns one replica */
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
    struct leat_extent extent;
    uint64_t next_offset;
    int64_t max_timestamp_ms;
    struct leat_epoch owner; /* under which its sender owns the log; `epoch` is the segment's */
    uint32_t passed_bytes;   /* CLOSE: of the segment */
};
uint32_t rep_body_encode(const struct rep_body *body, uint8_t out[REP_BODY_BYTES_MAX]);
leat_err rep_body_decode(const void *bytes, size_t count, struct rep_body *out) LEAT_NODISCARD;

struct rep_pull {
    struct leat_log_ref log;
    struct leat_segment_id segment;
    struct leat_extent extent;
    uint32_t from, count;
    bool whole; /* see leat_backup_pull */
};
uint32_t rep_pull_encode(const struct rep_pull *pull, uint8_t out[REP_PULL_BYTES_MAX]);
leat_err rep_pull_decode(const void *bytes, size_t count, struct rep_pull *out) LEAT_NODISCARD;

struct rep_answer {
    uint64_t handle;
    uint64_t place; /* of the buffer in the arena */
    uint64_t load_bytes;
};
uint32_t rep_answer_encode(const struct rep_answer *answer, uint8_t out[REP_BODY_BYTES_MAX]);
leat_err rep_answer_decode(const void *bytes, size_t count, struct rep_answer *out) LEAT_NODISCARD;

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
    struct leat_extent extent;
};
void rep_row_write(struct leat_msg_writer *writer, const struct rep_row *row);
void rep_row_read(struct leat_msg_reader *reader, struct rep_row *out);

#endif
