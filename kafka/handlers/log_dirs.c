/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeLogDirs: how much is stored of the partitions that this node owns. The question goes from
 * core to core, and each tells of its own logs. A node has one directory as far as clients know. */
#include "base/assert.h"
#include "kafka/front/pieces.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"

struct log_size {
    struct leat_log_ref log;
    uint32_t home;
    struct leat_kafka_describe_log_dirs_response_partition *out;
};
struct log_topic {
    uint32_t stream;
    const int32_t *partitions; /* NULL: all */
    uint32_t count;
};
struct log_dirs {
    struct leat_kafka_pieces pieces;
    struct leat_kafka_describe_log_dirs_response_result *dir;
    struct log_topic *topics;
    uint32_t topic_count;
    uint32_t topic, partition; /* the next */
    struct log_size *sizes;
    uint32_t count;    /* of sizes */
    uint32_t core, at; /* the core that is asked now, and for which of sizes */
};

enum { SIZES_OF_A_TURN = 1024 }; /* logs that a core looks at */

/* ---- the request ---- */

/* The stream is found again by its id when its turn comes: it may have gone meanwhile. */
static void topic_note(struct log_dirs *dirs, const struct leat_stream_desc *stream,
                       const int32_t *partitions, uint32_t count)
{
    dirs->topics[dirs->topic_count++] = (struct log_topic){stream->id, partitions, count};
    dirs->count += count;
}

static bool all_note(struct log_dirs *dirs)
{
    const struct leat_core *core = dirs->pieces.request->core;
    const struct leat_stream_desc *stream = NULL;
    dirs->topics = leat_kafka_take(dirs->pieces.request, (size_t)leat_front_stream_count(core),
                                   sizeof *dirs->topics);
    if (dirs->topics == NULL) return false;
    while ((stream = leat_front_stream_next(core, stream)) != NULL) {
        LEAT_ASSERT_CMP(dirs->topic_count, <, leat_front_stream_count(core));
        topic_note(dirs, stream, NULL, leat_kafka_partition_count(stream));
    }
    return true;
}

static bool named_note(struct log_dirs *dirs)
{
    const struct leat_kafka_describe_log_dirs_request *body = dirs->pieces.request->body;
    dirs->topics =
        leat_kafka_take(dirs->pieces.request, (size_t)body->topics.count, sizeof *dirs->topics);
    for (int32_t t = 0; dirs->topics != NULL && t < body->topics.count; t++) {
        const struct leat_kafka_describe_log_dirs_request_topic *asked = &body->topics.at[t];
        const struct leat_stream_desc *stream =
            leat_kafka_topic_by_name(dirs->pieces.request->core, asked->topic);
        if (stream != NULL)
            topic_note(dirs, stream, asked->partitions.at, (uint32_t)asked->partitions.count);
    }
    return dirs->topics != NULL;
}

static bool topic_begin(struct leat_kafka_request *request, const struct leat_stream_desc *stream,
                        uint32_t count, struct leat_kafka_describe_log_dirs_response_topic *out)
{
    out->name = leat_kafka_keep(request, leat_kafka_text(stream->name));
    out->partitions.at = LEAT_KAFKA_MAKE(request, describe_log_dirs_response_partition, count);
    return out->name.text != NULL && out->partitions.at != NULL;
}

/* One partition, or the step to the next topic. */
static enum leat_kafka_piece dirs_next(struct leat_kafka_pieces *pieces)
{
    struct log_dirs *dirs = LEAT_CONTAINER(pieces, struct log_dirs, pieces);
    struct leat_core *core = pieces->request->core;
    LEAT_ASSERT_CMP(dirs->topic, <=, dirs->topic_count);
    if (dirs->topic == dirs->topic_count) return LEAT_KAFKA_PIECE_NONE;
    const struct log_topic *topic = &dirs->topics[dirs->topic];
    const struct leat_stream_desc *stream = leat_front_stream(core, topic->stream);
    struct leat_kafka_describe_log_dirs_response_topic *out =
        &dirs->dir->topics.at[dirs->dir->topics.count];
    const uint32_t at = dirs->partition++;
    LEAT_ASSERT_CMP(at, <=, topic->count);
    if (at == 0 && stream != NULL && !topic_begin(pieces->request, stream, topic->count, out))
        return LEAT_KAFKA_PIECE_FAILED;
    if (stream == NULL || at == topic->count) {
        if (out->partitions.count > 0) dirs->dir->topics.count++;
        dirs->topic++;
        dirs->partition = 0;
        return LEAT_KAFKA_PIECE_DONE;
    }
    struct log_size *size = &dirs->sizes[dirs->count];
    const int32_t partition = topic->partitions != NULL ? topic->partitions[at] : (int32_t)at;
    if (leat_kafka_partition_find(core, stream, partition, -1, &size->log, &size->home) !=
        LEAT_KAFKA_NONE)
        return LEAT_KAFKA_PIECE_DONE; /* the owner reports it */
    LEAT_ASSERT_CMP((uint32_t)out->partitions.count, <=, at);
    size->out = &out->partitions.at[out->partitions.count++];
    size->out->partition_index = partition;
    dirs->count++;
    return LEAT_KAFKA_PIECE_DONE;
}

/* ---- from core to core ---- */

static void deliver_back(void *actor, struct leat_mail *mail)
{
    struct leat_kafka_request *request = LEAT_CONTAINER(mail, struct leat_kafka_request, mail);
    const struct log_dirs *dirs = request->state;
    LEAT_ASSERT(actor == request->core && dirs->at == 0);
    leat_kafka_answer(request, dirs->pieces.response);
}

static void size_look(const struct leat_core *core, const struct log_size *size)
{
    if (size->home != leat_front_index(core)) return;
    size->out->partition_size = (int64_t)leat_front_log_bytes(core, size->log);
}

/* In each turn of a core a part of them, between what else it has to do. */
static void deliver(void *actor, struct leat_mail *mail)
{
    struct leat_core *core = actor;
    struct leat_kafka_request *request = LEAT_CONTAINER(mail, struct leat_kafka_request, mail);
    struct log_dirs *dirs = request->state;
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT_CMP(dirs->core, ==, leat_front_index(core));
    for (uint32_t i = 0; i < SIZES_OF_A_TURN && dirs->at < dirs->count; i++)
        size_look(core, &dirs->sizes[dirs->at++]);
    if (dirs->at < dirs->count) {
        leat_front_mail(core, leat_front_index(core), mail, deliver);
        return;
    }
    dirs->at = 0;
    bool last = ++dirs->core == leat_front_cores(core);
    leat_front_mail(core, last ? leat_front_index(request->core) : dirs->core, mail,
                    last ? deliver_back : deliver);
}

static void dirs_on_noted(struct leat_kafka_pieces *pieces)
{
    struct leat_kafka_request *request = pieces->request;
    leat_front_mail(request->core, 0, &request->mail, deliver);
}

void leat_kafka_handle_describe_log_dirs(struct leat_kafka_request *request)
{
    const struct leat_kafka_describe_log_dirs_request *body = request->body;
    struct leat_kafka_describe_log_dirs_response *response =
        LEAT_KAFKA_MAKE(request, describe_log_dirs_response, 1);
    struct log_dirs *dirs = leat_kafka_pieces_take(request, sizeof *dirs, response, dirs_next);
    struct leat_kafka_describe_log_dirs_response_result *dir =
        LEAT_KAFKA_MAKE(request, describe_log_dirs_response_result, 1);
    if (dirs == NULL || dir == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    dirs->dir = dir;
    dirs->pieces.on_done = dirs_on_noted;
    request->state = dirs;
    response->results.at = dir;
    response->results.count = 1;
    dir->log_dir = leat_kafka_keep(request, leat_kafka_text(leat_front_node(request->core).name));
    bool good = body->topics.count < 0 ? all_note(dirs) : named_note(dirs);
    /* One element more than dirs->count: a step fills the next element before counting it. */
    if (good) {
        dirs->sizes = leat_kafka_take(request, (size_t)dirs->count + 1, sizeof *dirs->sizes);
        dir->topics.at = LEAT_KAFKA_MAKE(request, describe_log_dirs_response_topic,
                                         (size_t)dirs->topic_count + 1);
    }
    if (!good || dirs->sizes == NULL || dir->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    dirs->count = 0;
    leat_kafka_pieces_start(&dirs->pieces);
}
