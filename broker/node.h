/* SPDX-License-Identifier: Apache-2.0 */
/* A whole node: store, coordinator and cores put together and brought up, on whatever ports it is
 * given.
 *
 * leatd gives it the real ports and one thread per actor; the simulator the simulated ones. Order
 * of coming up: open the store (scan open segments) -> coordinator ready -> NODE_UP -> ADOPT
 * (decide and commit where every log ends) -> cut and close -> cores create their logs -> listen ->
 * on_ready.
 */
#ifndef LEAT_BROKER_NODE_H
#define LEAT_BROKER_NODE_H

#include "base/port.h"
#include "base/rmem.h"
#include "coordinator/coordinator.h"
#include "store/store.h"

struct leat_node;
struct leat_core; /* one core's broker: broker/net/core.h */
struct leat_door; /* of a front end: broker/front.h */

enum {
    LEAT_NODE_HIBERNATE_AFTER_US = 60 * 1000 * 1000,
    /* Flushing takes a quarter of a busy server's CPU; a burst that fits into memory goes by without
     * it. Far below HIBERNATE_AFTER, so what a power cut takes from a `memory` stream grows little. */
    LEAT_NODE_FLUSH_DELAY_US = 5 * 1000 * 1000,
    /* While an append has waited for room for that long: idle heads hold what it needs, here or at
     * backups, and are hibernated after so much of idleness. */
    LEAT_NODE_PRESSED_US = 500 * 1000,
    LEAT_NODE_HIBERNATE_PRESSED_US = 1000 * 1000,
    LEAT_NODE_SHORT_US = 2 * 1000 * 1000, /* every core has looked after its logs by then */
    LEAT_ADDRESS_CONNECTIONS = 16384,     /* of one address, unless the operator says otherwise */
};

/* Of a cluster; node_address NULL: a server alone. Strings outlive the node. */
struct leat_node_cluster {
    const char *node_address;        /* "HOST:PORT" where other nodes reach this one */
    const struct leat_key *key;      /* that all nodes of the cluster have; must outlive the node */
    const char *advertise;           /* where clients reach it; NULL: what was bound */
    const char *const *coordinators; /* node addresses of those that vote, the same on every node */
    uint32_t coordinator_count;
    const char *rack;                /* NULL: not said */
    const char *host;                /* the machine that it runs on; NULL: by node_address */
    enum leat_rmem_kind replication; /* LEAT_RMEM_NONE: the best that works, for each node */
    const char *no_verbs;            /* why there is no such transport; NULL: there is */
    const struct leat_transport_baseline
        *baseline;                            /* replication/transport/transport.h; NULL: no rpc */
    unsigned ping_ms, suspect_ms, confirm_ms; /* see leat_coordinator_options */
    uint32_t strangers_max;                   /* on the node port; 0: LEAT_LINK_STRANGERS_MAX */
    uint64_t (*thread_cpu_ns)(void *ctx); /* CPU time of the calling thread; NULL: not counted */
};
struct leat_node_options {
    uint32_t cores;
    struct leat_node_cluster cluster;
    const char *name;           /* of the node, for people */
    const char *listen_address; /* "HOST:PORT" */
    const char *
        admin_address; /* "unix:NAME" in the data directory; NULL: none. broker/admin/administer.c */
    const char *admin_path; /* where people find it; outlives the node */
    const char *version;    /* for STATUS */
    uint64_t memory_bytes;  /* whole budget; the pool gets what is left after the named overheads */
    /* What the heap takes for all that there is one of for each log, stream, segment and replica. What it takes
     * beyond what the budget foresees, the pool gives up. Thread: any. NULL: not counted. */
    uint64_t (*heap_bytes)(void *ctx);
    /** Looked at now and then: what was freed goes back to the kernel if it is much. Thread: store. NULL: it does so by
     * itself. */
    void (*heap_trim)(void *ctx);
    void *heap_ctx;
    bool auto_create;              /* METADATA may create streams */
    uint64_t hibernate_after_us;   /* 0: LEAT_NODE_HIBERNATE_AFTER_US */
    uint64_t offsets_retention_us; /* of consumer groups without members; 0: for ever */
    uint64_t flush_delay_us;       /* 0: LEAT_NODE_FLUSH_DELAY_US */
    /* Of the coordinator's log: how large its files are, and after how much a snapshot replaces it; 0:
     * defaults. */
    uint64_t raft_segment_bytes, raft_snapshot_bytes_min;
    uint64_t scrub_bytes_per_second;
    uint32_t connections_per_address; /* 0: LEAT_ADDRESS_CONNECTIONS */
    uint64_t audit_us;                /* see leat_primary_options */
    struct leat_door *door;           /* NULL: none. Must outlive the node */
    /* Environments, one per actor; must outlive the node. */
    const struct leat_env *core_envs; /* [cores] */
    const struct leat_env *store_env;
    bool pool_in_file; /* the store's arena is a file on a disk; for STATUS */
    const struct leat_env *coordinator_env;
    /* For STATUS: CPU time of this process, microseconds. */
    uint64_t (*cpu_us)(void *ctx);
    void *cpu_ctx;
    /** Ready, or failed to come up (rc; error names the cause). Runs on core 0. */
    void (*on_ready)(void *owner, leat_err rc, const struct leat_error *error, const char *address);
    /** After leat_node_stop(): everything is flushed and closed. Runs on core 0. */
    void (*on_stopped)(void *owner, leat_err rc);
    /** The cluster has declared this incarnation crashed: it serves nothing any more. The process
     * has to end, without ceremony, and may start anew. Also after leat_node_stop(), which does not
     * come to its end then. Runs on core 0. NULL: not told. */
    void (*on_crashed)(void *owner);
    void *owner;
};

/**
 * Create the node and open its store. Blocks (start-up). Actors are then registered by the caller:
 * cores: leat_node_core(i) with leat_core_actor; LEAT_ACTOR_STORE: leat_node_store() with
 * leat_store_actor; LEAT_ACTOR_COORDINATOR: leat_node_coordinator() with leat_coordinator_actor.
 * Then leat_node_start() on core 0.
 */
leat_err leat_node_create(const struct leat_node_options *options, struct leat_node **out_node,
                          struct leat_error *error) LEAT_NODISCARD;
struct leat_core *leat_node_core(struct leat_node *node, uint32_t core);
struct leat_store *leat_node_store(struct leat_node *node);
struct leat_coordinator *leat_node_coordinator(struct leat_node *node);
extern const struct leat_actor_ops leat_core_actor;
/** Begin coming up. Thread: core 0. */
void leat_node_start(struct leat_node *node);
/** Refuse new work, answer what is under way, hibernate all logs, flush, then on_stopped. Thread: core
 * 0. */
void leat_node_stop(struct leat_node *node);
/** All actors have been taken off their threads. */
void leat_node_destroy(struct leat_node **node);
/** How much of a budget the segments' pool gets (multiple of LEAT_ARENA_STEP_BYTES); 0: too small.
 * The arena is opened with it before leat_node_create(). Thread: any. */
uint64_t leat_node_pool_bytes(uint64_t memory_bytes, uint32_t cores);
/** Buffers of one actor's connections that nobody uses and that are kept for the next: leat_os_world_options. */
uint64_t leat_node_ready_bytes(uint64_t memory_bytes, uint32_t cores);
/** Of that, what the node's own segments get: all, or in a cluster half. The rest is for replicas. */
uint64_t leat_node_own_pool_bytes(uint64_t pool_bytes, bool clustered);
/** The least budget for so many cores; and how many of so many a budget has room for, one at least. Thread: any. */
uint64_t leat_node_least_memory(uint32_t cores);
uint32_t leat_node_cores_most(uint64_t memory_bytes, uint32_t cores);
/** Room for what the heap takes for logs and what is stored, beside a whole pool. Thread: any. */
uint64_t leat_node_heap_room(uint64_t memory_bytes, uint32_t cores);
/** Sentences about what is damaged or incomplete, found at start: each(arg, line). Thread: core 0,
 * after on_ready. */
void leat_node_complaints(const struct leat_node *node, void (*each)(void *arg, const char *line),
                          void *arg);
/** After on_stopped: all that the segments' pool holds is on disk, the pool may be discarded. False where the node
 * stopped before it was up (no log was there to be hibernated), where memory has segments that no log has hibernated,
 * where the last flush failed, and after complaints: bytes of what is damaged or missing may lie in memory alone.
 * Thread: any, when the actors have been taken off theirs; core 0 in on_stopped. */
bool leat_node_pool_is_spent(const struct leat_node *node) LEAT_NODISCARD;

#endif
