/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that records its operations, in order, and lets the n-th operation fail. */
#ifndef LEAT_TESTS_COORDINATOR_JOURNAL_H
#define LEAT_TESTS_COORDINATOR_JOURNAL_H

#include "base/port.h"

enum { JOURNAL_BYTES = 65536 };
struct journal {
    struct leat_disk disk; /* what the tested one gets */
    const struct leat_disk *below;
    char text
        [JOURNAL_BYTES]; /* "open vote, write vote 0+4096, sync vote": names without raft/ and leading zeros */
    size_t used;
    unsigned calls;   /* but for closing: that can't fail */
    unsigned fail_at; /* this one is not done, 1: the next; 0: none */
    leat_err fail_with;
    unsigned files_open;
};

void journal_init(struct journal *journal, const struct leat_disk *below);
void journal_clear(struct journal *journal);
void journal_fail(struct journal *journal, unsigned at, leat_err with);

#endif
