/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt of recovery between collecting and committing: the decisions, the new owners, and the number of copies.
 * Nothing here waits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/log_rows.h"
#include "base/mem.h"
#include "coordinator/metadata/assign.h"
#include "coordinator/recovery/attempt.h"

enum {
    LOG_ROWS_MAX = LEAT_TAIL_ROWS_MAX, /* of one log; more are not looked at */
    COPIES_LEAST = 2, /* nodes with a log's end, as long as so many may come back */
};

/* ---- deciding ---- */

static int row_order(const void *left, const void *right)
{
    const struct co_row *a = left, *b = right;
    int order = leat_log_ref_order(a->row.log, b->row.log);
    if (order) return order;
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    return a->row.segment < b->row.segment ? -1 : a->row.segment > b->row.segment;
}

static size_t row_find(const struct co_recovery *it, struct leat_log_ref ref)
{
    return LEAT_LOG_ROWS_FROM(it->rows, it->row_count, row.log, ref);
}

static bool node_lives(const struct leat_coordinator *coordinator, uint32_t node)
{
    const struct leat_node_info *info = &co_tables(coordinator)->nodes[node].info;
    return info->state == LEAT_NODE_UP && !info->crashed;
}

/* SUBTLE: a tail with only a start entry may follow a segment that is closed on one node only.
 *  1. X dies. N+1's start entry is on X, B and C; N's close entry is on X only. B and C are down.
 *  2. X and C are up again. X's N+1 ends the log: there is no lower mark. C gets a replica of N+1, too.
 *  3. N+1 names the prefix id of N as X closed N. B's replica of N lacks the close entry: it does not count for N.
 *  4. X's disk is lost, and with it acked records that B had as well.
 * So N is prepared like the tail itself. Where N+1 holds a batch, N was closed on all replicas (log_may_seal()).
 * Where N+1 is a committed tail, N was prepared when the tail was committed. Since then all nodes with N may have gone
 * down: a request for N would name no source, and the asked node would refuse it with the copies of all other logs. */
static void before_find(struct co_recover_log *log, struct co_row *const *rows, size_t count)
{
    log->before = (struct leat_prefix_id){0, 0};
    for (size_t i = 0; i < count && (log->seen.opened || LEAT_BUG(BEFORE_COMMITTED)); i++) {
        const struct leat_replica_row *row = &rows[i]->row;
        if (!rows[i]->holds || row->kind != LEAT_REPLICA_MARK || !row->only_start) continue;
        log->before = row->previous;
        log->before_next_offset = row->base_offset;
    }
    for (size_t i = 0; i < count; i++) {
        const struct leat_replica_row *row = &rows[i]->row;
        rows[i]->before = log->before.bytes > 0 && row->kind != LEAT_REPLICA_LOST &&
                          row->segment + 1 == log->tail.segment &&
                          leat_prefix_id_equal(row->prefix_id, log->before);
    }
}

/* Reports a log that waits. For a log with a single copy the report names the node that must come back. */
static void wait_tell(struct leat_coordinator *coordinator, struct co_recover_log *log,
                      const char *why)
{
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(co_tables(coordinator), log->ref.stream);
    uint16_t index = LEAT_OWNER_NONE;
    char more[304];
    if (stream && stream->desc->settings.copies == 1) index = stream->owners[log->ref.streamlet];
    if (index == LEAT_OWNER_NONE ||
        co_tables(coordinator)->nodes[index].info.state == LEAT_NODE_UP) {
        co_recovery_wait(coordinator, log, why);
        return;
    }
    snprintf(more, sizeof more, "it has one copy, and node %.64s, which served it, is down; %.150s",
             co_tables(coordinator)->nodes[index].info.name, why);
    co_recovery_wait(coordinator, log, more);
}

/* true: decided. */
static bool log_decide(struct leat_coordinator *coordinator, struct co_recover_log *log, bool last)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    struct leat_tail_row rows[LOG_ROWS_MAX];
    struct co_row *of[LOG_ROWS_MAX];
    size_t count = 0;
    struct leat_tail tail;
    log->row_first = (uint32_t)row_find(it, log->ref);
    log->row_count = 0;
    for (size_t i = log->row_first; i < it->row_count && count < LOG_ROWS_MAX; i++) {
        if (!leat_log_ref_equal(it->rows[i].row.log, log->ref)) break;
        log->row_count++;
        it->rows[i].holds = it->rows[i].before = false;
        if (!node_lives(coordinator, it->rows[i].node)) continue; /* it died since */
        of[count] = &it->rows[i];
        rows[count++] = leat_tail_row_of(&it->rows[i].row, it->rows[i].node);
    }
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(co_tables(coordinator), log->ref.stream);
    const struct leat_tail_question question = {
        .record = &log->seen,
        .majority = stream ? stream->desc->settings.copies / 2 + 1 : 1,
        .all_heard = co_recovery_all_heard(coordinator, 0)};
    leat_tail_decide(&question, rows, count, &tail);
    log->undecided = !tail.ends;
    if (log->undecided) {
        char why[LEAT_TAIL_TEXT_BYTES];
        log->decision = LEAT_RECOVER_WAITS;
        if (last) wait_tell(coordinator, log, leat_tail_text(&tail, &log->seen, why));
        return false;
    }
    for (size_t i = 0; i < count; i++)
        of[i]->holds = leat_tail_holds(&tail, i);
    log->decision = log->seen.opened ? LEAT_RECOVER_TAIL : LEAT_RECOVER_STANDS;
    log->tail = tail.end;
    before_find(log, of, count);
    return true;
}

/* A streamlet of a stream with a single copy stays on the node that has its bytes: if another node got the streamlet
 * because of an unwritten log, the other logs would wait there although their node comes back. */
static uint32_t single_wait(struct leat_coordinator *coordinator,
                            const struct co_recover_streamlet *streamlet, bool last)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    const struct leat_machine_stream *stream =
        leat_machine_stream_find(co_tables(coordinator), streamlet->ref.stream);
    uint32_t waits = 0, more = 0;
    for (uint32_t q = 0; q < streamlet->logs; q++)
        if (it->logs[streamlet->first + q].decision == LEAT_RECOVER_WAITS) waits++;
    if (!stream || stream->desc->settings.copies > 1 || waits == 0 || !streamlet->takes) return 0;
    for (uint32_t q = 0; q < streamlet->logs; q++) {
        struct co_recover_log *log = &it->logs[streamlet->first + q];
        if (log->decision == LEAT_RECOVER_WAITS) continue;
        log->decision = LEAT_RECOVER_WAITS;
        log->undecided = true;
        if (last) wait_tell(coordinator, log, "the only copy of its streamlet's logs is away");
        more++;
    }
    return more;
}

uint32_t co_recovery_decide(struct leat_coordinator *coordinator, bool last)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    if (!it->sorted && it->row_count) qsort(it->rows, it->row_count, sizeof *it->rows, row_order);
    it->sorted = true;
    uint32_t waits = 0;
    for (uint32_t s = 0; s < it->streamlet_count; s++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[s];
        for (uint32_t q = 0; q < streamlet->logs; q++) {
            struct co_recover_log *log = &it->logs[streamlet->first + q];
            /* The streamlet's owner lives, and serves this log. */
            bool served = !streamlet->takes &&
                          !(log->seen.opened && log->seen.stamp_epoch.v != log->seen_epoch.v);
            if (served)
                log->decision = log->seen.opened ? LEAT_RECOVER_WAITS : LEAT_RECOVER_STANDS;
            else if (!log_decide(coordinator, log, last))
                waits++;
        }
        waits += single_wait(coordinator, streamlet, last);
    }
    return waits;
}

/* ---- owners ---- */

static bool log_has_bytes(const struct co_recover_log *log)
{
    return log->decision != LEAT_RECOVER_WAITS && log->tail.segment != UINT64_MAX &&
           !log->tail.jumped;
}

static const struct co_row *holder(const struct co_recovery *it, const struct co_recover_log *log,
                                   uint32_t node, bool before)
{
    const struct co_row *found = NULL;
    for (uint32_t i = 0; i < log->row_count; i++) {
        const struct co_row *row = &it->rows[log->row_first + i];
        if (row->node != node || !(before ? row->before : row->holds)) continue;
        if (!found || (row->row.durable && !found->row.durable)) found = row;
    }
    return found;
}

/* How many logs of the streamlet end on this node. After an accepted loss, too: no copies of what is left are made
 * first (log_has_bytes()), so the owner should have it. */
static uint32_t holds_count(const struct co_recovery *it,
                            const struct co_recover_streamlet *streamlet, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t q = 0; q < streamlet->logs; q++) {
        const struct co_recover_log *log = &it->logs[streamlet->first + q];
        if (log->decision != LEAT_RECOVER_WAITS && holder(it, log, node, false)) count++;
    }
    return count;
}

/* What an attempt gives to nodes. */
struct given {
    uint32_t streamlets[LEAT_NODES_MAX], logs[LEAT_NODES_MAX];
};

/* Logs would wait on a node without memory for them; a drained node must lose streamlets, not get more. */
static unsigned reluctance(const struct leat_machine_node *node, uint32_t logs)
{
    return (node->info.draining ? 2U : 0U) | (leat_machine_node_has_room(node, logs) ? 0U : 1U);
}

/* The node with the most replicas of the streamlet; among equals the node with the fewest streamlets, those that
 * this attempt gives to the node included. A node without memory, or a drained node, only when there is no other. */
static int owner_choose(const struct leat_coordinator *coordinator,
                        const struct co_recover_streamlet *streamlet, const struct given *given)
{
    const struct leat_machine *machine = co_tables(coordinator);
    int best = -1;
    uint32_t best_holds = 0;
    uint64_t best_load = 0;
    for (unsigned tier = 0; tier < 4 && best < 0; tier++)
        for (uint32_t i = 0; i < machine->node_count; i++) {
            const struct leat_node_info *info = &machine->nodes[i].info;
            if (!co_node_heard(co_recovery_of(coordinator), i) || !node_lives(coordinator, i) ||
                reluctance(&machine->nodes[i], streamlet->logs + given->logs[i]) != tier)
                continue;
            uint32_t holds = holds_count(co_recovery_of(coordinator), streamlet, i);
            uint64_t load = info->streamlets + given->streamlets[i];
            if (best >= 0 && (holds < best_holds || (holds == best_holds && load >= best_load)))
                continue;
            best = (int)i;
            best_holds = holds;
            best_load = load;
        }
    return best;
}

/* ---- copies ---- */

struct plan {
    struct leat_coordinator *coordinator;
    bool count_only;
    uint32_t tasks;
    /* count_only: how many tasks each node has; then the index of each node's next task. */
    uint32_t node_tasks[LEAT_NODES_MAX];
};

static void task_add(struct plan *plan, uint32_t log, uint32_t node, bool before)
{
    struct co_recovery *it = co_recovery_of(plan->coordinator);
    if (plan->count_only)
        plan->node_tasks[node]++;
    else
        it->tasks[plan->node_tasks[node]++] = (struct co_task){log, node, before};
    plan->tasks++;
}

/* SUBTLE: the nodes that live are more than the nodes that have answered.
 *  1. The first node comes up and is up in the tables, but answers no calls yet; the third node stands still.
 *  2. Only the second node has answered. Its bytes become the tail, and no other node gets a replica.
 *  3. The second node's disk fails: the log waits, although the first node has all acked records. */
static bool log_waits_for_more(struct plan *plan, struct co_recover_log *log, uint32_t copies)
{
    struct leat_coordinator *coordinator = plan->coordinator;
    uint32_t able = 0;
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++)
        if (co_node_heard(co_recovery_of(coordinator), i) && node_lives(coordinator, i)) able++;
    if (able >= copies || LEAT_BUG(ANSWERED_ALONE)) return false;
    co_recovery_wait(coordinator, log, "too few of the nodes that are up answer to hold its end");
    return true;
}

/* As many nodes as the stream's min-copies, or all live nodes, must hold the tail, the owner included. before: the
 * segment before the tail instead. */
static void copies_plan(struct plan *plan, uint32_t index, uint32_t owner, uint32_t copies,
                        bool disk, bool before)
{
    const struct leat_coordinator *coordinator = plan->coordinator;
    const struct co_recovery *it = co_recovery_of(coordinator);
    const struct co_recover_log *log = &it->logs[index];
    uint32_t have = 0, nodes = co_tables(coordinator)->node_count;
    bool done[LEAT_NODES_MAX] = {false};
    for (uint32_t i = 0; i < nodes; i++) {
        const struct co_row *row = holder(it, log, i, before);
        if (!row || (disk && !row->row.durable)) continue;
        done[i] = true;
        have++;
    }
    if (!done[owner] && (!before || have < copies)) { /* the owner fetches older segments itself */
        task_add(plan, index, owner, before);
        done[owner] = true;
        have++;
    }
    /* First nodes that have the bytes and must only make them durable. */
    for (unsigned pass = 0; pass < 2; pass++)
        for (uint32_t n = 1; n < nodes && have < copies; n++) {
            uint32_t i = (owner + n) % nodes;
            if (done[i] || !co_node_heard(it, i) || !node_lives(coordinator, i)) continue;
            if (pass == 0 && !holder(it, log, i, before)) continue;
            task_add(plan, index, i, before);
            done[i] = true;
            have++;
        }
}

static void log_plan(struct plan *plan, uint32_t index, uint32_t owner, uint32_t copies, bool disk)
{
    struct co_recover_log *log = &co_recovery_of(plan->coordinator)->logs[index];
    if (log_waits_for_more(plan, log, copies) || LEAT_BUG(NO_PREPARE)) return;
    copies_plan(plan, index, owner, copies, disk, false);
    if (log->before.bytes > 0) copies_plan(plan, index, owner, copies, disk, true);
}

/* SUBTLE: min-copies, or all live nodes, but not a single node while others may come back.
 *  1. Two nodes have a log; only the first has bytes that were not acked. The power goes.
 *  2. The first node is up again, with the voter of a third node, which is not up yet. All bytes of the first node
 *     become the tail, are read by consumers, and are on a single disk.
 *  3. This disk fails. The second node's bytes are shorter than the tail, so they are no replica of the segment:
 *     records that two disks had are lost after one disk failed. */
static uint32_t nodes_for_copies(const struct leat_machine *machine, uint32_t live)
{
    uint32_t back = live;
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].info.state == LEAT_NODE_DOWN && !machine->nodes[i].info.draining)
            back++;
    uint32_t least = back < COPIES_LEAST ? back : COPIES_LEAST;
    return live < least && !LEAT_BUG(END_OF_ONE) ? least : live;
}

static void plan_tasks(struct plan *plan)
{
    struct leat_coordinator *coordinator = plan->coordinator;
    struct co_recovery *it = co_recovery_of(coordinator);
    uint32_t live = 0;
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++)
        if (node_lives(coordinator, i)) live++;
    uint32_t nodes = nodes_for_copies(co_tables(coordinator), live);
    for (uint32_t s = 0; s < it->streamlet_count; s++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[s];
        const struct leat_machine_stream *stream =
            leat_machine_stream_find(co_tables(coordinator), streamlet->ref.stream);
        const struct leat_machine_node *owner =
            leat_machine_incarnation_find(co_tables(coordinator), streamlet->owner);
        if (!stream || !owner) continue; /* gone since */
        const struct leat_stream_settings *settings = &stream->desc->settings;
        uint32_t copies = settings->min_copies < nodes ? settings->min_copies : nodes;
        for (uint32_t q = 0; q < streamlet->logs; q++) {
            const struct co_recover_log *log = &it->logs[streamlet->first + q];
            bool served = !streamlet->takes && log->decision != LEAT_RECOVER_TAIL;
            if (served || !log_has_bytes(log)) continue;
            log_plan(plan, streamlet->first + q,
                     leat_machine_node_index(co_tables(coordinator), owner), copies,
                     settings->durability == LEAT_DURABILITY_DISK);
        }
    }
}

leat_err co_recovery_plan(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    struct given given = {0};
    for (uint32_t s = 0; s < it->streamlet_count; s++) {
        struct co_recover_streamlet *streamlet = &it->streamlets[s];
        streamlet->owner = streamlet->seen_owner;
        if (!streamlet->takes) continue;
        int owner = co_recovery_answers(coordinator, streamlet);
        if (owner < 0) owner = owner_choose(coordinator, streamlet, &given);
        if (owner >= 0) {
            streamlet->owner = co_tables(coordinator)->nodes[owner].info.incarnation;
            given.streamlets[owner]++;
            given.logs[owner] += streamlet->logs;
            continue;
        }
        for (uint32_t q = 0; q < streamlet->logs; q++)
            if (it->logs[streamlet->first + q].decision != LEAT_RECOVER_WAITS)
                co_recovery_wait(coordinator, &it->logs[streamlet->first + q],
                                 "no node is up that could own it");
    }
    struct plan plan = {.coordinator = coordinator, .count_only = true};
    plan_tasks(&plan);
    if (plan.tasks == 0) return LEAT_OK;
    it->tasks = leat_mem_calloc(LEAT_MEM_COORDINATOR, plan.tasks, sizeof *it->tasks);
    if (!it->tasks) return LEAT_E_NO_MEMORY;
    uint32_t first = 0;
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++) {
        it->pulls[i].next = first;
        first += plan.node_tasks[i];
        it->pulls[i].end = first;
        plan.node_tasks[i] = it->pulls[i].next;
    }
    it->task_count = it->tasks_open = plan.tasks;
    plan.count_only = false;
    plan.tasks = 0;
    plan_tasks(&plan);
    LEAT_ASSERT(plan.tasks == it->task_count);
    return LEAT_OK;
}

/* ---- the entry ---- */

/* Notes what is left of logs that wait, once all nodes have answered: the entry reports this, and the coordinators
 * keep the report for the operator who accepts the loss of the rest. */
static void waits_tell(const struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    bool all = co_recovery_all_heard(coordinator, CO_ALL_HEARD_US);
    for (uint32_t i = 0; i < it->log_count; i++) {
        struct co_recover_log *log = &it->logs[i];
        log->tells =
            all && log->undecided && log->seen.opened && log->decision == LEAT_RECOVER_WAITS;
        if (!log->tells) continue;
        if (!co_recovery_best(it, log, &log->tail))
            log->tail = (struct leat_tail_record){.segment = UINT64_MAX};
    }
}

static bool streamlet_wanted(const struct leat_coordinator *coordinator,
                             const struct co_recover_streamlet *streamlet)
{
    const struct co_recovery *it = co_recovery_of(coordinator);
    bool waits = true;
    for (uint32_t q = 0; q < streamlet->logs; q++) {
        const struct co_recover_log *log = &it->logs[streamlet->first + q];
        if (log->decision == LEAT_RECOVER_TAIL) return true;
        if (log->decision == LEAT_RECOVER_STANDS && streamlet->takes) return true;
        bool known = log->seen.heard == co_tables(coordinator)->next_incarnation;
        if (log->tells && !known && !streamlet->takes) return true;
        waits = waits && log->decision == LEAT_RECOVER_WAITS;
    }
    return waits && streamlet->takes && co_recovery_answers(coordinator, streamlet) >= 0;
}

static void streamlet_write(struct leat_msg_writer *writer,
                            const struct leat_coordinator *coordinator,
                            const struct co_recover_streamlet *streamlet)
{
    const struct co_recovery *it = co_recovery_of(coordinator);
    struct leat_assign_row row = {.log = {streamlet->ref.stream, streamlet->ref.streamlet, 0},
                                  .seen_owner = streamlet->seen_owner,
                                  .owner = streamlet->owner,
                                  .seen_epoch = streamlet->seen_epoch.v,
                                  .rows = streamlet->logs};
    leat_assign_streamlet_write(writer, &row);
    for (uint32_t q = 0; q < streamlet->logs; q++) {
        const struct co_recover_log *log = &it->logs[streamlet->first + q];
        row.log.log = q;
        row.seen_log_epoch = log->seen_epoch.v;
        row.seen_stamp = log->seen.opened ? log->seen.stamp_epoch.v : 0;
        row.seen_version = log->seen.opened ? log->seen.stamp_version : 0;
        row.decision = (uint32_t)log->decision;
        row.tail = log->tail;
        row.heard = log->tells ? co_tables(coordinator)->next_incarnation : 0;
        leat_assign_log_write(writer, &row);
    }
}

size_t co_recovery_command(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    size_t bytes = LEAT_ASSIGN_HEAD_BYTES_MAX;
    uint32_t count = 0, end = it->next_streamlet;
    waits_tell(coordinator);
    for (; end < it->streamlet_count; end++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[end];
        if (!streamlet_wanted(coordinator, streamlet)) continue;
        size_t more =
            LEAT_ASSIGN_HEAD_BYTES_MAX + (size_t)streamlet->logs * LEAT_ASSIGN_LOG_BYTES_MAX;
        if (count > 0 && bytes + more > CO_RECOVER_COMMAND_BYTES) break;
        bytes += more;
        count++;
    }
    if (count == 0) return 0;
    leat_mem_free(it->command);
    it->command = leat_mem_calloc(LEAT_MEM_COORDINATOR, bytes, 1);
    if (!it->command) return 0; /* the rest is left to the next attempt */
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, it->command, bytes);
    leat_assign_entry_write(&writer, &(struct leat_assign_entry){.reason = LEAT_ASSIGN_RECOVERY,
                                                                 .attempt = it->attempt,
                                                                 .streamlets = count});
    for (; it->next_streamlet < end; it->next_streamlet++)
        if (streamlet_wanted(coordinator, &it->streamlets[it->next_streamlet]))
            streamlet_write(&writer, coordinator, &it->streamlets[it->next_streamlet]);
    LEAT_ASSERT(!writer.overflow);
    return writer.used;
}
