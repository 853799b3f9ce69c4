/* SPDX-License-Identifier: Apache-2.0 */
/* The base of both ports of one-sided writes: jobs of the helper's thread, descriptors on a loop, the account of a
 * process, and the arena of an address. */
#include "os/rmem.h"

#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- jobs ---- */

void *leat_os_helper_main(void *arg)
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
    (void)status; /* the requester sees an error when it uses the descriptor */
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

/* ---- arenas ---- */

struct os_rmem_arena *leat_os_rmem_arena_locked(struct os_rmem *rmem,
                                                const struct leat_rmem_address *address)
{
    if (address->number == 0) return NULL;
    struct os_rmem_arena *arena = rmem->arenas[(address->number - 1) % LEAT_RMEM_ARENAS_MAX];
    if (!arena || arena->port.number != address->number ||
        memcmp(arena->port.id, address->id, LEAT_RMEM_ID_BYTES) != 0)
        return NULL;
    return arena;
}

struct os_rmem_arena *leat_os_rmem_arena_find(struct os_rmem *rmem,
                                              const struct leat_rmem_address *address)
{
    (void)pthread_mutex_lock(&rmem->lock);
    struct os_rmem_arena *arena = leat_os_rmem_arena_locked(rmem, address);
    (void)pthread_mutex_unlock(&rmem->lock);
    return arena;
}
