/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what a test program leaves behind. After cmocka.h. */
#ifndef LEAT_TESTS_SETS_LEFT_H
#define LEAT_TESTS_SETS_LEFT_H

#include "base/mem.h"

/** The end of all its tests: groups, members, logs and answers gave their memory back, whatever they went through. */
static inline int nothing_left(void **state)
{
    (void)state;
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
    return 0;
}

#endif
