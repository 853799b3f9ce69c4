/* SPDX-License-Identifier: Apache-2.0 */
/* One core's writer over verbs, on the device of verbs_alone.h, and a backup with an arena of four steps, of which a
 * test says how many have keys. For one test program only. */
#ifndef LEAT_TESTS_OS_VERBS_WRITER_ALONE_H
#define LEAT_TESTS_OS_VERBS_WRITER_ALONE_H

#include "tests/os/verbs_alone.h"

#include <sys/mman.h>

#define BASE  UINT64_C(0x100000000) /* of the arena, at the backup */
#define TABLE UINT64_C(0x300000000)
#define CM    102
#define WCS   200
/* What attaching comes to: the id, the queue pair and the registered table have these numbers. */
#define RESOLVES(id) "id of 102\nresolve " #id " 10.0.0.9:4791 2000\n"
#define ROUTES(id)   "timeout " #id " 12\nroute " #id " 2000\n"
#define QUEUE(id, cq)                                                                              \
    "cq of 264 with events\nregister somewhere 2048 write\nqp of " #id ", cq " #cq " " #cq         \
    ", requests 260 1, pieces 16 1\n"
#define CONNECTS(id)   "connect " #id ": 24 bytes, resources 1, depth 1, retries 1 1\n"
#define READS(qp, key) "read " #qp " 0x300000000/77: somewhere 2048/" #key " told\n"
#define CUT(id, qp, cq, region)                                                                    \
    "disconnect " #id "\nqp " #qp " ends\ncq " #cq " ends\nregion " #region " ends\nid " #id       \
    " ends\n"

enum { SOURCE_BYTES = 1 << 20, POOL_STEPS = 3 };

static const struct leat_rmem *port;
static struct leat_rmem_address address;
static struct verbs_grant section;
static struct leat_arena pool;
static uint8_t *source;
static size_t port_bytes; /* without targets */

static inline void on_attached(void *user, struct leat_rmem_target *target)
{
    assert_true(target->attached && !target->failed);
    trace("%s attached\n", (const char *)user);
}
static inline void on_failed(void *user, struct leat_rmem_target *target,
                             const struct leat_error *why)
{
    assert_true(target->failed);
    trace("%s failed: %d %s\n", (const char *)user, why->code, why->text);
}
static const struct leat_rmem_target_handler handler = {on_attached, on_failed};

static inline struct os_verbs_target *verbs_of(struct leat_rmem_target *target)
{
    return LEAT_CONTAINER(target, struct os_verbs_target, target);
}

/* A grant of an arena at 10.0.0.9. */
static inline void arena_lies(void)
{
    address = (struct leat_rmem_address){.limit_bytes = 4 * STEP, .number = 5};
    for (unsigned i = 0; i < LEAT_RMEM_ID_BYTES; i++)
        address.id[i] = (uint8_t)(i + 1);
    section = (struct verbs_grant){
        .family = AF_INET, .port = {4791 >> 8, 4791 & 255}, .address = {10, 0, 0, 9, 1}};
}

static inline leat_err attach(const char *user, struct leat_rmem_target **out)
{
    struct leat_rmem_grant grant = {0};
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_NONE, &address, sizeof address));
    assert_true(leat_rmem_grant_add(&grant, LEAT_RMEM_VERBS, &section, sizeof section));
    return port->attach(port->ctx, 5, &grant, &handler, (void *)(uintptr_t)user, out, &error);
}

/* The address is resolved, on the device of the transport. */
static inline void resolved(struct leat_rmem_target *target)
{
    struct rdma_cm_id *id = verbs_of(target)->id;
    id->verbs = &played.context;
    event_comes(id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL, 0);
    ready(CM);
}
static inline void routed(struct leat_rmem_target *target)
{
    event_comes(verbs_of(target)->id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL, 0);
    ready(CM);
}
static inline void established(struct leat_rmem_target *target, uint32_t magic, size_t bytes)
{
    struct verbs_welcome welcome = {.base = BASE, .table = TABLE, .table_key = 77, .magic = magic};
    uint8_t said[PRIVATE_MAX] = {0};
    memcpy(said, &welcome, sizeof welcome);
    event_comes(verbs_of(target)->id, RDMA_CM_EVENT_ESTABLISHED, said, bytes);
    ready(CM);
}
/* The table of keys has been read; the backup has so many steps. */
static inline void keys_come(struct leat_rmem_target *target, unsigned steps)
{
    struct os_verbs_target *verbs = verbs_of(target);
    for (unsigned i = 0; i < steps; i++)
        verbs->keys[i] = 501 + i;
    completes(verbs->cq, NULL, IBV_WC_SUCCESS);
    ready(WCS);
}

static inline struct leat_rmem_target *connected(const char *user)
{
    struct leat_rmem_target *target = NULL;
    assert_int_equal(attach(user, &target), LEAT_OK);
    resolved(target);
    routed(target);
    established(target, VERBS_MAGIC, PRIVATE_MAX); /* as many bytes as the fabric carries */
    trace_begin();
    return target;
}
static inline struct leat_rmem_target *attached(const char *user, unsigned steps)
{
    struct leat_rmem_target *target = connected(user);
    assert_false(target->attached);
    keys_come(target, steps);
    assert_true(target->attached);
    mail_comes();
    trace_begin();
    return target;
}

/* Until nothing of it is left. */
static inline void leaves(struct leat_rmem_target *target)
{
    leat_rmem_detach(target);
    while (played.mail_count > 0)
        mail_comes();
    while (played.job_count > 0)
        job_ends();
    while (played.mail_count > 0)
        mail_comes();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), port_bytes);
    trace_begin();
}

/* One source, whose key is 1001, and the store's pool, of which a step is there. */
static inline void port_opens(void)
{
    device_opens();
    assert_int_equal(leat_os_verbs_writer_open(&rmem, &actor), LEAT_OK);
    port = actor.env.rmems[0];
    source = mmap(NULL, SOURCE_BYTES + POOL_STEPS * STEP, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(source, MAP_FAILED);
    place("source", source, SOURCE_BYTES);
    pool = (struct leat_arena){
        .base = source + SOURCE_BYTES, .limit_bytes = POOL_STEPS * STEP, .grown_bytes = STEP};
    place("pool", pool.base, pool.limit_bytes);
    store.env.arena = &pool;
    world.actors[LEAT_ACTOR_STORE] = &store;
    assert_int_equal(port->source(port->ctx, source, SOURCE_BYTES, &error), LEAT_OK);
    port_bytes = leat_mem_bytes(LEAT_MEM_NET);
    arena_lies();
    trace_begin();
}

static inline void port_closes(void)
{
    device_closes();
    (void)munmap(source, SOURCE_BYTES + POOL_STEPS * STEP);
}

#endif
