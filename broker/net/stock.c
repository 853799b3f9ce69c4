/* SPDX-License-Identifier: Apache-2.0 */
/* Structs for requests under way: see stock.h. */
#include "broker/net/stock.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "broker/net/core.h"

leat_err leat_stock_init(struct leat_stock *stock, struct leat_core *core, size_t element_bytes,
                         uint32_t count)
{
    LEAT_ASSERT_CMP(element_bytes, >=, sizeof(void *));
    stock->element_bytes = (uint32_t)LEAT_ALIGN_UP(element_bytes, (size_t)16);
    stock->core = core;
    stock->index = core->stock_count++;
    LEAT_ASSERT_CMP(stock->index, <, LEAT_SHARER_STOCKS_MAX);
    leat_line_init(&stock->lines[0]);
    leat_line_init(&stock->lines[1]);
    leat_list_init(&stock->wanted);
    /* Elements are handed out in order first, so that memory never needed is never touched. */
    stock->block = leat_mem_calloc(LEAT_MEM_BROKER, count, stock->element_bytes);
    if (stock->block == NULL) return LEAT_E_NO_MEMORY;
    stock->free = (struct leat_free_list){NULL};
    stock->fresh = 0;
    stock->count = stock->left = count;
    return LEAT_OK;
}

void leat_stock_fini(struct leat_stock *stock)
{
    leat_mem_free(stock->block);
    memset(stock, 0, sizeof *stock);
}

static bool is_of_block(const struct leat_stock *stock, const void *element)
{
    uintptr_t at = (uintptr_t)element - (uintptr_t)stock->block;
    return at < (uintptr_t)stock->count * stock->element_bytes;
}

static uint32_t *taken_by(const struct leat_stock *stock, struct leat_sharer *sharer)
{
    return &sharer->stocks[stock->index].taken;
}

void *leat_stock_take(struct leat_stock *stock, struct leat_sharer *sharer)
{
    LEAT_ASSERT_OWNER(stock->core);
    void *element = leat_free_list_take(&stock->free);
    if (element == NULL) {
        if (stock->fresh == stock->count) return NULL;
        element = (uint8_t *)stock->block + (size_t)stock->fresh++ * stock->element_bytes;
    }
    stock->left--;
    if (sharer != NULL && is_of_block(stock, element)) ++*taken_by(stock, sharer);
    return element;
}

static void put(struct leat_stock *stock, void *element)
{
    leat_free_list_give(&stock->free, element);
    stock->left++;
}

/* ---- a connection's own ---- */

/* SUBTLE: a connection that pipelines gets structs of its own only while half of the budget for such structs is left.
 * A connection without another request gets a few, however many connections there are, unless the heap is full: as
 * with connections themselves. */
static bool own_fits(const struct leat_core *core, const struct leat_peer *peer, bool only,
                     uint64_t bytes)
{
    uint64_t all = atomic_load_explicit(&core->counters.own_bytes, memory_order_relaxed) + bytes;
    uint64_t own = peer->stock.own_bytes + bytes;
    if (!only) return own <= LEAT_PEER_OWN_BYTES && all <= LEAT_CORE_OWN_BYTES / 2;
    if (all <= LEAT_CORE_OWN_BYTES) return own <= LEAT_PEER_OWN_BYTES_MOST;
    return own <= LEAT_PEER_OWN_BYTES &&
           !leat_node_heap_is_full(core->node, LEAT_HEAP_SPARE_BYTES, bytes);
}

bool leat_own_take(struct leat_peer *peer, bool only, size_t bytes)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct leat_core *core = peer->core;
    if (!own_fits(core, peer, only, bytes)) return false;
    peer->stock.own_bytes += bytes;
    atomic_fetch_add_explicit(&core->counters.own_bytes, bytes, memory_order_relaxed);
    return true;
}

void leat_own_give(struct leat_core *core, struct leat_peer *peer, size_t bytes)
{
    LEAT_ASSERT_OWNER(core);
    atomic_fetch_sub_explicit(&core->counters.own_bytes, bytes, memory_order_relaxed);
    if (peer == NULL) return;
    LEAT_ASSERT_CMP(peer->stock.own_bytes, >=, bytes);
    peer->stock.own_bytes -= bytes;
    leat_stock_again(peer);
}

void leat_stock_give(struct leat_stock *stock, void *element, struct leat_peer *peer,
                     struct leat_sharer *sharer)
{
    LEAT_ASSERT_OWNER(stock->core);
    if (is_of_block(stock, element)) {
        if (sharer != NULL) --*taken_by(stock, sharer);
        put(stock, element);
        return;
    }
    leat_mem_free(element);
    leat_own_give(stock->core, peer, stock->element_bytes);
}

/* ---- in turn ---- */

static bool is_its_turn(const struct leat_stock *stock, const struct leat_peer *peer, bool only)
{
    return leat_list_empty(&stock->wanted) || peer->stock.called ||
           (only && leat_line_empty(&stock->lines[0]));
}

/* Half of all structs, or one request of any size: otherwise a request for many structs would never get them. */
static bool is_of_its_half(const struct leat_stock *stock, const struct leat_peer *peer,
                           uint32_t count)
{
    uint32_t taken = *taken_by(stock, peer->sharer);
    return taken == 0 || taken + count <= stock->count / 2;
}

static bool block_has(const struct leat_stock *stock, const struct leat_peer *peer, bool only,
                      uint32_t count)
{
    return stock->left >= count && is_its_turn(stock, peer, only) &&
           is_of_its_half(stock, peer, count);
}

bool leat_stock_admits(const struct leat_stock *stock, const struct leat_peer *peer, bool only,
                       uint32_t count)
{
    LEAT_ASSERT_OWNER(stock->core);
    if (block_has(stock, peer, only, count)) return true;
    return own_fits(stock->core, peer, only, (uint64_t)count * stock->element_bytes);
}

/* SUBTLE: structs that are free while connections wait in line belong to the line: one connection may wait for many
 * structs, which come one by one. So the peer's own structs are put before the free ones, and are taken before them. */
bool leat_stock_widen(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count)
{
    LEAT_ASSERT_OWNER(stock->core);
    if (block_has(stock, peer, only, count)) return true;
    for (uint32_t i = 0; i < count; i++) {
        void *element = NULL;
        if (leat_own_take(peer, only, stock->element_bytes)) {
            element = leat_mem_calloc(LEAT_MEM_BROKER, 1, stock->element_bytes);
            if (element == NULL) leat_own_give(stock->core, peer, stock->element_bytes);
        }
        if (element == NULL) {
            leat_stock_narrow(stock, peer);
            return false;
        }
        put(stock, element);
    }
    return true;
}

void leat_stock_narrow(struct leat_stock *stock, struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(stock->core);
    while (stock->free.first != NULL && !is_of_block(stock, stock->free.first))
        leat_stock_give(stock, leat_stock_take(stock, NULL), peer, NULL);
}

void *leat_stock_take_for(struct leat_stock *stock, struct leat_peer *peer, bool only)
{
    LEAT_ASSERT_OWNER(stock->core);
    if (!leat_stock_admits(stock, peer, only, 1) || !leat_stock_widen(stock, peer, only, 1)) {
        leat_stock_wait(stock, peer, only, 1);
        return NULL;
    }
    peer->stock.called = false;
    return leat_stock_take(stock, peer->sharer);
}

static struct leat_queue *queue_of(const struct leat_stock *stock, const struct leat_peer *peer,
                                   bool only)
{
    return &peer->sharer->stocks[stock->index].queues[only ? 0 : 1];
}

static void line_leave(struct leat_peer *peer)
{
    struct leat_stock_peer *wait = &peer->stock;
    if (leat_list_empty(&wait->link)) return;
    leat_line_leave(queue_of(wait->stock, peer, wait->only), &wait->link);
}

void leat_stock_wait(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count)
{
    LEAT_ASSERT_OWNER(stock->core);
    struct leat_stock_peer *wait = &peer->stock;
    leat_peer_pause(peer, LEAT_PAUSE_STARVED);
    line_leave(peer);
    /* The call was in vain, as another connection was faster: the peer loses neither its place nor its time. */
    leat_line_join(&stock->lines[only ? 0 : 1], queue_of(stock, peer, only), &wait->link,
                   wait->called);
    if (!wait->called) wait->since_us = leat_core_now(peer->core);
    wait->called = false;
    wait->only = only;
    wait->count = count;
    wait->stock = stock;
    if (leat_list_empty(&stock->wanted))
        leat_list_push_back(&stock->core->wanted_stocks, &stock->wanted);
}

void leat_stock_again(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    if (leat_list_empty(&peer->stock.link)) return;
    line_leave(peer);
    /* The peer's frame comes again; a peer without a frame is called by its protocol. */
    if (leat_list_empty(&peer->answers))
        leat_list_push_back(&peer->core->answer_peers, &peer->answers);
    leat_peer_resume(peer, LEAT_PAUSE_STARVED);
}

void leat_stock_leave(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    line_leave(peer);
    peer->stock.called = false;
}

static struct leat_peer *first_of(const struct leat_queue *queue)
{
    return LEAT_CONTAINER(queue->members.next, struct leat_peer, stock.link);
}

/* Call connections for the structs that are left; an address that has its half is passed over. false: no connection
 * may be called before the first of this line has had its turn. */
static bool line_call(struct leat_stock *stock, struct leat_line *line, uint32_t *left,
                      bool *called)
{
    LEAT_LIST_EACH(&line->ring, ring)
    {
        struct leat_queue *queue = leat_queue_of(ring);
        struct leat_peer *peer = first_of(queue);
        uint32_t count = peer->stock.count;
        if (!is_of_its_half(stock, peer, count)) continue;
        if (*left < count) return false;
        *left -= count;
        leat_line_turn(line, queue);
        leat_stock_again(peer);
        peer->stock.called = *called = true;
    }
    return true;
}

static bool stock_call(struct leat_stock *stock)
{
    uint32_t left = stock->left;
    bool called = false;
    for (struct leat_line *line = stock->lines; line < stock->lines + 2; line++)
        if (!line_call(stock, line, &left, &called)) return called;
    if (leat_line_empty(&stock->lines[0]) && leat_line_empty(&stock->lines[1]))
        leat_list_remove(&stock->wanted);
    return called;
}

bool leat_stocks_call(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    bool called = false;
    LEAT_LIST_EACH(&core->wanted_stocks, link)
    called |= stock_call(LEAT_CONTAINER(link, struct leat_stock, wanted));
    return called;
}

/* Structs of appends come back as logs ack. */
static bool of_appends(const struct leat_stock *stock)
{
    return stock == &stock->core->append_pool || stock == &stock->core->part_pool;
}

bool leat_stocks_are_wanted(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_LIST_EACH(&core->wanted_stocks, link)
    {
        const struct leat_stock *stock = LEAT_CONTAINER(link, struct leat_stock, wanted);
        if (!of_appends(stock) && !leat_line_empty(&stock->lines[0])) return true;
    }
    return false;
}

static uint32_t queue_wanted(const struct leat_queue *queue)
{
    uint32_t count = 0;
    LEAT_LIST_EACH(&queue->members, turn)
    count += LEAT_CONTAINER(turn, struct leat_stock_peer, link)->count;
    return count;
}

static uint32_t *wanted_of_own(struct leat_sharer *sharer, uint32_t at)
{
    if (sharer->wanted_at != at) sharer->wanted = 0;
    sharer->wanted_at = at;
    return &sharer->wanted;
}

void leat_stocks_wanted(struct leat_core *core, struct leat_wanted *out_wanted)
{
    LEAT_ASSERT_OWNER(core);
    *out_wanted = (struct leat_wanted){.at = ++core->wants};
    LEAT_LIST_EACH(&core->wanted_stocks, link)
    {
        const struct leat_stock *stock = LEAT_CONTAINER(link, struct leat_stock, wanted);
        if (of_appends(stock)) continue;
        LEAT_LIST_EACH(&stock->lines[0].ring, ring)
        {
            const struct leat_queue *queue = leat_queue_of(ring);
            const struct leat_peer *first = first_of(queue);
            uint32_t count = queue_wanted(queue);
            if (is_of_its_half(stock, first, first->stock.count)) {
                out_wanted->of_all += count;
            } else {
                *wanted_of_own(first->sharer, out_wanted->at) += count;
                out_wanted->of_own += count;
            }
        }
    }
}

bool leat_wanted_of(struct leat_wanted *wanted, struct leat_sharer *sharer, uint32_t count)
{
    uint32_t *of = wanted_of_own(sharer, wanted->at);
    if (*of == 0) of = &wanted->of_all;
    if (*of == 0) return false;
    if (count > *of) count = *of;
    *of -= count;
    if (of != &wanted->of_all) wanted->of_own -= count;
    return true;
}

static void queue_tick(struct leat_queue *queue, uint64_t now_us)
{
    LEAT_LIST_EACH(&queue->members, turn)
    {
        struct leat_peer *peer = LEAT_CONTAINER(turn, struct leat_peer, stock.link);
        if (now_us - peer->stock.since_us < LEAT_STOCK_WAIT_US) return;
        leat_stock_leave(peer);
        leat_peer_close(peer, "what its request takes was held by others for 10 s");
    }
}

void leat_stocks_tick(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    uint64_t now_us = leat_core_now(core);
    LEAT_LIST_EACH(&core->wanted_stocks, link)
    {
        struct leat_stock *stock = LEAT_CONTAINER(link, struct leat_stock, wanted);
        LEAT_LIST_EACH(&stock->lines[0].ring, ring)
        queue_tick(leat_queue_of(ring), now_us);
    }
}
