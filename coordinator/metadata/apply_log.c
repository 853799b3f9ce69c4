/* SPDX-License-Identifier: Apache-2.0 */
/* Entries in which an owner says something of its logs: opened, versions. */
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

void leat_machine_log_enter(struct leat_machine_log *log, const struct leat_log_record *record,
                            struct leat_epoch epoch)
{
    enum leat_record_state state = leat_record_state(&log->record, log->epoch);
    leat_record_enter(&state, leat_record_state(record, epoch));
    log->record = *record;
    log->epoch = epoch;
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

bool leat_claim_of_living(struct leat_machine *machine, uint64_t incarnation,
                          struct leat_machine_result *result)
{
    if (incarnation == 0 || leat_machine_incarnation_lives(machine, incarnation)) return true;
    if (LEAT_BUG(STALE_CLAIM)) return true;
    result->rc = leat_error_set(&result->error, LEAT_E_STALE_EPOCH,
                                "incarnation %" PRIu64 " is not up (any more)", incarnation);
    return false;
}

struct leat_machine_log *leat_claim_check(struct leat_machine *machine, struct leat_log_ref ref,
                                          const struct leat_claim *claim,
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

static bool ref_next(struct leat_msg_reader *reader, struct leat_log_ref *out_ref)
{
    (void)leat_entry_ref_read(reader, out_ref);
    return !reader->failed;
}

/* All logs of the entry, or none: the first pass checks, the second pass changes. */
leat_err leat_machine_apply_opened(struct leat_machine *machine, struct leat_msg_reader *reader,
                                   struct leat_machine_result *result)
{
    struct leat_entry_opened opened;
    (void)leat_entry_opened_read(reader, &opened);
    if (!leat_msg_read_done(reader)) return leat_machine_malformed(result);
    const struct leat_claim claim = {opened.incarnation, opened.epoch};
    const uint32_t count = opened.log_count;
    struct leat_msg_reader again = opened.logs;
    if (!leat_claim_of_living(machine, claim.incarnation, result)) return LEAT_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_log_ref ref;
        if (!ref_next(&opened.logs, &ref)) return leat_machine_malformed(result);
        if (!leat_claim_check(machine, ref, &claim, result)) return LEAT_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct leat_log_ref ref;
        struct leat_machine_stream *stream;
        LEAT_ASSERT(ref_next(&again, &ref));
        struct leat_machine_log *log = leat_machine_log_find(machine, ref, &stream);
        leat_machine_owner_changed(machine, stream->owners[ref.streamlet]);
        /* Opened twice: by an owner that did not hear of the first time. */
        struct leat_tail_record began = log->record.opened ? log->record.began : log->record.tail;
        const struct leat_log_record record = {.opened = true,
                                               .stamp_epoch = {claim.epoch},
                                               .stamp_version = opened.version,
                                               .began = began};
        leat_machine_log_enter(log, &record, log->epoch);
    }
    machine->changes++;
    result->epoch.v = claim.epoch;
    return LEAT_OK;
}

leat_err leat_machine_apply_version(struct leat_machine *machine, struct leat_msg_reader *reader,
                                    struct leat_machine_result *result)
{
    struct leat_entry_version raise;
    (void)leat_entry_version_read(reader, &raise);
    const struct leat_claim claim = {raise.incarnation, raise.epoch};
    const uint32_t version = raise.version, count = raise.log_count;
    struct leat_msg_reader again = *reader;
    if (reader->failed || claim.incarnation == 0) return leat_machine_malformed(result);
    if (!leat_claim_of_living(machine, claim.incarnation, result)) return LEAT_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_log_ref ref;
        if (!ref_next(reader, &ref)) return leat_machine_malformed(result);
        const struct leat_machine_log *log = leat_claim_check(machine, ref, &claim, result);
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
        LEAT_ASSERT(ref_next(&again, &ref));
        struct leat_machine_log *log = leat_machine_log_find(machine, ref, &stream);
        struct leat_log_record record = log->record;
        record.stamp_version = version;
        leat_machine_log_enter(log, &record, log->epoch);
        leat_machine_owner_changed(machine, stream->owners[ref.streamlet]);
    }
    machine->changes++;
    result->epoch.v = claim.epoch;
    return LEAT_OK;
}
