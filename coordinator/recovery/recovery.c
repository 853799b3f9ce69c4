/* SPDX-License-Identifier: Apache-2.0 */
/* The leader's side of recovery: streamlets without a living owner get a new owner.
 *
 * An attempt: look for such streamlets in the tables; ask every living node for its replicas (COLLECT); decide; have
 * copies made where too few nodes hold the decided end (PULL); commit. Nothing of an attempt is stored: a new leader
 * looks at its tables and begins anew, and an entry that is applied twice counts once (metadata/apply_assign.c).
 * docs/recovery.md gives the reasons for the order of the steps. */
#include "coordinator/recovery/attempt.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"

/* ---- an attempt's memory ---- */

static void attempt_drop(struct co_recovery *it)
{
    leat_mem_free(it->streamlets);
    leat_mem_free(it->logs);
    leat_mem_free(it->crashed);
    leat_mem_free(it->rows);
    leat_mem_free(it->tasks);
    it->streamlets = NULL;
    it->logs = NULL;
    it->crashed = NULL;
    it->rows = NULL;
    it->tasks = NULL;
    it->streamlet_count = it->log_count = it->task_count = it->tasks_open = 0;
    it->crashed_count = it->row_count = it->row_capacity = 0;
    it->asked = it->answered = it->good = it->next_streamlet = it->recovered = 0;
    it->waits = 0;
    memset(it->nodes, 0, sizeof it->nodes);
    memset(it->pulls, 0, sizeof it->pulls);
    it->attempt = 0; /* what still comes means nothing */
    co_phase_enter(it, LEAT_RECOVERY_NONE);
}

leat_err co_recovery_init(struct leat_coordinator *coordinator)
{
    if (!co_clustered(coordinator)) return LEAT_OK;
    struct co_recovery *it = leat_mem_calloc(LEAT_MEM_COORDINATOR, 1, sizeof *it);
    if (!it) return LEAT_E_NO_MEMORY;
    leat_list_init(&it->collects);
    leat_list_init(&it->pullings);
    co_recovery_set(coordinator, it);
    return LEAT_OK;
}

void co_recovery_fini(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    if (!it) return;
    attempt_drop(it);
    leat_mem_free(it->command);
    leat_mem_free(it);
    co_recovery_set(coordinator, NULL);
}

/* ---- looking ---- */

/* No node serves the streamlet. A node that came up anew first gets time to adopt its own streamlets. */
static bool streamlet_lost(struct leat_coordinator *coordinator,
                           const struct leat_machine_stream *stream, uint32_t i, bool *out_later)
{
    struct leat_machine *machine = co_tables(coordinator);
    const struct co_recovery *it = co_recovery_of(coordinator);
    uint16_t index = stream->owners[i];
    if (index == LEAT_OWNER_NONE) return true;
    const struct leat_machine_node *node = &machine->nodes[index];
    if (stream->desc->streamlets[i].owner == node->info.incarnation) return node->info.crashed;
    if (node->info.crashed || node->info.state != LEAT_NODE_UP ||
        node->adopted == node->info.incarnation)
        return true;
    if (it->look_us >= it->seen[index].since_us + CO_ADOPT_GRACE_US) return true;
    *out_later = true;
    return false;
}

static bool logs_wait(const struct leat_machine_stream *stream, uint32_t i, bool *out_opened)
{
    uint32_t logs = stream->desc->settings.logs;
    bool waits = false;
    for (uint32_t q = 0; q < logs; q++) {
        const struct leat_machine_log *log = &stream->logs[i * logs + q];
        if (log->record.opened) *out_opened = true;
        waits = waits || leat_machine_log_waits(log);
    }
    return waits;
}

struct look {
    struct leat_coordinator *coordinator;
    bool count_only;
    bool later, full;
    struct co_cursor at;
    uint32_t streamlets, logs;
};

static void take(struct look *look, struct leat_machine_stream *stream, uint32_t i, bool takes)
{
    struct co_recovery *it = co_recovery_of(look->coordinator);
    uint32_t logs = stream->desc->settings.logs;
    if (look->logs + logs > CO_COLLECT_LOGS_MAX) {
        look->full = true;
        return;
    }
    if (!look->count_only) {
        it->streamlets[look->streamlets] =
            (struct co_recover_streamlet){.ref = {stream->id, i},
                                          .seen_owner = stream->desc->streamlets[i].owner,
                                          .seen_epoch = stream->desc->streamlets[i].epoch,
                                          .first = look->logs,
                                          .logs = logs,
                                          .takes = takes};
        for (uint32_t q = 0; q < logs; q++)
            it->logs[look->logs + q] =
                (struct co_recover_log){.ref = {stream->id, i, q},
                                        .seen = stream->logs[i * logs + q].record,
                                        .seen_epoch = stream->logs[i * logs + q].epoch};
    }
    look->streamlets++;
    look->logs += logs;
}

static void look_at(struct look *look, struct leat_machine_stream *stream, uint32_t i)
{
    bool opened = false, later = false;
    bool lost = streamlet_lost(look->coordinator, stream, i, &later);
    bool waits = logs_wait(stream, i, &opened);
    look->later = look->later || later;
    if (opened != (look->at.pass == 0))
        return; /* in pass 0 streamlets in use: with an opened log */
    if (lost)
        take(look, stream, i, true);
    else if (!later && waits)
        take(look, stream, i, false);
}

/* From the cursor on, as many as an attempt holds. */
static struct look look_for(struct leat_coordinator *coordinator, bool count_only)
{
    struct leat_machine *machine = co_tables(coordinator);
    struct look look = {.coordinator = coordinator,
                        .count_only = count_only,
                        .at = co_recovery_of(coordinator)->cursor};
    for (; look.at.pass < 2; look.at.pass++, look.at.stream = look.at.streamlet = 0) {
        for (uint32_t n = 0; n < machine->stream_count; n++) {
            struct leat_machine_stream *stream = &machine->streams[n];
            if (stream->id < look.at.stream) continue;
            if (stream->id > look.at.stream) look.at.streamlet = 0;
            look.at.stream = stream->id;
            for (; look.at.streamlet < stream->desc->streamlet_count; look.at.streamlet++) {
                look_at(&look, stream, look.at.streamlet);
                if (look.full) return look;
            }
        }
    }
    look.at = (struct co_cursor){0};
    return look;
}

/* ---- collecting ---- */

static bool node_answers(struct leat_coordinator *coordinator, uint32_t i)
{
    const struct leat_node_info *info = &co_tables(coordinator)->nodes[i].info;
    if (info->state != LEAT_NODE_UP || info->crashed || !info->node_address[0]) return false;
    return info->incarnation == co_incarnation(coordinator) ||
           co_peer_of_incarnation(coordinator, info->incarnation) != NULL;
}

/* The incarnations that are fenced: of each node the latest that owned a streamlet of this attempt. */
static leat_err crashed_fill(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    const struct leat_machine *machine = co_tables(coordinator);
    uint64_t gone[LEAT_NODES_MAX] = {0};
    for (uint32_t i = 0; i < it->streamlet_count; i++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[i];
        struct leat_machine_stream *stream =
            leat_machine_stream_find(co_tables(coordinator), streamlet->ref.stream);
        uint16_t index = stream->owners[streamlet->ref.streamlet];
        if (!streamlet->takes || index == LEAT_OWNER_NONE) continue;
        if (streamlet->seen_owner > gone[index]) gone[index] = streamlet->seen_owner;
    }
    it->crashed =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, machine->node_count + 1, sizeof *it->crashed);
    if (!it->crashed) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        if (gone[i] == 0) continue;
        struct leat_crashed_node *crashed = &it->crashed[it->crashed_count++];
        memcpy(crashed->name, machine->nodes[i].info.name, sizeof crashed->name);
        crashed->incarnation = gone[i];
    }
    return LEAT_OK;
}

static void again_after(struct leat_coordinator *coordinator, uint64_t us)
{
    uint64_t at = co_now(coordinator) + us;
    if (at < co_recovery_of(coordinator)->again_us) co_recovery_of(coordinator)->again_us = at;
}

/* The next round: after a pause that doubles as long as nothing has changed. */
static void again_paced(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    uint64_t changes = co_tables(coordinator)->node_changes;
    bool same = it->paced.us != 0 && it->paced.node_changes == changes &&
                it->paced.waits == it->round_waits && !it->paced.missed;
    uint64_t us = same ? 2 * it->paced.us : CO_RECOVER_AGAIN_US;
    it->paced.us = us < CO_RECOVER_AGAIN_US_MAX ? us : CO_RECOVER_AGAIN_US_MAX;
    it->paced.node_changes = changes;
    it->paced.waits = it->round_waits;
    it->paced.missed = false;
    again_after(coordinator, it->paced.us);
}

/* For the node log: the same logs wait for the same reason, and no node has gone or come since. Otherwise a node that
 * is down for a night would fill the node log. */
static enum leat_node_log_level told_as(const struct leat_coordinator *coordinator,
                                        enum leat_node_log_level level)
{
    const struct co_recovery *it = co_recovery_of(coordinator);
    return it->paced.us > CO_RECOVER_AGAIN_US &&
                   it->paced.node_changes == co_tables(coordinator)->node_changes
               ? LEAT_NODE_LOG_DEBUG
               : level;
}

static leat_err attempt_make(struct leat_coordinator *coordinator, const struct look *look)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    it->streamlets =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, look->streamlets, sizeof *it->streamlets);
    it->logs = leat_mem_calloc(LEAT_MEM_COORDINATOR, look->logs, sizeof *it->logs);
    if (!it->streamlets || !it->logs) return LEAT_E_NO_MEMORY;
    struct look again = look_for(coordinator, false);
    LEAT_ASSERT(again.streamlets == look->streamlets && again.logs == look->logs);
    it->streamlet_count = again.streamlets;
    it->log_count = again.logs;
    it->cursor = look->at;
    return crashed_fill(coordinator);
}

static void attempt_begin(struct leat_coordinator *coordinator, const struct look *look)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    if (attempt_make(coordinator, look) != LEAT_OK) {
        attempt_drop(it);
        again_after(coordinator, CO_RECOVER_AGAIN_US);
        return;
    }
    it->attempt = co_random(coordinator) | 1;
    it->index = co_applied(coordinator);
    it->begun_us = it->phase_us = co_now(coordinator);
    co_phase_enter(it, LEAT_RECOVERY_COLLECT);
    it->collected_us = it->prepared_us = 0;
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++)
        if (node_answers(coordinator, i)) co_node_enter(it, i, CO_NODE_ASKED);
    leat_node_log(told_as(coordinator, LEAT_NODE_LOG_INFO),
                  "recovery %08" PRIx32 ": %" PRIu32 " streamlets with %" PRIu32
                  " logs, of %zu lost incarnations (%s%s): asking %" PRIu32 " nodes",
                  (uint32_t)it->attempt, it->streamlet_count, it->log_count, it->crashed_count,
                  it->crashed_count ? it->crashed[0].name : "none",
                  it->crashed_count > 1 ? ", ..." : "", it->asked);
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++)
        if (it->nodes[i] == CO_NODE_ASKED) co_recovery_ask(coordinator, i);
}

static void look_and_begin(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    uint64_t now_us = co_now(coordinator);
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++) {
        uint64_t incarnation = co_tables(coordinator)->nodes[i].info.incarnation;
        if (it->seen[i].incarnation == incarnation) continue;
        it->seen[i].incarnation = incarnation;
        it->seen[i].since_us = now_us;
    }
    if (it->looked && it->node_changes_seen == co_tables(coordinator)->node_changes &&
        now_us < it->again_us)
        return;
    it->looked = true;
    it->node_changes_seen = co_tables(coordinator)->node_changes;
    it->again_us = UINT64_MAX;
    it->look_us = now_us;
    if (it->cursor.stream == 0 && it->cursor.pass == 0) it->round_waits = 0;
    struct look look = look_for(coordinator, true);
    if (look.later) again_after(coordinator, CO_TICK_US);
    if (look.streamlets > 0) {
        if (it->lost_us == 0) it->lost_us = now_us;
        attempt_begin(coordinator, &look);
        return;
    }
    it->cursor = (struct co_cursor){0};
    if (it->round_waits > 0) {
        again_paced(coordinator);
    } else if (!look.later) {
        it->lost_us = 0;
        it->waiting_count = 0;
    }
}

static int node_of(const struct leat_coordinator *coordinator, uint64_t incarnation)
{
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++)
        if (co_tables(coordinator)->nodes[i].info.incarnation == incarnation) return (int)i;
    return -1;
}

static leat_err rows_add(struct co_recovery *it, uint32_t node, const struct leat_replica_row *rows,
                         size_t count)
{
    if (it->row_count + count > it->row_capacity) {
        size_t capacity = it->row_capacity ? it->row_capacity : 256;
        while (capacity < it->row_count + count)
            capacity *= 2;
        void *grown = leat_mem_realloc(LEAT_MEM_COORDINATOR, it->rows, capacity, sizeof *it->rows);
        if (!grown) return LEAT_E_NO_MEMORY;
        it->rows = grown;
        it->row_capacity = capacity;
    }
    for (size_t i = 0; i < count; i++)
        it->rows[it->row_count++] = (struct co_row){.row = rows[i], .node = node};
    it->sorted = false;
    return LEAT_OK;
}

void co_recovery_rows(struct leat_coordinator *coordinator, uint64_t incarnation,
                      struct leat_collect *collect)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    if (!it || it->attempt != collect->attempt || it->phase != LEAT_RECOVERY_COLLECT) return;
    int node = node_of(coordinator, incarnation);
    if (node < 0 || it->nodes[node] != CO_NODE_ASKED) return;
    if (collect->rc == LEAT_OK)
        collect->rc = rows_add(it, (uint32_t)node, collect->rows, collect->row_count);
    co_node_enter(it, (uint32_t)node, collect->rc == LEAT_OK ? CO_NODE_HEARD : CO_NODE_MUTE);
    if (collect->rc != LEAT_OK)
        leat_node_log_warn("recovery %08" PRIx32 ": %s has no answer: %s", (uint32_t)it->attempt,
                           co_tables(coordinator)->nodes[node].info.name,
                           leat_err_text(collect->rc));
}

/* ---- from step to step ---- */

void co_recovery_wait(struct leat_coordinator *coordinator, struct co_recover_log *log,
                      const char *why)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    log->decision = LEAT_RECOVER_WAITS;
    it->waits++;
    if (it->waiting_count < LEAT_RECOVERY_WAITING_MAX) {
        struct leat_recovery_waiting *row = &it->waiting[it->waiting_count];
        row->log = log->ref;
        snprintf(row->why, sizeof row->why, "%s", why);
    }
    it->waiting_count++;
}

static struct leat_recovery_status status_of(struct leat_coordinator *coordinator)
{
    const struct co_recovery *it = co_recovery_of(coordinator);
    struct leat_recovery_status out = {.attempt = it->attempt,
                                       .phase = it->phase,
                                       .streamlets = it->streamlet_count,
                                       .logs = it->log_count,
                                       .nodes_asked = it->asked,
                                       .nodes_answered = it->good,
                                       .pulls = it->task_count,
                                       .pulls_open = it->tasks_open,
                                       .collect_us = it->collected_us,
                                       .prepare_us = it->prepared_us,
                                       .age_us = it->now_us - it->begun_us,
                                       .recovered = it->recovered};
    if (it->phase > LEAT_RECOVERY_COLLECT) out.decided = it->log_count - it->waits;
    return out;
}

static void attempt_end(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    struct leat_recovery_status last = status_of(coordinator);
    last.phase = LEAT_RECOVERY_NONE;
    last.commit_us = co_now(coordinator) - it->phase_us;
    if (it->lost_us) last.crash_to_commit_us = co_now(coordinator) - it->lost_us;
    it->attempts++;
    uint32_t waits = it->waits;
    bool something = it->recovered > 0;
    if (something) { /* otherwise it was no recovery */
        it->last = last;
        it->fruitful++;
    }
    leat_node_log(something ? LEAT_NODE_LOG_INFO : told_as(coordinator, LEAT_NODE_LOG_INFO),
                  "recovery %08" PRIx32 ": %" PRIu32 " of %" PRIu32
                  " streamlets have an owner again, committed in %" PRIu64 " us; %" PRIu64
                  " us in all, %" PRIu64 " us since the crash; %" PRIu32 " logs wait",
                  (uint32_t)it->attempt, it->recovered, it->streamlet_count, last.commit_us,
                  last.age_us, last.crash_to_commit_us, waits);
    if (waits > 0 && it->waiting_count > 0)
        leat_node_log(told_as(coordinator, LEAT_NODE_LOG_WARN),
                      "recovery %08" PRIx32 ": stream %" PRIu32 " streamlet %" PRIu32
                      " log %" PRIu32 " waits: %s",
                      (uint32_t)it->attempt, it->waiting[0].log.stream,
                      it->waiting[0].log.streamlet, it->waiting[0].log.log, it->waiting[0].why);
    it->paced.missed |= it->good < it->asked || something;
    it->round_waits += waits;
    if (waits == 0) it->lost_us = 0;
    bool all = it->cursor.stream == 0 && it->cursor.pass == 0;
    attempt_drop(it);
    /* Streamlets that did not fit into this attempt come at once; logs that wait come after a pause. */
    if (all && it->round_waits)
        again_paced(coordinator);
    else
        again_after(coordinator, CO_RECOVER_NEXT_US);
}

static void command_done(struct leat_coordinate *request)
{
    struct leat_coordinator *coordinator = request->owner;
    struct co_recovery *it = co_recovery_of(coordinator);
    it->committing = false;
    if (request->attempt != it->attempt || it->phase != LEAT_RECOVERY_COMMIT) return;
    if (request->rc == LEAT_OK) it->recovered += request->id_count;
}

/* One entry after the other; each takes effect by itself. */
static void commit_advance(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    if (it->committing) return;
    size_t bytes = co_recovery_command(coordinator);
    if (bytes == 0) {
        attempt_end(coordinator);
        return;
    }
    it->committing = true;
    it->request = (struct leat_coordinate){.kind = LEAT_COORDINATE_RECOVER,
                                           .from = LEAT_ACTOR_COORDINATOR,
                                           .attempt = it->attempt,
                                           .command = it->command,
                                           .command_bytes = bytes,
                                           .on_done = command_done,
                                           .owner = coordinator};
    co_request_queue(coordinator, &it->request);
}

static void commit_begin(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    it->prepared_us = co_now(coordinator) - it->phase_us;
    co_phase_enter(it, LEAT_RECOVERY_COMMIT);
    it->phase_us = co_now(coordinator);
    it->next_streamlet = 0;
    if (it->task_count)
        leat_node_log_info("recovery %08" PRIx32 ": %" PRIu32 " copies were asked for, in %" PRIu64
                           " us",
                           (uint32_t)it->attempt, it->task_count, it->prepared_us);
    commit_advance(coordinator);
}

static void prepare_begin(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    if (it->round_waits == 0) it->waiting_count = 0;
    uint32_t waits = co_recovery_decide(coordinator, true);
    it->collected_us = co_now(coordinator) - it->phase_us;
    leat_node_log(told_as(coordinator, LEAT_NODE_LOG_INFO),
                  "recovery %08" PRIx32 ": %" PRIu32 " of %" PRIu32 " nodes answered in %" PRIu64
                  " us: %zu replicas, %" PRIu32 " logs decided, %" PRIu32 " wait",
                  (uint32_t)it->attempt, it->good, it->asked, it->collected_us, it->row_count,
                  it->log_count - waits, waits);
    co_phase_enter(it, LEAT_RECOVERY_PREPARE);
    it->phase_us = co_now(coordinator);
    if (co_recovery_plan(coordinator) != LEAT_OK) {
        attempt_drop(it);
        again_after(coordinator, CO_RECOVER_AGAIN_US);
        return;
    }
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++)
        co_recovery_pull(coordinator, i);
}

/* SUBTLE: an attempt does not wait for a node that is declared crashed meanwhile.
 *  1. X stands still, and is declared crashed. B stands still when it gets COLLECT or PULL.
 *  2. B is declared crashed as well, after 160 ms. Its connection is open, and the call has no answer.
 *  3. X's streamlets have no owner until the call is given up: after 2 s, or 10 s. On a machine where nodes stand
 *     still in turn these times add up. */
static bool node_is_gone(const struct leat_coordinator *coordinator, uint32_t i)
{
    const struct leat_node_info *info = &co_tables(coordinator)->nodes[i].info;
    return info->crashed || info->state != LEAT_NODE_UP ||
           info->incarnation != co_recovery_of(coordinator)->seen[i].incarnation;
}

static void collect_advance(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count; i++)
        if (it->nodes[i] == CO_NODE_ASKED && node_is_gone(coordinator, i))
            co_node_enter(it, i, CO_NODE_MUTE);
    uint64_t waited_us = co_now(coordinator) - it->phase_us;
    if (it->answered == it->asked || waited_us >= CO_COLLECT_WAIT_US_MAX) {
        prepare_begin(coordinator);
        return;
    }
    if (waited_us >= CO_COLLECT_WAIT_US && it->good > 0 && !it->sorted &&
        co_recovery_decide(coordinator, false) == 0)
        prepare_begin(coordinator);
}

void co_recovery_pulled(struct leat_coordinator *coordinator, uint64_t incarnation,
                        uint64_t attempt, const leat_err *codes, uint32_t count)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    if (!it || it->attempt != attempt || it->phase != LEAT_RECOVERY_PREPARE) return;
    int node = node_of(coordinator, incarnation);
    if (node < 0 || it->pulls[node].in_flight == 0) return;
    uint32_t first = it->pulls[node].next, asked = it->pulls[node].in_flight;
    for (uint32_t i = 0; i < asked; i++) {
        const struct co_task *task = &it->tasks[first + i];
        struct co_recover_log *log = &it->logs[task->log];
        leat_err rc = i < count ? codes[i] : LEAT_E_INVALID;
        if (rc == LEAT_OK || log->decision == LEAT_RECOVER_WAITS) continue;
        char why[200];
        snprintf(why, sizeof why, "node %.64s could not copy its last segment%s, %" PRIu64 ": %s",
                 co_tables(coordinator)->nodes[node].info.name, task->before ? " but one" : "",
                 log->tail.segment - (task->before ? 1 : 0), leat_err_text(rc));
        co_recovery_wait(coordinator, log, why);
    }
    it->pulls[node].next += asked;
    it->pulls[node].in_flight = 0;
    it->tasks_open -= asked;
    co_recovery_pull(coordinator, (uint32_t)node);
}

/* Copies that this node has not made yet are given up: their logs wait for the next attempt. */
static void tasks_leave(struct leat_coordinator *coordinator, uint32_t node, const char *why)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    for (uint32_t t = it->pulls[node].next; t < it->pulls[node].end; t++)
        if (it->logs[it->tasks[t].log].decision != LEAT_RECOVER_WAITS)
            co_recovery_wait(coordinator, &it->logs[it->tasks[t].log], why);
    it->tasks_open -= it->pulls[node].end - it->pulls[node].next;
    it->pulls[node].next = it->pulls[node].end;
    it->pulls[node].in_flight = 0; /* later answers are ignored */
}

static void prepare_advance(struct leat_coordinator *coordinator)
{
    struct co_recovery *it = co_recovery_of(coordinator);
    bool late = co_now(coordinator) >= it->phase_us + CO_PULL_US_MAX;
    for (uint32_t i = 0; i < co_tables(coordinator)->node_count && it->tasks_open > 0; i++) {
        if (late)
            tasks_leave(coordinator, i, "a copy of its last segment took too long");
        else if (node_is_gone(coordinator, i))
            tasks_leave(coordinator, i, "a node died that was to copy its last segment");
    }
    if (it->tasks_open == 0) commit_begin(coordinator);
}

void co_recovery_advance(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    struct co_recovery *it = co_recovery_of(coordinator);
    if (!it) return;
    it->now_us = co_now(coordinator);
    /* Before a leader has applied an entry of its own term, its tables may lack committed entries. */
    if (!co_leads(coordinator) || !co_ready(coordinator)) {
        if (it->phase != LEAT_RECOVERY_NONE) attempt_drop(it);
        it->looked = false;
        it->lost_us = 0;
        return;
    }
    switch (it->phase) {
    case LEAT_RECOVERY_NONE:
        if (!it->committing) look_and_begin(coordinator);
        break;
    case LEAT_RECOVERY_COLLECT:
        collect_advance(coordinator);
        break;
    case LEAT_RECOVERY_PREPARE:
        prepare_advance(coordinator);
        break;
    case LEAT_RECOVERY_COMMIT:
        commit_advance(coordinator);
        break;
    }
}

struct leat_recovery_status co_recovery_status(struct leat_coordinator *coordinator)
{
    LEAT_ASSERT_OWNER(coordinator);
    return status_of(coordinator);
}
