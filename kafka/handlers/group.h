/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to groups on their way: from a connection's core to the core of the group's home, and back.
 * What a group is and does stands in groups/classic.h. */
#ifndef LEAT_KAFKA_HANDLERS_GROUP_H
#define LEAT_KAFKA_HANDLERS_GROUP_H

#include "broker/front_logs.h"
#include "groups/classic.h"
#include "kafka/handlers/handlers.h"

/* Lies in the request's arena. One request may hold several, each for one group. */
struct leat_kafka_group_ask {
    struct leat_kafka_request *request;
    struct leat_groups_request
        home_request; /* kind and fields by the handler; the group's name by _start() */
    struct leat_classic_call call; /* home_request.classic, where that is not taken away */
    /** Answered, see home_request.rc. Runs on the connection's core, inside leat_kafka_group_ask_start() too. The
     * answer stays valid as long as the request. */
    void (*on_done)(struct leat_kafka_group_ask *ask);
    void *owner;
    uint32_t home;                  /* LIST: which; else found by the name */
    struct leat_kafka_string group; /* if the request has several asks: see below */
    bool duplicate;                 /* ... which another one names, too */

    /* group_home.c's */
    struct leat_kafka_group_ask *next; /* of the request */
    struct leat_core *home_core;       /* NULL: not on its way yet */
    struct leat_groups *waiting;       /* where it waits. Home's core */
    struct leat_mail mail, cancel;
    bool cancelling, answered, makes_home;
    size_t held;        /* bytes of the request's memory that hold the answer */
    size_t waits_bytes; /* ... that other requests may have to wait for */
    struct leat_stream_wait wait;
    struct leat_maker *maker; /* NULL: the homes are there */
};

/* Several asks of one request: a few asks are on their way at a time. */
struct leat_kafka_group_asks {
    struct leat_kafka_group_ask **asks; /* [count] */
    uint32_t count;
    void (*on_all)(struct leat_kafka_request *request, const struct leat_kafka_group_asks *asks);
    void *owner;

    /* group_home.c's */
    struct leat_kafka_request *request;
    uint32_t next, answered;
    bool going;
};

/** NULL: no memory. */
struct leat_kafka_group_ask *leat_kafka_group_ask_make(struct leat_kafka_request *request,
                                                       enum leat_groups_kind kind);
/** Ask the home. A group with an impossible name is BAD_NAME. Where no group has ever been, requests that may create
 * a group make its home, LIST and FETCH find nothing, and other requests are refused: of members with UNKNOWN_MEMBER,
 * the rest with NOT_FOUND. A home of another node is WRONG_GROUP_HOME. */
void leat_kafka_group_ask_start(struct leat_kafka_group_ask *ask, struct leat_kafka_string group);
/** NULL: no memory. The handler fills in the groups and homes of the asks. */
struct leat_kafka_group_asks *leat_kafka_group_asks_make(struct leat_kafka_request *request,
                                                         enum leat_groups_kind kind,
                                                         uint32_t count);
/** Start all asks; on_all follows, perhaps inside this call. A group that is named twice is refused (INVALID):
 * otherwise one request could cost any amount. */
void leat_kafka_group_asks_start(struct leat_kafka_group_asks *asks);
/** The Kafka error for a refusal of a group's home. */
int16_t leat_kafka_group_error(leat_err rc);
/** Copy the member id of a request into the ask; false: longer than any id that was ever given. */
bool leat_kafka_group_member_set(struct leat_kafka_group_ask *ask, struct leat_kafka_string member);
/** Make the stream of homes if it is not there, and wait until this core knows it: on_done then,
 * ask->home_request.rc. For FindCoordinator. */
void leat_kafka_group_home_make(struct leat_kafka_group_ask *ask);
/** The node that has the home of this name; 0: no known node. */
uint64_t leat_kafka_group_home_owner(const struct leat_core *core, struct leat_kafka_string group);

static inline struct leat_msg_string leat_kafka_group_text(struct leat_kafka_string text)
{
    return (struct leat_msg_string){text.text, text.bytes > 0 ? (uint32_t)text.bytes : 0};
}
static inline struct leat_kafka_string leat_kafka_group_string(struct leat_msg_string text)
{
    return (struct leat_kafka_string){text.text != NULL ? text.text : "", (int32_t)text.bytes};
}
static inline struct leat_kafka_bytes leat_kafka_group_bytes(struct leat_msg_string text)
{
    return (struct leat_kafka_bytes){(const uint8_t *)(text.text != NULL ? text.text : ""),
                                     (int32_t)text.bytes};
}
/* Where empty means that there is none. */
static inline struct leat_kafka_string leat_kafka_group_nullable(struct leat_msg_string text)
{
    if (text.bytes == 0) return (struct leat_kafka_string){NULL, -1};
    return (struct leat_kafka_string){text.text, (int32_t)text.bytes};
}

#endif
