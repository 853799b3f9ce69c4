/* SPDX-License-Identifier: Apache-2.0 */
/* Transports of one-sided writes behind one writer port (base/rmem.h).
 *
 * `shm` and `verbs` are the world's own (env->rmems). `tcp` and `rpc` use links of purpose LEAT_LINK_DATA: this
 * library has their writer, and the *sink* that puts arriving bytes into the arenas. On top is a choice: `auto` takes
 * the first transport that works of shm, verbs, tcp, for each target by itself. `rpc` is there only in benchmarks and
 * tests: replication/rpc is a separate library.
 *
 *     leat_primary -> leat_transport_writer() -> env->rmems[…]                    shm, verbs
 *                                             -> link -> sink -> host->enter()    tcp, rpc
 */
#ifndef LEAT_REPLICATION_TRANSPORT_TRANSPORT_H
#define LEAT_REPLICATION_TRANSPORT_TRANSPORT_H

#include "base/rmem.h"
#include "link/link.h"

enum { LEAT_TRANSPORT_NODES_MAX = 256 };

/* The baseline of benchmarks: each write is a request that the backup answers. */
struct leat_transport_baseline {
    uint16_t kind; /* of its frames */
    void (*answer)(struct leat_link *link, const struct leat_link_ticket *ticket, leat_err rc);
};
extern const struct leat_transport_baseline leat_transport_rpc; /* library leat_transport_rpc */

/* ---- the primary's side: one per core ---- */
struct leat_transport; /* opaque */

struct leat_transport_options {
    const struct leat_env *env;                     /* the core's */
    struct leat_links *links;                       /* the core's; NULL: no tcp, no rpc */
    const struct leat_transport_baseline *baseline; /* NULL: no rpc */
    enum leat_rmem_kind only;                       /* LEAT_RMEM_NONE: auto */
    const char *no_verbs; /* why this node has no verbs, for refusals; may be NULL. Copied */
};
/** Errors: LEAT_E_NO_MEMORY; LEAT_E_CONFIG: `only` names a transport that this node lacks. Thread:
 * startup, or the core. */
leat_err leat_transport_create(const struct leat_transport_options *options,
                               struct leat_transport **out_transport,
                               struct leat_error *error) LEAT_NODISCARD;
/** All targets are detached and their writes have ended, or the actor runs no more. Before the
 * links. Thread: the core, or after its end. */
void leat_transport_destroy(struct leat_transport **transport);
/** What leat_primary gets. attach(): `node` is the number given to leat_transport_node_set(). */
const struct leat_rmem *leat_transport_writer(const struct leat_transport *transport);
/**
 * Where a node's node port is: links there are opened when a target needs a link. incarnation 0: the node is gone;
 * its targets over links fail. Another address or incarnation: likewise, then anew. Errors: LEAT_E_NO_MEMORY,
 * LEAT_E_INVALID. Thread: the core.
 */
leat_err leat_transport_node_set(struct leat_transport *transport, unsigned node, const char *name,
                                 const char *address, uint64_t incarnation) LEAT_NODISCARD;

/* ---- the backup's side: one per core ---- */
struct leat_transport_sink; /* opaque */

struct leat_transport_sink_options {
    const struct leat_env *env;                     /* the core's */
    const struct leat_rmem_host *host;              /* of any core: enter() and leave() are used */
    const struct leat_transport_baseline *baseline; /* NULL: its requests are refused */
    uint64_t (*cpu_ns)(void *ctx); /* of the calling thread, for the accounts; may be NULL */
    void *cpu_ctx;
};
struct leat_transport_sink_status {
    uint64_t cpu_ns;           /* putting bytes in place and saying so; 0 without cpu_ns */
    uint64_t cpu_emulation_ns; /* of this for `tcp`: what a card would do */
    uint64_t writes, bytes, refused;
};
leat_err leat_transport_sink_create(const struct leat_transport_sink_options *options,
                                    struct leat_transport_sink **out_sink) LEAT_NODISCARD;
/** After the links of the sink. */
void leat_transport_sink_destroy(struct leat_transport_sink **sink);
/** For leat_links_options.services[LEAT_LINK_DATA] of that core; valid as long as the sink. */
const struct leat_link_handler *leat_transport_sink_handler(struct leat_transport_sink *sink);
void leat_transport_sink_status(const struct leat_transport_sink *sink,
                                struct leat_transport_sink_status *out);

#endif
