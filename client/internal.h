/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. */
#ifndef LEAT_CLIENT_INTERNAL_H
#define LEAT_CLIENT_INTERNAL_H

#include "base/assert.h"
#include "base/free_list.h"
#include "client.h"

enum {
    SLOT_CONTROL_BYTES =
        512, /* control bodies up to this lie in the slot, larger ones on the heap */
};
#define CLIENT_NO_INCARNATION 0u
#define CLIENT_LANE_ANY       (-1)

/* One frame under way. It outlives its request: the port may hold the header until the connection has closed, long
 * after the requester has its answer. */
struct leat_client_slot {
    struct leat_send send;
    struct leat_client_conn *conn;
    struct leat_iov iovs[1 + LEAT_CLIENT_PAYLOADS_MAX];
    uint8_t *big; /* heap, when the control body is larger than the slot's own room */
    uint8_t bytes[LEAT_FRAME_HEADER_BYTES + SLOT_CONTROL_BYTES];
};

/* README.md, "States". */
enum leat_client_conn_state { CONN_IDLE, CONN_CONNECTING, CONN_HELLO, CONN_OPEN, CONN_CLOSING };

struct leat_client_conn {
    struct leat_list link;
    struct leat_client *client; /* NULL: the client is gone, free in on_closed */
    struct leat_conn *net;
    enum leat_client_conn_state state; /* leat_client_conn_enter() */
    char address[LEAT_CLIENT_ADDRESS_BYTES];
    uint64_t incarnation; /* wanted, then learnt by hello */
    int64_t lane;
    uint32_t hello_number;
    bool was_open;           /* the server has answered hello once */
    bool suspect;            /* it owes an answer for too long: watch.c */
    bool doubted;            /* its node may be cut off from the cluster: others are asked first */
    uint64_t heard_us;       /* or begun */
    uint64_t open_before_us; /* else it is given up: no request's time limit is as short as that */
    struct leat_list queued; /* requests that wait for hello */
    struct leat_list in_flight;       /* oldest first */
    struct leat_free_list free_slots; /* struct leat_client_slot */
    uint32_t slots_out;
    char refused_text[160]; /* its answer to hello, or why it closes the connection, or "" */
};

struct leat_client {
    const struct leat_env *env;
    struct leat_timers *timers;
    struct leat_timer sweep, watch;
    struct {
        struct leat_request request;
        uint8_t control[8];
        bool out;
        uint32_t count; /* since some connection is suspect */
        uint64_t at_us; /* not before */
    } ask;
    struct leat_client_options options;
    char name[64];
    char addresses[LEAT_CLIENT_ADDRESSES_MAX][LEAT_CLIENT_ADDRESS_BYTES];
    uint32_t address_count, next_address, refused_in_a_row;
    leat_err refused_why;   /* the last one */
    char refused_text[160]; /* the server's text, or "" */
    uint64_t bootstrap_at_us;
    struct leat_list conns;
    uint32_t conn_count;
    struct leat_list waiting; /* requests for any node, no connection yet */
    struct leat_list lookups;
    struct leat_client_stream **streams;
    uint32_t stream_count, stream_capacity;
    struct {
        uint64_t incarnation;
        char address[LEAT_CLIENT_ADDRESS_BYTES]; /* "": it is down */
        char name[LEAT_CLIENT_NODE_NAME_BYTES];
        uint32_t lanes;
    } nodes[LEAT_CLIENT_NODES_MAX];
    uint32_t node_count;
    uint8_t cluster_id[16]; /* of the last metadata; zeros: none yet */
    uint32_t next_number;
    uint64_t nearest_us; /* earliest deadline among the requests sent in this turn */
    bool called;         /* by the network, since leat_client_take_called() */
    bool dirty;          /* the sweep's time must be thought over at the end of the turn */
    char last_text[LEAT_ERROR_TEXT_BYTES];
    char why[LEAT_ERROR_TEXT_BYTES]; /* of the last send that failed */
};

/** The step from one state to the next. */
static inline void leat_client_conn_enter(struct leat_client_conn *conn,
                                          enum leat_client_conn_state to)
{
    static const unsigned follow[] = {
        [CONN_IDLE] = 1u << CONN_CONNECTING,
        [CONN_CONNECTING] = 1u << CONN_HELLO | 1u << CONN_CLOSING,
        [CONN_HELLO] = 1u << CONN_OPEN | 1u << CONN_CLOSING,
        [CONN_OPEN] = 1u << CONN_CLOSING,
        [CONN_CLOSING] = 0,
    };
    LEAT_ASSERT(follow[conn->state] & 1u << to);
    conn->state = to;
}

/* conn.c */
struct leat_client_conn *leat_client_conn_find(struct leat_client *client, uint64_t incarnation,
                                               int64_t lane);
struct leat_client_conn *leat_client_conn_any_open(struct leat_client *client);
struct leat_client_conn *leat_client_conn_make(struct leat_client *client, const char *address,
                                               uint64_t incarnation, int64_t lane);
/** Connect. On failure the conn is gone. Nothing may be queued on it yet. */
leat_err leat_client_conn_start(struct leat_client_conn *conn) LEAT_NODISCARD;
void leat_client_conn_transmit(struct leat_client_conn *conn, struct leat_request *request);
/** Close the connection: its requests end when the port has closed it. Harmless on a closing connection. */
void leat_client_conn_cut(struct leat_client_conn *conn);
void leat_client_conn_destroy(struct leat_client_conn *conn);
/* watch.c */
void leat_client_watch_init(struct leat_client *client);
/** The connection's node has answered METADATA: does the node name itself as down? Then the client leaves the node. */
void leat_client_watch_self(struct leat_client_conn *conn);
/** Look at that time, at the latest. */
void leat_client_watch_wake(struct leat_client *client, uint64_t at_us);
/* client.c */
/** Where to try next: not where silence is. NULL: nowhere. A view until the next metadata. */
const char *leat_client_bootstrap_next(struct leat_client *client);
/** Is there another address to try than this one? */
bool leat_client_elsewhere(const struct leat_client *client, const char *address);
uint64_t leat_client_now(const struct leat_client *client);
/** Before the retry with that number, without the jitter. */
uint64_t leat_client_retry_pause_us(const struct leat_client *client, uint32_t attempt);
void leat_client_request_done(struct leat_request *request, leat_err rc,
                              const struct leat_frame *answer, const struct leat_error *error);
void leat_client_on_open(struct leat_client *client, struct leat_client_conn *conn);
/** said: the server's refusal of hello, or "". */
void leat_client_on_lost(struct leat_client *client, const char *address, const char *said,
                         bool was_up, leat_err why);
/* metadata.c */
/** The nodes of an answer to METADATA. false: it can't be read. */
bool leat_client_nodes_learn(struct leat_client *client, const struct leat_frame *answer);
/** The body of a METADATA request for one stream; NULL: for the nodes only. Returns its bytes. */
uint32_t leat_client_metadata_ask(void *out, size_t capacity, const char *name, bool may_create);
/** Lookups whose pause is over are sent again; `nearest` becomes the time of the next one, if it is earlier. */
void leat_client_lookups_retry(struct leat_client *client, uint64_t now, uint64_t *nearest);

#endif
