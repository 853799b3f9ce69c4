/* SPDX-License-Identifier: Apache-2.0 */
/* What a log carries over: into the next segment's start entry, through a roll amid commits, into its next life; and
 * what it must not carry over: a mark of an earlier loss, an answer of an earlier batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "poke.h"

/* ---- an application above ---- */

static const char snapshot[16] = "state of others";
static unsigned replayed, restored;

static size_t snapshot_bytes(void *ctx)
{
    (void)ctx;
    return sizeof snapshot;
}

static void snapshot_write(void *ctx, uint8_t *out)
{
    (void)ctx;
    memcpy(out, snapshot, sizeof snapshot);
}

static void on_restore(void *ctx, const uint8_t *of, size_t count)
{
    (void)ctx;
    if (count == 0) return; /* the first start entry of all */
    assert_int_equal(count, sizeof snapshot);
    assert_memory_equal(of, snapshot, sizeof snapshot);
    restored++;
}

static void on_replay(void *ctx, const struct leat_batch *batch)
{
    (void)ctx;
    replayed += batch->record_count;
}

static void on_app_read(void *ctx)
{
    (void)ctx;
}

static void append_as(struct fake *made, int64_t producer, int32_t sequence)
{
    struct sent sent;
    assert_int_equal(append(made, &sent, 5, 100, producer, 0, sequence), LEAT_OK);
    fake_settle(made);
    assert_int_equal(sent.rc, LEAT_OK);
}

/* Goal: an application's state stands after the producers' states in a start entry, and comes back from there; the
 * batches after the start entry are replayed to the application, and the producers are known. */
static void state_of_an_application_comes_back(void **state)
{
    (void)state;
    for (unsigned evicted = 0; evicted < 2; evicted++) {
        struct fake *made = fake_create(9, LEAT_DURABILITY_MEMORY);
        made->options.settings.segment_bytes_max = 64 * 1024;
        made->options.app = (struct leat_log_app){.ctx = made,
                                                  .snapshot_bytes = snapshot_bytes,
                                                  .snapshot_write = snapshot_write,
                                                  .on_restore = on_restore,
                                                  .on_replay = on_replay,
                                                  .on_read = on_app_read};
        fake_open(made, NULL, 0, NULL);
        for (int64_t producer = 40; producer < 43; producer++)
            append_as(made, producer, 0);
        while (made->log->next_segment < 3)
            must_append(made, 50, 100);
        uint64_t base = made->log->head.seg->base_offset;
        append_as(made, 41, 5);
        restored = replayed = 0;
        reopen(made, 0, 0, evicted);
        fake_settle(made);
        assert_int_equal(restored, 1);
        assert_int_equal(replayed, made->log->next_offset - base);
        assert_int_equal(made->log->producers.count, 3);
        struct sent sent; /* what was appended before is answered as that */
        assert_int_equal(append(made, &sent, 5, 100, 41, 0, 5), LEAT_OK);
        fake_settle(made);
        assert_true(sent.append.duplicate);
        assert_true(sent.append.first_offset >= base);
        made->log->options.app.ctx = NULL;
        fake_destroy(made);
    }
}

/* Goal: how many producers a log remembers is what a start entry has room for: half of it where an application's state
 * stands there, too. */
static void producers_have_room_in_a_start_entry(void **state)
{
    (void)state;
    for (unsigned app = 0; app < 2; app++) {
        struct fake *made = fake_create(9, LEAT_DURABILITY_MEMORY);
        made->options.app.ctx = app ? made : NULL;
        fake_open(made, NULL, 0, NULL);
        size_t room = (app ? LEAT_START_BYTES_MAX / 2 : LEAT_START_BYTES_MAX);
        size_t most = (room - sizeof(struct leat_start)) / sizeof(struct leat_producer_state);
        if (most > LEAT_PRODUCERS_PER_LOG_MAX) most = LEAT_PRODUCERS_PER_LOG_MAX;
        assert_int_equal(made->log->producers.count_max, most);
        made->log->options.app.ctx = NULL;
        fake_destroy(made);
    }
}

/* ---- rolls ---- */

/* Goal: only the first segment after an accepted loss says that records before it were given up. */
static void accepted_loss_is_before_one_segment(void **state)
{
    (void)state;
    struct fake *made = log_of(2);
    reopen(made, 1 << 2, 10, false);
    fake_settle(made);
    assert_true(made->log->jumped);
    uint64_t first = made->log->next_segment;
    while (made->log->next_segment < first + 3)
        must_append(made, 50, 100);
    assert_false(made->log->jumped);
    assert_int_equal(log_slot_find(made->log, first)->joint, LOG_JOINT_JUMPED);
    assert_int_equal(log_slot_find(made->log, first + 1)->joint, LOG_JOINT_CHAINED);
    assert_int_equal(log_slot_find(made->log, first + 2)->joint, LOG_JOINT_CHAINED);
    fake_destroy(made);
}

static struct leat_store_req *held[4];
static unsigned held_count;
static bool holds, followed;
static unsigned rolls_read;

static void hold_request(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    assert_int_equal(req->rc, LEAT_OK);
    assert_int_equal(req->from, post->self);
    if (req->kind == LEAT_STORE_COMMIT && fake->log->old.seg) followed |= req->follow;
    if (req->kind == LEAT_STORE_COMMIT && holds) {
        held[held_count++] = req;
        return;
    }
    fake_request(ctx, post, req);
}

/* Goal: a log rolls while a commit is under way and more batches have gathered: all of them are acked when the old
 * segment is safe, and no commit amid the roll takes along what gathers after it. */
static void batches_that_gather_amid_a_roll_are_acked(void **state)
{
    (void)state;
    for (unsigned commits = 0; commits < 2; commits++) {
        struct fake *made = watch_begun(LEAT_DURABILITY_DISK);
        poke_begin(made);
        it->store_port.commits = commits ? 2 : 0;
        it->store_port.request = hold_request;
        held_count = 0;
        holds = true;
        followed = false;
        it->commits[0].req.from = it->commits[1].req.from = 77; /* of an earlier use */
        it->commits[0].req.rc = it->commits[1].req.rc = LEAT_E_DISK;
        it->reserve.from = it->close.from = 77;
        it->reserve.rc = it->close.rc = LEAT_E_DISK;
        (void)put(made, 1, 100);
        assert_int_equal(held_count, 1);
        (void)put(made, 2, 100); /* gathers */
        it->roll_wanted = true;
        log_mark_dirty(it);
        fake_settle(made);
        uint64_t end = it->next_offset;
        if (it->old.seg) { /* what is acked of it is read */
            static struct leat_read read;
            read = (struct leat_read){.max_bytes = 64 * 1024};
            assert_int_equal(read_once(made, &read, NULL), LEAT_OK);
            assert_int_equal(read.next.v, log_acked(it));
            rolls_read++;
        }
        holds = false;
        for (unsigned i = 0; i < held_count; i++)
            fake_push(made, (struct fake_event){.req = held[i]});
        fake_settle(made);
        assert_int_equal(it->head.seg->id.v, 1);
        assert_null(it->old.seg);
        assert_int_equal(log_acked(it), end);
        assert_true(leat_list_empty(&it->waiting));
        assert_false(followed);
        it->store_port.request = watch_request;
        watch_end(made);
    }
    assert_true(rolls_read > 0);
}

/* Goal: a batch that is appended has no mark of a batch that its memory was used for; a batch that no reader's buffer
 * holds is refused, whatever the stream's limit. */
static void append_begins_without_marks(void **state)
{
    (void)state;
    struct fake *made = watch_begun(LEAT_DURABILITY_MEMORY);
    struct leat_append again = {.duplicate = true, .on_acked = watch_answer, .owner = watch_sent};
    struct leat_batch batch;
    struct leat_error error = {0};
    uint32_t total = fake_batch(bytes, sizeof bytes, 1, 100, 7000, -1, -1, -1);
    assert_int_equal(leat_batch_check(bytes, total, &batch, &error), LEAT_OK);
    assert_int_equal(leat_log_append(made->log, &batch, &again, &error), LEAT_OK);
    assert_false(again.duplicate);
    fake_settle(made);
    made->log->options.settings.batch_bytes_max = LEAT_BATCH_BYTES_MAX + 100;
    batch.byte_count = LEAT_BATCH_BYTES_MAX + 1;
    assert_int_equal(leat_log_append(made->log, &batch, &again, &error), LEAT_E_TOO_LARGE);
    watch_end(made);
}

/* ---- losses ---- */

static bool given_up(void)
{
    trace_begin();
    bool found = log_damage_give_up(it);
    fake->queued = 0;
    return found;
}

/* Goal: which place an accepted loss gives up: the first of the table, too, and none without a segment after it; where
 * the log takes no appends, its last segment's records alone. */
static void accepted_loss_gives_up_named_places(void **state)
{
    (void)state;
    segments(2);
    slot(0)->seg->base_offset += 5;
    slot(0)->named = LOG_NAMED_FRONT;
    it->skip = LOG_SKIP_GOES;
    assert_true(given_up());
    TRACE_IS("GIVE_UP s0 its front passed 0\n");
    slot(0)->seg->base_offset -= 5;
    poke_end();
    segments(3);
    slot(3)->seg->base_offset += 5; /* of the last, which takes no appends */
    slot(3)->closed = true;
    slot(3)->named = LOG_NAMED_FRONT | LOG_NAMED_RECORDS;
    it->skip = LOG_SKIP_GOES;
    it->state = LEAT_LOG_DAMAGED;
    assert_false(given_up());
    TRACE_IS("");
    poke_end();
    segments(1);
    it->slot_count = 1;
    it->state = LEAT_LOG_DAMAGED;
    slot(0)->seg->passed_bytes = 7;
    slot(0)->closed = false;
    log_damage_name(it); /* not what is passed over in a segment that is open */
    assert_int_equal(slot(0)->named, LOG_NAMED_RECORDS);
    it->slot_count = 2;
    poke_end();
    struct fake *made = log_of(3); /* the end is missing: no segment is after it */
    reopen(made, 1 << 3, 0, false);
    fake_settle(made);
    made->log->skip = LOG_SKIP_GOES;
    for (uint32_t i = 0; i < made->log->slot_count; i++)
        log_slot_at(made->log, i)->named = LOG_NAMED_FRONT | LOG_NAMED_RECORDS;
    assert_false(log_damage_give_up(made->log));
    made->log->skip = LOG_SKIP_NONE;
    fake_destroy(made);
}

/* Goal: a segment whose records were given up is sought no more, and no other is. */
static void segment_that_is_given_up_is_sought_no_more(void **state)
{
    (void)state;
    static const struct {
        bool records;
        enum log_repair before, after;
    } cases[] = {{true, LOG_REPAIR_LOST_SOUGHT, LOG_REPAIR_LOST},
                 {false, LOG_REPAIR_LOST_SOUGHT, LOG_REPAIR_LOST_SOUGHT},
                 {true, LOG_REPAIR_NONE, LOG_REPAIR_NONE}};
    for (unsigned i = 0; i < 3; i++) {
        segments(2);
        it->skip = LOG_SKIP_GOES;
        slot(1)->seg->base_offset += 5;
        slot(1)->named = LOG_NAMED_FRONT;
        assert_true(log_damage_give_up(it));
        it->give_up.given_up = cases[i].records;
        slot(1)->repair = cases[i].before;
        one_done();
        assert_int_equal(slot(1)->repair, cases[i].after);
        slot(1)->seg->base_offset -= 5;
        poke_end();
    }
}

/* Goal: one fetch at a time writes the bytes of a damaged segment. */
static void segment_is_repaired_by_one(void **state)
{
    (void)state;
    segments(2);
    slot(0)->repair = LOG_REPAIR_SOUGHT;
    struct leat_segment *seg = slot(0)->seg;
    assert_ptr_equal(leat_log_repair_begin(it, seg->id, seg->prefix_id), seg);
    assert_null(leat_log_repair_begin(it, seg->id, seg->prefix_id));
    assert_true(leat_log_repair_end(it, seg->id, LEAT_OK));
    poke_end();
}

/* ---- look-ups ---- */

static void acked_in_step(void *owner, struct leat_log *log)
{
    assert_true(log->in_step);
    log->clocks_read = true;
    leat_log_turn_end(log); /* of who calls back: the step goes on by itself */
    fake_on_acked(owner, log);
}

/* Goal: an event that calls back into the log begins no second step. */
static void event_begins_no_step_amid_a_step(void **state)
{
    (void)state;
    struct fake *made = fake_create(3, LEAT_DURABILITY_MEMORY);
    made->options.events.on_acked = acked_in_step;
    fake_open(made, NULL, 0, NULL);
    must_append(made, 3, 100);
    assert_int_equal(made->acked_events, 1);
    fake_destroy(made);
}

/* Goal: a log without a segment has no epoch, whatever the operation was used for before; a batch whose header is wrong
 * in memory is damaged, and no answer to a look-up. */
static void look_up_answers_what_is_there(void **state)
{
    (void)state;
    struct fake *made = fake_create(3, LEAT_DURABILITY_MEMORY);
    void *buffer = aligned_alloc(4096, BUFFER_BYTES);
    fake_open(made, NULL, 0, NULL);
    struct leat_locate_op op = {.what = LEAT_LOCATE_EPOCH, .value = 3, .epoch = {9}};
    assert_int_equal(locate(made, &op, buffer), LEAT_OK);
    assert_int_equal(op.epoch.v, 0);
    must_append(made, 3, 100);
    op = (struct leat_locate_op){.what = LEAT_LOCATE_TIME, .value = fake_wall(made)};
    assert_int_equal(locate(made, &op, buffer), LEAT_OK);
    uint8_t *first = NULL;
    uint8_t *head = made->log->head.seg->buffer;
    const struct leat_entry *entry;
    for (uint32_t at = 0; (entry = leat_entry_at(head, made->log->head.writer.used, at)) != NULL;
         at += leat_entry_bytes(entry->payload_bytes))
        if (entry->type == LEAT_ENTRY_BATCH && !first) first = head + at + LEAT_ENTRY_HEADER_BYTES;
    assert_non_null(first);
    first[16] ^= 8; /* the version of its format */
    op = (struct leat_locate_op){.what = LEAT_LOCATE_TIME, .value = fake_wall(made)};
    assert_int_equal(locate(made, &op, buffer), LEAT_E_DAMAGED);
    first[16] ^= 8;
    fake_destroy(made);
    free(buffer);
}

/* Goal: an index is believed only at its own place. */
static void index_is_believed_at_its_place(void **state)
{
    (void)state;
    static _Alignas(8) uint8_t segment[4096];
    for (uint32_t off = 0; off <= 8; off += 8) {
        struct leat_entry_writer writer;
        struct leat_close close = {.bytes = off};
        memset(segment, 0, sizeof segment);
        leat_entry_writer_init(&writer, segment, sizeof segment);
        (void)leat_entry_append(&writer, LEAT_ENTRY_CLOSE, 0, 0, &close, sizeof close,
                                leat_crc32c(0, &close, sizeof close));
        (void)leat_entry_seal(&writer, 0);
        assert_int_equal(leat_index_find(segment, 0, writer.used) != NULL, off == 0);
    }
}

/* ---- little things that hang a log ---- */

/* Goal: a head expires by the time of its records, also where the log does not know when they came, and by a retention
 * of a millisecond. */
static void head_expires_by_its_records(void **state)
{
    (void)state;
    segments(1);
    it->options.settings.retention_ms = 1;
    it->gathered_wall_ms = 0;
    it->head.max_timestamp_ms = 5000;
    assert_false(log_head_has_expired(it, 5001));
    assert_true(log_head_has_expired(it, 5002));
    poke_end();
}

/* Goal: a log that has made room for producers waits for it no more. */
static void room_for_producers_is_wanted_once(void **state)
{
    (void)state;
    segments(1);
    it->producers_wanted = true;
    log_step_room(it);
    assert_false(it->producers_wanted);
    watched.full = true; /* refused by name from now on */
    it->producers_wanted = true;
    log_step_room(it);
    assert_false(it->producers_wanted);
    assert_true(log_producers_are_refused(it));
    poke_end();
}

/* Goal: no segment is larger than the largest, however fast a log grows. */
static void segment_is_no_larger_than_the_largest(void **state)
{
    (void)state;
    segments(1);
    it->options.settings.segment_bytes_max = 0;
    it->roll_capacity = 2 * LEAT_SEGMENT_BYTES_MAX;
    it->room_wanted = true;
    it->room_bytes = 1024 * 1024;
    trace_begin();
    log_step_room(it);
    assert_true(it->reserving);
    assert_int_equal(it->reserve.capacity, LEAT_SEGMENT_BYTES_MAX);
    poke_end();
}

/* Goal: a look-up among compressed records that gets no memory answers with the batch's first record. */
static void look_up_without_memory_answers_with_the_batch(void **state)
{
    (void)state;
    segments(1);
    struct leat_locate_op op = {.seeks = true, .post = &fake->post, .offset = {7}};
    op.batch.codec = LEAT_CODEC_GZIP;
    op.batch.base_offset = 7;
    leat_mem_fail_at(1);
    assert_int_equal(leat_locate_step(&op), LEAT_OK);
    leat_mem_fail_at(0);
    assert_false(op.seeks);
    assert_int_equal(op.offset.v, 7);
    poke_end();
}

/* Goal: the last reader of a segment lets its log evict; where the log has gone it tells nobody. */
static void last_reader_tells_the_log_that_is_there(void **state)
{
    (void)state;
    segments(2);
    slot(0)->mail_due = true;
    it->evictions_wanted = false;
    struct leat_segment *seg = slot(0)->seg;
    seg->unpinned.deliver(NULL, &seg->unpinned);
    assert_true(it->evictions_wanted);
    assert_false(slot(0)->mail_due);
    seg->log_pointer = NULL;
    seg->unpinned.deliver(NULL, &seg->unpinned);
    seg->owner_actor = 77;
    log_segment_own(it, seg);
    assert_int_equal(seg->owner_actor, it->env->post->self);
    assert_ptr_equal(seg->log_pointer, it);
    poke_end();
}

/* Goal: the first segment that a log has is told, if any; a log that ends asks for no older segments. */
static void first_segment_is_told(void **state)
{
    (void)state;
    segments(2);
    assert_ptr_equal(leat_log_first_held(it), slot(0)->seg);
    it->ending = LOG_RELEASING;
    leat_log_older_again(it);
    assert_int_equal(it->backfill, LOG_BACKFILL_NONE);
    it->ending = LOG_LIVES;
    leat_log_older_again(it);
    assert_int_equal(it->backfill, LOG_BACKFILL_FOLLOWS);
    poke_end();
    struct fake *made = fake_create(3, LEAT_DURABILITY_MEMORY);
    fake_open(made, NULL, 0, NULL);
    assert_null(leat_log_first_held(made->log));
    fake_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(state_of_an_application_comes_back),
        TRACE_TEST(producers_have_room_in_a_start_entry),
        TRACE_TEST(accepted_loss_is_before_one_segment),
        TRACE_TEST(batches_that_gather_amid_a_roll_are_acked),
        TRACE_TEST(append_begins_without_marks),
        TRACE_TEST(accepted_loss_gives_up_named_places),
        TRACE_TEST(segment_that_is_given_up_is_sought_no_more),
        TRACE_TEST(segment_is_repaired_by_one),
        TRACE_TEST(event_begins_no_step_amid_a_step),
        TRACE_TEST(look_up_answers_what_is_there),
        TRACE_TEST(index_is_believed_at_its_place),
        TRACE_TEST(head_expires_by_its_records),
        TRACE_TEST(room_for_producers_is_wanted_once),
        TRACE_TEST(segment_is_no_larger_than_the_largest),
        TRACE_TEST(look_up_without_memory_answers_with_the_batch),
        TRACE_TEST(last_reader_tells_the_log_that_is_there),
        TRACE_TEST(first_segment_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
