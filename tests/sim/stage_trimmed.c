/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h): a streamlet moves to a node that has copies of some older segments of a log, and lacks others
 * between them. While the others come, slowly, the log is trimmed to its end, and the drops of what was trimmed are
 * slow. The new owner then has trimmed segments with a hole behind them, and must call no trimmed record missing. */
#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"
#include "store/probe.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 500 * 1000,
    LOOK_US = 500,
    MOVE_US_MAX = 500 * 1000,
    TRIM_US_MAX = 1500 * 1000,
    AFTER_US = 1000 * 1000,
    DELAY_US = 15 * 1000, /* of what others send to the new owner, */
    SLOW_US = 100 * 1000, /* ... and as soon as it serves the log */
    OLDER_MIN = 5,
    SEGMENTS_MAX = 512,
    STRIKES_MAX = 4,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, MOVES, TRIMS, AFTER } step;
    struct leat_log_ref log; /* stream: the scenario's */
    struct sim_server *to;
    uint64_t until_us, end; /* end: where the log is to begin, at least */
    unsigned strikes;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static struct leat_log_ref ref_of_log(void)
{
    struct leat_log_ref ref = stage.log;
    ref.stream = stage.scenario->streams[ref.stream].id;
    return ref;
}

static const struct leat_log *log_at(const struct sim_server *server)
{
    struct leat_partition_seen partition;
    bool has = lives(server) && leat_node_partition_at(server->node, ref_of_log(), &partition);
    return has && !partition.going && !partition.moves ? partition.log : NULL;
}

static void delay(uint64_t us, bool both_ways)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const char *name = scenario->servers[i].name;
        if (&scenario->servers[i] == stage.to) continue;
        sim_net_delay(scenario->world, name, stage.to->name, us);
        sim_net_delay(scenario->world, stage.to->name, name, both_ways ? us : 0);
    }
}

static void step_to(unsigned step, uint64_t for_us)
{
    stage.step = step;
    stage.until_us = stage.scenario->world->now_us + for_us;
}

static void idle(void)
{
    delay(0, true);
    stage.scenario->trim_wished = false;
    stage.step = IDLE;
}

/* The node has closed copies of the log's older segments, and lacks one behind the first of these. */
static bool has_a_hole(const struct sim_server *server, uint64_t last)
{
    static bool has[SEGMENTS_MAX];
    struct leat_store_seen at = {0};
    struct leat_log_ref ref = ref_of_log();
    uint64_t first = SEGMENTS_MAX;
    if (last >= SEGMENTS_MAX) return false;
    memset(has, 0, sizeof has);
    while (leat_store_see_next(leat_node_store(server->node), &at)) {
        if (!at.seg || at.goes || !leat_log_ref_equal(at.seg->log, ref) ||
            at.seg->state != LEAT_SEGMENT_CLOSED || at.seg->id.v >= last)
            continue;
        has[at.seg->id.v] = true;
        if (at.seg->id.v < first) first = at.seg->id.v;
    }
    for (uint64_t i = first; i < last; i++)
        if (!has[i]) return true;
    return false;
}

static void begin(void)
{
    struct scenario *scenario = stage.scenario;
    struct sim_rng *rng = &stage.rng;
    uint32_t stream = (uint32_t)sim_rng_below(rng, SIM_STREAMS);
    const struct leat_stream_settings *settings = &scenario->streams[stream].settings;
    const struct leat_log *log = NULL;
    struct leat_log_seen seen;
    stage.log = (struct leat_log_ref){stream, (uint32_t)sim_rng_below(rng, settings->streamlets),
                                      (uint32_t)sim_rng_below(rng, settings->logs)};
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!lives(server)) return;
        if (sim_copies_owns(scenario, server, stage.log)) log = log_at(server);
    }
    if (!log || scenario->streams[stream].trims) return;
    leat_log_see(log, &seen);
    if (seen.segment_count <= OLDER_MIN || !seen.head) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        stage.to = &scenario->servers[i];
        if (sim_copies_owns(scenario, stage.to, stage.log) ||
            !has_a_hole(stage.to, seen.head->id.v))
            continue;
        scenario->wish =
            (struct sim_wish){.stream = stream, .streamlet = stage.log.streamlet, .to = stage.to};
        delay(DELAY_US, false);
        step_to(MOVES, MOVE_US_MAX);
        return;
    }
}

static void moves(const struct leat_log_seen *seen)
{
    struct scenario *scenario = stage.scenario;
    if (seen->state != LEAT_LOG_SERVING || !seen->older_come) return;
    delay(SLOW_US, false);
    scenario->trim_wish = stage.log;
    scenario->trim_wished = true;
    stage.end = seen->next_offset;
    step_to(TRIMS, TRIM_US_MAX);
}

static void trims(const struct leat_log *log)
{
    struct leat_log_info info;
    leat_log_info(log, &info);
    if (info.first_offset < stage.end) return;
    delay(SLOW_US, true);
    sim_stage_came(stage.scenario);
    stage.strikes++;
    step_to(AFTER, AFTER_US);
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
    if (stage.step == MOVES && log)
        moves(&seen);
    else if (stage.step == TRIMS && log)
        trims(log);
    else if (stage.step == IDLE && stage.strikes < STRIKES_MAX)
        begin();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-trimmed");
    scenario->power_cuts = false;
    scenario->with_trims = scenario->trims_on_wish = true;
    scenario->value_bytes = 1600; /* many segments are closed */
}

static void start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + BEGIN_US, look, scenario);
}

const struct sim_stage sim_stage_trimmed = {
    .name = "trimmed",
    .nodes = 3,
    .needs = {.batches = 4, .copies = 2, .few_logs = true, .on_disk = true},
    .choose = choose,
    .start = start,
};
