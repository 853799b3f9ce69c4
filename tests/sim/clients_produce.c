/* SPDX-License-Identifier: Apache-2.0 */
/* Producers that run the library's own engine. */
#include "tests/sim/scenario.h"

#include <string.h>

/* A record's callback argument names the record: no memory to own. */
static void *tag_make(uint32_t producer, uint32_t stream, uint32_t number)
{
    return (void *)(((uintptr_t)producer << 48) | ((uintptr_t)stream << 40) | number);
}

static struct scenario *scenario_of_seed; /* one per process: leat-sim forks for each seed */

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

leat_err sim_producer_create(struct sim_client *client)
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
    scenario_of_seed = client->scenario;
    leat_err rc = leat_producer_engine_create(&client->actor->env, &client->timers, client->client,
                                              &options, &client->producer);
    if (rc == LEAT_OK) sim_actor_post(client->actor, 1000, produce_tick, client);
    return rc;
}
