/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the coordinators for changes that this node has not heard of, before an answer that would be wrong if
 * another node were the owner by now. Private to broker/. */
#ifndef LEAT_BROKER_DATA_CONFIRM_H
#define LEAT_BROKER_DATA_CONFIRM_H

#include "broker/data/route.h"
#include "broker/front_logs.h"

struct leat_core;

/* ---- seek.c ---- */
/** Thread: a core. */
void leat_catch_up(struct leat_core *core, struct leat_catch_up *catch_up);

/* ---- confirm.c ---- */
/* Of one core. At most one barrier is under way. Callers that ask meanwhile wait for the next barrier, because the
 * barrier under way may have been asked for before these callers looked at their logs. */
struct leat_confirmer {
    struct leat_list asked, waiting;
    struct leat_catch_up catch_up;
    bool busy;
};
void leat_confirmer_init(struct leat_core *core);
/** May another node have become the owner without this one's doing? A server alone need not ask. */
bool leat_confirm_needed(const struct leat_core *core);
/** Takes LEAT_CATCH_UP_US_MAX at most, twice as long when a barrier is under way already. Thread: the core. */
void leat_confirm_ask(struct leat_core *core, struct leat_confirm *confirm);
/** What on_done's `rc` says of a log that was looked at under `epoch`. LEAT_OK: this node was its owner then, and has
 * every record that was acked by then, so the answer of the look stands. Else what the client is told instead. */
static inline leat_err leat_confirm_owner(struct leat_core *core, struct leat_log_ref log,
                                          uint32_t epoch, leat_err rc)
{
    uint32_t home;
    return rc != LEAT_OK ? LEAT_E_STARTING : leat_partition_route(core, log, epoch, &home, NULL);
}

#endif
