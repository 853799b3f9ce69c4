/* DeleteRecords: logs are told to begin later, all of a request side by side (broker/trim.h). */
#include "broker/streams.h"
#include "broker/trim.h"
#include "kafka/cluster.h"
#include "kafka/handlers.h"

enum { OFFSET_END = -1 }; /* all that is acked */

struct deletion {
    struct leat_kafka_request *request;
    struct leat_kafka_delete_records_response *response;
    uint32_t waiting; /* logs not done, and 1 while some are begun */
};
struct deletion_part {
    struct deletion *deletion;
    struct leat_kafka_delete_records_response_partition *out;
    struct leat_trimmer trimmer;
};

static void deletion_one_less(struct deletion *deletion)
{
    if (--deletion->waiting == 0) leat_kafka_answer(deletion->request, deletion->response);
}

static void part_on_done(struct leat_trimmer *trimmer)
{
    struct deletion_part *part = trimmer->owner;
    part->out->error_code = (int16_t)leat_kafka_error_of(trimmer->rc);
    if (trimmer->rc == LEAT_OK) part->out->low_watermark = (int64_t)trimmer->first_offset;
    deletion_one_less(part->deletion);
}

static enum leat_kafka_error
part_start(struct deletion *deletion, const struct leat_stream *stream,
           const struct leat_kafka_delete_records_request_partition *in,
           struct leat_kafka_delete_records_response_partition *out)
{
    struct leat_core *core = deletion->request->core;
    struct leat_log_ref log;
    uint32_t home;
    enum leat_kafka_error code =
        leat_kafka_partition_find(core, stream, in->partition_index, -1, &log, &home);
    if (code != LEAT_KAFKA_NONE) return code;
    if (in->offset < OFFSET_END) return LEAT_KAFKA_OFFSET_OUT_OF_RANGE;
    struct leat_msg_string name = {stream->desc->name,
                                   (uint32_t)__builtin_strlen(stream->desc->name)};
    struct leat_error error;
    if (leat_stream_name_allowed(name, &error) != LEAT_OK)
        return LEAT_KAFKA_INVALID_TOPIC_EXCEPTION;
    struct deletion_part *part = leat_kafka_take(deletion->request, 1, sizeof *part);
    if (part == NULL) return LEAT_KAFKA_UNKNOWN_SERVER_ERROR;
    part->deletion = deletion;
    part->out = out;
    part->trimmer.core = core;
    part->trimmer.log = log;
    part->trimmer.home = home;
    part->trimmer.before = in->offset == OFFSET_END ? UINT64_MAX : (uint64_t)in->offset;
    part->trimmer.on_done = part_on_done;
    part->trimmer.owner = part;
    deletion->waiting++;
    leat_trimmer_start(&part->trimmer);
    return LEAT_KAFKA_NONE;
}

static bool topic_start(struct deletion *deletion,
                        const struct leat_kafka_delete_records_request_topic *in,
                        struct leat_kafka_delete_records_response_topic *out)
{
    struct leat_kafka_request *request = deletion->request;
    const struct leat_stream *stream = leat_kafka_topic_by_name(request->core, in->name);
    out->name = in->name;
    out->partitions.at =
        LEAT_KAFKA_MAKE(request, delete_records_response_partition, (size_t)in->partitions.count);
    if (out->partitions.at == NULL) return false;
    out->partitions.count = in->partitions.count;
    for (int32_t i = 0; i < in->partitions.count; i++) {
        struct leat_kafka_delete_records_response_partition *part = &out->partitions.at[i];
        part->partition_index = in->partitions.at[i].partition_index;
        part->low_watermark = -1;
        part->error_code = (int16_t)part_start(deletion, stream, &in->partitions.at[i], part);
    }
    return true;
}

void leat_kafka_handle_delete_records(struct leat_kafka_request *request)
{
    const struct leat_kafka_delete_records_request *body = request->body;
    struct leat_kafka_delete_records_response *response =
        LEAT_KAFKA_MAKE(request, delete_records_response, 1);
    struct deletion *deletion = leat_kafka_take(request, 1, sizeof *deletion);
    if (response != NULL)
        response->topics.at =
            LEAT_KAFKA_MAKE(request, delete_records_response_topic, (size_t)body->topics.count);
    if (deletion == NULL || response == NULL || response->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    *deletion = (struct deletion){request, response, 1};
    for (int32_t i = 0; i < body->topics.count; i++) {
        if (!topic_start(deletion, &body->topics.at[i], &response->topics.at[i])) {
            /* What was begun goes on; there is no memory to say so. */
            deletion->response = NULL;
            break;
        }
        response->topics.count++;
    }
    deletion_one_less(deletion);
}
