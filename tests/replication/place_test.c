/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that lie together though they need not, on the world of world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/replication/world.h"

static void node_told(struct world *world, unsigned node, const char *host, bool draining)
{
    struct leat_rep_node seen = {
        .number = node, .incarnation = world->nodes[node].incarnation, .draining = draining};
    snprintf(seen.host, sizeof seen.host, "%s", host);
    leat_primary_node_set(world->primary, &seen);
}

static void append_all(struct world *world, unsigned batches)
{
    world_append_all(world, batches, 3000);
    assert_true(world_settle(world, 60 * 1000 * 1000));
}

static void run(struct world *world, uint64_t us)
{
    uint64_t until = world->now_us + us;
    while (world->now_us < until) {
        world_step(world);
        world_care(world);
    }
}

static struct leat_primary_status status_of(const struct world *world)
{
    struct leat_primary_status status;
    leat_primary_status(world->primary, &status);
    return status;
}

static uint32_t replicas(const struct world *world, unsigned node)
{
    struct leat_backup_status status;
    leat_backup_status(world->nodes[node].backup, &status);
    return status.replicas;
}

/* The owner's host has a second node; the third node is of another, and is not to be used. */
static struct world *together(uint64_t seed, unsigned logs, enum leat_durability level)
{
    struct world *world = world_new(seed, 3, 2, logs, level, 0);
    run(world, 100 * 1000);
    node_told(world, 1, "h0", false);
    node_told(world, 2, "h2", true);
    append_all(world, 150 * logs);
    run(world, 2 * 1000 * 1000);
    assert_true(world_is_whole(world));
    return world;
}

/* Goal: when a node of another host can be used, heads are rolled there and closed segments are copied
 * there; the copies that lay badly are gone, nothing is acked that is not on all copies. */
static void better_place_is_taken_by_heads_and_closed_segments(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct world *world = together(21, 2, (enum leat_durability)level);
        uint32_t near = status_of(world).segments_misplaced;
        assert_true(near > 6);
        uint64_t heads[2];
        for (unsigned i = 0; i < 2; i++)
            heads[i] = leat_log_head_segment(world->logs[i].log);
        node_told(world, 2, "h2", false);
        run(world, 20 * 1000 * 1000);
        assert_int_equal(status_of(world).segments_misplaced, 0);
        assert_int_equal(status_of(world).segments_under_replicated, 0);
        assert_int_equal(replicas(world, 1), 0);
        assert_true(replicas(world, 2) >= near);
        for (unsigned i = 0; i < 2; i++)
            assert_true(leat_log_head_segment(world->logs[i].log) <= heads[i] + 1);
        append_all(world, 20);
        world_check_after_death(world);
        world_free(world);
    }
}

/* Goal: where there is no better place nothing is rolled or copied. */
static void no_better_place_leaves_all_as_it_is(void **state)
{
    (void)state;
    struct world *world = together(22, 1, LEAT_DURABILITY_MEMORY);
    uint32_t near = status_of(world).segments_misplaced;
    uint64_t head = leat_log_head_segment(world->logs[0].log);
    node_told(world, 2, "h0", false);
    run(world, 10 * 1000 * 1000);
    assert_int_equal(status_of(world).segments_misplaced, near);
    assert_int_equal(status_of(world).accounts.recopied_bytes, 0);
    assert_int_equal(leat_log_head_segment(world->logs[0].log), head);
    world_check_after_death(world);
    world_free(world);
}

/* Goal: many logs' heads are rolled a few at a time. */
static void many_heads_are_rolled_at_a_bounded_rate(void **state)
{
    (void)state;
    struct world *world = together(23, WORLD_LOGS_MAX, LEAT_DURABILITY_MEMORY);
    uint64_t before[WORLD_LOGS_MAX];
    for (unsigned i = 0; i < WORLD_LOGS_MAX; i++)
        before[i] = leat_log_head_segment(world->logs[i].log);
    world->primary->rolls_at_us =
        world->now_us + REP_ROLLS_AHEAD_US - REP_ROLL_US; /* all but one */
    node_told(world, 2, "h2", false);
    for (unsigned most = 1; most <= WORLD_LOGS_MAX; most++) {
        world->care_us = 0;
        run(world, REP_ROLL_US);
        unsigned rolled = 0;
        for (unsigned i = 0; i < WORLD_LOGS_MAX; i++)
            rolled += leat_log_head_segment(world->logs[i].log) > before[i];
        assert_true(rolled <= most + 1);
    }
    run(world, 20 * 1000 * 1000);
    assert_int_equal(status_of(world).segments_misplaced, 0);
    world_check_after_death(world);
    world_free(world);
}

/* Goal: the better node dies while segments are copied there: the others stay where they are. */
static void better_node_that_dies_amid_it_loses_nothing(void **state)
{
    (void)state;
    for (unsigned ms = 1; ms < 60; ms += 6) {
        struct world *world = together(24 + ms, 1, LEAT_DURABILITY_MEMORY);
        node_told(world, 2, "h2", false);
        run(world, ms * 1000);
        world_node_kill(world, 2, false);
        run(world, 5 * 1000 * 1000);
        world_node_start(world, 2);
        append_all(world, 10);
        run(world, 30 * 1000 * 1000);
        assert_true(world_is_whole(world));
        world_check_after_death(world);
        world_free(world);
    }
}

/* A closed copy on the node that lies badly, which is being told to drop it. */
static const struct rep_copy *leaving(const struct world *world)
{
    LEAT_LIST_EACH(&world->logs[0].rep->settled, it)
    {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        for (unsigned i = 0; i < set->copy_count; i++)
            if (set->copies[i]->peer->node.number == 1 && rep_copy_leaves(set->copies[i]))
                return set->copies[i];
    }
    return NULL;
}

/* Closed and whole, and nobody has said that it is to go. */
static bool stays(const struct world *world, unsigned node, uint64_t segment)
{
    LEAT_LIST_EACH(&world->nodes[node].backup->replicas, it)
    {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
        if (rep->seg && rep->seg->id.v == segment && rep->seg->state == LEAT_SEGMENT_CLOSED &&
            !rep->seg->incomplete && !rep->drop_wanted && !rep->dropping)
            return true;
    }
    return false;
}

/* Goal: while the node that lies badly is slow to drop its copy, the better one's connection breaks and comes
 * again. That copy is the only one then, but for the owner's: it stays, and counts again. */
static void better_copy_that_comes_back_while_the_other_leaves_stays(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        struct world *world = together(90 + i, 1, LEAT_DURABILITY_MEMORY);
        node_told(world, 2, "h2", false);
        for (unsigned steps = 0; !leaving(world); steps++) {
            assert_true(steps < 1000000);
            world_step(world);
        }
        uint64_t segment = leaving(world)->set->id.v;
        world->nodes[1].mute = true;
        world_link_cut(world, 2);
        run(world, 40 * 1000); /* less than the owner waits for the answer */
        assert_non_null(leaving(world));
        assert_true(stays(world, 2, segment));
        world->nodes[1].mute = false;
        for (uint64_t until = world->now_us + 5 * 1000 * 1000; world->now_us < until;) {
            world_step(world);
            assert_true(stays(world, 1, segment) || stays(world, 2, segment));
        }
        run(world, 10 * 1000 * 1000);
        assert_int_equal(status_of(world).segments_misplaced, 0);
        assert_int_equal(status_of(world).segments_under_replicated, 0);
        assert_true(world_is_whole(world));
        world_check_after_death(world);
        world_free(world);
    }
}

/* Goal: where the heap is full no copy is made: another node is asked, and this one again when it is not any more. */
static void full_heap_sends_copies_elsewhere(void **state)
{
    (void)state;
    struct world *world = world_new(5, 4, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    world->nodes[2].heap_full = true;
    append_all(world, 100);
    assert_int_equal(replicas(world, 2), 0);
    assert_true(status_of(world).accounts.refused_opens > 0);
    world->nodes[2].heap_full = false;
    world->nodes[3].heap_full = true;
    append_all(world, 100);
    assert_true(replicas(world, 2) > 0);
    assert_int_equal(status_of(world).accounts.lost_backups, 0);
    world_free(world);
}

static void expect_below_min(const struct world *world, unsigned logs)
{
    struct leat_store_port store_port = leat_primary_port(world->logs[0].rep);
    assert_int_equal(store_port.refusal(store_port.ctx), LEAT_E_TOO_FEW_COPIES);
    assert_int_equal(status_of(world).logs_below_min, logs);
}

/* Goal: a log whose other nodes have never been attached counts as starting, however long these nodes take to allocate
 * their memory (seconds on a busy machine). When the start has lasted too long, a node counts as missing, and the
 * status says so. */
static void nodes_that_are_still_coming_are_not_called_missing(void **state)
{
    (void)state;
    struct world *world = world_new(27, 3, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    for (unsigned node = 1; node < 3; node++)
        world->nodes[node].mute = true;
    run(world, 25 * 1000 * 1000); /* the requests have ended, unanswered */
    expect_below_min(world, 0);
    run(world, 6 * 1000 * 1000);
    expect_below_min(world, 1);
    for (unsigned node = 1; node < 3; node++)
        world->nodes[node].mute = false;
    run(world, 1000 * 1000);
    assert_int_equal(status_of(world).logs_below_min, 0);
    append_all(world, 5);
    world_node_kill(world, 1, false); /* one that was attached is missing at once */
    world_node_kill(world, 2, false);
    run(world, 200 * 1000);
    expect_below_min(world, 1);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_are_still_coming_are_not_called_missing),
        cmocka_unit_test(full_heap_sends_copies_elsewhere),
        cmocka_unit_test(better_place_is_taken_by_heads_and_closed_segments),
        cmocka_unit_test(no_better_place_leaves_all_as_it_is),
        cmocka_unit_test(many_heads_are_rolled_at_a_bounded_rate),
        cmocka_unit_test(better_node_that_dies_amid_it_loses_nothing),
        cmocka_unit_test(better_copy_that_comes_back_while_the_other_leaves_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
