/* SPDX-License-Identifier: Apache-2.0 */
/* A client of Kafka that asks one node, and stays there: the owner that the coordinators' leader does not reach. It
 * asks for metadata and for the coordinator of a group, and commits offsets of many groups, one request of each kind
 * and group at a time. What was asked and answered while the node is isolated must lead away from the node:
 * - metadata name it neither as a node nor as a leader, and it is no group's coordinator;
 * - a commit is refused, and not by "the group is being loaded here".
 * What the node was asked before it was isolated is answered, or its connection closed, within WAIT_US_MAX. */
#include "tests/sim/doors.h"

#include <stdio.h>
#include <string.h>

#include "broker/probe.h"
#include "tests/sim/asks.h"
#include "tests/sim/kafka_client.h"

enum {
    GROUPS = 12, /* enough that some node has the home of one */
    ASK_METADATA = GROUPS,
    ASK_FIND,
    ASKS,
    EVERY_US = 2000,
    ANSWER_US_MAX =
        1000 * 1000, /* of what is asked of an isolated node, after nothing that was asked before */
    WAIT_US_MAX =
        5 * 1000 * 1000,   /* LEAT_PEER_ISOLATED_TICKS, one tick until the first, and a second */
    NODE_OF_SERVER = 1000, /* no node of the cluster has such a number */
};

static struct {
    struct scenario *scenario;
    struct sim_client client; /* what kafka_client.c asks for */
    struct sim_kafka kafka;
    const struct sim_server *owner;
    uint64_t isolated_us; /* since then the owner is isolated; 0: it is not */
    int64_t offset;
    struct ask {
        bool out;
        uint64_t sent_us;
    } asks[ASKS];
} doors; /* of the one scenario of a process */

static bool is_isolated(void)
{
    return doors.owner && sim_serves(doors.owner) && !leat_node_is_confirmed(doors.owner->node);
}

static bool is_owner(struct leat_kafka_string host, int32_t port)
{
    char address[64];
    snprintf(address, sizeof address, "%.*s:%d", (int)host.bytes, host.text, port);
    return strcmp(address, doors.owner->kafka_address) == 0;
}

static void names_itself(const char *what)
{
    sim_fail(doors.scenario->world, "A10 stuck: %s is isolated, and names itself as %s",
             doors.owner->name, what);
}

static void metadata_judge(const struct leat_kafka_metadata_response *response)
{
    for (int32_t i = 0; i < response->brokers.count; i++)
        if (is_owner(response->brokers.at[i].host, response->brokers.at[i].port))
            names_itself("a node that is up");
    for (int32_t t = 0; t < response->topics.count; t++)
        for (int32_t p = 0; p < response->topics.at[t].partitions.count; p++) {
            int32_t leader = response->topics.at[t].partitions.at[p].leader_id;
            bool named = leader < 0;
            for (int32_t i = 0; i < response->brokers.count; i++)
                named |= response->brokers.at[i].node_id == leader;
            if (!named) names_itself("a leader");
        }
}

static void commit_judge(const struct leat_kafka_offset_commit_response *response)
{
    int16_t code = response->topics.at[0].partitions.at[0].error_code;
    if (code == LEAT_KAFKA_NONE || code == LEAT_KAFKA_COORDINATOR_LOAD_IN_PROGRESS)
        sim_fail(doors.scenario->world, "A10 stuck: %s is isolated, and answers a commit by %d",
                 doors.owner->name, code);
}

static void answered(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct ask *ask = owner;
    (void)client;
    ask->out = false;
    if (!answer || !doors.isolated_us || ask->sent_us <= doors.isolated_us || !is_isolated())
        return;
    const struct leat_kafka_find_coordinator_response *found = answer;
    if (n == ASK_METADATA)
        metadata_judge(answer);
    else if (n != ASK_FIND)
        commit_judge(answer);
    else if (found->error_code == LEAT_KAFKA_NONE && is_owner(found->host, found->port))
        names_itself("a coordinator");
}

static bool ask_send(unsigned n)
{
    struct ask *ask = &doors.asks[n];
    int32_t node = NODE_OF_SERVER + (int32_t)doors.owner->number;
    char name[32];
    snprintf(name, sizeof name, "doors-%u", n % GROUPS);
    struct leat_kafka_metadata_request_topic asked = {.name =
                                                          sim_kafka_topic_name(doors.scenario, 0)};
    struct leat_kafka_metadata_request metadata = {.topics = {&asked, 1}};
    struct leat_kafka_find_coordinator_request find = {.key = leat_kafka_text(name)};
    struct leat_kafka_offset_commit_request_partition row = {0, ++doors.offset, -1, -1, {NULL, -1}};
    struct leat_kafka_offset_commit_request_topic topic = {sim_kafka_topic_name(doors.scenario, 0),
                                                           {&row, 1}};
    struct leat_kafka_offset_commit_request commit = {
        .group_id = leat_kafka_text(name),
        .generation_id_or_member_epoch = -1, /* of no member */
        .member_id = leat_kafka_text(""),
        .group_instance_id = {NULL, -1},
        .retention_time_ms = -1,
        .topics = {&topic, 1},
    };
    ask->sent_us = doors.scenario->world->now_us;
    if (n == ASK_METADATA)
        return sim_kafka_send(&doors.kafka, node, LEAT_KAFKA_METADATA, 10, &metadata, answered, ask,
                              n);
    if (n == ASK_FIND)
        return sim_kafka_send(&doors.kafka, node, LEAT_KAFKA_FIND_COORDINATOR, 1, &find, answered,
                              ask, n);
    return sim_kafka_send(&doors.kafka, node, LEAT_KAFKA_OFFSET_COMMIT, 6, &commit, answered, ask,
                          n);
}

/* Answers of a connection keep the order of its requests. */
static void waits_judge(uint64_t now_us)
{
    uint64_t oldest_us = UINT64_MAX;
    for (unsigned n = 0; n < ASKS; n++)
        if (doors.asks[n].out && doors.asks[n].sent_us < oldest_us)
            oldest_us = doors.asks[n].sent_us;
    bool before = oldest_us <= doors.isolated_us;
    uint64_t since_us = before ? doors.isolated_us : oldest_us;
    if (oldest_us != UINT64_MAX && now_us > since_us + (before ? WAIT_US_MAX : ANSWER_US_MAX))
        sim_fail(doors.scenario->world,
                 "A10 stuck: %s is isolated, and has not answered a client of Kafka for %llu ms",
                 doors.owner->name, (unsigned long long)(now_us - since_us) / 1000);
}

static void step(struct sim_world *world, struct sim_event *event)
{
    (void)event;
    sim_actor_post(doors.client.actor, EVERY_US, step, NULL);
    if (!is_isolated()) doors.isolated_us = 0;
    if (is_isolated() && !doors.isolated_us) doors.isolated_us = world->now_us;
    if (doors.isolated_us) waits_judge(world->now_us);
    if (!doors.owner || !sim_serves(doors.owner)) return;
    for (unsigned n = 0; n < ASKS; n++)
        if (!doors.asks[n].out) doors.asks[n].out = ask_send(n);
}

void sim_doors_start(struct scenario *scenario)
{
    memset(&doors, 0, sizeof doors);
    doors.scenario = scenario;
    doors.client.scenario = scenario;
    doors.client.actor = sim_idle_actor(scenario->world, "doors");
    sim_rng_init(&doors.client.rng, scenario->world->seed, "doors");
    sim_kafka_init(&doors.kafka, &doors.client);
    for (unsigned i = 0; i < scenario->server_count; i++)
        doors.kafka.links[i].node = NODE_OF_SERVER + (int32_t)i;
    sim_actor_post(doors.client.actor, EVERY_US, step, NULL);
}

void sim_doors_owner(const struct sim_server *owner)
{
    doors.owner = owner;
    doors.isolated_us = 0;
}
