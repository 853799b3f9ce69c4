/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous disk operations: writes and syncs on the actor's own thread between turns, reads and
 * zeros on the world's readers, what is `beside` on its writers. */
#include "os/internal.h"

#include "base/assert.h"

/* After so many operations the actor hears its mail again. */
enum { RUN_OPERATIONS_MAX = 256 };

void leat_os_disk_queue_init(struct os_actor *actor)
{
    struct os_disk_queue *queue = &actor->disk;
    queue->last = &queue->first;
    queue->done_last = &queue->done;
    for (int kind = 0; kind < OS_CREWS; kind++) {
        struct os_beside *beside = &queue->beside[kind];
        beside->last = &beside->first;
        beside->actor = actor;
        leat_list_init(&beside->link);
    }
}

static void beside_submit(struct os_actor *actor, enum os_crew_kind kind, struct leat_disk_io *io)
{
    struct leat_os_world *world = actor->world;
    struct os_crew *crew = &world->crews[kind];
    struct os_beside *beside = &actor->disk.beside[kind];
    actor->disk.beside_out++;
    for (struct leat_disk_io *then = io->then; then; then = then->then) {
        LEAT_ASSERT(then->beside && then->file != NULL && then->on_done != NULL);
        then->done_bytes = 0;
        then->rc = LEAT_OK;
        actor->disk.beside_out++;
    }
    (void)pthread_mutex_lock(&world->lock);
    if (!beside->first) leat_list_push_back(&crew->work, &beside->link);
    *beside->last = io;
    beside->last = &io->next;
    (void)pthread_mutex_unlock(&world->lock);
    (void)pthread_cond_signal(&crew->wake);
}

void leat_os_disk_submit(void *ctx, struct leat_disk_io *io)
{
    struct os_actor *actor = ctx;
    LEAT_ASSERT(io->file != NULL && io->on_done != NULL);
    io->next = NULL;
    io->done_bytes = 0;
    io->rc = LEAT_OK;
    /* Writes do not wait for these: a read of 8 MiB takes as long as 30 commits. */
    if (io->kind == LEAT_DISK_READ || io->kind == LEAT_DISK_ZERO) {
        beside_submit(actor, OS_READERS, io);
        return;
    }
    if (io->beside) {
        beside_submit(actor, OS_WRITERS, io);
        return;
    }
    LEAT_ASSERT(io->then == NULL);
    LEAT_ASSERT_CMP(actor->kind, ==, LEAT_OS_ACTOR_DISK);
    *actor->disk.last = io;
    actor->disk.last = &io->next;
}

/* Runs the first operation of the queue, and the operations that may be under way at the same time. Returns how
 * many. */
static unsigned run_some(struct os_disk_queue *queue)
{
    struct leat_disk_io *ios[OS_TOGETHER_MAX], *io = queue->first;
    unsigned count = 0;
    while (io->together && io->next && io->next->kind == LEAT_DISK_WRITE &&
           count + 1 < OS_TOGETHER_MAX) {
        LEAT_ASSERT(io->kind == LEAT_DISK_WRITE);
        ios[count++] = io;
        io = io->next;
    }
    ios[count++] = io;
    if (count > 1)
        leat_os_disk_together_run(queue, ios, count);
    else
        leat_os_disk_io_run(io);
    return count;
}

void leat_os_disk_run(struct os_actor *actor)
{
    struct os_disk_queue *queue = &actor->disk;
    for (unsigned i = 0; queue->first && i < RUN_OPERATIONS_MAX;) {
        enum leat_disk_kind kind = queue->first->kind;
        for (unsigned left = run_some(queue); left > 0; left--, i++) {
            struct leat_disk_io *io = queue->first;
            queue->first = io->next;
            if (!queue->first) queue->last = &queue->first;
            io->next = NULL;
            *queue->done_last = io;
            queue->done_last = &io->next;
        }
        /* Requests wait for a sync: its end is reported at once, not after operations that were submitted after the
         * sync. */
        if (kind == LEAT_DISK_SYNC) break;
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

/* All of a chain, then all of its news: the actor is woken once. */
static void chain_run(struct os_actor *actor, struct leat_disk_io *io)
{
    for (struct leat_disk_io *it = io; it; it = it->then)
        leat_os_disk_io_run(it);
    while (io) {
        /* after leat_os_beside_done() `io` belongs to the actor again */
        struct leat_disk_io *then = io->then;
        leat_os_beside_done(actor, io);
        io = then;
    }
}

static void *crew_main(void *arg)
{
    struct os_crew *crew = arg;
    struct leat_os_world *world = crew->world;
    (void)pthread_setname_np(pthread_self(),
                             crew->kind == OS_READERS ? "leat-reader" : "leat-writer");
    (void)pthread_mutex_lock(&world->lock);
    for (;;) {
        struct leat_list *link = leat_list_pop_front(&crew->work);
        if (!link) {
            if (world->crews_stop) break;
            (void)pthread_cond_wait(&crew->wake, &world->lock);
            continue;
        }
        struct os_beside *beside = LEAT_CONTAINER(link, struct os_beside, link);
        struct leat_disk_io *io = beside->first;
        beside->first = io->next;
        if (beside->first)
            leat_list_push_back(&crew->work, link); /* one each, in turn */
        else
            beside->last = &beside->first;
        (void)pthread_mutex_unlock(&world->lock);
        chain_run(beside->actor, io);
        (void)pthread_mutex_lock(&world->lock);
    }
    (void)pthread_mutex_unlock(&world->lock);
    return NULL;
}

void leat_os_crews_init(struct leat_os_world *world)
{
    for (int kind = 0; kind < OS_CREWS; kind++) {
        struct os_crew *crew = &world->crews[kind];
        crew->world = world;
        crew->kind = (enum os_crew_kind)kind;
        leat_list_init(&crew->work);
        (void)pthread_cond_init(&crew->wake, NULL);
    }
}

leat_err leat_os_crew_start(struct leat_os_world *world, enum os_crew_kind kind, unsigned count)
{
    LEAT_ASSERT_CMP(count, <=, LEAT_OS_READERS_MAX);
    struct os_crew *crew = &world->crews[kind];
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&crew->threads[i], NULL, crew_main, crew)) return LEAT_E_NO_MEMORY;
        crew->count++;
    }
    return LEAT_OK;
}

void leat_os_crews_stop(struct leat_os_world *world)
{
    (void)pthread_mutex_lock(&world->lock);
    world->crews_stop = true;
    (void)pthread_mutex_unlock(&world->lock);
    for (int kind = 0; kind < OS_CREWS; kind++) {
        struct os_crew *crew = &world->crews[kind];
        (void)pthread_cond_broadcast(&crew->wake);
        for (unsigned i = 0; i < crew->count; i++)
            (void)pthread_join(crew->threads[i], NULL);
        crew->count = 0;
    }
}

void leat_os_crews_fini(struct leat_os_world *world)
{
    for (int kind = 0; kind < OS_CREWS; kind++)
        (void)pthread_cond_destroy(&world->crews[kind].wake);
}
