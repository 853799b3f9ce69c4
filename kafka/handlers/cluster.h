/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, topics and partitions as Kafka names them. All by the core's own tables. Thread: core. */
#ifndef LEAT_KAFKA_HANDLERS_CLUSTER_H
#define LEAT_KAFKA_HANDLERS_CLUSTER_H

#include "broker/front_logs.h"
#include "kafka/front/request.h"

/* Where clients find a node. Views, valid until the next turn. */
struct leat_kafka_node {
    int32_t id; /* the coordinator's order of nodes, from 1: never used for another */
    struct leat_kafka_string host, rack; /* rack: null when not said */
    int32_t port;
    bool self;
};
/** Nodes that are up and have an address for clients of Kafka, the node itself first unless it is isolated. Up to
 * count_max; returns how many. */
uint32_t leat_kafka_nodes(struct leat_core *core, struct leat_kafka_node *out, uint32_t count_max);
/** The id of an owner; -1: it is not up, not known, does not serve clients of Kafka, or is this node and isolated. */
int32_t leat_kafka_node_id(const struct leat_core *core, uint64_t incarnation);
int32_t leat_kafka_self_id(const struct leat_core *core);
/** "HOST:PORT", the host without brackets. false: it is none. */
bool leat_kafka_address_split(const char *address, struct leat_kafka_string *out_host,
                              int32_t *out_port);

/* A topic's id is made of the cluster's and the stream's, which is never used again. */
struct leat_kafka_uuid leat_kafka_topic_id(const struct leat_core *core, uint32_t stream);
/** The published stream of this id, or NULL. */
const struct leat_stream_desc *leat_kafka_topic_by_id(const struct leat_core *core,
                                                      const struct leat_kafka_uuid *id);
const struct leat_stream_desc *leat_kafka_topic_by_name(const struct leat_core *core,
                                                        struct leat_kafka_string name);
/** The cluster's id as clients see it: 22 letters of base64. */
struct leat_kafka_string leat_kafka_cluster_id(struct leat_kafka_request *request);

/* What a client may do, where nothing controls access: every operation that its resource has. Bits, as
 * Kafka numbers operations. */
enum {
    LEAT_KAFKA_MAY_READ = 1 << 3,
    LEAT_KAFKA_MAY_WRITE = 1 << 4,
    LEAT_KAFKA_MAY_CREATE = 1 << 5,
    LEAT_KAFKA_MAY_DELETE = 1 << 6,
    LEAT_KAFKA_MAY_ALTER = 1 << 7,
    LEAT_KAFKA_MAY_DESCRIBE = 1 << 8,
    LEAT_KAFKA_MAY_ACT_ON_CLUSTER = 1 << 9,
    LEAT_KAFKA_MAY_DESCRIBE_CONFIGS = 1 << 10,
    LEAT_KAFKA_MAY_ALTER_CONFIGS = 1 << 11,
    LEAT_KAFKA_MAY_WRITE_IDEMPOTENTLY = 1 << 12,
    LEAT_KAFKA_MAY_TOPIC = LEAT_KAFKA_MAY_READ | LEAT_KAFKA_MAY_WRITE | LEAT_KAFKA_MAY_CREATE |
                           LEAT_KAFKA_MAY_DELETE | LEAT_KAFKA_MAY_ALTER | LEAT_KAFKA_MAY_DESCRIBE |
                           LEAT_KAFKA_MAY_DESCRIBE_CONFIGS | LEAT_KAFKA_MAY_ALTER_CONFIGS,
    LEAT_KAFKA_MAY_GROUP = LEAT_KAFKA_MAY_READ | LEAT_KAFKA_MAY_DELETE | LEAT_KAFKA_MAY_DESCRIBE,
    LEAT_KAFKA_MAY_CLUSTER = LEAT_KAFKA_MAY_CREATE | LEAT_KAFKA_MAY_ALTER |
                             LEAT_KAFKA_MAY_DESCRIBE | LEAT_KAFKA_MAY_ACT_ON_CLUSTER |
                             LEAT_KAFKA_MAY_DESCRIBE_CONFIGS | LEAT_KAFKA_MAY_ALTER_CONFIGS |
                             LEAT_KAFKA_MAY_WRITE_IDEMPOTENTLY,
};

static inline uint32_t leat_kafka_partition_count(const struct leat_stream_desc *desc)
{
    return desc->streamlet_count * desc->settings.logs;
}
/** false: there is no such partition. */
static inline bool leat_kafka_partition_log(const struct leat_stream_desc *desc, int32_t partition,
                                            struct leat_log_ref *out_log)
{
    if (partition < 0 || (uint32_t)partition >= leat_kafka_partition_count(desc)) return false;
    uint32_t logs = desc->settings.logs;
    *out_log =
        (struct leat_log_ref){desc->id, (uint32_t)partition / logs, (uint32_t)partition % logs};
    return true;
}

/**
 * Does this node serve the partition, under the epoch that the client believes in (-1: any)?
 * NONE: *out_log, and *out_home, the core it lives on. Else UNKNOWN_TOPIC_OR_PARTITION,
 * NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, LEADER_NOT_AVAILABLE.
 * stream: may be NULL.
 */
enum leat_kafka_error leat_kafka_partition_find(struct leat_core *core,
                                                const struct leat_stream_desc *stream,
                                                int32_t partition, int32_t epoch,
                                                struct leat_log_ref *out_log, uint32_t *out_home);
/* The nodes of a partition, for an answer: first the nodes that are in sync, with the owner before all; then the
 * nodes that are not in sync, with the nodes that are down last. There are as many nodes as the partition has copies:
 * where fewer nodes have copies, or no answer has come, the list is filled with the nodes that follow the owner in
 * the order of ids. As long as no answer has come, all nodes that are up count as in sync. */
struct leat_kafka_partition_told {
    int16_t error_code; /* LEADER_NOT_AVAILABLE: no nodes */
    int32_t leader_id, leader_epoch;
    int32_t *nodes;
    int32_t count, in_sync, down;
};
/** false: no memory. */
bool leat_kafka_partition_tell(struct leat_kafka_request *request,
                               const struct leat_stream_desc *stream, uint32_t partition,
                               struct leat_kafka_partition_told *out) LEAT_NODISCARD;
/* Two messages tell it by members of the same names. */
#define LEAT_KAFKA_PARTITION_FILL(to, told, index)                                                 \
    do {                                                                                           \
        (to)->error_code = (told)->error_code;                                                     \
        (to)->partition_index = (int32_t)(index);                                                  \
        (to)->leader_id = (told)->leader_id;                                                       \
        (to)->leader_epoch = (told)->leader_epoch;                                                 \
        (to)->replica_nodes.at = (to)->isr_nodes.at = (told)->nodes;                               \
        (to)->replica_nodes.count = (told)->count;                                                 \
        (to)->isr_nodes.count = (told)->in_sync;                                                   \
        (to)->offline_replicas.at =                                                                \
            (told)->down ? (told)->nodes + (told)->count - (told)->down : NULL;                    \
        (to)->offline_replicas.count = (told)->down;                                               \
    } while (0)
/** Owner and epoch of a partition, for answers that name the current leader. */
void leat_kafka_leader_of(const struct leat_core *core, const struct leat_stream_desc *desc,
                          uint32_t streamlet, int32_t *out_id, int32_t *out_epoch);

#endif
