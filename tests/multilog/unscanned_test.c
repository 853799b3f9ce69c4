/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a last segment that says nonsense, in a log that is opened, with a scan of the segment that accepts
 * everything. The scan (wire/scan.c) looks at each entry before: here a log that wakes has only its own checks. */
#include "start_rig.h"

/* In the place of wire/scan.c. */
void leat_scan_segment(const uint8_t *segment, uint32_t count, struct leat_scan *out_scan)
{
    struct leat_entry trailer;
    memcpy(&trailer, segment + count - LEAT_ENTRY_HEADER_BYTES, sizeof trailer);
    *out_scan = (struct leat_scan){.bytes = count, .crc = trailer.crc, .started = true};
}

static void entries_that_are_nonsense_are_refused_without_the_scan(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof nonsense / sizeof *nonsense; i++)
        if (!nonsense[i].no_start) opened(&nonsense[i], false, i % 2 == 1);
    TRACE_IS("three producers\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 4 producers\n"
             "some were forgotten, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 4 producers expired\n"
             "fewer than there are\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 3 producers\n"
             "more than there are, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n"
             "many more\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n"
             "state of others that is not there, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n"
             "state of others\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 3 producers\n"
             "a byte more of it, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n"
             "a producer of no id\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n"
             "more than a block of them, in memory\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 0, from 6/60, told 60, missing 0 to 0, 61 producers\n"
             "a batch that is none\n"
             "  opened: state 0 cold, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  woken: state 2, from 6/60, told 60, missing 0 to 0, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n"
             "too short, in memory\n"
             "  opened: state 0 cold, from 0/0, told 0, missing 6 to 60, 0 producers\n"
             "  woken: state 2, from 0/0, told 0, missing 6 to 60, 0 producers\n"
             "  segment 8 is damaged: its start entry can't be understood\n");
}

/* Goal: a trim entry of another size trims nothing, neither when the log is opened nor when it wakes. */
static void trim_entry_of_another_size_trims_nothing(void **state)
{
    (void)state;
    const struct says says = {.what = "trimmed by a shorter entry",
                              .first_segment = 5,
                              .first_offset = 50,
                              .trim_segment = 7,
                              .trim_offset = 70,
                              .short_trim = true};
    opened(&says, false, false);
    opened(&says, false, true);
    TRACE_IS("trimmed by a shorter entry\n"
             "  opened: state 0 cold, from 5/50, told 50, missing 1 to 60, 0 producers\n"
             "  woken: state 0, from 5/50, told 50, missing 1 to 60, 1 producers\n"
             "trimmed by a shorter entry, in memory\n"
             "  opened: state 0 cold, from 5/50, told 50, missing 1 to 60, 0 producers\n"
             "  woken: state 0, from 5/50, told 50, missing 1 to 60, 1 producers\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(entries_that_are_nonsense_are_refused_without_the_scan),
        TRACE_TEST(trim_entry_of_another_size_trims_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
