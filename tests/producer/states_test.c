/* SPDX-License-Identifier: Apache-2.0 */
/* The states of what a producer knows of a stream: each step from one to another is tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "producer/internal.h"
#include "tests/broken.h"

/* Goal: the state of a stream takes the steps of the diagram in producer/README.md and no others. */
static void steps_are_checked(void **state)
{
    (void)state;
    static struct leat_producer_stream stream;
    static const char *const may[] = {
        [STREAM_UNKNOWN] = "ULK", [STREAM_LOOKING] = "U..", [STREAM_KNOWN] = "UL."};
    assert_steps(stream.state, may, "follow[stream->state] & 1u << to",
                 leat_producer_stream_enter(&stream, step_to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_are_checked)};
    return cmocka_run_group_tests_name("producer states", tests, NULL, NULL);
}
