/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h): an owner and its backup die in the first one-sided write to a replica of level memory. The ids of
 * the segment's header have arrived, and the rest of the header has not. Nothing was acked there, so the backup's next
 * start has to take the replica for a reservation. */
#include <string.h>

#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "tests/sim/rmem.h"
#include "tests/sim/stage.h"

enum {
    STRIKES_MAX = 3,
    BEGIN_US_MAX = 300 * 1000,
    GAP_US_MAX = 700 * 1000,
    AWAY_US_MAX = 300 * 1000,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    struct sim_server *backup;
    unsigned strikes;
} stage; /* of the one scenario of a process */

static void aim(void);

static struct sim_server *server_named(const char *name)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++)
        if (strcmp(stage.scenario->servers[i].name, name) == 0) return &stage.scenario->servers[i];
    return NULL;
}

/* The header has its ids and is not valid, and no trailer says that anything was acked. */
static bool is_first_write_torn(const struct leat_segment *seg)
{
    struct leat_segment_header header;
    struct leat_scan scan;
    memcpy(&header, seg->buffer + LEAT_ENTRY_HEADER_BYTES, sizeof header);
    if (seg->buffer[0] != LEAT_ENTRY_SEGMENT || header.magic != LEAT_SEGMENT_MAGIC ||
        header.segment != seg->id.v || header.epoch != seg->epoch.v ||
        header.stream != seg->log.stream || header.streamlet != seg->log.streamlet ||
        header.log != seg->log.log)
        return false;
    leat_scan_segment(seg->buffer, seg->capacity, &scan);
    return !scan.has_header && scan.acked_bytes == 0;
}

static struct sim_server *writer_of_torn(void)
{
    const struct sim_server *server = stage.backup;
    struct leat_replica_seen rep = {0};
    if (!server->ready || !server->process->alive || !leat_node_has_cores(server->node))
        return NULL;
    while (leat_backup_see_next(leat_node_backup(server->node), &rep))
        if (rep.seg && rep.seg->buffer && rep.writer.at && !rep.dropping && !rep.damaged &&
            rep.seg->durability == LEAT_DURABILITY_MEMORY && is_first_write_torn(rep.seg))
            return server_named(rep.writer.node);
    return NULL;
}

static void due(struct sim_world *world, struct sim_event *event)
{
    stage.backup =
        &stage.scenario->servers[sim_rng_below(&stage.rng, stage.scenario->server_count)];
    if (!stage.scenario->faults_over) aim();
    (void)world;
    (void)event;
}

static void die(struct sim_server *server)
{
    server->away_us_max = AWAY_US_MAX;
    sim_fault_struck(stage.scenario->world, SIM_FAULT_KILL);
    sim_process_die(server->process, SIM_DEATH_KILL);
}

/* A part of some write has arrived at the backup. */
static void strike(void *arg)
{
    struct sim_world *world = stage.scenario->world;
    struct sim_server *writer = writer_of_torn();
    if (!writer || !writer->process->alive || writer == stage.backup) {
        aim();
        return;
    }
    sim_stage_came(stage.scenario);
    die(writer);
    die(stage.backup);
    if (++stage.strikes < STRIKES_MAX)
        sim_world_at(world, world->now_us + sim_rng_below(&stage.rng, GAP_US_MAX), due, NULL);
    (void)arg;
}

static void aim(void)
{
    sim_rmem_aim(stage.scenario->world, stage.backup->name, true, 1, strike, NULL);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-first-write");
    scenario->power_cuts = false;
    scenario->transport = LEAT_RMEM_VERBS;
    scenario->rmem_kinds = 1u << LEAT_RMEM_VERBS;
    scenario->value_bytes = 1600; /* many segments begin */
}

static void start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    sim_world_at(world, world->now_us + sim_rng_below(&stage.rng, BEGIN_US_MAX), due, NULL);
}

const struct sim_stage sim_stage_first_write = {
    .name = "first-write",
    .nodes = 3,
    .needs = {.batches = 1, .copies = 2, .few_logs = true, .in_memory = true},
    .choose = choose,
    .start = start,
};
