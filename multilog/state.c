/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for all parts of a log: the log has to step, the log fails, a request goes to the store. */
#include <stdio.h>

#include "base/node_log.h"
#include "multilog/internal.h"

void log_mark_dirty(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->dirty) return;
    log->dirty = true;
    log->options.events.on_dirty(log->options.owner, log);
}

void log_opened_enter(struct leat_log *log, enum log_opened to)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    static const unsigned follow[] = {
        [LOG_UNOPENED] = 1u << LOG_OPENING,
        [LOG_OPENING] = 1u << LOG_OPENED | 1u << LOG_OPENING_PAUSED | 1u << LOG_UNOPENED,
        [LOG_OPENING_PAUSED] = 1u << LOG_UNOPENED,
        [LOG_OPENED] = 0,
    };
    LEAT_ASSERT(follow[log->opened] & 1u << to);
    log->opened = to;
}

void log_restored_enter(struct leat_log *log, enum log_restored to)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    static const unsigned follow[] = {
        [LOG_FRONT_UNKNOWN] = 1u << LOG_FRONT_UNTOLD | 1u << LOG_UNLOADED,
        [LOG_FRONT_UNTOLD] = 1u << LOG_FRONT_UNTOLD | 1u << LOG_UNLOADED,
        [LOG_UNLOADED] = 1u << LOG_WARM,
        [LOG_WARM] = 1u << LOG_WARM,
    };
    LEAT_ASSERT(follow[log->restored] & 1u << to);
    log->restored = to;
}

void log_ending_enter(struct leat_log *log, enum log_ending to,
                      void (*on_end)(void *arg, struct leat_log *log), void *arg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    static const unsigned follow[] = {
        [LOG_LIVES] = 1u << LOG_STOPPING | 1u << LOG_RELEASING | 1u << LOG_DELETING,
        [LOG_STOPPING] = 1u << LOG_LIVES | 1u << LOG_RELEASING | 1u << LOG_DELETING,
        [LOG_RELEASING] = 1u << LOG_DELETING,
        [LOG_DELETING] = 0,
    };
    LEAT_ASSERT(follow[log->ending] & 1u << to);
    log->ending = to;
    log->on_end = on_end;
    log->on_end_arg = arg;
    log_mark_dirty(log);
}

void log_hibernating_enter(struct leat_log *log, enum log_hibernating to)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    static const unsigned follow[] = {
        [LOG_AWAKE] = 1u << LOG_HIBERNATING,
        [LOG_HIBERNATING] = 1u << LOG_HIBERNATED_HERE | 1u << LOG_HIBERNATED | 1u << LOG_AWAKE,
        [LOG_HIBERNATED_HERE] = 1u << LOG_HIBERNATED,
        [LOG_HIBERNATED] = 1u << LOG_RESUMING,
        [LOG_RESUMING] = 1u << LOG_AWAKE | 1u << LOG_HIBERNATED,
    };
    LEAT_ASSERT(follow[log->hibernating] & 1u << to);
    log->hibernating = to;
}

void log_backfill_enter(struct leat_log *log, enum log_backfill to)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    static const unsigned follow[] = {
        [LOG_BACKFILL_NONE] = 1u << LOG_BACKFILL_FOLLOWS,
        [LOG_BACKFILL_FOLLOWS] = 1u << LOG_BACKFILL_LOOKED,
        [LOG_BACKFILL_LOOKED] = 1u << LOG_BACKFILL_AGAIN,
        [LOG_BACKFILL_AGAIN] = 1u << LOG_BACKFILL_LOOKED,
    };
    LEAT_ASSERT(follow[log->backfill] & 1u << to);
    log->backfill = to;
}

void log_skip_enter(struct leat_log *log, enum log_skip to)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    static const unsigned follow[] = {
        [LOG_SKIP_NONE] = 1u << LOG_SKIP_FRONT,
        [LOG_SKIP_FRONT] = 1u << LOG_SKIP_GOES,
        [LOG_SKIP_GOES] = 1u << LOG_SKIP_ASKED | 1u << LOG_SKIP_NONE,
        [LOG_SKIP_ASKED] = 1u << LOG_SKIP_GOES | 1u << LOG_SKIP_FAILED,
        [LOG_SKIP_FAILED] = 1u << LOG_SKIP_NONE,
    };
    LEAT_ASSERT(follow[log->skip] & 1u << to);
    log->skip = to;
}

/* From NONE to LOST, too: a log that is made anew may get the answer of nodes that the previous log asked. */
void log_slot_repair_enter(struct log_slot *slot, enum log_repair to)
{
    static const unsigned follow[] = {
        [LOG_REPAIR_NONE] = 1u << LOG_REPAIR_SOUGHT | 1u << LOG_REPAIR_LOST,
        [LOG_REPAIR_SOUGHT] =
            1u << LOG_REPAIR_NONE | 1u << LOG_REPAIR_REFUSED | 1u << LOG_REPAIR_LOST,
        [LOG_REPAIR_REFUSED] =
            1u << LOG_REPAIR_NONE | 1u << LOG_REPAIR_REFUSED | 1u << LOG_REPAIR_LOST,
        [LOG_REPAIR_LOST] =
            1u << LOG_REPAIR_NONE | 1u << LOG_REPAIR_LOST | 1u << LOG_REPAIR_LOST_SOUGHT,
        [LOG_REPAIR_LOST_SOUGHT] =
            1u << LOG_REPAIR_NONE | 1u << LOG_REPAIR_REFUSED | 1u << LOG_REPAIR_LOST,
    };
    LEAT_ASSERT(follow[slot->repair] & 1u << to);
    slot->repair = to;
}

bool log_is_quiet(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    for (unsigned i = 0; i < LOG_HELPERS; i++)
        if (log->helper_busy[i]) return false;
    return !log->reserving && !log->commit_count && !log->closing &&
           !log_hibernating_changes(log) && !log->warming && log->reads_in_flight == 0;
}

void log_request(struct leat_log *log, struct leat_store_req *req, enum leat_store_req_kind kind,
                 struct leat_segment *seg, void (*on_done)(struct leat_store_req *req))
{
    LEAT_ASSERT_OWNER(log->options.actor);
    req->kind = kind;
    req->seg = seg;
    req->from = log->env->post->self;
    req->rc = LEAT_OK;
    req->on_done = on_done;
    req->owner = log;
    log->store_port.request(log->store_port.ctx, log->env->post, req);
}

void log_state_enter(struct leat_log *log, enum leat_log_state to, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    static const unsigned follow[] = {
        [LEAT_LOG_SERVING] =
            1u << LEAT_LOG_WAITING | 1u << LEAT_LOG_DAMAGED | 1u << LEAT_LOG_STOPPED,
        [LEAT_LOG_WAITING] = 1u << LEAT_LOG_STOPPED,
        [LEAT_LOG_DAMAGED] = 1u << LEAT_LOG_STOPPED,
        [LEAT_LOG_STOPPED] = 0,
    };
    LEAT_ASSERT(follow[log->state] & 1u << to);
    log->state = to;
    log->stopped_rc = rc;
    snprintf(log->why, sizeof log->why, "%s", why);
}

void log_fail(struct leat_log *log, leat_err rc, const char *why)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->state == LEAT_LOG_STOPPED) return;
    log_state_enter(log, LEAT_LOG_STOPPED, rc, why);
    leat_node_log_error("log %u/%u/%u of %s takes no more appends: %s", log->options.ref.stream,
                        log->options.ref.streamlet, log->options.ref.log, log->stream_name, why);
    log_mark_dirty(log);
}

/* DISK to clients, whatever it was: after LEAT_E_DISK_FULL they would go on asking. */
void log_fail_finally(struct leat_log *log, leat_err rc, const char *what)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    char why[LOG_WHY_BYTES];
    snprintf(why, sizeof why, "%s (%s), which is final", what, leat_err_text(rc));
    log_fail(log, LEAT_E_DISK, why);
}

void leat_log_set_state(struct leat_log *log, enum leat_log_state state, const char *why)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log_state_enter(log, state, LEAT_E_DISK, why);
    log_mark_dirty(log);
}
