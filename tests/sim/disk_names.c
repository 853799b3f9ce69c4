/* SPDX-License-Identifier: Apache-2.0 */
/* The names of the simulated disk: pending per directory until sync_dir(). */
#include "tests/sim/disk_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void sim_path_clean(const char *path, char out[SIM_PATH_BYTES])
{
    size_t used = 0;
    for (const char *at = path; *at;) {
        size_t part = strcspn(at, "/");
        if (part && !(part == 1 && at[0] == '.')) {
            LEAT_ASSERT(used + part + 2 < SIM_PATH_BYTES);
            if (used) out[used++] = '/';
            memcpy(out + used, at, part);
            used += part;
        }
        at += part;
        while (*at == '/')
            at++;
    }
    out[used] = '\0';
}

bool sim_path_in(const char *path, const char *dir)
{
    const char *slash = strrchr(path, '/');
    size_t bytes = slash ? (size_t)(slash - path) : 0;
    return path[0] && strlen(dir) == bytes && memcmp(path, dir, bytes) == 0;
}

struct sim_name *sim_name_find(struct sim_names *names, const char *path)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->at[i].path, path) == 0) return &names->at[i];
    return NULL;
}

static void name_apply(struct sim_names *names, const struct sim_name_op *op)
{
    struct sim_name *old = op->remove[0] ? sim_name_find(names, op->remove) : NULL;
    if (old) *old = names->at[--names->count];
    if (!op->add[0]) return;
    struct sim_name *name = sim_name_find(names, op->add);
    if (!name) {
        if (names->count == names->capacity) {
            names->capacity = names->capacity ? 2 * names->capacity : 32;
            names->at = realloc(names->at, names->capacity * sizeof *names->at);
            LEAT_ASSERT(names->at != NULL);
        }
        name = &names->at[names->count++];
        memcpy(name->path, op->add, SIM_PATH_BYTES);
    }
    name->inode = op->inode;
}

void sim_name_change(struct sim_disk *disk, const char *remove, const char *add,
                     struct sim_inode *inode)
{
    struct sim_name_op *op = calloc(1, sizeof *op);
    LEAT_ASSERT(op != NULL);
    snprintf(op->remove, sizeof op->remove, "%s", remove);
    snprintf(op->add, sizeof op->add, "%s", add);
    op->inode = inode;
    name_apply(&disk->now, op);
    if (disk->last)
        disk->last->next = op;
    else
        disk->first = op;
    disk->last = op;
}

void sim_names_sync(struct sim_disk *disk, const char *dir)
{
    struct sim_name_op **link = &disk->first, *last = NULL;
    while (*link) {
        struct sim_name_op *op = *link;
        if (sim_path_in(op->remove, dir) || sim_path_in(op->add, dir)) {
            name_apply(&disk->durable, op);
            *link = op->next;
            free(op);
        } else {
            last = op;
            link = &op->next;
        }
    }
    disk->last = last;
}

void sim_names_crash(struct sim_disk *disk)
{
    uint64_t count = 0;
    for (struct sim_name_op *op = disk->first; op; op = op->next)
        count++;
    uint64_t keep = sim_rng_below(&disk->rng, count + 1);
    for (struct sim_name_op *op = disk->first, *next; op; op = next) {
        next = op->next;
        if (keep) {
            name_apply(&disk->durable, op);
            keep--;
        }
        free(op);
    }
    disk->first = disk->last = NULL;
    disk->now.count = 0;
    for (size_t i = 0; i < disk->durable.count; i++) {
        struct sim_name_op add = {.inode = disk->durable.at[i].inode};
        memcpy(add.add, disk->durable.at[i].path, SIM_PATH_BYTES);
        name_apply(&disk->now, &add);
    }
}

bool sim_disk_is_store_file(const struct sim_disk *disk, const struct sim_inode *inode)
{
    for (size_t i = 0; i < disk->now.count; i++)
        if (disk->now.at[i].inode == inode) return strncmp(disk->now.at[i].path, "store/", 6) == 0;
    return false;
}
