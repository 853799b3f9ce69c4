/* SPDX-License-Identifier: Apache-2.0 */
/* A batch that has more bytes than its stream takes becomes several: what gathered before the stream was
 * known, or before its limit was changed. */
#include "internal.h"

#include "base/assert.h"
#include "base/mem.h"

#include <string.h>

struct cut {
    struct leat_producer_batch *from;
    struct leat_list *to;
    struct leat_producer_batch *now; /* being filled */
    uint32_t limit, record, call;    /* next of `from` */
    uint64_t bytes;                  /* of memory, in all */
};

static uint32_t batch_bytes(const struct leat_producer_batch *batch)
{
    return batch->finished ? batch->byte_count : batch->builder.used;
}

bool leat_producer_batch_too_large(const struct leat_producer_batch *batch)
{
    uint32_t limit = batch->stream->batch_bytes_max;
    return limit != 0 && batch_bytes(batch) > limit && batch->builder.record_count > 1;
}

static void batch_free(struct leat_producer_batch *batch)
{
    leat_mem_free(batch->calls);
    leat_mem_free(batch->bytes);
    leat_mem_free(batch);
}

/* Like the gather's batch of a single large record: memory of its own, freed when the batch is done. */
static bool cut_next(struct cut *cut, size_t record_bytes)
{
    struct leat_producer_batch *batch = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *batch);
    if (batch == NULL) return false;
    uint32_t capacity = LEAT_BATCH_HEADER_BYTES + (uint32_t)record_bytes;
    if (capacity < cut->limit) capacity = cut->limit;
    batch->bytes = leat_mem_calloc(LEAT_MEM_CLIENT, 1, capacity);
    if (batch->bytes == NULL) {
        leat_mem_free(batch);
        return false;
    }
    batch->capacity = capacity;
    batch->big = true;
    batch->stream = cut->from->stream;
    batch->streamlet = cut->from->streamlet;
    batch->opened_us = cut->from->opened_us;
    batch->opened_wall_ms = cut->from->opened_wall_ms;
    batch->sequence = -1;
    leat_list_init(&batch->open_link);
    leat_batch_builder_init(&batch->builder, batch->bytes, capacity);
    leat_list_push_back(cut->to, &batch->link);
    cut->bytes += capacity;
    cut->now = batch;
    return true;
}

/* Moves the callbacks of the next record to its new batch. */
static bool cut_calls(struct cut *cut)
{
    struct leat_producer_batch *from = cut->from, *to = cut->now;
    if (cut->call == from->call_count || from->calls[cut->call].record != cut->record) return true;
    if (to->calls == NULL) {
        to->call_capacity = from->call_count - cut->call;
        to->calls = leat_mem_calloc(LEAT_MEM_CLIENT, to->call_capacity, sizeof *to->calls);
        if (to->calls == NULL) return false;
    }
    to->calls[to->call_count] = from->calls[cut->call++];
    to->calls[to->call_count++].record = to->builder.record_count;
    return true;
}

static bool cut_record(struct cut *cut, const struct leat_record *record)
{
    for (unsigned attempt = 0; attempt < 2; attempt++) {
        size_t bytes = leat_batch_record_bytes_max(record->key_bytes, record->value_bytes,
                                                   record->headers_bytes);
        if ((cut->now == NULL || attempt > 0) && !cut_next(cut, bytes)) return false;
        struct leat_batch_builder before = cut->now->builder;
        leat_err rc = leat_batch_builder_add(
            &cut->now->builder, record->timestamp_ms, record->key, record->key_bytes, record->value,
            record->value_bytes, record->headers, record->headers_bytes, record->header_count);
        if (rc == LEAT_E_AGAIN) continue;
        if (rc != LEAT_OK) return false;
        struct leat_batch_builder after = cut->now->builder;
        cut->now->builder = before; /* record_count before the record is the record's index */
        bool noted = cut_calls(cut);
        /* SUBTLE: the batch has memory for the largest possible encoding of its first record. If small records filled
         * all of this memory, the batch would exceed the stream's limit, be refused, and be cut into the same batch
         * again. */
        if (after.capacity > cut->limit)
            after.capacity = after.used > cut->limit ? after.used : cut->limit;
        cut->now->builder = after;
        cut->record++;
        return noted;
    }
    return false;
}

static bool cut_all(struct cut *cut, uint8_t *room)
{
    struct leat_producer_batch *from = cut->from;
    struct leat_batch batch;
    const uint8_t *records;
    size_t bytes;
    if (!from->finished)
        (void)leat_batch_builder_finish(&from->builder, LEAT_CODEC_NONE, -1, -1, -1);
    if (leat_batch_view(from->bytes, batch_bytes(from), &batch) != LEAT_OK ||
        leat_batch_records(&batch, room, LEAT_BATCH_BYTES_MAX, &records, &bytes) != LEAT_OK)
        return false;
    struct leat_record_reader reader;
    struct leat_record record;
    leat_record_reader_init(&reader, &batch, records, bytes);
    while (leat_record_next(&reader, &record) == LEAT_OK)
        if (!cut_record(cut, &record)) return false;
    return cut->record == from->builder.record_count;
}

leat_err leat_producer_batch_cut(struct leat_producer_engine *engine,
                                 struct leat_producer_batch *batch, struct leat_list *out)
{
    struct cut cut = {.from = batch, .to = out, .limit = batch->stream->batch_bytes_max};
    LEAT_ASSERT(batch->sequence < 0 && !batch->maybe_appended && !batch->reported);
    /* Room to uncompress a compressed batch; other batches are read in place. */
    uint8_t *room =
        batch->finished ? leat_mem_calloc(LEAT_MEM_CLIENT, 1, LEAT_BATCH_BYTES_MAX) : NULL;
    bool whole = (room != NULL || !batch->finished) && cut_all(&cut, room);
    leat_mem_free(room);
    struct leat_list *link;
    if (!whole) {
        while ((link = leat_list_pop_front(out)) != NULL)
            batch_free(LEAT_CONTAINER(link, struct leat_producer_batch, link));
        return LEAT_E_NO_MEMORY;
    }
    leat_producer_batch_replaced(engine, batch, cut.bytes);
    return LEAT_OK;
}
