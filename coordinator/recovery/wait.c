/* Logs that wait because nobody has where they end: when that is all there is to hear, what is left of
 * them, and who answers for them meanwhile. Pure; docs/recovery.md, "Logs that wait". */
#include "coordinator/membership/state.h"
#include "coordinator/recovery/recovery.h"

bool co_recovery_all_heard(const struct leat_coordinator *coordinator, uint64_t up_us)
{
    const struct co_recovery *it = coordinator->recovery;
    const struct leat_machine *machine = &coordinator->machine;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        if (info->state == LEAT_NODE_GONE) continue;
        if (info->state == LEAT_NODE_DOWN) {
            if (!info->draining) return false; /* it may come back, with what is missing */
            continue;
        }
        /* Of the incarnation that answered, and that for a while: what it says is all it has. */
        if (!it->nodes[i].good || it->seen[i].incarnation != info->incarnation ||
            it->now_us < it->seen[i].since_us + up_us)
            return false;
    }
    return true;
}

static bool is_better(const struct leat_replica_row *row, const struct leat_replica_row *best)
{
    if (row->segment != best->segment) return row->segment > best->segment;
    bool closed = row->kind == LEAT_REPLICA_CLOSED, best_closed = best->kind == LEAT_REPLICA_CLOSED;
    if (closed != best_closed) return closed; /* all of it */
    /* Of closed ones that differ the shortest: what is more in others was acknowledged by nobody. */
    return closed ? row->extent.bytes < best->extent.bytes : row->extent.bytes > best->extent.bytes;
}

bool co_recovery_best(const struct co_recovery *it, const struct co_recover_log *log,
                      struct leat_tail_record *out_best)
{
    const struct leat_replica_row *best = NULL;
    for (uint32_t i = 0; i < log->row_count; i++) {
        const struct leat_replica_row *row = &it->rows[log->row_first + i].row;
        if (leat_row_may_be_left(&log->seen, row) && (!best || is_better(row, best))) best = row;
    }
    if (!best) return false;
    *out_best = (struct leat_tail_record){
        .segment = best->segment, .extent = best->extent, .next_offset = best->next_offset};
    if (!co_row_lies_at_end(&log->seen, best)) return true;
    const struct leat_tail_record *end = leat_log_decided(&log->seen);
    out_best->extent = end->extent; /* it may go on behind that */
    if (!end->jumped) out_best->next_offset = end->next_offset;
    return true;
}

int co_recovery_answers(const struct leat_coordinator *coordinator,
                        const struct co_recover_streamlet *streamlet)
{
    const struct co_recovery *it = coordinator->recovery;
    const struct leat_machine *machine = &coordinator->machine;
    for (uint32_t q = 0; q < streamlet->logs; q++)
        if (!it->logs[streamlet->first + q].undecided) return -1;
    if (!co_recovery_all_heard(coordinator, CO_ALL_HEARD_US)) return -1;
    const struct leat_machine_stream *stream = leat_machine_stream_find(
        (struct leat_machine *)&coordinator->machine, streamlet->ref.stream);
    if (!stream) return -1;
    uint16_t last = stream->owners[streamlet->ref.streamlet];
    if (last != LEAT_OWNER_NONE && it->nodes[last].good) return last;
    int best = -1;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        if (!it->nodes[i].good || info->state != LEAT_NODE_UP || info->crashed || info->draining)
            continue;
        if (best < 0 || info->streamlets < machine->nodes[best].info.streamlets) best = (int)i;
    }
    return best;
}
