/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a log that wants a trim entry and is given up in the same turn. A streamlet moves to a node,
 * and a log is trimmed there before anything is appended: the start entry of the owner's first segment says where the
 * log begins now. The log's core stands still before this core hears that the segment is committed as opened. The node
 * reaches no other node until it is declared crashed. Then the core goes on, and hears at once of the commit, after
 * which the closed segments are to go by a trim entry, and of the log's next owner. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 400 * 1000,
    LOOK_US = 20,
    IDLE_US = 500,
    MOVES_US_MAX = 200 * 1000,
    OPENS_US_MAX = 200 * 1000,
    CUT_US = 320 * 1000,      /* until the node is declared crashed, and others have its logs */
    TOLD_US_MAX = 100 * 1000, /* until it has heard that */
    NEWS_US = 200,            /* until a core has heard what its coordinator knows */
    REST_US = 700 * 1000,     /* until the node serves again */
    PAUSE_US = 400 * 1000,    /* of producers: most moves come while none appends */
    STRIKES_MAX = 4,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, MOVES, OPENS, HELD, CUT, TOLD } step;
    struct leat_log_ref log; /* stream: the scenario's */
    struct sim_server *to;
    uint32_t core; /* of the log */
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

static void cut_until(uint64_t until_us)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const char *name = scenario->servers[i].name;
        if (&scenario->servers[i] == stage.to) continue;
        sim_net_cut(scenario->world, name, stage.to->name, until_us);
        sim_net_cut(scenario->world, stage.to->name, name, until_us);
    }
}

static void idle(void)
{
    if (stage.step == CUT) cut_until(0);
    stage.scenario->trim_wished = false;
    stage.step = IDLE;
    stage.next_us = stage.scenario->world->now_us;
}

static struct leat_coordinator *coordinator_of(const struct sim_server *server)
{
    return leat_node_coordinator(server->node);
}

/* By the node's tables. */
static bool is_owner(void)
{
    struct leat_machine *machine = leat_coordinator_tables(coordinator_of(stage.to));
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(machine, ref_of_log().stream);
    uint16_t owner = stream ? stream->owners[stage.log.streamlet] : LEAT_OWNER_NONE;
    return owner != LEAT_OWNER_NONE && strcmp(machine->nodes[owner].info.name, stage.to->name) == 0;
}

static bool is_opened(void)
{
    struct leat_machine_stream *stream;
    const struct leat_machine_log *log = leat_machine_log_find(
        leat_coordinator_tables(coordinator_of(stage.to)), ref_of_log(), &stream);
    return log && log->record.opened;
}

static bool opening_is_asked(void)
{
    const struct leat_coordinate *request = NULL;
    while ((request = leat_coordinator_pending(coordinator_of(stage.to), request)))
        for (uint32_t i = 0; request->kind == LEAT_COORDINATE_OPENED && i < request->log_count; i++)
            if (leat_log_ref_equal(request->logs[i], ref_of_log())) return true;
    return false;
}

static void begin(void)
{
    struct scenario *scenario = stage.scenario;
    struct leat_partition_seen partition;
    struct leat_log_seen log;
    struct sim_server *to = &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    uint32_t stream = (uint32_t)sim_rng_below(&stage.rng, SIM_STREAMS);
    const struct leat_stream_settings *settings = &scenario->streams[stream].settings;
    stage.to = to;
    stage.log =
        (struct leat_log_ref){stream, 0, (uint32_t)sim_rng_below(&stage.rng, settings->logs)};
    if (scenario->streams[stream].trims || scenario->wish.to) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!sim_serves(server) || !leat_node_is_confirmed(server->node)) return;
    }
    if (leat_coordinator_see(coordinator_of(to)).leads || sim_copies_owns(scenario, to, stage.log))
        return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!leat_node_partition_at(server->node, ref_of_log(), &partition) || !partition.log ||
            partition.core == 0)
            continue;
        leat_log_see(partition.log, &log);
        if (log.segment_count < 2 || log.appends_wait) continue;
        scenario->wish = (struct sim_wish){.stream = stream, .streamlet = 0, .to = to};
        step_to(MOVES, MOVES_US_MAX);
        return;
    }
}

static void moves(void)
{
    struct leat_partition_seen partition;
    struct leat_log_seen log;
    if (!leat_node_partition_at(stage.to->node, ref_of_log(), &partition) || !partition.log ||
        partition.going)
        return;
    leat_log_see(partition.log, &log);
    if (log.state != LEAT_LOG_SERVING) return;
    if (log.opened) {
        idle();
        return;
    }
    stage.core = partition.core;
    stage.scenario->trim_wish = stage.log;
    stage.scenario->trim_wished = true;
    step_to(OPENS, OPENS_US_MAX);
}

static void hold(uint32_t core)
{
    stage.to->cores[core]->free_at_us = stage.scenario->world->now_us + 2 * LOOK_US;
}

/* Core 0 stands still, too, until the node knows the next owner: when core 0 hears that the node was declared crashed,
 * the process ends soon. */
static void held(void)
{
    struct sim_world *world = stage.scenario->world;
    hold(stage.core);
    if (stage.step == CUT) hold(0);
    if (stage.step == HELD && is_opened() && !opening_is_asked()) {
        step_to(CUT, CUT_US + TOLD_US_MAX);
        cut_until(world->now_us + CUT_US);
        sim_fault_struck(world, SIM_FAULT_NODE_PARTED);
    } else if (stage.step == CUT && !is_owner()) {
        step_to(TOLD, NEWS_US);
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (stage.step == TOLD && world->now_us >= stage.until_us && sim_serves(stage.to)) {
        sim_stage_came(scenario);
        stage.strikes++;
        idle();
        stage.next_us = world->now_us + REST_US;
    }
    if (stage.step != IDLE &&
        (scenario->faults_over || world->now_us >= stage.until_us || !sim_serves(stage.to)))
        idle();
    if (scenario->faults_over) return;
    scenario->hurried = true;
    if (stage.step == IDLE) {
        if (world->now_us >= stage.next_us && stage.strikes < STRIKES_MAX) begin();
    } else if (stage.step == MOVES) {
        moves();
    } else if (stage.step == OPENS) {
        if (opening_is_asked()) step_to(HELD, OPENS_US_MAX);
    }
    if (stage.step >= HELD) held();
    sim_world_at(world, world->now_us + (stage.step == IDLE ? IDLE_US : LOOK_US), look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-late-begin");
    scenario->cores = 2 + (uint32_t)sim_rng_below(&stage.rng, SIM_CORES_MAX - 1);
    scenario->power_cuts = false;
    scenario->with_trims = scenario->trims_on_wish = true;
    scenario->value_bytes = 1600; /* many segments are closed */
    scenario->pause_us_max = PAUSE_US;
}

static void start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}

const struct sim_stage sim_stage_late_begin = {
    .name = "late-begin",
    .nodes = 3,
    .needs = {.batches = 4, .copies = 2, .few_logs = true},
    .choose = choose,
    .start = start,
};
