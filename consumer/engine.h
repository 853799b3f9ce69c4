/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's logic on the ports: positions, fetches, prefetch, group membership, commits. */
#ifndef LEAT_CONSUMER_ENGINE_H
#define LEAT_CONSUMER_ENGINE_H

#include "client/client.h"
#include "wire/batch.h"

struct leat_consumer_engine;

enum leat_engine_from {
    LEAT_ENGINE_EARLIEST,
    LEAT_ENGINE_LATEST,
    LEAT_ENGINE_OFFSET,
    LEAT_ENGINE_TIME,
    LEAT_ENGINE_COMMITTED
};
struct leat_consumer_engine_options {
    const char *stream;
    const char *group; /* NULL: alone */
    bool parallel;     /* group mode */
    enum leat_engine_from from;
    int64_t from_value;
    int32_t streamlet, log; /* -1: all */
    uint32_t fetch_bytes, min_bytes, wait_ms, session_ms, prefetch;
    const void *actor; /* the owner, for LEAT_ASSERT_OWNER() */
};
/* A fetched run of batches of a log; owned by the engine until given back. */
struct leat_fetched {
    struct leat_list link;
    struct leat_log_ref log;
    uint64_t from_offset;  /* skip records below it */
    uint64_t end_offset;   /* parallel mode: skip records from here on; else UINT64_MAX */
    uint64_t acked_offset; /* end of the log when this was answered */
    int64_t group;         /* parallel mode: the segment group of these records; else -1 */
    uint8_t *bytes;
    uint32_t byte_count;
};
struct leat_consumer_engine_events {
    void (*on_ready)(void *owner, leat_err rc,
                     const struct leat_error *error); /* positions taken, or refused */
    void (*on_fetched)(void *owner); /* leat_consumer_engine_take() has something */
    void (*on_error)(void *owner,
                     const struct leat_error
                         *error); /* for people; the engine goes on unless class FATAL/REJECT */
    /** Group mode: these partitions are no longer this member's; records of these that were taken but not yet
     * processed are void. */
    void (*on_revoked)(void *owner);
    void *owner;
};
leat_err leat_consumer_engine_create(const struct leat_env *env, struct leat_timers *timers,
                                     struct leat_client *client,
                                     const struct leat_consumer_engine_options *options,
                                     const struct leat_consumer_engine_events *events,
                                     struct leat_consumer_engine **out_engine) LEAT_NODISCARD;
/** After leat_client_destroy(); everything taken has been given back. */
void leat_consumer_engine_destroy(struct leat_consumer_engine **engine);
/** The oldest ready run, or NULL. Give each back by leat_consumer_engine_give() (that makes room
 * for prefetch). */
struct leat_fetched *leat_consumer_engine_take(struct leat_consumer_engine *engine);
void leat_consumer_engine_give(struct leat_consumer_engine *engine, struct leat_fetched *fetched);
/** All logs read to the end that their last answers named, and nothing left to take. */
bool leat_consumer_engine_at_end(const struct leat_consumer_engine *engine);
/** Begin again, at one partition (-1: all); the other partitions go on after the last processed record, so records
 * that were taken and not processed are void. This holds for every result but UNSUPPORTED (a parallel group, whose
 * segment groups are handed out) and INVALID (a negative offset). UNKNOWN_LOG, NOT_ASSIGNED: the partition is not
 * read here. */
leat_err leat_consumer_engine_seek(struct leat_consumer_engine *engine, int64_t partition,
                                   enum leat_engine_from from, int64_t value) LEAT_NODISCARD;
/** The answer to a question, or a refusal: *error says why. `found` is a view until return. */
typedef void (*leat_consumer_asked_fn)(void *arg, leat_err rc, const struct leat_msg_located *found,
                                       const struct leat_error *error);
/** Ask a log's owner where something is (what, value and position of `question`; the log is that of the partition).
 * After a lost connection or a change of owner the question is sent again, until timeout_us have passed. LEAT_OK:
 * on_done runs once, never inside. UNKNOWN_LOG; AGAIN: the engine is not ready, or another question is open;
 * otherwise why the engine ended. */
leat_err leat_consumer_engine_ask(struct leat_consumer_engine *engine, int64_t partition,
                                  const struct leat_msg_locate *question, uint64_t timeout_us,
                                  leat_consumer_asked_fn on_done, void *arg) LEAT_NODISCARD;
/** The only partition that is read here; -1: there are several, or none. */
int64_t leat_consumer_engine_only(const struct leat_consumer_engine *engine);
/** Note that records below `offset` of this log (parallel mode: of this segment group, else -1) have been
 * processed; commit() stores that. A later group of the same log finishes the one before. */
void leat_consumer_engine_processed(struct leat_consumer_engine *engine, struct leat_log_ref log,
                                    int64_t group, uint64_t offset);
void leat_consumer_engine_commit(struct leat_consumer_engine *engine,
                                 void (*on_done)(void *arg, leat_err rc,
                                                 const struct leat_error *error),
                                 void *arg);
/** Leave the group, so that the others need not wait for the session to end. No answer is waited for;
 * the client should live for another turn. */
void leat_consumer_engine_leave(struct leat_consumer_engine *engine);
void leat_consumer_engine_on_turn_end(struct leat_consumer_engine *engine);
/** Logs per streamlet (Q) of the stream; 0 until it is known. */
uint32_t leat_consumer_engine_q(const struct leat_consumer_engine *engine);

#endif
