/* SPDX-License-Identifier: Apache-2.0 */
/* Fetch: the same reads as native fetches (broker/front_logs.h), gathered from where the batches lie.
 *
 * A fetch begins when all earlier requests of its connection are answered: an earlier begin would only hold batches
 * in memory. There are no fetch sessions: session id 0 declines them. */
#include <string.h>

#include "base/assert.h"
#include "base/bug.h"
#include "base/mem.h"
#include "kafka/handlers/cluster.h"
#include "kafka/handlers/handlers.h"

enum { FETCH_PARTITIONS_MAX = 16384 };

struct fetch_part {
    const struct leat_kafka_fetch_request_partition *asked;
    struct leat_kafka_fetch_response_partition *out;
    const struct leat_stream_desc *stream; /* of this turn only */
    struct leat_log_ref log;
    struct leat_fetch_item *item; /* NULL: refused */
    uint32_t id;                  /* of the stream */
};
struct fetch {
    struct leat_kafka_request *request;
    struct leat_kafka_fetch_response *response;
    struct leat_fetch *fetch; /* NULL: not begun, or gone with its connection */
    struct fetch_part *parts;
    uint32_t part_count;
    bool some_refused;
};

static void fetch_on_ready(struct leat_fetch *done);
static void fetch_answer(struct fetch *fetch);

/* ---- the request ---- */

static struct fetch *fetch_create(struct leat_kafka_request *request)
{
    const struct leat_kafka_fetch_request *body = request->body;
    struct fetch *fetch = leat_kafka_take(request, 1, sizeof *fetch);
    if (fetch == NULL) return NULL;
    fetch->request = request;
    fetch->response = LEAT_KAFKA_MAKE(request, fetch_response, 1);
    if (fetch->response == NULL) return NULL;
    uint32_t count = 0;
    for (int32_t t = 0; t < body->topics.count; t++)
        count += (uint32_t)body->topics.at[t].partitions.count;
    fetch->response->topics.at =
        LEAT_KAFKA_MAKE(request, fetch_response_topic, (size_t)body->topics.count);
    fetch->parts = leat_kafka_take(request, count, sizeof *fetch->parts);
    if (fetch->response->topics.at == NULL || fetch->parts == NULL) return NULL;
    fetch->response->topics.count = body->topics.count;
    for (int32_t t = 0; t < body->topics.count; t++) {
        const struct leat_kafka_fetch_request_topic *in = &body->topics.at[t];
        struct leat_kafka_fetch_response_topic *out = &fetch->response->topics.at[t];
        out->topic = in->topic;
        out->topic_id = in->topic_id;
        out->partitions.at =
            LEAT_KAFKA_MAKE(request, fetch_response_partition, (size_t)in->partitions.count);
        if (out->partitions.at == NULL) return NULL;
        out->partitions.count = in->partitions.count;
        for (int32_t p = 0; p < in->partitions.count; p++) {
            out->partitions.at[p].partition = in->partitions.at[p].partition;
            out->partitions.at[p].records.at = (const uint8_t *)"";
            fetch->parts[fetch->part_count++] =
                (struct fetch_part){.asked = &in->partitions.at[p], .out = &out->partitions.at[p]};
        }
    }
    LEAT_ASSERT_CMP(fetch->part_count, ==, count);
    return fetch;
}

static void part_refuse(struct fetch *fetch, struct fetch_part *part, enum leat_kafka_error code)
{
    part->out->error_code = (int16_t)code;
    fetch->some_refused = true;
    if ((code != LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER && code != LEAT_KAFKA_FENCED_LEADER_EPOCH) ||
        part->stream == NULL)
        return;
    leat_kafka_leader_of(fetch->request->core, part->stream, part->log.streamlet,
                         &part->out->current_leader.leader_id,
                         &part->out->current_leader.leader_epoch);
}

static const struct leat_stream_desc *topic_of(const struct leat_kafka_request *request,
                                               const struct leat_kafka_fetch_request_topic *topic)
{
    return request->version >= 13 ? leat_kafka_topic_by_id(request->core, &topic->topic_id)
                                  : leat_kafka_topic_by_name(request->core, topic->topic);
}

bool leat_kafka_fetch_home(const struct leat_kafka_request *request, uint32_t *out_home)
{
    const struct leat_kafka_fetch_request *body = request->body;
    struct leat_log_ref log;
    if (body->topics.count <= 0 || body->topics.at[0].partitions.count <= 0) return false;
    return leat_kafka_partition_find(request->core, topic_of(request, &body->topics.at[0]),
                                     body->topics.at[0].partitions.at[0].partition, -1, &log,
                                     out_home) == LEAT_KAFKA_NONE;
}

/* Which of them can be read here. Returns how many. */
static uint32_t parts_route(struct fetch *fetch)
{
    struct leat_kafka_request *request = fetch->request;
    const struct leat_kafka_fetch_request *body = request->body;
    uint32_t good = 0, at = 0;
    LEAT_ASSERT_OWNER(request->core);
    fetch->some_refused = false;
    for (int32_t t = 0; t < body->topics.count; t++) {
        const struct leat_kafka_fetch_request_topic *topic = &body->topics.at[t];
        const struct leat_stream_desc *stream = topic_of(request, topic);
        for (int32_t p = 0; p < topic->partitions.count; p++, at++) {
            struct fetch_part *part = &fetch->parts[at];
            uint32_t home;
            part->stream = stream;
            /* The partition may have been looked at before */
            part->out->error_code = LEAT_KAFKA_NONE;
            enum leat_kafka_error code =
                leat_kafka_partition_find(request->core, stream, part->asked->partition,
                                          part->asked->current_leader_epoch, &part->log, &home);
            if (stream == NULL && request->version >= 13) code = LEAT_KAFKA_UNKNOWN_TOPIC_ID;
            if (code == LEAT_KAFKA_NONE && part->asked->fetch_offset < 0)
                code = LEAT_KAFKA_OFFSET_OUT_OF_RANGE;
            if (code != LEAT_KAFKA_NONE)
                part_refuse(fetch, part, code);
            else
                good++;
        }
    }
    LEAT_ASSERT_CMP(at, ==, fetch->part_count);
    return good;
}

static uint32_t not_negative(int32_t value)
{
    return value > 0 ? (uint32_t)value : 0;
}

/* false: no structs; the peer is paused, and called at its turn. */
static bool fetch_begin(struct fetch *fetch)
{
    struct leat_kafka_request *request = fetch->request;
    const struct leat_kafka_fetch_request *body = request->body;
    LEAT_ASSERT(fetch->fetch == NULL && request->conn->first == request);
    uint32_t good = parts_route(fetch);
    if (good == 0) {
        fetch_answer(fetch);
        return true;
    }
    /* A client that is refused a partition is answered at once. */
    uint32_t wait_ms = fetch->some_refused ? 0 : not_negative(body->max_wait_ms);
    if (LEAT_BUG(KAFKA_FETCH_STAYS)) wait_ms *= 100;
    int32_t least = LEAT_BUG(KAFKA_FETCH_FILLS) ? body->max_bytes : body->min_bytes;
    fetch->fetch = leat_fetch_begin(request->conn->peer, true, good, not_negative(least),
                                    not_negative(body->max_bytes), wait_ms, fetch_on_ready, fetch);
    if (fetch->fetch == NULL) return false;
    for (uint32_t i = 0; i < fetch->part_count; i++) {
        struct fetch_part *part = &fetch->parts[i];
        if (part->out->error_code != LEAT_KAFKA_NONE) continue;
        struct leat_msg_fetch_log want = {
            .log = part->log,
            .epoch = part->stream->streamlets[part->log.streamlet].epoch.v,
            .offset = (uint64_t)part->asked->fetch_offset,
        };
        uint32_t bytes = not_negative(part->asked->partition_max_bytes);
        part->item = leat_fetch_add(fetch->fetch, &want, bytes > 0 ? bytes : 1);
        LEAT_ASSERT_CMP(good, >, 0);
        good--;
    }
    LEAT_ASSERT_CMP(good, ==, 0); /* as many as were said at its beginning */
    leat_fetch_start(fetch->fetch);
    return true;
}

/* ---- the batches that were read ---- */

static enum leat_kafka_error read_error_of(leat_err code, int16_t version)
{
    switch (code) {
    case LEAT_E_STARTING:
    case LEAT_E_AGAIN:
        return LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER; /* not now: ask again for the leader */
    case LEAT_E_UNKNOWN_STREAM:
        return version >= 13 ? LEAT_KAFKA_UNKNOWN_TOPIC_ID : LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    default:
        return leat_kafka_error_of(code);
    }
}

static void part_fill(struct fetch *fetch, struct fetch_part *part)
{
    const struct leat_msg_fetched *result = leat_fetch_result(part->item);
    part->out->records.gathered = NULL;
    part->out->records.count = 0;
    if (result->code != LEAT_OK) {
        part_refuse(fetch, part, read_error_of(result->code, fetch->request->version));
        if (result->code != LEAT_E_OFFSET_OUT_OF_RANGE) return;
    }
    part->out->high_watermark = part->out->last_stable_offset = (int64_t)result->acked_offset;
    part->out->log_start_offset = (int64_t)result->first_offset;
    if (result->bytes == 0) return;
    LEAT_ASSERT_CMP(result->bytes, <=, INT32_MAX);
    part->out->records.gathered = part->item;
    part->out->records.count = (int32_t)result->bytes;
}

static void parts_fill(struct fetch *fetch)
{
    for (uint32_t i = 0; i < fetch->part_count; i++) {
        struct fetch_part *part = &fetch->parts[i];
        part->stream = NULL; /* of an earlier turn */
        if (part->item != NULL) part_fill(fetch, part);
    }
}

static void fetch_on_ready(struct leat_fetch *done)
{
    struct fetch *fetch = leat_fetch_owner(done);
    LEAT_ASSERT_OWNER(fetch->request->core);
    LEAT_ASSERT(fetch->fetch == done);
    parts_fill(fetch);
    if (leat_fetch_bytes(done) == 0) { /* the answer may have to wait, but no bytes wait with it */
        fetch->fetch = NULL;
        leat_fetch_end(done);
    }
    if (!fetch->request->done) fetch_answer(fetch);
}

/* ---- the answer ---- */

/* Bytes that are not batches are sent as a copy, the batches from where they lie. */
static void fetch_send_pieces(struct fetch *fetch, const uint8_t *bytes, size_t count,
                              const struct leat_kafka_gap *gaps, uint32_t gap_count)
{
    struct leat_peer *peer = fetch->request->conn->peer;
    size_t at = 0;
    for (uint32_t i = 0; i < gap_count; i++) {
        LEAT_ASSERT(gaps[i].at >= at && gaps[i].at <= count);
        leat_peer_send_bytes(peer, bytes + at, gaps[i].at - at);
        at = gaps[i].at;
        leat_fetch_send(fetch->fetch, gaps[i].records->gathered);
    }
    if (count > at) leat_peer_send_bytes(peer, bytes + at, count - at);
}

static void fetch_send(struct leat_kafka_request *request)
{
    struct fetch *fetch = request->state;
    uint8_t *bytes = leat_front_scratch(request->core), *large = NULL;
    size_t capacity = LEAT_CORE_SCRATCH_BYTES;
    uint32_t gap_count = 0;
    struct leat_kafka_gap *gaps = leat_kafka_take(request, fetch->part_count, sizeof *gaps);
    size_t count = 0;
    if (gaps != NULL)
        count = leat_kafka_answer_encode(request, fetch->response, bytes, capacity, gaps,
                                         fetch->part_count, &gap_count);
    if (count > capacity) {
        bytes = large = leat_mem_calloc(LEAT_MEM_BROKER, count, 1);
        if (large != NULL) {
            size_t again = leat_kafka_answer_encode(request, fetch->response, large, count, gaps,
                                                    fetch->part_count, &gap_count);
            LEAT_ASSERT_CMP(again, ==, count);
        }
    }
    if (gaps == NULL || bytes == NULL)
        leat_peer_close(request->conn->peer, "there is no memory for an answer");
    else
        fetch_send_pieces(fetch, bytes, count, gaps, gap_count);
    leat_mem_free(large);
}

static void fetch_on_freed(struct leat_kafka_request *request)
{
    struct fetch *fetch = request->state;
    if (fetch->fetch != NULL && !leat_kafka_abandoned(request)) leat_fetch_end(fetch->fetch);
}

static void fetch_answer(struct fetch *fetch)
{
    struct leat_kafka_request *request = fetch->request;
    request->send = fetch_send;
    leat_kafka_answer(request, fetch->response);
}

/* The reads went with the connection. */
static void fetch_on_abandoned(struct leat_kafka_request *request)
{
    struct fetch *fetch = request->state;
    LEAT_ASSERT_OWNER(request->core);
    fetch->fetch = NULL;
    leat_kafka_answer(request, NULL);
}

/* ---- when ---- */

static void fetch_on_turn(struct leat_kafka_request *request)
{
    struct fetch *fetch = request->state;
    /* The request's frame is long gone */
    if (!fetch_begin(fetch)) request->on_turn = fetch_on_turn;
}

void leat_kafka_handle_fetch(struct leat_kafka_request *request)
{
    const struct leat_kafka_fetch_request *body = request->body;
    struct fetch *fetch = fetch_create(request);
    if (fetch == NULL || fetch->part_count > FETCH_PARTITIONS_MAX) {
        leat_kafka_answer(request, NULL);
        return;
    }
    request->state = fetch;
    request->on_freed = fetch_on_freed;
    if (body->session_id != 0 && body->session_epoch > 0) {
        fetch->response->error_code = LEAT_KAFKA_FETCH_SESSION_ID_NOT_FOUND;
        fetch->response->topics.count = 0;
        fetch->part_count = 0;
        fetch_answer(fetch);
        return;
    }
    request->on_abandoned = fetch_on_abandoned;
    if (request->conn->first != request)
        request->on_turn = fetch_on_turn;
    else
        fetch_on_turn(request);
}
