/* SPDX-License-Identifier: Apache-2.0 */
/* The pump: raft_step() on the ports.
 *
 * libraft's core is a pure function: event in, update out. The drive turns time, completions and
 * messages into events, and does what updates ask for in the one safe order: term and vote durable,
 * entries to the log, messages out, committed entries applied. It knows nothing of how many voters
 * there are.
 */
#ifndef LEAT_COORDINATOR_RAFT_DRIVE_H
#define LEAT_COORDINATOR_RAFT_DRIVE_H

#include <raft.h>

#include "base/timer.h"
#include "coordinator/raft/log.h"

enum {
    LEAT_RAFT_ELECTION_MS = 1000,
    LEAT_RAFT_HEARTBEAT_MS = 100,
    LEAT_RAFT_SNAPSHOT_BYTES_MIN = 4 * 1024 * 1024, /* of entries, before a snapshot is worth it */
    LEAT_RAFT_TRAILING_BYTES =
        1024 * 1024,                      /* kept before a snapshot for voters that lag a little */
    LEAT_RAFT_MARK_AFTER_US = 200 * 1000, /* of quiet: then the durable mark is noted */
    LEAT_RAFT_FULL_RETRY_US = 200 * 1000,
    LEAT_RAFT_MESSAGE_BYTES_MAX = 4 * 1024 * 1024, /* of entries in one message */
    LEAT_RAFT_TIMERS = 2,                          /* that a drive needs of its actor's heap */
    LEAT_RAFT_TOLD_MAX = 16, /* servers of a configuration that hear of commits at once */
};

struct leat_raft_hooks {
    /** Apply a committed command. An error stops this voter for good. */
    leat_err (*apply)(void *owner, uint64_t index, const uint8_t *bytes, size_t count);
    leat_err (*snapshot)(void *owner, uint8_t **out_bytes, size_t *out_count);
    leat_err (*restore)(void *owner, const uint8_t *bytes, size_t count);
    /** Send to message->server_id. A view, entries and snapshot included. May be lost. */
    void (*send)(void *owner, const struct raft_message *message);
    /** This voter leads now, or does no longer: leat_raft_drive_leads(). */
    void (*on_state)(void *owner);
    void (*on_failed)(void *owner, leat_err rc, const char *why);
    /** This configuration was committed at this index, after what was applied. May be NULL. */
    void (*on_configuration)(void *owner, uint64_t index,
                             const struct raft_configuration *configuration);
    void *owner;
};

/* Up to where a server was told that entries are committed. */
struct leat_raft_told {
    raft_id id;
    uint64_t index;
};

/* What becomes of the snapshot that is on its way to the disk (README.md, "Snapshots"). */
enum leat_raft_snapshot_state {
    LEAT_RAFT_SNAPSHOT_NONE,
    LEAT_RAFT_SNAPSHOT_TAKES,       /* this voter's own is being saved */
    LEAT_RAFT_SNAPSHOT_TAKES_FIRST, /* likewise, and a received snapshot is saved next */
    LEAT_RAFT_SNAPSHOT_INSTALLS,    /* a received snapshot is being saved */
    LEAT_RAFT_SNAPSHOT_SAVED, /* the received snapshot is saved, and a round is still written */
};

struct leat_raft_drive {
    const struct leat_env *env;
    struct leat_timers *timers;
    struct leat_raft_hooks hooks;
    struct raft raft;
    bool raft_open;
    struct leat_raft_log log;
    struct leat_timer raft_timer, mark_timer;
    uint64_t applied;
    struct leat_raft_told told[LEAT_RAFT_TOLD_MAX]; /* as the configuration's servers stand */
    uint64_t told_all;                              /* every server knows of it */
    bool applying, led;
    leat_err failed;
    uint64_t snapshot_bytes_min, bytes_since_snapshot;
    enum leat_raft_snapshot_state snapshot_state; /* leat_raft_drive_snapshot_enter() */
    struct raft_snapshot_metadata
        install_meta; /* of the received one; its configuration is the drive's */
    struct raft_buffer install_chunk;
    struct raft_entry *fill; /* scratch for messages */
    size_t fill_capacity;
};

/** A received snapshot is to take the place of log and tables. */
static inline bool leat_raft_drive_installs(const struct leat_raft_drive *drive)
{
    return drive->snapshot_state >= LEAT_RAFT_SNAPSHOT_TAKES_FIRST;
}

struct leat_raft_drive_options {
    uint64_t id; /* of this voter, >= 1 */
    const char *address;
    unsigned election_ms, heartbeat_ms;
    uint64_t snapshot_bytes_min, segment_bytes; /* segment_bytes 0: the default */
};

/**
 * Read the log. *out_new: nothing is there; call leat_raft_drive_form() next. Blocks.
 * Thread: startup. Errors: as leat_raft_log_open().
 */
leat_err leat_raft_drive_open(struct leat_raft_drive *drive, const struct leat_env *env,
                              struct leat_timers *timers, const struct leat_raft_hooks *hooks,
                              const struct leat_raft_drive_options *options, bool *out_new,
                              struct leat_error *error) LEAT_NODISCARD;
/** A new cluster of these voters, whose first command is `command`. All voters of one cluster must
 * form with the same arguments. Blocks. */
leat_err leat_raft_drive_form(struct leat_raft_drive *drive,
                              const struct raft_configuration *configuration, const void *command,
                              size_t command_bytes, struct leat_error *error) LEAT_NODISCARD;
/** Before the start, if the id was not known at open. */
void leat_raft_drive_id_set(struct leat_raft_drive *drive, uint64_t id);
/** Restore, and begin to take part. */
leat_err leat_raft_drive_start(struct leat_raft_drive *drive,
                               struct leat_error *error) LEAT_NODISCARD;
void leat_raft_drive_close(struct leat_raft_drive *drive);

/** Propose commands; copied. Returns the index of the first, LEAT_E_NOT_LEADER, LEAT_E_NO_MEMORY.
 */
leat_err leat_raft_drive_submit(struct leat_raft_drive *drive, const struct raft_buffer *commands,
                                unsigned count, uint64_t *out_first_index) LEAT_NODISCARD;
/** Propose other voters. LEAT_E_AGAIN: another change is under way. Else as submit. Only one server
 * may come or go at a time. */
leat_err leat_raft_drive_change(struct leat_raft_drive *drive,
                                const struct raft_configuration *configuration) LEAT_NODISCARD;
/** A configuration is proposed and not committed yet. */
bool leat_raft_drive_changing(const struct leat_raft_drive *drive);
/** Bring the entries to a server that does not vote; RAFT_CATCH_UP_* says how far it is. Leader
 * only. */
void leat_raft_drive_catch_up(struct leat_raft_drive *drive, uint64_t id);
int leat_raft_drive_catch_up_status(const struct leat_raft_drive *drive, uint64_t id);
/** It takes no part any more, for good; hooks.failed is told. */
void leat_raft_drive_fail(struct leat_raft_drive *drive, leat_err rc, const char *why);
/** A message came from message->server_id. Its entries (one batch) and snapshot, from
 * raft_malloc(), are taken; so is the array of entries. */
void leat_raft_drive_receive(struct leat_raft_drive *drive, struct raft_message *message);
/** Index and term of the last entry of this log. */
void leat_raft_drive_last(struct leat_raft_drive *drive, uint64_t *out_index, uint64_t *out_term);
/** The leader is dead, as a majority says: stand for election at once, as if it had asked for it
 * (raft's TimeoutNow). Nothing happens where raft knows of no leader, or of another. */
void leat_raft_drive_take_over(struct leat_raft_drive *drive);
/** Free the memory of a message that was not received. */
void leat_raft_message_drop(struct raft_message *message);
/** End of a turn: one round for all entries that were proposed in the turn. */
void leat_raft_drive_turn_end(struct leat_raft_drive *drive);
bool leat_raft_drive_leads(const struct leat_raft_drive *drive);
/** A round is in flight or wanted. */
bool leat_raft_drive_busy(const struct leat_raft_drive *drive);

#endif
