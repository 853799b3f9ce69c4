/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that come: each segment goes to the log's core, where the first segment makes the log. See takeover.h. */
#include <stdio.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/node_log.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/ownership/takeover.h"

static void home_deliver(void *actor, struct leat_mail *mail);
static void back_deliver(void *actor, struct leat_mail *mail);

void takeover_to_home(struct leat_takeover *takeover)
{
    LEAT_ASSERT_OWNER(takeover_core(takeover));
    takeover->busy = true;
    leat_core_mail(takeover_core(takeover), takeover->home, &takeover->mail, home_deliver);
}

static leat_err may_make(struct leat_core *core, struct leat_takeover *takeover,
                         struct leat_stream **out_stream)
{
    struct leat_stream *stream = leat_stream_find(core, takeover->ref.stream);
    if (core->stopping) return LEAT_E_STARTING;
    if (stream == NULL || !leat_core_owns(core, stream->desc, takeover->ref.streamlet))
        return LEAT_E_NOT_OWNER;
    const struct leat_begun_log *row = leat_begun_find(stream->begun, takeover->ref);
    if (row == NULL || row->epoch.v != takeover->epoch.v) return LEAT_E_NOT_OWNER;
    *out_stream = stream;
    return LEAT_OK;
}

/* No node has the segment with the log's end: the log is made without a segment, as a log that waits. So the log is
 * reported, and an operator can give up the missing records. The search for the segment goes on all the same. known:
 * the best tail record that there is. */
static leat_err stand_in(struct leat_core *core, struct leat_stream *stream,
                         struct leat_log_ref ref, struct leat_epoch epoch,
                         const struct leat_tail_record *known, const char *why)
{
    bool none = known->segment == UINT64_MAX;
    struct leat_log_tail tail = {.next_segment = none ? 0 : known->segment + 1,
                                 .next_offset = known->next_offset,
                                 .previous = known->prefix_id,
                                 .stands_in = true};
    struct leat_partition *partition;
    leat_err rc = leat_partition_create(core, stream, ref, epoch, NULL, 0, &tail, &partition);
    if (rc != LEAT_OK) return rc;
    partition->tail_missing = true;
    partition->highest_segment = known->segment;
    partition->highest_offset = known->next_offset;
    partition->highest_prefix_id = known->prefix_id;
    leat_log_set_state(partition->log, LEAT_LOG_WAITING, why);
    if (LEAT_BUG(WAIT_UNWRITTEN)) return LEAT_OK;
    const char *name = stream->desc->name;
    leat_node_log_error(
        "stream \"%s\", streamlet %u, log %u waits: %s; if it can't come back: leat log "
        "recover %s --streamlet %u --log %u --accept-loss",
        name, ref.streamlet, ref.log, why, name, ref.streamlet, ref.log);
    return LEAT_OK;
}

static leat_err make_waiting(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_stream *stream;
    leat_err rc = may_make(core, takeover, &stream);
    if (rc != LEAT_OK) return rc;
    if (stream->deleted) return LEAT_E_NOT_OWNER; /* a deleted log does not wait for an operator */
    if (leat_partition_find(core, takeover->ref) != NULL) return LEAT_E_AGAIN;
    char why[LEAT_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why, "its last segment %llu is on no node that is up",
             (unsigned long long)takeover->tail.segment);
    return stand_in(core, stream, takeover->ref, takeover->epoch, &takeover->tail, why);
}

void takeover_stand_in(struct leat_core *core, const struct leat_begun_log *row)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_stream *stream = leat_stream_find(core, row->ref.stream);
    const struct leat_log_record *record = &row->record;
    if (leat_record_state(record, row->epoch) != LEAT_RECORD_WAITS_HEARD || stream == NULL ||
        stream->deleted || core->stopping)
        return;
    char why[LEAT_ERROR_TEXT_BYTES];
    snprintf(why, sizeof why,
             "its end, of epoch %u and version %u, is on no node that is up (leat cluster status)",
             record->stamp_epoch.v, record->stamp_version);
    if (stand_in(core, stream, row->ref, row->epoch, &record->tail, why) != LEAT_OK)
        stream->logs_missing = core->data->logs_missing = true; /* the next tick tries again */
}

static leat_err make_log(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_stream *stream;
    leat_err may = may_make(core, takeover, &stream);
    if (may != LEAT_OK) return may;
    struct leat_partition *there = leat_partition_find(core, takeover->ref);
    if (there != NULL && there->epoch.v == takeover->epoch.v && !there->tail_missing)
        return LEAT_E_NOT_OWNER; /* the log is made: it was asked for twice */
    if (there != NULL && there->tail_missing && !leat_partition_goes(there))
        leat_partition_give_up(there);
    if (there != NULL) return LEAT_E_AGAIN;
    struct leat_log_tail tail = {
        .next_segment = takeover->tail.segment == UINT64_MAX ? 0 : takeover->tail.segment + 1,
        .next_offset = takeover->tail.next_offset,
        .jumped = takeover->tail.jumped,
        .backfill_follows = takeover->seg != NULL && takeover->seg->id.v > 0,
    };
    if (takeover->seg != NULL && !tail.jumped) tail.previous = takeover->seg->prefix_id;
    struct leat_partition *partition;
    return leat_partition_create(core, stream, takeover->ref, takeover->epoch, &takeover->seg,
                                 takeover->seg != NULL ? 1 : 0, &tail, &partition);
}

static leat_err add_older(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_partition *partition = leat_partition_find(core, takeover->ref);
    if (core->stopping) return LEAT_E_STARTING;
    if (partition == NULL || partition->give_up != NULL || partition->epoch.v != takeover->epoch.v)
        return LEAT_E_NOT_OWNER;
    leat_err rc = leat_log_segment_add(partition->log, takeover->seg);
    if (rc != LEAT_OK) return rc;
    if (partition->copies != NULL) rc = leat_primary_log_add(partition->copies, takeover->seg);
    /* The log has the segment all the same; until the next start its lost copies are not replaced. */
    if (rc != LEAT_OK) leat_node_log_warn("no memory to look after copies of a segment");
    uint64_t first = leat_log_first_retained(partition->log);
    if (first > takeover->first_retained) takeover->first_retained = first;
    return LEAT_OK;
}

/* The search in one hole has ended. Reads of missing segments wait until the pass has searched all holes. */
static void hole_searched(struct leat_partition *partition, struct leat_takeover *takeover)
{
    const struct leat_log_ref *ref = &takeover->ref;
    if (takeover_is_complete(takeover))
        leat_node_log_info(
            "log %u/%u/%u: the missing segments before segment %llu have come from other nodes, "
            "%llu ms after the search began",
            ref->stream, ref->streamlet, ref->log, (unsigned long long)takeover->hole_end,
            (unsigned long long)(leat_core_now(partition->core) - takeover->since_us) / 1000);
    partition->hole_below = takeover->hole_end;
    if (leat_takeover_goes_on(partition)) {
        leat_backfill_soon(partition);
    } else {
        takeover->whole = leat_takeover_pass_over(partition, true);
        takeover->unsure = partition->unsure;
    }
}

static leat_err tell_ended(struct leat_core *core, struct leat_takeover *takeover)
{
    struct leat_partition *partition = leat_partition_find(core, takeover->ref);
    if (core->stopping) return LEAT_E_STARTING;
    if (partition == NULL || partition->give_up != NULL || partition->epoch.v != takeover->epoch.v)
        return LEAT_E_NOT_OWNER;
    if (takeover->state == TAKEOVER_NONE_LEFT && !leat_log_front_known(partition->log))
        return LEAT_E_AGAIN;
    partition->backfill_pass_node_down |= takeover->state == TAKEOVER_NODE_DOWN;
    if (takeover->hole_end != 0) {
        hole_searched(partition, takeover);
        return LEAT_OK;
    }
    if (takeover->state == TAKEOVER_NONE_LEFT || takeover->state == TAKEOVER_MISSING)
        leat_log_front_give_up(partition->log, takeover->state == TAKEOVER_NONE_LEFT);
    takeover->whole = leat_takeover_pass_over(partition, takeover_is_complete(takeover));
    takeover->unsure = partition->unsure;
    return LEAT_OK;
}

static void home_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_takeover *takeover = LEAT_CONTAINER(mail, struct leat_takeover, mail);
    switch (takeover->state) {
    case TAKEOVER_TAIL:
        takeover->rc = make_log(core, takeover);
        break;
    case TAKEOVER_ABSENT:
        takeover->rc = make_waiting(core, takeover);
        break;
    case TAKEOVER_OLDER:
        takeover->rc = add_older(core, takeover);
        break;
    case TAKEOVER_COMPLETE:
    case TAKEOVER_NONE_LEFT:
    case TAKEOVER_MISSING:
    case TAKEOVER_NODE_DOWN:
        takeover->rc = tell_ended(core, takeover);
        break;
    }
    leat_core_mail(core, 0, mail, back_deliver);
}

/* The segment before the segment that the log got now is wanted next. */
static void older_want(struct leat_takeover *takeover)
{
    uint64_t first = takeover->first_retained;
    takeover->failures = 0;
    /* The segment that has come into a hole names no predecessor: an operator gave the older segments up. */
    bool jumped = takeover->hole_end != 0 && takeover->start.previous.bytes == 0;
    if (takeover->segment <= first || jumped) {
        takeover_enter(takeover, TAKEOVER_COMPLETE);
        return;
    }
    takeover_enter(takeover, TAKEOVER_OLDER);
    takeover->segment--;
    takeover->prefix_id = takeover->start.previous;
    takeover->left.count = 0;
    takeover->next_offset = takeover->start.base_offset;
}

bool takeover_seg_back(struct leat_takeover *takeover)
{
    LEAT_ASSERT_OWNER(takeover_core(takeover));
    struct leat_backup *backup = takeover_core(takeover)->data->replicate->backup;
    if (takeover->seg == NULL) return true;
    if (leat_backup_take_own(backup, takeover->seg, takeover->node->incarnation, false))
        return false;
    takeover->seg = NULL;
    return true;
}

static void seg_return(struct leat_takeover *takeover)
{
    bool given_back = takeover_seg_back(takeover);
    LEAT_ASSERT(given_back); /* a few bytes: see give_up_deliver() */
}

static void back_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_takeover *takeover = LEAT_CONTAINER(mail, struct leat_takeover, mail);
    bool gone = takeover->rc == LEAT_E_NOT_OWNER || takeover->rc == LEAT_E_STARTING;
    bool absent = takeover->state == TAKEOVER_ABSENT;
    if (absent) takeover_enter(takeover, TAKEOVER_TAIL);
    takeover->busy = false;
    takeover_kick(core);
    if (absent && !gone) {
        takeover_pause(takeover, 10 * LEAT_TAKEOVER_TICK_US);
        return;
    }
    if (takeover->rc == LEAT_E_EXISTS) takeover->rc = LEAT_OK, seg_return(takeover);
    if (gone) {
        seg_return(takeover);
        takeover_free(takeover);
    } else if (takeover->rc != LEAT_OK) {
        takeover_pause(
            takeover,
            LEAT_TAKEOVER_TICK_US); /* no memory, or the log of an earlier epoch is here */
    } else if (takeover_has_ended(takeover)) {
        if (takeover->whole)
            leat_backup_drop_log(core->data->replicate->backup, takeover->ref, takeover->epoch,
                                 &takeover->unsure);
        takeover_free(takeover);
    } else {
        if (takeover->state == TAKEOVER_TAIL)
            leat_node_log_info(
                "log %u/%u/%u is served here under epoch %u, %llu ms after this node heard of it",
                takeover->ref.stream, takeover->ref.streamlet, takeover->ref.log, takeover->epoch.v,
                (unsigned long long)(leat_core_now(core) - takeover->since_us) / 1000);
        bool none = takeover->seg == NULL && takeover->state == TAKEOVER_TAIL;
        takeover->seg = NULL;
        if (none)
            takeover_free(takeover);
        else
            older_want(takeover);
    }
}
