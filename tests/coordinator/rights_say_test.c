/* SPDX-License-Identifier: Apache-2.0 */
/* The right that each kind of message and each command needs, the incarnation in whose name it is sent, and the
 * messages of raft's that no honest voter sends: both sides of each bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/membership/voters.h"
#include "coordinator/metadata/assign.h"
#include "tests/coordinator/raft_heap.h"

enum { TERM = 100, LAST = 1000 /* of this voter's log */ };
#define TERM_LEAP  ((uint64_t)1 << 24)
#define INDEX_LEAP ((uint64_t)1 << 40)

static struct leat_coordinator *coordinator;
static struct co_peer peer;
static struct leat_link_identity identity;
static struct leat_clock clock_of_test;
static struct leat_env env;
static uint64_t now_us;
static bool leads, votes;

/* ---- in the place of links, raft and membership/voters.c ---- */

const struct leat_link_identity *leat_link_peer(const struct leat_link *link)
{
    (void)link;
    return &identity;
}
const char *leat_link_address(const struct leat_link *link)
{
    (void)link;
    return "h:1";
}
bool co_peer_votes(const struct leat_coordinator *asked, const struct co_peer *of)
{
    assert_ptr_equal(asked, coordinator);
    assert_ptr_equal(of, &peer);
    return votes;
}
raft_term raft_current_term(const struct raft *r)
{
    assert_ptr_equal(r, &coordinator->drive.raft);
    return TERM;
}
bool leat_raft_drive_leads(const struct leat_raft_drive *drive)
{
    assert_ptr_equal(drive, &coordinator->drive);
    return leads;
}
bool co_learns(const struct leat_coordinator *asked)
{
    (void)asked;
    return false;
}
struct co_peer *co_peer_leader(struct leat_coordinator *asked)
{
    (void)asked;
    return NULL;
}
void raft_leader(struct raft *r, raft_id *id, const char **address)
{
    (void)r;
    *id = 0;
    *address = NULL;
}
static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return now_us;
}

static int begin(void **state)
{
    (void)state;
    coordinator = calloc(1, sizeof *coordinator);
    assert_non_null(coordinator);
    clock_of_test = (struct leat_clock){.now_us = clock_now};
    env = (struct leat_env){.clock = &clock_of_test};
    coordinator->env = &env;
    coordinator->votes = true;
    coordinator->drive.log.start_index = 1;
    coordinator->drive.log.entry_count = LAST;
    leat_machine_init(&coordinator->machine, 1);
    snprintf(identity.node, sizeof identity.node, "n0");
    leads = votes = false;
    now_us = 5000000;
    return 0;
}
static int finish(void **state)
{
    (void)state;
    leat_machine_fini(&coordinator->machine);
    free(coordinator);
    return 0;
}

/* ---- kinds ---- */

static void each_kind_has_its_right(void **state)
{
    (void)state;
    enum co_right kinds[16] = {
        [CO_KIND_STATE - 272] = CO_RIGHT_NODE,    [CO_KIND_RAFT - 272] = CO_RIGHT_VOTER,
        [CO_KIND_INSTALL - 272] = CO_RIGHT_VOTER, [CO_KIND_FORM - 272] = CO_RIGHT_FORMER,
        [CO_KIND_SUBMIT - 272] = CO_RIGHT_NODE,   [CO_KIND_FEED - 272] = CO_RIGHT_NODE,
        [CO_KIND_ENTRIES - 272] = CO_RIGHT_VOTER, [CO_KIND_SNAPSHOT - 272] = CO_RIGHT_VOTER,
        [CO_KIND_JOIN - 272] = CO_RIGHT_LEADER,   [CO_KIND_ADMIN - 272] = CO_RIGHT_NODE,
        [CO_KIND_PING - 272] = CO_RIGHT_NODE,     [CO_KIND_COLLECT - 272] = CO_RIGHT_LEADER,
        [CO_KIND_PULL - 272] = CO_RIGHT_LEADER,   [CO_KIND_LOST - 272] = CO_RIGHT_VOTER,
        [CO_KIND_PONG - 272] = CO_RIGHT_NODE,     [CO_KIND_RECOVERY - 272] = CO_RIGHT_LEADER};
    for (unsigned kind = 0; kind < 400; kind++)
        assert_int_equal(co_kind_right(kind),
                         kind < 272 || kind > 287 ? CO_RIGHT_NOBODY : kinds[kind - 272]);
    enum co_right commands[64] = {
        [LEAT_COMMAND_STREAM_CREATE] = CO_RIGHT_NODE, [LEAT_COMMAND_STREAM_DELETE] = CO_RIGHT_NODE,
        [LEAT_COMMAND_STREAM_CHANGE] = CO_RIGHT_NODE, [LEAT_COMMAND_PRODUCER_IDS] = CO_RIGHT_NODE,
        [LEAT_COMMAND_BARRIER] = CO_RIGHT_NODE,       [LEAT_COMMAND_NODE_DRAIN] = CO_RIGHT_NODE,
        [LEAT_COMMAND_OPENED] = CO_RIGHT_SELF,        [LEAT_COMMAND_NODE_UP] = CO_RIGHT_SELF,
        [LEAT_COMMAND_VERSION_RAISE] = CO_RIGHT_SELF, [LEAT_COMMAND_ASSIGN] = CO_RIGHT_SELF,
        [LEAT_COMMAND_CRASH] = CO_RIGHT_VOTER};
    for (unsigned kind = 0; kind < 64; kind++)
        assert_int_equal(co_command_right(kind), commands[kind]);
}

/* ---- commands ---- */

static struct leat_msg_writer command, record;
static uint8_t command_bytes[512], record_bytes[1024];

static void command_begin(unsigned kind, uint32_t fields)
{
    leat_msg_writer_init(&command, command_bytes, sizeof command_bytes);
    leat_msg_write_array(&command, 2 + fields);
    leat_msg_write_u64(&command, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&command, kind);
}

static leat_err asked(void)
{
    leat_msg_writer_init(&record, record_bytes, sizeof record_bytes);
    leat_msg_write_array(&record, 5);
    leat_msg_write_u64(&record, LEAT_COMMAND_VERSION);
    leat_msg_write_u64(&record, LEAT_COMMAND_REQUEST);
    leat_msg_write_u64(&record, 3);
    leat_msg_write_u64(&record, 4);
    leat_msg_write_bin(&record, command_bytes, command.used);
    return co_peer_may_ask(coordinator, &peer, record_bytes, record.used);
}

/* Incarnation 1 is n0's (who asks), 2 is n1's; 3 is over; 5 is the next. */
static void nodes_make(void)
{
    struct leat_machine *machine = &coordinator->machine;
    machine->node_count = 2;
    machine->next_incarnation = 5;
    for (uint32_t i = 0; i < 2; i++) {
        snprintf(machine->nodes[i].info.name, 8, "n%u", i);
        machine->nodes[i].info.incarnation = 1 + i;
    }
}

static void nobody_speaks_for_another_incarnation(void **state)
{
    (void)state;
    static const struct {
        unsigned kind;
        uint32_t before, fields,
            list; /* fields in front of the incarnation; in all; which is an array */
    } kinds[] = {{LEAT_COMMAND_OPENED, 2, 5, 1},
                 {LEAT_COMMAND_VERSION_RAISE, 0, 4, 3},
                 {LEAT_COMMAND_ASSIGN, 1, 5, 4}};
    static const struct {
        uint64_t incarnation;
        leat_err rc;
    } cases[] = {{0, LEAT_E_INVALID}, {1, LEAT_OK},      {2, LEAT_E_DENIED}, {3, LEAT_OK},
                 {4, LEAT_OK},        {5, LEAT_E_AGAIN}, {6, LEAT_E_AGAIN}};
    nodes_make();
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            command_begin(kinds[k].kind, kinds[k].fields);
            for (uint32_t i = 0; i < kinds[k].fields; i++)
                if (i == kinds[k].list)
                    leat_msg_write_array(&command, 0);
                else if (kinds[k].kind == LEAT_COMMAND_OPENED && i == 4)
                    leat_msg_write_bool(&command, true);
                else
                    leat_msg_write_u64(&command, i == kinds[k].before ? cases[c].incarnation
                                                                      : LEAT_ASSIGN_MOVE);
            if (asked() != cases[c].rc)
                fail_msg("kind %u, incarnation %u", kinds[k].kind, (unsigned)cases[c].incarnation);
        }
        command_begin(kinds[k].kind, kinds[k].before); /* none is said */
        for (uint32_t i = 0; i < kinds[k].before; i++)
            leat_msg_write_u64(&command, 1);
        assert_int_equal(asked(), LEAT_E_INVALID);
    }
}

static void commands_need_what_their_right_says(void **state)
{
    (void)state;
    for (unsigned vote = 0; vote < 2; vote++) {
        votes = vote;
        command_begin(LEAT_COMMAND_CRASH, 0);
        assert_int_equal(asked(), vote ? LEAT_OK : LEAT_E_DENIED);
        command_begin(LEAT_COMMAND_ASSIGN, 5);
        for (unsigned i = 0; i < 5; i++) /* a recovery, whatever it says behind that */
            leat_msg_write_u64(&command, i == 0 ? LEAT_ASSIGN_RECOVERY : 1);
        assert_int_equal(asked(), vote ? LEAT_OK : LEAT_E_DENIED);
        command_begin(LEAT_COMMAND_STREAM_CREATE, 0);
        assert_int_equal(asked(), LEAT_OK);
        command_begin(LEAT_COMMAND_FORM, 0);
        assert_int_equal(asked(), LEAT_E_DENIED);
        command_begin(63, 0);
        assert_int_equal(asked(), LEAT_E_DENIED);
    }
    command_begin(LEAT_COMMAND_BARRIER, 0);
    assert_int_equal(asked(), LEAT_OK);
    for (size_t cut = 0; cut < record.used; cut++)
        assert_int_equal(co_peer_may_ask(coordinator, &peer, record_bytes, cut), LEAT_E_INVALID);
    command.used--;
    assert_int_equal(asked(), LEAT_E_INVALID);
}

/* NODE_UP is accepted only under the node's own name, with all its fields, and with text in its text fields. */
static void node_comes_up_under_its_own_name(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 7; c++) {
        const uint32_t fields = c == 1 ? 11 : c == 2 ? 13 : 12;
        command_begin(LEAT_COMMAND_NODE_UP, fields);
        leat_msg_write_string(&command, c == 3 ? "n1" : "n0", 2);
        leat_msg_write_string(&command, "h", 1);
        leat_msg_write_u64(&command, 4);
        leat_msg_write_string(&command, "h:1", 3);
        leat_msg_write_string(&command, c == 4 ? "\x1b" : "r", 1);
        leat_msg_write_bin(&command, "0123456789abcdef", 16);
        leat_msg_write_u64(&command, 1);
        leat_msg_write_string(&command, c == 5 ? "\x1b" : "k", 1);
        leat_msg_write_u64(&command, 2);
        leat_msg_write_u64(&command, 3);
        leat_msg_write_string(&command, c == 6 ? "\x1b" : "m", 1);
        for (uint32_t i = 11; i < fields; i++)
            leat_msg_write_u64(&command, 7);
        leat_err rc = c == 0 || c == 2 ? LEAT_OK : c == 3 ? LEAT_E_DENIED : LEAT_E_INVALID;
        if (asked() != rc) fail_msg("case %u", c);
    }
    command_begin(LEAT_COMMAND_NODE_UP, 0);
    assert_int_equal(asked(), LEAT_E_INVALID);
}

/* ---- raft's messages ---- */

static bool offends(const struct raft_message *message)
{
    return co_message_offence(coordinator, message) != NULL;
}

/* Terms and indices that elections and logs can't have brought; whether this node leads in the same term. */
static void message_of_impossible_numbers_is_refused(void **state)
{
    (void)state;
    const uint64_t terms[] = {TERM, TERM + TERM_LEAP, TERM + TERM_LEAP + 1, TERM - 1};
    const uint64_t indices[] = {LAST, LAST + INDEX_LEAP, LAST + INDEX_LEAP + 1, 0};
    for (unsigned lead = 0; lead < 2; lead++)
        for (unsigned t = 0; t < 4; t++)
            for (unsigned i = 0; i < 4; i++)
                for (unsigned later = 0; later < 2; later++) {
                    const uint64_t term = terms[t], index = indices[i],
                                   index_term = later ? term + 1 : term;
                    const bool same = lead && term == TERM, wrong = t == 2 || i == 2;
                    leads = lead;
                    struct raft_message m = {.type = RAFT_APPEND_ENTRIES, .server_id = 3};
                    m.append_entries = (struct raft_append_entries){
                        .term = term, .prev_log_index = index, .prev_log_term = index_term};
                    assert_int_equal(offends(&m), wrong || later || same);
                    m = (struct raft_message){.type = RAFT_REQUEST_VOTE, .server_id = 3};
                    m.request_vote = (struct raft_request_vote){.term = term,
                                                                .candidate_id = 3,
                                                                .last_log_index = index,
                                                                .last_log_term = index_term};
                    assert_int_equal(offends(&m), wrong || later);
                    m = (struct raft_message){.type = RAFT_INSTALL_SNAPSHOT, .server_id = 3};
                    m.install_snapshot = (struct raft_install_snapshot){
                        .term = term, .last_index = index, .last_term = index_term};
                    assert_int_equal(offends(&m), wrong || later || same);
                    m = (struct raft_message){.type = RAFT_TIMEOUT_NOW, .server_id = 3};
                    m.timeout_now = (struct raft_timeout_now){
                        .term = term, .last_log_index = index, .last_log_term = index_term};
                    assert_int_equal(offends(&m), wrong || later || same);
                    m = (struct raft_message){.type = RAFT_APPEND_ENTRIES_RESULT, .server_id = 3};
                    m.append_entries_result =
                        (struct raft_append_entries_result){.term = term,
                                                            .rejected = later ? index : 0,
                                                            .last_log_index = later ? 0 : index};
                    assert_int_equal(
                        offends(&m),
                        t == 2 ||
                            (same && i == 2)); /* only the leader of that term looks at them */
                    m = (struct raft_message){.type = RAFT_REQUEST_VOTE_RESULT, .server_id = 3};
                    m.request_vote_result.term = term;
                    assert_int_equal(offends(&m), t == 2);
                }
    struct raft_message m = {.type = (enum raft_message_type)99};
    assert_true(offends(&m));
}

static void message_that_contradicts_itself_is_refused(void **state)
{
    (void)state;
    struct raft_message m = {.type = RAFT_REQUEST_VOTE, .server_id = 3};
    m.request_vote = (struct raft_request_vote){.term = TERM, .candidate_id = 4};
    assert_true(offends(&m)); /* for another */
    m = (struct raft_message){.type = RAFT_INSTALL_SNAPSHOT, .server_id = 3};
    for (unsigned i = 0; i < 3; i++) {
        m.install_snapshot = (struct raft_install_snapshot){
            .term = TERM, .last_index = 5, .last_term = 5, .conf_index = 4 + i};
        assert_int_equal(offends(&m), i == 2);
    }
    m = (struct raft_message){.type = RAFT_APPEND_ENTRIES, .server_id = 3};
    for (unsigned i = 0; i < 2; i++) {
        m.append_entries =
            (struct raft_append_entries){.term = TERM, .leader_commit = LAST + INDEX_LEAP + i};
        assert_int_equal(offends(&m), i == 1);
    }
}

/* Terms only grow, up to the leader's own; a configuration decodes. */
static void entries_of_impossible_terms_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t before, terms[2];
        bool right;
    } cases[] = {{5, {5, 5}, true},         {5, {5, TERM}, true},
                 {5, {6, 5}, false},        {5, {4, 5}, false},
                 {5, {5, TERM + 1}, false}, {5, {TERM + 1, TERM + 1}, false},
                 {TERM, {TERM, TERM}, true}};
    static uint8_t conf[] = {1, 1, 0, 0, 0, 0,   0, 0, 0, 1, 0, 0,
                             0, 0, 0, 0, 0, '1', 0, 1, 0, 0, 0, 0},
                   none[] = {2, 0, 0, 0, 0, 0, 0, 0};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned kind = 0; kind < 3; kind++) {
            struct raft_entry entries[2] = {0};
            for (unsigned i = 0; i < 2; i++) {
                entries[i].term = cases[c].terms[i];
                entries[i].type = kind ? RAFT_CHANGE : RAFT_COMMAND;
                entries[i].buf.base = kind == 2 && i == 1 ? none : conf;
                entries[i].buf.len = kind == 2 && i == 1 ? sizeof none : sizeof conf;
            }
            struct raft_message m = {.type = RAFT_APPEND_ENTRIES, .server_id = 3};
            m.append_entries = (struct raft_append_entries){.term = TERM,
                                                            .prev_log_index = 9,
                                                            .prev_log_term = cases[c].before,
                                                            .entries = entries,
                                                            .n_entries = 2};
            assert_int_equal(offends(&m), !cases[c].right || kind == 2);
        }
}

/* Goal: a single entry is looked at like several, a configuration that ends amid its servers does not pass, and
 * nothing of a configuration stays in memory. */
static void single_entry_is_looked_at(void **state)
{
    (void)state;
    static uint8_t conf[] = {1, 1, 0, 0, 0, 0,   0, 0, 0, 1, 0, 0,
                             0, 0, 0, 0, 0, '1', 0, 1, 0, 0, 0, 0},
                   none[] = {2, 0, 0, 0, 0, 0, 0, 0};
    heap_begin();
    for (unsigned c = 0; c < 5; c++) {
        struct raft_entry entry = {.term = c == 1 ? TERM + 1 : TERM, .type = RAFT_CHANGE};
        entry.buf.base = c == 2 ? none : conf;
        entry.buf.len = c == 2 ? sizeof none : c == 4 ? 1 : sizeof conf; /* conf has all of it */
        struct raft_message m = {.type = RAFT_APPEND_ENTRIES, .server_id = 3};
        m.append_entries = (struct raft_append_entries){.term = TERM,
                                                        .prev_log_index = 9,
                                                        .prev_log_term = 5,
                                                        .entries = &entry,
                                                        .n_entries = c != 3};
        assert_int_equal(offends(&m), c == 1 || c == 2 || c == 4);
        assert_int_equal(blocks, 0);
    }
    raft_heap_set_default();
}

/* Goal: whoever is refused is told why, whatever the kind. */
static void refusal_of_a_kind_says_why(void **state)
{
    (void)state;
    for (unsigned kind = 260; kind < 300; kind++) {
        const char *why = NULL;
        coordinator->machine.formed = true;
        if (co_peer_may(coordinator, &peer, kind, &why)) continue;
        assert_non_null(why);
        assert_int_equal(strstr(why, "leader") != NULL, co_kind_right(kind) == CO_RIGHT_LEADER);
        assert_int_equal(strstr(why, "a voter") != NULL, co_kind_right(kind) == CO_RIGHT_VOTER);
        assert_int_equal(strstr(why, "cluster already") != NULL,
                         co_kind_right(kind) == CO_RIGHT_FORMER);
        assert_int_equal(strstr(why, "no request of that kind") != NULL,
                         co_kind_right(kind) == CO_RIGHT_NOBODY ||
                             co_kind_right(kind) == CO_RIGHT_SELF);
    }
}

/* All are counted; the node log has one line in a second. */
static void complaints_are_counted(void **state)
{
    (void)state;
    const struct {
        uint64_t after_us;
        bool told;
    } cases[] = {{0, true}, {1, false}, {999998, false}, {1, true}, {999999, false}, {1, true}};
    uint64_t told_us = 0;
    for (unsigned i = 0; i < 6; i++) {
        now_us += cases[i].after_us;
        if (cases[i].told) told_us = now_us;
        co_complain(coordinator, &peer, "too much");
        assert_int_equal(coordinator->complaints, i + 1);
        assert_int_equal(coordinator->complained_us, told_us);
    }
}

#define SAY_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAY_TEST(each_kind_has_its_right),
        SAY_TEST(nobody_speaks_for_another_incarnation),
        SAY_TEST(commands_need_what_their_right_says),
        SAY_TEST(node_comes_up_under_its_own_name),
        SAY_TEST(message_of_impossible_numbers_is_refused),
        SAY_TEST(message_that_contradicts_itself_is_refused),
        SAY_TEST(entries_of_impossible_terms_are_refused),
        SAY_TEST(single_entry_is_looked_at),
        SAY_TEST(refusal_of_a_kind_says_why),
        SAY_TEST(complaints_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
