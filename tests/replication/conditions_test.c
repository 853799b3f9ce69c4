/* SPDX-License-Identifier: Apache-2.0 */
/* Each condition by itself: which replica may be looked at, dropped, or taken as it is, and what becomes of it where
 * memory is short. A backup alone, whose store answers by hand. */
#include "tests/replication/backup_rig.h"

static void on_looked(void *arg, bool begins)
{
    (void)arg, (void)begins;
}

/* Goal: a replica is looked at if it is whole, hibernated or closed, only in its file, and longer than the wanted end;
 * if this end was not looked for yet; and if nothing is under way with the replica. */
static void replica_is_looked_at_where_that_says_something(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
    struct leat_segment *seg = rep->seg;
    struct leat_prefix_id end = rig->ends[1];
    uint8_t buffer[8];
    for (unsigned i = 1; i < 20; i++) {
        struct leat_prefix_id asked = end;
        seg->file = i == 1 ? NULL : (struct leat_file *)(void *)&seg->file_offset;
        seg->buffer = i == 2 ? buffer : NULL;
        seg->state = i == 3 ? LEAT_SEGMENT_OPEN : LEAT_SEGMENT_HIBERNATED;
        if (i == 4) asked = seg->prefix_id; /* as long */
        if (i == 5) asked.bytes = LEAT_ENTRY_HEADER_BYTES - 1;
        if (i == 19) asked.bytes = LEAT_ENTRY_HEADER_BYTES;
        rep->looked[1] =
            (struct replica_looked){.prefix_id = i == 6 ? end : (struct leat_prefix_id){0}};
        rep->looked[0] =
            (struct replica_looked){.prefix_id = {end.bytes - 8, end.crc}}; /* others */
        rep->damaged = i == 7;
        rep->drop_wanted = i == 8;
        rep->dropping = i == 9;
        rep->adopting = i == 10;
        seg->incomplete = i == 11;
        seg->integrity = i == 12 ? LEAT_INTEGRITY_CORRUPT : LEAT_INTEGRITY_OK;
        rep->busy = i == 13;
        rep->evicting = i == 14;
        rep->move_wanted = i == 15;
        rig->backup->looks = i == 16 ? BACKUP_LOOKS_MAX : 0;
        if (i == 17) leat_mem_fail_at(1);
        leat_err rc =
            leat_backup_look(rig->backup, rep->handle + (i == 18), asked, on_looked, NULL);
        leat_mem_fail_at(0);
        if (i < 19) trace("%u: %s\n", i, leat_err_name(rc));
        if (i < 19) assert_int_equal(rep->busy, i == 13);
        if (i == 19) assert_int_equal(rc, LEAT_OK);
    }
    TRACE_IS("1: NOT_FOUND\n"
             "2: NOT_FOUND\n"
             "3: NOT_FOUND\n"
             "4: NOT_FOUND\n"
             "5: NOT_FOUND\n"
             "6: NOT_FOUND\n"
             "7: NOT_FOUND\n"
             "8: NOT_FOUND\n"
             "9: NOT_FOUND\n"
             "10: NOT_FOUND\n"
             "11: NOT_FOUND\n"
             "12: NOT_FOUND\n"
             "13: AGAIN\n"
             "14: AGAIN\n"
             "15: AGAIN\n"
             "16: AGAIN\n"
             "17: NO_MEMORY\n"
             "18: NOT_FOUND\n");
    assert_int_equal(rep->busy, 1);
    seg->file = NULL;
    rep->busy = 0;
    rig->world->nodes[1].disk.disk_first = NULL; /* nobody reads it */
    rig->world->nodes[1].disk.disk_last = &rig->world->nodes[1].disk.disk_first;
    rig_free(rig);
}

/* Goal: a closed copy that goes on after the wanted end, and whose bytes are not in its file yet, is reported as "ask
 * again", not as missing. A copy of other bytes is missing, and so is a copy that may not be used. */
static void longer_copy_in_memory_is_asked_for_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    struct leat_segment *seg = rep->seg;
    for (unsigned i = 1; i < 17; i++) {
        struct leat_prefix_id asked = rig->ends[i == 2 ? 3 : 1];
        seg->buffer = i == 3 ? NULL : rig->image;
        seg->state = i == 4    ? LEAT_SEGMENT_OPEN
                     : i == 16 ? LEAT_SEGMENT_HIBERNATED
                               : LEAT_SEGMENT_CLOSED;
        if (i == 5) asked.crc ^= 1;
        if (i == 6) asked.bytes -= 8;
        if (i == 7) asked.bytes = LEAT_ENTRY_HEADER_BYTES - 1;
        rep->damaged = i == 8;
        rep->drop_wanted = i == 9;
        rep->dropping = i == 10;
        rep->adopting = i == 11;
        seg->incomplete = i == 12;
        seg->integrity = i == 13 ? LEAT_INTEGRITY_CORRUPT : LEAT_INTEGRITY_OK;
        struct leat_segment_id id = {i == 14 ? 8 : 7};
        struct leat_log_ref log = rig_log;
        log.log += i == 15;
        trace("%u: %s\n", i, leat_err_name(leat_backup_look_any(rig->backup, log, id, asked)));
    }
    TRACE_IS("1: AGAIN\n"
             "2: NOT_FOUND\n"
             "3: NOT_FOUND\n"
             "4: NOT_FOUND\n"
             "5: NOT_FOUND\n"
             "6: NOT_FOUND\n"
             "7: NOT_FOUND\n"
             "8: NOT_FOUND\n"
             "9: NOT_FOUND\n"
             "10: NOT_FOUND\n"
             "11: NOT_FOUND\n"
             "12: NOT_FOUND\n"
             "13: NOT_FOUND\n"
             "14: NOT_FOUND\n"
             "15: NOT_FOUND\n"
             "16: AGAIN\n");
    /* Whoever says where it ends is told the same, and nothing is cut meanwhile. */
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    TRACE_IS("1: AGAIN\n");
    /* Another that is in its file is looked at first. */
    struct replica *other = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
    other->seg->file = (struct leat_file *)(void *)&seg->file_offset;
    leat_err rc = backup_look(rig->backup, rig_log, seg->id, rig->ends[1], on_looked, NULL);
    assert_int_equal(rc, LEAT_OK);
    assert_int_equal(other->busy, 1);
    other->seg->file = NULL;
    other->busy = 0;
    rig->world->nodes[1].disk.disk_first = NULL; /* nobody reads it */
    rig->world->nodes[1].disk.disk_last = &rig->world->nodes[1].disk.disk_first;
    rig_free(rig);
}

/* Goal: of a segment's replicas any replica that may be looked at is looked at. */
static void any_replica_of_its_segment_is_looked_at(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct leat_log_ref other = rig_log;
    other.streamlet++;
    (void)rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 1);
    struct leat_prefix_id end = rig->ends[0];
    trace("%s\n", leat_err_name(leat_backup_look_any(rig->backup, rig_log,
                                                     (struct leat_segment_id){8}, end)));
    trace("%s\n", leat_err_name(
                      leat_backup_look_any(rig->backup, other, (struct leat_segment_id){7}, end)));
    trace("%s\n", leat_err_name(leat_backup_look_any(rig->backup, rig_log,
                                                     (struct leat_segment_id){7}, end)));
    TRACE_IS("NOT_FOUND\n"
             "NOT_FOUND\n"
             "NOT_FOUND\n");
}

/* Goal: without memory for the request nothing is begun, and it is asked for again. */
static void request_without_memory_begins_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 1);
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    requests_forget(rig);
    leat_mem_fail_at(1);
    rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
    leat_mem_fail_at(1);
    backup_drop(rep); /* an audit's owner says so again */
    leat_mem_fail_at(0);
    TRACE_IS("1: NO_MEMORY\n");
    assert_true(rep->drop_wanted && !rep->dropping);
    assert_int_equal(rep->busy, 0);
    backup_drop(rep);
    TRACE_IS("store DROP s7\n");
    rep->busy++; /* something else is under way as well */
    rig_stored(rig, LEAT_STORE_DROP, LEAT_E_DISK);
    assert_int_equal(rep->busy, 1);
    backup_drop(rep);
    TRACE_IS("");
    backup_idle(rep);
    TRACE_IS("store DROP s7\n");
    rep = rig_open(rig, 9, LEAT_DURABILITY_MEMORY, false);
    rep->seg->provisional = true;
    requests_forget(rig);
    leat_mem_fail_at(1);
    backup_confirm(rep, 0);
    leat_mem_fail_at(0);
    assert_false(rep->settled); /* the next audit asks again */
    rig->req_count = 0;
    rig_free(rig);
}

/* Goal: an open replica that was found at a start has no writer, so SEAL closes it as it is. SEAL also closes an open
 * replica of a fenced writer that has left the writer's memory; for a replica that has not left this memory yet the
 * answer is AGAIN. */
static void open_replica_is_taken_as_it_is_where_nobody_writes(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 4; way++) {
        struct rig *rig = rig_new();
        struct replica *rep = way == 0 ? rig_found(rig, 7, LEAT_SEGMENT_OPEN, 1)
                                       : rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
        static _Alignas(8) uint8_t bytes[RIG_CAPACITY];
        if (way == 0) memcpy(rep->seg->buffer = bytes, rig->image, RIG_CAPACITY);
        if (way > 1) rep->writer->fenced = true;
        if (way == 3) rep->move_wanted = true;
        trace("%u written %d\n", way, backup_is_written(rep));
        struct rep_body body = rig_body(rig, rep->handle, 7, 1);
        rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
        if (rig->req_count) rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
        rep->move_wanted = false;
        if (rep->writer) rep->writer->fenced = false;
        rig_free(rig);
    }
    TRACE_IS("0 written 0\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "3: answer h1\n"
             "1 written 1\n"
             "7: AGAIN\n"
             "2 written 0\n"
             "store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "11: answer h1 @65536\n"
             "3 written 0\n"
             "15: AGAIN\n");
}

/* Goal: bytes that name another segment, or another epoch, are none of this one's, however right they are. */
static void open_replica_with_bytes_of_another_is_not_taken(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 3; way++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_OPEN, 1);
        static _Alignas(8) uint8_t bytes[RIG_CAPACITY];
        if (way == 1) rig_image(rig, 8);
        memcpy(rep->seg->buffer = bytes, rig->image, RIG_CAPACITY);
        if (way == 2) rep->seg->epoch.v--;
        struct rep_body body = rig_body(rig, rep->handle, 7, 1);
        rig_ask(rig, &rig_w2, LEAT_REP_SEAL, &body);
        trace("%u: %u at the store\n", way, rig->req_count);
        rig->req_count = 0;
        rig_free(rig);
    }
    TRACE_IS("store CLOSE s7 456:1 from 100 to 101/5001 passed 0 state 4\n"
             "0: 1 at the store\n"
             "4: NOT_FOUND\n"
             "1: 0 at the store\n"
             "7: NOT_FOUND\n"
             "2: 0 at the store\n");
}

/* Goal: a writer that waits for memory when it is declared crashed is refused. */
static void fence_refuses_who_waits_for_memory(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct backup_writer *writer = backup_writer_find(rig->backup, "w1", 11);
    writer->ready = false;
    rig_hear(rig, &rig_w1, LEAT_REP_ATTACH, (const uint8_t *)"\x90", 1);
    TRACE_IS("");
    leat_backup_release(rig->backup, "w1", 11);
    TRACE_IS("1: STALE_EPOCH\n");
    rig_free(rig);
}

/* Goal: a corrupt closed copy is reported once; an open copy, or a copy known to be corrupt, is not. */
static void damage_of_a_closed_copy_is_noted(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *open = rig_open(rig, 1, LEAT_DURABILITY_MEMORY, false);
    struct replica *closed = rig_found(rig, 2, LEAT_SEGMENT_CLOSED, 3);
    open->settled = closed->settled = true;
    leat_backup_on_damaged(rig->backup, open->seg);
    leat_backup_on_damaged(rig->backup, closed->seg);
    assert_true(open->settled && !leat_segment_is_damaged(open->seg));
    assert_true(!closed->settled && leat_segment_is_damaged(closed->seg));
    closed->settled = true;
    leat_backup_on_damaged(rig->backup, closed->seg);
    assert_true(closed->settled);
    assert_false(leat_backup_holds(rig->backup, rig_log, closed->seg->id, closed->seg->prefix_id));
    rig_free(rig);
    struct leat_backup *none = NULL;
    leat_backup_destroy(&none);
    trace_begin();
}

/* Goal: a writer may write into an open replica, and into a hibernated replica that is being resumed, and into no other
 * replica. */
static void replica_is_written_to_while_its_writer_may(void **state)
{
    (void)state;
    static const enum leat_segment_state states[] = {LEAT_SEGMENT_RESERVED, LEAT_SEGMENT_OPEN,
                                                     LEAT_SEGMENT_HIBERNATED, LEAT_SEGMENT_CLOSED};
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    struct backup_writer *writer = rep->writer;
    for (unsigned i = 0; i < 4; i++)
        for (unsigned busy = 0; busy < 2; busy++) {
            rep->seg->state = states[i];
            rep->busy = busy;
            bool is = backup_is_written(rep);
            writer->fenced = true;
            assert_false(backup_is_written(rep));
            writer->fenced = false;
            rep->writer = NULL;
            assert_false(backup_is_written(rep));
            rep->writer = writer;
            trace("%u%s: %d\n", (unsigned)states[i], busy ? " busy" : "", is);
        }
    TRACE_IS("1: 1\n"
             "1 busy: 1\n"
             "2: 1\n"
             "2 busy: 1\n"
             "3: 0\n"
             "3 busy: 1\n"
             "4: 0\n"
             "4 busy: 0\n");
    rep->busy = 0;
    rig_free(rig);
}

/* Goal: a request uses the memory of the request before it: no allocation except for its rows. */
static void requests_are_used_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    for (unsigned round = 0; round < 2; round++) {
        struct rep_pair pair = {rep->handle, 64, 0};
        leat_mem_fail_at(0);
        rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, &pair, 1);
        rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
        rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, &pair, 1);
        rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        struct rep_body body = rig_body(rig, rep->handle, 7, 1);
        body.version = 64;
        rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
        rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
        rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
        rig_ask(rig, &rig_w1, LEAT_REP_RESUME, &body);
        rig_stored(rig, LEAT_STORE_RESUME, LEAT_OK);
        memcpy(rep->seg->buffer, rig->image, RIG_CAPACITY);
        rep->seg->provisional = true;
        backup_confirm(rep, 0);
        rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        assert_int_equal(leat_mem_calls(), 2);
    }
    trace_begin();
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(replica_is_looked_at_where_that_says_something),
        TRACE_TEST(longer_copy_in_memory_is_asked_for_again),
        TRACE_TEST(any_replica_of_its_segment_is_looked_at),
        TRACE_TEST(request_without_memory_begins_nothing),
        TRACE_TEST(open_replica_is_taken_as_it_is_where_nobody_writes),
        TRACE_TEST(open_replica_with_bytes_of_another_is_not_taken),
        TRACE_TEST(fence_refuses_who_waits_for_memory),
        TRACE_TEST(replica_is_written_to_while_its_writer_may),
        TRACE_TEST(requests_are_used_again),
        TRACE_TEST(damage_of_a_closed_copy_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
