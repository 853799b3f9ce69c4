/* SPDX-License-Identifier: Apache-2.0 */
/* InitProducerId: ids of idempotent producers, out of the blocks that native ones get theirs from. */
#include "broker/front_logs.h"
#include "kafka/handlers/handlers.h"

struct init_producer {
    struct leat_kafka_request *request;
    struct leat_kafka_init_producer_id_response *response;
    struct leat_producer_wait wait;
};

static void init_on_id(struct leat_producer_wait *wait)
{
    struct init_producer *init = wait->owner;
    if (wait->rc == LEAT_OK)
        init->response->producer_id = wait->id;
    else
        init->response->error_code = LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE;
    leat_kafka_answer(init->request, init->response);
}

void leat_kafka_handle_init_producer_id(struct leat_kafka_request *request)
{
    const struct leat_kafka_init_producer_id_request *body = request->body;
    struct init_producer *init = leat_kafka_take(request, 1, sizeof *init);
    if (init != NULL) init->response = LEAT_KAFKA_MAKE(request, init_producer_id_response, 1);
    if (init == NULL || init->response == NULL) {
        leat_kafka_answer(request, NULL);
        return;
    }
    struct leat_kafka_init_producer_id_response *response = init->response;
    if (body->transactional_id.text != NULL || leat_front_stops(request->core)) {
        response->error_code = leat_front_stops(request->core)
                                   ? LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE
                                   : LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
        leat_kafka_answer(request, response);
        return;
    }
    /* Always a new id, whatever id and epoch the request names: these count for transactions only, and some clients
     * name 0 and 0 when they have none (@platformatic/kafka). If they were given the next epoch of producer 0, two
     * such clients would be one producer, and the second client's batches would be taken for duplicates. */
    init->request = request;
    init->wait.on_done = init_on_id;
    init->wait.owner = init;
    leat_producer_id(request->core, &init->wait);
}
