/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that a log lacks between the segments that are here. */
#include "broker/data/partition.h"

#include "base/assert.h"
#include "base/node_log.h"
#include "broker/net/core.h"

bool leat_takeover_has_holes(struct leat_segment *const *segs, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (segs[i]->id.v != segs[i - 1]->id.v + 1) return true;
    return false;
}

static void range_add(struct leat_segment_range *range, uint64_t first, uint64_t end)
{
    if (first >= end) return;
    if (range->first == range->end) range->first = first;
    range->end = end;
}

/* SUBTLE: a segment after an offset gap names no predecessor. A missing segment before the gap was given up; or this
 * node has lost it, which looks the same.
 *  1. A loss after segment 4 is accepted, and the log goes on with segment 5, after an offset gap.
 *  2. The row of segment 4 is damaged on the owner's disk. The log has 0 to 3 and 5: it takes segment 4 for given up.
 *  3. Other nodes ask what becomes of their replicas of segment 4. The replicas are surplus, and dropped everywhere.
 * So where any row is damaged, no missing segment between segments or before the next offset gap is dropped on other
 * nodes. Segments that were given up stay, too, where a node comes back with them. The next owner asks all nodes for
 * the newest segment before the gap (below.h). Damaged rows stay damaged: each start comes here again. */
struct leat_segment_range leat_takeover_unsure(const struct leat_partition *partition,
                                               struct leat_segment *const *segs, size_t count,
                                               const struct leat_log_tail *tail)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_segment_range range = {0, 0};
    const struct leat_log_ref *ref = &partition->ref;
    if (!leat_store_rows_damaged(partition->core->node->store)) return range;
    for (size_t i = 1; i < count; i++)
        range_add(&range, segs[i - 1]->id.v + 1, segs[i]->id.v);
    if (tail->jumped)
        range_add(&range, count > 0 ? segs[count - 1]->id.v + 1 : 0, tail->next_segment);
    if (range.first != range.end && partition->stream->desc->settings.copies > 1)
        leat_node_log_warn(
            "log %u/%u/%u: rows of the catalogue are damaged here: what other nodes have of "
            "segments %llu to %llu, which are not here, stays there",
            ref->stream, ref->streamlet, ref->log, (unsigned long long)range.first,
            (unsigned long long)range.end - 1);
    return range;
}
