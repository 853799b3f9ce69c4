/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers: alone, in groups, and the verifier of the final pass. */
#include "tests/sim/kafka_client.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "consumer/probe.h"

enum { RECORDS_BYTES_MAX = 256 * 1024 };

static void seen(struct sim_client *client, const struct leat_fetched *fetched,
                 struct leat_log_ref log, const struct leat_record *record, uint64_t offset)
{
    struct scenario *scenario = client->scenario;
    uint32_t words[3];
    if (offset < fetched->from_offset || offset >= fetched->end_offset) return;
    if (record->value_bytes < sizeof words) {
        sim_fail(scenario->world, "A5 aborted-read: a value of %u bytes", record->value_bytes);
        return;
    }
    memcpy(words, record->value, sizeof words);
    if (words[2] != log.stream) {
        sim_fail(scenario->world, "A5 aborted-read: stream %u shows a record of stream %u",
                 log.stream, words[2]);
        return;
    }
    check_seen(scenario->check, &client->reader, log, offset,
               (struct check_value){words[0], words[1]});
    if (fetched->group >= 0) check_shared(scenario->check, log, offset, (uint64_t)fetched->group);
    client->processed[log.streamlet][log.log] = offset + 1;
}

static bool batch_read(struct sim_client *client, const struct leat_fetched *fetched,
                       struct leat_log_ref log, const uint8_t *bytes, size_t count)
{
    static uint8_t space[RECORDS_BYTES_MAX];
    struct leat_batch batch;
    struct leat_error error = {LEAT_OK, ""};
    const uint8_t *records;
    size_t records_bytes;
    if (leat_batch_check(bytes, count, &batch, &error) != LEAT_OK) {
        sim_fail(client->scenario->world, "A5 aborted-read: damaged batch: %s", error.text);
        return false;
    }
    if (batch.max_timestamp_ms != (int64_t)leat_get_be64(bytes + 35)) {
        sim_fail(client->scenario->world, "A5 aborted-read: a header tells another highest time");
        return false;
    }
    leat_err rc = leat_batch_records(&batch, space, sizeof space, &records, &records_bytes);
    if (rc != LEAT_OK) {
        sim_fail(client->scenario->world, "A5 aborted-read: records: %s", leat_err_name(rc));
        return false;
    }
    check_stored(client->scenario->check, log, batch.base_offset, batch.record_count,
                 (uint32_t)count);
    struct leat_record_reader reader;
    struct leat_record record;
    leat_record_reader_init(&reader, &batch, records, records_bytes);
    while ((rc = leat_record_next(&reader, &record)) == LEAT_OK)
        seen(client, fetched, log, &record, batch.base_offset + record.offset_delta);
    if (rc != LEAT_E_NOT_FOUND)
        sim_fail(client->scenario->world, "A5 aborted-read: record: %s", leat_err_name(rc));
    sim_address_shown(client, log, batch.base_offset, batch.record_count);
    return true;
}

/* A verifier with a number reads one log. */
static struct leat_log_ref only_log(const struct sim_client *client)
{
    uint32_t at = client->index - 1;
    return (struct leat_log_ref){client->stream, at / CHECK_LOGS_MAX, at % CHECK_LOGS_MAX};
}

/* Where a log begins is said by its last segment. Where that is what the bit hit, and is called damaged for
 * it (by the row at the start, or by whoever reads its bytes behind that), what is left does not know of
 * trims since, and is all shown. */
static void floor_give_up(struct sim_client *client)
{
    struct scenario *scenario = client->scenario;
    if (client->kind != SIM_CLIENT_VERIFIER || client->index == 0 || !scenario->corrupt) return;
    struct leat_log_ref log = only_log(client);
    bool *named = &scenario->named[log.stream][log.streamlet][log.log];
    if (!*named && sim_copies_damaged(scenario, &scenario->servers[0], log))
        sim_rot_named(scenario, log, "its owner says so");
    if (*named) memset(client->reader.floor, 0, sizeof client->reader.floor);
}

void sim_run_read(struct sim_client *client, const struct leat_fetched *fetched)
{
    struct leat_log_ref log = fetched->log;
    if (!sim_stream_of(client->scenario, fetched->log.stream, &log.stream) ||
        log.stream != client->stream) {
        sim_fail(client->scenario->world, "A5 aborted-read: a fetch of stream id %u",
                 fetched->log.stream);
        return;
    }
    uint32_t generation = client->generation;
    if (client->consumer) (void)leat_consumer_is_member(client->consumer, &generation);
    if (client->reader.in_group)
        check_owned(client->scenario->check, client->reader.group, log, generation, client->number);
    floor_give_up(client);
    const uint8_t *at = fetched->bytes;
    size_t left = fetched->byte_count;
    while (left) {
        uint64_t bytes = leat_batch_bytes(at, left);
        if (bytes == 0 || bytes > left) {
            sim_fail(client->scenario->world, "A5 aborted-read: a batch of %llu bytes, %zu left",
                     (unsigned long long)bytes, left);
            return;
        }
        if (!batch_read(client, fetched, log, at, (size_t)bytes)) return;
        at += bytes;
        left -= (size_t)bytes;
    }
}

static void committed(void *arg, leat_err rc, const struct leat_error *error)
{
    struct sim_client *client = arg;
    client->commit_under_way = false;
    sim_trace(client->scenario->world, "commit: %s", leat_err_name(rc));
    if (rc != LEAT_OK || !client->reader.in_group) return;
    const struct leat_stream_settings *settings =
        &client->scenario->streams[client->stream].settings;
    for (uint32_t s = 0; s < settings->streamlets; s++)
        for (uint32_t q = 0; q < settings->logs; q++)
            if (client->committing[s][q])
                check_committed(client->scenario->check, client->reader.group,
                                (struct leat_log_ref){client->stream, s, q},
                                client->committing[s][q]);
    (void)error;
}

/* What has been handed over is processed at once; now and then it is committed. */
static void progress_note(struct sim_client *client, struct leat_log_ref server_log, int64_t group)
{
    uint64_t offset = client->processed[server_log.streamlet][server_log.log];
    if (!offset || client->reader.verifier) return;
    leat_consumer_engine_processed(client->consumer, server_log, group, offset);
    if (client->kind == SIM_CLIENT_READER || client->commit_under_way ||
        !sim_rng_chance(&client->rng, 300))
        return;
    client->commit_under_way = true;
    memcpy(client->committing, client->processed, sizeof client->committing);
    leat_consumer_engine_commit(client->consumer, committed, client);
}

static void take_later(struct sim_world *world, struct sim_event *event);

static void take_all(struct sim_client *client)
{
    struct leat_fetched *fetched;
    unsigned budget = (unsigned)sim_rng_between(&client->rng, 1, 8);
    while ((fetched = leat_consumer_engine_take(client->consumer)) != NULL) {
        struct leat_log_ref log = fetched->log;
        int64_t group = fetched->group;
        if (client->reader.unordered) client->processed[log.streamlet][log.log] = 0;
        sim_run_read(client, fetched);
        leat_consumer_engine_give(client->consumer, fetched);
        progress_note(client, log, group);
        if (--budget == 0) { /* a consumer is not always fast */
            sim_actor_post(client->actor, sim_rng_between(&client->rng, 10, 3000), take_later,
                           client);
            return;
        }
    }
}

static void take_later(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    if (client->consumer) take_all(client);
    (void)world;
}

/* What a supervisor does with a consumer that ended. */
static void start_anew(struct sim_world *world, struct sim_event *event)
{
    struct sim_client *client = event->a;
    (void)sim_client_start(client->scenario, client->kind, client->stream, client->index);
    sim_client_kill(client);
    (void)world;
}

/* The engine has ended. */
static void refused(struct sim_client *client, leat_err rc, const struct leat_error *error)
{
    if (client->scenario->corrupt && client->index > 0) { /* the only log it reads */
        client->given_up = true;
        sim_rot_named(client->scenario, only_log(client), error ? error->text : "");
        return;
    }
    /* Damage on the disk of the only machine whose disk is damaged: others have the records, once the disk was
     * emptied. */
    struct sim_server *victim = client->scenario->victim;
    if (victim && victim->corrupt && rc == LEAT_E_DAMAGED) {
        sim_damage_named(victim);
        client->given_up = true;
        sim_world_at(client->scenario->world, client->scenario->world->now_us + 1000000, start_anew,
                     client);
        return;
    }
    /* The records were lost with the power, and the log says so; or a disk error ended the log. */
    const struct scenario *scenario = client->scenario;
    bool memory = scenario->streams[client->stream].settings.durability == LEAT_DURABILITY_MEMORY;
    client->given_up =
        (memory && rc == LEAT_E_DAMAGED && check_stream_excused(scenario->check, client->stream)) ||
        (rc == LEAT_E_DISK && scenario->world->faults[SIM_FAULT_IO_ERROR]);
    if (client->given_up && rc == LEAT_E_DISK)
        sim_world_at(scenario->world, scenario->world->now_us + 500000, start_anew, client);
    if (!client->given_up)
        sim_fail(client->scenario->world, "A10 stuck: consumer %s is refused: %s: %s",
                 client->process->name, leat_err_name(rc), error ? error->text : "");
}

static void on_ready(void *owner, leat_err rc, const struct leat_error *error)
{
    struct sim_client *client = owner;
    sim_trace(client->scenario->world, "ready: %s %s", leat_err_name(rc), error ? error->text : "");
    if (rc != LEAT_OK) refused(client, rc, error);
}

static void on_fetched(void *owner)
{
    struct sim_client *client = owner;
    sim_actor_post(client->actor, 0, take_later, client);
}

/* A verifier of one log after a bit was flipped: where that was the log's end nobody has another copy, and all in
 * front of it was read. */
static bool waits_for_what_rots(const struct sim_client *client, const struct leat_error *error)
{
    return client->scenario->corrupt && client->index > 0 && error->code == LEAT_E_AGAIN &&
           strstr(error->text, "the log's end is missing") != NULL;
}

static void on_error(void *owner, const struct leat_error *error)
{
    struct sim_client *client = owner;
    sim_trace(client->scenario->world, "consumer error: %s: %s", leat_err_name(error->code),
              error->text);
    memcpy(client->told, error->text, sizeof client->told);
    enum leat_err_class class = leat_err_class(error->code);
    if (class == LEAT_CLASS_FATAL || class == LEAT_CLASS_REJECT ||
        waits_for_what_rots(client, error))
        refused(client, error->code, error);
}

static void on_revoked(void *owner)
{
    struct sim_client *client = owner;
    sim_trace(client->scenario->world, "revoked");
    check_reader_reset(client->scenario->check, &client->reader);
    memset(client->processed, 0, sizeof client->processed);
}

leat_err sim_consumer_create(struct sim_client *client)
{
    struct scenario *scenario = client->scenario;
    bool member = client->kind == SIM_CLIENT_MEMBER, sharer = client->kind == SIM_CLIENT_SHARER;
    struct leat_consumer_engine_options options = {
        .stream = scenario->streams[client->stream].name,
        .group = member   ? "members"
                 : sharer ? "sharers"
                          : NULL,
        .parallel = sharer,
        .from = LEAT_ENGINE_EARLIEST,
        .streamlet = -1,
        .log = -1,
        .fetch_bytes = (uint32_t)sim_rng_between(&client->rng, 2000, 100000),
        .min_bytes = client->index % 2 ? 2000 : 1,
        .wait_ms = (uint32_t)sim_rng_between(&client->rng, 20, 500),
        .session_ms = 3000,
        .prefetch = (uint32_t)sim_rng_between(&client->rng, 1, 3),
        .actor = client,
    };
    struct leat_consumer_engine_events events = {on_ready, on_fetched, on_error, on_revoked,
                                                 client};
    if (client->kind == SIM_CLIENT_VERIFIER && client->index > 0) {
        options.streamlet = (int32_t)only_log(client).streamlet;
        options.log = (int32_t)only_log(client).log;
    }
    client->reader.in_group = member;
    client->reader.unordered = sharer;
    client->reader.verifier = client->kind == SIM_CLIENT_VERIFIER;
    client->reader.group = 0;
    check_reader_reset(scenario->check, &client->reader);
    return leat_consumer_engine_create(&client->actor->env, &client->timers, client->client,
                                       &options, &events, &client->consumer);
}

/* What retention took, or somebody gave up, before it was read is not waited for. */
bool sim_consumer_at_end(const struct sim_client *client)
{
    bool incomplete = client->scenario->streams[client->stream].trims || client->index > 0 ||
                      check_stream_trims(client->scenario->check, client->stream);
    if (client->kind == SIM_CLIENT_KAFKA_READER) return incomplete && sim_kafka_at_end(client);
    return incomplete && client->consumer && leat_consumer_engine_at_end(client->consumer);
}

bool sim_consumer_done(const struct sim_client *client)
{
    if (client->given_up || sim_consumer_at_end(client)) return true;
    return check_reader_done(client->scenario->check, &client->reader, client->stream,
                             client->scenario->behind);
}
