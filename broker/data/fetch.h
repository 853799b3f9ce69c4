/* SPDX-License-Identifier: Apache-2.0 */
/* Fetch requests under way. Private to broker/; what front ends call is in broker/front_logs.h. */
#ifndef LEAT_BROKER_DATA_FETCH_H
#define LEAT_BROKER_DATA_FETCH_H

#include "base/assert.h"
#include "broker/data/confirm.h"
#include "broker/data/lend.h"
#include "broker/data/serve.h"
#include "broker/front_logs.h"
#include "broker/net/core.h"

struct leat_partition;

/* A log that a request names. */
struct leat_fetch_item {
    struct leat_fetch *fetch;
    struct leat_fetch_item *next;
    struct leat_msg_fetch_log want;
    struct leat_msg_fetched result;
    leat_err refused; /* by routing; fixed */
    /* Its offset is too high: the coordinators were asked which node is the owner */
    bool confirmed;
    uint32_t home;      /* core of the log */
    uint32_t max_bytes; /* of this log */
    /* A watch: tells when the log's acked end moves past what was read. Belongs to the home core
     * from `ask` to `tell`. */
    struct leat_list waiting;
    uint64_t watch_from;
    uint32_t mails_out; /* owner: the request's core */
    bool watch_ended;   /* by cancel: no tell will come */
    bool end_missing;   /* nothing was read, and the log waits for its end */
    struct leat_mail ask, tell, cancel;
};

/* One run of batches: read, then sent from where it lies. */
struct leat_fetch_read {
    struct leat_fetch_read *next;
    struct leat_fetch *fetch;
    struct leat_fetch_item *item;
    struct leat_core *home;
    struct leat_list lent; /* of its core's lender, while it is being sent */
    uint64_t lent_us;
    struct leat_send send;
    struct leat_mail mail;
    leat_err rc;    /* of the attempt as a whole: the log is not there */
    bool log_waits; /* for its end */
    uint64_t first_offset, acked_offset;
    struct leat_read read;
};

/* README.md, "States". */
enum leat_fetch_state {
    LEAT_FETCH_RUNNING,    /* a read is under way at `at`, or waits for what it needs */
    LEAT_FETCH_WAITING,    /* for bytes or the deadline */
    LEAT_FETCH_UNWATCHING, /* other cores give their watches back */
    LEAT_FETCH_CONFIRMING, /* an offset is too high, if this node is still the owner */
    LEAT_FETCH_READY,      /* a front end is to send it */
    LEAT_FETCH_SENDING,    /* answered; runs are being sent */
};
struct leat_fetch {
    struct leat_list link; /* ready_fetches, deferred_fetches, starved_reads */
    struct leat_core *core;
    struct leat_peer *peer; /* NULL: the peer is gone */
    struct leat_sharer *sharer;
    struct leat_list by_core; /* core->fetches: for when the peer goes */
    uint32_t number;
    /* Of a front end; NULL: answered here. */
    void (*on_ready)(struct leat_fetch *fetch);
    void *owner;
    uint32_t min_bytes, max_bytes;
    uint64_t deadline_us;
    struct leat_timer timer;
    struct leat_confirm confirm;
    enum leat_fetch_state state; /* leat_fetch_enter() */
    bool over_deadline, refused;
    /* The next batch of a log would exceed the limit of the request: waiting is of no use */
    bool full;
    bool called; /* from starved_reads: it need not stand in line again */
    struct leat_buffer_wait buffer_wait;
    void *buffer; /* for the read at `at`: its bytes have left memory; NULL: none is in hand */
    uint32_t bytes_max; /* of this round: as asked for, or what its connection takes */
    uint32_t item_count;
    struct leat_fetch_item *items, *at;
    struct leat_fetch_item **items_tail;
    struct leat_fetch_read *reads, *reads_last; /* filled, in order */
    uint32_t bytes, sends_left, watches_out;
    uint64_t records;
    /* Looks at the ends of logs only, when no other struct is free. Last: thousands of fetches may wait, and this
     * read returns no batches, so its iovs have no memory (LEAT_FETCH_STRUCT_BYTES). */
    struct leat_fetch_read ends;
};

/** The step from one state to the next. From READY to READY, as records that are not sent yet may be refused. Thread:
 * the request's core. */
static inline void leat_fetch_enter(struct leat_fetch *fetch, enum leat_fetch_state to)
{
    static const unsigned follow[] = {
        [LEAT_FETCH_RUNNING] = 1u << LEAT_FETCH_RUNNING | 1u << LEAT_FETCH_WAITING |
                               1u << LEAT_FETCH_UNWATCHING | 1u << LEAT_FETCH_CONFIRMING |
                               1u << LEAT_FETCH_READY | 1u << LEAT_FETCH_SENDING,
        [LEAT_FETCH_WAITING] = 1u << LEAT_FETCH_UNWATCHING,
        [LEAT_FETCH_UNWATCHING] =
            1u << LEAT_FETCH_RUNNING | 1u << LEAT_FETCH_UNWATCHING | 1u << LEAT_FETCH_READY,
        [LEAT_FETCH_CONFIRMING] = 1u << LEAT_FETCH_UNWATCHING,
        [LEAT_FETCH_READY] = 1u << LEAT_FETCH_READY | 1u << LEAT_FETCH_SENDING,
        [LEAT_FETCH_SENDING] = 0,
    };
    LEAT_ASSERT(follow[fetch->state] & 1u << to);
    fetch->state = to;
}

/* ---- between fetch.c, fetch_read.c and fetch_wait.c ---- */

/** A round over all logs, from the first on. */
void leat_fetch_run(struct leat_fetch *fetch);
/** The round is over: answer, or wait. */
void leat_fetch_finish(struct leat_fetch *fetch);
void leat_fetch_free(struct leat_fetch *fetch);
/** Take one step at fetch->at; false: it is under way elsewhere, and the round goes on by itself. */
bool leat_fetch_read_at(struct leat_fetch *fetch);
/** The peer's answers hold as many structs as they may, or the peer has not taken a rest yet. */
bool leat_fetch_peer_holds_enough(const struct leat_peer *peer);
/** The peer's answers hold fewer structs now: its fetches that waited for that go on. */
void leat_fetch_call_limited(struct leat_peer *peer);
/** The bytes of the read have left, or lie elsewhere: gives back what the read holds. The fetch may be freed. */
void leat_fetch_read_sent(struct leat_fetch_read *read);
void leat_fetch_drop_reads(struct leat_fetch *fetch);
void leat_fetch_release_read(struct leat_fetch_read *read);
/** Other fetches need the memory that this fetch holds, and its connection takes no answers: the answer is
 * LEAT_E_AGAIN. No read of the fetch is under way. */
void leat_fetch_refuse(struct leat_fetch *fetch);
/** Until a log moves, or the deadline. */
void leat_fetch_wait(struct leat_fetch *fetch);
/** Something moved, or time is up, or a watch came back. */
void leat_fetch_wake(struct leat_fetch *fetch);
void leat_fetch_on_timer(struct leat_timer *timer);
/** A fetch has got the buffer that its read waits for. */
void leat_fetch_on_buffer(struct leat_buffer_wait *wait, void *buffer);

/** Of ready_fetches and starved_reads. */
void leat_fetch_run_ready(struct leat_core *core);

#endif
