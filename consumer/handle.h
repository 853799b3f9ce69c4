/* SPDX-License-Identifier: Apache-2.0 */
/* What a leat_consumer is, for consumer.c (open, close, seek, commit), place.c (application offsets), background.c
 * and records.c. */
#ifndef LEAT_CONSUMER_HANDLE_H
#define LEAT_CONSUMER_HANDLE_H

#include "client/shared.h"
#include "engine.h"
#include "wire/reader.h"

#include "leat/consumer.h"

/* What a caller asks of the background thread; it waits for the end. */
struct consumer_command {
    struct leat_mail mail;
    enum { COMMAND_SEEK, COMMAND_ASK, COMMAND_COMMIT, COMMAND_LEAVE, COMMAND_STOP } what;
    int64_t partition, value;
    enum leat_engine_from from;
    struct leat_msg_locate question; /* of COMMAND_ASK; and what is answered: */
    uint64_t timeout_us;
    struct leat_msg_located found;
    _Atomic bool done;
    struct leat_error error;
    struct leat_consumer *consumer;
};

/* Per log (parallel mode: per group, in the order in which they were handed over): how far. Kept by
 * the caller's thread, read by a commit. */
struct consumer_place {
    struct leat_log_ref log;
    int64_t group;
    uint64_t next;
    bool changed;
};

enum { CONSUMER_NOTES_MAX = 32 }; /* kept until they are asked for */

struct leat_consumer {
    /* The caller's thread. */
    struct leat_fetched *run; /* being read */
    uint32_t run_at;
    struct leat_batch batch;
    struct leat_record_reader reader;
    bool in_batch;
    leat_record_view view;
    uint8_t *unpacked;
    size_t unpacked_bytes;
    struct consumer_place *places;
    uint32_t place_count, place_capacity, place;
    leat_consumer_stats stats;
    uint32_t q;
    int fd;
    bool parallel; /* in a group whose segment groups are handed out */
    /* Where the batch lies that was asked for last: acked bytes never move. to 0: none was. */
    struct consumer_batch_place {
        uint32_t partition;
        uint64_t from, to; /* its offsets */
        leat_app_offset at;
    } batch_place;

    /* Shared; guarded by lock. */
    struct leat_spin lock;
    struct leat_list runs, returned;
    bool opened, revoked;
    leat_code failed;
    struct leat_error failure, note; /* note: the last of all */
    bool noted;
    struct leat_error notes[CONSUMER_NOTES_MAX]; /* a ring, oldest first */
    uint32_t note_first, note_count;
    uint64_t notes_lost;

    _Atomic bool at_end, hungry; /* hungry: the engine waits for runs to come back */
    struct leat_event ready, command_done;
    struct leat_mail mail;
    _Atomic bool mail_out;

    /* The background thread. */
    struct leat_shared shared;
    struct leat_consumer_engine *engine;
    struct consumer_command *committing;
};

/* background.c */
/** Makes the engine and hands it to the process's background thread. On an error the handle is as it was but for
 *  what consumer.c frees. Caller's thread. */
leat_err leat_consumer_start(struct leat_consumer *consumer, const char *stream,
                             const struct leat_consumer_engine_options *options,
                             const struct leat_shared_options *shared,
                             struct leat_error *error) LEAT_NODISCARD;
/** The background thread looks for runs that came back. Any thread. */
void leat_consumer_notify(struct leat_consumer *consumer);
/** The background thread does what is asked; returns false when `deadline` passes before the end, and then
 *  `command` must live on. Caller's thread. */
bool leat_consumer_command(struct leat_consumer *consumer, struct consumer_command *command,
                           uint64_t deadline);
/** What was fetched and not taken is void. The lock is held. */
void leat_consumer_runs_void(struct leat_consumer *consumer);

/* records.c, caller's thread */
/** The run being read goes back to the background thread. */
void leat_consumer_run_return(struct leat_consumer *consumer);

#endif
