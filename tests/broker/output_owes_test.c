/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that owe bytes while other connections find no room: how much they have to take, and by when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/broker/output_rig.h"

enum { SECOND_US = 1000 * 1000, DUE = LEAT_OUTPUT_OWE_RATE * (LEAT_OUTPUT_OWE_US / SECOND_US) };

/* A tick at which a connection is refused, as in each second while there is no room. */
static void tick_refused(struct desk *desk)
{
    desk->core.output.refused = true;
    leat_output_tick(&desk->core);
}

static struct desk *desk_owing(unsigned count, size_t copied)
{
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < count; i++) {
        desk->conns[i].copied = copied;
        leat_list_push_back(&desk->core.owing_peers, &desk->peers[i].owing);
    }
    return desk;
}

static bool is_late(const struct desk *desk, unsigned i)
{
    return desk->core.output.late_s[desk->peers[i].address] != 0;
}

/* Goal: of a long queue a connection has to take LEAT_OUTPUT_OWE_RATE each second, to the byte: a connection that took
 * less is late at once, and is closed at the end of its time. */
static void rate_is_owed_to_the_byte(void **state)
{
    (void)state;
    struct desk *desk = desk_owing(3, MIB);
    tick_refused(desk);
    for (unsigned i = 0; i < 3; i++)
        conn_takes(&desk->conns[i], LEAT_OUTPUT_OWE_RATE - (i == 2));
    desk->world.now_us += SECOND_US;
    tick_refused(desk);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(is_late(desk, i), i == 2);
    conn_takes(&desk->conns[0], DUE - LEAT_OUTPUT_OWE_RATE);
    conn_takes(&desk->conns[1], DUE - LEAT_OUTPUT_OWE_RATE - 1);
    conn_takes(&desk->conns[2], 1);
    desk->world.now_us += LEAT_OUTPUT_OWE_US - SECOND_US - 1;
    tick_refused(desk);
    for (unsigned i = 0; i < 3; i++)
        assert_false(desk->conns[i].closed);
    assert_true(is_late(desk, 1));
    desk->world.now_us++;
    tick_refused(desk);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(desk->conns[i].closed, i > 0);
    desk_free(desk);
}

/* Goal: a connection that has taken what it owed has the whole time again, and no longer. */
static void time_begins_again_with_what_is_taken(void **state)
{
    (void)state;
    struct desk *desk = desk_owing(1, MIB);
    tick_refused(desk);
    conn_takes(&desk->conns[0], DUE);
    desk->world.now_us += SECOND_US;
    tick_refused(desk);
    desk->world.now_us += LEAT_OUTPUT_OWE_US - 1;
    tick_refused(desk);
    assert_false(desk->conns[0].closed);
    desk->world.now_us++;
    tick_refused(desk);
    assert_true(desk->conns[0].closed);
    desk_free(desk);
}

/* Goal: time in which there was room for all does not count, though the connection owed bytes meanwhile. */
static void time_with_room_for_all_is_no_time_of_owing(void **state)
{
    (void)state;
    struct desk *desk = desk_owing(1, MIB);
    tick_refused(desk);
    desk->world.now_us += SECOND_US;
    leat_output_tick(&desk->core); /* no connection was refused since */
    desk->world.now_us += LEAT_OUTPUT_OWE_US;
    tick_refused(desk);
    assert_false(desk->conns[0].closed);
    assert_false(is_late(desk, 0));
    desk->world.now_us += LEAT_OUTPUT_OWE_US;
    tick_refused(desk);
    assert_true(desk->conns[0].closed);
    desk_free(desk);
}

/* Goal: one refusal is of one second. Where nobody is refused after it, and answers have no more than their part,
 * nobody who owes is in the way. */
static void refusal_counts_until_the_next_tick(void **state)
{
    (void)state;
    struct desk *desk = desk_owing(1, 2 * MIB);
    for (unsigned i = 1; i < 5; i++)
        desk->conns[i].copied = 2 * MIB; /* with the first, exactly what answers have */
    tick_refused(desk);
    for (unsigned i = 0; i < 20; i++) {
        desk->world.now_us += SECOND_US;
        leat_output_tick(&desk->core);
    }
    assert_false(desk->conns[0].closed);
    desk->conns[4].copied++;
    for (unsigned i = 0; i <= LEAT_OUTPUT_OWE_US / SECOND_US; i++) {
        assert_false(desk->conns[0].closed);
        leat_output_tick(&desk->core);
        desk->world.now_us += SECOND_US;
    }
    assert_true(desk->conns[0].closed);
    desk_free(desk);
}

/* Goal: a call that found no room makes owing connections be judged, too. */
static void refused_call_wants_room_from_those_who_owe(void **state)
{
    (void)state;
    struct desk *desk = desk_owing(1, 2 * MIB);
    desk->conns[1].copied = 8 * MIB - 1;
    for (unsigned i = 0; i <= LEAT_OUTPUT_OWE_US / SECOND_US; i++) {
        assert_false(desk->conns[0].closed);
        assert_false(leat_output_take(&desk->peers[2], 7 * MIB));
        leat_output_tick(&desk->core);
        desk->world.now_us += SECOND_US;
    }
    assert_true(desk->conns[0].closed);
    desk_free(desk);
}

/* Goal: a connection is in the way with a single byte, or with its calls, and is not with bytes that are not in the
 * core's memory. */
static void who_holds_any_room_is_in_the_way(void **state)
{
    (void)state;
    struct desk *desk = desk_owing(3, 1);
    desk->conns[1].copied = MIB;
    leat_output_add(&desk->peers[1], MIB);
    desk->conns[2].copied = 0;
    desk->conns[2].mapped = MIB;
    tick_refused(desk);
    desk->world.now_us += LEAT_OUTPUT_OWE_US;
    tick_refused(desk);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(desk->conns[i].closed, i < 2);
    leat_output_give(&desk->peers[1], MIB);
    desk_free(desk);
}

/* Goal: an address that let an answer lie comes after others for ten minutes, and not a second longer, and leaves an
 * eighth of the account free meanwhile, to the byte. Other nodes are never late. */
static void late_address_leaves_room_for_ten_minutes(void **state)
{
    (void)state;
    struct desk *desk = desk_owing(1, 8 * MIB);
    struct leat_core *core = &desk->core;
    core->link_peer.core = core;
    core->link_peer.address = 0; /* whatever stands there is not asked */
    core->link_peer.sharer = desk->peers[0].sharer;
    desk->world.now_us = 3600ull * SECOND_US + 3601; /* amid a second */
    tick_refused(desk);
    desk->world.now_us += SECOND_US;
    tick_refused(desk);
    assert_true(is_late(desk, 0));
    leat_list_remove(&desk->peers[0].owing);
    desk->conns[0].copied = 0;
    desk->conns[9].copied = 7 * MIB;
    desk->world.now_us += LEAT_OUTPUT_LATE_US - SECOND_US;
    assert_true(leat_output_fits(&desk->peers[0], MIB));
    assert_false(leat_output_fits(&desk->peers[0], MIB + 1)); /* 8 MiB of 10 */
    assert_true(leat_output_fits(&desk->peers[1], MIB + 1));
    desk->conns[9].copied = 14 * MIB - 8192;
    assert_true(leat_output_take(&desk->peers[0], 8192));
    leat_output_give(&desk->peers[0], 8192);
    assert_false(leat_output_take(&desk->peers[0], 8193));
    assert_true(leat_output_take(&core->link_peer, 8193));
    leat_output_give(&core->link_peer, 8193);
    desk->world.now_us += SECOND_US;
    assert_true(leat_output_take(&desk->peers[0], 8193));
    leat_output_give(&desk->peers[0], 8193);
    desk_free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate_is_owed_to_the_byte),
        cmocka_unit_test(time_begins_again_with_what_is_taken),
        cmocka_unit_test(time_with_room_for_all_is_no_time_of_owing),
        cmocka_unit_test(refusal_counts_until_the_next_tick),
        cmocka_unit_test(refused_call_wants_room_from_those_who_owe),
        cmocka_unit_test(who_holds_any_room_is_in_the_way),
        cmocka_unit_test(late_address_leaves_room_for_ten_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
