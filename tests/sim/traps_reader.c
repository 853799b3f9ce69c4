/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) for readers by offset, in a few of the cluster seeds, which have a machine that does not vote. An
 * owner is cut off from all voters, but not from this machine. The owner is called dead and another node serves its
 * logs, but the owner does not know, as it hears from the machine. A reader of Kafka's protocol reads on at the new
 * owner; then the reader asks the old owner, of which the reader was told long ago. The offset of the reader lies past
 * the end that the old owner knows: the reader must not be told that there is no such offset. */
#include "broker/probe.h"
#include "multilog/probe.h"
#include "tests/sim/kafka_client.h"

enum {
    SEEDS_PER_MILLE = 25,
    GAP_US_MAX = 800 * 1000,
    LOOK_US = 500,
    CUT_US = 2500 * 1000,
    BACK_US = 300 * 1000,
    ASKS_US = 150 * 1000, /* as often the reader asks anew who leads */
};

enum step { IDLE, CUT, BACK };

static struct trap_reader {
    struct scenario *scenario;
    struct sim_rng rng;
    enum step step;
    uint64_t until_us, asks_us;
    struct sim_server *old;
    struct sim_process *process; /* of `old`, when it was cut off */
    struct sim_client *reader;
} trap; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

/* ---- between machines ---- */

static void old_cut_from_voters(uint64_t until_us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < SIM_VOTERS_MAX; i++) {
        const struct sim_server *other = &scenario->servers[i];
        if (other == trap.old) continue;
        sim_net_cut(scenario->world, trap.old->name, other->name, until_us);
        sim_net_cut(scenario->world, other->name, trap.old->name, until_us);
    }
}

/* ---- who owns what ---- */

static const struct leat_log *log_at(const struct sim_server *server, struct leat_log_ref ref)
{
    struct leat_partition_seen partition;
    bool has = lives(server) && leat_node_partition_at(server->node, ref, &partition);
    return has && !partition.going ? partition.log : NULL;
}

/* True: the reader has come further in one of its logs than the old owner ever will. */
static bool is_past(void)
{
    const struct scenario *scenario = trap.scenario;
    const struct sim_stream *stream = &scenario->streams[trap.reader->stream];
    for (uint32_t s = 0; s < stream->settings.streamlets; s++)
        for (uint32_t q = 0; q < stream->settings.logs; q++) {
            struct leat_log_ref ref = {stream->id, s, q};
            const struct leat_log *old = log_at(trap.old, ref);
            struct leat_log_info info;
            if (!old) continue;
            leat_log_info(old, &info);
            if (trap.reader->processed[s][q] > info.acked_offset) return true;
        }
    return false;
}

static bool owns_any(const struct sim_server *server, uint32_t stream)
{
    const struct sim_stream *at = &trap.scenario->streams[stream];
    for (uint32_t s = 0; s < at->settings.streamlets; s++)
        if (log_at(server, (struct leat_log_ref){at->id, s, 0})) return true;
    return false;
}

/* ---- steps ---- */

static struct sim_client *reader_find(void)
{
    const struct scenario *scenario = trap.scenario;
    unsigned first = (unsigned)sim_rng_below(&trap.rng, scenario->client_count + 1);
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct sim_client *client = scenario->clients[(first + i) % scenario->client_count];
        if (client->kind == SIM_CLIENT_KAFKA_READER && client->process->alive) return client;
    }
    return NULL;
}

static void begin(void)
{
    struct scenario *scenario = trap.scenario;
    struct sim_world *world = scenario->world;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!lives(&scenario->servers[i])) return; /* most voters are to be there without it */
    trap.reader = reader_find();
    if (!trap.reader) return;
    for (unsigned i = 0; i < SIM_VOTERS_MAX; i++) {
        if (!owns_any(&scenario->servers[i], trap.reader->stream)) continue;
        trap.old = &scenario->servers[i];
        trap.process = trap.old->process;
        trap.step = CUT;
        trap.until_us = world->now_us + CUT_US;
        old_cut_from_voters(trap.until_us + BACK_US);
        trap.asks_us = world->now_us + ASKS_US;
        sim_trace(world, "trap: %s hears only who does not vote", trap.old->name);
        return;
    }
}

static void ask_old(void)
{
    struct sim_world *world = trap.scenario->world;
    trap.step = BACK;
    trap.until_us = world->now_us + BACK_US;
    sim_kafka_lead(trap.reader, trap.old->kafka_address);
    sim_fault_struck(world, SIM_FAULT_OLD_OWNER);
    sim_trace(world, "trap: %s asks the old owner", trap.reader->process->name);
}

static void end(void)
{
    old_cut_from_voters(0);
    trap.step = IDLE;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    if (trap.scenario->faults_over || world->now_us >= trap.until_us || !lives(trap.old) ||
        trap.old->process != trap.process || !trap.reader->process->alive) {
        end();
        return;
    }
    if (trap.step == CUT && is_past()) {
        ask_old();
    } else if (trap.step == CUT && world->now_us >= trap.asks_us) {
        sim_kafka_lead(trap.reader, NULL);
        trap.asks_us = world->now_us + ASKS_US;
    }
    sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    if (trap.scenario->faults_over) return;
    if (trap.step == IDLE) {
        begin();
        if (trap.step != IDLE) sim_world_at(world, world->now_us + LOOK_US, look, event->a);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 100000, GAP_US_MAX), due,
                 event->a);
}

bool sim_trap_reader_choose(uint64_t seed)
{
    trap = (struct trap_reader){0};
    sim_rng_init(&trap.rng, seed, "trap-reader");
    return sim_rng_chance(&trap.rng, SEEDS_PER_MILLE);
}

void sim_trap_reader_start(struct scenario *scenario)
{
    trap.scenario = scenario;
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX),
                 due, scenario);
}
