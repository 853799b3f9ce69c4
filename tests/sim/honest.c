/* SPDX-License-Identifier: Apache-2.0 */
/* Honest clients beside a stranger: each connects anew, asks, and has to be answered within 10 s of virtual
 * time, whatever the stranger does. They greet, read old records and new ones, and ask where a log ends or a
 * time lies, by either protocol. Producers are watched, too, and members of groups (member.c). */
#include "tests/sim/asks.h"
#include "tests/sim/stranger.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "wire/frame.h"

enum {
    PULSES = 4,
    FIRST_BYTES = 9, /* a slow line brings the rest later, so that an honest frame is cut, too */
    EVERY_US = 500 * 1000,
    BEGIN_US = 100 * 1000,
    ANSWER_US_MAX = 10 * 1000 * 1000,
    REQUEST_BYTES_MAX = 2 * SIM_ASK_BYTES_MAX,
};

enum ask { ASK_NOTHING, ASK_OLD, ASK_NEW, ASK_WHERE, ASK_WHEN, ASKS };
static const char *const ask_words[ASKS] = {
    "that greets",
    "that reads old records",
    "that reads the newest record",
    "that asks where a log ends",
    "that asks where a time lies",
};

/* One of them. It has one connection, and goes from server to server, from port to port, from ask to ask. */
struct pulse {
    struct honest *honest;
    struct leat_conn *conn;
    unsigned number, server, rounds;
    bool kafka;
    enum ask ask;
    bool open;             /* and the first piece of its request is sent */
    uint64_t since_us;     /* it waits for an answer since then; 0: it waits for none */
    unsigned answers_left; /* of its request */
    unsigned boots;        /* of the server it asks */
    size_t bytes;
    uint8_t request[REQUEST_BYTES_MAX];
};

struct honest {
    struct scenario *scenario;
    struct sim_actor *actor;
    struct pulse pulses[PULSES];
    bool alone;              /* the stranger has gone */
    unsigned answered_alone; /* requests that were answered since then */
    uint64_t appended, append_us;
    unsigned boots;
};
static struct honest *honest_of_seed;

/* ---- what one asks ---- */

static void request_make(struct pulse *pulse, const struct sim_server *server)
{
    struct sim_place place;
    uint8_t *at = pulse->request;
    unsigned round = pulse->rounds++ + pulse->number;
    pulse->ask = (enum ask)(round % ASKS);
    if (!sim_place_find(server, round / ASKS % SIM_STREAMS, round / ASKS / SIM_STREAMS, &place))
        pulse->ask = ASK_NOTHING;
    if (!pulse->kafka)
        at += sim_ask_hello(at, "honest", (int64_t)(round / 2 % 2), 1);
    else if (pulse->ask == ASK_NOTHING)
        at += sim_ask_kafka_versions(at, 1);
    pulse->answers_left = at > pulse->request ? 1 : 0;
    uint64_t offset = pulse->ask == ASK_NEW && place.end > 0 ? place.end - 1 : 0;
    int64_t time = pulse->ask == ASK_WHERE ? -1 : 1;
    enum leat_locate what = pulse->ask == ASK_WHERE ? LEAT_LOCATE_LATEST : LEAT_LOCATE_TIME;
    if (pulse->ask == ASK_OLD || pulse->ask == ASK_NEW)
        at += pulse->kafka ? sim_ask_kafka_fetch(at, &place, offset, 2)
                           : sim_ask_fetch(at, &place, offset, 2);
    else if (pulse->ask != ASK_NOTHING)
        at += pulse->kafka ? sim_ask_kafka_offsets(at, &place, time, 2)
                           : sim_ask_locate(at, &place, what, 2);
    if (pulse->ask != ASK_NOTHING) pulse->answers_left++;
    pulse->bytes = (size_t)(at - pulse->request);
}

/* ---- its connection ---- */

static void pulse_on_open(void *user, struct leat_conn *conn)
{
    struct pulse *pulse = user;
    pulse->open = true;
    (void)pulse->honest->actor->net.send_copy(conn, pulse->request, FIRST_BYTES);
}

static void rest_send(struct pulse *pulse)
{
    pulse->open = false; /* all of it is sent */
    (void)pulse->honest->actor->net.send_copy(pulse->conn, pulse->request + FIRST_BYTES,
                                              pulse->bytes - FIRST_BYTES);
}

/* How many bytes the answer at the front has; 0: that can't be seen yet. */
static size_t answer_bytes(const struct pulse *pulse, const uint8_t *data, size_t bytes)
{
    struct leat_frame frame;
    size_t want = 0;
    if (pulse->kafka) return bytes < 4 ? 0 : 4 + (size_t)leat_get_be32(data);
    leat_err rc = leat_frame_decode(data, bytes, &frame, &want);
    if (rc == LEAT_E_AGAIN) return want > bytes ? want : 0;
    LEAT_ASSERT_CMP(rc, ==, LEAT_OK);
    return frame.frame_bytes;
}

static size_t pulse_on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                             size_t *want_bytes)
{
    struct pulse *pulse = user;
    size_t used = 0, whole;
    *want_bytes = 0;
    while ((whole = answer_bytes(pulse, data + used, bytes - used)) != 0 && whole <= bytes - used) {
        used += whole;
        if (--pulse->answers_left) continue;
        pulse->since_us = 0;
        if (pulse->honest->alone) pulse->honest->answered_alone++;
        pulse->honest->actor->net.close(conn);
        return bytes;
    }
    *want_bytes = whole;
    return used;
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

static void pulse_look(struct pulse *pulse)
{
    struct scenario *scenario = pulse->honest->scenario;
    uint64_t now_us = scenario->world->now_us;
    const struct sim_server *server = &scenario->servers[pulse->server];
    bool asked_same = pulse->boots == server->boots && sim_serves(server);
    if (pulse->since_us && !asked_same) pulse->since_us = 0; /* it has died: no server's fault */
    if (pulse->since_us && now_us - pulse->since_us > ANSWER_US_MAX)
        sim_fail(scenario->world,
                 "A10 stuck: an honest client of %s, %s, %s is not answered within %d s",
                 server->name, pulse->kafka ? "Kafka's port" : "the clients' port",
                 ask_words[pulse->ask], ANSWER_US_MAX / 1000000);
    if (pulse->conn && pulse->open) rest_send(pulse);
    if (pulse->conn) return;
    if (pulse->since_us == 0) {
        pulse->server = (pulse->server + 1) % scenario->server_count;
        pulse->kafka = !pulse->kafka;
        server = &scenario->servers[pulse->server];
        if (!sim_serves(server)) return;
        pulse->since_us = now_us;
        pulse->boots = server->boots;
    }
    request_make(pulse, server);
    const struct leat_net *net = &pulse->honest->actor->net;
    if (net->connect(net->ctx, pulse->kafka ? server->kafka_address : server->address,
                     &pulse_handler, pulse, &pulse->conn) != LEAT_OK)
        pulse->conn = NULL;
}

/* ---- producers ---- */

/* While all servers serve, and records wait for their acks, some are acked within the same time. */
static void appends_look(struct honest *it)
{
    struct scenario *scenario = it->scenario;
    uint64_t now_us = scenario->world->now_us;
    uint64_t appended = check_acked_count(scenario->check) + sim_acked_batches(scenario);
    unsigned boots = 0;
    bool all = true;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        all &= sim_serves(&scenario->servers[i]);
        boots += scenario->servers[i].boots;
    }
    bool moves = appended != it->appended || check_open_count(scenario->check) == 0;
    if (!all || boots != it->boots || moves) it->append_us = now_us;
    it->appended = appended;
    it->boots = boots;
    if (now_us - it->append_us > ANSWER_US_MAX)
        sim_fail(scenario->world, "A10 stuck: none of %llu records that wait is acked within %d s",
                 (unsigned long long)check_open_count(scenario->check), ANSWER_US_MAX / 1000000);
}

/* ---- life ---- */

static void step(struct sim_world *world, struct sim_event *event)
{
    struct honest *it = event->a;
    (void)world;
    for (unsigned i = 0; i < PULSES; i++)
        pulse_look(&it->pulses[i]);
    appends_look(it);
    sim_actor_post(it->actor, EVERY_US, step, it);
}

void sim_honest_start(struct scenario *scenario)
{
    struct honest *it = calloc(1, sizeof *it);
    LEAT_ASSERT(it != NULL);
    it->scenario = scenario;
    it->actor = sim_idle_actor(scenario->world, "honest");
    for (unsigned i = 0; i < PULSES; i++)
        it->pulses[i] = (struct pulse){
            .honest = it, .number = i, .server = i % scenario->server_count, .kafka = i & 1};
    honest_of_seed = it;
    sim_actor_post(it->actor, BEGIN_US, step, it);
    sim_members_start(scenario, it->actor);
}

void sim_honest_alone(void)
{
    honest_of_seed->alone = true;
    sim_members_alone();
}

bool sim_honest_answered(void)
{
    return honest_of_seed->answered_alone >= 2 * PULSES && sim_members_served();
}
