/* SPDX-License-Identifier: Apache-2.0 */
/* Room for answers and calls at its bounds, to the byte; and the lines of connections that wait for room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/broker/output_rig.h"

enum { SECOND_US = 1000 * 1000, LAST = LEAT_OUTPUT_LAST_BYTES, KIB = 1024 };

static bool waits(const struct desk *desk, unsigned i)
{
    return !leat_list_empty(&desk->peers[i].output.wait);
}

static bool is_called(const struct desk *desk, unsigned i)
{
    return !leat_list_empty(&desk->peers[i].answers);
}

/* As front ends do: an answer that does not fit waits. */
static bool ask(struct desk *desk, unsigned i, size_t bytes)
{
    if (leat_output_fits(&desk->peers[i], bytes)) return true;
    leat_output_wait(&desk->peers[i], bytes, false);
    return false;
}

/* All room of answers is taken, by addresses that the tests do not use beside this. */
static struct desk *desk_full(void)
{
    struct desk *desk = desk_new();
    for (unsigned i = 12; i < 16; i++)
        desk->conns[i].copied = 10 * MIB / 4;
    return desk;
}

/* Goal: a small answer needs no room, whatever the connection owes; one that is a byte larger does. */
static void small_answer_goes_to_who_owes(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    assert_true(leat_output_fits(&desk->peers[12], LEAT_OUTPUT_SMALL_BYTES));
    assert_false(leat_output_fits(&desk->peers[12], LEAT_OUTPUT_SMALL_BYTES + 1));
    desk_free(desk);
}

/* Goal: an answer needs its own bytes, not half of all room, unless it is larger than half. */
static void answer_needs_its_own_bytes(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk_move(desk, 1);
    desk->conns[0].copied = 3 * MIB; /* of 5 of an address */
    assert_true(leat_output_fits(&desk->peers[1], 2 * MIB));
    assert_false(leat_output_fits(&desk->peers[1], 2 * MIB + 1));
    desk->conns[0].copied = 5 * MIB / 2;
    assert_true(leat_output_fits(&desk->peers[1], 100 * MIB));
    desk_free(desk);
}

/* Goal: a connection is over its share, or its address or all answers over theirs, by one byte beyond; then one byte of
 * its own is enough to be over. Bytes of calls and of answers count together. */
static void shares_end_at_their_last_byte(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_peer *peer = &desk->peers[0];
    leat_output_add(peer, MIB);
    desk->conns[0].copied = MIB;
    assert_false(leat_output_is_over(peer));
    desk->conns[0].copied++;
    assert_true(leat_output_is_over(peer));
    leat_output_add(peer, MIB);
    assert_false(leat_output_holds_share(peer));
    leat_output_add(peer, 1);
    assert_true(leat_output_holds_share(peer));
    leat_output_give(peer, 2 * MIB + 1);
    desk_move(desk, 1);
    desk->conns[0].copied = 1;
    desk->conns[1].copied = 5 * MIB - 1;
    assert_false(leat_output_is_over(peer)); /* an address has half */
    desk->conns[1].copied++;
    assert_true(leat_output_is_over(peer));
    desk->conns[1].copied--;
    desk->conns[2].copied = 5 * MIB;
    assert_false(leat_output_is_over(peer)); /* all answers have 10 MiB */
    desk->conns[2].copied++;
    assert_true(leat_output_is_over(peer));
    desk_free(desk);
}

/* Goal: a slow connection is read from again when it is no more over its share, though few bytes are queued. */
static void who_is_over_its_share_is_not_drained(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_peer *peer = &desk->peers[0];
    desk->conns[0].copied = 2 * MIB + 1;
    assert_true(leat_peer_is_slow(peer));
    leat_peer_drained(peer);
    assert_int_equal(peer->paused, LEAT_PAUSE_SLOW);
    desk->conns[0].copied--;
    leat_peer_drained(peer);
    assert_int_equal(peer->paused, 0);
    desk_free(desk);
}

/* Goal: calls of all addresses have the whole account, and of one address half, to the byte; also calls of connections
 * that have gone. Other nodes are no address. */
static void calls_have_all_room_and_an_address_half(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_peer *nodes = &desk->core.link_peer;
    nodes->core = &desk->core;
    nodes->sharer = desk->peers[10].sharer;
    for (unsigned i = 0; i < 4; i++) {
        desk_move(desk, i % 2 ? i : 11);
        desk->peers[i].conn = NULL;
    }
    assert_true(leat_output_take(&desk->peers[1], 4 * MIB));
    assert_true(leat_output_take(&desk->peers[3], 4 * MIB));
    assert_false(leat_output_take(&desk->peers[3], LEAT_OUTPUT_CALL_BYTES + 1));
    assert_true(leat_output_take(&desk->peers[5], 4 * MIB));
    assert_false(leat_output_take(&desk->peers[6], 4 * MIB + 1));
    assert_true(leat_output_take(&desk->peers[6], 4 * MIB));
    for (unsigned i = 1; i < 5; i += 2)
        leat_output_give(&desk->peers[i], 4 * MIB);
    leat_output_give(&desk->peers[5], 4 * MIB);
    leat_output_give(&desk->peers[6], 4 * MIB);
    assert_true(leat_output_take(nodes, 8 * MIB));
    assert_true(leat_output_take(nodes, 8 * MIB));
    leat_output_give(nodes, 16 * MIB);
    desk_free(desk);
}

/* Goal: no answer passes a waiting one, though there is room for it. */
static void line_is_not_passed(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    desk->conns[12].copied = 0;
    assert_false(ask(desk, 1, 4 * MIB)); /* 2.5 MiB are free */
    assert_false(ask(desk, 2, MIB));
    leat_output_resume(&desk->core);
    assert_false(is_called(desk, 2));
    desk->conns[13].copied = 0;
    leat_output_resume(&desk->core);
    assert_true(is_called(desk, 1) && is_called(desk, 2)); /* both at once */
    assert_true(desk->core.answer_peers.next == &desk->peers[1].answers);
    assert_true(desk->core.answer_peers.prev == &desk->peers[2].answers);
    assert_int_equal(desk->core.output.kept, 5 * MIB);
    desk_free(desk);
}

/* Goal: a late address passes no line of other addresses, neither when it asks nor when room comes. */
static void late_address_does_not_pass_others(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    desk->core.output.late_s[desk->peers[2].address] = 2; /* now */
    desk->conns[12].copied = 0;
    desk->conns[13].copied = MIB;
    assert_false(ask(desk, 1, 20 * MIB)); /* half of the room is not free */
    assert_false(ask(desk, 2, 100 * KIB));
    leat_output_resume(&desk->core);
    assert_false(is_called(desk, 2));
    assert_true(waits(desk, 1));
    desk_free(desk);
}

/* Goal: a connection whose turn came has its room while others wait, also where it wants less now; others do not. */
static void kept_room_is_for_the_called(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    assert_false(ask(desk, 1, MIB));
    assert_false(ask(desk, 2, 2 * MIB));
    desk->conns[12].copied -= MIB;
    leat_output_resume(&desk->core);
    assert_true(is_called(desk, 1) && !is_called(desk, 2));
    assert_false(ask(desk, 3, 100 * KIB));
    assert_true(leat_output_fits(&desk->peers[1], MIB));
    assert_int_equal(desk->core.output.kept, 0);
    assert_true(waits(desk, 2) && waits(desk, 3));
    desk_free(desk);
}

/* Goal: a connection that was called in vain keeps its place in line, and its time does not begin again. */
static void called_in_vain_keeps_its_place_and_time(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    assert_false(ask(desk, 1, MIB));
    assert_false(ask(desk, 2, MIB));
    desk->conns[12].copied -= MIB;
    desk->world.now_us += LEAT_OUTPUT_WAIT_US / 2;
    leat_output_resume(&desk->core);
    assert_false(ask(desk, 1, 2 * MIB)); /* its answer has grown */
    leat_list_remove(&desk->peers[1].answers);
    desk->conns[12].copied -= MIB;
    leat_output_resume(&desk->core);
    assert_true(is_called(desk, 1));
    assert_false(is_called(desk, 2));
    assert_false(ask(desk, 1, 3 * MIB));
    desk->world.now_us += LEAT_OUTPUT_WAIT_US / 2;
    leat_output_tick(&desk->core);
    assert_true(desk->conns[1].closed);
    desk_free(desk);
}

/* Goal: a connection waits once: a second wait changes nothing, and a closed connection does not wait. */
static void connection_waits_once(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    assert_false(ask(desk, 1, MIB));
    assert_false(ask(desk, 2, MIB));
    desk->world.now_us += SECOND_US;
    leat_output_wait(&desk->peers[1], 2 * MIB, true);
    assert_int_equal(desk->peers[1].output.wanted, MIB);
    assert_int_equal(desk->peers[1].output.waits_since_us, SECOND_US);
    desk->peers[3].conn = NULL;
    leat_output_wait(&desk->peers[3], LAST, false);
    assert_false(waits(desk, 3));
    assert_false(leat_output_fits(&desk->peers[3], LAST)); /* nobody takes it */
    desk_free(desk);
}

/* Goal: room is kept for LEAT_OUTPUT_KEEP_US from each connection's call, for all that were called. */
static void room_is_kept_for_its_time(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    desk->world.now_us = LEAT_OUTPUT_WAIT_US * 2;
    assert_true(leat_output_fits(&desk->peers[1], LAST)); /* of the last part, and not taken */
    desk->conns[1].copied = LAST;
    for (unsigned i = 1; i < 4; i++)
        assert_false(ask(desk, i, MIB));
    desk->conns[12].copied = 0;
    leat_output_resume(&desk->core);
    assert_int_equal(desk->core.output.kept, 2 * MIB);
    desk->world.now_us += LEAT_OUTPUT_KEEP_US - 1;
    desk->conns[13].copied -= MIB;
    leat_output_resume(&desk->core);
    leat_output_tick(&desk->core);
    assert_int_equal(desk->core.output.kept, 3 * MIB);
    desk->world.now_us++;
    leat_output_tick(&desk->core);
    assert_int_equal(desk->core.output.kept, MIB);
    desk->world.now_us += LEAT_OUTPUT_KEEP_US - 1;
    leat_output_tick(&desk->core);
    assert_int_equal(desk->core.output.kept, 0);
    desk_free(desk);
}

/* The last part is full: 2 MiB less `left` are of connections that take nothing. */
static struct desk *desk_without_last(size_t left)
{
    struct desk *desk = desk_full();
    desk->core.output.last = 2 * MIB - left;
    return desk;
}

/* Goal: where the last part is full, answers of it that are taken make room, on the core and at their address. */
static void taken_answers_of_the_last_part_make_room(void **state)
{
    (void)state;
    struct desk *desk = desk_without_last(2 * LAST);
    assert_true(leat_output_fits(&desk->peers[1], LAST));
    assert_true(leat_output_fits(&desk->peers[2], LAST));
    assert_true(leat_output_fits(&desk->peers[3], LAST)); /* the first two have been taken */
    assert_int_equal(desk->core.output.last, 2 * MIB - LAST);
    desk->core.output.last = LAST;
    desk_move(desk, 4);
    desk->peers[4].sharer->output.last += MIB - LAST;
    assert_true(leat_output_fits(&desk->peers[0], LAST));
    assert_true(leat_output_fits(&desk->peers[4], LAST)); /* likewise of one address */
    desk->peers[4].sharer->output.last -= MIB - LAST;
    desk_free(desk);
}

/* Goal: each answer of the last part is given back once it has been taken, in whichever order they were. */
static void last_part_comes_back_at_a_tick(void **state)
{
    (void)state;
    struct desk *desk = desk_full();
    assert_true(leat_output_fits(&desk->peers[1], LAST));
    assert_true(leat_output_fits(&desk->peers[2], LAST));
    assert_true(leat_output_fits(&desk->peers[1], LAST));
    assert_int_equal(desk->core.output.last, 2 * LAST);
    leat_output_tick(&desk->core);
    assert_int_equal(desk->core.output.last, 0);
    desk_free(desk);
}

/* Goal: nobody takes the last part before connections that wait for it. A connection that owes waits with the large
 * answers. Who waits for the last part has a limit of time, too. */
static void last_part_has_a_line(void **state)
{
    (void)state;
    struct desk *desk = desk_without_last(LAST / 2);
    assert_false(ask(desk, 1, LAST));
    assert_false(ask(desk, 2, LAST / 2));
    desk->conns[3].copied = 1;
    assert_false(ask(desk, 3, LAST / 2));
    desk->core.output.last = 0;
    leat_output_resume(&desk->core);
    assert_true(is_called(desk, 1) && is_called(desk, 2));
    assert_true(waits(desk, 3));
    desk->core.output.last = 2 * MIB;
    assert_false(ask(desk, 4, LAST));
    desk->world.now_us += LEAT_OUTPUT_WAIT_US;
    leat_output_tick(&desk->core);
    assert_true(desk->conns[4].closed);
    desk->core.output.last = 2 * LAST;
    desk_free(desk);
}

/* Goal: a promised piece of the last part is the connection's for LEAT_OUTPUT_KEEP_US, and no longer. Then the
 * connection asks like all others. */
static void promise_of_the_last_part_has_a_time(void **state)
{
    (void)state;
    struct desk *desk = desk_without_last(0);
    assert_false(ask(desk, 1, LAST));
    desk->core.output.last -= LAST;
    leat_output_resume(&desk->core);
    assert_true(is_called(desk, 1));
    desk->world.now_us += LEAT_OUTPUT_KEEP_US - 1;
    leat_output_tick(&desk->core);
    assert_int_equal(desk->peers[1].output.last, LAST);
    desk->world.now_us++;
    leat_output_tick(&desk->core);
    assert_int_equal(desk->peers[1].output.last, 0);
    desk->core.output.last = 2 * MIB - LAST / 2;
    assert_false(ask(desk, 2, LAST));
    assert_false(leat_output_fits(&desk->peers[1], LAST / 2));
    desk->core.output.last = 0;
    desk_free(desk);
}

/* Goal: who asks for the promised piece has it, until it is taken; who asks for more than was promised has no more than
 * there is. */
static void promise_is_of_so_many_bytes(void **state)
{
    (void)state;
    struct desk *desk = desk_without_last(0);
    assert_false(ask(desk, 1, LAST / 2));
    assert_false(ask(desk, 2, LAST / 2));
    assert_false(ask(desk, 3, LAST));
    desk->core.output.last -= LAST;
    leat_output_resume(&desk->core);
    assert_true(is_called(desk, 1) && is_called(desk, 2) && !is_called(desk, 3));
    assert_true(leat_output_fits(&desk->peers[1], LAST / 2));
    assert_true(desk->core.output.last == 2 * MIB);
    desk->conns[1].copied = LAST / 2;
    assert_false(ask(desk, 2, LAST)); /* its own half, and none beside */
    leat_list_remove(&desk->peers[2].answers);
    desk->conns[1].copied = 0;
    leat_output_resume(&desk->core);
    assert_true(is_called(desk, 2) && !is_called(desk, 3)); /* it kept its place */
    assert_true(leat_output_fits(&desk->peers[2], LAST));
    leat_output_resume(&desk->core); /* and took its answer: no promise holds */
    assert_true(is_called(desk, 3));
    desk->core.output.last = LAST;
    desk_free(desk);
}

/* Goal: room for a large answer that has come meanwhile makes a promised piece free. It leaves alone a piece whose
 * answer has not been taken. */
static void large_room_ends_a_promise(void **state)
{
    (void)state;
    struct desk *desk = desk_without_last(LAST);
    assert_true(leat_output_fits(&desk->peers[1], LAST));
    desk->conns[1].copied = LAST;
    assert_false(ask(desk, 2, LAST));
    desk->core.output.last -= LAST;
    leat_output_resume(&desk->core);
    assert_int_equal(desk->peers[2].output.last, LAST);
    desk->conns[12].copied = 0;
    assert_true(leat_output_fits(&desk->peers[2], LAST));
    assert_int_equal(desk->peers[2].output.last, 0);
    assert_true(leat_output_fits(&desk->peers[1], LAST));
    assert_int_equal(desk->peers[1].output.last, LAST);
    desk->core.output.last = LAST;
    desk_free(desk);
}

/* Goal: tokens come back one by one, each at its time, not before. */
static void rate_gives_each_token_at_its_time(void **state)
{
    (void)state;
    struct leat_rate rate = {0};
    const struct leat_rate_limit limit = {200, 10};
    uint64_t now_us = 5 * SECOND_US;
    assert_true(leat_rate_take(&rate, now_us, limit, 200));
    for (unsigned i = 0; i < 20; i++) {
        now_us += SECOND_US / 10;
        assert_false(leat_rate_has(&rate, now_us - 1, limit, 1));
        assert_true(leat_rate_take(&rate, now_us, limit, 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_answer_goes_to_who_owes),
        cmocka_unit_test(answer_needs_its_own_bytes),
        cmocka_unit_test(shares_end_at_their_last_byte),
        cmocka_unit_test(who_is_over_its_share_is_not_drained),
        cmocka_unit_test(calls_have_all_room_and_an_address_half),
        cmocka_unit_test(line_is_not_passed),
        cmocka_unit_test(late_address_does_not_pass_others),
        cmocka_unit_test(kept_room_is_for_the_called),
        cmocka_unit_test(called_in_vain_keeps_its_place_and_time),
        cmocka_unit_test(connection_waits_once),
        cmocka_unit_test(room_is_kept_for_its_time),
        cmocka_unit_test(taken_answers_of_the_last_part_make_room),
        cmocka_unit_test(last_part_comes_back_at_a_tick),
        cmocka_unit_test(last_part_has_a_line),
        cmocka_unit_test(promise_of_the_last_part_has_a_time),
        cmocka_unit_test(promise_is_of_so_many_bytes),
        cmocka_unit_test(large_room_ends_a_promise),
        cmocka_unit_test(rate_gives_each_token_at_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
