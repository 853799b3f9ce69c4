/* SPDX-License-Identifier: Apache-2.0 */
/* Three actors on the real ports, in a directory of their own. */
#ifndef LEAT_TESTS_OS_REAL_RIG_H
#define LEAT_TESTS_OS_REAL_RIG_H

#include "os/os.h"
#include "tests/os/port_suite.h"

#include <pthread.h>

struct real_rig {
    struct port_rig rig;
    struct leat_os_world *world;
    char dir[64];
    bool owns_dir;
    const struct leat_env *envs[LEAT_ACTORS];
    struct {
        bool used;
        void *actor;
        const struct leat_actor_ops *ops;
        void (*on_start)(void *actor);
    } attached[LEAT_ACTORS];
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool finished;
};

/** A new directory in /tmp. */
void temp_dir(char out[64]);
struct port_rig *real_rig_make(void);
struct real_rig *real_rig_make_in(const char *dir); /* which stays when the rig is dropped */
void real_rig_drop(struct port_rig *rig);
void real_rig_remove_dir(const char *dir);

#endif
