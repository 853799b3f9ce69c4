/* SPDX-License-Identifier: Apache-2.0 */
/* Assignment: streamlets get an owner, and their logs an end. Starts, recoveries, moves (a drain is many) and
 * accepted losses are the same change for different reasons: each reason has its own check, and the same functions
 * commit all.
 *
 * In a recovery each streamlet is decided by itself: its rows have the state of the streamlet at the time of the
 * decision, and the streamlet is skipped when this state has changed. So only one of several attempts on a streamlet
 * takes effect: attempts of overlapping leaders, of a duplicate message, or of the former owner that came back. For
 * every other reason all rows take effect, or none. */
#include <inttypes.h>

#include "base/assert.h"
#include "base/bug.h"
#include "coordinator/metadata/private.h"

/* ---- recovery: what was seen of a streamlet ---- */

static bool is_unchanged(const struct leat_machine_log *log, const struct leat_assign_row *row)
{
    const struct leat_log_record *record = &log->record;
    if (log->epoch.v != row->seen_log_epoch || record->opened != (row->seen_stamp != 0))
        return false;
    if (record->opened)
        return record->stamp_epoch.v == row->seen_stamp &&
               record->stamp_version == row->seen_version && row->decision != LEAT_RECOVER_STANDS;
    return row->decision != LEAT_RECOVER_TAIL;
}

static bool row_holds(const struct leat_machine_log *log, const struct leat_assign_row *row)
{
    return is_unchanged(log, row) || LEAT_BUG(LATE_ATTEMPT);
}

/* Does the row report what all nodes have of a log that waits, and whose owner stays? */
static bool row_tells(const struct leat_machine_log *log, const struct leat_assign_row *row)
{
    return row->decision == LEAT_RECOVER_WAITS && row->heard != 0 && row_holds(log, row) &&
           leat_machine_log_waits(log);
}

/* A streamlet without a decided log gets an owner only to answer clients: the last owner, or any node where there was
 * no owner or the last owner is drained. */
static bool may_answer_for(const struct leat_machine *machine,
                           const struct leat_machine_stream *stream, uint32_t streamlet,
                           const struct leat_machine_node *owner)
{
    uint16_t from = stream->owners[streamlet];
    if (from == LEAT_OWNER_NONE || &machine->nodes[from] == owner) return true;
    return machine->nodes[from].info.draining;
}

/* The streamlet of this first row is as it was seen, and its new owner lives. */
static bool streamlet_holds(struct leat_machine *machine, const struct leat_machine_stream *stream,
                            const struct leat_assign_row *row)
{
    const uint32_t i = row->log.streamlet;
    bool holds = stream && i < stream->desc->settings.streamlets &&
                 row->rows == stream->desc->settings.logs &&
                 stream->desc->streamlets[i].owner == row->seen_owner &&
                 stream->desc->streamlets[i].epoch.v == row->seen_epoch;
    if (!holds && stream && LEAT_BUG(LATE_ATTEMPT)) holds = true;
    const struct leat_machine_node *owner = leat_machine_incarnation_find(machine, row->owner);
    if (!owner || owner->info.crashed || owner->info.state != LEAT_NODE_UP) return false;
    /* Never from a node that lives: only a move does that, and the owner itself asks for a move. */
    if (row->owner != row->seen_owner && leat_machine_incarnation_lives(machine, row->seen_owner))
        return false;
    return holds;
}

/* All rows of the streamlet that comes next. */
static bool recovery_check(struct leat_machine *machine, struct leat_assign_reader rows)
{
    struct leat_assign_row row;
    if (!rows.next(&rows, &row)) return false;
    const struct leat_machine_stream *stream = leat_machine_stream_find(machine, row.log.stream);
    const bool takes = row.owner != row.seen_owner;
    bool holds = streamlet_holds(machine, stream, &row), gives = false, tells = false;
    for (uint32_t q = 0; holds && q < row.rows; q++) {
        if (q > 0 && !rows.next(&rows, &row)) return false;
        const struct leat_machine_log *log = &stream->logs[row.log.streamlet * row.rows + q];
        if (!takes && row.decision != LEAT_RECOVER_TAIL) { /* served, or it waits on */
            tells = tells || row_tells(log, &row);
            continue;
        }
        holds = row_holds(log, &row) && (takes || leat_machine_log_waits(log));
        if (row.decision != LEAT_RECOVER_WAITS) gives = true;
    }
    if (holds && takes && !gives)
        tells = may_answer_for(machine, stream, row.log.streamlet,
                               leat_machine_incarnation_find(machine, row.owner));
    return holds && (gives || tells);
}

/* ---- start ---- */

/* Rows that name something unknown make the whole attempt refused, before anything changes. */
static bool start_check(struct leat_machine *machine, const struct leat_assign *it,
                        struct leat_machine_result *result)
{
    struct leat_assign_reader rows = it->rows;
    const struct leat_machine_node *node = leat_machine_incarnation_find(machine, it->owner);
    if (!node || node->info.crashed) {
        result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                    "incarnation %" PRIu64 " is not up (any more)", it->owner);
        return false;
    }
    if (it->seen != leat_machine_seen(machine, node)) {
        result->rc = leat_error_set(&result->error, LEAT_E_AGAIN,
                                    "streams or logs changed while the adoption was decided");
        return false;
    }
    for (struct leat_assign_row row; rows.next(&rows, &row);) {
        struct leat_machine_stream *stream;
        if (!leat_machine_log_find(machine, row.log, &stream)) {
            leat_machine_refuse_log(result, stream != NULL, row.log);
            return false;
        }
        if (leat_machine_adoptable(machine, stream, row.log.streamlet, node)) continue;
        result->rc = leat_error_set(
            &result->error, LEAT_E_NOT_OWNER,
            "stream %" PRIu32 " streamlet %" PRIu32 " is another node's, of incarnation %" PRIu64,
            row.log.stream, row.log.streamlet, stream->desc->streamlets[row.log.streamlet].owner);
        return false;
    }
    if (!rows.msg.failed) return true;
    result->rc = leat_error_set(&result->error, LEAT_E_INVALID, "an adoption's rows do not decode");
    return false;
}

/* ---- move ---- */

/* Every log of every streamlet that is named, in order, and all the requester's own. */
static bool move_check(struct leat_machine *machine, const struct leat_assign *it,
                       struct leat_machine_result *result)
{
    struct leat_assign_reader rows = it->rows;
    struct leat_log_ref expect = {0};
    bool first = true;
    if (!leat_machine_incarnation_lives(machine, it->incarnation)) {
        (void)leat_claim_of_living(machine, it->incarnation ? it->incarnation : UINT64_MAX, result);
        return false;
    }
    for (struct leat_assign_row row; rows.next(&rows, &row); first = false) {
        struct leat_machine_stream *stream;
        if (!leat_machine_log_find(machine, row.log, &stream)) {
            leat_machine_refuse_log(result, stream != NULL, row.log);
            return false;
        }
        bool begins = row.log.log == 0 && expect.log == 0 &&
                      (first || row.log.stream > expect.stream ||
                       (row.log.stream == expect.stream && row.log.streamlet > expect.streamlet));
        if (!begins && (expect.log == 0 || !leat_log_ref_equal(row.log, expect))) {
            result->rc = leat_error_set(&result->error, LEAT_E_INVALID,
                                        "a streamlet moves with all its logs, in ascending order");
            return false;
        }
        /* Of the streamlet: a log whose loss was accepted has an epoch of its own. */
        uint32_t epoch = stream->desc->streamlets[row.log.streamlet].epoch.v;
        uint64_t owner = stream->desc->streamlets[row.log.streamlet].owner;
        if (owner != it->incarnation || epoch != row.seen_epoch) {
            result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                        "stream %" PRIu32 " streamlet %" PRIu32
                                        " is owned by incarnation %" PRIu64 " under epoch %" PRIu32,
                                        row.log.stream, row.log.streamlet, owner, epoch);
            return false;
        }
        expect = row.log;
        expect.log = row.log.log + 1 < stream->desc->settings.logs ? row.log.log + 1 : 0;
    }
    if (rows.msg.failed) return leat_machine_malformed(result) == LEAT_OK;
    if (expect.log != 0)
        result->rc =
            leat_error_set(&result->error, LEAT_E_INVALID, "a streamlet moves with all its logs");
    return result->rc == LEAT_OK;
}

/* The owner has ended its epoch with the request. So if the target can't take the streamlets, the owner gets the
 * streamlets back under a new epoch; result says why. */
static struct leat_machine_node *move_target(struct leat_machine *machine,
                                             const struct leat_assign *it,
                                             struct leat_machine_result *result)
{
    struct leat_machine_node *from = leat_machine_incarnation_find(machine, it->incarnation);
    struct leat_machine_node *to = leat_machine_incarnation_find(machine, it->owner);
    if (to && to != from && to->info.state == LEAT_NODE_UP && !to->info.draining) return to;
    result->rc =
        leat_error_set(&result->error, LEAT_E_NOT_FOUND,
                       "node '%.100s' can't take streamlets: it is %s", to ? to->info.name : "?",
                       !to                              ? "unknown"
                       : to == from                     ? "their owner"
                       : to->info.state != LEAT_NODE_UP ? "not up"
                                                        : "draining");
    return from;
}

/* ---- loss that an operator accepts ---- */

/* SUBTLE: nothing is given up that a node may still have. (1) A log waits, and what is left of it was looked for on
 * every node but one, which is down. (2) This node comes up, with all acked records. (3) An operator accepts the loss
 * before recovery has asked the node. So the answers about a log count until the next incarnation is given out. */
static bool loss_is_known(const struct leat_machine *machine, const struct leat_log_record *record,
                          struct leat_machine_result *result)
{
    const char *down = NULL;
    for (uint32_t i = 0; i < machine->node_count && !down; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        if (info->state == LEAT_NODE_DOWN && !info->draining) down = info->name;
    }
    bool heard = record->heard == machine->next_incarnation;
    if (down && !(record->opened && heard))
        result->rc = leat_error_set(&result->error, LEAT_E_AGAIN,
                                    "node '%.100s' is down and may have what is missing: start it, "
                                    "or say that it will not come back: leat node drain %.100s",
                                    down, down);
    else if (record->opened && !heard)
        result->rc = leat_error_set(&result->error, LEAT_E_AGAIN,
                                    "not all nodes have said yet what they have of it: try again "
                                    "in some seconds (leat cluster status)");
    return result->rc == LEAT_OK;
}

/* Beyond every offset that a record of the log ever had, also after earlier accepted losses: the known offset may be
 * from before an earlier jump, and so before all records written after this jump. */
static bool loss_jump(const struct leat_machine_log *log, uint64_t *next_offset)
{
    uint64_t known = *next_offset > log->jumped_to ? *next_offset : log->jumped_to;
    if (!log->record.opened && log->record.tail.next_offset > known)
        known = log->record.tail.next_offset;
    if (known >= (uint64_t)INT64_MAX >> 1) return false;
    if (LEAT_BUG(OFFSETS_AGAIN))
        *next_offset = known;
    else
        *next_offset = ((known >> LEAT_GAP_BITS) + 1) << LEAT_GAP_BITS;
    return true;
}

static bool loss_check(struct leat_machine *machine, const struct leat_assign *it,
                       struct leat_machine_result *result)
{
    struct leat_assign_reader rows = it->rows;
    struct leat_assign_row row;
    struct leat_machine_stream *stream;
    if (!rows.next(&rows, &row)) return leat_machine_malformed(result) == LEAT_OK;
    struct leat_machine_log *log = leat_machine_log_find(machine, row.log, &stream);
    if (!log) {
        leat_machine_refuse_log(result, stream != NULL, row.log);
        return false;
    }
    /* The claim names owner and epoch: an operator's entry that arrives late, through an earlier owner, would give up
     * a log that is served again. */
    const struct leat_claim claim = {it->incarnation, row.seen_log_epoch};
    if (!leat_claim_of_living(machine, claim.incarnation, result) ||
        !leat_claim_check(machine, row.log, &claim, result) ||
        (row.heard != 0 && !loss_is_known(machine, &log->record, result)))
        return false;
    if (!loss_jump(log, &row.tail.next_offset))
        result->rc = leat_error_set(&result->error, LEAT_E_INVALID, "its offsets are used up");
    return result->rc == LEAT_OK;
}

/* ---- what all reasons commit ---- */

/* takes: its streamlet has another epoch from here on. */
static void log_commit(struct leat_machine_log *log, const struct leat_assign_row *row, bool takes,
                       struct leat_epoch epoch)
{
    bool heard = row->decision == LEAT_RECOVER_WAITS && row->heard != 0 && log->record.opened &&
                 (takes || row_tells(log, row));
    bool decided = row->decision == LEAT_RECOVER_TAIL || row->decision == LEAT_RECOVER_LEFT;
    struct leat_log_record record = log->record;
    if (decided) record = (struct leat_log_record){.tail = row->tail};
    if (heard) { /* a log that waits keeps its stamp */
        record.tail = row->tail;
        record.heard = row->heard;
    }
    leat_machine_log_enter(log, &record, decided || takes ? epoch : log->epoch);
}

static void owner_commit(struct leat_machine *machine, struct leat_machine_stream *stream,
                         uint32_t streamlet, struct leat_machine_node *to, struct leat_epoch epoch)
{
    const uint32_t logs = stream->desc->settings.logs;
    uint16_t from = stream->owners[streamlet];
    if (from != LEAT_OWNER_NONE) leat_machine_owner_count(&machine->nodes[from], logs, false);
    leat_machine_owner_count(to, logs, true);
    stream->owners[streamlet] = leat_machine_node_index(machine, to);
    stream->desc->streamlets[streamlet].owner = to->info.incarnation;
    stream->desc->streamlets[streamlet].epoch = epoch;
}

/* A description is immutable once reported: one copy per run of rows of a stream, reported after the run. */
static leat_err desc_renew(struct leat_machine *machine, struct leat_machine_stream **stream,
                           struct leat_machine_stream *next)
{
    if (*stream == next) return LEAT_OK;
    if (*stream) leat_machine_stream_told(machine, (*stream)->desc);
    *stream = NULL;
    if (!next) return LEAT_OK;
    struct leat_stream_desc *desc = leat_machine_desc_copy(next->desc);
    if (!desc) return LEAT_E_NO_MEMORY;
    leat_stream_desc_unref(next->desc);
    next->desc = desc;
    *stream = next;
    return LEAT_OK;
}

static void node_gone_check(struct leat_machine *machine, uint16_t index)
{
    struct leat_machine_node *node = &machine->nodes[index];
    if (node->info.state != LEAT_NODE_DOWN || !node->info.draining || node->info.streamlets != 0)
        return;
    node->info.state = LEAT_NODE_GONE;
    if (machine->on_node) machine->on_node(machine->owner, &node->info);
}

/* The streamlet whose rows come next: checked, and its description is a new one. */
static void streamlet_commit(struct leat_machine *machine, enum leat_assign_reason reason,
                             struct leat_machine_stream *stream, struct leat_assign_reader *rows,
                             struct leat_machine_node *to, struct leat_machine_result *result)
{
    struct leat_assign_row row = {0};
    bool takes = false;
    const uint32_t logs = stream->desc->settings.logs;
    for (uint32_t q = 0; q < (reason == LEAT_ASSIGN_LOSS ? 1 : logs); q++) {
        LEAT_ASSERT(rows->next(rows, &row));
        takes = reason == LEAT_ASSIGN_MOVE ||
                (reason == LEAT_ASSIGN_RECOVERY && row.owner != row.seen_owner);
        struct leat_machine_log *log = &stream->logs[row.log.streamlet * logs + row.log.log];
        if (row.decision == LEAT_RECOVER_LEFT) {
            LEAT_ASSERT(loss_jump(log, &row.tail.next_offset));
            log->jumped_to = row.tail.next_offset;
            result->first_id = (int64_t)row.tail.next_offset;
        }
        log_commit(log, &row, takes, result->epoch);
    }
    uint16_t from = stream->owners[row.log.streamlet];
    leat_machine_owner_changed(machine, from);
    if (reason == LEAT_ASSIGN_LOSS) return;
    to->changes++;
    if (takes) owner_commit(machine, stream, row.log.streamlet, to, result->epoch);
    if (reason != LEAT_ASSIGN_RECOVERY) return;
    if (from != LEAT_OWNER_NONE) node_gone_check(machine, from);
    result->id_count++;
}

static leat_err streamlets_assign(struct leat_machine *machine, const struct leat_assign *it,
                                  struct leat_machine_result *result)
{
    struct leat_assign_reader rows = it->rows, at;
    struct leat_machine_stream *stream = NULL;
    struct leat_machine_node *to = NULL;
    struct leat_assign_row row;
    for (at = rows; at.next(&at, &row); at = rows) {
        if (it->reason == LEAT_ASSIGN_RECOVERY && !recovery_check(machine, rows)) {
            for (uint32_t q = row.rows; q > 0; q--)
                LEAT_ASSERT(rows.next(&rows, &row));
            continue;
        }
        if (result->epoch.v == 0) result->epoch.v = leat_machine_epoch_draw(machine);
        if (result->epoch.v == 0) { /* before anything has changed */
            (void)leat_machine_epochs_used_up(result);
            return LEAT_OK;
        }
        if (it->reason == LEAT_ASSIGN_RECOVERY)
            to = leat_machine_incarnation_find(machine, row.owner);
        else if (it->reason == LEAT_ASSIGN_MOVE && !to)
            to = move_target(machine, it, result);
        leat_err rc =
            desc_renew(machine, &stream, leat_machine_stream_find(machine, row.log.stream));
        if (rc != LEAT_OK) return rc;
        streamlet_commit(machine, it->reason, stream, &rows, to, result);
    }
    if (it->reason == LEAT_ASSIGN_MOVE) result->incarnation = to->info.incarnation;
    if (stream)
        machine->changes++;
    else
        result->rc = leat_error_set(&result->error, LEAT_E_AGAIN,
                                    "nothing is any more as it was when this was decided");
    return desc_renew(machine, &stream, NULL);
}

/* ---- a start: all streamlets of the node, and all without an owner ---- */

/* Rows are in order, and a row that waits names a streamlet that is left to recovery. */
static bool streamlet_left(struct leat_assign_reader *left, struct leat_log_ref ref)
{
    struct leat_assign_reader at = *left;
    for (struct leat_assign_row row; at.next(&at, &row); *left = at) {
        bool before = row.log.stream < ref.stream ||
                      (row.log.stream == ref.stream && row.log.streamlet < ref.streamlet);
        bool same = row.log.stream == ref.stream && row.log.streamlet == ref.streamlet;
        if (same && row.decision == LEAT_RECOVER_WAITS) return true;
        if (!before && !same) return false;
    }
    return false;
}

static leat_err stream_own(struct leat_machine *machine, struct leat_machine_stream *stream,
                           struct leat_machine_node *node, struct leat_epoch epoch,
                           struct leat_assign_reader *left)
{
    const uint32_t logs = stream->desc->settings.logs;
    struct leat_machine_stream *renewed = NULL;
    for (uint32_t i = 0; i < stream->desc->streamlet_count; i++) {
        if (!leat_machine_adoptable(machine, stream, i, node)) continue;
        if (desc_renew(machine, &renewed, stream) != LEAT_OK) return LEAT_E_NO_MEMORY;
        if (left && streamlet_left(left, (struct leat_log_ref){stream->id, i, 0})) continue;
        owner_commit(machine, stream, i, node, epoch);
        for (uint32_t q = 0; q < logs; q++) {
            struct leat_machine_log *log = &stream->logs[i * logs + q];
            leat_machine_log_enter(log, &log->record, epoch);
        }
    }
    return desc_renew(machine, &renewed, NULL);
}

static leat_err start_assign(struct leat_machine *machine, const struct leat_assign *it,
                             struct leat_machine_result *result)
{
    struct leat_machine_node *node = leat_machine_incarnation_find(machine, it->owner);
    struct leat_assign_reader rows = it->rows, left = it->rows;
    result->epoch.v = leat_machine_epoch_draw(machine);
    if (result->epoch.v == 0) {
        (void)leat_machine_epochs_used_up(result);
        return LEAT_OK;
    }
    /* A log without a row, or a log that waits, keeps its record. */
    for (struct leat_assign_row row; rows.next(&rows, &row);) {
        struct leat_machine_stream *stream;
        struct leat_machine_log *log = leat_machine_log_find(machine, row.log, &stream);
        log_commit(log, &row, false, log->epoch);
    }
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        leat_err rc = stream_own(machine, &machine->streams[i], node, result->epoch,
                                 it->leaves ? &left : NULL);
        if (rc != LEAT_OK) return rc;
    }
    machine->changes++;
    machine->node_changes++;
    node->changes++;
    node->adopted = result->incarnation = node->info.incarnation;
    return LEAT_OK;
}

leat_err leat_machine_assign(struct leat_machine *machine, const struct leat_assign *assign,
                             struct leat_machine_result *result)
{
    bool holds = true;
    switch (assign->reason) {
    case LEAT_ASSIGN_START:
        return start_check(machine, assign, result) ? start_assign(machine, assign, result)
                                                    : LEAT_OK;
    case LEAT_ASSIGN_RECOVERY: /* each streamlet when it is its turn */
        break;
    case LEAT_ASSIGN_MOVE:
        holds = move_check(machine, assign, result);
        break;
    case LEAT_ASSIGN_LOSS:
        holds = loss_check(machine, assign, result);
        break;
    }
    return holds ? streamlets_assign(machine, assign, result) : LEAT_OK;
}
