/* SPDX-License-Identifier: Apache-2.0 */
/* Where is the earliest, the latest, a time, an offset? Built on reads. */
#include "base/bytes.h"
#include "multilog/internal.h"
#include "wire/message.h"
#include "wire/unpack.h"

static leat_err locate_end(struct leat_locate_op *op, leat_err rc)
{
    op->rc = rc;
    return LEAT_OK;
}

static leat_err locate_latest(struct leat_log *log, struct leat_locate_op *op)
{
    op->offset.v = log_acked(log);
    op->position = log_end_position(log);
    return locate_end(op, LEAT_OK);
}

/* Bytes that are uncompressed for one answer, on the log's core: 3 ms with gzip, the slowest codec, in pieces. No
 * client makes larger batches by default. If the record lies after these bytes, the batch's first record is the
 * answer: a consumer skips some records. */
enum { UNCOMPRESSED_BYTES_MAX = 1024 * 1024 };

/* The first record of the batch that is not older, among its uncompressed records. */
static void locate_among(const struct leat_log *log, struct leat_locate_op *op,
                         const struct leat_batch *batch, const uint8_t *records, size_t bytes)
{
    struct leat_record_reader reader;
    struct leat_record record;
    leat_record_reader_init(&reader, batch, records, bytes);
    while (leat_record_next(&reader, &record) == LEAT_OK) {
        if (record.timestamp_ms < op->value ||
            batch->base_offset + record.offset_delta < log->first_offset)
            continue;
        op->offset.v = batch->base_offset + record.offset_delta;
        op->timestamp_ms = record.timestamp_ms;
        return;
    }
}

/* The first record of the batch that is not older. */
static void locate_record(const struct leat_log *log, struct leat_locate_op *op,
                          const struct leat_batch *batch)
{
    op->offset.v = batch->base_offset;
    bool append_time = (batch->attributes & LEAT_BATCH_APPEND_TIME) != 0;
    op->timestamp_ms = append_time ? batch->max_timestamp_ms : batch->base_timestamp_ms;
    if (op->offset.v < log->first_offset) op->offset.v = log->first_offset;
    bool first = op->timestamp_ms >= op->value && batch->base_offset >= log->first_offset;
    if (first || append_time) return; /* the other records do not matter */
    if (batch->codec == LEAT_CODEC_NONE) {
        locate_among(log, op, batch, batch->bytes + LEAT_BATCH_HEADER_BYTES,
                     batch->byte_count - LEAT_BATCH_HEADER_BYTES);
        return;
    }
    op->seeks = true;
    op->batch = *batch;
    op->post = log->env->post;
}

/* SUBTLE: a look-up takes its memory when its turn comes. Else (1) thousands of look-ups wait for a log whose
 * beginning is not known; (2) it becomes known, and all look-ups find their batch in one callback; (3) each gets an
 * unpacker at once, together gigabytes. */
static bool seek_begin(struct leat_locate_op *op)
{
    const struct leat_batch *batch = &op->batch;
    bool gzip = batch->codec == LEAT_CODEC_GZIP;
    op->unpacker = leat_unpacker_create(gzip ? LEAT_UNPACKER_GZIP_BYTES : LEAT_UNPACKER_BYTES);
    if (!op->unpacker) return false;
    leat_unpacker_seek_begin(op->unpacker, batch, op->value,
                             (uint32_t)(op->offset.v - batch->base_offset), UNCOMPRESSED_BYTES_MAX);
    return true;
}

static void read_end(struct leat_read *read, const struct leat_post *post)
{
    if (read->pinned) leat_segment_unpin(read->pinned, post);
    read->pinned = NULL;
}

leat_err leat_locate_step(struct leat_locate_op *op)
{
    uint32_t delta;
    int64_t time_ms;
    leat_err rc = LEAT_E_NO_MEMORY; /* then the batch's first record is the answer */
    if (op->unpacker || seek_begin(op))
        rc = leat_unpacker_seek_step(op->unpacker, &op->batch, 1, &delta, &time_ms);
    if (rc == LEAT_E_AGAIN) return rc;
    if (rc == LEAT_OK) {
        op->offset.v = op->batch.base_offset + delta;
        op->timestamp_ms = time_ms;
    }
    leat_unpacker_destroy(op->unpacker);
    op->unpacker = NULL;
    op->seeks = false;
    read_end(&op->read, op->post);
    return LEAT_OK;
}

static struct leat_position first_position(const struct leat_log *log)
{
    return (struct leat_position){log_group_of(log->first_segment), log->first_segment, 0};
}

static bool position_is_past_end(const struct leat_log *log, struct leat_position place)
{
    struct leat_position end = log_end_position(log);
    return place.segment > end.segment ||
           (place.segment == end.segment && place.position > end.position);
}

/* SUBTLE: only a log that knows its ends may say that there is no such place (read.c, past_end()). */
static leat_err position_refuse(const struct leat_log *log, struct leat_locate_op *op)
{
    bool waits = log->state == LEAT_LOG_WAITING && position_is_past_end(log, op->from);
    op->first_position = first_position(log);
    op->end_position = log_end_position(log);
    return log_front_is_elsewhere(log) || waits ? LEAT_E_LOG_INCOMPLETE
                                                : LEAT_E_OFFSET_OUT_OF_RANGE;
}

/* A batch lies there, or nothing is acked there yet, or what was there an operator gave up: then what
 * comes next. Position 0 of a segment stands for its first record that is still there. */
static void position_take(const struct leat_log *log, struct leat_locate_op *op)
{
    const struct leat_read *read = &op->read;
    if (read->rc == LEAT_E_OFFSET_OUT_OF_RANGE || (read->given_up && op->from.position > 0)) {
        op->rc = position_refuse(log, op);
        return;
    }
    if (read->rc != LEAT_OK) return;
    op->offset = read->iov_count ? read->first : read->next;
    op->position = read->iov_count ? read->first_position : read->next_position;
    if (op->offset.v < log->first_offset) op->offset.v = log->first_offset;
}

static void locate_take(struct leat_log *log, struct leat_locate_op *op)
{
    struct leat_read *read = &op->read;
    op->rc = read->rc;
    if (op->what == LEAT_LOCATE_POSITION) {
        position_take(log, op);
        read_end(read, log->env->post);
        return;
    }
    if (read->rc == LEAT_E_OFFSET_OUT_OF_RANGE && op->what == LEAT_LOCATE_OFFSET)
        op->offset.v = op->offset.v < log->first_offset ? log->first_offset : log_acked(log);
    if (read->rc != LEAT_OK) return;
    if (read->iov_count == 0) {
        (void)locate_latest(log, op);
        return;
    }
    op->position = read->first_position;
    /* Offsets that were given up: what comes next. */
    if (op->what == LEAT_LOCATE_OFFSET && read->first.v > op->offset.v) op->offset = read->first;
    struct leat_batch batch;
    leat_err rc = leat_batch_view(read->iovs[0].base, read->iovs[0].bytes, &batch);
    if (rc != LEAT_OK)
        op->rc = LEAT_E_DAMAGED;
    else if (op->what == LEAT_LOCATE_TIME)
        locate_record(log, op, &batch);
    if (!op->seeks) read_end(read, log->env->post);
}

static void on_located(struct leat_read *read)
{
    struct leat_locate_op *op = read->owner;
    locate_take(read->log, op);
    op->on_done(op);
}

static leat_err locate_read(struct leat_log *log, struct leat_locate_op *op)
{
    op->read.max_bytes = 1;
    op->read.on_done = on_located;
    op->read.owner = op;
    if (log_read_begin(log, &op->read) == LEAT_E_AGAIN) return LEAT_E_AGAIN;
    locate_take(log, op);
    return LEAT_OK;
}

/* Batches need not come in the order of their times: the first segment whose highest timestamp is
 * not older holds the answer (read.c, resolve_time()). */
static leat_err locate_time(struct leat_log *log, struct leat_locate_op *op)
{
    uint64_t id = log_front_is_unknown(log) ? 0 : log->first_segment;
    op->read.by_time = true;
    op->read.by_position = false;
    op->read.time_ms = op->value;
    op->read.position = (struct leat_position){log_group_of(id), id, 0};
    return locate_read(log, op);
}

static leat_err locate_newest(struct leat_log *log, struct leat_locate_op *op)
{
    int64_t newest = INT64_MIN;
    for (uint32_t i = 0; i < log->slot_count; i++) {
        const struct log_slot *slot = log_slot_at(log, i);
        if (slot->seg->id.v < log->first_segment) continue;
        int64_t time = log_newest_of(log, slot);
        if (time > newest) newest = time;
    }
    op->what = LEAT_LOCATE_TIME;
    op->value = newest;
    return locate_time(log, op);
}

/* Each segment is one owner's, and epochs only grow: where the first later one begins. */
static leat_err locate_epoch(struct leat_log *log, struct leat_locate_op *op)
{
    op->epoch.v = 0;
    for (uint32_t i = 0; i < log->slot_count; i++) {
        const struct leat_segment *seg = log_slot_at(log, i)->seg;
        if (op->value < (int64_t)seg->epoch.v) {
            op->offset.v = seg->base_offset;
            return locate_end(op, LEAT_OK);
        }
        op->epoch = seg->epoch;
    }
    return locate_latest(log, op);
}

static leat_err locate_position(struct leat_log *log, struct leat_locate_op *op)
{
    op->read.by_position = true;
    op->read.by_time = false;
    op->read.position = op->from;
    return locate_read(log, op);
}

static void earliest_take(const struct leat_log *log, struct leat_locate_op *op)
{
    op->offset.v = log->first_offset;
    op->position = first_position(log);
}

static void on_front_known(struct leat_read *read)
{
    struct leat_locate_op *op = read->owner;
    op->rc = read->rc;
    earliest_take(read->log, op);
    op->on_done(op);
}

/* Missing first segments belong to the log: a reader has to come across them. */
static leat_err locate_earliest(struct leat_log *log, struct leat_locate_op *op)
{
    if (log_front_is_elsewhere(log)) return locate_end(op, LEAT_E_LOG_INCOMPLETE);
    op->read.on_done = on_front_known;
    op->read.owner = op;
    if (leat_log_front_await(log, &op->read) == LEAT_E_AGAIN) return LEAT_E_AGAIN;
    earliest_take(log, op);
    return locate_end(op, LEAT_OK);
}

leat_err leat_log_locate(struct leat_log *log, struct leat_locate_op *op)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    op->timestamp_ms = -1;
    op->position = (struct leat_position){0};
    switch (op->what) {
    case LEAT_LOCATE_EARLIEST:
        return locate_earliest(log, op);
    case LEAT_LOCATE_LATEST:
        return locate_latest(log, op);
    case LEAT_LOCATE_TIME:
        return locate_time(log, op);
    case LEAT_LOCATE_OFFSET:
        op->offset.v = (uint64_t)op->value;
        op->read.from = op->offset;
        op->read.by_position = op->read.by_time = false;
        return locate_read(log, op);
    case LEAT_LOCATE_NEWEST:
        return locate_newest(log, op);
    case LEAT_LOCATE_EPOCH:
        return locate_epoch(log, op);
    case LEAT_LOCATE_POSITION:
        return locate_position(log, op);
    default:
        return locate_end(op, LEAT_E_INVALID);
    }
}
