/* SPDX-License-Identifier: Apache-2.0 */
/* Replication, seen from the broker: every core's primary, and the node's backup on core 0.
 * Private to broker/. See replication/control/control.h. */
#ifndef LEAT_BROKER_DATA_REPLICATE_H
#define LEAT_BROKER_DATA_REPLICATE_H

#include "coordinator/coordinator.h"
#include "replication/backup/backup.h"
#include "replication/over_link.h"
#include "replication/primary/primary.h"
#include "replication/transport/transport.h"

struct leat_core;
struct leat_partition;
struct leat_log_tail;
struct leat_member;
struct leat_found;
struct leat_msg_accounts;

enum {
    LEAT_VERSION_ROWS_MAX = 4096, /* logs in one request to the coordinator */
};

/* Versions on their way to the coordinator: one request for each (epoch, version). */
struct leat_versions {
    struct leat_coordinate request;
    const struct leat_rep_version *rows; /* the primary's */
    size_t count;
    bool *sent; /* [count] */
    struct leat_log_ref refs[LEAT_VERSION_ROWS_MAX];
    leat_err rc;
};

struct leat_replicate {
    struct leat_transport *transport;
    struct leat_transport_sink *sink; /* of transports whose bytes arrive as messages */
    struct leat_rep_link *rep_link;   /* control requests, both ways */
    struct leat_primary *primary;
    struct leat_backup *backup; /* core 0's */
    struct leat_versions versions;
};

/** Before the links are made: what they serve. Nothing in a server alone. */
leat_err leat_replicate_prepare(struct leat_core *core,
                                struct leat_links_options *links) LEAT_NODISCARD;
/** This core comes up; its links are there. Nothing in a server alone. */
leat_err leat_replicate_open(struct leat_core *core, struct leat_error *error) LEAT_NODISCARD;
/** After its logs and before its links; then the sink. Thread: any, the core runs no more. */
void leat_replicate_fini(struct leat_core *core);
void leat_replicate_sink_fini(struct leat_core *core);
/** A node came, changed or went; `before`: the incarnation that was known, 0 for none. */
void leat_replicate_on_member(struct leat_core *core, const struct leat_member *member,
                              uint64_t before);
/** The store port for this log's segments: the store, or with copies the core's primary. */
leat_err leat_replicate_attach(struct leat_partition *partition, struct leat_segment *const *segs,
                               size_t seg_count, const struct leat_log_tail *tail,
                               struct leat_store_port *out_store_port) LEAT_NODISCARD;
void leat_replicate_detach(struct leat_partition *partition);
/** The stream existed, and was deleted: segments of it that come are not kept. Thread: the core. */
bool leat_replicate_stream_is_deleted(const struct leat_core *core, uint32_t stream);
/** Replicas that the store found at start go to the backup. Thread: core 0. */
leat_err leat_replicate_take_found(struct leat_core *core) LEAT_NODISCARD;
/** Add this core's share; also the share of its backup and its sink. */
void leat_replicate_accounts(const struct leat_core *core, struct leat_msg_accounts *accounts);
/** "disk" where all copies are on one host; "memory" with three copies and more. */
enum leat_durability leat_replicate_durability(const struct leat_stream_settings *settings);

#endif
