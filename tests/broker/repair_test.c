/* SPDX-License-Identifier: Apache-2.0 */
/* Closed segments that are damaged here, by repair.c alone: memory first, then other nodes, what is written where, how
 * often it is tried, and when reads are told that nobody has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/ownership/handover.h"
#include "tests/broker/alone.h"

enum { HOME = 1, BYTES = 5000, TICK = LEAT_TAKEOVER_TICK_US };
static const struct leat_log_ref LOG = {ALONE_STREAM, 1, 1};

static struct {
    struct leat_partition partition;
    bool there, unwanted, all_up;
    struct leat_segment seg;
    struct leat_member member;
    struct leat_store_req *req;
    struct leat_backup_pull *pulling;
    leat_err pull;
    bool over; /* what leat_log_repair_end() says */
    struct leat_timer *timer;
} it;

/* ---- what it calls ---- */

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, HOME);
    assert_true(leat_log_ref_equal(ref, LOG));
    return it.there ? &it.partition : NULL;
}
bool leat_all_nodes_up(const struct leat_core *core)
{
    assert_int_equal(core->index, 0);
    return it.all_up;
}
void leat_pull_from_all(const struct leat_core *core, struct leat_backup_pull *pull)
{
    assert_int_equal(core->index, 0);
    pull->nodes[0] = 10;
    pull->nodes[1] = 12;
    pull->node_count = 2;
}
leat_err leat_backup_pull(struct leat_backup *backup, struct leat_backup_pull *pull)
{
    assert_ptr_equal(backup, &it);
    assert_int_equal((uintptr_t)pull->into % 4096, 0);
    memset(pull->into, 7, BYTES);
    for (unsigned i = BYTES; i < 8192; i++) /* up to the end of its last block */
        assert_int_equal(pull->into[i], 0);
    said("pull %s segment %llu %s of %u nodes", ref_text(pull->log),
         (unsigned long long)pull->segment.v, prefix_id_text(pull->prefix_id), pull->node_count);
    if (it.pull == LEAT_OK) it.pulling = pull;
    return it.pull;
}
struct leat_segment *leat_log_repair_begin(struct leat_log *log, struct leat_segment_id segment,
                                           struct leat_prefix_id prefix_id)
{
    assert_ptr_equal(log, &it);
    said("begin with %llu %s", (unsigned long long)segment.v, prefix_id_text(prefix_id));
    return it.unwanted ? NULL : &it.seg;
}
bool leat_log_repair_end(struct leat_log *log, struct leat_segment_id segment, leat_err rc)
{
    assert_ptr_equal(log, &it);
    said("end of %llu %s", (unsigned long long)segment.v, leat_err_name(rc));
    return it.over;
}
void leat_log_repair_give_up(struct leat_log *log, struct leat_segment_id segment)
{
    assert_ptr_equal(log, &it);
    said("give up %llu", (unsigned long long)segment.v);
}
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    assert_int_equal(delay_us, TICK);
    it.timer = timer;
}
static void req_request(void *ctx, const struct leat_post *post, struct leat_store_req *req)
{
    assert_ptr_equal(ctx, &it);
    assert_ptr_equal(post, &alone.post);
    assert_int_equal(req->kind, LEAT_STORE_REPAIR);
    assert_ptr_equal(req->seg, &it.seg);
    said(req->bytes == NULL ? "store: repair from memory" : "store: repair with these bytes");
    if (req->bytes != NULL) assert_int_equal(req->bytes[BYTES - 1], 7);
    it.req = req;
}

/* ---- the tests' own ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    it.there = it.all_up = true;
    it.partition = (struct leat_partition){.ref = LOG,
                                           .core = &alone.cores[HOME],
                                           .log = (void *)&it,
                                           .copies = (void *)&it.seg,
                                           .epoch = {9}};
    it.seg = (struct leat_segment){.log = LOG, .id = {4}, .prefix_id = {BYTES, 7}};
    it.member.number = 12;
    snprintf(it.member.info.name, sizeof it.member.info.name, "n3");
    alone.cores[0].members.rows[alone.cores[0].members.count++] = &it.member;
    alone.cores[0].data->replicate->backup = (void *)&it;
    alone.node.store_port = (struct leat_store_port){.ctx = &it, .request = req_request};
    leat_repairs_init(&alone.cores[0]);
}

static void end(void)
{
    leat_repairs_fini(&alone.cores[0]);
    said_enough();
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
}

static void asks(void)
{
    assert_int_equal(leat_repair_ask(&it.partition, &it.seg), LEAT_OK);
    alone_deliver();
}

static void store_says(leat_err rc, bool over)
{
    struct leat_store_req *req = it.req;
    assert_non_null(req);
    it.req = NULL;
    it.over = over;
    req->rc = rc;
    said_enough();
    req->on_done(req);
}

/* Up to where another node's copy is pulled. */
static void to_pull(void)
{
    begin();
    asks();
    store_says(LEAT_E_NOT_FOUND, false);
    alone_deliver_all();
    said_enough();
}

static void pulled(leat_err rc)
{
    struct leat_backup_pull *pull = it.pulling;
    assert_non_null(pull);
    it.pulling = NULL;
    pull->node_at = 1;
    pull->on_done(pull, rc);
}

/* The timer of core 0, after so long. */
static void later(uint64_t us)
{
    struct leat_timer *timer = it.timer;
    assert_non_null(timer);
    it.timer = NULL;
    alone.now_us += us;
    said_enough();
    timer->on_expired(timer);
}

static unsigned repairs(void)
{
    unsigned count = 0;
    LEAT_LIST_EACH(&alone.cores[0].repairs->all, each)
    count++;
    return count;
}

/* ---- memory first ---- */

static void what_memory_has_is_written_anew(void **state)
{
    (void)state;
    begin();
    assert_int_equal(leat_repair_ask(&it.partition, &it.seg), LEAT_OK);
    assert_said("mail to 1\n"); /* the log may be in the middle of being made */
    alone_deliver();
    assert_said("begin with 4 5000:7\nstore: repair from memory\n");
    store_says(LEAT_OK, true);
    assert_said("end of 4 OK\nnode log warn: log 7/1/1\n");
    assert_int_equal(alone.mail_count, 0);
    end();
}

/* Goal: other nodes, where there are any, are asked for bytes that memory does not have. */
static void other_nodes_are_asked_where_memory_has_it_not(void **state)
{
    (void)state;
    for (unsigned one_copy = 0; one_copy < 2; one_copy++) {
        begin();
        if (one_copy) it.partition.copies = NULL;
        asks();
        store_says(LEAT_E_NOT_FOUND, false);
        assert_said(one_copy ? "end of 4 NOT_FOUND\ngive up 4\n"
                             : "end of 4 NOT_FOUND\nnode log warn: log 7/1/1\nmail to 0\n");
        alone_deliver_all();
        assert_int_equal(repairs(), !one_copy);
        if (!one_copy) {
            assert_said("pull 7/1/1 segment 4 5000:7 of 2 nodes\n");
            assert_non_null(it.timer);
        }
        end();
    }
}

/* Goal: where memory has the bytes and the disk refuses them, nothing is lost: the refusal is told once, nobody else is
 * asked, and memory's bytes are written again after a while; also where the log has no copies. */
static void what_memory_has_is_tried_again_on_a_disk_that_refuses(void **state)
{
    (void)state;
    for (unsigned one_copy = 0; one_copy < 2; one_copy++) {
        begin();
        if (one_copy) it.partition.copies = NULL;
        alone.cores[0].data->replicate->backup = NULL; /* a server alone */
        asks();
        for (unsigned i = 0; i < 3; i++) {
            static const leat_err says[] = {LEAT_E_DISK_FULL, LEAT_E_DISK, LEAT_E_NO_MEMORY};
            char expected[128];
            store_says(says[i], false);
            snprintf(expected, sizeof expected, "end of 4 %s\n%smail to 0\n",
                     leat_err_name(says[i]), i ? "" : "node log error: log 7/1/1\n");
            assert_said(expected);
            alone_deliver();
            assert_int_equal(repairs(), 1);
            later(LEAT_REPAIR_REFUSED_US - 1);
            assert_said("");
            later(1);
            assert_said("mail to 1\n");
            assert_int_equal(repairs(), 0);
            alone_deliver();
            assert_said("begin with 4 5000:7\nstore: repair from memory\n");
        }
        store_says(LEAT_OK, true);
        assert_said("end of 4 OK\nnode log warn: log 7/1/1\n");
        end();
    }
}

/* Goal: other nodes are asked, too, for bytes that memory has no more when it is asked again. */
static void other_nodes_are_asked_once_memory_has_it_no_more(void **state)
{
    (void)state;
    begin();
    asks();
    store_says(LEAT_E_DISK_FULL, false);
    alone_deliver();
    later(LEAT_REPAIR_REFUSED_US);
    alone_deliver();
    store_says(LEAT_E_NOT_FOUND, false);
    said_enough();
    alone_deliver_all();
    assert_said("pull 7/1/1 segment 4 5000:7 of 2 nodes\n");
    pulled(LEAT_E_NOT_FOUND);
    alone_deliver_all();
    later(LEAT_REPAIR_AGAIN_US); /* no disk refused anything since */
    assert_said("pull 7/1/1 segment 4 5000:7 of 2 nodes\n");
    end();
}

/* Goal: such a repair waits, in steps, while its log is about to move; and while the node stops. */
static void what_memory_has_waits_for_a_move(void **state)
{
    (void)state;
    begin();
    asks();
    store_says(LEAT_E_DISK, false);
    alone_deliver();
    it.partition.state = LEAT_PARTITION_DRAINS;
    it.unwanted = true;
    later(LEAT_REPAIR_REFUSED_US);
    alone_deliver_all();
    said_enough();
    assert_int_equal(repairs(), 1);
    later(LEAT_REPAIR_AGAIN_US - 1);
    assert_said("");
    alone.cores[0].stopping = true;
    later(1);
    assert_said("");
    alone.cores[0].stopping = false;
    later(0);
    assert_said("mail to 1\n");
    it.there = false;
    alone_deliver();
    end();
}

/* Goal: no repair is begun for a log that goes, or that has no use for a repair. */
static void log_that_goes_is_not_repaired(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        assert_int_equal(leat_repair_ask(&it.partition, &it.seg), LEAT_OK);
        said_enough();
        if (i == 0) it.there = false;
        if (i == 1) it.partition.give_up = (void *)&it;
        if (i == 2) it.partition.epoch.v = 10;
        if (i == 3) it.unwanted = true;
        alone_deliver();
        assert_said(i == 3 ? "begin with 4 5000:7\n" : "");
        end();
    }
    begin();
    leat_mem_fail_at(1);
    assert_int_equal(leat_repair_ask(&it.partition, &it.seg), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_said("");
    end();
}

/* Goal: the repair of a segment waits while its log is about to move, as the move may be refused; when the log has
 * gone, or takes no repair for another reason, the repair ends. */
static void log_that_may_move_is_repaired_later(void **state)
{
    (void)state;
    static const struct {
        enum leat_partition_state state;
        bool waits;
    } cases[] = {{LEAT_PARTITION_SERVES, false},
                 {LEAT_PARTITION_DRAINS, true},
                 {LEAT_PARTITION_DRAINED, true},
                 {LEAT_PARTITION_GOES, false}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        it.partition.state = cases[i].state;
        it.unwanted = true;
        assert_int_equal(leat_repair_ask(&it.partition, &it.seg), LEAT_OK);
        said_enough();
        alone_deliver();
        assert_said(cases[i].waits ? "begin with 4 5000:7\nmail to 0\n" : "begin with 4 5000:7\n");
        alone_deliver_all();
        assert_int_equal(repairs(), cases[i].waits);
        if (cases[i]
                .waits) { /* the move is refused: memory is asked, as it has not been asked yet */
            it.partition.state = LEAT_PARTITION_SERVES;
            it.unwanted = false;
            later(LEAT_REPAIR_AGAIN_US - 1);
            assert_said("");
            later(1);
            alone_deliver();
            assert_said("mail to 1\nbegin with 4 5000:7\nstore: repair from memory\n");
            store_says(LEAT_E_DISK, false); /* for the first time: told */
            assert_said("end of 4 DISK\nnode log error: log 7/1/1\nmail to 0\n");
            alone_deliver();
        }
        end();
    }
    begin(); /* nor does a log wait that is given up meanwhile */
    it.partition.state = LEAT_PARTITION_DRAINS;
    it.partition.give_up = (void *)&it;
    assert_int_equal(leat_repair_ask(&it.partition, &it.seg), LEAT_OK);
    alone_deliver_all();
    assert_int_equal(repairs(), 0);
    said_enough();
    end();
    for (unsigned gone = 0; gone < 2; gone++) { /* the copy has come meanwhile */
        to_pull();
        pulled(LEAT_OK);
        it.unwanted = true;
        it.partition.state = LEAT_PARTITION_DRAINS;
        if (gone) it.there = false;
        alone_deliver_all();
        said_enough();
        assert_int_equal(repairs(), !gone);
        end();
    }
}

/* ---- another node's copy ---- */

/* Goal: each segment has its turn, though nodes are asked again and again for the segments before it. */
static void repairs_take_turns(void **state)
{
    (void)state;
    static const uint64_t pulls[] = {4, 5, 6, 4, 5, 6};
    begin();
    for (uint64_t segment = 4; segment <= 6; segment++) {
        it.seg.id.v = segment;
        asks();
        store_says(LEAT_E_NOT_FOUND, false);
        alone_deliver_all();
    }
    for (unsigned i = 0; i < sizeof pulls / sizeof pulls[0]; i++) {
        assert_non_null(it.pulling);
        assert_int_equal(it.pulling->segment.v, pulls[i]);
        pulled(LEAT_E_CLOSED);
        alone_deliver_all();
        later(LEAT_REPAIR_AGAIN_US);
    }
    said_enough();
    alone.cores[0].repairs->going = NULL;
    end();
}

static void copy_is_written_over_it(void **state)
{
    (void)state;
    to_pull();
    pulled(LEAT_OK);
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said("begin with 4 5000:7\nstore: repair with these bytes\n");
    store_says(LEAT_OK, true);
    assert_said("end of 4 OK\nnode log info: log 7/1/1\nmail to 0\n");
    alone_deliver();
    assert_int_equal(repairs(), 0);
    assert_null(alone.cores[0].repairs->going);
    assert_true(alone.cores[0].repairs->next_us ==
                alone.now_us + (uint64_t)BYTES * 1000 * 1000 / LEAT_REPAIR_BYTES_PER_SECOND);
    end();
}

/* Goal: an operator reads whose copy it was, and how long a reader may have waited. */
static void copy_that_repaired_it_is_named(void **state)
{
    (void)state;
    to_pull();
    static struct leat_member other = {.number = 11, .info.name = "n2"};
    alone.cores[0].members.rows[1] = alone.cores[0].members.rows[0];
    alone.cores[0].members.rows[0] = &other;
    alone.cores[0].members.count = 2;
    for (unsigned i = 0; i < 2; i++) {
        if (i == 1) { /* the other one first */
            alone.cores[0].members.rows[0] = &it.member;
            alone.cores[0].members.rows[1] = &other;
            asks();
            store_says(LEAT_E_NOT_FOUND, false);
            alone_deliver_all();
            later(TICK);
        }
        pulled(LEAT_OK);
        alone_deliver();
        alone.now_us += 7000;
        store_says(LEAT_OK, true);
        assert_string_equal(node_log_line(),
                            i == 0
                                ? "log 7/1/1: segment 4 is repaired, by the copy of node n3, 7 ms "
                                  "after its damage was found"
                                : "log 7/1/1: segment 4 is repaired, by the copy of node n3, 27 "
                                  "ms after its damage was found");
        alone_deliver_all();
    }
    end();
}

/* Goal: as fast as the limit says, whatever the segment's size. */
static void copies_are_fetched_at_a_bounded_rate(void **state)
{
    (void)state;
    begin();
    it.seg.prefix_id.bytes = LEAT_REPAIR_BYTES_PER_SECOND / 16;
    asks();
    store_says(LEAT_E_NOT_FOUND, false);
    alone_deliver_all();
    pulled(LEAT_OK);
    alone_deliver();
    store_says(LEAT_OK, true);
    alone_deliver();
    assert_true(alone.cores[0].repairs->next_us == alone.now_us + 1000 * 1000 / 16);
    end();
}

/* Goal: a repair ends when its log has gone meanwhile, or has no use for the repair any more. */
static void copy_for_a_log_that_has_gone_is_not_written(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        to_pull();
        pulled(i == 2 ? LEAT_E_NOT_FOUND : LEAT_OK);
        if (i != 1) it.there = false;
        if (i == 1) it.unwanted = true;
        said_enough();
        alone_deliver();
        assert_said(i == 1 ? "begin with 4 5000:7\nmail to 0\n" : "mail to 0\n");
        alone_deliver();
        assert_int_equal(repairs(), 0);
        end();
    }
}

/* Goal: a disk that refuses loses nothing: the refusal is told once, and the repair is tried again after a while. */
static void disk_that_refuses_is_tried_again(void **state)
{
    (void)state;
    to_pull();
    for (unsigned i = 0; i < 3; i++) {
        pulled(LEAT_OK);
        alone_deliver();
        store_says(i == 1 ? LEAT_E_DISK_FULL : LEAT_E_DISK, false);
        assert_said(i == 0   ? "end of 4 DISK\nnode log error: log 7/1/1\nmail to 0\n"
                    : i == 1 ? "end of 4 DISK_FULL\nmail to 0\n"
                             : "end of 4 DISK\nmail to 0\n");
        alone_deliver();
        assert_int_equal(repairs(), 1);
        later(LEAT_REPAIR_REFUSED_US - 1);
        assert_said("");
        later(1);
        assert_said("pull 7/1/1 segment 4 5000:7 of 2 nodes\n");
    }
    pulled(LEAT_OK);
    alone_deliver();
    store_says(LEAT_E_INVALID, true); /* the segment has no place of its own for the bytes */
    assert_said("end of 4 INVALID\nnode log error: log 7/1/1\nmail to 0\n");
    alone_deliver();
    assert_int_equal(repairs(), 0);
    end();
}

/* ---- nobody has it ---- */

/* Goal: only when all have said so for a while, and none is away. */
static void segment_that_nobody_has_is_given_up_after_a_while(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool away = i & 1, early = i & 2;
        to_pull();
        pulled(LEAT_E_NOT_FOUND);
        alone_deliver();
        assert_said("mail to 1\nmail to 0\n");
        alone_deliver();
        it.all_up = !away;
        later(LEAT_TAKEOVER_MISSING_US - early);
        pulled(LEAT_E_DAMAGED); /* a node whose copy is damaged has no copy */
        said_enough();
        alone_deliver();
        bool gives_up = !away && !early;
        assert_said(gives_up ? "node log error: log 7/1/1\ngive up 4\nmail to 0\n" : "mail to 0\n");
        alone_deliver();
        assert_int_equal(repairs(), !gives_up);
        if (!gives_up) {
            later((away ? LEAT_REPAIR_AWAY_US : LEAT_REPAIR_AGAIN_US) - 1);
            assert_said("");
            later(1);
            assert_said("pull 7/1/1 segment 4 5000:7 of 2 nodes\n");
        }
        end();
    }
}

/* Goal: nobody is told so of a log that has gone meanwhile. */
static void segment_of_a_log_that_has_gone_is_not_given_up(void **state)
{
    (void)state;
    to_pull();
    pulled(LEAT_E_NOT_FOUND);
    alone_deliver_all();
    later(LEAT_TAKEOVER_MISSING_US);
    pulled(LEAT_E_NOT_FOUND);
    it.there = false;
    said_enough();
    alone_deliver_all();
    assert_said("mail to 0\n");
    assert_int_equal(repairs(), 0);
    end();
}

/* Goal: a node that could not be asked restarts the time after which the segment is given up. */
static void nobody_has_it_only_where_all_could_be_asked(void **state)
{
    (void)state;
    static const leat_err said_rcs[] = {LEAT_E_NOT_FOUND, LEAT_E_CLOSED, LEAT_E_NOT_FOUND,
                                        LEAT_E_NOT_FOUND};
    to_pull();
    for (unsigned i = 0; i < 4; i++) {
        pulled(said_rcs[i]);
        said_enough();
        alone_deliver(), alone_deliver();
        assert_int_equal(repairs(), i < 3);
        if (i < 3) later(LEAT_TAKEOVER_MISSING_US);
    }
    end();
}

/* ---- one at a time ---- */

static void segments_are_repaired_one_after_the_other(void **state)
{
    (void)state;
    to_pull();
    asks();
    store_says(LEAT_E_NOT_FOUND, false);
    alone_deliver_all();
    assert_int_equal(repairs(), 2);
    later(TICK);
    assert_said(""); /* one is under way */
    pulled(LEAT_OK);
    alone_deliver();
    store_says(LEAT_OK, true);
    alone_deliver();
    assert_int_equal(repairs(), 1);
    assert_null(it.pulling); /* at a bounded rate */
    alone.now_us = alone.cores[0].repairs->next_us - 1;
    later(0);
    assert_said("");
    later(1);
    assert_said("pull 7/1/1 segment 4 5000:7 of 2 nodes\n");
    end();
}

static void nothing_is_fetched_before_it_may(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        if (i == 0) alone.cores[0].stopping = true;
        if (i == 1) alone.cores[0].data->replicate->backup = NULL;
        if (i == 2) it.pull = LEAT_E_AGAIN;
        asks();
        store_says(LEAT_E_NOT_FOUND, false);
        said_enough();
        if (i == 3) leat_mem_fail_at(1);
        alone_deliver();
        leat_mem_fail_at(0);
        assert_said(i == 2 ? "pull 7/1/1 segment 4 5000:7 of 2 nodes\n" : "");
        assert_null(alone.cores[0].repairs->going);
        assert_int_equal(repairs(), 1);
        alone.cores[0].stopping = false;
        alone.cores[0].data->replicate->backup = (void *)&it;
        it.pull = LEAT_OK;
        if (i >= 2) {
            later(LEAT_REPAIR_AGAIN_US - 1);
            assert_said("");
        }
        later(1);
        assert_said("pull 7/1/1 segment 4 5000:7 of 2 nodes\n");
        end();
    }
}

static void fetch_that_did_not_begin_is_freed_once(void **state)
{
    (void)state;
    begin();
    it.pull = LEAT_E_AGAIN;
    asks();
    store_says(LEAT_E_NOT_FOUND, false);
    alone_deliver_all();
    assert_int_equal(repairs(), 1);
    end(); /* with its core */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_memory_has_is_written_anew),
        cmocka_unit_test(other_nodes_are_asked_where_memory_has_it_not),
        cmocka_unit_test(what_memory_has_is_tried_again_on_a_disk_that_refuses),
        cmocka_unit_test(other_nodes_are_asked_once_memory_has_it_no_more),
        cmocka_unit_test(what_memory_has_waits_for_a_move),
        cmocka_unit_test(log_that_goes_is_not_repaired),
        cmocka_unit_test(log_that_may_move_is_repaired_later),
        cmocka_unit_test(repairs_take_turns),
        cmocka_unit_test(copy_is_written_over_it),
        cmocka_unit_test(copy_that_repaired_it_is_named),
        cmocka_unit_test(copies_are_fetched_at_a_bounded_rate),
        cmocka_unit_test(copy_for_a_log_that_has_gone_is_not_written),
        cmocka_unit_test(disk_that_refuses_is_tried_again),
        cmocka_unit_test(segment_that_nobody_has_is_given_up_after_a_while),
        cmocka_unit_test(segment_of_a_log_that_has_gone_is_not_given_up),
        cmocka_unit_test(nobody_has_it_only_where_all_could_be_asked),
        cmocka_unit_test(segments_are_repaired_one_after_the_other),
        cmocka_unit_test(nothing_is_fetched_before_it_may),
        cmocka_unit_test(fetch_that_did_not_begin_is_freed_once),
    };
    return cmocka_run_group_tests_name("broker repair", tests, NULL, NULL);
}
