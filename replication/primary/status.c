/* SPDX-License-Identifier: Apache-2.0 */
/* What people and benchmarks are told. */
#include <string.h>

#include "replication/primary/state.h"

/* Connected, and never attached yet: this is normal in a cluster that has just formed, or for a new node, and passes.
 * The time depends on the machine: the other node allocates the memory for the copies before it answers. */
static bool is_coming(const struct rep_peer *peer, uint64_t now_us)
{
    bool refused = peer->refused != LEAT_OK && peer->refused != LEAT_E_STARTING &&
                   peer->refused != LEAT_E_AGAIN && peer->refused != LEAT_E_TIMEOUT;
    return peer->state != REP_PEER_DOWN && peer->session == 0 && !refused &&
           now_us < peer->met_us + REP_COMING_US;
}

static unsigned nodes_coming(const struct leat_primary *primary)
{
    uint64_t now_us = rep_now(primary);
    unsigned count = 0;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        count += peer && is_coming(peer, now_us);
    }
    return count;
}

/* As appends are refused: a hibernated log makes a lost copy anew before its next ack. A log that waits for nodes to be
 * attached for the first time is starting. */
static bool is_below_min(const struct leat_primary_log *log)
{
    unsigned up = rep_nodes_up(log->primary), least = log->options.min_copies;
    return up < least && up + nodes_coming(log->primary) < least;
}

static void count_sets(const struct leat_primary_log *log, const struct leat_list *head,
                       struct leat_primary_status *out, bool *out_lacks)
{
    for (const struct leat_list *it = head->next; it != head; it = it->next) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        if (set->misplaced) out->segments_misplaced++;
        bool own_damaged = set->seg && leat_segment_is_damaged(set->seg);
        if (set->state == REP_SET_RESERVING || set->dropping) continue;
        /* A copy that is still being made does not count: if its source were lost now, the rest would be lost, too. */
        if (rep_set_whole_count(set) > rep_wanted(log) && !own_damaged) continue;
        out->segments_under_replicated++;
        *out_lacks = true;
    }
}

void leat_primary_status(const struct leat_primary *primary, struct leat_primary_status *out)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    *out = (struct leat_primary_status){.logs = primary->log_count, .accounts = primary->accounts};
    for (const struct leat_list *it = primary->logs.next; it != &primary->logs; it = it->next) {
        const struct leat_primary_log *log =
            LEAT_CONTAINER(it, const struct leat_primary_log, link);
        bool lacks = false;
        count_sets(log, &log->active, out, &lacks);
        count_sets(log, &log->settled, out, &lacks);
        if (lacks) out->logs_under_replicated++;
        if (is_below_min(log)) out->logs_below_min++;
        if (rep_is_held(log)) out->logs_suspended++;
    }
}

const struct leat_rep_accounts *leat_primary_accounts(const struct leat_primary *primary)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    return &primary->accounts;
}

uint32_t leat_primary_transports(const struct leat_primary *primary)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    uint32_t kinds = 0;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        if (peer && peer->state == REP_PEER_ATTACHED && peer->target)
            kinds |= 1u << peer->target->kind;
    }
    return kinds;
}

size_t leat_primary_peers(const struct leat_primary *primary, struct leat_rep_peer_status *out,
                          size_t count_max)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    size_t count = 0;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        if (!peer) continue;
        if (count < count_max)
            out[count] = (struct leat_rep_peer_status){
                .node = i,
                .up = peer->state != REP_PEER_DOWN,
                .attached = peer->state == REP_PEER_ATTACHED,
                .says_gone =
                    peer->state != REP_PEER_ATTACHED && peer->refused == LEAT_E_STALE_EPOCH,
                .transport =
                    peer->state == REP_PEER_ATTACHED ? leat_rmem_kind_name(peer->target->kind) : "",
                .load_bytes = peer->load_bytes,
                .replicas = peer->open_count,
            };
        count++;
    }
    return count;
}

static void each_in(const struct leat_primary_log *log, const struct leat_list *head,
                    void (*each)(void *arg, const struct leat_rep_segment_status *status),
                    void *arg)
{
    for (const struct leat_list *it = head->next; it != head; it = it->next) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        struct leat_rep_segment_status status = {.segment = set->id,
                                                 .closed = rep_set_is_closed(set),
                                                 .misplaced = set->misplaced,
                                                 .wanted = rep_wanted(log)};
        for (unsigned i = 0; i < set->copy_count; i++) {
            const struct rep_copy *copy = set->copies[i];
            if (copy->state == REP_COPY_OPENING) continue;
            status.copies[status.count++] =
                (struct leat_rep_copy_status){.node = copy->peer->node.number,
                                              .closed = copy->state == REP_COPY_CLOSED,
                                              .hibernated = copy->state == REP_COPY_HIBERNATED,
                                              .complete = !copy->incomplete,
                                              .bytes = copy->done};
        }
        each(arg, &status);
    }
}

void leat_primary_log_each(const struct leat_primary_log *rep,
                           void (*each)(void *arg, const struct leat_rep_segment_status *status),
                           void *arg)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    each_in(rep, &rep->settled, each, arg);
    each_in(rep, &rep->active, each, arg);
}

static const struct rep_set *newest_begun(const struct leat_list *head)
{
    for (const struct leat_list *it = head->prev; it != head; it = it->prev) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        if (rep_set_is_started(set) && !set->dropping) return set;
    }
    return NULL;
}

static bool any_is_writing(const struct leat_list *sets)
{
    LEAT_LIST_EACH(sets, at)
    if (LEAT_CONTAINER(at, const struct rep_set, link)->writes) return true;
    return false;
}

bool leat_primary_log_is_writing(const struct leat_primary_log *rep)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    return any_is_writing(&rep->active) || any_is_writing(&rep->settled);
}

bool leat_primary_log_places(const struct leat_primary_log *rep, struct leat_rep_places *out)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    static_assert(LEAT_REP_NODES_MAX <= UINT8_MAX + 1, "a node's number is kept in a byte");
    const struct rep_set *set = newest_begun(&rep->active);
    *out = (struct leat_rep_places){0};
    if (set == NULL) set = newest_begun(&rep->settled);
    for (unsigned i = 0; set != NULL && i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (copy->state == REP_COPY_OPENING) continue;
        uint8_t node = (uint8_t)copy->peer->node.number;
        uint8_t at = out->count++;
        if (!copy->incomplete) {
            out->nodes[at] = out->nodes[out->whole];
            at = out->whole++;
        }
        out->nodes[at] = node;
    }
    return set != NULL;
}

/* A set that is being opened has no copies yet, and a set that is dropped needs none. */
static const struct rep_set *newest_told(const struct leat_list *head)
{
    for (const struct leat_list *it = head->prev; it != head; it = it->prev) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        if (set->state != REP_SET_RESERVING && !set->dropping) return set;
    }
    return NULL;
}

void leat_primary_log_status(const struct leat_primary_log *rep,
                             struct leat_primary_log_status *out)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    const struct rep_set *last = newest_told(&rep->active);
    struct leat_primary_status sets = {0};
    bool lacks = false;
    count_sets(rep, &rep->active, &sets, &lacks);
    count_sets(rep, &rep->settled, &sets, &lacks);
    *out = (struct leat_primary_log_status){.copies = rep->options.copies,
                                            .segments_lacking = sets.segments_under_replicated,
                                            .min_copies = rep->options.min_copies,
                                            .version = rep->version,
                                            .suspended = rep_is_held(rep),
                                            .below_min = is_below_min(rep)};
    if (last == NULL) last = newest_told(&rep->settled);
    if (last != NULL) out->copies_now = rep_set_whole_count(last);
}
