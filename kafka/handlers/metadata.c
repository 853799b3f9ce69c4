/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata and DescribeCluster: the nodes, and the partitions of each. */
#include <string.h>

#include "base/assert.h"
#include "base/mem.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"
#include "kafka/handlers/topics.h"

struct metadata {
    struct leat_kafka_request *request;
    struct leat_kafka_metadata_response *response;
    struct leat_seeker seeker; /* of the topics named by name */
    int32_t *name_at;          /* a topic's place there; -1: its name can be no stream's */
    bool all;                  /* of all topics */
    struct leat_pace_step step;
    struct leat_places_wait wait;
};

/* ---- the answer ---- */

static bool fill_brokers(struct leat_kafka_request *request,
                         struct leat_kafka_metadata_response *response)
{
    struct leat_kafka_node *nodes = leat_kafka_take(request, LEAT_NODES_MAX + 1, sizeof *nodes);
    if (nodes == NULL) return false;
    uint32_t count = leat_kafka_nodes(request->core, nodes, LEAT_NODES_MAX);
    LEAT_ASSERT_CMP(count, <=, LEAT_NODES_MAX);
    response->brokers.at = LEAT_KAFKA_MAKE(request, metadata_response_broker, count);
    if (response->brokers.at == NULL) return false;
    response->brokers.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++)
        response->brokers.at[i] = (struct leat_kafka_metadata_response_broker){
            nodes[i].id, leat_kafka_keep(request, nodes[i].host), nodes[i].port,
            leat_kafka_keep(request, nodes[i].rack)};
    response->cluster_id = leat_kafka_cluster_id(request);
    /* Any node takes requests that change topics. The least busy is not known; so this one, if it is named. */
    response->controller_id = count > 0 ? nodes[0].id : -1;
    const struct leat_kafka_metadata_request *body = request->body;
    if (body->include_cluster_authorized_operations)
        response->cluster_authorized_operations = LEAT_KAFKA_MAY_CLUSTER;
    return true;
}

static bool fill_partitions(struct leat_kafka_request *request,
                            const struct leat_stream_desc *stream,
                            struct leat_kafka_metadata_response_topic *topic)
{
    uint32_t count = leat_kafka_partition_count(stream);
    topic->partitions.at = LEAT_KAFKA_MAKE(request, metadata_response_partition, count);
    if (topic->partitions.at == NULL) return false;
    topic->partitions.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        struct leat_kafka_partition_told told;
        if (!leat_kafka_partition_tell(request, stream, i, &told)) return false;
        LEAT_KAFKA_PARTITION_FILL(&topic->partitions.at[i], &told, i);
    }
    return true;
}

static bool fill_topic(struct leat_kafka_request *request, const struct leat_stream_desc *stream,
                       struct leat_kafka_metadata_response_topic *topic)
{
    topic->name = leat_kafka_keep(request, leat_kafka_text(stream->name));
    topic->topic_id = leat_kafka_topic_id(request->core, stream->id);
    topic->is_internal = stream->internal;
    const struct leat_kafka_metadata_request *body = request->body;
    if (body->include_topic_authorized_operations)
        topic->topic_authorized_operations = LEAT_KAFKA_MAY_TOPIC;
    return fill_partitions(request, stream, topic);
}

static bool fill_all(struct leat_kafka_request *request,
                     struct leat_kafka_metadata_response *response)
{
    const struct leat_core *core = request->core;
    const struct leat_stream_desc *stream = NULL;
    response->topics.at =
        LEAT_KAFKA_MAKE(request, metadata_response_topic, leat_front_stream_count(core));
    if (response->topics.at == NULL) return false;
    while ((stream = leat_front_stream_next(core, stream)) != NULL) {
        LEAT_ASSERT_CMP((uint32_t)response->topics.count, <, leat_front_stream_count(core));
        if (!fill_topic(request, stream, &response->topics.at[response->topics.count++]))
            return false;
    }
    return true;
}

/* Versions 10 and 11 have ids in their fields already, but a client may not ask by id. */
static bool may_ask_by_id(const struct leat_kafka_request *request)
{
    return request->version >= 12;
}

static const struct leat_stream_desc *
stream_asked(const struct leat_kafka_request *request,
             const struct leat_kafka_metadata_request_topic *asked)
{
    if (asked->name.text != NULL) return leat_kafka_topic_by_name(request->core, asked->name);
    return may_ask_by_id(request) ? leat_kafka_topic_by_id(request->core, &asked->topic_id) : NULL;
}

static bool fill_named(struct metadata *metadata)
{
    struct leat_kafka_request *request = metadata->request;
    const struct leat_kafka_metadata_request *body = request->body;
    struct leat_kafka_metadata_response *response = metadata->response;
    int32_t count = body->topics.count;
    response->topics.at = LEAT_KAFKA_MAKE(request, metadata_response_topic, (size_t)count);
    if (response->topics.at == NULL) return false;
    response->topics.count = count;
    for (int32_t i = 0; i < count; i++) {
        const struct leat_kafka_metadata_request_topic *asked = &body->topics.at[i];
        struct leat_kafka_metadata_response_topic *topic = &response->topics.at[i];
        const bool by_name = asked->name.text != NULL;
        const struct leat_stream_desc *stream = stream_asked(request, asked);
        topic->name = asked->name;
        topic->topic_id = asked->topic_id;
        if (stream != NULL) {
            if (!fill_topic(request, stream, topic)) return false;
            continue;
        }
        topic->error_code = by_name                  ? LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                            : may_ask_by_id(request) ? LEAT_KAFKA_UNKNOWN_TOPIC_ID
                                                     : LEAT_KAFKA_INVALID_REQUEST;
        /* Versions before 12 have no place for a topic without a name. */
        if (!by_name && !may_ask_by_id(request)) topic->name = leat_kafka_text("");
        int32_t at = metadata->name_at[i];
        LEAT_ASSERT(at < 0 || (by_name && (uint32_t)at < metadata->seeker.count));
        leat_err refused = at >= 0 ? metadata->seeker.errors[at].code : LEAT_E_BAD_NAME;
        bool copies = refused == LEAT_E_INVALID && metadata->seeker.settings.copies > 1;
        if (by_name && refused != LEAT_OK)
            topic->error_code = copies ? LEAT_KAFKA_INVALID_REPLICATION_FACTOR
                                       : (int16_t)leat_kafka_error_of(refused);
    }
    return true;
}

static void metadata_fill(struct leat_pace_step *step)
{
    struct metadata *metadata = LEAT_CONTAINER(step, struct metadata, step);
    struct leat_kafka_request *request = metadata->request;
    LEAT_ASSERT_OWNER(request->core);
    if (leat_kafka_abandoned(request)) {
        leat_kafka_answer(request, NULL);
        return;
    }
    bool filled = fill_brokers(request, metadata->response) &&
                  (metadata->all ? fill_all(request, metadata->response) : fill_named(metadata));
    leat_kafka_answer(request, filled ? metadata->response : NULL);
}

static void metadata_on_places(struct leat_places_wait *wait)
{
    struct metadata *metadata = wait->owner;
    leat_pace_run(metadata->request->conn->peer, &metadata->step, metadata_fill);
}

/* true: where the copies of some topic are was never asked here, and is being asked. */
static bool places_want(struct metadata *metadata)
{
    const struct leat_kafka_request *request = metadata->request;
    struct leat_core *core = request->core;
    const struct leat_kafka_metadata_request *body = request->body;
    const struct leat_stream_desc *stream = NULL;
    bool waits = false;
    while (metadata->all && (stream = leat_front_stream_next(core, stream)) != NULL)
        waits |= leat_places_want(core, stream->id);
    for (int32_t i = 0; !metadata->all && i < body->topics.count; i++)
        if ((stream = stream_asked(request, &body->topics.at[i])) != NULL)
            waits |= leat_places_want(core, stream->id);
    return waits;
}

static void metadata_ask(struct leat_pace_step *step)
{
    struct metadata *metadata = LEAT_CONTAINER(step, struct metadata, step);
    metadata->wait.on_done = metadata_on_places;
    metadata->wait.owner = metadata;
    if (!leat_kafka_abandoned(metadata->request) && places_want(metadata))
        leat_places_wait(metadata->request->core, &metadata->wait);
    else
        metadata_fill(&metadata->step);
}

static void metadata_on_sought(struct leat_seeker *seeker)
{
    struct metadata *metadata = seeker->owner;
    leat_pace_run(metadata->request->conn->peer, &metadata->step, metadata_ask);
}

/* ---- the request ---- */

/* Names that can be a stream's are looked for, and created if the client wants that; other names, and ids, are looked
 * up when all streams are there. */
static bool seek_prepare(struct metadata *metadata)
{
    struct leat_kafka_request *request = metadata->request;
    const struct leat_kafka_metadata_request *body = request->body;
    struct leat_seeker *seeker = &metadata->seeker;
    size_t count = body->topics.count > 0 ? (size_t)body->topics.count : 0;
    metadata->name_at = leat_kafka_take(request, count, sizeof *metadata->name_at);
    seeker->names = leat_kafka_take(request, count, sizeof *seeker->names);
    seeker->errors = leat_kafka_take(request, count, sizeof *seeker->errors);
    if (metadata->name_at == NULL || seeker->names == NULL || seeker->errors == NULL) return false;
    for (size_t i = 0; i < count; i++) {
        const struct leat_kafka_string *name = &body->topics.at[i].name;
        metadata->name_at[i] = -1;
        if (name->text == NULL) continue;
        if (leat_stream_name_check(name->text, (size_t)name->bytes, NULL) != LEAT_OK) continue;
        LEAT_ASSERT_CMP((size_t)name->bytes, <, sizeof seeker->names[0]);
        metadata->name_at[i] = (int32_t)seeker->count;
        memcpy(seeker->names[seeker->count++], name->text, (size_t)name->bytes);
    }
    return true;
}

void leat_kafka_handle_metadata(struct leat_kafka_request *request)
{
    const struct leat_kafka_metadata_request *body = request->body;
    struct metadata *metadata = leat_kafka_take(request, 1, sizeof *metadata);
    if (metadata != NULL) {
        metadata->request = request;
        metadata->response = LEAT_KAFKA_MAKE(request, metadata_response, 1);
    }
    if (metadata == NULL || metadata->response == NULL || !seek_prepare(metadata)) {
        leat_kafka_answer(request, NULL);
        return;
    }
    struct leat_core *core = request->core;
    metadata->seeker.core = core;
    metadata->seeker.sharer = leat_peer_sharer(request->conn->peer);
    metadata->seeker.address = leat_front_asks(request->conn->peer);
    metadata->seeker.may_create = body->allow_auto_topic_creation &&
                                  leat_front_node(core).auto_create && !leat_front_stops(core);
    metadata->all = metadata->seeker.all =
        body->topics.count < 0 || (request->version == 0 && body->topics.count == 0);
    metadata->seeker.settings = leat_kafka_settings_default(core);
    metadata->seeker.on_done = metadata_on_sought;
    metadata->seeker.owner = metadata;
    leat_seeker_start(&metadata->seeker);
}

/* ---- DescribeCluster ---- */

void leat_kafka_handle_describe_cluster(struct leat_kafka_request *request)
{
    struct leat_kafka_describe_cluster_response *response =
        LEAT_KAFKA_MAKE(request, describe_cluster_response, 1);
    struct leat_kafka_node *nodes = leat_kafka_take(request, LEAT_NODES_MAX + 1, sizeof *nodes);
    if (response == NULL || nodes == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    uint32_t count = leat_kafka_nodes(request->core, nodes, LEAT_NODES_MAX);
    response->cluster_id = leat_kafka_cluster_id(request);
    response->controller_id = count > 0 ? nodes[0].id : -1;
    const struct leat_kafka_describe_cluster_request *body = request->body;
    if (body->include_cluster_authorized_operations)
        response->cluster_authorized_operations = LEAT_KAFKA_MAY_CLUSTER;
    response->brokers.at = LEAT_KAFKA_MAKE(request, describe_cluster_response_broker, count);
    if (response->brokers.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->brokers.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++)
        response->brokers.at[i] = (struct leat_kafka_describe_cluster_response_broker){
            nodes[i].id, leat_kafka_keep(request, nodes[i].host), nodes[i].port,
            leat_kafka_keep(request, nodes[i].rack)};
    leat_kafka_answer(request, response);
}
