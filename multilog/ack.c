/* SPDX-License-Identifier: Apache-2.0 */
/* From sealed to acked: make safe, publish, answer. */
#include <string.h>

#include "multilog/internal.h"

static void open_is_safe(struct log_open *open, uint32_t bytes, uint64_t offset)
{
    LEAT_ASSERT_CMP(bytes, >=, open->safe_bytes);
    LEAT_ASSERT_CMP(bytes, <=, open->writer.sealed_bytes);
    open->safe_bytes = bytes;
    open->safe_offset = offset;
    unsigned passed = 0;
    while (passed < open->seal_count && open->seals[passed].bytes <= bytes)
        passed++;
    open->seal_count -= passed;
    memmove(open->seals, open->seals + passed, open->seal_count * sizeof open->seals[0]);
}

/* Which prefix a commit has made safe: what was asked for, or more. */
static struct log_seal commit_reached(const struct log_commit *commit, const struct log_open *open)
{
    if (commit->req.to_bytes == commit->asked.bytes) return commit->asked;
    for (unsigned i = 0; i < open->seal_count; i++)
        if (open->seals[i].bytes == commit->req.to_bytes) return open->seals[i];
    /* An earlier answered commit has brought all these bytes. */
    LEAT_ASSERT_CMP(commit->req.to_bytes, ==, open->safe_bytes);
    return (struct log_seal){open->safe_bytes, open->safe_offset};
}

static void on_committed(struct leat_store_req *req)
{
    struct leat_log *log = req->owner;
    struct log_commit *commit = &log->commits[log->commit_first];
    LEAT_ASSERT(log->commit_count && req == &commit->req);
    log->commit_first = (log->commit_first + 1) % LOG_COMMITS_MAX;
    log->commit_count--;
    if (req->rc == LEAT_E_STALE_EPOCH) {
        log_fail(log, req->rc,
                 "other nodes refuse this owner: the log is another node's now, or this node was "
                 "declared crashed");
    } else if (req->rc != LEAT_OK) {
        log_fail_finally(log, req->rc, "a flush of the log's head failed");
    } else {
        struct log_open *open = log_open_of(log, req->seg);
        LEAT_ASSERT(open != NULL);
        struct log_seal reached = commit_reached(commit, open);
        /* The previous commit may have brought more bytes than this commit was asked for. */
        if (reached.bytes > open->safe_bytes) open_is_safe(open, reached.bytes, reached.offset);
    }
    log_mark_dirty(log);
}

static void commit_start(struct leat_log *log, struct log_open *open)
{
    LEAT_ASSERT_CMP(log->commit_count, <, LOG_COMMITS_MAX);
    unsigned next = (log->commit_first + log->commit_count) % LOG_COMMITS_MAX;
    struct log_commit *commit = &log->commits[next];
    log->commit_count++;
    commit->asked = (struct log_seal){open->writer.sealed_bytes, open->sealed_offset};
    if (LEAT_BUG(FOUND_BEFORE_CLOSE) && open->safe_bytes < open->start_end)
        commit->asked = (struct log_seal){open->start_end, open->seg->base_offset};
    commit->req.from_bytes = open->safe_bytes;
    commit->req.to_bytes = commit->asked.bytes;
    commit->req.follow = log_commits_max(log) > 1 && !log->old.seg;
    log_request(log, &commit->req, LEAT_STORE_COMMIT, open->seg, on_committed);
}

/* A second COMMIT while the first is in flight: the store begins the second as soon as the first has ended, with all
 * batches that were sealed by then, and need not wait for an answer and a request. */
static void commit_next(struct leat_log *log)
{
    const struct log_commit *last = &log->commits[log->commit_first];
    const struct log_open *head = &log->head;
    if (log->commit_count != 1 || log_commits_max(log) < 2 || log->old.seg) return;
    if (last->req.seg != head->seg || head->writer.sealed_bytes <= last->asked.bytes) return;
    commit_start(log, &log->head);
}

static bool is_unsafe(const struct log_open *open)
{
    return open->seg && open->safe_bytes < open->writer.sealed_bytes;
}

/* Which prefix has to become safe next. SUBTLE: the start entry of N+1 before the close entry of N
 * (which is sealed only then, see roll.c), and N's before more of N+1's. */
static struct log_open *unsafe_next(struct leat_log *log)
{
    if (LEAT_BUG(CLOSE_BEFORE_START) && is_unsafe(&log->old)) return &log->old;
    if (LEAT_BUG(DATA_BEFORE_CLOSE) && is_unsafe(&log->head)) return &log->head;
    if (log->old.seg) {
        if (log->head.safe_bytes < log->head.start_end) return &log->head;
        if (is_unsafe(&log->old)) return &log->old;
        if (!log_old_close_is_sealed(log)) return NULL;
    }
    return is_unsafe(&log->head) ? &log->head : NULL;
}

/* More writes than one in flight: what was sealed since the commit under way was asked for leaves
 * without waiting for its answer. Never while rolling: data of N+1 goes nowhere before the close entry
 * of N is everywhere (dissertation §4.4.2). */
static void send_ahead(struct leat_log *log)
{
    const struct log_open *head = &log->head;
    const struct log_commit *commit = &log->commits[log->commit_first];
    if (!log->commit_count || !log->store_port.ahead ||
        log->options.durability == LEAT_DURABILITY_DISK)
        return;
    if (log->old.seg || commit->req.seg != head->seg ||
        head->writer.sealed_bytes <= commit->asked.bytes)
        return;
    log->store_port.ahead(log->store_port.ctx, head->seg, head->writer.sealed_bytes);
}

void log_step_safe(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct log_open *open;
    while (!log->commit_count && log->state == LEAT_LOG_SERVING && !log_is_hibernated(log) &&
           (open = unsafe_next(log)) != NULL) {
        if (log->options.durability == LEAT_DURABILITY_DISK ||
            !log->store_port.safe_in_memory(log->store_port.ctx, open->seg)) {
            commit_start(log, open);
            return;
        }
        open_is_safe(open, open->writer.sealed_bytes, open->sealed_offset);
        log_step_close(log);
    }
    if (log->state != LEAT_LOG_SERVING || log_is_hibernated(log)) return;
    commit_next(log);
    send_ahead(log);
}

void log_fail_waiting(struct leat_log *log, leat_err rc)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&log->waiting)) != NULL) {
        struct leat_append *append = LEAT_CONTAINER(link, struct leat_append, waiting);
        append->on_acked(append, rc);
    }
}

static void append_answer(struct leat_append *append)
{
    leat_list_remove(&append->waiting);
    bool forgotten = append->duplicate && append->first_offset == UINT64_MAX;
    append->on_acked(append, forgotten ? LEAT_E_ALREADY_APPENDED : LEAT_OK);
}

static void duplicates_answer(struct leat_log *log)
{
    for (struct leat_list *it = log->waiting.next, *next; it != &log->waiting; it = next) {
        struct leat_append *append = LEAT_CONTAINER(it, struct leat_append, waiting);
        next = it->next;
        if (append->duplicate) append_answer(append);
    }
}

static void answer(struct leat_log *log, uint64_t acked)
{
    if (LEAT_BUG(DUPLICATE_BEFORE_ACK)) duplicates_answer(log);
    while (!leat_list_empty(&log->waiting)) {
        struct leat_append *append = LEAT_CONTAINER(log->waiting.next, struct leat_append, waiting);
        if (append->ack_position > acked) break;
        append_answer(append);
    }
}

void log_step_ack(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    uint64_t acked = log_acked(log);
    /* Data of N+1 waits until N's close entry is safe (dissertation §4.4.2, rule R2), and all data
     * of a new owner until the coordinator knows of its first segment (docs/stories.md 3). */
    struct log_open *upto = log->old.seg && !LEAT_BUG(DATA_BEFORE_CLOSE) ? &log->old : &log->head;
    if (upto->seg && (log_is_opened(log) || LEAT_BUG(ACK_BEFORE_OPENED)) &&
        log->state != LEAT_LOG_STOPPED) {
        upto->acked_bytes = upto->safe_bytes;
        if (upto->safe_offset > acked) {
            acked = upto->safe_offset;
            /* Pairs with the acquire load in leat_log_acked_offset(). */
            atomic_store_explicit(&log->acked_offset, acked, memory_order_release);
            log->options.events.on_acked(log->options.owner, log);
        }
    }
    answer(log, log_acked(log));
}
