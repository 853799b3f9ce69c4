/* DescribeTopicPartitions: metadata in pages, topics by name. */
#include <string.h>

#include "broker/places.h"
#include "kafka/cluster.h"
#include "kafka/handlers.h"

enum {
    PAGE_PARTITIONS_MAX = 2000,
    PAGE_TOPICS_MAX = 4096, /* named in one request */
    PAGE_OF_ALL_MAX = 200,  /* of all there are: each is looked for among them */
};

struct page {
    struct leat_kafka_request *request;
    struct leat_kafka_describe_topic_partitions_response *response;
    int32_t left; /* partitions that the page may still take */
    bool waits;   /* where copies are was never asked here, and is being asked */
    bool waited;
    struct leat_places_wait wait;
};

static int name_order(struct leat_kafka_string a, struct leat_kafka_string b)
{
    int32_t bytes = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = bytes > 0 ? memcmp(a.text, b.text, (size_t)bytes) : 0;
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/* The next name behind `after` (text NULL: the first) among those asked for, or all there are; text
 * NULL: there is none. */
static struct leat_kafka_string name_next(struct leat_kafka_request *request,
                                          struct leat_kafka_string after, bool same)
{
    const struct leat_kafka_describe_topic_partitions_request *body = request->body;
    const struct leat_core *core = request->core;
    struct leat_kafka_string best = {NULL, -1};
    for (int32_t i = 0; i < body->topics.count; i++) {
        struct leat_kafka_string name = body->topics.at[i].name;
        int order = after.text != NULL ? name_order(name, after) : 1;
        if (order < 0 || (order == 0 && !same)) continue;
        if (best.text == NULL || name_order(name, best) < 0) best = name;
    }
    for (uint32_t i = 0; body->topics.count <= 0 && i <= core->stream_mask; i++) {
        for (const struct leat_stream *it = core->streams_by_id[i]; it != NULL;
             it = it->by_id_next) {
            struct leat_kafka_string name = leat_kafka_text(it->desc->name);
            int order = after.text != NULL ? name_order(name, after) : 1;
            if (!it->published || it->desc->internal || order < 0 || (order == 0 && !same))
                continue;
            if (best.text == NULL || name_order(name, best) < 0) best = name;
        }
    }
    return best;
}

/* false: no memory. */
static bool page_partitions(struct page *page, const struct leat_stream *stream, int32_t from,
                            struct leat_kafka_describe_topic_partitions_response_topic *out)
{
    int32_t count = (int32_t)leat_kafka_partition_count(stream->desc) - from;
    if (count < 0) count = 0;
    if (count > page->left) {
        page->response->next_cursor.topic_name = out->name;
        page->response->next_cursor.partition_index = from + page->left;
        count = page->left;
    }
    out->partitions.at =
        LEAT_KAFKA_MAKE(page->request, describe_topic_partitions_response_partition, (size_t)count);
    if (out->partitions.at == NULL) return false;
    out->partitions.count = count;
    page->left -= count;
    for (int32_t i = 0; i < count; i++) {
        struct leat_kafka_partition_told told;
        if (!leat_kafka_partition_tell(page->request, stream, (uint32_t)(from + i), &told))
            return false;
        LEAT_KAFKA_PARTITION_FILL(&out->partitions.at[i], &told, from + i);
    }
    return true;
}

static bool page_topic(struct page *page, struct leat_kafka_string name, int32_t from)
{
    struct leat_kafka_describe_topic_partitions_response *response = page->response;
    struct leat_kafka_describe_topic_partitions_response_topic *out =
        &response->topics.at[response->topics.count++];
    const struct leat_stream *stream = leat_kafka_topic_by_name(page->request->core, name);
    out->name = leat_kafka_keep(page->request, name);
    if (stream == NULL) {
        out->error_code = LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return out->name.text != NULL;
    }
    out->topic_id = leat_kafka_topic_id(page->request->core, stream->desc->id);
    out->is_internal = stream->desc->internal;
    out->topic_authorized_operations = LEAT_KAFKA_MAY_TOPIC;
    page->waits |= leat_places_want(page->request->core, stream->desc->id);
    return page_partitions(page, stream, from, out);
}

static void page_on_places(struct leat_places_wait *wait);

static void page_make(struct page *page)
{
    struct leat_kafka_request *request = page->request;
    const struct leat_kafka_describe_topic_partitions_request *body = request->body;
    page->response = LEAT_KAFKA_MAKE(request, describe_topic_partitions_response, 1);
    page->left = PAGE_PARTITIONS_MAX;
    if (body->response_partition_limit > 0 && body->response_partition_limit < page->left)
        page->left = body->response_partition_limit;
    size_t topics =
        body->topics.count > 0 ? (size_t)body->topics.count : (size_t)request->core->stream_count;
    /* Each topic takes one partition of the page at least. */
    if (topics > (size_t)page->left) topics = (size_t)page->left;
    if (body->topics.count <= 0 && topics > PAGE_OF_ALL_MAX) topics = PAGE_OF_ALL_MAX;
    if (page->response != NULL)
        page->response->topics.at =
            LEAT_KAFKA_MAKE(request, describe_topic_partitions_response_topic, topics);
    if (page->response == NULL || page->response->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    const bool resumed = body->cursor.topic_name.text != NULL;
    struct leat_kafka_string name = name_next(request, body->cursor.topic_name, true);
    bool good = true;
    while (good && name.text != NULL && page->response->next_cursor.topic_name.text == NULL) {
        if (page->left == 0 || (size_t)page->response->topics.count == topics) {
            page->response->next_cursor.topic_name = leat_kafka_keep(request, name);
            break;
        }
        bool begun = resumed && name_order(name, body->cursor.topic_name) == 0;
        int32_t from = begun && body->cursor.partition_index > 0 ? body->cursor.partition_index : 0;
        good = page_topic(page, name, from);
        name = name_next(request, name, false);
    }
    if (good && page->waits && !page->waited) {
        page->waited = true;
        page->wait.on_done = page_on_places;
        page->wait.owner = page;
        leat_places_wait(request->core, &page->wait);
        return;
    }
    leat_kafka_answer(request, good ? page->response : NULL);
}

/* Now it is known; the page is made anew. */
static void page_on_places(struct leat_places_wait *wait)
{
    page_make(wait->owner);
}

void leat_kafka_handle_describe_topic_partitions(struct leat_kafka_request *request)
{
    const struct leat_kafka_describe_topic_partitions_request *body = request->body;
    struct page *page = leat_kafka_take(request, 1, sizeof *page);
    if (page == NULL || body->topics.count > PAGE_TOPICS_MAX) {
        leat_kafka_answer(request, NULL);
        return;
    }
    page->request = request;
    page_make(page);
}
