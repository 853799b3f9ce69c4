/* SPDX-License-Identifier: Apache-2.0 */
/* A client's world for tests. */
#include "tests/client/fake_server.h"

#include "base/assert.h"
#include "tests/client/fake_metadata.h"
#include "tests/pages.h"
#include "wire/frame.h"
#include "wire/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATENCY_US = 100, CONN_BYTES = 16 * 1024 * 1024, ANSWER_BYTES = 8 * 1024 * 1024 };

struct fake_conn {
    struct leat_list link;
    struct fake_world *world;
    const struct leat_conn_handler *handler;
    void *user;
    bool open, closed;
    char address[32];
    uint64_t to_server_at, to_client_at; /* nothing overtakes on one connection */
    uint8_t *in;
    size_t in_bytes;
    uint8_t *out; /* of the client, not yet consumed by it */
    size_t out_bytes, want;
};

enum fake_event_kind { EVENT_OPEN, EVENT_TO_SERVER, EVENT_TO_CLIENT, EVENT_CLOSED };
struct fake_event {
    uint64_t at_us, serial;
    enum fake_event_kind kind;
    struct fake_conn *conn;
    leat_err why;
    size_t count;
    uint8_t bytes[];
};

static uint64_t clock_now(void *ctx)
{
    return ((struct fake_world *)ctx)->now_us;
}
static int64_t clock_wall(void *ctx)
{
    return 1700000000000 + (int64_t)(((struct fake_world *)ctx)->now_us / 1000);
}
static void clock_wake(void *ctx, uint64_t at_us)
{
    ((struct fake_world *)ctx)->wake_at_us = at_us;
}
static uint64_t random_next(void *ctx)
{
    return leat_xoshiro_next(ctx);
}
static bool chance(struct fake_world *world, unsigned per_mille)
{
    return leat_xoshiro_below(&world->dice, 1000) < per_mille;
}

static void post(struct fake_world *world, struct fake_conn *conn, enum fake_event_kind kind,
                 uint64_t at_us, const void *bytes, size_t count, leat_err why)
{
    LEAT_ASSERT_CMP(world->event_count, <, FAKE_EVENTS_MAX);
    struct fake_event *event = malloc(sizeof *event + count);
    LEAT_ASSERT(event != NULL);
    *event = (struct fake_event){at_us, world->event_serial++, kind, conn, why, count};
    if (count) memcpy(event->bytes, bytes, count);
    world->events[world->event_count++] = event;
}

static leat_err net_connect(void *ctx, const char *address, const struct leat_conn_handler *handler,
                            void *user, struct leat_conn **out_conn)
{
    struct fake_world *world = ctx;
    struct fake_conn *conn = calloc(1, sizeof *conn);
    LEAT_ASSERT(conn != NULL);
    conn->world = world;
    conn->handler = handler;
    conn->user = user;
    strncpy(conn->address, address, sizeof conn->address - 1);
    conn->in = pages_get(CONN_BYTES);
    conn->out = pages_get(CONN_BYTES);
    leat_list_push_back(&world->conns, &conn->link);
    world->connects++;
    if (!world->silent || strcmp(world->silent, address) != 0)
        post(world, conn, world->down ? EVENT_CLOSED : EVENT_OPEN, world->now_us + LATENCY_US, NULL,
             0, LEAT_E_CLOSED);
    *out_conn = (struct leat_conn *)conn;
    return LEAT_OK;
}

static void net_send(struct leat_conn *net, struct leat_send *send)
{
    struct fake_conn *conn = (struct fake_conn *)net;
    struct fake_world *world = conn->world;
    size_t bytes = 0;
    for (unsigned i = 0; i < send->iov_count; i++)
        bytes += send->iovs[i].bytes;
    uint8_t *flat = malloc(bytes);
    LEAT_ASSERT(flat != NULL);
    size_t at = 0;
    for (unsigned i = 0; i < send->iov_count; i++) {
        memcpy(flat + at, send->iovs[i].base, send->iovs[i].bytes);
        at += send->iovs[i].bytes;
    }
    uint64_t when = world->now_us + LATENCY_US;
    if (when < conn->to_server_at) when = conn->to_server_at;
    conn->to_server_at = when;
    if (!conn->closed) post(world, conn, EVENT_TO_SERVER, when, flat, bytes, LEAT_OK);
    free(flat);
    send->next = NULL;
    *world->sends_last = send;
    world->sends_last = &send->next;
}

static void net_close(struct leat_conn *net)
{
    struct fake_conn *conn = (struct fake_conn *)net;
    if (conn->closed) return;
    conn->closed = true;
    post(conn->world, conn, EVENT_CLOSED, conn->world->now_us, NULL, 0, LEAT_OK);
}

static void server_drop(struct fake_conn *conn)
{
    if (conn->closed) return;
    conn->closed = true;
    conn->world->dropped++;
    post(conn->world, conn, EVENT_CLOSED, conn->world->now_us + LATENCY_US, NULL, 0, LEAT_E_CLOSED);
}

void fake_cut(struct fake_world *world)
{
    LEAT_LIST_EACH(&world->conns, link)
    server_drop(LEAT_CONTAINER(link, struct fake_conn, link));
}

void fake_init(struct fake_world *world, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    leat_xoshiro_seed(&world->dice, seed);
    world->clock = (struct leat_clock){world, clock_now, clock_wall, clock_wake};
    world->random = (struct leat_random){.ctx = &world->dice, .next = random_next};
    world->net = (struct leat_net){
        .ctx = world, .connect = net_connect, .send = net_send, .close = net_close};
    world->env.clock = &world->clock;
    world->env.random = &world->random;
    world->env.net = &world->net;
    leat_list_init(&world->conns);
    world->sends_last = &world->sends;
    world->now_us = 1000000;
    world->wake_at_us = UINT64_MAX;
    world->incarnation = 7;
    world->cluster_id = "0123456789abcdef";
    world->epoch = 1;
    world->streamlets = 1;
    world->logs = 2;
    world->next_producer_id = 100;
    leat_err rc = leat_timers_init(&world->timers, &world->clock, 16);
    LEAT_ASSERT(rc == LEAT_OK);
}

struct leat_client *fake_client(struct fake_world *world, uint64_t timeout_us)
{
    struct leat_client_options options = {.name = "test",
                                          .addresses = "fake:1",
                                          .request_timeout_us = timeout_us,
                                          .retry_us_min = 1000,
                                          .retry_us_max = 100000,
                                          .streams_max = 8};
    struct leat_client *client = NULL;
    leat_err rc = leat_client_create(&world->env, &world->timers, &options, &client, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
    return client;
}

static void conn_free(struct fake_conn *conn)
{
    leat_list_remove(&conn->link);
    pages_put(conn->in, CONN_BYTES);
    pages_put(conn->out, CONN_BYTES);
    free(conn);
}

void fake_fini(struct fake_world *world)
{
    (void)fake_run(world, world->now_us + 10 * 1000 * 1000, NULL);
    LEAT_ASSERT(leat_list_empty(&world->conns));
    for (uint32_t i = 0; i < world->event_count; i++)
        free(world->events[i]);
    for (uint32_t i = 0; i < FAKE_LOGS_MAX; i++)
        for (uint32_t b = 0; b < world->log[i].batch_count; b++)
            free(world->log[i].batches[b].bytes);
    leat_timers_fini(&world->timers);
}

/* ---- the server ---- */

static void answer(struct fake_conn *conn, const struct leat_frame *frame,
                   struct leat_msg_writer *body, uint8_t flags, const uint8_t *payload,
                   size_t payload_bytes)
{
    struct fake_world *world = conn->world;
    size_t bytes = LEAT_FRAME_HEADER_BYTES + body->used + payload_bytes;
    uint8_t *out = malloc(bytes);
    LEAT_ASSERT(out != NULL && !body->overflow);
    memcpy(out + LEAT_FRAME_HEADER_BYTES, body->bytes, body->used);
    leat_frame_encode(out, (enum leat_kind)frame->kind, 1, (uint8_t)(LEAT_FRAME_ANSWER | flags),
                      frame->request, body->used, (uint32_t)payload_bytes);
    if (payload_bytes) memcpy(out + LEAT_FRAME_HEADER_BYTES + body->used, payload, payload_bytes);
    if (payload_bytes && world->faults.flip && chance(world, world->faults.flip)) {
        uint64_t bit = leat_xoshiro_below(&world->dice, 8 * payload_bytes);
        out[LEAT_FRAME_HEADER_BYTES + body->used + bit / 8] ^= (uint8_t)(1u << bit % 8);
        world->flipped++;
    }
    uint64_t when = world->now_us + LATENCY_US;
    if (chance(world, world->faults.slow)) when += leat_xoshiro_below(&world->dice, 50000);
    if (when < conn->to_client_at) when = conn->to_client_at;
    conn->to_client_at = when;
    if (frame->kind == LEAT_KIND_FETCH) when += world->poll_us; /* other answers pass it */
    unsigned times = chance(world, world->faults.twice) ? 2 : 1;
    for (unsigned i = 0; i < times; i++)
        post(world, conn, EVENT_TO_CLIENT, when, out, bytes, LEAT_OK);
    free(out);
}

static void refuse(struct fake_conn *conn, const struct leat_frame *frame, leat_err code)
{
    uint8_t bytes[256];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_error_encode(&body, code, "refused by the script");
    conn->world->refused++;
    answer(conn, frame, &body, LEAT_FRAME_ERROR, NULL, 0);
}

static struct fake_producer *producer_find(struct fake_log *log, int64_t id)
{
    for (uint32_t i = 0; i < log->producer_count; i++)
        if (log->producers[i].id == id) return &log->producers[i];
    return NULL;
}

static void log_store(struct fake_log *log, const struct leat_batch *batch)
{
    LEAT_ASSERT_CMP(log->batch_count, <, FAKE_BATCHES_MAX);
    uint8_t *copy = malloc(batch->byte_count);
    LEAT_ASSERT(copy != NULL);
    memcpy(copy, batch->bytes, batch->byte_count);
    leat_batch_stamp(copy, log->end, 1);
    uint32_t at = log->batch_count++;
    log->batches[at].bytes = copy;
    log->batches[at].count = batch->byte_count;
    log->batches[at].records = batch->record_count;
    log->batches[at].offset = log->end;
    log->end += batch->record_count;
}

/* The rules of docs/protocol.md. */
static leat_err log_append(struct fake_world *world, struct fake_log *log,
                           const struct leat_batch *batch, uint64_t *out_offset)
{
    int32_t last =
        (int32_t)(((uint32_t)batch->base_sequence + batch->record_count - 1) & INT32_MAX);
    struct fake_producer *producer = producer_find(log, batch->producer_id);
    if (!producer) {
        if (batch->base_sequence != 0) return LEAT_E_UNKNOWN_PRODUCER;
        LEAT_ASSERT_CMP(log->producer_count, <, FAKE_PRODUCERS_MAX);
        producer = &log->producers[log->producer_count++];
        *producer =
            (struct fake_producer){.id = batch->producer_id, .epoch = batch->producer_epoch};
    }
    if (batch->producer_epoch < producer->epoch) return LEAT_E_PRODUCER_FENCED;
    if (batch->producer_epoch > producer->epoch) {
        if (batch->base_sequence != 0) return LEAT_E_SEQUENCE_GAP;
        producer->epoch = batch->producer_epoch;
        producer->next = 0;
        producer->recent_count = 0;
    }
    for (uint32_t i = 0; i < producer->recent_count; i++) {
        if (producer->recent[i].first != batch->base_sequence || producer->recent[i].last != last)
            continue;
        world->duplicates++;
        *out_offset = producer->recent[i].offset;
        return LEAT_OK;
    }
    if (batch->base_sequence != producer->next) {
        world->gaps++;
        return LEAT_E_SEQUENCE_GAP;
    }
    if (world->batch_bytes_max != 0 && batch->byte_count > world->batch_bytes_max) {
        world->too_large++;
        return LEAT_E_TOO_LARGE;
    }
    if (producer->recent_count == LEAT_BATCHES_IN_FLIGHT_MAX)
        memmove(&producer->recent[0], &producer->recent[1],
                sizeof producer->recent[0] * --producer->recent_count);
    producer->recent[producer->recent_count].first = batch->base_sequence;
    producer->recent[producer->recent_count].last = last;
    producer->recent[producer->recent_count++].offset = log->end;
    producer->next = (int32_t)(((uint32_t)last + 1) & INT32_MAX);
    *out_offset = log->end;
    log_store(log, batch);
    return LEAT_OK;
}

static void on_append(struct fake_conn *conn, const struct leat_frame *frame)
{
    struct fake_world *world = conn->world;
    struct leat_msg_append append;
    leat_err rc = leat_msg_append_decode(frame->control, frame->control_bytes, &append);
    LEAT_ASSERT(rc == LEAT_OK && append.batch_count <= LEAT_BATCHES_IN_FLIGHT_MAX);
    world->appends++;
    if (append.log.streamlet + 1 == world->mute_streamlet) return;
    if (append.log.stream != world->stream_id) {
        refuse(conn, frame, LEAT_E_UNKNOWN_STREAM);
        return;
    }
    struct fake_log *log = &world->log[append.log.streamlet * world->logs + append.log.log];
    if (chance(world, world->faults.forget)) log->producer_count = 0;
    uint8_t bytes[512];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_err codes[LEAT_BATCHES_IN_FLIGHT_MAX], failed = LEAT_OK;
    uint64_t offsets[LEAT_BATCHES_IN_FLIGHT_MAX] = {0};
    const uint8_t *at = frame->payload;
    size_t left = frame->payload_bytes;
    bool hard = chance(world, world->faults.refuse_hard);
    for (uint32_t i = 0; i < append.batch_count; i++) {
        struct leat_batch batch;
        uint64_t count = leat_batch_bytes(at, left);
        LEAT_ASSERT(count > 0 && count <= left);
        rc = leat_batch_check(at, (size_t)count, &batch, NULL);
        LEAT_ASSERT(rc == LEAT_OK);
        if (!failed && hard && i == append.batch_count / 2) failed = LEAT_E_INVALID;
        codes[i] = failed ? failed : log_append(world, log, &batch, &offsets[i]);
        failed = codes[i];
        at += count;
        left -= (size_t)count;
    }
    leat_msg_write_array(&body, append.batch_count + (failed != LEAT_OK));
    for (uint32_t i = 0; i < append.batch_count; i++) {
        leat_msg_write_array(&body, 2);
        leat_msg_write_u64(&body, codes[i]);
        leat_msg_write_u64(&body, offsets[i]);
    }
    if (failed) leat_msg_write_string(&body, "by the script", 13);
    if (world->faults.garble && chance(world, world->faults.garble)) {
        world->garbled++;
        body.used = (uint32_t)leat_xoshiro_below(&world->dice, body.used);
    }
    answer(conn, frame, &body, 0, NULL, 0);
}

static void on_metadata(struct fake_conn *conn, const struct leat_frame *frame)
{
    uint8_t bytes[4096];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    conn->world->metadatas++;
    fake_metadata_write(conn->world, conn->address, frame, &body);
    answer(conn, frame, &body, 0, NULL, 0);
}

static uint32_t fetch_gather(struct fake_log *log, uint64_t from, uint32_t max, uint8_t *out)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < log->batch_count; i++) {
        uint64_t end = log->batches[i].offset + log->batches[i].records;
        if (end <= from || log->batches[i].offset + 0 < log->first) continue;
        if (used && used + log->batches[i].count > max) break;
        memcpy(out + used, log->batches[i].bytes, log->batches[i].count);
        used += log->batches[i].count;
    }
    return used;
}

static void on_fetch(struct fake_conn *conn, const struct leat_frame *frame)
{
    struct fake_world *world = conn->world;
    struct leat_msg_reader reader;
    struct leat_msg_fetch fetch;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    leat_msg_fetch_read(&reader, &fetch);
    world->fetch_min_bytes = fetch.min_bytes;
    if (fetch.wait_ms && fetch.wait_ms < world->fetch_wait_ms) world->fetch_wait_ms = fetch.wait_ms;
    uint8_t bytes[4096], *payload = pages_get(ANSWER_BYTES);
    LEAT_ASSERT(!reader.failed);
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, fetch.log_count);
    uint32_t used = 0;
    world->poll_us = world->polls ? fetch.wait_ms * 1000ull : 0;
    for (uint32_t i = 0; i < fetch.log_count; i++) {
        struct leat_msg_fetch_log want;
        leat_msg_fetch_log_read(&reader, &want);
        LEAT_ASSERT(!reader.failed);
        struct fake_log *log = &world->log[want.log.streamlet * world->logs + want.log.log];
        struct leat_msg_fetched row = {.first_offset = log->first, .acked_offset = log->end};
        if (want.log.stream != world->stream_id)
            row.code = LEAT_E_UNKNOWN_STREAM;
        else if (log == world->starting || want.offset < log->first || want.offset > log->end)
            row.code = log == world->starting ? LEAT_E_STARTING : LEAT_E_OFFSET_OUT_OF_RANGE;
        else
            row.bytes = used < fetch.max_bytes
                            ? fetch_gather(log, want.offset, fetch.max_bytes - used, payload + used)
                            : 0;
        used += row.bytes;
        if (row.code || row.bytes) world->poll_us = 0;
        leat_msg_fetched_write(&body, &row);
    }
    answer(conn, frame, &body, 0, payload, used);
    pages_put(payload, ANSWER_BYTES);
}

struct leat_position fake_place(uint32_t batch)
{
    uint64_t segment = batch / FAKE_SEGMENT_BATCHES;
    return (struct leat_position){segment / LEAT_SEGMENTS_PER_GROUP, segment,
                                  batch % FAKE_SEGMENT_BATCHES * FAKE_PLACE_BYTES};
}

/* The batch that holds the offset, or lies at the position; batch_count: there is none. */
static uint32_t batch_find(const struct fake_log *log, const struct leat_msg_locate *want)
{
    for (uint32_t i = 0; i < log->batch_count; i++) {
        struct leat_position at = fake_place(i);
        uint64_t first = log->batches[i].offset, end = first + log->batches[i].records;
        bool here = want->what == LEAT_LOCATE_OFFSET
                        ? (uint64_t)want->value >= first && (uint64_t)want->value < end
                        : want->position.group == at.group &&
                              want->position.segment == at.segment &&
                              want->position.position == at.position;
        if (here && end > log->first) return i;
    }
    return log->batch_count;
}

static void locate_one(const struct fake_log *log, const struct leat_msg_locate *want,
                       struct leat_msg_located *row)
{
    if (want->what != LEAT_LOCATE_OFFSET && want->what != LEAT_LOCATE_POSITION) {
        row->offset = want->what == LEAT_LOCATE_LATEST ? log->end : log->first;
        return;
    }
    uint32_t batch = batch_find(log, want);
    if (batch == log->batch_count) {
        row->code = LEAT_E_OFFSET_OUT_OF_RANGE;
        row->text = (struct leat_msg_string){"by the script", 13};
        return;
    }
    row->position = fake_place(batch);
    row->offset =
        want->what == LEAT_LOCATE_OFFSET ? (uint64_t)want->value : log->batches[batch].offset;
}

static void on_locate(struct fake_conn *conn, const struct leat_frame *frame)
{
    struct fake_world *world = conn->world;
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    (void)leat_msg_read_array(&reader);
    uint32_t count = leat_msg_read_array(&reader);
    uint8_t bytes[4096];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    leat_msg_write_array(&body, count);
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_locate want;
        leat_msg_locate_read(&reader, &want);
        LEAT_ASSERT(!reader.failed);
        struct fake_log *log = &world->log[want.log.streamlet * world->logs + want.log.log];
        struct leat_msg_located row = {.timestamp_ms = -1};
        locate_one(log, &want, &row);
        leat_msg_located_write(&body, &row);
    }
    answer(conn, frame, &body, 0, NULL, 0);
}

static void on_frame(struct fake_conn *conn, const struct leat_frame *frame)
{
    struct fake_world *world = conn->world;
    uint8_t bytes[512];
    struct leat_msg_writer body;
    leat_msg_writer_init(&body, bytes, sizeof bytes);
    if (world->frozen && strcmp(conn->address, world->frozen) == 0) return;
    if (frame->kind == LEAT_KIND_HELLO) {
        struct leat_msg_hello hello;
        leat_err rc = leat_msg_hello_decode(frame->control, frame->control_bytes, &hello);
        LEAT_ASSERT(rc == LEAT_OK);
        struct leat_msg_hello_ok ok = {.version = 1,
                                       .incarnation = world->incarnation +
                                                      (strcmp(conn->address, "fake:2") == 0),
                                       .node = {"n", 1},
                                       .lanes = 2,
                                       .lane = hello.lane < 0 ? 0 : (uint32_t)hello.lane};
        world->hellos++;
        leat_msg_hello_ok_write(&body, &ok);
        answer(conn, frame, &body, 0, NULL, 0);
        return;
    }
    if (world->mute) return;
    if (world->says_damaged && frame->kind != LEAT_KIND_METADATA) {
        struct leat_frame unknown = *frame;
        unknown.request = 0;
        refuse(conn, &unknown, LEAT_E_CORRUPT);
        post(world, conn, EVENT_CLOSED, conn->to_client_at, NULL, 0, LEAT_E_CLOSED); /* behind it */
        return;
    }
    if (chance(world, world->faults.drop_before)) {
        server_drop(conn);
        return;
    }
    if (frame->kind != LEAT_KIND_METADATA && chance(world, world->faults.refuse_again)) {
        refuse(conn, frame, LEAT_E_AGAIN);
        return;
    }
    if (frame->kind == LEAT_KIND_APPEND && chance(world, world->faults.refuse_owner)) {
        refuse(conn, frame, LEAT_E_NOT_OWNER);
        return;
    }
    bool drop = chance(world, world->faults.drop_after);
    if (frame->kind == LEAT_KIND_METADATA) on_metadata(conn, frame);
    if (frame->kind == LEAT_KIND_APPEND) on_append(conn, frame);
    if (frame->kind == LEAT_KIND_FETCH) on_fetch(conn, frame);
    if (frame->kind == LEAT_KIND_LOCATE) on_locate(conn, frame);
    if (frame->kind == LEAT_KIND_PRODUCER_ID && world->gives_up) {
        refuse(conn, frame, LEAT_E_CANCELLED);
    } else if (frame->kind == LEAT_KIND_PRODUCER_ID) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
        (void)leat_msg_read_array(&reader);
        int64_t id = leat_msg_read_i64(&reader);
        if (id < 0)
            id = world->next_producer_id++;
        else
            world->epochs++;
        leat_msg_write_array(&body, 2);
        leat_msg_write_i64(&body, id);
        leat_msg_write_i64(&body, world->next_epoch++);
        answer(conn, frame, &body, 0, NULL, 0);
    }
    /* The answer was made, and is lost with the connection. */
    if (drop) server_drop(conn);
}

static void to_server(struct fake_conn *conn, const uint8_t *bytes, size_t count)
{
    LEAT_ASSERT_CMP(conn->in_bytes + count, <=, CONN_BYTES);
    memcpy(conn->in + conn->in_bytes, bytes, count);
    conn->in_bytes += count;
    size_t at = 0, want = 0;
    struct leat_frame frame;
    while (!conn->closed) {
        leat_err rc = leat_frame_decode(conn->in + at, conn->in_bytes - at, &frame, &want);
        if (rc == LEAT_E_AGAIN) break;
        LEAT_ASSERT(rc == LEAT_OK);
        on_frame(conn, &frame);
        at += frame.frame_bytes;
    }
    memmove(conn->in, conn->in + at, conn->in_bytes - at);
    conn->in_bytes -= at;
}

/* ---- time ---- */

static void to_client(struct fake_conn *conn, const uint8_t *bytes, size_t count)
{
    LEAT_ASSERT_CMP(conn->out_bytes + count, <=, CONN_BYTES);
    memcpy(conn->out + conn->out_bytes, bytes, count);
    conn->out_bytes += count;
    if (conn->out_bytes < conn->want) return;
    conn->want = 0;
    size_t used = conn->handler->on_bytes(conn->user, (struct leat_conn *)conn, conn->out,
                                          conn->out_bytes, &conn->want);
    memmove(conn->out, conn->out + used, conn->out_bytes - used);
    conn->out_bytes -= used;
}

static void events_drop(struct fake_world *world, struct fake_conn *conn)
{
    for (uint32_t i = 0; i < world->event_count;) {
        if (world->events[i]->conn != conn) {
            i++;
            continue;
        }
        free(world->events[i]);
        world->events[i] = world->events[--world->event_count];
    }
}

static void event_run(struct fake_world *world, struct fake_event *event)
{
    struct fake_conn *conn = event->conn;
    switch (event->kind) {
    case EVENT_OPEN:
        if (conn->closed) break;
        conn->open = true;
        conn->handler->on_open(conn->user, (struct leat_conn *)conn);
        break;
    case EVENT_TO_SERVER:
        /* What had left before the connection broke may still arrive: a zombie's frame. */
        if (!conn->closed || chance(world, 500)) to_server(conn, event->bytes, event->count);
        break;
    case EVENT_TO_CLIENT:
        if (!conn->closed) to_client(conn, event->bytes, event->count);
        break;
    case EVENT_CLOSED:
        conn->closed = true;
        events_drop(world, conn);
        conn->handler->on_closed(conn->user, (struct leat_conn *)conn, event->why);
        conn_free(conn);
        break;
    }
}

static void sends_take(struct fake_world *world)
{
    while (world->sends) {
        struct leat_send *send = world->sends;
        world->sends = send->next;
        if (!world->sends) world->sends_last = &world->sends;
        send->on_sent(send, LEAT_OK);
    }
}

static struct fake_event *event_next(struct fake_world *world)
{
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < world->event_count; i++) {
        const struct fake_event *event = world->events[i];
        if (least == UINT32_MAX || event->at_us < world->events[least]->at_us ||
            (event->at_us == world->events[least]->at_us &&
             event->serial < world->events[least]->serial))
            least = i;
    }
    return least == UINT32_MAX ? NULL : world->events[least];
}

bool fake_run(struct fake_world *world, uint64_t until_us, bool (*done)(void *owner))
{
    for (unsigned spins = 0;;) {
        if (world->turn_end) world->turn_end(world->owner);
        sends_take(world);
        if (done && done(world->owner)) return true;
        struct fake_event *event = event_next(world);
        uint64_t at = event ? event->at_us : UINT64_MAX;
        if (world->wake_at_us < at) {
            at = world->wake_at_us;
            event = NULL;
        }
        if (at > until_us) {
            world->now_us = until_us;
            return false;
        }
        spins = event || at > world->now_us ? 0 : spins + 1;
        /* a time that is past, asked for again and again */
        LEAT_ASSERT_CMP(spins, <, FAKE_SPINS_MAX);
        if (at > world->now_us) world->now_us = at;
        if (!event) {
            world->wake_at_us = UINT64_MAX;
            leat_timers_run(&world->timers);
            continue;
        }
        for (uint32_t i = 0; i < world->event_count; i++)
            if (world->events[i] == event) world->events[i] = world->events[--world->event_count];
        event_run(world, event);
        free(event);
    }
}
