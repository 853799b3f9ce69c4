/* SPDX-License-Identifier: Apache-2.0 */
/* Heap memory that logs and stored segments take beyond their part of the budget, and the pool's memory that is given
 * back for it. Private to broker/. */
#ifndef LEAT_BROKER_NET_HEAP_H
#define LEAT_BROKER_NET_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct leat_core;
struct leat_node;
struct leat_store_usage;

enum {
    /* A log waits so long for memory, since a step of the pool was last given back; then requests for the log are
     * refused by name. The log is made when there is room. */
    LEAT_HEAP_WAIT_US = 10 * 1000 * 1000,
    LEAT_HEAP_WANTED_US = 3 * 1000 * 1000, /* a waiting log asks more often */
    /* Kept for segments that free other segments and for consumer groups, and because many logs may ask at once;
     * replicas of other nodes' segments of this kind may have half of it. */
    LEAT_HEAP_SPARE_BYTES = 3 * 1024 * 1024,
    LEAT_HEAP_SLAB_BYTES = 256 * 1024, /* descriptors and rows are made so many at a time */
    /* Of a connection, with the network's memory for it and its address; and the memory of one address (of IPv6 a
     * /56) on one core beside these. Both are counted together: as many addresses as connections have room for fewer
     * connections. */
    LEAT_HEAP_PEER_BYTES = 1664,
    LEAT_HEAP_ADDRESS_BYTES = 3072,
    LEAT_HEAP_TOLD_TICKS = 60,        /* the node log has a line about it once a minute */
    LEAT_HEAP_LOG_LEAST_BYTES = 6144, /* of a log without its segments, at least */
    LEAT_HEAP_MEMORY_STEP_BYTES = 16 * 1024 * 1024, /* a larger budget is advised in these steps */
};

enum leat_heap_answer {
    LEAT_HEAP_FITS,
    LEAT_HEAP_WAITS, /* for a step that the pool gives back */
    LEAT_HEAP_NEVER, /* the pool has no step to give back */
};
/** May the heap have `over` bytes beyond its part? full_bytes: of the pool at start; grown_bytes: of the pool now;
 * keeps: the pool gives no step back. */
enum leat_heap_answer leat_heap_look(uint64_t over, uint64_t full_bytes, uint64_t grown_bytes,
                                     bool keeps);

/** A node's share of `logs` logs while one of `nodes` nodes is away. */
uint64_t leat_heap_share(uint64_t logs, uint64_t nodes);
/** Bytes by which a node's share of logs exceeds the logs that the node has. */
uint64_t leat_heap_ahead_bytes(uint64_t share, uint64_t partition);

/** Logs that wait for a step. Zero: no log waits. */
struct leat_heap_wait {
    _Atomic uint64_t asked_us;    /* when a log last found no room */
    _Atomic uint64_t since_us;    /* when the first log found no room, or when a step last went */
    _Atomic uint64_t grown_bytes; /* bytes of the pool then */
};
/** A log found no room, while the pool holds grown_bytes; it asks again. true: it has waited for LEAT_HEAP_WAIT_US. */
bool leat_heap_waited(struct leat_heap_wait *wait, uint64_t grown_bytes, uint64_t now_us);
/** Does a log wait? */
bool leat_heap_waits(const struct leat_heap_wait *wait, uint64_t now_us);

/** Heap bytes for logs and stored segments beyond their part of the budget. Thread: any. */
uint64_t leat_node_heap_over(const struct leat_node *node);
/** May one log more be made here now? false: the pool was asked for a step, ask again. Only for a new log: a log with
 * records is made at once. Thread: any core. */
bool leat_node_heap_admits(struct leat_node *node, uint64_t now_us);
/** Have logs waited for a step for LEAT_HEAP_WAIT_US? Then requests for new logs are refused by name. Thread: any
 * core. */
bool leat_node_heap_refuses(const struct leat_node *node, uint64_t now_us);
/** Heap bytes that new streams may take: the pool keeps the bytes that it can't give back, and the spare memory for
 * segments that free older segments stays. Thread: any. */
uint64_t leat_node_heap_most(const struct leat_node *node);
/** How many logs memory has room for when nothing else takes any: 0 where memory has no limit. Thread: any. */
uint64_t leat_node_logs_most(const struct leat_node *node);
/** Has this budget room for the logs and segments that a single server has stored, beside its bytes? Counts less than
 * a log takes: a budget in which the logs were stored has room for them again. Thread: any. */
bool leat_heap_holds(uint64_t memory_bytes, uint32_t cores, uint64_t logs, uint64_t segments);
/** The least budget from memory_bytes on in which a server with these logs and segments is of use: it takes appends
 * to all its logs, too. The first connections have their part in any budget (leat_node_peers_bytes()). Thread: any. */
uint64_t leat_heap_least_memory(uint64_t memory_bytes, uint32_t cores, uint64_t logs,
                                uint64_t segments);
/** Heap bytes that are taken, with the rows that logs have asked for. */
uint64_t leat_heap_taken(uint64_t heap_bytes, const struct leat_store_usage *usage);
/** Is there no memory for one stored segment more, though the pool gave back all but one step? copies: the bytes that
 * the memory for replicas has taken of full_bytes. */
bool leat_heap_is_full(uint64_t over, uint64_t full_bytes, uint64_t copies_grown_bytes);
/** The same for this node and `bytes` more; left_bytes of the last memory stay free. Thread: any core. */
bool leat_node_heap_is_full(const struct leat_node *node, uint64_t left_bytes, uint64_t bytes);
/** May a core that has so many connections take one more, of an address that has so many on all cores? An address
 * with half of the part for connections gets more only while the heap has memory beside the whole part, so that other
 * addresses get in. Thread: any core. */
bool leat_node_heap_admits_peer(const struct leat_node *node, uint64_t connections,
                                uint64_t of_address);
/** A step of the pool is to go back, or a log waits for one: idle open segments are in the way. Thread: any. */
bool leat_node_pool_pressed(const struct leat_node *node, uint64_t now_us);
/** How many logs may come here at once: once a second. Thread: core. */
void leat_heap_tick(struct leat_core *core);
/** leat_store_options.less_bytes, owner: the node. Thread: store. */
uint64_t leat_node_pool_less(void *owner);
/** By how much the memory for replicas has to shrink: bytes that the node's own pool can't give. arg: a core of the
 * node. Thread: core. */
uint64_t leat_node_copies_less(void *arg);

#endif
