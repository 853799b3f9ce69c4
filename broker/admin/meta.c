/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: metadata, create, delete. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/stream.h"
#include "broker/net/call.h"
#include "wire/row.h"

/* ---- STREAM_CREATE [name, settings] ---- */

struct create_call {
    struct leat_call call;
    struct leat_maker maker;
};

static void create_on_done(struct leat_maker *maker)
{
    struct create_call *create = maker->owner;
    struct leat_core *core = create->call.core;
    const struct leat_stream *stream =
        maker->rc == LEAT_OK ? leat_stream_find(core, maker->id) : NULL;
    if (stream == NULL) {
        leat_call_refuse(&create->call, maker->rc != LEAT_OK ? maker->rc : LEAT_E_UNKNOWN_STREAM,
                         maker->rc != LEAT_OK ? maker->error.text : "deleted as it was created");
        return;
    }
    struct leat_msg_writer writer;
    leat_call_writer(core, &writer);
    struct leat_msg_created body = {maker->id, stream->desc->settings};
    leat_msg_created_write(&writer, &body);
    leat_call_answer(&create->call, &writer);
}

void leat_call_stream_create(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct create_call *create = leat_call_create(peer, frame, sizeof *create);
    if (create == NULL) return;
    struct leat_msg_create body;
    struct leat_error error;
    if (leat_msg_create_decode(frame->control, frame->control_bytes, &body) != LEAT_OK) {
        leat_call_refuse(&create->call, LEAT_E_INVALID,
                         "the control body of stream create is not [name, settings]");
        return;
    }
    leat_err rc = leat_stream_name_allowed(body.name, &error);
    if (rc == LEAT_OK)
        rc = leat_stream_create_allowed(peer->core, body.name, &body.settings, &error);
    if (rc == LEAT_OK)
        rc = leat_stream_work_allowed(peer->core, peer->sharer, NULL, &body.settings, &error);
    if (rc != LEAT_OK) {
        leat_call_refuse(&create->call, rc, error.text);
        return;
    }
    create->maker.on_done = create_on_done;
    create->maker.address = leat_peer_asks(peer);
    create->maker.owner = create;
    leat_maker_start(peer->core, &create->maker, body.name.text, body.name.bytes, &body.settings);
}

/* ---- STREAM_DELETE [name] ---- */

struct delete_call {
    struct leat_call call;
    struct leat_deleter deleter;
};

static void delete_on_done(struct leat_deleter *deleter)
{
    struct delete_call *delete = deleter->owner;
    struct leat_msg_writer writer;
    if (deleter->rc != LEAT_OK) {
        leat_call_refuse(&delete->call, deleter->rc, deleter->error.text);
        return;
    }
    leat_call_writer(delete->call.core, &writer);
    leat_msg_write_array(&writer, 0);
    leat_call_answer(&delete->call, &writer);
}

void leat_call_stream_delete(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct delete_call *delete = leat_call_create(peer, frame, sizeof *delete);
    if (delete == NULL) return;
    struct leat_msg_name body;
    struct leat_error error;
    leat_err rc = leat_msg_delete_decode(frame->control, frame->control_bytes, &body);
    rc = rc != LEAT_OK
             ? leat_error_set(&error, rc, "the control body of stream delete is not [name]")
             : leat_stream_name_allowed(body.name, &error);
    if (rc != LEAT_OK) {
        leat_call_refuse(&delete->call, rc, error.text);
        return;
    }
    delete->deleter.core = peer->core;
    delete->deleter.address = leat_peer_asks(peer);
    delete->deleter.on_done = delete_on_done;
    delete->deleter.owner = delete;
    leat_deleter_start(&delete->deleter, body.name.text, body.name.bytes);
}

/* ---- METADATA [[name...], may_create, nodes_only?] ---- */

enum { METADATA_NAMES_MAX = 1024 };

struct metadata_call {
    struct leat_call call;
    struct leat_seeker seeker; /* of no names: all streams */
    struct leat_pace_step step;
};

static void metadata_end(struct metadata_call *meta, leat_err code, const char *text)
{
    leat_mem_free(meta->seeker.names);
    leat_mem_free(meta->seeker.errors);
    leat_call_refuse(&meta->call, code, text);
}

static void metadata_write_stream(struct leat_msg_writer *writer, const struct leat_core *core,
                                  const struct leat_stream_desc *desc, bool with_logs)
{
    uint32_t logs = desc->settings.logs;
    struct leat_msg_stream out = {
        .code = LEAT_OK,
        .name = {desc->name, (uint32_t)strlen(desc->name)},
        .id = desc->id,
        .settings = desc->settings,
        .log_count = with_logs ? desc->streamlet_count * logs : 0,
    };
    leat_msg_stream_write(writer, &out);
    for (uint32_t i = 0; i < out.log_count; i++) {
        struct leat_log_ref ref = {desc->id, i / logs, i % logs};
        struct leat_msg_log log = {
            .streamlet = ref.streamlet,
            .log = ref.log,
            .owner = desc->streamlets[ref.streamlet].owner,
            .epoch = desc->streamlets[ref.streamlet].epoch.v,
            .lane = leat_lane_of_log(
                ref, logs, leat_member_cores(core, desc->streamlets[ref.streamlet].owner)),
        };
        leat_msg_log_write(writer, &log);
    }
}

static bool member_is_told(const struct leat_member *member, bool up)
{
    return !member->self &&
           (up ? member->info.state == LEAT_NODE_UP : member->info.state == LEAT_NODE_DOWN);
}

/* The other nodes that are up, then the nodes that are down, without an address: the streamlets of a node that is
 * down wait for it, and a client can say for which node. */
static void metadata_write_others(struct leat_core *core, struct leat_msg_writer *writer, bool up)
{
    for (uint32_t i = 0; i < core->members.count; i++) {
        const struct leat_node_info *info = &core->members.rows[i]->info;
        if (!member_is_told(core->members.rows[i], up)) continue;
        struct leat_msg_node other = {
            .incarnation = info->incarnation,
            .name = {info->name, (uint32_t)strlen(info->name)},
            .address = {info->address, up ? (uint32_t)strlen(info->address) : 0},
            .lanes = info->cores,
        };
        leat_msg_node_write(writer, &other);
    }
}

/* Up to its streams, of which so many follow. */
static void metadata_write_head(struct leat_core *core, struct leat_msg_writer *writer,
                                uint32_t streams)
{
    const struct leat_node *node = core->node;
    leat_call_writer(core, writer);
    struct leat_msg_metadata_ok body = {.node_count = 1, .stream_count = streams};
    memcpy(body.cluster_id, node->cluster_id, sizeof body.cluster_id);
    for (uint32_t i = 0; i < core->members.count; i++)
        if (member_is_told(core->members.rows[i], true) ||
            member_is_told(core->members.rows[i], false))
            body.node_count++;
    leat_msg_metadata_ok_write(writer, &body);
    const char *address = node->options.cluster.advertise != NULL ? node->options.cluster.advertise
                                                                  : node->bound_address;
    /* An isolated node may not have learnt which nodes own its logs now. So the node names itself as down, and clients
     * ask other nodes. */
    const bool up = leat_node_stands(node, NULL) == LEAT_OK || LEAT_BUG(ISOLATED_NAMES);
    struct leat_msg_node self = {
        .incarnation = node->incarnation,
        .name = {node->name, (uint32_t)strlen(node->name)},
        .address = {address, up ? (uint32_t)strlen(address) : 0},
        .lanes = node->options.cores,
    };
    leat_msg_node_write(writer, &self);
    metadata_write_others(core, writer, true);
    metadata_write_others(core, writer, false);
    leat_msg_row_write_behind(writer, leat_msg_metadata_ok_row(), &body,
                              offsetof(struct leat_msg_metadata_ok, node_count));
}

/* All streams; where they do not fit with their logs, without. */
static void metadata_write_all(struct leat_core *core, struct leat_msg_writer *writer)
{
    for (unsigned round = 0; round < 2; round++) {
        uint32_t listed = 0;
        for (unsigned pass = 0; pass < 2; pass++) {
            if (pass == 1) metadata_write_head(core, writer, listed);
            for (uint32_t i = 0; i <= core->data->stream_mask; i++) {
                const struct leat_stream *stream = core->data->streams_by_id[i];
                for (; stream != NULL; stream = stream->by_id_next) {
                    if (!stream->published || stream->desc->internal) continue;
                    if (pass == 0)
                        listed++;
                    else
                        metadata_write_stream(writer, core, stream->desc, round == 0);
                }
            }
        }
        if (!writer->overflow) return;
    }
}

static void metadata_answer(struct leat_pace_step *step)
{
    struct metadata_call *meta = LEAT_CONTAINER(step, struct metadata_call, step);
    struct leat_seeker *seeker = &meta->seeker;
    struct leat_core *core = meta->call.core;
    struct leat_msg_writer writer;
    if (!meta->call.by_link && meta->call.peer->conn == NULL) {
        metadata_end(meta, LEAT_E_CLOSED, NULL); /* the client has gone */
        return;
    }
    if (seeker->count == 0) {
        metadata_write_all(core, &writer);
    } else {
        metadata_write_head(core, &writer, seeker->count);
        for (uint32_t i = 0; i < seeker->count; i++) {
            const char *name = seeker->names[i];
            const struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
            if (stream != NULL && stream->published) {
                metadata_write_stream(&writer, core, stream->desc, true);
                continue;
            }
            struct leat_error *error = &seeker->errors[i];
            if (error->code == LEAT_OK)
                leat_error_set(error, LEAT_E_UNKNOWN_STREAM,
                               "no stream is named '%.249s': see 'leat stream list', or make it "
                               "with 'leat stream create'",
                               name);
            struct leat_msg_stream out = {
                .code = error->code,
                .name = {name, (uint32_t)strlen(name)},
                .text = {error->text, (uint32_t)strlen(error->text)},
            };
            leat_msg_stream_write(&writer, &out);
        }
    }
    leat_mem_free(seeker->names);
    leat_mem_free(seeker->errors);
    leat_call_answer(&meta->call, &writer);
}

static void metadata_on_sought(struct leat_seeker *seeker)
{
    struct metadata_call *meta = seeker->owner;
    leat_pace_run(meta->call.peer, &meta->step, metadata_answer);
}

/* Asked by clients of a node that is silent: as cheap as can be, and no leader is waited for. */
static void metadata_nodes_answer(struct metadata_call *meta)
{
    struct leat_msg_writer writer;
    metadata_write_head(meta->call.core, &writer, 0);
    leat_call_answer(&meta->call, &writer);
}

void leat_call_metadata(struct leat_peer *peer, const struct leat_frame *frame)
{
    LEAT_ASSERT_OWNER(peer->core);
    struct metadata_call *meta = leat_call_create(peer, frame, sizeof *meta);
    if (meta == NULL) return;
    struct leat_seeker *seeker = &meta->seeker;
    struct leat_msg_metadata body;
    leat_err rc = leat_msg_metadata_decode(frame->control, frame->control_bytes, &body);
    uint32_t count = rc == LEAT_OK ? body.name_count : 0;
    if (rc != LEAT_OK || count > METADATA_NAMES_MAX) {
        metadata_end(meta, rc != LEAT_OK ? rc : LEAT_E_TOO_MANY,
                     "metadata is asked for as [[name...], may create], 1024 names at most");
        return;
    }
    if (count > 0) {
        seeker->names = leat_call_memory(&meta->call, count, sizeof *seeker->names);
        seeker->errors = leat_call_memory(&meta->call, count, sizeof *seeker->errors);
        if (seeker->names == NULL || seeker->errors == NULL) {
            metadata_end(meta, LEAT_E_AGAIN, NULL);
            return;
        }
    }
    seeker->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_string name = leat_msg_read_string(&body.names);
        if (body.names.failed || name.bytes > LEAT_STREAM_NAME_BYTES_MAX) {
            metadata_end(meta, LEAT_E_BAD_NAME, "a stream name has 1 to 249 bytes");
            return;
        }
        memcpy(seeker->names[i], name.text, name.bytes);
    }
    if (body.nodes_only && count > 0) {
        metadata_end(meta, LEAT_E_INVALID, "malformed metadata request");
        return;
    }
    seeker->may_create = body.may_create && peer->core->node->options.auto_create;
    if (body.nodes_only) {
        metadata_nodes_answer(meta);
        return;
    }
    seeker->all = count == 0;
    seeker->core = peer->core;
    seeker->sharer = peer->sharer;
    seeker->address = leat_peer_asks(peer);
    seeker->on_done = metadata_on_sought;
    seeker->owner = meta;
    leat_seeker_start(seeker);
}
