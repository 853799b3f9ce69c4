/* SPDX-License-Identifier: Apache-2.0 */
/* One log step by step: what each call promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/node_log.h"
#include "steps.h"
#include "wire/message.h"

static void append_first_batch_is_acked_only_after_opened(void **state)
{
    (void)state;
    struct fake *fake = fake_create(1, LEAT_DURABILITY_MEMORY);
    fake->open_at_once = false;
    fake_open(fake, NULL, 0, NULL);
    struct sent sent;
    assert_int_equal(append(fake, &sent, 3, 100, -1, -1, -1), LEAT_OK);
    fake_settle(fake);
    assert_true(fake->opening);
    assert_int_equal(sent.answers, 0);
    assert_int_equal(leat_log_acked_offset(fake->log), 0);
    fake->opening = false;
    leat_log_opened(fake->log, LEAT_OK);
    fake_settle(fake);
    assert_int_equal(sent.answers, 1);
    assert_int_equal(leat_log_acked_offset(fake->log), 3);
    assert_int_equal(read_all(fake, 0, false), 3);
    fake_destroy(fake);
}

static void append_many_rolls_and_reads_back(void **state)
{
    enum leat_durability level = (enum leat_durability)(uintptr_t)*state;
    struct fake *fake = fake_create(2, level);
    fake->delay_us_max = 300;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 400; i++)
        must_append(fake, 100, 100);
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    assert_true(info.segment_count > 2);
    assert_int_equal(info.acked_offset, 40000);
    assert_int_equal(read_all(fake, 0, false), 40000);
    assert_int_equal(read_all(fake, 0, true), 40000);
    fake_destroy(fake);
}

/* Batches that come while the log rolls wait for the close entry of the segment before; what is
 * committed when is checked by fake_commit_check(), what may be found meanwhile by fake_roll_check(). */
static void roll_with_batches_waiting_commits_the_start_entry_alone(void **state)
{
    enum leat_durability level = (enum leat_durability)(uintptr_t)*state;
    enum { BATCHES = 400 };
    static struct sent sent[BATCHES];
    struct fake *fake = fake_create(31, level);
    fake->delay_us_max = 300;
    fake->memory_is_safe = false;
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    for (int i = 0; i < BATCHES; i++) {
        assert_int_equal(append(fake, &sent[i], 1, 1000, -1, -1, -1), LEAT_OK);
        if (i % 4 == 0) fake_turn_end(fake);
    }
    fake_settle(fake);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(sent[i].answers, 1);
    assert_true(fake->starts_alone > 0);
    assert_true(fake->data_hidden > 0);
    assert_int_equal(read_all(fake, 0, false), 1 + BATCHES);
    fake_destroy(fake);
}

/* ---- producers through the log ---- */

/* A repeat is answered with the original's offset, and only once that is acked (docs/stories.md 7). */
static void append_repeat_waits_for_the_original(void **state)
{
    (void)state;
    struct fake *fake = fake_create(3, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    struct sent first, repeat;
    assert_int_equal(append(fake, &first, 5, 10, 42, 0, 0), LEAT_OK);
    fake_turn_end(fake); /* its commit is in flight */
    assert_int_equal(append(fake, &repeat, 5, 10, 42, 0, 0), LEAT_OK);
    fake_turn_end(fake);
    assert_true(repeat.append.duplicate);
    assert_int_equal(first.answers + repeat.answers, 0);
    fake_settle(fake);
    assert_int_equal(first.answers, 1);
    assert_int_equal(repeat.answers, 1);
    assert_int_equal(repeat.rc, LEAT_OK);
    assert_int_equal(repeat.append.first_offset, first.append.first_offset);
    /* Six more, and the first is appended, but where is forgotten. */
    struct sent other;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(append(fake, &other, 5, 10, 42, 0, 5 + 5 * i), LEAT_OK);
        fake_settle(fake);
    }
    assert_int_equal(append(fake, &repeat, 5, 10, 42, 0, 0), LEAT_OK);
    assert_int_equal(repeat.answers, 0);
    fake_settle(fake);
    assert_int_equal(repeat.rc, LEAT_E_ALREADY_APPENDED);
    assert_int_equal(append(fake, &other, 5, 10, 42, 0, 36), LEAT_E_SEQUENCE_GAP);
    assert_int_equal(append(fake, &other, 5, 10, 42, 1, 7), LEAT_E_SEQUENCE_GAP);
    assert_int_equal(append(fake, &other, 5, 10, 42, 1, 0), LEAT_OK);
    fake_settle(fake);
    assert_int_equal(append(fake, &other, 5, 10, 42, 0, 35), LEAT_E_PRODUCER_FENCED);
    assert_int_equal(append(fake, &other, 5, 10, 43, 0, 1), LEAT_E_SEQUENCE_GAP);
    fake_destroy(fake);
}

static struct leat_store_req *commits_held[4];
static unsigned commits_held_count;

static void commit_hold(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    if (req->kind != LEAT_STORE_COMMIT) {
        fake_request(ctx, post, req);
        return;
    }
    assert_true(commits_held_count < 4);
    commits_held[commits_held_count++] = req;
}

static void commit_answer(struct fake *fake, unsigned which)
{
    fake_push(fake, (struct fake_event){.req = commits_held[which]});
    fake_settle(fake);
}

/* Where the store port takes two commits of a segment, the second leaves while the first is under way, and what
 * comes then is shown for it to take along. Acks follow the answers. */
static void append_meanwhile_goes_along_with_the_next_commit(void **state)
{
    (void)state;
    struct fake *fake = fake_create(3, LEAT_DURABILITY_DISK);
    fake->store_port.commits = 2;
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    fake_settle(fake);
    fake->log->store_port.request = commit_hold;
    commits_held_count = 0;
    struct sent sent[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(append(fake, &sent[i], 1, 10, 42, 0, i), LEAT_OK);
        fake_turn_end(fake);
    }
    assert_int_equal(commits_held_count, 2);
    struct leat_store_req *first = commits_held[0], *second = commits_held[1];
    uint32_t shown = atomic_load(&second->seg->sealed_bytes);
    assert_true(first->to_bytes < second->to_bytes && second->to_bytes < shown);
    second->to_bytes = shown;
    commit_answer(fake, 0);
    assert_true(sent[0].answers == 1 && sent[1].answers == 0 && sent[2].answers == 0);
    commit_answer(fake, 1);
    assert_true(sent[1].answers == 1 && sent[2].answers == 1);
    /* Asked for before it was known that the second answer would bring this ack. */
    assert_int_equal(commits_held_count, 3);
    commit_answer(fake, 2);
    fake_destroy(fake);
}

/* Nine in flight, and all of them once more before one is acked: each is stored once, in its order, and
 * no repeat is answered before its original is. Of the older ones the offset is forgotten, no more
 * (multilog/producers.h). */
static void append_of_more_than_five_in_flight_stores_each_once(void **state)
{
    (void)state;
    enum { BATCHES = 9, KNOWN = LEAT_BATCHES_IN_FLIGHT_MAX };
    struct fake *fake = fake_create(3, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    struct sent first[BATCHES], repeat[BATCHES], gap;
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(append(fake, &first[i], 5, 10, 42, 0, 5 * i), LEAT_OK);
    fake_turn_end(fake); /* their commit is in flight */
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(append(fake, &repeat[i], 5, 10, 42, 0, 5 * i), LEAT_OK);
    assert_int_equal(append_try(fake, &gap, 5, 10, 42, 0, 5 * BATCHES + 5), LEAT_E_SEQUENCE_GAP);
    fake_turn_end(fake);
    for (int i = 0; i < BATCHES; i++)
        assert_int_equal(first[i].answers + repeat[i].answers, 0);
    fake_settle(fake);
    for (int i = 0; i < BATCHES; i++) {
        assert_int_equal(first[i].rc, LEAT_OK);
        assert_int_equal(first[i].append.first_offset, 1 + 5 * i);
        assert_int_equal(repeat[i].answers, 1);
        bool known = i >= BATCHES - KNOWN;
        assert_int_equal(repeat[i].rc, known ? LEAT_OK : LEAT_E_ALREADY_APPENDED);
        if (known) assert_int_equal(repeat[i].append.first_offset, 1 + 5 * i);
    }
    assert_int_equal(leat_log_acked_offset(fake->log), 1 + 5 * BATCHES);
    fake_destroy(fake);
}

static unsigned error_lines;

static void node_log_count(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx, (void)line;
    error_lines += level == LEAT_NODE_LOG_ERROR;
}

/* A stream that is deleted before its first append is acked is no fault; an owner that is refused is one. */
static void append_to_a_stream_deleted_before_it_was_opened_writes_no_error(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_E_UNKNOWN_STREAM, LEAT_E_INVALID};
    for (unsigned i = 0; i < 2; i++) {
        struct fake *fake = fake_create(1, LEAT_DURABILITY_MEMORY);
        fake->open_at_once = false;
        fake_open(fake, NULL, 0, NULL);
        struct sent sent;
        assert_int_equal(append(fake, &sent, 3, 100, -1, -1, -1), LEAT_OK);
        fake_settle(fake);
        assert_true(fake->opening);
        fake->opening = false;
        error_lines = 0;
        leat_node_log_set(node_log_count, NULL, LEAT_NODE_LOG_ERROR);
        leat_log_opened(fake->log, codes[i]);
        fake_settle(fake);
        leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
        assert_int_equal(error_lines, i);
        assert_int_equal(sent.answers, 1);
        assert_int_equal(sent.rc, codes[i]);
        fake_destroy(fake);
    }
}

/* ---- places, hibernating, retention ---- */

/* A time in a compressed batch is found in pieces, between which the log's core does something else: until then its
 * bytes are kept. What is answered is exact. */
static void locate_time_in_compressed_batch_goes_on_in_pieces(void **state)
{
    (void)state;
    enum { RECORDS = 200 };
    struct fake *fake = fake_create(7, LEAT_DURABILITY_MEMORY);
    fake_open(fake, NULL, 0, NULL);
    int64_t begin = fake_wall(fake);
    must_append(fake, 1, 10);
    compressed_append(fake, begin, RECORDS);
    size_t wire_bytes = leat_mem_bytes(LEAT_MEM_WIRE);
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = begin + RECORDS - 1};
    assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
    assert_int_equal(op.offset.v, 1);
    assert_true(op.seeks);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_WIRE), wire_bytes); /* it is not its turn */
    assert_non_null(op.read.pinned);
    unsigned pieces = 1;
    while (leat_locate_step(&op) == LEAT_E_AGAIN)
        pieces++;
    assert_in_range(pieces, 20, 30); /* 800 KB */
    assert_false(op.seeks);
    assert_null(op.unpacker); /* it may be used again */
    assert_int_equal(leat_mem_bytes(LEAT_MEM_WIRE), wire_bytes);
    assert_null(op.read.pinned);
    assert_int_equal(op.rc, LEAT_OK);
    assert_int_equal(op.offset.v, RECORDS);
    assert_int_equal(op.timestamp_ms, begin + RECORDS - 1);
    fake_destroy(fake);
}

static void locate_time_offset_and_ends(void **state)
{
    (void)state;
    struct fake *fake = fake_create(7, LEAT_DURABILITY_MEMORY);
    fake->options.settings.segment_bytes_max = 64 * 1024;
    fake_open(fake, NULL, 0, NULL);
    int64_t begin = fake_wall(fake);
    for (int i = 0; i < 100; i++) { /* record j of batch i: begin + 100 i + j */
        must_append(fake, 50, 100);
        fake->now_us = 1000000 + (uint64_t)(i + 1) * 100000;
    }
    for (int file = 0; file < 2; file++) {
        void *buffer = aligned_alloc(4096, LEAT_BATCH_BYTES_MAX + 64 * 1024);
        for (int i = 0; i < 99; i += 7) {
            struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = begin + 100 * i + 20};
            op.read.disk_buffer = buffer;
            op.read.disk_buffer_bytes = LEAT_BATCH_BYTES_MAX + 64 * 1024;
            op.on_done = on_locate_done;
            bool done = false;
            op.owner = &done;
            if (leat_log_locate(fake->log, &op) == LEAT_E_AGAIN)
                while (!done)
                    assert_true(fake_deliver(fake));
            assert_int_equal(op.rc, LEAT_OK);
            assert_int_equal(op.offset.v, 50 * i + 20);
            assert_int_equal(op.timestamp_ms, begin + 100 * i + 20);
            op.what = LEAT_LOCATE_OFFSET;
            op.value = 50 * i + 20;
            done = false;
            struct leat_position place = op.position;
            if (leat_log_locate(fake->log, &op) == LEAT_E_AGAIN)
                while (!done)
                    assert_true(fake_deliver(fake));
            assert_int_equal(op.rc, LEAT_OK);
            assert_int_equal(op.position.segment, place.segment);
            assert_int_equal(op.position.position, place.position);
        }
        struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = begin + 1000000};
        assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
        assert_int_equal(op.offset.v, 5000);
        assert_int_equal(op.timestamp_ms, -1);
        free(buffer);
        evict_all(fake);
    }
    uint64_t first, end, last_end = 0;
    for (uint64_t group = 0; leat_log_group(fake->log, group, &first, &end) == LEAT_OK; group++) {
        assert_int_equal(first, last_end);
        last_end = end;
    }
    assert_true(last_end == UINT64_MAX);
    fake_destroy(fake);
}

/* Nothing is written any more: the last records go too when their time is over, also from a hibernated
 * head, and offsets go on where they were. */
static void retention_of_an_idle_log_drops_its_last_records(void **state)
{
    (void)state;
    for (int hibernated = 0; hibernated < 2; hibernated++) {
        struct fake *fake = fake_create(11, LEAT_DURABILITY_DISK);
        fake->options.settings.retention_ms = 60 * 1000;
        fake_open(fake, NULL, 0, NULL);
        must_append(fake, 50, 100);
        if (hibernated) {
            fake->now_us += 20 * 1000 * 1000;
            leat_log_care(fake->log);
            fake_settle(fake);
            assert_int_equal(fake->log->hibernating, LOG_HIBERNATED);
        }
        fake->now_us += 120 * 1000 * 1000;
        for (int i = 0; i < 4; i++) {
            leat_log_care(fake->log);
            fake_settle(fake);
            fake->now_us += 1000 * 1000;
        }
        struct leat_log_info info;
        leat_log_info(fake->log, &info);
        assert_int_equal(info.first_offset, 50);
        assert_int_equal(info.acked_offset, 50);
        assert_int_equal(info.segment_count, 1);
        assert_int_equal(fake->drops, 1);
        uint64_t next = fake->log->next_segment;
        for (int i = 0; i < 4; i++) {
            fake->now_us += 120 * 1000 * 1000;
            leat_log_care(fake->log);
            fake_settle(fake);
        }
        assert_int_equal(fake->log->next_segment, next); /* an empty head does not roll */
        must_append(fake, 3, 100);
        assert_int_equal(read_all(fake, 50, false), 3);
        fake_destroy(fake);
    }
}

static void time_passes(struct fake *fake, uint64_t seconds)
{
    for (uint64_t i = 0; i < 4; i++) {
        fake->now_us += seconds * 1000 * 1000 / 4;
        leat_log_care(fake->log);
        fake_settle(fake);
    }
}

/* Of the header's highest time nothing is believed; of the records' own what is in the past. A log of closed segments
 * and a head keeps all for as long as it is to, and no longer. */
static void retention_goes_by_times_that_can_be_right(void **state)
{
    (void)state;
    static const struct {
        bool lies;
        int64_t header_ms, later_ms;
    } cases[] = {
        {true, -1, 0},           {true, INT64_MIN, 0},
        {true, INT64_MAX, 0},    {false, 0, INT64_C(1) << 45},
        {false, 0, -2000000000}, {true, -1, -2000000000},
    };
    for (unsigned i = 0; i < (sizeof cases / sizeof cases[0]); i++) {
        struct fake *fake = fake_create(31 + i, LEAT_DURABILITY_DISK);
        fake->options.settings.retention_ms = 60 * 1000;
        fake->options.settings.segment_bytes_max = 64 * 1024;
        fake_open(fake, NULL, 0, NULL);
        times.lies = cases[i].lies;
        times.header_ms = cases[i].header_ms;
        times.later_ms = cases[i].later_ms;
        if (times.later_ms < 0) times.later_ms = -fake_wall(fake) - 1000000; /* before 1970 */
        for (int n = 0; n < 40; n++)
            must_append(fake, 50, 100);
        times.lies = false;
        times.later_ms = 0;
        struct leat_log_info info;
        time_passes(fake, 40);
        leat_log_info(fake->log, &info);
        assert_true(info.segment_count > 2);
        assert_int_equal(info.first_offset, 0);
        assert_int_equal(read_all(fake, 0, false), 2000);
        time_passes(fake, 80);
        time_passes(fake, 80);
        leat_log_info(fake->log, &info);
        assert_int_equal(info.first_offset, 2000);
        assert_int_equal(info.segment_count, 1);
        fake_destroy(fake);
    }
}

/* The batch in the segment has the right time in its header, so a reader by time finds the batch. */
static void time_left_out_of_the_header_is_found_all_the_same(void **state)
{
    (void)state;
    struct fake *fake = fake_create(33, LEAT_DURABILITY_MEMORY);
    fake_open(fake, NULL, 0, NULL);
    times.lies = true;
    times.header_ms = -1;
    int64_t begin = fake_wall(fake);
    must_append(fake, 50, 100);
    times.lies = false;
    struct leat_locate_op op = {.what = LEAT_LOCATE_TIME, .value = begin + 20};
    assert_int_equal(leat_log_locate(fake->log, &op), LEAT_OK);
    assert_int_equal(op.offset.v, 20);
    assert_int_equal(op.timestamp_ms, begin + 20);
    fake_destroy(fake);
}

/* An idle log gives its buffer back, its bytes stay readable, and it goes on in the same segment.
 */
static void hibernate_and_resume_go_on_in_the_same_segment(void **state)
{
    (void)state;
    struct fake *fake = fake_create(8, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 10, 100);
    struct leat_log_info info;
    for (int i = 1; i <= 5; i++) {
        fake->now_us += 20 * 1000 * 1000;
        leat_log_care(fake->log);
        fake_settle(fake);
        leat_log_info(fake->log, &info);
        assert_int_equal(info.memory_bytes, 0);
        assert_int_equal(read_all(fake, 0, false), (uint64_t)i * 10);
        must_append(fake, 10, 100);
    }
    leat_log_info(fake->log, &info);
    assert_int_equal(info.segment_count, 1);
    assert_int_equal(read_all(fake, 0, true), 60);
    fake_destroy(fake);
}

static const struct leat_segment *in_the_way;
static bool is_in_the_way(void *ctx, const struct leat_segment *head)
{
    (void)ctx;
    assert_non_null(head->buffer);
    return head == in_the_way;
}

static void care_after(struct fake *fake, uint64_t us)
{
    fake->now_us += us;
    leat_log_care(fake->log);
    fake_settle(fake);
}

/* Goal: a head that is written to and in the way of a pool that shrinks rolls, though it has room. */
static void head_in_the_way_rolls(void **state)
{
    (void)state;
    for (int disk = 0; disk < 2; disk++) {
        struct fake *fake = fake_create(11, disk ? LEAT_DURABILITY_DISK : LEAT_DURABILITY_MEMORY);
        fake->store_port.in_the_way = is_in_the_way;
        in_the_way = NULL; /* the round before may have left one at the same address */
        fake_open(fake, NULL, 0, NULL);
        must_append(fake, 10, 100);
        const struct leat_segment *first = fake->log->head.seg;
        uint32_t capacity = fake->log->roll_capacity;
        care_after(fake, 1000 * 1000);
        assert_ptr_equal(fake->log->head.seg, first);
        in_the_way = first;
        must_append(fake, 10, 100);
        care_after(fake, 1000 * 1000);
        assert_ptr_not_equal(fake->log->head.seg, first);
        assert_int_equal(first->state, LEAT_SEGMENT_CLOSED);
        assert_int_equal(fake->log->roll_capacity,
                         capacity); /* it says nothing of the log's pace */
        for (int i = 0; i < 3; i++) {
            must_append(fake, 10, 100);
            care_after(fake, 1000 * 1000);
        }
        struct leat_log_info info;
        leat_log_info(fake->log, &info);
        assert_int_equal(info.segment_count, 2);
        assert_int_equal(read_all(fake, 0, true), 50);
        fake_destroy(fake);
    }
}

/* Goal: where no other segment can be had the head stays and serves, and the log asks seldom. An idle head is
 * hibernated, and the log takes no other segment. */
static void head_in_the_way_without_room_stays(void **state)
{
    (void)state;
    struct fake *fake = fake_create(12, LEAT_DURABILITY_MEMORY);
    fake->store_port.in_the_way = is_in_the_way;
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    in_the_way = fake->log->head.seg;
    fake->fail_kinds = 1u << LEAT_STORE_RESERVE;
    fake->fail_rc = LEAT_E_NO_MEMORY;
    fake->fail_request_at = fake->requests + 1;
    care_after(fake, 1000 * 1000);
    assert_int_equal(fake->requests, fake->fail_request_at);
    for (int i = 0; i < 9; i++) {
        must_append(fake, 1, 10);
        care_after(fake, 1000 * 1000);
        assert_int_equal(fake->requests, fake->fail_request_at);
        assert_ptr_equal(fake->log->head.seg, in_the_way);
    }
    care_after(fake, fake->options.hibernate_after_us);
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    assert_int_equal(info.segment_count, 1);
    assert_int_equal(info.memory_bytes, 0);
    in_the_way = NULL;
    must_append(fake, 1, 10); /* it has a buffer elsewhere */
    in_the_way = fake->log->head.seg;
    care_after(fake, 1000 * 1000);
    leat_log_info(fake->log, &info);
    assert_int_equal(info.segment_count, 2);
    assert_int_equal(read_all(fake, 0, true), 11);
    fake_destroy(fake);
}

/* A table beyond three quarters forgets whom it has not seen for longest, not before a quarter of an
 * hour; a table with room keeps everybody for the whole expiry. */
static void producers_of_a_full_table_expire_sooner(void **state)
{
    (void)state;
    struct fake *fake = fake_create(9, LEAT_DURABILITY_DISK);
    fake_open(fake, NULL, 0, NULL);
    fake->log->producers.count_max = 40; /* the real limit is only more of the same */
    struct sent sent;
    for (int i = 0; i < 40; i++) {
        assert_int_equal(append(fake, &sent, 1, 10, i, 0, 0), LEAT_OK);
        fake_settle(fake);
        fake->now_us += 1000 * 1000;
    }
    struct leat_log_info info;
    leat_log_care(fake->log);
    fake_settle(fake);
    assert_int_equal(append(fake, &sent, 1, 10, 99, 0, 0), LEAT_E_TOO_MANY_PRODUCERS);
    /* Producers 0 to 4 are older than 15 minutes now: the excess is 10, but 5 are too young. */
    fake->now_us += (uint64_t)(15 * 60 - 40 + 5) * 1000 * 1000;
    leat_log_care(fake->log);
    fake_settle(fake);
    leat_log_info(fake->log, &info);
    assert_int_equal(info.producers, 35);
    fake->now_us += (uint64_t)3600 * 1000 * 1000;
    leat_log_care(fake->log);
    fake_settle(fake);
    leat_log_info(fake->log, &info);
    assert_int_equal(info.producers, 30);
    assert_int_equal(append(fake, &sent, 1, 10, 10, 0, 0), LEAT_OK);
    fake_settle(fake);
    assert_true(sent.append.duplicate && sent.rc == LEAT_OK);
    assert_int_equal(append(fake, &sent, 1, 10, 99, 0, 0), LEAT_OK);
    fake_settle(fake);
    fake_destroy(fake);
}

/* Where the first group ends, if that is told. amid: the roll out of it is under way. */
static uint64_t group_end_check(const struct fake *fake, unsigned *amid)
{
    const struct leat_log *log = fake->log;
    uint64_t first, end;
    bool next = log->head.seg && log->head.seg->id.v == LEAT_SEGMENTS_PER_GROUP;
    assert_int_equal(leat_log_group(log, 0, &first, &end), LEAT_OK);
    assert_int_equal(first, 0);
    assert_int_equal(end, next && !log->old.seg ? log->head.seg->base_offset : UINT64_MAX);
    *amid += next && log->old.seg;
    return end;
}

/* Goal: where a group of segments ends is told once the next one's beginning can't move any more, which a crash amid
 * the roll might do; never too early, and then for good. */
static void group_ends_once_the_roll_out_of_it_is_over(void **state)
{
    (void)state;
    unsigned amid = 0; /* of level `memory` the roll is over at once here */
    for (unsigned level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct fake *fake = fake_create(17, level);
        fake->options.settings.segment_bytes_max = 64 * 1024;
        fake_open(fake, NULL, 0, NULL);
        uint64_t end = UINT64_MAX, first, now;
        while (end == UINT64_MAX) {
            struct sent sent;
            while (append_try(fake, &sent, 50, 100, -1, -1, -1) == LEAT_E_AGAIN) {
                fake_turn_end(fake);
                (void)group_end_check(fake, &amid);
                assert_true(fake_deliver(fake));
            }
            fake_turn_end(fake);
            do
                end = group_end_check(fake, &amid);
            while (fake_deliver(fake));
            assert_int_equal(sent.answers, 1);
        }
        for (int i = 0; i < 20; i++) {
            must_append(fake, 50, 100);
            assert_int_equal(leat_log_group(fake->log, 0, &first, &now), LEAT_OK);
            assert_int_equal(now, end);
        }
        fake_destroy(fake);
    }
    assert_true(amid > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_ends_once_the_roll_out_of_it_is_over),
        cmocka_unit_test(append_first_batch_is_acked_only_after_opened),
        cmocka_unit_test(append_to_a_stream_deleted_before_it_was_opened_writes_no_error),
        cmocka_unit_test(locate_time_in_compressed_batch_goes_on_in_pieces),
        cmocka_unit_test_prestate(append_many_rolls_and_reads_back,
                                  (void *)(uintptr_t)LEAT_DURABILITY_MEMORY),
        cmocka_unit_test_prestate(append_many_rolls_and_reads_back,
                                  (void *)(uintptr_t)LEAT_DURABILITY_DISK),
        cmocka_unit_test_prestate(roll_with_batches_waiting_commits_the_start_entry_alone,
                                  (void *)(uintptr_t)LEAT_DURABILITY_MEMORY),
        cmocka_unit_test_prestate(roll_with_batches_waiting_commits_the_start_entry_alone,
                                  (void *)(uintptr_t)LEAT_DURABILITY_DISK),
        cmocka_unit_test(append_repeat_waits_for_the_original),
        cmocka_unit_test(append_meanwhile_goes_along_with_the_next_commit),
        cmocka_unit_test(append_of_more_than_five_in_flight_stores_each_once),
        cmocka_unit_test(locate_time_offset_and_ends),
        cmocka_unit_test(retention_of_an_idle_log_drops_its_last_records),
        cmocka_unit_test(retention_goes_by_times_that_can_be_right),
        cmocka_unit_test(time_left_out_of_the_header_is_found_all_the_same),
        cmocka_unit_test(head_in_the_way_rolls),
        cmocka_unit_test(head_in_the_way_without_room_stays),
        cmocka_unit_test(hibernate_and_resume_go_on_in_the_same_segment),
        cmocka_unit_test(producers_of_a_full_table_expire_sooner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
