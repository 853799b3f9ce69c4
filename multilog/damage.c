/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a log's records can't be read, for operators. A reader finds out where it reads (read.c). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/node_log.h"
#include "multilog/internal.h"

enum { PLACES_TOLD = 2 };

/* No record is missing before this segment: an operator gave the records up. If the segment's start entry has not
 * been read yet, its offset says so (LEAT_GAP_BITS). */
static bool gap_is_given_up(const struct leat_log *log, const struct log_slot *after)
{
    if (!after) return log->jumped;
    uint64_t base = after->seg->base_offset;
    return after->front_given_up || after->joint == LOG_JOINT_JUMPED ||
           (after->joint == LOG_JOINT_UNKNOWN && base && base << (64 - LEAT_GAP_BITS) == 0);
}

/* Where what is held begins at table row i, and ends: of the row count the end of all that is acked. false: no
 * record is missing before that. */
static bool gap_of(const struct leat_log *log, uint32_t i, struct leat_log_damage *out)
{
    const struct log_slot *before = i > 0 ? log_slot_at(log, i - 1) : NULL;
    const struct log_slot *after = i < log->slot_count ? log_slot_at(log, i) : NULL;
    if (before && !before->closed) return false;
    *out = (struct leat_log_damage){
        .first_segment = before ? before->seg->id.v + 1 : log->first_segment,
        .end_segment = after ? after->seg->id.v : log->next_segment,
        .first_offset = before ? before->seg->next_offset : log->first_offset,
        .end_offset = after ? after->seg->base_offset : log_acked(log),
        .missing = true,
    };
    /* Some replicas of trimmed segments may be found again, and others not: trimmed records are not missing. */
    if (out->first_offset < log->first_offset && !LEAT_BUG(TRIMMED_IS_MISSING))
        out->first_offset = log->first_offset;
    return out->first_offset < out->end_offset;
}

bool log_gap_has_records(const struct leat_log *log, uint32_t i)
{
    struct leat_log_damage gap;
    return gap_of(log, i, &gap);
}

static bool gap_find(const struct leat_log *log, uint32_t i, struct leat_log_damage *out)
{
    if (!gap_of(log, i, out)) return false;
    if (gap_is_given_up(log, i < log->slot_count ? log_slot_at(log, i) : NULL)) return false;
    if (i == 0 && log_front_is_unknown(log)) return false;
    return !log_older_come(log) || (i > 0 && !log->holes);
}

static bool corrupt_find(const struct leat_log *log, uint32_t i, struct leat_log_damage *out)
{
    const struct log_slot *slot = log_slot_at(log, i);
    const struct leat_segment *seg = slot->seg;
    *out = (struct leat_log_damage){seg->id.v, seg->id.v + 1, seg->base_offset, seg->next_offset,
                                    false};
    if (out->first_offset < log->first_offset) out->first_offset = log->first_offset;
    if (out->first_offset > out->end_offset) out->first_offset = out->end_offset;
    /* Records before the log's first offset are not missing; but the log may refuse appends because of its last
     * segment. */
    if (seg->next_offset <= log->first_offset && i + 1 < log->slot_count) return false;
    return slot->closed && !slot->dropping && leat_segment_is_damaged(seg) &&
           log_slot_is_lost(slot) && !slot->given_up;
}

bool leat_log_damage_find(const struct leat_log *log, uint64_t *at, struct leat_log_damage *out)
{
    uint64_t places = 2 * (uint64_t)log->slot_count + 1;
    while (*at < places) {
        uint64_t place = (*at)++;
        bool found = place % 2 == 0 ? gap_find(log, (uint32_t)(place / 2), out)
                                    : corrupt_find(log, (uint32_t)(place / 2), out);
        if (found) return true;
    }
    return false;
}

static size_t place_words(const struct leat_log_damage *damage, const char *before, char *out,
                          size_t bytes)
{
    const char *what = damage->missing ? "missing" : "damaged";
    int used;
    if (damage->first_segment >= damage->end_segment)
        used = snprintf(out, bytes, "%soffsets %" PRIu64 " to %" PRIu64 " are damaged", before,
                        damage->first_offset, damage->end_offset - 1);
    /* The segment has no records, or all were trimmed */
    else if (damage->first_offset == damage->end_offset)
        used = snprintf(out, bytes, "%ssegment %" PRIu64 " with no record of the log is damaged",
                        before, damage->first_segment);
    else if (damage->first_segment + 1 == damage->end_segment)
        used = snprintf(
            out, bytes, "%ssegment %" PRIu64 " with offsets %" PRIu64 " to %" PRIu64 " is %s",
            before, damage->first_segment, damage->first_offset, damage->end_offset - 1, what);
    else
        used = snprintf(out, bytes,
                        "%ssegments %" PRIu64 " to %" PRIu64 " with offsets %" PRIu64 " to %" PRIu64
                        " are %s",
                        before, damage->first_segment, damage->end_segment - 1,
                        damage->first_offset, damage->end_offset - 1, what);
    return used < 0 ? 0 : (size_t)used < bytes ? (size_t)used : bytes - 1;
}

void log_gap_tell(const struct leat_log *log, uint32_t i)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    const struct leat_log_ref *ref = &log->options.ref;
    struct leat_log_damage gap;
    char words[LOG_WHY_BYTES];
    if (!gap_find(log, i, &gap)) return;
    (void)place_words(&gap, "", words, sizeof words);
    leat_node_log_error("log %u/%u/%u of %s: %s", ref->stream, ref->streamlet, ref->log,
                        log->stream_name, words);
}

/* Segments that memory or other nodes have whole, and that this node's disk does not take: readers here are told to
 * try again. Nothing of them is lost, so no operator is asked to give them up. 0: none. */
static uint32_t refused_words(const struct leat_log *log, char *out, size_t bytes)
{
    const struct leat_segment *first = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; log->damage_look && i < log->slot_count; i++) {
        const struct log_slot *slot = log_slot_at(log, i);
        if (!log_slot_is_refused(log, slot)) continue;
        if (count++ == 0) first = slot->seg;
    }
    if (first)
        snprintf(out, bytes,
                 "segment %" PRIu64 " (%" PRIu64 " records from offset %" PRIu64
                 " on)%s can't be read here: this node's disk does not take the bytes that "
                 "memory or another node has",
                 first->id.v, first->next_offset - first->base_offset, first->base_offset,
                 count > 1 ? " and others" : "");
    return count;
}

/* Walks the table only when something has changed in it that may be damage. */
static uint64_t places_words(struct leat_log *log, char *out, size_t bytes)
{
    struct leat_log_damage damage;
    uint64_t at = 0, found = 0;
    size_t used = 0;
    if (!log->damage_look || LEAT_BUG(DAMAGE_UNTOLD)) return 0;
    while (leat_log_damage_find(log, &at, &damage)) {
        if (++found > PLACES_TOLD) continue;
        used += place_words(&damage, found > 1 ? ", " : "", out + used, bytes - used);
    }
    if (found > PLACES_TOLD && used < bytes)
        snprintf(out + used, bytes - used, ", and %" PRIu64 " places more", found - PLACES_TOLD);
    return found;
}

static uint32_t passed_bytes(const struct leat_segment *seg)
{
    return atomic_load_explicit(&seg->passed_bytes, memory_order_relaxed);
}

static void passed_bytes_set(struct leat_segment *seg, uint32_t bytes)
{
    atomic_store_explicit(&seg->passed_bytes, bytes, memory_order_relaxed);
}

void leat_log_passed_over(struct leat_log *log, struct leat_log_passed *out)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    bool look = false;
    *out = (struct leat_log_passed){0};
    for (uint32_t i = 0; log->passed_look && i < log->slot_count; i++) {
        const struct leat_segment *seg = log_slot_at(log, i)->seg;
        uint32_t bytes = passed_bytes(seg);
        look |= bytes > 0; /* an open segment is reported once it has closed */
        if (!log_slot_at(log, i)->closed || bytes == 0) continue;
        out->bytes += bytes;
        out->segments++;
        out->segment = seg->id.v;
        out->next_offset = seg->next_offset;
    }
    log->passed_look = look;
}

/* ---- given up by an operator ---- */

static void on_given_up(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    struct log_slot *slot = log_slot_find(log, req->seg->id.v);
    LEAT_ASSERT(slot != NULL && slot->file_reads > 0);
    slot->file_reads--;
    log->reads_in_flight--;
    log_skip_enter(log, req->rc == LEAT_OK ? LOG_SKIP_GOES : LOG_SKIP_FAILED);
    slot->given_up |= req->rc == LEAT_OK && req->given_up;
    if (slot->given_up && slot->repair == LOG_REPAIR_LOST_SOUGHT)
        log_slot_repair_enter(slot, LOG_REPAIR_LOST); /* no read waits for the bytes any more */
    slot->front_given_up |= req->rc == LEAT_OK && req->front_given_up;
    if (req->rc != LEAT_OK) {
        /* The store has not recorded that an operator has seen the bytes. */
        passed_bytes_set(slot->seg, passed_bytes(slot->seg) + log->passed_seen);
        log->passed_look |= log->passed_seen > 0;
    }
    log->passed_seen = 0;
    log_mark_dirty(log);
}

/* Like a read of the segment's file: the segment is not dropped meanwhile. */
static void give_up(struct leat_log *log, struct log_slot *slot)
{
    slot->file_reads++;
    log->reads_in_flight++;
    log_skip_enter(log, LOG_SKIP_ASKED);
    log_request(log, &log->give_up, LEAT_STORE_GIVE_UP, slot->seg, on_given_up);
}

/* A segment whose records can't be read, or before which records are missing. NULL: they are missing at the end. */
static struct log_slot *slot_of(const struct leat_log *log, const struct leat_log_damage *damage)
{
    return log_slot_find(log, damage->missing ? damage->end_segment : damage->first_segment);
}

void log_damage_name(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct leat_log_damage damage;
    uint64_t at = 0;
    for (uint32_t i = 0; i < log->slot_count; i++) {
        struct log_slot *slot = log_slot_at(log, i);
        slot->named = slot->closed && passed_bytes(slot->seg) > 0 ? LOG_NAMED_PASSED : 0;
    }
    while (leat_log_damage_find(log, &at, &damage)) {
        struct log_slot *slot = slot_of(log, &damage);
        if (slot) slot->named |= damage.missing ? LOG_NAMED_FRONT : LOG_NAMED_RECORDS;
    }
    /* By the reason for which the log takes no appends, before it is known whether memory has the segment. */
    if (log->state == LEAT_LOG_DAMAGED && log->slot_count > 0)
        log_slot_at(log, log->slot_count - 1)->named |= LOG_NAMED_RECORDS;
}

static bool passed_give_up(struct leat_log *log)
{
    for (uint32_t i = 0; log->passed_look && i < log->slot_count; i++) {
        struct log_slot *slot = log_slot_at(log, i);
        uint32_t bytes = passed_bytes(slot->seg);
        if (!slot->closed || slot->changing || slot->dropping || bytes == 0) continue;
        if (!(slot->named & LOG_NAMED_PASSED)) continue;
        log->give_up.given_up = log->give_up.front_given_up = false;
        log->passed_seen = bytes;
        passed_bytes_set(slot->seg, 0);
        give_up(log, slot);
        return true;
    }
    return false;
}

bool log_damage_give_up(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct leat_log_damage damage;
    uint64_t at = 0;
    while (leat_log_damage_find(log, &at, &damage)) {
        struct log_slot *slot = slot_of(log, &damage);
        if (!slot || slot->changing || slot->dropping || slot->repair_held) continue;
        if (!(slot->named & (damage.missing ? LOG_NAMED_FRONT : LOG_NAMED_RECORDS))) continue;
        /* For a log that takes no appends because of damage only its last segment was named. */
        bool last = slot == log_slot_at(log, log->slot_count - 1) && !damage.missing;
        if (log->state == LEAT_LOG_DAMAGED && !last) continue;
        log->give_up.given_up = !damage.missing;
        log->give_up.front_given_up = damage.missing;
        give_up(log, slot);
        return true;
    }
    return passed_give_up(log);
}

leat_err leat_log_trouble(struct leat_log *log, char *out, size_t bytes)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    leat_err rc = log->state == LEAT_LOG_WAITING   ? LEAT_E_LOG_INCOMPLETE
                  : log->state == LEAT_LOG_DAMAGED ? LEAT_E_DAMAGED
                  : log->state == LEAT_LOG_STOPPED ? LEAT_E_DISK
                                                   : LEAT_OK;
    out[0] = '\0';
    if (rc != LEAT_OK) {
        snprintf(out, bytes, "%s", log->why);
        return rc;
    }
    if (places_words(log, out, bytes) > 0) return LEAT_E_DAMAGED;
    if (refused_words(log, out, bytes) > 0) return LEAT_E_DAMAGED;
    if (!log_front_is_unknown(log) && !log_backfill_runs(log) && !LEAT_BUG(DAMAGE_UNTOLD))
        log->damage_look = false;
    return LEAT_OK;
}
