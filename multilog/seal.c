/* SPDX-License-Identifier: Apache-2.0 */
/* Trailers: what was gathered is sealed, and the store is shown how far. */
#include "multilog/internal.h"

static void open_seal(struct leat_log *log, struct log_open *open)
{
    if (open->writer.used == open->writer.sealed_bytes) return;
    (void)leat_entry_seal(&open->writer, open->acked_bytes);
    open->sealed_offset = log->next_offset;
}

unsigned log_commits_max(const struct leat_log *log)
{
    if (log->options.durability != LEAT_DURABILITY_DISK || !log->store_port.commits) return 1;
    return log->store_port.commits < LOG_COMMITS_MAX ? log->store_port.commits : LOG_COMMITS_MAX;
}

/* The store may take along what was sealed since it was asked. Not while the log rolls (commit_start). There
 * is room for one more. */
static void log_show(struct log_open *open)
{
    struct log_seal seal = {open->writer.sealed_bytes, open->sealed_offset};
    if (open->seal_count && open->seals[open->seal_count - 1].bytes == seal.bytes) return;
    open->seals[open->seal_count++] = seal;
    /* Pairs with the acquire in the store (commit_follow()): all up to there is written. */
    atomic_store_explicit(&open->seg->sealed_bytes, seal.bytes, memory_order_release);
}

/* SUBTLE: what gathers in N+1 while the log rolls gets no trailer before N is closed on all its copies. Data in
 * N+1 is the sign of that to a recovery, wherever it is found, and it is found in more places than it was asked for.
 *  1. N is on X and B, N+1 on X and C. The commit of N's last run takes long; batches gather in N+1.
 *  2. N+1's start entry is asked for, and only that. But on X's disk its whole block is written, and what a killed
 *     process leaves in memory is all that was copied. X dies before the close entry of N is on B.
 *  3. X is up again, and C. X's N+1 holds data: it ends the log, and names N as X closed it. B's N, which is not
 *     closed, is no copy of that any more; X has the only one, and nobody makes another (recovery/prepare.c).
 *  4. X's disk is lost, and acked records with it that B had as well. */
bool log_may_seal(const struct leat_log *log)
{
    if (LEAT_BUG(FOUND_BEFORE_CLOSE)) return true;
    return !log->old.seg || LEAT_BUG(DATA_BEFORE_CLOSE);
}

/* SUBTLE: what was acked last is named by nothing that was written later, until this is.
 *  1. A run is committed and acked. Its own trailer says what was acked before it.
 *  2. A bit of the run flips on the disk, and the power goes. A scan ends in front of the run, as in front of one that
 *     was torn and acked to nobody.
 *  3. The log begins there again: acked records are gone without a word, and their offsets are given out anew.
 * A trailer behind it, once nothing more comes, tells the two apart: it is written by the care, a second later, so that
 * appends which follow each other never wait for it. */
void log_run_close(struct leat_log *log)
{
    struct log_open *head = &log->head;
    if (log->options.durability != LEAT_DURABILITY_DISK || LEAT_BUG(DAMAGE_IS_TORN)) return;
    if (!log_head_fits(log, 0) || log->old.seg || !log_is_opened(log) || log->commit_count) return;
    if (!leat_list_empty(&log->waiting) || head->writer.used == head->run_closed_bytes) return;
    if (head->acked_bytes != head->writer.used || head->writer.used == head->start_end) return;
    (void)leat_entry_seal(&head->writer, head->acked_bytes);
    head->sealed_offset = log->next_offset;
    head->run_closed_bytes = head->writer.used;
}

/* While as many commits are in flight as may be, batches gather; where the store takes along what comes
 * each turn's have a trailer. */
void log_step_seal(struct leat_log *log)
{
    if (!log->head.seg || log_is_parked(log) || !log_may_seal(log)) return;
    bool gathers = log->options.durability == LEAT_DURABILITY_DISK && log->commit_count;
    bool shows = gathers && log_commits_max(log) > 1 && !log->old.seg;
    if (gathers && !shows) return;
    if (shows && log->head.seal_count == LOG_SEALS_MAX) return;
    open_seal(log, &log->head);
    if (shows) log_show(&log->head);
}
