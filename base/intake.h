/* SPDX-License-Identifier: Apache-2.0 */
/* What the connections of one actor may keep of bytes that have come and are not consumed.
 *
 * Bookkeeping for the net port, of every family: it says how much may be read from whom. Each connection is in one
 * account (enum leat_net_account), and each account has a limit. Who holds a part of a frame gets more room while
 * there is some, and else in order, one connection at a time, even past the limit: so a full account always moves on.
 * Of the clients' account one address has at most half; beyond that it waits without making others wait.
 *
 * Small requests never wait: while an account is full, a connection that holds nothing is still read by a few KiB,
 * mostly a whole request. Where these bytes are the beginning of a larger frame they stay held; such beginnings have a
 * limit of their own, and past it the connection with the oldest beginning is closed (leat_intake_surplus()). Frames of
 * strangers are small, so the same limit is the only one that strangers have.
 * An account exceeds its limit by one frame, one read and the small ones.
 *
 * Who holds a part and brings no more of it keeps others waiting. While somebody waits such a connection loses its
 * place and is closed: of those that hold much when it brings next to nothing for a second (a quarter in the turn of
 * one that exceeds the limit), of all when it brings too little in five. An address that has lost a place so, in
 * either way, stands behind those that never did, for a minute: else it would come back at once, and have its turn
 * with its next connection.
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
    LEAT_INTAKE_SMALLS_BYTES = 1024 * 1024, /* of all clients that hold no more than that each */
    LEAT_INTAKE_LOOK_MS = 250,              /* so often who holds is looked at while others wait */
    LEAT_INTAKE_SILENT_MS = 1000,           /* of clients, without so many bytes: */
    LEAT_INTAKE_HEARD_BYTES = 2048,
    LEAT_INTAKE_OVER_SILENT_MS = 250, /* of one that exceeds the limit, as no other may meanwhile */
    /* Of all others, too, less than that rate for so long: else a few that dribble would stop everyone. */
    LEAT_INTAKE_STALL_MS = 5000,
    LEAT_INTAKE_RATE_MIN = 16 * 1024, /* bytes a second */
    LEAT_INTAKE_STALL_PART = 4,       /* ... and of clients such a part of what they hold */
    LEAT_INTAKE_BLAME_MS = 60 * 1000,
    LEAT_INTAKE_BLAMED_LEAVE = 4,  /* such a part of the account is for others than these */
    LEAT_INTAKE_BLAMED_MAX = 1024, /* addresses; beyond that the oldest blame is forgotten */
};

/* Who waits, of one address or of an account without shares. */
struct leat_intake_queue {
    uint64_t bytes;
    struct leat_list grows; /* hold a part and wait for more room; in order */
    struct leat_list ring;  /* among its account's queues, while somebody waits in it */
};

struct leat_intake_address {
    struct leat_intake_address *next;
    uint8_t key[LEAT_NET_KEY_BYTES];
    uint32_t members;
    size_t copied; /* of its members: leat_intake_copied() */
    struct leat_intake_queue clients;
    struct leat_list blame; /* in the intake's, while it stands behind others */
    uint64_t blamed_ms;
};

struct leat_intake_member {
    struct leat_list wait, hold;
    struct leat_intake_address
        *address; /* NULL: no memory for one; then it has no share of its own */
    enum leat_net_account account;
    size_t bytes, wanted;  /* held; in all, while it waits to grow */
    size_t copied;         /* in the other direction, for whom the address is counted here, too */
    uint64_t heard_ms;     /* it brought LEAT_INTAKE_HEARD_BYTES, or was read from again */
    uint64_t heard_bytes;  /* since then */
    uint64_t window_bytes; /* brought since the window began */
    bool watched;          /* has held bytes all that time */
};

struct leat_intake {
    struct leat_intake_account {
        uint64_t bytes, bytes_max;
        struct leat_intake_queue rest; /* of those whose address has no share */
        struct leat_list ring, late;   /* who waits; late: addresses that are blamed */
        /* Members that hold LEAT_INTAKE_SMALL_BYTES at most, oldest first; of strangers all that hold bytes. */
        struct leat_list smalls;
        struct leat_list larges;               /* all others that hold bytes */
        uint64_t small_bytes;                  /* of `smalls` */
        const struct leat_intake_member *over; /* may exceed the limit, until it holds nothing */
    } accounts[LEAT_NET_ACCOUNTS];
    struct leat_key_hash hash;
    struct leat_intake_address *buckets[LEAT_INTAKE_BUCKETS];
    struct leat_list blamed; /* addresses, who was blamed first comes first */
    uint32_t blamed_count;
    uint64_t window_ms; /* when it began */
};

void leat_intake_init(struct leat_intake *intake, const struct leat_random *random);
/** No member may be left. Forgets who was blamed. */
void leat_intake_fini(struct leat_intake *intake);
/** A connection from that address, which holds nothing. */
void leat_intake_join(struct leat_intake *intake, struct leat_intake_member *member,
                      const uint8_t key[LEAT_NET_KEY_BYTES], enum leat_net_account account);
void leat_intake_leave(struct leat_intake *intake, struct leat_intake_member *member);
/** It counts in another account from now on. */
void leat_intake_account_set(struct leat_intake *intake, struct leat_intake_member *member,
                             enum leat_net_account account);
/** It holds so much from now on, whether there was room or not. */
void leat_intake_hold(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes);
/** Has its account no room, or its address no more of it? Then who holds nothing is read by LEAT_INTAKE_SMALL_BYTES. */
bool leat_intake_full(struct leat_intake *intake, const struct leat_intake_member *member);
/** Is there room for that many bytes of it in all? */
bool leat_intake_fits(struct leat_intake *intake, const struct leat_intake_member *member,
                      size_t bytes);
/** It brings so many bytes from another actor: may it hold them here? false: it has to go. Who is silent makes room for
 * it at once: leat_intake_watch(). */
bool leat_intake_admits(struct leat_intake *intake, const struct leat_intake_member *member,
                        size_t bytes, uint64_t now_ms,
                        bool (*idle)(const struct leat_intake_member *member),
                        void (*lost)(struct leat_intake_member *member));
/** It holds something: may it hold that many in all? false: it waits. */
bool leat_intake_grow(struct leat_intake *intake, struct leat_intake_member *member, size_t bytes);
static inline bool leat_intake_waits(const struct leat_intake_member *member)
{
    return !leat_list_empty(&member->wait);
}
/** One that need not wait any more, and does not; NULL: none. */
struct leat_intake_member *leat_intake_next(struct leat_intake *intake);
/** Memory of copies that wait to be sent: so much more, or less. */
void leat_intake_copied(struct leat_intake_member *member, size_t more, size_t less);
/** What all of its address have. */
size_t leat_intake_copied_near(const struct leat_intake_member *member);
/** Does anybody of that account wait? */
bool leat_intake_crowded(const struct leat_intake *intake, enum leat_net_account account);
/** It has brought so many bytes. 0: from now on it is read from, and may bring some. */
void leat_intake_heard(struct leat_intake_member *member, size_t bytes, uint64_t now_ms);
/** Somebody waits from now on; leat_intake_watch() is called every LEAT_INTAKE_LOOK_MS, until it returns false. */
void leat_intake_watch_begin(struct leat_intake *intake, uint64_t now_ms);
/** Calls lost() for each connection that has lost its place; what it holds may be given back there. idle: it is read
 * from, and nothing of it lies unread. */
bool leat_intake_watch(struct leat_intake *intake, uint64_t now_ms,
                       bool (*idle)(const struct leat_intake_member *member),
                       void (*lost)(struct leat_intake_member *member));
/** A connection that was read from has ended by itself: its place is lost if it had one. */
void leat_intake_ended(struct leat_intake *intake, const struct leat_intake_member *member,
                       uint64_t now_ms);
/** Of that account one that has to go, as too much is held by those that hold little; NULL: none. */
struct leat_intake_member *leat_intake_surplus(const struct leat_intake *intake,
                                               enum leat_net_account account);

#endif
