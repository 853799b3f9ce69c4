/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that go from one backup to another in pieces, message by message: serving pieces, pulling pieces, and
 * looking at longer segments. A backup alone, whose store, disk and other nodes answer by hand. */
#include "tests/replication/pieces_rig.h"

/* ---- serving ---- */

/* Goal: a piece comes out of memory or out of the file, from the place that was asked for. A piece outside the end that
 * the request names is refused. */
static void piece_is_served_from_memory_or_file(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    struct leat_prefix_id all = rig->ends[3];
    rep->seg->passed_bytes = 9;
    filed(rep);
    pull_as(rig, 7, all, 0, all.bytes, true);
    assert_int_equal(rep->busy, 1);
    disk_read(rig, LEAT_OK, all.bytes);
    pull_as(rig, 7, all, 100, 50, true);
    disk_read(rig, LEAT_OK, 150);
    pull_as(rig, 7, all, 100, 50, true);
    disk_read(rig, LEAT_OK, 149);
    pull_as(rig, 7, all, 100, 50, true);
    disk_read(rig, LEAT_E_DISK, 0);
    assert_int_equal(rep->busy, 0);
    assert_int_equal(rig->backup->serves, 0);
    TRACE_IS("read 4096+4096\n"
             "1: answer piece 752, begins 0100, passed 9\n"
             "read 4096+4096\n"
             "2: answer piece 50, begins 0100, passed 9\n"
             "read 4096+4096\n"
             "3: DAMAGED\n"
             "read 4096+4096\n"
             "4: DISK\n");
    static const uint32_t wrong[][2] = {{0, 0}, {0, 753}, {752, 1}, {753, 1}, {700, 53}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        pull_as(rig, 7, all, wrong[i][0], wrong[i][1], true);
    rig_hear(rig, &rig_w2, LEAT_REP_PULL, (const uint8_t *)"\x90", 1);
    rig->backup->serves = BACKUP_SERVES_MAX;
    pull_as(rig, 7, all, 0, 50, true);
    rig->backup->serves--;
    pull_as(rig, 7, all, 700, 52, true);
    disk_read(rig, LEAT_OK, 752);
    rig->backup->serves = 0;
    leat_mem_fail_at(1);
    pull_as(rig, 7, all, 700, 52, true);
    leat_mem_fail_at(0);
    TRACE_IS("1: INVALID\n"
             "2: INVALID\n"
             "3: INVALID\n"
             "4: INVALID\n"
             "5: INVALID\n"
             "6: INVALID\n"
             "7: AGAIN\n"
             "read 4096+4096\n"
             "8: answer piece 52, begins 0000, passed 9\n"
             "9: NO_MEMORY\n");
    struct replica *open = rig_open(rig, 8, LEAT_DURABILITY_MEMORY, false);
    open->seg->passed_bytes = 9; /* of a closed one only */
    open->seg->prefix_id = rig->ends[1];
    pull_as(rig, 8, rig->ends[1], 144, 50, true);
    TRACE_IS("1: answer piece 50, begins 0200, passed 0\n");
    rig_end(rig);
}

/* Goal: which replica may be served to which request: each reason against it, by itself. */
static void replica_serves_what_it_may(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    for (unsigned open = 0; open < 2; open++) {
        struct replica *rep = open ? rig_open(rig, 8, LEAT_DURABILITY_MEMORY, false)
                                   : rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
        const uint64_t id = 7 + open;
        if (!open) filed(rep);
        for (unsigned i = 0; i < 14; i++) {
            struct leat_prefix_id prefix_id = rig->ends[3];
            rep->damaged = i == 1;
            rep->drop_wanted = i == 2;
            rep->dropping = i == 3;
            rep->seg->incomplete = i == 4;
            rep->seg->integrity = i == 5 ? LEAT_INTEGRITY_CORRUPT : LEAT_INTEGRITY_OK;
            rep->adopting = i == 6;
            rep->move_wanted = open && i == 7;
            if (i == 8) prefix_id.crc++;
            if (i == 9) prefix_id = rig->ends[2];
            if (i == 10) prefix_id.bytes = RIG_CAPACITY + 1;
            if (i == 11) prefix_id.bytes = 31;
            trace("%u ", i);
            pull_as(rig, i == 12 ? 9 : id, prefix_id, 0, 16, i != 13);
            if (ports.io) disk_read(rig, LEAT_OK, 16);
        }
        rep->move_wanted = rep->adopting = false;
        if (open) { /* what lies behind its place is another's, whatever it looks like */
            struct leat_prefix_id behind = {RIG_CAPACITY + 8, 77};
            struct leat_entry trailer = {.type = LEAT_ENTRY_TRAILER, .crc = 77};
            memcpy(rep->seg->buffer + behind.bytes - sizeof trailer, &trailer, sizeof trailer);
            trace("behind ");
            pull_as(rig, id, behind, 0, 16, true);
        }
        if (open)
            TRACE_IS("0 2: answer piece 16, begins 0100, passed 0\n"
                     "1 3: NOT_FOUND\n"
                     "2 4: NOT_FOUND\n"
                     "3 5: NOT_FOUND\n"
                     "4 6: NOT_FOUND\n"
                     "5 7: NOT_FOUND\n"
                     "6 8: NOT_FOUND\n"
                     "7 9: NOT_FOUND\n"
                     "8 10: NOT_FOUND\n"
                     "9 11: answer piece 16, begins 0100, passed 0\n"
                     "10 12: NOT_FOUND\n"
                     "11 13: NOT_FOUND\n"
                     "12 14: NOT_FOUND\n"
                     "13 15: answer piece 16, begins 0100, passed 0\n"
                     "behind 16: NOT_FOUND\n");
        else
            TRACE_IS("0 read 4096+4096\n"
                     "3: answer piece 16, begins 0100, passed 0\n"
                     "1 4: NOT_FOUND\n"
                     "2 5: NOT_FOUND\n"
                     "3 6: NOT_FOUND\n"
                     "4 7: NOT_FOUND\n"
                     "5 8: NOT_FOUND\n"
                     "6 9: NOT_FOUND\n"
                     "7 read 4096+4096\n"
                     "10: answer piece 16, begins 0100, passed 0\n"
                     "8 11: NOT_FOUND\n"
                     "9 12: NOT_FOUND\n"
                     "10 13: NOT_FOUND\n"
                     "11 14: NOT_FOUND\n"
                     "12 15: NOT_FOUND\n"
                     "13 read 4096+4096\n"
                     "16: answer piece 16, begins 0100, passed 0\n");
    }
    rig_end(rig);
}

/* Goal: where two claim to have it the bytes say which one does. */
static void of_two_that_claim_it_the_one_that_has_it_serves(void **state)
{
    (void)state;
    for (unsigned torn = 0; torn < 4; torn++) {
        struct rig *rig = rig_ports();
        struct replica *reps[2];
        for (unsigned i = 0; i < 2; i++) {
            reps[i] = rig_open(rig, 7, LEAT_DURABILITY_MEMORY, false);
            if (torn >> i & 1) reps[i]->seg->buffer[300] ^= 1;
        }
        int serves = -1;
        leat_err rc = leat_backup_flush(rig->backup, rig_log, (struct leat_segment_id){7},
                                        rig->ends[2], NULL, NULL); /* says which by being busy */
        assert_int_equal(rc, LEAT_OK);
        for (int i = 0; i < 2; i++)
            if (reps[i]->busy) serves = i;
        trace("torn %u: %d\n", torn, serves);
        rig->req_count = 0;
        rig_end(rig);
    }
    TRACE_IS("store STAMP s7 v1 role 1 writer 11\n"
             "torn 0: 0\n"
             "store STAMP s7 v1 role 1 writer 11\n"
             "torn 1: 1\n"
             "store STAMP s7 v1 role 1 writer 11\n"
             "torn 2: 0\n"
             "store STAMP s7 v1 role 1 writer 11\n"
             "torn 3: 1\n");
    struct rig *rig = rig_ports(); /* closed ones were looked at when they were closed */
    struct replica *reps[2];
    for (unsigned i = 0; i < 2; i++)
        filed(reps[i] = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3));
    pull_as(rig, 7, rig->ends[3], 0, 16, true);
    assert_true(reps[0]->busy == 1 && reps[1]->busy == 0);
    disk_read(rig, LEAT_OK, 16);
    TRACE_IS("read 4096+4096\n"
             "1: answer piece 16, begins 0100, passed 0\n");
    rig_end(rig);
}

/* Goal: a longer one is looked at before it is served up to there, once for each end. */
static void longer_one_is_looked_at_first(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica *rep = rig_found(rig, 7, LEAT_SEGMENT_HIBERNATED, 2);
    filed(rep);
    struct leat_prefix_id other = {rig->ends[1].bytes, rig->ends[1].crc ^ 1};
    leat_mem_fail_at(1);
    pull_as(rig, 7, rig->ends[1], 0, 16, false);
    leat_mem_fail_at(0);
    TRACE_IS("1: NO_MEMORY\n");
    pull_as(rig, 7, rig->ends[1], 0, 16, true); /* not who wants one that ends there */
    pull_as(rig, 7, rig->ends[1], 0, 16, false);
    pull_as(rig, 7, rig->ends[1], 0, 16, false); /* while it is looked at */
    TRACE_IS("1: NOT_FOUND\n"
             "read 4096+4096\n"
             "3: AGAIN\n");
    disk_read(rig, LEAT_OK, rig->ends[1].bytes);
    disk_read(rig, LEAT_OK, 16);
    TRACE_IS("read 4096+4096\n"
             "2: answer piece 16, begins 0100, passed 0\n");
    pull_as(rig, 7, other, 0, 16, false);
    disk_read(rig, LEAT_OK, other.bytes);
    pull_as(rig, 7, other, 0, 16, false);
    pull_as(rig, 7, rig->ends[1], 0, 16, false);
    disk_read(rig, LEAT_OK, 16);
    TRACE_IS("read 4096+4096\n"
             "1: NOT_FOUND\n"
             "2: NOT_FOUND\n"
             "read 4096+4096\n"
             "3: answer piece 16, begins 0100, passed 0\n");
    pull_as(rig, 7, rig->ends[0], 0, 16, false); /* the first of the two is forgotten for a third */
    disk_read(rig, LEAT_OK, rig->ends[0].bytes - 1);
    TRACE_IS("read 4096+4096\n"
             "1: NOT_FOUND\n");
    assert_int_equal(rep->looked[0].prefix_id.bytes, rig->ends[0].bytes);
    assert_false(rep->looked[0].begins);
    assert_int_equal(rep->looked[1].prefix_id.crc, other.crc);
    assert_int_equal(rep->busy + rig->backup->looks, 0);
    rig_end(rig);
}

/* ---- pulling ---- */

/* Goal: a pulled segment is incomplete until it is closed, and then in the state that its row says. */
static void pulled_segment_is_closed_and_then_whole(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 4; fails++) {
        struct rig *rig = rig_ports();
        rig_image(rig, 7);
        struct leat_backup_pull pull = pull_of(rig);
        trace("step %u fails\n", fails);
        pull_start(rig, &pull);
        piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 9);
        rig_stored(rig, LEAT_STORE_RESERVE, fails == 1 ? LEAT_E_DISK_FULL : LEAT_OK);
        if (fails != 1) rig_stored(rig, LEAT_STORE_CLOSE, fails == 2 ? LEAT_E_DISK : LEAT_OK);
        if (fails != 1 && fails != 2)
            rig_stored(rig, LEAT_STORE_STAMP, fails == 3 ? LEAT_E_DISK : LEAT_OK);
        if (rig->req_count) rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
        assert_int_equal(rig->backup->pulls, 0);
        assert_int_equal(rig->backup->replica_count, fails == 0);
        if (fails == 0) {
            const struct replica *rep = rig_replica(rig, 7);
            assert_int_equal(rep->busy, 0);
            assert_true(leat_backup_holds(rig->backup, rig_log, pull.segment, pull.prefix_id));
            assert_true(rep->seg->provisional && !rep->seg->incomplete);
        }
        rig_end(rig);
    }
    TRACE_IS("step 0 fails\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store CLOSE s7 752:1 from 100 to 102/5002 passed 9 state 4\n"
             "store STAMP s7 v4 role 1 writer 11 provisional\n"
             "pulled: OK\n"
             "step 1 fails\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "pulled: DISK_FULL\n"
             "step 2 fails\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store CLOSE s7 752:1 from 100 to 102/5002 passed 9 state 4\n"
             "store DROP s7\n"
             "pulled: DISK\n"
             "step 3 fails\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store CLOSE s7 752:1 from 100 to 102/5002 passed 9 state 4\n"
             "store STAMP s7 v4 role 1 writer 11 provisional\n"
             "store DROP s7\n"
             "pulled: DISK\n");
}

/* Goal: bytes that are not the wanted bytes are refused, and the next node is asked; the pull ends with the reason that
 * leaves most hope. */
static void pulled_bytes_that_are_not_right_are_asked_of_the_next(void **state)
{
    (void)state;
    static const leat_err reasons[] = {LEAT_E_NOT_FOUND, LEAT_E_DAMAGED, LEAT_E_AGAIN,
                                       LEAT_E_TIMEOUT};
    struct rig *rig = rig_ports();
    rig_image(rig, 7);
    struct leat_backup_pull pull = pull_of(rig);
    for (unsigned a = 0; a < 4; a++)
        for (unsigned b = 0; b < 4; b++) {
            size_t used = trace_used;
            pull_start(rig, &pull);
            piece(rig, reasons[a], 0, 0, 0);
            piece(rig, reasons[b], 0, 0, 0);
            while (ports.call) /* once more, where one was slow */
                piece(rig, LEAT_E_NOT_FOUND, 0, 0, 0);
            const char *line = strstr(trace_text + used, "pulled: ") + 8;
            char told[32];
            snprintf(told, sizeof told, "%s", line);
            trace_text[trace_used = used] = '\0';
            trace("%s, %s: %s", leat_err_name(reasons[a]), leat_err_name(reasons[b]), told);
        }
    TRACE_IS("NOT_FOUND, NOT_FOUND: NOT_FOUND\n"
             "NOT_FOUND, DAMAGED: DAMAGED\n"
             "NOT_FOUND, AGAIN: AGAIN\n"
             "NOT_FOUND, TIMEOUT: TIMEOUT\n"
             "DAMAGED, NOT_FOUND: DAMAGED\n"
             "DAMAGED, DAMAGED: DAMAGED\n"
             "DAMAGED, AGAIN: AGAIN\n"
             "DAMAGED, TIMEOUT: TIMEOUT\n"
             "AGAIN, NOT_FOUND: AGAIN\n"
             "AGAIN, DAMAGED: AGAIN\n"
             "AGAIN, AGAIN: AGAIN\n"
             "AGAIN, TIMEOUT: AGAIN\n"
             "TIMEOUT, NOT_FOUND: TIMEOUT\n"
             "TIMEOUT, DAMAGED: TIMEOUT\n"
             "TIMEOUT, AGAIN: TIMEOUT\n"
             "TIMEOUT, TIMEOUT: TIMEOUT\n");
    pull_start(rig, &pull);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes - 1, 0); /* too short */
    rig_image(rig, 8);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0); /* of another segment */
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "n3 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: INVALID\n");
    rig_image_of(rig, 7, RIG_CAPACITY * 3 / 2); /* no segment is so large */
    pull_start(rig, &pull);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
    rig_image_of(rig, 7, RIG_CAPACITY * 2);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "n3 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 131072 d1 v4 role 1 writer 11 part here\n");
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_E_NO_MEMORY);
    trace_begin();
    rig_image(rig, 7);
    rig->image[300] ^= 1;
    pull_start(rig, &pull);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0); /* damaged: shows when all is there */
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store DROP s7\n"
             "n3 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n");
    rig->image[300] ^= 1;
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    TRACE_IS("store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n");
    rig->req_count = 0;
    rig_end(rig);
}

/* Goal: each source has a second, and the last one five; where all were slow they are asked once more, patiently. */
static void slow_source_is_left_for_the_next(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    rig_image(rig, 7);
    struct leat_backup_pull pull = pull_of(rig);
    pull_start(rig, &pull);
    piece(rig, LEAT_E_TIMEOUT, 0, 0, 0);
    piece(rig, LEAT_E_TIMEOUT, 0, 0, 0);
    piece(rig, LEAT_E_TIMEOUT, 0, 0, 0);
    piece(rig, LEAT_E_TIMEOUT, 0, 0, 0);
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "n3 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "n3 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "pulled: TIMEOUT\n");
    ports.call_rc = LEAT_E_CLOSED;
    pull_start(rig, &pull);
    ports.call_rc = LEAT_OK;
    TRACE_IS("pulled: CLOSED\n");
    uint8_t into[1024];
    pull.into = into; /* the bytes alone are wanted */
    pull_start(rig, &pull);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 1000 ms\n"
             "pulled: OK\n");
    assert_memory_equal(into, rig->image, pull.prefix_id.bytes);
    pull.prefix_id.bytes = LEAT_ENTRY_HEADER_BYTES - 1;
    pull_start(rig, &pull);
    pull.prefix_id.bytes = LEAT_SEGMENT_BYTES_MAX + 1;
    pull_start(rig, &pull);
    rig->backup->pulls = LEAT_BACKUP_PULLS_MAX;
    pull_start(rig, &pull);
    rig->backup->pulls = 0;
    TRACE_IS("INVALID\n"
             "INVALID\n"
             "AGAIN\n");
    rig_end(rig);
}

/* Goal: a pull uses the memory of the pull before it: no allocation except for its first piece and its replica. */
static void pull_uses_its_request_again(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    rig_image(rig, 7);
    for (unsigned round = 0; round < 3; round++) {
        struct leat_backup_pull pull = pull_of(rig);
        pull.version = 0; /* of one that has none: 1 */
        leat_mem_fail_at(0);
        pull_start(rig, &pull);
        piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
        rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
        assert_int_equal(rig_replica(rig, 7)->seg->version, 1);
        rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
        rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
        if (round) assert_int_equal(leat_mem_calls(), 2);
    }
    trace_begin();
    rig_end(rig);
}

/* Goal: likewise where the store can't close what has come. */
static void pull_that_is_not_closed_gives_its_request_back(void **state)
{
    (void)state;
    size_t bytes = 0;
    struct rig *rig = rig_ports();
    rig_image(rig, 7);
    for (unsigned round = 0; round < 2; round++) {
        struct leat_backup_pull pull = pull_of(rig);
        pull.node_count = 1;
        trace_begin();
        pull_start(rig, &pull);
        piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
        rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
        rig_stored(rig, LEAT_STORE_CLOSE, LEAT_E_DISK);
        rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
        assert_int_equal(rig->backup->replica_count, 0);
        if (round == 0) bytes = leat_mem_bytes(LEAT_MEM_STORE);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), bytes);
    }
    TRACE_IS("n2 PULL 1/2/3 s7 752:1 from 0 count 752 whole in 5000 ms\n"
             "store RESERVE s7 1/2/3 e5 cap 65536 d1 v4 role 1 writer 11 part here\n"
             "store CLOSE s7 752:1 from 100 to 102/5002 passed 0 state 4\n"
             "store DROP s7\n"
             "pulled: DISK\n");
    rig_end(rig);
}

/* Goal: a pulled segment of level `disk` is on disk once the store has closed it. */
static void pulled_segment_is_on_the_disk_once_it_is_closed(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    rig_image(rig, 7);
    struct leat_backup_pull pull = pull_of(rig);
    pull_start(rig, &pull);
    piece(rig, LEAT_OK, 0, pull.prefix_id.bytes, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    struct replica *rep = rig_replica(rig, 7);
    rep->seg->durability = LEAT_DURABILITY_DISK;
    assert_int_equal(rep->flushed, 0);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    assert_int_equal(rep->flushed, pull.prefix_id.bytes);
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    trace_begin();
    rig_end(rig);
}

/* Goal: the deadline of a source grows with the bytes that it brings, and is never shorter than a moment: no deadline
 * would let it run for ever. A source that can't be asked any more is left, and the next source starts from the
 * beginning. */
static void time_of_a_source_grows_with_what_it_brings(void **state)
{
    (void)state;
    enum { PIECE = 512 * 1024, BYTES = 2 * PIECE + 100 };
    static uint8_t into[BYTES], bytes[PIECE + 64];
    struct rig *rig = rig_ports();
    struct leat_backup_pull pull = pull_of(rig);
    pull.prefix_id.bytes = BYTES;
    pull.into = into;
    static const int64_t spent_us[] = {0, 1499999, 1500000, 1500001, 5000000, 1000000};
    for (unsigned i = 0; i < 7; i++) {
        struct leat_msg_writer writer;
        pull_start(rig, &pull);
        trace("%llu us\n", (unsigned long long)ports.call->timeout_us);
        rig->world->now_us = pull.since_us + (uint64_t)(i < 6 ? spent_us[i] : 0);
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_msg_write_array(&writer, 2);
        leat_msg_write_bin(&writer, into, PIECE);
        leat_msg_write_u64(&writer, 0);
        struct leat_frame frame = {
            .kind = LEAT_REP_PULL, .control = bytes, .control_bytes = writer.used};
        struct leat_link_call *call = ports.call;
        ports.call = NULL;
        if (i == 6) ports.calls_fail = 1;
        call->on_done(call, LEAT_OK, &frame, NULL);
        if (ports.call) trace("then %llu us\n", (unsigned long long)ports.call->timeout_us);
        while (ports.call)
            piece(rig, LEAT_E_NOT_FOUND, 0, 0, 0);
    }
    TRACE_IS("n2 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 1000 ms\n"
             "1000000 us\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 524288 count 524288 whole in 1000 ms\n"
             "then 1000000 us\n"
             "n3 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 5000 ms\n"
             "pulled: NOT_FOUND\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 1000 ms\n"
             "1000000 us\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 524288 count 524288 whole in 0 ms\n"
             "then 1 us\n"
             "n3 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 5000 ms\n"
             "pulled: NOT_FOUND\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 1000 ms\n"
             "1000000 us\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 524288 count 524288 whole in 0 ms\n"
             "then 1 us\n"
             "n3 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 5000 ms\n"
             "pulled: NOT_FOUND\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 1000 ms\n"
             "1000000 us\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 524288 count 524288 whole in 0 ms\n"
             "then 1 us\n"
             "n3 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 5000 ms\n"
             "pulled: NOT_FOUND\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 1000 ms\n"
             "1000000 us\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 524288 count 524288 whole in 0 ms\n"
             "then 1 us\n"
             "n3 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 5000 ms\n"
             "pulled: NOT_FOUND\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 1000 ms\n"
             "1000000 us\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 524288 count 524288 whole in 500 ms\n"
             "then 500000 us\n"
             "n3 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 5000 ms\n"
             "pulled: NOT_FOUND\n"
             "n2 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 1000 ms\n"
             "1000000 us\n"
             "n3 PULL 1/2/3 s7 1048676:1 from 0 count 524288 whole in 5000 ms\n"
             "then 5000000 us\n"
             "pulled: CLOSED\n");
    rig_end(rig);
}

/* Goal: a flush writes a replica where the stream acks at level `disk` and the bytes are not on disk yet; else only the
 * answer comes later. */
static void flush_writes_what_is_not_on_the_disk(void **state)
{
    (void)state;
    struct rig *rig = rig_ports();
    struct replica *rep = rig_open(rig, 7, LEAT_DURABILITY_DISK, false);
    for (unsigned i = 0; i < 6; i++) {
        rep->flushed = i == 0 ? 0 : i == 1 ? 100 : rig->ends[2].bytes;
        rep->busy = i == 3;
        rep->evicting = i == 4;
        rep->move_wanted = i == 5;
        leat_err rc = leat_backup_flush(rig->backup, rig_log, (struct leat_segment_id){7},
                                        rig->ends[2], NULL, NULL);
        trace("%s\n", leat_err_name(rc));
        if (rc) continue;
        struct backup_request *request = rig->reqs[0]->owner;
        backup_request_put(request);
        rep->busy = 0;
        rig->req_count = 0;
    }
    rep->move_wanted = false;
    TRACE_IS("store COMMIT s7 0..656\n"
             "OK\n"
             "store COMMIT s7 100..656\n"
             "OK\n"
             "store STAMP s7 v1 role 1 writer 11\n"
             "OK\n"
             "AGAIN\n"
             "AGAIN\n"
             "NOT_FOUND\n");
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(piece_is_served_from_memory_or_file),
        TRACE_TEST(replica_serves_what_it_may),
        TRACE_TEST(of_two_that_claim_it_the_one_that_has_it_serves),
        TRACE_TEST(longer_one_is_looked_at_first),
        TRACE_TEST(pulled_segment_is_closed_and_then_whole),
        TRACE_TEST(pulled_bytes_that_are_not_right_are_asked_of_the_next),
        TRACE_TEST(slow_source_is_left_for_the_next),
        TRACE_TEST(pull_uses_its_request_again),
        TRACE_TEST(pulled_segment_is_on_the_disk_once_it_is_closed),
        TRACE_TEST(pull_that_is_not_closed_gives_its_request_back),
        TRACE_TEST(time_of_a_source_grows_with_what_it_brings),
        TRACE_TEST(flush_writes_what_is_not_on_the_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
