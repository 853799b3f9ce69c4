/* SPDX-License-Identifier: Apache-2.0 */
/* PULL: a whole segment from another node's backup, whatever that sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "multilog/internal.h"
#include "tests/replication/world_parts.h"

/* A closed segment that two backups have and the third has not. */
struct scene {
    struct world *world;
    struct leat_backup_pull pull;
    unsigned to, from[2];
    unsigned done;
    leat_err rc;
    bool theirs; /* what was asked with is somebody else's memory once it has ended */
};

static struct replica *replica_of(struct world *world, unsigned node, uint64_t segment)
{
    LEAT_LIST_EACH(&world->nodes[node].backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (rep->seg && rep->seg->id.v == segment) return rep;
    }
    return NULL;
}

static void on_pulled(struct leat_backup_pull *pull, leat_err rc)
{
    struct scene *scene = pull->owner;
    scene->done++;
    scene->rc = rc;
    if (scene->theirs) memset(pull, 0x5a, sizeof *pull);
}

static void scene_look(struct scene *scene, uint64_t segment)
{
    unsigned have = 0;
    scene->to = 0;
    for (unsigned n = 1; n < 4; n++) {
        const struct replica *rep = replica_of(scene->world, n, segment);
        if (!rep) scene->to = n;
        if (rep && have < 2) scene->from[have++] = n;
        if (!rep || rep->seg->state != LEAT_SEGMENT_CLOSED) continue;
        scene->pull.prefix_id = rep->seg->prefix_id;
        scene->pull.next_offset = rep->seg->next_offset;
    }
    assert_int_equal(have, 2);
    assert_true(scene->to != 0 && scene->pull.prefix_id.bytes > 0);
}

/* batch_bytes: the larger they are, the larger the segments. */
static struct scene *scene_sized(uint64_t seed, uint32_t batch_bytes, uint32_t segment_bytes_max)
{
    struct scene *scene = calloc(1, sizeof *scene);
    assert_non_null(scene);
    struct world *world = world_new(seed, 4, 3, 0, LEAT_DURABILITY_MEMORY, 0);
    scene->world = world;
    world->segment_bytes_max = segment_bytes_max;
    world->log_count = 1;
    world_log_open(world, 0);
    for (unsigned i = 0; i < 100; i++)
        for (unsigned tries = 0; !world_append(&world->logs[0], batch_bytes) && tries < 200000;
             tries++) {
            world_step(world);
            world_care(world);
        }
    world_run(world, 2 * 1000 * 1000);
    assert_true(world_is_whole(world));
    scene->pull = (struct leat_backup_pull){
        .log = world->logs[0].ref, .segment = {1}, .on_done = on_pulled, .owner = scene};
    scene_look(scene, 1);
    return scene;
}

static struct scene *scene_new(uint64_t seed)
{
    return scene_sized(seed, 3000, 64 * 1024);
}

/* A segment of two pieces: a log's segments grow. */
static struct scene *scene_long(uint64_t seed)
{
    struct scene *scene = scene_sized(seed, 60 * 1000, 4 * 1024 * 1024);
    scene->pull.segment.v = 4;
    scene_look(scene, 4);
    assert_in_range(scene->pull.prefix_id.bytes, 513 * 1024, 1024 * 1024);
    return scene;
}

static void scene_free(struct scene *scene)
{
    world_free(scene->world);
    free(scene);
}

/* Not longer: what nobody needs is dropped again by its owner's next audit. */
static void until_done(struct scene *scene, unsigned done)
{
    for (unsigned i = 0; scene->done < done && i < 100000; i++)
        world_step(scene->world);
    assert_int_equal(scene->done, done);
}

/* From so many nodes: the one that has not got it is asked first when there are three. */
static leat_err pulled(struct scene *scene, unsigned count)
{
    struct leat_backup *backup = scene->world->nodes[scene->to].backup;
    unsigned at = 0, before = scene->done;
    if (count == 3) scene->pull.nodes[at++] = scene->to;
    for (unsigned i = 0; at < count; i++)
        scene->pull.nodes[at++] = scene->from[i];
    scene->pull.node_count = count;
    struct leat_backup_pull asked = scene->pull;
    assert_int_equal(leat_backup_pull(backup, &scene->pull), LEAT_OK);
    assert_int_equal(scene->done, before); /* never inside the call */
    scene->theirs = true;
    until_done(scene, before + 1);
    scene->theirs = false;
    scene->pull = asked;
    return scene->rc;
}

static bool holds(struct scene *scene)
{
    return leat_backup_holds(scene->world->nodes[scene->to].backup, scene->pull.log,
                             scene->pull.segment, scene->pull.prefix_id);
}

static uint32_t replicas(struct scene *scene)
{
    struct leat_backup_status status;
    leat_backup_status(scene->world->nodes[scene->to].backup, &status);
    return status.replicas;
}

static const struct replica *pulled_here(struct scene *scene)
{
    const struct replica *rep = replica_of(scene->world, scene->to, 1);
    assert_non_null(rep);
    assert_int_equal(rep->seg->state, LEAT_SEGMENT_CLOSED);
    return rep;
}

static void owner_counts_on(struct scene *scene, uint64_t handle)
{
    struct world *world = scene->world;
    struct rep_pair pair = {handle, REP_SETTLE_KEEP + REP_SETTLE_WORDS * (uint64_t)WORLD_EPOCH, 0};
    uint8_t control[64];
    struct leat_frame frame = {.kind = LEAT_REP_SETTLE, .control = control};
    frame.control_bytes = rep_pairs_encode(&pair, 1, control, sizeof control);
    struct leat_link_identity who = {
        .node = "n0", .incarnation = world->nodes[0].incarnation, .cores = 1};
    struct leat_link_ticket ticket = {.connection = UINT64_MAX, .kind = LEAT_REP_SETTLE};
    leat_backup_request(world->nodes[scene->to].backup, &who, &frame, &ticket);
    for (unsigned i = 0; i < 20; i++) /* until the store has done it; before the next audit */
        world_step(world);
}

static void node_restarts(struct scene *scene)
{
    world_node_kill(scene->world, scene->to, false);
    world_node_start(scene->world, scene->to);
}

/* A copy that was cut for an attempt of recovery says so, also after a restart, until an owner counts on it. */
static void pull_for_an_attempt_is_provisional_until_an_owner_counts_on_it(void **state)
{
    (void)state;
    for (int confirmed = 0; confirmed < 2; confirmed++) {
        struct scene *scene = scene_new(31);
        scene->pull.provisional = true;
        assert_int_equal(pulled(scene, 2), LEAT_OK);
        assert_true(pulled_here(scene)->seg->provisional);
        if (confirmed) owner_counts_on(scene, pulled_here(scene)->handle);
        assert_int_equal(pulled_here(scene)->seg->provisional, !confirmed);
        node_restarts(scene);
        assert_int_equal(pulled_here(scene)->seg->provisional, !confirmed);
        scene_free(scene);
    }
    struct scene *scene = scene_new(31);
    assert_int_equal(pulled(scene, 2), LEAT_OK); /* for an owner */
    assert_false(pulled_here(scene)->seg->provisional);
    scene_free(scene);
}

/* Goal: the number of bytes that a start has passed over after a segment goes with the segment's bytes to each node
 * that pulls, and stays over a restart. A number that is impossibly large is cut down, whichever node reports it. */
static void pull_brings_what_was_passed_over(void **state)
{
    (void)state;
    for (int absurd = 0; absurd < 2; absurd++) {
        struct scene *scene = scene_new(33);
        uint32_t capacity = replica_of(scene->world, scene->from[0], 1)->seg->capacity;
        for (unsigned i = 0; i < 2; i++)
            replica_of(scene->world, scene->from[i], 1)->seg->passed_bytes = absurd ? ~0u : 70;
        assert_int_equal(pulled(scene, 2), LEAT_OK);
        assert_int_equal(pulled_here(scene)->seg->passed_bytes, absurd ? capacity : 70);
        node_restarts(scene);
        assert_int_equal(pulled_here(scene)->seg->passed_bytes, absurd ? capacity : 70);
        scene_free(scene);
    }
}

static void on_seen(void *arg, struct leat_log *log)
{
    (void)log;
    *(bool *)arg = true;
}

/* The number of nodes whose segment 1 has that many bytes passed over. */
static unsigned copies_with(struct scene *scene, uint32_t passed_bytes)
{
    unsigned count = 0;
    for (unsigned n = 1; n < 4; n++) {
        const struct replica *rep = replica_of(scene->world, n, 1);
        count += rep && rep->seg->state == LEAT_SEGMENT_CLOSED && !rep->seg->incomplete &&
                 !leat_segment_is_damaged(rep->seg) && rep->seg->passed_bytes == passed_bytes;
    }
    return count;
}

/* Goal: all copies record the bytes that their owner passed over, so that the next owner of the log reports these
 * bytes: existing copies learn of them in the next session, new copies when they are made. Once an operator has seen
 * the report, no copy records the bytes. */
static void passed_over_is_noted_with_all_copies_until_it_was_seen(void **state)
{
    (void)state;
    bool seen = false;
    struct scene *scene = scene_new(34);
    struct world *world = scene->world;
    struct leat_log *log = world->logs[0].log;
    log_slot_find(log, 1)->seg->passed_bytes = 70;
    log->passed_look = true;
    world_link_cut(world, scene->from[0]);
    struct leat_backup *rots = world->nodes[scene->from[1]].backup;
    const struct replica *corrupt = replica_of(world, scene->from[1], 1);
    uint64_t handle = corrupt->handle;
    leat_backup_on_damaged(rots, corrupt->seg);
    world_run(world, 100 * 1000 * 1000);
    assert_true(world_is_whole(world));
    assert_null(backup_find(rots, handle)); /* there is a new one */
    assert_int_equal(copies_with(scene, 70), 2);
    leat_log_skip_missing(log, on_seen, &seen);
    world_run(world, 2 * 1000 * 1000);
    assert_true(seen);
    assert_int_equal(copies_with(scene, 0), 2);
    scene->to = scene->from[0];
    node_restarts(scene);
    assert_int_equal(pulled_here(scene)->seg->passed_bytes, 0);
    scene_free(scene);
}

/* Whole, closed and no mark; from whichever of the nodes has it. */
static void pull_brings_exactly_these_bytes(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= 3; count += 2) {
        struct scene *scene = scene_new(20 + count);
        assert_false(holds(scene));
        assert_int_equal(pulled(scene, count), LEAT_OK);
        assert_true(holds(scene));
        const struct replica *rep = replica_of(scene->world, scene->to, 1);
        const struct replica *other = replica_of(scene->world, scene->from[0], 1);
        assert_int_equal(rep->seg->state, LEAT_SEGMENT_CLOSED);
        assert_int_equal(rep->seg->next_offset, other->seg->next_offset);
        assert_int_equal(rep->seg->base_offset, other->seg->base_offset);
        assert_false(rep->seg->incomplete);
        scene_free(scene);
    }
}

/* Only the bytes: no replica is made, and what does not match is not given out. */
static void pull_into_memory_brings_the_bytes_alone(void **state)
{
    (void)state;
    struct scene *scene = scene_new(29);
    const struct replica *other = replica_of(scene->world, scene->from[0], 1);
    uint32_t before = replicas(scene);
    scene->pull.into = calloc(1, scene->pull.prefix_id.bytes);
    assert_int_equal(pulled(scene, 3), LEAT_OK);
    struct leat_scan scan;
    leat_scan_segment(scene->pull.into, scene->pull.prefix_id.bytes, &scan);
    assert_int_equal(scan.bytes, other->seg->prefix_id.bytes);
    assert_int_equal(scan.crc, other->seg->prefix_id.crc);
    assert_int_equal(replicas(scene), before);
    for (unsigned i = 0; i < 2; i++)
        replica_of(scene->world, scene->from[i], 1)->seg->integrity = LEAT_INTEGRITY_CORRUPT;
    assert_int_equal(pulled(scene, 3),
                     LEAT_E_NOT_FOUND); /* what is known to be damaged is no source */
    for (unsigned i = 0; i < 2; i++)
        replica_of(scene->world, scene->from[i], 1)->seg->integrity = LEAT_INTEGRITY_OK;
    scene->pull.segment.v++;
    assert_int_equal(pulled(scene, 3), LEAT_E_NOT_FOUND);
    assert_int_equal(replicas(scene), before);
    free(scene->pull.into);
    scene->pull.into = NULL;
    scene_free(scene);
}

/* Another CRC is another segment: nobody has that, and nothing is left of the attempt. */
static void pull_of_bytes_that_nobody_has_leaves_nothing(void **state)
{
    (void)state;
    struct scene *scene = scene_new(31);
    uint32_t before = replicas(scene);
    scene->pull.prefix_id.crc ^= 1;
    assert_int_equal(pulled(scene, 3), LEAT_E_NOT_FOUND);
    assert_false(holds(scene));
    assert_int_equal(replicas(scene), before);
    scene_free(scene);
}

static void source_rots(struct scene *scene, unsigned from)
{
    const struct leat_segment *seg = replica_of(scene->world, scene->from[from], 1)->seg;
    uint32_t at = seg->prefix_id.bytes / 2;
    if (seg->buffer)
        seg->buffer[at] ^= 0x10;
    else
        seg->file->now[seg->file_offset + at] ^= 0x10;
}

/* One source is corrupt, and the other can't be asked, in either order: that does not mean that no node has the segment
 * whole. */
static void pull_of_what_a_node_may_have_that_is_not_there_is_to_be_tried_again(void **state)
{
    (void)state;
    for (unsigned corrupt = 0; corrupt < 2; corrupt++) {
        struct scene *scene = scene_new(43);
        source_rots(scene, corrupt);
        world_node_kill(scene->world, scene->from[!corrupt], false);
        leat_err rc = pulled(scene, 3);
        assert_int_equal(leat_err_class(rc), LEAT_CLASS_RETRY);
        scene_free(scene);
    }
}

/* The first source sends wrong bytes and claims the right prefix id: the bytes are refused, and the next source is
 * asked. Where no other source is left, the damage is reported. */
static void pull_believes_nothing_that_it_has_not_checked(void **state)
{
    (void)state;
    struct scene *scene = scene_new(41);
    uint32_t before = replicas(scene);
    source_rots(scene, 0);
    assert_int_equal(pulled(scene, 1), LEAT_E_DAMAGED);
    assert_false(holds(scene));
    world_run(scene->world, 100 * 1000); /* what has arrived goes */
    assert_int_equal(replicas(scene), before);
    assert_int_equal(pulled(scene, 2), LEAT_OK);
    assert_true(holds(scene));
    scene_free(scene);
}

/* Of two replicas on one node one is torn: its last entry has arrived, and an earlier part has not. */
static void pull_where_one_of_two_is_torn_serves_the_other(void **state)
{
    (void)state;
    for (unsigned torn = 0; torn < 2; torn++) {
        struct scene *scene = scene_new(45 + torn);
        assert_int_equal(pulled(scene, 1), LEAT_OK);
        assert_int_equal(pulled(scene, 1), LEAT_OK);
        struct leat_backup *two = scene->world->nodes[scene->to].backup;
        unsigned at = 0;
        LEAT_LIST_EACH(&two->replicas, it)
        {
            struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
            if (!rep->seg || rep->seg->id.v != 1 || at++ != torn) continue;
            assert_non_null(rep->seg->buffer);
            rep->seg->state = LEAT_SEGMENT_OPEN;
            rep->seg->buffer[rep->seg->prefix_id.bytes / 2] ^= 0x10;
        }
        assert_int_equal(at, 2);
        scene->from[1] = scene->to;
        scene->to = scene->from[0];
        scene->from[0] = scene->from[1];
        assert_int_equal(pulled(scene, 1), LEAT_OK);
        scene_free(scene);
    }
}

/* A source that dies in the middle is passed over; when all sources have died the pull ends with the reason, and can be
 * started again. */
static void pull_goes_on_with_the_next_when_a_source_dies(void **state)
{
    (void)state;
    struct scene *scene = scene_new(51);
    struct leat_backup *backup = scene->world->nodes[scene->to].backup;
    scene->pull.nodes[0] = scene->from[0];
    scene->pull.node_count = 1;
    assert_int_equal(leat_backup_pull(backup, &scene->pull), LEAT_OK);
    world_step(scene->world); /* asked */
    world_node_kill(scene->world, scene->from[0], false);
    until_done(scene, 1);
    assert_true(scene->rc != LEAT_OK && leat_err_class(scene->rc) == LEAT_CLASS_RETRY);
    assert_false(holds(scene));
    scene->pull.nodes[0] = scene->from[0];
    scene->pull.nodes[1] = scene->from[1];
    scene->pull.node_count = 2;
    assert_int_equal(leat_backup_pull(backup, &scene->pull), LEAT_OK);
    until_done(scene, 2);
    assert_int_equal(scene->rc, LEAT_OK);
    assert_true(holds(scene));
    scene_free(scene);
}

static void mute_both(struct scene *scene, bool first, bool second)
{
    scene->world->nodes[scene->from[0]].mute = first;
    scene->world->nodes[scene->from[1]].mute = second;
}

static void pull_both(struct scene *scene)
{
    scene->pull.nodes[0] = scene->from[0];
    scene->pull.nodes[1] = scene->from[1];
    scene->pull.node_count = 2;
    struct leat_backup *backup = scene->world->nodes[scene->to].backup;
    assert_int_equal(leat_backup_pull(backup, &scene->pull), LEAT_OK);
}

/* Its link is up, and no bytes come: the other one has them all the same. */
static void pull_leaves_a_source_that_gives_nothing(void **state)
{
    (void)state;
    struct scene *scene = scene_new(53);
    uint64_t start_us = scene->world->now_us;
    mute_both(scene, true, false);
    pull_both(scene);
    until_done(scene, 1);
    assert_int_equal(scene->rc, LEAT_OK);
    assert_in_range(scene->world->now_us - start_us, 1000 * 1000, 1500 * 1000);
    mute_both(scene, false, false);
    scene_free(scene);
}

/* In the middle, after pieces that came at once: what has arrived does not make it wait for long. */
static void pull_leaves_a_source_that_stops_amid_a_segment(void **state)
{
    (void)state;
    struct scene *scene = scene_long(54);
    pull_both(scene);
    while (scene->pull.at == 0)
        world_step(scene->world);
    assert_true(scene->pull.at < scene->pull.prefix_id.bytes);
    uint64_t stop_us = scene->world->now_us;
    mute_both(scene, true, false);
    until_done(scene, 1);
    assert_int_equal(scene->rc, LEAT_OK);
    assert_true(holds(scene));
    assert_in_range(scene->world->now_us - stop_us, 500 * 1000, 1500 * 1000);
    mute_both(scene, false, false);
    scene_free(scene);
}

/* Time passes, no further than that. */
static void step_to(struct world *world, uint64_t us)
{
    uint64_t until_us = world->now_us + us;
    while (world->now_us < until_us) {
        if (world->nodes[0].wake_us > until_us) world->nodes[0].wake_us = until_us;
        world_step(world);
    }
}

/* Bytes come, and so slowly that an attempt would be over before the last: the next one is asked. */
static void pull_leaves_a_source_that_is_slow_all_along(void **state)
{
    (void)state;
    struct scene *scene = scene_long(55);
    struct world *world = scene->world;
    struct world_node *first = &world->nodes[scene->from[0]];
    pull_both(scene);
    step_to(world, 100);
    first->mute = true;
    step_to(world, 900 * 1000);
    first->mute = false;
    while (scene->pull.at == 0)
        world_step(world);
    assert_int_equal(scene->pull.node_at, 0); /* a piece has come in time */
    first->mute = true;
    step_to(world, 700 * 1000); /* the next one would, were it the first */
    first->mute = false;
    until_done(scene, 1);
    assert_int_equal(scene->pull.node_at, 1);
    assert_int_equal(scene->rc, LEAT_OK);
    scene_free(scene);
}

/* Nobody is faster: then a slow one is better than none. */
static void pull_waits_longer_where_all_are_slow(void **state)
{
    (void)state;
    struct scene *scene = scene_new(57);
    struct world *world = scene->world;
    uint64_t start_us = world->now_us;
    mute_both(scene, true, true);
    pull_both(scene);
    while (world->now_us < start_us + 5 * 1000 * 1000)
        world_step(world);
    assert_int_equal(scene->done, 0); /* both were left, and the first is asked again */
    mute_both(scene, false, false);
    until_done(scene, 1);
    assert_int_equal(scene->rc, LEAT_OK);
    assert_true(holds(scene));
    scene_free(scene);
}

/* No more than a named number at one time, and no lengths that no segment has. */
static void pull_is_refused_where_it_can_not_be(void **state)
{
    (void)state;
    struct scene *scene = scene_new(61);
    struct leat_backup *backup = scene->world->nodes[scene->to].backup;
    static struct leat_backup_pull pulls[LEAT_BACKUP_PULLS_MAX];
    scene->pull.prefix_id.bytes = 1;
    assert_int_equal(leat_backup_pull(backup, &scene->pull), LEAT_E_INVALID);
    scene_look(scene, 1);
    scene->pull.nodes[0] = scene->from[0];
    scene->pull.node_count = 1;
    for (unsigned i = 0; i < LEAT_BACKUP_PULLS_MAX; i++) {
        pulls[i] = scene->pull;
        pulls[i].prefix_id.crc ^= 1; /* nobody has it */
        assert_int_equal(leat_backup_pull(backup, &pulls[i]), LEAT_OK);
    }
    assert_int_equal(leat_backup_pull(backup, &scene->pull), LEAT_E_AGAIN);
    until_done(scene, LEAT_BACKUP_PULLS_MAX);
    assert_int_equal(pulled(scene, 1), LEAT_OK);
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pull_brings_exactly_these_bytes),
        cmocka_unit_test(pull_for_an_attempt_is_provisional_until_an_owner_counts_on_it),
        cmocka_unit_test(pull_brings_what_was_passed_over),
        cmocka_unit_test(passed_over_is_noted_with_all_copies_until_it_was_seen),
        cmocka_unit_test(pull_into_memory_brings_the_bytes_alone),
        cmocka_unit_test(pull_of_bytes_that_nobody_has_leaves_nothing),
        cmocka_unit_test(pull_of_what_a_node_may_have_that_is_not_there_is_to_be_tried_again),
        cmocka_unit_test(pull_believes_nothing_that_it_has_not_checked),
        cmocka_unit_test(pull_where_one_of_two_is_torn_serves_the_other),
        cmocka_unit_test(pull_goes_on_with_the_next_when_a_source_dies),
        cmocka_unit_test(pull_leaves_a_source_that_gives_nothing),
        cmocka_unit_test(pull_leaves_a_source_that_stops_amid_a_segment),
        cmocka_unit_test(pull_leaves_a_source_that_is_slow_all_along),
        cmocka_unit_test(pull_waits_longer_where_all_are_slow),
        cmocka_unit_test(pull_is_refused_where_it_can_not_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
