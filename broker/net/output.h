/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a core's connections may hold for answers that they have not taken and for calls under way: one
 * account, of which each connection has a share, and each address half. A connection that holds more than its share
 * waits without making other connections wait: it is not read from. An answer without room waits in a line (other
 * front ends), or is refused by name while its connection waits in line for the room (native calls); small answers
 * always go out. The last part of the account is for answers that are not large, of connections that have taken all
 * earlier answers. Another part is for addresses that take their answers; such addresses also come first where
 * answers wait. Private to broker/; functions that front ends call are in broker/front.h. */
#ifndef LEAT_BROKER_NET_OUTPUT_H
#define LEAT_BROKER_NET_OUTPUT_H

#include "base/list.h"
#include "base/types.h"
#include "broker/front.h"
#include "broker/net/addresses.h"
#include "broker/net/line.h"

struct leat_core;
struct leat_peer;

enum {
    LEAT_OUTPUT_BYTES_MIN = 4 * 1024 * 1024, /* of a core; a 32nd of the budget in all */
    LEAT_OUTPUT_BYTES_MAX = 64 * 1024 * 1024,
    LEAT_OUTPUT_SHARES = 8,             /* of the account: no connection has more than one */
    LEAT_OUTPUT_SMALL_BYTES = 1024,     /* such answers, and refusals, need no room */
    LEAT_OUTPUT_LAST_BYTES = 16 * 1024, /* such answers may have the last part of the account */
    LEAT_OUTPUT_CALL_BYTES = 4096,      /* such calls need none: their number has a limit */
    /* Then a connection that waits for room is closed by name */
    LEAT_OUTPUT_WAIT_US = 10 * 1000 * 1000,
    /* While other connections find no room, a connection that holds room has to take all bytes that it owed, or
     * LEAT_OUTPUT_OWE_RATE, within each such time. So connections that wait outlast connections that only hold room,
     * and the look at these each second. */
    LEAT_OUTPUT_OWE_US = LEAT_OUTPUT_WAIT_US / 2,
    LEAT_OUTPUT_OWE_RATE = 64 * 1024,  /* of bytes, for each second of LEAT_OUTPUT_OWE_US */
    LEAT_OUTPUT_LAST_US = 1000 * 1000, /* likewise, of an answer in the last part */
    LEAT_OUTPUT_STRUCTS_US =
        2 * 1000 * 1000, /* ... while other connections wait for structs of requests: stock.h */
    /* Room is kept so long for a connection whose turn came and that does not ask again */
    LEAT_OUTPUT_KEEP_US = 2 * 1000 * 1000,
    /* So long a late address comes after other addresses */
    LEAT_OUTPUT_LATE_US = 10 * 60 * 1000 * 1000,
};
/* Connections that wait for room: for the last part; for the rest; likewise, of a late address. */
enum { LEAT_OUTPUT_LINE_LAST, LEAT_OUTPUT_LINE, LEAT_OUTPUT_LINE_LATE, LEAT_OUTPUT_LINES };

/* A burst at once, then so many a second. Zero: no request yet. */
struct leat_rate {
    uint64_t full_us; /* when a whole burst may come again */
};
struct leat_rate_limit {
    uint32_t burst, per_second;
};
/** So many more? Thread: owner's. */
bool leat_rate_has(const struct leat_rate *rate, uint64_t now_us, struct leat_rate_limit limit,
                   uint32_t count);
bool leat_rate_take(struct leat_rate *rate, uint64_t now_us, struct leat_rate_limit limit,
                    uint32_t count);

/* Of a core. */
struct leat_output {
    uint64_t bytes_max;
    uint64_t held; /* by calls and large answers; copies of small ones are the port's */
    uint64_t kept; /* for connections whose turn came, until they ask again */
    /* Bytes of the last part that are held by connections that have not taken its answers, or not asked again */
    uint64_t last;
    struct leat_line lines[LEAT_OUTPUT_LINES];
    struct leat_list keepers; /* struct leat_output_peer.keep, the oldest first */
    struct leat_list lasts;   /* struct leat_output_peer.lasts */
    bool full;                /* at the last tick there was no room, or `refused` was set */
    bool refused;             /* a connection found no room since the last tick */
    /* When an address last let an answer lie while other connections found no room, in seconds; 0: never. Connections
     * of the address may have been closed since, and new connections be there. */
    uint32_t late_s[LEAT_ADDRESS_BUCKETS];
};
/* Of a connection. */
struct leat_output_peer {
    struct leat_list wait, keep, lasts;
    size_t wanted; /* of the answer that waits */
    uint64_t waits_since_us, kept_since_us;
    uint64_t kept;   /* room that is kept for this answer */
    uint32_t last;   /* of the last part */
    uint8_t line;    /* in which it waits */
    bool promised;   /* the connection has a piece of the last part, and has not asked again yet */
    bool called;     /* its turn was in vain: the connection keeps its place in line */
    bool asks_again; /* the connection was told to try again, and no answer waits for it */
    /* Since when the connection has owed bytes, while there was no room; 0: it owes none */
    uint64_t owes_since_us;
    /* The network's count of taken bytes when all bytes that were owed then are taken */
    uint64_t due_bytes;
    uint64_t due_us; /* the time in which they have to be taken */
    uint64_t held;
};

/* Of an address. */
struct leat_output_sharer {
    uint64_t held, kept, last;
    struct leat_queue queues[LEAT_OUTPUT_LINES];
};

void leat_output_init(struct leat_core *core);
/** Does the peer hold more than its share, or anything while there is no room? */
bool leat_output_is_over(const struct leat_peer *peer);
/** Hold so many bytes for a call of the peer. false: there is no room; a call that is larger than the whole account
 * needs half of it. leat_output_give() gives the bytes back. */
bool leat_output_take(struct leat_peer *peer, size_t bytes);
/** The same without a check of the room: for an answer that can't be taken back. */
void leat_output_add(struct leat_peer *peer, size_t bytes);
void leat_output_give(struct leat_peer *peer, size_t bytes);
/** Do the peer's calls hold more than its share? */
bool leat_output_holds_share(const struct leat_peer *peer);
static inline bool leat_output_crowded(const struct leat_output *output)
{
    for (unsigned line = 0; line < LEAT_OUTPUT_LINES; line++)
        if (!leat_line_empty(&output->lines[line])) return true;
    return false;
}
/** The peer goes. */
void leat_output_leave(struct leat_peer *peer);
/** There may be room again: go on with connections that wait. */
void leat_output_resume(struct leat_core *core);
/** Once a second: close connections that have waited too long, or that keep others waiting. */
void leat_output_tick(struct leat_core *core);

#endif
