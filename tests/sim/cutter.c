/* SPDX-License-Identifier: Apache-2.0 */
/* Strangers who begin frames and do not finish them: a stranger announces much, sends little, a byte now and then, or
 * goes. Whatever strangers do, all other connections are served: the other clients of the seed check this. */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "broker/probe.h"

enum {
    CUTTER_CONNS_MAX = 24,
    CUTTER_WAVES_MAX = 6,
    STEP_US_MAX = 300 * 1000,
    WAVE_US_MAX = 4 * 1000 * 1000,
    KAFKA_HEAD_BYTES = 4,
    SENT_BYTES_MAX = 64 * 1024,
};

enum door { DOOR_NATIVE, DOOR_KAFKA, DOOR_NODE, DOORS };

struct cutter;
struct cut {
    struct cutter *cutter;
    struct leat_conn *conn; /* NULL: none */
    enum door door;
    bool open;
};
struct cutter {
    struct sim_client *client;
    struct cut cuts[CUTTER_CONNS_MAX];
    unsigned wanted;     /* connections in this wave */
    unsigned waves_left; /* when nothing else goes wrong any more: no restart ends what they hold */
    uint64_t wave_ends_us;
    bool gone;
};

static void cutter_step(struct sim_world *world, struct sim_event *event);

/* Who is no stranger may send large frames. Returns how many bytes the first request is; 0: none. */
static size_t greeting(struct sim_rng *rng, enum door door, uint8_t *out)
{
    static const uint8_t api_versions[] = {0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 0xff, 0xff};
    if (door == DOOR_NODE || sim_rng_chance(rng, 300)) return 0;
    if (door == DOOR_KAFKA) {
        memcpy(out, api_versions, sizeof api_versions);
        return sizeof api_versions;
    }
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, out + LEAT_FRAME_HEADER_BYTES, 64);
    leat_msg_hello_write(&writer, &(struct leat_msg_hello){1, 1, {"cutter", 6}, -1});
    LEAT_ASSERT(!writer.overflow);
    leat_frame_encode(out, LEAT_KIND_HELLO, 1, 0, 1, writer.used, 0);
    return LEAT_FRAME_HEADER_BYTES + writer.used;
}

/* A frame that begins like a frame of the port, and is as large as a frame may be, or nearly. Returns its first
 * bytes. */
static size_t frame_begin(struct sim_rng *rng, enum door door, uint8_t *out)
{
    uint32_t bytes = sim_rng_chance(rng, 500)
                         ? LEAT_FRAME_BYTES_MAX
                         : (uint32_t)sim_rng_between(rng, 2000, LEAT_FRAME_BYTES_MAX);
    if (door == DOOR_KAFKA) {
        leat_put_be32(out, bytes);
        return KAFKA_HEAD_BYTES;
    }
    uint32_t control_bytes =
        bytes / 2 < LEAT_CONTROL_BYTES_MAX ? bytes / 2 : LEAT_CONTROL_BYTES_MAX;
    memset(out, 0, LEAT_FRAME_HEADER_BYTES);
    leat_put_le32(out, bytes - 4);
    leat_put_le16(out + 4, door == DOOR_NODE ? LEAT_NODE_KIND_HELLO : LEAT_KIND_HELLO);
    out[6] = 1;
    leat_put_le32(out + 12, control_bytes);
    return LEAT_FRAME_HEADER_BYTES;
}

static void on_open(void *user, struct leat_conn *conn)
{
    static uint8_t bytes[SENT_BYTES_MAX];
    struct cut *cut = user;
    struct sim_client *client = cut->cutter->client;
    struct sim_rng *rng = &client->rng;
    cut->open = true;
    size_t greeted = greeting(rng, cut->door, bytes);
    size_t count = greeted + frame_begin(rng, cut->door, bytes + greeted);
    if (sim_rng_chance(rng, 100))
        count = (size_t)sim_rng_between(rng, 1, count);
    else
        count += (size_t)sim_rng_below(
            rng, sim_rng_chance(rng, greeted ? 200 : 800) ? 8 : sizeof bytes - count);
    leat_err rc = client->actor->env.net->send_copy(conn, bytes, count);
    LEAT_ASSERT(rc == LEAT_OK || rc == LEAT_E_CLOSED);
}

static size_t on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                       size_t *want_bytes)
{
    (void)user, (void)conn, (void)data;
    *want_bytes = 0;
    return bytes; /* what it is refused with */
}

static void on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct cut *cut = user;
    (void)conn, (void)why;
    cut->conn = NULL;
    cut->open = false;
}

static const struct leat_conn_handler handler = {on_open, on_bytes, on_closed};

static void cut_connect(struct cut *cut)
{
    struct sim_client *client = cut->cutter->client;
    const struct scenario *scenario = client->scenario;
    const struct sim_server *server =
        &scenario->servers[sim_rng_below(&client->rng, scenario->server_count)];
    cut->door =
        (enum door)sim_rng_below(&client->rng, scenario->server_count > 1 ? DOORS : DOOR_NODE);
    const char *address = cut->door == DOOR_NATIVE  ? server->address
                          : cut->door == DOOR_KAFKA ? server->kafka_address
                                                    : server->node_address;
    const struct leat_net *net = client->actor->env.net;
    if (net->connect(net->ctx, address, &handler, cut, &cut->conn) != LEAT_OK) cut->conn = NULL;
}

/* One byte more, or an end, or neither. */
static void cut_go_on(struct cut *cut)
{
    struct sim_client *client = cut->cutter->client;
    const struct leat_net *net = client->actor->env.net;
    uint64_t pick = sim_rng_below(&client->rng, 10);
    if (!cut->open) return;
    if (pick < 3) {
        static const uint8_t more[SENT_BYTES_MAX];
        size_t bytes = pick == 0 ? sizeof more : 1;
        leat_err rc = net->send_copy(cut->conn, more, bytes);
        LEAT_ASSERT(rc == LEAT_OK || rc == LEAT_E_CLOSED || rc == LEAT_E_AGAIN);
    } else if (pick == 3) {
        net->close(cut->conn);
    }
}

static void wave_begin(struct cutter *cutter)
{
    struct sim_client *client = cutter->client;
    if (client->scenario->faults_over) cutter->waves_left--;
    cutter->wanted = (unsigned)sim_rng_between(&client->rng, 1, CUTTER_CONNS_MAX);
    cutter->wave_ends_us =
        client->scenario->world->now_us + sim_rng_between(&client->rng, 100000, WAVE_US_MAX);
}

/* Of a server's cores, does one have no room for more? */
static bool frames_wait(const struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->server_count; i++) {
        const struct sim_server *server = &scenario->servers[i];
        bool serves = server->ready && leat_node_has_cores(server->node);
        for (uint32_t c = 0; serves && c < scenario->cores; c++)
            if (leat_intake_crowded(&server->cores[c]->intake, LEAT_NET_CLIENTS)) return true;
    }
    return false;
}

static void cutter_step(struct sim_world *world, struct sim_event *event)
{
    struct cutter *cutter = event->a;
    struct sim_client *client = cutter->client;
    bool over = world->now_us >= cutter->wave_ends_us;
    if (frames_wait(client->scenario)) sim_fault_struck(world, SIM_FAULT_CUT_FRAMES);
    for (unsigned i = 0; i < CUTTER_CONNS_MAX; i++) {
        struct cut *cut = &cutter->cuts[i];
        if (over && cut->open)
            client->actor->env.net->close(cut->conn);
        else if (cut->conn)
            cut_go_on(cut);
        else if (!over && i < cutter->wanted)
            cut_connect(cut);
    }
    cutter->gone = over && cutter->waves_left == 0;
    if (cutter->gone) return;
    if (over) wave_begin(cutter);
    sim_actor_post(client->actor, sim_rng_between(&client->rng, 1000, STEP_US_MAX), cutter_step,
                   cutter);
}

bool sim_cutter_all_gone(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        const struct cutter *cutter = client->state;
        if (client->kind != SIM_CLIENT_CUTTER || !cutter) continue;
        scenario->waits_for = client->process->name;
        if (!cutter->gone) return false;
        for (unsigned s = 0; s < scenario->server_count; s++)
            if (sim_net_owed(scenario->servers[s].process, client->process).open) return false;
    }
    return true;
}

void sim_cutter_start(struct sim_client *client)
{
    struct cutter *cutter = calloc(1, sizeof *cutter);
    LEAT_ASSERT(cutter != NULL);
    cutter->client = client;
    for (unsigned i = 0; i < CUTTER_CONNS_MAX; i++)
        cutter->cuts[i].cutter = cutter;
    cutter->waves_left = (unsigned)sim_rng_between(&client->rng, 1, CUTTER_WAVES_MAX);
    client->state = cutter;
    sim_actor_post(client->actor, sim_rng_between(&client->rng, 1000, 3000000), cutter_step,
                   cutter);
}
