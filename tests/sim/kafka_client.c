/* SPDX-License-Identifier: Apache-2.0 */
/* Connections, calls and metadata of simulated clients of Kafka. */
#include "tests/sim/kafka_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

enum { CALL_US_MAX = 8 * 1000 * 1000, LOOK_EVERY_US = 250 * 1000 };

struct sim_kafka_call {
    struct sim_kafka_call *next;
    const struct leat_kafka_api *api;
    int16_t version;
    int32_t correlation;
    uint64_t sent_us, wait_us;
    sim_kafka_done on_done;
    void *owner;
    uint64_t n;
};

/* ---- what topics are ---- */

struct leat_log_ref sim_kafka_log(const struct scenario *scenario, uint32_t stream,
                                  uint32_t partition)
{
    uint32_t logs = scenario->streams[stream].settings.logs;
    return (struct leat_log_ref){stream, partition / logs, partition % logs};
}

uint32_t sim_kafka_partitions(const struct scenario *scenario, uint32_t stream)
{
    const struct leat_stream_settings *settings = &scenario->streams[stream].settings;
    return settings->streamlets * settings->logs;
}

struct leat_kafka_string sim_kafka_topic_name(const struct scenario *scenario, uint32_t stream)
{
    return leat_kafka_text(scenario->streams[stream].name);
}

/* ---- answers ---- */

static void call_end(struct sim_kafka *kafka, struct sim_kafka_call *call, const void *answer)
{
    call->on_done(kafka->client, call->owner, call->n, answer);
    free(call);
}

static struct sim_kafka_call *call_pop(struct sim_kafka_link *link)
{
    struct sim_kafka_call *call = link->first;
    link->first = call->next;
    if (!link->first) link->last = NULL;
    return call;
}

static void answer_take(struct sim_kafka_link *link, const uint8_t *bytes, size_t count)
{
    struct sim_kafka *kafka = link->kafka;
    struct sim_world *world = kafka->client->scenario->world;
    struct leat_kafka_reader reader = {.at = bytes, .end = bytes + count, .arena = &kafka->arena};
    int32_t correlation = leat_kafka_read_i32(&reader);
    if (!link->first || link->first->correlation != correlation) {
        sim_fail(world, "A11 assert: a Kafka answer %d that nobody waits for", correlation);
        return;
    }
    struct sim_kafka_call *call = call_pop(link);
    const struct leat_kafka_type *type = call->api->response();
    reader.version = call->version;
    reader.flexible = call->version >= call->api->flexible;
    if (reader.flexible) leat_kafka_skip_tags(&reader);
    leat_kafka_arena_init(&kafka->arena, NULL, LEAT_KAFKA_ARENA_BYTES_MAX);
    void *answer = leat_kafka_arena_take(&kafka->arena, 1, type->bytes);
    LEAT_ASSERT(answer != NULL);
    if (leat_kafka_decode(&reader, type, answer) != LEAT_OK || reader.at != reader.end) {
        sim_fail(world, "A11 assert: an answer to %s %d can't be read: %s", call->api->name,
                 call->version, reader.wrong ? reader.wrong : "bytes are left");
        return;
    }
    call_end(kafka, call, answer);
    leat_kafka_arena_fini(&kafka->arena);
}

static size_t on_bytes(void *user, struct leat_conn *conn, const uint8_t *data, size_t bytes,
                       size_t *want_bytes)
{
    struct sim_kafka_link *link = user;
    const struct sim_world *world = link->kafka->client->scenario->world;
    size_t used = 0;
    (void)conn;
    *want_bytes = 0;
    while (bytes - used >= 4 && !world->failure[0]) {
        size_t count = 4 + (size_t)leat_get_be32(data + used);
        *want_bytes = count;
        if (count > bytes - used) break;
        answer_take(link, data + used + 4, count - 4);
        used += count;
        *want_bytes = 0;
    }
    return used;
}

static void on_closed(void *user, struct leat_conn *conn, leat_err why)
{
    struct sim_kafka_link *link = user;
    struct sim_kafka_call *calls = link->first;
    (void)conn;
    (void)why;
    link->conn = NULL;
    link->open = false;
    link->queued_bytes = 0;
    link->first = link->last = NULL;
    while (calls) {
        struct sim_kafka_call *call = calls;
        calls = call->next;
        call_end(link->kafka, call, NULL);
    }
}

static void on_open(void *user, struct leat_conn *conn)
{
    struct sim_kafka_link *link = user;
    link->open = true;
    const struct leat_net *net = &link->kafka->client->actor->net;
    if (net->send_copy(conn, link->queued, link->queued_bytes) != LEAT_OK) net->close(conn);
    link->queued_bytes = 0;
}

static const struct leat_conn_handler handler = {on_open, on_bytes, on_closed};

/* ---- calls ---- */

static struct sim_kafka_link *link_of(struct sim_kafka *kafka, const char *address)
{
    for (unsigned i = 0; i < kafka->link_count; i++)
        if (strcmp(kafka->links[i].address, address) == 0) return &kafka->links[i];
    LEAT_ASSERT(kafka->link_count < SIM_KAFKA_LINKS_MAX);
    struct sim_kafka_link *link = &kafka->links[kafka->link_count++];
    *link = (struct sim_kafka_link){.kafka = kafka, .node = -1};
    snprintf(link->address, sizeof link->address, "%s", address);
    link->queued = malloc(4 * (size_t)SIM_KAFKA_REQUEST_BYTES_MAX);
    LEAT_ASSERT(link->queued != NULL);
    return link;
}

void sim_kafka_node(struct sim_kafka *kafka, int32_t node, struct leat_kafka_string host,
                    int32_t port)
{
    char address[64];
    snprintf(address, sizeof address, "%.*s:%d", (int)host.bytes, host.text, port);
    struct sim_kafka_link *link = link_of(kafka, address);
    for (unsigned i = 0; i < kafka->link_count; i++)
        if (kafka->links[i].node == node) kafka->links[i].node = -1;
    link->node = node;
}

static struct sim_kafka_link *link_find(struct sim_kafka *kafka, int32_t node)
{
    if (node < 0)
        return &kafka->links[sim_rng_below(&kafka->client->rng,
                                           kafka->client->scenario->server_count)];
    for (unsigned i = 0; i < kafka->link_count; i++)
        if (kafka->links[i].node == node) return &kafka->links[i];
    return NULL;
}

static void look(struct sim_world *world, struct sim_event *event)
{
    struct sim_kafka *kafka = event->a;
    for (unsigned i = 0; i < kafka->link_count; i++) {
        const struct sim_kafka_link *link = &kafka->links[i];
        if (link->conn && link->first && world->now_us - link->first->sent_us > CALL_US_MAX)
            kafka->client->actor->net.close(link->conn);
    }
    sim_actor_post(kafka->client->actor, LOOK_EVERY_US, look, kafka);
}

void sim_kafka_init(struct sim_kafka *kafka, struct sim_client *client)
{
    kafka->client = client;
    for (unsigned i = 0; i < client->scenario->server_count; i++)
        (void)link_of(kafka, client->scenario->servers[i].kafka_address);
    sim_actor_post(client->actor, LOOK_EVERY_US, look, kafka);
}

int16_t sim_kafka_version(struct sim_client *client, enum leat_kafka_key key, int16_t low,
                          int16_t high)
{
    const struct leat_kafka_api *api = leat_kafka_api_find((int16_t)key);
    if (api->first > low) low = api->first;
    if (api->last < high) high = api->last;
    return (int16_t)sim_rng_between(&client->rng, (uint64_t)low, (uint64_t)high);
}

size_t sim_kafka_encode(const struct leat_kafka_api *api, int16_t version, int32_t correlation,
                        const void *body, uint8_t *bytes)
{
    struct leat_kafka_writer writer = {
        .bytes = bytes, .capacity = SIM_KAFKA_REQUEST_BYTES_MAX, .version = version};
    leat_kafka_write_i32(&writer, 0);
    leat_kafka_write_i16(&writer, api->key);
    leat_kafka_write_i16(&writer, version);
    leat_kafka_write_i32(&writer, correlation);
    leat_kafka_write_string(&writer, leat_kafka_text("sim"));
    writer.flexible = version >= api->flexible;
    if (writer.flexible) leat_kafka_write_no_tags(&writer);
    leat_kafka_encode(&writer, api->request(), body);
    LEAT_ASSERT(writer.used <= writer.capacity);
    leat_put_be32(bytes, (uint32_t)writer.used - 4);
    return writer.used;
}

/* Out, or in line until the connection is open. */
static bool link_put(struct sim_kafka_link *link, const uint8_t *bytes, size_t count)
{
    const struct leat_net *net = &link->kafka->client->actor->net;
    if (!link->conn &&
        net->connect(net->ctx, link->address, &handler, link, &link->conn) != LEAT_OK)
        return false;
    if (link->open) return net->send_copy(link->conn, bytes, count) == LEAT_OK;
    if (link->queued_bytes + count > 4 * (size_t)SIM_KAFKA_REQUEST_BYTES_MAX) return false;
    memcpy(link->queued + link->queued_bytes, bytes, count);
    link->queued_bytes += count;
    return true;
}

bool sim_kafka_send(struct sim_kafka *kafka, int32_t node, enum leat_kafka_key key, int16_t version,
                    const void *body, sim_kafka_done on_done, void *owner, uint64_t n)
{
    static uint8_t bytes[SIM_KAFKA_REQUEST_BYTES_MAX];
    struct sim_kafka_link *link = link_find(kafka, node);
    if (!link) return false;
    struct sim_kafka_call *call = calloc(1, sizeof *call);
    LEAT_ASSERT(call != NULL);
    *call = (struct sim_kafka_call){.api = leat_kafka_api_find((int16_t)key),
                                    .version = version,
                                    .correlation = ++kafka->correlation,
                                    .sent_us = kafka->client->scenario->world->now_us,
                                    .on_done = on_done,
                                    .owner = owner,
                                    .n = n};
    if (key == LEAT_KAFKA_FETCH) {
        const struct leat_kafka_fetch_request *fetch = body;
        call->wait_us = (uint64_t)fetch->max_wait_ms * 1000;
    }
    size_t count = sim_kafka_encode(call->api, version, call->correlation, body, bytes);
    if (!link_put(link, bytes, count)) {
        free(call);
        return false;
    }
    if (link->last)
        link->last->next = call;
    else
        link->first = call;
    link->last = call;
    return true;
}

/* ---- what the looks see ---- */

bool sim_kafka_call_see(const struct sim_kafka_link *link, struct sim_kafka_call_seen *out_seen)
{
    const struct sim_kafka_call *call = link->first;
    if (!call) return false;
    *out_seen = (struct sim_kafka_call_seen){(enum leat_kafka_key)call->api->key, call->correlation,
                                             call->n, call->wait_us};
    return true;
}

const struct sim_kafka_link *sim_kafka_link_see(const struct sim_kafka *kafka, int32_t node)
{
    for (unsigned i = 0; node >= 0 && i < kafka->link_count; i++)
        if (kafka->links[i].node == node) return &kafka->links[i];
    return NULL;
}

const struct sim_kafka *sim_kafka_of(const struct sim_client *client)
{
    bool one = client->kind == SIM_CLIENT_KAFKA_PRODUCER ||
               client->kind == SIM_CLIENT_KAFKA_READER || client->kind == SIM_CLIENT_KAFKA_MEMBER;
    return one ? client->state : NULL; /* the first member of each of their states */
}

/* ---- metadata ---- */

static void topic_note(struct sim_kafka *kafka, const struct leat_kafka_metadata_response_topic *in)
{
    const struct scenario *scenario = kafka->client->scenario;
    for (uint32_t i = 0; i < SIM_STREAMS; i++) {
        struct leat_kafka_string name = sim_kafka_topic_name(scenario, i);
        if (in->error_code != 0 || in->name.bytes != name.bytes ||
            memcmp(in->name.text, name.text, (size_t)name.bytes) != 0)
            continue;
        struct sim_kafka_topic *topic = &kafka->topics[i];
        topic->known = true;
        topic->id = in->topic_id;
        for (int32_t p = 0; p < in->partitions.count; p++) {
            const struct leat_kafka_metadata_response_partition *part = &in->partitions.at[p];
            if (part->partition_index < 0 || part->partition_index >= SIM_KAFKA_PARTITIONS_MAX)
                continue;
            struct sim_kafka_leader *leader = &topic->leaders[part->partition_index];
            /* A node that has not heard of the newest owner tells of an older one. */
            if (part->leader_epoch < leader->epoch) continue;
            *leader = (struct sim_kafka_leader){part->leader_id, part->leader_epoch};
        }
    }
}

static void metadata_done(struct sim_client *client, void *owner, uint64_t n, const void *answer)
{
    struct sim_kafka *kafka = owner;
    const struct leat_kafka_metadata_response *response = answer;
    (void)n;
    kafka->asking = false;
    for (int32_t i = 0; response && i < response->brokers.count; i++)
        sim_kafka_node(kafka, response->brokers.at[i].node_id, response->brokers.at[i].host,
                       response->brokers.at[i].port);
    for (int32_t i = 0; response && i < response->topics.count; i++)
        topic_note(kafka, &response->topics.at[i]);
    bool all = response != NULL;
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        all = all && kafka->topics[i].known;
    kafka->on_metadata(client, all);
}

static void metadata_failed(struct sim_world *world, struct sim_event *event)
{
    struct sim_kafka *kafka = event->a;
    metadata_done(kafka->client, kafka, 0, NULL);
    (void)world;
}

void sim_kafka_metadata(struct sim_kafka *kafka)
{
    struct leat_kafka_metadata_request_topic topics[SIM_STREAMS] = {0};
    struct leat_kafka_metadata_request body = {.topics = {topics, SIM_STREAMS}};
    if (kafka->asking) return;
    kafka->asking = true;
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        topics[i].name = sim_kafka_topic_name(kafka->client->scenario, i);
    /* From version 10 on it tells topic ids, which the newest fetches are made by. */
    int16_t version = sim_kafka_version(kafka->client, LEAT_KAFKA_METADATA, 10, 127);
    if (!sim_kafka_send(kafka, -1, LEAT_KAFKA_METADATA, version, &body, metadata_done, kafka, 0))
        sim_actor_post(kafka->client->actor, 1000, metadata_failed, kafka);
}
