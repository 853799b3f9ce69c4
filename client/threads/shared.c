/* SPDX-License-Identifier: Apache-2.0 */
/* Background threads shared by a process's clients, and the public functions that both libraries
 * have. */
#include "client/shared.h"

#include "base/assert.h"
#include "base/mem.h"
#include "os/os.h"

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
    uint32_t places;          /* guarded by: ios_lock */
    struct leat_list commons; /* guarded by: ios_lock */
    /* The thread's own: */
    struct leat_list members, running; /* running: commons with a member */
    uint64_t wake_at_us;
    uint64_t now_us; /* of this turn; 0: not asked for yet */
    struct leat_list tells;
    struct leat_mail tell_mail;
    bool tell_out; /* it is under way */
};

struct leat_shared_common {
    struct leat_list link, run_link; /* in the io's commons, in its running */
    uint32_t users;                  /* guarded by: ios_lock */
    struct leat_shared_ports ports;
    struct leat_client *client;
    char *brokers, *name;
    uint64_t request_timeout_us;
    bool fail_fast;
};

static pthread_mutex_t ios_lock = PTHREAD_MUTEX_INITIALIZER;
static struct leat_shared_io *ios[LEAT_SHARED_THREADS_MAX]; /* guarded by: ios_lock */
static uint32_t ios_placed[LEAT_SHARED_THREADS_MAX];        /* guarded by: ios_lock */
/* The base of the numbers of places; UINT64_MAX: no producer has an id yet. Relaxed: no other memory depends on it. */
static _Atomic uint64_t spread_from = UINT64_MAX;

/* The background thread that runs here: a thread asks only about itself, so no thread waits for another to start. */
static _Thread_local const struct leat_shared_io *own_io;

static void io_on_start(void *actor)
{
    own_io = actor;
}

static bool ports_wake(struct leat_shared_ports *ports, uint64_t now)
{
    if (ports->wake_at_us > now) return false;
    ports->wake_at_us = UINT64_MAX;
    leat_timers_run(&ports->timers);
    return true;
}

static void io_on_wake(void *actor)
{
    struct leat_shared_io *io = actor;
    uint64_t now = io->env->clock->now_us(io->env->clock->ctx);
    io->wake_at_us = UINT64_MAX;
    LEAT_LIST_EACH(&io->running, link)
    (void)ports_wake(&LEAT_CONTAINER(link, struct leat_shared_common, run_link)->ports, now);
    LEAT_LIST_EACH(&io->members, link)
    {
        struct leat_shared *shared = LEAT_CONTAINER(link, struct leat_shared, link);
        if (ports_wake(&shared->ports, now)) shared->touched = true;
    }
}

/* Members first: then the common clients see the members' requests in this turn. Returns whether the clients touched
 * a member. */
static bool io_turn(struct leat_shared_io *io)
{
    LEAT_LIST_EACH(&io->members, link)
    {
        struct leat_shared *shared = LEAT_CONTAINER(link, struct leat_shared, link);
        if (!shared->common && shared->client && leat_client_take_called(shared->client))
            shared->touched = true;
        if (!shared->touched) continue;
        shared->touched = false;
        shared->on_turn_end(shared->owner);
    }
    if (leat_list_empty(&io->running)) return false;
    LEAT_LIST_EACH(&io->running, link)
    leat_client_on_turn_end(LEAT_CONTAINER(link, struct leat_shared_common, run_link)->client);
    LEAT_LIST_EACH(&io->members, link)
    if (LEAT_CONTAINER(link, struct leat_shared, link)->touched) return true;
    return false;
}

static uint64_t io_next_wake(const struct leat_shared_io *io)
{
    uint64_t at = UINT64_MAX;
    LEAT_LIST_EACH(&io->members, link)
    {
        uint64_t own = LEAT_CONTAINER(link, struct leat_shared, link)->ports.wake_at_us;
        if (own < at) at = own;
    }
    LEAT_LIST_EACH(&io->running, link)
    {
        uint64_t own = LEAT_CONTAINER(link, struct leat_shared_common, run_link)->ports.wake_at_us;
        if (own < at) at = own;
    }
    return at;
}

static void io_on_turn_end(void *actor)
{
    enum { ROUNDS_MAX = 4 };
    struct leat_shared_io *io = actor;
    int rounds = 0;
    while (io_turn(io) && ++rounds < ROUNDS_MAX)
        ;
    io->now_us = 0;
    uint64_t wake_at_us = rounds == ROUNDS_MAX ? 0 : io_next_wake(io);
    if (wake_at_us == io->wake_at_us) return;
    io->wake_at_us = wake_at_us;
    io->env->clock->wake_at(io->env->clock->ctx, wake_at_us);
}
static const struct leat_actor_ops io_ops = {.on_wake = io_on_wake, .on_turn_end = io_on_turn_end};

/* Mail to oneself arrives in a later round of callbacks, and between two rounds the sockets are
 * written. */
static void io_on_sent(void *actor, struct leat_mail *mail)
{
    struct leat_shared_io *io = actor;
    struct leat_list *link;
    (void)mail;
    io->tell_out = false;
    while ((link = leat_list_pop_front(&io->tells))) {
        struct leat_shared *shared = LEAT_CONTAINER(link, struct leat_shared, tell_link);
        shared->on_sent(shared->owner);
    }
}

void leat_shared_after_sending(struct leat_shared *shared, void (*on_sent)(void *owner))
{
    struct leat_shared_io *io = shared->io;
    LEAT_ASSERT(shared->ports.turn_now_us != NULL); /* between its start and its stop */
    shared->on_sent = on_sent;
    if (!leat_list_empty(&shared->tell_link)) return;
    leat_list_push_back(&io->tells, &shared->tell_link);
    if (io->tell_out) return;
    io->tell_out = true;
    io->tell_mail.deliver = io_on_sent;
    io->env->post->send(io->env->post->ctx, LEAT_SHARED_ACTOR, &io->tell_mail);
}

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
    leat_list_init(&io->running);
    leat_list_init(&io->commons);
    leat_list_init(&io->tells);
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

/* A new thread while there are fewer than cores, else the emptiest. Places of a thread are a whole
 * number of threads apart. */
static leat_err io_take(struct leat_shared *shared, bool placed, struct leat_error *error)
{
    unsigned threads = leat_os_cores();
    if (threads > LEAT_SHARED_THREADS_MAX) threads = LEAT_SHARED_THREADS_MAX;
    leat_err rc = LEAT_OK;
    (void)pthread_mutex_lock(&ios_lock);
    struct leat_shared_io **best = &ios[0];
    for (unsigned i = 0; i < threads && *best; i++)
        if (!ios[i] || ios[i]->places < (*best)->places) best = &ios[i];
    if (!*best) rc = io_create(best, error);
    if (rc == LEAT_OK) {
        (*best)->places++;
        shared->io = *best;
        if (placed) shared->place = (uint32_t)(best - ios) + threads * ios_placed[best - ios]++;
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
        /* Joined under the lock: no code runs on this thread any more that could need the lock. */
        io_destroy(io);
    }
    (void)pthread_mutex_unlock(&ios_lock);
}

/* ---- ports ---- */

static void ports_wake_at(void *ctx, uint64_t at_us)
{
    ((struct leat_shared_ports *)ctx)->wake_at_us = at_us; /* the turn's end looks at all */
}

static uint64_t ports_random(void *ctx)
{
    return leat_xoshiro_next(&((struct leat_shared_ports *)ctx)->random_state);
}

/* One reading for a whole turn. */
static uint64_t ports_now(void *ctx)
{
    uint64_t *now_us = ((struct leat_shared_ports *)ctx)->turn_now_us;
    if (!now_us) return leat_shared_now_us(NULL);
    if (!*now_us) *now_us = leat_shared_now_us(NULL);
    return *now_us;
}

static leat_err ports_init(struct leat_shared_ports *ports, const struct leat_shared_io *io)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = leat_shared_now_us(NULL) + (uintptr_t)ports;
    leat_xoshiro_seed(&ports->random_state, seed);
    ports->wake_at_us = UINT64_MAX;
    ports->clock = (struct leat_clock){ports, ports_now, leat_shared_wall_ms, ports_wake_at};
    ports->random = (struct leat_random){.ctx = ports, .next = ports_random};
    ports->env = *io->env;
    ports->env.clock = &ports->clock;
    ports->env.random = &ports->random;
    return leat_timers_init(&ports->timers, &ports->clock, LEAT_SHARED_TIMERS);
}

static leat_err client_make(struct leat_shared_ports *ports, const struct leat_shared_io *io,
                            const struct leat_shared_options *options,
                            struct leat_client **out_client, struct leat_error *error)
{
    struct leat_client_options client = {
        .name = options->name,
        .addresses = options->brokers,
        .request_timeout_us = options->request_timeout_us,
        .retry_us_min = LEAT_SHARED_RETRY_US_MIN,
        .retry_us_max = LEAT_SHARED_RETRY_US_MAX,
        .streams_max = LEAT_SHARED_STREAMS_MAX * (options->common ? LEAT_SHARED_USERS_MAX : 1),
        .fail_fast = options->fail_fast,
        .actor = io,
    };
    return leat_client_create(&ports->env, &ports->timers, &client, out_client, error);
}

/* ---- common clients ---- */

static void common_destroy(struct leat_shared_common *common)
{
    if (common->client) leat_client_destroy(&common->client);
    leat_timers_fini(&common->ports.timers);
    leat_mem_free(common->brokers);
    leat_mem_free(common->name);
    leat_mem_free(common);
}

static leat_err common_create(const struct leat_shared_io *io,
                              const struct leat_shared_options *options,
                              struct leat_shared_common **out_common, struct leat_error *error)
{
    struct leat_shared_common *common = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *common);
    if (!common) return leat_error_set(error, LEAT_E_NO_MEMORY, "out of memory");
    leat_list_init(&common->link);
    leat_list_init(&common->run_link);
    common->brokers = leat_mem_strdup(LEAT_MEM_CLIENT, options->brokers);
    common->name = leat_mem_strdup(LEAT_MEM_CLIENT, options->name);
    common->request_timeout_us = options->request_timeout_us;
    common->fail_fast = options->fail_fast;
    leat_err rc = ports_init(&common->ports, io);
    if (rc || !common->brokers || !common->name)
        rc = leat_error_set(error, LEAT_E_NO_MEMORY, "out of memory");
    if (rc == LEAT_OK) rc = client_make(&common->ports, io, options, &common->client, error);
    if (rc)
        common_destroy(common);
    else
        *out_common = common;
    return rc;
}

static bool common_fits(const struct leat_shared_common *common,
                        const struct leat_shared_options *options)
{
    return common->users < LEAT_SHARED_USERS_MAX &&
           common->request_timeout_us == options->request_timeout_us &&
           common->fail_fast == options->fail_fast &&
           strcmp(common->brokers, options->brokers) == 0 &&
           strcmp(common->name, options->name) == 0;
}

static leat_err common_take(struct leat_shared_io *io, const struct leat_shared_options *options,
                            struct leat_shared_common **out_common, struct leat_error *error)
{
    struct leat_shared_common *common = NULL;
    leat_err rc = LEAT_OK;
    (void)pthread_mutex_lock(&ios_lock);
    LEAT_LIST_EACH(&io->commons, link)
    {
        struct leat_shared_common *it = LEAT_CONTAINER(link, struct leat_shared_common, link);
        if (!common_fits(it, options)) continue;
        common = it;
        break;
    }
    if (!common) {
        rc = common_create(io, options, &common, error);
        if (rc == LEAT_OK) leat_list_push_back(&io->commons, &common->link);
    }
    if (rc == LEAT_OK) {
        common->users++;
        *out_common = common;
    }
    (void)pthread_mutex_unlock(&ios_lock);
    return rc;
}

/* Thread: the background thread, where the client's connections live. */
static void common_give(struct leat_shared_common *common)
{
    (void)pthread_mutex_lock(&ios_lock);
    bool last = --common->users == 0;
    if (last) leat_list_remove(&common->link);
    (void)pthread_mutex_unlock(&ios_lock);
    if (!last) return;
    leat_list_remove(&common->run_link);
    common_destroy(common);
}

/* ---- opening, starting, closing ---- */

leat_err leat_shared_open(struct leat_shared *shared, const struct leat_shared_options *given,
                          struct leat_error *error)
{
    memset(shared, 0, sizeof *shared);
    leat_list_init(&shared->link);
    leat_list_init(&shared->tell_link);
    struct leat_shared_options options = *given;
    if (!options.brokers) options.brokers = getenv("LEAT_BROKERS");
    if (!options.brokers || !*options.brokers) options.brokers = "127.0.0.1:7700";
    if (!options.name) options.name = program_invocation_short_name;
    leat_err rc = io_take(shared, options.common, error);
    if (rc) return rc;
    rc = ports_init(&shared->ports, shared->io);
    shared->env = &shared->ports.env;
    shared->timers = &shared->ports.timers;
    if (rc) {
        (void)leat_error_set(error, rc, "out of memory");
    } else if (options.common) {
        rc = common_take(shared->io, &options, &shared->common, error);
        if (rc == LEAT_OK) shared->client = shared->common->client;
    } else {
        rc = client_make(&shared->ports, shared->io, &options, &shared->client, error);
    }
    if (rc) leat_shared_close(shared);
    return rc;
}

static void place_on_start(void *actor, struct leat_mail *mail)
{
    struct leat_shared_io *io = actor;
    struct leat_shared *shared = LEAT_CONTAINER(mail, struct leat_shared, start_mail);
    leat_list_push_back(&io->members, &shared->link);
    shared->touched = true;
    shared->ports.turn_now_us = &io->now_us;
    struct leat_shared_common *common = shared->common;
    if (!common || !leat_list_empty(&common->run_link)) return;
    leat_list_push_back(&io->running, &common->run_link);
    common->ports.turn_now_us = &io->now_us;
}

static void place_on_stop(void *actor, struct leat_mail *mail)
{
    struct leat_shared *shared = LEAT_CONTAINER(mail, struct leat_shared, stop_mail);
    (void)actor;
    leat_list_remove(&shared->link);
    leat_list_remove(&shared->tell_link);
    shared->ports.turn_now_us = NULL;
    if (shared->common) common_give(shared->common);
    shared->common = NULL;
    leat_event_tell(&shared->stopped);
}

void leat_shared_start(struct leat_shared *shared, void *owner, void (*on_turn_end)(void *owner))
{
    LEAT_ASSERT(!shared->started);
    shared->owner = owner;
    shared->on_turn_end = on_turn_end;
    shared->started = true;
    shared->start_mail.deliver = place_on_start;
    leat_shared_post(shared, &shared->start_mail);
}

void leat_shared_post(struct leat_shared *shared, struct leat_mail *mail)
{
    leat_os_world_post(shared->io->world, LEAT_SHARED_ACTOR, mail);
}

bool leat_shared_is_own_thread(const struct leat_shared *shared)
{
    return own_io == shared->io;
}

uint64_t leat_shared_spread(const struct leat_shared *shared, int64_t id)
{
    uint64_t from = UINT64_MAX, own = (uint64_t)id - shared->place;
    if (atomic_compare_exchange_strong_explicit(&spread_from, &from, own, memory_order_relaxed,
                                                memory_order_relaxed))
        from = own;
    return from + shared->place;
}

void leat_shared_close(struct leat_shared *shared)
{
    if (!shared->io) return;
    if (shared->common) shared->client = NULL; /* others' too */
    if (shared->started || shared->common) {
        uint32_t seen = leat_event_look(&shared->stopped);
        shared->stop_mail.deliver = place_on_stop;
        leat_shared_post(shared, &shared->stop_mail);
        (void)leat_event_wait(&shared->stopped, seen, UINT64_MAX);
    }
    if (shared->client) leat_client_destroy(&shared->client);
    leat_timers_fini(&shared->ports.timers);
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
