/* SPDX-License-Identifier: Apache-2.0 */
/* Used by both halves of the writer: a target has news, fails, or needs keys. */
#include "os/rmem_verbs_writer.h"

void leat_os_verbs_mail(struct os_verbs_target *verbs)
{
    if (verbs->mailed) return;
    verbs->mailed = true;
    const struct leat_post *post = &verbs->writer->actor->post;
    post->send(post->ctx, post->self, &verbs->mail);
}

void leat_os_verbs_fail(struct os_verbs_target *verbs, leat_err rc, const char *text)
{
    if (verbs->error.code == LEAT_OK) leat_error_set(&verbs->error, rc, "%s", text);
    verbs->target.failed = true;
    leat_os_verbs_mail(verbs);
}

void leat_os_verbs_table_read(struct os_verbs_target *verbs)
{
    struct ibv_sge sge = {(uintptr_t)verbs->keys, VERBS_TABLE_BYTES, verbs->table_mr->lkey};
    struct ibv_send_wr wr = {.wr_id = VERBS_READ_TABLE,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ,
                             .send_flags = IBV_SEND_SIGNALED,
                             .wr.rdma = {verbs->welcome.table, verbs->welcome.table_key}};
    struct ibv_send_wr *bad;
    if (verbs->reading) return;
    verbs->reading = true;
    if (ibv_post_send(verbs->id->qp, &wr, &bad))
        leat_os_verbs_fail(verbs, LEAT_E_CLOSED, "the RDMA queue takes no request");
}
