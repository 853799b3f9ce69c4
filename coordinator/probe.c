/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/probe.h"

#include <string.h>

#include "base/assert.h"
#include "coordinator/membership/rights.h"
#include "coordinator/membership/state.h"
#include "coordinator/recovery/attempt.h"

struct leat_coordinator_seen leat_coordinator_see(const struct leat_coordinator *coordinator)
{
    const struct co_recovery *it = coordinator->recovery;
    bool leads = co_leads(coordinator);
    return (struct leat_coordinator_seen){
        .leads = leads,
        .recovers = leads && it,
        .ready = co_ready(coordinator),
        .incarnation = coordinator->incarnation,
        .applied = coordinator->applied,
        .ping = coordinator->detect.number,
        .failed = coordinator->failed,
        .failed_why = coordinator->failed_why,
        .attempt = it ? it->attempt : 0,
        .phase = it ? it->phase : LEAT_RECOVERY_NONE,
        .commits = it && it->committing && it->phase == LEAT_RECOVERY_COMMIT,
    };
}

struct leat_machine *leat_coordinator_tables(const struct leat_coordinator *coordinator)
{
    return (struct leat_machine *)&coordinator->machine;
}

const struct leat_coordinate *leat_coordinator_pending(const struct leat_coordinator *coordinator,
                                                       const struct leat_coordinate *before)
{
    const struct leat_list *at = before ? before->link.next : coordinator->pending.next;
    if (at == &coordinator->pending) return NULL;
    return LEAT_CONTAINER(at, const struct leat_coordinate, link);
}

uint64_t leat_coordinator_answered(const struct leat_coordinator *coordinator, const char *voter,
                                   uint64_t incarnation)
{
    uint64_t number = 0;
    LEAT_LIST_EACH(&coordinator->peers, it)
    {
        const struct co_peer *peer = LEAT_CONTAINER(it, const struct co_peer, list);
        if (peer->state.known && strcmp(peer->state.node, voter) == 0 &&
            peer->state.incarnation == incarnation && co_peer_votes(coordinator, peer) &&
            peer->pong_number > number)
            number = peer->pong_number;
    }
    return number;
}

void leat_coordinator_full_set(struct leat_coordinator *coordinator, bool full)
{
    coordinator->drive.log.full = full;
}

/* ---- an attempt of recovery ---- */

static const struct co_recover_streamlet *streamlet_of(const struct co_recovery *it, uint32_t log)
{
    for (uint32_t s = 0; s < it->streamlet_count; s++)
        if (log >= it->streamlets[s].first &&
            log - it->streamlets[s].first < it->streamlets[s].logs)
            return &it->streamlets[s];
    return NULL;
}

bool leat_attempt_log(const struct leat_coordinator *coordinator, uint32_t log,
                      struct leat_attempt_log *out_log)
{
    const struct co_recovery *it = coordinator->recovery;
    if (!it || log >= it->log_count) return false;
    const struct co_recover_log *as = &it->logs[log];
    const struct co_recover_streamlet *streamlet = streamlet_of(it, log);
    *out_log = (struct leat_attempt_log){
        .ref = as->ref,
        .seen = as->seen,
        .decision = as->decision,
        .undecided = as->undecided,
        .tail = as->tail,
        .before = as->before,
        .takes = streamlet && streamlet->takes,
        .owner = streamlet ? streamlet->owner : 0,
    };
    return true;
}

bool leat_attempt_row(const struct leat_coordinator *coordinator, uint32_t log, uint32_t row,
                      struct leat_attempt_row *out_row)
{
    const struct co_recovery *it = coordinator->recovery;
    LEAT_ASSERT_CMP(log, <, it->log_count);
    const struct co_recover_log *of = &it->logs[log];
    if (row >= of->row_count) return false;
    const struct co_row *said = &it->rows[of->row_first + row];
    *out_row = (struct leat_attempt_row){&said->row, said->node, said->holds};
    return true;
}

bool leat_attempt_task(const struct leat_coordinator *coordinator, uint32_t task,
                       struct leat_attempt_task *out_task)
{
    const struct co_recovery *it = coordinator->recovery;
    if (task >= it->task_count) return false;
    const struct co_task *asked = &it->tasks[task];
    *out_task = (struct leat_attempt_task){asked->log, asked->node, asked->before};
    return true;
}

bool leat_attempt_answered(const struct leat_coordinator *coordinator, uint32_t node)
{
    LEAT_ASSERT_CMP(node, <, LEAT_NODES_MAX);
    return co_node_heard(coordinator->recovery, node);
}

bool leat_attempt_all_heard(const struct leat_coordinator *coordinator)
{
    return co_recovery_all_heard(coordinator, 0);
}

const struct leat_recovery_waiting *leat_attempt_waiting(const struct leat_coordinator *coordinator,
                                                         uint32_t *out_count)
{
    *out_count = coordinator->recovery->waiting_count;
    return coordinator->recovery->waiting;
}
