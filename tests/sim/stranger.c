/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile client, and what must hold whatever the client does (honest.c: whether it makes others wait).
 *
 * A schedule is a sequence of operations: a byte, whose low four bits are the operation and whose high four bits are
 * its argument, then the bytes that the operation takes. Every schedule means something, so that any mutation of a
 * schedule is another schedule. */
#include "tests/sim/stranger.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "broker/probe.h"
#include "coordinator/probe.h"
#include "link/link.h"
#include "store/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/kafka_client.h"
#include "wire/frame.h"
#include "wire/message.h"

enum {
    QUEUED_BYTES_MAX = 64 * 1024, /* until a connection is open */
    FRAME_BYTES_MAX = 4096,
    OPS_PER_TURN = 64,
    OPS_MAX = 4096,
    REPEATS_MAX = 64,
    HEAP_SPARE_BYTES = 32 * 1024 * 1024,
    LOOK_EVERY_US = 500 * 1000,
    SETTLE_US = 100 * 1000,
    STARTED_US = 1000 * 1000, /* logs are there again */
    TRICKLE_US = 1000 * 1000, /* pauses of producers, then, at most */
    SIP_BYTES = 200,
    NAMES = 255,
    CROWD = 240,               /* to CROWD + SIM_CROWDS - 1 */
    CROWD_REQUESTS_MAX = 5000, /* in all: whatever a schedule says, it ends within a child's time */
    NAMES_COUNT = 300,
    WINDOW_BYTES = 32 * 1024, /* what the network holds for each connection */
};

struct stranger_conn {
    struct stranger *stranger;
    struct leat_conn *conn; /* NULL: closed */
    bool open, kafka, node;
    bool sips; /* it reads SIP_BYTES a second */
    const struct sim_server *server;
    uint32_t number; /* of requests */
    size_t queued_bytes;
    uint8_t queued[QUEUED_BYTES_MAX];
};

struct stranger {
    struct scenario *scenario;
    struct sim_actor *actor;
    const uint8_t *bytes;
    size_t count, at;
    unsigned ops, repeats_left;
    size_t repeat_from, repeat_to;
    uint64_t begun_us, dribble_until_us, heap_before;
    bool ended, with_honest;
    size_t sip_bytes;
    unsigned conn_next, crowd_names, crowd_requests;
    struct stranger_conn conns[SIM_STRANGER_CONNS];
    bool old, aged;                  /* it comes when servers have started anew; they do */
    unsigned boots[SIM_SERVERS_MAX]; /* of the servers, when it came */
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
    const struct stranger_conn *it = user;
    (void)data;
    *want_bytes = 0;
    if (it->sips) it->stranger->actor->net.pause(conn);
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
    if (memmem(bytes, count, SIM_HONEST, strlen(SIM_HONEST))) return;
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
    conn->sips = false;
    conn->server = server;
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
    uint8_t bytes[SIM_ASK_BYTES_MAX];
    conn_send(conn, bytes, sim_ask_hello(bytes, "stranger", lane, ++conn->number));
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
    if (known) id = leat_node_cluster_id(other->node);
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

/* Its answer has twice as many bytes: a sentence for each stream that there is not. */
static void names_send(struct stranger_conn *conn)
{
    static uint8_t bytes[LEAT_FRAME_HEADER_BYTES + NAMES_COUNT * (LEAT_STREAM_NAME_BYTES_MAX + 8)];
    char name[LEAT_STREAM_NAME_BYTES_MAX];
    struct leat_msg_writer writer;
    memset(name, 'x', sizeof name);
    leat_msg_writer_init(&writer, bytes + LEAT_FRAME_HEADER_BYTES,
                         sizeof bytes - LEAT_FRAME_HEADER_BYTES);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_array(&writer, NAMES_COUNT);
    for (unsigned i = 0; i < NAMES_COUNT; i++)
        leat_msg_write_string(&writer, name, sizeof name);
    leat_msg_write_bool(&writer, false);
    LEAT_ASSERT(!writer.overflow);
    leat_frame_encode(bytes, LEAT_KIND_METADATA, LEAT_PROTOCOL_VERSION_MAX, 0, ++conn->number,
                      (uint32_t)writer.used, 0);
    conn_send(conn, bytes, LEAT_FRAME_HEADER_BYTES + writer.used);
}

/* Argument: how often. The byte taken: how (enum of SIM_CROWD_). */
static void crowd_send(struct stranger *it, struct stranger_conn *conn, enum sim_crowd what,
                       unsigned argument)
{
    static uint8_t bytes[SIM_KAFKA_REQUEST_BYTES_MAX];
    unsigned how = take(it);
    for (unsigned i = 0; conn->conn && conn->kafka && i <= argument * 8; i++) {
        if (++it->crowd_requests > CROWD_REQUESTS_MAX) return;
        conn_send(conn, bytes, sim_crowd_ask(bytes, what, how, &it->crowd_names, ++conn->number));
    }
}

/* Ask for much, many times over, on one connection; argument: how often. The byte taken: which stream, and which of
 * its logs that the server has, which is read from its beginning; NAMES: streams that there are not; CROWD and above:
 * groups that there are not. */
static void pull_send(struct stranger *it, struct stranger_conn *conn, unsigned argument)
{
    uint8_t bytes[SIM_ASK_BYTES_MAX], choice = take(it);
    struct sim_place place;
    if (choice >= CROWD && choice < CROWD + SIM_CROWDS) {
        crowd_send(it, conn, (enum sim_crowd)(choice - CROWD), argument);
        return;
    }
    for (unsigned i = 0; choice == NAMES && i <= argument * 8; i++)
        names_send(conn);
    if (choice == NAMES || !conn->conn ||
        !sim_place_find(conn->server, choice % SIM_STREAMS, choice / SIM_STREAMS, &place))
        return;
    for (unsigned i = 0; i <= argument * 8; i++) {
        uint32_t number = ++conn->number;
        conn_send(conn, bytes,
                  conn->kafka ? sim_ask_kafka_fetch(bytes, &place, 0, number)
                              : sim_ask_fetch(bytes, &place, 0, number));
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

/* Argument: bit 3 a server is killed, else connections are reset; 12 and above: all servers end, some by the power,
 * when a commit of an honest group is answered next. */
static void fault_op(struct stranger *it, unsigned argument)
{
    struct scenario *scenario = it->scenario;
    struct sim_server *server = &scenario->servers[argument % scenario->server_count];
    if (!server->process->alive || !server->ready) return;
    if (argument >= 12)
        sim_members_strike();
    else if (argument & 8)
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

/* Argument: bits 0 to 2 which connection; bit 3: it reads a little every second, else nothing. */
static void deaf_op(struct stranger *it, unsigned argument)
{
    struct stranger_conn *conn = conn_of(it, argument & 7);
    if (!conn->conn || !conn->open) return;
    conn->sips = (argument & 8) != 0;
    if (conn->sips) it->actor->read_bytes_max = it->sip_bytes;
    it->actor->net.pause(conn->conn);
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
        deaf_op(it, argument);
        return 0;
    case SIM_STRANGER_HEAR:
        conn->sips = false;
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
    if (it->with_honest) sim_honest_alone();
    for (unsigned i = 0; i < SIM_STRANGER_CONNS; i++)
        if (it->conns[i].conn) it->actor->net.close(it->conns[i].conn);
}

static void servers_end(struct scenario *scenario)
{
    if (scenario->server_count == 1) {
        sim_server_stop(&scenario->servers[0]);
        return;
    }
    for (unsigned i = 0; i < scenario->server_count; i++)
        sim_process_die(scenario->servers[i].process, SIM_DEATH_KILL);
}

/* Its time has come: streams are made. Where records are to be old, three of four are acked, too, and all servers
 * have started anew since, so that what was stored before lies in files; the others come slowly meanwhile. */
static bool may_begin(struct stranger *it)
{
    struct scenario *scenario = it->scenario;
    if (!scenario->streams_made) return false;
    if (!it->old) return true;
    if (!it->aged) {
        if (check_acked_count(scenario->check) < SIM_STRANGER_OLD_RECORDS * 3 / 4) return false;
        sim_trace(scenario->world, "servers end, so that records are old");
        it->aged = true;
        scenario->pause_us_max = TRICKLE_US;
        servers_end(scenario);
    }
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        bool started = sim_serves(server) && server->boots > 1;
        if (!started || sim_process_now_us(server->process) < server->ready_us + STARTED_US)
            return false;
    }
    return true;
}

static void begin(struct stranger *it)
{
    it->begun_us = it->scenario->world->now_us;
    it->heap_before = heap_bytes();
    for (unsigned i = 0; i < it->scenario->server_count; i++)
        it->boots[i] = it->scenario->servers[i].boots;
}

static void step(struct sim_world *world, struct sim_event *event)
{
    struct stranger *it = event->a;
    uint64_t wait_us = 0;
    if (it->begun_us == 0) {
        if (!may_begin(it)) {
            sim_actor_post(it->actor, SETTLE_US, step, it);
            return;
        }
        begin(it);
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

static void every_second(struct sim_world *world, struct sim_event *event)
{
    static const uint8_t byte;
    struct stranger *it = event->a;
    if (it->ended) return;
    for (unsigned i = 0; i < SIM_STRANGER_CONNS; i++) {
        struct stranger_conn *conn = &it->conns[i];
        if (world->now_us < it->dribble_until_us) conn_send(conn, &byte, 1);
        if (conn->sips && conn->conn && conn->open) it->actor->net.resume(conn->conn);
    }
    sim_actor_post(it->actor, 1000000, every_second, it);
}

/* ---- what must hold ---- */

/* Clients may make streams, but of such a name the stranger asks the port of nodes only. */
static void strange_check(const struct scenario *scenario, const struct sim_server *server,
                          const char *name)
{
    if (strncmp(name, STRANGE, strlen(STRANGE)) == 0)
        sim_fail(scenario->world,
                 "%s has applied a command of a peer that has proved nothing: \"%s\"", server->name,
                 name);
}

static void nothing_strange(const struct stranger *it)
{
    const struct scenario *scenario = it->scenario;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!sim_serves(server)) continue;
        const struct leat_coordinator *coordinator = leat_node_coordinator(server->node);
        const struct leat_coordinator_seen seen = leat_coordinator_see(coordinator);
        const struct leat_machine *machine = leat_coordinator_tables(coordinator);
        for (uint32_t s = 0; s < machine->stream_count; s++)
            strange_check(scenario, server, machine->streams[s].desc->name);
        for (uint32_t n = 0; n < machine->node_count; n++)
            strange_check(scenario, server, machine->nodes[n].info.name);
        /* Beside others disks fail, too. */
        if (seen.failed != LEAT_OK && it->with_honest)
            sim_fail(scenario->world, "%s: %s", server->name, seen.failed_why);
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
    if (it->begun_us == 0 || scenario->budget) return;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        if (!sim_serves(server) || server->boots != it->boots[i]) return;
        bytes += sim_net_owed(server->process, NULL).waiting_bytes;
        most += scenario->memory_bytes + scenario->memory_bytes / 10 + HEAP_SPARE_BYTES -
                leat_store_pool_bytes(leat_node_store(server->node));
    }
    if (bytes > most)
        sim_fail(scenario->world,
                 "the servers' heaps have %llu bytes, beside their pools %llu are left to them",
                 (unsigned long long)bytes, (unsigned long long)most);
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct stranger *it = event->a;
    nothing_strange(it);
    heap_check(it);
    sim_world_at(world, world->now_us + LOOK_EVERY_US, look, it);
}

/* ---- life ---- */

static struct stranger *start(struct scenario *scenario, const uint8_t *bytes, size_t count)
{
    struct stranger *it = calloc(1, sizeof *it);
    LEAT_ASSERT(it != NULL);
    it->scenario = scenario;
    it->sip_bytes = SIP_BYTES;
    it->bytes = bytes;
    it->count = count;
    it->actor = sim_idle_actor(scenario->world, "stranger");
    it->actor->window_bytes = WINDOW_BYTES;
    stranger_of_seed = it;
    sim_actor_post(it->actor, SETTLE_US, step, it);
    sim_actor_post(it->actor, SETTLE_US, every_second, it);
    sim_world_at(scenario->world, scenario->world->now_us + LOOK_EVERY_US, look, it);
    return it;
}

void sim_stranger_start(struct scenario *scenario, bool old, const uint8_t *bytes, size_t count)
{
    struct stranger *it = start(scenario, bytes, count);
    it->old = old;
    it->with_honest = true;
    sim_honest_start(scenario);
}

void sim_stranger_beside(struct scenario *scenario, const uint8_t *bytes, size_t count,
                         size_t sip_bytes)
{
    start(scenario, bytes, count)->sip_bytes = sip_bytes;
    sim_fault_struck(scenario->world, SIM_FAULT_STRANGER);
}

bool sim_stranger_done(struct scenario *scenario)
{
    (void)scenario;
    return stranger_of_seed->ended && sim_honest_answered();
}
