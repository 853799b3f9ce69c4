/* One core of a broker: an actor with its connections, its logs and its timers. Nothing here is
 * shared with another core; cores talk by mail. Private to broker/ (tests may include it).
 *
 * One turn: bytes come in (conn.c), batches are copied onto logs (append.c), then on_turn_end seals
 * every log that gathered work, runs the fetches that this woke, and writes all answers, at most
 * once per connection.
 */
#ifndef LEAT_BROKER_NET_CORE_H
#define LEAT_BROKER_NET_CORE_H

#include "base/diary.h"
#include "base/list.h"
#include "base/timer.h"
#include "broker/data/confirm.h"
#include "broker/data/lend.h"
#include "broker/data/replicate.h"
#include "broker/net/addresses.h"
#include "broker/net/budget.h"
#include "broker/net/heap.h"
#include "broker/net/members.h"
#include "broker/net/pace.h"
#include "broker/net/sharer.h"
#include "broker/net/stock.h"
#include "broker/net/unpack.h"
#include "broker/node.h"
#include "broker/ownership/collect.h"
#include "broker/ownership/handover.h"
#include "broker/ownership/move.h"
#include "multilog/log.h"
#include "sets/sets.h"
#include "wire/frame.h"
#include "wire/message.h"

/* Named limits of the broker: docs/operations.md shows them all. */
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
    LEAT_PEER_QUEUED_BYTES_MAX =
        8 * 1024 * 1024, /* answers not taken; then neither read nor fetched for */
    LEAT_PEER_QUEUED_BYTES_HARD = 32 * 1024 * 1024, /* then it is closed */
    LEAT_PEER_STALL_US = 10 * 1000 * 1000,          /* takes no bytes that long: closed */
    LEAT_FIRST_FRAME_BYTES_MAX = 64 * 1024,         /* before it has said who it is */
    LEAT_CORE_STRANGERS_MAX = 4096,         /* have not said who they are; then the oldest goes */
    LEAT_PEER_HELLO_US = 10 * 1000 * 1000,  /* to say who it is; then it is closed */
    LEAT_PEER_FRAME_US = 60 * 1000 * 1000,  /* a frame begun is not finished: closed */
    LEAT_APPEND_BATCHES_MAX = 1024,         /* in one request */
    LEAT_APPEND_ROOM_US = 15 * 1000 * 1000, /* longest wait for room in a log */
    LEAT_FETCH_LOGS_MAX = 1024,             /* in one request */
    LEAT_FETCH_BYTES_MAX = 4 * 1024 * 1024, /* of one answer */
    LEAT_FETCH_WAIT_MS_MAX = 60 * 1000,
    LEAT_LOCATE_LOGS_MAX = 1024,
    LEAT_BROKER_STREAM_LOGS_MAX = 32768, /* M x Q: metadata has to fit one control body */
    LEAT_DISK_BUFFER_BYTES = LEAT_BATCH_BYTES_MAX + 64 * 1024,
    LEAT_CORE_SCRATCH_BYTES = LEAT_FRAME_HEADER_BYTES + LEAT_CONTROL_BYTES_MAX,
    LEAT_TICK_US = 1000 * 1000,    /* care of logs, stalled peers */
    LEAT_STOP_TICKS = 5,           /* so long a node that stops waits for others */
    LEAT_SLOW_TICK_US = 20 * 1000, /* looking again at slow readers, only while there are some */
    /* A node of this name is still held to be up: the one that this one follows, or another. */
    LEAT_NAME_RETRY_US = 500 * 1000,
    LEAT_NAME_TRIES_MAX = 20,
    LEAT_REFUSAL_TELL_US = 60 * 1000 * 1000, /* between two lines of streams that are not made */
    /* Logs made through one core on request, and streams made by naming them ("asked"): so many at once, then so many
     * a second; of one address half, which is the largest stream there may be. A change of a stream counts as one log,
     * and one for so many that it has, since all are looked at. */
    LEAT_CREATES_BURST = 2 * LEAT_BROKER_STREAM_LOGS_MAX,
    LEAT_CREATES_PER_SECOND = 4000,
    LEAT_CHANGES_LOGS = 16,
    LEAT_CREATES_ASKED_BURST = 200,
    LEAT_CREATES_ASKED_PER_SECOND = 10,
    LEAT_CATCH_UP_US_MAX = 2 * 1000 * 1000, /* then what is known here is answered */
    LEAT_OPENERS_MAX = 8,                   /* "opened" commits under way */
    LEAT_OPENER_LOGS_MAX = 256,             /* logs of one of them */
};

struct leat_core;
struct leat_peer;
struct leat_hosted;
struct leat_stream;
struct leat_fetch;
struct leat_fetch_read;
struct leat_append_request;

/* ---- waiting for room in a log: a connection, or a forwarded request ---- */
struct leat_room_wait {
    struct leat_list by_log, by_time;
    uint64_t deadline_us;
    struct leat_peer *peer; /* one of these two */
    struct leat_append_request *request;
};

/* ---- a connection ---- */
enum leat_handled {
    LEAT_HANDLED, /* the frame is consumed */
    LEAT_HELD,    /* the peer is paused; the same frame comes again */
    LEAT_LEFT,    /* consumed, and the connection is not this core's any more, or closing */
    LEAT_SHORT,   /* no whole frame is there yet */
};
/* What a connection speaks: the native protocol, or another front door's. */
struct leat_protocol {
    /** Take one frame from the front of the bytes. HANDLED, LEFT: *out_taken says how many bytes it
     * was; SHORT: *out_want says how many are needed to see it whole. */
    enum leat_handled (*take)(struct leat_peer *peer, const uint8_t *data, size_t bytes,
                              size_t *out_taken, size_t *out_want);
    /** The connection is gone; the peer lives on while requests are under way. */
    void (*on_closed)(struct leat_peer *peer);
    /** The turn ends and the peer is among the core's answer_peers: write what is to be written. */
    void (*answer)(struct leat_peer *peer);
    /** A connection without a request that is silent so long is closed, after twice that at most. 0: never. */
    uint64_t idle_us_max;
    /** It has come to another core. tag: leat_peer_move()'s. NULL: nothing is to be done. */
    void (*on_moved)(struct leat_peer *peer, uint32_t tag);
};
enum leat_pause {
    LEAT_PAUSE_ROOM = 1,     /* its append waits for room in a log */
    LEAT_PAUSE_REQUESTS = 2, /* too many requests under way */
    LEAT_PAUSE_SLOW = 4,     /* it does not take its answers */
    LEAT_PAUSE_STARVED = 8,  /* it waits for request structs: its turn comes */
    LEAT_PAUSE_CLOSING = 16, /* a last answer is being written */
    LEAT_PAUSE_TURN = 32,    /* others' requests come first: its turn comes */
};
struct leat_peer {
    const struct leat_protocol *protocol;
    struct leat_core *core;
    struct leat_conn *conn; /* NULL once closed */
    struct leat_list all, slow, owing, answers, cut;
    struct leat_list quiet; /* among strangers; later, those that may be idle */
    uint64_t quiet_since_us;
    uint32_t address;           /* among the node's */
    uint64_t address_number;    /* the same on all nodes: leat_key_number(). 0: other nodes' */
    struct leat_sharer *sharer; /* the same, on this core */
    struct leat_list set_calls; /* its requests to consumer sets that are under way */
    struct leat_list limited;   /* its fetches that wait until it gives a read back */
    struct leat_list locators;  /* its own, of which the first is at work */
    uint32_t reads;             /* of the core's that lie with the network, to be sent to it */
    struct leat_borrower borrowed;
    unsigned paused;              /* enum leat_pause, or-ed */
    uint32_t requests;            /* under way; the peer lives until they are done */
    bool greeted, closing, heard; /* heard: since it has been quiet */
    uint64_t frame_since_us;
    struct leat_output_peer output;
    struct leat_stock_peer stock;
    size_t stalled_bytes; /* queued when last looked at */
    uint64_t stalled_since_us;

    /* Appends, answered in order. */
    struct leat_append_request *append_first, *append_last;
    struct leat_append_request *append_now; /* its frame lies kept in the port, half done */
    struct leat_room_wait room;
    struct leat_unpack_peer unpack;
    struct leat_pace_peer pace;
    char name[32]; /* from hello, for the diary */
};
/** For whom the coordinator is asked, on behalf of a peer: by address. What other nodes hand on counts as of one. */
static inline uint64_t leat_peer_asks(const struct leat_peer *peer)
{
    return peer->address_number != 0 ? peer->address_number : UINT64_MAX;
}

/* ---- a log on its core ---- */
struct leat_hosted {
    struct leat_hosted *hash_next;
    struct leat_log_ref ref;
    struct leat_core *core;
    struct leat_log *log;
    struct leat_stream *stream;
    struct leat_primary_log *copies; /* NULL: this node's copy is the only one */
    struct leat_sets *sets;          /* of a home log */
    struct leat_epoch epoch;
    bool going;       /* being deleted or stopped: no new work */
    bool drained;     /* for a move: its log is stopped, and the coordinator is asked */
    bool tail_away;   /* where it ends was on no node: it waits, and stands in meanwhile */
    bool opens_alone; /* asked for beside others, "opened" was refused: it may be for one of them */
    bool forgiving;   /* an operator gives up what is missing in front */
    bool anew;        /* its last segment is damaged here: other nodes have it */
    /* It goes: another node has it. */
    struct give_up *give_up;
    struct recover_call
        *recover; /* an operator gives up what its end has lost; NULL: nobody does */
    bool
        loss_stops; /* ... that is committed, and the log stops for it: recover.c goes on with it */
    struct leat_move_part *moving; /* it is drained, to be handed over; NULL: it is not */
    bool damage_untold;            /* whether its front is damaged was not known when it was made */
    bool older_follow;             /* while it is made: older segments come later */
    bool older_asked; /* some were on no node: they are looked for again now and then */
    bool older_away;  /* ... and a node was down then: it may have them */
    struct leat_segment_range unsure; /* see leat_takeover_unsure() */
    bool holes; /* ... and some between others, too, which come first, the newest before all */
    bool older_pass_away; /* of one look at all of them, which goes on */
    uint64_t hole_below;  /* ... with those in front of this segment */
    uint32_t older_ticks;
    uint64_t older_looked_us; /* when a read had them looked for */
    uint32_t reads_ticks;     /* so long reads have waited */
    uint32_t care_index;
    struct leat_list dirty, care, opening, home;
    struct leat_list waiters; /* struct leat_fetch_item.waiting */
    struct leat_list blocked; /* struct leat_room_wait.by_log */
    /* What recovery found beyond what is served; given to ACCEPT_LOSS. */
    struct leat_segment **segs;
    size_t seg_count;
    uint64_t highest_segment, highest_offset;
    struct leat_extent highest_extent;       /* of a segment that is elsewhere; {0, 0}: not known */
    uint64_t counted_records, counted_bytes; /* already in the core's totals */
};

static inline bool leat_hosted_loss_stops(const struct leat_hosted *hosted)
{
    return hosted->recover != NULL && hosted->loss_stops;
}

/* ---- a stream as one core knows it ---- */
struct leat_stream {
    struct leat_stream *by_id_next, *by_name_next;
    struct leat_stream_desc *desc;    /* a reference */
    uint64_t logs;                    /* as counted in logs_known */
    struct leat_begun *begun;         /* a reference: of its logs here, those that have begun */
    struct leat_known_places *places; /* where its copies are; NULL: nobody wanted to know lately */
    bool published;                   /* every core has its logs: it may be told of */
    bool deleted;                     /* its end is committed, and on its way over the cores */
    bool logs_missing;                /* some could not be made here: the tick tries again */
    struct leat_list waiters;         /* struct leat_stream_wait */
};
struct leat_stream_wait {
    struct leat_list link;
    uint32_t id; /* in stream_awaits: of a stream that is still on its way here */
    void (*on_ready)(struct leat_stream_wait *wait); /* published, or gone */
    void *owner;
};

/* ---- requests other than append and fetch ---- */
struct leat_call {
    struct leat_core *core; /* where the peer is */
    struct leat_peer *peer;
    uint16_t kind;
    uint32_t request;
    size_t held; /* of the core's memory for output: this struct and what leat_call_memory() gave */
    size_t own;  /* it has no place among the core's calls, but is its connection's own */
    bool by_link; /* another node asks, for a client of its own: the answer goes by ticket */
    struct leat_link_ticket ticket;
    struct leat_mail mail;
};

struct leat_opener {
    struct leat_coordinate request;
    struct leat_core *core;
    uint32_t count, version;
    struct leat_log_ref refs[LEAT_OPENER_LOGS_MAX];
};

/* What a core knows of where copies are: see places.h. */
struct leat_placer {
    struct leat_list known, asks, waits; /* asks: in the order in which they began */
    uint32_t logs, ask_count;
    uint64_t serial;
};

/* What parts below tell parts above: hooks.c has the one table of it. Thread: the core's. */
struct leat_core_hooks {
    /** A request of another node, for a client of its own. false: there is no such kind. */
    bool (*request)(struct leat_peer *peer, const struct leat_frame *frame);
    /** A connection has taken bytes: what is read for others may go on. */
    void (*drained)(struct leat_core *core);
    /** More of the log is acked; there is room in it. Also when it stops: who waits looks again. */
    void (*acked)(struct leat_hosted *hosted);
    void (*room)(struct leat_hosted *hosted);
    /** A log of a home is being made: its options are completed. And it is made. */
    leat_err (*sets_attach)(struct leat_hosted *hosted, struct leat_log_options *options);
    void (*sets_made)(struct leat_hosted *hosted);
    /** A closed segment is damaged here. As leat_mend_ask(). */
    leat_err (*damaged)(const struct leat_hosted *hosted, const struct leat_segment *seg);
    /** Where the log's front is, is known now, and so what of it is damaged. */
    void (*front_known)(struct leat_core *core, struct leat_hosted *hosted);
    /** Somebody wants segments that are not here: they are looked for on other nodes. */
    void (*older)(struct leat_hosted *hosted);
    /** A log that was drained for a move goes otherwise. */
    void (*part_gone)(struct leat_move_part *part);
    /** A log that was given up has left the tables. */
    void (*released)(struct leat_core *core, struct leat_log_ref ref);
};

/* Read from any core (relaxed). */
struct leat_counters {
    _Atomic uint64_t appended_records, appended_bytes, fetched_records, fetched_bytes, connections;
    _Atomic uint64_t own_bytes; /* of connections, beyond the stocks */
    /* What heap.c counts beside connections: those that are closed and have requests under way, and sharers. */
    _Atomic uint64_t closed_peers, addresses;
};

struct leat_core {
    struct leat_node *node;
    uint32_t index;
    const struct leat_env *env;
    const struct leat_net *net;
    struct leat_timers timers;
    struct leat_timer tick, slow_tick, room_timer;
    uint64_t now_us; /* refreshed by leat_core_now() */
    struct leat_diary_sum damaged_sum;
    bool stopping, stopped, ending; /* the last: its logs are waited for to rest */
    struct leat_log_warmth warmth;  /* what this core's waking logs share */
    struct leat_hosted **hosted;    /* buckets */
    uint32_t hosted_count, hosted_mask;
    struct leat_stream **streams_by_id, **streams_by_name;
    bool logs_missing;        /* of some stream here */
    uint64_t logs_known;      /* of all streams, wherever they are */
    uint32_t heap_told_ticks; /* core 0: the diary has it that the heap is full */
    uint32_t stream_count, stream_mask, stream_seen; /* highest id that came by */
    struct leat_list stream_awaits;
    struct leat_news_line news; /* of streams */
    struct {                    /* logs that were missing are being made: walk.c */
        struct leat_news news;
        bool under_way, told;
        uint32_t bucket, at;
        struct leat_stream *stream; /* NULL: the first of the bucket is the next */
    } missing;
    uint64_t refusal_told_us; /* that a stream is not made for who names it: to the diary */
    bool adopted;             /* logs of streams that come from now on are made as they come */

    struct leat_members members;
    struct leat_replicate replicate;
    struct leat_takeovers takeovers; /* core 0's */
    struct leat_mends mends;         /* core 0's */
    struct leat_movers movers;       /* core 0's */
    struct leat_link_handler serve_in;
    struct leat_peer link_peer;             /* stands for all that ask by links */
    const struct leat_link_ticket *serving; /* while a request of a link is taken */

    struct leat_list peers, slow_peers, owing_peers, answer_peers;
    struct leat_list cut_peers;             /* of whose frame a part has come */
    struct leat_list strangers, idle_peers; /* by how long they have been quiet, nearly */
    uint32_t stranger_count;
    struct leat_diary_sum closed_sum, wait_sum; /* lines that peers, or many streams, bring about */
    struct leat_list dirty_logs, opening_logs, care_logs, idle_logs, home_logs;
    struct leat_list room_waits; /* by deadline */
    struct leat_unpack unpack;
    struct leat_pace pace;
    struct leat_list fetches, ready_fetches, deferred_fetches, starved_reads;
    struct leat_confirmer confirmer;
    struct leat_placer placer;
    struct leat_output output;
    struct leat_rate creates, creates_asked;
    struct leat_sharer *sharers[LEAT_SHARER_BUCKETS];
    uint64_t forward_bytes, forward_bytes_max; /* copied for other cores at one time */
    uint32_t calls, calls_max;

    struct leat_stock append_pool, part_pool, fetch_pool, item_pool, read_pool;
    uint32_t stock_count, wants;    /* these, and other front doors'; looks at who wants some */
    struct leat_list wanted_stocks; /* for which connections wait */
    struct leat_lender lender;
    struct leat_list locates;  /* of logs here: one is looked at in each callback */
    struct leat_list locating; /* those for which a batch is being uncompressed */
    struct leat_mail locate_mail;
    bool locate_mailed;
    struct leat_opener *openers;
    uint32_t openers_busy; /* bit each */
    uint8_t *scratch;      /* an answer is built here, then copied to its connection */

    int64_t producer_next;
    uint32_t producer_left;
    bool producer_asked;
    struct leat_coordinate producer_request;
    struct leat_list producer_waits;

    struct leat_counters counters;
    uint32_t logs_to_stop, stop_ticks;
    void (*on_logs_stopped)(struct leat_core *core); /* none of logs_to_stop is left */
    struct leat_mail stop_mail;
    void *door; /* what another front door keeps here */
};

/* ---- core.c ---- */
leat_err leat_core_init(struct leat_core *core, struct leat_node *node, uint32_t index,
                        const struct leat_env *env, uint32_t buffer_count,
                        uint64_t frame_bytes_max) LEAT_NODISCARD;
void leat_core_fini(struct leat_core *core);
/** pools.c: the stock number i of a core, with the size of its structs and how many it has. NULL: there are no more. */
struct leat_stock *leat_core_stock(struct leat_core *core, size_t i, size_t *out_bytes,
                                   uint32_t *out_count);
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
/** A log that the stopping core has counted is parked, or gone. Once for each. */
void leat_core_log_stopped(struct leat_core *core);
/** At the end of a turn of a core that is `ending`. */
void leat_core_ending(struct leat_core *core);
/** Stop a log that the stopping core has counted. */
void leat_core_log_stop(struct leat_core *core, struct leat_hosted *hosted);
/** The core of this node that a log of its own lives on. */
uint32_t leat_core_of_log(const struct leat_node *node, struct leat_log_ref ref, uint32_t logs);

/* ---- stream_table.c: the streams that a core knows ---- */
uint32_t leat_name_hash(const char *name, size_t bytes);
uint32_t leat_hosted_hash(struct leat_log_ref ref);
struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id);
struct leat_stream *leat_stream_find_name(const struct leat_core *core, const char *name,
                                          size_t bytes);
leat_err leat_stream_put(struct leat_core *core, struct leat_stream_desc *desc,
                         struct leat_stream **out_stream) LEAT_NODISCARD;
void leat_stream_remove(struct leat_core *core, struct leat_stream *stream);
void leat_stream_publish(struct leat_stream *stream);

/* ---- hosted.c: the logs of a core ---- */
struct leat_hosted *leat_hosted_find(const struct leat_core *core, struct leat_log_ref ref);
leat_err leat_hosted_create(struct leat_core *core, struct leat_stream *stream,
                            struct leat_log_ref ref, struct leat_epoch epoch,
                            struct leat_segment *const *segs, size_t seg_count,
                            const struct leat_log_tail *tail,
                            struct leat_hosted **out_hosted) LEAT_NODISCARD;
/** (Re)make the log of a hosted that has none. */
leat_err leat_hosted_open(struct leat_hosted *hosted, struct leat_segment *const *segs,
                          size_t seg_count, const struct leat_log_tail *tail) LEAT_NODISCARD;
/** The log is gone or stopped: take it out of the tables and free it. */
void leat_hosted_destroy(struct leat_hosted *hosted);
/** Wake whoever waits on it: they look again. */
void leat_hosted_wake(struct leat_hosted *hosted);
/** LEAT_OK, or LEAT_E_STARTING: this node does not know whether it is still up, others may serve what it does. */
leat_err leat_node_stands(const struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** Which log is it, does it live here, is the epoch right? Fills error (may be NULL). out_home: its
 * core. */
leat_err leat_hosted_route(struct leat_core *core, struct leat_log_ref ref, uint32_t epoch,
                           uint32_t *out_home, struct leat_error *error) LEAT_NODISCARD;
/** The same under whatever epoch: for what is true under any. */
leat_err leat_hosted_place(struct leat_core *core, struct leat_log_ref ref, uint32_t *out_home,
                           struct leat_error *error) LEAT_NODISCARD;
/** Why a log's own core does not serve it: leat_hosted_absent()'s code, in words. */
const char *leat_hosted_absent_words(leat_err absent);
/** Commit "opened" for logs whose first segment has started. */
void leat_hosted_send_openings(struct leat_core *core);
/** From now on it is looked at every second again. */
void leat_hosted_watch(struct leat_hosted *hosted);
/** How a read of that log has ended, for whoever asked: what a node has that is down is not lost, so nobody is told to
 * begin behind it, or to give it up (LEAT_E_STARTING). Thread: the log's core. */
leat_err leat_hosted_hope(const struct leat_hosted *hosted, const struct leat_read *read);
/** What it did not find are segments that may come. */
bool leat_hosted_lacks(const struct leat_hosted *hosted, const struct leat_read *read);
/** Called every tick: retention, parking. */
void leat_hosted_care(struct leat_core *core);
/** Why no request finds this log: STARTING if it comes, or comes again; else UNKNOWN_STREAM. */
leat_err leat_hosted_absent(const struct leat_core *core, struct leat_log_ref ref);
/** Called every tick: logs that could not be made when their stream came (walk.c). */
void leat_walk_make_missing(struct leat_core *core);
/** A log of a stream that was deleted goes, unless it goes already. */
void leat_hosted_delete(struct leat_core *core, struct leat_hosted *hosted);
/** A log that this core gave up is released. It may be this node's again (walk.c). */
void leat_walk_log_released(struct leat_core *core, struct leat_log_ref ref);
/** The core has adopted what was the node's own: now what came to it meanwhile is made (walk.c). */
void leat_walk_on_adopted(struct leat_core *core);

/* ---- hooks.c ---- */
extern const struct leat_core_hooks leat_core_hooks;

/* ---- conn.c, peer.c ---- */
void *leat_peer_accept(void *acceptor, struct leat_conn *conn,
                       const struct leat_conn_handler **out_handler);
/** A new connection of another front door: `peer` is zeroed, the first member of what was allocated
 * by leat_mem, and freed by its last leat_peer_end(). false: refused, the caller frees it. */
bool leat_peer_open(struct leat_core *core, struct leat_peer *peer, struct leat_conn *conn,
                    const struct leat_protocol *protocol,
                    const struct leat_conn_handler **out_handler);
/** Hand a connection on which nothing is under way to another core; it comes back to its protocol
 * with the bytes not taken. The caller returns LEAT_LEFT. */
void leat_peer_move(struct leat_peer *peer, uint32_t core);
/** Say why, and close. Bytes not sent yet are lost. */
void leat_peer_close(struct leat_peer *peer, const char *why);
void leat_peer_pause(struct leat_peer *peer, enum leat_pause why);
void leat_peer_resume(struct leat_peer *peer, enum leat_pause why);
/** Take a request that is neither append nor fetch. False: there is no such kind. */
bool leat_peer_call(struct leat_peer *peer, const struct leat_frame *frame);
/** One request more is under way. */
void leat_peer_begin(struct leat_peer *peer);
/** One is done; the peer may be gone after it. */
void leat_peer_end(struct leat_peer *peer);
/** Send the frame at out (control body already at out + header). */
void leat_peer_send(struct leat_peer *peer, uint8_t *out, enum leat_kind kind, uint8_t flags,
                    uint32_t request, uint32_t control_bytes, uint32_t payload_bytes);
/** Whole frames, copied. A connection that does not take its answers is closed. */
void leat_peer_send_bytes(struct leat_peer *peer, const void *bytes, size_t count);
/** Send an ERROR answer; text NULL: the code's general sentence. */
void leat_peer_refuse(struct leat_peer *peer, enum leat_kind kind, uint32_t request, leat_err code,
                      const char *text);
/** An answer larger than the connection's copy buffer takes. buffer: taken, leat_mem_free(). */
void leat_peer_send_large(struct leat_peer *peer, uint8_t *buffer, size_t bytes);
void leat_peer_close_all(struct leat_core *core);

/* ---- slow_peers.c ---- */
/** Tell why, in the native protocol, and close; to the diary as well. */
void leat_peer_refuse_and_close(struct leat_peer *peer, uint16_t kind, uint32_t request,
                                leat_err code, const char *text);
/** It has said who it is, as its protocol has that. */
void leat_peer_known(struct leat_peer *peer);
/** Too many bytes wait to be taken by it. Puts it among the slow. */
bool leat_peer_is_slow(struct leat_peer *peer);
/** Bytes were taken: if it was slow and is not any more, go on with it. */
void leat_peer_drained(struct leat_peer *peer);
void leat_peer_tick(struct leat_core *core);
void leat_peer_slow_tick(struct leat_core *core);
/** It has been given bytes: from now on somebody looks whether it takes them. */
void leat_peer_owes(struct leat_peer *peer);
/** A part of a frame has come, and has its time. */
void leat_peer_expect(struct leat_peer *peer);
void leat_peer_expect_nothing(struct leat_peer *peer);
/** On a core now: as a stranger, or known. Its time to be quiet begins. */
void leat_peer_quiet_begin(struct leat_peer *peer);
void leat_peer_quiet_end(struct leat_peer *peer);
/** A stranger has come: where there are too many the oldest goes. */
void leat_peer_thin_strangers(struct leat_core *core);

/* ---- append.c ---- */
enum leat_handled leat_append_frame(struct leat_peer *peer, const struct leat_frame *frame);
void leat_append_answer(struct leat_peer *peer);
/** A log has room again. */
void leat_append_on_room(struct leat_hosted *hosted);
void leat_append_expire(struct leat_core *core);
void leat_append_peer_closed(struct leat_peer *peer);

/* ---- fetch.c ---- */
enum leat_handled leat_fetch_frame(struct leat_peer *peer, const struct leat_frame *frame);
void leat_fetch_on_acked(struct leat_hosted *hosted);
void leat_fetch_run_ready(struct leat_core *core);
void leat_fetch_peer_closed(struct leat_peer *peer);
void leat_fetch_undefer(struct leat_core *core);
/** Others stand in line who have nothing under way: fetches that wait for data are answered, the oldest first. */
void leat_fetch_give_way(struct leat_core *core);
/** Answer what waits, with what there is. */
void leat_fetch_stop(struct leat_core *core);

/* ---- calls: locate.c, meta.c, status.c, sets_calls.c, recover.c, trim.c ---- */
typedef void (*leat_call_fn)(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_locate(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_metadata(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_create(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_delete(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_describe(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_segments(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_node_report(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_group(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_producer_id(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_ping(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_status(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_cluster_status(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_node_change(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_streamlet_move(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_set(struct leat_peer *peer, const struct leat_frame *frame);
/** Nobody waits for its answers any more: give up the places that its requests hold. */
void leat_sets_peer_closed(struct leat_peer *peer);
void leat_call_recover(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_places(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_below(struct leat_peer *peer, const struct leat_frame *frame);
void leat_call_stream_trim(struct leat_peer *peer, const struct leat_frame *frame);
/** Storage for one call (bytes of the whole struct, struct leat_call first); refuses by itself when
 * there is none, and returns NULL. */
void *leat_call_create(struct leat_peer *peer, const struct leat_frame *frame, size_t bytes);
/** Zeroed memory for a call, counted until it ends: leat_mem_free() it by then. NULL: no room (LEAT_E_AGAIN). */
void *leat_call_memory(struct leat_call *call, size_t count, size_t bytes);
/** Count so many bytes more for a call, until it ends. false: no room. */
bool leat_call_hold(struct leat_call *call, size_t bytes);
/** Answer and free. error.code LEAT_OK: writer holds the control body, built at
 * leat_call_writer(). Thread: the call's core. */
void leat_call_answer(struct leat_call *call, const struct leat_msg_writer *writer);
void leat_call_refuse(struct leat_call *call, leat_err code, const char *text);
/** Nobody waits for the answer any more: the client's connection has gone. */
static inline bool leat_call_abandoned(const struct leat_call *call)
{
    return !call->by_link && call->peer->conn == NULL;
}
void leat_call_writer(struct leat_core *core, struct leat_msg_writer *out_writer);
/** Create a stream and wait until every core serves it; on_done once. */
struct leat_maker {
    struct leat_coordinate request;
    struct leat_stream_wait wait;
    struct leat_core *core;
    leat_err rc;
    struct leat_error error;
    uint32_t id;
    uint64_t address; /* for whom it is asked: leat_peer_asks() */
    uint64_t logs;    /* as counted in logs_making */
    void (*on_done)(struct leat_maker *maker);
    void *owner;
};
/** maker: zeroed, with address, on_done and owner. */
void leat_maker_start(struct leat_core *core, struct leat_maker *maker, const char *name,
                      size_t name_bytes, const struct leat_stream_settings *settings);
/* A producer id that was never given before. Caller's storage. */
struct leat_producer_wait {
    struct leat_list link;
    leat_err rc; /* out */
    struct leat_error error;
    int64_t id;
    void (*on_done)(struct leat_producer_wait *wait); /* also from within leat_producer_id() */
    void *owner;
};
void leat_producer_id(struct leat_core *core, struct leat_producer_wait *wait);
void leat_producer_ids_fini(struct leat_core *core);
/** Ask a log's core, wherever it is; query->on_done follows, never inside. Thread: core. */
void leat_group_ask(struct leat_core *core, struct leat_sets_group_query *query);
/** What the log of this core says of that group: query->rc, and if that is LEAT_OK the rest of what is asked. */
void leat_group_look(const struct leat_core *core, struct leat_log_ref ref, uint64_t group,
                     struct leat_sets_group_query *out);
/** Broker side of one home log's sets. */
leat_err leat_sets_attach(struct leat_hosted *hosted,
                          struct leat_log_options *options) LEAT_NODISCARD;
void leat_sets_log_made(struct leat_hosted *hosted);

/* Looking for streams by name, on behalf of a client that may know more than this node. */
struct leat_stream_seek {
    struct leat_catch_up catch_up;
    struct leat_stream_wait wait;
    bool caught_up; /* or tried to: once for all names of a request */
    leat_err rc;    /* of that */
    /** After LEAT_E_AGAIN: look again. */
    void (*on_again)(struct leat_stream_seek *seek);
    void *owner;
};
/**
 * Find a stream that may be told of. seek: zeroed at first, with on_again and owner.
 *
 * LEAT_E_AGAIN and error->code LEAT_OK: on_again follows. Else error says why not: UNKNOWN_STREAM,
 * or a code of class retry when the coordinators can't be asked. Thread: a core.
 */
leat_err leat_stream_seek(struct leat_core *core, struct leat_stream_seek *seek, const char *name,
                          size_t bytes, struct leat_stream **out_stream,
                          struct leat_error *error) LEAT_NODISCARD;

/* ---- call.c ---- */
/* A call whose stream may have been made a moment ago by way of another node: its body outlives the frame. */
enum { LEAT_CALL_KEPT_BYTES = 512 }; /* a stream's name, a node's, some numbers */
struct leat_call_kept {
    struct leat_stream_seek seek;
    uint32_t control_bytes;
    uint8_t control[LEAT_CALL_KEPT_BYTES];
};
/** kept: zeroed, the call's. false: the call has been refused. on_again: as of a seek, whose owner is the call. */
bool leat_call_keep(struct leat_call *call, struct leat_call_kept *kept,
                    const struct leat_frame *frame,
                    void (*on_again)(struct leat_stream_seek *seek)) LEAT_NODISCARD;
/** false: no stream can have that name, and the call has been refused. */
bool leat_call_name_check(struct leat_call *call, struct leat_msg_string name) LEAT_NODISCARD;
/** The stream that a kept call names. NULL: the call has been refused, or on_again follows. */
const struct leat_stream *leat_call_stream_find(struct leat_call *call, struct leat_call_kept *kept,
                                                struct leat_msg_string name) LEAT_NODISCARD;
/** The log that a kept call names. false: as above, or another node has it: the call has been passed on to that
 * node as it came. */
bool leat_call_log_find(struct leat_call *call, struct leat_call_kept *kept,
                        struct leat_msg_string name, uint32_t streamlet, uint32_t log,
                        struct leat_log_ref *out_log, uint32_t *out_home) LEAT_NODISCARD;

/* ---- node.c, bringup.c, found.c, adopt.c ---- */
enum leat_fate {
    LEAT_FATE_GONE,    /* dropped */
    LEAT_FATE_SERVED,  /* closed, its log's */
    LEAT_FATE_KEPT,    /* not touched, not served */
    LEAT_FATE_REPLICA, /* another node owns its log: kept for it */
};
/* What became of a found segment: its descriptor may be gone when the logs are made. */
struct leat_found_fate {
    struct leat_log_ref log;
    uint64_t segment, next_offset;
    enum leat_fate fate;
    bool known;  /* its stream is there */
    bool copied; /* ... and other nodes may have what is missing of it */
    bool twin; /* another row is of the same segment, and this one's bytes never got to its file */
    bool tail_waits; /* a decided end, whose segment may be on another node, or a replica here */
};
struct leat_node {
    struct leat_node_options options;
    const struct leat_core_hooks *hooks;
    char name[128], listen_address[128], version[64], bound_address[128];
    struct leat_core *cores;
    struct leat_store *store;
    struct leat_keeper keeper;
    struct leat_coordinator *coordinator;
    struct leat_link_hub hub;
    uint8_t cluster_id[16];
    uint64_t boot, boot_before; /* marks of starts: boots.c */
    uint64_t collect_told;      /* core 0, collect.c: what the diary was told last */
    uint64_t incarnation;
    _Atomic uint64_t incarnation_told; /* the same, for the coordinator's thread */
    _Atomic unsigned standing;         /* enum leat_standing; 0: not told, as if confirmed */
    struct leat_mail crashed_mail;
    uint64_t started_us;
    uint64_t pool_bytes, copies_bytes, writer_bytes_max;
    uint64_t
        copies_first_bytes; /* that nodes may have a step each of; beyond copies_bytes the pool gives it */
    _Atomic uint64_t logs_making; /* of streams that are asked for and not here yet */
    struct leat_heap_wait heap_wait;
    _Atomic uint64_t forwards_bytes; /* appends under way between its cores */
    uint64_t forwards_bytes_max;
    struct leat_addresses addresses;
    struct leat_sets_room sets_room;
    _Atomic uint64_t room_short_us; /* when an append last waited for room for too long; 0: never */
    _Atomic uint64_t logs_hosted;   /* by all cores */
    _Atomic uint64_t logs_share; /* how many it would have while another node is away; core 0's */
    uint64_t heap_room_bytes;    /* for logs and what is stored, beside a whole pool */
    uint64_t peers_place_bytes;  /* leat_node_peers_bytes() */
    struct leat_inherited **inherited; /* node.c's */
    size_t inherited_count;
    struct leat_timer name_timer;
    unsigned name_tries;
    bool joining; /* a new node of a cluster whose id it has yet to learn */
    bool started, coordinator_ready, up, stopping, failed;
    _Atomic uint32_t highest_stream; /* id ever given out, as far as the coordinator here knows */
    /* Coming up. */
    const struct leat_found *found;
    size_t found_count;
    struct leat_log_marks *marks;
    size_t mark_count;
    struct leat_log_decision *decisions;
    size_t decision_count;
    struct leat_found_fate *fates; /* [found_count] */
    struct leat_diary_sum passed_sum;
    struct leat_coordinate request;
    struct leat_mail mail, ready_mail, stop_mail;
    leat_err rc;
    struct leat_error error;
    uint32_t walk_core;
    /* Complaints, for people, by any core; read when their threads have ended. A place is its taker's; NULL:
     * there was no memory for it. The count may exceed LEAT_COMPLAINTS_MAX. */
    char **complaints;
    _Atomic uint32_t complaint_count;
};
enum { LEAT_COMPLAINTS_MAX = 256, LEAT_COMPLAINT_BYTES_MAX = 512 };
void leat_complaint_keep(struct leat_node *node, const char *line);
void leat_node_complain(struct leat_node *node, const char *format, ...) LEAT_PRINTF(2, 3);
void leat_node_bring_up(struct leat_node *node);
/** found.c: what the store found, as the coordinator wants it. Thread: startup. */
leat_err leat_found_marks(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** The decisions are here: of which logs streams are known. Without memory node->fates stays NULL, and the cut fails.
 * Core 0. */
void leat_found_fates(struct leat_node *node);
/** What becomes of each, by the decisions. Thread: store; blocks. */
leat_err leat_found_cut(struct leat_node *node) LEAT_NODISCARD;
/** adopt.c: it is known where the log ends, and the segment that ends it may be elsewhere: then it is taken
 * over like one that has just come to this node. */
bool leat_adopt_awaits_tail(const struct leat_node *node, const struct leat_stream *stream,
                            struct leat_log_ref ref);
/** What is damaged of it goes to the diary. Nothing is, and its front is not known: this is to be called again. */
void leat_adopt_damage_tell(struct leat_core *core, struct leat_hosted *hosted);
/** Make this core's logs from decisions and what was found. */
leat_err leat_adopt_on_core(struct leat_node *node, struct leat_core *core,
                            struct leat_error *error) LEAT_NODISCARD;
/** identity.c: which cluster the data directory is of; a server alone makes one up. Thread: startup; blocks. */
leat_err leat_node_identity(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** A new node has learnt which cluster it is of: keep that, durably. Thread: store; blocks. */
leat_err leat_node_identity_set(struct leat_node *node, const uint8_t cluster_id[16],
                                struct leat_error *error) LEAT_NODISCARD;
enum { LEAT_NODE_FILE_BYTES = 4096 };
/** node_file.c: `content` in the one block of a small file that is open, flushed, its name too. block: borrowed, of
 * LEAT_NODE_FILE_BYTES. Thread: as of the caller, which must not be a core's; blocks. */
leat_err leat_node_file_write(struct leat_node *node, const char *name, struct leat_file *file,
                              uint8_t *block, const void *content, size_t bytes,
                              struct leat_error *error) LEAT_NODISCARD;
/** boots.c: a mark for this start of the data directory, durably. Thread: startup; blocks. */
leat_err leat_node_boot_begin(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** It has come up, as the coordinators have it: keep that, durably. Thread: store; blocks. */
leat_err leat_node_boot_taken(struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;
/** walk.c: events of the coordinator, carried over all cores. */
void leat_node_on_stream(void *owner, struct leat_stream_desc *desc);
void leat_node_on_stream_deleted(void *owner, uint32_t stream_id);
void leat_node_on_streams_given(void *owner, uint32_t highest);

#endif
