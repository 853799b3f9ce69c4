/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts of recovery, compared with what the nodes have at that moment. The leader's turns are looked at, so that no
 * step of an attempt passes unseen.
 *
 * Told enough: a log that an attempt leaves waiting would also wait if each node that answered had told of every closed
 * copy that it has; nor would the log wait for any copy that a node which is to come back may have.
 * Nothing counts before its time: a copy that an attempt has nodes make is nobody's before the entry is committed. Each
 * of these copies says so (provisional): another attempt may end the log elsewhere, and then the copy is nothing that
 * is left.
 * Not for one node alone: an end of a log whose acks need two copies is not decided where one node alone can have the
 * end and other nodes may come back.
 * Asked of somebody: an attempt asks for no copy of what no node has that answered. The node that is asked refuses such
 * a request, and all logs of the request wait, also those that lack nothing.
 * What is left is waited for: no log whose end was given up goes on without the records that are left while a node that
 * has them may come back.
 * What is there is given: where no copy could be made because all bytes were damaged, no node that was asked for them
 * has a whole copy beside the damaged copy. */
#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "coordinator/metadata/tail.h"
#include "coordinator/probe.h"
#include "replication/backup/probe.h"
#include "store/probe.h"
#include "tests/sim/scenario.h"

enum {
    ANSWERS_US_MAX = 200 * 1000,
    /* after which answers are old */ TASKS_MAX = 256,
    ROWS_MAX = LEAT_TAIL_ROWS_MAX
};

/* A copy that an attempt asks for. */
struct asked {
    struct leat_log_ref log;
    uint64_t segment;
    struct leat_prefix_id prefix_id;
    bool before;          /* not the log's last segment, but the one in front */
    uint32_t node, epoch; /* who is asked; whose log it was then */
    uint64_t incarnation; /* ... and which node was asked */
    unsigned counted;     /* copies that counted there then, or may be handed to its backup since */
    uint64_t holders;     /* nodes whose rows have the copy, one bit each */
};

/* Of each node, as a leader. The copies that an attempt asks for are kept here: an attempt that commits nothing has
 * forgotten them by the end of the turn in which it fails. */
static struct {
    uint64_t attempt, began_us;
    enum leat_recovery_phase phase;
    struct asked asked[TASKS_MAX];
    uint32_t asked_count;
    uint32_t waiting; /* logs that waited before anything was asked for */
} seen[SIM_SERVERS_MAX];

/* The node that answered, if it is still the same. */
static const struct sim_server *server_at(const struct scenario *scenario,
                                          const struct leat_coordinator *coordinator, uint32_t node)
{
    uint64_t incarnation = leat_coordinator_tables(coordinator)->nodes[node].info.incarnation;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        bool lives = server->process && server->process->alive && server->node &&
                     leat_node_has_cores(server->node) && leat_node_backup(server->node);
        if (lives && leat_node_incarnation(server->node) == incarnation) return server;
    }
    return NULL;
}

static struct leat_backup *backup_of(const struct sim_server *server)
{
    return leat_node_backup(server->node);
}

/* ---- nothing counts before its time ---- */

static bool is_closed(const struct leat_replica_seen *rep)
{
    const struct leat_segment *seg = rep->seg;
    return seg && seg->state == LEAT_SEGMENT_CLOSED && !seg->incomplete && !rep->damaged &&
           !rep->dropping && !rep->drop_wanted && !rep->move_wanted;
}

static bool same(struct leat_prefix_id a, struct leat_prefix_id b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

/* Copies that no owner has given its word of (seed 60737). */
static unsigned counted(const struct leat_backup *backup, const struct asked *asked)
{
    struct leat_replica_seen rep = {0};
    unsigned count = 0;
    while (leat_backup_see_of(backup, asked->log, &rep))
        count += is_closed(&rep) && rep.seg->id.v == asked->segment &&
                 same(rep.seg->prefix_id, asked->prefix_id) && !rep.seg->provisional &&
                 rep.owner_epoch.v == 0;
    return count;
}

/* What the node has of its own log. Once the log is another's it is handed to the backup, as part of that log and
 * without an owner's word:
 *  1. node3 stops its log for a move and asks the leader, which dies. Its own segment is no replica yet.
 *  2. The next leader commits the move, and begins an attempt: the new owner is dead. It has node3 make a copy.
 *  3. node3 hears that the log is gone, and hands its segment over, next to that copy (seed 4167). */
static unsigned own(const struct sim_server *server, const struct asked *asked)
{
    struct leat_store_seen at = {0};
    unsigned count = 0;
    while (leat_store_see_next(leat_node_store(server->node), &at))
        count += at.written != LEAT_SEGMENT_FREE && !at.written_replica &&
                 leat_log_ref_equal(at.log, asked->log) && at.segment == asked->segment;
    return count;
}

/* Who owns the log, as committed; epoch 0: its stream is gone. */
struct ownership {
    uint32_t epoch;
    uint64_t owner;
};

static struct ownership ownership_of(const struct leat_coordinator *coordinator,
                                     struct leat_log_ref log)
{
    const struct leat_machine *machine = leat_coordinator_tables(coordinator);
    for (uint32_t i = 0; i < machine->stream_count; i++) {
        const struct leat_stream_desc *desc = machine->streams[i].desc;
        if (desc->id == log.stream && log.streamlet < desc->streamlet_count)
            return (struct ownership){desc->streamlets[log.streamlet].epoch.v,
                                      desc->streamlets[log.streamlet].owner};
    }
    return (struct ownership){0, 0};
}

static uint64_t holders_of(const struct leat_coordinator *coordinator, uint32_t log)
{
    uint64_t holders = 0;
    struct leat_attempt_row row;
    for (uint32_t i = 0; leat_attempt_row(coordinator, log, i, &row); i++)
        if (row.holds) holders |= 1ULL << row.node % 64;
    return holders;
}

static bool somebody_has(const struct leat_coordinator *coordinator, uint32_t log,
                         const struct asked *asked)
{
    struct leat_attempt_row row;
    if (!asked->before) return asked->holders != 0;
    for (uint32_t i = 0; leat_attempt_row(coordinator, log, i, &row); i++)
        if (row.row->segment == asked->segment && row.row->kind != LEAT_REPLICA_LOST &&
            same(row.row->prefix_id, asked->prefix_id))
            return true;
    return false;
}

static void asked_note(struct scenario *scenario, unsigned leader,
                       const struct leat_coordinator *coordinator)
{
    struct leat_attempt_task task;
    struct leat_attempt_log log;
    seen[leader].asked_count = 0;
    (void)leat_attempt_waiting(coordinator, &seen[leader].waiting);
    for (uint32_t t = 0; t < TASKS_MAX && leat_attempt_task(coordinator, t, &task); t++) {
        if (!leat_attempt_log(coordinator, task.log, &log)) continue;
        const struct sim_server *server = server_at(scenario, coordinator, task.node);
        struct asked *asked = &seen[leader].asked[seen[leader].asked_count++];
        *asked = (struct asked){.log = log.ref,
                                .segment = log.tail.segment - task.before,
                                .prefix_id = task.before ? log.before : log.tail.prefix_id,
                                .before = task.before,
                                .node = task.node,
                                .epoch = ownership_of(coordinator, log.ref).epoch,
                                .incarnation = server ? leat_node_incarnation(server->node) : 0,
                                .holders = holders_of(coordinator, task.log)};
        if (server) asked->counted = counted(backup_of(server), asked) + own(server, asked);
        if (somebody_has(coordinator, task.log, asked)) continue;
        sim_fail(scenario->world,
                 "A10 stuck: an attempt of recovery asks for a copy of segment %llu of log id "
                 "%u/%u/%u, %u bytes, which nobody has who answered: all logs that are asked for "
                 "together wait",
                 (unsigned long long)asked->segment, log.ref.stream, log.ref.streamlet, log.ref.log,
                 asked->prefix_id.bytes);
    }
}

static void asked_see(struct scenario *scenario, unsigned leader,
                      const struct leat_coordinator *coordinator)
{
    for (uint32_t t = 0; t < seen[leader].asked_count; t++) {
        const struct asked *asked = &seen[leader].asked[t];
        const struct sim_server *server = server_at(scenario, coordinator, asked->node);
        const struct ownership now = ownership_of(coordinator, asked->log);
        /* What a start finds is what was there; and an owner that came by a move may have counted on it: after it
         * was asked, or before, amid the attempt (seed 77101). */
        if (!server || leat_node_incarnation(server->node) != asked->incarnation ||
            now.epoch != asked->epoch || now.owner == asked->incarnation)
            continue;
        if (counted(backup_of(server), asked) > asked->counted)
            sim_fail(scenario->world,
                     "A1 lost-write: %s has segment %llu of log id %u/%u/%u, %u bytes, for an "
                     "attempt of recovery that is not committed, and counts it as part of the log",
                     server->name, (unsigned long long)asked->segment, asked->log.stream,
                     asked->log.streamlet, asked->log.log, asked->prefix_id.bytes);
    }
}

/* ---- told enough ---- */

struct told {
    uint32_t number; /* of the log, in the attempt */
    struct leat_attempt_log log;
    const struct leat_replica_row *rows[ROWS_MAX];
    struct leat_replica_row untold[ROWS_MAX];
    uint32_t nodes[ROWS_MAX];
    uint32_t first, count; /* first: of what was not told */
};

static bool was_told(const struct told *told, uint32_t node, const struct leat_segment *seg)
{
    for (uint32_t i = 0; i < told->first; i++)
        if (told->nodes[i] == node && told->rows[i]->segment == seg->id.v &&
            same(told->rows[i]->prefix_id, seg->prefix_id))
            return true;
    return false;
}

static void untold_add(struct told *told, uint32_t node, const struct leat_segment *seg)
{
    if (told->count == ROWS_MAX || was_told(told, node, seg)) return;
    struct leat_replica_row *row = &told->untold[told->count];
    *row = (struct leat_replica_row){.log = seg->log,
                                     .segment = seg->id.v,
                                     .kind = LEAT_REPLICA_CLOSED,
                                     .epoch = seg->epoch,
                                     .version = seg->version,
                                     .prefix_id = seg->prefix_id,
                                     .base_offset = seg->base_offset,
                                     .next_offset = seg->next_offset,
                                     .provisional = seg->provisional};
    told->nodes[told->count] = node;
    told->rows[told->count++] = row;
}

static void told_fill(struct told *told, const struct scenario *scenario,
                      const struct leat_coordinator *coordinator)
{
    struct leat_attempt_row row;
    for (uint32_t i = 0; told->count < ROWS_MAX; i++) {
        if (!leat_attempt_row(coordinator, told->number, i, &row)) break;
        if (!server_at(scenario, coordinator, row.node)) continue;
        told->nodes[told->count] = row.node;
        told->rows[told->count++] = row.row;
    }
    told->first = told->count;
    for (uint32_t node = 0; node < leat_coordinator_tables(coordinator)->node_count; node++) {
        const struct sim_server *server = server_at(scenario, coordinator, node);
        if (!leat_attempt_answered(coordinator, node) || !server) continue;
        struct leat_replica_seen rep = {0};
        while (leat_backup_see_of(backup_of(server), told->log.ref, &rep))
            if (is_closed(&rep)) untold_add(told, node, rep.seg);
    }
}

static void waits_see(struct scenario *scenario, const struct leat_coordinator *coordinator,
                      const struct told *told)
{
    const struct leat_attempt_log *log = &told->log;
    struct leat_tail_row rows[ROWS_MAX];
    struct leat_tail tail;
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(leat_coordinator_tables(coordinator), log->ref.stream);
    if (!stream) return;
    const struct leat_tail_question question = {.record = &log->seen,
                                                .majority = stream->desc->settings.copies / 2 + 1,
                                                .all_heard = leat_attempt_all_heard(coordinator)};
    for (uint32_t i = 0; i < told->count; i++)
        rows[i] = leat_tail_row_of(told->rows[i], told->nodes[i]);
    leat_tail_decide(&question, rows, told->count, &tail);
    if (!tail.ends) return;
    sim_fail(scenario->world,
             "A10 stuck: an attempt of recovery leaves log id %u/%u/%u waiting, which would end "
             "with segment %llu had it been told of all closed copies that those who answered have",
             log->ref.stream, log->ref.streamlet, log->ref.log,
             (unsigned long long)tail.end.segment);
}

static bool has_no_records(const struct told *told, uint64_t segment)
{
    for (uint32_t i = 0; i < told->count; i++)
        if (told->rows[i]->segment == segment && told->rows[i]->kind == LEAT_REPLICA_CLOSED &&
            told->rows[i]->epoch.v == told->log.seen.stamp_epoch.v &&
            told->rows[i]->base_offset == told->rows[i]->next_offset)
            return true;
    return false;
}

static bool any_told(const struct told *told, const struct leat_replica_row *row)
{
    for (uint32_t i = 0; i < told->first; i++)
        if (told->rows[i]->segment == row->segment &&
            same(told->rows[i]->prefix_id, row->prefix_id))
            return true;
    return false;
}

/* The one behind it is closed, or followed: not before all copies of that one are closed. */
static bool is_closed_everywhere(const struct told *told, uint64_t segment)
{
    for (uint32_t i = 0; i < told->count; i++) {
        const struct leat_replica_row *row = told->rows[i];
        if (row->kind == LEAT_REPLICA_LOST || row->epoch.v != told->log.seen.stamp_epoch.v)
            continue;
        if (row->segment > segment + 1) return true;
        if (row->segment == segment + 1 && row->kind == LEAT_REPLICA_CLOSED) return true;
    }
    return false;
}

/* A segment is started on all its copies before the one in front is closed on any (R1): a node that is to come back may
 * have one open that was closed without a record, and ask for the one in front. */
static void front_see(struct scenario *scenario, const struct told *told)
{
    const struct leat_attempt_log *log = &told->log;
    for (uint32_t i = told->first; i < told->count; i++) {
        const struct leat_replica_row *row = told->rows[i];
        if (row->provisional || !has_no_records(told, row->segment + 1) || any_told(told, row) ||
            is_closed_everywhere(told, row->segment + 1))
            continue;
        sim_fail(scenario->world,
                 "A10 stuck: log id %u/%u/%u would wait for its segment %llu if a node came back "
                 "with the next one, which has no records, still open: those who have it do not "
                 "tell of it",
                 log->ref.stream, log->ref.streamlet, log->ref.log,
                 (unsigned long long)row->segment);
    }
}

/* Its owner lives, and another log of its streamlet waits: the attempt decides nothing of this one. */
static bool is_served(const struct leat_attempt_log *log)
{
    return !log->takes && log->decision == LEAT_RECOVER_WAITS && !log->undecided;
}

static void logs_see(struct scenario *scenario, const struct leat_coordinator *coordinator)
{
    static struct told told;
    for (uint32_t i = 0; leat_attempt_log(coordinator, i, &told.log); i++) {
        told.number = i;
        told.count = 0;
        if (!told.log.seen.opened || is_served(&told.log)) continue;
        told_fill(&told, scenario, coordinator);
        if (told.count == told.first) continue;
        if (told.log.undecided) waits_see(scenario, coordinator, &told);
        front_see(scenario, &told);
    }
}

/* ---- not for one node alone ---- */

static void ends_see(struct scenario *scenario, const struct leat_coordinator *coordinator)
{
    struct leat_machine *machine = leat_coordinator_tables(coordinator);
    struct leat_attempt_log log;
    unsigned able = 0, others = 0;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        bool up = info->state == LEAT_NODE_UP && !info->crashed;
        bool answers = leat_attempt_answered(coordinator, i);
        able += up && answers;
        others += (up && !answers) || (info->state == LEAT_NODE_DOWN && !info->draining);
    }
    if (able != 1 || others == 0) return;
    for (uint32_t i = 0; leat_attempt_log(coordinator, i, &log); i++) {
        const struct leat_machine_stream *stream =
            leat_machine_stream_find(machine, log.ref.stream);
        if (!stream || !leat_machine_incarnation_find(machine, log.owner) ||
            log.decision != LEAT_RECOVER_TAIL || log.tail.jumped ||
            log.tail.segment == UINT64_MAX || stream->desc->settings.min_copies < 2)
            continue;
        sim_fail(scenario->world,
                 "A1 lost-write: the end of log id %u/%u/%u is decided for the one node that "
                 "answers, though %u others may come back",
                 log.ref.stream, log.ref.streamlet, log.ref.log, others);
    }
}

/* ---- what is left is waited for ---- */

/* Also of a node that is down: its memory stays until its machine starts again. */
static bool has_left(const struct sim_server *server, const struct leat_attempt_log *log)
{
    struct leat_store_seen at = {0};
    while (leat_store_see_next(server->node ? leat_node_store(server->node) : NULL, &at))
        if (at.written == LEAT_SEGMENT_CLOSED && at.written_flushed &&
            leat_log_ref_equal(at.log, log->ref) && at.segment <= log->seen.tail.segment)
            return true;
    return false;
}

static bool answered(const struct leat_coordinator *coordinator, const struct sim_server *server)
{
    const struct leat_machine *machine = leat_coordinator_tables(coordinator);
    for (uint32_t node = 0; node < machine->node_count; node++)
        if (leat_attempt_answered(coordinator, node) &&
            strcmp(machine->nodes[node].info.name, server->name) == 0)
            return true;
    return false;
}

/* A streamlet that is not taken has an owner, who serves this log or waits for what is left of it: an attempt is about
 * another of its logs then, and looks for no rows of this one (seeds 1320, 2911). Where the record names no segment,
 * nothing was left when the loss was accepted: a node that stops writes rows of what lost its bytes (seed 288). */
static void left_see(struct scenario *scenario, const struct leat_coordinator *coordinator)
{
    struct leat_attempt_log log;
    for (uint32_t i = 0; leat_attempt_log(coordinator, i, &log); i++) {
        if (log.decision != LEAT_RECOVER_STANDS || !log.seen.tail.jumped ||
            log.seen.tail.segment == UINT64_MAX || holders_of(coordinator, i) != 0 || !log.takes)
            continue;
        for (unsigned s = 0; s < scenario->server_count; s++)
            if (!answered(coordinator, &scenario->servers[s]) &&
                has_left(&scenario->servers[s], &log))
                sim_fail(scenario->world,
                         "A6 poll-skip: log id %u/%u/%u goes on without what is left of it, which "
                         "is on %s, and that was not heard",
                         log.ref.stream, log.ref.streamlet, log.ref.log, scenario->servers[s].name);
    }
}

/* ---- what is there is given ---- */

static bool is_whole(const struct leat_replica_seen *rep, struct leat_prefix_id prefix_id)
{
    const struct leat_segment *seg = rep->seg;
    struct leat_scan scan;
    if (rep->damaged || rep->dropping || rep->drop_wanted || rep->move_wanted || rep->adopting ||
        seg->incomplete || !seg->buffer || seg->capacity < prefix_id.bytes)
        return false;
    leat_scan_segment(seg->buffer, prefix_id.bytes, &scan);
    return scan.started && scan.bytes == prefix_id.bytes && scan.crc == prefix_id.crc;
}

static void damaged_see(struct scenario *scenario, const struct leat_coordinator *coordinator,
                        const struct asked *asked, uint32_t node)
{
    const struct sim_server *server = server_at(scenario, coordinator, node);
    unsigned whole = 0, others = 0;
    if (!server) return;
    struct leat_replica_seen rep = {0};
    while (leat_backup_see_of(backup_of(server), asked->log, &rep)) {
        if (rep.seg->id.v != asked->segment) continue;
        if (is_whole(&rep, asked->prefix_id))
            whole++;
        else
            others++;
    }
    if (whole > 0 && others > 0)
        sim_fail(scenario->world,
                 "A10 stuck: log id %u/%u/%u waits because what nodes gave of its segment %llu is "
                 "damaged, and %s has it whole beside a copy that is torn",
                 asked->log.stream, asked->log.streamlet, asked->log.log,
                 (unsigned long long)asked->segment, server->name);
}

static bool waits_for_damage(const struct leat_coordinator *coordinator, uint32_t from,
                             struct leat_log_ref log)
{
    uint32_t count;
    const struct leat_recovery_waiting *waiting = leat_attempt_waiting(coordinator, &count);
    for (uint32_t i = from; i < count && i < LEAT_RECOVERY_WAITING_MAX; i++)
        if (leat_log_ref_equal(waiting[i].log, log) &&
            strstr(waiting[i].why, leat_err_text(LEAT_E_DAMAGED)))
            return true;
    return false;
}

static void failed_see(struct scenario *scenario, unsigned leader,
                       const struct leat_coordinator *coordinator)
{
    uint32_t nodes = leat_coordinator_tables(coordinator)->node_count;
    for (uint32_t t = 0; t < seen[leader].asked_count; t++) {
        const struct asked *asked = &seen[leader].asked[t];
        if (asked->before || !waits_for_damage(coordinator, seen[leader].waiting, asked->log))
            continue;
        for (uint32_t node = 0; node < nodes; node++)
            if (asked->holders >> node % 64 & 1) damaged_see(scenario, coordinator, asked, node);
    }
}

/* ---- when ---- */

/* A voter that leads no longer, or hears that it was declared crashed: its attempt decides nothing any more. In that
 * turn its own segments have gone to its backup (seed 1516), and it has not heard yet what a later leader's attempt has
 * decided (seed 9473). */
static bool is_declared_crashed(const struct sim_server *server,
                                const struct leat_coordinator *coordinator)
{
    const struct leat_machine *machine = leat_coordinator_tables(coordinator);
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (strcmp(machine->nodes[i].info.name, server->name) == 0)
            return machine->nodes[i].info.crashed;
    return false;
}

static void after_turn(struct sim_actor *actor)
{
    const struct sim_server *server = actor->process->owner;
    struct scenario *scenario = server->scenario;
    const struct leat_coordinator *coordinator =
        server->node ? leat_node_coordinator(server->node) : NULL;
    unsigned leader = server->number;
    sim_owners_see(server);
    if (!coordinator) return;
    sim_ends_see(server);
    const struct leat_coordinator_seen now = leat_coordinator_see(coordinator);
    if (seen[leader].attempt == now.attempt && seen[leader].phase == now.phase) return;
    bool deposed = !now.leads || is_declared_crashed(server, coordinator);
    uint64_t now_us = scenario->world->now_us;
    if (seen[leader].attempt != now.attempt) seen[leader].began_us = now_us;
    /* Where nothing is left to be committed the turn that ends this ends the attempt, too. */
    if (seen[leader].phase == LEAT_RECOVERY_PREPARE && !deposed) {
        asked_see(scenario, leader, coordinator);
        failed_see(scenario, leader, coordinator);
    }
    if (now.phase == LEAT_RECOVERY_PREPARE && !deposed) {
        /* What a node has may have changed since it answered: where answers were waited for, logs are not judged. */
        if (now_us <= seen[leader].began_us + ANSWERS_US_MAX) logs_see(scenario, coordinator);
        ends_see(scenario, coordinator);
        left_see(scenario, coordinator);
        asked_note(scenario, leader, coordinator);
    }
    seen[leader].attempt = now.attempt;
    seen[leader].phase = now.phase;
}

void sim_attempts_watch(struct sim_server *server)
{
    memset(&seen[server->number], 0, sizeof seen[server->number]);
    sim_owners_forget(server);
    server->coordinator->after_turn = after_turn;
}
