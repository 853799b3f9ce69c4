/* SPDX-License-Identifier: Apache-2.0 */
/* An RDMA device and its connection manager in this process: the functions of libibverbs and librdmacm that
 * os/rmem_verbs*.c call. A request with a right key, inside the registered memory, happens at once; any other request
 * fails, and so does a request to a queue pair that is gone. The private data that both sides exchange as they connect
 * may be changed on the way: fake_verbs.h. Linked with --wrap=access: the device's file is there. */
#include "fake_verbs.h"

#include "fuzz.h"

#include "base/list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

enum { REGIONS_MAX = 256, COMPLETIONS_MAX = 512, PRIVATE_BYTES = 196 };

struct channel {
    struct rdma_event_channel channel;
    struct leat_list events;
};
struct id {
    struct rdma_cm_id id;
    struct id *peer; /* NULL: not connected, or that one has gone */
    bool listens, established;
};
struct pair { /* of queues */
    struct ibv_qp qp;
    struct id *id;
};
struct event {
    struct rdma_cm_event event;
    struct leat_list link;
    uint8_t told[PRIVATE_BYTES];
};
struct queue { /* of completions */
    struct ibv_cq cq;
    struct leat_list link; /* of events that are to be told */
    struct ibv_wc wcs[COMPLETIONS_MAX];
    unsigned first, count;
    bool armed, due;
};
struct completions {
    struct ibv_comp_channel channel;
    struct leat_list due;
};

struct fake_verbs_tale fake_verbs_hello, fake_verbs_welcome;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static struct ibv_mr *regions[REGIONS_MAX];
static uint32_t next_key;
static struct id *listener;
static struct ibv_device device = {.name = "fake"};
static struct ibv_context context = {.device = &device};

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    return strcmp(path, "/dev/infiniband/rdma_cm") == 0 ? 0 : __real_access(path, mode);
}

static struct channel *channel_of(const struct id *id)
{
    return LEAT_CONTAINER(id->id.channel, struct channel, channel);
}

/* ---- events of the connection manager ---- */

static void event_put(struct id *id, struct id *of, enum rdma_cm_event_type type, const void *told,
                      size_t told_bytes)
{
    struct channel *channel = channel_of(id);
    struct event *event = calloc(1, sizeof *event);
    LEAT_ASSERT(event != NULL && told_bytes <= sizeof event->told);
    event->event = (struct rdma_cm_event){.id = &of->id, .event = type};
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) event->event.listen_id = &id->id;
    if (told_bytes) memcpy(event->told, told, told_bytes);
    event->event.param.conn.private_data = told_bytes ? event->told : NULL;
    event->event.param.conn.private_data_len = (uint8_t)told_bytes;
    leat_list_push_back(&channel->events, &event->link);
    LEAT_ASSERT(eventfd_write(channel->channel.fd, 1) == 0);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
    struct channel *channel = calloc(1, sizeof *channel);
    LEAT_ASSERT(channel != NULL);
    leat_list_init(&channel->events);
    channel->channel.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    return &channel->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *at)
{
    (void)close(at->fd);
    free(LEAT_CONTAINER(at, struct channel, channel));
}

int rdma_get_cm_event(struct rdma_event_channel *at, struct rdma_cm_event **out)
{
    struct channel *channel = LEAT_CONTAINER(at, struct channel, channel);
    eventfd_t one;
    pthread_mutex_lock(&lock);
    bool none = leat_list_empty(&channel->events);
    if (!none) {
        (void)eventfd_read(at->fd, &one);
        *out = &LEAT_CONTAINER(leat_list_pop_front(&channel->events), struct event, link)->event;
    }
    pthread_mutex_unlock(&lock);
    if (!none) return 0;
    errno = EAGAIN;
    return -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    free(LEAT_CONTAINER(event, struct event, event));
    return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type type)
{
    (void)type;
    return "an event";
}

/* ---- ids ---- */

static struct id *id_make(struct rdma_event_channel *channel, void *user)
{
    struct id *id = calloc(1, sizeof *id);
    LEAT_ASSERT(id != NULL);
    id->id.channel = channel;
    id->id.context = user;
    id->id.verbs = &context;
    return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *user,
                   enum rdma_port_space space)
{
    (void)space;
    *out = &id_make(channel, user)->id;
    return 0;
}

static struct id *id_of(struct rdma_cm_id *at)
{
    return LEAT_CONTAINER(at, struct id, id);
}

static void peer_leave(struct id *id)
{
    if (id->peer) {
        id->peer->peer = NULL;
        if (id->peer->established || !id->peer->id.context)
            event_put(id->peer, id->peer, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    }
    id->peer = NULL;
}

int rdma_destroy_id(struct rdma_cm_id *at)
{
    struct id *id = id_of(at);
    eventfd_t one;
    pthread_mutex_lock(&lock);
    if (id == listener) listener = NULL;
    peer_leave(id);
    struct leat_list *events = &channel_of(id)->events;
    for (struct leat_list *link = events->next, *next; link != events; link = next) {
        struct event *event = LEAT_CONTAINER(link, struct event, link);
        next = link->next;
        if (event->event.id != at) continue;
        leat_list_remove(link);
        (void)eventfd_read(at->channel->fd, &one);
        free(event);
    }
    pthread_mutex_unlock(&lock);
    free(id);
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *at, struct sockaddr *address)
{
    memcpy(&at->route.addr.src_storage, address, sizeof(struct sockaddr_in));
    return 0;
}

int rdma_listen(struct rdma_cm_id *at, int backlog)
{
    (void)backlog;
    pthread_mutex_lock(&lock);
    listener = id_of(at);
    pthread_mutex_unlock(&lock);
    return 0;
}

__be16 rdma_get_src_port(struct rdma_cm_id *at)
{
    (void)at;
    return htons(4791);
}

static int step(struct rdma_cm_id *at, enum rdma_cm_event_type type)
{
    pthread_mutex_lock(&lock);
    event_put(id_of(at), id_of(at), type, NULL, 0);
    pthread_mutex_unlock(&lock);
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *at, struct sockaddr *from, struct sockaddr *to, int ms)
{
    (void)from, (void)ms;
    LEAT_ASSERT(to->sa_family == AF_INET || to->sa_family == AF_INET6);
    return step(at, RDMA_CM_EVENT_ADDR_RESOLVED);
}

int rdma_resolve_route(struct rdma_cm_id *at, int ms)
{
    (void)ms;
    return step(at, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

int rdma_set_option(struct rdma_cm_id *at, int level, int name, void *value, size_t bytes)
{
    (void)at, (void)level, (void)name, (void)value, (void)bytes;
    return 0;
}

/* ---- connecting ---- */

/* The part of one side's private data that arrives at the other side. */
static size_t arrives(const struct fake_verbs_tale *tale, const struct rdma_conn_param *param,
                      uint8_t out[PRIVATE_BYTES])
{
    if (param->private_data_len) memcpy(out, param->private_data, param->private_data_len);
    if (!tale->changed) return param->private_data_len;
    size_t bytes = tale->count < PRIVATE_BYTES ? tale->count : PRIVATE_BYTES;
    if (tale->from > bytes) return tale->from < PRIVATE_BYTES ? tale->from : PRIVATE_BYTES;
    if (bytes > PRIVATE_BYTES - tale->from) bytes = PRIVATE_BYTES - tale->from;
    if (bytes) memcpy(out + tale->from, tale->bytes, bytes);
    size_t end = tale->from + bytes;
    return tale->cuts || end > param->private_data_len ? end : param->private_data_len;
}

int rdma_connect(struct rdma_cm_id *at, struct rdma_conn_param *param)
{
    uint8_t told[PRIVATE_BYTES] = {0};
    pthread_mutex_lock(&lock);
    struct id *id = id_of(at);
    if (listener) {
        struct id *new = id_make(listener->id.channel, listener->id.context);
        new->peer = id;
        id->peer = new;
        size_t bytes = arrives(&fake_verbs_hello, param, told);
        event_put(listener, new, RDMA_CM_EVENT_CONNECT_REQUEST, told, bytes);
    } else {
        event_put(id, id, RDMA_CM_EVENT_UNREACHABLE, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

int rdma_accept(struct rdma_cm_id *at, struct rdma_conn_param *param)
{
    uint8_t told[PRIVATE_BYTES] = {0};
    pthread_mutex_lock(&lock);
    struct id *id = id_of(at);
    id->established = true;
    if (id->peer) {
        id->peer->established = true;
        size_t bytes = arrives(&fake_verbs_welcome, param, told);
        event_put(id->peer, id->peer, RDMA_CM_EVENT_ESTABLISHED, told, bytes);
        event_put(id, id, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    } else {
        event_put(id, id, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

int rdma_reject(struct rdma_cm_id *at, const void *told, uint8_t told_bytes)
{
    (void)told, (void)told_bytes;
    pthread_mutex_lock(&lock);
    struct id *id = id_of(at);
    if (id->peer) {
        id->peer->peer = NULL;
        event_put(id->peer, id->peer, RDMA_CM_EVENT_REJECTED, NULL, 0);
    }
    id->peer = NULL;
    pthread_mutex_unlock(&lock);
    return 0;
}

int rdma_disconnect(struct rdma_cm_id *at)
{
    pthread_mutex_lock(&lock);
    peer_leave(id_of(at));
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    LEAT_ASSERT(pd != NULL);
    pd->context = of;
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    (void)access;
    struct ibv_mr *mr = calloc(1, sizeof *mr);
    LEAT_ASSERT(mr != NULL);
    pthread_mutex_lock(&lock);
    unsigned place = 0;
    while (place < REGIONS_MAX && regions[place])
        place++;
    LEAT_ASSERT(place < REGIONS_MAX);
    next_key++;
    *mr = (struct ibv_mr){
        .context = &context, .pd = pd, .addr = at, .length = bytes, .lkey = next_key};
    mr->rkey = next_key;
    regions[place] = mr;
    pthread_mutex_unlock(&lock);
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
                                unsigned int access)
{
    (void)iova;
    return ibv_reg_mr(pd, at, bytes, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < REGIONS_MAX; i++)
        if (regions[i] == mr) regions[i] = NULL;
    pthread_mutex_unlock(&lock);
    free(mr);
    return 0;
}

static bool is_registered(uint64_t at, uint64_t bytes, uint32_t key)
{
    for (unsigned i = 0; i < REGIONS_MAX; i++) {
        const struct ibv_mr *mr = regions[i];
        if (!mr || mr->rkey != key || at < (uintptr_t)mr->addr) continue;
        uint64_t offset = at - (uintptr_t)mr->addr;
        return offset <= mr->length && bytes <= mr->length - offset;
    }
    return false;
}

/* ---- queues ---- */

static void completion_put(struct ibv_cq *at, uint64_t wr_id, enum ibv_wc_status status)
{
    struct queue *queue = LEAT_CONTAINER(at, struct queue, cq);
    LEAT_ASSERT(queue->count < COMPLETIONS_MAX);
    queue->wcs[(queue->first + queue->count++) % COMPLETIONS_MAX] =
        (struct ibv_wc){.wr_id = wr_id, .status = status};
    if (!queue->armed || !queue->cq.channel || queue->due) return;
    struct completions *completions =
        LEAT_CONTAINER(queue->cq.channel, struct completions, channel);
    queue->armed = false;
    queue->due = true;
    leat_list_push_back(&completions->due, &queue->link);
    LEAT_ASSERT(eventfd_write(queue->cq.channel->fd, 1) == 0);
}

/* One request; false: the request fails, and so do all later requests. */
static bool request_run(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
    const struct id *peer = LEAT_CONTAINER(qp, const struct pair, qp)->id->peer;
    uint64_t at = wr->wr.rdma.remote_addr, bytes = 0;
    if (!peer || !peer->id.qp) return false; /* no request arrives where no queue pair is */
    for (int i = 0; i < wr->num_sge; i++)
        bytes += wr->sg_list[i].length;
    if (!is_registered(at, bytes, wr->wr.rdma.rkey)) return false;
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *sge = &wr->sg_list[i];
        LEAT_ASSERT(is_registered(sge->addr, sge->length, sge->lkey));
        void *there = (void *)(uintptr_t)at, *here = (void *)(uintptr_t)sge->addr;
        if (wr->opcode == IBV_WR_RDMA_READ)
            memcpy(here, there, sge->length);
        else
            memcpy(there, here, sge->length);
        at += sge->length;
    }
    return true;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)bad;
    pthread_mutex_lock(&lock);
    for (; wr; wr = wr->next) {
        if (qp->state == IBV_QPS_ERR || !request_run(qp, wr)) {
            qp->state = IBV_QPS_ERR;
            completion_put(qp->send_cq, wr->wr_id, IBV_WC_REM_ACCESS_ERR);
        } else if (wr->send_flags & IBV_SEND_SIGNALED) {
            completion_put(qp->send_cq, wr->wr_id, IBV_WC_SUCCESS);
        }
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static int poll_cq(struct ibv_cq *at, int most, struct ibv_wc *out)
{
    struct queue *queue = LEAT_CONTAINER(at, struct queue, cq);
    int count = 0;
    pthread_mutex_lock(&lock);
    for (; count < most && queue->count; queue->count--) {
        out[count++] = queue->wcs[queue->first];
        queue->first = (queue->first + 1) % COMPLETIONS_MAX;
    }
    pthread_mutex_unlock(&lock);
    return count;
}

static int req_notify_cq(struct ibv_cq *at, int solicited)
{
    (void)solicited;
    pthread_mutex_lock(&lock);
    LEAT_CONTAINER(at, struct queue, cq)->armed = true;
    pthread_mutex_unlock(&lock);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int count, void *user,
                             struct ibv_comp_channel *channel, int vector)
{
    (void)count, (void)vector;
    struct queue *queue = calloc(1, sizeof *queue);
    LEAT_ASSERT(queue != NULL);
    pthread_mutex_lock(&lock);
    if (!context.ops.post_send)
        context.ops = (struct ibv_context_ops){
            .post_send = post_send, .poll_cq = poll_cq, .req_notify_cq = req_notify_cq};
    pthread_mutex_unlock(&lock);
    queue->cq.context = of;
    queue->cq.cq_context = user;
    queue->cq.channel = channel;
    leat_list_init(&queue->link);
    return &queue->cq;
}

int ibv_destroy_cq(struct ibv_cq *at)
{
    struct queue *queue = LEAT_CONTAINER(at, struct queue, cq);
    eventfd_t one;
    pthread_mutex_lock(&lock);
    if (queue->due) {
        leat_list_remove(&queue->link);
        (void)eventfd_read(at->channel->fd, &one);
    }
    pthread_mutex_unlock(&lock);
    free(queue);
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of)
{
    struct completions *completions = calloc(1, sizeof *completions);
    LEAT_ASSERT(completions != NULL);
    leat_list_init(&completions->due);
    completions->channel.context = of;
    completions->channel.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    return &completions->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    (void)close(channel->fd);
    free(LEAT_CONTAINER(channel, struct completions, channel));
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out, void **out_user)
{
    struct completions *completions = LEAT_CONTAINER(channel, struct completions, channel);
    eventfd_t one;
    pthread_mutex_lock(&lock);
    bool none = leat_list_empty(&completions->due);
    if (!none) {
        struct queue *queue =
            LEAT_CONTAINER(leat_list_pop_front(&completions->due), struct queue, link);
        (void)eventfd_read(channel->fd, &one);
        queue->due = false;
        *out = &queue->cq;
        *out_user = queue->cq.cq_context;
    }
    pthread_mutex_unlock(&lock);
    return none ? -1 : 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
    (void)cq, (void)count;
}

int rdma_create_qp(struct rdma_cm_id *at, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct pair *pair = calloc(1, sizeof *pair);
    LEAT_ASSERT(pair != NULL);
    pair->qp = (struct ibv_qp){
        .context = &context, .pd = pd, .send_cq = attr->send_cq, .state = IBV_QPS_RTS};
    pair->id = id_of(at);
    pthread_mutex_lock(&lock);
    at->qp = &pair->qp;
    pthread_mutex_unlock(&lock);
    return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *at)
{
    pthread_mutex_lock(&lock);
    free(LEAT_CONTAINER(at->qp, struct pair, qp));
    at->qp = NULL;
    pthread_mutex_unlock(&lock);
}

const char *ibv_get_device_name(struct ibv_device *of)
{
    return of->name;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    (void)status;
    return "a status";
}
