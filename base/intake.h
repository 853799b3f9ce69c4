/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for the received and not yet consumed bytes that the connections of an actor keep.
 *
 * Bookkeeping for both implementations of the net port (os/, tests/sim): how much may be read from each connection.
 * Each connection is in an account (enum leat_net_account), and each account has a limit. A connection that holds a
 * part of a frame gets more room while there is room. In a full account connections get room in order, one at a time,
 * even past the limit: so a full account always makes progress. An address has at most half of the clients' account;
 * beyond that its connections wait, without making other addresses wait.
 *
 * Small requests never wait: while an account is full, a few KiB are still read from a connection that holds nothing,
 * mostly a whole request. The beginning of a larger frame stays held; such beginnings have a separate limit, and past
 * this limit the connection with the oldest beginning is closed (leat_intake_surplus()). Frames of strangers are
 * small, so strangers have only this limit. An account exceeds its limit by at most one frame, one read and the small
 * beginnings.
 *
 * A connection that holds a part of a frame and sends no more of the frame keeps others waiting. While another
 * connection waits, such a connection loses its place and is closed: with many held bytes, if almost nothing comes
 * for a second (a quarter of a second, if the connection exceeds the limit); with any held bytes, if too little comes
 * in five seconds. An address that has lost a place in either way is blamed for a minute: its connections wait after
 * those of addresses without blame. Otherwise the address would come back at once, and have its turn with the next
 * connection.
 */
#ifndef LEAT_BASE_INTAKE_H
#define LEAT_BASE_INTAKE_H

#include "base/key_hash.h"
#include "base/list.h"
#include "base/port.h"

enum {
    LEAT_INTAKE_BUCKETS = 256,
    LEAT_INTAKE_STRANGERS_BYTES = 1024 * 1024, /* unless limited otherwise */
    LEAT_INTAKE_BYTES = 64 * 1024 * 1024,      /* of each other account, likewise */
    LEAT_INTAKE_SMALL_BYTES = 4096,
    LEAT_INTAKE_SMALLS_BYTES = 1024 * 1024, /* of all small beginnings of clients */
    LEAT_INTAKE_LOOK_MS = 250,    /* while connections wait, holders are checked so often */
    LEAT_INTAKE_SILENT_MS = 1000, /* of clients, without so many bytes: */
    LEAT_INTAKE_HEARD_BYTES = 2048,
    /* of the connection that exceeds the limit, as no other may meanwhile */
    LEAT_INTAKE_OVER_SILENT_MS = 250,
    /* Of any connection: less than this rate for so long. Otherwise a few slow connections would stop all. */
    LEAT_INTAKE_STALL_MS = 5000,
    LEAT_INTAKE_RATE_MIN = 16 * 1024, /* bytes a second */
    LEAT_INTAKE_STALL_PART = 4,       /* ... and of clients such a part of what they hold */
    LEAT_INTAKE_BLAME_MS = 60 * 1000,
    LEAT_INTAKE_BLAMED_LEAVE = 4,  /* such a part of the account is not for blamed addresses */
    LEAT_INTAKE_BLAMED_MAX = 1024, /* addresses; beyond that the oldest blame is forgotten */
};

/* Waiting connections, of an address or of an account without shares. */
struct leat_intake_queue {
    uint64_t bytes;
    struct leat_list grows; /* hold a part and wait for more room; in order */
    struct leat_list ring;  /* among its account's queues, while a connection waits in it */
};

struct leat_intake_address {
    struct leat_intake_address *next;
    uint8_t key[LEAT_NET_KEY_BYTES];
    uint32_t members;
    size_t copied; /* of its members: leat_intake_copied() */
    struct leat_intake_queue clients;
    struct leat_list blame; /* in the intake's list, while the address is blamed */
    uint64_t blamed_ms;
};

struct leat_intake_member {
    struct leat_list wait, hold;
    struct leat_intake_address
        *address; /* NULL: no memory for an address; then the connection has no share of its own */
    enum leat_net_account account;
    size_t bytes, wanted;  /* held; in all, while it waits to grow */
    size_t copied;         /* of the other direction: its count per address is here, too */
    uint64_t heard_ms;     /* it brought LEAT_INTAKE_HEARD_BYTES, or was read from again */
    uint64_t heard_bytes;  /* since then */
    uint64_t window_bytes; /* brought since the window began */
    bool watched;          /* has held bytes all that time */
};

struct leat_intake {
    struct leat_intake_account {
        uint64_t bytes, bytes_max;
        struct leat_intake_queue rest; /* of connections whose address has no share */
        struct leat_list ring, late;   /* queues that wait; late: of blamed addresses */
        /* Members that hold LEAT_INTAKE_SMALL_BYTES at most, oldest first; of strangers all that hold bytes. */
        struct leat_list smalls;
        struct leat_list larges;               /* all other members that hold bytes */
        uint64_t small_bytes;                  /* of `smalls` */
        const struct leat_intake_member *over; /* may exceed the limit, until it holds nothing */
    } accounts[LEAT_NET_ACCOUNTS];
    struct leat_key_hash hash;
    struct leat_intake_address *buckets[LEAT_INTAKE_BUCKETS];
    struct leat_list blamed; /* addresses, in the order of their blame */
    uint32_t blamed_count;
    uint64_t window_ms; /* when it began */
};

void leat_intake_init(struct leat_intake *intake, const struct leat_random *random);
/** No member may be left. Forgets all blame. */
void leat_intake_fini(struct leat_intake *intake);
/** A connection from that address, which holds nothing. */
void leat_intake_join(struct leat_intake *intake, struct leat_intake_member *member,
                      const uint8_t key[LEAT_NET_KEY_BYTES], enum leat_net_account account);
void leat_intake_leave(struct leat_intake *intake, struct leat_intake_member *member);
/** Move the connection to another account. */
void leat_intake_account_set(struct leat_intake *intake, struct leat_intake_member *member,
                             enum leat_net_account account);
/** Set the held bytes of the connection, whether there was room or not. */
void leat_intake_hold(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes);
/** Is the account full, or the share of the address? Then at most LEAT_INTAKE_SMALL_BYTES are read from a connection
 * that holds nothing. */
bool leat_intake_full(struct leat_intake *intake, const struct leat_intake_member *member);
/** Is there room for `bytes` of this connection in all? */
bool leat_intake_fits(struct leat_intake *intake, const struct leat_intake_member *member,
                      size_t bytes);
/** A connection comes from another actor with `bytes` held: is there room? false: the connection must be closed.
 * Silent connections make room at once: leat_intake_watch(). */
bool leat_intake_admits(struct leat_intake *intake, const struct leat_intake_member *member,
                        size_t bytes, uint64_t now_ms,
                        bool (*idle)(const struct leat_intake_member *member),
                        void (*lost)(struct leat_intake_member *member));
/** May a connection that holds bytes hold `bytes` in all? false: the connection waits. */
bool leat_intake_grow(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes);
static inline bool leat_intake_waits(const struct leat_intake_member *member)
{
    return !leat_list_empty(&member->wait);
}
/** A connection whose wait is over, and ends with this call; NULL: none. */
struct leat_intake_member *leat_intake_next(struct leat_intake *intake);
/** Memory of copies that wait to be sent: so much more, or less. */
void leat_intake_copied(struct leat_intake_member *member, size_t more, size_t less);
/** The copies of all connections of the same address. */
size_t leat_intake_copied_near(const struct leat_intake_member *member);
/** Does any connection of this account wait? */
bool leat_intake_crowded(const struct leat_intake *intake, enum leat_net_account account);
/** It has brought so many bytes. 0: from now on it is read from, and may bring some. */
void leat_intake_heard(struct leat_intake_member *member, size_t bytes, uint64_t now_ms);
/** A connection waits now: leat_intake_watch() must be called every LEAT_INTAKE_LOOK_MS, until it returns false. */
void leat_intake_watch_begin(struct leat_intake *intake, uint64_t now_ms);
/** Calls lost() for each connection that has lost its place; lost() may give back the held bytes. idle: the
 * connection is read from, and has no unread bytes. */
bool leat_intake_watch(struct leat_intake *intake, uint64_t now_ms,
                       bool (*idle)(const struct leat_intake_member *member),
                       void (*lost)(struct leat_intake_member *member));
/** A connection that was read from has ended by itself: if it had a place, the address is blamed as for a lost
 * place. */
void leat_intake_ended(struct leat_intake *intake, const struct leat_intake_member *member,
                       uint64_t now_ms);
/** A connection of this account that must be closed, because the beginnings exceed their limit; NULL: none. */
struct leat_intake_member *leat_intake_surplus(const struct leat_intake *intake,
                                               enum leat_net_account account);

#endif
