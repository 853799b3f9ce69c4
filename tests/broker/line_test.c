/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of connections by themselves: whose turn is next, and what a line without members is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "broker/net/output.h"

enum { ADDRESSES = 3, EACH = 3 };

static struct {
    struct leat_line line;
    struct leat_queue queues[ADDRESSES];
    struct leat_list members[ADDRESSES][EACH];
    char text[128];
} it;

static void begin(void)
{
    leat_line_init(&it.line);
    for (unsigned a = 0; a < ADDRESSES; a++) {
        leat_queue_init(&it.queues[a]);
        for (unsigned m = 0; m < EACH; m++)
            leat_list_init(&it.members[a][m]);
    }
}

static void join(unsigned address, unsigned member, bool first)
{
    leat_line_join(&it.line, &it.queues[address], &it.members[address][member], first);
}

/* As those who call connections: the first member of the first address has its turn. */
static void turn(void)
{
    struct leat_queue *queue = leat_queue_of(it.line.ring.next);
    struct leat_list *member = queue->members.next;
    leat_line_turn(&it.line, queue);
    leat_line_leave(queue, member);
}

static void put(const char *words)
{
    size_t used = strlen(it.text);
    snprintf(it.text + used, sizeof it.text - used, "%s", words);
}

static void put_members(const struct leat_queue *queue)
{
    long address = queue - it.queues;
    assert_in_range(address, 0, ADDRESSES - 1);
    unsigned count = 0;
    for (const struct leat_list *at = queue->members.next; at != &queue->members; at = at->next) {
        assert_true(count < EACH);
        if (count++ > 0) put(" ");
        char name[] = {(char)('a' + address), (char)('0' + (at - it.members[address])), '\0'};
        put(name);
    }
    if (count == 0) put("nobody");
}

/* "a0 a1, b0": addresses in the order of their turns, and their members. The walk back must meet as many. */
static void assert_line(const char *expected)
{
    unsigned there = 0, back = 0;
    it.text[0] = '\0';
    for (struct leat_list *ring = it.line.ring.next; ring != &it.line.ring; ring = ring->next) {
        assert_true(there < ADDRESSES);
        if (there++ > 0) put(", ");
        put_members(leat_queue_of(ring));
    }
    for (struct leat_list *ring = it.line.ring.prev; ring != &it.line.ring; ring = ring->prev)
        assert_true(back++ < there);
    assert_string_equal(it.text, expected);
    assert_int_equal(back, there);
    assert_int_equal(leat_line_empty(&it.line), there == 0);
}

static void addresses_have_turns(void **state)
{
    (void)state;
    begin();
    assert_line("");
    join(0, 0, false);
    join(0, 1, false);
    join(1, 0, false);
    join(0, 2, false);
    assert_line("a0 a1 a2, b0");
    turn();
    assert_line("b0, a1 a2");
    turn();
    assert_line("a1 a2");
    join(2, 0, false);
    turn();
    assert_line("c0, a2");
    leat_line_leave(&it.queues[0], &it.members[0][2]);
    assert_line("c0");
    leat_line_leave(&it.queues[0], &it.members[0][2]); /* it is in no line */
    assert_line("c0");
    turn();
    assert_line("");
}

/* Goal: neither the member that was called in vain nor its address loses its place, wherever the address is in line
 * meanwhile. */
static void member_that_was_called_in_vain_is_first_again(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        begin();
        join(0, 0, false);
        if (more) join(0, 1, false);
        join(1, 0, false);
        turn();
        assert_line(more ? "b0, a1" : "b0");
        join(0, 0, true);
        assert_line(more ? "a0 a1, b0" : "a0, b0");
        turn();
        turn();
        assert_line(more ? "a1" : "");
    }
}

/* Goal: an address whose last member left before the turn's end is not put back into the line. */
static void address_without_members_has_no_turn(void **state)
{
    (void)state;
    begin();
    join(0, 0, false);
    join(1, 0, false);
    leat_line_leave(&it.queues[0], &it.members[0][0]);
    leat_line_turn(&it.line, &it.queues[0]);
    assert_line("b0");
    leat_line_leave(&it.queues[1], &it.members[1][0]);
    leat_line_turn(&it.line, &it.queues[1]);
    assert_line("");
}

/* Goal: a core looks for room as long as anybody waits, in whichever line. */
static void core_knows_of_members_in_each_of_its_lines(void **state)
{
    (void)state;
    static struct leat_output output;
    for (unsigned line = 0; line < LEAT_OUTPUT_LINES; line++)
        leat_line_init(&output.lines[line]);
    assert_false(leat_output_crowded(&output));
    for (unsigned line = 0; line < LEAT_OUTPUT_LINES; line++) {
        begin();
        leat_line_join(&output.lines[line], &it.queues[0], &it.members[0][0], false);
        assert_true(leat_output_crowded(&output));
        leat_line_leave(&it.queues[0], &it.members[0][0]);
        assert_false(leat_output_crowded(&output));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_have_turns),
        cmocka_unit_test(member_that_was_called_in_vain_is_first_again),
        cmocka_unit_test(address_without_members_has_no_turn),
        cmocka_unit_test(core_knows_of_members_in_each_of_its_lines),
    };
    return cmocka_run_group_tests_name("broker line", tests, NULL, NULL);
}
