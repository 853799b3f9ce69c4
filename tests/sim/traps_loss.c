/* SPDX-License-Identifier: Apache-2.0 */
/* A trap (trap.c) for an accepted loss of a log whose older segments are on their way to its new owner, in some cluster
 * seeds in which nothing else goes wrong. A streamlet moves, and bytes from other nodes to its new owner are slow. When
 * the new owner serves a log of the streamlet, and lacks older segments, an operator sends LOG_RECOVER with "accept
 * loss":
 * SEEN: a segment that is there has bytes that a start passed over. The operator has seen them, and all is kept.
 * NOTHING: nothing is missing. The operator only sees that the log begins late as yet, and is refused.
 * DAMAGED: a segment that is there is damaged, and no node has its bytes. The operator gives up these records.
 * In seeds with --hard, also:
 * LAST: the log takes no appends, as if its last segment were damaged. The operator gives up what came after it, which
 * is nothing.
 * START: a bit of the start entry of a copy at the new owner flips, before the streamlet moves; the new owner has
 * nothing in front of that copy. No operator does anything.
 * None of these requests gives up segments that are on their way: check_given_up() excuses what the owner named. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "multilog/probe.h"
#include "store/probe.h"
#include "tests/sim/scenario.h"
#include "wire/entry.h"

enum {
    SEEDS_PER_MILLE = 60,
    HARD_SEEDS_PER_MILLE = 150, /* of the others, with --hard */
    GAP_US_MAX = 100 * 1000,
    LOOK_US = 200,
    STEP_US_MAX = 400 * 1000, /* for one step of it */
    DELAY_US = 15 * 1000,     /* of what others send to the new owner */
    PASSED_MAX = 4096,
    OLDER_MIN = 3,      /* so many segments are before the last one of a log that moves */
    VALUE_BYTES = 1600, /* of records: many segments are closed */
    HARD_PER_MILLE = 500,
};

enum word { SEEN, NOTHING, DAMAGED, WORDS, LAST = WORDS, START };

static struct {
    struct scenario *scenario;
    struct sim_rng rng, hard;
    enum { IDLE, COMES, ASKED } step;
    enum word word, hard_word; /* hard_word: of the seed */
    uint64_t until_us;
    struct leat_log_ref log; /* stream: the scenario's */
    struct sim_server *to;
    bool given_up[SIM_STREAMS][CHECK_STREAMLETS_MAX]
                 [CHECK_LOGS_MAX]; /* records of it, by DAMAGED or LAST */
    struct flipped {
        struct leat_segment_id segment;
        char path[32];
        uint64_t place, at; /* of the segment, and of the byte */
        unsigned bit;
        uint8_t byte; /* as it was */
    } flipped;        /* by START */
} trap;               /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return server->ready && server->process && server->process->alive && server->node &&
           leat_node_has_cores(server->node);
}

/* NULL: it is not there, or leaves. */
static struct leat_log *log_at(const struct sim_server *server)
{
    struct leat_partition_seen partition;
    struct leat_log_ref ref = trap.log;
    ref.stream = trap.scenario->streams[trap.log.stream].id;
    bool has = leat_node_partition_at(server->node, ref, &partition);
    return has && !partition.going && !partition.moves ? partition.log : NULL;
}

static void delay(uint64_t us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (&scenario->servers[i] != trap.to)
            sim_net_delay(scenario->world, scenario->servers[i].name, trap.to->name, us);
}

/* Between the damage and the operator's word a reader would be refused. */
static void nobody_reads(uint64_t until_us)
{
    struct scenario *scenario = trap.scenario;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct sim_client *client = scenario->clients[i];
        if (client->kind != SIM_CLIENT_CONTROL) sim_process_pause(client->process, until_us);
    }
}

/* ---- a start entry ---- */

static const struct leat_segment *seg_find(uint64_t segment)
{
    struct leat_store_seen at = {0};
    struct leat_log_ref log = trap.log;
    const struct leat_store *store = lives(trap.to) ? leat_node_store(trap.to->node) : NULL;
    log.stream = trap.scenario->streams[log.stream].id;
    while (store && leat_store_see_next(store, &at))
        if (at.seg && at.seg->id.v == segment && leat_log_ref_equal(at.seg->log, log))
            return at.seg;
    return NULL;
}

/* In its file alone, and the node has nothing in front of it. */
static const struct leat_segment *joint_find(void)
{
    struct leat_store_seen at = {0};
    struct leat_log_ref log = trap.log;
    const struct leat_store *store = leat_node_store(trap.to->node);
    log.stream = trap.scenario->streams[log.stream].id;
    while (store && leat_store_see_next(store, &at)) {
        const struct leat_segment *seg = at.seg;
        if (seg && at.written == LEAT_SEGMENT_CLOSED && at.written_flushed &&
            seg->state == LEAT_SEGMENT_CLOSED && !seg->incomplete && !seg->buffer &&
            !at.shares_place && !at.goes && leat_log_ref_equal(seg->log, log) && seg->id.v > 0 &&
            !seg_find(seg->id.v - 1))
            return seg;
    }
    return NULL;
}

static bool start_flip(void)
{
    struct leat_entry entry;
    struct flipped *flipped = &trap.flipped;
    const struct leat_segment *seg = joint_find();
    if (!seg) return false;
    snprintf(flipped->path, sizeof flipped->path, "store/%u", seg->file_number);
    flipped->segment = seg->id;
    flipped->place = seg->file_offset;
    flipped->bit = (unsigned)sim_rng_below(&trap.hard, 8);
    if (!sim_disk_peek(trap.to->disk, flipped->path, seg->file_offset, &entry, sizeof entry))
        return false;
    flipped->at = seg->file_offset + leat_entry_bytes(entry.payload_bytes) +
                  sim_rng_below(&trap.hard, LEAT_ENTRY_HEADER_BYTES + sizeof(struct leat_start));
    (void)sim_disk_peek(trap.to->disk, flipped->path, flipped->at, &flipped->byte, 1);
    if (!sim_disk_flip(trap.to->disk, flipped->path, flipped->at, flipped->bit)) return false;
    sim_closed_forget(leat_node_store(trap.to->node), seg);
    trap.to->corrupt = true;
    sim_trace(trap.scenario->world, "trap: the start of segment %llu of log %u/%u/%u flips at %s",
              (unsigned long long)seg->id.v, trap.log.stream, trap.log.streamlet, trap.log.log,
              trap.to->name);
    return true;
}

/* A copy that nobody looked at is again as it was. */
static void start_repair(void)
{
    const struct flipped *flipped = &trap.flipped;
    const struct leat_segment *seg = seg_find(flipped->segment.v);
    char path[sizeof flipped->path];
    uint8_t byte = flipped->byte;
    trap.to->corrupt = false;
    if (!seg || seg->file_offset != flipped->place) return;
    snprintf(path, sizeof path, "store/%u", seg->file_number);
    (void)sim_disk_peek(trap.to->disk, path, flipped->at, &byte, 1);
    if (strcmp(path, flipped->path) == 0 && byte != flipped->byte)
        (void)sim_disk_flip(trap.to->disk, path, flipped->at, flipped->bit);
}

/* ---- the steps ---- */

static void idle(void)
{
    delay(0);
    if (trap.to->corrupt) start_repair();
    trap.scenario->loss_held = false;
    trap.step = IDLE;
}

static void begin(void)
{
    struct scenario *scenario = trap.scenario;
    struct sim_rng *rng = &trap.rng;
    uint32_t stream = (uint32_t)sim_rng_below(rng, SIM_STREAMS);
    const struct leat_stream_settings *settings = &scenario->streams[stream].settings;
    trap.log = (struct leat_log_ref){stream, (uint32_t)sim_rng_below(rng, settings->streamlets),
                                     (uint32_t)sim_rng_below(rng, settings->logs)};
    unsigned first = (unsigned)sim_rng_below(rng, scenario->server_count);
    trap.word = (enum word)sim_rng_below(rng, WORDS);
    if (scenario->hard && sim_rng_chance(&trap.hard, HARD_PER_MILLE)) trap.word = trap.hard_word;
    trap.to = NULL;
    const struct leat_log *log = NULL;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[(first + i) % scenario->server_count];
        if (!lives(server)) return;
        if (sim_copies_owns(scenario, server, trap.log))
            log = log_at(server);
        else
            trap.to = server;
    }
    if (scenario->streams[stream].trims || !log || !trap.to) return;
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    if (seen.segment_count <= OLDER_MIN || (trap.word == START && !start_flip())) return;
    scenario->wish =
        (struct sim_wish){.stream = stream, .streamlet = trap.log.streamlet, .to = trap.to};
    delay(DELAY_US);
    trap.step = COMES;
    trap.until_us = scenario->world->now_us + STEP_US_MAX;
    if (trap.word == LAST) nobody_reads(trap.until_us); /* nor appends: it would be refused */
}

/* The first segment that is there is to be damaged, as far as the log knows. The last one, after it, is whole. */
static bool damage(struct leat_log *log)
{
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    const struct leat_segment *seg = leat_log_see_segment(log, 0).seg;
    bool *given_up = &trap.given_up[trap.log.stream][trap.log.streamlet][trap.log.log];
    if (seen.segment_count < 2 || seg->base_offset == seg->next_offset || *given_up) return false;
    *given_up = true;
    check_given_up(trap.scenario->check, trap.log, seg->base_offset, seg->next_offset);
    leat_log_first_lose(log);
    return true;
}

/* The log goes on behind its last record, after a jump of offsets. */
static bool lose_last(struct leat_log *log)
{
    struct leat_log_seen seen;
    leat_log_see(log, &seen);
    bool *given_up = &trap.given_up[trap.log.stream][trap.log.streamlet][trap.log.log];
    if (seen.head || seen.old || *given_up) return false;
    *given_up = true;
    check_given_up(trap.scenario->check, trap.log, seen.next_offset, UINT64_MAX);
    trap.scenario->loss_held = true;
    leat_log_last_lose(log);
    return true;
}

static void ask(struct leat_log *log)
{
    struct scenario *scenario = trap.scenario;
    const struct leat_segment *seg = leat_log_see_segment(log, 0).seg;
    if (trap.word == DAMAGED && !damage(log)) return;
    if (trap.word == LAST && !lose_last(log)) return;
    if (trap.word == SEEN)
        leat_log_first_pass(log, (uint32_t)sim_rng_between(&trap.rng, 1, PASSED_MAX));
    scenario->loss_wish = (struct sim_loss_wish){.wanted = true, .log = trap.log};
    trap.step = ASKED;
    sim_trace(scenario->world,
              "trap: word %u on log %u/%u/%u of %s, which has segments from %llu on",
              (unsigned)trap.word, trap.log.stream, trap.log.streamlet, trap.log.log, trap.to->name,
              (unsigned long long)seg->id.v);
}

static void answered(const struct leat_log *log)
{
    struct scenario *scenario = trap.scenario;
    leat_err rc = scenario->loss_wish.rc;
    struct leat_log_seen seen = {0};
    if (log) leat_log_see(log, &seen);
    bool amid = seen.older_come;
    sim_trace(scenario->world, "trap: word %u is answered %s the older segments: %s",
              (unsigned)trap.word, amid ? "amid" : "after", leat_err_name(rc));
    if (amid && rc == (trap.word == NOTHING ? LEAT_E_INVALID : LEAT_OK))
        sim_fault_struck(scenario->world, SIM_FAULT_LOSS_AMID);
    idle();
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    struct leat_log *log = lives(trap.to) ? log_at(trap.to) : NULL;
    struct leat_log_seen seen = {0};
    if (log) leat_log_see(log, &seen);
    bool comes = seen.older_come && seen.state == LEAT_LOG_SERVING && seen.segment_count &&
                 leat_log_see_segment(log, 0).closed && trap.word != START;
    bool over = scenario->faults_over || world->now_us >= trap.until_us;
    if (trap.step == ASKED && scenario->loss_wish.answered)
        answered(log);
    else if (trap.step == COMES && comes && !over)
        ask(log);
    else if (trap.step == COMES && over)
        idle();
    if (trap.step == ASKED && (trap.word == DAMAGED || trap.word == LAST))
        nobody_reads(world->now_us + 2 * LOOK_US);
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

bool sim_trap_loss_choose(struct scenario *scenario)
{
    memset(&trap, 0, sizeof trap);
    trap.scenario = scenario;
    sim_rng_init(&trap.rng, scenario->world->seed, "trap-loss");
    sim_rng_init(&trap.hard, scenario->world->seed, "trap-loss-hard");
    bool chosen = sim_rng_chance(&trap.rng, SEEDS_PER_MILLE);
    bool more = scenario->hard && sim_rng_chance(&trap.hard, HARD_SEEDS_PER_MILLE);
    if (!(chosen || more) || scenario->server_count > SIM_VOTERS_MAX || scenario->victim)
        return false;
    trap.hard_word = sim_rng_chance(&trap.hard, 500) ? LAST : START;
    scenario->value_bytes = VALUE_BYTES;
    scenario->move_per_mille = 0;
    scenario->with_trims = false;
    return true;
}

void sim_trap_loss_start(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + sim_rng_below(&trap.rng, GAP_US_MAX),
                 due, scenario);
}
