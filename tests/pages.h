/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a test's world that is large and hardly touched: the arena, files, buffers of connections. It comes from
 * the kernel as zeros, and the address sanitizer keeps no shadow of it, which would have to be written for each. */
#ifndef LEAT_TESTS_PAGES_H
#define LEAT_TESTS_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

#include "base/assert.h"

/** From `had` bytes at `at` (0: none) to more; what is new is zero. To be given to pages_put(). */
static inline void *pages_grow(void *at, size_t had, size_t bytes)
{
    void *pages = had ? mremap(at, had, bytes, MREMAP_MAYMOVE)
                      : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LEAT_ASSERT(pages != MAP_FAILED);
    return pages;
}

static inline void *pages_get(size_t bytes)
{
    return pages_grow(NULL, 0, bytes);
}

static inline void pages_put(void *at, size_t bytes)
{
    if (bytes) LEAT_ASSERT(munmap(at, bytes) == 0);
}

#endif
