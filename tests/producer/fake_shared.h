/* SPDX-License-Identifier: Apache-2.0 */
/* In place of client/shared.c, for tests of the public producer: no thread and no socket, but a turn of the "background
 * thread" whenever a caller waits, in virtual time, with the client's fake server. So a wait either ends at a known
 * time or, when nothing would ever wake the caller, ends the test. */
#ifndef LEAT_TESTS_PRODUCER_FAKE_SHARED_H
#define LEAT_TESTS_PRODUCER_FAKE_SHARED_H

#include "client/shared.h"
#include "tests/client/fake_server.h"

enum {
    FAKE_EVER_US = 600 * 1000 * 1000, /* longer than any limit of a test */
    FAKE_AT_ONCE_US = 1000 * 1000,    /* long enough for an append */
};

struct fake_shared {
    struct fake_world world;
    struct leat_clock clock; /* of the place's timers */
    struct leat_timers timers;
    struct leat_shared *place; /* that is open; NULL: none */
    struct leat_client *client;
    struct leat_mail *mail, **mail_last;
    bool own_thread;  /* the caller is the background thread */
    leat_err refuse;  /* the next leat_shared_open() says so */
    bool spun;        /* a spin lock was not free: there is one thread only */
    bool held;        /* another caller has the lock, and gives it to whoever waits */
    bool keeps;       /* appends are not taken back: their bytes have not left */
    bool turns_twice; /* a turn follows in which nothing has happened, also behind the last */
    void (*on_sending)(void);   /* what another caller does between two steps of a turn's end */
    void (*on_tell)(void *arg); /* what a caller does as soon as it is woken */
    void *on_tell_arg;
    bool at_once;                 /* what is posted is dealt with before the caller goes on */
    uint64_t spread;              /* added to an id */
    int64_t spread_id;            /* that was asked for last */
    void (*turn)(void *);         /* the place's, once it is started */
    bool sent_wanted;             /* leat_shared_after_sending(): in this turn */
    void (*meanwhile)(void *arg); /* runs before each turn: what another thread does */
    void *meanwhile_arg;
    /* What was called, and how often. */
    struct leat_shared_options options;
    char brokers[64], name[64];
    bool gathers; /* it is started: whoever adds a record has its lock */
    unsigned opened, started, posted, turns, sent_asked, closed, waited, told, spins, yields, kept;
    struct leat_gather *gather; /* that was used last */
};
extern struct fake_shared fake_shared;

void fake_shared_begin(uint64_t seed);
void fake_shared_end(void);
/** Turns, for so long. */
void fake_shared_run(uint64_t us);

#endif
