/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinators of several nodes in the simulated world: forming, elections, learners, voters that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "coordinator/membership/state.h"
#include "tests/coordinator/cluster_rig.h"

static struct rig *formed(uint64_t seed, unsigned nodes, uint32_t voters)
{
    struct rig *rig = rig_create(seed, nodes, voters);
    for (unsigned i = 0; i < nodes; i++)
        rig_boot(rig, i);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    return rig;
}

/* In any order of starting, with any gap, the voters form one cluster; learners have its tables. */
static void cluster_forms_in_any_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct rig *rig = rig_create(seed, 5, 3);
        for (unsigned i = 0; i < 5; i++) {
            rig_boot(rig, (unsigned)(i + seed) % 5);
            rig_run(rig, sim_rng_below(&rig->world->work, 3 * RIG_SECOND));
        }
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(rig_node_up(rig, i), LEAT_OK);
        assert_int_equal(rig_create_one(rig, (unsigned)(seed % 5), "orders"), LEAT_OK);
        assert_int_equal(rig_create_one(rig, (unsigned)(seed % 5), "orders"), LEAT_E_STREAM_EXISTS);
        assert_true(rig_until(rig, 5 * RIG_SECOND, rig_all_equal));
        for (unsigned i = 0; i < 5; i++) {
            static struct leat_coordinator_status status;
            rig_status(rig, i, &status);
            assert_int_equal(status.node_count, 5);
            assert_int_equal(status.stream_count, 1);
            assert_int_equal(status.voter_count, 3);
            assert_int_equal(status.nodes[0].state, LEAT_NODE_UP);
            assert_string_not_equal(status.leader_address, "");
            assert_int_equal(rig->nodes[i].streams_told > 0, 1);
            if (i >= 3) assert_int_equal(status.role, LEAT_VOTER_LEARNER);
        }
        rig_destroy(rig);
    }
}

/* A voter that dies while the cluster is being formed, at any step, is waited for: no voter begins without it, and when
 * the voter is back one cluster comes out. */
static void cluster_forming_survives_deaths(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rig *rig = rig_create(1000 + seed, 3, 3);
        for (unsigned i = 0; i < 3; i++)
            rig_boot(rig, i);
        for (unsigned round = 0; round < 3; round++) {
            rig_run(rig, sim_rng_below(&rig->world->fault, 300000));
            unsigned victim = (unsigned)sim_rng_below(&rig->world->fault, 3);
            if (!rig->nodes[victim].up) continue;
            rig_kill(rig, victim,
                     sim_rng_chance(&rig->world->fault, 500) ? SIM_DEATH_KILL : SIM_DEATH_POWER);
            rig_run(rig, sim_rng_below(&rig->world->fault, 300000));
            rig_boot(rig, victim);
            assert_true(rig->nodes[victim].up);
        }
        assert_true(rig_until(rig, 30 * RIG_SECOND, rig_all_ready));
        assert_int_equal(rig_create_one(rig, 0, "orders"), LEAT_OK);
        assert_true(rig_until(rig, 5 * RIG_SECOND, rig_all_equal));
        rig_destroy(rig);
    }
}

/* Death of the leader, of a follower, or a leader that is cut off: a stream is created within two
 * seconds on every node that is left, once. */
static void cluster_loss_of_a_voter_delays_create_below_two_seconds(void **state)
{
    (void)state;
    uint64_t longest_us = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct rig *rig = formed(2000 + seed, 4, 3);
        int leader = rig_leader(rig);
        assert_true(leader >= 0);
        unsigned victim = seed % 4 == 0 ? ((unsigned)leader + 1) % 3 : (unsigned)leader;
        struct rig_request *before = rig_create_stream(rig, 3, "before");
        rig_ask(before);
        rig_run(rig, sim_rng_below(&rig->world->fault, 3000));
        if (seed % 4 == 1)
            rig->nodes[victim].process->cut_off_until_us = rig->world->now_us + 60 * RIG_SECOND;
        else
            rig_kill(rig, victim, seed % 4 == 2 ? SIM_DEATH_POWER : SIM_DEATH_KILL);
        struct rig_request *asked[4] = {NULL};
        for (unsigned i = 0; i < 4; i++) {
            char name[16];
            if (i == victim) continue;
            snprintf(name, sizeof name, "after%u", i);
            asked[i] = rig_create_stream(rig, i, name);
            rig_ask(asked[i]);
        }
        rig_run(rig, 4 * RIG_SECOND);
        for (unsigned i = 0; i < 4; i++) {
            if (!asked[i]) continue;
            assert_true(asked[i]->done);
            assert_int_equal(asked[i]->request.rc, LEAT_OK);
            uint64_t took_us = asked[i]->done_us - asked[i]->asked_us;
            if (took_us > longest_us) longest_us = took_us;
            assert_in_range(took_us, 0, 2 * RIG_SECOND);
            rig_forget(asked[i]);
        }
        assert_true(before->done);
        assert_int_equal(before->request.rc, LEAT_OK);
        rig_forget(before);
        rig_destroy(rig);
    }
    print_message("longest create: %llu ms\n", (unsigned long long)longest_us / 1000);
}

/* A hundred requests at once, with long names. */
static void many(struct rig *rig, unsigned asker, enum leat_coordinate_kind kind)
{
    struct rig_request *requests[100];
    for (unsigned k = 0; k < 100; k++) {
        requests[k] = rig_request(rig, asker, kind);
        snprintf(requests[k]->request.name, sizeof requests[k]->request.name, "%0200u", k);
        rig_ask(requests[k]);
    }
    rig_run(rig, 2 * RIG_SECOND);
    for (unsigned k = 0; k < 100; k++) {
        assert_true(requests[k]->done);
        assert_int_equal(requests[k]->request.rc, LEAT_OK);
        rig_forget(requests[k]);
    }
}

/* A voter and a learner that lag far behind get a snapshot, and go on from there; so does a restart. */
static void cluster_laggards_get_a_snapshot(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct rig *rig = rig_create(3000 + seed, 5, 3);
        rig->snapshot_bytes_min = 4096;
        for (unsigned i = 0; i < 5; i++)
            rig_boot(rig, i);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
        unsigned follower = ((unsigned)rig_leader(rig) + 1) % 3;
        rig_kill(rig, follower, SIM_DEATH_POWER);
        rig_kill(rig, 4, SIM_DEATH_KILL);
        unsigned asker = ((unsigned)rig_leader(rig)) % 3;
        for (unsigned i = 0; i < 60; i++) {
            many(rig, asker, LEAT_COORDINATE_STREAM_CREATE);
            if (i < 59) many(rig, asker, LEAT_COORDINATE_STREAM_DELETE);
        }
        struct leat_coordinator *leader = rig->nodes[rig_leader(rig)].coordinator;
        assert_true(leader->drive.log.start_index > 100); /* what the laggards lack is gone */
        rig_boot(rig, follower);
        rig_boot(rig, 4);
        assert_true(rig_until(rig, 30 * RIG_SECOND, rig_is_settled));
        assert_true(rig->nodes[4].streams_told >= 100);
        assert_true(rig->nodes[4].streams_told < 1000); /* not one by one from the beginning */
        assert_int_equal(rig_create_one(rig, 4, "again"), LEAT_OK);
        rig_destroy(rig);
    }
}

/* A voter that lost its disk takes no part, says so, and costs no safety; replaced, it votes again
 * under another id. */
static void cluster_amnesiac_voter_stays_out_until_replaced(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct rig *rig = formed(4000 + seed, 4, 3);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(rig_node_up(rig, i), LEAT_OK);
        assert_int_equal(rig_create_one(rig, 0, "one"), LEAT_OK);
        unsigned victim = (unsigned)(seed % 3), other = (victim + 1) % 3;
        rig_kill(rig, victim, SIM_DEATH_KILL);
        rig_wipe(rig, victim);
        rig->nodes[victim].node_id = 77;
        rig_run(rig, 5 * RIG_SECOND); /* it is declared down: another disk may use its name */
        rig_boot(rig, victim);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready)); /* as a learner */
        static struct leat_coordinator_status status;
        rig_status(rig, victim, &status);
        assert_int_equal(status.role, LEAT_VOTER_EMPTY);
        assert_non_null(strstr(status.why, "node replace"));
        assert_int_equal(rig_node_up(rig, victim), LEAT_OK);
        /* Two of three are needed, and it does not count: alone, the third commits nothing. */
        rig_kill(rig, other, SIM_DEATH_KILL);
        struct rig_request *stuck = rig_create_stream(rig, 3, "stuck");
        assert_int_equal(rig_wait(rig, stuck, 5 * RIG_SECOND), LEAT_E_AGAIN);
        rig_boot(rig, other);
        rig_run(rig, 5 * RIG_SECOND);
        assert_true(stuck->done);
        assert_int_equal(stuck->request.rc, LEAT_OK);
        rig_forget(stuck);

        /* Not by mistake another node, which never voted. */
        struct rig_request *replace = rig_request(rig, 3, LEAT_COORDINATE_NODE_REPLACE);
        replace->request.target = rig->nodes[3].name;
        assert_int_equal(rig_wait(rig, replace, 30 * RIG_SECOND), LEAT_E_NOT_FOUND);
        rig_forget(replace);
        replace = rig_request(rig, 3, LEAT_COORDINATE_NODE_REPLACE);
        replace->request.target = rig->nodes[victim].name;
        assert_int_equal(rig_wait(rig, replace, 30 * RIG_SECOND), LEAT_OK);
        rig_forget(replace);
        rig_run(rig, 2 * RIG_SECOND);
        for (unsigned i = 0; i < 3; i++) { /* the leader among them: nobody lacks a vote any more */
            replace = rig_request(rig, 3, LEAT_COORDINATE_NODE_REPLACE);
            replace->request.target = rig->nodes[i].name;
            assert_int_equal(rig_wait(rig, replace, 30 * RIG_SECOND), LEAT_E_EXISTS);
            assert_non_null(strstr(replace->request.error.text, "nothing to replace"));
            rig_forget(replace);
        }
        rig_status(rig, victim, &status);
        assert_true(status.role == LEAT_VOTER_FOLLOWER || status.role == LEAT_VOTER_LEADER);
        assert_int_equal(status.voter_count, 3);
        rig_kill(rig, other, SIM_DEATH_KILL);
        assert_int_equal(rig_create_one(rig, 3, "two"), LEAT_OK); /* now it counts */
        assert_true(rig_until(rig, 5 * RIG_SECOND, rig_all_equal));
        rig_kill(rig, victim, SIM_DEATH_POWER);
        rig_boot(rig, victim);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_is_settled));
        rig_destroy(rig);
    }
}

/* A cluster of one voter becomes three voters, keeps its tables, and survives the loss of any voter. */
static void cluster_single_voter_grows(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct rig *rig = formed(5000 + seed, 3, 0);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(rig_node_up(rig, i), LEAT_OK);
        assert_int_equal(rig_create_one(rig, 0, "old"), LEAT_OK);
        for (unsigned i = 1; i < 3; i++) {
            struct rig_request *add = rig_request(rig, seed % 2 ? 0 : i, LEAT_COORDINATE_ADD_VOTER);
            add->request.target = rig->nodes[i].name;
            assert_int_equal(rig_wait(rig, add, 30 * RIG_SECOND), LEAT_OK);
            rig_forget(add);
        }
        rig_run(rig, RIG_SECOND);
        static struct leat_coordinator_status status;
        rig_status(rig, 2, &status);
        assert_int_equal(status.voter_count, 3);
        for (unsigned i = 0; i < 3; i++)
            assert_true(status.voters[i].votes);
        rig_kill(rig, 0, SIM_DEATH_POWER);
        assert_int_equal(rig_create_one(rig, 1, "new"), LEAT_OK);
        rig_boot(rig, 0);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_is_settled));
        for (unsigned i = 0; i < 3; i++) {
            rig_kill(rig, i, SIM_DEATH_POWER);
            rig_boot(rig, i);
        }
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_is_settled));
        assert_int_equal(rig_create_one(rig, 2, "old"), LEAT_E_STREAM_EXISTS);
        rig_destroy(rig);
    }
}

static const struct leat_node_info *node_info(struct rig *rig, unsigned at, const char *name)
{
    static struct leat_coordinator_status status;
    rig_status(rig, at, &status);
    for (uint32_t i = 0; i < status.node_count; i++)
        if (strcmp(status.nodes[i].name, name) == 0) return &status.nodes[i];
    return NULL;
}

static leat_err drained(struct rig *rig, unsigned asked, const char *name, bool draining)
{
    struct rig_request *request = rig_request(rig, asked, LEAT_COORDINATE_NODE_DRAIN);
    request->request.target = name;
    request->request.draining = draining;
    leat_err rc = rig_wait(rig, request, RIG_SECOND);
    if (rc != LEAT_OK) assert_non_null(strstr(request->request.error.text, "leat node undrain"));
    rig_forget(request);
    assert_true(rig_until(rig, RIG_SECOND, rig_all_equal));
    return rc;
}

/* Each node, be it leader, follower or learner, refuses to drain the last node, by the node's name; nothing is
 * proposed. */
static void cluster_last_node_is_not_drained(void **state)
{
    (void)state;
    struct rig *rig = formed(6101, 4, 3);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(drained(rig, i, rig->nodes[i].name, true), LEAT_OK);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t before = rig->nodes[i].coordinator->applied;
        assert_int_equal(drained(rig, i, rig->nodes[0].name, true), LEAT_E_INVALID);
        assert_int_equal(rig->nodes[i].coordinator->applied, before);
        assert_int_equal(drained(rig, i, rig->nodes[1].name, true), LEAT_OK); /* it is */
    }
    assert_int_equal(drained(rig, 2, rig->nodes[3].name, false), LEAT_OK);
    assert_int_equal(drained(rig, 3, rig->nodes[0].name, true), LEAT_OK);
    assert_int_equal(drained(rig, 0, rig->nodes[3].name, true), LEAT_E_INVALID);
    rig_destroy(rig);
}

static unsigned in_use(struct rig *rig)
{
    const struct leat_machine *machine = &rig->nodes[0].coordinator->machine;
    unsigned count = 0;
    for (uint32_t i = 0; i < machine->node_count; i++)
        count += !machine->nodes[i].info.draining;
    return count;
}

/* Goal: two requests drain the last two nodes at the same time, through any two nodes: one request is refused, and its
 * node is in use when the refusal is sent. */
static void cluster_of_two_drains_at_once_one_is_refused(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < 16; pair++) {
        unsigned at[2] = {pair / 4, pair % 4};
        struct rig *rig = formed(6200 + pair, 4, 3);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(rig_node_up(rig, i), LEAT_OK);
        assert_int_equal(drained(rig, 0, rig->nodes[0].name, true), LEAT_OK);
        assert_int_equal(drained(rig, 1, rig->nodes[1].name, true), LEAT_OK);
        struct rig_request *asked[2];
        for (unsigned i = 0; i < 2; i++) {
            asked[i] = rig_request(rig, at[i], LEAT_COORDINATE_NODE_DRAIN);
            asked[i]->request.target = rig->nodes[2 + i].name;
            asked[i]->request.draining = true;
            rig_ask(asked[i]);
        }
        unsigned refused = 0;
        for (unsigned i = 0; i < 2; i++) {
            for (unsigned k = 0; !asked[i]->done && k < 1000; k++)
                rig_run(rig, 1000);
            assert_true(asked[i]->done);
            if (asked[i]->request.rc == LEAT_OK) continue;
            assert_int_equal(asked[i]->request.rc, LEAT_E_INVALID);
            assert_non_null(strstr(asked[i]->request.error.text, asked[i]->request.target));
            refused++;
        }
        assert_int_equal(refused, 1);
        assert_true(rig_until(rig, RIG_SECOND, rig_all_equal));
        assert_int_equal(in_use(rig), 1);
        rig_destroy(rig);
    }
}

/* Nodes: a name belongs to one machine while that machine is up; a node that is not heard is down until it starts
 * again; a draining node gets no streamlets; streamlets are spread evenly. */
static void cluster_nodes_come_and_go(void **state)
{
    (void)state;
    struct rig *rig = formed(6001, 5, 3);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    snprintf(rig->nodes[4].name, sizeof rig->nodes[4].name, "n3"); /* an impostor */
    assert_int_equal(rig_node_up(rig, 4), LEAT_E_DENIED);
    snprintf(rig->nodes[4].name, sizeof rig->nodes[4].name, "n4");
    assert_int_equal(rig_node_up(rig, 4), LEAT_OK);

    struct rig_request *drain = rig_request(rig, 1, LEAT_COORDINATE_NODE_DRAIN);
    drain->request.target = "n4";
    drain->request.draining = true;
    assert_int_equal(rig_wait(rig, drain, RIG_SECOND), LEAT_OK);
    rig_forget(drain);
    struct rig_request *wide = rig_create_stream(rig, 2, "wide");
    wide->request.settings.streamlets = 40;
    wide->request.settings.logs = 1;
    assert_int_equal(rig_wait(rig, wide, RIG_SECOND), LEAT_OK);
    rig_forget(wide);
    rig_run(rig, RIG_SECOND);
    for (unsigned i = 0; i < 5; i++) {
        const struct leat_node_info *info = node_info(rig, 3, rig->nodes[i].name);
        assert_non_null(info);
        assert_int_equal(info->streamlets, i == 4 ? 0 : 10);
    }
    struct rig_request *copies = rig_create_stream(rig, 2, "copies");
    copies->request.settings.copies = 5; /* four nodes may get something */
    assert_int_equal(rig_wait(rig, copies, RIG_SECOND), LEAT_E_INVALID);
    rig_forget(copies);

    rig_kill(rig, 4, SIM_DEATH_KILL);
    rig_kill(rig, 3, SIM_DEATH_POWER);
    rig_run(rig, 8 * RIG_SECOND);
    assert_int_equal(node_info(rig, 0, "n4")->state, LEAT_NODE_GONE);
    assert_int_equal(node_info(rig, 0, "n3")->state, LEAT_NODE_DOWN);
    assert_int_equal(node_info(rig, 0, "n3")->streamlets, 10);
    /* Cut off for a while: that incarnation has crashed for good, and the node starts anew. */
    rig_boot(rig, 3);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    assert_int_equal(rig_node_up(rig, 3), LEAT_OK);
    uint64_t incarnation = rig->nodes[3].incarnation;
    rig->nodes[3].process->cut_off_until_us = rig->world->now_us + 10 * RIG_SECOND;
    rig_run(rig, 8 * RIG_SECOND);
    assert_int_equal(node_info(rig, 0, "n3")->state, LEAT_NODE_DOWN);
    rig_run(rig, 8 * RIG_SECOND);
    assert_true(node_info(rig, 0, "n3")->crashed);
    assert_int_equal(node_info(rig, 0, "n3")->incarnation, incarnation);
    rig_kill(rig, 3, SIM_DEATH_KILL);
    rig_boot(rig, 3);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    assert_int_equal(rig_node_up(rig, 3), LEAT_OK);
    assert_int_equal(node_info(rig, 3, "n3")->state, LEAT_NODE_UP);
    assert_true(node_info(rig, 3, "n3")->incarnation > incarnation);
    rig_destroy(rig);
}

/* Goal: a node that comes back after it was down is reported once, as up. Method: the node is killed and restarted; the
 * leader, another voter and a learner count the reports. */
static void cluster_node_that_returns_is_not_called_down(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct rig *rig = formed(6200 + seed, 5, 3);
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(rig_node_up(rig, i), LEAT_OK);
        rig_run(rig, 8 * RIG_SECOND);
        /* One that was never there before. */
        unsigned told[RIG_NODES_MAX], returns = (unsigned)(seed % 5);
        for (unsigned i = 0; i < 5; i++)
            told[i] = rig->nodes[i].nodes_told;
        assert_int_equal(rig_node_up(rig, 4), LEAT_OK);
        rig_run(rig, 2 * RIG_SECOND);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(rig->nodes[i].nodes_told, told[i] + 1);
        /* One that was down. */
        rig_kill(rig, returns, SIM_DEATH_KILL);
        rig_run(rig, 8 * RIG_SECOND);
        assert_int_equal(node_info(rig, (returns + 1) % 5, rig->nodes[returns].name)->state,
                         LEAT_NODE_DOWN);
        rig_boot(rig, returns);
        assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
        for (unsigned i = 0; i < 5; i++)
            told[i] = rig->nodes[i].nodes_told;
        assert_int_equal(rig_node_up(rig, returns), LEAT_OK);
        rig_run(rig, 2 * RIG_SECOND);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(rig->nodes[i].nodes_told, told[i] + 1);
        rig_destroy(rig);
    }
}

/* Each node adopts the streamlets that it owned, and no others, whichever node restarts first. */
static void cluster_nodes_adopt_their_own(void **state)
{
    (void)state;
    struct rig *rig = formed(6101, 3, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    struct rig_request *wide = rig_create_stream(rig, 2, "wide");
    wide->request.settings.streamlets = 9;
    wide->request.settings.logs = 2;
    assert_int_equal(rig_wait(rig, wide, RIG_SECOND), LEAT_OK);
    rig_forget(wide);
    for (unsigned i = 0; i < 3; i++)
        rig_kill(rig, i, SIM_DEATH_POWER);
    for (unsigned i = 0; i < 3; i++)
        rig_boot(rig, i);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    struct rig_request *adopt[3];
    for (unsigned i = 0; i < 3; i++) { /* all at once */
        adopt[i] = rig_request(rig, i, LEAT_COORDINATE_ADOPT);
        adopt[i]->request.incarnation = rig->nodes[i].incarnation;
        rig_ask(adopt[i]);
    }
    rig_run(rig, 2 * RIG_SECOND);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(adopt[i]->done);
        assert_int_equal(adopt[i]->request.rc, LEAT_OK);
        assert_int_equal(adopt[i]->request.decision_count, 6);
        for (size_t d = 0; d < 6; d++) {
            assert_int_equal(adopt[i]->request.decisions[d].kind, LEAT_DECIDED_TAIL);
            assert_int_equal(adopt[i]->request.decisions[d].epoch.v, adopt[i]->request.epoch.v);
        }
        rig_forget(adopt[i]);
    }
    const struct leat_stream_desc *desc = rig->nodes[0].coordinator->machine.streams[0].desc;
    for (uint32_t s = 0; s < 9; s++)
        assert_int_equal(desc->streamlets[s].owner, rig->nodes[s % 3].incarnation);
    rig_destroy(rig);
}

/* Only its owner raises the version of a log that was opened. */
static void versions_rise(struct rig *rig, const struct leat_log_ref logs[2], uint32_t epoch)
{
    static const struct {
        enum leat_coordinate_kind kind;
        uint64_t other_incarnation;
        uint32_t other_epoch, version;
        leat_err rc;
    } rows[] = {
        {LEAT_COORDINATE_VERSION, 0, 0, 2, LEAT_E_INVALID}, /* not opened yet */
        {LEAT_COORDINATE_OPENED, 0, 1, 1, LEAT_E_STALE_EPOCH},
        {LEAT_COORDINATE_OPENED, 1, 0, 1, LEAT_E_DENIED}, /* another node's */
        {LEAT_COORDINATE_OPENED, 0, 0, 1, LEAT_OK},
        {LEAT_COORDINATE_VERSION, 0, 0, 3, LEAT_OK},
        {LEAT_COORDINATE_VERSION, 0, 0, 3, LEAT_OK},
        {LEAT_COORDINATE_VERSION, 0, 0, 2, LEAT_E_INVALID},
        {LEAT_COORDINATE_VERSION, 1, 0, 4, LEAT_E_DENIED},
        {LEAT_COORDINATE_VERSION, 0, 1, 4, LEAT_E_STALE_EPOCH},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig_request *r = rig_request(rig, 3, rows[i].kind);
        r->request.logs = logs;
        r->request.log_count = 2;
        r->request.incarnation = rig->nodes[rows[i].other_incarnation ? 0 : 3].incarnation;
        r->request.epoch.v = epoch + rows[i].other_epoch;
        r->request.version = rows[i].version;
        assert_int_equal(rig_wait(rig, r, RIG_SECOND), rows[i].rc);
        rig_forget(r);
    }
    const struct leat_machine *machine = &rig->nodes[3].coordinator->machine;
    assert_int_equal(machine->streams[0].logs[6].record.stamp_version, 3);
    assert_int_equal(machine->streams[0].logs[6].record.stamp_epoch.v, epoch);
}

static void streamlet_moves(struct rig *rig, const struct leat_log_ref logs[2], uint32_t epoch)
{
    const struct leat_machine *machine = &rig->nodes[3].coordinator->machine;
    const struct leat_tail_record tails[] = {{7, {4096, 1234}, 700, false},
                                             {UINT64_MAX, {0, 0}, 0, false}};
    static const struct {
        const char *target;
        unsigned count, from;
        leat_err rc;
        bool fresh;
    } moves[] = {
        {"n1", 1, 3, LEAT_E_INVALID, false}, /* not all logs of it */
        {"n1", 2, 2, LEAT_E_DENIED, false},  /* not its own */
        {"nobody", 2, 3, LEAT_E_NOT_FOUND, true},
        {"n1", 2, 3, LEAT_E_STALE_EPOCH, false}, /* the old epoch */
        {"n1", 2, 3, LEAT_OK, true},
    };
    for (unsigned i = 0; i < sizeof moves / sizeof *moves; i++) {
        struct rig_request *r = rig_request(rig, 3, LEAT_COORDINATE_MOVE);
        r->request.logs = logs;
        r->request.tails = tails;
        r->request.log_count = moves[i].count;
        r->request.incarnation = rig->nodes[moves[i].from].incarnation;
        r->request.target = moves[i].target;
        r->request.epoch.v = epoch;
        assert_int_equal(rig_wait(rig, r, RIG_SECOND), moves[i].rc);
        assert_int_equal(r->request.epoch.v > epoch, moves[i].fresh);
        if (moves[i].fresh && i == 2) {
            assert_int_equal(machine->streams[0].desc->streamlets[3].owner,
                             rig->nodes[3].incarnation);
            assert_int_equal(machine->streams[0].desc->streamlets[3].epoch.v, r->request.epoch.v);
        }
        if (i == 3) epoch = machine->streams[0].desc->streamlets[3].epoch.v;
        rig_forget(r);
    }
}

/* A log's version goes up, by its living owner alone; a streamlet moves under a fresh epoch, and
 * comes back under another when it can't. */
static void cluster_versions_rise_and_streamlets_move(void **state)
{
    (void)state;
    struct rig *rig = formed(6201, 4, 3);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    struct rig_request *wide = rig_create_stream(rig, 3, "wide");
    wide->request.settings.streamlets = 4;
    wide->request.settings.logs = 2;
    assert_int_equal(rig_wait(rig, wide, RIG_SECOND), LEAT_OK);
    const struct leat_stream_desc *desc = wide->request.desc;
    uint32_t id = desc->id, epoch = desc->streamlets[3].epoch.v;
    assert_int_equal(desc->streamlets[3].owner, rig->nodes[3].incarnation);
    rig_forget(wide);
    const struct leat_log_ref logs[] = {{id, 3, 0}, {id, 3, 1}};
    versions_rise(rig, logs, epoch);
    streamlet_moves(rig, logs, epoch);
    assert_true(rig_until(rig, 5 * RIG_SECOND, rig_all_equal));
    const struct leat_machine *machine = &rig->nodes[0].coordinator->machine;
    assert_int_equal(machine->streams[0].desc->streamlets[3].owner, rig->nodes[1].incarnation);
    assert_false(machine->streams[0].logs[6].record.opened);
    assert_int_equal(machine->streams[0].logs[6].record.tail.segment, 7);
    assert_int_equal(machine->streams[0].logs[6].record.tail.next_offset, 700);
    assert_int_equal(machine->nodes[1].info.streamlets, 2);
    assert_int_equal(machine->nodes[3].info.streamlets, 0);
    rig_destroy(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_forms_in_any_order),
        cmocka_unit_test(cluster_forming_survives_deaths),
        cmocka_unit_test(cluster_loss_of_a_voter_delays_create_below_two_seconds),
        cmocka_unit_test(cluster_laggards_get_a_snapshot),
        cmocka_unit_test(cluster_amnesiac_voter_stays_out_until_replaced),
        cmocka_unit_test(cluster_single_voter_grows),
        cmocka_unit_test(cluster_nodes_come_and_go),
        cmocka_unit_test(cluster_last_node_is_not_drained),
        cmocka_unit_test(cluster_of_two_drains_at_once_one_is_refused),
        cmocka_unit_test(cluster_node_that_returns_is_not_called_down),
        cmocka_unit_test(cluster_nodes_adopt_their_own),
        cmocka_unit_test(cluster_versions_rise_and_streamlets_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
