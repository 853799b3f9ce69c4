/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that wait because no node has their end: whether all nodes have answered, what is left of these logs, and which
 * node answers their clients meanwhile. Pure; docs/recovery.md, "Logs that wait". */
#include "base/assert.h"
#include "coordinator/recovery/attempt.h"

bool co_recovery_all_heard(const struct leat_coordinator *coordinator, uint64_t up_us)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct co_recovery *it = co_recovery_of(coordinator);
    const struct leat_machine *machine = co_tables(coordinator);
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        if (info->state == LEAT_NODE_GONE) continue;
        if (info->state == LEAT_NODE_DOWN) {
            if (!info->draining) return false; /* the node may come back, with the missing end */
            continue;
        }
        /* The incarnation that answered must have been up for a while: then its answer has all its replicas. */
        if (!co_node_heard(it, i) || it->seen[i].incarnation != info->incarnation ||
            it->now_us < it->seen[i].since_us + up_us)
            return false;
    }
    return true;
}

bool co_recovery_best(const struct co_recovery *it, const struct co_recover_log *log,
                      struct leat_tail_record *out_best)
{
    struct leat_tail_row rows[LEAT_TAIL_ROWS_MAX];
    struct leat_tail left;
    size_t count = 0;
    for (; count < log->row_count && count < LEAT_TAIL_ROWS_MAX; count++) {
        const struct co_row *row = &it->rows[log->row_first + count];
        rows[count] = leat_tail_row_of(&row->row, row->node);
    }
    leat_tail_left(&log->seen, rows, count, &left);
    if (left.ends) *out_best = left.end;
    return left.ends;
}

int co_recovery_answers(const struct leat_coordinator *coordinator,
                        const struct co_recover_streamlet *streamlet)
{
    LEAT_ASSERT_OWNER(coordinator);
    const struct co_recovery *it = co_recovery_of(coordinator);
    const struct leat_machine *machine = co_tables(coordinator);
    for (uint32_t q = 0; q < streamlet->logs; q++)
        if (!it->logs[streamlet->first + q].undecided) return -1;
    if (!co_recovery_all_heard(coordinator, CO_ALL_HEARD_US)) return -1;
    const struct leat_machine_stream *stream = leat_machine_stream_find(
        (struct leat_machine *)co_tables(coordinator), streamlet->ref.stream);
    if (!stream) return -1;
    uint16_t last = stream->owners[streamlet->ref.streamlet];
    if (last != LEAT_OWNER_NONE && co_node_heard(it, last)) return last;
    int best = -1;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        if (!co_node_heard(it, i) || info->state != LEAT_NODE_UP || info->crashed || info->draining)
            continue;
        if (best < 0 || info->streamlets < machine->nodes[best].info.streamlets) best = (int)i;
    }
    return best;
}
