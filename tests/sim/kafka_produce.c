/* SPDX-License-Identifier: Apache-2.0 */
/* An idempotent producer of Kafka's protocol: a few batches of each partition in flight, sent again in
 * order, from the first that is not answered, whenever one is lost or refused for now. */
#include "tests/sim/kafka_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

enum { BATCH_BYTES_MAX = 4096, IN_FLIGHT_MAX = 3, RECORDS_MAX = 5, OPEN_MAX = 40 };
enum { BATCH_HIGHEST_TIME_AT = 35 };

struct batch {
    struct batch *next;
    uint32_t count, first_number, bytes;
    bool flying;
    uint8_t data[BATCH_BYTES_MAX];
};
struct part {
    struct batch *first, *last;
    int32_t next_sequence, at; /* at: the node that has what is flying */
    unsigned flying;
    bool again;         /* when nothing is flying any more: all from the first */
    bool given_up, few; /* few: the last answer was NOT_ENOUGH_REPLICAS */
};
struct producer {
    struct sim_kafka kafka; /* first: sim_kafka_of() */
    int64_t id;
    int16_t epoch;
    bool asking_id, tick_posted;
    unsigned open; /* batches without an answer */
    struct part parts[SIM_STREAMS][SIM_KAFKA_PARTITIONS_MAX];
};

static void tick(struct sim_world *world, struct sim_event *event);
static void part_flush(struct producer *producer, uint32_t stream, uint32_t partition);

static void later(struct producer *producer, uint64_t delay_us)
{
    if (producer->tick_posted) return;
    producer->tick_posted = true;
    sim_actor_post(producer->kafka.client->actor, delay_us, tick, producer);
}

/* ---- batches ---- */

static void batch_make(struct producer *producer, uint32_t stream, uint32_t partition)
{
    struct sim_client *client = producer->kafka.client;
    const struct scenario *scenario = client->scenario;
    struct part *part = &producer->parts[stream][partition];
    struct batch *batch = calloc(1, sizeof *batch);
    LEAT_ASSERT(batch != NULL);
    struct leat_batch_builder builder;
    leat_batch_builder_init(&builder, batch->data, sizeof batch->data);
    batch->first_number = client->sent[stream];
    batch->count = (uint32_t)sim_rng_between(&client->rng, 1, RECORDS_MAX);
    for (uint32_t i = 0; i < batch->count; i++) {
        uint8_t value[12 + 300];
        uint32_t words[3] = {client->index, client->sent[stream]++, stream};
        size_t bytes = 12 + (size_t)sim_rng_below(&client->rng, 300);
        memset(value, (int)(words[1] & 0xff), sizeof value);
        memcpy(value, words, sizeof words);
        leat_err rc = leat_batch_builder_add(
            &builder, scenario->world->wall_base_ms + (int64_t)(scenario->world->now_us / 1000),
            NULL, 0, value, bytes, NULL, 0, 0);
        LEAT_ASSERT(rc == LEAT_OK);
        check_sent(scenario->check, stream, (struct check_value){words[0], words[1]});
        if (client->quota > 0) client->quota--;
    }
    batch->bytes = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, producer->id,
                                             producer->epoch, part->next_sequence);
    uint32_t packed_bytes;
    uint8_t packed[BATCH_BYTES_MAX];
    enum leat_codec codec = sim_rng_chance(&client->rng, 500) ? LEAT_CODEC_LZ4 : LEAT_CODEC_ZSTD;
    if (sim_rng_chance(&client->rng, 300) &&
        leat_batch_compress(batch->data, batch->bytes, codec, 1, packed, sizeof packed,
                            &packed_bytes) == LEAT_OK) {
        memcpy(batch->data, packed, packed_bytes);
        batch->bytes = packed_bytes;
    }
    /* As old clients for Go send it, and as nobody should. */
    static const int64_t lies[] = {-1, 0, INT64_MAX};
    if (sim_rng_chance(&client->rng, 300)) {
        leat_put_be64(batch->data + BATCH_HIGHEST_TIME_AT, (uint64_t)lies[batch->count % 3]);
        leat_batch_set_producer(batch->data, batch->bytes, producer->id, producer->epoch,
                                part->next_sequence);
    }
    part->next_sequence += (int32_t)batch->count;
    if (part->last)
        part->last->next = batch;
    else
        part->first = batch;
    part->last = batch;
    producer->open++;
}

static void batch_remove(struct producer *producer, struct part *part, struct batch *batch)
{
    struct batch **at = &part->first, *before = NULL;
    while (*at != batch) {
        before = *at;
        at = &(*at)->next;
    }
    *at = batch->next;
    if (part->last == batch) part->last = before;
    free(batch);
    producer->open--;
}

/* Nothing is known of them, and nothing will be. */
static void part_give_up(struct producer *producer, uint32_t stream, struct part *part)
{
    const struct sim_client *client = producer->kafka.client;
    part->given_up = true;
    while (part->first) {
        for (uint32_t i = 0; i < part->first->count; i++)
            check_failed(client->scenario->check, stream,
                         (struct check_value){client->index, part->first->first_number + i}, false);
        batch_remove(producer, part, part->first);
    }
}

/* ---- answers ---- */

static bool comes_again(int16_t code)
{
    switch (code) {
    case LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION:
    case LEAT_KAFKA_LEADER_NOT_AVAILABLE:
    case LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER:
    case LEAT_KAFKA_REQUEST_TIMED_OUT:
    case LEAT_KAFKA_NOT_ENOUGH_REPLICAS:
    case LEAT_KAFKA_KAFKA_STORAGE_ERROR:
    case LEAT_KAFKA_UNKNOWN_LEADER_EPOCH:
    case LEAT_KAFKA_FENCED_LEADER_EPOCH:
        return true;
    default:
        return false;
    }
}

static void batch_acked(struct producer *producer, uint32_t stream, uint32_t partition,
                        struct batch *batch, int64_t offset)
{
    const struct sim_client *client = producer->kafka.client;
    struct scenario *scenario = client->scenario;
    struct part *part = &producer->parts[stream][partition];
    struct leat_log_ref log = sim_kafka_log(scenario, stream, partition);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct check_value value = {client->index, batch->first_number + i};
        if (offset >= 0)
            check_acked(scenario->check, log, value, (uint64_t)offset + i);
        else /* there, at an offset that is not remembered any more */
            check_failed(scenario->check, stream, value, false);
    }
    if (offset >= 0) {
        scenario->acked_batches++;
        sim_copies_acked(scenario, log);
    }
    batch_remove(producer, part, batch);
}

static void batch_refused(struct producer *producer, uint32_t stream, uint32_t partition,
                          int16_t code)
{
    const struct scenario *scenario = producer->kafka.client->scenario;
    /* A log of level memory loses the states of its producers with the power, too. */
    bool memory = scenario->streams[stream].settings.durability == LEAT_DURABILITY_MEMORY;
    if (!(memory && check_stream_excused(scenario->check, stream)))
        sim_fail(scenario->world,
                 "A10 stuck: a well-behaved Kafka producer is refused: stream %u partition %u: %d",
                 stream, partition, code);
    part_give_up(producer, stream, &producer->parts[stream][partition]);
}

static const struct leat_kafka_produce_response_partition *
only_partition(const struct leat_kafka_produce_response *response)
{
    if (response->topics.count != 1 || response->topics.at[0].partitions.count != 1) return NULL;
    return &response->topics.at[0].partitions.at[0];
}

static void produce_done(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct producer *producer = client->state;
    struct batch *batch = owner;
    uint32_t stream = (uint32_t)(n >> 8), partition = (uint32_t)n & 0xff;
    struct part *part = &producer->parts[stream][partition];
    part->flying--;
    if (part->given_up) { /* the batch with it */
        if (part->flying == 0) part->again = false;
        return;
    }
    batch->flying = false;
    const struct leat_kafka_produce_response_partition *row =
        answer ? only_partition(answer) : NULL;
    int16_t code = row ? row->error_code : (int16_t)LEAT_KAFKA_REQUEST_TIMED_OUT;
    struct leat_log_ref log = sim_kafka_log(client->scenario, stream, partition);
    sim_trace(client->scenario->world, "produce to %u/%u/%u from %u: %s%d at %lld", log.stream,
              log.streamlet, log.log, batch->first_number, answer ? "" : "lost, ", code,
              row ? (long long)row->base_offset : -1);
    bool first = batch == part->first;
    part->few = code == LEAT_KAFKA_NOT_ENOUGH_REPLICAS;
    if (code == LEAT_KAFKA_NONE) {
        batch_acked(producer, stream, partition, batch, row->base_offset);
    } else if (code == LEAT_KAFKA_DUPLICATE_SEQUENCE_NUMBER) {
        batch_acked(producer, stream, partition, batch, -1);
    } else if (comes_again(code) || (code == LEAT_KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER && !first)) {
        /* Of one behind a batch that was not taken: that one has to come first. */
        part->again = true;
    } else {
        batch_refused(producer, stream, partition, code);
        return;
    }
    if (part->again)
        later(producer, sim_rng_between(&client->rng, 1000, 50000));
    else
        part_flush(producer, stream, partition);
}

static bool batch_send(struct producer *producer, uint32_t stream, uint32_t partition,
                       struct batch *batch)
{
    struct sim_client *client = producer->kafka.client;
    struct part *part = &producer->parts[stream][partition];
    struct leat_kafka_produce_request_partition row = {(int32_t)partition,
                                                       {batch->data, (int32_t)batch->bytes, NULL}};
    struct leat_kafka_produce_request_topic topic = {sim_kafka_topic_name(client->scenario, stream),
                                                     {&row, 1}};
    struct leat_kafka_produce_request body = {
        {NULL, -1}, sim_rng_chance(&client->rng, 500) ? 1 : -1, 5000, {&topic, 1}};
    int32_t leader = producer->kafka.topics[stream].leaders[partition].node;
    if (leader < 0 || (part->flying > 0 && leader != part->at)) return false;
    int16_t version = sim_kafka_version(client, LEAT_KAFKA_PRODUCE, 3, 127);
    if (!sim_kafka_send(&producer->kafka, leader, LEAT_KAFKA_PRODUCE, version, &body, produce_done,
                        batch, (uint64_t)stream << 8 | partition))
        return false;
    part->at = leader;
    part->flying++;
    batch->flying = true;
    return true;
}

static void part_flush(struct producer *producer, uint32_t stream, uint32_t partition)
{
    struct part *part = &producer->parts[stream][partition];
    if (part->given_up || (part->again && part->flying > 0)) return;
    part->again = false;
    for (struct batch *batch = part->first; batch && part->flying < IN_FLIGHT_MAX;
         batch = batch->next) {
        if (batch->flying) continue;
        if (batch_send(producer, stream, partition, batch)) continue;
        part->again = true;
        later(producer, 20000);
        return;
    }
}

/* ---- going on ---- */

static void id_done(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct producer *producer = owner;
    const struct leat_kafka_init_producer_id_response *response = answer;
    (void)n;
    producer->asking_id = false;
    if (response && response->error_code == LEAT_KAFKA_NONE) {
        producer->id = response->producer_id;
        producer->epoch = response->producer_epoch;
    }
    later(producer, sim_rng_between(&client->rng, 100, 20000));
}

static void id_ask(struct producer *producer)
{
    struct leat_kafka_init_producer_id_request body = {{NULL, -1}, 1000, -1, -1};
    struct sim_client *client = producer->kafka.client;
    int16_t version = sim_kafka_version(client, LEAT_KAFKA_INIT_PRODUCER_ID, 0, 127);
    if (producer->asking_id) return;
    producer->asking_id = sim_kafka_send(&producer->kafka, -1, LEAT_KAFKA_INIT_PRODUCER_ID, version,
                                         &body, id_done, producer, 0);
    if (!producer->asking_id) later(producer, 20000);
}

static void on_metadata(struct sim_client *client, bool ok)
{
    struct producer *producer = client->state;
    later(producer, ok ? 100 : sim_rng_between(&client->rng, 5000, 50000));
}

static bool topics_known(const struct producer *producer)
{
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        if (!producer->kafka.topics[i].known) return false;
    return true;
}

/* A log of level memory that lost its end with the power on all nodes may wait for an operator longer
 * than a seed lasts (docs/recovery.md). Native producers are refused by name then; those of Kafka's
 * protocol would ask again for ever. */
static bool wants(const struct scenario *scenario, uint32_t stream)
{
    bool memory = scenario->streams[stream].settings.durability == LEAT_DURABILITY_MEMORY;
    return !(memory && scenario->power_cuts && scenario->server_count > 1);
}

static void burst(struct producer *producer)
{
    struct sim_client *client = producer->kafka.client;
    struct sim_rng *rng = &client->rng;
    for (uint64_t left = sim_rng_between(rng, 1, 4); left > 0 && client->quota; left--) {
        uint32_t stream = (uint32_t)sim_rng_below(rng, SIM_STREAMS);
        if (!wants(client->scenario, stream)) continue;
        uint32_t count = sim_kafka_partitions(client->scenario, stream);
        uint32_t partition = (uint32_t)sim_rng_below(rng, count);
        if (producer->open >= OPEN_MAX) return;
        if (producer->parts[stream][partition].given_up) {
            client->quota--; /* all of them may be */
            continue;
        }
        batch_make(producer, stream, partition);
        part_flush(producer, stream, partition);
    }
    if (!client->quota) client->scenario->producers_running--;
}

static void tick(struct sim_world *world, struct sim_event *event)
{
    struct producer *producer = event->a;
    struct sim_client *client = producer->kafka.client;
    bool again = false;
    producer->tick_posted = false;
    if (!client->scenario->streams_made) {
        later(producer, 5000);
        return;
    }
    for (uint32_t s = 0; s < SIM_STREAMS; s++)
        for (uint32_t p = 0; p < SIM_KAFKA_PARTITIONS_MAX; p++) {
            again |= producer->parts[s][p].again;
            if (producer->parts[s][p].again) part_flush(producer, s, p);
        }
    if (!topics_known(producer) || again) sim_kafka_metadata(&producer->kafka);
    if (!topics_known(producer)) return; /* on_metadata */
    if (producer->id < 0)
        id_ask(producer);
    else if (client->quota)
        burst(producer);
    if (client->quota || again)
        later(producer, sim_rng_between(&client->rng, 500, client->scenario->pause_us_max));
    (void)world;
}

/* ---- what the looks see ---- */

/* Batches of the partition are in the call that the connection answers next. */
static bool produce_is_next(const struct sim_kafka_link *link, uint64_t n)
{
    struct sim_kafka_call_seen call;
    return sim_kafka_call_see(link, &call) && call.key == LEAT_KAFKA_PRODUCE && call.n == n;
}

static bool part_next(const struct sim_client *client, struct sim_kafka_part_seen *seen)
{
    const struct producer *producer = client->state;
    uint32_t stream = seen->at / SIM_KAFKA_PARTITIONS_MAX, p = seen->at % SIM_KAFKA_PARTITIONS_MAX;
    *seen = (struct sim_kafka_part_seen){.at = seen->at + 1};
    if (!producer || stream >= SIM_STREAMS) return false;
    const struct part *part = &producer->parts[stream][p];
    if (!part->first || part->given_up) return true;
    const struct sim_kafka_leader *leader = &producer->kafka.topics[stream].leaders[p];
    seen->log = sim_kafka_log(client->scenario, stream, p);
    seen->link = sim_kafka_link_see(&producer->kafka, leader->node);
    seen->epoch = leader->epoch;
    seen->next = part->first->first_number;
    seen->any = true;
    bool next = seen->link && leader->node == part->at &&
                produce_is_next(seen->link, (uint64_t)stream << 8 | p);
    seen->waits = seen->link && !part->few && (part->flying == 0 || next);
    return true;
}

void sim_kafka_producer_start(struct sim_client *client)
{
    struct producer *producer = calloc(1, sizeof *producer);
    LEAT_ASSERT(producer != NULL);
    client->state = producer;
    producer->id = -1;
    sim_kafka_init(&producer->kafka, client);
    producer->kafka.on_metadata = on_metadata;
    producer->kafka.part_next = part_next;
    later(producer, 1000);
}
