/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a copy of an open segment that is made anew. There are four nodes, and three copies of
 * each log. A backup dies, so that its copies are soon made on the fourth node. When such a copy lacks acked bytes,
 * the owner and the other backup die, and stay away for seconds. The copy must not count as a copy of the log: what
 * was acked is not all there. Of the four nodes three vote: one of the two that die does not. */
#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/stage.h"

enum {
    NODES = 4,
    GRACE_US_MAX = 60 * 1000,
    DELAY_US = 800, /* between nodes: a copy is seen before it is whole */
    LOOK_US = 5,
    BEGIN_US = 400 * 1000,
    BACKUP_AWAY_US = 700 * 1000,
    GAP_US_MAX = 600 * 1000,
    AWAY_US = 2500 * 1000, /* the owner and the other backup */
    REST_US = 4 * AWAY_US / 3,
    STRIKES_MAX = 3,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    uint64_t next_us, rests_us; /* when the next backup dies; no strike before */
    unsigned strikes;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node) && leat_node_backup(server->node);
}

static bool all_live(void)
{
    for (unsigned i = 0; i < stage.scenario->server_count; i++)
        if (!lives(&stage.scenario->servers[i])) return false;
    return true;
}

static struct sim_server *server_named(const char *name)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (lives(&scenario->servers[i]) && strcmp(scenario->servers[i].name, name) == 0)
            return &scenario->servers[i];
    return NULL;
}

static void die(struct sim_server *server, uint64_t away_us)
{
    if (!server->process || !server->process->alive) return;
    sim_fault_struck(stage.scenario->world, SIM_FAULT_KILL);
    server->down_wanted = true; /* for as long as it is said here */
    sim_process_die(server->process, SIM_DEATH_KILL);
    server->down_wanted = false;
    sim_server_boot_later(server, away_us);
}

static bool votes(const struct sim_server *server)
{
    return server->number < SIM_VOTERS_MAX;
}

static bool is_acked(const struct sim_server *owner, const struct leat_segment *seg)
{
    struct leat_partition_seen partition;
    struct leat_log_seen log = {0};
    if (leat_node_partition_at(owner->node, seg->log, &partition) && partition.log)
        leat_log_see(partition.log, &log);
    return log.head == seg && log.head_acked;
}

/* Of the segment all bytes are acked, and one of the two copies lacks some. */
static bool strike_at(struct sim_server *owner, const struct leat_set_seen *set)
{
    struct sim_server *servers[2];
    struct leat_copy_seen copies[2];
    if (set->copy_count != 2 || !is_acked(owner, set->seg)) return false;
    for (unsigned i = 0; i < 2; i++) {
        copies[i] = leat_copy_see(set, i);
        servers[i] = server_named(copies[i].node);
        if (!servers[i] || copies[i].leaves || copies[i].state != LEAT_COPY_OPEN) return false;
    }
    unsigned filled = copies[0].done < copies[1].done ? 0 : 1;
    struct sim_server *other = servers[1 - filled];
    if (copies[filled].writes == 0 || copies[0].done == copies[1].done ||
        (votes(owner) && votes(other)))
        return false;
    stage.strikes++;
    sim_trace(stage.scenario->world, "stage: %s has %u of %u bytes of segment %llu",
              copies[filled].node, copies[filled].done, copies[1 - filled].done,
              (unsigned long long)set->id.v);
    sim_stage_came(stage.scenario);
    die(owner, AWAY_US);
    die(other, AWAY_US);
    stage.next_us = stage.scenario->world->now_us + REST_US;
    return true;
}

static bool strike(struct sim_server *owner)
{
    for (uint32_t core = 0; core < stage.scenario->cores; core++) {
        struct leat_primary *primary = leat_node_primary(owner->node, core);
        const struct leat_primary_log *log = NULL;
        while ((log = leat_primary_log_next(primary, log))) {
            struct leat_primary_log_seen of = leat_primary_log_see(log);
            struct leat_set_seen set = {0};
            uint32_t stream;
            if (!sim_stream_of(stage.scenario, of.ref.stream, &stream)) continue;
            while (leat_set_see_next(log, false, &set))
                if (set.seg && set.started && !set.closed && strike_at(owner, &set)) return true;
        }
    }
    return false;
}

/* Copies are to be made anew: of the nodes one dies, for a while. */
static void one_dies(void)
{
    struct scenario *scenario = stage.scenario;
    uint64_t now_us = scenario->world->now_us;
    if (now_us < stage.next_us || !all_live()) return;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(&stage.rng, scenario->server_count)];
    stage.next_us = now_us + BACKUP_AWAY_US + sim_rng_below(&stage.rng, GAP_US_MAX);
    die(server, BACKUP_AWAY_US);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    bool struck = false;
    if (scenario->faults_over || stage.strikes == STRIKES_MAX) return;
    for (unsigned i = 0; i < scenario->server_count && !struck; i++)
        struck = world->now_us >= stage.rests_us && lives(&scenario->servers[i]) &&
                 strike(&scenario->servers[i]);
    if (struck) stage.rests_us = stage.next_us;
    one_dies();
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-refill");
    scenario->grace_us = sim_rng_between(&stage.rng, 1000, GRACE_US_MAX);
    scenario->value_bytes = 1600;
}

static void start(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    for (unsigned i = 0; i < scenario->server_count; i++)
        for (unsigned k = 0; k < scenario->server_count; k++)
            if (i != k)
                sim_net_delay(world, scenario->servers[i].name, scenario->servers[k].name,
                              DELAY_US);
    stage.next_us = world->now_us + BEGIN_US;
    sim_world_at(world, stage.next_us, look, scenario);
}

const struct sim_stage sim_stage_refill = {
    .name = "refill",
    .nodes = NODES,
    .needs = {.batches = 4, .copies = 3, .few_logs = true, .one_log = true},
    .choose = choose,
    .start = start,
};
