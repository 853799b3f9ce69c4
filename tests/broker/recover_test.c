/* SPDX-License-Identifier: Apache-2.0 */
/* An accepted loss whose log is given up, or whose core stops, at each step of it: recover.c, handover.c and stop.c on
 * one core, with copies on the nodes of tests/replication's world; a log that comes while its stream is deleted. The
 * test plays the coordinator and the core's turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/report.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"
#include "broker/node/hooks.h"
#include "broker/node/walk.h"
#include "broker/ownership/calls.h"
#include "broker/ownership/handover.h"
#include "tests/broker/parts.h"
#include "tests/replication/world.h"
#include "wire/message.h"

enum { MAILS_MAX = 16, SELF = 100, STREAM = 7, ASKED_UNDER = 5, KNOWN = 40, GIVEN = 90 };

struct desk {
    struct world *world;
    struct leat_node node;
    struct leat_core core;
    struct core_parts parts;
    struct leat_env env;
    struct leat_clock clock;
    struct leat_post post;
    struct leat_stream *stream;
    struct leat_log_ref ref;
    struct leat_link_ticket ticket;
    struct leat_mail *mails[MAILS_MAX]; /* to the core */
    unsigned mail_count;
    struct leat_coordinate *asked; /* the coordinators, and not answered */
    unsigned flushes;              /* all logs have stopped, so the store is to flush */
};

static uint64_t desk_now(void *ctx)
{
    return ((struct desk *)ctx)->world->now_us;
}
static void desk_wake_at(void *ctx, uint64_t at_us)
{
    (void)ctx, (void)at_us; /* turns are the test's */
}
static void desk_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct desk *desk = ctx;
    if (to == LEAT_ACTOR_COORDINATOR) {
        assert_null(desk->asked);
        desk->asked = LEAT_CONTAINER(mail, struct leat_coordinate, mail);
    } else if (to == LEAT_ACTOR_STORE) {
        desk->flushes++;
    } else {
        assert_int_equal(to, LEAT_ACTOR_CORE_0);
        assert_in_range(desk->mail_count, 0, MAILS_MAX - 1);
        desk->mails[desk->mail_count++] = mail;
    }
}

/* What has come for the core. */
static void mails(struct desk *desk)
{
    while (desk->mail_count > 0) {
        struct leat_mail *mail = desk->mails[0];
        memmove(&desk->mails[0], &desk->mails[1], --desk->mail_count * sizeof desk->mails[0]);
        mail->deliver(&desk->core, mail);
    }
}

static void turn_ends(struct desk *desk)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&desk->core.data->dirty_logs)) != NULL)
        leat_log_turn_end(LEAT_CONTAINER(link, struct leat_partition, dirty)->log);
}

/* One turn of the core. The store, and what looks after copies, stand still. */
static void turn(struct desk *desk)
{
    mails(desk);
    turn_ends(desk);
}

static void run(struct desk *desk)
{
    for (unsigned i = 0; i < 20; i++) {
        turn(desk);
        world_run(desk->world, 1000);
        leat_timers_run(&desk->core.timers);
    }
}

static struct leat_partition *partition_new(struct desk *desk)
{
    const struct leat_log_tail tail = {.next_offset = KNOWN};
    struct leat_partition *partition;
    assert_int_equal(leat_partition_create(&desk->core, desk->stream, desk->ref,
                                           (struct leat_epoch){ASKED_UNDER}, NULL, 0, &tail,
                                           &partition),
                     LEAT_OK);
    partition->highest_segment = UINT64_MAX;
    leat_log_set_state(partition->log, LEAT_LOG_WAITING, "its end is on no node");
    return partition;
}

/* A core with one log of several copies, which waits. */
static void limit_ignore(void *ctx, enum leat_net_account account, size_t bytes)
{
    (void)ctx, (void)account, (void)bytes;
}
static const struct leat_net no_connections = {.limit = limit_ignore};

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->world = world_new(1, 3, 2, 1, LEAT_DURABILITY_MEMORY, 0);
    desk->clock = (struct leat_clock){.ctx = desk, .now_us = desk_now, .wake_at = desk_wake_at};
    desk->post = (struct leat_post){.ctx = desk, .send = desk_send, .self = LEAT_ACTOR_CORE_0};
    desk->env = desk->world->nodes[0].env;
    desk->env.clock = &desk->clock;
    desk->env.post = &desk->post;
    desk->env.net = &no_connections;
    desk->node.cores = &desk->core;
    desk->node.life = LEAT_LIFE_UP;
    desk->node.incarnation = SELF;
    desk->node.store = desk->world->nodes[0].store;
    desk->node.store_port = desk->world->nodes[0].store_port;
    desk->node.hooks = &leat_core_hooks;
    desk->node.options.cores = 1;
    desk->node.options.coordinator_env = &desk->env;
    assert_int_equal(leat_core_init(&desk->core, &desk->node, 0, &desk->env, 1, 1 << 20), LEAT_OK);
    desk->core.data->replicate->primary = desk->world->primary;
    desk->core.serving = &desk->ticket;

    struct leat_stream_desc *desc =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *desc + 2 * sizeof desc->streamlets[0]);
    assert_non_null(desc);
    desc->refs = 1;
    desc->id = STREAM;
    snprintf(desc->name, sizeof desc->name, "s");
    desc->settings = (struct leat_stream_settings){
        .logs = 1, .streamlets = 1, .copies = 2, .min_copies = 1, .segment_bytes_max = 1 << 16};
    desc->streamlet_count = 1;
    desc->streamlets[0].owner = SELF;
    desc->streamlets[0].epoch.v = ASKED_UNDER;
    assert_int_equal(leat_stream_put(&desk->core, desc, &desk->stream), LEAT_OK);
    leat_stream_desc_unref(desc);
    leat_stream_publish(desk->stream);
    desk->ref = (struct leat_log_ref){STREAM, 0, 0};
    assert_non_null(partition_new(desk)->copies);
    run(desk);
    return desk;
}

static void desk_free(struct desk *desk)
{
    assert_int_equal(desk->core.calls, 0);
    desk->core.data->replicate->primary = NULL; /* the world's */
    leat_core_fini(&desk->core);
    world_free(desk->world);
    free(desk);
}

static struct leat_partition *partition_of(struct desk *desk)
{
    return leat_partition_find(&desk->core, desk->ref);
}

/* An operator accepts the loss; the coordinators are asked. */
static void accepts(struct desk *desk)
{
    uint8_t body[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_recover_write(&writer, &(struct leat_msg_recover){{"s", 1}, 0, 0, true});
    struct leat_frame frame = {
        .kind = LEAT_KIND_LOG_RECOVER, .control = body, .control_bytes = writer.used};
    memset(desk->core.scratch, 0, 64);
    leat_call_recover(&desk->core.link_peer, &frame);
    mails(desk);
    assert_non_null(desk->asked);
    assert_int_equal(desk->asked->kind, LEAT_COORDINATE_ACCEPT_LOSS);
    assert_true(leat_partition_goes(partition_of(desk)));
}

static void answered_by_coordinators(struct desk *desk, leat_err rc)
{
    struct leat_coordinate *request = desk->asked;
    desk->asked = NULL;
    request->rc = rc;
    request->error.code = rc;
    if (rc == LEAT_OK) request->next_offset = GIVEN;
    if (rc == LEAT_OK) request->epoch.v = ASKED_UNDER + 1;
    request->on_done(request);
}

/* Its answer, once: every call is counted, and the core has none left. */
static void operator_is_told(struct desk *desk)
{
    struct leat_msg_reader reader;
    struct leat_msg_recovered told;
    assert_int_equal(desk->core.calls, 0);
    leat_msg_reader_init(&reader, desk->core.scratch + LEAT_FRAME_HEADER_BYTES, 16);
    leat_msg_recovered_read(&reader, &told);
    assert_false(reader.failed);
    assert_int_equal(told.next_offset, GIVEN);
}

/* Another node is the owner, as this one hears. */
static void owner_is_lost(struct desk *desk)
{
    desk->stream->desc->streamlets[0].owner = SELF + 1;
    leat_partition_give_up(partition_of(desk));
}

static void core_stops(struct desk *desk)
{
    leat_node_stop(&desk->node);
    mails(desk);
    assert_true(desk->core.stopping);
    assert_int_equal(desk->flushes, 0); /* it waits for the log */
}

enum step { ASKED, STOPS, COPIES_GO, STEPS };

/* The loss is accepted, and that has come so far. */
static void accepts_until(struct desk *desk, enum step step)
{
    accepts(desk);
    if (step == ASKED) return;
    answered_by_coordinators(desk, LEAT_OK);
    if (step == COPIES_GO) turn(desk);
    assert_true(leat_partition_goes(partition_of(desk)));
    assert_int_equal(desk->core.calls, 1);
}

/* The rest of it. */
static void accepts_to_the_end(struct desk *desk)
{
    if (desk->asked != NULL) answered_by_coordinators(desk, LEAT_OK);
    run(desk);
}

static void loss_accepted_makes_the_log_anew(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    accepts_until(desk, ASKED);
    accepts_to_the_end(desk);
    operator_is_told(desk);
    assert_false(leat_partition_goes(partition_of(desk)));
    assert_int_equal(partition_of(desk)->epoch.v, ASKED_UNDER + 1);
    desk_free(desk);
}

/* Goal: the coordinators are told all that this node knows of the log: the highest offset that anybody named, the last
 * segment that anybody has. */
static void coordinators_are_asked_with_all_that_is_known(void **state)
{
    (void)state;
    static const struct {
        uint64_t segment, offset, told_segment, told_offset;
        bool away;
    } rows[] = {{UINT64_MAX, 0, UINT64_MAX, KNOWN, false},
                {UINT64_MAX, KNOWN - 1, UINT64_MAX, KNOWN, true},
                {4, KNOWN + 1, 4, KNOWN + 1, false},
                {0, KNOWN + 30, 0, KNOWN + 30, true}};
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct desk *desk = desk_new();
        struct leat_partition *partition = partition_of(desk);
        partition->highest_segment = rows[i].segment;
        partition->highest_offset = rows[i].offset;
        partition->tail_missing = rows[i].away;
        partition->highest_prefix_id = (struct leat_prefix_id){.bytes = 77, .crc = 88};
        accepts(desk);
        const struct leat_coordinate *asked = desk->asked;
        assert_int_equal(asked->log_count, 1);
        assert_true(leat_log_ref_equal(asked->logs[0], desk->ref));
        assert_int_equal(asked->tails[0].segment, rows[i].told_segment);
        assert_int_equal(asked->tails[0].prefix_id.bytes, 77);
        assert_int_equal(asked->tails[0].prefix_id.crc, 88);
        assert_int_equal(asked->next_offset, rows[i].told_offset);
        assert_int_equal(asked->epoch.v, ASKED_UNDER);
        assert_int_equal(asked->stands_in, rows[i].away);
        assert_int_equal(asked->incarnation, SELF);
        assert_int_equal(partition->state, LEAT_PARTITION_ASKS_LOSS);
        accepts_to_the_end(desk);
        operator_is_told(desk);
        desk_free(desk);
    }
}

/* Goal: a home of consumer groups that is made anew is in the core's list of homes once at most. */
static void loss_accepted_of_a_home_leaves_the_list_of_homes(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    leat_list_push_back(&desk->core.data->home_logs, &partition_of(desk)->home);
    accepts_until(desk, ASKED);
    assert_false(leat_list_empty(&desk->core.data->home_logs));
    accepts_to_the_end(desk);
    operator_is_told(desk);
    assert_true(
        leat_list_empty(&desk->core.data->home_logs)); /* the stream has another name than theirs */
    assert_true(leat_list_empty(&partition_of(desk)->home));
    desk_free(desk);
}

/* Goal: the log goes, once, and the operator is told of what is committed. */
static void loss_accepted_of_a_log_that_is_given_up_meanwhile_is_told(void **state)
{
    (void)state;
    for (enum step step = ASKED; step < STEPS; step++) {
        struct desk *desk = desk_new();
        accepts_until(desk, step);
        owner_is_lost(desk);
        accepts_to_the_end(desk);
        operator_is_told(desk);
        assert_null(partition_of(desk));
        assert_int_equal(desk->mail_count, 0);
        desk_free(desk);
    }
}

/* Goal: the coordinators' answer comes when the log has gone, and another log has come in its place: the call leaves
 * the new log alone. */
static void loss_accepted_leaves_the_log_that_came_after_it(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    accepts_until(desk, ASKED);
    owner_is_lost(desk);
    run(desk);
    assert_null(partition_of(desk));
    assert_int_equal(desk->core.calls, 1);
    desk->stream->desc->streamlets[0].owner = SELF;
    struct leat_partition *next = partition_new(desk);
    accepts_to_the_end(desk);
    operator_is_told(desk);
    assert_ptr_equal(partition_of(desk), next);
    assert_false(leat_partition_goes(next));
    desk_free(desk);
}

/* Goal: an accepted loss that the coordinators refuse, of a log that was given up meanwhile, is answered with their
 * refusal, and the log goes. */
static void loss_refused_of_a_log_that_is_given_up_meanwhile_ends(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    accepts_until(desk, ASKED);
    owner_is_lost(desk);
    answered_by_coordinators(desk, LEAT_E_NOT_OWNER);
    run(desk);
    assert_int_equal(desk->core.calls, 0);
    assert_null(partition_of(desk));
    desk_free(desk);
}

/* Goal: a core that stops waits for the log at each step, counts it once, and the operator is answered. */
static void loss_accepted_while_the_core_stops_is_waited_for(void **state)
{
    (void)state;
    for (enum step step = ASKED; step < STEPS; step++) {
        for (unsigned given_up = 0; given_up < 2; given_up++) {
            struct desk *desk = desk_new();
            accepts_until(desk, step);
            if (given_up) owner_is_lost(desk);
            core_stops(desk);
            accepts_to_the_end(desk);
            assert_int_equal(desk->core.calls, 0);
            assert_int_equal(desk->core.data->logs_to_stop, 0);
            assert_int_equal(desk->flushes, 1);
            desk_free(desk);
        }
    }
}

/* Goal: the call also ends where its stream is deleted, at whichever step. */
static void loss_accepted_of_a_stream_that_goes_ends(void **state)
{
    (void)state;
    for (enum step step = ASKED; step < STEPS; step++) {
        for (unsigned kind = 0; kind < 4; kind++) {
            bool stops = kind & 1, given_up = kind & 2;
            struct desk *desk = desk_new();
            accepts_until(desk, step);
            if (given_up) owner_is_lost(desk);
            desk->stream->deleted = true;
            leat_partition_delete(&desk->core, partition_of(desk));
            if (stops) core_stops(desk);
            accepts_to_the_end(desk);
            assert_int_equal(desk->core.calls, 0);
            assert_int_equal(desk->core.data->logs_to_stop, 0);
            assert_int_equal(desk->flushes, stops);
            if (!stops) assert_null(partition_of(desk));
            desk_free(desk);
        }
    }
}

/* ---- and a log that comes while its stream is deleted ---- */

static void report_on_done(struct leat_report *report)
{
    report->owner = NULL;
}

/* What the core says of its logs, each by the name of its stream. */
static uint32_t troubled(struct desk *desk)
{
    struct leat_report *report = calloc(1, sizeof *report);
    assert_non_null(report);
    report->core = &desk->core;
    report->on_done = report_on_done;
    report->owner = desk;
    leat_report_start(report);
    mails(desk);
    assert_null(report->owner);
    uint32_t count = report->sums.troubled_count;
    free(report);
    return count;
}

/* Goal: no log outlives its stream, though the deletion goes on in pieces, and another node's log comes after each of
 * them. */
static void log_that_comes_while_its_stream_is_deleted_goes_with_it(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_stream_desc *desc = desk->stream->desc;
    desc->streamlet_count = 2; /* the second one is another node's */
    assert_int_equal(troubled(desk), 1);
    leat_node_on_stream_deleted(&desk->node, STREAM);
    for (unsigned i = 0; leat_stream_find(&desk->core, STREAM) != NULL; i++) {
        assert_in_range(i, 0, 10);
        if (partition_of(desk) == NULL) (void)partition_new(desk);
        desk->core.data->news->left = LEAT_NEWS_STREAM_COST + 2; /* for the stream, and one log */
        assert_int_equal(desk->mail_count, 1);
        struct leat_mail *mail = desk->mails[--desk->mail_count];
        mail->deliver(&desk->core, mail);
        turn_ends(desk);
    }
    assert_int_equal(troubled(desk), 0);
    run(desk);
    assert_null(partition_of(desk));
    desk_free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_accepted_makes_the_log_anew),
        cmocka_unit_test(coordinators_are_asked_with_all_that_is_known),
        cmocka_unit_test(loss_accepted_of_a_home_leaves_the_list_of_homes),
        cmocka_unit_test(loss_accepted_of_a_log_that_is_given_up_meanwhile_is_told),
        cmocka_unit_test(loss_accepted_leaves_the_log_that_came_after_it),
        cmocka_unit_test(loss_refused_of_a_log_that_is_given_up_meanwhile_ends),
        cmocka_unit_test(loss_accepted_while_the_core_stops_is_waited_for),
        cmocka_unit_test(loss_accepted_of_a_stream_that_goes_ends),
        cmocka_unit_test(log_that_comes_while_its_stream_is_deleted_goes_with_it),
    };
    return cmocka_run_group_tests_name("broker recover", tests, NULL, NULL);
}
