/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of a stream that will be deleted: each record that the consumer gets must be of this stream. */
#include "tests/sim/deletes.h"

#include <string.h>

static void shown(struct sim_client *client, struct leat_log_ref log,
                  const struct leat_fetched *fetched, const uint8_t *bytes, size_t count)
{
    struct sim_world *world = client->scenario->world;
    struct leat_batch batch;
    struct leat_error error = {LEAT_OK, ""};
    struct leat_record_reader reader;
    struct leat_record record;
    const uint8_t *records;
    size_t records_bytes;
    if (leat_batch_check(bytes, count, &batch, &error) != LEAT_OK ||
        leat_batch_records(&batch, NULL, 0, &records, &records_bytes) != LEAT_OK) {
        sim_fail(world, "A5 aborted-read: damaged batch: %s", error.text);
        return;
    }
    leat_record_reader_init(&reader, &batch, records, records_bytes);
    while (leat_record_next(&reader, &record) == LEAT_OK) {
        uint32_t words[3] = {0};
        uint64_t offset = batch.base_offset + record.offset_delta;
        if (offset < fetched->from_offset || offset >= fetched->end_offset) continue;
        if (record.value_bytes >= sizeof words) memcpy(words, record.value, sizeof words);
        if (words[2] != SIM_THROWN_MAGIC)
            sim_fail(world, "A5 aborted-read: stream %u shows a record of others", log.stream);
        else
            sim_deletes_seen(sim_deletes_of(client->scenario), words[0], log, offset);
    }
}

static void take(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    struct leat_fetched *fetched;
    (void)world;
    while (client->consumer && (fetched = leat_consumer_engine_take(client->consumer)) != NULL) {
        struct leat_log_ref log = fetched->log;
        const uint8_t *at = fetched->bytes;
        for (size_t left = fetched->byte_count; left > 0;) {
            size_t bytes = (size_t)leat_batch_bytes(at, left);
            if (bytes == 0 || bytes > left) break;
            shown(client, log, fetched, at, bytes);
            at += bytes;
            left -= bytes;
        }
        leat_consumer_engine_give(client->consumer, fetched);
    }
}

static void on_ready(void *owner, leat_err rc, const struct leat_error *error)
{
    struct sim_client *client = owner;
    sim_trace(client->scenario->world, "ready: %s %s", leat_err_name(rc), error ? error->text : "");
}

static void on_fetched(void *owner)
{
    struct sim_client *client = owner;
    sim_actor_post(client->actor, sim_rng_between(&client->rng, 10, 3000), take, client);
}

/* The stream is deleted, or waits for records that went with the power: the client that deletes the stream does not
 * mind. */
static void on_error(void *owner, const struct leat_error *error)
{
    struct sim_client *client = owner;
    sim_trace(client->scenario->world, "onlooker: %s: %s", leat_err_name(error->code), error->text);
}

static void on_revoked(void *owner)
{
    (void)owner;
}

leat_err sim_onlooker_start(struct sim_client *client)
{
    struct leat_consumer_engine_options options = {
        .stream = sim_deletes_of(client->scenario)->names[client->stream - SIM_STREAMS],
        .from = LEAT_ENGINE_EARLIEST,
        .streamlet = -1,
        .log = -1,
        .fetch_bytes = (uint32_t)sim_rng_between(&client->rng, 2000, 100000),
        .min_bytes = 1,
        .wait_ms = (uint32_t)sim_rng_between(&client->rng, 20, 500),
        .session_ms = 3000,
        .prefetch = 2,
        .actor = client,
    };
    struct leat_consumer_engine_events events = {on_ready, on_fetched, on_error, on_revoked,
                                                 client};
    return leat_consumer_engine_create(&client->actor->env, &client->timers, client->client,
                                       &options, &events, &client->consumer);
}
