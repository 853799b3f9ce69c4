/* SPDX-License-Identifier: Apache-2.0 */
/* The Kafka front end: Kafka clients use the same streams by their own protocol. A topic is a stream; partition
 * s*Q + q is log q of streamlet s. See README.md. */
#ifndef LEAT_KAFKA_KAFKA_H
#define LEAT_KAFKA_KAFKA_H

#include "broker/front.h"
#include "kafka/front/options.h"

/** A protocol listener for leat_node_options. options: copied; its strings outlive the listener. Thread: startup. */
leat_err leat_kafka_open(const struct leat_kafka_options *options,
                         struct leat_door **out_door) LEAT_NODISCARD;
/** After the node. NULL is fine. Thread: any. */
void leat_kafka_close(struct leat_door **door);

#endif
