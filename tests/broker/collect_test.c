/* SPDX-License-Identifier: Apache-2.0 */
/* What a node does for a recovery, by collect.c alone: which owners it fences, what it tells of its replicas, which of
 * these it reads first, and that it tells nothing rather than a part. */
#include "broker/data/core_data.h"
#include "broker/ownership/collect.h"
#include "tests/broker/collect_rig.h"

static void asks(void)
{
    leat_node_on_collect(&alone.node, &it.collect);
    assert_said("mail to 0\n");
    alone_deliver();
}

static void crashed(const char *name, uint64_t incarnation)
{
    struct leat_crashed_node *node = &it.crashed[it.collect.crashed_count++];
    snprintf(node->name, sizeof node->name, "%s", name);
    node->incarnation = incarnation;
}

/* A whole closed replica of the log; its other fields may have any value. */
static struct leat_replica_info *replica(uint32_t log, uint64_t segment)
{
    struct leat_segment *seg = &it.segs[it.replica_count];
    struct leat_replica_info *info = &it.replicas[it.replica_count++];
    *info = (struct leat_replica_info){.log = it.logs[log].log,
                                       .segment = {segment},
                                       .epoch = {3},
                                       .version = 2,
                                       .state = LEAT_SEGMENT_CLOSED,
                                       .prefix_id = {900, 9},
                                       .previous = {800, 8},
                                       .base_offset = 30,
                                       .next_offset = 40,
                                       .max_timestamp_ms = 1234,
                                       .handle = 500 + it.replica_count,
                                       .seg = seg};
    return info;
}

static const struct leat_replica_row *row(size_t at)
{
    assert_in_range(at, 0, it.collect.row_count - 1);
    return &it.collect.rows[at];
}

/* ---- fences ---- */

static void nothing_is_looked_at_before_all_fences_stand(void **state)
{
    (void)state;
    begin();
    crashed("n2", 200), crashed("n1", 90), crashed("n3", 300);
    (void)replica(0, 7);
    alone.now_us = 5000;
    asks();
    assert_said("fence n2 200\nfence n3 300\n"); /* not itself */
    alone.now_us = 5700;
    it.on_fenced(it.fence_arg);
    assert_said("");
    it.on_fenced(it.fence_arg);
    assert_said("look\n"
                "filter 7/0/0, whose end is 4: 7\n"
                "node log info: recovery 00000abc\n"
                "collected OK, 1 rows\n");
    end();
}

static void nothing_to_be_fenced_is_looked_at_at_once(void **state)
{
    (void)state;
    begin();
    (void)replica(0, 7);
    asks();
    assert_said("look\n"
                "filter 7/0/0, whose end is 4: 7\n"
                "node log info: recovery 00000abc\n"
                "collected OK, 1 rows\n");
    end();
}

/* Goal: where one can't be fenced nothing is told. */
static void fence_that_fails_tells_nothing(void **state)
{
    (void)state;
    begin();
    crashed("n2", 200);
    (void)replica(0, 4);
    it.fence = LEAT_E_NO_MEMORY;
    asks();
    assert_said("fence n2 200\n"
                "node log info: recovery 00000abc\n"
                "collected NO_MEMORY, 0 rows\n");
    assert_null(it.collect.rows);
    end();
}

static void node_that_is_not_up_tells_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        if (i == 0) alone.node.life = LEAT_LIFE_COMES_UP;
        if (i == 1) alone.cores[0].data->replicate->backup = NULL;
        if (i == 2) alone.cores[0].stopping = true;
        asks();
        assert_said("collected STARTING, 0 rows\n");
        end();
    }
}

static void no_memory_tells_nothing(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= 3; n++) {
        begin();
        (void)replica(0, 7);
        leat_mem_fail_at(n);
        asks();
        leat_mem_fail_at(0);
        if (n == 1)
            assert_said("collected NO_MEMORY, 0 rows\n");
        else
            assert_said_first("look\nnode log info: recovery 00000abc");
        assert_int_equal(it.collect.rc, LEAT_E_NO_MEMORY);
        assert_int_equal(it.collect.row_count, 0);
        end();
    }
}

/* Goal: an operator reads how long fences and the look took, how much was found, and why nothing is told. */
static void what_a_recovery_took_is_noted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        crashed("n2", 200), crashed("n3", 300);
        (void)replica(0, 4), (void)replica(0, 66);
        it.look = i == 0 ? LEAT_OK : LEAT_E_NO_MEMORY;
        alone.now_us = 5000;
        asks();
        alone.now_us = 5700;
        it.on_fenced(it.fence_arg);
        it.on_fenced(it.fence_arg);
        alone.now_us = 5930;
        if (i == 0)
            it.on_looked(it.look_arg, true);
        else
            alone.cores[0].stopping = true, expire();
        assert_string_equal(
            node_log_line(),
            i == 0 ? "recovery 00000abc: fenced 2 incarnations in 700 us here, found 1 replicas of "
                     "3 logs in 230 us"
                   : "recovery 00000abc: fenced 2 incarnations in 700 us here, found 2 replicas of "
                     "3 logs in 230 us: the memory budget is used up");
        said_enough();
        end();
    }
}

/* Goal: nobody asks for logs, and nothing is told. */
static void nothing_is_told_of_no_logs(void **state)
{
    (void)state;
    begin();
    (void)replica(0, 7);
    it.collect.log_count = 0;
    asks();
    assert_said("look\nnode log info: recovery 00000abc\ncollected OK, 0 rows\n");
    end();
}

/* ---- what is told ---- */

/* Goal: the answer leaves out segments that are no copies, or of other logs; it calls a damaged copy lost. */
static void only_whole_replicas_of_these_logs_are_told_of(void **state)
{
    (void)state;
    begin();
    replica(0, 1)->incomplete = true;
    replica(0, 2)->state = LEAT_SEGMENT_HIBERNATED; /* neither a mark nor closed */
    replica(0, 3)->log.log = 77;
    replica(0, 4)->log.stream--; /* before all that are asked about */
    struct leat_replica_info *info = replica(0, 5);
    info->state = LEAT_SEGMENT_OPEN;
    info->mark = true;
    info->torn = true;
    info->next_offset = 99;
    info = replica(0, 6);
    info->damaged = true;
    info->state = LEAT_SEGMENT_OPEN;
    info = replica(0, 9);
    info->durable = info->provisional = true;
    info->only_start = info->torn = true; /* of marks alone */
    replica(0, 10)->mark = true;
    asks();
    assert_said("look\n"
                "filter 7/0/0, whose end is 4: 5 6 9 10\n"
                "node log info: recovery 00000abc\n"
                "collected OK, 4 rows\n");
    assert_int_equal(row(0)->kind, LEAT_REPLICA_MARK);
    assert_int_equal(row(0)->segment, 5);
    assert_int_equal(row(0)->epoch.v, 3);
    assert_int_equal(row(0)->version, 2);
    assert_string_equal(prefix_id_text(row(0)->prefix_id), "900:9");
    assert_string_equal(prefix_id_text(row(0)->previous), "800:8");
    assert_int_equal(row(0)->base_offset, 30);
    assert_int_equal(row(0)->next_offset, 99);
    assert_int_equal(row(0)->max_timestamp_ms, 1234);
    assert_true(row(0)->torn && !row(0)->only_start && !row(0)->durable && !row(0)->provisional);
    assert_int_equal(row(1)->kind, LEAT_REPLICA_LOST);
    assert_int_equal(row(1)->segment, 6);
    assert_int_equal(row(1)->epoch.v, 3);
    assert_int_equal(row(1)->version, 2);
    assert_int_equal(row(1)->prefix_id.bytes, 0);
    assert_int_equal(row(2)->kind, LEAT_REPLICA_CLOSED);
    assert_int_equal(row(2)->segment, 9);
    assert_true(row(2)->durable && row(2)->provisional && !row(2)->torn && !row(2)->only_start);
    assert_true(leat_log_ref_equal(row(2)->log, it.logs[0].log));
    assert_int_equal(row(3)->kind, LEAT_REPLICA_MARK);
    assert_true(!row(3)->torn && !row(3)->only_start && !row(3)->durable && !row(3)->provisional);
    end();
}

/* Goal: the zeros that lie behind the rows are of no log. */
static void row_behind_the_last_is_not_told_of(void **state)
{
    (void)state;
    begin();
    it.logs[0].log = (struct leat_log_ref){0};
    (void)replica(0, 9);
    asks();
    assert_said("look\n"
                "filter 0/0/0, whose end is 4: 9\n"
                "node log info: recovery 00000abc\n"
                "collected OK, 1 rows\n");
    end();
}

/* Goal: the rows of each log are filtered together, by the log's own record, in whatever order they were found; many
 * rows have room. */
static void rows_of_each_log_are_filtered_together(void **state)
{
    (void)state;
    begin();
    static const struct {
        uint32_t log;
        uint64_t segment;
    } rows[] = {{2, 9}, {0, 3}, {1, 66}, {2, 7}, {0, 66}, {1, 15}, {0, 2}, {2, 66}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        (void)replica(rows[i].log, rows[i].segment);
    asks();
    assert_said("look\n"
                "filter 7/0/0, whose end is 4: 2 3 66\n"
                "filter 7/0/1, whose end is 5: 15 66\n"
                "filter 7/0/2, whose end is 6: 7 9 66\n"
                "node log info: recovery 00000abc\n"
                "collected OK, 5 rows\n");
    static const uint64_t kept[] = {2, 3, 15, 7, 9};
    static const uint32_t logs[] = {0, 0, 1, 2, 2};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(row(i)->segment, kept[i]);
        assert_true(leat_log_ref_equal(row(i)->log, it.logs[logs[i]].log));
    }
    end();
}

static void many_rows_have_room(void **state)
{
    (void)state;
    for (unsigned n = 0; n <= 3; n++) {
        begin();
        for (unsigned i = 0; i < 200; i++)
            (void)replica(i % LOGS, 100 + i);
        leat_mem_fail_at(n == 0 ? 0
                                : n + 3); /* the second time that there is no room, and the third */
        asks();
        leat_mem_fail_at(0);
        said_enough();
        assert_int_equal(it.collect.rc, n == 0 ? LEAT_OK : LEAT_E_NO_MEMORY);
        assert_int_equal(it.collect.row_count, n == 0 ? 200 : 0);
        end();
    }
}

/* Goal: a question that was answered like that before is not told of again. */
static void question_asked_again_is_told_of_once(void **state)
{
    (void)state;
    static const char
        info[] = "look\nfilter 7/0/0, whose end is 4: 7\nnode log info: recovery 00000abc\n",
        debug[] = "look\nfilter 7/0/0, whose end is 4: 7\nnode log debug: recovery 00000abc\n";
    begin();
    (void)replica(0, 7);
    for (unsigned i = 0; i < 8; i++) {
        if (i == 2) crashed("n1", 90); /* itself: no fence */
        if (i == 4) it.crashed[0].incarnation++;
        if (i == 6) it.collect.log_count--;
        asks();
        assert_said_first(i % 2 == 0 ? info : debug);
        leat_mem_free(it.collect.rows);
        it.collect.rows = NULL;
    }
    it.collect.log_count++;
    (void)replica(0, 8);
    asks();
    assert_said_first(
        "look\nfilter 7/0/0, whose end is 4: 7 8\nnode log info: recovery 00000abc\n");
    end();
}

/* ---- where its log ends ---- */

/* Goal: for a log whose end is decided, the copies that begin with the end are named as such: they are known by their
 * prefix id, by what was found before, or by their bytes in memory. Other copies are looked at. */
static void copies_that_begin_with_the_end_are_known(void **state)
{
    (void)state;
    enum {
        SAME,
        BEGINS,
        BEGINS_LAST,
        BYTES,
        OTHER_BYTES,
        NOT_STARTED,
        SHORT,
        OTHER_LENGTH,
        OPENED,
        OTHER_SEGMENT,
        NO_END,
        CASES
    };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        struct leat_replica_info *info = replica(0, i == OTHER_SEGMENT ? 5 : 4);
        info->prefix_id = (struct leat_prefix_id){1500, 9};
        it.scan = (struct leat_scan){.started = true, .bytes = 1000, .crc = 4};
        if (i == SAME) info->prefix_id = (struct leat_prefix_id){1000, 4};
        if (i == BEGINS) info->begins[0] = (struct leat_prefix_id){1000, 4};
        if (i == BEGINS_LAST) info->begins[LEAT_BEGINS_MAX - 1] = (struct leat_prefix_id){1000, 4};
        if (i >= BYTES && i <= OTHER_LENGTH) it.segs[0].buffer = (uint8_t *)"";
        if (i == OTHER_BYTES) it.scan.crc = 5;
        if (i == NOT_STARTED) it.scan.started = false;
        if (i == SHORT) info->prefix_id.bytes = 999;
        if (i == OTHER_LENGTH) it.scan.bytes = 999;
        if (i == OPENED) it.logs[0].record.opened = true;
        if (i == NO_END) it.logs[0].record.tail.prefix_id = (struct leat_prefix_id){0, 0};
        it.look = LEAT_E_NOT_FOUND;
        asks();
        bool scanned = i >= BYTES && i <= OTHER_LENGTH && i != SHORT;
        bool looked = i >= OTHER_BYTES && i <= OTHER_LENGTH;
        char expected[256];
        snprintf(expected, sizeof expected, "look\n%s%sfilter", scanned ? "scan 1000 bytes\n" : "",
                 looked ? "look at 501 for 1000:4\n" : "");
        assert_said_first(expected);
        assert_int_equal(row(0)->holds_tail, i <= BYTES);
        end();
    }
}

/* Goal: the end of an opened log is where its epoch began: the bytes that its own owner wrote lie after the end, and
 * are not compared with the end. A log that is not opened ends in the bytes that its owner wrote. */
static void end_of_an_opened_log_is_where_its_epoch_began(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        struct leat_log_record *record = &it.logs[0].record;
        bool opened = i / 2 != 0, own = i % 2 != 0;
        record->opened = opened;
        record->stamp_epoch.v = own ? 3 : 4;
        if (opened) record->began = record->tail, record->tail.segment = 9;
        replica(0, 4)->prefix_id.bytes = 1500;
        it.look = LEAT_E_NOT_FOUND;
        asks();
        assert_said_first(opened && own ? "look\nfilter" : "look\nlook at 501 for 1000:4\nfilter");
        end();
    }
}

/* Goal: of several prefix ids only bytes and checksum together say that it begins so. */
static void end_is_known_by_bytes_and_checksum(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        struct leat_replica_info *info = replica(0, 4);
        info->prefix_id = (struct leat_prefix_id){1500, 9};
        if (i == 0) info->prefix_id = (struct leat_prefix_id){1000, 5};
        if (i == 1) info->prefix_id = (struct leat_prefix_id){1001, 4};
        if (i == 2) info->begins[0] = (struct leat_prefix_id){1000, 5};
        if (i == 3) info->begins[0] = (struct leat_prefix_id){1001, 4};
        it.look = LEAT_E_NOT_FOUND;
        asks();
        assert_false(row(0)->holds_tail);
        said_enough();
        end();
    }
}

/* Goal: of ends that were found before no more count than there is room for. */
static void what_lies_behind_the_ends_that_were_found_is_none(void **state)
{
    (void)state;
    begin();
    struct leat_replica_info *info = replica(0, 4);
    struct leat_prefix_id *end_of = &it.logs[0].record.tail.prefix_id;
    static_assert(sizeof *end_of == sizeof info->seg, "it can be taken for one");
    memcpy(end_of, &info->seg, sizeof *end_of);
    info->prefix_id = (struct leat_prefix_id){UINT32_MAX, 9};
    it.look = LEAT_E_NOT_FOUND;
    asks();
    assert_false(row(0)->holds_tail);
    said_enough();
    end();
}

/* Goal: whether it begins so is told, and then the next one is looked at. */
static void copies_are_looked_at_one_after_the_other(void **state)
{
    (void)state;
    for (unsigned begins = 0; begins < 2; begins++) {
        begin();
        (void)replica(0, 4), (void)replica(0, 5), (void)replica(1, 5);
        asks();
        assert_said("look\nlook at 501 for 1000:4\n");
        it.on_looked(it.look_arg, begins);
        assert_said("look at 503 for 1000:5\n");
        it.on_looked(it.look_arg, !begins);
        assert_said("filter 7/0/0, whose end is 4: 4 5\n"
                    "filter 7/0/1, whose end is 5: 5\n"
                    "node log info: recovery 00000abc\n"
                    "collected OK, 3 rows\n");
        assert_int_equal(row(0)->holds_tail, begins);
        assert_false(row(1)->holds_tail);
        assert_int_equal(row(2)->holds_tail, !begins);
        end();
    }
}

/* Goal: while it can't be looked at the recovery waits; where that takes too long nothing is told, and no part. */
static void copy_that_is_in_use_is_waited_for(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        (void)replica(0, 4), (void)replica(1, 5); /* the second is not looked at: nothing is told */
        it.look = i == 0 ? LEAT_E_AGAIN : LEAT_E_NO_MEMORY;
        asks();
        assert_said("look\nlook at 501 for 1000:4\ntimer 10000\n");
        for (unsigned tries = 1; tries < 99; tries++) {
            expire();
            assert_said("look at 501 for 1000:4\ntimer 10000\n");
        }
        expire();
        assert_said_first("look at 501 for 1000:4\nnode log info: recovery 00000abc");
        assert_int_equal(it.collect.rc, it.look);
        assert_int_equal(it.collect.row_count, 0);
        end();
    }
    begin();
    (void)replica(0, 4);
    it.look = LEAT_E_AGAIN;
    asks();
    alone.cores[0].stopping = true;
    expire();
    said_enough();
    assert_int_equal(it.collect.rc, LEAT_E_AGAIN);
    end();
}

/* Goal: one that is in use for a while takes nothing of the patience for another. */
static void each_copy_is_waited_for_as_long(void **state)
{
    (void)state;
    begin();
    (void)replica(0, 4), (void)replica(1, 5);
    for (unsigned copy = 0; copy < 2; copy++) {
        it.look = LEAT_E_AGAIN;
        if (copy == 0)
            asks();
        else
            it.on_looked(it.look_arg, true);
        for (unsigned tries = 1; tries < 99; tries++)
            expire();
        it.look = LEAT_OK;
        expire();
    }
    said_enough();
    it.on_looked(it.look_arg, true);
    said_enough();
    assert_int_equal(it.collect.rc, LEAT_OK);
    assert_int_equal(it.collect.row_count, 2);
    end();
}

/* ---- hibernated without a batch: what it follows is in the file ---- */

static struct leat_replica_info *hibernated(uint64_t segment, uint32_t bytes)
{
    struct leat_replica_info *info = replica(0, segment);
    info->state = LEAT_SEGMENT_HIBERNATED;
    info->mark = info->only_start = true;
    info->prefix_id = (struct leat_prefix_id){bytes, 9};
    it.segs[it.replica_count - 1].file = (void *)&it;
    it.segs[it.replica_count - 1].file_offset = 4096 * segment;
    return info;
}

/* Goal: the start entries of hibernated replicas are read, of all of these and of no others, each by as many whole
 * blocks as the replica has. */
static void starts_of_hibernated_ones_are_read(void **state)
{
    (void)state;
    begin();
    (void)hibernated(7, 100);
    hibernated(8, 100)->only_start = false;
    hibernated(9, 100)->state = LEAT_SEGMENT_CLOSED;
    (void)hibernated(10, 4097);
    it.scan = (struct leat_scan){.started = true,
                                 .bytes = 100,
                                 .crc = 9,
                                 .previous = {600, 6},
                                 .base_offset = 70,
                                 .next_offset = 70};
    asks();
    assert_said("look\nread 4096 bytes at 28672\n");
    assert_ptr_equal(alone.io->file, &it);
    alone_io_done(LEAT_OK, 100);
    assert_said("scan 100 bytes\nread 8192 bytes at 40960\n");
    it.scan.bytes = 4097;
    it.scan.next_offset = 71;
    alone_io_done(LEAT_OK, 8192);
    assert_said("scan 4097 bytes\n"
                "filter 7/0/0, whose end is 4: 7 8 9 10\n"
                "node log info: recovery 00000abc\n"
                "collected OK, 4 rows\n");
    assert_string_equal(prefix_id_text(row(0)->previous), "600:6");
    assert_int_equal(row(0)->base_offset, 70);
    assert_true(row(0)->only_start);
    assert_int_equal(row(0)->kind, LEAT_REPLICA_MARK);
    assert_string_equal(prefix_id_text(row(1)->previous), "800:8");
    assert_false(row(3)->only_start); /* the replica has more than a start entry */
    end();
}

/* Goal: a replica whose start entry can't be read, or has other bytes, is no open replica. */
static void start_that_cant_be_read_is_not_told_of(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        begin();
        (void)hibernated(7, 100);
        it.scan =
            (struct leat_scan){.started = i != 2, .bytes = 100 + (i == 3), .crc = 9 + (i == 4)};
        asks();
        said_enough();
        alone_io_done(i == 0 ? LEAT_E_DISK : LEAT_OK, i == 1 ? 99 : 100);
        assert_said_first(i < 2 ? "filter" : "scan 100 bytes\nfilter");
        assert_int_equal(row(0)->kind, i == 5 ? LEAT_REPLICA_MARK : LEAT_REPLICA_CLOSED);
        assert_int_equal(row(0)->prefix_id.bytes, i == 5 ? 100 : 0);
        assert_int_equal(row(0)->prefix_id.crc, i == 5 ? 9 : 0);
        end();
    }
}

/* Goal: memory for it is kept, and made larger; without it nothing is told. */
static void memory_to_read_starts_fails(void **state)
{
    (void)state;
    for (unsigned n = 4; n <= 5; n++) {
        begin();
        (void)hibernated(7, 100), (void)hibernated(8, 4096), (void)hibernated(9, 4097);
        leat_mem_fail_at(n);
        asks();
        if (n == 5) alone_io_done(LEAT_OK, 100), alone_io_done(LEAT_OK, 4096);
        leat_mem_fail_at(0);
        said_enough();
        assert_int_equal(it.collect.rc, LEAT_E_NO_MEMORY);
        assert_null(alone.io);
        end();
    }
}

/* Goal: a hibernated replica that may begin with its log's end is looked at before its bytes are read. */
static void hibernated_one_is_looked_at_and_read(void **state)
{
    (void)state;
    begin();
    (void)hibernated(4, 1500);
    asks();
    assert_said("look\nlook at 501 for 1000:4\n");
    it.on_looked(it.look_arg, true);
    assert_said("read 4096 bytes at 16384\n");
    alone_io_done(LEAT_OK, 1500);
    assert_true(row(0)->holds_tail);
    said_enough();
    end();
}

/* ---- how this node stands ---- */

static void standing_is_kept_and_told(void **state)
{
    (void)state;
    begin();
    leat_node_on_standing(&alone.node, LEAT_STANDING_CONFIRMED);
    assert_said("");
    assert_int_equal(atomic_load(&alone.node.standing), LEAT_STANDING_CONFIRMED);
    leat_node_on_standing(&alone.node, LEAT_STANDING_ALONE);
    assert_said_first(
        "node log warn: no other node is heard, this process was stopped for a while");
    leat_node_on_standing(&alone.node, LEAT_STANDING_CONFIRMED);
    assert_said("node log info: the cluster confirms that this node is up\n");
    leat_node_on_standing(&alone.node, LEAT_STANDING_ALONE);
    said_enough();
    leat_node_on_standing(&alone.node, LEAT_STANDING_CRASHED);
    assert_said("node log error: this node was declared crashed\nmail to 0\n");
    assert_int_equal(it.crashes, 0);
    alone_deliver();
    assert_int_equal(it.crashes, 1);
    for (enum leat_standing now = 0; now <= LEAT_STANDING_CRASHED; now++) {
        leat_node_on_standing(&alone.node, now); /* it is for good, and said once */
        assert_said("");
        assert_int_equal(atomic_load(&alone.node.standing), LEAT_STANDING_CRASHED);
    }
    alone.node.options.on_crashed = NULL;
    alone.node.standing = LEAT_STANDING_CONFIRMED;
    leat_node_on_standing(&alone.node, LEAT_STANDING_CRASHED);
    alone_deliver();
    assert_int_equal(it.crashes, 1);
    said_enough();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_looked_at_before_all_fences_stand),
        cmocka_unit_test(nothing_to_be_fenced_is_looked_at_at_once),
        cmocka_unit_test(fence_that_fails_tells_nothing),
        cmocka_unit_test(node_that_is_not_up_tells_nothing),
        cmocka_unit_test(no_memory_tells_nothing),
        cmocka_unit_test(what_a_recovery_took_is_noted),
        cmocka_unit_test(nothing_is_told_of_no_logs),
        cmocka_unit_test(only_whole_replicas_of_these_logs_are_told_of),
        cmocka_unit_test(rows_of_each_log_are_filtered_together),
        cmocka_unit_test(row_behind_the_last_is_not_told_of),
        cmocka_unit_test(many_rows_have_room),
        cmocka_unit_test(question_asked_again_is_told_of_once),
        cmocka_unit_test(copies_that_begin_with_the_end_are_known),
        cmocka_unit_test(end_of_an_opened_log_is_where_its_epoch_began),
        cmocka_unit_test(end_is_known_by_bytes_and_checksum),
        cmocka_unit_test(what_lies_behind_the_ends_that_were_found_is_none),
        cmocka_unit_test(copies_are_looked_at_one_after_the_other),
        cmocka_unit_test(each_copy_is_waited_for_as_long),
        cmocka_unit_test(copy_that_is_in_use_is_waited_for),
        cmocka_unit_test(starts_of_hibernated_ones_are_read),
        cmocka_unit_test(start_that_cant_be_read_is_not_told_of),
        cmocka_unit_test(memory_to_read_starts_fails),
        cmocka_unit_test(hibernated_one_is_looked_at_and_read),
        cmocka_unit_test(standing_is_kept_and_told),
    };
    return cmocka_run_group_tests_name("broker collect", tests, NULL, NULL);
}
