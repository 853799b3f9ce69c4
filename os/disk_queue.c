/* Asynchronous disk operations: writes and syncs on the actor's own thread between turns, reads and
 * zeros on the world's reader threads. */
#include "os/internal.h"

#include "base/assert.h"

/* After so many operations the actor hears its mail again. */
enum { RUN_OPERATIONS_MAX = 256 };

void leat_os_disk_queue_init(struct os_actor *actor)
{
    struct os_disk_queue *queue = &actor->disk;
    queue->last = &queue->first;
    queue->done_last = &queue->done;
    queue->reads_last = &queue->reads;
    leat_list_init(&queue->link);
}

static void reader_submit(struct os_actor *actor, struct leat_disk_io *io)
{
    struct leat_os_world *world = actor->world;
    struct os_disk_queue *queue = &actor->disk;
    queue->reads_out++;
    (void)pthread_mutex_lock(&world->lock);
    if (!queue->reads) leat_list_push_back(&world->readers_work, &queue->link);
    *queue->reads_last = io;
    queue->reads_last = &io->next;
    (void)pthread_mutex_unlock(&world->lock);
    (void)pthread_cond_signal(&world->readers_wake);
}

void leat_os_disk_submit(void *ctx, struct leat_disk_io *io)
{
    struct os_actor *actor = ctx;
    LEAT_ASSERT(io->file != NULL && io->on_done != NULL);
    io->next = NULL;
    io->done_bytes = 0;
    io->rc = LEAT_OK;
    /* Nobody who writes waits for these: a read of 8 MiB takes as long as 30 commits. */
    if (io->kind == LEAT_DISK_READ || io->kind == LEAT_DISK_ZERO) {
        reader_submit(actor, io);
        return;
    }
    LEAT_ASSERT_CMP(actor->kind, ==, LEAT_OS_ACTOR_DISK);
    *actor->disk.last = io;
    actor->disk.last = &io->next;
}

void leat_os_disk_run(struct os_actor *actor)
{
    struct os_disk_queue *queue = &actor->disk;
    for (int i = 0; queue->first && i < RUN_OPERATIONS_MAX; i++) {
        struct leat_disk_io *io = queue->first;
        queue->first = io->next;
        if (!queue->first) queue->last = &queue->first;
        leat_os_disk_io_run(io);
        io->next = NULL;
        *queue->done_last = io;
        queue->done_last = &io->next;
        /* What a sync makes durable is waited for: it is told at once, not after what was submitted
         * behind it. */
        if (io->kind == LEAT_DISK_SYNC) break;
    }
}

bool leat_os_disk_deliver(struct os_actor *actor)
{
    struct os_disk_queue *queue = &actor->disk;
    /* Operations left over by the limit above need a turn too. */
    if (!queue->done && queue->first) leat_os_disk_run(actor);
    struct leat_disk_io *io = queue->done;
    if (!io) return false;
    queue->done = NULL;
    queue->done_last = &queue->done;
    while (io) {
        struct leat_disk_io *next = io->next;
        io->on_done(io);
        io = next;
    }
    return true;
}

bool leat_os_disk_waiting(const struct os_actor *actor)
{
    return actor->disk.first != NULL || actor->disk.done != NULL;
}

static void *reader_main(void *arg)
{
    struct leat_os_world *world = arg;
    (void)pthread_setname_np(pthread_self(), "leat-reader");
    (void)pthread_mutex_lock(&world->lock);
    for (;;) {
        struct leat_list *link = leat_list_pop_front(&world->readers_work);
        if (!link) {
            if (world->readers_stop) break;
            (void)pthread_cond_wait(&world->readers_wake, &world->lock);
            continue;
        }
        struct os_disk_queue *queue = LEAT_CONTAINER(link, struct os_disk_queue, link);
        struct os_actor *actor = LEAT_CONTAINER(queue, struct os_actor, disk);
        struct leat_disk_io *io = queue->reads;
        queue->reads = io->next;
        if (queue->reads)
            leat_list_push_back(&world->readers_work, link); /* one each, in turn */
        else
            queue->reads_last = &queue->reads;
        (void)pthread_mutex_unlock(&world->lock);
        leat_os_disk_io_run(io);
        leat_os_read_done(actor, io);
        (void)pthread_mutex_lock(&world->lock);
    }
    (void)pthread_mutex_unlock(&world->lock);
    return NULL;
}

leat_err leat_os_readers_start(struct leat_os_world *world, unsigned count)
{
    LEAT_ASSERT_CMP(count, <=, LEAT_OS_READERS_MAX);
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&world->readers[i], NULL, reader_main, world)) return LEAT_E_NO_MEMORY;
        world->reader_count++;
    }
    return LEAT_OK;
}

void leat_os_readers_stop(struct leat_os_world *world)
{
    (void)pthread_mutex_lock(&world->lock);
    world->readers_stop = true;
    (void)pthread_mutex_unlock(&world->lock);
    (void)pthread_cond_broadcast(&world->readers_wake);
    for (unsigned i = 0; i < world->reader_count; i++)
        (void)pthread_join(world->readers[i], NULL);
    world->reader_count = 0;
}
