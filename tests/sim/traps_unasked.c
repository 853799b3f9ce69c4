/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (traps.c) for damage that another node could repair if it could be asked, in some cluster seeds in which
 * nothing else goes wrong. Every stream has three copies. A bit flips in the file of a closed segment that its owner
 * serves from there, and in the copy on the leader's disk. The third node has the segment whole, and this node and the
 * owner do not hear each other for as long as an owner takes to call a segment lost. The third node is up all that
 * while, for the leader hears both. A reader comes by: the reader is to wait, and to be given every record. Where no
 * segment is closed and out of memory yet a node dies, so that its logs go to nodes that have them in files. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "store/probe.h"
#include "tests/sim/scenario.h"

enum {
    SEEDS_PER_MILLE = 25,
    GAP_US_MAX = 800 * 1000,
    CUT_US = 4500 * 1000, /* an owner looks for 3 s before it calls a segment lost */
    REPAIR_US = 30 * 1000 * 1000,
    LOOK_US = 10 * 1000,
    AWAY_US_MAX = 50 * 1000,
    READERS_FIRST = 50, /* their numbers */
    STRIKES_MAX = 3,
};

struct place {
    struct sim_server *server;
    char path[32];
    uint64_t offset;
    unsigned bit;
    uint8_t byte; /* as it was */
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { IDLE, CUT, REPAIRING } step;
    struct place owner, other;
    const struct sim_server *third;
    struct sim_client *reader;
    uint64_t until_us;
    unsigned strikes;
} trap; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_coordinator(server->node) && leat_node_has_cores(server->node) &&
           leat_node_store(server->node);
}

/* ---- a segment that is so ---- */

/* The next closed segment that is in its file alone. */
static const struct leat_segment *closed_next(const struct sim_server *server,
                                              struct leat_store_seen *at)
{
    while (leat_store_see_next(leat_node_store(server->node), at)) {
        const struct leat_segment *seg = at->seg;
        if (seg && at->written == LEAT_SEGMENT_CLOSED && at->written_flushed &&
            seg->state == LEAT_SEGMENT_CLOSED && !seg->incomplete &&
            !leat_segment_is_damaged(seg) && !seg->buffer && !at->shares_place && !at->goes)
            return seg;
    }
    return NULL;
}

static const struct leat_segment *copy_at(const struct sim_server *server,
                                          const struct leat_segment *seg)
{
    struct leat_store_seen at = {0};
    const struct leat_segment *copy;
    while ((copy = closed_next(server, &at)))
        if (copy->role == LEAT_SEGMENT_REPLICA && copy->id.v == seg->id.v &&
            leat_log_ref_equal(copy->log, seg->log) &&
            copy->prefix_id.bytes == seg->prefix_id.bytes &&
            copy->prefix_id.crc == seg->prefix_id.crc)
            return copy;
    return NULL;
}

/* Whom an owner asks first. */
static bool is_before(const struct sim_server *owner, const struct sim_server *one,
                      const struct sim_server *other)
{
    const char *name;
    for (uint32_t i = 0; (name = leat_node_member(owner->node, i)); i++) {
        if (strcmp(name, one->name) == 0) return true;
        if (strcmp(name, other->name) == 0) return false;
    }
    return false;
}

static struct place place_of(struct sim_server *server, const struct leat_segment *seg, uint32_t at)
{
    struct place place = {.server = server,
                          .offset = seg->file_offset + at,
                          .bit = (unsigned)sim_rng_below(&trap.rng, 8)};
    snprintf(place.path, sizeof place.path, "store/%u", seg->file_number);
    (void)sim_disk_peek(server->disk, place.path, place.offset, &place.byte, 1);
    return place;
}

static void flip(const struct place *place)
{
    (void)sim_disk_flip(place->server->disk, place->path, place->offset, place->bit);
}

static bool is_right(const struct place *place)
{
    uint8_t byte = 0;
    (void)sim_disk_peek(place->server->disk, place->path, place->offset, &byte, 1);
    return byte == place->byte;
}

/* ---- when ---- */

static void cut_until(uint64_t until_us)
{
    struct sim_world *world = trap.scenario->world;
    sim_net_cut(world, trap.owner.server->name, trap.third->name, until_us);
    sim_net_cut(world, trap.third->name, trap.owner.server->name, until_us);
}

static void strike(struct sim_server *owner, struct sim_server *leader, struct sim_server *third,
                   const struct leat_segment *own, const struct leat_segment *other,
                   uint32_t stream)
{
    struct sim_world *world = trap.scenario->world;
    uint32_t at = (uint32_t)sim_rng_below(&trap.rng, own->prefix_id.bytes);
    trap.owner = place_of(owner, own, at);
    trap.other = place_of(leader, other, at);
    trap.third = third;
    sim_closed_forget(leat_node_store(owner->node), own);
    flip(&trap.owner);
    flip(&trap.other);
    owner->corrupt = leader->corrupt = true;
    trap.until_us = world->now_us + CUT_US;
    cut_until(trap.until_us);
    (void)sim_net_reset(third->process, 1000);
    trap.reader =
        sim_client_start(trap.scenario, SIM_CLIENT_READER, stream, READERS_FIRST + trap.strikes++);
    trap.step = CUT;
    sim_fault_struck(world, SIM_FAULT_UNASKED);
    sim_trace(world,
              "trap: byte %u of segment %llu of log id %u/%u/%u rots at %s and %s; %s has it", at,
              (unsigned long long)own->id.v, own->log.stream, own->log.streamlet, own->log.log,
              owner->name, leader->name, third->name);
}

static bool strike_at(struct sim_server *owner, struct sim_server *leader, struct sim_server *third)
{
    struct leat_store_seen at = {0};
    const struct leat_segment *own;
    uint32_t stream;
    if (!is_before(owner, leader, third)) return false;
    while ((own = closed_next(owner, &at))) {
        if (own->role == LEAT_SEGMENT_REPLICA ||
            !sim_stream_of(trap.scenario, own->log.stream, &stream) ||
            trap.scenario->streams[stream].trims)
            continue;
        const struct leat_segment *other = copy_at(leader, own);
        if (!other || !copy_at(third, own)) continue;
        strike(owner, leader, third, own, other, stream);
        return true;
    }
    return false;
}

static void begin(void)
{
    struct scenario *scenario = trap.scenario;
    struct sim_server *leader = NULL;
    unsigned count = scenario->server_count;
    for (unsigned i = 0; i < count; i++) {
        if (!lives(&scenario->servers[i])) return;
        if (leat_coordinator_see(leat_node_coordinator(scenario->servers[i].node)).leads)
            leader = &scenario->servers[i];
    }
    for (unsigned i = 0; leader && i < count * count; i++) {
        struct sim_server *owner = &scenario->servers[i / count];
        struct sim_server *third = &scenario->servers[i % count];
        if (owner == third || owner == leader || third == leader) continue;
        if (strike_at(owner, leader, third)) return;
    }
    struct sim_server *server = &scenario->servers[sim_rng_below(&trap.rng, count)];
    server->away_us_max = AWAY_US_MAX;
    sim_fault_struck(scenario->world, SIM_FAULT_KILL);
    sim_process_die(server->process, SIM_DEATH_KILL);
}

static void end(void)
{
    trap.owner.server->corrupt = trap.other.server->corrupt = false;
    trap.step = IDLE;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    bool over = world->now_us >= trap.until_us;
    if (trap.step == CUT && (over || trap.scenario->faults_over)) {
        cut_until(0);
        if (!is_right(&trap.other)) flip(&trap.other);
        trap.step = REPAIRING;
        trap.until_us = world->now_us + REPAIR_US;
        over = false;
    }
    if (trap.step == REPAIRING && is_right(&trap.owner)) {
        end();
        return;
    }
    if (trap.step == REPAIRING && over) {
        sim_fail(world,
                 "A10 stuck: a closed segment is damaged at %s, and has not been made good for "
                 "%d s, though two others have it whole and can be asked",
                 trap.owner.server->name, REPAIR_US / 1000000);
        return;
    }
    sim_world_at(world, world->now_us + LOOK_US, look, event->a);
}

static void due(struct sim_world *world, struct sim_event *event)
{
    if (trap.scenario->faults_over || trap.strikes == STRIKES_MAX) return;
    if (trap.step == IDLE) {
        begin();
        if (trap.step != IDLE) sim_world_at(world, world->now_us + LOOK_US, look, event->a);
    }
    sim_world_at(world, world->now_us + sim_rng_between(&trap.rng, 300000, GAP_US_MAX), due,
                 event->a);
}

bool sim_trap_unasked_choose(struct scenario *scenario)
{
    memset(&trap, 0, sizeof trap);
    trap.scenario = scenario;
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-unasked");
    if (!sim_rng_chance(&trap.rng, SEEDS_PER_MILLE) || scenario->server_count > SIM_VOTERS_MAX ||
        scenario->victim)
        return false;
    scenario->value_bytes = 1600;
    /* No segment's place serves another before the bits are as they were. */
    scenario->move_per_mille = 0;
    scenario->with_trims = false;
    return true;
}

void sim_trap_unasked_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX),
                 due, scenario);
}
