/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage against a plain list of entries: appended, replaced from any index on, flushed, compacted, reset
 * and read again, in an order that dice draw; and each allocation that can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <raft.h>

#include "base/random.h"
#include "tests/coordinator/storage_rig.h"

enum { ENTRIES_MAX = 1500, LARGE = 70000 };

static struct {
    uint64_t first, last; /* entries that are there; last = first - 1: none */
    uint64_t durable;     /* up to here they are on the disk */
    struct {
        uint64_t term;
        uint32_t bytes;
        uint8_t fill;
    } entries[ENTRIES_MAX + 1];
} model;
static struct leat_xoshiro dice;
static uint64_t term;

static uint64_t below(uint64_t bound)
{
    return leat_xoshiro_below(&dice, bound);
}

static void on_durable(void *owner, uint64_t index, leat_err rc)
{
    (void)owner;
    assert_int_equal(rc, LEAT_OK);
    if (index > model.durable) model.durable = index;
}
static void on_snapshot(void *owner, leat_err rc)
{
    (void)owner;
    assert_int_equal(rc, LEAT_OK);
}

static void open_again(void)
{
    assert_int_equal(load(), LEAT_OK);
    raft_log.on_durable = on_durable;
    raft_log.on_snapshot = on_snapshot;
}

static void settle(void)
{
    while (fake_world_turn(world)) {
    }
}

static void expect_model(uint64_t last)
{
    uint64_t bytes = 0;
    assert_int_equal(leat_raft_log_last_index(&raft_log), last);
    assert_true(raft_log.start_index >= model.first || raft_log.entry_count > 0);
    for (uint64_t i = raft_log.start_index; i <= last; i++) {
        const struct leat_raft_entry *entry = leat_raft_log_get(&raft_log, i);
        assert_non_null(entry);
        bytes += entry->bytes;
        assert_int_equal(entry->term, model.entries[i].term);
        assert_int_equal(entry->bytes, model.entries[i].bytes);
        for (uint32_t k = 0; k < entry->bytes; k++)
            if (entry->data[k] != model.entries[i].fill) fail_msg("entry %u", (unsigned)i);
    }
    assert_int_equal(raft_log.entry_bytes, bytes);
    assert_null(leat_raft_log_get(&raft_log, last + 1));
    assert_null(leat_raft_log_get(&raft_log, raft_log.start_index - 1));
    for (uint32_t s = 1; s < raft_log.segment_count; s++)
        assert_int_equal(raft_log.segments[s].number, raft_log.segments[s - 1].number + 1);
}

static void append(uint64_t index)
{
    static uint8_t data[LARGE];
    const uint8_t fill = (uint8_t)(1 + below(255));
    uint32_t bytes = (uint32_t)below(below(150) ? 200 : LARGE);
    memset(data, fill, bytes);
    if (index <= model.last) { /* replaced by a newer leader */
        term++;
        assert_int_equal(leat_raft_log_vote(&raft_log, term, 0), LEAT_OK);
    }
    assert_int_equal(leat_raft_log_append(&raft_log, index, term, RAFT_COMMAND, data, bytes),
                     LEAT_OK);
    model.entries[index].term = term;
    model.entries[index].bytes = bytes;
    model.entries[index].fill = fill;
    model.last = index;
    if (model.durable >= index) model.durable = index - 1;
}

static void snapshot_and_compact(void)
{
    if (model.durable < model.first) return;
    uint64_t index = model.first + below(model.durable - model.first + 1);
    struct leat_raft_snapshot it = {.index = index,
                                    .term = model.entries[index].term,
                                    .conf_index = 1,
                                    .conf_bytes = sizeof one_voter,
                                    .data_bytes = 3};
    it.conf = leat_mem_copy(LEAT_MEM_COORDINATOR, one_voter, sizeof one_voter);
    it.data = leat_mem_copy(LEAT_MEM_COORDINATOR, "all", 3);
    assert_true(it.conf && it.data);
    leat_raft_log_snapshot_save(&raft_log, &it);
    settle();
    assert_int_equal(raft_log.snapshot.index, index);
    uint64_t to = model.first + below(index + 2 - model.first);
    assert_int_equal(leat_raft_log_compact(&raft_log, to), LEAT_OK);
    model.first = to;
    assert_int_equal(raft_log.start_index, to);
    if (raft_log.segment_count > 1) assert_true(raft_log.segments[0].last_index >= to);
}

/* All that was durable is there again; what was not may be, as far as a round had it. */
static void read_again(void)
{
    leat_raft_log_flush(&raft_log);
    settle();
    while (raft_log.written_index < model.last) {
        leat_raft_log_flush(&raft_log);
        settle();
    }
    assert_int_equal(model.durable, model.last);
    if (below(2)) raft_log.vote.formed = 0; /* killed: its mark is not noted on the way out */
    unload();
    open_again();
    expect_model(model.last);
}

static void storage_keeps_what_a_list_keeps(void **state)
{
    (void)state;
    unsigned compacted = 0, reread = 0, segments = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        if (seed > 1) again();
        leat_xoshiro_seed(&dice, seed);
        memset(&model, 0, sizeof model);
        model.first = 1;
        term = 2;
        open_again();
        assert_int_equal(leat_raft_log_form(&raft_log, NULL, 0, &error), LEAT_OK);
        assert_int_equal(leat_raft_log_vote(&raft_log, term, 0), LEAT_OK);
        const unsigned steps =
            seed % 4 ? 300 : 1200; /* some have more entries than there is room for at first */
        for (unsigned i = 0; i < steps && model.last < ENTRIES_MAX; i++) {
            journal_clear(&journal);
            uint64_t from = model.durable < model.first ? model.first : model.durable;
            if (from <= raft_log.snapshot.index)
                from = raft_log.snapshot.index + 1; /* those are committed */
            switch (below(seed % 4 ? 14 : 60)) {
            case 0:
                append(from + below(model.last + 2 - from));
                break;
            case 1:
                snapshot_and_compact(), compacted++;
                break;
            case 2:
                read_again(), reread++;
                break;
            case 3:
            case 4:
            case 5:
                leat_raft_log_flush(&raft_log);
                break;
            case 6:
            case 7:
                settle();
                break;
            default:
                append(model.last + 1);
                break;
            }
            expect_model(model.last);
            segments =
                raft_log.next_segment > segments ? (unsigned)raft_log.next_segment : segments;
        }
        settle();
        read_again();
        unload();
    }
    assert_true(compacted > 100 && reread > 100 && segments > 10);
}

/* A segment that a start found without a round says where the one before ended, as any does. */
static void segment_that_was_created_before_says_where_the_last_ended(void **state)
{
    (void)state;
    struct segment one = segment_of(1, 0), two = segment_of(2, 0);
    segment_round(&one, 1, 1, 3);
    memset(two.bytes, 0, 64);
    segment_write(&one, SEGMENT);
    segment_write(&two, SEGMENT);
    vote_is_plain(1, 1, 0);
    open_again();
    assert_int_equal(leat_raft_log_append(&raft_log, 2, 3, RAFT_COMMAND, "two", 3), LEAT_OK);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    uint8_t header[64];
    segment_put(header, 2, segment_end(&one));
    assert_memory_equal(fake_world_file(world, "raft/log-00000000000000000002")->now, header, 64);
    unload();
    open_again();
    assert_int_equal(leat_raft_log_last_index(&raft_log), 2);
    unload();
}

/* Two segments that end at the same byte: the mark also says which segment it means. */
static void mark_is_of_a_segment_and_a_byte(void **state)
{
    (void)state;
    static uint8_t data[SEGMENT - 200];
    open_again();
    assert_int_equal(leat_raft_log_form(&raft_log, NULL, 0, &error), LEAT_OK);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(leat_raft_log_append(&raft_log, i, 1, RAFT_COMMAND, data, sizeof data),
                         LEAT_OK);
        assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
        assert_true(leat_raft_log_mark_wanted(&raft_log));
        assert_int_equal(leat_raft_log_mark(&raft_log), LEAT_OK);
        assert_false(leat_raft_log_mark_wanted(&raft_log));
        assert_int_equal(raft_log.vote.durable_segment, i);
        assert_int_equal(raft_log.vote.durable_end, raft_log.segments[0].end);
    }
    unload();
}

/* Nothing has changed when memory lacks: the same is tried again, and goes. */
static void lack_of_memory_changes_nothing(void **state)
{
    (void)state;
    static uint8_t data[LARGE];
    unsigned failed = 0;
    open_again();
    assert_int_equal(leat_raft_log_form(&raft_log, NULL, 0, &error), LEAT_OK);
    assert_int_equal(leat_raft_log_vote(&raft_log, 1, 0), LEAT_OK);
    for (uint64_t i = 1; i <= 600; i++) {
        const size_t bytes = i % 200 ? 10 : LARGE;
        bool lacks = true;
        for (uint64_t n = 1; lacks; n++) {
            leat_mem_fail_at(n);
            leat_err rc = leat_raft_log_append(&raft_log, i, 1, RAFT_COMMAND, data, bytes);
            lacks = leat_mem_calls() >= n;
            leat_mem_fail_at(0);
            assert_int_equal(rc, lacks ? LEAT_E_NO_MEMORY : LEAT_OK);
            assert_int_equal(raft_log.entry_count, lacks ? i - 1 : i);
            failed += lacks;
        }
        lacks = true;
        for (uint64_t n = 1; lacks; n++) {
            leat_mem_fail_at(n);
            leat_err rc = leat_raft_log_flush_now(&raft_log);
            lacks = leat_mem_calls() >= n;
            leat_mem_fail_at(0);
            assert_int_equal(rc, lacks ? LEAT_E_NO_MEMORY : LEAT_OK);
            assert_int_equal(raft_log.written_index, lacks ? i - 1 : i);
            assert_int_equal(raft_log.failed, LEAT_OK);
            failed += lacks;
        }
        journal_clear(&journal);
    }
    assert_true(failed > 600);
    unload();
    open_again();
    assert_int_equal(leat_raft_log_last_index(&raft_log), 600);
    unload();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOAD_TEST(storage_keeps_what_a_list_keeps),
        LOAD_TEST(segment_that_was_created_before_says_where_the_last_ended),
        LOAD_TEST(mark_is_of_a_segment_and_a_byte),
        LOAD_TEST(lack_of_memory_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
