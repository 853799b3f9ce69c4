/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer sets, seen from the broker: requests go to the core of their set's home log, and the
 * sets get what they need of logs and streams. The internal stream of the homes is made when the
 * first request comes. */
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/diary.h"
#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/hosted.h"
#include "broker/data/lookup.h"
#include "broker/data/route.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "sets/groups.h"

struct set_call {
    struct leat_call call;
    struct leat_list by_peer;
    struct leat_core *home;    /* NULL: not on its way yet */
    struct leat_mail cancel;   /* its peer has gone: to the home and back */
    bool cancelling;           /* that mail is under way. Peer's core */
    bool answered;             /* the request is back. Peer's core */
    struct leat_sets *waiting; /* where it waits; NULL: nowhere. Home's core */
    struct leat_maker maker;
    struct leat_stream_seek seek;
    struct leat_sets_request request;
    uint32_t streams[LEAT_SETS_STREAMS_MAX];
    struct leat_sets_offset *commits;
    struct leat_log_ref *logs;
    uint8_t *control; /* as it came: another node may be the home's, or a stream be on its way */
    uint32_t control_bytes;
};

static void set_route(struct set_call *set);
static void set_forward(struct set_call *set, uint64_t owner);
static void set_deliver_home(void *actor, struct leat_mail *mail);
static void set_on_done(struct leat_sets_request *request);
static void set_back(struct set_call *set);
static void set_deliver_back(void *actor, struct leat_mail *mail);
static void set_end(struct set_call *set, leat_err code, const char *text);
static void set_release(struct set_call *set);

/* ---- what sets need of a broker ---- */

static uint32_t home_of(const struct leat_hosted *hosted)
{
    return leat_sets_home_of(hosted->ref, hosted->stream->desc->settings.logs);
}

static leat_err sets_append(void *ctx, const struct leat_batch *batch, struct leat_append *append)
{
    struct leat_hosted *hosted = ctx;
    struct leat_error error = {LEAT_OK, ""};
    if (hosted->going) return LEAT_E_STARTING;
    leat_err rc = leat_log_append(hosted->log, batch, append, &error);
    if (rc != LEAT_OK && leat_err_class(rc) != LEAT_CLASS_RETRY)
        leat_diary_error("consumer sets of home %u can't be written: %s", home_of(hosted),
                         error.code != LEAT_OK ? error.text : leat_err_text(rc));
    return rc;
}

static bool sets_stream_size(void *ctx, uint32_t id, uint32_t *out_streamlets, uint32_t *out_logs)
{
    const struct leat_hosted *hosted = ctx;
    const struct leat_stream *stream = leat_stream_find(hosted->core, id);
    if (stream == NULL) return false;
    *out_streamlets = stream->desc->streamlet_count;
    *out_logs = stream->desc->settings.logs;
    return true;
}

static void sets_group(void *ctx, struct leat_sets_group_query *query)
{
    leat_group_ask(((struct leat_hosted *)ctx)->core, query);
}

leat_err leat_sets_attach(struct leat_hosted *hosted, struct leat_log_options *options)
{
    struct leat_core *core = hosted->core;
    struct leat_sets_options sets = {
        .env = core->env,
        .timers = &core->timers,
        .home = home_of(hosted),
        .retention_us = core->node->options.offsets_retention_us,
        .group_bytes_max = leat_node_group_bytes(core->node->options.memory_bytes),
        .followed = hosted->stream->desc->settings.copies > 1,
        .room = &core->node->sets_room,
        .broker = {sets_append, sets_stream_size, sets_group},
        .ctx = hosted,
    };
    leat_err rc = leat_sets_create(&sets, &hosted->sets);
    if (rc != LEAT_OK) return rc;
    options->app = leat_sets_app(hosted->sets);
    leat_list_push_back(&core->home_logs, &hosted->home);
    return LEAT_OK;
}

void leat_sets_log_made(struct leat_hosted *hosted)
{
    struct leat_log_info info;
    leat_log_info(hosted->log, &info);
    if (!info.cold) leat_sets_is_read(hosted->sets);
}

/* ---- requests ---- */

/* A name without bytes of zero, which ends here. */
static leat_err name_copy(struct leat_msg_string name, char *out, size_t bytes_max)
{
    if (name.bytes > bytes_max || (name.bytes > 0 && memchr(name.text, 0, name.bytes) != NULL))
        return LEAT_E_INVALID;
    if (name.bytes > 0) memcpy(out, name.text, name.bytes);
    out[name.bytes] = '\0';
    return LEAT_OK;
}

static leat_err names_copy(struct set_call *set, const struct leat_msg_reader *reader,
                           struct leat_msg_string name, struct leat_msg_string member,
                           struct leat_error *error)
{
    if (reader->failed) return LEAT_E_INVALID;
    if (name.bytes == 0 || name_copy(name, set->request.set, LEAT_SETS_NAME_BYTES_MAX) != LEAT_OK)
        return leat_error_set(error, LEAT_E_BAD_NAME,
                              "a consumer set's name has 1 to %d bytes, none of them zero",
                              LEAT_SETS_NAME_BYTES_MAX);
    return name_copy(member, set->request.member, LEAT_SETS_MEMBER_BYTES_MAX);
}

/* LEAT_E_AGAIN: a name is being looked for; everything is decoded anew after that. */
static leat_err decode_join(struct set_call *set, struct leat_msg_reader *reader,
                            uint32_t *out_left, struct leat_error *error)
{
    struct leat_core *core = set->call.core;
    struct leat_msg_set_join body;
    *out_left = leat_msg_set_join_read(reader, &body);
    leat_err rc = names_copy(set, reader, body.set, body.member, error);
    if (rc != LEAT_OK) return rc;
    if (body.mode > 1) return LEAT_E_INVALID;
    if (body.stream_count == 0 || body.stream_count > LEAT_SETS_STREAMS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "a member names 1 to %d streams, not %u",
                              LEAT_SETS_STREAMS_MAX, body.stream_count);
    for (uint32_t i = 0; i < body.stream_count; i++) {
        struct leat_msg_string name = leat_msg_read_string(reader);
        if (reader->failed) return LEAT_E_INVALID;
        struct leat_stream *stream;
        rc = leat_stream_seek(core, &set->seek, name.text, name.bytes, &stream, error);
        if (rc != LEAT_OK) return rc;
        set->streams[i] = stream->desc->id;
    }
    set->request.mode = body.mode == 0 ? LEAT_SETS_ORDERED : LEAT_SETS_PARALLEL;
    set->request.session_ms = body.session_ms;
    set->request.streams = set->streams;
    set->request.stream_count = body.stream_count;
    return LEAT_OK;
}

static leat_err decode_commit(struct set_call *set, struct leat_msg_reader *reader,
                              uint32_t *out_left, struct leat_error *error)
{
    struct leat_msg_set_commit body;
    *out_left = leat_msg_set_commit_read(reader, &body);
    leat_err rc = names_copy(set, reader, body.set, body.member, error);
    if (rc != LEAT_OK) return rc;
    if (body.offset_count > LEAT_SETS_COMMIT_ROWS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "a commit has at most %d rows, not %u",
                              LEAT_SETS_COMMIT_ROWS_MAX, body.offset_count);
    set->commits = leat_call_memory(&set->call, body.offset_count + 1, sizeof *set->commits);
    if (set->commits == NULL) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < body.offset_count; i++) {
        struct leat_msg_set_offset row;
        leat_msg_set_offset_read(reader, &row);
        set->commits[i] =
            (struct leat_sets_offset){.log = row.log, .group = row.group, .offset = row.offset};
    }
    set->request.generation = body.generation;
    set->request.commits = set->commits;
    set->request.commit_count = body.offset_count;
    return reader->failed ? LEAT_E_INVALID : LEAT_OK;
}

static leat_err decode_fetch(struct set_call *set, struct leat_msg_reader *reader,
                             uint32_t *out_left, struct leat_error *error)
{
    struct leat_msg_set_fetch body;
    *out_left = leat_msg_set_fetch_read(reader, &body);
    leat_err rc = names_copy(set, reader, body.set, (struct leat_msg_string){0}, error);
    if (rc != LEAT_OK) return rc;
    if (body.log_count > LEAT_SETS_LOGS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY,
                              "a set's offsets are asked for of at most %d "
                              "logs at once, not %u",
                              LEAT_SETS_LOGS_MAX, body.log_count);
    set->logs = leat_call_memory(&set->call, body.log_count + 1, sizeof *set->logs);
    if (set->logs == NULL) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < body.log_count; i++)
        leat_msg_log_ref_read(reader, &set->logs[i]);
    set->request.logs = set->logs;
    set->request.log_count = body.log_count;
    return reader->failed ? LEAT_E_INVALID : LEAT_OK;
}

/* Behind a request that another node has handed on stands [address], in so many bytes: whose it is. */
enum { ADDRESS_BYTES = 10, ADDRESS_ARRAY = 0x91, ADDRESS_U64 = 0xcf };

static void address_write(uint8_t *at, uint64_t address)
{
    at[0] = ADDRESS_ARRAY;
    at[1] = ADDRESS_U64;
    leat_put_be64(at + 2, address);
}

/* 0: handed on by a node of an earlier version. */
static uint64_t address_read(const struct leat_frame *frame)
{
    if (frame->control_bytes < ADDRESS_BYTES) return 0;
    const uint8_t *at = (const uint8_t *)frame->control + frame->control_bytes - ADDRESS_BYTES;
    return at[0] == ADDRESS_ARRAY && at[1] == ADDRESS_U64 ? leat_get_be64(at + 2) : 0;
}

static leat_err body_decode(struct set_call *set, struct leat_msg_reader *reader,
                            uint32_t *out_left, struct leat_error *error)
{
    struct leat_msg_set_heartbeat heartbeat;
    struct leat_msg_set_leave leave;
    switch ((enum leat_kind)set->call.kind) {
    case LEAT_KIND_SET_JOIN:
        set->request.kind = LEAT_SETS_JOIN;
        return decode_join(set, reader, out_left, error);
    case LEAT_KIND_SET_HEARTBEAT:
        set->request.kind = LEAT_SETS_HEARTBEAT;
        *out_left = leat_msg_set_heartbeat_read(reader, &heartbeat);
        set->request.generation = heartbeat.generation;
        return names_copy(set, reader, heartbeat.set, heartbeat.member, error);
    case LEAT_KIND_SET_LEAVE:
        set->request.kind = LEAT_SETS_LEAVE;
        *out_left = leat_msg_set_leave_read(reader, &leave);
        return names_copy(set, reader, leave.set, leave.member, error);
    case LEAT_KIND_SET_COMMIT:
        set->request.kind = LEAT_SETS_COMMIT;
        return decode_commit(set, reader, out_left, error);
    default:
        LEAT_ASSERT(set->call.kind == LEAT_KIND_SET_FETCH);
        set->request.kind = LEAT_SETS_FETCH;
        return decode_fetch(set, reader, out_left, error);
    }
}

/* LEAT_E_AGAIN: as decode_join(). */
static leat_err set_decode(struct set_call *set, struct leat_error *error)
{
    struct leat_msg_reader reader;
    uint32_t left;
    leat_msg_reader_init(&reader, set->control, set->control_bytes);
    leat_err rc = body_decode(set, &reader, &left, error);
    if (rc != LEAT_OK) return rc;
    leat_msg_skip_n(&reader, left);
    if (set->call.by_link && reader.end - reader.at == ADDRESS_BYTES) reader.at = reader.end;
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

static void set_on_made(struct leat_maker *maker)
{
    struct set_call *set = maker->owner;
    if (maker->rc != LEAT_OK && maker->rc != LEAT_E_STREAM_EXISTS) {
        /* As many copies as there were nodes a moment ago: one has gone meanwhile. Nobody asked for that. */
        set_end(set, maker->rc == LEAT_E_INVALID ? LEAT_E_AGAIN : maker->rc, maker->error.text);
        return;
    }
    set_route(set);
}

static void set_on_published(struct leat_stream_wait *wait)
{
    set_route(wait->owner);
}

static void set_begin(struct set_call *set)
{
    struct leat_core *core = set->call.core;
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = set_decode(set, &error);
    if (rc == LEAT_E_AGAIN) return; /* set_on_again() follows */
    if (rc != LEAT_OK) {
        const char *text = error.code != LEAT_OK    ? error.text
                           : rc == LEAT_E_NO_MEMORY ? NULL
                                                    : "malformed request to a consumer set";
        set_end(set, rc, text);
        return;
    }
    set->maker.wait.on_ready = set_on_published;
    set->maker.wait.owner = set;
    const char *name = LEAT_SETS_STREAM_NAME;
    if (leat_stream_find_name(core, name, strlen(name)) == NULL) {
        struct leat_stream_settings settings = leat_sets_stream_settings();
        set->maker.on_done = set_on_made;
        set->maker.owner = set;
        leat_maker_start(core, &set->maker, name, strlen(name), &settings);
        return;
    }
    set_route(set);
}

static void set_on_again(struct leat_stream_seek *seek)
{
    set_begin(seek->owner);
}

void leat_call_set(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct set_call *set = leat_call_create(peer, frame, sizeof *set);
    if (set == NULL) return;
    leat_list_init(&set->by_peer);
    leat_list_push_back(&peer->set_calls, &set->by_peer);
    set->request.address = set->call.by_link ? address_read(frame) : peer->address_number;
    set->control = leat_call_memory(&set->call, 1, frame->control_bytes + ADDRESS_BYTES);
    if (set->control == NULL) {
        set_end(set, LEAT_E_AGAIN, NULL);
        return;
    }
    memcpy(set->control, frame->control, frame->control_bytes);
    set->control_bytes = frame->control_bytes;
    set->request.answer_bytes_max = LEAT_SETS_ANSWER_BYTES;
    set->seek.on_again = set_on_again;
    set->maker.address = set->seek.catch_up.address = leat_peer_asks(peer);
    set->seek.owner = set;
    set_begin(set);
}

/* The home is another node's: that one answers. */
static void set_forward(struct set_call *set, uint64_t owner)
{
    uint8_t *control = set->control;
    if (set->control_bytes + ADDRESS_BYTES > LEAT_CONTROL_BYTES_MAX) {
        set_end(set, LEAT_E_TOO_LARGE, NULL);
        return;
    }
    address_write(control + set->control_bytes, set->request.address);
    set->control_bytes += ADDRESS_BYTES;
    set->control = NULL;
    set_release(set);
    leat_call_forward(&set->call, owner, control, set->control_bytes);
    leat_mem_free(control);
}

static struct leat_log_ref set_home(const struct set_call *set, const struct leat_stream_desc *desc)
{
    uint32_t home = leat_sets_home(set->request.set, strlen(set->request.set));
    return leat_sets_home_log(desc->id, desc->settings.logs, home);
}

static void set_route(struct set_call *set)
{
    struct leat_core *core = set->call.core;
    if (leat_call_abandoned(&set->call)) {
        set_end(set, LEAT_E_CANCELLED, NULL);
        return;
    }
    const char *name = LEAT_SETS_STREAM_NAME;
    struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
    if (stream == NULL) {
        /* Made by another request just now, and still on its way to this core. */
        set_end(set, LEAT_E_AGAIN, "the home of consumer sets is being made, try again");
        return;
    }
    if (!stream->published) {
        leat_list_push_back(&stream->waiters, &set->maker.wait.link);
        return;
    }
    struct leat_log_ref ref = set_home(set, stream->desc);
    if (!leat_core_owns(core, stream->desc, ref.streamlet)) {
        set_forward(set, stream->desc->streamlets[ref.streamlet].owner);
        return;
    }
    uint32_t home = leat_core_of_log(core->node, ref, stream->desc->settings.logs);
    set->home = &core->node->cores[home];
    set->request.on_done = set_on_done;
    set->request.owner = set;
    leat_core_mail(core, home, &set->call.mail, set_deliver_home);
}

static void set_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, call.mail);
    const char *name = LEAT_SETS_STREAM_NAME;
    const struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
    struct leat_hosted *hosted = NULL;
    if (stream != NULL) hosted = leat_hosted_find(core, set_home(set, stream->desc));
    if (hosted == NULL || hosted->going || hosted->sets == NULL) {
        set->request.rc = leat_error_set(&set->request.error, LEAT_E_STARTING,
                                         "the set's home log is not served right now");
        set_back(set);
        return;
    }
    set->request.rc =
        LEAT_BUG(OLD_HOME) ? LEAT_OK : leat_node_stands(core->node, &set->request.error);
    if (set->request.rc == LEAT_OK) {
        set->waiting = hosted->sets; /* before: one that waits may be on its way back already */
        if (!leat_sets_do(hosted->sets, &set->request)) return;
        set->waiting = NULL;
    }
    set_back(set);
}

static void set_on_done(struct leat_sets_request *request)
{
    struct set_call *set = request->owner;
    set->waiting = NULL;
    set_back(set);
}

/* ---- the peer has gone ----
 *
 * A join is held until its set has settled, up to a whole session: as long it would hold one of the
 * home's places, and its member would get a share that nobody reads. */

static void set_deliver_cancelled(void *actor, struct leat_mail *mail)
{
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, cancel);
    (void)actor;
    set->cancelling = false;
    if (set->answered) set_end(set, LEAT_E_CANCELLED, NULL);
}

/* Mail of one core to another keeps its order, so the request has been here before. It has gone
 * back, or waits, and then goes back from within. */
static void set_deliver_cancel(void *actor, struct leat_mail *mail)
{
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, cancel);
    if (set->waiting != NULL) leat_sets_cancel(set->waiting, &set->request);
    leat_core_mail(actor, set->call.core->index, mail, set_deliver_cancelled);
}

void leat_sets_peer_closed(struct leat_peer *peer)
{
    LEAT_LIST_EACH(&peer->set_calls, link)
    {
        struct set_call *set = LEAT_CONTAINER(link, struct set_call, by_peer);
        if (set->home == NULL || set->cancelling) continue;
        set->cancelling = true;
        leat_core_mail(peer->core, set->home->index, &set->cancel, set_deliver_cancel);
    }
}

static void set_back(struct set_call *set)
{
    leat_core_mail(set->home, set->call.core->index, &set->call.mail, set_deliver_back);
}

static void set_release(struct set_call *set)
{
    leat_list_remove(&set->by_peer);
    leat_mem_free(set->request.assigned);
    leat_mem_free(set->request.offsets);
    leat_mem_free(set->commits);
    leat_mem_free(set->logs);
    leat_mem_free(set->control);
}

static void answer_write(struct leat_msg_writer *writer, const struct leat_sets_request *request)
{
    if (request->kind == LEAT_SETS_JOIN) {
        struct leat_msg_set_joined joined = {
            .member = {request->member, (uint32_t)strlen(request->member)},
            .generation = request->generation,
            .share_count = (uint32_t)request->assigned_count,
        };
        leat_msg_set_joined_write(writer, &joined);
        for (size_t i = 0; i < request->assigned_count; i++) {
            const struct leat_sets_assigned *own = &request->assigned[i];
            struct leat_msg_set_share share = {own->log, own->first_group, own->group_step, 0};
            leat_msg_set_share_write(writer, &share);
        }
    } else if (request->kind == LEAT_SETS_FETCH) {
        struct leat_msg_set_fetched fetched = {request->generation,
                                               (uint32_t)request->offset_count};
        leat_msg_set_fetched_write(writer, &fetched);
        for (size_t i = 0; i < request->offset_count; i++) {
            const struct leat_sets_offset *own = &request->offsets[i];
            struct leat_msg_set_offset row = {own->log, own->group, own->offset};
            leat_msg_set_offset_write(writer, &row);
        }
    } else {
        leat_msg_write_array(writer, 0);
    }
}

/* The answer is larger than what needs no account. What it takes is held by the call until it is written. */
static bool set_asks_again(struct set_call *set)
{
    struct leat_sets_request *request = &set->request;
    if (request->rc != LEAT_E_NO_MEMORY || request->answer_bytes <= request->answer_bytes_max)
        return false;
    /* There may be more of it when it comes again. */
    size_t most = request->answer_bytes + request->answer_bytes / 8;
    if (!leat_call_hold(&set->call, most)) {
        set_end(set, LEAT_E_AGAIN,
                "the memory of this core for answers is full of those that clients have not "
                "taken: try again");
        return true;
    }
    request->answer_bytes_max += most;
    set->answered = false;
    set_route(set);
    return true;
}

static void set_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct set_call *set = LEAT_CONTAINER(mail, struct set_call, call.mail);
    struct leat_sets_request *request = &set->request;
    struct leat_msg_writer writer;
    set->answered = true;
    if (set->cancelling) return; /* it is freed when that mail is back */
    if (set_asks_again(set)) return;
    if (request->rc != LEAT_OK) {
        set_end(set, request->rc, request->error.code != LEAT_OK ? request->error.text : NULL);
        return;
    }
    leat_call_writer(core, &writer);
    answer_write(&writer, request);
    set_release(set);
    leat_call_answer(&set->call, &writer);
}

static void set_end(struct set_call *set, leat_err code, const char *text)
{
    set_release(set);
    leat_call_refuse(&set->call, code, text);
}
