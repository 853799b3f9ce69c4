/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeConfigs, AlterConfigs, IncrementalAlterConfigs. */
#include <string.h>

#include "base/assert.h"
#include "kafka/front/pieces.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/config.h"
#include "kafka/handlers/handlers.h"

enum resource_type { RESOURCE_TOPIC = 2, RESOURCE_BROKER = 4 };
enum config_source { SOURCE_TOPIC = 1, SOURCE_BROKER = 4, SOURCE_DEFAULT = 5 };
enum config_operation { OPERATION_SET = 0, OPERATION_DELETE = 1 };

/* ---- describing ---- */

static bool is_asked_for(const struct leat_kafka_describe_configs_request_resource *resource,
                         const char *name)
{
    if (resource->configuration_keys.count < 0) return true;
    for (int32_t i = 0; i < resource->configuration_keys.count; i++) {
        const struct leat_kafka_string *key = &resource->configuration_keys.at[i];
        if (key->bytes == (int32_t)strlen(name) && memcmp(key->text, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

static void describe_row(struct leat_kafka_request *request,
                         const struct leat_kafka_config_row *row, enum config_source given,
                         struct leat_kafka_describe_configs_response_config *out)
{
    const struct leat_kafka_describe_configs_request *body = request->body;
    out->name = leat_kafka_text(row->name);
    out->value = leat_kafka_keep(request, leat_kafka_text(row->value));
    out->read_only = row->read_only;
    out->is_default = row->is_default;
    out->config_source = (int8_t)(row->is_default ? SOURCE_DEFAULT : given);
    out->config_type = (int8_t)row->type;
    if (body->include_documentation) out->documentation = leat_kafka_text(row->documentation);
    if (!body->include_synonyms) return;
    out->synonyms.at = LEAT_KAFKA_MAKE(request, describe_configs_response_synonym, 1);
    if (out->synonyms.at == NULL) return;
    out->synonyms.count = 1;
    out->synonyms.at[0] = (struct leat_kafka_describe_configs_response_synonym){
        out->name, out->value, out->config_source};
}

static void describe_one(struct leat_kafka_request *request,
                         const struct leat_kafka_describe_configs_request_resource *resource,
                         struct leat_kafka_describe_configs_response_result *out)
{
    struct leat_core *core = request->core;
    const bool is_topic = resource->resource_type == RESOURCE_TOPIC;
    const struct leat_stream_desc *stream = NULL;
    struct leat_kafka_config_row row;
    out->resource_type = resource->resource_type;
    out->resource_name = resource->resource_name;
    if (resource->configuration_keys.count > LEAT_KAFKA_CONFIGS_NAMED_MAX) {
        out->error_code = LEAT_KAFKA_INVALID_REQUEST;
        out->error_message = leat_kafka_text(LEAT_KAFKA_CONFIGS_TOO_MANY);
        return;
    }
    if (is_topic) {
        stream = leat_kafka_topic_by_name(core, resource->resource_name);
        if (stream == NULL) {
            out->error_code = LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
            return;
        }
    } else if (resource->resource_type != RESOURCE_BROKER) {
        out->error_code = LEAT_KAFKA_INVALID_REQUEST;
        out->error_message =
            leat_kafka_text("only topics (2) and brokers (4) have configurations here");
        return;
    }
    uint32_t count = 0;
    while (is_topic ? leat_kafka_config_get(&stream->settings, count, &row)
                    : leat_kafka_config_get_node(core, count, &row))
        count++;
    out->configs.at = LEAT_KAFKA_MAKE(request, describe_configs_response_config, count);
    if (out->configs.at == NULL) {
        out->error_code = LEAT_KAFKA_UNKNOWN_SERVER_ERROR;
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (is_topic)
            (void)leat_kafka_config_get(&stream->settings, i, &row);
        else
            (void)leat_kafka_config_get_node(core, i, &row);
        LEAT_ASSERT_CMP((uint32_t)out->configs.count, <, count);
        if (is_asked_for(resource, row.name))
            describe_row(request, &row, is_topic ? SOURCE_TOPIC : SOURCE_BROKER,
                         &out->configs.at[out->configs.count++]);
    }
}

struct describe {
    struct leat_kafka_pieces pieces;
    int32_t next;
};

static enum leat_kafka_piece describe_next(struct leat_kafka_pieces *pieces)
{
    struct describe *describe = LEAT_CONTAINER(pieces, struct describe, pieces);
    const struct leat_kafka_describe_configs_request *body = pieces->request->body;
    const int32_t at = describe->next++;
    if (at >= body->resources.count) return LEAT_KAFKA_PIECE_NONE;
    const struct leat_kafka_describe_configs_response *response = pieces->response;
    LEAT_ASSERT(at < response->results.count);
    describe_one(pieces->request, &body->resources.at[at], &response->results.at[at]);
    return LEAT_KAFKA_PIECE_DONE;
}

void leat_kafka_handle_describe_configs(struct leat_kafka_request *request)
{
    const struct leat_kafka_describe_configs_request *body = request->body;
    struct leat_kafka_describe_configs_response *response =
        LEAT_KAFKA_MAKE(request, describe_configs_response, 1);
    struct describe *describe =
        leat_kafka_pieces_take(request, sizeof *describe, response, describe_next);
    if (describe != NULL)
        response->results.at = LEAT_KAFKA_MAKE(request, describe_configs_response_result,
                                               (size_t)body->resources.count);
    if (describe == NULL || response->results.at == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    response->results.count = body->resources.count;
    leat_kafka_pieces_start(&describe->pieces);
}

/* ---- altering ---- */

struct alter {
    struct leat_kafka_pieces pieces;
    struct leat_kafka_alter_configs_response_result *results;
    int32_t next;
};
struct alter_one {
    struct alter *alter;
    struct leat_kafka_alter_configs_response_result *out;
    struct leat_changer changer;
};

static void alter_on_changed(struct leat_changer *changer)
{
    struct alter_one *one = changer->owner;
    LEAT_ASSERT_OWNER(one->alter->pieces.request->core);
    if (changer->rc != LEAT_OK)
        LEAT_KAFKA_REFUSE(one->alter->pieces.request, one->out,
                          changer->rc == LEAT_E_INVALID ? LEAT_KAFKA_INVALID_CONFIG
                                                        : leat_kafka_error_of(changer->rc),
                          changer->error.text);
    leat_kafka_pieces_end(&one->alter->pieces, one);
}

/* The resource's stream, or NULL: refused. */
static const struct leat_stream_desc *
alter_topic(struct alter *alter, int8_t type, struct leat_kafka_string name,
            struct leat_kafka_alter_configs_response_result *out)
{
    out->resource_type = type;
    out->resource_name = name;
    if (type != RESOURCE_TOPIC) {
        LEAT_KAFKA_REFUSE(
            alter->pieces.request, out, LEAT_KAFKA_INVALID_REQUEST,
            "only the configurations of topics (2) can be changed; a server's are its "
            "flags");
        return NULL;
    }
    const struct leat_stream_desc *stream =
        leat_kafka_topic_by_name(alter->pieces.request->core, name);
    if (stream == NULL)
        LEAT_KAFKA_REFUSE(alter->pieces.request, out, LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION,
                          "there is no such topic");
    return stream;
}

static void alter_commit(struct alter *alter, const struct leat_stream_desc *stream,
                         const struct leat_stream_settings *settings, uint32_t change,
                         struct leat_kafka_alter_configs_response_result *out)
{
    struct leat_kafka_request *request = alter->pieces.request;
    struct leat_error error;
    LEAT_ASSERT_CMP(change, !=, 0);
    if (leat_stream_work_allowed(request->core, leat_peer_sharer(request->conn->peer), stream,
                                 settings, &error) != LEAT_OK) {
        LEAT_KAFKA_REFUSE(request, out, leat_kafka_error_of(LEAT_E_AGAIN), error.text);
        return;
    }
    struct alter_one *one = leat_kafka_pieces_begin(&alter->pieces, sizeof *one);
    if (one == NULL) {
        LEAT_KAFKA_REFUSE(request, out, LEAT_KAFKA_UNKNOWN_SERVER_ERROR, "no memory");
        return;
    }
    one->alter = alter;
    one->out = out;
    one->changer.core = request->core;
    one->changer.address = leat_front_asks(request->conn->peer);
    one->changer.change = change;
    one->changer.settings = *settings;
    one->changer.on_done = alter_on_changed;
    one->changer.owner = one;
    leat_changer_start(&one->changer, stream->name, strlen(stream->name));
}

static void alter_start(struct leat_kafka_request *request, void *response,
                        struct leat_kafka_alter_configs_response_result *results,
                        enum leat_kafka_piece (*next)(struct leat_kafka_pieces *pieces))
{
    struct alter *alter = leat_kafka_pieces_take(request, sizeof *alter, response, next);
    if (alter == NULL || results == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    alter->results = results;
    leat_kafka_pieces_start(&alter->pieces);
}

/* ---- the two ways to say what is to change: resource `at` of a request ---- */

struct alter_way {
    int8_t type;
    struct leat_kafka_string name;
    int32_t count; /* of its configurations */
    bool validate_only;
    /** From the current settings to the requested settings. */
    leat_err (*apply)(const void *resource, struct leat_stream_settings *settings, uint32_t *change,
                      struct leat_error *error);
};

static void alter_resource(struct alter *alter, const void *resource, const struct alter_way *way,
                           struct leat_kafka_alter_configs_response_result *out)
{
    const struct leat_stream_desc *stream = alter_topic(alter, way->type, way->name, out);
    if (stream == NULL) return;
    if (way->count > LEAT_KAFKA_CONFIGS_NAMED_MAX) {
        LEAT_KAFKA_REFUSE(alter->pieces.request, out, LEAT_KAFKA_INVALID_REQUEST,
                          LEAT_KAFKA_CONFIGS_TOO_MANY);
        return;
    }
    struct leat_stream_settings settings = stream->settings;
    struct leat_error error;
    uint32_t change = 0;
    if (way->apply(resource, &settings, &change, &error) != LEAT_OK)
        LEAT_KAFKA_REFUSE(alter->pieces.request, out, LEAT_KAFKA_INVALID_CONFIG, error.text);
    else if (!way->validate_only && change != 0)
        alter_commit(alter, stream, &settings, change, out);
}

/* The named configurations are set; all others that can be changed go back to their defaults. */
static leat_err apply_all(const void *given, struct leat_stream_settings *settings,
                          uint32_t *change, struct leat_error *error)
{
    const struct leat_kafka_alter_configs_request_resource *resource = given;
    struct leat_kafka_config_row row;
    leat_err rc = LEAT_OK;
    for (uint32_t i = 0; rc == LEAT_OK && leat_kafka_config_get(settings, i, &row); i++)
        if (!row.read_only)
            rc = leat_kafka_config_set(settings, change, leat_kafka_text(row.name),
                                       (struct leat_kafka_string){NULL, -1}, false, error);
    for (int32_t i = 0; rc == LEAT_OK && i < resource->configs.count; i++)
        rc = leat_kafka_config_set(settings, change, resource->configs.at[i].name,
                                   resource->configs.at[i].value, false, error);
    return rc;
}

static leat_err alter_step(struct leat_stream_settings *settings, uint32_t *change,
                           const struct leat_kafka_incremental_alter_configs_request_config *config,
                           struct leat_error *error)
{
    struct leat_kafka_string value = config->value;
    if (config->config_operation == OPERATION_DELETE)
        value = (struct leat_kafka_string){NULL, -1};
    else if (config->config_operation != OPERATION_SET)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "%.*s: values are set or deleted; no list of a topic can be appended "
                              "to",
                              config->name.bytes > 100 ? 100 : (int)config->name.bytes,
                              config->name.text);
    else if (value.text == NULL)
        return leat_error_set(error, LEAT_E_CONFIG, "%.*s can't be set to null",
                              config->name.bytes > 100 ? 100 : (int)config->name.bytes,
                              config->name.text);
    return leat_kafka_config_set(settings, change, config->name, value, false, error);
}

static leat_err apply_some(const void *given, struct leat_stream_settings *settings,
                           uint32_t *change, struct leat_error *error)
{
    const struct leat_kafka_incremental_alter_configs_request_resource *resource = given;
    leat_err rc = LEAT_OK;
    for (int32_t i = 0; rc == LEAT_OK && i < resource->configs.count; i++)
        rc = alter_step(settings, change, &resource->configs.at[i], error);
    return rc;
}

/* The two requests differ in the form of their resources only. */
#define ALTER_HANDLER(api, apply_it)                                                               \
    static enum leat_kafka_piece api##_next(struct leat_kafka_pieces *pieces)                      \
    {                                                                                              \
        struct alter *alter = LEAT_CONTAINER(pieces, struct alter, pieces);                        \
        const struct leat_kafka_##api##_request *body = pieces->request->body;                     \
        const int32_t at = alter->next++;                                                          \
        if (at >= body->resources.count) return LEAT_KAFKA_PIECE_NONE;                             \
        struct alter_way way = {                                                                   \
            body->resources.at[at].resource_type, body->resources.at[at].resource_name,            \
            body->resources.at[at].configs.count, body->validate_only, apply_it};                  \
        alter_resource(alter, &body->resources.at[at], &way, &alter->results[at]);                 \
        return LEAT_KAFKA_PIECE_DONE;                                                              \
    }                                                                                              \
    void leat_kafka_handle_##api(struct leat_kafka_request *request)                               \
    {                                                                                              \
        const struct leat_kafka_##api##_request *body = request->body;                             \
        struct leat_kafka_##api##_response *response =                                             \
            LEAT_KAFKA_MAKE(request, api##_response, 1);                                           \
        struct leat_kafka_alter_configs_response_result *results = LEAT_KAFKA_MAKE(                \
            request, alter_configs_response_result, (size_t)body->resources.count);                \
        if (response != NULL) {                                                                    \
            response->results.at = results;                                                        \
            response->results.count = body->resources.count;                                       \
        }                                                                                          \
        alter_start(request, response, results, api##_next);                                       \
    }
ALTER_HANDLER(alter_configs, apply_all)
ALTER_HANDLER(incremental_alter_configs, apply_some)
