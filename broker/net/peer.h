/* SPDX-License-Identifier: Apache-2.0 */
/* A connection on its core: its protocol, its waits, and the functions for all parts of the broker. Thread: its
 * core's. Functions for front ends, too, are in broker/front.h. */
#ifndef LEAT_BROKER_NET_PEER_H
#define LEAT_BROKER_NET_PEER_H

#include "base/list.h"
#include "base/port.h"
#include "broker/front.h"
#include "broker/net/output.h"
#include "broker/net/pace.h"
#include "broker/net/stock.h"
#include "broker/net/unpack.h"
#include "wire/frame.h"

struct leat_core;
struct leat_append_request;
struct leat_sharer;

struct leat_room_wait {
    struct leat_list by_log, by_time;
    uint64_t deadline_us;
    struct leat_peer *peer; /* either a peer or a request */
    struct leat_append_request *request;
};

enum leat_pause {
    LEAT_PAUSE_ROOM = 1,     /* the peer's append waits for room in a log */
    LEAT_PAUSE_REQUESTS = 2, /* too many requests under way */
    LEAT_PAUSE_SLOW = 4,     /* the peer does not take its answers */
    LEAT_PAUSE_STARVED = 8,  /* the peer waits in line for request structs */
    LEAT_PAUSE_CLOSING = 16, /* a last answer is being written */
    LEAT_PAUSE_TURN = 32, /* other connections' requests come first: the peer is called in turn */
};

/* Memory that a connection which takes its answers slowly has borrowed: data/lend.h. */
struct leat_borrower {
    struct leat_list waits;       /* for a buffer: struct leat_buffer_wait */
    struct leat_list line, rests; /* of its core */
    uint64_t rest_bytes;
    /* A slow peer gets no larger answer, except one batch; 0: the peer was not slow */
    uint32_t answer_bytes_max;
};
static inline void leat_borrower_init(struct leat_borrower *borrower)
{
    leat_list_init(&borrower->waits);
    leat_list_init(&borrower->line);
    leat_list_init(&borrower->rests);
}

struct leat_peer {
    const struct leat_protocol *protocol;
    struct leat_core *core;
    struct leat_conn *conn; /* NULL once closed */
    struct leat_list all, slow, owing, answers, cut;
    struct leat_list quiet; /* among strangers; later, among connections that may be idle */
    uint64_t quiet_since_us;
    uint32_t address;             /* among the node's */
    uint32_t reads;               /* of the core's reads: being sent to this peer */
    uint64_t address_number;      /* the same on all nodes: leat_key_number(). 0: other nodes' */
    struct leat_sharer *sharer;   /* the same, on this core */
    struct leat_list group_calls; /* its requests to consumer groups that are under way */
    struct leat_list limited;     /* its fetches that wait until it gives a read back */
    struct leat_list locators;    /* its locators, of which the first is at work */
    struct leat_borrower borrowed;
    unsigned paused;              /* enum leat_pause, or-ed */
    uint32_t requests;            /* under way; the peer lives until they are done */
    bool greeted, closing, heard; /* heard: since it has been quiet */
    uint8_t isolated_ticks;       /* of an isolated node, at which requests were under way */
    uint32_t moved_request;       /* while it moves to another core, which answers this request */
    uint64_t frame_since_us;
    struct leat_output_peer output;
    struct leat_stock_peer stock;
    size_t stalled_bytes; /* queued when last looked at */
    uint64_t stalled_since_us;

    /* Appends, answered in order. */
    struct leat_append_request *append_first, *append_last;
    struct leat_append_request *append_now; /* its frame is still in the port, half done */
    struct leat_room_wait room;
    struct leat_unpack_peer unpack;
    struct leat_pace_peer pace;
    char name[32]; /* from hello, for the node log */
};

/** The number of the peer's address, for requests to the coordinator. All requests that other nodes forward count as
 * one address. */
static inline uint64_t leat_peer_asks(const struct leat_peer *peer)
{
    return peer->address_number != 0 ? peer->address_number : UINT64_MAX;
}

/** A new connection: `peer` is zeroed, the beginning of what was allocated by leat_mem, and freed by its last
 * leat_peer_end(). false: refused, the caller frees it. */
bool leat_peer_open(struct leat_core *core, struct leat_peer *peer, struct leat_conn *conn,
                    const struct leat_protocol *protocol,
                    const struct leat_conn_handler **out_handler);
void leat_peer_pause(struct leat_peer *peer, enum leat_pause why);
void leat_peer_resume(struct leat_peer *peer, enum leat_pause why);
/** Send the frame at out (control body already at out + header). */
void leat_peer_send(struct leat_peer *peer, uint8_t *out, enum leat_kind kind, uint8_t flags,
                    uint32_t request, uint32_t control_bytes, uint32_t payload_bytes);
/** Send an ERROR answer; text NULL: the code's general sentence. */
void leat_peer_refuse(struct leat_peer *peer, enum leat_kind kind, uint32_t request, leat_err code,
                      const char *text);
void leat_peer_close_all(struct leat_core *core);
/** Bytes were taken: if it was slow and is not any more, go on with it. */
void leat_peer_drained(struct leat_peer *peer);
void leat_peer_tick(struct leat_core *core);
void leat_peer_slow_tick(struct leat_core *core);
/** The peer has been given bytes: from now on each tick looks whether the peer takes them. */
void leat_peer_owes(struct leat_peer *peer);
/** A part of a frame has come: the rest has to come in time. */
void leat_peer_expect(struct leat_peer *peer);
void leat_peer_expect_nothing(struct leat_peer *peer);
/** The peer is on a core now, as a stranger or known. Its time to be quiet begins. */
void leat_peer_quiet_begin(struct leat_peer *peer);
void leat_peer_quiet_end(struct leat_peer *peer);
/** A stranger has come: if there are too many strangers, the oldest is closed. */
void leat_peer_shed_strangers(struct leat_core *core);

#endif
