/* SPDX-License-Identifier: Apache-2.0 */
/* The writer port over verbs: one reliable queue pair for each target, RDMA writes from registered
 * memory, completions by event. A write past the steps whose keys are known reads their table again. */
#include "os/rmem_verbs_writer.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Looked at in one callback. A device that completes as fast as on_done posts would keep the core
     * from everything else for ever: Soft-RoCE within one machine does. */
    COMPLETIONS_PER_CALL = LEAT_RMEM_WINDOW,
    EVENTS_PER_CALL = 64,
};

static struct os_verbs_target *verbs_of(struct leat_rmem_target *target)
{
    return LEAT_CONTAINER(target, struct os_verbs_target, target);
}

/* ---- memory that writes come from ---- */

/* Steps of the pool are registered when first needed, all that there are by then. */
static void pool_run(struct os_job *job)
{
    struct os_verbs_target *verbs = LEAT_CONTAINER(job, struct os_verbs_target, job);
    leat_os_verbs_pool_register(verbs->writer->rmem, &verbs->job_error);
}

static void pool_deliver(void *actor, struct leat_mail *mail)
{
    struct os_job *job = LEAT_CONTAINER(mail, struct os_job, mail);
    struct os_verbs_target *verbs = LEAT_CONTAINER(job, struct os_verbs_target, job);
    (void)actor;
    verbs->job_out = false;
    if (verbs->job_error.code)
        leat_os_verbs_fail(verbs, verbs->job_error.code, verbs->job_error.text);
    leat_os_verbs_mail(verbs);
}

static leat_err verbs_source(void *ctx, void *base, size_t bytes, struct leat_error *error)
{
    struct os_verbs_writer *writer = ctx;
    return leat_os_verbs_source_register(writer->rmem, base, bytes, error);
}

/* ---- posting ---- */

struct wr_build {
    struct ibv_send_wr wrs[VERBS_WRS_PER_WRITE];
    struct ibv_sge sges[VERBS_WRS_PER_WRITE][VERBS_SGES];
    unsigned count;
};

/* A request for each step that the write touches. */
static int build(struct os_verbs_target *verbs, const struct leat_rmem_write *write,
                 struct wr_build *out)
{
    uint64_t offset = write->offset, end = write->offset + write->bytes;
    unsigned piece = 0;
    size_t used = 0; /* of that piece */
    out->count = 0;
    while (offset < end) {
        uint64_t step = offset / LEAT_ARENA_STEP_BYTES;
        uint64_t step_end = (step + 1) * LEAT_ARENA_STEP_BYTES;
        struct ibv_sge *sges = out->sges[out->count];
        struct ibv_send_wr *wr = &out->wrs[out->count++];
        *wr = (struct ibv_send_wr){.sg_list = sges,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .wr.rdma = {verbs->welcome.base + offset, verbs->keys[step]}};
        while (offset < end && offset < step_end) {
            const struct leat_iov *iov = &write->iovs[piece];
            if (used == iov->bytes) {
                piece++;
                used = 0;
                continue;
            }
            uint32_t key;
            size_t bytes;
            const uint8_t *at = (const uint8_t *)iov->base + used;
            int known = leat_os_verbs_local_key(verbs->writer->rmem, at, &key, &bytes);
            if (known != VERBS_KEY_KNOWN) return known;
            if (bytes > iov->bytes - used) bytes = iov->bytes - used;
            if (bytes > step_end - offset) bytes = (size_t)(step_end - offset);
            LEAT_ASSERT_CMP(wr->num_sge, <, VERBS_SGES);
            sges[wr->num_sge++] = (struct ibv_sge){(uintptr_t)at, (uint32_t)bytes, key};
            used += bytes;
            offset += bytes;
        }
    }
    for (unsigned i = 0; i + 1 < out->count; i++)
        out->wrs[i].next = &out->wrs[i + 1];
    struct ibv_send_wr *last = &out->wrs[out->count - 1];
    last->wr_id = (uintptr_t)write;
    last->send_flags = IBV_SEND_SIGNALED;
    return VERBS_KEY_KNOWN;
}

static bool keys_known(const struct os_verbs_target *verbs, const struct leat_rmem_write *write)
{
    return verbs->keys[write->offset / LEAT_ARENA_STEP_BYTES] != 0 &&
           verbs->keys[(write->offset + write->bytes - 1) / LEAT_ARENA_STEP_BYTES] != 0;
}

/* False: it has to wait, or the target fails. */
static bool write_post(struct os_verbs_target *verbs, struct leat_rmem_write *write)
{
    struct wr_build request;
    struct ibv_send_wr *bad;
    if (!keys_known(verbs, write)) {
        leat_os_verbs_table_read(verbs);
        return false;
    }
    int known = build(verbs, write, &request);
    if (known == VERBS_KEY_LATER && !verbs->job_out) {
        verbs->job_out = true;
        verbs->job = (struct os_job){
            .run = pool_run, .actor = verbs->writer->actor, .mail.deliver = pool_deliver};
        leat_os_job_start(verbs->writer->rmem, &verbs->job);
    }
    if (known == VERBS_KEY_NONE)
        leat_os_verbs_fail(verbs, LEAT_E_INVALID,
                           "a write from memory that was not named by source()");
    if (known != VERBS_KEY_KNOWN) return false;
    if (ibv_post_send(verbs->id->qp, &request.wrs[0], &bad)) {
        leat_os_verbs_fail(verbs, LEAT_E_CLOSED, "the RDMA queue takes no request");
        return false;
    }
    leat_list_push_back(&verbs->posted, &write->list);
    verbs->in_flight++;
    return true;
}

static void waiting_post(struct os_verbs_target *verbs)
{
    while (!leat_list_empty(&verbs->waiting) && !verbs->error.code && !verbs->detached &&
           !verbs->reading && !verbs->job_out && verbs->in_flight < LEAT_RMEM_WINDOW) {
        struct leat_list *first = verbs->waiting.next;
        leat_list_remove(first);
        if (write_post(verbs, LEAT_CONTAINER(first, struct leat_rmem_write, list))) continue;
        leat_list_push_front(&verbs->waiting, first);
        return;
    }
}

/* ---- completions ---- */

static void table_arrived(struct os_verbs_target *verbs)
{
    verbs->reading = false;
    if (verbs->keys[0] == 0) {
        leat_os_verbs_fail(verbs, LEAT_E_UNSUPPORTED, "the backup has not registered its memory");
    } else if (!verbs->target.attached) {
        verbs->target.attached = true;
        if (!verbs->detached) verbs->handler->on_attached(verbs->user, &verbs->target);
    } else if (!leat_list_empty(&verbs->waiting)) {
        struct leat_rmem_write *first =
            LEAT_CONTAINER(verbs->waiting.next, struct leat_rmem_write, list);
        if (!keys_known(verbs, first))
            leat_os_verbs_fail(
                verbs, LEAT_E_OFFSET_OUT_OF_RANGE,
                "a write past what the arena has grown to, or what the backup could register");
    }
    leat_os_verbs_mail(verbs);
}

static void completion_take(struct os_verbs_target *verbs, const struct ibv_wc *wc)
{
    if (wc->status != IBV_WC_SUCCESS) {
        char text[160];
        snprintf(text, sizeof text, "the RDMA write failed: %s (fenced, or the peer is gone)",
                 ibv_wc_status_str(wc->status));
        leat_os_verbs_fail(verbs, LEAT_E_CLOSED, text);
        return;
    }
    if (wc->wr_id == VERBS_READ_TABLE) {
        table_arrived(verbs);
        return;
    }
    struct leat_rmem_write *write = (struct leat_rmem_write *)(uintptr_t)wc->wr_id;
    LEAT_ASSERT(verbs->posted.next == &write->list); /* queue pairs complete in order */
    leat_list_remove(&write->list);
    verbs->in_flight--;
    write->on_done(write, LEAT_OK); /* may write, or detach */
}

/* Successes that the device has reported are taken also when the target has failed since: they
 * are true. After the first error nothing succeeds. */
static void completions_poll(struct os_verbs_target *verbs)
{
    struct ibv_wc wcs[16];
    int count = 0, taken = 0;
    while (verbs->cq && !verbs->quiet && (count = ibv_poll_cq(verbs->cq, 16, wcs)) > 0) {
        for (int i = 0; i < count; i++) {
            completion_take(verbs, &wcs[i]);
            if (wcs[i].status != IBV_WC_SUCCESS) return;
        }
        taken += count;
        /* Its last look, when nothing can be posted any more, is at all of them. */
        if (taken >= COMPLETIONS_PER_CALL && !verbs->cut) {
            verbs->more = true;
            leat_os_verbs_mail(verbs);
            return;
        }
    }
    if (count < 0) leat_os_verbs_fail(verbs, LEAT_E_CLOSED, "the RDMA device is gone");
}

static void on_completions_ready(void *user)
{
    struct os_verbs_writer *writer = user;
    struct ibv_cq *cq;
    void *ctx;
    for (int i = 0; i < EVENTS_PER_CALL; i++) { /* the loop calls again for more */
        if (ibv_get_cq_event(writer->completions, &cq, &ctx)) return;
        struct os_verbs_target *verbs = ctx;
        verbs->cq_events++;
        /* Asked for the next event before looking, else one in between would be missed. */
        if (ibv_req_notify_cq(cq, 0))
            leat_os_verbs_fail(verbs, LEAT_E_CLOSED, "the RDMA device is gone");
        completions_poll(verbs);
        waiting_post(verbs);
    }
}

/* ---- coming and going ---- */

/* Nothing of it is in the device's hands any more when this returns. */
static void target_cut(struct os_verbs_target *verbs)
{
    if (verbs->cut) return;
    verbs->cut = true;
    if (verbs->connected) (void)rdma_disconnect(verbs->id); /* also the queue pair's error state */
    completions_poll(verbs);
    if (verbs->id && verbs->id->qp) rdma_destroy_qp(verbs->id);
    if (verbs->cq) {
        ibv_ack_cq_events(verbs->cq, verbs->cq_events);
        (void)ibv_destroy_cq(verbs->cq);
        verbs->cq = NULL;
    }
    if (verbs->table_mr) (void)ibv_dereg_mr(verbs->table_mr);
    verbs->table_mr = NULL;
    if (verbs->id) (void)rdma_destroy_id(verbs->id);
    verbs->id = NULL;
    verbs->reading = false;
}

static void writes_end(struct leat_list *writes, leat_err rc)
{
    while (!leat_list_empty(writes)) {
        struct leat_rmem_write *write =
            LEAT_CONTAINER(leat_list_pop_front(writes), struct leat_rmem_write, list);
        write->on_done(write, rc);
    }
}

static void target_free(struct os_verbs_target *verbs)
{
    target_cut(verbs);
    leat_list_remove(&verbs->link);
    verbs->writer->count--;
    leat_mem_free(verbs);
}

static void target_deliver(void *actor, struct leat_mail *mail)
{
    struct os_verbs_target *verbs = LEAT_CONTAINER(mail, struct os_verbs_target, mail);
    (void)actor;
    verbs->mailed = false;
    if (verbs->more) {
        verbs->more = false;
        completions_poll(verbs);
    }
    if (!verbs->error.code && !verbs->detached) {
        waiting_post(verbs);
        return;
    }
    target_cut(verbs);
    leat_err rc = verbs->error.code ? verbs->error.code : LEAT_E_CANCELLED;
    writes_end(&verbs->posted, rc);
    writes_end(&verbs->waiting, rc);
    if (verbs->error.code && !verbs->told && !verbs->detached) {
        verbs->told = true;
        verbs->handler->on_failed(verbs->user, &verbs->target, &verbs->error);
    }
    if (verbs->detached && !verbs->mailed && !verbs->job_out) target_free(verbs);
}

/* ---- the port ---- */

static leat_err verbs_attach(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                             const struct leat_rmem_target_handler *handler, void *user,
                             struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct os_verbs_writer *writer = ctx;
    struct sockaddr_storage to;
    struct leat_rmem_address address;
    (void)node;
    leat_err rc = leat_rmem_grant_address(grant, &address);
    if (!rc) rc = leat_os_verbs_grant_address(grant, &to);
    if (rc)
        return leat_error_set(error, rc,
                              rc == LEAT_E_UNSUPPORTED ? "the backup does not offer RDMA"
                                                       : "the grant can't be read");
    if (atomic_load(&writer->rmem->verbs->gone))
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "the RDMA device has disappeared");
    if (writer->count == LEAT_RMEM_TARGETS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "%d targets are attached already",
                              LEAT_RMEM_TARGETS_MAX);
    struct os_verbs_target *verbs = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *verbs);
    if (!verbs) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory to attach an arena");
    verbs->target.port = &writer->port;
    verbs->target.kind = LEAT_RMEM_VERBS;
    verbs->writer = writer;
    verbs->handler = handler;
    verbs->user = user;
    verbs->address = address;
    verbs->mail.deliver = target_deliver;
    leat_list_init(&verbs->posted);
    leat_list_init(&verbs->waiting);
    if (rdma_create_id(writer->cm, &verbs->id, verbs, RDMA_PS_TCP) ||
        rdma_resolve_addr(verbs->id, NULL, (struct sockaddr *)&to, VERBS_RESOLVE_MS)) {
        if (verbs->id) (void)rdma_destroy_id(verbs->id);
        leat_mem_free(verbs);
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "no RDMA path to the backup: %s",
                              strerror(errno));
    }
    leat_list_push_back(&writer->targets, &verbs->link);
    writer->count++;
    *out_target = &verbs->target;
    return LEAT_OK;
}

static leat_err verbs_write(struct leat_rmem_target *target, struct leat_rmem_write *write)
{
    struct os_verbs_target *verbs = verbs_of(target);
    if (verbs->detached) return LEAT_E_CLOSED;
    leat_err rc = leat_rmem_write_check(target, write, verbs->address.limit_bytes);
    if (rc) return rc;
    leat_list_push_back(&verbs->waiting, &write->list);
    waiting_post(verbs);
    return LEAT_OK;
}

static void verbs_detach(struct leat_rmem_target *target)
{
    struct os_verbs_target *verbs = verbs_of(target);
    LEAT_ASSERT(!verbs->detached);
    verbs->detached = true;
    leat_os_verbs_mail(verbs);
}

/* ---- life ---- */

leat_err leat_os_verbs_writer_open(struct os_rmem *rmem, struct os_actor *actor)
{
    struct os_verbs_writer *writer = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *writer);
    if (!writer) return LEAT_E_NO_MEMORY;
    writer->port = (struct leat_rmem){
        .ctx = writer,
        .kind = LEAT_RMEM_VERBS,
        .attach = verbs_attach,
        .write = verbs_write,
        .detach = verbs_detach,
        .source = verbs_source,
    };
    writer->rmem = rmem;
    writer->actor = actor;
    leat_list_init(&writer->targets);
    rmem->verbs->writers[actor->number] = writer;
    writer->cm = rdma_create_event_channel();
    writer->completions = ibv_create_comp_channel(rmem->verbs->context);
    if (!writer->cm || !writer->completions || !leat_os_channel_unblock(writer->cm->fd) ||
        !leat_os_channel_unblock(writer->completions->fd))
        return LEAT_E_NO_MEMORY;
    writer->cm_watch = leat_os_watch_open(actor, writer->cm->fd, leat_os_verbs_on_cm_ready, writer);
    writer->completions_watch =
        leat_os_watch_open(actor, writer->completions->fd, on_completions_ready, writer);
    if (!writer->cm_watch || !writer->completions_watch) return LEAT_E_NO_MEMORY;
    unsigned slot = 0;
    while (actor->env.rmems[slot])
        slot++;
    LEAT_ASSERT_CMP(slot, <, (unsigned)LEAT_ENV_RMEMS);
    actor->env.rmems[slot] = &writer->port;
    return LEAT_OK;
}

/* Its thread is joined. */
void leat_os_verbs_actor_close(struct os_rmem *rmem, struct os_actor *actor)
{
    struct os_verbs *shared = rmem->verbs;
    if (!shared) return;
    if (actor == rmem->host_actor) leat_os_watch_close(&shared->watch);
    struct os_verbs_writer *writer =
        actor->number < LEAT_CORES_MAX ? shared->writers[actor->number] : NULL;
    if (!writer) return;
    while (!leat_list_empty(&writer->targets)) {
        struct os_verbs_target *verbs =
            LEAT_CONTAINER(writer->targets.next, struct os_verbs_target, link);
        /* No completion is reported any more, so later results of the device are ignored. */
        leat_list_init(&verbs->posted);
        leat_list_init(&verbs->waiting);
        verbs->quiet = true;
        target_free(verbs);
    }
    leat_os_watch_close(&writer->cm_watch);
    leat_os_watch_close(&writer->completions_watch);
    if (writer->completions) (void)ibv_destroy_comp_channel(writer->completions);
    if (writer->cm) rdma_destroy_event_channel(writer->cm);
    shared->writers[actor->number] = NULL;
    leat_mem_free(writer);
}
