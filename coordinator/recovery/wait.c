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

/* It is the segment in which the log was decided to end, as somebody else than the writer of now wrote it. */
static bool ends_there(const struct leat_log_record *record, const struct leat_replica_row *row)
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
    if (ends_there(record, row)) return co_row_holds(end, row);
    bool behind = end && (end->segment == UINT64_MAX || row->segment > end->segment);
    if (behind) return false;
    return row->kind == LEAT_REPLICA_CLOSED && !row->tentative;
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
    if (!ends_there(&log->seen, best)) return true;
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
