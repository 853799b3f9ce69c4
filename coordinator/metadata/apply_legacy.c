/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments as the kinds ADOPT, RECOVER, MOVE and ACCEPT_LOSS say them: read out of entries, and out of the rows
 * that a snapshot keeps of a start whose last entry had not come. */
#include "coordinator/metadata/private.h"

/* ---- a start: entries whose rows take effect together ---- */

static bool adopt_next(struct leat_assign_reader *reader, struct leat_assign_row *row)
{
    static const uint32_t decisions[] = {
        [LEAT_DECIDED_TAIL] = LEAT_RECOVER_TAIL, [LEAT_DECIDED_WAIT] = LEAT_RECOVER_WAITS};
    struct leat_msg_reader *msg = &reader->msg;
    if (msg->failed || msg->at >= msg->end) return false;
    (void)leat_adopt_row_read(msg, row);
    row->decision = row->decision < sizeof decisions / sizeof *decisions ? decisions[row->decision]
                                                                         : LEAT_RECOVER_STANDS;
    return !msg->failed;
}

leat_err leat_machine_apply_adopt(struct leat_machine *machine, struct leat_msg_reader *reader,
                                  struct leat_machine_result *result)
{
    struct leat_assign assign = {.reason = LEAT_ASSIGN_START, .rows.next = adopt_next};
    struct leat_entry_adopt adopt;
    (void)leat_entry_adopt_read(reader, &adopt);
    const struct leat_assign_part part = {.attempt = adopt.attempt,
                                          .number = adopt.number,
                                          .last = adopt.last,
                                          .bytes = adopt.rows.data,
                                          .count = adopt.rows.bytes,
                                          .row_bytes = LEAT_ADOPT_ROW_BYTES_MAX};
    assign.incarnation = assign.owner = adopt.incarnation;
    assign.seen = adopt.seen;
    assign.leaves = adopt.leaves;
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    return leat_machine_start_part(machine, &part, &assign, result);
}

/* ---- loss that an operator accepts: one row ---- */

static bool head_next(struct leat_assign_reader *reader, struct leat_assign_row *row)
{
    *row = reader->head;
    return reader->rows-- > 0;
}

leat_err leat_machine_apply_accept_loss(struct leat_machine *machine,
                                        struct leat_msg_reader *reader,
                                        struct leat_machine_result *result)
{
    struct leat_assign assign = {.reason = LEAT_ASSIGN_LOSS,
                                 .rows = {.next = head_next, .rows = 1}};
    struct leat_assign_row *row = &assign.rows.head;
    row->decision = LEAT_RECOVER_LEFT;
    struct leat_entry_accept_loss loss;
    (void)leat_entry_accept_loss_read(reader, &loss);
    row->log = loss.log;
    row->tail = (struct leat_tail_record){loss.segment, loss.prefix_id, loss.next_offset, true};
    assign.incarnation = assign.owner = row->owner = row->seen_owner = loss.incarnation;
    row->seen_log_epoch = loss.epoch;
    row->heard = loss.nothing;
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    return leat_machine_assign(machine, &assign, result);
}

/* ---- moving: all logs of streamlets that one owner has ---- */

static bool move_next(struct leat_assign_reader *reader, struct leat_assign_row *row)
{
    struct leat_msg_reader *msg = &reader->msg;
    if (msg->failed || reader->rows == 0) return false;
    struct leat_assign_row said;
    reader->rows--;
    (void)leat_move_row_read(msg, &said);
    *row = reader->head;
    row->log = said.log;
    row->tail = said.tail;
    return !msg->failed;
}

leat_err leat_machine_apply_move(struct leat_machine *machine, struct leat_msg_reader *reader,
                                 struct leat_machine_result *result)
{
    struct leat_assign assign = {.reason = LEAT_ASSIGN_MOVE, .rows.next = move_next};
    struct leat_assign_row *head = &assign.rows.head;
    head->decision = LEAT_RECOVER_TAIL;
    struct leat_entry_move move;
    (void)leat_entry_move_read(reader, &move);
    assign.incarnation = head->seen_owner = move.incarnation;
    head->seen_epoch = move.epoch;
    assign.rows.rows = move.row_count;
    assign.rows.msg = move.rows;
    if (!leat_msg_read_done(reader) || move.row_count == 0) return leat_machine_malformed(result);
    const struct leat_machine_node *to =
        leat_machine_node_find(machine, move.target.text, move.target.bytes);
    assign.owner = head->owner = to ? to->info.incarnation : 0;
    return leat_machine_assign(machine, &assign, result);
}

/* ---- recovery: streamlets with a row of each log ---- */

leat_err leat_machine_apply_recover(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct leat_entry_recover recover;
    (void)leat_entry_recover_read(reader, &recover);
    struct leat_assign assign = {.reason = LEAT_ASSIGN_RECOVERY, .rows.next = leat_assign_next};
    assign.rows.streamlets = recover.streamlets;
    assign.rows.msg = *reader;
    struct leat_assign_reader all = assign.rows; /* before anything changes */
    for (struct leat_assign_row row; all.next(&all, &row);)
        continue;
    if (!leat_msg_read_done(&all.msg) || all.streamlets != 0) return leat_machine_malformed(result);
    return leat_machine_assign(machine, &assign, result);
}
