/* SPDX-License-Identifier: Apache-2.0 */
/* The generations that are sent to the coordinator, and the meaning of its answers, on the world of world.h. */
#include "tests/replication/asks.h"

static struct {
    struct leat_rep_version rows[64];
    size_t count;
    unsigned times;
} asked;

static void versions_take(void *owner, struct leat_primary *primary,
                          const struct leat_rep_version *rows, size_t count)
{
    (void)owner, (void)primary;
    for (size_t i = 0; i < count; i++)
        asked.rows[i] = rows[i];
    asked.count = count;
    asked.times++;
}

/* Until the coordinator is asked once more. Returns after which time. */
static uint64_t until_asked(struct world *world)
{
    unsigned before = asked.times;
    uint64_t from_us = world->now_us;
    for (unsigned i = 0; i < 1000000 && asked.times == before; i++)
        world_step(world);
    assert_int_equal(asked.times, before + 1);
    return world->now_us - from_us;
}

/* As a coordinator that has committed what it was asked. */
static void commit(struct world *world)
{
    for (size_t i = 0; i < asked.count; i++)
        world_log_of(world, asked.rows[i].log)->version = asked.rows[i].version;
    leat_primary_versions_done(world->primary, LEAT_OK);
}

static uint32_t known_of(const struct world *world, unsigned log)
{
    return world->logs[log].rep->known;
}

/* A node is lost that has copies of all logs, and the coordinator is asked for all at once. */
static struct world *all_asked(uint64_t seed, unsigned logs)
{
    struct world *world = world_new(seed, 3, 3, logs, LEAT_DURABILITY_MEMORY, 0);
    for (unsigned i = 0; i < logs; i++)
        append_some(world, i, 10);
    world_run(world, 1000 * 1000);
    world->primary->options.events.on_versions = versions_take;
    world_node_kill(world, 1, false);
    until_asked(world);
    for (unsigned tries = 0; tries < 10 && asked.count < logs; tries++) {
        leat_primary_versions_done(world->primary, LEAT_E_TIMEOUT);
        until_asked(world);
    }
    assert_int_equal(asked.count, logs);
    return world;
}

/* Goal: without an answer the same generations are sent again after a pause; no generation counts as committed before
 * the answer. */
static void versions_without_an_answer_are_asked_for_again(void **state)
{
    (void)state;
    struct world *world = all_asked(61, 2);
    const uint32_t before[] = {known_of(world, 0), known_of(world, 1)};
    for (unsigned i = 0; i < 3; i++) {
        leat_primary_versions_done(world->primary, LEAT_E_TIMEOUT);
        uint64_t pause_us = until_asked(world);
        assert_in_range(pause_us, REP_RETRY_US, 3 * REP_RETRY_US);
        assert_int_equal(asked.count, 2);
        assert_int_equal(known_of(world, 0), before[0]);
        assert_int_equal(known_of(world, 1), before[1]);
    }
    commit(world);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(known_of(world, i) > before[i]);
        assert_int_equal(known_of(world, i), world->logs[i].version);
        uint64_t acked = world->logs[i].acked;
        append_some(world, i, 1);
        world_run(world, 1000 * 1000);
        assert_true(world->logs[i].acked > acked);
    }
    world_free(world);
}

/* Goal: where one log of several is refused, each is asked for alone: the one that is another node's by now acks
 * nothing any more, and the others go on. */
static void version_that_is_refused_stops_its_log_alone(void **state)
{
    (void)state;
    enum { LOGS = 3 };
    for (unsigned gone = 0; gone < LOGS; gone++) {
        struct world *world = all_asked(62 + gone, LOGS);
        const struct leat_log_ref ref = world->logs[gone].ref;
        uint64_t acked[LOGS];
        leat_primary_versions_done(world->primary, LEAT_E_STALE_EPOCH);
        for (unsigned i = 0; i < LOGS; i++) {
            until_asked(world);
            assert_int_equal(asked.count, 1);
            if (leat_log_ref_equal(asked.rows[0].log, ref))
                leat_primary_versions_done(world->primary, LEAT_E_STALE_EPOCH);
            else
                commit(world);
        }
        for (unsigned i = 0; i < LOGS; i++) {
            assert_int_equal(world->logs[i].rep->fenced, i == gone);
            acked[i] = world->logs[i].acked;
            if (i == gone)
                (void)world_append(&world->logs[i], 3000);
            else
                append_some(world, i, 1);
        }
        unsigned times = asked.times;
        world_run(world, 3 * 1000 * 1000);
        assert_int_equal(asked.times, times); /* nor is it asked for again */
        for (unsigned i = 0; i < LOGS; i++)
            assert_int_equal(world->logs[i].acked > acked[i], i != gone);
        world_free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_without_an_answer_are_asked_for_again),
        cmocka_unit_test(version_that_is_refused_stops_its_log_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
