/* SPDX-License-Identifier: Apache-2.0 */
/* ASSIGN: writing and reading its rows, and joining the parts of a start. The effect is in apply_assign.c. */
#include "coordinator/metadata/assign.h"

#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "coordinator/metadata/private.h"

/* Fields of a log. tells: the log waits, and all nodes were heard. */
static uint32_t fields_of(uint32_t decision, bool tells)
{
    enum { DECISION = 5, END = 9, HEARD = 10 };
    if (decision == LEAT_RECOVER_LEFT || tells) return HEARD;
    return decision == LEAT_RECOVER_TAIL ? END : DECISION;
}

/* ---- written ---- */

void leat_assign_rest_write(struct leat_msg_writer *writer, uint64_t owner, uint64_t seen)
{
    leat_assign_streamlet_write(writer,
                                &(struct leat_assign_row){.seen_owner = seen, .owner = owner});
}

void leat_assign_log_write(struct leat_msg_writer *writer, const struct leat_assign_row *row)
{
    struct leat_assign_row said = *row;
    said.fields = fields_of(row->decision, row->heard != 0);
    leat_assign_said_write(writer, &said);
}

/* ---- read ---- */

static bool head_read(struct leat_assign_reader *reader)
{
    struct leat_msg_reader *msg = &reader->msg;
    struct leat_assign_row *head = &reader->head;
    reader->streamlets--;
    reader->head_at = msg->at;
    if (reader->rest) msg->failed = true;
    if (reader->numbered)
        (void)leat_assign_streamlet_read(msg, head);
    else
        (void)leat_recover_streamlet_read(msg, head);
    reader->rows = head->rows;
    reader->rest = reader->numbered && head->log.stream == 0;
    if (reader->rest && head->rows != 0) msg->failed = true;
    return !msg->failed;
}

bool leat_assign_next(struct leat_assign_reader *reader, struct leat_assign_row *row)
{
    struct leat_msg_reader *msg = &reader->msg;
    const struct leat_assign_row *head = &reader->head;
    while (reader->rows == 0)
        if (reader->streamlets == 0 || msg->at >= msg->end || !head_read(reader)) return false;
    if (reader->numbered) {
        (void)leat_assign_said_read(msg, row);
    } else {
        (void)leat_recover_said_read(msg, row);
        row->fields++;
        row->log.log = head->rows - reader->rows;
    }
    reader->rows--;
    row->log.stream = head->log.stream;
    row->log.streamlet = head->log.streamlet;
    row->seen_owner = head->seen_owner;
    row->seen_epoch = head->seen_epoch;
    row->owner = head->owner;
    row->rows = head->rows;
    bool left = row->decision == LEAT_RECOVER_LEFT && reader->numbered;
    bool tells = row->decision == LEAT_RECOVER_WAITS && row->fields != fields_of(0, false);
    if (row->decision > LEAT_RECOVER_STANDS && !left) msg->failed = true;
    if (row->fields != fields_of(row->decision, tells)) msg->failed = true;
    row->tail.jumped = left;
    return !msg->failed;
}

/* ---- the parts of a start ---- */

static void staged_drop(struct leat_machine *machine)
{
    leat_mem_free(machine->staged);
    machine->staged = NULL;
    machine->staged_attempt = 0;
    machine->staged_next = 0;
    machine->staged_bytes = machine->staged_capacity = 0;
}

/* SUBTLE: every node keeps the rows of an attempt until its last entry, in memory of the budget. (1) A lying or
 * broken node begins an adoption with rows of logs that do not exist. (2) The node never sends the last entry. So the
 * limit is a row for each log of the cluster: an accepted adoption has no more. Where streams were deleted meanwhile,
 * an honest adoption names logs that are gone: it would be refused at its end. */
static size_t staged_most(const struct leat_machine *machine, size_t row_bytes)
{
    uint64_t most = machine->log_count * row_bytes;
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

leat_err leat_machine_start_part(struct leat_machine *machine, const struct leat_assign_part *part,
                                 struct leat_assign *assign, struct leat_machine_result *result)
{
    if (part->attempt == 0) return leat_machine_malformed(result);
    /* A new attempt replaces an attempt that was never completed. */
    if (part->number == 0) {
        staged_drop(machine);
        machine->staged_attempt = part->attempt;
    }
    if (machine->staged_attempt != part->attempt || machine->staged_next != part->number ||
        machine->staged_bytes + part->count > staged_most(machine, part->row_bytes)) {
        result->rc =
            leat_error_set(&result->error, LEAT_E_AGAIN, "another adoption came in between");
        return LEAT_OK;
    }
    machine->staged_next++;
    leat_err rc = staged_add(machine, part->bytes, part->count);
    if (rc != LEAT_OK || !part->last) return rc;
    leat_msg_reader_init(&assign->rows.msg, machine->staged, machine->staged_bytes);
    rc = leat_machine_assign(machine, assign, result);
    staged_drop(machine);
    return rc;
}

/* ---- the entry ---- */

/* All rows, before anything changes: the rows name streamlets of the requester, and decisions that its reason
 * allows. */
static bool rows_decode(struct leat_assign *assign, struct leat_assign_reader *all)
{
    static const uint8_t decisions[] = {
        [LEAT_ASSIGN_START] = 1 << LEAT_RECOVER_WAITS | 1 << LEAT_RECOVER_TAIL,
        [LEAT_ASSIGN_RECOVERY] =
            1 << LEAT_RECOVER_WAITS | 1 << LEAT_RECOVER_TAIL | 1 << LEAT_RECOVER_STANDS,
        [LEAT_ASSIGN_MOVE] = 1 << LEAT_RECOVER_TAIL,
        [LEAT_ASSIGN_LOSS] = 1 << LEAT_RECOVER_LEFT,
    };
    const enum leat_assign_reason reason = assign->reason;
    uint32_t count = 0;
    bool own = true;
    for (struct leat_assign_row row; all->next(all, &row); count++) {
        if (!(decisions[reason] & 1 << row.decision)) return false;
        /* no other node was asked */
        if (reason == LEAT_ASSIGN_START && row.heard != 0) return false;
        if (reason == LEAT_ASSIGN_RECOVERY && row.log.log != row.rows - 1 - all->rows) return false;
        if (count == 0 && reason != LEAT_ASSIGN_START) assign->owner = row.owner;
        if (reason == LEAT_ASSIGN_START || reason == LEAT_ASSIGN_LOSS)
            own = own && row.owner == assign->incarnation;
        if (reason == LEAT_ASSIGN_MOVE || reason == LEAT_ASSIGN_LOSS)
            own = own && row.seen_owner == assign->incarnation && row.owner == assign->owner;
    }
    if (!leat_msg_read_done(&all->msg) || all->streamlets != 0 || !own) return false;
    if (all->rest && all->head.owner != assign->incarnation) return false;
    return reason == LEAT_ASSIGN_START || reason == LEAT_ASSIGN_RECOVERY
               ? reason == LEAT_ASSIGN_START || !all->rest
               : !all->rest && count > 0 && (reason == LEAT_ASSIGN_MOVE || count == 1);
}

leat_err leat_machine_apply_assign(struct leat_machine *machine, struct leat_msg_reader *reader,
                                   struct leat_machine_result *result)
{
    struct leat_assign assign = {.leaves = true,
                                 .rows = {.next = leat_assign_next, .numbered = true}};
    struct leat_assign_entry said;
    (void)leat_assign_entry_read(reader, &said);
    struct leat_assign_part part = {
        .attempt = said.attempt, .number = said.part, .row_bytes = LEAT_ASSIGN_ROW_BYTES_MAX};
    assign.reason = said.reason;
    assign.incarnation = said.incarnation;
    assign.rows.streamlets = said.streamlets;
    assign.rows.msg = *reader;
    struct leat_assign_reader all = assign.rows;
    if (reader->failed || said.reason < LEAT_ASSIGN_START || said.reason > LEAT_ASSIGN_LOSS)
        return leat_machine_malformed(result);
    if (!rows_decode(&assign, &all)) return leat_machine_malformed(result);
    if (assign.reason != LEAT_ASSIGN_START) return leat_machine_assign(machine, &assign, result);
    part.last = all.rest;
    part.bytes = assign.rows.msg.at;
    part.count = (size_t)((part.last ? all.head_at : all.msg.at) - part.bytes);
    assign.owner = assign.incarnation;
    assign.seen = all.head.seen_owner;
    assign.rows.streamlets = UINT32_MAX; /* read to their end: those of all parts */
    return leat_machine_start_part(machine, &part, &assign, result);
}
