/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that go: their segments become replicas. See handover.h. */
#include "broker/ownership/handover.h"

#include "base/assert.h"
#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/net/hooks.h"

/* ---- giving up ---- */

/* Segments on their way to the backup. */
struct give_up {
    struct leat_mail mail;
    struct leat_node *node;
    struct leat_list segs;              /* by_log */
    const struct leat_segment *useless; /* a segment of segs: see leat_backup_take_own() */
    bool copies_idle;                   /* the log's copies are released already */
};

static void give_up_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct give_up *give_up = LEAT_CONTAINER(mail, struct give_up, mail);
    struct leat_list *link;
    while ((link = leat_list_pop_front(&give_up->segs)) != NULL) {
        struct leat_segment *seg = LEAT_CONTAINER(link, struct leat_segment, by_log);
        leat_err rc = leat_backup_take_own(core->data->replicate->backup, seg,
                                           give_up->node->incarnation, seg == give_up->useless);
        /* Only a few bytes of memory can be missing. Without these the segment would belong to no log and no backup
         * until the next start. */
        LEAT_ASSERT(rc == LEAT_OK);
    }
    leat_mem_free(give_up);
}

static void give_up_on_idle(void *arg)
{
    struct leat_partition *partition = arg;
    struct leat_log *log = partition->log;
    struct leat_core *core = partition->core;
    struct leat_log_ref ref = partition->ref;
    struct give_up *give_up = partition->give_up;
    struct leat_segment *seg;
    give_up->useless = partition->last_damaged;
    while ((seg = leat_log_segment_pop(log)) != NULL) {
        leat_list_remove(&seg->by_log);
        leat_list_push_front(&give_up->segs, &seg->by_log);
        seg->owner_actor = LEAT_ACTOR_CORE_0;
    }
    /* higher libraries forget the segments before the backup gets them */
    leat_partition_destroy(partition);
    leat_core_mail(core, 0, &give_up->mail, give_up_deliver);
    if (core->stopping) {
        leat_core_log_stopped(core);
        return;
    }
    core->node->hooks->released(core, ref);
}

static void give_up_on_released(void *arg, struct leat_log *log)
{
    struct leat_partition *partition = arg;
    (void)log;
    if (partition->copies != NULL && !partition->give_up->copies_idle)
        leat_primary_log_release(partition->copies, give_up_on_idle, partition);
    else
        give_up_on_idle(partition);
}

void leat_partition_give_up(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    if (partition->give_up != NULL) return;
    struct give_up *give_up = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *give_up);
    /* Committed and applied: there is no way back. */
    const bool committed_is_applied = give_up != NULL;
    LEAT_ASSERT(committed_is_applied);
    give_up->node = partition->core->node;
    leat_list_init(&give_up->segs);
    partition->give_up = give_up;
    if (!leat_partition_goes(partition)) leat_partition_enter(partition, LEAT_PARTITION_GOES);
    leat_partition_wake(partition);
    if (!leat_partition_loss_stops(partition)) leat_partition_give_up_go_on(partition, false);
}

void leat_partition_give_up_go_on(struct leat_partition *partition, bool copies_idle)
{
    LEAT_ASSERT_OWNER(partition->core);
    partition->give_up->copies_idle = copies_idle;
    leat_log_release(partition->log, give_up_on_released, partition);
}
