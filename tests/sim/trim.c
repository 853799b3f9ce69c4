/* SPDX-License-Identifier: Apache-2.0 */
/* A client that gives up the records at the front of logs: up to any offset, often all that is there, while they are
 * written to and read. The outcome of a request is known only when it is answered; the request is sent until then. */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/message.h"

enum { DEATH_PER_MILLE = 60 };

struct trimmer {
    struct sim_client *client;
    struct leat_request request;
    struct leat_client_lookup lookup;
    uint8_t control[512];
    struct leat_log_ref log; /* stream: the scenario's */
    uint64_t before;
    uint32_t left; /* logs of a last round, each once, from the first on; 0: no such round */
    bool refresh;
    bool wanted; /* a request that has no good answer yet */
    bool over;
};

static void trim_next(struct sim_world *world, struct sim_event *event);

static void later(struct trimmer *trimmer, uint64_t delay_us)
{
    sim_actor_post(trimmer->client->actor, delay_us, trim_next, trimmer);
}

static void on_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                    const struct leat_error *error)
{
    struct trimmer *trimmer = request->owner;
    struct sim_client *client = trimmer->client;
    struct scenario *scenario = client->scenario;
    struct leat_log_ref log = trimmer->log;
    struct leat_msg_trimmed trimmed = {0};
    if (rc == LEAT_OK) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        leat_msg_trimmed_read(&reader, &trimmed);
        if (reader.failed) sim_fail(scenario->world, "A5 aborted-read: no answer of a trim");
    }
    sim_trace(scenario->world, "trim of %u/%u/%u before %llu: %s, begins at %llu %s", log.stream,
              log.streamlet, log.log, (unsigned long long)trimmer->before, leat_err_name(rc),
              (unsigned long long)trimmed.first_offset, error ? error->text : "");
    if (rc != LEAT_OK) { /* it may have been done, or be done later */
        trimmer->refresh = true;
        later(trimmer, sim_rng_between(&client->rng, 1000, 60000));
        return;
    }
    check_trimmed(scenario->check, log, trimmer->before, trimmed.first_offset);
    sim_fault_struck(scenario->world, SIM_FAULT_TRIM);
    scenario->trims++;
    trimmer->wanted = false;
    if (trimmer->left > 0) trimmer->left--;
    later(trimmer, sim_rng_between(&client->rng, 500,
                                   trimmer->left || scenario->trims_on_wish ? 2000 : 300000));
}

static void on_cut(void *arg)
{
    const struct sim_server *server = arg;
    sim_fault_struck(server->scenario->world, SIM_FAULT_POWER_OP);
}

/* What is under way at a log's owner while it begins later takes a millisecond and comes seldom: whoever
 * owns it dies amid. */
static void owner_dies(struct trimmer *trimmer)
{
    struct scenario *scenario = trimmer->client->scenario;
    struct sim_rng *rng = &trimmer->client->rng;
    if (scenario->calm || scenario->faults_over || !sim_rng_chance(rng, DEATH_PER_MILLE)) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        struct sim_server *server = &scenario->servers[i];
        if (!server->process || !server->process->alive || server->process->die_in_calls) continue;
        if (!sim_copies_owns(scenario, server, trimmer->log)) continue;
        bool power = sim_death_of(server, SIM_DEATH_POWER) == SIM_DEATH_POWER;
        if (power && sim_rng_chance(rng, 500)) {
            sim_disk_aim(server->disk, sim_rng_between(rng, 1, 20),
                         (enum sim_cut_phase)sim_rng_below(rng, 3), on_cut, server);
            return;
        }
        server->process->death = SIM_DEATH_KILL;
        server->process->die_in_calls = sim_rng_between(rng, 1, 600);
        sim_fault_struck(scenario->world, SIM_FAULT_KILL_CALL);
        return;
    }
}

static void request_send(struct trimmer *trimmer)
{
    struct scenario *scenario = trimmer->client->scenario;
    const struct sim_stream *stream = &scenario->streams[trimmer->log.stream];
    struct leat_msg_trim trim = {
        .stream = {stream->name, (uint32_t)strlen(stream->name)},
        .streamlet = trimmer->log.streamlet,
        .log = trimmer->log.log,
        .before = trimmer->before,
    };
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, trimmer->control, sizeof trimmer->control);
    leat_msg_trim_write(&writer, &trim);
    LEAT_ASSERT(!writer.overflow);
    trimmer->request = (struct leat_request){
        .kind = LEAT_KIND_STREAM_TRIM,
        .log = {stream->id, trimmer->log.streamlet, trimmer->log.log},
        .control = trimmer->control,
        .control_bytes = writer.used,
        .on_done = on_done,
        .owner = trimmer,
    };
    check_trim_asked(scenario->check, trimmer->log, trimmer->before);
    owner_dies(trimmer);
    if (leat_client_send(trimmer->client->client, &trimmer->request) == LEAT_OK) return;
    trimmer->refresh = true;
    later(trimmer, 5000);
}

/* Only a log's owner does it. */
static void looked_up(struct leat_client_lookup *lookup, leat_err rc,
                      const struct leat_client_stream *stream, const struct leat_error *error)
{
    struct trimmer *trimmer = lookup->owner;
    (void)stream, (void)error;
    trimmer->refresh = rc != LEAT_OK;
    if (rc != LEAT_OK)
        later(trimmer, 20000);
    else
        request_send(trimmer);
}

static void look_up(struct trimmer *trimmer)
{
    const struct sim_stream *stream = &trimmer->client->scenario->streams[trimmer->log.stream];
    trimmer->lookup =
        (struct leat_client_lookup){.timeout_us = 2000000, .on_done = looked_up, .owner = trimmer};
    memcpy(trimmer->lookup.name, stream->name, sizeof stream->name);
    leat_client_lookup(trimmer->client->client, &trimmer->lookup);
}

/* The n-th log of all. */
static struct leat_log_ref log_at(const struct scenario *scenario, uint32_t n)
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        const struct leat_stream_settings *settings = &scenario->streams[i].settings;
        uint32_t logs = settings->streamlets * settings->logs;
        if (n < logs) return (struct leat_log_ref){i, n / settings->logs, n % settings->logs};
        n -= logs;
    }
    LEAT_ASSERT(false);
    return (struct leat_log_ref){0};
}

static uint32_t log_count(const struct scenario *scenario)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        count += scenario->streams[i].settings.streamlets * scenario->streams[i].settings.logs;
    return count;
}

/* Often the end: then nothing is left but the place where the log goes on. "All that is acked", whatever has been acked
 * when the request arrives, is rare: until the request is answered the log may begin at any offset. */
static void choose(struct trimmer *trimmer)
{
    struct scenario *scenario = trimmer->client->scenario;
    struct sim_rng *rng = &trimmer->client->rng;
    uint32_t n =
        trimmer->left ? trimmer->left - 1 : (uint32_t)sim_rng_below(rng, log_count(scenario));
    trimmer->log = log_at(scenario, n);
    trimmer->wanted = true;
    if (scenario->trim_wished) {
        scenario->trim_wished = false;
        trimmer->log = scenario->trim_wish;
        trimmer->before = check_acked_end(scenario->check, trimmer->log);
        return;
    }
    uint64_t low, end = check_acked_end(scenario->check, trimmer->log);
    low = check_trimmed_to(scenario->check, trimmer->log);
    uint64_t pick = sim_rng_below(rng, 100);
    if (pick < 5)
        trimmer->before = UINT64_MAX;
    else if (pick < 50 || low >= end)
        trimmer->before = end;
    else
        trimmer->before = sim_rng_between(rng, low, end);
}

static void trim_next(struct sim_world *world, struct sim_event *event)
{
    struct trimmer *trimmer = event->a;
    const struct scenario *scenario = trimmer->client->scenario;
    (void)world;
    if (!scenario->streams_made) {
        later(trimmer, 20000);
        return;
    }
    if (!trimmer->wanted) {
        trimmer->over = scenario->faults_over && trimmer->left == 0;
        if (trimmer->over) return;
        if (scenario->trims_on_wish && !scenario->trim_wished && !trimmer->left) {
            later(trimmer, 5000);
            return;
        }
        choose(trimmer);
    }
    const char *name = scenario->streams[trimmer->log.stream].name;
    if (trimmer->refresh || !leat_client_stream(trimmer->client->client, name))
        look_up(trimmer);
    else
        request_send(trimmer);
}

void sim_trim_start(struct sim_client *client)
{
    struct trimmer *trimmer = calloc(1, sizeof *trimmer);
    LEAT_ASSERT(trimmer != NULL);
    trimmer->client = client;
    client->state = trimmer;
    later(trimmer, 1000);
}

bool sim_trim_done(const struct sim_client *client)
{
    const struct trimmer *trimmer = client->state;
    return trimmer && trimmer->over;
}

void sim_trim_all(struct sim_client *client)
{
    struct trimmer *trimmer = client->state;
    LEAT_ASSERT(trimmer->over);
    trimmer->over = false;
    trimmer->left = log_count(client->scenario);
    later(trimmer, 1000);
}
