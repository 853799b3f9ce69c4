/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one file of the simulated disk, and what a power cut leaves of them. */
#include "tests/sim/disk_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void sim_image_need(struct sim_inode *inode, uint64_t end)
{
    size_t chunks = (size_t)((end + SIM_CHUNK - 1) / SIM_CHUNK);
    if (chunks <= inode->chunks) return;
    size_t room = inode->chunks ? inode->chunks : 16 * (SIM_PIECE / SIM_CHUNK);
    while (room < chunks)
        room *= 2;
    inode->now = realloc(inode->now, room * sizeof *inode->now);
    inode->durable = realloc(inode->durable, room * sizeof *inode->durable);
    LEAT_ASSERT(inode->now && inode->durable);
    for (size_t i = inode->chunks; i < room; i++)
        inode->now[i] = inode->durable[i] = NULL;
    inode->chunks = room;
}

static bool all_zero(const uint8_t *data, size_t bytes)
{
    return bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0);
}

static void image_write(uint8_t **image, uint64_t offset, const uint8_t *data, size_t bytes)
{
    while (bytes) {
        size_t in = (size_t)(offset % SIM_CHUNK),
               take = SIM_CHUNK - in < bytes ? SIM_CHUNK - in : bytes;
        uint8_t **chunk = &image[offset / SIM_CHUNK];
        if (*chunk || !all_zero(data, take)) {
            if (!*chunk) *chunk = calloc(1, SIM_CHUNK);
            LEAT_ASSERT(*chunk != NULL);
            memcpy(*chunk + in, data, take);
        }
        offset += take;
        data += take;
        bytes -= take;
    }
}

bool sim_image_has(uint8_t *const *image, size_t chunks, uint64_t offset)
{
    size_t at = (size_t)(offset / SIM_PIECE) * (SIM_PIECE / SIM_CHUNK);
    for (size_t i = at; i < at + SIM_PIECE / SIM_CHUNK && i < chunks; i++)
        if (image[i]) return true;
    return false;
}

void sim_image_flip(uint8_t **image, uint64_t offset, unsigned bit)
{
    uint8_t **chunk = &image[offset / SIM_CHUNK];
    if (!*chunk) *chunk = calloc(1, SIM_CHUNK);
    LEAT_ASSERT(*chunk != NULL);
    (*chunk)[offset % SIM_CHUNK] ^= (uint8_t)(1u << bit);
}

void sim_image_read(uint8_t *const *image, size_t chunks, uint64_t offset, uint8_t *to,
                    size_t bytes)
{
    while (bytes) {
        size_t in = (size_t)(offset % SIM_CHUNK),
               take = SIM_CHUNK - in < bytes ? SIM_CHUNK - in : bytes;
        const uint8_t *chunk = offset / SIM_CHUNK < chunks ? image[offset / SIM_CHUNK] : NULL;
        if (chunk)
            memcpy(to, chunk + in, take);
        else
            memset(to, 0, take);
        offset += take;
        to += take;
        bytes -= take;
    }
}

static void image_cut(uint8_t **image, size_t chunks, uint64_t size)
{
    if (size >= (uint64_t)chunks * SIM_CHUNK) return;
    for (size_t i = (size_t)(size / SIM_CHUNK); i < chunks; i++) {
        uint64_t from = (uint64_t)i * SIM_CHUNK;
        if (!image[i]) continue;
        if (from / SIM_PIECE * SIM_PIECE >= size) {
            free(image[i]);
            image[i] = NULL;
        } else {
            size_t left = from < size ? (size_t)(size - from) : 0;
            memset(image[i] + left, 0, SIM_CHUNK - left);
        }
    }
}

static void pending_free(struct sim_inode *inode)
{
    for (struct sim_pending *write = inode->first, *next; write; write = next) {
        next = write->next;
        free(write);
    }
    inode->first = inode->last = NULL;
}

void sim_file_peek(const struct leat_file *file, uint64_t offset, void *to, size_t bytes)
{
    sim_image_read(file->inode->now, file->inode->chunks, offset, to, bytes);
}

const uint8_t *sim_file_view(const struct leat_file *file, uint64_t offset, uint32_t *bytes)
{
    const struct sim_inode *inode = file->inode;
    uint64_t left = SIM_CHUNK - offset % SIM_CHUNK;
    if (*bytes > left) *bytes = (uint32_t)left;
    const uint8_t *chunk =
        offset / SIM_CHUNK < inode->chunks ? inode->now[offset / SIM_CHUNK] : NULL;
    return chunk ? chunk + offset % SIM_CHUNK : NULL;
}

struct sim_inode *sim_inode_create(struct sim_disk *disk)
{
    struct sim_inode *inode = calloc(1, sizeof *inode);
    LEAT_ASSERT(inode != NULL);
    inode->disk = disk;
    inode->low_size = UINT64_MAX;
    inode->next = disk->inodes;
    disk->inodes = inode;
    return inode;
}

void sim_inode_write(struct sim_inode *inode, uint64_t offset, const uint8_t *data, size_t bytes)
{
    if (!bytes) return;
    sim_image_need(inode, offset + bytes);
    image_write(inode->now, offset, data, bytes);
    if (offset + bytes > inode->size) inode->size = offset + bytes;
    if (inode->size > inode->allocated) inode->allocated = inode->size;
    struct sim_pending *write = malloc(sizeof *write + bytes);
    LEAT_ASSERT(write != NULL);
    *write = (struct sim_pending){.offset = offset, .bytes = bytes};
    memcpy(write->data, data, bytes);
    if (inode->last)
        inode->last->next = write;
    else
        inode->first = write;
    inode->last = write;
}

void sim_inode_sync(struct sim_inode *inode)
{
    image_cut(inode->durable, inode->chunks, inode->low_size);
    inode->low_size = UINT64_MAX;
    for (struct sim_pending *write = inode->first; write; write = write->next)
        image_write(inode->durable, write->offset, write->data, write->bytes);
    pending_free(inode);
    inode->durable_size = inode->size;
    inode->grown = false;
}

void sim_inode_shrink(struct sim_inode *inode, uint64_t bytes)
{
    for (struct sim_pending *write = inode->first; write; write = write->next) {
        if (write->offset >= bytes)
            write->bytes = 0;
        else if (write->offset + write->bytes > bytes)
            write->bytes = (size_t)(bytes - write->offset);
    }
    image_cut(inode->now, inode->chunks, bytes);
    inode->size = inode->allocated = bytes;
    if (bytes < inode->low_size) inode->low_size = bytes;
}

/* Keep part of one pending write: sectors that `keep` says. */
static void sectors_keep(struct sim_inode *inode, const struct sim_pending *write,
                         uint32_t per_mille, uint64_t prefix_bytes)
{
    struct sim_disk *disk = inode->disk;
    bool kept = false, lost = false;
    for (size_t done = 0; done < write->bytes;) {
        uint64_t at = write->offset + done;
        size_t take = (size_t)(SIM_SECTOR - at % SIM_SECTOR);
        if (take > write->bytes - done) take = write->bytes - done;
        if (done < prefix_bytes && sim_rng_chance(&disk->rng, per_mille)) {
            image_write(inode->durable, at, write->data + done, take);
            kept = true;
        } else {
            lost = true;
        }
        done += take;
    }
    if (kept && lost) sim_fault_struck(disk->world, SIM_FAULT_TORN);
    if (!kept) sim_fault_struck(disk->world, SIM_FAULT_LOST);
}

void sim_inode_crash(struct sim_inode *inode)
{
    struct sim_disk *disk = inode->disk;
    unsigned mode = (unsigned)sim_rng_below(&disk->rng, 5);
    uint64_t count = 0;
    for (struct sim_pending *write = inode->first; write; write = write->next)
        count++;
    uint64_t prefix = count ? sim_rng_below(&disk->rng, count) : 0, at = 0;
    /* A truncation took effect before everything after it, or not at all. */
    if (inode->low_size != UINT64_MAX && sim_rng_chance(&disk->rng, 500))
        image_cut(inode->durable, inode->chunks, inode->low_size);
    inode->low_size = UINT64_MAX;
    for (struct sim_pending *write = inode->first; write; write = write->next, at++) {
        switch (mode) {
        case 0:
            sectors_keep(inode, write, 0, 0);
            break;
        case 1:
            sectors_keep(inode, write, 1000, UINT64_MAX);
            break;
        case 2: /* in order, the last one torn */
            sectors_keep(inode, write, 1000,
                         at < prefix    ? UINT64_MAX
                         : at == prefix ? sim_rng_below(&disk->rng, write->bytes + 1)
                                        : 0);
            break;
        case 3:
            sectors_keep(inode, write, sim_rng_chance(&disk->rng, 500) ? 1000 : 0, UINT64_MAX);
            break;
        default:
            sectors_keep(inode, write, 500, UINT64_MAX);
            break;
        }
    }
    pending_free(inode);
    /* The size is one of the sizes that the file had, or between these. */
    uint64_t low = inode->durable_size, high = inode->size;
    if (low > high) {
        uint64_t swap = low;
        low = high;
        high = swap;
    }
    unsigned pick = (unsigned)sim_rng_below(&disk->rng, 3);
    uint64_t size = pick == 0 ? low : pick == 1 ? high : sim_rng_between(&disk->rng, low, high);
    inode->size = inode->durable_size = size;
    if (disk->crash_gives) inode->allocated = size;
    inode->failed = inode->grown = false;
    image_cut(inode->durable, inode->chunks, size);
    for (size_t i = 0; i < inode->chunks; i++) {
        if (inode->durable[i]) {
            if (!inode->now[i]) inode->now[i] = malloc(SIM_CHUNK);
            LEAT_ASSERT(inode->now[i] != NULL);
            memcpy(inode->now[i], inode->durable[i], SIM_CHUNK);
        } else {
            free(inode->now[i]);
            inode->now[i] = NULL;
        }
    }
}

void sim_inode_destroy(struct sim_inode *inode)
{
    pending_free(inode);
    for (size_t i = 0; i < inode->chunks; i++) {
        free(inode->now[i]);
        free(inode->durable[i]);
    }
    free(inode->now);
    free(inode->durable);
    free(inode);
}
