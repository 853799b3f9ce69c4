/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of an actor: loop, mailbox, clock, turns. */
#include "os/internal.h"

#include "base/assert.h"
#include "base/mem.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/* After so many rounds of callbacks, or so much time, the loop looks at its sockets and timers again, so that busy
 * actors do not starve connections and timers. */
enum { TURN_ROUNDS_MAX = 16, TURN_NS_MAX = 1000 * 1000 };

/* ---- mail ---- */

static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct os_actor *actor = ctx;
    LEAT_ASSERT_CMP(to, <, LEAT_ACTORS);
    struct os_actor *receiver = actor->world->actors[to];
    LEAT_ASSERT(receiver != NULL);
    LEAT_ASSERT(mail->deliver != NULL);
    if (receiver != actor) {
        leat_os_mail_push(receiver, mail);
        return;
    }
    mail->next = NULL;
    *actor->own_last = mail;
    actor->own_last = &mail->next;
}

/* The stack holds the newest first: turned round, each sender's order is kept. */
static struct leat_mail *mail_take(struct os_actor *actor)
{
    if (!atomic_load_explicit(&actor->inbox, memory_order_relaxed)) return NULL;
    struct leat_mail *mail = atomic_exchange(&actor->inbox, NULL), *first = NULL;
    while (mail) {
        struct leat_mail *next = mail->next;
        mail->next = first;
        first = mail;
        mail = next;
    }
    return first;
}

static bool mail_list_deliver(struct os_actor *actor, struct leat_mail *mail)
{
    bool any = mail != NULL;
    while (mail) {
        struct leat_mail *next = mail->next; /* delivered, it belongs to someone else */
        mail->deliver(actor->actor, mail);
        mail = next;
    }
    return any;
}

static bool mail_deliver(struct os_actor *actor)
{
    struct leat_mail *own = actor->own;
    actor->own = NULL;
    actor->own_last = &actor->own;
    bool any = mail_list_deliver(actor, own);
    return mail_list_deliver(actor, mail_take(actor)) || any;
}

static bool beside_deliver(struct os_actor *actor)
{
    if (!atomic_load_explicit(&actor->beside_done, memory_order_relaxed)) return false;
    struct leat_disk_io *io = atomic_exchange(&actor->beside_done, NULL);
    bool any = io != NULL;
    while (io) {
        struct leat_disk_io *next = io->next;
        actor->disk.beside_out--;
        io->on_done(io);
        io = next;
    }
    return any;
}

/* ---- the turn ---- */

static bool mailbox_empty(const struct os_actor *actor)
{
    return !atomic_load(&actor->inbox) && !atomic_load(&actor->beside_done);
}

static bool turn_waiting(const struct os_actor *actor)
{
    return actor->called || actor->own != NULL || leat_os_net_waiting(actor) ||
           leat_os_disk_waiting(actor);
}

static bool anything_waits(const struct os_actor *actor)
{
    return turn_waiting(actor) || !mailbox_empty(actor);
}

/* Deliver what waits, then once on_turn_end, then the sockets, then the disk; again while that had
 * consequences. The clock is read only where something waits: most turns have one round, and some have none. */
static void turn_run(struct os_actor *actor)
{
    /* 0: if mail comes in this moment the turn has one round. */
    const uint64_t began_ns = anything_waits(actor) ? uv_hrtime() : 0;
    for (int round = 0; round < TURN_ROUNDS_MAX; round++) {
        if (mail_deliver(actor)) actor->called = true;
        if (beside_deliver(actor)) actor->called = true;
        if (leat_os_disk_deliver(actor)) actor->called = true;
        if (leat_os_net_deliver(actor)) actor->called = true;
        if (!actor->called) break;
        actor->called = false;
        if (actor->ops.on_turn_end) actor->ops.on_turn_end(actor->actor);
#ifdef LEAT_SLOW_CHECKS
        if (actor->ops.check) actor->ops.check(actor->actor);
#endif
        leat_os_net_flush(actor);
        leat_os_disk_run(actor);
        /* What waits goes on when sockets have been looked at, which may have what comes first. */
        if (anything_waits(actor) && uv_hrtime() - began_ns > TURN_NS_MAX) break;
    }
}

static void stop_step(struct os_actor *actor)
{
    if (!atomic_load(&actor->stop)) return;
    if (!actor->stopping) {
        actor->stopping = true;
        leat_os_net_stop(actor);
        turn_run(actor);
    }
    /* Mail may still wait, but an actor that keeps mailing itself must not live for ever. */
    if (leat_os_net_stopped(actor) && actor->disk.beside_out == 0 && !leat_os_disk_waiting(actor))
        uv_stop(&actor->loop);
}

static void idle_nothing(uv_idle_t *idle)
{
    (void)idle; /* its being active is what keeps the loop from blocking */
}

/* libuv counts milliseconds of the same clock; rounded up, so that on_wake never comes early. */
static void wake_timer_fire(uv_timer_t *timer);
static void wake_timer_set(struct os_actor *actor)
{
    if (actor->wake_at_us == actor->timer_at_us) return;
    actor->timer_at_us = actor->wake_at_us;
    if (actor->wake_at_us == UINT64_MAX) {
        (void)uv_timer_stop(&actor->wake_timer);
        return;
    }
    uint64_t due_ms = actor->wake_at_us / 1000 + (actor->wake_at_us % 1000 != 0);
    uint64_t now_ms = uv_now(&actor->loop);
    (void)uv_timer_start(&actor->wake_timer, wake_timer_fire, due_ms > now_ms ? due_ms - now_ms : 0,
                         0);
}

static uint64_t clock_now_us(void *ctx)
{
    (void)ctx;
    return uv_hrtime() / 1000;
}

static void wake_timer_fire(uv_timer_t *timer)
{
    struct os_actor *actor = timer->data;
    actor->timer_at_us = UINT64_MAX;
    if (actor->wake_at_us > clock_now_us(actor)) return; /* set again before blocking */
    actor->wake_at_us = UINT64_MAX;
    actor->called = true;
    if (actor->ops.on_wake) actor->ops.on_wake(actor->actor);
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct os_actor *actor = prepare->data;
    turn_run(actor);
    stop_step(actor);
    bool busy = turn_waiting(actor);
    if (!busy) {
        atomic_store(&actor->state, OS_SLEEPING);
        busy = !mailbox_empty(actor);
    }
    if (busy) {
        atomic_store(&actor->state, OS_AWAKE);
        (void)uv_idle_start(&actor->idle, idle_nothing);
    } else {
        (void)uv_idle_stop(&actor->idle);
    }
    wake_timer_set(actor);
}

static void on_check(uv_check_t *check)
{
    struct os_actor *actor = check->data;
    atomic_store(&actor->state, OS_AWAKE);
    turn_run(actor);
}

static void on_async(uv_async_t *async)
{
    (void)async; /* the check phase of this same iteration looks into the mailbox */
}

/* ---- clock and random ---- */

static int64_t clock_wall_ms(void *ctx)
{
    (void)ctx;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void clock_wake_at(void *ctx, uint64_t at_us)
{
    ((struct os_actor *)ctx)->wake_at_us = at_us;
}

static void random_secret(void *ctx, void *out, size_t bytes)
{
    (void)ctx;
    for (size_t at = 0; at < bytes;) {
        ssize_t n = getrandom((uint8_t *)out + at, bytes - at, 0);
        LEAT_ASSERT(n > 0 || errno == EINTR); /* the kernel has it since Linux 3.17 */
        if (n > 0) at += (size_t)n;
    }
}

/* From the kernel too, several words at a time: ids of clusters, voters and group members are made of these words.
 * Clients see many ids, and a generator whose state follows from its output would reveal all later ids. */
static uint64_t random_next(void *ctx)
{
    struct os_actor *actor = ctx;
    if (actor->random_left == 0) {
        random_secret(actor, actor->random_words, sizeof actor->random_words);
        actor->random_left = OS_RANDOM_WORDS;
    }
    uint64_t word = actor->random_words[--actor->random_left];
    actor->random_words[actor->random_left] = 0;
    return word;
}

/* ---- life ---- */

/* 0, or why not: an error of libuv. */
static int loop_init(struct os_actor *actor)
{
    int failed = uv_loop_init(&actor->loop);
    if (failed) return failed;
    /* Only the first can fail (it takes file descriptors). */
    failed = uv_async_init(&actor->loop, &actor->async, on_async);
    if (failed) {
        (void)uv_loop_close(&actor->loop);
        return failed;
    }
    (void)uv_prepare_init(&actor->loop, &actor->prepare);
    (void)uv_check_init(&actor->loop, &actor->check);
    (void)uv_idle_init(&actor->loop, &actor->idle);
    (void)uv_timer_init(&actor->loop, &actor->wake_timer);
    actor->async.data = actor->prepare.data = actor->check.data = actor;
    actor->idle.data = actor->wake_timer.data = actor;
    (void)uv_prepare_start(&actor->prepare, on_prepare);
    (void)uv_check_start(&actor->check, on_check);
    return 0;
}

leat_err leat_os_actor_create(struct leat_os_world *world, unsigned number,
                              enum leat_os_actor_kind kind, const struct leat_env **out_env,
                              struct leat_error *error)
{
    LEAT_ASSERT_CMP(number, <, LEAT_ACTORS);
    LEAT_ASSERT(world->actors[number] == NULL);
    struct os_actor *actor = leat_mem_calloc(LEAT_MEM_NET, 1, sizeof *actor);
    int failed = actor ? loop_init(actor) : UV_ENOMEM;
    if (failed) {
        leat_mem_free(actor);
        bool files = failed == UV_EMFILE || failed == UV_ENFILE;
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no event loop for a thread: %s%s",
                              uv_strerror(failed),
                              files ? "; 'ulimit -Hn' says how many a process may have" : "");
    }
    actor->world = world;
    actor->number = number;
    actor->kind = kind;
    actor->own_last = &actor->own;
    actor->wake_at_us = actor->timer_at_us = UINT64_MAX;
    atomic_init(&actor->state, OS_AWAKE); /* mail before the start needs no wake-up */
    actor->clock = (struct leat_clock){actor, clock_now_us, clock_wall_ms, clock_wake_at};
    actor->random = (struct leat_random){actor, random_next, random_secret};
    actor->post = (struct leat_post){actor, post_send, number};
    leat_os_disk_queue_init(actor);
    (void)leat_os_net_init(actor);
    actor->net.buffers.ready_bytes_max = world->ready_bytes_max;
    actor->env = (struct leat_env){
        .clock = &actor->clock,
        .random = &actor->random,
        .post = &actor->post,
        .net = &actor->net_port,
    };
    if (world->data_fd >= 0) {
        leat_os_disk_ports_init(actor);
        actor->env.disk = &actor->disk_port;
    }
    world->actors[number] = actor;
    *out_env = &actor->env;
    return LEAT_OK;
}

static void *actor_main(void *arg)
{
    struct os_actor *actor = arg;
    (void)pthread_setname_np(pthread_self(), actor->name); /* for people only */
    if (actor->cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((unsigned)actor->cpu, &set);
        (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set); /* a wish, not a need */
    }
    leat_actor_runs(actor->actor);
    uv_update_time(&actor->loop);
    actor->called = true; /* what on_start began is flushed in the first prepare phase */
    if (actor->on_start) actor->on_start(actor->actor);
    (void)uv_run(&actor->loop, UV_RUN_DEFAULT); /* until uv_stop; the handles live on */
    return NULL;
}

leat_err leat_os_actor_start(struct leat_os_world *world, unsigned number, void *actor_pointer,
                             const struct leat_actor_ops *ops, void (*on_start)(void *actor),
                             const char *thread_name, int cpu)
{
    LEAT_ASSERT_CMP(number, <, LEAT_ACTORS);
    struct os_actor *actor = world->actors[number];
    LEAT_ASSERT(actor != NULL && !actor->started);
    actor->actor = actor_pointer;
    if (ops) actor->ops = *ops;
    actor->on_start = on_start;
    actor->cpu = cpu;
    strncpy(actor->name, thread_name ? thread_name : "leat", sizeof actor->name - 1);
    if (pthread_create(&actor->thread, NULL, actor_main, actor)) return LEAT_E_NO_MEMORY;
    actor->started = true;
    return LEAT_OK;
}

void leat_os_actor_join(struct leat_os_world *world, unsigned number)
{
    LEAT_ASSERT_CMP(number, <, LEAT_ACTORS);
    struct os_actor *actor = world->actors[number];
    if (!actor || !actor->started || actor->joined) return;
    atomic_store(&actor->stop, true);
    /* The loop's handles stay open until the world goes, so late messages of other threads are safe: a message to an
     * ended thread only fills its inbox. */
    uv_async_send(&actor->async);
    (void)pthread_join(actor->thread, NULL);
    actor->joined = true;
}

/* Connections on their way here have no other owner. */
static void mail_drop(struct os_actor *actor)
{
    for (struct leat_mail *mail = mail_take(actor), *next; mail; mail = next) {
        next = mail->next;
        leat_os_net_drop_mail(mail);
    }
}

void leat_os_world_settle(struct leat_os_world *world)
{
    if (world->rmem) leat_os_rmem_stop(world->rmem);
    for (unsigned i = 0; i < LEAT_ACTORS; i++)
        if (world->actors[i] && world->actors[i]->arena)
            leat_os_arena_stop(world->actors[i]->arena);
    for (unsigned i = 0; i < LEAT_ACTORS; i++)
        if (world->actors[i] && (!world->actors[i]->started || world->actors[i]->joined))
            mail_drop(world->actors[i]);
}

void leat_os_actor_fini(struct os_actor *actor)
{
    if (actor->arena) leat_os_arena_stop(actor->arena);
    mail_drop(actor); /* the arena's thread may have mailed last, and its mail lies in the arena */
    if (actor->world->rmem) leat_os_rmem_actor_fini(actor->world->rmem, actor);
    if (actor->arena) leat_os_arena_close(actor->arena);
    leat_os_disk_together_fini(&actor->disk);
    leat_os_net_fini(actor);
    uv_close((uv_handle_t *)&actor->async, NULL);
    uv_close((uv_handle_t *)&actor->prepare, NULL);
    uv_close((uv_handle_t *)&actor->check, NULL);
    uv_close((uv_handle_t *)&actor->idle, NULL);
    uv_close((uv_handle_t *)&actor->wake_timer, NULL);
    (void)uv_run(&actor->loop, UV_RUN_DEFAULT); /* close callbacks, and name look-ups under way */
    LEAT_ASSERT(uv_loop_close(&actor->loop) == 0);
    leat_os_buffers_fini(&actor->net.buffers);
    leat_mem_free(actor->net.read_buffer);
    leat_mem_free(actor);
}
