/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that a core has from its start: structs for requests, buffers for old data, the actor that uncompresses,
 * and the shares of its addresses. So many as the budget says, or none where there is no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/data/append.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/net/core.h"
#include "broker/node/hooks.h"
#include "tests/broker/parts.h"

struct desk {
    struct leat_node node;
    struct leat_core core;
    struct core_parts parts;
    size_t memory_bytes;
};

static struct desk *desk_create(uint64_t memory_bytes)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->core.node = &desk->node;
    core_parts_set(&desk->core, &desk->parts);
    desk->node.options.memory_bytes = memory_bytes;
    desk->node.options.cores = 2;
    desk->memory_bytes = leat_mem_bytes(LEAT_MEM_BROKER);
    return desk;
}

static size_t taken(const struct desk *desk)
{
    return leat_mem_bytes(LEAT_MEM_BROKER) - desk->memory_bytes;
}

static void desk_destroy(struct desk *desk)
{
    assert_int_equal(taken(desk), 0);
    free(desk);
}

enum { MIB = 1024 * 1024, STOCKS = 5 };

static void stocks_of(struct leat_core *core, struct leat_stock *out_stocks[STOCKS])
{
    struct leat_stock *const stocks[] = {&core->append_pool, &core->part_pool, &core->fetch_pool,
                                         &core->item_pool, &core->read_pool};
    memcpy(out_stocks, stocks, sizeof stocks);
}

/* As a core has them made. */
static leat_err stocks_init(struct leat_core *core)
{
    size_t bytes;
    uint32_t count;
    struct leat_stock *stock;
    leat_err rc = LEAT_OK;
    for (size_t i = 0; rc == LEAT_OK && (stock = leat_core_stock(core, i, &bytes, &count)); i++)
        rc = leat_stock_init(stock, core, bytes, count);
    return rc;
}

static void requests_have_structs_by_the_budget(void **state)
{
    (void)state;
    static const uint32_t most[] = {LEAT_CORE_APPENDS_MAX, LEAT_CORE_PARTS_MAX,
                                    LEAT_CORE_FETCHES_MAX, LEAT_CORE_FETCH_ITEMS_MAX,
                                    LEAT_CORE_READS_MAX};
    static const uint32_t least[] = {0, 0, 0, LEAT_CORE_FETCH_ITEMS_MIN, LEAT_CORE_READS_MIN};
    static const size_t bytes[] = {sizeof(struct leat_append_request),
                                   sizeof(struct leat_append_part), LEAT_FETCH_STRUCT_BYTES,
                                   sizeof(struct leat_fetch_item), sizeof(struct leat_fetch_read)};
    static const uint64_t budgets[] = {(uint64_t)64 * 1024 * MIB, 256 * MIB};
    for (unsigned b = 0; b < 2; b++) {
        struct desk *desk = desk_create(budgets[b]);
        struct leat_core *core = &desk->core;
        struct leat_stock *stocks[STOCKS];
        size_t in_all = 0, asked = 0;
        stocks_of(core, stocks);
        for (uint32_t i = 0; i < STOCKS; i++) /* whatever lies there */
            memset(stocks[i], 0x5a, sizeof *stocks[i]);
        assert_int_equal(stocks_init(core), LEAT_OK);
        for (uint32_t i = 0; i < STOCKS; i++) {
            const struct leat_stock *stock = stocks[i];
            uint32_t count = leat_node_structs(budgets[b], 2, most[i]);
            if (count < least[i]) count = least[i];
            if (b == 0) assert_int_equal(count, most[i]);
            assert_int_equal(stock->count, count);
            assert_int_equal(stock->left, count);
            assert_int_equal(stock->element_bytes, (bytes[i] + 15) / 16 * 16);
            assert_int_equal(stock->index, i);
            assert_int_equal(stock->fresh, 0);
            assert_null(stock->free.first);
            assert_ptr_equal(stock->core, core);
            assert_true(leat_line_empty(&stock->lines[0]) && leat_line_empty(&stock->lines[1]));
            assert_true(leat_list_empty(&stock->wanted));
            in_all += (size_t)count * stock->element_bytes;
            asked += count * bytes[i];
        }
        assert_int_equal(taken(desk), in_all);
        assert_int_equal(leat_core_stocks_bytes(budgets[b], 2), asked);
        assert_int_equal(core->stock_count, STOCKS);
        for (uint32_t i = 0; i < STOCKS; i++)
            leat_stock_fini(stocks[i]);
        desk_destroy(desk);
    }
}

/* Goal: a core has all of them from 512 MiB on, fewer in proportion, and a quarter in any budget. */
static void structs_are_fewer_in_small_budgets(void **state)
{
    (void)state;
    static const struct {
        uint64_t mib;
        uint32_t cores, structs;
    } rows[] = {{512, 1, 4096}, {1024, 2, 4096}, {4096, 1, 4096}, {511, 1, 4088},
                {256, 1, 2048}, {128, 1, 1024},  {127, 1, 1024},  {64, 4, 1024}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(leat_node_structs(rows[i].mib * MIB, rows[i].cores, 4096),
                         rows[i].structs);
    assert_int_equal(leat_node_structs(0, 1, 4099), 1024);
}

static void requests_without_memory(void **state)
{
    (void)state;
    for (uint32_t fails = 1; fails <= STOCKS; fails++) {
        struct desk *desk = desk_create(256 * MIB);
        struct leat_stock *stocks[STOCKS];
        leat_mem_fail_at(fails);
        assert_int_equal(stocks_init(&desk->core), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        stocks_of(&desk->core, stocks);
        for (uint32_t i = 0; i < STOCKS; i++) {
            assert_int_equal(stocks[i]->block != NULL, i + 1 < fails);
            leat_stock_fini(stocks[i]);
        }
        desk_destroy(desk);
    }
}

static void buffers_are_lent(void **state)
{
    (void)state;
    enum { COUNT = 3 };
    struct desk *desk = desk_create(256 * MIB);
    struct leat_core *core = &desk->core;
    struct leat_lender *lender = core->data->lender;
    assert_int_equal(leat_lender_init(core, COUNT), LEAT_OK);
    assert_true(leat_list_empty(&lender->buffers) && leat_list_empty(&lender->segments) &&
                leat_list_empty(&lender->line) && leat_list_empty(&lender->rests));
    assert_ptr_equal(lender->timer.owner, core);
    assert_non_null(lender->timer.on_expired);
    assert_int_equal(lender->rest_bytes_max, leat_node_rest_bytes(256 * MIB, 2));
    assert_int_equal(taken(desk),
                     COUNT * (size_t)LEAT_DISK_BUFFER_BYTES + 4096 + COUNT * sizeof(void *));
    assert_int_equal(lender->count, COUNT);
    uint8_t *buffers[COUNT + 1];
    for (unsigned i = 0; i <= COUNT; i++)
        buffers[i] = leat_buffer_try(core);
    assert_null(buffers[COUNT]);
    for (unsigned i = 0; i < COUNT; i++) {
        uintptr_t from = (uintptr_t)buffers[i] - (uintptr_t)lender->block;
        assert_int_equal((uintptr_t)buffers[i] % 4096, 0);
        assert_in_range(from, 0, 4095 + (COUNT - 1) * (size_t)LEAT_DISK_BUFFER_BYTES);
        memset(buffers[i], (int)i, LEAT_DISK_BUFFER_BYTES);
    }
    for (unsigned i = 0; i < COUNT; i++) /* none lies in another */
        assert_int_equal(buffers[i][0] + 100 * buffers[i][LEAT_DISK_BUFFER_BYTES - 1], 101 * i);
    leat_lender_fini(core);
    desk_destroy(desk);
    for (unsigned fails = 1; fails <= 2; fails++) {
        desk = desk_create(256 * MIB);
        leat_mem_fail_at(fails);
        assert_int_equal(leat_lender_init(&desk->core, COUNT), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        leat_lender_fini(&desk->core);
        desk_destroy(desk);
    }
}

static void batches_are_uncompressed(void **state)
{
    (void)state;
    struct desk *desk = desk_create(256 * MIB);
    assert_int_equal(leat_unpack_init(&desk->core), LEAT_OK);
    assert_int_equal(desk->core.unpack.left, 256 * 1024);
    leat_unpack_fini(&desk->core);
    desk_destroy(desk);
    desk = desk_create(256 * MIB);
    leat_mem_fail_at(1);
    assert_int_equal(leat_unpack_init(&desk->core), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    desk_destroy(desk);
}

static void addresses_share_what_they_have(void **state)
{
    (void)state;
    struct desk *desk = desk_create(256 * MIB);
    struct leat_core *core = &desk->core;
    /* The third shares a bucket with the first two, which are of one address. */
    struct leat_peer peers[] = {
        {.address = 5}, {.address = 5}, {.address = 5 + LEAT_SHARER_BUCKETS}};
    for (unsigned i = 0; i < 3; i++)
        assert_true(leat_sharer_join(core, &peers[i]));
    struct leat_sharer *sharer = peers[0].sharer;
    assert_ptr_equal(peers[1].sharer, sharer);
    assert_ptr_not_equal(peers[2].sharer, sharer);
    assert_int_equal(sharer->members, 2);
    assert_int_equal(peers[2].sharer->members, 1);
    assert_int_equal(peers[2].sharer->address, 5 + LEAT_SHARER_BUCKETS);
    assert_int_equal(atomic_load(&core->counters.addresses), 2);
    assert_int_equal(taken(desk), 2 * sizeof *sharer);
    leat_sharer_leave(core, sharer);
    leat_sharer_leave(core, sharer);
    assert_int_equal(atomic_load(&core->counters.addresses), 1);
    leat_mem_fail_at(1);
    peers[0].sharer = NULL;
    assert_false(leat_sharer_join(core, &peers[0]));
    leat_mem_fail_at(0);
    assert_null(peers[0].sharer);
    assert_int_equal(atomic_load(&core->counters.addresses), 1);
    leat_sharer_leave(core, peers[2].sharer);
    assert_int_equal(atomic_load(&core->counters.addresses), 0);
    desk_destroy(desk);
}

/* Goal: a new hook that nobody fills is found when the first node starts, and not when it is called. */
static void an_empty_hook_is_noticed(void **state)
{
    (void)state;
    assert_true(leat_core_hooks_full(&leat_core_hooks));
    for (size_t at = 0; at < sizeof leat_core_hooks; at += sizeof(void (*)(void))) {
        struct leat_core_hooks hooks = leat_core_hooks;
        memset((char *)&hooks + at, 0, sizeof(void (*)(void)));
        assert_false(leat_core_hooks_full(&hooks));
    }
}

static void part_for_admin_is_freed_once(void **state)
{
    (void)state;
    struct desk *desk = desk_create(MIB);
    assert_int_equal(leat_core_admin_make(&desk->core), LEAT_OK);
    assert_true(taken(desk) > 0);
    for (unsigned i = 0; i < 2; i++) {
        leat_core_admin_free(&desk->core);
        assert_null(desk->core.admin);
    }
    desk_destroy(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_have_structs_by_the_budget),
        cmocka_unit_test(structs_are_fewer_in_small_budgets),
        cmocka_unit_test(requests_without_memory),
        cmocka_unit_test(buffers_are_lent),
        cmocka_unit_test(batches_are_uncompressed),
        cmocka_unit_test(addresses_share_what_they_have),
        cmocka_unit_test(an_empty_hook_is_noticed),
        cmocka_unit_test(part_for_admin_is_freed_once),
    };
    return cmocka_run_group_tests_name("broker core_parts", tests, NULL, NULL);
}
