/* libleat's consumer: a background thread fetches, the caller's thread takes whole answers and
 * decodes records where they lie. */
#include "client/shared.h"
#include "engine.h"
#include "wire/reader.h"

#include "leat/consumer.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
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
    /* Uncompressed records of one batch; grown to this from the batch's own size. */
    CONSUMER_UNPACKED_BYTES_MAX = 256 * 1024 * 1024,
    CONSUMER_LEAVE_MS = 200,
};

/* What a caller asks of the background thread; it waits for the end. */
struct consumer_command {
    struct leat_mail mail;
    enum { COMMAND_SEEK, COMMAND_COMMIT, COMMAND_LEAVE, COMMAND_STOP } what;
    int64_t partition, value;
    enum leat_engine_from from;
    _Atomic bool done;
    struct leat_error error;
    struct leat_consumer *consumer;
};

/* Per log (parallel mode: per group, in the order in which they were handed over): how far. Kept by
 * the caller's thread, read by a commit. */
struct consumer_place {
    struct leat_log_ref log;
    int64_t group;
    uint64_t next;
    bool changed;
};

struct leat_consumer {
    /* The caller's thread. */
    struct leat_fetched *run; /* being read */
    uint32_t run_at;
    struct leat_batch batch;
    struct leat_record_reader reader;
    bool in_batch;
    leat_record_view view;
    uint8_t *unpacked;
    size_t unpacked_bytes;
    struct consumer_place *places;
    uint32_t place_count, place_capacity, place;
    leat_consumer_stats stats;
    uint32_t q;
    int fd;
    bool parallel; /* in a set whose groups are handed out */

    /* Shared; guarded by lock. */
    struct leat_spin lock;
    struct leat_list runs, returned;
    bool opened, revoked;
    leat_code failed;
    struct leat_error failure, note;
    bool noted;

    _Atomic bool at_end, hungry; /* hungry: the engine waits for runs to come back */
    struct leat_event ready, command_done;
    struct leat_mail mail;
    _Atomic bool mail_out;

    /* The background thread. */
    struct leat_shared shared;
    struct leat_consumer_engine *engine;
    struct consumer_command *committing;
};

/* ---- the background thread ---- */

static void consumer_tell(struct leat_consumer *consumer)
{
    leat_event_tell(&consumer->ready);
    int fd = __atomic_load_n(&consumer->fd, __ATOMIC_ACQUIRE);
    uint64_t one = 1;
    /* It fails only when the counter is full, and then it is readable. */
    if (fd >= 0 && write(fd, &one, sizeof one) < 0) return;
}

static void engine_on_ready(void *owner, leat_err rc, const struct leat_error *error)
{
    struct leat_consumer *consumer = owner;
    leat_spin_lock(&consumer->lock);
    consumer->opened = true;
    consumer->q = leat_consumer_engine_q(consumer->engine);
    if (rc) {
        consumer->failed = (leat_code)rc;
        consumer->failure = *error;
    }
    leat_spin_unlock(&consumer->lock);
    consumer_tell(consumer);
}

static void engine_on_fetched(void *owner)
{
    (void)owner; /* taken at the end of the turn, all at once */
}

static void engine_on_error(void *owner, const struct leat_error *error)
{
    struct leat_consumer *consumer = owner;
    enum leat_err_class class = leat_err_class(error->code);
    bool final = class == LEAT_CLASS_REJECT || class == LEAT_CLASS_FATAL;
    leat_spin_lock(&consumer->lock);
    if (final) {
        consumer->failed = (leat_code)error->code;
        consumer->failure = *error;
    }
    consumer->note = *error;
    consumer->noted = true;
    leat_spin_unlock(&consumer->lock);
    if (final) consumer_tell(consumer);
}

/* What was fetched and not taken is void. The lock is held. */
static void runs_void(struct leat_consumer *consumer)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&consumer->runs)))
        leat_list_push_back(&consumer->returned, link);
}

static void engine_on_revoked(void *owner)
{
    struct leat_consumer *consumer = owner;
    leat_spin_lock(&consumer->lock);
    consumer->revoked = true;
    runs_void(consumer);
    leat_spin_unlock(&consumer->lock);
}

static void runs_exchange(struct leat_consumer *consumer)
{
    struct leat_list back;
    leat_list_init(&back);
    struct leat_list *link;
    leat_spin_lock(&consumer->lock);
    while ((link = leat_list_pop_front(&consumer->returned)))
        leat_list_push_back(&back, link);
    leat_spin_unlock(&consumer->lock);
    while ((link = leat_list_pop_front(&back)))
        leat_consumer_engine_give(consumer->engine,
                                  LEAT_CONTAINER(link, struct leat_fetched, link));
}

static void consumer_on_turn_end(void *owner)
{
    struct leat_consumer *consumer = owner;
    if (!consumer->engine) return;
    atomic_store(&consumer->hungry, true);
    runs_exchange(consumer);
    leat_consumer_engine_on_turn_end(consumer->engine);
    leat_client_on_turn_end(consumer->shared.client);
    struct leat_fetched *run;
    bool any = false;
    while ((run = leat_consumer_engine_take(consumer->engine))) {
        leat_spin_lock(&consumer->lock);
        leat_list_push_back(&consumer->runs, &run->link);
        leat_spin_unlock(&consumer->lock);
        any = true;
    }
    bool at_end = leat_consumer_engine_at_end(consumer->engine);
    bool was = atomic_exchange(&consumer->at_end, at_end);
    if (any || (at_end && !was)) consumer_tell(consumer);
}

static void mail_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct leat_consumer *consumer = LEAT_CONTAINER(mail, struct leat_consumer, mail);
    leat_shared_touch(&consumer->shared);
    atomic_store(&consumer->mail_out, false);
}

static void consumer_notify(struct leat_consumer *consumer)
{
    if (!atomic_exchange(&consumer->mail_out, true))
        leat_shared_post(&consumer->shared, &consumer->mail);
}

/* ---- commands ---- */

static void command_end(struct consumer_command *command)
{
    struct leat_consumer *consumer = command->consumer;
    atomic_store(&command->done, true);
    leat_event_tell(&consumer->command_done);
}

static void command_on_commit(void *arg, leat_err rc, const struct leat_error *error)
{
    struct consumer_command *command = arg;
    command->error = *error;
    command->error.code = rc;
    command->consumer->committing = NULL;
    command_end(command);
}

/* The places are not touched meanwhile: the thread that owns them waits for this command. */
static void command_commit(struct leat_consumer *consumer, struct consumer_command *command)
{
    for (uint32_t i = 0; i < consumer->place_count; i++) {
        struct consumer_place *place = &consumer->places[i];
        if (!place->changed) continue;
        place->changed = false;
        leat_consumer_engine_processed(consumer->engine, place->log, place->group, place->next);
    }
    consumer->committing = command;
    leat_consumer_engine_commit(consumer->engine, command_on_commit, command);
}

static void command_deliver(void *actor, struct leat_mail *mail)
{
    (void)actor;
    struct consumer_command *command = LEAT_CONTAINER(mail, struct consumer_command, mail);
    struct leat_consumer *consumer = command->consumer;
    leat_shared_touch(&consumer->shared);
    switch (command->what) {
    case COMMAND_SEEK:
        /* SUBTLE: here, and not by the caller when it hears of the end: by then there may be runs of after the
         * seek, and those are not fetched again. */
        leat_spin_lock(&consumer->lock);
        runs_void(consumer);
        leat_spin_unlock(&consumer->lock);
        runs_exchange(consumer);
        for (uint32_t i = 0; i < consumer->place_count; i++)
            if (consumer->places[i].next > 0) /* else nothing of it was handed over yet */
                leat_consumer_engine_processed(consumer->engine, consumer->places[i].log,
                                               consumer->places[i].group, consumer->places[i].next);
        command->error.code = leat_consumer_engine_seek(consumer->engine, command->partition,
                                                        command->from, command->value);
        atomic_store(&consumer->at_end, false);
        break;
    case COMMAND_COMMIT:
        command_commit(consumer, command);
        return;
    case COMMAND_LEAVE:
        leat_consumer_engine_leave(consumer->engine);
        break;
    case COMMAND_STOP:
        /* SUBTLE: the caller has given back what it had, but a turn since then may have taken more. */
        engine_on_revoked(consumer);
        runs_exchange(consumer);
        leat_client_destroy(&consumer->shared.client);
        leat_consumer_engine_destroy(&consumer->engine);
        break;
    }
    command_end(command);
}

static bool command_run(struct leat_consumer *consumer, struct consumer_command *command,
                        uint64_t deadline)
{
    command->mail.deliver = command_deliver;
    command->consumer = consumer;
    leat_shared_post(&consumer->shared, &command->mail);
    for (;;) {
        uint32_t seen = leat_event_look(&consumer->command_done);
        if (atomic_load(&command->done)) return true;
        if (!leat_event_wait(&consumer->command_done, seen, deadline)) return false;
    }
}

/* ---- opening and closing ---- */

void leat_consumer_options_init(leat_consumer_options *options)
{
    *options = (leat_consumer_options){
        .struct_bytes = sizeof *options,
        .from = LEAT_FROM_EARLIEST,
        .streamlet = -1,
        .log = -1,
        .fetch_bytes = CONSUMER_FETCH_BYTES_DEFAULT,
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
    if (out->from == LEAT_FROM_COMMITTED && !out->set)
        return leat_error_set(error, LEAT_E_CONFIG, "only a set has committed offsets");
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
    leat_err rc = leat_shared_open(&consumer->shared, &shared, error);
    if (rc) return rc;
    struct leat_consumer_engine_options engine = {
        .stream = stream,
        .set = options->set,
        .parallel = options->set_mode == LEAT_SET_PARALLEL,
        .from = from_map(options->from),
        .from_value = options->from_value,
        .streamlet = options->streamlet,
        .log = options->log,
        .fetch_bytes = options->fetch_bytes,
        .wait_ms = options->wait_ms,
        .session_ms = options->session_ms,
        .prefetch = options->prefetch,
    };
    struct leat_consumer_engine_events events = {
        .on_ready = engine_on_ready,
        .on_fetched = engine_on_fetched,
        .on_error = engine_on_error,
        .on_revoked = engine_on_revoked,
        .owner = consumer,
    };
    rc = leat_consumer_engine_create(consumer->shared.env, consumer->shared.timers,
                                     consumer->shared.client, &engine, &events, &consumer->engine);
    if (rc) {
        size_t bytes = strlen(stream);
        bool of_stream = bytes == 0 || bytes > LEAT_STREAM_NAME_BYTES_MAX;
        if (rc == LEAT_E_BAD_NAME && !of_stream)
            return leat_error_set(error, rc, "'%.100s': a set's name has 1 to 249 bytes",
                                  options->set ? options->set : "");
        return leat_error_set(error, rc, "'%.100s': %s", stream,
                              rc == LEAT_E_BAD_NAME ? "not a name of 1 to 249 bytes"
                                                    : leat_err_text(rc));
    }
    leat_shared_start(&consumer->shared, consumer, consumer_on_turn_end);
    return LEAT_OK;
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

static void run_return(struct leat_consumer *consumer)
{
    if (!consumer->run) return;
    leat_spin_lock(&consumer->lock);
    leat_list_push_back(&consumer->returned, &consumer->run->link);
    leat_spin_unlock(&consumer->lock);
    consumer->run = NULL;
    consumer->in_batch = false;
    if (atomic_exchange(&consumer->hungry, false)) consumer_notify(consumer);
}

static void runs_return_all(struct leat_consumer *consumer)
{
    run_return(consumer);
    leat_spin_lock(&consumer->lock);
    runs_void(consumer);
    leat_spin_unlock(&consumer->lock);
}

void leat_consumer_close(leat_consumer *consumer)
{
    if (!consumer) return;
    runs_return_all(consumer);
    struct consumer_command leave = {.what = COMMAND_LEAVE};
    (void)command_run(consumer, &leave, UINT64_MAX);
    /* The end of the turn has sent it; nothing depends on its answer. */
    struct consumer_command stop = {.what = COMMAND_STOP};
    runs_return_all(consumer);
    (void)command_run(consumer, &stop, UINT64_MAX);
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
    consumer->parallel = options.set && options.set_mode == LEAT_SET_PARALLEL;
    leat_list_init(&consumer->runs);
    leat_list_init(&consumer->returned);
    consumer->mail.deliver = mail_deliver;
    rc = consumer_start(consumer, stream, &options, &error);
    if (rc) {
        consumer_free(consumer);
        goto refused;
    }
    for (;;) {
        uint32_t seen = leat_event_look(&consumer->ready);
        leat_spin_lock(&consumer->lock);
        bool opened = consumer->opened;
        if (consumer->failed)
            error = consumer->failure;
        else if (consumer->noted)
            error = consumer->note;
        bool failed = consumer->failed != 0;
        leat_spin_unlock(&consumer->lock);
        if (opened && !failed) return consumer;
        if (failed) break;
        if (!leat_event_wait(&consumer->ready, seen, deadline)) {
            char text[200];
            snprintf(text, sizeof text, "%.190s",
                     error.text[0] ? error.text : "no server answered");
            (void)leat_error_set(&error, LEAT_E_TIMEOUT, "not ready within %d ms: %s", timeout_ms,
                                 text);
            break;
        }
    }
    leat_consumer_close(consumer);
refused:
    (void)leat_shared_message(message, &error);
    return NULL;
}

/* ---- records ---- */

static bool place_set(struct leat_consumer *consumer)
{
    const struct leat_fetched *run = consumer->run;
    for (uint32_t i = 0; i < consumer->place_count; i++) {
        if (!leat_log_ref_equal(consumer->places[i].log, run->log) ||
            consumer->places[i].group != run->group)
            continue;
        consumer->place = i;
        return true;
    }
    if (consumer->place_count == consumer->place_capacity) {
        uint32_t capacity = consumer->place_capacity ? consumer->place_capacity * 2 : 8;
        struct consumer_place *places =
            leat_mem_realloc(LEAT_MEM_CLIENT, consumer->places, capacity, sizeof *places);
        if (!places) return false;
        consumer->places = places;
        consumer->place_capacity = capacity;
    }
    consumer->place = consumer->place_count++;
    consumer->places[consumer->place] =
        (struct consumer_place){.log = run->log, .group = run->group};
    return true;
}

/* The next answer's run of batches becomes the one being read. */
static bool run_take(struct leat_consumer *consumer)
{
    leat_spin_lock(&consumer->lock);
    bool revoked = consumer->revoked;
    consumer->revoked = false;
    struct leat_list *link = leat_list_pop_front(&consumer->runs);
    leat_spin_unlock(&consumer->lock);
    if (revoked) consumer->place_count = 0; /* of logs that may be another member's now */
    if (!link) return false;
    consumer->run = LEAT_CONTAINER(link, struct leat_fetched, link);
    consumer->run_at = 0;
    consumer->in_batch = false;
    return true;
}

static leat_err unpack(struct leat_consumer *consumer, const uint8_t **out_records,
                       size_t *out_bytes)
{
    for (;;) {
        leat_err rc = leat_batch_records(&consumer->batch, consumer->unpacked,
                                         consumer->unpacked_bytes, out_records, out_bytes);
        if (rc != LEAT_E_TOO_LARGE) return rc;
        size_t bytes = consumer->unpacked_bytes ? consumer->unpacked_bytes * 2 : 1024 * 1024;
        if (bytes > CONSUMER_UNPACKED_BYTES_MAX) return LEAT_E_TOO_LARGE;
        uint8_t *grown = leat_mem_calloc(LEAT_MEM_CLIENT, 1, bytes);
        if (!grown) return LEAT_E_NO_MEMORY;
        leat_mem_free(consumer->unpacked);
        consumer->unpacked = grown;
        consumer->unpacked_bytes = bytes;
    }
}

/* Step to the run's next batch. LEAT_E_NOT_FOUND: the run is read. */
static leat_err batch_next(struct leat_consumer *consumer)
{
    const struct leat_fetched *run = consumer->run;
    consumer->in_batch = false;
    if (consumer->run_at == 0 && !place_set(consumer)) return LEAT_E_NO_MEMORY;
    if (consumer->run_at >= run->byte_count) return LEAT_E_NOT_FOUND;
    const uint8_t *at = run->bytes + consumer->run_at;
    uint32_t left = run->byte_count - consumer->run_at;
    uint64_t bytes = leat_batch_bytes(at, left);
    if (bytes == 0 || bytes > left) return LEAT_E_CORRUPT;
    leat_err rc = leat_batch_view(at, (size_t)bytes, &consumer->batch);
    if (rc) return rc;
    const uint8_t *records;
    size_t record_bytes;
    rc = unpack(consumer, &records, &record_bytes);
    if (rc) return rc;
    consumer->run_at += (uint32_t)bytes;
    consumer->stats.bytes += bytes;
    leat_record_reader_init(&consumer->reader, &consumer->batch, records, record_bytes);
    consumer->in_batch = true;
    return LEAT_OK;
}

static leat_code consumer_refuse(struct leat_consumer *consumer, leat_err rc)
{
    const char *text = leat_err_text(rc);
    if (rc == LEAT_E_UNSUPPORTED)
        text = "the records are compressed with gzip, and this library was built without zlib";
    consumer->stats.last_error = (leat_code)rc;
    snprintf(consumer->stats.last_text, sizeof consumer->stats.last_text,
             "streamlet %u log %u offset %llu: %s", consumer->run->log.streamlet,
             consumer->run->log.log, (unsigned long long)consumer->batch.base_offset, text);
    return (leat_code)rc;
}

/* Records of the batch being read, at most `count`; 0: none is left (*out_rc LEAT_OK) or the next is
 * unreadable. */
static size_t batch_read(struct leat_consumer *consumer, leat_record_view *views, size_t count,
                         leat_err *out_rc)
{
    const struct leat_fetched *run = consumer->run;
    struct leat_record_reader reader = consumer->reader; /* local: no store below aliases it */
    uint64_t base = consumer->batch.base_offset, from = run->from_offset, end = run->end_offset;
    uint32_t streamlet = run->log.streamlet, log = run->log.log;
    uint32_t partition = streamlet * consumer->q + log;
    size_t n = 0;
    leat_err rc = LEAT_OK;
    while (n < count) {
        struct leat_record record;
        rc = leat_record_read(&reader, &record);
        if (__builtin_expect(rc != LEAT_OK, 0)) break;
        uint64_t offset = base + record.offset_delta;
        if (__builtin_expect(offset < from || offset >= end, 0)) continue;
        views[n++] = (leat_record_view){
            .key = record.key,
            .value = record.value,
            .key_bytes = record.key_bytes,
            .value_bytes = record.value_bytes,
            .key_null = record.key == NULL,
            .value_null = record.value == NULL,
            .timestamp_ms = record.timestamp_ms,
            .offset = offset,
            .streamlet = streamlet,
            .log = log,
            .partition = partition,
            .headers = record.headers,
            .headers_bytes = record.headers_bytes,
            .header_count = record.header_count,
        };
    }
    consumer->reader = reader;
    if (n > 0) {
        struct consumer_place *place = &consumer->places[consumer->place];
        place->next = views[n - 1].offset + 1;
        place->changed = true;
        consumer->stats.records += n;
        return n; /* what is unreadable behind them is met again */
    }
    *out_rc = rc == LEAT_E_NOT_FOUND ? LEAT_OK : rc;
    return 0;
}

/* Records of the current run, or 0 when it is used up (*out_rc LEAT_OK) or unreadable. */
static size_t run_read(struct leat_consumer *consumer, leat_record_view *views, size_t count,
                       leat_err *out_rc)
{
    for (;;) {
        leat_err rc = LEAT_OK;
        size_t n = consumer->in_batch ? batch_read(consumer, views, count, &rc) : 0;
        if (__builtin_expect(n > 0, 1)) return n;
        if (rc == LEAT_OK) rc = batch_next(consumer);
        if (rc == LEAT_OK) continue;
        *out_rc = rc == LEAT_E_NOT_FOUND ? LEAT_OK : rc;
        return 0;
    }
}

static leat_code failure_look(struct leat_consumer *consumer)
{
    leat_spin_lock(&consumer->lock);
    leat_code failed = consumer->failed;
    struct leat_error failure = consumer->failure;
    leat_spin_unlock(&consumer->lock);
    if (failed) {
        consumer->stats.last_error = failed;
        memcpy(consumer->stats.last_text, failure.text, sizeof consumer->stats.last_text);
    }
    return failed;
}

/* Nothing is ready. Returns false when the time is over or the consumer failed. */
static bool consumer_wait(struct leat_consumer *consumer, int timeout_ms, uint64_t *deadline,
                          uint32_t seen, leat_code *out_code)
{
    *out_code = failure_look(consumer);
    if (*out_code) return false;
    if (timeout_ms == 0) {
        uint64_t count;
        if (consumer->fd >= 0 && read(consumer->fd, &count, sizeof count) < 0) return false;
        return false;
    }
    if (*deadline == 0) *deadline = leat_shared_deadline(timeout_ms);
    return leat_event_wait(&consumer->ready, seen, *deadline);
}

/* No run is being read: take one, or wait for one. Returns false when there is none. */
static bool run_await(struct leat_consumer *consumer, int timeout_ms, uint64_t *deadline,
                      leat_code *out_code)
{
    for (;;) {
        uint32_t seen = leat_event_look(&consumer->ready);
        if (run_take(consumer)) return true;
        /* The descriptor is emptied before the last look, so that what comes after it is told. */
        if (timeout_ms == 0 && consumer->fd >= 0) {
            uint64_t count;
            if (read(consumer->fd, &count, sizeof count) > 0 && run_take(consumer)) return true;
        }
        if (atomic_load(&consumer->at_end) && timeout_ms != 0 && *deadline != 0) {
            *out_code = failure_look(consumer);
            return false; /* at the end: the caller may want to know before the time is over */
        }
        if (!consumer_wait(consumer, timeout_ms, deadline, seen, out_code)) return false;
    }
}

size_t leat_consumer_next_many(leat_consumer *consumer, leat_record_view *views, size_t count,
                               int timeout_ms, leat_code *out_code)
{
    uint64_t deadline = 0;
    *out_code = 0;
    while (count > 0) {
        if (__builtin_expect(consumer->run != NULL, 1)) {
            leat_err rc = LEAT_OK;
            size_t n = run_read(consumer, views, count, &rc);
            if (__builtin_expect(n > 0, 1)) return n;
            if (rc) {
                *out_code = consumer_refuse(consumer, rc);
                return 0; /* and again the next time: what can't be read is not skipped */
            }
            run_return(consumer);
        }
        if (!run_await(consumer, timeout_ms, &deadline, out_code)) return 0;
    }
    return 0;
}

const leat_record_view *leat_consumer_next(leat_consumer *consumer, int timeout_ms,
                                           leat_code *out_code)
{
    return leat_consumer_next_many(consumer, &consumer->view, 1, timeout_ms, out_code)
               ? &consumer->view
               : NULL;
}

int leat_consumer_fd(leat_consumer *consumer)
{
    if (consumer->fd >= 0) return consumer->fd;
    int fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC); /* 1: look once before waiting */
    __atomic_store_n(&consumer->fd, fd, __ATOMIC_RELEASE);
    return fd;
}

bool leat_consumer_at_end(leat_consumer *consumer)
{
    if (consumer->run || !atomic_load(&consumer->at_end)) return false;
    leat_spin_lock(&consumer->lock);
    bool empty = leat_list_empty(&consumer->runs);
    leat_spin_unlock(&consumer->lock);
    return empty;
}

leat_code leat_consumer_seek(leat_consumer *consumer, int64_t partition, enum leat_from from,
                             int64_t value)
{
    /* Before anything that was fetched is given back: what is refused here changes nothing. */
    if (from == LEAT_FROM_COMMITTED || consumer->parallel) return LEAT_E_UNSUPPORTED;
    if (from == LEAT_FROM_OFFSET && value < 0) return LEAT_E_INVALID;
    run_return(consumer);
    struct consumer_command command = {
        .what = COMMAND_SEEK, .partition = partition, .from = from_map(from), .value = value};
    (void)command_run(consumer, &command, UINT64_MAX);
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

/* Groups that a later one of their log has finished are committed: forget them. */
static void places_compact(struct leat_consumer *consumer)
{
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
    (void)command_run(consumer, command, UINT64_MAX);
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
        /* Who keeps the set's offsets has died, or moves: another one has them in a moment. To store
         * the same positions twice is the same as once. */
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
