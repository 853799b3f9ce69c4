/* SPDX-License-Identifier: Apache-2.0 */
/* An aim (aims.c) at streamlets that move, in some of the cluster seeds: what goes wrong does so while the old owner
 * drains its logs, or while it waits for the coordinators' answer. Two other aims bring about what a move seldom
 * meets: a log whose first segment the coordinators have not committed yet, as their leader's disk is full, is moved;
 * and a log that has just been moved is moved on, before it was written to. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"
#include "tests/sim/truth.h"

enum {
    SEEDS_PER_MILLE = 250,
    FLUSH_PER_MILLE = 200,
    ASKED_PER_MILLE = 400,
    LAST_PER_MILLE = 500,
    UNHEARD_PER_MILLE = 500,
    GAP_US_MAX = 120 * 1000,
    LOOK_US = 150,
    LOOK_NEAR_US = 20,
    LOOK_US_MAX = 150 * 1000,
    SOON_US_MAX = 3000,
    AFTER_US_MAX = 40 * 1000,
    FULL_US_MAX = 1500 * 1000,
    AWAY_US_MAX = 2500 * 1000,
    UNHEARD_US_MAX = 1200 * 1000,
    OLD_US_MAX = 8000,
    READERS_FIRST = 60, /* their numbers */
    READERS_MAX = 2,
};

enum strike {
    FLUSH_FAILS, /* at the old owner, which then dies */
    LEADER_FULL, /* the coordinators have no room for the move */
    OWNER_DIES,
    OTHER_DIES, /* the new owner, or another one */
    LEADER_DIES,
    OWNER_STOPS,
    OLD_DIES, /* the old owner, with segments that the new one has not got yet; somebody reads them */
    UNOPENED, /* the leader has no room for a log's first segment, and the log moves then */
    STRIKES,
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum strike strike;
    bool looking, asked; /* asked: not before the coordinators are */
    bool near;           /* a streamlet is on its way */
    bool full;           /* UNOPENED: the leader has no room */
    bool ended;          /* nothing is struck any more: what stands still is to be seen */
    uint64_t until_us;
    uint32_t stream; /* that is to move */
    unsigned readers;
} aim; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

static struct sim_server *leader(void)
{
    struct scenario *scenario = aim.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        struct leat_coordinator *of = lives(server) ? leat_node_coordinator(server->node) : NULL;
        if (of && leat_coordinator_see(of).leads) return server;
    }
    return NULL;
}

static struct sim_server *another(const struct sim_server *than)
{
    struct scenario *scenario = aim.scenario;
    unsigned first = (unsigned)sim_rng_below(&aim.rng, scenario->server_count);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[(first + i) % scenario->server_count];
        if (server != than && lives(server)) return server;
    }
    return NULL;
}

static void wish(uint32_t stream, uint32_t streamlet, struct sim_server *to)
{
    if (!to || aim.scenario->wish.to) return;
    aim.scenario->wish = (struct sim_wish){.stream = stream, .streamlet = streamlet, .to = to};
}

/* ---- what goes wrong ---- */

static void death_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (aim.scenario->faults_over || !lives(server)) return;
    enum sim_death death = sim_death_of(server, (enum sim_death)event->n);
    server->away_us_max = sim_rng_between(&aim.rng, 1000, AWAY_US_MAX);
    sim_fault_struck(world, death == SIM_DEATH_POWER ? SIM_FAULT_POWER : SIM_FAULT_KILL);
    sim_process_die(server->process, death);
}

static void dies_soon(struct sim_server *server, uint64_t most_us)
{
    struct sim_world *world = aim.scenario->world;
    if (!server) return;
    bool power = aim.scenario->power_cuts && sim_rng_chance(&aim.rng, 500);
    sim_world_at(world, world->now_us + sim_rng_below(&aim.rng, most_us), death_due, server)->n =
        power ? SIM_DEATH_POWER : SIM_DEATH_KILL;
}

static void reader_due(struct sim_world *world, struct sim_event *event)
{
    if (aim.scenario->faults_over || aim.readers == READERS_MAX) return;
    (void)sim_client_start(aim.scenario, SIM_CLIENT_READER, (uint32_t)event->n,
                           READERS_FIRST + aim.readers++);
    (void)world;
}

/* Away for seconds. The server's records of a stream with one copy are on no other node. */
static void old_dies(struct sim_server *owner)
{
    struct sim_world *world = aim.scenario->world;
    sim_world_at(world, world->now_us + sim_rng_between(&aim.rng, 1000, OLD_US_MAX), death_due,
                 owner)
        ->n = SIM_DEATH_KILL;
    sim_world_at(world, world->now_us + OLD_US_MAX, reader_due, NULL)->n = aim.stream;
}

/* No other node hears what this server has to say before it ends, so that the server is called dead. */
static void unheard(const struct sim_server *server)
{
    struct scenario *scenario = aim.scenario;
    struct sim_world *world = scenario->world;
    uint64_t until_us = world->now_us + sim_rng_between(&aim.rng, 100000, UNHEARD_US_MAX);
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *other = &scenario->servers[i];
        if (other == server) continue;
        sim_net_cut(world, server->name, other->name, until_us);
        sim_net_cut(world, other->name, server->name, until_us);
    }
    sim_fault_struck(world, SIM_FAULT_NODE_ALONE);
}

static void stop_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (aim.scenario->faults_over || !lives(server)) return;
    if (sim_rng_chance(&aim.rng, UNHEARD_PER_MILLE)) {
        unheard(server);
        aim.ended = sim_rng_chance(&aim.rng, LAST_PER_MILLE);
    }
    sim_server_stop(server);
    (void)world;
}

/* There is room in the file of its log, as a rule: it is told that there is none. */
static void full_again(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    bool over = aim.scenario->faults_over || world->now_us >= event->n;
    aim.scenario->unseen_until_us = event->n;
    struct leat_coordinator *of = lives(server) ? leat_node_coordinator(server->node) : NULL;
    if (of) leat_coordinator_full_set(of, !over);
    if (!over) sim_world_at(world, world->now_us + LOOK_US, full_again, server)->n = event->n;
}

static void leader_full(uint64_t most_us)
{
    struct sim_world *world = aim.scenario->world;
    struct sim_server *server = leader();
    if (!server) return;
    sim_world_at(world, world->now_us, full_again, server)->n =
        world->now_us + sim_rng_between(&aim.rng, 1000, most_us);
}

static void strike(struct sim_server *owner)
{
    struct sim_world *world = aim.scenario->world;
    aim.ended = (aim.strike == LEADER_FULL || aim.strike == LEADER_DIES) &&
                sim_rng_chance(&aim.rng, LAST_PER_MILLE);
    sim_fault_struck(world, SIM_FAULT_AMID_DRAIN);
    sim_trace(world, "aim: %u at %s, which gives a streamlet away", (unsigned)aim.strike,
              owner->name);
    switch (aim.strike) {
    case FLUSH_FAILS:
        sim_disk_fail_next(owner->disk, LEAT_DISK_SYNC);
        dies_soon(owner, AFTER_US_MAX); /* else an operator would start it anew */
        break;
    case LEADER_FULL:
        leader_full(FULL_US_MAX);
        break;
    case OLD_DIES:
        old_dies(owner);
        break;
    case OWNER_DIES:
        dies_soon(owner, SOON_US_MAX);
        break;
    case OTHER_DIES:
        dies_soon(another(owner), SOON_US_MAX);
        break;
    case LEADER_DIES:
        dies_soon(leader(), SOON_US_MAX);
        break;
    default:
        sim_world_at(world, world->now_us + sim_rng_below(&aim.rng, SOON_US_MAX), stop_due, owner);
        break;
    }
}

/* ---- when ---- */

static bool gives_away(const struct sim_server *server)
{
    if (leat_node_handing_over(server->node) == 0) return false;
    aim.near = true;
    return !aim.asked || leat_node_move_asks(server->node);
}

/* Its first segment was refused, for want of room. */
static bool unopened(const struct sim_server *server, struct leat_log_ref *out_ref)
{
    struct leat_partition_seen it = {0};
    struct leat_log_seen log;
    while (leat_node_partition_next(server->node, &it)) {
        if (!it.log || it.going) continue;
        leat_log_see(it.log, &log);
        *out_ref = it.ref;
        if (log.opening_paused && sim_stream_of(aim.scenario, it.ref.stream, &out_ref->stream))
            return true;
    }
    return false;
}

static bool unopened_struck(const struct sim_server *server)
{
    struct leat_log_ref log;
    if (!unopened(server, &log)) return false;
    sim_fault_struck(aim.scenario->world, SIM_FAULT_AMID_DRAIN);
    sim_trace(aim.scenario->world, "aim: a log of %s, which is not opened, is to go", server->name);
    wish(log.stream, log.streamlet, another(server));
    aim.ended = sim_rng_chance(&aim.rng, LAST_PER_MILLE);
    return true;
}

/* True: struck. */
static bool server_look(struct sim_server *server)
{
    if (aim.strike == UNOPENED && aim.full) return unopened_struck(server);
    if (!gives_away(server) || aim.strike == UNOPENED) return false;
    strike(server);
    return true;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    bool over = scenario->faults_over || world->now_us >= aim.until_us, was_near = aim.near;
    aim.near = false;
    for (unsigned i = 0; i < scenario->server_count && !over; i++)
        if (lives(&scenario->servers[i])) over = server_look(&scenario->servers[i]);
    if (aim.strike == UNOPENED && was_near && !aim.near && !aim.full) {
        aim.full = true; /* its new owner has asked for nothing yet */
        leader_full(FULL_US_MAX);
    }
    if (over)
        aim.looking = false;
    else
        sim_world_at(world, world->now_us + (aim.near ? LOOK_NEAR_US : LOOK_US), look, scenario);
}

static void ask_move(void)
{
    struct scenario *scenario = aim.scenario;
    struct truth_log log;
    for (unsigned tries = 0; tries < 4; tries++) {
        uint32_t stream = (uint32_t)sim_rng_below(&aim.rng, SIM_STREAMS);
        uint32_t streamlets = scenario->streams[stream].settings.streamlets;
        uint32_t streamlet = (uint32_t)sim_rng_below(&aim.rng, streamlets);
        if (!truth_find(scenario, (struct leat_log_ref){scenario->streams[stream].id, streamlet, 0},
                        &log) ||
            !log.served)
            continue;
        wish(stream, streamlet, another(log.owner));
        aim.stream = stream;
        return;
    }
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    scenario->hurried = !scenario->faults_over;
    if (scenario->faults_over || aim.ended) return;
    if (!aim.looking) {
        aim.strike = (enum strike)sim_rng_below(&aim.rng, STRIKES);
        if (sim_rng_chance(&aim.rng, FLUSH_PER_MILLE)) aim.strike = FLUSH_FAILS;
        aim.asked = aim.strike == OLD_DIES ||
                    (aim.strike != FLUSH_FAILS && sim_rng_chance(&aim.rng, ASKED_PER_MILLE));
        aim.looking = true;
        aim.full = aim.near = false;
        aim.until_us = world->now_us + LOOK_US_MAX * (aim.strike == UNOPENED ? 4 : 1);
        ask_move();
        sim_world_at(world, world->now_us + LOOK_US, look, scenario);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&aim.rng, 20000, GAP_US_MAX), due,
                 scenario);
}

bool sim_aim_move_start(struct scenario *scenario)
{
    memset(&aim, 0, sizeof aim);
    aim.scenario = scenario;
    sim_rng_init(&aim.rng, scenario->world->seed, "aim-move");
    if (!sim_rng_chance(&aim.rng, SEEDS_PER_MILLE)) return false;
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&aim.rng, GAP_US_MAX),
                 due, scenario);
    return true;
}
