/* SPDX-License-Identifier: Apache-2.0 */
/* Streams found, made and deleted for requests of any front door. Private to broker/ and kafka/. */
#ifndef LEAT_BROKER_ADMIN_STREAMS_H
#define LEAT_BROKER_ADMIN_STREAMS_H

#include "broker/data/seek.h"
#include "broker/net/core.h"

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

/** Streams are made at a limited rate: may this core make one more now, for who names it? Of one address half. Error:
 * LEAT_E_STARTING. Once for each that is made. Thread: core. */
leat_err leat_stream_rate_allowed(struct leat_core *core, struct leat_sharer *asks,
                                  struct leat_error *error) LEAT_NODISCARD;
/** The same on request, by how many logs that makes or looks at: may a stream be made (desc NULL), or that one be
 * changed, to these settings? asks NULL: another node, for a client of its own. Error: LEAT_E_AGAIN. */
leat_err leat_stream_work_allowed(struct leat_core *core, struct leat_sharer *asks,
                                  const struct leat_stream_desc *desc,
                                  const struct leat_stream_settings *settings,
                                  struct leat_error *error) LEAT_NODISCARD;
/** leat_stream_name_check(), and no name of the server's own. */
leat_err leat_stream_name_allowed(struct leat_msg_string name,
                                  struct leat_error *error) LEAT_NODISCARD;
/** May so many logs be made? settings: zeros are the defaults. LEAT_E_TOO_MANY: no, as a stream, a core or the
 * memory budget has no room for them; LEAT_E_AGAIN: others are being made. Asked for each
 * stream but the server's own. A stream of that name that exists is no refusal here: who makes it finds it. */
leat_err leat_stream_create_allowed(const struct leat_core *core, struct leat_msg_string name,
                                    const struct leat_stream_settings *settings,
                                    struct leat_error *error) LEAT_NODISCARD;
/** May that node have this streamlet as well? Its memory is taken to be like this node's. LEAT_E_TOO_MANY. Thread: any
 * core. */
leat_err leat_stream_move_allowed(const struct leat_core *core, const struct leat_stream_desc *desc,
                                  const struct leat_node_info *target,
                                  struct leat_error *error) LEAT_NODISCARD;
/** leat_stream_create_allowed() for a stream that exists and gets more streamlets. */
leat_err leat_stream_enlarge_allowed(const struct leat_core *core,
                                     const struct leat_stream_desc *desc,
                                     const struct leat_stream_settings *settings,
                                     struct leat_error *error) LEAT_NODISCARD;

/* Find streams by name, create what is missing if that is wanted, and wait until every core serves
 * them: one after the other. What is not found then does not exist. Caller's storage. */
struct leat_seeker {
    struct leat_core *core;
    struct leat_sharer *sharer;
    uint64_t address; /* leat_peer_asks() */
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

/* Delete a stream, and wait until no core serves it. Caller's storage. */
struct leat_deleter {
    struct leat_core *core;
    uint64_t address; /* leat_peer_asks() */
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

/* Change a stream, and wait until every core of this node has heard of it. Caller's storage. */
struct leat_changer {
    struct leat_core *core;
    uint64_t address; /* leat_peer_asks() */
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

#endif
