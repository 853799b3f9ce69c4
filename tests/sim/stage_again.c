/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a voter that leads again after a start, with no leader in between, and has nothing to recover.
 * Streams have one copy. The leader and a second voter give away all their streamlets. A node without a vote dies, so
 * logs wait, and the leader reports that to all nodes. The node comes back, and its logs serve. Before the third voter
 * hears of that the leader and the second voter die, and the third voter stands still until the same leader leads
 * again. Then it is to learn that no log waits. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "groups/groups.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 50 * 1000,
    LOOK_US = 100,
    GIVES_US_MAX = 3000 * 1000,
    STEP_US_MAX = 3000 * 1000,
    MOVE_US = 4 * 1000,
    HEARD_US = 60 * 1000, /* a report has come by then */
    DELAY_US = 50 * 1000, /* less than a node is waited for */
    AWAY_US = 5 * 1000,
    THIRD_AWAY_US = 500 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { GIVES, WAITS, COMES, STANDS, OVER } step;
    struct sim_server *leader, *hears, *third; /* voters */
    struct sim_server *other;                  /* the node without a vote */
    uint64_t until_us, wish_us;
} stage; /* of the one scenario of a process */

static struct leat_coordinator *coordinator_of(const struct sim_server *server)
{
    bool there = server->process && server->process->alive && server->node;
    return there ? leat_node_coordinator(server->node) : NULL;
}

static bool leads(const struct sim_server *server)
{
    struct leat_coordinator *coordinator = coordinator_of(server);
    return coordinator && leat_coordinator_see(coordinator).leads &&
           leat_coordinator_see(coordinator).ready;
}

static uint32_t waiting(void)
{
    uint32_t count = 0;
    (void)leat_attempt_waiting(coordinator_of(stage.leader), &count);
    return count;
}

static void step_to(unsigned step, uint64_t for_us)
{
    sim_trace(stage.scenario->world, "stage: step %u", step);
    stage.step = step;
    stage.until_us = stage.scenario->world->now_us + for_us;
}

static bool is_to_give(const char *name)
{
    return strcmp(name, stage.leader->name) == 0 || strcmp(name, stage.third->name) == 0;
}

/* A streamlet of this stream that the leader or the third voter owns goes to another node. */
static bool give_of(const struct leat_machine *machine, const struct leat_machine_stream *stream,
                    uint32_t index)
{
    for (uint32_t s = 0; stream && s < stream->desc->streamlet_count; s++) {
        uint16_t owner = stream->owners[s];
        if (owner == LEAT_OWNER_NONE || !is_to_give(machine->nodes[owner].info.name)) continue;
        bool data = index < SIM_STREAMS && stage.step == GIVES;
        struct sim_server *to = data ? stage.other : stage.hears;
        stage.scenario->wish = (struct sim_wish){.stream = index, .streamlet = s, .to = to};
        stage.wish_us = stage.scenario->world->now_us;
        return true;
    }
    return false;
}

/* The leader and the third voter give away what they have; true: they have nothing. */
static bool give(void)
{
    struct scenario *scenario = stage.scenario;
    if (scenario->wish.to || scenario->world->now_us < stage.wish_us + MOVE_US) return false;
    struct leat_machine *machine = leat_coordinator_tables(coordinator_of(stage.leader));
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        if (give_of(machine, leat_machine_stream_find(machine, scenario->streams[i].id), i))
            return false;
    if (give_of(machine,
                leat_machine_name_find(machine, LEAT_GROUPS_STREAM_NAME,
                                       strlen(LEAT_GROUPS_STREAM_NAME)),
                SIM_STREAMS))
        return false;
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (is_to_give(machine->nodes[i].info.name) && machine->nodes[i].info.streamlets > 0)
            return false;
    return true;
}

static void delay(uint64_t us)
{
    sim_net_delay(stage.scenario->world, stage.leader->name, stage.hears->name, us);
}

/* Others come to own what the dead node had and nobody needs: the leader gives that away, too. */
static void wait(void)
{
    if (waiting() == 0 || !give()) return;
    stage.scenario->hurried = false;
    sim_server_boot_later(stage.other, HEARD_US);
    delay(DELAY_US);
    step_to(COMES, STEP_US_MAX);
}

static void die(struct sim_server *server, uint64_t away_us)
{
    server->down_wanted = true; /* for as long as it is said here */
    sim_process_die(server->process, SIM_DEATH_KILL);
    server->down_wanted = false;
    if (away_us) sim_server_boot_later(server, away_us);
}

/* The connections break, so that what the leader has said last does not arrive. The third voter is back so late that
 * the same leader asks it for its vote. */
static void strike(void)
{
    step_to(STANDS, STEP_US_MAX);
    sim_process_pause(stage.hears->process, stage.until_us);
    sim_net_reset_between(stage.leader->process, stage.hears->process);
    die(stage.leader, AWAY_US);
    die(stage.third, THIRD_AWAY_US);
    delay(0);
}

static void step(void)
{
    if (stage.step == GIVES) {
        if (!give()) return;
        step_to(WAITS, GIVES_US_MAX);
        die(stage.other, 0);
    } else if (stage.step == WAITS) {
        wait();
    } else if (stage.step == COMES) {
        if (waiting() == 0) strike();
    } else {
        bool another = false;
        for (unsigned i = 0; i < stage.scenario->server_count; i++)
            another |=
                &stage.scenario->servers[i] != stage.leader && leads(&stage.scenario->servers[i]);
        if (!another && !leads(stage.leader)) return;
        if (!another) sim_stage_came(stage.scenario);
        sim_process_go_on(stage.hears->process);
        step_to(OVER, 0);
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    bool lives = stage.step == STANDS || leads(stage.leader);
    if (scenario->faults_over || !lives || world->now_us >= stage.until_us) {
        step_to(OVER, 0);
        scenario->hurried = false;
        delay(0);
        sim_server_boot_later(stage.other, 1);
    }
    if (stage.step == OVER) return;
    step();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void start(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-again");
    for (unsigned i = 0; i < SIM_VOTERS_MAX; i++)
        if (leads(&scenario->servers[i])) stage.leader = &scenario->servers[i];
    if (!stage.leader) return;
    do
        stage.hears = &scenario->servers[sim_rng_below(&stage.rng, SIM_VOTERS_MAX)];
    while (stage.hears == stage.leader);
    for (unsigned i = 0; i < SIM_VOTERS_MAX; i++)
        if (&scenario->servers[i] != stage.leader && &scenario->servers[i] != stage.hears)
            stage.third = &scenario->servers[i];
    stage.other = &scenario->servers[SIM_VOTERS_MAX];
    scenario->hurried = true;
    step_to(GIVES, GIVES_US_MAX);
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    scenario->told_asked = true;
}

const struct sim_stage sim_stage_again = {
    .name = "again",
    .nodes = 4,
    .needs = {.batches = 2, .copies = 1, .few_logs = true, .on_disk = true},
    .choose = choose,
    .start = start};
