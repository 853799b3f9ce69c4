/* The producer's engine against a server that drops, delays, refuses and repeats: what is reported
 * is what happened, nothing is appended twice, nothing overtakes. */
#include "producer/engine.h"
#include "tests/client/fake_server.h"

#include "base/bytes.h"
#include "producer/gather.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS_MAX = 4000 };

struct rig {
    struct fake_world world;
    struct leat_client *client;
    struct leat_producer_engine *engine;
    uint32_t added, ended, acked, wanted;
    struct rig_record {
        struct rig *rig;
        uint32_t number;
        bool ended;
        leat_err rc;
        uint64_t offset;
        struct leat_log_ref log;
    } records[RECORDS_MAX];
    bool adding;
};

static void on_produced(void *arg, const struct leat_produced *produced)
{
    struct rig_record *record = arg;
    assert_false(record->ended); /* exactly once */
    record->ended = true;
    record->rc = produced->rc;
    record->offset = produced->offset;
    record->log = produced->log;
    record->rig->ended++;
    if (produced->rc == LEAT_OK) record->rig->acked++;
}

static void add_some(struct rig *rig)
{
    while (rig->adding && rig->added < rig->wanted) {
        struct rig_record *record = &rig->records[rig->added];
        record->rig = rig;
        record->number = rig->added;
        uint8_t value[64] = {0};
        leat_put_le32(value, rig->added);
        leat_err rc = leat_producer_engine_add(rig->engine, "s", -1, 0, NULL, 0, value,
                                               sizeof value, on_produced, record);
        if (rc == LEAT_E_AGAIN) return;
        assert_int_equal(rc, LEAT_OK);
        rig->added++;
        if (rig->added % 7 == 0) return; /* the rest in another turn */
    }
}

static void turn_end(void *owner)
{
    struct rig *rig = owner;
    if (!rig->engine) return;
    add_some(rig);
    leat_producer_engine_on_turn_end(rig->engine);
    leat_client_on_turn_end(rig->client);
}

static bool all_ended(void *owner)
{
    struct rig *rig = owner;
    return rig->ended == rig->wanted;
}

static struct rig *rig_make(uint64_t seed, uint64_t timeout_us, uint32_t wanted)
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

static void rig_end(struct rig *rig)
{
    rig->adding = false;
    leat_client_destroy(&rig->client);
    leat_producer_engine_destroy(&rig->engine);
    fake_fini(&rig->world);
    free(rig);
}

/* Each number that lies in the logs, how often, and in which order. */
static void logs_check(struct rig *rig)
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
            assert_int_equal(leat_batch_records(&batch, NULL, 0, &records, &bytes), LEAT_OK);
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
                if (rig->records[number].ended &&
                    leat_err_class(rig->records[number].rc) == LEAT_CLASS_REJECT)
                    assert_true(rig->records[number].rc == LEAT_E_SEQUENCE_GAP ||
                                rig->records[number].rc == LEAT_E_UNKNOWN_PRODUCER ||
                                rig->records[number].rc == LEAT_E_PRODUCER_FENCED ||
                                rig->records[number].rc == LEAT_E_INVALID);
            }
        }
    }
    for (uint32_t i = 0; i < rig->added; i++)
        if (rig->records[i].ended && rig->records[i].rc == LEAT_OK)
            assert_int_equal(seen[i], 1); /* acked is never lost */
}

/* Goal: the plain way works. All records acked, in order, in few frames. */
static void producer_quiet_server_acks_all(void **state)
{
    (void)state;
    struct rig *rig = rig_make(1, 10000000, 1000);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_ended));
    assert_int_equal(rig->acked, 1000);
    assert_int_equal(rig->world.gaps, 0);
    assert_int_equal(rig->world.epochs, 0);
    logs_check(rig);
    rig_end(rig);
}

/* Goal: connections that break before or after the append, refusals, slow and repeated answers
 * neither lose, repeat nor reorder. Method: 300 seeds; the server keeps the sequence rules. */
static void producer_faulty_network_exactly_once(void **state)
{
    (void)state;
    uint64_t dropped = 0, duplicates = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rig *rig = rig_make(seed, 60000000, 600);
        rig->world.streamlets = 1 + (uint32_t)(seed % 3);
        rig->world.faults = (struct fake_faults){.drop_before = 80,
                                                 .drop_after = 120,
                                                 .refuse_again = 80,
                                                 .refuse_owner = 50,
                                                 .slow = 50,
                                                 .twice = 50};
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_ended));
        assert_int_equal(rig->acked, 600);
        logs_check(rig);
        dropped += rig->world.dropped;
        duplicates += rig->world.duplicates;
        refused += rig->world.refused;
        rig_end(rig);
    }
    /* A fault that did not happen proves nothing. */
    print_message("%llu dropped, %llu duplicates, %llu refused\n", (unsigned long long)dropped,
                  (unsigned long long)duplicates, (unsigned long long)refused);
    assert_true(dropped > 1000 && duplicates > 200 && refused > 500);
}

/* Goal: a batch that is refused for good takes none of its successors with it, and a producer that
 * the log has forgotten goes on; what is reported as not appended is not there. */
static void producer_refused_batches_leave_the_others(void **state)
{
    (void)state;
    uint64_t epochs = 0, failed = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct rig *rig = rig_make(seed, 60000000, 600);
        rig->world.faults = (struct fake_faults){
            .refuse_hard = 50, .drop_after = 20, .drop_before = 20, .twice = 20};
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_ended));
        assert_true(rig->acked > 300);
        logs_check(rig);
        epochs += rig->world.epochs;
        failed += rig->ended - rig->acked;
        rig_end(rig);
    }
    assert_true(epochs > 100 && failed > 100);
}

/* Goal: when no server comes back in time records fail, once, as TIMEOUT; those never sent too. */
static void producer_dead_server_times_out_honestly(void **state)
{
    (void)state;
    struct rig *rig = rig_make(3, 1000000, 200);
    rig->world.down = true;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->acked, 0);
    for (uint32_t i = 0; i < rig->wanted; i++)
        assert_int_equal(rig->records[i].rc, LEAT_E_TIMEOUT);
    rig_end(rig);
}

/* Goal: a server that takes appends and never answers: TIMEOUT; and when it answers again, new
 * records go through under a new epoch, none of the old ones twice. */
static void producer_mute_server_then_back_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_make(4, 1000000, 100);
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->acked, 100);
    rig->world.mute = true;
    rig->wanted = 300;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->acked, 100);
    rig->world.mute = false;
    rig->wanted = 500;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->acked, 300);
    logs_check(rig);
    rig_end(rig);
}

/* Goal: a restarted server (another incarnation) is found again by metadata. */
static void producer_restarted_server_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_make(5, 30000000, 300);
    (void)fake_run(&rig->world, rig->world.now_us + 1500, NULL);
    rig->world.down = true;
    fake_cut(&rig->world);
    (void)fake_run(&rig->world, rig->world.now_us + 500000, NULL);
    rig->world.down = false;
    rig->world.incarnation++;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->acked, 300);
    logs_check(rig);
    rig_end(rig);
}

/* Goal: a stream that does not exist and may not be made is refused by its name's code. */
static void producer_unknown_stream_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_make(6, 5000000, 1);
    leat_client_destroy(&rig->client);
    leat_producer_engine_destroy(&rig->engine);
    rig->client = fake_client(&rig->world, 200000);
    struct leat_producer_engine_options options = {
        .batch_bytes = 1024, .linger_us = 500, .buffer_bytes = 40 * 1024, .timeout_us = 5000000};
    assert_int_equal(leat_producer_engine_create(&rig->world.env, &rig->world.timers, rig->client,
                                                 &options, &rig->engine),
                     LEAT_OK);
    assert_true(fake_run(&rig->world, rig->world.now_us + 2000000, all_ended));
    assert_int_equal(rig->records[0].rc, LEAT_E_UNKNOWN_STREAM);
    rig_end(rig);
}

/* Goal: keys go where Kafka's default partitioner sends them. Values of its own test. */
static void key_streamlet_is_kafkas(void **state)
{
    (void)state;
    /* murmur2("21") = -973932308, "foobar" = -790332482: positive form modulo 1000. */
    assert_int_equal(leat_gather_streamlet_of_key("21", 2, 1000),
                     ((uint32_t)-973932308 & 0x7fffffff) % 1000);
    assert_int_equal(leat_gather_streamlet_of_key("foobar", 6, 1000),
                     ((uint32_t)-790332482 & 0x7fffffff) % 1000);
    assert_int_equal(leat_gather_streamlet_of_key("a-little-bit-long-string", 24, 1000),
                     ((uint32_t)-985981536 & 0x7fffffff) % 1000);
    assert_int_equal(leat_gather_streamlet_of_key("abc", 3, 1000),
                     ((uint32_t)479470107 & 0x7fffffff) % 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(producer_quiet_server_acks_all),
        cmocka_unit_test(producer_faulty_network_exactly_once),
        cmocka_unit_test(producer_refused_batches_leave_the_others),
        cmocka_unit_test(producer_dead_server_times_out_honestly),
        cmocka_unit_test(producer_mute_server_then_back_goes_on),
        cmocka_unit_test(producer_restarted_server_goes_on),
        cmocka_unit_test(producer_unknown_stream_is_refused),
        cmocka_unit_test(key_streamlet_is_kafkas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
