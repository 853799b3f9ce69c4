/* DescribeLogDirs: how much is stored of the partitions that this node owns. The question goes from
 * core to core, and each tells of its own logs. A node has one directory as far as clients know. */
#include "kafka/cluster.h"
#include "kafka/handlers.h"

struct log_size {
    struct leat_log_ref log;
    uint32_t home;
    struct leat_kafka_describe_log_dirs_response_partition *out;
};
struct log_dirs {
    struct leat_kafka_request *request;
    struct leat_kafka_describe_log_dirs_response *response;
    struct leat_kafka_describe_log_dirs_response_result *dir;
    struct log_size *sizes;
    uint32_t count, core; /* that is asked now */
};

/* ---- what is asked ---- */

/* partitions NULL: all of the topic. false: no memory. */
static bool topic_add(struct log_dirs *dirs, const struct leat_stream *stream,
                      const int32_t *partitions, uint32_t count)
{
    struct leat_kafka_request *request = dirs->request;
    struct leat_kafka_describe_log_dirs_response_topic *topic =
        &dirs->dir->topics.at[dirs->dir->topics.count];
    topic->name = leat_kafka_keep(request, leat_kafka_text(stream->desc->name));
    topic->partitions.at = LEAT_KAFKA_MAKE(request, describe_log_dirs_response_partition, count);
    if (topic->name.text == NULL || topic->partitions.at == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        struct log_size *size = &dirs->sizes[dirs->count];
        const int32_t partition = partitions != NULL ? partitions[i] : (int32_t)i;
        if (leat_kafka_partition_find(request->core, stream, partition, -1, &size->log,
                                      &size->home) != LEAT_KAFKA_NONE)
            continue; /* its owner tells */
        size->out = &topic->partitions.at[topic->partitions.count++];
        size->out->partition_index = partition;
        dirs->count++;
    }
    if (topic->partitions.count > 0) dirs->dir->topics.count++;
    return true;
}

static bool all_add(struct log_dirs *dirs)
{
    struct leat_kafka_request *request = dirs->request;
    const struct leat_stream *stream = NULL;
    uint32_t count = 0;
    while ((stream = leat_kafka_topic_next(request->core, stream)) != NULL)
        count += leat_kafka_partition_count(stream->desc);
    dirs->sizes = leat_kafka_take(request, (size_t)count + 1, sizeof *dirs->sizes);
    dirs->dir->topics.at = LEAT_KAFKA_MAKE(request, describe_log_dirs_response_topic,
                                           (size_t)request->core->stream_count + 1);
    if (dirs->sizes == NULL || dirs->dir->topics.at == NULL) return false;
    while ((stream = leat_kafka_topic_next(request->core, stream)) != NULL)
        if (!topic_add(dirs, stream, NULL, leat_kafka_partition_count(stream->desc))) return false;
    return true;
}

static bool named_add(struct log_dirs *dirs)
{
    struct leat_kafka_request *request = dirs->request;
    const struct leat_kafka_describe_log_dirs_request *body = request->body;
    size_t count = 1; /* room to look at one that is not counted */
    for (int32_t t = 0; t < body->topics.count; t++)
        count += (size_t)body->topics.at[t].partitions.count;
    dirs->sizes = leat_kafka_take(request, count, sizeof *dirs->sizes);
    dirs->dir->topics.at =
        LEAT_KAFKA_MAKE(request, describe_log_dirs_response_topic, (size_t)body->topics.count + 1);
    if (dirs->sizes == NULL || dirs->dir->topics.at == NULL) return false;
    for (int32_t t = 0; t < body->topics.count; t++) {
        const struct leat_kafka_describe_log_dirs_request_topic *asked = &body->topics.at[t];
        const struct leat_stream *stream = leat_kafka_topic_by_name(request->core, asked->topic);
        if (stream != NULL &&
            !topic_add(dirs, stream, asked->partitions.at, (uint32_t)asked->partitions.count))
            return false;
    }
    return true;
}

/* ---- from core to core ---- */

static void deliver_back(void *actor, struct leat_mail *mail)
{
    const struct leat_kafka_request *request =
        LEAT_CONTAINER(mail, struct leat_kafka_request, mail);
    struct log_dirs *dirs = request->state;
    (void)actor;
    leat_kafka_answer(dirs->request, dirs->response);
}

static void deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_kafka_request *request = LEAT_CONTAINER(mail, struct leat_kafka_request, mail);
    struct log_dirs *dirs = request->state;
    for (uint32_t i = 0; i < dirs->count; i++) {
        const struct log_size *size = &dirs->sizes[i];
        if (size->home != core->index) continue;
        const struct leat_hosted *hosted = leat_hosted_find(core, size->log);
        if (hosted == NULL || hosted->log == NULL) continue; /* nothing has begun */
        struct leat_log_info info;
        leat_log_info(hosted->log, &info);
        size->out->partition_size = (int64_t)info.bytes;
    }
    bool last = ++dirs->core == core->node->options.cores;
    leat_core_mail(core, last ? request->core->index : dirs->core, mail,
                   last ? deliver_back : deliver);
}

void leat_kafka_handle_describe_log_dirs(struct leat_kafka_request *request)
{
    const struct leat_kafka_describe_log_dirs_request *body = request->body;
    struct log_dirs *dirs = leat_kafka_take(request, 1, sizeof *dirs);
    struct leat_kafka_describe_log_dirs_response *response =
        LEAT_KAFKA_MAKE(request, describe_log_dirs_response, 1);
    struct leat_kafka_describe_log_dirs_response_result *dir =
        LEAT_KAFKA_MAKE(request, describe_log_dirs_response_result, 1);
    if (dirs == NULL || response == NULL || dir == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    *dirs = (struct log_dirs){.request = request, .response = response, .dir = dir};
    request->state = dirs;
    response->results.at = dir;
    response->results.count = 1;
    dir->log_dir = leat_kafka_keep(request, leat_kafka_text(request->core->node->name));
    if (!(body->topics.count < 0 ? all_add(dirs) : named_add(dirs))) {
        leat_kafka_answer(request, NULL);
        return;
    }
    leat_core_mail(request->core, 0, &request->mail, deliver);
}
