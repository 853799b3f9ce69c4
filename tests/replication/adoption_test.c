/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that become their node's own segments, and fences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/replication/world.h"

static const struct leat_epoch newest = {UINT32_MAX};
static struct leat_segment *adopted;
static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg;
    assert_int_equal(rc, LEAT_OK);
    adopted = seg;
}

/* A new owner adopts the end of the log that was decided. */
static struct leat_prefix_id adopt_head(struct world *world, unsigned node)
{
    const struct replica *rep =
        LEAT_CONTAINER(world->nodes[node].backup->replicas.next, const struct replica, link);
    struct leat_scan scan;
    leat_scan_segment(rep->seg->buffer, rep->seg->capacity, &scan);
    adopted = NULL;
    struct leat_backup *backup = world->nodes[node].backup;
    struct leat_prefix_id prefix_id = {scan.bytes, scan.crc}, other = {scan.bytes, scan.crc ^ 1};
    assert_int_equal(leat_backup_adopt(backup, world->logs[0].ref, newest, rep->seg->id, other,
                                       scan.next_offset, 1, 0, on_adopted, NULL),
                     LEAT_E_NOT_FOUND);
    assert_int_equal(leat_backup_adopt(backup, world->logs[0].ref, newest, rep->seg->id, prefix_id,
                                       scan.next_offset, 1, 0, on_adopted, NULL),
                     LEAT_OK);
    world_run(world, 200 * 1000);
    assert_non_null(adopted);
    assert_int_equal(adopted->role, LEAT_SEGMENT_OWN);
    assert_int_equal(adopted->state, LEAT_SEGMENT_CLOSED);
    struct leat_backup_status status;
    leat_backup_status(backup, &status);
    assert_int_equal(status.replicas, 0);
    return prefix_id;
}

/* The restarted node finds the segment as its own, closed at the decided end. */
static void restart_with_own(struct world *world, unsigned node)
{
    struct leat_backup_status status;
    world_node_kill(world, node, true);
    world_node_start(world, node);
    leat_backup_status(world->nodes[node].backup, &status);
    assert_int_equal(status.replicas, 0);
}

static unsigned fences;
static void on_fenced(void *arg)
{
    (void)arg;
    fences++;
}

/* Goal: after a fence nothing more is acked, what was acked is in private copies, and whatever the
 * writer still stores into the old memory changes nothing. */
static void fence_keeps_private_copies_and_refuses_the_writer(void **state)
{
    (void)state;
    struct world *world = world_ready(9, 3, 3, LEAT_DURABILITY_MEMORY);
    uint64_t before = world->marks_seen;
    world_append_all(world, 3, 1000); /* under way */
    fences = 0;
    world->coordinator_down = true; /* as for a node that was declared crashed */
    for (unsigned n = 1; n < 3; n++)
        assert_int_equal(leat_backup_fence(world->nodes[n].backup, "n0", 100, on_fenced, NULL),
                         LEAT_OK);
    assert_int_equal(fences, 0);
    uint64_t acked = world->logs[0].acked;
    world_run(world, 500 * 1000);
    assert_int_equal(fences, 2);
    assert_int_equal(world->logs[0].acked, acked);
    world_check(world);
    assert_true(world->marks_seen > before);
    for (unsigned i = 0; i < WORLD_ARENAS_MAX; i++)
        if (world->arenas[i].used && world->arenas[i].node)
            memset(world->arenas[i].arena.base, 0x5a, LEAT_ARENA_STEP_BYTES);
    before = world->marks_seen;
    world_check(world);
    assert_int_equal(world->marks_seen, before + 2);
    (void)adopt_head(world, 1);
    restart_with_own(world, 1);
    /* The memory itself goes. */
    for (unsigned i = 0; i < WORLD_ARENAS_MAX; i++)
        if (world->arenas[i].used && world->arenas[i].node) assert_true(world->arenas[i].closed);
    world_free(world);
}

/* A segment whose log found other bytes than recorded comes back as a copy that counts for nothing: the end of the log
 * is another copy's. */
static void segment_given_back_damaged_is_not_adopted_again(void **state)
{
    (void)state;
    struct world *world = world_ready(9, 3, 3, LEAT_DURABILITY_MEMORY);
    struct leat_log_ref log = world->logs[0].ref;
    world_append_all(world, 3, 1000);
    world->coordinator_down = true;
    fences = 0;
    for (unsigned n = 1; n < 3; n++)
        assert_int_equal(leat_backup_fence(world->nodes[n].backup, "n0", 100, on_fenced, NULL),
                         LEAT_OK);
    world_run(world, 500 * 1000);
    for (int damaged = 0; damaged < 2; damaged++) {
        struct leat_prefix_id prefix_id = adopt_head(world, 1 + (unsigned)damaged);
        struct leat_segment_id id = adopted->id;
        struct leat_backup *backup = world->nodes[1 + damaged].backup;
        assert_int_equal(leat_backup_take_own(backup, adopted, 1, damaged), LEAT_OK);
        world_run(world, 200 * 1000);
        assert_int_equal(leat_backup_holds(backup, log, id, prefix_id), !damaged);
        assert_int_equal(
            leat_backup_adopt(backup, log, newest, id, prefix_id, 0, 1, 0, on_adopted, NULL),
            damaged ? LEAT_E_NOT_FOUND : LEAT_OK);
        world_run(world, 200 * 1000);
    }
    world_free(world);
}

static unsigned tries;
static leat_err tried_rc;
static void on_adopt_tried(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg;
    tries++;
    tried_rc = rc;
    adopted = seg;
}

static leat_err adopt_try(struct world *world, unsigned node, const struct leat_scan *end)
{
    unsigned before = tries;
    assert_int_equal(leat_backup_adopt(world->nodes[node].backup, world->logs[0].ref, newest,
                                       (struct leat_segment_id){end->header.segment},
                                       (struct leat_prefix_id){end->bytes, end->crc},
                                       end->next_offset, 1, 0, on_adopt_tried, NULL),
                     LEAT_OK);
    world_run(world, 200 * 1000);
    assert_int_equal(tries, before + 1);
    return tried_rc;
}

/* Goal: of two replicas of one segment, the disk has refused the end of the first, and the writer has made the second
 * in its place. The first is never called closed, and the end of the log is the second. */
static void adoption_that_the_disk_refuses_leaves_the_copy_that_it_took(void **state)
{
    (void)state;
    struct world *world = world_ready(12, 2, 2, LEAT_DURABILITY_DISK);
    struct leat_backup *backup = world->nodes[1].backup;
    struct fake_world *disk = &world->nodes[1].disk;
    disk->fail_at = disk->op_count + 1;
    world_append_all(world, 1, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    assert_int_equal(backup->replica_count, 2);
    fences = 0;
    world->coordinator_down = true;
    assert_int_equal(leat_backup_fence(backup, "n0", 100, on_fenced, NULL), LEAT_OK);
    world_run(world, 500 * 1000);
    assert_int_equal(fences, 1);
    struct replica *refused = LEAT_CONTAINER(backup->replicas.next, struct replica, link);
    struct replica *taken = LEAT_CONTAINER(backup->replicas.prev, struct replica, link);
    struct leat_scan end, other;
    leat_scan_segment(refused->seg->buffer, refused->seg->capacity, &other);
    leat_scan_segment(taken->seg->buffer, taken->seg->capacity, &end);
    assert_true(end.bytes == other.bytes && end.crc == other.crc);
    assert_true(refused->flushed < end.bytes && taken->flushed == end.bytes);

    taken->damaged = true; /* as if it were not there */
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(adopt_try(world, 1, &end), LEAT_E_DISK);
        assert_false(leat_backup_holds(backup, world->logs[0].ref, refused->seg->id,
                                       (struct leat_prefix_id){end.bytes, end.crc}));
    }
    taken->damaged = false;
    assert_int_equal(adopt_try(world, 1, &end), LEAT_OK);
    assert_non_null(adopted);
    leat_scan_segment(adopted->file->durable + adopted->file_offset, end.bytes, &other);
    assert_true(other.bytes == end.bytes && other.crc == end.crc);
    world_free(world);
}

/* Goal: wherever the disk fails an adoption, what is left is a replica: what the store tells of it later goes to
 * the backup, not to a log that there is none of. */
static void adoption_that_the_disk_fails_leaves_a_replica(void **state)
{
    (void)state;
    unsigned failed = 0;
    leat_err rc = LEAT_E_DISK;
    for (uint64_t op = 1; rc != LEAT_OK; op++) {
        struct world *world = world_ready(9, 3, 3, LEAT_DURABILITY_MEMORY);
        struct leat_backup *backup = world->nodes[1].backup;
        struct fake_world *disk = &world->nodes[1].disk;
        world_append_all(world, 3, 1000);
        assert_true(world_settle(world, 10 * 1000 * 1000));
        fences = 0;
        world->coordinator_down = true;
        assert_int_equal(leat_backup_fence(backup, "n0", 100, on_fenced, NULL), LEAT_OK);
        world_run(world, 500 * 1000);
        assert_int_equal(fences, 1);
        const struct replica *rep =
            LEAT_CONTAINER(backup->replicas.next, const struct replica, link);
        struct leat_scan end;
        leat_scan_segment(rep->seg->buffer, rep->seg->capacity, &end);
        disk->fail_at = disk->op_count + op;
        rc = adopt_try(world, 1, &end);
        if (rc != LEAT_OK) {
            assert_int_equal(rep->seg->role, LEAT_SEGMENT_REPLICA);
            assert_ptr_equal(rep->seg->log_pointer, rep);
            failed++;
        }
        world_free(world);
    }
    assert_true(failed >= 2); /* closing it, and calling it the node's own */
}

/* Goal: a log takes a replica while its writer is given up. The fence has nothing to move then, and does not
 * wait for what is gone. */
static void fence_in_the_middle_of_an_adoption_ends(void **state)
{
    (void)state;
    struct world *world = world_ready(9, 3, 3, LEAT_DURABILITY_MEMORY);
    struct leat_backup *backup = world->nodes[1].backup;
    world_append_all(world, 3, 1000);
    assert_true(world_settle(world, 10 * 1000 * 1000));
    world->coordinator_down = true;
    const struct replica *rep = LEAT_CONTAINER(backup->replicas.next, const struct replica, link);
    struct leat_scan scan;
    leat_scan_segment(rep->seg->buffer, rep->seg->capacity, &scan);
    fences = 0;
    adopted = NULL;
    assert_int_equal(leat_backup_adopt(backup, world->logs[0].ref, newest, rep->seg->id,
                                       (struct leat_prefix_id){scan.bytes, scan.crc},
                                       scan.next_offset, 1, 0, on_adopted, NULL),
                     LEAT_OK);
    assert_int_equal(leat_backup_fence(backup, "n0", 100, on_fenced, NULL), LEAT_OK);
    assert_int_equal(fences, 0);
    world_run(world, 500 * 1000);
    assert_non_null(adopted);
    assert_int_equal(fences, 1);
    assert_int_equal(backup->moves, 0);
    world_free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segment_given_back_damaged_is_not_adopted_again),
        cmocka_unit_test(fence_keeps_private_copies_and_refuses_the_writer),
        cmocka_unit_test(adoption_that_the_disk_refuses_leaves_the_copy_that_it_took),
        cmocka_unit_test(adoption_that_the_disk_fails_leaves_a_replica),
        cmocka_unit_test(fence_in_the_middle_of_an_adoption_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
