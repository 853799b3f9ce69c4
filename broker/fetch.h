/* Fetch requests under way. Private to broker/. */
#ifndef LEAT_BROKER_FETCH_H
#define LEAT_BROKER_FETCH_H

#include "broker/core.h"

/* One log that a request names. */
struct leat_fetch_item {
    struct leat_fetch *fetch;
    struct leat_fetch_item *next;
    struct leat_msg_fetch_log want;
    struct leat_msg_fetched result;
    leat_err refused; /* by routing; fixed */
    uint32_t home;    /* core of the log */
    /* A watch: tells when the log's acked end moves past what was read. Belongs to the home core
     * from `ask` to `tell`. */
    struct leat_list waiting;
    uint64_t watch_from;
    uint32_t mails_out; /* owner: the request's core */
    bool watch_ended;   /* by cancel: no tell will come */
    struct leat_mail ask, tell, cancel;
};

/* One run of batches: read, then sent from where it lies. */
struct leat_fetch_read {
    struct leat_fetch_read *next;
    struct leat_fetch *fetch;
    struct leat_fetch_item *item;
    struct leat_core *home;
    struct leat_list starved;
    struct leat_buffer_wait buffer_wait;
    struct leat_send send;
    struct leat_mail mail;
    leat_err rc; /* of the attempt as a whole: the log is not there */
    uint64_t first_offset, acked_offset;
    struct leat_read read;
};

enum leat_fetch_state {
    LEAT_FETCH_RUNNING,    /* a read is under way at `at` */
    LEAT_FETCH_WAITING,    /* for bytes or the deadline */
    LEAT_FETCH_UNWATCHING, /* other cores give their watches back */
    LEAT_FETCH_SENDING,    /* answered; runs are being sent */
};
struct leat_fetch {
    struct leat_list link; /* ready_fetches, deferred_fetches, starved_reads */
    struct leat_core *core;
    struct leat_peer *peer;   /* NULL: it is gone */
    struct leat_list by_core; /* core->fetches: for when the peer goes */
    uint32_t number;
    uint32_t min_bytes, max_bytes;
    uint64_t deadline_us;
    struct leat_timer timer;
    enum leat_fetch_state state;
    bool over_deadline, refused;
    bool called; /* from starved_reads: it need not stand in line again */
    uint32_t item_count;
    struct leat_fetch_item *items, *at;
    struct leat_fetch_read *reads, *reads_last; /* filled, in order */
    uint32_t bytes, sends_left, watches_out;
    uint64_t records;
};

#endif
