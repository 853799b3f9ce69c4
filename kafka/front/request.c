/* SPDX-License-Identifier: Apache-2.0 */
/* Requests under way, as their handlers see them: what they keep, and their answers. The connection
 * that they came by sends these in order: conn.c. */
#include "kafka/front/request.h"

#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"

struct leat_kafka_string leat_kafka_keep(struct leat_kafka_request *request,
                                         struct leat_kafka_string text)
{
    struct leat_kafka_string kept = {NULL, -1};
    LEAT_ASSERT_OWNER(request->core);
    if (text.text == NULL || text.bytes < 0) return kept;
    char *copy = leat_kafka_take(request, (size_t)text.bytes + 1, 1);
    if (copy == NULL) return kept;
    memcpy(copy, text.text, (size_t)text.bytes);
    return (struct leat_kafka_string){copy, text.bytes};
}

static bool may_come_again(const struct leat_kafka_request *request)
{
    return request->handling && (request->api->flags & LEAT_KAFKA_WAITS) != 0 && !request->silent &&
           request->send == NULL && request->on_freed == NULL && request->arena.bytes_missed > 0;
}

void leat_kafka_answer(struct leat_kafka_request *request, const void *response)
{
    struct leat_kafka_conn *conn = request->conn;
    LEAT_ASSERT_OWNER(request->core);
    LEAT_ASSERT(!request->done);
    LEAT_ASSERT(conn->first != NULL); /* this request, or an earlier one */
    if (response == NULL && may_come_again(request)) {
        request->starved = true;
        return;
    }
    request->done = true;
    request->response = response;
    request->on_abandoned = NULL;
    if (response == NULL && !request->silent && request->send == NULL)
        leat_peer_close(conn->peer, "there is no memory for an answer");
    if (LEAT_BUG(KAFKA_ACK_WITH_NEXT) && request->api != NULL &&
        request->api->key == LEAT_KAFKA_PRODUCE)
        return;
    if (conn->first == request) leat_peer_answer_later(conn->peer);
}

void leat_kafka_give_up(struct leat_kafka_request *request, const char *why)
{
    LEAT_ASSERT_OWNER(request->core);
    leat_peer_close(request->conn->peer, why);
    request->silent = true;
    leat_kafka_answer(request, NULL);
}

size_t leat_kafka_answer_encode(const struct leat_kafka_request *request, const void *response,
                                uint8_t *bytes, size_t capacity, struct leat_kafka_gap *gaps,
                                uint32_t gap_capacity, uint32_t *out_gap_count)
{
    const struct leat_kafka_api *api = request->api;
    struct leat_kafka_writer writer = {
        .bytes = bytes,
        .capacity = capacity,
        .version = request->version,
        .flexible = request->version >= api->flexible,
        .gaps = gaps,
        .gap_capacity = gap_capacity,
    };
    const bool is_api_versions = api->key == LEAT_KAFKA_API_VERSIONS;
    LEAT_ASSERT(is_api_versions ||
                (request->version >= api->first && request->version <= api->last));
    if (is_api_versions && request->version > api->last) {
        writer.version = 0;
        writer.flexible = false;
    }
    leat_kafka_write_i32(&writer, 0); /* the size, below */
    leat_kafka_write_i32(&writer, request->correlation);
    /* A client that asks for versions does not know yet what the server reads: the header of this answer is always
     * the old header. */
    if (writer.flexible && !is_api_versions) leat_kafka_write_no_tags(&writer);
    leat_kafka_encode(&writer, api->response(), response);
    if (out_gap_count != NULL) *out_gap_count = writer.gap_count;
    LEAT_ASSERT_CMP(writer.used, >, LEAT_KAFKA_FRAME_HEAD_BYTES);
    if (writer.used <= capacity)
        leat_put_be32(bytes,
                      (uint32_t)(writer.used + writer.gap_bytes - LEAT_KAFKA_FRAME_HEAD_BYTES));
    return writer.used;
}
