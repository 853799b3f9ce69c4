/* SPDX-License-Identifier: Apache-2.0 */
/* Honest members of Kafka's groups beside a stranger: each finds its group's coordinator, joins, heartbeats, commits,
 * reads back what it committed, leaves, and goes to another group. Every step has to be done within 10 s of virtual
 * time, refusals and what was lost tried again included; what a commit was acked for is neither lost nor goes back. */
#include "tests/sim/asks.h"
#include "tests/sim/kafka_client.h"
#include "tests/sim/stranger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum {
    MEMBERS = 2,
    GROUPS = 8, /* groups of a member, one after the other */
    ROUNDS = 2, /* of heartbeat, commit and fetch, until it leaves */
    BEGIN_US = 150 * 1000,
    EVERY_US = 100 * 1000,
    STEP_US_MAX = 10 * 1000 * 1000,
    SESSION_MS = 10 * 1000,
    REBALANCE_MS = 1000,
    ID_BYTES = 80,
    PARTITION = 0, /* of stream 0 */
};

enum stage { FIND, JOIN, SYNC, BEAT, COMMIT, FETCH, LEAVE, STAGES };
static const char *const stage_words[STAGES] = {
    "asks for its coordinator", "joins",  "waits for its share", "heartbeats", "commits an offset",
    "reads an offset",          "leaves",
};

/* What a group has committed: at least what was acked or told, at most what was ever asked for. */
struct offsets {
    int64_t acked, asked; /* -1: nothing */
};

struct member {
    struct sim_client client; /* what kafka_client.c asks for: scenario, actor, rng */
    struct sim_kafka kafka;
    unsigned number, group, round, lives;
    enum stage stage;
    unsigned
        furthest; /* how many steps of this life are done: one that is begun anew has done nothing by it */
    uint64_t since_us;
    unsigned boots;
    bool waiting;
    int16_t refused; /* how the last step was answered */
    int32_t coordinator, generation;
    char id[ID_BYTES];
    struct offsets offsets[GROUPS];
};

static struct {
    struct member members[MEMBERS];
    bool alone, strikes;
    unsigned lives_before[MEMBERS];
} crew;

void sim_member_group(char *out, size_t bytes, unsigned member, unsigned group)
{
    snprintf(out, bytes, SIM_HONEST "%u-%u", member, group);
}

static struct leat_kafka_string group_name(const struct member *it)
{
    static char name[32]; /* until the next request: it is encoded at once */
    sim_member_group(name, sizeof name, it->number, it->group);
    return leat_kafka_text(name);
}

/* ---- steps ---- */

static unsigned steps_done(const struct member *it)
{
    return it->round * STAGES + it->stage;
}

/* The step is done, and the next one has its own 10 s. */
static void step_done(struct member *it)
{
    if (it->stage == FETCH && ++it->round < ROUNDS)
        it->stage = BEAT;
    else if (it->stage == LEAVE) {
        it->stage = FIND;
        it->round = it->furthest = 0;
        it->group = (it->group + 1) % GROUPS;
        it->id[0] = '\0';
        it->lives++;
    } else
        it->stage++;
    if (it->furthest && steps_done(it) <= it->furthest) return;
    it->furthest = steps_done(it);
    it->refused = LEAT_KAFKA_NONE;
    it->since_us = it->client.scenario->world->now_us;
}

/* Begun anew, as clients do: a commit whose answer was lost can't come late, as its generation is over then. */
static void life_again(struct member *it, int16_t code)
{
    sim_trace(it->client.scenario->world, "honest member %u, which %s, is refused: %d", it->number,
              stage_words[it->stage], code);
    it->refused = code;
    it->stage = FIND;
    it->round = 0;
    if (code == LEAT_KAFKA_UNKNOWN_MEMBER_ID) it->id[0] = '\0';
}

static void step_answered(struct member *it, int16_t code)
{
    it->waiting = false;
    if (code == LEAT_KAFKA_NONE)
        step_done(it);
    else
        life_again(it, code);
}

static int16_t code_of(const void *answer, int16_t code)
{
    return answer ? code : (int16_t)LEAT_KAFKA_REQUEST_TIMED_OUT;
}

static void ask(struct member *it, int32_t node, enum leat_kafka_key key, int16_t version,
                const void *body, sim_kafka_done on_done)
{
    it->waiting = sim_kafka_send(&it->kafka, node, key, version, body, on_done, it, 0);
    if (!it->waiting) life_again(it, LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE);
}

static void found(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct member *it = owner;
    const struct leat_kafka_find_coordinator_response *response = answer;
    int16_t code = code_of(response, response ? response->error_code : 0);
    (void)client, (void)n;
    if (code == LEAT_KAFKA_NONE) {
        it->coordinator = response->node_id;
        sim_kafka_node(&it->kafka, response->node_id, response->host, response->port);
    }
    step_answered(it, code);
}

static void find(struct member *it)
{
    struct leat_kafka_find_coordinator_request body = {.key = group_name(it)};
    ask(it, -1, LEAT_KAFKA_FIND_COORDINATOR, 1, &body, found);
}

static void joined(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct member *it = owner;
    const struct leat_kafka_join_group_response *response = answer;
    int16_t code = code_of(response, response ? response->error_code : 0);
    (void)client, (void)n;
    if (code == LEAT_KAFKA_NONE || code == LEAT_KAFKA_MEMBER_ID_REQUIRED)
        snprintf(it->id, sizeof it->id, "%.*s", (int)response->member_id.bytes,
                 response->member_id.text);
    if (code == LEAT_KAFKA_MEMBER_ID_REQUIRED) { /* asked again, with the id */
        it->waiting = false;
        return;
    }
    if (code == LEAT_KAFKA_NONE) it->generation = response->generation_id;
    step_answered(it, code);
}

static void join(struct member *it)
{
    static const uint8_t metadata[] = {0};
    struct leat_kafka_join_group_request_protocol protocol = {leat_kafka_text("range"),
                                                              {metadata, sizeof metadata}};
    struct leat_kafka_join_group_request body = {
        .group_id = group_name(it),
        .session_timeout_ms = SESSION_MS,
        .rebalance_timeout_ms = REBALANCE_MS,
        .member_id = leat_kafka_text(it->id),
        .group_instance_id = {NULL, -1},
        .protocol_type = leat_kafka_text("consumer"),
        .protocols = {&protocol, 1},
        .reason = {NULL, -1},
    };
    ask(it, it->coordinator, LEAT_KAFKA_JOIN_GROUP, 5, &body, joined);
}

static void synced(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    const struct leat_kafka_sync_group_response *response = answer;
    (void)client, (void)n;
    step_answered(owner, code_of(response, response ? response->error_code : 0));
}

static void sync_group(struct member *it)
{
    static const uint8_t share[] = {1};
    struct leat_kafka_sync_group_request_assignment assignment = {leat_kafka_text(it->id),
                                                                  {share, sizeof share}};
    struct leat_kafka_sync_group_request body = {
        .group_id = group_name(it),
        .generation_id = it->generation,
        .member_id = leat_kafka_text(it->id),
        .group_instance_id = {NULL, -1},
        .assignments = {&assignment, 1}, /* nobody else is in it: it leads */
    };
    ask(it, it->coordinator, LEAT_KAFKA_SYNC_GROUP, 3, &body, synced);
}

static void beaten(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    const struct leat_kafka_heartbeat_response *response = answer;
    (void)client, (void)n;
    step_answered(owner, code_of(response, response ? response->error_code : 0));
}

static void beat(struct member *it)
{
    struct leat_kafka_heartbeat_request body = {.group_id = group_name(it),
                                                .generation_id = it->generation,
                                                .member_id = leat_kafka_text(it->id),
                                                .group_instance_id = {NULL, -1}};
    ask(it, it->coordinator, LEAT_KAFKA_HEARTBEAT, 3, &body, beaten);
}

static void committed(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct member *it = owner;
    const struct leat_kafka_offset_commit_response *response = answer;
    struct offsets *offsets = &it->offsets[it->group];
    (void)client, (void)n;
    int16_t code =
        code_of(response, response ? response->topics.at[0].partitions.at[0].error_code : 0);
    if (code == LEAT_KAFKA_NONE) offsets->acked = offsets->asked;
    step_answered(it, code);
    if (code != LEAT_KAFKA_NONE || !crew.strikes) return;
    crew.strikes = false;
    sim_nodes_die(client->scenario);
}

static void commit(struct member *it)
{
    struct leat_kafka_offset_commit_request_partition row = {
        PARTITION, ++it->offsets[it->group].asked, -1, -1, {NULL, -1}};
    struct leat_kafka_offset_commit_request_topic topic = {
        sim_kafka_topic_name(it->client.scenario, 0), {&row, 1}};
    struct leat_kafka_offset_commit_request body = {
        .group_id = group_name(it),
        .generation_id_or_member_epoch = it->generation,
        .member_id = leat_kafka_text(it->id),
        .group_instance_id = {NULL, -1},
        .retention_time_ms = -1,
        .topics = {&topic, 1},
    };
    ask(it, it->coordinator, LEAT_KAFKA_OFFSET_COMMIT, 6, &body, committed);
}

static void offset_judge(struct member *it, int64_t offset)
{
    struct offsets *offsets = &it->offsets[it->group];
    struct sim_world *world = it->client.scenario->world;
    if (offset < offsets->acked)
        sim_fail(world,
                 "A1 lost-write: group %.*s reads back offset %lld, where %lld was acked or told",
                 (int)group_name(it).bytes, group_name(it).text, (long long)offset,
                 (long long)offsets->acked);
    if (offset > offsets->asked)
        sim_fail(world,
                 "A7 nonmonotonic-poll: group %.*s reads back offset %lld, and has asked for %lld",
                 (int)group_name(it).bytes, group_name(it).text, (long long)offset,
                 (long long)offsets->asked);
    offsets->acked = offset; /* what was told stays, too */
}

static void fetched(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct member *it = owner;
    const struct leat_kafka_offset_fetch_response *response = answer;
    int16_t code = code_of(response, response ? response->error_code : 0);
    (void)client, (void)n;
    if (code == LEAT_KAFKA_NONE) {
        const struct leat_kafka_offset_fetch_response_partition *row =
            &response->topics.at[0].partitions.at[0];
        code = row->error_code;
        if (code == LEAT_KAFKA_NONE) offset_judge(it, row->committed_offset);
    }
    step_answered(it, code);
}

static void fetch(struct member *it)
{
    int32_t index = PARTITION;
    struct leat_kafka_offset_fetch_request_topic topic = {
        sim_kafka_topic_name(it->client.scenario, 0), {&index, 1}};
    struct leat_kafka_offset_fetch_request body = {.group_id = group_name(it),
                                                   .topics = {&topic, 1}};
    ask(it, it->coordinator, LEAT_KAFKA_OFFSET_FETCH, 5, &body, fetched);
}

static void left(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    const struct leat_kafka_leave_group_response *response = answer;
    (void)client, (void)n;
    step_answered(owner, code_of(response, response ? response->error_code : 0));
}

static void leave(struct member *it)
{
    struct leat_kafka_leave_group_request body = {.group_id = group_name(it),
                                                  .member_id = leat_kafka_text(it->id)};
    ask(it, it->coordinator, LEAT_KAFKA_LEAVE_GROUP, 2, &body, left);
}

/* ---- life ---- */

/* While a server is away, and in the moment when it is back, nobody has to answer. */
static bool servers_changed(struct member *it)
{
    const struct scenario *scenario = it->client.scenario;
    unsigned boots = 0;
    bool all = true;
    for (unsigned i = 0; i < scenario->server_count; i++) {
        all &= sim_serves(&scenario->servers[i]);
        boots += scenario->servers[i].boots;
    }
    bool changed = !all || boots != it->boots;
    it->boots = boots;
    return changed;
}

static void step(struct sim_world *world, struct sim_event *event)
{
    static void (*const steps[STAGES])(struct member * it) = {find,   join,  sync_group, beat,
                                                              commit, fetch, leave};
    struct member *it = event->a;
    sim_actor_post(it->client.actor, EVERY_US, step, it);
    if (servers_changed(it)) it->since_us = world->now_us;
    if (world->now_us - it->since_us > STEP_US_MAX)
        sim_fail(
            world,
            "A10 stuck: an honest member of group %.*s, which %s, is not done within %d s; last "
            "refused by %d",
            (int)group_name(it).bytes, group_name(it).text, stage_words[it->stage],
            STEP_US_MAX / 1000000, it->refused);
    if (!it->waiting) steps[it->stage](it);
}

void sim_members_start(struct scenario *scenario, struct sim_actor *actor)
{
    memset(&crew, 0, sizeof crew);
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct member *it = &crew.members[i];
        it->client.scenario = scenario;
        it->client.actor = actor;
        it->number = i;
        for (unsigned g = 0; g < GROUPS; g++)
            it->offsets[g] = (struct offsets){-1, -1};
        it->since_us = scenario->world->now_us;
        sim_rng_init(&it->client.rng, scenario->world->seed, i ? "member 1" : "member 0");
        sim_kafka_init(&it->kafka, &it->client);
        sim_actor_post(actor, BEGIN_US, step, it);
    }
}

void sim_members_alone(void)
{
    crew.alone = true;
    for (unsigned i = 0; i < MEMBERS; i++)
        crew.lives_before[i] = crew.members[i].lives;
}

void sim_members_strike(void)
{
    crew.strikes = true;
}

bool sim_members_served(void)
{
    for (unsigned i = 0; i < MEMBERS; i++)
        if (crew.members[i].lives < crew.lives_before[i] + 2) return false;
    return crew.alone;
}
