/* SPDX-License-Identifier: Apache-2.0 */
/* How the fake RDMA device changes the private data that both sides exchange as they connect. */
#ifndef LEAT_TESTS_FUZZ_FAKE_VERBS_H
#define LEAT_TESTS_FUZZ_FAKE_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* These bytes stand from there on; cuts: nothing follows them. Borrowed. */
struct fake_verbs_tale {
    bool changed, cuts;
    size_t from, count;
    const uint8_t *bytes;
};
extern struct fake_verbs_tale fake_verbs_hello, fake_verbs_welcome;

#endif
