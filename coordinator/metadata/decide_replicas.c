/* Where does a log end, by what many nodes hold? Pure; the rule is metadata/decide.c's.
 *
 * A mark holds everything that was acked: acks need every copy of the current version, and a mark is
 * one of them. So any one mark is enough, whichever nodes do not answer; more answers can only add
 * bytes that nobody was promised.
 *
 * SUBTLE: but not one whose end is ragged. (1) X and B have acked 0..100; a bit flips in B's file, in
 * what came last. (2) Both lose their power, and B is up first: a valid prefix of 90, as a torn write
 * would have left it. (3) The log ends at 90; X comes up, and its copy is too long. So such marks say
 * nothing alone. They do when most of the log's copies have them, since damage is on a minority, or
 * when everybody has been heard: then the longest is all that there is. Nor is a segment the log's last
 * because of a ragged mark, where a higher one is there and what lies between is closed somewhere: it was
 * the close entry that the damage hit. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bug.h"
#include "coordinator/metadata/decide.h"

static bool extent_equal(struct leat_extent a, struct leat_extent b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

static void wait_for(struct leat_log_decision *decision, const char *why)
{
    decision->kind = LEAT_DECIDED_WAIT;
    snprintf(decision->why, sizeof decision->why, "%s", why);
}

/* SUBTLE: a longer one only where its node has compared what is in front, by (length, CRC): row->holds_tail.
 * That it is closed and ends at the same offset is not enough, as it is for an owner's own (metadata/decide.c), which
 * one writer wrote:
 *  1. X begins segment 5 behind offset 90, writes ten records and closes it, unheard: it was never committed
 *     as opened. Y begins it anew, with ten others, which are acked, and its end is committed.
 *  2. Y and whoever has its copy are away; X's copy is longer, and ends at 100, too.
 *  3. Were it counted, the log would be given away as one that was found, and prepared from what nobody has. */
bool co_row_holds(const struct leat_tail_record *tail, const struct leat_replica_row *row)
{
    if (tail->extent.bytes == 0) return false; /* it names none */
    if (row->segment != tail->segment || row->kind == LEAT_REPLICA_LOST) return false;
    return row->holds_tail || extent_equal(row->extent, tail->extent);
}

/* Is it a whole segment of what is left of a log that says no more than how far it went? So it is where the
 * only copy was read as it stood when its end was given up. */
static bool may_be_left(const struct leat_tail_record *tail, const struct leat_replica_row *row)
{
    return tail->jumped && tail->extent.bytes == 0 && row->kind == LEAT_REPLICA_CLOSED &&
           row->extent.bytes > 0 && row->segment <= tail->segment;
}

static bool is_last_left(const struct leat_tail_record *tail,
                         const struct leat_replica_row *const *rows, size_t count, size_t at)
{
    if (!may_be_left(tail, rows[at])) return false;
    for (size_t i = 0; i < count; i++)
        if (may_be_left(tail, rows[i]) && rows[i]->segment > rows[at]->segment) return false;
    return true;
}

/* SUBTLE: what was given up is not asked for, but what was left is. (1) The only copy of a log lost its
 * end, and the loss is accepted; older segments are left, and readers at 100. (2) Its node dies before
 * anything was appended, and another gets the log, which has nothing of it. (3) That one calls 100 too
 * low, and begins where offsets jumped to; when the first node has the log again it begins at 0, and so
 * do readers that were sent away. So it waits until what is left was found, or nobody is left to ask. */
static void by_tail(const struct leat_tail_record *tail, const struct leat_replica_row *const *rows,
                    size_t count, const struct co_hearing *heard,
                    struct leat_log_decision *decision, bool *out_holds)
{
    bool found = tail->segment == UINT64_MAX || (tail->jumped && heard->all);
    for (size_t i = 0; i < count; i++) {
        bool holds = co_row_holds(tail, rows[i]);
        out_holds[i] = holds || is_last_left(tail, rows, count, i);
        found = found || holds;
    }
    if (found) {
        decision->kind = LEAT_DECIDED_TAIL;
        decision->tail = *tail;
        return;
    }
    char why[160];
    if (tail->jumped)
        snprintf(why, sizeof why,
                 "what was left of it when its loss was accepted may be on a node that has not "
                 "answered");
    else
        snprintf(why, sizeof why,
                 "segment %" PRIu64 " (%" PRIu32 " bytes, CRC %08" PRIx32
                 ") is on none of the nodes that answer",
                 tail->segment, tail->extent.bytes, tail->extent.crc);
    wait_for(decision, why);
}

static bool is_mark(const struct leat_log_record *record, const struct leat_replica_row *row)
{
    return row->kind == LEAT_REPLICA_MARK &&
           (row->epoch.v == record->stamp_epoch.v || LEAT_BUG(OTHERS_EPOCH)) &&
           (row->version >= record->stamp_version || LEAT_BUG(OLD_VERSION_COUNTS));
}

static bool predecessor_found(const struct leat_replica_row *mark,
                              const struct leat_replica_row *const *rows, size_t count)
{
    if (mark->previous.bytes == 0) return true; /* there is none to name */
    for (size_t i = 0; i < count; i++)
        if (rows[i]->kind != LEAT_REPLICA_LOST && rows[i]->segment + 1 == mark->segment &&
            extent_equal(rows[i]->extent, mark->previous))
            return true;
    return false;
}

/* It was closed, so the log went on in the next one, with this. */
static bool closed_before(const struct leat_replica_row *mark,
                          const struct leat_replica_row *const *rows, size_t count)
{
    if (mark->only_start) return predecessor_found(mark, rows, count);
    for (size_t i = 0; i < count; i++)
        if (rows[i]->kind == LEAT_REPLICA_CLOSED && rows[i]->segment + 1 == mark->segment &&
            rows[i]->next_offset == mark->base_offset)
            return true;
    return false;
}

/* Do the marks of that segment say how much of it was acked? */
static bool is_sure(const struct leat_log_record *record, uint64_t segment,
                    const struct leat_replica_row *const *rows, size_t count,
                    const struct co_hearing *heard)
{
    uint32_t nodes = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_mark(record, rows[i]) || rows[i]->segment != segment) continue;
        if (!rows[i]->ragged || LEAT_BUG(RAGGED_COUNTS)) return true;
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= heard->nodes[k] == heard->nodes[i] && rows[k]->segment == segment &&
                     is_mark(record, rows[k]);
        nodes += !again;
    }
    return nodes >= heard->enough;
}

/* heard NULL: however ragged they are. */
static const struct leat_replica_row *mark_choose(const struct leat_log_record *record,
                                                  const struct leat_replica_row *const *rows,
                                                  size_t count, const struct co_hearing *heard)
{
    const struct leat_replica_row *best = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!is_mark(record, rows[i])) continue;
        if (heard && !is_sure(record, rows[i]->segment, rows, count, heard)) continue;
        if (!best || rows[i]->segment < best->segment ||
            (rows[i]->segment == best->segment && rows[i]->extent.bytes > best->extent.bytes))
            best = rows[i];
    }
    if (best || !LEAT_BUG(CLOSED_IS_END)) return best;
    for (size_t i = 0; i < count; i++)
        if (!best || rows[i]->segment > best->segment) best = rows[i];
    return best;
}

/* SUBTLE: when all were heard the lowest is passed over, too, where it was closed elsewhere.
 *  1. Of segment 5 the close entry is damaged on X, and B has it closed. The head, 6, is on B and C.
 *  2. The power goes, which tears B's last write to 6. C does not come back, and is given up.
 *  3. No mark is sure. Were the lowest taken the log would end with 5, and what was acked in 6 be dropped. */
static const struct leat_replica_row *all_there_is(const struct leat_log_record *record,
                                                   const struct leat_replica_row *lowest,
                                                   const struct leat_replica_row *const *rows,
                                                   size_t count)
{
    const struct leat_replica_row *best = lowest;
    for (size_t i = 0; i < count; i++)
        if (is_mark(record, rows[i]) && rows[i]->segment > best->segment &&
            closed_before(rows[i], rows, count))
            best = rows[i];
    /* The one that shows that the log went on there may have no more than its start, which needs less to show it. */
    for (size_t i = 0; i < count; i++)
        if (is_mark(record, rows[i]) && rows[i]->segment == best->segment &&
            rows[i]->extent.bytes > best->extent.bytes)
            best = rows[i];
    return best;
}

/* The mark that says where the log ends, or NULL: those that there are do not. */
static const struct leat_replica_row *end_find(const struct leat_log_record *record,
                                               const struct leat_replica_row *const *rows,
                                               size_t count, const struct co_hearing *heard)
{
    const struct leat_replica_row *best = mark_choose(record, rows, count, heard);
    const struct leat_replica_row *lowest = mark_choose(record, rows, count, NULL);
    if (best && (best->segment == lowest->segment || closed_before(best, rows, count))) return best;
    return heard->all ? all_there_is(record, lowest, rows, count) : NULL;
}

static void no_mark(const struct leat_log_record *record,
                    const struct leat_replica_row *const *rows, size_t count,
                    struct leat_log_decision *decision)
{
    unsigned older = 0, other = 0, lost = 0;
    uint64_t segment = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->kind == LEAT_REPLICA_LOST) {
            lost++;
            if (rows[i]->segment > segment) segment = rows[i]->segment;
        }
        if (rows[i]->kind != LEAT_REPLICA_MARK) continue;
        if (rows[i]->epoch.v != record->stamp_epoch.v)
            other++;
        else
            older++;
    }
    char why[200], also[80] = "";
    if (lost) snprintf(also, sizeof also, "; %u lost the bytes of segment %" PRIu64, lost, segment);
    snprintf(why, sizeof why,
             "no open segment of epoch %" PRIu32 ", version %" PRIu32
             " is on the nodes that answer (%u of older versions, %u of other epochs%s)",
             record->stamp_epoch.v, record->stamp_version, older, other, also);
    wait_for(decision, why);
}

static void by_marks(const struct leat_log_record *record,
                     const struct leat_replica_row *const *rows, size_t count,
                     const struct co_hearing *heard, struct leat_log_decision *decision,
                     bool *out_holds)
{
    char why[200];
    const struct leat_replica_row *best = mark_choose(record, rows, count, NULL);
    if (!best) {
        no_mark(record, rows, count, decision);
        return;
    }
    uint64_t lowest = best->segment;
    best = end_find(record, rows, count, heard);
    if (!best) {
        snprintf(
            why, sizeof why,
            "segment %" PRIu64
            " ends in a torn write or in damage wherever it was found, and some nodes have not "
            "been heard",
            lowest);
        wait_for(decision, why);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (is_mark(record, rows[i]) && rows[i]->segment == best->segment &&
            rows[i]->extent.bytes == best->extent.bytes &&
            rows[i]->extent.crc != best->extent.crc) {
            /* One writer wrote both, so one is damaged in a way that no checksum showed. */
            snprintf(why, sizeof why, "two replicas of segment %" PRIu64 " differ in their bytes",
                     best->segment);
            wait_for(decision, why);
            return;
        }
    if (best->only_start && !predecessor_found(best, rows, count)) {
        snprintf(why, sizeof why,
                 "segment %" PRIu64
                 " has just begun, and the one before it is on none of the nodes that answer",
                 best->segment);
        wait_for(decision, why);
        return;
    }
    decision->kind = LEAT_DECIDED_TAIL;
    decision->tail = (struct leat_tail_record){
        .segment = best->segment, .extent = best->extent, .next_offset = best->next_offset};
    for (size_t i = 0; i < count; i++)
        out_holds[i] = rows[i]->kind != LEAT_REPLICA_LOST && rows[i]->segment == best->segment &&
                       extent_equal(rows[i]->extent, best->extent);
}

void co_decide_replicas(struct leat_log_ref log, const struct leat_log_record *record,
                        const struct leat_replica_row *const *rows, size_t count,
                        const struct co_hearing *heard, struct leat_log_decision *out_decision,
                        bool *out_holds)
{
    *out_decision = (struct leat_log_decision){.log = log};
    for (size_t i = 0; i < count; i++)
        out_holds[i] = false;
    if (record->opened)
        by_marks(record, rows, count, heard, out_decision, out_holds);
    else
        by_tail(&record->tail, rows, count, heard, out_decision, out_holds);
}

/* It is the segment in which the log was decided to end, as somebody else than the writer of now wrote it. */
bool co_row_lies_at_end(const struct leat_log_record *record, const struct leat_replica_row *row)
{
    const struct leat_tail_record *end = leat_log_decided(record);
    return end && end->extent.bytes > 0 && row->segment == end->segment &&
           row->epoch.v != record->stamp_epoch.v;
}

/* SUBTLE: prefixes of one writer's bytes are all right. Of other epochs only what lies in front of where the log was
 * decided to end when this epoch began, which is committed: no copy that has it needs to be left.
 *  1. X closes segment 5 at 100, and dies; what it acked of that ends at 90, and so Y's recovery ends the log. Y cuts
 *     its copy there, goes on in 6, and others read what Y acks.
 *  2. All lose their power. Y had it all in memory; X, which was away, has segment 5 up to 100 in its file.
 *  3. The loss is accepted. Were X's copy what is left, ten records that nobody was promised would stand at offsets
 *     at which others were read.
 * In front of that segment what another epoch left open, or an attempt to end it cut, is as uncertain. */
bool leat_row_may_be_left(const struct leat_log_record *record, const struct leat_replica_row *row)
{
    const struct leat_tail_record *end = leat_log_decided(record);
    if (row->kind == LEAT_REPLICA_LOST || row->extent.bytes == 0) return false;
    if (row->epoch.v == record->stamp_epoch.v) return true;
    if (co_row_lies_at_end(record, row)) return co_row_holds(end, row);
    bool behind = end && (end->segment == UINT64_MAX || row->segment > end->segment);
    if (behind) return false;
    return row->kind == LEAT_REPLICA_CLOSED && !row->tentative;
}
