/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which waiting members get their turns. */
#include "broker/net/turns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MIB = 1024 * 1024, MANY = 64, BOMB = 16 * MIB };

static struct leat_turns turns;
static struct leat_turn all[MANY + 1];

static void begin(void)
{
    leat_turns_init(&turns);
    for (unsigned i = 0; i <= MANY; i++)
        leat_turn_init(&all[i]);
}

/* Whose turn it is goes, uses so much, and waits again. */
static unsigned serve(uint64_t cost)
{
    struct leat_turn *turn = leat_turns_next(&turns);
    assert_non_null(turn);
    leat_turns_leave(&turns, turn);
    leat_turns_charge(&turns, turn, cost);
    leat_turns_wait(&turns, turn);
    return (unsigned)(turn - all);
}

static void who_uses_much_is_passed_over_until_others_had_as_much(void **state)
{
    (void)state;
    begin();
    leat_turns_wait(&turns, &all[0]);
    leat_turns_wait(&turns, &all[1]);
    uint64_t had[2] = {0};
    for (int i = 0; i < 1000; i++) {
        bool costly = leat_turns_next(&turns) == &all[0];
        uint64_t cost = costly ? BOMB : MIB / 2;
        had[serve(cost)] += cost;
    }
    assert_true(had[0] > 20 * (uint64_t)BOMB);
    uint64_t more = had[0] > had[1] ? had[0] - had[1] : had[1] - had[0];
    assert_true(more <= 2 * (uint64_t)BOMB);
}

static void one_who_asks_for_little_does_not_wait_for_many_who_ask_for_much(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < MANY; i++)
        leat_turns_wait(&turns, &all[i]);
    for (unsigned i = 0; i < 5 * MANY + 7; i++)
        (void)serve(BOMB);
    for (unsigned round = 0; round < 3 * MANY;
         round++) { /* new, then known, whatever the others' order */
        leat_turns_wait(&turns, &all[MANY]);
        assert_ptr_equal(leat_turns_next(&turns), &all[MANY]);
        leat_turns_leave(&turns, &all[MANY]);
        leat_turns_charge(&turns, &all[MANY], 1000);
        assert_true(serve(BOMB) < MANY);
    }
    uint64_t least = UINT64_MAX, most = 0;
    for (unsigned i = 0; i < MANY; i++) {
        if (all[i].used < least) least = all[i].used;
        if (all[i].used > most) most = all[i].used;
    }
    assert_true(most - least <= BOMB); /* they had their turns in order */
}

/* Were it not so, whoever comes back after a while would keep all others waiting. */
static void credit_has_a_limit(void **state)
{
    (void)state;
    begin();
    leat_turns_wait(&turns, &all[0]);
    for (int i = 0; i < 1000; i++)
        (void)serve(BOMB);
    leat_turns_wait(&turns, &all[1]);
    unsigned ahead = 0;
    while (leat_turns_next(&turns) == &all[1]) {
        (void)serve(BOMB);
        ahead++;
    }
    assert_in_range(ahead, 1, 2);
}

static void what_was_used_alone_is_no_debt(void **state)
{
    (void)state;
    begin();
    for (int i = 0; i < 1000; i++)
        leat_turns_charge(&turns, &all[0], BOMB);
    leat_turns_wait(&turns, &all[0]);
    leat_turns_wait(&turns, &all[1]);
    unsigned others = 0;
    while (leat_turns_next(&turns) == &all[1]) {
        (void)serve(MIB);
        others++;
    }
    assert_true(others > 0 && others <= BOMB / MIB + 1);
}

/* Whatever one piece of work costs: who has used more than all rounds hold comes last, and not as if it had used
 * little. */
static void debt_has_a_limit(void **state)
{
    (void)state;
    begin();
    leat_turns_wait(&turns, &all[0]);
    leat_turns_wait(&turns, &all[1]);
    leat_turns_charge(&turns, &all[0], (LEAT_TURNS_ROUNDS + 2) * (uint64_t)LEAT_TURNS_ROUND_COST);
    unsigned others = 0;
    while (leat_turns_next(&turns) == &all[1]) {
        (void)serve(LEAT_TURNS_ROUND_COST);
        others++;
    }
    assert_in_range(others, LEAT_TURNS_ROUNDS - 4, LEAT_TURNS_ROUNDS);
}

static void who_leaves_is_not_called(void **state)
{
    (void)state;
    begin();
    assert_null(leat_turns_next(&turns));
    for (unsigned i = 0; i < 3; i++)
        leat_turns_wait(&turns, &all[i]);
    leat_turns_wait(&turns, &all[1]); /* it does already */
    leat_turns_charge(&turns, &all[0], BOMB);
    leat_turns_leave(&turns, &all[1]);
    leat_turns_leave(&turns, &all[1]);
    assert_ptr_equal(leat_turns_next(&turns), &all[2]);
    leat_turns_leave(&turns, &all[2]);
    assert_ptr_equal(leat_turns_next(&turns), &all[0]);
    leat_turns_leave(&turns, &all[0]);
    assert_null(leat_turns_next(&turns));
    assert_int_equal(turns.count, 0);
}

/* Goal: the clock never goes back: neither when a member that waits is found in the clock's own round, nor when a
 * member alone has used less than others had. */
static void clock_does_not_go_back(void **state)
{
    (void)state;
    begin();
    leat_turns_charge(&turns, &all[0], LEAT_TURNS_CREDIT + MIB / 2); /* alone: the clock follows */
    const uint64_t now = turns.now;
    assert_int_equal(now, LEAT_TURNS_CREDIT + MIB / 2);
    leat_turns_wait(&turns, &all[0]);
    assert_ptr_equal(leat_turns_next(&turns), &all[0]);
    assert_int_equal(turns.now, now);
    leat_turns_leave(&turns, &all[0]);
    leat_turns_charge(&turns, &all[1], MIB);
    assert_int_equal(turns.now, now);
}

/* Goal: what is charged to a member counts from its credit on, also where the member has used nothing for long; and is
 * no more than fits into the rounds. */
static void charge_counts_from_the_credit_on(void **state)
{
    (void)state;
    begin();
    leat_turns_charge(&turns, &all[0], 1000 * (uint64_t)MIB);
    const uint64_t least = turns.now - LEAT_TURNS_CREDIT;
    leat_turns_wait(&turns, &all[2]);
    leat_turns_charge(&turns, &all[1], MIB);
    leat_turns_wait(&turns, &all[1]);
    assert_int_equal(all[1].used, least + MIB);
    leat_turns_charge(&turns, &all[1], 1000 * (uint64_t)MIB);
    assert_int_equal(all[1].used, least + (LEAT_TURNS_ROUNDS - 2) * (uint64_t)MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_uses_much_is_passed_over_until_others_had_as_much),
        cmocka_unit_test(one_who_asks_for_little_does_not_wait_for_many_who_ask_for_much),
        cmocka_unit_test(credit_has_a_limit),
        cmocka_unit_test(what_was_used_alone_is_no_debt),
        cmocka_unit_test(debt_has_a_limit),
        cmocka_unit_test(who_leaves_is_not_called),
        cmocka_unit_test(clock_does_not_go_back),
        cmocka_unit_test(charge_counts_from_the_credit_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
