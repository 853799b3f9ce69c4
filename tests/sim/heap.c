/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of a process that lives for one seed: a tenth of a second, dozens of servers that were
 * made and killed, and tens of megabytes that each page fault of 4 KiB would fill with zeros one
 * after the other; with the C library's heap that was half of the time. Here small blocks lie close
 * together in large pages, and large blocks are fresh memory that is touched only where it is used.
 *
 * A block is 32 bytes of header and its bytes. Small ones are of 4 sizes for each power of two and
 * come back to a list for each size. Nothing goes back to the system but the insides of large blocks.
 *
 * What a simulated process takes by base/mem.h is its own: it comes back all at once when nobody looks
 * at the process's remains any more, so that the next one finds memory that is in the caches.
 *
 * One thread: the simulator has no others. Not with sanitizers, which have a heap of their own. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/mem.h"
#include "tests/sim/scenario.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HEAP_OF_OUR_OWN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) ||                         \
    __has_feature(thread_sanitizer)
#undef HEAP_OF_OUR_OWN
#endif
#endif

#ifdef HEAP_OF_OUR_OWN

enum {
    HEADER = 32,
    PAGE = 4096,
    STEPS = 4,                /* sizes for each power of two */
    FIRST_SHIFT = 6,          /* the smallest size is 64: all are multiples of 16 */
    CLASSES = 26 * STEPS,     /* the largest is 2^31 and more: those are refused */
    MEDIUM_CLASS = 8 * STEPS, /* from 16 KiB on: most of it is never touched */
    HUGE_CLASS =
        11 * STEPS, /* from 128 KiB on: pages go back to the system, and come back as zeros */
};
_Static_assert(((1 << FIRST_SHIFT) / STEPS) % 16 == 0, "blocks are aligned as malloc has them");
static const uint64_t small_bytes = 4ull << 30, medium_bytes = 16ull << 30,
                      large_bytes = 256ull << 30;

struct header {
    uint32_t class;
    uint32_t offset;        /* from the block's beginning to the user's bytes */
    struct leat_list owned; /* by one process; zeros: by the world */
    bool used;              /* nobody asked for zeros: its pages are the next one's who does not */
};
_Static_assert(sizeof(struct header) <= HEADER && HEADER % 16 == 0, "as malloc aligns");

struct free_block {
    struct free_block *next;
};

static struct region {
    uint8_t *at, *end;
} small, medium, large;
static struct free_block *lists[CLASSES];
static struct free_block *used_lists[CLASSES]; /* from HUGE_CLASS on: of those, pages stay */

static size_t class_bytes(unsigned class)
{
    size_t base = (size_t)1 << (class / STEPS + FIRST_SHIFT);
    return base + base / STEPS * (class % STEPS);
}

static unsigned class_of(size_t bytes)
{
    if (bytes <= (size_t)1 << FIRST_SHIFT) return 0;
    unsigned shift = 63 - (unsigned)__builtin_clzll(bytes);
    size_t step = ((size_t)1 << shift) / STEPS;
    size_t over = bytes - ((size_t)1 << shift);
    return (shift - FIRST_SHIFT) * STEPS + (unsigned)((over + step - 1) / step);
}

static int region_open(struct region *region, uint64_t bytes, int advice)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return -1;
    if (advice) (void)madvise(at, bytes, advice);
    region->at = at;
    region->end = region->at + bytes;
    return 0;
}

static int regions_open(void)
{
    return region_open(&small, small_bytes, MADV_HUGEPAGE) ||
           region_open(&medium, medium_bytes, MADV_HUGEPAGE) || region_open(&large, large_bytes, 0);
}

/* Whose the next block is; NULL: the world's. */
static struct leat_list *next_owner;

/* fresh: nobody has written to it yet. */
static uint8_t *block_take(unsigned class, int zero, int *out_fresh)
{
    if (!zero && used_lists[class]) {
        struct free_block *block = used_lists[class];
        used_lists[class] = block->next;
        return (uint8_t *)block;
    }
    if (lists[class]) {
        struct free_block *block = lists[class];
        lists[class] = block->next;
        block->next = NULL;
        *out_fresh = class >= HUGE_CLASS;
        if (*out_fresh) memset(block, 0, PAGE);
        return (uint8_t *)block;
    }
    struct region *region = class < MEDIUM_CLASS ? &small : class < HUGE_CLASS ? &medium : &large;
    if (!region->at && regions_open()) return NULL;
    size_t bytes = class_bytes(class);
    if (bytes > (size_t)(region->end - region->at)) return NULL;
    uint8_t *block = region->at;
    region->at += bytes;
    *out_fresh = 1;
    return block;
}

/* What lies in memory that nobody asked to be zeros. 0: whatever was there. */
static uint8_t fill;

/* Large tables of which little is used: to look is faster than to write, and leaves the caches be. */
static void zeros_again(void *at, size_t bytes)
{
    enum { LOOK = 1024 };
    uint8_t *from = at, *end = from + bytes;
    for (; from < end; from += LOOK) {
        size_t take = (size_t)(end - from) < LOOK ? (size_t)(end - from) : LOOK;
        uint64_t any = take < LOOK, word;
        for (size_t i = 0; i + sizeof word <= take; i += sizeof word) {
            memcpy(&word, from + i, sizeof word);
            any |= word;
        }
        if (any) memset(from, 0, take);
    }
}

static void *take(size_t bytes, size_t align, int zero)
{
    size_t room = bytes + HEADER + (align > HEADER ? align : 0);
    unsigned class = room < bytes ? CLASSES : class_of(room);
    int fresh = 0;
    uint8_t *block = class < CLASSES ? block_take(class, zero, &fresh) : NULL;
    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t user = (uintptr_t)block + HEADER;
    if (align > HEADER) user = (user + align - 1) & ~(uintptr_t)(align - 1);
    struct header *header = (struct header *)(user - HEADER);
    *header = (struct header){
        .class = class, .offset = (uint32_t)(user - (uintptr_t)block), .used = !zero};
    if (next_owner) leat_list_push_front(next_owner, &header->owned);
    next_owner = NULL;
    if (zero && !fresh && class < MEDIUM_CLASS)
        memset((void *)user, 0, bytes);
    else if (zero && !fresh)
        zeros_again((void *)user, bytes);
    else if (!zero && fill && (class < HUGE_CLASS || !fresh))
        memset((void *)user, fill, bytes);
    return (void *)user;
}

static struct header *header_of(void *user)
{
    return (struct header *)(user - HEADER);
}

/* From there on sizes are multiples of a page. */
_Static_assert(((size_t)1 << (MEDIUM_CLASS / STEPS + FIRST_SHIFT)) / STEPS % 4096 == 0, "pages");

static size_t room_of(void *user)
{
    struct header *header = header_of(user);
    return class_bytes(header->class) - header->offset;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT void *malloc(size_t bytes)
{
    return take(bytes, 0, 0);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    return take(total, 0, 1);
}

EXPORT void free(void *user)
{
    if (!user) return;
    struct header *header = header_of(user);
    unsigned class = header->class;
    if (header->owned.next) leat_list_remove(&header->owned);
    struct free_block *block = (struct free_block *)((uint8_t *)user - header->offset);
    struct free_block **list = &lists[class];
    if (class >= HUGE_CLASS && header->used)
        list = &used_lists[class];
    else if (class >= HUGE_CLASS) /* the first page is written to at once */
        (void)madvise((uint8_t *)block + PAGE, class_bytes(class) - PAGE, MADV_DONTNEED);
    block->next = *list;
    *list = block;
}

EXPORT void *realloc(void *user, size_t bytes)
{
    if (!user) return take(bytes, 0, 0);
    size_t room = room_of(user);
    if (bytes <= room) {
        next_owner = NULL;
        return user;
    }
    void *other = take(bytes, 0, 0);
    if (!other) return NULL;
    memcpy(other, user, room);
    free(user);
    return other;
}

EXPORT int posix_memalign(void **out_user, size_t align, size_t bytes)
{
    void *user = take(bytes, align, 0);
    if (!user) return ENOMEM;
    *out_user = user;
    return 0;
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
    return take(bytes, align, 0);
}

EXPORT void *memalign(size_t align, size_t bytes);
EXPORT void *memalign(size_t align, size_t bytes)
{
    return take(bytes, align, 0);
}

EXPORT size_t malloc_usable_size(void *user);
EXPORT size_t malloc_usable_size(void *user)
{
    return user ? room_of(user) : 0;
}

/* ---- what processes own ---- */

/* Asked before every allocation of the product's. */
static bool owner_note(void *arg)
{
    struct sim_world *world = arg;
    next_owner = world->entered && world->entered->memory.next ? &world->entered->memory : NULL;
    return false;
}

void sim_process_memory_watch(struct sim_world *world)
{
    leat_mem_ask(owner_note, world);
}

void sim_process_memory_drop(struct sim_process *process)
{
    LEAT_ASSERT(!process->alive);
    while (process->memory.next && !leat_list_empty(&process->memory)) {
        struct header *header = LEAT_CONTAINER(process->memory.next, struct header, owned);
        free((uint8_t *)header + HEADER);
    }
}

/* ---- many seeds in one process ---- */

/* Of this program: where its static variables begin and end. */
extern uint8_t __data_start[], _end[];
static uint8_t *statics;

bool sim_process_can_again(void)
{
    return true;
}

void sim_process_elsewhere(uint64_t seed)
{
    enum { PLACES = 16384, PLACE = 16, PAGES = 256, FILL = 0xa5 };
    struct sim_rng dice;
    LEAT_ASSERT(small.at || !regions_open());
    sim_rng_init(&dice, seed, "elsewhere");
    small.at += sim_rng_below(&dice, PLACES) * PLACE;
    medium.at += sim_rng_below(&dice, PAGES) * PAGE;
    large.at += sim_rng_below(&dice, PAGES) * PAGE;
    fill = FILL;
}

/* Page by page, and only what differs. Most static variables are large tables that nobody wrote to: of
 * these both sides are the kernel's one page of zeros, which is in the cache, and stay so. */
static void pages_copy(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t at = 0, take; at < bytes; at += take) {
        take = bytes - at < PAGE ? bytes - at : PAGE;
        if (memcmp(to + at, from + at, take) != 0) memcpy(to + at, from + at, take);
    }
}

bool sim_process_keep(void)
{
    size_t bytes = (size_t)(_end - __data_start);
    if (!small.at && regions_open()) return false;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    statics = at;
    pages_copy(statics, __data_start, bytes);
    return true;
}

/* Pages that were used stay, and are zeros again: fresh pages take a third of a seed's time.
 *
 * SUBTLE: for the compiler a copy to __data_start changes no variable but __data_start, so the compiler may read any
 * other variable before or after the copy. With -fprofile-use gcc 12 read large.at after the copy: those pages stayed
 * as they were. */
void sim_process_again(void)
{
    sim_maps_drop();
    uint8_t *small_end = small.at, *medium_end = medium.at, *large_end = large.at;
    __asm__ volatile("" : "+r"(small_end), "+r"(medium_end), "+r"(large_end)::"memory");
    pages_copy(__data_start, statics, (size_t)(_end - __data_start));
    __asm__ volatile("" ::: "memory"); /* all of them may have changed */
    memset(small.at, 0, (size_t)(small_end - small.at));
    zeros_again(medium.at, (size_t)(medium_end - medium.at));
    if (large_end > large.at)
        (void)madvise(large.at, (size_t)(large_end - large.at), MADV_DONTNEED);
}

#else

void sim_process_memory_watch(struct sim_world *world)
{
    (void)world;
}

void sim_process_memory_drop(struct sim_process *process)
{
    (void)process;
}

bool sim_process_can_again(void)
{
    return false;
}

void sim_process_elsewhere(uint64_t seed)
{
    (void)seed;
}

bool sim_process_keep(void)
{
    return false;
}

void sim_process_again(void)
{
}

#endif
