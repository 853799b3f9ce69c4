/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h): a streamlet moves while writes of its owner's disk stand still. A log drains, its backup has all
 * of the last batches, and then the owner's disk refuses them: the log ends where it is safe, before these batches.
 * When this end is committed all nodes are killed, before the new owner has the last segment, so the copies that the
 * nodes find are longer than their log. The old owner is away for longer. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/stage.h"
#include "wire/entry.h"

enum {
    BEGIN_US_MAX = 700 * 1000,
    LOOK_US = 50,
    STALL_US = 300 * 1000,
    MOVE_US_MAX = 400 * 1000,
    BACK_US_MAX = 50 * 1000,
    AWAY_US = 1500 * 1000,
    GAP_US = 2500 * 1000,
    STRIKES_MAX = 3,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, STALLED, REFUSED } step;
    struct leat_log_ref log; /* stream: the scenario's */
    struct sim_server *owner, *backup, *to;
    const struct leat_segment *head;
    uint64_t segment, until_us, begin_us;
    unsigned strikes;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static bool all_live(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++)
        if (!lives(&stage.scenario->servers[i])) return false;
    return true;
}

static struct leat_log_ref ref_of_log(void)
{
    struct leat_log_ref ref = stage.log;
    ref.stream = stage.scenario->streams[ref.stream].id;
    return ref;
}

static const struct leat_log *log_of_owner(void)
{
    struct leat_partition_seen partition;
    bool has =
        lives(stage.owner) && leat_node_partition_at(stage.owner->node, ref_of_log(), &partition);
    return has ? partition.log : NULL;
}

/* The backup's copy of the head; false: it has none in memory. */
static bool scan_backup(struct leat_scan *out_scan)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_of(leat_node_backup(stage.backup->node), ref_of_log(), &rep)) {
        if (rep.seg->id.v != stage.segment || !rep.seg->buffer || rep.damaged || rep.dropping)
            continue;
        leat_scan_segment(rep.seg->buffer, rep.seg->capacity, out_scan);
        return out_scan->started;
    }
    return false;
}

static void idle(uint64_t gap_us)
{
    if (stage.owner) {
        sim_disk_fail_place(stage.owner->disk, NULL, 0, 0);
        sim_disk_stall_writes(stage.owner->disk, 0);
    }
    stage.begin_us = stage.scenario->world->now_us + gap_us;
    stage.step = IDLE;
}

static void begin(void)
{
    struct scenario *scenario = stage.scenario;
    struct sim_rng *rng = &stage.rng;
    uint32_t stream = (uint32_t)sim_rng_below(rng, SIM_STREAMS);
    const struct leat_stream_settings *settings = &scenario->streams[stream].settings;
    struct leat_log_seen seen;
    struct leat_set_seen set;
    stage.log = (struct leat_log_ref){stream, (uint32_t)sim_rng_below(rng, settings->streamlets),
                                      (uint32_t)sim_rng_below(rng, settings->logs)};
    stage.owner = stage.backup = stage.to = NULL;
    if (!all_live()) return;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (sim_copies_owns(scenario, &scenario->servers[i], stage.log))
            stage.owner = &scenario->servers[i];
    const struct leat_log *log = stage.owner ? log_of_owner() : NULL;
    if (!log) return;
    leat_log_see(log, &seen);
    if (seen.state != LEAT_LOG_SERVING || !seen.head || seen.old || seen.head_records == 0 ||
        !leat_set_see_of(seen.head, &set) || set.copy_count != 1 || set.hibernated ||
        set.want_hibernated)
        return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (server == stage.owner) continue;
        if (leat_node_incarnation(server->node) == leat_copy_see(&set, 0).incarnation)
            stage.backup = server;
        else
            stage.to = server;
    }
    if (!stage.backup || !stage.to) return;
    stage.head = seen.head;
    stage.segment = seen.head->id.v;
    stage.step = STALLED;
    stage.until_us = scenario->world->now_us + STALL_US;
    sim_disk_stall_writes(stage.owner->disk, stage.until_us);
    scenario->wish =
        (struct sim_wish){.stream = stream, .streamlet = stage.log.streamlet, .to = stage.to};
}

/* The owner drains the log, and the backup has more than is safe. */
static void stalled(const struct leat_log *log)
{
    struct leat_log_seen seen;
    struct leat_scan scan;
    leat_log_see(log, &seen);
    if (seen.head != stage.head || leat_node_handing_over(stage.owner->node) == 0 ||
        !scan_backup(&scan) || scan.next_offset <= seen.safe_offset)
        return;
    sim_disk_fail_place(stage.owner->disk, seen.head->file, seen.head->file_offset,
                        seen.head->capacity);
    sim_disk_stall_writes(stage.owner->disk, 0);
    stage.step = REFUSED;
    stage.until_us = stage.scenario->world->now_us + MOVE_US_MAX;
}

/* The log's decided end, as far as a node knows; 0: none in this segment. */
static uint32_t decided_bytes(const struct sim_server *server)
{
    struct leat_machine_stream *stream;
    if (!leat_node_coordinator(server->node)) return 0;
    const struct leat_machine_log *row = leat_machine_log_find(
        leat_coordinator_tables(leat_node_coordinator(server->node)), ref_of_log(), &stream);
    if (!row || row->record.opened || row->record.tail.segment != stage.segment) return 0;
    return row->record.tail.prefix_id.bytes;
}

static void die(struct sim_server *server, uint64_t away_us)
{
    sim_fault_struck(stage.scenario->world, SIM_FAULT_KILL);
    server->down_wanted = true; /* for as long as it is said here */
    sim_process_die(server->process, SIM_DEATH_KILL);
    server->down_wanted = false;
    sim_server_boot_later(server, away_us);
}

static void refused(void)
{
    struct scenario *scenario = stage.scenario;
    uint32_t end = 0;
    struct leat_scan scan;
    for (unsigned i = 0; i < scenario->server_count && end == 0; i++)
        end = decided_bytes(&scenario->servers[i]);
    if (end == 0) return;
    if (scan_backup(&scan) && scan.bytes > end) {
        sim_stage_came(scenario);
        stage.strikes++;
    }
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        die(server, server == stage.owner ? AWAY_US + sim_rng_below(&stage.rng, AWAY_US)
                                          : sim_rng_below(&stage.rng, BACK_US_MAX));
    }
    idle(GAP_US);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        idle(0);
        return;
    }
    scenario->hurried = true;
    const struct leat_log *log = stage.step == IDLE ? NULL : log_of_owner();
    if (stage.step != IDLE && (world->now_us >= stage.until_us || !all_live())) idle(0);
    if (stage.step == STALLED && log)
        stalled(log);
    else if (stage.step == REFUSED)
        refused();
    else if (stage.step == IDLE && stage.strikes < STRIKES_MAX && world->now_us >= stage.begin_us)
        begin();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-longer");
    scenario->power_cuts = scenario->with_trims = false;
    scenario->value_bytes = 1600; /* batches of several sectors */
}

static void start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&stage.rng, BEGIN_US_MAX),
                 look, scenario);
}

const struct sim_stage sim_stage_longer = {
    .name = "longer",
    .nodes = 3,
    .needs = {.batches = 2, .copies = 2, .few_logs = true, .on_disk = true},
    .choose = choose,
    .start = start,
};
