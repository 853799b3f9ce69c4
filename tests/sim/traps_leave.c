/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) for copies that leave, in a few of the cluster seeds, in place of the scheduled faults. There are
 * two hosts with two machines each, and streams have two copies. Both machines of the second host are killed, so that
 * copies lie together on the first host. When the machines are back, closed segments get better copies there, and the
 * backup of the badly placed copy is told to drop it. This message takes a quarter of a second. Meanwhile all
 * connections of the machine with the better copy break, and its replicas are told of anew. As nobody dies, no segment
 * may be left with fewer whole copies than its stream asks for. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 25,
    LOOK_US = 500,
    AWAY_US_MAX = 900 * 1000,
    GRACE_US = 20 * 1000,
    GAP_US = 100 * 1000,
    ELECTION_US = 350 * 1000,
    /* Whoever answers so late is given three times as long as it took before; else 160 ms. */
    SLOW_US = 95 * 1000,
    SLOWER_US = 255 * 1000,
    SLOW_FOR_US = 400 * 1000,
    WATCH_US = 700 * 1000,
    PATIENCE_US = 2500 * 1000,
    LEAVING_MAX = 32,
};

enum step { IDLE, KILLED, SLOW, SLOWER, WATCH };

static struct trap_leave {
    struct scenario *scenario;
    struct sim_rng rng;
    enum step step;
    uint64_t until_us, slow_since_us;
    struct sim_server *owner, *backup;
    unsigned boots[SIM_SERVERS_MAX];
    struct {
        struct leat_log_ref log;
        struct leat_segment_id segment;
    } leaving[LEAVING_MAX];
    unsigned count;
} trap; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_coordinator(server->node) && leat_node_has_cores(server->node) &&
           leat_node_backup(server->node);
}

static bool all_live(void)
{
    for (unsigned i = 0; i < trap.scenario->server_count; i++)
        if (!lives(&trap.scenario->servers[i])) return false;
    return true;
}

static bool leads(const struct sim_server *server)
{
    const struct leat_coordinator *it = lives(server) ? leat_node_coordinator(server->node) : NULL;
    return it && leat_coordinator_see(it).recovers;
}

/* ---- the segments ---- */

static bool set_of(struct leat_log_ref ref, struct leat_segment_id segment,
                   struct leat_set_seen *out_set)
{
    for (uint32_t c = 0; c < trap.scenario->cores; c++) {
        const struct leat_primary *primary = leat_node_primary(trap.owner->node, c);
        const struct leat_primary_log *log = leat_primary_log_at(primary, ref);
        if (!log) continue;
        const struct leat_primary_log_seen as = leat_primary_log_see(log);
        return !as.releasing && !as.fenced && leat_set_see(log, segment, out_set);
    }
    return false;
}

static bool has_whole(const struct sim_server *server, const struct leat_segment *own)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_of(leat_node_backup(server->node), own->log, &rep)) {
        if (rep.dropping || rep.drop_wanted || rep.damaged) continue;
        const struct leat_segment *seg = rep.seg;
        if (seg->id.v == own->id.v && seg->state == LEAT_SEGMENT_CLOSED && !seg->incomplete &&
            seg->prefix_id.bytes == own->prefix_id.bytes &&
            seg->prefix_id.crc == own->prefix_id.crc)
            return true;
    }
    return false;
}

static unsigned whole_count(const struct leat_segment *own)
{
    unsigned count = 0;
    for (unsigned i = 0; i < trap.scenario->server_count; i++)
        if (&trap.scenario->servers[i] != trap.owner)
            count += has_whole(&trap.scenario->servers[i], own);
    return count;
}

static void watch(void)
{
    for (unsigned i = 0; i < trap.count; i++) {
        struct leat_set_seen set;
        if (!set_of(trap.leaving[i].log, trap.leaving[i].segment, &set)) continue;
        if (!set.closed || set.dropping || !set.seg) continue;
        unsigned count = whole_count(set.seg), copies = leat_primary_log_see(set.log).copies;
        if (count >= copies - 1) continue;
        sim_fail(trap.scenario->world,
                 "A1 lost-write: segment %llu of log id %u/%u/%u had %u copies beside %s's, nobody "
                 "died, and it has %u: others were dropped by its word",
                 (unsigned long long)set.id.v, set.seg->log.stream, set.seg->log.streamlet,
                 set.seg->log.log, copies, trap.owner->name, count);
    }
}

/* ---- steps ---- */

/* Which node has the better copy of something that leaves, by a word that is on its way? */
static const char *leaving_find(void)
{
    struct leat_copy_seen better = {0};
    trap.count = 0;
    for (uint32_t c = 0; c < trap.scenario->cores; c++) {
        const struct leat_primary *primary = leat_node_primary(trap.owner->node, c);
        struct leat_peer_seen peer = {0};
        while (leat_peer_see_next(primary, &peer)) {
            struct leat_copy_seen copy = {0};
            struct leat_set_seen set;
            if (strcmp(peer.node, trap.backup->name) != 0) continue;
            while (leat_peer_copy_next(&peer, &copy, &set)) {
                if (!copy.leaves || !set.closed || set.dropping || set.copy_count != 2 ||
                    trap.count == LEAVING_MAX)
                    continue;
                struct leat_copy_seen other = leat_copy_see(&set, 0);
                if (other.at == copy.at) other = leat_copy_see(&set, 1);
                if (better.at && other.peer != better.peer) continue;
                better = other;
                trap.leaving[trap.count].log = leat_primary_log_see(set.log).ref;
                trap.leaving[trap.count++].segment = set.id;
            }
        }
    }
    return better.node;
}

static void hosts_end(void)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 1; i < scenario->server_count; i += 2) {
        struct sim_server *server = &scenario->servers[i];
        if (!lives(server)) continue;
        server->away_us_max = AWAY_US_MAX;
        sim_fault_struck(scenario->world, SIM_FAULT_KILL);
        sim_process_die(server->process, SIM_DEATH_KILL);
    }
    trap.step = KILLED;
    trap.until_us = scenario->world->now_us + ELECTION_US;
}

static void slow(uint64_t delay_us)
{
    struct sim_world *world = trap.scenario->world;
    sim_net_delay(world, trap.owner->name, trap.backup->name, delay_us);
    sim_trace(world, "trap: what %s says takes %llu us to %s", trap.owner->name,
              (unsigned long long)delay_us, trap.backup->name);
    trap.slow_since_us = world->now_us;
}

static void strike(const char *better)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        trap.boots[i] = server->boots;
        if (strcmp(server->name, better) == 0) (void)sim_net_reset(server->process, 1000);
    }
    sim_fault_struck(scenario->world, SIM_FAULT_AMID_LEAVE);
    sim_trace(scenario->world, "trap: %u copies leave %s, and %s has the better ones", trap.count,
              trap.backup->name, better);
    trap.step = WATCH;
    trap.until_us = scenario->world->now_us + WATCH_US;
}

static bool somebody_died(void)
{
    for (unsigned i = 0; i < trap.scenario->server_count; i++)
        if (trap.scenario->servers[i].boots != trap.boots[i]) return true;
    return !all_live();
}

/* The one of the first host's that does not lead is to be the slow owner: who leads is to be heard. */
static void owner_choose(void)
{
    struct sim_server *first = &trap.scenario->servers[0], *second = &trap.scenario->servers[2];
    if (!lives(first) || !lives(second) || leads(first) == leads(second)) {
        trap.step = IDLE;
        return;
    }
    trap.owner = leads(first) ? second : first;
    trap.backup = leads(first) ? first : second;
    trap.step = SLOW;
    trap.until_us = trap.scenario->world->now_us + PATIENCE_US;
    slow(SLOW_US);
}

static void over(void)
{
    if (trap.step >= SLOW) slow(0);
    trap.step = IDLE;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    const char *better;
    if (scenario->faults_over) {
        over();
        return;
    }
    bool late = world->now_us >= trap.until_us;
    switch (trap.step) {
    case IDLE:
        if (late && all_live()) hosts_end();
        break;
    case KILLED:
        if (late) owner_choose();
        break;
    case SLOW:
        if (world->now_us >= trap.slow_since_us + SLOW_FOR_US && lives(trap.owner)) {
            slow(SLOWER_US);
            trap.step = SLOWER;
        }
        break;
    case SLOWER:
        better = all_live() ? leaving_find() : NULL;
        if (better)
            strike(better);
        else if (late)
            over();
        break;
    default:
        if (late || somebody_died())
            over();
        else
            watch();
        break;
    }
    if (trap.step == IDLE && trap.until_us <= world->now_us)
        trap.until_us = world->now_us + sim_rng_below(&trap.rng, GAP_US);
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

bool sim_trap_leave_choose(uint64_t seed)
{
    trap = (struct trap_leave){0};
    sim_rng_init(&trap.rng, seed, "trap-leave");
    return sim_rng_chance(&trap.rng, SEEDS_PER_MILLE);
}

void sim_trap_leave_set(struct scenario *scenario)
{
    trap.scenario = scenario;
    scenario->value_bytes = 1600;
    scenario->grace_us = GRACE_US;
}

void sim_trap_leave_start(struct scenario *scenario)
{
    trap.until_us = scenario->world->now_us + 500 * 1000;
    sim_world_at(scenario->world, scenario->world->now_us + LOOK_US, look, scenario);
}
