/* SPDX-License-Identifier: Apache-2.0 */
/* What raft must remember, on the disk port: term and vote, entries, one snapshot.
 *
 *   raft/vote        two 4 KiB blocks with the same content, written one after the other, each
 *                    synced: a torn block leaves the other. Term, vote, first live segment, and
 *                    the durable mark (segment, byte): up to there everything is known to be
 *                    synced.
 *   raft/log-N       segments of 8 MiB: a header, then rounds. A round is what one write and one
 *                    sync made durable: header {its own place, bytes, frames}, then frames
 *                    {length, CRC-32C, term, index, type} + data, padded to 8 bytes.
 *   raft/snapshot-I  the state machine up to entry I; written aside, synced, renamed.
 *
 * One round is in flight at a time. So a round at byte b proves that all bytes before b were durable, and after a
 * power cut at most the last round can be torn. An invalid round at the end, with no valid round after it and not
 * below the durable mark, was never acknowledged and may be dropped. Any other invalid bytes are damage: an error
 * names their place, and the voter stays out. (Raft libraries that rename corrupt segments away and vote on lose
 * committed entries.)
 *
 * The mark is written after LEAT_RAFT_MARK_AFTER_US of quiet. So if the last round before a kill becomes corrupt
 * before the mark is written, the round reads as torn, as if this voter had acknowledged nothing of the round.
 */
#ifndef LEAT_COORDINATOR_RAFT_LOG_H
#define LEAT_COORDINATOR_RAFT_LOG_H

#include "base/port.h"
#include "base/types.h"

enum {
    LEAT_RAFT_SEGMENT_BYTES = 8 * 1024 * 1024, /* at most, and where nothing else is said */
    LEAT_RAFT_ROUND_BYTES_MAX = 4 * 1024 * 1024,
    LEAT_RAFT_ENTRY_BYTES_MAX = 2 * 1024 * 1024,
    LEAT_RAFT_SEGMENTS_MAX = 4096, /* live at once; compaction keeps it to a handful */
    LEAT_RAFT_VOTE_BLOCK_BYTES = 4096,
    LEAT_RAFT_HEADER_BYTES = 64,
    LEAT_RAFT_ROUND_HEADER_BYTES = 48,
    LEAT_RAFT_FRAME_HEADER_BYTES = 32,
};

struct leat_raft_entry {
    uint64_t term;
    uint32_t type; /* enum raft_entry_type */
    uint32_t bytes;
    uint8_t *data; /* the log's */
};

struct leat_raft_segment {
    uint64_t number;
    uint64_t last_index; /* highest index that has a frame here; 0: none */
    uint64_t end;        /* byte after the last round */
    struct leat_file *file;
};

/* The stored snapshot, kept in memory too: it is small, and may have to be sent. */
struct leat_raft_snapshot {
    uint64_t index, term, conf_index;
    uint8_t *conf, *data;
    size_t conf_bytes, data_bytes;
};

struct leat_raft_vote_state {
    uint64_t sequence; /* of the block; grows by one with every write */
    uint64_t term, voted_for;
    uint64_t first_segment;
    uint64_t durable_segment, durable_end;
    uint64_t formed; /* 0: the first entries were never completed */
};

struct leat_raft_log {
    const struct leat_disk *disk;
    /* Runs when a round is durable, or has failed (final: the log takes nothing more). */
    void (*on_durable)(void *owner, uint64_t index, leat_err rc);
    void (*on_snapshot)(void *owner, leat_err rc); /* leat_raft_log_snapshot_save() is done */
    void *owner;
    struct leat_raft_vote_state vote;
    struct leat_file *vote_file;
    uint8_t *vote_block; /* one block, 4 KiB aligned */
    void *vote_memory;
    struct leat_raft_segment *segments; /* ascending, without gaps */
    uint32_t segment_count, segment_capacity;
    uint64_t next_segment, segment_bytes; /* of a new segment, unless one entry needs more */
    /* Entries in memory: [start_index, start_index + entry_count) */
    struct leat_raft_entry *entries; /* ring */
    uint64_t start_index;
    size_t entry_count, entry_capacity, entry_front;
    uint64_t entry_bytes;
    uint64_t written_index; /* the last that a round has, or had when it was cut since */
    struct leat_raft_snapshot snapshot; /* index 0: none */
    leat_err failed;
    bool full; /* the disk had no room for a segment */
    /* The round in flight. */
    bool writing;
    uint64_t writing_index; /* its last */
    uint64_t writing_valid; /* its last that was not cut meanwhile */
    uint8_t *round;
    size_t round_bytes, round_capacity;
    struct leat_disk_io write_io, sync_io;
    leat_err write_rc;
    /* The snapshot being saved. */
    bool saving;
    struct leat_raft_snapshot next;
    struct leat_file *save_file;
    uint8_t *save_head;
    size_t save_head_bytes;
    struct leat_disk_io save_ios[3];
    uint32_t save_left;
    leat_err save_rc;
};

/**
 * Read everything. *out_new: the directory holds nothing of raft's: form or join. segment_bytes: of
 * segments made from now on; 0: LEAT_RAFT_SEGMENT_BYTES, which is the most. Blocks.
 * Errors: LEAT_E_DAMAGED (named), LEAT_E_DISK, LEAT_E_NO_MEMORY. Thread: startup.
 */
leat_err leat_raft_log_open(struct leat_raft_log *log, const struct leat_disk *disk,
                            uint64_t segment_bytes, bool *out_new,
                            struct leat_error *error) LEAT_NODISCARD;
/** Write the first entries of a new cluster's log, or none (a voter that joins one), and vote 1 or
 * 0 as term. Blocks. Crash-safe: either nothing is formed, or all of it. */
leat_err leat_raft_log_form(struct leat_raft_log *log, const struct leat_raft_entry *entries,
                            size_t count, struct leat_error *error) LEAT_NODISCARD;
/** Closes files; notes the durable mark if nothing is in flight. */
void leat_raft_log_close(struct leat_raft_log *log);

/** Term and vote, durable on return. Blocks. */
leat_err leat_raft_log_vote(struct leat_raft_log *log, uint64_t term,
                            uint64_t voted_for) LEAT_NODISCARD;
/** Add an entry at `index`; entries from `index` on are cut first; data is copied. In memory until a round writes the
 * entry. */
leat_err leat_raft_log_append(struct leat_raft_log *log, uint64_t index, uint64_t term,
                              uint32_t type, const void *data, size_t bytes) LEAT_NODISCARD;
/** Start a round with what has none yet, if none is in flight. When the disk is full nothing
 * starts, `full` is set, and it may be tried again. */
void leat_raft_log_flush(struct leat_raft_log *log);
/** The same, done on return; on_durable is not called. For start-up. Blocks. */
leat_err leat_raft_log_flush_now(struct leat_raft_log *log) LEAT_NODISCARD;
static inline uint64_t leat_raft_log_last_index(const struct leat_raft_log *log)
{
    return log->start_index + log->entry_count - 1;
}
/** NULL when it is not there (compacted, or not yet). A view until the next append or compaction.
 */
const struct leat_raft_entry *leat_raft_log_get(const struct leat_raft_log *log, uint64_t index);
/** Is the durable mark lower than the end of the durable bytes? */
bool leat_raft_log_mark_wanted(const struct leat_raft_log *log);
/** Note the durable mark. Blocks for two syncs. */
leat_err leat_raft_log_mark(struct leat_raft_log *log) LEAT_NODISCARD;

/** Save a snapshot; takes conf and data (leat_mem memory). on_snapshot follows. One at a time. */
void leat_raft_log_snapshot_save(struct leat_raft_log *log,
                                 const struct leat_raft_snapshot *snapshot);
/** Forget entries below `index` and remove segments that hold nothing else. Blocks. */
leat_err leat_raft_log_compact(struct leat_raft_log *log, uint64_t index) LEAT_NODISCARD;
/** Forget all entries: a snapshot that was received replaces them; the next is at `index`. No round
 * may be in flight. Blocks. */
leat_err leat_raft_log_reset(struct leat_raft_log *log, uint64_t index) LEAT_NODISCARD;

/** One operation on a file, done on return. out_done: bytes read or written; may be NULL. Blocks. */
leat_err leat_raft_io(const struct leat_disk *disk, enum leat_disk_kind kind,
                      struct leat_file *file, uint64_t offset, void *buffer, size_t bytes,
                      size_t *out_done) LEAT_NODISCARD;
/** Can libraft be given these bytes as a configuration? raft/conf.c. Thread: any. */
bool leat_raft_configuration_valid(const uint8_t *bytes, size_t count) LEAT_NODISCARD;

#endif
