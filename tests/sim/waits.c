/* SPDX-License-Identifier: Apache-2.0 */
/* Acks and pulls of a log that no fault concerns do not wait, whatever happens between other nodes (A10).
 * - A log needs its owner, the nodes with copies of its newest segments, the coordinators' leader, and a majority of
 *   the coordinators. If all of these are whole and reach each other, and have been so for SETTLE_US, what was
 *   appended is acked within WHOLE_US_MAX.
 * - If only lines between the owner and copies are slow, and the owner reaches enough other nodes, the copy behind the
 *   slow line is given up: what was appended is acked within LEFT_US_MAX.
 * - A pull needs the owner and the leader alone. A native consumer that knows the owner, and has room, has the next
 *   records of a log within WHOLE_US_MAX, and the time that the consumer grants for more bytes. Fetches of other logs,
 *   and earlier owners of the log, are no excuse.
 * - A member of a parallel group reads segment groups by position. Once the fetch that is under way names the log, the
 *   same time holds for records of the member's group. A fetch of other logs is not ended for such a log, and a fetch
 *   at the end of a group ends when its time is over: so the member reads on, or leaves a group that has ended, within
 *   WHOLE_US_MAX and the time of PLACED_POLLS fetches.
 * - In stages: a native producer may know an earlier owner only, which lives on. As long as the log's owner could ack
 *   at once, what the producer has for the log is acked within FOUND_US_MAX: an earlier owner is no excuse.
 * visits.c looks every 10 ms while faults last. Looking draws no random number and schedules nothing. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "consumer/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "producer/probe.h"
#include "replication/primary/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/disk_parts.h"
#include "tests/sim/kafka_client.h"
#include "tests/sim/net_cuts.h"
#include "tests/sim/net_parts.h"
#include "tests/sim/scenario.h"
#include "tests/sim/waits.h"

enum {
    SETTLE_US = 1000 * 1000, /* after a fault, a start, a change of leader */
    /* A backup whose oldest write takes 2 s is left; bytes may have waited as long for a place among its writes. */
    LEFT_US_MAX = 5 * 1000 * 1000,
    WHOLE_US_MAX = SIM_WAITS_WHOLE_US_MAX,
    FOUND_US_MAX = SIM_WAITS_FOUND_US_MAX,
    POWER_US = 3 * 1000 * 1000,   /* a link may still lead to the process before that */
    SLOW_WRITES_US = 1000 * 1000, /* rmem.c; a write that began slowly ends so */
    SEEN_US = 50 * 1000,          /* a log that was not here at the last looks */
    /* A reader by position waits for the end of a fetch of other logs (consumer/fetch.c, lane_end_poll()), and at the
     * end of its group for the end of its own fetch. */
    PLACED_POLLS = 2,
    GROUP_SHIFT = 48, /* of the segment group above the offset */
    ALL_OTHERS = SIM_SERVERS_MAX,
};

static struct {
    unsigned boots[SIM_SERVERS_MAX];
    uint64_t looked_us;
    unsigned leader; /* ALL_OTHERS: nobody, or several */
    uint64_t leads_us;
    uint64_t slow_writes_us; /* one-sided writes took long then */
    /* Since then both are whole, and reach each other; the same over a line that may be slow. UINT64_MAX: not now. */
    uint64_t joined_us[SIM_SERVERS_MAX][SIM_SERVERS_MAX],
        slowly_us[SIM_SERVERS_MAX][SIM_SERVERS_MAX];
    uint64_t clients_us[SIM_CLIENTS_MAX]; /* the same of a client; UINT64_MAX: not now */
    struct sim_waits_log logs[SIM_STREAMS][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    struct sim_wait pulls[SIM_CLIENTS_MAX][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX]; /* from `at` on */
    struct sim_wait places[SIM_CLIENTS_MAX][CHECK_STREAMLETS_MAX][CHECK_LOGS_MAX];
    /* Of each producer's logs: what was begun at `at`. A producer writes one log of a streamlet. */
    struct sim_wait finds[SIM_CLIENTS_MAX][SIM_STREAMS][CHECK_STREAMLETS_MAX];
    /* Of each consumer's positions: after a rebalance a position may be there again. */
    uint32_t generations[SIM_CLIENTS_MAX];
} waits; /* of the one scenario of a process */

void sim_waits_start(void)
{
    memset(&waits, 0, sizeof waits);
    waits.leader = ALL_OTHERS;
    sim_waits_kafka_forget();
}

/* ---- nodes ---- */

static bool is_whole(const struct sim_server *server)
{
    const struct scenario *scenario = server->scenario;
    const struct sim_disk *disk = server->disk;
    uint64_t now_us = scenario->world->now_us;
    return sim_serves(server) && waits.boots[server->number] == server->boots &&
           (server != scenario->victim || scenario->trap != SIM_TRAP_NONE) &&
           (!server->powered_us || now_us > server->powered_us + POWER_US) &&
           server->process->paused_until_us <= now_us &&
           server->process->cut_off_until_us <= now_us && !disk->full && !disk->no_files &&
           !disk->took_error && disk->stalled_us <= now_us;
}

static bool carries(const struct sim_server *from, const struct sim_server *to, bool slowly)
{
    const struct sim_cut *cut = sim_cut_between(from->process, to->process);
    return !cut || (!sim_cut_until_us(from->scenario->world, cut) && !cut->delay_us &&
                    (slowly || !sim_line_is_slow(cut)));
}

static void since_note(uint64_t *since_us, bool holds, uint64_t now_us)
{
    if (!holds)
        *since_us = UINT64_MAX;
    else if (*since_us == UINT64_MAX)
        *since_us = now_us;
}

static void clients_look(const struct scenario *scenario)
{
    uint64_t now_us = scenario->world->now_us;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        since_note(&waits.clients_us[i],
                   client->process->alive && !client->slow &&
                       (client->consumer || client->producer || sim_kafka_of(client)) &&
                       !client->process->host[0] && /* a trap may cut it off from some nodes */
                       client->process->paused_until_us <= now_us &&
                       client->process->cut_off_until_us <= now_us,
                   now_us);
    }
}

static void nodes_look(struct scenario *scenario)
{
    uint64_t now_us = scenario->world->now_us;
    unsigned leader = ALL_OTHERS, leaders = 0;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *one = &scenario->servers[i];
        for (unsigned j = 0; j < scenario->server_count; j++) {
            const struct sim_server *other = &scenario->servers[j];
            bool whole = is_whole(one) && is_whole(other);
            since_note(&waits.joined_us[i][j], whole && carries(one, other, false), now_us);
            since_note(&waits.slowly_us[i][j], whole && carries(one, other, true), now_us);
        }
        if (!is_whole(one) || !leat_node_coordinator(one->node)) continue;
        if (!leat_coordinator_see(leat_node_coordinator(one->node)).recovers) continue;
        leader = i;
        leaders++;
    }
    for (unsigned i = 0; i < scenario->server_count; i++)
        waits.boots[i] = scenario->servers[i].boots;
    if (leaders != 1) leader = ALL_OTHERS;
    if (leader != waits.leader) {
        waits.leads_us = now_us;
        memset(waits.logs, 0, sizeof waits.logs);
        memset(waits.pulls, 0, sizeof waits.pulls);
        memset(waits.places, 0, sizeof waits.places);
        memset(waits.finds, 0, sizeof waits.finds);
        sim_waits_kafka_forget();
    }
    waits.leader = leader;
}

static bool are_joined(unsigned one, unsigned other, uint64_t now_us)
{
    return waits.joined_us[one][other] < now_us - SETTLE_US &&
           waits.joined_us[other][one] < now_us - SETTLE_US;
}

static bool are_joined_slowly(unsigned one, unsigned other, uint64_t now_us)
{
    return waits.slowly_us[one][other] < now_us - SETTLE_US &&
           waits.slowly_us[other][one] < now_us - SETTLE_US;
}

static bool leader_leads(const struct scenario *scenario, uint64_t now_us)
{
    unsigned voters = 0, with = 0;
    if (waits.leader == ALL_OTHERS || waits.leads_us >= now_us - SETTLE_US) return false;
    for (unsigned i = 0; i < scenario->server_count && i < SIM_VOTERS_MAX; i++) {
        voters++;
        with += are_joined(i, waits.leader, now_us);
    }
    return with > voters / 2;
}

bool sim_wait_is_late(struct sim_wait *wait, bool goes_on, uint64_t at, uint64_t limit_us,
                      uint64_t now_us)
{
    bool same =
        goes_on && now_us <= wait->seen_us + SEEN_US && limit_us && limit_us == wait->limit_us;
    wait->seen_us = now_us;
    if (same) return now_us > wait->since_us + limit_us;
    *wait =
        (struct sim_wait){.seen_us = now_us, .since_us = now_us, .at = at, .limit_us = limit_us};
    return false;
}

/* ---- acks of a log ---- */

/* The nodes with copies of its newest segments, as bits. */
struct needed {
    unsigned bits;
    bool whole; /* no copy is missing, or being made */
};

static struct needed needed_by(const struct scenario *scenario, const struct leat_primary_log *log)
{
    struct needed needed = {.whole = true};
    struct leat_set_seen set = {0};
    uint32_t copies = leat_primary_log_see(log).copies;
    while (leat_set_see_next(log, false, &set)) {
        if (!set.dropping && set.copy_count + 1 < copies) needed.whole = false;
        for (unsigned i = 0; i < set.copy_count; i++) {
            const struct leat_copy_seen copy = leat_copy_see(&set, i);
            /* A copy behind a slow line is given up only when it is gone. */
            if (!set.dropping && (!copy.lives || copy.incomplete)) needed.whole = false;
            for (unsigned at = 0; at < scenario->server_count; at++)
                if (strcmp(scenario->servers[at].name, copy.node) == 0) needed.bits |= 1u << at;
        }
    }
    return needed;
}

static bool all_are_joined(unsigned bits, uint64_t now_us)
{
    for (unsigned i = 0; i < SIM_SERVERS_MAX; i++)
        for (unsigned j = 0; j < SIM_SERVERS_MAX; j++)
            if ((bits >> i & 1) && (bits >> j & 1) && !are_joined(i, j, now_us)) return false;
    return true;
}

/* On how many nodes copies may be, the owner included: nodes that reach the owner and the leader (`first`). */
static uint32_t places_for_copies(const struct scenario *scenario, unsigned first, uint64_t now_us)
{
    uint32_t places = 0;
    for (unsigned i = 0; i < scenario->server_count; i++)
        places += all_are_joined(first | 1u << i, now_us);
    return places;
}

/* How long an ack may wait; 0: a fault concerns the log. */
static uint64_t limit_us(const struct scenario *scenario, unsigned owner,
                         const struct leat_partition_seen *partition,
                         const struct leat_log_seen *seen, uint32_t copies)
{
    uint64_t now_us = scenario->world->now_us;
    struct needed needed = {.whole = true};
    if (partition->going || partition->moves || seen->state != LEAT_LOG_SERVING ||
        !leader_leads(scenario, now_us))
        return 0;
    if (partition->copies) {
        const struct leat_primary_log_seen log = leat_primary_log_see(partition->copies);
        if (log.fenced || log.silent || log.releasing) return 0;
        needed = needed_by(scenario, partition->copies);
    }
    unsigned first = 1u << owner | 1u << waits.leader;
    if (needed.bits == 0 && places_for_copies(scenario, first, now_us) < copies) return 0;
    if (needed.whole && all_are_joined(needed.bits | first, now_us))
        return waits.slow_writes_us && now_us < waits.slow_writes_us + SLOW_WRITES_US
                   ? LEFT_US_MAX
                   : WHOLE_US_MAX;
    for (unsigned i = 0; i < scenario->server_count; i++)
        if ((needed.bits >> i & 1) && !are_joined_slowly(owner, i, now_us)) return 0;
    return places_for_copies(scenario, first, now_us) >= copies ? LEFT_US_MAX : 0;
}

/* By the leader's tables: an earlier owner may not have heard yet that another node has the log. */
static bool is_owner(const struct scenario *scenario, unsigned server, struct leat_log_ref ref)
{
    struct leat_machine_stream *stream;
    if (waits.leader == ALL_OTHERS) return false;
    struct leat_node *leader = scenario->servers[waits.leader].node;
    struct leat_machine *machine = leat_coordinator_tables(leat_node_coordinator(leader));
    if (!leat_machine_log_find(machine, ref, &stream)) return false;
    uint16_t owner = stream->owners[ref.streamlet];
    return owner != LEAT_OWNER_NONE &&
           strcmp(machine->nodes[owner].info.name, scenario->servers[server].name) == 0;
}

static void readable_note(struct sim_waits_log *log, const struct sim_server *owner,
                          const struct leat_partition_seen *partition,
                          const struct leat_log_seen *seen, uint64_t now_us)
{
    struct leat_log_info info;
    leat_log_info(partition->log, &info);
    log->looked_us = now_us;
    log->owner = owner->number;
    if (!leat_node_partition_epoch(owner->node, partition, &log->epoch)) log->epoch = 0;
    log->first = info.first_offset;
    log->acked = seen->acked_offset;
    log->readable = !partition->going && !partition->moves && seen->state == LEAT_LOG_SERVING &&
                    !seen->older_come && !seen->damage_look && !seen->front_unknown &&
                    !seen->refused;
    for (uint32_t i = 0; i < seen->segment_count; i++) {
        const struct leat_segment *seg = leat_log_see_segment(partition->log, i).seg;
        log->readable = log->readable && seg && !leat_segment_is_damaged(seg);
    }
}

static void log_look(struct scenario *scenario, unsigned owner,
                     const struct leat_partition_seen *partition)
{
    struct sim_world *world = scenario->world;
    struct leat_log_seen seen;
    struct leat_log_ref ref = partition->ref;
    if (!partition->log || !is_owner(scenario, owner, ref) ||
        !sim_stream_of(scenario, ref.stream, &ref.stream))
        return;
    leat_log_see(partition->log, &seen);
    uint32_t copies = scenario->streams[ref.stream].settings.copies;
    uint64_t acked = seen.acked_offset;
    uint64_t most_us = limit_us(scenario, owner, partition, &seen, copies);
    uint64_t next = seen.next_offset > acked ? seen.next_offset : acked + 1;
    struct sim_waits_log *log = &waits.logs[ref.stream][ref.streamlet][ref.log];
    readable_note(log, &scenario->servers[owner], partition, &seen, world->now_us);
    log->ackable = most_us == WHOLE_US_MAX;
    bool waits_now = (seen.appends_wait || partition->blocked) && acked < log->ack.at;
    if (!sim_wait_is_late(&log->ack, waits_now, next, most_us, world->now_us)) return;
    sim_fail(world,
             "A10 stuck: an ack of log %u/%u/%u has waited for %llu ms at %s, and no fault "
             "concerns the log%s",
             ref.stream, ref.streamlet, ref.log,
             (unsigned long long)(world->now_us - log->ack.since_us) / 1000,
             scenario->servers[owner].name,
             most_us == LEFT_US_MAX ? " but a slow line to a copy" : "");
}

/* ---- pulls of a log ---- */

/* One fetch asks for several logs of a stream, one after the other: none of them may be troubled. */
static bool all_are_readable(const struct scenario *scenario, uint32_t stream, unsigned owner)
{
    const struct leat_stream_settings *has = &scenario->streams[stream].settings;
    for (uint32_t s = 0; s < has->streamlets; s++)
        for (uint32_t q = 0; q < has->logs; q++) {
            const struct sim_waits_log *log = &waits.logs[stream][s][q];
            bool here = log->looked_us == scenario->world->now_us && log->owner == owner;
            if (here && !log->readable) return false;
        }
    return true;
}

bool sim_waits_conns_are_troubled(const struct sim_process *one, const struct sim_process *other)
{
    struct sim_world *world = one->world;
    if (world->refuse_until_us > world->now_us) return true;
    for (struct leat_conn *conn = sim_conn_after(world, NULL); conn;
         conn = sim_conn_after(world, conn)) {
        if (!conn->actor || conn->actor->process != one || conn->state == CONN_CLOSED) continue;
        const struct leat_conn *peer = conn->peer;
        if (!peer || !peer->actor || peer->actor->process != other) continue;
        if (peer->state != conn->state || conn->silent || peer->silent ||
            conn->last_arrival_us > world->now_us || peer->last_arrival_us > world->now_us)
            return true;
    }
    return false;
}

const struct sim_waits_log *sim_waits_log(const struct scenario *scenario, struct leat_log_ref ref)
{
    if (ref.stream >= SIM_STREAMS || ref.streamlet >= CHECK_STREAMLETS_MAX ||
        ref.log >= CHECK_LOGS_MAX)
        return NULL; /* a stream that is deleted, or that no producer of these writes */
    const struct sim_waits_log *log = &waits.logs[ref.stream][ref.streamlet][ref.log];
    bool found = log->looked_us == scenario->world->now_us;
    return found && sim_serves(&scenario->servers[log->owner]) ? log : NULL;
}

bool sim_waits_node_reads(const struct scenario *scenario, uint32_t stream, unsigned server)
{
    return waits.leader != ALL_OTHERS &&
           all_are_joined(1u << server | 1u << waits.leader, scenario->world->now_us) &&
           all_are_readable(scenario, stream, server);
}

bool sim_waits_node_is_well(const struct scenario *scenario, unsigned server)
{
    uint64_t now_us = scenario->world->now_us;
    return now_us <= waits.looked_us + SEEN_US && leader_leads(scenario, now_us) &&
           all_are_joined(1u << server | 1u << waits.leader, now_us);
}

bool sim_waits_client_is_whole(const struct scenario *scenario, unsigned client)
{
    return waits.clients_us[client] < scenario->world->now_us - SETTLE_US;
}

/* What the owner has acked, and a reader by position has not read. */
struct unread {
    bool own; /* of the reader's segment group */
    bool any; /* of that group or a later one: then the reader has to leave its group */
};

/* A group that does not exist yet has nothing. */
static struct unread group_unread(const struct sim_server *owner,
                                  const struct leat_consumer_log_seen *seen, uint64_t acked)
{
    const uint64_t begin = seen->group * LEAT_SEGMENTS_PER_GROUP;
    struct unread unread = {0};
    struct leat_partition_seen partition;
    struct leat_log_seen log;
    if (!leat_node_partition_at(owner->node, seen->ref, &partition) || !partition.log)
        return unread;
    leat_log_see(partition.log, &log);
    for (uint32_t i = 0; i < log.segment_count; i++) {
        const struct leat_segment *seg = leat_log_see_segment(partition.log, i).seg;
        if (!seg || seg->id.v < begin) continue;
        unread.any = unread.any || (seg->base_offset < acked && seen->next < acked);
        if (seg->id.v < begin + LEAT_SEGMENTS_PER_GROUP) {
            unread.own = unread.any;
            continue;
        }
        unread.own = unread.own && seen->next < seg->base_offset;
        break;
    }
    return unread;
}

static void pull_late(struct scenario *scenario, const struct sim_client *client,
                      const struct sim_wait *wait, const struct leat_consumer_log_seen *seen,
                      const struct sim_server *owner)
{
    sim_fail(scenario->world,
             "A10 stuck: %s has waited for %llu ms for offset %llu of log %u/%u/%u, which %s has, "
             "and no fault concerns the log",
             client->process->name,
             (unsigned long long)(scenario->world->now_us - wait->since_us) / 1000,
             (unsigned long long)seen->next, client->stream, seen->ref.streamlet, seen->ref.log,
             owner->name);
}

static void pull_look(struct scenario *scenario, unsigned at,
                      const struct leat_consumer_log_seen *seen)
{
    const struct sim_client *client = scenario->clients[at];
    uint64_t now_us = scenario->world->now_us;
    const struct leat_log_ref ref = {client->stream, seen->ref.streamlet, seen->ref.log};
    const struct sim_waits_log *log = sim_waits_log(scenario, ref);
    if (!log) return;
    const struct sim_server *owner = &scenario->servers[log->owner];
    bool may = seen->reads && seen->retry_at_us <= now_us &&
               seen->owner == leat_node_incarnation(owner->node) && seen->epoch == log->epoch &&
               sim_waits_client_is_whole(scenario, at) &&
               sim_waits_node_reads(scenario, client->stream, log->owner);
    bool has = seen->next >= log->first && seen->next < log->acked;
    struct unread unread = {has, has};
    if (seen->by_position) unread = group_unread(owner, seen, log->acked);
    uint64_t place = seen->group << GROUP_SHIFT | seen->next;
    struct {
        struct sim_wait *wait;
        uint64_t most_us;
    } looks[] = {
        {&waits.pulls[at][ref.streamlet][ref.log],
         unread.own && (seen->fetching || !seen->by_position) ? WHOLE_US_MAX + seen->grace_us : 0},
        {&waits.places[at][ref.streamlet][ref.log],
         unread.any && seen->by_position ? WHOLE_US_MAX + PLACED_POLLS * seen->poll_us : 0},
    };
    for (unsigned i = 0; i < 2; i++) {
        struct sim_wait *wait = looks[i].wait;
        bool late =
            sim_wait_is_late(wait, place == wait->at, place, may ? looks[i].most_us : 0, now_us);
        if (now_us > wait->since_us + SIM_WAITS_CONNS_US &&
            sim_waits_conns_are_troubled(client->process, owner->process))
            wait->since_us = now_us;
        else if (late)
            pull_late(scenario, client, wait, seen, owner);
    }
}

/* ---- what a producer has for a log ---- */

static void find_look(struct scenario *scenario, unsigned at,
                      const struct leat_producer_log_seen *seen)
{
    const struct sim_client *client = scenario->clients[at];
    uint64_t now_us = scenario->world->now_us;
    uint32_t stream;
    if (!sim_stream_of(scenario, seen->ref.stream, &stream)) return;
    const struct sim_waits_log *log = &waits.logs[stream][seen->ref.streamlet][seen->ref.log];
    struct sim_wait *find = &waits.finds[at][stream][seen->ref.streamlet];
    bool may = log->looked_us == now_us && log->ackable && sim_waits_client_is_whole(scenario, at);
    bool late = sim_wait_is_late(find, seen->oldest_us == find->at, seen->oldest_us,
                                 may && seen->oldest_us ? FOUND_US_MAX : 0, now_us);
    for (unsigned i = 0; late && i < scenario->server_count; i++)
        if (sim_serves(&scenario->servers[i]) &&
            sim_waits_conns_are_troubled(client->process, scenario->servers[i].process)) {
            find->since_us = now_us;
            return;
        }
    if (late)
        sim_fail(scenario->world,
                 "A10 stuck: client %u has waited for %llu ms for an ack of log %u/%u/%u, whose "
                 "owner %s could ack at once",
                 client->number, (unsigned long long)(now_us - find->since_us) / 1000, stream,
                 seen->ref.streamlet, seen->ref.log, scenario->servers[log->owner].name);
}

static void finds_look(struct scenario *scenario)
{
    if (!scenario->stage) return; /* in other worlds the look has yet to be tried on many seeds */
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct leat_producer_log_seen seen = {0};
        if (waits.clients_us[i] == UINT64_MAX || !scenario->clients[i]->producer) continue;
        while (leat_producer_log_next(scenario->clients[i]->producer, &seen))
            find_look(scenario, i, &seen);
    }
}

static void pulls_look(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct leat_consumer_log_seen seen = {0};
        if (waits.clients_us[i] == UINT64_MAX || !scenario->clients[i]->consumer) continue;
        while (leat_consumer_log_next(scenario->clients[i]->consumer, &seen)) {
            if (seen.generation != waits.generations[i]) {
                memset(waits.pulls[i], 0, sizeof waits.pulls[i]);
                memset(waits.places[i], 0, sizeof waits.places[i]);
            }
            waits.generations[i] = seen.generation;
            pull_look(scenario, i, &seen);
        }
    }
}

void sim_waits_look(struct scenario *scenario)
{
    const struct sim_world *world = scenario->world;
    if (world->now_us < SETTLE_US) return;
    nodes_look(scenario);
    if (world->rmem_slow_per_mille) waits.slow_writes_us = world->now_us;
    /* These strike connections and one-sided writes of any node, or what coordinators write. */
    bool others = world->refuse_until_us > world->now_us || world->rmem_error_per_mille ||
                  world->rmem_full || world->rmem_hold_us ||
                  scenario->unseen_until_us > world->now_us;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        struct leat_partition_seen partition = {0};
        if (others || scenario->budget || scenario->rows_rot) waits.leads_us = world->now_us;
        if (!sim_serves(server)) continue;
        while (leat_node_log_next(server->node, &partition))
            log_look(scenario, i, &partition);
    }
    waits.looked_us = world->now_us;
    clients_look(scenario);
    pulls_look(scenario);
    finds_look(scenario);
    sim_waits_kafka_look(scenario);
}
