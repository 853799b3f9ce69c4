/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's logic: the stream, its logs, where to begin, seeking. */
#include "internal.h"

#include "base/assert.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

uint64_t leat_consumer_now(const struct leat_consumer_engine *engine)
{
    return engine->env->clock->now_us(engine->env->clock->ctx);
}

static void look_on_expired(struct leat_timer *timer)
{
    (void)timer; /* the turn that this wake-up is part of does the work */
}

leat_err leat_consumer_engine_create(const struct leat_env *env, struct leat_timers *timers,
                                     struct leat_client *client,
                                     const struct leat_consumer_engine_options *options,
                                     const struct leat_consumer_engine_events *events,
                                     struct leat_consumer_engine **out_engine)
{
    LEAT_ASSERT(events->on_ready && events->on_fetched && events->on_error);
    size_t name_bytes = strlen(options->stream);
    if (name_bytes == 0 || name_bytes > LEAT_STREAM_NAME_BYTES_MAX) return LEAT_E_BAD_NAME;
    if (options->group && (!*options->group || strlen(options->group) > LEAT_STREAM_NAME_BYTES_MAX))
        return LEAT_E_BAD_NAME;
    struct leat_consumer_engine *engine = leat_mem_calloc(LEAT_MEM_CLIENT, 1, sizeof *engine);
    if (!engine) return LEAT_E_NO_MEMORY;
    engine->env = env;
    engine->timers = timers;
    engine->client = client;
    engine->options = *options;
    engine->events = *events;
    memcpy(engine->stream_name, options->stream, name_bytes + 1);
    engine->in_group = options->group != NULL;
    if (options->group) memcpy(engine->group_name, options->group, strlen(options->group) + 1);
    engine->options.stream = engine->options.group = NULL; /* borrowed only until now */
    engine->look.on_expired = look_on_expired;
    engine->look.owner = engine;
    leat_list_init(&engine->ready);
    *out_engine = engine;
    return LEAT_OK;
}

/* The client has been destroyed before: nothing is under way any more. */
void leat_consumer_engine_destroy(struct leat_consumer_engine **engine_ref)
{
    struct leat_consumer_engine *engine = *engine_ref;
    if (!engine) return;
    LEAT_ASSERT_OWNER(engine->options.actor);
    *engine_ref = NULL;
    LEAT_ASSERT(engine->runs_out == 0);
    leat_timer_stop(engine->timers, &engine->look);
    leat_consumer_logs_clear(engine);
    leat_consumer_lanes_free(engine);
    leat_consumer_answers_free(engine);
    leat_mem_free(engine->rows);
    leat_mem_free(engine->commit_control);
    leat_mem_free(engine);
}

void leat_consumer_wake_at(struct leat_consumer_engine *engine, uint64_t at_us)
{
    if (at_us < engine->look_at_us) engine->look_at_us = at_us;
}

void leat_consumer_fail(struct leat_consumer_engine *engine, leat_err rc, const char *text)
{
    if (engine->failed) return;
    engine->failed = true;
    (void)leat_error_set(&engine->failure, rc, "%s", text && *text ? text : leat_err_text(rc));
    if (!engine->ready_told) {
        engine->ready_told = true;
        engine->events.on_ready(engine->events.owner, rc, &engine->failure);
        return;
    }
    engine->events.on_error(engine->events.owner, &engine->failure);
}

/* For people; the engine goes on. The class of the code would say otherwise, so it travels as
 * LEAT_E_AGAIN unless it is of class retry or reroute itself. */
void leat_consumer_note(struct leat_consumer_engine *engine, leat_err rc, const char *text)
{
    enum leat_err_class class = leat_err_class(rc);
    struct leat_error error;
    if (class != LEAT_CLASS_RETRY && class != LEAT_CLASS_REROUTE) rc = LEAT_E_AGAIN;
    (void)leat_error_set(&error, rc, "%s", text);
    engine->events.on_error(engine->events.owner, &error);
}

/* ---- logs ---- */

static void ready_drop(struct leat_consumer_engine *engine)
{
    struct leat_list *link;
    while ((link = leat_list_pop_front(&engine->ready))) {
        struct leat_fetched *fetched = LEAT_CONTAINER(link, struct leat_fetched, link);
        struct leat_consumer_run *run = LEAT_CONTAINER(fetched, struct leat_consumer_run, fetched);
        leat_consumer_answer_unref(engine, run->answer);
    }
}

void leat_consumer_logs_clear(struct leat_consumer_engine *engine)
{
    engine->generation++;
    leat_consumer_lanes_cancel(engine);
    ready_drop(engine);
    leat_mem_free(engine->logs);
    engine->logs = NULL;
    engine->log_count = 0;
    engine->finished_count = engine->finished_committing = 0; /* another member's, perhaps */
}

leat_err leat_consumer_logs_make(struct leat_consumer_engine *engine, uint32_t count)
{
    leat_consumer_logs_clear(engine);
    engine->logs = leat_mem_calloc(LEAT_MEM_CLIENT, count ? count : 1, sizeof *engine->logs);
    if (!engine->logs) return LEAT_E_NO_MEMORY;
    engine->log_count = count;
    return LEAT_OK;
}

void leat_consumer_log_begin(struct leat_consumer_engine *engine, struct leat_consumer_log *log,
                             enum leat_engine_from from, int64_t value)
{
    (void)engine;
    log->acked_known = false;
    log->attempts = 0;
    log->retry_at_us = 0;
    log->processed_known = log->processed_changed = log->committing = false;
    if (from == LEAT_ENGINE_OFFSET) {
        leat_consumer_log_enter(log, CLOG_READY);
        log->next = log->begun = value < 0 ? 0 : (uint64_t)value;
        return;
    }
    leat_consumer_log_enter(log, CLOG_LOCATE);
    log->locate_what = from == LEAT_ENGINE_LATEST ? LEAT_LOCATE_LATEST
                       : from == LEAT_ENGINE_TIME ? LEAT_LOCATE_TIME
                                                  : LEAT_LOCATE_EARLIEST;
    log->locate_value = value;
}

static bool log_wanted(const struct leat_consumer_engine *engine, uint32_t streamlet, uint32_t log)
{
    return (engine->options.streamlet < 0 || (uint32_t)engine->options.streamlet == streamlet) &&
           (engine->options.log < 0 || (uint32_t)engine->options.log == log);
}

/* Alone: every log that the options name. */
static leat_err logs_choose(struct leat_consumer_engine *engine)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < engine->streamlets; s++)
        for (uint32_t q = 0; q < engine->q; q++)
            count += log_wanted(engine, s, q);
    if (count == 0) {
        leat_consumer_fail(engine, LEAT_E_UNKNOWN_LOG,
                           "the stream has no such streamlet or log; see 'leat stream describe'");
        return LEAT_OK;
    }
    leat_err rc = leat_consumer_logs_make(engine, count);
    if (rc) return rc;
    uint32_t at = 0;
    for (uint32_t s = 0; s < engine->streamlets; s++)
        for (uint32_t q = 0; q < engine->q; q++) {
            if (!log_wanted(engine, s, q)) continue;
            struct leat_consumer_log *log = &engine->logs[at++];
            log->ref = (struct leat_log_ref){engine->stream_id, s, q};
            leat_consumer_log_begin(engine, log, engine->options.from, engine->options.from_value);
        }
    return LEAT_OK;
}

/* ---- the stream ---- */

void leat_consumer_refresh_at(struct leat_consumer_engine *engine, uint64_t at_us)
{
    if (!engine->wants_refresh || at_us < engine->lookup_at_us) engine->lookup_at_us = at_us;
    engine->wants_refresh = true;
}

static void lookup_again(struct leat_consumer_engine *engine, leat_err rc, const char *text)
{
    leat_consumer_note(engine, rc, text);
    engine->wants_refresh = true;
    engine->lookup_at_us =
        leat_consumer_now(engine) + leat_client_pause_us(engine->client, engine->lookup_attempts++);
}

static void lookup_on_done(struct leat_client_lookup *lookup, leat_err rc,
                           const struct leat_client_stream *stream, const struct leat_error *error)
{
    struct leat_consumer_engine *engine = lookup->owner;
    engine->looking = false;
    if (rc == LEAT_E_CANCELLED || engine->failed) return;
    if (rc) {
        enum leat_err_class class = leat_err_class(rc);
        if (class == LEAT_CLASS_REJECT || class == LEAT_CLASS_FATAL) {
            leat_consumer_fail(engine, rc, error->text);
            return;
        }
        lookup_again(engine, rc, error->text);
        return;
    }
    if (engine->known && stream->id != engine->stream_id) {
        leat_consumer_fail(engine, LEAT_E_UNKNOWN_STREAM,
                           "the stream was deleted; another has its name now");
        return;
    }
    bool first = !engine->known;
    engine->stream_id = stream->id;
    engine->streamlets = stream->settings.streamlets;
    engine->q = stream->settings.logs;
    if (first && !engine->in_group) rc = logs_choose(engine);
    if (rc) {
        lookup_again(engine, rc, leat_err_text(rc));
        return;
    }
    engine->known = true;
    engine->lookup_attempts = 0;
}

static void stream_turn(struct leat_consumer_engine *engine, uint64_t now)
{
    if (engine->looking || (engine->known && !engine->wants_refresh)) return;
    if (now < engine->lookup_at_us) {
        leat_consumer_wake_at(engine, engine->lookup_at_us);
        return;
    }
    engine->looking = true;
    engine->wants_refresh = false;
    engine->lookup = (struct leat_client_lookup){
        .on_done = lookup_on_done,
        .owner = engine,
    };
    memcpy(engine->lookup.name, engine->stream_name, sizeof engine->stream_name);
    leat_client_lookup(engine->client, &engine->lookup);
}

/* The earliest offset does not depend on the time of the question. So a log without an owner need not keep other logs
 * from being read: its position is asked for when the log has an owner. */
static bool may_come_later(const struct leat_consumer_engine *engine,
                           const struct leat_consumer_log *log)
{
    return !engine->in_group && log->attempts > 0 && engine->options.from == LEAT_ENGINE_EARLIEST;
}

static void positions_turn(struct leat_consumer_engine *engine)
{
    if (engine->ready_told || !engine->known || engine->failed) return;
    if (engine->in_group ? engine->group_state != GROUP_IN : !engine->logs) return;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < engine->log_count; i++) {
        if (engine->logs[i].state >= CLOG_READY)
            taken++;
        else if (!may_come_later(engine, &engine->logs[i]))
            return;
    }
    if (taken == 0 && engine->log_count > 0) return;
    engine->ready_told = true;
    struct leat_error none = {.code = LEAT_OK};
    engine->events.on_ready(engine->events.owner, LEAT_OK, &none);
}

void leat_consumer_engine_on_turn_end(struct leat_consumer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    uint64_t now = leat_consumer_now(engine);
    if (engine->failed) {
        leat_consumer_ask_turn(engine, now); /* callers that wait for an answer get it */
        return;
    }
    engine->look_at_us = UINT64_MAX;
    stream_turn(engine, now);
    leat_consumer_ask_turn(engine, now);
    if (engine->known && engine->in_group) leat_consumer_group_turn(engine);
    /* A member's logs have no positions before the committed ones are known. */
    if (engine->known && (!engine->in_group || engine->group_state == GROUP_IN))
        leat_consumer_fetch_turn(engine);
    positions_turn(engine);
    LEAT_ASSERT(engine->failed || engine->looking || !engine->wants_refresh ||
                engine->look_at_us != UINT64_MAX);
    if (engine->look_at_us == UINT64_MAX)
        leat_timer_stop(engine->timers, &engine->look);
    else if (!leat_timer_armed(&engine->look) || engine->look.at_us != engine->look_at_us)
        leat_timer_start(engine->timers, &engine->look,
                         engine->look_at_us > now ? engine->look_at_us - now : 0);
}

/* ---- what the outside sees ---- */

struct leat_fetched *leat_consumer_engine_take(struct leat_consumer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    struct leat_list *link = leat_list_pop_front(&engine->ready);
    if (!link) return NULL;
    engine->runs_out++;
    return LEAT_CONTAINER(link, struct leat_fetched, link);
}

void leat_consumer_engine_give(struct leat_consumer_engine *engine, struct leat_fetched *fetched)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    struct leat_consumer_run *run = LEAT_CONTAINER(fetched, struct leat_consumer_run, fetched);
    LEAT_ASSERT_CMP(engine->runs_out, >, 0);
    engine->runs_out--;
    leat_consumer_answer_unref(engine, run->answer);
}

bool leat_consumer_engine_at_end(const struct leat_consumer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    if (!engine->ready_told || engine->failed || engine->runs_out > 0 ||
        !leat_list_empty(&engine->ready))
        return false;
    if (engine->in_group && engine->group_state != GROUP_IN) return false;
    for (uint32_t i = 0; i < engine->log_count; i++) {
        const struct leat_consumer_log *log = &engine->logs[i];
        if (!log->acked_known || log->next < log->acked) return false;
    }
    return true;
}

static bool log_is(const struct leat_consumer_engine *engine, const struct leat_consumer_log *log,
                   int64_t partition)
{
    return partition < 0 || (int64_t)log->ref.streamlet * engine->q + log->ref.log == partition;
}

leat_err leat_consumer_engine_seek(struct leat_consumer_engine *engine, int64_t partition,
                                   enum leat_engine_from from, int64_t value)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    bool known = partition < 0;
    if (engine->in_group && engine->options.parallel) return LEAT_E_UNSUPPORTED;
    if (from == LEAT_ENGINE_OFFSET && value < 0) return LEAT_E_INVALID;
    /* What is under way or ready for these logs is void; the runs of the other logs are void as well, and fetched
     * again from after the last handed-over record. */
    engine->generation++;
    leat_consumer_lanes_cancel(engine);
    ready_drop(engine);
    for (uint32_t i = 0; i < engine->log_count; i++) {
        struct leat_consumer_log *log = &engine->logs[i];
        if (log_is(engine, log, partition)) {
            leat_consumer_log_begin(engine, log, from, value);
            known = true;
        } else if (log->state == CLOG_LOCATING) {
            leat_consumer_log_enter(log, CLOG_LOCATE);
        } else if (log->state != CLOG_LOCATE) {
            leat_consumer_log_enter(log, CLOG_READY);
            log->next = log->processed_known ? log->processed : log->begun;
        }
    }
    if (known) return LEAT_OK;
    return engine->in_group ? LEAT_E_NOT_ASSIGNED : LEAT_E_UNKNOWN_LOG;
}

void leat_consumer_engine_processed(struct leat_consumer_engine *engine, struct leat_log_ref ref,
                                    int64_t group, uint64_t offset)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    for (uint32_t i = 0; i < engine->log_count; i++) {
        struct leat_consumer_log *log = &engine->logs[i];
        if (!leat_log_ref_equal(log->ref, ref)) continue;
        uint64_t own = group < 0 ? 0 : (uint64_t)group;
        if (log->processed_known && log->processed == offset && log->processed_group == own) return;
        /* Records of one log come in the order of its groups here, so a record of a later group means that the group
         * before has been handed over whole. */
        if (log->processed_known && own > log->processed_group)
            leat_consumer_group_finish(engine, ref, log->processed_group);
        log->processed = offset;
        log->processed_group = own;
        log->processed_known = log->processed_changed = true;
        return;
    }
}

void leat_consumer_engine_leave(struct leat_consumer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    leat_consumer_group_leave(engine);
}

uint32_t leat_consumer_engine_q(const struct leat_consumer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    return engine->q;
}
