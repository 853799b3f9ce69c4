/* SPDX-License-Identifier: Apache-2.0 */
/* Topics as streams: settings. */
#ifndef LEAT_KAFKA_HANDLERS_TOPICS_H
#define LEAT_KAFKA_HANDLERS_TOPICS_H

#include "kafka/front/request.h"

/** Of a topic that a client of Kafka makes by using it, or without saying more: as many partitions and copies as
 * the server's configuration says (1 of each), one log in each streamlet, so that partitions spread over nodes and
 * cores, and more can be added. Thread: core. */
static inline struct leat_stream_settings leat_kafka_settings_default(const struct leat_core *core)
{
    const struct leat_kafka_options *options = &leat_kafka_core(core)->door->options;
    return (struct leat_stream_settings){
        .streamlets = options->partitions, .logs = 1, .copies = options->copies};
}

#endif
