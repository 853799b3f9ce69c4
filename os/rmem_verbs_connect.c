/* SPDX-License-Identifier: Apache-2.0 */
/* A writer's way to a target: address, route, connect (the grant's arena in the private data), then the
 * arena's table of keys is read from the host's memory. */
#include "os/rmem_verbs_writer.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

leat_err leat_os_verbs_grant_address(const struct leat_rmem_grant *grant,
                                     struct sockaddr_storage *out)
{
    struct verbs_grant body;
    size_t bytes = 0;
    const uint8_t *section = leat_rmem_grant_find(grant, LEAT_RMEM_VERBS, &bytes);
    if (!section) return LEAT_E_UNSUPPORTED;
    if (bytes != sizeof body) return LEAT_E_INVALID;
    memcpy(&body, section, sizeof body);
    memset(out, 0, sizeof *out);
    if (body.family == AF_INET) {
        struct sockaddr_in *four = (struct sockaddr_in *)out;
        four->sin_family = AF_INET;
        memcpy(&four->sin_port, body.port, 2);
        memcpy(&four->sin_addr, body.address, 4);
        return LEAT_OK;
    }
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    six->sin6_family = AF_INET6;
    memcpy(&six->sin6_port, body.port, 2);
    memcpy(&six->sin6_addr, body.address, 16);
    six->sin6_scope_id = body.scope;
    return body.family == AF_INET6 ? LEAT_OK : LEAT_E_INVALID;
}

static bool queue_make(struct os_verbs_target *verbs)
{
    struct os_verbs *shared = verbs->writer->rmem->verbs;
    verbs->cq = ibv_create_cq(shared->context, VERBS_WRS_PER_WRITE * LEAT_RMEM_WINDOW + 8, verbs,
                              verbs->writer->completions, 0);
    if (!verbs->cq || ibv_req_notify_cq(verbs->cq, 0)) return false;
    verbs->table_mr =
        ibv_reg_mr(shared->pd, verbs->keys, VERBS_TABLE_BYTES, IBV_ACCESS_LOCAL_WRITE);
    if (!verbs->table_mr) return false;
    struct ibv_qp_init_attr attr = {
        .send_cq = verbs->cq,
        .recv_cq = verbs->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = VERBS_WRS_PER_WRITE * LEAT_RMEM_WINDOW + 4,
                .max_recv_wr = 1,
                .max_send_sge = VERBS_SGES,
                .max_recv_sge = 1},
    };
    return rdma_create_qp(verbs->id, shared->pd, &attr) == 0;
}

static void connect_step(struct os_verbs_target *verbs)
{
    struct verbs_hello hello = {.magic = VERBS_MAGIC, .number = verbs->address.number};
    memcpy(hello.id, verbs->address.id, sizeof hello.id);
    struct rdma_conn_param param = {.private_data = &hello,
                                    .private_data_len = sizeof hello,
                                    .responder_resources = 1,
                                    .initiator_depth = 1,
                                    .retry_count = VERBS_RETRIES,
                                    .rnr_retry_count = VERBS_RETRIES};
    if (!queue_make(verbs) || rdma_connect(verbs->id, &param))
        leat_os_verbs_fail(verbs, LEAT_E_UNSUPPORTED,
                           "no RDMA queue pair: the device refuses one more");
}

static void route_step(struct os_verbs_target *verbs)
{
    uint8_t timeout = VERBS_ACK_TIMEOUT;
    if (verbs->id->verbs != verbs->writer->rmem->verbs->context)
        leat_os_verbs_fail(verbs, LEAT_E_UNSUPPORTED,
                           "the backup is reached by another RDMA device");
    else if (rdma_set_option(verbs->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                             sizeof timeout))
        leat_os_verbs_fail(verbs, LEAT_E_UNSUPPORTED, "the RDMA device has no ACK timeout to set");
    else if (rdma_resolve_route(verbs->id, VERBS_RESOLVE_MS))
        leat_os_verbs_fail(verbs, LEAT_E_CLOSED, "no RDMA route to the backup");
}

static void connected_step(struct os_verbs_target *verbs, const struct verbs_welcome *welcome)
{
    verbs->connected = true;
    verbs->welcome = *welcome;
    if (welcome->magic != VERBS_MAGIC)
        leat_os_verbs_fail(verbs, LEAT_E_INVALID, "what answered by RDMA is no backup of Leat's");
    else
        leat_os_verbs_table_read(verbs);
}

static void cm_step(struct os_verbs_target *verbs, enum rdma_cm_event_type type,
                    const struct verbs_welcome *welcome)
{
    if (verbs->cut || verbs->error.code || verbs->detached) return;
    switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        route_step(verbs);
        return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        connect_step(verbs);
        return;
    case RDMA_CM_EVENT_ESTABLISHED:
        connected_step(verbs, welcome);
        return;
    case RDMA_CM_EVENT_REJECTED:
        leat_os_verbs_fail(verbs, LEAT_E_NOT_FOUND,
                           "the backup has no such arena (any more) for RDMA");
        return;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        leat_os_verbs_fail(verbs, LEAT_E_CLOSED, "the RDMA device has disappeared");
        return;
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return;
    default:
        break;
    }
    char text[160];
    snprintf(text, sizeof text, "the RDMA connection to the backup ended: %s",
             rdma_event_str(type));
    leat_os_verbs_fail(verbs, LEAT_E_CLOSED, text);
}

void leat_os_verbs_on_cm_ready(void *user)
{
    struct os_verbs_writer *writer = user;
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(writer->cm, &event) == 0) {
        enum rdma_cm_event_type type = event->event;
        struct os_verbs_target *verbs = event->id->context;
        struct verbs_welcome welcome = {0};
        if (type == RDMA_CM_EVENT_ESTABLISHED &&
            event->param.conn.private_data_len >= sizeof welcome)
            memcpy(&welcome, event->param.conn.private_data, sizeof welcome);
        (void)rdma_ack_cm_event(event); /* before its id may go */
        cm_step(verbs, type, &welcome);
    }
}
