/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for first segments of several logs that one entry is to commit while the stream of one of the logs
 * is deleted. All streams have one copy. A node dies, starts again, and has all its logs again, under one epoch. Nobody
 * appends until then; after that all logs get records at once. The turns of the node's core are few, so the node asks
 * for several first segments at once. What the node says to the coordinators' leader is slow: while such a request is
 * on its way one of the streams is deleted, and the request is refused because of that stream. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/deletes.h"

enum {
    LOOK_US = 100,
    PAUSE_US = 2000, /* of who appends, again and again */
    AWAY_US = 30 * 1000,
    DELAY_US = 60 * 1000,    /* less than a node is waited for */
    HOLD_US_MIN = 60 * 1000, /* of the core: records for many logs come meanwhile */
    HOLD_US_MAX = 250 * 1000,
    TURN_US_MIN = 4 * 1000, /* between two of its turns after that */
    TURN_US_MAX = 20 * 1000,
    WAIT_US = 1500 * 1000, /* for the moment */
    WORK_US = 300 * 1000,  /* between two bursts: producers work until streams were deleted */
    STREAMLETS = 3,        /* of a deleted stream: a node that does not lead has one */
    RECORDS = 6,           /* pairs of records for this stream */
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, DEAD, APPENDS, ASKED } step;
    uint32_t stream; /* that is to be deleted next */
    uint64_t until_us, turn_us;
    struct sim_server *owner, *leader;
} stage; /* of the one scenario of a process */

static struct leat_coordinator *coordinator_of(const struct sim_server *server)
{
    return sim_serves(server) && leat_node_has_cores(server->node)
               ? leat_node_coordinator(server->node)
               : NULL;
}

/* How many logs of the stream that is to be deleted, and of those that stay, has the node without a segment of its own?
 * A node that has just started has all its logs under one epoch. */
static void unopened_count(const struct sim_server *server, unsigned *out_deleted,
                           unsigned *out_others)
{
    struct leat_partition_seen at = {0};
    struct leat_log_seen log;
    uint32_t stream;
    *out_deleted = *out_others = 0;
    while (leat_node_partition_next(server->node, &at)) {
        if (!at.log || at.going) continue;
        leat_log_see(at.log, &log);
        if (log.opened || log.head || log.state != LEAT_LOG_SERVING) continue;
        *out_deleted += at.ref.stream == stage.stream;
        *out_others += sim_stream_of(stage.scenario, at.ref.stream, &stream) != NULL;
    }
}

static bool has_log(const struct sim_server *server)
{
    struct leat_partition_seen seen;
    for (uint32_t i = 0; i < STREAMLETS; i++)
        if (leat_node_partition_at(server->node, (struct leat_log_ref){stage.stream, i, 0}, &seen))
            return true;
    return false;
}

static void nobody_appends(void)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (client->kind == SIM_CLIENT_PRODUCER || client->kind == SIM_CLIENT_RAW ||
            client->kind == SIM_CLIENT_KAFKA_PRODUCER)
            sim_process_pause(client->process, scenario->world->now_us + PAUSE_US);
    }
}

static void delay(uint64_t us)
{
    sim_net_delay(stage.scenario->world, stage.owner->name, stage.leader->name, us);
}

/* One request for first segments of both streams is not answered yet. */
static bool both_asked(void)
{
    const struct leat_coordinate *request = NULL;
    uint32_t stream;
    if (!coordinator_of(stage.owner)) return false;
    while ((request = leat_coordinator_pending(coordinator_of(stage.owner), request))) {
        bool mine = false, other = false;
        for (size_t i = 0; request->kind == LEAT_COORDINATE_OPENED && i < request->log_count; i++) {
            mine |= request->logs[i].stream == stage.stream;
            other |= sim_stream_of(stage.scenario, request->logs[i].stream, &stream) != NULL;
        }
        if (mine && other) return true;
    }
    return false;
}

/* By the leader's tables. */
static bool is_deleted(void)
{
    return coordinator_of(stage.leader) &&
           !leat_machine_stream_find(leat_coordinator_tables(coordinator_of(stage.leader)),
                                     stage.stream);
}

static void idle(void)
{
    if (stage.step > DEAD) delay(0);
    stage.step = IDLE;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        idle();
        return;
    }
    if (stage.step == APPENDS && sim_serves(stage.owner)) {
        struct sim_actor *core = stage.owner->cores[0];
        if (core->free_at_us <= world->now_us)
            core->free_at_us = world->now_us - world->now_us % stage.turn_us + stage.turn_us;
    }
    bool come = stage.step == ASKED && is_deleted() && both_asked();
    if (come) sim_stage_came(scenario);
    if (come || world->now_us >= stage.until_us) idle();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static bool kill_owner(void)
{
    struct scenario *scenario = stage.scenario;
    stage.owner = stage.leader = NULL;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!coordinator_of(server)) return false;
        if (leat_coordinator_see(coordinator_of(server)).leads)
            stage.leader = server;
        else if (has_log(server))
            stage.owner = server;
    }
    if (!stage.owner || !stage.leader) return false;
    sim_fault_struck(scenario->world, SIM_FAULT_KILL);
    stage.owner->down_wanted = true; /* for as long as it is said here */
    sim_process_die(stage.owner->process, SIM_DEATH_KILL);
    stage.owner->down_wanted = false;
    sim_server_boot_later(stage.owner, AWAY_US);
    return true;
}

static bool waits(struct sim_client *client, uint32_t stream,
                  void (*produce)(struct sim_client *client))
{
    struct sim_world *world = stage.scenario->world;
    unsigned deleted, others;
    if (stage.stream != stream) {
        idle();
        stage.stream = stream;
        stage.until_us = world->now_us + WAIT_US;
        stage.turn_us = sim_rng_between(&stage.rng, TURN_US_MIN, TURN_US_MAX);
    }
    if (world->now_us >= stage.until_us) return false;
    if (stage.step == IDLE) {
        if (kill_owner()) stage.step = DEAD;
    } else if (stage.step == DEAD) {
        nobody_appends();
        if (!coordinator_of(stage.owner)) return true;
        unopened_count(stage.owner, &deleted, &others);
        if (!deleted || !others) return true;
        delay(DELAY_US);
        stage.step = APPENDS;
        for (unsigned i = 0; i < RECORDS; i++)
            produce(client);
        stage.owner->cores[0]->free_at_us =
            world->now_us + sim_rng_between(&stage.rng, HOLD_US_MIN, HOLD_US_MAX);
    } else if (both_asked()) {
        stage.step = ASKED;
    }
    return stage.step != ASKED;
}

static void settings(struct leat_stream_settings *settings)
{
    settings->streamlets = STREAMLETS;
    settings->logs = settings->copies = 1;
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-opened");
    scenario->cores = 1; /* a request has the logs of one core */
    scenario->power_cuts = scenario->with_trims = false;
    scenario->pause_us_max = WORK_US;
}

static void start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us, look, scenario);
}

static const struct sim_stage_deletes thrown = {settings, waits};

const struct sim_stage sim_stage_opened = {
    .name = "opened",
    .nodes = 3,
    .deletes = true,
    .needs = {.batches = 2, .copies = 1},
    .choose = choose,
    .start = start,
    .thrown = &thrown,
};
