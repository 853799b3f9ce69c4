/* SPDX-License-Identifier: Apache-2.0 */
/* Whose compressed batch is checked when. Private to broker/. */
#ifndef LEAT_BROKER_NET_UNPACK_H
#define LEAT_BROKER_NET_UNPACK_H

#include "base/error.h"
#include "base/port.h"
#include "broker/net/turns.h"
#include "wire/batch.h"

struct leat_core;
struct leat_peer;

/* Of a core. */
struct leat_unpack {
    struct leat_unpacker *unpacker;
    struct leat_turns addresses;
    struct leat_peer *at; /* whose batch is half done */
    uint64_t at_bytes;    /* bytes of its batch that are uncompressed */
    int64_t left;         /* bytes that may be uncompressed in this turn */
    struct leat_mail mail;
    bool mailed;
};
/* Of a connection. */
struct leat_unpack_peer {
    struct leat_turn turn;
    bool due;   /* the connection was called */
    bool tried; /* its batch is large, and has made way once */
};

leat_err leat_unpack_init(struct leat_core *core) LEAT_NODISCARD;
void leat_unpack_fini(struct leat_core *core);
void leat_unpack_turn_end(struct leat_core *core);
/** Check the records of a connection's compressed batch, which leat_batch_check() has checked: leat_unpacker_check().
 * LEAT_E_AGAIN: other batches come first, or the check is half done; the connection is read from again when its turn
 * comes, and asks again with the same batch. Thread: the connection's core. */
leat_err leat_unpack(struct leat_peer *peer, struct leat_batch *batch,
                     struct leat_error *error) LEAT_NODISCARD;
/** Does the peer wait for its turn to check? */
bool leat_unpack_waits(const struct leat_peer *peer);
/** The peer asks no more for the batch that it waits for. */
void leat_unpack_leave(struct leat_peer *peer);
/** The peer goes from this core. */
void leat_unpack_forget(struct leat_peer *peer);

#endif
