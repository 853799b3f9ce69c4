/* SPDX-License-Identifier: Apache-2.0 */
/* What cut.c, engine.c, sequence.c and streams.c share. */
#ifndef LEAT_PRODUCER_INTERNAL_H
#define LEAT_PRODUCER_INTERNAL_H

#include "base/assert.h"
#include "gather.h"

enum {
    PRODUCER_FRAME_BATCH_BYTES_MAX = LEAT_FRAME_BYTES_MAX - 64 * 1024,
    /* While appends are under way their answers bring the engine round again; this is only for the
     * case that an answer is long in coming. Not shorter: a 1 ms timer costs 2.7 % of a core. */
    PRODUCER_BUSY_LOOK_US = 20 * 1000,
    PRODUCER_EXPIRY_LOOK_US = 250 * 1000,
    PRODUCER_ID_CONTROL_BYTES = 32,
};

struct leat_producer_append {
    struct leat_request request;
    struct leat_producer_log *log;
    uint32_t count;
    struct leat_producer_batch *batches[LEAT_BATCHES_IN_FLIGHT_MAX];
    struct leat_iov iovs[LEAT_BATCHES_IN_FLIGHT_MAX];
    uint8_t control[64];
    bool busy;
};

/* The producer's log of one streamlet. */
struct leat_producer_log {
    struct leat_list link; /* engine->active while anything is queued */
    struct leat_producer_engine *engine;
    struct leat_producer_stream *stream;
    struct leat_log_ref ref;
    struct leat_list queue; /* batches, oldest first; batches with a sequence come first */
    uint32_t sequenced;     /* how many of the queue have a sequence: at most 5 */
    uint32_t requests_out;
    int32_t next_sequence;
    int16_t epoch;    /* the producer epoch that this log's sequences belong to */
    bool needs_epoch; /* a sequence of this epoch will never be appended: go on in another */
    bool troubled;    /* something failed: nothing new is sent until all is back and thought over */
    uint32_t attempts; /* failed in a row */
    uint64_t retry_at_us;
    struct leat_producer_append appends[LEAT_BATCHES_IN_FLIGHT_MAX];
};

/* What is known of a stream (README.md, "States"). */
enum leat_producer_stream_state { STREAM_UNKNOWN, STREAM_LOOKING, STREAM_KNOWN };
struct leat_producer_stream {
    struct leat_producer_engine *engine;
    struct leat_gather_stream *gathered;
    enum leat_producer_stream_state state; /* leat_producer_stream_enter() */
    bool known_once;
    bool wants_lookup; /* the owners must be asked for again: at the first retry of a log */
    uint32_t id, streamlets, logs, next_streamlet;
    struct leat_producer_log **own; /* [streamlets], made when first used */
    struct leat_list waiting;       /* batches until the stream is known */
    struct leat_client_lookup lookup;
    bool gone; /* it was deleted; asked again when what is under way to its logs has come back */
    uint64_t refused_at_us;
};

/** The step from one state to the next. */
static inline void leat_producer_stream_enter(struct leat_producer_stream *stream,
                                              enum leat_producer_stream_state to)
{
    static const unsigned follow[] = {
        [STREAM_UNKNOWN] = 1u << STREAM_UNKNOWN | 1u << STREAM_LOOKING | 1u << STREAM_KNOWN,
        [STREAM_LOOKING] = 1u << STREAM_UNKNOWN,
        [STREAM_KNOWN] = 1u << STREAM_UNKNOWN | 1u << STREAM_LOOKING,
    };
    LEAT_ASSERT(follow[stream->state] & 1u << to);
    stream->state = to;
}

struct leat_producer_engine {
    const struct leat_env *env;
    struct leat_timers *timers;
    struct leat_client *client;
    struct leat_producer_engine_options options;
    struct leat_gather *gather, own_gather;
    struct leat_producer_engine_share share;
    void (*on_room)(void *arg);
    void *on_room_arg;
    struct leat_producer_stream *streams[LEAT_GATHER_STREAMS_MAX];
    struct leat_list active;
    struct leat_list done; /* batches to give back, all under one lock at the turn's end */
    uint32_t requests_out;
    bool room, progress; /* to be told at the end of the turn */
    uint64_t records_done;
    /* identity */
    int64_t id; /* -1: none yet */
    int16_t epoch;
    bool id_asked, id_paused;
    uint64_t id_retry_at_us;
    uint32_t id_attempts;
    struct leat_request id_request;
    uint8_t id_control[PRODUCER_ID_CONTROL_BYTES];
    struct leat_timer look, expiry;
    uint8_t *scratch; /* for compression */
    struct leat_producer_engine_stats stats;
};

/* engine.c */
uint64_t leat_producer_now(const struct leat_producer_engine *engine);
static inline void leat_producer_gather_lock(struct leat_producer_engine *engine)
{
    if (engine->share.lock) engine->share.lock(engine->share.ctx);
}
static inline void leat_producer_gather_unlock(struct leat_producer_engine *engine)
{
    if (engine->share.unlock) engine->share.unlock(engine->share.ctx);
}
/** A callback of the client has changed something: a turn end should follow. */
static inline void leat_producer_event(struct leat_producer_engine *engine)
{
    if (engine->share.on_event) engine->share.on_event(engine->share.ctx);
}
void leat_producer_trouble(struct leat_producer_engine *engine, leat_err rc, const char *text);
/** The batch's fate is known: tell its records; its memory goes back at the end of the turn. */
void leat_producer_batch_done(struct leat_producer_engine *engine,
                              struct leat_producer_batch *batch, struct leat_log_ref log,
                              leat_err rc, const char *text);
/** Only tell; the batch stays. */
void leat_producer_batch_report(struct leat_producer_engine *engine,
                                struct leat_producer_batch *batch, struct leat_log_ref log,
                                leat_err rc, const char *text);
/** Other batches have taken its records over, with `bytes` of memory of their own. */
void leat_producer_batch_replaced(struct leat_producer_engine *engine,
                                  struct leat_producer_batch *batch, uint64_t bytes);
void leat_producer_id_ask(struct leat_producer_engine *engine);

/* streams.c */
/* After a lookup was refused (no such stream, say) adds are refused too, for this long. */
enum { PRODUCER_REFUSED_US = 1000 * 1000 };

/** Of the first `count`: unknown streams with gathered records are looked up; batches that waited for a stream that
 * is known now are routed, in order. */
void leat_producer_streams_turn(struct leat_producer_engine *engine, uint32_t count);
/** A batch to its log, or to the stream's waiting list. */
void leat_producer_batch_route(struct leat_producer_engine *engine,
                               struct leat_producer_batch *batch);
/** Batches that have waited for the stream longer than their time limit fail by name. */
void leat_producer_stream_expire(struct leat_producer_stream *stream, uint64_t now_us);
/** Ask for the owners again. */
void leat_producer_stream_lookup(struct leat_producer_stream *stream);
/** The stream (or this log) is gone: unsent batches are routed anew. */
void leat_producer_stream_lost(struct leat_producer_stream *stream);

/* cut.c */
/** Whether the batch has more bytes than its stream takes, and more than one record. */
bool leat_producer_batch_too_large(const struct leat_producer_batch *batch);
/** Cut a batch without a sequence into batches that fit: the records in order, with their callbacks. The batch is
 * gone then. A record that is too large by itself gets a batch of its own, which the server refuses.
 * LEAT_E_NO_MEMORY: the batch is as before, and `out` is empty. */
leat_err leat_producer_batch_cut(struct leat_producer_engine *engine,
                                 struct leat_producer_batch *batch,
                                 struct leat_list *out) LEAT_NODISCARD;

/* sequence.c */
void leat_producer_log_queue(struct leat_producer_log *log, struct leat_producer_batch *batch);
void leat_producer_log_pump(struct leat_producer_log *log);
/** Whether a whole frame of batches waits in the log's queue, in addition to the batches under way. */
bool leat_producer_log_has_enough(const struct leat_producer_log *log);
/** Take back the appends under way as far as that goes at once. */
void leat_producer_log_withdraw(struct leat_producer_log *log);
void leat_producer_log_expire(struct leat_producer_log *log, uint64_t now_us);

#endif
