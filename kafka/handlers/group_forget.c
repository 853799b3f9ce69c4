/* SPDX-License-Identifier: Apache-2.0 */
/* OffsetDelete: a group forgets what it has committed of some partitions. */
#include "base/assert.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/group.h"

static size_t partitions_count(const struct leat_kafka_offset_delete_request *body)
{
    size_t count = 0;
    for (int32_t t = 0; t < body->topics.count; t++)
        if (body->topics.at[t].partitions.count > 0)
            count += (size_t)body->topics.at[t].partitions.count;
    return count;
}

/* Make the answer of one topic, and append its partitions' logs to `logs`. false: no memory. */
static bool forget_topic(struct leat_kafka_request *request,
                         const struct leat_kafka_offset_delete_request_topic *in,
                         struct leat_kafka_offset_delete_response_topic *out,
                         struct leat_log_ref *logs, size_t *log_count)
{
    const struct leat_stream_desc *stream = leat_kafka_topic_by_name(request->core, in->name);
    int32_t count = in->partitions.count > 0 ? in->partitions.count : 0;
    out->name = in->name;
    out->partitions.at = LEAT_KAFKA_MAKE(request, offset_delete_response_partition, (size_t)count);
    if (out->partitions.at == NULL) return false;
    out->partitions.count = count;
    for (int32_t p = 0; p < count; p++) {
        int32_t index = in->partitions.at[p].partition_index;
        out->partitions.at[p].partition_index = index;
        if (stream != NULL && !stream->internal &&
            leat_kafka_partition_log(stream, index, &logs[*log_count]))
            (*log_count)++;
        else
            out->partitions.at[p].error_code = LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    return true;
}

static void forget_on_done(struct leat_kafka_group_ask *ask)
{
    struct leat_kafka_offset_delete_response *response = ask->owner;
    response->error_code = leat_kafka_group_error(ask->home_request.rc);
    if (response->error_code != LEAT_KAFKA_NONE) response->topics.count = 0;
    leat_kafka_answer(ask->request, response);
}

void leat_kafka_handle_offset_delete(struct leat_kafka_request *request)
{
    const struct leat_kafka_offset_delete_request *body = request->body;
    struct leat_kafka_group_ask *ask =
        leat_kafka_group_ask_make(request, LEAT_GROUPS_OFFSETS_DELETE);
    struct leat_kafka_offset_delete_response *response =
        LEAT_KAFKA_MAKE(request, offset_delete_response, 1);
    struct leat_log_ref *logs = leat_kafka_take(request, partitions_count(body) + 1, sizeof *logs);
    int32_t count = body->topics.count > 0 ? body->topics.count : 0;
    bool good = ask != NULL && response != NULL && logs != NULL;
    if (good)
        response->topics.at = LEAT_KAFKA_MAKE(request, offset_delete_response_topic, (size_t)count);
    good = good && response->topics.at != NULL;
    for (int32_t t = 0; t < count && good; t++)
        good = forget_topic(request, &body->topics.at[t], &response->topics.at[t], logs,
                            &ask->home_request.log_count);
    if (!good) {
        leat_kafka_answer(request, NULL);
        return;
    }
    LEAT_ASSERT_CMP(ask->home_request.log_count, <=, partitions_count(body));
    response->topics.count = count;
    ask->home_request.logs = logs;
    ask->owner = response;
    ask->on_done = forget_on_done;
    leat_kafka_group_ask_start(ask, body->group_id);
}
