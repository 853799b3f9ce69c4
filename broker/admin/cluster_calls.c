/* SPDX-License-Identifier: Apache-2.0 */
/* An operator's requests about the cluster: its status, and changes of its nodes. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/report.h"
#include "broker/net/call.h"
#include "broker/net/gather.h"

/* ---- CLUSTER_STATUS [] ---- */

enum {
    PEERS_NODES_MAX = 64, /* in larger clusters nodes do not say how they reach each other */
    WHY_BYTES = 160,
};

/* The report of another node about itself. */
struct cluster_report {
    uint8_t *report; /* as it came; NULL: no report came */
    uint32_t report_bytes;
    char why[WHY_BYTES];
};
struct cluster_call {
    struct leat_call call;
    struct leat_coordinator_ask ask;
    struct leat_coordinator_status *status; /* large */
    struct leat_report report;              /* of this node */
    struct cluster_report *reports;         /* [status->node_count] */
    struct leat_gather others;              /* a part for each report */
    uint8_t control[8];
};

static struct leat_msg_string text_of(const char *text)
{
    return (struct leat_msg_string){text, (uint32_t)strlen(text)};
}

static const char *role_name(enum leat_voter_role role)
{
    switch (role) {
    case LEAT_VOTER_LEARNER:
        return "learner";
    case LEAT_VOTER_EMPTY:
        return "empty";
    case LEAT_VOTER_PREPARED:
        return "forming";
    case LEAT_VOTER_FOLLOWER:
        return "follower";
    case LEAT_VOTER_CANDIDATE:
        return "candidate";
    case LEAT_VOTER_LEADER:
        return "leader";
    case LEAT_VOTER_FAILED:
        return "failed";
    case LEAT_VOTER_JOINING:
        return "joining";
    }
    return "unknown";
}

static bool with_peers(const struct cluster_call *cluster)
{
    return cluster->status->node_count <= PEERS_NODES_MAX;
}

static void cluster_end(struct cluster_call *cluster)
{
    for (uint32_t i = 0; cluster->reports != NULL && i < cluster->status->node_count; i++)
        leat_mem_free(cluster->reports[i].report);
    leat_mem_free(cluster->reports);
    leat_mem_free(cluster->others.parts);
    leat_mem_free(cluster->status);
}

static void cluster_write_report(struct leat_msg_writer *writer, const struct cluster_call *cluster,
                                 uint32_t at)
{
    const struct cluster_report *other = &cluster->reports[at];
    if (cluster->status->nodes[at].incarnation == cluster->call.core->node->incarnation)
        leat_report_write(writer, &cluster->report, with_peers(cluster));
    else
        leat_report_write_other(writer, other->report, other->report_bytes, other->why,
                                cluster->status->node_count - at);
}

static void cluster_write_recovery(struct leat_msg_writer *writer,
                                   const struct leat_recovery_report *report)
{
    const struct leat_recovery_status *now = &report->now, *last = &report->last;
    struct leat_msg_recovery recovery = {.known = report->known,
                                         .phase = (uint64_t)now->phase,
                                         .streamlets = now->streamlets,
                                         .logs = now->logs,
                                         .decided = now->decided,
                                         .nodes_asked = now->nodes_asked,
                                         .nodes_answered = now->nodes_answered,
                                         .copies = now->pulls,
                                         .copies_open = now->pulls_open,
                                         .age_us = now->age_us,
                                         .ended = report->ended,
                                         .last_recovered = last->recovered,
                                         .last_us = last->age_us,
                                         .last_since_crash_us = last->crash_to_commit_us,
                                         .waiting = report->waiting_count,
                                         .row_count = report->waiting_rows};
    leat_msg_recovery_write(writer, &recovery);
    for (uint32_t i = 0; i < report->waiting_rows; i++) {
        const struct leat_recovery_waiting *waiting = &report->waiting[i];
        struct leat_msg_recovery_row row = {waiting->log.stream, waiting->log.streamlet,
                                            waiting->log.log, text_of(waiting->stream),
                                            text_of(waiting->why)};
        leat_msg_recovery_row_write(writer, &row);
    }
}

/* The address that the node committed before it listened may leave the port to the system: only the node itself knows
 * the port. */
static const char *address_of(const struct leat_node *node, const struct leat_node_info *info)
{
    bool own = info->incarnation == node->incarnation && node->options.cluster.advertise == NULL;
    return own && node->bound_address[0] != '\0' ? node->bound_address : info->address;
}

static void cluster_answer(struct cluster_call *cluster)
{
    struct leat_coordinator_status *status = cluster->status;
    const struct leat_node *node = cluster->call.core->node;
    struct leat_msg_writer writer;
    leat_call_writer(cluster->call.core, &writer);
    struct leat_msg_cluster head = {
        .node = text_of(node->name),
        .role = text_of(role_name(status->role)),
        .why = text_of(status->why),
        .leader_address = text_of(status->leader_address),
        .term = status->term,
        .applied_index = status->applied_index,
        .streams = status->stream_count,
        .logs = status->log_count,
    };
    memcpy(head.cluster_id, status->cluster_id, sizeof head.cluster_id);
    leat_msg_cluster_write(&writer, &head);
    leat_msg_write_array(&writer, status->voter_count);
    for (uint32_t i = 0; i < status->voter_count; i++) {
        const struct leat_voter_status *voter = &status->voters[i];
        struct leat_msg_voter row = {text_of(voter->address), voter->votes, voter->reachable,
                                     voter->last_index};
        leat_msg_voter_write(&writer, &row);
    }
    leat_msg_write_array(&writer, status->node_count);
    for (uint32_t i = 0; i < status->node_count; i++) {
        const struct leat_node_info *info = &status->nodes[i];
        struct leat_msg_cluster_node row = {
            .name = text_of(info->name),
            .address = text_of(address_of(node, info)),
            .node_address = text_of(info->node_address),
            .rack = text_of(info->rack),
            .incarnation = info->incarnation,
            .cores = info->cores,
            .state = (uint64_t)info->state,
            .memory_bytes = info->memory_bytes,
            .streamlets = info->streamlets,
            .draining = info->draining,
        };
        leat_msg_cluster_node_write(&writer, &row);
        cluster_write_report(&writer, cluster, i);
    }
    cluster_write_recovery(&writer, &status->recovery);
    cluster_end(cluster);
    leat_call_answer(&cluster->call, &writer);
}

static void others_on_answer(struct leat_gather *gather, uint32_t at, leat_err rc,
                             const struct leat_frame *answer, const char *why)
{
    struct cluster_call *cluster = gather->owner;
    struct cluster_report *other = &cluster->reports[at];
    snprintf(other->why, sizeof other->why, "%.150s", why);
    if (rc != LEAT_OK) return;
    struct leat_msg_reader reader;
    struct leat_msg_node_report report;
    leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
    leat_msg_node_report_read(&reader, &report);
    snprintf(other->why, sizeof other->why, "its answer can't be read");
    if (!leat_msg_read_done(&reader) || answer->control_bytes > LEAT_REPORT_BYTES_MAX) return;
    other->report = leat_mem_calloc(LEAT_MEM_BROKER, 1, answer->control_bytes);
    if (other->report == NULL) return;
    memcpy(other->report, answer->control, answer->control_bytes);
    other->report_bytes = answer->control_bytes;
}

static void others_on_done(struct leat_gather *gather)
{
    cluster_answer(gather->owner);
}

static void others_ask(struct leat_report *report)
{
    struct cluster_call *cluster = report->owner;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, cluster->control, sizeof cluster->control);
    leat_msg_report_ask_write(&writer, &(struct leat_msg_report_ask){with_peers(cluster)});
    cluster->others.control = cluster->control;
    cluster->others.control_bytes = writer.used;
    for (uint32_t i = 0; i < cluster->others.count; i++) {
        const struct leat_node_info *info = &cluster->status->nodes[i];
        struct leat_gather_part *part = &cluster->others.parts[i];
        bool up = info->state == LEAT_NODE_UP;
        part->node = info->incarnation;
        part->skip = !up || info->incarnation == report->core->node->incarnation;
        if (!up) snprintf(cluster->reports[i].why, WHY_BYTES, "it is not up");
    }
    leat_gather_start(&cluster->others);
}

static void cluster_on_status(struct leat_coordinator_ask *ask)
{
    struct cluster_call *cluster = ask->owner;
    uint32_t count = cluster->status->node_count;
    cluster->others = (struct leat_gather){.core = cluster->call.core,
                                           .kind = LEAT_KIND_NODE_REPORT,
                                           .count = count,
                                           .on_answer = others_on_answer,
                                           .on_done = others_on_done,
                                           .owner = cluster};
    cluster->reports = leat_call_memory(&cluster->call, count + 1, sizeof *cluster->reports);
    cluster->others.parts =
        leat_call_memory(&cluster->call, count + 1, sizeof *cluster->others.parts);
    if (cluster->reports == NULL || cluster->others.parts == NULL) {
        cluster_end(cluster);
        leat_call_refuse(&cluster->call, LEAT_E_AGAIN, NULL);
        return;
    }
    cluster->report.core = cluster->call.core;
    cluster->report.on_done = others_ask;
    cluster->report.owner = cluster;
    leat_report_start(&cluster->report);
}

void leat_call_cluster_status(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct cluster_call *cluster = leat_call_create(peer, frame, sizeof *cluster);
    if (cluster == NULL) return;
    cluster->status = leat_call_memory(&cluster->call, 1, sizeof *cluster->status);
    if (cluster->status == NULL) {
        leat_call_refuse(&cluster->call, LEAT_E_AGAIN, NULL);
        return;
    }
    cluster->ask.status = cluster->status;
    cluster->ask.on_done = cluster_on_status;
    cluster->ask.owner = cluster;
    leat_coordinator_status_ask(peer->core->env->post, &cluster->ask);
}

/* ---- NODE_CHANGE [what, node name] ---- */

struct node_call {
    struct leat_call call;
    struct leat_coordinate request;
    char name[LEAT_NODE_NAME_BYTES_MAX + 1];
};

static void node_on_done(struct leat_coordinate *request)
{
    struct node_call *change = request->owner;
    if (request->rc != LEAT_OK) {
        leat_call_refuse(&change->call, request->rc, request->error.text);
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(change->call.core, &writer);
    leat_msg_write_array(&writer, 0);
    leat_call_answer(&change->call, &writer);
}

/* This node's tables say whether a node is the last node that is not drained. So this node first hears of all changes
 * that were answered before this request, on whichever node. */
static void node_on_barrier(struct leat_coordinate *request)
{
    struct node_call *change = request->owner;
    if (request->rc != LEAT_OK) {
        node_on_done(request);
        return;
    }
    request->kind = LEAT_COORDINATE_NODE_DRAIN;
    request->on_done = node_on_done;
    leat_coordinate(change->call.core->env->post, request);
}

void leat_call_node_change(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct node_call *change = leat_call_create(peer, frame, sizeof *change);
    if (change == NULL) return;
    struct leat_msg_node_change body;
    leat_err rc = leat_msg_node_change_decode(frame->control, frame->control_bytes, &body);
    if (rc != LEAT_OK || body.name.bytes == 0 || body.name.bytes > LEAT_NODE_NAME_BYTES_MAX ||
        body.what < LEAT_NODE_CHANGE_DRAIN || body.what > LEAT_NODE_CHANGE_REPLACE) {
        leat_call_refuse(&change->call, LEAT_E_INVALID,
                         "the control body of node change is not [1 to 4, node name]");
        return;
    }
    memcpy(change->name, body.name.text, body.name.bytes);
    struct leat_coordinate *request = &change->request;
    request->kind = body.what == LEAT_NODE_CHANGE_ADD_VOTER ? LEAT_COORDINATE_ADD_VOTER
                    : body.what == LEAT_NODE_CHANGE_REPLACE ? LEAT_COORDINATE_NODE_REPLACE
                                                            : LEAT_COORDINATE_BARRIER;
    request->draining = body.what == LEAT_NODE_CHANGE_DRAIN;
    request->target = change->name;
    request->asker = leat_peer_asks(peer);
    request->on_done = request->kind == LEAT_COORDINATE_BARRIER ? node_on_barrier : node_on_done;
    request->owner = change;
    leat_coordinate(peer->core->env->post, request);
}
