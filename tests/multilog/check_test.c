/* SPDX-License-Identifier: Apache-2.0 */
/* What is asserted of a log between two turns: each rule is broken once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "poke.h"
#include "tests/broken.h"

/* One closed segment, and a head with one record more. */
static void rolled(void)
{
    poke_begin(watch_begun(LEAT_DURABILITY_MEMORY));
    it->roll_wanted = true;
    log_mark_dirty(it);
    fake_turn_end(fake);
    fake_settle(fake);
    (void)put(fake, 1, 100);
    fake_settle(fake);
    assert_int_equal(it->slot_count, 2);
    assert_int_equal(it->closed_bytes, slot(0)->seg->prefix_id.bytes);
    assert_true(it->head.safe_bytes > 0 && !it->old.seg && !it->dirty);
}

/* The log is sound; then something of it is changed. */
#define BROKEN(rule, ...)                                                                          \
    do {                                                                                           \
        rolled();                                                                                  \
        assert_broken(NULL, leat_log_check(it, false));                                            \
        __VA_ARGS__;                                                                               \
        assert_broken(rule, leat_log_check(it, false));                                            \
        poke_end();                                                                                \
    } while (0)

static void turns_are_checked(void **state)
{
    (void)state;
    BROKEN("!log->in_step", it->in_step = true);
    BROKEN("log->dirty == queued", it->dirty = true); /* and nobody was told */
    BROKEN("!log->on_end || log->ending != LOG_LIVES", it->on_end = (void *)it);
    BROKEN(NULL, it->ending = LOG_RELEASING, it->resting = true, it->head.seg = NULL);
    BROKEN(NULL, it->ending = LOG_DELETING, it->head.seg = NULL);
    BROKEN("closed_bytes == log->closed_bytes", it->ending = LOG_RELEASING, it->closed_bytes++);
    BROKEN("closed_bytes == log->closed_bytes", it->resting = true, it->closed_bytes++);
    BROKEN("!log->old.seg || log->head.seg", it->old = it->head, it->old.index = NULL,
           it->head.seg = NULL);
}

static void rows_are_checked(void **state)
{
    (void)state;
    BROKEN("seg != NULL && seg->log_pointer == log", slot(0)->seg->log_pointer = NULL);
    BROKEN("seg != NULL && seg->log_pointer == log", slot(0)->seg = NULL);
    BROKEN("!slot->evicting || slot->closed", slot(1)->evicting = true);
    BROKEN("slot->repair == LOG_REPAIR_NONE || slot->closed", slot(1)->repair = LOG_REPAIR_LOST);
    BROKEN("slot->closed != (seg == log->head.seg || seg == log->old.seg)",
           slot(0)->closed = false);
    BROKEN("slot->closed != (seg == log->head.seg || seg == log->old.seg)", slot(1)->closed = true);
    BROKEN("slot->closed || seg->integrity == LEAT_INTEGRITY_OK",
           slot(1)->seg->integrity = LEAT_INTEGRITY_TORN);
    BROKEN("seg->id.v < log_slot_at(log, i + 1)->seg->id.v", slot(0)->seg->id.v++);
    BROKEN("log_slot_at(log, count - 1)->seg->id.v < log->next_segment", it->next_segment--);
    BROKEN("count > 0 && log_slot_at(log, count - 1)->seg == log->head.seg", it->slot_count = 0,
           it->closed_bytes = it->memory_bytes = 0);
}

static void sums_are_checked(void **state)
{
    (void)state;
    BROKEN("closed_bytes == log->closed_bytes", it->closed_bytes++);
    BROKEN("memory_bytes == log->memory_bytes", it->memory_bytes++);
    BROKEN("reads == log->reads_in_flight + log->warming", it->reads_in_flight++);
    BROKEN("reads == log->reads_in_flight + log->warming", slot(0)->file_reads++);
    BROKEN(NULL, it->closed_bytes++, slot(0)->changing = true); /* not known now */
}

static void bytes_and_offsets_are_checked(void **state)
{
    (void)state;
    BROKEN("open->acked_bytes <= open->safe_bytes", it->head.acked_bytes++);
    BROKEN("open->acked_bytes <= open->safe_bytes", it->old = it->head, it->old.index = NULL,
           it->old.acked_bytes++);
    BROKEN("open->safe_bytes <= open->writer.sealed_bytes",
           it->head.safe_bytes = it->head.writer.sealed_bytes + 1);
    BROKEN("open->writer.sealed_bytes <= open->writer.used",
           it->head.writer.sealed_bytes = it->head.writer.used + 1);
    BROKEN("open->safe_offset <= open->sealed_offset", it->head.sealed_offset--);
    BROKEN("open->sealed_offset <= log->next_offset", it->next_offset--);
    BROKEN("open->seals[i].bytes >= i ? open->seals[i - 1].bytes : open->safe_bytes",
           it->head.seal_count = 1, it->head.seals[0].bytes = it->head.safe_bytes - 1);
    BROKEN("open->seals[i].bytes >= i ? open->seals[i - 1].bytes : open->safe_bytes",
           it->head.seal_count = 2, it->head.seals[0].bytes = it->head.safe_bytes + 2,
           it->head.seals[1].bytes = it->head.safe_bytes + 1);
    BROKEN("log->first_offset <= log_acked(log)", it->first_offset = it->next_offset + 1);
    BROKEN("log_acked(log) <= upto->seg ? upto->sealed_offset : log->next_offset",
           it->acked_offset++);
    BROKEN("log->first_segment <= log->trim_segment", it->trim_segment = 0, it->first_segment = 1);
    BROKEN("log->trim_segment <= log->next_segment", it->trim_segment = it->next_segment + 1);
    BROKEN("!log->trim_written || log_trim_is_pending(log)", it->trim_written = true);
}

static void requests_are_checked(void **state)
{
    (void)state;
    static const char waits[] =
        "log->dirty || (first->ack_position > log_acked(log) && log->state != LEAT_LOG_STOPPED)";
    static const char next[] =
        "!log->next || (!log->reserving && log->next->id.v == log->next_segment)";
    struct leat_segment seg = {.id = {9}};
    BROKEN(NULL, one_waits(it->next_offset + 1));
    BROKEN(waits, one_waits(it->next_offset));
    BROKEN(waits, one_waits(it->next_offset + 1), it->state = LEAT_LOG_STOPPED);
    BROKEN("seg == log->head.seg || seg == log->old.seg", it->commit_count = 1,
           it->commits[it->commit_first].req.seg = slot(0)->seg);
    BROKEN(next, it->next = &seg, seg.id.v = it->next_segment + 1, slot(0)->changing = true);
    BROKEN(next, it->next = &seg, seg.id.v = it->next_segment, it->reserving = true,
           slot(0)->changing = true);
    static const char hibernating[] = "log->hibernating == LOG_AWAKE || (log->head.seg && "
                                      "!log->old.seg && log->commit_count == 0)";
    BROKEN(hibernating, it->hibernating = LOG_HIBERNATED, it->old = it->head, it->old.index = NULL);
    BROKEN(hibernating, it->hibernating = LOG_HIBERNATING, it->commit_count = 1,
           it->commits[it->commit_first].req.seg = it->head.seg);
    BROKEN("log->restored == LOG_WARM || !log->head.seg", it->restored = LOG_UNLOADED);
    BROKEN("!log->warming || log_is_unloaded(log)", it->warming = true, slot(0)->file_reads++);
    BROKEN("log->opened == LOG_UNOPENED || log->head.seg", it->head.seg = NULL,
           slot(1)->closed = slot(0)->changing = true);
}

/* Goal: a log takes the steps of the diagrams in multilog/README.md and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    static struct leat_log log;
    static const char *const states[] = {[LEAT_LOG_SERVING] = ".WDS",
                                         [LEAT_LOG_WAITING] = "...S",
                                         [LEAT_LOG_DAMAGED] = "...S",
                                         [LEAT_LOG_STOPPED] = "...."};
    assert_steps(log.state, states, "follow[log->state] & 1u << to",
                 log_state_enter(&log, step_to, LEAT_E_DISK, "for a test"));
    static const char *const opened[] = {[LOG_UNOPENED] = ".O..",
                                         [LOG_OPENING] = "U.PO",
                                         [LOG_OPENING_PAUSED] = "U...",
                                         [LOG_OPENED] = "...."};
    assert_steps(log.opened, opened, "follow[log->opened] & 1u << to",
                 log_opened_enter(&log, step_to));
    static const char *const hibernating[] = {[LOG_AWAKE] = ".P...",
                                              [LOG_HIBERNATING] = "A.HP.",
                                              [LOG_HIBERNATED_HERE] = "...P.",
                                              [LOG_HIBERNATED] = "....R",
                                              [LOG_RESUMING] = "A..P."};
    assert_steps(log.hibernating, hibernating, "follow[log->hibernating] & 1u << to",
                 log_hibernating_enter(&log, step_to));
    static const char *const restored[] = {[LOG_WARM] = "W...",
                                           [LOG_FRONT_UNKNOWN] = "..UC",
                                           [LOG_FRONT_UNTOLD] = "..UC",
                                           [LOG_UNLOADED] = "W..."};
    assert_steps(log.restored, restored, "follow[log->restored] & 1u << to",
                 log_restored_enter(&log, step_to));
    static const char *const ending[] = {[LOG_LIVES] = ".SRD",
                                         [LOG_STOPPING] = "L.RD",
                                         [LOG_RELEASING] = "...D",
                                         [LOG_DELETING] = "...."};
    log.dirty = true;
    assert_steps(log.ending, ending, "follow[log->ending] & 1u << to",
                 log_ending_enter(&log, step_to, NULL, NULL));
    static const char *const backfill[] = {[LOG_BACKFILL_NONE] = ".F..",
                                           [LOG_BACKFILL_FOLLOWS] = "..L.",
                                           [LOG_BACKFILL_LOOKED] = "...A",
                                           [LOG_BACKFILL_AGAIN] = "..L."};
    assert_steps(log.backfill, backfill, "follow[log->backfill] & 1u << to",
                 log_backfill_enter(&log, step_to));
    static const char *const skip[] = {[LOG_SKIP_NONE] = ".F...",
                                       [LOG_SKIP_FRONT] = "..G..",
                                       [LOG_SKIP_GOES] = "N..A.",
                                       [LOG_SKIP_ASKED] = "..G.F",
                                       [LOG_SKIP_FAILED] = "N...."};
    assert_steps(log.skip, skip, "follow[log->skip] & 1u << to", log_skip_enter(&log, step_to));
    static struct log_slot slot;
    static const char *const repair[] = {[LOG_REPAIR_NONE] = ".S.L.",
                                         [LOG_REPAIR_SOUGHT] = "N.RL.",
                                         [LOG_REPAIR_REFUSED] = "N.RL.",
                                         [LOG_REPAIR_LOST] = "N..LS",
                                         [LOG_REPAIR_LOST_SOUGHT] = "N.RL."};
    assert_steps(slot.repair, repair, "follow[slot->repair] & 1u << to",
                 log_slot_repair_enter(&slot, step_to));
}

/* Goal: a segment's integrity takes the steps of the diagram in multilog/README.md and no others. */
static void integrity_steps_are_checked(void **state)
{
    (void)state;
    static struct leat_segment seg;
    static const char *const may[] = {[LEAT_INTEGRITY_OK] = "OTCM",
                                      [LEAT_INTEGRITY_TORN] = "OTC.",
                                      [LEAT_INTEGRITY_CORRUPT] = "O.C.",
                                      [LEAT_INTEGRITY_MISSING] = "O..M"};
    assert_steps(seg.integrity, may, "follow[seg->integrity] & 1u << to",
                 leat_segment_integrity_enter(&seg, step_to));
    for (unsigned i = 0; i < sizeof may / sizeof *may; i++) {
        seg.integrity = i;
        leat_segment_damage_found(&seg);
        assert_true(leat_segment_is_damaged(&seg));
        assert_int_equal(seg.integrity, i == LEAT_INTEGRITY_MISSING ? i : LEAT_INTEGRITY_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_checked),    cmocka_unit_test(rows_are_checked),
        cmocka_unit_test(sums_are_checked),     cmocka_unit_test(bytes_and_offsets_are_checked),
        cmocka_unit_test(requests_are_checked), cmocka_unit_test(integrity_steps_are_checked),
        cmocka_unit_test(steps_are_checked),
    };
    return cmocka_run_group_tests_name("multilog check", tests, NULL, NULL);
}
