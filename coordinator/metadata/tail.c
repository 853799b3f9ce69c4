/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends: see tail.h.
 *
 * Exactly one thing may say it: the coordinator's record of an end, or the open replicas of the ownership that the
 * coordinator knows as opened. What contradicts that is named and waited for; nothing is ever taken because it is
 * the best that was found.
 *
 * An open replica of the current epoch and generation holds everything that was acked: an ack needs every copy of
 * the current generation, and the replica is one of them. So any one is enough, whichever nodes do not answer; more
 * answers can only add bytes that nobody was promised. */
#include "coordinator/metadata/tail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"

/* One question while it is answered. */
struct asked {
    const struct leat_log_record *record;
    const struct leat_tail_row *rows;
    size_t count;
    uint32_t majority;
    bool all_heard;
    uint64_t candidates[LEAT_TAIL_ROWS_MAX / 64]; /* by_open(): bit i: rows[i] is one */
};

static bool has(const struct leat_tail_row *row, enum leat_tail_flag flag)
{
    return (row->flags & (unsigned)flag) != 0;
}

static void ends(struct leat_tail *out, enum leat_tail_reason reason, struct leat_tail_record end)
{
    out->ends = true;
    out->reason = reason;
    out->end = end;
}

static void waits(struct leat_tail *out, enum leat_tail_reason reason, uint64_t segment)
{
    out->reason = reason;
    out->segment = segment;
}

static void hold(struct leat_tail *out, size_t at)
{
    out->holders[at / 64] |= UINT64_C(1) << at % 64;
}

/* ---- by the coordinator's record ---- */

/* SUBTLE: a longer replica counts only where its node has compared its beginning by the prefix id. That it is closed
 * and ends at the same offset is not enough:
 *  1. X begins segment 5 at offset 90, writes ten records and closes it, unheard: it was never committed as
 *     opened. Y begins it anew, with ten others, which are acked, and its end is committed.
 *  2. Y and the nodes with its copies are away; X's copy is longer, and ends at 100, too.
 *  3. Were X's copy counted, the log would be given away as one that was found, and no node would have its bytes. */
static bool has_bytes(const struct leat_tail_record *end, const struct leat_tail_row *row)
{
    if (end->extent.bytes == 0) return false; /* it names none */
    if (row->segment != end->segment || row->state == LEAT_TAIL_MISSING) return false;
    return has(row, LEAT_TAIL_HAS_DECIDED) || leat_extent_equal(row->prefix, end->extent);
}

/* A whole segment of what is left of a log whose record says no more than how far it went: the only copy was read as
 * it stood when its end was given up. */
static bool is_left(const struct leat_tail_record *end, const struct leat_tail_row *row)
{
    return end->jumped && end->extent.bytes == 0 && row->state == LEAT_TAIL_CLOSED &&
           row->prefix.bytes > 0 && row->segment <= end->segment;
}

static bool is_last_left(const struct asked *it, size_t at)
{
    const struct leat_tail_record *end = &it->record->tail;
    if (!is_left(end, &it->rows[at])) return false;
    for (size_t i = 0; i < it->count; i++)
        if (is_left(end, &it->rows[i]) && it->rows[i].segment > it->rows[at].segment) return false;
    return true;
}

/* SUBTLE: what was given up is not asked for, but what was left is.
 *  1. The only copy of a log lost its end, and the loss is accepted; older segments are left, and readers at 100.
 *  2. Its node dies before anything was appended, and another gets the log, which has nothing of it.
 *  3. That one calls 100 too low, and begins where offsets jumped to; when the first node has the log again it begins
 *     at 0, and so do readers that were sent away.
 * So it waits until what is left was found, or no node is left to ask. */
static void by_record(const struct asked *it, struct leat_tail *out)
{
    const struct leat_tail_record *end = &it->record->tail;
    bool found = false;
    for (size_t i = 0; i < it->count; i++) {
        bool bytes = has_bytes(end, &it->rows[i]);
        found |= bytes;
        if (bytes || is_last_left(it, i)) hold(out, i);
    }
    if (end->segment == UINT64_MAX)
        ends(out, LEAT_TAIL_EMPTY, *end);
    else if (found)
        ends(out, LEAT_TAIL_RECORDED, *end);
    else if (end->jumped && it->all_heard)
        ends(out, LEAT_TAIL_GIVEN_UP, *end);
    else
        waits(out, end->jumped ? LEAT_TAIL_LEFT_UNHEARD : LEAT_TAIL_NO_BYTES, end->segment);
}

/* ---- by open replicas ---- */

/* The epoch exactly: a higher one is an ownership that never committed "opened", a lower one an owner of the past.
 * Either may be empty where acked batches should be. A lower generation is of a copy that was left out when it was
 * raised: acks went on without that copy. */
static bool is_current(const struct leat_log_record *record, const struct leat_tail_row *row)
{
    return row->state == LEAT_TAIL_OPEN &&
           (row->epoch.v == record->stamp_epoch.v || LEAT_BUG(OTHERS_EPOCH)) &&
           (row->generation >= record->stamp_version || LEAT_BUG(OLD_VERSION_COUNTS));
}

/* SUBTLE: N+1 becomes the head when N is closed on all its copies: not before that does it get a record
 * (log_may_seal()), is it closed, or N+2 started. Where N+1 was the head, an open replica of N is one whose close
 * entry was damaged, or did not get to its catalogue.
 *  1. The row of segment 4 says that it was being written, as what closed it never got to the catalogue. 5 to 7 are
 *     acked, and 7 is open.
 *  2. A bit flips in 4: it is not closed by its bytes, so it is open, and the lowest.
 *  3. Did the log end there 5 to 7 would be dropped.
 * A copy that an attempt to recover closed says nothing of that: there N+1 may have been started, and no more. */
bool leat_tail_went_on(const struct leat_tail_row *row, const struct leat_tail_row *later)
{
    if (later->state == LEAT_TAIL_MISSING || later->segment <= row->segment ||
        later->epoch.v != row->epoch.v || later->generation < row->generation)
        return false;
    bool closed = later->state == LEAT_TAIL_CLOSED && !has(later, LEAT_TAIL_PROVISIONAL);
    return later->segment > row->segment + 1 || closed || later->next_offset > later->base_offset;
}

/* Open replicas that may say where the log ends: of segments after which it did not go on. */
static void candidates_find(struct asked *it)
{
    for (size_t i = 0; i < it->count; i++) {
        bool is = is_current(it->record, &it->rows[i]);
        for (size_t k = 0; is && k < it->count; k++)
            is = !leat_tail_went_on(&it->rows[i], &it->rows[k]);
        if (is) it->candidates[i / 64] |= UINT64_C(1) << i % 64;
    }
}

static bool is_candidate(const struct asked *it, size_t at)
{
    return it->candidates[at / 64] >> at % 64 & 1;
}

static bool previous_found(const struct asked *it, const struct leat_tail_row *row)
{
    if (row->previous.bytes == 0) return true; /* there is none to name */
    for (size_t i = 0; i < it->count; i++)
        if (it->rows[i].state != LEAT_TAIL_MISSING && it->rows[i].segment + 1 == row->segment &&
            leat_extent_equal(it->rows[i].prefix, row->previous))
            return true;
    return false;
}

/* The segment before it was closed, so the log went on in this one. */
static bool follows_closed(const struct asked *it, const struct leat_tail_row *row)
{
    if (has(row, LEAT_TAIL_ONLY_START)) return previous_found(it, row);
    for (size_t i = 0; i < it->count; i++)
        if (it->rows[i].state == LEAT_TAIL_CLOSED && it->rows[i].segment + 1 == row->segment &&
            it->rows[i].next_offset == row->base_offset)
            return true;
    return false;
}

/* SUBTLE: an open replica with a torn end says nothing alone.
 *  1. X and B have acked 0..100; a bit flips in B's file, in what came last.
 *  2. Both lose their power, and B is up first: a valid prefix of 90, as a torn write would have left it.
 *  3. The log ends at 90; X comes up, and its copy is too long.
 * Torn ones do say it when most of the log's copies have them, since damage is on a minority. */
static bool is_sure(const struct asked *it, uint64_t segment)
{
    uint32_t nodes = 0;
    for (size_t i = 0; i < it->count; i++) {
        const struct leat_tail_row *row = &it->rows[i];
        if (!is_candidate(it, i) || row->segment != segment) continue;
        if (!has(row, LEAT_TAIL_TORN) || LEAT_BUG(RAGGED_COUNTS)) return true;
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= it->rows[k].node == row->node && it->rows[k].segment == segment &&
                     is_candidate(it, k);
        nodes += !again;
    }
    return nodes >= it->majority;
}

/* The longest of the lowest segment that has an open replica. sure: of those that say how much was acked. */
static const struct leat_tail_row *lowest(const struct asked *it, bool sure)
{
    const struct leat_tail_row *best = NULL;
    for (size_t i = 0; i < it->count; i++) {
        const struct leat_tail_row *row = &it->rows[i];
        if (!is_candidate(it, i)) continue;
        if (sure && !is_sure(it, row->segment)) continue;
        if (!best || row->segment < best->segment ||
            (row->segment == best->segment && row->prefix.bytes > best->prefix.bytes))
            best = row;
    }
    if (best || !LEAT_BUG(CLOSED_IS_END)) return best;
    for (size_t i = 0; i < it->count; i++)
        if (!best || it->rows[i].segment > best->segment) best = &it->rows[i];
    return best;
}

/* SUBTLE: when all were heard the lowest is passed over where it was closed elsewhere.
 *  1. Of segment 5 the close entry is damaged on X, and B has it closed. The head, 6, is on B and C.
 *  2. The power goes, which tears B's last write to 6. C does not come back, and is given up.
 *  3. No open replica is sure. Were the lowest taken the log would end with 5, and what was acked in 6 be dropped. */
static const struct leat_tail_row *all_there_is(const struct asked *it,
                                                const struct leat_tail_row *first)
{
    const struct leat_tail_row *best = first;
    for (size_t i = 0; i < it->count; i++)
        if (is_candidate(it, i) && it->rows[i].segment > best->segment &&
            follows_closed(it, &it->rows[i]))
            best = &it->rows[i];
    /* The one that shows that the log went on there may have no more than its start, which needs less to show it. */
    for (size_t i = 0; i < it->count; i++)
        if (is_candidate(it, i) && it->rows[i].segment == best->segment &&
            it->rows[i].prefix.bytes > best->prefix.bytes)
            best = &it->rows[i];
    return best;
}

/* The replica that says where the log ends. NULL: there are open ones, but they do not.
 * A segment is not the last because of a torn replica where a higher one is there and what lies between is closed
 * somewhere: it was the close entry that the damage hit. */
static const struct leat_tail_row *
end_find(const struct asked *it, const struct leat_tail_row *first, enum leat_tail_reason *reason)
{
    const struct leat_tail_row *best = lowest(it, true);
    if (best && (best->segment == first->segment || follows_closed(it, best))) return best;
    *reason = LEAT_TAIL_BY_ALL;
    return it->all_heard ? all_there_is(it, first) : NULL;
}

static void no_open(const struct asked *it, struct leat_tail *out)
{
    waits(out, LEAT_TAIL_NO_OPEN, 0);
    for (size_t i = 0; i < it->count; i++) {
        const struct leat_tail_row *row = &it->rows[i];
        if (row->state == LEAT_TAIL_MISSING) {
            out->missing++;
            if (row->segment > out->segment) out->segment = row->segment;
        }
        if (row->state != LEAT_TAIL_OPEN) continue;
        if (row->epoch.v != it->record->stamp_epoch.v)
            out->other++;
        else if (row->generation < it->record->stamp_version)
            out->older++;
    }
}

/* One writer wrote both, so one is damaged in a way that no checksum showed. */
static bool is_contradicted(const struct asked *it, const struct leat_tail_row *end)
{
    for (size_t i = 0; i < it->count; i++)
        if (is_candidate(it, i) && it->rows[i].segment == end->segment &&
            it->rows[i].prefix.bytes == end->prefix.bytes &&
            it->rows[i].prefix.crc != end->prefix.crc)
            return true;
    return false;
}

static void by_open(struct asked *it, struct leat_tail *out)
{
    enum leat_tail_reason reason = LEAT_TAIL_BY_OPEN;
    candidates_find(it);
    const struct leat_tail_row *first = lowest(it, false);
    if (!first) {
        no_open(it, out);
        return;
    }
    const struct leat_tail_row *end = end_find(it, first, &reason);
    if (!end)
        waits(out, LEAT_TAIL_ONLY_TORN, first->segment);
    else if (is_contradicted(it, end))
        waits(out, LEAT_TAIL_DIFFERENT, end->segment);
    else if (has(end, LEAT_TAIL_ONLY_START) && !previous_found(it, end))
        waits(out, LEAT_TAIL_NO_PREVIOUS, end->segment);
    else
        ends(out, reason,
             (struct leat_tail_record){
                 .segment = end->segment, .extent = end->prefix, .next_offset = end->next_offset});
    for (size_t i = 0; i < it->count && out->ends; i++)
        if (it->rows[i].state != LEAT_TAIL_MISSING && it->rows[i].segment == end->segment &&
            leat_extent_equal(it->rows[i].prefix, end->prefix))
            hold(out, i);
}

void leat_tail_decide(const struct leat_tail_question *question, const struct leat_tail_row *rows,
                      size_t count, struct leat_tail *out)
{
    struct asked it = {.record = question->record,
                       .rows = rows,
                       .count = count,
                       .majority = question->majority,
                       .all_heard = question->all_heard};
    LEAT_ASSERT_CMP(count, <=, LEAT_TAIL_ROWS_MAX);
    *out = (struct leat_tail){0};
    if (question->record->opened)
        by_open(&it, out);
    else
        by_record(&it, out);
}

/* ---- what is left where no node holds the end ---- */

/* The replica is of the segment in which the log was decided to end, by another writer than that of the record's
 * epoch. */
static bool lies_at_end(const struct leat_log_record *record, const struct leat_tail_row *row)
{
    const struct leat_tail_record *end = leat_log_decided(record);
    return end && end->extent.bytes > 0 && row->segment == end->segment &&
           row->epoch.v != record->stamp_epoch.v && !LEAT_BUG(BEHIND_END_COUNTS);
}

/* SUBTLE: prefixes of one writer's bytes are all right. Of other epochs only what lies before the offset at which the
 * log was decided to end when this epoch began, which is committed: no copy that has it needs to be left.
 *  1. X closes segment 5 at 100, and dies; what it acked of that ends at 90, and so Y's recovery ends the log. Y cuts
 *     its copy there, goes on in 6, and others read what Y acks.
 *  2. All lose their power. Y had it all in memory; X, which was away, has segment 5 up to 100 in its file.
 *  3. The loss is accepted. Were X's copy what is left, ten records that nobody was promised would stand at offsets
 *     at which others were read.
 * Before that segment, what another epoch left open, or an attempt to end it cut, is as uncertain. */
bool leat_tail_may_be_left(const struct leat_log_record *record, const struct leat_tail_row *row)
{
    const struct leat_tail_record *end = leat_log_decided(record);
    if (row->state == LEAT_TAIL_MISSING || row->prefix.bytes == 0) return false;
    if (row->epoch.v == record->stamp_epoch.v) return true;
    if (lies_at_end(record, row)) return has_bytes(end, row);
    bool after = end && (end->segment == UINT64_MAX || row->segment > end->segment);
    if (after && !LEAT_BUG(BEHIND_END_COUNTS)) return false;
    return row->state == LEAT_TAIL_CLOSED && !has(row, LEAT_TAIL_PROVISIONAL);
}

/* SUBTLE: the later owner's is right, however few have it.
 *  1. X's segment 5 of epoch 3 is on X and B, and both are away. An operator gives it up: Y, in epoch 4, begins a
 *     segment 5 of its own where offsets jumped to, and acks.
 *  2. Y's segment 6 is lost, and given up. X and B are back. What is left before the second jump is segment 5: X's on
 *     two nodes, Y's on one.
 *  3. Did more nodes win, or a whole one before a part, what Y acked in segment 5 would be dropped, and what was given
 *     up be there again.
 * Whoever owns a log later has seen where its end was decided: an older epoch's segment of that number has nothing
 * that counts. */
int leat_tail_order(const struct leat_tail_row *a, const struct leat_tail_row *b)
{
    if (a->segment != b->segment) return a->segment < b->segment ? -1 : 1;
    return (a->epoch.v > b->epoch.v) - (a->epoch.v < b->epoch.v);
}

/* Of closed replicas that differ, the shortest: their owner was fenced before a recovery cut any, and each cut kept all
 * that was acknowledged by then. What is more in others was acknowledged by nobody. leat_below_best() chooses among
 * replicas of a segment after which an owner went on: that owner may have kept, and shown, more than an earlier cut. */
static bool is_more_left(const struct leat_tail_row *row, const struct leat_tail_row *best)
{
    bool closed = row->state == LEAT_TAIL_CLOSED, best_closed = best->state == LEAT_TAIL_CLOSED;
    int order = leat_tail_order(row, best);
    if (order != 0) return order > 0;
    if (closed != best_closed) return closed; /* all of it */
    return closed ? row->prefix.bytes < best->prefix.bytes : row->prefix.bytes > best->prefix.bytes;
}

void leat_tail_left(const struct leat_log_record *record, const struct leat_tail_row *rows,
                    size_t count, struct leat_tail *out)
{
    const struct leat_tail_row *best = NULL;
    LEAT_ASSERT_CMP(count, <=, LEAT_TAIL_ROWS_MAX);
    *out = (struct leat_tail){0};
    for (size_t i = 0; i < count; i++)
        if (leat_tail_may_be_left(record, &rows[i]) && (!best || is_more_left(&rows[i], best)))
            best = &rows[i];
    if (!best) {
        waits(out, LEAT_TAIL_NOTHING_LEFT, 0);
        return;
    }
    ends(out, LEAT_TAIL_LEFT,
         (struct leat_tail_record){
             .segment = best->segment, .extent = best->prefix, .next_offset = best->next_offset});
    for (size_t i = 0; i < count; i++)
        if (rows[i].state != LEAT_TAIL_MISSING && rows[i].segment == best->segment &&
            leat_extent_equal(rows[i].prefix, best->prefix))
            hold(out, i);
    if (!lies_at_end(record, best)) return;
    const struct leat_tail_record *end = leat_log_decided(record);
    out->end.extent = end->extent; /* it may go on after that */
    if (!end->jumped) out->end.next_offset = end->next_offset;
}

/* ---- for operators ---- */

static void no_open_text(const struct leat_tail *tail, const struct leat_log_record *record,
                         char text[LEAT_TAIL_TEXT_BYTES])
{
    char also[128] = "", lost[64] = "";
    if (tail->missing > 0)
        snprintf(lost, sizeof lost, "; %" PRIu32 " lost the bytes of segment %" PRIu64,
                 tail->missing, tail->segment);
    if (tail->older + tail->other + tail->missing > 0)
        snprintf(also, sizeof also,
                 " (%" PRIu32 " of older versions, %" PRIu32 " of other epochs%s)", tail->older,
                 tail->other, lost);
    snprintf(text, LEAT_TAIL_TEXT_BYTES,
             "no open segment of epoch %" PRIu32 ", version %" PRIu32 " was found%s",
             record->stamp_epoch.v, record->stamp_version, also);
}

const char *leat_tail_text(const struct leat_tail *tail, const struct leat_log_record *record,
                           char text[LEAT_TAIL_TEXT_BYTES])
{
    static const char *const formats[] = {
        [LEAT_TAIL_EMPTY] = "the log has no segment yet",
        [LEAT_TAIL_RECORDED] = "segment %" PRIu64 " has the bytes that the coordinator recorded",
        [LEAT_TAIL_GIVEN_UP] = "what is missing of segment %" PRIu64 " was given up",
        [LEAT_TAIL_BY_OPEN] = "segment %" PRIu64 " is open, of the current epoch and version",
        [LEAT_TAIL_BY_ALL] = "all nodes were heard, and no more than segment %" PRIu64 " is there",
        [LEAT_TAIL_LEFT] = "no more than segment %" PRIu64 " is left",
        [LEAT_TAIL_LEFT_UNHEARD] = "what was left of it when its loss was accepted may be on a "
                                   "node that has not answered",
        [LEAT_TAIL_ONLY_TORN] = "segment %" PRIu64 " ends in a torn write or in damage wherever it "
                                "was found, and some nodes have not been heard",
        [LEAT_TAIL_DIFFERENT] = "two replicas of segment %" PRIu64 " differ in their bytes",
        [LEAT_TAIL_NO_PREVIOUS] =
            "segment %" PRIu64 " has just begun, and the one before it was not "
            "found",
        [LEAT_TAIL_NOTHING_LEFT] = "nothing is left of it",
    };
    uint64_t segment = tail->ends ? tail->end.segment : tail->segment;
    if (tail->reason == LEAT_TAIL_NO_OPEN) {
        no_open_text(tail, record, text);
    } else if (tail->reason == LEAT_TAIL_NO_BYTES) {
        snprintf(text, LEAT_TAIL_TEXT_BYTES,
                 "segment %" PRIu64 " (%" PRIu32 " bytes, CRC %08" PRIx32 ") was not found",
                 segment, record->tail.extent.bytes, record->tail.extent.crc);
    } else {
        snprintf(text, LEAT_TAIL_TEXT_BYTES, formats[tail->reason], segment);
    }
    return text;
}
