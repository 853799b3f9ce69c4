/* SPDX-License-Identifier: Apache-2.0 */
/* Where logs begin and end, and where a time is in them: for requests of any front door. Private to
 * broker/ and kafka/. */
#ifndef LEAT_BROKER_DATA_LOCATE_H
#define LEAT_BROKER_DATA_LOCATE_H

#include "broker/data/confirm.h"
#include "broker/data/lend.h"
#include "broker/net/core.h"

/* Where the log begins and ends of whom a place was asked that it does not have. */
struct leat_locate_range {
    struct leat_position first, end;
};

/* Logs are asked one after the other, each on its own core. Caller's storage. One locator of a connection is at
 * work at a time, in one callback a core looks at one log only, and addresses have turns at that: so who asks for
 * many places, on however many connections, makes nobody wait for more than one. */
struct leat_locator {
    struct leat_core *core;
    struct leat_peer *peer; /* on whose behalf */
    uint32_t count;
    struct leat_msg_locate *asked;    /* [count], borrowed until on_done */
    struct leat_msg_located *found;   /* [count], likewise: code, offset, timestamp_ms, position */
    struct leat_epoch *epochs;        /* [count], of LEAT_LOCATE_EPOCH; NULL: not wanted */
    struct leat_locate_range *ranges; /* [count], of LEAT_LOCATE_POSITION; NULL: not wanted */
    void (*on_done)(struct leat_locator *locator); /* never from within leat_locator_start() */
    void *owner;
    /* its own */
    uint32_t at;
    uint64_t address; /* its peer's */
    struct leat_core *home;
    struct leat_list link, line; /* of its peer's locators; of the core of a log */
    struct leat_list mates;      /* of its address, behind it in that line */
    struct leat_mail mail;
    struct leat_buffer_wait buffer_wait;
    void *buffer; /* while a log is read whose bytes have left memory */
    struct leat_confirm confirm;
    uint32_t epoch; /* of the owner, when its log was asked */
    struct leat_locate_op op;
};
/** The caller has set everything down to owner. Thread: core, as on_done. */
void leat_locator_start(struct leat_locator *locator);

void leat_call_locate(struct leat_peer *peer, const struct leat_frame *frame);

#endif
