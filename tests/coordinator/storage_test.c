/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage, writing: the operations of the disk in their order, the bytes, and the state after the failure of any
 * operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <raft.h>

#include "base/mem.h"
#include "coordinator/raft/log.h"
#include "tests/coordinator/fake.h"
#include "tests/coordinator/journal.h"
#include "tests/coordinator/raft_bytes.h"

enum { SEGMENT = 4096 };
#define VOTE_WRITTEN "write vote 0+4096, sync vote, write vote 4096+4096, sync vote"

static struct fake_world *world;
static struct journal journal;
static struct leat_raft_log raft_log;
static struct leat_error error;
static uint64_t durable_index;
static unsigned durable_calls, saved_calls;
static leat_err durable_rc, saved_rc;

static void on_durable(void *owner, uint64_t index, leat_err rc)
{
    assert_ptr_equal(owner, &world);
    durable_index = index;
    durable_rc = rc;
    durable_calls++;
}
static void on_snapshot(void *owner, leat_err rc)
{
    assert_ptr_equal(owner, &world);
    saved_rc = rc;
    saved_calls++;
}

static leat_err log_open(uint64_t segment_bytes, bool *out_new)
{
    leat_err rc = leat_raft_log_open(&raft_log, &journal.disk, segment_bytes, out_new, &error);
    raft_log.on_durable = on_durable;
    raft_log.on_snapshot = on_snapshot;
    raft_log.owner = &world;
    return rc;
}

static int begin(void **state)
{
    (void)state;
    world = calloc(1, sizeof *world);
    assert_non_null(world);
    fake_world_init(world, 1);
    journal_init(&journal, &world->disk);
    durable_calls = saved_calls = 0;
    memset(&raft_log, 0, sizeof raft_log);
    return 0;
}
static int finish(void **state)
{
    (void)state;
    fake_world_fini(world);
    free(world);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
    return 0;
}

static void form(void)
{
    bool is_new = false;
    const struct leat_raft_entry first = {1, RAFT_CHANGE, sizeof one_voter, (uint8_t *)one_voter};
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    assert_true(is_new);
    assert_int_equal(leat_raft_log_form(&raft_log, &first, 1, &error), LEAT_OK);
    journal_clear(&journal);
}

#define expect_calls(expected)                                                                     \
    do {                                                                                           \
        assert_string_equal(journal.text, expected);                                               \
        journal_clear(&journal);                                                                   \
    } while (0)

static void append(uint64_t index, uint64_t term, const char *text)
{
    assert_int_equal(leat_raft_log_append(&raft_log, index, term, RAFT_COMMAND, text, strlen(text)),
                     LEAT_OK);
}

static void settle(void)
{
    while (fake_world_turn(world)) {
    }
}

/* ---- which operations ---- */

/* The directory that holds raft/ is synced too, and a file's content is durable before its name counts. */
static void forming_makes_all_of_it_durable_in_order(void **state)
{
    (void)state;
    bool is_new = false;
    const struct leat_raft_entry first = {1, RAFT_CHANGE, sizeof one_voter, (uint8_t *)one_voter};
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    assert_true(is_new);
    expect_calls("make raft/, list raft/");
    assert_int_equal(leat_raft_log_form(&raft_log, &first, 1, &error), LEAT_OK);
    expect_calls("create vote.new, allocate vote.new 8192, write vote.new 0+4096, sync vote.new, "
                 "write vote.new 4096+4096, "
                 "sync vote.new, close vote.new, rename vote.new vote, sync raft/, open vote, sync "
                 "raft/, sync ./, "
                 "create log-1, allocate log-1 4096, sync raft/, write log-1 0+168, sync "
                 "log-1, " VOTE_WRITTEN);
    assert_int_equal(raft_log.vote.term, 1);
    assert_int_equal(raft_log.vote.voted_for, 0);
    assert_int_equal(raft_log.vote.first_segment, 1);
    assert_int_equal(raft_log.vote.durable_segment, 1);
    assert_int_equal(raft_log.vote.durable_end, 168);
    assert_int_equal(raft_log.vote.formed, 1);
    assert_int_equal(raft_log.vote.sequence, 2);
    assert_int_equal(leat_raft_log_vote(&raft_log, 7, 3), LEAT_OK);
    expect_calls(VOTE_WRITTEN);
    leat_raft_log_close(&raft_log);
    expect_calls("close log-1, close vote"); /* nothing to note */
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    assert_false(is_new);
    expect_calls("make raft/, list raft/, open vote, read vote 0+4096, read vote 4096+4096, sync "
                 "vote, sync raft/, open log-1, "
                 "read log-1 0+8388608, sync log-1");
    assert_int_equal(raft_log.vote.sequence, 3);
    assert_int_equal(raft_log.vote.term, 7);
    assert_int_equal(raft_log.vote.voted_for, 3);
    assert_int_equal(raft_log.written_index, 1);
    assert_int_equal(raft_log.next_segment, 2);
    leat_raft_log_close(&raft_log);
    assert_int_equal(journal.files_open, 0);
}

/* A voter that joins has no entry, and has promised nothing. */
static void joining_writes_no_entry(void **state)
{
    (void)state;
    bool is_new = false;
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    journal_clear(&journal);
    assert_int_equal(leat_raft_log_form(&raft_log, NULL, 0, &error), LEAT_OK);
    expect_calls("create vote.new, allocate vote.new 8192, write vote.new 0+4096, sync vote.new, "
                 "write vote.new 4096+4096, "
                 "sync vote.new, close vote.new, rename vote.new vote, sync raft/, open vote, sync "
                 "raft/, sync ./, " VOTE_WRITTEN);
    assert_int_equal(raft_log.vote.term, 0);
    assert_int_equal(raft_log.vote.formed, 1);
    assert_int_equal(raft_log.vote.durable_end, 0);
    assert_int_equal(raft_log.segment_count, 0);
    leat_raft_log_close(&raft_log);
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    assert_false(is_new);
    assert_int_equal(raft_log.start_index, 1);
    assert_int_equal(raft_log.written_index, 0);
    leat_raft_log_close(&raft_log);
}

/* The files of a formation that was cut off are removed, and their numbers are not used again. */
static void forming_that_was_cut_off_is_begun_anew(void **state)
{
    (void)state;
    bool is_new = false;
    form();
    append(2, 1, "second");
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    raft_log.vote.formed = 0;
    assert_int_equal(leat_raft_log_vote(&raft_log, 1, 0), LEAT_OK);
    uint64_t sequence = raft_log.vote.sequence;
    journal_clear(&journal);
    leat_raft_log_close(&raft_log);
    expect_calls("close log-1, close vote");
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    assert_true(is_new);
    expect_calls("make raft/, list raft/, open vote, read vote 0+4096, read vote 4096+4096, sync "
                 "vote, remove log-1, sync raft/");
    const struct leat_raft_entry first = {1, RAFT_CHANGE, sizeof one_voter, (uint8_t *)one_voter};
    assert_int_equal(leat_raft_log_form(&raft_log, &first, 1, &error), LEAT_OK);
    expect_calls(
        VOTE_WRITTEN
        ", sync raft/, sync ./, create log-1, allocate log-1 4096, sync raft/, write log-1 0+168, "
        "sync log-1, " VOTE_WRITTEN);
    assert_int_equal(raft_log.vote.sequence, sequence + 2);
    leat_raft_log_close(&raft_log);
}

/* One round at a time; entries that come meanwhile go into the next round. */
static void rounds_are_written_and_synced_one_behind_the_other(void **state)
{
    (void)state;
    form();
    leat_raft_log_flush(&raft_log); /* nothing to write */
    expect_calls("");
    append(2, 1, "two");
    append(3, 1, "");
    leat_raft_log_flush(&raft_log);
    expect_calls("write log-1 168+120, sync log-1");
    assert_true(raft_log.writing);
    append(4, 1, "four");
    leat_raft_log_flush(&raft_log);
    expect_calls("");
    assert_int_equal(raft_log.written_index, 3);
    assert_int_equal(durable_calls, 0);
    settle();
    assert_int_equal(durable_calls, 1);
    assert_int_equal(durable_index, 3);
    assert_int_equal(durable_rc, LEAT_OK);
    assert_int_equal(raft_log.segments[0].last_index, 3);
    assert_int_equal(raft_log.segments[0].end, 288);
    leat_raft_log_flush(&raft_log);
    expect_calls("write log-1 288+88, sync log-1");
    settle();
    assert_int_equal(durable_calls, 2);
    assert_int_equal(durable_index, 4);
    assert_true(leat_raft_log_mark_wanted(&raft_log));
    assert_int_equal(leat_raft_log_mark(&raft_log), LEAT_OK);
    expect_calls(VOTE_WRITTEN);
    assert_false(leat_raft_log_mark_wanted(&raft_log));
    assert_int_equal(raft_log.vote.durable_segment, 1);
    assert_int_equal(raft_log.vote.durable_end, 376);
    leat_raft_log_close(&raft_log);
}

/* An entry that is cut while its round is in flight is not reported as durable under its index. */
static void entry_cut_in_flight_is_not_told_durable(void **state)
{
    (void)state;
    form();
    assert_int_equal(leat_raft_log_vote(&raft_log, 2, 0), LEAT_OK);
    for (uint64_t i = 2; i <= 5; i++)
        append(i, 1, "old");
    leat_raft_log_flush(&raft_log);
    append(4, 2, "new");
    assert_int_equal(raft_log.written_index, 3);
    settle();
    assert_int_equal(durable_index, 3);
    assert_int_equal(raft_log.segments[0].last_index, 5); /* frames of them are there */
    leat_raft_log_flush(&raft_log);
    settle();
    assert_int_equal(durable_index, 4);
    append(5, 2, "behind all");
    leat_raft_log_flush(&raft_log);
    append(6, 2, "nothing is cut");
    settle();
    assert_int_equal(durable_index, 5);
    assert_int_equal(raft_log.written_index, 5);
    leat_raft_log_flush(&raft_log);
    append(6, 2, "the last of its round, and the first");
    settle();
    assert_int_equal(durable_index, 5);
    assert_int_equal(raft_log.written_index, 5);
    leat_raft_log_close(&raft_log);
    bool is_new;
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    assert_int_equal(leat_raft_log_last_index(&raft_log), 6); /* as it was when its round began */
    assert_memory_equal(leat_raft_log_get(&raft_log, 4)->data, "new", 3);
    assert_int_equal(leat_raft_log_get(&raft_log, 4)->term, 2);
    assert_int_equal(leat_raft_log_get(&raft_log, 3)->term, 1);
    leat_raft_log_close(&raft_log);
}

/* ---- which bytes ---- */

static void log_is_written_byte_for_byte(void **state)
{
    (void)state;
    uint8_t bytes[SEGMENT];
    form();
    append(2, 1, "sevenby");
    append(3, 5, "eight by");
    append(4, 5, "nine byte");
    leat_raft_log_flush(&raft_log);
    settle();
    uint8_t *first = segment_put(bytes, 1, 0);
    uint8_t *at = frame_put(first + 48, 1, 1, RAFT_CHANGE, one_voter, sizeof one_voter);
    round_seal(first, 1, 64, at, 1, 1);
    uint8_t *second = at;
    at = frame_put(second + 48, 2, 1, RAFT_COMMAND, "sevenby", 7);
    at = frame_put(at, 3, 5, RAFT_COMMAND, "eight by", 8);
    at = frame_put(at, 4, 5, RAFT_COMMAND, "nine byte", 9);
    round_seal(second, 1, (uint64_t)(second - bytes), at, 3, 2);
    const struct fake_inode *file = fake_world_file(world, "raft/log-00000000000000000001");
    assert_non_null(file);
    assert_int_equal(file->bytes, SEGMENT);
    assert_memory_equal(file->now, bytes, (size_t)(at - bytes));
    for (size_t i = (size_t)(at - bytes); i < SEGMENT; i++)
        assert_int_equal(file->now[i], 0);
    assert_int_equal(leat_raft_log_vote(&raft_log, 6, 9), LEAT_OK);
    uint8_t vote[4096];
    vote_put(vote, &(struct leat_raft_vote_state){.sequence = 3,
                                                  .term = 6,
                                                  .voted_for = 9,
                                                  .first_segment = 1,
                                                  .durable_segment = 1,
                                                  .durable_end = 168,
                                                  .formed = 1});
    file = fake_world_file(world, "raft/vote");
    assert_int_equal(file->bytes, 8192);
    assert_memory_equal(file->now, vote, 4096);
    assert_memory_equal(file->now + 4096, vote, 4096);
    leat_raft_log_close(&raft_log);
}

/* A segment takes a round that ends at the segment's end; a round with one byte more goes into the next segment, which
 * says where this segment ended. */
static void segment_is_filled_to_its_last_byte(void **state)
{
    (void)state;
    static uint8_t data[SEGMENT];
    for (unsigned over = 0; over < 2; over++) {
        if (over) assert_int_equal(begin(NULL), 0);
        form();
        size_t room = SEGMENT - 168 - 48 - 32;
        assert_int_equal(leat_raft_log_append(&raft_log, 2, 1, RAFT_COMMAND, data, room + 8 * over),
                         LEAT_OK);
        leat_raft_log_flush(&raft_log);
        settle();
        if (!over) {
            expect_calls("write log-1 168+3928, sync log-1");
            assert_int_equal(raft_log.segments[0].end, SEGMENT);
        } else {
            expect_calls(
                "create log-2, allocate log-2 4096, sync raft/, write log-2 0+4000, sync log-2");
            const struct fake_inode *file = fake_world_file(world, "raft/log-00000000000000000002");
            uint8_t header[64];
            (void)segment_put(header, 2, 168);
            assert_memory_equal(file->now, header, 64);
            assert_int_equal(raft_log.segments[1].end, 4000);
            assert_int_equal(raft_log.segments[1].last_index, 2);
            assert_int_equal(raft_log.segments[0].last_index, 1);
        }
        leat_raft_log_close(&raft_log);
        if (!over) finish(NULL);
    }
}

/* A round takes the entries that fit into its segment; the first entry always, however large. */
static void round_takes_what_fits_its_segment(void **state)
{
    (void)state;
    static uint8_t data[3 * SEGMENT];
    form();
    assert_int_equal(leat_raft_log_append(&raft_log, 2, 1, RAFT_COMMAND, data, 2000), LEAT_OK);
    assert_int_equal(
        leat_raft_log_append(&raft_log, 3, 1, RAFT_COMMAND, data, 4096 - 168 - 48 - 32 - 2000 - 32),
        LEAT_OK);
    assert_int_equal(leat_raft_log_append(&raft_log, 4, 1, RAFT_COMMAND, data, sizeof data),
                     LEAT_OK);
    assert_int_equal(leat_raft_log_append(&raft_log, 5, 1, RAFT_COMMAND, data, 0), LEAT_OK);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    expect_calls("write log-1 168+3928, sync log-1, create log-2, allocate log-2 4096, sync raft/, "
                 "write log-2 0+12432, sync log-2, "
                 "create log-3, allocate log-3 4096, sync raft/, write log-3 0+144, sync log-3");
    leat_raft_log_close(&raft_log);
    bool is_new;
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    assert_int_equal(leat_raft_log_last_index(&raft_log), 5);
    assert_int_equal(leat_raft_log_get(&raft_log, 4)->bytes, sizeof data);
    leat_raft_log_close(&raft_log);
}

/* ---- snapshots, compaction ---- */

static void snapshot(uint64_t index, uint64_t term)
{
    struct leat_raft_snapshot it = {.index = index,
                                    .term = term,
                                    .conf_index = 1,
                                    .conf_bytes = sizeof one_voter,
                                    .data_bytes = 5};
    it.conf = leat_mem_copy(LEAT_MEM_COORDINATOR, one_voter, sizeof one_voter);
    it.data = leat_mem_copy(LEAT_MEM_COORDINATOR, "table", 5);
    assert_true(it.conf && it.data);
    leat_raft_log_snapshot_save(&raft_log, &it);
}

static void snapshot_counts_once_it_is_whole(void **state)
{
    (void)state;
    form();
    append(2, 1, "two");
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    journal_clear(&journal);
    snapshot(1, 1);
    expect_calls("create snapshot.new, truncate snapshot.new 0, allocate snapshot.new 81, write "
                 "snapshot.new 0+76, write "
                 "snapshot.new 76+5, sync snapshot.new");
    assert_true(raft_log.saving);
    assert_int_equal(raft_log.snapshot.index, 0);
    settle();
    expect_calls("close snapshot.new, rename snapshot.new snapshot-1, sync raft/");
    assert_false(raft_log.saving);
    assert_int_equal(saved_calls, 1);
    assert_int_equal(saved_rc, LEAT_OK);
    assert_int_equal(raft_log.snapshot.index, 1);
    uint8_t bytes[128];
    assert_int_equal(snapshot_put(bytes, 1, 1, 1, "table", 5), 81);
    const struct fake_inode *file = fake_world_file(world, "raft/snapshot-00000000000000000001");
    assert_non_null(file);
    assert_int_equal(file->bytes, 81);
    assert_memory_equal(file->now, bytes, 81);
    snapshot(2, 1);
    settle();
    expect_calls("create snapshot.new, truncate snapshot.new 0, allocate snapshot.new 81, write "
                 "snapshot.new 0+76, write "
                 "snapshot.new 76+5, sync snapshot.new, close snapshot.new, rename snapshot.new "
                 "snapshot-2, sync raft/, remove "
                 "snapshot-1");
    snapshot(2, 1); /* again: it is not removed */
    settle();
    assert_non_null(fake_world_file(world, "raft/snapshot-00000000000000000002"));
    leat_raft_log_close(&raft_log);
    bool is_new;
    journal_clear(&journal);
    assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
    expect_calls("make raft/, list raft/, open vote, read vote 0+4096, read vote 4096+4096, sync "
                 "vote, sync raft/, open snapshot-2, "
                 "read snapshot-2 0+56, size snapshot-2, read snapshot-2 56+20, read snapshot-2 "
                 "76+5, close snapshot-2, open "
                 "log-1, read log-1 0+8388608, sync log-1");
    const struct leat_raft_snapshot *it = &raft_log.snapshot;
    assert_true(it->index == 2 && it->term == 1 && it->conf_index == 1 &&
                it->conf_bytes == sizeof one_voter && it->data_bytes == 5);
    assert_memory_equal(it->conf, one_voter, sizeof one_voter);
    assert_memory_equal(it->data, "table", 5);
    leat_raft_log_close(&raft_log);
}

/* Segments 1 (entry 1), 2 (entries 2, 3), 3 (4), 4 (5). */
static void fill_segments(void)
{
    static uint8_t data[SEGMENT];
    form();
    const size_t sizes[] = {3860, 8, 3900, 3900};
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(leat_raft_log_append(&raft_log, i + 2, 1, RAFT_COMMAND, data, sizes[i]),
                         LEAT_OK);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    assert_int_equal(raft_log.segment_count, 4);
    snapshot(4, 1);
    settle();
    journal_clear(&journal);
}

/* First the vote says that the segments are not missed, then they are removed; never the last segment. */
static void compaction_removes_segments_that_hold_nothing_else(void **state)
{
    (void)state;
    static const struct {
        uint64_t index, first;
        const char *calls;
    } cases[] = {
        {1, 1, ""},
        {2, 2, VOTE_WRITTEN ", close log-1, remove log-1"},
        {3, 2, VOTE_WRITTEN ", close log-1, remove log-1"},
        {4, 3, VOTE_WRITTEN ", close log-1, remove log-1, close log-2, remove log-2"},
        {5, 4,
         VOTE_WRITTEN
         ", close log-1, remove log-1, close log-2, remove log-2, close log-3, remove log-3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (i) assert_int_equal(begin(NULL), 0);
        fill_segments();
        uint64_t before = raft_log.entry_bytes;
        assert_int_equal(leat_raft_log_compact(&raft_log, cases[i].index), LEAT_OK);
        expect_calls(cases[i].calls);
        assert_int_equal(raft_log.start_index, cases[i].index);
        assert_int_equal(raft_log.entry_count, 6 - cases[i].index);
        assert_int_equal(leat_raft_log_last_index(&raft_log), 5);
        assert_null(leat_raft_log_get(&raft_log, cases[i].index - 1));
        assert_non_null(leat_raft_log_get(&raft_log, cases[i].index));
        assert_true(i == 0 ? raft_log.entry_bytes == before : raft_log.entry_bytes < before);
        assert_int_equal(raft_log.segments[0].number, cases[i].first);
        assert_int_equal(raft_log.segment_count, 5 - cases[i].first);
        assert_int_equal(raft_log.vote.first_segment, cases[i].first);
        leat_raft_log_close(&raft_log);
        bool is_new;
        assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
        assert_int_equal(leat_raft_log_last_index(&raft_log), 5);
        assert_int_equal(raft_log.segment_count, 5 - cases[i].first);
        leat_raft_log_close(&raft_log);
        if (i + 1 < sizeof cases / sizeof *cases) finish(NULL);
    }
}

/* A received snapshot replaces the whole log. */
static void reset_forgets_all_and_goes_on_behind(void **state)
{
    (void)state;
    fill_segments();
    assert_int_equal(leat_raft_log_reset(&raft_log, 65), LEAT_OK);
    expect_calls(VOTE_WRITTEN ", close log-1, remove log-1, close log-2, remove log-2, close "
                              "log-3, remove log-3, close log-4, "
                              "remove log-4");
    assert_int_equal(raft_log.start_index, 65);
    assert_int_equal(raft_log.written_index, 64);
    assert_int_equal(raft_log.entry_count + raft_log.segment_count + raft_log.entry_bytes, 0);
    assert_true(raft_log.vote.first_segment == 5 && raft_log.vote.durable_segment == 5 &&
                raft_log.vote.durable_end == 0);
    assert_false(leat_raft_log_mark_wanted(&raft_log));
    append(65, 2, "on");
    leat_raft_log_flush(&raft_log);
    expect_calls("create log-5, allocate log-5 4096, sync raft/, write log-5 0+152, sync log-5");
    settle();
    assert_int_equal(durable_index, 65);
    assert_true(leat_raft_log_mark_wanted(&raft_log));
    leat_raft_log_close(&raft_log);
}

/* ---- what fails ---- */

typedef leat_err action(void);

static leat_err act_vote(void)
{
    return leat_raft_log_vote(&raft_log, 2, 1);
}
static leat_err act_flush_now(void)
{
    append(6, 1, "six");
    return leat_raft_log_flush_now(&raft_log);
}
static leat_err act_mark(void)
{
    return leat_raft_log_mark(&raft_log);
}
static leat_err act_compact(void)
{
    return leat_raft_log_compact(&raft_log, 5);
}
static leat_err act_reset(void)
{
    return leat_raft_log_reset(&raft_log, 5);
}
static leat_err act_flush(void)
{
    append(6, 1, "six");
    durable_rc = LEAT_OK;
    leat_raft_log_flush(&raft_log);
    settle();
    return raft_log.failed;
}

/* Any failure is reported, and after a failed write or flush nothing more is written: the state on disk is unknown. */
static void failure_of_any_operation_is_told_and_final(void **state)
{
    (void)state;
    static const struct {
        action *act;
        unsigned calls, final_from, final_to; /* those of the calls whose failure is final */
    } cases[] = {{act_vote, 4, 1, 4},    {act_flush_now, 5, 1, 3}, {act_mark, 4, 1, 4},
                 {act_compact, 7, 1, 4}, {act_reset, 8, 1, 4},     {act_flush, 5, 1, 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (unsigned n = 1; n <= cases[i].calls + 1; n++) {
            if (i || n > 1) assert_int_equal(begin(NULL), 0);
            fill_segments();
            journal_fail(&journal, n, LEAT_E_DISK);
            leat_err rc = cases[i].act();
            assert_int_equal(journal.calls >= n, n <= cases[i].calls);
            if (rc != (n <= cases[i].calls ? LEAT_E_DISK : LEAT_OK))
                fail_msg("case %zu, call %u: %d", i, n, rc);
            bool final = n >= cases[i].final_from && n <= cases[i].final_to;
            if ((raft_log.failed == LEAT_E_DISK) != final)
                fail_msg("case %zu, call %u is%s final", i, n, final ? " not" : "");
            if (final) {
                journal_clear(&journal);
                assert_int_equal(leat_raft_log_vote(&raft_log, 3, 1), LEAT_E_DISK);
                assert_int_equal(leat_raft_log_mark(&raft_log), LEAT_E_DISK);
                assert_int_equal(leat_raft_log_compact(&raft_log, 1), LEAT_E_DISK);
                assert_int_equal(leat_raft_log_reset(&raft_log, 5), LEAT_E_DISK);
                assert_false(leat_raft_log_mark_wanted(&raft_log));
                leat_raft_log_flush(&raft_log);
                expect_calls("");
            }
            journal_fail(&journal, 0, LEAT_OK);
            leat_raft_log_close(&raft_log);
            assert_int_equal(journal.files_open, 0);
            if (i + 1 < sizeof cases / sizeof *cases || n <= cases[i].calls) finish(NULL);
        }
    }
}

/* A full disk, and a lack of memory, change nothing: it is tried again. */
static void full_disk_or_lack_of_memory_is_no_failure(void **state)
{
    (void)state;
    fill_segments();
    append(6, 1, "six");
    for (unsigned i = 0; i < 2; i++) {
        journal_fail(&journal, 2,
                     i ? LEAT_E_NO_MEMORY : LEAT_E_DISK_FULL); /* of creating a segment */
        journal.used = 0;
        leat_raft_log_flush(&raft_log);
        expect_calls("create log-5, allocate log-5 4096, close log-5");
        assert_int_equal(raft_log.full, i == 0);
        assert_false(raft_log.writing);
        assert_int_equal(raft_log.failed, LEAT_OK);
        assert_int_equal(raft_log.written_index, 5);
        assert_int_equal(raft_log.segment_count, 4);
        assert_int_equal(raft_log.next_segment, 5);
    }
    assert_int_equal(durable_calls, 0);
    leat_raft_log_flush(&raft_log);
    settle();
    assert_false(raft_log.full);
    assert_int_equal(durable_index, 6);
    leat_raft_log_close(&raft_log);
}

/* A snapshot that can't be saved leaves the previous snapshot, and the failure is reported. */
static void failure_of_a_snapshot_leaves_the_one_before(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 10; n++) {
        if (n > 1) assert_int_equal(begin(NULL), 0);
        fill_segments();
        saved_calls = 0;
        journal_fail(&journal, n, LEAT_E_DISK);
        snapshot(5, 1);
        settle();
        assert_int_equal(saved_calls, 1);
        assert_false(raft_log.saving);
        bool fails = n <= 8; /* the ninth removes the one before: the next start does it, too */
        assert_int_equal(saved_rc, fails ? LEAT_E_DISK : LEAT_OK);
        assert_int_equal(raft_log.snapshot.index, fails ? 4 : 5);
        assert_int_equal(raft_log.failed, LEAT_OK);
        journal_fail(&journal, 0, LEAT_OK);
        snapshot(5, 1);
        settle();
        assert_int_equal(saved_rc, LEAT_OK);
        leat_raft_log_close(&raft_log);
        assert_int_equal(journal.files_open, 0);
        if (n < 10) finish(NULL);
    }
}

/* Forming that fails anywhere leaves nothing that counts, and nothing open. */
static void forming_that_fails_forms_nothing(void **state)
{
    (void)state;
    const struct leat_raft_entry first = {1, RAFT_CHANGE, sizeof one_voter, (uint8_t *)one_voter};
    for (unsigned n = 1;; n++) {
        bool is_new = false;
        if (n > 1) assert_int_equal(begin(NULL), 0);
        assert_int_equal(log_open(SEGMENT, &is_new), LEAT_OK);
        journal_fail(&journal, n, LEAT_E_DISK);
        leat_err rc = leat_raft_log_form(&raft_log, &first, 1, &error);
        bool came = journal.calls >= n;
        assert_int_equal(rc, came ? LEAT_E_DISK : LEAT_OK);
        journal_fail(&journal, 0, LEAT_OK);
        raft_log.vote.formed = 0; /* as whoever is killed now */
        leat_raft_log_close(&raft_log);
        assert_int_equal(journal.files_open, 0);
        if (!came) break;
        leat_err again = log_open(SEGMENT, &is_new);
        assert_int_equal(again, LEAT_OK);
        /* From the first block on that says so it is formed, and all of it is there. */
        assert_int_equal(is_new, n < 18);
        if (!is_new) assert_int_equal(leat_raft_log_last_index(&raft_log), 1);
        leat_raft_log_close(&raft_log);
        finish(NULL);
    }
}

#define STORAGE_TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORAGE_TEST(forming_makes_all_of_it_durable_in_order),
        STORAGE_TEST(joining_writes_no_entry),
        STORAGE_TEST(forming_that_was_cut_off_is_begun_anew),
        STORAGE_TEST(rounds_are_written_and_synced_one_behind_the_other),
        STORAGE_TEST(entry_cut_in_flight_is_not_told_durable),
        STORAGE_TEST(log_is_written_byte_for_byte),
        STORAGE_TEST(segment_is_filled_to_its_last_byte),
        STORAGE_TEST(round_takes_what_fits_its_segment),
        STORAGE_TEST(snapshot_counts_once_it_is_whole),
        STORAGE_TEST(compaction_removes_segments_that_hold_nothing_else),
        STORAGE_TEST(reset_forgets_all_and_goes_on_behind),
        STORAGE_TEST(failure_of_any_operation_is_told_and_final),
        STORAGE_TEST(full_disk_or_lack_of_memory_is_no_failure),
        STORAGE_TEST(failure_of_a_snapshot_leaves_the_one_before),
        STORAGE_TEST(forming_that_fails_forms_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
