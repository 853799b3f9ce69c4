/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs transport: what the host's and the writers' halves share. Private to os/. */
#ifndef LEAT_OS_RMEM_VERBS_H
#define LEAT_OS_RMEM_VERBS_H

#include "os/rmem.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum {
    VERBS_SOURCES_MAX = 64,
    VERBS_SGES = 16,
    /* 4.096 us * 2^12 = 17 ms until the card sends again, once: a writer that was fenced, or whose
     * peer is unplugged, notices in 23 to 49 ms (Soft-RoCE). With the usual 19 and 7 it had noticed
     * nothing after 45 s. */
    VERBS_ACK_TIMEOUT = 12,
    VERBS_RETRIES = 1,
    VERBS_RESOLVE_MS = 2000,
};
#define VERBS_MAGIC UINT32_C(0x5654414c) /* "LATV" */

/* Private data of a connection request: at most 56 bytes fit. */
struct verbs_hello {
    uint32_t magic;
    uint32_t number; /* of the arena */
    uint8_t id[LEAT_RMEM_ID_BYTES];
};
static_assert(sizeof(struct verbs_hello) <= 56, "private data");

/* Private data of the acceptance. */
struct verbs_welcome {
    uint64_t base;  /* the address of the arena's byte 0 at the host */
    uint64_t table; /* of the table of keys, one u32 for each step */
    uint32_t table_key;
    uint32_t magic;
};

/* Body of a grant's section LEAT_RMEM_VERBS. */
struct verbs_grant {
    uint16_t family; /* AF_INET or AF_INET6, as Linux numbers them */
    uint8_t port[2]; /* big-endian */
    uint32_t scope;
    uint8_t address[16];
};
static_assert(sizeof(struct verbs_grant) == 24, "no padding");

/* An accepted connection: one writer's core. */
struct verbs_conn {
    struct leat_list link;
    struct rdma_cm_id *id;
    struct os_rmem_arena *arena;
};

struct os_verbs_arena {
    struct ibv_mr *table;
    struct ibv_mr *steps[LEAT_RMEM_STEPS_MAX];
    _Atomic bool bad; /* a step could not be registered: offered no more */
};

struct verbs_source {
    uint8_t *base;
    size_t bytes;
    struct ibv_mr *mr;
};

struct os_verbs {
    struct os_rmem *rmem;
    struct ibv_context *context;
    struct ibv_pd *pd;
    _Atomic bool gone; /* the device has disappeared */
    /* host's actor */
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    struct os_watch *watch;
    struct ibv_cq *cq; /* of accepted connections; nothing ever completes there */
    struct leat_list conns;
    struct verbs_grant grant;
    /* memory that writes come from; appended under rmem->lock, read without */
    struct verbs_source sources[VERBS_SOURCES_MAX];
    _Atomic unsigned source_count;
    _Atomic(struct ibv_mr *) pool[LEAT_RMEM_STEPS_MAX]; /* the store's, by step; helper's thread */
    struct os_verbs_writer *writers[LEAT_CORES_MAX];
};

/** A sentence for a registration that failed, with the cause and the fix. */
void leat_os_verbs_why(int error, struct leat_error *out);
bool leat_os_channel_unblock(int fd);
/** Key of the host's own arenas as a source: of closed segments that this node took over. Any
 * thread. */
bool leat_os_verbs_arena_key(struct os_rmem *rmem, const uint8_t *at, uint32_t *out_key,
                             size_t *out_bytes);

/* rmem_verbs_source.c: memory that writes come from. */
enum verbs_key {
    VERBS_KEY_NONE,
    VERBS_KEY_LATER,
    VERBS_KEY_KNOWN
}; /* later: once the pool is registered as far */
/** The key of the region that `at` lies in, and how many bytes on it reaches. Any thread. */
enum verbs_key leat_os_verbs_local_key(struct os_rmem *rmem, const uint8_t *at, uint32_t *out_key,
                                       size_t *out_bytes);
/** All steps that the store's pool has by now. error: untouched when it went well. Thread: the helper's. */
void leat_os_verbs_pool_register(struct os_rmem *rmem, struct leat_error *error);
/** error: may be NULL. Any thread. */
leat_err leat_os_verbs_source_register(struct os_rmem *rmem, void *base, size_t bytes,
                                       struct leat_error *error) LEAT_NODISCARD;

#endif
