/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a group of Kafka's protocol, which share the partitions of a topic out among themselves and commit. A
 * committed offset is never out of range above, whatever nodes come and go. */
#include "tests/sim/kafka_pull.h"
#include "tests/sim/truth.h"

#include <stdio.h>
#include <string.h>

#define GROUP "kafka-group"

enum { SESSION_MS = 4000 };

static void parts_revoke(struct puller *puller)
{
    struct sim_client *client = puller->kafka.client;
    puller->turn++;
    for (uint32_t p = 0; p < puller->part_count; p++)
        puller->parts[p] = (struct part){.end = -1, .asked = false};
    check_reader_reset(client->scenario->check, &client->reader);
    memset(client->processed, 0, sizeof client->processed);
}

/* Something of the group was refused, or lost: what is to be done next. */
static void group_refused(struct puller *puller, int16_t code)
{
    sim_trace(puller->kafka.client->scenario->world, "group, stage %d: %d", (int)puller->stage,
              code);
    parts_revoke(puller);
    puller->stage = STAGE_JOIN;
    if (code == LEAT_KAFKA_UNKNOWN_MEMBER_ID || code == LEAT_KAFKA_FENCED_INSTANCE_ID)
        puller->id[0] = '\0';
    else if (code != LEAT_KAFKA_ILLEGAL_GENERATION && code != LEAT_KAFKA_REBALANCE_IN_PROGRESS)
        puller->stage = STAGE_FIND;
    puller_later(puller, sim_rng_between(rng_of(puller), 1000, 100000));
}

static bool stage_over(struct puller *puller, uint64_t n, enum stage stage)
{
    puller->waiting = false;
    return n == puller->turn && puller->stage == stage;
}

static void stage_ask(struct puller *puller, enum leat_kafka_key key, int16_t low, int16_t high,
                      const void *body, sim_kafka_done on_done)
{
    int32_t node = puller->stage == STAGE_FIND ? -1 : puller->coordinator;
    int16_t version = sim_kafka_version(puller->kafka.client, key, low, high);
    puller->waiting =
        sim_kafka_send(&puller->kafka, node, key, version, body, on_done, puller, puller->turn);
    if (!puller->waiting) group_refused(puller, LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE);
}

static void found(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_find_coordinator_response *response = answer;
    if (!stage_over(puller, n, STAGE_FIND)) return;
    if (!response || response->error_code != LEAT_KAFKA_NONE) {
        group_refused(puller, LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE);
        return;
    }
    sim_kafka_node(&puller->kafka, response->node_id, response->host, response->port);
    puller->coordinator = response->node_id;
    puller->stage = STAGE_JOIN;
    puller_later(puller, 10);
    (void)client;
}

static void find(struct puller *puller)
{
    struct leat_kafka_find_coordinator_request body = {.key = leat_kafka_text(GROUP)};
    stage_ask(puller, LEAT_KAFKA_FIND_COORDINATOR, 0, 3, &body, found);
}

static void id_copy(char *out, struct leat_kafka_string id)
{
    snprintf(out, MEMBER_ID_BYTES, "%.*s", (int)(id.bytes > 0 ? id.bytes : 0), id.text);
}

static void joined(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_join_group_response *response = answer;
    if (!stage_over(puller, n, STAGE_JOIN)) return;
    int16_t code = response ? response->error_code : (int16_t)LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (code == LEAT_KAFKA_MEMBER_ID_REQUIRED) {
        id_copy(puller->id, response->member_id);
        puller_later(puller, 10);
        return;
    }
    if (code != LEAT_KAFKA_NONE) {
        group_refused(puller, code);
        return;
    }
    id_copy(puller->id, response->member_id);
    puller->generation = response->generation_id;
    puller->id_count = 0;
    for (int32_t i = 0; i < response->members.count && puller->id_count < MEMBERS_MAX; i++)
        id_copy(puller->ids[puller->id_count++], response->members.at[i].member_id);
    puller->leader = puller->id_count > 0;
    puller->stage = STAGE_SYNC;
    puller_later(puller, 10);
    (void)client;
}

static void join(struct puller *puller)
{
    struct leat_kafka_join_group_request_protocol protocol = {
        leat_kafka_text("range"), {(const uint8_t *)"members say this", 16}};
    struct leat_kafka_join_group_request body = {
        .group_id = leat_kafka_text(GROUP),
        .session_timeout_ms = SESSION_MS,
        .rebalance_timeout_ms = SESSION_MS,
        .member_id = leat_kafka_text(puller->id),
        .group_instance_id = {NULL, -1},
        .protocol_type = leat_kafka_text("consumer"),
        .protocols = {&protocol, 1},
        .reason = {NULL, -1},
    };
    stage_ask(puller, LEAT_KAFKA_JOIN_GROUP, 2, 127, &body, joined);
}

static void synced(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_sync_group_response *response = answer;
    if (!stage_over(puller, n, STAGE_SYNC)) return;
    if (!response || response->error_code != LEAT_KAFKA_NONE) {
        group_refused(puller, response ? response->error_code
                                       : (int16_t)LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE);
        return;
    }
    /* [which of how many] */
    if (response->assignment.count == 2 && response->assignment.at[1] > 0)
        for (uint32_t p = 0; p < puller->part_count; p++)
            puller->parts[p].mine = p % response->assignment.at[1] == response->assignment.at[0];
    puller->stage = STAGE_OFFSETS;
    puller_later(puller, 10);
    (void)client;
}

static void sync_group(struct puller *puller)
{
    struct leat_kafka_sync_group_request_assignment rows[MEMBERS_MAX];
    uint8_t shares[MEMBERS_MAX][2];
    struct leat_kafka_sync_group_request body = {
        .group_id = leat_kafka_text(GROUP),
        .generation_id = puller->generation,
        .member_id = leat_kafka_text(puller->id),
        .group_instance_id = {NULL, -1},
        .protocol_type = leat_kafka_text("consumer"),
        .protocol_name = leat_kafka_text("range"),
        .assignments = {rows, (int32_t)puller->id_count},
    };
    for (unsigned i = 0; i < puller->id_count; i++) {
        shares[i][0] = (uint8_t)i;
        shares[i][1] = (uint8_t)puller->id_count;
        rows[i] = (struct leat_kafka_sync_group_request_assignment){leat_kafka_text(puller->ids[i]),
                                                                    {shares[i], 2}};
    }
    stage_ask(puller, LEAT_KAFKA_SYNC_GROUP, 0, 127, &body, synced);
}

static void offsets_known(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_offset_fetch_response *response = answer;
    if (!stage_over(puller, n, STAGE_OFFSETS)) return;
    int16_t code = response ? response->error_code : (int16_t)LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (code == LEAT_KAFKA_NONE && response->topics.count != 1) code = LEAT_KAFKA_REQUEST_TIMED_OUT;
    for (int32_t i = 0; code == LEAT_KAFKA_NONE && i < response->topics.at[0].partitions.count;
         i++) {
        const struct leat_kafka_offset_fetch_response_partition *row =
            &response->topics.at[0].partitions.at[i];
        if (row->error_code != LEAT_KAFKA_NONE) {
            code = row->error_code;
            break;
        }
        struct part *part = &puller->parts[row->partition_index];
        part->placed = row->committed_offset >= 0;
        part->position = part->placed ? (uint64_t)row->committed_offset : 0;
    }
    if (code != LEAT_KAFKA_NONE) {
        group_refused(puller, code);
        return;
    }
    client->generation = (uint32_t)puller->generation;
    sim_trace(client->scenario->world, "member of generation %d", puller->generation);
    puller->stage = STAGE_READ;
    puller_later(puller, 10);
}

static void offsets_ask(struct puller *puller)
{
    int32_t indexes[SIM_KAFKA_PARTITIONS_MAX];
    struct leat_kafka_offset_fetch_request_topic topic = {topic_of(puller), {indexes, 0}};
    struct leat_kafka_offset_fetch_request body = {.group_id = leat_kafka_text(GROUP),
                                                   .topics = {&topic, 1}};
    for (uint32_t p = 0; p < puller->part_count; p++)
        if (puller->parts[p].mine) indexes[topic.partition_indexes.count++] = (int32_t)p;
    stage_ask(puller, LEAT_KAFKA_OFFSET_FETCH, 2, 7, &body, offsets_known);
}

static void committed(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_offset_commit_response *response = answer;
    const struct scenario *scenario = client->scenario;
    int16_t code = response ? LEAT_KAFKA_NONE : (int16_t)LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE;
    client->commit_under_way = false;
    for (int32_t i = 0;
         response && response->topics.count == 1 && i < response->topics.at[0].partitions.count;
         i++) {
        const struct leat_kafka_offset_commit_response_partition *row =
            &response->topics.at[0].partitions.at[i];
        struct leat_log_ref log =
            sim_kafka_log(scenario, client->stream, (uint32_t)row->partition_index);
        if (row->error_code == LEAT_KAFKA_NONE)
            check_committed(scenario->check, GROUP_SET, log,
                            client->committing[log.streamlet][log.log]);
        else
            code = row->error_code;
    }
    sim_trace(scenario->world, "commit: %d", code);
    if (code != LEAT_KAFKA_NONE && n == puller->turn) group_refused(puller, code);
}

static void commit(struct puller *puller)
{
    struct sim_client *client = puller->kafka.client;
    struct leat_kafka_offset_commit_request_partition rows[SIM_KAFKA_PARTITIONS_MAX];
    struct leat_kafka_offset_commit_request_topic topic = {topic_of(puller), {rows, 0}};
    struct leat_kafka_offset_commit_request body = {
        .group_id = leat_kafka_text(GROUP),
        .generation_id_or_member_epoch = puller->generation,
        .member_id = leat_kafka_text(puller->id),
        .group_instance_id = {NULL, -1},
        .retention_time_ms = -1,
        .topics = {&topic, 1},
    };
    for (uint32_t p = 0; p < puller->part_count; p++) {
        const struct part *part = &puller->parts[p];
        struct leat_log_ref log = sim_kafka_log(client->scenario, client->stream, p);
        if (!part->mine || !part->placed) continue;
        client->committing[log.streamlet][log.log] = part->position;
        rows[topic.partitions.count++] = (struct leat_kafka_offset_commit_request_partition){
            (int32_t)p, (int64_t)part->position, -1, -1, {NULL, -1}};
    }
    if (topic.partitions.count == 0) return;
    client->commit_under_way =
        sim_kafka_send(&puller->kafka, puller->coordinator, LEAT_KAFKA_OFFSET_COMMIT,
                       sim_kafka_version(client, LEAT_KAFKA_OFFSET_COMMIT, 1, 127), &body,
                       committed, puller, puller->turn);
}

static void beaten(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_heartbeat_response *response = answer;
    int16_t code = response ? response->error_code : (int16_t)LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE;
    if (code != LEAT_KAFKA_NONE && n == puller->turn) group_refused(puller, code);
    (void)client;
}

static void left(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    (void)client, (void)owner, (void)n, (void)answer;
}

/* Somebody goes for a while: the others take over. */
static void leave(struct puller *puller)
{
    struct leat_kafka_leave_group_request body = {.group_id = leat_kafka_text(GROUP),
                                                  .member_id = leat_kafka_text(puller->id)};
    (void)sim_kafka_send(&puller->kafka, puller->coordinator, LEAT_KAFKA_LEAVE_GROUP,
                         sim_kafka_version(puller->kafka.client, LEAT_KAFKA_LEAVE_GROUP, 0, 2),
                         &body, left, puller, 0);
    puller->id[0] = '\0';
    group_refused(puller, LEAT_KAFKA_ILLEGAL_GENERATION);
}

void puller_heart(struct sim_world *world, struct sim_event *event)
{
    struct puller *puller = event->a;
    struct sim_client *client = puller->kafka.client;
    sim_actor_post(client->actor, HEARTBEAT_US, puller_heart, puller);
    if (puller->stage != STAGE_READ) return;
    struct leat_kafka_heartbeat_request body = {.group_id = leat_kafka_text(GROUP),
                                                .generation_id = puller->generation,
                                                .member_id = leat_kafka_text(puller->id),
                                                .group_instance_id = {NULL, -1}};
    if (!sim_kafka_send(&puller->kafka, puller->coordinator, LEAT_KAFKA_HEARTBEAT,
                        sim_kafka_version(client, LEAT_KAFKA_HEARTBEAT, 0, 127), &body, beaten,
                        puller, puller->turn))
        group_refused(puller, LEAT_KAFKA_COORDINATOR_NOT_AVAILABLE);
    else if (!client->scenario->faults_over && sim_rng_chance(&client->rng, 40))
        leave(puller);
    else if (!client->commit_under_way && sim_rng_chance(&client->rng, 600))
        commit(puller);
    (void)world;
}

void puller_group_step(struct puller *puller)
{
    if (puller->waiting) return;
    switch (puller->stage) {
    case STAGE_FIND:
        find(puller);
        break;
    case STAGE_JOIN:
        join(puller);
        break;
    case STAGE_SYNC:
        sync_group(puller);
        break;
    case STAGE_OFFSETS:
        offsets_ask(puller);
        break;
    case STAGE_READ:
        puller_read_on(puller);
        break;
    }
}
