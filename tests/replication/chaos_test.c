/* SPDX-License-Identifier: Apache-2.0 */
/* Random failures over many seeds, and the steps of losing a backup one by one. The world checks its
 * rule after every ack; at the end everybody dies and what is found must say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/replication/world.h"

struct totals {
    uint64_t acked, torn, ghosts, marks, lost, versions, replaced, recopied, refused, segments;
};

static void fault(struct world *world)
{
    unsigned number = 1 + (unsigned)world_below(world, world->node_count - 1);
    struct world_node *node = &world->nodes[number];
    switch (world_below(world, 12)) {
    case 0:
    case 1:
    case 2:
        if (node->alive) world_node_kill(world, number, world_below(world, 4) == 0);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        if (!node->alive) world_node_start(world, number);
        break;
    case 7:
        world_link_cut(world, number);
        break;
    case 8:
        node->slow = !node->slow;
        break;
    case 9:
        node->refuses = (unsigned)world_below(world, 3) * 50;
        break;
    case 11:
        world_targets_fail(world, number);
        break;
    case 10:
        world->coordinator_down = !world->coordinator_down;
        break;
    default:
        break;
    }
}

static void care(struct world *world)
{
    for (unsigned i = 0; i < world->log_count; i++)
        leat_log_care(world->logs[i].log);
}

static void heal(struct world *world)
{
    world->coordinator_down = false;
    for (unsigned i = 1; i < world->node_count; i++) {
        world->nodes[i].slow = false;
        world->nodes[i].refuses = 0;
        if (!world->nodes[i].alive) world_node_start(world, i);
    }
}

static bool all_idle(const struct world *world)
{
    for (unsigned i = 0; i < world->log_count; i++)
        if (!world_is_idle(&world->logs[i])) return false;
    return true;
}

static bool run_until(struct world *world, bool (*done)(struct world *world), uint64_t us)
{
    uint64_t until = world->now_us + us, care_us = 0;
    while (world->now_us < until) {
        world_step(world);
        if (world->now_us >= care_us) {
            care(world);
            care_us = world->now_us + 200000;
            if (all_idle(world) && (!done || done(world))) return true;
        }
    }
    return false;
}

static void chaos(uint64_t seed, struct totals *totals)
{
    struct leat_xoshiro dice;
    leat_xoshiro_seed(&dice, seed * 77 + 5);
    unsigned nodes = 3 + (unsigned)leat_xoshiro_below(&dice, 3);
    unsigned copies = 2 + (unsigned)leat_xoshiro_below(&dice, 3);
    if (copies > nodes) copies = nodes;
    bool disk = leat_xoshiro_below(&dice, 3) == 0;
    struct world *world = world_new(seed, nodes, copies, 1 + (unsigned)(seed % 3),
                                    disk ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY,
                                    leat_xoshiro_below(&dice, 3) ? 0 : 150 * 1000);
    if (leat_xoshiro_below(&dice, 2)) world->hibernate_after_us = 30 * 1000;
    if (leat_xoshiro_below(&dice, 2)) world->hosts = 2 + (unsigned)leat_xoshiro_below(&dice, 2);
    uint64_t care_us = 0;
    unsigned steps = 6000, calm = 50 + (unsigned)leat_xoshiro_below(&dice, 1500);
    for (unsigned i = 0; i < steps; i++) {
        if (world_below(world, 4) == 0)
            (void)world_append(&world->logs[world_below(world, world->log_count)],
                               100 + (uint32_t)world_below(world, 6000));
        if (world_below(world, calm) == 0) fault(world);
        if (world->now_us >= care_us) {
            care(world);
            care_us = world->now_us + 20000;
        }
        world_step(world);
    }
    world_check(world);
    heal(world);
    if (!run_until(world, world_is_whole, UINT64_C(60) * 1000 * 1000)) {
        fprintf(stderr, "seed %llu: no progress after healing\n", (unsigned long long)seed);
        world_dump(world);
        abort();
    }
    struct leat_primary_status status;
    leat_primary_status(world->primary, &status);
    assert_int_equal(status.logs_suspended, 0);
    for (unsigned i = 0; i < world->log_count; i++) {
        assert_int_equal(world->logs[i].failed, 0);
        totals->acked += world->logs[i].acked;
    }
    totals->torn += world->torn;
    totals->ghosts += world->ghosts_landed;
    totals->marks += world->marks_seen;
    totals->lost += status.accounts.lost_backups;
    totals->versions += status.accounts.versions;
    totals->replaced += status.accounts.replaced_copies;
    totals->recopied += status.accounts.recopied_bytes;
    totals->refused += status.accounts.refused_opens;
    totals->segments += status.accounts.segments;
    world_check_after_death(world);
    world_free(world);
}

/* Goal: whatever fails, no open replica that counts is shorter than the acked bytes, and once all faults are over every
 * copy is there again, equal byte for byte. */
static void random_failures_lose_nothing_acked(void **state)
{
    (void)state;
    const char *one = getenv("LEAT_REPLICATION_SEED");
    const char *many = getenv("LEAT_REPLICATION_SEEDS");
    uint64_t from = one ? strtoull(one, NULL, 10) : 1;
    uint64_t count = one ? 1 : many ? strtoull(many, NULL, 10) : 200;
    struct totals totals = {0};
    for (uint64_t seed = from; seed < from + count; seed++) {
        if (getenv("LEAT_REPLICATION_TRACE"))
            fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        chaos(seed, &totals);
    }
    printf("%llu seeds: %llu records acked, %llu writes torn, %llu landed after their end, %llu "
           "marks looked at, %llu backups "
           "lost, "
           "%llu versions, %llu copies replaced, %llu bytes copied again, %llu opens refused, %llu "
           "segments\n",
           (unsigned long long)count, (unsigned long long)totals.acked,
           (unsigned long long)totals.torn, (unsigned long long)totals.ghosts,
           (unsigned long long)totals.marks, (unsigned long long)totals.lost,
           (unsigned long long)totals.versions, (unsigned long long)totals.replaced,
           (unsigned long long)totals.recopied, (unsigned long long)totals.refused,
           (unsigned long long)totals.segments);
    if (!one) assert_true(totals.torn && totals.versions && totals.replaced && totals.recopied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_failures_lose_nothing_acked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
