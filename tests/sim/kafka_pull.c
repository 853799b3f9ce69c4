/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers of Kafka's protocol: one that reads a whole topic, and members of a group, which share its
 * partitions out among themselves and commit. An offset that was given by a record or a commit is never
 * out of range above, whatever nodes come and go. */
#include "base/assert.h"
#include "tests/sim/kafka_client.h"
#include "tests/sim/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP "kafka-group"

enum {
    GROUP_SET = 1, /* the checkers' */
    SESSION_MS = 4000,
    HEARTBEAT_US = 600 * 1000,
    MEMBERS_MAX = 8,
    MEMBER_ID_BYTES = 80,
    PAUSE_US = 20000,
};

enum stage { STAGE_FIND, STAGE_JOIN, STAGE_SYNC, STAGE_OFFSETS, STAGE_READ };

struct part {
    bool mine, placed; /* placed: `position` says where to read on */
    uint64_t position;
    int64_t end; /* high watermark as told last; -1: not told */
    bool asked;  /* in a fetch under way */
};
struct puller {
    struct sim_kafka kafka;
    struct part parts[SIM_KAFKA_PARTITIONS_MAX];
    uint32_t part_count;
    unsigned fetches; /* under way */
    bool tick_posted, placing, refresh;
    uint64_t turn; /* of the sharing out: answers to questions of an earlier one are void */
    /* a member */
    bool member, heart_posted;
    enum stage stage;
    bool waiting; /* for the answer that the stage is about */
    int32_t coordinator, generation;
    char id[MEMBER_ID_BYTES];
    bool leader;
    char ids[MEMBERS_MAX][MEMBER_ID_BYTES]; /* of the leader's members */
    unsigned id_count;
};

static void tick(struct sim_world *world, struct sim_event *event);

static void later(struct puller *puller, uint64_t delay_us)
{
    if (puller->tick_posted) return;
    puller->tick_posted = true;
    sim_actor_post(puller->kafka.client->actor, delay_us, tick, puller);
}

static struct sim_rng *rng_of(struct puller *puller)
{
    return &puller->kafka.client->rng;
}

static uint32_t stream_of(const struct puller *puller)
{
    return puller->kafka.client->stream;
}

static struct leat_kafka_string topic_of(const struct puller *puller)
{
    return sim_kafka_topic_name(puller->kafka.client->scenario, stream_of(puller));
}

static const struct sim_kafka_leader *leader_of(const struct puller *puller, uint32_t partition)
{
    return &puller->kafka.topics[stream_of(puller)].leaders[partition];
}

/* ---- where to begin: the earliest offset ---- */

static void placed(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_list_offsets_response *response = answer;
    puller->placing = false;
    later(puller, response ? 10 : PAUSE_US);
    if (!response || n != puller->turn || response->topics.count != 1) {
        puller->refresh = true;
        return;
    }
    for (int32_t i = 0; i < response->topics.at[0].partitions.count; i++) {
        const struct leat_kafka_list_offsets_response_partition *row =
            &response->topics.at[0].partitions.at[i];
        struct part *part = &puller->parts[row->partition];
        if (row->error_code != LEAT_KAFKA_NONE || row->offset < 0) {
            puller->refresh = true;
            continue;
        }
        part->placed = true;
        part->position = (uint64_t)row->offset;
        /* An owner of before, which a trap has it ask, names the front of before a trim, too. */
        struct leat_log_ref log =
            sim_kafka_log(client->scenario, client->stream, (uint32_t)row->partition);
        uint64_t processed = client->processed[log.streamlet][log.log];
        if (client->scenario->trap == SIM_TRAP_READER && part->position < processed)
            part->position = processed;
    }
}

/* true: one was asked. */
static bool place(struct puller *puller)
{
    struct leat_kafka_list_offsets_request_partition rows[SIM_KAFKA_PARTITIONS_MAX];
    struct leat_kafka_list_offsets_request_topic topic = {topic_of(puller), {rows, 0}};
    struct leat_kafka_list_offsets_request body = {.replica_id = -1, .topics = {&topic, 1}};
    int32_t node = -1;
    if (puller->placing) return true;
    for (uint32_t p = 0; p < puller->part_count; p++) {
        const struct sim_kafka_leader *leader = leader_of(puller, p);
        const struct part *part = &puller->parts[p];
        if (!part->mine || part->placed || part->asked || leader->node < 0) continue;
        if (node < 0) node = leader->node;
        if (leader->node != node) continue;
        rows[topic.partitions.count++] =
            (struct leat_kafka_list_offsets_request_partition){(int32_t)p, leader->epoch, -2};
    }
    if (node < 0) return false;
    int16_t version = sim_kafka_version(puller->kafka.client, LEAT_KAFKA_LIST_OFFSETS, 1, 127);
    puller->placing = sim_kafka_send(&puller->kafka, node, LEAT_KAFKA_LIST_OFFSETS, version, &body,
                                     placed, puller, puller->turn);
    return puller->placing;
}

/* ---- fetches ---- */

static void records_take(struct puller *puller, uint32_t partition,
                         const struct leat_kafka_fetch_response_partition *row)
{
    struct sim_client *client = puller->kafka.client;
    struct part *part = &puller->parts[partition];
    struct leat_log_ref log = sim_kafka_log(client->scenario, client->stream, partition);
    uint64_t *processed = &client->processed[log.streamlet][log.log];
    struct leat_fetched fetched = {
        .log = {client->scenario->streams[client->stream].id, log.streamlet, log.log},
        .from_offset = part->position,
        .end_offset = UINT64_MAX,
        .acked_offset = (uint64_t)row->high_watermark,
        .group = -1,
        .bytes = (uint8_t *)row->records.at,
        .byte_count = (uint32_t)row->records.count,
    };
    *processed = part->position;
    sim_run_read(client, &fetched);
    part->position = *processed;
}

/* Only a log that knows its end may call an offset too high, whatever its loss: does its owner wait for the end? */
static bool end_is_unknown(struct scenario *scenario, uint32_t stream, struct leat_log_ref log)
{
    struct truth_log truth;
    log.stream = scenario->streams[stream].id;
    return truth_find(scenario, log, &truth) && truth.served && truth.state == LEAT_LOG_WAITING;
}

/* An offset that this reader was given by a record, or its group by a commit, was there. */
static void out_of_range(struct puller *puller, uint32_t partition,
                         const struct leat_kafka_fetch_response_partition *row)
{
    struct scenario *scenario = puller->kafka.client->scenario;
    const struct sim_stream *stream = &scenario->streams[stream_of(puller)];
    struct part *part = &puller->parts[partition];
    bool excused = stream->settings.durability == LEAT_DURABILITY_MEMORY &&
                   check_stream_excused(scenario->check, stream_of(puller));
    /* Answers before version 5 do not say where the log begins: what is below its end was in front. */
    int64_t begin = row->log_start_offset >= 0 ? row->log_start_offset : row->high_watermark;
    bool below = begin >= 0 && part->position < (uint64_t)begin;
    struct leat_log_ref log = sim_kafka_log(scenario, stream_of(puller), partition);
    bool above = begin >= 0 && part->position > (uint64_t)row->high_watermark;
    if (above && end_is_unknown(scenario, stream_of(puller), log)) excused = false;
    bool trimmed = stream->trims || check_may_be_trimmed(scenario->check, log, part->position);
    if (!excused && !(below && trimmed))
        sim_fail(scenario->world,
                 "A7 nonmonotonic-poll: a Kafka consumer of %s partition %u at offset %llu is told "
                 "OFFSET_OUT_OF_RANGE, %lld to %lld",
                 stream->name, partition, (unsigned long long)part->position,
                 (long long)row->log_start_offset, (long long)row->high_watermark);
    sim_trace(scenario->world, "%u/%u/%u at offset %llu: out of range, %lld to %lld", log.stream,
              log.streamlet, log.log, (unsigned long long)part->position,
              (long long)row->log_start_offset, (long long)row->high_watermark);
    part->placed = false;
    /* It begins anew where the log does; and that may be in front of where it was: the power took a trim. */
    if (stream->settings.durability == LEAT_DURABILITY_MEMORY)
        puller->kafka.client->reader.started[log.stream][log.streamlet][log.log] = false;
}

static void row_take(struct puller *puller, const struct leat_kafka_fetch_response_partition *row)
{
    struct sim_client *client = puller->kafka.client;
    const struct scenario *scenario = client->scenario;
    if (row->partition < 0 || (uint32_t)row->partition >= puller->part_count) return;
    struct part *part = &puller->parts[row->partition];
    struct leat_log_ref log = sim_kafka_log(scenario, stream_of(puller), (uint32_t)row->partition);
    if (!part->mine || !part->placed) return;
    switch (row->error_code) {
    case LEAT_KAFKA_NONE:
        part->end = row->high_watermark;
        if (row->records.count > 0) records_take(puller, (uint32_t)row->partition, row);
        break;
    case LEAT_KAFKA_OFFSET_OUT_OF_RANGE:
        out_of_range(puller, (uint32_t)row->partition, row);
        break;
    case LEAT_KAFKA_KAFKA_STORAGE_ERROR: {
        bool memory =
            scenario->streams[client->stream].settings.durability == LEAT_DURABILITY_MEMORY;
        if (memory && check_stream_excused(scenario->check, client->stream))
            client->given_up = true;
        puller->refresh = true;
        break;
    }
    default:
        sim_trace(scenario->world, "fetch of %u/%u/%u: %d", log.stream, log.streamlet, log.log,
                  row->error_code);
        puller->refresh = true;
        break;
    }
}

/* n: the turn, and which partitions were asked for. */
static void fetched(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct puller *puller = owner;
    const struct leat_kafka_fetch_response *response = answer;
    bool current = n >> 32 == (puller->turn & 0xffffffff);
    puller->fetches--;
    for (uint32_t p = 0; p < puller->part_count; p++)
        if (current && (n >> p & 1)) puller->parts[p].asked = false;
    bool refresh_before = puller->refresh;
    if (!response || response->error_code != LEAT_KAFKA_NONE || response->topics.count != 1)
        puller->refresh = true;
    else if (current)
        for (int32_t i = 0; i < response->topics.at[0].partitions.count; i++)
            row_take(puller, &response->topics.at[0].partitions.at[i]);
    bool wrong = puller->refresh && !refresh_before;
    later(puller, wrong ? sim_rng_between(&client->rng, 1000, 50000)
                        : sim_rng_between(&client->rng, 10, 3000));
}

static void fetch_node(struct puller *puller, int32_t node)
{
    struct sim_rng *rng = rng_of(puller);
    struct leat_kafka_fetch_request_partition rows[SIM_KAFKA_PARTITIONS_MAX];
    struct leat_kafka_fetch_request_topic topic = {
        topic_of(puller), puller->kafka.topics[stream_of(puller)].id, {rows, 0}};
    struct leat_kafka_fetch_request body;
    uint64_t asked = 0;
    leat_kafka_defaults(leat_kafka_type_fetch_request(), &body);
    for (uint32_t p = 0; p < puller->part_count; p++) {
        const struct part *part = &puller->parts[p];
        if (!part->mine || !part->placed || part->asked || leader_of(puller, p)->node != node)
            continue;
        struct leat_kafka_fetch_request_partition *row = &rows[topic.partitions.count++];
        leat_kafka_defaults(leat_kafka_type_fetch_request_partition(), row);
        row->partition = (int32_t)p;
        /* Older clients say no epoch: then only the coordinators know who is deposed. */
        row->current_leader_epoch = sim_rng_chance(rng, 500) ? leader_of(puller, p)->epoch : -1;
        row->fetch_offset = (int64_t)part->position;
        row->partition_max_bytes = (int32_t)sim_rng_between(rng, 1000, 60000);
        asked |= 1ull << p;
    }
    if (asked == 0) return;
    body.max_wait_ms = (int32_t)sim_rng_between(rng, 20, 500);
    body.min_bytes = 1;
    body.max_bytes = (int32_t)sim_rng_between(rng, 2000, 200000);
    body.topics.at = &topic;
    body.topics.count = 1;
    body.rack_id = leat_kafka_text("");
    int16_t version = sim_kafka_version(puller->kafka.client, LEAT_KAFKA_FETCH, 4, 127);
    uint64_t n = (puller->turn & 0xffffffff) << 32 | asked;
    if (!sim_kafka_send(&puller->kafka, node, LEAT_KAFKA_FETCH, version, &body, fetched, puller,
                        n)) {
        puller->refresh = true;
        return;
    }
    puller->fetches++;
    for (uint32_t p = 0; p < puller->part_count; p++)
        if (asked >> p & 1) puller->parts[p].asked = true;
}

static void read_on(struct puller *puller)
{
    (void)place(puller);
    for (uint32_t p = 0; p < puller->part_count; p++) {
        const struct part *part = &puller->parts[p];
        if (!part->mine) continue;
        if (leader_of(puller, p)->node < 0)
            puller->refresh = true;
        else if (part->placed && !part->asked)
            fetch_node(puller, leader_of(puller, p)->node);
    }
    if (!puller->refresh) return;
    puller->refresh = false;
    sim_kafka_metadata(&puller->kafka);
    later(puller, PAUSE_US);
}

/* ---- a group's member ---- */

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
    later(puller, sim_rng_between(rng_of(puller), 1000, 100000));
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
    later(puller, 10);
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
        later(puller, 10);
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
    later(puller, 10);
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
    later(puller, 10);
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
    later(puller, 10);
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

static void heart(struct sim_world *world, struct sim_event *event)
{
    struct puller *puller = event->a;
    struct sim_client *client = puller->kafka.client;
    sim_actor_post(client->actor, HEARTBEAT_US, heart, puller);
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

static void group_step(struct puller *puller)
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
        read_on(puller);
        break;
    }
}

/* ---- going on ---- */

static void on_metadata(struct sim_client *client, bool ok)
{
    struct puller *puller = client->state;
    later(puller, ok ? 100 : sim_rng_between(&client->rng, 5000, 50000));
}

/* A reader may give up the records that it has read, or all records. */
static void trim_sometimes(struct puller *puller)
{
    const struct scenario *scenario = puller->kafka.client->scenario;
    struct sim_rng *rng = rng_of(puller);
    if (!scenario->with_trims || scenario->faults_over || !sim_rng_chance(rng, 50)) return;
    uint32_t partition = (uint32_t)sim_rng_below(rng, puller->part_count);
    const struct part *part = &puller->parts[partition];
    if (part->placed)
        sim_kafka_trim(&puller->kafka, partition,
                       sim_rng_chance(rng, 100) ? UINT64_MAX : part->position);
}

static void tick(struct sim_world *world, struct sim_event *event)
{
    struct puller *puller = event->a;
    puller->tick_posted = false;
    if (!puller->kafka.topics[stream_of(puller)].known)
        sim_kafka_metadata(&puller->kafka);
    else if (puller->member)
        group_step(puller);
    else {
        trim_sometimes(puller);
        read_on(puller);
    }
    (void)world;
}

void sim_kafka_puller_start(struct sim_client *client)
{
    struct puller *puller = calloc(1, sizeof *puller);
    LEAT_ASSERT(puller != NULL);
    client->state = puller;
    sim_kafka_init(&puller->kafka, client);
    puller->kafka.on_metadata = on_metadata;
    puller->part_count = sim_kafka_partitions(client->scenario, client->stream);
    puller->member = client->kind == SIM_CLIENT_KAFKA_MEMBER;
    puller->coordinator = -1;
    for (uint32_t p = 0; p < puller->part_count; p++)
        puller->parts[p] = (struct part){.mine = !puller->member, .end = -1};
    client->reader.in_group = puller->member;
    client->reader.group = GROUP_SET;
    check_reader_reset(client->scenario->check, &client->reader);
    if (puller->member) sim_actor_post(client->actor, HEARTBEAT_US, heart, puller);
    later(puller, 1000);
}

void sim_kafka_lead(struct sim_client *client, const char *address)
{
    struct puller *puller = client->state;
    puller->refresh |= address == NULL;
    for (unsigned i = 0; address && i < puller->kafka.link_count; i++)
        for (uint32_t p = 0; p < puller->part_count; p++)
            if (strcmp(puller->kafka.links[i].address, address) == 0)
                puller->kafka.topics[stream_of(puller)].leaders[p].node =
                    puller->kafka.links[i].node;
    (void)sim_net_reset(client->process, 1000); /* what it waits for is lost */
}

bool sim_kafka_at_end(const struct sim_client *client)
{
    const struct puller *puller = client->state;
    for (uint32_t p = 0; puller && p < puller->part_count; p++) {
        const struct part *part = &puller->parts[p];
        if (!part->placed || part->end < 0 || part->position < (uint64_t)part->end) return false;
    }
    return puller != NULL;
}

const char *sim_kafka_member(const struct sim_client *client)
{
    const struct puller *puller = client->state;
    return puller && puller->member && puller->stage == STAGE_READ ? puller->id : NULL;
}
