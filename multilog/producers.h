/* SPDX-License-Identifier: Apache-2.0 */
/* The producers that a log remembers, so that a retry is never appended twice.
 *
 * An open hash table of struct leat_producer_state, keyed by producer id. Checking and recording never allocate: the
 * table grows only by leat_producers_prepare(), from the end of a turn. State is per (producer, log): docs/stories.md
 * 18 says why sequences are never shared between logs. */
#ifndef LEAT_MULTILOG_PRODUCERS_H
#define LEAT_MULTILOG_PRODUCERS_H

#include "wire/batch.h"
#include "wire/entry.h"

/* The address from which each producer of a table appended last, and how many producers each address has. */
enum { LEAT_PRODUCER_ADDRESSES = 4096 };
struct leat_producer_holders {
    uint16_t counts[LEAT_PRODUCER_ADDRESSES];
    uint16_t of[]; /* [slot_mask + 1]: a place among counts, plus one; 0: not known */
};

struct leat_producers {
    struct leat_producer_state *slots;     /* [slot_mask + 1]; producer_id -1: free */
    struct leat_producer_holders *holders; /* NULL: the table is small */
    uint64_t number; /* random, odd: a client that chooses ids can't choose slots */
    uint32_t slot_mask;
    uint32_t count, count_max;
    bool expired; /* this log has dropped state at least once */
    bool lost;    /* all state was given up: an unknown producer may have appended before */
};

enum leat_producer_verdict {
    LEAT_PRODUCER_NEW,       /* append the batch, then leat_producers_record() */
    LEAT_PRODUCER_DUPLICATE, /* a remembered batch: out_offset is its first offset */
    LEAT_PRODUCER_OLDER,     /* appended earlier; the batch lies below out_offset */
    LEAT_PRODUCER_GAP,
    LEAT_PRODUCER_FENCED,
    LEAT_PRODUCER_UNKNOWN, /* not known here any more, and does not start at 0 */
    LEAT_PRODUCER_GROW,    /* leat_producers_prepare() first */
    LEAT_PRODUCER_FULL,    /* count_max reached */
};

/** Empty table for at most count_max producers; allocates its first slots. number: random. LEAT_E_NO_MEMORY. */
leat_err leat_producers_init(struct leat_producers *producers, uint32_t count_max,
                             uint64_t number) LEAT_NODISCARD;
void leat_producers_fini(struct leat_producers *producers);

/**
 * Judge a batch. More than five in flight are not refused: a refusal in the middle of a pipeline would turn the
 * batches after it into gaps. A repeat of an older batch than the last five is OLDER. out_expected: the sequence that
 * would have been right (GAP, FENCED: the epoch).
 * A batch without producer id is NEW. Thread: owner. Allocates: never.
 */
enum leat_producer_verdict leat_producers_check(const struct leat_producers *producers,
                                                const struct leat_batch *batch,
                                                uint64_t *out_offset, int64_t *out_expected);
/** Remember a batch that was judged NEW and has been appended at first_offset. Cannot fail.
 * Thread: owner. Allocates: never. */
void leat_producers_record(struct leat_producers *producers, const struct leat_batch *batch,
                           uint64_t first_offset, int64_t now_ms);
/** Shall a batch with verdict NEW be refused as FULL all the same? Yes, if its producer is not in the table, the
 * table is more than half full, and the producer's address has a quarter of the table's maximum: the rest is for
 * other addresses. No producer is forgotten in this call. address 0: not known. Thread: owner. */
bool leat_producers_crowded_by(const struct leat_producers *producers, int64_t id,
                               uint32_t address);
/** After leat_producers_record(): the address that the batch came from. Also for a known producer: its address
 * changes, and producers that were read from the log have none. Thread: owner. */
void leat_producers_note(struct leat_producers *producers, int64_t id, uint32_t address);
/** Should the table grow before it must? */
bool leat_producers_wants_room(const struct leat_producers *producers);
/** Bytes that leat_producers_prepare() allocates. */
size_t leat_producers_prepare_bytes(const struct leat_producers *producers);
/** Make room for more producers. LEAT_E_NO_MEMORY: nothing has changed. Thread: owner. */
leat_err leat_producers_prepare(struct leat_producers *producers) LEAT_NODISCARD;
/** Forget producers that were last used before `before_ms` and whose batches all lie below
 * acked_offset. Returns how many. */
uint32_t leat_producers_expire(struct leat_producers *producers, int64_t before_ms,
                               uint64_t acked_offset);
/** While more than keep_count producers are remembered, forget the producer that was last used longest ago, of the
 * producers that leat_producers_expire() would take. Walks the table a few times, and only once when no producer can
 * go. Returns how many. Thread: owner. Allocates: never. */
uint32_t leat_producers_shed(struct leat_producers *producers, uint32_t req_count,
                             int64_t before_ms, uint64_t acked_offset);
/** While the table is close to half full, forget producers that leat_producers_expire() would take, if their address
 * has almost so many producers that the table refuses more. Returns how many. Thread: owner. Allocates: never. */
uint32_t leat_producers_shed_crowds(struct leat_producers *producers, int64_t before_ms,
                                    uint64_t acked_offset);

/** Bytes that leat_producers_encode() writes. */
size_t leat_producers_encoded_bytes(const struct leat_producers *producers);
void leat_producers_encode(const struct leat_producers *producers, uint8_t *out);
/** Replace all state with `count` encoded states. bytes: byte_count bytes, which begin with these. LEAT_E_CORRUPT,
 * LEAT_E_NO_MEMORY. */
leat_err leat_producers_decode(struct leat_producers *producers, const uint8_t *bytes,
                               size_t byte_count, uint32_t count, bool expired) LEAT_NODISCARD;
/** Take in a batch that is in the log already (replay): grows where needed. LEAT_E_NO_MEMORY. */
leat_err leat_producers_replay(struct leat_producers *producers, const struct leat_batch *batch,
                               uint64_t first_offset, int64_t now_ms) LEAT_NODISCARD;

#endif
