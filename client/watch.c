/* SPDX-License-Identifier: Apache-2.0 */
/* Silence. A stopped node, or a node with a cut cable, breaks no connection: its requests stay unanswered until their
 * time is over, half a minute later. So when a connection owes an answer for too long another node is asked which
 * nodes are up. This is no failure detection: a client that ran late itself only asks in vain. The cluster's failure
 * detector decides: when it has declared the node dead, the connection is closed, and its requests end as after a
 * loss. */
#include "internal.h"

#include "base/assert.h"
#include "base/bug.h"

enum {
    ASK_EVERY_US = 25 * 1000, /* for the first second or so, in which most of it happens */
    ASKS_QUICK = 40,
    ASK_EVERY_US_MAX = 1000 * 1000,
    DOUBT_ASKS = 12, /* of one node: a crash is declared within 300 ms */
};

/* When its silence is remarkable; UINT64_MAX: it owes nothing. */
static uint64_t suspect_at(const struct leat_client_conn *conn)
{
    uint64_t at = UINT64_MAX;
    if (conn->state == CONN_CLOSING) return at;
    LEAT_LIST_EACH(&conn->in_flight, link)
    {
        const struct leat_request *request = LEAT_CONTAINER(link, struct leat_request, link);
        uint64_t due = request->sent_us + request->patience_us;
        if (due < at) at = due;
    }
    bool opens = conn->state == CONN_CONNECTING || conn->state == CONN_HELLO;
    if (at == UINT64_MAX && !opens) return at;
    uint64_t heard = conn->heard_us + LEAT_CLIENT_SILENT_US;
    return at == UINT64_MAX || at < heard ? heard : at;
}

/* Is there another node to ask? */
static bool others_known(const struct leat_client *client)
{
    return client->address_count > 1 || client->node_count > 1;
}

/* By the last metadata: the address of a node, "" while the node is down. NULL: no node has this incarnation. */
static const char *address_of(const struct leat_client *client, uint64_t incarnation)
{
    for (uint32_t i = 0; i < client->node_count; i++)
        if (client->nodes[i].incarnation == incarnation) return client->nodes[i].address;
    return NULL;
}

/* SUBTLE: an isolated node answers at once, so it is never suspect.
 *  1. The leader does not reach the node, and has the node declared crashed; the client reaches it.
 *  2. The node refuses appends, and the client asks for metadata over the connection that it has: to this node.
 *  3. The node has not learnt that other nodes own its logs since, and names itself as their owner: for ever.
 * So the node names itself as down, and the client closes its connections to the node and asks another. */
void leat_client_watch_self(struct leat_client_conn *conn)
{
    struct leat_client *client = conn->client;
    const char *address = address_of(client, conn->incarnation);
    bool down = address && !address[0];
    if (!down || !leat_client_elsewhere(client, conn->address)) return;
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *it = LEAT_CONTAINER(link, struct leat_client_conn, link);
        if (it->incarnation == conn->incarnation) leat_client_conn_cut(it);
    }
}

/* SUBTLE: the node that is asked may itself be cut off.
 *  1. A cluster is split; the client reaches both sides. The majority's side has the other side's nodes declared
 *     crashed, and serves their logs.
 *  2. An owner on the other side waits for copies. The nodes of its side hear each other, and name it as up.
 *  3. A client that asks only a node of that side waits until the split ends.
 * So a node that has named a silent node as up some times is doubted, and another node is asked. The doubt stays, as
 * the look-up that follows must not go to the doubted node either; when all nodes are doubted, none is any more. */
static void doubt(struct leat_client *client)
{
    struct leat_client_conn *asked = leat_client_conn_any_open(client);
    if (LEAT_BUG(ASKS_ONE_NODE)) return;
    if (asked && !asked->suspect) asked->doubted = true;
    const struct leat_client_conn *next = leat_client_conn_any_open(client);
    if (!next || !(next->suspect || next->doubted)) return;
    LEAT_LIST_EACH(&client->conns, link)
    LEAT_CONTAINER(link, struct leat_client_conn, link)->doubted = false;
}

static void ask_on_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct leat_client *client = request->owner;
    bool still_up = false;
    (void)error;
    client->ask.out = false;
    if (rc == LEAT_E_CANCELLED) return;
    leat_client_watch_wake(client, client->ask.at_us);
    if (rc != LEAT_OK || !leat_client_nodes_learn(client, answer)) return;
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        bool named = conn->incarnation != CLIENT_NO_INCARNATION;
        const char *address = address_of(client, conn->incarnation);
        bool up = address && address[0];
        still_up = still_up || (conn->suspect && named && up);
        if (!conn->suspect || !named || up) continue;
        leat_client_conn_cut(conn);
    }
    if (still_up && client->ask.count % DOUBT_ASKS == 0) doubt(client);
}

static void ask_send(struct leat_client *client, uint64_t now)
{
    uint64_t pause = ASK_EVERY_US;
    for (uint32_t i = ASKS_QUICK; i < client->ask.count && pause < ASK_EVERY_US_MAX; i++)
        pause *= 2;
    client->ask.count++;
    client->ask.at_us = now + (pause < ASK_EVERY_US_MAX ? pause : ASK_EVERY_US_MAX);
    client->ask.out = true;
    client->ask.request = (struct leat_request){
        .kind = LEAT_KIND_METADATA,
        .control = client->ask.control,
        .control_bytes =
            leat_client_metadata_ask(client->ask.control, sizeof client->ask.control, NULL, false),
        .on_done = ask_on_done,
        .owner = client,
    };
    leat_err rc = leat_client_send(client, &client->ask.request);
    LEAT_ASSERT(rc == LEAT_OK); /* to any node: it waits in the client when there is none */
}

/* What any node can answer as well does not wait for this one. */
static void questions_take(struct leat_client *client, struct leat_client_conn *conn, uint64_t now)
{
    struct leat_list kept, *link;
    leat_list_init(&kept);
    while ((link = leat_list_pop_front(&conn->in_flight))) {
        struct leat_request *request = LEAT_CONTAINER(link, struct leat_request, link);
        bool any = request->kind == LEAT_KIND_METADATA && request->log.stream == 0;
        leat_list_push_back(any ? &client->waiting : &kept, link);
        if (any) request->sent_us = now; /* the next asked node gets as much time */
    }
    while ((link = leat_list_pop_front(&kept)))
        leat_list_push_back(&conn->in_flight, link);
}

/* Or may: not all are silent. */
static bool others_answer(struct leat_client *client)
{
    const struct leat_client_conn *conn = leat_client_conn_any_open(client);
    return !conn || !conn->suspect;
}

static void watch(struct leat_client *client)
{
    const struct leat_clock *clock = client->env->clock;
    uint64_t now = clock->now_us(clock->ctx), nearest = UINT64_MAX;
    bool any = false;
    if (!others_known(client)) return; /* the next request brings us here again */
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        uint64_t at = suspect_at(conn);
        conn->suspect = at <= now;
        if (!conn->suspect && at < nearest) nearest = at;
        any = any || conn->suspect;
    }
    if (!any) {
        /* The next silence begins anew, with short intervals. */
        client->ask.count = 0;
        if (client->ask.at_us > now + ASK_EVERY_US) client->ask.at_us = now + ASK_EVERY_US;
        if (nearest != UINT64_MAX) leat_client_watch_wake(client, nearest);
        return;
    }
    LEAT_LIST_EACH(&client->conns, link)
    {
        struct leat_client_conn *conn = LEAT_CONTAINER(link, struct leat_client_conn, link);
        if (conn->suspect && others_answer(client) && !LEAT_BUG(SILENT_HOLDS))
            questions_take(client, conn, now);
    }
    client->dirty = true; /* if needed, another node is connected to, and asked */
    if (!client->ask.out && now >= client->ask.at_us && others_answer(client))
        ask_send(client, now);
    uint64_t again = client->ask.at_us > now ? client->ask.at_us : now + ASK_EVERY_US;
    leat_client_watch_wake(client, again < nearest ? again : nearest);
}

static void watch_on_expired(struct leat_timer *timer)
{
    watch(timer->owner);
}

void leat_client_watch_init(struct leat_client *client)
{
    client->watch = (struct leat_timer){.on_expired = watch_on_expired, .owner = client};
}

void leat_client_watch_wake(struct leat_client *client, uint64_t at_us)
{
    if (leat_timer_armed(&client->watch) && client->watch.at_us <= at_us) return;
    const struct leat_clock *clock = client->env->clock;
    uint64_t now = clock->now_us(clock->ctx);
    leat_timer_start(client->timers, &client->watch, at_us > now ? at_us - now : 0);
}
