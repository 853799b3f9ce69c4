/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share, and the layouts of raft's files. */
#ifndef LEAT_COORDINATOR_RAFT_PRIVATE_H
#define LEAT_COORDINATOR_RAFT_PRIVATE_H

#include "base/assert.h"
#include "coordinator/raft/drive.h"

/** A step of README.md's diagram. */
static inline void leat_raft_drive_snapshot_enter(struct leat_raft_drive *drive,
                                                  enum leat_raft_snapshot_state to)
{
    static const unsigned follow[] = {
        [LEAT_RAFT_SNAPSHOT_NONE] =
            1u << LEAT_RAFT_SNAPSHOT_TAKES | 1u << LEAT_RAFT_SNAPSHOT_INSTALLS,
        [LEAT_RAFT_SNAPSHOT_TAKES] =
            1u << LEAT_RAFT_SNAPSHOT_NONE | 1u << LEAT_RAFT_SNAPSHOT_TAKES_FIRST,
        [LEAT_RAFT_SNAPSHOT_TAKES_FIRST] = 1u << LEAT_RAFT_SNAPSHOT_INSTALLS,
        [LEAT_RAFT_SNAPSHOT_INSTALLS] = 1u << LEAT_RAFT_SNAPSHOT_SAVED,
        [LEAT_RAFT_SNAPSHOT_SAVED] = 1u << LEAT_RAFT_SNAPSHOT_NONE,
    };
    LEAT_ASSERT(follow[drive->snapshot_state] & 1u << to);
    drive->snapshot_state = to;
}

/* Between raft/drive.c, raft/drive_open.c and raft/drive_snapshot.c. */
/** Event in, updates done. Refusals are LEAT_E_NOT_LEADER, LEAT_E_AGAIN and, of a submit, LEAT_E_NO_MEMORY;
 * any other failure has stopped the drive. */
leat_err leat_raft_drive_step(struct leat_raft_drive *drive, struct raft_event *event);
/** Timers and completions of the log become events. */
void leat_raft_drive_events_set(struct leat_raft_drive *drive);
void leat_raft_drive_timer_arm(struct leat_raft_drive *drive);
/** What raft wants to know of the stored snapshot. The configuration is the caller's. false: it does not
 * decode, or no memory. */
bool leat_raft_drive_snapshot_meta(const struct leat_raft_drive *drive,
                                   struct raft_snapshot_metadata *out_meta) LEAT_NODISCARD;
/** Take a snapshot if enough has been applied since the last one. */
void leat_raft_drive_snapshot_maybe(struct leat_raft_drive *drive);
/** leat_raft_log.on_snapshot. */
void leat_raft_drive_snapshot_saved(void *owner, leat_err rc);
/** A snapshot was received: it is stored, and then takes the place of the tables and of the log. */
void leat_raft_drive_install_take(struct leat_raft_drive *drive, const struct raft_update *update);
/** Its last step, once it is stored and no round is in flight; else nothing. */
void leat_raft_drive_install_finish(struct leat_raft_drive *drive);

/* Between raft/log.c, raft/load.c and raft/snapshot.c. */
leat_err leat_raft_log_segments_load(struct leat_raft_log *log, const uint64_t *numbers,
                                     size_t count, struct leat_error *error) LEAT_NODISCARD;
leat_err leat_raft_snapshot_load(struct leat_raft_log *log, uint64_t index,
                                 struct leat_error *error) LEAT_NODISCARD;
void leat_raft_snapshot_fini(struct leat_raft_snapshot *snapshot);
leat_err leat_raft_vote_write(struct leat_raft_log *log) LEAT_NODISCARD;
void leat_raft_entries_cut(struct leat_raft_log *log, uint64_t from_index);
leat_err leat_raft_entries_push(struct leat_raft_log *log, uint64_t term, uint32_t type,
                                const void *data, size_t bytes) LEAT_NODISCARD;
leat_err leat_raft_segment_push(struct leat_raft_log *log,
                                struct leat_raft_segment segment) LEAT_NODISCARD;
void leat_raft_path(char out[64], const char *kind, uint64_t number);

/* Layouts. */
struct leat_raft_segment_header {
    uint32_t magic, crc; /* CRC-32C of everything after it */
    uint32_t version, zero32;
    uint64_t number;
    uint64_t previous_end; /* of segment number - 1; 0: there is none to look for */
    uint64_t zero64[4];
};
_Static_assert(sizeof(struct leat_raft_segment_header) == LEAT_RAFT_HEADER_BYTES, "layout");
struct leat_raft_round_header {
    uint32_t magic, crc; /* CRC-32C of everything after it in this header */
    uint64_t segment, at;
    uint32_t bytes, count; /* of the frames */
    uint64_t first_index;
    uint64_t zero64;
};
_Static_assert(sizeof(struct leat_raft_round_header) == LEAT_RAFT_ROUND_HEADER_BYTES, "layout");
struct leat_raft_frame_header {
    uint32_t bytes, crc; /* CRC-32C of the rest of this header and of the data */
    uint64_t term, index;
    uint32_t type, zero32;
};
_Static_assert(sizeof(struct leat_raft_frame_header) == LEAT_RAFT_FRAME_HEADER_BYTES, "layout");
enum {
    LEAT_RAFT_SEGMENT_MAGIC = 0x4746524c, /* "LRFG" */
    LEAT_RAFT_ROUND_MAGIC = 0x4446524c,   /* "LRFD" */
    LEAT_RAFT_VOTE_MAGIC = 0x5646524c,    /* "LRFV" */
    LEAT_RAFT_SNAPSHOT_MAGIC = 0x5346524c,
    LEAT_RAFT_FORMAT_VERSION = 1,
};
/** CRC-32C of a header struct past its magic and crc fields. */
uint32_t leat_raft_header_crc(const void *header, size_t bytes);
uint32_t leat_raft_frame_crc(const struct leat_raft_frame_header *frame, const void *data);

#endif
