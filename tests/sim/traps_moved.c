/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (trap.c) around streamlets that move, in a few of the cluster seeds, where the trap takes the place of the
 * scheduled faults. All streams have two copies there, and a client moves their streamlets all the time.
 *
 * LATE_DROP: a node that gets a streamlet has, as a rule, a copy of each older segment more than the stream needs, and
 * tells the backup so. This message is late, by 60 to 140 ms, and meanwhile the log goes on to a third node, which
 * counts on that very copy: the copy is not to be dropped any more. */
#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 30,
    GAP_US_LEAST = 20 * 1000,
    GAP_US_MAX = 200 * 1000,
    LOOK_US = 200,
    CUT_US_LEAST = 60 * 1000,
    CUT_US_MAX = 140 * 1000, /* who is not heard for longer is called dead */
    RESET_US = 50 * 1000,    /* within it a session is there again */
    VALUE_BYTES = 1600,      /* of records: many segments are closed */
};

static struct trap_moved {
    struct scenario *scenario;
    struct sim_rng rng;
    uint64_t cut_until_us, reset_us; /* reset: from when on connections may be broken again */
} trap;                              /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node) && leat_node_coordinator(server->node) &&
           leat_node_backup(server->node);
}

static struct sim_server *server_of(uint64_t incarnation)
{
    for (unsigned i = 0; i < trap.scenario->server_count; i++) {
        struct sim_server *server = &trap.scenario->servers[i];
        if (lives(server) && leat_node_incarnation(server->node) == incarnation) return server;
    }
    return NULL;
}

static struct sim_server *third(const struct sim_server *one, const struct sim_server *other)
{
    for (unsigned i = 0; i < trap.scenario->server_count; i++) {
        struct sim_server *server = &trap.scenario->servers[i];
        if (server != one && server != other && lives(server)) return server;
    }
    return NULL;
}

/* ---- LATE_DROP ---- */

/* The segment has as many copies as it should, none of them at the node, and all backups know that their copies
 * count. */
static bool does_without(const struct leat_set_seen *set, const struct leat_peer_seen *peer)
{
    if (!set->closed || set->dropping ||
        set->copy_count < leat_primary_log_see(set->log).copies - 1)
        return false;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        if (copy.peer == peer->at || copy.state != LEAT_COPY_CLOSED || copy.found) return false;
    }
    return true;
}

/* One there that this owner has no use for. */
static const struct leat_segment *surplus(const struct leat_primary *primary,
                                          const struct leat_peer_seen *peer,
                                          const struct leat_backup *backup)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_next(backup, &rep)) {
        const struct leat_segment *seg = rep.seg;
        if (!seg || rep.busy || rep.drop_wanted || seg->state != LEAT_SEGMENT_CLOSED) continue;
        const struct leat_primary_log *log = leat_primary_log_at(primary, seg->log);
        struct leat_set_seen set;
        if (!log || leat_primary_log_see(log).silent || !leat_set_see(log, seg->id, &set)) continue;
        if (does_without(&set, peer)) return seg;
    }
    return NULL;
}

/* What is appended to the streamlet does not wait for that node: the move has to end before the word comes. */
static bool goes_without(const struct leat_segment *seg, const struct leat_peer_seen *peer)
{
    struct leat_copy_seen copy = {0};
    struct leat_set_seen set;
    while (leat_peer_copy_next(peer, &copy, &set)) {
        const struct leat_log_ref ref = leat_primary_log_see(set.log).ref;
        if (copy.state != LEAT_COPY_CLOSED && ref.stream == seg->log.stream &&
            ref.streamlet == seg->log.streamlet)
            return false;
    }
    return true;
}

static bool leads(const struct sim_server *server)
{
    return leat_coordinator_see(leat_node_coordinator(server->node)).recovers;
}

/* An owner asks a backup what it holds when their session begins. */
static bool dropped_late(struct sim_server *owner, const struct leat_primary *primary,
                         const struct leat_peer_seen *peer)
{
    struct scenario *scenario = trap.scenario;
    struct sim_world *world = scenario->world;
    struct sim_server *server = server_of(peer->incarnation);
    if (!server || leads(server)) return false; /* the move is asked for there */
    const struct leat_segment *seg = surplus(primary, peer, leat_node_backup(server->node));
    struct sim_server *to = seg ? third(owner, server) : NULL;
    uint32_t stream;
    if (!to || !sim_stream_of(scenario, seg->log.stream, &stream)) return false;
    if (!peer->audits) {
        if (world->now_us < trap.reset_us) return false;
        trap.reset_us = world->now_us + RESET_US;
        sim_net_reset_between(owner->process, server->process);
        return true;
    }
    if (!goes_without(seg, peer)) return false;
    trap.cut_until_us = world->now_us + sim_rng_between(&trap.rng, CUT_US_LEAST, CUT_US_MAX);
    sim_net_cut(world, owner->name, server->name, trap.cut_until_us);
    scenario->wish = (struct sim_wish){.stream = stream, .streamlet = seg->log.streamlet, .to = to};
    sim_fault_struck(world, SIM_FAULT_LATE_DROP);
    sim_trace(world,
              "trap: %s is late at %s with its word about segment %llu of %u/%u/%u until %llu",
              owner->name, server->name, (unsigned long long)seg->id.v, stream, seg->log.streamlet,
              seg->log.log, (unsigned long long)trap.cut_until_us);
    return true;
}

static bool struck(struct sim_server *server)
{
    for (uint32_t c = 0; c < trap.scenario->cores; c++) {
        const struct leat_primary *primary = leat_node_primary(server->node, c);
        struct leat_peer_seen peer = {0};
        while (leat_peer_see_next(primary, &peer))
            if (peer.attached && dropped_late(server, primary, &peer)) return true;
    }
    return false;
}

/* ---- when ---- */

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    scenario->hurried = !scenario->faults_over;
    if (scenario->faults_over) return;
    for (unsigned i = 0; i < scenario->server_count && world->now_us >= trap.cut_until_us; i++)
        if (lives(&scenario->servers[i]) && struck(&scenario->servers[i])) break;
    uint64_t next_us = world->now_us + LOOK_US;
    sim_world_at(world, next_us > trap.cut_until_us ? next_us : trap.cut_until_us, look, scenario);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) return;
    uint32_t stream = (uint32_t)sim_rng_below(&trap.rng, SIM_STREAMS);
    uint32_t streamlets = scenario->streams[stream].settings.streamlets;
    unsigned to = (unsigned)sim_rng_below(&trap.rng, scenario->server_count);
    uint32_t streamlet = (uint32_t)sim_rng_below(&trap.rng, streamlets);
    if (world->now_us >= trap.cut_until_us)
        scenario->wish = (struct sim_wish){
            .stream = stream, .streamlet = streamlet, .to = &scenario->servers[to]};
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, GAP_US_LEAST, GAP_US_MAX), due,
                 scenario);
}

bool sim_trap_moved_choose(struct scenario *scenario)
{
    trap = (struct trap_moved){.scenario = scenario};
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-moved");
    if (!sim_rng_chance(&trap.rng, SEEDS_PER_MILLE)) return false;
    scenario->value_bytes = VALUE_BYTES;
    return true;
}

void sim_trap_moved_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + LOOK_US, look, scenario);
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX),
                 due, scenario);
}
