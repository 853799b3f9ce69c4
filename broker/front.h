/* SPDX-License-Identifier: Apache-2.0 */
/* What a front end sees of a broker: its node, its cores and its connections. A front end speaks another protocol than
 * Leat's own, by the same calls (kafka/). Streams, logs and records are in broker/front_logs.h. A front end includes
 * these two headers of broker/ and no other: tools/tidy refuses others.
 *
 * Thread: each function runs on the core that it is given, or on the core of the connection that it is given, unless it
 * says otherwise. What a function returns by pointer is the broker's, and is valid until the caller's callback returns,
 * unless it says otherwise.
 */
#ifndef LEAT_BROKER_FRONT_H
#define LEAT_BROKER_FRONT_H

#include "base/error.h"
#include "base/list.h"
#include "base/port.h"
#include "coordinator/coordinator.h"
#include "wire/frame.h"

struct leat_core;   /* one core's broker, an actor */
struct leat_peer;   /* a connection on its core */
struct leat_sharer; /* what one address has of one core: all its connections share it */
struct
    leat_stock; /* structs of one size for requests under way on one core, and who waits for them */

enum {
    LEAT_FIRST_FRAME_BYTES_MAX = 64 * 1024, /* before a connection has said who it is */
    LEAT_CORE_SCRATCH_BYTES = LEAT_FRAME_HEADER_BYTES + LEAT_CONTROL_BYTES_MAX,
    LEAT_PACE_TURN_US = 1000, /* of work in a turn; then nothing more begins */
    /* A front end's requests on one core: how many, and of how many bytes. The memory budget reckons with them. */
    LEAT_FRONT_REQUESTS_MAX = 4096,
    LEAT_FRONT_REQUEST_BYTES = 1792,
    LEAT_FRONT_CONN_BYTES = 40, /* what a front end keeps with a connection */
};

/* ---- the door that a node opens for a front end ---- */

struct leat_door {
    const char *address;   /* "HOST:PORT" to listen on */
    const char *advertise; /* what clients are told; NULL: what was bound */
    bool optional;         /* should the address not be free: warn, and go on without */
    /** What each core needs of its own; before anything is served. Thread: startup. */
    leat_err (*core_open)(struct leat_door *door, struct leat_core *core) LEAT_NODISCARD;
    /** After its connections. Also when core_open has failed. Thread: any, the core runs no more. */
    void (*core_close)(struct leat_door *door, struct leat_core *core);
    /** Its acceptor is core 0. Refuses until the node is up. */
    leat_accept_fn on_accept;
    char bound_address[128];     /* out; "": nobody listens */
    struct leat_error not_bound; /* out: why */
};

/* ---- the node ---- */

/* Strings are the node's, and live as long as it does. */
struct leat_front_node {
    const char *name, *rack;       /* rack: NULL when not said */
    uint64_t offsets_retention_us; /* of consumer groups without members; 0: for ever */
    uint64_t incarnation;          /* of this start */
    uint32_t cores;
    bool auto_create; /* clients may create streams by naming them */
    bool up;          /* requests are served */
    bool isolated;    /* other nodes may own its streamlets: clients are to ask other nodes */
    uint8_t cluster_id[16];
};
struct leat_front_node leat_front_node(const struct leat_core *core);
/** How many nodes of the cluster this core has heard of. Their numbers are 0 to that, and stay. */
uint32_t leat_front_node_count(const struct leat_core *core);
/** number: below leat_front_node_count(). */
const struct leat_node_info *leat_front_node_info(const struct leat_core *core, uint32_t number);
/** The number of the node whose newest incarnation this is; -1: none that is known. */
int64_t leat_front_node_number(const struct leat_core *core, uint64_t incarnation);
/** The same of this node itself; -1: the core has not heard of it yet. */
int64_t leat_front_self_number(const struct leat_core *core);

/* ---- a core ---- */

/** From 0 on. Thread: any. */
uint32_t leat_front_index(const struct leat_core *core);
/** How many the node has. Thread: any. */
uint32_t leat_front_cores(const struct leat_core *core);
/** Another core of the node: for mail, and to compare. Thread: any. */
struct leat_core *leat_front_core(const struct leat_core *core, uint32_t index);
/** Microseconds of the core's clock, which only goes forward. */
uint64_t leat_front_now(const struct leat_core *core);
/** Runs `deliver` on core number `to`, never inside. mail: the caller's, until then. */
void leat_front_mail(struct leat_core *core, uint32_t to, struct leat_mail *mail,
                     void (*deliver)(void *actor, struct leat_mail *mail));
/** The node stops: nothing new begins. */
bool leat_front_stops(const struct leat_core *core);
/** What the front end keeps for the core; NULL: nothing. Thread: startup, core. */
void *leat_front_own(const struct leat_core *core);
void leat_front_own_set(struct leat_core *core, void *own);
/** LEAT_CORE_SCRATCH_BYTES in which an answer is built. Any call of the broker may overwrite them. */
uint8_t *leat_front_scratch(struct leat_core *core);
/** How many bytes requests under way of a front end may take on this core. Thread: startup. */
uint64_t leat_front_memory_bytes(const struct leat_core *core);
/** Of so many structs for requests, how many the core has by its memory budget. Thread: startup. */
uint32_t leat_front_structs(const struct leat_core *core, uint32_t most);

/* ---- structs of requests ---- */

/** Of so many bytes each; *out_stock is the caller's. Errors: LEAT_E_NO_MEMORY. Thread: startup. */
leat_err leat_front_stock_open(struct leat_core *core, size_t element_bytes, uint32_t count,
                               struct leat_stock **out_stock) LEAT_NODISCARD;
/** NULL is fine. Thread: any, the core runs no more. */
void leat_front_stock_close(struct leat_stock **stock);
/** For a resource that is counted, and not taken as structs: so many are left for connections that wait. */
void leat_front_stock_left(struct leat_stock *stock, uint32_t left);
/** A struct for a request of a connection. only: the connection's only request, or the request that its other requests
 * wait for. NULL: the connection is paused, and its frame comes again at its turn. Contents: those of the last use. */
void *leat_stock_take_for(struct leat_stock *stock, struct leat_peer *peer, bool only);
/** peer: whose it was; NULL: gone. sharer: of the address that it was taken for. */
void leat_stock_give(struct leat_stock *stock, void *element, struct leat_peer *peer,
                     struct leat_sharer *sharer);
/** Wait in line for so many; the connection is paused. */
void leat_stock_wait(struct leat_stock *stock, struct leat_peer *peer, bool only, uint32_t count);

/* ---- connections ---- */

enum leat_handled {
    LEAT_HANDLED, /* the frame is consumed */
    LEAT_HELD,    /* the peer is paused; the same frame comes again */
    LEAT_LEFT,    /* consumed, and the connection is not this core's any more, or closing */
    LEAT_SHORT,   /* no whole frame is there yet */
};

/* What a connection speaks: the native protocol, or another front end's. */
struct leat_protocol {
    /** Take one frame from the front of the bytes. HANDLED, LEFT: *out_taken says how many bytes it
     * was; SHORT: *out_want says how many are needed to see it whole. */
    enum leat_handled (*take)(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                              size_t *out_taken, size_t *out_want);
    /** The connection is gone; the peer lives on while requests are under way. */
    void (*on_closed)(struct leat_peer *peer);
    /** The turn ends, and something is to be written: see leat_peer_answer_later(). */
    void (*answer)(struct leat_peer *peer);
    /** A connection without a request that is silent so long is closed, after twice that at most. 0: never. */
    uint64_t idle_us_max;
    /** The connection has come to another core. request: its moved_request. NULL: nothing is to be done. */
    void (*on_moved)(struct leat_peer *peer, uint32_t request);
};

/** A new connection, with own_bytes of zeros beside it for its protocol (LEAT_FRONT_CONN_BYTES at most). Its last
 * leat_peer_end() frees both. NULL: refused. protocol: outlives it. Thread: the core that listens. */
struct leat_peer *leat_peer_accepted(struct leat_core *core, struct leat_conn *conn,
                                     const struct leat_protocol *protocol, size_t own_bytes,
                                     const struct leat_conn_handler **out_handler);
/** What its protocol keeps: as long as the peer. Thread: any. */
void *leat_peer_own(struct leat_peer *peer);
/** The core that it is on. */
struct leat_core *leat_peer_core(const struct leat_peer *peer);
/** What its address has of its core: as long as the peer stays there. */
struct leat_sharer *leat_peer_sharer(const struct leat_peer *peer);
/* What a front end counts of an address on a core; zero at first. */
struct leat_front_share {
    uint64_t held;  /* bytes of its memory, by requests that wait for others */
    uint32_t begun; /* what its requests of many pieces have under way */
};
struct leat_front_share *leat_peer_share(const struct leat_peer *peer);
/** Its address as a number that is the same on all nodes; 0: it came by another node. */
uint64_t leat_peer_address_number(const struct leat_peer *peer);
/** For whom the coordinator is asked on its behalf: the number, and never 0. */
uint64_t leat_front_asks(const struct leat_peer *peer);
/** "HOST:PORT" where its client is; "" once it is closed. */
const char *leat_peer_client(const struct leat_peer *peer);
/** The name that its client gives itself, for the node log: the first one counts. text: copied. */
void leat_peer_name_note(struct leat_peer *peer, const char *text, size_t bytes);

/** There is a connection: it has not gone. */
bool leat_peer_is_there(const struct leat_peer *peer);
/** It is being closed. */
bool leat_peer_is_closing(const struct leat_peer *peer);
/** The connection is paused: the broker reads nothing more from it until it goes on. */
bool leat_peer_is_paused(const struct leat_peer *peer);
/** It has said who it is: leat_peer_known(). */
bool leat_peer_is_known(const struct leat_peer *peer);
/** Too many bytes wait to be taken by it. Puts it among the slow. */
bool leat_peer_is_slow(struct leat_peer *peer);
/** Its next answer waits for room: leat_output_wait(). */
bool leat_peer_waits_for_room(const struct leat_peer *peer);
/** The connection waits in line for structs of some stock. */
bool leat_peer_waits_for_structs(const struct leat_peer *peer);
/** Bytes of answers that the connection's client has not taken. Only while the connection is open. */
size_t leat_peer_unsent(const struct leat_peer *peer);
/** How many requests of the connection are under way. */
uint32_t leat_peer_requests(const struct leat_peer *peer);

/** Hand a connection on which nothing is under way to another core; it comes back to its protocol
 * with the bytes not taken. The caller returns LEAT_LEFT. */
void leat_peer_move(struct leat_peer *peer, uint32_t core);
/** The client has identified itself, as its protocol asks. */
void leat_peer_known(struct leat_peer *peer);
/** Say why, and close. Bytes not sent yet are lost. */
void leat_peer_close(struct leat_peer *peer, const char *why);
/** Tell why, in the native protocol, and close; to the node log as well. */
void leat_peer_refuse_and_close(struct leat_peer *peer, uint16_t kind, uint32_t request,
                                leat_err code, const char *text);
/** One request more is under way. */
void leat_peer_begin(struct leat_peer *peer);
/** A request is done; the peer may be freed by this call. */
void leat_peer_end(struct leat_peer *peer);
/** All other requests of the connection wait for the request that needs structs: it counts as the only one. */
void leat_peer_hurry(struct leat_peer *peer);

/* ---- answers ---- */

/** Its protocol's answer() is called at the end of this turn. */
void leat_peer_answer_later(struct leat_peer *peer);
/** Whole frames, copied. A connection that does not take its answers is closed. */
void leat_peer_send_bytes(struct leat_peer *peer, const void *bytes, size_t count);
/** An answer larger than the connection's copy buffer takes. buffer: taken, leat_mem_free(). */
void leat_peer_send_large(struct leat_peer *peer, uint8_t *buffer, size_t bytes);
/** Is there room for an answer of so many bytes, and is it the connection's turn? One that is larger than all of it
 * needs half. Ends what was kept for the connection. */
bool leat_output_fits(struct leat_peer *peer, size_t bytes);
/** Its next answer has to wait for that much room, which is kept for it at its turn; then its protocol's `answer` is
 * called again. asks_again: it was told to try again, and need not. */
void leat_output_wait(struct leat_peer *peer, size_t bytes, bool asks_again);

/* ---- how much is done for a connection in one turn of the loop ---- */

/* Work that is left of a request. Caller's storage until run(). */
struct leat_pace_step {
    struct leat_list link;
    void (*run)(struct leat_pace_step *step);
};
/** May it begin a request in this turn? At most one, and while there is time. false: it is paused, and its frame comes
 * again when it is its turn. */
bool leat_pace_begin(struct leat_peer *peer) LEAT_NODISCARD;
/** The handler has returned. */
void leat_pace_end(struct leat_peer *peer);
/** May it be written an answer in this turn? Of the request that began in it: yes. false: its protocol's answer() is
 * called when it is its turn. Followed by leat_pace_end(). */
bool leat_pace_answer(struct leat_peer *peer) LEAT_NODISCARD;
/** What its request has still to do, which waited for something that many may have waited for: now, from within its
 * handler, where there is time, or where the connection has gone; else at its turn. */
void leat_pace_run(struct leat_peer *peer, struct leat_pace_step *step,
                   void (*run)(struct leat_pace_step *step));
/** The rest of it is left for a later turn, from within run() or the handler. false: the connection has gone, or there
 * is no memory for its address; then it is done now. */
bool leat_pace_again(struct leat_peer *peer, struct leat_pace_step *step,
                     void (*run)(struct leat_pace_step *step)) LEAT_NODISCARD;

#endif
