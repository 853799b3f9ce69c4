/* SPDX-License-Identifier: Apache-2.0 */
/* Which node is a voter is decided by the disk of each voter: after any deaths, changes and new addresses the voters of
 * a majority hear each other, and a voter hears no node that is no voter. */
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
#include "tests/coordinator/cluster_rig.h"

static struct rig *formed(uint64_t seed, unsigned nodes)
{
    struct rig *rig = rig_create(seed, nodes, 3);
    for (unsigned i = 0; i < nodes; i++)
        rig_boot(rig, i);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    for (unsigned i = 0; i < nodes; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    rig_run(rig, RIG_SECOND);
    return rig;
}

static void made(struct rig *rig, unsigned node, const char *name)
{
    struct rig_request *request = rig_create_stream(rig, node, name);
    leat_err rc = rig_wait(rig, request, 20 * RIG_SECOND);
    if (rc != LEAT_OK) rig_dump(rig);
    assert_int_equal(rc, LEAT_OK);
    rig_forget(request);
}

static void voter_added(struct rig *rig, unsigned asked, unsigned node)
{
    struct rig_request *add = rig_request(rig, asked, LEAT_COORDINATE_ADD_VOTER);
    add->request.target = rig->nodes[node].name;
    assert_int_equal(rig_wait(rig, add, 30 * RIG_SECOND), LEAT_OK);
    rig_forget(add);
}

static void cut(struct rig *rig, unsigned a, unsigned b, uint64_t until_us)
{
    sim_net_cut(rig->world, rig->nodes[a].name, rig->nodes[b].name, until_us);
    sim_net_cut(rig->world, rig->nodes[b].name, rig->nodes[a].name, until_us);
}

/* A voter's disk as a version without names has left it. */
static void forget_names(struct rig *rig, unsigned node)
{
    struct raft_configuration *configuration =
        &rig->nodes[node].coordinator->drive.raft.configuration;
    for (unsigned i = 0; i < configuration->n; i++) {
        char *space = strchr(configuration->servers[i].address, ' ');
        if (space) *space = 0;
    }
}

static unsigned names_known(struct rig *rig, unsigned node)
{
    const struct raft_configuration *configuration =
        &rig->nodes[node].coordinator->drive.raft.configuration;
    unsigned known = 0;
    for (unsigned i = 0; i < configuration->n; i++)
        known += strchr(configuration->servers[i].address, ' ') != NULL;
    return known;
}

/* The room loses its power, and any two of three suffice, also where nobody knows a name. */
static void voters_any_two_elect_after_all_lost_power(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 12; run++) {
        struct rig *rig = formed(100 + run, 4);
        unsigned away = run % 3;
        bool named = run < 6;
        if (run & 1) made(rig, 3, "one"); /* something behind the configuration, or nothing */
        for (unsigned i = 0; i < 4; i++)
            rig_kill(rig, i, SIM_DEATH_POWER);
        for (unsigned i = 0; i < 4; i++) {
            if (i == away) continue;
            rig_boot(rig, i);
            assert_int_equal(names_known(rig, i), i < 3 ? 3 : 0);
            if (!named && i < 3) forget_names(rig, i);
        }
        made(rig, 3, "two");
        rig_boot(rig, away);
        if (!named) forget_names(rig, away);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
        for (unsigned i = 0; i < 3; i++) /* by the tables, too: only who is up is written down */
            assert_int_equal(rig_node_up(rig, i), LEAT_OK);
        rig_run(rig, 2 * RIG_SECOND);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(names_known(rig, i), 3);
        rig_destroy(rig);
    }
}

/* SUBTLE: (1) n2 is away while n3 becomes a voter. (2) The leader has an entry on n3, not on the third voter, and dies.
 * (3) n2 comes back: three of four, a majority. The third knows less than n3, so n3 has to lead, and n2, whose vote
 * that needs, has never heard of it. Those who have say so. */
static void voters_of_a_later_configuration_are_introduced(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 6; run++) {
        struct rig *rig = formed(200 + run, 4);
        unsigned back = run % 3;
        rig_kill(rig, back, run & 1 ? SIM_DEATH_POWER : SIM_DEATH_KILL);
        rig_run(rig, 5 * RIG_SECOND);
        voter_added(rig, 3, 3);
        int led = rig_leader(rig);
        assert_true(led >= 0);
        if (led == 3) { /* the newcomer may lead no more than the others */
            rig_destroy(rig);
            continue;
        }
        unsigned leader = (unsigned)led, third = 3 - back - leader;
        cut(rig, leader, third, rig->world->now_us + 60 * RIG_SECOND);
        struct rig_request *request = rig_create_stream(rig, leader, "ahead");
        rig_ask(request);
        uint64_t last = leat_raft_log_last_index(&rig->nodes[third].coordinator->drive.log);
        for (int i = 0; i < 200; i++) {
            if (leat_raft_log_last_index(&rig->nodes[3].coordinator->drive.log) > last) break;
            rig_run(rig, 1000);
        }
        assert_true(leat_raft_log_last_index(&rig->nodes[3].coordinator->drive.log) > last);
        rig_kill(rig, leader, SIM_DEATH_KILL);
        rig_run(rig, RIG_SECOND);
        rig_boot(rig, back);
        made(rig, 3, "after");
        rig_destroy(rig);
    }
}

static bool believed(struct rig *rig, unsigned by, unsigned who)
{
    struct leat_coordinator *coordinator = rig->nodes[by].coordinator;
    const struct co_peer *peer = co_peer_of_node(coordinator, rig->nodes[who].name);
    return peer && co_peer_votes(coordinator, peer);
}

/* While a voter is down, a node that is no voter has the voter's address: nodes that start then reach that node
 * there. */
static void voters_address_alone_makes_no_voter(void **state)
{
    (void)state;
    struct rig *rig = formed(300, 6);
    rig_kill(rig, 1, SIM_DEATH_KILL);
    rig_kill(rig, 3, SIM_DEATH_KILL);
    snprintf(rig->nodes[3].address, sizeof rig->nodes[3].address, "%s", rig->nodes[1].address);
    rig_boot(rig, 3);
    rig_run(rig, 5 * RIG_SECOND);
    for (unsigned i = 0; i < 6; i++) {
        if (i == 1 || i == 3) continue;
        assert_false(believed(rig, i, 3));
        assert_true(believed(rig, i, i == 0 ? 2 : 0));
        rig_kill(rig, i, SIM_DEATH_POWER);
        rig_boot(rig, i);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
        rig_run(rig, 2 * RIG_SECOND);
        assert_false(believed(rig, i, 3));
        assert_true(believed(rig, i, i == 0 ? 2 : 0));
    }
    rig_kill(rig, 2, SIM_DEATH_KILL); /* who is left follows nobody */
    rig_kill(rig, 0, SIM_DEATH_KILL);
    rig_boot(rig, 0);
    rig_run(rig, 5 * RIG_SECOND);
    assert_false(believed(rig, 0, 3));
    rig_kill(rig, 3, SIM_DEATH_KILL);
    rig_boot(rig, 1);
    rig_boot(rig, 2);
    made(rig, 1, "there");
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(voters_any_two_elect_after_all_lost_power),
        cmocka_unit_test(voters_of_a_later_configuration_are_introduced),
        cmocka_unit_test(voters_address_alone_makes_no_voter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
