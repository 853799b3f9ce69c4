/* Topics as streams: settings. */
#ifndef LEAT_KAFKA_TOPICS_H
#define LEAT_KAFKA_TOPICS_H

#include "base/types.h"

/** Of a topic that a client of Kafka makes by using it: one partition, one log in each streamlet, so
 * that partitions spread over nodes and cores, and more can be added. Thread: any. */
static inline struct leat_stream_settings leat_kafka_settings_default(void)
{
    return (struct leat_stream_settings){.streamlets = 1, .logs = 1};
}

#endif
