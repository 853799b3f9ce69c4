/* SPDX-License-Identifier: Apache-2.0 */
/* A copy that is longer than where its log ended, on the world of world.h: hibernated, or closed. */
#ifndef LEAT_TESTS_REPLICATION_LONGER_H
#define LEAT_TESTS_REPLICATION_LONGER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/replication/world_parts.h"

/* The same segment, two ends: what a backup has of it, and where the log may have ended before that. */
struct scene {
    struct world *world;
    unsigned at, without; /* the backup, and one that has none of it */
    struct leat_log_ref log;
    struct leat_segment_id id;
    struct leat_prefix_id whole, end;
    uint64_t end_offset;
};

static inline struct replica *replica_of(struct world *world, unsigned node, uint64_t segment)
{
    LEAT_LIST_EACH(&world->nodes[node].backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (rep->seg && rep->seg->id.v == segment) return rep;
    }
    return NULL;
}

static inline struct replica *replica(const struct scene *scene)
{
    struct replica *rep = replica_of(scene->world, scene->at, scene->id.v);
    assert_non_null(rep);
    return rep;
}

static inline struct leat_backup *backup(const struct scene *scene)
{
    return scene->world->nodes[scene->at].backup;
}

static inline bool same(struct leat_prefix_id a, struct leat_prefix_id b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

static inline uint8_t *bytes_of(const struct replica *rep)
{
    return rep->seg->file->now + rep->seg->file_offset;
}

static inline void on_hibernated(void *arg, struct leat_log *log)
{
    (void)log;
    *(bool *)arg = true;
}

static inline void nodes_find(struct scene *scene)
{
    scene->at = scene->without = 0;
    for (unsigned n = 1; n < scene->world->node_count; n++) {
        if (replica_of(scene->world, n, scene->id.v))
            scene->at = n;
        else
            scene->without = n;
    }
    assert_true(scene->at != 0 && scene->without != 0);
}

static inline void end_take(struct scene *scene, const struct leat_scan *scan)
{
    assert_true(scan->started);
    scene->end = (struct leat_prefix_id){scan->bytes, scan->crc};
    scene->end_offset = scan->next_offset;
    scene->whole = replica(scene)->seg->prefix_id;
    assert_in_range(scene->end.bytes, 1, scene->whole.bytes - 1);
}

/* Hibernated behind a batch more than was acked when its log ended. */
static inline struct scene hibernated(uint64_t seed)
{
    struct world *world = world_new(seed, 4, 3, 1, LEAT_DURABILITY_DISK, 0);
    struct world_log *log = &world->logs[0];
    struct scene scene = {.world = world, .log = log->ref};
    struct leat_scan scan = {0};
    for (unsigned i = 0; i < 2; i++) {
        while (!world_append(log, 100 + 5000 * i))
            world_step(world);
        world_run(world, 500 * 1000);
        scene.id.v = leat_log_head_segment(log->log);
        nodes_find(&scene);
        const struct leat_segment *seg = replica(&scene)->seg;
        if (i == 0) leat_scan_segment(seg->buffer, seg->capacity, &scan);
    }
    assert_int_equal(scan.header.segment, scene.id.v);
    bool done = false;
    leat_log_stop(log->log, on_hibernated, &done);
    world_run(world, 1000 * 1000);
    assert_true(done);
    assert_int_equal(replica(&scene)->seg->state, LEAT_SEGMENT_HIBERNATED);
    end_take(&scene, &scan);
    return scene;
}

/* Closed by a close entry that was never acked. */
static inline struct scene closed(uint64_t seed)
{
    struct world *world = world_new(seed, 4, 3, 1, LEAT_DURABILITY_DISK, 0);
    struct scene scene = {.world = world, .log = world->logs[0].ref, .id = {1}};
    for (unsigned i = 0; i < 100; i++)
        for (unsigned tries = 0; !world_append(&world->logs[0], 3000) && tries < 200000; tries++) {
            world_step(world);
            world_care(world);
        }
    world_run(world, 2 * 1000 * 1000);
    nodes_find(&scene);
    const struct replica *rep = replica(&scene);
    assert_int_equal(rep->seg->state, LEAT_SEGMENT_CLOSED);
    assert_null(rep->seg->buffer);
    struct leat_scan scan;
    leat_scan_segment(bytes_of(rep), rep->seg->prefix_id.bytes - 1, &scan);
    assert_false(scan.closed);
    end_take(&scene, &scan);
    return scene;
}

static inline struct scene either(uint64_t seed, bool is_closed)
{
    return is_closed ? closed(seed) : hibernated(seed);
}

#endif
