/* SPDX-License-Identifier: Apache-2.0 */
/* Where records gather. */
#include "gather.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "wire/value.h"

leat_err leat_gather_init(struct leat_gather *gather, const struct leat_gather_options *options,
                          struct leat_gather_clock clock)
{
    LEAT_ASSERT_CMP(options->batch_bytes, >, LEAT_BATCH_HEADER_BYTES);
    LEAT_ASSERT_CMP(options->batch_bytes, <=, LEAT_BATCH_BYTES_MAX);
    memset(gather, 0, sizeof *gather);
    gather->clock = clock;
    gather->batch_bytes = options->batch_bytes;
    gather->batch_records =
        options->batch_records ? options->batch_records : (uint32_t)LEAT_RECORDS_PER_BATCH_MAX;
    gather->linger_us = options->linger_us;
    leat_list_init(&gather->free);
    leat_list_init(&gather->ready);
    leat_list_init(&gather->opened);
    leat_list_init(&gather->held);
    uint64_t stride = LEAT_ALIGN_UP((uint64_t)options->batch_bytes, 64);
    uint64_t count = options->buffer_bytes / stride;
    if (count < LEAT_GATHER_BATCHES_MIN) count = LEAT_GATHER_BATCHES_MIN;
    if (count > UINT32_MAX / 2) return LEAT_E_TOO_LARGE;
    gather->batch_count = (uint32_t)count;
    gather->batches = leat_mem_calloc(LEAT_MEM_CLIENT, (size_t)count, sizeof *gather->batches);
    gather->memory = leat_mem_calloc(LEAT_MEM_CLIENT, (size_t)count, (size_t)stride);
    if (!gather->batches || !gather->memory) {
        leat_gather_fini(gather);
        return LEAT_E_NO_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct leat_producer_batch *batch = &gather->batches[i];
        batch->bytes = gather->memory + i * stride;
        batch->capacity = gather->batch_bytes;
        leat_list_init(&batch->open_link);
        leat_list_push_back(&gather->free, &batch->link);
    }
    gather->free_count = gather->batch_count;
    gather->notify_wanted = true;
    return LEAT_OK;
}

void leat_gather_fini(struct leat_gather *gather)
{
    for (uint32_t i = 0; gather->batches && i < gather->batch_count; i++)
        leat_mem_free(gather->batches[i].calls);
    for (uint32_t i = 0; i < gather->stream_count; i++) {
        leat_mem_free(gather->streams[i]->open);
        leat_mem_free(gather->streams[i]);
    }
    leat_mem_free(gather->batches);
    leat_mem_free(gather->memory);
    memset(gather, 0, sizeof *gather);
}

/* A CRC has a start and an end: three of 3.5 KB take 276 ns, one of 10.7 KB takes 188. So it waits for
 * more, as long as that stays in the nearest cache, or for the batch's end; fewer bytes than the latter
 * are not worth a CRC of their own. */
enum { GATHER_DIGEST_BYTES_MIN = 16 * 1024, GATHER_DIGEST_END_BYTES_MIN = 512 };

uint32_t leat_gather_streamlet_of_key(const void *key, size_t bytes, uint32_t streamlets)
{
    const uint8_t *at = key;
    const uint32_t m = 0x5bd1e995;
    uint32_t h = 0x9747b28cu ^ (uint32_t)bytes;
    for (; bytes >= 4; at += 4, bytes -= 4) {
        uint32_t k = leat_get_le32(at) * m;
        k = (k ^ (k >> 24)) * m;
        h = (h * m) ^ k;
    }
    if (bytes >= 3) h ^= (uint32_t)at[2] << 16;
    if (bytes >= 2) h ^= (uint32_t)at[1] << 8;
    if (bytes >= 1) h = (h ^ at[0]) * m;
    h = (h ^ (h >> 13)) * m;
    h ^= h >> 15;
    return (h & 0x7fffffffu) % streamlets;
}

/* ---- streams ---- */

static struct leat_gather_stream *stream_make(struct leat_gather *gather, const char *name,
                                              leat_err *out_rc)
{
    size_t bytes = strlen(name);
    if (bytes == 0 || bytes > LEAT_STREAM_NAME_BYTES_MAX) {
        *out_rc = LEAT_E_BAD_NAME;
        return NULL;
    }
    if (gather->stream_count == LEAT_GATHER_STREAMS_MAX) {
        *out_rc = LEAT_E_TOO_MANY;
        return NULL;
    }
    struct leat_gather_stream *stream = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *stream);
    if (!stream) {
        *out_rc = LEAT_E_NO_MEMORY;
        return NULL;
    }
    memcpy(stream->name, name, bytes);
    stream->name_bytes = (uint32_t)bytes;
    stream->index = gather->stream_count;
    gather->streams[gather->stream_count++] = stream;
    return stream;
}

static struct leat_gather_stream *stream_find(struct leat_gather *gather, const char *name,
                                              leat_err *out_rc)
{
    if (gather->last && strcmp(gather->last->name, name) == 0) return gather->last;
    for (uint32_t i = 0; i < gather->stream_count; i++)
        if (strcmp(gather->streams[i]->name, name) == 0) return gather->last = gather->streams[i];
    struct leat_gather_stream *stream = stream_make(gather, name, out_rc);
    if (stream) gather->last = stream;
    return stream;
}

leat_err leat_gather_stream_known(struct leat_gather_stream *stream, uint32_t streamlets)
{
    stream->refused = LEAT_OK;
    if (streamlets <= stream->streamlets) return LEAT_OK;
    struct leat_producer_batch **open =
        leat_mem_realloc(LEAT_MEM_CLIENT, stream->open, streamlets, sizeof *open);
    if (!open) return LEAT_E_NO_MEMORY;
    for (uint32_t i = stream->streamlets; i < streamlets; i++)
        open[i] = NULL;
    stream->open = open;
    stream->streamlets = streamlets;
    return LEAT_OK;
}

/* ---- batches ---- */

static struct leat_producer_batch **open_place(struct leat_gather_stream *stream, int32_t streamlet)
{
    return streamlet < 0 ? &stream->open_any : &stream->open[streamlet];
}

static void batch_ready(struct leat_gather *gather, struct leat_producer_batch *batch)
{
    struct leat_producer_batch **place = open_place(batch->stream, batch->streamlet);
    if (*place == batch) *place = NULL;
    leat_list_remove(&batch->open_link);
    leat_list_push_back(&gather->ready, &batch->link);
}

static void batch_begin(struct leat_gather *gather, struct leat_producer_batch *batch,
                        struct leat_gather_stream *stream, int32_t streamlet, size_t record_bytes)
{
    uint32_t limit = stream->batch_bytes_max, capacity = batch->capacity;
    /* A record that is too large is the server's to refuse, by its own sentence. */
    if (limit != 0 && limit < record_bytes) limit = (uint32_t)record_bytes;
    if (limit != 0 && limit < capacity) capacity = limit;
    batch->stream = stream;
    batch->streamlet = streamlet;
    batch->opened_us = gather->clock.now_us(gather->clock.ctx);
    batch->opened_wall_ms = gather->clock.wall_ms(gather->clock.ctx);
    batch->call_count = 0;
    batch->held = false;
    batch->sequence = -1;
    batch->byte_count = 0;
    batch->finished = batch->in_flight = batch->acked = batch->reported = false;
    batch->maybe_appended = false;
    batch->code = LEAT_OK;
    leat_batch_builder_init(&batch->builder, batch->bytes, capacity);
    for (size_t at = 0; at < LEAT_VALUE_AHEAD_BYTES; at += 64)
        leat_prefetch_to_write((uintptr_t)batch->bytes + at);
    leat_list_push_back(&gather->opened, &batch->open_link);
    *open_place(stream, streamlet) = batch;
}

static leat_err batch_open(struct leat_gather *gather, struct leat_gather_stream *stream,
                           int32_t streamlet, size_t bytes, struct leat_producer_batch **out_batch)
{
    if (leat_list_empty(&gather->free)) {
        /* What is open elsewhere must go too, or the pool could be full of half-filled batches of
         * many streamlets that a long linger holds back. */
        leat_gather_close_all(gather);
        gather->room_wanted = true;
        return LEAT_E_AGAIN;
    }
    struct leat_producer_batch *batch =
        LEAT_CONTAINER(leat_list_pop_front(&gather->free), struct leat_producer_batch, link);
    gather->free_count--;
    batch_begin(gather, batch, stream, streamlet, bytes);
    *out_batch = batch;
    return LEAT_OK;
}

/* A record that fits no pool buffer gets a batch of its own. The pool's size bounds these too. */
static leat_err batch_open_big(struct leat_gather *gather, struct leat_gather_stream *stream,
                               int32_t streamlet, size_t bytes,
                               struct leat_producer_batch **out_batch)
{
    if (bytes > LEAT_BATCH_BYTES_MAX) return LEAT_E_TOO_LARGE;
    uint64_t budget = (uint64_t)gather->batch_count * gather->batch_bytes;
    if (gather->big_bytes > 0 && gather->big_bytes + bytes > budget) {
        leat_gather_close_all(gather);
        gather->room_wanted = true;
        return LEAT_E_AGAIN;
    }
    struct leat_producer_batch *batch = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *batch);
    if (!batch) return LEAT_E_NO_MEMORY;
    batch->bytes = leat_mem_calloc(LEAT_MEM_CLIENT, 1, bytes);
    if (!batch->bytes) {
        leat_mem_free(batch);
        return LEAT_E_NO_MEMORY;
    }
    batch->capacity = (uint32_t)bytes;
    batch->big = true;
    leat_list_init(&batch->open_link);
    gather->big_bytes += bytes;
    batch_begin(gather, batch, stream, streamlet, bytes);
    *out_batch = batch;
    return LEAT_OK;
}

static leat_err call_note(struct leat_producer_batch *batch,
                          const struct leat_gather_record *record)
{
    if (batch->call_count == batch->call_capacity) {
        uint32_t capacity = batch->call_capacity ? batch->call_capacity * 2 : 16;
        struct leat_gather_call *calls =
            leat_mem_realloc(LEAT_MEM_CLIENT, batch->calls, capacity, sizeof *calls);
        if (!calls) return LEAT_E_NO_MEMORY;
        batch->calls = calls;
        batch->call_capacity = capacity;
    }
    batch->calls[batch->call_count] =
        (struct leat_gather_call){batch->builder.record_count, record->fn, record->arg};
    return LEAT_OK;
}

static leat_err batch_add(struct leat_gather *gather, struct leat_producer_batch *batch,
                          const struct leat_gather_record *record)
{
    int64_t stamp = record->timestamp_ms;
    if (stamp == 0)
        stamp = gather->linger_us <= LEAT_GATHER_STAMP_ONCE_US && !batch->held
                    ? batch->opened_wall_ms
                    : gather->clock.wall_ms(gather->clock.ctx);
    if (record->fn) {
        leat_err rc = call_note(batch, record);
        if (rc) return rc;
    }
    leat_err rc = leat_batch_builder_add(&batch->builder, stamp, record->key, record->key_bytes,
                                         record->value, record->value_bytes, record->headers,
                                         record->headers_bytes, record->header_count);
    if (rc == LEAT_OK && record->fn) batch->call_count++;
    return rc;
}

/* Where the record goes. LEAT_E_AGAIN while the stream's streamlets are not known. */
static leat_err route(struct leat_gather *gather, struct leat_gather_stream *stream,
                      const struct leat_gather_record *record, int32_t *out_streamlet)
{
    if (stream->streamlets == 1 && record->streamlet <= 0) {
        /* One streamlet: records with and without a key share its open batch, and so keep their order. Records
         * gathered before the number of streamlets was known go first. */
        if (stream->open_any) batch_ready(gather, stream->open_any);
        *out_streamlet = 0;
        return LEAT_OK;
    }
    if (record->streamlet < 0 && !record->key) {
        *out_streamlet = -1;
        return LEAT_OK;
    }
    if (stream->streamlets == 0) {
        gather->room_wanted = true;
        return LEAT_E_AGAIN;
    }
    if (record->streamlet >= 0) {
        if ((uint32_t)record->streamlet >= stream->streamlets) return LEAT_E_UNKNOWN_LOG;
        *out_streamlet = record->streamlet;
        return LEAT_OK;
    }
    *out_streamlet =
        (int32_t)leat_gather_streamlet_of_key(record->key, record->key_bytes, stream->streamlets);
    return LEAT_OK;
}

/* The open batch has no room for the record: the next one. */
static leat_err add_to_next(struct leat_gather *gather, struct leat_gather_stream *stream,
                            int32_t streamlet, const struct leat_gather_record *record,
                            struct leat_producer_batch **out_batch)
{
    size_t bytes =
        LEAT_BATCH_HEADER_BYTES +
        leat_batch_record_bytes_max(record->key_bytes, record->value_bytes, record->headers_bytes);
    leat_err rc = bytes > gather->batch_bytes
                      ? batch_open_big(gather, stream, streamlet, bytes, out_batch)
                      : batch_open(gather, stream, streamlet, bytes, out_batch);
    if (rc) return rc;
    rc = batch_add(gather, *out_batch, record);
    if (rc) {
        /* Nothing lies in it: back as it came. */
        LEAT_ASSERT(rc != LEAT_E_AGAIN);
        *open_place(stream, streamlet) = NULL;
        leat_list_remove(&(*out_batch)->open_link);
        (void)leat_gather_give(gather, *out_batch);
    }
    return rc;
}

leat_err leat_gather_add(struct leat_gather *gather, const struct leat_gather_record *record,
                         bool *out_notify)
{
    leat_err rc = LEAT_OK;
    struct leat_gather_stream *stream = stream_find(gather, record->stream, &rc);
    if (__builtin_expect(!stream, 0)) return rc;
    if (__builtin_expect(stream->refused, 0)) {
        *out_notify = true; /* the engine looks whether it is time to ask again */
        return stream->refused;
    }
    int32_t streamlet;
    rc = route(gather, stream, record, &streamlet);
    if (__builtin_expect(rc, 0)) {
        *out_notify = rc == LEAT_E_AGAIN;
        return rc;
    }
    struct leat_producer_batch *batch = *open_place(stream, streamlet);
    bool event = false;
    rc = batch ? batch_add(gather, batch, record) : LEAT_E_AGAIN;
    if (rc == LEAT_E_AGAIN) {
        if (batch) batch_ready(gather, batch);
        event = leat_list_empty(&gather->opened) || batch;
        rc = add_to_next(gather, stream, streamlet, record, &batch);
    }
    if (__builtin_expect(rc, 0)) {
        *out_notify = rc == LEAT_E_AGAIN;
        return rc;
    }
    gather->open_records++;
    if (batch->builder.record_count >= gather->batch_records || batch->big) {
        batch_ready(gather, batch);
        event = true;
    }
    if (event && gather->notify_wanted) {
        gather->notify_wanted = false;
        *out_notify = true;
    }
    return LEAT_OK;
}

static leat_err run_add_any(struct leat_producer_batch *batch,
                            const struct leat_produce_record *record, int64_t stamp)
{
    return leat_batch_builder_add(
        &batch->builder, stamp, record->key, record->key ? record->key_bytes : 0, record->value,
        record->value ? record->value_bytes : 0, record->headers,
        record->headers ? record->headers_bytes : 0, record->headers ? record->header_count : 0);
}

struct leat_producer_batch *leat_gather_run_begin(struct leat_gather *gather,
                                                  const char *stream_name)
{
    struct leat_gather_stream *stream = gather->last;
    LEAT_ASSERT(!gather->filling);
    if (!stream || stream->refused || gather->linger_us > LEAT_GATHER_STAMP_ONCE_US ||
        strcmp(stream->name, stream_name) != 0)
        return NULL;
    bool one = stream->streamlets == 1;
    /* Records gathered before the single streamlet was known: route() makes their batch ready first, and no batch is
     * open then. */
    struct leat_producer_batch *batch = one ? stream->open[0] : stream->open_any;
    if (batch && batch->held) return NULL; /* in a held batch each record has a time of its own */
    return gather->filling = batch;
}

size_t leat_gather_run_fill(const struct leat_gather *gather, struct leat_producer_batch *batch,
                            const struct leat_produce_record *records, size_t count)
{
    bool one = batch->streamlet == 0; /* the stream's only streamlet; else the engine chooses */
    /* The record that fills the batch makes it ready, which is done by leat_gather_add(). */
    size_t room = gather->batch_records - batch->builder.record_count - 1, added = 0;
    if (count > room) count = room;
    struct leat_batch_builder builder = batch->builder; /* local: nothing that is written aliases */
    for (; added < count; added++) {
        const struct leat_produce_record *record = &records[added];
        if (one ? record->streamlet > 0 : record->streamlet >= 0 || record->key) break;
        int64_t stamp = record->timestamp_ms ? record->timestamp_ms : batch->opened_wall_ms;
        if (record->key || record->headers || !record->value ||
            !leat_batch_builder_add_value(&builder, stamp, record->value, record->value_bytes)) {
            batch->builder = builder;
            if (run_add_any(batch, record, stamp)) break;
            builder = batch->builder;
        }
    }
    batch->builder = builder;
    leat_batch_builder_digest(&batch->builder, added < count || added == room
                                                   ? GATHER_DIGEST_END_BYTES_MIN
                                                   : GATHER_DIGEST_BYTES_MIN);
    return added;
}

void leat_gather_run_end(struct leat_gather *gather, size_t added, bool *out_notify)
{
    struct leat_producer_batch *batch = gather->filling;
    gather->filling = NULL;
    gather->open_records += added;
    if (__builtin_expect(!gather->close_wanted, 1)) return;
    gather->close_wanted = false;
    batch_ready(gather, batch);
    if (!gather->notify_wanted) return;
    gather->notify_wanted = false;
    *out_notify = true;
}

static struct leat_producer_batch *open_batch(struct leat_list *link)
{
    return LEAT_CONTAINER(link, struct leat_producer_batch, open_link);
}

void leat_gather_close_all(struct leat_gather *gather)
{
    LEAT_ASSERT(!gather->filling);
    while (!leat_list_empty(&gather->opened))
        batch_ready(gather, open_batch(gather->opened.next));
    while (!leat_list_empty(&gather->held))
        batch_ready(gather, open_batch(gather->held.next));
}

static void batch_due(struct leat_gather *gather, struct leat_producer_batch *batch)
{
    if (batch == gather->filling)
        gather->close_wanted = true;
    else
        batch_ready(gather, batch);
}

void leat_gather_take(struct leat_gather *gather, uint64_t before_us, leat_gather_hold_fn hold,
                      void *arg, struct leat_list *to)
{
    LEAT_LIST_EACH(&gather->held, it)
    if (!hold || !hold(arg, open_batch(it))) batch_due(gather, open_batch(it));
    LEAT_LIST_EACH(&gather->opened, it)
    {
        struct leat_producer_batch *batch = open_batch(it);
        if (batch->opened_us > before_us) break;
        if (hold && hold(arg, batch)) {
            /* In a list of its own, for what is first in `opened` says when the engine has to come round. */
            batch->held = true;
            leat_list_remove(it);
            leat_list_push_back(&gather->held, it);
        } else {
            batch_due(gather, batch);
        }
    }
    struct leat_list *link;
    while ((link = leat_list_pop_front(&gather->ready)))
        leat_list_push_back(to, link);
}

bool leat_gather_give(struct leat_gather *gather, struct leat_producer_batch *batch)
{
    if (batch->big) {
        gather->big_bytes -= batch->capacity;
        leat_mem_free(batch->calls);
        leat_mem_free(batch->bytes);
        leat_mem_free(batch);
    } else {
        /* In front: the buffer used last is the one still in the cache. */
        leat_list_push_front(&gather->free, &batch->link);
        gather->free_count++;
    }
    if (!gather->room_wanted || gather->free_count < gather->batch_count / 2) return false;
    gather->room_wanted = false;
    return true;
}
