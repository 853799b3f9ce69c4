/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches by position, by fetch.c alone: what their readers are told, and when they wait. */
#include "tests/broker/fetch_rig.h"

static struct leat_fetch *by_position(void)
{
    struct leat_fetch *fetch = leat_fetch_begin(&it.peer, true, 1, 1, 1000, 0, NULL, NULL);
    fetch->number = 5;
    (void)leat_fetch_add(fetch,
                         &(struct leat_msg_fetch_log){.log = {ALONE_STREAM, 1, 0},
                                                      .epoch = 9,
                                                      .offset = 40,
                                                      .by_position = true,
                                                      .position = {3, 2, 1}},
                         1000);
    said_enough();
    return fetch;
}

/* Goal: a reader by position is told so; nothing is said of an offset for which the reader did not ask, nor are
 * coordinators asked about it. */
static void reader_by_position_hears_nothing_of_offsets(void **state)
{
    (void)state;
    begin();
    it.clustered = true;
    has(0, LEAT_E_OFFSET_OUT_OF_RANGE, 0);
    it.results[0].acked_offset = 39;
    struct leat_fetch *fetch = by_position();
    assert_int_equal(fetch->items->result.next.segment, 2);
    leat_fetch_start(fetch);
    assert_null(it.confirm);
    assert_said("answer 5, with 0 bytes\n"
                "  OFFSET_OUT_OF_RANGE 0 bytes, 5 to 39, by position\n"
                "leave\n");
    end();
}

/* Goal: at the end of its segment group a reader by position hears at once where it goes on, though no records are
 * there yet. In its group it waits, and a reader by offset waits in any case. */
static void reader_at_the_end_of_its_group_does_not_wait(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t group = i == 0 ? 3 : 4;
        begin();
        it.results[0].next = (struct leat_position){group, group * LEAT_SEGMENTS_PER_GROUP, 0};
        struct leat_fetch *fetch = by_position();
        fetch->items->want.by_position = fetch->items->result.by_position = i != 2;
        fetch->over_deadline = false;
        leat_fetch_start(fetch);
        assert_said(i != 1 ? "wait until 0\n"
                           : "answer 5, with 0 bytes\n"
                             "  OK 0 bytes, 5 to 60, by position\n"
                             "leave\n");
        if (i != 1) {
            fetch->over_deadline = true;
            leat_fetch_wake(fetch);
            leat_fetch_run(fetch);
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reader_by_position_hears_nothing_of_offsets),
        cmocka_unit_test(reader_at_the_end_of_its_group_does_not_wait),
    };
    return cmocka_run_group_tests_name("broker fetch_place", tests, NULL, NULL);
}
