/* Where does a log end? The one decision of recovery, as a pure function.
 *
 * Exactly one thing may say it: the coordinator's tail record, or the marks of the ownership that
 * the coordinator knows as opened. Whatever contradicts that thing is named and waited for; nothing
 * is ever taken because it is the best that was found. */
#include "coordinator/metadata/decide.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bug.h"

static bool extent_equal(struct leat_extent a, struct leat_extent b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

/* Is the tail record's last segment here, with the recorded bytes?
 *
 * Cutting a segment to its record appended a close entry in earlier versions, so a closed segment
 * is also right when it ends at the recorded offset and is longer: nothing but the close entry can
 * have been added to it, because a segment that has a record is never appended to again. */
static bool tail_bytes_found(const struct leat_tail_record *tail,
                             const struct leat_log_marks *marks)
{
    if (!marks) return false;
    if (marks->has_closed && marks->closed_segment == tail->segment) {
        if (extent_equal(marks->closed_extent, tail->extent)) return true;
        if (marks->closed_extent.bytes > tail->extent.bytes &&
            marks->closed_next_offset == tail->next_offset)
            return true;
    }
    return marks->has_mark && marks->mark_segment == tail->segment &&
           extent_equal(marks->mark_extent, tail->extent);
}

static void decide_wait(struct leat_log_decision *decision, const struct leat_log_marks *marks,
                        const char *why)
{
    decision->kind = LEAT_DECIDED_WAIT;
    if (marks && marks->lost && marks->why[0])
        snprintf(decision->why, sizeof decision->why, "%s (%s)", why, marks->why);
    else
        snprintf(decision->why, sizeof decision->why, "%s", why);
}

static void decide_by_tail(const struct leat_tail_record *tail, const struct leat_log_marks *marks,
                           struct leat_log_decision *decision)
{
    /* A log without segments needs no bytes; nor does one whose data an operator gave up. */
    bool found = tail->segment == UINT64_MAX || tail_bytes_found(tail, marks);
    if (found || tail->jumped) {
        decision->kind = LEAT_DECIDED_TAIL;
        decision->tail = *tail;
        decision->elsewhere = !found;
        return;
    }
    char why[112];
    snprintf(why, sizeof why,
             "segment %" PRIu64 " (%" PRIu32 " bytes, CRC %08" PRIx32 ") was not found",
             tail->segment, tail->extent.bytes, tail->extent.crc);
    decide_wait(decision, marks, why);
}

static void decide_by_marks(const struct leat_log_record *record,
                            const struct leat_log_marks *marks, struct leat_log_decision *decision)
{
    struct leat_epoch stamp = record->stamp_epoch;
    char why[112];
    if (!marks || !marks->has_mark) {
        snprintf(why, sizeof why,
                 "no open segment of epoch %" PRIu32 ", version %" PRIu32 " was found", stamp.v,
                 record->stamp_version);
        decide_wait(decision, marks, why);
        return;
    }
    /* Exactly: a higher epoch is an ownership that never committed "opened", a lower one an owner
     * of old. Either may be empty where acked batches should be. */
    if (marks->mark_epoch.v != stamp.v && !LEAT_BUG(OTHERS_EPOCH)) {
        snprintf(why, sizeof why,
                 "no open segment of epoch %" PRIu32 ", version %" PRIu32
                 " was found (0 of older versions, 1 of other epochs)",
                 stamp.v, record->stamp_version);
        decide_wait(decision, marks, why);
        return;
    }
    /* Of a copy that was left out when the version was raised: acks went on without it. */
    uint32_t version = marks->mark_version ? marks->mark_version : 1;
    if (version < record->stamp_version) {
        snprintf(why, sizeof why,
                 "no open segment of epoch %" PRIu32 ", version %" PRIu32
                 " was found (1 of older versions, 0 of other epochs)",
                 stamp.v, record->stamp_version);
        decide_wait(decision, marks, why);
        return;
    }
    if (marks->mark_only_start && !marks->predecessor_matches) {
        snprintf(why, sizeof why,
                 "segment %" PRIu64 " has just begun, and the one before it was not found",
                 marks->mark_segment);
        decide_wait(decision, marks, why);
        return;
    }
    decision->kind = LEAT_DECIDED_TAIL;
    decision->tail = (struct leat_tail_record){.segment = marks->mark_segment,
                                               .extent = marks->mark_extent,
                                               .next_offset = marks->mark_next_offset};
}

void leat_decide_tail(struct leat_log_ref log, const struct leat_log_record *record,
                      const struct leat_log_marks *marks, struct leat_log_decision *out_decision)
{
    *out_decision = (struct leat_log_decision){.log = log};
    if (record->opened)
        decide_by_marks(record, marks, out_decision);
    else
        decide_by_tail(&record->tail, marks, out_decision);
}
