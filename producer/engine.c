/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's logic: identity, time, turns. Streams and routing: streams.c. Sequences and retries:
 * sequence.c. */
#include "internal.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void look_on_expired(struct leat_timer *timer);
static void expiry_on_expired(struct leat_timer *timer);

uint64_t leat_producer_now(const struct leat_producer_engine *engine)
{
    return engine->env->clock->now_us(engine->env->clock->ctx);
}

leat_err leat_producer_engine_create(const struct leat_env *env, struct leat_timers *timers,
                                     struct leat_client *client,
                                     const struct leat_producer_engine_options *options,
                                     struct leat_producer_engine **out_engine)
{
    struct leat_producer_engine *engine = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *engine);
    if (!engine) return LEAT_E_NO_MEMORY;
    engine->env = env;
    engine->timers = timers;
    engine->client = client;
    engine->options = *options;
    engine->id = -1;
    engine->epoch = -1;
    leat_list_init(&engine->active);
    leat_list_init(&engine->done);
    engine->look.on_expired = look_on_expired;
    engine->expiry.on_expired = expiry_on_expired;
    engine->look.owner = engine->expiry.owner = engine;
    if (options->codec != LEAT_CODEC_NONE) {
        engine->scratch = leat_mem_calloc(LEAT_MEM_CLIENT, 1, LEAT_BATCH_BYTES_MAX);
        if (!engine->scratch) {
            leat_mem_free(engine);
            return LEAT_E_NO_MEMORY;
        }
    }
    *out_engine = engine;
    return LEAT_OK;
}

/* The engine's own gather is made at the first use, because libleat brings another. */
static leat_err own_gather(struct leat_producer_engine *engine)
{
    if (engine->gather) return LEAT_OK;
    struct leat_gather_options options = {
        .batch_bytes = engine->options.batch_bytes,
        .batch_records = engine->options.batch_records,
        .linger_us = engine->options.linger_us,
        .buffer_bytes = engine->options.buffer_bytes,
    };
    struct leat_gather_clock clock = {engine->env->clock->ctx, engine->env->clock->now_us,
                                      engine->env->clock->wall_ms};
    leat_err rc = leat_gather_init(&engine->own_gather, &options, clock);
    if (rc == LEAT_OK) engine->gather = &engine->own_gather;
    return rc;
}

void leat_producer_engine_set_share(struct leat_producer_engine *engine, struct leat_gather *gather,
                                    const struct leat_producer_engine_share *share)
{
    /* Not LEAT_ASSERT_OWNER: the engine's thread does not know the engine yet, and another one may open a producer. */
    LEAT_ASSERT(!engine->gather);
    engine->gather = gather;
    engine->share = *share;
}

static void done_give(struct leat_producer_engine *engine);

static void queue_cancel(struct leat_producer_engine *engine, struct leat_list *queue)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(queue))) {
        struct leat_producer_batch *batch = LEAT_CONTAINER(link, struct leat_producer_batch, link);
        leat_producer_batch_done(engine, batch, (struct leat_log_ref){0, 0, 0}, LEAT_E_CANCELLED,
                                 "the producer was closed; whether it was appended is unknown");
    }
}

bool leat_producer_engine_stop(struct leat_producer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    if (engine->id_asked) leat_client_cancel(engine->client, &engine->id_request);
    engine->id_asked = false;
    for (uint32_t i = 0; engine->gather && i < LEAT_GATHER_STREAMS_MAX; i++) {
        struct leat_producer_stream *stream = engine->streams[i];
        if (!stream) continue;
        if (stream->state == STREAM_LOOKING)
            leat_client_lookup_cancel(engine->client, &stream->lookup);
        leat_producer_stream_enter(stream, STREAM_UNKNOWN);
        for (uint32_t s = 0; s < stream->streamlets; s++)
            if (stream->own[s]) leat_producer_log_withdraw(stream->own[s]);
    }
    return engine->requests_out == 0;
}

/* The client has been destroyed before, or is destroyed right after without another turn. */
void leat_producer_engine_destroy(struct leat_producer_engine **engine_ref)
{
    struct leat_producer_engine *engine = *engine_ref;
    if (!engine) return;
    LEAT_ASSERT_OWNER(engine->options.actor);
    *engine_ref = NULL;
    leat_timer_stop(engine->timers, &engine->look);
    leat_timer_stop(engine->timers, &engine->expiry);
    for (uint32_t i = 0; engine->gather && i < engine->gather->stream_count; i++) {
        struct leat_producer_stream *stream = engine->streams[i];
        if (!stream) continue;
        queue_cancel(engine, &stream->waiting);
        for (uint32_t s = 0; s < stream->streamlets; s++) {
            if (!stream->own[s]) continue;
            queue_cancel(engine, &stream->own[s]->queue);
            leat_mem_free(stream->own[s]);
        }
        leat_mem_free(stream->own);
        leat_mem_free(stream);
    }
    if (engine->gather) {
        struct leat_list rest;
        leat_list_init(&rest);
        leat_gather_take(engine->gather, UINT64_MAX, NULL, NULL, &rest);
        queue_cancel(engine, &rest);
        leat_producer_gather_lock(engine);
        done_give(engine);
        leat_producer_gather_unlock(engine);
    }
    if (engine->gather == &engine->own_gather) leat_gather_fini(&engine->own_gather);
    leat_mem_free(engine->scratch);
    leat_mem_free(engine);
}

const struct leat_producer_engine_stats *
leat_producer_engine_stats(const struct leat_producer_engine *engine)
{
    return &engine->stats;
}

void leat_producer_engine_on_room(struct leat_producer_engine *engine, void (*on_room)(void *arg),
                                  void *arg)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    engine->on_room = on_room;
    engine->on_room_arg = arg;
}

uint64_t leat_producer_engine_open_records(const struct leat_producer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    return engine->gather ? engine->gather->open_records : 0;
}

leat_err leat_producer_engine_add(struct leat_producer_engine *engine, const char *stream,
                                  int32_t streamlet, int64_t timestamp_ms, const void *key,
                                  size_t key_bytes, const void *value, size_t value_bytes,
                                  leat_produced_fn on_produced, void *arg)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    leat_err rc = own_gather(engine);
    if (rc) return rc;
    struct leat_gather_record record = {
        .stream = stream,
        .streamlet = streamlet,
        .timestamp_ms = timestamp_ms,
        .key = key,
        .key_bytes = key_bytes,
        .value = value,
        .value_bytes = value_bytes,
        .fn = (void (*)(void))on_produced,
        .arg = arg,
    };
    bool notify = false; /* the turn that this call is part of looks anyway */
    leat_producer_gather_lock(engine);
    rc = leat_gather_add(engine->gather, &record, &notify);
    leat_producer_gather_unlock(engine);
    return rc;
}

void leat_producer_engine_flush(struct leat_producer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    if (!engine->gather) return;
    leat_producer_gather_lock(engine);
    leat_gather_close_all(engine->gather);
    leat_producer_gather_unlock(engine);
}

/* ---- fates ---- */

void leat_producer_trouble(struct leat_producer_engine *engine, leat_err rc, const char *text)
{
    engine->stats.last_error = rc;
    snprintf(engine->stats.last_text, sizeof engine->stats.last_text, "%s",
             text && text[0] ? text : leat_err_text(rc));
}

void leat_producer_batch_report(struct leat_producer_engine *engine,
                                struct leat_producer_batch *batch, struct leat_log_ref log,
                                leat_err rc, const char *text)
{
    if (batch->reported) return;
    batch->reported = true;
    uint32_t records = batch->builder.record_count;
    if (rc == LEAT_OK) {
        engine->stats.records_acked += records;
        engine->stats.bytes_acked += batch->byte_count;
        engine->stats.batches_acked++;
    } else {
        engine->stats.records_failed += records;
    }
    for (uint32_t i = 0; i < batch->call_count; i++) {
        const struct leat_gather_call *call = &batch->calls[i];
        uint64_t offset = batch->offset == UINT64_MAX ? UINT64_MAX : batch->offset + call->record;
        struct leat_produced produced = {rc, log, rc ? UINT64_MAX : offset, text};
        if (engine->share.call)
            engine->share.call(call->fn, call->arg, &produced);
        else
            ((leat_produced_fn)call->fn)(call->arg, &produced);
    }
    engine->records_done += records;
    engine->progress = true;
}

void leat_producer_batch_done(struct leat_producer_engine *engine,
                              struct leat_producer_batch *batch, struct leat_log_ref log,
                              leat_err rc, const char *text)
{
    leat_producer_batch_report(engine, batch, log, rc, text);
    leat_list_push_back(&engine->done, &batch->link);
}

void leat_producer_batch_replaced(struct leat_producer_engine *engine,
                                  struct leat_producer_batch *batch, uint64_t bytes)
{
    leat_producer_gather_lock(engine);
    engine->gather->big_bytes += bytes;
    leat_producer_gather_unlock(engine);
    leat_list_push_back(&engine->done, &batch->link);
}

/* Under the gather's lock. */
static void done_give(struct leat_producer_engine *engine)
{
    struct leat_gather *gather = engine->gather;
    struct leat_list *link;
    gather->open_records -= engine->records_done;
    engine->records_done = 0;
    while ((link = leat_list_pop_front(&engine->done)))
        if (leat_gather_give(gather, LEAT_CONTAINER(link, struct leat_producer_batch, link)))
            engine->room = true;
}

/* ---- identity ---- */

static void id_on_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                       const struct leat_error *error)
{
    struct leat_producer_engine *engine = request->owner;
    engine->id_asked = false;
    leat_producer_event(engine);
    if (rc == LEAT_OK) {
        struct leat_msg_producer_id got;
        rc = leat_msg_producer_id_decode(answer->control, answer->control_bytes, &got);
        if (rc == LEAT_OK && got.id >= 0 && got.epoch >= 0 && got.epoch <= INT16_MAX) {
            engine->id = got.id;
            engine->epoch = (int16_t)got.epoch;
            engine->id_attempts = 0;
            return;
        }
        rc = LEAT_E_INVALID;
    }
    leat_producer_trouble(engine, rc, error->text);
    engine->id_paused = true;
    engine->id_retry_at_us =
        leat_producer_now(engine) + leat_client_pause_us(engine->client, engine->id_attempts++);
}

void leat_producer_id_ask(struct leat_producer_engine *engine)
{
    if (engine->id_asked) return;
    if (engine->id_paused && leat_producer_now(engine) < engine->id_retry_at_us) return;
    engine->id_paused = false;
    engine->id_asked = true;
    engine->stats.ids_asked++;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, engine->id_control, sizeof engine->id_control);
    leat_msg_producer_ask_write(&writer, &(struct leat_msg_producer_id){engine->id, engine->epoch});
    engine->id_request = (struct leat_request){
        .kind = LEAT_KIND_PRODUCER_ID,
        .control = engine->id_control,
        .control_bytes = writer.used,
        .on_done = id_on_done,
        .owner = engine,
    };
    leat_err rc = leat_client_send(engine->client, &engine->id_request);
    LEAT_ASSERT(rc == LEAT_OK); /* to any node: it waits in the client when there is none */
}

/* ---- time ---- */

static void look_on_expired(struct leat_timer *timer)
{
    (void)timer; /* the turn that this wake-up is part of does the work */
}

static void expiry_on_expired(struct leat_timer *timer)
{
    struct leat_producer_engine *engine = timer->owner;
    uint64_t now = leat_producer_now(engine);
    for (uint32_t i = 0; i < LEAT_GATHER_STREAMS_MAX && engine->streams[i]; i++)
        leat_producer_stream_expire(engine->streams[i], now);
    LEAT_LIST_EACH(&engine->active, link)
    leat_producer_log_expire(LEAT_CONTAINER(link, struct leat_producer_log, link), now);
}

/* When to come back: for linger exactly; while appends are under way only as a safeguard; for
 * retries when their pause is over. */
static void look_arm(struct leat_producer_engine *engine, uint64_t opened_us, bool any_open)
{
    uint64_t now = leat_producer_now(engine), at = UINT64_MAX;
    if (any_open) {
        at = opened_us + engine->options.linger_us;
        if (engine->requests_out && at < now + PRODUCER_BUSY_LOOK_US)
            at = now + PRODUCER_BUSY_LOOK_US;
    } else if (engine->requests_out) {
        at = now + PRODUCER_BUSY_LOOK_US;
    }
    LEAT_LIST_EACH(&engine->active, link)
    {
        struct leat_producer_log *log = LEAT_CONTAINER(link, struct leat_producer_log, link);
        if (log->troubled && log->requests_out == 0 && log->stream->state == STREAM_KNOWN &&
            log->retry_at_us < at)
            at = log->retry_at_us;
    }
    if (engine->id_paused) {
        if (engine->id_retry_at_us < at) at = engine->id_retry_at_us;
        if (engine->id_retry_at_us <= now && !LEAT_BUG(PAUSE_STAYS))
            engine->id_paused = false; /* the next stream that needs an id asks */
    }
    for (uint32_t i = 0; i < LEAT_GATHER_STREAMS_MAX && engine->streams[i]; i++) {
        const struct leat_producer_stream *stream = engine->streams[i];
        if (stream->state == STREAM_UNKNOWN && !leat_list_empty(&stream->waiting)) {
            uint64_t again = stream->refused_at_us ? stream->refused_at_us + PRODUCER_REFUSED_US
                                                   : now + PRODUCER_BUSY_LOOK_US;
            if (again < at) at = again;
        }
    }
    if (at == UINT64_MAX)
        leat_timer_stop(engine->timers, &engine->look);
    else if (!leat_timer_armed(&engine->look) || engine->look.at_us > at || !engine->requests_out)
        leat_timer_start(engine->timers, &engine->look, at > now ? at - now : 0);
}

/* SUBTLE: a batch takes a whole buffer, however few records it has.
 *  1. The owner of one streamlet has no space on its disk, or is down, and appends to the owner are retried.
 *  2. Records for this streamlet come one by one. With each linger one record goes to the log's queue, alone in a
 *     buffer.
 *  3. After 512 of them (0.5 MB of 1 KB each, of 32 MiB) no buffer is left for any other streamlet.
 * Closing a batch that is not in the log's next frame gains nothing, so such a batch goes on filling. */
static bool log_has_enough(void *arg, const struct leat_producer_batch *batch)
{
    const struct leat_producer_engine *engine = arg;
    const struct leat_producer_stream *stream = engine->streams[batch->stream->index];
    if (!stream || batch->streamlet < 0 || (uint32_t)batch->streamlet >= stream->streamlets)
        return false;
    const struct leat_producer_log *log = stream->own[batch->streamlet];
    return log && leat_producer_log_has_enough(log);
}

/* The one lock at a turn's beginning: batches back, batches out. */
static uint32_t gather_exchange(struct leat_producer_engine *engine, struct leat_list *ready)
{
    uint64_t now = leat_producer_now(engine), linger = engine->options.linger_us;
    leat_producer_gather_lock(engine);
    done_give(engine);
    leat_gather_take(engine->gather, now >= linger ? now - linger : 0, log_has_enough, engine,
                     ready);
    uint32_t stream_count = engine->gather->stream_count;
    leat_producer_gather_unlock(engine);
    return stream_count;
}

/* And the one at its end: whether callers must tell when there is something to do. Returns when the
 * oldest open batch was opened, UINT64_MAX: none is open, 0: one is ready already. */
static uint64_t gather_leave(struct leat_producer_engine *engine, bool *out_open_records)
{
    struct leat_gather *gather = engine->gather;
    uint64_t opened_us = UINT64_MAX;
    leat_producer_gather_lock(engine);
    done_give(engine);
    LEAT_LIST_EACH(&gather->opened, it)
    {
        struct leat_producer_batch *batch =
            LEAT_CONTAINER(it, struct leat_producer_batch, open_link);
        if (batch == gather->filling && gather->close_wanted) continue; /* its filler tells */
        opened_us = batch->opened_us;
        break;
    }
    *out_open_records = gather->open_records > 0;
    gather->notify_wanted = engine->requests_out == 0;
    if (!leat_list_empty(&gather->ready) && engine->requests_out == 0) opened_us = 0;
    leat_producer_gather_unlock(engine);
    return opened_us;
}

void leat_producer_engine_on_turn_end(struct leat_producer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    if (!engine->gather) return;
    struct leat_list ready, *link;
    leat_list_init(&ready);
    uint32_t stream_count = gather_exchange(engine, &ready);
    leat_producer_streams_turn(engine, stream_count);
    while ((link = leat_list_pop_front(&ready)))
        leat_producer_batch_route(engine, LEAT_CONTAINER(link, struct leat_producer_batch, link));
    leat_producer_streams_turn(engine, stream_count);
    LEAT_LIST_EACH(&engine->active, it)
    leat_producer_log_pump(LEAT_CONTAINER(it, struct leat_producer_log, link));

    bool open_records;
    uint64_t opened_us = gather_leave(engine, &open_records);
    look_arm(engine, opened_us, opened_us != UINT64_MAX);
    if (open_records && !leat_timer_armed(&engine->expiry)) {
        uint64_t look = engine->options.timeout_us / 4;
        if (look > PRODUCER_EXPIRY_LOOK_US) look = PRODUCER_EXPIRY_LOOK_US;
        leat_timer_start(engine->timers, &engine->expiry, look ? look : 1);
    }
    if (engine->room) {
        engine->room = false;
        if (engine->share.on_room) engine->share.on_room(engine->share.ctx);
        if (engine->on_room) engine->on_room(engine->on_room_arg);
    }
    if (engine->progress) {
        engine->progress = false;
        if (engine->share.on_progress) engine->share.on_progress(engine->share.ctx);
    }
}
