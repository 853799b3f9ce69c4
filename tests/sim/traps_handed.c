/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) at replicas that are on their way to a log which has gone on, in a few of the cluster seeds, where
 * the trap takes the place of the scheduled faults. A streamlet moves to the node that has copies of its older
 * segments, and writes are slow there, so that the node takes long to make the copies its own. Meanwhile the streamlet
 * moves on to the third node, which has no copies. When the third node has the streamlet, the replicas on their way are
 * stopped at the second node for up to 0.3 s: they are on their way when the third node asks for them. From then on
 * reads are stopped, too, and for longer. A read that began then would end with a replica that is gone. Or the writer
 * of a replica is killed, and fenced while the replica is on its way. */
#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 30,
    GAP_US_MAX = 60 * 1000,
    LOOK_US = 200,
    STEP_US_MAX = 400 * 1000, /* for one step of it */
    SLOW_US = 3 * 1000,       /* of each write, as it were */
    STOP_US_LEAST = 100 * 1000,
    STOP_US_MAX = 300 * 1000,
    KILL_PER_MILLE = 300,
    READ_US = 3 * 1000, /* after the writes */
    VALUE_BYTES = 1600, /* of records: many segments are closed */
};

enum step { IDLE, COMES, GOES_ON, STOPPED };

static struct trap_handed {
    struct scenario *scenario;
    struct sim_rng rng;
    enum step step;
    uint64_t until_us, slow_until_us;
    uint32_t stream, streamlet;
    struct sim_server *has, *third;
    uint64_t stopped; /* the handle of a replica */
    uint64_t segment; /* of that one */
} trap;               /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_coordinator(server->node) && leat_node_backup(server->node);
}

static bool is_of_it(struct leat_log_ref ref)
{
    return ref.stream == trap.scenario->streams[trap.stream].id && ref.streamlet == trap.streamlet;
}

static bool owns_it(const struct sim_server *server)
{
    return sim_copies_owns(trap.scenario, server,
                           (struct leat_log_ref){trap.stream, trap.streamlet, 0});
}

/* Closed replicas of the streamlet at a node; *out_adopted: a replica that is on its way to a log, or zeros. */
static unsigned replicas_at(const struct sim_server *server, struct leat_replica_seen *out_adopted)
{
    struct leat_replica_seen rep = {0};
    unsigned count = 0;
    *out_adopted = rep;
    while (leat_backup_see_next(leat_node_backup(server->node), &rep)) {
        if (!rep.seg || rep.seg->state != LEAT_SEGMENT_CLOSED || !is_of_it(rep.seg->log)) continue;
        count++;
        if (rep.adopting) *out_adopted = rep;
    }
    return count;
}

static void wish(struct sim_server *to)
{
    trap.scenario->wish =
        (struct sim_wish){.stream = trap.stream, .streamlet = trap.streamlet, .to = to};
}

static void step_to(enum step step, uint64_t for_us)
{
    trap.step = step;
    trap.until_us = trap.scenario->world->now_us + for_us;
}

/* Find the owner, the node with the most copies, and the node with the fewest. */
static void begin(void)
{
    struct scenario *scenario = trap.scenario;
    struct leat_replica_seen adopted;
    unsigned most = 0, fewest = 0;
    trap.stream = (uint32_t)sim_rng_below(&trap.rng, SIM_STREAMS);
    trap.streamlet =
        (uint32_t)sim_rng_below(&trap.rng, scenario->streams[trap.stream].settings.streamlets);
    trap.has = trap.third = NULL;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!lives(server)) return;
        if (owns_it(server)) continue;
        unsigned count = replicas_at(server, &adopted);
        if (!trap.has || count > most) {
            most = count;
            trap.has = server;
        }
        if (!trap.third || count <= fewest) {
            fewest = count;
            trap.third = server;
        }
    }
    if (!trap.has || trap.has == trap.third) return;
    wish(trap.has);
    step_to(COMES, STEP_US_MAX);
}

/* Of that one; NULL: it does not live, or is there itself. */
static struct sim_server *writer_of(const struct leat_replica_seen *rep)
{
    for (unsigned i = 0; i < trap.scenario->server_count && rep->writer.at; i++) {
        struct sim_server *server = &trap.scenario->servers[i];
        if (server != trap.has && lives(server) &&
            leat_node_incarnation(server->node) == rep->writer.incarnation)
            return server;
    }
    return NULL;
}

static void stop(const struct leat_replica_seen *adopted)
{
    struct sim_world *world = trap.scenario->world;
    uint64_t for_us = sim_rng_between(&trap.rng, STOP_US_LEAST, STOP_US_MAX);
    sim_disk_stall_writes(trap.has->disk, world->now_us + for_us);
    trap.stopped = adopted->handle;
    trap.segment = adopted->seg->id.v;
    step_to(STOPPED, for_us);
    sim_fault_struck(world, SIM_FAULT_HANDED_ON);
    sim_trace(world, "trap: %s has %u/%u, and segment %llu of it is on its way to a log of %s",
              trap.third->name, trap.stream, trap.streamlet, (unsigned long long)trap.segment,
              trap.has->name);
    struct sim_server *writer = writer_of(adopted);
    if (!writer || !sim_rng_chance(&trap.rng, KILL_PER_MILLE)) return;
    sim_fault_struck(world, SIM_FAULT_KILL);
    sim_process_die(writer->process, sim_death_of(writer, SIM_DEATH_KILL));
}

static void step(void)
{
    struct sim_world *world = trap.scenario->world;
    struct leat_replica_seen adopted;
    uint64_t next_segment;
    bool next = leat_node_takeover_wants(trap.third->node, trap.scenario->streams[trap.stream].id,
                                         trap.streamlet, &next_segment);
    (void)replicas_at(trap.has, &adopted);
    if (trap.step == COMES && owns_it(trap.has)) {
        wish(trap.third);
        step_to(GOES_ON, STEP_US_MAX);
    } else if (trap.step == GOES_ON && next) {
        if (adopted.at)
            stop(&adopted);
        else
            step_to(IDLE, 0);
    } else if (trap.step == STOPPED) {
        if (adopted.at && adopted.handle == trap.stopped && next && next_segment == trap.segment)
            sim_disk_stall_reads(trap.has->disk, trap.until_us + READ_US);
        return;
    }
    /* It may have been refused: clients are told who owns it a little later. */
    if (trap.step == GOES_ON && !trap.scenario->wish.to) wish(trap.third);
    if (trap.step != IDLE && adopted.at && world->now_us >= trap.slow_until_us) {
        trap.slow_until_us = world->now_us + SLOW_US;
        sim_disk_stall_writes(trap.has->disk, trap.slow_until_us);
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over || world->now_us >= trap.until_us || !lives(trap.has) ||
        !lives(trap.third))
        trap.step = IDLE;
    else
        step();
    if (trap.step != IDLE) sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    scenario->hurried = !scenario->faults_over;
    if (scenario->faults_over) return;
    if (trap.step == IDLE) {
        begin();
        if (trap.step != IDLE) sim_world_at(world, world->now_us + LOOK_US, look, scenario);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 1000, GAP_US_MAX), due,
                 scenario);
}

bool sim_trap_handed_choose(struct scenario *scenario)
{
    trap = (struct trap_handed){.scenario = scenario};
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-handed");
    if (!sim_rng_chance(&trap.rng, SEEDS_PER_MILLE)) return false;
    scenario->value_bytes = VALUE_BYTES;
    return true;
}

void sim_trap_handed_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX),
                 due, scenario);
}
