/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile client beside honest ones in ordinary seeds: in one cluster seed of ten, from a random moment on, through
 * faults, deaths and moves. What it does is drawn before it begins, as a schedule of stranger.c: it connects to the
 * ports of clients, of Kafka and of nodes, sends junk, beginnings of frames, requests with any bytes and hellos of
 * nodes that nobody has invited, asks for old records on many connections and takes a few KB/s of them or none, invents
 * groups. It kills nobody and resets nothing: others do. A schedule is short, as it costs a seed's time. */
#include "tests/sim/stranger.h"

#include <stdlib.h>

#include "base/assert.h"

enum {
    SEEDS_PER_MILLE = 100,
    ACTS_MIN = 8,
    ACTS_MAX = 40,
    ACT_BYTES_MAX = 192, /* three pieces of junk with what is around them */
    JUNK_BYTES_MAX = 60,
    CONNS_AT_ONCE = 6,
    SIP_BYTES_MIN = 200, /* a second, of each connection that is read slowly */
    SIP_BYTES_MAX = 8 * 1024,
    LOGS = 32, /* which stream and which of its logs: as stranger.c reads that byte */
    CROWD = 240,
};

struct schedule {
    struct sim_rng rng;
    uint8_t *bytes;
    size_t count, room;
};

static unsigned draw(struct schedule *to, unsigned below)
{
    return (unsigned)sim_rng_below(&to->rng, below);
}

static void put(struct schedule *to, unsigned byte)
{
    LEAT_ASSERT(to->count < to->room);
    to->bytes[to->count++] = (uint8_t)byte;
}

static void op(struct schedule *to, enum sim_stranger_op op, unsigned argument)
{
    put(to, (unsigned)op | argument << 4);
}

static void junk(struct schedule *to)
{
    unsigned count = draw(to, JUNK_BYTES_MAX);
    put(to, count);
    while (count--)
        put(to, draw(to, 256));
}

enum port { PORT_CLIENTS, PORT_KAFKA, PORT_NODES };

static void connect(struct schedule *to, enum port port)
{
    op(to, SIM_STRANGER_CONNECT, (unsigned)port | draw(to, 4) << 2);
    op(to, SIM_STRANGER_WAIT, draw(to, 6)); /* 0.25 to 8 ms */
}

/* Slow lines: connections that ask for records from a log's beginning, and read a little of that every second. */
static void lines(struct schedule *to)
{
    unsigned count = 1 + draw(to, CONNS_AT_ONCE);
    bool kafka = draw(to, 2);
    for (unsigned i = 0; i < count; i++) {
        connect(to, kafka ? PORT_KAFKA : PORT_CLIENTS);
        if (!kafka) op(to, SIM_STRANGER_HELLO, draw(to, 4));
        op(to, SIM_STRANGER_DEAF, draw(to, 4) ? 8 : 0);
        op(to, SIM_STRANGER_PULL, draw(to, 2));
        put(to, draw(to, LOGS));
    }
}

static void clients_port(struct schedule *to)
{
    connect(to, PORT_CLIENTS);
    if (draw(to, 4)) op(to, SIM_STRANGER_HELLO, draw(to, 16));
    for (unsigned i = draw(to, 3); i > 0; i--) {
        op(to, SIM_STRANGER_REQUEST, draw(to, 3));
        put(to, draw(to, 256));
        put(to, 0); /* no control */
        junk(to);
    }
    if (draw(to, 2)) op(to, SIM_STRANGER_ANNOUNCE, draw(to, 16));
}

static void kafka_port(struct schedule *to)
{
    connect(to, PORT_KAFKA);
    for (unsigned i = draw(to, 4); i > 0; i--) {
        op(to, SIM_STRANGER_KAFKA, draw(to, 14));
        put(to, draw(to, 70));
        junk(to);
    }
    if (draw(to, 2)) return;
    op(to, SIM_STRANGER_PULL, 0);
    put(to, CROWD + draw(to, SIM_CROWDS));
    put(to, draw(to, 128));
}

static void nodes_port(struct schedule *to)
{
    connect(to, PORT_NODES);
    op(to, SIM_STRANGER_NODE_HELLO, draw(to, 16));
    put(to, draw(to, 256));
    put(to, draw(to, 256));
    if (draw(to, 2)) return;
    op(to, SIM_STRANGER_NODE_FRAME, 0);
    put(to, draw(to, 256));
    junk(to);
    junk(to);
}

static void act(struct schedule *to)
{
    switch (draw(to, 8)) {
    case 0:
    case 1:
    case 2:
        lines(to);
        break;
    case 3:
        clients_port(to);
        break;
    case 4:
        kafka_port(to);
        break;
    case 5:
        nodes_port(to);
        break;
    case 6:
        op(to, SIM_STRANGER_BYTES, draw(to, 8));
        junk(to);
        break;
    default:
        op(to, draw(to, 3) ? SIM_STRANGER_DRIBBLE : SIM_STRANGER_CLOSE, draw(to, 4));
        break;
    }
    op(to, SIM_STRANGER_WAIT, draw(to, 13)); /* a second at most */
}

void sim_stranger_choose(struct scenario *scenario)
{
    struct schedule it = {.count = 0};
    sim_rng_init(&it.rng, scenario->world->seed, "stranger's schedule");
    if (!sim_rng_chance(&it.rng, SEEDS_PER_MILLE)) return;
    unsigned acts = (unsigned)sim_rng_between(&it.rng, ACTS_MIN, ACTS_MAX);
    it.room = (size_t)acts * ACT_BYTES_MAX;
    it.bytes = malloc(it.room);
    LEAT_ASSERT(it.bytes != NULL);
    op(&it, SIM_STRANGER_WAIT, draw(&it, 14)); /* until it begins: 2 s at most */
    for (unsigned i = 0; i + 1 < acts; i++)
        act(&it);
    sim_stranger_beside(scenario, it.bytes, it.count,
                        sim_rng_between(&it.rng, SIP_BYTES_MIN, SIP_BYTES_MAX));
}
