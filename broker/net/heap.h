/* SPDX-License-Identifier: Apache-2.0 */
/* What logs and stored segments take of the heap beyond their room, and what the pool has given back for it.
 * Private to broker/. */
#ifndef LEAT_BROKER_NET_HEAP_H
#define LEAT_BROKER_NET_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct leat_core;
struct leat_node;
struct leat_store_usage;

enum {
    /* A log waits so long for memory, since a step of the pool was last given back; then whoever asks for it is told
     * so by name. It is made when there is room. */
    LEAT_HEAP_WAIT_US = 10 * 1000 * 1000,
    LEAT_HEAP_WANTED_US = 3 * 1000 * 1000, /* a log that waits asks more often than that */
    /* Kept for segments that free others and for consumer groups, and since many logs may ask at a time; replicas of
     * such segments of other nodes' may have half of it. */
    LEAT_HEAP_SPARE_BYTES = 3 * 1024 * 1024,
    LEAT_HEAP_SLAB_BYTES = 256 * 1024, /* descriptors and rows are made so many at a time */
    /* Of a connection, with what the network has of it and of its address; and what one address, of IPv6 a /56, has on
     * one core beside these. Both are counted together: as many addresses as connections have a place for fewer. */
    LEAT_HEAP_PEER_BYTES = 1664,
    LEAT_HEAP_ADDRESS_BYTES = 3072,
    LEAT_HEAP_TOLD_TICKS = 60,                      /* the node log has it once a minute */
    LEAT_HEAP_LOG_LEAST_BYTES = 6144,               /* of a log without its segments, at least */
    LEAT_HEAP_MEMORY_STEP_BYTES = 16 * 1024 * 1024, /* a larger budget is advised in these */
};

enum leat_heap_answer {
    LEAT_HEAP_FITS,
    LEAT_HEAP_WAITS, /* for a step that the pool gives back */
    LEAT_HEAP_NEVER, /* there is none that it could give back */
};
/** May the heap have `over` bytes beyond its room? full_bytes: of the pool at start; grown_bytes: what it holds;
 * keeps: it gives no step back. */
enum leat_heap_answer leat_heap_look(uint64_t over, uint64_t full_bytes, uint64_t grown_bytes,
                                     bool keeps);

/** A node's share of so many logs while one of so many nodes is away. */
uint64_t leat_heap_share(uint64_t logs, uint64_t nodes);
/** Bytes that a node's share of logs takes more than the logs that it has. */
uint64_t leat_heap_ahead_bytes(uint64_t share, uint64_t partition);

/** Logs that wait for a step. Zero: none does. */
struct leat_heap_wait {
    _Atomic uint64_t asked_us;    /* when one last found no room */
    _Atomic uint64_t since_us;    /* when the first did, or when a step last went */
    _Atomic uint64_t grown_bytes; /* what the pool held then */
};
/** A log found no room, while the pool holds grown_bytes; it asks again. true: it has waited for LEAT_HEAP_WAIT_US. */
bool leat_heap_waited(struct leat_heap_wait *wait, uint64_t grown_bytes, uint64_t now_us);
/** Does one wait? */
bool leat_heap_waits(const struct leat_heap_wait *wait, uint64_t now_us);

/** What the heap takes for logs and what is stored beyond the room that is theirs. Thread: any. */
uint64_t leat_node_heap_over(const struct leat_node *node);
/** May one log more be made here now? false: the pool was asked for a step, ask again. Only for a log that is new:
 * one with records behind it is made at once. Thread: any core. */
bool leat_node_heap_admits(struct leat_node *node, uint64_t now_us);
/** Have logs waited for that for LEAT_HEAP_WAIT_US? Then requests for them are refused by name. Thread: any core. */
bool leat_node_heap_refuses(const struct leat_node *node, uint64_t now_us);
/** So much the heap may take for streams that are made now: the pool keeps what it can't give back, and what is kept
 * for segments that free others stays. Thread: any. */
uint64_t leat_node_heap_most(const struct leat_node *node);
/** So many logs there is memory for when nothing else takes any: 0 where memory has no limit. Thread: any. */
uint64_t leat_node_logs_most(const struct leat_node *node);
/** Has what a server alone has stored room in that budget, beside its bytes? Reckons with less than a log takes: where
 * it came to be stored it has room again. Thread: any. */
bool leat_heap_holds(uint64_t memory_bytes, uint32_t cores, uint64_t logs, uint64_t segments);
/** The least budget from memory_bytes on in which a server with so much stored is of use: it takes appends to all its
 * logs, too. The first connections have their place in any budget (leat_node_peers_bytes()). Thread: any. */
uint64_t leat_heap_least_memory(uint64_t memory_bytes, uint32_t cores, uint64_t logs,
                                uint64_t segments);
/** What is taken of the heap by all who have some of it or have asked for a segment. */
uint64_t leat_heap_taken(uint64_t heap_bytes, const struct leat_store_usage *usage);
/** Is there no memory for what one stored segment more takes, though the pool gave back all but one step? copies: what
 * the memory for replicas has taken of full_bytes. */
bool leat_heap_is_full(uint64_t over, uint64_t full_bytes, uint64_t copies_grown_bytes);
/** The same of this node, for `bytes` more, which leave that much of the last of it. Thread: any core. */
bool leat_node_heap_is_full(const struct leat_node *node, uint64_t left_bytes, uint64_t bytes);
/** May a core that has so many connections take one more, of an address that has so many on all cores? One that has
 * half of the place of all has more only where there is memory beside the whole place: others get in. Thread: any
 * core. */
bool leat_node_heap_admits_peer(const struct leat_node *node, uint64_t connections,
                                uint64_t of_address);
/** A step of the pool is to go back, or a log waits for one: idle open segments are in the way. Thread: any. */
bool leat_node_pool_pressed(const struct leat_node *node, uint64_t now_us);
/** How many logs may come here at once: once a second. Thread: core. */
void leat_heap_tick(struct leat_core *core);
/** leat_store_options.less_bytes, owner: the node. Thread: store. */
uint64_t leat_node_pool_less(void *owner);
/** By how much the memory for replicas has to be smaller: what the node's own pool can't give. arg: a core of the
 * node. Thread: core. */
uint64_t leat_node_copies_less(void *arg);

#endif
