/* SPDX-License-Identifier: Apache-2.0 */
/* A log whose server has no memory left for what another stored segment takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "steps.h"

enum { SECOND_US = 1000 * 1000 };

static bool full, spent;
static unsigned asked;

static bool memory_is_full(void *owner, bool spare, uint64_t takes)
{
    (void)owner;
    asked++;
    assert_true(takes > 0);
    return spare ? spent : full;
}

static struct fake *full_create(uint64_t seed)
{
    struct fake *fake = fake_create(seed, LEAT_DURABILITY_MEMORY);
    full = spent = false;
    fake->options.memory_is_full = memory_is_full;
    fake->options.settings.segment_bytes_max = LEAT_SEGMENT_BYTES_MIN;
    return fake;
}

/* Until the head has no room, and what stands in front of it has not either. Returns the last answer. */
static leat_err fill(struct fake *fake)
{
    struct sent sent;
    leat_err rc;
    while ((rc = append(fake, &sent, 1, 1000, -1, -1, -1)) == LEAT_OK)
        fake_settle(fake);
    fake_settle(fake);
    return rc;
}

static unsigned segments(const struct fake *fake)
{
    struct leat_log_info info;
    leat_log_info(fake->log, &info);
    return (unsigned)info.segment_count;
}

static void pass_a_second(struct fake *fake)
{
    fake->now_us += SECOND_US;
    leat_log_care(fake->log);
    fake_settle(fake);
}

/* Goal: appends are refused by name, and not before the head is full; reads go on. A refused append is looked at again
 * once a second, and taken when there is room. */
static void full_refuses_appends_by_name_until_there_is_room(void **state)
{
    (void)state;
    struct fake *fake = full_create(1);
    struct sent sent;
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 1000);
    full = true;
    assert_int_equal(fill(fake), LEAT_E_NO_MEMORY);
    assert_int_equal(leat_err_class(LEAT_E_NO_MEMORY), LEAT_CLASS_RETRY);
    assert_int_equal(segments(fake), 1);
    assert_true(fake->log->head.writer.used > LEAT_SEGMENT_BYTES_MIN / 2);
    asked = 0;
    for (int i = 0; i < 50; i++)
        assert_int_equal(append(fake, &sent, 1, 1000, -1, -1, -1), LEAT_E_NO_MEMORY);
    assert_int_equal(asked, 0);
    for (unsigned i = 1; i <= 5; i++) {
        pass_a_second(fake);
        for (int j = 0; j < 10; j++)
            assert_int_equal(append(fake, &sent, 1, 1000, -1, -1, -1), LEAT_E_NO_MEMORY);
        assert_int_equal(asked, i);
    }
    uint8_t *buffer = aligned_alloc(4096, 64 * 1024);
    struct leat_read read = {.from = {0}};
    assert_int_equal(read_once(fake, &read, buffer), LEAT_OK);
    free(buffer);
    full = false;
    assert_int_equal(append(fake, &sent, 1, 1000, -1, -1, -1), LEAT_E_NO_MEMORY);
    pass_a_second(fake);
    must_append(fake, 1, 1000);
    assert_int_equal(segments(fake), 2);
    fake_destroy(fake);
}

/* Goal: the sentence says what to do. */
static void full_names_cause_and_fix(void **state)
{
    (void)state;
    struct fake *fake = full_create(2);
    struct leat_batch batch;
    struct leat_error error = {0};
    struct leat_append append = {.on_acked = on_answer};
    fake_open(fake, NULL, 0, NULL);
    full = true;
    assert_int_equal(fill(fake), LEAT_E_NO_MEMORY);
    uint32_t count = fake_batch(bytes, sizeof bytes, 1, 100, fake_wall(fake), -1, -1, -1);
    assert_int_equal(leat_batch_check(bytes, count, &batch, &error), LEAT_OK);
    assert_int_equal(leat_log_append(fake->log, &batch, &append, &error), LEAT_E_NO_MEMORY);
    assert_non_null(strstr(error.text, "memory budget"));
    assert_non_null(strstr(error.text, "delete streams"));
    assert_non_null(strstr(error.text, "larger --memory"));
    fake_destroy(fake);
}

/* Goal: expired segments go, though the head is full and the entry that gives them up needs another segment. */
static void full_lets_what_has_expired_go(void **state)
{
    (void)state;
    struct fake *fake = full_create(3);
    fake->options.settings.retention_ms = 60 * 1000;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 1, 1000);
    assert_true(segments(fake) > 4);
    full = true;
    assert_int_equal(fill(fake), LEAT_E_NO_MEMORY);
    uint64_t drops = fake->drops;
    for (int i = 0; i < 70; i++)
        pass_a_second(fake);
    assert_true(fake->drops > drops + 4);
    assert_in_range(segments(fake), 1, 2);
    fake_destroy(fake);
}

/* Goal: a log that has as much as its retention allows rolls on, since each new segment makes an old segment go. */
static void full_lets_a_log_at_its_size_go_on(void **state)
{
    (void)state;
    struct fake *fake = full_create(4);
    fake->options.settings.retention_bytes = 60000;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 1, 1000);
    unsigned before = segments(fake);
    full = true;
    for (int i = 0; i < 200; i++) {
        must_append(fake, 1, 1000);
        assert_true(segments(fake) <= before + 1);
    }
    fake_destroy(fake);
}

static void on_trimmed(struct leat_log_trim *trim, leat_err rc)
{
    *(leat_err *)trim->owner = rc;
}

/* Goal: records can be given up by request, also while appends are refused; where even the last is spent that is
 * refused by name, and nothing waits for ever. */
static void full_lets_records_be_given_up(void **state)
{
    (void)state;
    struct fake *fake = full_create(5);
    struct leat_error error;
    struct sent sent;
    fake_open(fake, NULL, 0, NULL);
    for (int i = 0; i < 100; i++)
        must_append(fake, 1, 1000);
    full = spent = true;
    assert_int_equal(fill(fake), LEAT_E_NO_MEMORY);
    for (int i = 0; i < 2; i++) {
        pass_a_second(fake);
        if (spent) assert_int_equal(append(fake, &sent, 1, 1000, -1, -1, -1), LEAT_E_NO_MEMORY);
        unsigned before = segments(fake);
        leat_err rc = LEAT_E_AGAIN;
        struct leat_log_trim trim = {.before = 90, .on_done = on_trimmed, .owner = &rc};
        assert_int_equal(leat_log_trim_before(fake->log, &trim, &error), LEAT_OK);
        fake_settle(fake);
        assert_int_equal(rc, spent ? LEAT_E_NO_MEMORY : LEAT_OK);
        if (!spent) assert_true(segments(fake) < before - 3);
        spent = false;
    }
    fake_destroy(fake);
}

/* Goal: a log that hibernates and wakes takes no segment, and is not refused. */
static void full_lets_a_hibernated_head_go_on(void **state)
{
    (void)state;
    struct fake *fake = full_create(6);
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 100);
    full = spent = true;
    asked = 0;
    for (int i = 0; i < 3; i++) {
        fake->now_us += fake->options.hibernate_after_us;
        pass_a_second(fake);
        assert_int_equal(fake->log->hibernating, LOG_HIBERNATED);
        must_append(fake, 1, 100);
    }
    assert_int_equal(asked, 0);
    fake_destroy(fake);
}

static leat_err append_first_of(struct fake *fake, int64_t producer)
{
    struct sent sent;
    leat_err rc = append(fake, &sent, 1, 10, producer, 0, 0);
    fake_settle(fake);
    return rc == LEAT_E_AGAIN ? append(fake, &sent, 1, 10, producer, 0, 0) : rc;
}

/* Goal: new producers are refused by name when their table would have to grow. Known producers go on, as does every
 * append without a producer. */
static void full_refuses_producers_that_are_new(void **state)
{
    (void)state;
    struct fake *fake = full_create(7);
    struct sent sent;
    fake_open(fake, NULL, 0, NULL);
    must_append(fake, 1, 10);
    full = true;
    int64_t known = 0;
    leat_err rc;
    while ((rc = append_first_of(fake, known)) == LEAT_OK)
        known++;
    assert_int_equal(rc, LEAT_E_NO_MEMORY);
    assert_in_range(known, 4, 16);
    asked = 0;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(append_first_of(fake, known + i), LEAT_E_NO_MEMORY);
        assert_int_equal(append(fake, &sent, 1, 10, i % known, 0, 1 + i / (int)known), LEAT_OK);
        must_append(fake, 1, 10);
    }
    assert_int_equal(asked, 0);
    full = false;
    pass_a_second(fake);
    for (int i = 0; i < 20; i++)
        assert_int_equal(append_first_of(fake, known + i), LEAT_OK);
    fake_destroy(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_refuses_appends_by_name_until_there_is_room),
        cmocka_unit_test(full_names_cause_and_fix),
        cmocka_unit_test(full_lets_what_has_expired_go),
        cmocka_unit_test(full_lets_a_log_at_its_size_go_on),
        cmocka_unit_test(full_lets_records_be_given_up),
        cmocka_unit_test(full_lets_a_hibernated_head_go_on),
        cmocka_unit_test(full_refuses_producers_that_are_new),
    };
    return cmocka_run_group_tests_name("multilog full", tests, NULL, NULL);
}
