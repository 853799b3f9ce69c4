/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over a segment's entries: which batches a read gets. It looks at bytes alone. */
#include "base/bug.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "multilog/read.h"

enum { /* in the header of a batch */
       MAX_TIMESTAMP_AT = 35,
       RECORD_COUNT_AT = 57,
};

static bool entry_is_sane(const struct leat_entry *entry, uint32_t at, uint32_t limit)
{
    if (entry->type < LEAT_ENTRY_SEGMENT || entry->type > LEAT_ENTRY_CLOSE) return false;
    if (entry->flags || entry->zero16 || entry->zero64) return false;
    /* Only batches have records: a flipped type must not make a batch vanish. */
    if ((entry->type == LEAT_ENTRY_BATCH) != (entry->record_count != 0)) return false;
    /* Any batch must fit a reader's buffer: a larger batch would be read again for ever. All batches have a header,
     * which a look-up by time needs. */
    if (entry->type == LEAT_ENTRY_BATCH && (entry->payload_bytes > LEAT_BATCH_BYTES_MAX ||
                                            entry->payload_bytes < LEAT_BATCH_HEADER_BYTES))
        return false;
    return entry->payload_bytes <= limit - at - LEAT_ENTRY_HEADER_BYTES;
}

static bool batch_is_left_out(const struct leat_entry *entry, const uint8_t *payload, uint32_t at,
                              const struct leat_target *target)
{
    switch (target->kind) {
    case LEAT_TARGET_OFFSET:
        return entry->base_offset + entry->record_count <= target->offset;
    case LEAT_TARGET_POSITION:
        return at < target->position;
    case LEAT_TARGET_TIME:
        return (int64_t)leat_get_be64(payload + MAX_TIMESTAMP_AT) < target->time_ms;
    }
    return false;
}

static bool batch_is_right(const struct leat_entry *entry, const uint8_t *payload)
{
    return entry->payload_bytes >= LEAT_BATCH_HEADER_BYTES && entry->record_count > 0 &&
           leat_get_be64(payload) == entry->base_offset &&
           leat_get_be32(payload + RECORD_COUNT_AT) == entry->record_count &&
           leat_crc32c(0, payload, entry->payload_bytes) == entry->crc;
}

static void batch_take(struct leat_read *read, const struct leat_entry *entry,
                       const uint8_t *payload, uint32_t at)
{
    if (read->iov_count == 0) {
        read->first.v = entry->base_offset;
        read->first_position =
            (struct leat_position){log_group_of(read->segment), read->segment, at};
    }
    read->iovs[read->iov_count++] = (struct leat_iov){payload, entry->payload_bytes};
    read->bytes += entry->payload_bytes;
    read->record_count += entry->record_count;
    read->next.v = entry->base_offset + entry->record_count;
}

void log_read_place_set(struct leat_read *read, uint32_t at)
{
    read->next_position = (struct leat_position){log_group_of(read->segment), read->segment, at};
}

/* A damaged batch that an operator gave up: what its header says is believed as far as the next batch, which has
 * to be right by itself, goes on where this one ends. */
static void batch_pass(struct leat_read *read, const struct leat_entry *entry,
                       struct leat_target *wanted, uint64_t *out_end)
{
    *out_end = entry->base_offset + entry->record_count;
    if (wanted->kind != LEAT_TARGET_OFFSET || *out_end <= wanted->offset) return;
    wanted->offset = read->from.v = *out_end;
}

/* The reader gets the batches before the damage first: after an answer DAMAGED the reader goes on after the segment. */
static enum log_walk_end damage_ends(const struct leat_read *read)
{
    return read->iov_count ? LOG_WALK_DONE : LOG_WALK_DAMAGED;
}

enum log_walk_end log_walk(const struct leat_log *log, struct leat_read *read,
                           const struct log_view *view, const struct leat_target *asked,
                           uint32_t *at)
{
    struct leat_target copy = *asked, *target = &copy;
    uint64_t acked = log_acked(log), passed_end = 0;
    for (;;) {
        if (target->kind == LEAT_TARGET_POSITION && *at > target->position && !read->boundary)
            return LOG_WALK_NO_BOUNDARY;
        if (*at == target->position) read->boundary = true;
        if (*at == view->limit) return LOG_WALK_DONE;
        if (view->limit - *at < LEAT_ENTRY_HEADER_BYTES) return damage_ends(read);
        if (*at + LEAT_ENTRY_HEADER_BYTES > view->end)
            return read->iov_count ? LOG_WALK_DONE : LOG_WALK_MORE;
        const struct leat_entry *entry =
            (const struct leat_entry *)(const void *)(view->bytes + (*at - view->from));
        if (!entry_is_sane(entry, *at, view->limit)) return damage_ends(read);
        uint32_t next = *at + leat_entry_bytes(entry->payload_bytes);
        if (entry->type == LEAT_ENTRY_BATCH) {
            if (entry->base_offset >= acked) return LOG_WALK_DONE;
            const uint8_t *payload = (const uint8_t *)(entry + 1);
            bool whole = *at + LEAT_ENTRY_HEADER_BYTES + entry->payload_bytes <= view->end;
            if (view->given_up && !read->iov_count) {
                if (!whole) return LOG_WALK_MORE;
                if (passed_end && entry->base_offset != passed_end) return LOG_WALK_DAMAGED;
                if (!batch_is_right(entry, payload)) {
                    batch_pass(read, entry, target, &passed_end);
                    *at = next;
                    continue;
                }
                passed_end = 0;
            }
            if (!whole && target->kind == LEAT_TARGET_TIME)
                return read->iov_count ? LOG_WALK_DONE : LOG_WALK_MORE;
            /* Only a batch with a right checksum is passed over as too old: a reader that begins at a time never sees
             * the batches that are passed over here. */
            if (view->verify && target->kind == LEAT_TARGET_TIME && !batch_is_right(entry, payload))
                return damage_ends(read);
            /* An offset was compared with where the log begins when the read began. */
            bool given_up = target->kind != LEAT_TARGET_OFFSET &&
                            entry->base_offset + entry->record_count <= log->first_offset;
            if (given_up && *at >= target->position) read->given_up = true;
            /* Only a batch with a right checksum around the position shows that no batch begins at the position. */
            if (view->verify && target->kind == LEAT_TARGET_POSITION && next > target->position &&
                *at < target->position) {
                if (!whole) return LOG_WALK_MORE;
                if (!batch_is_right(entry, payload) && !LEAT_BUG(PLACE_UNCHECKED))
                    return LOG_WALK_DAMAGED;
            }
            bool left_out = given_up || batch_is_left_out(entry, payload, *at, target);
            if (!left_out || read->iov_count) {
                bool fits = read->bytes + entry->payload_bytes <= read->max_bytes;
                if (read->iov_count == LEAT_READ_IOVS_MAX || (read->iov_count && !fits))
                    return LOG_WALK_DONE;
                if (read->strict && !fits) return LOG_WALK_FULL;
                if (!whole) return read->iov_count ? LOG_WALK_DONE : LOG_WALK_MORE;
                /* Dense, and right by itself. */
                bool follows = read->iov_count ? entry->base_offset == read->next.v
                                               : target->kind != LEAT_TARGET_OFFSET ||
                                                     entry->base_offset <= target->offset;
                if (!follows || (view->verify && !batch_is_right(entry, payload)))
                    return damage_ends(read);
                batch_take(read, entry, payload, *at);
                log_read_place_set(read, next);
            }
        }
        *at = next;
    }
}
