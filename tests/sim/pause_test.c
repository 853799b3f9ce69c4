/* SPDX-License-Identifier: Apache-2.0 */
/* How long appends wait while a streamlet is moved onto a node that has just joined: simulated nodes, virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/scenario.h"
#include "wire/message_cluster.h"

enum {
    NODES = 4, /* the last one joins when there is data */
    JOINS = NODES - 1,
    STREAMLETS = 6, /* all of them go there at once */
    APPEND_EVERY_US = 5 * 1000,
    DATA_US = 2 * 1000 * 1000,
    AFTER_US = 2 * 1000 * 1000,
    LIMIT_US = 60 * 1000 * 1000,
    GROW_US = 600 * 1000, /* a node takes so long to make memory for another: 64 MiB of zeros */
    MOVE_AGAIN_US = 20 * 1000,
    /* Between two acks of a streamlet: stopped, its end committed, its head hibernated and flushed, opened anew. */
    PAUSE_US_MAX = 200 * 1000,
    SEEDS = 5,
};

struct mover {
    struct appender *appender;
    struct leat_request request;
    uint8_t control[128];
    uint32_t streamlet;
};

/* A client that appends steadily to each streamlet, and has the streamlets moved. */
struct appender {
    struct scenario *scenario;
    struct sim_actor *actor;
    struct leat_timers timers;
    struct leat_client *client;
    struct leat_producer_engine *producer;
    struct leat_stream_settings settings;
    struct leat_request request;
    uint8_t control[512];
    struct mover movers[STREAMLETS];
    unsigned moved;
    bool made;
    uint64_t acked, acked_us[STREAMLETS], pause_us[STREAMLETS];
};

static const char stream_name[] = "steady";

/* ---- appends ---- */

static void on_produced(void *arg, const struct leat_produced *produced)
{
    struct appender *appender = arg;
    uint64_t now_us = appender->scenario->world->now_us;
    uint32_t at = produced->log.streamlet;
    if (produced->rc != LEAT_OK || at >= STREAMLETS) {
        sim_fail(appender->scenario->world, "an append is refused: %s: %s",
                 leat_err_name(produced->rc), produced->text ? produced->text : "");
        return;
    }
    uint64_t pause_us = appender->acked_us[at] ? now_us - appender->acked_us[at] : 0;
    if (pause_us > appender->pause_us[at]) appender->pause_us[at] = pause_us;
    appender->acked_us[at] = now_us;
    appender->acked++;
}

static void append_tick(struct sim_world *world, struct sim_event *event)
{
    struct appender *appender = event->a;
    static const uint8_t value[200];
    for (uint32_t i = 0; i < STREAMLETS; i++) {
        leat_err rc = leat_producer_engine_add(appender->producer, stream_name, (int32_t)i,
                                               world->wall_base_ms, NULL, 0, value, sizeof value,
                                               on_produced, appender);
        if (rc != LEAT_OK && rc != LEAT_E_AGAIN)
            sim_fail(world, "an append is refused at once: %s", leat_err_name(rc));
    }
    sim_actor_post(appender->actor, APPEND_EVERY_US, append_tick, appender);
}

/* ---- the stream, and its moves ---- */

static void create_send(struct appender *appender);

static void create_again(struct sim_world *world, struct sim_event *event)
{
    create_send(event->a);
    (void)world;
}

static void on_created(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                       const struct leat_error *error)
{
    struct appender *appender = request->owner;
    (void)answer, (void)error;
    if (rc != LEAT_OK && rc != LEAT_E_STREAM_EXISTS) {
        sim_actor_post(appender->actor, MOVE_AGAIN_US, create_again, appender);
        return;
    }
    appender->made = true;
    sim_actor_post(appender->actor, APPEND_EVERY_US, append_tick, appender);
}

static void create_send(struct appender *appender)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, appender->control, sizeof appender->control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, stream_name, strlen(stream_name));
    leat_msg_settings_write(&writer, &appender->settings);
    appender->request = (struct leat_request){.kind = LEAT_KIND_STREAM_CREATE,
                                              .control = appender->control,
                                              .control_bytes = writer.used,
                                              .on_done = on_created,
                                              .owner = appender};
    if (leat_client_send(appender->client, &appender->request) != LEAT_OK)
        sim_actor_post(appender->actor, MOVE_AGAIN_US, create_again, appender);
}

static void move_send(struct sim_world *world, struct sim_event *event);

/* Not all nodes have heard of the new one yet. */
static void on_moved(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                     const struct leat_error *error)
{
    struct mover *mover = request->owner;
    struct appender *appender = mover->appender;
    (void)answer, (void)error;
    if (rc == LEAT_OK)
        appender->moved++;
    else
        sim_actor_post(appender->actor, MOVE_AGAIN_US, move_send, mover);
}

static void move_send(struct sim_world *world, struct sim_event *event)
{
    struct mover *mover = event->a;
    struct appender *appender = mover->appender;
    const char *to = appender->scenario->servers[JOINS].name;
    struct leat_msg_streamlet_move move = {
        .stream = {stream_name, (uint32_t)strlen(stream_name)},
        .streamlet = mover->streamlet,
        .node = {to, (uint32_t)strlen(to)},
    };
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, mover->control, sizeof mover->control);
    leat_msg_streamlet_move_write(&writer, &move);
    mover->request = (struct leat_request){.kind = LEAT_KIND_STREAMLET_MOVE,
                                           .control = mover->control,
                                           .control_bytes = writer.used,
                                           .on_done = on_moved,
                                           .owner = mover};
    if (leat_client_send(appender->client, &mover->request) != LEAT_OK)
        sim_actor_post(appender->actor, MOVE_AGAIN_US, move_send, mover);
    (void)world;
}

/* ---- the client ---- */

static void on_wake(void *self)
{
    leat_timers_run(&((struct appender *)self)->timers);
}

static void on_turn_end(void *self)
{
    struct appender *appender = self;
    leat_producer_engine_on_turn_end(appender->producer);
    leat_client_on_turn_end(appender->client);
}

static const struct leat_actor_ops appender_ops = {.on_wake = on_wake, .on_turn_end = on_turn_end};

static void appender_begin(struct sim_world *world, struct sim_event *event)
{
    struct appender *appender = event->a;
    struct leat_client_options options = {.name = "appender",
                                          .addresses = appender->scenario->addresses,
                                          .request_timeout_us = 20 * 1000 * 1000,
                                          .retry_us_min = 10 * 1000,
                                          .retry_us_max = 100 * 1000,
                                          .streams_max = 4,
                                          .actor = appender};
    struct leat_producer_engine_options produce = {.batch_bytes = 1000,
                                                   .buffer_bytes = 4 * 1024 * 1024,
                                                   .timeout_us = 60 * 1000 * 1000,
                                                   .actor = appender};
    struct leat_error error;
    assert_int_equal(
        leat_timers_init(&appender->timers, &appender->actor->clock, SIM_CLIENT_TIMERS), LEAT_OK);
    assert_int_equal(leat_client_create(&appender->actor->env, &appender->timers, &options,
                                        &appender->client, &error),
                     LEAT_OK);
    assert_int_equal(leat_producer_engine_create(&appender->actor->env, &appender->timers,
                                                 appender->client, &produce, &appender->producer),
                     LEAT_OK);
    create_send(appender);
    (void)world;
}

static void appender_start(struct appender *appender)
{
    struct sim_process *process = sim_process_create(appender->scenario->world, "appender");
    appender->actor = sim_actor_create(process, 0);
    sim_actor_register(appender->actor, appender, &appender_ops);
    sim_actor_post(appender->actor, 1, appender_begin, appender);
}

/* ---- the world ---- */

static void on_violation(void *ctx, const char *text)
{
    sim_fail(ctx, "%s", text);
}

static struct scenario *scenario_new(uint64_t seed)
{
    struct scenario *scenario = calloc(1, sizeof *scenario);
    assert_non_null(scenario);
    scenario->world = sim_world_create(seed, false);
    sim_steps_watch(scenario->world);
    scenario->check = check_create(on_violation, scenario->world);
    scenario->watch = &sim_server_watch;
    sim_ends_start();
    sim_servers_init(scenario, NODES);
    for (unsigned i = 0; i < NODES; i++)
        scenario->servers[i].host[0] = '\0';
    scenario->cores = 2;
    scenario->memory_bytes = 512ull * 1024 * 1024;
    scenario->hibernate_after_us = 3 * 1000 * 1000;
    scenario->flush_delay_us = 100 * 1000;
    scenario->raft_segment_bytes = 64 * 1024;
    scenario->raft_snapshot_bytes_min = 64 * 1024;
    scenario->calm = true;
    scenario->transport = LEAT_RMEM_SHM;
    scenario->rmem_kinds = 1u << LEAT_RMEM_SHM;
    scenario->world->room_divisor = 1;
    return scenario;
}

static void until(struct scenario *scenario, bool (*holds)(struct scenario *))
{
    bool held = sim_run_until(scenario, holds, LIMIT_US);
    assert_string_equal(scenario->world->failure, "");
    assert_true(held);
}

static bool three_ready(struct scenario *scenario)
{
    for (unsigned i = 0; i < JOINS; i++)
        if (!scenario->servers[i].ready) return false;
    return true;
}

static bool last_ready(struct scenario *scenario)
{
    return scenario->servers[JOINS].ready;
}

static struct appender *appender_of_seed;

static bool stream_is_made(struct scenario *scenario)
{
    (void)scenario;
    return appender_of_seed->made;
}

static bool all_moved(struct scenario *scenario)
{
    (void)scenario;
    return appender_of_seed->moved == STREAMLETS;
}

static void run_us(struct scenario *scenario, uint64_t us)
{
    sim_world_run(scenario->world, scenario->world->now_us + us, NULL);
    assert_string_equal(scenario->world->failure, "");
}

/* The longest time between two acks of one streamlet, from the moment on that the new node has joined. */
static uint64_t pause_of_moves(uint64_t seed, enum leat_durability durability)
{
    struct scenario *scenario = scenario_new(seed);
    struct appender *appender = calloc(1, sizeof *appender);
    assert_non_null(appender);
    appender_of_seed = appender;
    appender->scenario = scenario;
    appender->settings = (struct leat_stream_settings){.streamlets = STREAMLETS,
                                                       .logs = 1,
                                                       .copies = 2,
                                                       .min_copies = 2,
                                                       .durability = durability,
                                                       .segment_bytes_max = 64 * 1024,
                                                       .retention_ms = -1,
                                                       .retention_bytes = -1};
    for (unsigned i = 0; i < JOINS; i++)
        sim_server_boot(&scenario->servers[i]);
    until(scenario, three_ready);
    appender_start(appender);
    until(scenario, stream_is_made);
    run_us(scenario, DATA_US);
    scenario->world->rmem_grow_us = GROW_US;
    sim_server_boot(&scenario->servers[JOINS]);
    until(scenario, last_ready);
    memset(appender->pause_us, 0, sizeof appender->pause_us);
    uint64_t before = appender->acked;
    for (uint32_t i = 0; i < STREAMLETS; i++) {
        appender->movers[i] = (struct mover){.appender = appender, .streamlet = i};
        sim_actor_post(appender->actor, 0, move_send, &appender->movers[i]);
    }
    until(scenario, all_moved);
    run_us(scenario, AFTER_US);
    assert_true(appender->acked > before + STREAMLETS * (AFTER_US / APPEND_EVERY_US) / 2);
    uint64_t most_us = 0;
    for (uint32_t i = 0; i < STREAMLETS; i++) {
        uint64_t last_us = scenario->world->now_us - appender->acked_us[i];
        if (last_us > appender->pause_us[i]) appender->pause_us[i] = last_us;
        if (appender->pause_us[i] > most_us) most_us = appender->pause_us[i];
    }
    return most_us; /* the world goes with this process */
}

/* Goal: a streamlet that moves onto a node which has just joined takes appends again soon, though other nodes are still
 * making memory for the new one. */
static void move_onto_a_node_that_has_just_joined_is_short(void **state)
{
    (void)state;
    static const enum leat_durability levels[] = {LEAT_DURABILITY_MEMORY, LEAT_DURABILITY_DISK};
    for (unsigned i = 0; i < 2; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            uint64_t us = pause_of_moves(seed, levels[i]);
            print_message("durability %d, seed %u: %u us without an ack\n", (int)levels[i],
                          (unsigned)seed, (unsigned)us);
            assert_in_range(us, 1, PAUSE_US_MAX);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(move_onto_a_node_that_has_just_joined_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
