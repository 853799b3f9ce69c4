/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of Kafka do not wait for a log that no fault concerns (A10), by the rules of waits.c with what Kafka's
 * protocol adds: a node answers the requests of a connection in their order, and a client here uses one connection to
 * a node for all. So a wait counts while the connection owes the client nothing else before, and each call that is
 * answered next has a limit of its own where no log or group that a fault concerns can hold the answer.
 * - A reader or member that knows the owner of a log under the owner's epoch has the next records within READ_US_MAX.
 * - What a producer has for a log whose owner could ack at once, and which the producer knows, is acked within
 *   ACK_US_MAX. If the producer knows an earlier owner only: within FOUND_US_MAX.
 * - A fetch that is answered next is answered when its own wait is over, and CALL_US_MAX. Metadata, and where a log
 *   begins, come within CALL_US_MAX.
 * Looking draws no random number and schedules nothing. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/asks.h"
#include "tests/sim/kafka_client.h"
#include "tests/sim/net_cuts.h"
#include "tests/sim/net_parts.h"
#include "tests/sim/waits.h"

enum {
    CALL_US_MAX = SIM_WAITS_WHOLE_US_MAX,
    /* After an answer with a refusal these clients pause for up to 50 ms, and for 20 ms more if a connection takes
     * nothing. */
    PAUSES_US = 70 * 1000,
    READ_US_MAX = SIM_WAITS_WHOLE_US_MAX + PAUSES_US,
    ACK_US_MAX =
        SIM_WAITS_WHOLE_US_MAX + PAUSES_US, /* and as long as producers rest between bursts */
    /* A call to an earlier owner that nobody answers is given up after 8 s (kafka_client.c, CALL_US_MAX); then the
     * client asks for the owner. */
    FOUND_US_MAX = 9 * 1000 * 1000,
};

static struct {
    struct sim_wait reads[SIM_CLIENTS_MAX][SIM_KAFKA_PARTITIONS_MAX]; /* from `at` on */
    struct sim_wait writes[SIM_CLIENTS_MAX][SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX]; /* of `at` */
    struct sim_wait finds[SIM_CLIENTS_MAX][SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX];  /* the same */
    struct sim_wait calls[SIM_CLIENTS_MAX][SIM_KAFKA_LINKS_MAX]; /* of number `at` */
    uint64_t turns[SIM_CLIENTS_MAX];
} waits; /* of the one scenario of a process */

void sim_waits_kafka_forget(void)
{
    memset(&waits, 0, sizeof waits);
}

/* NULL: no node has the address. */
static const struct sim_server *server_at(const struct scenario *scenario,
                                          const struct sim_kafka_link *link)
{
    for (unsigned i = 0; i < scenario->server_count; i++)
        if (strcmp(scenario->servers[i].kafka_address, link->address) == 0)
            return &scenario->servers[i];
    return NULL;
}

static bool is_cut(const struct sim_process *from, const struct sim_process *to)
{
    const struct sim_cut *cut = sim_cut_between(from, to);
    return cut && sim_cut_until_us(from->world, cut);
}

/* Nothing is cut between client and node, and both have the same connection.
 *
 * A machine that lost its power told nobody: the client waits for the process that ran there before, and is told when
 * the connection carries nothing for long enough. */
static bool is_sound(const struct sim_kafka_link *link, const struct sim_server *server)
{
    const struct sim_process *client = link->kafka->client->process;
    if (is_cut(client, server->process) || is_cut(server->process, client)) return false;
    if (!link->conn || !link->conn->peer) return true; /* the client is about to connect */
    const struct leat_conn *peer = link->conn->peer;
    return !peer->silent && !link->conn->silent && peer->state == link->conn->state &&
           (!peer->actor || peer->actor->process == server->process);
}

/* A client that waits for another node's answer may not ask for the owner meanwhile. */
static bool all_are_sound(const struct scenario *scenario, const struct sim_kafka *kafka)
{
    for (unsigned i = 0; i < kafka->link_count; i++) {
        const struct sim_server *server = server_at(scenario, &kafka->links[i]);
        if (server && !is_sound(&kafka->links[i], server)) return false;
    }
    return true;
}

static bool knows_owner(const struct scenario *scenario, const struct sim_kafka_part_seen *seen,
                        const struct sim_waits_log *log)
{
    const struct sim_server *owner = &scenario->servers[log->owner];
    return seen->link && server_at(scenario, seen->link) == owner && is_sound(seen->link, owner) &&
           seen->epoch == (int32_t)log->epoch;
}

/* The wait is excused while bytes between the client and the node are on their way. */
static bool is_excused(struct sim_wait *wait, const struct sim_client *client,
                       const struct sim_server *server)
{
    uint64_t now_us = client->scenario->world->now_us;
    if (now_us <= wait->since_us + SIM_WAITS_CONNS_US ||
        !sim_waits_conns_are_troubled(client->process, server->process))
        return false;
    wait->since_us = now_us;
    return true;
}

static unsigned long long waited_ms(const struct scenario *scenario, const struct sim_wait *wait)
{
    return (unsigned long long)(scenario->world->now_us - wait->since_us) / 1000;
}

/* ---- readers, and members of groups that read ---- */

static void read_look(struct scenario *scenario, unsigned at,
                      const struct sim_kafka_part_seen *seen)
{
    const struct sim_client *client = scenario->clients[at];
    const struct sim_waits_log *log = sim_waits_log(scenario, seen->log);
    struct sim_wait *wait = &waits.reads[at][seen->at - 1];
    if (!log) return;
    bool wants = seen->waits && knows_owner(scenario, seen, log) && seen->next >= log->first &&
                 seen->next < log->acked;
    bool may = sim_waits_client_is_whole(scenario, at) &&
               sim_waits_node_reads(scenario, client->stream, log->owner);
    bool late = sim_wait_is_late(wait, seen->next == wait->at, seen->next,
                                 wants && may ? READ_US_MAX : 0, scenario->world->now_us);
    const struct sim_server *owner = &scenario->servers[log->owner];
    if (!is_excused(wait, client, owner) && late)
        sim_fail(scenario->world,
                 "A10 stuck: %s of Kafka has waited for %llu ms for offset %llu of log %u/%u/%u, "
                 "which %s has, and no fault concerns the log",
                 client->process->name, waited_ms(scenario, wait), (unsigned long long)seen->next,
                 seen->log.stream, seen->log.streamlet, seen->log.log, owner->name);
}

static void reads_look(struct scenario *scenario, unsigned at, const struct sim_kafka *kafka)
{
    struct sim_kafka_part_seen seen = {0};
    while (kafka->part_next(scenario->clients[at], &seen)) {
        if (seen.turn != waits.turns[at]) memset(waits.reads[at], 0, sizeof waits.reads[at]);
        waits.turns[at] = seen.turn;
        read_look(scenario, at, &seen);
    }
}

/* ---- producers ---- */

static void write_late(struct scenario *scenario, const struct sim_client *client,
                       const struct sim_kafka_part_seen *seen, const struct sim_wait *wait,
                       const struct sim_server *owner)
{
    sim_fail(
        scenario->world,
        "A10 stuck: %s of Kafka has waited for %llu ms for an ack of log %u/%u/%u, whose owner "
        "%s%s could ack at once",
        client->process->name, waited_ms(scenario, wait), seen->log.stream, seen->log.streamlet,
        seen->log.log, owner->name, wait->limit_us < FOUND_US_MAX ? ", which it knows," : "");
}

static void write_look(struct scenario *scenario, unsigned at,
                       const struct sim_kafka_part_seen *seen)
{
    const struct sim_client *client = scenario->clients[at];
    const struct sim_waits_log *log = sim_waits_log(scenario, seen->log);
    uint32_t logs = scenario->streams[seen->log.stream].settings.logs;
    uint32_t p = seen->log.streamlet * logs + seen->log.log;
    struct sim_wait *wait = &waits.writes[at][seen->log.stream][p];
    struct sim_wait *find = &waits.finds[at][seen->log.stream][p];
    uint64_t now_us = scenario->world->now_us;
    if (!log) return;
    const struct sim_server *owner = &scenario->servers[log->owner];
    bool may = log->ackable && sim_waits_client_is_whole(scenario, at);
    bool wants = may && seen->waits && knows_owner(scenario, seen, log);
    bool late = sim_wait_is_late(wait, seen->next == wait->at, seen->next,
                                 wants ? ACK_US_MAX + scenario->pause_us_max : 0, now_us);
    if (!is_excused(wait, client, owner) && late) write_late(scenario, client, seen, wait, owner);
    may = may && all_are_sound(scenario, sim_kafka_of(client));
    late =
        sim_wait_is_late(find, seen->next == find->at, seen->next, may ? FOUND_US_MAX : 0, now_us);
    for (unsigned i = 0; late && i < scenario->server_count; i++)
        if (sim_serves(&scenario->servers[i]) && is_excused(find, client, &scenario->servers[i]))
            return;
    if (late) write_late(scenario, client, seen, find, owner);
}

static void writes_look(struct scenario *scenario, unsigned at, const struct sim_kafka *kafka)
{
    struct sim_kafka_part_seen seen = {0};
    while (kafka->part_next(scenario->clients[at], &seen))
        if (seen.any) write_look(scenario, at, &seen);
}

/* ---- calls ---- */

/* How long the call may be the next to be answered; 0: its answer may depend on logs that a fault concerns. */
static uint64_t call_limit_us(const struct scenario *scenario, const struct sim_client *client,
                              const struct sim_server *server,
                              const struct sim_kafka_call_seen *call)
{
    bool reads = client->kind != SIM_CLIENT_KAFKA_PRODUCER &&
                 sim_waits_node_reads(scenario, client->stream, server->number);
    switch (call->key) {
    case LEAT_KAFKA_FETCH:
        return reads ? call->wait_us + CALL_US_MAX : 0;
    case LEAT_KAFKA_LIST_OFFSETS:
        return reads ? CALL_US_MAX : 0;
    case LEAT_KAFKA_METADATA:
        return sim_waits_node_is_well(scenario, server->number) ? CALL_US_MAX : 0;
    default: /* a produce: write_look(); the others are answered by a group's home, or by the coordinators */
        return 0;
    }
}

static void call_look(struct scenario *scenario, unsigned at, const struct sim_kafka_link *link,
                      struct sim_wait *wait)
{
    const struct sim_client *client = scenario->clients[at];
    const struct sim_server *server = server_at(scenario, link);
    struct sim_kafka_call_seen call = {0};
    uint64_t limit_us = 0;
    if (!server || !sim_serves(server)) return;
    if (sim_kafka_call_see(link, &call) && is_sound(link, server) &&
        sim_waits_client_is_whole(scenario, at))
        limit_us = call_limit_us(scenario, client, server, &call);
    uint64_t number = (uint64_t)call.correlation;
    bool late =
        sim_wait_is_late(wait, wait->at == number, number, limit_us, scenario->world->now_us);
    if (!is_excused(wait, client, server) && late)
        sim_fail(scenario->world,
                 "A10 stuck: %s of Kafka has waited for %llu ms for the answer to %s by %s, and no "
                 "fault concerns that",
                 client->process->name, waited_ms(scenario, wait),
                 leat_kafka_api_find((int16_t)call.key)->name, server->name);
}

void sim_waits_kafka_look(struct scenario *scenario)
{
    for (unsigned i = 0; i < scenario->client_count; i++) {
        const struct sim_client *client = scenario->clients[i];
        const struct sim_kafka *kafka = sim_kafka_of(client);
        if (!kafka || !client->process->alive) continue;
        if (client->kind == SIM_CLIENT_KAFKA_PRODUCER)
            writes_look(scenario, i, kafka);
        else
            reads_look(scenario, i, kafka);
        for (unsigned l = 0; l < kafka->link_count; l++)
            call_look(scenario, i, &kafka->links[l], &waits.calls[i][l]);
    }
}
