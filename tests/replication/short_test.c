/* SPDX-License-Identifier: Apache-2.0 */
/* Short memory, and answers that can't be read: the state stays as it was, and the request is sent again. A primary
 * alone. */
#include "tests/replication/primary_rig.h"

/* Goal: each failed allocation is reported, and the next attempt succeeds. */
static void primary_without_memory_is_none(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    const struct leat_primary_options options = rig->primary->options;
    size_t before = leat_mem_bytes(LEAT_MEM_STORE);
    unsigned fails = 0;
    for (;; fails++) {
        struct leat_primary *primary = NULL;
        leat_mem_fail_at(fails + 1);
        leat_err rc = leat_primary_create(&options, &primary);
        leat_mem_fail_at(0);
        if (!rc) {
            leat_primary_destroy(&primary);
            break;
        }
        assert_int_equal(rc, LEAT_E_NO_MEMORY);
        assert_null(primary);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), before);
    }
    assert_int_equal(fails, 6);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), before);
    rig_free(rig);
}

/* Goal: a node for which there is no memory stays unknown until it is reported again. */
static void node_without_memory_is_told_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    struct leat_rep_node node = rig_node(1);
    unsigned fails = 0;
    for (; !rig_peer(rig, 1); fails++) {
        leat_mem_fail_at(fails + 1);
        leat_primary_node_set(rig->primary, &node);
        leat_mem_fail_at(0);
    }
    assert_int_equal(fails, 1 + 2 + 2 * 3 + 1);
    node = rig_node(2);
    node.name[0] = '\0'; /* for people its number stands for it */
    leat_primary_node_set(rig->primary, &node);
    assert_string_equal(rig_peer(rig, 2)->node.name, "1");
    assert_string_equal(rig_peer(rig, 1)->node.name, "n1");
    node.number = rig_number(1);
    leat_primary_node_set(rig->primary, &node);
    assert_string_equal(rig_peer(rig, 1)->node.name, "0"); /* also of one that was told of before */
    node = rig->primary->options.self;
    node.draining = true;
    leat_primary_node_set(rig->primary, &node); /* this one */
    assert_null(rig->primary->peers[RIG_SELF]);
    assert_true(rig->primary->options.self.draining);
    rig_free(rig);
}

/* Goal: a log for which there is no memory is none, and its segments are nobody's. */
static void log_without_memory_is_none(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    struct leat_primary_log_options options = rig_log_options(LEAT_DURABILITY_MEMORY, 2);
    struct leat_segment *segs[2];
    for (unsigned i = 0; i < 2; i++) {
        segs[i] = &rig->segs[i];
        *segs[i] = (struct leat_segment){.id = {i},
                                         .state = LEAT_SEGMENT_CLOSED,
                                         .capacity = RIG_CAPACITY,
                                         .prefix_id = {64, 1}};
    }
    unsigned fails = 0;
    for (;; fails++) {
        leat_mem_fail_at(fails + 1);
        leat_err rc = leat_primary_log_create(rig->primary, &options, segs, 2, &rig->log);
        leat_mem_fail_at(0);
        if (!rc) break;
        assert_int_equal(rc, LEAT_E_NO_MEMORY);
        assert_int_equal(rig->primary->log_count, 0);
        assert_null(segs[0]->copies_pointer);
        assert_null(rep_log_find(rig->primary, options.ref));
    }
    assert_int_equal(fails, 3);
    assert_ptr_equal(rep_log_find(rig->primary, options.ref), rig->log);
    struct leat_segment more = {.id = {7}, .state = LEAT_SEGMENT_CLOSED, .prefix_id = {64, 1}};
    leat_mem_fail_at(1);
    assert_int_equal(leat_primary_log_add(rig->log, &more), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_null(rep_set_find(rig->log, 7));
    assert_int_equal(leat_primary_log_add(rig->log, &more), LEAT_OK);
    assert_int_equal(rep_set_find(rig->log, 7)->state, REP_SET_CLOSED);
    rig_free(rig);
}

/* Goal: logs are found by each part of their name, also two in one bucket. */
static void logs_are_found_by_all_of_their_name(void **state)
{
    (void)state;
    enum { LOGS = 9000 }; /* more than there are buckets: many share one */
    struct rig *rig = rig_new(0);
    static struct leat_primary_log *logs[LOGS];
    struct leat_primary_log_options options = rig_log_options(LEAT_DURABILITY_MEMORY, 2);
    for (unsigned i = 0; i < LOGS; i++) {
        options.ref = (struct leat_log_ref){i % 30, i / 30 % 30, i / 900};
        assert_int_equal(leat_primary_log_create(rig->primary, &options, NULL, 0, &logs[i]),
                         LEAT_OK);
    }
    for (unsigned i = 0; i < LOGS; i += 3) /* in the middle of their buckets, too */
        leat_primary_log_destroy(&logs[i]);
    for (unsigned i = 0; i < LOGS; i++) {
        options.ref = (struct leat_log_ref){i % 30, i / 30 % 30, i / 900};
        assert_ptr_equal(rep_log_find(rig->primary, options.ref), logs[i]);
    }
    assert_int_equal(rig->primary->log_count, LOGS - LOGS / 3);
    for (unsigned i = 0; i < LOGS; i++)
        leat_primary_log_destroy(&logs[i]);
    assert_int_equal(rig->primary->log_count, 0);
    rig_free(rig);
}

/* Goal: work that can't begin for lack of memory begins a little later. A reserve for which the tables have no place is
 * refused, and does not reach the store: its records would be acked without any backup. */
static void step_without_memory_is_taken_later(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 3; n++) {
        struct rig *rig = rig_new(1);
        rig_log_new(rig, LEAT_DURABILITY_MEMORY, 2);
        struct leat_store_req *asked = calloc(1, sizeof *asked);
        *asked = (struct leat_store_req){
            .kind = LEAT_STORE_RESERVE, .capacity = RIG_CAPACITY, .on_done = rig_on_req};
        trace("%llu: ", (unsigned long long)n);
        leat_mem_fail_at(n); /* of the set, of the copy, of the request about it */
        rig->store_port.request(rig->store_port.ctx, &rig->post, asked);
        rig_mails(rig);
        leat_mem_fail_at(0);
        trace("and then\n");
        rig_pass(rig, 200 * 1000);
        rig_free(rig);
    }
    TRACE_IS("1: log RESERVE s0: NO_MEMORY\n"
             "and then\n"
             "2: store RESERVE s0 1/2/3 e5 v1 cap65536 d1\n"
             "and then\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "3: store RESERVE s0 1/2/3 e5 v1 cap65536 d1\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n"
             "and then\n");
}

/* Goal: a request to a copy for which there is no memory is sent a tick later, though nothing else happens to its
 * log. */
static void request_without_memory_is_made_later(void **state)
{
    (void)state;
    static const enum leat_store_req_kind kinds[] = {LEAT_STORE_CLOSE, LEAT_STORE_HIBERNATE,
                                                     LEAT_STORE_DROP};
    for (unsigned i = 0; i < 3; i++) {
        struct rig *rig = rig_new(1);
        rig->quiet = true;
        rig_log_new(rig, LEAT_DURABILITY_MEMORY, 2);
        rig_reserve(rig, 0);
        rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
        rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
        rig_commit(rig, 0, 0, 128);
        rig_wrote(rig, 1, LEAT_OK);
        while (!leat_list_empty(&rig->primary->ops_free))
            leat_mem_free(
                LEAT_CONTAINER(leat_list_pop_front(&rig->primary->ops_free), struct rep_op, link));
        trace_begin();
        rig->quiet = false;
        leat_mem_fail_at(1);
        rig_end(rig, kinds[i], 0, 128);
        leat_mem_fail_at(0);
        assert_int_equal(rig->call_count, 0);
        trace_begin();
        rig_pass(rig, 20 * 1000);
        if (kinds[i] == LEAT_STORE_CLOSE)
            TRACE_IS("n1 CLOSE s0 h10 v1 d1 128:128 to 1000/2000, 2 s\n");
        else if (kinds[i] == LEAT_STORE_HIBERNATE)
            TRACE_IS("n1 HIBERNATE s0 h10 v1 d1 128:128 to 1000/2000, 10 s\n");
        else
            TRACE_IS("n1 DROP s0 h10 v1 d1 to 1000/2000, 2 s\n");
        rig_free(rig);
    }
}

/* Goal: an answer that can't be read is none: what it was about is lost, or asked about again. */
static void answer_that_can_not_be_read_is_none(void **state)
{
    (void)state;
    static const struct {
        const uint8_t bytes[4];
        uint32_t count;
    } audits[] = {{{0x90}, 1}, {{0x91, 0x00}, 2}, {{0x92, 0x00}, 2}, {{0x92, 0x00, 0x91, 0x90}, 4}};
    struct rig *rig = rig_new(2);
    for (unsigned i = 0; i < 4; i++) {
        rep_audit_all(rig_peer(rig, 1));
        rig_pass(rig, 20 * 1000);
        rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, audits[i].bytes, audits[i].count);
        trace("audit %u: %s, %s\n", i,
              rig_peer(rig, 1)->audit_state == REP_AUDIT_ASKED ? "busy" : "over",
              rig_peer(rig, 1)->audit_all ? "all" : "told");
    }
    TRACE_IS("n1 AUDIT from0 all, 10 s\n"
             "audit 0: over, all\n"
             "n1 AUDIT from0 all, 10 s\n"
             "audit 1: over, all\n"
             "n1 AUDIT from0 all, 10 s\n"
             "audit 2: over, all\n"
             "n1 AUDIT from0 all, 10 s\n"
             "audit 3: over, told\n");
    rig_log_new(rig, LEAT_DURABILITY_DISK, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_bytes(rig, 1, LEAT_REP_OPEN, LEAT_OK, (const uint8_t *)"\x91\x01", 2);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    TRACE_IS("store RESERVE s0 1/2/3 e5 v1 cap65536 d2\n"
             "n1 OPEN s0 h0 v1 d2, 2 s\n"
             "n2 OPEN s0 h0 v1 d2, 2 s\n"
             "n1 OPEN s0 h0 v1 d2, 2 s\n");
    rig_pass(rig, 2 * 1000);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    trace_begin();
    rig_answer_bytes(rig, 1, LEAT_REP_FLUSH, LEAT_OK, (const uint8_t *)"\x90", 1); /* no rows */
    rig_answer_bytes(rig, 2, LEAT_REP_FLUSH, LEAT_OK, (const uint8_t *)"\xc1", 1);
    TRACE_IS("n1 OPEN s0 h0 v2 d2 part, 2 s\n"
             "store STAMP s0 v2 role0 writer100\n"
             "n2 OPEN s0 h0 v2 d2 part, 2 s\n");
    rig_free(rig);
}

/* Goal: OPENED has the lowest stamp of all copies, whichever copy has it. */
static void opened_with_what_the_least_copy_carries(void **state)
{
    (void)state;
    struct rig *rig = rig_new(3);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 4);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    for (unsigned i = 1; i <= 3; i++)
        rig_answer_at(rig, i, LEAT_REP_OPEN, 10 * i, 4096);
    rig_commit(rig, 0, 0, 128);
    struct rep_set *set = rep_set_find(rig->log, 0);
    rig->log->version = set->stamped = 9;
    for (unsigned i = 0; i < 3; i++)
        set->copies[i]->stamp = 9;
    assert_int_equal(leat_primary_opening(rig->log), 9);
    for (unsigned i = 0; i < 3; i++) {
        set->copies[i]->stamp = 5 + i;
        assert_int_equal(leat_primary_opening(rig->log), 5 + i);
        assert_int_equal(rig->log->known, 5 + i);
        set->copies[i]->incomplete = true; /* is none */
        assert_int_equal(leat_primary_opening(rig->log), 9);
        set->copies[i]->incomplete = false;
        set->copies[i]->stamp = 9;
    }
    set->stamped = 4;
    assert_int_equal(leat_primary_opening(rig->log), 4);
    set->state = REP_SET_RESERVED; /* holds nothing yet */
    assert_int_equal(leat_primary_opening(rig->log), 9);
    set->state = REP_SET_CLOSED;
    assert_int_equal(leat_primary_opening(rig->log), 9);
    rig_free(rig);
}

/* Goal: of several copies each copy alone can hold up a commit, and a generation. */
static void each_copy_holds_acks_up(void **state)
{
    (void)state;
    for (int level = LEAT_DURABILITY_MEMORY; level <= LEAT_DURABILITY_DISK; level++)
        for (unsigned late = 1; late <= 3; late++) {
            bool disk = level == LEAT_DURABILITY_DISK;
            struct rig *rig = rig_new(3);
            rig->quiet = true;
            rig_log_new(rig, (enum leat_durability)level, 4);
            rig_reserve(rig, 0);
            rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
            for (unsigned i = 1; i <= 3; i++)
                rig_answer_at(rig, i, LEAT_REP_OPEN, 10 * i, 4096);
            trace_begin();
            rig_commit(rig, 0, 0, 128);
            if (disk) rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
            for (unsigned i = 1; i <= 3; i++)
                if (i != late || disk) rig_wrote(rig, i, LEAT_OK);
            for (unsigned i = 1; i <= 3 && disk; i++)
                if (i != late) rig_answer_rows(rig, i, LEAT_REP_FLUSH, LEAT_OK);
            rig_pass(rig, 100 * 1000);
            TRACE_IS("");
            if (disk)
                rig_answer_rows(rig, late, LEAT_REP_FLUSH, LEAT_OK);
            else
                rig_wrote(rig, late, LEAT_OK);
            TRACE_IS("log COMMIT s0: OK\n");
            rig_free(rig);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(primary_without_memory_is_none),
        TRACE_TEST(node_without_memory_is_told_again),
        TRACE_TEST(log_without_memory_is_none),
        TRACE_TEST(logs_are_found_by_all_of_their_name),
        TRACE_TEST(step_without_memory_is_taken_later),
        TRACE_TEST(request_without_memory_is_made_later),
        TRACE_TEST(answer_that_can_not_be_read_is_none),
        TRACE_TEST(opened_with_what_the_least_copy_carries),
        TRACE_TEST(each_copy_holds_acks_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
