/* SPDX-License-Identifier: Apache-2.0 */
/* CreateTopics, DeleteTopics, CreatePartitions: streams are made, deleted and enlarged as by native requests
 * (broker/admin/streams.h). The topics of one request go on side by side. */
#include "kafka/handlers/topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "kafka/front/pieces.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/config.h"
#include "kafka/handlers/handlers.h"
#include "kafka/handlers/names.h"

enum { CREATE_TOPICS_MAX = 4096 }; /* in one request */

struct topics {
    struct leat_kafka_pieces pieces;
    int32_t next;
    const uint8_t *named; /* CreateTopics: enum named of each */
};

static bool text_equal(struct leat_kafka_string a, struct leat_kafka_string b)
{
    return a.bytes == b.bytes && a.bytes > 0 && memcmp(a.text, b.text, (size_t)a.bytes) == 0;
}

/* ---- CreateTopics ---- */

struct create_one {
    struct topics *topics;
    struct leat_kafka_create_topics_response_topic *out;
    uint32_t copies; /* copies that were asked for */
    struct leat_maker maker;
};

static void create_refuse(struct topics *topics,
                          struct leat_kafka_create_topics_response_topic *out,
                          enum leat_kafka_error code, const char *text)
{
    LEAT_KAFKA_REFUSE(topics->pieces.request, out, code, text);
    out->configs.count = -1;
}

static bool create_fill_configs(struct leat_kafka_request *request,
                                const struct leat_stream_settings *settings,
                                struct leat_kafka_create_topics_response_topic *out)
{
    struct leat_kafka_config_row row;
    uint32_t count = 0;
    while (leat_kafka_config_get(settings, count, &row))
        count++;
    out->configs.at = LEAT_KAFKA_MAKE(request, create_topics_response_config, count);
    if (out->configs.at == NULL) return false;
    out->configs.count = (int32_t)count;
    for (uint32_t i = 0; i < count && leat_kafka_config_get(settings, i, &row); i++)
        out->configs.at[i] = (struct leat_kafka_create_topics_response_config){
            leat_kafka_text(row.name), leat_kafka_keep(request, leat_kafka_text(row.value)),
            row.read_only, row.is_default ? 5 : 1, false};
    return true;
}

static void create_succeed(struct topics *topics, const struct leat_stream_settings *settings,
                           struct leat_kafka_create_topics_response_topic *out)
{
    out->num_partitions = (int32_t)(settings->streamlets * settings->logs);
    out->replication_factor = (int16_t)settings->copies;
    if (!create_fill_configs(topics->pieces.request, settings, out)) out->configs.count = -1;
}

static void create_on_made(struct leat_maker *maker)
{
    struct create_one *one = maker->owner;
    struct topics *topics = one->topics;
    struct leat_core *core = topics->pieces.request->core;
    LEAT_ASSERT_OWNER(core);
    const struct leat_stream_desc *stream =
        maker->rc == LEAT_OK ? leat_front_stream(core, maker->id) : NULL;
    if (stream != NULL) {
        one->out->topic_id = leat_kafka_topic_id(core, maker->id);
        create_succeed(topics, &stream->settings, one->out);
    } else if (maker->rc == LEAT_E_INVALID && one->copies > 1) {
        create_refuse(topics, one->out, LEAT_KAFKA_INVALID_REPLICATION_FACTOR, maker->error.text);
    } else {
        create_refuse(topics, one->out,
                      maker->rc == LEAT_E_INVALID ? LEAT_KAFKA_INVALID_CONFIG
                      : maker->rc != LEAT_OK      ? leat_kafka_error_of(maker->rc)
                                                  : LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                      maker->error.text);
    }
    leat_kafka_pieces_end(&topics->pieces, one);
}

static enum leat_kafka_error partitions_error(leat_err rc)
{
    return rc == LEAT_E_AGAIN ? leat_kafka_error_of(rc) : LEAT_KAFKA_INVALID_PARTITIONS;
}

static uint32_t nodes_up(const struct leat_core *core)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < leat_front_node_count(core); i++)
        if (leat_front_node_info(core, i)->state == LEAT_NODE_UP) count++;
    return count;
}

/* Nodes can't be chosen, but a client that names all nodes has chosen none. */
static bool is_all_nodes(struct leat_core *core, const int32_t *ids, int32_t count)
{
    uint32_t up = nodes_up(core), found = 0;
    if (count <= 0 || (uint32_t)count != up) return false;
    for (uint32_t i = 0; i < leat_front_node_count(core); i++) {
        const struct leat_node_info *info = leat_front_node_info(core, i);
        if (info->state != LEAT_NODE_UP) continue;
        int32_t id = leat_kafka_node_id(core, info->incarnation), named = 0;
        for (int32_t k = 0; k < count; k++)
            named += ids[k] == id;
        found += named == 1;
    }
    return found == up;
}

static leat_err refuse_assignment(struct leat_error *error)
{
    return leat_error_set(error, LEAT_E_INVALID,
                          "nodes can't be chosen: each partition goes to the node with the fewest. "
                          "An assignment is taken where it names partitions from 0 on, and all "
                          "nodes that are up for each");
}

static bool assignments_take(struct leat_kafka_request *request,
                             const struct leat_kafka_create_topics_request_topic *in,
                             struct leat_stream_settings *settings, struct leat_error *error)
{
    int32_t count = in->assignments.count;
    bool *seen = leat_kafka_take(request, (size_t)count, sizeof *seen);
    bool fine = seen != NULL && (in->num_partitions == -1 || in->num_partitions == count);
    for (int32_t i = 0; i < count && fine; i++) {
        const struct leat_kafka_create_topics_request_assignment *one = &in->assignments.at[i];
        int32_t index = one->partition_index;
        fine = index >= 0 && index < count && !seen[index] &&
               is_all_nodes(request->core, one->broker_ids.at, one->broker_ids.count);
        if (fine) seen[index] = true;
    }
    LEAT_ASSERT(count > 0); /* else nothing was assigned */
    int32_t copies = in->assignments.at[0].broker_ids.count;
    fine = fine && (in->replication_factor == -1 || in->replication_factor == copies);
    if (!fine) return refuse_assignment(error) == LEAT_OK;
    settings->streamlets = (uint32_t)count;
    settings->copies = (uint32_t)copies;
    return true;
}

/* The requested settings, and the same with all defaults. */
static enum leat_kafka_error
create_settings(struct leat_kafka_request *request,
                const struct leat_kafka_create_topics_request_topic *in,
                struct leat_stream_settings *settings, struct leat_stream_settings *whole,
                struct leat_error *error)
{
    *settings = leat_kafka_settings_default(request->core);
    uint32_t change = 0;
    if (in->assignments.count > 0 && !assignments_take(request, in, settings, error))
        return LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT;
    if (in->num_partitions == 0 || in->num_partitions < -1) {
        leat_error_set(error, LEAT_E_INVALID, "a topic has at least 1 partition (-1: the default)");
        return LEAT_KAFKA_INVALID_PARTITIONS;
    }
    if (in->replication_factor == 0 || in->replication_factor < -1 ||
        in->replication_factor > LEAT_COPIES_MAX) {
        leat_error_set(error, LEAT_E_INVALID, "a topic has 1 to %d copies (-1: the default)",
                       LEAT_COPIES_MAX);
        return LEAT_KAFKA_INVALID_REPLICATION_FACTOR;
    }
    if (in->num_partitions > 0) settings->streamlets = (uint32_t)in->num_partitions;
    if (in->replication_factor > 0) settings->copies = (uint32_t)in->replication_factor;
    if (in->configs.count > LEAT_KAFKA_CONFIGS_NAMED_MAX) {
        leat_error_set(error, LEAT_E_INVALID, LEAT_KAFKA_CONFIGS_TOO_MANY);
        return LEAT_KAFKA_INVALID_REQUEST;
    }
    for (int32_t i = 0; i < in->configs.count; i++)
        if (leat_kafka_config_set(settings, &change, in->configs.at[i].name,
                                  in->configs.at[i].value, true, error) != LEAT_OK)
            return LEAT_KAFKA_INVALID_CONFIG;
    struct leat_msg_string name = {in->name.text, (uint32_t)in->name.bytes};
    leat_err rc = leat_stream_create_allowed(request->core, name, settings, error);
    if (rc != LEAT_OK) return partitions_error(rc);
    if (settings->copies > 1 && settings->copies > nodes_up(request->core)) {
        leat_error_set(error, LEAT_E_INVALID, "there are %u nodes for %u copies",
                       nodes_up(request->core), settings->copies);
        return LEAT_KAFKA_INVALID_REPLICATION_FACTOR;
    }
    *whole = *settings;
    return leat_stream_settings_complete(whole, leat_front_cores(request->core), error) == LEAT_OK
               ? LEAT_KAFKA_NONE
               : LEAT_KAFKA_INVALID_CONFIG;
}

/* How a topic's name is named in the request. */
enum named { NAMED_ONCE, NAMED_TWICE, NAMED_BEFORE };

static int topic_order(const void *a, const void *b)
{
    const struct leat_kafka_create_topics_request_topic *x, *y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    int order = leat_kafka_name_order(x->name, y->name);
    return order != 0 ? order : (x > y) - (x < y);
}

/* Sorted, so that thousands of names are not each compared with all other names. NULL: no memory. */
static uint8_t *names_look(struct leat_kafka_request *request)
{
    const struct leat_kafka_create_topics_request *body = request->body;
    const size_t count = (size_t)body->topics.count;
    const struct leat_kafka_create_topics_request_topic **sorted =
        leat_kafka_take(request, count, sizeof(struct leat_kafka_create_topics_request_topic *));
    uint8_t *named = leat_kafka_take(request, count, sizeof *named);
    if (sorted == NULL || named == NULL) return NULL;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &body->topics.at[i];
    qsort(sorted, count, sizeof *sorted, topic_order);
    for (size_t first = 0, i = 1; i < count; i++) {
        if (!text_equal(sorted[i]->name, sorted[first]->name)) {
            first = i;
            continue;
        }
        named[sorted[first] - body->topics.at] = NAMED_TWICE;
        named[sorted[i] - body->topics.at] = NAMED_BEFORE;
    }
    return named;
}

/* Clients know the error for a quota from some version of each request on; before, the error for work that was not
 * done in time. */
static enum leat_kafka_error throttled(const struct leat_kafka_request *request, int16_t since)
{
    return request->version >= since ? LEAT_KAFKA_THROTTLING_QUOTA_EXCEEDED
                                     : leat_kafka_error_of(LEAT_E_AGAIN);
}

static void create_one(struct topics *topics, int32_t at, enum named named,
                       struct leat_kafka_create_topics_response_topic *out)
{
    struct leat_kafka_request *request = topics->pieces.request;
    const struct leat_kafka_create_topics_request *body = request->body;
    const struct leat_kafka_create_topics_request_topic *in = &body->topics.at[at];
    struct leat_stream_settings settings, whole;
    struct leat_error error = {LEAT_OK, ""};
    out->name = in->name;
    if (named == NAMED_TWICE) {
        create_refuse(topics, out, LEAT_KAFKA_INVALID_REQUEST, "the topic is named twice");
        return;
    }
    struct leat_msg_string name = {in->name.text, (uint32_t)in->name.bytes};
    if (leat_stream_name_allowed(name, &error) != LEAT_OK) {
        create_refuse(topics, out, LEAT_KAFKA_INVALID_TOPIC_EXCEPTION, error.text);
        return;
    }
    /* Before the checks of the request, as Kafka does: a client that makes sure that a topic is there asks so again
     * and again. */
    if (leat_front_stream_heard(request->core, name.text, name.bytes, NULL) != NULL) {
        create_refuse(topics, out, LEAT_KAFKA_TOPIC_ALREADY_EXISTS, "the topic exists");
        return;
    }
    enum leat_kafka_error code = create_settings(request, in, &settings, &whole, &error);
    if (code == LEAT_KAFKA_NONE && leat_front_stops(request->core))
        code = LEAT_KAFKA_NOT_CONTROLLER;
    if (code != LEAT_KAFKA_NONE) {
        create_refuse(topics, out, code, error.text);
        return;
    }
    if (body->validate_only) {
        create_succeed(topics, &whole, out);
        return;
    }
    if (leat_stream_work_allowed(request->core, leat_peer_sharer(request->conn->peer), NULL,
                                 &settings, &error) != LEAT_OK) {
        create_refuse(topics, out, throttled(request, 6), error.text);
        return;
    }
    struct create_one *one = leat_kafka_pieces_begin(&topics->pieces, sizeof *one);
    if (one == NULL) {
        create_refuse(topics, out, LEAT_KAFKA_UNKNOWN_SERVER_ERROR, "no memory");
        return;
    }
    one->topics = topics;
    one->out = out;
    one->copies = settings.copies;
    one->maker.on_done = create_on_made;
    one->maker.address = leat_front_asks(request->conn->peer);
    one->maker.owner = one;
    leat_maker_start(request->core, &one->maker, name.text, name.bytes, &settings);
}

static enum leat_kafka_piece create_next(struct leat_kafka_pieces *pieces)
{
    struct topics *topics = LEAT_CONTAINER(pieces, struct topics, pieces);
    const struct leat_kafka_create_topics_request *body = pieces->request->body;
    struct leat_kafka_create_topics_response *response = pieces->response;
    const int32_t at = topics->next++;
    if (at >= body->topics.count) return LEAT_KAFKA_PIECE_NONE;
    LEAT_ASSERT(response->topics.count <= at);
    /* A topic named twice is answered once: clients look for each by its name. */
    if (topics->named[at] != NAMED_BEFORE)
        create_one(topics, at, topics->named[at], &response->topics.at[response->topics.count++]);
    return LEAT_KAFKA_PIECE_DONE;
}

void leat_kafka_handle_create_topics(struct leat_kafka_request *request)
{
    const struct leat_kafka_create_topics_request *body = request->body;
    struct leat_kafka_create_topics_response *response =
        LEAT_KAFKA_MAKE(request, create_topics_response, 1);
    struct topics *topics = leat_kafka_pieces_take(request, sizeof *topics, response, create_next);
    if (topics != NULL)
        response->topics.at =
            LEAT_KAFKA_MAKE(request, create_topics_response_topic, (size_t)body->topics.count);
    if (topics == NULL || response->topics.at == NULL || body->topics.count > CREATE_TOPICS_MAX ||
        (topics->named = names_look(request)) == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    leat_kafka_pieces_start(&topics->pieces);
}

/* ---- DeleteTopics ---- */

struct delete_one {
    struct topics *topics;
    struct leat_kafka_delete_topics_response_topic *out;
    struct leat_deleter deleter;
};

static void delete_on_done(struct leat_deleter *deleter)
{
    struct delete_one *one = deleter->owner;
    LEAT_ASSERT_OWNER(one->topics->pieces.request->core);
    if (deleter->rc != LEAT_OK)
        LEAT_KAFKA_REFUSE(one->topics->pieces.request, one->out, leat_kafka_error_of(deleter->rc),
                          deleter->error.text);
    leat_kafka_pieces_end(&one->topics->pieces, one);
}

static void delete_one(struct topics *topics, const struct leat_stream_desc *stream,
                       struct leat_kafka_delete_topics_response_topic *out, bool by_id)
{
    struct leat_kafka_request *request = topics->pieces.request;
    struct leat_error error;
    if (stream == NULL) {
        LEAT_KAFKA_REFUSE(topics->pieces.request, out,
                          by_id ? LEAT_KAFKA_UNKNOWN_TOPIC_ID
                                : LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                          "there is no such topic");
        return;
    }
    struct leat_msg_string name = {stream->name, (uint32_t)strlen(stream->name)};
    if (leat_stream_name_allowed(name, &error) != LEAT_OK) {
        LEAT_KAFKA_REFUSE(topics->pieces.request, out, LEAT_KAFKA_INVALID_TOPIC_EXCEPTION,
                          error.text);
        return;
    }
    out->name = leat_kafka_keep(request, leat_kafka_text(stream->name));
    out->topic_id = leat_kafka_topic_id(request->core, stream->id);
    if (leat_front_stops(request->core)) {
        LEAT_KAFKA_REFUSE(request, out, LEAT_KAFKA_NOT_CONTROLLER, "the server is stopping");
        return;
    }
    struct delete_one *one = leat_kafka_pieces_begin(&topics->pieces, sizeof *one);
    if (one == NULL) {
        LEAT_KAFKA_REFUSE(request, out, LEAT_KAFKA_UNKNOWN_SERVER_ERROR, "no memory");
        return;
    }
    one->topics = topics;
    one->out = out;
    one->deleter.core = request->core;
    one->deleter.address = leat_front_asks(request->conn->peer);
    one->deleter.on_done = delete_on_done;
    one->deleter.owner = one;
    leat_deleter_start(&one->deleter, name.text, name.bytes);
}

static int32_t delete_count(const struct leat_kafka_request *request)
{
    const struct leat_kafka_delete_topics_request *body = request->body;
    return request->version >= 6 ? body->topics.count : body->topic_names.count;
}

static enum leat_kafka_piece delete_next(struct leat_kafka_pieces *pieces)
{
    struct topics *topics = LEAT_CONTAINER(pieces, struct topics, pieces);
    const struct leat_kafka_request *request = pieces->request;
    const struct leat_kafka_delete_topics_request *body = request->body;
    struct leat_kafka_delete_topics_response *response = pieces->response;
    const int32_t at = topics->next++;
    if (at >= delete_count(request)) return LEAT_KAFKA_PIECE_NONE;
    LEAT_ASSERT(at < response->topics.count);
    struct leat_kafka_delete_topics_response_topic *out = &response->topics.at[at];
    bool by_id = request->version >= 6 && body->topics.at[at].name.text == NULL;
    if (request->version >= 6) {
        out->name = body->topics.at[at].name;
        out->topic_id = body->topics.at[at].topic_id;
    } else {
        out->name = body->topic_names.at[at];
    }
    delete_one(topics,
               by_id ? leat_kafka_topic_by_id(request->core, &out->topic_id)
                     : leat_kafka_topic_by_name(request->core, out->name),
               out, by_id);
    return LEAT_KAFKA_PIECE_DONE;
}

void leat_kafka_handle_delete_topics(struct leat_kafka_request *request)
{
    struct leat_kafka_delete_topics_response *response =
        LEAT_KAFKA_MAKE(request, delete_topics_response, 1);
    struct topics *topics = leat_kafka_pieces_take(request, sizeof *topics, response, delete_next);
    const int32_t count = delete_count(request);
    if (topics != NULL)
        response->topics.at = LEAT_KAFKA_MAKE(request, delete_topics_response_topic, (size_t)count);
    if (topics == NULL || response->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->topics.count = count;
    leat_kafka_pieces_start(&topics->pieces);
}

/* ---- CreatePartitions ---- */

struct enlarge_one {
    struct topics *topics;
    struct leat_kafka_create_partitions_response_topic *out;
    struct leat_changer changer;
};

static void enlarge_on_done(struct leat_changer *changer)
{
    struct enlarge_one *one = changer->owner;
    LEAT_ASSERT_OWNER(one->topics->pieces.request->core);
    if (changer->rc != LEAT_OK)
        LEAT_KAFKA_REFUSE(one->topics->pieces.request, one->out,
                          changer->rc == LEAT_E_INVALID ? LEAT_KAFKA_INVALID_PARTITIONS
                                                        : leat_kafka_error_of(changer->rc),
                          changer->error.text);
    leat_kafka_pieces_end(&one->topics->pieces, one);
}

/* How large the stream becomes; LEAT_KAFKA_NONE: it may. */
static enum leat_kafka_error
enlarge_check(struct leat_core *core, const struct leat_stream_desc *stream,
              const struct leat_kafka_create_partitions_request_topic *in,
              struct leat_stream_settings *settings, struct leat_error *error)
{
    *error = (struct leat_error){LEAT_OK, ""};
    if (stream == NULL || stream->internal) {
        leat_error_set(error, LEAT_E_UNKNOWN_STREAM, "there is no such topic");
        return LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    }
    uint32_t now = leat_kafka_partition_count(stream), logs = stream->settings.logs;
    if (in->count <= 0 || (uint32_t)in->count <= now) {
        leat_error_set(error, LEAT_E_INVALID, "the topic has %u partitions; they only grow", now);
        return LEAT_KAFKA_INVALID_PARTITIONS;
    }
    if ((uint32_t)in->count % logs != 0) {
        leat_error_set(error, LEAT_E_INVALID,
                       "its streamlets have %u logs each, so it has a multiple of %u partitions",
                       logs, logs);
        return LEAT_KAFKA_INVALID_PARTITIONS;
    }
    bool chosen =
        in->assignments.count > 0 && (uint32_t)in->assignments.count != (uint32_t)in->count - now;
    for (int32_t i = 0; i < in->assignments.count && !chosen; i++)
        chosen = !is_all_nodes(core, in->assignments.at[i].broker_ids.at,
                               in->assignments.at[i].broker_ids.count) ||
                 (uint32_t)in->assignments.at[i].broker_ids.count != stream->settings.copies;
    if (chosen) {
        (void)refuse_assignment(error);
        return LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT;
    }
    *settings = stream->settings;
    settings->streamlets = (uint32_t)in->count / logs;
    LEAT_ASSERT_CMP(settings->streamlets, >, stream->settings.streamlets);
    leat_err rc = leat_stream_enlarge_allowed(core, stream, settings, error);
    return rc == LEAT_OK ? LEAT_KAFKA_NONE : partitions_error(rc);
}

static void enlarge_one(struct topics *topics,
                        const struct leat_kafka_create_partitions_request_topic *in,
                        bool validate_only, struct leat_kafka_create_partitions_response_topic *out)
{
    struct leat_kafka_request *request = topics->pieces.request;
    const struct leat_stream_desc *stream = leat_kafka_topic_by_name(request->core, in->name);
    struct leat_stream_settings settings;
    struct leat_error error;
    out->name = in->name;
    enum leat_kafka_error code = enlarge_check(request->core, stream, in, &settings, &error);
    if (code == LEAT_KAFKA_NONE && leat_front_stops(request->core))
        code = LEAT_KAFKA_NOT_CONTROLLER;
    if (code != LEAT_KAFKA_NONE) {
        LEAT_KAFKA_REFUSE(request, out, code, error.text);
        return;
    }
    if (validate_only) return;
    if (leat_stream_work_allowed(request->core, leat_peer_sharer(request->conn->peer), stream,
                                 &settings, &error) != LEAT_OK) {
        LEAT_KAFKA_REFUSE(topics->pieces.request, out, throttled(request, 3), error.text);
        return;
    }
    struct enlarge_one *one = leat_kafka_pieces_begin(&topics->pieces, sizeof *one);
    if (one == NULL) {
        LEAT_KAFKA_REFUSE(request, out, LEAT_KAFKA_UNKNOWN_SERVER_ERROR, "no memory");
        return;
    }
    one->topics = topics;
    one->out = out;
    one->changer.core = request->core;
    one->changer.address = leat_front_asks(request->conn->peer);
    one->changer.change = LEAT_CHANGE_STREAMLETS;
    one->changer.settings = settings;
    one->changer.on_done = enlarge_on_done;
    one->changer.owner = one;
    leat_changer_start(&one->changer, stream->name, strlen(stream->name));
}

static enum leat_kafka_piece enlarge_next(struct leat_kafka_pieces *pieces)
{
    struct topics *topics = LEAT_CONTAINER(pieces, struct topics, pieces);
    const struct leat_kafka_create_partitions_request *body = pieces->request->body;
    struct leat_kafka_create_partitions_response *response = pieces->response;
    const int32_t at = topics->next++;
    if (at >= body->topics.count) return LEAT_KAFKA_PIECE_NONE;
    enlarge_one(topics, &body->topics.at[at], body->validate_only, &response->topics.at[at]);
    return LEAT_KAFKA_PIECE_DONE;
}

void leat_kafka_handle_create_partitions(struct leat_kafka_request *request)
{
    const struct leat_kafka_create_partitions_request *body = request->body;
    struct leat_kafka_create_partitions_response *response =
        LEAT_KAFKA_MAKE(request, create_partitions_response, 1);
    struct topics *topics = leat_kafka_pieces_take(request, sizeof *topics, response, enlarge_next);
    if (topics != NULL)
        response->topics.at =
            LEAT_KAFKA_MAKE(request, create_partitions_response_topic, (size_t)body->topics.count);
    if (topics == NULL || response->topics.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->topics.count = body->topics.count;
    leat_kafka_pieces_start(&topics->pieces);
}
