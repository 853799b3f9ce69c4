/* SPDX-License-Identifier: Apache-2.0 */
/* JoinGroup, SyncGroup, Heartbeat, LeaveGroup: from and to groups/classic.h. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "kafka/handlers/group.h"

enum {
    JOIN_NEEDS_ID_FROM = 4, /* versions */
    JOIN_PROTOCOL_NULL_FROM = 7,
    JOIN_SKIPS_FROM = 9,
    LEAVE_BATCH_FROM = 3,
};

static void no_memory(struct leat_kafka_request *request)
{
    leat_kafka_answer(request, NULL);
}

/* Kafka says session timeout to what other members wait for in version 0. */
static uint32_t rebalance_ms(const struct leat_kafka_join_group_request *body)
{
    int32_t ms =
        body->rebalance_timeout_ms >= 0 ? body->rebalance_timeout_ms : body->session_timeout_ms;
    if (ms > LEAT_GROUPS_SESSION_MS_MAX) ms = LEAT_GROUPS_SESSION_MS_MAX;
    return ms > LEAT_GROUPS_SESSION_MS_MIN ? (uint32_t)ms : LEAT_GROUPS_SESSION_MS_MIN;
}

/* ---- JoinGroup ---- */

static void join_answer(struct leat_kafka_request *request, int16_t error,
                        const struct leat_kafka_group_ask *ask)
{
    const struct leat_kafka_join_group_request *body = request->body;
    struct leat_kafka_join_group_response *response =
        LEAT_KAFKA_MAKE(request, join_group_response, 1);
    if (response == NULL) {
        no_memory(request);
        return;
    }
    /* A request that was refused before its ask has no ask */
    LEAT_ASSERT(ask != NULL || error != LEAT_KAFKA_NONE);
    const struct leat_classic_call *call = ask != NULL ? &ask->call : NULL;
    uint32_t count = error == LEAT_KAFKA_NONE ? call->member_count : 0;
    struct leat_kafka_join_group_response_member *members =
        LEAT_KAFKA_MAKE(request, join_group_response_member, count);
    if (members == NULL) {
        no_memory(request);
        return;
    }
    response->error_code = error;
    response->member_id = body->member_id;
    response->protocol_type = response->protocol_name = (struct leat_kafka_string){NULL, -1};
    if (request->version < JOIN_PROTOCOL_NULL_FROM) response->protocol_name = leat_kafka_text("");
    if (error == LEAT_KAFKA_NONE || error == LEAT_KAFKA_MEMBER_ID_REQUIRED)
        response->member_id = leat_kafka_text(ask->home_request.member);
    if (error == LEAT_KAFKA_NONE) {
        response->generation_id = (int32_t)ask->home_request.generation;
        response->protocol_type = leat_kafka_group_string(call->group_protocol_type);
        response->protocol_name = leat_kafka_group_string(call->group_protocol);
        response->leader = leat_kafka_text(call->leader);
        response->skip_assignment = call->skip_assignment;
        response->members.at = members;
        response->members.count = (int32_t)count;
    }
    for (uint32_t i = 0; i < count; i++) {
        members[i].member_id = leat_kafka_group_string(call->members[i].member);
        members[i].group_instance_id = leat_kafka_group_nullable(call->members[i].instance);
        members[i].metadata = leat_kafka_group_bytes(call->members[i].metadata);
    }
    leat_kafka_answer(request, response);
}

static void join_on_done(struct leat_kafka_group_ask *ask)
{
    join_answer(ask->request, leat_kafka_group_error(ask->home_request.rc), ask);
}

/* "/203.0.113.7", as tools show it. */
static struct leat_msg_string client_host(struct leat_kafka_request *request)
{
    const char *address = leat_peer_client(request->conn->peer);
    const char *colon = strrchr(address, ':');
    size_t bytes = colon != NULL ? (size_t)(colon - address) : strlen(address);
    char *host = leat_kafka_take(request, bytes + 2, 1);
    if (host == NULL) return (struct leat_msg_string){"", 0};
    snprintf(host, bytes + 2, "/%.*s", (int)bytes, address);
    return (struct leat_msg_string){host, (uint32_t)bytes + 1};
}

static void join_fill(struct leat_kafka_group_ask *ask, struct leat_classic_protocol *protocols)
{
    struct leat_kafka_request *request = ask->request;
    const struct leat_kafka_join_group_request *body = request->body;
    for (int32_t i = 0; i < body->protocols.count; i++) {
        const struct leat_kafka_bytes *metadata = &body->protocols.at[i].metadata;
        protocols[i].name = leat_kafka_group_text(body->protocols.at[i].name);
        protocols[i].metadata = (struct leat_msg_string){
            (const char *)metadata->at, metadata->count > 0 ? (uint32_t)metadata->count : 0};
    }
    ask->home_request.session_ms = (uint32_t)body->session_timeout_ms;
    ask->call = (struct leat_classic_call){
        .instance = leat_kafka_group_text(body->group_instance_id),
        .client = leat_kafka_group_text(request->client_id),
        .host = client_host(request),
        .rebalance_ms = rebalance_ms(body),
        .needs_id = request->version >= JOIN_NEEDS_ID_FROM,
        .can_skip = request->version >= JOIN_SKIPS_FROM,
        .protocols = protocols,
        .protocol_count = body->protocols.count > 0 ? (uint32_t)body->protocols.count : 0,
        .protocol_type = leat_kafka_group_text(body->protocol_type),
    };
    if (ask->call.client.bytes > LEAT_CLASSIC_TEXT_BYTES_MAX)
        ask->call.client.bytes = LEAT_CLASSIC_TEXT_BYTES_MAX; /* shown to people, no more */
}

void leat_kafka_handle_join_group(struct leat_kafka_request *request)
{
    const struct leat_kafka_join_group_request *body = request->body;
    struct leat_kafka_group_ask *ask = leat_kafka_group_ask_make(request, LEAT_GROUPS_CLASSIC_JOIN);
    struct leat_classic_protocol *protocols = leat_kafka_take(
        request, body->protocols.count > 0 ? (size_t)body->protocols.count : 1, sizeof *protocols);
    if (ask == NULL || protocols == NULL) {
        no_memory(request);
        return;
    }
    if (body->group_id.bytes <= 0) {
        join_answer(request, LEAT_KAFKA_INVALID_GROUP_ID, NULL);
        return;
    }
    if (body->session_timeout_ms < LEAT_GROUPS_SESSION_MS_MIN ||
        body->session_timeout_ms > LEAT_GROUPS_SESSION_MS_MAX) {
        join_answer(request, LEAT_KAFKA_INVALID_SESSION_TIMEOUT, NULL);
        return;
    }
    if (!leat_kafka_group_member_set(ask, body->member_id)) {
        join_answer(request, LEAT_KAFKA_UNKNOWN_MEMBER_ID, NULL);
        return;
    }
    join_fill(ask, protocols);
    ask->on_done = join_on_done;
    leat_kafka_group_ask_start(ask, body->group_id);
}

/* ---- ConsumerGroupHeartbeat ---- */

/* Kafka's answer where that protocol is switched off. A client that finds the request not advertised waits for
 * ever, or says nothing of the cause. */
void leat_kafka_handle_consumer_group_heartbeat(struct leat_kafka_request *request)
{
    struct leat_kafka_consumer_group_heartbeat_response *response =
        LEAT_KAFKA_MAKE(request, consumer_group_heartbeat_response, 1);
    if (response != NULL) {
        LEAT_KAFKA_REFUSE(
            request, response, LEAT_KAFKA_UNSUPPORTED_VERSION,
            "groups share out by the classic protocol here: set group.protocol=classic");
        response->assignment = -1;
    }
    leat_kafka_answer(request, response);
}

/* ---- SyncGroup ---- */

static void sync_answer(struct leat_kafka_request *request, int16_t error,
                        const struct leat_kafka_group_ask *ask)
{
    struct leat_kafka_sync_group_response *response =
        LEAT_KAFKA_MAKE(request, sync_group_response, 1);
    if (response != NULL) {
        response->error_code = error;
        response->protocol_type = response->protocol_name = (struct leat_kafka_string){NULL, -1};
        if (error == LEAT_KAFKA_NONE) {
            LEAT_ASSERT(ask != NULL);
            response->protocol_type = leat_kafka_group_string(ask->call.group_protocol_type);
            response->protocol_name = leat_kafka_group_string(ask->call.group_protocol);
            response->assignment = leat_kafka_group_bytes(ask->call.assignment);
        }
    }
    leat_kafka_answer(request, response);
}

static void sync_on_done(struct leat_kafka_group_ask *ask)
{
    sync_answer(ask->request, leat_kafka_group_error(ask->home_request.rc), ask);
}

void leat_kafka_handle_sync_group(struct leat_kafka_request *request)
{
    const struct leat_kafka_sync_group_request *body = request->body;
    uint32_t count = body->assignments.count > 0 ? (uint32_t)body->assignments.count : 0;
    struct leat_kafka_group_ask *ask = leat_kafka_group_ask_make(request, LEAT_GROUPS_CLASSIC_SYNC);
    struct leat_classic_share *shares = leat_kafka_take(request, count + 1, sizeof *shares);
    if (ask == NULL || shares == NULL) {
        no_memory(request);
        return;
    }
    if (!leat_kafka_group_member_set(ask, body->member_id)) {
        sync_answer(request, LEAT_KAFKA_UNKNOWN_MEMBER_ID, NULL);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct leat_kafka_bytes *share = &body->assignments.at[i].assignment;
        shares[i].member = leat_kafka_group_text(body->assignments.at[i].member_id);
        shares[i].assignment = (struct leat_msg_string){
            (const char *)share->at, share->count > 0 ? (uint32_t)share->count : 0};
    }
    ask->home_request.generation = (uint32_t)body->generation_id;
    ask->call.instance = leat_kafka_group_text(body->group_instance_id);
    ask->call.protocol_type = leat_kafka_group_text(body->protocol_type);
    ask->call.protocol = leat_kafka_group_text(body->protocol_name);
    ask->call.shares = shares;
    ask->call.share_count = count;
    ask->on_done = sync_on_done;
    leat_kafka_group_ask_start(ask, body->group_id);
}

/* ---- Heartbeat ---- */

static void heartbeat_answer(struct leat_kafka_request *request, int16_t error)
{
    struct leat_kafka_heartbeat_response *response =
        LEAT_KAFKA_MAKE(request, heartbeat_response, 1);
    if (response != NULL) response->error_code = error;
    leat_kafka_answer(request, response);
}

static void heartbeat_on_done(struct leat_kafka_group_ask *ask)
{
    heartbeat_answer(ask->request, leat_kafka_group_error(ask->home_request.rc));
}

void leat_kafka_handle_heartbeat(struct leat_kafka_request *request)
{
    const struct leat_kafka_heartbeat_request *body = request->body;
    struct leat_kafka_group_ask *ask =
        leat_kafka_group_ask_make(request, LEAT_GROUPS_CLASSIC_HEARTBEAT);
    if (ask == NULL) {
        no_memory(request);
        return;
    }
    if (!leat_kafka_group_member_set(ask, body->member_id)) {
        heartbeat_answer(request, LEAT_KAFKA_UNKNOWN_MEMBER_ID);
        return;
    }
    ask->home_request.generation = (uint32_t)body->generation_id;
    ask->call.instance = leat_kafka_group_text(body->group_instance_id);
    ask->on_done = heartbeat_on_done;
    leat_kafka_group_ask_start(ask, body->group_id);
}

/* ---- LeaveGroup ---- */

static void leave_on_done(struct leat_kafka_group_ask *ask)
{
    struct leat_kafka_request *request = ask->request;
    const struct leat_classic_call *call = &ask->call;
    struct leat_kafka_leave_group_response *response =
        LEAT_KAFKA_MAKE(request, leave_group_response, 1);
    struct leat_kafka_leave_group_response_member *rows =
        LEAT_KAFKA_MAKE(request, leave_group_response_member, call->leaver_count);
    if (response == NULL || rows == NULL) {
        no_memory(request);
        return;
    }
    response->error_code = leat_kafka_group_error(ask->home_request.rc);
    if (request->version < LEAVE_BATCH_FROM && ask->home_request.rc == LEAT_OK)
        response->error_code = leat_kafka_group_error(call->leavers[0].rc);
    LEAT_ASSERT(request->version >= LEAVE_BATCH_FROM || call->leaver_count == 1);
    bool rows_told = request->version >= LEAVE_BATCH_FROM && ask->home_request.rc == LEAT_OK;
    response->members.at = rows;
    response->members.count = rows_told ? (int32_t)call->leaver_count : 0;
    for (int32_t i = 0; i < response->members.count; i++) {
        rows[i].member_id = leat_kafka_group_string(call->leavers[i].member);
        rows[i].group_instance_id = leat_kafka_group_nullable(call->leavers[i].instance);
        rows[i].error_code = leat_kafka_group_error(call->leavers[i].rc);
    }
    leat_kafka_answer(request, response);
}

void leat_kafka_handle_leave_group(struct leat_kafka_request *request)
{
    const struct leat_kafka_leave_group_request *body = request->body;
    bool batch = request->version >= LEAVE_BATCH_FROM;
    uint32_t count = batch ? (uint32_t)(body->members.count > 0 ? body->members.count : 0) : 1;
    struct leat_kafka_group_ask *ask =
        leat_kafka_group_ask_make(request, LEAT_GROUPS_CLASSIC_LEAVE);
    struct leat_classic_leaver *leavers = leat_kafka_take(request, count + 1, sizeof *leavers);
    if (ask == NULL || leavers == NULL) {
        no_memory(request);
        return;
    }
    for (uint32_t i = 0; i < count && batch; i++) {
        leavers[i].member = leat_kafka_group_text(body->members.at[i].member_id);
        leavers[i].instance = leat_kafka_group_text(body->members.at[i].group_instance_id);
        leavers[i].rc = LEAT_E_UNKNOWN_MEMBER;
    }
    if (!batch)
        leavers[0] = (struct leat_classic_leaver){.member = leat_kafka_group_text(body->member_id),
                                                  .rc = LEAT_E_UNKNOWN_MEMBER};
    ask->call.leavers = leavers;
    ask->call.leaver_count = count;
    ask->on_done = leave_on_done;
    leat_kafka_group_ask_start(ask, body->group_id);
}
