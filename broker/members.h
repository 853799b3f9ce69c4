/* The other nodes of the cluster, as one core knows them, and requests that are handed on to them.
 *
 * The coordinator tells of nodes as entries are applied; the news is carried over the cores, so each
 * has a table of its own and asks nobody. A core has one link to each node that is up. A client's
 * request that only the owner of a log can answer goes there whole, and the owner's answer comes
 * back as if it were this node's. Appends and fetches are never handed on: their clients are told
 * NOT_OWNER and find the owner themselves. Private to broker/.
 */
#ifndef LEAT_BROKER_MEMBERS_H
#define LEAT_BROKER_MEMBERS_H

#include "coordinator/coordinator.h"
#include "link/link.h"

struct leat_core;
struct leat_call;
struct leat_frame;
struct leat_node;

struct leat_member {
    struct leat_core *core;
    unsigned number; /* in this core's table; never changes while the process lives */
    bool self;
    struct leat_node_info info;
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
/** Is this node the owner of that streamlet? */
bool leat_core_owns(const struct leat_core *core, const struct leat_stream_desc *desc,
                    uint32_t streamlet);
/** The core that a log lives on at a node of so many cores: design §6.1. */
uint32_t leat_lane_of_log(struct leat_log_ref ref, uint32_t logs, uint32_t cores);
/** "node-2 (10.0.0.2:7700)", or what is known of that incarnation; for sentences. */
void leat_member_words(const struct leat_core *core, uint64_t incarnation, char *out,
                       size_t capacity);
/** Let the owner answer. control: copied. The call is ended by this, now or later. */
void leat_call_forward(struct leat_call *call, uint64_t owner, const uint8_t *control,
                       uint32_t control_bytes);

enum {
    LEAT_FORWARD_US_MAX = 45 * 1000 * 1000, /* joining a consumer set may take that long */
    LEAT_MEMBER_TIMERS = LEAT_LINKS_TIMERS,
};

#endif
