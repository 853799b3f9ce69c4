/* SPDX-License-Identifier: Apache-2.0 */
/* Entries about logs: opened, versions, accepted loss, streamlets that move. */
#include "coordinator/metadata/private.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"

struct leat_machine_log *leat_machine_log_find(const struct leat_machine *machine,
                                               struct leat_log_ref ref,
                                               struct leat_machine_stream **out_stream)
{
    struct leat_machine_stream *stream = leat_machine_stream_find(machine, ref.stream);
    *out_stream = stream;
    if (!stream || ref.streamlet >= stream->desc->settings.streamlets ||
        ref.log >= stream->desc->settings.logs)
        return NULL;
    return &stream->logs[ref.streamlet * stream->desc->settings.logs + ref.log];
}

void leat_machine_refuse_log(struct leat_machine_result *result, bool stream_known,
                             struct leat_log_ref ref)
{
    if (!stream_known)
        result->rc = leat_error_set(&result->error, LEAT_E_UNKNOWN_STREAM,
                                    "there is no stream %" PRIu32 " (any more)", ref.stream);
    else
        result->rc = leat_error_set(&result->error, LEAT_E_UNKNOWN_LOG,
                                    "stream %" PRIu32 " has no log %" PRIu32 " of streamlet "
                                    "%" PRIu32,
                                    ref.stream, ref.log, ref.streamlet);
}

/* Which logs, in whose name. */
struct claim {
    uint64_t incarnation; /* 0: not said (entries of old) */
    uint32_t epoch;
};

/* An entry in the name of an incarnation that is not the newest of its node comes from the grave. */
static bool claim_of_living(struct leat_machine *machine, uint64_t incarnation,
                            struct leat_machine_result *result)
{
    if (incarnation == 0 || leat_machine_incarnation_lives(machine, incarnation)) return true;
    if (LEAT_BUG(STALE_CLAIM)) return true;
    result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                "incarnation %" PRIu64 " is not up (any more)", incarnation);
    return false;
}

static struct leat_machine_log *claim_check(struct leat_machine *machine, struct leat_log_ref ref,
                                            const struct claim *claim,
                                            struct leat_machine_result *result)
{
    struct leat_machine_stream *stream;
    struct leat_machine_log *log = leat_machine_log_find(machine, ref, &stream);
    if (!log) {
        leat_machine_refuse_log(result, stream != NULL, ref);
        return NULL;
    }
    if (LEAT_BUG(STALE_CLAIM)) return log;
    if (log->epoch.v != claim->epoch) {
        result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                    "stream %" PRIu32 " streamlet %" PRIu32 " log %" PRIu32
                                    " is owned under epoch %" PRIu32 ", not %" PRIu32,
                                    ref.stream, ref.streamlet, ref.log, log->epoch.v, claim->epoch);
        return NULL;
    }
    uint64_t owner = stream->desc->streamlets[ref.streamlet].owner;
    if (claim->incarnation != 0 && owner != claim->incarnation) {
        result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                    "stream %" PRIu32 " streamlet %" PRIu32
                                    " is owned by incarnation %" PRIu64 ", not %" PRIu64,
                                    ref.stream, ref.streamlet, owner, claim->incarnation);
        return NULL;
    }
    return log;
}

/* An array of [stream, streamlet, log, ...]: header and reference of the next. */
static bool ref_next(struct leat_msg_reader *reader, uint32_t fields, struct leat_log_ref *out_ref)
{
    if (leat_msg_read_array(reader) != fields) reader->failed = true;
    *out_ref = leat_msg_read_log(reader);
    return !reader->failed;
}

/* All logs of the entry, or none: first a pass that checks, then one that changes. */
leat_err leat_machine_apply_opened(struct leat_machine *machine, struct leat_msg_reader *reader,
                                   struct leat_machine_result *result)
{
    struct claim claim = {.epoch = leat_msg_read_u32(reader)};
    uint32_t count = leat_msg_read_array(reader);
    struct leat_msg_reader again = *reader, past = *reader;
    leat_msg_skip_n(&past, count);
    claim.incarnation = leat_msg_read_u64(&past);
    uint32_t version = leat_msg_read_u32(&past);
    (void)leat_msg_read_bool(&past);
    if (!leat_msg_read_done(&past)) return leat_machine_malformed(result);
    if (!claim_of_living(machine, claim.incarnation, result)) return LEAT_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_log_ref ref;
        if (!ref_next(reader, 3, &ref)) return leat_machine_malformed(result);
        if (!claim_check(machine, ref, &claim, result)) return LEAT_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct leat_log_ref ref;
        struct leat_machine_stream *stream;
        LEAT_ASSERT(ref_next(&again, 3, &ref));
        struct leat_machine_log *log = leat_machine_log_find(machine, ref, &stream);
        leat_machine_owner_changed(machine, stream->owners[ref.streamlet]);
        /* Opened twice: by an owner that did not hear of the first time. */
        struct leat_tail_record began = log->record.opened ? log->record.began : log->record.tail;
        log->record = (struct leat_log_record){
            .opened = true, .stamp_epoch = {claim.epoch}, .stamp_version = version, .began = began};
    }
    machine->changes++;
    result->epoch.v = claim.epoch;
    return LEAT_OK;
}

leat_err leat_machine_apply_version(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct claim claim = {.incarnation = leat_msg_read_u64(reader)};
    claim.epoch = leat_msg_read_u32(reader);
    uint32_t version = leat_msg_read_u32(reader);
    uint32_t count = leat_msg_read_array(reader);
    struct leat_msg_reader again = *reader;
    if (reader->failed || claim.incarnation == 0) return leat_machine_malformed(result);
    if (!claim_of_living(machine, claim.incarnation, result)) return LEAT_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_log_ref ref;
        if (!ref_next(reader, 3, &ref)) return leat_machine_malformed(result);
        const struct leat_machine_log *log = claim_check(machine, ref, &claim, result);
        if (!log) return LEAT_OK;
        if (log->record.opened && version >= log->record.stamp_version) continue;
        result->rc = leat_error_set(
            &result->error, LEAT_E_INVALID,
            "stream %" PRIu32 " streamlet %" PRIu32 " log %" PRIu32 " %s %" PRIu32, ref.stream,
            ref.streamlet, ref.log,
            log->record.opened ? "is of a higher version than" : "is not opened, it has no version",
            version);
        return LEAT_OK;
    }
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    for (uint32_t i = 0; i < count; i++) {
        struct leat_log_ref ref;
        struct leat_machine_stream *stream;
        LEAT_ASSERT(ref_next(&again, 3, &ref));
        leat_machine_log_find(machine, ref, &stream)->record.stamp_version = version;
        leat_machine_owner_changed(machine, stream->owners[ref.streamlet]);
    }
    machine->changes++;
    result->epoch.v = claim.epoch;
    return LEAT_OK;
}

/* ---- loss that an operator accepts ---- */

struct loss {
    struct leat_log_ref ref;
    struct leat_tail_record tail;
    struct claim claim;
    bool stands_in;
};

static bool loss_read(struct leat_msg_reader *reader, struct loss *loss)
{
    *loss = (struct loss){.ref = leat_msg_read_log(reader)};
    loss->tail.segment = leat_msg_read_u64(reader);
    loss->tail.next_offset = leat_msg_read_u64(reader);
    loss->tail.jumped = true;
    loss->claim.incarnation = leat_msg_read_u64(reader);
    loss->claim.epoch = leat_msg_read_u32(reader);
    loss->tail.extent.bytes = leat_msg_read_u32(reader);
    loss->tail.extent.crc = leat_msg_read_u32(reader);
    loss->stands_in = leat_msg_read_bool(reader);
    return leat_msg_read_done(reader);
}

/* SUBTLE: nothing is given up that a node may still have. (1) A log waits, and what is left of it was
 * looked for on every node but one, which is down. (2) That one comes up, with all that was
 * acknowledged. (3) An operator accepts the loss before recovery has asked it. So what was heard of
 * the log counts until another incarnation is given out. */
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

/* Beyond every offset that a record of it ever had, whoever accepted a loss before: what is known may
 * have forgotten an earlier jump, with all that was written after it. */
static bool loss_jump(const struct leat_machine_log *log, uint64_t *next_offset)
{
    enum { BAND_BITS = 40 };
    uint64_t known = *next_offset > log->jumped_to ? *next_offset : log->jumped_to;
    if (!log->record.opened && log->record.tail.next_offset > known)
        known = log->record.tail.next_offset;
    if (known >= (uint64_t)INT64_MAX >> 1) return false;
    if (LEAT_BUG(OFFSETS_AGAIN))
        *next_offset = known;
    else
        *next_offset = ((known >> BAND_BITS) + 1) << BAND_BITS;
    return true;
}

static bool loss_check(struct leat_machine *machine, struct loss *loss,
                       struct leat_machine_result *result)
{
    struct leat_machine_stream *stream;
    struct leat_machine_log *log = leat_machine_log_find(machine, loss->ref, &stream);
    if (!log) {
        leat_machine_refuse_log(result, stream != NULL, loss->ref);
        return false;
    }
    /* The claim names owner and epoch: an operator's entry that arrives late, through an earlier owner, would give up
     * a log that is served again. */
    if (!claim_of_living(machine, loss->claim.incarnation, result) ||
        !claim_check(machine, loss->ref, &loss->claim, result) ||
        (loss->stands_in && !loss_is_known(machine, &log->record, result)))
        return false;
    if (!loss_jump(log, &loss->tail.next_offset))
        result->rc = leat_error_set(&result->error, LEAT_E_INVALID, "its offsets are used up");
    return result->rc == LEAT_OK;
}

leat_err leat_machine_apply_accept_loss(struct leat_machine *machine,
                                        struct leat_msg_reader *reader,
                                        struct leat_machine_result *result)
{
    struct loss loss;
    if (!loss_read(reader, &loss)) return leat_machine_malformed(result);
    if (!loss_check(machine, &loss, result)) return LEAT_OK;
    uint32_t epoch = leat_machine_epoch_draw(machine);
    if (epoch == 0) {
        (void)leat_machine_epochs_used_up(result);
        return LEAT_OK;
    }
    struct leat_machine_stream *stream;
    struct leat_machine_log *log = leat_machine_log_find(machine, loss.ref, &stream);
    log->record = (struct leat_log_record){.tail = loss.tail};
    log->epoch.v = epoch;
    log->jumped_to = loss.tail.next_offset;
    leat_machine_owner_changed(machine, stream->owners[loss.ref.streamlet]);
    machine->changes++;
    result->epoch.v = epoch;
    result->first_id = (int64_t)loss.tail.next_offset;
    leat_machine_stream_told(machine, stream->desc); /* where its log begins now */
    return LEAT_OK;
}

/* ---- moving ---- */

struct move_row {
    struct leat_log_ref log;
    struct leat_tail_record tail;
};

static bool move_row_next(struct leat_msg_reader *reader, struct move_row *row)
{
    *row = (struct move_row){0};
    if (!ref_next(reader, 7, &row->log)) return false;
    leat_tail_record_read(reader, &row->tail);
    return !reader->failed;
}

/* Every log of every streamlet that is named, in order, and all the requester's own. */
static bool move_check(struct leat_machine *machine, struct leat_msg_reader *reader, uint32_t count,
                       const struct claim *claim, struct leat_machine_result *result)
{
    struct leat_log_ref expect = {0};
    for (uint32_t i = 0; i < count; i++) {
        struct move_row row;
        if (!move_row_next(reader, &row)) return false;
        struct leat_machine_stream *stream;
        if (!leat_machine_log_find(machine, row.log, &stream)) {
            leat_machine_refuse_log(result, stream != NULL, row.log);
            return false;
        }
        bool begins = row.log.log == 0 && expect.log == 0 &&
                      (i == 0 || row.log.stream > expect.stream ||
                       (row.log.stream == expect.stream && row.log.streamlet > expect.streamlet));
        if (!begins && (expect.log == 0 || !leat_log_ref_equal(row.log, expect))) {
            result->rc = leat_error_set(&result->error, LEAT_E_INVALID,
                                        "a streamlet moves with all its logs, in ascending order");
            return false;
        }
        /* Of the streamlet: a log whose loss was accepted has an epoch of its own. */
        uint32_t epoch = stream->desc->streamlets[row.log.streamlet].epoch.v;
        uint64_t owner = stream->desc->streamlets[row.log.streamlet].owner;
        if (owner != claim->incarnation || epoch != claim->epoch) {
            result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                        "stream %" PRIu32 " streamlet %" PRIu32
                                        " is owned by incarnation %" PRIu64 " under epoch %" PRIu32,
                                        row.log.stream, row.log.streamlet, owner, epoch);
            return false;
        }
        expect = row.log;
        expect.log = row.log.log + 1 < stream->desc->settings.logs ? row.log.log + 1 : 0;
    }
    if (expect.log != 0)
        result->rc =
            leat_error_set(&result->error, LEAT_E_INVALID, "a streamlet moves with all its logs");
    return result->rc == LEAT_OK;
}

/* A description is immutable once told: one copy per stream, changed while nobody has it yet. */
static leat_err move_commit(struct leat_machine *machine, struct leat_msg_reader *reader,
                            uint32_t count, struct leat_machine_node *from,
                            struct leat_machine_node *to, struct leat_epoch epoch)
{
    struct leat_machine_stream *stream = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct move_row row;
        LEAT_ASSERT(move_row_next(reader, &row));
        if (!stream || stream->id != row.log.stream) {
            if (stream) leat_machine_stream_told(machine, stream->desc);
            stream = leat_machine_stream_find(machine, row.log.stream);
            struct leat_stream_desc *desc = leat_machine_desc_copy(stream->desc);
            if (!desc) return LEAT_E_NO_MEMORY;
            leat_stream_desc_unref(stream->desc);
            stream->desc = desc;
        }
        struct leat_machine_log *log =
            &stream->logs[row.log.streamlet * stream->desc->settings.logs + row.log.log];
        log->record = (struct leat_log_record){.tail = row.tail};
        log->epoch = epoch;
        if (row.log.log != 0) continue;
        stream->desc->streamlets[row.log.streamlet].owner = to->info.incarnation;
        stream->desc->streamlets[row.log.streamlet].epoch = epoch;
        stream->owners[row.log.streamlet] = leat_machine_node_index(machine, to);
        leat_machine_owner_count(from, stream->desc->settings.logs, false);
        from->changes++;
        leat_machine_owner_count(to, stream->desc->settings.logs, true);
        to->changes++;
    }
    if (stream) leat_machine_stream_told(machine, stream->desc);
    machine->changes++;
    return LEAT_OK;
}

leat_err leat_machine_apply_move(struct leat_machine *machine, struct leat_msg_reader *reader,
                                 struct leat_machine_result *result)
{
    struct claim claim = {.incarnation = leat_msg_read_u64(reader)};
    claim.epoch = leat_msg_read_u32(reader);
    struct leat_msg_string target = leat_msg_read_string(reader);
    uint32_t count = leat_msg_read_array(reader);
    struct leat_msg_reader rows = *reader, again = *reader;
    leat_msg_skip_n(reader, count);
    if (!leat_msg_read_done(reader) || count == 0) return leat_machine_malformed(result);
    struct leat_machine_node *from = leat_machine_incarnation_find(machine, claim.incarnation);
    if (!from || from->info.crashed) {
        (void)claim_of_living(machine, claim.incarnation ? claim.incarnation : UINT64_MAX, result);
        return LEAT_OK;
    }
    if (!move_check(machine, &rows, count, &claim, result))
        return rows.failed ? leat_machine_malformed(result) : LEAT_OK;
    struct leat_epoch epoch = {leat_machine_epoch_draw(machine)};
    if (epoch.v == 0) {
        (void)leat_machine_epochs_used_up(result);
        return LEAT_OK;
    }
    struct leat_machine_node *to = leat_machine_node_find(machine, target.text, target.bytes);
    if (!to || to == from || to->info.state != LEAT_NODE_UP || to->info.draining) {
        /* The owner has ended its epoch by asking, so it gets them back under a new one. */
        result->rc = leat_error_set(&result->error, LEAT_E_NOT_FOUND,
                                    "node '%.*s' can't take streamlets: it is %s",
                                    (int)target.bytes, target.text,
                                    !to                              ? "unknown"
                                    : to == from                     ? "their owner"
                                    : to->info.state != LEAT_NODE_UP ? "not up"
                                                                     : "draining");
        to = from;
    }
    result->epoch = epoch;
    result->incarnation = to->info.incarnation;
    return move_commit(machine, &again, count, from, to, epoch);
}
