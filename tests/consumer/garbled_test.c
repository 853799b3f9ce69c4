/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's engine where bits flip in the batches of answers, and where offsets jump as if a bit had flipped. */
#include "tests/consumer/engine_rig.h"

#include <string.h>

/* Goal: all records are read once and in order though bits flip in the batches of answers, base offsets and lengths
 * included, which no CRC covers: no record has other bytes, another offset, or is left out. Method: 200 seeds. */
static void consumer_flipped_bits_are_fetched_again(void **state)
{
    (void)state;
    uint64_t flipped = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct rig *rig = rig_make(seed, LEAT_ENGINE_EARLIEST, 0);
        rig->world.faults = (struct fake_faults){.flip = 300};
        fill(rig, 300);
        assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_read));
        assert_int_equal(rig->read, rig->wanted);
        assert_int_equal(rig->skipped, 0);
        assert_int_equal(rig->errors, 0);
        flipped += rig->world.flipped;
        rig_end(rig);
    }
    assert_true(flipped > 500);
}

/* Goal: a consumer each of whose answers is damaged ends, and says why. */
static void consumer_ends_if_each_answer_is_damaged(void **state)
{
    (void)state;
    struct rig *rig = rig_make(1, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 4);
    rig->world.log[0].batches[0].bytes[70] ^= 1;
    assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, failed));
    assert_int_equal(rig->error_rc, LEAT_E_CORRUPT);
    assert_non_null(strstr(
        rig->text, "stream s streamlet 0 log 0 at offset 0: each answer is damaged on its way"));
    assert_int_equal(rig->next[0], 0);
    rig_end(rig);
}

/* Goal: offsets that were given up are passed over: the second answer confirms what the first one says. */
static void consumer_passes_over_offsets_that_were_given_up(void **state)
{
    (void)state;
    struct rig *rig = rig_make(1, LEAT_ENGINE_EARLIEST, 0);
    fill(rig, 20);
    rig->world.log[1].end += 1000;
    fill(rig, 40);
    rig->world.log[1].end += 50;
    fill(rig, 40);
    assert_true(fake_run(&rig->world, rig->world.now_us + 60000000, all_read));
    assert_int_equal(rig->read, rig->wanted);
    assert_int_equal(rig->skipped, 1050);
    assert_int_equal(rig->errors + rig->notes, 0);
    rig_end(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumer_flipped_bits_are_fetched_again),
        cmocka_unit_test(consumer_ends_if_each_answer_is_damaged),
        cmocka_unit_test(consumer_passes_over_offsets_that_were_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
