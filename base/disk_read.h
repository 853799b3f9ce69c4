/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a file, read into memory of the reader's. */
#ifndef LEAT_BASE_DISK_READ_H
#define LEAT_BASE_DISK_READ_H

#include "base/mem.h"
#include "base/port.h"

/** Zeros: has no memory. One read at a time; the owner frees it when none is under way. Thread: the owner's. */
struct leat_disk_read {
    struct leat_disk_io io;
    uint8_t *bytes; /* aligned as the disk wants it */
    uint8_t *raw;   /* the block of memory that `bytes` is in */
    uint32_t room;  /* of `bytes`, whole blocks */
};

/** Room for `bytes` at least; earlier bytes are lost if the room grows. false: no memory, and nothing has changed. */
bool leat_disk_read_reserve(struct leat_disk_read *read, enum leat_mem_tag tag, uint32_t bytes);
/** `bytes` from the file's `offset` on, in whole blocks, for which there is room. on_done is called with read->io. */
void leat_disk_read_start(struct leat_disk_read *read, const struct leat_disk *disk,
                          struct leat_file *file, uint64_t offset, uint32_t bytes,
                          void (*on_done)(struct leat_disk_io *io), void *owner);
/** How many bytes the last read brought: 0 where it failed. */
static inline uint32_t leat_disk_read_count(const struct leat_disk_read *read)
{
    return read->io.rc == LEAT_OK ? (uint32_t)read->io.done_bytes : 0;
}
void leat_disk_read_free(struct leat_disk_read *read);

#endif
