/* SPDX-License-Identifier: Apache-2.0 */
/* A stage (stage.h) for a log whose committed end is a segment that has only begun, while nobody who is up has the
 * segment before it. There are five nodes, of which three vote, and two copies of each log. An owner is killed when its
 * next segment has begun on one node and the segment before is closed on another node. The log is given an owner, and
 * its end is committed; at once all nodes that have the segment before are killed, if the others are a majority. Nobody
 * needs that segment to say where the log ends, so those who are left are to serve the log. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "store/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/stage.h"

enum {
    BEGIN_US = 600 * 1000,
    LOOK_US = 100,
    DELAY_US = 1000, /* between nodes: a segment has only begun for as long */
    PAUSE_US = 2000, /* of who appends, again and again */
    TAKEN_US = 800 * 1000,
    AWAY_US = 4 * 1000 * 1000,
    REST_US = 150 * 1000,
    STRIKES_MAX = 3, /* of the second kind */
};

static struct {
    struct scenario *scenario;
    struct sim_rng rng;
    enum { RESTS, WATCHES, TAKEN, AWAY } step;
    struct leat_log_ref ref;
    uint64_t segment; /* that has only begun */
    struct sim_server *owner;
    uint64_t until_us;
    unsigned strikes;
    bool came;
} stage; /* of the one scenario of a process */

static bool lives(const struct sim_server *server)
{
    return sim_serves(server) && leat_node_has_cores(server->node) &&
           leat_node_backup(server->node) && leat_node_coordinator(server->node);
}

static bool votes(const struct sim_server *server)
{
    return server->number < SIM_VOTERS_MAX;
}

static void step_to(unsigned step, uint64_t us)
{
    stage.step = step;
    stage.until_us = stage.scenario->world->now_us + us;
}

static void die(struct sim_server *server)
{
    sim_fault_struck(stage.scenario->world, SIM_FAULT_KILL);
    server->down_wanted = true; /* for as long as it is said here */
    sim_process_die(server->process, SIM_DEATH_KILL);
    server->down_wanted = false;
    sim_server_boot_later(server, TAKEN_US + AWAY_US);
}

static void nobody_appends(void)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (client->kind == SIM_CLIENT_PRODUCER || client->kind == SIM_CLIENT_RAW ||
            client->kind == SIM_CLIENT_KAFKA_PRODUCER)
            sim_process_pause(client->process, scenario->world->now_us + PAUSE_US);
    }
}

/* ---- who has what ---- */

static bool scan_of(const struct sim_server *server, uint64_t segment, struct leat_scan *out_scan)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_of(leat_node_backup(server->node), stage.ref, &rep)) {
        const struct leat_segment *seg = rep.seg;
        if (seg->id.v != segment || !seg->buffer) continue;
        leat_scan_segment(seg->buffer, seg->capacity, out_scan);
        return out_scan->started;
    }
    return false;
}

/* out_bytes: with its start entry. */
static bool has_begun(const struct sim_server *server, uint32_t *out_bytes)
{
    struct leat_scan scan;
    if (!scan_of(server, stage.segment, &scan) || scan.closed || !leat_scan_only_start(&scan))
        return false;
    *out_bytes = scan.bytes;
    return true;
}

static bool has_closed_before(const struct sim_server *server)
{
    struct leat_scan scan;
    return scan_of(server, stage.segment - 1, &scan) && scan.closed;
}

/* In any state. */
static bool has_before(const struct sim_server *server)
{
    struct leat_store_seen at = {0};
    while (leat_store_see_next(leat_node_store(server->node), &at))
        if (leat_log_ref_equal(at.log, stage.ref) && at.segment + 1 == stage.segment &&
            at.written != LEAT_SEGMENT_FREE)
            return true;
    return false;
}

/* ---- the first strike ---- */

/* Is more than the first `bytes` bytes on its way to a copy of the segment? */
static bool has_sent(const struct leat_partition_seen *partition, uint32_t bytes)
{
    struct leat_set_seen set;
    if (!partition->copies ||
        !leat_set_see(partition->copies, (struct leat_segment_id){stage.segment}, &set))
        return true;
    for (unsigned i = 0; i < set.copy_count; i++)
        if (leat_copy_see(&set, i).sent > bytes) return true;
    return false;
}

static bool is_the_moment(struct sim_server *owner, const struct leat_partition_seen *partition)
{
    struct scenario *scenario = stage.scenario;
    struct leat_log_seen log;
    bool begun = false, closed = false, few = !votes(owner);
    uint32_t stream, bytes = 0;
    if (!partition->log || partition->going || partition->moves ||
        !sim_stream_of(scenario, partition->ref.stream, &stream))
        return false;
    leat_log_see(partition->log, &log);
    if (log.state != LEAT_LOG_SERVING || !log.opened || !log.head || !log.old) return false;
    stage.ref = partition->ref;
    stage.segment = log.head->id.v;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (server == owner) continue;
        if (has_closed_before(server)) {
            closed = true;
            few |= !votes(server);
        } else if (votes(server) && has_begun(server, &bytes) && !has_before(server)) {
            begun = true;
        }
    }
    return begun && closed && few && !has_sent(partition, bytes);
}

static void watch(void)
{
    struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (!lives(&scenario->servers[i])) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct leat_partition_seen at = {0};
        struct sim_server *owner = &scenario->servers[i];
        while (leat_node_partition_next(owner->node, &at)) {
            if (!is_the_moment(owner, &at)) continue;
            sim_trace(scenario->world, "stage: segment %llu of %u/%u/%u has only begun at %s",
                      (unsigned long long)stage.segment, stage.ref.stream, stage.ref.streamlet,
                      stage.ref.log, owner->name);
            stage.owner = owner;
            die(owner);
            step_to(TAKEN, TAKEN_US);
            return;
        }
    }
}

/* ---- the second strike ---- */

static const struct leat_coordinator *leader_find(void)
{
    const struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (lives(server) && leat_coordinator_see(leat_node_coordinator(server->node)).leads)
            return leat_node_coordinator(server->node);
    }
    return NULL;
}

/* The end is committed, and the log has an owner who has not begun a segment. out_owner: its name. */
static bool is_taken(const struct leat_coordinator *leader, const char **out_owner)
{
    struct leat_machine_stream *stream;
    const struct leat_machine *machine = leat_coordinator_tables(leader);
    const struct leat_machine_log *log = leat_machine_log_find(machine, stage.ref, &stream);
    if (!log || log->record.opened || log->record.tail.segment != stage.segment) return false;
    uint16_t owner = stream->owners[stage.ref.streamlet];
    if (owner == LEAT_OWNER_NONE) return false;
    *out_owner = machine->nodes[owner].info.name;
    return true;
}

/* All who have the segment before die, the log's owner among them; the others are to be a majority, and one has what
 * was committed. */
static bool strike(const char *owner)
{
    struct scenario *scenario = stage.scenario;
    unsigned left = 0;
    uint32_t bytes;
    bool begun = false, owned = false;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!lives(server)) continue;
        if (has_before(server)) {
            owned |= strcmp(server->name, owner) == 0;
            continue;
        }
        left += votes(server);
        begun |= has_begun(server, &bytes);
    }
    if (!begun || !owned || left <= SIM_VOTERS_MAX / 2) return false;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (lives(&scenario->servers[i]) && has_before(&scenario->servers[i]))
            die(&scenario->servers[i]);
    return true;
}

static void taken(void)
{
    const struct leat_coordinator *leader = leader_find();
    const char *owner;
    nobody_appends();
    if (!leader || !is_taken(leader, &owner)) return;
    if (strike(owner)) {
        stage.strikes++;
        stage.came = false;
        step_to(AWAY, AWAY_US);
    } else {
        stage.until_us = 0;
    }
}

/* An attempt of recovery has found the end, and nobody with the segment before. */
static void away(void)
{
    const struct leat_coordinator *leader = leader_find();
    struct leat_attempt_log log;
    struct leat_attempt_row row;
    if (!leader || stage.came) return;
    for (uint32_t i = 0; leat_attempt_log(leader, i, &log); i++) {
        bool begun = false, before = false;
        if (!leat_log_ref_equal(log.ref, stage.ref) || log.seen.opened ||
            log.decision != LEAT_RECOVER_STANDS)
            continue;
        for (uint32_t r = 0; leat_attempt_row(leader, i, r, &row); r++) {
            begun |= row.holds && row.row->kind == LEAT_REPLICA_MARK && row.row->only_start;
            before |= row.row->segment + 1 == stage.segment;
        }
        if (!begun || before) continue;
        sim_stage_came(stage.scenario);
        stage.came = true;
    }
}

static void delay(uint64_t us)
{
    const struct scenario *scenario = stage.scenario;
    for (unsigned i = 0; i < scenario->server_count; i++)
        for (unsigned k = 0; k < scenario->server_count; k++)
            if (i != k)
                sim_net_delay(scenario->world, scenario->servers[i].name, scenario->servers[k].name,
                              us);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    if (scenario->faults_over) {
        delay(0);
        return;
    }
    if (stage.step == WATCHES && stage.strikes < STRIKES_MAX) watch();
    if (stage.step == TAKEN) taken();
    if (stage.step == AWAY) away();
    if (world->now_us >= stage.until_us && stage.step == RESTS) {
        step_to(WATCHES, 0);
    } else if (world->now_us >= stage.until_us && stage.step > WATCHES) {
        sim_server_boot_later(stage.owner, 1);
        step_to(RESTS, REST_US);
    }
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

static void choose(struct scenario *scenario)
{
    memset(&stage, 0, sizeof stage);
    stage.scenario = scenario;
    sim_rng_init(&stage.rng, scenario->world->seed, "stage-begun");
    scenario->power_cuts = scenario->with_trims = false;
    scenario->cores = 1;
    scenario->memory_bytes *=
        2; /* each node has memory for four others, and for what these were before they died */
    scenario->value_bytes = 1600; /* many segments are closed */
    /* Delays hold up copies' bytes, too. */
    scenario->rmem_kinds = 0;
    scenario->transport = LEAT_RMEM_RPC;
}

static void start(struct scenario *scenario)
{
    delay(DELAY_US);
    step_to(RESTS, BEGIN_US);
    sim_world_at(scenario->world, scenario->world->now_us, look, scenario);
}

const struct sim_stage sim_stage_begun = {
    .name = "begun",
    .nodes = 5,
    .needs = {.batches = 4, .copies = 2, .on_disk = true},
    .choose = choose,
    .start = start,
};
