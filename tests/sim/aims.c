/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that are aimed: what chance seldom brings together is waited for, and struck in the middle of.
 * In half of the seeds, beside all others, by a generator of their own.
 *
 * After what an aim needs has been brought about (appends pause, so that logs hibernate; a node dies, so that
 * another recovers its logs) the world is looked at every little while, until what was aimed at is
 * under way, or the patience is over. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/aims.h"
#include "tests/sim/scenario.h"

enum {
    AIMED_PER_MILLE = 500, /* of the seeds */
    GAP_US_MAX = 1200 * 1000,
    HIBERNATE_US_MAX = 1500 * 1000, /* a log that hibernates later is not waited for */
    RESUME_US = 400 * 1000,
    RECOVERY_US = 600 * 1000,
    TRIM_US = 800 * 1000,
    LOOK_US = 300,
    ENTRY_US = 800 * 1000,
    VERSION_US = 600 * 1000,
    AWAY_US_MAX = 6000 * 1000,
};

enum aim_kind {
    AMID_RESUME, /* dies while a hibernated log is woken */
    LAST_WORD,   /* the leader is not heard from the middle of a recovery on, and comes back */
    OWNER_ENTRY, /* an owner is not heard from the moment on that it asks the coordinators something */
    LEFT_WRITES, /* a session ends while its writes are on their way for long, and others begin */
    AMID_TRIM,   /* an owner dies while segments go whose end was written slowly */
    FILE_ONLY,   /* the power goes, but for one node, which is killed and stays away */
    NEW_VERSION, /* the power goes when the coordinators have a version that leaves a lost copy behind */
    AIM_KINDS,
};

struct sim_aims {
    struct scenario *scenario;
    struct sim_rng rng;
    enum aim_kind kind;
    bool looking;
    bool held[SIM_SERVERS_MAX]; /* acks of its logs were seen to wait for a version */
    uint64_t until_us;
    uint32_t weights[AIM_KINDS];
};

static void look(struct sim_world *world, struct sim_event *event);

static bool lives(const struct sim_server *server)
{
    return server->process && server->process->alive;
}

static void strike_down(struct sim_server *server, enum sim_death death)
{
    struct sim_world *world = server->scenario->world;
    if (!lives(server)) return;
    death = sim_death_of(server, death);
    sim_fault_struck(world, death == SIM_DEATH_POWER ? SIM_FAULT_POWER : SIM_FAULT_KILL);
    sim_process_die(server->process, death);
}

static enum sim_death any_death(struct sim_aims *aims)
{
    return sim_rng_chance(&aims->rng, 500) ? SIM_DEATH_POWER : SIM_DEATH_KILL;
}

static void death_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (server->scenario->faults_over) return;
    strike_down(server, (enum sim_death)event->n);
    (void)world;
}

static void die_soon(struct sim_aims *aims, struct sim_server *server, uint64_t most_us)
{
    struct sim_world *world = aims->scenario->world;
    sim_world_at(world, world->now_us + sim_rng_below(&aims->rng, most_us), death_due, server)->n =
        any_death(aims);
}

/* Of all machines but one, at once. */
static void power_goes(struct sim_aims *aims, const struct sim_server *spared)
{
    struct scenario *scenario = aims->scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (&scenario->servers[i] != spared) strike_down(&scenario->servers[i], SIM_DEATH_POWER);
}

/* What it says is heard late; it hears the others. */
static void unheard(struct sim_aims *aims, const struct sim_server *server)
{
    struct scenario *scenario = aims->scenario;
    struct sim_world *world = scenario->world;
    uint64_t until_us = world->now_us + sim_rng_between(&aims->rng, 250000, 2500000);
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (&scenario->servers[i] != server)
            sim_net_cut(world, server->name, scenario->servers[i].name, until_us);
    sim_fault_struck(world, SIM_FAULT_NODE_ALONE);
    sim_trace(world, "%s is not heard until %llu", server->name, (unsigned long long)until_us);
}

static void look_for(struct sim_aims *aims, uint64_t from_us, uint64_t for_us)
{
    aims->looking = true;
    aims->until_us = from_us + for_us;
    sim_world_at(aims->scenario->world, from_us, look, aims);
}

/* ---- who is in the middle of what ---- */

static bool any_log(const struct sim_server *server, bool (*is)(const struct leat_primary_log *log))
{
    const struct leat_node *node = server->node;
    for (uint32_t c = 0; node && leat_node_has_cores(node) && c < server->scenario->cores; c++) {
        const struct leat_primary *primary = leat_node_primary(node, c);
        const struct leat_primary_log *log = NULL;
        while ((log = leat_primary_log_next(primary, log)))
            if (is(log)) return true;
    }
    return false;
}

static bool log_resumes(const struct leat_primary_log *log)
{
    struct leat_set_seen set = {0};
    while (leat_set_see_next(log, false, &set))
        if (set.resumes) return true;
    return false;
}

static bool log_gives_up(const struct leat_primary_log *log)
{
    for (unsigned settled = 0; settled < 2; settled++) {
        struct leat_set_seen set = {0};
        while (leat_set_see_next(log, settled, &set))
            if (set.dropping) return true;
    }
    return false;
}

static bool log_waits_for_version(const struct leat_primary_log *log)
{
    return leat_primary_log_see(log).held;
}

static bool decides(const struct sim_server *server)
{
    const struct leat_coordinator *coordinator =
        server->node ? leat_node_coordinator(server->node) : NULL;
    if (!coordinator) return false;
    enum leat_recovery_phase phase = leat_coordinator_see(coordinator).phase;
    return phase == LEAT_RECOVERY_COLLECT || phase == LEAT_RECOVERY_PREPARE;
}

/* Is an entry of its logs on its way to a leader elsewhere? */
static bool asks(const struct sim_server *server)
{
    const struct leat_coordinator *coordinator =
        server->node ? leat_node_coordinator(server->node) : NULL;
    if (!coordinator) return false;
    const struct leat_coordinate *request = NULL;
    while ((request = leat_coordinator_pending(coordinator, request)))
        if (request->kind == LEAT_COORDINATE_OPENED || request->kind == LEAT_COORDINATE_VERSION ||
            request->kind == LEAT_COORDINATE_MOVE)
            return true;
    return false;
}

/* True: struck. */
static bool struck(struct sim_aims *aims, struct sim_server *server)
{
    switch (aims->kind) {
    case AMID_RESUME:
        if (!any_log(server, log_resumes) || !sim_rng_chance(&aims->rng, 250)) return false;
        strike_down(server, any_death(aims));
        return true;
    case LAST_WORD:
        if (!decides(server)) return false;
        unheard(aims, server);
        return true;
    case OWNER_ENTRY:
        if (!asks(server) || !sim_rng_chance(&aims->rng, 300)) return false;
        unheard(aims, server);
        return true;
    case AMID_TRIM:
        if (!any_log(server, log_gives_up)) return false;
        /* The replica of this node must not be the replica for which the other nodes are asked. */
        server->away_us_max = AWAY_US_MAX;
        die_soon(aims, server, 3000);
        return true;
    case NEW_VERSION:
        if (any_log(server, log_waits_for_version))
            aims->held[server->number] = true;
        else if (aims->held[server->number]) {
            power_goes(aims, NULL);
            return true;
        }
        return false;
    default:
        return true;
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct sim_aims *aims = event->a;
    struct scenario *scenario = aims->scenario;
    bool over = scenario->faults_over || world->now_us >= aims->until_us;
    for (unsigned i = 0; i < scenario->server_count && !over; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (lives(server) && struck(aims, server)) over = true;
    }
    if (!over) {
        sim_world_at(world, world->now_us + LOOK_US, look, aims);
        return;
    }
    aims->looking = false;
}

/* ---- what brings it about ---- */

/* Nobody appends for as long as it takes logs to hibernate; then everybody does at once. */
static void quiet(struct sim_aims *aims)
{
    struct scenario *scenario = aims->scenario;
    uint64_t now_us = scenario->world->now_us;
    if (scenario->hibernate_after_us > HIBERNATE_US_MAX) return;
    uint64_t until_us =
        now_us + scenario->hibernate_after_us + sim_rng_between(&aims->rng, 100000, 400000);
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct sim_client *client = scenario->clients[i];
        bool writes = client->kind == SIM_CLIENT_PRODUCER || client->kind == SIM_CLIENT_RAW ||
                      client->kind == SIM_CLIENT_KAFKA_PRODUCER ||
                      client->kind == SIM_CLIENT_TRIMMER;
        if (writes) sim_process_pause(client->process, until_us);
    }
    sim_trace(scenario->world, "nobody appends until %llu", (unsigned long long)until_us);
    look_for(aims, until_us, RESUME_US);
}

/* The bytes that the other machines had in memory are in the memory of the machine that is away. */
static void power_goes_but_for_one(struct sim_aims *aims)
{
    struct scenario *scenario = aims->scenario;
    struct sim_server *spared =
        &scenario->servers[sim_rng_below(&aims->rng, scenario->server_count)];
    if (!scenario->power_cuts) return;
    spared->away_us_max = AWAY_US_MAX;
    strike_down(spared, SIM_DEATH_KILL);
    power_goes(aims, spared);
}

static void killed_for_version(struct sim_aims *aims)
{
    struct scenario *scenario = aims->scenario;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(&aims->rng, scenario->server_count)];
    if (!scenario->power_cuts) return;
    memset(aims->held, 0, sizeof aims->held);
    server->away_us_max = AWAY_US_MAX;
    strike_down(server, SIM_DEATH_KILL);
    look_for(aims, scenario->world->now_us + 100, VERSION_US);
}

static void killed_for_recovery(struct sim_aims *aims)
{
    struct scenario *scenario = aims->scenario;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(&aims->rng, scenario->server_count)];
    server->away_us_max = sim_rng_between(&aims->rng, 50000, 400000);
    strike_down(server, SIM_DEATH_KILL);
    look_for(aims, scenario->world->now_us + 100, RECOVERY_US);
}

static void writes_as_before(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    world->rmem_slow_per_mille = scenario->faults_over ? 0 : (uint32_t)event->n;
}

static void writes_slow(struct sim_aims *aims, uint32_t per_mille, uint64_t for_us)
{
    struct sim_world *world = aims->scenario->world;
    sim_world_at(world, world->now_us + for_us, writes_as_before, aims->scenario)->n =
        world->rmem_slow_per_mille;
    world->rmem_slow_per_mille = per_mille;
}

static void reset_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_server *server = event->a;
    if (!server->scenario->faults_over && lives(server)) (void)sim_net_reset(server->process, 1000);
    (void)world;
}

/* Copies that were lost with the session are made anew, in other places; lost again, in the old ones. */
static void writes_left(struct sim_aims *aims)
{
    struct scenario *scenario = aims->scenario;
    struct sim_world *world = scenario->world;
    struct sim_server *server =
        &scenario->servers[sim_rng_below(&aims->rng, scenario->server_count)];
    uint64_t at_us = world->now_us + sim_rng_between(&aims->rng, 500, 4000);
    writes_slow(aims, 1000, at_us - world->now_us);
    for (unsigned i = 0; i < 3; i++) {
        sim_world_at(world, at_us, reset_due, server);
        at_us += sim_rng_between(&aims->rng, 15000, 150000);
    }
}

static void due(struct sim_world *world, struct sim_event *event);

static void aim(struct sim_aims *aims)
{
    uint64_t all = 0, kind = 0;
    for (unsigned i = 0; i < AIM_KINDS; i++)
        all += aims->weights[i];
    uint64_t pick = sim_rng_below(&aims->rng, all);
    while (pick >= aims->weights[kind])
        pick -= aims->weights[kind++];
    aims->kind = (enum aim_kind)kind;
    struct sim_world *world = aims->scenario->world;
    sim_trace(world, "aim %u", (unsigned)kind);
    switch (aims->kind) {
    case AMID_RESUME:
        quiet(aims);
        break;
    case LAST_WORD:
        killed_for_recovery(aims);
        break;
    case OWNER_ENTRY:
        look_for(aims, world->now_us, ENTRY_US);
        break;
    case LEFT_WRITES:
        writes_left(aims);
        break;
    case AMID_TRIM:
        writes_slow(aims, 700, TRIM_US);
        look_for(aims, world->now_us + 1000, TRIM_US);
        break;
    case FILE_ONLY:
        power_goes_but_for_one(aims);
        break;
    case NEW_VERSION:
        killed_for_version(aims);
        break;
    default:
        break;
    }
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct sim_aims *aims = event->a;
    if (aims->scenario->faults_over) return;
    if (!aims->looking) aim(aims);
    sim_world_at(world, world->now_us + sim_rng_between(&aims->rng, 50000, GAP_US_MAX), due, aims);
}

void sim_aims_start(struct scenario *scenario)
{
    static struct sim_aims aims; /* of the one scenario of a process */
    aims = (struct sim_aims){.scenario = scenario};
    sim_rng_init(&aims.rng, scenario->world->seed, "aims");
    if (!sim_rng_chance(&aims.rng, AIMED_PER_MILLE)) return;
    for (uint32_t all = 0; all == 0;)
        for (unsigned i = 0; i < AIM_KINDS; i++)
            all += aims.weights[i] = (uint32_t)sim_rng_below(&aims.rng, 3);
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&aims.rng, GAP_US_MAX),
                 due, &aims);
}
