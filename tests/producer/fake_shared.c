/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/producer/fake_shared.h"

#include "producer/gather.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

struct fake_shared fake_shared;

static uint64_t next_of(const struct leat_timers *timers)
{
    return timers->count ? timers->heap[0]->at_us : UINT64_MAX;
}

static uint64_t now_us(void *ctx)
{
    (void)ctx;
    return fake_shared.world.now_us;
}

static int64_t wall_ms(void *ctx)
{
    (void)ctx;
    return fake_shared.world.clock.wall_ms(fake_shared.world.clock.ctx);
}

static void wake_at(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us; /* the turn's end looks at both heaps */
}

static void mails_deliver(void)
{
    struct leat_mail *mail;
    while ((mail = fake_shared.mail) != NULL) {
        fake_shared.mail = mail->next;
        if (!fake_shared.mail) fake_shared.mail_last = &fake_shared.mail;
        mail->deliver(NULL, mail);
    }
}

/* As shared.c has it: the place's turn only where something of it ran, then the client's. */
static void turn_end(void *owner)
{
    (void)owner;
    struct fake_shared *fake = &fake_shared;
    bool was = fake->own_thread;
    if (fake->meanwhile) fake->meanwhile(fake->meanwhile_arg);
    fake->own_thread = true;
    mails_deliver();
    for (unsigned round = 0; round < 4; round++) {
        struct leat_shared *place = fake->place;
        if (!place) break;
        if (next_of(&fake->timers) <= fake->world.now_us) {
            leat_timers_run(&fake->timers);
            place->touched = true;
        }
        if (place->touched && fake->turn) {
            place->touched = false;
            fake->turns++;
            fake->turn(place->owner);
            if (fake->turns_twice) fake->turn(place->owner);
        }
        if (fake->client) leat_client_on_turn_end(fake->client);
        if (!place->touched) break;
    }
    if (fake->sent_wanted && fake->place) {
        fake->sent_wanted = false;
        fake->place->on_sent(fake->place->owner);
    }
    fake->own_thread = was;
    uint64_t at = next_of(&fake->timers), other = next_of(&fake->world.timers);
    if (other < at) at = other;
    bool again = fake->mail || (fake->place && fake->turn && fake->place->touched);
    fake->world.wake_at_us = again ? fake->world.now_us : at;
}

void fake_shared_begin(uint64_t seed)
{
    struct fake_shared *fake = &fake_shared;
    memset(fake, 0, sizeof *fake);
    fake_init(&fake->world, seed);
    fake->world.clock.wake_at = wake_at;
    fake->world.turn_end = turn_end;
    fake->clock = (struct leat_clock){NULL, now_us, wall_ms, wake_at};
    fake->mail_last = &fake->mail;
    leat_err rc = leat_timers_init(&fake->timers, &fake->clock, LEAT_SHARED_TIMERS);
    LEAT_ASSERT(rc == LEAT_OK);
}

void fake_shared_end(void)
{
    LEAT_ASSERT(!fake_shared.place && !fake_shared.client && !fake_shared.spun);
    LEAT_ASSERT_CMP(fake_shared.timers.count, ==, 0); /* of nobody who is gone */
    fake_fini(&fake_shared.world);
    leat_timers_fini(&fake_shared.timers);
}

void fake_shared_run(uint64_t us)
{
    (void)fake_run(&fake_shared.world, fake_shared.world.now_us + us, NULL);
}

/* ---- what client/shared.h declares ---- */

leat_err leat_shared_open(struct leat_shared *shared, const struct leat_shared_options *options,
                          struct leat_error *error)
{
    struct fake_shared *fake = &fake_shared;
    LEAT_ASSERT(!fake->place);
    memset(shared, 0, sizeof *shared);
    fake->opened++;
    fake->options = *options;
    snprintf(fake->brokers, sizeof fake->brokers, "%s", options->brokers ? options->brokers : "-");
    snprintf(fake->name, sizeof fake->name, "%s", options->name ? options->name : "-");
    if (fake->refuse) return leat_error_set(error, fake->refuse, "refused by the script");
    struct leat_client_options client = {.name = "test",
                                         .addresses = "fake:1",
                                         .request_timeout_us = options->request_timeout_us,
                                         .retry_us_min = 1000,
                                         .retry_us_max = 100000,
                                         .streams_max = 8};
    leat_err rc =
        leat_client_create(&fake->world.env, &fake->world.timers, &client, &fake->client, error);
    if (rc) return rc;
    fake->place = shared;
    shared->env = &fake->world.env;
    shared->timers = &fake->timers;
    shared->client = fake->client;
    return LEAT_OK;
}

void leat_shared_start(struct leat_shared *shared, void *owner, void (*on_turn_end)(void *owner))
{
    LEAT_ASSERT(shared == fake_shared.place);
    fake_shared.started++;
    shared->owner = owner;
    shared->touched = true;
    fake_shared.turn = on_turn_end;
    fake_shared.gathers = true;
}

void leat_shared_post(struct leat_shared *shared, struct leat_mail *mail)
{
    LEAT_ASSERT(shared == fake_shared.place);
    for (const struct leat_mail *it = fake_shared.mail; it; it = it->next)
        LEAT_ASSERT(it != mail); /* under way already */
    mail->next = NULL;
    *fake_shared.mail_last = mail;
    fake_shared.mail_last = &mail->next;
    fake_shared.posted++;
    if (fake_shared.at_once) fake_shared_run(FAKE_AT_ONCE_US);
}

void leat_shared_after_sending(struct leat_shared *shared, void (*on_sent)(void *owner))
{
    LEAT_ASSERT(shared == fake_shared.place);
    fake_shared.sent_asked++;
    fake_shared.sent_wanted = true;
    if (fake_shared.on_sending) fake_shared.on_sending();
    shared->on_sent = on_sent;
}

bool leat_shared_is_own_thread(const struct leat_shared *shared)
{
    LEAT_ASSERT(shared == fake_shared.place);
    return fake_shared.own_thread;
}

void leat_shared_close(struct leat_shared *shared)
{
    if (!fake_shared.place) return; /* it was refused */
    LEAT_ASSERT(shared == fake_shared.place);
    fake_shared.closed++;
    fake_shared.place = NULL;
    fake_shared.turn = NULL;
    fake_shared.gathers = false;
    leat_client_destroy(&fake_shared.client);
}

uint64_t leat_shared_spread(const struct leat_shared *shared, int64_t id)
{
    LEAT_ASSERT(shared == fake_shared.place);
    fake_shared.spread_id = id;
    return (uint64_t)id + fake_shared.spread;
}

leat_code leat_shared_message(leat_message *message, const struct leat_error *error)
{
    if (message) {
        message->code = (leat_code)error->code;
        snprintf(message->text, sizeof message->text, "%s", error->text);
    }
    return (leat_code)error->code;
}

const char *leat_strerror(leat_code code)
{
    return leat_err_text((leat_err)code);
}

void leat_spin_wait(struct leat_spin *spin)
{
    (void)spin;
    fake_shared.spins++;
    bool given = fake_shared.held;
    fake_shared.held = false;
    fake_shared.spun |= !given; /* who holds it would never give it back */
    LEAT_ASSERT(given);
}

bool __real_leat_client_withdraw(struct leat_client *client, struct leat_request *request);
bool __wrap_leat_client_withdraw(struct leat_client *client, struct leat_request *request);
bool __wrap_leat_client_withdraw(struct leat_client *client, struct leat_request *request)
{
    fake_shared.kept += fake_shared.keeps;
    return !fake_shared.keeps && __real_leat_client_withdraw(client, request);
}

/* Another caller fills a batch, without the lock, and is done after the second look. With no place open, a library that
 * is linked in yields: the leak check at the end of a test does. */
int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    if (!fake_shared.place) return __real_sched_yield();
    const struct leat_spin *lock = fake_shared.place->owner;
    LEAT_ASSERT(atomic_load(&lock->taken) == 0);
    if (++fake_shared.yields == 2) fake_shared.gather->filling = NULL;
    return 0;
}

uint64_t leat_shared_now_us(void *unused)
{
    return now_us(unused);
}

/* The gather is to be used under its lock: the producer's first member. */
static void gather_used(void)
{
    const struct leat_spin *lock = fake_shared.place->owner;
    LEAT_ASSERT(atomic_load(&lock->taken) == 1);
}

/* Only the gather asks for it. */
int64_t leat_shared_wall_ms(void *unused)
{
    if (fake_shared.gathers) gather_used();
    return wall_ms(unused);
}

#define GATHER_CALL(type, name, parameters, arguments)                                             \
    type __real_leat_gather_##name parameters;                                                     \
    type __wrap_leat_gather_##name parameters;                                                     \
    type __wrap_leat_gather_##name parameters                                                      \
    {                                                                                              \
        gather_used();                                                                             \
        fake_shared.gather = gather;                                                               \
        return __real_leat_gather_##name arguments;                                                \
    }
GATHER_CALL(void, close_all, (struct leat_gather * gather), (gather))
GATHER_CALL(bool, give, (struct leat_gather * gather, struct leat_producer_batch *batch),
            (gather, batch))
GATHER_CALL(leat_err, add,
            (struct leat_gather * gather, const struct leat_gather_record *record,
             bool *out_notify),
            (gather, record, out_notify))
GATHER_CALL(struct leat_producer_batch *, run_begin,
            (struct leat_gather * gather, const char *stream), (gather, stream))
GATHER_CALL(void, run_end, (struct leat_gather * gather, size_t added, bool *out_notify),
            (gather, added, out_notify))

uint64_t leat_shared_deadline(int64_t timeout_ms)
{
    return timeout_ms < 0 ? UINT64_MAX : now_us(NULL) + (uint64_t)timeout_ms * 1000u;
}

static struct {
    struct leat_event *event;
    uint32_t seen;
} awaited;

static bool has_moved(void *owner)
{
    (void)owner;
    return leat_event_look(awaited.event) != awaited.seen;
}

bool leat_event_wait(struct leat_event *event, uint32_t seen, uint64_t deadline_us)
{
    struct fake_world *world = &fake_shared.world;
    bool ever = deadline_us == UINT64_MAX;
    fake_shared.waited++;
    atomic_fetch_add(&event->waiters, 1);
    awaited.event = event;
    awaited.seen = seen;
    bool moved = has_moved(NULL) ||
                 (deadline_us > world->now_us &&
                  fake_run(world, ever ? world->now_us + FAKE_EVER_US : deadline_us, has_moved));
    atomic_fetch_sub(&event->waiters, 1);
    LEAT_ASSERT(moved || !ever); /* nobody will ever say so */
    return moved;
}

void leat_event_tell(struct leat_event *event)
{
    fake_shared.told++;
    atomic_fetch_add(&event->count, 1);
    if (fake_shared.on_tell) fake_shared.on_tell(fake_shared.on_tell_arg);
}
