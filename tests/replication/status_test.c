/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a log's copies for operators and clients, on the world of world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/replication/world.h"

static struct leat_primary_status status_of(const struct world *world)
{
    struct leat_primary_status status;
    leat_primary_status(world->primary, &status);
    return status;
}

static struct leat_primary_log_status log_status_of(const struct world *world)
{
    struct leat_primary_log_status status;
    leat_primary_log_status(world->logs[0].rep, &status);
    return status;
}

/* Goal: a log without a segment lacks no copy and has no places; a log whose segment has lost all other copies has
 * places, none of them in-sync. A status that confuses the two states shows in-sync replicas that no node has. */
static void log_that_has_lost_every_other_copy_is_not_like_one_that_has_not_begun(void **state)
{
    (void)state;
    struct world *world = world_new(2, 3, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    struct leat_rep_places places;
    assert_false(leat_primary_log_places(world->logs[0].rep, &places));
    world_append_all(world, 5, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_true(leat_primary_log_places(world->logs[0].rep, &places));
    assert_int_equal(places.count, 2);
    assert_int_equal(places.whole, 2);
    assert_int_equal(status_of(world).logs_under_replicated, 0);
    world_node_kill(world, 1, false);
    world_node_kill(world, 2, false);
    world_run(world, 1000 * 1000);
    assert_true(leat_primary_log_places(world->logs[0].rep, &places));
    assert_int_equal(places.count, 0);
    assert_int_equal(status_of(world).logs_under_replicated, 1);
    assert_int_equal(log_status_of(world).copies_now, 1);
    assert_int_equal(log_status_of(world).segments_lacking, 1);
    world_free(world);
}

/* Goal: the replacement of a lost copy counts when it is whole, and is reported as lacking until then. */
static void copy_that_is_being_made_is_lacking_until_it_is_whole(void **state)
{
    (void)state;
    struct world *world = world_new(2, 4, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    world_append_all(world, 5, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    const struct rep_set *set =
        rep_set_find(world->logs[0].rep, leat_log_head_segment(world->logs[0].log));
    bool was_incomplete = false;
    world_node_kill(world, set->copies[0]->peer->node.number, false);
    for (unsigned step = 0; step < 20000; step++) {
        unsigned whole = 1;
        for (unsigned i = 0; i < set->copy_count; i++)
            whole += set->copies[i]->state != REP_COPY_OPENING && !set->copies[i]->incomplete;
        was_incomplete |= set->copy_count == 2 && whole < 3;
        assert_int_equal(status_of(world).logs_under_replicated, whole < 3);
        assert_int_equal(log_status_of(world).copies_now, whole);
        if (was_incomplete && whole == 3) break;
        world_run(world, 100);
    }
    assert_true(was_incomplete);
    assert_int_equal(status_of(world).logs_under_replicated, 0);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_that_has_lost_every_other_copy_is_not_like_one_that_has_not_begun),
        cmocka_unit_test(copy_that_is_being_made_is_lacking_until_it_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
