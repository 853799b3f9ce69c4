/* SPDX-License-Identifier: Apache-2.0 */
/* A segment on one node: the descriptor, shared by the store, the log's owner core and the actors that send its
 * bytes.
 *
 * Life:  RESERVED -> OPEN -> CLOSED -> flushed -> evicted (bytes only in the file) -> dropped
 *                    OPEN <-> HIBERNATED (bytes only in the file, the replica stays open)
 *
 * Access: `state` and `bytes`-related fields belong to the owner core; the store changes a segment only between a
 * request of the owner and its answer. Readers hold pins: the owner core takes them, any actor gives them back.
 */
#ifndef LEAT_STORE_SEGMENT_H
#define LEAT_STORE_SEGMENT_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/port.h"
#include "wire/entry.h"

enum leat_segment_state {
    LEAT_SEGMENT_FREE = 0,
    LEAT_SEGMENT_RESERVED = 1,
    LEAT_SEGMENT_OPEN = 2,       /* started; buffer present */
    LEAT_SEGMENT_HIBERNATED = 3, /* started; no buffer; (length, CRC) recorded */
    LEAT_SEGMENT_CLOSED = 4,
};

/* What is known of a segment's bytes where they are stored. leat_segment_integrity_enter() makes each change;
 * multilog/README.md has the diagram. */
enum leat_segment_integrity {
    LEAT_INTEGRITY_OK = 0,
    /* Found in a file at a start, open: after the valid prefix there are other bytes, of a torn write, or of a
     * complete write that is damaged now. Stays so until the next write to the segment. */
    LEAT_INTEGRITY_TORN,
    /* CLOSED: the file was found to have other bytes than `prefix_id` says. The bytes are fetched from another node and
     * written anew (LEAT_STORE_REPAIR), or the replica is replaced; until then no other node gets a copy from here. */
    LEAT_INTEGRITY_CORRUPT,
    /* CLOSED: as CORRUPT, and found so at a start: the bytes never got to the file, and the memory that had them is
     * gone. The place may have bytes of another segment. */
    LEAT_INTEGRITY_MISSING,
};

enum { LEAT_SEGMENT_HEAP_BYTES = 704 }; /* of a stored segment, beside its bytes */

/* Why the node holds the segment. */
enum leat_segment_role {
    LEAT_SEGMENT_OWN = 0,     /* of a log that this node owned at the time of the writes */
    LEAT_SEGMENT_REPLICA = 1, /* written from another node, by one-sided writes into `buffer` */
};

struct leat_segment {
    struct leat_log_ref log;
    struct leat_segment_id id;
    struct leat_epoch epoch; /* with `version`: the stamp */
    uint32_t version;        /* the store's, between request and answer; from 1 */
    enum leat_segment_role role;
    uint64_t writer; /* REPLICA: the incarnation that writes it */
    bool incomplete; /* REPLICA: being made whole; found at a start it is dropped */
    /* REPLICA, CLOSED: cut for an attempt of recovery, whose end may never have been the log's. No owner has counted
     * on it yet. */
    bool provisional;
    enum leat_segment_integrity integrity; /* owner core; the store, while the segment is open */
    /* An operator gave up unreadable bytes of this segment (CLOSED); missing segments before it. The store's, between
     * request and answer. */
    bool given_up, front_given_up;
    /* A start cut the segment to its valid prefix where a single copy decided the log's end, and at least so many
     * bytes after the prefix were no complete write. Kept until the segment is dropped, or an operator has seen the
     * number. Owner core, which has the row written by LEAT_STORE_GIVE_UP; the store reads the number for any row. */
    _Atomic uint32_t passed_bytes;
    enum leat_durability durability;
    uint32_t capacity;      /* bytes, power of two */
    uint32_t row;           /* in the catalogue */
    struct leat_file *file; /* where its slot lies; set at reservation */
    uint64_t file_offset;
    uint32_t file_number; /* "store/N", for people */

    enum leat_segment_state state; /* owner core */
    uint8_t *buffer;               /* NULL: not in memory. Owner core */
    bool flushed;                  /* closed and wholly in its file. Owner core */
    /* Raised by the owner core (release) while COMMITs that follow it are in flight; the store (acquire)
     * writes up to there. */
    _Atomic uint32_t sealed_bytes;
    struct leat_prefix_id prefix_id;   /* CLOSED, HIBERNATED: all of it. Owner core */
    uint64_t base_offset, next_offset; /* next: CLOSED only */
    int64_t max_timestamp_ms;          /* CLOSED only */
    /* CLOSED only: the wall clock of this node after its last record came here. Set together with CLOSED. Retention
     * uses this time if the records' own times can't be right: before 1970, or after their arrival. */
    int64_t written_ms;

    /* Readers' pins on `buffer`; bit 31 = the owner wants the buffer back. See
     * leat_segment_unpin(). */
    _Atomic uint32_t pins;
    struct leat_mail
        unpinned; /* sent to the owner's core when the last pin goes while bit 31 is set */
    const struct leat_post *post; /* of any actor: used with .send only */
    unsigned owner_actor;

    struct leat_list by_log;   /* the owning log's */
    struct leat_list by_store; /* the store's */
    void *log_pointer;         /* the owning log's; REPLICA: the backup's */
    void *copies_pointer;      /* replication's: its set of copies; NULL: none */
};

/** The one way from one integrity to another; the same again is no step. Thread: whose it is, see above. */
void leat_segment_integrity_enter(struct leat_segment *seg, enum leat_segment_integrity to);
/** Its file does not have what `prefix_id` says: corrupt or missing. */
static inline bool leat_segment_is_damaged(const struct leat_segment *seg)
{
    return seg->integrity == LEAT_INTEGRITY_CORRUPT || seg->integrity == LEAT_INTEGRITY_MISSING;
}
/** Damage was found. What is missing stays missing. */
static inline void leat_segment_damage_found(struct leat_segment *seg)
{
    if (!leat_segment_is_damaged(seg)) leat_segment_integrity_enter(seg, LEAT_INTEGRITY_CORRUPT);
}

/** Take a pin. Thread: owner core; the segment has a buffer and is not being evicted. */
void leat_segment_pin(struct leat_segment *seg);
/** Give a pin back. Thread: any. `post` is the caller's own. */
void leat_segment_unpin(struct leat_segment *seg, const struct leat_post *post);
/** Ask for the buffer: true when nobody pins it (nothing was changed); false: bit 31 is set now,
 * and `unpinned` (its `deliver` set before by the owner) arrives once, when the last pin goes.
 * Thread: owner core. */
bool leat_segment_want_back(struct leat_segment *seg) LEAT_NODISCARD;
/** The buffer was asked for, and is still pinned. Thread: the holder of a pin. */
bool leat_segment_is_wanted_back(const struct leat_segment *seg);

#endif
