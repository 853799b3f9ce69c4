/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h): a streamlet has moved, and its old owner, which alone has older segments of a log, is killed
 * before the new owner has them, and stays away for seconds. Once the new owner has asked all nodes that are up, a
 * reader asks where an older offset lies. The old owner comes back with the offset, so nobody may be told that it is
 * damaged. */
#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 700 * 1000,
    LOOK_US = 200,
    ASK_US = 150 * 1000,
    STEP_US_MAX = 500 * 1000, /* for a move */
    DELAY_US = 15 * 1000,     /* of what the old owner sends to the new owner */
    AWAY_US_MIN = 5 * 1000 * 1000,
    AWAY_US_MAX = 8 * 1000 * 1000,
    OLDER_MIN = 3,
    READERS_FIRST = 50, /* their numbers */
    STRIKES_MAX = 2,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, MOVES, AWAY } step;
    struct leat_log_ref log; /* stream: the scenario's */
    struct sim_server *from, *to;
    struct sim_client *reader;
    uint64_t until_us, ask_us;
    unsigned strikes;
    bool came;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static const struct leat_log *log_at(const struct sim_server *server)
{
    struct leat_partition_seen partition;
    struct leat_log_ref ref = stage.log;
    ref.stream = stage.scenario->streams[stage.log.stream].id;
    bool has = lives(server) && leat_node_partition_at(server->node, ref, &partition);
    return has && !partition.going && !partition.moves ? partition.log : NULL;
}

static void idle(void)
{
    sim_net_delay(stage.scenario->world, stage.from->name, stage.to->name, 0);
    stage.step = IDLE;
}

/* A log with older segments moves to another node. */
static void begin(void)
{
    struct scenario *scenario = stage.scenario;
    struct sim_rng *rng = &stage.rng;
    uint32_t stream = (uint32_t)sim_rng_below(rng, SIM_STREAMS);
    const struct leat_stream_settings *settings = &scenario->streams[stream].settings;
    stage.log = (struct leat_log_ref){stream, (uint32_t)sim_rng_below(rng, settings->streamlets),
                                      (uint32_t)sim_rng_below(rng, settings->logs)};
    stage.from = stage.to = NULL;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!lives(server)) return;
        if (sim_copies_owns(scenario, server, stage.log))
            stage.from = server;
        else
            stage.to = server;
    }
    const struct leat_log *log = stage.from && stage.to ? log_at(stage.from) : NULL;
    if (!log || scenario->streams[stream].trims) return;
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    if (seen.segment_count <= OLDER_MIN) return;
    scenario->wish =
        (struct sim_wish){.stream = stream, .streamlet = stage.log.streamlet, .to = stage.to};
    sim_net_delay(scenario->world, stage.from->name, stage.to->name, DELAY_US);
    stage.until_us = scenario->world->now_us + STEP_US_MAX;
    stage.step = MOVES;
}

static void old_owner_dies(void)
{
    struct sim_world *world = stage.scenario->world;
    uint64_t away_us = sim_rng_between(&stage.rng, AWAY_US_MIN, AWAY_US_MAX);
    sim_fault_struck(world, SIM_FAULT_KILL);
    stage.from->down_wanted = true; /* for as long as it is said here */
    sim_process_die(stage.from->process, SIM_DEATH_KILL);
    stage.from->down_wanted = false;
    sim_server_boot_later(stage.from, away_us);
    stage.reader = sim_client_start(stage.scenario, SIM_CLIENT_READER, stage.log.stream,
                                    READERS_FIRST + stage.strikes++);
    stage.until_us = world->now_us + away_us;
    stage.ask_us = world->now_us;
    stage.came = false;
    stage.step = AWAY;
}

static void moves(const struct leat_log *log, const struct leat_log_seen *seen)
{
    if (!lives(stage.from) || !lives(stage.to)) {
        idle();
        return;
    }
    if (!log || seen->state != LEAT_LOG_SERVING || seen->segment_count == 0 || !seen->older_come ||
        leat_log_see_segment(log, 0).seg->base_offset == 0)
        return;
    old_owner_dies();
}

static void asked(struct sim_world *world, struct sim_event *event)
{
    sim_address_ask(event->a, stage.log, event->n);
    (void)world;
}

static void away(const struct leat_log *log, const struct leat_log_seen *seen)
{
    struct sim_world *world = stage.scenario->world;
    if (!log || seen->segment_count == 0 || seen->older_come || world->now_us < stage.ask_us)
        return;
    uint64_t first = leat_log_see_segment(log, 0).seg->base_offset;
    if (first == 0) return;
    if (!stage.came) sim_stage_came(stage.scenario);
    stage.came = true;
    stage.ask_us = world->now_us + ASK_US;
    sim_actor_post(stage.reader->actor, 0, asked, stage.reader)->n =
        sim_rng_below(&stage.rng, first);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    scenario->hurried = true;
    const struct leat_log *log = stage.step == IDLE ? NULL : log_at(stage.to);
    struct leat_log_seen seen = {0};
    if (log) leat_log_see(log, &seen);
    if (stage.step != IDLE && world->now_us >= stage.until_us) idle();
    if (stage.step == MOVES)
        moves(log, &seen);
    else if (stage.step == AWAY)
        away(log, &seen);
    else if (stage.strikes < STRIKES_MAX)
        begin();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-front-away");
    scenario->power_cuts = scenario->with_trims = false;
    scenario->value_bytes = 1600; /* many segments are closed */
}

static void start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}

const struct sim_stage sim_stage_front_away = {
    .name = "front-away",
    .nodes = 3,
    .needs = {.batches = 4, .copies = 1, .few_logs = true, .on_disk = true},
    .choose = choose,
    .start = start,
};
