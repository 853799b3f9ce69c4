/* SPDX-License-Identifier: Apache-2.0 */
/* A rig on the real ports: two cores of one process, in a directory of its own. */
#ifndef LEAT_TESTS_TRANSPORT_OS_RIG_H
#define LEAT_TESTS_TRANSPORT_OS_RIG_H

#include "os/os.h"
#include "tests/transport/suite.h"

#include <pthread.h>

struct os_rig {
    struct transport_rig rig;
    struct leat_os_world *world;
    const struct leat_env *envs[2];
    char dir[64];
    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t notified;
    uint8_t *memory;
    /* of whoever builds on it */
    void (*turn_end)(struct os_rig *rig, unsigned actor);
    void (*woken)(struct os_rig *rig, unsigned actor);
    void *owner;
};

/** verbs_host: NULL for none. dir: NULL for one of its own, which goes with the rig. */
struct os_rig *os_rig_make(const char *dir, const char *verbs_host);
/** Start the actors; before it their envs may be used to build what runs on them. */
void os_rig_start(struct os_rig *rig);
/** As LEAT_ASSERT_OWNER() takes it. */
const void *os_rig_actor(unsigned actor);
/** Join both actors, before what runs on them is destroyed. */
void os_rig_stop(struct os_rig *rig);
void os_rig_drop(struct os_rig *rig);
/** The port of a kind, of RIG_WRITER; NULL: there is none. */
const struct leat_rmem *os_rig_writer(const struct os_rig *rig, enum leat_rmem_kind kind);

#endif
