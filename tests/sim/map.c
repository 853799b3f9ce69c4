/* SPDX-License-Identifier: Apache-2.0 */
/* Address space for pools and for memory that others write into. Only what is touched takes memory.
 * All of it can be given back at once: at a seed's end, where several run in one process. */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "tests/sim/sim.h"

struct map {
    struct map *next;
    void *base;
    uint64_t bytes;
};

static struct map *maps;

void *sim_map(uint64_t bytes)
{
    struct map *map = malloc(sizeof *map);
    LEAT_ASSERT(map != NULL);
    map->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LEAT_ASSERT(map->base != MAP_FAILED);
    map->bytes = bytes;
    map->next = maps;
    maps = map;
    return map->base;
}

void sim_unmap(void *base)
{
    struct map **at = &maps;
    while (*at && (*at)->base != base)
        at = &(*at)->next;
    struct map *map = *at;
    LEAT_ASSERT(map != NULL);
    *at = map->next;
    munmap(map->base, map->bytes);
    free(map);
}

void sim_maps_drop(void)
{
    for (const struct map *map = maps; map; map = map->next)
        munmap(map->base, map->bytes);
    maps = NULL;
}
