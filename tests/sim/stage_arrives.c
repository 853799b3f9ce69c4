/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a streamlet that moves to a node which is starting. A node dies and comes back. It has asked
 * the coordinators which logs it adopts, and hears neither the answer nor what follows for less time than a
 * node is waited for. Meanwhile an operator moves streamlets to this node. So the node hears of its own logs and of
 * the streamlets that came together: nobody but this node can serve these. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 200 * 1000,
    LOOK_US = 100,
    GAP_US_MAX = 400 * 1000,
    AWAY_US_MAX = 20 * 1000,
    GIVES_US_MAX = 1000 * 1000,
    START_US_MAX = 2000 * 1000, /* until it is up, or another node is taken */
    UNHEARD_US = 130 * 1000,
    MOVE_US = 40 * 1000, /* then another streamlet is tried */
    ROUNDS_MAX = 6,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, GIVES, STARTS, UNHEARD, CAME } step; /* CAME: nothing more happens */
    struct sim_server *server, *leader;               /* who starts, and who leads meanwhile */
    uint64_t until_us, wish_us;
    uint32_t stream, streamlet; /* the one that is to move */
    unsigned rounds;
} stage; /* of the one scenario of a process */

static struct leat_coordinator *coordinator_of(const struct sim_server *server)
{
    bool there = server->process && server->process->alive && server->node;
    return there ? leat_node_coordinator(server->node) : NULL;
}

static struct sim_server *leader_find(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++) {
        struct sim_server *server = &stage.scenario->servers[i];
        if (sim_serves(server) && leat_coordinator_see(coordinator_of(server)).leads) return server;
    }
    return NULL;
}

static bool asks_to_adopt(const struct sim_server *server)
{
    const struct leat_coordinate *request = NULL;
    while ((request = leat_coordinator_pending(coordinator_of(server), request)))
        if (request->kind == LEAT_COORDINATE_ADOPT) return true;
    return false;
}

/* Who owns the picked streamlet, by the leader's tables. NULL: nobody. */
static const char *owner_name(void)
{
    struct leat_machine *machine = leat_coordinator_tables(coordinator_of(stage.leader));
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(machine, stage.scenario->streams[stage.stream].id);
    uint16_t owner = stream ? stream->owners[stage.streamlet] : LEAT_OWNER_NONE;
    return owner == LEAT_OWNER_NONE ? NULL : machine->nodes[owner].info.name;
}

/* A streamlet that the node owns, by the leader's tables. */
static bool owned_find(void)
{
    for (stage.stream = 0; stage.stream < SIM_STREAMS; stage.stream++)
        for (stage.streamlet = 0;
             stage.streamlet < stage.scenario->streams[stage.stream].settings.streamlets;
             stage.streamlet++) {
            const char *owner = owner_name();
            if (owner && strcmp(owner, stage.server->name) == 0) return true;
        }
    return false;
}

/* Another node has this log, and the log serves. */
static bool serves_elsewhere(const struct sim_server *server, uint32_t log)
{
    struct leat_log_ref ref = {stage.scenario->streams[stage.stream].id, stage.streamlet, log};
    struct leat_partition_seen partition;
    struct leat_log_seen seen;
    if (server == stage.server || !sim_serves(server) ||
        !leat_node_partition_at(server->node, ref, &partition) || !partition.log || partition.going)
        return false;
    leat_log_see(partition.log, &seen);
    return seen.state == LEAT_LOG_SERVING && seen.opened;
}

static bool pick(void)
{
    struct scenario *scenario = stage.scenario;
    stage.stream = (uint32_t)sim_rng_below(&stage.rng, SIM_STREAMS);
    const struct leat_stream_settings *settings = &scenario->streams[stage.stream].settings;
    stage.streamlet = (uint32_t)sim_rng_below(&stage.rng, settings->streamlets);
    for (uint32_t q = 0; q < settings->logs; q++) {
        bool serves = false;
        for (unsigned i = 0; i < scenario->server_count; i++)
            serves |= serves_elsewhere(&scenario->servers[i], q);
        if (!serves) return false;
    }
    return true;
}

static void step_to(unsigned step, uint64_t for_us)
{
    stage.step = step;
    stage.until_us = stage.scenario->world->now_us + for_us;
}

static void wish(void)
{
    struct sim_world *world = stage.scenario->world;
    if (stage.scenario->wish.to || world->now_us < stage.wish_us + MOVE_US || !pick()) return;
    stage.wish_us = world->now_us;
    stage.scenario->wish =
        (struct sim_wish){.stream = stage.stream, .streamlet = stage.streamlet, .to = stage.server};
}

static void begin(void)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!sim_serves(&scenario->servers[i])) return;
    stage.leader = leader_find();
    stage.server = &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    if (!stage.leader || stage.server == stage.leader) return;
    step_to(GIVES, GIVES_US_MAX);
}

/* The node gives away what it has: the operator would wait for it before anything else. */
static void give(void)
{
    struct scenario *scenario = stage.scenario;
    if (scenario->wish.to || scenario->world->now_us < stage.wish_us + MOVE_US) return;
    if (owned_find()) {
        stage.wish_us = scenario->world->now_us;
        scenario->wish = (struct sim_wish){
            .stream = stage.stream, .streamlet = stage.streamlet, .to = stage.leader};
        return;
    }
    stage.wish_us = 0;
    stage.server->away_us_max = AWAY_US_MAX;
    step_to(STARTS, START_US_MAX);
    sim_fault_struck(scenario->world, SIM_FAULT_KILL);
    sim_process_die(stage.server->process, SIM_DEATH_KILL);
}

static bool step_ends(void)
{
    const struct sim_world *world = stage.scenario->world;
    if (stage.scenario->faults_over || world->now_us >= stage.until_us ||
        !sim_serves(stage.leader) || (stage.step == GIVES) != stage.server->ready)
        return true;
    if (stage.step != UNHEARD) return false;
    const char *owner = stage.wish_us ? owner_name() : NULL;
    if (!owner || strcmp(owner, stage.server->name) != 0) return false;
    stage.step = CAME;
    sim_stage_came(stage.scenario);
    return true;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (step_ends()) {
        sim_net_cut(world, stage.leader->name, stage.server->name, 0);
        if (stage.step != CAME) stage.step = IDLE;
        stage.wish_us = 0;
        scenario->wish.to = NULL;
        return;
    }
    if (stage.step == GIVES) {
        give();
    } else if (stage.step == UNHEARD) {
        wish();
    } else if (coordinator_of(stage.server) && asks_to_adopt(stage.server)) {
        step_to(UNHEARD, UNHEARD_US);
        sim_net_cut(world, stage.leader->name, stage.server->name, stage.until_us);
    }
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    scenario->hurried = !scenario->faults_over && stage.rounds < ROUNDS_MAX && stage.step != CAME;
    if (!scenario->hurried) return;
    if (stage.step == IDLE) {
        begin();
        if (stage.step != IDLE) {
            stage.rounds++;
            sim_world_at(world, world->now_us + LOOK_US, look, scenario);
        }
    }
    sim_world_at(world, world->now_us + sim_rng_between(&stage.rng, 1000, GAP_US_MAX), due,
                 scenario);
}

static void start(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-arrives");
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, due, scenario);
}

const struct sim_stage sim_stage_arrives = {.name = "arrives",
                                            .nodes = 3,
                                            .needs = {.batches = 2, .copies = 1, .few_logs = true},
                                            .start = start};
