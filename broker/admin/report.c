/* SPDX-License-Identifier: Apache-2.0 */
/* A node's report about itself: see report.h. */
#include "broker/admin/report.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "broker/admin/calls.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"

static void add_peers(struct leat_report *report, const struct leat_core *core)
{
    struct leat_rep_peer_status rows[LEAT_NODES_MAX];
    size_t count = leat_primary_peers(core->data->replicate->primary, rows, LEAT_NODES_MAX);
    if (count > LEAT_NODES_MAX) count = LEAT_NODES_MAX;
    for (size_t i = 0; i < count; i++) {
        const struct leat_rep_peer_status *row = &rows[i];
        if (row->node >= LEAT_NODES_MAX) continue;
        report->peers[row->node].known = true;
        report->peers[row->node].up = report->peers[row->node].up || row->up;
        report->peers[row->node].says_gone |= row->says_gone;
        /* "" as long as a core has not met the node: logs of this core would wait for that. */
        if (report->peers[row->node].transport == NULL || row->transport[0] == '\0')
            report->peers[row->node].transport = row->transport;
        report->peers[row->node].replicas += row->replicas;
        if (row->load_bytes > report->peers[row->node].load_bytes)
            report->peers[row->node].load_bytes = row->load_bytes;
    }
}

static void add_troubled(struct leat_report *report, const struct leat_partition *partition,
                         const char *why)
{
    struct leat_log_info info;
    if (report->sums.troubled_count == LEAT_REPORT_LOGS_MAX) return;
    uint32_t at = report->sums.troubled_count++;
    report->troubled[at].log = partition->ref;
    snprintf(report->troubled[at].stream, sizeof report->troubled[at].stream, "%s",
             partition->stream->desc->name);
    /* An operator who misses groups does not know the stream leat.sets, so the line says "home". A home that takes
     * appends serves its groups. */
    leat_log_info(partition->log, &info);
    bool home = partition->groups != NULL && info.state != LEAT_LOG_SERVING;
    snprintf(report->troubled[at].why, sizeof report->troubled[at].why, "%s%.180s",
             home ? "a home of consumer groups, which are neither served nor listed: " : "", why);
}

/* Logs that take no appends, or of which records can't be read. report: NULL: they are counted only. */
static uint64_t troubled_find(const struct leat_core *core, struct leat_report *report)
{
    char why[LEAT_REPORT_WHY_BYTES];
    uint64_t found = 0;
    for (uint32_t i = 0; i <= core->data->partition_mask; i++) {
        for (struct leat_partition *partition = core->data->partitions[i]; partition;
             partition = partition->hash_next) {
            if (partition->log == NULL || leat_partition_goes(partition)) continue;
            leat_err rc = leat_log_trouble(partition->log, why, sizeof why);
            if (rc == LEAT_OK || (rc == LEAT_E_LOG_INCOMPLETE && LEAT_BUG(WAITS_UNTOLD))) continue;
            found++;
            if (report != NULL) add_troubled(report, partition, why);
        }
    }
    return found;
}

static void passed_find(const struct leat_core *core, struct leat_report *report)
{
    struct leat_log_passed passed;
    for (uint32_t i = 0; i <= core->data->partition_mask; i++) {
        for (struct leat_partition *partition = core->data->partitions[i]; partition;
             partition = partition->hash_next) {
            if (partition->log == NULL || leat_partition_goes(partition)) continue;
            leat_log_passed_over(partition->log, &passed);
            if (passed.bytes == 0) continue;
            report->sums.logs_passed++;
            if (report->sums.passed_count == LEAT_REPORT_LOGS_MAX) continue;
            uint32_t at = report->sums.passed_count++;
            report->passed[at].log = partition->ref;
            report->passed[at].passed = passed;
            snprintf(report->passed[at].stream, sizeof report->passed[at].stream, "%s",
                     partition->stream->desc->name);
        }
    }
}

/* Logs of this node that are not made, and are refused by NO_MEMORY: no log exists that could report this. */
static void awaits_memory_find(const struct leat_core *core, struct leat_report *report)
{
    if (!core->data->logs_missing || !leat_node_heap_refuses(core->node, leat_core_now(core)))
        return;
    for (uint32_t i = 0; i <= core->data->stream_mask; i++) {
        for (const struct leat_stream *it = core->data->streams_by_id[i]; it; it = it->by_id_next) {
            if (!it->logs_missing) continue;
            const char *name = it->desc->name;
            if (report->waits[0] != '\0')
                report->others_wait |= strcmp(report->waits, name) != 0;
            else
                snprintf(report->waits, sizeof report->waits, "%s", name);
        }
    }
}

uint64_t leat_report_logs_troubled(const struct leat_core *core)
{
    LEAT_ASSERT_OWNER(core);
    return troubled_find(core, NULL);
}

static void report_deliver_space(void *actor, struct leat_mail *mail)
{
    struct leat_report *report = LEAT_CONTAINER(mail, struct leat_report, mail);
    (void)actor;
    report->on_done(report);
}

/* Asking a file system for its space may block. Space is asked for, as no log may have asked for a segment since
 * space came back. */
uint64_t leat_report_disk_lacks(const struct leat_node *node)
{
    const struct leat_disk *disk = node->options.store_env->disk;
    struct leat_store_usage usage;
    uint64_t space = 0;
    leat_store_usage(node->store, &usage);
    bool lacks = usage.disk_lacks_bytes > 0 && !LEAT_BUG(FULL_UNTOLD) &&
                 (disk->space(disk->ctx, &space) != LEAT_OK || space < 2 * usage.disk_lacks_bytes);
    return lacks ? usage.disk_lacks_bytes : 0;
}

static void report_deliver_store(void *actor, struct leat_mail *mail)
{
    struct leat_report *report = LEAT_CONTAINER(mail, struct leat_report, mail);
    const struct leat_env *env = report->core->node->options.store_env;
    uint64_t lacks = leat_report_disk_lacks(report->core->node);
    (void)actor;
    if (lacks > 0 && report->trouble[0] == '\0')
        snprintf(report->trouble, sizeof report->trouble,
                 "its disk is full: there is no space for another segment (%llu KiB), so appends "
                 "that need one "
                 "are refused here, and no further copies are taken. Make space (there, or by leat "
                 "stream trim or delete), or move its streamlets to other nodes",
                 (unsigned long long)lacks / 1024);
    mail->deliver = report_deliver_space;
    env->post->send(env->post->ctx, report->core->index, mail);
}

/* SUBTLE: where a node refuses this incarnation as dead, all nodes will refuse it, and no node takes the refusal
 * back.
 *  1. A node fences an incarnation once the node's tables have it as crashed, or know a later incarnation of the same
 *     name.
 *  2. This node's own tables reach the same entry, and the node stops; a start gives it another incarnation.
 *  3. Where this node's tables do not reach the entry, nothing else ends this: the node is up, and its appends that
 *     need copies wait. */
static void says_gone_tell(struct leat_report *report)
{
    const struct leat_members *members = &report->core->members;
    const char *first = NULL;
    unsigned count = 0;
    char more[32] = "";
    for (uint32_t i = 0; i < members->count; i++) {
        if (!report->peers[i].says_gone) continue;
        if (count++ == 0) first = members->rows[i]->info.name;
    }
    if (count == 0) return;
    if (count > 1) snprintf(more, sizeof more, " and %u more", count - 1);
    snprintf(report->trouble, sizeof report->trouble,
             "node %.48s%s refuse%s copies from it: the cluster has declared this run of it "
             "(incarnation %llu) dead, which it has not heard. Appends that need copies wait. "
             "Restart it: it keeps its data, and is taken as new",
             first, more, count > 1 ? "" : "s",
             (unsigned long long)report->core->node->incarnation);
}

static void awaits_memory_tell(struct leat_report *report)
{
    if (report->waits[0] == '\0' || report->trouble[0] != '\0') return;
    snprintf(report->trouble, sizeof report->trouble,
             "its memory budget has no room for logs of stream \"%.80s\"%s: they wait, and are "
             "refused. Delete streams, shorten their retention, or give it more by --memory",
             report->waits, report->others_wait ? " and others" : "");
}

static void report_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_report *report = LEAT_CONTAINER(mail, struct leat_report, mail);
    const struct leat_core *core = actor;
    struct leat_store_usage usage;
    leat_store_usage(core->node->store, &usage);
    report->sums.known = true;
    report->sums.pool_limit = usage.memory_limit;
    report->sums.pool_used = usage.memory_used;
    uint64_t most = core->node->copies_bytes; /* the cores share it */
    report->sums.replicas_limit = usage.arenas_limit < most ? usage.arenas_limit : most;
    report->sums.replicas_used = usage.arenas_used;
    report->sums.replicas_unflushed = usage.arenas_dirty;
    report->disk_lacks = usage.disk_lacks_bytes > 0;
    says_gone_tell(report);
    awaits_memory_tell(report);
    if (report->disk_lacks)
        leat_core_mail(report->core, LEAT_ACTOR_STORE, mail, report_deliver_store);
    else
        report->on_done(report);
}

/* On each core in turn: what only its own thread may look at. */
static void report_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_report *report = LEAT_CONTAINER(mail, struct leat_report, mail);
    struct leat_msg_node_report *sums = &report->sums;
    sums->logs += core->data->partition_count;
    sums->logs_troubled += troubled_find(core, report);
    passed_find(core, report);
    awaits_memory_find(core, report);
    if (core->data->replicate->primary != NULL) {
        struct leat_primary_status status;
        leat_primary_status(core->data->replicate->primary, &status);
        sums->logs_under_replicated += status.logs_under_replicated;
        sums->logs_below_min += status.logs_below_min;
        sums->logs_suspended += status.logs_suspended;
        sums->segments_under_replicated += status.segments_under_replicated;
        sums->segments_misplaced += status.segments_misplaced;
        add_peers(report, core);
    }
    leat_core_mail_next(core, mail, report_deliver, report->core->index, report_deliver_back);
}

void leat_report_start(struct leat_report *report)
{
    leat_core_mail(report->core, 0, &report->mail, report_deliver);
}

void leat_report_write(struct leat_msg_writer *writer, const struct leat_report *report,
                       bool with_peers)
{
    const struct leat_members *members = &report->core->members;
    struct leat_msg_node_report out = report->sums;
    for (uint32_t i = 0; with_peers && i < members->count; i++)
        if (report->peers[i].known) out.peer_count++;
    out.trouble = (struct leat_msg_string){report->trouble, (uint32_t)strlen(report->trouble)};
    leat_msg_node_report_write(writer, &out);
    for (uint32_t i = 0; with_peers && i < members->count; i++) {
        if (!report->peers[i].known) continue;
        const char *name = members->rows[i]->info.name, *transport = report->peers[i].transport;
        struct leat_msg_report_peer row = {
            .node = {name, (uint32_t)strlen(name)},
            .up = report->peers[i].up,
            .transport = {transport, (uint32_t)strlen(transport)},
            .replicas = report->peers[i].replicas,
            .load_bytes = report->peers[i].load_bytes,
        };
        leat_msg_report_peer_write(writer, &row);
    }
    leat_msg_node_report_end_write(writer, &out);
    for (uint32_t i = 0; i < out.troubled_count; i++) {
        const char *stream = report->troubled[i].stream, *why = report->troubled[i].why;
        struct leat_log_ref log = report->troubled[i].log;
        struct leat_msg_recovery_row row = {log.stream,
                                            log.streamlet,
                                            log.log,
                                            {stream, (uint32_t)strlen(stream)},
                                            {why, (uint32_t)strlen(why)}};
        leat_msg_recovery_row_write(writer, &row);
    }
    leat_msg_node_report_passed_write(writer, &out);
    for (uint32_t i = 0; i < out.passed_count; i++) {
        const char *stream = report->passed[i].stream;
        struct leat_log_ref log = report->passed[i].log;
        const struct leat_log_passed *passed = &report->passed[i].passed;
        struct leat_msg_passed row = {
            log.stream,    log.streamlet,    log.log,         {stream, (uint32_t)strlen(stream)},
            passed->bytes, passed->segments, passed->segment, passed->next_offset};
        leat_msg_passed_write(writer, &row);
    }
}

void leat_report_write_other(struct leat_msg_writer *writer, const uint8_t *report, uint32_t bytes,
                             const char *why, uint32_t nodes_left)
{
    uint32_t left = writer->capacity - writer->used;
    uint32_t share =
        left > LEAT_REPORT_BESIDE_BYTES ? (left - LEAT_REPORT_BESIDE_BYTES) / nodes_left : 0;
    if (report != NULL && bytes <= share) {
        leat_msg_write_raw(writer, report, bytes);
        return;
    }
    if (report != NULL) why = "its report takes more than its share of this answer: ask it itself";
    struct leat_msg_node_report unknown = {.why = {why, (uint32_t)strlen(why)}};
    leat_msg_node_report_write(writer, &unknown);
    leat_msg_node_report_end_write(writer, &unknown);
    leat_msg_node_report_passed_write(writer, &unknown);
}

/* ---- NODE_REPORT [with peers] ---- */

struct report_call {
    struct leat_call call;
    struct leat_report report;
    bool with_peers;
};

static void report_on_done(struct leat_report *report)
{
    struct report_call *call = report->owner;
    struct leat_msg_writer writer;
    leat_call_writer(call->call.core, &writer);
    leat_report_write(&writer, report, call->with_peers);
    leat_call_answer(&call->call, &writer);
}

void leat_call_node_report(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct report_call *call = leat_call_create(peer, frame, sizeof *call);
    if (call == NULL) return;
    struct leat_msg_report_ask body;
    if (leat_msg_report_ask_decode(frame->control, frame->control_bytes, &body) != LEAT_OK) {
        leat_call_refuse(&call->call, LEAT_E_INVALID, "a node's report is asked for as [peers]");
        return;
    }
    call->with_peers = body.with_peers;
    call->report.core = peer->core;
    call->report.on_done = report_on_done;
    call->report.owner = call;
    leat_report_start(&call->report);
}
