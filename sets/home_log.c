/* SPDX-License-Identifier: Apache-2.0 */
/* The home log of the sets: records gather into batches, one batch is on its way at a time, and
 * nothing is told before the batch that carries it is acked. */
#include "sets/internal.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"

/* What was never written to takes no memory: after a large batch new ones cost less than 64 homes that keep theirs. */
void leat_sets_buffers_renew(struct leat_sets *sets)
{
    uint8_t *buffers = leat_mem_calloc(LEAT_MEM_BROKER, LEAT_SETS_BATCH_BYTES_MAX, 3);
    if (!buffers) return;
    leat_mem_free(sets->buffers);
    sets->buffers = sets->gather = buffers;
    sets->sealed = sets->gather + LEAT_SETS_BATCH_BYTES_MAX;
    sets->scratch = sets->sealed + LEAT_SETS_BATCH_BYTES_MAX;
    sets->touched_bytes = 0;
    leat_batch_builder_init(&sets->builder, sets->gather, LEAT_SETS_BATCH_BYTES_MAX);
}

bool leat_sets_record_fits(const struct leat_sets *sets, size_t bytes)
{
    return sets->builder.used + leat_batch_record_bytes_max(0, bytes, 0) <=
           LEAT_SETS_BATCH_BYTES_MAX;
}

void leat_sets_record_add(struct leat_sets *sets, const struct leat_msg_writer *writer)
{
    int64_t ms = sets->options.env->clock->wall_ms(sets->options.env->clock->ctx);
    LEAT_ASSERT(!writer->overflow);
    leat_err rc = leat_batch_builder_add(&sets->builder, ms, NULL, 0, writer->bytes, writer->used,
                                         NULL, 0, 0);
    LEAT_ASSERT(rc == LEAT_OK); /* leat_sets_record_fits() was asked */
}

/* One batch is on its way at a time; what comes meanwhile goes together into the next. */
void leat_sets_append_try(struct leat_sets *sets)
{
    if (sets->in_flight || sets->broken) return;
    if (sets->sealed_bytes == 0) {
        if (sets->builder.record_count == 0) return;
        sets->sealed_bytes = leat_batch_builder_finish(&sets->builder, LEAT_CODEC_NONE, -1, -1, -1);
        if (sets->sealed_bytes > sets->touched_bytes) sets->touched_bytes = sets->sealed_bytes;
        uint8_t *full = sets->gather;
        sets->gather = sets->sealed;
        sets->sealed = full;
        leat_batch_builder_init(&sets->builder, sets->gather, LEAT_SETS_BATCH_BYTES_MAX);
        sets->gathering++;
    }
    struct leat_batch batch;
    leat_err rc = leat_batch_view(sets->sealed, sets->sealed_bytes, &batch);
    LEAT_ASSERT(rc == LEAT_OK);
    rc = sets->options.broker.append(sets->options.ctx, &batch, &sets->append);
    if (rc == LEAT_OK) {
        sets->in_flight = true;
        sets->sealed_bytes = 0;
    } else if (leat_err_class(rc) != LEAT_CLASS_RETRY) {
        leat_sets_break(sets, rc, leat_err_text(rc));
    }
}

void leat_sets_wait_ack(struct leat_sets *sets, struct leat_sets_request *request)
{
    /* Everything added until now: in the batch that gathers, if it has something, else in the one
     * before. */
    request->ack_sequence = sets->gathering - (sets->builder.record_count == 0);
    leat_sets_wait_begin(sets, request, REQUEST_ACK);
    request->rc = LEAT_OK;
}

bool leat_sets_all_acked(const struct leat_sets *sets)
{
    return !sets->in_flight && sets->sealed_bytes == 0 && sets->builder.record_count == 0;
}

/* SUBTLE: that all is acked does not make this the home still.
 *  1. The home was followed while its node was cut off, which has not heard of it. The new home acks a commit.
 *  2. A member that reaches both asks the old one. Its table has an offset from before that commit: there the member
 *     goes on, and the set has gone back.
 * A log that was fenced acks nothing more. So what is told waits for an append that begins after the question: one
 * that was on its way may have been on all copies before the fence. */
bool leat_sets_must_append(struct leat_sets *sets)
{
    if (!sets->options.followed || LEAT_BUG(OLD_HOME)) return !leat_sets_all_acked(sets);
    if (sets->builder.record_count == 0) {
        struct leat_msg_writer writer = leat_sets_record_begin(sets, RECORD_NOTHING, 0);
        leat_sets_record_add(sets, &writer);
    }
    leat_sets_append_try(sets);
    return true;
}

struct leat_msg_writer leat_sets_record_begin(struct leat_sets *sets, enum record_kind kind,
                                              uint32_t fields)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, sets->scratch, LEAT_SETS_BATCH_BYTES_MAX);
    leat_msg_write_array(&writer, 1 + fields);
    leat_msg_write_u64(&writer, (uint64_t)kind);
    return writer;
}
