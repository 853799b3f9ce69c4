/* SPDX-License-Identifier: Apache-2.0 */
/* LOG_BELOW: which copy of a segment that nothing names is taken, where nodes have different ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/ownership/below.h"
#include "store/segment.h"

enum { SHORT_BYTES = 4096, LONG_BYTES = 8192 };
static const struct leat_prefix_id brief = {SHORT_BYTES, 0x11111111},
                                   whole = {LONG_BYTES, 0x22222222};

static void add(struct leat_below_found *found, unsigned nodes, uint64_t segment, uint32_t epoch,
                struct leat_prefix_id prefix_id)
{
    for (unsigned i = 0; i < nodes; i++)
        leat_below_add(found, segment, epoch, prefix_id);
}

static void assert_best(const struct leat_below_found *found, struct leat_prefix_id wanted)
{
    struct leat_prefix_id prefix_id = leat_below_best(found);
    assert_int_equal(prefix_id.bytes, wanted.bytes);
    assert_int_equal(prefix_id.crc, wanted.crc);
}

static void below_newest_segment_counts_alone(void **state)
{
    (void)state;
    struct leat_below_found found = {0};
    add(&found, 3, 4, 9, brief);
    add(&found, 1, 5, 2, whole);
    add(&found, 3, 3, 9, brief);
    assert_int_equal(found.segment, 5);
    assert_int_equal(found.count, 1);
    assert_best(&found, whole);
}

/* Nothing that was said of an older segment counts for the newer one, not even where both have the same bytes. */
static void below_each_segment_is_counted_anew(void **state)
{
    (void)state;
    struct leat_below_found found = {0};
    add(&found, 3, 4, 9, brief);
    add(&found, 1, 5, 9, brief);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.candidates[0].nodes, 1);
}

/* What an operator gave up and another owner wrote anew, however many nodes come back with it. */
static void below_later_owners_copy_counts_before_many_of_an_older_one(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 2; order++) {
        struct leat_below_found found = {0};
        if (order == 0) add(&found, 1, 5, 4, brief);
        add(&found, 3, 5, 3, whole);
        if (order == 1) add(&found, 1, 5, 4, brief);
        assert_int_equal(found.epoch, 4);
        assert_int_equal(found.count, 1);
        assert_best(&found, brief);
        assert_false(leat_below_pass(&found)); /* nor when nobody gives the later one out */
    }
}

static void below_of_one_owner_what_most_nodes_have_counts(void **state)
{
    (void)state;
    struct leat_below_found found = {0};
    add(&found, 1, 5, 4, whole);
    add(&found, 2, 5, 4, brief);
    assert_best(&found, brief);
    add(&found, 2, 5, 4, whole);
    assert_best(&found, whole);
}

static void below_tie_goes_to_the_longer_copy(void **state)
{
    (void)state;
    for (unsigned order = 0; order < 2; order++) {
        struct leat_below_found found = {0};
        add(&found, 2, 5, 4, order ? whole : brief);
        add(&found, 2, 5, 4, order ? brief : whole);
        assert_best(&found, whole);
    }
}

/* Torn, or a lie: it was claimed, and no node gives it out. */
static void below_copy_that_no_node_gives_out_makes_way(void **state)
{
    (void)state;
    struct leat_below_found found = {0};
    add(&found, 2, 5, 4, whole);
    add(&found, 1, 5, 4, brief);
    assert_best(&found, whole);
    assert_true(leat_below_pass(&found));
    assert_best(&found, brief);
    assert_false(leat_below_pass(&found)); /* the last one is looked for on */
    assert_best(&found, brief);
}

static void below_what_no_segment_can_be_is_passed_over(void **state)
{
    (void)state;
    struct leat_below_found found = {0};
    add(&found, 3, 9, 9, (struct leat_prefix_id){0, 0});
    add(&found, 3, 9, 9, (struct leat_prefix_id){LEAT_ENTRY_HEADER_BYTES - 1, 1});
    add(&found, 3, 9, 9, (struct leat_prefix_id){LEAT_SEGMENT_BYTES_MAX + 1, 1});
    assert_int_equal(found.count, 0);
    add(&found, 1, 5, 4, brief);
    assert_best(&found, brief);
}

/* Many that differ: of those beyond the bound nothing is known, and none is written past the table. */
static void below_more_than_fit_leaves_the_first_ones(void **state)
{
    (void)state;
    struct leat_below_found found = {0};
    for (uint32_t i = 0; i < 2 * LEAT_BELOW_CANDIDATES_MAX; i++)
        add(&found, 1, 5, 4, (struct leat_prefix_id){SHORT_BYTES + i, i});
    assert_int_equal(found.count, LEAT_BELOW_CANDIDATES_MAX);
    add(&found, 1, 5, 5, whole); /* a later owner's comes in all the same */
    assert_int_equal(found.count, 1);
    assert_best(&found, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(below_newest_segment_counts_alone),
        cmocka_unit_test(below_each_segment_is_counted_anew),
        cmocka_unit_test(below_later_owners_copy_counts_before_many_of_an_older_one),
        cmocka_unit_test(below_of_one_owner_what_most_nodes_have_counts),
        cmocka_unit_test(below_tie_goes_to_the_longer_copy),
        cmocka_unit_test(below_copy_that_no_node_gives_out_makes_way),
        cmocka_unit_test(below_what_no_segment_can_be_is_passed_over),
        cmocka_unit_test(below_more_than_fit_leaves_the_first_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
