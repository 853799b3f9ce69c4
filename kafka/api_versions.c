/* Which requests are served, in which versions. */
#include "kafka/handlers.h"

static const struct leat_kafka_api apis[] = {
#define IN_PLACE LEAT_KAFKA_IN_PLACE
#define WAITS    LEAT_KAFKA_WAITS
#define API(NAME, number, from, to, flexible_from, entry, flag)                                    \
    {                                                                                              \
        .key = (number),                                                                           \
        .first = (from),                                                                           \
        .last = (to),                                                                              \
        .flexible = (flexible_from),                                                               \
        .name = #entry,                                                                            \
        .request = leat_kafka_type_##entry##_request,                                              \
        .response = leat_kafka_type_##entry##_response,                                            \
        .handle = leat_kafka_handle_##entry,                                                       \
        .flags = (flag),                                                                           \
    },
#include "kafka/apis.def"
#undef API
#undef IN_PLACE
#undef WAITS
};
enum { API_COUNT = sizeof apis / sizeof *apis };

const struct leat_kafka_api *leat_kafka_api_find(int16_t key)
{
    for (uint32_t i = 0; i < API_COUNT; i++)
        if (apis[i].key == key) return &apis[i];
    return NULL;
}

const struct leat_kafka_api *leat_kafka_apis(uint32_t *out_count)
{
    *out_count = API_COUNT;
    return apis;
}

void leat_kafka_handle_api_versions(struct leat_kafka_request *request)
{
    struct leat_kafka_api_versions_response *response =
        LEAT_KAFKA_MAKE(request, api_versions_response, 1);
    struct leat_kafka_api_versions_response_key *keys =
        LEAT_KAFKA_MAKE(request, api_versions_response_key, API_COUNT);
    if (response != NULL && keys != NULL) {
        if (request->version > request->api->last)
            response->error_code = LEAT_KAFKA_UNSUPPORTED_VERSION;
        for (uint32_t i = 0; i < API_COUNT; i++) {
            keys[i].api_key = apis[i].key;
            keys[i].min_version = apis[i].first;
            keys[i].max_version = apis[i].last;
        }
        response->api_keys.at = keys;
        response->api_keys.count = API_COUNT;
    }
    leat_kafka_answer(request, keys != NULL ? response : NULL);
}
