/* SPDX-License-Identifier: Apache-2.0 */
/* A segment and all its copies: the requests of its log, and their completion. */
#include <string.h>

#include "replication/primary/state.h"

void rep_set_enter(struct rep_set *set, enum rep_set_state to)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    static const unsigned follow[] = {
        [REP_SET_RESERVING] = 1u << REP_SET_RESERVED,
        [REP_SET_RESERVED] = 1u << REP_SET_STARTED,
        [REP_SET_STARTED] = 1u << REP_SET_HIBERNATING | 1u << REP_SET_CLOSED,
        [REP_SET_HIBERNATING] = 1u << REP_SET_HIBERNATED | 1u << REP_SET_STARTED,
        [REP_SET_HIBERNATED] = 1u << REP_SET_RESUMING,
        [REP_SET_RESUMING] = 1u << REP_SET_STARTED | 1u << REP_SET_HIBERNATED,
        [REP_SET_CLOSED] = 0,
    };
    LEAT_ASSERT(follow[set->state] & 1u << to);
    set->state = to;
}

/* From IDLE to IDLE, as a commit at level `memory` asks nothing of the store; from ANSWERED to ASKED, as a set that is
 * dropped takes no answer. */
void rep_local_enter(struct rep_set *set, enum rep_local_state to)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    static const unsigned follow[] = {
        [REP_LOCAL_IDLE] = 1u << REP_LOCAL_IDLE | 1u << REP_LOCAL_ASKED,
        [REP_LOCAL_ASKED] = 1u << REP_LOCAL_ANSWERED,
        [REP_LOCAL_ANSWERED] = 1u << REP_LOCAL_IDLE | 1u << REP_LOCAL_ASKED,
    };
    LEAT_ASSERT(follow[set->local_state] & 1u << to);
    set->local_state = to;
}

static void insert_ascending(struct leat_list *head, struct rep_set *set)
{
    struct leat_list *at = head;
    while (at->prev != head && LEAT_CONTAINER(at->prev, struct rep_set, link)->id.v > set->id.v)
        at = at->prev;
    leat_list_insert_before(at, &set->link);
}

void rep_set_activate(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    leat_list_remove(&set->link);
    insert_ascending(&set->log->active, set);
    rep_mark_dirty(set->log);
}

struct rep_set *rep_set_new(struct leat_primary_log *log, struct leat_segment_id id,
                            uint32_t capacity)
{
    LEAT_ASSERT_OWNER(log->primary->options.owner);
    struct rep_set *set = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *set);
    if (!set) return NULL;
    set->log = log;
    set->id = id;
    set->capacity = capacity;
    set->since_us = rep_now(log->primary);
    leat_list_init(&set->deficit);
    leat_list_init(&set->crowded);
    insert_ascending(&log->active, set); /* an older segment may come after newer ones */
    return set;
}

static void set_free(struct rep_set *set)
{
    LEAT_ASSERT(set->copy_count == 0 && set->writes == 0 && !set->stamp_busy);
    LEAT_ASSERT(set->local_state != REP_LOCAL_ASKED);
    rep_recopy_forget(set);
    rep_place_forget(set);
    leat_list_remove(&set->deficit);
    leat_list_remove(&set->link);
    leat_mem_free(set);
}

static void answer(struct leat_store_req **req, leat_err rc)
{
    struct leat_store_req *done = *req;
    *req = NULL;
    done->rc = rc;
    done->on_done(done);
}

/* ---- the local copy ---- */
static void on_local_done(struct leat_store_req *req)
{
    struct rep_set *set = req->owner;
    rep_local_enter(set, REP_LOCAL_ANSWERED);
    set->local_rc = req->rc;
    if (req->kind == LEAT_STORE_RESERVE && !req->rc) {
        set->seg = req->seg;
        set->seg->copies_pointer = set;
        set->stamped = set->seg->version;
    }
    if (req->kind == LEAT_STORE_DROP && !req->rc) set->seg = NULL;
    rep_mark_dirty(set->log);
}

static void store_request(struct rep_set *set, struct leat_store_req *req)
{
    const struct leat_primary_options *options = &set->log->primary->options;
    options->store.request(options->store.ctx, options->env->post, req);
}

void rep_local_ask(struct rep_set *set, enum leat_store_req_kind kind)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    const struct leat_primary_log *log = set->log;
    rep_local_enter(set, REP_LOCAL_ASKED);
    set->local = (struct leat_store_req){
        .kind = kind,
        .seg = set->seg,
        .log = log->options.ref,
        .id = set->id,
        .epoch = log->options.epoch,
        .durability = log->options.durability,
        .capacity = set->capacity,
        .version = log->version,
        .on_done = on_local_done,
        .owner = set,
    };
    if (kind == LEAT_STORE_COMMIT) {
        set->local.from_bytes = set->commit->from_bytes;
        set->local.to_bytes = set->commit->to_bytes;
    }
    store_request(set, &set->local);
}

static void on_stamped(struct leat_store_req *req)
{
    struct rep_set *set = req->owner;
    set->stamp_busy = false;
    if (!req->rc && req->version > set->stamped) set->stamped = req->version;
    /* A catalogue that cannot be written stops the log by its next request. */
    if (req->rc) set->stamp_retry_us = rep_now(set->log->primary) + REP_RETRY_US;
    rep_mark_dirty(set->log);
}

/* The owner's copy is a copy like the others: it carries the version too. */
static void stamp_step(struct rep_set *set)
{
    const struct leat_primary_log *log = set->log;
    if (set->stamp_busy || !set->seg || set->state > REP_SET_STARTED) return;
    if (set->stamped >= log->version) return;
    if (rep_now(log->primary) < set->stamp_retry_us) {
        set->log->lacking = true; /* looked at again soon */
        return;
    }
    set->stamp = (struct leat_store_req){.kind = LEAT_STORE_STAMP,
                                         .seg = set->seg,
                                         .version = log->version,
                                         .role = LEAT_SEGMENT_OWN,
                                         .writer = set->seg->writer,
                                         .on_done = on_stamped,
                                         .owner = set};
    set->stamp_busy = true;
    store_request(set, &set->stamp);
}

/* ---- counting ---- */
static bool any_opening(const struct rep_set *set)
{
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->state == REP_COPY_OPENING) return true;
    return false;
}

static bool any_incomplete(const struct rep_set *set)
{
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->incomplete) return true;
    return false;
}

unsigned rep_set_whole_count(const struct rep_set *set)
{
    unsigned count = 1; /* the local one */
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->state != REP_COPY_OPENING && !set->copies[i]->incomplete) count++;
    return count;
}

/* ---- more copies ---- */

/* Memory for replicas comes free as fast as the disk takes them, a segment within some milliseconds, and a log at
 * full speed stands still until then. If this takes longer, nodes are asked less often. */
static uint64_t refused_pause_us(const struct rep_set *set)
{
    enum { DOUBLINGS_MAX = 7 };
    unsigned doublings = set->refusals < DOUBLINGS_MAX ? set->refusals : DOUBLINGS_MAX;
    uint64_t pause_us = (uint64_t)REP_REFUSED_US << doublings;
    return pause_us < REP_RETRY_US ? pause_us : REP_RETRY_US;
}

static void place_step(struct rep_set *set)
{
    struct leat_primary *primary = set->log->primary;
    uint64_t now_us = rep_now(primary);
    if (set->dropping || set->state > REP_SET_STARTED || set->resume) return;
    while (set->copy_count < rep_wanted(set->log)) {
        struct rep_peer *peer = rep_place_choose(set);
        if (!peer) {
            /* Nodes that refused are asked again, a little later. */
            if (set->retry_us <= now_us) {
                memset(set->refused, 0, sizeof set->refused);
                set->retry_us = now_us + refused_pause_us(set);
                set->refusals++;
            }
            rep_arm(primary, set->retry_us - now_us);
            set->log->lacking = true;
            return;
        }
        struct rep_copy *copy = rep_copy_new(set, peer);
        if (!copy) {
            rep_wait(set->log);
            return;
        }
        if (!rep_copy_open(copy, rep_set_is_started(set) && !LEAT_BUG(REPLACEMENT_COUNTS))) return;
    }
}

/* ---- answers ---- */
static void undo(struct rep_set *set, leat_err rc)
{
    set->refusal = rc;
    set->dropping = true;
    rep_mark_dirty(set->log);
}

/* A log that reserves is looked at again each REP_TICK_US (rep_log_step()). */
static void reserve_step(struct rep_set *set)
{
    struct leat_primary_log *log = set->log;
    const struct leat_primary *primary = log->primary;
    if (set->local_state != REP_LOCAL_ANSWERED) return;
    if (set->local_rc) {
        undo(set, set->local_rc);
        return;
    }
    uint64_t now_us = rep_now(primary);
    bool late = now_us >= set->since_us + primary->options.open_wait_us;
    bool enough = rep_set_whole_count(set) >= log->options.min_copies;
    /* SUBTLE: all clients wait for the first segment under a new owner. If its last copy were waited for as long as a
     * required copy, a node that is up and does not answer yet (it has just come back, or has just been stopped)
     * would keep a log with enough copies from serving, for two seconds. The last copy is made later, like a
     * replacement. */
    bool taken_over = !log->opened && set->id.v > 0;
    uint64_t last_copy_us = taken_over ? REP_LAST_COPY_US : primary->options.open_wait_us;
    bool patient = !late && (!enough || now_us < set->since_us + last_copy_us);
    if (any_opening(set) && patient) return;
    bool full = set->copy_count == rep_wanted(log);
    if (!full && patient && (!enough || rep_place_may_come(primary))) return;
    if (!enough) {
        undo(set, LEAT_E_TOO_FEW_COPIES);
        return;
    }
    rep_set_enter(set, REP_SET_RESERVED);
    rep_local_enter(set, REP_LOCAL_IDLE);
    set->reserve->seg = set->seg;
    answer(&set->reserve, LEAT_OK);
}

/* Everything up to there is on every copy that acks need, with a version that holds. */
static bool commit_is_done(const struct rep_set *set, uint32_t to)
{
    const struct leat_primary_log *log = set->log;
    if (!LEAT_BUG(ACK_BEFORE_VERSION) && (rep_is_held(log) || set->stamped < log->need))
        return false;
    if (rep_is_disk(log) && set->local_state != REP_LOCAL_ANSWERED) return false;
    if (rep_set_whole_count(set) < log->options.min_copies) return false;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (!copy->counted || LEAT_BUG(ACK_BEFORE_COPIES)) continue;
        if (copy->done < to || (copy->stamp < log->need && !LEAT_BUG(ACK_BEFORE_VERSION)))
            return false;
        if (rep_is_disk(log) && copy->flushed < to) return false;
    }
    return true;
}

void rep_set_commit_try(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    const struct leat_primary_log *log = set->log;
    if (!set->commit || set->local_state == REP_LOCAL_ASKED) return;
    if (rep_is_disk(log) && set->local_rc) {
        answer(&set->commit, set->local_rc);
    } else if (log->fenced) {
        answer(&set->commit, LEAT_E_STALE_EPOCH);
    } else if (commit_is_done(set, set->commit->to_bytes)) {
        rep_local_enter(set, REP_LOCAL_IDLE);
        answer(&set->commit, LEAT_OK);
    }
}

static void close_step(struct rep_set *set)
{
    if (set->local_state == REP_LOCAL_ASKED || set->stamp_busy) return;
    if (set->local_state == REP_LOCAL_IDLE) {
        rep_local_ask(set, LEAT_STORE_CLOSE);
        return;
    }
    rep_local_enter(set, REP_LOCAL_IDLE);
    answer(&set->close, set->local_rc);
}

static void hibernate_step(struct rep_set *set)
{
    if (set->local_state == REP_LOCAL_ASKED || set->stamp_busy || set->writes) return;
    if (set->local_state == REP_LOCAL_IDLE) {
        if (any_incomplete(set)) return; /* they need its bytes */
        rep_local_ask(set, LEAT_STORE_HIBERNATE);
        return;
    }
    if (set->local_rc) {
        rep_local_enter(set, REP_LOCAL_IDLE);
        rep_set_enter(set, REP_SET_STARTED);
        answer(&set->hibernate, set->local_rc);
        return;
    }
    if (set->state == REP_SET_HIBERNATING) {
        rep_set_enter(set, REP_SET_HIBERNATED);
        if (set->hibernate->on_here) set->hibernate->on_here(set->hibernate);
    }
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->state != REP_COPY_HIBERNATED) return;
    rep_local_enter(set, REP_LOCAL_IDLE);
    answer(&set->hibernate, LEAT_OK);
}

static void resume_step(struct rep_set *set)
{
    if (set->local_state == REP_LOCAL_ASKED) return;
    if (set->local_state == REP_LOCAL_IDLE) {
        rep_local_ask(set, LEAT_STORE_RESUME);
        return;
    }
    if (set->local_rc) {
        rep_local_enter(set, REP_LOCAL_IDLE);
        rep_set_enter(set, REP_SET_HIBERNATED);
        answer(&set->resume, set->local_rc);
        return;
    }
    if (set->state == REP_SET_RESUMING) rep_set_enter(set, REP_SET_STARTED);
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->state == REP_COPY_HIBERNATED) return;
    rep_local_enter(set, REP_LOCAL_IDLE);
    answer(&set->resume, LEAT_OK);
    rep_mark_dirty(
        set->log); /* appends do so too, but a log that is woken for a lost copy has none */
}

/* All copies first, then the local copy: the owner keeps the segment longest. */
static void drop_step(struct rep_set *set)
{
    for (unsigned i = set->copy_count; i-- > 0;) {
        struct rep_copy *copy = set->copies[i];
        if (copy->state == REP_COPY_OPENING)
            rep_copy_remove(copy); /* the answer finds no copy; an audit drops the reservation */
        else
            rep_copy_drop(copy);
    }
    bool asked = set->local_state == REP_LOCAL_ASKED || set->stamp_busy;
    if (set->copy_count || set->writes || asked) return;
    bool answered = set->local_state == REP_LOCAL_ANSWERED;
    if (set->seg && !(answered && set->local.kind == LEAT_STORE_DROP)) {
        rep_local_ask(set, LEAT_STORE_DROP);
        return;
    }
    struct leat_store_req *req = set->reserve ? set->reserve : set->drop;
    leat_err rc = set->reserve ? set->refusal : set->local_rc;
    req->seg = NULL;
    req->rc = rc;
    set->reserve = set->drop = NULL;
    set_free(set);
    req->on_done(req);
}

static bool is_quiet(const struct rep_set *set)
{
    if (!rep_set_is_closed(set) || set->close || set->evict || set->dropping) return false;
    for (unsigned i = 0; i < set->copy_count; i++)
        if (set->copies[i]->state != REP_COPY_CLOSED) return false;
    return true;
}

void rep_set_settle(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    struct leat_primary_log *log = set->log;
    if (!is_quiet(set)) {
        rep_set_activate(set);
        return;
    }
    leat_list_remove(&set->link);
    insert_ascending(&log->settled, set);
    bool full = set->copy_count >= rep_wanted(log);
    if (full && !set->full_once) {
        set->full_once = true;
        log->primary->accounts.segments++;
    }
    /* What is missing is copied in the background. */
    if (full) {
        leat_list_remove(&set->deficit);
    } else if (leat_list_empty(&set->deficit)) {
        leat_list_push_back(&log->primary->deficit, &set->deficit);
        rep_arm(log->primary, REP_TICK_US);
    }
    rep_set_surplus(set);
    rep_place_note(set);
}

void rep_set_step(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    if (set->dropping) {
        drop_step(set);
        return;
    }
    for (unsigned i = set->copy_count; i-- > 0;)
        rep_copy_step(set->copies[i]);
    place_step(set);
    stamp_step(set);
    if (set->evict && !set->writes) {
        struct leat_store_req *req = set->evict;
        set->evict = NULL;
        store_request(set, req);
    }
    if (set->reserve)
        reserve_step(set);
    else if (set->commit)
        rep_set_commit_try(set);
    else if (set->close)
        close_step(set);
    else if (set->hibernate)
        hibernate_step(set);
    else if (set->resume)
        resume_step(set);
    if (is_quiet(set)) rep_set_settle(set);
}

bool rep_set_is_still(const struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    if (!rep_set_is_closed(set) || set->dropping || set->close || set->evict ||
        leat_segment_is_damaged(set->seg))
        return false;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (copy->state != REP_COPY_CLOSED || copy->incomplete || copy->found || copy->writes ||
            rep_copy_is_busy(copy))
            return false;
    }
    return true;
}

/* SUBTLE: the badly placed copy is dropped only when all remaining copies are complete and closed, and their backups
 * know that these copies count (backup/README.md, "Who may drop"). */
void rep_set_surplus(struct rep_set *set)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    if (set->copy_count > rep_wanted(set->log) && rep_set_is_still(set))
        rep_copy_drop(rep_place_worst(set));
}
