/* SPDX-License-Identifier: Apache-2.0 */
/* What a log lacks between the segments that are here. */
#include "broker/data/holes.h"
#include "base/assert.h"
#include "base/node_log.h"
#include "broker/data/partition.h"
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

/* SUBTLE: in front of a jump of offsets nothing is named. What is missing there was given up, or this node has it
 * no more, and looks the same.
 *  1. A loss is accepted behind segment 4, and the log goes on with 5, where offsets jumped to.
 *  2. The row of 4 is damaged on the owner's disk. The log has 0 to 3 and 5: it takes 4 for what was given up.
 *  3. Others ask what is to become of their copies of 4. They are one too many, and dropped everywhere.
 * So where any row is damaged nothing that is missing between segments, or in front of where offsets jump to next,
 * is dropped on others. What was given up stays, too, where a node comes back with it. The next owner asks all
 * for the newest in front of the jump (below.h). Rows that are damaged stay so: each start comes here again. */
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
