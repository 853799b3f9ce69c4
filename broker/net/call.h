/* SPDX-License-Identifier: Apache-2.0 */
/* Requests other than append and fetch: one allocated struct each, bounded in number. Thread: the call's core,
 * unless said otherwise. */
#ifndef LEAT_BROKER_NET_CALL_H
#define LEAT_BROKER_NET_CALL_H

#include "broker/net/peer.h"
#include "link/link.h"
#include "wire/message.h"

struct leat_core;

struct leat_call {
    struct leat_core *core; /* where the peer is */
    struct leat_peer *peer;
    uint16_t kind;
    uint32_t request;
    size_t held; /* of the core's memory for output: this struct and what leat_call_memory() gave */
    size_t own;  /* bytes of a call without a place among the core's calls: its connection's own */
    bool by_link; /* another node asks, for a client of its own: the answer goes by ticket */
    struct leat_link_ticket ticket;
    struct leat_mail mail;
};

typedef void (*leat_call_fn)(struct leat_peer *peer, const struct leat_frame *frame);
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

/** No client waits for the answer any more: its connection has gone. */
static inline bool leat_call_abandoned(const struct leat_call *call)
{
    return !call->by_link && call->peer->conn == NULL;
}

void leat_call_writer(struct leat_core *core, struct leat_msg_writer *out_writer);

#endif
