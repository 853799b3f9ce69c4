/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated one-sided writes: writers that store into regions of named memory (rmem_host.c).
 *
 * A write leaves its writer as a copy (what a network card has taken). It arrives in pieces of 64
 * bytes: in address order, so that a prefix is there, or in any order; in one go or in several. It
 * completes after all of them have arrived, in the order of the target's writes; completions are
 * late. What is on its way when a writer dies arrives whole, in part or not at all, later, until
 * the region is revoked (verbs), or stops where it is (shm: a processor's own stores).
 *
 * revoke(): a write whose bytes have not all arrived never completes. Over verbs no byte changes
 * afterwards; over shm a stopped or slow writer may still store, as a real one may.
 *
 * A region survives the kill of its host's process, not a power cut. Over shm writes into it go on
 * until the next process revokes it; over verbs they fail with the process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/net_cuts.h"
#include "tests/sim/rmem_parts.h"

enum {
    PIECE = 64,
    LANDINGS_MAX = 4,
    TIMEOUT_US_MIN = 20000, /* an acknowledgement that does not come */
    TIMEOUT_US_MAX = 400000,
};

struct target {
    struct leat_rmem_target base;
    struct sim_rmem *rmem;
    struct region *region; /* NULL: the grant was stale */
    const struct leat_rmem_target_handler *handler;
    void *user;
    struct leat_list
        writes; /* accepted, not ended, in order; the first `flying` are on their way */
    struct flight *first, *last; /* on their way, in order */
    unsigned flying;
    uint64_t last_end_us;
    bool detached, breaking;
    struct leat_error error;
};

struct flight {
    struct flight *next;     /* of the target */
    struct target *target;   /* NULL: nobody waits for it any more */
    struct sim_actor *actor; /* the writer's */
    struct sim_rmem *rmem;
    struct region *region;
    struct leat_rmem_write *write;
    uint64_t offset, place;
    uint32_t bytes, piece_count, arrived;
    uint32_t *order;      /* of pieces; NULL: by address */
    bool dropped, errors; /* errors: the transport will say that it failed */
    bool torn;            /* its first piece never arrives: sim_rmem_tear() */
    bool whole;           /* all of it arrived before the region was revoked */
    bool known;           /* the transport knows that it did, and will say so */
    unsigned refs;        /* events that name it, and the target's list */
    uint8_t data[];
};

struct sim_rmem {
    struct leat_rmem port;
    struct sim_actor *actor;
    struct sim_rng rng;
};

static void break_later(struct target *target, uint64_t delay_us, leat_err rc, const char *why);
static void fly_more(struct target *target);

/* ---- flights ---- */

static void flight_leave(struct flight *flight)
{
    if (--flight->refs) return;
    if (flight->arrived > 0 && flight->arrived < flight->piece_count)
        sim_fault_struck(flight->actor->world,
                         flight->order ? SIM_FAULT_RMEM_MIXED : SIM_FAULT_RMEM_TORN);
    free(flight->order);
    free(flight);
}

/* May bytes of it still arrive? */
static bool flight_lands(struct flight *flight)
{
    const struct region *region = flight->region;
    bool shm = flight->rmem->port.kind == LEAT_RMEM_SHM;
    if (flight->dropped || region->retired || region->lost) return false;
    if (shm) return flight->actor->process->alive; /* a processor's own stores, revoked or not */
    return !region->port.revoked && sim_rmem_host_lives(region->host);
}

/* What a host that is not there, or has revoked the region, does with the memory is its own business. */
static void follow(const struct flight *flight, bool posted)
{
    const struct region *region = flight->region;
    struct sim_world *world = flight->actor->world;
    if (!world->on_rmem_reach || !flight->place) return;
    if (region->port.revoked || !sim_rmem_host_lives(region->host)) return;
    world->on_rmem_reach(&(struct sim_rmem_reach){.from = flight->actor->process,
                                                  .to = region->host->actor->process,
                                                  .arena = &region->port,
                                                  .offset = flight->offset,
                                                  .bytes = flight->bytes,
                                                  .place = flight->place,
                                                  .posted = posted});
}

static void pieces_land(struct flight *flight, uint32_t upto)
{
    uint32_t head = (uint32_t)(flight->offset % PIECE);
    for (; flight->arrived < upto; flight->arrived++) {
        uint32_t piece = flight->order ? flight->order[flight->arrived] : flight->arrived;
        uint64_t from = piece ? (uint64_t)piece * PIECE - head : 0;
        uint64_t to = (uint64_t)(piece + 1) * PIECE - head;
        if (to > flight->bytes) to = flight->bytes;
        memcpy(flight->region->port.base + flight->offset + from, flight->data + from,
               (size_t)(to - from));
    }
    if (flight->arrived == flight->piece_count && !flight->region->port.revoked)
        flight->whole = true;
}

void sim_rmem_aim(struct sim_world *world, const char *host, bool at_target, uint64_t n,
                  void (*strike)(void *arg), void *arg)
{
    world->rmem_aim =
        (struct sim_rmem_aim){.at_target = at_target, .n = n, .strike = strike, .arg = arg};
    snprintf(world->rmem_aim.host, sizeof world->rmem_aim.host, "%s", host);
}

/* A part of it lies there and the rest is on its way. */
static void half_way(struct sim_world *world, const struct flight *flight)
{
    struct sim_rmem_aim *aim = &world->rmem_aim;
    if (!aim->n || flight->arrived == 0 || flight->arrived == flight->piece_count) return;
    const struct sim_actor *there = flight->region->host->actor;
    const struct sim_actor *struck = aim->at_target ? there : flight->actor;
    if (!struck || strcmp(struck->process->host, aim->host) != 0 || --aim->n) return;
    aim->strike(aim->arg);
}

static void flight_land(struct sim_world *world, struct sim_event *event)
{
    struct flight *flight = event->a;
    struct sim_process *process = flight->actor->process;
    if (flight->rmem->port.kind == LEAT_RMEM_SHM && process->alive &&
        process->paused_until_us > world->now_us) {
        sim_world_at(world, process->paused_until_us, flight_land, flight)->n = event->n;
        return;
    }
    /* A dead writer's card may go on, or stop anywhere. */
    if (!process->alive && sim_rng_chance(&flight->rmem->rng, 400)) flight->dropped = true;
    bool late = !process->alive || flight->region->port.revoked;
    if (late && flight_lands(flight) && flight->arrived < event->n)
        sim_fault_struck(world, SIM_FAULT_RMEM_LATE);
    if (flight_lands(flight)) {
        if (flight->arrived < event->n) follow(flight, false);
        pieces_land(flight, (uint32_t)event->n);
    } else {
        flight->dropped = true;
    }
    half_way(world, flight);
    flight_leave(flight);
}

static void write_ok(struct sim_world *world, struct sim_event *event)
{
    struct flight *flight = event->a;
    struct target *target = flight->target;
    if (target) {
        struct leat_rmem_write *write = flight->write;
        LEAT_ASSERT(target->first == flight);
        target->first = flight->next;
        if (!target->first) target->last = NULL;
        target->flying--;
        leat_list_remove(&write->list);
        flight->target = NULL;
        flight_leave(flight); /* the list */
        fly_more(target);
        write->on_done(write, LEAT_OK);
    }
    flight_leave(flight);
    (void)world;
}

/* A writer that stood still stores late, and then its later write ends first. */
static bool overtakes(const struct target *target, const struct flight *flight)
{
    const struct flight *before = target->first;
    while (before != flight && before->known)
        before = before->next;
    return before != flight;
}

/* The transport knows the outcome of a write once it knows the outcome of all earlier writes to the target. */
static void flight_end(struct sim_world *world, struct sim_event *event)
{
    struct flight *flight = event->a;
    struct target *target = flight->target;
    struct sim_process *process = flight->actor->process;
    if (!process->alive || !target) {
        flight_leave(flight);
        return;
    }
    bool stopped = !flight->whole && flight->rmem->port.kind == LEAT_RMEM_SHM &&
                   flight_lands(flight) && !flight->errors && !flight->region->port.revoked;
    if (!target->breaking && (stopped || overtakes(target, flight))) {
        sim_world_at(world, world->now_us + 50, flight_end, flight);
        return;
    }
    if (flight->whole && !flight->errors && !target->breaking &&
        !(flight->region->port.revoked && sim_rng_chance(&flight->rmem->rng, 500))) {
        uint64_t delay_us = sim_rng_between(&flight->rmem->rng, 1, 40);
        if (world->now_us + delay_us < target->last_end_us)
            delay_us = target->last_end_us - world->now_us;
        target->last_end_us = world->now_us + delay_us;
        flight->known = true;
        sim_actor_post(flight->actor, delay_us, write_ok, flight); /* has this event's */
        return;
    }
    bool told = flight->torn || (flight->region->port.revoked && !flight->region->lost);
    break_later(target,
                told ? sim_rng_between(&flight->rmem->rng, 10, 500)
                     : sim_rng_between(&flight->rmem->rng, TIMEOUT_US_MIN, TIMEOUT_US_MAX),
                flight->region->port.revoked ? LEAT_E_CANCELLED : LEAT_E_CLOSED,
                flight->region->port.revoked ? "the arena was revoked"
                                             : "a one-sided write was not acknowledged");
    flight_leave(flight);
}

static uint32_t *order_new(struct sim_rng *rng, uint32_t count)
{
    uint32_t *order = malloc(count * sizeof *order);
    LEAT_ASSERT(order != NULL);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = (uint32_t)sim_rng_below(rng, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    return order;
}

static struct flight *flight_new(struct target *target, struct leat_rmem_write *write)
{
    struct flight *flight = calloc(1, sizeof *flight + write->bytes);
    LEAT_ASSERT(flight != NULL);
    size_t at = 0;
    for (unsigned i = 0; i < write->iov_count; i++) {
        if (write->iovs[i].bytes)
            memcpy(flight->data + at, write->iovs[i].base, write->iovs[i].bytes);
        at += write->iovs[i].bytes;
    }
    flight->target = target;
    flight->rmem = target->rmem;
    flight->actor = target->rmem->actor;
    flight->region = target->region;
    flight->write = write;
    flight->offset = write->offset;
    flight->bytes = write->bytes;
    flight->piece_count = (uint32_t)((write->offset % PIECE + write->bytes + PIECE - 1) / PIECE);
    if (sim_rng_chance(&target->rmem->rng, 500))
        flight->order = order_new(&target->rmem->rng, flight->piece_count);
    return flight;
}

/* When the last byte arrives: a network that is cut delays it, or the card gives up. */
static uint64_t arrival_us(struct target *target, struct flight *flight)
{
    struct sim_world *world = target->rmem->actor->world;
    struct sim_rng *rng = &target->rmem->rng;
    uint64_t at_us = world->now_us + sim_rng_between(rng, 3, 60) + flight->bytes / 1000;
    if (sim_rng_chance(rng, 10)) at_us += sim_rng_below(rng, 5000);
    if (world->rmem_slow_per_mille && target->rmem->port.kind == LEAT_RMEM_VERBS &&
        sim_rng_chance(rng, world->rmem_slow_per_mille)) {
        at_us += sim_rng_below(rng, 500000);
        sim_fault_struck(world, SIM_FAULT_RMEM_SLOW);
    }
    if (!target->region->host->actor) return at_us;
    const struct sim_process *here = target->rmem->actor->process;
    const struct sim_process *there = target->region->host->actor->process;
    uint64_t cut_us = sim_net_cut_until(here, there);
    if (world->cuts && target->rmem->port.kind != LEAT_RMEM_SHM) {
        const struct sim_cut *line = sim_cut_between(here, there);
        uint64_t line_us = sim_line_write_us(world, line, flight->bytes);
        if (line_us > at_us) at_us = line_us;
    }
    if (sim_net_cut_until(there, here) > cut_us) cut_us = sim_net_cut_until(there, here);
    if (cut_us <= at_us || target->rmem->port.kind == LEAT_RMEM_SHM) return at_us;
    if (cut_us - world->now_us > sim_rng_between(rng, TIMEOUT_US_MIN, TIMEOUT_US_MAX))
        flight->errors = true;
    return cut_us + sim_rng_below(rng, 1000);
}

void sim_rmem_tear(struct sim_world *world, const char *from_host, const char *to_host)
{
    snprintf(world->rmem_tear.from, sizeof world->rmem_tear.from, "%s", from_host);
    snprintf(world->rmem_tear.to, sizeof world->rmem_tear.to, "%s", to_host);
    world->rmem_tear.at = NULL;
}

/* Is this write to be torn? All of its pieces arrive but the first. */
static bool is_torn(struct flight *flight)
{
    struct sim_world *world = flight->actor->world;
    const struct sim_actor *there = flight->region->host->actor;
    if (!world->rmem_tear.from[0] || !there || flight->piece_count < 2 || flight->dropped ||
        strcmp(flight->actor->process->host, world->rmem_tear.from) != 0 ||
        strcmp(there->process->host, world->rmem_tear.to) != 0)
        return false;
    if (!flight->order) flight->order = malloc(flight->piece_count * sizeof *flight->order);
    LEAT_ASSERT(flight->order != NULL);
    for (uint32_t i = 0; i < flight->piece_count; i++)
        flight->order[i] = flight->piece_count - 1 - i;
    flight->errors = flight->torn = true;
    world->rmem_tear.from[0] = '\0';
    world->rmem_tear.at = flight->region->port.base + flight->offset;
    return true;
}

static void fly(struct target *target, struct leat_rmem_write *write)
{
    struct sim_world *world = target->rmem->actor->world;
    struct sim_rng *rng = &target->rmem->rng;
    struct flight *flight = flight_new(target, write);
    uint64_t end_us = arrival_us(target, flight);
    if (world->rmem_hold_us) end_us += world->rmem_hold_us(write, target->rmem->port.kind);
    flight->errors |= write->offset + write->bytes > target->region->port.grown_bytes;
    if (flight->errors) flight->dropped = true;
    if (world->rmem_error_per_mille && sim_rng_chance(rng, world->rmem_error_per_mille)) {
        sim_fault_struck(world, SIM_FAULT_RMEM_ERROR);
        flight->errors = true; /* the bytes may be there all the same */
        flight->dropped |= sim_rng_chance(rng, 300);
    }
    uint32_t arrive = flight->piece_count - is_torn(flight);
    unsigned landings = (unsigned)sim_rng_between(rng, 1, LANDINGS_MAX);
    uint64_t at_us = world->now_us;
    for (unsigned i = 1; i <= landings; i++) {
        at_us = i == landings ? end_us : sim_rng_between(rng, at_us, end_us);
        uint64_t upto = i == landings ? arrive : sim_rng_below(rng, arrive + 1ull);
        sim_world_at(world, at_us, flight_land, flight)->n = upto;
    }
    flight->refs = landings + 2;
    if (world->rmem_place) flight->place = world->rmem_place(write);
    if (!flight->dropped) follow(flight, true);
    if (end_us < target->last_end_us) end_us = target->last_end_us;
    target->last_end_us = end_us;
    sim_world_at(world, end_us, flight_end, flight);
    if (target->last)
        target->last->next = flight;
    else
        target->first = flight;
    target->last = flight;
    target->flying++;
}

static void fly_more(struct target *target)
{
    unsigned flying = 0;
    if (target->breaking) return;
    LEAT_LIST_EACH(&target->writes, link)
    {
        if (target->flying == LEAT_RMEM_WINDOW) return;
        if (flying++ < target->flying) continue;
        fly(target, LEAT_CONTAINER(link, struct leat_rmem_write, list));
        flying = target->flying;
    }
}

/* ---- targets ---- */

/* All that was accepted ends, then the target does. */
static void broken(struct sim_world *world, struct sim_event *event)
{
    struct target *target = event->a;
    target->base.failed = true;
    for (struct flight *flight = target->first, *next; flight; flight = next) {
        next = flight->next;
        flight->target = NULL; /* what is on its way may still arrive */
        flight_leave(flight);
    }
    target->first = target->last = NULL;
    target->flying = 0;
    leat_err rc = target->detached ? LEAT_E_CANCELLED : target->error.code;
    struct leat_list *link;
    while ((link = leat_list_pop_front(&target->writes)) != NULL) {
        struct leat_rmem_write *write = LEAT_CONTAINER(link, struct leat_rmem_write, list);
        write->on_done(write, rc);
    }
    if (target->detached)
        free(target);
    else
        target->handler->on_failed(target->user, &target->base, &target->error);
    (void)world;
}

static void break_later(struct target *target, uint64_t delay_us, leat_err rc, const char *why)
{
    if (target->breaking) return;
    target->breaking = true;
    (void)leat_error_set(&target->error, rc, "%s", why);
    struct sim_world *world = target->rmem->actor->world;
    if (world->now_us + delay_us < target->last_end_us)
        delay_us = target->last_end_us - world->now_us;
    sim_actor_post(target->rmem->actor, delay_us, broken, target);
}

static void attached(struct sim_world *world, struct sim_event *event)
{
    struct target *target = event->a;
    if (target->detached) return; /* `broken` frees it */
    bool verbs = target->rmem->port.kind == LEAT_RMEM_VERBS;
    if (!target->region || target->region->port.revoked ||
        (verbs && !sim_rmem_host_lives(target->region->host))) {
        break_later(target, 10, LEAT_E_NOT_FOUND, "the arena is not there any more");
        return;
    }
    target->base.attached = true;
    target->handler->on_attached(target->user, &target->base);
    (void)world;
}

static leat_err rmem_attach(void *ctx, unsigned node, const struct leat_rmem_grant *grant,
                            const struct leat_rmem_target_handler *handler, void *user,
                            struct leat_rmem_target **out_target, struct leat_error *error)
{
    struct sim_rmem *rmem = ctx;
    struct leat_rmem_address address;
    size_t bytes;
    sim_port_called(rmem->actor);
    (void)node;
    if (leat_rmem_grant_address(grant, &address) != LEAT_OK)
        return leat_error_set(error, LEAT_E_INVALID, "these bytes are not a grant");
    const uint8_t *body = leat_rmem_grant_find(grant, rmem->port.kind, &bytes);
    if (!body)
        return leat_error_set(error, LEAT_E_UNSUPPORTED, "the grant does not offer %s",
                              leat_rmem_kind_name(rmem->port.kind));
    if (bytes != 3 || memcmp(body, "sim", 3) != 0)
        return leat_error_set(error, LEAT_E_INVALID, "the grant's %s section is nonsense",
                              leat_rmem_kind_name(rmem->port.kind));
    struct target *target = calloc(1, sizeof *target);
    LEAT_ASSERT(target != NULL);
    target->base = (struct leat_rmem_target){.port = &rmem->port, .kind = rmem->port.kind};
    target->rmem = rmem;
    target->handler = handler;
    target->user = user;
    leat_list_init(&target->writes);
    for (struct sim_rmem_host *host = rmem->actor->world->rmem_hosts; host && !target->region;
         host = host->next)
        target->region = sim_rmem_region(host, &address);
    sim_actor_post(rmem->actor, sim_rng_between(&rmem->rng, 50, 2000), attached, target);
    *out_target = &target->base;
    return LEAT_OK;
}

static leat_err rmem_write(struct leat_rmem_target *port, struct leat_rmem_write *write)
{
    struct target *target = LEAT_CONTAINER(port, struct target, base);
    sim_port_called(target->rmem->actor);
    leat_err rc =
        leat_rmem_write_check(port, write, target->region ? target->region->port.limit_bytes : 0);
    if (rc != LEAT_OK) return rc;
    leat_list_init(&write->list);
    leat_list_push_back(&target->writes, &write->list);
    fly_more(target);
    return LEAT_OK;
}

static void rmem_detach(struct leat_rmem_target *port)
{
    struct target *target = LEAT_CONTAINER(port, struct target, base);
    sim_port_called(target->rmem->actor);
    LEAT_ASSERT(!target->detached);
    target->detached = true;
    if (target->base.failed) {
        target->breaking = false; /* `broken` has run: once more, to free it */
        target->last_end_us = 0;
    }
    break_later(target, sim_rng_between(&target->rmem->rng, 2100, 2500), LEAT_E_CANCELLED,
                "detached");
}

static leat_err rmem_source(void *ctx, void *base, size_t bytes, struct leat_error *error)
{
    (void)ctx, (void)base, (void)bytes, (void)error;
    return LEAT_OK;
}

const struct leat_rmem *sim_rmem_create(struct sim_actor *actor, enum leat_rmem_kind kind)
{
    struct sim_rmem *rmem = calloc(1, sizeof *rmem);
    char purpose[80];
    LEAT_ASSERT(rmem != NULL && (kind == LEAT_RMEM_SHM || kind == LEAT_RMEM_VERBS));
    snprintf(purpose, sizeof purpose, "rmem %s %u %llu", actor->process->name, actor->number,
             (unsigned long long)actor->world->next_order);
    sim_rng_init(&rmem->rng, actor->world->seed, purpose);
    rmem->actor = actor;
    rmem->port = (struct leat_rmem){.ctx = rmem,
                                    .kind = kind,
                                    .attach = rmem_attach,
                                    .write = rmem_write,
                                    .detach = rmem_detach,
                                    .source = rmem_source};
    return &rmem->port;
}
