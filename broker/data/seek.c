/* SPDX-License-Identifier: Apache-2.0 */
/* Streams by name, for clients that may know more streams than this node.
 *
 * A client may have learnt of a stream from another node, which has applied the stream's entry already. A barrier
 * says that this node has applied the entry, too. Core 0 asks for the barrier, and the answer takes the same way over
 * the cores as events of streams, so the answer comes after these events. */
#include <string.h>

#include "base/assert.h"
#include "broker/data/confirm.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/news.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"

/* ---- catching up ---- */

static void catch_up_deliver_start(void *actor, struct leat_mail *mail);
static void catch_up_deliver_step(void *actor, struct leat_mail *mail);
static void catch_up_deliver_end(void *actor, struct leat_mail *mail);

void leat_catch_up(struct leat_core *core, struct leat_catch_up *catch_up)
{
    LEAT_ASSERT_OWNER(core);
    catch_up->core = core;
    catch_up->at = 0;
    catch_up->second_round = false;
    leat_core_mail(core, 0, &catch_up->mail, catch_up_deliver_start);
}

static void catch_up_on_barrier(struct leat_coordinate *request)
{
    struct leat_catch_up *catch_up = request->owner;
    catch_up_deliver_step(&catch_up->core->node->cores[0], &catch_up->mail);
}

static void catch_up_deliver_start(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_catch_up *catch_up = LEAT_CONTAINER(mail, struct leat_catch_up, mail);
    struct leat_coordinate *request = &catch_up->request;
    memset(request, 0, sizeof *request);
    request->kind = LEAT_COORDINATE_BARRIER;
    request->asker = catch_up->address;
    request->wait_us_max = LEAT_CATCH_UP_US_MAX;
    request->on_done = catch_up_on_barrier;
    request->owner = catch_up;
    leat_coordinate(core->env->post, request);
}

static bool catch_up_step(struct leat_news *news, struct leat_core *core, int32_t *left)
{
    struct leat_catch_up *catch_up = LEAT_CONTAINER(news, struct leat_catch_up, news);
    struct leat_mail *mail = &catch_up->mail;
    (void)left;
    catch_up->at++;
    if (catch_up->at == core->node->options.cores) {
        catch_up->at = 0;
        if (catch_up->second_round) {
            leat_core_mail(core, catch_up->core->index, mail, catch_up_deliver_end);
            return true;
        }
        catch_up->second_round = true;
    }
    leat_core_mail(core, catch_up->at, mail, catch_up_deliver_step);
    return true;
}

static void catch_up_deliver_step(void *actor, struct leat_mail *mail)
{
    leat_news_take(actor, &LEAT_CONTAINER(mail, struct leat_catch_up, mail)->news, catch_up_step);
}

static void catch_up_deliver_end(void *actor, struct leat_mail *mail)
{
    struct leat_catch_up *catch_up = LEAT_CONTAINER(mail, struct leat_catch_up, mail);
    (void)actor;
    catch_up->on_done(catch_up, catch_up->request.rc);
}

/* ---- streams by name ---- */

static void seek_on_ready(struct leat_stream_wait *wait)
{
    struct leat_stream_seek *seek = wait->owner;
    seek->on_again(seek);
}

static void seek_on_caught_up(struct leat_catch_up *catch_up, leat_err rc)
{
    struct leat_stream_seek *seek = catch_up->owner;
    seek->rc = rc;
    seek->on_again(seek);
}

leat_err leat_stream_seek(struct leat_core *core, struct leat_stream_seek *seek, const char *name,
                          size_t bytes, struct leat_stream **out_stream, struct leat_error *error)
{
    LEAT_ASSERT_OWNER(core);
    struct leat_stream *stream = leat_stream_find_name(core, name, bytes);
    int shown = (int)(bytes < 120 ? bytes : 120);
    error->code = LEAT_OK;
    if (stream != NULL && stream->published) {
        *out_stream = stream;
        return LEAT_OK;
    }
    if (stream != NULL) { /* coming, or going */
        seek->wait.on_ready = seek_on_ready;
        seek->wait.owner = seek;
        leat_list_push_back(&stream->waiters, &seek->wait.link);
        return LEAT_E_AGAIN;
    }
    if (!seek->caught_up && core->members.links != NULL) {
        seek->caught_up = true;
        seek->catch_up.on_done = seek_on_caught_up;
        seek->catch_up.owner = seek;
        leat_catch_up(core, &seek->catch_up);
        return LEAT_E_AGAIN;
    }
    /* Not LEAT_E_AGAIN, which is an answer to come. */
    if (seek->rc == LEAT_E_AGAIN)
        return leat_error_set(error, LEAT_E_TIMEOUT,
                              "no stream \"%.*s\" is known here, and the coordinators can't be "
                              "asked for it now: %s",
                              shown, name, seek->catch_up.request.error.text);
    if (seek->rc != LEAT_OK)
        return leat_error_set(error, LEAT_E_TIMEOUT,
                              "no stream \"%.*s\" is known here, and no leader among the "
                              "coordinators says whether there is one: try again",
                              shown, name);
    return leat_error_set(error, LEAT_E_UNKNOWN_STREAM, "no stream is named \"%.*s\"", shown, name);
}
