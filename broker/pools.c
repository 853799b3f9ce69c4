/* How many structs for requests a core has, and their memory. */
#include "broker/append.h"
#include "broker/fetch.h"

static const struct {
    size_t at; /* of the stock, in a core */
    size_t bytes;
    uint32_t most, least; /* 0: leat_node_structs() says how many */
} stocks[] = {
    {offsetof(struct leat_core, append_pool), sizeof(struct leat_append_request),
     LEAT_CORE_APPENDS_MAX, 0},
    {offsetof(struct leat_core, part_pool), sizeof(struct leat_append_part), LEAT_CORE_PARTS_MAX,
     0},
    {offsetof(struct leat_core, fetch_pool), LEAT_FETCH_STRUCT_BYTES, LEAT_CORE_FETCHES_MAX, 0},
    {offsetof(struct leat_core, item_pool), sizeof(struct leat_fetch_item),
     LEAT_CORE_FETCH_ITEMS_MAX, LEAT_CORE_FETCH_ITEMS_MIN},
    {offsetof(struct leat_core, read_pool), sizeof(struct leat_fetch_read), LEAT_CORE_READS_MAX,
     LEAT_CORE_READS_MIN},
};

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

leat_err leat_core_pools_init(struct leat_core *core)
{
    const struct leat_node_options *options = &core->node->options;
    leat_err rc = LEAT_OK;
    for (size_t i = 0; rc == LEAT_OK && i < sizeof stocks / sizeof *stocks; i++)
        rc =
            leat_stock_init((struct leat_stock *)(void *)((uint8_t *)core + stocks[i].at), core,
                            stocks[i].bytes, stock_count(i, options->memory_bytes, options->cores));
    core->calls_max = leat_node_structs(options->memory_bytes, options->cores, LEAT_CORE_CALLS_MAX);
    return rc;
}
