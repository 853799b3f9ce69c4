/* SPDX-License-Identifier: Apache-2.0 */
/* The home log of the groups: records gather into batches, one batch is on its way at a time, and no change is shown
 * before the batch with this change is acked. */
#include "groups/internal.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"

/* Untouched buffers take no memory: after a large batch, new buffers cost less than 64 homes that keep large
 * buffers. */
void leat_groups_buffers_renew(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    uint8_t *buffers = leat_mem_calloc(LEAT_MEM_BROKER, LEAT_GROUPS_BATCH_BYTES_MAX, 3);
    if (!buffers) return;
    leat_mem_free(groups->buffers);
    groups->buffers = groups->gather = buffers;
    groups->sealed = groups->gather + LEAT_GROUPS_BATCH_BYTES_MAX;
    groups->scratch = groups->sealed + LEAT_GROUPS_BATCH_BYTES_MAX;
    groups->touched_bytes = 0;
    leat_batch_builder_init(&groups->builder, groups->gather, LEAT_GROUPS_BATCH_BYTES_MAX);
}

bool leat_groups_record_fits(const struct leat_groups *groups, size_t bytes)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    return groups->builder.used + leat_batch_record_bytes_max(0, bytes, 0) <=
           LEAT_GROUPS_BATCH_BYTES_MAX;
}

struct leat_msg_writer leat_groups_record_begin(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, groups->scratch, LEAT_GROUPS_BATCH_BYTES_MAX);
    return writer;
}

void leat_groups_record_add(struct leat_groups *groups, const struct leat_msg_writer *writer)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    int64_t ms = groups->options.env->clock->wall_ms(groups->options.env->clock->ctx);
    LEAT_ASSERT(!writer->overflow);
    leat_err rc = leat_batch_builder_add(&groups->builder, ms, NULL, 0, writer->bytes, writer->used,
                                         NULL, 0, 0);
    LEAT_ASSERT(rc == LEAT_OK); /* leat_groups_record_fits() was asked */
}

void leat_groups_nothing_add(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    struct leat_msg_writer writer = leat_groups_record_begin(groups);
    leat_record_nothing_write(&writer, &(struct leat_stored_record){0});
    leat_groups_record_add(groups, &writer);
}

/* One batch is on its way at a time; what comes meanwhile goes together into the next. */
void leat_groups_append_try(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    if (groups->in_flight || groups->broken) return;
    if (groups->sealed_bytes == 0) {
        if (groups->builder.record_count == 0) return;
        groups->sealed_bytes =
            leat_batch_builder_finish(&groups->builder, LEAT_CODEC_NONE, -1, -1, -1);
        if (groups->sealed_bytes > groups->touched_bytes)
            groups->touched_bytes = groups->sealed_bytes;
        uint8_t *full = groups->gather;
        groups->gather = groups->sealed;
        groups->sealed = full;
        leat_batch_builder_init(&groups->builder, groups->gather, LEAT_GROUPS_BATCH_BYTES_MAX);
        groups->gathering++;
    }
    struct leat_batch batch;
    leat_err rc = leat_batch_view(groups->sealed, groups->sealed_bytes, &batch);
    LEAT_ASSERT(rc == LEAT_OK);
    rc = groups->options.broker.append(groups->options.ctx, &batch, &groups->append);
    if (rc == LEAT_OK) {
        groups->in_flight = true;
        groups->sealed_bytes = 0;
    } else if (leat_err_class(rc) != LEAT_CLASS_RETRY) {
        leat_groups_break(groups, rc, leat_err_text(rc));
    }
}

void leat_groups_wait_ack(struct leat_groups *groups, struct leat_groups_request *request)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    /* All records added until now: in the gathering batch, if it has records, otherwise in the batch before. */
    request->ack_sequence = groups->gathering - (groups->builder.record_count == 0);
    leat_groups_wait_begin(groups, request, REQUEST_ACK);
    request->rc = LEAT_OK;
}

bool leat_groups_all_acked(const struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    return !groups->in_flight && groups->sealed_bytes == 0 && groups->builder.record_count == 0;
}

/* SUBTLE: this node may have lost the home although all its appends are acked.
 *  1. This node was cut off; another node has the home by now, which this node has not heard. The new home acks a
 *     commit.
 *  2. A member that reaches both nodes asks the old home, whose table has an offset from before this commit: the
 *     member goes on from there, and the group has gone back.
 * A log that was fenced acks nothing more. So the answer waits for an append that begins after the request: an
 * earlier append may have been on all copies before the fence. */
bool leat_groups_must_append(struct leat_groups *groups)
{
    LEAT_ASSERT_OWNER(groups->options.core);
    if (!groups->options.followed || LEAT_BUG(OLD_HOME)) return !leat_groups_all_acked(groups);
    if (groups->builder.record_count == 0) leat_groups_nothing_add(groups);
    leat_groups_append_try(groups);
    return true;
}
