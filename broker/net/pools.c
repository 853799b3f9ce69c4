/* SPDX-License-Identifier: Apache-2.0 */
/* How many structs for requests a core has, and their memory. */
#include "broker/net/budget.h"
#include "broker/net/core.h"

enum {
    MIB = 1024 * 1024,
    STRUCTS_WHOLE_BYTES = 512 * MIB /* of a core: with so much a core has all structs */
};

static const struct {
    size_t at; /* of the stock, in a core */
    size_t bytes;
    uint32_t most, least; /* 0: leat_node_structs() says how many */
} stocks[] = {
    {offsetof(struct leat_core, append_pool), LEAT_APPEND_REQUEST_BYTES, LEAT_CORE_APPENDS_MAX, 0},
    {offsetof(struct leat_core, part_pool), LEAT_APPEND_PART_BYTES, LEAT_CORE_PARTS_MAX, 0},
    {offsetof(struct leat_core, fetch_pool), LEAT_FETCH_STRUCT_BYTES, LEAT_CORE_FETCHES_MAX, 0},
    {offsetof(struct leat_core, item_pool), LEAT_FETCH_ITEM_BYTES, LEAT_CORE_FETCH_ITEMS_MAX,
     LEAT_CORE_FETCH_ITEMS_MIN},
    {offsetof(struct leat_core, read_pool), LEAT_FETCH_READ_BYTES, LEAT_CORE_READS_MAX,
     LEAT_CORE_READS_MIN},
};

uint32_t leat_node_structs(uint64_t memory_bytes, uint32_t cores, uint32_t most)
{
    uint64_t share = memory_bytes / cores / MIB * most / (STRUCTS_WHOLE_BYTES / MIB);
    if (share < most / 4) share = most / 4;
    return share < most ? (uint32_t)share : most;
}

static uint32_t stock_count(size_t i, uint64_t memory_bytes, uint32_t cores)
{
    uint32_t count = leat_node_structs(memory_bytes, cores, stocks[i].most);
    return count > stocks[i].least ? count : stocks[i].least;
}

uint64_t leat_core_stocks_bytes(uint64_t memory_bytes, uint32_t cores)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof stocks / sizeof *stocks; i++)
        bytes += stock_count(i, memory_bytes, cores) * (uint64_t)stocks[i].bytes;
    return bytes;
}

struct leat_stock *leat_core_stock(struct leat_core *core, size_t i, size_t *out_bytes,
                                   uint32_t *out_count)
{
    const struct leat_node_options *options = &core->node->options;
    if (i >= sizeof stocks / sizeof *stocks) return NULL;
    *out_bytes = stocks[i].bytes;
    *out_count = stock_count(i, options->memory_bytes, options->cores);
    return (struct leat_stock *)(void *)((uint8_t *)core + stocks[i].at);
}
