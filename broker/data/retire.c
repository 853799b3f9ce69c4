/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of a core that stop with it, or go with their stream. */
#include "base/assert.h"
#include "broker/data/hosted.h"
#include "broker/net/core.h"
#include "broker/net/hooks.h"

void leat_core_log_stopped(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT(core->stopping);
    LEAT_ASSERT_CMP(core->logs_to_stop, >,
                    0); /* one told twice would end the core before another */
    if (--core->logs_to_stop == 0) core->on_logs_stopped(core);
}

static void retire_on_stopped(void *arg, struct leat_log *log)
{
    (void)log;
    leat_core_log_stopped(arg);
}

void leat_core_log_stop(struct leat_core *core, struct leat_hosted *hosted)
{
    LEAT_ASSERT_OWNER(core);
    hosted->going = true;
    leat_hosted_wake(hosted);
    leat_log_stop(hosted->log, retire_on_stopped, core);
}

static void retire_on_deleted(void *arg, struct leat_log *log)
{
    struct leat_hosted *hosted = arg;
    struct leat_core *core = hosted->core;
    (void)log;
    leat_hosted_destroy(hosted);
    if (core->stopping) leat_core_log_stopped(core);
}

/* SUBTLE: one that is drained for a move goes too. (1) It is stopped, and the coordinator is asked. (2) The
 * deletion is committed first, so the move is refused. (3) Nobody would ever look at it again: its segments
 * would stay until the next start, or it would go on, with a stream that is no more. */
void leat_hosted_delete(struct leat_core *core, struct leat_hosted *hosted)
{
    LEAT_ASSERT_OWNER(core);
    bool moves = hosted->moving != NULL || hosted->drained;
    if (hosted->going && (!moves || hosted->give_up != NULL || core->stopping)) return;
    hosted->going = true;
    hosted->drained = false;
    if (hosted->moving != NULL) core->node->hooks->part_gone(hosted->moving);
    leat_hosted_wake(hosted);
    leat_log_delete(hosted->log, retire_on_deleted, hosted);
}
