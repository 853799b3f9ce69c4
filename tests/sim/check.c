/* SPDX-License-Identifier: Apache-2.0 */
/* The model that a history is checked against. See check.h for the names of the violations. */
#include "tests/sim/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

struct slot { /* one offset of a log */
    struct check_value value;
    bool known, acked, seen, audited, sized;
    bool shown;     /* an earlier verifier found it, and the power has not gone since */
    uint32_t bytes; /* of the batch that begins here */
};

/* Offsets jump far ahead after accepted loss, so slots come in pages; ascending. */
enum { PAGE_SLOTS = 512 };
struct page {
    uint64_t base;
    struct slot slots[PAGE_SLOTS];
};

struct log_model {
    struct page **pages;
    size_t page_count;
    uint64_t count;        /* highest known offset + 1 */
    uint64_t acked_end;    /* one past the highest that was acked */
    uint64_t count_at_cut; /* the same when the power was last cut */
    uint32_t waits;        /* how often it was found to wait */
    uint64_t jumped;       /* where it went on after the last loss that was accepted */
    uint64_t trim_low;     /* what is before it was given up for good */
    uint64_t trim_high;    /* ... and what is before this may have been */
    uint32_t trims_to_end; /* requests without an answer to give up all, whatever that may be */
    bool trim_asked;
    bool at_risk;   /* a power cut may have taken unflushed data of level memory */
    bool excused;   /* ... and the log said so: gaps are allowed */
    bool giving_up; /* an operator was asked to, and has no answer yet: it may have happened */
    uint64_t committed[CHECK_GROUPS_MAX], high[CHECK_GROUPS_MAX];
    uint32_t generation[CHECK_GROUPS_MAX], member[CHECK_GROUPS_MAX]; /* who read it last */
};

struct record {
    enum check_fate fate;
    bool placed;
    uint32_t waits; /* of its log, when it was placed */
    uint32_t streamlet, log;
    uint64_t offset;
};

struct producer_model {
    struct record *records;
    uint32_t count, capacity;
};

struct stream_model {
    bool used, trims;
    uint32_t streamlets, logs;
    uint64_t keeps_bytes;
    enum leat_durability durability;
    struct log_model at[CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    struct producer_model producers[CHECK_PRODUCERS_MAX];
};

struct check {
    void (*fail)(void *ctx, const char *text);
    void *ctx;
    struct stream_model streams[CHECK_STREAMS_MAX];
    uint64_t acked, open;
};

static void violation(struct check *check, const char *format, ...) LEAT_PRINTF(2, 3);

static void violation(struct check *check, const char *format, ...)
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

static const struct slot *slot_find(const struct log_model *log, uint64_t offset)
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
    producer->records[producer->count++] = (struct record){.fate = CHECK_OPEN};
    check->open++;
}

/* Far beyond what any workload writes: an offset that lies. */
static const uint64_t offset_max = 1ull << 56;

/* A record that went with the power from a log of level memory may be sent and appended again,
 * where the producer had no answer yet. A reader may see what is lost later than that: it lay in
 * its connection. Should it be there still, the verifiers find it behind the one that came again. */
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
        violation(check, "A4 inconsistent-offsets: %s at offset %llu", who,
                  (unsigned long long)offset);
        return NULL;
    }
    struct slot *slot = slot_of(log_of(check, ref), offset);
    if (slot->known &&
        (slot->value.producer != value.producer || slot->value.number != value.number)) {
        violation(check,
                  "A4 inconsistent-offsets: stream %u streamlet %u log %u offset %llu is %u:%u, "
                  "%s says %u:%u",
                  ref.stream, ref.streamlet, ref.log, (unsigned long long)offset,
                  slot->value.producer, slot->value.number, who, value.producer, value.number);
        return NULL;
    }
    if (record->placed &&
        (record->offset != offset || record->streamlet != ref.streamlet ||
         record->log != ref.log) &&
        !forgotten(check, ref.stream, record)) {
        violation(check,
                  "A3 duplicate: stream %u value %u:%u at streamlet %u log %u offset %llu and at "
                  "%u/%u/%llu (%s)",
                  ref.stream, value.producer, value.number, record->streamlet, record->log,
                  (unsigned long long)record->offset, ref.streamlet, ref.log,
                  (unsigned long long)offset, who);
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
    if (record->fate == CHECK_REFUSED) {
        violation(check, "A5 aborted-read: stream %u value %u:%u was refused and is acked later",
                  ref.stream, value.producer, value.number);
        return;
    }
    if (record->fate == CHECK_OPEN) check->open--;
    if (record->fate != CHECK_ACKED) check->acked++;
    record->fate = CHECK_ACKED;
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
    if (record->fate == CHECK_OPEN) check->open--;
    if (record->fate == CHECK_ACKED) return; /* a resend of the raw producer */
    if (!definite) {
        if (record->fate == CHECK_OPEN) record->fate = CHECK_UNKNOWN;
        return;
    }
    if (record->placed && !forgotten(check, stream, record))
        violation(check, "A5 aborted-read: stream %u value %u:%u was read and then refused", stream,
                  value.producer, value.number);
    record->fate = CHECK_REFUSED;
}

enum check_fate check_fate_of(const struct check *check, uint32_t stream, struct check_value value)
{
    const struct record *record = record_find(check, stream, value);
    return record ? record->fate : CHECK_NOT_SENT;
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

static bool may_be_trimmed(const struct log_model *log, uint64_t offset)
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
        violation(check, "untrimmed: %u/%u/%u begins at %llu, and is told to begin at %llu",
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
        violation(check, "untrimmed: %u/%u/%u is told to begin at %llu, and was given up to %llu",
                  ref.stream, ref.streamlet, ref.log, (unsigned long long)first_offset,
                  (unsigned long long)trimmed_to);
}

/* From where on everything has to be there, when it has from `from` on without requests, and nothing was
 * found before `found`. */
static uint64_t trimmed_at_most(const struct log_model *log, uint64_t from, uint64_t found)
{
    uint64_t high = log->trims_to_end > 0 || log->trim_high > found ? found : log->trim_high;
    return high > from ? high : from;
}

bool check_may_be_trimmed(const struct check *check, struct leat_log_ref ref, uint64_t offset)
{
    return may_be_trimmed(&check->streams[ref.stream].at[ref.streamlet][ref.log], offset);
}

bool check_stream_trims(const struct check *check, uint32_t stream)
{
    const struct stream_model *model = &check->streams[stream];
    for (uint32_t s = 0; s < model->streamlets; s++)
        for (uint32_t q = 0; q < model->logs; q++)
            if (model->at[s][q].trim_asked) return true;
    return false;
}

/* Is every offset before `to` that was not read allowed to be missing? */
static bool gap_allowed(const struct check *check, struct leat_log_ref ref,
                        const struct log_model *log, uint64_t to)
{
    return check->streams[ref.stream].trims || log->excused || (log->giving_up && log->at_risk) ||
           may_be_trimmed(log, to - 1);
}

static void position_check(struct check *check, struct check_reader *reader,
                           struct leat_log_ref ref, struct log_model *log, uint64_t offset)
{
    bool *started = &reader->started[ref.stream][ref.streamlet][ref.log];
    uint64_t *next = &reader->next[ref.stream][ref.streamlet][ref.log];
    unsigned long long at = offset, expected = *next;
    if (*started && offset < *next)
        violation(check, "A7 nonmonotonic-poll: stream %u/%u/%u offset %llu after %llu", ref.stream,
                  ref.streamlet, ref.log, at, expected - 1);
    if (*started && offset > *next && !gap_allowed(check, ref, log, offset))
        violation(check, "A6 poll-skip: stream %u/%u/%u from %llu to %llu", ref.stream,
                  ref.streamlet, ref.log, expected, at);
    if (!*started && reader->in_group) {
        uint64_t floor = reader->floor[ref.stream][ref.streamlet][ref.log];
        if (offset < floor)
            violation(
                check,
                "A7 nonmonotonic-poll: group %u of %u/%u/%u begins at %llu, committed is %llu",
                reader->group, ref.stream, ref.streamlet, ref.log, at, (unsigned long long)floor);
        if (offset > log->high[reader->group] && !gap_allowed(check, ref, log, offset))
            violation(check, "A6 poll-skip: group %u of %u/%u/%u begins at %llu, read to %llu",
                      reader->group, ref.stream, ref.streamlet, ref.log, at,
                      (unsigned long long)log->high[reader->group]);
    }
    if (!*started && !reader->in_group && offset != 0 && !gap_allowed(check, ref, log, offset))
        violation(check, "A6 poll-skip: stream %u/%u/%u begins at %llu", ref.stream, ref.streamlet,
                  ref.log, at);
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
        violation(check, "A5 aborted-read: stream %u value %u:%u was never sent", ref.stream,
                  value.producer, value.number);
        return;
    }
    if (record->fate == CHECK_REFUSED) {
        violation(check,
                  "A5 aborted-read: log %u/%u/%u has at %llu value %u:%u, definitely refused",
                  ref.stream, ref.streamlet, ref.log, (unsigned long long)offset, value.producer,
                  value.number);
        return;
    }
    uint64_t floor = reader->floor[ref.stream][ref.streamlet][ref.log];
    if (reader->verifier && offset < floor && !log->at_risk && !log->excused) {
        violation(check, "untrimmed: %u/%u/%u shows offset %llu, what is before %llu was given up",
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

void check_addressed(struct check *check, struct leat_log_ref ref, uint64_t first, uint64_t offset,
                     leat_err rc, uint64_t found)
{
    struct log_model *log = log_of(check, ref);
    if (rc == LEAT_OK && found == first) return;
    if (log->at_risk || gap_allowed(check, ref, log, offset + 1)) return;
    /* Of the batch only the front may have been given up. */
    if (rc == LEAT_OK && found > first && found <= offset && may_be_trimmed(log, found - 1)) return;
    if (rc == LEAT_OK)
        violation(check, "A6 poll-skip: the place of %u/%u/%u offsets %llu to %llu leads to %llu",
                  ref.stream, ref.streamlet, ref.log, (unsigned long long)first,
                  (unsigned long long)offset, (unsigned long long)found);
    if (rc == LEAT_E_OFFSET_OUT_OF_RANGE)
        violation(check, "A6 poll-skip: the place of %u/%u/%u offset %llu is said to be none",
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
        violation(check,
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
        violation(check, "A1 lost-write: %s log %u/%u/%u waits: %s",
                  check->streams[ref.stream].durability == LEAT_DURABILITY_DISK
                      ? "disk"
                      : "memory (no power cut)",
                  ref.stream, ref.streamlet, ref.log, why);
    log->excused = true;
    log->waits++;
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
        violation(check,
                  "A4 inconsistent-offsets: %u/%u/%u goes on at %llu after loss, %llu was in use",
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
            violation(check, "A8 nonmonotonic-send: %u/%u/%u offset %llu holds %u:%u after %u:%lld",
                      ref.stream, ref.streamlet, ref.log, (unsigned long long)i,
                      slot->value.producer, slot->value.number, slot->value.producer,
                      (long long)last[slot->value.producer]);
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
    for (uint64_t at = log->count; at > 0 && slot_find(log, at - 1)->sized; at--) {
        uint32_t batch_bytes = slot_find(log, at - 1)->bytes;
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

/* The first offset of a log whose loss was accepted that a verifier found after that, and this one has not:
 * what was left stays. count: none. */
static uint64_t first_vanished(const struct log_model *log, const struct stream_model *stream)
{
    for (size_t i = 0; !stream->trims && i < log->page_count * PAGE_SLOTS; i++) {
        const struct slot *slot = &log->pages[i / PAGE_SLOTS]->slots[i % PAGE_SLOTS];
        uint64_t offset = log->pages[i / PAGE_SLOTS]->base + i % PAGE_SLOTS;
        if (slot->shown && !slot->audited && !may_be_trimmed(log, offset)) return offset;
    }
    return log->count;
}

/* The first offset that has to be there and was not audited; count: none is missing. last: one
 * past the last audited. */
static uint64_t first_missing(const struct log_model *log, const struct stream_model *stream,
                              uint64_t *out_last)
{
    uint64_t first = 0, last = log->count;
    while (last > 0 && !slot_find(log, last - 1)->audited)
        last--;
    *out_last = last;
    if (stream->trims) { /* what went while the verifier read, went from the front */
        for (first = last; first > 0 && slot_find(log, first - 1)->audited; first--)
            continue;
        uint64_t floor = retained_floor(log, stream->keeps_bytes);
        if (last == 0) first = log->count; /* nothing is left: all was given up, or it is lost */
        floor = trimmed_at_most(log, floor, first);
        if (floor < first) first = floor;
    } else {
        first = trimmed_at_most(log, first, first_audited(log));
    }
    for (uint64_t i = first; i < log->count; i++) {
        const struct slot *slot = slot_find(log, i);
        if (!slot->audited && ((slot->known && (slot->acked || slot->seen)) || i < last)) return i;
    }
    return log->count;
}

static void log_final(struct check *check, struct leat_log_ref ref, const struct log_model *log,
                      const struct stream_model *stream)
{
    order_check(check, ref, log);
    uint64_t last, at = first_vanished(log, stream);
    if (log->excused && at < log->count)
        violation(check, "vanished: %u/%u/%u offset %llu was left when its loss was accepted",
                  ref.stream, ref.streamlet, ref.log, (unsigned long long)at);
    if (log->excused) return;
    at = first_missing(log, stream, &last);
    if (at == log->count) return;
    const struct slot *slot = slot_find(log, at);
    if (slot->known && slot->acked)
        violation(check, "%s: %u/%u/%u offset %llu (%u:%u) was acked and is gone",
                  at < last ? "A1 lost-write" : "A2 unseen", ref.stream, ref.streamlet, ref.log,
                  (unsigned long long)at, slot->value.producer, slot->value.number);
    else if (slot->known && slot->seen)
        violation(check, "vanished: %u/%u/%u offset %llu (%u:%u) was read and is gone", ref.stream,
                  ref.streamlet, ref.log, (unsigned long long)at, slot->value.producer,
                  slot->value.number);
    else
        violation(check, "A6 poll-skip: %u/%u/%u has nothing at offset %llu of %llu", ref.stream,
                  ref.streamlet, ref.log, (unsigned long long)at, (unsigned long long)last);
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
        const struct slot *slot = slot_find(log, end - 1);
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
                there = end == 0 || slot_find(log, end - 1)->audited;
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
            if (got >= last || log->excused || may_be_trimmed(log, last - 1)) continue;
            snprintf(out_behind, CHECK_BEHIND_BYTES, "log %u/%u/%u read to %llu of %llu",
                     stream_index, s, q, (unsigned long long)got, (unsigned long long)last);
            return false;
        }
    }
    return true;
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
