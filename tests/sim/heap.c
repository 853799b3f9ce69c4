/* The heap of a process that lives for one seed: a tenth of a second, dozens of servers that were
 * made and killed, and tens of megabytes that each page fault of 4 KiB would fill with zeros one
 * after the other; with the C library's heap that was half of the time. Here small blocks lie close
 * together in large pages, and large blocks are fresh memory that is touched only where it is used.
 *
 * A block is 16 bytes of header and its bytes. Small ones are of 4 sizes for each power of two and
 * come back to a list for each size. Nothing goes back to the system but the insides of large blocks.
 *
 * One thread: the simulator has no others. Not with sanitizers, which have a heap of their own. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
    HEADER = 16,
    STEPS = 4,               /* sizes for each power of two */
    FIRST_SHIFT = 5,         /* the smallest size is 32 */
    CLASSES = 27 * STEPS,    /* the largest is 2^31 and more: those are refused */
    LARGE_CLASS = 9 * STEPS, /* from 16 KiB on: outside the large pages */
    HUGE_CLASS =
        13 * STEPS, /* from 256 KiB on: pages go back to the system, and come back as zeros */
};
static const uint64_t small_bytes = 4ull << 30, large_bytes = 256ull << 30;

struct header {
    uint32_t class;
    uint32_t offset; /* from the block's beginning to the user's bytes */
    uint64_t unused;
};
_Static_assert(sizeof(struct header) == HEADER, "blocks are aligned to 16 bytes");

struct free_block {
    struct free_block *next;
};

static struct region {
    uint8_t *at, *end;
} small, large;
static struct free_block *lists[CLASSES];

static size_t class_bytes(unsigned class)
{
    size_t base = (size_t)1 << (class / STEPS + FIRST_SHIFT);
    return base + base / STEPS * (class % STEPS);
}

static unsigned class_of(size_t bytes)
{
    if (bytes <= 32) return 0;
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

/* fresh: nobody has written to it yet. */
static uint8_t *block_take(unsigned class, int *out_fresh)
{
    if (lists[class]) {
        struct free_block *block = lists[class];
        lists[class] = block->next;
        block->next = NULL;
        *out_fresh = class >= HUGE_CLASS;
        return (uint8_t *)block;
    }
    struct region *region = class < LARGE_CLASS ? &small : &large;
    if (!region->at && (class < LARGE_CLASS ? region_open(&small, small_bytes, MADV_HUGEPAGE)
                                            : region_open(&large, large_bytes, 0)))
        return NULL;
    size_t bytes = class_bytes(class);
    if (bytes > (size_t)(region->end - region->at)) return NULL;
    uint8_t *block = region->at;
    region->at += bytes;
    *out_fresh = 1;
    return block;
}

static void *take(size_t bytes, size_t align, int zero)
{
    size_t room = bytes + HEADER + (align > HEADER ? align : 0);
    unsigned class = room < bytes ? CLASSES : class_of(room);
    int fresh = 0;
    uint8_t *block = class < CLASSES ? block_take(class, &fresh) : NULL;
    if (!block) {
        errno = ENOMEM;
        return NULL;
    }
    uintptr_t user = (uintptr_t)block + HEADER;
    if (align > HEADER) user = (user + align - 1) & ~(uintptr_t)(align - 1);
    struct header *header = (struct header *)user - 1;
    *header = (struct header){.class = class, .offset = (uint32_t)(user - (uintptr_t)block)};
    if (zero && !fresh) memset((void *)user, 0, bytes);
    return (void *)user;
}

static struct header *header_of(void *user)
{
    return (struct header *)user - 1;
}

/* Classes of the large region are multiples of a page. */
_Static_assert(((size_t)1 << (LARGE_CLASS / STEPS + FIRST_SHIFT)) / STEPS % 4096 == 0, "pages");

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
    struct free_block *block = (struct free_block *)((uint8_t *)user - header->offset);
    if (class >= HUGE_CLASS) (void)madvise(block, class_bytes(class), MADV_DONTNEED);
    block->next = lists[class];
    lists[class] = block;
}

EXPORT void *realloc(void *user, size_t bytes)
{
    if (!user) return take(bytes, 0, 0);
    size_t room = room_of(user);
    if (bytes <= room) return user;
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

#endif
