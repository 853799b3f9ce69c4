/* Memory that a core's connections may hold for answers that they have not taken and for calls under way: one account,
 * of which each connection has a share. Who holds more than its share waits without making others wait: it is not read
 * from. An answer for which there is no room waits (other front doors) or is refused by name (native calls); small ones
 * always go out. Private to broker/ and other front doors. */
#ifndef LEAT_BROKER_OUTPUT_H
#define LEAT_BROKER_OUTPUT_H

#include "base/list.h"
#include "base/types.h"

struct leat_core;
struct leat_peer;

enum {
    LEAT_OUTPUT_BYTES_MIN = 4 * 1024 * 1024, /* of a core; a 32nd of the budget in all */
    LEAT_OUTPUT_BYTES_MAX = 64 * 1024 * 1024,
    LEAT_OUTPUT_SHARES = 8,                 /* no connection has more than one of so many */
    LEAT_OUTPUT_SMALL_BYTES = 1024,         /* such answers, and refusals, need no room */
    LEAT_OUTPUT_CALL_BYTES = 4096,          /* such calls need none: their number has a limit */
    LEAT_OUTPUT_WAIT_US = 10 * 1000 * 1000, /* then whoever waits for room is closed by name */
    /* While others find no room, whoever holds some has to take what it owed, or so much, in each such time: so
     * whoever waits outlasts those who only hold, and the look at them each second. */
    LEAT_OUTPUT_OWE_US = LEAT_OUTPUT_WAIT_US / 2,
    LEAT_OUTPUT_OWE_BYTES = 64 * 1024 * (LEAT_OUTPUT_OWE_US / 1000000), /* 64 KiB/s */
};

/* So many at once, then so many a second. Zero: nobody has asked yet. */
struct leat_rate {
    uint64_t full_us; /* when as many as at once may come again */
};
/** One more? Thread: owner's. */
bool leat_rate_take(struct leat_rate *rate, uint64_t now_us, uint32_t burst, uint32_t per_second);

/* Of a core. */
struct leat_output {
    uint64_t bytes_max;
    uint64_t held;          /* by calls and large answers; copies of small ones are the port's */
    struct leat_list waits; /* struct leat_output_peer.wait: for room, first come, first served */
    bool full;    /* there was no room at the last tick, or for somebody since the one before */
    bool refused; /* ... for somebody since the last tick */
};
/* Of a connection. */
struct leat_output_peer {
    struct leat_list wait;
    size_t wanted; /* of the answer that waits */
    uint64_t waits_since_us;
    uint64_t
        owes_since_us; /* it has owed since, while there was no room; 0: it did not, or there was */
    uint64_t due_bytes; /* what the network has taken of it when it has taken what it owed then */
    uint64_t held;
};

/** One core's part of a budget. Thread: any. */
uint64_t leat_node_output_bytes(uint64_t memory_bytes, uint32_t cores);
void leat_output_init(struct leat_core *core);
/** Is there room for an answer of so many bytes? One that is larger than all of it needs half. */
bool leat_output_fits(struct leat_core *core, size_t bytes);
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
/** Its next answer has to wait for that much room; then its protocol's `answer` is called again. */
void leat_output_wait(struct leat_peer *peer, size_t bytes);
/** It goes, or what it waited for has come. */
void leat_output_wait_end(struct leat_peer *peer);
/** There may be room again: go on with those who wait. */
void leat_output_resume(struct leat_core *core);
/** Once a second: who has waited too long, and who keeps others waiting. */
void leat_output_tick(struct leat_core *core);

#endif
