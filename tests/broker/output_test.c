/* SPDX-License-Identifier: Apache-2.0 */
/* A core's memory for answers and calls: which connections have room, which wait, and which are closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/net/call.h"
#include "tests/broker/output_rig.h"

/* Goal: a connection that holds more than its share is not read from; others do not notice. */
static void peer_beyond_its_share_waits_alone(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    assert_int_equal(desk->core.output.bytes_max, 16 * MIB);
    desk->conns[0].copied = 2 * MIB;
    assert_false(leat_peer_is_slow(&desk->peers[0]));
    desk->conns[0].copied++;
    desk->conns[1].copied = 1;
    assert_true(leat_peer_is_slow(&desk->peers[0]));
    assert_int_equal(desk->peers[0].paused, LEAT_PAUSE_SLOW);
    assert_false(leat_peer_is_slow(&desk->peers[1]));
    assert_true(leat_output_fits(&desk->peers[2], 1 * MIB));
    desk->conns[0].copied = 0;
    leat_peer_drained(&desk->peers[0]);
    assert_int_equal(desk->peers[0].paused, 0);
    desk_free(desk);
}

/* Goal: where there is no room whoever owes nothing still gets small answers, and nobody gets more. */
static void full_core_gives_small_answers_to_those_who_took_theirs(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 7; i++)
        desk->conns[i].copied = 2 * MIB;
    assert_true(leat_peer_is_slow(&desk->peers[3]));
    assert_false(leat_output_is_over(&desk->peers[8]));
    assert_true(leat_output_fits(&desk->peers[8], LEAT_OUTPUT_SMALL_BYTES));
    assert_false(leat_output_fits(&desk->peers[8], LEAT_OUTPUT_LAST_BYTES + 1));
    desk->conns[8].copied = 100; /* has one by now, and has not taken it */
    assert_true(leat_output_is_over(&desk->peers[8]));
    /* Calls have a quarter for themselves, and small ones their number. */
    assert_true(leat_output_take(&desk->peers[9], MIB));
    assert_false(leat_output_take(&desk->peers[9], 2 * MIB));
    assert_true(leat_output_take(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES));
    leat_output_give(&desk->peers[9], MIB + LEAT_OUTPUT_CALL_BYTES);
    desk->conns[10].copied = 4 * MIB; /* answers are in the calls' quarter, too */
    assert_false(leat_output_take(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES + 1));
    assert_true(leat_output_take(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES));
    leat_output_give(&desk->peers[9], LEAT_OUTPUT_CALL_BYTES);
    assert_int_equal(desk->core.output.held, 0);
    desk_free(desk);
}

/* Goal: a call that takes more than all there is has its turn, alone; else nothing of that size would ever be
 * answered. */
static void largest_calls_are_served_one_at_a_time(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    assert_true(leat_output_take(&desk->peers[0], 20 * MIB));
    assert_false(leat_output_take(&desk->peers[1], 20 * MIB));
    assert_false(leat_output_take(&desk->peers[1], MIB));
    assert_true(leat_output_holds_share(&desk->peers[0])); /* and is not read from meanwhile */
    assert_false(leat_output_holds_share(&desk->peers[1]));
    leat_output_give(&desk->peers[0], 20 * MIB);
    assert_false(leat_output_holds_share(&desk->peers[0]));
    assert_true(leat_output_take(&desk->peers[1], 8 * MIB + 1));
    assert_false(leat_output_take(&desk->peers[0], 20 * MIB));
    leat_output_give(&desk->peers[1], 8 * MIB + 1);
    assert_int_equal(desk->core.output.held, 0);
    desk_free(desk);
}

/* Goal: waiting answers go out in their order, as many as there is room for; an answer that is larger than all of the
 * room has half of it. */
static void waiting_answers_go_out_in_order_as_room_comes(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 6; i++)
        desk->conns[i].copied = 2 * MIB;
    leat_output_wait(&desk->peers[8], 100 * MIB, false);
    leat_output_wait(&desk->peers[9], 2 * MIB, false);
    leat_output_resume(&desk->core);
    assert_true(leat_list_empty(&desk->core.answer_peers));
    desk->conns[0].copied = desk->conns[1].copied = 0;
    leat_output_resume(&desk->core); /* 2 MiB of 10: the first wants 5 */
    assert_true(leat_list_empty(&desk->core.answer_peers));
    desk->conns[2].copied = desk->conns[3].copied = 0;
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[8].answers);
    assert_ptr_equal(desk->core.answer_peers.prev, &desk->peers[8].answers);
    assert_false(leat_list_empty(&desk->peers[9].output.wait));
    desk_free(desk);
}

/* Goal: a connection that keeps others waiting, by taking a little now and then, is closed before the waiting
 * connections are. */
static void those_who_hold_go_before_those_who_wait(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[0].copied = 9 * MIB;
    leat_list_push_back(&desk->core.owing_peers, &desk->peers[0].owing);
    for (unsigned i = 0; i < 60; i++) { /* owes all the time, and nobody minds */
        leat_output_tick(&desk->core);
        desk->world.now_us += 1000 * 1000;
    }
    assert_false(desk->conns[0].closed);
    leat_output_wait(&desk->peers[1], 2 * MIB, false);
    uint64_t began_us = desk->world.now_us;
    while (!desk->conns[0].closed) {
        assert_false(desk->conns[1].closed);
        assert_true(desk->world.now_us - began_us <= LEAT_OUTPUT_WAIT_US);
        desk->world.now_us += 1000 * 1000;
        conn_takes(&desk->conns[0], 1);
        leat_output_tick(&desk->core);
    }
    assert_true(desk->world.now_us - began_us >= LEAT_OUTPUT_OWE_US);
    leat_list_remove(&desk->peers[0].owing); /* as when it is closed */
    desk->conns[0].copied = 0;
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[1].answers);
    assert_false(desk->conns[1].closed);
    desk_free(desk);
}

/* Goal: a connection that has just begun to owe is not closed for answers that others have owed for long. */
static void who_begins_to_owe_has_its_time(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[0].copied = 13 * MIB; /* not among those that are looked at */
    leat_list_push_back(&desk->core.owing_peers, &desk->peers[1].owing);
    for (unsigned i = 0; i < 60; i++) {
        leat_output_tick(&desk->core);
        desk->world.now_us += 1000 * 1000;
    }
    desk->conns[1].copied = 100;
    uint64_t began_us = desk->world.now_us;
    while (!desk->conns[1].closed) {
        leat_output_tick(&desk->core);
        if (desk->world.now_us - began_us < LEAT_OUTPUT_OWE_US / 2)
            assert_int_equal(desk->core.output.late_s[desk->peers[1].address], 0);
        desk->world.now_us += 1000 * 1000;
        assert_true(desk->world.now_us - began_us < LEAT_OUTPUT_WAIT_US);
    }
    assert_true(desk->world.now_us - began_us > LEAT_OUTPUT_OWE_US);
    leat_list_remove(&desk->peers[1].owing);
    desk_free(desk);
}

/* Goal: a connection stays that takes what it is given, or takes it at a good rate, however long the connection owes at
 * every look and others find no room. Connections beside it that take a little now and then go, also where nobody waits
 * because all are refused. */
static void who_takes_its_answers_stays_while_there_is_no_room(void **state)
{
    (void)state;
    for (unsigned refused = 0; refused < 2; refused++) {
        struct desk *desk = desk_new();
        for (unsigned i = 0; i < 8; i++) {
            desk->conns[i].copied = 3 * MIB / 2;
            leat_list_push_back(&desk->core.owing_peers, &desk->peers[i].owing);
        }
        if (!refused) leat_output_wait(&desk->peers[9], MIB, false);
        for (unsigned i = 0; i < 60; i++) {
            if (refused) assert_false(leat_output_fits(&desk->peers[9], 13 * MIB));
            leat_output_tick(&desk->core);
            leat_output_leave(&desk->peers[9]); /* another waits instead */
            if (!refused) leat_output_wait(&desk->peers[9], MIB, false);
            desk->world.now_us += 1000 * 1000;
            for (unsigned p = 0; p < 8; p++)
                conn_takes(&desk->conns[p], p == 0 ? MIB : p == 1 ? 70 * 1024 : 100);
            desk->conns[0].copied += MIB; /* it has the next answer at once */
            desk->conns[1].copied += 70 * 1024;
        }
        for (unsigned p = 0; p < 8; p++)
            assert_int_equal(desk->conns[p].closed, p > 1);
        desk_free(desk);
    }
}

/* Goal: addresses that ask for large answers again and again and take none, closed for it or not, leave some room, and
 * the next turn, to one that takes its own. */
static void who_takes_its_answers_comes_before_addresses_that_let_theirs_lie(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 5; i++) {
        desk->conns[i].copied = 2 * MIB;
        leat_list_push_back(&desk->core.owing_peers, &desk->peers[i].owing);
    }
    for (unsigned i = 0; i <= LEAT_OUTPUT_OWE_US / 1000000; i++) {
        assert_false(leat_output_fits(&desk->peers[9], MIB));
        leat_output_tick(&desk->core);
        desk->world.now_us += 1000 * 1000;
    }
    for (unsigned i = 0; i < 5; i++) { /* other connections of these addresses */
        assert_true(desk->conns[i].closed);
        desk->conns[i].copied = 0;
        leat_list_remove(&desk->peers[i].owing);
    }
    for (unsigned i = 0; i < 4; i++) {
        assert_true(leat_output_fits(&desk->peers[i], 2 * MIB));
        desk->conns[i].copied = 2 * MIB;
    }
    assert_false(leat_output_fits(&desk->peers[4], MIB)); /* 8 MiB of 10: the rest is not theirs */
    leat_output_wait(&desk->peers[4], MIB, false);
    assert_false(leat_output_take(&desk->peers[4], 7 * MIB));
    assert_true(leat_output_take(&desk->peers[9], 7 * MIB));
    leat_output_give(&desk->peers[9], 7 * MIB);
    assert_true(leat_output_fits(&desk->peers[9], 2 * MIB));
    desk->conns[9].copied = 2 * MIB;
    assert_false(leat_output_fits(&desk->peers[8], MIB));
    leat_output_wait(&desk->peers[8], MIB, false);
    desk->conns[0].copied = 0; /* now 2 MiB of 10 */
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[8].answers);
    assert_ptr_equal(desk->core.answer_peers.prev, &desk->peers[8].answers);
    desk->conns[1].copied = desk->conns[9].copied = 0;
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.prev, &desk->peers[4].answers);
    /* The connections take what they are given, and some time later are like all others. */
    desk->world.now_us += LEAT_OUTPUT_LATE_US;
    leat_output_leave(&desk->peers[8]);
    leat_output_leave(&desk->peers[4]);
    desk->conns[0].copied = desk->conns[1].copied = 2 * MIB;
    assert_true(leat_output_fits(&desk->peers[4], 2 * MIB));
    desk_free(desk);
}

/* Goal: where there is no room, a connection that has taken all its answers still gets a small answer, until such
 * answers alone are too many; then they come before large answers. */
static void last_part_is_for_small_answers_of_those_who_owe_nothing(void **state)
{
    (void)state;
    enum { LAST = LEAT_OUTPUT_LAST_BYTES };
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 8; i++)
        desk->conns[i].copied = 2 * MIB; /* far more than there is */
    assert_true(leat_output_fits(&desk->peers[8], LAST));
    assert_true(leat_output_fits(&desk->peers[8], LAST)); /* the first answer has been taken */
    assert_false(leat_output_fits(&desk->peers[8], LAST + 1));
    assert_false(leat_output_fits(&desk->peers[3], LAST));
    assert_int_equal(desk->core.output.last, LAST);
    desk->core.output.last += 2 * MIB - 2 * LAST; /* of other connections */
    assert_true(leat_output_fits(&desk->peers[9], LAST));
    desk->conns[8].copied = desk->conns[9].copied = LAST;
    assert_false(leat_output_fits(&desk->peers[10], LAST));
    leat_output_wait(&desk->peers[11], MIB, false);
    leat_output_wait(&desk->peers[10], LAST, false);
    leat_output_resume(&desk->core);
    assert_true(leat_list_empty(&desk->core.answer_peers));
    desk->conns[8].copied = 0;
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[10].answers);
    assert_false(leat_list_empty(&desk->peers[11].output.wait));
    assert_false(leat_output_fits(&desk->peers[12], LAST)); /* it is kept */
    assert_true(leat_output_fits(&desk->peers[10], LAST));
    leat_output_leave(&desk->peers[9]);
    assert_true(leat_output_fits(&desk->peers[12], LAST));
    desk_free(desk);
}

/* Goal: an address leaves half of the last part to other addresses. */
static void address_has_half_of_the_last_part(void **state)
{
    (void)state;
    enum { OTHERS = MIB - LEAT_OUTPUT_LAST_BYTES };
    struct desk *desk = desk_new();
    for (unsigned i = 8; i < 16; i++)
        desk->conns[i].copied = 2 * MIB;
    for (unsigned i = 1; i < 3; i++)
        desk_move(desk, i);
    desk->peers[0].sharer->output.last += OTHERS;
    assert_true(leat_output_fits(&desk->peers[1], LEAT_OUTPUT_LAST_BYTES));
    desk->conns[1].copied = 1;
    assert_false(leat_output_fits(&desk->peers[2], LEAT_OUTPUT_LAST_BYTES));
    assert_true(leat_output_fits(&desk->peers[4], LEAT_OUTPUT_LAST_BYTES));
    desk->peers[0].sharer->output.last -= OTHERS;
    desk_free(desk);
}

/* Goal: a connection with an untaken answer of the last part is closed soon when others want the last part. */
static void who_does_not_take_an_answer_of_the_last_part_goes_soon(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 6; i++)
        desk->conns[i].copied = 7 * MIB / 4;
    assert_true(leat_output_fits(&desk->peers[8], LEAT_OUTPUT_LAST_BYTES));
    desk->conns[8].copied = LEAT_OUTPUT_LAST_BYTES;
    leat_list_push_back(&desk->core.owing_peers, &desk->peers[8].owing);
    leat_output_tick(&desk->core);
    desk->world.now_us += LEAT_OUTPUT_LAST_US;
    leat_output_tick(&desk->core);
    assert_true(desk->conns[8].closed);
    desk_free(desk);
}

/* Goal: while others wait for the structs of requests, a connection that has requests under way and takes hardly any
 * answers is closed. */
static void who_holds_up_requests_goes(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_stock stock;
    assert_int_equal(leat_stock_init(&stock, &desk->core, 512, 64), LEAT_OK);
    for (unsigned i = 0; i < 3; i++) {
        desk->conns[i].copied = MIB;
        leat_list_push_back(&desk->core.owing_peers, &desk->peers[i].owing);
    }
    desk->peers[2].requests = 0;
    for (unsigned wanted = 0; wanted < 2; wanted++) {
        if (wanted) leat_stock_wait(&stock, &desk->peers[8], true, 64);
        for (unsigned i = 0; i < 4; i++) {
            leat_output_tick(&desk->core);
            desk->world.now_us += 1000 * 1000;
            conn_takes(&desk->conns[0], 100);
            conn_takes(&desk->conns[1], 70 * 1024);
        }
        assert_int_equal(desk->conns[0].closed, wanted);
        assert_false(desk->conns[1].closed);
        assert_false(desk->conns[2].closed);
    }
    leat_stock_leave(&desk->peers[8]);
    leat_stock_fini(&stock);
    desk_free(desk);
}

/* Goal: however many connections an address has, the address has half; it waits, and other addresses do not notice. */
static void address_has_half(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 1; i < 8; i++)
        desk_move(desk, i);
    for (unsigned i = 0; i < 4; i++)
        desk->conns[i].copied = 5 * MIB / 4 + 1;
    assert_true(leat_output_is_over(&desk->peers[0]));
    assert_false(leat_output_fits(&desk->peers[4], 100 * 1024));
    assert_true(leat_output_fits(&desk->peers[8], MIB));
    assert_true(leat_output_fits(&desk->peers[4], LEAT_OUTPUT_LAST_BYTES)); /* of its last part */
    assert_false(leat_output_take(&desk->peers[4], 3 * MIB));
    assert_true(leat_output_take(&desk->peers[8], 3 * MIB));
    leat_output_give(&desk->peers[8], 3 * MIB);
    leat_output_wait(&desk->peers[4], MIB, false);
    assert_true(leat_output_fits(&desk->peers[8], MIB)); /* nobody waits for whom that would be */
    leat_output_wait(&desk->peers[8], MIB, false);
    leat_output_resume(&desk->core);
    assert_ptr_equal(desk->core.answer_peers.next, &desk->peers[8].answers);
    assert_false(leat_list_empty(&desk->peers[4].output.wait));
    desk->conns[0].copied = 0;
    leat_output_resume(&desk->core);
    assert_true(leat_list_empty(&desk->peers[4].output.wait));
    desk_free(desk);
}

/* Goal: an address that is over its half holds up nobody behind it, though the address wants more than is left. */
static void who_is_over_its_half_holds_up_no_line(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk_move(desk, 1);
    desk->conns[0].copied = 5 * MIB;
    leat_output_wait(&desk->peers[1], 5 * MIB, false);
    desk->conns[5].copied = MIB;
    leat_output_wait(&desk->peers[8], 2 * MIB, false);
    leat_output_resume(&desk->core);
    assert_true(leat_list_empty(&desk->peers[8].output.wait));
    assert_false(leat_list_empty(&desk->peers[1].output.wait));
    desk_free(desk);
}

/* Goal: whatever calls clients of many addresses have under way, other nodes have some. */
static void nodes_have_places_for_calls(void **state)
{
    (void)state;
    enum { MOST = 64, OF_NODES = MOST / 8 };
    struct desk *desk = desk_new();
    struct leat_core *core = &desk->core;
    struct leat_call *calls[MOST];
    unsigned count = 0;
    const struct leat_frame frame = {.kind = LEAT_KIND_METADATA};
    const struct leat_link_ticket ticket = {0};
    core->calls_max = MOST;
    core->counters.own_bytes = LEAT_CORE_OWN_BYTES;
    core->serving = &ticket;
    core->link_peer.core = core;
    core->link_peer.requests = 1;
    core->link_peer.address = PEERS;
    leat_list_init(&core->link_peer.stock.link);
    assert_true(leat_sharer_join(core, &core->link_peer));
    for (unsigned i = 0; i < 3; i++)
        for (;;) {
            struct leat_call *call = leat_call_create(&desk->peers[i], &frame, sizeof *call);
            if (call == NULL) break;
            calls[count++] = call;
            assert_true(desk->peers[i].sharer->calls <= MOST / 2);
        }
    assert_int_equal(count, MOST - OF_NODES);
    for (unsigned i = 0; i < OF_NODES; i++) {
        calls[count] = leat_call_create(&core->link_peer, &frame, sizeof(struct leat_call));
        assert_non_null(calls[count++]);
    }
    while (count > 0)
        leat_call_refuse(calls[--count], LEAT_E_AGAIN, NULL);
    assert_int_equal(core->calls, 0);
    leat_sharer_leave(core, core->link_peer.sharer);
    desk_free(desk);
}

/* Goal: addresses that wait have turns, however many connections an address has. */
static void addresses_have_turns(void **state)
{
    (void)state;
    static const unsigned turns[] = {1, 9, 2, 3};
    struct desk *desk = desk_new();
    for (unsigned i = 1; i < 4; i++)
        desk_move(desk, i);
    desk->conns[5].copied = 10 * MIB;
    for (unsigned i = 1; i < 4; i++)
        leat_output_wait(&desk->peers[i], MIB, false);
    leat_output_wait(&desk->peers[9], MIB, false);
    for (unsigned i = 0; i < 4; i++) {
        desk->conns[5].copied -= MIB;
        leat_output_resume(&desk->core);
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(leat_list_empty(&desk->peers[turns[k]].output.wait), k <= i);
    }
    desk_free(desk);
}

/* Goal: a connection that was told to try again finds the room for which it had to wait, if it asks soon; nobody closes
 * the connection. */
static void room_is_kept_for_those_who_ask_again(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[5].copied = 10 * MIB;
    assert_false(leat_output_fits(&desk->peers[1], MIB));
    leat_output_wait(&desk->peers[1], MIB, true);
    desk->conns[5].copied = 9 * MIB;
    leat_output_resume(&desk->core);
    assert_int_equal(desk->core.output.kept, MIB);
    assert_false(leat_output_fits(&desk->peers[2], 100 * 1024));
    assert_true(leat_output_fits(&desk->peers[1], MIB));
    assert_int_equal(desk->core.output.kept, 0);
    for (unsigned again = 0; again < 2; again++) { /* it does not come; its turn does not come */
        desk->conns[5].copied = 10 * MIB;
        assert_false(leat_output_fits(&desk->peers[1], MIB));
        leat_output_wait(&desk->peers[1], MIB, true);
        if (!again) desk->conns[5].copied = 9 * MIB;
        leat_output_resume(&desk->core);
        desk->world.now_us += LEAT_OUTPUT_WAIT_US;
        leat_output_tick(&desk->core);
        assert_int_equal(desk->core.output.kept, 0);
        assert_true(leat_list_empty(&desk->peers[1].output.wait));
        assert_false(desk->conns[1].closed);
    }
    desk_free(desk);
}

/* Goal: nobody waits for ever. */
static void who_waits_has_a_limit_of_time(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->conns[0].copied = 13 * MIB; /* not among those that are looked at */
    leat_output_wait(&desk->peers[1], MIB, false);
    desk->world.now_us += LEAT_OUTPUT_WAIT_US - 1;
    leat_output_tick(&desk->core);
    assert_false(desk->conns[1].closed);
    desk->world.now_us++;
    leat_output_tick(&desk->core);
    assert_true(desk->conns[1].closed);
    desk_free(desk);
}

static void rate_gives_a_burst_then_a_few_each_second(void **state)
{
    (void)state;
    struct leat_rate rate = {0};
    const struct leat_rate_limit limit = {200, 10};
    uint64_t now_us = 5000 * 1000;
    for (unsigned i = 0; i < 200; i++)
        assert_true(leat_rate_take(&rate, now_us, limit, 1));
    assert_false(leat_rate_take(&rate, now_us, limit, 1));
    now_us += 100 * 1000;
    assert_true(leat_rate_take(&rate, now_us, limit, 1));
    assert_false(leat_rate_take(&rate, now_us, limit, 1));
    now_us += 3600ull * 1000 * 1000;
    for (unsigned i = 0; i < 200; i++)
        assert_true(leat_rate_take(&rate, now_us, limit, 1));
    assert_false(leat_rate_take(&rate, now_us, limit, 1));
    now_us += 1000 * 1000;
    assert_false(leat_rate_take(&rate, now_us, limit, 11)); /* and nothing of it */
    assert_true(leat_rate_take(&rate, now_us, limit, 10));
    assert_false(leat_rate_take(&rate, now_us, limit, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peer_beyond_its_share_waits_alone),
        cmocka_unit_test(full_core_gives_small_answers_to_those_who_took_theirs),
        cmocka_unit_test(largest_calls_are_served_one_at_a_time),
        cmocka_unit_test(waiting_answers_go_out_in_order_as_room_comes),
        cmocka_unit_test(those_who_hold_go_before_those_who_wait),
        cmocka_unit_test(who_begins_to_owe_has_its_time),
        cmocka_unit_test(who_takes_its_answers_stays_while_there_is_no_room),
        cmocka_unit_test(who_takes_its_answers_comes_before_addresses_that_let_theirs_lie),
        cmocka_unit_test(last_part_is_for_small_answers_of_those_who_owe_nothing),
        cmocka_unit_test(address_has_half_of_the_last_part),
        cmocka_unit_test(who_does_not_take_an_answer_of_the_last_part_goes_soon),
        cmocka_unit_test(who_holds_up_requests_goes),
        cmocka_unit_test(address_has_half),
        cmocka_unit_test(who_is_over_its_half_holds_up_no_line),
        cmocka_unit_test(nodes_have_places_for_calls),
        cmocka_unit_test(addresses_have_turns),
        cmocka_unit_test(room_is_kept_for_those_who_ask_again),
        cmocka_unit_test(who_waits_has_a_limit_of_time),
        cmocka_unit_test(rate_gives_a_burst_then_a_few_each_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
