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
    LEAT_ASSERT_OWNER(log->options.actor);
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

/* SUBTLE: batches that gather in N+1 while the log rolls get no trailer before N is closed on all its copies. A
 * recovery takes data in N+1 as the sign that N is closed, on any node; and data may be on more nodes than were asked
 * to store it.
 *  1. N is on X and B, N+1 on X and C. The commit of N's last run takes long; batches gather in N+1.
 *  2. The log asks for N+1's start entry only. But X's disk writes the whole block of the entry, and a killed process
 *     leaves all copied bytes in memory. X dies before the close entry of N is on B.
 *  3. X is up again, and C. X's N+1 holds data: N+1 ends the log, and names N as X closed it. B's N, which is not
 *     closed, does not count as a copy of this N; X has the only copy, and no node makes another
 *     (recovery/prepare.c).
 *  4. X's disk is lost, and with it acked records that B had as well. */
bool log_may_seal(const struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
    if (LEAT_BUG(FOUND_BEFORE_CLOSE)) return true;
    return !log->old.seg || LEAT_BUG(DATA_BEFORE_CLOSE);
}

/* SUBTLE: no later entry says that the last run is acked, until a trailer after it does.
 *  1. A run is committed and acked. Its own trailer says how much was acked before the run.
 *  2. A bit of the run flips on the disk, and the power goes. A scan ends before the run, as before a torn run that
 *     was never acked.
 *  3. The log goes on there: acked records are gone without an error, and their offsets are given out anew.
 * A trailer after the run, once no batch follows, tells the two cases apart. The log's care writes this trailer a
 * second later, so appends in quick succession never wait for it. */
void log_run_close(struct leat_log *log)
{
    LEAT_ASSERT_OWNER(log->options.actor);
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
    LEAT_ASSERT_OWNER(log->options.actor);
    if (!log->head.seg || log_is_hibernated(log) || !log_may_seal(log)) return;
    bool gathers = log->options.durability == LEAT_DURABILITY_DISK && log->commit_count;
    bool shows = gathers && log_commits_max(log) > 1 && !log->old.seg;
    if (gathers && !shows) return;
    if (shows && log->head.seal_count == LOG_SEALS_MAX) return;
    open_seal(log, &log->head);
    if (shows) log_show(&log->head);
}
