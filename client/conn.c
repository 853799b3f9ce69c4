/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a client: hello, frames out, answers in. */
#include "internal.h"

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"

#include <stdio.h>
#include <string.h>

static const struct leat_conn_handler conn_handler;

struct leat_client_conn *leat_client_conn_find(struct leat_client *client, uint64_t incarnation,
                                               int64_t lane)
{
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        if (conn->incarnation == incarnation && conn->lane == lane && conn->state != CONN_CLOSING)
            return conn;
    }
    return NULL;
}

struct leat_client_conn *leat_client_conn_any_open(struct leat_client *client)
{
    struct leat_client_conn *second = NULL;
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        if (conn->state != CONN_OPEN) continue;
        if (!conn->suspect && !conn->doubted) return conn;
        if (!second || second->suspect) second = conn;
    }
    return leat_client_bootstrap_next(client) ? NULL : second;
}

struct leat_client_conn *leat_client_conn_make(struct leat_client *client, const char *address,
                                               uint64_t incarnation, int64_t lane)
{
    if (client->conn_count == LEAT_CLIENT_CONNS_MAX) return NULL;
    struct leat_client_conn *conn = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *conn);
    if (!conn) return NULL;
    conn->client = client;
    conn->incarnation = incarnation;
    conn->lane = lane;
    snprintf(conn->address, sizeof conn->address, "%s", address);
    leat_list_init(&conn->queued);
    leat_list_init(&conn->in_flight);
    leat_list_push_back(&client->conns, &conn->link);
    client->conn_count++;
    return conn;
}

static void conn_free(struct leat_client_conn *conn)
{
    LEAT_ASSERT(conn->slots_out == 0);
    leat_free_list_fini(&conn->free_slots);
    leat_mem_free(conn);
}

static void conn_forget(struct leat_client_conn *conn)
{
    leat_list_remove(&conn->link);
    conn->client->conn_count--;
}

/* The client goes. A connection that the port still holds is freed in its on_closed. */
void leat_client_conn_destroy(struct leat_client_conn *conn)
{
    const struct leat_net *net = conn->client->env->net;
    conn_forget(conn);
    conn->client = NULL;
    if (!conn->net) {
        conn_free(conn);
        return;
    }
    net->close(conn->net);
}

void leat_client_conn_cut(struct leat_client_conn *conn)
{
    if (conn->state == CONN_CLOSING) return;
    leat_client_conn_enter(conn, CONN_CLOSING);
    conn->client->env->net->close(conn->net);
}

/* ---- sending ---- */

static void slot_on_sent(struct leat_send *send, leat_err rc)
{
    (void)rc; /* a failed send is told once more, by on_closed */
    struct leat_client_slot *slot = send->owner;
    struct leat_client_conn *conn = slot->conn;
    leat_mem_free(slot->big);
    slot->big = NULL;
    leat_free_list_give(&conn->free_slots, slot);
    conn->slots_out--;
}

static struct leat_client_slot *slot_take(struct leat_client_conn *conn, uint32_t control_bytes)
{
    struct leat_client_slot *slot = leat_free_list_take(&conn->free_slots);
    if (!slot) slot = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *slot);
    if (!slot) return NULL;
    if (control_bytes > SLOT_CONTROL_BYTES) {
        slot->big =
            leat_mem_calloc(LEAT_MEM_CLIENT, 1, (size_t)LEAT_FRAME_HEADER_BYTES + control_bytes);
        if (!slot->big) {
            leat_free_list_give(&conn->free_slots, slot);
            return NULL;
        }
    }
    slot->conn = conn;
    conn->slots_out++;
    return slot;
}

static bool conn_send_frame(struct leat_client_conn *conn, enum leat_kind kind, uint32_t number,
                            const uint8_t *control, uint32_t control_bytes,
                            const struct leat_iov *payload, unsigned payload_count)
{
    LEAT_ASSERT_CMP(payload_count, <=, LEAT_CLIENT_PAYLOADS_MAX);
    struct leat_client_slot *slot = slot_take(conn, control_bytes);
    if (!slot) return false;
    uint8_t *head = slot->big ? slot->big : slot->bytes;
    memcpy(head + LEAT_FRAME_HEADER_BYTES, control, control_bytes);
    size_t payload_bytes = 0;
    for (unsigned i = 0; i < payload_count; i++) {
        slot->iovs[1 + i] = payload[i];
        payload_bytes += payload[i].bytes;
    }
    LEAT_ASSERT_CMP(payload_bytes, <=, LEAT_FRAME_BYTES_MAX);
    leat_frame_encode(head, kind, LEAT_PROTOCOL_VERSION_MAX, 0, number, control_bytes,
                      (uint32_t)payload_bytes);
    slot->iovs[0] = (struct leat_iov){head, (size_t)LEAT_FRAME_HEADER_BYTES + control_bytes};
    slot->send = (struct leat_send){
        .iovs = slot->iovs, .iov_count = 1 + payload_count, .on_sent = slot_on_sent, .owner = slot};
    conn->client->env->net->send(conn->net, &slot->send);
    return true;
}

void leat_client_conn_transmit(struct leat_client_conn *conn, struct leat_request *request)
{
    LEAT_ASSERT(conn->state == CONN_OPEN);
    request->number = ++conn->client->next_number;
    leat_list_push_back(&conn->in_flight, &request->link);
    leat_client_watch_wake(conn->client, request->sent_us + request->patience_us);
    if (!conn_send_frame(conn, request->kind, request->number, request->control,
                         request->control_bytes, request->payload, request->payload_count)) {
        /* Out of memory: closing is the one way of failing that never runs a completion here. */
        leat_client_conn_cut(conn);
        return;
    }
    request->sent = true;
}

leat_err leat_client_conn_start(struct leat_client_conn *conn)
{
    struct leat_client *client = conn->client;
    LEAT_ASSERT(conn->state == CONN_IDLE && !conn->net && leat_list_empty(&conn->queued));
    leat_err rc = client->env->net->connect(client->env->net->ctx, conn->address, &conn_handler,
                                            conn, &conn->net);
    if (rc) {
        conn->net = NULL;
        conn_forget(conn);
        conn_free(conn);
        return rc;
    }
    leat_client_conn_enter(conn, CONN_CONNECTING);
    const struct leat_clock *clock = client->env->clock;
    conn->heard_us = clock->now_us(clock->ctx);
    conn->open_before_us = conn->heard_us + LEAT_CLIENT_CONNECT_US_MAX;
    leat_client_watch_wake(client, conn->heard_us + LEAT_CLIENT_SILENT_US);
    if (conn->open_before_us < client->nearest_us) client->nearest_us = conn->open_before_us;
    return LEAT_OK;
}

/* ---- events of the port ---- */

static void conn_on_open(void *user, struct leat_conn *net)
{
    struct leat_client_conn *conn = user;
    (void)net;
    if (!conn->client || conn->state != CONN_CONNECTING) return; /* closed meanwhile */
    struct leat_client *client = conn->client;
    client->called = true;
    uint8_t control[128];
    struct leat_msg_writer writer;
    struct leat_msg_hello hello = {
        .version_min = LEAT_PROTOCOL_VERSION_MIN,
        .version_max = LEAT_PROTOCOL_VERSION_MAX,
        .name = {client->name, (uint32_t)strlen(client->name)},
        .lane = conn->lane,
    };
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_hello_write(&writer, &hello);
    LEAT_ASSERT(!writer.overflow);
    conn->hello_number = ++client->next_number;
    leat_client_conn_enter(conn, CONN_HELLO);
    if (!conn_send_frame(conn, LEAT_KIND_HELLO, conn->hello_number, control, writer.used, NULL, 0))
        leat_client_conn_cut(conn);
}

static void requests_fail(struct leat_list *requests, leat_err rc, const struct leat_error *error)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(requests))) {
        struct leat_request *request = LEAT_CONTAINER(link, struct leat_request, link);
        struct leat_error own = *error;
        leat_err code = rc;
        if (request->timed_out)
            code = leat_error_set(&own, LEAT_E_TIMEOUT, "%s", leat_err_text(LEAT_E_TIMEOUT));
        leat_client_request_done(request, code, NULL, &own);
    }
}

static void lists_splice(struct leat_list *to, struct leat_list *from)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(from)))
        leat_list_push_back(to, link);
}

/* The node at the address has another incarnation than expected: the waiting requests were meant for the old
 * incarnation.
 *
 * SUBTLE: only one connection to the new incarnation may stay.
 *  1. A node that is cut off from the cluster goes on naming an outdated incarnation.
 *  2. A request connects to that address, meets the new incarnation, and fails; metadata comes from the cut-off node
 *     again, and names the old incarnation again. So it goes on, with a new connection each time.
 *  3. At LEAT_CLIENT_CONNS_MAX connections no further connection could be made, to any node, for good.
 * And metadata is asked of the restarted node next: this node knows more than the node that named its old
 * incarnation. */
static void conn_adopt_incarnation(struct leat_client_conn *conn, uint64_t incarnation)
{
    struct leat_client *client = conn->client;
    bool other = conn->incarnation != CLIENT_NO_INCARNATION && conn->incarnation != incarnation;
    struct leat_client_conn *kept = leat_client_conn_find(client, incarnation, conn->lane);
    bool newer = conn->incarnation < incarnation;
    conn->incarnation = incarnation;
    if (!other) return;
    if (!kept || LEAT_BUG(CONNECTIONS_STAY)) kept = conn;
    if (newer) {
        leat_list_remove(&kept->link);
        leat_list_push_front(&client->conns, &kept->link);
    }
    if (kept != conn) leat_client_conn_cut(conn);
    struct leat_list stale;
    leat_list_init(&stale);
    lists_splice(&stale, &conn->queued);
    struct leat_error error;
    (void)leat_error_set(&error, LEAT_E_NOT_OWNER, "the node at %s has restarted", conn->address);
    requests_fail(&stale, LEAT_E_NOT_OWNER, &error);
}

/* What the server says before it closes the connection. */
static leat_err conn_refusal_take(struct leat_client_conn *conn, const struct leat_frame *frame)
{
    struct leat_msg_error refused;
    leat_err rc = leat_msg_error_decode(frame->control, frame->control_bytes, &refused);
    if (rc) return rc;
    leat_node_log_name(conn->refused_text, sizeof conn->refused_text, refused.text.text,
                       refused.text.bytes);
    return refused.code ? refused.code : LEAT_E_INVALID;
}

static leat_err conn_on_hello(struct leat_client_conn *conn, const struct leat_frame *frame)
{
    struct leat_msg_hello_ok ok;
    if (frame->flags & LEAT_FRAME_ERROR) return conn_refusal_take(conn, frame);
    leat_err rc = leat_msg_hello_ok_decode(frame->control, frame->control_bytes, &ok);
    if (rc) return rc;
    leat_client_conn_enter(conn, CONN_OPEN);
    conn->was_open = true;
    conn->lane = ok.lane;
    conn->hello_number = 0;
    conn_adopt_incarnation(conn, ok.incarnation);
    struct leat_list *link;
    while (conn->state == CONN_OPEN && (link = leat_list_pop_front(&conn->queued)))
        leat_client_conn_transmit(conn, LEAT_CONTAINER(link, struct leat_request, link));
    leat_client_on_open(conn->client, conn);
    return LEAT_OK;
}

static void conn_on_answer(struct leat_client_conn *conn, const struct leat_frame *frame)
{
    struct leat_request *request = NULL;
    /* Answers come nearly in the order of the requests, so the first is mostly the one. */
    LEAT_LIST_EACH(&conn->in_flight, link)
    {
        struct leat_request *it = LEAT_CONTAINER(link, struct leat_request, link);
        if (it->number == frame->request) {
            request = it;
            break;
        }
    }
    if (!request) { /* cancelled, or an answer that came twice; or the server says why it closes the connection */
        if (frame->request == 0 && frame->flags & LEAT_FRAME_ERROR)
            (void)conn_refusal_take(conn, frame);
        return;
    }
    leat_list_remove(&request->link);
    struct leat_error error = {.code = LEAT_OK};
    leat_err rc = LEAT_OK;
    if (frame->flags & LEAT_FRAME_ERROR) {
        struct leat_msg_error refused = {.code = LEAT_E_INVALID, .text = {"", 0}};
        rc = leat_msg_error_decode(frame->control, frame->control_bytes, &refused);
        if (rc == LEAT_OK) rc = refused.code ? refused.code : LEAT_E_INVALID;
        /* SUBTLE: for the requester CANCELLED means that this client is being closed, so the requester tries nothing
         * again. But a server answers CANCELLED when it has given up a request: a member of a group stood still
         * then. */
        if (rc == LEAT_E_CANCELLED && !LEAT_BUG(GONE_IS_CANCELLED)) rc = LEAT_E_TIMEOUT;
        (void)leat_error_set(&error, rc, "%.*s", (int)refused.text.bytes, refused.text.text);
    } else if (frame->kind != (uint16_t)request->kind) {
        rc = leat_error_set(&error, LEAT_E_INVALID, "the server answered with another kind");
    }
    bool nodes = rc == LEAT_OK && request->kind == LEAT_KIND_METADATA;
    leat_client_request_done(request, rc, rc ? NULL : frame, &error);
    if (nodes && conn->client) leat_client_watch_self(conn);
}

static size_t conn_on_bytes(void *user, struct leat_conn *net, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    struct leat_client_conn *conn = user;
    size_t used = 0;
    if (conn->client) {
        const struct leat_clock *clock = conn->client->env->clock;
        conn->client->called = true;
        conn->heard_us = clock->now_us(clock->ctx);
        /* requests to any node have a connection again */
        if (conn->suspect) conn->client->dirty = true;
        conn->suspect = false;
    }
    while (conn->client && (conn->state == CONN_OPEN || conn->state == CONN_HELLO)) {
        struct leat_frame frame;
        size_t want = 0;
        leat_err rc = leat_frame_decode(data + used, bytes - used, &frame, &want);
        if (rc == LEAT_E_AGAIN) {
            *want_bytes = want;
            return used;
        }
        if (rc == LEAT_OK && !(frame.flags & LEAT_FRAME_ANSWER)) rc = LEAT_E_INVALID;
        if (rc == LEAT_OK) {
            used += frame.frame_bytes;
            if (conn->hello_number && frame.request == conn->hello_number)
                rc = conn_on_hello(conn, &frame);
            else
                conn_on_answer(conn, &frame);
        }
        if (rc) {
            leat_client_conn_cut(conn);
            break;
        }
    }
    return bytes;
}

static void conn_on_closed(void *user, struct leat_conn *net, leat_err why)
{
    struct leat_client_conn *conn = user;
    (void)net;
    conn->net = NULL;
    if (!conn->client) {
        conn_free(conn);
        return;
    }
    struct leat_client *client = conn->client;
    client->called = client->dirty = true;

    struct leat_error error;
    bool said = why && why != LEAT_E_CLOSED; /* else the code's sentence says "closed" once more */
    const char *reason = conn->was_open && conn->refused_text[0] ? conn->refused_text
                         : said                                  ? leat_err_text(why)
                                                                 : NULL;
    (void)leat_error_set(&error, LEAT_E_CLOSED, "the connection to %s was lost%s%s", conn->address,
                         reason ? ": " : "; whether the last requests took effect is unknown",
                         reason ? reason : "");
    struct leat_list failed;
    leat_list_init(&failed);
    lists_splice(&failed, &conn->in_flight);
    lists_splice(&failed, &conn->queued);
    /* Not kept: the next request makes a connection to the node that metadata names then. The pause between attempts
     * is the client's (any node) or the caller's (a log's owner). */
    conn_forget(conn);
    /* A node port, or a server of another protocol, ends a connection in this way. */
    bool mute = conn->hello_number != 0 && !conn->refused_text[0];
    leat_client_on_lost(
        client, conn->address,
        mute
            ? "it closed the connection without an answer: is that the port of its --listen (7700)?"
            : conn->refused_text,
        conn->was_open, why);
    conn_free(conn);
    requests_fail(&failed, LEAT_E_CLOSED, &error);
}

static const struct leat_conn_handler conn_handler = {
    .on_open = conn_on_open,
    .on_bytes = conn_on_bytes,
    .on_closed = conn_on_closed,
};
