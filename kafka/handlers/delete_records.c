/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteRecords: logs are told to begin later, all of a request side by side (broker/front_logs.h). */
#include "base/assert.h"
#include "kafka/front/pieces.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"

enum { OFFSET_END = -1 }; /* all that is acked */

struct deletion {
    struct leat_kafka_pieces pieces;
    int32_t topic, partition; /* the next */
};
struct deletion_part {
    struct deletion *deletion;
    struct leat_kafka_delete_records_response_partition *out;
    struct leat_trimmer trimmer;
};

static void part_on_done(struct leat_trimmer *trimmer)
{
    struct deletion_part *part = trimmer->owner;
    LEAT_ASSERT_OWNER(part->deletion->pieces.request->core);
    part->out->error_code = (int16_t)leat_kafka_error_of(trimmer->rc);
    if (trimmer->rc == LEAT_OK) part->out->low_watermark = (int64_t)trimmer->first_offset;
    leat_kafka_pieces_end(&part->deletion->pieces, part);
}

static enum leat_kafka_error
part_start(struct deletion *deletion, const struct leat_stream_desc *stream,
           const struct leat_kafka_delete_records_request_partition *in,
           struct leat_kafka_delete_records_response_partition *out)
{
    struct leat_core *core = deletion->pieces.request->core;
    struct leat_log_ref log;
    uint32_t home;
    enum leat_kafka_error code =
        leat_kafka_partition_find(core, stream, in->partition_index, -1, &log, &home);
    if (code != LEAT_KAFKA_NONE) return code;
    if (in->offset < OFFSET_END) return LEAT_KAFKA_OFFSET_OUT_OF_RANGE;
    struct leat_msg_string name = {stream->name, (uint32_t)__builtin_strlen(stream->name)};
    struct leat_error error;
    if (leat_stream_name_allowed(name, &error) != LEAT_OK)
        return LEAT_KAFKA_INVALID_TOPIC_EXCEPTION;
    struct deletion_part *part = leat_kafka_pieces_begin(&deletion->pieces, sizeof *part);
    if (part == NULL) return LEAT_KAFKA_UNKNOWN_SERVER_ERROR;
    part->deletion = deletion;
    part->out = out;
    part->trimmer.core = core;
    part->trimmer.log = log;
    part->trimmer.home = home;
    part->trimmer.before = in->offset == OFFSET_END ? UINT64_MAX : (uint64_t)in->offset;
    part->trimmer.on_done = part_on_done;
    part->trimmer.owner = part;
    leat_trimmer_start(&part->trimmer);
    return LEAT_KAFKA_NONE;
}

static bool topic_begin(struct leat_kafka_request *request,
                        const struct leat_kafka_delete_records_request_topic *in,
                        struct leat_kafka_delete_records_response_topic *out)
{
    out->name = in->name;
    out->partitions.at =
        LEAT_KAFKA_MAKE(request, delete_records_response_partition, (size_t)in->partitions.count);
    if (out->partitions.at != NULL) out->partitions.count = in->partitions.count;
    return out->partitions.at != NULL;
}

/* One partition, or the step to the next topic. */
static enum leat_kafka_piece deletion_next(struct leat_kafka_pieces *pieces)
{
    struct deletion *deletion = LEAT_CONTAINER(pieces, struct deletion, pieces);
    struct leat_kafka_request *request = pieces->request;
    const struct leat_kafka_delete_records_request *body = request->body;
    if (deletion->topic >= body->topics.count) return LEAT_KAFKA_PIECE_NONE;
    const struct leat_kafka_delete_records_request_topic *in = &body->topics.at[deletion->topic];
    const struct leat_kafka_delete_records_response *response = pieces->response;
    struct leat_kafka_delete_records_response_topic *out = &response->topics.at[deletion->topic];
    const int32_t at = deletion->partition++;
    if (at == 0 && !topic_begin(request, in, out)) return LEAT_KAFKA_PIECE_FAILED;
    if (at >= in->partitions.count) {
        deletion->topic++;
        deletion->partition = 0;
        return LEAT_KAFKA_PIECE_DONE;
    }
    LEAT_ASSERT(at < out->partitions.count);
    const struct leat_stream_desc *stream = leat_kafka_topic_by_name(request->core, in->name);
    struct leat_kafka_delete_records_response_partition *part = &out->partitions.at[at];
    part->partition_index = in->partitions.at[at].partition_index;
    part->low_watermark = -1;
    part->error_code = (int16_t)part_start(deletion, stream, &in->partitions.at[at], part);
    return LEAT_KAFKA_PIECE_DONE;
}

void leat_kafka_handle_delete_records(struct leat_kafka_request *request)
{
    const struct leat_kafka_delete_records_request *body = request->body;
    struct leat_kafka_delete_records_response *response =
        LEAT_KAFKA_MAKE(request, delete_records_response, 1);
    struct deletion *deletion =
        leat_kafka_pieces_take(request, sizeof *deletion, response, deletion_next);
    if (deletion != NULL)
        response->topics.at =
            LEAT_KAFKA_MAKE(request, delete_records_response_topic, (size_t)body->topics.count);
    if (deletion == NULL || response->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->topics.count = body->topics.count;
    leat_kafka_pieces_start(&deletion->pieces);
}
