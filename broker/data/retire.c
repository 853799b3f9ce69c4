/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of a core that stop with it, or go with their stream. */
#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/net/core.h"
#include "broker/net/hooks.h"

void leat_core_log_stopped(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT(core->stopping);
    LEAT_ASSERT_CMP(core->data->logs_to_stop, >,
                    0); /* a log that is counted twice would end the core before another log */
    if (--core->data->logs_to_stop == 0) core->data->on_logs_stopped(core);
}

static void retire_on_stopped(void *arg, struct leat_log *log)
{
    (void)log;
    leat_core_log_stopped(arg);
}

void leat_core_log_stop(struct leat_core *core, struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(core);
    leat_partition_enter(partition, LEAT_PARTITION_GOES);
    leat_partition_wake(partition);
    leat_log_stop(partition->log, retire_on_stopped, core);
}

static void retire_on_deleted(void *arg, struct leat_log *log)
{
    struct leat_partition *partition = arg;
    struct leat_core *core = partition->core;
    (void)log;
    leat_partition_destroy(partition);
    if (core->stopping) leat_core_log_stopped(core);
}

/* SUBTLE: a log that is drained for a move goes too. (1) The log is stopped, and the coordinator is asked. (2) The
 * deletion is committed first, so the move is refused. (3) Without the deletion here, the log's segments would stay
 * until the next start, or the log would go on, with a stream that does not exist any more. */
void leat_partition_delete(struct leat_core *core, struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(core);
    bool moves =
        partition->state == LEAT_PARTITION_DRAINS || partition->state == LEAT_PARTITION_DRAINED;
    if (leat_partition_goes(partition) && (!moves || partition->give_up != NULL || core->stopping))
        return;
    leat_partition_enter(partition, LEAT_PARTITION_GOES);
    if (partition->moving != NULL) core->node->hooks->part_gone(partition->moving);
    leat_partition_wake(partition);
    leat_log_delete(partition->log, retire_on_deleted, partition);
}
