/* SPDX-License-Identifier: Apache-2.0 */
/* libleat's producer: callers' threads gather records, a background thread (client/shared.h), which
 * other producers of the process share, runs the engine.
 *
 * Hot path: one spin lock taken and given, the record copied into its batch. The background thread
 * is told only when it sleeps (leat_gather.notify_wanted): while appends are under way it comes
 * round by itself with each answer, and a system call per batch would cost more than the batch.
 */
#include "client/shared.h"
#include "gather.h"

#include "leat/producer.h"

#include "base/assert.h"
#include "base/mem.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
    PRODUCER_BATCH_BYTES_DEFAULT = 64 * 1024,
    PRODUCER_BATCH_BYTES_MIN = 1024,
    PRODUCER_BATCH_BYTES_MAX = 1024 * 1024,
    PRODUCER_LINGER_US_DEFAULT = 1000,
    PRODUCER_BUFFER_BYTES_DEFAULT = 32 * 1024 * 1024,
    PRODUCER_TIMEOUT_MS_DEFAULT = 120 * 1000,
    PRODUCER_REQUEST_TIMEOUT_MS_MAX = 30 * 1000,
};

struct leat_producer {
    struct leat_spin lock; /* guards gather and stats; nothing is called under it */
    struct leat_gather gather;
    struct leat_shared shared;
    struct leat_producer_engine *engine;
    uint32_t timeout_ms;
    struct leat_mail mail;
    _Atomic bool mail_out;
    struct leat_mail stop_mail;
    bool stopping; /* the background thread's */
    struct leat_event room, progress, stopped;
    leat_producer_stats stats;
};

/* ---- the background thread ---- */

static void engine_lock(void *ctx)
{
    leat_spin_lock(&((struct leat_producer *)ctx)->lock);
}
static void engine_unlock(void *ctx)
{
    leat_spin_unlock(&((struct leat_producer *)ctx)->lock);
}
static void room_tell(void *owner)
{
    leat_event_tell(&((struct leat_producer *)owner)->room);
}
static void engine_on_room(void *ctx)
{
    leat_shared_after_sending(&((struct leat_producer *)ctx)->shared, room_tell);
}
static void stats_publish(struct leat_producer *producer);
static void engine_on_progress(void *ctx)
{
    struct leat_producer *producer = ctx;
    stats_publish(producer); /* first: woken callers may read the statistics */
    if (atomic_load(&producer->progress.waiters) > 0) leat_event_tell(&producer->progress);
}
static void engine_on_event(void *ctx)
{
    leat_shared_touch(&((struct leat_producer *)ctx)->shared);
}
static uint64_t engine_spread(void *ctx, int64_t id)
{
    return leat_shared_spread(&((struct leat_producer *)ctx)->shared, id);
}
static void engine_call(void (*fn)(void), void *arg, const struct leat_produced *produced)
{
    leat_result result = {
        .code = (leat_code)produced->rc,
        .streamlet = produced->log.streamlet,
        .log = produced->log.log,
        .offset = produced->offset,
        .text = produced->text,
    };
    ((leat_result_fn)fn)(arg, &result);
}

/* Each number alone, without the lock: each is right, and they may be of different moments. */
static inline void stat_set(uint64_t *to, uint64_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELAXED);
}

static void stats_publish(struct leat_producer *producer)
{
    const struct leat_producer_engine_stats *from = leat_producer_engine_stats(producer->engine);
    leat_producer_stats *to = &producer->stats;
    stat_set(&to->records_acked, from->records_acked);
    stat_set(&to->bytes_acked, from->bytes_acked);
    stat_set(&to->records_failed, from->records_failed);
    stat_set(&to->batches_acked, from->batches_acked);
    stat_set(&to->retries, from->retries);
    /* Only this thread writes the error, so it may read the error without the lock. */
    if (to->last_error == (leat_code)from->last_error &&
        (!from->last_error || strcmp(to->last_text, from->last_text) == 0))
        return;
    leat_spin_lock(&producer->lock);
    to->last_error = (leat_code)from->last_error;
    memcpy(to->last_text, from->last_text, sizeof to->last_text);
    leat_spin_unlock(&producer->lock);
}

static void producer_on_turn_end(void *owner)
{
    struct leat_producer *producer = owner;
    if (!producer->engine) return;
    if (!producer->stopping) {
        leat_producer_engine_on_turn_end(producer->engine);
        stats_publish(producer);
        return;
    }
    /* Else a later turn: appends come back as their connections close. */
    if (!leat_producer_engine_stop(producer->engine)) return;
    leat_producer_engine_destroy(&producer->engine);
    leat_event_tell(&producer->stopped);
}

static void mail_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct leat_producer *producer = LEAT_CONTAINER(mail, struct leat_producer, mail);
    /* The turn that this delivery is part of looks into the gather. */
    leat_shared_touch(&producer->shared);
    atomic_store(&producer->mail_out, false);
}

static void stop_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_producer *producer = LEAT_CONTAINER(mail, struct leat_producer, stop_mail);
    (void)actor;
    producer->stopping = true;
    leat_shared_touch(&producer->shared);
}

static void producer_notify(struct leat_producer *producer)
{
    if (!atomic_exchange(&producer->mail_out, true))
        leat_shared_post(&producer->shared, &producer->mail);
}

/* ---- opening and closing ---- */

void leat_producer_options_init(leat_producer_options *options)
{
    *options = (leat_producer_options){
        .struct_bytes = sizeof *options,
        .batch_bytes = PRODUCER_BATCH_BYTES_DEFAULT,
        .linger_us = PRODUCER_LINGER_US_DEFAULT,
        .buffer_bytes = PRODUCER_BUFFER_BYTES_DEFAULT,
        .timeout_ms = PRODUCER_TIMEOUT_MS_DEFAULT,
        .create_streams = true,
    };
}

/* A program built against an older header passes a shorter struct: missing options get defaults. */
static leat_err options_take(const leat_producer_options *given, leat_producer_options *out,
                             struct leat_error *error)
{
    leat_producer_options_init(out);
    if (given) {
        if (given->struct_bytes < offsetof(leat_producer_options, batch_records) ||
            given->struct_bytes > sizeof *out)
            return leat_error_set(error, LEAT_E_CONFIG,
                                  "options.struct_bytes is %zu; call leat_producer_options_init()",
                                  given->struct_bytes);
        memcpy(out, given, given->struct_bytes);
    }
    if (!out->batch_bytes) out->batch_bytes = PRODUCER_BATCH_BYTES_DEFAULT;
    if (!out->buffer_bytes) out->buffer_bytes = PRODUCER_BUFFER_BYTES_DEFAULT;
    if (!out->timeout_ms) out->timeout_ms = PRODUCER_TIMEOUT_MS_DEFAULT;
    if (out->batch_bytes < PRODUCER_BATCH_BYTES_MIN || out->batch_bytes > PRODUCER_BATCH_BYTES_MAX)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "batch_bytes is %u; it must lie between %d and %d", out->batch_bytes,
                              PRODUCER_BATCH_BYTES_MIN, PRODUCER_BATCH_BYTES_MAX);
    if (out->compression != LEAT_CODEC_NONE && out->compression != LEAT_CODEC_LZ4 &&
        out->compression != LEAT_CODEC_ZSTD)
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "compression %d is not supported; 0 none, 3 lz4, 4 zstd",
                              out->compression);
    return LEAT_OK;
}

static leat_err producer_start(struct leat_producer *producer, const leat_producer_options *options,
                               struct leat_error *error)
{
    uint32_t request_ms = options->timeout_ms < PRODUCER_REQUEST_TIMEOUT_MS_MAX
                              ? options->timeout_ms
                              : (uint32_t)PRODUCER_REQUEST_TIMEOUT_MS_MAX;
    struct leat_shared_options shared = {
        .brokers = options->brokers,
        .name = options->client_name,
        .request_timeout_us = (uint64_t)request_ms * 1000u,
        .common = true,
    };
    leat_err rc = leat_shared_open(&producer->shared, &shared, error);
    if (rc) return rc;
    struct leat_gather_options gather = {
        .batch_bytes = options->batch_bytes,
        .batch_records = options->batch_records,
        .linger_us = options->linger_us,
        .buffer_bytes = options->buffer_bytes,
    };
    struct leat_gather_clock clock = {NULL, leat_shared_now_us, leat_shared_wall_ms};
    rc = leat_gather_init(&producer->gather, &gather, clock);
    struct leat_producer_engine_options engine = {
        .batch_bytes = options->batch_bytes,
        .linger_us = options->linger_us,
        .codec = (enum leat_codec)options->compression,
        .buffer_bytes = options->buffer_bytes,
        .timeout_us = (uint64_t)options->timeout_ms * 1000u,
        .create_streams = options->create_streams,
        .batch_records = options->batch_records,
        .actor = producer->shared.io,
    };
    if (rc == LEAT_OK)
        rc = leat_producer_engine_create(producer->shared.env, producer->shared.timers,
                                         producer->shared.client, &engine, &producer->engine);
    if (rc) return leat_error_set(error, rc, "out of memory");
    struct leat_producer_engine_share share = {
        .ctx = producer,
        .lock = engine_lock,
        .unlock = engine_unlock,
        .on_room = engine_on_room,
        .on_progress = engine_on_progress,
        .on_event = engine_on_event,
        .spread = engine_spread,
        .call = engine_call,
    };
    leat_producer_engine_set_share(producer->engine, &producer->gather, &share);
    leat_shared_start(&producer->shared, producer, producer_on_turn_end);
    return LEAT_OK;
}

static void producer_free(struct leat_producer *producer)
{
    leat_producer_engine_destroy(&producer->engine);
    leat_shared_close(&producer->shared);
    leat_gather_fini(&producer->gather);
    leat_mem_free(producer);
}

leat_producer *leat_producer_open(const leat_producer_options *given, leat_message *message)
{
    struct leat_error error = {.code = LEAT_OK};
    leat_producer_options options;
    struct leat_producer *producer = NULL;
    leat_err rc = options_take(given, &options, &error);
    if (rc) goto out;
    producer = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *producer);
    if (!producer) {
        rc = leat_error_set(&error, LEAT_E_NO_MEMORY, "out of memory");
        goto out;
    }
    producer->timeout_ms = options.timeout_ms;
    producer->mail.deliver = mail_deliver;
    producer->stop_mail.deliver = stop_deliver;
    rc = producer_start(producer, &options, &error);
    if (rc) {
        producer_free(producer);
        producer = NULL;
    }
out:
    if (rc) (void)leat_shared_message(message, &error);
    return producer;
}

void leat_producer_close(leat_producer *producer)
{
    if (!producer) return;
    LEAT_ASSERT(!leat_shared_is_own_thread(&producer->shared));
    (void)leat_producer_flush(producer, (int)producer->timeout_ms);
    uint32_t seen = leat_event_look(&producer->stopped);
    leat_shared_post(&producer->shared, &producer->stop_mail);
    (void)leat_event_wait(&producer->stopped, seen, UINT64_MAX);
    producer_free(producer);
}

/* ---- producing ---- */

/* The lock, for callers that add: not while another caller fills a batch. Batches are filled without the lock, so
 * that the background thread never waits for a caller that was preempted in the middle of a copy. */
static void caller_lock(struct leat_producer *producer)
{
    leat_spin_lock(&producer->lock);
    while (__builtin_expect(producer->gather.filling != NULL, 0)) {
        leat_spin_unlock(&producer->lock);
        (void)sched_yield();
        leat_spin_lock(&producer->lock);
    }
}

/* The buffer is full, or the stream's streamlets are not known yet. */
static leat_err produce_slow(struct leat_producer *producer,
                             const struct leat_gather_record *record, leat_err rc)
{
    uint64_t deadline = 0;
    while (rc == LEAT_E_AGAIN) {
        /* On the background thread, which makes the room, waiting would be for ever. */
        if (leat_shared_is_own_thread(&producer->shared)) return rc;
        uint32_t seen = leat_event_look(&producer->room);
        bool notify = false;
        caller_lock(producer);
        rc = leat_gather_add(&producer->gather, record, &notify);
        leat_spin_unlock(&producer->lock);
        if (notify) producer_notify(producer);
        if (rc != LEAT_E_AGAIN) break;
        if (!deadline) deadline = leat_shared_deadline(producer->timeout_ms);
        if (!leat_event_wait(&producer->room, seen, deadline)) return LEAT_E_TIMEOUT;
    }
    return rc;
}

static inline struct leat_gather_record
record_of(const char *stream, const leat_produce_record *given, leat_result_fn on_result, void *arg)
{
    return (struct leat_gather_record){
        .stream = stream,
        .streamlet = given->streamlet,
        .timestamp_ms = given->timestamp_ms,
        .key = given->key,
        .value = given->value,
        .headers = given->headers,
        .key_bytes = given->key ? given->key_bytes : 0,
        .value_bytes = given->value ? given->value_bytes : 0,
        .headers_bytes = given->headers ? given->headers_bytes : 0,
        .header_count = given->headers ? given->header_count : 0,
        .fn = (void (*)(void))on_result,
        .arg = arg,
    };
}

leat_code leat_produce(leat_producer *producer, const char *stream,
                       const leat_produce_record *given, leat_result_fn on_result, void *arg)
{
    struct leat_gather_record record = record_of(stream, given, on_result, arg);
    bool notify = false;
    caller_lock(producer);
    leat_err rc = leat_gather_add(&producer->gather, &record, &notify);
    leat_spin_unlock(&producer->lock);
    if (__builtin_expect(notify, 0)) producer_notify(producer);
    if (__builtin_expect(rc == LEAT_E_AGAIN, 0)) rc = produce_slow(producer, &record, rc);
    return (leat_code)rc;
}

/* Taking the lock waits for the stores of the record before, which may miss the cache: this wait costs more than the
 * copy. So a caller copies many records per lock, but few enough that other callers do not wait long. */
enum { PRODUCE_PER_LOCK = 128 };

/* Copies plain records into their open batch. Returns how many. */
static size_t produce_run(struct leat_producer *producer, const char *stream,
                          const leat_produce_record *records, size_t count, bool *out_notify)
{
    caller_lock(producer);
    struct leat_producer_batch *batch = leat_gather_run_begin(&producer->gather, stream);
    leat_spin_unlock(&producer->lock);
    if (!batch) return 0;
    size_t added = leat_gather_run_fill(&producer->gather, batch, records, count);
    leat_spin_lock(&producer->lock);
    leat_gather_run_end(&producer->gather, added, out_notify);
    leat_spin_unlock(&producer->lock);
    return added;
}

leat_code leat_produce_many(leat_producer *producer, const char *stream,
                            const leat_produce_record *records, size_t count,
                            leat_result_fn on_result, void *arg, size_t *out_queued)
{
    size_t at = 0;
    leat_err rc = LEAT_OK;
    while (at < count && rc == LEAT_OK) {
        size_t end = count - at > PRODUCE_PER_LOCK ? at + PRODUCE_PER_LOCK : count;
        struct leat_gather_record record = {.stream = stream};
        bool notify = false;
        if (!on_result) at += produce_run(producer, stream, &records[at], end - at, &notify);
        if (at < end) {
            caller_lock(producer);
            do {
                record = record_of(stream, &records[at], on_result, arg);
                rc = leat_gather_add(&producer->gather, &record, &notify);
                if (__builtin_expect(rc != LEAT_OK, 0)) break;
                at++;
            } while (on_result && at < end);
            leat_spin_unlock(&producer->lock);
        }
        if (notify) producer_notify(producer);
        if (rc == LEAT_E_AGAIN) {
            rc = produce_slow(producer, &record, rc);
            if (rc == LEAT_OK) at++;
        }
    }
    if (out_queued) *out_queued = at;
    return (leat_code)rc;
}

struct produce_waiter {
    _Atomic bool done;
    leat_result result;
};

static leat_result refused_result(leat_code code)
{
    return (leat_result){.code = code, .offset = UINT64_MAX, .text = leat_strerror(code)};
}

/* The waiter's storage may be gone right after `done`: it is woken by the producer's own event. */
static void waiter_on_result(void *arg, const leat_result *result)
{
    struct produce_waiter *waiter = arg;
    waiter->result = *result;
    waiter->result.text = leat_strerror(result->code); /* the sentence's own view ends here */
    atomic_store(&waiter->done, true);
}

static void producer_send_now(struct leat_producer *producer)
{
    caller_lock(producer);
    leat_gather_close_all(&producer->gather);
    leat_spin_unlock(&producer->lock);
    producer_notify(producer);
}

leat_code leat_produce_wait(leat_producer *producer, const char *stream,
                            const leat_produce_record *record, leat_result *out_result)
{
    struct produce_waiter waiter = {.done = false};
    leat_code code = leat_produce(producer, stream, record, waiter_on_result, &waiter);
    if (code) {
        if (out_result) *out_result = refused_result(code);
        return code;
    }
    atomic_fetch_add(&producer->progress.waiters, 1); /* so that progress is told */
    producer_send_now(producer);
    for (;;) {
        uint32_t seen = leat_event_look(&producer->progress);
        if (atomic_load(&waiter.done)) break;
        (void)leat_event_wait(&producer->progress, seen, UINT64_MAX);
    }
    atomic_fetch_sub(&producer->progress.waiters, 1);
    if (out_result) *out_result = waiter.result;
    return waiter.result.code;
}

uint64_t leat_producer_flush(leat_producer *producer, int timeout_ms)
{
    uint64_t deadline = leat_shared_deadline(timeout_ms), open;
    atomic_fetch_add(&producer->progress.waiters, 1); /* so that progress is told */
    for (;;) {
        uint32_t seen = leat_event_look(&producer->progress);
        caller_lock(producer);
        leat_gather_close_all(&producer->gather);
        open = producer->gather.open_records;
        leat_spin_unlock(&producer->lock);
        if (open == 0) break;
        producer_notify(producer);
        if (!leat_event_wait(&producer->progress, seen, deadline)) break;
    }
    atomic_fetch_sub(&producer->progress.waiters, 1);
    return open;
}

static inline uint64_t stat_get(const uint64_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

void leat_producer_stats_get(leat_producer *producer, leat_producer_stats *out_stats)
{
    const leat_producer_stats *from = &producer->stats;
    leat_producer_stats stats = {
        .records_acked = stat_get(&from->records_acked),
        .bytes_acked = stat_get(&from->bytes_acked),
        .records_failed = stat_get(&from->records_failed),
        .batches_acked = stat_get(&from->batches_acked),
        .retries = stat_get(&from->retries),
    };
    leat_spin_lock(&producer->lock);
    stats.last_error = from->last_error;
    memcpy(stats.last_text, from->last_text, sizeof stats.last_text);
    leat_spin_unlock(&producer->lock);
    *out_stats = stats;
}
