/* SPDX-License-Identifier: Apache-2.0 */
/* The model that a history is checked against, and what is checked as it grows; check_end.c: at the end. See check.h
 * for the names of the violations. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/check_model.h"

void model_violation(struct check *check, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    check->fail(check->ctx, text);
}

struct check *check_create(void (*fail)(void *ctx, const char *text), void *ctx)
{
    struct check *check = calloc(1, sizeof *check);
    LEAT_ASSERT(check != NULL);
    check->fail = fail;
    check->ctx = ctx;
    return check;
}

static void pages_free(struct log_model *log)
{
    for (size_t i = 0; i < log->page_count; i++)
        free(log->pages[i]);
    free(log->pages);
}

void check_destroy(struct check **check_at)
{
    struct check *check = *check_at;
    if (!check) return;
    for (unsigned i = 0; i < CHECK_STREAMS_MAX; i++) {
        struct stream_model *stream = &check->streams[i];
        for (unsigned j = 0; j < CHECK_PRODUCERS_MAX; j++)
            free(stream->producers[j].records);
        for (unsigned s = 0; s < CHECK_STREAMLETS_MAX; s++)
            for (unsigned q = 0; q < CHECK_LOGS_MAX; q++)
                pages_free(&stream->at[s][q]);
    }
    free(check);
    *check_at = NULL;
}

void check_stream_add(struct check *check, uint32_t stream, uint32_t streamlets, uint32_t logs,
                      enum leat_durability durability, bool trims, uint64_t keeps_bytes)
{
    LEAT_ASSERT(stream < CHECK_STREAMS_MAX);
    LEAT_ASSERT(streamlets <= CHECK_STREAMLETS_MAX && logs <= CHECK_LOGS_MAX);
    struct stream_model *model = &check->streams[stream];
    model->used = true;
    model->trims = trims;
    model->keeps_bytes = keeps_bytes;
    model->streamlets = streamlets;
    model->logs = logs;
    model->durability = durability;
}

static struct log_model *log_of(struct check *check, struct leat_log_ref ref)
{
    LEAT_ASSERT(ref.stream < CHECK_STREAMS_MAX && check->streams[ref.stream].used);
    LEAT_ASSERT(ref.streamlet < check->streams[ref.stream].streamlets);
    LEAT_ASSERT(ref.log < check->streams[ref.stream].logs);
    return &check->streams[ref.stream].at[ref.streamlet][ref.log];
}

static struct record *record_find(const struct check *check, uint32_t stream,
                                  struct check_value value)
{
    if (value.producer >= CHECK_PRODUCERS_MAX) return NULL;
    const struct producer_model *producer = &check->streams[stream].producers[value.producer];
    return value.number < producer->count ? &producer->records[value.number] : NULL;
}

/* Where the page of an offset is, or would be inserted. */
static size_t page_search(const struct log_model *log, uint64_t base)
{
    size_t low = 0, high = log->page_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (log->pages[middle]->base < base)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct slot *model_slot(const struct log_model *log, uint64_t offset)
{
    static const struct slot nothing;
    size_t at = page_search(log, offset - offset % PAGE_SLOTS);
    if (at == log->page_count || log->pages[at]->base != offset - offset % PAGE_SLOTS)
        return &nothing;
    return &log->pages[at]->slots[offset % PAGE_SLOTS];
}

static struct slot *slot_of(struct log_model *log, uint64_t offset)
{
    uint64_t base = offset - offset % PAGE_SLOTS;
    size_t at = page_search(log, base);
    if (at == log->page_count || log->pages[at]->base != base) {
        log->pages = realloc(log->pages, (log->page_count + 1) * sizeof *log->pages);
        LEAT_ASSERT(log->pages != NULL);
        memmove(log->pages + at + 1, log->pages + at, (log->page_count - at) * sizeof *log->pages);
        log->pages[at] = calloc(1, sizeof **log->pages);
        LEAT_ASSERT(log->pages[at] != NULL);
        log->pages[at]->base = base;
        log->page_count++;
    }
    if (offset >= log->count) log->count = offset + 1;
    return &log->pages[at]->slots[offset % PAGE_SLOTS];
}

void check_sent(struct check *check, uint32_t stream, struct check_value value)
{
    LEAT_ASSERT(value.producer < CHECK_PRODUCERS_MAX);
    struct producer_model *producer = &check->streams[stream].producers[value.producer];
    LEAT_ASSERT(value.number == producer->count);
    if (producer->count == producer->capacity) {
        producer->capacity = producer->capacity ? 2 * producer->capacity : 256;
        producer->records =
            realloc(producer->records, producer->capacity * sizeof *producer->records);
        LEAT_ASSERT(producer->records != NULL);
    }
    producer->records[producer->count++] = (struct record){.disposition = CHECK_OPEN};
    check->open++;
}

/* Far beyond what any workload writes: an offset that lies. */
static const uint64_t offset_max = 1ull << 56;

/* A record that went with the power from a log of level memory may be sent and appended again, where the producer had
 * no answer yet. A reader may see the lost record later than that: the record lay in the reader's connection. If the
 * lost record is there still, the verifiers find it after the record that came again. */
static bool forgotten(struct check *check, uint32_t stream, const struct record *record)
{
    struct log_model *log =
        log_of(check, (struct leat_log_ref){stream, record->streamlet, record->log});
    if (!log->at_risk) return false;
    if (record->waits >= log->waits && record->offset >= log->jumped) return false;
    slot_of(log, record->offset)->known = false;
    return true;
}

/* The value stands at that offset: says an ack, or a consumer's own eyes. */
static struct slot *place(struct check *check, struct leat_log_ref ref, struct check_value value,
                          uint64_t offset, struct record *record, const char *who)
{
    if (offset > offset_max) {
        model_violation(check, "A4 inconsistent-offsets: %s at offset %llu", who,
                        (unsigned long long)offset);
        return NULL;
    }
    struct slot *slot = slot_of(log_of(check, ref), offset);
    if (slot->known &&
        (slot->value.producer != value.producer || slot->value.number != value.number)) {
        model_violation(
            check,
            "A4 inconsistent-offsets: stream %u streamlet %u log %u offset %llu is %u:%u, "
            "%s says %u:%u",
            ref.stream, ref.streamlet, ref.log, (unsigned long long)offset, slot->value.producer,
            slot->value.number, who, value.producer, value.number);
        return NULL;
    }
    if (record->placed &&
        (record->offset != offset || record->streamlet != ref.streamlet ||
         record->log != ref.log) &&
        !forgotten(check, ref.stream, record)) {
        model_violation(
            check,
            "A3 duplicate: stream %u value %u:%u at streamlet %u log %u offset %llu and at "
            "%u/%u/%llu (%s)",
            ref.stream, value.producer, value.number, record->streamlet, record->log,
            (unsigned long long)record->offset, ref.streamlet, ref.log, (unsigned long long)offset,
            who);
        return NULL;
    }
    slot->known = record->placed = true;
    slot->value = value;
    record->streamlet = ref.streamlet;
    record->log = ref.log;
    record->offset = offset;
    record->waits = log_of(check, ref)->waits;
    return slot;
}

void check_acked(struct check *check, struct leat_log_ref ref, struct check_value value,
                 uint64_t offset)
{
    struct record *record = record_find(check, ref.stream, value);
    LEAT_ASSERT(record != NULL);
    if (record->disposition == CHECK_REFUSED) {
        model_violation(check,
                        "A5 aborted-read: stream %u value %u:%u was refused and is acked later",
                        ref.stream, value.producer, value.number);
        return;
    }
    if (record->disposition == CHECK_OPEN) check->open--;
    if (record->disposition != CHECK_ACKED) check->acked++;
    record->disposition = CHECK_ACKED;
    struct slot *slot = place(check, ref, value, offset, record, "the ack");
    if (!slot) return;
    slot->acked = true;
    struct log_model *log = log_of(check, ref);
    if (offset >= log->acked_end) log->acked_end = offset + 1;
}

void check_failed(struct check *check, uint32_t stream, struct check_value value, bool definite)
{
    struct record *record = record_find(check, stream, value);
    LEAT_ASSERT(record != NULL);
    if (record->disposition == CHECK_OPEN) check->open--;
    if (record->disposition == CHECK_ACKED) return; /* a resend of the raw producer */
    if (!definite) {
        if (record->disposition == CHECK_OPEN) record->disposition = CHECK_UNKNOWN;
        return;
    }
    if (record->placed && !forgotten(check, stream, record))
        model_violation(check, "A5 aborted-read: stream %u value %u:%u was read and then refused",
                        stream, value.producer, value.number);
    record->disposition = CHECK_REFUSED;
}

enum check_disposition check_disposition_of(const struct check *check, uint32_t stream,
                                            struct check_value value)
{
    const struct record *record = record_find(check, stream, value);
    return record ? record->disposition : CHECK_NOT_SENT;
}

void check_reader_reset(const struct check *check, struct check_reader *reader)
{
    memset(reader->started, 0, sizeof reader->started);
    for (unsigned i = 0; (reader->in_group || reader->verifier) && i < CHECK_STREAMS_MAX; i++)
        for (unsigned s = 0; s < CHECK_STREAMLETS_MAX; s++)
            for (unsigned q = 0; q < CHECK_LOGS_MAX; q++) {
                const struct log_model *log = &check->streams[i].at[s][q];
                reader->floor[i][s][q] =
                    reader->in_group ? log->committed[reader->group] : log->trim_low;
            }
}

/* ---- what is given up by request ---- */

bool model_may_be_trimmed(const struct log_model *log, uint64_t offset)
{
    return offset < log->trim_high || log->trims_to_end > 0;
}

void check_trim_asked(struct check *check, struct leat_log_ref ref, uint64_t before)
{
    struct log_model *log = log_of(check, ref);
    log->trim_asked = true;
    if (before == UINT64_MAX)
        log->trims_to_end++;
    else if (before > log->trim_high)
        log->trim_high = before;
}

void check_trimmed(struct check *check, struct leat_log_ref ref, uint64_t before,
                   uint64_t first_offset)
{
    struct log_model *log = log_of(check, ref);
    bool to_end = before == UINT64_MAX;
    if (!to_end && first_offset < before)
        model_violation(check, "untrimmed: %u/%u/%u begins at %llu, and is told to begin at %llu",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)first_offset,
                        (unsigned long long)before);
    uint64_t low = to_end ? first_offset : before;
    if (to_end && log->trims_to_end > 0) log->trims_to_end--;
    if (low > log->trim_high) log->trim_high = low;
    if (low > log->trim_low) log->trim_low = low;
}

uint64_t check_trimmed_to(const struct check *check, struct leat_log_ref ref)
{
    return check->streams[ref.stream].at[ref.streamlet][ref.log].trim_low;
}

void check_told_to_begin(struct check *check, struct leat_log_ref ref, uint64_t first_offset,
                         uint64_t trimmed_to)
{
    const struct log_model *log = log_of(check, ref);
    if (first_offset < trimmed_to && !log->at_risk && !log->excused)
        model_violation(check,
                        "untrimmed: %u/%u/%u is told to begin at %llu, and was given up to %llu",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)first_offset,
                        (unsigned long long)trimmed_to);
}

/* From where on everything has to be there, when it has from `from` on without requests, and nothing was
 * found before `found`. */
uint64_t model_trimmed_at_most(const struct log_model *log, uint64_t from, uint64_t found)
{
    uint64_t high = log->trims_to_end > 0 || log->trim_high > found ? found : log->trim_high;
    return high > from ? high : from;
}

bool check_may_be_trimmed(const struct check *check, struct leat_log_ref ref, uint64_t offset)
{
    return model_may_be_trimmed(&check->streams[ref.stream].at[ref.streamlet][ref.log], offset);
}

bool check_stream_trims(const struct check *check, uint32_t stream)
{
    const struct stream_model *model = &check->streams[stream];
    for (uint32_t s = 0; s < model->streamlets; s++)
        for (uint32_t q = 0; q < model->logs; q++)
            if (model->at[s][q].trim_asked) return true;
    return false;
}

/* Is every offset from `from` up to `to` that was not read allowed to be missing? */
static bool gap_allowed(const struct check *check, struct leat_log_ref ref,
                        const struct log_model *log, uint64_t from, uint64_t to)
{
    return check->streams[ref.stream].trims || log->excused || (log->giving_up && log->at_risk) ||
           model_may_be_trimmed(log, to - 1) || model_is_given_up(log, from, to);
}

static void position_check(struct check *check, struct check_reader *reader,
                           struct leat_log_ref ref, struct log_model *log, uint64_t offset)
{
    bool *started = &reader->started[ref.stream][ref.streamlet][ref.log];
    uint64_t *next = &reader->next[ref.stream][ref.streamlet][ref.log];
    unsigned long long at = offset, expected = *next;
    if (*started && offset < *next)
        model_violation(check, "A7 nonmonotonic-poll: stream %u/%u/%u offset %llu after %llu",
                        ref.stream, ref.streamlet, ref.log, at, expected - 1);
    if (*started && offset > *next && !gap_allowed(check, ref, log, *next, offset))
        model_violation(check, "A6 poll-skip: stream %u/%u/%u from %llu to %llu", ref.stream,
                        ref.streamlet, ref.log, expected, at);
    if (!*started && reader->in_group) {
        uint64_t floor = reader->floor[ref.stream][ref.streamlet][ref.log];
        if (offset < floor)
            model_violation(
                check,
                "A7 nonmonotonic-poll: group %u of %u/%u/%u begins at %llu, committed is %llu",
                reader->group, ref.stream, ref.streamlet, ref.log, at, (unsigned long long)floor);
        if (offset > log->high[reader->group] &&
            !gap_allowed(check, ref, log, log->high[reader->group], offset))
            model_violation(check,
                            "A6 poll-skip: group %u of %u/%u/%u begins at %llu, read to %llu",
                            reader->group, ref.stream, ref.streamlet, ref.log, at,
                            (unsigned long long)log->high[reader->group]);
    }
    if (!*started && !reader->in_group && offset != 0 && !gap_allowed(check, ref, log, 0, offset))
        model_violation(check, "A6 poll-skip: stream %u/%u/%u begins at %llu", ref.stream,
                        ref.streamlet, ref.log, at);
    *started = true;
    *next = offset + 1;
    if (reader->in_group && offset + 1 > log->high[reader->group])
        log->high[reader->group] = offset + 1;
}

void check_seen(struct check *check, struct check_reader *reader, struct leat_log_ref ref,
                uint64_t offset, struct check_value value)
{
    struct log_model *log = log_of(check, ref);
    struct record *record = record_find(check, ref.stream, value);
    if (!record) {
        model_violation(check, "A5 aborted-read: stream %u value %u:%u was never sent", ref.stream,
                        value.producer, value.number);
        return;
    }
    if (record->disposition == CHECK_REFUSED) {
        model_violation(check,
                        "A5 aborted-read: log %u/%u/%u has at %llu value %u:%u, definitely refused",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)offset,
                        value.producer, value.number);
        return;
    }
    uint64_t floor = reader->floor[ref.stream][ref.streamlet][ref.log];
    if (reader->verifier && offset < floor && !log->at_risk && !log->excused) {
        model_violation(check,
                        "untrimmed: %u/%u/%u shows offset %llu, what is before %llu was given up",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)offset,
                        (unsigned long long)floor);
        return;
    }
    struct slot *slot = place(check, ref, value, offset, record, "a consumer");
    if (!slot) return;
    slot->seen = true;
    if (reader->verifier) slot->audited = true;
    if (!reader->unordered) position_check(check, reader, ref, log, offset);
}

void check_shared(struct check *check, struct leat_log_ref ref, uint64_t offset, uint64_t group)
{
    struct log_model *log = log_of(check, ref);
    if (offset > offset_max) return; /* said elsewhere */
    struct slot *slot = slot_of(log, offset);
    uint32_t shared = (uint32_t)group + 1;
    /* What the power took may be appended again, in another segment. */
    if (slot->shared != 0 && slot->shared != shared && !log->at_risk)
        model_violation(check,
                        "A3 duplicate: %u/%u/%u offset %llu is handed over as of segment groups %u "
                        "and %u",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)offset,
                        slot->shared - 1, shared - 1);
    slot->shared = shared;
}

void check_addressed(struct check *check, struct leat_log_ref ref, uint64_t first, uint64_t offset,
                     leat_err rc, uint64_t found)
{
    struct log_model *log = log_of(check, ref);
    if (rc == LEAT_OK && found == first) return;
    if (log->at_risk || gap_allowed(check, ref, log, offset, offset + 1)) return;
    /* Of the batch only the front may have been given up. */
    if (rc == LEAT_OK && found > first && found <= offset && model_may_be_trimmed(log, found - 1))
        return;
    if (rc == LEAT_OK)
        model_violation(check,
                        "A6 poll-skip: the place of %u/%u/%u offsets %llu to %llu leads to %llu",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)first,
                        (unsigned long long)offset, (unsigned long long)found);
    if (rc == LEAT_E_OFFSET_OUT_OF_RANGE)
        model_violation(check, "A6 poll-skip: the place of %u/%u/%u offset %llu is said to be none",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)offset);
    if (rc == LEAT_E_DAMAGED)
        model_violation(check, "A13 told: %u/%u/%u offset %llu is called damaged, and is not",
                        ref.stream, ref.streamlet, ref.log, (unsigned long long)offset);
}

void check_reader_seek(struct check_reader *reader, struct leat_log_ref ref, uint64_t offset)
{
    reader->started[ref.stream][ref.streamlet][ref.log] = true;
    reader->next[ref.stream][ref.streamlet][ref.log] = offset;
}

void check_stored(struct check *check, struct leat_log_ref ref, uint64_t base_offset,
                  uint32_t records, uint32_t bytes)
{
    struct log_model *log = log_of(check, ref);
    if (base_offset > offset_max) return; /* said elsewhere */
    for (uint32_t i = 0; i < records; i++)
        slot_of(log, base_offset + i)->sized = true;
    struct slot *slot = slot_of(log, base_offset);
    slot->bytes = bytes;
}

void check_owned(struct check *check, uint32_t group, struct leat_log_ref ref, uint32_t generation,
                 uint32_t member)
{
    struct log_model *log = log_of(check, ref);
    LEAT_ASSERT(group < CHECK_GROUPS_MAX);
    if (generation == log->generation[group] && member != log->member[group])
        model_violation(check,
                        "two-readers: %u/%u/%u is read by members %u and %u of group %u in "
                        "generation %u",
                        ref.stream, ref.streamlet, ref.log, log->member[group], member, group,
                        generation);
    if (generation < log->generation[group]) return; /* late, what it had fetched before */
    log->generation[group] = generation;
    log->member[group] = member;
}

void check_committed(struct check *check, uint32_t group, struct leat_log_ref ref, uint64_t offset)
{
    struct log_model *log = log_of(check, ref);
    LEAT_ASSERT(group < CHECK_GROUPS_MAX);
    if (offset > log->committed[group]) log->committed[group] = offset;
}

uint64_t check_committed_to(const struct check *check, uint32_t group, struct leat_log_ref ref)
{
    LEAT_ASSERT(group < CHECK_GROUPS_MAX);
    return check->streams[ref.stream].at[ref.streamlet][ref.log].committed[group];
}

void check_power_cut(struct check *check)
{
    for (unsigned i = 0; i < CHECK_STREAMS_MAX; i++) {
        struct stream_model *stream = &check->streams[i];
        if (!stream->used || stream->durability != LEAT_DURABILITY_MEMORY) continue;
        for (unsigned s = 0; s < stream->streamlets; s++)
            for (unsigned q = 0; q < stream->logs; q++) {
                struct log_model *log = &stream->at[s][q];
                log->at_risk = true;
                log->count_at_cut = log->count;
                for (size_t j = 0; j < log->page_count * PAGE_SLOTS; j++) {
                    struct slot *slot = &log->pages[j / PAGE_SLOTS]->slots[j % PAGE_SLOTS];
                    slot->shown = slot->audited = false;
                }
            }
    }
}

void check_waiting(struct check *check, struct leat_log_ref ref, const char *why)
{
    struct log_model *log = log_of(check, ref);
    if (!log->at_risk)
        model_violation(check, "A1 lost-write: %s log %u/%u/%u waits: %s",
                        check->streams[ref.stream].durability == LEAT_DURABILITY_DISK
                            ? "disk"
                            : "memory (no power cut)",
                        ref.stream, ref.streamlet, ref.log, why);
    log->excused = true;
    log->waits++;
}

bool model_is_given_up(const struct log_model *log, uint64_t from, uint64_t to)
{
    return from >= log->given_from && to <= log->given_to;
}

void check_given_up(struct check *check, struct leat_log_ref ref, uint64_t from, uint64_t to)
{
    struct log_model *log = log_of(check, ref);
    LEAT_ASSERT(log->given_to == 0 && from < to);
    log->given_from = from;
    log->given_to = to;
}

void check_giving_up(struct check *check, struct leat_log_ref ref, bool asked)
{
    log_of(check, ref)->giving_up = asked;
}

uint64_t check_end_at_cut(struct check *check, struct leat_log_ref ref)
{
    return log_of(check, ref)->count_at_cut;
}

void check_jumped(struct check *check, struct leat_log_ref ref, uint64_t end_at_cut,
                  uint64_t next_offset)
{
    struct log_model *log = log_of(check, ref);
    if (next_offset < end_at_cut)
        model_violation(
            check, "A4 inconsistent-offsets: %u/%u/%u goes on at %llu after loss, %llu was in use",
            ref.stream, ref.streamlet, ref.log, (unsigned long long)next_offset,
            (unsigned long long)end_at_cut - 1);
    log->excused = true;
    log->jumped = next_offset;
}

bool check_at_risk(const struct check *check, struct leat_log_ref ref)
{
    return check->streams[ref.stream].at[ref.streamlet][ref.log].at_risk;
}

bool check_loss_accepted(const struct check *check)
{
    for (unsigned i = 0; i < sizeof check->streams / sizeof *check->streams; i++)
        for (uint32_t s = 0; s < check->streams[i].streamlets; s++)
            for (uint32_t q = 0; q < check->streams[i].logs; q++)
                if (check->streams[i].at[s][q].excused) return true;
    return false;
}

bool check_stream_excused(const struct check *check, uint32_t stream)
{
    const struct stream_model *model = &check->streams[stream];
    for (uint32_t s = 0; s < model->streamlets; s++)
        for (uint32_t q = 0; q < model->logs; q++)
            if (model->at[s][q].excused || model->at[s][q].at_risk) return true;
    return false;
}

uint64_t check_acked_end(const struct check *check, struct leat_log_ref ref)
{
    return check->streams[ref.stream].at[ref.streamlet][ref.log].acked_end;
}

uint64_t check_acked_count(const struct check *check)
{
    return check->acked;
}

uint64_t check_open_count(const struct check *check)
{
    return check->open;
}
