/* SPDX-License-Identifier: Apache-2.0 */
/* What has to be there when everything has healed and verifiers have read all: see check.h for the names of the
 * violations. */
#include <stdio.h>

#include "tests/sim/check_model.h"

static void order_check(struct check *check, struct leat_log_ref ref, const struct log_model *log)
{
    int64_t last[CHECK_PRODUCERS_MAX];
    for (unsigned i = 0; i < CHECK_PRODUCERS_MAX; i++)
        last[i] = -1;
    for (size_t at = 0; at < log->page_count * PAGE_SLOTS; at++) {
        const struct page *page = log->pages[at / PAGE_SLOTS];
        const struct slot *slot = &page->slots[at % PAGE_SLOTS];
        uint64_t i = page->base + at % PAGE_SLOTS;
        if (!slot->known) continue;
        /* What went with an accepted loss is no longer there to be before anything. */
        if (log->excused && !slot->audited) continue;
        if ((int64_t)slot->value.number <= last[slot->value.producer]) {
            model_violation(
                check, "A8 nonmonotonic-send: %u/%u/%u offset %llu holds %u:%u after %u:%lld",
                ref.stream, ref.streamlet, ref.log, (unsigned long long)i, slot->value.producer,
                slot->value.number, slot->value.producer, (long long)last[slot->value.producer]);
            return;
        }
        last[slot->value.producer] = (int64_t)slot->value.number;
    }
}

/* The lowest offset that retention must have left: the bytes from there on are too few to let it go.
 * What nobody saw may have been large. What segments hold besides batches is less than as much. */
static uint64_t retained_floor(const struct log_model *log, uint64_t keeps_bytes)
{
    enum { ENTRY_AND_TRAILER_BYTES = 64 };
    uint64_t bytes = 0, floor = log->count;
    for (uint64_t at = log->count; at > 0 && model_slot(log, at - 1)->sized; at--) {
        uint32_t batch_bytes = model_slot(log, at - 1)->bytes;
        if (batch_bytes == 0) continue;
        bytes += 2 * ((uint64_t)batch_bytes + ENTRY_AND_TRAILER_BYTES);
        if (bytes > keeps_bytes) break;
        floor = at - 1;
    }
    return floor;
}

/* Where a verifier found that the log begins; count: it found nothing. */
static uint64_t first_audited(const struct log_model *log)
{
    for (size_t i = 0; i < log->page_count; i++)
        for (unsigned j = 0; j < PAGE_SLOTS; j++)
            if (log->pages[i]->slots[j].audited) return log->pages[i]->base + j;
    return log->count;
}

/* The first offset, in a log whose loss was accepted, that a verifier found after that, and that this verifier has not
 * found: what was left stays. count: none. */
static uint64_t first_vanished(const struct log_model *log, const struct stream_model *stream)
{
    for (size_t i = 0; !stream->trims && i < log->page_count * PAGE_SLOTS; i++) {
        const struct slot *slot = &log->pages[i / PAGE_SLOTS]->slots[i % PAGE_SLOTS];
        uint64_t offset = log->pages[i / PAGE_SLOTS]->base + i % PAGE_SLOTS;
        if (slot->shown && !slot->audited && !model_may_be_trimmed(log, offset)) return offset;
    }
    return log->count;
}

/* The first offset that has to be there and was not audited; count: none is missing. last: one
 * past the last audited. */
static uint64_t first_missing(const struct log_model *log, const struct stream_model *stream,
                              uint64_t *out_last)
{
    uint64_t first = 0, last = log->count;
    if (last > log->given_from && last <= log->given_to) last = log->given_from;
    while (last > 0 && !model_slot(log, last - 1)->audited)
        last--;
    *out_last = last;
    if (stream->trims) { /* what went while the verifier read, went from the front */
        for (first = last; first > 0 && model_slot(log, first - 1)->audited; first--)
            continue;
        uint64_t floor = retained_floor(log, stream->keeps_bytes);
        if (last == 0) first = log->count; /* nothing is left: all was given up, or it is lost */
        floor = model_trimmed_at_most(log, floor, first);
        if (floor < first) first = floor;
    } else {
        first = model_trimmed_at_most(log, first, first_audited(log));
    }
    for (uint64_t i = first; i < log->count; i++) {
        const struct slot *slot = model_slot(log, i);
        if (model_is_given_up(log, i, i + 1)) {
            i = log->given_to - 1;
            continue;
        }
        if (!slot->audited && ((slot->known && (slot->acked || slot->seen)) || i < last)) return i;
    }
    return log->count;
}

/* The same by the rule of the log: what an accepted loss left stays, and of another log all. */
static uint64_t first_gone(const struct log_model *log, const struct stream_model *stream,
                           uint64_t *out_last)
{
    return log->excused ? first_vanished(log, stream) : first_missing(log, stream, out_last);
}

static void log_final(struct check *check, struct leat_log_ref ref, const struct log_model *log,
                      const struct stream_model *stream)
{
    order_check(check, ref, log);
    uint64_t last, at = first_gone(log, stream, &last);
    if (at == log->count) return;
    const struct slot *slot = model_slot(log, at);
    if (log->excused)
        model_violation(check, "vanished: %u/%u/%u offset %llu was left when its loss was accepted",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)at);
    else if (slot->known && slot->acked)
        model_violation(check, "%s: %u/%u/%u offset %llu (%u:%u) was acked and is gone",
                        at < last ? "A1 lost-write" : "A2 unseen", ref.stream, ref.streamlet,
                        ref.log, (unsigned long long)at, slot->value.producer, slot->value.number);
    else if (slot->known && slot->seen)
        model_violation(check, "vanished: %u/%u/%u offset %llu (%u:%u) was read and is gone",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)at,
                        slot->value.producer, slot->value.number);
    else
        model_violation(check, "A6 poll-skip: %u/%u/%u has nothing at offset %llu of %llu",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)at,
                        (unsigned long long)last);
}

bool check_log_whole(const struct check *check, struct leat_log_ref ref,
                     char out_missing[CHECK_BEHIND_BYTES])
{
    const struct stream_model *stream = &check->streams[ref.stream];
    const struct log_model *log = &stream->at[ref.streamlet][ref.log];
    uint64_t last, at = first_missing(log, stream, &last);
    if (log->excused || at == log->count) return true;
    snprintf(out_missing, CHECK_BEHIND_BYTES, "offset %llu of %llu", (unsigned long long)at,
             (unsigned long long)log->count);
    return false;
}

bool check_stream_whole(const struct check *check, uint32_t stream_index)
{
    const struct stream_model *stream = &check->streams[stream_index];
    for (uint32_t s = 0; s < stream->streamlets; s++)
        for (uint32_t q = 0; q < stream->logs; q++) {
            uint64_t last;
            if (first_gone(&stream->at[s][q], stream, &last) < stream->at[s][q].count) return false;
        }
    return true;
}

/* What is gone by a request that nobody had an answer to does not come back either. */
static void begin_note(struct log_model *log)
{
    uint64_t begin = first_audited(log);
    if (begin < log->count && begin > log->trim_low) log->trim_low = begin;
}

void check_final(struct check *check, uint32_t stream)
{
    struct stream_model *model = &check->streams[stream];
    for (uint32_t s = 0; s < model->streamlets; s++)
        for (uint32_t q = 0; q < model->logs; q++) {
            struct log_model *log = &model->at[s][q];
            log_final(check, (struct leat_log_ref){stream, s, q}, log, model);
            if (!model->trims && !log->excused) begin_note(log);
        }
}

/* One past the last offset that a verifier has to find: nobody may have had an answer for what was read. */
static uint64_t owed_end(const struct log_model *log)
{
    uint64_t end = log->count;
    while (end > log->acked_end) {
        const struct slot *slot = model_slot(log, end - 1);
        if (slot->known && slot->seen) break;
        end--;
    }
    return end;
}

bool check_audit_done(const struct check *check, uint32_t stream_index,
                      char out_behind[CHECK_BEHIND_BYTES])
{
    const struct stream_model *stream = &check->streams[stream_index];
    for (unsigned s = 0; stream->used && s < stream->streamlets; s++) {
        for (unsigned q = 0; q < stream->logs; q++) {
            const struct log_model *log = &stream->at[s][q];
            uint64_t end;
            bool there;
            if (log->excused) {
                end = first_vanished(log, stream) + 1;
                there = end > log->count;
            } else {
                end = owed_end(log);
                there = end == 0 || model_slot(log, end - 1)->audited;
            }
            if (there) continue;
            snprintf(out_behind, CHECK_BEHIND_BYTES, "log %u/%u/%u not read to %llu", stream_index,
                     s, q, (unsigned long long)end);
            return false;
        }
    }
    return true;
}

void check_audit_begin(struct check *check)
{
    for (unsigned i = 0; i < CHECK_STREAMS_MAX; i++) {
        struct stream_model *stream = &check->streams[i];
        for (unsigned s = 0; stream->used && s < stream->streamlets; s++)
            for (unsigned q = 0; q < stream->logs; q++)
                for (size_t j = 0; j < stream->at[s][q].page_count * PAGE_SLOTS; j++) {
                    struct slot *slot =
                        &stream->at[s][q].pages[j / PAGE_SLOTS]->slots[j % PAGE_SLOTS];
                    slot->shown |= slot->audited;
                    slot->audited = false;
                }
    }
}

bool check_reader_done(const struct check *check, const struct check_reader *reader,
                       uint32_t stream_index, char out_behind[CHECK_BEHIND_BYTES])
{
    const struct stream_model *stream = &check->streams[stream_index];
    for (unsigned s = 0; s < stream->streamlets; s++) {
        for (unsigned q = 0; q < stream->logs; q++) {
            const struct log_model *log = &stream->at[s][q];
            uint64_t last = log->acked_end;
            uint64_t got = reader->in_group                      ? log->high[reader->group]
                           : reader->started[stream_index][s][q] ? reader->next[stream_index][s][q]
                                                                 : 0;
            if (got >= last || log->excused || model_may_be_trimmed(log, last - 1)) continue;
            snprintf(out_behind, CHECK_BEHIND_BYTES, "log %u/%u/%u read to %llu of %llu",
                     stream_index, s, q, (unsigned long long)got, (unsigned long long)last);
            return false;
        }
    }
    return true;
}
