/* A hostile client, and the honest ones that watch whether it makes them wait.
 *
 * A schedule is a sequence of operations: one byte, whose low four bits are the operation and whose high
 * four bits are its argument, then the bytes that the operation takes. Every schedule means something, so
 * that any mutation of one is another. */
#include "tests/sim/stranger.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "broker/core.h"
#include "coordinator/private.h"
#include "link/link.h"
#include "store/private.h"
#include "wire/frame.h"
#include "wire/message.h"

enum {
    QUEUED_BYTES_MAX = 64 * 1024, /* until a connection is open */
    FRAME_BYTES_MAX = 4096,
    OPS_PER_TURN = 64,
    OPS_MAX = 4096,
    REPEATS_MAX = 64,
    PULSES = 4,
    HEAP_SPARE_BYTES = 32 * 1024 * 1024,
    PULSE_BYTES_MAX = 128,
    PULSE_FIRST_BYTES = 9,
    PULSE_EVERY_US = 500 * 1000,
    ANSWER_US_MAX = 10 * 1000 * 1000,
    SETTLE_US = 100 * 1000,
};

struct stranger_conn {
    struct stranger *stranger;
    struct leat_conn *conn; /* NULL: closed */
    bool open, kafka, node;
    uint32_t number; /* of requests */
    size_t queued_bytes;
    uint8_t queued[QUEUED_BYTES_MAX];
};

/* An honest client: it connects, asks, and is answered, again and again. */
struct pulse {
    struct stranger *stranger;
    struct leat_conn *conn;
    unsigned server;
    bool kafka;
    bool open;         /* and the first piece of its request is sent */
    uint64_t since_us; /* it waits for an answer since then; 0: it waits for none */
    unsigned boots;    /* of the server it asks */
};

struct stranger {
    struct scenario *scenario;
    struct sim_process *process, *honest;
    struct sim_actor *actor, *honest_actor;
    const uint8_t *bytes;
    size_t count, at;
    unsigned ops, repeats_left;
    size_t repeat_from, repeat_to;
    uint64_t begun_us, dribble_until_us, heap_before;
    bool ended;
    unsigned conn_next;
    struct stranger_conn conns[SIM_STRANGER_CONNS];
    struct pulse pulses[PULSES];
    unsigned answered_after; /* pulses that were answered since the schedule ended */
};
static struct stranger *stranger_of_seed;
#define STRANGE "strange"

static uint64_t heap_bytes(void)
{
    static const enum leat_mem_tag tags[] = {LEAT_MEM_WIRE,       LEAT_MEM_STORE,  LEAT_MEM_LOG,
                                             LEAT_MEM_ROWS,       LEAT_MEM_BROKER, LEAT_MEM_NET,
                                             LEAT_MEM_COORDINATOR};
    uint64_t bytes = 0;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        bytes += leat_mem_bytes(tags[i]);
    return bytes;
}

/* ---- the schedule's bytes ---- */

static uint8_t take(struct stranger *it)
{
    return it->at < it->count ? it->bytes[it->at++] : 0;
}

static size_t take_bytes(struct stranger *it, size_t count, const uint8_t **out)
{
    size_t left = it->count - it->at;
    if (count > left) count = left;
    *out = it->bytes + it->at;
    it->at += count;
    return count;
}

/* ---- connections ---- */

static void conn_on_open(void *user, struct leat_conn *conn)
{
    struct stranger_conn *it = user;
    it->open = true;
    if (it->queued_bytes)
        (void)it->stranger->actor->net.send_copy(conn, it->queued, it->queued_bytes);
    it->queued_bytes = 0;
}

static size_t conn_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                            size_t *want_bytes)
{
    (void)user, (void)conn, (void)data;
    *want_bytes = 0;
    return bytes;
}

static void conn_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct stranger_conn *it = user;
    (void)conn, (void)why;
    it->conn = NULL;
    it->open = false;
}

static const struct leat_conn_handler conn_handler = {conn_on_open, conn_on_bytes, conn_on_closed};

static struct stranger_conn *conn_of(struct stranger *it, unsigned argument)
{
    return &it->conns[(it->conn_next + SIM_STRANGER_CONNS - 1 - argument) % SIM_STRANGER_CONNS];
}

static void conn_send(struct stranger_conn *it, const uint8_t *bytes, size_t count)
{
    if (!it->conn) return;
    if (!it->node && memmem(bytes, count, STRANGE "s", strlen(STRANGE) + 1)) return;
    if (it->open) {
        (void)it->stranger->actor->net.send_copy(it->conn, bytes, count);
        return;
    }
    if (it->queued_bytes + count > sizeof it->queued) return;
    memcpy(it->queued + it->queued_bytes, bytes, count);
    it->queued_bytes += count;
}

/* Argument: bits 0 and 1 the port (clients, Kafka, nodes), bits 2 and 3 the server. */
static void connect_op(struct stranger *it, unsigned argument)
{
    struct scenario *scenario = it->scenario;
    const struct sim_server *server = &scenario->servers[(argument >> 2) % scenario->server_count];
    unsigned port = argument & 3;
    if (port == 2 && scenario->server_count == 1)
        port = 0; /* a server alone has no port for nodes */
    const char *address = port == 1   ? server->kafka_address
                          : port == 2 ? server->node_address
                                      : server->address;
    struct stranger_conn *conn = &it->conns[it->conn_next++ % SIM_STRANGER_CONNS];
    if (conn->conn) {
        it->conn_next--; /* the oldest is closed first; its place is free at the next turn */
        it->actor->net.close(conn->conn);
        return;
    }
    conn->stranger = it;
    conn->open = false;
    conn->queued_bytes = 0;
    conn->number = 0;
    conn->kafka = port == 1;
    conn->node = port == 2;
    if (it->actor->net.connect(it->actor->net.ctx, address, &conn_handler, conn, &conn->conn) !=
        LEAT_OK)
        conn->conn = NULL;
}

/* ---- what it sends ---- */

/* A frame of the native protocol or between nodes, with a right checksum. */
static void frame_send(struct stranger_conn *conn, unsigned kind, const uint8_t *control,
                       size_t control_bytes, const uint8_t *payload, size_t payload_bytes)
{
    uint8_t bytes[LEAT_FRAME_HEADER_BYTES + 2 * FRAME_BYTES_MAX];
    if (control_bytes > FRAME_BYTES_MAX) control_bytes = FRAME_BYTES_MAX;
    if (payload_bytes > FRAME_BYTES_MAX) payload_bytes = FRAME_BYTES_MAX;
    memcpy(bytes + LEAT_FRAME_HEADER_BYTES, control, control_bytes);
    if (payload_bytes)
        memcpy(bytes + LEAT_FRAME_HEADER_BYTES + control_bytes, payload, payload_bytes);
    leat_frame_encode(bytes, (enum leat_kind)kind, LEAT_PROTOCOL_VERSION_MAX, 0, ++conn->number,
                      (uint32_t)control_bytes, (uint32_t)payload_bytes);
    conn_send(conn, bytes, LEAT_FRAME_HEADER_BYTES + control_bytes + payload_bytes);
}

static void hello_send(struct stranger_conn *conn, int64_t lane)
{
    uint8_t control[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_u64(&writer, LEAT_PROTOCOL_VERSION_MIN);
    leat_msg_write_u64(&writer, LEAT_PROTOCOL_VERSION_MAX);
    leat_msg_write_string(&writer, "stranger", 8);
    leat_msg_write_i64(&writer, lane);
    frame_send(conn, LEAT_KIND_HELLO, control, writer.used, NULL, 0);
}

/* A frame's beginning: a length, and one byte more or none. */
static void announce(struct stranger_conn *conn, unsigned argument)
{
    uint8_t bytes[LEAT_FRAME_HEADER_BYTES + 1] = {0};
    uint32_t length = (uint32_t)1 << (8 + argument); /* 256 bytes to 8 MiB */
    if (conn->kafka) {
        leat_put_be32(bytes, length);
        conn_send(conn, bytes, 5);
        return;
    }
    leat_frame_encode(bytes, LEAT_KIND_APPEND, LEAT_PROTOCOL_VERSION_MAX, 0, 1, 0, length - 64);
    conn_send(conn, bytes, sizeof bytes);
}

static void kafka_send(struct stranger *it, struct stranger_conn *conn, unsigned argument)
{
    uint8_t bytes[4 + 10 + FRAME_BYTES_MAX];
    const uint8_t *body;
    int16_t key = take(it), version = (int16_t)argument;
    size_t count = take_bytes(it, take(it), &body);
    leat_put_be32(bytes, (uint32_t)(10 + count));
    leat_put_be16(bytes + 4, (uint16_t)key);
    leat_put_be16(bytes + 6, (uint16_t)version);
    leat_put_be32(bytes + 8, ++conn->number);
    leat_put_be16(bytes + 12, 0); /* an empty client id */
    memcpy(bytes + 14, body, count);
    conn_send(conn, bytes, 14 + count);
}

/* The first frame between nodes, of a node that nobody has invited. Argument: bit 0 the cluster's id is
 * known, bits 1 and 2 the purpose, bit 3 it takes another node's name. */
static void node_hello_send(struct stranger *it, struct stranger_conn *conn, unsigned argument)
{
    static const uint8_t none[16];
    uint8_t control[256];
    const struct sim_server *other = &it->scenario->servers[take(it) % it->scenario->server_count];
    const uint8_t *id = none;
    bool known = (argument & 1) && other->node && other->process->alive && other->ready;
    if (known) id = other->node->cluster_id;
    const char *name = argument & 8 ? other->name : "stranger";
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 8);
    leat_msg_write_u64(&writer, LEAT_NODE_VERSION_MIN);
    leat_msg_write_u64(&writer, LEAT_NODE_VERSION_MAX);
    leat_msg_write_bin(&writer, id, 16);
    leat_msg_write_string(&writer, name, strlen(name));
    leat_msg_write_u64(&writer, take(it));
    leat_msg_write_u64(&writer, 1);
    leat_msg_write_u64(&writer, (argument >> 1) & 3);
    leat_msg_write_i64(&writer, -1);
    frame_send(conn, LEAT_NODE_KIND_HELLO, control, writer.used, NULL, 0);
}

/* A request between nodes: kind 256 to 511; control and payload from the schedule. */
static void node_frame_send(struct stranger *it, struct stranger_conn *conn)
{
    const uint8_t *control, *payload;
    unsigned kind = LEAT_NODE_KIND_HELLO + take(it);
    size_t control_bytes = take_bytes(it, take(it), &control);
    size_t payload_bytes = take_bytes(it, take(it), &payload);
    frame_send(conn, kind, control, control_bytes, payload, payload_bytes);
}

/* Pull all that a stream has, many times over, on one connection; argument: how often. */
static void pull_send(struct stranger *it, struct stranger_conn *conn, unsigned argument)
{
    const struct sim_stream *stream = &it->scenario->streams[take(it) % SIM_STREAMS];
    uint8_t control[64];
    for (unsigned i = 0; i <= argument * 8; i++) {
        struct leat_msg_writer writer;
        leat_msg_writer_init(&writer, control, sizeof control);
        leat_msg_fetch_write(&writer, &(struct leat_msg_fetch){1, LEAT_FETCH_BYTES_MAX, 100, 1});
        leat_msg_fetch_log_write(
            &writer, &(struct leat_msg_fetch_log){.log = {.stream = stream->id}, .epoch = 1});
        frame_send(conn, LEAT_KIND_FETCH, control, writer.used, NULL, 0);
    }
}

static void request_send(struct stranger *it, struct stranger_conn *conn)
{
    const uint8_t *control, *payload;
    unsigned kind = 1 + take(it) % LEAT_KIND_LOG_BELOW;
    size_t control_bytes = take_bytes(it, take(it), &control);
    size_t payload_bytes = take_bytes(it, take(it), &payload);
    frame_send(conn, kind, control, control_bytes, payload, payload_bytes);
}

static void bytes_send(struct stranger *it, struct stranger_conn *conn)
{
    const uint8_t *bytes;
    size_t count = take_bytes(it, take(it), &bytes);
    conn_send(conn, bytes, count);
}

/* ---- faults ---- */

/* Argument: bit 3 a server is killed, else connections are reset. */
static void fault_op(struct stranger *it, unsigned argument)
{
    struct scenario *scenario = it->scenario;
    struct sim_server *server = &scenario->servers[argument % scenario->server_count];
    if (!server->process->alive || !server->ready) return;
    if (argument & 8)
        sim_process_die(server->process, SIM_DEATH_KILL);
    else
        (void)sim_net_reset(server->process, 300);
}

/* ---- operations ---- */

/* The next ops are done again, on connections of their own where they connect. */
static void repeat_op(struct stranger *it, unsigned argument)
{
    unsigned length = 1 + take(it) % 32;
    if (it->repeats_left) return;
    it->repeat_from = it->at;
    it->repeat_to = it->at + length < it->count ? it->at + length : it->count;
    it->repeats_left = (argument + 1) * (REPEATS_MAX / 16);
}

static uint64_t op_run(struct stranger *it, uint8_t op)
{
    unsigned argument = op >> 4;
    struct stranger_conn *newest = conn_of(it, 0), *conn = conn_of(it, argument);
    switch ((enum sim_stranger_op)(op & 15)) {
    case SIM_STRANGER_WAIT: /* 0.25 ms to 8 s */
        return (uint64_t)250 << argument;
    case SIM_STRANGER_CONNECT:
        connect_op(it, argument);
        return 0;
    case SIM_STRANGER_BYTES:
        bytes_send(it, conn);
        return 0;
    case SIM_STRANGER_ANNOUNCE:
        announce(newest, argument);
        return 0;
    case SIM_STRANGER_HELLO:
        hello_send(newest, (int64_t)argument - 1);
        return 0;
    case SIM_STRANGER_REQUEST:
        request_send(it, conn);
        return 0;
    case SIM_STRANGER_KAFKA:
        kafka_send(it, newest, argument);
        return 0;
    case SIM_STRANGER_NODE_HELLO:
        node_hello_send(it, newest, argument);
        return 0;
    case SIM_STRANGER_NODE_FRAME:
        node_frame_send(it, conn);
        return 0;
    case SIM_STRANGER_CLOSE:
        if (conn->conn) it->actor->net.close(conn->conn);
        return 0;
    case SIM_STRANGER_DEAF:
        if (conn->conn && conn->open) it->actor->net.pause(conn->conn);
        return 0;
    case SIM_STRANGER_HEAR:
        if (conn->conn && conn->open) it->actor->net.resume(conn->conn);
        return 0;
    case SIM_STRANGER_REPEAT:
        repeat_op(it, argument);
        return 0;
    case SIM_STRANGER_DRIBBLE: /* one byte a second on every connection, for so many seconds */
        it->dribble_until_us = it->scenario->world->now_us + (argument + 1) * 1000000ull;
        return 0;
    case SIM_STRANGER_PULL:
        pull_send(it, newest, argument);
        return 0;
    case SIM_STRANGER_FAULT:
        fault_op(it, argument);
        return 0;
    }
    return 0;
}

static void schedule_end(struct stranger *it)
{
    if (it->ended) return;
    sim_trace(it->scenario->world, "the stranger's schedule has ended");
    it->ended = true;
    for (unsigned i = 0; i < SIM_STRANGER_CONNS; i++)
        if (it->conns[i].conn) it->actor->net.close(it->conns[i].conn);
}

static void step(struct sim_world *world, struct sim_event *event)
{
    struct stranger *it = event->a;
    uint64_t wait_us = 0;
    if (!it->scenario->streams_made) {
        sim_actor_post(it->actor, SETTLE_US, step, it);
        return;
    }
    if (it->begun_us == 0) {
        it->begun_us = world->now_us;
        it->heap_before = heap_bytes();
    }
    for (unsigned i = 0; i < OPS_PER_TURN && wait_us == 0; i++) {
        if (it->repeats_left && it->at >= it->repeat_to) {
            it->repeats_left--;
            if (it->repeats_left) it->at = it->repeat_from;
            wait_us = 500; /* what was asked of the network happens */
            break;
        }
        bool over = it->at >= it->count || ++it->ops > OPS_MAX ||
                    world->now_us - it->begun_us > SIM_STRANGER_US_MAX;
        if (over) {
            schedule_end(it);
            return;
        }
        wait_us = op_run(it, take(it));
    }
    sim_actor_post(it->actor, wait_us ? wait_us : 100, step, it);
}

static void dribble(struct sim_world *world, struct sim_event *event)
{
    static const uint8_t byte;
    struct stranger *it = event->a;
    if (it->ended) return;
    if (world->now_us < it->dribble_until_us)
        for (unsigned i = 0; i < SIM_STRANGER_CONNS; i++)
            conn_send(&it->conns[i], &byte, 1);
    sim_actor_post(it->actor, 1000000, dribble, it);
}

/* ---- the honest ones ---- */

/* Its request. A slow line brings it in two pieces, so that an honest frame is cut, too. */
static size_t pulse_request(const struct pulse *pulse, uint8_t *bytes, size_t capacity)
{
    memset(bytes, 0, capacity);
    if (pulse->kafka) { /* ApiVersions 0 */
        leat_put_be32(bytes, 10);
        leat_put_be16(bytes + 4, 18);
        leat_put_be32(bytes + 8, 1);
        return 14;
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes + LEAT_FRAME_HEADER_BYTES,
                         capacity - LEAT_FRAME_HEADER_BYTES);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_u64(&writer, LEAT_PROTOCOL_VERSION_MIN);
    leat_msg_write_u64(&writer, LEAT_PROTOCOL_VERSION_MAX);
    leat_msg_write_string(&writer, "honest", 6);
    leat_msg_write_i64(&writer, (int64_t)(pulse->stranger->answered_after % 2));
    leat_frame_encode(bytes, LEAT_KIND_HELLO, LEAT_PROTOCOL_VERSION_MAX, 0, 1,
                      (uint32_t)writer.used, 0);
    return LEAT_FRAME_HEADER_BYTES + writer.used;
}

static void pulse_on_open(void *user, struct leat_conn *conn)
{
    struct pulse *pulse = user;
    uint8_t bytes[PULSE_BYTES_MAX];
    pulse->open = true;
    (void)pulse_request(pulse, bytes, sizeof bytes);
    (void)pulse->stranger->honest_actor->net.send_copy(conn, bytes, PULSE_FIRST_BYTES);
}

static void pulse_rest_send(struct pulse *pulse)
{
    uint8_t bytes[PULSE_BYTES_MAX];
    size_t count = pulse_request(pulse, bytes, sizeof bytes);
    pulse->open = false; /* all of it is sent */
    (void)pulse->stranger->honest_actor->net.send_copy(pulse->conn, bytes + PULSE_FIRST_BYTES,
                                                       count - PULSE_FIRST_BYTES);
}

static size_t pulse_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                             size_t *want_bytes)
{
    struct pulse *pulse = user;
    (void)data;
    *want_bytes = 0;
    pulse->since_us = 0;
    if (pulse->stranger->ended) pulse->stranger->answered_after++;
    pulse->stranger->honest_actor->net.close(conn);
    return bytes;
}

static void pulse_on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct pulse *pulse = user;
    (void)conn, (void)why;
    pulse->conn = NULL;
    pulse->open = false;
}

static const struct leat_conn_handler pulse_handler = {pulse_on_open, pulse_on_bytes,
                                                       pulse_on_closed};

static bool serves(const struct sim_server *server)
{
    return server->process && server->process->alive && server->ready && !server->stopping;
}

static void pulse_look(struct pulse *pulse)
{
    struct stranger *it = pulse->stranger;
    struct scenario *scenario = it->scenario;
    uint64_t now_us = scenario->world->now_us;
    const struct sim_server *server = &scenario->servers[pulse->server];
    bool asked_same = pulse->boots == server->boots && serves(server);
    if (pulse->since_us && !asked_same) pulse->since_us = 0; /* it has died: no server's fault */
    if (pulse->since_us && now_us - pulse->since_us > ANSWER_US_MAX)
        sim_fail(scenario->world,
                 "A10 stuck: an honest client of %s, %s, is not answered within %d s", server->name,
                 pulse->kafka ? "Kafka's port" : "the clients' port", ANSWER_US_MAX / 1000000);
    if (pulse->conn && pulse->open) pulse_rest_send(pulse);
    if (pulse->conn) return;
    if (pulse->since_us == 0) {
        pulse->server = (pulse->server + 1) % scenario->server_count;
        pulse->kafka = !pulse->kafka;
        server = &scenario->servers[pulse->server];
        if (!serves(server)) return;
        pulse->since_us = now_us;
        pulse->boots = server->boots;
    }
    const struct leat_net *net = &it->honest_actor->net;
    if (net->connect(net->ctx, pulse->kafka ? server->kafka_address : server->address,
                     &pulse_handler, pulse, &pulse->conn) != LEAT_OK)
        pulse->conn = NULL;
}

/* Clients may make streams, but of such a name the stranger asks the port of nodes only. */
static void strange_check(const struct scenario *scenario, const struct sim_server *server,
                          const char *name)
{
    if (strncmp(name, STRANGE, strlen(STRANGE)) == 0)
        sim_fail(scenario->world,
                 "%s has applied a command of a peer that has proved nothing: \"%s\"", server->name,
                 name);
}

static void nothing_strange(const struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!serves(server)) continue;
        const struct leat_coordinator *coordinator = leat_node_coordinator(server->node);
        const struct leat_machine *machine = &coordinator->machine;
        for (uint32_t s = 0; s < machine->stream_count; s++)
            strange_check(scenario, server, machine->streams[s].desc->name);
        for (uint32_t n = 0; n < machine->node_count; n++)
            strange_check(scenario, server, machine->nodes[n].info.name);
        if (coordinator->failed != LEAT_OK)
            sim_fail(scenario->world, "%s: %s", server->name, coordinator->failed_why);
    }
}

/* What the servers' heaps have grown by since the schedule began, and what they have queued for clients who
 * do not take it, is within what their budgets leave beside the pools. (What they have from the start on,
 * stocks of structs, is touched only where it is used.) All share this process's heap. Only while nobody has
 * died: the dead give nothing back. */
static void heap_check(const struct stranger *it)
{
    const struct scenario *scenario = it->scenario;
    uint64_t bytes = heap_bytes(), most = it->heap_before;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!serves(server) || server->boots != 1) return;
        bytes += sim_net_owed(server->process, NULL).waiting_bytes;
        most += scenario->memory_bytes + scenario->memory_bytes / 10 + HEAP_SPARE_BYTES -
                leat_node_store(server->node)->pool.added_bytes;
    }
    if (it->begun_us && bytes > most)
        sim_fail(scenario->world,
                 "the servers' heaps have %llu bytes, beside their pools %llu are left to them",
                 (unsigned long long)bytes, (unsigned long long)most);
}

static void honest_step(struct sim_world *world, struct sim_event *event)
{
    struct stranger *it = event->a;
    (void)world;
    for (unsigned i = 0; i < PULSES; i++)
        pulse_look(&it->pulses[i]);
    nothing_strange(it->scenario);
    heap_check(it);
    sim_actor_post(it->honest_actor, PULSE_EVERY_US, honest_step, it);
}

/* ---- life ---- */

static void nothing(void *self)
{
    (void)self;
}

static const struct leat_actor_ops idle_actor = {nothing, NULL};

static struct sim_actor *actor_make(struct sim_world *world, const char *name,
                                    struct sim_process **out)
{
    *out = sim_process_create(world, name);
    struct sim_actor *actor = sim_actor_create(*out, 0);
    sim_actor_register(actor, actor, &idle_actor);
    return actor;
}

void sim_stranger_start(struct scenario *scenario, const uint8_t *bytes, size_t count)
{
    struct stranger *it = calloc(1, sizeof *it);
    LEAT_ASSERT(it != NULL);
    it->scenario = scenario;
    it->bytes = bytes;
    it->count = count;
    it->actor = actor_make(scenario->world, "stranger", &it->process);
    it->honest_actor = actor_make(scenario->world, "honest", &it->honest);
    for (unsigned i = 0; i < PULSES; i++)
        it->pulses[i] =
            (struct pulse){.stranger = it, .server = i % scenario->server_count, .kafka = i & 1};
    stranger_of_seed = it;
    sim_actor_post(it->actor, SETTLE_US, step, it);
    sim_actor_post(it->actor, SETTLE_US, dribble, it);
    sim_actor_post(it->honest_actor, SETTLE_US, honest_step, it);
}

bool sim_stranger_done(struct scenario *scenario)
{
    const struct stranger *it = stranger_of_seed;
    (void)scenario;
    return it->ended && it->answered_after >= 2 * PULSES;
}
