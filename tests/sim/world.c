/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue, actors and their turns, mail, clocks; death of processes. */
#include "tests/sim/sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum {
    EVENTS_AT_ONCE = 255, /* allocated */
    SPINS_MAX = 8,        /* steps more that a time that has come asks for: none takes so many */
};

/* All turns would take 5 % of a run. */
#ifdef LEAT_SLOW_CHECKS
enum { CHECKED_OF_EVENTS = 1 };
#else
enum { CHECKED_OF_EVENTS = 13 };
#endif

struct sim_event_block {
    struct sim_event_block *next;
    struct sim_event events[EVENTS_AT_ONCE];
};
_Static_assert(sizeof(struct sim_event) == 64, "a cache line");

/* ---- world ---- */

struct sim_world *sim_world_with(const struct sim_ports *ports, uint64_t seed, bool tracing)
{
    struct sim_world *world = calloc(1, sizeof *world);
    LEAT_ASSERT(world != NULL);
    world->ports = ports;
    world->seed = seed;
    world->tracing = tracing;
    world->now_us = 1000000;
    world->wall_base_ms = 1760000000000;
    world->trace_hash = 14695981039346656037ull;
    sim_rng_init(&world->schedule, seed, "schedule");
    sim_rng_init(&world->net, seed, "net");
    sim_rng_init(&world->disk, seed, "disk");
    sim_rng_init(&world->fault, seed, "fault");
    sim_rng_init(&world->work, seed, "work");
    return world;
}

void sim_world_destroy(struct sim_world **world_at)
{
    struct sim_world *world = *world_at;
    if (!world) return;
    world->ports->world_fini(world);
    for (struct sim_process *process = world->processes, *next; process; process = next) {
        next = process->next;
        for (struct sim_actor *actor = process->actors, *after; actor; actor = after) {
            after = actor->next;
            world->ports->actor_fini(actor);
            free(actor);
        }
        free(process);
    }
    for (struct sim_event_block *block = world->event_blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(world);
    *world_at = NULL;
}

void sim_fail(struct sim_world *world, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!world->failure[0]) vsnprintf(world->failure, sizeof world->failure, format, args);
    va_end(args);
    sim_trace(world, "FAILED: %s", world->failure);
}

void sim_trace_line(struct sim_world *world, const char *file, const char *format, ...)
{
    if (!world->tracing) return;
    char text[1024], actor[40] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (world->running)
        snprintf(actor, sizeof actor, "%s/%u", world->running->process->name,
                 world->running->number);
    sim_trace_print(world->now_us, file, actor, text);
}

void sim_hash(struct sim_world *world, uint64_t value)
{
    world->trace_hash = (world->trace_hash ^ value) * 0x9e3779b97f4a7c15ull;
    world->trace_hash ^= world->trace_hash >> 29;
}

static void event_free(struct sim_world *world, struct sim_event *event)
{
    event->next = world->free_events;
    world->free_events = event;
}

static void events_make(struct sim_world *world)
{
    struct sim_event_block *block = aligned_alloc(64, sizeof *block);
    LEAT_ASSERT(block != NULL);
    block->next = world->event_blocks;
    world->event_blocks = block;
    for (unsigned i = EVENTS_AT_ONCE; i-- > 0;)
        event_free(world, &block->events[i]);
}

static struct sim_event *event_new(struct sim_world *world, uint64_t at_us)
{
    if (!world->free_events) events_make(world);
    struct sim_event *event = world->free_events;
    world->free_events = event->next;
    *event = (struct sim_event){.at_us = at_us};
    world->next_order++;
    return event;
}

/* ---- the queue ---- */

/* A radix heap: no event is put that is due before an event that was taken. Bucket 0 has the events that are due at
 * buckets_from_us, bucket N those whose time differs from buckets_from_us in bit N - 1 and in no higher bit. So all
 * events of a bucket are due before the events of each higher bucket. Events of one time always share a bucket, and
 * keep their order: that is the order of scheduling. */
static void queue_put(struct sim_world *world, struct sim_event *event)
{
    uint64_t differs = event->at_us ^ world->buckets_from_us;
    unsigned at = differs ? 64 - (unsigned)__builtin_clzll(differs) : 0;
    struct sim_bucket *bucket = &world->buckets[at];
    event->next = NULL;
    if (bucket->first) {
        bucket->last->next = event;
        if (event->at_us < bucket->first_us) bucket->first_us = event->at_us;
    } else {
        bucket->first = event;
        bucket->first_us = event->at_us;
        if (at) world->buckets_used |= 1ull << (at - 1);
    }
    bucket->last = event;
}

/* The next event in order, if it is due by then. */
static struct sim_event *queue_take(struct sim_world *world, uint64_t until_us)
{
    struct sim_bucket *due = &world->buckets[0];
    if (!due->first) {
        if (!world->buckets_used) return NULL;
        struct sim_bucket *bucket = &world->buckets[1 + __builtin_ctzll(world->buckets_used)];
        if (bucket->first_us > until_us) return NULL;
        struct sim_event *event = bucket->first;
        bucket->first = NULL;
        world->buckets_used &= world->buckets_used - 1;
        world->buckets_from_us = bucket->first_us;
        for (struct sim_event *next; event; event = next) {
            next = event->next;
            queue_put(world, event);
        }
    }
    struct sim_event *event = due->first;
    due->first = event->next;
    return event;
}

struct sim_event *sim_world_at(struct sim_world *world, uint64_t at_us,
                               void (*run)(struct sim_world *, struct sim_event *), void *a)
{
    struct sim_event *event = event_new(world, at_us < world->now_us ? world->now_us : at_us);
    event->run = run;
    event->a = a;
    queue_put(world, event);
    return event;
}

struct sim_event *sim_actor_post(struct sim_actor *actor, uint64_t delay_us,
                                 void (*run)(struct sim_world *, struct sim_event *), void *a)
{
    struct sim_event *event = sim_world_at(actor->world, actor->world->now_us + delay_us, run, a);
    event->actor = actor;
    return event;
}

/* ---- turns ---- */

static void wake_due(struct sim_world *world, struct sim_event *event)
{
    struct sim_actor *actor = event->actor;
    if (actor->wake_scheduled_us == event->n) actor->wake_scheduled_us = UINT64_MAX;
    if (actor->wake_at_us > sim_process_now_us(actor->process)) return;
    actor->wake_at_us = UINT64_MAX;
    actor->ops->on_wake(actor->self);
    (void)world;
}

/* Put the actor's single wake-up into the queue, unless an earlier one lies there. */
static void wake_schedule(struct sim_actor *actor)
{
    if (actor->wake_at_us == UINT64_MAX || actor->wake_scheduled_us <= actor->wake_at_us) return;
    uint64_t now_us = sim_process_now_us(actor->process);
    uint64_t delay_us = actor->wake_at_us > now_us ? actor->wake_at_us - now_us : 0;
    /* Real timers are late, never early; so are those of a slow clock. */
    if (actor->process->clock_ppm < 0)
        delay_us = delay_us * 1000000 / (uint64_t)(1000000 + actor->process->clock_ppm) + 1;
    delay_us += sim_rng_below(&actor->world->schedule, 200);
    struct sim_event *event = sim_actor_post(actor, delay_us, wake_due, NULL);
    event->n = actor->wake_at_us;
    actor->wake_scheduled_us = actor->wake_at_us;
}

/* An actor that nothing but its clock wakes, and that asks for a time that has come already, turn after turn,
 * burns a processor for nothing. */
static void spin_check(struct sim_actor *actor, bool only_woken)
{
    uint64_t now_us = sim_process_now_us(actor->process);
    actor->spins = only_woken && actor->wake_at_us <= now_us ? actor->spins + 1 : 0;
    if (actor->spins < SPINS_MAX) return;
    sim_fail(actor->world,
             "spins: actor %u of %s asked %u times in a row to be woken at %llu, which is past",
             actor->number, actor->process->name, actor->spins,
             (unsigned long long)actor->wake_at_us);
}

static void turn_body(struct sim_actor *actor)
{
    struct sim_world *world = actor->world;
    unsigned budget = 64; /* a real loop bounds its turn too */
    bool only_woken = true;
    while (actor->inbox_first && budget-- > 0) {
        struct sim_event *next = actor->inbox_first;
        only_woken = only_woken && next->run == wake_due;
        actor->inbox_first = next->next;
        if (!actor->inbox_first) actor->inbox_last = NULL;
        world->current = next;
        next->run(world, next);
        world->current = NULL;
        event_free(world, next);
    }
    if (actor->ops && actor->ops->on_turn_end) actor->ops->on_turn_end(actor->self);
    if (actor->ops && actor->ops->check && world->event_count % CHECKED_OF_EVENTS == 0)
        actor->ops->check(actor->self);
    world->ports->turn_ended(actor);
    spin_check(actor, only_woken);
    wake_schedule(actor);
}

/* Apart, because locals are unknown after the escape. */
static void turn_enter(struct sim_actor *actor)
{
    struct sim_world *world = actor->world;
    world->running = actor;
    world->entered = actor->process;
    leat_actor_runs(actor->self);
    if (setjmp(world->escape) == 0) turn_body(actor);
    leat_actor_runs(NULL);
    world->running = NULL;
    world->entered = NULL;
    if (!world->current) return;
    event_free(world, world->current);
    world->current = NULL;
}

static void turn_run(struct sim_world *world, struct sim_event *event);

/* In place of the one that was scheduled before. */
static void turn_at(struct sim_actor *actor, uint64_t at_us)
{
    actor->turn_scheduled = true;
    sim_world_at(actor->world, at_us, turn_run, actor)->n = ++actor->turn;
}

static void turn_run(struct sim_world *world, struct sim_event *event)
{
    struct sim_actor *actor = event->a;
    if (!actor->process->alive || event->n != actor->turn) return;
    uint64_t free_at_us = actor->free_at_us;
    if (actor->process->paused_until_us > free_at_us) free_at_us = actor->process->paused_until_us;
    if (free_at_us > world->now_us) {
        turn_at(actor, free_at_us);
        return;
    }
    actor->turn_scheduled = false;
    turn_enter(actor);
    if (actor->process->dying) {
        sim_process_die(actor->process, actor->process->death);
        return;
    }
    if (actor->after_turn) actor->after_turn(actor);
    if (world->watch) world->watch(world->watch_arg, actor->process);
    uint64_t busy_us = sim_rng_between(&world->schedule, 1, 20);
    if (sim_rng_chance(&world->schedule, 20)) busy_us += sim_rng_below(&world->schedule, 3000);
    if (world->weigh) busy_us += world->weigh();
    actor->free_at_us = world->now_us + busy_us + actor->work_us;
    actor->work_us = 0;
    if (actor->inbox_first) turn_at(actor, actor->free_at_us);
}

/* A turn is put off until the end of the pause that was known when the turn was due. So a pause that is cut short would
 * end for some actors of the process, or for none. */
void sim_process_pause(struct sim_process *process, uint64_t until_us)
{
    if (process->paused_until_us < until_us) process->paused_until_us = until_us;
}

/* The turns that wait for the end of the pause are moved: else it stood still all the same. */
void sim_process_go_on(struct sim_process *process)
{
    uint64_t now_us = process->world->now_us;
    if (process->paused_until_us <= now_us) return;
    process->paused_until_us = now_us; /* until when it stood still is asked for later */
    for (struct sim_actor *actor = process->actors; actor; actor = actor->next)
        if (actor->turn_scheduled) turn_at(actor, now_us);
}

static void inbox_put(struct sim_world *world, struct sim_event *event)
{
    struct sim_actor *actor = event->actor;
    event->next = NULL;
    if (actor->inbox_last)
        actor->inbox_last->next = event;
    else
        actor->inbox_first = event;
    actor->inbox_last = event;
    if (actor->turn_scheduled || !actor->self) return;
    turn_at(actor, actor->free_at_us > world->now_us ? actor->free_at_us : world->now_us);
}

void sim_world_run(struct sim_world *world, uint64_t until_us, const bool *stop)
{
    uint64_t due_us = until_us > world->now_us ? until_us : world->now_us;
    while (!world->failure[0] && !(stop && *stop)) {
        struct sim_event *event = queue_take(world, due_us);
        if (!event) break;
        LEAT_ASSERT(event->at_us >= world->now_us);
        world->now_us = event->at_us;
        if (++world->event_count == world->dice_turn) world->on_dice(world);
        sim_hash(world, event->at_us);
        if (!event->actor) {
            sim_hash(world, event->n);
            event->run(world, event);
            event_free(world, event);
        } else if (event->actor->process->alive) {
            sim_hash(world, event->actor->number);
            inbox_put(world, event);
        } else {
            event_free(world, event);
        }
    }
    if (world->now_us < until_us && !world->failure[0] && !(stop && *stop))
        world->now_us = until_us;
}

/* ---- the small ports ---- */

void sim_port_called(struct sim_actor *actor)
{
    struct sim_process *process = actor->process;
    LEAT_ASSERT(actor->world->entered == process); /* a port is used by its own process only */
    if (process->die_in_calls && --process->die_in_calls == 0)
        sim_process_die(process, process->death);
}

uint64_t sim_process_now_us(const struct sim_process *process)
{
    int64_t up_us = (int64_t)process->world->now_us + process->clock_offset_us;
    return (uint64_t)(up_us + up_us * process->clock_ppm / 1000000);
}

static uint64_t clock_now_us(void *ctx)
{
    struct sim_actor *actor = ctx;
    sim_port_called(actor);
    return sim_process_now_us(actor->process);
}

static int64_t clock_wall_ms(void *ctx)
{
    struct sim_actor *actor = ctx;
    return actor->world->wall_base_ms + (int64_t)(actor->world->now_us / 1000) +
           actor->process->wall_jump_ms;
}

static void clock_wake_at(void *ctx, uint64_t at_us)
{
    struct sim_actor *actor = ctx;
    actor->wake_at_us = at_us;
    if (actor->world->running != actor) wake_schedule(actor); /* start-up: no turn will end */
}

static uint64_t random_next(void *ctx)
{
    struct sim_actor *actor = ctx;
    return sim_rng_next(&actor->random);
}

static void random_secret(void *ctx, void *out, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        uint64_t word = random_next(ctx);
        memcpy((uint8_t *)out + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

static void mail_deliver(struct sim_world *world, struct sim_event *event)
{
    struct leat_mail *mail = event->a;
    mail->deliver(event->actor->self, mail);
    (void)world;
}

static void post_send(void *ctx, unsigned to, struct leat_mail *mail)
{
    struct sim_actor *actor = ctx, *receiver = actor->process->actors;
    sim_port_called(actor);
    LEAT_ASSERT(to < LEAT_ACTORS);
    while (receiver && receiver->number != to)
        receiver = receiver->next;
    LEAT_ASSERT(receiver != NULL);
    uint64_t at_us = actor->world->now_us + sim_rng_between(&actor->world->schedule, 1, 30);
    if (sim_rng_chance(&actor->world->schedule, 10))
        at_us += sim_rng_below(&actor->world->schedule, 2000);
    if (at_us < actor->mail_last_us[to]) at_us = actor->mail_last_us[to];
    actor->mail_last_us[to] = at_us;
    sim_actor_post(receiver, at_us - actor->world->now_us, mail_deliver, mail);
}

/* ---- processes ---- */

struct sim_process *sim_process_create(struct sim_world *world, const char *name)
{
    struct sim_process *process = calloc(1, sizeof *process);
    LEAT_ASSERT(process != NULL);
    process->world = world;
    process->alive = true;
    leat_list_init(&process->memory);
    snprintf(process->name, sizeof process->name, "%s", name);
    process->next = world->processes;
    world->processes = process;
    return process;
}

struct sim_actor *sim_actor_create(struct sim_process *process, unsigned number)
{
    struct sim_world *world = process->world;
    struct sim_actor *actor = calloc(1, sizeof *actor);
    LEAT_ASSERT(actor != NULL);
    char purpose[64];
    actor->process = process;
    actor->world = world;
    actor->number = number;
    actor->wake_at_us = actor->wake_scheduled_us = UINT64_MAX;
    /* order: a restarted process draws other numbers than its predecessor */
    snprintf(purpose, sizeof purpose, "actor %s %u %llu", process->name, number,
             (unsigned long long)world->next_order);
    sim_rng_init(&actor->random, world->seed, purpose);
    actor->clock = (struct leat_clock){actor, clock_now_us, clock_wall_ms, clock_wake_at};
    actor->random_port = (struct leat_random){actor, random_next, random_secret};
    actor->post = (struct leat_post){actor, post_send, number};
    leat_intake_init(&actor->intake, &actor->random_port);
    actor->env = (struct leat_env){
        .clock = &actor->clock, .random = &actor->random_port, .post = &actor->post};
    world->ports->attach(actor);
    actor->next = process->actors;
    process->actors = actor;
    return actor;
}

void sim_actor_register(struct sim_actor *actor, void *self, const struct leat_actor_ops *ops)
{
    actor->self = self;
    actor->ops = ops;
    wake_schedule(actor);
    if (!actor->inbox_first || actor->turn_scheduled) return;
    turn_at(actor, actor->world->now_us);
}

bool sim_process_enter(struct sim_process *process, void (*run)(void *arg), void *arg)
{
    struct sim_world *world = process->world;
    LEAT_ASSERT(world->entered == NULL);
    if (!process->alive) return false;
    world->entered = process;
    if (setjmp(world->escape) == 0) {
        run(arg);
        for (struct sim_actor *actor = process->actors; actor; actor = actor->next)
            world->ports->turn_ended(actor);
    }
    world->entered = NULL;
    if (!process->dying) return true;
    sim_process_die(process, process->death);
    return false;
}

void sim_process_die(struct sim_process *process, enum sim_death death)
{
    struct sim_world *world = process->world;
    process->death = death;
    if (world->entered == process) {
        process->dying = true;
        longjmp(world->escape, 1);
    }
    if (!process->alive) return;
    sim_trace(world, "%s dies (%s)", process->name,
              death == SIM_DEATH_KILL    ? "kill -9"
              : death == SIM_DEATH_POWER ? "power cut"
                                         : "exit");
    sim_hash(world, 0xdead + (uint64_t)death);
    process->alive = process->dying = false;
    process->die_in_calls = 0;
    world->ports->process_died(process, death);
    for (struct sim_actor *actor = process->actors; actor; actor = actor->next) {
        for (struct sim_event *event = actor->inbox_first, *next; event; event = next) {
            next = event->next;
            event_free(world, event);
        }
        actor->inbox_first = actor->inbox_last = NULL;
    }
    if (process->on_death) process->on_death(process, death);
    if (world->watch) world->watch(world->watch_arg, process);
}
