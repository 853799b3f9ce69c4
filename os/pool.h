/* SPDX-License-Identifier: Apache-2.0 */
/* A pool file's header, and what becomes of pools whose data directory is gone. Private to os/. */
#ifndef LEAT_OS_POOL_H
#define LEAT_OS_POOL_H

#include "base/error.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

enum {
    POOL_HEADER_BYTES = 4096,
    POOL_DATA_OFFSET = 2 * 1024 * 1024, /* data stays aligned for huge pages */
    POOL_VERSION = 1,
    BOOT_ID_BYTES = 40,
    POOL_OUTER_MAX = 16,
    SYSTEM_ACCOUNTS_END = 1000, /* systemd empties /dev/shm of other accounts at logout */
};
#define POOL_MAGIC UINT64_C(0x6c6f6f707461656c) /* "leatpool" */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

struct pool_header {
    uint64_t magic;
    uint32_t version;
    uint32_t reserved;
    char boot_id[BOOT_ID_BYTES]; /* zero-padded text; another one: the memory was lost */
    uint8_t pool_id[16];
    uint64_t steps;                 /* complete: allocated and zeroed. Raised only after that */
    uint64_t data_dir_device;       /* st_dev of the data directory that the pool belongs to */
    char data_dir[2040];            /* its real path, terminated; "": not told */
    uint64_t data_dir_parent_inode; /* of the directory that it lies in; 0: not told */
    /* Of the directories above that, the innermost first; 0: not told, or on another device. */
    uint64_t outer_inodes[POOL_OUTER_MAX];
};
static_assert(sizeof(struct pool_header) <= POOL_HEADER_BYTES, "the header is one page");

/**
 * Remove useless pools in a folder: of this account, used by no process, and of a data directory that has been
 * removed. A directory may be missing only for now: its disk is not mounted, or the directory is under another root,
 * as in a container that shares /dev/shm. So the directory counts as removed only if the innermost directory above it
 * that exists is one that it was in, by inode and device. In doubt the pool stays; tells_doubts: the node log then
 * names the pool. Returns how many were removed.
 *
 * Thread: startup.  Blocks: a few system calls for each pool in the folder.
 */
unsigned leat_os_pools_collect(const char *folder, bool tells_doubts);

/**
 * The file name, in a shared folder, of the pool of a data directory: the existing name of this account's pool, else
 * a free name. The usual name follows from the directory's path alone, so any account could have made a file of this
 * name; then an unpredictable name is used, and found again by the header.
 *
 * Returns false where no free name would be found again. *out_exists: it is there already.
 * Thread: startup.  Blocks: a few system calls for each pool in the folder.
 */
enum { POOL_NAME_BYTES = 64 };
bool leat_os_pool_name(const char *folder, const char *data_dir, char out_name[POOL_NAME_BYTES],
                       bool *out_exists) LEAT_NODISCARD;

/** For leat_os_pools_collect(): whose pool this is. Without room for the path it stays unnamed. Thread: any. */
void leat_os_pool_name_owner(struct pool_header *header, const char *data_dir);

/* step.c: what all pool files are made of. `base` is where byte 0 of the data is mapped. Thread: any. */
enum { HUGE_PAGE_BYTES = 2 * 1024 * 1024 };
/** Allocated, mapped, touched; in huge pages where in_memory and the kernel allow it. After it no store
 * to the step can fail. LEAT_E_NO_MEMORY. */
leat_err leat_os_step_grow(int fd, uint64_t step, uint8_t *base, bool in_memory) LEAT_NODISCARD;
/** The last step's addresses become unusable, its memory goes back to the kernel. LEAT_E_DISK: it stays as it is. */
leat_err leat_os_step_shrink(int fd, uint64_t step, uint8_t *base) LEAT_NODISCARD;
/** Addresses without memory, on a huge page's boundary; munmap() gives them back. NULL: none. */
uint8_t *leat_os_addresses_reserve(uint64_t bytes);
leat_err leat_os_step_map(int fd, uint64_t step, uint8_t *base) LEAT_NODISCARD;
/** Map its pages now. fresh: not in use yet, so stores are allowed. */
void leat_os_step_touch(uint8_t *at, bool fresh);
/** Zero-padded text; empty when it is unknown, which equals none. */
void leat_os_boot_id(char out[BOOT_ID_BYTES]);
uint64_t leat_os_path_hash(const char *path);

#endif
