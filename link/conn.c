/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a link: its events, frames in. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/node_log.h"
#include "link/internal.h"
#include "wire/speaker.h"

/* ---- coming up ---- */

void leat_link_connect(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    const struct leat_net *net = link->links->env->net;
    link->why.code = LEAT_OK;
    link->was_up = false;
    link->since_us = link->heard_us = leat_links_now(link->links);
    link->pinged_us = 0;
    leat_err rc = net->connect(net->ctx, link->address, &leat_link_conn_handler, link, &link->net);
    if (rc == LEAT_OK) {
        leat_link_state_enter(link, LINK_CONNECTING);
        return;
    }
    link->net = NULL;
    struct leat_error error;
    (void)leat_error_set(&error, rc, "connecting to %s: %s", link->address, leat_err_text(rc));
    leat_link_retry_later(link);
    link->handler->on_down(link->handler->owner, link, false, &error);
}

static void conn_on_open(void *user, struct leat_conn *conn)
{
    struct leat_link *link = user;
    (void)conn;
    if (link->state != LINK_CONNECTING) return; /* closed meanwhile */
    leat_link_state_enter(link, LINK_NONCE);
    if (!leat_link_nonce_send(link, 1))
        leat_link_cut(link, LEAT_E_NO_MEMORY, "no memory for a nonce");
}

struct leat_link *leat_link_take(struct leat_links *links, struct leat_conn *conn,
                                 const struct leat_conn_handler **out_handler)
{
    LEAT_ASSERT_OWNER(links->actor);
    struct leat_link *link = leat_link_make(links);
    if (!link) return NULL;
    link->accepted = true;
    leat_link_state_enter(link, LINK_NONCE);
    link->net = conn;
    links->env->net->account(conn, LEAT_NET_STRANGERS);
    snprintf(link->address, sizeof link->address, "%s", links->env->net->peer(conn));
    memcpy(link->key, links->env->net->key(conn), sizeof link->key);
    leat_links_due(links, link->since_us + links->silence_us);
    *out_handler = &leat_link_conn_handler;
    return link;
}

void *leat_link_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler)
{
    struct leat_link *link = leat_link_take(acceptor, conn, out_handler);
    if (link) leat_link_stranger_begin(link);
    return link;
}

/* SUBTLE: a link's requests come in the order in which they were sent, over all of its connections.
 *  1. The owner of a log asks a backup to drop a copy. The connection is lost with this request unread; the owner
 *     connects again.
 *  2. The backup reads the new connection first. It says that it has the copy, and the owner counts on the copy.
 *  3. The backup reads the old connection: without this rule it drops the copy. */
static void earlier_connections_end(struct leat_link *link)
{
    const struct leat_links *links = link->links;
    if (LEAT_BUG(OLD_CONNECTION_SPEAKS)) return;
    for (uint32_t i = 0; i < links->table_capacity; i++) {
        struct leat_link *other = links->table[i];
        if (other != NULL && leat_link_is_earlier(other, link))
            leat_link_cut(other, LEAT_E_CLOSED, "the peer has connected again");
    }
}

static void link_went_up(struct leat_link *link)
{
    struct leat_links *links = link->links;
    earlier_connections_end(link);
    leat_link_stranger_end(link);
    links->env->net->account(link->net, LEAT_NET_NODES);
    leat_link_state_enter(link, LINK_UP);
    link->was_up = true;
    link->attempts = 0;
    link->connection = ++links->next_connection;
    link->request_count = 0;
    leat_links_due(links, link->heard_us + links->ping_us);
    if (link->handler->on_up) link->handler->on_up(link->handler->owner, link);
}

/* ---- frames ---- */

static void request_take(struct leat_link *link, const struct leat_frame *frame)
{
    struct leat_link_ticket ticket = {.slot = link->slot,
                                      .request = frame->request,
                                      .connection = link->connection,
                                      .kind = frame->kind};
    if (frame->request != 0) {
        if (link->request_count == LEAT_LINK_REQUESTS_MAX) {
            leat_link_cut(link, LEAT_E_TOO_MANY, "the peer has too many requests under way");
            return;
        }
        link->request_count++;
        /* Memory stays bounded without stopping to read: if two nodes both stopped reading, each because its peer did
         * not take answers, both would wait for ever. */
        if (link->queued_bytes > link->links->queued_bytes_max) {
            leat_link_answer_error(link->links, &ticket, LEAT_E_AGAIN,
                                   "answers to this peer wait already: it has to read them");
            return;
        }
    }
    link->handler->on_request(link->handler->owner, link, frame, &ticket);
}

static struct leat_link_call *call_find(struct leat_link *link, uint32_t number)
{
    /* Answers come nearly in the order of the calls, so the first is mostly the one. */
    LEAT_LIST_EACH(&link->calls, at)
    {
        struct leat_link_call *call = LEAT_CONTAINER(at, struct leat_link_call, list);
        if (call->number == number && !call->one_way) return call;
    }
    return NULL;
}

/* True: the frame is done with. False: it has to wait. */
static bool frame_take(struct leat_link *link, const struct leat_frame *frame)
{
    if (frame->kind == LEAT_NODE_KIND_PING) {
        if (!(frame->flags & LEAT_FRAME_ANSWER) &&
            !leat_link_frame_send(link, LEAT_NODE_KIND_PING, LEAT_FRAME_ANSWER, 0, "\x90", 1, NULL,
                                  NULL, false))
            LEAT_MAYBE(true); /* no memory now: it asks again */
        return true;
    }
    if (!(frame->flags & LEAT_FRAME_ANSWER)) {
        if (frame->kind < LEAT_NODE_KIND_COORDINATOR) { /* clients', and link's own */
            leat_link_cut(link, LEAT_E_INVALID, "a request of a kind that nodes do not send");
            return true;
        }
        request_take(link, frame);
        return true;
    }
    struct leat_link_call *call = call_find(link, frame->request);
    if (!call) return true; /* given up meanwhile */
    if (!call->sent) {
        /* The port may still hold the caller's bytes, so the caller can't have them back yet. */
        call->early = true;
        link->links->env->net->pause(link->net);
        return false;
    }
    leat_link_answered(link, call, frame);
    return true;
}

/* In state LINK_HELLO, with the right tag. LINK_MOVED: nothing of this link may be touched any more. */
static enum leat_link_greeted hello_frame(struct leat_link *link, const struct leat_frame *frame)
{
    leat_link_stranger_end(link);
    if (link->accepted) {
        enum leat_link_greeted greeted = leat_link_hello_take(link, frame);
        if (greeted == LINK_GREETED) link_went_up(link);
        return greeted;
    }
    struct leat_error error;
    leat_err rc = leat_link_hello_answered(link, frame, &error);
    if (rc == LEAT_OK) {
        link_went_up(link);
        return LINK_GREETED;
    }
    leat_link_cut(link, rc, error.text);
    return LINK_REFUSED;
}

static void undecodable(struct leat_link *link, leat_err rc, const uint8_t *data, size_t bytes)
{
    if (link->state != LINK_UP && link->accepted) {
        enum leat_speaker speaker = leat_speaker_of(data, bytes);
        const char *speaks = speaker == LEAT_SPEAKER_NODE
                                 ? LEAT_LINK_OF_AN_OLDER_VERSION /* it is at the right port */
                                 : leat_speaker_text(speaker);
        leat_link_complain(link, speaks ? speaks : "its first bytes are no frame of a node");
    }
    char why[LEAT_ERROR_TEXT_BYTES] = "bytes that are no frame";
    if (link->state != LINK_UP && !link->accepted) {
        const char *speaks = leat_speaker_text(leat_speaker_of(data, bytes));
        snprintf(why, sizeof why,
                 "%.100s answers with what is no frame of a node%s%s: another program listens "
                 "there, or the address is not its --node-listen",
                 link->address, speaks ? "; " : "", speaks ? speaks : "");
    }
    leat_link_cut(link, rc, why);
}

/* A peer without a proof may send only small frames. */
static bool larger_than_allowed(struct leat_link *link, size_t frame_bytes, const uint8_t *data,
                                size_t bytes)
{
    if (link->state == LINK_UP || frame_bytes <= LINK_UNPROVED_FRAME_BYTES_MAX) return false;
    undecodable(link, LEAT_E_TOO_LARGE, data, bytes);
    return true;
}

static size_t conn_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    struct leat_link *link = user;
    size_t used = 0;
    (void)conn;
    link->heard_us = leat_links_now(link->links);
    leat_link_enter(link);
    while (!link->gone &&
           (link->state == LINK_UP || link->state == LINK_HELLO || link->state == LINK_NONCE)) {
        struct leat_frame frame;
        size_t want = 0;
        leat_err rc = leat_frame_decode(data + used, bytes - used, &frame, &want);
        if ((rc == LEAT_OK || rc == LEAT_E_AGAIN) &&
            larger_than_allowed(link, want, data + used, bytes - used))
            break;
        if (rc == LEAT_E_AGAIN) {
            *want_bytes = want;
            (void)leat_link_leave(link); /* it is not gone */
            return used;
        }
        if (rc != LEAT_OK) {
            undecodable(link, rc, data + used, bytes - used);
            break;
        }
        if (link->state == LINK_NONCE) {
            leat_link_nonce_take(link, &frame, data + used);
            used += frame.frame_bytes;
            continue;
        }
        if (!leat_link_frame_check(link, &frame, data + used)) break;
        if (link->state == LINK_HELLO) {
            if (hello_frame(link, &frame) == LINK_MOVED) return used; /* and the link is no more */
            used += frame.frame_bytes;
            continue;
        }
        if (!frame_take(link, &frame)) {
            leat_mac_again(link->mac_in);
            (void)leat_link_leave(link); /* it is not gone: the frame waits */
            return used;
        }
        used += frame.frame_bytes;
    }
    (void)leat_link_leave(link); /* whether it is gone matters no more */
    return bytes;
}

/* ---- going down ---- */

/* No reason was given: explain the end by the state of the link. */
static void end_explain(struct leat_link *link, leat_err why, struct leat_error *error)
{
    bool was_up = link->was_up;
    /* A listener that finds our proof wrong says nothing, as to any stranger. */
    if (link->state == LINK_HELLO && !link->accepted && why == LEAT_E_CLOSED) {
        static const char text[] = "it closed the connection at this node's proof: the cluster "
                                   "keys differ (--cluster-key), or that node is stopping";
        (void)leat_error_set(error, LEAT_E_WRONG_CLUSTER, "%s: %s", link->address, text);
        leat_link_complain(link, text);
        return;
    }
    (void)leat_error_set(error, LEAT_E_CLOSED, "the connection to %s%s%s%s: %s", link->address,
                         was_up ? " (" : "", was_up ? link->peer.node : "",
                         was_up ? ") was lost" : " could not be made",
                         why && why != LEAT_E_CLOSED ? leat_err_text(why)
                         : was_up                    ? "the other side closed it"
                                  : "nobody listens there, or it was closed at once");
}

static void conn_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct leat_link *link = user;
    (void)conn;
    struct leat_error error = link->why;
    bool was_up = link->was_up;
    if (error.code == LEAT_OK && !link->gone) end_explain(link, why, &error);
    link->net = NULL;
    leat_link_stranger_end(link);
    leat_link_keys_drop(link);
    leat_link_enter(link);
    leat_link_state_enter(link, LINK_CLOSING);
    if (link->gone) {
        leat_link_calls_fail(link, LEAT_E_CANCELLED, "the link was closed");
        (void)leat_link_leave(link);
        return;
    }
    leat_link_calls_fail(link, LEAT_E_CLOSED, error.text);
    if (!link->gone && !link->accepted) leat_link_retry_later(link);
    if (!link->gone && (was_up || !link->accepted))
        link->handler->on_down(link->handler->owner, link, was_up, &error);
    if (link->accepted) link->gone = true;
    (void)leat_link_leave(link); /* freed here when it was accepted, or closed meanwhile */
}

const struct leat_conn_handler leat_link_conn_handler = {
    .on_open = conn_on_open,
    .on_bytes = conn_on_bytes,
    .on_closed = conn_on_closed,
};
