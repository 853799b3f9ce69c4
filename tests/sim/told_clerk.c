/* SPDX-License-Identifier: Apache-2.0 */
/* Somebody who is the only one to commit as two groups, as whoever resets offsets does: what they have committed
 * is known exactly. In most looks at groups, by Kafka's protocol. One is kept: some of its offsets are committed
 * and now and then forgotten. The other is made, and deleted. Each step is repeated until it is answered with
 * success; what was done by one whose answer was lost is the same once more. */
#include "tests/sim/told_groups.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/asks.h"
#include "tests/sim/truth.h"

enum {
    LOOKS_PER_MILLE = 800,
    FORGET_PER_MILLE = 500,
    ROWS_PER_MILLE = 600,
    AGAIN_US = 30 * 1000,
};

enum step { STEP_KEEP, STEP_FORGET, STEP_MAKE, STEP_DELETE, STEP_DONE };

static struct {
    struct scenario *scenario;
    struct sim_kafka *kafka;
    struct sim_rng rng;
    enum step step;
    uint32_t stream; /* of which this look's step commits */
    bool kept;       /* something was ever committed as that group */
    bool forgets, unsure;
    int64_t committed[SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX], next[SIM_KAFKA_PARTITIONS_MAX];
    int16_t code;
} clerk;

bool sim_clerk_has(enum sim_group group)
{
    return group == SIM_GROUP_KEPT && clerk.kept;
}

int64_t sim_clerk_committed(uint32_t stream, uint32_t partition)
{
    return clerk.kept ? clerk.committed[stream][partition] : SIM_GROUP_NOTHING;
}

bool sim_clerk_done(void)
{
    return clerk.step == STEP_DONE;
}

const char *sim_clerk_why(void)
{
    static char text[60];
    snprintf(text, sizeof text, "step %d, error %d", (int)clerk.step, clerk.code);
    return text;
}

static void go_on(struct sim_world *world, struct sim_event *event);

static void later(uint64_t delay_us)
{
    sim_actor_post(clerk.kafka->client->actor, delay_us, go_on, clerk.kafka);
}

static void step_end(void)
{
    sim_trace(clerk.scenario->world, "clerk: step %d is done", (int)clerk.step);
    for (uint32_t p = 0; p < SIM_KAFKA_PARTITIONS_MAX && clerk.step == STEP_KEEP; p++)
        if (clerk.next[p] >= 0) clerk.committed[clerk.stream][p] = clerk.next[p];
    if (clerk.step == STEP_KEEP) clerk.kept = true;
    if (clerk.step == STEP_FORGET) clerk.committed[clerk.stream][0] = SIM_GROUP_NOTHING;
    clerk.step++;
    if (clerk.step == STEP_FORGET && !clerk.forgets) clerk.step++;
    if (clerk.step != STEP_DONE) later(1);
}

/* NONE: done. */
static void step_answered(int16_t code)
{
    clerk.code = code;
    if (code == LEAT_KAFKA_NONE)
        step_end();
    else
        later(AGAIN_US);
}

static void committed(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    const struct leat_kafka_offset_commit_response *response = answer;
    int16_t code = response ? LEAT_KAFKA_NONE : (int16_t)LEAT_KAFKA_REQUEST_TIMED_OUT;
    (void)client, (void)owner, (void)n;
    if (response && response->topics.count != 1) code = LEAT_KAFKA_UNKNOWN_SERVER_ERROR;
    for (int32_t i = 0; code == LEAT_KAFKA_NONE && i < response->topics.at[0].partitions.count; i++)
        if (response->topics.at[0].partitions.at[i].error_code != LEAT_KAFKA_NONE)
            code = response->topics.at[0].partitions.at[i].error_code;
    step_answered(code);
}

static void forgotten(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    const struct leat_kafka_offset_delete_response *response = answer;
    (void)client, (void)owner, (void)n;
    int16_t code = response ? response->error_code : (int16_t)LEAT_KAFKA_REQUEST_TIMED_OUT;
    if (code == LEAT_KAFKA_NONE && response->topics.count > 0 &&
        response->topics.at[0].partitions.count > 0)
        code = response->topics.at[0].partitions.at[0].error_code;
    step_answered(code);
}

static void deleted(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    const struct leat_kafka_delete_groups_response *response = answer;
    (void)client, (void)owner, (void)n;
    int16_t code = response && response->results.count > 0 ? response->results.at[0].error_code
                                                           : (int16_t)LEAT_KAFKA_REQUEST_TIMED_OUT;
    /* An answer was lost, and it is gone by that. */
    if (code == LEAT_KAFKA_GROUP_ID_NOT_FOUND && clerk.unsure) code = LEAT_KAFKA_NONE;
    clerk.unsure |= !response || code != LEAT_KAFKA_NONE;
    step_answered(code);
}

static bool ask(enum sim_group group, enum leat_kafka_key key, const void *body,
                sim_kafka_done on_done)
{
    struct truth_home home;
    truth_home_find(clerk.scenario, sim_group_name(group), &home);
    /* Where there are no homes yet any node makes them. */
    int32_t number = home.owner ? (int32_t)home.owner->number : 0;
    int16_t low = key == LEAT_KAFKA_OFFSET_COMMIT ? 2 : 0;
    return sim_kafka_send(clerk.kafka, number, key,
                          sim_kafka_version(clerk.kafka->client, key, low, 127), body, on_done,
                          clerk.kafka, 0);
}

static bool commit(enum sim_group group)
{
    struct leat_kafka_offset_commit_request_partition rows[SIM_KAFKA_PARTITIONS_MAX];
    struct leat_kafka_offset_commit_request_topic topic = {
        sim_kafka_topic_name(clerk.scenario, clerk.stream), {rows, 0}};
    struct leat_kafka_offset_commit_request body = {
        .group_id = leat_kafka_text(sim_group_name(group)),
        .generation_id_or_member_epoch = -1,
        .member_id = leat_kafka_text(""),
        .group_instance_id = {NULL, -1},
        .retention_time_ms = -1,
        .topics = {&topic, 1},
    };
    for (uint32_t p = 0; p < sim_kafka_partitions(clerk.scenario, clerk.stream); p++)
        if (clerk.next[p] >= 0)
            rows[topic.partitions.count++] = (struct leat_kafka_offset_commit_request_partition){
                (int32_t)p, clerk.next[p], -1, -1, {NULL, -1}};
    return ask(group, LEAT_KAFKA_OFFSET_COMMIT, &body, committed);
}

static bool forget(void)
{
    struct leat_kafka_offset_delete_request_partition row = {0};
    struct leat_kafka_offset_delete_request_topic topic = {
        sim_kafka_topic_name(clerk.scenario, clerk.stream), {&row, 1}};
    struct leat_kafka_offset_delete_request body = {
        .group_id = leat_kafka_text(sim_group_name(SIM_GROUP_KEPT)), .topics = {&topic, 1}};
    return ask(SIM_GROUP_KEPT, LEAT_KAFKA_OFFSET_DELETE, &body, forgotten);
}

static bool delete_gone(void)
{
    struct leat_kafka_string name = leat_kafka_text(sim_group_name(SIM_GROUP_GONE));
    struct leat_kafka_delete_groups_request body = {.groups_names = {&name, 1}};
    return ask(SIM_GROUP_GONE, LEAT_KAFKA_DELETE_GROUPS, &body, deleted);
}

static void go_on(struct sim_world *world, struct sim_event *event)
{
    (void)world;
    if (clerk.kafka != event->a) return;
    bool asked = clerk.step == STEP_KEEP     ? commit(SIM_GROUP_KEPT)
                 : clerk.step == STEP_FORGET ? forget()
                 : clerk.step == STEP_MAKE   ? commit(SIM_GROUP_GONE)
                                             : delete_gone();
    if (!asked) later(AGAIN_US);
}

/* All that a step needs is there, and memory for it. */
static bool may_act(const struct scenario *scenario)
{
    bool all = !scenario->budget && !scenario->corrupt;
    for (unsigned i = 0; i < scenario->server_count; i++)
        all = all && sim_serves(&scenario->servers[i]);
    return all;
}

void sim_clerk_start(struct scenario *scenario, struct sim_kafka *kafka, bool may)
{
    if (clerk.scenario != scenario) {
        memset(&clerk, 0, sizeof clerk);
        sim_rng_init(&clerk.rng, scenario->world->seed, "clerk");
        memset(clerk.committed, 0xff, sizeof clerk.committed); /* nothing */
        clerk.scenario = scenario;
    }
    clerk.kafka = kafka;
    clerk.step = STEP_DONE;
    if (!may || !may_act(scenario) || !sim_rng_chance(&clerk.rng, LOOKS_PER_MILLE)) return;
    clerk.step = STEP_KEEP;
    clerk.unsure = false;
    clerk.forgets = sim_rng_chance(&clerk.rng, FORGET_PER_MILLE);
    clerk.stream = (uint32_t)sim_rng_below(&clerk.rng, SIM_STREAMS);
    for (uint32_t p = 0; p < SIM_KAFKA_PARTITIONS_MAX; p++)
        clerk.next[p] = p == 0 || sim_rng_chance(&clerk.rng, ROWS_PER_MILLE)
                            ? (int64_t)sim_rng_below(&clerk.rng, 1000)
                            : SIM_GROUP_NOTHING;
    later(1);
}
