/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeTopicPartitions: metadata in pages, topics by name. */
#include <string.h>

#include "base/assert.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"
#include "kafka/handlers/names.h"

enum {
    PAGE_PARTITIONS_MAX = 2000,
    PAGE_TOPICS_MAX = 4096, /* named in one request */
    PAGE_OF_ALL_MAX = 200,  /* of all there are */
};

struct page {
    struct leat_kafka_request *request;
    struct leat_kafka_describe_topic_partitions_response *response;
    int32_t left; /* partitions that the page may still take */
    bool waits;   /* where copies are was never asked here, and is being asked */
    bool waited;
    struct leat_places_wait wait;
    struct leat_pace_step step;
};

/* The names from the cursor on among the requested names, or the first of all names, and one more. false: no memory. */
static bool names_gather(struct leat_kafka_request *request, uint32_t topics,
                         struct leat_kafka_names *names)
{
    const struct leat_kafka_describe_topic_partitions_request *body = request->body;
    const struct leat_kafka_string from = body->cursor.topic_name;
    const bool all = body->topics.count <= 0;
    const struct leat_stream_desc *stream = NULL;
    if (!leat_kafka_names_init(names, request, all ? topics + 1 : (uint32_t)body->topics.count))
        return false;
    for (int32_t i = 0; i < body->topics.count; i++)
        if (from.text == NULL || leat_kafka_name_order(body->topics.at[i].name, from) >= 0)
            leat_kafka_names_add(names, body->topics.at[i].name);
    while (all && (stream = leat_front_stream_next(request->core, stream)) != NULL) {
        struct leat_kafka_string name = leat_kafka_text(stream->name);
        if (from.text == NULL || leat_kafka_name_order(name, from) >= 0)
            leat_kafka_names_add(names, name);
    }
    leat_kafka_names_sort(names);
    return true;
}

/* false: no memory. */
static bool page_partitions(struct page *page, const struct leat_stream_desc *stream, int32_t from,
                            struct leat_kafka_describe_topic_partitions_response_topic *out)
{
    int32_t count = (int32_t)leat_kafka_partition_count(stream) - from;
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
    LEAT_ASSERT(page->left >= 0);
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
    const struct leat_stream_desc *stream = leat_kafka_topic_by_name(page->request->core, name);
    out->name = leat_kafka_keep(page->request, name);
    if (stream == NULL) {
        out->error_code = LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        return out->name.text != NULL;
    }
    out->topic_id = leat_kafka_topic_id(page->request->core, stream->id);
    out->is_internal = stream->internal;
    out->topic_authorized_operations = LEAT_KAFKA_MAY_TOPIC;
    page->waits |= leat_places_want(page->request->core, stream->id);
    return page_partitions(page, stream, from, out);
}

/* The partition that the page begins with, in the topic where the previous page has ended. */
static int32_t page_from(const struct leat_kafka_topic_partitions_cursor *cursor,
                         struct leat_kafka_string name)
{
    const bool begun =
        cursor->topic_name.text != NULL && leat_kafka_name_order(name, cursor->topic_name) == 0;
    return begun && cursor->partition_index > 0 ? cursor->partition_index : 0;
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
    size_t topics = body->topics.count > 0 ? (size_t)body->topics.count
                                           : (size_t)leat_front_stream_count(request->core);
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
    struct leat_kafka_names names;
    bool good = names_gather(request, (uint32_t)topics, &names);
    for (uint32_t i = 0; good && i < names.count; i++) {
        struct leat_kafka_string name = names.at[i];
        if (i > 0 && leat_kafka_name_order(name, names.at[i - 1]) == 0) continue; /* named twice */
        if (page->response->next_cursor.topic_name.text != NULL) break;
        if (page->left == 0 || (size_t)page->response->topics.count == topics) {
            page->response->next_cursor.topic_name = leat_kafka_keep(request, name);
            break;
        }
        good = page_topic(page, name, page_from(&body->cursor, name));
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
static void page_on_step(struct leat_pace_step *step)
{
    struct page *page = LEAT_CONTAINER(step, struct page, step);
    if (leat_kafka_abandoned(page->request))
        leat_kafka_answer(page->request, NULL); /* hundreds of them may end at once */
    else
        page_make(page);
}

static void page_on_places(struct leat_places_wait *wait)
{
    struct page *page = wait->owner;
    LEAT_ASSERT_OWNER(page->request->core);
    LEAT_ASSERT(page->waited);
    leat_pace_run(page->request->conn->peer, &page->step, page_on_step);
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
