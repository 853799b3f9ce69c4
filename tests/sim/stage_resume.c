/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for the deletion of a log whose head is being resumed. A stream gets one log of several closed
 * segments, and rests until its head is hibernated and the closed segments are too old: retention wants a trim entry,
 * and the head is resumed for that. The disk of the log's owner reads nothing. Now the stream is deleted, and when the
 * owner drops the log's segments the disk reads again. So the head is back, with room for the entry, before all
 * segments are dropped. */
#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"
#include "tests/sim/deletes.h"

enum {
    LOOK_US = 100,
    STALL_US = 1000, /* again and again */
    WAIT_US_MAX = 8 * 1000 * 1000,
    HIBERNATE_US = 200 * 1000,
    PAUSE_US = 700 * 1000, /* of producers: they work until the stream was deleted */
    RETENTION_MS = 3000,   /* more than some rounds of care: the head is hibernated before */
    SEGMENTS_LEAST = 8,    /* more than a log drops at once */
    SEGMENTS_MAX = 14,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    uint32_t stream,
        segments; /* the stream that is to be deleted next, and how many it is to have */
    uint64_t until_us;
    bool filled, hibernated;
    struct sim_server *owner;
} stage; /* of the one scenario of a process */

static bool log_find(struct leat_partition_seen *out)
{
    struct leat_log_ref ref = {stage.stream, 0, 0};
    for (unsigned i = 0; i < stage.scenario->server_count; i++) {
        struct sim_server *server = &stage.scenario->servers[i];
        stage.owner = server;
        if (server->ready && server->process->alive && server->node &&
            leat_node_has_cores(server->node) && leat_node_partition_at(server->node, ref, out) &&
            out->log)
            return true;
    }
    return false;
}

static void stall(void)
{
    sim_disk_stall_reads(stage.owner->disk, stage.scenario->world->now_us + STALL_US);
}

/* Until the owner has heard of the deletion. */
static void look(struct sim_world *world, struct sim_event *event)
{
    struct leat_partition_seen partition;
    if (stage.scenario->faults_over || world->now_us >= stage.until_us) return;
    if (!log_find(&partition)) return;
    if (partition.going) {
        sim_disk_stall_reads(stage.owner->disk, 0);
        sim_stage_came(stage.scenario);
        return;
    }
    stall();
    sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

static bool waits(struct sim_client *client, uint32_t stream,
                  void (*produce)(struct sim_client *client))
{
    struct sim_world *world = stage.scenario->world;
    struct leat_partition_seen partition;
    struct leat_log_seen log;
    if (stage.stream != stream) {
        stage.stream = stream;
        stage.until_us = world->now_us + WAIT_US_MAX;
        stage.segments = (uint32_t)sim_rng_between(&stage.rng, SEGMENTS_LEAST, SEGMENTS_MAX);
        stage.filled = stage.hibernated = false;
    }
    if (world->now_us >= stage.until_us) return false;
    if (!log_find(&partition)) return true;
    leat_log_see(partition.log, &log);
    if (!stage.filled) {
        stage.filled = log.segment_count >= stage.segments;
        produce(client);
        return true;
    }
    stage.hibernated |= log.head && !log.head->buffer;
    if (!stage.hibernated) return true;
    stall();
    if (log.trim_segment <= leat_log_see_segment(partition.log, 0).seg->id.v) return true;
    sim_world_at(world, world->now_us + LOOK_US, look, stage.scenario);
    return false;
}

static void settings(struct leat_stream_settings *settings)
{
    settings->streamlets = settings->logs = 1;
    settings->retention_ms = RETENTION_MS;
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-resume");
    scenario->hibernate_after_us = HIBERNATE_US;
    scenario->pause_us_max = PAUSE_US;
}

static void start(struct scenario *scenario)
{
    (void)scenario; /* deletes.c asks */
}

static const struct sim_stage_deletes thrown = {settings, waits};

const struct sim_stage sim_stage_resume = {
    .name = "resume",
    .nodes = 3,
    .deletes = true,
    .needs = {.batches = 1, .few_logs = true},
    .choose = choose,
    .start = start,
    .thrown = &thrown,
};
