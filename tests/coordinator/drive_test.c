/* SPDX-License-Identifier: Apache-2.0 */
/* The requests in an update of raft's, in the safe order; commit; the faults that end the drive. */
#include "coordinator/membership/state.h"
#include "coordinator/raft/private.h"
#include "tests/coordinator/drive_rig.h"

static void everything_in_the_one_order(void **state)
{
    (void)state;
    struct raft_message message = {.type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 1};
    message.server_address = "h1";
    struct raft_entry entry = {.term = 5, .type = RAFT_COMMAND};
    entry.batch = entry.buf.base = raft_text("ten");
    entry.buf.len = 3;
    core.update.entries.index = 10;
    core.update.entries.batch = &entry;
    core.update.entries.n = 1;
    core.update.messages.batch = &message;
    core.update.messages.n = 1;
    core.update.snapshot.metadata.index = 77;
    core.state = RAFT_LEADER;
    core.commit = 6;
    assert_int_equal(step(255), LEAT_OK);
    TRACE_IS(STEP "vote 5 for 3\nappend 10: 5/1 3 bytes\ninstall 77\n"
                  "send 2 of 1(h1) rejected 0 last 0\nleads 1\nraft timer in 49100 us\n"
                  "apply 6 'six'\nsnapshot? 35 bytes, applying 0\n");
    assert_int_equal(drive.raft.configuration_uncommitted_index, 0);
}

static void each_alone(void **state)
{
    (void)state;
    assert_int_equal(step(0), LEAT_OK);
    TRACE_IS(STEP);
    assert_int_equal(step(RAFT_UPDATE_CURRENT_TERM), LEAT_OK);
    TRACE_IS(STEP "vote 5 for 3\n");
    assert_int_equal(step(RAFT_UPDATE_VOTED_FOR), LEAT_OK);
    TRACE_IS(STEP "vote 5 for 3\n");
    core.update.snapshot.metadata.index = 3;
    assert_int_equal(step(RAFT_UPDATE_SNAPSHOT), LEAT_OK);
    TRACE_IS(STEP "install 3\n");
    struct raft_message messages[2] = {{.type = RAFT_REQUEST_VOTE, .server_id = 1},
                                       {.type = RAFT_REQUEST_VOTE, .server_id = 3}};
    core.update.messages.batch = messages;
    core.update.messages.n = 2;
    assert_int_equal(step(RAFT_UPDATE_MESSAGES), LEAT_OK);
    TRACE_IS(STEP "send 3 of 1(-)\nsend 3 of 3(-)\n");
    assert_int_equal(step(RAFT_UPDATE_TIMEOUT), LEAT_OK);
    TRACE_IS(STEP "raft timer in 49100 us\n");
    now_us = core.timeout_ms * 1000;
    leat_raft_drive_timer_arm(&drive);
    now_us++;
    leat_raft_drive_timer_arm(&drive);
    now_us -= 2;
    leat_raft_drive_timer_arm(&drive);
    TRACE_IS("raft timer in 0 us\nraft timer in 0 us\nraft timer in 1 us\n");
}

static void who_leads_is_told_when_it_changes(void **state)
{
    (void)state;
    static const struct {
        enum raft_state state;
        const char *told;
    } rows[] = {{RAFT_FOLLOWER, ""},           {RAFT_CANDIDATE, ""},
                {RAFT_LEADER, "leads 1\n"},    {RAFT_LEADER, ""},
                {RAFT_CANDIDATE, "leads 0\n"}, {RAFT_LEADER, "leads 1\n"},
                {RAFT_FOLLOWER, "leads 0\n"}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char all[256];
        core.state = rows[i].state;
        assert_int_equal(step(RAFT_UPDATE_STATE), LEAT_OK);
        snprintf(all, sizeof all, STEP "%sraft timer in 49100 us\n", rows[i].told);
        TRACE_IS(all);
    }
}

/* ---- what fails ---- */

/* Goal: a vote is granted once term and vote are stored, and not at all where these can't be stored: a voter that
 * forgets a vote votes twice in a term. */
static void a_vote_is_stored_before_it_is_granted(void **state)
{
    (void)state;
    struct raft_message message = {.type = RAFT_REQUEST_VOTE_RESULT, .server_id = 3};
    message.request_vote_result.term = 5;
    message.request_vote_result.vote_granted = true;
    core.update.messages.batch = &message;
    core.update.messages.n = 1;
    assert_int_equal(step(RAFT_UPDATE_VOTED_FOR | RAFT_UPDATE_MESSAGES), LEAT_OK);
    TRACE_IS(STEP "vote 5 for 3\nsend 4 of 3(-) term 5 granted 1 pre 0\n");
    vote_rc = LEAT_E_DISK;
    core.update.messages.batch = &message;
    core.update.messages.n = 1;
    assert_int_equal(step(RAFT_UPDATE_VOTED_FOR | RAFT_UPDATE_MESSAGES), LEAT_E_DISK);
    char all[512];
    snprintf(all, sizeof all,
             STEP "vote 5 for 3\n" STOPPED(
                 "term and vote can't be stored (%s)") "failed %s: term and vote can't be stored\n",
             leat_err_text(LEAT_E_DISK), leat_err_text(LEAT_E_DISK));
    TRACE_IS(all);
}

static void after_a_failure_nothing_more_is_said(void **state)
{
    (void)state;
    lead();
    vote_rc = LEAT_E_DISK;
    struct raft_message message = {.type = RAFT_REQUEST_VOTE, .server_id = 1};
    core.update.messages.batch = &message;
    core.update.messages.n = 1;
    core.commit = 9;
    assert_int_equal(step(255 - 4), LEAT_E_DISK);
    char all[512];
    snprintf(all, sizeof all,
             STEP "vote 5 for 3\n" STOPPED(
                 "term and vote can't be stored (%s)") "failed %s: term and vote can't be stored\n",
             leat_err_text(LEAT_E_DISK), leat_err_text(LEAT_E_DISK));
    TRACE_IS(all);
    assert_false(leat_raft_drive_leads(&drive));
    leat_raft_drive_fail(&drive, LEAT_E_CORRUPT, "another");
    assert_int_equal(drive.failed, LEAT_E_DISK);
    assert_int_equal(step(RAFT_UPDATE_STATE), LEAT_E_DISK);
    leat_raft_drive_turn_end(&drive);
    drive.raft_timer.on_expired(&drive.raft_timer);
    uint64_t index = 99;
    struct raft_buffer command = {.base = (void *)(uintptr_t) "c", .len = 1};
    assert_int_equal(leat_raft_drive_submit(&drive, &command, 1, &index), LEAT_E_DISK);
    assert_int_equal(leat_raft_drive_change(&drive, &drive.raft.configuration), LEAT_E_DISK);
    leat_raft_drive_catch_up(&drive, 4);
    core.state = RAFT_FOLLOWER;
    core.leader = 1;
    leat_raft_drive_take_over(&drive);
    assert_int_equal(index, 99);
    TRACE_IS("");
}

static void no_memory_for_what_is_committed_stops_the_process(void **state)
{
    (void)state;
    if (setjmp(dead) == 0) leat_raft_drive_fail(&drive, LEAT_E_NO_MEMORY, "x");
    TRACE_IS("stops: committed_is_applied\n");
    apply_rc = LEAT_E_NO_MEMORY;
    core.commit = 6;
    if (setjmp(dead) == 0) (void)step(RAFT_UPDATE_COMMIT_INDEX);
    TRACE_IS(STEP "apply 6 'six'\nstops: committed_is_applied\n");
}

static void what_raft_refuses(void **state)
{
    (void)state;
    core.rc = RAFT_NOTLEADER;
    assert_int_equal(step(RAFT_UPDATE_STATE), LEAT_E_NOT_LEADER);
    core.rc = RAFT_CANTCHANGE;
    assert_int_equal(step(RAFT_UPDATE_STATE), LEAT_E_AGAIN);
    TRACE_IS(STEP STEP);
    core.rc = RAFT_NOMEM;
    if (setjmp(dead) == 0) (void)step(0);
    TRACE_IS(STEP "stops: committed_is_applied\n");
    assert_int_equal(drive.failed, LEAT_OK);
    core.rc = RAFT_INVALID;
    assert_int_equal(step(RAFT_UPDATE_STATE), LEAT_E_INTERNAL);
    char all[512];
    snprintf(all, sizeof all, STEP STOPPED("%s (%s)") "failed %s: %s\n",
             raft_strerror(RAFT_INVALID), leat_err_text(LEAT_E_INTERNAL),
             leat_err_text(LEAT_E_INTERNAL), raft_strerror(RAFT_INVALID));
    TRACE_IS(all);
}

/* ---- entries ---- */

static void entries_of(struct raft_entry *batch, unsigned count, int change)
{
    char *bytes = raft_text("abcdef");
    for (unsigned i = 0; i < count; i++)
        batch[i] = (struct raft_entry){.term = TERM - 1 + i,
                                       .type = (int)i == change ? RAFT_CHANGE : RAFT_COMMAND,
                                       .buf = {.base = bytes + i, .len = i + 1},
                                       .batch = bytes};
    core.update.entries.index = 10;
    core.update.entries.batch = batch;
    core.update.entries.n = count;
}

static void entries_are_kept_and_say_where_a_configuration_is(void **state)
{
    (void)state;
    struct raft_entry batch[3];
    static const struct {
        int change;
        uint64_t before, after;
    } rows[] = {{-1, 0, 0}, {-1, 10, 10}, {0, 10, 10}, {1, 10, 11}, {2, 10, 12}, {2, 0, 0}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        entries_of(batch, 3, rows[i].change);
        drive.raft.configuration_uncommitted_index = rows[i].before;
        assert_int_equal(step(RAFT_UPDATE_ENTRIES), LEAT_OK);
        assert_int_equal(drive.raft.configuration_uncommitted_index, rows[i].after);
        assert_int_equal(leat_raft_drive_changing(&drive), rows[i].after != 0);
        char all[256];
        snprintf(all, sizeof all,
                 STEP "append 10: 4/%d 1 bytes\nappend 11: 5/%d 2 bytes\nappend 12: 6/%d 3 bytes\n",
                 rows[i].change == 0 ? 3 : 1, rows[i].change == 1 ? 3 : 1,
                 rows[i].change == 2 ? 3 : 1);
        TRACE_IS(all);
        assert_int_equal(blocks, 0);
    }
    core.update.entries.n = 0;
    assert_int_equal(step(RAFT_UPDATE_ENTRIES), LEAT_OK);
    TRACE_IS(STEP);
}

static void an_entry_that_is_not_kept(void **state)
{
    (void)state;
    struct raft_entry batch[3];
    entries_of(batch, 3, -1);
    append_rc = LEAT_E_DISK;
    core.commit = 9;
    assert_int_equal(step(RAFT_UPDATE_ENTRIES | (RAFT_UPDATE_COMMIT_INDEX)), LEAT_E_DISK);
    char all[512];
    snprintf(all, sizeof all,
             STEP "append 10: 4/1 1 bytes\n" STOPPED(
                 "an entry can't be kept (%s)") "failed %s: an entry can't be kept\n",
             leat_err_text(LEAT_E_DISK), leat_err_text(LEAT_E_DISK));
    TRACE_IS(all);
    assert_int_equal(blocks, 0);
}

/* ---- commit ---- */

static void commands_are_applied_once_and_in_order(void **state)
{
    (void)state;
    core.commit = 8;
    entries[7].type = RAFT_BARRIER;
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_OK);
    TRACE_IS(STEP "apply 6 'six'\napply 8 'eight!'\nsnapshot? 110 bytes, applying 0\n");
    assert_int_equal(drive.applied, 8);
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_OK);
    TRACE_IS(STEP "snapshot? 110 bytes, applying 0\n");
    core.commit = 12; /* 10 and more are not there: a snapshot brings them */
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_OK);
    TRACE_IS(STEP "apply 9 'ni'\nsnapshot? 144 bytes, applying 0\n");
    assert_int_equal(drive.applied, 9);
}

static void what_is_committed_while_applying_waits_its_turn(void **state)
{
    (void)state;
    core.commit = 7;
    commit_then = 6;
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_OK);
    TRACE_IS(STEP "apply 6 'six'\n" STEP
                  "apply 7 'seven'\napply 8 'eight!'\nsnapshot? 110 bytes, applying 0\n");
}

static void a_command_that_does_not_apply_ends_it(void **state)
{
    (void)state;
    core.commit = 9;
    apply_rc = LEAT_E_CORRUPT;
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_E_CORRUPT);
    char all[512];
    snprintf(
        all, sizeof all,
        STEP "apply 6 'six'\n" STOPPED(
            "a committed entry can't be applied (%s)") "failed %s: a committed entry can't be "
                                                       "applied\nsnapshot? 35 bytes, applying 0\n",
        leat_err_text(LEAT_E_CORRUPT), leat_err_text(LEAT_E_CORRUPT));
    TRACE_IS(all);
}

static void configuration_entry(unsigned index, raft_id id)
{
    struct raft_configuration conf;
    struct raft_buffer bytes;
    raft_configuration_init(&conf);
    assert_int_equal(raft_configuration_add(&conf, id, "new", RAFT_VOTER), 0);
    assert_int_equal(raft_configuration_encode(&conf, &bytes), 0);
    raft_configuration_close(&conf);
    entries[index].type = RAFT_CHANGE;
    entries[index].data = bytes.base;
    entries[index].bytes = (uint32_t)bytes.len;
}

static void a_configuration_is_told_and_kept(void **state)
{
    (void)state;
    configuration_entry(6, 7);
    configuration_entry(7, 8);
    configuration_entry(8, 9);
    core.commit = 7;
    drive.raft.configuration_committed_index = 7; /* raft has the second already, not the third */
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_OK);
    TRACE_IS(STEP "step 5 at 7000, room 65535: 6 7=new/1\nconfiguration 6 7=new/1\n"
                  "step 5 at 7000, room 65535: 7 8=new/1\nconfiguration 7 8=new/1\n"
                  "snapshot? 112 bytes, applying 0\n");
    assert_int_equal(drive.raft.configuration_committed_index, 7);
    assert_int_equal(drive.raft.configuration_committed.n, 0);
    core.commit = 9;
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_OK);
    TRACE_IS(STEP "step 5 at 7000, room 65535: 8 9=new/1\nconfiguration 8 9=new/1\n"
                  "apply 9 'ni'\nsnapshot? 202 bytes, applying 0\n");
    assert_int_equal(drive.raft.configuration_committed_index, 8);
    assert_int_equal(drive.raft.configuration_committed.n, 1);
    assert_int_equal(drive.raft.configuration_committed.servers[0].id, 9);
    drive.applied = 5;
    drive.raft.configuration_committed_index = 6;
    core.commit = 7;
    drive.hooks.on_configuration = NULL;
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_OK);
    TRACE_IS(STEP "step 5 at 7000, room 65535: 6 7=new/1\nstep 5 at 7000, room 65535: 7 8=new/1\n"
                  "snapshot? 314 bytes, applying 0\n");
    assert_int_equal(drive.raft.configuration_committed_index, 7);
    assert_int_equal(drive.raft.configuration_committed.servers[0].id, 8);
    for (unsigned i = 6; i < 9; i++)
        raft_free(entries[i].data);
}

static void a_configuration_that_can_not_be_kept_or_told(void **state)
{
    (void)state;
    configuration_entry(6, 7);
    core.commit = 6;
    entries[6].data[0] ^= 1; /* does not decode */
    assert_int_equal(step(RAFT_UPDATE_COMMIT_INDEX), LEAT_E_CORRUPT);
    char all[512];
    snprintf(
        all, sizeof all,
        STEP STOPPED("a committed configuration does not decode (%s)") "failed %s: a committed "
                                                                       "configuration does not "
                                                                       "decode\nsnapshot? %u "
                                                                       "bytes, applying 0\n",
        leat_err_text(LEAT_E_CORRUPT), leat_err_text(LEAT_E_CORRUPT), 32 + entries[6].bytes);
    TRACE_IS(all);
    entries[6].data[0] ^= 1;
    drive.failed = LEAT_OK;
    /* Three times it is decoded: two blocks each. */
    for (unsigned n = 3; n < 7; n++) {
        drive.applied = 5;
        drive.applying = false;
        raft_configuration_close(&drive.raft.configuration_committed);
        raft_configuration_init(&drive.raft.configuration_committed);
        drive.raft.configuration_committed_index = 0;
        refuse = n;
        if (setjmp(dead) == 0) (void)step(RAFT_UPDATE_COMMIT_INDEX);
        TRACE_IS(STEP "step 5 at 7000, room 65535: 6 7=new/1\nstops: committed_is_applied\n");
        assert_int_equal(drive.raft.configuration_committed_index, n < 5 ? 0 : 6);
        assert_int_equal(refuse, 0);
    }
    raft_free(entries[6].data);
}

static void a_configuration_that_raft_refuses(void **state)
{
    (void)state;
    configuration_entry(6, 7);
    core.commit = 6;
    vote_rc = LEAT_E_DISK;
    struct raft_event event = {.type = RAFT_TIMEOUT};
    core.update.flags = RAFT_UPDATE_COMMIT_INDEX;
    core.then = RAFT_UPDATE_VOTED_FOR;
    assert_int_equal(leat_raft_drive_step(&drive, &event), LEAT_E_DISK);
    char all[512];
    snprintf(all, sizeof all,
             STEP "step 5 at 7000, room 65535: 6 7=new/1\nvote 5 for 3\n" STOPPED(
                 "term and vote can't be stored (%s)") "failed %s: term and vote can't be "
                                                       "stored\nsnapshot? %u bytes, applying 0\n",
             leat_err_text(LEAT_E_DISK), leat_err_text(LEAT_E_DISK), 32 + entries[6].bytes);
    TRACE_IS(all);
    assert_int_equal(drive.raft.configuration_committed_index, 0);
    raft_free(entries[6].data);
}

/* ---- timers and rounds ---- */

static void the_election_timer_fires_when_raft_says(void **state)
{
    (void)state;
    now_us = core.timeout_ms * 1000 - 1;
    drive.raft_timer.on_expired(&drive.raft_timer);
    TRACE_IS("raft timer in 1 us\n");
    now_us++;
    drive.raft_timer.on_expired(&drive.raft_timer);
    TRACE_IS("step 7 at 7050, room 65535:\nraft timer in 0 us\n");
    core.rc = RAFT_INVALID;
    drive.hooks.on_failed = on_failed;
    drive.raft_timer.on_expired(&drive.raft_timer);
    assert_non_null(strstr(trace_text, "failed"));
    assert_null(strstr(trace_text, "timer in"));
    trace_begin();
}

static void a_round_is_told_to_raft_unless_it_was_cut(void **state)
{
    (void)state;
    assert_ptr_equal(drive.log.owner, &drive);
    assert_ptr_equal(drive.log.on_snapshot, leat_raft_drive_snapshot_saved);
    drive.raft.last_stored = 8;
    drive.log.on_durable(&drive, 8, LEAT_OK);
    drive.log.on_durable(&drive, 7, LEAT_OK);
    TRACE_IS("");
    drive.log.on_durable(&drive, 9, LEAT_OK);
    TRACE_IS("step 3 at 7000, room 65535: to 9\n");
    drive.snapshot_state = LEAT_RAFT_SNAPSHOT_INSTALLS;
    drive.log.on_durable(&drive, 9, LEAT_OK);
    TRACE_IS("install finish\n");
    drive.log.on_durable(&drive, 9, LEAT_E_DISK);
    char all[512];
    snprintf(all, sizeof all,
             STOPPED("raft's log can't be written (%s)") "failed %s: raft's log can't be written\n",
             leat_err_text(LEAT_E_DISK), leat_err_text(LEAT_E_DISK));
    TRACE_IS(all);
}

static void quiet_notes_the_mark(void **state)
{
    (void)state;
    struct leat_timer *timer = &drive.mark_timer;
    timer->on_expired(timer);
    TRACE_IS("");
    mark_wanted = true;
    drive.log.writing = true;
    timer->on_expired(timer);
    TRACE_IS("");
    drive.log.writing = false;
    timer->on_expired(timer);
    TRACE_IS("mark\n");
    drive.log.full = true;
    timer->on_expired(timer);
    TRACE_IS("flush\nmark timer in 200000 us\n");
    flush_finds_room = true;
    timer->on_expired(timer);
    TRACE_IS("flush\nmark\n");
    mark_rc = LEAT_E_DISK;
    timer->on_expired(timer);
    char all[512];
    snprintf(
        all, sizeof all,
        "mark\n" STOPPED("raft's durable mark can't be stored (%s)") "failed %s: raft's durable "
                                                                     "mark can't be stored\n",
        leat_err_text(LEAT_E_DISK), leat_err_text(LEAT_E_DISK));
    TRACE_IS(all);
}

static void a_turn_ends_with_a_round(void **state)
{
    (void)state;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\n");
    drive.log.writing = true;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\nmark timer in 200000 us\n");
    drive.log.writing = false;
    drive.log.full = true;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\nmark timer in 200000 us\n");
    drive.log.full = false;
    drive.snapshot_state = LEAT_RAFT_SNAPSHOT_INSTALLS;
    leat_raft_drive_turn_end(&drive);
    drive.snapshot_state = LEAT_RAFT_SNAPSHOT_NONE;
    drive.raft_open = false;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("");
}

static void busy_with_a_round_in_flight_or_wanted(void **state)
{
    (void)state;
    assert_false(leat_raft_drive_busy(&drive));
    drive.log.writing = true;
    assert_true(leat_raft_drive_busy(&drive));
    drive.log.writing = false;
    drive.log.written_index = 8;
    assert_true(leat_raft_drive_busy(&drive));
    drive.log.written_index = 10;
    assert_false(leat_raft_drive_busy(&drive));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRIVE_TEST(everything_in_the_one_order),
        DRIVE_TEST(each_alone),
        DRIVE_TEST(who_leads_is_told_when_it_changes),
        DRIVE_TEST(a_vote_is_stored_before_it_is_granted),
        DRIVE_TEST(after_a_failure_nothing_more_is_said),
        DRIVE_TEST(no_memory_for_what_is_committed_stops_the_process),
        DRIVE_TEST(what_raft_refuses),
        DRIVE_TEST(entries_are_kept_and_say_where_a_configuration_is),
        DRIVE_TEST(an_entry_that_is_not_kept),
        DRIVE_TEST(commands_are_applied_once_and_in_order),
        DRIVE_TEST(what_is_committed_while_applying_waits_its_turn),
        DRIVE_TEST(a_command_that_does_not_apply_ends_it),
        DRIVE_TEST(a_configuration_is_told_and_kept),
        DRIVE_TEST(a_configuration_that_can_not_be_kept_or_told),
        DRIVE_TEST(a_configuration_that_raft_refuses),
        DRIVE_TEST(the_election_timer_fires_when_raft_says),
        DRIVE_TEST(a_round_is_told_to_raft_unless_it_was_cut),
        DRIVE_TEST(quiet_notes_the_mark),
        DRIVE_TEST(a_turn_ends_with_a_round),
        DRIVE_TEST(busy_with_a_round_in_flight_or_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
