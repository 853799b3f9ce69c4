/* SPDX-License-Identifier: Apache-2.0 */
/* A replica: its state, its wanted state, and the next step. */
#include <string.h>

#include "base/bug.h"
#include "replication/primary/state.h"

/* From OPENING to CLOSED: the copy is not new, but was found at its backup. */
void rep_copy_enter(struct rep_copy *copy, enum rep_copy_state to)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    static const unsigned follow[] = {
        [REP_COPY_OPENING] = 1u << REP_COPY_OPEN | 1u << REP_COPY_CLOSED,
        [REP_COPY_OPEN] = 1u << REP_COPY_HIBERNATED | 1u << REP_COPY_CLOSED,
        [REP_COPY_HIBERNATED] = 1u << REP_COPY_OPEN,
        [REP_COPY_CLOSED] = 0,
    };
    LEAT_ASSERT(follow[copy->state] & 1u << to);
    copy->state = (uint8_t)to;
}

/* ---- requests about one replica ---- */
static void on_op_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                       const struct leat_error *error);

static uint64_t patience(const struct leat_primary *primary, unsigned kind)
{
    bool flushes =
        kind == LEAT_REP_HIBERNATE || kind == LEAT_REP_COMPLETE || kind == LEAT_REP_RESUME;
    return flushes ? primary->options.flush_us : primary->options.answer_us;
}

/* false: there is no memory: nothing was started, and the log is looked at again in a tick. */
static bool ask(struct rep_copy *copy, enum leat_rep_kind kind, struct leat_prefix_id prefix_id)
{
    struct rep_set *set = copy->set;
    struct rep_peer *peer = copy->peer;
    struct leat_primary *primary = peer->primary;
    struct rep_op *op = rep_op_get(primary);
    if (!op) {
        rep_wait(set->log); /* otherwise the log would not be compared again */
        return false;
    }
    struct rep_body body = {
        .handle = copy->handle,
        .log = set->log->options.ref,
        .segment = set->id,
        .epoch = set->seg ? set->seg->epoch : set->log->options.epoch,
        .version = set->log->version,
        .capacity = set->capacity,
        .durability = (uint32_t)set->log->options.durability,
        .incomplete = copy->incomplete,
        .prefix_id = prefix_id,
        .owner = set->log->options.epoch,
    };
    if (set->seg) {
        body.next_offset = set->seg->next_offset;
        body.max_timestamp_ms = set->seg->max_timestamp_ms;
        body.passed_bytes = set->seg->passed_bytes;
    }
    op->primary = primary;
    op->peer = peer;
    op->copy = copy;
    op->call = (struct leat_link_call){.kind = (uint16_t)kind,
                                       .control = op->control,
                                       .control_bytes = rep_body_encode(&body, op->control),
                                       .timeout_us = patience(primary, kind),
                                       .on_done = on_op_done,
                                       .owner = op};
    copy->op = op;
    if (body.version > copy->stamp_sent) copy->stamp_sent = body.version;
    leat_list_push_back(&peer->ops_waiting, &op->link);
    rep_peer_ops(peer);
    return true;
}

static void free_if_over(struct rep_copy *copy)
{
    if (copy->set || copy->writes || copy->op || copy->batched) return;
    leat_list_remove(&copy->in_batch);
    leat_list_remove(&copy->by_peer);
    leat_mem_free(copy);
}

/* ---- what answers mean ---- */
static void on_opened(struct rep_copy *copy, leat_err rc, const struct rep_answer *answer)
{
    struct rep_set *set = copy->set;
    struct leat_primary *primary = copy->peer->primary;
    if (rc) {
        unsigned number = copy->peer->node.number;
        set->refused[number / 64] |= UINT64_C(1) << (number % 64);
        primary->accounts.refused_opens++;
        rep_copy_remove(copy);
        return;
    }
    primary->accounts.control_rpcs++;
    primary->accounts.open_rpcs++;
    /* SUBTLE: the segment has started meanwhile, without it. It is not marked as incomplete, so it
     * must not be given a part of what is acked already. It stays a reservation; an audit drops it.
     */
    if (rep_set_is_started(set) && !copy->incomplete && !LEAT_BUG(REPLACEMENT_COUNTS)) {
        rep_copy_remove(copy);
        return;
    }
    copy->handle = answer->handle;
    copy->place = answer->place;
    rep_copy_enter(copy, REP_COPY_OPEN);
    copy->stamp = copy->stamp_sent;
    copy->counted = !copy->incomplete;
    copy->peer->open_count++;
    rep_place_judge(set);
}

static void on_resumed(struct rep_copy *copy, const struct rep_answer *answer)
{
    rep_copy_enter(copy, REP_COPY_OPEN);
    copy->place = answer->place;
    copy->stamp = copy->stamp_sent;
    copy->sent = copy->done = copy->flushed = copy->set->seg->prefix_id.bytes;
}

/* Another copy may have been lost while this one was one too many: then its segment lacks one now. */
static void drop_over(struct rep_copy *copy)
{
    struct rep_set *set = copy->set;
    rep_copy_remove(copy);
    if (LEAT_BUG(LEAVING_COUNTS)) return;
    if (rep_set_is_closed(set) && !set->dropping) rep_set_settle(set);
}

static void on_answered(struct rep_copy *copy, unsigned kind, const struct rep_answer *answer)
{
    struct leat_rep_accounts *accounts = &copy->peer->primary->accounts;
    switch (kind) {
    case LEAT_REP_CLOSE:
        accounts->control_rpcs++;
        rep_copy_enter(copy, REP_COPY_CLOSED);
        copy->incomplete = false;
        copy->counted = true;
        LEAT_ASSERT_CMP(copy->peer->open_count, >, 0);
        copy->peer->open_count--;
        return;
    case LEAT_REP_HIBERNATE:
        rep_copy_enter(copy, REP_COPY_HIBERNATED);
        accounts->hibernate_rpcs++;
        return;
    case LEAT_REP_RESUME:
        on_resumed(copy, answer);
        accounts->resume_rpcs++;
        return;
    case LEAT_REP_COMPLETE:
        copy->incomplete = false;
        if (LEAT_BUG(WHOLE_BEFORE_COUNTED)) copy->counted = true;
        copy->stamp = copy->stamp_sent;
        accounts->replaced_copies++;
        break;
    case LEAT_REP_DROP:
        drop_over(copy);
        break;
    default:
        break;
    }
    accounts->other_rpcs++;
}

static void on_refused(struct rep_copy *copy, unsigned kind, leat_err rc)
{
    /* What was copied from this node's disk does not match its checksums. */
    if (rc == LEAT_E_DAMAGED && kind == LEAT_REP_CLOSE && copy->incomplete)
        rep_own_damaged(copy->set);
    rep_copy_lost(copy);
}

static void on_op_done(struct leat_link_call *call, leat_err rc, const struct leat_frame *frame,
                       const struct leat_error *error)
{
    struct rep_op *op = call->owner;
    struct leat_primary *primary = op->primary;
    struct rep_peer *peer = op->peer;
    struct rep_copy *copy = op->copy;
    unsigned kind = call->kind;
    struct rep_answer answer = {0};
    (void)error;
    LEAT_ASSERT_CMP(peer->ops, >, 0);
    if (!rc) rep_peer_heard(peer);
    peer->ops--;
    leat_list_push_back(&primary->ops_free, &op->link);
    if (!rc) rc = rep_answer_decode(frame->control, frame->control_bytes, &answer);
    if (!rc) peer->load_bytes = answer.load_bytes;
    rep_peer_ops(peer);
    if (!copy) return; /* an unwanted reservation: the next audit drops it */
    copy->op = NULL;
    rep_mark_dirty(copy->set->log);
    if (kind == LEAT_REP_OPEN)
        on_opened(copy, rc, &answer);
    else if (rc && kind == LEAT_REP_DROP)
        drop_over(copy); /* it is asked for again by an audit */
    else if (rc)
        on_refused(copy, kind, rc);
    else
        on_answered(copy, kind, &answer);
}

/* ---- life ---- */
struct rep_copy *rep_copy_new(struct rep_set *set, struct rep_peer *peer)
{
    LEAT_ASSERT_OWNER(set->log->primary->options.owner);
    LEAT_ASSERT_CMP(set->copy_count, <, LEAT_COPIES_MAX - 1);
    struct rep_copy *copy = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *copy);
    if (!copy) return NULL;
    copy->set = copy->source = set;
    copy->peer = peer;
    copy->session = peer->session;
    leat_list_init(&copy->in_batch);
    leat_list_push_back(&peer->copies, &copy->by_peer);
    set->copies[set->copy_count++] = copy;
    return copy;
}

bool rep_copy_open(struct rep_copy *copy, bool incomplete)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    LEAT_ASSERT_CMP(copy->state, ==, REP_COPY_OPENING); /* as it was made */
    copy->incomplete = incomplete;
    if (ask(copy, LEAT_REP_OPEN, (struct leat_prefix_id){0})) return true;
    rep_copy_remove(copy);
    return false;
}

void rep_copy_remove(struct rep_copy *copy)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    struct rep_set *set = copy->set;
    unsigned at = 0;
    while (set->copies[at] != copy)
        at++;
    set->copies[at] = set->copies[--set->copy_count];
    if (copy->state == REP_COPY_OPEN || copy->state == REP_COPY_HIBERNATED) {
        LEAT_ASSERT_CMP(copy->peer->open_count, >, 0);
        copy->peer->open_count--;
    }
    rep_recopy_copy_gone(copy);
    copy->set = NULL;
    if (copy->op) copy->op->copy = NULL;
    copy->op = NULL;
    leat_list_remove(&copy->in_batch);
    rep_place_judge(set);
    rep_mark_dirty(set->log);
    free_if_over(copy);
}

/* SUBTLE: a lost copy of a started segment that is not closed everywhere may come back with its present bytes and
 * version, while the log goes on without this copy. So before the next ack the coordinator must know a higher version
 * than this copy can carry (dissertation §4.5.3). An incomplete copy is marked so and never counts; a reservation
 * holds nothing. */
void rep_copy_lost(struct rep_copy *copy)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    struct rep_set *set = copy->set;
    struct leat_primary_log *log = set->log;
    bool may_mislead = !LEAT_BUG(LOST_COPY_COUNTS) && rep_set_is_started(set) &&
                       !rep_set_is_closed(set) && !set->dropping &&
                       copy->state != REP_COPY_OPENING && (!copy->incomplete || copy->asked_whole);
    /* The next segment has started: only this segment's close entry is under way. */
    bool closes = set->link.next != &log->active;
    if (may_mislead && !(LEAT_BUG(LOST_WHILE_CLOSING) && closes)) {
        if (!rep_is_held(log)) log->held_us = rep_now(log->primary);
        if (copy->stamp_sent + 1 > log->need) log->need = copy->stamp_sent + 1;
        if (log->need > log->version) log->version = log->need;
    }
    if (rep_set_is_closed(set) || rep_set_is_hibernated(set)) set->lost_us = rep_now(log->primary);
    memset(set->refused, 0, sizeof set->refused);
    rep_copy_remove(copy);
    if (rep_set_is_closed(set) && !set->dropping) rep_set_settle(set);
}

void rep_copy_drop(struct rep_copy *copy)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    if (!rep_copy_lives(copy)) {
        rep_copy_remove(copy);
        return;
    }
    /* Its memory serves another as soon as this is answered: not while writes may still land. */
    if (rep_copy_is_busy(copy) || (copy->writes && !LEAT_BUG(DROP_AMID_WRITES))) return;
    (void)ask(copy, LEAT_REP_DROP, (struct leat_prefix_id){0});
}

/* SUBTLE: until its backup has answered the DROP, the copy is still in the tables, but does not count.
 *  1. B has the badly placed copy, C the better copy. B is told to drop its copy, and is slow.
 *  2. The connection to C breaks, and is made again. C reports its copy, and B's copy is in the tables.
 *  3. C is told to drop its copy as superfluous; then B drops its copy. Only the owner has the segment. */
bool rep_copy_leaves(const struct rep_copy *copy)
{
    return copy->op && copy->op->call.kind == LEAT_REP_DROP;
}

bool rep_copy_is_busy(const struct rep_copy *copy)
{
    return copy->op || copy->batched || !leat_list_empty(&copy->in_batch);
}

/* ---- writes ---- */
bool rep_copy_is_plain(const struct rep_copy *copy)
{
    const struct rep_set *set = copy->set;
    if (!set || copy->state != REP_COPY_OPEN || copy->incomplete || !copy->counted) return false;
    return !rep_is_disk(set->log) && copy->stamp == set->log->version && !rep_set_is_closed(set) &&
           !set->dropping && !rep_set_is_hibernated(set) && !set->evict;
}

static void on_written(struct leat_rmem_write *done, leat_err rc)
{
    struct rep_write *write = (struct rep_write *)(void *)done;
    struct rep_copy *copy = write->copy;
    struct leat_primary *primary = copy->peer->primary;
    if (!rc) rep_peer_wrote(copy->peer);
    leat_list_remove(&write->link);
    leat_list_push_front(&primary->writes_free, &write->link);
    copy->writes--;
    if (!rc) {
        primary->accounts.replicated_bytes += write->bytes;
        primary->accounts.writes++;
    }
    if (copy->source) copy->source->writes--;
    if (copy->source && !rep_copy_is_plain(copy)) rep_mark_dirty(copy->source->log);
    if (!copy->set) {
        free_if_over(copy);
        return;
    }
    if (rc) return; /* the target is failing: the session's end follows */
    copy->done += write->bytes;
    rep_copy_write(copy);
    /* Here, not at the next mail: this is what an append's latency is made of. */
    rep_set_commit_try(copy->set);
}

static struct rep_write *write_take(struct leat_primary *primary)
{
    struct leat_list *link = leat_list_pop_front(&primary->writes_free);
    if (link) return LEAT_CONTAINER(link, struct rep_write, link);
    if (primary->writes_fresh == REP_WRITES_MAX) return NULL;
    struct rep_write *write = &primary->writes[primary->writes_fresh++];
    leat_list_init(&write->link);
    return write;
}

bool rep_copy_write_from(struct rep_copy *copy, const uint8_t *from, uint32_t bytes)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    struct rep_peer *peer = copy->peer;
    struct leat_primary *primary = peer->primary;
    struct rep_write *write = write_take(primary);
    LEAT_ASSERT_CMP(copy->state, ==, REP_COPY_OPEN); /* else its place is not known */
    if (!write) return false;
    write->copy = copy;
    write->bytes = bytes;
    write->iov = (struct leat_iov){from, bytes};
    write->posted_us = rep_now(primary);
    write->write = (struct leat_rmem_write){.iovs = &write->iov,
                                            .iov_count = 1,
                                            .offset = copy->place + copy->sent,
                                            .on_done = on_written,
                                            .owner = write};
    if (leat_rmem_write(peer->target, &write->write)) {
        leat_list_push_front(&primary->writes_free, &write->link);
        return false; /* the target has failed: on_failed tells */
    }
    leat_list_push_back(&peer->writes, &write->link);
    copy->sent += bytes;
    copy->writes++;
    copy->set->writes++;
    return true;
}

/* Each core goes through a message several times (tag and socket; socket, tag and the copy into place), and what its
 * cache holds comes from memory once. Cut for that alone, so pieces don't count as writes of their own: as many bytes
 * are under way as of one-sided writes. */
static bool by_messages(const struct rep_copy *copy)
{
    enum leat_rmem_kind kind = copy->peer->target->kind;
    return kind == LEAT_RMEM_TCP || kind == LEAT_RMEM_RPC;
}

static uint32_t write_bytes(const struct rep_copy *copy)
{
    uint32_t bytes = copy->set->target - copy->sent;
    uint32_t most = by_messages(copy) ? LEAT_REP_MESSAGE_BYTES_MAX : LEAT_REP_WRITE_BYTES_MAX;
    return bytes < most ? bytes : most;
}

static bool window_has_room(const struct rep_copy *copy, uint32_t bytes)
{
    uint32_t window = copy->peer->primary->options.window;
    if (copy->writes < window) return true;
    return bytes == LEAT_REP_MESSAGE_BYTES_MAX && by_messages(copy) &&
           (uint64_t)copy->sent - copy->done + bytes <= (uint64_t)window * LEAT_REP_WRITE_BYTES_MAX;
}

void rep_copy_write(struct rep_copy *copy)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    struct rep_set *set = copy->set;
    bool wants = copy->state == REP_COPY_OPEN && !set->dropping && !rep_set_is_closed(set);
    while (wants && rep_copy_lives(copy) && copy->sent < set->target && set->seg->buffer) {
        uint32_t bytes = write_bytes(copy);
        if (!window_has_room(copy, bytes)) return;
        if (!rep_copy_write_from(copy, set->seg->buffer + copy->sent, bytes)) {
            rep_wait(set->log);
            return;
        }
    }
}

/* ---- the step ---- */
/* What names the prefix: its last entry is a trailer. */
static struct leat_prefix_id prefix(const struct rep_set *set, uint32_t bytes)
{
    struct leat_entry trailer;
    LEAT_ASSERT_CMP(bytes, >=, sizeof trailer);
    memcpy(&trailer, set->seg->buffer + bytes - sizeof trailer, sizeof trailer);
    LEAT_ASSERT_CMP(trailer.type, ==, LEAT_ENTRY_TRAILER);
    return (struct leat_prefix_id){bytes, trailer.crc};
}

static void batch(struct rep_copy *copy, struct rep_batch *into)
{
    leat_list_push_back(&into->waiting, &copy->in_batch);
}

static void step_closed(struct rep_copy *copy)
{
    const struct rep_set *set = copy->set;
    if (copy->state == REP_COPY_OPEN && copy->done == set->seg->prefix_id.bytes && !copy->writes)
        (void)ask(copy, LEAT_REP_CLOSE, set->seg->prefix_id);
}

void rep_copy_step(struct rep_copy *copy)
{
    LEAT_ASSERT_OWNER(copy->peer->primary->options.owner);
    struct rep_set *set = copy->set;
    const struct leat_primary_log *log = set->log;
    if (copy->state == REP_COPY_OPENING || copy->state == REP_COPY_CLOSED) return;
    rep_copy_write(copy);
    if (rep_copy_is_busy(copy)) return;
    if (rep_set_is_closed(set)) {
        step_closed(copy);
        return;
    }
    if (copy->state == REP_COPY_HIBERNATED) {
        if (!rep_set_is_hibernated(set)) (void)ask(copy, LEAT_REP_RESUME, set->seg->prefix_id);
        return;
    }
    bool there = copy->done == set->target && copy->writes == 0;
    bool flushed = !rep_is_disk(log) || copy->flushed == copy->done;
    if (copy->incomplete) {
        /* SUBTLE: a copy counts before COMPLETE is sent. In the other order:
         *  1. The backup marks the copy complete at length L.
         *  2. More is acked without this copy.
         *  3. The other nodes die: the copy is a mark of the current generation, shorter than the acked prefix.
         */
        if (copy->sent == set->target && set->target && !LEAT_BUG(WHOLE_BEFORE_COUNTED))
            copy->counted = true;
        if (there && !flushed)
            batch(copy, &copy->peer->flush);
        else if (there && rep_set_is_started(set) && set->target && set->seg->buffer)
            copy->asked_whole |= ask(copy, LEAT_REP_COMPLETE, prefix(set, copy->done));
        return;
    }
    if (LEAT_BUG(ONLY_HEAD_STAMPED) && set->link.next != &log->active) copy->stamp = log->version;
    if (copy->stamp < log->version && !rep_set_is_hibernated(set))
        batch(copy, &copy->peer->restamp);
    else if (!flushed)
        batch(copy, &copy->peer->flush);
    else if (rep_set_is_hibernated(set) && there && copy->done == set->seg->prefix_id.bytes)
        (void)ask(copy, LEAT_REP_HIBERNATE, set->seg->prefix_id);
}
