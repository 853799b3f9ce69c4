/* SPDX-License-Identifier: Apache-2.0 */
/* Clients ask which requests are served, in which versions. */
#include "kafka/handlers/handlers.h"

void leat_kafka_handle_api_versions(struct leat_kafka_request *request)
{
    const struct leat_kafka_table *table = leat_kafka_core(request->core)->door->table;
    struct leat_kafka_api_versions_response *response =
        LEAT_KAFKA_MAKE(request, api_versions_response, 1);
    struct leat_kafka_api_versions_response_key *keys =
        LEAT_KAFKA_MAKE(request, api_versions_response_key, table->count);
    if (response != NULL && keys != NULL) {
        if (request->version > request->api->last)
            response->error_code = LEAT_KAFKA_UNSUPPORTED_VERSION;
        for (uint32_t i = 0; i < table->count; i++) {
            keys[i].api_key = table->apis[i].key;
            keys[i].min_version = table->apis[i].first;
            keys[i].max_version = table->apis[i].last;
        }
        response->api_keys.at = keys;
        response->api_keys.count = (int32_t)table->count;
    }
    leat_kafka_answer(request, keys != NULL ? response : NULL);
}
