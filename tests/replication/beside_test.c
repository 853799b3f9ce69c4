/* SPDX-License-Identifier: Apache-2.0 */
/* What a backup must not do beside what it is asked: serve a torn replica, read past a replica's memory, count what is
 * being dropped, keep memory. A backup alone, whose disk and other nodes answer by hand. */
#include "tests/replication/pieces_rig.h"

static unsigned requests_free(const struct rig *rig)
{
    unsigned count = 0;
    for (void *it = rig->backup->requests_free.first; it; memcpy(&it, it, sizeof it))
        count++;
    return count;
}

static int busy_of(struct replica *const *reps, int count)
{
    for (int i = 0; i < count; i++)
        if (reps[i]->busy) return i;
    return -1;
}

/* Goal: of several replicas whose rows match the replica with the bytes is served, wherever in the list; also where the
 * first is closed, longer, in memory, and torn before the end that was asked for. */
static void torn_replica_is_not_served_where_another_is_whole(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica *reps[3];
    for (unsigned i = 0; i < 3; i++)
        reps[i] = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    reps[0]->seg->buffer[300] ^= 1;
    reps[1]->seg->buffer[300] ^= 1;
    assert_int_equal(leat_backup_flush(rig->backup, rig_log, (struct leat_segment_id){7},
                                       rig->ends[2], NULL, NULL),
                     LEAT_OK);
    assert_int_equal(busy_of(reps, 3), 2);
    rig->req_count = 0;
    rig_end(rig);
    rig = rig_ports();
    for (unsigned i = 0; i < 2; i++)
        reps[i] = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    reps[0]->seg->state = LEAT_SEGMENT_CLOSED;
    reps[0]->seg->prefix_id = rig->ends[3];
    reps[0]->seg->buffer[300] ^= 1;
    assert_true(rig->ends[2].bytes > 300 && rig->ends[3].bytes > rig->ends[2].bytes);
    assert_int_equal(leat_backup_flush(rig->backup, rig_log, (struct leat_segment_id){7},
                                       rig->ends[2], NULL, NULL),
                     LEAT_OK);
    assert_int_equal(busy_of(reps, 2), 1);
    rig->req_count = 0;
    rig_end(rig);
}

/* Goal: a replica whose bytes are in the file alone, closed or hibernated, is as good as its row says. */
static void replica_without_memory_is_taken_at_its_word(void **state)
{
    (void)state;
    static const enum leat_segment_state states[] = {LEAT_SEGMENT_HIBERNATED, LEAT_SEGMENT_CLOSED};
    for (unsigned i = 0; i < 2; i++) {
        struct rig *rig = rig_ports();
        struct replica *reps[2];
        for (unsigned k = 0; k < 2; k++) {
            filed(reps[k] = rig_found(rig, 7, states[i], 3));
            reps[k]->seg->buffer = NULL;
        }
        pull_as(rig, 7, rig->ends[3], 0, 16, true);
        assert_int_equal(busy_of(reps, 2), 0);
        disk_read(rig, LEAT_OK, 16);
        for (unsigned k = 0; k < 2; k++) { /* longer replicas that were looked at up to there */
            reps[k]->looked[0].prefix_id = rig->ends[1];
            reps[k]->looked[0].begins = true;
        }
        pull_as(rig, 7, rig->ends[1], 0, 16, false);
        assert_int_equal(busy_of(reps, 2), 0);
        disk_read(rig, LEAT_OK, 16);
        rig_end(rig);
    }
}

/* Goal: a replica of pulled bytes that are wrong counts for nothing while it is dropped. */
static void replica_that_was_pulled_in_vain_counts_for_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    rig_image(rig, 7);
    struct leat_backup_pull pull = pull_of(rig);
    pull_start(rig, &pull);
    rig->image[300] ^= 1;
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    const struct replica *rep = rig_replica(rig, 7);
    assert_true(rep->damaged && rep->drop_wanted);
    while (ports.call)
        piece(rig, LEAT_E_NOT_FOUND, 0, 0, 0);
    rig->req_count = 0;
    rig_end(rig);
}

/* Goal: a source that had all the time there is is not asked once more. */
static void only_source_is_not_asked_again(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    rig_image(rig, 7);
    struct leat_backup_pull pull = pull_of(rig);
    pull.node_count = 1;
    pull_start(rig, &pull);
    piece(rig, LEAT_E_TIMEOUT, 0, 0, 0);
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: TIMEOUT\n");
    rig_end(rig);
}

/* Goal: an end that the replica's memory can't have, before its beginning or after its end, is refused unread. */
static void end_outside_the_memory_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, rep->handle, 7, 2);
    struct leat_entry trailer = {.type = LEAT_ENTRY_TRAILER, .crc = 5};
    uint8_t *buffer = rep->seg->buffer;
    memcpy(buffer + 4096 + 8 - sizeof trailer, &trailer, sizeof trailer);
    rep->seg->buffer = buffer + 4096; /* with bytes before that are another's */
    body.prefix_id = (struct leat_prefix_id){8, 5};
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    TRACE_IS("1: DAMAGED\n");
    rep->seg->buffer = buffer;
    body = rig_body(rig, rep->handle, 7, 3);
    rep->seg->capacity = body.prefix_id.bytes - 1;
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    TRACE_IS("1: DAMAGED\n");
    rep->seg->capacity = body.prefix_id.bytes;
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    TRACE_IS("store STAMP s7 v1 role 1 writer 11\n");
    rep->seg->capacity = RIG_CAPACITY;
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_free(rig);
}

/* Goal: a replica that is to go is not called confirmed, and the store is not asked for its row. */
static void replica_that_is_to_go_is_not_confirmed(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    rep->seg->provisional = true;
    rep->drop_wanted = true;
    backup_confirm(rep, 0);
    TRACE_IS("");
    assert_false(rep->settled);
    rep->drop_wanted = false;
    backup_confirm(rep, 0);
    assert_true(rep->settled);
    TRACE_IS("store STAMP s7 v1 role 1 writer 11\n");
    rig->req_count = 0;
    rig_free(rig);
}

/* Goal: an OPEN for which there is no memory gives its request back; only a CLOSE counts as a segment. */
static void request_is_given_back_and_counted_once(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct rep_body body = rig_body(rig, 0, 8, 0);
    unsigned before = requests_free(rig);
    assert_true(before > 0);
    body.prefix_id = (struct leat_prefix_id){0};
    leat_mem_fail_at(1);
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    leat_mem_fail_at(0);
    assert_int_equal(requests_free(rig), before);
    body = rig_body(rig, rep->handle, 7, 2);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    assert_int_equal(rig->backup->accounts.segments, 0);
    rig_free(rig);
}

static uint32_t answer_bytes;
static void answer(void *ctx, const struct leat_link_ticket *ticket, const void *control,
                   uint32_t bytes)
{
    (void)ctx, (void)ticket, (void)control;
    answer_bytes = bytes;
}

/* Goal: the answer that only shows a sign of life is one byte; a backup that hears of no deletions lets nothing go. */
static void question_without_a_body_has_a_short_answer(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    rig->backup->options.net.answer = answer;
    rig_hear(rig, &rig_w1, LEAT_REP_ASK, (const uint8_t *)"\x90", 1);
    assert_int_equal(answer_bytes, 1);
    rig->backup->options.stream_deleted = NULL;
    assert_false(backup_stream_is_gone(rig->backup, rig_log.stream));
    rig_free(rig);
}

/* Goal: a backup that ends leaves no memory behind, also that of its writers, and is none after that. */
static void backup_that_ends_leaves_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    const struct leat_backup_options options = rig->backup->options;
    struct leat_backup *other = NULL;
    size_t before = leat_mem_bytes(LEAT_MEM_STORE);
    assert_int_equal(leat_backup_create(&options, &other), LEAT_OK);
    struct backup_writer *writer = leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *writer);
    leat_list_push_back(&other->writers, &writer->link);
    leat_backup_destroy(&other);
    assert_null(other);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), before);
    leat_backup_destroy(&other);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(torn_replica_is_not_served_where_another_is_whole),
        TRACE_TEST(replica_without_memory_is_taken_at_its_word),
        TRACE_TEST(replica_that_was_pulled_in_vain_counts_for_nothing),
        TRACE_TEST(only_source_is_not_asked_again),
        TRACE_TEST(end_outside_the_memory_is_refused),
        TRACE_TEST(replica_that_is_to_go_is_not_confirmed),
        TRACE_TEST(request_is_given_back_and_counted_once),
        TRACE_TEST(question_without_a_body_has_a_short_answer),
        TRACE_TEST(backup_that_ends_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
