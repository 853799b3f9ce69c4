/* SPDX-License-Identifier: Apache-2.0 */
/* The writer's half of the verbs transport: what its files share. */
#ifndef LEAT_OS_RMEM_VERBS_WRITER_H
#define LEAT_OS_RMEM_VERBS_WRITER_H

#include "os/rmem_verbs.h"

enum {
    VERBS_TABLE_BYTES = LEAT_RMEM_STEPS_MAX * 4,
    VERBS_READ_TABLE = 1,    /* wr_id; writes have their address, pieces before the last 0 */
    VERBS_WRS_PER_WRITE = 2, /* a write may lie across two steps, whose keys differ */
};
static_assert((int)LEAT_RMEM_WRITE_BYTES_MAX <= (int)LEAT_ARENA_STEP_BYTES, "at most two steps");

struct os_verbs_writer { /* one core's port */
    struct leat_rmem port;
    struct os_rmem *rmem;
    struct os_actor *actor;
    struct rdma_event_channel *cm;
    struct ibv_comp_channel *completions;
    struct os_watch *cm_watch, *completions_watch;
    struct leat_list targets;
    unsigned count;
};

struct os_verbs_target {
    struct leat_rmem_target target;
    struct os_verbs_writer *writer;
    struct leat_list link;
    const struct leat_rmem_target_handler *handler;
    void *user;
    struct leat_rmem_address address;
    struct rdma_cm_id *id;
    struct ibv_cq *cq;
    unsigned cq_events; /* taken, not yet acknowledged */
    struct verbs_welcome welcome;
    struct ibv_mr *table_mr;
    bool connected, reading, cut, detached, told, mailed, job_out;
    bool more;               /* completions wait to be looked at, of which no event tells again */
    bool quiet;              /* the world ends: completions are not looked at */
    struct leat_error error; /* why it fails; code 0: it does not */
    struct leat_list posted, waiting;
    unsigned in_flight;
    struct leat_mail mail;
    struct os_job job; /* registers the pool's new steps */
    struct leat_error job_error;
    uint32_t keys[LEAT_RMEM_STEPS_MAX]; /* of the arena's steps; the device writes it */
};

/* ---- rmem_verbs_target.c ---- */
/** Handle the target in a later callback. */
void leat_os_verbs_mail(struct os_verbs_target *verbs);
/** All writes of the target end with `rc`; the first call reports this to the target's user. */
void leat_os_verbs_fail(struct os_verbs_target *verbs, leat_err rc, const char *text);
/** Connected: ask for the keys of the arena's steps. With the first keys the target is attached. */
void leat_os_verbs_table_read(struct os_verbs_target *verbs);

/* ---- rmem_verbs_connect.c ---- */
/** Where its host listens. LEAT_E_UNSUPPORTED: not by RDMA. */
leat_err leat_os_verbs_grant_address(const struct leat_rmem_grant *grant,
                                     struct sockaddr_storage *out) LEAT_NODISCARD;
/** The connection manager has an event for a target of a writer. user: the writer. */
void leat_os_verbs_on_cm_ready(void *user);

#endif
