/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated clients: each a process of one actor that runs the library's own engines. */
#include "tests/sim/kafka_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* A record's callback argument names the record: no memory to own. */
static void *tag_make(uint32_t producer, uint32_t stream, uint32_t number)
{
    return (void *)(((uintptr_t)producer << 48) | ((uintptr_t)stream << 40) | number);
}

static struct scenario *scenario_of_seed; /* one per process: leat-sim forks for each seed */

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

/* ---- producers ---- */

static void on_produced(void *arg, const struct leat_produced *produced)
{
    struct scenario *scenario = scenario_of_seed;
    uintptr_t tag = (uintptr_t)arg;
    uint32_t stream = (uint32_t)(tag >> 40) & 0xff;
    struct check_value value = {(uint32_t)(tag >> 48), (uint32_t)tag};
    if (produced->rc == LEAT_OK && produced->offset != UINT64_MAX) {
        struct leat_log_ref log = {stream, produced->log.streamlet, produced->log.log};
        if (produced->log.stream != scenario->streams[stream].id) {
            sim_fail(scenario->world, "A4 inconsistent-offsets: ack of stream %u names stream %u",
                     scenario->streams[stream].id, produced->log.stream);
            return;
        }
        sim_trace(scenario->world, "%u/%u/%u value %u:%u acked at %llu", log.stream, log.streamlet,
                  log.log, value.producer, value.number, (unsigned long long)produced->offset);
        check_acked(scenario->check, log, value, produced->offset);
        sim_copies_acked(scenario, log);
        return;
    }
    sim_trace(scenario->world, "stream %u value %u:%u: %s: %s", stream, value.producer,
              value.number, leat_err_name(produced->rc), produced->text ? produced->text : "");
    /* As include/leat/producer.h has it. */
    bool definite = leat_err_class(produced->rc) == LEAT_CLASS_REJECT &&
                    produced->rc != LEAT_E_ALREADY_APPENDED;
    check_failed(scenario->check, stream, value, definite);
    /* Whether the code is one that promises or not, people are told. */
    if (definite && produced->text && strstr(produced->text, "is unknown"))
        sim_fail(scenario->world,
                 "A5 aborted-read: stream %u value %u:%u is told as definitely refused, by %s, and "
                 "as unknown: %s",
                 stream, value.producer, value.number, leat_err_name(produced->rc), produced->text);
    /* A level-memory log loses the states of its producers with the power, too. */
    struct leat_log_ref log = {stream, produced->log.streamlet, produced->log.log};
    bool excused = scenario->streams[stream].settings.durability == LEAT_DURABILITY_MEMORY &&
                   log.streamlet < CHECK_STREAMLETS_MAX && log.log < CHECK_LOGS_MAX &&
                   check_at_risk(scenario->check, log);
    /* A log whose flush failed is stopped, and says so; the outcome of what waited is unknown. */
    if ((leat_err_class(produced->rc) == LEAT_CLASS_FATAL || produced->rc == LEAT_E_CANCELLED) &&
        scenario->world->faults[SIM_FAULT_IO_ERROR])
        excused = true;
    if (produced->rc != LEAT_OK && !excused)
        sim_fail(scenario->world,
                 "A10 stuck: a well-behaved producer is refused: stream %u value %u:%u: %s: %s",
                 stream, value.producer, value.number, leat_err_name(produced->rc),
                 produced->text ? produced->text : "");
}

enum { MORE_RECORDS = 20, END_LOOK_US = 20000 };

static void produce_tick(struct sim_world *world, struct sim_event *event);

static bool produce_one(struct sim_client *client)
{
    struct scenario *scenario = client->scenario;
    uint8_t value[12 + 1600 + 8000];
    uint32_t stream = (uint32_t)sim_rng_below(&client->rng, SIM_STREAMS);
    uint32_t number = client->sent[stream];
    size_t bytes = 12 + (size_t)sim_rng_below(&client->rng, scenario->value_bytes);
    if (sim_rng_chance(&client->rng, 5)) bytes += (size_t)sim_rng_below(&client->rng, 8000);
    memcpy(value, &client->index, 4);
    memcpy(value + 4, &number, 4);
    memcpy(value + 8, &stream, 4);
    memset(value + 12, (int)(number & 0xff), bytes - 12);
    /* One way of routing per producer: only then does one log get its records in the order in
     * which they were added. */
    int32_t streamlet = -1;
    uint8_t key = (uint8_t)sim_rng_below(&client->rng, 20);
    if (client->index % 3 == 0)
        streamlet =
            (int32_t)sim_rng_below(&client->rng, scenario->streams[stream].settings.streamlets);
    leat_err rc = leat_producer_engine_add(
        client->producer, scenario->streams[stream].name, streamlet,
        (int64_t)(scenario->world->wall_base_ms + (int64_t)(scenario->world->now_us / 1000)),
        client->index % 3 == 1 ? &key : NULL, client->index % 3 == 1 ? 1 : 0, value, bytes,
        on_produced, tag_make(client->index, stream, number));
    if (rc == LEAT_E_AGAIN) return false;
    if (rc != LEAT_OK) {
        sim_fail(scenario->world, "A10 stuck: a record is refused at once: %s", leat_err_name(rc));
        return false;
    }
    check_sent(scenario->check, stream, (struct check_value){client->index, number});
    client->sent[stream]++;
    client->quota--;
    return true;
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

/* All is given. Where many records went together that were too few batches: when all is answered there
 * come more. */
static void produce_end(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    struct scenario *scenario = client->scenario;
    if (sim_acked_batches(scenario) >= scenario->batches_min) {
        scenario->producers_running--;
    } else if (leat_producer_engine_open_records(client->producer)) {
        sim_actor_post(client->actor, END_LOOK_US, produce_end, client);
    } else {
        client->quota = MORE_RECORDS;
        sim_actor_post(client->actor, 0, produce_tick, client);
    }
    (void)world;
}

static void produce_more(struct sim_client *client)
{
    struct sim_rng *rng = &client->rng;
    client->waits_for_room = false;
    uint64_t burst = sim_rng_between(rng, 1, 12);
    while (burst-- > 0 && client->quota) {
        if (!produce_one(client)) {
            client->waits_for_room = true;
            break;
        }
    }
    if (!client->quota) {
        leat_producer_engine_flush(client->producer);
        sim_actor_post(client->actor, 0, produce_end, client);
        return;
    }
    uint64_t pause_us = sim_rng_between(rng, 200, client->scenario->pause_us_max);
    if (sim_rng_chance(rng, 10)) pause_us += sim_rng_below(rng, 2500000); /* logs fall idle */
    sim_actor_post(client->actor, pause_us, produce_tick, client);
}

static void produce_tick(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    if (client->quota && client->scenario->streams_made)
        produce_more(client);
    else if (client->quota)
        sim_actor_post(client->actor, 2000, produce_tick, client);
    (void)world;
}

static leat_err producer_create(struct sim_client *client)
{
    struct sim_rng *rng = &client->rng;
    struct leat_producer_engine_options options = {
        .batch_bytes = (uint32_t)sim_rng_between(rng, 256, 2000),
        .linger_us = (uint32_t)sim_rng_between(rng, 0, 2000),
        .codec = sim_rng_chance(rng, 250)   ? LEAT_CODEC_LZ4
                 : sim_rng_chance(rng, 250) ? LEAT_CODEC_ZSTD
                                            : LEAT_CODEC_NONE,
        .buffer_bytes = (uint32_t)sim_rng_between(rng, 64 * 1024, 1024 * 1024),
        .timeout_us = 3600ull * 1000000,
        .create_streams = false,
        .actor = client,
    };
    leat_err rc = leat_producer_engine_create(&client->actor->env, &client->timers, client->client,
                                              &options, &client->producer);
    if (rc == LEAT_OK) sim_actor_post(client->actor, 1000, produce_tick, client);
    return rc;
}

/* ---- what all have ---- */

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

/* The library waits for 10 ms to a second. Some here are hastier, and meet what is over after a millisecond. */
enum { RETRY_US_LEAST = 2000, RETRY_US_USUAL = 10 * 1000, RETRY_US_MAX = 100 * 1000 };

static void client_create(void *arg)
{
    struct sim_client *client = arg;
    struct leat_client_options options = {
        .name = client->process->name,
        .addresses = client->scenario->addresses,
        .request_timeout_us = sim_rng_between(&client->rng, 500000, 5000000),
        .retry_us_min = sim_rng_between(&client->rng, RETRY_US_LEAST, RETRY_US_USUAL),
        .retry_us_max = RETRY_US_MAX,
        .streams_max = SIM_STREAMS + 2,
        .actor = client,
    };
    struct leat_error error;
    leat_err rc = leat_timers_init(&client->timers, &client->actor->clock, SIM_CLIENT_TIMERS);
    LEAT_ASSERT(rc == LEAT_OK);
    switch (client->kind) {
    case SIM_CLIENT_KAFKA_PRODUCER:
        sim_kafka_producer_start(client);
        return;
    case SIM_CLIENT_KAFKA_READER:
    case SIM_CLIENT_KAFKA_MEMBER:
        sim_kafka_puller_start(client);
        return;
    case SIM_CLIENT_IMPOSTOR:
        sim_impostor_start(client);
        break;
    case SIM_CLIENT_CUTTER:
        sim_cutter_start(client);
        return;
    default:
        break;
    }
    rc =
        leat_client_create(&client->actor->env, &client->timers, &options, &client->client, &error);
    LEAT_ASSERT(rc == LEAT_OK);
    switch (client->kind) {
    case SIM_CLIENT_CONTROL:
        sim_control_start(client);
        break;
    case SIM_CLIENT_RAW:
        sim_raw_start(client);
        break;
    case SIM_CLIENT_DEAF:
        sim_deaf_start(client);
        break;
    case SIM_CLIENT_TRIMMER:
        sim_trim_start(client);
        break;
    case SIM_CLIENT_DELETER:
        rc = sim_deleter_start(client);
        break;
    case SIM_CLIENT_ONLOOKER:
        rc = sim_onlooker_start(client);
        break;
    case SIM_CLIENT_PRODUCER:
        rc = producer_create(client);
        break;
    case SIM_CLIENT_READER:
    case SIM_CLIENT_MEMBER:
    case SIM_CLIENT_SHARER:
    case SIM_CLIENT_VERIFIER:
        rc = sim_consumer_create(client);
        break;
    default: /* those of Kafka's protocol */
        break;
    }
    LEAT_ASSERT(rc == LEAT_OK);
}

static void client_begin(struct sim_world *world, struct sim_event *event)
{
    client_create(event->a);
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
    scenario_of_seed = scenario;
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
