/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of its own, on a core that all other clients torment: slow readers of old data, damaged and deleted logs,
 * moves and deaths. Every quarter of a second a client appends a record to the stream, or reads its first or its last
 * record, or asks for its end, by turns. Each request has to be answered within SWIFT_US_MAX, unless the stream's own
 * node was not there, stood still, was cut off, or had a disk that refused or stood still. In a cluster faults last
 * meanwhile, elsewhere: the node needs the leader and a majority of the coordinators, by waits.c. */
#include "tests/sim/swift.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tests/sim/asks.h"
#include "tests/sim/disk_parts.h"
#include "tests/sim/stranger.h"
#include "tests/sim/truth.h"
#include "tests/sim/waits.h"
#include "wire/batch.h"
#include "wire/frame.h"

enum {
    EVERY_US = 250 * 1000,
    SWIFT_US_MAX = 250 * 1000,
    NUMBER_HELLO = 1,
    NUMBER_ASK = 2,
    LOOK_US = 50 * 1000,
    SETTLE_US = 500 * 1000, /* after a fault of its own node, and after a start */
    HEALED_US = 4 * 1000 * 1000,
    VALUE_BYTES = 700,
    REQUEST_BYTES = 2048,
    SEGMENT_BYTES = 16 * 1024,
    NAME_BYTES = 24,
};

enum ask { ASK_APPEND, ASK_FIRST, ASK_LAST, ASK_END, ASKS };
static const char *const ask_words[ASKS] = {"an append", "a read of the first record",
                                            "a read of the last record", "the end of a log"};

struct swift {
    struct scenario *scenario;
    struct sim_actor *actor;
    struct leat_conn *conn;
    const struct sim_server *server; /* who is asked */
    unsigned boots, rounds,
        names;       /* names: that were asked for; whether one was made may be unknown */
    uint32_t stream; /* 0: not made yet */
    uint32_t epoch;
    uint64_t end; /* records that are acked */
    enum ask ask;
    uint64_t asked_us;         /* it waits for an answer since then; 0: it does not */
    uint64_t calm_us;          /* since then nothing is wrong with its node */
    uint64_t stalled_until_us; /* its node, or that node's disk */
    uint32_t answers_left;
    bool open, over, healed;
};
static struct swift *swift_of_seed;

/* ---- requests ---- */

static size_t frame_end(const struct leat_msg_writer *writer, uint8_t *out, enum leat_kind kind,
                        size_t payload)
{
    LEAT_ASSERT(!writer->overflow);
    leat_frame_encode(out, kind, LEAT_PROTOCOL_VERSION_MAX, 0, NUMBER_ASK, writer->used,
                      (uint32_t)payload);
    return LEAT_FRAME_HEADER_BYTES + writer->used;
}

static size_t create_make(struct swift *it, uint8_t *out)
{
    struct leat_msg_writer writer;
    char name[NAME_BYTES];
    int bytes = snprintf(name, sizeof name, "swift-%u", ++it->names);
    struct leat_stream_settings settings = {.streamlets = 1,
                                            .logs = 1,
                                            .copies = 1,
                                            .durability = LEAT_DURABILITY_DISK,
                                            .segment_bytes_max = SEGMENT_BYTES,
                                            .retention_ms = -1,
                                            .retention_bytes = -1};
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, REQUEST_BYTES / 2);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_string(&writer, name, (uint32_t)bytes);
    leat_msg_settings_write(&writer, &settings);
    return frame_end(&writer, out, LEAT_KIND_STREAM_CREATE, 0);
}

static size_t append_make(const struct swift *it, uint8_t *out)
{
    uint8_t batch[REQUEST_BYTES / 2], value[VALUE_BYTES] = {0};
    struct leat_batch_builder builder;
    struct leat_msg_writer writer;
    struct leat_msg_append append = {{it->stream, 0, 0}, it->epoch, 1};
    leat_batch_builder_init(&builder, batch, sizeof batch);
    leat_err rc = leat_batch_builder_add(&builder, it->scenario->world->wall_base_ms, NULL, 0,
                                         value, sizeof value, NULL, 0, 0);
    LEAT_ASSERT(rc == LEAT_OK);
    uint32_t bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, REQUEST_BYTES / 2);
    leat_msg_append_write(&writer, &append);
    size_t used = frame_end(&writer, out, LEAT_KIND_APPEND, bytes);
    memcpy(out + used, batch, bytes);
    return used + bytes;
}

static size_t request_make(struct swift *it, uint8_t *out)
{
    struct sim_place place = {.log = {it->stream, 0, 0}, .epoch = it->epoch};
    if (it->stream == 0) return create_make(it, out);
    it->ask = (enum ask)(it->rounds++ % ASKS);
    /* Who asks for an end waits until a look-up that was begun is done: a core has one unpacker for that. */
    if (it->ask == ASK_END && it->scenario->world->weigh) it->ask = ASK_LAST;
    if (it->end == 0) it->ask = ASK_APPEND;
    if (it->ask == ASK_APPEND) return append_make(it, out);
    if (it->ask == ASK_END) return sim_ask_locate(out, &place, LEAT_LOCATE_LATEST, NUMBER_ASK);
    return sim_ask_fetch(out, &place, it->ask == ASK_FIRST ? 0 : it->end - 1, NUMBER_ASK);
}

/* ---- answers ---- */

/* What is refused, or answered by who is the owner no more, says nothing of how long it takes. */
static void answered(struct swift *it, const struct leat_frame *frame)
{
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, frame->control, frame->control_bytes);
    if (frame->request == NUMBER_HELLO) return;
    sim_trace(it->scenario->world, "%s, answered after %llu us%s", ask_words[it->ask],
              (unsigned long long)(it->scenario->world->now_us - it->asked_us),
              it->calm_us == UINT64_MAX ? ", not calm" : "");
    it->asked_us = 0;
    if (frame->flags & LEAT_FRAME_ERROR) {
        it->calm_us = UINT64_MAX;
        return;
    }
    if (it->stream != 0 && it->calm_us != UINT64_MAX) /* one that was watched */
        sim_fault_struck(it->scenario->world, SIM_FAULT_SWIFT);
    if (it->stream == 0) {
        (void)leat_msg_read_array(&reader);
        it->stream = leat_msg_read_u32(&reader);
    } else if (it->ask == ASK_APPEND) {
        (void)leat_msg_read_array(&reader);
        (void)leat_msg_read_array(&reader);
        if (leat_msg_read_u32(&reader) == LEAT_OK) it->end = leat_msg_read_u64(&reader) + 1;
    }
}

static size_t on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                       size_t *want_bytes)
{
    struct swift *it = user;
    size_t used = 0;
    struct leat_frame frame;
    *want_bytes = 0;
    while (it->answers_left > 0) {
        leat_err rc = leat_frame_decode(data + used, bytes - used, &frame, want_bytes);
        if (rc == LEAT_E_AGAIN) return used;
        LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
        answered(it, &frame);
        used += frame.frame_bytes;
        it->answers_left--;
    }
    *want_bytes = 0;
    (void)conn;
    return bytes;
}

static void on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct swift *it = user;
    it->conn = NULL;
    it->open = false;
    it->asked_us = 0; /* a server may close what it likes, and is asked again */
    (void)conn, (void)why;
}

static void on_open(void *user, struct leat_conn *conn)
{
    struct swift *it = user;
    uint8_t hello[SIM_ASK_BYTES_MAX];
    it->open = true;
    it->answers_left = 1;
    (void)it->actor->net.send_copy(conn, hello, sim_ask_hello(hello, "swift", -1, NUMBER_HELLO));
}

static const struct leat_conn_handler handler = {on_open, on_bytes, on_closed};

/* ---- life ---- */

static const struct sim_server *owner_find(struct swift *it)
{
    struct scenario *scenario = it->scenario;
    struct truth_log log;
    if (scenario->server_count == 1 || it->stream == 0) return &scenario->servers[0];
    bool found = truth_find(scenario, (struct leat_log_ref){it->stream, 0, 0}, &log);
    return found && log.served ? log.owner : NULL;
}

/* In a cluster, while faults last: the owner serves the log, and needs no other node than the leader and a majority of
 * the coordinators, as the log has one copy. After that: nothing is wrong with any node. */
static bool cluster_is_calm(const struct swift *it)
{
    struct scenario *scenario = it->scenario;
    struct truth_log log;
    if (scenario->faults_over) return sim_nodes_are_ready(scenario);
    return sim_waits_node_is_well(scenario, it->server->number) &&
           truth_find(scenario, (struct leat_log_ref){it->stream, 0, 0}, &log) && log.served &&
           log.owner == it->server && log.state == LEAT_LOG_SERVING;
}

/* Nothing is wrong with the node that has the stream. */
static bool is_calm(const struct swift *it)
{
    const struct scenario *scenario = it->scenario;
    const struct sim_server *server = it->server;
    uint64_t now_us = scenario->world->now_us;
    if (!server || !sim_serves(server) || it->boots != server->boots) return false;
    if (scenario->server_count > 1 && !cluster_is_calm(it)) return false;
    const struct sim_disk *disk = server->disk;
    return server->process->cut_off_until_us <= now_us && !disk->full && !disk->no_files &&
           !disk->took_error && it->stalled_until_us <= now_us &&
           scenario->world->refuse_until_us <= now_us;
}

static void late_look(struct swift *it)
{
    struct sim_world *world = it->scenario->world;
    /* What was to be late is late, also where all is healed before: pauses and stalls last HEALED_US at most. */
    if (it->scenario->faults_over && !it->healed) it->stalled_until_us = world->now_us + HEALED_US;
    /* And a connection may carry bytes that come later still. */
    if (it->scenario->faults_over && !it->healed && it->conn) it->actor->net.close(it->conn);
    it->healed = it->scenario->faults_over;
    if (it->server && it->server->disk->stalled_us > it->stalled_until_us)
        it->stalled_until_us = it->server->disk->stalled_us;
    if (it->server && it->server->process->paused_until_us > it->stalled_until_us)
        it->stalled_until_us = it->server->process->paused_until_us;
    if (!is_calm(it)) it->calm_us = UINT64_MAX;
    if (it->calm_us == UINT64_MAX && is_calm(it)) it->calm_us = world->now_us;
    if (it->asked_us == 0 || it->calm_us == UINT64_MAX || it->stream == 0) return;
    uint64_t since_us = it->calm_us + SETTLE_US;
    if (since_us < it->asked_us) since_us = it->asked_us;
    if (world->now_us <= since_us + SWIFT_US_MAX) return;
    if (!it->scenario->faults_over && it->scenario->server_count > 1 &&
        sim_waits_conns_are_troubled(it->actor->process, it->server->process))
        it->calm_us = UINT64_MAX;
    else
        sim_fail(world,
                 "A10 stuck: %s of a stream that nobody troubles is not answered by %s within "
                 "%d ms",
                 ask_words[it->ask], it->server->name, SWIFT_US_MAX / 1000);
}

static void ask(struct swift *it)
{
    uint8_t request[2 * REQUEST_BYTES];
    if (it->asked_us || !it->open || it->answers_left) return;
    struct leat_log_ref ref = {it->stream, 0, 0};
    if (it->stream != 0 && !sim_log_epoch(it->server, ref, &it->epoch)) return;
    size_t bytes = request_make(it, request);
    it->asked_us = it->scenario->world->now_us;
    it->answers_left = 1;
    (void)it->actor->net.send_copy(it->conn, request, bytes);
}

static void step(struct sim_world *world, struct sim_event *event)
{
    struct swift *it = event->a;
    const struct leat_net *net = &it->actor->net;
    if (it->over) {
        if (it->conn) net->close(it->conn);
        return;
    }
    late_look(it);
    const struct sim_server *owner = owner_find(it);
    bool other = owner != it->server || (owner && owner->boots != it->boots);
    if (other && it->conn) net->close(it->conn);
    if (!it->conn && owner && sim_serves(owner)) {
        it->server = owner;
        it->boots = owner->boots;
        it->calm_us = UINT64_MAX;
        if (net->connect(net->ctx, owner->address, &handler, it, &it->conn) != LEAT_OK)
            it->conn = NULL;
    }
    if (it->conn && event->n % (EVERY_US / LOOK_US) == 0) ask(it);
    uint64_t n = event->n + 1;
    sim_actor_post(it->actor, LOOK_US, step, it)->n = n;
    (void)world;
}

void sim_swift_start(struct scenario *scenario)
{
    /* Where disks are lost, or memory is short, its own node is in trouble. */
    if (scenario->victim || scenario->rows_rot || scenario->budget) return;
    struct swift *it = calloc(1, sizeof *it);
    LEAT_ASSERT(it != NULL);
    it->scenario = scenario;
    it->actor = sim_idle_actor(scenario->world, "swift");
    it->calm_us = UINT64_MAX;
    swift_of_seed = it;
    sim_actor_post(it->actor, LOOK_US, step, it);
    sim_torment_start(scenario);
}

void sim_swift_end(void)
{
    if (swift_of_seed) swift_of_seed->over = true;
}
