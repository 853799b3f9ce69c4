/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes keep of other nodes' logs, and what they are told of themselves, looked at from outside:
 * - A copy that an owner counts on, and whose backup knows that, is there: an earlier owner has no say over the copy,
 *   and it does not become anything else. Else the segment has fewer copies than its owner believes.
 * - A fence waits for replicas that are to leave their writer's memory, and for no others. Else nobody is ever told
 *   that the writer is cut off, and what recoveries ask this node stays without an answer.
 * - A copy is called closed when its node's catalogue says so. Else a recovery takes bytes that the disk has refused
 *   for a log's end.
 * - A node serves no reads when it has a voter's answer that was given after this voter knew of the node's crash: other
 *   nodes may own its logs, and its records are of the past.
 * - A log that has forgotten no producer by itself took each producer from its first sequence on. Else the second of
 *   two batches under way may be appended before the first: a log refused both, and then lost all that it knew. */
#include <string.h>

#include "broker/probe.h"
#include "coordinator/probe.h"
#include "multilog/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "store/probe.h"
#include "tests/sim/scenario.h"
#include "tests/sim/told.h"

enum {
    LOOK_US = 50 * 1000,
    /* A new leader that has not applied the crash yet may confirm it for so long. */
    CONFIRMED_US_MAX = 500 * 1000,
};

static struct {
    struct sim_told {    /* of a node, by a voter */
        uint64_t to, by; /* incarnations */
        uint64_t number; /* answers to its pings from this one on know of the crash */
    } told[SIM_SERVERS_MAX][SIM_SERVERS_MAX];
    /* Since when it serves reads though it was told; 0: it does not. */
    uint64_t serves_us[SIM_SERVERS_MAX];
} kept; /* of the one scenario of a process */

static const struct leat_backup *backup_of(const struct sim_server *server)
{
    bool lives = server->process && server->process->alive && server->node &&
                 leat_node_has_cores(server->node);
    return lives ? leat_node_backup(server->node) : NULL;
}

static const struct sim_server *server_of(const struct scenario *scenario, uint64_t incarnation)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (backup_of(server) && leat_node_incarnation(server->node) == incarnation) return server;
    }
    return NULL;
}

/* ---- copies that are counted on ---- */

/* Has the owner told the backup that the copy counts, and not yet called the copy one too many? */
static bool is_counted_on(const struct leat_copy_seen *copy)
{
    return copy->lives && copy->state == LEAT_COPY_CLOSED && !copy->found && !copy->incomplete &&
           !copy->leaves;
}

static void set_check(struct scenario *scenario, const struct sim_server *owner,
                      const struct leat_primary_log_seen *log, const struct leat_set_seen *set)
{
    const struct leat_log_ref *ref = &log->ref;
    if (!set->closed || set->dropping) return;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct leat_copy_seen copy = leat_copy_see(set, i);
        if (!is_counted_on(&copy)) continue;
        const struct sim_server *server = server_of(scenario, copy.incarnation);
        if (!server) continue;
        struct leat_replica_seen rep;
        bool there = leat_backup_see(backup_of(server), copy.handle, &rep);
        if (there && rep.seg && !rep.dropping && !rep.drop_wanted && rep.seg->id.v == set->id.v &&
            leat_log_ref_equal(rep.seg->log, *ref))
            continue;
        sim_fail(scenario->world,
                 "A1 lost-write: %s owns log id %u/%u/%u in epoch %u and counts on a copy of "
                 "segment %llu at %s, which %s there",
                 owner->name, ref->stream, ref->streamlet, ref->log, log->epoch.v,
                 (unsigned long long)set->id.v, server->name, there ? "goes" : "is not");
    }
}

/* By the newest that any node has applied it is the owner's. */
static bool is_owned(struct scenario *scenario, const struct leat_primary_log_seen *log)
{
    uint32_t stream;
    struct leat_log_ref ref = log->ref;
    if (log->fenced || log->silent || log->releasing) return false;
    if (!sim_stream_of(scenario, ref.stream, &stream)) return false;
    return scenario->stamps[stream][ref.streamlet][ref.log].epoch == log->epoch.v;
}

static void core_check(struct scenario *scenario, const struct sim_server *owner,
                       const struct leat_primary *primary)
{
    const struct leat_primary_log *log = NULL;
    while ((log = leat_primary_log_next(primary, log))) {
        const struct leat_primary_log_seen as = leat_primary_log_see(log);
        struct leat_set_seen set = {0};
        if (!is_owned(scenario, &as)) continue;
        while (leat_set_see_next(log, true, &set))
            set_check(scenario, owner, &as, &set);
    }
}

/* ---- fences ---- */

static void fence_check(struct scenario *scenario, const struct sim_server *server,
                        const struct leat_backup *backup, const struct leat_writer_seen *writer)
{
    unsigned leaving = 0;
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_next(backup, &rep))
        leaving += rep.writer.at == writer->at && (rep.move_wanted || rep.busy);
    if (writer->moves <= leaving) return;
    sim_fail(scenario->world,
             "A10 stuck: at %s the fence of %s, incarnation %llu, waits for %u replicas, and %u "
             "are leaving",
             server->name, writer->node, (unsigned long long)writer->incarnation, writer->moves,
             leaving);
}

static void fences_check(struct scenario *scenario, const struct sim_server *server)
{
    const struct leat_backup *backup = backup_of(server);
    struct leat_writer_seen writer = {0};
    while (leat_backup_see_writer(backup, &writer))
        if (writer.fenced && writer.moves) fence_check(scenario, server, backup, &writer);
}

/* ---- closed copies ---- */

static void closes_check(struct scenario *scenario, const struct sim_server *server)
{
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_next(backup_of(server), &rep)) {
        const struct leat_segment *seg = rep.seg;
        if (!seg || rep.busy || rep.dropping || rep.drop_wanted) continue;
        if (seg->state != LEAT_SEGMENT_CLOSED) continue;
        struct leat_store_seen row;
        leat_store_see(leat_node_store(server->node), seg->row, &row);
        if (row.written == LEAT_SEGMENT_CLOSED) continue;
        /* Found so at a start: its close entry is in the file, and the next start finds it there, too. */
        if (!seg->buffer && row.written < LEAT_SEGMENT_HIBERNATED) continue;
        sim_fail(scenario->world,
                 "A1 lost-write: %s calls its copy of segment %llu of log id %u/%u/%u closed, "
                 "and has not written that down",
                 server->name, (unsigned long long)seg->id.v, seg->log.stream, seg->log.streamlet,
                 seg->log.log);
    }
}

/* ---- nodes that were called dead ---- */

static bool knows_of_crash(const struct sim_server *voter, const struct sim_server *of)
{
    struct leat_machine *machine = leat_coordinator_tables(leat_node_coordinator(voter->node));
    const struct leat_machine_node *node =
        leat_machine_node_find(machine, leat_node_name(of->node), strlen(leat_node_name(of->node)));
    uint64_t incarnation = leat_coordinator_see(leat_node_coordinator(of->node)).incarnation;
    return node && (node->info.incarnation > incarnation ||
                    (node->info.incarnation == incarnation && node->info.crashed));
}

static bool was_told(const struct sim_server *server, const struct sim_server *voter)
{
    struct sim_told *told = &kept.told[server->number][voter->number];
    const struct leat_coordinator_seen of =
        leat_coordinator_see(leat_node_coordinator(server->node));
    uint64_t by = leat_coordinator_see(leat_node_coordinator(voter->node)).incarnation;
    if (of.incarnation == 0 || by == 0 || !knows_of_crash(voter, server)) return false;
    if (told->to != of.incarnation || told->by != by)
        *told = (struct sim_told){of.incarnation, by, of.ping + 1};
    return leat_coordinator_answered(leat_node_coordinator(server->node),
                                     leat_node_name(voter->node), by) >= told->number;
}

static void told_check(struct scenario *scenario, const struct sim_server *server)
{
    const struct sim_server *by = NULL;
    uint64_t now_us = scenario->world->now_us, *since_us = &kept.serves_us[server->number];
    for (unsigned i = 0; i < scenario->server_count && server->ready; i++) {
        const struct sim_server *voter = &scenario->servers[i];
        if (voter != server && backup_of(voter) && leat_node_coordinator(voter->node) &&
            leat_node_coordinator(server->node) && was_told(server, voter))
            by = voter;
    }
    bool stands_still = server->process->paused_until_us > now_us;
    if (!by || stands_still || !leat_node_is_confirmed(server->node)) {
        *since_us = 0;
        return;
    }
    if (*since_us == 0) *since_us = now_us;
    if (now_us < *since_us + CONFIRMED_US_MAX) return;
    sim_fail(scenario->world,
             "A7 nonmonotonic-poll: %s was called dead, %s has told it so, and it has served reads "
             "for %llu ms since",
             server->name, by->name, (unsigned long long)(now_us - *since_us) / 1000);
}

/* ---- producers that a log takes ---- */

static void producers_check(const struct sim_server *server,
                            const struct leat_partition_seen *partition)
{
    uint32_t at = 0;
    int64_t producer;
    int32_t sequence;
    while (leat_log_see_producer(partition->log, &at, &producer, &sequence)) {
        if (sequence == 0) continue;
        sim_fail(server->scenario->world,
                 "A8 nonmonotonic-send: log id %u/%u/%u took producer %lld from sequence %d on",
                 partition->ref.stream, partition->ref.streamlet, partition->ref.log,
                 (long long)producer, (int)sequence);
    }
}

/* Together, because a walk over a node's logs costs more than most looks at a log. */
static void logs_check(const struct sim_server *server)
{
    struct leat_partition_seen partition = {0};
    while (leat_node_log_next(server->node, &partition)) {
        if (!partition.log) continue;
        producers_check(server, &partition);
        sim_node_log_front_look(server, partition.log);
    }
}

/* ---- when ---- */

void sim_kept_check(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        for (uint32_t c = 0; backup_of(server) && c < scenario->cores; c++)
            if (leat_node_primary(server->node, c))
                core_check(scenario, server, leat_node_primary(server->node, c));
    }
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!backup_of(server)) {
            kept.serves_us[i] = 0;
            continue;
        }
        fences_check(scenario, server);
        closes_check(scenario, server);
        told_check(scenario, server);
        logs_check(server);
        sim_takeovers_look(scenario, server);
        if (leat_store_lacks_space(leat_node_store(server->node)))
            sim_node_log_full_look(scenario, server);
    }
    sim_conns_check(scenario);
    sim_world_at(world, world->now_us + LOOK_US, look, scenario);
}

void sim_kept_watch(struct scenario *scenario)
{
    memset(&kept, 0, sizeof kept);
    sim_takeovers_start();
    sim_world_at(scenario->world, scenario->world->now_us + LOOK_US, look, scenario);
}
