/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file: an aligned block, and the call to the disk. */
#include "base/disk_read.h"

#include "base/assert.h"
#include "base/bytes.h"

/* Direct reads want their offset, length and memory to be multiples of this. */
enum { BLOCK_BYTES = 4096 };

bool leat_disk_read_reserve(struct leat_disk_read *read, enum leat_mem_tag tag, uint32_t bytes)
{
    uint32_t room = LEAT_ALIGN_UP(bytes, (uint32_t)BLOCK_BYTES);
    if (read->room >= room) return true;
    uint8_t *raw = leat_mem_calloc(tag, 1, (size_t)room + BLOCK_BYTES);
    if (raw == NULL) return false;
    leat_mem_free(read->raw);
    read->raw = raw;
    read->bytes = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)read->raw, (uintptr_t)BLOCK_BYTES);
    read->room = room;
    return true;
}

void leat_disk_read_start(struct leat_disk_read *read, const struct leat_disk *disk,
                          struct leat_file *file, uint64_t offset, uint32_t bytes,
                          void (*on_done)(struct leat_disk_io *io), void *owner)
{
    uint32_t blocks = LEAT_ALIGN_UP(bytes, (uint32_t)BLOCK_BYTES);
    LEAT_ASSERT_CMP(blocks, <=, read->room);
    read->io = (struct leat_disk_io){
        .kind = LEAT_DISK_READ,
        .file = file,
        .offset = offset,
        .buffer = read->bytes,
        .bytes = blocks,
        .on_done = on_done,
        .owner = owner,
    };
    disk->submit(disk->ctx, &read->io);
}

void leat_disk_read_free(struct leat_disk_read *read)
{
    leat_mem_free(read->raw);
    read->raw = read->bytes = NULL;
    read->room = 0;
}
