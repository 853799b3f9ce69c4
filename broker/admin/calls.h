/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of Leat's protocol other than append and fetch, for node/native.c. Thread: the connection's core. */
#ifndef LEAT_BROKER_ADMIN_CALLS_H
#define LEAT_BROKER_ADMIN_CALLS_H

#include "broker/front_logs.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "broker/net/peer.h"
#include "groups/groups.h"
#include "multilog/log.h"

struct leat_partition;

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

void leat_producer_ids_fini(struct leat_core *core);
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
