/* SPDX-License-Identifier: Apache-2.0 */
/* One core of a broker: an actor with its connections, its logs and its timers. Nothing here is
 * shared with another core; cores talk by mail. Private to broker/ (tests may include it).
 *
 * One turn: bytes come in (conn.c), batches are copied onto logs (append.c), then on_turn_end seals
 * every log that gathered work, runs the fetches that this woke, and writes all answers, at most
 * once per connection.
 */
#ifndef LEAT_BROKER_NET_CORE_H
#define LEAT_BROKER_NET_CORE_H

#include "base/list.h"
#include "base/node_log.h"
#include "base/timer.h"
#include "broker/net/budget.h"
#include "broker/net/members.h"
#include "broker/net/peer.h"
#include "broker/net/sharer.h"
#include "broker/net/state.h"

/* Named limits of a core; limits of appends and reads are in data/core_data.h, of creates in admin/core_admin.h.
 * docs/operations.md shows them all. */
enum {
    LEAT_CORE_PEERS_MAX = 65536, /* connections on one core */
    LEAT_CORE_LOGS_MAX = 131072, /* logs on one core */
    LEAT_LOG_HEAP_BYTES = 7168,  /* of a log with its first segment: a refusal reckons with it */
    /* In small budgets fewer, a quarter at least: leat_node_structs(). */
    LEAT_CORE_APPENDS_MAX = 8192,      /* append requests under way on one core */
    LEAT_CORE_PARTS_MAX = 32768,       /* their batches beyond the first of each */
    LEAT_CORE_FETCHES_MAX = 8192,      /* fetch requests under way on one core */
    LEAT_CORE_FETCH_ITEMS_MAX = 32768, /* logs named by them */
    LEAT_CORE_FETCH_ITEMS_MIN = 16384, /* so many a fetch of Kafka's may name */
    LEAT_CORE_READS_MAX = 512,         /* runs of batches being read or sent */
    LEAT_CORE_READS_MIN = 256,
    LEAT_CORE_CALLS_MAX = 4096,   /* other requests under way */
    LEAT_PEER_REQUESTS_MAX = 256, /* under way on one connection; then it is not read from */
    /* Answers not taken; then the connection is neither read nor fetched for */
    LEAT_PEER_QUEUED_BYTES_MAX = 8 * 1024 * 1024,
    LEAT_PEER_QUEUED_BYTES_HARD = 32 * 1024 * 1024, /* then the connection is closed */
    LEAT_PEER_STALL_US = 10 * 1000 * 1000,          /* takes no bytes that long: closed */
    /* Strangers: connections whose client is not known yet; then the oldest is closed */
    LEAT_CORE_STRANGERS_MAX = 4096,
    /* For a stranger to become known; then its connection is closed */
    LEAT_PEER_HELLO_US = 10 * 1000 * 1000,
    LEAT_PEER_FRAME_US = 60 * 1000 * 1000, /* a frame begun is not finished: closed */
    LEAT_DISK_BUFFER_BYTES = LEAT_BATCH_BYTES_MAX + 64 * 1024,
    LEAT_TICK_US = 1000 * 1000, /* care of logs, stalled peers */
    /* A front end's connection is closed when its requests have waited at an isolated node for so many ticks: longer
     * than a reader waits for the leader (LEAT_CATCH_UP_US_MAX). */
    LEAT_PEER_ISOLATED_TICKS = 3,
    LEAT_SLOW_TICK_US = 20 * 1000, /* looking again at slow readers, while there are any */
};

struct leat_core_admin;
struct leat_core_data;
struct leat_repairs;
struct leat_missing;
struct leat_movers;
struct leat_takeovers;

/* Read from any core (relaxed). */
struct leat_counters {
    _Atomic uint64_t appended_records, appended_bytes, fetched_records, fetched_bytes, connections;
    _Atomic uint64_t own_bytes; /* of connections, beyond the stocks */
    /* heap.c counts these beside connections: closed connections that have requests under way, and sharers. */
    _Atomic uint64_t closed_peers, addresses;
};

struct leat_core {
    struct leat_node *node;
    uint32_t index;
    const struct leat_env *env;
    const struct leat_net *net;
    struct leat_timers timers;
    struct leat_timer tick, slow_tick, room_timer;
    struct leat_node_log_sum damaged_sum;
    bool stopping, stopped, ending; /* the last: its logs are waited for to rest */
    uint32_t heap_told_ticks;       /* core 0: the node log has it that the heap is full */
    uint64_t logs_known;            /* of all streams, wherever they are */
    bool adopted; /* logs of streams that come from now on are made as they come */

    struct leat_members members;
    /* What the modules above keep of a core; the three of ownership/ are core 0's. */
    struct leat_core_data *data;
    struct leat_core_admin *admin;
    struct leat_takeovers *takeovers;
    struct leat_repairs *repairs;
    struct leat_movers *movers;
    struct leat_missing *missing; /* logs that were missing are being made */
    struct leat_link_handler serve_in;
    struct leat_peer link_peer;             /* stands for all that ask by links */
    const struct leat_link_ticket *serving; /* while a request of a link is taken */

    struct leat_list peers, slow_peers, owing_peers, answer_peers;
    struct leat_list cut_peers;             /* of whose frame a part has come */
    struct leat_list strangers, idle_peers; /* by how long they have been quiet, nearly */
    uint32_t stranger_count;
    bool isolated; /* the node, by the last tick */
    struct leat_node_log_sum closed_sum,
        wait_sum; /* lines that peers, or many streams, bring about */
    struct leat_unpack unpack;
    struct leat_pace pace;
    struct leat_output output;
    struct leat_sharer *sharers[LEAT_SHARER_BUCKETS];
    uint32_t calls, calls_max;

    struct leat_stock append_pool, part_pool, fetch_pool, item_pool, read_pool;
    /* These, and those of other front ends; a counter of looks at connections that want structs */
    uint32_t stock_count, wants;
    struct leat_list wanted_stocks; /* for which connections wait */
    uint8_t *scratch;               /* an answer is built here, then copied to its connection */

    struct leat_counters counters;
    struct leat_mail stop_mail;
    void *front; /* a front end's state of this core */
};

static inline uint64_t leat_core_now(const struct leat_core *core)
{
    return core->env->clock->now_us(core->env->clock->ctx);
}

static inline void leat_core_mail(struct leat_core *core, unsigned to, struct leat_mail *mail,
                                  void (*deliver)(void *actor, struct leat_mail *mail))
{
    mail->deliver = deliver;
    core->env->post->send(core->env->post->ctx, to, mail);
}

/** A mail that goes from core to core, 0 first: to the next core, for `each`; from the last one to actor `then`, for
 * `done`. */
static inline void leat_core_mail_next(struct leat_core *core, struct leat_mail *mail,
                                       void (*each)(void *actor, struct leat_mail *mail),
                                       unsigned then,
                                       void (*done)(void *actor, struct leat_mail *mail))
{
    bool last = core->index + 1 == core->node->options.cores;
    leat_core_mail(core, last ? then : core->index + 1, mail, last ? done : each);
}

#endif
