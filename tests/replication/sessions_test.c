/* SPDX-License-Identifier: Apache-2.0 */
/* How a session with a backup begins and ends, message by message, and which backup is left: a primary alone, whose
 * whole world is the trace. */
#include "tests/replication/primary_rig.h"

static void peer_trace(const struct rig *rig, unsigned node)
{
    struct leat_rep_peer_status rows[8];
    size_t count = leat_primary_peers(rig->primary, rows, 8);
    for (size_t i = 0; i < count; i++) {
        if (rows[i].node != rig_number(node)) continue;
        trace("n%u:%s%s%s \"%s\" load %llu open %u\n", node, rows[i].up ? " up" : "",
              rows[i].attached ? " attached" : "", rows[i].says_gone ? " says gone" : "",
              rows[i].transport, (unsigned long long)rows[i].load_bytes, rows[i].replicas);
    }
}

/* Goal: a session begins with a grant of memory, and an audit; who refuses is asked again after 200 ms, and counts for
 * nothing until then. */
static void session_begins_with_a_grant(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    struct leat_rep_node node = rig_node(1);
    rig_peer_up(rig, 1); /* not heard of */
    leat_primary_node_set(rig->primary, &node);
    peer_trace(rig, 1);
    rig_peer_up(rig, 1);
    rig_peer_up(rig, 1);
    peer_trace(rig, 1);
    TRACE_IS("n1: \"\" load 0 open 0\n"
             "n1 ATTACH, 10 s\n"
             "n1: up \"\" load 0 open 0\n");
    rig_refuse(rig, 1, LEAT_REP_ATTACH, LEAT_E_STALE_EPOCH);
    peer_trace(rig, 1);
    rig_pass(rig, 199 * 1000);
    TRACE_IS("n1: up says gone \"\" load 0 open 0\n");
    rig_pass(rig, 2 * 1000);
    rig->attach_rc = LEAT_E_UNSUPPORTED;
    rig_grant(rig, 1);
    rig->attach_rc = LEAT_OK;
    peer_trace(rig, 1);
    TRACE_IS("n1 ATTACH, 10 s\n"
             "attach n1 grant1\n"
             "n1: up \"\" load 0 open 0\n");
    rig_pass(rig, 220 * 1000);
    rig_answer_bytes(rig, 1, LEAT_REP_ATTACH, LEAT_OK, (const uint8_t *)"\x90", 1);
    TRACE_IS("n1 ATTACH, 10 s\n");
    rig_pass(rig, 220 * 1000);
    uint8_t control[REP_ATTACHED_BYTES_MAX];
    struct rep_attached attached = {.grant = {.bytes = 1, .data = {'1'}}, .load_bytes = 77};
    rig_answer_bytes(rig, 1, LEAT_REP_ATTACH, LEAT_OK, control,
                     rep_attached_encode(&attached, control));
    assert_int_equal(rig_peer(rig, 1)->load_bytes, 77); /* as it has just said */
    assert_int_equal(rep_nodes_up(rig->primary), 1);
    assert_int_equal(leat_primary_transports(rig->primary), 0);
    rig_attached(rig, 1);
    assert_int_equal(rep_nodes_up(rig->primary), 2);
    peer_trace(rig, 1);
    rig_pass(rig, 1000);
    TRACE_IS("n1 ATTACH, 10 s\n"
             "attach n1 grant1\n"
             "n1: up attached \"shm\" load 77 open 0\n"
             "n1 AUDIT from0 all, 10 s\n");
    leat_primary_peer_refused(rig->primary, rig_number(1), LEAT_E_STALE_EPOCH);
    peer_trace(rig, 1); /* it is here all the same */
    TRACE_IS("n1: up attached \"shm\" load 77 open 0\n");
    assert_int_equal(rig->primary->accounts.other_rpcs, 2);
    assert_int_equal(leat_primary_transports(rig->primary), 1u << LEAT_RMEM_SHM);
    rig_free(rig);
}

/* Goal: a request that can't leave, because its link is full or gone, is sent again. */
static void call_that_can_not_leave_is_made_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    struct leat_rep_node node = rig_node(2);
    leat_primary_node_set(rig->primary, &node);
    rig->call_rc = LEAT_E_AGAIN;
    rig_peer_up(rig, 2);
    rig_log_new(rig, LEAT_DURABILITY_DISK, 2);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_pass(rig, 100 * 1000);
    TRACE_IS("store RESERVE s0 1/2/3 e5 v1 cap65536 d2\n");
    rig->call_rc = LEAT_OK;
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 OPEN s0 h0 v1 d2, 2 s\n");
    rig_pass(rig, 100 * 1000);
    TRACE_IS("n2 ATTACH, 10 s\n");
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_commit(rig, 0, 0, 128);
    rig->call_rc = LEAT_E_AGAIN;
    rig_wrote(rig, 1, LEAT_OK);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_pass(rig, 100 * 1000);
    TRACE_IS("log RESERVE s0: OK\n"
             "store COMMIT s0 0..128\n"
             "n1 write @4096+128 from s0+0\n");
    rig->call_rc = LEAT_OK;
    rig_pass(rig, 20 * 1000); /* nothing else happens to the log */
    TRACE_IS("n1 FLUSH h10=128, 10 s\n");
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    TRACE_IS("log COMMIT s0: OK\n");
    rig_free(rig);
}

/* Goal: a node's replicas are asked for as soon as its link has room: until then its closed copies count for
 * nothing. */
static void audit_that_can_not_leave_is_made_again(void **state)
{
    (void)state;
    struct rig *rig = rig_new(0);
    struct leat_rep_node node = rig_node(1);
    leat_primary_node_set(rig->primary, &node);
    rig_peer_up(rig, 1);
    rig_grant(rig, 1);
    rig->call_rc = LEAT_E_AGAIN;
    rig_attached(rig, 1);
    rig_pass(rig, 100 * 1000);
    rig->call_rc = LEAT_OK;
    trace_begin();
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 AUDIT from0 all, 10 s\n");
    rep_audit_all(rig_peer(rig, 1)); /* not while it is asked already */
    rig_pass(rig, 1000 * 1000);
    TRACE_IS("");
    rig_audits_answer(rig);
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 AUDIT from0 all, 10 s\n");
    rig_audits_answer(rig);
    rep_audit_all(rig_peer(rig, 1));
    rig_peer(rig, 1)->audit_state = REP_AUDIT_SETTLING; /* nor while it is told what to keep */
    rig_pass(rig, 1000 * 1000);
    TRACE_IS("");
    rig_free(rig);
}

/* Goal: a session that ends also ends its requests, and the next session starts from the beginning. */
static void session_that_ends_takes_its_requests_along(void **state)
{
    (void)state;
    struct rig *rig = rig_new(2);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    trace_begin();
    rig_peer_down(rig, 1);
    peer_trace(rig, 1);
    TRACE_IS("detach n1\n"
             "log RESERVE s0: OK\n"
             "n1: \"\" load 0 open 0\n");
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096); /* of before */
    TRACE_IS("");
    assert_int_equal(rep_set_find(rig->log, 0)->copy_count, 1);
    rig_node_up(rig, 1);
    TRACE_IS("n1 ATTACH, 10 s\n"
             "attach n1 grant1\n"
             "room\n"
             "n1 OPEN s0 h0 v1 d1, 2 s\n");
    struct leat_rep_node again = rig_node(1);
    again.incarnation++;
    leat_primary_node_set(rig->primary, &again); /* the process was started anew */
    rig_mails(rig);
    TRACE_IS("detach n1\n");
    rig_pass(rig, 220 * 1000);
    TRACE_IS("n1 ATTACH, 10 s\n");
    rig_peer_down(rig, 1);
    rig_grant(rig, 1); /* the answer to a session that is over */
    rig_pass(rig, 1000 * 1000);
    TRACE_IS("");
    leat_primary_peer_refused(rig->primary, rig_number(1), LEAT_E_STALE_EPOCH);
    peer_trace(rig, 1);
    leat_primary_peer_refused(rig->primary, rig_number(7), LEAT_E_STALE_EPOCH);
    rig_peer_down(rig, 7);
    TRACE_IS("n1: says gone \"\" load 0 open 0\n");
    rig_free(rig);
}

/* Goal: an audit's answer has no effect after its session has ended; an audit that was asked for in the ended session
 * is asked for again. */
static void answer_of_a_session_that_is_over_says_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_new(1);
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 2);
    struct rep_row row = {
        .handle = 7, .log = {1, 2, 3}, .segment = {9}, .epoch = {3}, .state = LEAT_SEGMENT_CLOSED};
    uint8_t control[128];
    struct leat_msg_writer writer;
    for (unsigned over = 0; over < 2; over++) {
        rep_audit_all(rig_peer(rig, 1));
        rig_pass(rig, 20 * 1000);
        trace_begin();
        if (over) rig_peer_down(rig, 1);
        leat_msg_writer_init(&writer, control, sizeof control);
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, 0);
        leat_msg_write_array(&writer, 1);
        rep_row_write(&writer, &row);
        rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
        if (over)
            TRACE_IS("detach n1\n");
        else
            TRACE_IS("n1 SETTLE h7=DROP/e5/p0, 10 s\n");
        if (!over) rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, (const uint8_t *)"\x90", 1);
    }
    rig_free(rig);
}

/* Goal: a SETTLE that did not arrive, or could not leave, is repeated: the whole audit is asked for once more. */
static void settlement_that_is_lost_is_made_again(void **state)
{
    (void)state;
    static const uint8_t rubbish[] = {0xc1};
    for (unsigned way = 0; way < 3; way++) {
        struct rig *rig = rig_new(1);
        rig_log_new(rig, LEAT_DURABILITY_MEMORY, 2);
        struct rep_row row = {.handle = 7,
                              .log = {1, 2, 3},
                              .segment = {9},
                              .epoch = {3},
                              .state = LEAT_SEGMENT_OPEN};
        uint8_t control[128];
        struct leat_msg_writer writer;
        rep_audit_all(rig_peer(rig, 1));
        rig_pass(rig, 20 * 1000);
        leat_msg_writer_init(&writer, control, sizeof control);
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, 0);
        leat_msg_write_array(&writer, 1);
        rep_row_write(&writer, &row);
        rig_peer(rig, 1)->cut = way == 1; /* what was written in a session before may land */
        if (way == 2) rig->call_rc = LEAT_E_AGAIN;
        trace_begin();
        rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
        rig->call_rc = LEAT_OK;
        if (way == 0) rig_refuse(rig, 1, LEAT_REP_SETTLE, LEAT_E_TIMEOUT);
        if (way == 1) rig_answer_bytes(rig, 1, LEAT_REP_SETTLE, LEAT_OK, rubbish, 1);
        rig_pass(rig, 20 * 1000);
        if (way == 0)
            TRACE_IS("n1 SETTLE h7=DROP/e5/p0, 10 s\n"
                     "n1 AUDIT from0 all, 10 s\n");
        else if (way == 1)
            TRACE_IS("n1 SETTLE h7=LEAVE/e5/p0, 10 s\n"
                     "n1 AUDIT from0 all, 10 s\n");
        else
            TRACE_IS("n1 AUDIT from0 all, 10 s\n");
        rig_free(rig);
    }
}

/* ---- silent ones ---- */

static struct rig *rig_written(unsigned nodes, uint64_t quiet_us)
{
    struct rig *rig = rig_new(nodes);
    rig->primary->options.quiet_us = quiet_us;
    rig_log_new(rig, LEAT_DURABILITY_DISK, nodes + 1);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    for (unsigned i = 1; i <= nodes; i++)
        rig_answer_at(rig, i, LEAT_REP_OPEN, 10 * i, 4096);
    rig_commit(rig, 0, 0, 128);
    for (unsigned i = 1; i <= nodes; i++)
        rig_wrote(rig, i, LEAT_OK);
    trace_begin();
    return rig;
}

static void asks_answer(struct rig *rig, unsigned node)
{
    for (unsigned i = 0; i < rig->call_count; i++)
        if (rig->calls[i].node == node && rig->calls[i].call->kind == LEAT_REP_ASK) {
            rig_answer_bytes(rig, node, LEAT_REP_ASK, LEAT_OK, (const uint8_t *)"\x90", 1);
            return;
        }
}

/* Goal: all backups are asked when a backup has owed an answer for 10 ms. A backup that has missed four rounds that
 * other backups answered, and that has been silent for the permitted time, is given up; no other backup is. */
static void backup_that_is_silent_while_others_answer_is_left(void **state)
{
    (void)state;
    struct rig *rig = rig_written(3, 100 * 1000);
    struct leat_rep_node other = rig_node(4); /* it is known, and has no session: nobody asks it */
    leat_primary_node_set(rig->primary, &other);
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    rig_answer_rows(rig, 3, LEAT_REP_FLUSH, LEAT_OK);
    TRACE_IS("");
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "n3 ASK, 2 s\n");
    for (unsigned i = 0; i < 4; i++) { /* the first is the one in which it was asked itself */
        asks_answer(rig, 2);
        asks_answer(rig, 3);
        rig_pass(rig, 20 * 1000);
    }
    TRACE_IS("n2 ASK, 2 s\n"
             "n3 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "n3 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "n3 ASK, 2 s\n"
             "n2 ASK, 2 s\n"
             "n3 ASK, 2 s\n");
    assert_int_equal(rig_peer(rig, 1)->missed, 3);
    rig_pass(rig, 100 * 1000); /* long enough, and too few rounds */
    TRACE_IS("");
    asks_answer(rig, 2);
    assert_int_equal(rig_peer(rig, 1)->missed, 4);
    rig_pass(rig, 20 * 1000);
    TRACE_IS("cut n1\n"
             "detach n1\n"
             "n2 ASK, 2 s\n"
             "store STAMP s0 v2 role0 writer100\n"
             "n2 RESTAMP h20=2, 2 s\n"
             "n3 RESTAMP h30=2, 2 s\n");
    /* Who comes back at once was there all the time, and is given longer: what it was silent for. */
    uint64_t silent_us = rig_peer(rig, 1)->left_after_us;
    assert_in_range(silent_us, 100 * 1000, 400 * 1000);
    rig_pass(rig, 300 * 1000);
    rig_grant(rig, 1);
    rig_attached(rig, 1);
    assert_int_equal(rig_peer(rig, 1)->took_us, silent_us);
    assert_int_equal(rig_peer(rig, 1)->heard_us, rig->now_us);
    assert_int_equal(rig_peer(rig, 1)->missed, 0);
    assert_int_equal(rig_peer(rig, 1)->left_us, 0);
    rig_free(rig);
}

/* Goal: where nobody answers nobody is left; where an answer comes the silence is over; who was slow of late is given
 * longer. */
static void backup_that_answers_is_not_left(void **state)
{
    (void)state;
    struct rig *rig = rig_written(2, 100 * 1000);
    rig_pass(rig, 1000 * 1000);
    TRACE_IS("n1 ASK, 2 s\n"
             "n2 ASK, 2 s\n");
    rig_refuse(rig, 2, LEAT_REP_ASK, LEAT_E_TIMEOUT);     /* none at all */
    rig_refuse(rig, 1, LEAT_REP_ASK, LEAT_E_UNSUPPORTED); /* one as any other */
    assert_int_equal(rig_peer(rig, 1)->missed, 0);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    assert_int_equal(rig_peer(rig, 2)->missed, 0); /* both were asked at that time */
    for (unsigned i = 0; i < 10; i++) {
        rig_pass(rig, 20 * 1000);
        asks_answer(rig, 1);
    }
    assert_int_equal(rig_peer(rig, 2)->state, REP_PEER_UP); /* it alone has said nothing */
    assert_int_equal(rig_peer(rig, 1)->state, REP_PEER_ATTACHED);
    rig_free(rig);
    rig = rig_written(2, 100 * 1000);
    rig_pass(rig, 300 * 1000);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH,
                    LEAT_OK); /* took 300 ms: three times that is given now */
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_commit(rig, 0, 128, 192);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    asks_answer(rig, 1);
    asks_answer(rig, 2);
    unsigned ms = 0;
    for (; rig_peer(rig, 1)->state == REP_PEER_ATTACHED && ms < 3000; ms += 20) {
        rig_pass(rig, 20 * 1000);
        asks_answer(rig, 2);
    }
    trace_begin();
    trace("left after %u ms\n", ms);
    TRACE_IS("left after 900 ms\n");
    rig_free(rig);
}

/* Goal: a backup that has not taken a write for two seconds is left, and one at a time. */
static void backup_that_takes_no_writes_is_left(void **state)
{
    (void)state;
    struct rig *rig = rig_written(2, 0);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_commit(rig, 0, 128, 192);
    trace_begin();
    rig_pass(rig, 1999 * 1000);
    TRACE_IS("");
    rig_pass(rig, 2 * 1000);
    TRACE_IS("cut n1\n"
             "detach n1\n"
             "store STAMP s0 v2 role0 writer100\n"
             "n2 RESTAMP h20=2, 2 s\n");
    rig_pass(rig, 20 * 1000);
    TRACE_IS("cut n2\n"
             "detach n2\n");
    rig_free(rig);
}

/* Goal: a write that did not end with its session makes no later session slow; a write of that session does. */
static void old_writes_do_not_end_the_next_session(void **state)
{
    (void)state;
    struct rig *rig = rig_written(2, 0);
    rig_answer_rows(rig, 1, LEAT_REP_FLUSH, LEAT_OK);
    rig_answer_rows(rig, 2, LEAT_REP_FLUSH, LEAT_OK);
    rig_stored(rig, LEAT_STORE_COMMIT, LEAT_OK);
    rig_commit(rig, 0, 128, 192);
    rig_wrote(rig, 2, LEAT_OK);
    rig_pass(rig, 2001 * 1000);
    assert_int_equal(rig_peer(rig, 1)->state, REP_PEER_UP); /* left */
    assert_false(leat_list_empty(&rig_peer(rig, 1)->writes));
    rig_pass(rig, 220 * 1000);
    rig_grant(rig, 1);
    rig_attached(rig, 1);
    trace_begin();
    for (unsigned ms = 0; ms < 3000; ms += 20)
        assert_null(rep_silence_shed(rig->primary, rig->now_us += 20 * 1000));
    TRACE_IS("");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(session_begins_with_a_grant),
        TRACE_TEST(call_that_can_not_leave_is_made_again),
        TRACE_TEST(audit_that_can_not_leave_is_made_again),
        TRACE_TEST(session_that_ends_takes_its_requests_along),
        TRACE_TEST(answer_of_a_session_that_is_over_says_nothing),
        TRACE_TEST(settlement_that_is_lost_is_made_again),
        TRACE_TEST(backup_that_is_silent_while_others_answer_is_left),
        TRACE_TEST(backup_that_answers_is_not_left),
        TRACE_TEST(backup_that_takes_no_writes_is_left),
        TRACE_TEST(old_writes_do_not_end_the_next_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
