/* SPDX-License-Identifier: Apache-2.0 */
/* The other nodes of the cluster, as a core knows them, and requests that are forwarded to these nodes.
 *
 * The coordinator reports nodes as entries are applied. The report passes over the cores, so each core has a table of
 * its own and asks no other core. A core has one link to each node that is up. A client's request that only the owner
 * of a log can answer is forwarded whole, and the owner's answer returns to the client as if it were this node's.
 * Appends and fetches are never forwarded: their clients are told NOT_OWNER and find the owner themselves. Private to
 * broker/. */
#ifndef LEAT_BROKER_NET_MEMBERS_H
#define LEAT_BROKER_NET_MEMBERS_H

#include "coordinator/coordinator.h"
#include "link/link.h"

struct leat_core;
struct leat_call;
struct leat_frame;
struct leat_node;

enum { LEAT_MEMBER_EARLIER_MAX = 8 };
struct leat_member {
    struct leat_core *core;
    unsigned number; /* in this core's table; never changes while the process lives */
    bool self;
    struct leat_node_info info;
    uint64_t earlier
        [LEAT_MEMBER_EARLIER_MAX]; /* incarnations, the newest first; 0: none that this start heard of */
    struct leat_link *serve; /* NULL: it is down, or this node itself, or this core is not up yet */
};
struct leat_members {
    struct leat_member *rows[LEAT_NODES_MAX]; /* by number */
    uint32_t count;
    struct leat_links *links; /* NULL: a server alone, or not up yet */
};

/** Told by the coordinator: a node came, changed or went. Thread: coordinator. */
void leat_node_on_node(void *owner, const struct leat_node_info *info);
/** This core comes up: make its links. Thread: the core. */
leat_err leat_members_open(struct leat_core *core, struct leat_error *error) LEAT_NODISCARD;
/** After its logs. Thread: any, the core runs no more. */
void leat_members_fini(struct leat_core *core);
/** The node whose newest incarnation this is; NULL: none that is known. Borrowed until the next turn. */
const struct leat_member *leat_member_find(const struct leat_core *core, uint64_t incarnation);
/** The node of this name; NULL: none that is known. Borrowed as above. */
struct leat_member *leat_member_named(const struct leat_core *core, const char *name);
/** Does this node own the streamlet? */
bool leat_core_owns(const struct leat_core *core, const struct leat_stream_desc *desc,
                    uint32_t streamlet);
/** Is a log of `epoch` this node's still? Not if its streamlet has another owner, or was given to this node anew. A log
 * whose loss was accepted has an epoch of its own, later than its streamlet's. */
static inline bool leat_core_still_owns(const struct leat_core *core,
                                        const struct leat_stream_desc *desc, uint32_t streamlet,
                                        struct leat_epoch epoch)
{
    return leat_core_owns(core, desc, streamlet) && desc->streamlets[streamlet].epoch.v <= epoch.v;
}
/** The core that a log lives on at a node of so many cores: docs/architecture.md. */
uint32_t leat_lane_of_log(struct leat_log_ref ref, uint32_t logs, uint32_t cores);
/** How many cores the node of this incarnation has; this node's own number if it is not known. */
uint32_t leat_member_cores(const struct leat_core *core, uint64_t incarnation);
/** "node-2 (10.0.0.2:7700)", or the part that is known of this incarnation; for sentences. */
void leat_member_words(const struct leat_core *core, uint64_t incarnation, char *out,
                       size_t capacity);
/** Is the node down, and expected back? A node that drains is not. */
static inline bool leat_member_is_missed(const struct leat_member *member)
{
    return member->info.state == LEAT_NODE_DOWN && !member->info.draining;
}
/** Are all nodes up, except nodes that are not expected back? */
bool leat_all_nodes_up(const struct leat_core *core);
/** Let the owner answer. control: copied. The call is ended by this, now or later. */
void leat_call_forward(struct leat_call *call, uint64_t owner, const uint8_t *control,
                       uint32_t control_bytes);

/* A question to another node's broker, of this node's own. Caller's storage until on_done. */
struct leat_ask {
    struct leat_link_call link_call;
    /** Once, never inside leat_ask_start(). rc LEAT_OK: answer is a view until return; else why. */
    void (*on_done)(struct leat_ask *ask, leat_err rc, const struct leat_frame *answer,
                    const char *why);
    void *owner;
    uint64_t timeout_us; /* 0: LEAT_ASK_US_MAX */
};
/**
 * kind: as a client's; the node answers as to another broker. control: borrowed until on_done.
 * Errors: LEAT_E_AGAIN, error says which node can't be asked and why; then on_done does not run.
 * Thread: a core.
 */
leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error) LEAT_NODISCARD;

enum {
    /* Then the request is answered with the answers that have come */
    LEAT_ASK_US_MAX = 3 * 1000 * 1000,
    LEAT_FORWARD_US_MAX = 45 * 1000 * 1000, /* joining a consumer group may take that long */
    LEAT_MEMBER_TIMERS = LEAT_LINKS_TIMERS,
};

/** The core of this node that a log of its own lives on. */
uint32_t leat_core_of_log(const struct leat_node *node, struct leat_log_ref ref, uint32_t logs);

#endif
