/* SPDX-License-Identifier: Apache-2.0 */
/* Who may keep bytes of cut frames. */
#include "base/crc32c.h"
#include "base/intake.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 1000 * 1000, HALF = ROOM / 2, LITTLE = 100, MEMBERS = 8 };

struct rig {
    struct leat_intake intake;
    struct leat_intake_member members[MEMBERS];
};

static struct leat_xoshiro draws;
static uint64_t draw(void *ctx)
{
    return leat_xoshiro_next(ctx);
}

static void rig_make(struct rig *rig)
{
    const struct leat_random random = {&draws, draw, NULL};
    leat_intake_init(&rig->intake, &random);
    rig->intake.accounts[LEAT_NET_CLIENTS].bytes_max = ROOM;
    rig->intake.accounts[LEAT_NET_STRANGERS].bytes_max = ROOM;
}

static struct leat_intake_member *join(struct rig *rig, unsigned index, uint8_t address,
                                       enum leat_net_account account)
{
    uint8_t key[LEAT_NET_KEY_BYTES] = {address};
    leat_intake_join(&rig->intake, &rig->members[index], key, account);
    return &rig->members[index];
}

static void rig_end(struct rig *rig, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        leat_intake_leave(&rig->intake, &rig->members[i]);
    leat_intake_fini(&rig->intake); /* asserts that nobody is left */
}

static void address_over_its_share_waits_and_others_go_on(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    static const uint8_t addresses[] = {1, 1, 2};
    for (unsigned i = 0; i < sizeof addresses; i++)
        (void)join(&rig, i, addresses[i], LEAT_NET_CLIENTS);
    struct leat_intake_member *greedy = &rig.members[0], *same = &rig.members[1],
                              *other = &rig.members[2];
    assert_false(leat_intake_full(&rig.intake, greedy));
    leat_intake_hold(&rig.intake, greedy, HALF);
    leat_intake_hold(&rig.intake, same, LITTLE);
    assert_true(leat_intake_full(&rig.intake, same));
    assert_false(leat_intake_full(&rig.intake, other));
    rig.intake.accounts[LEAT_NET_CLIENTS].over =
        other; /* its turn: nobody else may exceed anything */
    assert_false(leat_intake_grow(&rig.intake, same, HALF / 2));
    leat_intake_hold(&rig.intake, other, LITTLE);
    assert_true(leat_intake_grow(&rig.intake, other, HALF / 2));
    assert_null(leat_intake_next(&rig.intake));
    assert_true(leat_intake_crowded(&rig.intake, LEAT_NET_CLIENTS));
    leat_intake_hold(&rig.intake, greedy, 0);
    assert_ptr_equal(leat_intake_next(&rig.intake), same);
    assert_false(leat_intake_crowded(&rig.intake, LEAT_NET_CLIENTS));
    rig_end(&rig, sizeof addresses);
}

static void full_account_lets_one_at_a_time_exceed_it(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    for (unsigned i = 0; i < 4; i++) { /* of four addresses, a quarter each, and all want more */
        (void)join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS);
        leat_intake_hold(&rig.intake, &rig.members[i], ROOM / 4);
    }
    assert_true(leat_intake_grow(&rig.intake, &rig.members[0], ROOM));
    for (unsigned i = 1; i < 4; i++)
        assert_false(leat_intake_grow(&rig.intake, &rig.members[i], ROOM));
    leat_intake_hold(&rig.intake, &rig.members[0], ROOM);
    assert_null(leat_intake_next(&rig.intake));
    leat_intake_hold(&rig.intake, &rig.members[0], 0); /* its frame is taken */
    assert_ptr_equal(leat_intake_next(&rig.intake), &rig.members[1]);
    leat_intake_hold(&rig.intake, &rig.members[1], ROOM); /* past the limit by a half */
    assert_null(leat_intake_next(&rig.intake));
    leat_intake_leave(&rig.intake, &rig.members[1]); /* it goes in the middle of it */
    (void)join(&rig, 1, 1, LEAT_NET_CLIENTS);
    assert_ptr_equal(leat_intake_next(&rig.intake), &rig.members[2]);
    rig_end(&rig, 4);
}

/* However slowly the connection brings the rest, even if its address is over its share. */
static void one_that_exceeds_takes_no_room_from_others(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    static const uint8_t addresses[] = {1, 1, 2, 3};
    for (unsigned i = 0; i < sizeof addresses; i++) {
        (void)join(&rig, i, addresses[i], LEAT_NET_CLIENTS);
        leat_intake_hold(&rig.intake, &rig.members[i], LITTLE);
    }
    assert_true(leat_intake_grow(&rig.intake, &rig.members[0], HALF - LITTLE));
    leat_intake_hold(&rig.intake, &rig.members[0], HALF);
    assert_true(leat_intake_grow(&rig.intake, &rig.members[1], HALF)); /* past their share */
    leat_intake_hold(&rig.intake, &rig.members[1], ROOM);
    for (unsigned i = 2; i < sizeof addresses; i++)
        assert_false(leat_intake_full(&rig.intake, &rig.members[i]));
    assert_true(leat_intake_grow(&rig.intake, &rig.members[2], HALF - LITTLE));
    leat_intake_hold(&rig.intake, &rig.members[2], HALF - LITTLE);
    assert_true(leat_intake_full(&rig.intake, &rig.members[0]));
    assert_false(leat_intake_grow(&rig.intake, &rig.members[3], HALF)); /* it is full without it */
    rig_end(&rig, sizeof addresses);
}

static bool is_idle(const struct leat_intake_member *member)
{
    (void)member;
    return true;
}

static struct leat_intake *losing; /* the intake of a test */
static unsigned lost_count;
static void lost(struct leat_intake_member *member)
{
    leat_intake_hold(losing, member, 0);
    lost_count++;
}

static bool admits(struct rig *rig, unsigned index, size_t bytes)
{
    losing = &rig->intake;
    return leat_intake_admits(&rig->intake, &rig->members[index], bytes, 0, is_idle, lost);
}

/* Those that come from another actor with a whole frame, which waits for its log here. */
static void account_that_is_full_admits_one_large_member_more(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    for (unsigned i = 0; i < 6; i++)
        (void)join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS);
    for (unsigned i = 0; i < 3; i++) { /* two halves, and one beside them */
        assert_true(admits(&rig, i, HALF));
        leat_intake_hold(&rig.intake, &rig.members[i], HALF);
    }
    assert_false(admits(&rig, 3, HALF));
    assert_true(admits(&rig, 4, LEAT_INTAKE_SMALL_BYTES));
    leat_intake_hold(&rig.intake, &rig.members[2], 0);
    assert_true(admits(&rig, 5, HALF));
    rig_end(&rig, 6);
}

static void addresses_that_wait_go_on_in_turn(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    static const uint8_t addresses[] = {9, 8, 1, 1, 1, 2, 7};
    for (unsigned i = 0; i < sizeof addresses; i++)
        (void)join(&rig, i, addresses[i], LEAT_NET_CLIENTS);
    leat_intake_hold(&rig.intake, &rig.members[0], HALF);
    assert_true(leat_intake_grow(&rig.intake, &rig.members[0], ROOM)); /* it may exceed all */
    leat_intake_hold(&rig.intake, &rig.members[1], HALF);
    leat_intake_hold(&rig.intake, &rig.members[6], HALF);
    for (unsigned i = 2; i < 6; i++) {
        leat_intake_hold(&rig.intake, &rig.members[i], LITTLE);
        assert_false(leat_intake_grow(&rig.intake, &rig.members[i], 2 * LITTLE));
    }
    assert_null(leat_intake_next(&rig.intake));
    leat_intake_hold(&rig.intake, &rig.members[1], 0);
    static const unsigned order[] = {2, 5, 3, 4};
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        assert_ptr_equal(leat_intake_next(&rig.intake), &rig.members[order[i]]);
    assert_null(leat_intake_next(&rig.intake));
    rig_end(&rig, sizeof addresses);
}

/* A connection that holds a place and brings nothing loses the place to a waiting connection, and comes back behind all
 * that never lost a place. */
static void who_brings_nothing_loses_its_place_and_stands_behind(void **state)
{
    enum { NOW = LEAT_INTAKE_SILENT_MS, LATER = NOW + 2 * LEAT_INTAKE_LOOK_MS };
    struct rig rig;
    (void)state;
    rig_make(&rig);
    losing = &rig.intake;
    lost_count = 0;
    for (unsigned i = 0; i < 6; i++) {
        (void)join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS);
        leat_intake_hold(&rig.intake, &rig.members[i], i < 3 ? HALF : LITTLE);
    }
    leat_intake_heard(&rig.members[0], LEAT_INTAKE_HEARD_BYTES - 1, NOW - 1);
    leat_intake_heard(&rig.members[1], LEAT_INTAKE_HEARD_BYTES, NOW - 1); /* one brings something */
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[2];
    leat_intake_watch_begin(&rig.intake, 0);
    assert_true(leat_intake_watch(&rig.intake, NOW, is_idle, lost)); /* nobody waits */
    assert_int_equal(lost_count, 0);
    assert_false(leat_intake_grow(&rig.intake, &rig.members[3], HALF));
    assert_true(leat_intake_watch(&rig.intake, NOW, is_idle, lost));
    assert_int_equal(lost_count, 2);
    assert_int_equal(rig.members[1].bytes, HALF);
    assert_ptr_equal(leat_intake_next(&rig.intake), &rig.members[3]);
    leat_intake_hold(&rig.intake, &rig.members[3], HALF);
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[1];
    leat_intake_hold(&rig.intake, &rig.members[1], ROOM);
    leat_intake_hold(&rig.intake, &rig.members[4], HALF);

    leat_intake_hold(&rig.intake, &rig.members[0], LITTLE); /* back, and first */
    assert_false(leat_intake_grow(&rig.intake, &rig.members[0], HALF));
    assert_false(leat_intake_grow(&rig.intake, &rig.members[5], HALF - LITTLE));
    leat_intake_hold(&rig.intake, &rig.members[4], 0);
    assert_ptr_equal(leat_intake_next(&rig.intake), &rig.members[5]);
    assert_true(leat_intake_crowded(&rig.intake, LEAT_NET_CLIENTS));
    /* While others wait, the blamed connection is read in small pieces only, though there is room. Without waiting
     * connections, or once the blame has ended, it is read like any other. */
    leat_intake_leave(&rig.intake, &rig.members[0]);
    (void)join(&rig, 0, 0, LEAT_NET_CLIENTS); /* remembered */
    assert_false(leat_intake_full(&rig.intake, &rig.members[0]));
    leat_intake_hold(&rig.intake, &rig.members[5], HALF);
    leat_intake_hold(&rig.intake, &rig.members[4], LITTLE);
    assert_false(leat_intake_grow(&rig.intake, &rig.members[4], HALF));
    leat_intake_hold(&rig.intake, &rig.members[5], HALF - LEAT_INTAKE_SMALL_BYTES);
    assert_true(leat_intake_full(&rig.intake, &rig.members[0]));
    (void)leat_intake_watch(&rig.intake, LATER + LEAT_INTAKE_BLAME_MS, is_idle, lost);
    assert_false(leat_intake_full(&rig.intake, &rig.members[0])); /* its blame has ended */
    rig_end(&rig, 6);
}

/* A connection that brings a little now and then keeps its place for longer, and afterwards stands behind all others,
 * too. */
static void who_brings_too_little_loses_its_place_and_stands_behind(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    losing = &rig.intake;
    lost_count = 0;
    for (unsigned i = 0; i < 4; i++) {
        (void)join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS);
        leat_intake_hold(&rig.intake, &rig.members[i], i < 3 ? HALF : LITTLE);
    }
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[2];
    leat_intake_watch_begin(&rig.intake, 0);
    assert_false(leat_intake_grow(&rig.intake, &rig.members[3], HALF));
    uint64_t now_ms = 0;
    while (lost_count == 0 && now_ms < 2 * LEAT_INTAKE_STALL_MS) {
        now_ms += LEAT_INTAKE_OVER_SILENT_MS / 2; /* 8 KiB/s */
        for (unsigned i = 0; i < 3; i++)
            leat_intake_heard(&rig.members[i], LEAT_INTAKE_HEARD_BYTES / 2, now_ms);
        (void)leat_intake_watch(&rig.intake, now_ms, is_idle, lost);
    }
    assert_int_equal(now_ms, LEAT_INTAKE_STALL_MS);
    assert_int_equal(lost_count, 3);
    assert_int_equal(rig.intake.blamed_count, 3);
    leat_intake_hold(&rig.intake, &rig.members[0], LITTLE); /* back, and first */
    leat_intake_hold(&rig.intake, join(&rig, 4, 4, LEAT_NET_CLIENTS), HALF);
    leat_intake_hold(&rig.intake, &rig.members[1], HALF);
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[4];
    assert_false(leat_intake_grow(&rig.intake, &rig.members[0], HALF));
    leat_intake_hold(&rig.intake, &rig.members[4], 0);
    assert_ptr_equal(leat_intake_next(&rig.intake), &rig.members[3]);
    rig_end(&rig, 5);
}

/* A connection that leaves its place by itself while others wait for it stands behind them, too. */
static void who_leaves_its_place_while_others_wait_stands_behind(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    for (unsigned i = 0; i < 4; i++) {
        (void)join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS);
        leat_intake_hold(&rig.intake, &rig.members[i], i < 2 ? HALF : LITTLE);
    }
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[3];
    leat_intake_ended(&rig.intake, &rig.members[1], 0);
    assert_int_equal(rig.intake.blamed_count, 0); /* nobody waits */
    assert_false(leat_intake_grow(&rig.intake, &rig.members[2], HALF));
    leat_intake_ended(&rig.intake, &rig.members[2], 0);
    assert_int_equal(rig.intake.blamed_count, 0); /* it waits itself */
    leat_intake_ended(&rig.intake, &rig.members[0], 0);
    assert_int_equal(rig.intake.blamed_count, 1);
    rig_end(&rig, 4);
}

/* What is little for a megabyte is enough for what is smaller. */
static void who_holds_more_has_to_bring_more(void **state)
{
    enum { BROUGHT = HALF / LEAT_INTAKE_STALL_PART - 1 };
    struct rig rig;
    (void)state;
    rig_make(&rig);
    losing = &rig.intake;
    lost_count = 0;
    for (unsigned i = 0; i < 4; i++)
        (void)join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS);
    leat_intake_hold(&rig.intake, &rig.members[0], HALF);
    leat_intake_hold(&rig.intake, &rig.members[1], HALF / 2);
    leat_intake_hold(&rig.intake, &rig.members[2], LITTLE);
    leat_intake_hold(&rig.intake, &rig.members[3], HALF);
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[3];
    leat_intake_watch_begin(&rig.intake, 0);
    leat_intake_heard(&rig.members[0], BROUGHT, LEAT_INTAKE_STALL_MS);
    leat_intake_heard(&rig.members[1], BROUGHT, LEAT_INTAKE_STALL_MS);
    leat_intake_heard(&rig.members[3], BROUGHT + 1, LEAT_INTAKE_STALL_MS);
    assert_false(leat_intake_grow(&rig.intake, &rig.members[2], HALF));
    assert_true(leat_intake_watch(&rig.intake, LEAT_INTAKE_STALL_MS, is_idle, lost));
    assert_int_equal(lost_count, 1);
    assert_int_equal(rig.members[0].bytes, 0);
    rig_end(&rig, 4);
}

/* Also while nobody waits: who comes then finds some room. */
static void blamed_addresses_leave_a_part_to_others(void **state)
{
    enum { THEIRS = ROOM - ROOM / LEAT_INTAKE_BLAMED_LEAVE };
    struct rig rig;
    (void)state;
    rig_make(&rig);
    for (unsigned i = 0; i < 4; i++)
        (void)join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS);
    leat_intake_hold(&rig.intake, &rig.members[0], HALF);
    leat_intake_hold(&rig.intake, &rig.members[1], HALF);
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[1];
    leat_intake_hold(&rig.intake, &rig.members[2], HALF);
    leat_intake_hold(&rig.intake, &rig.members[3], LITTLE);
    assert_false(leat_intake_grow(&rig.intake, &rig.members[3], HALF));
    leat_intake_ended(&rig.intake, &rig.members[0], 0);
    assert_int_equal(rig.intake.blamed_count, 1);
    for (unsigned i = 0; i < 4; i++)
        leat_intake_hold(&rig.intake, &rig.members[i], 0);
    leat_intake_hold(&rig.intake, &rig.members[1], HALF);
    leat_intake_hold(&rig.intake, &rig.members[0], LITTLE);
    assert_true(leat_intake_fits(&rig.intake, &rig.members[0], THEIRS - HALF));
    assert_false(leat_intake_fits(&rig.intake, &rig.members[0], THEIRS - HALF + 1));
    leat_intake_hold(&rig.intake, &rig.members[0], THEIRS - HALF);
    assert_true(leat_intake_full(&rig.intake, &rig.members[0]));
    assert_true(leat_intake_fits(&rig.intake, &rig.members[2], ROOM - THEIRS));
    rig_end(&rig, 4);
}

/* However many addresses are blamed, so many are remembered. */
static void blamed_addresses_are_bounded(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    for (unsigned i = 0; i < 2; i++)
        leat_intake_hold(&rig.intake, join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS),
                         i ? LITTLE : HALF);
    leat_intake_hold(&rig.intake, join(&rig, 2, 2, LEAT_NET_CLIENTS), HALF);
    rig.intake.accounts[LEAT_NET_CLIENTS].over = &rig.members[2];
    leat_intake_hold(&rig.intake, join(&rig, 3, 3, LEAT_NET_CLIENTS), HALF);
    assert_false(leat_intake_grow(&rig.intake, &rig.members[1], HALF));
    for (unsigned i = 0; i < 2 * LEAT_INTAKE_BLAMED_MAX; i++) {
        const uint8_t key[LEAT_NET_KEY_BYTES] = {7, (uint8_t)i, (uint8_t)(i >> 8)};
        leat_intake_join(&rig.intake, &rig.members[4], key, LEAT_NET_CLIENTS);
        leat_intake_hold(&rig.intake, &rig.members[4], HALF);
        leat_intake_ended(&rig.intake, &rig.members[4], i);
        leat_intake_leave(&rig.intake, &rig.members[4]);
    }
    assert_int_equal(rig.intake.blamed_count, LEAT_INTAKE_BLAMED_MAX);
    rig_end(&rig, 4);
}

static void beginnings_past_their_limit_cost_the_oldest(void **state)
{
    enum { COUNT = LEAT_INTAKE_SMALLS_BYTES / LEAT_INTAKE_SMALL_BYTES + 1 };
    static struct leat_intake_member members[COUNT];
    struct rig rig;
    (void)state;
    rig_make(&rig);
    static const uint8_t key[LEAT_NET_KEY_BYTES] = {3};
    leat_intake_hold(&rig.intake, join(&rig, 0, 1, LEAT_NET_CLIENTS), ROOM); /* large, and older */
    for (unsigned i = 0; i < COUNT; i++) {
        assert_null(leat_intake_surplus(&rig.intake, LEAT_NET_CLIENTS));
        leat_intake_join(&rig.intake, &members[i], key, LEAT_NET_CLIENTS);
        leat_intake_hold(&rig.intake, &members[i], LEAT_INTAKE_SMALL_BYTES);
    }
    assert_ptr_equal(leat_intake_surplus(&rig.intake, LEAT_NET_CLIENTS), &members[0]);
    leat_intake_hold(&rig.intake, &members[0], 0);
    assert_null(leat_intake_surplus(&rig.intake, LEAT_NET_CLIENTS));
    for (unsigned i = 0; i < COUNT; i++)
        leat_intake_leave(&rig.intake, &members[i]);
    rig_end(&rig, 1);
}

/* The bytes of a connection that exceeds the limit, in its turn, drive no small beginnings out. */
static void one_that_exceeds_drives_no_beginnings_out(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    for (unsigned i = 0; i < 4; i++)
        leat_intake_hold(&rig.intake, join(&rig, i, (uint8_t)i, LEAT_NET_CLIENTS),
                         i < 2 ? HALF : LITTLE);
    assert_true(leat_intake_grow(&rig.intake, &rig.members[2], 2 * ROOM));
    leat_intake_hold(&rig.intake, &rig.members[2], 2 * ROOM);
    assert_null(leat_intake_surplus(&rig.intake, LEAT_NET_CLIENTS));
    rig_end(&rig, 4);
}

/* Nor do the bytes of many large connections beyond the limit, each of which had room when it was read. */
static void large_ones_beyond_the_limit_drive_no_beginnings_out(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    struct leat_intake_member *small = join(&rig, 0, 1, LEAT_NET_CLIENTS);
    leat_intake_hold(&rig.intake, small, LEAT_INTAKE_SMALL_BYTES);
    for (uint8_t i = 1; i < 4; i++)
        leat_intake_hold(&rig.intake, join(&rig, i, i, LEAT_NET_CLIENTS),
                         ROOM + LEAT_INTAKE_SMALLS_BYTES);
    assert_null(leat_intake_surplus(&rig.intake, LEAT_NET_CLIENTS));
    leat_intake_hold(&rig.intake, small, 2 * LEAT_INTAKE_SMALL_BYTES);
    leat_intake_hold(&rig.intake, small, LEAT_INTAKE_SMALL_BYTES);
    assert_null(leat_intake_surplus(&rig.intake, LEAT_NET_CLIENTS));
    rig_end(&rig, 4);
}

static void strangers_do_not_wait_and_the_oldest_goes(void **state)
{
    struct rig rig;
    (void)state;
    rig_make(&rig);
    for (unsigned i = 0; i < 3; i++) {
        struct leat_intake_member *member = join(&rig, i, 1, LEAT_NET_STRANGERS);
        assert_null(leat_intake_surplus(&rig.intake, LEAT_NET_STRANGERS));
        leat_intake_hold(&rig.intake, member, LITTLE);
        assert_true(leat_intake_grow(&rig.intake, member, ROOM));
        leat_intake_hold(&rig.intake, member, 4 * (ROOM / 10));
    }
    assert_ptr_equal(leat_intake_surplus(&rig.intake, LEAT_NET_STRANGERS), &rig.members[0]);
    leat_intake_account_set(&rig.intake, &rig.members[0], LEAT_NET_CLIENTS);
    assert_null(leat_intake_surplus(&rig.intake, LEAT_NET_STRANGERS));
    /* What strangers hold nobody else waits for. */
    assert_false(leat_intake_full(&rig.intake, join(&rig, 3, 2, LEAT_NET_CLIENTS)));
    assert_false(leat_intake_full(&rig.intake, join(&rig, 4, 1, LEAT_NET_NODES)));
    rig_end(&rig, 5);
}

/* ---- base/key_hash.h ---- */

enum { KEYS = 2000, PAIRS = 64, SLOTS = 4096 };

static unsigned fullest(const uint8_t (*keys)[LEAT_NET_KEY_BYTES], const struct leat_key_hash *hash)
{
    static unsigned counts[SLOTS];
    unsigned most = 0;
    uint32_t seed = (uint32_t)leat_xoshiro_next(&draws);
    memset(counts, 0, sizeof counts);
    for (unsigned i = 0; i < KEYS; i++) {
        uint32_t at =
            hash ? leat_key_hash(hash, keys[i]) : leat_crc32c(seed, keys[i], LEAT_NET_KEY_BYTES);
        if (++counts[at % SLOTS] > most) most = counts[at % SLOTS];
    }
    return most;
}

/* Addresses that have the same CRC, from any initial value: the sums of differences whose CRC is 0. */
static void aimed_make(uint8_t (*keys)[LEAT_NET_KEY_BYTES])
{
    static const uint8_t zeros[LEAT_NET_KEY_BYTES];
    uint32_t base = leat_crc32c(0, zeros, sizeof zeros), rows[PAIRS];
    uint8_t basis[PAIRS][LEAT_NET_KEY_BYTES] = {{0}}, null[PAIRS][LEAT_NET_KEY_BYTES];
    unsigned nulls = 0;
    for (unsigned i = 0; i < PAIRS; i++) { /* of 64 bits: what its owner may choose */
        basis[i][i / 8] = (uint8_t)(1 << i % 8);
        rows[i] = leat_crc32c(0, basis[i], LEAT_NET_KEY_BYTES) ^ base;
    }
    for (unsigned i = 0; i < PAIRS; i++) { /* Gauss: rows that come to 0 are such differences */
        if (rows[i] == 0) {
            memcpy(null[nulls++], basis[i], LEAT_NET_KEY_BYTES);
            continue;
        }
        uint32_t bit = rows[i] & -rows[i];
        for (unsigned j = i + 1; j < PAIRS; j++) {
            if (!(rows[j] & bit)) continue;
            rows[j] ^= rows[i];
            for (unsigned b = 0; b < LEAT_NET_KEY_BYTES; b++)
                basis[j][b] ^= basis[i][b];
        }
    }
    assert_true(nulls >= 11);
    for (unsigned i = 0; i < KEYS; i++)
        for (unsigned n = 0; n < 11; n++)
            for (unsigned b = 0; b < LEAT_NET_KEY_BYTES && i >> n & 1; b++)
                keys[i][b] ^= null[n][b];
}

static void addresses_that_are_chosen_for_it_do_not_collide(void **state)
{
    (void)state;
    static uint8_t keys[KEYS][LEAT_NET_KEY_BYTES];
    const struct leat_random random = {&draws, draw, NULL};
    leat_xoshiro_seed(&draws, 1);
    aimed_make(keys);
    assert_int_equal(fullest(keys, NULL), KEYS); /* all keys have the same CRC */
    for (unsigned round = 0; round < 200; round++) {
        struct leat_key_hash hash;
        leat_key_hash_init(&hash, &random);
        assert_true(fullest(keys, &hash) < 32);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(address_over_its_share_waits_and_others_go_on),
        cmocka_unit_test(full_account_lets_one_at_a_time_exceed_it),
        cmocka_unit_test(one_that_exceeds_takes_no_room_from_others),
        cmocka_unit_test(account_that_is_full_admits_one_large_member_more),
        cmocka_unit_test(addresses_that_wait_go_on_in_turn),
        cmocka_unit_test(addresses_that_are_chosen_for_it_do_not_collide),
        cmocka_unit_test(beginnings_past_their_limit_cost_the_oldest),
        cmocka_unit_test(one_that_exceeds_drives_no_beginnings_out),
        cmocka_unit_test(large_ones_beyond_the_limit_drive_no_beginnings_out),
        cmocka_unit_test(who_brings_nothing_loses_its_place_and_stands_behind),
        cmocka_unit_test(who_brings_too_little_loses_its_place_and_stands_behind),
        cmocka_unit_test(who_leaves_its_place_while_others_wait_stands_behind),
        cmocka_unit_test(who_holds_more_has_to_bring_more),
        cmocka_unit_test(blamed_addresses_leave_a_part_to_others),
        cmocka_unit_test(blamed_addresses_are_bounded),
        cmocka_unit_test(strangers_do_not_wait_and_the_oldest_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
