/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka/handlers/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "broker/admin/places.h"
#include "broker/data/lookup.h"
#include "broker/data/stream.h"

/* ---- nodes ---- */

bool leat_kafka_address_split(const char *address, struct leat_kafka_string *out_host,
                              int32_t *out_port)
{
    struct leat_address_parts parts;
    if (!leat_address_split(address, strlen(address), &parts)) return false;
    *out_host = (struct leat_kafka_string){parts.host, (int32_t)parts.host_bytes};
    *out_port = parts.port;
    return true;
}

static int32_t member_id(const struct leat_member *member)
{
    return (int32_t)member->number + 1;
}

int32_t leat_kafka_self_id(const struct leat_core *core)
{
    for (uint32_t i = 0; i < core->members.count; i++)
        if (core->members.rows[i]->self) return member_id(core->members.rows[i]);
    return 1; /* not heard of itself yet: it is the first of a cluster of its own */
}

int32_t leat_kafka_node_id(const struct leat_core *core, uint64_t incarnation)
{
    if (incarnation == core->node->incarnation) return leat_kafka_self_id(core);
    const struct leat_member *member = leat_member_find(core, incarnation);
    if (member == NULL || member->info.state != LEAT_NODE_UP ||
        member->info.kafka_address[0] == '\0')
        return -1;
    return member_id(member);
}

static const char *self_address(const struct leat_core *core)
{
    const struct leat_kafka_door *door = leat_kafka_core(core)->door;
    return door->options.advertise != NULL ? door->options.advertise : door->door.bound_address;
}

uint32_t leat_kafka_nodes(struct leat_core *core, struct leat_kafka_node *out, uint32_t count_max)
{
    uint32_t count = 0;
    LEAT_ASSERT_OWNER(core);
    struct leat_kafka_node self = {.id = leat_kafka_self_id(core), .self = true};
    self.rack = leat_kafka_text(core->node->options.cluster.rack);
    if (self.rack.bytes == 0) self.rack.text = NULL;
    if (count_max > 0 && leat_kafka_address_split(self_address(core), &self.host, &self.port))
        out[count++] = self;
    for (uint32_t i = 0; i < core->members.count && count < count_max; i++) {
        const struct leat_member *member = core->members.rows[i];
        if (member->self || member->info.state != LEAT_NODE_UP) continue;
        struct leat_kafka_node *node = &out[count];
        *node = (struct leat_kafka_node){.id = member_id(member)};
        if (member->info.rack[0] != '\0') node->rack = leat_kafka_text(member->info.rack);
        if (leat_kafka_address_split(member->info.kafka_address, &node->host, &node->port)) count++;
    }
    return count;
}

/* ---- topics ---- */

struct leat_kafka_uuid leat_kafka_topic_id(const struct leat_core *core, uint32_t stream)
{
    struct leat_kafka_uuid id;
    memcpy(id.bytes, core->node->cluster_id, 12);
    leat_put_be32(id.bytes + 12, stream);
    return id;
}

static const struct leat_stream *if_told(const struct leat_stream *stream)
{
    return stream != NULL && stream->published ? stream : NULL;
}

const struct leat_stream *leat_kafka_topic_by_id(const struct leat_core *core,
                                                 const struct leat_kafka_uuid *id)
{
    if (memcmp(id->bytes, core->node->cluster_id, 12) != 0) return NULL;
    return if_told(leat_stream_find(core, leat_get_be32(id->bytes + 12)));
}

const struct leat_stream *leat_kafka_topic_by_name(const struct leat_core *core,
                                                   struct leat_kafka_string name)
{
    if (name.text == NULL || name.bytes <= 0) return NULL;
    return if_told(leat_stream_find_name(core, name.text, (size_t)name.bytes));
}

const struct leat_stream *leat_kafka_topic_next(const struct leat_core *core,
                                                const struct leat_stream *stream)
{
    uint32_t row = stream != NULL ? stream->desc->id & core->stream_mask : 0;
    const struct leat_stream *next = stream != NULL ? stream->by_id_next : core->streams_by_id[0];
    for (;;) {
        for (; next != NULL; next = next->by_id_next)
            if (next->published && !next->desc->internal) return next;
        if (row++ == core->stream_mask) return NULL;
        next = core->streams_by_id[row];
    }
}

struct leat_kafka_string leat_kafka_cluster_id(struct leat_kafka_request *request)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    enum { LETTERS = 22 }; /* of 16 bytes, without the padding */
    uint8_t padded[18] = {0};
    char *text = leat_kafka_take(request, LETTERS + 3, 1);
    if (text == NULL) return (struct leat_kafka_string){"", 0};
    memcpy(padded, request->core->node->cluster_id, 16);
    for (size_t i = 0; i < 6; i++) {
        uint32_t three =
            (uint32_t)padded[3 * i] << 16 | (uint32_t)padded[3 * i + 1] << 8 | padded[3 * i + 2];
        for (size_t j = 0; j < 4; j++)
            text[4 * i + j] = letters[three >> (18 - 6 * j) & 63];
    }
    return (struct leat_kafka_string){text, LETTERS};
}

/* ---- partitions ---- */

void leat_kafka_leader_of(const struct leat_core *core, const struct leat_stream_desc *desc,
                          uint32_t streamlet, int32_t *out_id, int32_t *out_epoch)
{
    LEAT_ASSERT_CMP(streamlet, <, desc->settings.streamlets);
    *out_id = leat_kafka_node_id(core, desc->streamlets[streamlet].owner);
    *out_epoch = (int32_t)desc->streamlets[streamlet].epoch.v;
}

static bool is_told(const struct leat_kafka_partition_told *told, int32_t id)
{
    for (int32_t i = 0; i < told->count; i++)
        if (told->nodes[i] == id) return true;
    return false;
}

/* The node of that number, if it is in that state and there is room. */
static void told_add(const struct leat_core *core, uint32_t number, enum leat_node_state state,
                     uint32_t most, struct leat_kafka_partition_told *told)
{
    const struct leat_members *members = &core->members;
    LEAT_ASSERT_CMP((uint32_t)told->count, <=, most);
    if ((uint32_t)told->count == most || number >= members->count) return;
    const struct leat_member *member = members->rows[number];
    if (member->info.state != state || is_told(told, member_id(member))) return;
    told->nodes[told->count++] = member_id(member);
}

static void told_add_next(const struct leat_core *core, enum leat_node_state state, uint32_t most,
                          struct leat_kafka_partition_told *told)
{
    for (uint32_t i = 0; i + 1 < core->members.count; i++)
        told_add(core, ((uint32_t)told->leader_id + i) % core->members.count, state, most, told);
}

bool leat_kafka_partition_tell(struct leat_kafka_request *request, const struct leat_stream *stream,
                               uint32_t partition, struct leat_kafka_partition_told *out)
{
    static const enum leat_node_state states[] = {LEAT_NODE_UP, LEAT_NODE_DOWN};
    const struct leat_core *core = request->core;
    const struct leat_stream_desc *desc = stream->desc;
    uint32_t most = desc->settings.copies, logs = desc->settings.logs;
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT_CMP(partition, <, leat_kafka_partition_count(desc));
    LEAT_ASSERT_CMP(most, >, 0); /* the owner's */
    *out = (struct leat_kafka_partition_told){0};
    leat_kafka_leader_of(core, desc, partition / logs, &out->leader_id, &out->leader_epoch);
    if (out->leader_id < 0) {
        out->error_code = LEAT_KAFKA_LEADER_NOT_AVAILABLE;
        return true;
    }
    out->nodes = leat_kafka_take(request, most, sizeof *out->nodes);
    if (out->nodes == NULL) return false;
    out->nodes[out->count++] = out->leader_id;
    const struct leat_log_places *places =
        leat_places_of(stream, partition / logs, partition % logs);
    uint32_t whole = places != NULL ? places->others.whole : 0;
    LEAT_ASSERT(places == NULL || whole <= places->others.count);
    for (uint32_t i = 0; i < whole; i++)
        told_add(core, places->others.nodes[i], LEAT_NODE_UP, most, out);
    /* Nothing has begun, or nobody has said: then nobody lacks anything. A segment that has no other copy lacks all. */
    if (places == NULL || (LEAT_BUG(AWAY_COUNTS) && places->others.count == 0))
        told_add_next(core, LEAT_NODE_UP, most, out);
    out->in_sync = out->count;
    for (unsigned s = 0; s < 2; s++) {
        int32_t before = out->count;
        for (uint32_t i = 0; places != NULL && i < places->others.count; i++)
            told_add(core, places->others.nodes[i], states[s], most, out);
        told_add_next(core, states[s], most, out);
        out->down = out->count - before;
    }
    LEAT_ASSERT(out->in_sync > 0 && out->in_sync + out->down <= out->count);
    return true;
}

enum leat_kafka_error leat_kafka_partition_find(struct leat_core *core,
                                                const struct leat_stream *stream, int32_t partition,
                                                int32_t epoch, struct leat_log_ref *out_log,
                                                uint32_t *out_home)
{
    LEAT_ASSERT_OWNER(core);
    if (stream == NULL || !leat_kafka_partition_log(stream->desc, partition, out_log))
        return LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    if (core->stopping) return LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER;
    const int32_t current = (int32_t)stream->desc->streamlets[out_log->streamlet].epoch.v;
    if (epoch >= 0 && epoch < current) return LEAT_KAFKA_FENCED_LEADER_EPOCH;
    /* It knows of an owner that this node has not heard of. */
    if (epoch > current) return LEAT_KAFKA_UNKNOWN_LEADER_EPOCH;
    if (!leat_core_owns(core, stream->desc, out_log->streamlet))
        return LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER;
    *out_home = leat_core_of_log(core->node, *out_log, stream->desc->settings.logs);
    LEAT_ASSERT_CMP(*out_home, <, core->node->options.cores);
    return LEAT_KAFKA_NONE;
}
