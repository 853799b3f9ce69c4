/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two public libraries (producer/producer.c, consumer/consumer.c): clients on the process's background
 * threads. Part of libleat, not of the core libraries, because of the threads.
 *
 * All producers and consumers of a process share a few threads (one per core): a server that
 * answers eight producers then wakes one thread and not eight. Measured on two cores, a wake-up of
 * a thread on another core costs as much as copying a batch of 10 KB.
 *
 * Producers of one thread with equal options also share a client, hence its connections: all messages of a turn go
 * out in one write, and the answers come in one read. */
#ifndef LEAT_CLIENT_SHARED_H
#define LEAT_CLIENT_SHARED_H

#include "base/list.h"
#include "base/random.h"
#include "client.h"

#include "leat/leat.h"

#include <stdatomic.h>

enum {
    LEAT_SHARED_TIMERS = 16,
    LEAT_SHARED_STREAMS_MAX = 256,
    LEAT_SHARED_USERS_MAX = 64, /* of one common client; a server has requests of one connection
                                   under way up to a limit (256) */
    LEAT_SHARED_RETRY_US_MIN = 10 * 1000,
    LEAT_SHARED_RETRY_US_MAX = 1000 * 1000,
    LEAT_SHARED_ACTOR = 0,       /* the only actor of a background thread's world */
    LEAT_SHARED_THREADS_MAX = 8, /* of a process */
};

/* An event to wait for: a counter that grows when the event has happened. */
struct leat_event {
    _Atomic uint32_t count, waiters;
};

struct leat_shared_io; /* a background thread */

/* Ports of one's own on a background thread: the thread's, but for time and chance. */
struct leat_shared_ports {
    struct leat_env env;
    struct leat_clock clock;
    struct leat_random random;
    struct leat_xoshiro random_state;
    struct leat_timers timers;
    uint64_t wake_at_us;
    uint64_t *turn_now_us; /* the thread's, once it runs them; NULL: the clock itself is read */
};

struct leat_shared_common; /* a client with several users */

/* One producer's or consumer's place on a background thread. */
struct leat_shared {
    struct leat_shared_io *io;  /* NULL: not open */
    const struct leat_env *env; /* the thread's ports, with a clock and a random of its own */
    struct leat_timers *timers;
    struct leat_client *client;
    /* shared.c's, and the background thread's after the start: */
    struct leat_shared_ports ports;
    struct leat_shared_common *common; /* whose client it is; NULL: this place's own */
    uint32_t place;                    /* of one with a common client: see leat_shared_spread() */
    struct leat_list link;
    bool started, touched; /* touched: something of it ran in this turn */
    void *owner;
    void (*on_turn_end)(void *owner);
    struct leat_list tell_link; /* in the io's tells */
    void (*on_sent)(void *owner);
    struct leat_mail start_mail, stop_mail;
    struct leat_event stopped;
};

struct leat_shared_options {
    const char *brokers; /* NULL: $LEAT_BROKERS, else 127.0.0.1:7700 */
    const char *name;    /* NULL: the program's */
    uint64_t request_timeout_us;
    bool fail_fast;
    /* Share a client with users of equal options. The thread runs the client's turn end; the user calls
     * leat_shared_touch() when its own work has run, and takes back its requests (leat_client_withdraw()) before it
     * closes. If not set, the user runs and destroys the client itself, on the thread. */
    bool common;
};

/** Take a place on a background thread, which is started when it is the first; make timers and
 * client. Nothing of it runs yet. */
leat_err leat_shared_open(struct leat_shared *shared, const struct leat_shared_options *options,
                          struct leat_error *error) LEAT_NODISCARD;
/** From now on the background thread runs it: its timers, and on_turn_end at the end of each turn
 * in which anything of it ran (and once at the start). */
void leat_shared_start(struct leat_shared *shared, void *owner, void (*on_turn_end)(void *owner));
/** Mail to its thread; deliver() calls leat_shared_touch(). The first argument of deliver() is not
 * the owner: others share the thread. Thread: any. */
void leat_shared_post(struct leat_shared *shared, struct leat_mail *mail);
/** Something ran: a turn end follows. Thread: the background thread. */
static inline void leat_shared_touch(struct leat_shared *shared)
{
    shared->touched = true;
}
/** Call on_sent(owner) once, when what this turn sends is on its way: waking another thread takes 5 us
 * of this one, for which the server would wait. Thread: the background thread. */
void leat_shared_after_sending(struct leat_shared *shared, void (*on_sent)(void *owner));
/** Is the caller the background thread? There nothing may wait for it. Thread: any. */
bool leat_shared_is_own_thread(const struct leat_shared *shared);
/** After an own client was destroyed on the background thread, or before the start. Nothing of it
 * runs when this returns. Thread: not a background thread. */
void leat_shared_close(struct leat_shared *shared);
/** The number by which a producer with this id chooses among a stream's logs. In a process of one producer it is the
 * id. Several producers begin at the first known id and go on by their places. So all logs are used, and the
 * producers of a thread use logs on few cores of a server: with four producers on each of two threads, one full
 * connection per thread, not four half-empty connections. The number stays the same for a place and an id.
 * Thread: any. */
uint64_t leat_shared_spread(const struct leat_shared *shared, int64_t id);
/** For calls that return a public message. */
leat_code leat_shared_message(leat_message *message, const struct leat_error *error);

/* A lock for a few nanoseconds' work: one locked instruction to take, a plain store to give back.
 * On a machine with few cores its holder may have been put aside, hence the yield. */
struct leat_spin {
    _Atomic uint32_t taken;
};
void leat_spin_wait(struct leat_spin *spin);
static inline void leat_spin_lock(struct leat_spin *spin)
{
    if (__builtin_expect(atomic_exchange_explicit(&spin->taken, 1, memory_order_acquire) != 0, 0))
        leat_spin_wait(spin);
}
static inline void leat_spin_unlock(struct leat_spin *spin)
{
    atomic_store_explicit(&spin->taken, 0, memory_order_release);
}

static inline uint32_t leat_event_look(struct leat_event *event)
{
    return atomic_load(&event->count);
}
/** Wait until the counter has left `seen`, at most until deadline_us (UINT64_MAX: no limit).
 * Returns false when the time is over. Thread: any. */
bool leat_event_wait(struct leat_event *event, uint32_t seen, uint64_t deadline_us);
void leat_event_tell(struct leat_event *event);
/** Monotonic microseconds, of the same clock as the actor's. Thread: any. */
uint64_t leat_shared_now_us(void *unused);
int64_t leat_shared_wall_ms(void *unused);
/** Deadline of a timeout in ms; negative: none. */
uint64_t leat_shared_deadline(int64_t timeout_ms);

#endif
