/* SPDX-License-Identifier: Apache-2.0 */
/* A start's last step: each core makes its logs from what was decided and what was found. */
#include <stdio.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"
#include "broker/node/walk.h"
#include "broker/ownership/handover.h"

bool leat_adopt_awaits_tail(const struct leat_node *node, const struct leat_stream *stream,
                            struct leat_log_ref ref)
{
    const struct leat_begun_log *row = leat_begun_find(stream->begun, ref);
    return node->options.cluster.node_address != NULL && row != NULL && !row->record.opened;
}

/* The segment is closed, and its file has lost it, or never got it: other nodes have the segment, and the log has it
 * repaired. Segments that the file never got and that precede all segments here come as older segments do: an
 * operator may give them up, and the next segment's start entry says which of them belong to the log. */
static bool is_elsewhere(const struct leat_node *node, const struct leat_stream_desc *desc,
                         const struct leat_log_decision *decision, size_t at, bool in_front)
{
    const struct leat_segment *seg = node->found[at].seg;
    if (desc->settings.copies <= 1 || decision->kind != LEAT_DECIDED_TAIL ||
        !leat_segment_is_damaged(seg))
        return false;
    if (seg->integrity == LEAT_INTEGRITY_CORRUPT) return true;
    return !in_front && seg->id.v < decision->tail.segment && !node->dispositions[at].duplicate;
}

/* The segments of a log that are here. */
struct here {
    struct leat_segment **segs; /* NULL: none */
    size_t count;
    /* Of the segments that were found; UINT64_MAX, 0: none */
    uint64_t highest_segment, highest_offset;
};

/* The segments of the log among the found segments from `first` to `end`. */
static leat_err here_gather(const struct leat_node *node, const struct leat_stream_desc *desc,
                            const struct leat_log_decision *decision, size_t first, size_t end,
                            struct here *out)
{
    *out = (struct here){.highest_segment = UINT64_MAX};
    if (end > first) {
        out->segs = leat_mem_calloc(LEAT_MEM_BROKER, end - first, sizeof(struct leat_segment *));
        if (out->segs == NULL) return LEAT_E_NO_MEMORY;
    }
    for (size_t i = first; i < end; i++) {
        const struct leat_found_disposition *disposition = &node->dispositions[i];
        if (disposition->disposition == LEAT_DISPOSITION_GONE) continue;
        out->highest_segment = disposition->segment;
        if (disposition->next_offset > out->highest_offset)
            out->highest_offset = disposition->next_offset;
        if (disposition->disposition == LEAT_DISPOSITION_SERVED ||
            is_elsewhere(node, desc, decision, i, out->count == 0))
            out->segs[out->count++] = node->found[i].seg;
    }
    return LEAT_OK;
}

/* SUBTLE: segments that are not here may be on other nodes, which drop segments that the log does not know.
 *  1. The row of segment 4 is damaged on the owner's disk. Its log has segments 0 to 3 and 5 to 7.
 *  2. Other nodes ask whether their replicas of segment 4 are needed. The log has no such segment, so the replicas
 *     are surplus.
 *  3. The replicas are dropped: no node has segment 4 any more.
 * So such a log is not whole until its missing segments have come (leat_log_tail.backfill_follows). */
static void holes_tell(struct leat_segment *const *segs, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const struct leat_log_ref *ref = &segs[i]->log;
        uint64_t first = segs[i - 1]->id.v + 1, end = segs[i]->id.v;
        if (first == end) continue;
        leat_node_log_warn(
            "log %u/%u/%u: segments %llu to %llu are not here: unless offsets jumped "
            "there, other nodes are asked for them",
            ref->stream, ref->streamlet, ref->log, (unsigned long long)first,
            (unsigned long long)end - 1);
    }
}

/* Where the log goes on. */
static struct leat_log_tail tail_of(const struct leat_node *node,
                                    const struct leat_log_decision *decision,
                                    const struct here *here, uint32_t copies)
{
    struct leat_log_tail tail = {0};
    const struct leat_segment *last = here->count > 0 ? here->segs[here->count - 1] : NULL;
    if (decision->kind != LEAT_DECIDED_TAIL) {
        tail.stands_in = true;
        tail.next_segment = here->highest_segment == UINT64_MAX ? 0 : here->highest_segment + 1;
        tail.next_offset = last != NULL ? last->next_offset : 0;
        return tail;
    }
    tail.next_segment = decision->tail.segment == UINT64_MAX ? 0 : decision->tail.segment + 1;
    tail.next_offset = decision->tail.next_offset;
    tail.jumped = decision->tail.jumped;
    if (!tail.jumped && tail.next_segment > 0) {
        /* An earlier version's cut added an entry: the chain goes on from what lies there. */
        bool there = last != NULL && last->id.v == decision->tail.segment;
        tail.previous = there ? last->prefix_id : decision->tail.prefix_id;
    }
    /* Missing older segments may not have come yet from the node that had them before. */
    bool asks = node->options.cluster.node_address != NULL && here->count > 0;
    tail.holes = asks && copies > 1 && leat_takeover_has_holes(here->segs, here->count);
    tail.backfill_follows = tail.holes || (asks && here->segs[0]->id.v > 0 &&
                                           !(tail.jumped && LEAT_BUG(FRONT_ACCEPTED)));
    if (tail.holes) holes_tell(here->segs, here->count);
    return tail;
}

/* Missing segments may come back: then the next start decides. */
static void waits_tell(struct leat_node *node, struct leat_partition *partition, const char *why)
{
    const struct leat_stream_desc *desc = partition->stream->desc;
    struct leat_log_ref ref = partition->ref;
    leat_log_set_state(partition->log, LEAT_LOG_WAITING, why);
    leat_node_complain(node,
                       "stream \"%s\", streamlet %u, log %u waits: %s. Reads go on, appends are "
                       "refused; if the data can't come back: leat log recover %s --streamlet %u "
                       "--log %u --accept-loss",
                       desc->name, ref.streamlet, ref.log, why, desc->name, ref.streamlet, ref.log);
}

/* The store names segments, without a stream's name; these lines name the stream, for an operator. Whether first
 * segments are missing is known when the log has read where it begins. */
void leat_adopt_damage_tell(struct leat_core *core, struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_log_ref *ref = &partition->ref;
    const char *name = partition->stream->desc->name;
    char why[256];
    if (leat_log_trouble(partition->log, why, sizeof why) == LEAT_OK && !LEAT_BUG(DAMAGE_CRIED)) {
        partition->damage_untold = !leat_log_front_known(partition->log);
        return;
    }
    partition->damage_untold = false;
    core->damaged_sum.what = "logs have segments that are missing or damaged (leat cluster status)";
    leat_node_log_summed(
        &core->damaged_sum, leat_core_now(core), LEAT_NODE_LOG_ERROR,
        "stream \"%s\", streamlet %u, log %u: %s. It takes appends, and the rest can be "
        "read. Put the file back from a copy and restart; if that can't be: leat log "
        "recover %s --streamlet %u --log %u --accept-loss",
        name, ref->streamlet, ref->log, why, name, ref->streamlet, ref->log);
}

static leat_err log_make(struct leat_node *node, struct leat_core *core, struct leat_stream *stream,
                         const struct leat_log_decision *decision, struct here *here)
{
    struct leat_log_tail tail = tail_of(node, decision, here, stream->desc->settings.copies);
    struct leat_epoch epoch = decision->epoch.v != 0
                                  ? decision->epoch
                                  : stream->desc->streamlets[decision->log.streamlet].epoch;
    struct leat_partition *partition;
    leat_err rc = leat_partition_create(core, stream, decision->log, epoch, here->segs, here->count,
                                        &tail, &partition);
    if (rc != LEAT_OK) return rc;
    if (tail.backfill_follows) leat_backfill_soon(partition);
    partition->highest_segment = here->highest_segment;
    partition->highest_offset = here->highest_offset;
    if (decision->kind == LEAT_DECIDED_TAIL) {
        leat_adopt_damage_tell(core, partition);
        return LEAT_OK;
    }
    partition->segs = here->segs; /* the partition has them now */
    partition->seg_count = here->count;
    here->segs = NULL;
    waits_tell(node, partition, decision->why);
    return LEAT_OK;
}

/* Nothing of the log is here, and the coordinators know of no segment of it: the log may as well be made later. */
static bool is_fresh(const struct leat_stream *stream, const struct leat_log_decision *decision,
                     const struct here *here)
{
    return here->highest_segment == UINT64_MAX && decision->kind == LEAT_DECIDED_TAIL &&
           decision->tail.segment == UINT64_MAX && decision->tail.next_offset == 0 &&
           !decision->tail.jumped && leat_begun_find(stream->begun, decision->log) == NULL;
}

/* SUBTLE: a start does not fail for a log without records. (1) More logs are made than there is memory for, by
 * whatever way. (2) While the nodes run, the logs without memory wait. (3) If a start failed there, so would every
 * other start, on all nodes, and no operator could delete the streams. So such logs wait, as they did before; the
 * logs with records were made before them. */
static leat_err fresh_make(struct leat_node *node, struct leat_core *core,
                           struct leat_stream *stream, const struct leat_log_decision *decision,
                           struct here *here)
{
    const bool room = stream->has_groups || leat_node_heap_admits(node, leat_core_now(core));
    leat_err rc = room ? log_make(node, core, stream, decision, here) : LEAT_E_NO_MEMORY;
    if (rc != LEAT_E_NO_MEMORY && rc != LEAT_E_TOO_MANY) return rc;
    if (!stream->logs_missing)
        leat_node_log_summed(&core->wait_sum, leat_core_now(core), LEAT_NODE_LOG_INFO,
                             "logs of stream \"%s\" wait for memory that segments give back",
                             stream->desc->name);
    stream->logs_missing = core->data->logs_missing = true;
    return LEAT_OK;
}

static leat_err adopt_log(struct leat_node *node, struct leat_core *core,
                          struct leat_stream *stream, const struct leat_log_decision *decision,
                          size_t first, size_t end, bool fresh, struct leat_error *error)
{
    const struct leat_stream_desc *desc = stream->desc;
    const bool left = decision->left && !LEAT_BUG(LEFT_IS_SERVED);
    if (left) { /* recovery may have given it to this node by now */
        stream->logs_missing = core->data->logs_missing = true;
        return LEAT_OK;
    }
    if (decision->kind == LEAT_DECIDED_WAIT &&
        leat_adopt_awaits_tail(node, stream, decision->log)) {
        if (fresh) return LEAT_OK;
        leat_takeover_ask(core, leat_begun_find(stream->begun, decision->log), desc->settings.logs);
        return LEAT_OK;
    }
    struct here here;
    leat_err rc = here_gather(node, desc, decision, first, end, &here);
    if (rc == LEAT_OK && is_fresh(stream, decision, &here) == fresh)
        rc = (fresh ? fresh_make : log_make)(node, core, stream, decision, &here);
    leat_mem_free(here.segs);
    if (rc == LEAT_OK) return LEAT_OK;
    char most[64] = "";
    if (rc == LEAT_E_TOO_MANY)
        snprintf(most, sizeof most, ": %d on one core; give it more --cores",
                 (int)LEAT_CORE_LOGS_MAX);
    return leat_error_set(error, rc, "stream \"%.64s\", streamlet %u, log %u can't be opened: %s%s",
                          desc->name, decision->log.streamlet, decision->log.log, leat_err_text(rc),
                          most);
}

static leat_err adopt_all(struct leat_node *node, struct leat_core *core, bool fresh,
                          struct leat_error *error)
{
    size_t at = 0;
    for (size_t i = 0; i < node->decision_count; i++) {
        const struct leat_log_decision *decision = &node->decisions[i];
        while (at < node->found_count &&
               leat_log_ref_order(node->dispositions[at].log, decision->log) < 0)
            at++;
        size_t first = at;
        while (at < node->found_count &&
               leat_log_ref_order(node->dispositions[at].log, decision->log) == 0)
            at++;
        struct leat_stream *stream = leat_stream_find(core, decision->log.stream);
        if (stream == NULL) continue; /* deleted between decision and here */
        if (leat_core_of_log(node, decision->log, stream->desc->settings.logs) != core->index)
            continue;
        leat_err rc = adopt_log(node, core, stream, decision, first, at, fresh, error);
        if (rc != LEAT_OK) return rc;
    }
    return LEAT_OK;
}

leat_err leat_adopt_on_core(struct leat_node *node, struct leat_core *core,
                            struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    leat_err rc = adopt_all(node, core, false, error);
    if (rc == LEAT_OK) rc = adopt_all(node, core, true, error);
    leat_node_log_sum_tell(&core->damaged_sum, core->damaged_sum.since_us + LEAT_NODE_LOG_SUM_US);
    if (rc == LEAT_OK) leat_walk_make_missing(core);
    return rc;
}
