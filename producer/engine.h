/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's logic on the ports: batches, routing, sequences, retries. libleat runs it on a
 * thread of its own; the simulator runs it as an actor. */
#ifndef LEAT_PRODUCER_ENGINE_H
#define LEAT_PRODUCER_ENGINE_H

#include "client/client.h"
#include "wire/batch.h"

struct leat_producer_engine;

struct leat_producer_engine_options {
    uint32_t batch_bytes, linger_us;
    enum leat_codec codec;
    uint64_t buffer_bytes;
    uint64_t timeout_us;
    bool create_streams;
    uint32_t batch_records; /* most records of a batch; 0: no other limit than its bytes */
    const void *actor;      /* the owner, for LEAT_ASSERT_OWNER() */
};
struct leat_produced { /* a record's fate */
    leat_err rc;
    struct leat_log_ref log;
    uint64_t offset; /* UINT64_MAX: acked, but the server no longer remembers where */
    const char *text;
};
typedef void (*leat_produced_fn)(void *arg, const struct leat_produced *produced);

leat_err leat_producer_engine_create(const struct leat_env *env, struct leat_timers *timers,
                                     struct leat_client *client,
                                     const struct leat_producer_engine_options *options,
                                     struct leat_producer_engine **out_engine) LEAT_NODISCARD;
/** After leat_client_destroy(), whose cancelled requests still end here, or after
 * leat_producer_engine_stop(). Records without a fate are reported as LEAT_E_CANCELLED. */
void leat_producer_engine_destroy(struct leat_producer_engine **engine);
/** For a shared client: take back the requests that the client has of this engine, and send no more. True: nothing is
 * left, destroy may follow. False: appends are under way; call again in the turns after their ends, which on_event
 * reports. */
bool leat_producer_engine_stop(struct leat_producer_engine *engine) LEAT_NODISCARD;
/** Queue one record, copied. streamlet -1: by key, else round-robin. LEAT_E_AGAIN: the buffer is
 * full (on_room follows). Thread: the actor. */
leat_err leat_producer_engine_add(struct leat_producer_engine *engine, const char *stream,
                                  int32_t streamlet, int64_t timestamp_ms, const void *key,
                                  size_t key_bytes, const void *value, size_t value_bytes,
                                  leat_produced_fn on_produced, void *arg) LEAT_NODISCARD;
void leat_producer_engine_on_room(struct leat_producer_engine *engine, void (*on_room)(void *arg),
                                  void *arg);
/** Send everything now, without waiting for linger. */
void leat_producer_engine_flush(struct leat_producer_engine *engine);
uint64_t leat_producer_engine_open_records(const struct leat_producer_engine *engine);
void leat_producer_engine_on_turn_end(struct leat_producer_engine *engine);

struct leat_producer_engine_stats {
    uint64_t records_acked, bytes_acked, records_failed, batches_acked, retries, appends_sent;
    uint64_t ids_asked; /* requests for an id, or for the next epoch of one */
    leat_err last_error;
    char last_text[LEAT_ERROR_TEXT_BYTES];
};
const struct leat_producer_engine_stats *
leat_producer_engine_stats(const struct leat_producer_engine *engine);
enum { LEAT_PRODUCER_ENGINE_TIMERS = 3 }; /* what an engine takes of the timers' capacity */

/* For libleat, where records are gathered on the callers' threads: every user of the engine's gather takes this lock,
 * the engine included. */
struct leat_gather;
struct leat_producer_engine_share {
    void *ctx;
    void (*lock)(void *ctx);
    void (*unlock)(void *ctx);
    /** Room, or news of a stream: waiting callers should try again. Not under the lock. */
    void (*on_room)(void *ctx);
    /** Records were acked or failed. Not under the lock. */
    void (*on_progress)(void *ctx);
    /** A callback of the engine ran outside its turn: a turn end is needed. NULL: every callback is followed by a
     * turn end anyway. */
    void (*on_event)(void *ctx);
    /** The number by which the producer of this id chooses among a stream's logs; always the same for
     * one id. NULL: the id. */
    uint64_t (*spread)(void *ctx, int64_t id);
    /** Calls a record's callback, of the type that the gatherer noted. Not under the lock. */
    void (*call)(void (*fn)(void), void *arg, const struct leat_produced *produced);
};
/** Use this gather, borrowed until destroy, in place of an own one. Before any other call. */
void leat_producer_engine_set_share(struct leat_producer_engine *engine, struct leat_gather *gather,
                                    const struct leat_producer_engine_share *share);

#endif
