/* SPDX-License-Identifier: Apache-2.0 */
/* The primary of one core: its logs and nodes, and the order of comparisons. */
#include <stdio.h>
#include <string.h>

#include "base/bug.h"
#include "base/node_log.h"
#include "replication/primary/state.h"

/* ---- steps ---- */
/* The mail that marked logs have brought: table.c. */
static void kick_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_primary *primary = LEAT_CONTAINER(mail, struct leat_primary, kick);
    struct leat_list *link;
    (void)actor;
    primary->kicked = false;
    /* What becomes dirty by being stepped waits for the next mail. */
    struct leat_list now;
    leat_list_init(&now);
    while ((link = leat_list_pop_front(&primary->dirty)) != NULL)
        leat_list_push_back(&now, link);
    while ((link = leat_list_pop_front(&now)) != NULL)
        rep_log_step(LEAT_CONTAINER(link, struct leat_primary_log, dirty_link));
    for (unsigned i = 0; i < primary->peer_end; i++)
        if (primary->peers[i]) rep_peer_batches(primary->peers[i]);
}

static bool store_works(const struct leat_list *head)
{
    for (const struct leat_list *it = head->next; it != head; it = it->next) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        if (set->local_state == REP_LOCAL_ASKED || set->stamp_busy) return true;
    }
    return false;
}

/* SUBTLE: a log without requests may still have its own copies restamped. (1) Another copy is lost, and
 * STAMP is asked of the store; (2) the log's streamlet is another node's by now, and it is given up;
 * (3) the answer comes to a set that is gone. */
static void release_step(struct leat_primary_log *log)
{
    leat_list_remove(&log->waits_link);
    bool works = store_works(&log->active) || store_works(&log->settled);
    if (works && !LEAT_BUG(RELEASED_AMID_STAMP)) return; /* its answer comes here */
    void (*on_idle)(void *arg) = log->on_idle;
    log->on_idle = NULL;
    on_idle(log->idle_arg);
}

void rep_log_step(struct leat_primary_log *log)
{
    LEAT_ASSERT_OWNER(log->primary->options.owner);
    bool reserving = false;
    if (log->releasing) {
        if (log->on_idle) release_step(log);
        return;
    }
    log->lacking = false;
    leat_list_remove(&log->waits_link);
    LEAT_LIST_EACH(&log->active, it)
    {
        struct rep_set *set = LEAT_CONTAINER(it, struct rep_set, link);
        reserving |= set->reserve != NULL;
        rep_set_step(set);
    }
    rep_version_step(log);
    rep_versions_send(log->primary);
    if (log->lacking || reserving || rep_is_held(log)) rep_wait(log);
}

static leat_err take_segment(struct leat_primary_log *log, struct leat_segment *seg)
{
    LEAT_ASSERT_CMP(seg->state, ==, LEAT_SEGMENT_CLOSED);
    struct rep_set *set = rep_set_new(log, seg->id, seg->capacity);
    if (!set) return LEAT_E_NO_MEMORY;
    set->seg = seg;
    set->seg->copies_pointer = set;
    set->state = REP_SET_CLOSED; /* begins here */
    set->target = seg->prefix_id.bytes;
    set->lost_us = rep_now(log->primary);
    rep_mark_dirty(log);
    return LEAT_OK;
}

/* Asks for the copies of new logs, also for confirmed copies: another owner confirmed them. */
static void copies_ask(struct leat_primary *primary)
{
    for (unsigned i = 0; i < primary->peer_end; i++) {
        struct rep_peer *peer = primary->peers[i];
        if (!peer) continue;
        peer->audited_us = peer->audit_from = 0;
        peer->audit_all = true;
    }
    rep_arm(primary, REP_TICK_US);
}

static leat_err take_segments(struct leat_primary_log *log, struct leat_segment *const *segs,
                              size_t count)
{
    leat_err rc = LEAT_OK;
    for (size_t i = 0; !rc && i < count; i++)
        rc = take_segment(log, segs[i]);
    return rc;
}

leat_err leat_primary_log_add(struct leat_primary_log *rep, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    return take_segment(rep, seg);
}

void leat_primary_log_whole(struct leat_primary_log *rep)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    rep->options.backfill_follows = false;
    copies_ask(rep->primary);
}

void leat_primary_log_min_copies_set(struct leat_primary_log *rep, uint32_t min_copies)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    LEAT_ASSERT(min_copies >= 1 && min_copies <= rep->options.copies);
    if (rep->options.min_copies == min_copies) return;
    rep->options.min_copies = min_copies;
    rep_mark_dirty(rep);
}

leat_err leat_primary_log_create(struct leat_primary *primary,
                                 const struct leat_primary_log_options *options,
                                 struct leat_segment *const *segs, size_t seg_count,
                                 struct leat_primary_log **out_rep)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    LEAT_ASSERT(options->copies > 1 && options->copies <= LEAT_COPIES_MAX);
    LEAT_ASSERT(options->min_copies >= 1 && options->min_copies <= options->copies);
    struct leat_primary_log *log = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *log);
    if (!log) return LEAT_E_NO_MEMORY;
    log->primary = primary;
    log->options = *options;
    log->version = options->version ? options->version : 1;
    log->known = log->version;
    log->opened = options->opened;
    leat_list_init(&log->active);
    leat_list_init(&log->settled);
    leat_list_init(&log->dirty_link);
    leat_list_init(&log->version_link);
    leat_list_init(&log->waits_link);
    leat_list_push_back(&primary->logs, &log->link);
    struct leat_primary_log **bucket = rep_log_bucket(primary, options->ref);
    log->hash_next = *bucket;
    *bucket = log;
    primary->log_count++;
    leat_err rc = take_segments(log, segs, seg_count);
    if (rc) {
        leat_primary_log_destroy(&log);
        return rc;
    }
    if (seg_count) copies_ask(primary);
    rep_arm(primary, REP_TICK_US);
    *out_rep = log;
    return LEAT_OK;
}

void leat_primary_log_silence(struct leat_primary_log *rep, bool silent)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    rep->silent = silent;
}

void leat_primary_log_abandon(struct leat_primary_log *rep)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    rep->fenced = true;
    rep_mark_dirty(rep);
}

void leat_primary_log_release(struct leat_primary_log *rep, void (*on_idle)(void *arg), void *arg)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    LEAT_ASSERT(!rep->releasing);
    rep->releasing = true;
    rep->on_idle = on_idle;
    rep->idle_arg = arg;
    rep_mark_dirty(rep);
}

/* Writes that are still under way come from buffers of segments that stay with the store. */
static void forget_source(struct leat_primary *primary, const struct rep_set *set)
{
    for (unsigned i = 0; set->writes && i < primary->peer_end; i++) {
        if (!primary->peers[i]) continue;
        LEAT_LIST_EACH(&primary->peers[i]->copies, it)
        {
            struct rep_copy *copy = LEAT_CONTAINER(it, struct rep_copy, by_peer);
            if (copy->source == set) copy->source = NULL;
        }
    }
}

static void forget_sets(struct leat_primary_log *log, struct leat_list *head)
{
    LEAT_LIST_EACH(head, it)
    {
        struct rep_set *set = LEAT_CONTAINER(it, struct rep_set, link);
        LEAT_ASSERT(set->local_state != REP_LOCAL_ASKED && !set->stamp_busy);
        rep_recopy_forget(set);
        while (set->copy_count)
            rep_copy_remove(set->copies[0]);
        forget_source(log->primary, set);
        leat_list_remove(&set->deficit);
        leat_list_remove(&set->link);
        if (set->seg) set->seg->copies_pointer = NULL;
        leat_mem_free(set);
    }
}

void leat_primary_log_destroy(struct leat_primary_log **rep)
{
    struct leat_primary_log *log = *rep;
    if (!log) return;
    struct leat_primary *primary = log->primary;
    forget_sets(log, &log->active);
    forget_sets(log, &log->settled);
    for (size_t i = 0; i < primary->version_count; i++)
        if (primary->version_logs[i] == log) primary->version_logs[i] = NULL;
    struct leat_primary_log **at = rep_log_bucket(primary, log->options.ref);
    while (*at != log)
        at = &(*at)->hash_next;
    *at = log->hash_next;
    leat_list_remove(&log->version_link);
    leat_list_remove(&log->waits_link);
    leat_list_remove(&log->dirty_link);
    leat_list_remove(&log->link);
    primary->log_count--;
    leat_mem_free(log);
    *rep = NULL;
}

void *leat_primary_log_owner(const struct leat_primary_log *rep)
{
    LEAT_ASSERT_OWNER(rep->primary->options.owner);
    return rep->options.owner;
}

/* ---- nodes ---- */
static void name_default(struct leat_rep_node *node)
{
    if (node->name[0] == '\0') snprintf(node->name, sizeof node->name, "%u", node->number);
}

void leat_primary_node_set(struct leat_primary *primary, const struct leat_rep_node *node)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    LEAT_ASSERT_CMP(node->number, <, LEAT_REP_NODES_MAX);
    if (node->number == primary->options.self.number) {
        primary->options.self = *node;
        return;
    }
    struct rep_peer **at = &primary->peers[node->number];
    if (!*at) {
        struct rep_peer *peer = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *peer);
        if (!peer) return; /* told again with the next change */
        peer->node = *node;
        name_default(&peer->node);
        if (rep_peer_init(peer, primary)) {
            rep_peer_fini(peer);
            return;
        }
        *at = peer;
        if (node->number >= primary->peer_end) primary->peer_end = node->number + 1;
        return;
    }
    bool other = (*at)->node.incarnation != node->incarnation;
    if (rep_place_differs(&(*at)->node, node)) rep_place_nodes_changed(primary);
    (*at)->node = *node;
    name_default(&(*at)->node);
    if (other) rep_peer_lost(*at);
    if (other) (*at)->cut = false; /* the new incarnation has revoked the arenas of the old */
    if (other) (*at)->left_us = 0; /* and was not there all the time */
    if (other) (*at)->refused = LEAT_OK;
    if (other && (*at)->state != REP_PEER_DOWN) rep_arm(primary, 0);
}

void leat_primary_peer_up(struct leat_primary *primary, unsigned node)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    struct rep_peer *peer = primary->peers[node];
    if (!peer) return;
    if (peer->state == REP_PEER_DOWN) rep_peer_enter(peer, REP_PEER_UP);
    if (peer->met_us == 0) peer->met_us = rep_now(primary);
    rep_peer_attach(peer);
}

void leat_primary_peer_refused(struct leat_primary *primary, unsigned node, leat_err rc)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    struct rep_peer *peer = primary->peers[node];
    if (peer) peer->refused = rc;
}

void leat_primary_peer_down(struct leat_primary *primary, unsigned node)
{
    LEAT_ASSERT_OWNER(primary->options.owner);
    struct rep_peer *peer = primary->peers[node];
    if (peer) rep_peer_down(peer);
}

/* ---- time ---- */
/* Whether a request waits for an event that may never come. */
static bool is_busy(const struct leat_primary *primary)
{
    for (unsigned i = 0; i < primary->peer_end; i++) {
        const struct rep_peer *peer = primary->peers[i];
        if (!peer) continue;
        if (!leat_list_empty(&peer->ops_waiting)) return true;
        if (rep_peer_is_coming(peer)) return true;
    }
    return !leat_list_empty(&primary->deficit) || !leat_list_empty(&primary->versions);
}

static void on_timer(struct leat_timer *timer)
{
    struct leat_primary *primary = timer->owner;
    uint64_t now_us = rep_now(primary);
    struct rep_peer *left = rep_silence_shed(primary, now_us);
    if (left) rep_peer_lost(left);
    bool owed = rep_silence_look(primary, now_us);
    uint64_t next_us = primary->options.audit_us;
    for (unsigned i = 0; i < primary->peer_end; i++) {
        struct rep_peer *peer = primary->peers[i];
        if (!peer) continue;
        if (now_us >= peer->retry_us) rep_peer_attach(peer);
        rep_peer_ops(peer);
        rep_peer_batches(peer); /* rows that the link had no room for */
        rep_audit_step(peer, now_us);
    }
    LEAT_LIST_EACH(&primary->waits, it)
    {
        rep_mark_dirty(LEAT_CONTAINER(it, struct leat_primary_log, waits_link));
        next_us = REP_TICK_US;
    }
    rep_recopy_step(primary, now_us);
    rep_versions_send(primary);
    if (owed || is_busy(primary)) next_us = REP_TICK_US;
    uint64_t better_us = rep_better_next_us(primary, now_us);
    if (better_us < next_us) next_us = better_us;
    if (primary->recopy) next_us = REP_RECOPY_US;
    rep_arm(primary, next_us);
}

/* ---- life ---- */
static void defaults(struct leat_primary_options *options)
{
    if (!options->answer_us) options->answer_us = 2 * 1000 * 1000;
    if (!options->flush_us) options->flush_us = 10 * 1000 * 1000;
    if (!options->open_wait_us) options->open_wait_us = 2 * 1000 * 1000;
    if (!options->grace_us) options->grace_us = 60 * 1000 * 1000;
    if (!options->grace_crashed_us) options->grace_crashed_us = 20 * 1000 * 1000;
    if (!options->grace_none_us) options->grace_none_us = 1000 * 1000;
    if (!options->audit_us) options->audit_us = 30 * 1000 * 1000;
    if (!options->recopy_bytes_per_second) options->recopy_bytes_per_second = 64 * 1024 * 1024;
    if (!options->window) options->window = 4;
}

/* Closed segments are copied again from this memory, which an RDMA card can read only after registration. Where
 * registration fails (locked memory), that of the pool fails too, and the card is not used. */
static void staging_name(const struct leat_primary *primary)
{
    const struct leat_rmem *rmem = primary->options.rmem;
    struct leat_error error = {0};
    if (!rmem->source || !rmem->source(rmem->ctx, primary->staging, REP_STAGING_BYTES, &error))
        return;
    leat_node_log_warn("replication: closed segments can't be copied again over RDMA: %s",
                       error.text);
}

static leat_err parts_create(struct leat_primary *primary)
{
    primary->buckets = leat_mem_calloc(LEAT_MEM_STORE, REP_LOG_BUCKETS, sizeof *primary->buckets);
    primary->writes = leat_mem_calloc(LEAT_MEM_STORE, REP_WRITES_MAX, sizeof *primary->writes);
    primary->version_rows =
        leat_mem_calloc(LEAT_MEM_STORE, REP_VERSION_ROWS_MAX, sizeof *primary->version_rows);
    primary->version_logs =
        leat_mem_calloc(LEAT_MEM_STORE, REP_VERSION_ROWS_MAX, sizeof *primary->version_logs);
    primary->staging_raw = leat_mem_calloc(LEAT_MEM_STORE, REP_STAGING_BYTES + 4096, 1);
    if (!primary->buckets || !primary->writes || !primary->version_rows || !primary->version_logs ||
        !primary->staging_raw)
        return LEAT_E_NO_MEMORY;
    primary->staging = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)primary->staging_raw, (uintptr_t)4096);
    staging_name(primary);
    return LEAT_OK;
}

leat_err leat_primary_create(const struct leat_primary_options *options,
                             struct leat_primary **out_primary)
{
    struct leat_primary *primary = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *primary);
    if (!primary) return LEAT_E_NO_MEMORY;
    primary->options = *options;
    defaults(&primary->options);
    leat_list_init(&primary->logs);
    leat_list_init(&primary->dirty);
    leat_list_init(&primary->waits);
    leat_list_init(&primary->ops_free);
    leat_list_init(&primary->writes_free);
    leat_list_init(&primary->versions);
    leat_list_init(&primary->deficit);
    leat_list_init(&primary->crowded);
    primary->places = 1;
    primary->on_kick = kick_deliver;
    primary->timer = (struct leat_timer){.on_expired = on_timer, .owner = primary};
    leat_err rc = parts_create(primary);
    if (rc) {
        leat_primary_destroy(&primary);
        return rc;
    }
    *out_primary = primary;
    return LEAT_OK;
}

void leat_primary_destroy(struct leat_primary **pointer)
{
    struct leat_primary *primary = *pointer;
    struct leat_list *link;
    if (!primary) return;
    LEAT_ASSERT_CMP(primary->log_count, ==, 0);
    leat_timer_stop(primary->options.timers, &primary->timer);
    for (unsigned i = 0; i < primary->peer_end; i++)
        if (primary->peers[i]) rep_peer_fini(primary->peers[i]);
    while ((link = leat_list_pop_front(&primary->ops_free)) != NULL)
        leat_mem_free(LEAT_CONTAINER(link, struct rep_op, link));
    leat_mem_free(primary->buckets);
    leat_mem_free(primary->writes);
    leat_mem_free(primary->version_rows);
    leat_mem_free(primary->version_logs);
    leat_mem_free(primary->staging_raw);
    leat_mem_free(primary);
    *pointer = NULL;
}
