/* SPDX-License-Identifier: Apache-2.0 */
/* A node comes up: what its parts do in turn. Private to node/. */
#ifndef LEAT_BROKER_NODE_BRINGUP_H
#define LEAT_BROKER_NODE_BRINGUP_H

#include "broker/data/partition.h"
#include "broker/net/core.h"

enum {
    /* A node that comes up asks again while the coordinators hold that another node of its name is up. */
    LEAT_NAME_RETRY_US = 500 * 1000,
    LEAT_NAME_TRIES_MAX = 20,
};

void leat_node_bring_up(struct leat_node *node);
/** found.c: what the store found, as the coordinator wants it. Thread: startup. */
leat_err leat_found_marks(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** The decisions are here: of which logs streams are known. Without memory node->fates stays NULL, and the cut fails.
 * Core 0. */
void leat_found_dispositions(struct leat_node *node);
/** Cut, keep or drop each segment that was found, by the decisions. Thread: store, so the function reads nothing of
 * core 0; blocks. */
leat_err leat_found_cut(struct leat_node *node) LEAT_NODISCARD;
/** adopt.c: the log's end is known, and its last segment may be on another node: then the segment is taken over as
 * for a log that has just come to this node. */
bool leat_adopt_awaits_tail(const struct leat_node *node, const struct leat_stream *stream,
                            struct leat_log_ref ref);
/** Damaged segments of the log go to the node log. If none is damaged and the log's beginning is not known yet, call
 * this again later. */
void leat_adopt_damage_tell(struct leat_core *core, struct leat_partition *partition);
/** Make this core's logs from decisions and what was found. */
leat_err leat_adopt_on_core(struct leat_node *node, struct leat_core *core,
                            struct leat_error *error) LEAT_NODISCARD;
/** identity.c: which cluster the data directory is of; a server alone makes one up. Thread: startup; blocks. */
leat_err leat_node_identity(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** A new node has learnt which cluster it is of: keep that, durably. Thread: store; blocks. */
leat_err leat_node_identity_set(struct leat_node *node, const uint8_t cluster_id[16],
                                struct leat_error *error) LEAT_NODISCARD;

enum { LEAT_NODE_FILE_BYTES = 4096 };

/** node_file.c: write `content` to the one block of a small file that is open, flush it, and its name too. block:
 * borrowed, of LEAT_NODE_FILE_BYTES. Thread: the caller's, which must not be a core's; blocks. */
leat_err leat_node_file_write(struct leat_node *node, const char *name, struct leat_file *file,
                              uint8_t *block, const void *content, size_t bytes,
                              struct leat_error *error) LEAT_NODISCARD;
/** boots.c: a mark for this start of the data directory, durably. Thread: startup; blocks. */
leat_err leat_node_boot_begin(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** The coordinators have committed that the node is up: record this, durably. Thread: store; blocks. */
leat_err leat_node_boot_taken(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;

/** core.c: what a core owns. Thread: startup; the core does not run. */
leat_err leat_core_init(struct leat_core *core, struct leat_node *node, uint32_t index,
                        const struct leat_env *env, uint32_t buffer_count,
                        uint64_t frame_bytes_max) LEAT_NODISCARD;
void leat_core_fini(struct leat_core *core);

#endif
