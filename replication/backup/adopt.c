/* SPDX-License-Identifier: Apache-2.0 */
/* A replica becomes the node's own segment, since the node owns its log now; and an own segment becomes a replica.
 *
 * The steps: open -> closed by its row at the decided length -> own. Each step is as durable as the stream's acks
 * before the next, so after a crash the replica is at one of these steps. Where its writer might still write into its
 * memory, the replica is hibernated before it is closed. */
#include <string.h>

#include "base/bug.h"
#include "replication/backup/state.h"

static void adopt_step(struct backup_request *request);

static void seal_finish(struct backup_request *request, leat_err rc)
{
    struct replica *rep = request->rep;
    struct leat_backup *backup = rep->backup;
    if (rc)
        backup_refuse(backup, &request->ticket, rc, NULL);
    else
        backup_answer(backup, &request->ticket, rep);
    if (!rc) backup_confirm(rep, 0);
    if (!rc && request->body.owner.v > rep->owner_epoch.v) rep->owner_epoch = request->body.owner;
    backup_request_put(request);
    backup_idle(rep);
}

static void finish(struct backup_request *request, leat_err rc)
{
    struct replica *rep = request->rep;
    struct leat_segment *seg = rep->seg;
    if (request->kind == LEAT_REP_SEAL) {
        seal_finish(request, rc);
        return;
    }
    void (*on_done)(void *arg, leat_err code, struct leat_segment *own) = request->on_adopted;
    void *arg = request->adopted_arg;
    backup_request_put(request);
    if (rc) {
        /* The segment may have been changed to the node's own before its row could not be written. */
        seg->role = LEAT_SEGMENT_REPLICA;
        seg->log_pointer = rep;
        seg->owner_actor = rep->backup->options.env->post->self;
        rep->adopting = false;
        backup_idle(rep);
        on_done(arg, rc, NULL);
        return;
    }
    rep->busy--;
    rep->seg = NULL;
    /* A fence began meanwhile and waits for this replica. The replica is closed: no node writes to it, and it need
     * not move. */
    if (LEAT_BUG(FENCE_WAITS)) rep->move_wanted = false;
    if (rep->move_wanted) backup_move_over(rep);
    backup_replica_free(rep);
    on_done(arg, LEAT_OK, seg);
}

static void on_step_done(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    if (req->kind == LEAT_STORE_CLOSE) backup_closed(request);
    bool sealed = request->kind == LEAT_REP_SEAL && req->kind == LEAT_STORE_CLOSE;
    if (req->rc || req->kind == LEAT_STORE_STAMP || sealed) {
        finish(request, req->rc);
        return;
    }
    request->rep->busy--;
    adopt_step(request);
}

/* No other node writes into its memory, now or later: the replica was found at a start, or a fence moved it out of
 * its writer's arena. */
static bool is_ours(const struct replica *rep)
{
    return !rep->writer || (rep->writer->fenced && !rep->move_wanted);
}

/* By its row alone: bytes after the cut stay in the file, unread. A crash before the row is on the disk leaves the
 * replica as long as before. */
static void cut(struct backup_request *request)
{
    const struct replica *rep = request->rep;
    struct leat_segment *seg = rep->seg;
    if (leat_prefix_id_equal(seg->prefix_id, request->body.prefix_id)) return;
    const struct replica_looked *looked = backup_begins(rep, request->body.prefix_id);
    LEAT_ASSERT(looked != NULL);
    request->cut = true;
    request->uncut = (struct replica_looked){.prefix_id = seg->prefix_id,
                                             .next_offset = seg->next_offset,
                                             .max_timestamp_ms = seg->max_timestamp_ms};
    seg->prefix_id = request->body.prefix_id;
    seg->next_offset = looked->next_offset;
    seg->max_timestamp_ms = looked->max_timestamp_ms;
}

static void close_at(struct backup_request *request)
{
    struct leat_segment *seg = request->rep->seg;
    const struct rep_body *body = &request->body;
    if (seg->state >= LEAT_SEGMENT_HIBERNATED) cut(request);
    if (body->next_offset) seg->next_offset = body->next_offset;
    if (body->max_timestamp_ms != INT64_MIN) seg->max_timestamp_ms = body->max_timestamp_ms;
    if (!seg->buffer) seg->flushed = true; /* hibernated: its bytes are in the file */
    backup_close(request, on_step_done);
}

static void adopt_step(struct backup_request *request)
{
    struct replica *rep = request->rep;
    struct leat_segment *seg = rep->seg;
    struct leat_scan scan;
    request->req = (struct leat_store_req){.version = seg->version, .role = LEAT_SEGMENT_OWN};
    switch (seg->state) {
    case LEAT_SEGMENT_RESERVED:
    case LEAT_SEGMENT_OPEN:
        seg->prefix_id = request->body.prefix_id;
        if (!is_ours(rep)) {
            backup_store(request, LEAT_STORE_HIBERNATE, on_step_done); /* which scans it */
            return;
        }
        /* Scanned before, and not written to since. */
        leat_scan_segment(seg->buffer, seg->prefix_id.bytes, &scan);
        seg->base_offset = scan.base_offset;
        seg->next_offset = scan.next_offset;
        seg->max_timestamp_ms = scan.max_timestamp_ms;
        close_at(request);
        return;
    case LEAT_SEGMENT_HIBERNATED:
        close_at(request);
        return;
    default:
        if (!leat_prefix_id_equal(seg->prefix_id, request->body.prefix_id)) {
            close_at(request);
            return;
        }
        /* SUBTLE: from before the row is changed, the store's events about the segment go to the core of its log.
         * Otherwise: (1) STAMP is answered; (2) the segment is handed to a log on another core; (3) the event
         * "flushed", sent before the answer, arrives on this core and touches that log. On the log's core such an
         * event finds no replica and no log, and only sets `flushed`. */
        seg->log_pointer = NULL;
        seg->owner_actor = request->adopted_to;
        backup_store(request, LEAT_STORE_STAMP, on_step_done);
        return;
    }
}

/* Could the replica be cut to `prefix_id`? The store scans open replicas when they are hibernated. */
static bool may_hold(const struct replica *rep, struct leat_prefix_id prefix_id)
{
    const struct leat_segment *seg = rep->seg;
    struct leat_scan scan;
    if (rep->damaged || rep->drop_wanted || seg->incomplete) return false;
    if (seg->state >= LEAT_SEGMENT_HIBERNATED)
        return leat_prefix_id_equal(seg->prefix_id, prefix_id) ||
               backup_begins(rep, prefix_id) != NULL;
    if (!seg->buffer || prefix_id.bytes > seg->capacity) return false;
    leat_scan_segment(seg->buffer, prefix_id.bytes, &scan);
    return leat_scan_is(&scan, prefix_id) && scan.header.segment == seg->id.v &&
           scan.header.epoch == seg->epoch.v;
}

/* The replica that is nearest to an own segment. Among open replicas, the replica with most bytes on the disk: a disk
 * refuses the same bytes again.
 *
 * This is no rule for the end of a log (metadata/tail.h), and cannot contradict that rule: `prefix_id` is the decided
 * end, both replicas begin with this prefix id (may_hold()), and the replica that is taken is cut to it. */
static bool is_further(const struct replica *rep, const struct replica *than,
                       struct leat_prefix_id prefix_id)
{
    enum leat_segment_state a = rep->seg->state, b = than->seg->state;
    bool a_cut = backup_begins(rep, prefix_id) != NULL,
         b_cut = backup_begins(than, prefix_id) != NULL;
    /* A damaged replica is better than none: its log goes on, and has the segment repaired. */
    if (leat_segment_is_damaged(rep->seg) != leat_segment_is_damaged(than->seg))
        return leat_segment_is_damaged(than->seg);
    if (a_cut != b_cut) return b_cut;
    if (a != b && (a >= LEAT_SEGMENT_HIBERNATED || b >= LEAT_SEGMENT_HIBERNATED)) return a > b;
    return rep->flushed > than->flushed;
}

/* SUBTLE: a replica that a later owner counts is never adopted, nor does settle_one() accept a later owner's KEEP
 * during an adoption.
 *  1. The log is this node's, in epoch 42, and older segments become its own in turn. The log moves to Y in epoch 43,
 *     which this core has not heard yet.
 *  2. Y finds the replica here and counts it. The replica becomes this node's own segment.
 *  3. This core hears that the log is Y's: the segment becomes a new replica, which no owner has confirmed. Y has as
 *     many copies as it wants, and drops the new replica. */
leat_err leat_backup_adopt(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_epoch owner, struct leat_segment_id segment,
                           struct leat_prefix_id prefix_id, uint64_t next_offset,
                           int64_t max_timestamp_ms, unsigned to,
                           void (*on_done)(void *arg, leat_err rc, struct leat_segment *seg),
                           void *arg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *found = NULL;
    LEAT_LIST_EACH(backup_bucket(backup, log), it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, by_log);
        if (!rep->seg || rep->seg->id.v != segment.v) continue;
        if (!leat_log_ref_equal(rep->seg->log, log) || !may_hold(rep, prefix_id)) continue;
        if (!found || is_further(rep, found, prefix_id)) found = rep;
    }
    if (!found) return LEAT_E_NOT_FOUND;
    if (found->owner_epoch.v > owner.v && !LEAT_BUG(ADOPTED_FOR_THE_PAST))
        return LEAT_E_STALE_EPOCH;
    if (found->busy || found->evicting || found->move_wanted) return LEAT_E_AGAIN;
    struct backup_request *request = backup_request_get(backup);
    if (!request) return LEAT_E_NO_MEMORY;
    request->rep = found;
    request->body.prefix_id = prefix_id;
    request->body.next_offset = next_offset;
    request->body.max_timestamp_ms = max_timestamp_ms;
    request->on_adopted = on_done;
    request->adopted_arg = arg;
    request->adopted_to = to;
    found->adopting = true; /* a reader that began now would end with a replica that is gone */
    adopt_step(request);
    return LEAT_OK;
}

/* ---- the way back ---- */

static void on_given_up(struct leat_store_req *req)
{
    struct backup_request *request = req->owner;
    struct replica *rep = request->rep;
    /* The catalogue can't be written: the next start finds the segment with its old role, and asks about it then. */
    backup_request_put(request);
    backup_idle(rep);
}

leat_err leat_backup_take_own(struct leat_backup *backup, struct leat_segment *seg,
                              uint64_t incarnation, bool useless)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *rep;
    struct backup_request *request = backup_request_get(backup);
    if (!request) return LEAT_E_NO_MEMORY;
    leat_err rc = backup_replica_new(backup, &rep);
    if (rc) {
        backup_request_put(request);
        return rc;
    }
    rep->flushed = seg->prefix_id.bytes;
    rep->damaged = useless || seg->integrity == LEAT_INTEGRITY_MISSING; /* nothing of it is here */
    backup_replica_comes(rep, seg);
    seg->role = LEAT_SEGMENT_REPLICA;
    seg->owner_actor = backup->options.env->post->self;
    seg->post = backup->options.env->post;
    request->rep = rep;
    request->req = (struct leat_store_req){
        .version = seg->version, .role = LEAT_SEGMENT_REPLICA, .writer = incarnation};
    backup_store(request, LEAT_STORE_STAMP, on_given_up);
    return LEAT_OK;
}

/* ---- SEAL: the log's new owner has a replica of an earlier epoch cut to the decided end ---- */

void backup_seal(struct leat_backup *backup, const struct leat_frame *frame,
                 const struct leat_link_ticket *ticket)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct rep_body body;
    struct backup_request *request = NULL;
    struct replica *rep = NULL;
    leat_err rc = rep_body_decode(frame->control, frame->control_bytes, &body);
    if (!rc) rep = backup_find(backup, body.handle);
    bool its = rep && rep->seg && rep->seg->id.v == body.segment.v &&
               leat_log_ref_equal(rep->seg->log, body.log);
    /* An earlier owner is refused: settle_one() says why. */
    if (!rc && its && body.owner.v && body.owner.v < rep->owner_epoch.v) rc = LEAT_E_STALE_EPOCH;
    if (!rc && (!its || !may_hold(rep, body.prefix_id) || leat_segment_is_damaged(rep->seg)))
        rc = leat_backup_look_any(backup, body.log, body.segment, body.prefix_id);
    /* Otherwise the replica's writer might still write after the cut. */
    if (!rc && rep->seg->state < LEAT_SEGMENT_HIBERNATED && !is_ours(rep)) rc = LEAT_E_AGAIN;
    if (!rc && (rep->busy || rep->evicting || rep->move_wanted)) rc = LEAT_E_AGAIN;
    if (!rc && rep->seg->state == LEAT_SEGMENT_CLOSED &&
        leat_prefix_id_equal(rep->seg->prefix_id, body.prefix_id)) {
        backup_confirm(rep, 0);
        if (body.owner.v > rep->owner_epoch.v) rep->owner_epoch = body.owner;
        backup_answer(backup, ticket, rep);
        return;
    }
    if (!rc) request = backup_request_get(backup);
    if (!rc && !request) rc = LEAT_E_NO_MEMORY;
    if (rc) {
        backup_refuse(backup, ticket, rc, NULL);
        return;
    }
    request->rep = rep;
    request->kind = LEAT_REP_SEAL;
    request->ticket = *ticket;
    request->body = body;
    adopt_step(request);
}
