/* SPDX-License-Identifier: Apache-2.0 */
/* Produce: batches go onto logs as they came, by the same calls as native appends (broker/front_logs.h).
 *
 * acks 1 and all both wait for all copies; acks 0 is appended the same way and not answered. A frame
 * whose log has no room is held: it comes again, and goes on with the partition at hand. */
#include <string.h>

#include "base/assert.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"

struct produce {
    struct leat_kafka_request *request;
    struct leat_kafka_produce_response *response;
    int32_t topic, partition; /* at hand */
    uint32_t waiting; /* partitions not answered by their logs, and 1 while some are begun */
    bool failed;      /* some were refused */
};
/* One partition under way. */
struct produce_part {
    struct produce *produce;
    struct leat_kafka_produce_response_partition *out;
    bool ended;
};

/* ---- the answer of a partition ---- */

static enum leat_kafka_error produce_error_of(leat_err code)
{
    switch (code) {
    case LEAT_E_INVALID:
        return LEAT_KAFKA_INVALID_RECORD;
    case LEAT_E_ALREADY_APPENDED:
        return LEAT_KAFKA_DUPLICATE_SEQUENCE_NUMBER; /* clients take that for a success */
    case LEAT_E_STARTING:
        /* No batch was appended: ask again for the leader */
        return LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER;
    default:
        return leat_kafka_error_of(code);
    }
}

static void part_refuse(struct produce *produce, struct leat_kafka_produce_response_partition *out,
                        enum leat_kafka_error code, const char *text)
{
    out->error_code = (int16_t)code;
    out->error_message = leat_kafka_keep(produce->request, leat_kafka_text(text));
    produce->failed = true;
}

static void produce_answer(struct produce *produce)
{
    struct leat_kafka_request *request = produce->request;
    const struct leat_kafka_produce_request *body = request->body;
    if (body->acks == 0) {
        request->silent = true;
        /* The only way to tell a client that wants no answers: it connects again and finds the leader. */
        if (produce->failed)
            leat_peer_close(request->conn->peer, "a batch sent with acks 0 was refused");
    }
    leat_kafka_answer(request, produce->response);
}

static void produce_one_less(struct produce *produce)
{
    LEAT_ASSERT_CMP(produce->waiting, >, 0);
    if (--produce->waiting == 0) produce_answer(produce);
}

static void part_on_done(struct leat_append_request *append)
{
    struct produce_part *part = leat_append_owner(append);
    const struct leat_append_outcome outcome = leat_append_outcome(append);
    struct produce *produce = part->produce;
    LEAT_ASSERT_OWNER(produce->request->core);
    LEAT_ASSERT(!part->ended);
    if (outcome.rc == LEAT_OK) {
        part->out->base_offset = (int64_t)outcome.first_offset;
        part->out->log_append_time_ms = outcome.append_time_ms;
    } else
        part_refuse(produce, part->out, produce_error_of(outcome.rc),
                    outcome.text != NULL ? outcome.text : leat_err_text(outcome.rc));
    part->ended = true;
    leat_append_end(append);
    produce_one_less(produce);
}

/* ---- one partition ---- */

static void part_not_here(struct produce *produce, enum leat_kafka_error code,
                          const struct leat_stream_desc *stream, struct leat_log_ref ref,
                          struct leat_kafka_produce_response_partition *out)
{
    part_refuse(produce, out, code, NULL);
    if (code != LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER || stream == NULL) return;
    leat_kafka_leader_of(produce->request->core, stream, ref.streamlet,
                         &out->current_leader.leader_id, &out->current_leader.leader_epoch);
}

/* false: the frame has to come again. */
static bool part_begin(struct produce *produce, struct leat_kafka_string name,
                       const struct leat_kafka_produce_request_partition *in,
                       struct leat_kafka_produce_response_partition *out)
{
    struct leat_kafka_request *request = produce->request;
    struct leat_peer *peer = request->conn->peer;
    struct leat_append_request *append = leat_append_held(peer);
    const struct leat_kafka_records *records = &in->records;
    LEAT_ASSERT_OWNER(request->core);
    LEAT_ASSERT(records->at == NULL || records->at >= request->frame_first);
    /* The batch may lie elsewhere than when it was decoded. */
    const uint8_t *bytes =
        records->at != NULL ? request->frame + (records->at - request->frame_first) : NULL;
    if (append == NULL) {
        const struct leat_stream_desc *stream = leat_kafka_topic_by_name(request->core, name);
        struct leat_log_ref ref;
        uint32_t home;
        enum leat_kafka_error code =
            leat_kafka_partition_find(request->core, stream, in->index, -1, &ref, &home);
        if (code != LEAT_KAFKA_NONE) {
            part_not_here(produce, code, stream, ref, out);
            return true;
        }
        if (bytes == NULL ||
            leat_batch_bytes(bytes, (size_t)records->count) != (uint64_t)records->count) {
            part_refuse(produce, out, LEAT_KAFKA_INVALID_RECORD,
                        "a partition's records have to be exactly one record batch (magic 2)");
            return true;
        }
        struct produce_part *part = leat_kafka_take(request, 1, sizeof *part);
        if (part == NULL) {
            part_refuse(produce, out, LEAT_KAFKA_KAFKA_STORAGE_ERROR, NULL);
            return true;
        }
        *part = (struct produce_part){.produce = produce, .out = out};
        /* SUBTLE: counted before: a node that does not know whether it is still up refuses at once,
         * and then the answer would go with the first partition. */
        produce->waiting++;
        append =
            leat_append_begin(peer, request->conn->first == request, ref,
                              stream->streamlets[ref.streamlet].epoch.v, 1, part_on_done, part);
        if (append == NULL) {
            produce->waiting--;
            return false;
        }
        if (part->ended) return true;
    }
    LEAT_ASSERT(((const struct produce_part *)leat_append_owner(append))->produce == produce);
    return leat_append_take(append, bytes, (uint32_t)records->count) != LEAT_HELD;
}

/* ---- a request ---- */

bool leat_kafka_produce_home(const struct leat_kafka_request *request, uint32_t *out_home)
{
    const struct leat_kafka_produce_request *body = request->body;
    struct leat_log_ref log;
    if (body->topics.count <= 0 || body->topics.at[0].partitions.count <= 0) return false;
    const struct leat_stream_desc *stream =
        leat_kafka_topic_by_name(request->core, body->topics.at[0].name);
    return leat_kafka_partition_find(request->core, stream,
                                     body->topics.at[0].partitions.at[0].index, -1, &log,
                                     out_home) == LEAT_KAFKA_NONE;
}

static struct produce *produce_create(struct leat_kafka_request *request)
{
    const struct leat_kafka_produce_request *body = request->body;
    struct produce *produce = leat_kafka_take(request, 1, sizeof *produce);
    if (produce == NULL) return NULL;
    produce->request = request;
    produce->waiting = 1;
    struct leat_kafka_produce_response *response = LEAT_KAFKA_MAKE(request, produce_response, 1);
    if (response == NULL) return NULL;
    produce->response = response;
    response->topics.at =
        LEAT_KAFKA_MAKE(request, produce_response_topic, (size_t)body->topics.count);
    if (response->topics.at == NULL) return NULL;
    response->topics.count = body->topics.count;
    for (int32_t t = 0; t < body->topics.count; t++) {
        const struct leat_kafka_produce_request_topic *in = &body->topics.at[t];
        struct leat_kafka_produce_response_topic *out = &response->topics.at[t];
        /* The frame is gone when the answer is written. */
        out->name = leat_kafka_keep(request, in->name);
        out->partitions.at =
            LEAT_KAFKA_MAKE(request, produce_response_partition, (size_t)in->partitions.count);
        if (out->partitions.at == NULL || out->name.text == NULL) return NULL;
        out->partitions.count = in->partitions.count;
        for (int32_t p = 0; p < in->partitions.count; p++)
            out->partitions.at[p].index = in->partitions.at[p].index;
    }
    return produce;
}

static void produce_refuse(struct produce *produce, enum leat_kafka_error code, const char *text)
{
    struct leat_kafka_produce_response *response = produce->response;
    for (int32_t t = 0; t < response->topics.count; t++)
        for (int32_t p = 0; p < response->topics.at[t].partitions.count; p++)
            part_refuse(produce, &response->topics.at[t].partitions.at[p], code, text);
    produce_one_less(produce);
}

/* false: answered already. */
static bool produce_allowed(struct produce *produce)
{
    const struct leat_kafka_request *request = produce->request;
    const struct leat_kafka_produce_request *body = request->body;
    if (request->version < 3)
        /* Versions 0 to 2 carry records of formats 0 and 1. They are advertised all the same: librdkafka up to 2.11.0
         * would not compress otherwise. */
        produce_refuse(produce, LEAT_KAFKA_UNSUPPORTED_VERSION, NULL);
    else if (body->acks < -1 || body->acks > 1)
        produce_refuse(produce, LEAT_KAFKA_INVALID_REQUIRED_ACKS, "acks is 0, 1 or all (-1)");
    else if (body->transactional_id.text != NULL)
        produce_refuse(produce, LEAT_KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                       "transactions are not served");
    else
        return true;
    return false;
}

/* The connection is gone while the frame was held: its rest is never looked at. */
static void produce_on_abandoned(struct leat_kafka_request *request)
{
    LEAT_ASSERT(request->hold);
    produce_one_less(request->state);
}

void leat_kafka_handle_produce(struct leat_kafka_request *request)
{
    const struct leat_kafka_produce_request *body = request->body;
    struct produce *produce = request->state;
    request->on_abandoned = NULL;
    if (produce == NULL) {
        produce = produce_create(request);
        if (produce == NULL) {
            leat_kafka_answer(request, NULL);
            return;
        }
        if (!produce_allowed(produce)) return;
        request->state = produce;
    }
    for (; produce->topic < body->topics.count; produce->topic++, produce->partition = 0) {
        const struct leat_kafka_produce_request_topic *in = &body->topics.at[produce->topic];
        struct leat_kafka_produce_response_topic *out =
            &produce->response->topics.at[produce->topic];
        LEAT_ASSERT(out->partitions.count == in->partitions.count);
        for (; produce->partition < in->partitions.count; produce->partition++) {
            if (!part_begin(produce, out->name, &in->partitions.at[produce->partition],
                            &out->partitions.at[produce->partition])) {
                request->hold = true;
                request->on_abandoned = produce_on_abandoned;
                return;
            }
        }
    }
    produce_one_less(produce);
}
