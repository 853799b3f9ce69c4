/* SPDX-License-Identifier: Apache-2.0 */
/* LOG_RECOVER: an operator gives up lost records of a log, at its end or before its first segment.
 *
 * Why offsets jump: consumers may have read records that are gone now. If new records got the offsets of lost
 * records, two records would have one offset. So the next offset lies beyond all offsets that were ever given out.
 * The coordinators compute this offset at the commit of the loss (apply_assign.c), because only the coordinators
 * remember every offset gap of a log under all its owners. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/begun.h"
#include "broker/data/call_find.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/route.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "broker/ownership/calls.h"
#include "broker/ownership/handover.h"

struct recover_call {
    struct leat_call call;
    struct leat_call_kept kept;
    struct leat_core *home;
    struct leat_log_ref ref;
    struct leat_coordinate request;
    struct leat_tail_record tail; /* the log's end that is left */
    struct leat_partition *partition;
    bool asks;      /* the request asks what would be kept; nothing is given up */
    bool only_seen; /* nothing is given up: the operator has seen that a start passed over bytes */
    uint64_t next_offset;
    leat_err rc;
    struct leat_error error;
};

static void recover_end(struct recover_call *recover);

static void recover_deliver_back(void *actor, struct leat_mail *mail)
{
    struct recover_call *recover = LEAT_CONTAINER(mail, struct recover_call, call.mail);
    (void)actor;
    if (recover->rc != LEAT_OK) {
        leat_call_refuse(&recover->call, recover->rc, recover->error.text);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(recover->call.core, &writer);
    leat_msg_recovered_write(&writer, &(struct leat_msg_recovered){recover->next_offset});
    leat_call_answer(&recover->call, &writer);
}

static void recover_end(struct recover_call *recover)
{
    leat_core_mail(recover->home, recover->call.core->index, &recover->call.mail,
                   recover_deliver_back);
}

static bool stream_is_gone(const struct recover_call *recover)
{
    const struct leat_stream *stream = leat_stream_find(recover->home, recover->ref.stream);
    return stream == NULL || stream->deleted;
}

static void refuse_gone(struct recover_call *recover)
{
    recover->rc =
        leat_error_set(&recover->error, LEAT_E_UNKNOWN_STREAM, "the stream was deleted meanwhile");
}

static void recover_tell(const struct recover_call *recover)
{
    leat_node_log_warn(
        "stream %u, streamlet %u, log %u: loss accepted by an operator; offsets go on "
        "at %llu",
        recover->ref.stream, recover->ref.streamlet, recover->ref.log,
        (unsigned long long)recover->next_offset);
}

/* SUBTLE: an accepted loss and a change of owner both want the log's end, and the log has one place for a waiter, as
 * do its copies.
 *  1. A loss is accepted and committed, and the log stops, to be made anew.
 *  2. This node was declared crashed before: another node owns the streamlet, and the log is given up.
 *  3. If the log was released at once, (1) would never hear that the log has stopped, and the operator would get no
 *     answer; a little later, copies that are being released already would be released again.
 * So (1) gives the log up, at its next step. The loss is accepted all the same: the new owner goes on after the loss.
 */
static void recover_pass_on(struct recover_call *recover, bool copies_idle)
{
    recover->partition->recover = NULL;
    leat_partition_give_up_go_on(recover->partition, copies_idle);
    if (stream_is_gone(recover))
        refuse_gone(recover);
    else
        recover_tell(recover);
    recover_end(recover);
}

/* SUBTLE: the segments of a log that waits from its start on are in partition->segs; the segments of a log whose last
 * segment was found damaged at its first append are only in the log's own table.
 *  1. The loss of such a log was accepted, and the log was made anew without segments: it began, and ended, at the
 *     offset after the gap.
 *  2. The next append's start entry said that no older segment is retained.
 *  3. The next start dropped all segments that were to be kept. */
static leat_err segments_keep(struct leat_partition *partition)
{
    struct leat_log_info info;
    leat_log_info(partition->log, &info);
    if (partition->segs != NULL) return LEAT_OK;
    partition->segs = leat_mem_calloc(LEAT_MEM_BROKER, info.segment_count, sizeof *partition->segs);
    if (partition->segs == NULL) return LEAT_E_NO_MEMORY;
    partition->seg_count = leat_log_closed(partition->log, partition->segs);
    return LEAT_OK;
}

/* Committed, so the next start does it; until then the log is not here. */
static void reopen_failed(struct recover_call *recover)
{
    leat_error_set(&recover->error, recover->rc,
                   "the loss is accepted, but the log can't be made again before a restart: %s",
                   leat_err_text(recover->rc));
    leat_partition_destroy(recover->partition);
    recover_end(recover);
}

/* The old log is off, and no request of its copies is under way: make the log anew, after the gap. */
static void recover_reopen(void *arg)
{
    struct recover_call *recover = arg;
    struct leat_partition *partition = recover->partition;
    struct leat_core *home = recover->home;
    if (partition->give_up != NULL) {
        recover_pass_on(recover, true);
        return;
    }
    partition->recover = NULL;
    /* the core waits for this log; the next start does what is committed */
    if (home->stopping && !LEAT_BUG(STOP_AWAITS_LOSS)) {
        recover->rc = leat_error_set(&recover->error, LEAT_E_STARTING,
                                     "the loss is accepted, and the server is stopping");
        recover_end(recover);
        leat_core_log_stopped(home);
        return;
    }
    if (stream_is_gone(recover)) { /* the log's segments go with the next start */
        refuse_gone(recover);
        leat_partition_destroy(partition);
        recover_end(recover);
        return;
    }
    recover->rc = segments_keep(partition);
    if (recover->rc != LEAT_OK) {
        reopen_failed(recover);
        return;
    }
    leat_groups_destroy(&partition->groups);
    leat_list_remove(&partition->home);
    leat_log_destroy(&partition->log);
    leat_replicate_detach(
        partition); /* the new log is of another epoch, and has copies of its own */
    bool asks = home->node->options.cluster.node_address != NULL && partition->seg_count > 0;
    struct leat_log_tail tail = {
        .next_segment = recover->tail.segment == UINT64_MAX ? 0 : recover->tail.segment + 1,
        .next_offset = recover->next_offset,
        .jumped = true,
        /* Older segments may be on other nodes: the operator gave up only segments that no node has. */
        .backfill_follows = asks && partition->segs[0]->id.v > 0 && !LEAT_BUG(FRONT_ACCEPTED),
    };
    tail.holes = asks && partition->stream->desc->settings.copies > 1 &&
                 leat_takeover_has_holes(partition->segs, partition->seg_count);
    tail.backfill_follows |= tail.holes;
    partition->epoch = recover->request.epoch;
    recover->rc = leat_partition_open(partition, partition->segs, partition->seg_count, &tail);
    if (recover->rc != LEAT_OK) {
        reopen_failed(recover);
        return;
    }
    if (tail.backfill_follows) leat_backfill_soon(partition);
    leat_partition_enter(partition, LEAT_PARTITION_SERVES);
    recover_tell(recover);
    recover_end(recover);
}

static void recover_on_stopped(void *arg, struct leat_log *log)
{
    struct recover_call *recover = arg;
    (void)log;
    if (recover->partition->give_up != NULL) {
        recover_pass_on(recover, false);
    } else if (stream_is_gone(recover)) {
        recover->partition->recover = NULL;
        leat_partition_enter(recover->partition, LEAT_PARTITION_SERVES);
        leat_partition_delete(recover->home, recover->partition);
        refuse_gone(recover);
        recover_end(recover);
    } else if (recover->partition->copies != NULL) {
        leat_primary_log_release(recover->partition->copies, recover_reopen, recover);
    } else {
        recover_reopen(recover);
    }
}

/* SUBTLE: a log whose loss is refused stays. Changes of its record were ignored since the request, so the record is
 * looked at now.
 *  1. A loss is accepted. This node has not heard of the commit yet, so the log stands in again under its old epoch.
 *  2. The operator, who still sees the log wait, asks again. Then the epoch of (1) arrives.
 *  3. The second request is refused, because it names the old epoch. Without the look here nothing would ask for the
 *     new log. */
static void recover_stay(struct leat_core *home, struct leat_partition *partition)
{
    if (partition->give_up != NULL)
        return; /* the log goes all the same; then released() asks for it */
    leat_partition_enter(partition, LEAT_PARTITION_SERVES);
    if (home->stopping && !LEAT_BUG(STOP_AWAITS_LOSS)) {
        leat_core_log_stop(home, partition);
        return;
    }
    const struct leat_stream *stream = leat_stream_find(home, partition->ref.stream);
    if (stream == NULL || stream->deleted) {
        leat_partition_delete(home, partition);
        return;
    }
    if (!leat_core_owns(home, stream->desc, partition->ref.streamlet)) return;
    const struct leat_begun_log *row = leat_begun_find(stream->begun, partition->ref);
    if (row != NULL && !LEAT_BUG(REFUSED_LOSS_FORGETS))
        leat_takeover_look(partition, row, stream->desc->settings.logs);
}

/* SUBTLE: another node may own the log when the answer comes.
 *  1. The coordinators are asked, and commit the loss; their answer is late.
 *  2. This node is declared crashed, hears of that first, and gives the log up.
 *  3. The answer comes. The log may be in release, and must not be stopped. Or the log has gone, and a log of a later
 *     epoch is here, perhaps at the same address in memory: this call must not touch it. */
static void recover_on_committed(struct leat_coordinate *request)
{
    struct recover_call *recover = request->owner;
    struct leat_partition *partition = leat_partition_find(recover->home, recover->ref);
    const bool ours = partition != NULL && partition->recover == recover;
    if (ours) partition->recover = NULL;
    recover->rc = request->rc;
    recover->error = request->error;
    recover->next_offset = request->next_offset;
    if (request->rc == LEAT_OK && stream_is_gone(recover)) refuse_gone(recover);
    if (recover->rc != LEAT_OK) {
        if (ours) recover_stay(recover->home, partition);
        recover_end(recover);
        return;
    }
    if (!ours || partition->give_up != NULL || partition->tail_missing) {
        recover_tell(recover);
        /* The log was made without segments: it is made anew, with segments from other nodes, as by a new owner. */
        if (ours && partition->tail_missing) leat_partition_give_up(partition);
        recover_end(recover);
        return;
    }
    partition->recover = recover;
    leat_partition_enter(partition, LEAT_PARTITION_LOSS_STOPS);
    leat_log_stop(partition->log, recover_on_stopped, recover);
}

/* ---- lost segments before the log's first, or between two: the log's end is whole, and readers are told ---- */

/* For the operator: the records that can be given up, and how many bytes a start passed over. false: neither. */
static bool range_words(struct leat_log *log, char *out, size_t bytes, bool *out_only_seen)
{
    struct leat_log_passed passed;
    leat_log_passed_over(log, &passed);
    struct leat_log_info info;
    struct leat_log_damage damage;
    uint64_t at = 0;
    leat_log_info(log, &info);
    bool lacks = leat_log_trouble(log, out, bytes) != LEAT_OK;
    /* A segment that only this node's disk refuses is not lost. */
    if (info.state == LEAT_LOG_SERVING && !leat_log_damage_find(log, &at, &damage)) {
        lacks = false;
        out[0] = '\0';
    }
    size_t used = strlen(out);
    if (passed.bytes > 0)
        snprintf(out + used, bytes - used,
                 "%sseen: at least %llu bytes that a start has passed over, the last behind offset "
                 "%llu",
                 lacks ? "; " : "", (unsigned long long)passed.bytes,
                 (unsigned long long)passed.next_offset);
    *out_only_seen = !lacks;
    return lacks || passed.bytes > 0;
}

static void recover_on_skipped(void *arg, struct leat_log *log)
{
    struct recover_call *recover = arg;
    struct leat_log_info info;
    char why[256];
    bool only_seen;
    leat_log_info(log, &info);
    recover->partition->skipping_missing = false;
    recover->next_offset = info.first_offset;
    if (range_words(log, why, sizeof why, &only_seen))
        recover->rc = leat_error_set(&recover->error, LEAT_E_AGAIN,
                                     "not all of its loss could be accepted: %.200s", why);
    else if (!recover->only_seen)
        leat_node_log_warn(
            "stream %u, streamlet %u, log %u: loss accepted by an operator: readers pass over "
            "what is missing or damaged; it begins at offset %llu",
            recover->ref.stream, recover->ref.streamlet, recover->ref.log,
            (unsigned long long)recover->next_offset);
    recover_end(recover);
}

static void recover_range(struct recover_call *recover, struct leat_partition *partition)
{
    char why[256];
    if (!range_words(partition->log, why, sizeof why, &recover->only_seen) ||
        partition->skipping_missing) {
        recover->rc = leat_error_set(
            &recover->error, LEAT_E_INVALID, "%s",
            partition->skipping_missing
                ? "its loss is being accepted already"
                : "nothing is missing or known to be damaged: there is nothing to give up");
        recover_end(recover);
        return;
    }
    if (recover->asks) {
        recover->rc = leat_error_set(
            &recover->error, LEAT_E_DAMAGED, "%s%.200s",
            recover->only_seen ? "all of it is kept, and can be read; "
                               : "all else would be kept, and can be read now; given up: ",
            why);
        recover_end(recover);
        return;
    }
    leat_node_log_warn("stream %u, streamlet %u, log %u: an operator %s%s", recover->ref.stream,
                       recover->ref.streamlet, recover->ref.log,
                       recover->only_seen ? "has " : "gives up: ", why);
    if (partition->backfill_node_down && !recover->only_seen) {
        recover->rc = leat_error_set(&recover->error, LEAT_E_AGAIN,
                                     "a node is down that may have what is missing: start it, or "
                                     "say that it will not come back (leat node drain)");
        recover_end(recover);
        return;
    }
    recover->partition = partition;
    partition->skipping_missing = true;
    leat_log_skip_missing(partition->log, recover_on_skipped, recover);
}

static void recover_absent(struct recover_call *recover, const struct leat_partition *partition)
{
    const struct leat_stream *stream = leat_stream_find(recover->home, recover->ref.stream);
    const struct leat_begun_log *row =
        stream != NULL ? leat_begun_find(stream->begun, recover->ref) : NULL;
    leat_err absent =
        partition == NULL ? leat_partition_absent(recover->home, recover->ref) : LEAT_E_STARTING;
    if (partition == NULL && row != NULL && leat_record_waits(&row->record, row->epoch))
        recover->rc =
            leat_error_set(&recover->error, LEAT_E_AGAIN,
                           "not all nodes have said what they have of it: start those "
                           "that are down, or say that they will not come back (leat node "
                           "drain), and wait some seconds; leat cluster status tells more");
    else
        recover->rc =
            leat_error_set(&recover->error, absent, "%s", leat_partition_absent_words(absent));
    recover_end(recover);
}

/* ---- what would be kept ---- */

/* Of a log that had no owner: the rest of the log lies on the nodes that had it. Which replica counts is committed
 * with the loss, so no replica is read before the commit. */
static void left_elsewhere(const struct recover_call *recover,
                           const struct leat_partition *partition, char *out, size_t bytes)
{
    const struct leat_stream *stream = leat_stream_find(recover->home, recover->ref.stream);
    const struct leat_begun_log *row =
        stream != NULL ? leat_begun_find(stream->begun, recover->ref) : NULL;
    if (row == NULL || !row->record.opened || row->record.heard == 0)
        snprintf(out, bytes, "what would be kept is not known yet");
    else if (partition->highest_segment == UINT64_MAX || partition->highest_offset == 0)
        snprintf(out, bytes, "no node has anything of it: nothing would be kept");
    else
        snprintf(
            out, bytes,
            "what nodes have of it up to offset %llu (in segment %llu) would be kept, and can be "
            "read then",
            (unsigned long long)partition->highest_offset - 1,
            (unsigned long long)partition->highest_segment);
}

/* The known holes and damaged segments: most segments are not read before a reader, or the scrub, needs them. */
static void holes_tell(const struct leat_log *log, char *out, size_t bytes)
{
    char more[40] = "";
    struct leat_log_damage damage, first = {0};
    uint64_t at = 0, places = 0, offsets = 0;
    while (leat_log_damage_find(log, &at, &damage)) {
        if (damage.first_offset == damage.end_offset) continue;
        if (places++ == 0) first = damage;
        offsets += damage.end_offset - damage.first_offset;
    }
    if (places > 1)
        snprintf(more, sizeof more, ", and %llu place%s more", (unsigned long long)places - 1,
                 places == 2 ? "" : "s");
    if (places > 0)
        snprintf(out, bytes, ", but for %llu of them (%llu to %llu%s)", (unsigned long long)offsets,
                 (unsigned long long)first.first_offset, (unsigned long long)first.end_offset - 1,
                 more);
}

static void left_tell(struct recover_call *recover, const struct leat_partition *partition,
                      const struct leat_log_info *info)
{
    char kept[240], holes[128] = "";
    holes_tell(partition->log, holes, sizeof holes);
    if (partition->tail_missing)
        left_elsewhere(recover, partition, kept, sizeof kept);
    else if (info->acked_offset > info->first_offset)
        snprintf(kept, sizeof kept, "offsets %llu to %llu would be kept, and can be read now%s",
                 (unsigned long long)info->first_offset, (unsigned long long)info->acked_offset - 1,
                 holes);
    else
        snprintf(kept, sizeof kept, "nothing of it is here: nothing would be kept");
    recover->rc =
        leat_error_set(&recover->error, LEAT_E_LOG_INCOMPLETE, "%s; missing: %s", kept, info->why);
    recover_end(recover);
}

/* SUBTLE: the next start drops all segments after the last segment that is named here. If that was always the last
 * segment that the start found:
 *  1. A log came from another node, so that the start found nothing of it, or the log has grown since.
 *  2. The log's last segment is damaged, and its loss is accepted: the last segment that was found is named.
 *  3. All segments after the named segment go. */
static struct leat_tail_record left_of(const struct leat_partition *partition,
                                       const struct leat_log_info *info)
{
    struct leat_tail_record tail = {.segment = partition->highest_segment,
                                    .prefix_id = partition->highest_prefix_id};
    /* without a segment UINT64_MAX + 1, that is 0 */
    bool beyond = info->end_segment > tail.segment + 1;
    if (info->segment_count > 0 && beyond)
        tail = (struct leat_tail_record){.segment = info->end_segment - 1};
    return tail;
}

static void recover_ask(struct recover_call *recover, struct leat_partition *partition)
{
    struct leat_core *home = recover->home;
    struct leat_log_info info;
    leat_log_info(partition->log, &info);
    uint64_t known = info.next_offset;
    if (info.acked_offset > known) known = info.acked_offset;
    if (partition->highest_offset > known) known = partition->highest_offset;
    recover->tail = left_of(partition, &info);
    partition->recover = recover;
    leat_partition_enter(partition, LEAT_PARTITION_ASKS_LOSS);
    leat_partition_wake(partition);
    struct leat_coordinate *request = &recover->request;
    request->kind = LEAT_COORDINATE_ACCEPT_LOSS;
    request->logs = &recover->ref;
    request->log_count = 1;
    request->tails = &recover->tail;
    request->next_offset = known;
    request->epoch = partition->epoch;
    request->stands_in = partition->tail_missing;
    request->incarnation = home->node->incarnation;
    request->on_done = recover_on_committed;
    request->owner = recover;
    leat_coordinate(home->env->post, request);
}

/* The log's last segment was damaged, and was reported so when the loss was accepted: later starts must not find the
 * damage again. */
static void recover_on_last_given_up(void *arg, struct leat_log *log)
{
    struct recover_call *recover = arg;
    (void)log;
    recover->partition->skipping_missing = false;
    if (leat_partition_goes(recover->partition)) /* to another node, or with the server */
        recover_absent(recover, recover->partition);
    else
        recover_ask(recover, recover->partition);
}

static void recover_deliver_home(void *actor, struct leat_mail *mail)
{
    struct recover_call *recover = LEAT_CONTAINER(mail, struct recover_call, call.mail);
    struct leat_core *home = actor;
    struct leat_partition *partition = leat_partition_find(home, recover->ref);
    if (partition == NULL || leat_partition_goes(partition)) {
        recover_absent(recover, partition);
        return;
    }
    struct leat_log_info info;
    leat_log_info(partition->log, &info);
    if (info.state == LEAT_LOG_SERVING) {
        recover_range(recover, partition);
        return;
    }
    if (info.state == LEAT_LOG_STOPPED) {
        recover->rc = leat_error_set(&recover->error, LEAT_E_INVALID,
                                     "the log was stopped by its disk: restart the server");
        recover_end(recover);
        return;
    }
    if (recover->asks) {
        left_tell(recover, partition, &info);
        return;
    }
    recover->partition = partition;
    if (info.state == LEAT_LOG_DAMAGED && !partition->skipping_missing) {
        partition->skipping_missing = true;
        leat_log_skip_missing(partition->log, recover_on_last_given_up, recover);
        return;
    }
    recover_ask(recover, partition);
}

static void recover_begin(struct recover_call *recover)
{
    struct leat_core *core = recover->call.core;
    struct leat_msg_recover body;
    if (leat_msg_recover_decode(recover->kept.control, recover->kept.control_bytes, &body) !=
        LEAT_OK) {
        leat_call_refuse(&recover->call, LEAT_E_INVALID,
                         "the control body of log recover is not [stream, streamlet, log, accept "
                         "loss]");
        return;
    }
    recover->asks = !body.accept_loss;
    uint32_t home;
    if (!leat_call_log_find(&recover->call, &recover->kept, body.stream, body.streamlet, body.log,
                            &recover->ref, &home))
        return;
    recover->home = &core->node->cores[home];
    leat_core_mail(core, home, &recover->call.mail, recover_deliver_home);
}

static void recover_on_again(struct leat_stream_seek *seek)
{
    recover_begin(seek->owner);
}

void leat_call_recover(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct recover_call *recover = leat_call_create(peer, frame, sizeof *recover);
    if (recover != NULL && leat_call_keep(&recover->call, &recover->kept, frame, recover_on_again))
        recover_begin(recover);
}
