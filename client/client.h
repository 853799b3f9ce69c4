/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by producer and consumer: connections to a cluster, its metadata, and requests, which are routed to owners.
 *
 * One client = one actor (its own thread in libleat, an actor of the simulator in tests).
 * Connections: one per (node, lane), made when needed, named in hello; requests are matched to
 * answers by number; a lost connection fails its requests with LEAT_E_CLOSED ("unknown outcome")
 * and is made anew after a growing, jittered pause.
 */
#ifndef LEAT_CLIENT_CLIENT_H
#define LEAT_CLIENT_CLIENT_H

#include "base/list.h"
#include "base/port.h"
#include "base/timer.h"
#include "wire/frame.h"
#include "wire/message.h"

struct leat_client; /* opaque */

struct leat_client_options {
    const char *name;      /* shown by the server */
    const char *addresses; /* "host:port,host:port": any one is enough; "unix:PATH" is one, too */
    uint64_t request_timeout_us;
    uint64_t retry_us_min, retry_us_max;
    uint32_t streams_max;
    /* requests for any node fail once every address has refused, instead of waiting for their timeout: for people at
     * a terminal */
    bool fail_fast;
    const void *actor; /* the owner, for LEAT_ASSERT_OWNER() */
};
enum {
    LEAT_CLIENT_ADDRESSES_MAX = 16,
    LEAT_CLIENT_NODES_MAX = 256,
    LEAT_CLIENT_CONNS_MAX = 1024,
    LEAT_CLIENT_PAYLOADS_MAX = 63, /* gathered pieces of one request */
    LEAT_CLIENT_ADDRESS_BYTES = 128,
    LEAT_CLIENT_NODE_NAME_BYTES = 64,             /* kept of a name, for messages */
    LEAT_CLIENT_CONNECT_US_MAX = 3 * 1000 * 1000, /* from connect to the answer to hello */
    LEAT_CLIENT_QUICK_RETRIES = 40,
    LEAT_CLIENT_SILENT_US = 80 * 1000, /* then others are asked whether the node lives: watch.c */
};

leat_err leat_client_create(const struct leat_env *env, struct leat_timers *timers,
                            const struct leat_client_options *options,
                            struct leat_client **out_client,
                            struct leat_error *error) LEAT_NODISCARD;
/** Closes connections; waiting requests end with LEAT_E_CANCELLED. Not from a callback. When the
 * actor's thread goes on, what belongs to the connections is freed as they close. */
void leat_client_destroy(struct leat_client **client);
void leat_client_on_turn_end(struct leat_client *client);

/* One request. Caller's storage until on_done. */
struct leat_request {
    struct leat_list link; /* the client's */
    enum leat_kind kind;
    struct leat_log_ref
        log; /* where.stream != 0: goes to this log's owner and lane; else to any node */
    const uint8_t *control; /* borrowed until on_done */
    uint32_t control_bytes;
    const struct leat_iov *payload; /* borrowed until on_done */
    unsigned payload_count;
    uint64_t timeout_us;  /* 0: the client's */
    uint64_t patience_us; /* 0: LEAT_CLIENT_SILENT_US; more where the server waits on purpose */
    /** Exactly once. On LEAT_OK `answer` is a view until return. An ERROR frame: its code and
     * sentence in *error. */
    void (*on_done)(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error);
    void *owner;
    uint32_t number;
    uint64_t deadline_us, sent_us;
    bool sent; /* bytes may have left: when this is false a failure is definite */
    bool timed_out;
};
/** Send. The owner of the log must be known (leat_client_lookup()), else LEAT_E_UNKNOWN_STREAM.
 * LEAT_E_NOT_OWNER: its owner is no node that the metadata knows. on_done with LEAT_E_TIMEOUT
 * closes the connection, because a later answer must not meet a request that was given up. */
leat_err leat_client_send(struct leat_client *client, struct leat_request *request) LEAT_NODISCARD;
/** Why the last leat_client_send() failed, for people. A view until the next one. */
const char *leat_client_why(const struct leat_client *client);
/** Forget a request without payload: on_done does not run any more. Thread: owner. */
void leat_client_cancel(struct leat_client *client, struct leat_request *request);
/**
 * Take a request back, for an owner that closes while other owners still use the client.
 *
 * True: forgotten, as by leat_client_cancel(), and its payload is free. False: the connection may still hold the
 * payload, so the connection is closed, with all requests on it; on_done follows, never inside. Thread: owner.
 */
bool leat_client_withdraw(struct leat_client *client, struct leat_request *request) LEAT_NODISCARD;

/* Metadata of one stream, kept fresh. */
struct leat_client_log {
    struct leat_log_ref ref;
    uint64_t owner;
    struct leat_epoch epoch;
    uint32_t lane;
};
struct leat_client_stream {
    uint32_t id;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    struct leat_stream_settings settings;
    uint32_t log_count;
    struct leat_client_log *logs; /* streamlet-major: [streamlet * Q + log] */
};
/** Ask for a stream's owners, whether it is known or not; on_done may run with LEAT_E_UNKNOWN_STREAM. Retries
 * connections until timeout_us. The stream is the client's, valid until it is refreshed or the client destroyed. */
struct leat_client_lookup {
    struct leat_list link;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
    bool may_create;
    uint64_t timeout_us;
    void (*on_done)(struct leat_client_lookup *lookup, leat_err rc,
                    const struct leat_client_stream *stream, const struct leat_error *error);
    void *owner;
    /* the client's: */
    uint64_t deadline_us, retry_at_us;
    uint32_t attempts;
    struct leat_request request;
    uint8_t control[LEAT_STREAM_NAME_BYTES_MAX + 16];
};
void leat_client_lookup(struct leat_client *client, struct leat_client_lookup *lookup);
/** Forget a lookup that has not ended: on_done does not run any more. */
void leat_client_lookup_cancel(struct leat_client *client, struct leat_client_lookup *lookup);
const struct leat_client_stream *leat_client_stream(const struct leat_client *client,
                                                    const char *name);
/** Has the network called this client since the last call? For a thread that runs many clients and ends the turn only
 * of clients that were called. Thread: owner. */
bool leat_client_take_called(struct leat_client *client);
/** A pause for the n-th retry (0 = first): doubles from retry_us_min to retry_us_max, for the first
 * LEAT_CLIENT_QUICK_RETRIES with every tenth only. A random part, up to half, is taken off, so that clients that
 * failed together do not return together. */
uint64_t leat_client_pause_us(struct leat_client *client, uint32_t attempt);

#endif
