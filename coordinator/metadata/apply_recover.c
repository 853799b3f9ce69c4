/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery: streamlets that lost their owner get another, with the decisions where their logs end.
 *
 * Each streamlet stands for itself: its row says what was seen of it when the decision was made, and
 * is passed over when anything of that has changed. So of any number of attempts on one streamlet,
 * by leaders that overlap, by a message that came twice, or by the owner itself that came back and
 * adopted it, one takes effect. */
#include "coordinator/metadata/private.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"

struct recover_head {
    uint32_t stream, streamlet;
    uint64_t seen_owner;
    uint32_t seen_epoch;
    uint64_t owner;
    uint32_t logs;
};
struct recover_row {
    uint32_t seen_epoch, seen_stamp, seen_version;
    uint32_t decision; /* enum leat_recover_decision */
    struct leat_tail_record tail;
    uint64_t heard; /* WAITS, and all nodes were heard: tail is the best that they have */
};

static bool head_read(struct leat_msg_reader *reader, struct recover_head *head)
{
    if (leat_msg_read_array(reader) != 6) reader->failed = true;
    head->stream = leat_msg_read_u32(reader);
    head->streamlet = leat_msg_read_u32(reader);
    head->seen_owner = leat_msg_read_u64(reader);
    head->seen_epoch = leat_msg_read_u32(reader);
    head->owner = leat_msg_read_u64(reader);
    head->logs = leat_msg_read_array(reader);
    return !reader->failed;
}

static bool row_read(struct leat_msg_reader *reader, struct recover_row *row)
{
    uint32_t fields = leat_msg_read_array(reader);
    *row = (struct recover_row){0};
    row->seen_epoch = leat_msg_read_u32(reader);
    row->seen_stamp = leat_msg_read_u32(reader);
    row->seen_version = leat_msg_read_u32(reader);
    row->decision = leat_msg_read_u32(reader);
    bool heard = row->decision == LEAT_RECOVER_WAITS && fields != 4;
    if (row->decision == LEAT_RECOVER_TAIL || heard) {
        if (fields != (heard ? 9 : 8)) reader->failed = true;
        leat_tail_record_read(reader, &row->tail);
        if (heard) row->heard = leat_msg_read_u64(reader);
    } else if (fields != 4 || row->decision > LEAT_RECOVER_STANDS) {
        reader->failed = true;
    }
    return !reader->failed;
}

static bool is_unchanged(const struct leat_machine_log *log, const struct recover_row *row)
{
    const struct leat_log_record *record = &log->record;
    if (log->epoch.v != row->seen_epoch || record->opened != (row->seen_stamp != 0)) return false;
    if (record->opened)
        return record->stamp_epoch.v == row->seen_stamp &&
               record->stamp_version == row->seen_version && row->decision != LEAT_RECOVER_STANDS;
    return row->decision != LEAT_RECOVER_TAIL;
}

static bool row_holds(const struct leat_machine_log *log, const struct recover_row *row)
{
    return is_unchanged(log, row) || LEAT_BUG(LATE_ATTEMPT);
}

/* What all nodes said of a log that waits with the owner that it has. */
static bool row_tells(const struct leat_machine_log *log, const struct recover_row *row)
{
    return row->decision == LEAT_RECOVER_WAITS && row->heard != 0 && row_holds(log, row) &&
           leat_machine_log_waits(log);
}

/* A streamlet of which nothing was decided changes its owner only to be answered for: by the node that
 * had it, or by any when nobody had, or that one is not to come back. */
static bool may_answer_for(const struct leat_machine *machine,
                           const struct leat_machine_stream *stream, uint32_t streamlet,
                           const struct leat_machine_node *owner)
{
    uint16_t from = stream->owners[streamlet];
    if (from == LEAT_OWNER_NONE || &machine->nodes[from] == owner) return true;
    return machine->nodes[from].info.draining;
}

/* Reads the rows in any case: they decode (entry_decodes()). */
static bool streamlet_check(struct leat_machine *machine, const struct recover_head *head,
                            struct leat_msg_reader *reader)
{
    struct leat_machine_stream *stream = leat_machine_stream_find(machine, head->stream);
    bool holds = stream && head->streamlet < stream->desc->settings.streamlets &&
                 head->logs == stream->desc->settings.logs;
    bool takes = head->owner != head->seen_owner, gives = false, tells = false;
    if (holds)
        holds = stream->desc->streamlets[head->streamlet].owner == head->seen_owner &&
                stream->desc->streamlets[head->streamlet].epoch.v == head->seen_epoch;
    if (!holds && stream && LEAT_BUG(LATE_ATTEMPT)) holds = true;
    const struct leat_machine_node *owner = leat_machine_incarnation_find(machine, head->owner);
    if (!owner || owner->info.crashed || owner->info.state != LEAT_NODE_UP) holds = false;
    /* Never from who lives: only a move, which its owner asks for itself, does that. */
    if (takes && leat_machine_incarnation_lives(machine, head->seen_owner)) holds = false;
    for (uint32_t q = 0; q < head->logs; q++) {
        struct recover_row row;
        bool decoded = row_read(reader, &row);
        LEAT_ASSERT(decoded);
        if (!holds) continue;
        const struct leat_machine_log *log = &stream->logs[head->streamlet * head->logs + q];
        if (!takes && row.decision != LEAT_RECOVER_TAIL) { /* served, or it waits on */
            tells = tells || row_tells(log, &row);
            continue;
        }
        holds = row_holds(log, &row) && (takes || leat_machine_log_waits(log));
        if (row.decision != LEAT_RECOVER_WAITS) gives = true;
    }
    if (holds && takes && !gives) tells = may_answer_for(machine, stream, head->streamlet, owner);
    return holds && (gives || tells);
}

static void streamlet_commit(struct leat_machine *machine, struct leat_machine_stream *stream,
                             const struct recover_head *head, struct leat_msg_reader *reader,
                             struct leat_epoch epoch)
{
    bool takes = head->owner != head->seen_owner;
    for (uint32_t q = 0; q < head->logs; q++) {
        struct leat_machine_log *log = &stream->logs[head->streamlet * head->logs + q];
        struct recover_row row;
        LEAT_ASSERT(row_read(reader, &row));
        bool decided = row.decision == LEAT_RECOVER_TAIL;
        bool heard = row.heard != 0 && log->record.opened && (takes || row_tells(log, &row));
        if (decided) log->record = (struct leat_log_record){.tail = row.tail};
        if (heard) { /* one that waits keeps its stamp */
            log->record.tail = row.tail;
            log->record.heard = row.heard;
        }
        if (decided || takes) log->epoch = epoch;
    }
    leat_machine_owner_changed(machine, stream->owners[head->streamlet]);
    struct leat_machine_node *to = leat_machine_incarnation_find(machine, head->owner);
    to->changes++;
    if (!takes) return;
    uint16_t from = stream->owners[head->streamlet];
    if (from != LEAT_OWNER_NONE) leat_machine_owner_count(&machine->nodes[from], head->logs, false);
    leat_machine_owner_count(to, head->logs, true);
    stream->owners[head->streamlet] = leat_machine_node_index(machine, to);
    stream->desc->streamlets[head->streamlet].owner = head->owner;
    stream->desc->streamlets[head->streamlet].epoch = epoch;
}

static void node_gone_check(struct leat_machine *machine, uint16_t index)
{
    struct leat_machine_node *node = &machine->nodes[index];
    if (node->info.state != LEAT_NODE_DOWN || !node->info.draining || node->info.streamlets != 0)
        return;
    node->info.state = LEAT_NODE_GONE;
    if (machine->on_node) machine->on_node(machine->owner, &node->info);
}

/* A description is immutable once told: one copy per run of its streamlets, told at its end. */
static leat_err desc_renew(struct leat_machine *machine, struct leat_machine_stream **stream,
                           uint32_t id)
{
    if (*stream && (*stream)->id == id) return LEAT_OK;
    if (*stream) leat_machine_stream_told(machine, (*stream)->desc);
    *stream = NULL;
    if (id == 0) return LEAT_OK;
    struct leat_machine_stream *next = leat_machine_stream_find(machine, id);
    struct leat_stream_desc *desc = leat_machine_desc_copy(next->desc);
    if (!desc) return LEAT_E_NO_MEMORY;
    leat_stream_desc_unref(next->desc);
    next->desc = desc;
    *stream = next;
    return LEAT_OK;
}

/* All of it, before anything changes. */
static bool entry_decodes(struct leat_msg_reader reader, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct recover_head head;
        struct recover_row row;
        if (!head_read(&reader, &head)) return false;
        for (uint32_t q = 0; q < head.logs; q++)
            if (!row_read(&reader, &row)) return false;
    }
    return leat_msg_read_done(&reader);
}

leat_err leat_machine_apply_recover(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    (void)leat_msg_read_u64(reader); /* the attempt, for people */
    uint32_t count = leat_msg_read_array(reader);
    if (reader->failed || !entry_decodes(*reader, count)) return leat_machine_malformed(result);
    struct leat_epoch epoch = {0};
    struct leat_machine_stream *stream = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct recover_head head;
        LEAT_ASSERT(head_read(reader, &head));
        struct leat_msg_reader rows = *reader;
        if (!streamlet_check(machine, &head, reader)) continue;
        if (epoch.v == 0) epoch.v = leat_machine_epoch_draw(machine);
        if (epoch.v == 0) {
            (void)leat_machine_epochs_used_up(result); /* before anything has changed */
            return LEAT_OK;
        }
        leat_err rc = desc_renew(machine, &stream, head.stream);
        if (rc != LEAT_OK) return rc;
        uint16_t from = stream->owners[head.streamlet];
        streamlet_commit(machine, stream, &head, &rows, epoch);
        if (from != LEAT_OWNER_NONE) node_gone_check(machine, from);
        result->id_count++;
    }
    leat_err rc = desc_renew(machine, &stream, 0);
    if (rc != LEAT_OK) return rc;
    result->epoch = epoch;
    if (result->id_count > 0)
        machine->changes++;
    else
        result->rc = leat_error_set(&result->error, LEAT_E_AGAIN,
                                    "nothing is any more as it was when this was decided");
    return LEAT_OK;
}
