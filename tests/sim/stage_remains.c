/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h): logs of level memory reserve a segment, are idle, give the segment back, and reserve a segment of
 * the same number later. Where the second reservation has the first one's memory, the ids of the first one's header
 * are still there. The core is made busy, so that it can't write the new header, and its node is killed when the
 * reservation's row is on the disk. The next start has to take this memory for a reservation. */
#include <string.h>

#include "broker/probe.h"
#include "store/probe.h"
#include "store/row.h"
#include "tests/sim/stage.h"
#include "wire/entry.h"

enum {
    APPENDS_US_MAX = 500 * 1000, /* clients append for so long, */
    IDLE_US = 1500 * 1000,       /* ... and not for so long: logs are cared for once a second */
    HIBERNATE_US = 200 * 1000,
    ROW_US = 4000, /* until a reservation's row is written */
    AWAY_US_MAX = 100 * 1000,
    STRIKES_MAX = 3,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *server; /* NULL: no kill is due */
    uint32_t row;
    unsigned strikes;
} stage; /* of the one scenario of a process */

/* Nothing was written since the reservation got this memory, and the ids are those of the segment. */
static bool lies_in_its_remains(const struct leat_store_seen *at)
{
    static const uint8_t cleared[LEAT_ENTRY_HEADER_BYTES];
    const struct leat_segment *seg = at->seg;
    struct leat_segment_header header;
    if (!seg || !seg->buffer || seg->role == LEAT_SEGMENT_REPLICA ||
        at->written != LEAT_SEGMENT_RESERVED || seg->durability != LEAT_DURABILITY_MEMORY ||
        memcmp(seg->buffer, cleared, sizeof cleared) != 0)
        return false;
    memcpy(&header, seg->buffer + LEAT_ENTRY_HEADER_BYTES, sizeof header);
    return header.stream == seg->log.stream && header.streamlet == seg->log.streamlet &&
           header.log == seg->log.log && header.epoch == seg->epoch.v &&
           header.segment == seg->id.v;
}

static bool is_on_disk(const struct leat_store_seen *at)
{
    struct leat_row row;
    return sim_disk_peek(stage.server->disk, "catalogue",
                         LEAT_BLOCK_BYTES + (uint64_t)at->row * LEAT_ROW_BYTES, &row, sizeof row) &&
           row.state == LEAT_SEGMENT_RESERVED && row.segment == at->seg->id.v;
}

static void kill_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = stage.server;
    struct leat_store_seen at;
    if (server->process->alive && event->n == server->boots && !stage.scenario->faults_over) {
        leat_store_see(leat_node_store(server->node), stage.row, &at);
        if (lies_in_its_remains(&at) && is_on_disk(&at)) {
            sim_stage_came(stage.scenario);
            stage.strikes++;
            server->away_us_max = AWAY_US_MAX;
            sim_fault_struck(world, SIM_FAULT_KILL);
            sim_process_die(server->process, SIM_DEATH_KILL);
        }
    }
    stage.server = NULL;
}

static void strike(struct sim_server *server, uint32_t row)
{
    struct sim_world *world = stage.scenario->world;
    for (unsigned i = 0; i < stage.scenario->cores; i++)
        if (server->cores[i]->free_at_us < world->now_us + 2 * ROW_US)
            server->cores[i]->free_at_us = world->now_us + 2 * ROW_US;
    stage.server = server;
    stage.row = row;
    sim_world_at(world, world->now_us + ROW_US, kill_due, NULL)->n = server->boots;
}

/* After each turn of any process. */
static void on_turn(void *arg, struct sim_process *process)
{
    struct scenario *scenario = arg;
    if (stage.server || stage.strikes == STRIKES_MAX || scenario->faults_over) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        struct leat_store_seen at = {0};
        if (server->process != process || !process->alive || !server->ready) continue;
        while (leat_store_see_next(leat_node_store(server->node), &at))
            if (lies_in_its_remains(&at)) {
                strike(server, at.row);
                return;
            }
    }
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
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-remains");
    scenario->power_cuts = false;
    scenario->hibernate_after_us = HIBERNATE_US;
    scenario->value_bytes = 1600; /* logs roll fast, and reserve ahead */
    scenario->pause_us_max = 5000;
}

static void start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    world->watch = on_turn;
    world->watch_arg = scenario;
    sim_world_at(world, world->now_us + sim_rng_below(&stage.rng, APPENDS_US_MAX), idle_due,
                 scenario);
}

const struct sim_stage sim_stage_remains = {
    .name = "remains",
    .nodes = 3,
    .needs = {.batches = 4, .copies = 1, .few_logs = true, .in_memory = true},
    .choose = choose,
    .start = start,
};
