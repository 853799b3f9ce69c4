/* SPDX-License-Identifier: Apache-2.0 */
/* One-sided writes of a world: its ports are opened, stopped and closed. */
#include "os/rmem.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif

/* /dev/shm for a system account, else the data directory: systemd empties /dev/shm of an ordinary
 * user at logout. */
static leat_err place(struct os_rmem *rmem, struct leat_error *error)
{
    if (!realpath(rmem->world->data_dir, rmem->data_dir))
        return leat_error_set(error, LEAT_E_CONFIG, "can't resolve the data directory: %s",
                              strerror(errno));
    const char *folder = geteuid() < SYSTEM_ACCOUNTS_END ? "/dev/shm" : rmem->data_dir;
    memcpy(rmem->folder, folder, strlen(folder) + 1);
    struct statfs fs;
    rmem->in_memory = statfs(folder, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
    leat_os_boot_id(rmem->boot_id);
    leat_os_process_identity(getpid(), &rmem->process_started, &rmem->pid_space);
    return LEAT_OK;
}

static leat_err writers_open(struct os_rmem *rmem, const struct leat_os_rmem_options *options)
{
    for (unsigned i = 0; i < LEAT_CORES_MAX; i++) {
        struct os_actor *actor = rmem->world->actors[i];
        if (!actor) continue;
        leat_err rc = LEAT_OK;
        if (!options->no_shm) rc = leat_os_shm_open(rmem, actor);
        if (!rc && rmem->verbs) rc = leat_os_verbs_writer_open(rmem, actor);
        if (rc) return rc;
    }
    return LEAT_OK;
}

leat_err leat_os_rmem_open(struct leat_os_world *world, const struct leat_os_rmem_options *options,
                           struct leat_error *error)
{
    LEAT_ASSERT(world->rmem == NULL);
    LEAT_ASSERT(options->host < LEAT_CORES_MAX && world->actors[options->host] != NULL);
    if (world->data_fd < 0)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "memory for other nodes needs a data directory");
    struct os_rmem *rmem = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *rmem);
    if (!rmem) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the transports");
    rmem->world = world;
    rmem->host_actor = world->actors[options->host];
    rmem->jobs_last = &rmem->jobs;
    leat_list_init(&rmem->maps);
    (void)pthread_mutex_init(&rmem->lock, NULL);
    (void)pthread_cond_init(&rmem->wake, NULL);
    (void)pthread_cond_init(&rmem->unpinned, NULL);
    world->rmem = rmem; /* from here on the world frees it */
    leat_err rc = place(rmem, error);
    if (!rc) {
        if (options->verbs_host)
            leat_os_verbs_open(rmem, options->verbs_host, &rmem->no_verbs);
        else
            leat_error_set(&rmem->no_verbs, LEAT_E_UNSUPPORTED, "RDMA is not asked for");
        rc = leat_os_rmem_host_open(rmem, error);
    }
    if (!rc) {
        if (!options->no_shm) rmem->host.kinds |= 1u << LEAT_RMEM_SHM;
        if (rmem->verbs) rmem->host.kinds |= 1u << LEAT_RMEM_VERBS;
        rc = writers_open(rmem, options);
        if (rc) leat_error_set(error, rc, "no memory for the transports");
    }
    if (!rc && pthread_create(&rmem->helper, NULL, leat_os_helper_main, rmem))
        rc = leat_error_set(error, LEAT_E_NO_MEMORY, "can't start the transports' thread");
    if (!rc) rmem->helper_started = true;
    return rc;
}

const char *leat_os_rmem_no_verbs(const struct leat_os_world *world)
{
    if (!world->rmem) return "one-sided writes are off";
    return world->rmem->verbs ? NULL : world->rmem->no_verbs.text;
}

void leat_os_rmem_stop(struct os_rmem *rmem)
{
    if (!rmem->helper_started) return;
    (void)pthread_mutex_lock(&rmem->lock);
    rmem->stop = true;
    (void)pthread_mutex_unlock(&rmem->lock);
    (void)pthread_cond_signal(&rmem->wake);
    (void)pthread_join(rmem->helper, NULL);
    rmem->helper_started = false;
    while (rmem->jobs) { /* an actor frees what its own jobs were for */
        struct os_job *job = rmem->jobs;
        rmem->jobs = job->next;
        if (!job->actor) job->run(job);
    }
    rmem->jobs_last = &rmem->jobs;
}

void leat_os_rmem_actor_fini(struct os_rmem *rmem, struct os_actor *actor)
{
    leat_os_verbs_actor_close(rmem, actor);
    leat_os_shm_close(rmem, actor);
}

void leat_os_rmem_close(struct os_rmem *rmem)
{
    leat_os_shm_maps_close(rmem);
    leat_os_rmem_host_close(rmem);
    leat_os_verbs_close(rmem);
    (void)pthread_cond_destroy(&rmem->unpinned);
    (void)pthread_cond_destroy(&rmem->wake);
    (void)pthread_mutex_destroy(&rmem->lock);
    leat_mem_free(rmem);
}
