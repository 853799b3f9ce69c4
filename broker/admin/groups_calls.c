/* SPDX-License-Identifier: Apache-2.0 */
/* Consumer groups, seen from the broker: requests go to the core of their group's home log, and the
 * groups get what they need of logs and streams. The internal stream of the homes is made when the
 * first request comes. */
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "broker/net/core.h"
#include "groups/classic.h"
#include "wire/row.h"

struct group_call {
    struct leat_call call;
    struct leat_list by_peer;
    struct leat_core *home;      /* NULL: not on its way yet */
    struct leat_mail cancel;     /* the peer has gone: to the home and back */
    bool cancelling;             /* `cancel` is under way. Peer's core */
    bool answered;               /* the request is back. Peer's core */
    struct leat_groups *waiting; /* where it waits; NULL: nowhere. Home's core */
    struct leat_maker maker;
    struct leat_stream_seek seek;
    struct leat_groups_request request;
    uint32_t streams[LEAT_GROUPS_STREAMS_MAX];
    struct leat_groups_offset *commits;
    struct leat_log_ref *logs;
    uint8_t *control; /* as it came: another node may be the home's, or a stream be on its way */
    uint32_t control_bytes;
};

static void group_route(struct group_call *group);
static void group_forward(struct group_call *group, uint64_t owner);
static void group_deliver_home(void *actor, struct leat_mail *mail);
static void group_on_done(struct leat_groups_request *request);
static void group_back(struct group_call *group);
static void group_deliver_back(void *actor, struct leat_mail *mail);
static void group_end(struct group_call *group, leat_err code, const char *text);
static void group_release(struct group_call *group);

/* ---- what groups need of a broker ---- */

static uint32_t home_of(const struct leat_partition *partition)
{
    return leat_groups_home_of(partition->ref, partition->stream->desc->settings.logs);
}

static leat_err groups_append(void *ctx, const struct leat_batch *batch, struct leat_append *append)
{
    struct leat_partition *partition = ctx;
    struct leat_error error = {LEAT_OK, ""};
    if (leat_partition_goes(partition)) return LEAT_E_STARTING;
    leat_err rc = leat_log_append(partition->log, batch, append, &error);
    if (rc != LEAT_OK && leat_err_class(rc) != LEAT_CLASS_RETRY)
        leat_node_log_error("consumer groups of home %u can't be written: %s", home_of(partition),
                            error.code != LEAT_OK ? error.text : leat_err_text(rc));
    return rc;
}

static bool groups_stream_size(void *ctx, uint32_t id, uint32_t *out_streamlets, uint32_t *out_logs)
{
    const struct leat_partition *partition = ctx;
    const struct leat_stream *stream = leat_stream_find(partition->core, id);
    if (stream == NULL) return false;
    *out_streamlets = stream->desc->streamlet_count;
    *out_logs = stream->desc->settings.logs;
    return true;
}

static void groups_group(void *ctx, struct leat_segment_group_query *query)
{
    leat_segment_group_ask(((struct leat_partition *)ctx)->core, query);
}

leat_err leat_groups_attach(struct leat_partition *partition, struct leat_log_options *options)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_core *core = partition->core;
    struct leat_groups_options groups = {
        .core = core,
        .env = core->env,
        .timers = &core->timers,
        .home = home_of(partition),
        .retention_us = core->node->options.offsets_retention_us,
        .group_bytes_max = leat_node_group_bytes(core->node->options.memory_bytes),
        .followed = partition->stream->desc->settings.copies > 1,
        .room = &core->node->groups_room,
        .broker = {groups_append, groups_stream_size, groups_group},
        .ctx = partition,
    };
    leat_err rc = leat_groups_create(&groups, &partition->groups);
    if (rc != LEAT_OK) return rc;
    options->app = leat_groups_app(partition->groups);
    leat_list_push_back(&core->data->home_logs, &partition->home);
    return LEAT_OK;
}

void leat_groups_log_made(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_log_info info;
    leat_log_info(partition->log, &info);
    if (!info.unloaded) leat_groups_is_read(partition->groups);
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

static leat_err names_copy(struct group_call *group, const struct leat_msg_reader *reader,
                           struct leat_msg_string name, struct leat_msg_string member,
                           struct leat_error *error)
{
    if (reader->failed) return LEAT_E_INVALID;
    if (name.bytes == 0 ||
        name_copy(name, group->request.group, LEAT_GROUPS_NAME_BYTES_MAX) != LEAT_OK)
        return leat_error_set(error, LEAT_E_BAD_NAME,
                              "a consumer group's name has 1 to %d bytes, none of them zero",
                              LEAT_GROUPS_NAME_BYTES_MAX);
    return name_copy(member, group->request.member, LEAT_GROUPS_MEMBER_BYTES_MAX);
}

/* LEAT_E_AGAIN: a name is being looked for; everything is decoded anew after that. */
static leat_err decode_join(struct group_call *group, struct leat_msg_reader *reader,
                            uint32_t *out_left, struct leat_error *error)
{
    struct leat_core *core = group->call.core;
    struct leat_msg_group_join body;
    *out_left = leat_msg_group_join_read(reader, &body);
    leat_err rc = names_copy(group, reader, body.group, body.member, error);
    if (rc != LEAT_OK) return rc;
    if (body.mode > 1) return LEAT_E_INVALID;
    if (body.stream_count == 0 || body.stream_count > LEAT_GROUPS_STREAMS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "a member names 1 to %d streams, not %u",
                              LEAT_GROUPS_STREAMS_MAX, body.stream_count);
    for (uint32_t i = 0; i < body.stream_count; i++) {
        struct leat_msg_string name = leat_msg_read_string(reader);
        if (reader->failed) return LEAT_E_INVALID;
        struct leat_stream *stream;
        rc = leat_stream_seek(core, &group->seek, name.text, name.bytes, &stream, error);
        if (rc != LEAT_OK) return rc;
        group->streams[i] = stream->desc->id;
    }
    group->request.mode = body.mode == 0 ? LEAT_GROUPS_ORDERED : LEAT_GROUPS_PARALLEL;
    group->request.session_ms = body.session_ms;
    group->request.streams = group->streams;
    group->request.stream_count = body.stream_count;
    return LEAT_OK;
}

static leat_err decode_commit(struct group_call *group, struct leat_msg_reader *reader,
                              uint32_t *out_left, struct leat_error *error)
{
    struct leat_msg_group_commit body;
    *out_left = leat_msg_group_commit_read(reader, &body);
    leat_err rc = names_copy(group, reader, body.group, body.member, error);
    if (rc != LEAT_OK) return rc;
    if (body.offset_count > LEAT_GROUPS_COMMIT_ROWS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY, "a commit has at most %d rows, not %u",
                              LEAT_GROUPS_COMMIT_ROWS_MAX, body.offset_count);
    group->commits = leat_call_memory(&group->call, body.offset_count + 1, sizeof *group->commits);
    if (group->commits == NULL) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < body.offset_count; i++) {
        struct leat_msg_group_offset row;
        leat_msg_group_offset_read(reader, &row);
        group->commits[i] =
            (struct leat_groups_offset){.log = row.log, .group = row.group, .offset = row.offset};
    }
    group->request.generation = body.generation;
    group->request.commits = group->commits;
    group->request.commit_count = body.offset_count;
    return reader->failed ? LEAT_E_INVALID : LEAT_OK;
}

static leat_err decode_fetch(struct group_call *group, struct leat_msg_reader *reader,
                             uint32_t *out_left, struct leat_error *error)
{
    struct leat_msg_group_fetch body;
    *out_left = leat_msg_group_fetch_read(reader, &body);
    leat_err rc = names_copy(group, reader, body.group, (struct leat_msg_string){0}, error);
    if (rc != LEAT_OK) return rc;
    if (body.log_count > LEAT_GROUPS_LOGS_MAX)
        return leat_error_set(error, LEAT_E_TOO_MANY,
                              "a group's offsets are asked for of at most %d "
                              "logs at once, not %u",
                              LEAT_GROUPS_LOGS_MAX, body.log_count);
    group->logs = leat_call_memory(&group->call, body.log_count + 1, sizeof *group->logs);
    if (group->logs == NULL) return LEAT_E_NO_MEMORY;
    for (uint32_t i = 0; i < body.log_count; i++)
        leat_msg_log_ref_read(reader, &group->logs[i]);
    group->request.logs = group->logs;
    group->request.log_count = body.log_count;
    return reader->failed ? LEAT_E_INVALID : LEAT_OK;
}

/* A request that another node has forwarded ends with leat_msg_forwarded, in so many bytes: whatever the address, the
 * array is found from the end. */
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
    struct leat_msg_forwarded forwarded;
    bool is = leat_msg_row_decode(at, ADDRESS_BYTES, leat_msg_forwarded_row(), &forwarded);
    return is ? forwarded.address : 0;
}

static leat_err body_decode(struct group_call *group, struct leat_msg_reader *reader,
                            uint32_t *out_left, struct leat_error *error)
{
    struct leat_msg_group_heartbeat heartbeat;
    struct leat_msg_group_leave leave;
    switch ((enum leat_kind)group->call.kind) {
    case LEAT_KIND_GROUP_JOIN:
        group->request.kind = LEAT_GROUPS_JOIN;
        return decode_join(group, reader, out_left, error);
    case LEAT_KIND_GROUP_HEARTBEAT:
        group->request.kind = LEAT_GROUPS_HEARTBEAT;
        *out_left = leat_msg_group_heartbeat_read(reader, &heartbeat);
        group->request.generation = heartbeat.generation;
        return names_copy(group, reader, heartbeat.group, heartbeat.member, error);
    case LEAT_KIND_GROUP_LEAVE:
        group->request.kind = LEAT_GROUPS_LEAVE;
        *out_left = leat_msg_group_leave_read(reader, &leave);
        return names_copy(group, reader, leave.group, leave.member, error);
    case LEAT_KIND_GROUP_COMMIT:
        group->request.kind = LEAT_GROUPS_COMMIT;
        return decode_commit(group, reader, out_left, error);
    default:
        LEAT_ASSERT(group->call.kind == LEAT_KIND_GROUP_FETCH);
        group->request.kind = LEAT_GROUPS_FETCH;
        return decode_fetch(group, reader, out_left, error);
    }
}

/* LEAT_E_AGAIN: as decode_join(). */
static leat_err group_decode(struct group_call *group, struct leat_error *error)
{
    struct leat_msg_reader reader;
    uint32_t left;
    leat_msg_reader_init(&reader, group->control, group->control_bytes);
    leat_err rc = body_decode(group, &reader, &left, error);
    if (rc != LEAT_OK) return rc;
    leat_msg_skip_n(&reader, left);
    if (group->call.by_link && reader.end - reader.at == ADDRESS_BYTES) reader.at = reader.end;
    return leat_msg_read_done(&reader) ? LEAT_OK : LEAT_E_INVALID;
}

/* The stream of homes gets as many copies as there are nodes. LEAT_E_INVALID: a node has gone meanwhile, and the client
 * can't change this. */
leat_err leat_groups_stream_made(const struct leat_maker *maker)
{
    if (maker->rc == LEAT_E_STREAM_EXISTS) return LEAT_OK;
    return maker->rc == LEAT_E_INVALID && !LEAT_BUG(NODE_GONE_REFUSES) ? LEAT_E_AGAIN : maker->rc;
}

static void group_on_made(struct leat_maker *maker)
{
    leat_err rc = leat_groups_stream_made(maker);
    if (rc != LEAT_OK)
        group_end(maker->owner, rc, maker->error.text);
    else
        group_route(maker->owner);
}

static void group_on_published(struct leat_stream_wait *wait)
{
    group_route(wait->owner);
}

static void group_begin(struct group_call *group)
{
    struct leat_core *core = group->call.core;
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = group_decode(group, &error);
    if (rc == LEAT_E_AGAIN) return; /* group_on_again() follows */
    if (rc != LEAT_OK) {
        const char *text = error.code != LEAT_OK    ? error.text
                           : rc == LEAT_E_NO_MEMORY ? NULL
                                                    : "malformed request to a consumer group";
        group_end(group, rc, text);
        return;
    }
    group->maker.wait.on_ready = group_on_published;
    group->maker.wait.owner = group;
    const char *name = LEAT_GROUPS_STREAM_NAME;
    if (leat_stream_find_name(core, name, strlen(name)) == NULL) {
        struct leat_stream_settings settings = leat_groups_stream_settings();
        group->maker.on_done = group_on_made;
        group->maker.owner = group;
        leat_maker_start(core, &group->maker, name, strlen(name), &settings);
        return;
    }
    group_route(group);
}

static void group_on_again(struct leat_stream_seek *seek)
{
    group_begin(seek->owner);
}

void leat_call_group(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct group_call *group = leat_call_create(peer, frame, sizeof *group);
    if (group == NULL) return;
    leat_list_init(&group->by_peer);
    leat_list_push_back(&peer->group_calls, &group->by_peer);
    group->request.address = group->call.by_link ? address_read(frame) : peer->address_number;
    group->control = leat_call_memory(&group->call, 1, frame->control_bytes + ADDRESS_BYTES);
    if (group->control == NULL) {
        group_end(group, LEAT_E_AGAIN, NULL);
        return;
    }
    memcpy(group->control, frame->control, frame->control_bytes);
    group->control_bytes = frame->control_bytes;
    group->request.answer_bytes_max = LEAT_GROUPS_ANSWER_BYTES;
    group->seek.on_again = group_on_again;
    group->maker.address = group->seek.catch_up.address = leat_peer_asks(peer);
    group->seek.owner = group;
    group_begin(group);
}

/* Another node owns the home, and answers. */
static void group_forward(struct group_call *group, uint64_t owner)
{
    uint8_t *control = group->control;
    if (group->control_bytes + ADDRESS_BYTES > LEAT_CONTROL_BYTES_MAX) {
        group_end(group, LEAT_E_TOO_LARGE, NULL);
        return;
    }
    address_write(control + group->control_bytes, group->request.address);
    group->control_bytes += ADDRESS_BYTES;
    group->control = NULL;
    group_release(group);
    leat_call_forward(&group->call, owner, control, group->control_bytes);
    leat_mem_free(control);
}

static struct leat_log_ref group_home(const struct group_call *group,
                                      const struct leat_stream_desc *desc)
{
    uint32_t home = leat_groups_home(group->request.group, strlen(group->request.group));
    return leat_groups_home_log(desc->id, desc->settings.logs, home);
}

static void group_route(struct group_call *group)
{
    struct leat_core *core = group->call.core;
    if (leat_call_abandoned(&group->call)) {
        group_end(group, LEAT_E_CANCELLED, NULL);
        return;
    }
    const char *name = LEAT_GROUPS_STREAM_NAME;
    struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
    if (stream == NULL) {
        /* Made by another request just now, and still on its way to this core. */
        group_end(group, LEAT_E_AGAIN, "the home of consumer groups is being made, try again");
        return;
    }
    if (!stream->published) {
        leat_list_push_back(&stream->waiters, &group->maker.wait.link);
        return;
    }
    /* By an isolated node's tables no home is found: its own homes may be others', and the others' may have moved. */
    struct leat_error error;
    if (!LEAT_BUG(OLD_HOME) && leat_node_stands(core->node, &error) != LEAT_OK) {
        group_end(group, error.code, error.text);
        return;
    }
    struct leat_log_ref ref = group_home(group, stream->desc);
    if (!leat_core_owns(core, stream->desc, ref.streamlet)) {
        group_forward(group, stream->desc->streamlets[ref.streamlet].owner);
        return;
    }
    uint32_t home = leat_core_of_log(core->node, ref, stream->desc->settings.logs);
    group->home = &core->node->cores[home];
    group->request.on_done = group_on_done;
    group->request.owner = group;
    leat_core_mail(core, home, &group->call.mail, group_deliver_home);
}

static void group_deliver_home(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct group_call *group = LEAT_CONTAINER(mail, struct group_call, call.mail);
    const char *name = LEAT_GROUPS_STREAM_NAME;
    const struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
    struct leat_partition *partition = NULL;
    if (stream != NULL) partition = leat_partition_find(core, group_home(group, stream->desc));
    if (partition == NULL || leat_partition_goes(partition) || partition->groups == NULL) {
        group->request.rc = leat_error_set(&group->request.error, LEAT_E_STARTING,
                                           "the group's home log is not served right now");
        group_back(group);
        return;
    }
    group->request.rc = LEAT_OK; /* it may have asked before */
    /* Set before the call: a request that waits may be on its way back already */
    group->waiting = partition->groups;
    if (!leat_groups_do(partition->groups, &group->request)) return;
    group->waiting = NULL;
    group_back(group);
}

static void group_on_done(struct leat_groups_request *request)
{
    struct group_call *group = request->owner;
    group->waiting = NULL;
    group_back(group);
}

/* ---- the peer has gone ----
 *
 * A join is held until its group has settled, up to a whole session. Without a cancel the join of a gone peer would
 * hold a place of the home for so long, and its member would get a share that no client reads. */

static void group_deliver_cancelled(void *actor, struct leat_mail *mail)
{
    struct group_call *group = LEAT_CONTAINER(mail, struct group_call, cancel);
    (void)actor;
    group->cancelling = false;
    if (group->answered) group_end(group, LEAT_E_CANCELLED, NULL);
}

/* Mail of one core to another keeps its order, so the request has been here before. The request has gone back, or it
 * waits, and then leat_groups_cancel() sends it back. */
static void group_deliver_cancel(void *actor, struct leat_mail *mail)
{
    struct group_call *group = LEAT_CONTAINER(mail, struct group_call, cancel);
    if (group->waiting != NULL) leat_groups_cancel(group->waiting, &group->request);
    leat_core_mail(actor, group->call.core->index, mail, group_deliver_cancelled);
}

void leat_groups_peer_closed(struct leat_peer *peer)
{
    LEAT_ASSERT_OWNER(peer->core);
    LEAT_LIST_EACH(&peer->group_calls, link)
    {
        struct group_call *group = LEAT_CONTAINER(link, struct group_call, by_peer);
        if (group->home == NULL || group->cancelling) continue;
        group->cancelling = true;
        leat_core_mail(peer->core, group->home->index, &group->cancel, group_deliver_cancel);
    }
}

static void group_back(struct group_call *group)
{
    leat_core_mail(group->home, group->call.core->index, &group->call.mail, group_deliver_back);
}

static void group_release(struct group_call *group)
{
    leat_list_remove(&group->by_peer);
    leat_mem_free(group->request.assigned);
    leat_mem_free(group->request.offsets);
    leat_mem_free(group->commits);
    leat_mem_free(group->logs);
    leat_mem_free(group->control);
}

static void answer_write(struct leat_msg_writer *writer, const struct leat_groups_request *request)
{
    if (request->kind == LEAT_GROUPS_JOIN) {
        struct leat_msg_group_joined joined = {
            .member = {request->member, (uint32_t)strlen(request->member)},
            .generation = request->generation,
            .share_count = (uint32_t)request->assigned_count,
        };
        leat_msg_group_joined_write(writer, &joined);
        for (size_t i = 0; i < request->assigned_count; i++) {
            const struct leat_groups_assigned *own = &request->assigned[i];
            struct leat_msg_group_share share = {own->log, own->first_group, own->group_step, 0};
            leat_msg_group_share_write(writer, &share);
        }
    } else if (request->kind == LEAT_GROUPS_FETCH) {
        struct leat_msg_group_fetched fetched = {request->generation,
                                                 (uint32_t)request->offset_count};
        leat_msg_group_fetched_write(writer, &fetched);
        for (size_t i = 0; i < request->offset_count; i++) {
            const struct leat_groups_offset *own = &request->offsets[i];
            struct leat_msg_group_offset row = {own->log, own->group, own->offset};
            leat_msg_group_offset_write(writer, &row);
        }
    } else {
        leat_msg_write_array(writer, 0);
    }
}

/* The answer is larger than an answer that needs no account. The call holds its bytes until it is written. */
static bool group_asks_again(struct group_call *group)
{
    struct leat_groups_request *request = &group->request;
    if (request->rc != LEAT_E_NO_MEMORY || request->answer_bytes <= request->answer_bytes_max)
        return false;
    /* The answer may be larger when the request comes again. */
    size_t most = request->answer_bytes + request->answer_bytes / 8;
    if (!leat_call_hold(&group->call, most)) {
        group_end(group, LEAT_E_AGAIN,
                  "the memory of this core for answers is full of those that clients have not "
                  "taken: try again");
        return true;
    }
    request->answer_bytes_max += most;
    group->answered = false;
    group_route(group);
    return true;
}

static void group_deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct group_call *group = LEAT_CONTAINER(mail, struct group_call, call.mail);
    struct leat_groups_request *request = &group->request;
    struct leat_msg_writer writer;
    group->answered = true;
    if (group->cancelling) return; /* freed when `cancel` is back */
    if (group_asks_again(group)) return;
    if (request->rc != LEAT_OK) {
        group_end(group, request->rc, request->error.code != LEAT_OK ? request->error.text : NULL);
        return;
    }
    leat_call_writer(core, &writer);
    answer_write(&writer, request);
    group_release(group);
    leat_call_answer(&group->call, &writer);
}

static void group_end(struct group_call *group, leat_err code, const char *text)
{
    group_release(group);
    leat_call_refuse(&group->call, code, text);
}
