/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong with the simulated disk when a test says so, and what a death leaves behind. */
#include "tests/sim/disk_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void sim_disk_aim(struct sim_disk *disk, uint64_t n, enum sim_cut_phase phase,
                  void (*on_cut)(void *arg), void *arg)
{
    disk->aim_at = n ? disk->ops + n : 0;
    disk->aim_phase = phase;
    disk->on_cut = on_cut;
    disk->on_cut_arg = arg;
}

void sim_disk_sweep(struct sim_disk *disk, sim_sweep_fn sweep, void *arg)
{
    disk->sweep = sweep;
    disk->sweep_arg = arg;
}

void sim_disk_amid(struct sim_disk *disk, sim_amid_fn amid, void *arg)
{
    disk->amid = amid;
    disk->amid_arg = arg;
}

uint64_t sim_disk_ops_count(const struct sim_disk *disk)
{
    return disk->ops;
}

void sim_disk_reseed(struct sim_disk *disk, uint64_t seed)
{
    sim_rng_init(&disk->rng, seed, "disk itself");
}

void sim_disk_set_full(struct sim_disk *disk, bool full)
{
    disk->full = full;
}

bool sim_disk_is_full(const struct sim_disk *disk)
{
    return disk->full;
}

void sim_disk_set_no_files(struct sim_disk *disk, bool none)
{
    disk->no_files = none;
}

/* What waited for the end of a stall waits for it, though it is healed before. */
static void stall_note(struct sim_disk *disk, uint64_t until_us)
{
    if (until_us > disk->stalled_us) disk->stalled_us = until_us;
}

void sim_disk_stall(struct sim_disk *disk, uint64_t until_us)
{
    disk->stall_until_us = until_us;
    stall_note(disk, until_us);
}

void sim_disk_stall_reads(struct sim_disk *disk, uint64_t until_us)
{
    disk->stall_reads_until_us = until_us;
    stall_note(disk, until_us);
}

void sim_disk_stall_writes(struct sim_disk *disk, uint64_t until_us)
{
    disk->stall_writes_until_us = until_us;
    stall_note(disk, until_us);
}

void sim_disk_fail_next(struct sim_disk *disk, enum leat_disk_kind kind)
{
    if (kind == LEAT_DISK_SYNC)
        disk->fail_sync = true;
    else
        disk->fail_write = true;
}

void sim_disk_fail_place(struct sim_disk *disk, const struct leat_file *file, uint64_t offset,
                         uint64_t bytes)
{
    disk->fail_file = file;
    disk->fail_from = offset;
    disk->fail_end = offset + bytes;
}

bool sim_disk_refuses(struct sim_disk *disk, const struct leat_disk_io *io)
{
    bool in_place = disk->fail_file && disk->fail_file == io->file && io->offset < disk->fail_end &&
                    io->offset + io->bytes > disk->fail_from;
    bool fails = disk->fail_write || in_place;
    if (in_place) disk->fail_file = NULL;
    disk->fail_write = false;
    return fails;
}

void sim_disk_no_errors(struct sim_disk *disk)
{
    disk->fail_sync = disk->fail_write = disk->fail_grown = false;
    disk->fail_file = NULL;
}

bool sim_disk_kill_at_flush(struct sim_disk *disk, const char *path)
{
    bool was_killed = disk->was_killed;
    disk->kill_path = path;
    disk->was_killed = false;
    return was_killed;
}

bool sim_disk_is_killed(struct sim_disk *disk, const struct leat_disk_io *io)
{
    const struct sim_name *name = sim_name_find(&disk->now, disk->kill_path);
    if (io->kind != LEAT_DISK_SYNC || !name || name->inode != io->file->inode) return false;
    disk->kill_path = NULL;
    disk->was_killed = true;
    sim_fault_struck(disk->world, SIM_FAULT_KILL_CALL);
    return true;
}

void sim_disk_fail_grown(struct sim_disk *disk, bool fails)
{
    disk->fail_grown = fails;
}

bool sim_disk_failed_grown(const struct sim_disk *disk)
{
    for (const struct sim_inode *inode = disk->inodes; inode; inode = inode->next)
        if (inode->failed && inode->grown) return true;
    return false;
}

void sim_disk_crash_gives(struct sim_disk *disk)
{
    disk->crash_gives = true;
}

bool sim_disk_took_error(struct sim_disk *disk)
{
    bool took = disk->took_error;
    disk->took_error = false;
    return took;
}

void sim_disk_write_part(struct sim_disk *disk, struct sim_inode *inode, uint64_t offset,
                         const uint8_t *data, size_t bytes)
{
    size_t sectors = bytes / SIM_SECTOR;
    size_t keep = (size_t)sim_rng_below(&disk->rng, sectors + 1) * SIM_SECTOR;
    if (sim_rng_chance(&disk->rng, 250)) keep = bytes;
    sim_inode_write(inode, offset, data, keep);
}

/* ---- deaths and damage ---- */

static void tear(struct sim_disk *disk, const struct leat_disk_io *io, const uint8_t *stage)
{
    if (io->kind != LEAT_DISK_WRITE || io->file->inode->failed) return;
    if (disk->full && io->offset + io->bytes > io->file->inode->allocated) return;
    sim_disk_write_part(disk, io->file->inode, io->offset, stage, io->bytes);
}

void sim_disk_process_died(struct sim_process *process, enum sim_death death)
{
    struct sim_disk *disk = process->disk;
    for (struct sim_actor *actor = process->actors; actor; actor = actor->next) {
        unsigned under_way = actor->disk_first && actor->disk_started;
        for (const struct sim_beside *it = actor->besides; it; it = it->next)
            under_way += it->io && it->started;
        if (under_way > 1) sim_fault_struck(disk->world, SIM_FAULT_OVERLAP);
        /* Of the queue only its head can have begun. */
        if (actor->disk_first && actor->disk_started)
            tear(disk, actor->disk_first, actor->disk_stage);
        for (struct sim_beside *it = actor->besides; it; it = it->next) {
            if (it->io && it->started) tear(disk, it->io, it->stage);
            it->io = it->first = NULL;
            it->started = false;
        }
        actor->disk_first = actor->disk_last = NULL;
        actor->disk_busy = actor->disk_started = actor->disk_drained = false;
    }
    disk->lost_flush = false;
    for (struct sim_inode *inode = disk->inodes; inode; inode = inode->next) {
        disk->lost_flush |= inode->failed && !sim_disk_is_store_file(disk, inode);
        if (death == SIM_DEATH_POWER || inode->failed) sim_inode_crash(inode);
    }
    if (death == SIM_DEATH_POWER) sim_names_crash(disk);
}

bool sim_disk_lost_flush(const struct sim_disk *disk)
{
    return disk->lost_flush;
}

bool sim_disk_flip(struct sim_disk *disk, const char *path, uint64_t offset, unsigned bit)
{
    struct sim_name *name = sim_name_find(&disk->now, path);
    if (!name || !name->inode || offset >= name->inode->size) return false;
    struct sim_inode *inode = name->inode;
    if (!sim_image_has(inode->now, inode->chunks, offset)) return false;
    sim_image_flip(inode->now, offset, bit);
    if (sim_image_has(inode->durable, inode->chunks, offset))
        sim_image_flip(inode->durable, offset, bit);
    return true;
}

bool sim_disk_peek(struct sim_disk *disk, const char *path, uint64_t offset, void *to, size_t bytes)
{
    const struct sim_name *name = sim_name_find(&disk->now, path);
    if (!name || !name->inode || offset + bytes > name->inode->size) return false;
    sim_image_read(name->inode->now, name->inode->chunks, offset, to, bytes);
    return true;
}

bool sim_disk_pick(struct sim_disk *disk, struct sim_rng *rng, const char *prefix,
                   struct sim_disk_place *out_place)
{
    uint8_t sector[SIM_SECTOR];
    if (!disk->now.count) return false;
    const struct sim_name *name = &disk->now.at[sim_rng_below(rng, disk->now.count)];
    if (!name->inode || strncmp(name->path, prefix, strlen(prefix)) != 0) return false;
    uint64_t bytes = name->inode->size;
    if (bytes > (uint64_t)name->inode->chunks * SIM_CHUNK)
        bytes = (uint64_t)name->inode->chunks * SIM_CHUNK;
    /* Most of a file is room for later: begin with a piece that holds something. */
    uint64_t begin =
        bytes ? sim_rng_below(rng, (bytes + SIM_PIECE - 1) / SIM_PIECE) * SIM_PIECE : 0;
    if (!bytes || !sim_image_has(name->inode->now, name->inode->chunks, begin)) return false;
    uint64_t end = begin + SIM_PIECE < bytes ? begin + SIM_PIECE : bytes;
    uint64_t offset = sim_rng_between(rng, begin, end - 1);
    uint64_t at = offset / SIM_SECTOR * SIM_SECTOR;
    memset(sector, 0, sizeof sector);
    sim_image_read(name->inode->now, name->inode->chunks, at, sector, sizeof sector);
    bool something = false;
    for (size_t i = 0; i < sizeof sector; i++)
        something |= sector[i] != 0;
    if (!something) return false;
    snprintf(out_place->path, sizeof out_place->path, "%s", name->path);
    out_place->offset = offset;
    return true;
}

uint64_t sim_disk_file_bytes(struct sim_disk *disk, const char *path)
{
    struct sim_name *name = sim_name_find(&disk->now, path);
    return name && name->inode ? name->inode->size : 0;
}

bool sim_disk_truncate(struct sim_disk *disk, const char *path, uint64_t bytes)
{
    struct sim_name *name = sim_name_find(&disk->now, path);
    if (!name || !name->inode || bytes >= name->inode->size) return false;
    sim_inode_shrink(name->inode, bytes);
    sim_inode_sync(name->inode);
    return true;
}

/* SUBTLE: else the disk of a running store lacks space that the store has reserved. (1) The store allocates a step of a
 * file, and opens a segment there. (2) The bytes before the segment are cut off, and the allocation with them. (3) The
 * disk is full: the segment is refused a write, which no disk does that was not struck. */
bool sim_disk_cut_end(struct sim_disk *disk, const char *path, uint64_t bytes)
{
    const struct sim_name *name = sim_name_find(&disk->now, path);
    uint64_t allocated = name && name->inode ? name->inode->allocated : 0;
    if (!sim_disk_truncate(disk, path, bytes)) return false;
    name->inode->allocated = allocated;
    return true;
}

bool sim_disk_lose(struct sim_disk *disk, const char *path)
{
    char dir[SIM_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    if (!slash || !sim_name_find(&disk->now, path)) return false;
    snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
    sim_name_change(disk, path, "", NULL);
    sim_names_sync(disk, dir);
    return true;
}

/* ---- another disk in its place ---- */

struct sim_disk_kept {
    size_t count;
    struct {
        char path[SIM_PATH_BYTES];
        bool directory;
        uint64_t size, allocated;
        uint8_t **chunks;
        size_t chunk_count;
    } files[];
};

void sim_disk_empty(struct sim_disk *disk)
{
    for (struct sim_name_op *op = disk->first, *next; op; op = next) {
        next = op->next;
        free(op);
    }
    disk->first = disk->last = NULL;
    disk->now.count = disk->durable.count = 0; /* inodes stay until the world ends */
}

struct sim_disk_kept *sim_disk_keep(struct sim_disk *disk)
{
    size_t count = disk->now.count;
    struct sim_disk_kept *kept = calloc(1, sizeof *kept + count * sizeof kept->files[0]);
    LEAT_ASSERT(kept != NULL);
    kept->count = count;
    for (size_t i = 0; i < count; i++) {
        const struct sim_inode *inode = disk->now.at[i].inode;
        memcpy(kept->files[i].path, disk->now.at[i].path, SIM_PATH_BYTES);
        kept->files[i].directory = inode == NULL;
        if (!inode) continue;
        kept->files[i].size = inode->size;
        kept->files[i].allocated = inode->allocated;
        kept->files[i].chunk_count = inode->chunks;
        kept->files[i].chunks = calloc(inode->chunks + 1, sizeof(uint8_t *));
        LEAT_ASSERT(kept->files[i].chunks != NULL);
        for (size_t c = 0; c < inode->chunks; c++) {
            if (!inode->now[c]) continue;
            kept->files[i].chunks[c] = malloc(SIM_CHUNK);
            LEAT_ASSERT(kept->files[i].chunks[c] != NULL);
            memcpy(kept->files[i].chunks[c], inode->now[c], SIM_CHUNK);
        }
    }
    return kept;
}

void sim_disk_put_back(struct sim_disk *disk, const struct sim_disk_kept *kept)
{
    sim_disk_empty(disk);
    for (size_t i = 0; i < kept->count; i++) {
        struct sim_inode *inode = NULL;
        if (!kept->files[i].directory) {
            inode = sim_inode_create(disk);
            for (size_t c = 0; c < kept->files[i].chunk_count; c++)
                if (kept->files[i].chunks[c])
                    sim_inode_write(inode, (uint64_t)c * SIM_CHUNK, kept->files[i].chunks[c],
                                    SIM_CHUNK);
            sim_image_need(inode, kept->files[i].size);
            inode->size = kept->files[i].size;
            inode->allocated = kept->files[i].allocated;
            sim_inode_sync(inode);
        }
        sim_name_change(disk, "", kept->files[i].path, inode);
    }
    for (size_t i = 0; i < disk->now.count; i++) {
        const char *slash = strrchr(disk->now.at[i].path, '/');
        char dir[SIM_PATH_BYTES];
        snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - disk->now.at[i].path) : 0,
                 disk->now.at[i].path);
        sim_names_sync(disk, dir);
    }
}
