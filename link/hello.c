/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: hello, its checks, and the move to the actor that hello names. The frames of hello and its answer have
 * right tags: a peer that is refused here has the cluster's key, and gets the reason.
 * Bodies: bodies.def. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "link/bodies.h"
#include "link/internal.h"
#include "wire/message.h"

#define LEAT_ROWS "link/bodies.def"
#include "wire/rows_make.h"

enum { HELLO_BYTES_MAX = 384, TO_COORDINATOR = -1 };

struct hello {
    uint32_t version_min, version_max, purpose;
    int64_t to;
    struct leat_link_identity peer;
    struct leat_link_opener opener;
};
/* Moves with a connection from the listening actor to the addressed actor. */
struct baggage {
    struct leat_link_hub *hub;
    unsigned to_actor;
    struct leat_mac *mac_in, *mac_out;
};

static const uint8_t no_cluster[16];

/* ---- bytes ---- */

static bool identity_take(const uint8_t cluster_id[16], struct leat_msg_string node,
                          uint64_t incarnation, uint32_t cores, struct leat_link_identity *out)
{
    memset(out, 0, sizeof *out);
    out->incarnation = incarnation;
    out->cores = cores;
    if (node.bytes > LEAT_LINK_NODE_NAME_BYTES_MAX || node.bytes == 0 || cores == 0 ||
        cores > LEAT_CORES_MAX)
        return false;
    for (uint32_t i = 0; i < node.bytes; i++) /* it is written into the node log */
        if ((uint8_t)node.text[i] < ' ' || node.text[i] == 0x7f) return false;
    memcpy(out->cluster_id, cluster_id, sizeof out->cluster_id);
    memcpy(out->node, node.text, node.bytes);
    return true;
}

static bool hello_read(const struct leat_frame *frame, struct hello *out)
{
    struct link_hello_said said;
    if (link_hello_said_decode(frame->control, frame->control_bytes, &said) != LEAT_OK)
        return false;
    out->version_min = said.version_min;
    out->version_max = said.version_max;
    out->purpose = said.purpose;
    out->to = said.to;
    out->opener = (struct leat_link_opener){.link = said.link, .connection = said.connection};
    return identity_take(said.cluster_id, said.node, said.incarnation, said.cores, &out->peer);
}

bool leat_link_hello_send(struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    uint8_t bytes[HELLO_BYTES_MAX];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    const struct leat_link_identity *identity = &link->links->identity;
    struct link_hello_said said = {
        .version_min = LEAT_NODE_VERSION_MIN,
        .version_max = LEAT_NODE_VERSION_MAX,
        .node = {identity->node, (uint32_t)strlen(identity->node)},
        .incarnation = identity->incarnation,
        .cores = identity->cores,
        .purpose = link->purpose,
        .to = link->to_actor == LEAT_ACTOR_COORDINATOR ? TO_COORDINATOR : (int64_t)link->to_actor,
        .link = (uint64_t)link->links->env->post->self << 32 | link->serial,
        .connection = ++link->hellos,
    };
    memcpy(said.cluster_id, identity->cluster_id, sizeof said.cluster_id);
    link_hello_said_write(&writer, &said);
    LEAT_ASSERT(!writer.overflow);
    link->hello_number = ++link->next_number;
    return leat_link_frame_send(link, LEAT_NODE_KIND_HELLO, 0, link->hello_number, bytes,
                                writer.used, NULL, NULL, false);
}

static bool hello_answer(struct leat_link *link, uint32_t request)
{
    uint8_t bytes[HELLO_BYTES_MAX];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    const struct leat_link_identity *identity = &link->links->identity;
    struct link_hello_answer said = {
        .version = link->version,
        .node = {identity->node, (uint32_t)strlen(identity->node)},
        .incarnation = identity->incarnation,
        .cores = identity->cores,
    };
    memcpy(said.cluster_id, identity->cluster_id, sizeof said.cluster_id);
    link_hello_answer_write(&writer, &said);
    LEAT_ASSERT(!writer.overflow);
    return leat_link_frame_send(link, LEAT_NODE_KIND_HELLO, LEAT_FRAME_ANSWER, request, bytes,
                                writer.used, NULL, NULL, false);
}

/* ---- checks, the same on both sides ---- */

static leat_err peer_check(const struct leat_links *links, const struct leat_link_identity *peer,
                           bool strangers, struct leat_error *error)
{
    const struct leat_link_identity *own = &links->identity;
    bool own_none = memcmp(own->cluster_id, no_cluster, sizeof no_cluster) == 0;
    bool peer_none = memcmp(peer->cluster_id, no_cluster, sizeof no_cluster) == 0;
    if (!own_none && !peer_none &&
        memcmp(own->cluster_id, peer->cluster_id, sizeof no_cluster) != 0)
        return leat_error_set(error, LEAT_E_WRONG_CLUSTER,
                              "node %.100s is of another cluster than node %.100s: check the "
                              "addresses given to both",
                              peer->node, own->node);
    if (!strangers && (own_none || peer_none))
        return leat_error_set(error, LEAT_E_STARTING, "node %.100s has joined no cluster yet",
                              own_none ? own->node : peer->node);
    if (!strangers && (own->incarnation == 0 || peer->incarnation == 0))
        return leat_error_set(error, LEAT_E_STARTING, "node %.100s is not up yet",
                              own->incarnation == 0 ? own->node : peer->node);
    if (leat_links_fenced(links, peer))
        return leat_error_set(error, LEAT_E_STALE_EPOCH,
                              "incarnation %" PRIu64 " of node %.100s was declared gone",
                              peer->incarnation, peer->node);
    return LEAT_OK;
}

static leat_err hello_check(const struct leat_links *links, const struct hello *hello,
                            struct leat_error *error)
{
    if (hello->version_min > LEAT_NODE_VERSION_MAX || hello->version_max < LEAT_NODE_VERSION_MIN)
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "node %.100s speaks formats %u to %u between nodes, this node %d to "
                              "%d: upgrade the older one",
                              hello->peer.node, hello->version_min, hello->version_max,
                              LEAT_NODE_VERSION_MIN, LEAT_NODE_VERSION_MAX);
    if (hello->purpose >= LEAT_LINK_PURPOSES || !links->services[hello->purpose].handler)
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "this node takes no connections of purpose %u here", hello->purpose);
    return peer_check(links, &hello->peer, links->services[hello->purpose].strangers, error);
}

/* ---- accepted ---- */

void leat_link_refuse(struct leat_link *link, uint32_t request, leat_err rc, const char *text)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    uint8_t bytes[LEAT_ERROR_TEXT_BYTES + 64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_error_encode(&writer, rc, text);
    leat_link_state_enter(link, LINK_CLOSING);
    link->since_us = leat_links_now(link->links);
    leat_links_due(link->links, link->since_us + link->links->silence_us);
    (void)leat_error_set(&link->why, rc, "%s", text); /* the code is the argument */
    LEAT_ASSERT(!writer.overflow);
    if (!leat_link_frame_send(link, LEAT_NODE_KIND_HELLO, LEAT_FRAME_ANSWER | LEAT_FRAME_ERROR,
                              request, bytes, writer.used, NULL, NULL, true))
        link->links->env->net->close(link->net);
}

static void *connection_moved(void *to_actor, struct leat_conn *conn, void *baggage_at,
                              const struct leat_conn_handler **out_handler)
{
    struct baggage *baggage = baggage_at;
    (void)to_actor;
    /* Pairs with leat_links_create(), which stores on this same actor. */
    struct leat_links *links =
        atomic_load_explicit(&baggage->hub->by_actor[baggage->to_actor], memory_order_acquire);
    struct leat_link *link = links ? leat_link_take(links, conn, out_handler) : NULL;
    if (link) {
        leat_link_state_enter(link, LINK_HELLO);
        link->mac_in = baggage->mac_in;
        link->mac_out = baggage->mac_out;
    } else {
        leat_mac_destroy(&baggage->mac_in);
        leat_mac_destroy(&baggage->mac_out);
    }
    leat_mem_free(baggage);
    return link;
}

static unsigned actor_of(const struct leat_links *links, int64_t to)
{
    if (to == TO_COORDINATOR) return LEAT_ACTOR_COORDINATOR;
    return (unsigned)((uint64_t)to % links->identity.cores);
}

/* The hello came so late that its opener has connected again. */
static bool later_is_up(const struct leat_link *link)
{
    const struct leat_links *links = link->links;
    for (uint32_t i = 0; i < links->table_capacity; i++) {
        const struct leat_link *other = links->table[i];
        if (other != NULL && other->state == LINK_UP && leat_link_is_earlier(link, other))
            return true;
    }
    return false;
}

enum leat_link_greeted leat_link_hello_take(struct leat_link *link, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    struct leat_links *links = link->links;
    struct leat_error error;
    struct hello hello;
    if (frame->kind != LEAT_NODE_KIND_HELLO || frame->flags != 0 || !hello_read(frame, &hello) ||
        hello.to < TO_COORDINATOR) {
        leat_link_complain(link, "its first frame with a tag is no hello");
        leat_link_refuse(link, frame->request, LEAT_E_INVALID,
                         "the first frame with a tag has to be a node's hello");
        return LINK_REFUSED;
    }
    unsigned to_actor = actor_of(links, hello.to);
    if (to_actor != links->env->post->self) {
        struct baggage *baggage = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *baggage);
        if (!baggage || !links->hub ||
            !atomic_load_explicit(&links->hub->by_actor[to_actor], memory_order_acquire)) {
            leat_mem_free(baggage);
            leat_link_refuse(link, frame->request, LEAT_E_STARTING,
                             "that part of the node is not up yet");
            return LINK_REFUSED;
        }
        *baggage = (struct baggage){.hub = links->hub,
                                    .to_actor = to_actor,
                                    .mac_in = link->mac_in,
                                    .mac_out = link->mac_out};
        link->mac_in = link->mac_out = NULL;
        /* The unread hello moves with the connection: the serving actor checks hello and its tag. */
        leat_mac_again(baggage->mac_in);
        links->env->net->move(link->net, to_actor, connection_moved, baggage);
        link->net = NULL;
        link->gone = true;
        (void)leat_link_leave(link); /* entered by on_bytes: freed here */
        return LINK_MOVED;
    }
    leat_err rc = hello_check(links, &hello, &error);
    if (rc != LEAT_OK) {
        leat_link_complain(link, error.text);
        leat_link_refuse(link, frame->request, rc, error.text);
        return LINK_REFUSED;
    }
    link->peer = hello.peer;
    link->opener = hello.opener;
    if (later_is_up(link)) {
        leat_link_refuse(link, frame->request, LEAT_E_CLOSED, "this link has a later connection");
        return LINK_REFUSED;
    }
    link->purpose = hello.purpose;
    link->handler = links->services[hello.purpose].handler;
    link->version = hello.version_max < LEAT_NODE_VERSION_MAX ? hello.version_max
                                                              : (uint32_t)LEAT_NODE_VERSION_MAX;
    if (hello_answer(link, frame->request)) return LINK_GREETED;
    leat_link_cut(link, LEAT_E_NO_MEMORY, "no memory to answer hello");
    return LINK_REFUSED;
}

/* ---- opened ---- */

leat_err leat_link_hello_answered(struct leat_link *link, const struct leat_frame *frame,
                                  struct leat_error *error)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    if (frame->kind != LEAT_NODE_KIND_HELLO || !(frame->flags & LEAT_FRAME_ANSWER))
        return leat_error_set(error, LEAT_E_INVALID, "%s does not answer as a Leat node does",
                              link->address);
    if (frame->flags & LEAT_FRAME_ERROR) {
        struct leat_msg_error refused;
        if (leat_msg_error_decode(frame->control, frame->control_bytes, &refused) != LEAT_OK ||
            refused.code == LEAT_OK)
            return leat_error_set(error, LEAT_E_INVALID, "%s refuses without a reason",
                                  link->address);
        return leat_error_set(error, refused.code, "%s refuses: %.*s", link->address,
                              (int)(refused.text.bytes > 200 ? 200 : refused.text.bytes),
                              refused.text.text);
    }
    struct leat_link_identity peer;
    struct link_hello_answer said;
    if (link_hello_answer_decode(frame->control, frame->control_bytes, &said) != LEAT_OK ||
        !identity_take(said.cluster_id, said.node, said.incarnation, said.cores, &peer) ||
        frame->request != link->hello_number || said.version < LEAT_NODE_VERSION_MIN ||
        said.version > LEAT_NODE_VERSION_MAX)
        return leat_error_set(error, LEAT_E_INVALID, "%s answers hello with something else",
                              link->address);
    leat_err rc = peer_check(link->links, &peer, link->stranger, error);
    /* On a link that was opened here STALE_EPOCH means that the peer refuses this node. A peer that is declared
     * crashed itself is not the wanted node. */
    if (rc == LEAT_E_STALE_EPOCH) return error->code = LEAT_E_NOT_FOUND;
    if (rc != LEAT_OK) return rc;
    if (link->expect_node && strcmp(link->expect_node, peer.node) != 0)
        return leat_error_set(error, LEAT_E_NOT_FOUND, "%s is node %.100s, not %.100s",
                              link->address, peer.node, link->expect_node);
    if (link->expect_incarnation && link->expect_incarnation != peer.incarnation)
        return leat_error_set(error, LEAT_E_NOT_FOUND,
                              "node %.100s is incarnation %" PRIu64 ", not %" PRIu64, peer.node,
                              peer.incarnation, link->expect_incarnation);
    link->peer = peer;
    link->version = said.version;
    return LEAT_OK;
}
