/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that are longer than where their log was decided to end, on the world of world.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "tests/replication/longer.h"

static const struct leat_epoch newest = {UINT32_MAX};

/* ---- serving ---- */

static unsigned pulls;
static leat_err pulled_rc;
static void on_pulled(struct leat_backup_pull *pull, leat_err rc)
{
    (void)pull;
    pulls++;
    pulled_rc = rc;
}

static leat_err pull_as(struct scene *scene, struct leat_prefix_id prefix_id, bool whole)
{
    struct leat_backup_pull pull = {.log = scene->log,
                                    .segment = scene->id,
                                    .prefix_id = prefix_id,
                                    .whole = whole,
                                    .nodes = {scene->at},
                                    .node_count = 1,
                                    .on_done = on_pulled};
    unsigned before = pulls;
    struct leat_backup *to = scene->world->nodes[scene->without].backup;
    assert_int_equal(leat_backup_pull(to, &pull), LEAT_OK);
    for (unsigned i = 0; pulls == before && i < 100000; i++)
        world_step(scene->world);
    assert_int_equal(pulls, before + 1);
    assert_int_equal(leat_backup_holds(to, scene->log, scene->id, prefix_id), pulled_rc == LEAT_OK);
    return pulled_rc;
}

static leat_err pull(struct scene *scene, struct leat_prefix_id prefix_id)
{
    return pull_as(scene, prefix_id, false);
}

static void on_looked(void *arg, bool begins)
{
    *(int *)arg = begins;
}

/* Goal: a pull of bytes up to the wanted end gets them from a longer copy, at the first time. A pull of a copy that
 * ends at the wanted end does not, whether the longer copy was looked at or not. */
static void longer_copy_is_served_up_to_the_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(71 + i, i == 1);
        assert_int_equal(pull_as(&scene, scene.end, true), LEAT_E_NOT_FOUND);
        assert_int_equal(replica(&scene)->looked[0].prefix_id.bytes, 0);
        int begins = -1;
        assert_int_equal(leat_backup_look(backup(&scene), replica(&scene)->handle, scene.end,
                                          on_looked, &begins),
                         LEAT_OK);
        for (unsigned k = 0; begins < 0 && k < 1000; k++)
            world_step(scene.world);
        assert_int_equal(begins, 1);
        assert_int_equal(pull_as(&scene, scene.end, true), LEAT_E_NOT_FOUND);
        replica(&scene)->looked[0] = (struct replica_looked){0};
        assert_int_equal(pull(&scene, scene.end), LEAT_OK);
        assert_true(
            same(replica(&scene)->seg->prefix_id, scene.whole)); /* nothing was cut for that */
        world_free(scene.world);
    }
}

/* Goal: a copy that begins with other bytes is not served, and is read once to find that out. */
static void longer_copy_of_other_bytes_is_not_served(void **state)
{
    (void)state;
    struct scene scene = hibernated(73);
    struct leat_prefix_id other = {scene.end.bytes, scene.end.crc ^ 1};
    assert_int_equal(pull(&scene, other), LEAT_E_NOT_FOUND);
    assert_true(same(replica(&scene)->looked[0].prefix_id, other));
    assert_false(replica(&scene)->looked[0].begins);
    uint64_t before = scene.world->nodes[scene.at].disk.op_count;
    assert_int_equal(pull(&scene, other), LEAT_E_NOT_FOUND);
    assert_int_equal(scene.world->nodes[scene.at].disk.op_count, before);
    /* Nor is one that is damaged in front. */
    bytes_of(replica(&scene))[scene.end.bytes / 2] ^= 0x10;
    assert_int_equal(pull(&scene, scene.end), LEAT_E_NOT_FOUND);
    world_free(scene.world);
}

/* Goal: a backup that pulls checks the bytes: where another node gives the wanted name and length to valid bytes that
 * differ from the wanted bytes, the backup makes no copy. */
static void pulled_bytes_that_are_others_make_no_copy(void **state)
{
    (void)state;
    struct scene scene = hibernated(76);
    struct leat_prefix_id others = {scene.whole.bytes, scene.whole.crc ^ 1};
    replica(&scene)->seg->prefix_id = others;
    assert_int_equal(pull(&scene, others), LEAT_E_DAMAGED);
    world_run(scene.world, 200 * 1000); /* what was begun goes */
    assert_null(replica_of(scene.world, scene.without, scene.id.v));
    replica(&scene)->seg->prefix_id = scene.whole;
    assert_int_equal(pull(&scene, scene.whole), LEAT_OK);
    world_free(scene.world);
}

/* Goal: no more longer copies are read at one time than the limit says. */
static void longer_copies_are_looked_at_a_few_at_a_time(void **state)
{
    (void)state;
    struct scene scene = hibernated(74);
    struct leat_backup *it = backup(&scene);
    it->looks = BACKUP_LOOKS_MAX;
    assert_int_equal(leat_backup_flush(it, scene.log, scene.id, scene.end, NULL, NULL),
                     LEAT_E_AGAIN);
    assert_int_equal(replica(&scene)->busy, 0);
    it->looks = 0;
    assert_int_equal(pull(&scene, scene.end), LEAT_OK);
    assert_int_equal(it->looks, 0);
    world_free(scene.world);
}

static void on_flushed(void *arg, leat_err rc)
{
    assert_int_equal(rc, LEAT_OK);
    *(bool *)arg = true;
}

static void info_take(void *arg, const struct leat_replica_info *info)
{
    struct leat_replica_info *out = arg;
    if (info->state == LEAT_SEGMENT_HIBERNATED) *out = *info;
}

/* Goal: a recovery that collects replicas learns that a longer copy begins with the wanted end, and a flush makes the
 * copy durable up to that end. */
static void longer_copy_counts_for_a_recovery(void **state)
{
    (void)state;
    struct scene scene = hibernated(75);
    struct leat_replica_info info = {0};
    leat_backup_each(backup(&scene), &scene.log, true, info_take, &info);
    assert_int_equal(info.begins[0].bytes, 0);
    int begins = -1;
    struct leat_prefix_id longer = {scene.whole.bytes + 8, 1};
    assert_int_equal(leat_backup_look(backup(&scene), info.handle, longer, on_looked, &begins),
                     LEAT_E_NOT_FOUND);
    assert_int_equal(leat_backup_look(backup(&scene), info.handle, scene.end, on_looked, &begins),
                     LEAT_OK);
    assert_int_equal(begins, -1); /* never inside the call */
    world_run(scene.world, 100 * 1000);
    assert_int_equal(begins, 1);
    leat_backup_each(backup(&scene), &scene.log, true, info_take, &info);
    assert_true(same(info.begins[0], scene.end));
    assert_true(info.durable);
    bool flushed = false;
    assert_int_equal(
        leat_backup_flush(backup(&scene), scene.log, scene.id, scene.end, on_flushed, &flushed),
        LEAT_OK);
    world_run(scene.world, 100 * 1000);
    assert_true(flushed);
    /* It is no copy of that: who counts copies does not count it. */
    assert_false(leat_backup_holds(backup(&scene), scene.log, scene.id, scene.end));
    assert_true(leat_backup_holds(backup(&scene), scene.log, scene.id, scene.whole));
    world_free(scene.world);
}

/* Goal: two callers look for different ends in one segment: each caller gets its own answer, though the other end was
 * asked for before the answer came. */
static void longer_copy_is_remembered_for_two_who_ask(void **state)
{
    (void)state;
    struct scene scene = hibernated(103);
    struct leat_prefix_id other = {scene.end.bytes, scene.end.crc ^ 1};
    for (unsigned i = 0; i < 2; i++) {
        struct leat_prefix_id ends[2] = {i ? other : scene.end, i ? scene.end : other};
        for (unsigned k = 0; k < 2; k++) {
            leat_err rc = leat_backup_look_any(backup(&scene), scene.log, scene.id, ends[k]);
            assert_int_equal(rc, i == 0 ? LEAT_E_AGAIN : LEAT_E_NOT_FOUND); /* once, each */
            world_run(scene.world, 100 * 1000);
        }
    }
    struct leat_replica_info info = {0};
    leat_backup_each(backup(&scene), &scene.log, true, info_take, &info);
    assert_true(same(info.begins[0], scene.end)); /* the other it does not begin with */
    assert_int_equal(info.begins[1].bytes, 0);
    bool flushed = false;
    assert_int_equal(
        leat_backup_flush(backup(&scene), scene.log, scene.id, scene.end, on_flushed, &flushed),
        LEAT_OK);
    world_run(scene.world, 100 * 1000);
    assert_true(flushed);
    world_free(scene.world);
}

/* ---- cutting ---- */

static unsigned adoptions;
static leat_err adopted_rc;
static struct leat_segment *adopted;
static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    (void)arg;
    adoptions++;
    adopted_rc = rc;
    adopted = seg;
}

/* Adopts as a new owner does: asks again after AGAIN. */
static leat_err adopt(struct scene *scene, struct leat_prefix_id end)
{
    unsigned before = adoptions;
    leat_err rc = LEAT_E_AGAIN;
    for (unsigned tries = 0; tries < 1000 && rc == LEAT_E_AGAIN; tries++) {
        rc = leat_backup_adopt(backup(scene), scene->log, newest, scene->id, end, 0, INT64_MIN, 0,
                               on_adopted, NULL);
        if (rc == LEAT_E_NOT_FOUND)
            rc = leat_backup_look_any(backup(scene), scene->log, scene->id, end);
        if (rc == LEAT_E_AGAIN) world_step(scene->world);
    }
    if (rc != LEAT_OK) return rc;
    assert_int_equal(adoptions, before); /* never inside the call */
    for (unsigned i = 0; adoptions == before && i < 100000; i++)
        world_step(scene->world);
    assert_int_equal(adoptions, before + 1);
    return adopted_rc;
}

/* Goal: a log that moves to this node adopts the longer copy, cut at the log's end. */
static void longer_copy_is_adopted_at_the_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(77 + i, i == 1);
        struct leat_prefix_id other = {scene.end.bytes, scene.end.crc ^ 1};
        assert_int_equal(adopt(&scene, other), LEAT_E_NOT_FOUND);
        assert_int_equal(adopt(&scene, scene.end), LEAT_OK);
        assert_int_equal(adopted->state, LEAT_SEGMENT_CLOSED);
        assert_int_equal(adopted->role, LEAT_SEGMENT_OWN);
        assert_true(adopted->flushed);
        assert_true(same(adopted->prefix_id, scene.end));
        assert_int_equal(adopted->next_offset, scene.end_offset);
        assert_null(replica_of(scene.world, scene.at, scene.id.v));
        world_free(scene.world);
    }
}

/* Goal: a copy that ends exactly at the wanted end is taken before a copy that would have to be cut. */
static void copy_that_ends_there_goes_before_a_longer_one(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(81 + i, i == 1);
        unsigned with = scene.at;
        assert_int_equal(pull(&scene, scene.end), LEAT_OK);
        scene.at = scene.without;
        scene.without = with;
        assert_int_equal(pull(&scene, scene.end), LEAT_OK); /* where the longer one is */
        scene.at = with;
        const struct leat_segment *longer = replica(&scene)->seg;
        assert_true(same(longer->prefix_id, scene.whole));
        assert_int_equal(adopt(&scene, scene.end), LEAT_OK);
        assert_ptr_not_equal(adopted, longer);
        assert_true(same(adopted->prefix_id, scene.end));
        world_free(scene.world);
    }
}

/* Goal: where the disk refuses the cut, the copy stays as it was: the next start may still cut it. */
static void longer_copy_that_the_disk_does_not_cut_is_what_it_was(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(83 + i, i == 1);
        const struct leat_segment before = *replica(&scene)->seg;
        assert_int_equal(pull(&scene, scene.end), LEAT_OK); /* looked at */
        struct fake_world *disk = &scene.world->nodes[scene.at].disk;
        disk->fail_at = disk->op_count + 1;
        assert_int_equal(adopt(&scene, scene.end), LEAT_E_DISK);
        const struct leat_segment *seg = replica(&scene)->seg;
        assert_int_equal(seg->state, before.state);
        assert_true(same(seg->prefix_id, scene.whole));
        assert_int_equal(seg->next_offset, before.next_offset);
        assert_int_equal(seg->max_timestamp_ms, before.max_timestamp_ms);
        world_free(scene.world);
    }
}

/* The owner of now says that it ends there. Its answer goes nowhere. */
static void say_sealed(struct scene *scene)
{
    const struct replica *rep = replica(scene);
    uint8_t control[256];
    struct rep_body body = {.handle = rep->handle,
                            .log = scene->log,
                            .segment = scene->id,
                            .prefix_id = scene->end,
                            .next_offset = scene->end_offset,
                            .max_timestamp_ms = INT64_MIN,
                            .owner = newest};
    struct leat_frame frame = {.kind = LEAT_REP_SEAL, .control = control};
    frame.control_bytes = rep_body_encode(&body, control);
    struct leat_link_identity who = {
        .node = "n0", .incarnation = scene->world->nodes[0].incarnation, .cores = 1};
    struct leat_link_ticket ticket = {.connection = UINT64_MAX, .kind = LEAT_REP_SEAL};
    leat_backup_request(backup(scene), &who, &frame, &ticket);
    world_run(scene->world, 100 * 1000);
}

/* Goal: at the owner's word it is cut, durably, and is as good as a new copy. */
static void longer_copy_is_sealed_at_the_end(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(87 + i, i == 1);
        say_sealed(&scene);
        assert_true(same(replica(&scene)->seg->prefix_id, scene.whole));
        say_sealed(&scene); /* again, as owners do: it has been looked at */
        assert_true(leat_backup_holds(backup(&scene), scene.log, scene.id, scene.end));
        assert_int_equal(replica(&scene)->owner_epoch.v,
                         newest.v); /* nobody before that has a say */
        replica(&scene)->owner_epoch.v = 1;
        say_sealed(&scene); /* it ends there already */
        assert_int_equal(replica(&scene)->owner_epoch.v, newest.v);
        world_node_kill(scene.world, scene.at, true);
        world_node_start(scene.world, scene.at);
        assert_int_equal(replica(&scene)->seg->state, LEAT_SEGMENT_CLOSED);
        assert_true(leat_backup_holds(backup(&scene), scene.log, scene.id, scene.end));
        assert_int_equal(replica(&scene)->seg->next_offset, scene.end_offset);
        world_free(scene.world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longer_copy_is_served_up_to_the_end),
        cmocka_unit_test(longer_copy_of_other_bytes_is_not_served),
        cmocka_unit_test(pulled_bytes_that_are_others_make_no_copy),
        cmocka_unit_test(longer_copies_are_looked_at_a_few_at_a_time),
        cmocka_unit_test(longer_copy_counts_for_a_recovery),
        cmocka_unit_test(longer_copy_is_remembered_for_two_who_ask),
        cmocka_unit_test(longer_copy_is_adopted_at_the_end),
        cmocka_unit_test(copy_that_ends_there_goes_before_a_longer_one),
        cmocka_unit_test(longer_copy_that_the_disk_does_not_cut_is_what_it_was),
        cmocka_unit_test(longer_copy_is_sealed_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
