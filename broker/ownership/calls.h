/* SPDX-License-Identifier: Apache-2.0 */
/* What broker/node calls of this library, beside takeovers (handover.h) and events of the coordinator (collect.h): a
 * core's state, and requests of Leat's protocol. Thread: the core's. */
#ifndef LEAT_BROKER_OWNERSHIP_CALLS_H
#define LEAT_BROKER_OWNERSHIP_CALLS_H

#include "base/error.h"
#include "wire/frame.h"

struct leat_core;
struct leat_move_part;
struct leat_peer;

/* ---- core_ownership.c ---- */
/** core->takeovers, repairs and movers. Error: LEAT_E_NO_MEMORY. Thread: startup. */
leat_err leat_core_ownership_make(struct leat_core *core) LEAT_NODISCARD;
/** Nothing is under way any more; before the core's logs go. Thread: any, the core runs no more, as for the next
 * function. */
void leat_core_ownership_fini(struct leat_core *core);
/** Not made: fine. */
void leat_core_ownership_free(struct leat_core *core);
/** How many streamlets are on their way to another node. Thread: core 0. */
uint32_t leat_movers_count(const struct leat_core *core);

/* ---- move.c ---- */
/** A drained node moves its streamlets to other nodes. Thread: a core. */
void leat_movers_tick(struct leat_core *core);
/** The log has gone while it was drained. Thread: the log's core. */
void leat_move_part_gone(struct leat_move_part *part);
void leat_call_streamlet_move(struct leat_peer *peer, const struct leat_frame *frame);

/* ---- recover.c ---- */
/** LOG_RECOVER: an operator accepts what a log has lost. */
void leat_call_recover(struct leat_peer *peer, const struct leat_frame *frame);

/* ---- below.c ---- */
void leat_call_below(struct leat_peer *peer, const struct leat_frame *frame);

#endif
