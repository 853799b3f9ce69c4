/* SPDX-License-Identifier: Apache-2.0 */
/* A node that lies and is no voter, in the simulated world: the node claims names, addresses and rights of other
 * nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "coordinator/membership/messages.h"
#include "coordinator/membership/peers.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/metadata/assign.h"
#include "tests/coordinator/cluster_rig.h"
#include "tests/coordinator/entries.h"
#include "tests/coordinator/hostile_rig.h"

static struct leat_msg_writer command_begin(uint8_t bytes[LIAR_BYTES], enum leat_command_kind kind,
                                            uint32_t fields)
{
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, bytes, LIAR_BYTES);
    leat_msg_write_array(&w, 2 + fields);
    NUMBERS(&w, LEAT_COMMAND_VERSION, (uint64_t)kind);
    return w;
}

/* A cluster that is formed twice would stop all voters, and again at each start. */
static void hostile_form_is_refused(void **state)
{
    (void)state;
    struct rig *rig = served(71);
    uint8_t bytes[LIAR_BYTES];
    for (unsigned to = 0; to < 4; to++) { /* the last of them does not vote */
        struct liar *liar = liar_create(rig, to);
        struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_FORM, 1);
        leat_msg_write_bin(&w, "0123456789abcdef", 16);
        assert_int_not_equal(submit(liar, &w), LEAT_OK);
        w = body_begin(liar, 2);
        leat_msg_write_bin(&w, "0123456789abcdef", 16);
        leat_msg_write_array(&w, 1);
        leat_msg_write_array(&w, 2);
        leat_msg_write_u64(&w, rig->nodes[to].coordinator->voter_id);
        leat_msg_write_string(&w, rig->nodes[to].address, strlen(rig->nodes[to].address));
        assert_int_equal(say(liar, CO_KIND_FORM, true, &w), LEAT_E_DENIED);
        liar_destroy(liar);
    }
    goes_on(rig, "formed");
    rig_destroy(rig);
}

/* A command in a node's name is accepted only on that node's link. */
static void hostile_commands_in_other_names_are_denied(void **state)
{
    (void)state;
    struct rig *rig = served(72);
    unsigned leader = (unsigned)rig_leader(rig);
    struct liar *liar = liar_create(rig, leader);
    uint8_t bytes[LIAR_BYTES];
    uint64_t victim = rig->nodes[3].incarnation;
    struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_CRASH, 2);
    leat_msg_write_string(&w, "n3", 2);
    leat_msg_write_u64(&w, victim);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_NODE_STATE, 3);
    leat_msg_write_string(&w, "n3", 2);
    NUMBERS(&w, victim, LEAT_NODE_DOWN);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(&w, "n3", 2);
    leat_msg_write_string(&w, "liar:7700", 9);
    leat_msg_write_u64(&w, 1);
    node_up_end(&w);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_OPENED, 5);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_array(&w, 0);
    opened_end(&w, victim, 9);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_VERSION_RAISE, 4);
    NUMBERS(&w, victim, 1, 9);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_RECOVER, 2);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_MOVE, 4);
    NUMBERS(&w, victim, 1);
    leat_msg_write_string(&w, "liar", 4);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    w = command_begin(bytes, LEAT_COMMAND_ADOPT, 8);
    NUMBERS(&w, 7, 0);
    leat_msg_write_bool(&w, true);
    NUMBERS(&w, victim, 0);
    leat_msg_write_bin(&w, "", 0);
    adopt_end(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    for (unsigned reason = LEAT_ASSIGN_START; reason <= LEAT_ASSIGN_LOSS; reason++) {
        w = command_begin(bytes, LEAT_COMMAND_ASSIGN, 5);
        NUMBERS(&w, reason, victim, 7, 0);
        leat_msg_write_array(&w, 0);
        assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    }
    w = command_begin(bytes, LEAT_COMMAND_ACCEPT_LOSS, 7);
    NUMBERS(&w, 1, 0, 0, 0, 0, victim, 1);
    assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
    /* Of an incarnation that there is not yet nobody knows whose it will be. */
    w = command_begin(bytes, LEAT_COMMAND_VERSION_RAISE, 4);
    NUMBERS(&w, victim + 100, 1, 9);
    leat_msg_write_array(&w, 0);
    assert_int_equal(submit(liar, &w), LEAT_E_AGAIN);
    assert_int_equal(rig->nodes[3].incarnation, victim);
    goes_on(rig, "named");
    liar_destroy(liar);
    rig_destroy(rig);
}

/* Properties that a node reports of itself besides its names and addresses. */
struct traits {
    const char *rack, *kafka_address, *host;
};

static leat_err up_submit_as(struct liar *liar, const char *address, const struct traits *traits)
{
    uint8_t bytes[LIAR_BYTES];
    static const uint8_t id[16] = {0xbd};
    struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_NODE_UP, 12);
    leat_msg_write_string(&w, "liar", 4);
    leat_msg_write_string(&w, "liar:7700", 9);
    leat_msg_write_u64(&w, 1);
    leat_msg_write_string(&w, address, strlen(address));
    leat_msg_write_string(&w, traits->rack, strlen(traits->rack));
    leat_msg_write_bin(&w, id, sizeof id);
    leat_msg_write_u64(&w, 0);
    leat_msg_write_string(&w, traits->kafka_address, strlen(traits->kafka_address));
    NUMBERS(&w, 0, 0);
    leat_msg_write_string(&w, traits->host, strlen(traits->host));
    leat_msg_write_u64(&w, 0);
    leat_err rc = submit(liar, &w);
    rig_run(liar->rig, RIG_SECOND);
    return rc;
}

static leat_err up_submit(struct liar *liar, const char *address)
{
    static const struct traits none = {"", "", ""};
    return up_submit_as(liar, address, &none);
}

static struct leat_machine_node *liar_node(struct rig *rig, unsigned at)
{
    return leat_machine_node_find(&rig->nodes[at].coordinator->machine, "liar", 4);
}

/* A node that came up at another node's address would get that node's messages and keep that node out. The address of a
 * voter is refused also while the voter is down. */
static void hostile_node_takes_nobodys_address(void **state)
{
    (void)state;
    struct rig *rig = served(76);
    unsigned leader = (unsigned)rig_leader(rig), voter = (leader + 1) % 3;
    struct liar *liar = liar_create(rig, leader);
    assert_int_equal(up_submit(liar, rig->nodes[3].address),
                     LEAT_OK); /* proposed: refused in the tables */
    assert_int_equal(up_submit(liar, rig->nodes[voter].address), LEAT_OK);
    assert_int_equal(up_submit(liar, "liar:1 n1"), LEAT_OK);
    assert_null(liar_node(rig, 3));
    rig_kill(rig, voter, SIM_DEATH_KILL);
    rig_kill(rig, 3, SIM_DEATH_KILL);
    rig_run(rig, 10 * RIG_SECOND); /* both are declared crashed */
    assert_int_equal(up_submit(liar, rig->nodes[voter].address), LEAT_OK);
    assert_null(liar_node(rig, leader));
    assert_int_equal(up_submit(liar, rig->nodes[3].address),
                     LEAT_OK); /* lent to another machine since */
    assert_non_null(liar_node(rig, leader));
    rig_boot(rig, voter);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    assert_int_equal(rig_node_up(rig, voter), LEAT_OK);
    liar_destroy(liar);
    rig_destroy(rig);
}

/* All nodes show what a node reports of itself, so control characters in it are refused. */
static void hostile_node_is_shown_as_text(void **state)
{
    (void)state;
    static const struct traits wrong[] = {{"r\33[31m", "", ""}, {"", "k\n:1", ""}, {"", "", "h\r"}};
    static const struct traits right = {"r", "k:1", "h\xc3\xa4"};
    struct rig *rig = served(79);
    unsigned leader = (unsigned)rig_leader(rig);
    struct liar *liar = liar_create(rig, leader);
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(up_submit_as(liar, "liar:1", &wrong[i]), LEAT_E_INVALID);
    assert_null(liar_node(rig, leader));
    assert_int_equal(up_submit_as(liar, "liar:1", &right), LEAT_OK);
    assert_non_null(liar_node(rig, leader));
    liar_destroy(liar);
    rig_destroy(rig);
}

/* Also where the tables have the node's address for a voter's, from before such an address was refused: only the node
 * with the voter's name is the voter. */
static void hostile_node_with_a_voters_address_does_not_vote(void **state)
{
    (void)state;
    struct rig *rig = served(77);
    unsigned leader = (unsigned)rig_leader(rig), voter = (leader + 1) % 3;
    uint64_t voter_id = rig->nodes[voter].coordinator->voter_id;
    struct liar *liar = liar_create(rig, leader);
    assert_int_equal(up_submit(liar, "liar:7701"), LEAT_OK);
    for (unsigned i = 0; i < 4; i++) {
        struct leat_machine_node *node = liar_node(rig, i);
        assert_non_null(node);
        snprintf(node->info.node_address, sizeof node->info.node_address, "%s",
                 rig->nodes[voter].address);
    }
    for (unsigned killed = 0; killed < 2; killed++) { /* the voter is there; it is not */
        uint8_t bytes[LIAR_BYTES];
        claim_voter(liar, "liar", voter_id, 1000);
        struct leat_msg_writer w = command_begin(bytes, LEAT_COMMAND_CRASH, 2);
        leat_msg_write_string(&w, "n3", 2);
        leat_msg_write_u64(&w, rig->nodes[3].incarnation);
        assert_int_equal(submit(liar, &w), LEAT_E_DENIED);
        w = body_begin(liar, 1);
        leat_msg_write_u64(&w, 0);
        assert_int_equal(say(liar, CO_KIND_INSTALL, true, &w), LEAT_E_DENIED);
        if (!killed) rig_kill(rig, voter, SIM_DEATH_KILL);
        rig_run(rig, 5 * RIG_SECOND);
    }
    rig_boot(rig, voter);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    assert_int_equal(rig_node_up(rig, voter), LEAT_OK);
    liar_destroy(liar);
    goes_on(rig, "voters");
    rig_destroy(rig);
}

/* A voter that has just started, or has lost its majority, follows only a leader that is a voter. */
static void hostile_node_does_not_lead_who_follows_nobody(void **state)
{
    (void)state;
    struct rig *rig = served(78);
    rig_kill(rig, 1, SIM_DEATH_KILL);
    rig_kill(rig, 2, SIM_DEATH_KILL);
    rig_run(rig, 5 * RIG_SECOND);
    const struct leat_coordinator *left = rig->nodes[0].coordinator;
    struct liar *liar = liar_create(rig, 0);
    uint64_t own = left->voter_id, others[] = {1, 4711};
    raft_id leader = 0;
    const char *address = NULL;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t term = raft_current_term(&left->drive.raft) + 100;
        claim_voter(liar, "liar", others[i], term);
        struct leat_msg_writer w = body_begin(liar, 10);
        NUMBERS(&w, 1, RAFT_APPEND_ENTRIES, others[i], own, 0, term, 0, 0, 0, 0);
        (void)say(liar, CO_KIND_RAFT, false, &w);
        rig_run(rig, RIG_SECOND / 10);
        raft_leader((struct raft *)(uintptr_t)&left->drive.raft, &leader, &address);
        assert_int_equal(leader, 0);
        assert_true(raft_current_term(&left->drive.raft) < term);
    }
    liar_destroy(liar);
    rig_boot(rig, 1);
    rig_boot(rig, 2);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_form_is_refused),
        cmocka_unit_test(hostile_commands_in_other_names_are_denied),
        cmocka_unit_test(hostile_node_takes_nobodys_address),
        cmocka_unit_test(hostile_node_is_shown_as_text),
        cmocka_unit_test(hostile_node_with_a_voters_address_does_not_vote),
        cmocka_unit_test(hostile_node_does_not_lead_who_follows_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
