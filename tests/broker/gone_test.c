/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of a node's own, found at its start, whose stream goes before its logs are made: replicate.c, on core 0 of a
 * node of tests/replication's world. The test plays the coordinator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"
#include "tests/broker/parts.h"
#include "tests/replication/world.h"

enum { AT = 1, OWN = 2 }; /* the node, and how many segments of its own it has */

static struct leat_segment *adopted;
static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg;
    assert_int_equal(rc, LEAT_OK);
    adopted = seg;
}

static void adopt_one(struct world *world)
{
    struct leat_backup *backup = world->nodes[AT].backup;
    const struct replica *rep = NULL;
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        const struct replica *other = LEAT_CONTAINER(it, const struct replica, link);
        if (other->seg && other->seg->state == LEAT_SEGMENT_CLOSED && !other->busy) rep = other;
    }
    assert_non_null(rep);
    adopted = NULL;
    assert_int_equal(leat_backup_adopt(backup, rep->seg->log, (struct leat_epoch){WORLD_EPOCH + 1},
                                       rep->seg->id, rep->seg->prefix_id, rep->seg->next_offset,
                                       rep->seg->max_timestamp_ms, 0, on_adopted, NULL),
                     LEAT_OK);
    world_run(world, 200 * 1000);
    assert_non_null(adopted);
}

/* The node has just started, and has found segments of its own, and replicas. It gets no others. */
static struct world *started(uint64_t seed)
{
    struct world *world = world_new(seed, 3, 3, 1, LEAT_DURABILITY_MEMORY, 0);
    for (unsigned i = 0; i < 200; i++)
        for (unsigned tries = 0; !world_append(&world->logs[0], 3000) && tries < 200000; tries++) {
            world_step(world);
            world_care(world);
        }
    world_run(world, 4 * 1000 * 1000);
    leat_primary_log_silence(world->logs[0].rep, true);
    for (unsigned i = 0; i < OWN; i++)
        adopt_one(world);
    world_node_kill(world, AT, false);
    world->nodes[AT].refuses = 100;
    world_node_open(world, AT);
    return world;
}

static uint64_t segments(const struct world *world)
{
    struct leat_store_usage usage;
    leat_store_usage(world->nodes[AT].store, &usage);
    return usage.segments;
}

enum stream_is { STREAM_GONE, STREAM_GOING, STREAM_THERE, STREAM_UNHEARD };

/* What the node's core 0 makes of the segments, where the state of their stream is `what` by then. Returns how many
 * segments stay. */
static uint64_t left(struct world *world, enum stream_is what, enum leat_disposition disposition)
{
    struct leat_node node = {.incarnation = world->nodes[AT].incarnation};
    struct leat_core core = {.node = &node};
    static struct core_parts parts;
    struct leat_stream_desc desc = {.id = world->logs[0].ref.stream};
    struct leat_stream stream = {.desc = &desc, .deleted = what == STREAM_GOING};
    struct leat_stream *by_id[1] = {NULL};
    struct leat_found_disposition *dispositions;
    core_parts_set(&core, &parts);
    if (what == STREAM_GOING || what == STREAM_THERE) by_id[0] = &stream;
    core.data->streams_by_id = by_id;
    core.data->stream_seen = what == STREAM_UNHEARD ? desc.id - 1 : desc.id;
    core.data->replicate->backup = world->nodes[AT].backup;
    node.store = world->nodes[AT].store;
    node.found = leat_store_found(node.store, &node.found_count);
    assert_int_equal(node.found_count, OWN);
    dispositions = calloc(node.found_count, sizeof *dispositions);
    assert_non_null(dispositions);
    for (size_t i = 0; i < node.found_count; i++)
        dispositions[i] = (struct leat_found_disposition){.log = node.found[i].seg->log,
                                                          .segment = node.found[i].seg->id.v,
                                                          .disposition = disposition};
    node.dispositions = dispositions;
    assert_int_equal(leat_replicate_take_found(&core), LEAT_OK);
    leat_store_found_done(node.store);
    world_run(world, 200 * 1000);
    free(dispositions);
    return segments(world);
}

/* Goal: own segments of a deleted stream go as its replicas do, whatever disposition was decided for them. */
static void own_segments_of_a_stream_that_goes_amid_a_start_go(void **state)
{
    (void)state;
    static const enum leat_disposition dispositions[] = {LEAT_DISPOSITION_SERVED,
                                                         LEAT_DISPOSITION_KEPT};
    for (unsigned i = 0; i < 2; i++) {
        struct world *world = started(71 + i);
        assert_int_equal(left(world, STREAM_GONE, dispositions[i]), 0);
        world_free(world);
    }
}

/* Goal: where the log is made all the same, and goes with its stream, they are the log's alone. */
static void own_segments_of_a_stream_on_its_way_out_are_its_logs(void **state)
{
    (void)state;
    struct world *world = started(73);
    assert_int_equal(left(world, STREAM_GOING, LEAT_DISPOSITION_SERVED), OWN);
    world_free(world);
}

/* Goal: nothing goes of a stream that is there, or that was not heard of. */
static void own_segments_of_other_streams_stay(void **state)
{
    (void)state;
    static const enum stream_is streams[] = {STREAM_THERE, STREAM_UNHEARD};
    for (unsigned i = 0; i < 2; i++) {
        struct world *world = started(74 + i);
        assert_in_range(left(world, streams[i], LEAT_DISPOSITION_SERVED), OWN + 1, 1000);
        world_free(world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_segments_of_a_stream_that_goes_amid_a_start_go),
        cmocka_unit_test(own_segments_of_a_stream_on_its_way_out_are_its_logs),
        cmocka_unit_test(own_segments_of_other_streams_stay),
    };
    return cmocka_run_group_tests_name("broker gone", tests, NULL, NULL);
}
