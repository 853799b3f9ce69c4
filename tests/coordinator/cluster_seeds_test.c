/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinators of several nodes in the simulated world: seeds of everything at once. */
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

/* ---- everything at once ---- */

static void fault(struct rig *rig)
{
    struct sim_rng *dice = &rig->world->fault;
    unsigned victim = (unsigned)sim_rng_below(dice, rig->node_count);
    struct rig_node *node = &rig->nodes[victim];
    if (!node->up) {
        if (sim_rng_chance(dice, 700)) rig_boot(rig, victim);
        return;
    }
    switch (sim_rng_below(dice, 9)) {
    case 0:
        rig_kill(rig, victim, SIM_DEATH_KILL);
        break;
    case 1:
        rig_kill(rig, victim, SIM_DEATH_POWER);
        break;
    case 2:
    case 3:
        node->process->cut_off_until_us = rig->world->now_us + sim_rng_below(dice, 6 * RIG_SECOND);
        break;
    case 4:
        sim_net_reset(node->process, (uint32_t)sim_rng_between(dice, 100, 1000));
        break;
    case 5:
        sim_disk_stall(node->disk, rig->world->now_us + sim_rng_below(dice, 3 * RIG_SECOND));
        break;
    case 6:
        node->process->paused_until_us = rig->world->now_us + sim_rng_below(dice, 3 * RIG_SECOND);
        break;
    case 7:
        sim_disk_fail_next(node->disk,
                           sim_rng_chance(dice, 500) ? LEAT_DISK_WRITE : LEAT_DISK_SYNC);
        break;
    default:
        node->process->die_in_calls = sim_rng_between(dice, 1, 400);
        node->process->death = sim_rng_chance(dice, 500) ? SIM_DEATH_KILL : SIM_DEATH_POWER;
        break;
    }
}

struct made {
    char name[24];
    uint32_t id;
};

/* A coordinator that stopped, its disk having failed, is started again by its supervisor. */
static void revive(struct rig *rig)
{
    for (unsigned i = 0; i < rig->node_count; i++) {
        struct rig_node *node = &rig->nodes[i];
        if (node->up && node->coordinator->failed != LEAT_OK) rig_kill(rig, i, SIM_DEATH_KILL);
        if (node->up) continue;
        sim_disk_no_errors(node->disk);
        rig_boot(rig, i);
        if (!node->up)
            fail_msg("seed %llu: %s: %s", (unsigned long long)rig->world->seed, node->name,
                     node->open_error.text);
    }
}

enum { ROUNDS = 60, MADE_MAX = 4096 };
static struct made all_made[MADE_MAX];
static unsigned made_count;
static uint64_t answered, unanswered;

static void answers_take(struct rig *rig)
{
    for (unsigned i = 0; i < RIG_REQUESTS_MAX; i++) {
        struct rig_request *it = &rig->requests[i];
        if (!it->in_use || !it->done || it->request.kind != LEAT_COORDINATE_STREAM_CREATE) continue;
        /* Asked for once, so it can't exist already: a retry that took effect twice. */
        assert_int_not_equal(it->request.rc, LEAT_E_STREAM_EXISTS);
        if (it->request.rc == LEAT_OK) {
            assert_true(made_count < MADE_MAX);
            snprintf(all_made[made_count].name, sizeof all_made[0].name, "%.23s", it->request.name);
            all_made[made_count++].id = it->request.stream_id;
            answered++;
        } else {
            unanswered++;
        }
        rig_forget(it);
    }
}

static void streams_ask(struct rig *rig, unsigned *number)
{
    for (unsigned i = 0; i < rig->node_count; i++) {
        if (!rig->nodes[i].up || sim_rng_chance(&rig->world->work, 300)) continue;
        char name[24];
        snprintf(name, sizeof name, "s%u", (*number)++);
        rig_ask(rig_create_stream(rig, i, name));
    }
}

/* All is well again. */
static void heal(struct rig *rig)
{
    for (unsigned i = 0; i < rig->node_count; i++) {
        struct rig_node *node = &rig->nodes[i];
        if (node->up) node->process->die_in_calls = 0;
        if (node->up) node->process->cut_off_until_us = node->process->paused_until_us = 0;
        sim_disk_no_errors(node->disk);
    }
    revive(rig);
    rig_run(rig, 10 * RIG_SECOND);
    revive(rig);
    assert_true(rig_until(rig, 60 * RIG_SECOND, rig_is_settled));
}

static void made_check(struct rig *rig)
{
    struct leat_machine *machine = &rig->nodes[0].coordinator->machine;
    for (unsigned i = 0; i < made_count; i++) {
        struct leat_machine_stream *stream =
            leat_machine_name_find(machine, all_made[i].name, strlen(all_made[i].name));
        if (!stream || stream->id != all_made[i].id)
            fail_msg("seed %llu: stream %s was created as %u and is %u",
                     (unsigned long long)rig->world->seed, all_made[i].name, all_made[i].id,
                     stream ? stream->id : 0);
    }
}

/* One voter loses its disk, once; then an operator asks for its replacement, and for one more voter, until both are
 * done. */
struct changing {
    unsigned victim;
    bool wiped, replaced, added;
    struct rig_request *request;
    struct leat_error last;
};

static void change_answered(struct changing *changing)
{
    struct rig_request *request = changing->request;
    if (!request || !request->done) return;
    changing->request = NULL;
    if (request->request.rc == LEAT_OK && request->request.kind == LEAT_COORDINATE_ADD_VOTER)
        changing->added = true;
    else if (request->request.rc == LEAT_OK || request->request.rc == LEAT_E_EXISTS)
        changing->replaced =
            true; /* EXISTS: it was done, and the leader that did it could not say so */
    changing->last = request->request.error;
    rig_forget(request);
}

static void change_ask(struct rig *rig, struct changing *changing, unsigned node)
{
    change_answered(changing);
    if (changing->request || (changing->replaced && changing->added) || !rig->nodes[node].up)
        return;
    changing->request = rig_request(
        rig, node, changing->replaced ? LEAT_COORDINATE_ADD_VOTER : LEAT_COORDINATE_NODE_REPLACE);
    changing->request->request.target = rig->nodes[changing->replaced ? 3 : changing->victim].name;
    rig_ask(changing->request);
}

static void change_advance(struct rig *rig, struct changing *changing, unsigned round)
{
    if (round < 10) return;
    struct rig_node *node = &rig->nodes[changing->victim];
    if (!changing->wiped) {
        if (node->up) rig_kill(rig, changing->victim, SIM_DEATH_KILL);
        rig_wipe(rig, changing->victim);
        rig_boot(rig, changing->victim);
        changing->wiped = true;
        return;
    }
    change_ask(rig, changing, (unsigned)sim_rng_below(&rig->world->work, rig->node_count));
}

static void seed_run(uint64_t seed, bool changes)
{
    struct rig *rig = rig_create((changes ? 90000 : 70000) + seed, 5, 3);
    struct changing changing = {.victim = (unsigned)(seed % 3)};
    unsigned number = 0;
    made_count = 0;
    rig->snapshot_bytes_min = seed % 2 ? 4096 : 0;
    rig->raft_segment_bytes = seed % 3 ? 2048 : 0; /* less than some entries have */
    for (unsigned i = 0; i < 5; i++)
        rig_boot(rig, i);
    assert_true(rig_until(rig, 20 * RIG_SECOND, rig_all_ready));
    for (unsigned i = 0; i < 5 && changes; i++)
        assert_int_equal(rig_node_up(rig, i), LEAT_OK);
    for (unsigned round = 0; round < ROUNDS; round++) {
        streams_ask(rig, &number);
        fault(rig);
        if (changes) change_advance(rig, &changing, round);
        rig_run(rig, sim_rng_below(&rig->world->fault, RIG_SECOND));
        answers_take(rig);
    }
    heal(rig);
    for (unsigned i = 0; i < 200 && changes && !(changing.replaced && changing.added); i++) {
        change_ask(rig, &changing, i % 5);
        rig_run(rig, RIG_SECOND);
        change_answered(&changing);
    }
    assert_int_equal(rig_create_one(rig, (unsigned)(seed % 5), "healed"), LEAT_OK);
    assert_true(rig_until(rig, 10 * RIG_SECOND, rig_is_settled));
    if (changes) {
        static struct leat_coordinator_status status;
        if (!changing.replaced || !changing.added) {
            rig_dump(rig);
            fail_msg("seed %llu: the voters did not change: %s", (unsigned long long)seed,
                     changing.last.text);
        }
        rig_status(rig, 0, &status);
        bool whole = status.voter_count == 4;
        for (unsigned i = 0; i < 4; i++)
            whole = whole && status.voters[i].votes;
        if (!whole) {
            rig_dump(rig);
            fail_msg("seed %llu: %u voters", (unsigned long long)seed, status.voter_count);
        }
    }
    answers_take(rig);
    made_check(rig);
    rig_destroy(rig);
}

static void seeds_run(bool changes)
{
    const char *only = getenv("RIG_SEED"), *how_many = getenv("RIG_SEEDS");
    uint64_t first = only ? strtoull(only, NULL, 10) : 1;
    uint64_t last = only ? first : how_many ? strtoull(how_many, NULL, 10) : 100;
    answered = unanswered = 0;
    for (uint64_t seed = first; seed <= last; seed++)
        seed_run(seed, changes);
    print_message("%llu answered, %llu refused or unknown\n", (unsigned long long)answered,
                  (unsigned long long)unanswered);
    if (!only) assert_true(answered > 100);
}

/* Requests on all nodes under every fault: whatever was answered stays true, no id is given twice,
 * and once all is well everybody has the same tables. */
static void cluster_seeds(void **state)
{
    (void)state;
    seeds_run(false);
}

/* The same while the voters change. */
static void cluster_seeds_with_changing_voters(void **state)
{
    (void)state;
    seeds_run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cluster_seeds),
        cmocka_unit_test(cluster_seeds_with_changing_voters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
