/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs transport: the device, and the host's half. */
#include "os/rmem_verbs.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/node_log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void leat_os_verbs_why(int error, struct leat_error *out)
{
    if (error == ENOMEM)
        leat_error_set(
            out, LEAT_E_NO_MEMORY,
            "the limit of locked memory is too low to register %d MiB for RDMA: raise it "
            "(ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit file)",
            LEAT_ARENA_STEP_BYTES >> 20);
    else
        leat_error_set(out, LEAT_E_UNSUPPORTED, "memory can't be registered for RDMA: %s",
                       strerror(error));
}

bool leat_os_channel_unblock(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

/* ---- connections of writers; host's actor ---- */

static void conn_close(struct verbs_conn *conn)
{
    /* The first takes the queue pair to its error state, so that nothing more arrives, and tells the
     * writer, which destroying alone does not. */
    (void)rdma_disconnect(conn->id);
    if (conn->id->qp) rdma_destroy_qp(conn->id);
    (void)rdma_destroy_id(conn->id);
    leat_list_remove(&conn->link);
    leat_mem_free(conn);
}

static struct os_rmem_arena *arena_asked_for(struct os_verbs *verbs,
                                             const struct verbs_hello *hello)
{
    if (hello->magic != VERBS_MAGIC) return NULL;
    struct leat_rmem_address address = {.number = hello->number};
    memcpy(address.id, hello->id, sizeof address.id);
    struct os_rmem_arena *arena = leat_os_rmem_arena_find(verbs->rmem, &address);
    if (!arena || arena->port.revoked || arena->port.grown_bytes == 0) return NULL;
    return arena->verbs && !atomic_load(&arena->verbs->bad) ? arena : NULL;
}

static bool conn_accept(struct os_verbs *verbs, struct rdma_cm_id *id, struct os_rmem_arena *arena)
{
    struct verbs_conn *conn = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *conn);
    if (!conn) return false;
    struct ibv_qp_init_attr attr = {
        .send_cq = verbs->cq,
        .recv_cq = verbs->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct verbs_welcome welcome = {.base = (uintptr_t)arena->port.base,
                                    .table = (uintptr_t)arena->header->keys,
                                    .table_key = arena->verbs->table->rkey,
                                    .magic = VERBS_MAGIC};
    struct rdma_conn_param param = {.private_data = &welcome,
                                    .private_data_len = sizeof welcome,
                                    .responder_resources = 1,
                                    .initiator_depth = 1,
                                    .rnr_retry_count = 1};
    if (rdma_create_qp(id, verbs->pd, &attr) == 0) {
        conn->id = id;
        conn->arena = arena;
        id->context = conn;
        leat_list_push_back(&verbs->conns, &conn->link);
        if (rdma_accept(id, &param) == 0) return true;
        leat_list_remove(&conn->link);
        rdma_destroy_qp(id);
    }
    leat_mem_free(conn);
    return false;
}

static void conn_requested(struct os_verbs *verbs, struct rdma_cm_id *id,
                           const struct verbs_hello *hello)
{
    struct os_rmem_arena *arena = arena_asked_for(verbs, hello);
    id->context = NULL;
    if (arena && id->verbs == verbs->context && conn_accept(verbs, id, arena)) return;
    (void)rdma_reject(id, NULL, 0); /* the writer names it: no such arena (any more) */
    (void)rdma_destroy_id(id);
}

static void device_gone(struct os_verbs *verbs)
{
    if (atomic_exchange(&verbs->gone, true)) return;
    leat_node_log_error(
        "the RDMA device has disappeared: replication goes on by another transport");
    verbs->rmem->host.kinds &= ~(1u << LEAT_RMEM_VERBS);
    while (!leat_list_empty(&verbs->conns))
        conn_close(LEAT_CONTAINER(verbs->conns.next, struct verbs_conn, link));
}

static void on_cm_ready(void *user)
{
    struct os_verbs *verbs = user;
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(verbs->channel, &event) == 0) {
        enum rdma_cm_event_type type = event->event;
        struct rdma_cm_id *id = event->id;
        struct verbs_hello hello = {0};
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST &&
            event->param.conn.private_data_len >= sizeof hello)
            memcpy(&hello, event->param.conn.private_data, sizeof hello);
        (void)rdma_ack_cm_event(event); /* before its id may go */
        struct verbs_conn *conn = id == verbs->listener ? NULL : id->context;
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
            conn_requested(verbs, id, &hello);
        else if (type == RDMA_CM_EVENT_DEVICE_REMOVAL)
            device_gone(verbs);
        else if (conn && type != RDMA_CM_EVENT_ESTABLISHED && type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
            conn_close(conn);
    }
}

/* ---- arenas ---- */

void leat_os_verbs_step(struct os_rmem_arena *arena, uint64_t step)
{
    struct os_verbs *verbs = arena->rmem->verbs;
    struct leat_error error;
    if (!verbs || !arena->rmem->in_memory || atomic_load(&verbs->gone)) return;
    if (!arena->verbs && step > 0) return; /* the first was refused */
    struct os_verbs_arena *registered =
        arena->verbs ? arena->verbs : leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *registered);
    if (!registered) return;
    arena->verbs = registered;
    if (!registered->table)
        registered->table = ibv_reg_mr(verbs->pd, arena->header->keys, sizeof arena->header->keys,
                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    if (registered->table)
        registered->steps[step] =
            ibv_reg_mr(verbs->pd, arena->port.base + step * LEAT_ARENA_STEP_BYTES,
                       LEAT_ARENA_STEP_BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (registered->steps[step]) {
        arena->header->keys[step] = registered->steps[step]->rkey;
        return;
    }
    leat_os_verbs_why(errno, &error);
    leat_node_log_error("segments of node %.100s will not come by RDMA: %s", arena->port.writer,
                        error.text);
    atomic_store(&registered->bad, true);
}

size_t leat_os_verbs_grant(const struct os_rmem_arena *arena, uint8_t out[RMEM_SECTION_BYTES])
{
    const struct os_verbs *verbs = arena->rmem->verbs;
    if (!verbs || atomic_load(&verbs->gone) || !arena->verbs || atomic_load(&arena->verbs->bad))
        return 0;
    memcpy(out, &verbs->grant, sizeof verbs->grant);
    return sizeof verbs->grant;
}

void leat_os_verbs_revoke(struct os_rmem_arena *arena)
{
    struct os_verbs *verbs = arena->rmem->verbs;
    if (!verbs) return;
    LEAT_LIST_EACH(&verbs->conns, link)
    {
        struct verbs_conn *conn = LEAT_CONTAINER(link, struct verbs_conn, link);
        if (conn->arena == arena) conn_close(conn);
    }
}

void leat_os_verbs_release(struct os_rmem_arena *arena)
{
    struct os_verbs_arena *registered = arena->verbs;
    if (!registered) return;
    arena->verbs = NULL;
    if (registered->table) (void)ibv_dereg_mr(registered->table);
    for (unsigned i = 0; i < LEAT_RMEM_STEPS_MAX; i++)
        if (registered->steps[i]) (void)ibv_dereg_mr(registered->steps[i]);
    leat_mem_free(registered);
}

bool leat_os_verbs_arena_key(struct os_rmem *rmem, const uint8_t *at, uint32_t *out_key,
                             size_t *out_bytes)
{
    bool found = false;
    (void)pthread_mutex_lock(&rmem->lock);
    for (unsigned i = 0; i < LEAT_RMEM_ARENAS_MAX && !found; i++) {
        const struct os_rmem_arena *arena = rmem->arenas[i];
        if (!arena || !arena->verbs || at < arena->port.base) continue;
        size_t offset = (size_t)(at - arena->port.base);
        if (offset >= arena->port.limit_bytes) continue;
        const struct ibv_mr *mr = arena->verbs->steps[offset / LEAT_ARENA_STEP_BYTES];
        if (!mr) break;
        *out_key = mr->lkey;
        *out_bytes = LEAT_ARENA_STEP_BYTES - offset % LEAT_ARENA_STEP_BYTES;
        found = true;
    }
    (void)pthread_mutex_unlock(&rmem->lock);
    return found;
}

/* ---- the device ---- */

static bool listener_bind(struct os_verbs *verbs, const struct sockaddr *address)
{
    struct sockaddr_storage copy = {0};
    size_t bytes =
        address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return false;
    memcpy(&copy, address, bytes);
    if (address->sa_family == AF_INET)
        ((struct sockaddr_in *)&copy)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)&copy)->sin6_port = 0;
    if (rdma_create_id(verbs->channel, &verbs->listener, verbs, RDMA_PS_TCP)) return false;
    /* An address that no RDMA device has can be bound as well, but then there is no device. */
    if (rdma_bind_addr(verbs->listener, (struct sockaddr *)&copy) == 0 && verbs->listener->verbs &&
        rdma_listen(verbs->listener, 64) == 0)
        return true;
    (void)rdma_destroy_id(verbs->listener);
    verbs->listener = NULL;
    return false;
}

static bool listener_open(struct os_verbs *verbs, const char *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    bool bound = false;
    if (getaddrinfo(host, NULL, &hints, &found) == 0) {
        for (struct addrinfo *at = found; at && !bound; at = at->ai_next)
            bound = listener_bind(verbs, at->ai_addr);
        freeaddrinfo(found);
    }
    struct ifaddrs *all = NULL;
    if (!bound && getifaddrs(&all) == 0) {
        for (struct ifaddrs *at = all; at && !bound; at = at->ifa_next)
            if (at->ifa_addr) bound = listener_bind(verbs, at->ifa_addr);
        freeifaddrs(all);
    }
    return bound;
}

static void grant_fill(struct os_verbs *verbs)
{
    const struct sockaddr *address = rdma_get_local_addr(verbs->listener);
    struct verbs_grant *grant = &verbs->grant;
    uint16_t port = rdma_get_src_port(verbs->listener); /* network order */
    grant->family = address->sa_family;
    memcpy(grant->port, &port, sizeof port);
    if (address->sa_family == AF_INET) {
        memcpy(grant->address, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
        memcpy(grant->address, &six->sin6_addr, 16);
        grant->scope = six->sin6_scope_id;
    }
}

static leat_err device_open(struct os_verbs *verbs, const char *host, struct leat_error *error)
{
    /* Where there is no RDMA at all librdmacm would say so on standard error. */
    if (access("/dev/infiniband/rdma_cm", R_OK | W_OK))
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "no RDMA device (/dev/infiniband/rdma_cm: %s)", strerror(errno));
    verbs->channel = rdma_create_event_channel();
    if (!verbs->channel || !leat_os_channel_unblock(verbs->channel->fd))
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "no RDMA: %s", strerror(errno));
    if (!listener_open(verbs, host))
        return leat_error_set(
            error, LEAT_E_UNSUPPORTED,
            "no address of this machine belongs to an RDMA device (see rdma link)");
    verbs->context = verbs->listener->verbs;
    verbs->pd = ibv_alloc_pd(verbs->context);
    if (verbs->pd) verbs->cq = ibv_create_cq(verbs->context, 16, NULL, NULL, 0);
    if (verbs->cq)
        verbs->watch =
            leat_os_watch_open(verbs->rmem->host_actor, verbs->channel->fd, on_cm_ready, verbs);
    if (!verbs->watch)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "the RDMA device %.60s is not usable: %s",
                              ibv_get_device_name(verbs->context->device), strerror(errno));
    if (!verbs->rmem->in_memory)
        return leat_error_set(error, LEAT_E_UNSUPPORTED,
                              "RDMA needs memory files in /dev/shm: run leatd as a system account");
    grant_fill(verbs);
    return LEAT_OK;
}

void leat_os_verbs_open(struct os_rmem *rmem, const char *host, struct leat_error *error)
{
    struct os_verbs *verbs = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *verbs);
    if (!verbs) {
        leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for RDMA");
        return;
    }
    verbs->rmem = rmem;
    leat_list_init(&verbs->conns);
    rmem->verbs = verbs;
    if (device_open(verbs, host, error) == LEAT_OK) return;
    leat_os_watch_close(&verbs->watch);
    leat_os_verbs_close(rmem);
}

void leat_os_verbs_close(struct os_rmem *rmem)
{
    struct os_verbs *verbs = rmem->verbs;
    if (!verbs) return;
    rmem->verbs = NULL;
    LEAT_ASSERT(leat_list_empty(&verbs->conns));
    for (unsigned i = 0; i < atomic_load(&verbs->source_count); i++)
        (void)ibv_dereg_mr(verbs->sources[i].mr);
    for (unsigned i = 0; i < LEAT_RMEM_STEPS_MAX; i++)
        if (verbs->pool[i]) (void)ibv_dereg_mr(verbs->pool[i]);
    if (verbs->cq) (void)ibv_destroy_cq(verbs->cq);
    if (verbs->pd) (void)ibv_dealloc_pd(verbs->pd);
    if (verbs->listener) (void)rdma_destroy_id(verbs->listener);
    if (verbs->channel) rdma_destroy_event_channel(verbs->channel);
    leat_mem_free(verbs);
}
