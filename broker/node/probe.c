/* SPDX-License-Identifier: Apache-2.0 */
#include "broker/probe.h"

#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"
#include "broker/ownership/calls.h"
#include "broker/ownership/move.h"
#include "broker/ownership/takeover.h"

const struct leat_node_limits leat_node_limits = {
    .fetch_bytes = LEAT_FETCH_BYTES_MAX,
    .lend_us = LEAT_LEND_US,
    .stall_us = LEAT_PEER_STALL_US,
    .log_spare_bytes = LEAT_HEAP_SPARE_BYTES + LEAT_HEAP_SLAB_BYTES,
};

const char *leat_node_name(const struct leat_node *node)
{
    return node->name;
}

uint64_t leat_node_incarnation(const struct leat_node *node)
{
    return node->incarnation;
}

const uint8_t *leat_node_cluster_id(const struct leat_node *node)
{
    return node->cluster_id;
}

bool leat_node_has_cores(const struct leat_node *node)
{
    return node->cores != NULL;
}

bool leat_node_is_confirmed(const struct leat_node *node)
{
    return leat_node_stands(node, NULL) == LEAT_OK;
}

uint64_t leat_node_heap_asked_us(const struct leat_node *node)
{
    return atomic_load(&node->heap_wait.asked_us);
}

const char *leat_node_member(const struct leat_node *node, uint32_t member)
{
    if (!node->cores || member >= node->cores[0].members.count) return NULL;
    return node->cores[0].members.rows[member]->info.name;
}

static const struct leat_replicate *replicate_of(const struct leat_node *node, uint32_t core)
{
    LEAT_ASSERT_CMP(core, <, node->options.cores);
    return node->cores ? node->cores[core].data->replicate : NULL;
}

struct leat_primary *leat_node_primary(const struct leat_node *node, uint32_t core)
{
    const struct leat_replicate *replicate = replicate_of(node, core);
    return replicate ? replicate->primary : NULL;
}

struct leat_backup *leat_node_backup(const struct leat_node *node)
{
    const struct leat_replicate *replicate = replicate_of(node, 0);
    return replicate ? replicate->backup : NULL;
}

uint64_t leat_node_lent_us(const struct leat_node *node, uint32_t core)
{
    const struct leat_lender *lender = node->cores[core].data->lender;
    if (leat_list_empty(&lender->line) || leat_list_empty(&lender->buffers)) return 0;
    return LEAT_CONTAINER(lender->buffers.next, struct leat_fetch_read, lent)->lent_us;
}

uint32_t leat_node_handing_over(const struct leat_node *node)
{
    uint32_t count = 0;
    for (uint32_t c = 0; node->cores && c < node->options.cores; c++)
        count += leat_movers_count(&node->cores[c]);
    return count;
}

bool leat_node_move_asks(const struct leat_node *node)
{
    const struct leat_movers *movers = node->cores ? node->cores[0].movers : NULL;
    if (!movers || movers->count == 0) return false;
    LEAT_LIST_EACH(&movers->all, link)
    {
        const struct leat_mover *mover = LEAT_CONTAINER(link, const struct leat_mover, link);
        struct leat_partition_seen seen;
        for (uint32_t i = 0; mover->step == LEAT_MOVE_STOPS && i < mover->count; i++)
            if (leat_node_partition_at(node, mover->refs[i], &seen) && seen.drained) return true;
    }
    return false;
}

static const struct leat_list *takeovers_of(const struct leat_node *node)
{
    const struct leat_list *all = node->cores ? &node->cores[0].takeovers->all : NULL;
    return all && all->next ? all : NULL;
}

bool leat_node_taking_over(const struct leat_node *node)
{
    const struct leat_list *all = takeovers_of(node);
    return all && !leat_list_empty(all);
}

bool leat_node_takeover_wants(const struct leat_node *node, uint32_t stream, uint32_t streamlet,
                              uint64_t *out_segment)
{
    const struct leat_list *all = takeovers_of(node);
    for (const struct leat_list *it = all ? all->next : NULL; it != all; it = it->next) {
        const struct leat_takeover *takeover = LEAT_CONTAINER(it, const struct leat_takeover, link);
        if (takeover->ref.stream != stream || takeover->ref.streamlet != streamlet) continue;
        *out_segment = takeover->segment;
        return true;
    }
    return false;
}

bool leat_node_takeover_next(const struct leat_node *node, struct leat_takeover_seen *seen)
{
    const struct leat_list *all = takeovers_of(node);
    const struct leat_takeover *takeover = seen->at;
    const struct leat_list *next = takeover ? takeover->link.next : all ? all->next : NULL;
    if (!all || next == all) return false;
    takeover = LEAT_CONTAINER(next, const struct leat_takeover, link);
    *seen = (struct leat_takeover_seen){
        .at = takeover,
        .ref = takeover->ref,
        .epoch = takeover->epoch,
        .segment = takeover->segment,
        .waits = takeover->busy || takeover->seg || takeover->queued || takeover->replaced,
    };
    return true;
}

bool leat_node_has_stream(const struct leat_node *node, uint32_t stream)
{
    for (uint32_t c = 0; node->cores && c < node->options.cores; c++) {
        const struct leat_core *core = &node->cores[c];
        const struct leat_stream *of =
            core->data->streams_by_id ? leat_stream_find(core, stream) : NULL;
        if (of && (of->published || !of->deleted)) return true;
    }
    return false;
}

/* ---- its logs ---- */

static bool log_see(const struct leat_partition *partition, uint32_t core, uint32_t bucket,
                    struct leat_partition_seen *out_seen)
{
    *out_seen = (struct leat_partition_seen){
        .at = partition,
        .core = core,
        .bucket = bucket,
        .ref = partition->ref,
        .log = partition->log,
        .copies = partition->copies,
        .groups = partition->groups,
        .going = leat_partition_goes(partition),
        .blocked = !leat_list_empty(&partition->blocked),
        .drained = partition->state == LEAT_PARTITION_DRAINED,
        .moves =
            partition->moving || partition->state == LEAT_PARTITION_DRAINED || partition->give_up,
    };
    return true;
}

/* The first bucket from this one on that has any; past partition_mask: there is none. A table has 1,024 buckets at
 * least, a power of two, and the simulator's logs lie in a few of them: empty ones are passed many at a time. */
static uint32_t bucket_from(const struct leat_core *core, uint32_t bucket)
{
    enum { AT_ONCE = 16 };
    while (bucket <= core->data->partition_mask && !core->data->partitions[bucket]) {
        bucket++;
        for (; bucket % AT_ONCE == 0 && bucket <= core->data->partition_mask; bucket += AT_ONCE) {
            uintptr_t any = 0;
            for (uint32_t i = 0; i < AT_ONCE; i++)
                any |= (uintptr_t)core->data->partitions[bucket + i];
            if (any) break;
        }
    }
    return bucket;
}

bool leat_node_partition_next(const struct leat_node *node, struct leat_partition_seen *seen)
{
    const struct leat_partition *before = seen->at;
    if (before && before->hash_next)
        return log_see(before->hash_next, seen->core, seen->bucket, seen);
    uint32_t bucket = before ? seen->bucket + 1 : 0;
    for (uint32_t c = seen->core; node->cores && c < node->options.cores; c++, bucket = 0) {
        const struct leat_core *core = &node->cores[c];
        if (!core->data->partitions || core->data->partition_count == 0) continue;
        bucket = bucket_from(core, bucket);
        if (bucket <= core->data->partition_mask)
            return log_see(core->data->partitions[bucket], c, bucket, seen);
    }
    return false;
}

/* A log is in one of these two lists, from its creation on. */
bool leat_node_log_next(const struct leat_node *node, struct leat_partition_seen *seen)
{
    const struct leat_partition *before = seen->at;
    for (uint32_t c = seen->core; node->cores && c < node->options.cores; c++, before = NULL) {
        const struct leat_core_data *data = node->cores[c].data;
        if (!data->partitions) continue;
        const struct leat_list *link = before ? before->care.next : data->care_logs.next;
        if (link == &data->care_logs) link = data->idle_logs.next;
        if (link != &data->idle_logs)
            return log_see(LEAT_CONTAINER(link, struct leat_partition, care), c, 0, seen);
    }
    return false;
}

bool leat_node_partition_at(const struct leat_node *node, struct leat_log_ref ref,
                            struct leat_partition_seen *out_seen)
{
    for (uint32_t c = 0; node->cores && c < node->options.cores; c++) {
        const struct leat_core *core = &node->cores[c];
        const struct leat_partition *partition =
            core->data->partitions ? leat_partition_find(core, ref) : NULL;
        if (partition) return log_see(partition, c, 0, out_seen);
    }
    return false;
}

bool leat_node_partition_epoch(const struct leat_node *node, const struct leat_partition_seen *seen,
                               uint32_t *out_epoch)
{
    const struct leat_stream *stream = leat_stream_find(&node->cores[seen->core], seen->ref.stream);
    if (!stream) return false;
    *out_epoch = stream->desc->streamlets[seen->ref.streamlet].epoch.v;
    return true;
}
