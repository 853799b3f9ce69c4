/* What both ports of one-sided writes stand on: the world's part, and the helper's thread. */
#include "os/rmem.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef TMPFS_MAGIC
#define TMPFS_MAGIC 0x01021994
#endif

/* ---- jobs ---- */

static void *helper_main(void *arg)
{
    struct os_rmem *rmem = arg;
    (void)pthread_setname_np(pthread_self(), "leat-rmem");
    (void)pthread_mutex_lock(&rmem->lock);
    while (!rmem->stop) {
        struct os_job *job = rmem->jobs;
        if (!job) {
            (void)pthread_cond_wait(&rmem->wake, &rmem->lock);
            continue;
        }
        rmem->jobs = job->next;
        if (!rmem->jobs) rmem->jobs_last = &rmem->jobs;
        (void)pthread_mutex_unlock(&rmem->lock);
        struct os_actor *actor = job->actor; /* without one, run() may free the job */
        job->run(job);
        if (actor) leat_os_mail_push(actor, &job->mail);
        (void)pthread_mutex_lock(&rmem->lock);
    }
    (void)pthread_mutex_unlock(&rmem->lock);
    return NULL;
}

void leat_os_job_start(struct os_rmem *rmem, struct os_job *job)
{
    job->next = NULL;
    (void)pthread_mutex_lock(&rmem->lock);
    *rmem->jobs_last = job;
    rmem->jobs_last = &job->next;
    (void)pthread_mutex_unlock(&rmem->lock);
    (void)pthread_cond_signal(&rmem->wake);
}

/* ---- descriptors on a loop ---- */

struct os_watch {
    uv_poll_t uv;
    void (*on_ready)(void *user);
    void *user;
};

static void watch_freed(uv_handle_t *handle)
{
    leat_mem_free(handle->data);
}

static void watch_fire(uv_poll_t *uv, int status, int events)
{
    struct os_watch *watch = uv->data;
    (void)status; /* whoever asked finds out by using the descriptor */
    (void)events;
    watch->on_ready(watch->user);
}

struct os_watch *leat_os_watch_open(struct os_actor *actor, int fd, void (*on_ready)(void *user),
                                    void *user)
{
    struct os_watch *watch = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *watch);
    if (!watch) return NULL;
    if (uv_poll_init(&actor->loop, &watch->uv, fd)) {
        leat_mem_free(watch);
        return NULL;
    }
    watch->uv.data = watch;
    watch->on_ready = on_ready;
    watch->user = user;
    (void)uv_poll_start(&watch->uv, UV_READABLE | UV_DISCONNECT, watch_fire);
    return watch;
}

void leat_os_watch_close(struct os_watch **watch)
{
    if (!*watch) return;
    (void)uv_poll_stop(&(*watch)->uv);
    uv_close((uv_handle_t *)&(*watch)->uv, watch_freed);
    *watch = NULL;
}

/* ---- processes ---- */

void leat_os_process_identity(long pid, uint64_t *out_started, uint64_t *out_space)
{
    char path[64], text[1024];
    struct stat st;
    *out_started = 0;
    *out_space = stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strrchr(text, ')'); /* the name before it may hold anything */
    /* field 22, the second field after ')' being number 3 with one space before each */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at) *out_started = strtoull(at + 1, NULL, 10);
}

/* ---- life ---- */

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
    if (!rc && pthread_create(&rmem->helper, NULL, helper_main, rmem))
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
    while (rmem->jobs) { /* what others own they give up themselves */
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
