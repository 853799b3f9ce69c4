/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log takes something now: room in its head, place for another segment, why it refuses. */
#include "multilog/internal.h"

uint32_t log_keep_free(const struct log_open *open)
{
    return leat_entry_bytes(leat_index_close_bytes_max(open->writer.capacity)) +
           LEAT_ENTRY_HEADER_BYTES;
}

bool log_head_fits(const struct leat_log *log, uint32_t payload_bytes)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return log->head.seg && log->hibernating == LOG_AWAKE &&
           leat_entry_fits(&log->head.writer, payload_bytes, log_keep_free(&log->head));
}

/* The refusal says what is wrong, and the way out: a client that appends is the first to notice. */
static leat_err refuse_incomplete(const struct leat_log *log, leat_err rc, struct leat_error *error)
{
    const struct leat_log_ref *ref = &log->options.ref;
    return leat_error_set(error, rc, "%.140s; see leat log recover %.64s --streamlet %u --log %u",
                          log->why, log->stream_name, ref->streamlet, ref->log);
}

leat_err log_refusal(const struct leat_log *log, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->ending == LOG_DELETING)
        return leat_error_set(error, LEAT_E_UNKNOWN_STREAM, "the stream is being deleted");
    if (log_is_stopping(log))
        return leat_error_set(error, LEAT_E_STARTING, "the server is stopping");
    leat_err rc = log->store_port.refusal ? log->store_port.refusal(log->store_port.ctx) : LEAT_OK;
    switch (log->state) {
    case LEAT_LOG_SERVING:
        return rc ? leat_error_set(error, rc, "%s", leat_err_text(rc)) : LEAT_OK;
    case LEAT_LOG_WAITING:
        return refuse_incomplete(log, LEAT_E_LOG_INCOMPLETE, error);
    case LEAT_LOG_DAMAGED:
        return refuse_incomplete(log, LEAT_E_DAMAGED, error);
    case LEAT_LOG_STOPPED:
        return leat_error_set(error, log->stopped_rc, "%s", log->why);
    }
    return LEAT_E_INTERNAL;
}

leat_err log_place_refusal(const struct leat_log *log, bool spare)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    uint64_t now = log_now(log);
    if (log->reserve_rc == LEAT_E_DISK_FULL && now < log->reserve_not_before_us)
        return LEAT_E_DISK_FULL;
    bool full = now < log->memory_not_before_us && (log->memory_spent || !spare);
    return full ? LEAT_E_NO_MEMORY : LEAT_OK;
}

bool log_producers_are_refused(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    return log_now(log) < log->producers_not_before_us;
}
