/* A replica becomes the node's own: the node owns its log now.
 *
 * Step by step, each durable before the next, so that a crash in between leaves a replica that is
 * only further on its way: open -> parked at the decided length -> closed by its row -> own. */
#include <string.h>

#include "replication/backup.h"

static void adopt_step(struct backup_request *request);

static void finish(struct backup_request *request, leat_err rc)
{
    struct replica *rep = request->rep;
    struct leat_segment *seg = rep->seg;
    void (*on_done)(void *arg, leat_err code, struct leat_segment *own) = request->on_adopted;
    void *arg = request->adopted_arg;
    backup_request_put(request);
    if (rc) {
        backup_idle(rep);
        on_done(arg, rc, NULL);
        return;
    }
    rep->busy--;
    rep->seg = NULL;
    seg->log_pointer = NULL;
    seg->owner_actor = LEAT_ACTORS;
    backup_replica_free(rep);
    on_done(arg, LEAT_OK, seg);
}

static void on_step_done(struct leat_keep *keep)
{
    struct backup_request *request = keep->owner;
    if (keep->rc || keep->kind == LEAT_KEEP_STAMP) {
        finish(request, keep->rc);
        return;
    }
    request->rep->busy--;
    adopt_step(request);
}

static void adopt_step(struct backup_request *request)
{
    struct leat_segment *seg = request->rep->seg;
    const struct rep_body *body = &request->body;
    request->keep = (struct leat_keep){.version = seg->version, .role = LEAT_SEGMENT_OWN};
    switch (seg->state) {
    case LEAT_SEGMENT_RESERVED:
    case LEAT_SEGMENT_OPEN:
        seg->extent = body->extent;
        backup_store(request, LEAT_KEEP_PARK, on_step_done); /* which scans it */
        return;
    case LEAT_SEGMENT_PARKED:
        seg->next_offset = body->next_offset;
        seg->max_timestamp_ms = body->max_timestamp_ms;
        seg->state = LEAT_SEGMENT_CLOSED;
        backup_store(request, LEAT_KEEP_CLOSE, on_step_done);
        return;
    default:
        seg->flushed = true; /* its bytes are in the file: checked, or by the steps before */
        backup_store(request, LEAT_KEEP_STAMP, on_step_done);
        return;
    }
}

static bool same(struct leat_extent a, struct leat_extent b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

/* Could it be cut to that? Open ones are scanned by the store when they are parked. */
static bool may_hold(const struct replica *rep, struct leat_extent extent)
{
    const struct leat_segment *seg = rep->seg;
    struct leat_scan scan;
    if (rep->damaged || rep->drop_wanted || seg->incomplete) return false;
    if (seg->state >= LEAT_SEGMENT_PARKED) return same(seg->extent, extent);
    if (!seg->buffer || extent.bytes > seg->capacity) return false;
    leat_scan_segment(seg->buffer, extent.bytes, &scan);
    return scan.started && same((struct leat_extent){scan.bytes, scan.crc}, extent) &&
           scan.header.segment == seg->id.v && scan.header.epoch == seg->epoch.v;
}

leat_err leat_backup_adopt(struct leat_backup *backup, struct leat_log_ref log,
                           struct leat_segment_id segment, struct leat_extent extent,
                           uint64_t next_offset, int64_t max_timestamp_ms,
                           void (*on_done)(void *arg, leat_err rc, struct leat_segment *seg),
                           void *arg)
{
    struct replica *found = NULL;
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, link);
        if (!rep->seg || rep->seg->id.v != segment.v) continue;
        if (!leat_log_ref_equal(rep->seg->log, log) || !may_hold(rep, extent)) continue;
        /* The one that is furthest on its way. */
        if (!found || rep->seg->state > found->seg->state) found = rep;
    }
    if (!found) return LEAT_E_NOT_FOUND;
    bool waits = found->seg->state == LEAT_SEGMENT_CLOSED && !found->seg->flushed;
    if (found->busy || found->evicting || found->move_wanted || waits) return LEAT_E_AGAIN;
    struct backup_request *request = backup_request_get(backup);
    if (!request) return LEAT_E_NO_MEMORY;
    request->rep = found;
    request->body.extent = extent;
    request->body.next_offset = next_offset;
    request->body.max_timestamp_ms = max_timestamp_ms;
    request->on_adopted = on_done;
    request->adopted_arg = arg;
    adopt_step(request);
    return LEAT_OK;
}
