/* SPDX-License-Identifier: Apache-2.0 */
/* Work of a log without a request: hibernating, giving memory back; and the log's end. */
#include "base/bug.h"
#include "multilog/internal.h"

/* ---- giving buffers and segments back ---- */

static int helper_take(struct leat_log *log)
{
    for (int i = 0; i < LOG_HELPERS; i++) {
        if (log->helper_busy[i]) continue;
        log->helper_busy[i] = true;
        return i;
    }
    return -1;
}

static void on_helped(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    log->helper_busy[req - log->helpers] = false;
    if (req->kind == LEAT_STORE_DROP) log->drops--;
    log_mark_dirty(log);
}

static void on_evicted(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    struct log_slot *slot = log_slot_find(log, req->seg->id.v);
    LEAT_ASSERT(slot != NULL && slot->changing);
    slot->changing = slot->evicting = false;
    if (req->rc == LEAT_OK) log->memory_bytes -= slot->seg->capacity;
    on_helped(req);
}

static bool slot_is_trimmed(const struct leat_log *log, const struct log_slot *slot)
{
    return log->ending == LOG_DELETING || slot->seg->id.v < log->first_segment;
}

/* false: no helper is free. Readers that still hold the bytes are waited for by mail. */
static bool slot_give_back(struct leat_log *log, struct log_slot *slot)
{
    bool drop = slot_is_trimmed(log, slot);
    if (slot->changing || slot->dropping) return true;
    if (drop && slot->file_reads) return true;
    /* Drops go one after the other: a crash between two drops must leave no hole before the retained segments,
     * because a cold log knows its first segment only by the segments that are there. */
    if (drop && log->drops && log->ending != LOG_DELETING) return true;
    if (drop && (slot->seg == log->head.seg || slot->seg == log->old.seg) &&
        (log->commit_count || log->closing || log_hibernating_changes(log)))
        return true;
    /* CLOSE is answered before anything else is asked for the same segment. */
    if (log->closing && log->close.seg == slot->seg) return true;
    if (!log_slot_is_unpinned(slot)) return true;
    int helper = helper_take(log);
    if (helper < 0) return false;
    slot->changing = true;
    if (drop) {
        slot->dropping = true;
        log->drops++;
        if (slot->closed) log->closed_bytes -= slot->seg->prefix_id.bytes;
        if (slot->seg->buffer) log->memory_bytes -= slot->seg->capacity;
        struct log_open *open = log_open_of(log, slot->seg);
        if (open) {
            leat_index_destroy(&open->index);
            *open = (struct log_open){0};
        }
        slot->seg->log_pointer = NULL;
        log_request(log, &log->helpers[helper], LEAT_STORE_DROP, slot->seg, on_helped);
        slot->seg = NULL;
    } else {
        log_request(log, &log->helpers[helper], LEAT_STORE_EVICT, slot->seg, on_evicted);
    }
    return true;
}

static void drop_front(struct leat_log *log)
{
    while (log->slot_count) {
        struct log_slot *slot = log_slot_at(log, 0);
        if (!slot_is_trimmed(log, slot)) return;
        if (!slot_give_back(log, slot) || !slot->dropping) return;
        log->slot_begin++;
        log->slot_count--;
    }
}

void log_step_drop(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    drop_front(log);
    for (uint32_t i = 0; log->evictions_wanted && i < log->slot_count; i++) {
        struct log_slot *slot = log_slot_at(log, i);
        if (slot->evicting && !slot_is_trimmed(log, slot) && !slot_give_back(log, slot)) return;
    }
    log->evictions_wanted = false;
}

void leat_log_on_evict_wanted(struct leat_log *log, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_slot *slot = log_slot_find(log, seg->id.v);
    if (!slot || slot->seg != seg || !slot->closed || !seg->flushed || slot->changing) return;
    if (!seg->buffer) return;
    slot->evicting = true;
    log->evictions_wanted = true;
    log_mark_dirty(log);
}

void leat_log_on_flushed(struct leat_log *log, struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    seg->flushed = true;
    log_mark_dirty(log);
}

/* ---- heads that lie in the way ---- */

static bool head_lies_badly(const struct leat_log *log)
{
    const struct leat_store_port *store_port = &log->store_port;
    return store_port->roll_wanted && log->head.seg && !log->old.seg && log_is_opened(log) &&
           !log->roll_wanted && store_port->roll_wanted(store_port->ctx, log->head.seg);
}

/* A copy is made of an open head alone: a hibernated one would wait for an append to get it. */
static bool head_lacks_copy(const struct leat_log *log)
{
    const struct leat_store_port *store_port = &log->store_port;
    return store_port->copy_wanted && log->head.seg && !log->old.seg && log_is_opened(log) &&
           !log_hibernating_changes(log) && store_port->copy_wanted(store_port->ctx, log->head.seg);
}

/* An idle head is hibernated instead, which takes no other segment. */
static bool head_is_in_the_way(const struct leat_log *log, bool idle, uint64_t now_us)
{
    const struct leat_store_port *store_port = &log->store_port;
    return store_port->in_the_way && !idle && log->head.seg && !log->old.seg &&
           log_is_opened(log) && log->hibernating == LOG_AWAKE &&
           now_us >= log->leave_not_before_us &&
           store_port->in_the_way(store_port->ctx, log->head.seg);
}

/* ---- hibernating ---- */

static bool is_settled(const struct leat_log *log)
{
    const struct log_open *head = &log->head;
    return head->seg && !log->old.seg && log_is_opened(log) && log_is_quiet(log) &&
           leat_list_empty(&log->waiting) && leat_list_empty(&log->trims) &&
           head->acked_bytes == head->writer.used && !log->room_wanted && !log->roll_wanted;
}

/* Readers go on from the file. */
static void on_hibernated_here(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    log_hibernating_enter(log, LOG_HIBERNATED_HERE);
    log_mark_dirty(log);
}

static void on_hibernated(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    struct log_slot *slot = log_slot_find(log, req->seg->id.v);
    log_hibernating_enter(log, req->rc == LEAT_OK ? LOG_HIBERNATED : LOG_AWAKE);
    slot->changing = false;
    if (req->rc == LEAT_OK) {
        log->memory_bytes -= req->seg->capacity;
    } else {
        log_fail_finally(log, req->rc, "hibernating the log's head failed");
    }
    log_mark_dirty(log);
}

/* false: a reader still holds the head's bytes. */
static bool hibernate_start(struct leat_log *log)
{
    struct leat_segment *seg = log->head.seg;
    struct log_slot *slot = log_slot_find(log, seg->id.v);
    if (!log_slot_is_unpinned(slot)) return false;
    seg->prefix_id = (struct leat_prefix_id){log->head.writer.used, log->head.writer.chain};
    seg->next_offset = log->next_offset;
    log_hibernating_enter(log, LOG_HIBERNATING);
    slot->changing = true;
    log->hibernate.on_here = on_hibernated_here;
    log_request(log, &log->hibernate, LEAT_STORE_HIBERNATE, seg, on_hibernated);
    return true;
}

static void on_resumed(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    struct log_slot *slot = log_slot_find(log, req->seg->id.v);
    log_hibernating_enter(log, req->rc == LEAT_OK ? LOG_AWAKE : LOG_HIBERNATED);
    log->copy_wanted = slot->changing = false;
    if (req->rc == LEAT_OK) {
        log->memory_bytes += req->seg->capacity;
        log->head.writer.bytes = req->seg->buffer;
    } else if (req->rc == LEAT_E_NO_MEMORY) {
        log->reserve_not_before_us = log_now(log) + LOG_RESERVE_PAUSE_US;
    } else {
        log_fail(log, req->rc, "the hibernated head of the log could not be read back");
    }
    log_mark_dirty(log);
}

/* A hibernated head is resumed, however large, before it rolls: its close entry needs its buffer. */
void log_step_resume(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    bool wanted = log->room_wanted || log->roll_wanted || log->copy_wanted;
    if (log->hibernating != LOG_HIBERNATED || !wanted || log->state != LEAT_LOG_SERVING) return;
    if (log->ending != LOG_LIVES || log_now(log) < log->reserve_not_before_us) return;
    struct log_slot *slot = log_slot_find(log, log->head.seg->id.v);
    log_hibernating_enter(log, LOG_RESUMING);
    slot->changing = true;
    log->hibernate.capacity = log->head.seg->capacity;
    log_request(log, &log->hibernate, LEAT_STORE_RESUME, log->head.seg, on_resumed);
}

/* State that is unused for the whole expiry goes. A table that fills up keeps the last quarter of its room for new
 * producers, which would otherwise be refused: the producers that were silent longest go sooner. Producers of an
 * address that has more than its part go sooner, too: otherwise a client that makes a producer for each of its tasks
 * would be refused until the expiry. */
static void producers_expire(struct leat_log *log, int64_t now_ms)
{
    struct leat_producers *producers = &log->producers;
    if (log_is_unloaded(log) || !log->options.producer_expiry_ms) return;
    int64_t before_ms = now_ms - (int64_t)log->options.producer_expiry_ms;
    (void)leat_producers_expire(producers, before_ms, log_acked(log));
    before_ms = now_ms - LOG_PRODUCER_AGE_MS_MIN;
    (void)leat_producers_shed_crowds(producers, before_ms, log_acked(log));
    uint32_t req_count = producers->count_max - producers->count_max / 4;
    (void)leat_producers_shed(producers, req_count, before_ms, log_acked(log));
}

void leat_log_care(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    uint64_t now_us = log_now(log);
    /* Also while the log stops: the stop waits for the commit. */
    if (log->opened == LOG_OPENING_PAUSED && (!log_is_stopping(log) || !LEAT_BUG(STOPPED_UNCARED)))
        log_opened_enter(log, LOG_UNOPENED);
    if (log->ending == LOG_LIVES) log_repairs_ask(log);
    if (log->ending == LOG_LIVES && log->state == LEAT_LOG_SERVING) {
        int64_t now_ms = log->env->clock->wall_ms(log->env->clock->ctx);
        producers_expire(log, now_ms);
        log_retain(log);
        if (log_head_has_expired(log, now_ms)) log->roll_wanted = true;
        if (head_lies_badly(log)) {
            log->roll_wanted = true;
            log_drop_next(log); /* the next segment was placed when the head was */
        }
        bool idle = now_us - log->gathered_us >= log->options.hibernate_after_us;
        log->leave_wanted = head_is_in_the_way(log, idle, now_us);
        if (idle || now_us - log->rolled_us > LOG_SLOW_ROLL_US) {
            log->rolling_fast = false;
            log_drop_next(log);
        }
        bool lacks = idle && head_lacks_copy(log);
        log->copy_wanted = lacks && log_is_hibernated(log);
        if (idle && !lacks && !log_is_hibernated(log) && !log_trim_is_pending(log) &&
            is_settled(log))
            (void)hibernate_start(log); /* the row of the hibernated head has its length */
        else if (now_us - log->gathered_us >= LOG_RUN_CLOSE_US)
            log_run_close(log);
    }
    log_mark_dirty(log);
}

void leat_log_hibernate_after_set(struct leat_log *log, uint64_t hibernate_after_us)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log->options.hibernate_after_us = hibernate_after_us;
}

/* ---- the end ---- */

void leat_log_stop(struct leat_log *log, void (*on_stopped)(void *arg, struct leat_log *log),
                   void *arg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log_ending_enter(log, LOG_STOPPING, on_stopped, arg);
}

void leat_log_go_on(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    LEAT_ASSERT(!log->on_end);
    log_ending_enter(log, LOG_LIVES, NULL, NULL);
}

bool leat_log_rest(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log_is_quiet(log) && leat_list_empty(&log->waiting)) log->resting = true;
    return log->resting;
}

void leat_log_abandon(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (log->ending != LOG_STOPPING || log->state == LEAT_LOG_STOPPED) return;
    log_state_enter(log, LEAT_LOG_STOPPED, LEAT_E_STARTING, "the server is stopping");
    log_mark_dirty(log);
}

void leat_log_delete(struct leat_log *log, void (*on_gone)(void *arg, struct leat_log *log),
                     void *arg)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    log_ending_enter(log, LOG_DELETING, on_gone, arg);
}

static bool stop_goes_on(struct leat_log *log)
{
    log_drop_next(log); /* until that is done the log is not quiet */
    if (!leat_list_empty(&log->waiting)) return false;
    if (!log_is_quiet(log)) return false;
    if (log->state != LEAT_LOG_SERVING || !log->head.seg || log_is_hibernated(log)) return true;
    if (log->old.seg || !log_is_opened(log) || log->head.acked_bytes != log->head.writer.used)
        return false;
    (void)hibernate_start(log);
    return false;
}

static bool delete_goes_on(struct leat_log *log)
{
    log_fail_waiting(log, LEAT_E_UNKNOWN_STREAM);
    log_drop_next(log);
    return log_is_quiet(log) && log->slot_count == 0;
}

void log_step_end(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (!log->on_end) return;
    bool over = log->ending == LOG_DELETING    ? delete_goes_on(log)
                : log->ending == LOG_RELEASING ? log_release_goes_on(log)
                                               : stop_goes_on(log);
    if (!over) return;
    void (*on_end)(void *arg, struct leat_log *ended) = log->on_end;
    /* SUBTLE: the log rests from here on, because its copies are released next, which takes turns. Before, a trim
     * entry was due in one of these turns and was committed, and the log was destroyed while the commit was under
     * way. */
    log->resting |= log->ending == LOG_RELEASING && !LEAT_BUG(RELEASED_TRIMS);
    log->on_end = NULL;
    on_end(log->on_end_arg, log);
}
