/* SPDX-License-Identifier: Apache-2.0 */
/* What a node does for recoveries and takeovers with copies that are longer than where their log was decided to
 * end, and with sources that are out of reach for a moment: collect.c and takeover_get.c, on core 0 of a node of
 * tests/replication's world. Mail between the parts goes through this test, which plays the coordinator and
 * the log's core. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/ownership/collect.h"
#include "broker/ownership/takeover.h"
#include "tests/broker/parts.h"
#include "tests/replication/longer.h"

enum { HOME = 1, MAILS_MAX = 16 };

/* A node's broker, as far as these need one. */
struct desk {
    struct scene scene;
    unsigned at; /* whose node of the world it is */
    struct leat_node node;
    struct leat_core cores[2];
    struct core_parts parts[2];
    struct leat_stream *streams[1]; /* core 0 knows none */
    struct leat_member source;
    struct leat_env env;
    struct leat_clock clock;
    struct leat_post post;
    struct leat_mail *mails[MAILS_MAX]; /* to core 0 */
    unsigned mail_count;
    unsigned answered, came_home; /* mails to the coordinator; to the log's core */
};

static uint64_t desk_now(void *ctx)
{
    return ((struct desk *)ctx)->scene.world->now_us;
}
static void desk_wake_at(void *ctx, uint64_t at_us)
{
    (void)ctx, (void)at_us; /* desk_step() looks */
}
static void desk_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct desk *desk = ctx;
    if (to == LEAT_ACTOR_COORDINATOR) {
        desk->answered++;
    } else if (to == HOME) {
        desk->came_home++;
    } else {
        assert_int_equal(to, LEAT_ACTOR_CORE_0);
        assert_in_range(desk->mail_count, 0, MAILS_MAX - 1);
        desk->mails[desk->mail_count++] = mail;
    }
}

static struct desk *desk_new(struct scene scene, unsigned at)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    struct world_node *node = &scene.world->nodes[at];
    desk->scene = scene;
    desk->at = at;
    desk->clock = (struct leat_clock){.ctx = desk, .now_us = desk_now, .wake_at = desk_wake_at};
    desk->post = (struct leat_post){.ctx = desk, .send = desk_send, .self = LEAT_ACTOR_CORE_0};
    desk->env = node->env;
    desk->env.clock = &desk->clock;
    desk->env.post = &desk->post;
    desk->node.cores = desk->cores;
    desk->node.life = LEAT_LIFE_UP;
    desk->node.options.coordinator_env = &desk->env;
    snprintf(desk->node.name, sizeof desk->node.name, "n%u", at);
    for (unsigned i = 0; i < 2; i++) {
        desk->cores[i].node = &desk->node;
        core_parts_set(&desk->cores[i], &desk->parts[i]);
        desk->cores[i].index = i;
        desk->cores[i].env = &desk->env;
    }
    struct leat_core *core = &desk->cores[0];
    core->data->replicate->backup = node->backup;
    core->data->streams_by_id = desk->streams;
    assert_int_equal(leat_timers_init(&core->timers, &desk->clock, 8), LEAT_OK);
    leat_takeovers_init(core);
    return desk;
}

static void desk_free(struct desk *desk)
{
    leat_takeovers_fini(&desk->cores[0]);
    leat_timers_fini(&desk->cores[0].timers);
    world_free(desk->scene.world);
    free(desk);
}

static void desk_step(struct desk *desk)
{
    world_step(desk->scene.world);
    leat_timers_run(&desk->cores[0].timers);
    while (desk->mail_count > 0) {
        struct leat_mail *mail = desk->mails[0];
        memmove(&desk->mails[0], &desk->mails[1], --desk->mail_count * sizeof desk->mails[0]);
        mail->deliver(&desk->cores[0], mail);
    }
}

/* ---- collecting ---- */

/* out_rows: how many of the scene's segment are told of. */
static leat_err collected_as(struct desk *desk, const struct leat_log_record *record,
                             unsigned *out_rows, bool *out_holds)
{
    const struct leat_collect_log log = {.log = desk->scene.log, .record = *record};
    struct leat_collect collect = {.attempt = 1, .logs = &log, .log_count = 1};
    unsigned before = desk->answered;
    leat_node_on_collect(&desk->node, &collect);
    for (unsigned i = 0; desk->answered == before && i < 100000; i++)
        desk_step(desk);
    assert_int_equal(desk->answered, before + 1);
    *out_holds = false;
    *out_rows = 0;
    if (collect.rc != LEAT_OK) {
        assert_int_equal(collect.row_count, 0);
        return collect.rc;
    }
    for (size_t i = 0; i < collect.row_count; i++) {
        if (collect.rows[i].segment != desk->scene.id.v) continue;
        *out_holds = collect.rows[i].holds_tail;
        assert_true(same(collect.rows[i].prefix_id, desk->scene.whole));
        ++*out_rows;
    }
    leat_mem_free(collect.rows);
    return LEAT_OK;
}

static struct leat_tail_record tail_of(const struct desk *desk, struct leat_prefix_id end)
{
    return (struct leat_tail_record){
        .segment = desk->scene.id.v, .prefix_id = end, .next_offset = desk->scene.end_offset};
}

/* What the node tells a recovery of the scene's segment, if its log's tail is that. */
static leat_err collected(struct desk *desk, struct leat_prefix_id end, bool *out_holds)
{
    const struct leat_log_record record = {.tail = tail_of(desk, end)};
    unsigned rows;
    leat_err rc = collected_as(desk, &record, &rows, out_holds);
    assert_int_equal(rows, rc == LEAT_OK);
    return rc;
}

/* Goal: a recovery is told that a longer copy begins with the end, at the first time it asks; nothing is cut
 * for that. */
static void collect_longer_copy_is_told_of(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(91 + i, i == 1);
        struct desk *desk = desk_new(scene, scene.at);
        bool holds;
        assert_int_equal(collected(desk, scene.end, &holds), LEAT_OK);
        assert_true(holds);
        assert_int_equal(collected(desk, scene.end, &holds), LEAT_OK); /* by what was remembered */
        assert_true(holds);
        assert_true(same(replica(&scene)->seg->prefix_id, scene.whole));
        desk_free(desk);
    }
}

/* Goal: a recovery is also told of a longer copy where its log went on after that end in another epoch: all records of
 * that epoch may be lost. A segment that the log's own epoch wrote does not end there, and is not read for that end. */
static void collect_longer_copy_is_told_of_where_its_log_went_on(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(97 + i, i == 1);
        struct desk *desk = desk_new(scene, scene.at);
        const struct leat_epoch own = replica(&scene)->seg->epoch;
        struct leat_log_record record = {
            .opened = true, .stamp_epoch = own, .began = tail_of(desk, scene.end)};
        unsigned rows;
        bool holds;
        assert_int_equal(collected_as(desk, &record, &rows, &holds), LEAT_OK);
        assert_false(holds);
        record.stamp_epoch.v++;
        assert_int_equal(collected_as(desk, &record, &rows, &holds), LEAT_OK);
        assert_true(holds);
        assert_int_equal(rows, 1);
        record.began.prefix_id.crc ^= 1;
        assert_int_equal(collected_as(desk, &record, &rows, &holds), LEAT_OK);
        assert_false(holds);
        record.began = (struct leat_tail_record){0}; /* not known */
        assert_int_equal(collected_as(desk, &record, &rows, &holds), LEAT_OK);
        assert_false(holds);
        assert_true(same(replica(&scene)->seg->prefix_id, scene.whole));
        desk_free(desk);
    }
}

/* Goal: a recovery is not told of a longer copy that begins with other bytes, or is damaged before the end. */
static void collect_longer_copy_of_other_bytes_is_not(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(93 + i, i == 1);
        struct desk *desk = desk_new(scene, scene.at);
        struct leat_prefix_id other = {scene.end.bytes, scene.end.crc ^ 1};
        bool holds;
        assert_int_equal(collected(desk, other, &holds), LEAT_OK);
        assert_false(holds);
        bytes_of(replica(&scene))[scene.end.bytes / 2] ^= 0x10;
        assert_int_equal(collected(desk, scene.end, &holds), LEAT_OK);
        assert_false(holds);
        desk_free(desk);
    }
}

/* Goal: while a longer copy can't be looked at the recovery waits. Where the wait is too long the recovery is told
 * nothing, rather than a part that it would take for all. */
static void collect_longer_copy_in_use_is_waited_for(void **state)
{
    (void)state;
    struct scene scene = hibernated(95);
    struct desk *desk = desk_new(scene, scene.at);
    bool holds;
    replica(&scene)->busy++;
    uint64_t before_us = scene.world->now_us;
    assert_int_equal(collected(desk, scene.end, &holds), LEAT_E_AGAIN);
    assert_in_range(scene.world->now_us - before_us, 900 * 1000, 3 * 1000 * 1000);
    replica(&scene)->busy--;
    assert_int_equal(collected(desk, scene.end, &holds), LEAT_OK);
    assert_true(holds);
    desk_free(desk);
}

/* ---- taking over ---- */

static struct leat_takeover *takeover_of(struct desk *desk, struct leat_prefix_id end)
{
    struct leat_takeover *takeover =
        takeover_create(&desk->cores[HOME], desk->scene.log, (struct leat_epoch){1000});
    assert_non_null(takeover);
    takeover->state = TAKEOVER_TAIL;
    takeover->tail = (struct leat_tail_record){
        .segment = desk->scene.id.v, .prefix_id = end, .next_offset = desk->scene.end_offset};
    takeover->segment = takeover->tail.segment;
    takeover->prefix_id = end;
    takeover->next_offset = takeover->tail.next_offset;
    takeover_send(takeover);
    return takeover;
}

/* Goal: the new owner makes its log of its own longer copy, cut to the end: no other node need have a copy, or be
 * up. */
static void takeover_longer_copy_is_cut_and_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene scene = either(97 + i, i == 1);
        struct desk *desk = desk_new(scene, scene.at);
        const struct leat_segment *seg = replica(&scene)->seg;
        struct leat_takeover *takeover = takeover_of(desk, scene.end);
        for (unsigned k = 0; desk->came_home == 0 && k < 100000; k++)
            desk_step(desk);
        assert_int_equal(desk->came_home, 1);
        assert_int_equal(takeover->state, TAKEOVER_TAIL);
        assert_ptr_equal(takeover->seg, seg);
        assert_true(same(seg->prefix_id, scene.end));
        assert_int_equal(seg->next_offset, scene.end_offset);
        assert_int_equal(seg->role, LEAT_SEGMENT_OWN);
        assert_null(replica_of(scene.world, scene.at, scene.id.v));
        desk_free(desk);
    }
}

/* Goal: a longer copy that begins with other bytes is left unchanged, and other nodes are asked. */
static void takeover_longer_copy_of_other_bytes_is_left(void **state)
{
    (void)state;
    struct scene scene = hibernated(99);
    struct desk *desk = desk_new(scene, scene.at);
    struct leat_prefix_id other = {scene.end.bytes, scene.end.crc ^ 1};
    struct leat_takeover *takeover = takeover_of(desk, other);
    for (unsigned k = 0; takeover->nowhere < 3 && k < 100000; k++)
        desk_step(desk);
    assert_int_equal(takeover->nowhere, 3); /* no other node is known here */
    assert_null(takeover->seg);
    assert_true(same(replica(&scene)->seg->prefix_id, scene.whole));
    desk_free(desk);
}

/* ---- a copy that is made first ---- */

static leat_err pulled(struct desk *desk, uint64_t *out_us)
{
    struct leat_pull pull = {.attempt = 1,
                             .log = desk->scene.log,
                             .segment = desk->scene.id.v,
                             .prefix_id = desk->scene.whole,
                             .version = 1,
                             .source_count = 1};
    snprintf(pull.sources[0].node, sizeof pull.sources[0].node, "n%u", desk->scene.at);
    unsigned before = desk->answered;
    uint64_t before_us = desk->scene.world->now_us;
    leat_node_on_pull(&desk->node, &pull);
    for (unsigned i = 0; desk->answered == before && i < 100000; i++)
        desk_step(desk);
    assert_int_equal(desk->answered, before + 1);
    *out_us = desk->scene.world->now_us - before_us;
    return pull.rc;
}

static struct desk *desk_without(struct scene scene)
{
    struct desk *desk = desk_new(scene, scene.without);
    struct leat_members *members = &desk->cores[0].members;
    desk->source = (struct leat_member){.core = &desk->cores[0], .number = scene.at};
    snprintf(desk->source.info.name, sizeof desk->source.info.name, "n%u", scene.at);
    members->rows[members->count++] = &desk->source;
    return desk;
}

/* Goal: a connection that breaks costs the copy some milliseconds, and not the log an attempt of its recovery. */
static void pull_goes_on_when_a_connection_broke(void **state)
{
    (void)state;
    struct scene scene = hibernated(101);
    struct desk *desk = desk_without(scene);
    uint64_t us;
    world_link_cut(scene.world, scene.at);
    assert_int_equal(pulled(desk, &us), LEAT_OK);
    assert_in_range(us, 5 * 1000, 100 * 1000);
    assert_true(leat_backup_holds(desk->cores[0].data->replicate->backup, scene.log, scene.id,
                                  scene.whole));
    desk_free(desk);
}

/* Goal: a pull whose source is gone ends soon: the rest of the attempt waits for the pull. */
static void pull_from_a_dead_node_ends_soon(void **state)
{
    (void)state;
    struct scene scene = hibernated(102);
    struct desk *desk = desk_without(scene);
    uint64_t us;
    world_node_kill(scene.world, scene.at, false);
    assert_int_equal(pulled(desk, &us), LEAT_E_CLOSED);
    assert_in_range(us, 1, 200 * 1000);
    desk_free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collect_longer_copy_is_told_of),
        cmocka_unit_test(collect_longer_copy_is_told_of_where_its_log_went_on),
        cmocka_unit_test(collect_longer_copy_of_other_bytes_is_not),
        cmocka_unit_test(collect_longer_copy_in_use_is_waited_for),
        cmocka_unit_test(takeover_longer_copy_is_cut_and_taken),
        cmocka_unit_test(takeover_longer_copy_of_other_bytes_is_left),
        cmocka_unit_test(pull_goes_on_when_a_connection_broke),
        cmocka_unit_test(pull_from_a_dead_node_ends_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
