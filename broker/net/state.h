/* SPDX-License-Identifier: Apache-2.0 */
/* A node: what all its cores share. Each field says which actor writes to it; a field without such a note is written
 * only while nothing runs. */
#ifndef LEAT_BROKER_NET_STATE_H
#define LEAT_BROKER_NET_STATE_H

#include "base/assert.h"
#include "base/node_log.h"
#include "broker/net/addresses.h"
#include "broker/net/heap.h"
#include "broker/node.h"
#include "coordinator/coordinator.h"
#include "groups/groups.h"

struct leat_core;
struct leat_core_hooks;
struct leat_found_disposition;
struct leat_inherited;
struct leat_found;

enum leat_disposition {
    LEAT_DISPOSITION_GONE,    /* dropped */
    LEAT_DISPOSITION_SERVED,  /* closed, its log's */
    LEAT_DISPOSITION_KEPT,    /* not touched, not served */
    LEAT_DISPOSITION_REPLICA, /* another node owns its log: kept for it */
};

/* What became of a found segment: its descriptor may be gone when the logs are made. */
struct leat_found_disposition {
    struct leat_log_ref log;
    uint64_t segment, next_offset;
    struct leat_stream_desc *desc; /* until the cut: one reference. NULL: no stream is known */
    enum leat_disposition disposition;
    bool known;  /* its stream is there */
    bool copied; /* ... and other nodes may have the missing segments */
    /* Another row is of the same segment, and this one's bytes never got to its file. */
    bool duplicate;
    bool tail_waits; /* a decided end, whose segment may be on another node, or a replica here */
};

/* broker/node/README.md, "States". */
enum leat_node_life {
    LEAT_LIFE_MADE,     /* neither started, nor its coordinator ready */
    LEAT_LIFE_STARTED,  /* its coordinator is not ready yet */
    LEAT_LIFE_READY,    /* its coordinator is, and the node is not started yet */
    LEAT_LIFE_COMES_UP, /* bringup.c */
    LEAT_LIFE_UP,       /* all cores have made their logs */
    LEAT_LIFE_STOPS,    /* its logs are hibernated: stop.c */
    LEAT_LIFE_GIVES_UP, /* stopped before it was up */
};

struct leat_node {
    struct leat_node_options options;
    const struct leat_core_hooks *hooks;
    char name[128], listen_address[128], version[64], bound_address[128];
    struct leat_core *cores;
    struct leat_store *store;
    struct leat_store_port store_port;
    struct leat_coordinator *coordinator;
    struct leat_link_hub hub;
    uint8_t cluster_id[16];
    uint64_t boot, boot_before; /* marks of starts: boots.c */
    uint64_t collect_told;      /* core 0, collect.c: what the node log was told last */
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
    struct leat_groups_room groups_room;
    _Atomic uint64_t room_short_us; /* when an append last waited for room for too long; 0: never */
    _Atomic uint64_t partition_count; /* by all cores */
    _Atomic uint64_t logs_share; /* how many it would have while another node is away; core 0's */
    uint64_t heap_room_bytes;    /* for logs and what is stored, beside a whole pool */
    uint64_t peers_place_bytes;  /* leat_node_peers_bytes() */
    struct leat_inherited **inherited; /* node.c's */
    size_t inherited_count;
    struct leat_timer name_timer;
    unsigned name_tries;
    bool joining;             /* a new node of a cluster whose id it has yet to learn */
    enum leat_node_life life; /* leat_node_enter(): core 0; others read it by leat_node_is_up() */
    _Atomic uint32_t highest_stream; /* id ever given out, as far as the coordinator here knows */
    /* Coming up. */
    const struct leat_found *found;
    size_t found_count;
    struct leat_log_marks *marks;
    size_t mark_count;
    struct leat_log_decision *decisions;
    size_t decision_count;
    struct leat_found_disposition *dispositions; /* [found_count] */
    struct leat_node_log_sum passed_sum;
    struct leat_coordinate request;
    struct leat_mail mail, ready_mail, stop_mail;
    leat_err rc;
    struct leat_error error;
    /* Complaints, for people, by any core; read when their threads have ended. A place is its taker's; NULL:
     * there was no memory for it. The count may exceed LEAT_COMPLAINTS_MAX. */
    char **complaints;
    _Atomic uint32_t complaint_count;
};

/** The step from one state to the next. Thread: core 0. */
static inline void leat_node_enter(struct leat_node *node, enum leat_node_life to)
{
    LEAT_ASSERT_OWNER(node->cores);
    static const unsigned follow[] = {
        [LEAT_LIFE_MADE] =
            1u << LEAT_LIFE_STARTED | 1u << LEAT_LIFE_READY | 1u << LEAT_LIFE_GIVES_UP,
        [LEAT_LIFE_STARTED] = 1u << LEAT_LIFE_COMES_UP | 1u << LEAT_LIFE_GIVES_UP,
        [LEAT_LIFE_READY] = 1u << LEAT_LIFE_COMES_UP | 1u << LEAT_LIFE_GIVES_UP,
        [LEAT_LIFE_COMES_UP] = 1u << LEAT_LIFE_UP | 1u << LEAT_LIFE_GIVES_UP,
        [LEAT_LIFE_UP] = 1u << LEAT_LIFE_STOPS,
        [LEAT_LIFE_STOPS] = 0,
        [LEAT_LIFE_GIVES_UP] = 0,
    };
    LEAT_ASSERT(follow[node->life] & 1u << to);
    __atomic_store_n(&node->life, to, __ATOMIC_RELAXED);
}
/** Its logs are there: it serves, or hibernates them. */
static inline bool leat_node_is_up(const struct leat_node *node)
{
    enum leat_node_life life = __atomic_load_n(&node->life, __ATOMIC_RELAXED);
    return life == LEAT_LIFE_UP || life == LEAT_LIFE_STOPS;
}

enum { LEAT_COMPLAINTS_MAX = 256, LEAT_COMPLAINT_BYTES_MAX = 512 };

void leat_complaint_keep(struct leat_node *node, const char *line);
void leat_node_complain(struct leat_node *node, const char *format, ...) LEAT_PRINTF(2, 3);
/** LEAT_OK, or LEAT_E_NOT_OWNER: this node is isolated, and other nodes may own its streamlets. All that a client asks
 * of a log or of a group is refused so, and the node names itself as down: clients leave it. */
leat_err leat_node_stands(const struct leat_node *node, struct leat_error *error) LEAT_NODISCARD;

#endif
