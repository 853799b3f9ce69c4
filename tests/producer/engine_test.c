/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's engine against a server that drops, delays, refuses and repeats: what is reported
 * is what happened, nothing is appended twice, nothing overtakes. */
#include "tests/producer/engine_rig.h"

#include "base/bytes.h"
#include "base/mem.h"
#include "producer/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Goal: an answer that can't be read has no effect: its batches are sent again, with the same sequences, and are
 * neither twice in the log nor reported as refused. Method: answers end too early, some of appends of which a part was
 * refused. */
static void producer_answers_that_can_not_be_read_say_nothing(void **state)
{
    (void)state;
    uint64_t garbled = 0, duplicates = 0, failed = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rig *rig = rig_make(seed, 60000000, 600);
        rig->world.faults = (struct fake_faults){
            .garble = 150, .refuse_hard = seed % 2 ? 30 : 0, .slow = 50, .twice = 20};
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_ended));
        if (seed % 2 == 0) assert_int_equal(rig->acked, 600);
        logs_check(rig);
        garbled += rig->world.garbled;
        duplicates += rig->world.duplicates;
        failed += rig->ended - rig->acked;
        rig_end(rig);
    }
    assert_true(garbled > 300 && duplicates > 200 && failed > 50);
}

/* Goal: a producer that has more to send than the window holds has at most five batches of a log
 * under way, and does use all five. Method: batches of one record, answers that are late. */
static void producer_full_window_is_five_batches(void **state)
{
    (void)state;
    struct rig *rig = rig_make(7, 60000000, 600);
    rig->engine->options.batch_records = 1;
    rig->world.faults = (struct fake_faults){.slow = 500, .drop_after = 20};
    assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_ended));
    assert_int_equal(rig->acked, 600);
    assert_int_equal(rig->under_way_max, LEAT_BATCHES_IN_FLIGHT_MAX);
    logs_check(rig);
    rig_end(rig);
}

/* Goal: the producer learns a stream's largest batch from its metadata: no batch is refused, and batches that were
 * gathered before the metadata came are cut. Method: records are added before the first lookup, too. */
static void producer_stream_takes_small_batches_sends_small_ones(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct rig *rig = rig_make(seed, 10000000, 1000);
        rig->world.batch_bytes_max = 400; /* of 1,024: four records */
        rig->world.streamlets = 2;
        for (uint32_t i = 0; i < 40; i++)
            add_some(rig);
        assert_true(rig->added > 200);
        assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_ended));
        assert_int_equal(rig->acked, 1000);
        assert_int_equal(rig->world.too_large, 0);
        assert_int_equal(rig->world.epochs, 0);
        logs_check(rig);
        rig_end(rig);
    }
}

static bool half_acked(void *owner)
{
    struct rig *rig = owner;
    return rig->acked >= rig->wanted / 2;
}

/* Records for two streamlets in turn, one by one, each pair a little later than the one before. */
static void add_in_turn(struct rig *rig, uint32_t pairs)
{
    for (uint32_t i = 0; i < 2 * pairs; i++) {
        struct rig_record *record = &rig->records[rig->added];
        uint8_t value[64] = {0};
        record->rig = rig;
        record->number = rig->added;
        leat_put_le32(value, rig->added);
        assert_int_equal(leat_producer_engine_add(rig->engine, "s", (int32_t)(i % 2), 0, NULL, 0,
                                                  value, sizeof value, on_produced, record),
                         LEAT_OK);
        rig->added++;
        if (i % 2) (void)fake_run(&rig->world, rig->world.now_us + 2000, NULL);
    }
}

/* Goal: a streamlet whose owner takes no appends does not take all buffers: the records of that streamlet fill the open
 * batch, and the records of the other streamlet are acked as they come. Method: each streamlet gets one record every 2
 * ms, which is longer than the linger, five times as many records as there are buffers; the server answers for one
 * streamlet only. Then the server answers for both, and all records are there. */
static void producer_stalled_streamlet_leaves_room_for_the_other(void **state)
{
    enum { PAIRS = 200 };
    (void)state;
    struct rig *rig = rig_make(9, 60000000, 2);
    rig->world.streamlets = 2;
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_ended));
    rig->adding = false;
    rig->world.mute_streamlet = 1;
    rig->wanted += 2 * PAIRS;
    add_in_turn(rig, PAIRS);
    (void)fake_run(&rig->world, rig->world.now_us + 100000, NULL);
    assert_int_equal(rig->ended, 2 + PAIRS);
    static const int32_t none[] = {2, 3, INT32_MAX}; /* there are 0 and 1 */
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(leat_producer_engine_add(rig->engine, "s", none[i], 0, NULL, 0, "v", 1,
                                                  on_produced, NULL),
                         LEAT_E_UNKNOWN_LOG);
    rig->world.mute_streamlet = 0;
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_ended));
    assert_int_equal(rig->acked, rig->wanted);
    logs_check(rig);
    rig_end(rig);
}

/* Goal: a stream that takes less from now on loses nothing of a producer that runs: what is refused for
 * its size is cut and sent again, in order, once. A batch whose fate was unknown when it was refused is
 * not sent again in pieces. Method: 100 seeds, with and without compression; every fourth with
 * connections that break. */
static void producer_stream_takes_less_goes_on_with_smaller_batches(void **state)
{
    (void)state;
    uint64_t too_large = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rig *rig = rig_make(seed, 60000000, 600);
        static uint8_t scratch[LEAT_BATCH_BYTES_MAX];
        rig->engine->options.codec = seed % 2 ? LEAT_CODEC_NONE : LEAT_CODEC_LZ4;
        rig->engine->scratch = scratch;
        rig->world.streamlets = 1 + (uint32_t)(seed % 3);
        rig->world.faults = (struct fake_faults){.refuse_owner = 50, .slow = 50, .twice = 50};
        if (seed % 4 == 0) rig->world.faults.drop_before = rig->world.faults.drop_after = 60;
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, half_acked));
        rig->world.batch_bytes_max = seed % 2 ? 300 : 150;
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_ended));
        for (uint32_t i = 0; i < 600; i++)
            assert_true(rig->records[i].rc == LEAT_OK ||
                        (seed % 4 == 0 && rig->records[i].rc == LEAT_E_TIMEOUT &&
                         rig->records[i].told_unknown));
        too_large += rig->world.too_large;
        logs_check(rig);
        rig->engine->scratch = NULL;
        rig_end(rig);
    }
    assert_true(too_large > 100); /* a refusal that did not happen proves nothing */
}

/* Goal: only the record that is too large by itself is refused, with the code's name. */
static void producer_record_larger_than_stream_takes_is_refused_alone(void **state)
{
    (void)state;
    struct rig *rig = rig_make(5, 10000000, 100);
    static struct rig others;
    memset(&others, 0, sizeof others);
    uint8_t value[700] = {0};
    leat_put_le32(value, RECORDS_MAX - 1);
    rig->world.batch_bytes_max = 400;
    others.records[0].rig = &others;
    assert_int_equal(leat_producer_engine_add(rig->engine, "s", -1, 0, NULL, 0, value, sizeof value,
                                              on_produced, &others.records[0]),
                     LEAT_OK);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_ended));
    assert_int_equal(rig->acked, 100);
    assert_true(others.records[0].ended);
    assert_int_equal(others.records[0].rc, LEAT_E_TOO_LARGE);
    logs_check(rig);
    rig_end(rig);
}

/* Goal: a producer that ends while appends of it are under way loses nothing of the other producers of the same client.
 * Method: each round stops one of two producers at another moment, with and without a server that answers; the records
 * of the other producer are all acked, in order, once. */
static void producer_stopped_beside_another_leaves_it_whole(void **state)
{
    (void)state;
    uint32_t waited = 0, ended_early = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rig *rig = rig_make(seed, 60000000, 300);
        rig->world.faults = (struct fake_faults){.drop_after = 20, .slow = 100};
        struct leat_producer_engine *other = NULL;
        struct leat_producer_engine_options options = rig->engine->options;
        assert_int_equal(leat_producer_engine_create(&rig->world.env, &rig->world.timers,
                                                     rig->client, &options, &other),
                         LEAT_OK);
        static struct rig others;
        memset(&others, 0, sizeof others);
        for (uint32_t i = 0; i < 60; i++) {
            uint8_t value[64] = {0};
            leat_put_le32(value, RECORDS_MAX - 1 - i % 2); /* not the rig's numbers */
            others.records[i].rig = &others;
            assert_int_equal(leat_producer_engine_add(other, "t", -1, 0, NULL, 0, value,
                                                      sizeof value, on_produced,
                                                      &others.records[i]),
                             LEAT_OK);
        }
        for (uint64_t turn = 0; turn < (seed % 3 ? seed % 40 : 1000); turn++) {
            leat_producer_engine_on_turn_end(other);
            if (seed % 3 == 0 && other->requests_out) break; /* sent, and not written yet */
            (void)fake_run(&rig->world, rig->world.now_us + 150, NULL);
        }
        rig->world.mute = seed % 2;
        bool stopped = leat_producer_engine_stop(other);
        while (!stopped) {
            waited++;
            (void)fake_run(&rig->world, rig->world.now_us + 100, NULL);
            stopped = leat_producer_engine_stop(other);
        }
        ended_early += others.ended < 60;
        leat_producer_engine_destroy(&other);
        assert_int_equal(others.ended, 60); /* each record was told of, once */
        rig->world.mute = false;
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_ended));
        assert_int_equal(rig->acked, 300);
        rig_end(rig);
    }
    assert_true(waited > 0 && ended_early > 0);
}

/* Goal: when an allocation fails records fail by name or are tried again, but what is acked is in
 * the log, nothing is there twice, nothing leaks, and later records go through. Method: the n-th
 * allocation fails, n = 1, 2, ... until none is left to fail. */
static void producer_each_allocation_fails_cleanly(void **state)
{
    (void)state;
    uint64_t n = 1, refused = 0;
    for (bool swept = false; !swept; n++) {
        struct rig *rig = rig_make(n, 2000000, 0);
        leat_client_destroy(&rig->client);
        leat_producer_engine_destroy(&rig->engine);
        struct leat_client_options client = {.addresses = "127.0.0.1:7700",
                                             .request_timeout_us = 200000,
                                             .retry_us_min = 1000,
                                             .retry_us_max = 10000,
                                             .streams_max = 4};
        struct leat_producer_engine_options options = {.batch_bytes = 1024,
                                                       .codec =
                                                           n % 2 ? LEAT_CODEC_LZ4 : LEAT_CODEC_NONE,
                                                       .buffer_bytes = 40 * 1024,
                                                       .timeout_us = 2000000,
                                                       .create_streams = true};
        struct leat_error error;
        leat_mem_fail_at(n);
        leat_err rc =
            leat_client_create(&rig->world.env, &rig->world.timers, &client, &rig->client, &error);
        if (rc == LEAT_OK)
            rc = leat_producer_engine_create(&rig->world.env, &rig->world.timers, rig->client,
                                             &options, &rig->engine);
        static uint8_t value[3000]; /* every seventh is larger than a batch */
        for (uint32_t i = 0; rc == LEAT_OK && i < 60; i++) {
            struct rig_record *record = &rig->records[rig->added];
            record->rig = rig;
            leat_put_le32(value, rig->added);
            leat_err added =
                leat_producer_engine_add(rig->engine, "s", -1, 0, NULL, 0, value,
                                         i % 7 == 0 ? sizeof value : 64, on_produced, record);
            if (added == LEAT_OK)
                rig->added++;
            else
                assert_true(added == LEAT_E_NO_MEMORY || added == LEAT_E_AGAIN);
            refused += added == LEAT_E_NO_MEMORY;
            (void)fake_run(&rig->world, rig->world.now_us + 2000, NULL);
        }
        if (rc == LEAT_OK) {
            rig->wanted = rig->added;
            assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
            for (uint32_t i = 0; i < rig->added; i++)
                assert_true(rig->records[i].rc == LEAT_OK ||
                            rig->records[i].rc == LEAT_E_NO_MEMORY ||
                            rig->records[i].rc == LEAT_E_TIMEOUT);
            logs_check(rig);
        } else {
            assert_int_equal(rc, LEAT_E_NO_MEMORY);
            refused++;
        }
        swept = leat_mem_calls() < n;
        leat_mem_fail_at(0);
        rig_end(rig);
    }
    assert_true(n > 10 && refused > 0);
}

/* Goal: a batch that is refused for good does not fail the batches after it, and a producer that the log has forgotten
 * goes on; a record that is reported as not appended is not in the log. */
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

/* Goal: a record is reported as unknown if its append was not answered and its log then does not know the producer. The
 * producer does not report a code that promises that the record is absent: the record is in the log. Later records go
 * on. Method: the log forgets the producer (as a log does after an accepted loss) while the answer to an append is
 * lost. */
static void producer_forgotten_amid_an_append_is_told_unknown(void **state)
{
    (void)state;
    struct rig *rig = rig_make(3, 60000000, 100);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_ended));
    assert_int_equal(rig->acked, 100);
    struct fake_log *log = &rig->world.log[0];
    uint64_t end = log->end;
    rig->world.faults.drop_after = 1000;
    rig->wanted = 110;
    for (int i = 0; i < 100 && log->end == end; i++)
        (void)fake_run(&rig->world, rig->world.now_us + 1000, NULL);
    assert_true(log->end > end);
    assert_int_equal(rig->acked, 100);
    uint64_t there = log->end;
    log->producer_count = 0;
    rig->world.faults.drop_after = 0;
    rig->wanted = 150;
    assert_true(fake_run(&rig->world, rig->world.now_us + 50000000, all_ended));
    for (uint64_t i = end; i < there; i++) {
        assert_int_equal(rig->records[i].rc, LEAT_E_TIMEOUT);
        assert_true(rig->records[i].told_unknown);
    }
    assert_int_equal(rig->acked, 150 - (there - end));
    logs_check(rig);
    rig_end(rig);
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

/* Goal: a producer that could not get a new epoch, and has no record left that needs it, rests.
 * Method: appends to a mute server time out, so the next ones need another epoch; the server gives none until they
 * have timed out too. fake_run() ends the test when a past time is asked for again and again. */
static void producer_without_records_rests(void **state)
{
    (void)state;
    struct rig *rig = rig_make(4, 1000000, 100);
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    rig->world.mute = true;
    rig->wanted = 150;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    rig->world.mute = false;
    rig->world.gives_up = true;
    rig->wanted = 200;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_false(fake_run(&rig->world, rig->world.now_us + 20000000, NULL));
    assert_true(rig->engine->id_attempts > 0); /* it was refused indeed */
    assert_false(leat_timer_armed(&rig->engine->look));
    uint64_t epochs = rig->world.epochs;
    rig->world.gives_up = false;
    rig->wanted = 250;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->acked, 150);
    assert_true(rig->world.epochs > epochs);
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

/* Goal: logs of one stream that are refused at the same time send one common lookup of their owner, not one lookup per
 * log. Method: the owner of eight streamlets refuses everything for a second. */
static void producer_refused_logs_ask_together(void **state)
{
    (void)state;
    struct rig *rig = rig_make(6, 30000000, 400);
    rig->world.streamlets = 8;
    rig->world.faults.refuse_owner = 1000;
    (void)fake_run(&rig->world, rig->world.now_us + 1000000, NULL);
    assert_true(rig->world.refused > 100);
    assert_true(10 * rig->world.metadatas < 7 * rig->world.refused);
    rig->world.faults.refuse_owner = 0;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->acked, 400);
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

/* Goal: records of a deleted stream are refused, also records that were never sent; while an append to one of its logs
 * is under way, the refusal waits until that append has come back. When the stream turns out to exist, records go on.
 * Method: the owner of one streamlet says nothing; the owner of the other streamlet says that there is no such
 * stream. */
static void producer_stream_deleted_amid_an_append_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_make(7, 5000000, 100);
    rig->engine->options.create_streams = false;
    rig->world.stream_id = 5;
    rig->world.streamlets = 2;
    assert_true(fake_run(&rig->world, rig->world.now_us + 2000000, all_ended));
    assert_int_equal(rig->acked, 100);
    rig->world.mute_streamlet = 2;
    rig->wanted = 140;
    (void)fake_run(&rig->world, rig->world.now_us + 100000, NULL);
    assert_in_range(rig->acked, 101, 139);
    assert_int_equal(rig->added, 140);
    uint32_t acked = rig->acked;
    uint64_t asked = rig->world.metadatas;
    rig->world.stream_id = 0;
    rig->may_be_refused = true;
    rig->wanted = 160;
    (void)fake_run(&rig->world, rig->world.now_us + 20000, NULL);
    assert_true(rig->added > 140);
    rig->wanted = rig->added;
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    assert_int_equal(rig->records[139].rc, LEAT_E_UNKNOWN_STREAM);
    assert_int_equal(rig->acked, acked);
    assert_true(rig->world.metadatas - asked < 100);

    /* Whoever said so had not heard of it: nothing follows under the epoch that was left open. */
    rig->world.stream_id = 5;
    rig->world.mute_streamlet = 0;
    uint32_t before = rig->added;
    rig->wanted = before + 40;
    for (int i = 0; i < 100 && rig->added < rig->wanted; i++) {
        add_some(rig); /* refused for a while, in which nothing else happens */
        (void)fake_run(&rig->world, rig->world.now_us + 200000, NULL);
    }
    assert_int_equal(rig->added, rig->wanted);
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_ended));
    for (uint32_t i = before; i < rig->added; i++)
        assert_int_equal(rig->records[i].rc, LEAT_OK);
    assert_int_equal(rig->acked, acked + 40);
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(producer_quiet_server_acks_all),
        cmocka_unit_test(producer_faulty_network_exactly_once),
        cmocka_unit_test(producer_answers_that_can_not_be_read_say_nothing),
        cmocka_unit_test(producer_full_window_is_five_batches),
        cmocka_unit_test(producer_stream_takes_small_batches_sends_small_ones),
        cmocka_unit_test(producer_stalled_streamlet_leaves_room_for_the_other),
        cmocka_unit_test(producer_stream_takes_less_goes_on_with_smaller_batches),
        cmocka_unit_test(producer_record_larger_than_stream_takes_is_refused_alone),
        cmocka_unit_test(producer_stopped_beside_another_leaves_it_whole),
        cmocka_unit_test(producer_each_allocation_fails_cleanly),
        cmocka_unit_test(producer_refused_batches_leave_the_others),
        cmocka_unit_test(producer_forgotten_amid_an_append_is_told_unknown),
        cmocka_unit_test(producer_dead_server_times_out_honestly),
        cmocka_unit_test(producer_mute_server_then_back_goes_on),
        cmocka_unit_test(producer_without_records_rests),
        cmocka_unit_test(producer_restarted_server_goes_on),
        cmocka_unit_test(producer_refused_logs_ask_together),
        cmocka_unit_test(producer_unknown_stream_is_refused),
        cmocka_unit_test(producer_stream_deleted_amid_an_append_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
