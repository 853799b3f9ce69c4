/* SPDX-License-Identifier: Apache-2.0 */
/* Heap memory that logs and stored segments take, and that the pool gives up for them: see heap.h.
 *
 * The store asks how much less pool memory it may have, before it grows and once a second, and gives whole steps
 * back. A log is made when its memory is there. Both the store and the logs count what the other has, so no memory is
 * taken twice. */
#include "broker/net/heap.h"

#include "base/assert.h"
#include "base/intake.h"
#include "base/node_log.h"
#include "broker/net/core.h"

enum {
    BLOCK_BYTES = 16 + 16, /* what leat_mem and malloc add to a block, at most */
    /* The network's state of a connection, its handle, its address there; the front end's state; its file's entries
     * in the tables of eight event loops. */
    PEER_BESIDE_BYTES = 480 + 168 + sizeof(struct leat_intake_address) + LEAT_FRONT_CONN_BYTES +
                        4 * BLOCK_BYTES + 8 * 8,
};
_Static_assert(sizeof(struct leat_peer) + PEER_BESIDE_BYTES <= LEAT_HEAP_PEER_BYTES,
               "a connection takes more than it counts for");
_Static_assert(sizeof(struct leat_sharer) + 2 * sizeof(struct leat_address_turns) +
                       3 * BLOCK_BYTES <=
                   LEAT_HEAP_ADDRESS_BYTES,
               "an address takes more than it counts for");

/* Connections, closed ones whose requests are under way, and their addresses. */
static uint64_t peers_taken(const struct leat_node *node)
{
    uint64_t peers = 0, addresses = 0;
    for (uint32_t i = 0; node->cores != NULL && i < node->options.cores; i++) {
        const struct leat_counters *counters = &node->cores[i].counters;
        peers += atomic_load_explicit(&counters->connections, memory_order_relaxed) +
                 atomic_load_explicit(&counters->closed_peers, memory_order_relaxed);
        addresses += atomic_load_explicit(&counters->addresses, memory_order_relaxed);
    }
    return peers * LEAT_HEAP_PEER_BYTES + addresses * LEAT_HEAP_ADDRESS_BYTES;
}

/* Bytes of structs that connections own beyond the part of the budget for such structs. */
static uint64_t owns_bytes(const struct leat_node *node)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; node->cores != NULL && i < node->options.cores; i++) {
        uint64_t here =
            atomic_load_explicit(&node->cores[i].counters.own_bytes, memory_order_relaxed);
        if (here > LEAT_CORE_OWN_BYTES) bytes += here - LEAT_CORE_OWN_BYTES;
    }
    return bytes;
}

/* Bytes of connections beyond their part of the budget. */
static uint64_t peers_bytes(const struct leat_node *node)
{
    uint64_t taken = peers_taken(node);
    uint64_t more = taken > node->peers_place_bytes ? taken - node->peers_place_bytes : 0;
    return more + owns_bytes(node);
}

static uint64_t heap_bytes(const struct leat_node *node)
{
    const struct leat_node_options *options = &node->options;
    if (options->heap_bytes == NULL) return 0;
    return options->heap_bytes(options->heap_ctx) + peers_bytes(node) +
           leat_groups_room_over(&node->groups_room);
}

static uint64_t beyond_room(const struct leat_node *node, uint64_t bytes)
{
    return bytes > node->heap_room_bytes ? bytes - node->heap_room_bytes : 0;
}

uint64_t leat_node_heap_over(const struct leat_node *node)
{
    return beyond_room(node, heap_bytes(node));
}

enum leat_heap_answer leat_heap_look(uint64_t over, uint64_t full_bytes, uint64_t grown_bytes,
                                     bool keeps)
{
    if (over == 0 || over + grown_bytes <= full_bytes) return LEAT_HEAP_FITS;
    return keeps || grown_bytes <= LEAT_ARENA_STEP_BYTES ? LEAT_HEAP_NEVER : LEAT_HEAP_WAITS;
}

bool leat_heap_is_full(uint64_t over, uint64_t full_bytes, uint64_t copies_grown_bytes)
{
    return over != 0 && over + LEAT_ARENA_STEP_BYTES + copies_grown_bytes > full_bytes;
}

/* Unused descriptors and rows are reused, and not freed, so they do not count as taken: otherwise a node would stay
 * full whatever is deleted. Unused rows that a log has asked for do count as taken: otherwise thousands of logs that
 * ask at the same moment would all get the same row. */
uint64_t leat_heap_taken(uint64_t heap_bytes, const struct leat_store_usage *usage)
{
    uint64_t taken = heap_bytes + usage->rows_asked_bytes;
    return taken > usage->rows_free_bytes ? taken - usage->rows_free_bytes : 0;
}

bool leat_node_heap_is_full(const struct leat_node *node, uint64_t left_bytes, uint64_t bytes)
{
    if (node->options.heap_bytes == NULL) return false;
    struct leat_store_usage usage;
    leat_store_usage(node->store, &usage);
    uint64_t taken = leat_heap_taken(heap_bytes(node), &usage);
    taken += bytes + LEAT_HEAP_SLAB_BYTES + left_bytes;
    return leat_heap_is_full(beyond_room(node, taken), node->pool_bytes + node->copies_bytes,
                             usage.arenas_grown);
}

static bool budget_holds(uint64_t memory_bytes, uint32_t cores, uint64_t takes)
{
    uint64_t room = leat_node_heap_room(memory_bytes, cores);
    uint64_t pool = leat_node_pool_bytes(memory_bytes, cores);
    return takes <= room || !leat_heap_is_full(takes - room, pool, 0);
}

bool leat_heap_holds(uint64_t memory_bytes, uint32_t cores, uint64_t logs, uint64_t segments)
{
    return budget_holds(memory_bytes, cores,
                        logs * LEAT_HEAP_LOG_LEAST_BYTES + segments * LEAT_SEGMENT_HEAP_BYTES);
}

/* SUBTLE: a node of use needs more memory than its stored logs and segments take. Else (1) a node starts with just
 * this memory; (2) the spare memory for segments that free older segments is not there, so each append that needs a
 * segment is refused: such a start is of no use to an operator. */
uint64_t leat_heap_least_memory(uint64_t memory_bytes, uint32_t cores, uint64_t logs,
                                uint64_t segments)
{
    uint64_t takes = logs * LEAT_LOG_HEAP_BYTES + segments * LEAT_SEGMENT_HEAP_BYTES +
                     LEAT_HEAP_SPARE_BYTES + LEAT_HEAP_SLAB_BYTES;
    while (!budget_holds(memory_bytes, cores, takes))
        memory_bytes += LEAT_HEAP_MEMORY_STEP_BYTES;
    return memory_bytes;
}

uint64_t leat_node_heap_most(const struct leat_node *node)
{
    struct leat_store_usage usage;
    leat_store_usage(node->store, &usage);
    uint64_t stays = LEAT_ARENA_STEP_BYTES;
    if (usage.memory_kept && usage.memory_grown > stays) stays = usage.memory_grown;
    uint64_t most = node->heap_room_bytes + node->pool_bytes - stays;
    uint64_t kept = LEAT_HEAP_SPARE_BYTES + LEAT_HEAP_SLAB_BYTES;
    return most > kept ? most - kept : 0;
}

uint64_t leat_node_logs_most(const struct leat_node *node)
{
    if (node->options.heap_bytes == NULL) return 0;
    uint64_t most = node->heap_room_bytes + node->pool_bytes;
    uint64_t kept = LEAT_ARENA_STEP_BYTES + LEAT_HEAP_SPARE_BYTES + LEAT_HEAP_SLAB_BYTES;
    uint64_t logs = most > kept ? (most - kept) / LEAT_LOG_HEAP_BYTES : 0;
    uint64_t held = (uint64_t)node->options.cores * LEAT_CORE_LOGS_MAX;
    if (logs > held) logs = held;
    return logs > 0 ? logs : 1; /* 0 would say that nothing is known */
}

bool leat_node_heap_admits_peer(const struct leat_node *node, uint64_t connections,
                                uint64_t of_address)
{
    const uint64_t one = LEAT_HEAP_PEER_BYTES + LEAT_HEAP_ADDRESS_BYTES;
    if (connections >= LEAT_CORE_PEERS_MAX) return false;
    uint64_t taken = peers_taken(node), place = node->peers_place_bytes;
    uint64_t left = place > taken ? place - taken : 0;
    bool has_half = of_address * LEAT_HEAP_PEER_BYTES >= place / 2;
    return (left >= one && !has_half) ||
           !leat_node_heap_is_full(node, LEAT_HEAP_SPARE_BYTES, left + one);
}

/* Once a second, on one core. */
static void full_tell(struct leat_core *core)
{
    if (core->heap_told_ticks > 0) core->heap_told_ticks--;
    bool full = leat_node_heap_is_full(core->node, LEAT_HEAP_SPARE_BYTES, LEAT_LOG_HEAP_BYTES);
    if (core->heap_told_ticks > 0 || !full) return;
    core->heap_told_ticks = LEAT_HEAP_TOLD_TICKS;
    leat_node_log_warn(
        "logs and stored segments take all that the memory budget leaves them: appends "
        "that need another segment are refused until streams are deleted, retention "
        "drops segments, or the server has a larger --memory");
}

uint64_t leat_heap_share(uint64_t logs, uint64_t nodes)
{
    uint64_t left = nodes > 1 ? nodes - 1 : 1;
    return (logs + left - 1) / left;
}

uint64_t leat_heap_ahead_bytes(uint64_t share, uint64_t partition)
{
    return share > partition ? (share - partition) * LEAT_LOG_HEAP_BYTES : 0;
}

/* Nodes that are away for now count, so that nothing is given up while a cluster comes up, or amid a recovery. */
void leat_heap_tick(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    if (core->index != 0) return;
    full_tell(core);
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < core->members.count; i++)
        nodes += core->members.rows[i]->info.state != LEAT_NODE_GONE;
    atomic_store_explicit(&core->node->logs_share, leat_heap_share(core->logs_known, nodes),
                          memory_order_relaxed);
}

/* SUBTLE: the pool gives the memory for a dead node's logs back before the node dies. Else (1) the pool is full; (2)
 * a node dies, and half of its logs come here, by thousands; (3) these logs have records, so they are made without
 * waiting; (4) a step of the pool is drained only now, and until it is drained the budget is exceeded, during the
 * recovery's own reads and writes. */
static uint64_t ahead_bytes(const struct leat_node *node)
{
    return leat_heap_ahead_bytes(
        atomic_load_explicit(&node->logs_share, memory_order_relaxed),
        atomic_load_explicit(&node->partition_count, memory_order_relaxed));
}

bool leat_heap_waits(const struct leat_heap_wait *wait, uint64_t now_us)
{
    uint64_t asked_us = atomic_load_explicit(&wait->asked_us, memory_order_relaxed);
    return asked_us != 0 && now_us < asked_us + LEAT_HEAP_WANTED_US;
}

/* SUBTLE: a log that was made meanwhile does not begin the wait anew. Else (1) memory beyond the pool's limit is in
 * use and stays; (2) now and then a stored segment is dropped, and its memory is enough for one log; (3) each of
 * thousands of logs would wait for as long as all of them together may. */
bool leat_heap_waited(struct leat_heap_wait *wait, uint64_t grown_bytes, uint64_t now_us)
{
    uint64_t since_us = atomic_load_explicit(&wait->since_us, memory_order_relaxed);
    uint64_t had = atomic_load_explicit(&wait->grown_bytes, memory_order_relaxed);
    if (grown_bytes < had || !leat_heap_waits(wait, now_us)) {
        since_us = now_us;
        atomic_store_explicit(&wait->since_us, now_us, memory_order_relaxed);
        atomic_store_explicit(&wait->grown_bytes, grown_bytes, memory_order_relaxed);
    }
    atomic_store_explicit(&wait->asked_us, now_us, memory_order_relaxed);
    return now_us >= since_us + LEAT_HEAP_WAIT_US;
}

bool leat_node_pool_pressed(const struct leat_node *node, uint64_t now_us)
{
    if (leat_heap_waits(&node->heap_wait, now_us)) return true;
    struct leat_store_usage usage;
    leat_store_usage(node->store, &usage);
    return usage.memory_grown > usage.memory_limit && !usage.memory_kept;
}

bool leat_node_heap_admits(struct leat_node *node, uint64_t now_us)
{
    if (node->options.heap_bytes == NULL) return true;
    struct leat_store_usage usage;
    leat_store_usage(node->store, &usage);
    uint64_t over = beyond_room(node, heap_bytes(node) + LEAT_LOG_HEAP_BYTES);
    if (leat_heap_look(over, node->pool_bytes, usage.memory_grown, usage.memory_kept) ==
        LEAT_HEAP_FITS)
        return true;
    (void)leat_heap_waited(&node->heap_wait, usage.memory_grown, now_us);
    return false;
}

bool leat_node_heap_refuses(const struct leat_node *node, uint64_t now_us)
{
    uint64_t since_us = atomic_load_explicit(&node->heap_wait.since_us, memory_order_relaxed);
    return leat_heap_waits(&node->heap_wait, now_us) && now_us >= since_us + LEAT_HEAP_WAIT_US;
}

uint64_t leat_node_pool_less(void *owner)
{
    struct leat_node *node = owner;
    const struct leat_clock *clock = node->options.store_env->clock;
    uint64_t bytes = heap_bytes(node);
    /* Before the pool grows into it. */
    if (node->options.heap_trim != NULL) node->options.heap_trim(node->options.heap_ctx);
    bytes += ahead_bytes(node);
    struct leat_store_usage usage;
    leat_store_usage(node->store, &usage);
    if (leat_heap_waits(&node->heap_wait, clock->now_us(clock->ctx))) bytes += LEAT_LOG_HEAP_BYTES;
    /* Where more nodes write here than the memory for replicas has steps. */
    uint64_t copies =
        usage.arenas_grown > node->copies_bytes ? usage.arenas_grown - node->copies_bytes : 0;
    return beyond_room(node, bytes) + copies;
}

uint64_t leat_node_copies_less(void *arg)
{
    const struct leat_node *node = ((const struct leat_core *)arg)->node;
    uint64_t over = leat_node_heap_over(node);
    uint64_t own = node->pool_bytes - LEAT_ARENA_STEP_BYTES;
    return over > own ? over - own : 0;
}
