/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes may write into a node's memory for replicas, and how much of it each node gets, on the world of
 * world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tests/replication/world.h"

static bool grown_now;
static void on_grown(struct leat_arena_grow *grow)
{
    (void)grow;
    grown_now = true;
}

static uint64_t less_bytes;
static uint64_t less_for_logs(void *arg)
{
    (void)arg;
    return less_bytes;
}

/* Goal: the nodes that write to a node share the node's memory for copies, less what logs take of this memory: a writer
 * that has its share gets no more. */
static void writer_that_has_its_share_of_the_memory_gets_no_more(void **state)
{
    (void)state;
    /* A share is one step, or two; or would be two, but logs take of it. */
    static const struct {
        unsigned steps;
        uint64_t less_bytes;
        bool grows;
    } cases[] = {{2, 0, false}, {4, 0, true}, {4, 1, false}, {4, UINT64_MAX, false}};
    for (unsigned at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        struct world *world = world_new(3, 2, 2, 1, LEAT_DURABILITY_MEMORY, 0);
        world_append_all(world, 1, 1000);
        assert_true(world_settle(world, 10 * 1000 * 1000));
        struct leat_backup *backup = world->nodes[1].backup;
        backup->options.writers_bytes_max = cases[at].steps * (uint64_t)LEAT_ARENA_STEP_BYTES;
        less_bytes = cases[at].less_bytes;
        backup->options.less_bytes = less_for_logs;
        struct backup_writer *writer =
            LEAT_CONTAINER(backup->writers.next, struct backup_writer, link);
        assert_int_equal(writer->arena.grown_bytes, LEAT_ARENA_STEP_BYTES);
        struct leat_arena_grow grow = {.on_grown = on_grown};
        grown_now = false;
        writer->arena.grow(writer->arena.ctx, &grow);
        for (unsigned i = 0; i < 100000 && !grown_now; i++)
            world_step(world);
        assert_true(grown_now);
        assert_int_equal(grow.rc, cases[at].grows ? LEAT_OK : LEAT_E_NO_MEMORY);
        assert_int_equal(writer->arena.grown_bytes,
                         (1 + cases[at].grows) * (uint64_t)LEAT_ARENA_STEP_BYTES);
        world_free(world);
    }
}

static unsigned attaches_granted, attaches_refused;
static leat_err attach_refusal;
static char attach_text[LEAT_ERROR_TEXT_BYTES];
static void attach_granted(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                           uint32_t control_bytes)
{
    (void)ctx, (void)ticket, (void)control, (void)control_bytes;
    attaches_granted++;
}

static void attach_refused(void *ctx, const struct leat_link_ticket *ticket, leat_err rc,
                           const char *text)
{
    (void)ctx, (void)ticket;
    assert_non_null(text);
    attach_refusal = rc;
    snprintf(attach_text, sizeof attach_text, "%s", text);
    attaches_refused++;
}

static bool is_node_7(void *arg, const char *node, uint64_t incarnation)
{
    (void)arg;
    return strcmp(node, "ghost7") == 0 && incarnation == 1007;
}

/* A number of nodes that nobody has heard of ask for memory to write into. */
static void ghosts_attach(struct world *world, struct leat_backup *backup, unsigned count)
{
    attaches_granted = attaches_refused = 0;
    for (unsigned i = 0; i < count; i++) {
        struct leat_link_identity who = {.incarnation = 1000 + i};
        snprintf(who.node, sizeof who.node, "ghost%u", i);
        while (world->nodes[1].growing) /* one at a time in this world */
            world_step(world);
        struct leat_frame frame = {.kind = LEAT_REP_ATTACH};
        struct leat_link_ticket ticket = {.request = 1, .kind = LEAT_REP_ATTACH};
        leat_backup_request(backup, &who, &frame, &ticket);
        for (unsigned step = 0; step < 100000 && attaches_granted + attaches_refused <= i; step++)
            world_step(world);
    }
    assert_int_equal(attaches_granted + attaches_refused, count);
}

static uint64_t writers_grown(const struct leat_backup *backup)
{
    uint64_t bytes = 0;
    for (const struct leat_list *it = backup->writers.next; it != &backup->writers; it = it->next) {
        const struct backup_writer *writer = LEAT_CONTAINER(it, const struct backup_writer, link);
        if (writer->rmem) bytes += writer->rmem->grown_bytes;
    }
    return bytes;
}

static struct leat_backup *backup_for_ghosts(struct world *world, unsigned steps)
{
    struct leat_backup *backup = world->nodes[1].backup;
    backup->options.net.answer = attach_granted;
    backup->options.net.refuse = attach_refused;
    backup->options.writers_bytes_max = steps * (uint64_t)LEAT_ARENA_STEP_BYTES;
    return backup;
}

/* Goal: whoever calls itself a node gets no memory before the coordinators have told of it. */
static void writer_that_is_no_node_gets_no_memory(void **state)
{
    (void)state;
    struct world *world = world_new(4, 2, 2, 1, LEAT_DURABILITY_MEMORY, 0);
    struct leat_backup *backup = backup_for_ghosts(world, 64);
    backup->options.is_node = is_node_7;
    unsigned before = backup->writer_count;
    ghosts_attach(world, backup, 40);
    assert_int_equal(attaches_granted, 1);
    assert_int_equal(attaches_refused, 39);
    assert_int_equal(attach_refusal, LEAT_E_STARTING);
    assert_int_equal(backup->writer_count, before + 1);
    world_free(world);
}

/* Goal: the first step of each comes out of the memory for replicas as well. Who found none has one when a node is
 * released. */
static void writers_together_get_no_more_than_the_memory_for_replicas(void **state)
{
    (void)state;
    struct world *world = world_new(5, 2, 2, 1, LEAT_DURABILITY_MEMORY, 0);
    world_append_all(world, 1, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    struct leat_backup *backup = backup_for_ghosts(world, 4);
    uint64_t most = backup->options.writers_bytes_max;
    assert_int_equal(writers_grown(backup), LEAT_ARENA_STEP_BYTES);
    ghosts_attach(world, backup, 4);
    assert_int_equal(attaches_granted, 3);
    assert_int_equal(attach_refusal, LEAT_E_NO_MEMORY);
    uint64_t first = backup->options.first_bytes_max;
    char want[64];
    snprintf(want, sizeof want, "the %llu MiB for replicas of other nodes are taken",
             (unsigned long long)(first > most ? first : most) >> 20);
    assert_int_not_equal(first, most);
    assert_non_null(strstr(attach_text, want));
    assert_int_equal(writers_grown(backup), most);
    struct backup_writer *starved = backup_writer_find(backup, "ghost3", 1003);
    assert_true(starved->starved && !starved->ready);
    leat_backup_release(backup, "ghost0", 1000);
    for (unsigned i = 0; i < 100000 && !starved->ready; i++)
        world_step(world);
    assert_true(starved->ready);
    assert_null(backup_writer_find(backup, "ghost0", 1000));
    assert_int_equal(writers_grown(backup), most);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writer_that_is_no_node_gets_no_memory),
        cmocka_unit_test(writers_together_get_no_more_than_the_memory_for_replicas),
        cmocka_unit_test(writer_that_has_its_share_of_the_memory_gets_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
