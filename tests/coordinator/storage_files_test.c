/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage, reading: entries, snapshots and how they join, and starts that fail anywhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <raft.h>

#include "coordinator/raft/private.h"
#include "tests/coordinator/storage_rig.h"

/* ---- entries ---- */

static void entries_replace_those_of_the_same_index_and_all_behind(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, count, term; /* of the second round; the first is 5 to 8 of term 3 */
        uint64_t start, last;        /* 0: damaged */
    } cases[] = {{9, 1, 3, 5, 9}, {10, 1, 3, 0, 0}, {8, 1, 4, 5, 8}, {6, 1, 4, 5, 6},
                 {5, 2, 4, 5, 6}, {3, 1, 4, 3, 3},  {1, 9, 4, 1, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct segment it = segment_of(1, 0);
        uint8_t bytes[256];
        segment_round(&it, 5, 4, 3);
        segment_round(&it, cases[i].first, (uint32_t)cases[i].count, cases[i].term);
        segment_write(&it, SEGMENT);
        uint64_t joins = cases[i].start ? cases[i].start - 1 : 4;
        if (joins) file_put("raft/snapshot-00000000000000000004", bytes, 0);
        fake_world_remove(world, "raft/snapshot-00000000000000000004");
        char path[64];
        leat_raft_path(path, "snapshot", joins);
        if (joins) file_put(path, bytes, snapshot_put(bytes, joins, 3, 1, "t", 1));
        vote_is_plain(1, 1, 0);
        if (cases[i].start == 0) {
            expect_damaged("has a gap: entry 10 follows 8");
        } else {
            char text[16];
            snprintf(text, sizeof text, "entry %u.%u", (unsigned)cases[i].last,
                     (unsigned)cases[i].term);
            assert_int_equal(load(), LEAT_OK);
            expect_entries(cases[i].start, cases[i].last, text);
            assert_int_equal(raft_log.segments[0].last_index,
                             cases[i].last > 8 ? cases[i].last : 8);
            unload();
        }
        again();
    }
}

/* Each entry's term, index and type as raft can have given them. */
static void entry_that_cannot_be_is_named(void **state)
{
    (void)state;
    static const struct {
        uint64_t index, term;
        uint32_t type;
        const char *wrong; /* NULL: it is right */
    } cases[] = {
        {2, 3, RAFT_COMMAND, NULL},
        {2, 9, RAFT_BARRIER, NULL},
        {2, 10, RAFT_BARRIER, "raft/vote is older than the log"},
        {2, 2, RAFT_BARRIER, "can't be: number 2 of term 2"},
        {1, 0, RAFT_BARRIER, "can't be: number 1 of term 0"},
        {2, 3, 0, "and type 0"},
        {2, 3, RAFT_CHANGE, "and type 3"}, /* whose bytes are none */
        {2, 3, RAFT_CHANGE + 1, "and type 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct segment it = segment_of(1, 0);
        segment_round(&it, 1, 1, 3);
        uint8_t *header = it.bytes + segment_end(&it);
        uint8_t *end =
            frame_put(header + 48, cases[i].index, cases[i].term, cases[i].type, "text", 4);
        round_seal(header, 1, (uint64_t)(header - it.bytes), end, 1, cases[i].index);
        segment_write(&it, SEGMENT);
        vote_is_plain(1, 1, 0);
        if (cases[i].wrong) {
            expect_damaged(cases[i].wrong);
        } else {
            assert_int_equal(load(), LEAT_OK);
            assert_int_equal(leat_raft_log_get(&raft_log, 2)->type, cases[i].type);
            unload();
        }
        again();
    }
    for (uint64_t i = 0; i < 3; i++) { /* the first of all: index 0, the highest, and one more */
        const uint64_t indices[] = {0, MOST, MOST + 1};
        struct segment it = segment_of(1, 0);
        uint8_t bytes[256];
        char path[64];
        segment_round(&it, indices[i], 1, 3);
        segment_write(&it, SEGMENT);
        vote_is_plain(1, 1, 0);
        leat_raft_path(path, "snapshot", MOST - 1);
        file_put(path, bytes, snapshot_put(bytes, MOST - 1, 3, 1, "t", 1));
        if (i == 1) {
            assert_int_equal(load(), LEAT_OK);
            expect_entries(MOST, MOST, "entry 4611686018427387904.3");
            unload();
        } else {
            expect_damaged("an entry that can't be");
        }
        again();
    }
}

/* ---- snapshots ---- */

static void log_joins_its_snapshot_or_gives_way_to_it(void **state)
{
    (void)state;
    static const struct {
        uint64_t index, term;       /* of the snapshot; 0: there is none */
        uint64_t first, last;       /* entries, of term 3; 0: none */
        uint64_t start, last_after; /* 0: damaged */
        bool anew;
    } cases[] = {
        {0, 0, 1, 3, 1, 3, false}, {0, 0, 2, 3, 0, 0, false}, {5, 3, 6, 7, 6, 7, false},
        {5, 3, 7, 8, 0, 0, false}, {5, 3, 5, 7, 5, 7, false}, {5, 3, 2, 7, 2, 7, false},
        {5, 2, 2, 7, 6, 5, true},  {5, 3, 2, 4, 6, 5, true},  {5, 3, 2, 5, 2, 5, false},
        {5, 3, 0, 0, 6, 5, false}, {5, 4, 6, 7, 6, 7, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[256];
        char path[64];
        leat_raft_path(path, "snapshot", cases[i].index);
        if (cases[i].index)
            file_put(path, bytes, snapshot_put(bytes, cases[i].index, cases[i].term, 1, "t", 1));
        struct segment it = segment_of(1, 0);
        if (cases[i].first)
            segment_round(&it, cases[i].first, (uint32_t)(cases[i].last - cases[i].first + 1), 3);
        if (cases[i].first) segment_write(&it, SEGMENT);
        vote_is_plain(1, 1, 0);
        if (cases[i].start == 0) {
            expect_damaged("a snapshot is missing");
            again();
            continue;
        }
        assert_int_equal(load(), LEAT_OK);
        assert_int_equal(raft_log.start_index, cases[i].start);
        assert_int_equal(leat_raft_log_last_index(&raft_log), cases[i].last_after);
        assert_int_equal(raft_log.written_index, cases[i].last_after);
        assert_int_equal(strstr(journal.text, "remove log-1") != NULL, cases[i].anew);
        assert_int_equal(raft_log.vote.first_segment, cases[i].anew ? 2 : 1);
        unload();
        again();
    }
}

static void newest_snapshot_is_read_and_others_are_removed(void **state)
{
    (void)state;
    uint8_t bytes[256];
    const uint64_t indices[] = {9, 10, 100};
    for (unsigned i = 0; i < 3; i++) {
        char path[64];
        leat_raft_path(path, "snapshot", indices[i]);
        file_put(path, bytes, snapshot_put(bytes, indices[i], 3, 1, "table", i));
    }
    vote_is_plain(1, 1, 0);
    assert_int_equal(load(), LEAT_OK);
    assert_int_equal(raft_log.snapshot.index, 100);
    assert_int_equal(raft_log.snapshot.data_bytes, 2);
    assert_non_null(strstr(journal.text,
                           "sync raft/, remove snapshot-9, remove snapshot-10, open snapshot-100"));
    assert_false(file_is("snapshot", 9) || file_is("snapshot", 10));
    unload();
}

static void snapshot_with_any_byte_wrong_is_damaged(void **state)
{
    (void)state;
    uint8_t plain[256];
    static const char path[] = "raft/snapshot-00000000000000000005";
    const size_t count = snapshot_put(plain, 5, 9, 1, "table", 5);
    vote_is_plain(1, 1, 0);
    for (size_t at = 0; at < count; at++) {
        uint8_t bytes[256];
        memcpy(bytes, plain, count);
        bytes[at] ^= 1;
        file_put(path, bytes, count);
        expect_damaged(at < 56 ? "05 is damaged: its header fails the check"
                               : "05 is damaged: its content fails the check");
    }
    for (size_t bytes = 0; bytes < count; bytes++) {
        file_put(path, plain, bytes);
        expect_damaged(bytes < 56 ? "05 is damaged: its header fails the check"
                                  : "05 is damaged: it is shorter than it says");
    }
    /* With right checksums: another's index, version, and sizes beyond the file, each alone too. */
    for (unsigned c = 0; c < 5; c++) {
        uint8_t bytes[256];
        memcpy(bytes, plain, count);
        if (c == 0) leat_put_le64(bytes + 16, 6);
        if (c == 1) leat_put_le32(bytes + 8, 2);
        if (c == 2) leat_put_le64(bytes + 40, UINT64_MAX - 60);
        if (c == 3) leat_put_le64(bytes + 48, UINT64_MAX - 60);
        if (c == 4) leat_put_le64(bytes + 48, 6);
        seal(bytes, 56);
        file_put(path, bytes, count);
        expect_damaged(c < 2 ? "05 is damaged: its header fails the check"
                             : "05 is damaged: it is shorter than it says");
    }
    uint8_t bytes[256];
    snapshot_put(bytes, 5, 9, 1, "table", 5);
    bytes[56] = 2; /* of a format of configurations that is unknown: it names nobody */
    leat_put_le32(bytes + 12, leat_crc32c(0, bytes + 56, count - 56));
    seal(bytes, 56);
    file_put(path, bytes, count);
    expect_damaged("05 is damaged: it names no voters.");
    for (uint64_t term = 0; term <= 10; term += 5) {
        file_put(path, bytes, snapshot_put(bytes, 5, term, 1, "", 0));
        if (term == 5) {
            assert_int_equal(load(), LEAT_OK);
            assert_int_equal(raft_log.snapshot.term, 5);
            assert_int_equal(raft_log.snapshot.data_bytes, 0);
            unload();
        } else {
            expect_damaged("05 is damaged: its term is none, or raft/vote is older than it");
        }
    }
}

/* ---- what fails ---- */

/* differs: the log's entry is of another term than the snapshot, which takes its place. */
static void files_put(bool formed, bool differs)
{
    struct leat_raft_vote_state vote = vote_of(3);
    struct segment one = segment_of(2, 0), two;
    uint8_t bytes[256];
    segment_round(&one, 6, 1, 3);
    two = segment_of(3, segment_end(&one));
    segment_round(&two, 7, 1, 3);
    two.bytes[segment_end(&two) + 80] = 1; /* torn */
    segment_write(&one, SEGMENT);
    segment_write(&two, SEGMENT);
    file_put("raft/log-00000000000000000001", "", 0);
    file_put("raft/snapshot-00000000000000000004", "", 0);
    file_put(differs ? "raft/snapshot-00000000000000000006" : "raft/snapshot-00000000000000000005",
             bytes, snapshot_put(bytes, differs ? 6 : 5, differs ? 2 : 3, 1, "t", 1));
    vote.first_segment = 2;
    vote.formed = formed;
    vote_is(&vote, &vote);
}

/* Any failure is reported, nothing stays open or allocated, and the next start reads everything. */
static void start_that_fails_leaves_all_as_it_is(void **state)
{
    (void)state;
    unsigned calls = 0;
    for (unsigned c = 0; c < 6; c++) {
        const bool formed = c % 3 < 2, differs = c % 3 == 1, memory = c >= 3;
        for (unsigned n = 1;; n++) {
            files_put(formed, differs);
            journal_clear(&journal);
            if (memory)
                leat_mem_fail_at(n);
            else
                journal_fail(&journal, n, LEAT_E_DISK);
            leat_err rc = leat_raft_log_open(&raft_log, &journal.disk, SEGMENT, &is_new, &error);
            const bool came = memory ? leat_mem_calls() >= n : journal.calls >= n;
            leat_mem_fail_at(0);
            if (rc != (!came ? LEAT_OK : memory ? LEAT_E_NO_MEMORY : LEAT_E_DISK))
                fail_msg("case %u, %u: %d", c, n, rc);
            journal_fail(&journal, 0, LEAT_OK);
            calls++;
            if (came) {
                assert_int_equal(journal.files_open, 0);
                assert_int_equal(leat_mem_bytes(LEAT_MEM_COORDINATOR), 0);
                if (load() != LEAT_OK) fail_msg("case %u, %u: %s", c, n, error.text);
            }
            assert_int_equal(is_new, !formed);
            if (formed && !differs) expect_entries(6, 7, "entry 7.3");
            if (differs) expect_entries(7, 6, "");
            unload();
            again();
            if (!came) break;
        }
    }
    assert_true(calls > 40);
}

/* All files of a formation that was cut off. */
static void formation_that_was_cut_off_leaves_no_file(void **state)
{
    (void)state;
    struct leat_raft_vote_state vote = vote_of(3);
    vote.formed = 0;
    vote_is(&vote, &vote);
    static const char *const kinds[] = {"log", "snapshot"};
    for (unsigned i = 0; i < 4; i++) {
        char path[64];
        leat_raft_path(path, kinds[i % 2], 1 + i / 2);
        file_put(path, "x", 1);
    }
    assert_int_equal(load(), LEAT_OK);
    assert_true(is_new);
    for (unsigned i = 0; i < 4; i++)
        assert_false(file_is(kinds[i % 2], 1 + i / 2));
    unload();
}

/* ---- going on from files ---- */

static uint64_t told_durable;
static void on_durable(void *owner, uint64_t index, leat_err rc)
{
    (void)owner;
    assert_int_equal(rc, LEAT_OK);
    told_durable = index;
}

/* Entries 1 and 2 in segment 1, and one more that goes to the next. */
static uint64_t log_of_two_entries(void)
{
    struct segment one = segment_of(1, 0);
    segment_round(&one, 1, 2, 3);
    segment_write(&one, SEGMENT);
    vote_is_plain(1, 1, 0);
    assert_int_equal(load(), LEAT_OK);
    raft_log.on_durable = on_durable;
    told_durable = 0;
    return segment_end(&one);
}
static void third_begin(void)
{
    static uint8_t data[SEGMENT - 160];
    assert_int_equal(leat_raft_log_append(&raft_log, 3, 3, RAFT_COMMAND, data, sizeof data),
                     LEAT_OK);
    leat_raft_log_flush(&raft_log);
    assert_int_equal(raft_log.segment_count, 2);
}

/* A segment whose first round is under way is no mark: the loss of earlier durable rounds would not be noticed. */
static void mark_lies_before_a_segment_that_has_only_begun(void **state)
{
    (void)state;
    uint64_t end = log_of_two_entries();
    third_begin();
    assert_int_equal(leat_raft_log_mark(&raft_log), LEAT_OK);
    assert_int_equal(raft_log.vote.durable_segment, 1);
    assert_int_equal(raft_log.vote.durable_end, end);
    fake_world_settle(world);
    assert_int_equal(told_durable, 3);
    assert_int_equal(leat_raft_log_mark(&raft_log), LEAT_OK);
    assert_int_equal(raft_log.vote.durable_segment, 2);
    unload();
}

/* Goal: a segment that was created before a crash, and gets its first round after the crash, says where the segment
 * before it ends: otherwise the next start takes that segment for damaged. */
static void segment_of_before_a_crash_follows_the_one_before(void **state)
{
    (void)state;
    struct segment two = segment_of(2, 0);
    memset(two.bytes, 0, sizeof two.bytes);
    segment_write(&two, SEGMENT);
    (void)log_of_two_entries();
    assert_int_equal(raft_log.segments[1].end, 0);
    third_begin();
    fake_world_settle(world);
    assert_int_equal(told_durable, 3);
    unload();
    assert_int_equal(load(), LEAT_OK);
    assert_int_equal(leat_raft_log_last_index(&raft_log), 3);
    unload();
}

/* Goal: without memory for a round nothing is written and nothing is lost: the round is written once there is some. */
static void round_without_memory_is_written_later(void **state)
{
    (void)state;
    (void)log_of_two_entries();
    assert_int_equal(leat_raft_log_append(&raft_log, 3, 3, RAFT_COMMAND, "three", 5), LEAT_OK);
    journal_clear(&journal);
    leat_mem_fail_at(1);
    leat_raft_log_flush(&raft_log);
    leat_mem_fail_at(0);
    fake_world_settle(world);
    assert_int_equal(told_durable, 0);
    assert_null(strstr(journal.text, "write"));
    leat_raft_log_flush(&raft_log);
    fake_world_settle(world);
    assert_int_equal(told_durable, 3);
    unload();
    assert_int_equal(load(), LEAT_OK);
    expect_entries(1, 3, "three");
    unload();
}

static void compaction_of_all_entries_leaves_the_next_place(void **state)
{
    (void)state;
    uint8_t bytes[256];
    file_put("raft/snapshot-00000000000000000002", bytes, snapshot_put(bytes, 2, 3, 1, "t", 1));
    (void)log_of_two_entries();
    assert_int_equal(leat_raft_log_compact(&raft_log, 3), LEAT_OK);
    assert_int_equal(raft_log.start_index, 3);
    assert_int_equal(raft_log.entry_count + raft_log.entry_bytes, 0);
    third_begin();
    fake_world_settle(world);
    assert_int_equal(told_durable, 3);
    unload();
}

static const char *listed; /* so many files of this name */
static unsigned listed_count;
static leat_err list_many(void *ctx, const char *path, void (*each)(void *arg, const char *name),
                          void *arg)
{
    (void)ctx;
    (void)path;
    for (unsigned i = 1; i <= listed_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s-%020u", listed, i);
        each(arg, name);
    }
    each(arg, "vote");
    return LEAT_OK;
}

static void directory_of_too_many_files_is_refused(void **state)
{
    (void)state;
    vote_is_plain(1, 1, 0);
    journal.disk.list = list_many;
    for (unsigned c = 0; c < 4; c++) {
        listed = c / 2 ? "snapshot" : "log";
        listed_count = LEAT_RAFT_SEGMENTS_MAX + c % 2;
        leat_err rc = load(); /* none of them is there */
        assert_true(rc != LEAT_OK);
        assert_int_equal(rc == LEAT_E_TOO_MANY, c % 2);
        if (c % 2) assert_non_null(strstr(error.text, "more than 4096 files"));
    }
}

/* As many files as there may be live, and one more. */
static void files_too_many_are_refused(void **state)
{
    (void)state;
    vote_is_plain(1, 1, 0);
    assert_int_equal(load(), LEAT_OK);
    struct leat_raft_segment segment = {0};
    const struct leat_disk *disk = raft_log.disk;
    leat_err rc = LEAT_OK;
    for (unsigned i = 0; i <= LEAT_RAFT_SEGMENTS_MAX && rc == LEAT_OK; i++) {
        assert_int_equal(raft_log.segment_count, i);
        segment.number = i;
        rc = disk->open(disk->ctx, "raft/vote", 0, &segment.file, NULL);
        if (rc == LEAT_OK) rc = leat_raft_segment_push(&raft_log, segment);
        if (rc != LEAT_OK) disk->close(disk->ctx, segment.file);
        journal_clear(&journal);
    }
    assert_int_equal(rc, LEAT_E_TOO_MANY);
    assert_int_equal(raft_log.segment_count, LEAT_RAFT_SEGMENTS_MAX);
    for (unsigned i = 0; i < LEAT_RAFT_SEGMENTS_MAX; i++) {
        assert_int_equal(raft_log.segments[i].number, i);
        disk->close(disk->ctx, raft_log.segments[i].file);
        journal_clear(&journal);
    }
    raft_log.segment_count = 0;
    unload();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOAD_TEST(entries_replace_those_of_the_same_index_and_all_behind),
        LOAD_TEST(entry_that_cannot_be_is_named),
        LOAD_TEST(log_joins_its_snapshot_or_gives_way_to_it),
        LOAD_TEST(newest_snapshot_is_read_and_others_are_removed),
        LOAD_TEST(snapshot_with_any_byte_wrong_is_damaged),
        LOAD_TEST(start_that_fails_leaves_all_as_it_is),
        LOAD_TEST(formation_that_was_cut_off_leaves_no_file),
        LOAD_TEST(mark_lies_before_a_segment_that_has_only_begun),
        LOAD_TEST(segment_of_before_a_crash_follows_the_one_before),
        LOAD_TEST(round_without_memory_is_written_later),
        LOAD_TEST(compaction_of_all_entries_leaves_the_next_place),
        LOAD_TEST(directory_of_too_many_files_is_refused),
        LOAD_TEST(files_too_many_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
