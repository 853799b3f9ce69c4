/* SPDX-License-Identifier: Apache-2.0 */
/* DescribeAcls, CreateAcls, DeleteAcls: nothing here controls access, and tools understand that answer. */
#include "kafka/handlers/handlers.h"

static const char no_authorizer[] =
    "nothing controls access here: there are no ACLs (docs/security.md)";

void leat_kafka_handle_describe_acls(struct leat_kafka_request *request)
{
    struct leat_kafka_describe_acls_response *response =
        LEAT_KAFKA_MAKE(request, describe_acls_response, 1);
    if (response != NULL)
        LEAT_KAFKA_REFUSE(request, response, LEAT_KAFKA_SECURITY_DISABLED, no_authorizer);
    leat_kafka_answer(request, response);
}

/* One refusal for each element of the request. */
void leat_kafka_handle_create_acls(struct leat_kafka_request *request)
{
    const struct leat_kafka_create_acls_request *body = request->body;
    int32_t count = body->creations.count > 0 ? body->creations.count : 0;
    struct leat_kafka_create_acls_response *response =
        LEAT_KAFKA_MAKE(request, create_acls_response, 1);
    struct leat_kafka_create_acls_response_result *results =
        LEAT_KAFKA_MAKE(request, create_acls_response_result, (size_t)count);
    for (int32_t i = 0; i < count && results != NULL; i++)
        LEAT_KAFKA_REFUSE(request, &results[i], LEAT_KAFKA_SECURITY_DISABLED, no_authorizer);
    if (response != NULL) {
        response->results.at = results;
        response->results.count = count;
    }
    leat_kafka_answer(request, results != NULL ? response : NULL);
}

void leat_kafka_handle_delete_acls(struct leat_kafka_request *request)
{
    const struct leat_kafka_delete_acls_request *body = request->body;
    int32_t count = body->filters.count > 0 ? body->filters.count : 0;
    struct leat_kafka_delete_acls_response *response =
        LEAT_KAFKA_MAKE(request, delete_acls_response, 1);
    struct leat_kafka_delete_acls_response_result *results =
        LEAT_KAFKA_MAKE(request, delete_acls_response_result, (size_t)count);
    for (int32_t i = 0; i < count && results != NULL; i++)
        LEAT_KAFKA_REFUSE(request, &results[i], LEAT_KAFKA_SECURITY_DISABLED, no_authorizer);
    if (response != NULL) {
        response->filter_results.at = results;
        response->filter_results.count = count;
    }
    leat_kafka_answer(request, results != NULL ? response : NULL);
}
