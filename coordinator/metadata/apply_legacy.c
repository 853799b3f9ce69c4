/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments as the kinds ADOPT, RECOVER, MOVE and ACCEPT_LOSS say them: read out of entries, and out of the rows
 * that a snapshot keeps of a start whose last entry had not come. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
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

static void staged_drop(struct leat_machine *machine)
{
    leat_mem_free(machine->staged);
    machine->staged = NULL;
    machine->staged_attempt = 0;
    machine->staged_next = 0;
    machine->staged_bytes = machine->staged_capacity = 0;
}

/* SUBTLE: what an attempt has brought is kept on every node until its last entry, in memory of the budget. (1) A node
 * that lies, or a broken one, begins an adoption, and its rows name nothing that there is. (2) It never sends the
 * last entry. So there is room for a row of each log of the cluster, of which an adoption that is accepted has no more.
 * Where streams were deleted meanwhile, an honest one names logs that are gone: it would be refused at its end. */
static size_t staged_most(const struct leat_machine *machine)
{
    uint64_t most = machine->log_count * LEAT_ADOPT_ROW_BYTES_MAX;
    return most < LEAT_ADOPT_STAGED_BYTES_MAX ? (size_t)most : LEAT_ADOPT_STAGED_BYTES_MAX;
}

static leat_err staged_add(struct leat_machine *machine, const uint8_t *bytes, size_t count)
{
    if (machine->staged_bytes + count > machine->staged_capacity) {
        size_t capacity = machine->staged_capacity == 0 ? 65536 : machine->staged_capacity;
        while (capacity < machine->staged_bytes + count)
            capacity *= 2;
        void *staged = leat_mem_realloc(LEAT_MEM_ROWS, machine->staged, capacity, 1);
        if (!staged) return LEAT_E_NO_MEMORY;
        machine->staged = staged;
        machine->staged_capacity = capacity;
    }
    if (count) memcpy(machine->staged + machine->staged_bytes, bytes, count);
    machine->staged_bytes += count;
    return LEAT_OK;
}

leat_err leat_machine_apply_adopt(struct leat_machine *machine, struct leat_msg_reader *reader,
                                  struct leat_machine_result *result)
{
    struct leat_assign assign = {.reason = LEAT_ASSIGN_START, .rows.next = adopt_next};
    uint64_t attempt = leat_msg_read_u64(reader);
    uint32_t number = leat_msg_read_u32(reader);
    bool last = leat_msg_read_bool(reader);
    assign.incarnation = assign.owner = leat_msg_read_u64(reader);
    (void)leat_msg_read_u64(reader); /* entries that had changed anything, for people */
    struct leat_msg_string rows = leat_msg_read_string(reader);
    assign.seen = leat_msg_read_u64(reader);
    assign.leaves = leat_msg_read_bool(reader);
    if (!leat_msg_read_done(reader) || attempt == 0) return leat_machine_malformed(result);

    /* A new attempt replaces one that never came to its end. */
    if (number == 0) {
        staged_drop(machine);
        machine->staged_attempt = attempt;
    }
    if (machine->staged_attempt != attempt || machine->staged_next != number ||
        machine->staged_bytes + rows.bytes > staged_most(machine)) {
        result->rc =
            leat_error_set(&result->error, LEAT_E_AGAIN, "another adoption came in between");
        return LEAT_OK;
    }
    machine->staged_next++;
    leat_err rc = staged_add(machine, (const uint8_t *)rows.text, rows.bytes);
    if (rc != LEAT_OK || !last) return rc;
    leat_msg_reader_init(&assign.rows.msg, machine->staged, machine->staged_bytes);
    rc = leat_machine_assign(machine, &assign, result);
    staged_drop(machine);
    return rc;
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

static bool recover_head(struct leat_assign_reader *reader)
{
    struct leat_msg_reader *msg = &reader->msg;
    struct leat_assign_row *head = &reader->head;
    reader->streamlets--;
    if (leat_msg_read_array(msg) != 6) msg->failed = true;
    head->log = (struct leat_log_ref){.stream = leat_msg_read_u32(msg)};
    head->log.streamlet = leat_msg_read_u32(msg);
    head->seen_owner = leat_msg_read_u64(msg);
    head->seen_epoch = leat_msg_read_u32(msg);
    head->owner = leat_msg_read_u64(msg);
    head->rows = reader->rows = leat_msg_read_array(msg);
    return !msg->failed;
}

static bool recover_next(struct leat_assign_reader *reader, struct leat_assign_row *row)
{
    struct leat_msg_reader *msg = &reader->msg;
    while (reader->rows == 0)
        if (reader->streamlets == 0 || !recover_head(reader)) return false;
    *row = reader->head;
    row->log.log = reader->head.rows - reader->rows--;
    uint32_t fields = leat_msg_read_array(msg);
    row->seen_log_epoch = leat_msg_read_u32(msg);
    row->seen_stamp = leat_msg_read_u32(msg);
    row->seen_version = leat_msg_read_u32(msg);
    row->decision = leat_msg_read_u32(msg);
    bool heard = row->decision == LEAT_RECOVER_WAITS && fields != 4;
    if (row->decision == LEAT_RECOVER_TAIL || heard) {
        if (fields != (heard ? 9 : 8)) msg->failed = true;
        leat_tail_record_read(msg, &row->tail);
        if (heard) row->heard = leat_msg_read_u64(msg);
    } else if (fields != 4 || row->decision > LEAT_RECOVER_STANDS) {
        msg->failed = true;
    }
    return !msg->failed;
}

leat_err leat_machine_apply_recover(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    (void)leat_msg_read_u64(reader); /* the attempt, for people */
    struct leat_assign assign = {.reason = LEAT_ASSIGN_RECOVERY, .rows.next = recover_next};
    assign.rows.streamlets = leat_msg_read_array(reader);
    assign.rows.msg = *reader;
    struct leat_assign_reader all = assign.rows; /* before anything changes */
    for (struct leat_assign_row row; all.next(&all, &row);)
        continue;
    if (!leat_msg_read_done(&all.msg)) return leat_machine_malformed(result);
    return leat_machine_assign(machine, &assign, result);
}
