/* SPDX-License-Identifier: Apache-2.0 */
/* A producer's streams: what is known of each, and which log a batch goes to. */
#include "internal.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void stream_refuse(struct leat_producer_stream *stream, leat_err rc, const char *text)
{
    struct leat_producer_engine *engine = stream->engine;
    stream->refused_at_us = leat_producer_now(engine);
    leat_producer_gather_lock(engine);
    stream->gathered->refused = rc;
    snprintf(stream->gathered->refused_text, sizeof stream->gathered->refused_text, "%s", text);
    engine->gather->room_wanted = false;
    leat_producer_gather_unlock(engine);
    engine->room = true;
    struct leat_list *link;
    while ((link = leat_list_pop_front(&stream->waiting)))
        leat_producer_batch_done(engine, LEAT_CONTAINER(link, struct leat_producer_batch, link),
                                 (struct leat_log_ref){0, 0, 0}, rc, text);
}

static void own_drop(struct leat_producer_stream *stream)
{
    for (uint32_t s = 0; s < stream->streamlets; s++) {
        struct leat_producer_log *log = stream->own[s];
        if (!log) continue;
        LEAT_ASSERT(leat_list_empty(&log->queue) && log->requests_out == 0);
        leat_mem_free(log);
    }
    leat_mem_free(stream->own);
    stream->own = NULL;
    stream->streamlets = 0;
}

static bool under_way(const struct leat_producer_stream *stream)
{
    for (uint32_t s = 0; s < stream->streamlets; s++)
        if (stream->own[s] && stream->own[s]->requests_out) return true;
    return false;
}

/* Can the stream's logs be forgotten? Not while an append is under way or has an unknown fate. */
static bool own_idle(const struct leat_producer_stream *stream)
{
    for (uint32_t s = 0; s < stream->streamlets; s++)
        if (stream->own[s] &&
            (stream->own[s]->requests_out || !leat_list_empty(&stream->own[s]->queue)))
            return false;
    return true;
}

static leat_err stream_adopt(struct leat_producer_stream *stream,
                             const struct leat_client_stream *known)
{
    if (stream->id != known->id || stream->logs != known->settings.logs) own_drop(stream);
    uint32_t streamlets = known->settings.streamlets;
    if (streamlets > stream->streamlets) {
        struct leat_producer_log **own =
            leat_mem_realloc(LEAT_MEM_CLIENT, stream->own, streamlets, sizeof *own);
        if (!own) return LEAT_E_NO_MEMORY;
        for (uint32_t s = stream->streamlets; s < streamlets; s++)
            own[s] = NULL;
        stream->own = own;
        stream->streamlets = streamlets;
    }
    stream->id = known->id;
    stream->logs = known->settings.logs;
    struct leat_producer_engine *engine = stream->engine;
    leat_producer_gather_lock(engine);
    leat_err rc = leat_gather_stream_known(stream->gathered, streamlets);
    stream->gathered->batch_bytes_max = known->settings.batch_bytes_max;
    engine->gather->room_wanted = false;
    leat_producer_gather_unlock(engine);
    if (rc) return rc;
    engine->room = true;
    leat_producer_stream_enter(stream, STREAM_KNOWN);
    stream->known_once = true;
    return LEAT_OK;
}

/* A new stream has this name now: the old stream's logs are gone, and with them all unanswered appends.
 * SUBTLE: the old logs may still be there. (1) A node that has not heard of the stream says that there is no such
 * stream, while an append to the stream has an unknown fate. (2) Another node has the stream. (3) No append may
 * follow under the epoch of that append, which is not under way any more. */
static void stream_replaced(struct leat_producer_stream *stream)
{
    for (uint32_t s = 0; s < stream->streamlets; s++) {
        struct leat_producer_log *log = stream->own[s];
        if (!log) continue;
        LEAT_ASSERT(log->requests_out == 0);
        struct leat_list *link;
        while ((link = leat_list_pop_front(&log->queue))) {
            struct leat_producer_batch *batch =
                LEAT_CONTAINER(link, struct leat_producer_batch, link);
            if (batch->sequence < 0)
                leat_list_push_back(&stream->waiting, link);
            else
                leat_producer_batch_done(stream->engine, batch, log->ref, LEAT_E_UNKNOWN_STREAM,
                                         "the stream was deleted");
        }
        leat_list_remove(&log->link);
        if (log->sequenced == 0 || LEAT_BUG(UNDER_WAY_COUNTS)) continue;
        log->needs_epoch = true;
        log->sequenced = 0;
    }
}

static void lookup_on_done(struct leat_client_lookup *lookup, leat_err rc,
                           const struct leat_client_stream *known, const struct leat_error *error)
{
    struct leat_producer_stream *stream = lookup->owner;
    struct leat_producer_engine *engine = stream->engine;
    leat_producer_event(engine);
    leat_producer_stream_enter(stream, STREAM_UNKNOWN);
    if (rc == LEAT_OK) {
        if (stream->id && stream->id != known->id) {
            stream->gone = under_way(stream);
            if (stream->gone) return; /* looked up again when they have come back */
            stream_replaced(stream);
        }
        rc = stream_adopt(stream, known);
        if (rc == LEAT_OK) return;
    }
    if (rc == LEAT_E_CANCELLED) return;
    leat_producer_trouble(engine, rc, error->text);
    enum leat_err_class class = leat_err_class(rc);
    if (class == LEAT_CLASS_REJECT && own_idle(stream)) {
        stream_refuse(stream, rc, error->text);
    } else if (class == LEAT_CLASS_REJECT) {
        /* SUBTLE: what is under way comes back to the logs. (1) The owner of one dies with an append on its way,
         * or is slow. (2) The stream is deleted. (3) Another node says that there is none. */
        stream->gone = under_way(stream) && !LEAT_BUG(GONE_AMID_APPEND);
        if (stream->gone) return;
        stream_replaced(stream);
        stream_refuse(stream, rc, error->text);
    }
    /* Else: asked again in the next turn, batches keep their own time limits. */
}

void leat_producer_stream_lookup(struct leat_producer_stream *stream)
{
    struct leat_producer_engine *engine = stream->engine;
    if (stream->state == STREAM_LOOKING) return;
    leat_producer_stream_enter(stream, STREAM_LOOKING);
    stream->wants_lookup = stream->gone = false;
    stream->lookup = (struct leat_client_lookup){
        .may_create = engine->options.create_streams,
        .timeout_us = engine->options.timeout_us,
        .on_done = lookup_on_done,
        .owner = stream,
    };
    memcpy(stream->lookup.name, stream->gathered->name, stream->gathered->name_bytes + 1u);
    leat_client_lookup(engine->client, &stream->lookup);
}

void leat_producer_stream_lost(struct leat_producer_stream *stream)
{
    if (stream->state == STREAM_KNOWN) leat_producer_stream_lookup(stream);
}

static struct leat_producer_stream *stream_of(struct leat_producer_engine *engine,
                                              struct leat_gather_stream *gathered)
{
    struct leat_producer_stream *stream = engine->streams[gathered->index];
    if (stream) return stream;
    stream = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *stream);
    if (!stream) return NULL;
    stream->engine = engine;
    stream->gathered = gathered;
    leat_list_init(&stream->waiting);
    leat_list_init(&stream->lookup.link);
    engine->streams[gathered->index] = stream;
    return stream;
}

/* The producer's log of a streamlet: its number modulo the streamlet's logs. */
static struct leat_producer_log *log_of(struct leat_producer_stream *stream, uint32_t streamlet)
{
    struct leat_producer_engine *engine = stream->engine;
    struct leat_producer_log *log = stream->own[streamlet];
    if (log) return log;
    log = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *log);
    if (!log) return NULL;
    const struct leat_producer_engine_share *share = &engine->share;
    uint64_t number = share->spread ? share->spread(share->ctx, engine->id) : (uint64_t)engine->id;
    log->engine = engine;
    log->stream = stream;
    log->ref = (struct leat_log_ref){stream->id, streamlet, (uint32_t)(number % stream->logs)};
    log->epoch = engine->epoch;
    leat_list_init(&log->queue);
    leat_list_init(&log->link);
    stream->own[streamlet] = log;
    return log;
}

void leat_producer_batch_route(struct leat_producer_engine *engine,
                               struct leat_producer_batch *batch)
{
    struct leat_producer_stream *stream = stream_of(engine, batch->stream);
    if (!stream) {
        leat_producer_batch_done(engine, batch, (struct leat_log_ref){0, 0, 0}, LEAT_E_NO_MEMORY,
                                 "out of memory");
        return;
    }
    if (stream->state != STREAM_KNOWN || engine->id < 0 || !leat_list_empty(&stream->waiting)) {
        leat_list_push_back(&stream->waiting, &batch->link);
        return;
    }
    uint32_t streamlet;
    if (batch->streamlet >= 0) {
        streamlet = (uint32_t)batch->streamlet;
    } else {
        /* Producers begin at different streamlets, or all would write the same one at a time. */
        streamlet =
            (uint32_t)(((uint64_t)engine->id + stream->next_streamlet) % stream->streamlets);
        stream->next_streamlet++;
    }
    struct leat_producer_log *log =
        streamlet < stream->streamlets ? log_of(stream, streamlet) : NULL;
    if (!log) {
        leat_err rc = streamlet < stream->streamlets ? LEAT_E_NO_MEMORY : LEAT_E_UNKNOWN_LOG;
        leat_producer_batch_done(engine, batch, (struct leat_log_ref){stream->id, streamlet, 0}, rc,
                                 leat_err_text(rc));
        return;
    }
    leat_producer_log_queue(log, batch);
}

void leat_producer_stream_expire(struct leat_producer_stream *stream, uint64_t now)
{
    struct leat_producer_engine *engine = stream->engine;
    LEAT_LIST_EACH(&stream->waiting, link)
    {
        struct leat_producer_batch *batch = LEAT_CONTAINER(link, struct leat_producer_batch, link);
        if (now < batch->opened_us + engine->options.timeout_us) return;
        char text[LEAT_ERROR_TEXT_BYTES + 64];
        snprintf(text, sizeof text, "could not be sent within %llu ms: %s",
                 (unsigned long long)(engine->options.timeout_us / 1000),
                 engine->stats.last_text[0] ? engine->stats.last_text : "no server answered");
        leat_list_remove(link);
        leat_producer_batch_done(engine, batch, (struct leat_log_ref){stream->id, 0, 0},
                                 LEAT_E_TIMEOUT, text);
    }
}

void leat_producer_streams_turn(struct leat_producer_engine *engine, uint32_t count)
{
    uint64_t now = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_producer_stream *stream = engine->streams[i];
        if (!stream) stream = stream_of(engine, engine->gather->streams[i]);
        if (!stream) continue;
        if (stream->state == STREAM_KNOWN && leat_list_empty(&stream->waiting)) continue;
        if (!now) now = leat_producer_now(engine);
        if (stream->state == STREAM_UNKNOWN) {
            if (stream->gone && under_way(stream)) continue;
            if (stream->refused_at_us && now - stream->refused_at_us < PRODUCER_REFUSED_US)
                continue;
            if (stream->refused_at_us) {
                stream->refused_at_us = 0;
                leat_producer_gather_lock(engine);
                stream->gathered->refused = LEAT_OK;
                leat_producer_gather_unlock(engine);
            }
            if (stream->known_once && leat_list_empty(&stream->waiting) && own_idle(stream))
                continue;
            leat_producer_stream_lookup(stream);
            continue;
        }
        if (stream->state != STREAM_KNOWN) continue;
        if (engine->id < 0) {
            leat_producer_id_ask(engine);
            continue;
        }
        struct leat_list ready;
        leat_list_init(&ready);
        struct leat_list *link;
        while ((link = leat_list_pop_front(&stream->waiting)))
            leat_list_push_back(&ready, link);
        while ((link = leat_list_pop_front(&ready)))
            leat_producer_batch_route(engine,
                                      LEAT_CONTAINER(link, struct leat_producer_batch, link));
    }
}
