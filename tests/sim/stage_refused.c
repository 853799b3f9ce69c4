/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a loss that is accepted twice. All machines lose their power, and with it records of level
 * memory. A log waits at an owner that has no segment of it, and an operator accepts the loss. Core 0 of the owner
 * stands still: news of logs go through core 0, and the request's answer does not. So the log is made again under its
 * old epoch, and the operator, who sees it wait, accepts the loss once more. Core 0 goes on, and the log's new epoch
 * arrives while the second request is under way. This request is refused: it names the old epoch. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 600 * 1000,
    LOOK_US = 20,
    IDLE_US = 500,
    HOLD_US = 100 * 1000,   /* until the second request is under way */
    WAIT_US = 12000 * 1000, /* all nodes have to be up for 5 s before a log has such an owner */
    REST_US = 1500 * 1000,  /* clients go on */
    STRIKES_MAX = 2,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, DARK, ASKS, HELD } step;
    struct sim_server *owner;
    struct leat_log_ref log; /* stream: the scenario's */
    uint64_t until_us, next_us;
    unsigned strikes;
} stage; /* of the one scenario of a process */

static struct leat_log_ref ref_of_log(void)
{
    struct leat_log_ref ref = stage.log;
    ref.stream = stage.scenario->streams[ref.stream].id;
    return ref;
}

static void step_to(unsigned step, uint64_t for_us)
{
    stage.step = step;
    stage.until_us = stage.scenario->world->now_us + for_us;
}

static void idle(void)
{
    stage.step = IDLE;
    stage.next_us = stage.scenario->world->now_us + REST_US;
    stage.scenario->loss_held = false;
}

static void strike(void)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!sim_serves(&scenario->servers[i])) return;
    stage.strikes++;
    scenario->loss_held = true;
    step_to(DARK, WAIT_US);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        sim_fault_struck(scenario->world, SIM_FAULT_POWER);
        sim_process_die(scenario->servers[i].process, SIM_DEATH_POWER);
    }
}

/* A log that waits at the server, without a segment; its core is not core 0. */
static bool waiting_find(struct sim_server *server)
{
    struct leat_partition_seen partition = {0};
    struct leat_log_seen seen;
    if (!sim_serves(server)) return false;
    while (leat_node_partition_next(server->node, &partition)) {
        stage.log = partition.ref;
        if (!partition.log || partition.going || partition.core == 0 ||
            !sim_stream_of(stage.scenario, partition.ref.stream, &stage.log.stream))
            continue;
        leat_log_see(partition.log, &seen);
        if (seen.state != LEAT_LOG_WAITING || seen.segment_count > 0) continue;
        stage.owner = server;
        return true;
    }
    return false;
}

static void dark(void)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count && stage.step == DARK; i++)
        if (waiting_find(&scenario->servers[i])) step_to(ASKS, WAIT_US);
    if (stage.step == ASKS)
        scenario->loss_wish =
            (struct sim_loss_wish){.wanted = true, .real = true, .log = stage.log};
}

/* The owner's request to accept the loss. NULL: none. */
static const struct leat_coordinate *loss_asked(void)
{
    const struct leat_coordinate *request = NULL;
    struct leat_coordinator *coordinator = leat_node_coordinator(stage.owner->node);
    while ((request = leat_coordinator_pending(coordinator, request)))
        if (request->kind == LEAT_COORDINATE_ACCEPT_LOSS &&
            leat_log_ref_equal(request->logs[0], ref_of_log()))
            return request;
    return NULL;
}

/* By the owner's tables: the log has a later epoch than the request names. */
static bool is_late(const struct leat_coordinate *request)
{
    struct leat_machine_stream *stream;
    const struct leat_machine_log *log = leat_machine_log_find(
        leat_coordinator_tables(leat_node_coordinator(stage.owner->node)), ref_of_log(), &stream);
    return log && log->epoch.v > request->epoch.v;
}

static void ask(void)
{
    const struct leat_coordinate *request = loss_asked();
    if (stage.step == ASKS && request) step_to(HELD, HOLD_US);
    if (stage.step != HELD) return;
    if (request && is_late(request)) {
        sim_stage_came(stage.scenario);
        stage.strikes = STRIKES_MAX; /* a start would tell the owner of the new epoch */
        idle();
        return;
    }
    stage.owner->cores[0]->free_at_us = stage.scenario->world->now_us + 2 * LOOK_US;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    scenario->hurried = !scenario->faults_over;
    bool over = scenario->faults_over || world->now_us >= stage.until_us ||
                (stage.step >= ASKS && !sim_serves(stage.owner));
    if (stage.step != IDLE && over) idle();
    if (scenario->faults_over) return;
    if (stage.step == IDLE && world->now_us >= stage.next_us && stage.strikes < STRIKES_MAX)
        strike();
    else if (stage.step == DARK)
        dark();
    else if (stage.step >= ASKS)
        ask();
    sim_world_at(world, world->now_us + (stage.step < ASKS ? IDLE_US : LOOK_US), look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-refused");
    scenario->cores = SIM_CORES_MAX;
    scenario->power_cuts = true;
    scenario->with_trims = false; /* a trim of a log that waits kills its owner again and again */
}

static void start(struct scenario *scenario)
{
    uint64_t now_us = scenario->world->now_us;
    stage.next_us = now_us + sim_rng_between(&stage.rng, 1000, BEGIN_US);
    sim_world_at(scenario->world, now_us + LOOK_US, look, scenario);
}

const struct sim_stage sim_stage_refused = {
    .name = "refused",
    .nodes = 3,
    .needs = {.batches = 4, .copies = 2, .few_logs = true, .one_log = true},
    .choose = choose,
    .start = start};
