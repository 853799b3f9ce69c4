/* SPDX-License-Identifier: Apache-2.0 */
/* What has to wait, for whom, and since when: drops for what is under way, a silent backup, requests without a copy. A
 * primary alone. */
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
    CASE(begun, dropped, copy->op = op_of(LEAT_REP_PARK));
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
             "copy->op = op_of(LEAT_REP_PARK): n2 DROP s0 h20 v1 d1 to 1000/2000, 2 s\n"
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

/* Goal: a backup is silent since the first of what it owes, whichever that is. */
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

static void goes_down(void)
{
    rig_peer_down(rig, 1);
    trace("-> %u wait, %u copies\n", !leat_list_empty(&rig_peer(rig, 1)->ops_waiting),
          set->copy_count);
}

static void asked_without_room(void)
{
    begun();
    calm();
    rig->call_rc = LEAT_E_AGAIN;
    rig_end(rig, LEAT_STORE_PARK, 0, 128);
}

/* Goal: requests that wait for room go with the session, also one whose copy has gone before. */
static void requests_that_wait_go_with_the_session(void **state)
{
    (void)state;
    CASE_AS_IT_IS(asked_without_room, goes_down);
    CASE(asked_without_room, goes_down, rep_copy_remove(copy));
    TRACE_IS("store PARK s0\n"
             "(void)0: detach n1\n"
             "-> 0 wait, 1 copies\n"
             "store PARK s0\n"
             "rep_copy_remove(copy): detach n1\n"
             "-> 0 wait, 1 copies\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(drop_waits_for_what_is_under_way),
        TRACE_TEST(silence_counts_from_the_oldest_request),
        TRACE_TEST(requests_that_wait_go_with_the_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
