/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for libraft: what is not freed shows, and any allocation can fail. For one test program only. */
#ifndef LEAT_TESTS_COORDINATOR_RAFT_HEAP_H
#define LEAT_TESTS_COORDINATOR_RAFT_HEAP_H

#include <raft.h>
#include <stdlib.h>
#include <string.h>

static long blocks;
static unsigned refuse; /* the n-th allocation from now fails */

static void *heap_get(void *block, size_t bytes)
{
    if (refuse && --refuse == 0) return NULL;
    void *got = realloc(block, bytes);
    blocks += got && !block;
    return got;
}
static void *heap_malloc(void *data, size_t bytes)
{
    (void)data;
    return heap_get(NULL, bytes);
}
static void *heap_calloc(void *data, size_t count, size_t bytes)
{
    void *got = heap_malloc(data, count * bytes);
    return got ? memset(got, 0, count * bytes) : NULL;
}
static void *heap_realloc(void *data, void *block, size_t bytes)
{
    (void)data;
    return heap_get(block, bytes);
}
static void heap_free(void *data, void *block)
{
    (void)data;
    blocks -= block != NULL;
    free(block);
}
static void *heap_aligned(void *data, size_t alignment, size_t bytes)
{
    (void)alignment;
    return heap_malloc(data, bytes);
}
static void heap_aligned_free(void *data, size_t alignment, void *block)
{
    (void)alignment;
    heap_free(data, block);
}
static struct raft_heap heap = {NULL,         heap_malloc,  heap_free,        heap_calloc,
                                heap_realloc, heap_aligned, heap_aligned_free};

static inline void heap_begin(void)
{
    raft_heap_set(&heap);
    blocks = 0;
    refuse = 0;
}

#endif
