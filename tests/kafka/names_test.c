/* SPDX-License-Identifier: Apache-2.0 */
/* The first of many names, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "kafka/handlers/names.h"

enum { NAMES = 1000, NAME_BYTES = 16 };

static struct leat_kafka_string text_of(char at[NAME_BYTES], unsigned i)
{
    int bytes = snprintf(at, NAME_BYTES, "n%u", i);
    return (struct leat_kafka_string){at, bytes};
}

static int by_text(const void *a, const void *b)
{
    return leat_kafka_name_order(*(const struct leat_kafka_string *)a,
                                 *(const struct leat_kafka_string *)b);
}

/* Goal: the first names of the sorted order are kept, in whatever order the names come, also where some come twice. */
static void the_first_of_many_are_kept_in_order(void **state)
{
    static const uint32_t mosts[] = {0, 1, 2, 3, 200, NAMES - 1, NAMES, NAMES + 1};
    static char texts[NAMES][NAME_BYTES];
    static struct leat_kafka_string all[NAMES];
    struct leat_kafka_request *request = calloc(1, sizeof *request);
    (void)state;
    assert_non_null(request);
    leat_kafka_arena_init(&request->arena, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    for (unsigned m = 0; m < sizeof mosts / sizeof *mosts; m++) {
        for (unsigned step = 1; step < NAMES; step += 333) {
            struct leat_kafka_names names;
            assert_true(leat_kafka_names_init(&names, request, mosts[m]));
            for (unsigned i = 0; i < NAMES; i++) {
                all[i] = text_of(texts[i], i * step % (NAMES - 10));
                leat_kafka_names_add(&names, all[i]);
            }
            leat_kafka_names_sort(&names);
            qsort(all, NAMES, sizeof *all, by_text);
            assert_int_equal(names.count, mosts[m] < NAMES ? mosts[m] : NAMES);
            for (uint32_t i = 0; i < names.count; i++)
                assert_int_equal(leat_kafka_name_order(names.at[i], all[i]), 0);
        }
    }
    leat_kafka_arena_fini(&request->arena);
    free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_of_many_are_kept_in_order)};
    return cmocka_run_group_tests_name("kafka names", tests, NULL, NULL);
}
