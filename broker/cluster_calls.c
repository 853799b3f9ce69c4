/* What an operator asks of the cluster: its status, and changes of its nodes. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/core.h"
#include "wire/message_cluster.h"

/* ---- CLUSTER_STATUS [] ---- */

struct cluster_call {
    struct leat_call call;
    struct leat_coordinator_ask ask;
    struct leat_coordinator_status *status; /* large */
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
    case LEAT_VOTER_SPARE:
        return "spare";
    }
    return "unknown";
}

static void cluster_on_status(struct leat_coordinator_ask *ask)
{
    struct cluster_call *cluster = ask->owner;
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
            .address = text_of(info->address),
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
    }
    leat_mem_free(status);
    leat_call_answer(&cluster->call, &writer);
}

void leat_call_cluster_status(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct cluster_call *cluster = leat_call_create(peer, frame, sizeof *cluster);
    if (cluster == NULL) return;
    cluster->status = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *cluster->status);
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

void leat_call_node_change(struct leat_peer *peer, const struct leat_frame *frame)
{
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
                                                            : LEAT_COORDINATE_NODE_DRAIN;
    request->draining = body.what == LEAT_NODE_CHANGE_DRAIN;
    request->from = peer->core->index;
    request->target = change->name;
    request->on_done = node_on_done;
    request->owner = change;
    leat_coordinate(peer->core->env->post, request);
}
