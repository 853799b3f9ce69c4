/* Background threads shared by a process's clients, and the public functions that both libraries
 * have. */
#include "shared.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

const char *leat_strerror(leat_code code)
{
    return leat_err_text((leat_err)code);
}

const char *leat_code_name(leat_code code)
{
    return leat_err_name((leat_err)code);
}

enum leat_code_class leat_code_classify(leat_code code)
{
    switch (leat_err_class((leat_err)code)) {
    case LEAT_CLASS_NONE:
        return LEAT_DO_NOTHING;
    case LEAT_CLASS_RETRY:
        return LEAT_DO_RETRY;
    case LEAT_CLASS_REROUTE:
        return LEAT_DO_REROUTE;
    case LEAT_CLASS_REJECT:
        return LEAT_DO_REJECT;
    case LEAT_CLASS_FATAL:
        break;
    }
    return LEAT_DO_STOP;
}

const char *leat_version(void)
{
    return LEAT_VERSION;
}

leat_code leat_shared_message(leat_message *message, const struct leat_error *error)
{
    if (message) {
        message->code = (leat_code)error->code;
        snprintf(message->text, sizeof message->text, "%s", error->text);
    }
    return (leat_code)error->code;
}

/* ---- background threads ---- */

struct leat_shared_io {
    struct leat_os_world *world;
    const struct leat_env *env;
    uint32_t places;  /* guarded by: ios_lock */
    pthread_t thread; /* written before anything that reads it is started */
    /* The thread's own: */
    struct leat_list members;
    uint64_t wake_at_us;
};

static pthread_mutex_t ios_lock = PTHREAD_MUTEX_INITIALIZER;
static struct leat_shared_io *ios[LEAT_SHARED_THREADS_MAX]; /* guarded by: ios_lock */

static void io_on_start(void *actor)
{
    ((struct leat_shared_io *)actor)->thread = pthread_self();
}

static void io_on_wake(void *actor)
{
    struct leat_shared_io *io = actor;
    uint64_t now = io->env->clock->now_us(io->env->clock->ctx);
    io->wake_at_us = UINT64_MAX;
    LEAT_LIST_EACH(&io->members, link)
    {
        struct leat_shared *shared = LEAT_CONTAINER(link, struct leat_shared, link);
        if (shared->wake_at_us > now) continue;
        shared->wake_at_us = UINT64_MAX;
        shared->touched = true;
        leat_timers_run(&shared->timers);
    }
}

static void io_on_turn_end(void *actor)
{
    struct leat_shared_io *io = actor;
    uint64_t wake_at_us = UINT64_MAX;
    LEAT_LIST_EACH(&io->members, link)
    {
        struct leat_shared *shared = LEAT_CONTAINER(link, struct leat_shared, link);
        if (shared->client && leat_client_take_called(shared->client)) shared->touched = true;
        if (shared->touched) {
            shared->touched = false;
            shared->on_turn_end(shared->owner);
        }
        if (shared->wake_at_us < wake_at_us) wake_at_us = shared->wake_at_us;
    }
    if (wake_at_us == io->wake_at_us) return;
    io->wake_at_us = wake_at_us;
    io->env->clock->wake_at(io->env->clock->ctx, wake_at_us);
}
static const struct leat_actor_ops io_ops = {io_on_wake, io_on_turn_end};

static void io_destroy(struct leat_shared_io *io)
{
    if (io->world) {
        leat_os_actor_join(io->world, LEAT_SHARED_ACTOR);
        leat_os_world_destroy(&io->world);
    }
    leat_mem_free(io);
}

static leat_err io_create(struct leat_shared_io **out_io, struct leat_error *error)
{
    struct leat_shared_io *io = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *io);
    if (!io) return leat_error_set(error, LEAT_E_NO_MEMORY, "out of memory");
    leat_list_init(&io->members);
    io->wake_at_us = UINT64_MAX;
    struct leat_os_world_options world = {.data_dir = NULL};
    leat_err rc = leat_os_world_create(&world, &io->world, error);
    if (rc == LEAT_OK)
        rc = leat_os_actor_create(io->world, LEAT_SHARED_ACTOR, LEAT_OS_ACTOR_CLIENT, &io->env,
                                  error);
    if (rc == LEAT_OK) {
        rc = leat_os_actor_start(io->world, LEAT_SHARED_ACTOR, io, &io_ops, io_on_start, "leat-io",
                                 -1);
        if (rc) (void)leat_error_set(error, rc, "no thread could be started");
    }
    if (rc) {
        io_destroy(io);
        return rc;
    }
    *out_io = io;
    return LEAT_OK;
}

/* A new thread while there are fewer than the machine is good for, else the emptiest. */
static leat_err io_take(struct leat_shared_io **out_io, struct leat_error *error)
{
    unsigned threads = leat_os_cores() / LEAT_SHARED_CORES_PER_THREAD;
    if (threads < 1) threads = 1;
    if (threads > LEAT_SHARED_THREADS_MAX) threads = LEAT_SHARED_THREADS_MAX;
    leat_err rc = LEAT_OK;
    (void)pthread_mutex_lock(&ios_lock);
    struct leat_shared_io **best = &ios[0];
    for (unsigned i = 0; i < threads && *best; i++)
        if (!ios[i] || ios[i]->places < (*best)->places) best = &ios[i];
    if (!*best) rc = io_create(best, error);
    if (rc == LEAT_OK) {
        (*best)->places++;
        *out_io = *best;
    }
    (void)pthread_mutex_unlock(&ios_lock);
    return rc;
}

static void io_give(struct leat_shared_io *io)
{
    (void)pthread_mutex_lock(&ios_lock);
    if (--io->places == 0) {
        for (unsigned i = 0; i < LEAT_SHARED_THREADS_MAX; i++)
            if (ios[i] == io) ios[i] = NULL;
        /* Joined under the lock: nothing runs on that thread any more that could want it. */
        io_destroy(io);
    }
    (void)pthread_mutex_unlock(&ios_lock);
}

/* ---- places ---- */

static void place_wake_at(void *ctx, uint64_t at_us)
{
    ((struct leat_shared *)ctx)->wake_at_us = at_us; /* the turn's end looks at all places */
}

static uint64_t place_random(void *ctx)
{
    return leat_xoshiro_next(&((struct leat_shared *)ctx)->random_state);
}

static void place_ports(struct leat_shared *shared)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = leat_shared_now_us(NULL) + (uintptr_t)shared;
    leat_xoshiro_seed(&shared->random_state, seed);
    shared->wake_at_us = UINT64_MAX;
    shared->clock =
        (struct leat_clock){shared, leat_shared_now_us, leat_shared_wall_ms, place_wake_at};
    shared->random = (struct leat_random){shared, place_random};
    shared->own_env = *shared->io->env;
    shared->own_env.clock = &shared->clock;
    shared->own_env.random = &shared->random;
    shared->env = &shared->own_env;
}

leat_err leat_shared_open(struct leat_shared *shared, const char *brokers, const char *name,
                          uint64_t request_timeout_us, bool fail_fast, struct leat_error *error)
{
    memset(shared, 0, sizeof *shared);
    if (!brokers) brokers = getenv("LEAT_BROKERS");
    if (!brokers || !*brokers) brokers = "127.0.0.1:7700";
    leat_err rc = io_take(&shared->io, error);
    if (rc) return rc;
    place_ports(shared);
    rc = leat_timers_init(&shared->timers, shared->env->clock, LEAT_SHARED_TIMERS);
    if (rc) {
        (void)leat_error_set(error, rc, "out of memory");
        goto out;
    }
    struct leat_client_options options = {
        .name = name ? name : program_invocation_short_name,
        .addresses = brokers,
        .request_timeout_us = request_timeout_us,
        .retry_us_min = LEAT_SHARED_RETRY_US_MIN,
        .retry_us_max = LEAT_SHARED_RETRY_US_MAX,
        .streams_max = LEAT_SHARED_STREAMS_MAX,
        .fail_fast = fail_fast,
    };
    rc = leat_client_create(shared->env, &shared->timers, &options, &shared->client, error);
out:
    if (rc) leat_shared_close(shared);
    return rc;
}

static void place_on_start(void *actor, struct leat_mail *mail)
{
    struct leat_shared_io *io = actor;
    struct leat_shared *shared = LEAT_CONTAINER(mail, struct leat_shared, start_mail);
    leat_list_push_back(&io->members, &shared->link);
    shared->touched = true;
}

static void place_on_stop(void *actor, struct leat_mail *mail)
{
    struct leat_shared *shared = LEAT_CONTAINER(mail, struct leat_shared, stop_mail);
    (void)actor;
    leat_list_remove(&shared->link);
    leat_event_tell(&shared->stopped);
}

void leat_shared_start(struct leat_shared *shared, void *owner, void (*on_turn_end)(void *owner))
{
    LEAT_ASSERT(!shared->started);
    shared->owner = owner;
    shared->on_turn_end = on_turn_end;
    shared->started = true;
    shared->start_mail.deliver = place_on_start;
    shared->stop_mail.deliver = place_on_stop;
    leat_shared_post(shared, &shared->start_mail);
}

void leat_shared_post(struct leat_shared *shared, struct leat_mail *mail)
{
    leat_os_world_post(shared->io->world, LEAT_SHARED_ACTOR, mail);
}

bool leat_shared_is_own_thread(const struct leat_shared *shared)
{
    return pthread_equal(shared->io->thread, pthread_self());
}

void leat_shared_close(struct leat_shared *shared)
{
    if (!shared->io) return;
    if (shared->started) {
        uint32_t seen = leat_event_look(&shared->stopped);
        leat_shared_post(shared, &shared->stop_mail);
        (void)leat_event_wait(&shared->stopped, seen, UINT64_MAX);
    }
    if (shared->client) leat_client_destroy(&shared->client);
    leat_timers_fini(&shared->timers);
    io_give(shared->io);
    shared->io = NULL;
}

/* ---- threads ---- */

void leat_spin_wait(struct leat_spin *spin)
{
    enum { SPINS = 64 };
    for (;;) {
        for (int i = 0; i < SPINS; i++) {
            if (atomic_load_explicit(&spin->taken, memory_order_relaxed) == 0 &&
                atomic_exchange_explicit(&spin->taken, 1, memory_order_acquire) == 0)
                return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        (void)sched_yield();
    }
}

uint64_t leat_shared_now_us(void *unused)
{
    (void)unused;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

int64_t leat_shared_wall_ms(void *unused)
{
    (void)unused;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

uint64_t leat_shared_deadline(int64_t timeout_ms)
{
    if (timeout_ms < 0) return UINT64_MAX;
    return leat_shared_now_us(NULL) + (uint64_t)timeout_ms * 1000u;
}

bool leat_event_wait(struct leat_event *event, uint32_t seen, uint64_t deadline_us)
{
    bool moved = true;
    atomic_fetch_add(&event->waiters, 1);
    while (atomic_load(&event->count) == seen) {
        struct timespec left, *limit = NULL;
        if (deadline_us != UINT64_MAX) {
            uint64_t now = leat_shared_now_us(NULL);
            if (now >= deadline_us) {
                moved = false;
                break;
            }
            left.tv_sec = (time_t)((deadline_us - now) / 1000000u);
            left.tv_nsec = (long)((deadline_us - now) % 1000000u) * 1000;
            limit = &left;
        }
        (void)syscall(SYS_futex, &event->count, FUTEX_WAIT_PRIVATE, seen, limit, NULL, 0);
    }
    atomic_fetch_sub(&event->waiters, 1);
    return moved;
}

void leat_event_tell(struct leat_event *event)
{
    atomic_fetch_add(&event->count, 1);
    if (atomic_load(&event->waiters) > 0)
        (void)syscall(SYS_futex, &event->count, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
