/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of pool files: allocated, mapped and touched 64 MiB at a time. */
#include "os/pool.h"

#include "base/node_log.h"
#include "base/port.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static_assert(POOL_DATA_OFFSET % HUGE_PAGE_BYTES == 0, "steps begin on huge pages");
static_assert(LEAT_ARENA_STEP_BYTES % HUGE_PAGE_BYTES == 0, "steps are whole huge pages");

static off_t step_offset(uint64_t step)
{
    return (off_t)(POOL_DATA_OFFSET + step * LEAT_ARENA_STEP_BYTES);
}

uint8_t *leat_os_addresses_reserve(uint64_t bytes)
{
    uint8_t *all = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return NULL;
    size_t before = -(uintptr_t)all % HUGE_PAGE_BYTES;
    if (before) (void)munmap(all, before);
    (void)munmap(all + before + bytes, HUGE_PAGE_BYTES - before);
    return all + before;
}

leat_err leat_os_step_map(int fd, uint64_t step, uint8_t *base)
{
    void *at = mmap(base + step * LEAT_ARENA_STEP_BYTES, LEAT_ARENA_STEP_BYTES,
                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, step_offset(step));
    return at == MAP_FAILED ? LEAT_E_NO_MEMORY : LEAT_OK;
}

/* So that no core waits for pages: first touch costs 0.6 to 2.6 s per GiB. */
void leat_os_step_touch(uint8_t *at, bool fresh)
{
    if (madvise(at, LEAT_ARENA_STEP_BYTES, fresh ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
        return;
    /* Kernels before 5.14. Only fresh memory may be stored to: the other is in use. */
    for (size_t i = 0; i < LEAT_ARENA_STEP_BYTES; i += 4096) {
        volatile uint8_t *page = at + i;
        if (fresh)
            *page = 0;
        else
            (void)*page;
    }
}

/* Ask for huge pages in a step that has no pages yet. Clearing and mapping 512 pages at once makes
 * growing 5 to 8 times cheaper, and a direct write finds its memory in one look-up instead of 512:
 * a third of the CPU and 1.6 times the speed. Needs no setting of the machine, unlike
 * MADV_HUGEPAGE on tmpfs. The kernel collapses only where a page is there already. A wish: what
 * it refuses stays in small pages. */
static void step_collapse(int fd, uint64_t step, uint8_t *base)
{
    /* The last page first: the file has to reach past the end of what is collapsed. */
    for (off_t end = LEAT_ARENA_STEP_BYTES; end > 0; end -= HUGE_PAGE_BYTES)
        if (fallocate(fd, 0, step_offset(step) + end - 4096, 4096)) return;
    (void)madvise(base + step * LEAT_ARENA_STEP_BYTES, LEAT_ARENA_STEP_BYTES, MADV_COLLAPSE);
}

leat_err leat_os_step_grow(int fd, uint64_t step, uint8_t *base, bool in_memory)
{
    leat_err rc = leat_os_step_map(fd, step, base);
    if (rc) return rc;
    if (in_memory) step_collapse(fd, step, base);
    /* SUBTLE: without fallocate a store to a full file system is SIGBUS, which no core survives. */
    int failed;
    do {
        failed = fallocate(fd, 0, step_offset(step), LEAT_ARENA_STEP_BYTES);
    } while (failed && errno == EINTR);
    if (failed) return LEAT_E_NO_MEMORY;
    leat_os_step_touch(base + step * LEAT_ARENA_STEP_BYTES, true);
    return LEAT_OK;
}

leat_err leat_os_step_shrink(int fd, uint64_t step, uint8_t *base)
{
    /* A stray access must find an unmapped page, rather than SIGBUS after the end of a file. */
    void *at = mmap(base + step * LEAT_ARENA_STEP_BYTES, LEAT_ARENA_STEP_BYTES, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (at == MAP_FAILED) return LEAT_E_DISK;
    if (ftruncate(fd, step_offset(step)))
        leat_node_log_warn("the pool stays longer than it is used: %s", strerror(errno));
    return LEAT_OK;
}

void leat_os_boot_id(char out[BOOT_ID_BYTES])
{
    memset(out, 0, BOOT_ID_BYTES);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return; /* empty, which never matches: no pool is inherited */
    if (read(fd, out, BOOT_ID_BYTES - 1) < 36) out[0] = 0;
    (void)close(fd);
}

void leat_os_machine_id(char out[LEAT_OS_MACHINE_ID_BYTES])
{
    static_assert((int)LEAT_OS_MACHINE_ID_BYTES >= (int)BOOT_ID_BYTES, "it is the boot id");
    memset(out, 0, LEAT_OS_MACHINE_ID_BYTES);
    leat_os_boot_id(out);
    out[strcspn(out, "\n")] = '\0';
}

uint64_t leat_os_path_hash(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *path; path++)
        hash = (hash ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
    return hash;
}
