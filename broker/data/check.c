/* SPDX-License-Identifier: Apache-2.0 */
/* Assertions about a core's logs and replicas between two turns. */
#include "base/assert.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "replication/backup/backup.h"
#include "replication/primary/primary.h"

static void log_check(const struct leat_core *core, const struct leat_partition *partition)
{
    LEAT_ASSERT(partition->core == core);
    /* Else its stream may be freed memory. */
    LEAT_ASSERT(leat_partition_goes(partition) ||
                partition->stream == leat_stream_find(core, partition->ref.stream));
    LEAT_ASSERT(partition->give_up == NULL || leat_partition_goes(partition));
    LEAT_ASSERT((partition->moving != NULL) == (partition->state == LEAT_PARTITION_DRAINS));
    LEAT_ASSERT(partition->recover != NULL || partition->give_up != NULL ||
                partition->state != LEAT_PARTITION_ASKS_LOSS);
    LEAT_ASSERT(partition->recover == NULL || partition->state == LEAT_PARTITION_ASKS_LOSS ||
                partition->state == LEAT_PARTITION_LOSS_STOPS);
    LEAT_ASSERT(partition->backfill != LEAT_BACKFILL_NONE ||
                (!partition->backfill_node_down && !partition->backfill_pass_node_down));
    if (partition->groups != NULL) leat_groups_check(partition->groups);
    if (partition->copies != NULL) leat_primary_log_check(partition->copies);
    if (partition->log != NULL) leat_log_check(partition->log, !leat_list_empty(&partition->dirty));
}

void leat_core_check(const void *actor)
{
    const struct leat_core *core = actor;
    LEAT_ASSERT_OWNER(core);
    const struct leat_replicate *replicate = core->data->replicate;
    if (replicate != NULL && replicate->primary != NULL) leat_primary_check(replicate->primary);
    if (replicate != NULL && replicate->backup != NULL) leat_backup_check(replicate->backup);
    LEAT_LIST_EACH(&core->data->care_logs, link)
    log_check(core, LEAT_CONTAINER(link, const struct leat_partition, care));
}
