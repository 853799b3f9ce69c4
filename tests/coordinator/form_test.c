/* SPDX-License-Identifier: Apache-2.0 */
/* How a cluster is formed: the founder, the nodes that the founder prepares, a node that has forgotten its state, and
 * nodes that join later. */
#include "coordinator/membership/forming.h"
#include "tests/coordinator/form_rig.h"

/* In the order of the dice: two numbers from 1000 on, or later. */
#define ID    "e803000000000000e903000000000000"
#define BODY  "[2 <" ID "> [3 [2 7 'b:1 me' [2 12 'd:1 n2' [2 11 'c:1 n1'"
#define CALLS "call n2 kind 275 within 5000000 " BODY "\ncall n1 kind 275 within 5000000 " BODY "\n"
#define FORMED(id)                                                                                 \
    "id 7\nform [1 <" id ">, 7 b:1 me 1, 12 d:1 n2 1, 11 c:1 n1 1\nvote\npeers\nidentity\n"

static void advance(void)
{
    co_form_advance(coordinator);
}

/* ---- the founder ---- */

static void founder_prepares_everybody_and_begins(void **state)
{
    (void)state;
    advance();
    TRACE_IS("state told 1\n" CALLS);
    disk_trace();
    TRACE_IS("disk: " SAVED("voter", "36") ", " SAVED("form", "63") "\n");
    assert_int_equal(coordinator->forming, LEAT_VOTER_PREPARED);
    assert_true(coordinator->form_calling);
    assert_int_equal(coordinator->form_wanted, 2);
    advance(); /* answers are waited for */
    call_ends(LEAT_OK);
    TRACE_IS("");
    assert_true(coordinator->form_calling);
    call_ends(LEAT_OK);
    TRACE_IS(FORMED(ID));
    assert_false(coordinator->form_calling);
    assert_int_equal(coordinator->cluster_id[0], 0xe8);
    assert_int_equal(coordinator->cluster_id[8], 0xe9);
    advance(); /* it votes */
    TRACE_IS("");
}

static void founder_is_who_has_the_lowest_address(void **state)
{
    (void)state;
    voters[1] = "a:1";
    advance();
    voters[1] = "c:1";
    voters[0] = "a:1";
    advance();
    voters[0] = "b:1";
    TRACE_IS("");
    voters[1] = "b:1"; /* twice the same: no other is lower */
    unreached[1] = false;
    peers[1].peer.state.role = LEAT_VOTER_LEARNER;
    advance();
    TRACE_IS("");
    coordinator->options.voter_count = 1; /* nobody to wait for */
    advance();
    TRACE_IS("state told 1\nid 7\nform [1 <" ID ">, 7 b:1 me 1\nvote\npeers\nidentity\n");
    assert_false(coordinator->form_calling);
}

static void founder_may_stand_anywhere_in_the_list(void **state)
{
    (void)state;
    voters[0] = "c:1";
    voters[1] = "b:1";
    voters[2] = "d:1";
    unreached[1] = true;
    advance();
    TRACE_IS("");
    unreached[1] = false;
    coordinator->forgot = true; /* who has forgotten founds nothing */
    advance();
    TRACE_IS("");
    coordinator->forgot = false;
    advance();
    TRACE_IS("state told 1\n"
             "call n1 kind 275 within 5000000 [2 <" ID "> [3 [2 11 'c:1 n1' [2 7 'b:1 me' [2 12 "
             "'d:1 n2'\ncall n2 kind 275 within 5000000 [2 <" ID "> [3 [2 11 'c:1 n1' [2 7 "
             "'b:1 me' [2 12 'd:1 n2'\n");
}

static void founder_waits_for_all_to_be_empty_or_prepared(void **state)
{
    (void)state;
    const uint32_t not [] = {LEAT_VOTER_LEARNER, LEAT_VOTER_FAILED};
    for (unsigned i = 0; i < 2; i++) {
        peers[2].peer.state.role = not [i];
        advance();
    }
    peers[2].peer.state.role = LEAT_VOTER_PREPARED;
    unreached[1] = true;
    advance();
    TRACE_IS("");
    assert_int_equal(dice, 1000);
    unreached[1] = false;
    advance();
    TRACE_IS("state told 1\n" CALLS);
}

static void attempt_of_which_one_fails_is_made_anew(void **state)
{
    (void)state;
    const leat_err codes[] = {LEAT_E_EXISTS, LEAT_E_TIMEOUT};
    for (unsigned c = 0; c < 4; c++) {
        advance();
        trace_begin();
        call_ends(c < 2 ? codes[c] : LEAT_OK);
        assert_true(coordinator->form_calling);
        call_ends(c < 2 ? LEAT_OK : codes[c - 2]);
        assert_false(coordinator->form_calling);
        TRACE_IS(c == 1   ? "cut n2: TIMEOUT: a voter did not answer\n"
                 : c == 3 ? "cut n1: TIMEOUT: a voter did not answer\n"
                          : "");
    }
    /* Each attempt has an id of its own. */
    assert_int_equal(dice, 1008);
    advance();
    trace_begin();
    call_ends(LEAT_OK);
    call_ends(LEAT_OK);
    TRACE_IS(FORMED("f003000000000000f103000000000000"));
}

static void answer_at_the_end_means_nothing(void **state)
{
    (void)state;
    advance();
    call_ends(LEAT_E_CANCELLED);
    assert_int_equal(coordinator->form_answers, 0);
    coordinator->votes = true; /* it has joined meanwhile */
    coordinator->form_answers = coordinator->form_ok = 1;
    trace_begin();
    call_ends(LEAT_OK);
    assert_false(coordinator->form_calling);
    TRACE_IS("");
}

/* A call that can't be made counts as an answer without success. */
static void calls_that_fail_at_once(void **state)
{
    (void)state;
    link_rc = LEAT_E_CLOSED;
    advance();
    assert_false(coordinator->form_calling);
    assert_int_equal(coordinator->form_answers, 2);
    assert_int_equal(coordinator->form_ok, 0);
    link_rc = LEAT_OK;
    trace_begin();
    leat_mem_fail_at(2); /* the first is the body's */
    advance();
    assert_int_equal(call_count, 1);
    assert_int_equal(coordinator->form_answers, 1);
    assert_true(coordinator->form_calling);
    trace_begin();
    call_ends(LEAT_OK);
    assert_false(coordinator->form_calling);
    TRACE_IS("");
}

/* ---- a body that can't be written, a beginning that fails ---- */

#define STOPPED "the coordinator has stopped: "

static void failed_write_stops_it(void **state)
{
    (void)state;
    journal_fail(&journal, 9, LEAT_E_DISK); /* the first of the second file */
    advance();
    TRACE_IS(
        "node log 0: coordinator: " STOPPED "raft/form can't be written\n"
        "requests fail DISK: " STOPPED "raft/form can't be written\nstate told 1\n"
        "node log 1: coordinator: raft/form can't be written: the disk failed a read, write or "
        "flush\n");
    assert_int_equal(coordinator->failed, LEAT_E_DISK);
    assert_string_equal(coordinator->failed_why, STOPPED "raft/form can't be written");
    assert_int_equal(coordinator->forming, LEAT_VOTER_EMPTY);
    assert_null(coordinator->form_body);
}

static void write_without_room_is_tried_again(void **state)
{
    (void)state;
    journal_fail(&journal, 3, LEAT_E_DISK_FULL);
    advance();
    leat_mem_fail_at(1);
    advance();
    char expected[300];
    snprintf(expected, sizeof expected,
             "node log 1: coordinator: raft/form can't be written: %s\n"
             "node log 1: coordinator: raft/form can't be written: %s\n",
             leat_err_text(LEAT_E_DISK_FULL), leat_err_text(LEAT_E_NO_MEMORY));
    TRACE_IS(expected);
    assert_int_equal(coordinator->failed, LEAT_OK);
    assert_false(coordinator->form_calling);
    assert_int_equal(coordinator->forming, LEAT_VOTER_EMPTY);
}

static void beginning_that_fails_stops_it(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 3; c++) {
        coordinator->failed = LEAT_OK;
        coordinator->forming = LEAT_VOTER_EMPTY;
        coordinator->votes = false;
        dice = 1000;
        if (c == 0) drive_form_rc = LEAT_E_DISK;
        if (c == 1) drive_form_rc = LEAT_OK, vote_start_rc = LEAT_E_DAMAGED;
        if (c == 2) peers[1].peer.state.voter_id = 12, vote_start_rc = LEAT_OK;
        advance();
        call_ends(LEAT_OK);
        trace_begin();
        call_ends(LEAT_OK);
        if (c == 0)
            TRACE_IS("id 7\nform [1 <" ID ">, 7 b:1 me 1, 12 d:1 n2 1, 11 c:1 n1 1\n"
                     "node log 0: coordinator: " STOPPED "no form\nrequests fail DISK: " STOPPED
                     "no form\nstate told 1\n");
        else if (c == 1)
            TRACE_IS("id 7\nform [1 <" ID ">, 7 b:1 me 1, 12 d:1 n2 1, 11 c:1 n1 1\nvote\n"
                     "node log 0: coordinator: " STOPPED "no start\nrequests fail DAMAGED: " STOPPED
                     "no start\nstate told 1\n");
        else
            TRACE_IS("id 7\nnode log 0: coordinator: " STOPPED
                     "two coordinators have the same address\nrequests fail INVALID: " STOPPED
                     "two coordinators have the same address\nstate told 1\n");
    }
}

/* ---- who is prepared ---- */

static void form_comes(uint32_t bytes)
{
    const struct leat_frame frame = {.control = body, .control_bytes = bytes};
    co_form_take(coordinator, &frame, &ticket);
}
#define NO(code) "refuse " code ": this voter can't be prepared for a new cluster\n"

static void voter_is_prepared_and_anew(void **state)
{
    (void)state;
    const uint32_t bytes = body_of_two();
    for (unsigned i = 0; i < 2; i++) {
        form_comes(bytes);
        TRACE_IS("state told 1\nanswer [0\n");
        assert_int_equal(coordinator->forming, LEAT_VOTER_PREPARED);
        assert_memory_equal(coordinator->form_body, body, bytes);
        assert_int_equal(coordinator->form_bytes, bytes);
        disk_trace();
        TRACE_IS("disk: " SAVED("voter", "36") ", " SAVED("form", "54") "\n");
        body[3]++; /* the cluster's id */
    }
    coordinator->forming = LEAT_VOTER_PREPARED;
    journal_fail(&journal, 1, LEAT_E_DISK_FULL);
    form_comes(bytes);
    TRACE_IS(NO("DISK_FULL"));
    assert_int_equal(coordinator->form_body[3], body[3] - 1); /* what it had stays */
}

/* A form with a field of a later version is taken as long as its file can have the form. */
static void form_of_a_later_version_has_room_or_is_refused(void **state)
{
    (void)state;
    const uint32_t bytes = body_of_two(), head = 3;
    assert_int_equal(body[0], 0x92);
    body[0] = 0x93;
    body[bytes] = 0xc5; /* bin16 */
    for (uint32_t all = 4097; all >= 4096; all--) {
        leat_put_be16(body + bytes + 1, (uint16_t)(all - bytes - head));
        form_comes(all);
    }
    TRACE_IS(NO("INVALID") "state told 1\nanswer [0\n");
    assert_int_equal(coordinator->form_bytes, 4096);
}

static void voter_that_has_begun_is_not_prepared(void **state)
{
    (void)state;
    const uint32_t bytes = body_of_two();
    coordinator->votes = true;
    form_comes(bytes);
    coordinator->votes = false;
    coordinator->forgot = true;
    form_comes(bytes);
    coordinator->forgot = false;
    coordinator->failed = LEAT_E_DISK;
    form_comes(bytes);
    coordinator->failed = LEAT_OK;
    coordinator->forming = LEAT_VOTER_LEARNER;
    form_comes(bytes);
    TRACE_IS(NO("EXISTS") NO("EXISTS") NO("EXISTS") NO("EXISTS"));
    assert_string_equal(journal.text, "");
}

static void body_is_looked_at(void **state)
{
    (void)state;
    /* Each list of voters has this voter in a valid row, so that another row makes the body wrong. */
    static const char *const texts[] = {"x",   "b:1 me", "d:1", "e:1", "f:1",
                                        "g:1", "h:1",    "i:1", "j:1", "k:1"};
    static const uint64_t ids[] = {1, 7, 2, 3, 4, 5, 6, 8, 9, 10};
    static const char *const me_first[] = {"b:1 me", ""};
    static const uint64_t ids_me_first[] = {7, 0};
    assert_int_equal(LEAT_VOTERS_MAX, 9);
    form_comes(body_make(cluster, 15, 2, ids, texts));
    form_comes(body_make(cluster, 16, 0, ids, texts));
    form_comes(body_make(cluster, 16, 10, ids, texts));
    form_comes(body_make(cluster, 16, 2, (const uint64_t[]){0, 7}, texts));
    form_comes(body_make(cluster, 16, 2, ids_me_first, texts + 1));
    form_comes(body_make(cluster, 16, 2, (const uint64_t[]){7, 1}, me_first));
    form_comes(body_make(cluster, 16, 2, ids, texts) - 1);
    form_comes(body_make(cluster, 16, 2, ids, texts) + 1);
    uint32_t bytes = body_make(cluster, 16, 2, ids, texts);
    body[0] = 0x93;
    form_comes(bytes);
    bytes =
        body_make(cluster, 16, 2, (const uint64_t[]){7, 1}, (const char *const[]){"b:1 me", "x"});
    assert_int_equal(body[29], 0x92);
    body[29] = 0x93;
    form_comes(bytes);
    form_comes(29); /* cut there */
    form_comes(30);
    TRACE_IS(NO("INVALID") NO("INVALID") NO("INVALID") NO("INVALID") NO("INVALID") NO("INVALID") NO(
        "INVALID") NO("INVALID") NO("INVALID") NO("INVALID") NO("INVALID") NO("INVALID"));
    form_comes(body_make(cluster, 16, 9, ids, texts));
    TRACE_IS("state told 1\nanswer [0\n");
}

static void address_and_name_have_a_length(void **state)
{
    (void)state;
    char text[CO_VOTER_BYTES_MAX + 2];
    static const uint64_t ids[] = {7, 8};
    for (unsigned more = 0; more < 2; more++) {
        memset(text, 'x', sizeof text);
        text[CO_VOTER_BYTES_MAX + more] = '\0';
        text[3] = ' ';
        form_comes(body_make(cluster, 16, 2, ids, (const char *const[]){"b:1 me", text}));
        TRACE_IS(more ? NO("INVALID") : "state told 1\nanswer [0\n");
    }
    form_comes(4097); /* more than a file holds */
    TRACE_IS(NO("INVALID"));
}

static void body_has_to_name_this_voter(void **state)
{
    (void)state;
    const struct {
        uint64_t id;
        const char *text;
        bool is;
    } cases[] = {{7, "b:1 x", false},  {7, "b:1 me", true},  {7, "b:1", true},
                 {8, "b:1 me", false}, {7, "c:1 me", false}, {7, "b:1 you", false}};
    for (unsigned c = 0; c < 6; c++) {
        const uint64_t ids[] = {1, cases[c].id};
        const char *const texts[] = {"q:1 q", cases[c].text};
        form_comes(body_make(cluster, 16, 2, ids, texts));
        TRACE_IS(cases[c].is ? "state told 1\nanswer [0\n" : NO("INVALID"));
    }
}

/* ---- somebody has begun ---- */

static void prepared_voter_begins_with_who_has_begun(void **state)
{
    (void)state;
    const uint32_t begun[] = {LEAT_VOTER_FOLLOWER, LEAT_VOTER_CANDIDATE, LEAT_VOTER_LEADER,
                              LEAT_VOTER_JOINING};
    voters[1] = "a:1"; /* this is no founder */
    for (unsigned c = 0; c < 4; c++) {
        coordinator->votes = false;
        coordinator->forming = LEAT_VOTER_EMPTY;
        peers[3].peer.state.role = LEAT_VOTER_EMPTY;
        form_comes(body_of_two());
        trace_begin();
        advance();
        peers[3].peer.state.role = begun[c];
        peers[3].peer.state.known = false;
        advance();
        TRACE_IS("");
        peers[3].peer.state.known = true;
        memcpy(peers[3].peer.state.cluster_id, cluster, 16);
        advance();
        TRACE_IS("id 7\nform [1 <636c7573746572206f66206120746573>, 10 a:1 n0 1, 7 b:1 me 1\n"
                 "vote\npeers\nidentity\n");
    }
}

#define FORGOT                                                                                     \
    "node log 0: coordinator: this coordinator has lost its data and does not vote: leat node "    \
    "replace me\n"

static void who_is_empty_while_another_has_begun_has_forgotten(void **state)
{
    (void)state;
    peers[3].peer.state.role = LEAT_VOTER_LEADER;
    advance();
    TRACE_IS(FORGOT);
    assert_true(coordinator->forgot);
    advance();
    TRACE_IS("");
    /* One that is prepared for another cluster as well. */
    coordinator->forgot = false;
    form_comes(body_of_two());
    trace_begin();
    memcpy(peers[3].peer.state.cluster_id, cluster, 16);
    peers[3].peer.state.cluster_id[15]++;
    advance();
    TRACE_IS(FORGOT);
    /* Empty, it knows of no cluster, whatever a body of before says. */
    coordinator->forgot = false;
    coordinator->forming = LEAT_VOTER_EMPTY;
    peers[3].peer.state.cluster_id[15]--;
    advance();
    TRACE_IS(FORGOT);
}

static void who_is_not_to_vote_forms_nothing(void **state)
{
    (void)state;
    peers[3].peer.state.role = LEAT_VOTER_LEADER;
    coordinator->forming = LEAT_VOTER_LEARNER;
    advance();
    coordinator->forming = LEAT_VOTER_EMPTY;
    coordinator->votes = true;
    advance();
    coordinator->votes = false;
    coordinator->form_calling = true;
    advance();
    coordinator->form_calling = false;
    coordinator->form_body =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, 1); /* none that can be read */
    coordinator->form_bytes = 1;
    advance();
    TRACE_IS("");
    assert_false(coordinator->forgot);
}

/* ---- joining ---- */

static void join_comes_as(uint64_t id, size_t id_bytes, unsigned cut)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_bin(&writer, cluster, id_bytes);
    leat_msg_write_u64(&writer, id);
    const struct leat_frame frame = {.control = body, .control_bytes = writer.used - cut};
    co_join_take(coordinator, &frame, &ticket);
}

static void be_formed(void)
{
    coordinator->machine.formed = true;
    memcpy(coordinator->machine.cluster_id, cluster, 16);
    coordinator->forgot = true;
    snprintf(coordinator->why, sizeof coordinator->why, "why");
    coordinator->feeder = &peers[0].peer;
    assert_int_equal(world.disk.make_dir(world.disk.ctx, "raft"), LEAT_OK);
}

static void joiner_makes_an_empty_log_and_votes(void **state)
{
    (void)state;
    be_formed();
    join_comes_as(7, 16, 0);
    TRACE_IS("id 7\nlog of 0\nvote\nstate told 1\nanswer [0\n");
    disk_trace();
    TRACE_IS("disk: " SAVED("voter", "36") "\n");
    assert_false(coordinator->forgot);
    assert_string_equal(coordinator->why, "");
    assert_null(coordinator->feeder);
    join_comes_as(7, 16, 0); /* it votes already: nothing to do */
    TRACE_IS("answer [0\n");
    assert_string_equal(journal.text, "");
}

static void join_of_another_is_refused(void **state)
{
    (void)state;
    char expected[400];
    be_formed();
    join_comes_as(8, 16, 0);
    join_comes_as(7, 15, 0);
    join_comes_as(7, 16, 1);
    coordinator->failed = LEAT_E_DISK;
    join_comes_as(7, 16, 0);
    coordinator->failed = LEAT_OK;
    snprintf(expected, sizeof expected,
             "refuse INVALID: %s\nrefuse INVALID: %s\nrefuse INVALID: %s\nrefuse INVALID: %s\n",
             leat_err_text(LEAT_E_INVALID), leat_err_text(LEAT_E_INVALID),
             leat_err_text(LEAT_E_INVALID), leat_err_text(LEAT_E_INVALID));
    TRACE_IS(expected);
    coordinator->machine.cluster_id[15]++;
    join_comes_as(7, 16, 0);
    coordinator->machine.cluster_id[15]--;
    coordinator->machine.formed = false;
    join_comes_as(7, 16, 0);
    snprintf(expected, sizeof expected, "refuse STARTING: %s\nrefuse STARTING: %s\n",
             leat_err_text(LEAT_E_STARTING), leat_err_text(LEAT_E_STARTING));
    TRACE_IS(expected);
    assert_string_equal(journal.text, "");
}

static void join_that_fails_changes_nothing_or_stops_it(void **state)
{
    (void)state;
    be_formed();
    char expected[600];
    journal_fail(&journal, 1, LEAT_E_DISK_FULL);
    join_comes_as(7, 16, 0);
    snprintf(expected, sizeof expected, "id 7\nrefuse DISK_FULL: %s\n",
             leat_err_text(LEAT_E_DISK_FULL));
    TRACE_IS(expected);
    assert_int_equal(coordinator->failed, LEAT_OK);
    log_form_rc = LEAT_E_NO_MEMORY;
    join_comes_as(7, 16, 0);
    TRACE_IS("id 7\nlog of 0\nrefuse NO_MEMORY: no log\n");
    log_form_rc = LEAT_OK;
    vote_start_rc = LEAT_E_DAMAGED;
    join_comes_as(7, 16, 0);
    TRACE_IS("id 7\nlog of 0\nvote\nnode log 0: coordinator: " STOPPED
             "raft's first files can't be written\nrequests fail DAMAGED: " STOPPED
             "raft's first files can't be written\nstate told 1\nrefuse DAMAGED: no start\n");
    assert_int_equal(coordinator->failed, LEAT_E_DAMAGED);
    assert_true(coordinator->forgot);
    assert_non_null(coordinator->feeder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FORM_TEST(founder_prepares_everybody_and_begins),
        FORM_TEST(founder_is_who_has_the_lowest_address),
        FORM_TEST(founder_may_stand_anywhere_in_the_list),
        FORM_TEST(founder_waits_for_all_to_be_empty_or_prepared),
        FORM_TEST(attempt_of_which_one_fails_is_made_anew),
        FORM_TEST(answer_at_the_end_means_nothing),
        FORM_TEST(calls_that_fail_at_once),
        FORM_TEST(failed_write_stops_it),
        FORM_TEST(write_without_room_is_tried_again),
        FORM_TEST(beginning_that_fails_stops_it),
        FORM_TEST(voter_is_prepared_and_anew),
        FORM_TEST(form_of_a_later_version_has_room_or_is_refused),
        FORM_TEST(voter_that_has_begun_is_not_prepared),
        FORM_TEST(body_is_looked_at),
        FORM_TEST(address_and_name_have_a_length),
        FORM_TEST(body_has_to_name_this_voter),
        FORM_TEST(prepared_voter_begins_with_who_has_begun),
        FORM_TEST(who_is_empty_while_another_has_begun_has_forgotten),
        FORM_TEST(who_is_not_to_vote_forms_nothing),
        FORM_TEST(joiner_makes_an_empty_log_and_votes),
        FORM_TEST(join_of_another_is_refused),
        FORM_TEST(join_that_fails_changes_nothing_or_stops_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
