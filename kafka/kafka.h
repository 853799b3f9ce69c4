/* The Kafka front door: clients of Kafka talk to the same streams by their own protocol. A topic is
 * a stream; partition s*Q + q is log q of streamlet s. See README.md. */
#ifndef LEAT_KAFKA_KAFKA_H
#define LEAT_KAFKA_KAFKA_H

#include "broker/node.h"

struct leat_kafka_options {
    const char *address;   /* "HOST:PORT" to listen on */
    const char *advertise; /* what clients are told; NULL: what was bound */
    bool optional;         /* should the address not be free: warn, and go on without */
    uint32_t partitions;   /* of a topic that is made without saying how many; 0: 1 */
    uint32_t copies;       /* the same */
};

/** A door for leat_node_options. options: copied; its strings outlive the door. Thread: startup. */
leat_err leat_kafka_open(const struct leat_kafka_options *options,
                         struct leat_door **out_door) LEAT_NODISCARD;
/** After the node. NULL is fine. Thread: any. */
void leat_kafka_close(struct leat_door **door);

#endif
