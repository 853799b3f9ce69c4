/* SPDX-License-Identifier: Apache-2.0 */
/* A client's world for tests: virtual time, and a server behind a network that a script makes drop,
 * delay, refuse and repeat. The server keeps the rules of sequences as the real one does, so that a
 * test can look at what lies in its logs. */
#ifndef LEAT_TESTS_CLIENT_FAKE_SERVER_H
#define LEAT_TESTS_CLIENT_FAKE_SERVER_H

#include "base/port.h"
#include "base/random.h"
#include "base/timer.h"
#include "client/client.h"
#include "wire/batch.h"

enum {
    FAKE_LOGS_MAX = 16,
    FAKE_BATCHES_MAX = 4096,
    FAKE_PRODUCERS_MAX = 8,
    FAKE_EVENTS_MAX = 8192,
    FAKE_SEGMENT_BATCHES = 3, /* so many batches are a segment, each so many bytes long in it */
    FAKE_PLACE_BYTES = 1000,
    FAKE_SPINS_MAX = 64,
};

struct fake_producer {
    int64_t id;
    int16_t epoch;
    int32_t next;
    struct {
        int32_t first, last;
        uint64_t offset;
    } recent[LEAT_BATCHES_IN_FLIGHT_MAX];
    uint32_t recent_count;
};
struct fake_log {
    uint64_t first, end;
    struct {
        uint8_t *bytes;
        uint32_t count, records;
        uint64_t offset;
    } batches[FAKE_BATCHES_MAX];
    uint32_t batch_count;
    struct fake_producer producers[FAKE_PRODUCERS_MAX];
    uint32_t producer_count;
};

/* Chances per request, in 1/1000. */
struct fake_faults {
    unsigned drop_before, drop_after, refuse_again, refuse_owner, refuse_hard, slow, twice, forget,
        garble, /* the answer to an append ends too early */
        flip;   /* one bit of the batches in the answer to a fetch */
};

struct fake_conn;
struct fake_world {
    struct leat_env env;
    struct leat_clock clock;
    struct leat_random random;
    struct leat_net net;
    struct leat_timers timers;
    struct leat_xoshiro dice;
    uint64_t now_us, wake_at_us;
    struct fake_event *events[FAKE_EVENTS_MAX];
    uint32_t event_count;
    uint64_t event_serial;
    struct leat_list conns;
    struct leat_send *sends, **sends_last; /* to be taken at the end of the turn */
    void (*turn_end)(void *owner);
    void *owner;
    /* the server */
    bool down; /* connections are refused */
    uint64_t incarnation;
    const char *cluster_id; /* 16 bytes */
    uint32_t epoch, streamlets, logs;
    uint32_t batch_bytes_max; /* 0: any */
    uint32_t stream_id;       /* 0: no such stream; METADATA with may_create makes it */
    int64_t next_producer_id;
    int16_t next_epoch;
    struct fake_log log[FAKE_LOGS_MAX];
    struct fake_faults faults;
    /* What happened. */
    uint32_t fetch_min_bytes; /* of the last fetch */
    uint32_t fetch_wait_ms;   /* the shortest wait, but 0, of a fetch since a test set this */
    uint64_t garbled, flipped, connects, hellos, appends, metadatas, dropped, refused, duplicates,
        gaps, epochs, too_large;
    const char *silent; /* nothing answers at this address, not even "refused" */
    bool mute;          /* never answer anything but hello */
    const char *frozen; /* what is sent to this address vanishes: a stopped node, a cut cable */
    unsigned
        other; /* so many nodes more, 2 at most: fake:2, incarnation + 1, and fake:3; fake:2 owns `moved` */
    uint32_t moved;          /* this streamlet, from 1, has gone to fake:2; 0: none has */
    bool polls;              /* a fetch without records is answered when its wait is over */
    uint64_t poll_us;        /* that wait, of the last fetch */
    bool dead;               /* it says that the first one is down */
    const char *knows;       /* only the node of this address says so; NULL: all do */
    bool away_told;          /* they name that node, too, as down */
    uint32_t away;           /* so many answers name an owner that is not among the nodes */
    bool behind;             /* METADATA names the incarnation before the one that says hello */
    uint32_t mute_streamlet; /* appends to this one, from 1, are never answered; 0: all are */
    bool
        says_damaged; /* each request but METADATA arrives damaged: the server says so, and closes */
    bool gives_up;    /* a request for a producer's id ends by CANCELLED, at the server */
    const struct fake_log *starting; /* fetches from this log are refused: STARTING */
};

/** Where the log's n-th batch lies. */
struct leat_position fake_place(uint32_t batch);
void fake_init(struct fake_world *world, uint64_t seed);
void fake_fini(struct fake_world *world);
/** Run until virtual time `until_us`, or until done(owner) holds. Returns whether it did. */
bool fake_run(struct fake_world *world, uint64_t until_us, bool (*done)(void *owner));
/** Close all connections now, as a server that dies does. */
void fake_cut(struct fake_world *world);
struct leat_client *fake_client(struct fake_world *world, uint64_t timeout_us);

#endif
