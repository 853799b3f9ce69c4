/* SPDX-License-Identifier: Apache-2.0 */
/* Streams found, made and deleted, for all protocols. */
#include "broker/admin/streams.h"

#include <string.h>

#include "base/assert.h"
#include "base/node_log.h"
#include "broker/admin/core_admin.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"

leat_err leat_stream_name_allowed(struct leat_msg_string name, struct leat_error *error)
{
    leat_err rc = leat_stream_name_check(name.text, name.bytes, error);
    if (rc == LEAT_OK && name.bytes >= 5 && memcmp(name.text, "leat.", 5) == 0)
        rc = leat_error_set(error, LEAT_E_BAD_NAME,
                            "names that begin with \"leat.\" are the server's own");
    return rc;
}

static uint64_t logs_of(const struct leat_core *core, const struct leat_stream_settings *settings)
{
    uint64_t streamlets = settings->streamlets == 0 ? 1 : settings->streamlets;
    return streamlets * (settings->logs == 0 ? core->node->options.cores : settings->logs);
}

static leat_err size_allowed(const struct leat_core *core,
                             const struct leat_stream_settings *settings, struct leat_error *error)
{
    uint64_t streamlets = settings->streamlets == 0 ? 1 : settings->streamlets;
    uint64_t logs = settings->logs == 0 ? core->node->options.cores : settings->logs;
    if (streamlets * logs > LEAT_BROKER_STREAM_LOGS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY,
                              "%llu streamlets of %llu logs each are more than the %d logs that "
                              "one stream may have",
                              (unsigned long long)streamlets, (unsigned long long)logs,
                              LEAT_BROKER_STREAM_LOGS_MAX);
    if (core->data->partition_count + streamlets * logs > LEAT_CORE_LOGS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "this server holds %u logs per core already",
                              core->data->partition_count);
    return LEAT_OK;
}

/* A node's share of so many logs, while one node is not there. */
static uint64_t share_of(const struct leat_core *core, uint64_t logs)
{
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < core->members.count; i++)
        nodes += core->members.rows[i]->info.state == LEAT_NODE_UP;
    return leat_heap_share(logs, nodes);
}

/* Bytes of stored segments, and of all other things that take memory beside logs. */
static uint64_t other_bytes(const struct leat_core *core)
{
    const struct leat_node_options *options = &core->node->options;
    uint64_t all = options->heap_bytes(options->heap_ctx);
    uint64_t own = share_of(core, core->logs_known) * LEAT_LOG_HEAP_BYTES;
    return all > own ? all - own : 0;
}

/* Would `more` logs leave each node a step of its pool for segments, and the memory for their own first segments?
 * Counted with one node fewer than there are.
 * SUBTLE: logs that are being made count, though no core knows them yet. (1) A client names a thousand streams that
 * do not exist, or a thousand clients do. (2) There is room for one stream. (3) All streams are asked for before any
 * of them is made. */
static leat_err memory_allowed(const struct leat_core *core, uint64_t more,
                               struct leat_error *error)
{
    struct leat_node *node = core->node;
    if (node->options.heap_bytes == NULL) return LEAT_OK;
    uint64_t making = atomic_load_explicit(&node->logs_making, memory_order_relaxed);
    uint64_t takes = share_of(core, core->logs_known + more) * LEAT_LOG_HEAP_BYTES;
    uint64_t with = share_of(core, core->logs_known + making + more) * LEAT_LOG_HEAP_BYTES;
    uint64_t room = leat_node_heap_most(node), other = other_bytes(core);
    if (with + other <= room) return LEAT_OK;
    if (takes + other <= room)
        return leat_error_set(error, LEAT_E_AGAIN,
                              "%llu logs that are being made may take what is left of a memory "
                              "budget of %llu MiB: try again",
                              (unsigned long long)making,
                              (unsigned long long)(node->options.memory_bytes >> 20));
    uint64_t left = room > other ? room - other : 0;
    return leat_error_set(
        error, LEAT_E_TOO_MANY,
        "with %llu logs more a node's logs take up to %llu MiB, and its memory budget of "
        "%llu MiB leaves %llu MiB for them: fewer streamlets or logs, delete "
        "streams, or a larger --memory on every node",
        (unsigned long long)more, (unsigned long long)(takes >> 20),
        (unsigned long long)(node->options.memory_bytes >> 20), (unsigned long long)(left >> 20));
}

static uint64_t logs_owned(const struct leat_core *core, uint64_t incarnation)
{
    uint64_t logs = 0;
    for (uint32_t i = 0; i <= core->data->stream_mask; i++)
        for (const struct leat_stream *it = core->data->streams_by_id[i]; it; it = it->by_id_next)
            for (uint32_t s = 0; !it->deleted && s < it->desc->streamlet_count; s++)
                if (it->desc->streamlets[s].owner == incarnation) logs += it->desc->settings.logs;
    return logs;
}

leat_err leat_stream_move_allowed(const struct leat_core *core, const struct leat_stream_desc *desc,
                                  const struct leat_node_info *target, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    const struct leat_node *node = core->node;
    if (node->options.heap_bytes == NULL) return LEAT_OK;
    uint64_t has = logs_owned(core, target->incarnation), more = desc->settings.logs;
    uint64_t takes = (has + more) * LEAT_LOG_HEAP_BYTES, other = other_bytes(core);
    uint64_t room = leat_node_heap_most(node), left = room > other ? room - other : 0;
    /* A node gets its share of all logs anyway when another node dies. */
    if (takes <= left || has + more <= share_of(core, core->logs_known)) return LEAT_OK;
    return leat_error_set(
        error, LEAT_E_TOO_MANY,
        "node \"%.64s\" has %llu logs: with %llu more they take up to %llu MiB, and a memory "
        "budget of %llu MiB leaves %llu MiB for them: another node, or a larger --memory",
        target->name, (unsigned long long)has, (unsigned long long)more,
        (unsigned long long)(takes >> 20), (unsigned long long)(node->options.memory_bytes >> 20),
        (unsigned long long)(left >> 20));
}

leat_err leat_stream_create_allowed(const struct leat_core *core, struct leat_msg_string name,
                                    const struct leat_stream_settings *settings,
                                    struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    leat_err rc = size_allowed(core, settings, error);
    if (rc != LEAT_OK || leat_stream_find_name(core, name.text, name.bytes) != NULL) return rc;
    return memory_allowed(core, logs_of(core, settings), error);
}

/* An address gets half of the rate, and all addresses together the whole rate. */
static bool rates_take(struct leat_core *core, struct leat_rate *all, struct leat_rate *own,
                       struct leat_rate_limit limit, uint32_t count)
{
    const struct leat_rate_limit half = {limit.burst / 2, limit.per_second / 2};
    uint64_t now_us = leat_core_now(core);
    if (own != NULL && !leat_rate_has(own, now_us, half, count)) return false;
    if (!leat_rate_take(all, now_us, limit, count)) return false;
    return own == NULL || leat_rate_take(own, now_us, half, count);
}

/* SUBTLE: without a rate, (1) one request of 48 KB names 6,000 streams, (2) all of them are committed, made on every
 * core, and stay, and (3) a loop of such requests keeps every coordinator busy. */
leat_err leat_stream_rate_allowed(struct leat_core *core, struct leat_sharer *asks,
                                  struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    static const struct leat_rate_limit limit = {LEAT_CREATES_ASKED_BURST,
                                                 LEAT_CREATES_ASKED_PER_SECOND};
    if (rates_take(core, &core->admin->creates_asked, &asks->creates_asked, limit, 1))
        return LEAT_OK;
    return leat_error_set(error, LEAT_E_STARTING,
                          "streams that are made because somebody names them are made at %d a "
                          "second: try again, or make it with 'leat stream create'",
                          LEAT_CREATES_ASKED_PER_SECOND);
}

/* SUBTLE: the logs of a stream that is only changed count, too, since each core looks at all of them. (1) A request
 * of 200 KB names the stream of 32,768 logs 4,096 times, each time with another retention. (2) Each change is
 * committed, and takes every core 16 ms. (3) The request is answered after a minute, and the next request waits. */
leat_err leat_stream_work_allowed(struct leat_core *core, struct leat_sharer *asks,
                                  const struct leat_stream_desc *desc,
                                  const struct leat_stream_settings *settings,
                                  struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    static const struct leat_rate_limit limit = {LEAT_CREATES_BURST, LEAT_CREATES_PER_SECOND};
    uint64_t count = logs_of(core, settings);
    if (desc != NULL) {
        uint64_t logs = (uint64_t)desc->streamlet_count * desc->settings.logs;
        count = 1 + logs / LEAT_CHANGES_LOGS + (count > logs ? count - logs : 0);
    }
    if (count > LEAT_CREATES_BURST / 2) count = LEAT_CREATES_BURST / 2;
    if (rates_take(core, &core->admin->creates, asks != NULL ? &asks->creates : NULL, limit,
                   (uint32_t)count))
        return LEAT_OK;
    return leat_error_set(error, LEAT_E_AGAIN,
                          "logs of streams are made at %d a second, %d at once, and half of them "
                          "for one address; this takes as long as %llu: try again",
                          LEAT_CREATES_PER_SECOND, LEAT_CREATES_BURST, (unsigned long long)count);
}

leat_err leat_stream_enlarge_allowed(const struct leat_core *core,
                                     const struct leat_stream_desc *desc,
                                     const struct leat_stream_settings *settings,
                                     struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    uint64_t logs = (uint64_t)desc->streamlet_count * desc->settings.logs;
    leat_err rc = size_allowed(core, settings, error);
    if (rc != LEAT_OK || logs_of(core, settings) <= logs) return rc;
    return memory_allowed(core, logs_of(core, settings) - logs, error);
}

static void logs_making_add(const struct leat_core *core, uint64_t logs)
{
    atomic_fetch_add_explicit(&core->node->logs_making, logs, memory_order_relaxed);
}

static void logs_making_end(const struct leat_core *core, uint64_t logs)
{
    atomic_fetch_sub_explicit(&core->node->logs_making, logs, memory_order_relaxed);
}

static void request_init(struct leat_coordinate *request, const struct leat_core *core,
                         uint64_t address, enum leat_coordinate_kind kind, const char *name,
                         size_t name_bytes)
{
    LEAT_ASSERT_CMP(name_bytes, <=, LEAT_STREAM_NAME_BYTES_MAX);
    memset(request, 0, sizeof *request);
    request->kind = kind;
    request->asker = address;
    memcpy(request->name, name, name_bytes);
}

/* ---- making a stream, and waiting until all cores have it ---- */

static void maker_done(struct leat_maker *maker)
{
    logs_making_end(maker->core, maker->logs);
    maker->on_done(maker);
}

static void maker_on_ready(struct leat_stream_wait *wait)
{
    maker_done(wait->owner);
}

static void maker_on_created(struct leat_coordinate *request)
{
    struct leat_maker *maker = request->owner;
    struct leat_core *core = maker->core;
    maker->rc = request->rc;
    maker->error = request->error;
    if (request->rc == LEAT_OK) {
        maker->id = request->desc->id;
        leat_stream_desc_unref(request->desc);
        struct leat_stream *stream = leat_stream_find(core, maker->id);
        maker->wait.on_ready = maker_on_ready;
        maker->wait.owner = maker;
        maker->wait.id = maker->id;
        if (stream != NULL && !stream->published) {
            leat_list_push_back(&stream->waiters, &maker->wait.link);
            return;
        }
        /* The stream's event passes over the other cores, and the answer came straight. (Ids only grow: a stream
         * whose event has passed and that is not here was deleted meanwhile.) */
        if (stream == NULL && maker->id > core->data->stream_seen) {
            leat_list_push_back(&core->admin->stream_awaits, &maker->wait.link);
            return;
        }
    }
    maker_done(maker);
}

void leat_maker_start(struct leat_core *core, struct leat_maker *maker, const char *name,
                      size_t name_bytes, const struct leat_stream_settings *settings)
{
    LEAT_ASSERT_OWNER(core);
    maker->core = core;
    maker->logs = logs_of(core, settings);
    logs_making_add(core, maker->logs);
    request_init(&maker->request, core, maker->address, LEAT_COORDINATE_STREAM_CREATE, name,
                 name_bytes);
    maker->request.settings = *settings;
    maker->request.cores = core->node->options.cores;
    maker->request.incarnation = core->node->incarnation;
    maker->request.on_done = maker_on_created;
    maker->request.owner = maker;
    leat_coordinate(core->env->post, &maker->request);
}

/* ---- finding, and creating what is missing ---- */

static void seeker_next(struct leat_seeker *seeker);

static void seeker_to_next_name(struct leat_seeker *seeker)
{
    seeker->at++;
    seeker->was_there = false;
}

static void seeker_on_made(struct leat_maker *maker)
{
    struct leat_seeker *seeker = maker->owner;
    if (maker->rc == LEAT_E_STREAM_EXISTS && !seeker->was_there) {
        /* Two created it at the same time; the other's may still be on its way here. */
        seeker->was_there = true;
        seeker->seek.caught_up = false;
    } else {
        if (maker->rc != LEAT_OK) seeker->errors[seeker->at] = maker->error;
        seeker_to_next_name(seeker);
    }
    seeker_next(seeker);
}

static void seeker_on_again(struct leat_stream_seek *seek)
{
    seeker_next(seek->owner);
}

static void seeker_on_caught_up(struct leat_catch_up *catch_up, leat_err rc)
{
    (void)rc; /* no leader: what is known is answered */
    seeker_next(catch_up->owner);
}

/* Kafka's metadata has no text for a refusal, and a refused client asks again and again: so the node log gets a line.
 */
static void seeker_refused(struct leat_core *core, const char *name, const struct leat_error *error)
{
    uint64_t now_us = leat_core_now(core);
    if (core->admin->refusal_told_us != 0 &&
        now_us < core->admin->refusal_told_us + LEAT_REFUSAL_TELL_US)
        return;
    core->admin->refusal_told_us = now_us;
    leat_node_log_warn("stream \"%.64s\", asked for by who would use it, is not made: %s", name,
                       error->text);
}

/* false: it goes on later. */
static bool seeker_step(struct leat_seeker *seeker)
{
    struct leat_core *core = seeker->core;
    const char *name = seeker->names[seeker->at];
    struct leat_error *error = &seeker->errors[seeker->at];
    struct leat_stream *stream;
    leat_err rc = leat_stream_seek(core, &seeker->seek, name, strlen(name), &stream, error);
    if (rc == LEAT_E_AGAIN) return false;
    if (rc != LEAT_E_UNKNOWN_STREAM || !seeker->may_create) return true;
    struct leat_msg_string text = {name, (uint32_t)strlen(name)};
    if (leat_stream_name_allowed(text, error) != LEAT_OK) return true;
    if (leat_stream_create_allowed(core, text, &seeker->settings, error) != LEAT_OK ||
        leat_stream_rate_allowed(core, seeker->sharer, error) != LEAT_OK) {
        seeker_refused(core, name, error);
        return true;
    }
    error->code = LEAT_OK;
    seeker->maker.on_done = seeker_on_made;
    seeker->maker.owner = seeker;
    leat_maker_start(core, &seeker->maker, text.text, text.bytes, &seeker->settings);
    return false;
}

static void seeker_next(struct leat_seeker *seeker)
{
    for (; seeker->at < seeker->count; seeker_to_next_name(seeker))
        if (!seeker_step(seeker)) return;
    seeker->on_done(seeker);
}

void leat_seeker_start(struct leat_seeker *seeker)
{
    LEAT_ASSERT_OWNER(seeker->core);
    struct leat_stream_seek *seek = &seeker->seek;
    seeker->at = 0;
    seeker->was_there = false;
    memset(seek, 0, sizeof *seek);
    seek->on_again = seeker_on_again;
    seek->catch_up.address = seeker->maker.address = seeker->address;
    seek->owner = seeker;
    if (!seeker->all || seeker->core->members.links == NULL) {
        seeker_next(seeker);
        return;
    }
    /* A client that asks another node right after a create expects to find the stream there. */
    seek->caught_up = true;
    seek->catch_up.on_done = seeker_on_caught_up;
    seek->catch_up.owner = seeker;
    leat_catch_up(seeker->core, &seek->catch_up);
}

/* ---- deleting ---- */

static void deleter_on_gone(struct leat_stream_wait *wait)
{
    struct leat_deleter *deleter = wait->owner;
    struct leat_stream *stream = leat_stream_find(deleter->core, deleter->request.stream_id);
    if (stream != NULL) /* the stream was only published just now */
        leat_list_push_back(&stream->waiters, &wait->link);
    else
        deleter->on_done(deleter);
}

static void deleter_on_done(struct leat_coordinate *request)
{
    struct leat_deleter *deleter = request->owner;
    deleter->rc = request->rc;
    deleter->error = request->error;
    struct leat_stream *stream = NULL;
    if (request->rc == LEAT_OK) stream = leat_stream_find(deleter->core, request->stream_id);
    if (stream == NULL) {
        deleter->on_done(deleter);
        return;
    }
    deleter->wait.on_ready = deleter_on_gone;
    deleter->wait.owner = deleter;
    leat_list_push_back(&stream->waiters, &deleter->wait.link);
}

void leat_deleter_start(struct leat_deleter *deleter, const char *name, size_t name_bytes)
{
    LEAT_ASSERT_OWNER(deleter->core);
    struct leat_core *core = deleter->core;
    request_init(&deleter->request, core, deleter->address, LEAT_COORDINATE_STREAM_DELETE, name,
                 name_bytes);
    deleter->request.on_done = deleter_on_done;
    deleter->request.owner = deleter;
    leat_coordinate(core->env->post, &deleter->request);
}

/* ---- changing ---- */

static void changer_done(struct leat_changer *changer)
{
    logs_making_end(changer->core, changer->logs);
    changer->on_done(changer);
}

static void changer_on_caught_up(struct leat_catch_up *catch_up, leat_err rc)
{
    struct leat_changer *changer = catch_up->owner;
    /* The change is committed; a client that asks before all cores have heard of it is told to try again */
    (void)rc;
    changer_done(changer);
}

static void changer_on_done(struct leat_coordinate *request)
{
    struct leat_changer *changer = request->owner;
    changer->rc = request->rc;
    changer->error = request->error;
    if (request->rc != LEAT_OK) {
        changer_done(changer);
        return;
    }
    leat_stream_desc_unref(request->desc);
    changer->catch_up.address = changer->address;
    changer->catch_up.on_done = changer_on_caught_up;
    changer->catch_up.owner = changer;
    leat_catch_up(changer->core, &changer->catch_up);
}

void leat_changer_start(struct leat_changer *changer, const char *name, size_t name_bytes)
{
    LEAT_ASSERT_OWNER(changer->core);
    struct leat_core *core = changer->core;
    const struct leat_stream *stream = leat_stream_find_name(core, name, name_bytes);
    uint64_t have = stream != NULL ? stream->logs : 0, logs = logs_of(core, &changer->settings);
    changer->logs = (changer->change & LEAT_CHANGE_STREAMLETS) && logs > have ? logs - have : 0;
    logs_making_add(core, changer->logs);
    request_init(&changer->request, core, changer->address, LEAT_COORDINATE_STREAM_CHANGE, name,
                 name_bytes);
    changer->request.change = changer->change;
    changer->request.settings = changer->settings;
    changer->request.on_done = changer_on_done;
    changer->request.owner = changer;
    leat_coordinate(core->env->post, &changer->request);
}
