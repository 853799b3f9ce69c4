/* SPDX-License-Identifier: Apache-2.0 */
/* A stream as a whole, asked of any node: each log's state from its owner, and where the copies of
 * its segments lie. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/report.h"
#include "broker/data/call_find.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "broker/net/gather.h"
#include "replication/primary/primary.h"
#include "wire/row.h"

/* ---- STREAM_DESCRIBE [name] ---- */

enum {
    WHY_BYTES = 256,
    FRONTS_US_MAX = 1000 * 1000, /* then no further log is waited for */
};

struct describe_log {
    struct leat_msg_log_info row;
    char why[WHY_BYTES];
};
struct describe_call {
    struct leat_call call;
    struct leat_call_kept kept;    /* kept, as other nodes are asked, too */
    struct leat_stream_desc *desc; /* a reference */
    uint32_t count, at;            /* at: of the logs, on the core whose turn it is */
    struct describe_log *logs;
    struct leat_locate_op front; /* where the log at `at` begins */
    struct leat_core *front_core;
    uint64_t fronts_until_us;  /* 0: none was waited for yet */
    bool lack_space;           /* logs of this node, when they asked last */
    struct leat_gather others; /* the other owners */
};

static void describe_end(struct describe_call *describe)
{
    if (describe->desc != NULL) leat_stream_desc_unref(describe->desc);
    leat_mem_free(describe->logs);
    leat_mem_free(describe->others.parts);
}

static bool is_own(const struct describe_call *describe, uint32_t log)
{
    return leat_core_owns(describe->call.core, describe->desc, log / describe->desc->settings.logs);
}

/* This node, and the owners that it knows. */
static uint32_t owners_known(const struct describe_call *describe)
{
    uint32_t known = 1;
    for (uint32_t i = 0; i < describe->others.count; i++)
        known += leat_member_find(describe->call.core, describe->others.parts[i].node) != NULL;
    return known;
}

static void describe_write_owners(struct leat_msg_writer *writer, struct describe_call *describe)
{
    const struct leat_core *core = describe->call.core;
    const struct leat_node *node = core->node;
    struct leat_msg_owner owner = {node->incarnation, {node->name, (uint32_t)strlen(node->name)}};
    leat_msg_owner_write(writer, &owner);
    for (uint32_t i = 0; i < describe->others.count; i++) {
        const struct leat_member *member = leat_member_find(core, describe->others.parts[i].node);
        if (member == NULL) continue;
        owner.incarnation = member->info.incarnation;
        owner.name =
            (struct leat_msg_string){member->info.name, (uint32_t)strlen(member->info.name)};
        leat_msg_owner_write(writer, &owner);
    }
}

static void describe_answer(struct describe_call *describe)
{
    struct leat_core *core = describe->call.core;
    const struct leat_stream_desc *desc = describe->desc;
    struct leat_msg_writer writer;
    struct leat_msg_described body = {.name = {desc->name, (uint32_t)strlen(desc->name)},
                                      .id = desc->id,
                                      .settings = desc->settings};
    for (uint32_t i = 0; i < describe->count; i++)
        if (!describe->call.by_link || is_own(describe, i)) body.log_count++;
    if (!describe->call.by_link) body.owner_count = owners_known(describe);
    leat_call_writer(core, &writer);
    leat_msg_described_write(&writer, &body);
    for (uint32_t i = 0; i < describe->count; i++) {
        struct describe_log *log = &describe->logs[i];
        if (describe->call.by_link && !is_own(describe, i)) continue;
        log->row.text = (struct leat_msg_string){log->why, (uint32_t)strlen(log->why)};
        leat_msg_log_info_write(&writer, &log->row);
    }
    leat_msg_row_write_behind(&writer, leat_msg_described_row(), &body,
                              offsetof(struct leat_msg_described, log_count));
    if (!describe->call.by_link) describe_write_owners(&writer, describe);
    describe_end(describe);
    leat_call_answer(&describe->call, &writer);
}

/* ---- logs of other nodes ---- */

static void owner_give_up(struct describe_call *describe, uint64_t owner, const char *why)
{
    uint32_t per_streamlet = describe->desc->settings.logs;
    for (uint32_t i = 0; i < describe->count; i++) {
        if (describe->desc->streamlets[i / per_streamlet].owner != owner) continue;
        describe->logs[i].row.code = LEAT_E_AGAIN;
        snprintf(describe->logs[i].why, WHY_BYTES, "its state is not known: %.120s", why);
    }
}

/* [name, id, settings, [log...]] of the owner's own logs. false: it can't be read. */
static bool owner_read(struct describe_call *describe, uint64_t owner,
                       const struct leat_frame *answer)
{
    uint32_t per_streamlet = describe->desc->settings.logs;
    struct leat_msg_reader reader;
    struct leat_msg_described body;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    (void)leat_msg_described_read(&reader, &body);
    if (reader.failed || body.id != describe->desc->id) return false;
    for (uint32_t i = 0; i < body.log_count; i++) {
        struct leat_msg_log_info row;
        leat_msg_log_info_read(&reader, &row);
        uint64_t at = (uint64_t)row.at.streamlet * per_streamlet + row.at.log;
        if (reader.failed || row.at.log >= per_streamlet || at >= describe->count) return false;
        struct describe_log *log = &describe->logs[at];
        if (describe->desc->streamlets[row.at.streamlet].owner != owner) continue;
        size_t bytes = row.text.bytes < WHY_BYTES ? row.text.bytes : WHY_BYTES - 1;
        if (bytes > 0) memcpy(log->why, row.text.text, bytes);
        log->why[bytes] = '\0';
        log->row = row;
    }
    return true;
}

static void others_on_answer(struct leat_gather *gather, uint32_t at, leat_err rc,
                             const struct leat_frame *answer, const char *why)
{
    struct describe_call *describe = gather->owner;
    uint64_t owner = gather->parts[at].node;
    if (rc != LEAT_OK)
        owner_give_up(describe, owner, why);
    else if (!owner_read(describe, owner, answer))
        owner_give_up(describe, owner, "its answer can't be read");
}

static void others_on_done(struct leat_gather *gather)
{
    describe_answer(gather->owner);
}

/* One question to each other node that owns a streamlet of the stream. */
static bool others_init(struct describe_call *describe)
{
    struct leat_gather *others = &describe->others;
    uint64_t owners[LEAT_NODES_MAX];
    uint32_t count = leat_gather_owners(describe->call.core, describe->desc, owners);
    *others = (struct leat_gather){.core = describe->call.core,
                                   .kind = LEAT_KIND_STREAM_DESCRIBE,
                                   .control = describe->kept.control,
                                   .control_bytes = describe->kept.control_bytes,
                                   .on_answer = others_on_answer,
                                   .on_done = others_on_done,
                                   .owner = describe};
    others->parts = leat_call_memory(&describe->call, count + 1, sizeof *others->parts);
    if (others->parts == NULL) return false;
    others->count = count;
    for (uint32_t i = 0; i < count; i++)
        others->parts[i].node = owners[i];
    return true;
}

/* ---- logs of this node ---- */

static void fill_copies(struct leat_msg_log_info *row, const struct leat_partition *partition)
{
    if (partition->copies == NULL) {
        row->copies = row->copies_min = row->copies_now = 1;
        return;
    }
    struct leat_primary_log_status status;
    leat_primary_log_status(partition->copies, &status);
    row->copies = status.copies;
    row->copies_min = status.min_copies;
    row->copies_now = status.copies_now;
    row->suspended = status.suspended;
    row->below_min = status.below_min;
    row->segments_lacking = status.segments_lacking;
}

/* For a log that lacks space. Any other log has room in its last segment, or found space when it last asked. */
static void say_space(struct describe_log *log, const struct leat_node *node)
{
    bool alone = node->options.cluster.node_address == NULL;
    log->row.code = LEAT_E_DISK_FULL;
    snprintf(log->why, WHY_BYTES,
             "the disk of its node is full: appends that need another segment are refused. Make "
             "space there%s",
             alone ? ": trim or delete streams, or give them a shorter retention"
                   : ", or take it to another node by `leat streamlet move`");
}

static void describe_here(struct describe_log *log, struct leat_partition *partition)
{
    struct leat_log_info info;
    struct leat_msg_log_info *row = &log->row;
    leat_log_info(partition->log, &info);
    row->state = (uint32_t)info.state;
    row->first_offset = info.first_offset;
    row->acked_offset = info.acked_offset;
    row->bytes = info.bytes;
    row->first_segment = info.first_segment;
    row->segments = info.segment_count;
    row->groups = info.group_count;
    row->first_group = info.first_group;
    row->end_segment = info.end_segment;
    row->offsets_lost = leat_log_offsets_lost(partition->log);
    row->producers = info.producers;
    row->memory_bytes = info.memory_bytes;
    struct leat_log_passed passed;
    leat_log_passed_over(partition->log, &passed);
    row->passed_bytes = passed.bytes;
    row->passed_segments = passed.segments;
    row->passed_segment = passed.segment;
    row->passed_offset = passed.next_offset;
    row->code = leat_log_trouble(partition->log, log->why, WHY_BYTES);
    if (row->code == LEAT_OK && !leat_log_front_known(partition->log)) {
        row->code = LEAT_E_STARTING;
        snprintf(log->why, WHY_BYTES,
                 "where it begins is not known yet: its last segment is still being read");
    }
    struct leat_error error;
    if (row->code == LEAT_OK && leat_log_lacks_space(partition->log))
        say_space(log, partition->core->node);
    /* Another node may be the owner by now: appends and reads are refused as well. */
    if (row->code == LEAT_OK && leat_node_stands(partition->core->node, &error) != LEAT_OK) {
        row->code = LEAT_E_STARTING;
        snprintf(log->why, WHY_BYTES, "its state is not known: %.200s", error.text);
    }
    fill_copies(row, partition);
}

static void describe_deliver(void *actor, struct leat_mail *mail);

static void describe_on_front(struct leat_locate_op *op)
{
    struct describe_call *describe = op->owner;
    struct leat_core *core = describe->front_core;
    /* The log's beginning was not found out in the time that reads have: for the other logs it would not be either. */
    if (op->rc == LEAT_E_STARTING) describe->fronts_until_us = leat_core_now(core);
    /* By mail even to oneself: the log is in the middle of something. */
    leat_core_mail(core, core->index, &describe->call.mail, describe_deliver);
}

/* After a start a log's last segment says where the log begins, and that has to be read first: until then
 * it would be shown to begin with its oldest segment, of which records may have been given up. As for reads
 * it is waited for, and no longer than these wait. true: describe_deliver() comes again. */
static bool describe_await_front(struct describe_call *describe, struct leat_core *core,
                                 struct leat_partition *partition)
{
    struct leat_locate_op *front = &describe->front;
    if (leat_partition_goes(partition) || leat_log_front_known(partition->log)) return false;
    uint64_t now_us = leat_core_now(core);
    if (describe->fronts_until_us == 0) describe->fronts_until_us = now_us + FRONTS_US_MAX;
    if (now_us >= describe->fronts_until_us) return false;
    memset(front, 0, sizeof *front);
    front->what = LEAT_LOCATE_EARLIEST;
    front->on_done = describe_on_front;
    front->owner = describe;
    describe->front_core = core;
    if (leat_log_locate(partition->log, front) != LEAT_E_AGAIN) return false;
    if (leat_log_reads_wait(partition->log)) leat_partition_watch(partition); /* not for ever */
    return true;
}

static void describe_deliver_back(void *actor, struct leat_mail *mail);

/* On the store's thread. */
static void describe_deliver_space(void *actor, struct leat_mail *mail)
{
    struct describe_call *describe = LEAT_CONTAINER(mail, struct describe_call, call.mail);
    const struct leat_core *core = describe->call.core;
    const struct leat_env *env = core->node->options.store_env;
    (void)actor;
    describe->lack_space = false;
    bool lacks = leat_report_disk_lacks(core->node) > 0;
    for (uint32_t i = 0; !lacks && i < describe->count; i++) {
        if (describe->logs[i].row.code != LEAT_E_DISK_FULL) continue;
        describe->logs[i].row.code = LEAT_OK;
        describe->logs[i].why[0] = '\0';
    }
    mail->deliver = describe_deliver_back;
    env->post->send(env->post->ctx, core->index, mail);
}

static void describe_deliver_back(void *actor, struct leat_mail *mail)
{
    struct describe_call *describe = LEAT_CONTAINER(mail, struct describe_call, call.mail);
    (void)actor;
    if (describe->lack_space) {
        leat_core_mail(describe->call.core, LEAT_ACTOR_STORE, mail, describe_deliver_space);
        return;
    }
    if (describe->call.by_link)
        describe_answer(describe);
    else
        leat_gather_start(&describe->others);
}

static void describe_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct describe_call *describe = LEAT_CONTAINER(mail, struct describe_call, call.mail);
    uint32_t per_streamlet = describe->desc->settings.logs;
    for (; describe->at < describe->count; describe->at++) {
        uint32_t i = describe->at;
        struct leat_log_ref ref = {describe->desc->id, i / per_streamlet, i % per_streamlet};
        if (leat_core_of_log(core->node, ref, per_streamlet) != core->index) continue;
        struct leat_partition *partition = leat_partition_find(core, ref);
        struct describe_log *log = &describe->logs[i];
        if (partition != NULL && partition->log != NULL) {
            if (describe_await_front(describe, core, partition)) return;
            describe_here(log, partition);
            describe->lack_space |= log->row.code == LEAT_E_DISK_FULL;
        } else if (leat_core_owns(core, describe->desc, ref.streamlet)) {
            log->row.code = leat_partition_absent(core, ref);
            snprintf(log->why, WHY_BYTES, "%s", leat_partition_absent_words(log->row.code));
        }
    }
    describe->at = 0;
    leat_core_mail_next(core, &describe->call.mail, describe_deliver, describe->call.core->index,
                        describe_deliver_back);
}

static void describe_begin(struct describe_call *describe)
{
    struct leat_core *core = describe->call.core;
    const struct leat_call_kept *kept = &describe->kept;
    struct leat_msg_name body;
    if (leat_msg_describe_decode(kept->control, kept->control_bytes, &body) != LEAT_OK) {
        leat_call_refuse(&describe->call, LEAT_E_INVALID,
                         "the control body of stream describe is not [name]");
        return;
    }
    const struct leat_stream *stream =
        leat_call_stream_find(&describe->call, &describe->kept, body.name);
    if (stream == NULL) return;
    describe->desc = stream->desc;
    leat_stream_desc_ref(describe->desc);
    const struct leat_stream_desc *desc = describe->desc;
    uint32_t per_streamlet = desc->settings.logs;
    describe->count = desc->streamlet_count * per_streamlet;
    /* The larger array comes last: it may take all the room that is left. */
    if (others_init(describe))
        describe->logs = leat_call_memory(&describe->call, describe->count, sizeof *describe->logs);
    if (describe->logs == NULL) {
        describe_end(describe);
        leat_call_refuse(&describe->call, LEAT_E_AGAIN, NULL);
        return;
    }
    for (uint32_t i = 0; i < describe->count; i++) {
        struct leat_log_ref ref = {desc->id, i / per_streamlet, i % per_streamlet};
        uint64_t owner = desc->streamlets[ref.streamlet].owner;
        describe->logs[i].row = (struct leat_msg_log_info){
            .at = {ref.streamlet, ref.log, owner, desc->streamlets[ref.streamlet].epoch.v,
                   leat_lane_of_log(ref, per_streamlet, leat_member_cores(core, owner))},
            .code = LEAT_E_UNKNOWN_LOG,
        };
    }
    leat_core_mail(core, 0, &describe->call.mail, describe_deliver);
}

static void describe_on_again(struct leat_stream_seek *seek)
{
    describe_begin(seek->owner);
}

void leat_call_stream_describe(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct describe_call *describe = leat_call_create(peer, frame, sizeof *describe);
    if (describe != NULL &&
        leat_call_keep(&describe->call, &describe->kept, frame, describe_on_again))
        describe_begin(describe);
}

/* ---- SEGMENTS [name, streamlet, log, from segment] ---- */

struct segments_call {
    struct leat_call call;
    struct leat_call_kept kept;
    struct leat_log_ref log;
    uint64_t from;
    leat_err rc;
    uint32_t count;
    bool more;
    struct leat_rep_segment_status *rows;        /* [LEAT_SEGMENT_ROWS_MAX] */
    char (*names)[LEAT_NODE_NAME_BYTES_MAX + 1]; /* by the numbers in the rows */
};

static void segments_answer(void *actor, struct leat_mail *mail)
{
    struct segments_call *segments = LEAT_CONTAINER(mail, struct segments_call, call.mail);
    struct leat_msg_writer writer;
    (void)actor;
    if (segments->rc != LEAT_OK) {
        leat_mem_free(segments->rows);
        leat_mem_free(segments->names);
        leat_call_refuse(&segments->call, segments->rc, leat_partition_absent_words(segments->rc));
        return;
    }
    leat_call_writer(segments->call.core, &writer);
    struct leat_msg_segments body = {segments->count, segments->more};
    leat_msg_segments_write(&writer, &body);
    for (uint32_t i = 0; i < segments->count; i++) {
        const struct leat_rep_segment_status *row = &segments->rows[i];
        struct leat_msg_segment segment = {row->segment.v, row->closed, row->misplaced, row->wanted,
                                           row->count};
        leat_msg_segment_write(&writer, &segment);
        for (uint32_t c = 0; c < row->count; c++) {
            const struct leat_rep_copy_status *copy = &row->copies[c];
            const char *node = segments->names[copy->node];
            struct leat_msg_segment_copy out = {{node, (uint32_t)strlen(node)},
                                                copy->complete,
                                                copy->closed,
                                                copy->hibernated,
                                                copy->bytes};
            leat_msg_segment_copy_write(&writer, &out);
        }
    }
    leat_msg_row_write_behind(&writer, leat_msg_segments_row(), &body,
                              offsetof(struct leat_msg_segments, count));
    leat_mem_free(segments->rows);
    leat_mem_free(segments->names);
    leat_call_answer(&segments->call, &writer);
}

static void segments_take(void *arg, const struct leat_rep_segment_status *status)
{
    struct segments_call *segments = arg;
    if (status->segment.v < segments->from) return;
    if (segments->count == LEAT_SEGMENT_ROWS_MAX)
        segments->more = true;
    else
        segments->rows[segments->count++] = *status;
}

/* On the log's core. */
static void segments_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct segments_call *segments = LEAT_CONTAINER(mail, struct segments_call, call.mail);
    const struct leat_partition *partition = leat_partition_find(core, segments->log);
    for (uint32_t i = 0; i < core->members.count; i++)
        snprintf(segments->names[i], sizeof segments->names[i], "%s",
                 core->members.rows[i]->info.name);
    if (partition == NULL || leat_partition_goes(partition))
        segments->rc = leat_partition_absent(core, segments->log);
    else if (partition->copies != NULL)
        leat_primary_log_each(partition->copies, segments_take, segments);
    leat_core_mail(core, segments->call.core->index, mail, segments_answer);
}

static void segments_begin(struct segments_call *segments)
{
    const struct leat_call_kept *kept = &segments->kept;
    struct leat_msg_segments_ask body;
    uint32_t home = 0;
    if (leat_msg_segments_ask_decode(kept->control, kept->control_bytes, &body) != LEAT_OK) {
        leat_call_refuse(&segments->call, LEAT_E_INVALID,
                         "segments are asked for as [name, streamlet, log, from segment]");
        return;
    }
    if (!leat_call_log_find(&segments->call, &segments->kept, body.name, body.streamlet, body.log,
                            &segments->log, &home))
        return;
    segments->from = body.from;
    segments->rows =
        leat_call_memory(&segments->call, LEAT_SEGMENT_ROWS_MAX, sizeof *segments->rows);
    segments->names = leat_call_memory(&segments->call, LEAT_NODES_MAX, sizeof *segments->names);
    if (segments->rows == NULL || segments->names == NULL) {
        leat_mem_free(segments->rows);
        leat_mem_free(segments->names);
        leat_call_refuse(&segments->call, LEAT_E_AGAIN, NULL);
        return;
    }
    leat_core_mail(segments->call.core, home, &segments->call.mail, segments_deliver);
}

static void segments_on_again(struct leat_stream_seek *seek)
{
    segments_begin(seek->owner);
}

void leat_call_segments(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct segments_call *segments = leat_call_create(peer, frame, sizeof *segments);
    if (segments != NULL &&
        leat_call_keep(&segments->call, &segments->kept, frame, segments_on_again))
        segments_begin(segments);
}
