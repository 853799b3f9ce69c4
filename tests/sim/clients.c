/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated clients: each a process of one actor. What all have. */
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

const struct sim_stream *sim_stream_of(const struct scenario *scenario, uint32_t id,
                                       uint32_t *out_index)
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        if (scenario->streams[i].id != id) continue;
        *out_index = i;
        return &scenario->streams[i];
    }
    return NULL;
}

uint64_t sim_acked_batches(const struct scenario *scenario)
{
    uint64_t count = scenario->acked_batches;
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        if (client->kind == SIM_CLIENT_PRODUCER && client->producer)
            count += leat_producer_engine_stats(client->producer)->batches_acked;
    }
    return count;
}

static void on_wake(void *self)
{
    struct sim_client *client = self;
    leat_timers_run(&client->timers);
}

static void on_turn_end(void *self)
{
    struct sim_client *client = self;
    if (client->producer) leat_producer_engine_on_turn_end(client->producer);
    if (client->consumer) leat_consumer_engine_on_turn_end(client->consumer);
    if (client->client) leat_client_on_turn_end(client->client);
    if (client->slow) client->actor->free_at_us = client->scenario->world->now_us + 5000;
}

static const struct leat_actor_ops client_actor = {.on_wake = on_wake, .on_turn_end = on_turn_end};

static void nothing(void *self)
{
    (void)self;
}

static const struct leat_actor_ops idle_actor = {.on_wake = nothing};

struct sim_actor *sim_idle_actor(struct sim_world *world, const char *name)
{
    struct sim_actor *actor = sim_actor_create(sim_process_create(world, name), 0);
    sim_actor_register(actor, actor, &idle_actor);
    return actor;
}

static void client_begin(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    client->scenario->client_create(client);
    (void)world;
}

struct sim_client *sim_client_start(struct scenario *scenario, enum sim_client_kind kind,
                                    uint32_t stream, uint32_t index)
{
    /* A seed and a name make a client's random numbers, so the verifier keeps the name that it had. */
    static const char *const names[] = {
        "control",        "producer",     "raw",          "reader",
        "member",         "sharer",       "auditor",      "deaf",
        "kafka-producer", "kafka-reader", "kafka-member", "trimmer",
        "deleter",        "onlooker",     "cutter",       "impostor"};
    struct sim_client *client = calloc(1, sizeof *client);
    LEAT_ASSERT(client != NULL && scenario->client_count < SIM_CLIENTS_MAX);
    char name[sizeof client->process->name];
    snprintf(name, sizeof name, "%s%u.%u.%u", names[kind], stream, index, scenario->client_count);
    scenario->clients[scenario->client_count++] = client;
    client->number = scenario->client_count;
    client->scenario = scenario;
    client->kind = kind;
    client->stream = stream;
    client->index = index;
    sim_rng_init(&client->rng, scenario->world->seed, name);
    client->process = sim_process_create(scenario->world, name);
    client->actor = sim_actor_create(client->process, 0);
    sim_actor_register(client->actor, client, &client_actor);
    sim_actor_post(client->actor, 1, client_begin,
                   client); /* created within a turn, as libleat's */
    return client;
}

void sim_client_kill(struct sim_client *client)
{
    sim_process_die(client->process, SIM_DEATH_KILL);
    client->producer = NULL;
    client->consumer = NULL;
    sim_process_memory_drop(client->process);
}
