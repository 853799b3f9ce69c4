/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers at the port where nodes meet, who speak as nodes do and do not have the key: demands without a hello, with
 * an old hello, with a hello whose tag is made up, behind a nonce or not; halves of frames; silence; and as many
 * strangers as their address may hold. They are told nothing but a nonce, which is checked here. The other clients of
 * the seed find out that none of the demands is carried out, and that nobody is kept away. */
#include "tests/sim/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "crypto/mac.h"
#include "link/link.h"

enum {
    IMPOSTOR_CONNS_MAX = 24,
    IMPOSTOR_CROWD_MAX = LEAT_LINK_STRANGERS_OF_ADDRESS_MAX + 20,
    WAVES_MAX = 5,
    STEP_US_MAX = 300 * 1000,
    WAVE_US_MAX = 3 * 1000 * 1000,
    SAID_BYTES_MAX = 2048,
    NONCE_FRAME_BYTES = LEAT_FRAME_HEADER_BYTES + 1 + 2 + LEAT_NONCE_BYTES,
    KIND_SUBMIT = LEAT_NODE_KIND_COORDINATOR + 4,
    KIND_DETECT_PING = LEAT_NODE_KIND_COORDINATOR + 10,
};

struct impostor;
struct guise {
    struct impostor *impostor;
    struct leat_conn *conn; /* NULL: none */
    size_t told;
    bool open;
};
struct impostor {
    struct sim_client *client;
    struct guise guises[IMPOSTOR_CROWD_MAX];
    unsigned wanted, waves_left;
    uint64_t wave_ends_us;
    bool gone;
};

static void impostor_step(struct sim_world *world, struct sim_event *event);

/* ---- what they say ---- */

static size_t frame_end(uint8_t *frame, uint16_t kind, size_t control_bytes, const void *payload,
                        size_t payload_bytes)
{
    leat_frame_encode(frame, (enum leat_kind)kind, LEAT_NODE_VERSION_MAX, 0, 1,
                      (uint32_t)control_bytes, (uint32_t)payload_bytes);
    if (payload_bytes)
        memcpy(frame + LEAT_FRAME_HEADER_BYTES + control_bytes, payload, payload_bytes);
    return LEAT_FRAME_HEADER_BYTES + control_bytes + payload_bytes;
}

static void body_begin(struct leat_msg_writer *body, uint8_t *frame, uint32_t fields)
{
    leat_msg_writer_init(body, frame + LEAT_FRAME_HEADER_BYTES, 512);
    leat_msg_write_array(body, fields);
}

static size_t nonce_say(uint8_t *frame)
{
    static const uint8_t nonce[LEAT_NONCE_BYTES] = {1};
    struct leat_msg_writer body;
    body_begin(&body, frame, 1);
    leat_msg_write_bin(&body, nonce, sizeof nonce);
    return frame_end(frame, LEAT_NODE_KIND_NONCE, body.used, NULL, 0);
}

/* In the name of one of the cluster's nodes, with a tag that the wrong key made, or none. */
static size_t hello_say(struct sim_rng *rng, const struct scenario *scenario, uint8_t *frame)
{
    static const uint8_t no_cluster[16];
    uint8_t tag[LEAT_TAG_BYTES];
    char name[16];
    struct leat_msg_writer body;
    for (size_t i = 0; i < sizeof tag; i++)
        tag[i] = (uint8_t)sim_rng_next(rng);
    snprintf(name, sizeof name, "%s",
             scenario->servers[sim_rng_below(rng, scenario->server_count)].host);
    body_begin(&body, frame, 8);
    leat_msg_write_u64(&body, sim_rng_between(rng, 1, 2));
    leat_msg_write_u64(&body, 2);
    leat_msg_write_bin(&body, no_cluster, sizeof no_cluster);
    leat_msg_write_string(&body, name, strlen(name));
    leat_msg_write_u64(&body, sim_rng_below(rng, 20)); /* incarnation */
    leat_msg_write_u64(&body, 1);
    leat_msg_write_u64(&body, sim_rng_between(rng, 1, 4)); /* purpose */
    leat_msg_write_i64(&body, (int64_t)sim_rng_below(rng, 3) - 1);
    return frame_end(frame, LEAT_NODE_KIND_HELLO, body.used, tag,
                     sim_rng_chance(rng, 700) ? sizeof tag : 0);
}

/* A command: delete a stream; or that a node has crashed. */
static size_t demand_say(struct sim_rng *rng, const struct scenario *scenario, uint8_t *frame)
{
    uint8_t command[128], entry[256];
    struct leat_msg_writer body, writer;
    const char *stream = scenario->streams[sim_rng_below(rng, SIM_STREAMS)].name;
    if (sim_rng_chance(rng, 500)) {
        body_begin(&body, frame, 7);
        for (unsigned i = 0; i < 7; i++)
            if (i == 0 || i == 3 || i == 6)
                leat_msg_write_bool(&body, i != 6);
            else
                leat_msg_write_u64(&body, sim_rng_below(rng, 20));
        return frame_end(frame, KIND_DETECT_PING, body.used, NULL, 0);
    }
    leat_msg_writer_init(&writer, command, sizeof command);
    leat_msg_write_array(&writer, 3);
    leat_msg_write_u64(&writer, 1);
    leat_msg_write_u64(&writer, 3); /* STREAM_DELETE */
    leat_msg_write_string(&writer, stream, strlen(stream));
    size_t command_bytes = writer.used;
    leat_msg_writer_init(&writer, entry + 4, sizeof entry - 4);
    leat_msg_write_array(&writer, 5);
    leat_msg_write_u64(&writer, 1);
    leat_msg_write_u64(&writer, 10); /* REQUEST */
    leat_msg_write_u64(&writer, sim_rng_next(rng) | 1);
    leat_msg_write_u64(&writer, 1);
    leat_msg_write_bin(&writer, command, command_bytes);
    LEAT_ASSERT(!writer.overflow);
    leat_put_le32(entry, (uint32_t)writer.used);
    body_begin(&body, frame, 0);
    return frame_end(frame, KIND_SUBMIT, body.used, entry, 4 + writer.used);
}

static size_t all_say(struct sim_rng *rng, const struct scenario *scenario, uint8_t *out)
{
    size_t bytes = 0;
    if (sim_rng_chance(rng, 250)) return 0; /* silence */
    if (sim_rng_chance(rng, 600)) bytes += nonce_say(out);
    if (sim_rng_chance(rng, 700)) bytes += hello_say(rng, scenario, out + bytes);
    bytes += demand_say(rng, scenario, out + bytes);
    LEAT_ASSERT_CMP(bytes, <=, (size_t)SAID_BYTES_MAX);
    return sim_rng_chance(rng, 300) ? (size_t)sim_rng_between(rng, 1, bytes) : bytes;
}

/* ---- connections ---- */

static void on_open(void *user, struct leat_conn *conn)
{
    static uint8_t bytes[SAID_BYTES_MAX + 1024];
    struct guise *guise = user;
    struct sim_client *client = guise->impostor->client;
    guise->open = true;
    size_t count = all_say(&client->rng, client->scenario, bytes);
    if (count == 0) return;
    leat_err rc = client->actor->env.net->send_copy(conn, bytes, count);
    LEAT_ASSERT(rc == LEAT_OK || rc == LEAT_E_CLOSED);
}

static size_t on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                       size_t *want_bytes)
{
    struct guise *guise = user;
    struct sim_world *world = guise->impostor->client->scenario->world;
    (void)conn, (void)data;
    *want_bytes = 0;
    guise->told += bytes;
    if (guise->told > NONCE_FRAME_BYTES)
        sim_fail(world, "A12 told: a stranger without the key was told %zu bytes", guise->told);
    return bytes;
}

static void on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct guise *guise = user;
    (void)conn, (void)why;
    if (guise->open) sim_fault_struck(guise->impostor->client->scenario->world, SIM_FAULT_IMPOSTOR);
    guise->conn = NULL;
    guise->open = false;
}

static const struct leat_conn_handler handler = {on_open, on_bytes, on_closed};

static void guise_connect(struct guise *guise)
{
    struct sim_client *client = guise->impostor->client;
    const struct scenario *scenario = client->scenario;
    const struct sim_server *server =
        &scenario->servers[sim_rng_below(&client->rng, scenario->server_count)];
    const struct leat_net *net = client->actor->env.net;
    guise->told = 0;
    if (net->connect(net->ctx, server->node_address, &handler, guise, &guise->conn) != LEAT_OK)
        guise->conn = NULL;
}

static void wave_begin(struct impostor *impostor)
{
    struct sim_client *client = impostor->client;
    struct sim_rng *rng = &client->rng;
    bool crowd = sim_rng_chance(rng, 100);
    if (client->scenario->faults_over) impostor->waves_left--;
    impostor->wanted =
        crowd ? IMPOSTOR_CROWD_MAX : (unsigned)sim_rng_between(rng, 1, IMPOSTOR_CONNS_MAX);
    impostor->wave_ends_us =
        client->scenario->world->now_us + sim_rng_between(rng, 100000, WAVE_US_MAX);
}

static void impostor_step(struct sim_world *world, struct sim_event *event)
{
    struct impostor *impostor = event->a;
    struct sim_client *client = impostor->client;
    bool over = world->now_us >= impostor->wave_ends_us;
    for (unsigned i = 0; i < IMPOSTOR_CROWD_MAX; i++) {
        struct guise *guise = &impostor->guises[i];
        if (over && guise->open)
            client->actor->env.net->close(guise->conn);
        else if (!over && !guise->conn && i < impostor->wanted)
            guise_connect(guise);
    }
    impostor->gone = over && impostor->waves_left == 0;
    if (impostor->gone) return;
    if (over) wave_begin(impostor);
    sim_actor_post(client->actor, sim_rng_between(&client->rng, 1000, STEP_US_MAX), impostor_step,
                   impostor);
}

bool sim_impostors_gone(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        const struct impostor *impostor = client->state;
        if (client->kind != SIM_CLIENT_IMPOSTOR || !impostor) continue;
        scenario->waits_for = client->process->name;
        if (!impostor->gone) return false;
    }
    return true;
}

void sim_impostor_start(struct sim_client *client)
{
    struct impostor *impostor = calloc(1, sizeof *impostor);
    LEAT_ASSERT(impostor != NULL);
    impostor->client = client;
    for (unsigned i = 0; i < IMPOSTOR_CROWD_MAX; i++)
        impostor->guises[i].impostor = impostor;
    impostor->waves_left = (unsigned)sim_rng_between(&client->rng, 1, WAVES_MAX);
    client->state = impostor;
    sim_actor_post(client->actor, sim_rng_between(&client->rng, 1000, 3000000), impostor_step,
                   impostor);
}
