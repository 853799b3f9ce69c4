/* SPDX-License-Identifier: Apache-2.0 */
/* What a front end sees of a broker's streams and logs: it finds, makes, changes and deletes streams, and appends,
 * fetches and locates records. See broker/front.h for threads, and for how long what is returned is valid.
 *
 * "Caller's storage": the caller zeroes the struct and sets what its comment names; it stays where it is until on_done.
 * What stands below "its own" is the broker's. Streams are told by their descriptions, which the coordinator keeps.
 */
#ifndef LEAT_BROKER_FRONT_LOGS_H
#define LEAT_BROKER_FRONT_LOGS_H

#include "broker/front.h"
#include "multilog/log.h"
#include "replication/primary/primary.h"
#include "wire/message.h"

struct leat_append_request;
struct leat_fetch;
struct leat_fetch_item;
struct leat_groups;

/* ---- streams that this core knows ---- */

/** The stream of that id, or of that name, if every core of the node serves it; else NULL. */
const struct leat_stream_desc *leat_front_stream(const struct leat_core *core, uint32_t id);
const struct leat_stream_desc *leat_front_stream_named(const struct leat_core *core,
                                                       const char *name, size_t bytes);
/** The stream that follows `after`, of those that clients may see; after NULL: the first. NULL: there is none. */
const struct leat_stream_desc *leat_front_stream_next(const struct leat_core *core,
                                                      const struct leat_stream_desc *after);
/** At most so many streams are known. */
uint32_t leat_front_stream_count(const struct leat_core *core);
/** The stream of that name, also while it is on its way to the cores: *out_served, which may be NULL, is false then. */
const struct leat_stream_desc *leat_front_stream_heard(const struct leat_core *core,
                                                       const char *name, size_t bytes,
                                                       bool *out_served);
struct leat_stream_wait {
    struct leat_list link;
    uint32_t id; /* in stream_awaits: of a stream that is still on its way here */
    void (*on_ready)(struct leat_stream_wait *wait); /* published, or gone */
    void *owner;
};
/** on_ready when every core serves that stream, or when it is gone. Only while it is on its way; never inside. wait:
 * borrowed until then. */
void leat_front_stream_wait(struct leat_core *core, uint32_t id, struct leat_stream_wait *wait);

/** Does this node own that log of the stream, and is it not isolated? *out_home: the core that the log lives on. */
bool leat_front_log_home(const struct leat_core *core, const struct leat_stream_desc *stream,
                         struct leat_log_ref log, uint32_t *out_home);
/** How many bytes are stored of a log of this core; 0: nothing has begun. */
uint64_t leat_front_log_bytes(const struct leat_core *core, struct leat_log_ref log);
/** The groups of a home log of this core; NULL: they are not served here now, as when the log goes. */
struct leat_groups *leat_front_groups(const struct leat_core *core, struct leat_log_ref log);

/* ---- which nodes have the copies of a log ---- */

/* Of one log. */
struct leat_log_places {
    bool known; /* false: its owner has not said */
    struct leat_rep_places others;
};

/**
 * Somebody wants to know of that stream: ask, unless it is known well enough, or too much is under way.
 * true: nothing is known yet, and it is being asked. Streams of one copy are never asked about.
 * Thread: core.
 */
bool leat_places_want(struct leat_core *core, uint32_t stream);
/** What is known of a log; NULL: nothing. */
const struct leat_log_places *leat_front_places(const struct leat_core *core, uint32_t stream,
                                                uint32_t streamlet, uint32_t log);
/* A wait for what is being asked. Caller's storage until on_done. */
struct leat_places_wait {
    struct leat_list link;
    uint64_t serial;
    void (*on_done)(struct leat_places_wait *wait);
    void *owner;
};
/** on_done when all that is being asked now has been answered, or after LEAT_PLACES_ASK_US_MAX; never
 * inside. Only after leat_places_want() has said true. Thread: core. */
void leat_places_wait(struct leat_core *core, struct leat_places_wait *wait);

/* ---- what the structs below hold for the broker ---- */

/* News of a stream on its way to a core. */
struct leat_news {
    struct leat_list link;
    /** Go on with it, for *left at most, which is taken off. true: that was all, and it may be elsewhere by now. */
    bool (*step)(struct leat_news *news, struct leat_core *core, int32_t *left);
};
/* A core hears of all that is committed when it asks. */
struct leat_catch_up {
    struct leat_coordinate request;
    struct leat_mail mail;
    struct leat_news news;
    struct leat_core *core;
    uint64_t address; /* for whom it is asked: leat_front_asks(). 0: for the node */
    uint32_t at;
    bool second_round;
    /** This core knows of everything that was committed when leat_catch_up() was called. */
    void (*on_done)(struct leat_catch_up *catch_up, leat_err rc);
    void *owner;
};
/* Caller's storage until on_done, or until it takes the link out of its list: then nobody is told. */
struct leat_confirm {
    struct leat_list link;
    /** Once, never from within leat_confirm_ask(). LEAT_OK: this core knows of every change of owners
     * that was committed before it was asked. Else that could not be found out: the answer that
     * waits for it must not be given. */
    void (*on_done)(struct leat_confirm *confirm, leat_err rc);
    void *owner;
};
/* Somebody waits for a buffer, on behalf of a connection. */
struct leat_buffer_wait {
    struct leat_list link;
    /** Runs in the middle of whatever gives the buffer back. */
    void (*on_buffer)(struct leat_buffer_wait *wait, void *buffer);
    void *owner;
};
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

/* ---- streams: made, found, changed, deleted ---- */

/** leat_stream_name_check(), and no name of the server's own. */
leat_err leat_stream_name_allowed(struct leat_msg_string name,
                                  struct leat_error *error) LEAT_NODISCARD;
/** May so many logs be made? settings: zeros are the defaults. LEAT_E_TOO_MANY: no, as a stream, a core or the
 * memory budget has no room for them; LEAT_E_AGAIN: others are being made. Asked for each
 * stream but the server's own. A stream of that name that exists is no refusal here: who makes it finds it. */
leat_err leat_stream_create_allowed(const struct leat_core *core, struct leat_msg_string name,
                                    const struct leat_stream_settings *settings,
                                    struct leat_error *error) LEAT_NODISCARD;
/** leat_stream_create_allowed() for a stream that exists and gets more streamlets. */
leat_err leat_stream_enlarge_allowed(const struct leat_core *core,
                                     const struct leat_stream_desc *desc,
                                     const struct leat_stream_settings *settings,
                                     struct leat_error *error) LEAT_NODISCARD;
/** Is it within the rate for that address, by how many logs that makes or looks at, to make a stream (desc NULL), or to
 * change that one, to these settings? asks NULL: another node, for a client of its own. Error: LEAT_E_AGAIN. */
leat_err leat_stream_work_allowed(struct leat_core *core, struct leat_sharer *asks,
                                  const struct leat_stream_desc *desc,
                                  const struct leat_stream_settings *settings,
                                  struct leat_error *error) LEAT_NODISCARD;

/* Create a stream and wait until every core serves it. Caller's storage. */
struct leat_maker {
    uint64_t address;                          /* for whom it is asked: leat_front_asks() */
    void (*on_done)(struct leat_maker *maker); /* once */
    void *owner;
    leat_err rc; /* out */
    struct leat_error error;
    uint32_t id; /* out: the stream's */
    /* its own */
    struct leat_core *core;
    struct leat_coordinate request;
    struct leat_stream_wait wait;
    uint64_t logs; /* as counted in logs_making */
};

/** maker: zeroed, with address, on_done and owner. */
void leat_maker_start(struct leat_core *core, struct leat_maker *maker, const char *name,
                      size_t name_bytes, const struct leat_stream_settings *settings);
/** What the making of the groups' stream comes to for a client; LEAT_OK: the stream is there, or on its way. */
leat_err leat_groups_stream_made(const struct leat_maker *maker) LEAT_NODISCARD;

/* Find streams by name, create what is missing if that is wanted, and wait until every core serves
 * them: one after the other. What is not found then does not exist. Caller's storage. */
struct leat_seeker {
    struct leat_core *core;
    struct leat_sharer *sharer;
    uint64_t address; /* leat_front_asks() */
    bool may_create;
    bool all; /* what is asked for has no name: everything that is committed is waited for */
    struct leat_stream_settings settings; /* of what is created; zeros: defaults */
    uint32_t count;
    char (*names)[LEAT_STREAM_NAME_BYTES_MAX + 1]; /* [count], borrowed until on_done */
    struct leat_error *errors;                   /* [count], borrowed; out: why one is not there */
    void (*on_done)(struct leat_seeker *seeker); /* also from within leat_seeker_start() */
    void *owner;
    /* its own */
    uint32_t at;
    bool was_there; /* another made this name's: it is looked for once more */
    struct leat_stream_seek seek;
    struct leat_maker maker;
};
/** The caller has set everything down to owner. Thread: core, as on_done. */
void leat_seeker_start(struct leat_seeker *seeker);

/* Change a stream, and wait until every core of this node has heard of it. Caller's storage. */
struct leat_changer {
    struct leat_core *core;
    uint64_t address; /* leat_front_asks() */
    uint32_t change;  /* enum leat_stream_change, or-ed */
    struct leat_stream_settings settings;
    leat_err rc; /* out */
    struct leat_error error;
    void (*on_done)(struct leat_changer *changer);
    void *owner;
    /* its own */
    uint64_t logs; /* that come, as counted in logs_making */
    struct leat_coordinate request;
    struct leat_catch_up catch_up;
};
/** Everything down to owner is set; name: copied. */
void leat_changer_start(struct leat_changer *changer, const char *name, size_t name_bytes);

/* Delete a stream, and wait until no core serves it. Caller's storage. */
struct leat_deleter {
    struct leat_core *core;
    uint64_t address; /* leat_front_asks() */
    leat_err rc;      /* out */
    struct leat_error error;
    void (*on_done)(struct leat_deleter *deleter);
    void *owner;
    /* its own */
    struct leat_coordinate request;
    struct leat_stream_wait wait;
};
/** core, address, on_done and owner are set; name: copied. */
void leat_deleter_start(struct leat_deleter *deleter, const char *name, size_t name_bytes);

/* ---- records ---- */

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

/**
 * An append: the same as a native frame's, told by on_done instead of answered. only: as of leat_stock_take_for().
 * NULL: out of structs; the peer is paused and its frame comes again. on_done runs once
 * on the peer's core, also from within; then or later leat_append_end(). The peer's end does not end
 * it: what has been given to a log goes on.
 */
struct leat_append_request *leat_append_begin(struct leat_peer *peer, bool only,
                                              struct leat_log_ref ref, uint32_t epoch,
                                              uint32_t batch_count,
                                              void (*on_done)(struct leat_append_request *request),
                                              void *owner);
/** Its bytes. HELD: the log has no room, the peer is paused; call again with the same bytes, and the
 * same request (leat_append_held()), when the frame comes again. Else they are not needed any more. */
enum leat_handled leat_append_take(struct leat_append_request *request, const uint8_t *payload,
                                   uint32_t payload_bytes);
/** After on_done: give it back. */
void leat_append_end(struct leat_append_request *request);
struct leat_append_outcome {
    leat_err rc;
    const char *text;      /* of a refusal, until leat_append_end() */
    uint64_t first_offset; /* of its first batch */
    int64_t append_time_ms;
};
/** Inside on_done, of a request of one batch. */
struct leat_append_outcome leat_append_outcome(const struct leat_append_request *request);
void *leat_append_owner(const struct leat_append_request *request);
/** The append of that connection that was HELD; NULL: none. */
struct leat_append_request *leat_append_held(const struct leat_peer *peer);
/** The connection has gone. */
void leat_append_peer_closed(struct leat_peer *peer);

/** Begin one: NULL when there are no structs for so many logs; the peer is paused then, and its frame comes again, or
 * its protocol is asked to answer. only: as of leat_stock_take_for(). wait_ms 0: it does not wait. on_ready runs
 * once, also from within leat_fetch_start(), unless the peer goes first (leat_fetch_peer_closed()): then it is gone.
 * It runs once more before leat_fetch_end() where others need what the fetch holds: it has nothing of any log then. */
struct leat_fetch *leat_fetch_begin(struct leat_peer *peer, bool only, uint32_t log_count,
                                    uint32_t min_bytes, uint32_t max_bytes, uint32_t wait_ms,
                                    void (*on_ready)(struct leat_fetch *fetch), void *owner);
/** Add one of its logs; `want` is copied. Answered by item->result. */
struct leat_fetch_item *leat_fetch_add(struct leat_fetch *fetch,
                                       const struct leat_msg_fetch_log *want, uint32_t max_bytes);
void leat_fetch_start(struct leat_fetch *fetch);
/** After on_ready, in the order of the items: give a log's batches, item->result.bytes of them, to
 * the connection, gathered from where they lie. */
void leat_fetch_send(struct leat_fetch *fetch, const struct leat_fetch_item *item);
/** What was not sent is not wanted; the fetch ends when the rest has left. */
void leat_fetch_end(struct leat_fetch *fetch);
void *leat_fetch_owner(const struct leat_fetch *fetch);
/** How much was read, of all its items. */
uint32_t leat_fetch_bytes(const struct leat_fetch *fetch);
/** What was read of that log. From on_ready on, until leat_fetch_end(). */
const struct leat_msg_fetched *leat_fetch_result(const struct leat_fetch_item *item);
/** The connection has gone. */
void leat_fetch_peer_closed(struct leat_peer *peer);

/* Where the log begins and ends of whom a place was asked that it does not have. */
struct leat_locate_range {
    struct leat_position first, end;
};
/* Logs are asked one after the other, each on its own core. Caller's storage. One locator of a connection is at
 * work at a time, in one callback a core looks at one log only, and addresses have turns at that: so who asks for
 * many places, on however many connections, makes nobody wait for more than one. */
struct leat_locator {
    struct leat_core *core;
    struct leat_peer *peer; /* on whose behalf */
    uint32_t count;
    struct leat_msg_locate *asked;    /* [count], borrowed until on_done */
    struct leat_msg_located *found;   /* [count], likewise: code, offset, timestamp_ms, position */
    struct leat_epoch *epochs;        /* [count], of LEAT_LOCATE_EPOCH; NULL: not wanted */
    struct leat_locate_range *ranges; /* [count], of LEAT_LOCATE_POSITION; NULL: not wanted */
    void (*on_done)(struct leat_locator *locator); /* never from within leat_locator_start() */
    void *owner;
    /* its own */
    uint32_t at;
    uint64_t address; /* its peer's */
    struct leat_core *home;
    struct leat_list link, line; /* of its peer's locators; of the core of a log */
    struct leat_list mates;      /* of its address, behind it in that line */
    struct leat_mail mail;
    struct leat_buffer_wait buffer_wait;
    void *buffer; /* while a log is read whose bytes have left memory */
    struct leat_confirm confirm;
    uint32_t epoch; /* of the owner, when its log was asked */
    struct leat_locate_op op;
};
/** The caller has set everything down to owner. Thread: core, as on_done. */
void leat_locator_start(struct leat_locator *locator);

/* One log that is to begin later. Caller's storage. */
struct leat_trimmer {
    struct leat_core *core;
    struct leat_log_ref log; /* owned by this node */
    uint32_t home;           /* the core it lives on */
    uint64_t before;         /* records below it go; UINT64_MAX: all that is acked */
    uint64_t first_offset;   /* out: where it begins */
    leat_err rc;             /* out; see leat_log_trim_before() */
    struct leat_error error;
    void (*on_done)(struct leat_trimmer *trimmer); /* never from within leat_trimmer_start() */
    void *owner;
    /* its own */
    struct leat_mail mail;
    struct leat_log_trim trim;
};
/** The caller has set core, log, home, before, on_done and owner. Thread: core, as on_done. */
void leat_trimmer_start(struct leat_trimmer *trimmer);

#endif
