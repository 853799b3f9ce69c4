/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h): logs of level memory are idle, so that their heads hibernate, and are written to again: then the
 * file of a head has its first records, and memory alone has the later ones. One machine loses its power at such a
 * moment, all other nodes with this segment are killed, and the machine is back first. What its file has ends before
 * records that are acked, and must not count as where the log ends. */
#include <string.h>

#include "broker/probe.h"
#include "store/probe.h"
#include "tests/sim/stage.h"
#include "wire/entry.h"

enum {
    APPENDS_US_MAX = 500 * 1000, /* clients append for so long, */
    IDLE_US = 1700 * 1000,       /* ... and not for so long: logs are cared for once a second */
    HIBERNATE_US = 200 * 1000,
    LOOK_US = 5000,
    BACK_US_MAX = 30 * 1000,
    AWAY_US = 1500 * 1000,
    BYTES_MAX = 64 * 1024,
    STRIKES_MAX = 2,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    unsigned strikes;
    uint8_t bytes[BYTES_MAX];
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

/* Its file has a part of it that could be read, and memory more that is acked. */
static bool is_resumed(const struct leat_store_seen *at)
{
    const struct leat_segment *seg = at->seg;
    struct leat_scan file, memory;
    if (!seg || !seg->buffer || seg->durability != LEAT_DURABILITY_MEMORY || at->goes ||
        at->written != LEAT_SEGMENT_OPEN || seg->state != LEAT_SEGMENT_OPEN ||
        at->in_file_bytes == 0 || seg->capacity > BYTES_MAX)
        return false;
    sim_file_peek(seg->file, seg->file_offset, stage.bytes, seg->capacity);
    leat_scan_segment(stage.bytes, seg->capacity, &file);
    leat_scan_segment(seg->buffer, seg->capacity, &memory);
    return file.started && !file.closed && memory.acked_bytes > file.bytes;
}

static bool holds(const struct sim_server *server, const struct leat_segment *seg)
{
    struct leat_store_seen at = {0};
    while (leat_store_see_next(leat_node_store(server->node), &at))
        if (at.seg && at.seg->id.v == seg->id.v && leat_log_ref_equal(at.seg->log, seg->log))
            return true;
    return false;
}

static void die(struct sim_server *server, enum sim_death death, uint64_t away_us)
{
    sim_fault_struck(stage.scenario->world,
                     death == SIM_DEATH_POWER ? SIM_FAULT_POWER : SIM_FAULT_KILL);
    server->down_wanted = true; /* for as long as it is said here */
    sim_process_die(server->process, death);
    server->down_wanted = false;
    sim_server_boot_later(server, away_us);
}

static void strike(const struct leat_segment *seg)
{
    struct scenario *scenario = stage.scenario;
    sim_stage_came(scenario);
    stage.strikes++;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (server != scenario->power_domain && holds(server, seg))
            die(server, SIM_DEATH_KILL, AWAY_US + sim_rng_below(&stage.rng, AWAY_US));
    }
    die(scenario->power_domain, SIM_DEATH_POWER, sim_rng_below(&stage.rng, BACK_US_MAX));
}

static bool all_live(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++)
        if (!lives(&stage.scenario->servers[i])) return false;
    return true;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct leat_store_seen at = {0};
    bool struck = !all_live();
    if (scenario->faults_over || stage.strikes == STRIKES_MAX) return;
    while (!struck && leat_store_see_next(leat_node_store(scenario->power_domain->node), &at)) {
        struck = is_resumed(&at);
        if (struck) strike(at.seg);
    }
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void idle_due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        bool writes = client->kind == SIM_CLIENT_PRODUCER || client->kind == SIM_CLIENT_RAW ||
                      client->kind == SIM_CLIENT_KAFKA_PRODUCER;
        if (writes) sim_process_pause(client->process, world->now_us + IDLE_US);
    }
    sim_world_at(world, world->now_us + IDLE_US + sim_rng_below(&stage.rng, APPENDS_US_MAX),
                 idle_due, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-resumed");
    scenario->power_cuts = true;
    scenario->with_kafka = false; /* its producers write nothing to level memory where power goes */
    scenario->power_domain = &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    scenario->hibernate_after_us = HIBERNATE_US;
    scenario->pause_us_max = 10 * 1000;
}

static void start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    sim_world_at(world, world->now_us + sim_rng_below(&stage.rng, APPENDS_US_MAX), idle_due,
                 scenario);
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

const struct sim_stage sim_stage_resumed = {
    .name = "resumed",
    .nodes = 3,
    .needs = {.batches = 2, .copies = 2, .few_logs = true, .in_memory = true},
    .choose = choose,
    .start = start,
};
