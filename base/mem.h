/* SPDX-License-Identifier: Apache-2.0 */
/* All heap allocation: tagged, counted, overflow-checked, able to fail on request.
 * The data path never allocates; this is for start-up and the control path. */
#ifndef LEAT_BASE_MEM_H
#define LEAT_BASE_MEM_H

#include "error.h"

enum leat_mem_tag {
    LEAT_MEM_BASE,
    LEAT_MEM_WIRE,
    LEAT_MEM_STORE,
    LEAT_MEM_LOG,
    LEAT_MEM_ROWS, /* what there is one of for each log, segment, replica, stream or place read to */
    LEAT_MEM_COORDINATOR,
    LEAT_MEM_BROKER,
    LEAT_MEM_CLIENT,
    LEAT_MEM_NET,
    LEAT_MEM_TEST,
    LEAT_MEM_TAGS,
};

/** Zeroed memory for count * bytes, or NULL (out of memory, overflow, or a requested failure).
 * Thread: any. */
void *leat_mem_calloc(enum leat_mem_tag tag, size_t count, size_t bytes) LEAT_NODISCARD;
/** Grow or shrink; contents kept; the old block stays valid on failure. Thread: any. */
void *leat_mem_realloc(enum leat_mem_tag tag, void *block, size_t count,
                       size_t bytes) LEAT_NODISCARD;
/** A copy of that many bytes (at least one is allocated), or NULL. Where every byte is written anyway
 * zeroing first would cost as much again. Thread: any. */
void *leat_mem_copy(enum leat_mem_tag tag, const void *bytes, size_t count) LEAT_NODISCARD;
char *leat_mem_strdup(enum leat_mem_tag tag, const char *text) LEAT_NODISCARD;
/** Accepts NULL. Thread: any. */
void leat_mem_free(void *block);
/** Bytes now allocated under a tag, headers excluded. Thread: any. */
size_t leat_mem_bytes(enum leat_mem_tag tag);
/** Tests: let the n-th allocation from now (1 = the next) of this process fail once; 0 = none. */
void leat_mem_fail_at(uint64_t n);
/** Tests: allocations counted since leat_mem_fail_at() was last called. */
uint64_t leat_mem_calls(void);
/** Tests: from now on `fails` is called at every allocation, and true makes the allocation fail; NULL: not called.
 * Thread: the only one that allocates then. */
void leat_mem_ask(bool (*fails)(void *arg), void *arg);

#endif
