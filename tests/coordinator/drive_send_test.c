/* SPDX-License-Identifier: Apache-2.0 */
/* What the pump sends to other voters, what the pump proposes, and how the pump treats messages before raft gets
 * them. */
#include "tests/coordinator/drive_rig.h"

static void messages(struct raft_message *message)
{
    core.update.messages.batch = message;
    core.update.messages.n = 1;
    assert_int_equal(step(RAFT_UPDATE_MESSAGES), LEAT_OK);
}

/* ---- what is sent ---- */

static struct raft_message append_of(unsigned previous, unsigned count)
{
    struct raft_message message = {
        .type = RAFT_APPEND_ENTRIES, .server_id = 3, .server_address = "h3"};
    message.append_entries.version = 1;
    message.append_entries.term = TERM;
    message.append_entries.prev_log_index = previous;
    message.append_entries.prev_log_term = 4;
    message.append_entries.leader_commit = 5;
    message.append_entries.n_entries = count;
    return message;
}
#define APPEND "send 1 of 3(h3) v1 term 5 behind "

static void appends_have_the_logs_entries(void **state)
{
    (void)state;
    struct raft_message message = append_of(6, 3);
    messages(&message);
    TRACE_IS(STEP APPEND "6/4 commit 5 [4/1 'seven'] [4/1 'eight!'] [5/1 'ni']\n");
    assert_int_equal(drive.fill_capacity, 3);
    leat_mem_fail_at(0);
    message = append_of(5, 3);
    messages(&message);
    assert_int_equal(leat_mem_calls(), 0);
    TRACE_IS(STEP APPEND "5/4 commit 5 [4/1 'six'] [4/1 'seven'] [4/1 'eight!']\n");
    message = append_of(5, 1);
    messages(&message);
    assert_int_equal(drive.fill_capacity, 3);
    message = append_of(9, 0);
    message.append_entries.entries = given; /* left over */
    messages(&message);
    TRACE_IS(STEP APPEND "5/4 commit 5 [4/1 'six']\n" STEP APPEND "9/4 commit 5\n");
    message = append_of(5, 4);
    messages(&message);
    assert_int_equal(drive.fill_capacity, 4);
    TRACE_IS(STEP APPEND "5/4 commit 5 [4/1 'six'] [4/1 'seven'] [4/1 'eight!'] [5/1 'ni']\n");
    message = append_of(4, 2); /* 5 is not there any more */
    messages(&message);
    message = append_of(8, 2); /* nor is 10 yet */
    messages(&message);
    TRACE_IS(STEP STEP);
    for (unsigned i = 0; i < 4; i++)
        assert_null(drive.fill[i].batch);
    leat_mem_fail_at(1);
    message = append_of(4, 5);
    messages(&message);
    leat_mem_fail_at(0);
    TRACE_IS(STEP);
    assert_int_equal(drive.fill_capacity, 4);
}

/* Sizes only: the bytes are not looked at. */
static unsigned sent_entries, sent_count;
static void count_send(void *owner, const struct raft_message *message)
{
    (void)owner;
    sent_entries = message->append_entries.n_entries;
    sent_count++;
}

static void a_message_has_a_size(void **state)
{
    (void)state;
    enum { MOST = LEAT_RAFT_MESSAGE_BYTES_MAX, HEAD = LEAT_RAFT_FRAME_HEADER_BYTES };
    static const struct {
        uint32_t bytes[3];
        unsigned sent;
    } rows[] = {{{100, 200, MOST - 300 - 3 * HEAD}, 3},
                {{100, 200, MOST - 300 - 3 * HEAD + 1}, 2},
                {{100, MOST - 100 - 2 * HEAD, 0}, 2},
                {{100, MOST - 100 - 2 * HEAD + 1, 0}, 1},
                {{MOST + 1, 1, 1}, 1},
                {{MOST - HEAD, 0, 0}, 1}};
    drive.hooks.send = count_send;
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (unsigned e = 0; e < 3; e++)
            entries[6 + e].bytes = rows[i].bytes[e];
        struct raft_message message = append_of(5, 3);
        messages(&message);
        assert_int_equal(sent_entries, rows[i].sent);
        TRACE_IS(STEP);
    }
}

static void a_snapshot_goes_with_its_configuration(void **state)
{
    (void)state;
    uint8_t data[] = "tables";
    struct raft_message message = {
        .type = RAFT_INSTALL_SNAPSHOT, .server_id = 3, .server_address = "h3"};
    messages(&message);
    TRACE_IS(STEP); /* there is none */
    drive.log.snapshot = (struct leat_raft_snapshot){.index = 61, .data = data, .data_bytes = 6};
    messages(&message);
    TRACE_IS(STEP "send 5 of 3(h3) last 61/4 conf 59: 8=h8/1 'tables'\n");
    assert_int_equal(blocks, 0);
    no_meta = true;
    messages(&message);
    TRACE_IS(STEP);
}

static void a_refused_pre_vote_says_our_term(void **state)
{
    (void)state;
    static const struct {
        unsigned term;
        bool granted, pre;
        unsigned says;
    } rows[] = {{TERM - 1, false, true, TERM},      {TERM, false, true, TERM},
                {TERM + 1, false, true, TERM + 1},  {TERM - 1, true, true, TERM - 1},
                {TERM - 1, false, false, TERM - 1}, {TERM - 1, true, false, TERM - 1}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct raft_message message = {.type = RAFT_REQUEST_VOTE_RESULT, .server_id = 1};
        message.request_vote_result.term = rows[i].term;
        message.request_vote_result.vote_granted = rows[i].granted;
        message.request_vote_result.pre_vote = rows[i].pre;
        messages(&message);
        char all[128];
        snprintf(all, sizeof all, STEP "send 4 of 1(-) term %u granted %d pre %d\n", rows[i].says,
                 rows[i].granted, rows[i].pre);
        TRACE_IS(all);
    }
}

static void an_answer_is_not_ahead_of_the_log(void **state)
{
    (void)state;
    uint64_t last = leat_raft_log_last_index(&drive.log);
    for (uint64_t says = last - 1; says <= last + 1; says++) {
        struct raft_message message = {.type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 1};
        message.append_entries_result.rejected = 23;
        message.append_entries_result.last_log_index = says > last ? 0x7ffea3880350 : says;
        messages(&message);
        char all[128];
        snprintf(all, sizeof all, STEP "send 2 of 1(-) rejected 23 last %u\n",
                 (unsigned)(says > last ? last : says));
        TRACE_IS(all);
    }
}

/* ---- who is told at once of commits ---- */

#define TOLD(id, commit, term)                                                                     \
    "send 1 of " #id "(h" #id ") v0 term 5 behind " #commit "/" #term " commit " #commit "\n"

static void commits_are_told_to_who_has_them(void **state)
{
    (void)state;
    lead();
    drive.raft.configuration.n = 4;
    core.commit = 8;
    core.match[1] = 8;
    core.match[2] = 9;
    core.match[3] = 7;
    core.match[4] = 9;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS(TOLD(1, 8, 4) TOLD(4, 8, 4) "flush\n");
    assert_int_equal(drive.told_all, 0);
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\n");
    core.match[3] = 8;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS(TOLD(3, 8, 4) "flush\n");
    assert_int_equal(drive.told_all, 8);
    drive.told[0].index = 7; /* not looked at any more */
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\n");
    core.commit = 9;
    core.match[1] = 0; /* not known */
    core.match[3] = 10;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS(TOLD(3, 9, 5) TOLD(4, 9, 5) "flush\n");
    assert_int_equal(drive.told_all, 8);
    servers[0].id = 5; /* another in its place, and nothing was told to that one */
    core.match[5] = 9;
    drive.told[0] = (struct leat_raft_told){1, 9};
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("send 1 of 5(h1) v0 term 5 behind 9/5 commit 9\nflush\n");
    assert_int_equal(drive.told_all, 9);
}

static void joining_voters_and_followers_are_told_nothing(void **state)
{
    (void)state;
    core.commit = 8;
    core.match[1] = core.match[3] = 9;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\n");
    lead();
    servers[2].role = RAFT_SPARE;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS(TOLD(1, 8, 4) "flush\n");
    assert_int_equal(drive.told_all, 8);
    core.commit = 10; /* no such entry */
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\n");
    assert_int_equal(drive.told_all, 8);
}

static void no_more_are_told_than_have_a_place(void **state)
{
    (void)state;
    static struct raft_server many[LEAT_RAFT_TOLD_MAX + 2];
    lead();
    for (unsigned i = 0; i < LEAT_RAFT_TOLD_MAX + 2; i++)
        many[i] = (struct raft_server){.id = 3, .address = address[2], .role = RAFT_VOTER};
    many[0].id = many[1].id = OWN;
    drive.raft.configuration.servers = many;
    drive.raft.configuration.n = LEAT_RAFT_TOLD_MAX + 2;
    drive.hooks.send = count_send;
    core.commit = 6;
    core.match[3] = 9;
    sent_count = 0;
    leat_raft_drive_turn_end(&drive);
    TRACE_IS("flush\n");
    assert_int_equal(sent_count, LEAT_RAFT_TOLD_MAX - 2);
    for (unsigned i = 2; i < LEAT_RAFT_TOLD_MAX; i++)
        assert_true(drive.told[i].id == 3 && drive.told[i].index == 6);
    assert_int_equal(drive.told_all, 6);
}

/* ---- what is proposed ---- */

static char one[] = "one", none[] = "", three[] = "three";
static struct raft_buffer commands[3] = {{one, 3}, {none, 0}, {three, 5}};

static void commands_go_as_one_batch(void **state)
{
    (void)state;
    uint64_t first = 0;
    assert_int_equal(leat_raft_drive_submit(&drive, commands, 3, &first), LEAT_E_NOT_LEADER);
    TRACE_IS("");
    lead();
    assert_int_equal(leat_raft_drive_submit(&drive, commands, 3, &first), LEAT_OK);
    assert_int_equal(first, 10);
    TRACE_IS("step 8 at 7000, room 65535: [5/1 'one'] [5/1 ''] [5/1 'three']\n");
    assert_int_equal(blocks, 1);
    raft_free(given[0].batch);
    assert_int_equal(leat_raft_drive_submit(&drive, commands + 1, 1, &first), LEAT_OK);
    TRACE_IS("step 8 at 7000, room 65535: [5/1 '']\n");
    raft_free(given[0].batch);
}

static void commands_that_are_refused_are_freed(void **state)
{
    (void)state;
    static const struct {
        int raft;
        leat_err rc;
    } rows[] = {{RAFT_NOTLEADER, LEAT_E_NOT_LEADER}, {RAFT_NOMEM, LEAT_E_NO_MEMORY}};
    uint64_t first = 77;
    lead();
    for (unsigned i = 0; i < 2; i++) {
        core.rc = rows[i].raft;
        assert_int_equal(leat_raft_drive_submit(&drive, commands, 1, &first), rows[i].rc);
        TRACE_IS("step 8 at 7000, room 65535: [5/1 'one']\n");
        assert_int_equal(blocks, 0);
    }
    refuse = 1;
    assert_int_equal(leat_raft_drive_submit(&drive, commands, 1, &first), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(1);
    assert_int_equal(leat_raft_drive_submit(&drive, commands, 1, &first), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(first, 77);
    assert_int_equal(blocks, 0);
    core.rc = RAFT_INVALID;
    assert_int_equal(leat_raft_drive_submit(&drive, commands, 1, &first), LEAT_E_INTERNAL);
    assert_int_equal(first, 77);
    raft_free(given[0].batch); /* who knows whose it is */
    trace_begin();
}

static void a_configuration_is_proposed(void **state)
{
    (void)state;
    static const struct {
        int raft;
        leat_err rc;
        long blocks;
    } rows[] = {{0, LEAT_OK, 1},
                {RAFT_NOTLEADER, LEAT_E_NOT_LEADER, 0},
                {RAFT_NOMEM, LEAT_E_NO_MEMORY, 0},
                {RAFT_CANTCHANGE, LEAT_E_AGAIN, 0}};
    const struct raft_configuration *conf = &drive.raft.configuration;
    assert_int_equal(leat_raft_drive_change(&drive, conf), LEAT_E_NOT_LEADER);
    lead();
    for (unsigned i = 0; i < 4; i++) {
        core.rc = rows[i].raft;
        assert_int_equal(leat_raft_drive_change(&drive, conf), rows[i].rc);
        TRACE_IS("step 8 at 7000, room 65535: [5/3 conf 48]\n");
        assert_int_equal(blocks, rows[i].blocks);
        if (!blocks) continue;
        struct raft_configuration copy;
        assert_int_equal(raft_configuration_decode(&given[0].buf, &copy), 0);
        assert_int_equal(copy.n, 3);
        assert_string_equal(copy.servers[2].address, "h3");
        raft_configuration_close(&copy);
        raft_free(given[0].batch);
    }
    refuse = 1;
    assert_int_equal(leat_raft_drive_change(&drive, conf), LEAT_E_NO_MEMORY);
}

static void a_server_is_caught_up(void **state)
{
    (void)state;
    leat_raft_drive_catch_up(&drive, 4);
    TRACE_IS("");
    lead();
    leat_raft_drive_catch_up(&drive, 4);
    TRACE_IS("step 9 at 7000, room 65535: 4\n");
    core.catch_up = RAFT_CATCH_UP_FINISHED;
    assert_int_equal(leat_raft_drive_catch_up_status(&drive, 4), RAFT_CATCH_UP_FINISHED);
    core.catch_up_rc = RAFT_NOTLEADER;
    assert_int_equal(leat_raft_drive_catch_up_status(&drive, 4), RAFT_CATCH_UP_NONE);
}

/* ---- what comes ---- */

#define COMES "step 2 at 7000, room 65535: "

/* As they are decoded: one batch, and the array. */
static struct raft_message appended(unsigned previous, unsigned count)
{
    struct raft_message message = append_of(previous, count);
    if (count == 0) return message;
    char *batch = raft_text("abcdef");
    struct raft_entry *all = raft_malloc((count + 1) * sizeof *all);
    assert_non_null(all);
    for (unsigned i = 0; i < count; i++)
        all[i] = (struct raft_entry){
            .term = TERM, .type = RAFT_COMMAND, .buf = {batch + i, 1}, .batch = batch};
    all[count] = (struct raft_entry){.batch = NULL};
    message.append_entries.entries = all;
    return message;
}
/* Raft has taken the batch, where it got any entry; here it is the test that does. */
static void appends(unsigned previous, unsigned count, bool taken, const char *expected)
{
    struct raft_message message = appended(previous, count);
    void *batch = count ? message.append_entries.entries[0].batch : NULL;
    leat_raft_drive_receive(&drive, &message);
    trace_must_be(expected, __FILE__, __LINE__);
    assert_int_equal(blocks, taken);
    if (taken) raft_free(batch);
}
#define IS(rest) COMES "1 of 3(h3) v1 term 5 behind " rest "\n  \n"

static void appends_are_taken(void **state)
{
    (void)state;
    appends(9, 0, false, IS("9/4 commit 5"));
    appends(9, 2, true, IS("9/4 commit 5 [5/1 'a'] [5/1 'b']"));
}

/* The snapshot is to 8, of term 3, and entries before 6 are gone (offset 5). */
static void appends_inside_the_snapshot_begin_at_its_end(void **state)
{
    (void)state;
    drive.raft.trail.snapshot.index = 8;
    drive.raft.trail.snapshot.term = 3;
    drive.raft.trail.offset = 5;
    appends(8, 2, true, IS("8/4 commit 5 [5/1 'a'] [5/1 'b']"));
    appends(6, 2, true, IS("6/4 commit 5 [5/1 'a'] [5/1 'b']")); /* raft has those itself */
    appends(5, 0, false, IS("8/3 commit 5"));
    appends(5, 5, true, IS("8/3 commit 5 [5/1 'd'] [5/1 'e']"));
    appends(5, 4, true, IS("8/3 commit 5 [5/1 'd']"));
    appends(5, 3, false, IS("8/3 commit 5"));
    appends(5, 2, false, IS("8/3 commit 5"));
    appends(4, 5, true, IS("8/3 commit 5 [5/1 'e']"));
    drive.raft.trail.offset = 9;
    appends(8, 2, true, IS("8/4 commit 5 [5/1 'a'] [5/1 'b']"));
    appends(9, 2, true, IS("9/4 commit 5 [5/1 'a'] [5/1 'b']"));
    appends(7, 2, true, IS("8/3 commit 5 [5/1 'b']"));
    drive.raft.trail.offset = 5;
    drive.raft.snapshot.installing = true;
    appends(5, 2, true, IS("5/4 commit 5 [5/1 'a'] [5/1 'b']"));
}

static void nothing_comes_to_who_has_failed(void **state)
{
    (void)state;
    drive.failed = LEAT_E_DISK;
    appends(5, 2, false, "");
    appends(5, 0, false, "");
}

static struct raft_message snapshot_message(void)
{
    struct raft_message message = {.type = RAFT_INSTALL_SNAPSHOT, .server_id = 3};
    struct raft_install_snapshot *install = &message.install_snapshot;
    raft_configuration_init(&install->conf);
    assert_int_equal(raft_configuration_add(&install->conf, 8, "h8", RAFT_VOTER), 0);
    install->data.base = raft_text("t");
    install->data.len = 1;
    install->last_index = 9;
    return message;
}

static void one_snapshot_at_a_time(void **state)
{
    (void)state;
    struct raft_message message = snapshot_message();
    drive.raft.snapshot.installing = true;
    leat_raft_drive_receive(&drive, &message);
    TRACE_IS("");
    assert_int_equal(blocks, 0);
    drive.raft.snapshot.installing = false;
    message = snapshot_message();
    leat_raft_drive_receive(&drive, &message);
    TRACE_IS(COMES "5 of 3(-) last 9/0 conf 0: 8=h8/1 't'\n  \n");
    leat_raft_message_drop(&message);
    assert_int_equal(blocks, 0);
    message = appended(3, 1);
    message.type = RAFT_REQUEST_VOTE; /* which has none: what is there is something else */
    leat_raft_message_drop(&message);
    leat_raft_drive_receive(&drive, &message);
    TRACE_IS(COMES "3 of 3(h3)\n  \n");
    assert_int_equal(blocks, 2);
    message.type = RAFT_APPEND_ENTRIES;
    leat_raft_message_drop(&message);
    assert_int_equal(blocks, 0);
}

static void votes_are_a_candidates(void **state)
{
    (void)state;
    struct raft_message vote = {.type = RAFT_REQUEST_VOTE_RESULT, .server_id = 3};
    struct raft_message asks = {.type = RAFT_REQUEST_VOTE, .server_id = 3};
    for (int i = RAFT_FOLLOWER; i <= RAFT_LEADER; i++) {
        core.state = (enum raft_state)i;
        leat_raft_drive_receive(&drive, &vote);
        TRACE_IS(i == RAFT_CANDIDATE ? COMES "4 of 3(-) term 0 granted 0 pre 0\n  \n" : "");
        leat_raft_drive_receive(&drive, &asks);
        TRACE_IS(COMES "3 of 3(-)\n  \n");
    }
}

static void an_answer_is_not_behind_what_was_acknowledged(void **state)
{
    (void)state;
    static const struct {
        enum raft_state state;
        unsigned match, rejected, last, becomes;
    } rows[] = {{RAFT_LEADER, 8, 0, 7, 8},   {RAFT_LEADER, 8, 0, 8, 8}, {RAFT_LEADER, 8, 0, 9, 9},
                {RAFT_LEADER, 8, 6, 5, 5},   {RAFT_LEADER, 0, 0, 7, 7}, {RAFT_FOLLOWER, 8, 0, 7, 7},
                {RAFT_CANDIDATE, 8, 0, 7, 7}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct raft_message message = {.type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 3};
        message.append_entries_result.rejected = rows[i].rejected;
        message.append_entries_result.last_log_index = rows[i].last;
        core.state = rows[i].state;
        core.match[1] = 99; /* another's */
        core.match[3] = rows[i].match;
        leat_raft_drive_receive(&drive, &message);
        char all[128];
        snprintf(all, sizeof all, COMES "2 of 3(-) rejected %u last %u\n  \n", rows[i].rejected,
                 rows[i].becomes);
        TRACE_IS(all);
    }
}

/* ---- taking over ---- */

static void the_last_entry_and_its_term(void **state)
{
    (void)state;
    uint64_t index, term;
    drive.log.snapshot.term = 2;
    leat_raft_drive_last(&drive, &index, &term);
    assert_true(index == 9 && term == 5);
    drive.log.entry_count = 3;
    leat_raft_drive_last(&drive, &index, &term);
    assert_true(index == 8 && term == 4);
    drive.log.entry_count = 0;
    leat_raft_drive_last(&drive, &index, &term);
    assert_true(index == 5 && term == 2);
}

static void a_follower_takes_over_as_if_asked(void **state)
{
    (void)state;
    leat_raft_drive_take_over(&drive);
    core.leader = 1;
    core.state = RAFT_CANDIDATE;
    leat_raft_drive_take_over(&drive);
    core.state = RAFT_LEADER;
    leat_raft_drive_take_over(&drive);
    TRACE_IS("");
    core.state = RAFT_FOLLOWER;
    leat_raft_drive_take_over(&drive);
    TRACE_IS(COMES "6 of 1(leads) term 5 last 9/5\n  \n");
    drive.failed = LEAT_E_DISK;
    leat_raft_drive_take_over(&drive);
    TRACE_IS("");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DRIVE_TEST(appends_have_the_logs_entries),
        DRIVE_TEST(a_message_has_a_size),
        DRIVE_TEST(a_snapshot_goes_with_its_configuration),
        DRIVE_TEST(a_refused_pre_vote_says_our_term),
        DRIVE_TEST(an_answer_is_not_ahead_of_the_log),
        DRIVE_TEST(commits_are_told_to_who_has_them),
        DRIVE_TEST(joining_voters_and_followers_are_told_nothing),
        DRIVE_TEST(no_more_are_told_than_have_a_place),
        DRIVE_TEST(commands_go_as_one_batch),
        DRIVE_TEST(commands_that_are_refused_are_freed),
        DRIVE_TEST(a_configuration_is_proposed),
        DRIVE_TEST(a_server_is_caught_up),
        DRIVE_TEST(appends_are_taken),
        DRIVE_TEST(appends_inside_the_snapshot_begin_at_its_end),
        DRIVE_TEST(nothing_comes_to_who_has_failed),
        DRIVE_TEST(one_snapshot_at_a_time),
        DRIVE_TEST(votes_are_a_candidates),
        DRIVE_TEST(an_answer_is_not_behind_what_was_acknowledged),
        DRIVE_TEST(the_last_entry_and_its_term),
        DRIVE_TEST(a_follower_takes_over_as_if_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
