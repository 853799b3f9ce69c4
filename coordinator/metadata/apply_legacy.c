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
    *row = reader->head;
    uint32_t fields = leat_msg_read_array(msg);
    row->log = leat_msg_read_log(msg);
    uint32_t decision = leat_msg_read_u32(msg);
    leat_tail_record_read(msg, &row->tail);
    if (fields != 8) msg->failed = true;
    row->decision =
        decision < sizeof decisions / sizeof *decisions ? decisions[decision] : LEAT_RECOVER_STANDS;
    return !msg->failed;
}

leat_err leat_machine_apply_adopt(struct leat_machine *machine, struct leat_msg_reader *reader,
                                  struct leat_machine_result *result)
{
    struct leat_assign assign = {.reason = LEAT_ASSIGN_START, .rows.next = adopt_next};
    struct leat_assign_part part = {.row_bytes = LEAT_ADOPT_ROW_BYTES_MAX};
    part.attempt = leat_msg_read_u64(reader);
    part.number = leat_msg_read_u32(reader);
    part.last = leat_msg_read_bool(reader);
    assign.incarnation = assign.owner = leat_msg_read_u64(reader);
    (void)leat_msg_read_u64(reader); /* entries that had changed anything, for people */
    struct leat_msg_string rows = leat_msg_read_string(reader);
    part.bytes = (const uint8_t *)rows.text;
    part.count = rows.bytes;
    assign.seen = leat_msg_read_u64(reader);
    assign.leaves = leat_msg_read_bool(reader);
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
    row->log = leat_msg_read_log(reader);
    row->tail.segment = leat_msg_read_u64(reader);
    row->tail.next_offset = leat_msg_read_u64(reader);
    row->tail.jumped = true;
    assign.incarnation = assign.owner = row->owner = row->seen_owner = leat_msg_read_u64(reader);
    row->seen_log_epoch = leat_msg_read_u32(reader);
    row->tail.extent.bytes = leat_msg_read_u32(reader);
    row->tail.extent.crc = leat_msg_read_u32(reader);
    row->heard = leat_msg_read_bool(reader);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    return leat_machine_assign(machine, &assign, result);
}

/* ---- moving: all logs of streamlets that one owner has ---- */

static bool move_next(struct leat_assign_reader *reader, struct leat_assign_row *row)
{
    struct leat_msg_reader *msg = &reader->msg;
    if (msg->failed || reader->rows == 0) return false;
    reader->rows--;
    *row = reader->head;
    if (leat_msg_read_array(msg) != 7) msg->failed = true;
    row->log = leat_msg_read_log(msg);
    leat_tail_record_read(msg, &row->tail);
    return !msg->failed;
}

leat_err leat_machine_apply_move(struct leat_machine *machine, struct leat_msg_reader *reader,
                                 struct leat_machine_result *result)
{
    struct leat_assign assign = {.reason = LEAT_ASSIGN_MOVE, .rows.next = move_next};
    struct leat_assign_row *head = &assign.rows.head;
    head->decision = LEAT_RECOVER_TAIL;
    assign.incarnation = head->seen_owner = leat_msg_read_u64(reader);
    head->seen_epoch = leat_msg_read_u32(reader);
    struct leat_msg_string target = leat_msg_read_string(reader);
    assign.rows.rows = leat_msg_read_array(reader);
    assign.rows.msg = *reader;
    leat_msg_skip_n(reader, assign.rows.rows);
    if (!leat_msg_read_done(reader) || assign.rows.rows == 0) return leat_machine_malformed(result);
    const struct leat_machine_node *to = leat_machine_node_find(machine, target.text, target.bytes);
    assign.owner = head->owner = to ? to->info.incarnation : 0;
    return leat_machine_assign(machine, &assign, result);
}

/* ---- recovery: streamlets with a row of each log ---- */

leat_err leat_machine_apply_recover(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    (void)leat_msg_read_u64(reader); /* the attempt, for people */
    struct leat_assign assign = {.reason = LEAT_ASSIGN_RECOVERY, .rows.next = leat_assign_next};
    assign.rows.streamlets = leat_msg_read_array(reader);
    assign.rows.msg = *reader;
    struct leat_assign_reader all = assign.rows; /* before anything changes */
    for (struct leat_assign_row row; all.next(&all, &row);)
        continue;
    if (!leat_msg_read_done(&all.msg) || all.streamlets != 0) return leat_machine_malformed(result);
    return leat_machine_assign(machine, &assign, result);
}
