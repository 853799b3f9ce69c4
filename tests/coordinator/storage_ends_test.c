/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage at the ends of its ranges: the largest entry, the largest round, what lies behind the last entry, and
 * files of another version. */
#include "coordinator/raft/private.h"
#include "tests/coordinator/storage_rig.h"
#include "tests/coordinator/told.h"

static void on_durable(void *owner, uint64_t index, leat_err rc)
{
    (void)owner;
    (void)index;
    assert_int_equal(rc, LEAT_OK);
}
static void on_snapshot(void *owner, leat_err rc)
{
    (void)owner;
    (void)rc;
}

static void settle(void)
{
    while (fake_world_turn(world)) {
    }
}

/* A log of entries 1 to 3, of term 5. */
static void three_put(void)
{
    vote_is_plain(1, 1, 0);
    struct segment segment = segment_of(1, 0);
    segment_round(&segment, 1, 3, 5);
    segment_write(&segment, SEGMENT);
}

static void large_open(void)
{
    assert_int_equal(
        leat_raft_log_open(&raft_log, &journal.disk, LEAT_RAFT_SEGMENT_BYTES, &is_new, &error),
        LEAT_OK);
    raft_log.on_durable = on_durable;
    raft_log.on_snapshot = on_snapshot;
    journal_clear(&journal);
}

static void append_of(uint64_t index, size_t bytes)
{
    uint8_t *data = malloc(bytes);
    assert_non_null(data);
    memset(data, (int)index, bytes);
    assert_int_equal(leat_raft_log_append(&raft_log, index, 5, RAFT_COMMAND, data, bytes), LEAT_OK);
    free(data);
}

/* Goal: nothing is found behind the last entry, nor where an entry was cut. */
static void nothing_lies_behind_the_last_entry(void **state)
{
    (void)state;
    three_put();
    assert_int_equal(load(), LEAT_OK);
    assert_non_null(leat_raft_log_get(&raft_log, 3));
    assert_null(leat_raft_log_get(&raft_log, 4));
    assert_null(leat_raft_log_get(&raft_log, 0));
    leat_raft_entries_cut(&raft_log, 3);
    assert_null(leat_raft_log_get(&raft_log, 3));
    unload();
}

/* Goal: a vote of another version is not taken, though its checksum is right. */
static void vote_of_another_version_is_damaged(void **state)
{
    (void)state;
    uint8_t bytes[8192];
    const struct leat_raft_vote_state vote = vote_of(3);
    for (unsigned i = 0; i < 2; i++) {
        vote_put(bytes + 4096 * i, &vote);
        bytes[4096 * i + 8]++;
        seal(bytes + 4096 * i, 72);
    }
    file_put("raft/vote", bytes, sizeof bytes);
    expect_damaged("raft/vote is damaged");
}

/* Goal: bytes behind the last round are erased, also where all are the same. */
static void torn_bytes_that_are_the_same_are_erased(void **state)
{
    (void)state;
    vote_is_plain(1, 1, 0);
    struct segment segment = segment_of(1, 0);
    segment_round(&segment, 1, 3, 5);
    memset(segment.at, 0x55, SEGMENT - segment_end(&segment));
    segment_write(&segment, SEGMENT);
    assert_int_equal(load(), LEAT_OK);
    assert_non_null(strstr(journal.text, "write log"));
    unload();
    assert_int_equal(load(), LEAT_OK);
    assert_null(strstr(journal.text, "write log"));
    expect_entries(1, 3, "entry 3.5");
    unload();
}

/* Goal: the largest entry that may be written is read again. */
static void largest_entry_is_read_again(void **state)
{
    (void)state;
    three_put();
    large_open();
    append_of(4, LEAT_RAFT_ENTRY_BYTES_MAX);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    unload();
    large_open();
    const struct leat_raft_entry *entry = leat_raft_log_get(&raft_log, 4);
    assert_non_null(entry);
    assert_int_equal(entry->bytes, LEAT_RAFT_ENTRY_BYTES_MAX);
    unload();
}

/* Goal: the largest segment, filled to its last byte, is read to that byte. A sanitizer sees a look behind the
 * segment. */
static void largest_segment_is_read_to_its_end(void **state)
{
    (void)state;
    enum {
        SOME = 1024 * 1024,
        HEADS = LEAT_RAFT_ROUND_HEADER_BYTES + LEAT_RAFT_FRAME_HEADER_BYTES
    };
    three_put();
    large_open();
    uint64_t index = 3;
    while (raft_log.segments[0].end < LEAT_RAFT_SEGMENT_BYTES) {
        uint64_t left = LEAT_RAFT_SEGMENT_BYTES - raft_log.segments[0].end - HEADS;
        append_of(++index, left > 2 * SOME ? SOME : left);
        assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    }
    assert_int_equal(raft_log.segment_count, 1);
    unload();
    large_open();
    assert_int_equal(raft_log.segments[0].end, LEAT_RAFT_SEGMENT_BYTES);
    assert_int_equal(leat_raft_log_last_index(&raft_log), index);
    unload();
}

/* Goal: a round takes no more than it may, however many entries wait. */
static void round_takes_no_more_than_it_may(void **state)
{
    (void)state;
    enum { MIB = 1024 * 1024 };
    three_put();
    large_open();
    for (uint64_t index = 4; index < 10; index++)
        append_of(index, MIB);
    leat_raft_log_flush(&raft_log);
    assert_in_range(raft_log.round_bytes, MIB, LEAT_RAFT_ROUND_BYTES_MAX);
    settle();
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    unload();
    large_open();
    assert_int_equal(leat_raft_log_last_index(&raft_log), 9);
    unload();
}

/* Goal: an entry for which a round has no memory is written by the next, whole. */
static void entry_without_memory_is_written_later(void **state)
{
    (void)state;
    three_put();
    large_open();
    append_of(4, 10);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    append_of(5, 100 * 1000);
    leat_mem_fail_at(1);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    unload();
    large_open();
    assert_int_equal(leat_raft_log_last_index(&raft_log), 5);
    assert_int_equal(leat_raft_log_get(&raft_log, 5)->bytes, 100 * 1000);
    unload();
}

/* Goal: a segment that was made for a round without memory takes a later round, and is read again: it says where the
 * segment before it ends. */
static void segment_of_a_round_without_memory_is_used_later(void **state)
{
    (void)state;
    three_put();
    assert_int_equal(load(), LEAT_OK);
    raft_log.on_durable = on_durable;
    append_of(4, 100 * 1000);
    for (unsigned n = 1; raft_log.segment_count == 1; n++) {
        assert_true(n < 9);
        leat_mem_fail_at(n);
        assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
    }
    assert_int_equal(raft_log.segments[1].end, 0);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    assert_int_equal(raft_log.segment_count, 2);
    unload();
    assert_int_equal(load(), LEAT_OK);
    assert_int_equal(leat_raft_log_last_index(&raft_log), 4);
    unload();
}

/* Goal: the only segment of a log, created before a crash, says that no segment is before it. */
static void segment_without_one_before_says_so(void **state)
{
    (void)state;
    vote_is_plain(1, 1, 0);
    struct segment one = segment_of(1, 0);
    memset(one.bytes, 0, sizeof one.bytes);
    segment_write(&one, SEGMENT);
    assert_int_equal(load(), LEAT_OK);
    raft_log.on_durable = on_durable;
    assert_int_equal(raft_log.segment_count, 1);
    assert_int_equal(raft_log.segments[0].end, 0);
    append_of(1, 10);
    assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
    const struct fake_inode *file = fake_world_file(world, "raft/log-00000000000000000001");
    struct leat_raft_segment_header header;
    memcpy(&header, file->now, sizeof header);
    assert_int_equal(header.number, 1);
    assert_int_equal(header.previous_end, 0);
    unload();
}

/* Goal: entries keep their order where the log gets room for more of them after the first ones have gone. */
static void entries_keep_their_order_where_the_log_grows(void **state)
{
    (void)state;
    enum { GONE = 100, ALL = 700 };
    three_put();
    large_open();
    for (uint64_t index = 4; index <= ALL; index++) {
        append_of(index, 8);
        if (index != 2 * GONE) continue;
        assert_int_equal(leat_raft_log_flush_now(&raft_log), LEAT_OK);
        raft_log.snapshot.index = GONE;
        assert_int_equal(leat_raft_log_compact(&raft_log, GONE + 1), LEAT_OK);
        raft_log.snapshot.index = 0;
    }
    assert_null(leat_raft_log_get(&raft_log, GONE));
    for (uint64_t index = GONE + 1; index <= ALL; index++)
        assert_int_equal(leat_raft_log_get(&raft_log, index)->data[0], (uint8_t)index);
    unload();
}

/* Goal: a log that is closed amid a snapshot leaves no file open. */
static void log_that_closes_amid_a_snapshot_closes_its_file(void **state)
{
    (void)state;
    three_put();
    large_open();
    struct leat_raft_snapshot snapshot = {.index = 3, .term = 5, .conf_index = 1};
    snapshot.conf = leat_mem_calloc(LEAT_MEM_COORDINATOR, 8, 1);
    snapshot.data = leat_mem_calloc(LEAT_MEM_COORDINATOR, 8, 1);
    assert_true(snapshot.conf && snapshot.data);
    snapshot.conf_bytes = snapshot.data_bytes = 8;
    leat_raft_log_snapshot_save(&raft_log, &snapshot);
    assert_non_null(raft_log.save_file);
    assert_int_equal(
        leat_raft_io(&journal.disk, LEAT_DISK_SYNC, raft_log.vote_file, 0, NULL, 0, NULL), LEAT_OK);
    if (raft_log.save_file) unload();
}

/* Goal: the node log has a line about the mark when the mark could not be noted, and then alone. */
static void mark_that_is_not_noted_on_the_way_out_is_told(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 2; c++) {
        if (c) again();
        three_put();
        assert_int_equal(load(), LEAT_OK);
        assert_true(raft_log.vote.formed && leat_raft_log_mark_wanted(&raft_log));
        journal_clear(&journal);
        if (c) journal_fail(&journal, 1, LEAT_E_DISK);
        told_from_now_on();
        unload();
        leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
        assert_non_null(strstr(journal.text, "write vote"));
        expect_told(c ? "W coordinator: raft's durable mark was not noted on the way out\n" : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOAD_TEST(nothing_lies_behind_the_last_entry),
        LOAD_TEST(vote_of_another_version_is_damaged),
        LOAD_TEST(torn_bytes_that_are_the_same_are_erased),
        LOAD_TEST(largest_entry_is_read_again),
        LOAD_TEST(largest_segment_is_read_to_its_end),
        LOAD_TEST(round_takes_no_more_than_it_may),
        LOAD_TEST(entry_without_memory_is_written_later),
        LOAD_TEST(segment_of_a_round_without_memory_is_used_later),
        LOAD_TEST(segment_without_one_before_says_so),
        LOAD_TEST(entries_keep_their_order_where_the_log_grows),
        LOAD_TEST(log_that_closes_amid_a_snapshot_closes_its_file),
        LOAD_TEST(mark_that_is_not_noted_on_the_way_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
