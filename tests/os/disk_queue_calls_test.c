/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of disk operations, and the threads beside it, without a disk and without a thread: what is run, in which
 * order, and who is told. Method: what operations do, and the threads' own calls, stand here (--wrap); each is a line
 * of the trace. What runs with the world's lock held, or without, is looked at in each. */
#include "os/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/trace.h"

static struct leat_os_world world;
static struct os_actor actors[2];
static unsigned locked;
static struct {
    void *(*main)(void *arg);
    void *arg;
    unsigned made, refused_at; /* the thread of that number is refused; 0: none */
} threads;
static void (*waits)(void); /* what happens while a thread of a crew waits */

/* ---- operations, by number ---- */

static struct leat_disk_io ios[600];

static unsigned number_of(const struct leat_disk_io *io)
{
    return (unsigned)(io - ios);
}

void __wrap_leat_os_disk_io_run(struct leat_disk_io *io);
void __wrap_leat_os_disk_io_run(struct leat_disk_io *io)
{
    assert_int_equal(locked, 0);
    assert_int_equal(io->rc, LEAT_OK);
    assert_int_equal(io->done_bytes, 0);
    trace("run %u\n", number_of(io));
}

void __wrap_leat_os_disk_together_run(struct os_disk_queue *queue,
                                      struct leat_disk_io *const *several, unsigned count);
void __wrap_leat_os_disk_together_run(struct os_disk_queue *queue,
                                      struct leat_disk_io *const *several, unsigned count)
{
    assert_ptr_equal(queue, &actors[0].disk);
    for (unsigned i = 1; i < count; i++)
        assert_ptr_equal(several[i], several[0] + i);
    trace("together %u to %u\n", number_of(several[0]), number_of(several[count - 1]));
}

void __wrap_leat_os_beside_done(struct os_actor *to, struct leat_disk_io *io);
void __wrap_leat_os_beside_done(struct os_actor *to, struct leat_disk_io *io)
{
    assert_int_equal(locked, 0);
    trace("tell %u of %u\n", (unsigned)(to - actors), number_of(io));
    io->then = io->next = NULL; /* the actor may do with its struct what it likes */
}

static void on_done(struct leat_disk_io *io)
{
    trace("done %u\n", number_of(io));
    if (io->owner) leat_os_disk_submit(&actors[0], io->owner); /* which may be itself */
}

static struct leat_disk_io *io_of(unsigned number, enum leat_disk_kind kind)
{
    ios[number] = (struct leat_disk_io){.kind = kind,
                                        .next = &ios[number], /* what it was before says nothing */
                                        .file = (struct leat_file *)&world,
                                        .done_bytes = 77,
                                        .rc = LEAT_E_DISK,
                                        .on_done = on_done};
    return &ios[number];
}

static void submit(unsigned number, enum leat_disk_kind kind)
{
    leat_os_disk_submit(&actors[0], io_of(number, kind));
}

static void submit_together(unsigned from, unsigned to)
{
    for (unsigned i = from; i <= to; i++) {
        io_of(i, LEAT_DISK_WRITE)->together = true;
        leat_os_disk_submit(&actors[0], &ios[i]);
    }
}

/* ---- threads ---- */

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    assert_ptr_equal(lock, &world.lock);
    assert_int_equal(locked++, 0);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    assert_ptr_equal(lock, &world.lock);
    assert_int_equal(locked--, 1);
    return 0;
}

static const char *crew_of(const pthread_cond_t *wake)
{
    if (wake == &world.crews[OS_READERS].wake) return "readers";
    assert_ptr_equal(wake, &world.crews[OS_WRITERS].wake);
    return "writers";
}

int __wrap_pthread_cond_init(pthread_cond_t *wake, const pthread_condattr_t *how);
int __wrap_pthread_cond_init(pthread_cond_t *wake, const pthread_condattr_t *how)
{
    assert_null(how);
    trace("make %s\n", crew_of(wake));
    return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *wake);
int __wrap_pthread_cond_destroy(pthread_cond_t *wake)
{
    trace("drop %s\n", crew_of(wake));
    return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *wake);
int __wrap_pthread_cond_signal(pthread_cond_t *wake)
{
    trace("wake %s\n", crew_of(wake));
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *wake);
int __wrap_pthread_cond_broadcast(pthread_cond_t *wake)
{
    assert_true(world.crews_stop);
    trace("wake all %s\n", crew_of(wake));
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *wake, pthread_mutex_t *lock)
{
    assert_ptr_equal(lock, &world.lock);
    assert_int_equal(locked, 1);
    trace("wait as %s\n", crew_of(wake));
    locked = 0;
    assert_non_null(waits);
    waits();
    locked = 1;
    return 0;
}

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*begin)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *how, void *(*begin)(void *),
                          void *arg)
{
    assert_null(how);
    if (++threads.made == threads.refused_at) return 11;
    threads.main = begin;
    threads.arg = arg;
    *out = (pthread_t)(100 + threads.made);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **out);
int __wrap_pthread_join(pthread_t thread, void **out)
{
    assert_null(out);
    assert_int_equal(locked, 0);
    trace("join %u\n", (unsigned)thread);
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    assert_true(pthread_equal(thread, pthread_self()));
    trace("be %s\n", name);
    return 0;
}

static void world_begin(void)
{
    memset(&world, 0, sizeof world);
    memset(actors, 0, sizeof actors);
    memset(&threads, 0, sizeof threads);
    locked = 0;
    waits = NULL;
    trace_begin();
    leat_os_crews_init(&world);
    TRACE_IS("make readers\nmake writers\n");
    for (unsigned i = 0; i < 2; i++) {
        actors[i].world = &world;
        actors[i].kind = LEAT_OS_ACTOR_DISK;
        leat_os_disk_queue_init(&actors[i]);
    }
}

/* Each operation that is told of, until none is. */
static void deliver_all(void)
{
    while (leat_os_disk_deliver(&actors[0])) {
    }
    assert_false(leat_os_disk_waiting(&actors[0]));
}

/* ---- the queue ---- */

/* Goal: submitted operations run in order, and are reported in order when they have run. An operation that a report
 * submits comes behind the others, even if it is the same operation again. */
static void operations_run_and_are_told_in_order(void **state)
{
    (void)state;
    world_begin();
    assert_false(leat_os_disk_deliver(&actors[0]));
    assert_false(leat_os_disk_waiting(&actors[0]));
    submit(1, LEAT_DISK_WRITE);
    submit(2, LEAT_DISK_WRITE);
    ios[1].owner = io_of(3, LEAT_DISK_WRITE);
    assert_true(leat_os_disk_waiting(&actors[0]));
    TRACE_IS("");
    leat_os_disk_run(&actors[0]);
    TRACE_IS("run 1\nrun 2\n");
    assert_true(leat_os_disk_waiting(&actors[0]));
    leat_os_disk_run(&actors[0]); /* nothing is left to run */
    submit(4, LEAT_DISK_WRITE);
    assert_true(
        leat_os_disk_deliver(&actors[0])); /* these first: what is left waits for the next turn */
    TRACE_IS("done 1\ndone 2\n");
    assert_true(leat_os_disk_deliver(&actors[0]));
    TRACE_IS("run 4\nrun 3\ndone 4\ndone 3\n");
    assert_false(leat_os_disk_deliver(&actors[0]));
    submit(5, LEAT_DISK_WRITE); /* one that comes again each time */
    ios[5].owner = &ios[5];
    for (unsigned i = 0; i < 3; i++) {
        leat_os_disk_run(&actors[0]);
        assert_true(leat_os_disk_deliver(&actors[0]));
        ios[5].done_bytes = 9;
        TRACE_IS("run 5\ndone 5\n");
        ios[5].done_bytes = 0;
    }
    ios[5].owner = NULL;
    deliver_all();
    TRACE_IS("run 5\ndone 5\n");
}

/* Goal: what a sync makes durable is told before what comes behind it is run, of any kind. */
static void operations_behind_a_sync_wait_until_it_is_told(void **state)
{
    (void)state;
    world_begin();
    submit(1, LEAT_DISK_WRITE);
    submit(2, LEAT_DISK_SYNC);
    submit(3, LEAT_DISK_SYNC);
    submit(4, LEAT_DISK_WRITE);
    leat_os_disk_run(&actors[0]);
    TRACE_IS("run 1\nrun 2\n");
    assert_true(leat_os_disk_deliver(&actors[0]));
    TRACE_IS("done 1\ndone 2\n");
    assert_true(leat_os_disk_waiting(&actors[0]));
    deliver_all();
    TRACE_IS("run 3\ndone 3\nrun 4\ndone 4\n");
}

/* Goal: after 256 operations the actor hears its mail; a group is run whole. */
static void operations_of_a_turn_are_256(void **state)
{
    (void)state;
    char want[8000] = "", *at = want;
    world_begin();
    for (unsigned i = 0; i < 300; i++)
        submit(i, LEAT_DISK_WRITE);
    for (unsigned i = 0; i < 256; i++)
        at += snprintf(at, 16, "run %u\n", i);
    leat_os_disk_run(&actors[0]);
    TRACE_IS(want);
    assert_true(leat_os_disk_waiting(&actors[0]));
    assert_true(leat_os_disk_deliver(&actors[0]));
    trace_begin();
    leat_os_disk_run(&actors[0]);
    assert_ptr_equal(actors[0].disk.done, &ios[256]);
    assert_null(actors[0].disk.first);
    deliver_all();
    for (unsigned i = 0; i < 254; i++)
        submit(i, LEAT_DISK_WRITE);
    submit_together(254, 259);
    submit(260, LEAT_DISK_WRITE); /* the last of the group */
    submit(261, LEAT_DISK_WRITE);
    leat_os_disk_run(&actors[0]);
    assert_ptr_equal(actors[0].disk.first, &ios[261]);
    trace_begin();
    deliver_all();
    for (unsigned i = 0; i < 32; i++) /* each group counts as what it has */
        submit_together(i * 16, i * 16 + 15);
    trace_begin();
    leat_os_disk_run(&actors[0]);
    assert_ptr_equal(actors[0].disk.first, &ios[256]);
    deliver_all();
}

/* Goal: writes that may be under way together are, as many as there is room for; a write that may not, and a sync, end
 * a group. */
static void writes_go_together_as_far_as_they_may(void **state)
{
    (void)state;
    world_begin();
    submit_together(1, 2);
    submit(3, LEAT_DISK_WRITE); /* the last one of a group says nothing about the next */
    submit(4, LEAT_DISK_WRITE);
    submit_together(5, 6);
    submit(7, LEAT_DISK_SYNC);
    leat_os_disk_run(&actors[0]);
    TRACE_IS("together 1 to 3\nrun 4\ntogether 5 to 6\nrun 7\n");
    deliver_all();
    TRACE_IS("done 1\ndone 2\ndone 3\ndone 4\ndone 5\ndone 6\ndone 7\n");
    submit_together(1, 1);
    submit(2, LEAT_DISK_SYNC);
    leat_os_disk_run(&actors[0]);
    TRACE_IS("run 1\nrun 2\n");
    deliver_all();
    TRACE_IS("done 1\ndone 2\n");
    submit_together(1, 1);
    leat_os_disk_run(&actors[0]);
    TRACE_IS("run 1\n");
    deliver_all();
    TRACE_IS("done 1\n");
    assert_int_equal(OS_TOGETHER_MAX, 16);
    submit_together(1, 18);
    leat_os_disk_run(&actors[0]);
    TRACE_IS("together 1 to 16\ntogether 17 to 18\n");
    deliver_all();
    trace_begin();
    submit_together(1, 17);
    leat_os_disk_run(&actors[0]);
    TRACE_IS("together 1 to 16\nrun 17\n");
    deliver_all();
}

/* ---- beside ---- */

static void submit_beside(unsigned actor, unsigned number, enum leat_disk_kind kind,
                          struct leat_disk_io *then)
{
    struct leat_disk_io *io = io_of(number, kind);
    io->beside = true;
    io->then = then;
    leat_os_disk_submit(&actors[actor], io);
}

static struct leat_disk_io *then_of(unsigned number, struct leat_disk_io *then)
{
    struct leat_disk_io *io = io_of(number, LEAT_DISK_SYNC);
    io->beside = true;
    io->then = then;
    return io;
}

static void all_stop(void)
{
    world.crews_stop = true;
}

static unsigned rounds;
static void one_more_comes(void)
{
    if (rounds++ == 0)
        submit(20, LEAT_DISK_READ);
    else
        world.crews_stop = true;
}

static void crew_runs(enum os_crew_kind kind)
{
    assert_int_equal(leat_os_crew_start(&world, kind, 1), LEAT_OK);
    assert_ptr_equal(threads.arg, &world.crews[kind]);
    assert_null(threads.main(threads.arg));
    assert_int_equal(locked, 0);
    world.crews_stop = false;
}

/* Goal: reads and zeros go to the readers, what is beside to the writers, whoever submits it; the actor counts what it
 * has out, chains with all of theirs. */
static void operations_beside_go_to_their_crew(void **state)
{
    (void)state;
    world_begin();
    submit(1, LEAT_DISK_READ);
    TRACE_IS("wake readers\n");
    submit(2, LEAT_DISK_ZERO);
    TRACE_IS("wake readers\n");
    submit_beside(0, 3, LEAT_DISK_WRITE, then_of(4, then_of(5, NULL)));
    TRACE_IS("wake writers\n");
    assert_int_equal(ios[4].rc | ios[5].rc, LEAT_OK);
    assert_int_equal(ios[4].done_bytes + ios[5].done_bytes, 0);
    submit_beside(0, 6, LEAT_DISK_SYNC, NULL);
    actors[1].kind = LEAT_OS_ACTOR_CORE; /* which has no queue of its own */
    submit_beside(1, 7, LEAT_DISK_READ, NULL);
    TRACE_IS("wake writers\nwake readers\n");
    assert_int_equal(actors[0].disk.beside_out, 6);
    assert_int_equal(actors[1].disk.beside_out, 1);
    assert_false(leat_os_disk_waiting(&actors[0]));
    waits = all_stop;
    crew_runs(OS_WRITERS);
    TRACE_IS("be leat-writer\nrun 3\nrun 4\nrun 5\ntell 0 of 3\ntell 0 of 4\ntell 0 of 5\nrun "
             "6\ntell 0 of 6\n"
             "wait as writers\n");
    crew_runs(OS_READERS); /* one of each actor, in turn */
    TRACE_IS("be leat-reader\nrun 1\ntell 0 of 1\nrun 7\ntell 1 of 7\nrun 2\ntell 0 of 2\nwait as "
             "readers\n");
}

/* Goal: a waiting thread goes on with the next operation, also behind the last operation of an actor. A thread that is
 * to stop first does the operations that are there, and does not wait. */
static void threads_of_a_crew_wait_and_stop(void **state)
{
    (void)state;
    world_begin();
    rounds = 0;
    waits = one_more_comes;
    submit(1, LEAT_DISK_READ);
    TRACE_IS("wake readers\n");
    crew_runs(OS_READERS);
    TRACE_IS("be leat-reader\nrun 1\ntell 0 of 1\nwait as readers\nwake readers\nrun 20\ntell 0 of "
             "20\nwait as readers\n");
    submit(2, LEAT_DISK_ZERO);
    submit(3, LEAT_DISK_ZERO);
    world.crews_stop = true;
    waits = NULL;
    crew_runs(OS_READERS);
    TRACE_IS(
        "wake readers\nwake readers\nbe leat-reader\nrun 2\ntell 0 of 2\nrun 3\ntell 0 of 3\n");
}

/* Goal: as many threads are started as are asked for, those that were are stopped, after each crew has been woken. */
static void crews_start_and_stop(void **state)
{
    (void)state;
    world_begin();
    for (unsigned kind = 0; kind < OS_CREWS; kind++) {
        assert_ptr_equal(world.crews[kind].world, &world);
        assert_int_equal(world.crews[kind].kind, kind);
    }
    assert_int_equal(leat_os_crew_start(&world, OS_READERS, 2), LEAT_OK);
    assert_int_equal(threads.made, 2);
    assert_int_equal(leat_os_crew_start(&world, OS_WRITERS, 0), LEAT_OK);
    threads.refused_at = 5;
    assert_int_equal(leat_os_crew_start(&world, OS_WRITERS, 4), LEAT_E_NO_MEMORY);
    assert_int_equal(threads.made, 5); /* and no more is tried */
    assert_int_equal(world.crews[OS_WRITERS].count, 2);
    leat_os_crews_stop(&world);
    TRACE_IS("wake all readers\njoin 101\njoin 102\nwake all writers\njoin 103\njoin 104\n");
    leat_os_crews_stop(&world); /* none is joined twice */
    TRACE_IS("wake all readers\nwake all writers\n");
    leat_os_crews_fini(&world);
    TRACE_IS("drop readers\ndrop writers\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_run_and_are_told_in_order),
        cmocka_unit_test(operations_behind_a_sync_wait_until_it_is_told),
        cmocka_unit_test(operations_of_a_turn_are_256),
        cmocka_unit_test(writes_go_together_as_far_as_they_may),
        cmocka_unit_test(operations_beside_go_to_their_crew),
        cmocka_unit_test(threads_of_a_crew_wait_and_stop),
        cmocka_unit_test(crews_start_and_stop),
    };
    return cmocka_run_group_tests_name("os disk queue", tests, NULL, NULL);
}
