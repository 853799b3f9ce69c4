/* SPDX-License-Identifier: Apache-2.0 */
/* Streamlets that are handed over on purpose: see move.h. */
#include "broker/ownership/move.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/admin/streams.h"
#include "broker/data/call_find.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "replication/primary/primary.h"
#include "wire/message_cluster.h"

enum {
    AGAIN_US = 100 * 1000,
    TARGET_AGAIN_US = 20 * 1000,
    TARGET_ANSWER_US_MAX = 1000 * 1000,
    DRAIN_PAUSE_TICKS = 5,
};

static void parts_visit(struct leat_mover *mover, enum leat_move_step step);
static void move_send(struct leat_mover *mover);
static void target_ask(struct leat_mover *mover);

/* ---- ends ---- */

static void mover_end(struct leat_mover *mover, leat_err rc, const char *text)
{
    struct leat_core *core = mover->core;
    mover->rc = rc;
    if (rc != LEAT_OK) leat_error_set(&mover->error, rc, "%s", text);
    leat_timer_stop(&core->timers, &mover->timer);
    leat_list_remove(&mover->link);
    core->movers->count--;
    leat_mem_free(mover->parts);
    leat_mem_free(mover->refs);
    leat_mem_free(mover->tails);
    mover->on_done(mover);
}

/* ---- the coordinator's part ---- */

static void move_on_timer(struct leat_timer *timer)
{
    move_send(timer->owner);
}

static void move_on_done(struct leat_coordinate *request)
{
    struct leat_mover *mover = request->owner;
    struct leat_core *core = mover->core;
    if (request->rc == LEAT_OK) {
        leat_node_log_info("stream %u, streamlet %u goes to node %s, epoch %u", mover->stream,
                           mover->streamlet, mover->target, request->epoch.v);
        mover_end(mover, LEAT_OK, "");
        return;
    }
    /* Whether the move took effect is unknown: the node asks again. If the move took effect, the streamlet belongs to
     * another node, and the answer says so. */
    if (leat_err_class(request->rc) == LEAT_CLASS_RETRY && request->epoch.v == 0 &&
        !core->stopping) {
        mover->timer = (struct leat_timer){.on_expired = move_on_timer, .owner = mover};
        leat_timer_start(&core->timers, &mover->timer, AGAIN_US);
        return;
    }
    mover_end(mover, request->rc, request->error.text);
}

static void move_send(struct leat_mover *mover)
{
    struct leat_coordinate *request = &mover->request;
    memset(request, 0, sizeof *request);
    for (uint32_t i = 0; i < mover->count; i++) {
        mover->refs[i] = mover->parts[i].ref;
        mover->tails[i] = mover->parts[i].tail;
    }
    request->kind = LEAT_COORDINATE_MOVE;
    request->logs = mover->refs;
    request->tails = mover->tails;
    request->log_count = mover->count;
    request->epoch = mover->epoch;
    request->incarnation = mover->core->node->incarnation;
    request->target = mover->target;
    request->on_done = move_on_done;
    request->owner = mover;
    leat_coordinate(mover->core->env->post, request);
}

/* ---- the logs' part ---- */

static void part_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_move_part *part = LEAT_CONTAINER(mail, struct leat_move_part, mail);
    struct leat_mover *mover = part->mover;
    (void)actor;
    if (part->rc != LEAT_OK && mover->rc == LEAT_OK) {
        mover->rc = part->rc;
        mover->error = part->error;
    }
    if (--mover->left > 0) return;
    if (mover->rc != LEAT_OK && mover->step == LEAT_MOVE_STOPS)
        parts_visit(mover, LEAT_MOVE_GOES_ON);
    else if (mover->rc != LEAT_OK)
        mover_end(mover, mover->rc, mover->error.text);
    else if (mover->step == LEAT_MOVE_CHECKS)
        target_ask(mover);
    else
        move_send(mover);
}

static void part_back(struct leat_core *home, struct leat_move_part *part)
{
    leat_core_mail(home, 0, &part->mail, part_deliver_back);
}

static void part_on_stopped(void *arg, struct leat_log *log)
{
    struct leat_move_part *part = arg;
    struct leat_partition *partition = part->partition;
    struct leat_core *core = partition->core;
    struct leat_log_tail tail;
    struct leat_log_info info;
    partition->moving = NULL;
    leat_partition_enter(partition, LEAT_PARTITION_DRAINED);
    leat_log_end(log, &tail);
    leat_log_info(log, &info);
    if (core->stopping && info.state != LEAT_LOG_SERVING) /* its end is not safe to commit */
        part->rc = leat_error_set(&part->error, LEAT_E_STARTING, "the node stops");
    else if (info.state != LEAT_LOG_SERVING && partition->copies != NULL &&
             leat_primary_log_is_writing(partition->copies))
        /* SUBTLE: a failed flush has stopped the log, and the log did not wait for its copies. (1) A write to a copy
         * is slow; (2) the log moves; (3) the log's new owner drops this copy, and the backup gives its place to
         * another segment, as an owner that has given a log away writes no more; (4) the slow write arrives in the
         * other segment. */
        part->rc = leat_error_set(&part->error, LEAT_E_AGAIN,
                                  "log %u of the streamlet can't move while bytes of it are on "
                                  "their way to a copy: try again",
                                  part->ref.log);
    /* The first start entry, which has the jump, is not safe: its flush failed. */
    else if (tail.jumped)
        part->rc =
            leat_error_set(&part->error, LEAT_E_LOG_INCOMPLETE,
                           "log %u of the streamlet can't move: %.150s", part->ref.log, info.why);
    else
        part->tail = (struct leat_tail_record){
            .segment = tail.next_segment == 0 ? UINT64_MAX : tail.next_segment - 1,
            .prefix_id = tail.previous,
            .next_offset = tail.next_offset,
        };
    part_back(core, part);
    /* The node has begun to stop, and waits for this log. */
    if (core->stopping) leat_core_log_stopped(core);
}

void leat_move_part_gone(struct leat_move_part *part)
{
    struct leat_partition *partition = part->partition;
    partition->moving = NULL;
    part->rc = leat_error_set(&part->error, LEAT_E_UNKNOWN_STREAM,
                              "the stream was deleted, or has another owner, meanwhile");
    part_back(partition->core, part);
}

static leat_err part_check(struct leat_core *home, struct leat_move_part *part,
                           struct leat_partition **out_partition)
{
    struct leat_partition *partition = leat_partition_find(home, part->ref);
    if (partition == NULL || leat_partition_goes(partition) || home->stopping)
        return leat_error_set(&part->error, LEAT_E_AGAIN,
                              "log %u of the streamlet is being made or goes already: try again",
                              part->ref.log);
    struct leat_log_info info;
    struct leat_log_tail tail;
    leat_log_info(partition->log, &info);
    leat_log_end(partition->log, &tail);
    if (info.state != LEAT_LOG_SERVING)
        return leat_error_set(&part->error, LEAT_E_LOG_INCOMPLETE,
                              "log %u of the streamlet can't move: %.150s", part->ref.log,
                              info.why);
    if (tail.jumped)
        return leat_error_set(&part->error, LEAT_E_AGAIN,
                              "the end of log %u was given up by an operator, and nothing was "
                              "appended since: append something first",
                              part->ref.log);
    *out_partition = partition;
    return LEAT_OK;
}

/* SUBTLE: the coordinator was not asked, so this node is the owner in the same epoch.
 *  1. Of the two logs of a streamlet the first is stopped, and the disk fails the second log's last flush.
 *  2. The known end of the second log must not be committed, and the move is refused.
 *  3. Without a message here the first log would take no appends until a restart. */
static void part_goes_on(struct leat_core *home, const struct leat_move_part *part)
{
    struct leat_partition *partition = leat_partition_find(home, part->ref);
    if (partition == NULL || partition->state != LEAT_PARTITION_DRAINED ||
        partition->give_up != NULL || home->stopping)
        return;
    leat_partition_enter(partition, LEAT_PARTITION_SERVES);
    if (partition->copies != NULL) leat_primary_log_silence(partition->copies, false);
    leat_log_go_on(partition->log);
}

static void part_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_core *home = actor;
    struct leat_move_part *part = LEAT_CONTAINER(mail, struct leat_move_part, mail);
    struct leat_partition *partition = NULL;
    if (part->mover->step == LEAT_MOVE_GOES_ON) {
        part_goes_on(home, part);
        part_back(home, part);
        return;
    }
    part->rc = part_check(home, part, &partition);
    if (part->rc != LEAT_OK || part->mover->step == LEAT_MOVE_CHECKS) {
        part_back(home, part);
        return;
    }
    part->partition = partition;
    partition->moving = part;
    leat_partition_enter(partition, LEAT_PARTITION_DRAINS);
    leat_partition_wake(partition);
    /* The next owner decides which copies are too many, and may do so before this node knows. */
    if (partition->copies != NULL) leat_primary_log_silence(partition->copies, true);
    if (LEAT_BUG(MOVE_UNDRAINED))
        part_on_stopped(part, partition->log);
    else
        leat_log_stop(partition->log, part_on_stopped, part);
}

static void parts_visit(struct leat_mover *mover, enum leat_move_step step)
{
    const struct leat_stream *stream = leat_stream_find(mover->core, mover->stream);
    bool owned = stream != NULL && leat_core_owns(mover->core, stream->desc, mover->streamlet);
    if (!owned && step != LEAT_MOVE_GOES_ON) {
        mover_end(mover, LEAT_E_NOT_OWNER, "the streamlet is not this node's any more");
        return;
    }
    mover->step = step;
    mover->left = mover->count;
    if (owned) mover->epoch = stream->desc->streamlets[mover->streamlet].epoch;
    for (uint32_t i = 0; i < mover->count; i++) {
        struct leat_move_part *part = &mover->parts[i];
        uint32_t home = leat_core_of_log(mover->core->node, part->ref, mover->count);
        leat_core_mail(mover->core, home, &part->mail, part_deliver_home);
    }
}

/* ---- the target's part ---- */

/* On the heap: its answer may come when the mover has gone. */
struct leat_move_ask {
    struct leat_ask ask;
    struct leat_mover *mover; /* NULL: gone */
};

/* How many nodes the target can write copies to, itself included. */
static uint32_t nodes_met(const struct leat_frame *answer)
{
    struct leat_msg_reader reader;
    struct leat_msg_node_report report;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    leat_msg_node_report_read(&reader, &report);
    uint32_t met = 1;
    for (uint32_t i = 0; i < report.peer_count && !reader.failed && !report.peers.failed; i++) {
        struct leat_msg_report_peer peer;
        leat_msg_report_peer_read(&report.peers, &peer);
        met += peer.up && peer.transport.bytes > 0;
    }
    return met;
}

static uint32_t nodes_needed(const struct leat_mover *mover)
{
    const struct leat_stream *stream = leat_stream_find(mover->core, mover->stream);
    return stream != NULL ? stream->desc->settings.min_copies : 0;
}

static void target_on_timer(struct leat_timer *timer)
{
    target_ask(timer->owner);
}

/* The target has met enough nodes, or there is no use in waiting: the coordinator refuses a target that is not up. */
static void target_waited(struct leat_mover *mover, bool met)
{
    struct leat_core *core = mover->core;
    const struct leat_member *target = leat_member_named(core, mover->target);
    if (met || target == NULL || target->info.state != LEAT_NODE_UP || core->stopping ||
        leat_core_now(core) >= mover->ask_until_us) {
        parts_visit(mover, LEAT_MOVE_STOPS);
        return;
    }
    mover->timer = (struct leat_timer){.on_expired = target_on_timer, .owner = mover};
    leat_timer_start(&core->timers, &mover->timer, TARGET_AGAIN_US);
}

static void target_on_answer(struct leat_ask *ask, leat_err rc, const struct leat_frame *answer,
                             const char *why)
{
    struct leat_move_ask *asked = ask->owner;
    struct leat_mover *mover = asked->mover;
    (void)why;
    leat_mem_free(asked);
    if (mover == NULL) return;
    mover->ask = NULL;
    target_waited(mover, rc == LEAT_OK && nodes_met(answer) >= nodes_needed(mover));
}

/* SUBTLE: a node that has just joined has no memory on other nodes yet, and can't replicate a segment.
 *  1. A node joins, and streamlets are spread at once. This node stops their logs, and the new node opens them.
 *  2. Their first segments need copies. Other nodes are still making memory for the new node, 64 MiB each, for most
 *     of a second.
 *  3. No node takes appends of these logs meanwhile. */
static void target_ask(struct leat_mover *mover)
{
    static const uint8_t control[] = {0x91, 0xc3}; /* [with peers] */
    struct leat_core *core = mover->core;
    const struct leat_member *target = leat_member_named(core, mover->target);
    struct leat_error error;
    if (mover->ask_until_us == 0)
        mover->ask_until_us = leat_core_now(core) + LEAT_MOVE_TARGET_US_MAX;
    if (nodes_needed(mover) < 2 || target == NULL) {
        target_waited(mover, true);
        return;
    }
    struct leat_move_ask *asked = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *asked);
    if (asked != NULL) {
        asked->mover = mover;
        asked->ask = (struct leat_ask){
            .on_done = target_on_answer, .owner = asked, .timeout_us = TARGET_ANSWER_US_MAX};
        if (leat_ask_start(core, &asked->ask, target->info.incarnation, LEAT_KIND_NODE_REPORT,
                           control, sizeof control, &error) == LEAT_OK) {
            mover->ask = asked;
            return;
        }
        leat_mem_free(asked);
    }
    target_waited(mover, false);
}

static void mover_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_mover *mover = LEAT_CONTAINER(mail, struct leat_mover, mail);
    struct leat_core *core = actor;
    const struct leat_stream *stream = leat_stream_find(core, mover->stream);
    if (core->movers->count > LEAT_MOVERS_MAX) {
        mover_end(mover, LEAT_E_AGAIN, "too many streamlets are on their way: try again");
        return;
    }
    if (stream == NULL || mover->streamlet >= stream->desc->streamlet_count) {
        mover_end(mover, LEAT_E_UNKNOWN_LOG, "there is no such streamlet");
        return;
    }
    LEAT_LIST_EACH(&core->movers->all, it)
    {
        const struct leat_mover *other = LEAT_CONTAINER(it, const struct leat_mover, link);
        if (other == mover || other->stream != mover->stream ||
            other->streamlet != mover->streamlet)
            continue;
        mover_end(mover, LEAT_E_AGAIN, "the streamlet is on its way already");
        return;
    }
    mover->count = stream->desc->settings.logs;
    mover->parts = leat_mem_calloc(LEAT_MEM_BROKER, mover->count, sizeof *mover->parts);
    mover->refs = leat_mem_calloc(LEAT_MEM_BROKER, mover->count, sizeof *mover->refs);
    mover->tails = leat_mem_calloc(LEAT_MEM_BROKER, mover->count, sizeof *mover->tails);
    if (mover->parts == NULL || mover->refs == NULL || mover->tails == NULL) {
        mover_end(mover, LEAT_E_AGAIN, "no memory");
        return;
    }
    for (uint32_t i = 0; i < mover->count; i++)
        mover->parts[i] =
            (struct leat_move_part){.mover = mover, .ref = {mover->stream, mover->streamlet, i}};
    parts_visit(mover, LEAT_MOVE_CHECKS);
}

void leat_mover_start(struct leat_core *core, struct leat_mover *mover)
{
    LEAT_ASSERT_OWNER(core);
    mover->core = core;
    mover->rc = LEAT_OK;
    mover->parts = NULL;
    mover->refs = NULL;
    mover->tails = NULL;
    mover->ask = NULL;
    mover->ask_until_us = 0;
    mover->timer = (struct leat_timer){.owner = mover};
    leat_list_push_back(&core->movers->all, &mover->link);
    core->movers->count++;
    leat_core_mail(core, 0, &mover->mail, mover_deliver);
}

/* ---- STREAMLET_MOVE [stream name, streamlet, node name] ---- */

struct move_call {
    struct leat_call call;
    struct leat_call_kept kept;
    struct leat_mover mover;
};

static void move_call_deliver_back(void *actor, struct leat_mail *mail)
{
    struct move_call *move = LEAT_CONTAINER(mail, struct move_call, call.mail);
    (void)actor;
    if (move->mover.rc != LEAT_OK) {
        leat_call_refuse(&move->call, move->mover.rc, move->mover.error.text);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(move->call.core, &writer);
    leat_msg_write_array(&writer, 0);
    leat_call_answer(&move->call, &writer);
}

static void move_call_on_done(struct leat_mover *mover)
{
    struct move_call *move = mover->owner;
    leat_core_mail(mover->core, move->call.core->index, &move->call.mail, move_call_deliver_back);
}

static void move_call_deliver(void *actor, struct leat_mail *mail)
{
    struct move_call *move = LEAT_CONTAINER(mail, struct move_call, call.mail);
    leat_mover_start(actor, &move->mover);
}

static leat_err target_allowed(const struct leat_core *core, const struct leat_stream_desc *desc,
                               const char *name, struct leat_error *error)
{
    const struct leat_member *target = leat_member_named(core, name);
    if (target == NULL || target->info.state != LEAT_NODE_UP || target->info.draining)
        return leat_error_set(error, LEAT_E_NOT_FOUND,
                              "node \"%.64s\" can't take streamlets: it is %s", name,
                              target == NULL          ? "not known"
                              : target->info.draining ? "being drained"
                                                      : "not up");
    return leat_stream_move_allowed(core, desc, &target->info, error);
}

static void move_begin(struct move_call *move)
{
    struct leat_core *core = move->call.core;
    struct leat_msg_streamlet_move body;
    leat_err rc =
        leat_msg_streamlet_move_decode(move->kept.control, move->kept.control_bytes, &body);
    if (rc != LEAT_OK || body.node.bytes == 0 || body.node.bytes > LEAT_NODE_NAME_BYTES_MAX) {
        leat_call_refuse(&move->call, LEAT_E_INVALID,
                         "the control body of streamlet move is not [stream name, streamlet, node "
                         "name]");
        return;
    }
    const struct leat_stream *stream = leat_call_stream_find(&move->call, &move->kept, body.stream);
    struct leat_error error;
    if (stream == NULL) return;
    if (body.streamlet >= stream->desc->streamlet_count) {
        leat_error_set(&error, LEAT_E_UNKNOWN_LOG, "stream \"%.*s\" has no streamlet %u",
                       (int)body.stream.bytes, body.stream.text, body.streamlet);
        leat_call_refuse(&move->call, error.code, error.text);
        return;
    }
    if (!leat_core_owns(core, stream->desc, body.streamlet)) {
        leat_call_forward(&move->call, stream->desc->streamlets[body.streamlet].owner,
                          move->kept.control, move->kept.control_bytes);
        return;
    }
    struct leat_mover *mover = &move->mover;
    memcpy(mover->target, body.node.text, body.node.bytes);
    mover->stream = stream->desc->id;
    mover->streamlet = body.streamlet;
    mover->on_done = move_call_on_done;
    mover->owner = move;
    if (strcmp(mover->target, core->node->name) == 0) { /* the streamlet is there already */
        struct leat_msg_writer writer;
        leat_call_writer(core, &writer);
        leat_msg_write_array(&writer, 0);
        leat_call_answer(&move->call, &writer);
        return;
    }
    /* Before anything is stopped; the coordinator looks again. */
    if (target_allowed(core, stream->desc, mover->target, &error) != LEAT_OK) {
        leat_call_refuse(&move->call, error.code, error.text);
        return;
    }
    leat_core_mail(core, 0, &move->call.mail, move_call_deliver);
}

static void move_on_again(struct leat_stream_seek *seek)
{
    move_begin(seek->owner);
}

void leat_call_streamlet_move(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct move_call *move = leat_call_create(peer, frame, sizeof *move);
    if (move != NULL && leat_call_keep(&move->call, &move->kept, frame, move_on_again))
        move_begin(move);
}

/* ---- a drained node ---- */

/* A node that takes streamlets, and how many it owns. */
struct drain_target {
    const struct leat_member *member;
    uint64_t incarnation, owned;
};

static int by_incarnation(const void *a, const void *b)
{
    const struct drain_target *left = a, *right = b;
    return left->incarnation < right->incarnation ? -1 : left->incarnation > right->incarnation;
}

/* All nodes that take streamlets, in the order of bsearch(). This node is drained, so it is not one of them. */
static uint32_t targets_list(const struct leat_core *core, struct drain_target *targets)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < core->members.count; i++) {
        const struct leat_member *member = core->members.rows[i];
        if (member->info.state != LEAT_NODE_UP || member->info.draining) continue;
        targets[count++] = (struct drain_target){member, member->info.incarnation, 0};
    }
    qsort(targets, count, sizeof *targets, by_incarnation);
    return count;
}

/* Counts what the targets own, and finds the first streamlet that this node owns.
 * SUBTLE: member->info.streamlets will not do. It is the number at the last change of that node. (1) This node is
 * drained. (2) No other node changes while streamlets go. (3) All of them would go to the same node. */
static bool owned_count(const struct leat_core *core, struct drain_target *targets, uint32_t count,
                        struct leat_log_ref *out_own)
{
    bool found = false;
    for (uint32_t i = 0; i <= core->data->stream_mask; i++) {
        for (struct leat_stream *it = core->data->streams_by_id[i]; it != NULL;
             it = it->by_id_next) {
            for (uint32_t s = 0; it->published && s < it->desc->streamlet_count; s++) {
                struct drain_target key = {.incarnation = it->desc->streamlets[s].owner};
                struct drain_target *target =
                    bsearch(&key, targets, count, sizeof *targets, by_incarnation);
                if (target != NULL) target->owned++;
                if (found || !leat_core_owns(core, it->desc, s)) continue;
                found = true;
                *out_own = (struct leat_log_ref){.stream = it->desc->id, .streamlet = s};
            }
        }
    }
    return found;
}

static void drain_next(struct leat_core *core);

static void drain_on_done(struct leat_mover *mover)
{
    struct leat_core *core = mover->core;
    leat_err rc = mover->rc;
    if (rc != LEAT_OK && rc != LEAT_E_AGAIN)
        leat_node_log_warn("drained, but stream %u, streamlet %u stays for now: %s", mover->stream,
                           mover->streamlet, mover->error.text);
    core->movers->drain = NULL;
    leat_mem_free(mover);
    if (rc == LEAT_OK)
        drain_next(core);
    else
        core->movers->drain_ticks = DRAIN_PAUSE_TICKS;
}

static void drain_next(struct leat_core *core)
{
    const struct leat_member *self = leat_member_find(core, core->node->incarnation);
    if (core->stopping || self == NULL || !self->info.draining) return;
    struct drain_target targets[LEAT_NODES_MAX];
    uint32_t count = targets_list(core, targets);
    struct leat_log_ref own = {0};
    if (count == 0 || !owned_count(core, targets, count, &own)) return;
    const struct drain_target *least = &targets[0];
    for (uint32_t i = 1; i < count; i++)
        if (targets[i].owned < least->owned) least = &targets[i];
    struct leat_mover *mover = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *mover);
    if (mover == NULL) return;
    mover->stream = own.stream;
    mover->streamlet = own.streamlet;
    snprintf(mover->target, sizeof mover->target, "%s", least->member->info.name);
    mover->on_done = drain_on_done;
    core->movers->drain = mover;
    leat_mover_start(core, mover);
}

void leat_movers_tick(struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    if (core->index != 0 || core->members.links == NULL || core->movers->drain != NULL) return;
    if (core->movers->drain_ticks > 0)
        core->movers->drain_ticks--;
    else
        drain_next(core);
}

void leat_movers_init(struct leat_core *core)
{
    leat_list_init(&core->movers->all);
}

void leat_movers_fini(struct leat_core *core)
{
    /* The core runs no more; a mover that a call waits for is freed with its call. */
    LEAT_LIST_EACH(&core->movers->all, it)
    {
        struct leat_mover *mover = LEAT_CONTAINER(it, struct leat_mover, link);
        leat_list_remove(&mover->link);
        if (mover->ask != NULL) mover->ask->mover = NULL;
        leat_mem_free(mover->parts);
        leat_mem_free(mover->refs);
        leat_mem_free(mover->tails);
    }
    leat_mem_free(core->movers->drain);
    core->movers->drain = NULL;
}
