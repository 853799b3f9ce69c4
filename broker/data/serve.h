/* SPDX-License-Identifier: Apache-2.0 */
/* What broker/node calls of this library: a core's state for its logs, the end of a turn, requests of Leat's protocol,
 * and what frees or moves the requests that wait. Thread: the core's. */
#ifndef LEAT_BROKER_DATA_SERVE_H
#define LEAT_BROKER_DATA_SERVE_H

#include "broker/front.h"

struct leat_frame;
struct leat_partition;

/* ---- core_data.c ---- */
/** core->data, zeroed; leat_core_data_free() frees it. Error: LEAT_E_NO_MEMORY. Thread: startup. */
leat_err leat_core_data_make(struct leat_core *core) LEAT_NODISCARD;
/** All but the buffers. Thread: startup. */
void leat_core_data_init(struct leat_core *core);
/** false: there is no memory for one of the tables. Thread: startup. */
bool leat_core_tables_init(struct leat_core *core) LEAT_NODISCARD;
/** Buffers for bytes that have left memory. Thread: startup. */
leat_err leat_core_buffers_init(struct leat_core *core, uint32_t count) LEAT_NODISCARD;
/** Logs, streams. Thread: any, the core runs no more, as for the next function. */
void leat_core_logs_free(struct leat_core *core);
/** After the structs of requests. Not made: fine. */
void leat_core_data_free(struct leat_core *core);
/** The logs are sealed: "opened" is committed, lent memory is taken back, fetches that were woken run. */
void leat_core_data_turn_end(struct leat_core *core);

/* ---- append.c ---- */
enum leat_handled leat_append_frame(struct leat_peer *peer, const struct leat_frame *frame);
void leat_append_answer(struct leat_peer *peer);
/** A log has room again. */
void leat_append_on_room(struct leat_partition *partition);
void leat_append_expire(struct leat_core *core);

/* ---- fetch.c, fetch_wait.c ---- */
enum leat_handled leat_fetch_frame(struct leat_peer *peer, const struct leat_frame *frame);
void leat_fetch_on_acked(struct leat_partition *partition);
void leat_fetch_undefer(struct leat_core *core);
/** Connections without a request under way wait for structs: fetches that wait for data are answered, the oldest
 * first. */
void leat_fetch_give_way(struct leat_core *core);
/** Answer all fetches that wait, with what they have. */
void leat_fetch_stop(struct leat_core *core);

/* ---- locate.c ---- */
/** Where logs begin and end, and where a time is in them. */
void leat_call_locate(struct leat_peer *peer, const struct leat_frame *frame);

#endif
