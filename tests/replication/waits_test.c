/* SPDX-License-Identifier: Apache-2.0 */
/* Work that has to wait, its reason, and the beginning of the wait: drops during other requests, a silent backup,
 * requests without a copy. A primary alone. */
#include "tests/replication/case_rig.h"

static struct rep_op *op_of(enum leat_rep_kind kind)
{
    static struct rep_op op;
    op.call.kind = (uint16_t)kind;
    return &op;
}

static void dropped(void)
{
    rig_end(rig, LEAT_STORE_DROP, 0, 128);
    trace("-> %u copies\n", set->copy_count);
}

/* Goal: the memory of a copy serves another as soon as it is dropped: not while anything of it is under way. */
static void drop_waits_for_what_is_under_way(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, dropped);
    CASE(begun, dropped, copy->writes = 1);
    CASE(begun, dropped, copy->batched = true);
    CASE(begun, dropped, copy->op = op_of(LEAT_REP_HIBERNATE));
    CASE(begun, dropped, leat_list_push_back(&copy->peer->flush.waiting, &copy->in_batch));
    CASE(begun, dropped, copy->state = REP_COPY_OPENING);
    CASE(begun, dropped, copy->peer->session++);
    TRACE_IS("(void)0: n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "n1 DROP s0 h10 v1 d1 to 1000/2000, 2 s\n"
             "-> 2 copies\n"
             "copy->writes = 1: n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "-> 2 copies\n"
             "copy->batched = true: n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "-> 2 copies\n"
             "copy->op = op_of(LEAT_REP_HIBERNATE): n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "-> 2 copies\n"
             "leat_list_push_back(&copy->peer->flush.waiting, &copy->in_batch): n2 DROP s0 h20 v1 "
             "d1 to 1000/2000, 2 s\n"
             "n1 FLUSH h10=128, 10 s\n"
             "-> 2 copies\n"
             "copy->state = REP_COPY_OPENING: n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "-> 1 copies\n"
             "copy->peer->session++: n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
             "-> 1 copies\n");
}

static struct rep_peer *peer;

static void all_are_heard(void)
{
    begun();
    calm();
    rig->primary->options.quiet_us = 100;
    rig->now_us += 1000 * 1000;
    for (unsigned i = 1; i <= 3; i++) {
        rig_peer(rig, i)->heard_us = rig_peer(rig, i)->wrote_us = 0;
        rig_peer(rig, i)->took_us = 0;
        rig_peer(rig, i)->ops = 0;
        rig_peer(rig, i)->asking = rig_peer(rig, i)->flush.busy = false;
    }
    peer = rig_peer(rig, 1);
    peer->missed = 4;
}

static void shed(void)
{
    const struct rep_peer *left = rep_silence_shed(rig->primary, rig->now_us);
    trace("-> %s\n", left ? left->node.name : "none");
}

static void owes(unsigned which, uint64_t us)
{
    uint64_t at_us = rig->now_us - us;
    if (which == 0) peer->ops = 1, peer->ops_us = at_us;
    if (which == 1) peer->restamp.busy = true, peer->restamp.sent_us = at_us;
    if (which == 2) peer->flush.busy = true, peer->flush.sent_us = at_us;
    if (which == 3) peer->asking = true, peer->asked_us = at_us;
}

/* Goal: a backup counts as silent since the oldest request that it has not answered, whichever request that is. */
static void silence_counts_from_the_oldest_request(void **state)
{
    (void)state;
    CASE_AS_IT_IS(all_are_heard, shed);
    CASE(all_are_heard, shed, owes(0, 99));
    TRACE_IS("(void)0: -> none\n"
             "owes(0, 99): -> none\n");
    for (unsigned a = 0; a < 4; a++)
        for (unsigned b = 0; b < 4; b++) {
            all_are_heard();
            owes(b, 50);
            owes(a, 100);
            shed();
            if (a == 0 && b == 0)
                trace_begin();
            else
                TRACE_IS("cut n1\n"
                         "-> n1\n");
        }
}

/* Goal: how long a write took counts from when the backup was heard of last, by an answer or by a write. */
static void write_takes_time_from_what_was_heard_last(void **state)
{
    (void)state;
    for (unsigned answered = 0; answered < 2; answered++) {
        begun();
        rig->quiet = true;
        rig_commit(rig, 0, 128, 256);
        peer = rig_peer(rig, 1);
        peer->took_us = 0;
        peer->heard_us = rig->now_us + (answered ? 30 : 10);
        peer->wrote_us = rig->now_us + (answered ? 10 : 30);
        rig->now_us += 100;
        rep_peer_wrote(peer);
        assert_int_equal(peer->took_us, 70);
        assert_int_equal(peer->wrote_us, rig->now_us);
    }
    trace_begin();
}

static void goes_down(void)
{
    rig_peer_down(rig, 1);
    unsigned idle = 0;
    LEAT_LIST_EACH(&rig->primary->ops_free, it)
    idle++;
    trace("-> %u wait, %u are free, %u copies\n", !leat_list_empty(&rig_peer(rig, 1)->ops_waiting),
          idle, set->copy_count);
}

static void asked_without_room(void)
{
    begun();
    calm();
    rig->call_rc = LEAT_E_AGAIN;
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
}

/* One is at hand. */
static void spare_op(void)
{
    leat_list_push_back(&rig->primary->ops_free, &rep_op_get(rig->primary)->link);
}

/* Goal: requests that wait for room go with the session, also one whose copy has gone before. */
static void requests_that_wait_go_with_the_session(void **state)
{
    (void)state;
    CASE_AS_IT_IS(asked_without_room, goes_down);
    CASE(asked_without_room, goes_down, spare_op());
    CASE(asked_without_room, goes_down, rep_copy_remove(copy));
    TRACE_IS("store HIBERNATE s0\n"
             "(void)0: detach n1\n"
             "-> 0 wait, 1 are free, 1 copies\n"
             "store HIBERNATE s0\n"
             "spare_op(): detach n1\n"
             "-> 0 wait, 2 are free, 1 copies\n"
             "store HIBERNATE s0\n"
             "rep_copy_remove(copy): detach n1\n"
             "-> 0 wait, 1 are free, 1 copies\n");
}

/* Segment 1 is to be opened, and its backups have done so. */
static void opened_elsewhere(void)
{
    begun();
    rig->quiet = true;
    rig_reserve(rig, 1);
    set = rep_set_find(rig->log, 1);
    for (unsigned i = 0; i < set->copy_count; i++)
        rig_answer_at(rig, rig_node_of(set->copies[i]->peer->node.number), LEAT_REP_OPEN, 30 + i,
                      16384);
}

/* Goal: RESERVE fails where the own store refuses, also when all other nodes have opened their copies; after a success
 * the store is not asked again. */
static void reserve_waits_for_the_store(void **state)
{
    (void)state;
    opened_elsewhere();
    assert_int_equal(set->copy_count, 2);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    TRACE_IS("log RESERVE s1: OK\n");
    assert_int_equal(set->local_state, REP_LOCAL_IDLE);
    opened_elsewhere();
    rig->quiet = false;
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_E_DISK);
    TRACE_IS("n2 DROP s1 h31 v1 d1, 2 s\n"
             "n1 DROP s1 h30 v1 d1, 2 s\n");
}

/* Goal: acks wait for the own copy's version, too. */
static void commit_waits_for_the_own_version(void **state)
{
    (void)state;
    begun();
    owned->need = owned->known = owned->version = 2;
    set->copies[0]->stamp = set->copies[1]->stamp = 2;
    set->copies[0]->stamp_sent = set->copies[1]->stamp_sent = 2;
    trace_begin();
    rig_commit(rig, 0, 128, 256);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    TRACE_IS("n1 write @4224+128 from s0+128\n"
             "n2 write @8320+128 from s0+128\n");
    rep_mark_dirty(owned);
    rig_mails(rig);
    TRACE_IS("store STAMP s0 v2 role0 writer100\n");
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    TRACE_IS("log COMMIT s0: OK\n");
}

/* Goal: a head is not hibernated before a copy that counts is whole: its bytes come from the head's buffer. */
static void hibernate_waits_for_a_copy_that_is_made(void **state)
{
    (void)state;
    begun();
    copy->incomplete = true;
    trace_begin();
    rig_end(rig, LEAT_STORE_HIBERNATE, 0, 128);
    TRACE_IS("n2 HIBERNATE s0 h20 v1 d1 128:128 to 1000/2000, 10 s\n"
             "n1 COMPLETE s0 h10 v1 d1 part 128:128 to 1000/2000, 10 s\n");
    rig_answer(rig, 1, LEAT_REP_COMPLETE);
    TRACE_IS("n1 HIBERNATE s0 h10 v1 d1 128:128 to 1000/2000, 10 s\n"
             "store HIBERNATE s0\n");
    rig_answer(rig, 1, LEAT_REP_HIBERNATE);
    rig_answer(rig, 2, LEAT_REP_HIBERNATE);
    TRACE_IS("");
    rig_stored(rig, LEAT_STORE_HIBERNATE, LEAT_E_DISK); /* all others have done it */
    TRACE_IS("log HIBERNATE s0: DISK\n");
}

/* Goal: a segment that has gone at the store is nobody's: its log may end before it has heard. */
static void segment_that_has_gone_is_nobodys(void **state)
{
    (void)state;
    for (unsigned fails = 0; fails < 2; fails++) {
        begun();
        rig->quiet = true;
        while (set->copy_count)
            rep_copy_remove(set->copies[0]);
        set->dropping = true;
        rep_local_ask(set, LEAT_STORE_DROP);
        set->local.rc = fails ? LEAT_E_DISK : LEAT_OK;
        set->local.on_done(&set->local);
        assert_ptr_equal(set->seg, fails ? &rig->segs[0] : NULL);
    }
    trace_begin();
}

/* Goal: the memory of a closed segment goes when nothing is written from it any more. */
static void eviction_waits_for_writes(void **state)
{
    (void)state;
    begun();
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    set->writes = 1;
    trace_begin();
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_EVICT, .seg = set->seg});
    rig_pass(rig, 100 * 1000);
    TRACE_IS("");
    set->writes = 0;
    rep_mark_dirty(owned);
    rig_mails(rig);
    TRACE_IS("store EVICT s0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(drop_waits_for_what_is_under_way),
        TRACE_TEST(silence_counts_from_the_oldest_request),
        TRACE_TEST(write_takes_time_from_what_was_heard_last),
        TRACE_TEST(requests_that_wait_go_with_the_session),
        TRACE_TEST(reserve_waits_for_the_store),
        TRACE_TEST(commit_waits_for_the_own_version),
        TRACE_TEST(hibernate_waits_for_a_copy_that_is_made),
        TRACE_TEST(segment_that_has_gone_is_nobodys),
        TRACE_TEST(eviction_waits_for_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
