/* SPDX-License-Identifier: Apache-2.0 */
/* A reader that asks and never reads: its process stands still for ever with its requests under way. The server has to
 * cut any such reader off in time, and must get back what the reader held. */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "broker/probe.h"

enum {
    DEAF_REQUESTS_MAX = 300, /* more than one connection may have under way */
    DEAF_ROUNDS_MAX = 3,
    LOOK_EVERY_US = 1000 * 1000,
    LENT_LOOK_EVERY_US = 50 * 1000,
    LATE_US = 1000 * 1000, /* a core may be so late */
    /* Two ticks to notice and to count, and what a core may be late. */
    CUT_OFF_LATE_US = 5 * 1000 * 1000,
};
static const uint64_t for_ever_us = UINT64_MAX / 2;

struct asked {
    struct leat_request request;
    uint8_t control[64];
};

struct deaf {
    struct sim_client *client;
    struct leat_client_lookup lookup;
    const struct leat_client_stream *stream;
    struct asked first, asked[DEAF_REQUESTS_MAX];
    bool frozen;
    uint64_t frozen_us;
    unsigned boots; /* of the server, then */
};

static void deaf_begin(struct sim_world *world, struct sim_event *event);

static void later(struct deaf *deaf, uint64_t delay_us)
{
    sim_actor_post(deaf->client->actor, delay_us, deaf_begin, deaf);
}

static bool fetch_send(struct deaf *deaf, struct asked *asked, uint32_t log, uint32_t bytes,
                       void (*on_done)(struct leat_request *, leat_err, const struct leat_frame *,
                                       const struct leat_error *))
{
    struct leat_msg_writer writer;
    const struct leat_client_log *at = &deaf->stream->logs[log];
    leat_msg_writer_init(&writer, asked->control, sizeof asked->control);
    leat_msg_fetch_write(&writer, &(struct leat_msg_fetch){1, bytes, 100, 1});
    leat_msg_fetch_log_write(&writer,
                             &(struct leat_msg_fetch_log){.log = at->ref, .epoch = at->epoch.v});
    LEAT_ASSERT(!writer.overflow);
    asked->request = (struct leat_request){.kind = LEAT_KIND_FETCH,
                                           .log = at->ref,
                                           .control = asked->control,
                                           .control_bytes = writer.used,
                                           .on_done = on_done,
                                           .owner = deaf};
    return leat_client_send(deaf->client->client, &asked->request) == LEAT_OK;
}

/* Only when something went wrong before it stood still: nothing runs after that. */
static void ignored(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    (void)request, (void)rc, (void)answer, (void)error;
}

/* The connection is there and on its lane. Ask for much, and take nothing of it. */
static void connected(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                      const struct leat_error *error)
{
    struct deaf *deaf = request->owner;
    struct sim_rng *rng = &deaf->client->rng;
    struct sim_world *world = deaf->client->scenario->world;
    (void)answer, (void)error;
    if (rc != LEAT_OK) {
        later(deaf, sim_rng_between(rng, 10000, 200000));
        return;
    }
    uint32_t log = (uint32_t)sim_rng_below(rng, deaf->stream->log_count);
    uint64_t count =
        sim_rng_chance(rng, 500) ? DEAF_REQUESTS_MAX : sim_rng_between(rng, 1, DEAF_REQUESTS_MAX);
    uint32_t bytes = (uint32_t)sim_rng_between(rng, 1000, leat_node_limits.fetch_bytes);
    for (uint64_t i = 0; i < count; i++)
        if (!fetch_send(deaf, &deaf->asked[i], log, bytes, ignored)) break;
    deaf->frozen = true;
    deaf->frozen_us = world->now_us;
    deaf->boots = deaf->client->scenario->servers[0].boots;
    sim_process_pause(deaf->client->process, for_ever_us);
    sim_trace(world, "asks %llu times and reads no more", (unsigned long long)count);
}

static void looked_up(struct leat_client_lookup *lookup, leat_err rc,
                      const struct leat_client_stream *stream, const struct leat_error *error)
{
    struct deaf *deaf = lookup->owner;
    (void)error;
    deaf->stream = stream;
    if (rc != LEAT_OK || !fetch_send(deaf, &deaf->first, 0, 1000, connected))
        later(deaf, sim_rng_between(&deaf->client->rng, 10000, 200000));
}

static void deaf_begin(struct sim_world *world, struct sim_event *event)
{
    struct deaf *deaf = event->a;
    struct scenario *scenario = deaf->client->scenario;
    deaf->lookup =
        (struct leat_client_lookup){.timeout_us = 2000000, .on_done = looked_up, .owner = deaf};
    memcpy(deaf->lookup.name, scenario->streams[deaf->client->stream].name,
           sizeof scenario->streams[0].name);
    leat_client_lookup(deaf->client->client, &deaf->lookup);
    (void)world;
}

void sim_deaf_start(struct sim_client *client)
{
    struct deaf *deaf = calloc(1, sizeof *deaf);
    LEAT_ASSERT(deaf != NULL);
    deaf->client = client;
    client->state = deaf;
    /* In between others, or when nothing else goes wrong any more: then nothing but the server ends
     * it. */
    bool calm = client->scenario->faults_over;
    later(deaf, sim_rng_between(&client->rng, 1000, calm ? 10000 : 5000000));
}

/* Nobody may be owed bytes for long while he takes none. */
static void owed_check(struct scenario *scenario)
{
    struct sim_world *world = scenario->world;
    struct sim_process *server = scenario->servers[0].process;
    if (!server->alive) return;
    struct sim_owed owed = sim_net_owed(server, NULL);
    if (server->paused_until_us > owed.since_us) owed.since_us = server->paused_until_us;
    if (owed.longest && world->now_us > owed.since_us + leat_node_limits.stall_us + CUT_OFF_LATE_US)
        sim_fail(world, "A10 stuck: %s has taken nothing for %llu us and is not cut off",
                 owed.longest->name, (unsigned long long)(world->now_us - owed.since_us));
}

/* It has lost its connection: cut off, if the server lived on. A supervisor starts another. */
static void deaf_look(struct scenario *scenario, struct sim_client *client)
{
    const struct deaf *deaf = client->state;
    struct sim_world *world = scenario->world;
    if (!deaf || !deaf->frozen || sim_net_owed(scenario->servers[0].process, client->process).open)
        return;
    if (deaf->boots == scenario->servers[0].boots &&
        world->now_us >= deaf->frozen_us + leat_node_limits.stall_us)
        sim_fault_struck(world, SIM_FAULT_DEAF);
    sim_client_kill(client);
    if (!scenario->faults_over && client->index < DEAF_ROUNDS_MAX)
        (void)sim_client_start(scenario, SIM_CLIENT_DEAF, client->stream, client->index + 1);
}

/* Does the server still owe it something? */
static bool deaf_done(struct scenario *scenario, const struct sim_client *client)
{
    const struct deaf *deaf = client->state;
    if (!deaf || !deaf->frozen) return false;
    return sim_net_owed(scenario->servers[0].process, client->process).waiting_bytes == 0;
}

bool sim_deaf_all_done(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        struct sim_client *client = scenario->clients[i];
        if (client->kind != SIM_CLIENT_DEAF || !client->process->alive) continue;
        if (!deaf_done(scenario, client)) return false;
        deaf_look(scenario, client);
    }
    return true;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    unsigned count = scenario->client_count;
    owed_check(scenario);
    for (unsigned i = 0; i < count; i++) {
        struct sim_client *client = scenario->clients[i];
        if (client->kind == SIM_CLIENT_DEAF && client->process->alive) deaf_look(scenario, client);
    }
    sim_world_at(world, world->now_us + LOOK_EVERY_US, look, scenario);
}

/* Since when others are seen to wait while the same read keeps a buffer. */
static struct {
    uint64_t lent_us, since_us; /* since_us: 0: nobody waits */
} lent_waits[SIM_SERVERS_MAX][SIM_CORES_MAX];

/* Whoever waits for a buffer waits for reads, and for nobody who takes what was read slowly, or never. Who has begun to
 * wait at a turn's end waits until the core looks again, however old what is lent was then. */
static void lent_check(struct scenario *scenario, const struct sim_server *server)
{
    struct sim_world *world = scenario->world;
    if (!server->process->alive || !server->ready || !leat_node_has_cores(server->node)) return;
    uint64_t now_us = sim_process_now_us(server->process);
    if (world->now_us < server->process->paused_until_us + leat_node_limits.lend_us + LATE_US)
        return;
    for (uint32_t c = 0; c < scenario->cores; c++) {
        uint64_t oldest_us = leat_node_lent_us(server->node, c);
        uint64_t *since_us = &lent_waits[server->number][c].since_us;
        uint64_t *lent_us = &lent_waits[server->number][c].lent_us;
        if (oldest_us == 0) {
            *since_us = 0;
            continue;
        }
        if (*since_us == 0 || *lent_us != oldest_us) *since_us = now_us;
        *lent_us = oldest_us;
        if (now_us > *since_us + leat_node_limits.lend_us + LATE_US)
            sim_fail(world,
                     "A10 stuck: a slow reader has had a buffer of %s for %llu us, and others wait",
                     server->process->name, (unsigned long long)(now_us - oldest_us));
    }
}

static void lent_look(struct sim_world *world, struct sim_event *event)
{
    struct scenario *scenario = event->a;
    for (unsigned i = 0; i < scenario->server_count; i++)
        lent_check(scenario, &scenario->servers[i]);
    sim_world_at(world, world->now_us + LENT_LOOK_EVERY_US, lent_look, scenario);
}

void sim_deaf_watch(struct scenario *scenario)
{
    sim_world_at(scenario->world, scenario->world->now_us + LENT_LOOK_EVERY_US, lent_look,
                 scenario);
    sim_world_at(scenario->world, scenario->world->now_us + LOOK_EVERY_US, look, scenario);
}
