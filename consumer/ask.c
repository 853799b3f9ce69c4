/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of a caller about one log: where a record lies, and what lies at an application offset. */
#include "internal.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

static void ask_end(struct leat_consumer_engine *engine, leat_err rc,
                    const struct leat_msg_located *found, const struct leat_error *error)
{
    struct leat_consumer_ask *ask = &engine->ask;
    LEAT_ASSERT(ask->open);
    if (ask->sent) leat_client_cancel(engine->client, &ask->request);
    ask->open = ask->sent = false;
    ask->on_done(ask->arg, rc, found, error);
}

static void ask_refuse(struct leat_consumer_engine *engine, leat_err rc, const char *text)
{
    const struct leat_log_ref log = engine->ask.question.log;
    struct leat_error error;
    (void)leat_error_set(&error, rc, "stream %.64s streamlet %u log %u: %.150s",
                         engine->stream_name, log.streamlet, log.log,
                         text && *text ? text : leat_err_text(rc));
    ask_end(engine, rc, NULL, &error);
}

static void ask_again(struct leat_consumer_engine *engine, leat_err rc, const char *text)
{
    struct leat_consumer_ask *ask = &engine->ask;
    ask->retry_at_us =
        leat_consumer_now(engine) + leat_client_pause_us(engine->client, ask->attempts++);
    leat_consumer_wake_at(engine, ask->retry_at_us);
    (void)leat_error_set(&ask->last, rc, "%s", text && *text ? text : leat_err_text(rc));
    if (leat_err_class(rc) == LEAT_CLASS_REROUTE || rc == LEAT_E_CLOSED || rc == LEAT_E_TIMEOUT)
        engine->wants_refresh = true;
}

static void ask_on_done(struct leat_request *request, leat_err rc, const struct leat_frame *answer,
                        const struct leat_error *error)
{
    struct leat_consumer_engine *engine = request->owner;
    struct leat_msg_located row = {0};
    char text[LEAT_ERROR_TEXT_BYTES];
    engine->ask.sent = false;
    snprintf(text, sizeof text, "%s", error->text);
    if (rc == LEAT_OK) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, answer->control, answer->control_bytes);
        bool one = leat_msg_located_all_read(&reader) == 1;
        leat_msg_located_read(&reader, &row);
        rc = !one || reader.failed ? LEAT_E_INVALID : row.code;
        snprintf(text, sizeof text, "%.*s",
                 (int)(row.text.bytes < sizeof text ? row.text.bytes : sizeof text - 1),
                 row.text.bytes > 0 ? row.text.text : "");
    }
    enum leat_err_class class = leat_err_class(rc);
    if (rc == LEAT_OK) {
        struct leat_error none = {.code = LEAT_OK};
        ask_end(engine, LEAT_OK, &row, &none);
    } else if (class == LEAT_CLASS_RETRY || class == LEAT_CLASS_REROUTE) {
        ask_again(engine, rc, text);
    } else {
        ask_refuse(engine, rc, text);
    }
}

static void ask_send(struct leat_consumer_engine *engine)
{
    struct leat_consumer_ask *ask = &engine->ask;
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, ask->control, sizeof ask->control);
    leat_msg_locate_all_write(&writer, &(struct leat_msg_locate_all){1});
    leat_msg_locate_write(&writer, &ask->question);
    LEAT_ASSERT(!writer.overflow);
    ask->request = (struct leat_request){
        .kind = LEAT_KIND_LOCATE,
        .log = ask->question.log,
        .control = ask->control,
        .control_bytes = writer.used,
        .on_done = ask_on_done,
        .owner = engine,
    };
    leat_err rc = leat_client_send(engine->client, &ask->request);
    ask->sent = rc == LEAT_OK;
    if (rc == LEAT_OK) return;
    ask_again(engine, rc == LEAT_E_UNKNOWN_STREAM ? LEAT_E_NOT_OWNER : rc,
              leat_client_why(engine->client));
}

void leat_consumer_ask_turn(struct leat_consumer_engine *engine, uint64_t now)
{
    struct leat_consumer_ask *ask = &engine->ask;
    if (!ask->open) return;
    if (engine->failed) {
        ask_end(engine, engine->failure.code, NULL, &engine->failure);
        return;
    }
    if (now >= ask->deadline_us) {
        char text[LEAT_ERROR_TEXT_BYTES];
        snprintf(text, sizeof text, "no answer in time%s%.120s", ask->last.code ? ": " : "",
                 ask->last.text);
        ask_refuse(engine, LEAT_E_TIMEOUT, text);
        return;
    }
    leat_consumer_wake_at(engine, ask->deadline_us);
    if (ask->sent || engine->looking) return; /* whose end is a turn, too */
    if (now < ask->retry_at_us)
        leat_consumer_wake_at(engine, ask->retry_at_us);
    else
        ask_send(engine);
}

leat_err leat_consumer_engine_ask(struct leat_consumer_engine *engine, int64_t partition,
                                  const struct leat_msg_locate *question, uint64_t timeout_us,
                                  leat_consumer_asked_fn on_done, void *arg)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    struct leat_consumer_ask *ask = &engine->ask;
    if (engine->failed) return engine->failure.code;
    if (!engine->known || ask->open) return LEAT_E_AGAIN;
    if (partition < 0 || partition >= (int64_t)engine->streamlets * engine->q)
        return LEAT_E_UNKNOWN_LOG;
    uint64_t now = leat_consumer_now(engine);
    *ask = (struct leat_consumer_ask){
        .open = true,
        .deadline_us = timeout_us > UINT64_MAX - now ? UINT64_MAX : now + timeout_us,
        .question = *question,
        .on_done = on_done,
        .arg = arg,
    };
    ask->question.log = (struct leat_log_ref){engine->stream_id, (uint32_t)partition / engine->q,
                                              (uint32_t)partition % engine->q};
    return LEAT_OK;
}

int64_t leat_consumer_engine_only(const struct leat_consumer_engine *engine)
{
    LEAT_ASSERT_OWNER(engine->options.actor);
    if (engine->log_count != 1) return -1;
    return (int64_t)engine->logs[0].ref.streamlet * engine->q + engine->logs[0].ref.log;
}
