/* SPDX-License-Identifier: Apache-2.0 */
/* The server is fake_server.c; each turn adds some records and looks at how many batches are under way. */
#include "tests/producer/engine_rig.h"

#include "base/bytes.h"
#include "producer/internal.h"

#include <stdlib.h>
#include <string.h>

void on_produced(void *arg, const struct leat_produced *produced)
{
    struct rig_record *record = arg;
    assert_false(record->ended); /* exactly once */
    record->ended = true;
    record->rc = produced->rc;
    record->offset = produced->offset;
    record->log = produced->log;
    record->told_unknown =
        produced->text && strstr(produced->text, "whether it was appended is unknown: ");
    record->rig->ended++;
    if (produced->rc == LEAT_OK) record->rig->acked++;
}

void add_some(struct rig *rig)
{
    while (rig->adding && rig->added < rig->wanted) {
        struct rig_record *record = &rig->records[rig->added];
        record->rig = rig;
        record->number = rig->added;
        uint8_t value[64] = {0};
        leat_put_le32(value, rig->added);
        leat_err rc = leat_producer_engine_add(rig->engine, "s", -1, 0, NULL, 0, value,
                                               sizeof value, on_produced, record);
        if (rc == LEAT_E_AGAIN || (rc == LEAT_E_UNKNOWN_STREAM && rig->may_be_refused)) return;
        assert_int_equal(rc, LEAT_OK);
        rig->added++;
        if (rig->added % 7 == 0) return; /* the rest in another turn */
    }
}

/* Sequences of the batches that the network has and whose answers have not come, per log: at most
 * five, because the server knows the last five by heart and no more. */
static void window_check(struct rig *rig)
{
    LEAT_LIST_EACH(&rig->engine->active, link)
    {
        struct leat_producer_log *log = LEAT_CONTAINER(link, struct leat_producer_log, link);
        uint32_t under_way = 0, requested = 0;
        LEAT_LIST_EACH(&log->queue, it)
        if (LEAT_CONTAINER(it, struct leat_producer_batch, link)->in_flight) under_way++;
        for (uint32_t i = 0; i < LEAT_BATCHES_IN_FLIGHT_MAX; i++)
            if (log->appends[i].busy) requested += log->appends[i].request.payload_count;
        assert_int_equal(under_way, requested);
        assert_true(under_way <= LEAT_BATCHES_IN_FLIGHT_MAX);
        if (under_way > rig->under_way_max) rig->under_way_max = under_way;
    }
}

static void turn_end(void *owner)
{
    struct rig *rig = owner;
    if (!rig->engine) return;
    add_some(rig);
    leat_producer_engine_on_turn_end(rig->engine);
    leat_client_on_turn_end(rig->client);
    window_check(rig);
}

bool all_ended(void *owner)
{
    struct rig *rig = owner;
    return rig->ended == rig->wanted;
}

struct rig *rig_make(uint64_t seed, uint64_t timeout_us, uint32_t wanted)
{
    struct rig *rig = calloc(1, sizeof *rig);
    fake_init(&rig->world, seed);
    rig->world.owner = rig;
    rig->world.turn_end = turn_end;
    rig->client = fake_client(&rig->world, 200000);
    struct leat_producer_engine_options options = {.batch_bytes = 1024,
                                                   .linger_us = 500,
                                                   .buffer_bytes = 40 * 1024,
                                                   .timeout_us = timeout_us,
                                                   .create_streams = true};
    assert_int_equal(leat_producer_engine_create(&rig->world.env, &rig->world.timers, rig->client,
                                                 &options, &rig->engine),
                     LEAT_OK);
    rig->wanted = wanted;
    rig->adding = true;
    return rig;
}

void rig_end(struct rig *rig)
{
    rig->adding = false;
    leat_client_destroy(&rig->client);
    leat_producer_engine_destroy(&rig->engine);
    fake_fini(&rig->world);
    free(rig);
}

void logs_check(struct rig *rig)
{
    static uint8_t seen[RECORDS_MAX];
    memset(seen, 0, sizeof seen);
    for (uint32_t l = 0; l < rig->world.streamlets * rig->world.logs; l++) {
        struct fake_log *log = &rig->world.log[l];
        int64_t before = -1;
        for (uint32_t b = 0; b < log->batch_count; b++) {
            struct leat_batch batch;
            assert_int_equal(
                leat_batch_check(log->batches[b].bytes, log->batches[b].count, &batch, NULL),
                LEAT_OK);
            const uint8_t *records;
            size_t bytes;
            static uint8_t unpacked[64 * 1024];
            assert_int_equal(
                leat_batch_records(&batch, unpacked, sizeof unpacked, &records, &bytes), LEAT_OK);
            struct leat_record_reader reader;
            struct leat_record record;
            leat_record_reader_init(&reader, &batch, records, bytes);
            while (leat_record_next(&reader, &record) == LEAT_OK) {
                uint32_t number = leat_get_le32(record.value);
                assert_true((int64_t)number > before); /* order, per log */
                before = number;
                assert_int_equal(seen[number], 0); /* never twice */
                seen[number] = 1;
                if (rig->records[number].ended && rig->records[number].rc == LEAT_OK &&
                    rig->records[number].offset != UINT64_MAX)
                    assert_int_equal(rig->records[number].offset,
                                     log->batches[b].offset + record.offset_delta);
                if (rig->records[number].ended) /* refused by name is a promise */
                    assert_int_not_equal(leat_err_class(rig->records[number].rc),
                                         LEAT_CLASS_REJECT);
            }
        }
    }
    for (uint32_t i = 0; i < rig->added; i++)
        if (rig->records[i].ended && rig->records[i].rc == LEAT_OK)
            assert_int_equal(seen[i], 1); /* acked is never lost */
}
