/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends: see tail.h.
 *
 * Exactly one source decides the end: the coordinator's tail record, or the open replicas of the ownership that the
 * coordinator knows as opened. If this source is missing or contradictory, the log waits, and the reason is named; no
 * end is ever decided because it is the best that was found.
 *
 * An open replica of the current epoch and generation holds everything that was acked: an ack needs every copy of the
 * current generation, and the replica is such a copy. So any such replica is enough, whichever nodes do not answer;
 * more answers can only add bytes that were never acked. */
#include "coordinator/metadata/tail.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"

/* A question that is being answered. */
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

/* SUBTLE: a longer replica counts only where its node has compared its beginning by the prefix id. A closed replica
 * that ends at the same offset is not enough:
 *  1. X begins segment 5 at offset 90, writes ten records and closes the segment; no entry "opened" was committed. Y
 *     begins segment 5 anew, with ten different records, which are acked; the tail record is committed.
 *  2. Y and the backups with its replicas are down; X's copy is longer, and ends at 100, too.
 *  3. If X's copy counted, the log would get an owner as if its tail had been found, and no node would have the
 *     bytes. */
static bool has_bytes(const struct leat_tail_record *end, const struct leat_tail_row *row)
{
    if (end->prefix_id.bytes == 0) return false; /* it names none */
    if (row->segment != end->segment || row->state == LEAT_TAIL_MISSING) return false;
    return has(row, LEAT_TAIL_HAS_DECIDED) || leat_prefix_id_equal(row->prefix, end->prefix_id);
}

/* A whole segment of what is left of a log whose record says no more than how far it went: the only copy was read as
 * it stood when its end was given up. */
static bool is_left(const struct leat_tail_record *end, const struct leat_tail_row *row)
{
    return end->jumped && end->prefix_id.bytes == 0 && row->state == LEAT_TAIL_CLOSED &&
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

/* SUBTLE: given up bytes are not waited for, but remaining bytes are.
 *  1. The only copy of a log lost its end, and the loss is accepted; older segments are left, and consumers are at
 *     100.
 *  2. Its node dies before any append, and another node, without segments of the log, becomes the owner.
 *  3. The new owner calls 100 too low, and begins at the offset after the gap. When the first node owns the log again
 *     the log begins at 0, and so do consumers that were sent away.
 * So the log waits until the remaining bytes are found, or no node is left to ask. */
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
    else if (end->jumped && (it->all_heard || LEAT_BUG(LEFT_UNAWAITED)))
        ends(out, LEAT_TAIL_GIVEN_UP, *end);
    else
        waits(out, end->jumped ? LEAT_TAIL_LEFT_UNHEARD : LEAT_TAIL_NO_BYTES, end->segment);
}

/* ---- by open replicas ---- */

/* The epoch exactly: a higher epoch belongs to an owner that never committed "opened", a lower epoch to a former
 * owner. Either replica may be empty where acked batches should be. A replica of a lower generation was left out when
 * the generation was raised: acks went on without this replica. */
static bool is_current(const struct leat_log_record *record, const struct leat_tail_row *row)
{
    return row->state == LEAT_TAIL_OPEN &&
           (row->epoch.v == record->stamp_epoch.v || LEAT_BUG(OTHERS_EPOCH)) &&
           (row->generation >= record->stamp_version || LEAT_BUG(OLD_VERSION_COUNTS));
}

/* SUBTLE: N+1 becomes the head when N is closed on all replicas: only then does N+1 get a record with
 * its trailer (log_may_seal()), is N+1 closed, or N+2 started. Where N+1 was the head, an open replica of N lacks its
 * close entry because of damage, or because the entry did not get to the catalogue.
 *  1. The catalogue has segment 4 as open, since its close never got there. 5 to 7 are acked, and 7 is open.
 *  2. A bit flips in 4: its bytes do not show a close entry, so 4 is the lowest open segment.
 *  3. If the log ended at 4, 5 to 7 would be dropped.
 * A replica that a recovery attempt closed proves nothing: N+1 may only have been started then. */
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
            leat_prefix_id_equal(it->rows[i].prefix, row->previous))
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
 * Torn ends count when a majority of the log's replicas has them, since damage hits a minority. */
static bool is_sure(const struct asked *it, uint64_t segment)
{
    uint32_t nodes = 0;
    for (size_t i = 0; i < it->count; i++) {
        const struct leat_tail_row *row = &it->rows[i];
        if (!is_candidate(it, i) || row->segment != segment) continue;
        if (!has(row, LEAT_TAIL_TORN) || LEAT_BUG(TORN_COUNTS)) return true;
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= it->rows[k].node == row->node && it->rows[k].segment == segment &&
                     is_candidate(it, k);
        nodes += !again;
    }
    return nodes >= it->majority;
}

/* The longest replica of the lowest segment that has an open replica. sure: only replicas that prove how much was
 * acked. */
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

/* SUBTLE: when all nodes were heard, the lowest open segment is skipped if another node has it closed.
 *  1. The close entry of segment 5 is damaged on X; B has 5 closed. The head, 6, is on B and C.
 *  2. The power goes, which tears B's last write to 6. C does not come back, and is given up.
 *  3. No open replica is sure. If the lowest were taken, the log would end with 5, and acked records in 6 would be
 *     dropped. */
static const struct leat_tail_row *all_there_is(const struct asked *it,
                                                const struct leat_tail_row *first)
{
    const struct leat_tail_row *best = first;
    for (size_t i = 0; i < it->count; i++)
        if (is_candidate(it, i) && it->rows[i].segment > best->segment &&
            follows_closed(it, &it->rows[i]))
            best = &it->rows[i];
    /* The replica found above may have only a start entry, since a start entry is enough to show that the log went
     * on. */
    for (size_t i = 0; i < it->count; i++)
        if (is_candidate(it, i) && it->rows[i].segment == best->segment &&
            it->rows[i].prefix.bytes > best->prefix.bytes)
            best = &it->rows[i];
    return best;
}

/* The replica that decides the end of the log. NULL: there are open replicas, but none decides. A torn replica does
 * not make its segment the last if a higher segment is open and the segment before the higher segment is closed
 * somewhere: then the damage hit a close entry. */
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

/* The same writer wrote both replicas, so one has damage that no checksum showed. */
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
             (struct leat_tail_record){.segment = end->segment,
                                       .prefix_id = end->prefix,
                                       .next_offset = end->next_offset});
    for (size_t i = 0; i < it->count && out->ends; i++)
        if (it->rows[i].state != LEAT_TAIL_MISSING && it->rows[i].segment == end->segment &&
            leat_prefix_id_equal(it->rows[i].prefix, end->prefix))
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
    return end && end->prefix_id.bytes > 0 && row->segment == end->segment &&
           row->epoch.v != record->stamp_epoch.v && !LEAT_BUG(BEHIND_END_COUNTS);
}

/* SUBTLE: every prefix of this epoch's bytes counts. Of other epochs only bytes before the end that was decided when
 * this epoch began count: that end is committed, even where no replica that reaches it is left.
 *  1. X closes segment 5 at 100, and dies; only records before 90 were acked, and Y's recovery ends the log at 90. Y
 *     cuts its replica at 90 and goes on in segment 6; consumers read the records that Y acks.
 *  2. All nodes lose power. Y had all records in memory only; X, which was down, has segment 5 up to 100 in its file.
 *  3. The loss is accepted. If X's replica counted, ten records that were never acked would get offsets at which
 *     consumers have read other records.
 * Replicas of earlier segments that another epoch left open, or that a recovery attempt cut, are as uncertain. */
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

/* SUBTLE: the later owner's replica is right, however few nodes have it.
 *  1. X's segment 5 of epoch 3 is on X and B, and both are down. An operator accepts the loss: Y, in epoch 4, begins
 *     a segment 5 of its own after the offset gap, and acks.
 *  2. Y's segment 6 is lost, and given up. X and B are back. Before the second gap segment 5 is left: X's on two
 *     nodes, Y's on one.
 *  3. If more nodes won, or a complete segment before a part, Y's acked records in segment 5 would be dropped, and
 *     records that were given up would be back.
 * A later owner has seen where the log's end was decided: an older epoch's segment of this number has nothing that
 * counts. */
int leat_tail_order(const struct leat_tail_row *a, const struct leat_tail_row *b)
{
    if (a->segment != b->segment) return a->segment < b->segment ? -1 : 1;
    return (a->epoch.v > b->epoch.v) - (a->epoch.v < b->epoch.v);
}

/* Of different closed replicas the shortest: their owner was fenced before a recovery cut any, and each cut kept all
 * records acked by then. Additional bytes in longer replicas were never acked. leat_below_best() chooses among
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
         (struct leat_tail_record){.segment = best->segment,
                                   .prefix_id = best->prefix,
                                   .next_offset = best->next_offset});
    for (size_t i = 0; i < count; i++)
        if (rows[i].state != LEAT_TAIL_MISSING && rows[i].segment == best->segment &&
            leat_prefix_id_equal(rows[i].prefix, best->prefix))
            hold(out, i);
    if (!lies_at_end(record, best)) return;
    const struct leat_tail_record *end = leat_log_decided(record);
    out->end.prefix_id = end->prefix_id; /* the replica's bytes may go on after the end */
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
                 segment, record->tail.prefix_id.bytes, record->tail.prefix_id.crc);
    } else {
        snprintf(text, LEAT_TAIL_TEXT_BYTES, formats[tail->reason], segment);
    }
    return text;
}
