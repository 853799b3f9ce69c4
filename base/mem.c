/* SPDX-License-Identifier: Apache-2.0 */
/* Tagged, counted heap allocation. */
#include "base/mem.h"

#include "base/assert.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Before each block; 16 bytes keep malloc's alignment for what follows. */
struct block_header {
    size_t bytes;
    uint32_t tag;
    uint32_t magic;
};
static_assert(sizeof(struct block_header) == 16, "blocks stay 16-byte aligned");

enum { BLOCK_MAGIC = 0x6c656174, BLOCK_FREED = 0x64656164 };

/* Counters only: no other memory is published through them, so relaxed order is enough. */
static _Atomic size_t tag_bytes[LEAT_MEM_TAGS];
static _Atomic uint64_t calls;
static _Atomic uint64_t fail_at; /* value of `calls` at which to fail; 0 = never */

static bool (*ask)(void *arg);
static void *ask_arg;

static bool call_fails(void)
{
    if (ask && ask(ask_arg)) return true;
    uint64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1;
    return atomic_load_explicit(&fail_at, memory_order_relaxed) == call;
}

static bool block_size(size_t count, size_t bytes, size_t *out_total)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) return false;
    if (total > SIZE_MAX - sizeof(struct block_header)) return false;
    *out_total = total;
    return true;
}

static struct block_header *block_of(void *block)
{
    struct block_header *header = (struct block_header *)block - 1;
    LEAT_ASSERT_CMP(header->magic, ==, BLOCK_MAGIC);
    LEAT_ASSERT_CMP(header->tag, <, LEAT_MEM_TAGS);
    return header;
}

void *leat_mem_calloc(enum leat_mem_tag tag, size_t count, size_t bytes)
{
    LEAT_ASSERT_CMP(tag, <, LEAT_MEM_TAGS);
    size_t total;
    if (call_fails() || !block_size(count, bytes, &total)) return NULL;
    struct block_header *header = calloc(1, sizeof *header + total);
    if (!header) return NULL;
    header->bytes = total;
    header->tag = tag;
    header->magic = BLOCK_MAGIC;
    atomic_fetch_add_explicit(&tag_bytes[tag], total, memory_order_relaxed);
    return header + 1;
}

void *leat_mem_realloc(enum leat_mem_tag tag, void *block, size_t count, size_t bytes)
{
    if (!block) return leat_mem_calloc(tag, count, bytes);
    struct block_header *header = block_of(block);
    LEAT_ASSERT_CMP(header->tag, ==, tag);
    size_t total;
    if (call_fails() || !block_size(count, bytes, &total)) return NULL;
    size_t before = header->bytes;
    header = realloc(header, sizeof *header + total);
    if (!header) return NULL;
    header->bytes = total;
    if (total > before) memset((uint8_t *)(header + 1) + before, 0, total - before);
    /* Unsigned wrap-around makes the subtraction of a shrink. */
    atomic_fetch_add_explicit(&tag_bytes[tag], total - before, memory_order_relaxed);
    return header + 1;
}

void *leat_mem_copy(enum leat_mem_tag tag, const void *bytes, size_t count)
{
    LEAT_ASSERT_CMP(tag, <, LEAT_MEM_TAGS);
    size_t total;
    if (call_fails() || !block_size(count > 0 ? count : 1, 1, &total)) return NULL;
    struct block_header *header = malloc(sizeof *header + total);
    if (!header) return NULL;
    header->bytes = total;
    header->tag = tag;
    header->magic = BLOCK_MAGIC;
    atomic_fetch_add_explicit(&tag_bytes[tag], total, memory_order_relaxed);
    if (count > 0) memcpy(header + 1, bytes, count);
    return header + 1;
}

char *leat_mem_strdup(enum leat_mem_tag tag, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = leat_mem_calloc(tag, bytes, 1);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

void leat_mem_free(void *block)
{
    if (!block) return;
    struct block_header *header = block_of(block);
    header->magic = BLOCK_FREED;
    atomic_fetch_sub_explicit(&tag_bytes[header->tag], header->bytes, memory_order_relaxed);
    free(header);
}

size_t leat_mem_bytes(enum leat_mem_tag tag)
{
    LEAT_ASSERT_CMP(tag, <, LEAT_MEM_TAGS);
    return atomic_load_explicit(&tag_bytes[tag], memory_order_relaxed);
}

void leat_mem_fail_at(uint64_t n)
{
    atomic_store_explicit(&calls, 0, memory_order_relaxed);
    atomic_store_explicit(&fail_at, n, memory_order_relaxed);
}

uint64_t leat_mem_calls(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}

void leat_mem_ask(bool (*fails)(void *arg), void *arg)
{
    ask = fails;
    ask_arg = arg;
}
