/* SPDX-License-Identifier: Apache-2.0 */
/* libleat's consumer, for the caller: opening, closing, seeking, committing. */
#include "handle.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CONSUMER_FETCH_BYTES_DEFAULT = 1024 * 1024,
    CONSUMER_FETCH_BYTES_MAX = 4 * 1024 * 1024,
    CONSUMER_WAIT_MS_DEFAULT = 500,
    CONSUMER_SESSION_MS_DEFAULT = 10 * 1000,
    CONSUMER_PREFETCH_DEFAULT = 2,
    CONSUMER_REQUEST_TIMEOUT_MS = 30 * 1000,
    COMMIT_AGAIN_US = 10 * 1000,
    COMMIT_AGAIN_US_MAX = 160 * 1000,
};

/* ---- opening and closing ---- */

void leat_consumer_options_init(leat_consumer_options *options)
{
    *options = (leat_consumer_options){
        .struct_bytes = sizeof *options,
        .from = LEAT_FROM_EARLIEST,
        .streamlet = -1,
        .log = -1,
        .fetch_bytes = CONSUMER_FETCH_BYTES_DEFAULT,
        .min_bytes = 1,
        .wait_ms = CONSUMER_WAIT_MS_DEFAULT,
        .session_ms = CONSUMER_SESSION_MS_DEFAULT,
        .prefetch = CONSUMER_PREFETCH_DEFAULT,
    };
}

static leat_err options_take(const leat_consumer_options *given, leat_consumer_options *out,
                             struct leat_error *error)
{
    leat_consumer_options_init(out);
    if (given) {
        if (given->struct_bytes != sizeof *out)
            return leat_error_set(error, LEAT_E_CONFIG,
                                  "options.struct_bytes is %zu; call leat_consumer_options_init()",
                                  given->struct_bytes);
        *out = *given;
    }
    if (!out->fetch_bytes) out->fetch_bytes = CONSUMER_FETCH_BYTES_DEFAULT;
    if (!out->wait_ms) out->wait_ms = CONSUMER_WAIT_MS_DEFAULT;
    if (!out->session_ms) out->session_ms = CONSUMER_SESSION_MS_DEFAULT;
    if (!out->prefetch) out->prefetch = CONSUMER_PREFETCH_DEFAULT;
    if (out->fetch_bytes > CONSUMER_FETCH_BYTES_MAX)
        return leat_error_set(error, LEAT_E_CONFIG, "fetch_bytes is %u; at most %d",
                              out->fetch_bytes, CONSUMER_FETCH_BYTES_MAX);
    if (!out->min_bytes) out->min_bytes = 1;
    if (out->min_bytes > out->fetch_bytes)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "min_bytes is %u, more than an answer's most: fetch_bytes, %u",
                              out->min_bytes, out->fetch_bytes);
    if (out->from == LEAT_FROM_COMMITTED && !out->group)
        return leat_error_set(error, LEAT_E_CONFIG, "only a group has committed offsets");
    return LEAT_OK;
}

static enum leat_engine_from from_map(enum leat_from from)
{
    switch (from) {
    case LEAT_FROM_LATEST:
        return LEAT_ENGINE_LATEST;
    case LEAT_FROM_OFFSET:
        return LEAT_ENGINE_OFFSET;
    case LEAT_FROM_TIME:
        return LEAT_ENGINE_TIME;
    case LEAT_FROM_EARLIEST:
    case LEAT_FROM_COMMITTED:
        break;
    }
    return LEAT_ENGINE_EARLIEST;
}

static leat_err consumer_start(struct leat_consumer *consumer, const char *stream,
                               const leat_consumer_options *options, struct leat_error *error)
{
    struct leat_shared_options shared = {
        .brokers = options->brokers,
        .name = options->client_name,
        .request_timeout_us = (uint64_t)CONSUMER_REQUEST_TIMEOUT_MS * 1000u,
    };
    struct leat_consumer_engine_options engine = {
        .stream = stream,
        .group = options->group,
        .parallel = options->group_mode == LEAT_GROUP_PARALLEL,
        .from = from_map(options->from),
        .from_value = options->from_value,
        .streamlet = options->streamlet,
        .log = options->log,
        .fetch_bytes = options->fetch_bytes,
        .min_bytes = options->min_bytes,
        .wait_ms = options->wait_ms,
        .session_ms = options->session_ms,
        .prefetch = options->prefetch,
    };
    return leat_consumer_start(consumer, stream, &engine, &shared, error);
}

static void consumer_free(struct leat_consumer *consumer)
{
    if (consumer->shared.client) leat_client_destroy(&consumer->shared.client);
    leat_consumer_engine_destroy(&consumer->engine);
    leat_shared_close(&consumer->shared);
    if (consumer->fd >= 0) close(consumer->fd);
    leat_mem_free(consumer->unpacked);
    leat_mem_free(consumer->places);
    leat_mem_free(consumer);
}

static void runs_return_all(struct leat_consumer *consumer)
{
    leat_consumer_run_return(consumer);
    leat_spin_lock(&consumer->lock);
    leat_consumer_runs_void(consumer);
    leat_spin_unlock(&consumer->lock);
}

void leat_consumer_close(leat_consumer *consumer)
{
    if (!consumer) return;
    runs_return_all(consumer);
    struct consumer_command leave = {.what = COMMAND_LEAVE};
    (void)leat_consumer_command(consumer, &leave, UINT64_MAX);
    /* The end of the turn has sent it; nothing depends on its answer. */
    struct consumer_command stop = {.what = COMMAND_STOP};
    runs_return_all(consumer);
    (void)leat_consumer_command(consumer, &stop, UINT64_MAX);
    consumer_free(consumer);
}

leat_consumer *leat_consumer_open(const char *stream, const leat_consumer_options *given,
                                  int timeout_ms, leat_message *message)
{
    struct leat_error error = {.code = LEAT_OK};
    leat_consumer_options options;
    struct leat_consumer *consumer = NULL;
    uint64_t deadline = leat_shared_deadline(timeout_ms);
    leat_err rc = options_take(given, &options, &error);
    if (rc == LEAT_OK && !stream)
        rc = leat_error_set(&error, LEAT_E_BAD_NAME, "no stream is named");
    if (rc) goto refused;
    consumer = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *consumer);
    if (!consumer) {
        (void)leat_error_set(&error, LEAT_E_NO_MEMORY, "out of memory");
        goto refused;
    }
    consumer->fd = -1;
    consumer->parallel = options.group && options.group_mode == LEAT_GROUP_PARALLEL;
    leat_list_init(&consumer->runs);
    leat_list_init(&consumer->returned);
    rc = consumer_start(consumer, stream, &options, &error);
    if (rc) {
        consumer_free(consumer);
        goto refused;
    }
    for (bool late = false;;) {
        uint32_t seen = leat_event_look(&consumer->ready);
        leat_spin_lock(&consumer->lock);
        bool opened = consumer->opened;
        if (consumer->failed)
            error = consumer->failure;
        else if (consumer->noted)
            error =
                consumer->note; /* wakes nobody: so it is looked at once more when time is over */
        bool failed = consumer->failed != 0;
        leat_spin_unlock(&consumer->lock);
        if (opened && !failed) return consumer;
        if (failed) break;
        if (late) {
            char text[200];
            snprintf(text, sizeof text, "%.190s",
                     error.text[0] ? error.text : "no server answered");
            (void)leat_error_set(&error, LEAT_E_TIMEOUT, "not ready within %d ms: %s", timeout_ms,
                                 text);
            break;
        }
        late = !leat_event_wait(&consumer->ready, seen, deadline);
    }
    leat_consumer_close(consumer);
refused:
    (void)leat_shared_message(message, &error);
    return NULL;
}

leat_code leat_consumer_seek(leat_consumer *consumer, int64_t partition, enum leat_from from,
                             int64_t value)
{
    /* Before anything that was fetched is given back: what is refused here changes nothing. */
    if (from == LEAT_FROM_COMMITTED || consumer->parallel) return LEAT_E_UNSUPPORTED;
    if (from == LEAT_FROM_OFFSET && value < 0) return LEAT_E_INVALID;
    leat_consumer_run_return(consumer);
    struct consumer_command command = {
        .what = COMMAND_SEEK, .partition = partition, .from = from_map(from), .value = value};
    (void)leat_consumer_command(consumer, &command, UINT64_MAX);
    if (command.error.code) return (leat_code)command.error.code;
    for (uint32_t i = 0; i < consumer->place_count;) {
        const struct consumer_place *place = &consumer->places[i];
        int64_t own = (int64_t)place->log.streamlet * consumer->q + place->log.log;
        if (partition >= 0 && own != partition)
            i++;
        else
            consumer->places[i] = consumer->places[--consumer->place_count];
    }
    return 0;
}

/* After a commit: a segment group's place is not needed any more if a later group of the log has a place. */
static void places_compact(struct leat_consumer *consumer)
{
    if (!consumer->parallel) return; /* one place for each log */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < consumer->place_count; i++) {
        bool later = false;
        for (uint32_t j = i + 1; j < consumer->place_count && !later; j++)
            later = leat_log_ref_equal(consumer->places[i].log, consumer->places[j].log);
        if (later) continue;
        if (consumer->place == i) consumer->place = kept;
        consumer->places[kept++] = consumer->places[i];
    }
    consumer->place_count = kept;
}

static struct leat_error commit_once(struct leat_consumer *consumer)
{
    struct consumer_command *command = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *command);
    struct leat_error error = {.code = LEAT_E_NO_MEMORY};
    if (!command) return error;
    command->what = COMMAND_COMMIT;
    /* The request's own time limit ends it: places must not move meanwhile. */
    (void)leat_consumer_command(consumer, command, UINT64_MAX);
    error = command->error;
    leat_mem_free(command);
    return error;
}

leat_code leat_consumer_commit(leat_consumer *consumer, int timeout_ms, leat_message *message)
{
    uint64_t deadline = leat_shared_deadline(timeout_ms), pause_us = COMMIT_AGAIN_US;
    struct leat_error error;
    for (;;) {
        error = commit_once(consumer);
        /* The node with the group's home has died, or the home moves: another node has the home soon. Storing the
         * same positions twice has the effect of once. */
        enum leat_err_class class = leat_err_class(error.code);
        uint64_t again = leat_shared_now_us(NULL) + pause_us;
        bool passes = class == LEAT_CLASS_RETRY || class == LEAT_CLASS_REROUTE;
        if (error.code == LEAT_OK || !passes || again > deadline) break;
        uint32_t seen = leat_event_look(&consumer->command_done);
        (void)leat_event_wait(&consumer->command_done, seen, again);
        if (pause_us < COMMIT_AGAIN_US_MAX) pause_us *= 2;
    }
    places_compact(consumer);
    return leat_shared_message(message, &error);
}

bool leat_consumer_note_next(leat_consumer *consumer, leat_message *out)
{
    struct leat_error error = {.code = LEAT_OK};
    leat_spin_lock(&consumer->lock);
    if (consumer->note_count > 0) {
        error = consumer->notes[consumer->note_first];
        consumer->note_first = (consumer->note_first + 1) % CONSUMER_NOTES_MAX;
        consumer->note_count--;
    } else if (consumer->notes_lost > 0) {
        (void)leat_error_set(&error, LEAT_E_AGAIN, "and %llu notes more, which were not kept",
                             (unsigned long long)consumer->notes_lost);
        consumer->notes_lost = 0;
    }
    leat_spin_unlock(&consumer->lock);
    if (error.code == LEAT_OK) return false;
    (void)leat_shared_message(out, &error);
    return true;
}

void leat_consumer_stats_get(leat_consumer *consumer, leat_consumer_stats *out_stats)
{
    leat_spin_lock(&consumer->lock);
    if (consumer->noted && !consumer->stats.last_error) {
        consumer->noted = false;
        memcpy(consumer->stats.last_text, consumer->note.text, sizeof consumer->stats.last_text);
    }
    leat_spin_unlock(&consumer->lock);
    *out_stats = consumer->stats;
}
