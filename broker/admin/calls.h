/* SPDX-License-Identifier: Apache-2.0 */
/* What broker/node calls of this library: requests of Leat's protocol other than append and fetch, which connections
 * may send them, and what a core keeps of them. Thread: the connection's core. */
#ifndef LEAT_BROKER_ADMIN_CALLS_H
#define LEAT_BROKER_ADMIN_CALLS_H

#include "broker/front_logs.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "groups/groups.h"
#include "multilog/log.h"

struct leat_partition;
struct leat_stream;

/** core->admin; leat_core_admin_free() frees it. Error: LEAT_E_NO_MEMORY. Thread: startup. */
leat_err leat_core_admin_make(struct leat_core *core) LEAT_NODISCARD;
/** Nothing is under way any more; before the core's streams go. Thread: any, the core runs no more, as for the next
 * function. */
void leat_core_admin_fini(struct leat_core *core);
/** Not made: fine. */
void leat_core_admin_free(struct leat_core *core);
/** The stream goes, or is not wanted any more: forget where its copies are (places.c). */
void leat_places_forget(struct leat_core *core, struct leat_stream *stream);

/* ---- administer.c: which connections may change the cluster ---- */
/* Drain, replace or promote a node, move a streamlet, accept a loss: the operator of the machine may; a client that
 * merely reaches the port of producers and consumers may not. The node to which the client is connected makes the
 * check; a request that another node hands on has passed the check there. */

/** Does a request of this kind change the cluster? Thread: any. */
bool leat_administers(uint16_t kind);
/** May this connection ask for such changes? The account of the server and root may, by the Unix socket;
 * as long as nothing controls access every account of this machine may, by a loopback address. */
bool leat_peer_may_administer(const struct leat_peer *peer);
/** Why not, and how to ask so that it is allowed: for the answer. */
void leat_administer_refusal(const struct leat_peer *peer, struct leat_error *out_error);

/* ---- requests ---- */

void leat_call_metadata(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_create(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_delete(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_describe(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_segments(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_node_report(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_segment_group(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_producer_id(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_ping(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_status(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_cluster_status(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_node_change(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_group(struct leat_peer *peer, const struct leat_frame *frame);
/** No client waits for the peer's answers any more: give up the places that its requests hold. */
void leat_groups_peer_closed(struct leat_peer *peer);
void leat_call_places(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_trim(struct leat_peer *peer, const struct leat_frame *frame);

/** Ask a log's core, wherever it is; query->on_done follows, never inside. Thread: core. */
void leat_segment_group_ask(struct leat_core *core, struct leat_segment_group_query *query);
/** What the log of this core says of the group of segments: query->rc, and at LEAT_OK the rest of the answer. */
void leat_segment_group_look(const struct leat_core *core, struct leat_log_ref ref, uint64_t group,
                             struct leat_segment_group_query *out);
/** Broker side of one home log's groups. */
leat_err leat_groups_attach(struct leat_partition *partition,
                            struct leat_log_options *options) LEAT_NODISCARD;
void leat_groups_log_made(struct leat_partition *partition);

#endif
