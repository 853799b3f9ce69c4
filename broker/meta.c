/* Streams: metadata, create, delete, describe. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/core.h"

/* ---- making a stream, and waiting until all cores have it ---- */

static void maker_on_ready(struct leat_stream_wait *wait)
{
    struct leat_maker *maker = wait->owner;
    maker->on_done(maker);
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
        /* It comes by way of the other cores, the answer came straight. (Ids only grow: one that
         * came by and is not here was deleted meanwhile.) */
        if (stream == NULL && maker->id > core->stream_seen) {
            leat_list_push_back(&core->stream_awaits, &maker->wait.link);
            return;
        }
    }
    maker->on_done(maker);
}

void leat_maker_start(struct leat_core *core, struct leat_maker *maker, const char *name,
                      size_t name_bytes, const struct leat_stream_settings *settings)
{
    LEAT_ASSERT_CMP(name_bytes, <=, LEAT_STREAM_NAME_BYTES_MAX);
    maker->core = core;
    memset(&maker->request, 0, sizeof maker->request);
    maker->request.kind = LEAT_COORDINATE_STREAM_CREATE;
    maker->request.from = core->index;
    memcpy(maker->request.name, name, name_bytes);
    maker->request.settings = *settings;
    maker->request.cores = core->node->options.cores;
    maker->request.incarnation = core->node->incarnation;
    maker->request.on_done = maker_on_created;
    maker->request.owner = maker;
    leat_coordinate(core->env->post, &maker->request);
}

static leat_err name_allowed(struct leat_msg_string name, struct leat_error *error)
{
    leat_err rc = leat_stream_name_check(name.text, name.bytes, error);
    if (rc == LEAT_OK && name.bytes >= 5 && memcmp(name.text, "leat.", 5) == 0)
        rc = leat_error_set(error, LEAT_E_BAD_NAME,
                            "names that begin with \"leat.\" are the server's own");
    return rc;
}

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
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, maker->id);
    leat_msg_settings_write(&writer, &stream->desc->settings);
    leat_call_answer(&create->call, &writer);
}

void leat_call_stream_create(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct create_call *create = leat_call_create(peer, frame, sizeof *create);
    if (create == NULL) return;
    struct leat_msg_reader reader;
    struct leat_stream_settings settings = {0};
    struct leat_error error;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    struct leat_msg_string name = leat_msg_read_string(&reader);
    if (fields >= 2) leat_msg_settings_read(&reader, &settings);
    if (reader.failed) {
        leat_call_refuse(&create->call, LEAT_E_INVALID,
                         "the control body of stream create is not [name, settings]");
        return;
    }
    leat_err rc = name_allowed(name, &error);
    uint64_t streamlets = settings.streamlets == 0 ? 1 : settings.streamlets;
    uint64_t logs = settings.logs == 0 ? peer->core->node->options.cores : settings.logs;
    if (rc == LEAT_OK && streamlets * logs > LEAT_BROKER_STREAM_LOGS_MAX)
        rc = leat_error_set(&error, LEAT_E_TOO_MANY,
                            "%llu streamlets of %llu logs each are more than the %d logs that one "
                            "stream may have",
                            (unsigned long long)streamlets, (unsigned long long)logs,
                            LEAT_BROKER_STREAM_LOGS_MAX);
    if (rc == LEAT_OK && peer->core->hosted_count + streamlets * logs > LEAT_CORE_LOGS_MAX)
        rc = leat_error_set(&error, LEAT_E_TOO_MANY, "this server holds %u logs per core already",
                            peer->core->hosted_count);
    if (rc != LEAT_OK) {
        leat_call_refuse(&create->call, rc, error.text);
        return;
    }
    create->maker.on_done = create_on_done;
    create->maker.owner = create;
    leat_maker_start(peer->core, &create->maker, name.text, name.bytes, &settings);
}

/* ---- STREAM_DELETE [name] ---- */

struct delete_call {
    struct leat_call call;
    struct leat_coordinate request;
    struct leat_stream_wait wait;
};

static void delete_answer(struct delete_call *delete)
{
    struct leat_msg_writer writer;
    leat_call_writer(delete->call.core, &writer);
    leat_msg_write_array(&writer, 0);
    leat_call_answer(&delete->call, &writer);
}

static void delete_on_gone(struct leat_stream_wait *wait)
{
    struct delete_call *delete = wait->owner;
    struct leat_stream *stream = leat_stream_find(delete->call.core, delete->request.stream_id);
    if (stream != NULL) /* it was only published just now */
        leat_list_push_back(&stream->waiters, &wait->link);
    else
        delete_answer(delete);
}

static void delete_on_done(struct leat_coordinate *request)
{
    struct delete_call *delete = request->owner;
    if (request->rc != LEAT_OK) {
        leat_call_refuse(&delete->call, request->rc, request->error.text);
        return;
    }
    /* Answered when no core serves it any more. */
    struct leat_stream *stream = leat_stream_find(delete->call.core, request->stream_id);
    if (stream == NULL) {
        delete_answer(delete);
        return;
    }
    delete->wait.on_ready = delete_on_gone;
    delete->wait.owner = delete;
    leat_list_push_back(&stream->waiters, &delete->wait.link);
}

void leat_call_stream_delete(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct delete_call *delete = leat_call_create(peer, frame, sizeof *delete);
    if (delete == NULL) return;
    struct leat_msg_reader reader;
    struct leat_error error;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)leat_msg_read_array(&reader);
    struct leat_msg_string name = leat_msg_read_string(&reader);
    leat_err rc = reader.failed ? leat_error_set(&error, LEAT_E_INVALID,
                                                 "the control body of stream delete is not [name]")
                                : name_allowed(name, &error);
    if (rc != LEAT_OK) {
        leat_call_refuse(&delete->call, rc, error.text);
        return;
    }
    delete->request.kind = LEAT_COORDINATE_STREAM_DELETE;
    delete->request.from = peer->core->index;
    memcpy(delete->request.name, name.text, name.bytes);
    delete->request.on_done = delete_on_done;
    delete->request.owner = delete;
    leat_coordinate(peer->core->env->post, &delete->request);
}

/* ---- METADATA [[name...], may_create] ---- */

enum { METADATA_NAMES_MAX = 1024 };

struct metadata_call {
    struct leat_call call;
    struct leat_catch_up catch_up;
    bool caught_up;
    struct leat_maker maker;
    bool may_create;
    uint32_t count, at; /* names; 0: all streams */
    char (*names)[LEAT_STREAM_NAME_BYTES_MAX + 1];
    struct leat_error *errors; /* one per name */
};

static void metadata_end(struct metadata_call *meta, leat_err code, const char *text)
{
    leat_mem_free(meta->names);
    leat_mem_free(meta->errors);
    leat_call_refuse(&meta->call, code, text);
}

static uint32_t owner_cores(const struct leat_core *core, uint64_t owner)
{
    const struct leat_member *member = leat_member_find(core, owner);
    return member != NULL && !member->self && member->info.cores > 0 ? member->info.cores
                                                                     : core->node->options.cores;
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
            .lane = leat_lane_of_log(ref, logs,
                                     owner_cores(core, desc->streamlets[ref.streamlet].owner)),
        };
        leat_msg_log_write(writer, &log);
    }
}

static bool member_is_told(const struct leat_member *member, bool up)
{
    return !member->self &&
           (up ? member->info.state == LEAT_NODE_UP : member->info.state == LEAT_NODE_DOWN);
}

/* Those that are up; behind them those that are down, without an address: what they own waits for
 * them, and a client can say for whom. */
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

static void metadata_write_head(struct leat_core *core, struct leat_msg_writer *writer)
{
    const struct leat_node *node = core->node;
    leat_call_writer(core, writer);
    leat_msg_write_array(writer, 3);
    leat_msg_write_bin(writer, node->cluster_id, sizeof node->cluster_id);
    uint32_t others = 0;
    for (uint32_t i = 0; i < core->members.count; i++)
        if (member_is_told(core->members.rows[i], true) ||
            member_is_told(core->members.rows[i], false))
            others++;
    leat_msg_write_array(writer, 1 + others);
    const char *address = node->options.cluster.advertise != NULL ? node->options.cluster.advertise
                                                                  : node->bound_address;
    struct leat_msg_node self = {
        .incarnation = node->incarnation,
        .name = {node->name, (uint32_t)strlen(node->name)},
        .address = {address, (uint32_t)strlen(address)},
        .lanes = node->options.cores,
    };
    leat_msg_node_write(writer, &self);
    metadata_write_others(core, writer, true);
    metadata_write_others(core, writer, false);
}

/* All streams; where they do not fit with their logs, without. */
static void metadata_write_all(struct leat_core *core, struct leat_msg_writer *writer)
{
    for (unsigned round = 0; round < 2; round++) {
        uint32_t listed = 0;
        metadata_write_head(core, writer);
        for (unsigned pass = 0; pass < 2; pass++) {
            if (pass == 1) leat_msg_write_array(writer, listed);
            for (uint32_t i = 0; i <= core->stream_mask; i++) {
                const struct leat_stream *stream = core->streams_by_id[i];
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

static void metadata_answer(struct metadata_call *meta)
{
    struct leat_core *core = meta->call.core;
    struct leat_msg_writer writer;
    if (meta->count == 0) {
        metadata_write_all(core, &writer);
    } else {
        metadata_write_head(core, &writer);
        leat_msg_write_array(&writer, meta->count);
        for (uint32_t i = 0; i < meta->count; i++) {
            const char *name = meta->names[i];
            const struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
            if (stream != NULL && stream->published) {
                metadata_write_stream(&writer, core, stream->desc, true);
                continue;
            }
            struct leat_msg_stream out = {
                .code =
                    meta->errors[i].code != LEAT_OK ? meta->errors[i].code : LEAT_E_UNKNOWN_STREAM,
                .name = {name, (uint32_t)strlen(name)},
            };
            leat_msg_stream_write(&writer, &out);
        }
    }
    leat_mem_free(meta->names);
    leat_mem_free(meta->errors);
    leat_call_answer(&meta->call, &writer);
}

static void metadata_next(struct metadata_call *meta);

static void metadata_on_made(struct leat_maker *maker)
{
    struct metadata_call *meta = maker->owner;
    /* Two may create it at the same time: one of them finds it there. */
    if (maker->rc != LEAT_OK && maker->rc != LEAT_E_STREAM_EXISTS)
        meta->errors[meta->at] = maker->error;
    meta->at++;
    metadata_next(meta);
}

static void metadata_on_caught_up(struct leat_catch_up *catch_up, leat_err rc)
{
    struct metadata_call *meta = catch_up->owner;
    (void)rc; /* no leader: what is known is answered */
    metadata_next(meta);
}

static void metadata_on_published(struct leat_stream_wait *wait)
{
    struct metadata_call *meta = wait->owner;
    meta->at++;
    metadata_next(meta);
}

/* Create what is missing, one after the other, then answer. */
static void metadata_next(struct metadata_call *meta)
{
    struct leat_core *core = meta->call.core;
    for (; meta->at < meta->count; meta->at++) {
        const char *name = meta->names[meta->at];
        struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
        if (stream != NULL && !stream->published) {
            meta->maker.wait.on_ready = metadata_on_published;
            meta->maker.wait.owner = meta;
            leat_list_push_back(&stream->waiters, &meta->maker.wait.link);
            return;
        }
        if (stream == NULL && !meta->caught_up && core->members.links != NULL) {
            meta->caught_up = true;
            meta->catch_up.on_done = metadata_on_caught_up;
            meta->catch_up.owner = meta;
            leat_catch_up(core, &meta->catch_up);
            return;
        }
        if (stream != NULL || !meta->may_create) continue;
        struct leat_msg_string text = {name, (uint32_t)strlen(name)};
        if (name_allowed(text, &meta->errors[meta->at]) != LEAT_OK) continue;
        meta->errors[meta->at].code = LEAT_OK;
        struct leat_stream_settings settings = {0};
        meta->maker.on_done = metadata_on_made;
        meta->maker.owner = meta;
        leat_maker_start(core, &meta->maker, text.text, text.bytes, &settings);
        return;
    }
    metadata_answer(meta);
}

void leat_call_metadata(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct metadata_call *meta = leat_call_create(peer, frame, sizeof *meta);
    if (meta == NULL) return;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    uint32_t count = leat_msg_read_array(&reader);
    if (reader.failed || count > METADATA_NAMES_MAX) {
        metadata_end(meta, reader.failed ? LEAT_E_INVALID : LEAT_E_TOO_MANY,
                     "metadata is asked for as [[name...], may create], 1024 names at most");
        return;
    }
    if (count > 0) {
        meta->names = leat_mem_calloc(LEAT_MEM_BROKER, count, sizeof *meta->names);
        meta->errors = leat_mem_calloc(LEAT_MEM_BROKER, count, sizeof *meta->errors);
        if (meta->names == NULL || meta->errors == NULL) {
            metadata_end(meta, LEAT_E_AGAIN, NULL);
            return;
        }
    }
    meta->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_string name = leat_msg_read_string(&reader);
        if (reader.failed || name.bytes > LEAT_STREAM_NAME_BYTES_MAX) {
            metadata_end(meta, LEAT_E_BAD_NAME, "a stream name has 1 to 249 bytes");
            return;
        }
        memcpy(meta->names[i], name.text, name.bytes);
    }
    meta->may_create = fields >= 2 && leat_msg_read_bool(&reader);
    if (reader.failed) {
        metadata_end(meta, LEAT_E_INVALID, "malformed metadata request");
        return;
    }
    if (!peer->core->node->options.auto_create) meta->may_create = false;
    metadata_next(meta);
}

/* ---- STREAM_DESCRIBE [name] ---- */

struct describe_log {
    struct leat_log_info info;
    bool there;
    char why[128];
};
struct describe_call {
    struct leat_call call;
    struct leat_stream_desc *desc; /* a reference */
    uint32_t count, core;
    struct describe_log *logs;
};

static void describe_answer(struct describe_call *describe)
{
    struct leat_core *core = describe->call.core;
    const struct leat_stream_desc *desc = describe->desc;
    uint32_t per_streamlet = desc->settings.logs;
    struct leat_msg_writer writer;
    leat_call_writer(core, &writer);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_string(&writer, desc->name, strlen(desc->name));
    leat_msg_write_u64(&writer, desc->id);
    leat_msg_settings_write(&writer, &desc->settings);
    leat_msg_write_array(&writer, describe->count);
    for (uint32_t i = 0; i < describe->count; i++) {
        const struct describe_log *log = &describe->logs[i];
        const struct leat_log_info *info = &log->info;
        struct leat_log_ref ref = {desc->id, i / per_streamlet, i % per_streamlet};
        leat_err code = !log->there                       ? LEAT_E_UNKNOWN_LOG
                        : info->state == LEAT_LOG_WAITING ? LEAT_E_LOG_INCOMPLETE
                        : info->state == LEAT_LOG_DAMAGED ? LEAT_E_DAMAGED
                        : info->state == LEAT_LOG_STOPPED ? LEAT_E_DISK
                        : info->missing_segments > 0      ? LEAT_E_DAMAGED
                                                          : LEAT_OK;
        struct leat_msg_log_info out = {
            .at = {ref.streamlet, ref.log, desc->streamlets[ref.streamlet].owner,
                   desc->streamlets[ref.streamlet].epoch.v,
                   leat_lane_of_log(ref, per_streamlet,
                                    owner_cores(core, desc->streamlets[ref.streamlet].owner))},
            .state = (uint32_t)info->state,
            .first_offset = info->first_offset,
            .acked_offset = info->acked_offset,
            .bytes = info->bytes,
            .first_segment = info->first_segment,
            .segments = info->segment_count,
            .groups = info->group_count,
            .first_group = info->first_group,
            .producers = info->producers,
            .memory_bytes = info->memory_bytes,
            .code = code,
            .text = {log->why, (uint32_t)strlen(log->why)},
        };
        leat_msg_log_info_write(&writer, &out);
    }
    leat_stream_desc_unref(describe->desc);
    leat_mem_free(describe->logs);
    leat_call_answer(&describe->call, &writer);
}

static void describe_deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct describe_call *describe = LEAT_CONTAINER(mail, struct describe_call, call.mail);
    if (describe->core == core->node->options.cores) {
        describe_answer(describe);
        return;
    }
    uint32_t per_streamlet = describe->desc->settings.logs;
    for (uint32_t i = 0; i < describe->count; i++) {
        struct leat_log_ref ref = {describe->desc->id, i / per_streamlet, i % per_streamlet};
        if (leat_core_of_log(core->node, ref, per_streamlet) != core->index) continue;
        struct leat_hosted *hosted = leat_hosted_find(core, ref);
        if (hosted == NULL || hosted->log == NULL) continue;
        struct describe_log *log = &describe->logs[i];
        leat_log_info(hosted->log, &log->info);
        log->there = true;
        /* The text is the log's: it does not travel. */
        size_t bytes = strnlen(log->info.why, sizeof log->why - 1);
        memcpy(log->why, log->info.why, bytes);
        if (bytes == 0 && log->info.missing_segments > 0)
            snprintf(log->why, sizeof log->why,
                     "segments %llu to %llu with offsets %llu to %llu are missing",
                     (unsigned long long)log->info.first_segment,
                     (unsigned long long)(log->info.first_segment + log->info.missing_segments - 1),
                     (unsigned long long)log->info.first_offset,
                     (unsigned long long)(log->info.missing_end - 1));
    }
    describe->core++;
    leat_core_mail(core,
                   describe->core == core->node->options.cores ? describe->call.core->index
                                                               : describe->core,
                   &describe->call.mail, describe_deliver);
}

void leat_call_stream_describe(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct describe_call *describe = leat_call_create(peer, frame, sizeof *describe);
    if (describe == NULL) return;
    struct leat_core *core = peer->core;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)leat_msg_read_array(&reader);
    struct leat_msg_string name = leat_msg_read_string(&reader);
    if (reader.failed) {
        leat_call_refuse(&describe->call, LEAT_E_INVALID,
                         "the control body of stream describe is not [name]");
        return;
    }
    const struct leat_stream *stream = leat_stream_find_name(core, name.text, name.bytes);
    if (stream == NULL || !stream->published) {
        struct leat_error error;
        leat_error_set(&error, LEAT_E_UNKNOWN_STREAM, "no stream is named \"%.*s\"",
                       (int)(name.bytes < 120 ? name.bytes : 120), name.text);
        leat_call_refuse(&describe->call, LEAT_E_UNKNOWN_STREAM, error.text);
        return;
    }
    describe->count = stream->desc->streamlet_count * stream->desc->settings.logs;
    describe->logs = leat_mem_calloc(LEAT_MEM_BROKER, describe->count, sizeof *describe->logs);
    if (describe->logs == NULL) {
        leat_call_refuse(&describe->call, LEAT_E_AGAIN, NULL);
        return;
    }
    describe->desc = stream->desc;
    leat_stream_desc_ref(describe->desc);
    leat_core_mail(core, 0, &describe->call.mail, describe_deliver);
}
