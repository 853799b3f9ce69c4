/* Streams: metadata, create, delete, describe. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "broker/streams.h"

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
    leat_err rc = leat_stream_name_allowed(name, &error);
    if (rc == LEAT_OK) rc = leat_stream_size_allowed(peer->core, &settings, &error);
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
    struct delete_call *delete = leat_call_create(peer, frame, sizeof *delete);
    if (delete == NULL) return;
    struct leat_msg_reader reader;
    struct leat_error error;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)leat_msg_read_array(&reader);
    struct leat_msg_string name = leat_msg_read_string(&reader);
    leat_err rc = reader.failed ? leat_error_set(&error, LEAT_E_INVALID,
                                                 "the control body of stream delete is not [name]")
                                : leat_stream_name_allowed(name, &error);
    if (rc != LEAT_OK) {
        leat_call_refuse(&delete->call, rc, error.text);
        return;
    }
    delete->deleter.core = peer->core;
    delete->deleter.on_done = delete_on_done;
    delete->deleter.owner = delete;
    leat_deleter_start(&delete->deleter, name.text, name.bytes);
}

/* ---- METADATA [[name...], may_create] ---- */

enum { METADATA_NAMES_MAX = 1024 };

struct metadata_call {
    struct leat_call call;
    struct leat_seeker seeker; /* of no names: all streams */
};

static void metadata_end(struct metadata_call *meta, leat_err code, const char *text)
{
    leat_mem_free(meta->seeker.names);
    leat_mem_free(meta->seeker.errors);
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

static void metadata_answer(struct leat_seeker *seeker)
{
    struct metadata_call *meta = seeker->owner;
    struct leat_core *core = meta->call.core;
    struct leat_msg_writer writer;
    if (seeker->count == 0) {
        metadata_write_all(core, &writer);
    } else {
        metadata_write_head(core, &writer);
        leat_msg_write_array(&writer, seeker->count);
        for (uint32_t i = 0; i < seeker->count; i++) {
            const char *name = seeker->names[i];
            const struct leat_stream *stream = leat_stream_find_name(core, name, strlen(name));
            if (stream != NULL && stream->published) {
                metadata_write_stream(&writer, core, stream->desc, true);
                continue;
            }
            struct leat_msg_stream out = {
                .code = seeker->errors[i].code != LEAT_OK ? seeker->errors[i].code
                                                          : LEAT_E_UNKNOWN_STREAM,
                .name = {name, (uint32_t)strlen(name)},
            };
            leat_msg_stream_write(&writer, &out);
        }
    }
    leat_mem_free(seeker->names);
    leat_mem_free(seeker->errors);
    leat_call_answer(&meta->call, &writer);
}

void leat_call_metadata(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct metadata_call *meta = leat_call_create(peer, frame, sizeof *meta);
    if (meta == NULL) return;
    struct leat_seeker *seeker = &meta->seeker;
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
        seeker->names = leat_mem_calloc(LEAT_MEM_BROKER, count, sizeof *seeker->names);
        seeker->errors = leat_mem_calloc(LEAT_MEM_BROKER, count, sizeof *seeker->errors);
        if (seeker->names == NULL || seeker->errors == NULL) {
            metadata_end(meta, LEAT_E_AGAIN, NULL);
            return;
        }
    }
    seeker->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_string name = leat_msg_read_string(&reader);
        if (reader.failed || name.bytes > LEAT_STREAM_NAME_BYTES_MAX) {
            metadata_end(meta, LEAT_E_BAD_NAME, "a stream name has 1 to 249 bytes");
            return;
        }
        memcpy(seeker->names[i], name.text, name.bytes);
    }
    seeker->may_create = fields >= 2 && leat_msg_read_bool(&reader);
    if (reader.failed) {
        metadata_end(meta, LEAT_E_INVALID, "malformed metadata request");
        return;
    }
    if (!peer->core->node->options.auto_create) seeker->may_create = false;
    seeker->all = count == 0;
    seeker->core = peer->core;
    seeker->on_done = metadata_answer;
    seeker->owner = meta;
    leat_seeker_start(seeker);
}

/* ---- STREAM_DESCRIBE [name] ---- */

struct describe_log {
    struct leat_log_info info;
    bool there;
    char why[128];
};
struct describe_call {
    struct leat_call call;
    struct leat_stream_seek seek;
    char name[LEAT_STREAM_NAME_BYTES_MAX + 1];
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

static void describe_begin(struct describe_call *describe)
{
    struct leat_core *core = describe->call.core;
    struct leat_stream *stream;
    struct leat_error error;
    leat_err rc = leat_stream_seek(core, &describe->seek, describe->name, strlen(describe->name),
                                   &stream, &error);
    if (rc == LEAT_E_AGAIN) return;
    if (rc != LEAT_OK) {
        leat_call_refuse(&describe->call, rc, error.text);
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

static void describe_on_again(struct leat_stream_seek *seek)
{
    describe_begin(seek->owner);
}

void leat_call_stream_describe(struct leat_peer *peer, const struct leat_frame *frame)
{
    struct describe_call *describe = leat_call_create(peer, frame, sizeof *describe);
    if (describe == NULL) return;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)leat_msg_read_array(&reader);
    struct leat_msg_string name = leat_msg_read_string(&reader);
    if (reader.failed || name.bytes == 0 || name.bytes > LEAT_STREAM_NAME_BYTES_MAX) {
        leat_call_refuse(&describe->call, LEAT_E_INVALID,
                         "the control body of stream describe is not [name]");
        return;
    }
    memcpy(describe->name, name.text, name.bytes);
    describe->seek.on_again = describe_on_again;
    describe->seek.owner = describe;
    describe_begin(describe);
}
