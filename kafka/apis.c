/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are served, in which versions, and by which handler. */
#include "kafka/apis.h"

#include "kafka/handlers/handlers.h"

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
#include "kafka/codec/apis.def"
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

static bool home_of(const struct leat_kafka_request *request, uint32_t *out_home)
{
    switch (request->api->key) {
    case LEAT_KAFKA_PRODUCE:
        return leat_kafka_produce_home(request, out_home);
    case LEAT_KAFKA_FETCH:
        return leat_kafka_fetch_home(request, out_home);
    default:
        return false;
    }
}

const struct leat_kafka_table *leat_kafka_table(void)
{
    static const struct leat_kafka_table table = {apis, API_COUNT, leat_kafka_api_find, home_of};
    return &table;
}
