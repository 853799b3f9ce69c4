/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a coordinator when entries are applied, at the end of a turn and at a tick, and the modules that it calls
 * then. */
#include "coordinator/membership/applied.h"
#include "coordinator/membership/detect.h"
#include "coordinator/membership/forming.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/actor_rig.h"

/* ---- this node, of a cluster; it has applied 42, and knows streams 3, 6 and 9 and nodes a and b ---- */

enum { STREAMS = 3 };
static struct leat_machine_stream streams[STREAMS];
static struct leat_stream_desc *descs[STREAMS];
static struct leat_machine_log logs[6];

static void tables_fill(void)
{
    struct leat_machine *machine = &coordinator->machine;
    for (unsigned i = 0; i < STREAMS; i++) {
        if (!descs[i]) descs[i] = calloc(1, sizeof *descs[i]);
        assert_non_null(descs[i]);
        descs[i]->id = 3 * (i + 1);
        descs[i]->settings.streamlets = 2;
        descs[i]->settings.logs = 3;
        streams[i] = (struct leat_machine_stream){
            .id = descs[i]->id, .desc = descs[i], .logs = i == 1 ? logs : NULL};
    }
    machine->streams = streams;
    machine->stream_count = restored_count = STREAMS;
    machine->next_stream_id = 12;
    machine->node_count = 2;
    snprintf(machine->nodes[0].info.name, 2, "a");
    snprintf(machine->nodes[1].info.name, 2, "b");
}
static int opened(void **state)
{
    if (begin(state) != 0) return -1;
    options.node_address = "own:1";
    assert_int_equal(opens(), LEAT_OK);
    coordinator->applied = 42;
    coordinator->links = (struct leat_links *)(void *)&env;
    tables_fill();
    trace_begin();
    return 0;
}
#define OPENED_TEST(name) cmocka_unit_test_setup_teardown(name, opened, finish)

static void wakes(void)
{
    leat_coordinator_actor.on_wake(coordinator);
}
#define TOLD                                                                                       \
    "detect a\nretry a\nnode a\ndetect b\nretry b\nnode b\n"                                       \
    "stream 3\nstream 6\nstream 9\nstreams to 11\n"

static const uint8_t *bytes(const char *text)
{
    return (const uint8_t *)text;
}

/* ---- tables ---- */

static void what_was_found_is_told_first_and_once(void **state)
{
    (void)state;
    wakes();
    TRACE_IS(TOLD "timers run\n");
    wakes();
    TRACE_IS("timers run\n");
    coordinator->machine.on_stream_deleted(coordinator, 6);
    TRACE_IS("no stream 6\n");
    memset(&coordinator->options, 0, sizeof coordinator->options);
    coordinator->machine.on_stream_deleted(coordinator, 6);
    coordinator->machine.on_stream(coordinator, descs[0]);
    coordinator->machine.on_node(coordinator, &coordinator->machine.nodes[0].info);
    TRACE_IS("detect a\nretry a\n");
    coordinator->start = CO_START_OPENED;
    wakes();
    TRACE_IS("detect a\nretry a\ndetect b\nretry b\ntimers run\n");
}

static void an_entry_is_applied(void **state)
{
    (void)state;
    assert_int_equal(co_apply(coordinator, bytes("one"), 3), LEAT_OK);
    TRACE_IS("apply one at 42\nresult 31\n");
    applies_formed = true;
    assert_int_equal(co_apply(coordinator, bytes("two"), 3), LEAT_OK);
    TRACE_IS("apply two at 42\nco_identity_update\nresult 31\n");
    malformed = true;
    assert_int_equal(co_apply(coordinator, bytes("three"), 5), LEAT_OK);
    TRACE_IS("apply three at 42\nnode log 1: coordinator: a committed entry of 5 bytes is refused "
             "on all "
             "nodes: it is no command\nresult 31\n");
    apply_rc = LEAT_E_CORRUPT;
    applies_formed = false;
    assert_int_equal(co_apply(coordinator, bytes("four"), 4), LEAT_E_CORRUPT);
    TRACE_IS("apply four at 42\n");
}

static void other_tables_are_told(void **state)
{
    (void)state;
    wakes();
    trace_begin();
    restored_count = 1;
    assert_int_equal(co_restore(coordinator, bytes("new"), 3), LEAT_OK);
    TRACE_IS("restore new\nno stream 6\nno stream 9\n"
             "detect a\nretry a\nnode a\ndetect b\nretry b\nnode b\nstream 3\nstreams to 11\n"
             "co_identity_update\nco_peers_want\nco_requests_restored\n");
    tables_fill();
    restore_rc = LEAT_E_CORRUPT;
    restored_count = 0;
    assert_int_equal(co_restore(coordinator, bytes("bad"), 3), LEAT_E_CORRUPT);
    TRACE_IS("restore bad\n");
    restore_rc = LEAT_OK;
    leat_mem_fail_at(1);
    assert_int_equal(co_restore(coordinator, bytes("new"), 3), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    TRACE_IS("");
    assert_int_equal(co_restore(coordinator, bytes("new"), 3), LEAT_OK); /* from none to none */
    TRACE_IS("restore new\ndetect a\nretry a\nnode a\ndetect b\nretry b\nnode b\nstreams to 11\n"
             "co_identity_update\nco_peers_want\nco_requests_restored\n");
}

static void all_streams_may_be_gone(void **state)
{
    (void)state;
    wakes();
    trace_begin();
    coordinator->machine.node_count = 0;
    restored_count = 0;
    assert_int_equal(co_restore(coordinator, bytes("new"), 3), LEAT_OK);
    TRACE_IS("restore new\nno stream 3\nno stream 6\nno stream 9\nstreams to 11\n"
             "co_identity_update\nco_peers_want\nco_requests_restored\n");
}

static void before_it_has_begun_nobody_is_told(void **state)
{
    (void)state;
    restored_count = 1;
    assert_int_equal(co_restore(coordinator, bytes("new"), 3), LEAT_OK);
    TRACE_IS("restore new\nco_identity_update\nco_peers_want\nco_requests_restored\n");
}

static void a_log_is_found_where_the_tables_have_it(void **state)
{
    (void)state;
    struct leat_log_record record;
    struct leat_epoch epoch;
    for (uint32_t i = 0; i < 6; i++)
        logs[i] = (struct leat_machine_log){.epoch = {40 + i}, .record = {.stamp_version = 50 + i}};
    for (uint32_t streamlet = 0; streamlet < 4; streamlet++)
        for (uint32_t log = 0; log < 5; log++) {
            struct leat_log_ref ref = {6, streamlet, log};
            bool there = streamlet < 2 && log < 3;
            assert_int_equal(leat_coordinator_log(coordinator, ref, &record, &epoch), there);
            if (!there) continue;
            assert_int_equal(record.stamp_version, 50 + 3 * streamlet + log);
            assert_int_equal(epoch.v, 40 + 3 * streamlet + log);
        }
    for (uint32_t count = 0; count <= STREAMS; count++)
        for (uint32_t id = 0; id < 12; id++) {
            struct leat_log_ref ref = {id, 0, 0};
            for (uint32_t i = 0; i < STREAMS; i++)
                streams[i].logs = &logs[i];
            coordinator->machine.stream_count = count;
            bool there = id && id % 3 == 0 && id / 3 <= count;
            assert_int_equal(leat_coordinator_log(coordinator, ref, &record, &epoch), there);
            if (there) assert_int_equal(epoch.v, 40 + id / 3 - 1);
        }
}

/* ---- raft's hooks ---- */

static void entries_known_since_it_learned_are_passed_over(void **state)
{
    (void)state;
    assert_int_equal(hooks.apply(coordinator, 41, bytes("x"), 1), LEAT_OK);
    assert_int_equal(hooks.apply(coordinator, 42, bytes("x"), 1), LEAT_OK);
    TRACE_IS("");
    assert_int_equal(hooks.apply(coordinator, 43, bytes("x"), 1), LEAT_OK);
    TRACE_IS("apply x at 43\nresult 31\n");
    apply_rc = LEAT_E_CORRUPT;
    assert_int_equal(hooks.apply(coordinator, 44, bytes("y"), 1), LEAT_E_CORRUPT);
    TRACE_IS("apply y at 44\n");
}

static void no_snapshot_is_ahead_of_its_index(void **state)
{
    (void)state;
    uint8_t *out = NULL;
    size_t count = 0;
    coordinator->drive.applied = 41;
    assert_int_equal(hooks.snapshot(coordinator, &out, &count), LEAT_E_AGAIN);
    assert_null(out);
    for (unsigned i = 42; i < 44; i++) {
        coordinator->drive.applied = i;
        assert_int_equal(hooks.snapshot(coordinator, &out, &count), LEAT_OK);
        assert_true(out == (uint8_t *)&now_us && count == 7);
    }
    snapshot_rc = LEAT_E_NO_MEMORY;
    assert_int_equal(hooks.snapshot(coordinator, &out, &count), LEAT_E_NO_MEMORY);
}

#define RESTORED "restore s\nco_identity_update\nco_peers_want\nco_requests_restored\n"
/* The one that counts is at this index; the other is of no account. */
static void snapshot_at(bool installing, unsigned index)
{
    struct leat_raft_drive *drive = &coordinator->drive;
    const unsigned other = index > 42 ? 41 : 99;
    drive->snapshot_state = installing ? LEAT_RAFT_SNAPSHOT_SAVED : LEAT_RAFT_SNAPSHOT_TAKES;
    drive->install_meta.index = installing ? index : other;
    drive->log.snapshot.index = installing ? other : index;
}
static void a_snapshot_is_restored_that_is_ahead(void **state)
{
    (void)state;
    for (unsigned installing = 0; installing < 2; installing++) {
        coordinator->applied = 42;
        for (unsigned index = 41; index < 43; index++) {
            snapshot_at(installing, index);
            assert_int_equal(hooks.restore(coordinator, bytes("s"), 1), LEAT_OK);
        }
        TRACE_IS("");
        snapshot_at(installing, 43);
        restore_rc = LEAT_E_CORRUPT;
        assert_int_equal(hooks.restore(coordinator, bytes("s"), 1), LEAT_E_CORRUPT);
        assert_int_equal(coordinator->applied, 42);
        TRACE_IS("restore s\n");
        restore_rc = LEAT_OK;
        assert_int_equal(hooks.restore(coordinator, bytes("s"), 1), LEAT_OK);
        assert_int_equal(coordinator->applied, 43);
        TRACE_IS(RESTORED);
    }
}

static void messages_go_by_links(void **state)
{
    (void)state;
    struct raft_message message = {.server_id = 3, .server_address = "h3"};
    hooks.send(coordinator, &message);
    TRACE_IS("send to 3\n");
    coordinator->links = NULL;
    hooks.send(coordinator, &message);
    TRACE_IS("node log 1: coordinator: no connection to voter 3 (h3): a message is dropped\n");
}

#define LEADS(how) "node log 2: coordinator: this voter leads " how "; the term is 0 now\n"
#define CHANGED    "change ends: the coordinator's leader has changed: ask again (%s)\n"
static void who_leads_changes(void **state)
{
    (void)state;
    char all[256];
    snprintf(all, sizeof all, LEADS("no longer") "co_requests_again\n" CHANGED,
             leat_err_text(LEAT_E_NOT_LEADER));
    hooks.on_state(coordinator);
    TRACE_IS(all);
    assert_int_equal(coordinator->leads_since_us, now_us);
    static const struct co_watch unwatched[LEAT_NODES_MAX];
    assert_memory_equal(coordinator->watch, unwatched, sizeof unwatched);
    static const struct co_detect nothing;
    assert_memory_equal(&coordinator->detect, &nothing, sizeof nothing);
    leads = true;
    now_us++;
    hooks.on_state(coordinator);
    TRACE_IS(LEADS("from here on") "co_detect_leads\nco_requests_again\n");
    assert_int_equal(coordinator->leads_since_us, now_us);
    leads = false;
    hooks.on_state(coordinator);
    TRACE_IS(all);
    leads = true;
    coordinator->votes = false;
    hooks.on_state(coordinator);
    TRACE_IS(all);
    coordinator->votes = true;
    coordinator->clustered = false; /* a server alone watches nobody */
    hooks.on_state(coordinator);
    TRACE_IS("co_requests_again\n");
}

static void a_failure_of_rafts_ends_all_requests(void **state)
{
    (void)state;
    hooks.on_failed(coordinator, LEAT_E_DISK, "it broke");
    assert_int_equal(coordinator->failed, LEAT_E_DISK);
    assert_string_equal(coordinator->failed_why, "the coordinator has stopped: it broke");
    char all[512];
    snprintf(all, sizeof all,
             "change ends: the coordinator has stopped: it broke (%s)\n"
             "requests fail: the coordinator has stopped: it broke (%s)\n",
             leat_err_text(LEAT_E_DISK), leat_err_text(LEAT_E_DISK));
    TRACE_IS(all);
}

static void a_configuration_comes(void **state)
{
    (void)state;
    struct raft_configuration conf = {.n = 3};
    hooks.on_configuration(coordinator, 42, &conf);
    TRACE_IS("co_peers_want\n");
    assert_int_equal(coordinator->applied, 42);
    hooks.on_configuration(coordinator, 43, &conf);
    TRACE_IS("voters 3\nco_peers_want\n");
    assert_int_equal(coordinator->applied, 43);
}

/* ---- turns and ticks ---- */

#define TURN                                                                                       \
    "co_change_advance\nco_feed_advance\nco_recovery_advance\nco_report_tell\n"                    \
    "co_collect_advance\nco_state_tell 0\n"
static void ends_turn(void)
{
    leat_coordinator_actor.on_turn_end(coordinator);
}

void leat_machine_check(const struct leat_machine *machine)
{
    assert_ptr_equal(machine, &coordinator->machine);
    trace("check the tables\n");
}
void leat_links_check(const struct leat_links *links)
{
    assert_ptr_equal(links, coordinator->links);
    trace("check the links\n");
}
/* Goal: the tables are checked after a turn, and the links of a coordinator that has links. */
static void a_turn_is_checked(void **state)
{
    (void)state;
    leat_coordinator_actor.check(coordinator);
    TRACE_IS("check the tables\ncheck the links\n");
    coordinator->links = NULL;
    leat_coordinator_actor.check(coordinator);
    TRACE_IS("check the tables\n");
}

static void a_turn_ends(void **state)
{
    (void)state;
    ends_turn();
    char request[64], all[1024];
    snprintf(request, sizeof request, "request %d\n", (int)LEAT_COORDINATE_BARRIER);
    snprintf(all, sizeof all, TOLD "%sco_requests_advance\ndrive's turn ends\n" TURN, request);
    TRACE_IS(all);
    ends_turn();
    TRACE_IS("co_requests_advance\ndrive's turn ends\n" TURN);
    coordinator->votes = false;
    ends_turn();
    TRACE_IS("co_requests_advance\n" TURN);
    coordinator->votes = true;
    turn_fails = LEAT_E_DISK;
    ends_turn();
    TRACE_IS("co_requests_advance\ndrive's turn ends\n");
    ends_turn();
    TRACE_IS("");
    coordinator->failed = turn_fails = LEAT_OK;
    coordinator->links = NULL;
    ends_turn();
    TRACE_IS("co_requests_advance\ndrive's turn ends\n");
}

static void ready_is_when_what_was_asked_is_applied(void **state)
{
    (void)state;
    wakes();
    trace_begin();
    char request[64], all[256];
    snprintf(request, sizeof request, "request %d\n", (int)LEAT_COORDINATE_BARRIER);
    snprintf(all, sizeof all, "%sco_requests_advance\n", request);
    coordinator->votes = false;
    coordinator->links = NULL;
    struct leat_coordinate *asked = &coordinator->ready_request;
    for (unsigned i = 0; i < 2; i++) { /* not this time: asked again */
        ends_turn();
        TRACE_IS(all);
        ends_turn();
        TRACE_IS("co_requests_advance\n");
        asked->rc = LEAT_E_TIMEOUT;
        asked->on_done(asked);
        TRACE_IS("");
        assert_int_equal(coordinator->start, CO_START_TOLD);
    }
    ends_turn();
    TRACE_IS(all);
    assert_int_equal(asked->rc, LEAT_OK);
    asked->on_done(asked);
    TRACE_IS("ready\n");
    assert_int_equal(coordinator->start, CO_START_READY);
    ends_turn();
    TRACE_IS("co_requests_advance\n");
    coordinator->start = CO_START_ASKS;
    coordinator->options.on_ready = NULL;
    asked->on_done(asked);
    TRACE_IS("");
    assert_int_equal(coordinator->start, CO_START_READY);
    coordinator->start = CO_START_TOLD;
    done_at_once = true;
    ends_turn();
    TRACE_IS(all);
    assert_int_equal(coordinator->start, CO_START_READY);
}

static void a_tick_comes_again_and_again(void **state)
{
    (void)state;
    assert_non_null(tick);
    now_us = 5000000;
    tick->on_expired(tick);
    TRACE_IS("tick in 100000 us\nco_form_advance\nco_wait_tell\nco_feed_tick\nco_requests_tick\n");
    coordinator->failed = LEAT_E_DISK;
    tick->on_expired(tick);
    TRACE_IS("tick in 100000 us\n");
}

static int descs_free(void **state)
{
    (void)state;
    for (unsigned i = 0; i < STREAMS; i++)
        free(descs[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OPENED_TEST(what_was_found_is_told_first_and_once),
        OPENED_TEST(an_entry_is_applied),
        OPENED_TEST(other_tables_are_told),
        OPENED_TEST(all_streams_may_be_gone),
        OPENED_TEST(before_it_has_begun_nobody_is_told),
        OPENED_TEST(a_log_is_found_where_the_tables_have_it),
        OPENED_TEST(entries_known_since_it_learned_are_passed_over),
        OPENED_TEST(no_snapshot_is_ahead_of_its_index),
        OPENED_TEST(a_snapshot_is_restored_that_is_ahead),
        OPENED_TEST(messages_go_by_links),
        OPENED_TEST(who_leads_changes),
        OPENED_TEST(a_failure_of_rafts_ends_all_requests),
        OPENED_TEST(a_configuration_comes),
        OPENED_TEST(a_turn_is_checked),
        OPENED_TEST(a_turn_ends),
        OPENED_TEST(ready_is_when_what_was_asked_is_applied),
        OPENED_TEST(a_tick_comes_again_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, descs_free);
}
