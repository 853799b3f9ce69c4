/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a log's owner to a home that asks about the log's segment groups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "broker/admin/calls.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/net/core.h"
#include "tests/multilog/reopen.h"

static struct leat_segment_group_query ask(const struct fake *fake, uint64_t group)
{
    struct leat_partition partition = {.ref = fake->options.ref, .log = fake->log};
    struct leat_partition *table[] = {&partition};
    struct leat_core_data data = {.partitions = table};
    struct leat_core core = {.data = &data};
    struct leat_segment_group_query query = {.rc = LEAT_E_INVALID};
    leat_segment_group_look(&core, partition.ref, group, &query);
    return query;
}

/* Goal: a log that has come with its last segment alone, whose first block has not been read yet, does not say that the
 * log begins with this segment: a consumer group would take all earlier segment groups as read. */
static void group_of_a_log_that_does_not_know_where_it_begins_is_not_told(void **state)
{
    (void)state;
    struct fake *fake = log_of(2 * LEAT_SEGMENTS_PER_GROUP + 1);
    fake->backfill_follows = true;
    reopen(fake, (UINT64_C(1) << 2 * LEAT_SEGMENTS_PER_GROUP) - 1, 0, true);
    assert_int_equal(info_of(fake).first_group, 2);
    assert_int_equal(ask(fake, 0).rc, LEAT_E_STARTING);
    fake_settle(fake);
    struct leat_segment_group_query query = ask(fake, 0);
    assert_int_equal(query.rc, LEAT_OK);
    assert_int_equal(query.first_group, 0);
    assert_true(query.end_offset > 0);
    fake_destroy(fake);
}

/* Goal: a log that lacks its end does not say where its segment groups end. */
static void group_of_a_log_that_lacks_its_end_is_not_told(void **state)
{
    (void)state;
    struct fake *fake = log_of(LEAT_SEGMENTS_PER_GROUP - 1);
    reopen(fake, 0, 0, true);
    fake_settle(fake);
    assert_int_equal(ask(fake, 0).rc, LEAT_OK);
    leat_log_set_state(fake->log, LEAT_LOG_WAITING, "its end is missing");
    assert_int_equal(ask(fake, 0).rc, LEAT_E_LOG_INCOMPLETE);
    fake_destroy(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_of_a_log_that_does_not_know_where_it_begins_is_not_told),
        cmocka_unit_test(group_of_a_log_that_lacks_its_end_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
