/* SPDX-License-Identifier: Apache-2.0 */
/* libleat's consumer, for the caller: application offsets (KerA thesis §5.2.1). */
#include "handle.h"

/* A question about a partition (-1: the only partition, whose number command->partition then gets), and its answer. */
static void place_ask(struct leat_consumer *consumer, struct consumer_command *command,
                      int timeout_ms)
{
    command->what = COMMAND_ASK;
    command->timeout_us = timeout_ms < 0 ? UINT64_MAX : (uint64_t)timeout_ms * 1000u;
    /* the command has its own time limit */
    (void)leat_consumer_command(consumer, command, UINT64_MAX);
}

leat_code leat_consumer_seek_app_offset(leat_consumer *consumer, int64_t partition,
                                        const leat_app_offset *to, int timeout_ms,
                                        leat_message *message)
{
    struct consumer_command command = {
        .partition = partition,
        .question = {.what = LEAT_LOCATE_POSITION,
                     .position = {to->group, to->segment, to->position}}};
    struct leat_error *error = &command.error;
    if (consumer->parallel)
        (void)leat_error_set(
            error, LEAT_E_UNSUPPORTED,
            "the segment groups of a parallel group are handed out to its members");
    else
        place_ask(consumer, &command, timeout_ms);
    if (error->code == LEAT_OK) {
        leat_err rc = leat_consumer_seek(consumer, command.partition, LEAT_FROM_OFFSET,
                                         (int64_t)command.found.offset);
        if (rc) (void)leat_error_set(error, rc, "%s", leat_err_text(rc));
    }
    return leat_shared_message(message, error);
}

/* The offsets of the batch that the record is of, as far as that is known. */
static void batch_bounds(const struct leat_consumer *consumer, const leat_record_view *record,
                         struct consumer_batch_place *out_place)
{
    const struct leat_batch *batch = &consumer->batch;
    out_place->partition = record->partition;
    out_place->from = record->offset;
    out_place->to = record->offset + 1;
    if (!consumer->in_batch) return;
    const struct leat_log_ref log = consumer->run->log;
    uint64_t end = batch->base_offset + batch->record_count;
    if (log.streamlet * consumer->q + log.log != record->partition ||
        record->offset < batch->base_offset || record->offset >= end)
        return;
    out_place->from = batch->base_offset;
    out_place->to = end;
}

leat_code leat_consumer_app_offset(leat_consumer *consumer, const leat_record_view *record,
                                   int timeout_ms, leat_app_offset *out, leat_message *message)
{
    struct consumer_batch_place *known = &consumer->batch_place;
    struct consumer_command command = {
        .partition = record->partition,
        .question = {.what = LEAT_LOCATE_OFFSET, .value = (int64_t)record->offset}};
    struct leat_error *error = &command.error;
    if (known->partition != record->partition || record->offset < known->from ||
        record->offset >= known->to) {
        place_ask(consumer, &command, timeout_ms);
        /* Where offsets were given up the next one is named. */
        if (error->code == LEAT_OK && command.found.offset != record->offset)
            (void)leat_error_set(error, LEAT_E_OFFSET_OUT_OF_RANGE,
                                 "partition %u has no record at offset %llu any more: it was given "
                                 "up",
                                 record->partition, (unsigned long long)record->offset);
        if (error->code) return leat_shared_message(message, error);
        const struct leat_position at = command.found.position;
        batch_bounds(consumer, record, known);
        known->at = (leat_app_offset){at.group, at.segment, at.position};
    }
    *out = known->at;
    return leat_shared_message(message, error);
}
