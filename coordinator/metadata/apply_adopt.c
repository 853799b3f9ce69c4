/* SPDX-License-Identifier: Apache-2.0 */
/* Adoption: a node that came up takes over what it owned before, with the decisions where each log
 * ends. */
#include "coordinator/metadata/private.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

struct adopt_row {
    struct leat_log_ref log;
    uint32_t decision;
    struct leat_tail_record tail;
};

static struct adopt_row adopt_row_read(struct leat_msg_reader *reader)
{
    struct adopt_row row = {0};
    uint32_t fields = leat_msg_read_array(reader);
    row.log = leat_msg_read_log(reader);
    row.decision = leat_msg_read_u32(reader);
    leat_tail_record_read(reader, &row.tail);
    if (fields != 8) reader->failed = true;
    return row;
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

/* Rows that name something unknown make the whole attempt refused, before anything changes. */
static bool adopt_rows_check(struct leat_machine *machine, const struct leat_machine_node *node,
                             struct leat_machine_result *result)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, machine->staged, machine->staged_bytes);
    while (!reader.failed && reader.at < reader.end) {
        struct adopt_row row = adopt_row_read(&reader);
        if (reader.failed) break;
        struct leat_machine_stream *stream;
        if (!leat_machine_log_find(machine, row.log, &stream)) {
            leat_machine_refuse_log(result, stream != NULL, row.log);
            return false;
        }
        uint64_t owner = stream->desc->streamlets[row.log.streamlet].owner;
        if (!leat_machine_adoptable(machine, stream, row.log.streamlet, node)) {
            result->rc = leat_error_set(&result->error, LEAT_E_NOT_OWNER,
                                        "stream %" PRIu32 " streamlet %" PRIu32
                                        " is another node's, of incarnation %" PRIu64,
                                        row.log.stream, row.log.streamlet, owner);
            return false;
        }
    }
    if (!reader.failed) return true;
    result->rc = leat_error_set(&result->error, LEAT_E_INVALID, "an adoption's rows do not decode");
    return false;
}

static bool anything_adoptable(const struct leat_machine *machine,
                               const struct leat_machine_stream *stream,
                               const struct leat_machine_node *node)
{
    for (uint32_t i = 0; i < stream->desc->streamlet_count; i++)
        if (leat_machine_adoptable(machine, stream, i, node)) return true;
    return false;
}

/* Rows are in order, and one that waits names a streamlet that is left to recovery. */
static bool streamlet_left(struct leat_msg_reader *left, struct leat_log_ref ref)
{
    for (;;) {
        struct leat_msg_reader at = *left;
        if (at.at >= at.end) return false;
        struct adopt_row row = adopt_row_read(&at);
        bool before = row.log.stream < ref.stream ||
                      (row.log.stream == ref.stream && row.log.streamlet < ref.streamlet);
        bool same = row.log.stream == ref.stream && row.log.streamlet == ref.streamlet;
        if (same && row.decision == LEAT_DECIDED_WAIT) return true;
        if (!before && !same) return false;
        *left = at;
    }
}

/* A description is immutable once told, so an ownership change tells a new one. */
static leat_err stream_own(struct leat_machine *machine, struct leat_machine_stream *stream,
                           struct leat_machine_node *node, struct leat_epoch epoch,
                           struct leat_msg_reader *left)
{
    if (!anything_adoptable(machine, stream, node)) return LEAT_OK;
    struct leat_stream_desc *desc = leat_machine_desc_copy(stream->desc);
    if (!desc) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < desc->streamlet_count; i++) {
        if (!leat_machine_adoptable(machine, stream, i, node)) continue;
        if (left && streamlet_left(left, (struct leat_log_ref){stream->id, i, 0})) continue;
        if (stream->owners[i] == LEAT_OWNER_NONE)
            leat_machine_owner_count(node, desc->settings.logs, true);
        stream->owners[i] = leat_machine_node_index(machine, node);
        desc->streamlets[i].owner = node->info.incarnation;
        desc->streamlets[i].epoch = epoch;
        for (uint32_t q = 0; q < desc->settings.logs; q++)
            stream->logs[i * desc->settings.logs + q].epoch = epoch;
    }
    leat_stream_desc_unref(stream->desc);
    stream->desc = desc;
    leat_machine_stream_told(machine, desc);
    return LEAT_OK;
}

static leat_err adopt_commit(struct leat_machine *machine, struct leat_machine_node *node,
                             bool leaves, struct leat_machine_result *result)
{
    struct leat_epoch epoch = {leat_machine_epoch_draw(machine)};
    if (epoch.v == 0) {
        (void)leat_machine_epochs_used_up(result);
        return LEAT_OK;
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, machine->staged, machine->staged_bytes);
    while (reader.at < reader.end) {
        struct adopt_row row = adopt_row_read(&reader);
        /* A waiting log keeps what says where it ends, and is tried again. */
        if (row.decision != LEAT_DECIDED_TAIL) continue;
        struct leat_machine_stream *stream;
        struct leat_machine_log *log = leat_machine_log_find(machine, row.log, &stream);
        log->record = (struct leat_log_record){.tail = row.tail};
    }
    struct leat_msg_reader left;
    leat_msg_reader_init(&left, machine->staged, machine->staged_bytes);
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        leat_err rc = stream_own(machine, &machine->streams[i], node, epoch, leaves ? &left : NULL);
        if (rc != LEAT_OK) return rc;
    }
    machine->changes++;
    machine->node_changes++;
    node->changes++;
    node->adopted = node->info.incarnation;
    result->epoch = epoch;
    result->incarnation = node->info.incarnation;
    return LEAT_OK;
}

leat_err leat_machine_apply_adopt(struct leat_machine *machine, struct leat_msg_reader *reader,
                                  struct leat_machine_result *result)
{
    uint64_t attempt = leat_msg_read_u64(reader);
    uint32_t number = leat_msg_read_u32(reader);
    bool last = leat_msg_read_bool(reader);
    uint64_t incarnation = leat_msg_read_u64(reader);
    (void)leat_msg_read_u64(reader); /* entries that had changed anything, for people */
    struct leat_msg_string rows = leat_msg_read_string(reader);
    uint64_t seen = leat_msg_read_u64(reader);
    bool leaves = leat_msg_read_bool(reader);
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

    struct leat_machine_node *node = leat_machine_incarnation_find(machine, incarnation);
    if (!node || node->info.crashed)
        result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                    "incarnation %" PRIu64 " is not up (any more)", incarnation);
    else if (seen != leat_machine_seen(machine, node))
        result->rc = leat_error_set(&result->error, LEAT_E_AGAIN,
                                    "streams or logs changed while the adoption was decided");
    else if (adopt_rows_check(machine, node, result))
        rc = adopt_commit(machine, node, leaves, result);
    staged_drop(machine);
    return rc;
}
