/* SPDX-License-Identifier: Apache-2.0 */
/* A rig on the real ports. */
#include "tests/transport/os_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/os/real_rig.h"

enum { RIG_WAIT_SECONDS = 60 };

struct rig_actor {
    struct os_rig *rig;
    unsigned number;
};
static struct rig_actor actors[2];

static void actor_wake(void *self)
{
    struct rig_actor *actor = self;
    if (actor->rig->woken) actor->rig->woken(actor->rig, actor->number);
}
static void actor_turn_end(void *self)
{
    struct rig_actor *actor = self;
    if (actor->rig->turn_end) actor->rig->turn_end(actor->rig, actor->number);
}
static const struct leat_actor_ops actor_ops = {.on_wake = actor_wake,
                                                .on_turn_end = actor_turn_end};

/* ---- running things on an actor ---- */

struct call {
    struct leat_mail mail;
    struct os_rig *rig;
    void (*fn)(void *arg);
    void *arg;
    bool done;
};

static void call_deliver(void *actor, struct leat_mail *mail)
{
    struct call *call = LEAT_CONTAINER(mail, struct call, mail);
    struct os_rig *rig = call->rig;
    (void)actor;
    call->fn(call->arg);
    pthread_mutex_lock(&rig->lock);
    call->done = true;
    pthread_cond_broadcast(&rig->wake);
    pthread_mutex_unlock(&rig->lock);
}

static struct timespec deadline(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += RIG_WAIT_SECONDS;
    return until;
}

static void rig_call(void *ctx, unsigned actor, void (*fn)(void *arg), void *arg)
{
    struct os_rig *rig = ctx;
    struct call call = {.mail.deliver = call_deliver, .rig = rig, .fn = fn, .arg = arg};
    struct timespec until = deadline();
    leat_os_world_post(rig->world, actor, &call.mail);
    pthread_mutex_lock(&rig->lock);
    while (!call.done)
        RIG_CHECK(pthread_cond_timedwait(&rig->wake, &rig->lock, &until) != ETIMEDOUT);
    pthread_mutex_unlock(&rig->lock);
}

struct question {
    bool (*done)(void *arg);
    void *arg;
    bool answer;
};
static void ask(void *arg)
{
    struct question *question = arg;
    question->answer = question->done(question->arg);
}

static void rig_wait(void *ctx, unsigned actor, bool (*done)(void *arg), void *arg)
{
    struct os_rig *rig = ctx;
    struct timespec until = deadline();
    for (;;) {
        pthread_mutex_lock(&rig->lock);
        uint64_t before = rig->notified;
        pthread_mutex_unlock(&rig->lock);
        struct question question = {done, arg, false};
        rig_call(rig, actor, ask, &question);
        if (question.answer) return;
        pthread_mutex_lock(&rig->lock);
        while (rig->notified == before)
            RIG_CHECK(pthread_cond_timedwait(&rig->wake, &rig->lock, &until) != ETIMEDOUT);
        pthread_mutex_unlock(&rig->lock);
    }
}

static void rig_notify(void *ctx)
{
    struct os_rig *rig = ctx;
    pthread_mutex_lock(&rig->lock);
    rig->notified++;
    pthread_cond_broadcast(&rig->wake);
    pthread_mutex_unlock(&rig->lock);
}

struct source_call {
    const struct leat_rmem *writer;
    void *base;
    size_t bytes;
};
static void source(void *arg)
{
    struct source_call *call = arg;
    struct leat_error error = {.text = ""};
    if (call->writer->source(call->writer->ctx, call->base, call->bytes, &error)) {
        fprintf(stderr, "%s\n", error.text);
        RIG_CHECK(false);
    }
}

static uint8_t *rig_memory(void *ctx, size_t bytes)
{
    struct os_rig *rig = ctx;
    RIG_CHECK(rig->memory == NULL);
    rig->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    RIG_CHECK(rig->memory != MAP_FAILED);
    struct source_call call = {rig->rig.writer, rig->memory, bytes};
    if (call.writer->source) rig_call(rig, RIG_WRITER, source, &call);
    return rig->memory; /* the process ends soon: not unmapped while registered */
}

/* ---- life ---- */

struct os_rig *os_rig_make(const char *dir, const char *verbs_host)
{
    struct os_rig *rig = calloc(1, sizeof *rig);
    RIG_CHECK(rig != NULL);
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->wake, NULL);
    if (dir)
        snprintf(rig->dir, sizeof rig->dir, "%s", dir);
    else
        snprintf(rig->dir, sizeof rig->dir, "/tmp/leat-transport-XXXXXX");
    if (!dir) RIG_CHECK(mkdtemp(rig->dir) != NULL);
    struct leat_error error = {.text = ""};
    struct leat_os_world_options options = {.data_dir = rig->dir};
    RIG_CHECK(leat_os_world_create(&options, &rig->world, &error) == LEAT_OK);
    for (unsigned i = 0; i < 2; i++)
        RIG_CHECK(leat_os_actor_create(rig->world, i, LEAT_OS_ACTOR_CORE, &rig->envs[i], &error) ==
                  LEAT_OK);
    struct leat_os_rmem_options rmem = {.host = RIG_HOST, .verbs_host = verbs_host};
    if (leat_os_rmem_open(rig->world, &rmem, &error)) {
        fprintf(stderr, "%s\n", error.text);
        RIG_CHECK(false);
    }
    rig->rig = (struct transport_rig){
        .ctx = rig,
        .host = rig->envs[RIG_HOST]->rmem_host,
        .writer_env = rig->envs[RIG_WRITER],
        .call = rig_call,
        .wait = rig_wait,
        .notify = rig_notify,
        .memory = rig_memory,
    };
    return rig;
}

const struct leat_rmem *os_rig_writer(const struct os_rig *rig, enum leat_rmem_kind kind)
{
    for (unsigned i = 0; i < LEAT_ENV_RMEMS; i++) {
        const struct leat_rmem *port = rig->envs[RIG_WRITER]->rmems[i];
        if (port && port->kind == kind) return port;
    }
    return NULL;
}

const void *os_rig_actor(unsigned actor)
{
    return &actors[actor];
}

void os_rig_start(struct os_rig *rig)
{
    for (unsigned i = 0; i < 2; i++) {
        actors[i] = (struct rig_actor){rig, i};
        RIG_CHECK(leat_os_actor_start(rig->world, i, &actors[i], &actor_ops, NULL, "rig", -1) ==
                  LEAT_OK);
    }
}

void os_rig_stop(struct os_rig *rig)
{
    leat_os_actor_join(rig->world, RIG_WRITER);
    leat_os_actor_join(rig->world, RIG_HOST);
    leat_os_world_settle(rig->world);
}

void os_rig_drop(struct os_rig *rig)
{
    leat_os_world_destroy(&rig->world);
    if (strncmp(rig->dir, "/tmp/leat-transport-", 20) == 0) real_rig_remove_dir(rig->dir);
    pthread_cond_destroy(&rig->wake);
    pthread_mutex_destroy(&rig->lock);
    free(rig);
}
