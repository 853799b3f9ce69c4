/* SPDX-License-Identifier: Apache-2.0 */
/* The device and the connection manager of verbs_alone.h, which includes this page. */
#ifndef LEAT_TESTS_OS_VERBS_DEVICE_H
#define LEAT_TESTS_OS_VERBS_DEVICE_H

static inline struct played_id *id_of(struct rdma_cm_id *id)
{
    return LEAT_CONTAINER(id, struct played_id, id);
}
static inline struct played_cq *cq_of(struct ibv_cq *cq)
{
    return LEAT_CONTAINER(cq, struct played_cq, cq);
}
static inline struct played_qp *qp_of(struct ibv_qp *qp)
{
    return LEAT_CONTAINER(qp, struct played_qp, qp);
}

/* A name for memory, so that lines do not have its address. */
static inline void place(const char *name, const void *base, uint64_t bytes)
{
    assert_true(played.place_count < 8);
    unsigned i = played.place_count++;
    played.places[i].name = name;
    played.places[i].base = base;
    played.places[i].bytes = bytes;
}
static inline void place_trace(uint64_t at)
{
    for (unsigned i = 0; i < played.place_count; i++) {
        uint64_t base = (uintptr_t)played.places[i].base;
        if (at < base || at >= base + played.places[i].bytes) continue;
        trace(" %s+%llu", played.places[i].name, (unsigned long long)(at - base));
        return;
    }
    trace(" somewhere");
}

/* ---- the connection manager ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
    trace("channel\n");
    if (fails(CHANNEL)) return NULL;
    struct played_channel *channel = object(CHANNELS, sizeof *channel);
    leat_list_init(&channel->events);
    channel->channel.fd = 100 + (int)played.made[CHANNELS];
    return &channel->channel;
}
void rdma_destroy_event_channel(struct rdma_event_channel *at)
{
    struct played_channel *channel = LEAT_CONTAINER(at, struct played_channel, channel);
    trace("channel %d ends\n", at->fd);
    assert_true(leat_list_empty(&channel->events));
    object_ends(CHANNELS, channel);
}
/* Private data: told, or none. */
static inline void event_comes(struct rdma_cm_id *id, enum rdma_cm_event_type type,
                               const void *told, size_t bytes)
{
    struct played_channel *channel = LEAT_CONTAINER(id->channel, struct played_channel, channel);
    struct played_event *event = calloc(1, sizeof *event);
    assert_non_null(event);
    assert_true(bytes <= sizeof event->told);
    event->event.id = id;
    event->event.event = type;
    if (bytes) memcpy(played.heard, told, bytes); /* what was heard before follows it */
    memcpy(event->told, played.heard, sizeof event->told);
    event->event.param.conn.private_data = event->told;
    event->event.param.conn.private_data_len = (uint8_t)bytes;
    leat_list_push_back(&channel->events, &event->link);
}
int rdma_get_cm_event(struct rdma_event_channel *at, struct rdma_cm_event **out)
{
    struct played_channel *channel = LEAT_CONTAINER(at, struct played_channel, channel);
    errno = EAGAIN;
    if (leat_list_empty(&channel->events)) return -1;
    *out = &LEAT_CONTAINER(leat_list_pop_front(&channel->events), struct played_event, link)->event;
    id_of((*out)->id)->unacked++;
    return 0;
}
int rdma_ack_cm_event(struct rdma_cm_event *event)
{
    assert_true(id_of(event->id)->unacked > 0);
    id_of(event->id)->unacked--;
    free(LEAT_CONTAINER(event, struct played_event, event));
    return 0;
}
const char *rdma_event_str(enum rdma_cm_event_type type)
{
    return type == RDMA_CM_EVENT_DISCONNECTED ? "DISCONNECTED" : "another event";
}
static inline struct rdma_cm_id *id_make(struct rdma_event_channel *channel, void *user)
{
    struct played_id *id = object(IDS, sizeof *id);
    id->number = played.made[IDS];
    id->id.channel = channel;
    id->id.context = user;
    return &id->id;
}
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *user,
                   enum rdma_port_space space)
{
    trace("id of %d%s\n", channel->fd, space == RDMA_PS_TCP ? "" : " otherwise");
    if (fails(ID)) return -1;
    *out = id_make(channel, user);
    return 0;
}
int rdma_destroy_id(struct rdma_cm_id *id)
{
    trace("id %u ends\n", id_of(id)->number);
    assert_null(id->qp);
    assert_int_equal(id_of(id)->unacked, 0); /* it waits for that */
    struct played_channel *channel = LEAT_CONTAINER(id->channel, struct played_channel, channel);
    LEAT_LIST_EACH(&channel->events, link) /* those that nobody took go with the id */
    {
        struct played_event *event = LEAT_CONTAINER(link, struct played_event, link);
        if (event->event.id != id) continue;
        leat_list_remove(link);
        free(event);
    }
    object_ends(IDS, id_of(id));
    return 0;
}
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
    trace("bind %u", id_of(id)->number);
    address_trace(address);
    trace("\n");
    if (fails(BIND)) return -1;
    size_t bytes =
        address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    memcpy(&id->route.addr.src_storage, address, bytes);
    if (address_is(address, played.own)) id->verbs = &played.context;
    return 0;
}
int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    trace("listen %u %d\n", id_of(id)->number, backlog);
    return fails(LISTEN) ? -1 : 0;
}
__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    (void)id;
    return htons(4791);
}
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *from, struct sockaddr *to, int ms)
{
    trace("resolve %u", id_of(id)->number);
    address_trace(to);
    trace(" %d%s\n", ms, from ? " otherwise" : "");
    return fails(ADDRESS) ? -1 : 0;
}
int rdma_resolve_route(struct rdma_cm_id *id, int ms)
{
    trace("route %u %d\n", id_of(id)->number, ms);
    return fails(ROUTE) ? -1 : 0;
}
int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t bytes)
{
    bool usual = level == RDMA_OPTION_ID && name == RDMA_OPTION_ID_ACK_TIMEOUT && bytes == 1;
    trace("timeout %u %u%s\n", id_of(id)->number, *(uint8_t *)value, usual ? "" : " otherwise");
    return fails(TIMEOUT) ? -1 : 0;
}
static inline void param_take(const struct rdma_conn_param *param)
{
    trace(" %u bytes, resources %u, depth %u, retries %u %u\n", param->private_data_len,
          param->responder_resources, param->initiator_depth, param->retry_count,
          param->rnr_retry_count);
    assert_true(param->private_data_len <= sizeof played.told);
    memcpy(played.told, param->private_data, param->private_data_len);
}
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    trace("connect %u:", id_of(id)->number);
    param_take(param);
    assert_non_null(id->qp);
    return fails(CONNECT) ? -1 : 0;
}
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    trace("accept %u:", id_of(id)->number);
    param_take(param);
    assert_non_null(id->qp);
    return fails(ACCEPT) ? -1 : 0;
}
int rdma_reject(struct rdma_cm_id *id, const void *told, uint8_t bytes)
{
    trace("reject %u%s\n", id_of(id)->number, told || bytes ? " otherwise" : "");
    return 0;
}
int rdma_disconnect(struct rdma_cm_id *id)
{
    trace("disconnect %u\n", id_of(id)->number);
    return 0;
}

/* ---- memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
    trace("pd\n");
    assert_ptr_equal(of, &played.context);
    if (fails(PD)) return NULL;
    struct ibv_pd *pd = object(PDS, sizeof *pd);
    pd->context = of;
    return pd;
}
int ibv_dealloc_pd(struct ibv_pd *pd)
{
    trace("pd ends\n");
    assert_true(played.alive[MRS] == 0 && played.alive[QPS] == 0); /* EBUSY */
    object_ends(PDS, pd);
    return 0;
}
#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t bytes, int access)
{
    trace("register");
    place_trace((uintptr_t)at);
    trace(" %zu%s%s%s%s\n", bytes, access & IBV_ACCESS_LOCAL_WRITE ? " write" : "",
          access & IBV_ACCESS_REMOTE_WRITE ? " remote-write" : "",
          access & IBV_ACCESS_REMOTE_READ ? " remote-read" : "",
          access & ~(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
              ? " otherwise"
              : "");
    assert_non_null(pd);
    if (fails(REGISTER)) return NULL;
    struct played_mr *made = object(MRS, sizeof *made);
    made->number = played.made[MRS];
    made->next = played.regions;
    played.regions = made;
    made->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = at, .length = bytes};
    made->mr.lkey = 1000 + made->number;
    made->mr.rkey = 2000 + made->number;
    return &made->mr;
}
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *at, size_t bytes, uint64_t iova,
                                unsigned int access)
{
    assert_int_equal(iova, (uintptr_t)at);
    return ibv_reg_mr(pd, at, bytes, (int)access);
}
int ibv_dereg_mr(struct ibv_mr *mr)
{
    struct played_mr *gone = LEAT_CONTAINER(mr, struct played_mr, mr), **at = &played.regions;
    while (*at && *at != gone)
        at = &(*at)->next;
    assert_non_null(*at);
    trace("region %u ends\n", gone->number);
    *at = gone->next;
    object_ends(MRS, gone);
    return 0;
}

/* ---- queues ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of)
{
    trace("completions\n");
    assert_ptr_equal(of, &played.context);
    if (fails(COMPLETIONS)) return NULL;
    struct ibv_comp_channel *channel = object(COMPLETION_CHANNELS, sizeof *channel);
    channel->fd = 200;
    return channel;
}
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    trace("completions end\n");
    object_ends(COMPLETION_CHANNELS, channel);
    return 0;
}
struct ibv_cq *ibv_create_cq(struct ibv_context *of, int count, void *user,
                             struct ibv_comp_channel *channel, int vector)
{
    trace("cq of %d%s%s\n", count, channel ? " with events" : "", vector ? " otherwise" : "");
    assert_ptr_equal(of, &played.context);
    if (fails(CQ)) return NULL;
    struct played_cq *cq = object(CQS, sizeof *cq);
    cq->number = played.made[CQS];
    cq->cq.context = of;
    cq->cq.cq_context = user;
    cq->cq.channel = channel;
    return &cq->cq;
}
int ibv_destroy_cq(struct ibv_cq *at)
{
    trace("cq %u ends\n", cq_of(at)->number);
    assert_int_equal(cq_of(at)->taken, cq_of(at)->acked); /* it waits for that */
    unsigned kept = 0;
    for (unsigned i = 0; i < played.due_count; i++)
        if (played.due[i] != at) played.due[kept++] = played.due[i];
    played.due_count = kept;
    object_ends(CQS, cq_of(at));
    return 0;
}
static inline int cq_notify(struct ibv_cq *at, int solicited)
{
    assert_int_equal(solicited, 0);
    if (fails(NOTIFY)) return EIO;
    cq_of(at)->armed = true;
    return 0;
}
static inline int cq_poll(struct ibv_cq *at, int most, struct ibv_wc *out)
{
    struct played_cq *cq = cq_of(at);
    unsigned count = cq->count < (unsigned)most ? cq->count : (unsigned)most;
    played.polls++;
    if (fails(POLL)) return -1;
    memcpy(out, cq->wcs, count * sizeof *out);
    cq->count -= count;
    memmove(cq->wcs, cq->wcs + count, cq->count * sizeof *out);
    return (int)count;
}
/* A request is over. The next look at the queue sees that; an event tells it if one was asked for. */
static inline void completes(struct ibv_cq *at, const void *write, enum ibv_wc_status status)
{
    struct played_cq *cq = cq_of(at);
    assert_true(cq->count < WCS_MAX);
    cq->wcs[cq->count++] =
        (struct ibv_wc){.wr_id = write ? (uintptr_t)write : VERBS_READ_TABLE, .status = status};
    if (!cq->armed) return;
    cq->armed = false;
    assert_true(played.due_count < EVENTS_MAX);
    played.due[played.due_count++] = at;
}
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out, void **out_user)
{
    (void)channel;
    if (played.due_count == 0) return -1;
    *out = played.due[0];
    memmove(played.due, played.due + 1, --played.due_count * sizeof played.due[0]);
    *out_user = (*out)->cq_context;
    cq_of(*out)->taken++;
    return 0;
}
void ibv_ack_cq_events(struct ibv_cq *at, unsigned int count)
{
    cq_of(at)->acked += count;
}
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    trace("qp of %u, cq %u %u, requests %u %u, pieces %u %u%s\n", id_of(id)->number,
          cq_of(attr->send_cq)->number, cq_of(attr->recv_cq)->number, attr->cap.max_send_wr,
          attr->cap.max_recv_wr, attr->cap.max_send_sge, attr->cap.max_recv_sge,
          attr->qp_type == IBV_QPT_RC && !attr->sq_sig_all ? "" : " otherwise");
    assert_non_null(pd);
    if (fails(QP)) return -1;
    struct played_qp *qp = object(QPS, sizeof *qp);
    qp->number = played.made[QPS];
    qp->qp.context = pd->context;
    qp->qp.pd = pd;
    qp->qp.send_cq = attr->send_cq;
    id->qp = &qp->qp;
    return 0;
}
void rdma_destroy_qp(struct rdma_cm_id *id)
{
    trace("qp %u ends\n", qp_of(id->qp)->number);
    object_ends(QPS, qp_of(id->qp));
    id->qp = NULL;
}

/* ---- requests ---- */

static inline void piece_trace(const struct ibv_sge *piece)
{
    const struct played_mr *region = played.regions;
    while (region && region->mr.lkey != piece->lkey)
        region = region->next;
    assert_non_null(region);
    uint64_t base = (uintptr_t)region->mr.addr;
    assert_true(piece->addr >= base && piece->addr + piece->length <= base + region->mr.length);
    place_trace(piece->addr);
    trace(" %u/%u", piece->length, piece->lkey);
}
static inline int requests_take(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    assert_non_null(bad);
    for (; wr; wr = wr->next) {
        bool reads = wr->opcode == IBV_WR_RDMA_READ;
        trace("%s %u 0x%llx/%u:", reads ? "read" : "write", qp_of(qp)->number,
              (unsigned long long)wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
        assert_true(reads || wr->opcode == IBV_WR_RDMA_WRITE);
        assert_true(wr->num_sge > 0 && wr->num_sge <= VERBS_SGES);
        for (int i = 0; i < wr->num_sge; i++)
            piece_trace(&wr->sg_list[i]);
        if (wr->wr_id > VERBS_READ_TABLE)
            trace(" %s", (const char *)((struct leat_rmem_write *)(uintptr_t)wr->wr_id)->owner);
        else if (wr->wr_id != (reads ? VERBS_READ_TABLE : 0))
            trace(" otherwise");
        trace("%s\n", wr->send_flags == IBV_SEND_SIGNALED ? " told" : wr->send_flags ? " ?" : "");
    }
    return fails(POST) ? ENOMEM : 0;
}
const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}
const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "retry exceeded" : "another status";
}

static inline void device_begins(void)
{
    snprintf(played.device.name, sizeof played.device.name, "played");
    played.context.device = played.other.device = &played.device;
    played.context.ops = (struct ibv_context_ops){
        .post_send = requests_take, .poll_cq = cq_poll, .req_notify_cq = cq_notify};
}

#endif
