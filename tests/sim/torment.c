/* SPDX-License-Identifier: Apache-2.0 */
/* Work that makes a core's turns long, beside the stream that has to be swift (swift.c): in a part of the seeds of one
 * node with one core a tormentor asks, again and again, for a time in a batch that has much to be uncompressed, or
 * sends as many small requests at once as a connection may have under way.
 *
 * Else the work that is done in a turn takes no time of the world. Here uncompressing for a look-up and answers to the
 * tormentor take the core as long as if its processor were very slow: a whole look-up, or all requests of the
 * tormentor, longer than the swift stream may wait; a piece, or one request, a few milliseconds. */
#include "tests/sim/swift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/asks.h"
#include "tests/sim/stranger.h"
#include "wire/batch.h"
#include "wire/frame.h"
#include "wire/unpack.h"

enum {
    TORMENT_PER_MILLE = 400,
    FLOODS_PER_MILLE = 500, /* of these; the others look up */
    BEGIN_US_MAX = 2000 * 1000,
    LONG_US = 2500 * 1000,
    STEP_US = 20 * 1000,
    RECORDS = 8,
    VALUE_BYTES = 100 * 1000,
    BATCH_BYTES = RECORDS * (VALUE_BYTES + 100),
    PACKED_BYTES = 16 * 1024,
    LOOK_UPS = 4,            /* under way */
    REQUESTS = 250,          /* one connection may have so many */
    SOUGHT_BYTES_OF_US = 2,  /* of a batch 400 ms */
    ANSWER_US_OF_BYTE = 120, /* of all requests at once 600 ms */
    NUMBER_HELLO = 1,
    NUMBER_ASK = 2,
};

static struct {
    struct scenario *scenario;
    struct sim_actor *actor;
    struct leat_conn *conn;
    unsigned boots, names;
    uint32_t stream; /* 0: not made yet */
    bool floods, open, stored;
    uint32_t answers_left;
    uint64_t until_us, sought_bytes;
} torment;

/* ---- requests ---- */

static size_t frame_end(const struct leat_msg_writer *writer, uint8_t *out, enum leat_kind kind,
                        size_t payload)
{
    LEAT_ASSERT(!writer->overflow);
    leat_frame_encode(out, kind, LEAT_PROTOCOL_VERSION_MAX, 0, NUMBER_ASK, writer->used,
                      (uint32_t)payload);
    return LEAT_FRAME_HEADER_BYTES + writer->used;
}

static size_t create_make(uint8_t *out)
{
    struct leat_msg_writer writer;
    char name[24];
    int bytes = snprintf(name, sizeof name, "torment-%u", ++torment.names);
    struct leat_stream_settings settings = {.streamlets = 1,
                                            .logs = 1,
                                            .copies = 1,
                                            .durability = LEAT_DURABILITY_DISK,
                                            .segment_bytes_max = 64 * 1024,
                                            .retention_ms = -1,
                                            .retention_bytes = -1};
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, SIM_ASK_BYTES_MAX);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, name, (uint32_t)bytes);
    leat_msg_settings_write(&writer, &settings);
    return frame_end(&writer, out, LEAT_KIND_STREAM_CREATE, 0);
}

/* Records one millisecond apart, of zeros. */
static uint32_t batch_make(uint8_t *out)
{
    struct leat_batch_builder builder;
    uint8_t *plain = calloc(1, BATCH_BYTES), *value = calloc(1, VALUE_BYTES);
    uint32_t packed = 0;
    LEAT_ASSERT(plain != NULL && value != NULL);
    leat_batch_builder_init(&builder, plain, BATCH_BYTES);
    for (int64_t i = 0; i < RECORDS; i++) {
        leat_err rc = leat_batch_builder_add(&builder, torment.scenario->world->wall_base_ms + i,
                                             NULL, 0, value, VALUE_BYTES, NULL, 0, 0);
        LEAT_ASSERT(rc == LEAT_OK);
    }
    uint32_t bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_err rc = leat_batch_compress(plain, bytes, LEAT_CODEC_ZSTD, 1, out, PACKED_BYTES, &packed);
    LEAT_ASSERT(rc == LEAT_OK);
    free(plain);
    free(value);
    return packed;
}

static size_t append_make(uint8_t *out, uint32_t epoch)
{
    uint8_t batch[PACKED_BYTES];
    struct leat_msg_writer writer;
    struct leat_msg_append append = {{torment.stream, 0, 0}, epoch, 1};
    uint32_t bytes = batch_make(batch);
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, SIM_ASK_BYTES_MAX);
    leat_msg_append_write(&writer, &append);
    size_t used = frame_end(&writer, out, LEAT_KIND_APPEND, bytes);
    memcpy(out + used, batch, bytes);
    return used + bytes;
}

static size_t look_up_make(uint8_t *out)
{
    struct leat_msg_writer writer;
    struct leat_msg_locate locate = {
        .log = {torment.stream, 0, 0},
        .what = LEAT_LOCATE_TIME,
        .value = torment.scenario->world->wall_base_ms + RECORDS - 1,
    };
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, SIM_ASK_BYTES_MAX);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_array(&writer, 1);
    leat_msg_locate_write(&writer, &locate);
    return frame_end(&writer, out, LEAT_KIND_LOCATE, 0);
}

/* ---- its connection ---- */

static void answered(const struct leat_frame *frame)
{
    struct leat_msg_reader reader;
    if (frame->request == NUMBER_HELLO || (frame->flags & LEAT_FRAME_ERROR)) return;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    if (frame->kind == LEAT_KIND_STREAM_CREATE) {
        (void)leat_msg_read_array(&reader);
        torment.stream = leat_msg_read_u32(&reader);
    } else if (frame->kind == LEAT_KIND_APPEND)
        torment.stored = true;
    else if (!torment.floods)
        sim_fault_struck(torment.scenario->world, SIM_FAULT_TORMENT);
}

static size_t on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                       size_t *want_bytes)
{
    size_t used = 0;
    struct leat_frame frame;
    (void)user, (void)conn;
    *want_bytes = 0;
    while (torment.answers_left > 0) {
        leat_err rc = leat_frame_decode(data + used, bytes - used, &frame, want_bytes);
        if (rc == LEAT_E_AGAIN) return used;
        LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
        answered(&frame);
        used += frame.frame_bytes;
        if (--torment.answers_left == 0 && torment.floods && torment.stored)
            sim_fault_struck(torment.scenario->world, SIM_FAULT_TORMENT);
    }
    *want_bytes = 0;
    return bytes;
}

static void on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    (void)user, (void)conn, (void)why;
    torment.conn = NULL;
    torment.open = false;
    torment.answers_left = 0;
}

static void on_open(void *user, struct leat_conn *conn)
{
    uint8_t hello[SIM_ASK_BYTES_MAX];
    (void)user;
    torment.open = true;
    torment.answers_left = 1;
    (void)torment.actor->net.send_copy(conn, hello,
                                       sim_ask_hello(hello, "torment", -1, NUMBER_HELLO));
}

static const struct leat_conn_handler handler = {on_open, on_bytes, on_closed};

static void send(const uint8_t *bytes, size_t count, uint32_t answers)
{
    torment.answers_left += answers;
    (void)torment.actor->net.send_copy(torment.conn, bytes, count);
}

static size_t ping_make(uint8_t *out)
{
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, SIM_ASK_BYTES_MAX);
    leat_msg_write_array(&writer, 0);
    return frame_end(&writer, out, LEAT_KIND_PING, 0);
}

static void flood(void)
{
    uint8_t *bytes = malloc((size_t)REQUESTS * SIM_ASK_BYTES_MAX), *at = bytes;
    LEAT_ASSERT(bytes != NULL);
    for (unsigned i = 0; i < REQUESTS; i++)
        at += ping_make(at);
    send(bytes, (size_t)(at - bytes), REQUESTS);
    free(bytes);
}

static void ask(const struct sim_server *server)
{
    static uint8_t bytes[PACKED_BYTES + SIM_ASK_BYTES_MAX];
    uint32_t epoch = 0;
    if (torment.stored && !torment.floods && torment.answers_left < LOOK_UPS) {
        send(bytes, look_up_make(bytes), 1);
        return;
    }
    if (torment.answers_left) return;
    struct leat_log_ref ref = {torment.stream, 0, 0};
    if (torment.stream == 0)
        send(bytes, create_make(bytes), 1);
    else if (!sim_log_epoch(server, ref, &epoch))
        return;
    else if (!torment.stored)
        send(bytes, append_make(bytes, epoch), 1);
    else if (torment.floods)
        flood();
}

/* ---- life ---- */

/* What this turn's look-ups cost its core. */
static uint64_t weigh(void)
{
    uint64_t bytes = leat_unpack_sought - torment.sought_bytes;
    torment.sought_bytes = leat_unpack_sought;
    return torment.floods ? 0 : bytes / SOUGHT_BYTES_OF_US;
}

static void step(struct sim_world *world, struct sim_event *event)
{
    const struct leat_net *net = &torment.actor->net;
    const struct sim_server *server = &torment.scenario->servers[0];
    if (torment.stored && torment.until_us == 0) torment.until_us = world->now_us + LONG_US;
    if (torment.until_us && world->now_us > torment.until_us) {
        world->weigh = NULL;
        if (torment.conn) net->close(torment.conn);
        return;
    }
    if (torment.boots != server->boots && torment.conn) net->close(torment.conn);
    torment.boots = server->boots;
    if (!torment.conn && sim_serves(server) &&
        net->connect(net->ctx, server->address, &handler, &torment, &torment.conn) != LEAT_OK)
        torment.conn = NULL;
    if (torment.conn && torment.open) ask(server);
    sim_actor_post(torment.actor, STEP_US, step, event->a);
}

static bool is_chosen(const struct scenario *scenario, struct sim_rng *rng)
{
    sim_rng_init(rng, scenario->world->seed, "torment");
    if (scenario->server_count > 1 || scenario->cores > 1) return false;
    return sim_rng_chance(rng, TORMENT_PER_MILLE);
}

bool sim_torment_is_chosen(const struct scenario *scenario)
{
    struct sim_rng rng;
    return is_chosen(scenario, &rng);
}

void sim_torment_start(struct scenario *scenario)
{
    struct sim_rng rng;
    if (!is_chosen(scenario, &rng)) return;
    memset(&torment, 0, sizeof torment);
    torment.scenario = scenario;
    torment.floods = sim_rng_chance(&rng, FLOODS_PER_MILLE);
    torment.actor = sim_idle_actor(scenario->world, "torment");
    torment.actor->process->answer_us_of_byte = torment.floods ? ANSWER_US_OF_BYTE : 0;
    torment.sought_bytes = leat_unpack_sought;
    scenario->world->weigh = weigh;
    sim_actor_post(torment.actor, sim_rng_below(&rng, BEGIN_US_MAX), step, NULL);
}
