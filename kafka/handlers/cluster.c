/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka/handlers/cluster.h"

#include <stdio.h>
#include <string.h>

#include "base/address.h"
#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"

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

static int32_t id_of(int64_t number)
{
    return (int32_t)number + 1;
}

int32_t leat_kafka_self_id(const struct leat_core *core)
{
    const int64_t number = leat_front_self_number(core);
    return number >= 0 ? id_of(number)
                       : 1; /* not heard of itself yet: it is the first of a cluster of its own */
}

/* The tables of an isolated node may not name the owners that there are since the node was declared crashed. So the
 * node names itself neither as up nor as a leader or coordinator, and clients ask the other nodes. */
static bool self_is_named(const struct leat_core *core)
{
    return !leat_front_node(core).isolated || LEAT_BUG(ISOLATED_LISTED);
}

int32_t leat_kafka_node_id(const struct leat_core *core, uint64_t incarnation)
{
    if (incarnation == leat_front_node(core).incarnation)
        return self_is_named(core) ? leat_kafka_self_id(core) : -1;
    const int64_t number = leat_front_node_number(core, incarnation);
    if (number < 0) return -1;
    const struct leat_node_info *info = leat_front_node_info(core, (uint32_t)number);
    if (info->state != LEAT_NODE_UP || info->kafka_address[0] == '\0') return -1;
    return id_of(number);
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
    self.rack = leat_kafka_text(leat_front_node(core).rack);
    if (self.rack.bytes == 0) self.rack.text = NULL;
    if (count_max > 0 && self_is_named(core) &&
        leat_kafka_address_split(self_address(core), &self.host, &self.port))
        out[count++] = self;
    const int64_t own = leat_front_self_number(core);
    for (uint32_t i = 0; i < leat_front_node_count(core) && count < count_max; i++) {
        const struct leat_node_info *info = leat_front_node_info(core, i);
        if (i == own || info->state != LEAT_NODE_UP) continue;
        struct leat_kafka_node *node = &out[count];
        *node = (struct leat_kafka_node){.id = id_of(i)};
        if (info->rack[0] != '\0') node->rack = leat_kafka_text(info->rack);
        if (leat_kafka_address_split(info->kafka_address, &node->host, &node->port)) count++;
    }
    return count;
}

/* ---- topics ---- */

struct leat_kafka_uuid leat_kafka_topic_id(const struct leat_core *core, uint32_t stream)
{
    struct leat_kafka_uuid id;
    memcpy(id.bytes, leat_front_node(core).cluster_id, 12);
    leat_put_be32(id.bytes + 12, stream);
    return id;
}

const struct leat_stream_desc *leat_kafka_topic_by_id(const struct leat_core *core,
                                                      const struct leat_kafka_uuid *id)
{
    if (memcmp(id->bytes, leat_front_node(core).cluster_id, 12) != 0) return NULL;
    return leat_front_stream(core, leat_get_be32(id->bytes + 12));
}

const struct leat_stream_desc *leat_kafka_topic_by_name(const struct leat_core *core,
                                                        struct leat_kafka_string name)
{
    if (name.text == NULL || name.bytes <= 0) return NULL;
    return leat_front_stream_named(core, name.text, (size_t)name.bytes);
}

struct leat_kafka_string leat_kafka_cluster_id(struct leat_kafka_request *request)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    enum { LETTERS = 22 }; /* of 16 bytes, without the padding */
    uint8_t padded[18] = {0};
    char *text = leat_kafka_take(request, LETTERS + 3, 1);
    if (text == NULL) return (struct leat_kafka_string){"", 0};
    memcpy(padded, leat_front_node(request->core).cluster_id, 16);
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

/* Add this node, if it is in this state and there is room. */
static void told_add(const struct leat_core *core, uint32_t number, enum leat_node_state state,
                     uint32_t most, struct leat_kafka_partition_told *told)
{
    LEAT_ASSERT_CMP((uint32_t)told->count, <=, most);
    if ((uint32_t)told->count == most || number >= leat_front_node_count(core)) return;
    if (leat_front_node_info(core, number)->state != state || is_told(told, id_of(number))) return;
    told->nodes[told->count++] = id_of(number);
}

static void told_add_next(const struct leat_core *core, enum leat_node_state state, uint32_t most,
                          struct leat_kafka_partition_told *told)
{
    const uint32_t count = leat_front_node_count(core);
    for (uint32_t i = 0; i + 1 < count; i++)
        told_add(core, ((uint32_t)told->leader_id + i) % count, state, most, told);
}

bool leat_kafka_partition_tell(struct leat_kafka_request *request,
                               const struct leat_stream_desc *stream, uint32_t partition,
                               struct leat_kafka_partition_told *out)
{
    static const enum leat_node_state states[] = {LEAT_NODE_UP, LEAT_NODE_DOWN};
    const struct leat_core *core = request->core;
    uint32_t most = stream->settings.copies, logs = stream->settings.logs;
    LEAT_ASSERT_OWNER(core);
    LEAT_ASSERT_CMP(partition, <, leat_kafka_partition_count(stream));
    LEAT_ASSERT_CMP(most, >, 0); /* the owner's */
    *out = (struct leat_kafka_partition_told){0};
    leat_kafka_leader_of(core, stream, partition / logs, &out->leader_id, &out->leader_epoch);
    if (out->leader_id < 0) {
        out->error_code = LEAT_KAFKA_LEADER_NOT_AVAILABLE;
        return true;
    }
    out->nodes = leat_kafka_take(request, most, sizeof *out->nodes);
    if (out->nodes == NULL) return false;
    out->nodes[out->count++] = out->leader_id;
    const struct leat_log_places *places =
        leat_front_places(core, stream->id, partition / logs, partition % logs);
    uint32_t whole = places != NULL ? places->others.whole : 0;
    LEAT_ASSERT(places == NULL || whole <= places->others.count);
    for (uint32_t i = 0; i < whole; i++)
        told_add(core, places->others.nodes[i], LEAT_NODE_UP, most, out);
    /* If no segment has begun, or no answer has come, no node lacks anything. If a segment has no other copy, all
     * nodes lack it. */
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
                                                const struct leat_stream_desc *stream,
                                                int32_t partition, int32_t epoch,
                                                struct leat_log_ref *out_log, uint32_t *out_home)
{
    LEAT_ASSERT_OWNER(core);
    if (stream == NULL || !leat_kafka_partition_log(stream, partition, out_log))
        return LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
    if (leat_front_stops(core)) return LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER;
    const int32_t current = (int32_t)stream->streamlets[out_log->streamlet].epoch.v;
    if (epoch >= 0 && epoch < current) return LEAT_KAFKA_FENCED_LEADER_EPOCH;
    /* The client knows of an owner that this node has not heard of. */
    if (epoch > current) return LEAT_KAFKA_UNKNOWN_LEADER_EPOCH;
    if (!leat_front_log_home(core, stream, *out_log, out_home))
        return LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER;
    return LEAT_KAFKA_NONE;
}
