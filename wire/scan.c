/* SPDX-License-Identifier: Apache-2.0 */
/* The segment scanner: Tailwind Algorithm 1 (§3.2), hardened.
 *
 * The scanner tells a torn tail from damage. Both end the valid prefix. But trailers chain the entry headers, so
 * after a bad payload the walk goes on by headers alone. A later trailer that matches the chain proves that the bytes
 * in between were once complete: the acked length in this trailer shows whether acked bytes are gone. Bytes of a
 * former user of the buffer after the prefix can't match: their trailers continue another chain. */
#include "wire/entry.h"

#include "base/bug.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "wire/batch.h"

struct walk {
    const uint8_t *segment;
    uint32_t bytes;    /* never read past */
    uint32_t position; /* of the entry under consideration */
    uint32_t chain;
    bool payload_bad;     /* somewhere before here: headers only from there on */
    bool at_header;       /* the entry before this one was SEGMENT */
    bool started, closed; /* seen so far, under a trailer or not yet */
    uint64_t base_offset, next_offset, retained_segment;
    int64_t max_timestamp_ms;
    struct leat_prefix_id previous;
};

/* The checks of a header without its payload. */
static bool header_check(const struct walk *walk, const struct leat_entry *entry)
{
    if (entry->flags != 0 || entry->zero16 != 0 || entry->zero64 != 0) return false;
    uint32_t room = walk->bytes - walk->position - LEAT_ENTRY_HEADER_BYTES;
    if (LEAT_ALIGN_UP((uint64_t)entry->payload_bytes, LEAT_ENTRY_ALIGN) > room) return false;
    bool plain = entry->base_offset == 0 && entry->record_count == 0;
    switch (entry->type) {
    case LEAT_ENTRY_SEGMENT:
        return plain && walk->position == 0;
    case LEAT_ENTRY_START:
        return plain && walk->at_header;
    case LEAT_ENTRY_BATCH:
        return walk->started && !walk->closed && entry->record_count > 0;
    case LEAT_ENTRY_TRIM:
        return plain && walk->started && !walk->closed;
    case LEAT_ENTRY_CLOSE:
        return plain && walk->started && !walk->closed;
    case LEAT_ENTRY_TRAILER:
        return walk->started && entry->payload_bytes == 0 && entry->record_count == 0 &&
               entry->base_offset <= walk->position;
    default:
        return false;
    }
}

static bool segment_check(const uint8_t *payload, uint32_t bytes, struct leat_segment_header *out)
{
    if (bytes < sizeof *out) return false;
    memcpy(out, payload, sizeof *out);
    return out->magic == LEAT_SEGMENT_MAGIC && out->format_version == LEAT_FORMAT_VERSION &&
           out->name_bytes <= LEAT_STREAM_NAME_BYTES_MAX &&
           out->name_bytes == bytes - sizeof *out && out->capacity >= LEAT_SEGMENT_BYTES_MIN &&
           out->capacity <= LEAT_SEGMENT_BYTES_MAX && out->capacity % LEAT_ENTRY_ALIGN == 0;
}

static bool start_check(struct walk *walk, const uint8_t *payload, uint32_t bytes)
{
    struct leat_start start;
    if (bytes < sizeof start || bytes > LEAT_START_BYTES_MAX) return false;
    memcpy(&start, payload, sizeof start);
    if (start.producer_count > LEAT_PRODUCERS_PER_LOG_MAX || start.producers_expired > 1)
        return false;
    uint64_t producers = (uint64_t)start.producer_count * sizeof(struct leat_producer_state);
    if (sizeof start + producers + start.app_bytes != bytes) return false;
    for (uint32_t i = 0; i < start.producer_count; i++) {
        struct leat_producer_state state;
        memcpy(&state, payload + sizeof start + i * sizeof state, sizeof state);
        if (state.batch_count > LEAT_BATCHES_IN_FLIGHT_MAX) return false;
    }
    walk->base_offset = walk->next_offset = start.base_offset;
    walk->previous = start.previous;
    return true;
}

static bool batch_check(struct walk *walk, const struct leat_entry *entry, const uint8_t *payload)
{
    struct leat_batch batch;
    if (leat_batch_view(payload, entry->payload_bytes, &batch) != LEAT_OK) return false;
    if (batch.base_offset != entry->base_offset || batch.record_count != entry->record_count)
        return false;
    /* Offsets are dense within a segment; only a start entry may jump. */
    if (entry->base_offset != walk->next_offset) return false;
    if (walk->next_offset > UINT64_MAX - batch.record_count) return false;
    walk->next_offset += batch.record_count;
    if (batch.max_timestamp_ms > walk->max_timestamp_ms)
        walk->max_timestamp_ms = batch.max_timestamp_ms;
    return true;
}

static bool trim_check(struct walk *walk, const uint8_t *payload, uint32_t bytes)
{
    struct leat_trim trim;
    if (bytes != sizeof trim) return false;
    memcpy(&trim, payload, sizeof trim);
    if (trim.first_segment > walk->retained_segment) walk->retained_segment = trim.first_segment;
    return true;
}

static bool close_check(const struct walk *walk, const uint8_t *payload, uint32_t bytes)
{
    struct leat_close close;
    if (bytes < sizeof close) return false;
    memcpy(&close, payload, sizeof close);
    return (bytes - sizeof close) / sizeof(struct leat_index_row) == close.index_count &&
           (bytes - sizeof close) % sizeof(struct leat_index_row) == 0 &&
           close.bytes == walk->position && close.next_offset == walk->next_offset;
}

/* Checksum, padding and meaning of one payload. Padding counts although no CRC covers it: (length,
 * CRC) names a prefix's bytes, all of them. */
static bool payload_check(struct walk *walk, const struct leat_entry *entry, struct leat_scan *scan)
{
    const uint8_t *payload = walk->segment + walk->position + LEAT_ENTRY_HEADER_BYTES;
    uint32_t bytes = entry->payload_bytes;
    if (LEAT_BUG(TORN_PAYLOAD) && entry->type == LEAT_ENTRY_BATCH) return true;
    if (leat_crc32c(0, payload, bytes) != entry->crc) return false;
    for (uint32_t i = bytes; i % LEAT_ENTRY_ALIGN != 0; i++)
        if (payload[i] != 0) return false;
    switch (entry->type) {
    case LEAT_ENTRY_SEGMENT:
        scan->has_header = segment_check(payload, bytes, &scan->header);
        /* A reader may hand us more than the segment, never less than what counts. */
        if (scan->has_header && scan->header.capacity < walk->bytes)
            walk->bytes = scan->header.capacity;
        return scan->has_header;
    case LEAT_ENTRY_START:
        return start_check(walk, payload, bytes);
    case LEAT_ENTRY_BATCH:
        return batch_check(walk, entry, payload);
    case LEAT_ENTRY_TRIM:
        return trim_check(walk, payload, bytes);
    default:
        return close_check(walk, payload, bytes);
    }
}

/* A trailer that matches the chain: its acked length is right, and all bytes before are valid unless a payload was
 * bad. */
static void trailer_take(const struct walk *walk, const struct leat_entry *trailer,
                         struct leat_scan *scan)
{
    uint32_t acked = (uint32_t)trailer->base_offset;
    if (acked > scan->acked_bytes) scan->acked_bytes = acked;
    if (walk->payload_bad) return;
    scan->bytes = walk->position + LEAT_ENTRY_HEADER_BYTES;
    scan->crc = trailer->crc;
    scan->started = walk->started;
    scan->closed = walk->closed;
    scan->previous = walk->previous;
    scan->base_offset = walk->base_offset;
    scan->next_offset = walk->next_offset;
    scan->retained_segment = walk->retained_segment;
    scan->max_timestamp_ms = walk->max_timestamp_ms;
}

/* Consider the entry at walk->position. False: the walk ends here. */
static bool entry_step(struct walk *walk, struct leat_scan *scan)
{
    struct leat_entry entry;
    if (walk->bytes - walk->position < sizeof entry) return false;
    memcpy(&entry, walk->segment + walk->position, sizeof entry);
    if (!header_check(walk, &entry)) return false;

    if (entry.type == LEAT_ENTRY_TRAILER) {
        if (leat_entry_trailer_crc(walk->chain, &entry) != entry.crc) return false;
        trailer_take(walk, &entry, scan);
        walk->chain = entry.crc;
        walk->position += LEAT_ENTRY_HEADER_BYTES;
        return !walk->closed; /* nothing follows the trailer of a CLOSE */
    }
    /* Also the segment's own header: a segment with a bad header belongs to no log, but a later trailer may prove
     * that it once did. */
    if (!walk->payload_bad && !payload_check(walk, &entry, scan)) walk->payload_bad = true;
    walk->at_header = entry.type == LEAT_ENTRY_SEGMENT;
    if (entry.type == LEAT_ENTRY_START) walk->started = true;
    if (entry.type == LEAT_ENTRY_CLOSE) walk->closed = true;
    walk->chain = leat_crc32c(walk->chain, &entry, sizeof entry);
    uint32_t next = walk->position + leat_entry_bytes(entry.payload_bytes);
    if (next > walk->bytes) return false; /* the header has just told a smaller capacity */
    walk->position = next;
    return true;
}

void leat_scan_segment(const uint8_t *segment, uint32_t bytes, struct leat_scan *out_scan)
{
    *out_scan = (struct leat_scan){.max_timestamp_ms = -1};
    struct walk walk = {.segment = segment, .bytes = bytes, .max_timestamp_ms = -1};
    while (entry_step(&walk, out_scan)) {
    }
    if (!out_scan->has_header) out_scan->header = (struct leat_segment_header){0};
    out_scan->damaged = out_scan->bytes < out_scan->acked_bytes && !LEAT_BUG(DAMAGE_IS_TORN);
}

bool leat_scan_only_start(const struct leat_scan *scan)
{
    return scan->next_offset == scan->base_offset && scan->retained_segment < scan->header.segment;
}
