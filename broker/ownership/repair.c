/* SPDX-License-Identifier: Apache-2.0 */
/* Repair of closed segments that this node's own disk has damaged: the bytes in this node's memory, or else the bytes
 * of another node's copy, are written over the corrupt bytes. Only bytes change hands. (Length, CRC) in this node's
 * catalogue says which bytes are right: the log's chain and its committed tails name the same (length, CRC). So the
 * other copy's writer and epoch do not matter, nor later changes of the log: a copy that was cut elsewhere has
 * another length, and a segment that has gone to another owner is not written to.
 *
 * The log's core asks its store, which looks into the memory. Core 0, which has the link to other nodes' backups,
 * fetches; the log's core holds the segment while the store writes. */
#include <stdio.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/ownership/handover.h"

enum { BLOCK_BYTES = 4096 };

enum repair_state {
    REPAIR_MEMORY, /* memory was not asked yet, or has the bytes: no other node is asked */
    REPAIR_OTHERS, /* memory does not have the bytes: other nodes are asked */
    REPAIR_OVER,   /* repaired, given up, or not wanted any more */
};

struct leat_repair {
    struct leat_list link;
    struct leat_mail mail;
    struct leat_node *node;
    struct leat_log_ref ref;
    struct leat_epoch epoch;
    uint32_t home;
    struct leat_segment_id segment;
    struct leat_prefix_id prefix_id;
    enum repair_state state;
    bool away;        /* a node was down at the last request */
    bool refused;     /* the disk refused the last write */
    unsigned nowhere; /* times in a row that no node had the segment */
    uint64_t since_us, again_us, nowhere_us;
    leat_err rc; /* of the fetch */
    char from[LEAT_NODE_NAME_BYTES_MAX + 1];
    struct leat_backup_pull pull;
    struct leat_store_req req;
    uint8_t *bytes_raw, *bytes;
};

static struct leat_core *core_0(const struct leat_repair *repair)
{
    return &repair->node->cores[0];
}

static void repair_free(struct leat_repair *repair)
{
    leat_list_remove(&repair->link);
    leat_mem_free(repair->bytes_raw);
    leat_mem_free(repair);
}

/* ---- core 0 again ---- */

static void back_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_repair *repair = LEAT_CONTAINER(mail, struct leat_repair, mail);
    uint64_t now_us = leat_core_now(core);
    LEAT_ASSERT(core->repairs->going == repair);
    core->repairs->going = NULL;
    leat_mem_free(repair->bytes_raw);
    repair->bytes_raw = repair->bytes = NULL;
    core->repairs->next_us =
        now_us + (uint64_t)repair->prefix_id.bytes * 1000 * 1000 / LEAT_REPAIR_BYTES_PER_SECOND;
    uint64_t pause_us = repair->refused ? LEAT_REPAIR_REFUSED_US
                        : repair->away  ? LEAT_REPAIR_AWAY_US
                                        : LEAT_REPAIR_AGAIN_US;
    repair->again_us = now_us + pause_us;
    if (repair->state == REPAIR_OVER) {
        repair_free(repair);
        return;
    }
    /* To the end of the list. Otherwise, while a node can't be asked or the disk refuses writes, the first repairs
     * would be due again before the last repairs had a turn. */
    leat_list_remove(&repair->link);
    leat_list_push_back(&core->repairs->all, &repair->link);
}

static void to_core_0(struct leat_repair *repair)
{
    leat_core_mail(&repair->node->cores[repair->home], 0, &repair->mail, back_deliver);
}

/* ---- the log's core ---- */

static struct leat_log *log_of(const struct leat_repair *repair)
{
    const struct leat_core *core = &repair->node->cores[repair->home];
    const struct leat_partition *partition = leat_partition_find(core, repair->ref);
    bool there =
        partition != NULL && partition->give_up == NULL && partition->epoch.v == repair->epoch.v;
    return there ? partition->log : NULL;
}

static void kept_tell(const struct leat_repair *repair, leat_err rc)
{
    struct leat_log_ref log = repair->ref;
    unsigned long long segment = repair->segment.v;
    uint64_t us = leat_core_now(&repair->node->cores[repair->home]) - repair->since_us;
    if (rc == LEAT_OK)
        leat_node_log_info(
            "log %u/%u/%u: segment %llu is repaired, by the copy of node %s, %llu ms after "
            "its damage was found",
            log.stream, log.streamlet, log.log, segment, repair->from,
            (unsigned long long)us / 1000);
    else if (repair->state == REPAIR_OVER)
        leat_node_log_error(
            "log %u/%u/%u: segment %llu can't be written where it lies on this disk: "
            "give this node an empty one",
            log.stream, log.streamlet, log.log, segment);
    else if (!repair->refused)
        leat_node_log_error(
            "log %u/%u/%u: segment %llu can't be repaired now: %s; node %s has it, and "
            "whoever reads it here is told to try again: %s",
            log.stream, log.streamlet, log.log, segment, leat_err_text(rc), repair->from,
            rc == LEAT_E_DISK_FULL ? "it is repaired when there is space again"
                                   : "look at the disk, then start this node anew");
}

/* SUBTLE: where the disk refuses the write, no record is lost, as other nodes have the segment. If the refusal was
 * taken for "no node has the segment":
 *  1. A bit of a closed segment flips; a reader finds it, and another node's copy is fetched.
 *  2. The flush fails. The reader is told that offsets are damaged, and to begin after them.
 *  3. The reader does so, and never sees acked records that are whole on every other node. */
static void on_kept(struct leat_store_req *req)
{
    struct leat_repair *repair = req->owner;
    const struct leat_partition *partition =
        leat_partition_find(&repair->node->cores[repair->home], repair->ref);
    LEAT_ASSERT(partition != NULL); /* the partition waits for the repair */
    bool over = leat_log_repair_end(partition->log, repair->segment, req->rc);
    if (LEAT_BUG(REFUSED_IS_LOST) && req->rc == LEAT_E_DISK) {
        leat_log_repair_give_up(partition->log, repair->segment);
        over = true;
    }
    if (over) repair->state = REPAIR_OVER;
    kept_tell(repair, req->rc);
    repair->refused = !over;
    to_core_0(repair);
}

static void repair_req(struct leat_repair *repair, struct leat_segment *seg, uint8_t *bytes,
                       void (*on_done)(struct leat_store_req *req))
{
    const struct leat_core *core = &repair->node->cores[repair->home];
    const struct leat_store_port *store = &repair->node->store_port;
    repair->req = (struct leat_store_req){
        .kind = LEAT_STORE_REPAIR, .seg = seg, .bytes = bytes, .on_done = on_done, .owner = repair};
    store->request(store->ctx, core->env->post, &repair->req);
}

/* A log that stopped for a move takes no bytes now. The move may be refused, and the log go on: the segment waits. */
static bool is_moving(const struct leat_repair *repair)
{
    const struct leat_core *core = &repair->node->cores[repair->home];
    const struct leat_partition *partition = leat_partition_find(core, repair->ref);
    return partition != NULL && partition->epoch.v == repair->epoch.v &&
           (partition->state == LEAT_PARTITION_DRAINS ||
            partition->state == LEAT_PARTITION_DRAINED);
}

static void write_start(struct leat_repair *repair, struct leat_log *log)
{
    struct leat_segment *seg = leat_log_repair_begin(log, repair->segment, repair->prefix_id);
    if (seg == NULL) { /* trimmed, or the log is on its way out */
        if (!is_moving(repair)) repair->state = REPAIR_OVER;
        to_core_0(repair);
        return;
    }
    repair_req(repair, seg, repair->bytes, on_kept);
}

static void home_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_repair *repair = LEAT_CONTAINER(mail, struct leat_repair, mail);
    struct leat_log *log = log_of(repair);
    uint64_t now_us = leat_core_now(actor);
    bool nowhere = repair->rc == LEAT_E_NOT_FOUND || repair->rc == LEAT_E_DAMAGED;
    repair->nowhere = nowhere ? repair->nowhere + 1 : 0;
    if (log != NULL && repair->rc == LEAT_OK) {
        write_start(repair, log);
        return;
    }
    if (repair->nowhere == 1) repair->nowhere_us = now_us;
    /* Not at once: the log's last owner may not have given the segment to its backup yet. */
    bool given_up =
        nowhere && !repair->away && now_us >= repair->nowhere_us + LEAT_TAKEOVER_MISSING_US;
    if (log == NULL || given_up) repair->state = REPAIR_OVER;
    if (log != NULL && given_up) {
        leat_node_log_error(
            "log %u/%u/%u: segment %llu is damaged here, and no other node has a whole "
            "copy of it",
            repair->ref.stream, repair->ref.streamlet, repair->ref.log,
            (unsigned long long)repair->segment.v);
        leat_log_repair_give_up(log, repair->segment);
    }
    to_core_0(repair);
}

/* ---- fetching ---- */

static void on_pulled(struct leat_backup_pull *pull, leat_err rc)
{
    struct leat_repair *repair = pull->owner;
    struct leat_core *core = core_0(repair);
    repair->rc = rc;
    if (rc == LEAT_OK) {
        unsigned number = pull->nodes[pull->node_at];
        for (uint32_t i = 0; i < core->members.count; i++)
            if (core->members.rows[i]->number == number)
                snprintf(repair->from, sizeof repair->from, "%s", core->members.rows[i]->info.name);
    }
    leat_core_mail(core, repair->home, &repair->mail, home_deliver);
}

static void fetch_start(struct leat_core *core, struct leat_repair *repair)
{
    uint32_t bytes = LEAT_ALIGN_UP(repair->prefix_id.bytes, (uint32_t)BLOCK_BYTES);
    repair->bytes_raw = leat_mem_calloc(LEAT_MEM_BROKER, 1, (size_t)bytes + BLOCK_BYTES);
    repair->again_us = leat_core_now(core) + LEAT_REPAIR_AGAIN_US;
    if (repair->bytes_raw == NULL) return; /* later */
    repair->bytes = (uint8_t *)LEAT_ALIGN_UP((uintptr_t)repair->bytes_raw, (uintptr_t)BLOCK_BYTES);
    repair->pull = (struct leat_backup_pull){.log = repair->ref,
                                             .segment = repair->segment,
                                             .prefix_id = repair->prefix_id,
                                             .into = repair->bytes,
                                             .on_done = on_pulled,
                                             .owner = repair};
    if (LEAT_BUG(REPAIR_UNCHECKED)) repair->pull.prefix_id.crc = 0; /* any bytes are accepted */
    leat_pull_from_all(core, &repair->pull);
    repair->away = !leat_all_nodes_up(core);
    leat_err rc = leat_backup_pull(core->data->replicate->backup, &repair->pull);
    if (rc == LEAT_OK) {
        core->repairs->going = repair;
        return;
    }
    leat_mem_free(repair->bytes_raw);
    repair->bytes_raw = repair->bytes = NULL;
}

static void ask_deliver(void *actor, struct leat_mail *mail);

static void repairs_step(struct leat_core *core)
{
    uint64_t now_us = leat_core_now(core);
    bool ready = core->data->replicate->backup != NULL && !core->stopping &&
                 now_us >= core->repairs->next_us;
    LEAT_LIST_EACH(&core->repairs->all, it)
    {
        struct leat_repair *repair = LEAT_CONTAINER(it, struct leat_repair, link);
        if (repair->state == REPAIR_MEMORY && !core->stopping && now_us >= repair->again_us) {
            leat_list_remove(&repair->link);
            leat_core_mail(core, repair->home, &repair->mail, ask_deliver);
        } else if (ready && core->repairs->going == NULL && now_us >= repair->again_us) {
            fetch_start(core, repair);
        }
    }
    if (!leat_list_empty(&core->repairs->all))
        leat_timer_start(&core->timers, &core->repairs->timer, LEAT_TAKEOVER_TICK_US);
}

static void on_timer(struct leat_timer *timer)
{
    repairs_step(timer->owner);
}

/* ---- asking: this node's memory first ---- */

static void others_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_repair *repair = LEAT_CONTAINER(mail, struct leat_repair, mail);
    leat_list_push_back(&core->repairs->all, &repair->link);
    repairs_step(core);
}

/* SUBTLE: memory has the bytes, and the disk does not take them. If this was taken for "memory does not have them", a
 * server alone would call acked records lost, and an operator's word would give them up. */
static void remembered_later(struct leat_repair *repair, struct leat_core *core, leat_err rc)
{
    struct leat_log_ref log = repair->ref;
    if (!repair->refused)
        leat_node_log_error(
            "log %u/%u/%u: segment %llu is damaged in its file, and the disk does not take what "
            "this node's memory has of it: %s. It is tried again; do not end this process",
            log.stream, log.streamlet, log.log, (unsigned long long)repair->segment.v,
            leat_err_text(rc));
    repair->refused = true;
    repair->again_us = leat_core_now(core) + LEAT_REPAIR_REFUSED_US;
    leat_core_mail(core, 0, &repair->mail, others_deliver);
}

static void on_remembered(struct leat_store_req *req)
{
    struct leat_repair *repair = req->owner;
    struct leat_core *core = &repair->node->cores[repair->home];
    const struct leat_partition *partition = leat_partition_find(core, repair->ref);
    LEAT_ASSERT(partition != NULL); /* the partition waits for the repair */
    struct leat_log_ref log = repair->ref;
    unsigned long long segment = repair->segment.v;
    leat_err rc = req->rc;
    bool refused = rc == LEAT_E_DISK || rc == LEAT_E_DISK_FULL || rc == LEAT_E_NO_MEMORY;
    bool over = leat_log_repair_end(partition->log, repair->segment,
                                    rc == LEAT_OK || refused ? rc : LEAT_E_NOT_FOUND);
    if (refused) {
        remembered_later(repair, core, rc);
        return;
    }
    repair->refused = false;
    repair->state = over ? REPAIR_OVER : REPAIR_OTHERS;
    if (over)
        leat_node_log_warn(
            "log %u/%u/%u: the file of segment %llu was damaged, and is written anew by what "
            "this node's memory has of it: nothing is lost",
            log.stream, log.streamlet, log.log, segment);
    if (over) {
        leat_mem_free(repair);
    } else if (partition->copies == NULL) {
        leat_log_repair_give_up(partition->log, repair->segment);
        leat_mem_free(repair);
    } else {
        leat_node_log_warn(
            "log %u/%u/%u: segment %llu is damaged here: other nodes are asked for it", log.stream,
            log.streamlet, log.log, segment);
        leat_core_mail(core, 0, &repair->mail, others_deliver);
    }
}

static void ask_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_repair *repair = LEAT_CONTAINER(mail, struct leat_repair, mail);
    struct leat_log *log = log_of(repair);
    struct leat_segment *seg =
        log == NULL ? NULL : leat_log_repair_begin(log, repair->segment, repair->prefix_id);
    if (seg != NULL) {
        repair_req(repair, seg, NULL, on_remembered);
    } else if (log != NULL && is_moving(repair)) {
        /* SUBTLE: memory is asked later, before other nodes. (1) Memory alone has the segment's bytes, and the damage
         * is found while the log is about to move. (2) The move is refused. (3) If other nodes were asked now, none
         * would have the segment, and it would be called lost. */
        repair->again_us = leat_core_now(actor) + LEAT_REPAIR_AGAIN_US;
        leat_core_mail(actor, 0, mail, others_deliver);
    } else { /* trimmed, or the log is on its way out */
        leat_mem_free(repair);
    }
}

leat_err leat_repair_ask(const struct leat_partition *partition, const struct leat_segment *seg)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_core *core = partition->core;
    struct leat_repair *repair = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *repair);
    if (repair == NULL) return LEAT_E_NO_MEMORY;
    leat_list_init(&repair->link);
    repair->node = core->node;
    repair->ref = partition->ref;
    repair->epoch = partition->epoch;
    repair->home = core->index;
    repair->segment = seg->id;
    repair->prefix_id = seg->prefix_id;
    repair->since_us = leat_core_now(core);
    leat_core_mail(core, core->index, &repair->mail, ask_deliver);
    return LEAT_OK;
}

void leat_repairs_init(struct leat_core *core)
{
    leat_list_init(&core->repairs->all);
    core->repairs->timer = (struct leat_timer){.on_expired = on_timer, .owner = core};
}

void leat_repairs_fini(struct leat_core *core)
{
    LEAT_LIST_EACH(&core->repairs->all, it)
    repair_free(LEAT_CONTAINER(it, struct leat_repair, link));
}
