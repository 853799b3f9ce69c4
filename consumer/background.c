/* SPDX-License-Identifier: Apache-2.0 */
/* The background thread's side of a consumer: what the engine tells, runs to and fro, commands. */
#include "handle.h"

#include "base/mem.h"

#include <string.h>
#include <unistd.h>

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

/* The lock is held. */
static void note_keep(struct leat_consumer *consumer, const struct leat_error *error)
{
    if (consumer->note_count == CONSUMER_NOTES_MAX) {
        consumer->notes_lost++;
        return;
    }
    uint32_t at = (consumer->note_first + consumer->note_count++) % CONSUMER_NOTES_MAX;
    consumer->notes[at] = *error;
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
    } else {
        note_keep(consumer, error);
    }
    consumer->note = *error;
    consumer->noted = true;
    leat_spin_unlock(&consumer->lock);
    if (final) consumer_tell(consumer);
}

void leat_consumer_runs_void(struct leat_consumer *consumer)
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
    leat_consumer_runs_void(consumer);
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

void leat_consumer_notify(struct leat_consumer *consumer)
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

static void command_on_asked(void *arg, leat_err rc, const struct leat_msg_located *found,
                             const struct leat_error *error)
{
    struct consumer_command *command = arg;
    command->error = *error;
    command->error.code = rc;
    if (found) command->found = *found;
    command->found.text = (struct leat_msg_string){0}; /* a view, and over */
    command_end(command);
}

static void command_ask(struct leat_consumer *consumer, struct consumer_command *command)
{
    leat_err rc = LEAT_E_INVALID;
    if (command->partition < 0) command->partition = leat_consumer_engine_only(consumer->engine);
    if (command->partition >= 0)
        rc = leat_consumer_engine_ask(consumer->engine, command->partition, &command->question,
                                      command->timeout_us, command_on_asked, command);
    if (rc == LEAT_OK) return;
    (void)leat_error_set(&command->error, rc, "%s",
                         rc == LEAT_E_INVALID
                             ? "an application offset is of one log, and this consumer does not "
                               "read just one: name streamlet and log"
                             : leat_err_text(rc));
    command_end(command);
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
        leat_consumer_runs_void(consumer);
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
    case COMMAND_ASK:
        command_ask(consumer, command);
        return;
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

bool leat_consumer_command(struct leat_consumer *consumer, struct consumer_command *command,
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

/* ---- the beginning ---- */

static leat_err start_refuse(const char *stream, const char *group, leat_err rc,
                             struct leat_error *error)
{
    size_t bytes = strlen(stream);
    bool of_stream = bytes == 0 || bytes > LEAT_STREAM_NAME_BYTES_MAX;
    if (rc == LEAT_E_BAD_NAME && !of_stream)
        return leat_error_set(error, rc, "'%.100s': a group's name has 1 to 249 bytes",
                              group ? group : "");
    return leat_error_set(error, rc, "'%.100s': %s", stream,
                          rc == LEAT_E_BAD_NAME ? "not a name of 1 to 249 bytes"
                                                : leat_err_text(rc));
}

leat_err leat_consumer_start(struct leat_consumer *consumer, const char *stream,
                             const struct leat_consumer_engine_options *options,
                             const struct leat_shared_options *shared, struct leat_error *error)
{
    leat_err rc = leat_shared_open(&consumer->shared, shared, error);
    if (rc) return rc;
    struct leat_consumer_engine_events events = {
        .on_ready = engine_on_ready,
        .on_fetched = engine_on_fetched,
        .on_error = engine_on_error,
        .on_revoked = engine_on_revoked,
        .owner = consumer,
    };
    consumer->mail.deliver = mail_deliver;
    struct leat_consumer_engine_options own = *options;
    own.actor = consumer->shared.io;
    rc = leat_consumer_engine_create(consumer->shared.env, consumer->shared.timers,
                                     consumer->shared.client, &own, &events, &consumer->engine);
    if (rc) return start_refuse(stream, options->group, rc, error);
    leat_shared_start(&consumer->shared, consumer, consumer_on_turn_end);
    return LEAT_OK;
}
