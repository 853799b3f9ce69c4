/* SPDX-License-Identifier: Apache-2.0 */
/* A rig on the real ports. */
#include "tests/os/real_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { RIG_WAIT_SECONDS = 60 };

static const struct leat_env *real_env(void *ctx, unsigned number)
{
    return ((struct real_rig *)ctx)->envs[number];
}

static void real_attach(void *ctx, unsigned number, void *actor, const struct leat_actor_ops *ops,
                        void (*on_start)(void *actor))
{
    struct real_rig *real = ctx;
    real->attached[number].used = true;
    real->attached[number].actor = actor;
    real->attached[number].ops = ops;
    real->attached[number].on_start = on_start;
}

static void real_finish(void *ctx)
{
    struct real_rig *real = ctx;
    pthread_mutex_lock(&real->lock);
    real->finished = true;
    pthread_mutex_unlock(&real->lock);
    pthread_cond_signal(&real->wake);
}

static void real_run(void *ctx)
{
    struct real_rig *real = ctx;
    for (unsigned i = 0; i < LEAT_ACTORS; i++) {
        if (!real->attached[i].used) continue;
        PORT_CHECK(leat_os_actor_start(real->world, i, real->attached[i].actor,
                                       real->attached[i].ops, real->attached[i].on_start, "port",
                                       -1) == LEAT_OK);
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RIG_WAIT_SECONDS;
    pthread_mutex_lock(&real->lock);
    int late = 0;
    while (!real->finished && !late)
        late = pthread_cond_timedwait(&real->wake, &real->lock, &until);
    PORT_CHECK(real->finished);
    pthread_mutex_unlock(&real->lock);
    for (unsigned i = 0; i < LEAT_ACTORS; i++)
        leat_os_actor_join(real->world, i);
}

void temp_dir(char out[64])
{
    snprintf(out, 64, "/tmp/leat-os-XXXXXX");
    PORT_CHECK(mkdtemp(out) != NULL);
}

struct port_rig *real_rig_make(void)
{
    char dir[64];
    temp_dir(dir);
    struct real_rig *real = real_rig_make_in(dir);
    real->owns_dir = true;
    return &real->rig;
}

struct real_rig *real_rig_make_in(const char *dir)
{
    struct real_rig *real = calloc(1, sizeof *real);
    pthread_mutex_init(&real->lock, NULL);
    pthread_cond_init(&real->wake, NULL);
    snprintf(real->dir, sizeof real->dir, "%s", dir);
    struct leat_error error;
    struct leat_os_world_options options = {.data_dir = real->dir};
    PORT_CHECK(leat_os_world_create(&options, &real->world, &error) == LEAT_OK);
    const unsigned numbers[3] = {PORT_LEFT, PORT_RIGHT, PORT_DISK};
    for (int i = 0; i < 3; i++) {
        enum leat_os_actor_kind kind =
            numbers[i] == PORT_DISK ? LEAT_OS_ACTOR_DISK : LEAT_OS_ACTOR_CORE;
        PORT_CHECK(leat_os_actor_create(real->world, numbers[i], kind, &real->envs[numbers[i]],
                                        &error) == LEAT_OK);
    }
    real->rig = (struct port_rig){
        .ctx = real,
        .env = real_env,
        .attach = real_attach,
        .run = real_run,
        .finish = real_finish,
        .listen_address = "127.0.0.1:0",
        .refused_address = "127.0.0.1:1",
    };
    return real;
}

static void directory_empty(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY);
    DIR *dir = fdopendir(fd);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        if (entry->d_type == DT_DIR) {
            directory_empty(fd, entry->d_name);
            unlinkat(fd, entry->d_name, AT_REMOVEDIR);
        } else {
            unlinkat(fd, entry->d_name, 0);
        }
    }
    closedir(dir);
}

void real_rig_remove_dir(const char *dir)
{
    directory_empty(AT_FDCWD, dir);
    rmdir(dir);
}

void real_rig_drop(struct port_rig *rig)
{
    struct real_rig *real = rig->ctx;
    leat_os_world_destroy(&real->world);
    if (real->owns_dir) real_rig_remove_dir(real->dir);
    pthread_cond_destroy(&real->wake);
    pthread_mutex_destroy(&real->lock);
    free(real);
}
