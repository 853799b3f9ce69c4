/* SPDX-License-Identifier: Apache-2.0 */
/* What the simulator's fault injectors and checkers see of a store: its segments, the places of their bytes, and
 * their rows. Only tests call this; no program of the product links it.
 *
 * Thread: the store's, or any while its actor does not run. The process of the store may also have died: its memory
 * is as it was then. */
#ifndef LEAT_STORE_PROBE_H
#define LEAT_STORE_PROBE_H

#include "store/store.h"

/* A row of the catalogue, and the segment that has it. */
struct leat_store_seen {
    uint32_t row;
    /* As the row in memory says; on the disk after the next write of its block. */
    struct leat_log_ref log;
    uint64_t segment;
    enum leat_segment_state written;
    bool written_flushed, written_replica;
    /* NULL: the row is damaged, or is that of no segment any more. The rest is said only where there is one. */
    const struct leat_segment *seg;
    bool goes;              /* it is dropped, and the answer is not there yet */
    bool shares_place;      /* another row claims its place in the file, too */
    uint32_t in_file_bytes; /* durable in its file, from the start */
};

/** The row of this number. */
void leat_store_see(const struct leat_store *store, uint32_t row, struct leat_store_seen *out_seen);
/** The next row that says something or has a segment, in order of number; the first one when all of `seen` is zero.
 * false: there is none, or store is NULL. */
bool leat_store_see_next(const struct leat_store *store, struct leat_store_seen *seen);

/** Where the bytes of a segment without a buffer may still be in the node's own pool. NULL: the segment has a buffer,
 * its buffer was in an arena, or another segment has a part of the place by now. A fault writes there as it flips a
 * disk's bits. */
uint8_t *leat_store_left_at(const struct leat_store *store, const struct leat_segment *seg);
/** Is any of these bytes of an arena in a place that the next segment may have? */
bool leat_store_any_free(const struct leat_store_arena *arena, uint64_t offset, uint32_t bytes);
/** Is this operation a piece of a repair (LEAT_STORE_REPAIR), or a flush of a file with a segment under repair? */
bool leat_store_io_repairs(const struct leat_store *store, const struct leat_disk_io *io);
/** Of the pool, without a step that comes or goes. */
uint64_t leat_store_pool_bytes(const struct leat_store *store);
/** Is the last line about disk space in the node log that there is no space? */
bool leat_store_lacks_space(const struct leat_store *store);

/* ---- what a fault takes from a store, and gives back ---- */

enum { LEAT_STORE_TAKEN_MAX = 256 };
struct leat_store_taken {
    unsigned count;
    struct {
        uint8_t *buffer;
        uint32_t capacity;
    } buffers[LEAT_STORE_TAKEN_MAX];
};
/** Takes all free memory of the pool's first step, so that segments go to later steps. Nothing, if the pool can't
 * have two steps. */
void leat_store_memory_take(struct leat_store *store, struct leat_store_taken *out_taken);
/** To the same store, which has not died since. */
void leat_store_memory_give(struct leat_store *store, const struct leat_store_taken *taken);
/** While hidden, free space of the files is not given out. Space that a file has been given and has not grown into
 * yet is not hidden. */
void leat_store_space_hide(struct leat_store *store, bool hidden);

#endif
