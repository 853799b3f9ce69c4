/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/consumer/engine_rig.h"

#include <stdlib.h>
#include <string.h>

static void on_ready(void *owner, leat_err rc, const struct leat_error *error)
{
    struct rig *rig = owner;
    (void)error;
    assert_false(rig->ready);
    rig->ready = true;
    rig->ready_rc = rc;
}
static void on_fetched(void *owner)
{
    (void)owner;
}
static void on_error(void *owner, const struct leat_error *error)
{
    struct rig *rig = owner;
    enum leat_err_class class = leat_err_class(error->code);
    rig->error_rc = error->code;
    memcpy(rig->text, error->text, sizeof rig->text);
    if (class == LEAT_CLASS_REJECT || class == LEAT_CLASS_FATAL)
        rig->errors++;
    else
        rig->notes++;
}

static void run_read(struct rig *rig, const struct leat_fetched *run)
{
    uint32_t at = 0, log = run->log.streamlet * rig->world.logs + run->log.log;
    while (at < run->byte_count) {
        struct leat_batch batch;
        uint64_t bytes = leat_batch_bytes(run->bytes + at, run->byte_count - at);
        assert_int_equal(leat_batch_view(run->bytes + at, (size_t)bytes, &batch), LEAT_OK);
        for (uint32_t i = 0; i < batch.record_count; i++) {
            uint64_t offset = batch.base_offset + i;
            if (offset < run->from_offset) continue;
            if (offset > rig->next[log]) rig->skipped += offset - rig->next[log];
            assert_true(offset >= rig->next[log]); /* never twice, never back */
            assert_true(leat_batch_crc_is_right(run->bytes + at, (size_t)bytes));
            rig->next[log] = offset + 1;
            rig->read++;
        }
        at += (uint32_t)bytes;
    }
    leat_consumer_engine_processed(rig->engine, run->log, run->group, rig->next[log]);
}

static void turn_end(void *owner)
{
    struct rig *rig = owner;
    if (!rig->engine) return;
    struct leat_fetched *run;
    leat_consumer_engine_on_turn_end(rig->engine);
    leat_client_on_turn_end(rig->client);
    uint64_t before = rig->read;
    while (!rig->holding && (run = leat_consumer_engine_take(rig->engine))) {
        run_read(rig, run);
        leat_consumer_engine_give(rig->engine, run);
    }
    if (rig->read == before) return; /* as outside: nobody looks again unasked */
    leat_consumer_engine_on_turn_end(rig->engine);
    leat_client_on_turn_end(rig->client);
}

bool all_read(void *owner)
{
    struct rig *rig = owner;
    return rig->read >= rig->wanted;
}
bool at_end(void *owner)
{
    struct rig *rig = owner;
    return leat_consumer_engine_at_end(rig->engine);
}
bool failed(void *owner)
{
    struct rig *rig = owner;
    return rig->errors > 0 || (rig->ready && rig->ready_rc);
}

/* Batches of 1 to 20 records into each log, straight into the server. */
void fill(struct rig *rig, uint32_t batches)
{
    for (uint32_t i = 0; i < batches; i++) {
        struct fake_log *log = &rig->world.log[i % LOGS];
        uint8_t bytes[4096];
        struct leat_batch_builder builder;
        leat_batch_builder_init(&builder, bytes, sizeof bytes);
        uint32_t records = 1 + i % 20;
        for (uint32_t r = 0; r < records; r++)
            assert_int_equal(
                leat_batch_builder_add(&builder, 1000 + r, NULL, 0, "value", 5, NULL, 0, 0),
                LEAT_OK);
        uint32_t count = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
        uint32_t at = log->batch_count++;
        log->batches[at].bytes = malloc(count);
        memcpy(log->batches[at].bytes, bytes, count);
        leat_batch_stamp(log->batches[at].bytes, log->end, 1);
        log->batches[at].count = count;
        log->batches[at].records = records;
        log->batches[at].offset = log->end;
        log->end += records;
        rig->wanted += records;
    }
}

struct rig *rig_begin(uint64_t seed)
{
    struct rig *rig = calloc(1, sizeof *rig);
    fake_init(&rig->world, seed);
    rig->world.owner = rig;
    rig->world.turn_end = turn_end;
    rig->world.streamlets = 2;
    rig->world.logs = 2;
    rig->world.stream_id = 5;
    return rig;
}

leat_err rig_engine(struct rig *rig, enum leat_engine_from from, int64_t value)
{
    struct leat_consumer_engine_options options = {.stream = "s",
                                                   .from = from,
                                                   .from_value = value,
                                                   .streamlet = -1,
                                                   .log = -1,
                                                   .fetch_bytes = 2000,
                                                   .min_bytes = 700,
                                                   .wait_ms = 50,
                                                   .session_ms = 1000,
                                                   .prefetch = 2};
    struct leat_consumer_engine_events events = {
        .on_ready = on_ready, .on_fetched = on_fetched, .on_error = on_error, .owner = rig};
    return leat_consumer_engine_create(&rig->world.env, &rig->world.timers, rig->client, &options,
                                       &events, &rig->engine);
}

struct rig *rig_make(uint64_t seed, enum leat_engine_from from, int64_t value)
{
    struct rig *rig = rig_begin(seed);
    rig->client = fake_client(&rig->world, 200000);
    assert_int_equal(rig_engine(rig, from, value), LEAT_OK);
    return rig;
}

void rig_end(struct rig *rig)
{
    leat_client_destroy(&rig->client);
    leat_consumer_engine_destroy(&rig->engine);
    fake_fini(&rig->world);
    free(rig);
}
