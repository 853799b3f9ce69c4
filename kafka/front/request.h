/* SPDX-License-Identifier: Apache-2.0 */
/* Requests under way, as handlers see them, and the table of all APIs. */
#ifndef LEAT_KAFKA_FRONT_REQUEST_H
#define LEAT_KAFKA_FRONT_REQUEST_H

#include "base/assert.h"
#include "base/node_log.h"
#include "broker/front.h"
#include "kafka/codec/errors.h"
#include "kafka/codec/messages.h"
#include "kafka/front/options.h"

enum {
    LEAT_KAFKA_IDLE_US = 600 * 1000 * 1000, /* as connections.max.idle.ms of Kafka */
    LEAT_KAFKA_FRAME_HEAD_BYTES = 4,        /* the length of what follows */
    LEAT_KAFKA_FRAME_BYTES_MAX = 8 * 1024 * 1024,
    LEAT_KAFKA_FRAME_BYTES_MIN = 8,                    /* key, version, correlation id */
    LEAT_KAFKA_REQUESTS_MAX = LEAT_FRONT_REQUESTS_MAX, /* under way on one core */
    LEAT_KAFKA_ANSWER_BYTES_MAX = 16 * 1024 * 1024,
};

enum leat_kafka_key {
#define API(name, key, first, last, flexible, entry, flags) LEAT_KAFKA_##name = (key),
#include "kafka/codec/apis.def"
#undef API
};

struct leat_kafka_request;
/** Answers by leat_kafka_answer(), now or later; exactly once. Thread: the connection's core. */
typedef void (*leat_kafka_handler)(struct leat_kafka_request *request);

enum leat_kafka_api_flags { LEAT_KAFKA_IN_PLACE = 1, LEAT_KAFKA_WAITS = 2 };
struct leat_kafka_api {
    int16_t key, first, last, flexible;
    const char *name; /* as in the tables: "api_versions" */
    leat_kafka_type_fn request, response;
    leat_kafka_handler handle;
    unsigned flags;
};

/* The requests that are served. apis.c owns the table and names every handler; door.c hands it to the lower
 * libraries, which know no handler. */
struct leat_kafka_table {
    const struct leat_kafka_api *apis; /* [count] in the order of apis.def */
    uint32_t count;
    /** NULL: not served. Thread: any. */
    const struct leat_kafka_api *(*find)(int16_t key);
    /** The core of the first partition that a produce or fetch request names. false: the request names no partition
     * of this node, or is another request. */
    bool (*home)(const struct leat_kafka_request *request, uint32_t *out_home);
};

/* A connection that speaks Kafka's protocol. */
struct leat_kafka_conn {
    struct leat_peer *peer;                  /* which it lies beside: leat_peer_own() */
    struct leat_kafka_request *first, *last; /* under way, in order of arrival */
    struct leat_kafka_request *held;         /* its frame is still in the port, half done */
    bool spread;                             /* off the core that listens */
    bool placed;                             /* on the core where it stays */
};

struct leat_kafka_request {
    struct leat_kafka_request *next; /* of the connection, in order of arrival */
    struct leat_kafka_conn *conn;
    struct leat_core *core; /* the connection's: handlers run there */
    const struct leat_kafka_api *api;
    int16_t version;
    int32_t correlation;
    struct leat_kafka_string client_id; /* in the arena */
    const void *body;                   /* the decoded request: a struct leat_kafka_NAME_request */
    const uint8_t *frame, *frame_first; /* IN_PLACE: where its bytes are now, and were at first */

    bool done;              /* answered by its handler; sent when all earlier ones are */
    bool silent;            /* nothing is sent (acks 0) */
    bool hold;              /* set by an IN_PLACE handler: the frame shall come again */
    bool handling, starved; /* inside its handler; which found no memory, see LEAT_KAFKA_WAITS */
    const void *response;

    /* For handlers. */
    struct leat_mail mail;
    void *state;
    /** May be set while unanswered: the connection has gone, and no client waits any more. The request still has to
     * be answered, then or later. */
    void (*on_abandoned)(struct leat_kafka_request *request);
    /** May be set while unanswered: all earlier requests of the connection are answered. */
    void (*on_turn)(struct leat_kafka_request *request);
    /** May be set when answering: send the answer yourself, in your turn (fetch). */
    void (*send)(struct leat_kafka_request *request);
    /** May be set: the request is about to be freed. */
    void (*on_freed)(struct leat_kafka_request *request);

    struct leat_kafka_arena arena; /* last: it is large, and not wiped */
};

/** Zeroed memory that lives as long as the request; NULL: a limit is reached. */
static inline void *leat_kafka_take(struct leat_kafka_request *request, size_t count, size_t bytes)
{
    LEAT_ASSERT_OWNER(request->core);
    return leat_kafka_arena_take(&request->arena, count, bytes);
}
/** The same for `count` structs of a type, with every member at its fallback. */
static inline void *leat_kafka_make(struct leat_kafka_request *request, size_t count, size_t bytes,
                                    void (*fallbacks)(void *zeros))
{
    uint8_t *made = leat_kafka_take(request, count, bytes);
    for (size_t i = 0; made != NULL && i < count; i++)
        fallbacks(made + i * bytes);
    return made;
}
/* LEAT_KAFKA_MAKE(request, metadata_response_topic, 3) -> struct leat_kafka_metadata_response_topic * */
#define LEAT_KAFKA_MAKE(request, entry, count)                                                     \
    ((struct leat_kafka_##entry *)leat_kafka_make(                                                 \
        request, count, sizeof(struct leat_kafka_##entry), leat_kafka_fallbacks_##entry))
/** A copy in the arena, terminated by 0; null stays null, and so does what does not fit. */
struct leat_kafka_string leat_kafka_keep(struct leat_kafka_request *request,
                                         struct leat_kafka_string text);

/* Of any result that has error_code and error_message; the sentence is copied. */
#define LEAT_KAFKA_REFUSE(request, out, code, sentence)                                            \
    ((void)((out)->error_code = (int16_t)(code)),                                                  \
     (void)((out)->error_message = leat_kafka_keep(request, leat_kafka_text(sentence))))

/**
 * The answer: a struct leat_kafka_NAME_response in the request's arena, or anything that outlives
 * it. It is encoded when all earlier requests of the connection have been answered; the request may
 * be gone when this returns at the end of the turn, never inside. NULL: there was no memory for one;
 * the connection is closed, or the request comes again when there is some (LEAT_KAFKA_WAITS).
 */
void leat_kafka_answer(struct leat_kafka_request *request, const void *response);
/** Close the connection: the request makes no sense, or can't be answered. Answers it. */
void leat_kafka_give_up(struct leat_kafka_request *request, const char *why);
static inline bool leat_kafka_abandoned(const struct leat_kafka_request *request)
{
    return !leat_peer_is_there(request->conn->peer);
}

/** Encode a whole answer, size and header included, at bytes; returns its length, which may be more than capacity:
 * then the bytes are of no use. gaps: see struct leat_kafka_writer. */
size_t leat_kafka_answer_encode(const struct leat_kafka_request *request, const void *response,
                                uint8_t *bytes, size_t capacity, struct leat_kafka_gap *gaps,
                                uint32_t gap_capacity, uint32_t *out_gap_count);

/* ---- a core's state for this front end: leat_front_own() ---- */
struct leat_kafka_core {
    struct leat_kafka_door *door;
    struct leat_stock *requests;
    struct leat_stock
        *memory; /* of arenas, for its lines alone: what is left of the share, in units */
    struct leat_kafka_arena_share share;
    size_t held;        /* of the share, by requests that wait for a group's other members */
    uint32_t begun;     /* by requests of many pieces: pieces.h */
    uint32_t next_core; /* for the next connection */
};
static inline struct leat_kafka_core *leat_kafka_core(const struct leat_core *core)
{
    struct leat_kafka_core *here = leat_front_own(core);
    LEAT_ASSERT_SLOW(here != NULL); /* there from the core's start to its end */
    return here;
}

struct leat_kafka_door {
    struct leat_door door; /* first */
    struct leat_kafka_options options;
    const struct leat_kafka_table *table;
};

/** conn.c: a new connection. */
void *leat_kafka_accept(void *acceptor, struct leat_conn *conn,
                        const struct leat_conn_handler **out_handler);

#endif
