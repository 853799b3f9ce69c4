/* SPDX-License-Identifier: Apache-2.0 */
/* Consumers of Kafka's protocol: one that reads a whole topic, and how members of a group read (kafka_pull_group.c has
 * the rest of a member). An offset that was given by a record or a commit is never out of range above, whatever nodes
 * come and go. */
#include "tests/sim/kafka_pull.h"

#include "base/assert.h"
#include "tests/sim/truth.h"

#include <stdlib.h>
#include <string.h>

enum { PAUSE_US = 20000 };

static void tick(struct sim_world *world, struct sim_event *event);

void puller_later(struct puller *puller, uint64_t delay_us)
{
    if (puller->tick_posted) return;
    puller->tick_posted = true;
    sim_actor_post(puller->kafka.client->actor, delay_us, tick, puller);
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
    puller_later(puller, response ? 10 : PAUSE_US);
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
    puller_later(puller, wrong ? sim_rng_between(&client->rng, 1000, 50000)
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

void puller_read_on(struct puller *puller)
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
    puller_later(puller, PAUSE_US);
}

/* ---- going on ---- */

static void on_metadata(struct sim_client *client, bool ok)
{
    struct puller *puller = client->state;
    puller_later(puller, ok ? 100 : sim_rng_between(&client->rng, 5000, 50000));
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
        puller_group_step(puller);
    else {
        trim_sometimes(puller);
        puller_read_on(puller);
    }
    (void)world;
}

/* The fetch that the connection answers next names the partition, and its answer counts. */
static bool fetch_is_next(const struct puller *puller, const struct sim_kafka_link *link,
                          uint32_t partition)
{
    struct sim_kafka_call_seen call;
    return sim_kafka_call_see(link, &call) && call.key == LEAT_KAFKA_FETCH &&
           call.n >> 32 == (puller->turn & 0xffffffff) && (call.n >> partition & 1);
}

static bool part_next(const struct sim_client *client, struct sim_kafka_part_seen *seen)
{
    const struct puller *puller = client->state;
    uint32_t p = seen->at;
    *seen = (struct sim_kafka_part_seen){.at = p + 1};
    if (!puller || p >= puller->part_count) return false;
    const struct part *part = &puller->parts[p];
    const struct sim_kafka_leader *leader = leader_of(puller, p);
    seen->log = sim_kafka_log(client->scenario, client->stream, p);
    seen->link = sim_kafka_link_see(&puller->kafka, leader->node);
    seen->epoch = leader->epoch;
    seen->next = part->position;
    seen->turn = puller->turn;
    bool reads = !puller->member || puller->stage == STAGE_READ;
    seen->waits = reads && part->mine && part->placed && seen->link &&
                  (!part->asked || fetch_is_next(puller, seen->link, p));
    return true;
}

void sim_kafka_puller_start(struct sim_client *client)
{
    struct puller *puller = calloc(1, sizeof *puller);
    LEAT_ASSERT(puller != NULL);
    client->state = puller;
    sim_kafka_init(&puller->kafka, client);
    puller->kafka.on_metadata = on_metadata;
    puller->kafka.part_next = part_next;
    puller->part_count = sim_kafka_partitions(client->scenario, client->stream);
    puller->member = client->kind == SIM_CLIENT_KAFKA_MEMBER;
    puller->coordinator = -1;
    for (uint32_t p = 0; p < puller->part_count; p++)
        puller->parts[p] = (struct part){.mine = !puller->member, .end = -1};
    client->reader.in_group = puller->member;
    client->reader.group = GROUP_SET;
    check_reader_reset(client->scenario->check, &client->reader);
    if (puller->member) sim_actor_post(client->actor, HEARTBEAT_US, puller_heart, puller);
    puller_later(puller, 1000);
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
