/* SPDX-License-Identifier: Apache-2.0 */
/* How much is done for a connection in one turn of the event loop, and which connections come first where not all get
 * their turn: for requests other than appends and fetches, of any front end, and their answers. Private to broker/;
 * functions that front ends call are in broker/front.h.
 * Thread: the core's. */
#ifndef LEAT_BROKER_NET_PACE_H
#define LEAT_BROKER_NET_PACE_H

#include "base/port.h"
#include "broker/front.h"
#include "broker/net/turns.h"

struct leat_core;
struct leat_peer;

enum {
    LEAT_PACE_COST_US_MIN = 4, /* of a request or answer, however small */
    LEAT_PACE_CALLED_MAX = 16, /* connections that wait, called in one turn */
    /* Cost of a microsecond on the clocks of turns.h: a round there is a turn here */
    LEAT_PACE_COST_OF_US = 1024
};

/* Of a core. */
struct leat_pace {
    struct leat_turns addresses;
    uint64_t turn;    /* its number */
    int64_t left_us;  /* of this turn */
    uint64_t from_us; /* when the request began that is being handled */
    bool inside;      /* a request is being handled */
    uint32_t width;   /* so many are called in a turn: as long as what they ask for is cheap */
    struct leat_mail mail;
    bool mailed;
};
/* Of a connection. */
struct leat_pace_peer {
    struct leat_turn turn;
    uint64_t begun_in,
        answered_in; /* turns: in which its last request began, its last answer was written */
    bool frame_due, answer_due; /* the connection was called: its next request, answer goes first */
    bool answer_waits;
    struct leat_list steps; /* struct leat_pace_step */
};

void leat_pace_init(struct leat_core *core);
void leat_pace_peer_init(struct leat_pace_peer *pace);
void leat_pace_turn_end(struct leat_core *core);
/** The peer goes from this core. */
void leat_pace_forget(struct leat_peer *peer);

#endif
