/* SPDX-License-Identifier: Apache-2.0 */
/* Raft's storage, reading its vote and its segments: which rounds are taken, which are dropped as a write that was cut
 * off, and which are reported as damage. */
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

/* ---- vote ---- */

/* The newer block that is right; whichever is damaged, the other counts. */
static void vote_is_the_newest_block_that_is_right(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 2 * 3 * 73; c++) {
        const unsigned newer = c % 2, spoilt = c / 2 % 3, at = c / 6; /* block 2: none is */
        struct leat_raft_vote_state votes[2] = {vote_of(newer == 0 ? 8 : 7),
                                                vote_of(newer == 1 ? 8 : 7)};
        vote_is(&votes[0], &votes[1]);
        struct fake_inode *file = fake_world_file(world, "raft/vote");
        const bool counts = at < 72; /* what lies behind is nobody's */
        if (spoilt < 2) file->now[spoilt * 4096 + at] ^= 1;
        if (at < 72 && at % 9 == 0 && spoilt == 2) continue;
        assert_int_equal(load(), LEAT_OK);
        const unsigned taken = spoilt == newer && counts ? !newer : newer;
        assert_int_equal(raft_log.vote.sequence, taken == newer ? 8 : 7);
        assert_int_equal(raft_log.vote.voted_for, raft_log.vote.sequence);
        assert_non_null(strstr(journal.text, "sync vote"));
        unload();
        again();
    }
}

static void vote_of_two_damaged_blocks_is_damaged(void **state)
{
    (void)state;
    struct leat_raft_vote_state vote = vote_of(3);
    vote_is(&vote, &vote);
    struct fake_inode *file = fake_world_file(world, "raft/vote");
    file->now[20] ^= 1;
    file->now[4096 + 30] ^= 1;
    expect_damaged("both of its blocks");
    /* A file that ends early has no second block, or no block at all. */
    static const struct {
        size_t bytes;
        leat_err rc;
    } cases[] = {{4096, LEAT_OK},
                 {72, LEAT_OK},
                 {71, LEAT_E_DAMAGED},
                 {0, LEAT_E_DAMAGED},
                 {4096 + 71, LEAT_OK}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[8192];
        vote_put(bytes, &vote);
        vote_put(bytes + 4096, &vote);
        file_put("raft/vote", bytes, cases[i].bytes);
        assert_int_equal(load(), cases[i].rc);
        if (cases[i].rc == LEAT_OK) unload();
    }
}

static void vote_of_numbers_just_possible_is_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        struct leat_raft_vote_state vote = vote_of(3);
        uint64_t *const numbers[] = {&vote.sequence, &vote.term, &vote.first_segment,
                                     &vote.durable_segment};
        vote.formed = 0; /* what its log has is not looked at */
        if (i < 8) *numbers[i / 2] = MOST + i % 2;
        if (i == 8) vote.first_segment = 0;
        vote_is(&vote, &vote);
        assert_int_equal(load(), i == 8 || i % 2 ? LEAT_E_DAMAGED : LEAT_OK);
        if (i < 8 && i % 2 == 0) unload();
        again();
    }
}

static void log_without_a_vote_is_damaged(void **state)
{
    (void)state;
    assert_int_equal(load(), LEAT_OK);
    assert_true(is_new);
    unload();
    file_put("raft/vote.new", "", 0);
    file_put("raft/snapshot.new", "", 0);
    file_put("raft/log-1", "", 0);
    file_put("raft/log-000000000000000000001", "", 0);
    file_put("raft/log-0000000000000000000x", "", 0);
    file_put("raft/log-0000000000000000000/", "", 0);
    file_put("raft/lag-00000000000000000001", "", 0);
    assert_int_equal(load(), LEAT_OK); /* names of nothing of raft's */
    assert_true(is_new);
    unload();
    file_put("raft/log-00000000000000000009", "", 0);
    expect_damaged("raft/vote is missing");
    again();
    file_put("raft/snapshot-00000000000000000000", "", 0);
    expect_damaged("raft/vote is missing");
}

/* ---- segments ---- */

static void rounds_are_read_with_all_their_entries(void **state)
{
    (void)state;
    struct segment one = segment_of(1, 0), two;
    segment_round(&one, 1, 2, 3);
    segment_round(&one, 3, 1, 4);
    two = segment_of(2, segment_end(&one));
    segment_round(&two, 4, 3, 9);
    segment_write(&one, SEGMENT);
    segment_write(&two, SEGMENT);
    vote_is_plain(1, 2, segment_end(&two));
    assert_int_equal(load(), LEAT_OK);
    assert_false(is_new);
    expect_entries(1, 6, "entry 6.9");
    for (uint64_t i = 1; i <= 6; i++)
        assert_int_equal(leat_raft_log_get(&raft_log, i)->term, i < 3 ? 3 : i < 4 ? 4 : 9);
    assert_int_equal(raft_log.segment_count, 2);
    assert_int_equal(raft_log.segments[0].end, segment_end(&one));
    assert_int_equal(raft_log.segments[0].last_index, 3);
    assert_int_equal(raft_log.segments[1].end, segment_end(&two));
    assert_int_equal(raft_log.segments[1].last_index, 6);
    assert_int_equal(raft_log.next_segment, 3);
    assert_null(strstr(journal.text, "write"));
    assert_non_null(strstr(journal.text, "sync log-2"));
    assert_null(strstr(journal.text, "sync log-1")); /* one that has a successor was synced */
    unload();
}

/* For each byte of the last round: no part of the round was acknowledged, so the round is dropped and zeroed, and the
 * zeros are synced. With a mark behind the round, or a valid later round, the round counts as acknowledged. */
static void last_round_that_is_wrong_is_dropped_unless_it_was_durable(void **state)
{
    (void)state;
    struct segment plain = segment_of(1, 0);
    segment_round(&plain, 1, 2, 3);
    const uint64_t before = segment_end(&plain);
    segment_round(&plain, 3, 1, 3);
    const uint64_t end = segment_end(&plain);
    for (uint64_t at = before; at < end; at++) {
        struct segment it = plain;
        it.bytes[at] ^= 0x40;
        segment_write(&it, SEGMENT);
        vote_is_plain(1, 1, at % 2 ? before : 0);
        assert_int_equal(load(), LEAT_OK);
        expect_entries(1, 2, "entry 2.3");
        assert_int_equal(raft_log.segments[0].end, before);
        char calls[64];
        snprintf(calls, sizeof calls, "write log-1 %u+%u, sync log-1, sync log-1", (unsigned)before,
                 (unsigned)(SEGMENT - before));
        assert_non_null(strstr(journal.text, calls));
        const struct fake_inode *file = fake_world_file(world, "raft/log-00000000000000000001");
        for (size_t i = before; i < SEGMENT; i++)
            assert_int_equal(file->now[i], 0);
        assert_memory_equal(file->now, plain.bytes, before);
        unload();
        again();
        segment_write(&it, SEGMENT);
        vote_is_plain(1, 1, at % 2 ? before + 1 : end);
        expect_damaged("it was durable up to byte");
        assert_non_null(strstr(error.text, "raft/log-00000000000000000001 is damaged at"));
        again();
        /* A later round that is right, wherever it lies. */
        if (at % 16) continue;
        struct segment later = it;
        later.at = later.bytes + end + at % 64;
        segment_round(&later, 4, 1, 3);
        segment_write(&later, SEGMENT);
        vote_is_plain(1, 1, 0);
        expect_damaged("what was made durable later is valid at byte");
        again();
    }
}

/* The same of what a header says: each of its fields, and of the frames. All with right checksums. */
static void round_that_contradicts_itself_is_none(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 12; c++) {
        struct segment it = segment_of(1, 0);
        segment_round(&it, 1, 1, 3);
        const uint64_t before = segment_end(&it);
        uint8_t *header = it.bytes + before, *at = header + 48, *end;
        uint32_t type = RAFT_COMMAND;
        at = frame_put(at, 2, 3, type, "some bytes", 10);
        end = frame_put(at, 3 + (c == 1), 3, type, "others", 6);
        if (c == 2) end[-1] = 1; /* padding */
        if (c == 3) end += 8;    /* bytes that are no frame's */
        round_seal(header, c == 4 ? 2 : 1, before + 8 * (c == 5), end,
                   c == 6   ? 3
                   : c == 7 ? 1
                            : 2,
                   2 + (c == 8));
        if (c == 9) leat_put_le32(header + 24, (uint32_t)(end - header - 48 - 8)), seal(header, 48);
        if (c == 10) leat_put_le32(header + 28, 0), leat_put_le32(header + 24, 0), seal(header, 48);
        if (c == 11) leat_put_le32(header + 24, SEGMENT), seal(header, 48);
        segment_write(&it, SEGMENT);
        vote_is_plain(1, 1, 0);
        assert_int_equal(load(), LEAT_OK);
        if (leat_raft_log_last_index(&raft_log) != (c == 0 ? 3 : 1)) fail_msg("case %u", c);
        unload();
        again();
    }
}

/* Goal: bytes of an entry that look like the beginning of a round do not prove that the torn round before them was
 * synced: the start would be refused for a write that was cut off. */
static void entry_that_looks_like_a_round_is_none(void **state)
{
    (void)state;
    uint8_t looks[64] = {0};
    for (unsigned i = 0; i < sizeof looks; i += 8)
        leat_put_le32(looks + i, LEAT_RAFT_ROUND_MAGIC);
    struct segment it = segment_of(1, 0);
    segment_round(&it, 1, 1, 3);
    const uint64_t before = segment_end(&it);
    uint8_t *header = it.bytes + before;
    uint8_t *end = frame_put(header + 48, 2, 3, RAFT_COMMAND, looks, sizeof looks);
    round_seal(header, 1, before, end, 1, 2);
    header[8] ^= 1; /* torn */
    it.at = end;
    segment_write(&it, SEGMENT);
    vote_is_plain(1, 1, 0);
    assert_int_equal(load(), LEAT_OK);
    expect_entries(1, 1, "entry 1.3");
    unload();
}

/* A round may end where its file ends, not behind. */
static void round_lies_within_its_file(void **state)
{
    (void)state;
    struct segment it = segment_of(1, 0);
    segment_round(&it, 1, 1, 3);
    segment_round(&it, 2, 1, 3);
    static const unsigned cuts[] = {0, 1, 7, 8, 16}; /* seven bytes only fill up, with zeros */
    for (unsigned i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const unsigned cut = cuts[i];
        segment_write(&it, segment_end(&it) - cut);
        vote_is_plain(1, 1, 0);
        assert_int_equal(load(), LEAT_OK);
        expect_entries(1, cut ? 1 : 2, cut ? "entry 1.3" : "entry 2.3");
        unload();
        again();
    }
    /* A round's header that is cut off, and one that is all there is. */
    struct segment head = segment_of(1, 0);
    for (size_t bytes = 0; bytes <= 64 + 48; bytes += 8) {
        segment_write(&head, bytes);
        vote_is_plain(1, 1, 0);
        assert_int_equal(load(), LEAT_OK);
        expect_entries(1, 0, "");
        assert_int_equal(raft_log.segments[0].end, 0);
        assert_non_null(strstr(journal.text, "allocate log-1 2048"));
        unload();
        again();
    }
}

static void segment_header_that_is_wrong_is_damage_if_anything_followed(void **state)
{
    (void)state;
    for (unsigned at = 0; at < 64; at++) {
        struct segment one = segment_of(1, 0), two;
        segment_round(&one, 1, 1, 3);
        one.bytes[at] ^= 1;
        segment_write(&one, SEGMENT);
        vote_is_plain(1, 1, 0);
        assert_int_equal(load(),
                         LEAT_OK); /* it was written with the first round, and is dropped with it */
        expect_entries(1, 0, "");
        unload();
        segment_round(&one, 2, 1, 3);
        segment_write(&one, SEGMENT);
        vote_is_plain(1, 1, 0);
        expect_damaged("what was made durable later");
        two = segment_of(2, segment_end(&one));
        segment_round(&two, 3, 1, 3);
        segment_write(&two, SEGMENT);
        expect_damaged("is damaged at its beginning");
        again();
    }
    /* A wrong version, or a wrong end of the segment before, in a header with a right checksum. */
    for (unsigned c = 0; c < 4; c++) {
        struct segment one = segment_of(1, 0), two;
        segment_round(&one, 1, 1, 3);
        two = segment_of(2, segment_end(&one) + (c == 1 ? 8 : c == 2 ? UINT64_MAX - 7 : 0));
        segment_round(&two, 2, 1, 3);
        segment_round(&two, 3, 1, 3);
        if (c == 3) leat_put_le32(two.bytes + 8, 2), seal(two.bytes, 64);
        segment_write(&one, SEGMENT);
        segment_write(&two, SEGMENT);
        vote_is_plain(1, 1, 0);
        if (c == 0) {
            assert_int_equal(load(), LEAT_OK);
            unload();
        } else {
            expect_damaged(c == 3 ? "made durable later"
                                  : "the segment before raft/log-00000000000000000002 is damaged");
        }
        again();
    }
}

/* A segment that was created last, and whose first round never came, follows anything. */
static void segment_without_a_round_may_be_the_last_alone(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        struct segment one = segment_of(1, 0), two = segment_of(2, 0), three;
        segment_round(&one, 1, 1, 3);
        segment_write(&one, SEGMENT);
        if (c == 1) memset(two.bytes, 0, 64);
        segment_write(&two, c == 2 ? 0 : SEGMENT);
        three = segment_of(3, 0);
        segment_round(&three, 2, 1, 3);
        if (c == 3) segment_write(&three, SEGMENT);
        vote_is_plain(1, 1, segment_end(&one));
        if (c == 3) {
            expect_damaged("is damaged at its beginning");
        } else {
            assert_int_equal(load(), LEAT_OK);
            expect_entries(1, 1, "entry 1.3");
            assert_int_equal(raft_log.segment_count, 2);
            assert_int_equal(raft_log.segments[1].end, 0);
            assert_int_equal(raft_log.segments[1].last_index, 0);
            assert_non_null(strstr(journal.text, "sync log-2, allocate log-2 2048"));
            unload();
        }
        again();
    }
}

/* The first damage, though what was durable later is not come to. */
static void damage_of_an_early_segment_is_named(void **state)
{
    (void)state;
    struct segment one = segment_of(1, 0), two;
    segment_round(&one, 1, 2, 3);
    two = segment_of(2, segment_end(&one));
    segment_round(&two, 3, 1, 3);
    one.bytes[20] ^= 1;
    segment_write(&one, SEGMENT);
    segment_write(&two, SEGMENT);
    vote_is_plain(1, 2, segment_end(&two));
    expect_damaged("raft/log-00000000000000000001 is damaged at its beginning");
}

/* Also where the durable mark is not as far: what follows the gap was made durable, too. */
static void segment_that_is_missing_before_another_is_named(void **state)
{
    (void)state;
    struct segment one = segment_of(1, 0), three;
    segment_round(&one, 1, 2, 3);
    three = segment_of(3, segment_end(&one));
    segment_round(&three, 3, 1, 3);
    segment_write(&one, SEGMENT);
    segment_write(&three, SEGMENT);
    vote_is_plain(1, 1, 0);
    expect_damaged("raft/log-00000000000000000002 is missing");
}

static void segment_that_is_missing_is_named(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, there[2], durable, durable_end, missing; /* 0: none is */
        uint64_t removed;
    } cases[] = {
        {1, {1, 2}, 2, 100, 0, 0}, {1, {2, 3}, 3, 100, 1, 0}, {1, {1, 3}, 3, 100, 2, 0},
        {2, {1, 2}, 2, 100, 0, 1}, {3, {1, 2}, 3, 0, 0, 1},   {3, {1, 2}, 3, 100, 3, 1},
        {1, {1, 2}, 3, 100, 3, 0}, {1, {1, 2}, 3, 0, 0, 0},   {2, {2, 3}, 3, 100, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t end = 0;
        for (unsigned k = 0; k < 2; k++) {
            struct segment it = segment_of(cases[i].there[k], k ? end : 0);
            segment_round(&it, k + 1, 1, 3);
            end = segment_end(&it);
            segment_write(&it, SEGMENT);
        }
        if (cases[i].first == cases[i].there[1]) { /* what is left needs what came before */
            uint8_t bytes[256];
            file_put("raft/snapshot-00000000000000000001", bytes,
                     snapshot_put(bytes, 1, 3, 1, "t", 1));
        }
        vote_is_plain(cases[i].first, cases[i].durable, cases[i].durable_end);
        if (cases[i].missing) {
            char name[96];
            snprintf(name, sizeof name, "raft/log-%020llu is missing",
                     (unsigned long long)cases[i].missing);
            expect_damaged(name);
        } else {
            if (load() != LEAT_OK) fail_msg("case %zu: %s", i, error.text);
            assert_int_equal(raft_log.next_segment, cases[i].first > 2 ? 3 : cases[i].there[1] + 1);
            unload();
        }
        for (uint64_t k = 0; k < 2; k++)
            assert_int_equal(file_is("log", cases[i].there[k]),
                             cases[i].there[k] >= cases[i].first);
        again();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOAD_TEST(vote_is_the_newest_block_that_is_right),
        LOAD_TEST(vote_of_two_damaged_blocks_is_damaged),
        LOAD_TEST(vote_of_numbers_just_possible_is_taken),
        LOAD_TEST(log_without_a_vote_is_damaged),
        LOAD_TEST(rounds_are_read_with_all_their_entries),
        LOAD_TEST(last_round_that_is_wrong_is_dropped_unless_it_was_durable),
        LOAD_TEST(round_that_contradicts_itself_is_none),
        LOAD_TEST(entry_that_looks_like_a_round_is_none),
        LOAD_TEST(round_lies_within_its_file),
        LOAD_TEST(segment_header_that_is_wrong_is_damage_if_anything_followed),
        LOAD_TEST(segment_without_a_round_may_be_the_last_alone),
        LOAD_TEST(damage_of_an_early_segment_is_named),
        LOAD_TEST(segment_that_is_missing_before_another_is_named),
        LOAD_TEST(segment_that_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
