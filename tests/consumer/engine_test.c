/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's engine: every record once and in order through lost connections; positions; what
 * is trimmed; what is gone. */
#include "tests/consumer/engine_rig.h"

/* Goal: all records of all logs once, in order, then "at the end". */
static void consumer_quiet_server_reads_all(void **state)
{
    (void)state;
    struct rig *rig = rig_make(1, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 400);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    assert_int_equal(rig->read, rig->wanted);
    assert_int_equal(rig->skipped, 0);
    assert_int_equal(rig->world.fetch_min_bytes, 700);
    rig_end(rig);
}

/* Goal: the same through lost connections, refusals and repeated answers. Method: 200 seeds. */
static void consumer_faulty_network_reads_all_once(void **state)
{
    (void)state;
    uint64_t dropped = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rig *rig = rig_make(seed, LEAT_ENGINE_EARLIEST, 0);
        rig->world.faults = (struct fake_faults){
            .drop_before = 50, .drop_after = 50, .refuse_again = 50, .slow = 50, .twice = 50};
        fill(rig, 300);
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_read));
        assert_int_equal(rig->read, rig->wanted);
        assert_int_equal(rig->skipped, 0);
        assert_int_equal(rig->errors, 0);
        dropped += rig->world.dropped;
        rig_end(rig);
    }
    assert_true(dropped > 500);
}

/* Goal: records are trimmed before they were read: the consumer reports so, and goes on at the first record that is
 * there. */
static void consumer_trimmed_log_goes_on_at_first(void **state)
{
    (void)state;
    struct rig *rig = rig_make(2, LEAT_ENGINE_OFFSET, 3);
    fill(rig, 400);
    rig->world.log[1].first = rig->world.log[1].batches[50].offset;
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    assert_true(rig->notes >= 1);
    assert_int_equal(rig->errors, 0);
    assert_int_equal(rig->next[1], rig->world.log[1].end);
    rig_end(rig);
}

static bool not_at_end(void *owner)
{
    return !at_end(owner);
}

/* Goal: a reader that has read all is not at the end any more once an owner does not confirm the end, and is again when
 * the owner does. */
static void consumer_is_at_the_end_while_the_owner_confirms_it(void **state)
{
    (void)state;
    struct rig *rig = rig_make(5, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 40);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    assert_false(fake_run(&rig->world, rig->world.now_us + 3000000, not_at_end));
    rig->world.starting = &rig->world.log[0];
    assert_true(fake_run(&rig->world, rig->world.now_us + 3000000, not_at_end));
    assert_false(fake_run(&rig->world, rig->world.now_us + 3000000, at_end));
    rig->world.starting = NULL;
    assert_true(fake_run(&rig->world, rig->world.now_us + 3000000, at_end));
    assert_int_equal(rig->read, rig->wanted);
    rig_end(rig);
}

/* Goal: a consumer that begins at the latest offset reads no record from before, and every later record. */
static void consumer_latest_reads_only_new(void **state)
{
    (void)state;
    struct rig *rig = rig_make(3, LEAT_ENGINE_LATEST, 0);
    fill(rig, 40);
    uint64_t old = rig->wanted;
    for (uint32_t i = 0; i < LOGS; i++)
        rig->next[i] = rig->world.log[i].end;
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    assert_int_equal(rig->read, 0);
    fill(rig, 40);
    rig->wanted -= old;
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_read));
    assert_int_equal(rig->read, rig->wanted);
    rig_end(rig);
}

static bool half_read(void *owner)
{
    struct rig *rig = owner;
    return 2 * rig->read >= rig->wanted;
}

/* Goal: a log that always has more than an answer holds does not keep the other logs waiting until it has been read. */
static void consumer_busy_log_leaves_others_their_turn(void **state)
{
    (void)state;
    struct rig *rig = rig_make(8, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 400);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, half_read));
    for (uint32_t i = 0; i < LOGS; i++)
        assert_in_range(rig->next[i], rig->world.log[i].end / 4, rig->world.log[i].end * 3 / 4);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    assert_int_equal(rig->read, rig->wanted);
    assert_int_equal(rig->skipped, 0);
    rig_end(rig);
}

/* Goal: seeking back reads again; other partitions go on where they were. */
static void consumer_seek_begins_again(void **state)
{
    (void)state;
    struct rig *rig = rig_make(4, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 200);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    uint64_t first = rig->read;
    assert_int_equal(leat_consumer_engine_seek(rig->engine, 2, LEAT_ENGINE_OFFSET, 0), LEAT_OK);
    rig->next[2] = 0;
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    assert_int_equal(rig->read, first + rig->world.log[2].end);
    assert_int_equal(leat_consumer_engine_seek(rig->engine, LOGS, LEAT_ENGINE_OFFSET, 0),
                     LEAT_E_UNKNOWN_LOG);
    assert_int_equal(leat_consumer_engine_seek(rig->engine, 2, LEAT_ENGINE_OFFSET, -1),
                     LEAT_E_INVALID);
    rig_end(rig);
}

/* Goal: a seek loses no record that was fetched of other partitions and not handed over yet. Method: nothing is taken
 * until all prefetched records are ready; then one partition is sought. */
static void consumer_seek_loses_nothing_that_was_prefetched(void **state)
{
    (void)state;
    const enum leat_engine_from froms[] = {LEAT_ENGINE_EARLIEST, LEAT_ENGINE_OFFSET};
    for (uint64_t seed = 20; seed < 40; seed++) {
        struct rig *rig = rig_make(seed, froms[seed % 2], 0);
        fill(rig, 200);
        rig->holding = true;
        (void)fake_run(&rig->world, rig->world.now_us + (seed < 30 ? 1000000 : seed * 100), NULL);
        assert_int_equal(leat_consumer_engine_seek(rig->engine, 2, LEAT_ENGINE_OFFSET, 0), LEAT_OK);
        rig->holding = false;
        assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
        assert_int_equal(rig->skipped, 0);
        assert_int_equal(rig->read, rig->wanted);
        rig_end(rig);
    }
}

struct asked {
    bool done;
    leat_err rc;
    struct leat_msg_located found;
    char text[LEAT_ERROR_TEXT_BYTES];
};

static void on_asked(void *arg, leat_err rc, const struct leat_msg_located *found,
                     const struct leat_error *error)
{
    struct asked *asked = arg;
    assert_false(asked->done);
    asked->done = true;
    asked->rc = rc;
    if (found) asked->found = *found;
    memcpy(asked->text, error->text, sizeof asked->text);
}

static struct asked *awaited;
static bool asked_done(void *owner)
{
    (void)owner;
    return awaited->done;
}

/* The answer to one question about a partition, in at most a minute. */
static struct asked ask(struct rig *rig, int64_t partition, struct leat_msg_locate question)
{
    struct asked asked = {0};
    awaited = &asked;
    assert_int_equal(
        leat_consumer_engine_ask(rig->engine, partition, &question, 60000000, on_asked, &asked),
        LEAT_OK);
    assert_false(asked.done);
    assert_true(fake_run(&rig->world, rig->world.now_us + 120000000, asked_done));
    return asked;
}

/* Goal: LOCATE returns the offset of an application offset, and the application offset of an offset, through lost
 * connections and refusals; reading from that place gives the record's batch and all later batches. Method: 100 seeds;
 * a record of any log and batch in each. */
static void consumer_application_offset_leads_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct rig *rig = rig_make(seed, LEAT_ENGINE_EARLIEST, 0);
        rig->world.faults = (struct fake_faults){
            .drop_before = 50, .drop_after = 50, .refuse_again = 50, .slow = 50, .twice = 50};
        fill(rig, 300);
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, at_end));
        uint32_t log = seed % LOGS, batch = (uint32_t)(seed * 31 % rig->world.log[log].batch_count);
        uint64_t first = rig->world.log[log].batches[batch].offset;
        uint64_t last = first + rig->world.log[log].batches[batch].records - 1;
        struct asked where = ask(
            rig, log, (struct leat_msg_locate){.what = LEAT_LOCATE_OFFSET, .value = (int64_t)last});
        assert_int_equal(where.rc, LEAT_OK);
        assert_int_equal(where.found.offset, last);
        struct asked what = ask(rig, log,
                                (struct leat_msg_locate){.what = LEAT_LOCATE_POSITION,
                                                         .position = where.found.position});
        assert_int_equal(what.rc, LEAT_OK);
        assert_int_equal(what.found.offset, first);
        assert_int_equal(
            leat_consumer_engine_seek(rig->engine, log, LEAT_ENGINE_OFFSET, (int64_t)first),
            LEAT_OK);
        rig->next[log] = first;
        rig->wanted += rig->world.log[log].end - first;
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_read));
        assert_int_equal(rig->read, rig->wanted);
        assert_int_equal(rig->skipped, 0);
        rig_end(rig);
    }
}

/* Goal: a question without an answer ends with an error text, in its time, and has no other effect: the log does not
 * exist, a question is already under way, nothing is at that place, the server is silent, the consumer ends. */
static void consumer_questions_without_an_answer_end(void **state)
{
    (void)state;
    struct rig *rig = rig_make(9, LEAT_ENGINE_EARLIEST, 0);
    struct asked asked = {0}, other = {0};
    struct leat_msg_locate question = {.what = LEAT_LOCATE_POSITION, .position = {0, 1, 7}};
    fill(rig, 40);
    assert_int_equal(leat_consumer_engine_ask(rig->engine, 0, &question, 1, on_asked, &asked),
                     LEAT_E_AGAIN); /* the stream is not known yet */
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    assert_int_equal(leat_consumer_engine_only(rig->engine), -1);
    assert_int_equal(leat_consumer_engine_ask(rig->engine, LOGS, &question, 1, on_asked, &asked),
                     LEAT_E_UNKNOWN_LOG);
    asked = ask(rig, 3, question);
    assert_int_equal(asked.rc, LEAT_E_OFFSET_OUT_OF_RANGE);
    assert_string_equal(asked.text, "stream s streamlet 1 log 1: by the script");
    rig->world.mute = true;
    asked = (struct asked){0};
    awaited = &asked;
    uint64_t began = rig->world.now_us;
    assert_int_equal(leat_consumer_engine_ask(rig->engine, 0, &question, 500000, on_asked, &asked),
                     LEAT_OK);
    assert_int_equal(leat_consumer_engine_ask(rig->engine, 0, &question, 1, on_asked, &other),
                     LEAT_E_AGAIN);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, asked_done));
    assert_int_equal(asked.rc, LEAT_E_TIMEOUT);
    assert_non_null(strstr(asked.text, "no answer in time"));
    assert_in_range(rig->world.now_us - began, 500000, 510000);
    assert_false(other.done);
    asked = (struct asked){0};
    assert_int_equal(
        leat_consumer_engine_ask(rig->engine, 0, &question, 60000000, on_asked, &asked), LEAT_OK);
    (void)fake_run(&rig->world, rig->world.now_us + 1000, NULL);
    rig->world.mute = false;
    rig->world.stream_id = 6; /* deleted, and another made */
    fake_cut(&rig->world);
    assert_true(fake_run(&rig->world, rig->world.now_us + 30000000, asked_done));
    assert_int_equal(asked.rc, LEAT_E_UNKNOWN_STREAM);
    assert_int_equal(rig->errors, 1);
    assert_int_equal(leat_consumer_engine_ask(rig->engine, 0, &question, 1, on_asked, &other),
                     LEAT_E_UNKNOWN_STREAM);
    rig_end(rig);
}

/* Goal: a stream that does not exist is an error, reported once. */
static void consumer_unknown_stream_fails(void **state)
{
    (void)state;
    struct rig *rig = rig_make(5, LEAT_ENGINE_EARLIEST, 0);
    rig->world.stream_id = 0;
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, failed));
    assert_int_equal(rig->ready_rc, LEAT_E_UNKNOWN_STREAM);
    rig_end(rig);
}

/* Goal: a restarted server is found again and nothing is missed. */
static void consumer_restarted_server_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_make(6, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 100);
    (void)fake_run(&rig->world, rig->world.now_us + 3000, NULL);
    rig->world.down = true;
    fake_cut(&rig->world);
    (void)fake_run(&rig->world, rig->world.now_us + 500000, NULL);
    rig->world.down = false;
    rig->world.incarnation++;
    fill(rig, 100);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, all_read));
    assert_int_equal(rig->read, rig->wanted);
    assert_int_equal(rig->skipped, 0);
    rig_end(rig);
}

/* Goal: an owner without a known address is looked up again until it has an address, also when nothing else happens
 * meanwhile. Method: the first metadata name the owner, the node's address comes later. */
static void consumer_owner_without_address_is_found_later(void **state)
{
    (void)state;
    for (uint32_t away = 1; away <= 5; away++) {
        struct rig *rig = rig_make(away, LEAT_ENGINE_EARLIEST, 0);
        fill(rig, 40);
        rig->world.away = away;
        rig->world.away_told = away % 2 == 0;
        assert_true(fake_run(&rig->world, rig->world.now_us + 150000, at_end));
        assert_int_equal(rig->world.away, 0);
        assert_int_equal(rig->read, rig->wanted);
        assert_int_equal(rig->errors, 0);
        assert_non_null(strstr(rig->text, away % 2 == 0 ? "node gone, which serves it, is down"
                                                        : "(incarnation 1007) is no node"));
        rig_end(rig);
    }
}

static void on_looked_up(struct leat_client_lookup *lookup, leat_err rc,
                         const struct leat_client_stream *stream, const struct leat_error *error)
{
    (void)stream;
    (void)error;
    assert_int_equal(rc, LEAT_OK);
    ((struct rig *)lookup->owner)->looked_up = true;
}

static bool moved_read(void *owner)
{
    struct rig *rig = owner;
    return rig->next[2] == rig->world.log[2].end && rig->next[3] == rig->world.log[3].end;
}

/* Goal: a log whose next owner is known is fetched from there at once, although a fetch of the log waits at the
 * earlier owner, for other logs, too. What becomes of that fetch concerns the other logs alone. Method: fetches
 * without records wait for 50 ms; another user of the client looks the stream up. The fetch is answered, or its
 * connection is lost. */
static void consumer_moved_log_is_fetched_from_its_next_owner(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost < 2; lost++) {
        struct rig *rig = rig_make(10 + lost, LEAT_ENGINE_EARLIEST, 0);
        struct leat_client_lookup lookup = {.name = "s", .on_done = on_looked_up, .owner = rig};
        rig->world.other = true;
        fill(rig, 40);
        assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
        rig->world.polls = true;
        (void)fake_run(&rig->world, rig->world.now_us + 2000, NULL);
        fill(rig, 40);
        rig->world.moved = 2;
        leat_client_lookup(rig->client, &lookup);
        assert_true(fake_run(&rig->world, rig->world.now_us + 2000, moved_read));
        assert_true(rig->looked_up);
        assert_true(rig->next[0] < rig->world.log[0].end && rig->next[1] < rig->world.log[1].end);
        rig->world.polls = false;
        if (lost) fake_cut(&rig->world);
        assert_true(fake_run(&rig->world, rig->world.now_us + 100000, all_read));
        assert_int_equal(rig->read, rig->wanted);
        assert_int_equal(rig->skipped, 0);
        assert_int_equal(rig->errors, 0);
        rig_end(rig);
    }
}

static bool looked_up(void *owner)
{
    return ((struct rig *)owner)->looked_up;
}

/* Goal: a log that comes to an owner is fetched there at once, although a fetch of other logs waits there. Method:
 * fetches without records wait for 50 ms; a streamlet goes to the other node and comes back; then all logs get
 * records. */
static void consumer_log_that_comes_waits_for_no_poll(void **state)
{
    (void)state;
    struct rig *rig = rig_make(12, LEAT_ENGINE_EARLIEST, 0);
    rig->world.other = true;
    fill(rig, 40);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    rig->world.polls = true;
    for (unsigned i = 0; i < 2; i++) {
        struct leat_client_lookup lookup = {.name = "s", .on_done = on_looked_up, .owner = rig};
        (void)fake_run(&rig->world, rig->world.now_us + 2000, NULL);
        rig->looked_up = false;
        rig->world.moved = i == 0 ? 2 : 0;
        rig->world.epoch += 2;
        leat_client_lookup(rig->client, &lookup);
        assert_true(fake_run(&rig->world, rig->world.now_us + 2000, looked_up));
    }
    fill(rig, 40);
    assert_true(fake_run(&rig->world, rig->world.now_us + 2000, all_read));
    assert_int_equal(rig->read, rig->wanted);
    assert_int_equal(rig->skipped, 0);
    rig_end(rig);
}

static bool refused_read(void *owner)
{
    struct rig *rig = owner;
    return rig->next[2] == rig->world.log[2].end;
}

/* Goal: a log that is refused is asked again when its pause is over, although other logs of its owner have no records:
 * their fetch waits no longer than that. Method: one log is refused for at most 60
 * ms. */
static void consumer_refused_log_waits_for_no_poll(void **state)
{
    (void)state;
    struct rig *rig = rig_make(13, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 40);
    assert_true(fake_run(&rig->world, rig->world.now_us + 10000000, at_end));
    rig->world.polls = true;
    rig->world.fetch_wait_ms = UINT32_MAX;
    (void)fake_run(&rig->world, rig->world.now_us + 60000, NULL);
    assert_int_equal(rig->world.fetch_wait_ms, 50);
    rig->world.starting = &rig->world.log[2];
    (void)fake_run(&rig->world, rig->world.now_us + 60000, NULL);
    assert_in_range(rig->world.fetch_wait_ms, 1, 2);
    rig->world.starting = NULL;
    fill(rig, 40);
    assert_true(fake_run(&rig->world, rig->world.now_us + 20000, refused_read));
    rig->world.polls = false;
    assert_true(fake_run(&rig->world, rig->world.now_us + 100000, all_read));
    assert_int_equal(rig->read, rig->wanted);
    assert_int_equal(rig->skipped, 0);
    rig_end(rig);
}

/* Goal: an allocation that fails is made up for or ends in a clean refusal: nothing is skipped or
 * read twice, nothing leaks. Method: the n-th fails, n = 1, 2, ... until none is left to fail. */
static void consumer_each_allocation_fails_cleanly(void **state)
{
    (void)state;
    uint64_t n = 1;
    uint32_t refused = 0, made_up_for = 0;
    for (bool swept = false; !swept; n++) {
        struct rig *rig = rig_begin(n);
        struct leat_client_options options = {.addresses = "127.0.0.1:7700",
                                              .request_timeout_us = 200000,
                                              .retry_us_min = 1000,
                                              .retry_us_max = 10000,
                                              .streams_max = 4};
        struct leat_error error;
        fill(rig, 100);
        leat_mem_fail_at(n);
        leat_err rc =
            leat_client_create(&rig->world.env, &rig->world.timers, &options, &rig->client, &error);
        if (rc == LEAT_OK) rc = rig_engine(rig, LEAT_ENGINE_EARLIEST, 0);
        if (rc == LEAT_OK) {
            assert_true(fake_run(&rig->world, rig->world.now_us + 20000000, all_read));
            assert_int_equal(rig->read, rig->wanted);
            assert_int_equal(rig->skipped, 0);
            assert_int_equal(rig->errors, 0);
            made_up_for++;
        } else {
            assert_int_equal(rc, LEAT_E_NO_MEMORY);
            refused++;
        }
        swept = leat_mem_calls() < n;
        leat_mem_fail_at(0);
        rig_end(rig);
    }
    assert_true(refused > 0 && made_up_for > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumer_quiet_server_reads_all),
        cmocka_unit_test(consumer_faulty_network_reads_all_once),
        cmocka_unit_test(consumer_trimmed_log_goes_on_at_first),
        cmocka_unit_test(consumer_is_at_the_end_while_the_owner_confirms_it),
        cmocka_unit_test(consumer_latest_reads_only_new),
        cmocka_unit_test(consumer_busy_log_leaves_others_their_turn),
        cmocka_unit_test(consumer_seek_begins_again),
        cmocka_unit_test(consumer_seek_loses_nothing_that_was_prefetched),
        cmocka_unit_test(consumer_application_offset_leads_back),
        cmocka_unit_test(consumer_questions_without_an_answer_end),
        cmocka_unit_test(consumer_unknown_stream_fails),
        cmocka_unit_test(consumer_restarted_server_goes_on),
        cmocka_unit_test(consumer_owner_without_address_is_found_later),
        cmocka_unit_test(consumer_moved_log_is_fetched_from_its_next_owner),
        cmocka_unit_test(consumer_log_that_comes_waits_for_no_poll),
        cmocka_unit_test(consumer_refused_log_waits_for_no_poll),
        cmocka_unit_test(consumer_each_allocation_fails_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
