/* From gathered to acked: seal, make safe, publish, answer. */
#include "multilog/internal.h"

static void open_seal(struct leat_log *log, struct log_open *open)
{
    if (open->writer.used == open->writer.sealed_bytes) return;
    (void)leat_entry_seal(&open->writer, open->acked_bytes);
    open->sealed_offset = log->next_offset;
}

/* While a commit is in flight batches gather; they get one trailer when the next one starts. */
void log_step_seal(struct leat_log *log)
{
    if (!log->head.seg || log_is_parked(log)) return;
    bool gathers = log->options.durability == LEAT_DURABILITY_DISK && log->committing;
    if (!gathers) open_seal(log, &log->head);
}

struct log_open *log_open_of(struct leat_log *log, const struct leat_segment *seg)
{
    if (log->head.seg == seg) return &log->head;
    if (log->old.seg == seg) return &log->old;
    return NULL;
}

static void open_is_safe(struct log_open *open, uint32_t bytes, uint64_t offset)
{
    LEAT_ASSERT_CMP(bytes, >=, open->safe_bytes);
    LEAT_ASSERT_CMP(bytes, <=, open->writer.sealed_bytes);
    open->safe_bytes = bytes;
    open->safe_offset = offset;
}

static void on_committed(struct leat_keep *keep)
{
    struct leat_log *log = keep->owner;
    log->committing = false;
    if (keep->rc == LEAT_E_STALE_EPOCH) {
        log_fail(log, keep->rc, "another node owns the log");
    } else if (keep->rc != LEAT_OK) {
        log_fail(log, LEAT_E_DISK, "a flush of the log's head failed, which is final");
    } else {
        struct log_open *open = log_open_of(log, keep->seg);
        LEAT_ASSERT(open != NULL);
        open_is_safe(open, log->commit_to, log->commit_offset);
    }
    log_mark_dirty(log);
}

/* SUBTLE: while the log rolls the head's start entry goes alone, whatever was sealed behind it
 * meanwhile.
 *  1. N is on X and B, N+1 on X and C. The commit of N's last run takes long; batches gather in N+1.
 *  2. The start entry leaves together with them. X dies before the close entry of N is on B.
 *  3. Only C is up. Its N+1 holds data, which is the sign that N is closed on all its copies: it ends the
 *     log, and names N as X closed it. B's N, which is not closed, is no copy of that any more; X's is the
 *     only one, if X comes back. */
static void commit_start(struct leat_log *log, struct log_open *open)
{
    bool start = open == &log->head && log->old.seg && open->safe_bytes < open->start_end;
    log->committing = true;
    log->commit_to = start ? open->start_end : open->writer.sealed_bytes;
    log->commit_offset = start ? open->seg->base_offset : open->sealed_offset;
    log->commit.from_bytes = open->safe_bytes;
    log->commit.to_bytes = log->commit_to;
    log_request(log, &log->commit, LEAT_KEEP_COMMIT, open->seg, on_committed);
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
        if (!log->old_close_sealed) return NULL;
    }
    return is_unsafe(&log->head) ? &log->head : NULL;
}

/* More writes than one in flight: what was sealed since the commit under way was asked for leaves
 * without waiting for its answer. Never while rolling: data of N+1 goes nowhere before the close entry
 * of N is everywhere (dissertation §4.4.2). */
static void send_ahead(struct leat_log *log)
{
    const struct log_open *head = &log->head;
    if (!log->committing || !log->keeper.ahead || log->options.durability == LEAT_DURABILITY_DISK)
        return;
    if (log->old.seg || log->commit.seg != head->seg || head->writer.sealed_bytes <= log->commit_to)
        return;
    log->keeper.ahead(log->keeper.ctx, head->seg, head->writer.sealed_bytes);
}

void log_step_safe(struct leat_log *log)
{
    struct log_open *open;
    while (!log->committing && log->state == LEAT_LOG_SERVING && !log_is_parked(log) &&
           (open = unsafe_next(log)) != NULL) {
        if (log->options.durability == LEAT_DURABILITY_DISK ||
            !log->keeper.safe_in_memory(log->keeper.ctx, open->seg)) {
            commit_start(log, open);
            return;
        }
        open_is_safe(open, open->writer.sealed_bytes, open->sealed_offset);
        log_step_close(log);
    }
    if (log->state == LEAT_LOG_SERVING) send_ahead(log);
}

void log_fail_waiting(struct leat_log *log, leat_err rc)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&log->waiting)) != NULL) {
        struct leat_append *append = LEAT_CONTAINER(link, struct leat_append, waiting);
        append->on_acked(append, rc);
    }
}

static void answer(struct leat_log *log, uint64_t acked)
{
    while (!leat_list_empty(&log->waiting)) {
        struct leat_append *append = LEAT_CONTAINER(log->waiting.next, struct leat_append, waiting);
        if (append->ack_position > acked && !(append->duplicate && LEAT_BUG(DUPLICATE_BEFORE_ACK)))
            break;
        leat_list_remove(&append->waiting);
        bool forgotten = append->duplicate && append->first_offset == UINT64_MAX;
        append->on_acked(append, forgotten ? LEAT_E_ALREADY_APPENDED : LEAT_OK);
    }
}

void log_step_ack(struct leat_log *log)
{
    uint64_t acked = log_acked(log);
    /* Data of N+1 waits until N's close entry is safe (dissertation §4.4.2, rule R2), and all data
     * of a new owner until the coordinator knows of its first segment (docs/stories.md 3). */
    struct log_open *upto = log->old.seg && !LEAT_BUG(DATA_BEFORE_CLOSE) ? &log->old : &log->head;
    if (upto->seg && (log->opened || LEAT_BUG(ACK_BEFORE_OPENED)) &&
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
