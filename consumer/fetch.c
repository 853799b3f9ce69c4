/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches: one per connection at a time, each for all logs that live there; and the requests that
 * find out where a log begins. */
#include "internal.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/copy.h"

#include <stdio.h>
#include <string.h>

static const struct leat_client_log *log_where(const struct leat_client_stream *stream,
                                               const struct leat_consumer_log *log)
{
    uint64_t at = (uint64_t)log->ref.streamlet * stream->settings.logs + log->ref.log;
    return at < stream->log_count ? &stream->logs[at] : NULL;
}

/* ---- what failed ---- */

static void log_sentence(const struct leat_consumer_engine *engine,
                         const struct leat_consumer_log *log, leat_err rc, const char *text,
                         char out_sentence[LEAT_ERROR_TEXT_BYTES])
{
    /* By position the offset is not known. */
    char at[40] = "";
    if (!log->by_position && log->state == CLOG_READY)
        snprintf(at, sizeof at, " at offset %llu", (unsigned long long)log->next);
    int used = snprintf(out_sentence, LEAT_ERROR_TEXT_BYTES,
                        "stream %.64s streamlet %u log %u%s: ", engine->stream_name,
                        log->ref.streamlet, log->ref.log, at);
    snprintf(out_sentence + used, LEAT_ERROR_TEXT_BYTES - (size_t)used, "%s",
             text && *text ? text : leat_err_text(rc));
}

/* Once more, somewhat later; perhaps at another node. */
static void log_retry(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                      leat_err rc)
{
    if (log->attempts == 0) log->noted = LEAT_OK;
    log->acked_known = false; /* until the owner says where the log ends now */
    log->retry_at_us =
        leat_consumer_now(engine) + leat_client_pause_us(engine->client, log->attempts++);
    /* SUBTLE: a send may fail at once (the owner is not up), after this turn's look at waiting logs. Without a timer,
     * a consumer whose other logs had nothing to read stood still for good. */
    leat_consumer_wake_at(engine, log->retry_at_us);
    if (leat_err_class(rc) == LEAT_CLASS_REROUTE || rc == LEAT_E_CLOSED || rc == LEAT_E_TIMEOUT)
        leat_consumer_refresh_at(engine, log->retry_at_us);
}

static void log_pause(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                      leat_err rc, const char *text)
{
    /* the records may come back: nothing is skipped, and the consumer goes on */
    if (rc == LEAT_E_LOG_INCOMPLETE) {
        rc = LEAT_E_AGAIN;
        text = "the log's end is missing: waiting for it, or for 'leat log recover'";
    }
    enum leat_err_class class = leat_err_class(rc);
    char sentence[LEAT_ERROR_TEXT_BYTES];
    if (class == LEAT_CLASS_REJECT || class == LEAT_CLASS_FATAL) {
        log_sentence(engine, log, rc, text, sentence);
        leat_consumer_fail(engine, rc, sentence);
        return;
    }
    log_retry(engine, log, rc);
    /* Told again when the reason is another one: the first may be only what the end looks like. */
    if (rc == LEAT_E_CANCELLED || rc == log->noted) return;
    log->noted = rc;
    log_sentence(engine, log, rc, text, sentence);
    leat_consumer_note(engine, rc, sentence);
}

/* ---- fetch ---- */

/* The segment group does not exist yet, or has been trimmed, wholly or at its beginning. Where the log begins decides
 * between these: the owner is asked for that (LOCATE) only if the log begins elsewhere than at the last time. */
static void group_out_of_range(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                               const struct leat_msg_fetched *row)
{
    if (row->acked_offset > log->acked || !log->acked_known) log->acked = row->acked_offset;
    log->acked_known = true;
    if (log->asked_first == row->first_offset) {
        log->next = log->acked;
        log->retry_at_us = leat_consumer_now(engine) + (uint64_t)engine->options.wait_ms * 1000u;
        return;
    }
    log->asked_first = row->first_offset;
    leat_consumer_log_enter(log, CLOG_LOCATE);
    log->locate_what = LEAT_LOCATE_EARLIEST;
    log->locate_value = 0;
}

/* SUBTLE: a later group begins at the end of this group, or after it. (1) The last record fills the last segment of a
 * group. (2) The next group's first segment is open, and empty. (3) No record gives the reader's offset in the next
 * group, so the reader would never be at the end. */
static void group_next(struct leat_consumer_engine *engine, struct leat_consumer_log *log)
{
    uint64_t next = log->next;
    leat_consumer_group_enter(engine, log, log->group + log->group_step);
    if (log->next < next) log->next = next;
}

/* Where the log begins, asked because the group could not be read. */
static void group_begin_known(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                              const struct leat_msg_located *row)
{
    if (row->position.group < log->group) { /* it does not exist yet */
        log->next = log->acked;
        return;
    }
    if (row->position.group == log->group) {
        log->position = row->position;
        return;
    }
    char text[LEAT_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text,
             "stream %.64s streamlet %u log %u: segment group %llu has been trimmed before it was "
             "read whole; going on after segment group %llu",
             engine->stream_name, log->ref.streamlet, log->ref.log, (unsigned long long)log->group,
             (unsigned long long)row->position.group - 1);
    /* Those skipped are said to be done, or the log's first unfinished segment group would stay there. */
    while (log->group < row->position.group) {
        leat_consumer_group_finish(engine, log->ref, log->group);
        group_next(engine, log);
    }
    leat_consumer_note(engine, LEAT_E_AGAIN, text);
}

/* Where the committed offset lies, if the group was begun before.
 *
 * SUBTLE: a member commits all records of a group, and stops before it commits that the group is finished. The
 * committed offset lies in the next group then. Its next owner read on there, as if the records were of this group; the
 * owner of the next group read them, too. */
static void group_position_known(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                                 struct leat_position position)
{
    if (position.group > log->group && !LEAT_BUG(COMMITTED_GOES_ON)) {
        leat_consumer_group_finish(engine, log->ref, log->group);
        group_next(engine, log);
        return;
    }
    log->position = position;
}

static void log_out_of_range(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                             const struct leat_msg_fetched *row)
{
    if (log->by_position) {
        group_out_of_range(engine, log, row);
        return;
    }
    char text[LEAT_ERROR_TEXT_BYTES];
    uint64_t to = log->next < row->first_offset ? row->first_offset : row->acked_offset;
    snprintf(text, sizeof text,
             "stream %.64s streamlet %u log %u: offset %llu is outside the valid range %llu to "
             "%llu; going on at %llu",
             engine->stream_name, log->ref.streamlet, log->ref.log, (unsigned long long)log->next,
             (unsigned long long)row->first_offset, (unsigned long long)row->acked_offset,
             (unsigned long long)to);
    log->next = to;
    log->acked = row->acked_offset;
    log->acked_known = true;
    leat_consumer_note(engine, LEAT_E_AGAIN, text);
}

/* Nothing is skipped unasked: the reader is told where it can go on. */
static void log_damaged(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                        const struct leat_msg_fetched *row)
{
    char text[2 * LEAT_ERROR_TEXT_BYTES]; /* cut at the end, if at all */
    if (log->by_position) {
        snprintf(
            text, sizeof text,
            "records of segment %llu are missing or damaged (leat stream describe %.40s: which); "
            "give up what can't be read: leat log recover %.64s --streamlet %u --log %u "
            "--accept-loss",
            (unsigned long long)log->position.segment, engine->stream_name, engine->stream_name,
            log->ref.streamlet, log->ref.log);
        log_pause(engine, log, row->code, text);
        return;
    }
    if (row->resume <= log->next) {
        log_pause(engine, log, row->code, NULL);
        return;
    }
    snprintf(
        text, sizeof text,
        "stream %.64s streamlet %u log %u: offsets %llu to %llu are missing or damaged; begin "
        "behind them (--from %llu), or give up what can't be read of them: leat log recover %.64s "
        "--streamlet %u --log %u --accept-loss",
        engine->stream_name, log->ref.streamlet, log->ref.log, (unsigned long long)log->next,
        (unsigned long long)row->resume - 1, (unsigned long long)row->resume, engine->stream_name,
        log->ref.streamlet, log->ref.log);
    leat_consumer_fail(engine, row->code, text);
}

/* A bit flipped on the way. The stored batch is whole, so it is asked for again; not for ever, as a machine with broken
 * memory may damage each answer. */
static void log_garbled(struct leat_consumer_engine *engine, struct leat_consumer_log *log)
{
    static const char text[] = "an answer was damaged on its way: its records are fetched again";
    char sentence[LEAT_ERROR_TEXT_BYTES];
    if (log->attempts < CONSUMER_GARBLED_TRIES) {
        log_pause(engine, log, LEAT_E_AGAIN, text);
        return;
    }
    log_sentence(engine, log, LEAT_E_CORRUPT, "each answer is damaged on its way", sentence);
    leat_consumer_fail(engine, LEAT_E_CORRUPT, sentence);
}

/* Whether a batch continues the log at `next`. SUBTLE: no CRC covers a base offset. A bit that flips there on the way
 * would give records other offsets, or hide records. Offsets jump in truth only where an operator gave records up: the
 * next answer has such a jump, too, and does not have a flipped bit. */
static bool batch_follows(struct leat_consumer_log *log, uint64_t next, bool first,
                          const struct leat_batch *batch)
{
    uint64_t base = batch->base_offset;
    if (log->by_position || base == next) return true;
    if (!first) return false;
    if (base < next) return next - base < batch->record_count;
    bool again = log->jump_from == next && log->jump_to == base;
    log->jump_from = next;
    log->jump_to = base;
    return again;
}

/* How many bytes at the front of a run are batches as the log has stored them. *out_jumped: none, as offsets jump. */
static uint32_t run_walk(struct leat_consumer_log *log, const uint8_t *bytes, uint32_t count,
                         uint64_t *out_next, bool *out_jumped)
{
    uint32_t at = 0;
    *out_next = log->next;
    *out_jumped = false;
    while (at < count) {
        struct leat_batch batch;
        uint64_t length = leat_batch_bytes(bytes + at, count - at);
        if (length == 0 || length > count - at ||
            !leat_batch_crc_is_right(bytes + at, (size_t)length) ||
            leat_batch_view(bytes + at, (size_t)length, &batch))
            break;
        if (!batch_follows(log, *out_next, at == 0, &batch)) {
            *out_jumped = at == 0 && batch.base_offset > *out_next;
            break;
        }
        *out_next = batch.base_offset + batch.record_count;
        at += (uint32_t)length;
    }
    return at;
}

/* The server's text, if any. */
static const char *row_text(struct leat_msg_string text, char out[LEAT_ERROR_TEXT_BYTES])
{
    snprintf(out, LEAT_ERROR_TEXT_BYTES, "%.*s",
             (int)(text.bytes < LEAT_ERROR_TEXT_BYTES ? text.bytes : LEAT_ERROR_TEXT_BYTES - 1),
             text.bytes > 0 ? text.text : "");
    return out;
}

static leat_err row_take(struct leat_consumer_engine *engine, struct leat_consumer_answer *answer,
                         struct leat_consumer_log *log, const struct leat_msg_fetched *row,
                         uint8_t *bytes)
{
    leat_consumer_log_enter(log, CLOG_READY);
    if (row->code == LEAT_E_OFFSET_OUT_OF_RANGE) {
        log_out_of_range(engine, log, row);
        return LEAT_OK;
    }
    if (row->code == LEAT_E_DAMAGED) {
        log_damaged(engine, log, row);
        return LEAT_OK;
    }
    if (row->code) {
        char text[LEAT_ERROR_TEXT_BYTES];
        /* A log that moves is not ready at its old node, then another's: a short state, which is not reported. */
        bool moves =
            leat_err_class(row->code) == LEAT_CLASS_REROUTE || row->code == LEAT_E_STARTING;
        if (moves && log->attempts < CONSUMER_MOVE_TRIES) {
            log_retry(engine, log, row->code);
            return LEAT_OK;
        }
        log_pause(engine, log, row->code, row_text(row->text, text));
        return LEAT_OK;
    }
    uint64_t next = log->next;
    bool jumped = false;
    uint32_t right = run_walk(log, bytes, row->bytes, &next, &jumped);
    /* By position the next place is behind all batches of the answer, so all are taken or none. */
    if (row->bytes && (right == 0 || (log->by_position && right < row->bytes))) {
        if (jumped)
            log_retry(engine, log, LEAT_E_AGAIN);
        else
            log_garbled(engine, log);
        return LEAT_OK;
    }
    log->attempts = 0;
    log->first = row->first_offset;
    log->acked = row->acked_offset;
    log->acked_known = true;
    if (row->bytes) {
        struct leat_consumer_run *run = &answer->runs[answer->run_count++];
        run->answer = answer;
        run->generation = engine->generation;
        run->fetched = (struct leat_fetched){
            .log = log->ref,
            .from_offset = !log->by_position              ? log->next
                           : log->skip_below < log->first ? log->first
                                                          : log->skip_below,
            .end_offset = UINT64_MAX,
            .acked_offset = row->acked_offset,
            .group = log->by_position ? (int64_t)log->group : -1,
            .bytes = bytes,
            .byte_count = right,
        };
        answer->refs++;
        leat_list_push_back(&engine->ready, &run->fetched.link);
        if (next > log->next || log->by_position) log->next = next;
    }
    if (!log->by_position && row->bytes == 0 && row->resume > log->next) log->next = row->resume;
    if (log->by_position && row->by_position) {
        log->position = row->next;
        if (row->next.group > log->group) group_next(engine, log);
    }
    return LEAT_OK;
}

static leat_err fetch_read(struct leat_consumer_lane *lane, const struct leat_frame *frame)
{
    struct leat_consumer_engine *engine = lane->engine;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    uint32_t count = leat_msg_fetched_all_read(&reader);
    if (reader.failed || count != lane->fetch_count) return LEAT_E_INVALID;
    struct leat_consumer_answer *answer =
        leat_consumer_answer_take(engine, lane, frame->payload_bytes, lane->fetch_count);
    if (!answer) return LEAT_E_NO_MEMORY;
    leat_copy_block(answer->bytes, frame->payload, frame->payload_bytes);
    uint32_t at = 0;
    leat_err rc = LEAT_OK;
    for (uint32_t i = 0; i < count && rc == LEAT_OK; i++) {
        struct leat_msg_fetched row;
        leat_msg_fetched_read(&reader, &row);
        if (reader.failed || row.bytes > frame->payload_bytes - at) {
            rc = LEAT_E_INVALID;
            break;
        }
        uint8_t *bytes = row.bytes ? answer->bytes + at : NULL; /* an answer may have none */
        uint32_t log = lane->fetch_logs[i];
        if (log != CONSUMER_LOG_MOVED)
            rc = row_take(engine, answer, &engine->logs[log], &row, bytes);
        at += row.bytes;
    }
    bool any = answer->run_count > 0;
    leat_consumer_answer_unref(engine, answer);
    if (any) engine->events.on_fetched(engine->events.owner);
    return rc;
}

static void fetch_on_done(struct leat_request *request, leat_err rc,
                          const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_consumer_lane *lane = request->owner;
    struct leat_consumer_engine *engine = lane->engine;
    lane->fetching = false;
    if (rc == LEAT_OK)
        lane->usual_us = (lane->usual_us + leat_consumer_now(engine) - request->sent_us) / 2;
    if (engine->failed) return;
    const char *text = error->text;
    if (rc == LEAT_OK) {
        rc = fetch_read(lane, answer);
        text = leat_err_text(rc);
        if (rc == LEAT_E_CORRUPT || rc == LEAT_E_INVALID) {
            leat_consumer_fail(engine, rc, "the server's answer to a fetch could not be read");
            return;
        }
        if (rc == LEAT_OK) return;
    }
    for (uint32_t i = 0; i < lane->fetch_count && !engine->failed; i++) {
        if (lane->fetch_logs[i] == CONSUMER_LOG_MOVED) continue;
        struct leat_consumer_log *log = &engine->logs[lane->fetch_logs[i]];
        if (log->state == CLOG_FETCHING) {
            leat_consumer_log_enter(log, CLOG_READY);
            log_pause(engine, log, rc, text);
        }
    }
}

/* How long a lane may be silent. A fetch of idle logs is answered when its wait is over. If recent answers came much
 * faster, this answer should not take much longer: otherwise a consumer of a busy log would notice half a second late
 * that the node was stopped. */
static uint64_t fetch_patience_us(const struct leat_consumer_lane *lane, uint32_t wait_ms)
{
    uint64_t most = (uint64_t)wait_ms * 1000 + LEAT_CLIENT_SILENT_US;
    uint64_t usual = 4 * lane->usual_us + LEAT_CLIENT_SILENT_US;
    return usual < most ? usual : most;
}

static void fetch_send(struct leat_consumer_lane *lane, const struct leat_client_stream *stream)
{
    struct leat_consumer_engine *engine = lane->engine;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, lane->fetch_control,
                         (size_t)(CONSUMER_FETCH_LOGS_MAX + 1) * CONSUMER_FETCH_LOG_BYTES);
    struct leat_msg_fetch head = {.min_bytes = engine->options.min_bytes,
                                  .max_bytes = engine->options.fetch_bytes,
                                  .wait_ms = engine->options.wait_ms,
                                  .log_count = lane->fetch_count};
    if (LEAT_BUG(PLACE_UNWOKEN) && engine->logs[lane->fetch_logs[0]].by_position)
        head.min_bytes = UINT32_MAX;
    /* Logs for several fetches share the wait of a single fetch. */
    if (lane->ready_count > lane->fetch_count)
        head.wait_ms = (uint32_t)((uint64_t)head.wait_ms * lane->fetch_count / lane->ready_count);
    lane->fetch_from =
        1 + lane->fetch_logs[lane->ready_count > lane->fetch_count ? lane->fetch_count - 1 : 0];
    for (uint32_t i = 0; i < lane->fetch_count; i++)
        if (!engine->logs[lane->fetch_logs[i]].acked_known) head.wait_ms = 0;
    uint64_t now = leat_consumer_now(engine);
    uint64_t retry_ms = lane->retry_at_us > now ? (lane->retry_at_us - now + 999) / 1000 : 0;
    if (retry_ms < head.wait_ms) head.wait_ms = (uint32_t)retry_ms;
    lane->ends_us = now + head.wait_ms * 1000ull;
    leat_msg_fetch_write(&writer, &head);
    for (uint32_t i = 0; i < lane->fetch_count; i++) {
        struct leat_consumer_log *log = &engine->logs[lane->fetch_logs[i]];
        struct leat_msg_fetch_log row = {.log = log->ref,
                                         .epoch = log_where(stream, log)->epoch.v,
                                         .by_position = log->by_position,
                                         .offset = log->next,
                                         .position = log->position};
        leat_msg_fetch_log_write(&writer, &row);
        leat_consumer_log_enter(log, CLOG_FETCHING);
    }
    LEAT_ASSERT(!writer.overflow);
    lane->fetch = (struct leat_request){
        .kind = LEAT_KIND_FETCH,
        .log = engine->logs[lane->fetch_logs[0]].ref,
        .control = lane->fetch_control,
        .control_bytes = writer.used,
        .patience_us = fetch_patience_us(lane, head.wait_ms),
        .on_done = fetch_on_done,
        .owner = lane,
    };
    leat_err rc = leat_client_send(engine->client, &lane->fetch);
    if (rc == LEAT_OK) {
        lane->fetching = true;
        return;
    }
    for (uint32_t i = 0; i < lane->fetch_count && !engine->failed; i++) {
        struct leat_consumer_log *log = &engine->logs[lane->fetch_logs[i]];
        leat_consumer_log_enter(log, CLOG_READY);
        log_pause(engine, log, rc == LEAT_E_UNKNOWN_STREAM ? LEAT_E_NOT_OWNER : rc,
                  leat_client_why(engine->client));
    }
}

/* ---- locate ---- */

static void locate_on_done(struct leat_request *request, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_consumer_lane *lane = request->owner;
    struct leat_consumer_engine *engine = lane->engine;
    lane->locating = false;
    if (engine->failed) return;
    struct leat_msg_reader reader;
    uint32_t count = lane->locate_count;
    if (rc == LEAT_OK) {
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        if (leat_msg_located_all_read(&reader) != count || reader.failed) rc = LEAT_E_INVALID;
    }
    for (uint32_t i = 0; i < count && !engine->failed; i++) {
        struct leat_consumer_log *log = &engine->logs[lane->locate_logs[i]];
        struct leat_msg_located row = {.code = rc};
        if (rc == LEAT_OK) leat_msg_located_read(&reader, &row);
        if (rc == LEAT_OK && reader.failed) row.code = LEAT_E_INVALID;
        leat_consumer_log_enter(log, CLOG_LOCATE);
        if (row.code == LEAT_E_OFFSET_OUT_OF_RANGE && log->by_position &&
            log->locate_what == LEAT_LOCATE_OFFSET) {
            /* The committed offset in the segment group is trimmed: read the rest of the group. */
            leat_consumer_log_enter(log, CLOG_READY);
            continue;
        }
        if (row.code) {
            char text[LEAT_ERROR_TEXT_BYTES];
            log_pause(engine, log, row.code, rc ? error->text : row_text(row.text, text));
            continue;
        }
        leat_consumer_log_enter(log, CLOG_READY);
        log->attempts = 0;
        if (log->by_position && log->locate_what == LEAT_LOCATE_EARLIEST) {
            group_begin_known(engine, log, &row);
            continue;
        }
        log->next = log->begun = row.offset;
        if (log->by_position) group_position_known(engine, log, row.position);
    }
}

static void locate_send(struct leat_consumer_lane *lane)
{
    struct leat_consumer_engine *engine = lane->engine;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, lane->locate_control,
                         (size_t)(CONSUMER_LOCATE_LOGS_MAX + 1) * CONSUMER_FETCH_LOG_BYTES);
    leat_msg_locate_all_write(&writer, &(struct leat_msg_locate_all){lane->locate_count});
    for (uint32_t i = 0; i < lane->locate_count; i++) {
        struct leat_consumer_log *log = &engine->logs[lane->locate_logs[i]];
        struct leat_msg_locate row = {
            .log = log->ref, .what = log->locate_what, .value = log->locate_value};
        leat_msg_locate_write(&writer, &row);
        leat_consumer_log_enter(log, CLOG_LOCATING);
    }
    LEAT_ASSERT(!writer.overflow);
    lane->locate = (struct leat_request){
        .kind = LEAT_KIND_LOCATE,
        .log = engine->logs[lane->locate_logs[0]].ref,
        .control = lane->locate_control,
        .control_bytes = writer.used,
        .on_done = locate_on_done,
        .owner = lane,
    };
    leat_err rc = leat_client_send(engine->client, &lane->locate);
    if (rc == LEAT_OK) {
        lane->locating = true;
        return;
    }
    for (uint32_t i = 0; i < lane->locate_count && !engine->failed; i++) {
        struct leat_consumer_log *log = &engine->logs[lane->locate_logs[i]];
        leat_consumer_log_enter(log, CLOG_LOCATE);
        log_pause(engine, log, rc == LEAT_E_UNKNOWN_STREAM ? LEAT_E_NOT_OWNER : rc,
                  leat_client_why(engine->client));
    }
}

/* ---- the turn ---- */

/* A log whose next owner is known leaves the fetch that is under way at the earlier owner; the fetch goes on for the
 * other logs.
 *
 * SUBTLE: an owner that was declared crashed, and has not heard of that, has no records to come, and answers only when
 * the fetch's time is over. A consumer that heard of the next owner in an answer about another log waited that long. */
static void lane_leave_moved(struct leat_consumer_lane *lane,
                             const struct leat_client_stream *stream)
{
    if (!lane->fetching) return;
    for (uint32_t i = 0; i < lane->fetch_count; i++) {
        if (lane->fetch_logs[i] == CONSUMER_LOG_MOVED) continue;
        struct leat_consumer_log *log = &lane->engine->logs[lane->fetch_logs[i]];
        const struct leat_client_log *where = log_where(stream, log);
        if (!where || (where->owner == lane->owner && where->lane == lane->lane)) continue;
        lane->fetch_logs[i] = CONSUMER_LOG_MOVED;
        leat_consumer_log_enter(log, CLOG_READY);
    }
}

static void lane_note(struct leat_consumer_lane *lane, struct leat_consumer_log *log,
                      uint32_t index)
{
    if (log->state == CLOG_LOCATE && !lane->locating &&
        lane->locate_count < CONSUMER_LOCATE_LOGS_MAX)
        lane->locate_logs[lane->locate_count++] = index;
    if (log->state != CLOG_READY) return;
    if (lane->fetching) {
        lane->behind_count += !log->by_position;
        return;
    }
    if (lane->answers >= lane->engine->options.prefetch) return;
    if (LEAT_BUG(PLACE_ALONE) && log->by_position) {
        if (lane->fetch_count) return;
        lane->fetch_from = 0;
    }
    lane->ready_count++;
    bool before = index < lane->fetch_from;
    uint32_t *count = before ? &lane->before_count : &lane->fetch_count;
    if (*count < CONSUMER_FETCH_LOGS_MAX)
        (before ? lane->before_logs : lane->fetch_logs)[(*count)++] = index;
}

/* The logs from fetch_from on, and then those before: in a fixed order, logs without room at the end (of the logs in
 * a fetch, of the bytes in its answer) would never be read while the first logs are busy. */
static void lane_order(struct leat_consumer_lane *lane)
{
    uint32_t room = CONSUMER_FETCH_LOGS_MAX - lane->fetch_count;
    uint32_t more = lane->before_count < room ? lane->before_count : room;
    for (uint32_t i = 0; i < more; i++)
        lane->fetch_logs[lane->fetch_count++] = lane->before_logs[i];
}

static void logs_note(struct leat_consumer_engine *engine, const struct leat_client_stream *stream,
                      uint64_t now)
{
    for (uint32_t i = 0; i < engine->lane_count; i++) {
        struct leat_consumer_lane *lane = engine->lanes[i];
        if (!lane->fetching) lane->fetch_count = lane->before_count = lane->ready_count = 0;
        if (!lane->locating) lane->locate_count = 0;
        lane->behind_count = 0;
        lane->retry_at_us = UINT64_MAX;
    }
    for (uint32_t i = 0; i < engine->log_count; i++) {
        struct leat_consumer_log *log = &engine->logs[i];
        if (log->state != CLOG_LOCATE && log->state != CLOG_READY) continue;
        if (now < log->retry_at_us) leat_consumer_wake_at(engine, log->retry_at_us);
        const struct leat_client_log *where = log_where(stream, log);
        struct leat_consumer_lane *lane =
            where ? leat_consumer_lane_of(engine, where->owner, where->lane) : NULL;
        if (!lane) continue;
        if (now >= log->retry_at_us)
            lane_note(lane, log, i);
        else if (log->state == CLOG_READY && !log->by_position &&
                 log->retry_at_us < lane->retry_at_us)
            lane->retry_at_us = log->retry_at_us;
    }
}

/* More logs are ready than were left out of the fetch under way, and the fetch would wait on: the consumer forgets the
 * fetch, and sends another one for all logs. Records that the first fetch brings nevertheless are fetched again.
 *
 * SUBTLE: a log that came from another owner, with records to read, waited for the end of the long poll of logs without
 * records. A log that is to be asked again later ends no fetch, because forgotten fetches wait at the owner until their
 * time is over: fetch_send() lets a fetch wait until then at most. Logs that are read by position wait: where a segment
 * group is not there yet, each of these logs is asked again after wait_ms, at a time of its own. */
static bool lane_end_poll(struct leat_consumer_lane *lane, uint64_t now)
{
    struct leat_consumer_engine *engine = lane->engine;
    if (!lane->fetching || lane->ends_us <= now + CONSUMER_POLL_END_US ||
        lane->behind_count <= lane->ready_count - lane->fetch_count)
        return false;
    leat_client_cancel(engine->client, &lane->fetch);
    lane->fetching = false;
    for (uint32_t i = 0; i < lane->fetch_count; i++)
        if (lane->fetch_logs[i] != CONSUMER_LOG_MOVED)
            leat_consumer_log_enter(&engine->logs[lane->fetch_logs[i]], CLOG_READY);
    return true;
}

void leat_consumer_fetch_turn(struct leat_consumer_engine *engine)
{
    if (engine->log_count == 0 || engine->looking) return;
    const struct leat_client_stream *stream =
        leat_client_stream(engine->client, engine->stream_name);
    if (!stream || stream->id != engine->stream_id) return;
    uint64_t now = leat_consumer_now(engine);
    for (uint32_t i = 0; i < engine->lane_count; i++)
        lane_leave_moved(engine->lanes[i], stream);
    logs_note(engine, stream, now);
    bool ended = false;
    for (uint32_t i = 0; i < engine->lane_count; i++)
        ended = lane_end_poll(engine->lanes[i], now) || ended;
    if (ended) logs_note(engine, stream, now);
    for (uint32_t i = 0; i < engine->lane_count && !engine->failed; i++) {
        struct leat_consumer_lane *lane = engine->lanes[i];
        if (lane->locate_count && !lane->locating) locate_send(lane);
        if (!lane->fetching) lane_order(lane);
        if (lane->fetch_count && !lane->fetching) fetch_send(lane, stream);
    }
}
