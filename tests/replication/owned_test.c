/* SPDX-License-Identifier: Apache-2.0 */
/* A primary, and a log of it, at their beginning. A primary alone. */
#include "tests/replication/case_rig.h"

#include "base/mem.h"

static struct leat_primary_log_options wanted;
static unsigned closed; /* segments that the log has */

/* No log is there, and nothing is to be done. */
static void begin(void)
{
    size_t used = trace_used;
    rig = rig_new(3);
    calm();
    for (unsigned i = 1; i <= 3; i++) {
        rig_peer(rig, i)->audited_us = 7;
        rig_peer(rig, i)->audit_from = 8;
        rig_peer(rig, i)->audit_all = false;
    }
    wanted = rig_log_options(LEAT_DURABILITY_DISK, 3);
    closed = 0;
    trace_text[trace_used = used] = '\0';
}

static void create(void)
{
    struct leat_segment *segs[RIG_SEGMENTS_MAX] = {NULL};
    for (unsigned i = 0; i < closed; i++) {
        segs[i] = &rig->segs[i];
        *segs[i] = (struct leat_segment){.id = {i + 1},
                                         .state = LEAT_SEGMENT_CLOSED,
                                         .capacity = RIG_CAPACITY,
                                         .prefix_id = {1000 + i, 1}};
    }
    owned = NULL;
    leat_err rc = leat_primary_log_create(rig->primary, &wanted, segs, closed, &owned);
    leat_mem_fail_at(0);
    trace("%s, %u logs", leat_err_name(rc), (unsigned)rig->primary->log_count);
    assert_ptr_equal(rep_log_find(rig->primary, wanted.ref), owned);
    if (owned)
        trace(", version %u known %u%s", owned->version, owned->known,
              owned->opened ? " opened" : "");
    for (unsigned i = 0; owned && i < closed; i++) {
        const struct rep_set *found = rep_set_find(owned, i + 1);
        trace(", s%u%s%s%s %u lost at %llu", i + 1,
              found->state != REP_SET_RESERVING ? " reserved" : "",
              rep_set_is_started(found) ? " started" : "",
              rep_set_is_closed(found) ? " closed" : "", found->target,
              (unsigned long long)found->lost_us);
        assert_ptr_equal(segs[i]->copies_pointer, found);
    }
    unsigned asked = 0;
    for (unsigned i = 1; i <= 3; i++) {
        const struct rep_peer *peer = rig_peer(rig, i);
        asked += peer->audit_all && !peer->audited_us && !peer->audit_from;
    }
    trace(", %u asked, %u mails", asked, rig->mail_count);
    armed_trace();
}

/* Goal: a log's version is held by the coordinators only when they have been told it; its segments' copies are asked
 * for, and it is looked at again. */
static void log_begins_with_what_is_known_of_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begin, create);
    CASE(begin, create, wanted.version = 0);
    CASE(begin, create, wanted.version = 7);
    CASE(begin, create, wanted.opened = true);
    CASE(begin, create, wanted.opened = true, wanted.version = 7);
    CASE(begin, create, closed = 1);
    CASE(begin, create, closed = 2);
    CASE(begin, create, leat_mem_fail_at(1));
    CASE(begin, create, closed = 2, leat_mem_fail_at(2));
    CASE(begin, create, closed = 2, leat_mem_fail_at(3));
    TRACE_IS(
        "(void)0: OK, 1 logs, version 1 known 1, 0 asked, 0 mails, again in 20000 us\n"
        "wanted.version = 0: OK, 1 logs, version 1 known 1, 0 asked, 0 mails, again in 20000 us\n"
        "wanted.version = 7: OK, 1 logs, version 7 known 7, 0 asked, 0 mails, again in 20000 us\n"
        "wanted.opened = true: OK, 1 logs, version 1 known 1 opened, 0 asked, 0 mails, again in "
        "20000 us\n"
        "wanted.opened = true, wanted.version = 7: OK, 1 logs, version 7 known 7 opened, 0 asked, "
        "0 mails, again in 20000 us\n"
        "closed = 1: OK, 1 logs, version 1 known 1, s1 reserved started closed 1000 lost at "
        "1001000, 3 asked, 1 mails, again in 20000 us\n"
        "closed = 2: OK, 1 logs, version 1 known 1, s1 reserved started closed 1000 lost at "
        "1001000, s2 reserved started closed 1001 lost at 1001000, 3 asked, 1 mails, again in "
        "20000 us\n"
        "leat_mem_fail_at(1): NO_MEMORY, 0 logs, 0 asked, 0 mails\n"
        "closed = 2, leat_mem_fail_at(2): NO_MEMORY, 0 logs, 0 asked, 0 mails\n"
        "closed = 2, leat_mem_fail_at(3): NO_MEMORY, 0 logs, 0 asked, 1 mails\n");
}

/* Goal: a primary without memory for its tables is not made, and leaves nothing behind. */
static void primary_without_memory_is_none(void **state)
{
    (void)state;
    begin();
    const struct leat_primary_options options = rig->primary->options;
    size_t before = leat_mem_bytes(LEAT_MEM_STORE);
    unsigned fails = 0;
    for (;; fails++) {
        struct leat_primary *primary = NULL;
        leat_mem_fail_at(fails + 1);
        leat_err rc = leat_primary_create(&options, &primary);
        leat_mem_fail_at(0);
        if (!rc) {
            assert_int_not_equal(primary->places, 0); /* as no segment was looked at with */
            leat_primary_destroy(&primary);
            break;
        }
        assert_int_equal(rc, LEAT_E_NO_MEMORY);
        assert_null(primary);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), before);
    }
    assert_int_equal(fails, 6);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), before);
}

static void on_idle(void *arg)
{
    (*(unsigned *)arg)++;
}

/* Goal: a log that is given up learns so once. */
static void log_that_is_given_up_is_told_once(void **state)
{
    (void)state;
    begin();
    create();
    unsigned told = 0;
    leat_primary_log_release(owned, on_idle, &told);
    assert_int_equal(told, 0);
    for (unsigned i = 0; i < 3; i++)
        rep_log_step(owned);
    assert_int_equal(told, 1);
}

/* Goal: each word of a node counts for how long it has been silent. */
static void node_that_is_heard_is_not_silent(void **state)
{
    (void)state;
    begin();
    struct rep_peer *peer = rig_peer(rig, 1);
    rig->now_us += 1234;
    peer->missed = 2;
    rep_peer_heard(peer);
    assert_int_equal(peer->heard_us, rig->now_us);
    assert_int_equal(peer->missed, 0);
}

/* ---- copies ---- */

static void plain(void)
{
    trace("%splain\n", rep_copy_is_plain(copy) ? "" : "not ");
}

/* Goal: only a copy of which nothing but bytes and acks is wanted is written to ahead of what is asked for. */
static void copy_is_plain_where_nothing_else_is_wanted(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, plain);
    CASE(begun, plain, copy->set = NULL);
    CASE(begun, plain, copy->state = REP_COPY_OPENING);
    CASE(begun, plain, copy->incomplete = true);
    CASE(begun, plain, copy->counted = false);
    CASE(begun, plain, copy->stamp++);
    CASE(begun, plain, set->state = REP_SET_CLOSED);
    CASE(begun, plain, set->dropping = true);
    CASE(begun, plain, set->state = REP_SET_HIBERNATING);
    CASE(begun, plain, set->evict = (struct leat_store_req *)(void *)set);
    CASE(begun, plain, owned->options.durability = LEAT_DURABILITY_DISK);
    TRACE_IS("(void)0: plain\n"
             "copy->set = NULL: not plain\n"
             "copy->state = REP_COPY_OPENING: not plain\n"
             "copy->incomplete = true: not plain\n"
             "copy->counted = false: not plain\n"
             "copy->stamp++: not plain\n"
             "set->state = REP_SET_CLOSED: not plain\n"
             "set->dropping = true: not plain\n"
             "set->state = REP_SET_HIBERNATING: not plain\n"
             "set->evict = (struct leat_store_req *)(void *)set: not plain\n"
             "owned->options.durability = LEAT_DURABILITY_DISK: not plain\n");
}

static void lost(void)
{
    begun();
    rep_copy_remove(copy);
    while (!leat_list_empty(&rig->primary->ops_free)) /* the next request takes memory */
        leat_mem_free(
            LEAT_CONTAINER(leat_list_pop_front(&rig->primary->ops_free), struct rep_op, link));
    calm();
}

static void place(void)
{
    rep_set_step(set);
    leat_mem_fail_at(0);
    trace("%u copies", set->copy_count);
    armed_trace();
}

/* Goal: a copy for which there is no memory is made later. */
static void copy_without_memory_is_made_later(void **state)
{
    (void)state;
    CASE_AS_IT_IS(lost, place);
    CASE(lost, place, leat_mem_fail_at(1));
    CASE(lost, place, leat_mem_fail_at(2));
    TRACE_IS("(void)0: n1 OPEN s0 h0 v1 d1 part, 2 s\n"
             "2 copies, again in 20000 us\n"
             "leat_mem_fail_at(1): 1 copies, again in 20000 us\n"
             "leat_mem_fail_at(2): 1 copies, again in 20000 us\n");
}

/* Goal: each answer tells how full its backup is; a refusal does not. */
static void answer_is_its_backups(void **state)
{
    (void)state;
    begun();
    uint8_t control[REP_BODY_BYTES_MAX];
    const struct rep_answer answer = {.handle = 20, .place = 8192, .load_bytes = 77};
    rig_peer(rig, 1)->load_bytes = rig_peer(rig, 2)->load_bytes = 5;
    rig->quiet = true;
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_mails(rig);
    rig_refuse(rig, 1, LEAT_REP_CLOSE, LEAT_E_DAMAGED);
    rig_answer_bytes(rig, 2, LEAT_REP_CLOSE, LEAT_OK, control, rep_answer_encode(&answer, control));
    assert_int_equal(rig_peer(rig, 1)->load_bytes, 5);
    assert_int_equal(rig_peer(rig, 2)->load_bytes, 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(log_begins_with_what_is_known_of_it),
        TRACE_TEST(copy_is_plain_where_nothing_else_is_wanted),
        TRACE_TEST(copy_without_memory_is_made_later),
        TRACE_TEST(answer_is_its_backups),
        TRACE_TEST(primary_without_memory_is_none),
        TRACE_TEST(log_that_is_given_up_is_told_once),
        TRACE_TEST(node_that_is_heard_is_not_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
