/* SPDX-License-Identifier: Apache-2.0 */
/* Links: framed messages between the nodes of one cluster, over the net port.
 *
 * Every actor that talks to other nodes (each core, the coordinator) has one `struct leat_links`. A link is a
 * connection and its lasting state. The opening side holds a lasting handle: the link connects, proves the cluster's
 * key, says hello, and connects again by itself after a loss. The accepting side has the link from on_up to on_down.
 * Once up, both sides may do the same: call, tell, answer.
 *
 * Frames are those of wire/frame.h, kinds from 256 up. Request number 0: no answer is expected. Bytes keep their
 * order in each direction. docs/cluster-protocol.md shows every message.
 */
#ifndef LEAT_LINK_LINK_H
#define LEAT_LINK_LINK_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/port.h"
#include "base/timer.h"
#include "crypto/mac.h"
#include "wire/frame.h"
#include "wire/msg.h"

enum {
    LEAT_NODE_VERSION_MIN = 3, /* of the format between nodes: 1 had no proof, 2 had other tags */
    LEAT_NODE_VERSION_MAX = 3,
    LEAT_LINKS_MAX = 1024,         /* of one actor, in both directions; strangers are not counted */
    LEAT_LINK_STRANGERS_MAX = 512, /* accepted connections that have not proved the key yet */
    LEAT_LINK_STRANGERS_OF_ADDRESS_MAX =
        LEAT_LINK_STRANGERS_MAX / 2, /* of strangers, from one address */
    LEAT_LINK_STRANGERS_MIN = 4,
    LEAT_LINK_CALLS_MAX = 4096,                       /* of one link: sent and not answered */
    LEAT_LINK_REQUESTS_MAX = 2 * LEAT_LINK_CALLS_MAX, /* of one link: taken and not answered; a
                                                       * peer that has more under way is cut off */
    LEAT_LINK_QUEUED_BYTES_MAX = 64 * 1024 * 1024,    /* of one link: given and not yet taken by the
                                                    * network (default; see the options) */
    LEAT_LINK_PAYLOADS_MAX = 63,                      /* gathered pieces of one message */
    LEAT_LINK_NODE_NAME_BYTES_MAX = 255,
    LEAT_LINK_ADDRESS_BYTES_MAX = 127,
    LEAT_LINK_FENCES_MAX = 1024, /* node names whose incarnations are remembered as gone */
    LEAT_LINKS_TIMERS = 1,       /* what a leat_links takes of its actor's timers */
};

/* Kinds of frames between nodes: below 256 they are the clients'. Never renumber. */
enum leat_node_kind {
    LEAT_NODE_KIND_HELLO = 256, /* link's own */
    LEAT_NODE_KIND_PING = 257,
    LEAT_NODE_KIND_NONCE = 258,
    LEAT_NODE_KIND_COORDINATOR = 272, /* to 319: coordinator/membership/state.h */
    LEAT_NODE_KIND_REPLICATION = 320, /* to 383: replication */
    LEAT_NODE_KIND_BROKER = 384,      /* to 447: broker to broker */
};

/* What a connection is for; named in hello. Never renumber. */
enum leat_link_purpose {
    LEAT_LINK_COORDINATE = 1, /* between coordinators: raft, applied state, forwarded requests */
    LEAT_LINK_REPLICATE = 2,  /* a core to its backup: control requests */
    LEAT_LINK_DATA = 3,       /* a core to its backup: bytes of segments (transport tcp) */
    LEAT_LINK_SERVE = 4,      /* broker to broker */
    LEAT_LINK_PURPOSES = 5,
};

struct leat_links; /* opaque: links.c */
struct leat_link;  /* opaque */

/* Where connections that are accepted find the actor they are for: one per process, in the
 * caller's storage, zeroed. Must outlive all leat_links. Thread: any (atomic). */
struct leat_link_hub {
    _Atomic(struct leat_links *) by_actor[LEAT_ACTORS];
};

/* The identity of a node, from its hello, which the cluster's key authenticates. Each leat_links has its own copy. */
struct leat_link_identity {
    uint8_t cluster_id[16]; /* zeros: of no cluster yet */
    char node[LEAT_LINK_NODE_NAME_BYTES_MAX + 1];
    uint64_t incarnation; /* 0: not up yet */
    uint32_t cores;
};

/* A request that was taken and will be answered later. A plain value; answering after the link has
 * gone is harmless. */
struct leat_link_ticket {
    uint32_t slot;       /* of the link in its leat_links */
    uint32_t request;    /* 0: nobody waits */
    uint64_t connection; /* which one: later ones have other numbers */
    uint16_t kind;
};

struct leat_link_handler {
    /** The peer has proved the cluster's key and its identity; from here on calls may be sent. Thread: owner. */
    void (*on_up)(void *owner, struct leat_link *link);
    /**
     * Gone, or (a link that this side opened) an attempt has failed; was_up says which. Calls under way have ended
     * with LEAT_E_CLOSED before. A link that this side opened tries again by itself; an accepted link is gone when
     * this returns. error names the cause: LEAT_E_CLOSED (refused by the network, reset, end), LEAT_E_TIMEOUT
     * (silence), LEAT_E_CORRUPT (a frame's tag is wrong), or the peer's reason for a refusal (LEAT_E_WRONG_CLUSTER,
     * also of another key, LEAT_E_UNSUPPORTED, LEAT_E_STALE_EPOCH: declared gone, …).
     */
    void (*on_down)(void *owner, struct leat_link *link, bool was_up,
                    const struct leat_error *error);
    /** A request, or (ticket->request 0) a message without answer. `frame` is a view until return.
     * Every ticket with a request number has to be answered once. */
    void (*on_request)(void *owner, struct leat_link *link, const struct leat_frame *frame,
                       const struct leat_link_ticket *ticket);
    void *owner;
};

/* What this actor accepts for a purpose. */
struct leat_link_service {
    const struct leat_link_handler *handler; /* NULL: refused by name; must outlive the links */
    /* Nodes of no cluster yet, and nodes that are not up yet, are let in too (coordinators must
     * meet before either is known). */
    bool strangers;
};

struct leat_links_options {
    const struct leat_env *env;
    const void *actor; /* as LEAT_ASSERT_OWNER() takes it */
    struct leat_timers *timers;
    struct leat_link_hub *hub; /* may be NULL: nothing is accepted */
    /* The cluster's key: a peer without it gets nothing but a nonce, and is never believed. Must outlive the links. */
    const struct leat_key *key;
    struct leat_link_identity identity;
    struct leat_link_service services[LEAT_LINK_PURPOSES]; /* by purpose */
    /* 0: defaults */
    uint64_t ping_us;    /* nothing heard for so long: ask (500 ms) */
    uint64_t silence_us; /* nothing heard for so long: cut (2 s); also for connect and hello */
    uint64_t retry_us_min, retry_us_max; /* 20 ms, 1 s; doubling, a random half taken off */
    uint64_t queued_bytes_max;
    uint32_t
        strangers_max; /* where there are few files; LEAT_LINK_STRANGERS_MAX at most. Half of one address */
};

/** Thread: the actor's. Errors: LEAT_E_NO_MEMORY. */
leat_err leat_links_create(const struct leat_links_options *options, struct leat_links **out_links,
                           struct leat_error *error) LEAT_NODISCARD;
/** Closes everything. No on_up, on_down or on_request runs any more; calls under way end with
 * LEAT_E_CANCELLED, as their connections close (so the actor's thread has to go on, or the port be
 * gone). Not from a callback of its own. */
void leat_links_destroy(struct leat_links **links);
/** The node has joined a cluster, or has come up: what later hellos say and demand. A new cluster
 * id cuts the links of nodes that are of another. Thread: owner. */
void leat_links_identity_set(struct leat_links *links, const struct leat_link_identity *identity);
const struct leat_link_identity *leat_links_identity(const struct leat_links *links);
/**
 * Incarnations of this node up to and including this one were declared gone: their hellos are
 * refused by name (LEAT_E_STALE_EPOCH), their links cut now, in both directions. Only grows.
 * Errors: LEAT_E_TOO_MANY (LEAT_LINK_FENCES_MAX names). Thread: owner.
 */
leat_err leat_links_fence(struct leat_links *links, const char *node,
                          uint64_t incarnation) LEAT_NODISCARD;
/** Asserts what is true of an actor's links between two turns: for leat_actor_ops.check. Thread: owner. */
void leat_links_check(const struct leat_links *links);

/** For net->listen() on the node address; acceptor: the leat_links of the actor that listens. A
 * connection moves to the actor that its hello names (core k: k mod this node's cores). */
void *leat_link_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler);

/* ---- links ---- */

struct leat_link_options {
    const char *address;         /* "HOST:PORT" of the peer's node port; copied */
    unsigned to_actor;           /* LEAT_ACTOR_CORE_0 + k or LEAT_ACTOR_COORDINATOR */
    unsigned purpose;            /* enum leat_link_purpose */
    const char *expect_node;     /* NULL: anyone; else another name is refused (LEAT_E_NOT_FOUND) */
    uint64_t expect_incarnation; /* 0: any; else another one is refused (LEAT_E_NOT_FOUND) */
    const struct leat_link_handler *handler; /* must outlive the link */
    bool stranger;                           /* the peer may be of no cluster yet, or not up */
};
/** A lasting handle; connecting begins at once. Errors: LEAT_E_TOO_MANY, LEAT_E_NO_MEMORY,
 * LEAT_E_INVALID (an address or purpose that is none). Thread: owner. */
leat_err leat_link_open(struct leat_links *links, const struct leat_link_options *options,
                        struct leat_link **out_link, struct leat_error *error) LEAT_NODISCARD;
/** Ends the handle (opened: for good; accepted: the connection). on_down does not run; calls under
 * way end with LEAT_E_CANCELLED, later. Allowed in its callbacks. NULLs the pointer. */
void leat_link_close(struct leat_link **link);
/** Reset the connection; on_down follows, later. An opened link then connects anew. */
void leat_link_cut(struct leat_link *link, leat_err rc, const char *why);
/** Connect to another address from the next attempt on; a connection that is up stays. */
leat_err leat_link_readdress(struct leat_link *link, const char *address) LEAT_NODISCARD;

/** The address is said to be reachable (again): an opened link that waits for its next attempt, or whose attempt
 * takes too long, tries now. Thread: owner. */
void leat_link_retry(struct leat_link *link);

bool leat_link_is_up(const struct leat_link *link);
/** Of the peer; valid while the link is up (cores as the peer says). */
const struct leat_link_identity *leat_link_peer(const struct leat_link *link);
/** Opened: the address it connects to. Accepted: "203.0.113.7:51234". */
const char *leat_link_address(const struct leat_link *link);
struct leat_links *leat_link_links(const struct leat_link *link);
bool leat_link_accepted(const struct leat_link *link);
unsigned leat_link_purpose_of(const struct leat_link *link);
/** The user's own pointer; NULL at first. */
void leat_link_user_set(struct leat_link *link, void *user);
void *leat_link_user(const struct leat_link *link);
/** Bytes given and not yet taken by the network. */
uint64_t leat_link_queued_bytes(const struct leat_link *link);
/** When something was last heard of the peer, on the clock port. */
uint64_t leat_link_heard_us(const struct leat_link *link);

/* ---- messages ---- */

/* Caller's storage, with control and payload bytes, until on_done. */
struct leat_link_call {
    struct leat_list list; /* the link's */
    uint16_t kind;
    bool one_way; /* no answer: on_done when the network has taken the bytes */
    const uint8_t *control;
    uint32_t control_bytes;
    const struct leat_iov *payload; /* gathered after the control body */
    unsigned payload_count;         /* at most LEAT_LINK_PAYLOADS_MAX */
    uint64_t timeout_us;            /* 0: none but the link's own end */
    /**
     * Exactly once, never inside leat_link_call(). On LEAT_OK `answer` is a view until return
     * (NULL for one_way). An ERROR answer gives its code and sentence. LEAT_E_TIMEOUT: whether it
     * took effect is unknown; a call whose bytes have not all left by then takes the connection
     * with it, since half a frame can't be taken back. LEAT_E_CLOSED: likewise unknown.
     */
    void (*on_done)(struct leat_link_call *call, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error);
    void *owner;
    /* the link's: */
    struct leat_link *link;
    uint32_t number;
    uint64_t deadline_us;
    bool sent, early, excused;
};
/** Errors (on_done never runs then): LEAT_E_CLOSED: the link is not up. LEAT_E_AGAIN: too many
 * calls or bytes wait. LEAT_E_TOO_LARGE: no frame can hold it. LEAT_E_NO_MEMORY. Thread: owner. */
leat_err leat_link_call(struct leat_link *link, struct leat_link_call *call) LEAT_NODISCARD;
/** A message without answer, copied. Errors: as leat_link_call(). Thread: owner. */
leat_err leat_link_tell(struct leat_link *link, uint16_t kind, const void *control,
                        uint32_t control_bytes) LEAT_NODISCARD;

/* Caller's storage with its payload until on_sent; the control body is copied. */
struct leat_link_answer {
    const void *control;
    uint32_t control_bytes;
    const struct leat_iov *payload;
    unsigned payload_count;
    /** The payload is free again. Exactly once when leat_link_answer_send() succeeded, never inside
     * it. */
    void (*on_sent)(struct leat_link_answer *answer, leat_err rc);
    void *owner;
};
/** Answer with success; control is copied. An answer to a link that has gone, or without a waiting call, is dropped.
 * Without memory for an answer the connection is closed. */
void leat_link_answer(struct leat_links *links, const struct leat_link_ticket *ticket,
                      const void *control, uint32_t control_bytes);
/** With payload. LEAT_E_CLOSED: the link has gone (on_sent never runs). Thread: owner. */
leat_err leat_link_answer_send(struct leat_links *links, const struct leat_link_ticket *ticket,
                               struct leat_link_answer *answer) LEAT_NODISCARD;
/** Refuse: a code and a sentence. */
void leat_link_answer_error(struct leat_links *links, const struct leat_link_ticket *ticket,
                            leat_err rc, const char *text);
/** The link that a ticket came from, or NULL when that connection has gone. */
struct leat_link *leat_link_of(struct leat_links *links, const struct leat_link_ticket *ticket);

#endif
