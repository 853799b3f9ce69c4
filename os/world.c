/* SPDX-License-Identifier: Apache-2.0 */
/* A world: the actors of one process, or of one client. */
#include "os/internal.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READERS_DEFAULT = 2 };

leat_err leat_os_world_create(const struct leat_os_world_options *options,
                              struct leat_os_world **out_world, struct leat_error *error)
{
    struct leat_os_world *world = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *world);
    if (!world) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the actors");
    leat_err rc = LEAT_OK;
    world->data_fd = -1;
    world->ready_bytes_max =
        options->ready_bytes_max ? options->ready_bytes_max : LEAT_OS_READY_BYTES_MAX;
    (void)pthread_mutex_init(&world->lock, NULL);
    leat_os_crews_init(world);
    if (options->data_dir) {
        if (strlen(options->data_dir) >= sizeof world->data_dir) {
            rc = leat_error_set(error, LEAT_E_CONFIG, "the data directory's path is too long");
            goto out;
        }
        memcpy(world->data_dir, options->data_dir, strlen(options->data_dir) + 1);
        world->data_fd = open(options->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (world->data_fd < 0) {
            rc = leat_error_set(error, LEAT_E_CONFIG, "can't open the data directory %.150s: %s",
                                options->data_dir, strerror(errno));
            goto out;
        }
        unsigned readers = options->reader_threads ? options->reader_threads : READERS_DEFAULT;
        rc = leat_os_crew_start(world, OS_READERS, readers);
        if (!rc) rc = leat_os_crew_start(world, OS_WRITERS, LEAT_OS_WRITERS);
        if (rc) leat_error_set(error, rc, "can't start the disk's threads");
    }
out:
    if (rc)
        leat_os_world_destroy(&world);
    else
        *out_world = world;
    return rc;
}

void leat_os_world_destroy(struct leat_os_world **world_pointer)
{
    struct leat_os_world *world = *world_pointer;
    if (!world) return;
    *world_pointer = NULL;
    for (unsigned i = 0; i < LEAT_ACTORS; i++)
        leat_os_actor_join(world, i);
    leat_os_crews_stop(world);
    if (world->rmem) leat_os_rmem_stop(world->rmem);
    for (unsigned i = 0; i < LEAT_ACTORS; i++) {
        if (world->actors[i]) leat_os_actor_fini(world->actors[i]);
    }
    if (world->rmem) leat_os_rmem_close(world->rmem);
    if (world->data_fd >= 0) (void)close(world->data_fd); /* opened for reading only */
    leat_os_crews_fini(world);
    (void)pthread_mutex_destroy(&world->lock);
    leat_mem_free(world);
}

void leat_os_world_post(struct leat_os_world *world, unsigned to, struct leat_mail *mail)
{
    LEAT_ASSERT_CMP(to, <, LEAT_ACTORS);
    LEAT_ASSERT(world->actors[to] != NULL && mail->deliver != NULL);
    leat_os_mail_push(world->actors[to], mail);
}
