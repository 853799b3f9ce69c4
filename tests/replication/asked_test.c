/* SPDX-License-Identifier: Apache-2.0 */
/* A backup's work for its requests, message by message: a backup alone, whose store answers by hand. */
#include "tests/replication/backup_rig.h"

/* Goal: OPEN reserves the requested segment, in its writer's memory, and is answered with its place; a refusal of the
 * store refuses the OPEN, and nothing is left. */
static void open_reserves_what_was_asked_for(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct rep_body body = rig_body(rig, 0, 7, 0);
    body.version = 3;
    body.durability = LEAT_DURABILITY_DISK;
    body.incomplete = true;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    TRACE_IS("store RESERVE s7 1/2/3 e5 cap 65536 d2 v3 role 1 writer 11 part there\n");
    body.segment.v = 8;
    body.incomplete = false;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    TRACE_IS("store RESERVE s8 1/2/3 e5 cap 65536 d2 v3 role 1 writer 11 there\n");
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_E_DISK_FULL);
    TRACE_IS("1: answer h1 @65536 load 65536\n"
             "1: DISK_FULL\n");
    assert_int_equal(rig->backup->replica_count, 1);
    assert_int_equal(rig_replica(rig, 7)->owner_epoch.v, RIG_EPOCH);
    assert_int_equal(rig->backup->accounts.control_rpcs, 1);
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    TRACE_IS("store RESERVE s8 1/2/3 e5 cap 65536 d2 v3 role 1 writer 11 there\n"
             "1: answer h2/2 @131072\n");
    rig_free(rig);
}

/* Goal: a request that is refused at once leaves nothing, and gets the reason. */
static void open_that_can_not_be_is_refused_by_name(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct rep_body body = rig_body(rig, 0, 7, 0);
    struct backup_writer *writer = backup_writer_find(rig->backup, "w1", 11);
    struct leat_store_arena *at_store = writer->at_store;
    body.capacity = LEAT_SEGMENT_BYTES_MIN - 1;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    body.capacity = LEAT_SEGMENT_BYTES_MAX * 2;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    body.capacity = LEAT_SEGMENT_BYTES_MIN * 3;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    body.capacity = RIG_CAPACITY;
    writer->at_store = NULL;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    writer->at_store = at_store;
    rig->backup->opening_bytes = BACKUP_UNFLUSHED_BYTES_MIN - RIG_CAPACITY + 1;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    TRACE_IS("1: INVALID\n"
             "2: INVALID\n"
             "3: INVALID\n"
             "4: AGAIN, as bytes wait\n"
             "5: AGAIN, as bytes wait\n");
    assert_int_equal(rig->backup->accounts.refused_opens, 5);
    rig->backup->opening_bytes--;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body); /* just as many */
    TRACE_IS("store RESERVE s7 1/2/3 e5 cap 65536 d1 v1 role 1 writer 11 there\n");
    rig->backup->opening_bytes = 0;
    rig->world->nodes[1].heap_full = true;
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    rig->world->nodes[1].heap_full = false;
    TRACE_IS("1: NO_MEMORY\n");
    for (uint64_t n = 1; n <= 3; n++) {
        leat_mem_fail_at(n);
        rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    }
    leat_mem_fail_at(0);
    TRACE_IS("1: NO_MEMORY\n"
             "2: NO_MEMORY\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v1 role 1 writer 11 there\n");
    rig_free(rig);
}

/* Goal: CLOSE of a whole replica records the end that the owner names, if the replica's bytes agree, and frees the
 * replica's memory once the replica is flushed. */
static void close_of_a_whole_one_is_one_row(void **state)
{
    (void)state;
    for (uint32_t level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_open(rig, 7, level, false);
        struct rep_body body = rig_body(rig, rep->handle, 7, 3);
        body.passed_bytes = 7;
        rig->backup->accounts.control_rpcs = 0;
        rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &body);
        assert_int_equal(rep->busy, 1);
        rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
        TRACE_IS("store CLOSE s7 752:1 from 100 to 102/5002 passed 7 state 4\n"
                 "1: answer h1 @65536\n");
        assert_int_equal(rep->flushed, level == LEAT_DURABILITY_DISK ? rig->ends[3].bytes : 0);
        assert_int_equal(rig->backup->accounts.control_rpcs, 1);
        assert_true(rep->settled);
        assert_int_equal(rep->seg->written_ms, rig->world->now_us / 1000);
        leat_backup_on_flushed(rig->backup, rep->seg);
        leat_backup_on_evict_wanted(rig->backup, rep->seg);
        TRACE_IS("store EVICT s7\n");
        rig_stored(rig, LEAT_STORE_EVICT, LEAT_OK);
        leat_backup_on_evict_wanted(rig->backup, rep->seg);
        TRACE_IS("");
        assert_int_equal(rig->backup->accounts.segments, 1);
        rig_free(rig);
    }
}

/* Goal: CLOSE of an incomplete replica writes two rows: closed, and then whole; where either write fails the replica
 * stays as it was. */
static void close_of_a_part_makes_it_whole_after_that(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 3; fails++) {
        struct rig *rig = rig_new();
        struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, true);
        struct rep_body body = rig_body(rig, rep->handle, 7, 3);
        body.version = 2;
        uint64_t rpcs = rig->backup->accounts.control_rpcs;
        rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &body);
        rig_stored(rig, LEAT_STORE_CLOSE, fails == 1 ? LEAT_E_DISK : LEAT_OK);
        if (fails != 1) rig_stored(rig, LEAT_STORE_STAMP, fails == 2 ? LEAT_E_DISK : LEAT_OK);
        if (fails == 1)
            TRACE_IS("store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n"
                     "1: DISK\n");
        else if (fails == 2)
            TRACE_IS("store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n"
                     "store STAMP s7 v2 role 1 writer 11\n"
                     "1: DISK\n");
        else
            TRACE_IS("store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n"
                     "store STAMP s7 v2 role 1 writer 11\n"
                     "1: answer h1 @65536\n");
        assert_int_equal(rep->seg->incomplete, fails > 0);
        assert_int_equal(rig->backup->accounts.control_rpcs, rpcs + (fails != 1));
        assert_int_equal(rep->seg->state, fails == 1 ? LEAT_SEGMENT_RESERVED : LEAT_SEGMENT_CLOSED);
        assert_int_equal(rep->busy, 0);
        assert_int_equal(rig->backup->accounts.segments, fails == 0);
        rig_free(rig);
    }
}

/* Goal: CLOSE is refused if the replica's bytes are not the bytes that the owner names, or do not begin as a segment
 * does. */
static void close_of_other_bytes_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    for (unsigned part = 0; part < 2; part++) {
        struct replica *rep = rig_open(rig, 7 + part, LEAT_DURABILITY_MEMORY, part);
        struct rep_body good = rig_body(rig, rep->handle, 7 + part, 3);
        for (unsigned i = 0; i < 6; i++) {
            struct rep_body body = good;
            memcpy(rep->seg->buffer, rig->image, RIG_CAPACITY);
            if (i == 0) body.prefix_id.bytes = 31;
            if (i == 1) body.prefix_id.bytes = RIG_CAPACITY + 8;
            if (i == 2) body.prefix_id.crc++;
            if (i == 3) body.prefix_id.bytes -= 32;
            if (i == 4) rep->seg->buffer[0] = LEAT_ENTRY_BATCH;
            if (i == 5) rep->seg->buffer[144] = LEAT_ENTRY_BATCH; /* where the start entry is */
            rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &body);
        }
        TRACE_IS("1: DAMAGED\n"
                 "2: DAMAGED\n"
                 "3: DAMAGED\n"
                 "4: DAMAGED\n"
                 "5: DAMAGED\n"
                 "6: DAMAGED\n");
        assert_int_equal(rep->seg->state, LEAT_SEGMENT_RESERVED);
        memcpy(rep->seg->buffer, rig->image, RIG_CAPACITY);
        rep->seg->buffer[300] ^=
            1; /* in a batch: who has it whole is not asked to look at all of it */
        rig_ask(rig, &rig_w1, LEAT_REP_CLOSE, &good);
        if (part)
            TRACE_IS("1: DAMAGED\n");
        else
            TRACE_IS("store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n");
        rig->req_count = 0;
    }
    rig_free(rig);
}

/* Goal: HIBERNATE records where it ends and gives its memory back; RESUME gives it memory again, of its writer, and the
 * version of now; COMPLETE calls a part whole. */
static void hibernate_resume_and_complete_are_a_row_each(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, true);
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body); /* a part is not hibernated */
    body.version = 2;
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body); /* not while something is under way */
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("1: INVALID\n"
             "store STAMP s7 v2 role 1 writer 11\n"
             "3: AGAIN\n"
             "2: answer h1 @65536\n");
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_E_DISK);
    rig_ask(rig, &rig_w1, LEAT_REP_HIBERNATE, &body);
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_OK);
    TRACE_IS("store HIBERNATE s7 456:1\n"
             "1: DISK\n"
             "store HIBERNATE s7 456:1\n"
             "2: answer h1\n");
    body.version = 4;
    rig_ask(rig, &rig_w1, LEAT_REP_RESUME, &body);
    rig_stored(rig, LEAT_STORE_RESUME, LEAT_OK);
    TRACE_IS("store RESUME s7 there cap 65536 v4\n"
             "1: answer h1\n");
    rig_free(rig);
}

/* Goal: COMPLETE whose row can't be written leaves a part: called whole it would be counted on. */
static void complete_that_the_disk_refuses_leaves_a_part(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, true);
    struct rep_body body = rig_body(rig, rep->handle, 7, 1);
    rig_ask(rig, &rig_w1, LEAT_REP_COMPLETE, &body);
    rep->seg->incomplete = false; /* as the store does before it writes */
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_E_DISK);
    TRACE_IS("store STAMP s7 v1 role 1 writer 11\n"
             "1: DISK\n");
    assert_true(rep->seg->incomplete);
    rig_free(rig);
}

/* ---- rows ---- */

/* Goal: each row of a batch is done, or refused, by itself; the answer comes when all are done. */
static void rows_are_each_done_or_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    const struct replica *a = rig_open(rig, 7, LEAT_DURABILITY_DISK, false);
    const struct replica *b = rig_open(rig, 8, LEAT_DURABILITY_DISK, true);
    struct rep_pair pairs[] = {{a->handle, 128, 0}, {b->handle, 64, 0}, {99, 64, 0}};
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, pairs, 3);
    rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, pairs, 1); /* while one is under way */
    TRACE_IS("store COMMIT s7 0..128\n"
             "store COMMIT s8 0..64\n"
             "2: answer h1=AGAIN\n");
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_E_DISK);
    TRACE_IS("1: answer h1=OK h2=DISK h99=NOT_FOUND\n");
    assert_int_equal(a->flushed, 128);
    assert_int_equal(b->flushed, 0);
    static const uint64_t values[] = {127, 128, RIG_CAPACITY, RIG_CAPACITY + 1};
    for (unsigned i = 0; i < 4; i++) {
        pairs[0].value = values[i];
        rig_ask_rows(rig, &rig_w1, LEAT_REP_FLUSH, pairs, 1);
        if (rig->req_count) rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    }
    rig_ask_rows(rig, &rig_w2, LEAT_REP_FLUSH, pairs, 1);
    TRACE_IS("1: answer h1=INVALID\n"
             "store COMMIT s7 128..128\n"
             "2: answer h1=OK\n"
             "store COMMIT s7 128..65536\n"
             "3: answer h1=OK\n"
             "4: answer h1=INVALID\n"
             "5: answer h1=STALE_EPOCH\n");
    assert_int_equal(rig->backup->accounts.flush_rpcs, 7);
    pairs[0].value = 2;
    pairs[1].value = 2;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, pairs, 2);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    pairs[0].value = 1;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, pairs, 2);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, pairs, 0);
    TRACE_IS("store STAMP s7 v2 role 1 writer 11\n"
             "store STAMP s8 v2 role 1 writer 11 part\n"
             "1: answer h1=OK h2=OK\n"
             "store STAMP s8 v2 role 1 writer 11 part\n"
             "2: answer h1=STALE_EPOCH h2=OK\n"
             "3: answer\n");
    a->seg->state = LEAT_SEGMENT_CLOSED;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, pairs, 1);
    a->seg->state = LEAT_SEGMENT_OPEN;
    for (uint64_t n = 1; n <= 2; n++) {
        requests_forget(rig);
        pairs[0].value = 5;
        leat_mem_fail_at(n);
        rig_ask_rows(rig, &rig_w1, LEAT_REP_RESTAMP, pairs, 1);
        leat_mem_fail_at(0);
    }
    TRACE_IS("1: answer h1=STALE_EPOCH\n"
             "2: NO_MEMORY\n"
             "3: answer h1=NO_MEMORY\n");
    rig_free(rig);
}

/* ---- owners' words ---- */

/* Goal: a word is the newest owner's, and says that a replica stays, goes, or leaves its memory behind. */
static void word_of_an_owner_settles_a_replica(void **state)
{
    (void)state;
    static const struct {
        unsigned word, owner; /* the replica has a word of RIG_EPOCH */
        bool by_w2;
        enum leat_segment_state state;
    } cases[] = {
        {REP_SETTLE_KEEP, 4, false, LEAT_SEGMENT_OPEN},
        {REP_SETTLE_DROP, 4, false, LEAT_SEGMENT_OPEN},
        {REP_SETTLE_KEEP, 5, false, LEAT_SEGMENT_OPEN},
        {REP_SETTLE_DROP, 5, false, LEAT_SEGMENT_OPEN},
        {REP_SETTLE_LEAVE, 5, false, LEAT_SEGMENT_OPEN},
        {REP_SETTLE_KEEP, 6, true, LEAT_SEGMENT_OPEN},
        {REP_SETTLE_DROP, 6, true, LEAT_SEGMENT_OPEN},
        {REP_SETTLE_DROP, 6, true, LEAT_SEGMENT_HIBERNATED},
        {REP_SETTLE_DROP, 6, true, LEAT_SEGMENT_CLOSED},
        {REP_SETTLE_LEAVE, 6, true, LEAT_SEGMENT_CLOSED},
        {REP_SETTLE_LEAVE, 4, true, LEAT_SEGMENT_CLOSED},
        {REP_SETTLE_DROP, 6, true, LEAT_SEGMENT_RESERVED},
    };
    struct rig *rig = rig_new();
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct replica *rep = rig_open(rig, 7 + i, LEAT_DURABILITY_MEMORY, false);
        rep->seg->state = cases[i].state;
        struct rep_pair pair = {rep->handle,
                                cases[i].word + (uint64_t)REP_SETTLE_WORDS * cases[i].owner, 0};
        rig_ask_rows(rig, cases[i].by_w2 ? &rig_w2 : &rig_w1, LEAT_REP_SETTLE, &pair, 1);
        trace("%s word %u\n", rep->settled ? "settled" : "not settled", rep->owner_epoch.v);
        if (rig->req_count) rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    }
    TRACE_IS("1: answer h1=STALE_EPOCH\n"
             "not settled word 5\n"
             "3: answer h2=STALE_EPOCH\n"
             "not settled word 5\n"
             "5: answer\n"
             "settled word 5\n"
             "store DROP s10\n"
             "7: answer\n"
             "not settled word 5\n"
             "store DROP s11 leave\n"
             "9: answer\n"
             "not settled word 5\n"
             "11: answer\n"
             "settled word 6\n"
             "store DROP s13 leave\n"
             "13: answer\n"
             "not settled word 5\n"
             "store DROP s14\n"
             "15: answer\n"
             "not settled word 5\n"
             "store DROP s15\n"
             "17: answer\n"
             "not settled word 5\n"
             "store DROP s16 leave\n"
             "19: answer\n"
             "not settled word 5\n"
             "21: answer h5/5=STALE_EPOCH\n"
             "not settled word 5\n"
             "store DROP s18 leave\n"
             "23: answer\n"
             "not settled word 5\n");
    rig_free(rig);
}

/* Goal: KEEP and DROP have no effect for a replica that is not here, or that is being dropped. */
static void word_of_one_that_goes_is_of_no_use(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
    const uint64_t own = (uint64_t)REP_SETTLE_WORDS * RIG_EPOCH;
    struct rep_pair pairs[] = {{99, REP_SETTLE_KEEP + own, 0},
                               {99, REP_SETTLE_DROP + own, 0},
                               {rep->handle, REP_SETTLE_KEEP + own, 0},
                               {rep->handle, REP_SETTLE_DROP + own, 0}};
    rig_ask_rows(rig, &rig_w1, LEAT_REP_SETTLE, pairs, 3);
    rep->adopting = true;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_SETTLE, pairs + 2, 2);
    rep->adopting = false;
    rep->drop_wanted = true;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_SETTLE, pairs + 2, 2);
    rep->drop_wanted = false;
    rep->dropping = true;
    rig_ask_rows(rig, &rig_w1, LEAT_REP_SETTLE, pairs + 2, 2);
    TRACE_IS("1: answer h99=NOT_FOUND\n"
             "2: answer h1=AGAIN h1=AGAIN\n"
             "3: answer h1=NOT_FOUND\n"
             "4: answer h1=NOT_FOUND\n");
    rig_free(rig);
}

/* Goal: when an owner confirms a closed replica, the replica's row is written if it said provisional, and records how
 * many bytes were passed over after the replica's end. */
static void kept_one_has_a_row_that_says_so(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    static const struct {
        bool provisional, busy, evicting;
        uint32_t passed, told;
        enum leat_segment_state state;
    } cases[] = {
        {.state = LEAT_SEGMENT_CLOSED},
        {.state = LEAT_SEGMENT_CLOSED, .provisional = true},
        {.state = LEAT_SEGMENT_CLOSED, .provisional = true, .busy = true},
        {.state = LEAT_SEGMENT_CLOSED, .provisional = true, .evicting = true},
        {.state = LEAT_SEGMENT_CLOSED, .passed = 9},
        {.state = LEAT_SEGMENT_CLOSED, .passed = 9, .told = 1},
        {.state = LEAT_SEGMENT_CLOSED, .passed = 9, .told = 10},
        {.state = LEAT_SEGMENT_CLOSED, .passed = 9, .told = 11},
        {.state = LEAT_SEGMENT_CLOSED, .told = UINT32_MAX},
        {.state = LEAT_SEGMENT_HIBERNATED, .passed = 9, .told = 11},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct replica *rep = rig_found(rig, 20 + i, cases[i].state, 2);
        rep->seg->provisional = cases[i].provisional;
        rep->seg->passed_bytes = cases[i].passed;
        rep->busy = cases[i].busy;
        rep->evicting = cases[i].evicting;
        struct rep_pair pair = {rep->handle, REP_SETTLE_KEEP + (uint64_t)REP_SETTLE_WORDS * 6,
                                cases[i].told};
        rig_ask_rows(rig, &rig_w2, LEAT_REP_SETTLE, &pair, 1);
        if (rig->req_count) rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        trace("%s, passed %u\n", rep->settled ? "settled" : "not settled", rep->seg->passed_bytes);
        rep->evicting = false;
        rep->busy = 0;
    }
    TRACE_IS("1: answer\n"
             "settled, passed 0\n"
             "store STAMP s21 v1 role 1 writer 11\n"
             "2: answer\n"
             "settled, passed 0\n"
             "3: answer\n"
             "not settled, passed 0\n"
             "4: answer\n"
             "not settled, passed 0\n"
             "5: answer\n"
             "settled, passed 9\n"
             "store STAMP s25 v1 role 1 writer 11\n"
             "6: answer\n"
             "settled, passed 0\n"
             "7: answer\n"
             "settled, passed 9\n"
             "store STAMP s27 v1 role 1 writer 11\n"
             "8: answer\n"
             "settled, passed 10\n"
             "store STAMP s28 v1 role 1 writer 11\n"
             "9: answer\n"
             "settled, passed 65536\n"
             "10: answer\n"
             "settled, passed 9\n");
    rig_free(rig);
}

/* ---- audits ---- */

/* Goal: asked about is what has nobody's word, but for what was just opened; with `all` everything; what is damaged is
 * called a reservation, which counts for nothing. */
static void audit_tells_what_has_nobodys_word(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *young = rig_open(rig, 1, LEAT_DURABILITY_MEMORY, false);
    (void)rig_found(rig, 2, LEAT_SEGMENT_HIBERNATED, 1);
    struct replica *settled = rig_found(rig, 3, LEAT_SEGMENT_CLOSED, 3);
    struct replica *corrupt = rig_found(rig, 4, LEAT_SEGMENT_CLOSED, 3);
    struct replica *damaged = rig_found(rig, 5, LEAT_SEGMENT_CLOSED, 3);
    struct replica *part = rig_found(rig, 6, LEAT_SEGMENT_CLOSED, 3);
    struct replica *goes = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    struct replica *busy = rig_found(rig, 8, LEAT_SEGMENT_CLOSED, 3);
    settled->settled = corrupt->settled = true;
    damaged->damaged = true;
    part->seg->incomplete = true;
    goes->drop_wanted = true;
    busy->busy = 1;
    trace_begin();
    leat_backup_on_damaged(rig->backup, corrupt->seg);
    assert_false(corrupt->settled);
    corrupt->settled = true;
    rig_audit(rig, 0, false);
    rig_audit(rig, 0, true);
    rig_audit(rig, 3, true);
    rig_audit(rig, 5000, true);
    rig->world->now_us = young->opened_us + BACKUP_YOUNG_US - 1;
    rig_audit(rig, 0, false);
    rig->world->now_us++;
    rig_audit(rig, 0, false);
    TRACE_IS(
        "store DROP s7\n" /* what should have gone, and is here: it is under way after that */
        "1: answer next 0: h2=1/2/3 s2 e5 v1 state3 456:1 h4=1/2/3 s4 e5 v1 state1 752:1 h5=1/2/3 "
        "s5 e5 v1 state1 752:1 h6=1/2/3 s6 e5 v1 state1 752:1\n"
        "2: answer next 0: h1=1/2/3 s1 e5 v1 state1 0:0 h2=1/2/3 s2 e5 v1 state3 456:1 h3=1/2/3 s3 "
        "e5 v1 state4 752:1 h4=1/2/3 s4 e5 v1 state1 752:1 h5=1/2/3 s5 e5 v1 state1 752:1 h6=1/2/3 "
        "s6 e5 v1 state1 752:1\n"
        "3: answer next 0: h4=1/2/3 s4 e5 v1 state1 752:1 h5=1/2/3 s5 e5 v1 state1 752:1 h6=1/2/3 "
        "s6 e5 v1 state1 752:1\n"
        "4: answer next 0:\n"
        "5: answer next 0: h2=1/2/3 s2 e5 v1 state3 456:1 h4=1/2/3 s4 e5 v1 state1 752:1 h5=1/2/3 "
        "s5 e5 v1 state1 752:1 h6=1/2/3 s6 e5 v1 state1 752:1\n"
        "6: answer next 0: h1=1/2/3 s1 e5 v1 state1 0:0 h2=1/2/3 s2 e5 v1 state3 456:1 h4=1/2/3 s4 "
        "e5 v1 state1 752:1 h5=1/2/3 s5 e5 v1 state1 752:1 h6=1/2/3 s6 e5 v1 state1 752:1\n");
    rig_free(rig);
}

/* Goal: a replica whose drop failed, by the disk or for lack of memory, is dropped with the next audit; no owner is
 * asked about it. */
static void replica_that_did_not_go_goes_with_the_next_audit(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    (void)rig_found(rig, 8, LEAT_SEGMENT_CLOSED, 3);
    requests_forget(rig);
    leat_mem_fail_at(1);
    backup_drop(rep);
    leat_mem_fail_at(1);
    rig_audit(rig, 0, true); /* nor is there now */
    leat_mem_fail_at(0);
    rig_audit(rig, 0, true);
    TRACE_IS("1: answer next 0: h2=1/2/3 s8 e5 v1 state4 752:1\n"
             "store DROP s7\n"
             "2: answer next 0: h2=1/2/3 s8 e5 v1 state4 752:1\n");
    rig_audit(rig, 0, true);
    rig_stored(rig, LEAT_STORE_DROP, LEAT_E_DISK);
    rig_audit(rig, 0, false);
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    TRACE_IS("1: answer next 0: h2=1/2/3 s8 e5 v1 state4 752:1\n"
             "store DROP s7\n"
             "2: answer next 0: h2=1/2/3 s8 e5 v1 state4 752:1\n");
    assert_null(rig_replica(rig, 7));
    assert_int_equal(rig->backup->replica_count, 1);
    rig_free(rig);
}

/* Goal: the audit passes over a replica that is being opened, however long the opening takes: it has no segment yet. */
static void audit_passes_over_what_is_being_opened(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    struct rep_body body = rig_body(rig, 0, 7, 0);
    body.prefix_id = (struct leat_prefix_id){0};
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    trace_begin();
    rig->world->now_us += BACKUP_GONE_US;
    rig_audit(rig, 0, true);
    TRACE_IS("1: answer next 0:\n");
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_E_DISK);
    trace_begin();
    rig_free(rig);
}

/* Goal: an answer has no more than its rows, and says from where to ask on. */
static void audit_of_many_goes_on(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    for (unsigned i = 0; i < BACKUP_ROWS_MAX + 2; i++)
        (void)rig_found(rig, i, LEAT_SEGMENT_CLOSED, 3);
    trace_begin();
    rig_audit(rig, 0, false);
    rig_audit(rig, BACKUP_ROWS_MAX, false);
    rig_hear(rig, &rig_w1, LEAT_REP_AUDIT, (const uint8_t *)"\x91\x00", 2);
    TRACE_IS(
        "1: answer next 256: h1=1/2/3 s0 e5 v1 state4 752:1 h256=1/2/3 s255 e5 v1 state4 752:1 "
        "(256)\n"
        "2: answer next 0: h257=1/2/3 s256 e5 v1 state4 752:1 h258=1/2/3 s257 e5 v1 state4 752:1\n"
        "3: INVALID\n");
    rig_free(rig);
}

/* Goal: when a stream is deleted, replicas without a writer go at once. An open replica goes when its writer drops it,
 * or after 10 s; a replica that was opened after the deletion goes 10 s after its opening. */
static void replicas_of_a_deleted_stream_go(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    (void)rig_found(rig, 2, LEAT_SEGMENT_CLOSED, 3);
    (void)rig_found(rig, 3, LEAT_SEGMENT_HIBERNATED, 1);
    (void)rig_open(rig, 4, LEAT_DURABILITY_MEMORY, false);
    rig->world->nodes[1].deleted = rig_log.stream;
    uint64_t gone_us = rig->world->now_us;
    leat_backup_stream_deleted(rig->backup, rig_log.stream + 1);
    TRACE_IS("");
    leat_backup_stream_deleted(rig->backup, rig_log.stream);
    TRACE_IS("store DROP s2\n"
             "store DROP s3\n");
    rig->world->now_us = gone_us + BACKUP_GONE_US - 1;
    const struct replica *late = rig_open(rig, 5, LEAT_DURABILITY_MEMORY, false);
    rig_audit(rig, 0, true);
    TRACE_IS("1: answer next 0: h3=1/2/3 s4 e5 v1 state1 0:0 h4=1/2/3 s5 e5 v1 state1 0:0\n");
    rig->world->now_us++;
    rig_audit(rig, 0, true);
    TRACE_IS("store DROP s4 leave\n"
             "1: answer next 0: h4=1/2/3 s5 e5 v1 state1 0:0\n");
    rig->world->now_us = late->opened_us + BACKUP_GONE_US - 1;
    rig_audit(rig, 0, true);
    rig->world->now_us++;
    rig_audit(rig, 0, true);
    TRACE_IS("1: answer next 0: h4=1/2/3 s5 e5 v1 state1 0:0\n"
             "store DROP s5 leave\n"
             "2: answer next 0:\n");
    rig_free(rig);
}

static uint64_t cpu_counts(void *ctx)
{
    return *(uint64_t *)ctx += 100;
}

/* Goal: the CPU time of a message counts as CPU time of backups. */
static void processor_time_of_messages_is_counted(void **state)
{
    (void)state;
    struct rig *rig = rig_new();
    uint64_t ns = 0;
    rig->backup->options.cpu = (struct leat_cpu){.ns = cpu_counts, .ctx = &ns};
    struct rep_body body = rig_body(rig, 0, 7, 0);
    body.capacity = LEAT_SEGMENT_BYTES_MIN - 1; /* refused at once */
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    rig_ask(rig, &rig_w1, LEAT_REP_OPEN, &body);
    TRACE_IS("1: INVALID\n"
             "2: INVALID\n");
    assert_int_equal(rig->backup->accounts.cpu_backup_control, 200);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(open_reserves_what_was_asked_for),
        TRACE_TEST(open_that_can_not_be_is_refused_by_name),
        TRACE_TEST(processor_time_of_messages_is_counted),
        TRACE_TEST(close_of_a_whole_one_is_one_row),
        TRACE_TEST(close_of_a_part_makes_it_whole_after_that),
        TRACE_TEST(close_of_other_bytes_is_refused),
        TRACE_TEST(hibernate_resume_and_complete_are_a_row_each),
        TRACE_TEST(complete_that_the_disk_refuses_leaves_a_part),
        TRACE_TEST(rows_are_each_done_or_refused),
        TRACE_TEST(word_of_an_owner_settles_a_replica),
        TRACE_TEST(word_of_one_that_goes_is_of_no_use),
        TRACE_TEST(kept_one_has_a_row_that_says_so),
        TRACE_TEST(audit_tells_what_has_nobodys_word),
        TRACE_TEST(replica_that_did_not_go_goes_with_the_next_audit),
        TRACE_TEST(audit_passes_over_what_is_being_opened),
        TRACE_TEST(audit_of_many_goes_on),
        TRACE_TEST(replicas_of_a_deleted_stream_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
