/* SPDX-License-Identifier: Apache-2.0 */
/* What link's files share. */
#ifndef LEAT_LINK_INTERNAL_H
#define LEAT_LINK_INTERNAL_H

#include <string.h>

#include "base/assert.h"
#include "base/free_list.h"
#include "base/node_log.h"
#include "crypto/mac.h"
#include "link/link.h"

enum {
    LINK_SLOT_CONTROL_BYTES = 512, /* up to this in the slot itself, larger ones on the heap */
    LINK_SLOTS_KEPT_MAX = 512,     /* free ones, per leat_links */
    LINK_PING_US = 500 * 1000,
    LINK_SILENCE_US = 2 * 1000 * 1000,
    LINK_RETRY_US_MIN = 20 * 1000,
    LINK_RETRY_US_MAX = 1000 * 1000,
    LINK_RETRY_DOUBLINGS_MAX = 16,
    LINK_STALE_US =
        50 * 1000, /* an attempt that began before its peer was there: SYNs are sent again late */
    LINK_NONCE_FRAME_BYTES_MAX = 128,
    /* strangers, and connections that were cut just now */
    LINK_ENDING_MAX = 4 * LEAT_LINK_STRANGERS_MAX,
    /* Of a peer that has not proved anything: no frame of it is larger. Hello, or its refusal. */
    LINK_UNPROVED_FRAME_BYTES_MAX = 1024,
};

/* One frame under way. */
struct leat_link_slot {
    struct leat_send send;
    struct leat_link *link;
    struct leat_link_call *call;
    struct leat_link_answer *answer;
    size_t bytes_in_all;
    bool close_after;
    struct leat_iov iovs[1 + LEAT_LINK_PAYLOADS_MAX + 1];
    uint8_t *big;
    uint8_t tag[LEAT_TAG_BYTES];
    uint8_t bytes[LEAT_FRAME_HEADER_BYTES + LINK_SLOT_CONTROL_BYTES];
};

/* README.md, "States". */
enum leat_link_state {
    LINK_WAITING,    /* opened: for its next attempt */
    LINK_CONNECTING, /* opened */
    LINK_NONCE,      /* opened: a nonce is sent; accepted: none has come yet */
    /* there are keys; the peer has not proved yet that it has them. Opened: hello is sent; accepted: no hello has
     * come */
    LINK_HELLO,
    LINK_UP,
    LINK_CLOSING, /* refused or cut: on_closed follows */
};

/* The link of the peer that a connection belongs to, and the connection's number among those of this link. 0: unknown,
 * as the hello of an earlier version does not say so. */
struct leat_link_opener {
    uint64_t link, connection;
};

struct leat_link {
    struct leat_links *links;
    struct leat_conn *net; /* NULL: none */
    const struct leat_link_handler *handler;
    void *user;
    enum leat_link_state state; /* leat_link_state_enter() */
    bool accepted, was_up, stranger;
    struct leat_list strange;        /* in links->strangers, or alone */
    uint8_t key[LEAT_NET_KEY_BYTES]; /* of the address, if accepted */
    /* NULL before there are keys. Of one connection. */
    struct leat_mac *mac_in, *mac_out;
    uint8_t said[2 * LINK_NONCE_FRAME_BYTES_MAX]; /* what the keys come from: both NONCE frames */
    uint32_t said_bytes;
    bool gone;        /* closed by its user: freed as soon as nothing refers to it */
    unsigned entered; /* callbacks of this link that run now */
    uint32_t slot;    /* in links->table */
    uint64_t connection;
    unsigned purpose, to_actor;
    char address[LEAT_LINK_ADDRESS_BYTES_MAX + 1];
    char *expect_node;
    uint64_t expect_incarnation;
    struct leat_link_identity peer;
    struct leat_link_opener opener; /* accepted: as its hello says */
    uint32_t serial;                /* opened: among all links that this actor opened */
    uint64_t hellos;                /* opened: sent so far, one per connection */
    uint32_t version;
    uint32_t next_number, hello_number;
    struct leat_list calls; /* oldest first */
    uint32_t call_count, request_count;
    uint64_t queued_bytes;
    uint32_t slots_out;
    uint32_t attempts; /* failed in a row */
    uint64_t try_at_us, since_us, heard_us, pinged_us;
    /* So long this actor stood still itself, since the peer was heard at late_of_us. */
    uint64_t late_us, late_of_us;
    struct leat_error why; /* the first cause of the connection's end */
};

struct leat_link_fence {
    char node[LEAT_LINK_NODE_NAME_BYTES_MAX + 1];
    uint64_t incarnation;
};

#define LEAT_LINK_OF_AN_OLDER_VERSION                                                              \
    "its first frame is not that of a node, or of one of an older version"

/* An address that strangers come from. */
struct leat_link_origin {
    uint8_t key[LEAT_NET_KEY_BYTES]; /* of IPv6 a /56 */
    uint32_t count;
};

struct leat_links {
    const struct leat_env *env;
    const void *actor; /* whose they are */
    const struct leat_key *key;
    struct leat_timers *timers;
    struct leat_link_hub *hub;
    struct leat_link_identity identity;
    struct leat_link_service services[LEAT_LINK_PURPOSES];
    uint64_t ping_us, silence_us, retry_us_min, retry_us_max, queued_bytes_max;
    struct leat_timer timer;
    uint64_t next_us; /* what the timer is armed for; UINT64_MAX: not */
    bool sweeping, closing;
    struct leat_link **table;
    uint32_t table_capacity, count;
    struct leat_list strangers; /* oldest first */
    uint32_t stranger_count, origin_count, strangers_max;
    struct leat_link_origin origins[LEAT_LINK_STRANGERS_MAX];
    uint64_t next_connection;
    uint32_t opened;                  /* links, so far */
    struct leat_free_list free_slots; /* struct leat_link_slot */
    uint32_t free_slot_count;
    struct leat_link_fence *fences;
    uint32_t fence_count, fence_capacity;
    struct leat_node_log_sum refused;
};

static inline uint64_t leat_links_now(const struct leat_links *links)
{
    return links->env->clock->now_us(links->env->clock->ctx);
}

/** The step from one state to the next. */
static inline void leat_link_state_enter(struct leat_link *link, enum leat_link_state to)
{
    static const unsigned follow[] = {
        [LINK_WAITING] = 1u << LINK_WAITING | 1u << LINK_CONNECTING | 1u << LINK_NONCE,
        [LINK_CONNECTING] = 1u << LINK_NONCE | 1u << LINK_CLOSING,
        [LINK_NONCE] = 1u << LINK_HELLO | 1u << LINK_CLOSING,
        [LINK_HELLO] = 1u << LINK_UP | 1u << LINK_CLOSING,
        [LINK_UP] = 1u << LINK_CLOSING,
        [LINK_CLOSING] = 1u << LINK_CLOSING | 1u << LINK_WAITING,
    };
    LEAT_ASSERT(follow[link->state] & 1u << to);
    link->state = to;
}

/** Is `other` an earlier connection of the same link of the peer? Both were accepted. Without an incarnation they may
 * be of two processes, each of which counts from 1. */
static inline bool leat_link_is_earlier(const struct leat_link *other, const struct leat_link *link)
{
    LEAT_ASSERT_OWNER(link->links->actor);
    return link->opener.link != 0 && other->opener.link == link->opener.link &&
           other->opener.connection < link->opener.connection && link->peer.incarnation != 0 &&
           other->peer.incarnation == link->peer.incarnation &&
           strcmp(other->peer.node, link->peer.node) == 0;
}

/* life.c */
struct leat_link *leat_link_make(struct leat_links *links);
/** Callbacks of a link are bracketed: what was closed meanwhile is freed at the end. */
void leat_link_enter(struct leat_link *link);
/** False: the link is gone. */
bool leat_link_leave(struct leat_link *link);
/** Free a link that is gone, or was never opened; with the last link also its struct leat_links, if that closes. */
void leat_link_free(struct leat_link *link);
void leat_links_free_if_empty(struct leat_links *links);
void leat_links_due(struct leat_links *links, uint64_t at_us);
void leat_link_retry_later(struct leat_link *link);
/** Into the node log, with a limit on the rate. */
void leat_link_complain(struct leat_link *link, const char *text);

/* fences.c */
bool leat_links_fenced(const struct leat_links *links, const struct leat_link_identity *peer);

/* conn.c */
/** A link for a connection that was accepted here, or moved here. NULL: no more of them, no memory. */
struct leat_link *leat_link_take(struct leat_links *links, struct leat_conn *conn,
                                 const struct leat_conn_handler **out_handler);
extern const struct leat_conn_handler leat_link_conn_handler;
void leat_link_connect(struct leat_link *link);

/* strangers.c */
/** An accepted connection; another one is cut where there are too many. */
void leat_link_stranger_begin(struct leat_link *link);
/** The stranger has proved itself, or ends. Harmless on any other link. */
void leat_link_stranger_end(struct leat_link *link);

/* prove.c */
/** Send ours; in answer to `request` when accepted. False: no memory. */
bool leat_link_nonce_send(struct leat_link *link, uint32_t request);
/** The first frame, whose bytes are also given: then there are keys and state LINK_HELLO, or it was cut. */
void leat_link_nonce_take(struct leat_link *link, const struct leat_frame *frame,
                          const uint8_t *bytes);
/** Is the frame's tag right? The tag is taken off. False: it was cut. */
bool leat_link_frame_check(struct leat_link *link, struct leat_frame *frame,
                           const uint8_t *bytes) LEAT_NODISCARD;
/** Of a connection that has ended. */
void leat_link_keys_drop(struct leat_link *link);

/* hello.c */
/** Send ours. False: no memory. */
bool leat_link_hello_send(struct leat_link *link);
enum leat_link_greeted { LINK_GREETED, LINK_REFUSED, LINK_MOVED };
/** The first frame with a tag of an accepted connection. */
enum leat_link_greeted leat_link_hello_take(struct leat_link *link, const struct leat_frame *frame);
/** The answer to ours. */
leat_err leat_link_hello_answered(struct leat_link *link, const struct leat_frame *frame,
                                  struct leat_error *error) LEAT_NODISCARD;
/** Tell the peer why, then close. */
void leat_link_refuse(struct leat_link *link, uint32_t request, leat_err rc, const char *text);

/* send.c */
bool leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags, uint32_t number,
                          const void *control, uint32_t control_bytes, struct leat_link_call *call,
                          struct leat_link_answer *answer, bool close_after);
void leat_link_answered(struct leat_link *link, struct leat_link_call *call,
                        const struct leat_frame *frame);
/** This actor ran late itself: each call has at least until `until_us`, once. */
void leat_link_calls_excuse(struct leat_link *link, uint64_t until_us);
void leat_link_calls_expire(struct leat_link *link, uint64_t now_us, uint64_t *next_us);
/** All calls end. */
void leat_link_calls_fail(struct leat_link *link, leat_err rc, const char *why);

/* slots.c */
/** With room for a frame's header and control. NULL: no memory. */
struct leat_link_slot *leat_link_slot_take(struct leat_links *links, uint32_t control_bytes);
void leat_link_slot_give(struct leat_links *links, struct leat_link_slot *slot);
void leat_links_slots_free(struct leat_links *links);

#endif
