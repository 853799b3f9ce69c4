/* SPDX-License-Identifier: Apache-2.0 */
/* A log of a producer: sequences, appends under way, and the steps after a failed append.
 *
 * Rules (why they are needed: README, Failure and recovery):
 * - A batch gets its sequence at its first send and keeps log, epoch and sequence through every retry, until it is
 *   certain that no attempt can ever be appended under these.
 * - A sequence number is never given to other records within an epoch. When a sequence is lost for good the log goes
 *   on under the producer's next epoch from 0, so that a late frame of the old epoch, still in some socket's buffer,
 *   is refused by name and not appended a second time.
 * - After a failure nothing is sent before every append under way has come back; then the retry
 *   begins with the oldest batch.
 */
#include "internal.h"

#include "base/assert.h"
#include "base/bug.h"

#include <stdio.h>
#include <string.h>

static struct leat_producer_batch *queue_front(struct leat_producer_log *log)
{
    if (leat_list_empty(&log->queue)) return NULL;
    return LEAT_CONTAINER(log->queue.next, struct leat_producer_batch, link);
}

void leat_producer_log_queue(struct leat_producer_log *log, struct leat_producer_batch *batch)
{
    if (leat_list_empty(&log->queue)) leat_list_push_back(&log->engine->active, &log->link);
    leat_list_push_back(&log->queue, &batch->link);
}

static void queue_remove(struct leat_producer_log *log, struct leat_producer_batch *batch)
{
    leat_list_remove(&batch->link);
    if (batch->sequence >= 0) log->sequenced--;
    if (leat_list_empty(&log->queue)) leat_list_remove(&log->link);
}

static void batch_unsequence(struct leat_producer_log *log, struct leat_producer_batch *batch)
{
    batch->sequence = -1;
    batch->maybe_appended = false;
    log->sequenced--;
}

/* ---- sending ---- */

/* Header, CRC, compression: once, by the engine's thread. */
static void batch_finish(struct leat_producer_log *log, struct leat_producer_batch *batch)
{
    struct leat_producer_engine *engine = log->engine;
    enum leat_codec codec = engine->options.codec;
    if (codec == LEAT_CODEC_NONE || batch->capacity > LEAT_BATCH_BYTES_MAX) {
        batch->byte_count = leat_batch_builder_finish(&batch->builder, LEAT_CODEC_NONE, engine->id,
                                                      log->epoch, batch->sequence);
        batch->finished = true;
        return;
    }
    batch->byte_count = leat_batch_builder_finish(&batch->builder, LEAT_CODEC_NONE, -1, -1, -1);
    uint32_t bytes = 0;
    leat_err rc = leat_batch_compress(batch->bytes, batch->byte_count, codec, 0, engine->scratch,
                                      LEAT_BATCH_BYTES_MAX, &bytes);
    if (rc == LEAT_OK) { /* smaller, else it would be none */
        memcpy(batch->bytes, engine->scratch, bytes);
        batch->byte_count = bytes;
    }
    leat_batch_set_producer(batch->bytes, batch->byte_count, engine->id, log->epoch,
                            batch->sequence);
    batch->finished = true;
}

static void batch_sequence(struct leat_producer_log *log, struct leat_producer_batch *batch)
{
    LEAT_ASSERT(batch->sequence < 0 && !batch->maybe_appended);
    LEAT_ASSERT_CMP(log->sequenced, <, LEAT_BATCHES_IN_FLIGHT_MAX);
    uint32_t records = batch->builder.record_count;
    batch->sequence = log->next_sequence;
    log->sequenced++;
    /* Sequences run from 0 to INT32_MAX and on from 0, as Kafka's do. */
    log->next_sequence = (int32_t)(((uint32_t)log->next_sequence + records) & INT32_MAX);
    if (!batch->finished)
        batch_finish(log, batch);
    else
        leat_batch_set_producer(batch->bytes, batch->byte_count, log->engine->id, log->epoch,
                                batch->sequence);
}

static void append_on_done(struct leat_request *request, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error);

static void append_encode(struct leat_producer_append *append)
{
    struct leat_producer_log *log = append->log;
    struct leat_msg_append message = {.log = log->ref, .batch_count = append->count};
    const struct leat_client_stream *stream =
        leat_client_stream(log->engine->client, log->stream->gathered->name);
    if (stream && stream->id == log->ref.stream) {
        uint64_t at = (uint64_t)log->ref.streamlet * stream->settings.logs + log->ref.log;
        LEAT_ASSERT_CMP(at, <, stream->log_count);
        message.epoch = stream->logs[at].epoch.v;
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, append->control, sizeof append->control);
    leat_msg_append_write(&writer, &message);
    LEAT_ASSERT(!writer.overflow);
    append->request = (struct leat_request){
        .kind = LEAT_KIND_APPEND,
        .log = log->ref,
        .control = append->control,
        .control_bytes = writer.used,
        .payload = append->iovs,
        .payload_count = append->count,
        .on_done = append_on_done,
        .owner = append,
    };
}

static struct leat_producer_append *append_free(struct leat_producer_log *log)
{
    for (uint32_t i = 0; i < LEAT_BATCHES_IN_FLIGHT_MAX; i++)
        if (!log->appends[i].busy) return &log->appends[i];
    return NULL;
}

/* The next batches that are larger than their stream takes are cut into several batches, in their place. Without
 * memory for this, a batch goes as it is, is refused, and is looked at again. */
static void queue_cut(struct leat_producer_log *log)
{
    uint32_t looked = 0;
    if (log->stream->gathered->batch_bytes_max == 0) return;
    LEAT_LIST_EACH(&log->queue, it)
    {
        struct leat_producer_batch *batch = LEAT_CONTAINER(it, struct leat_producer_batch, link);
        if (batch->sequence >= 0) continue;
        if (looked++ == LEAT_BATCHES_IN_FLIGHT_MAX) return;
        if (!leat_producer_batch_too_large(batch)) continue;
        struct leat_list pieces, *piece;
        leat_list_init(&pieces);
        leat_list_remove(it);
        if (leat_producer_batch_cut(log->engine, batch, &pieces) != LEAT_OK)
            leat_list_push_back(&pieces, it);
        while ((piece = leat_list_pop_front(&pieces)))
            leat_list_insert_before(it_next, piece);
    }
}

/* Gather what may go now: at most five batches under way. */
static void append_fill(struct leat_producer_append *append, struct leat_producer_log *log)
{
    uint64_t bytes = 0;
    append->log = log;
    append->count = 0;
    queue_cut(log);
    LEAT_LIST_EACH(&log->queue, link)
    {
        struct leat_producer_batch *batch = LEAT_CONTAINER(link, struct leat_producer_batch, link);
        if (batch->in_flight || batch->acked) continue;
        if (batch->sequence < 0) {
            if (log->sequenced == LEAT_BATCHES_IN_FLIGHT_MAX) break;
            if (append->count && bytes + batch->builder.used > PRODUCER_FRAME_BATCH_BYTES_MAX)
                break;
            batch_sequence(log, batch);
        } else if (append->count && bytes + batch->byte_count > PRODUCER_FRAME_BATCH_BYTES_MAX) {
            break;
        }
        batch->in_flight = true;
        batch->code = LEAT_OK;
        append->iovs[append->count] = (struct leat_iov){batch->bytes, batch->byte_count};
        append->batches[append->count++] = batch;
        bytes += batch->byte_count;
        if (append->count == LEAT_BATCHES_IN_FLIGHT_MAX) break;
    }
}

static void log_fail_attempt(struct leat_producer_log *log, leat_err rc)
{
    log->troubled = true;
    enum leat_err_class class = leat_err_class(rc);
    if (class == LEAT_CLASS_REROUTE || rc == LEAT_E_CLOSED || rc == LEAT_E_TIMEOUT ||
        rc == LEAT_E_UNKNOWN_STREAM || rc == LEAT_E_TOO_LARGE)
        log->stream->wants_lookup = true;
    uint64_t now = leat_producer_now(log->engine);
    log->retry_at_us = now + leat_client_pause_us(log->engine->client, log->attempts++);
}

static bool log_adopt_epoch(struct leat_producer_log *log)
{
    struct leat_producer_engine *engine = log->engine;
    if (engine->epoch == log->epoch) {
        leat_producer_id_ask(engine);
        return false;
    }
    LEAT_ASSERT(log->requests_out == 0 && log->sequenced == 0);
    log->epoch = engine->epoch;
    log->next_sequence = 0;
    log->needs_epoch = false;
    return true;
}

/* May a frame go out? While a frame is under way the next frame waits for its answer, unless the next frame would
 * fill the window. So batches go five to a frame when there are many, and at once when there are few (a frame of five
 * costs the server one wake-up instead of five). */
static bool log_may_send(struct leat_producer_log *log)
{
    struct leat_producer_engine *engine = log->engine;
    if (log->troubled || leat_list_empty(&log->queue)) return false;
    if (log->needs_epoch && !log_adopt_epoch(log)) return false;
    if (engine->id < 0) {
        leat_producer_id_ask(engine);
        return false;
    }
    if (log->requests_out == 0) return true;
    uint32_t room = LEAT_BATCHES_IN_FLIGHT_MAX - log->sequenced, ready = 0;
    if (room == 0) return false;
    LEAT_LIST_EACH(&log->queue, link)
    {
        if (LEAT_CONTAINER(link, struct leat_producer_batch, link)->sequence < 0 && ++ready == room)
            return true;
    }
    return false;
}

bool leat_producer_log_has_enough(const struct leat_producer_log *log)
{
    uint32_t count = 0;
    const struct leat_list *at = log->queue.next;
    while (at != &log->queue && count < log->sequenced + LEAT_BATCHES_IN_FLIGHT_MAX) {
        at = at->next;
        count++;
    }
    return count == log->sequenced + LEAT_BATCHES_IN_FLIGHT_MAX;
}

static void log_recover(struct leat_producer_log *log);

void leat_producer_log_pump(struct leat_producer_log *log)
{
    struct leat_producer_engine *engine = log->engine;
    if (log->troubled && log->requests_out == 0 && leat_producer_now(engine) >= log->retry_at_us)
        log_recover(log);
    while (log_may_send(log)) {
        struct leat_producer_append *append = append_free(log);
        if (!append) return;
        append_fill(append, log);
        if (append->count == 0) return;
        append_encode(append);
        leat_err rc = leat_client_send(engine->client, &append->request);
        if (rc) {
            for (uint32_t i = 0; i < append->count; i++)
                append->batches[i]->in_flight = false;
            leat_producer_trouble(engine, rc, leat_client_why(engine->client));
            log_fail_attempt(log, rc == LEAT_E_UNKNOWN_STREAM ? LEAT_E_NOT_OWNER : rc);
            return;
        }
        append->busy = true;
        log->requests_out++;
        engine->requests_out++;
        engine->stats.appends_sent++;
        if (log->attempts) engine->stats.retries++;
    }
}

/* ---- answers ---- */

static void batch_answered(struct leat_producer_log *log, struct leat_producer_batch *batch,
                           leat_err code, uint64_t offset, bool sent)
{
    batch->in_flight = false;
    batch->code = code;
    if (code == LEAT_OK || code == LEAT_E_ALREADY_APPENDED) {
        batch->acked = true;
        batch->offset = code == LEAT_OK ? offset : UINT64_MAX;
        log->attempts = 0;
        return;
    }
    /* Only a refusal that names the request is definite. The other classes are possible after an append that took
     * effect and whose answer was lost. */
    enum leat_err_class class = leat_err_class(code);
    if (sent && (class == LEAT_CLASS_RETRY || class == LEAT_CLASS_FATAL))
        batch->maybe_appended = true;
    if (!log->troubled) log_fail_attempt(log, code);
}

/* [[code, first]..., text?] */
static leat_err answer_read(struct leat_producer_append *append, const struct leat_frame *answer,
                            char text[LEAT_ERROR_TEXT_BYTES])
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    uint32_t elements = leat_msg_appended_all_read(&reader);
    if (reader.failed || elements < append->count) return LEAT_E_INVALID;
    struct leat_msg_appended rows[LEAT_BATCHES_IN_FLIGHT_MAX];
    for (uint32_t i = 0; i < append->count; i++)
        leat_msg_appended_read(&reader, &rows[i]);
    if (elements > append->count) {
        struct leat_msg_string sentence = leat_msg_read_string(&reader);
        if (!reader.failed)
            snprintf(text, LEAT_ERROR_TEXT_BYTES, "%.*s", (int)sentence.bytes, sentence.text);
    }
    if (reader.failed) return LEAT_E_INVALID;
    leat_err first = LEAT_OK;
    for (uint32_t i = 0; i < append->count; i++) {
        batch_answered(append->log, append->batches[i], rows[i].code, rows[i].first_offset, true);
        if (!append->batches[i]->acked && first == LEAT_OK) first = rows[i].code;
    }
    if (first) {
        if (!text[0]) snprintf(text, LEAT_ERROR_TEXT_BYTES, "%s", leat_err_text(first));
        leat_producer_trouble(append->log->engine, first, text);
    }
    return LEAT_OK;
}

/* Tell the fate of what is acked at the front, in order. */
static void log_release(struct leat_producer_log *log)
{
    struct leat_producer_batch *batch;
    while ((batch = queue_front(log)) && batch->acked) {
        queue_remove(log, batch);
        leat_producer_batch_done(log->engine, batch, log->ref, LEAT_OK, "");
    }
}

static void append_on_done(struct leat_request *request, leat_err rc,
                           const struct leat_frame *answer, const struct leat_error *error)
{
    struct leat_producer_append *append = request->owner;
    struct leat_producer_log *log = append->log;
    struct leat_producer_engine *engine = log->engine;
    append->busy = false;
    log->requests_out--;
    engine->requests_out--;
    leat_producer_event(engine);
    char text[LEAT_ERROR_TEXT_BYTES] = "";
    bool unreadable = false;
    if (rc == LEAT_OK) {
        rc = answer_read(append, answer, text);
        unreadable = rc != LEAT_OK;
        if (rc == LEAT_OK) {
            log_release(log);
            return;
        }
    }
    /* An answer that can't be read says nothing: unknown, like a lost one. */
    leat_err code = unreadable ? LEAT_E_TIMEOUT : rc;
    for (uint32_t i = 0; i < append->count; i++)
        batch_answered(log, append->batches[i], code, 0, request->sent);
    leat_producer_trouble(engine, rc,
                          unreadable ? "the server's answer could not be read" : error->text);
    log_release(log);
}

void leat_producer_log_withdraw(struct leat_producer_log *log)
{
    for (uint32_t i = 0; i < LEAT_BATCHES_IN_FLIGHT_MAX; i++) {
        struct leat_producer_append *append = &log->appends[i];
        if (!append->busy || !leat_client_withdraw(log->engine->client, &append->request)) continue;
        append->busy = false;
        log->requests_out--;
        log->engine->requests_out--;
    }
}

/* ---- trouble ---- */

/* A refusal is about its own attempt. If an earlier attempt may have been appended, a refusal does not prove that the
 * records are not in the log, and no code may be reported that says so. */
static void batch_failed(struct leat_producer_log *log, struct leat_producer_batch *batch,
                         leat_err code, const char *text)
{
    static const char unknown[] = "whether it was appended is unknown: ";
    char whole[sizeof unknown + LEAT_ERROR_TEXT_BYTES];
    enum leat_err_class class = leat_err_class(code);
    if (batch->maybe_appended && class != LEAT_CLASS_FATAL) {
        snprintf(whole, sizeof whole, "%s%s", unknown, text);
        text = whole;
        if (class == LEAT_CLASS_REJECT && !LEAT_BUG(REFUSAL_PROMISES)) code = LEAT_E_TIMEOUT;
    }
    leat_producer_batch_done(log->engine, batch, log->ref, code, text);
}

/* Nothing of this epoch goes on: sequenced batches are either known not to be in the log, and get
 * new sequences, or their fate can never be known, and they fail.
 * hole: an earlier sequence of this epoch is certainly not in the log, hence neither is any later sequence, now or
 * ever. cause: why the epoch is left. A cause of class fatal is also the error of the failing batches, whatever the
 * error of their last attempt (mostly of class retry): this cause is why no batch is retried. */
static void log_leave_epoch(struct leat_producer_log *log, bool hole, leat_err cause,
                            const char *text)
{
    LEAT_ASSERT(log->requests_out == 0);
    struct leat_producer_engine *engine = log->engine;
    LEAT_LIST_EACH(&log->queue, link)
    {
        struct leat_producer_batch *batch = LEAT_CONTAINER(link, struct leat_producer_batch, link);
        if (batch->sequence < 0) break;
        if (batch->acked) {
            queue_remove(log, batch);
            leat_producer_batch_done(engine, batch, log->ref, LEAT_OK, "");
        } else if (batch->reported || (batch->maybe_appended && !hole)) {
            leat_err code = batch->code ? batch->code : LEAT_E_TIMEOUT;
            if (leat_err_class(cause) == LEAT_CLASS_FATAL) code = cause;
            queue_remove(log, batch);
            batch_failed(log, batch, code, text);
        } else {
            batch_unsequence(log, batch);
            hole = true;
        }
    }
    log->needs_epoch = true;
    LEAT_ASSERT(log->sequenced == 0);
}

static bool all_sequenced_reported(struct leat_producer_log *log)
{
    LEAT_LIST_EACH(&log->queue, link)
    {
        struct leat_producer_batch *batch = LEAT_CONTAINER(link, struct leat_producer_batch, link);
        if (batch->sequence < 0) break;
        if (!batch->reported) return false;
    }
    return log->sequenced > 0;
}

/* Everything under way has come back and the pause is over: think over what the oldest unacked
 * batch was told. */
static void log_recover(struct leat_producer_log *log)
{
    struct leat_producer_engine *engine = log->engine;
    if (log->stream->wants_lookup) leat_producer_stream_lookup(log->stream);
    if (log->stream->state != STREAM_KNOWN) return; /* comes back when it is */
    log->troubled = false;
    struct leat_producer_batch *head = queue_front(log);
    if (!head || head->sequence < 0) return;
    LEAT_ASSERT(!head->acked);
    leat_err code = head->code;
    char text[LEAT_ERROR_TEXT_BYTES];
    /* The last trouble may be another log's, or a later one. */
    bool own = engine->stats.last_error == code;
    snprintf(text, sizeof text, "%s", own ? engine->stats.last_text : leat_err_text(code));
    if (code == LEAT_E_SEQUENCE_GAP || code == LEAT_E_UNKNOWN_PRODUCER ||
        code == LEAT_E_PRODUCER_FENCED) {
        /* The log does not know what this batch would follow. If an earlier attempt may have been
         * appended, sending it again under another epoch could append it twice. */
        log_leave_epoch(log, !head->maybe_appended, code, text);
        return;
    }
    if (code == LEAT_E_TOO_LARGE && !head->maybe_appended && leat_producer_batch_too_large(head)) {
        /* The stream's batch limit has become lower, as the lookup has reported: the batch is cut before it is sent. */
        log_leave_epoch(log, true, code, "");
        return;
    }
    enum leat_err_class class = leat_err_class(code);
    if (class != LEAT_CLASS_REJECT && class != LEAT_CLASS_FATAL) return; /* same bytes again */
    /* The bytes are right here, so they were damaged on their way: likewise, until the time limit. */
    if (code == LEAT_E_CORRUPT && leat_batch_crc_is_right(head->bytes, head->byte_count)) return;
    bool hole = class == LEAT_CLASS_REJECT && !head->maybe_appended;
    bool gone = code == LEAT_E_UNKNOWN_STREAM || code == LEAT_E_UNKNOWN_LOG;
    queue_remove(log, head);
    batch_failed(log, head, code, text);
    log_leave_epoch(log, hole, code, text);
    if (gone) leat_producer_stream_lost(log->stream);
}

/* Batches whose time is over are reported. A batch that was never sent is simply removed. A batch with a sequence
 * stays and is retried, because later batches need its sequence; when all batches with sequences are reported they
 * are dropped together and the epoch is left. */
void leat_producer_log_expire(struct leat_producer_log *log, uint64_t now_us)
{
    struct leat_producer_engine *engine = log->engine;
    char text[LEAT_ERROR_TEXT_BYTES + 128];
    LEAT_LIST_EACH(&log->queue, link)
    {
        struct leat_producer_batch *batch = LEAT_CONTAINER(link, struct leat_producer_batch, link);
        if (now_us < batch->opened_us + engine->options.timeout_us) break; /* later ones too */
        if (batch->acked || batch->reported) continue;
        bool unknown = batch->sequence >= 0;
        snprintf(text, sizeof text, "%s within %llu ms%s%s",
                 unknown ? "not acked" : "could not be sent",
                 (unsigned long long)(engine->options.timeout_us / 1000),
                 engine->stats.last_text[0] ? ": " : "", engine->stats.last_text);
        if (unknown) {
            leat_producer_batch_report(engine, batch, log->ref, LEAT_E_TIMEOUT, text);
        } else {
            queue_remove(log, batch);
            leat_producer_batch_done(engine, batch, log->ref, LEAT_E_TIMEOUT, text);
        }
    }
    if (log->requests_out == 0 && all_sequenced_reported(log))
        log_leave_epoch(log, false, LEAT_E_TIMEOUT, "");
}
