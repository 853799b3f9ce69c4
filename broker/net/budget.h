/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a node's memory budget. Private to broker/; functions that programs need are in node.h. Thread: any. */
#ifndef LEAT_BROKER_NET_BUDGET_H
#define LEAT_BROKER_NET_BUDGET_H

#include <stdint.h>

/** Memory that is not the pool's; docs/operations.md shows all parts. */
uint64_t leat_node_overhead(uint64_t memory_bytes, uint32_t cores, uint32_t *out_buffers_per_core,
                            uint64_t *out_frame_bytes_per_core);
/** Bytes that requests under way of another front end may take on one core. */
uint64_t leat_node_door_bytes(uint64_t memory_bytes, uint32_t cores);
/** Bytes of answers that the slow connections of one core may have: see lend.h. */
uint64_t leat_node_rest_bytes(uint64_t memory_bytes, uint32_t cores);
/** Bytes that one core's appends to logs of other cores may hold, and the same for all cores together. */
uint64_t leat_node_forward_bytes(uint64_t memory_bytes, uint32_t cores);
uint64_t leat_node_forwards_bytes(uint64_t memory_bytes, uint32_t cores);
/** Bytes that a core's connections may hold, of the core's part for frames; one connection may always go on beyond
 * this. */
uint64_t leat_node_intake_bytes(uint64_t frame_bytes);
/** The same for an actor's links to other nodes. */
uint64_t leat_node_links_bytes(uint64_t memory_bytes, uint32_t cores);
/** The part for connections of all cores and their addresses: see heap.h. Segments give up memory for connections
 * beyond this part. */
uint64_t leat_node_peers_bytes(uint64_t memory_bytes);
/** Bytes that the members of all groups of one home may take. All homes together have a 32nd of the budget, but at
 * least enough for a few members each. */
uint64_t leat_node_group_bytes(uint64_t memory_bytes);
/** Bytes that the tables of all homes of groups may take: groups, their logs, committed offsets and state. */
uint64_t leat_node_tables_bytes(uint64_t memory_bytes);
/** How many of `most` structs for requests a core has with this budget: its share of them, a quarter at least. */
uint32_t leat_node_structs(uint64_t memory_bytes, uint32_t cores, uint32_t most);
/** Bytes of one core's structs when all are in use, without structs of calls. */
uint64_t leat_core_stocks_bytes(uint64_t memory_bytes, uint32_t cores);
/** Bytes of one core for answers that are not taken, and for calls. Thread: any. */
uint64_t leat_node_output_bytes(uint64_t memory_bytes, uint32_t cores);
/** Bytes that the waking logs of one core may read at once: see leat_restore_budget. */
uint64_t leat_node_warm_bytes(uint64_t memory_bytes, uint32_t cores);

#endif
