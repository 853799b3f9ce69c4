/* SPDX-License-Identifier: Apache-2.0 */
/* Append: check everything, then copy. */
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "multilog/internal.h"

static leat_err refuse_producer(enum leat_producer_verdict verdict, const struct leat_log *log,
                                const struct leat_batch *batch, int64_t expected,
                                struct leat_error *error)
{
    long long id = batch->producer_id;
    switch (verdict) {
    case LEAT_PRODUCER_GAP:
        return leat_error_set(error, LEAT_E_SEQUENCE_GAP,
                              "producer %lld leaves a gap: sequence %lld is expected, %d came", id,
                              (long long)expected, batch->base_sequence);
    case LEAT_PRODUCER_FENCED:
        return leat_error_set(error, LEAT_E_PRODUCER_FENCED,
                              "producer %lld of epoch %d is fenced: epoch %lld is in use", id,
                              batch->producer_epoch, (long long)expected);
    case LEAT_PRODUCER_UNKNOWN:
        return leat_error_set(
            error, LEAT_E_UNKNOWN_PRODUCER,
            "the log does not know producer %lld any more: sequence 0 is expected, %d came", id,
            batch->base_sequence);
    case LEAT_PRODUCER_FULL:
        return leat_error_set(error, LEAT_E_TOO_MANY_PRODUCERS,
                              "the log remembers %u producers and takes no more of them",
                              log->producers.count_max);
    default:
        return LEAT_E_INTERNAL;
    }
}

static leat_err refuse_crowd(const struct leat_log *log, struct leat_error *error)
{
    return leat_error_set(error, LEAT_E_TOO_MANY_PRODUCERS,
                          "the log remembers %u producers, at least half of as many as it can, "
                          "and this address has a quarter of that many: it brings no more",
                          log->producers.count);
}

/* Answers go out in the order of positions, so a repeated batch is put where its original is. */
static void wait_for_ack(struct leat_log *log, struct leat_append *append)
{
    struct leat_list *at = &log->waiting;
    while (at->prev != &log->waiting &&
           LEAT_CONTAINER(at->prev, struct leat_append, waiting)->ack_position >
               append->ack_position)
        at = at->prev;
    leat_list_insert_before(at, &append->waiting);
    log_mark_dirty(log);
}

/* The header as it will lie in the segment, and the CRC of the whole batch with it. The caller has compared the
 * batch's own CRC with the bytes: so this CRC is joined and not computed again. If a byte changes between this check
 * and the copy, the entry's CRC shows it. */
static uint32_t header_stamp(const struct leat_log *log, const struct leat_batch *batch,
                             uint8_t header[LEAT_BATCH_HEADER_BYTES])
{
    memcpy(header, batch->bytes, LEAT_BATCH_HEADER_BYTES);
    leat_batch_stamp(header, log->next_offset, log->options.epoch.v);
    if (log->options.settings.append_time)
        leat_batch_set_append_time(header, batch->byte_count, log->gathered_wall_ms);
    else
        leat_batch_set_max_time(header, batch);
    uint32_t crc = leat_crc32c_join(leat_crc32c(0, header, LEAT_BATCH_CRC_FROM),
                                    leat_get_be32(header + LEAT_BATCH_CRC_AT),
                                    batch->byte_count - LEAT_BATCH_CRC_FROM);
    LEAT_ASSERT_SLOW(crc == leat_crc32c(leat_crc32c(0, header, LEAT_BATCH_HEADER_BYTES),
                                        batch->bytes + LEAT_BATCH_HEADER_BYTES,
                                        batch->byte_count - LEAT_BATCH_HEADER_BYTES));
    return crc;
}

/* Nothing in here can fail. */
static void copy_in(struct leat_log *log, const struct leat_batch *batch,
                    struct leat_append *append)
{
    struct log_open *head = &log->head;
    uint8_t header[LEAT_BATCH_HEADER_BYTES];
    /* Reading two clocks for each batch costs as much as its CRC; the clocks of the turn will do. */
    if (!log->clocks_read) {
        log->clocks_read = true;
        log->gathered_us = log_now(log);
        log->gathered_wall_ms = log->env->clock->wall_ms(log->env->clock->ctx);
    }
    uint32_t crc = header_stamp(log, batch, header);
    bool append_time = log->options.settings.append_time;
    int64_t newest_ms = append_time ? log->gathered_wall_ms : batch->max_timestamp_ms;
    leat_index_note(head->index, head->writer.used, log->next_offset - head->seg->base_offset,
                    head->max_timestamp_ms);
    uint32_t at = leat_entry_append(&head->writer, LEAT_ENTRY_BATCH, log->next_offset,
                                    batch->record_count, batch->bytes, batch->byte_count, crc);
    memcpy(head->writer.bytes + at + LEAT_ENTRY_HEADER_BYTES, header, sizeof header);
    if (batch->producer_id >= 0) {
        leat_producers_record(&log->producers, batch, log->next_offset, log->gathered_wall_ms);
        leat_producers_note(&log->producers, batch->producer_id, append->address);
    }
    if (newest_ms > head->max_timestamp_ms) head->max_timestamp_ms = newest_ms;
    head->record_count += batch->record_count;
    append->first_offset = log->next_offset;
    append->duplicate = false;
    append->append_time_ms = append_time ? newest_ms : -1;
    log->next_offset += batch->record_count;
    append->ack_position = log->next_offset;
    log->appended_records += batch->record_count;
    log->appended_bytes += batch->byte_count;
    /* One trailer per megabyte also in a turn that brings more: a torn run costs no more than
     * that. */
    if (head->writer.used - head->writer.sealed_bytes >= LOG_RUN_BYTES_MAX && log_may_seal(log)) {
        (void)leat_entry_seal(&head->writer, head->acked_bytes);
        head->sealed_offset = log->next_offset;
    }
}

static leat_err refuse_memory(const char *what, struct leat_error *error)
{
    return leat_error_set(error, LEAT_E_NO_MEMORY,
                          "the memory budget has no room for what another %s takes: delete "
                          "streams, shorten their retention, or give the server a larger --memory",
                          what);
}

static leat_err want_room(struct leat_log *log, const struct leat_batch *batch,
                          struct leat_error *error)
{
    leat_err refusal = log_place_refusal(log, false);
    if (refusal == LEAT_E_DISK_FULL)
        return leat_error_set(error, refusal,
                              "no space left in the data directory for another segment");
    if (refusal != LEAT_OK) return refuse_memory("stored segment", error);
    log->room_wanted = true;
    if (batch->byte_count > log->room_bytes) log->room_bytes = batch->byte_count;
    log_mark_dirty(log);
    return LEAT_E_AGAIN;
}

static leat_err refuse_batch(const struct leat_log *log, const struct leat_batch *batch,
                             struct leat_error *error)
{
    uint32_t most = log->options.settings.batch_bytes_max;
    if (most == 0 || most > LEAT_BATCH_BYTES_MAX) most = LEAT_BATCH_BYTES_MAX;
    if (batch->byte_count > most)
        return leat_error_set(error, LEAT_E_TOO_LARGE,
                              "a batch of %u bytes; the stream takes at most %u", batch->byte_count,
                              most);
    /* Only the log itself sets log-append times. */
    if (batch->attributes & LEAT_BATCH_APPEND_TIME)
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "a batch must carry create times, not log-append times");
    return LEAT_OK;
}

leat_err leat_log_append(struct leat_log *log, const struct leat_batch *batch,
                         struct leat_append *append, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    leat_err rc = log_refusal(log, error);
    if (rc != LEAT_OK) return rc;
    append->append_time_ms = -1;
    if (log_is_unloaded(log)) return want_room(log, batch, error);

    uint64_t offset = 0;
    int64_t expected = 0;
    enum leat_producer_verdict verdict =
        leat_producers_check(&log->producers, batch, &offset, &expected);
    switch (verdict) {
    case LEAT_PRODUCER_NEW:
        if (!leat_producers_crowded_by(&log->producers, batch->producer_id, append->address)) break;
        return refuse_crowd(log, error);
    case LEAT_PRODUCER_DUPLICATE:
        append->first_offset = offset;
        append->ack_position = offset + batch->record_count;
        append->duplicate = true;
        wait_for_ack(log, append);
        return LEAT_OK;
    case LEAT_PRODUCER_OLDER:
        append->first_offset = UINT64_MAX;
        append->ack_position = offset;
        append->duplicate = true;
        wait_for_ack(log, append);
        return LEAT_OK;
    case LEAT_PRODUCER_GROW:
        if (log_producers_are_refused(log)) return refuse_memory("producer", error);
        log->producers_wanted = true;
        return want_room(log, batch, error);
    default:
        return refuse_producer(verdict, log, batch, expected, error);
    }
    /* After the check for duplicates: a batch that was appended before the stream's limit became smaller is in the
     * log. A producer whose repeated batch is refused would append it again in pieces. */
    rc = refuse_batch(log, batch, error);
    if (rc != LEAT_OK) return rc;
    if (!log_head_fits(log, batch->byte_count)) return want_room(log, batch, error);

    copy_in(log, batch, append);
    leat_list_push_back(&log->waiting, &append->waiting);
    log_mark_dirty(log);
    return LEAT_OK;
}

bool leat_log_await_acked(struct leat_log *log, struct leat_append *append)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log_acked(log) == log->next_offset) return false;
    append->first_offset = 0;
    append->ack_position = log->next_offset;
    append->duplicate = false;
    wait_for_ack(log, append);
    return true;
}
