/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a core's connections may hold for answers that they have not taken and for calls under way: one account,
 * of which each connection has a share, and each address half. Who holds more waits without making others wait: it is
 * not read from. An answer for which there is no room waits in a line (other front doors), or is refused by name while
 * its connection stands in line for it (native calls); small ones always go out. A part of the account is for answers
 * that are not large, of connections that have taken all others, and another for addresses that take what they are
 * given, which also come first where answers wait. Private to broker/; what front ends call is in broker/front.h. */
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
    LEAT_OUTPUT_SHARES = 8,                 /* no connection has more than one of so many */
    LEAT_OUTPUT_SMALL_BYTES = 1024,         /* such answers, and refusals, need no room */
    LEAT_OUTPUT_LAST_BYTES = 16 * 1024,     /* such answers may have the last part of the account */
    LEAT_OUTPUT_CALL_BYTES = 4096,          /* such calls need none: their number has a limit */
    LEAT_OUTPUT_WAIT_US = 10 * 1000 * 1000, /* then whoever waits for room is closed by name */
    /* While others find no room, whoever holds some has to take what it owed, or so much, in each such time: so
     * whoever waits outlasts those who only hold, and the look at them each second. */
    LEAT_OUTPUT_OWE_US = LEAT_OUTPUT_WAIT_US / 2,
    LEAT_OUTPUT_OWE_RATE = 64 * 1024,  /* of bytes, for each second of these */
    LEAT_OUTPUT_LAST_US = 1000 * 1000, /* likewise, of an answer in the last part */
    LEAT_OUTPUT_STRUCTS_US =
        2 * 1000 * 1000, /* ... while others wait for what requests hold: stock.h */
    LEAT_OUTPUT_KEEP_US =
        2 * 1000 * 1000, /* its turn has come, and it does not come for its answer */
    LEAT_OUTPUT_LATE_US = 10 * 60 * 1000 * 1000, /* so long an address comes after others */
};
/* Who waits for room: for the last part; for the rest; likewise, of an address that is late. */
enum { LEAT_OUTPUT_LINE_LAST, LEAT_OUTPUT_LINE, LEAT_OUTPUT_LINE_LATE, LEAT_OUTPUT_LINES };

/* So many at once, then so many a second. Zero: nobody has asked yet. */
struct leat_rate {
    uint64_t full_us; /* when as many as at once may come again */
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
    uint64_t
        last; /* of the last part, by those that have not taken its answers, or not come for them */
    struct leat_line lines[LEAT_OUTPUT_LINES];
    struct leat_list keepers; /* struct leat_output_peer.keep, the oldest first */
    struct leat_list lasts;   /* struct leat_output_peer.lasts */
    bool full;                /* there was no room at the last tick, or for somebody before it */
    bool refused;             /* ... for somebody since the last tick */
    /* When an address last let an answer lie while others found no room, in seconds; 0: never. Its connections may
     * have been closed for it, and others come. */
    uint32_t late_s[LEAT_ADDRESS_BUCKETS];
};
/* Of a connection. */
struct leat_output_peer {
    struct leat_list wait, keep, lasts;
    size_t wanted; /* of the answer that waits */
    uint64_t waits_since_us, kept_since_us;
    uint64_t kept;          /* room for it */
    uint32_t last;          /* of the last part */
    uint8_t line;           /* in which it waits */
    bool promised;          /* it has not come yet for what it has of the last part */
    bool called;            /* its turn was in vain: it keeps its place */
    bool asks_again;        /* it waits without being owed anything: it was told to try again */
    uint64_t owes_since_us; /* it has owed since, while there was no room; 0: otherwise */
    uint64_t due_bytes;     /* what the network has taken of it when that is what it owed then */
    uint64_t due_us;        /* its time for that */
    uint64_t held;
};

/* Of an address. */
struct leat_output_sharer {
    uint64_t held, kept, last;
    struct leat_queue queues[LEAT_OUTPUT_LINES];
};

void leat_output_init(struct leat_core *core);
/** Does it hold more than its share, or anything while there is no room? */
bool leat_output_is_over(const struct leat_peer *peer);
/** Hold so many bytes for a call of that connection. false: there is no room; a call that is larger than all of it
 * needs half. Gives them back: leat_output_give(). */
bool leat_output_take(struct leat_peer *peer, size_t bytes);
/** The same where it has to be: an answer that nobody can take back. */
void leat_output_add(struct leat_peer *peer, size_t bytes);
void leat_output_give(struct leat_peer *peer, size_t bytes);
/** Do its calls hold more than its share? */
bool leat_output_holds_share(const struct leat_peer *peer);
static inline bool leat_output_crowded(const struct leat_output *output)
{
    for (unsigned line = 0; line < LEAT_OUTPUT_LINES; line++)
        if (!leat_line_empty(&output->lines[line])) return true;
    return false;
}
/** It goes. */
void leat_output_leave(struct leat_peer *peer);
/** There may be room again: go on with those who wait. */
void leat_output_resume(struct leat_core *core);
/** Once a second: who has waited too long, and who keeps others waiting. */
void leat_output_tick(struct leat_core *core);

#endif
