/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of topics by the names that Kafka's users know, as settings of streams. What a
 * stream can't do is refused by name, never accepted in silence. */
#ifndef LEAT_KAFKA_HANDLERS_CONFIG_H
#define LEAT_KAFKA_HANDLERS_CONFIG_H

#include "kafka/front/request.h"

enum {
    LEAT_KAFKA_CONFIG_VALUE_BYTES = 192, /* an address, at most */
    /* Of one topic or broker, in one request: all names are looked up in one piece (pieces.h), and each name is
     * compared with all configurations. */
    LEAT_KAFKA_CONFIGS_NAMED_MAX = 1000,
};
#define LEAT_KAFKA_CONFIGS_TOO_MANY "more than 1,000 configurations are named of it"

/* As DescribeConfigs numbers them. */
enum leat_kafka_config_type {
    LEAT_KAFKA_CONFIG_BOOLEAN = 1,
    LEAT_KAFKA_CONFIG_STRING = 2,
    LEAT_KAFKA_CONFIG_INT = 3,
    LEAT_KAFKA_CONFIG_LONG = 5,
    LEAT_KAFKA_CONFIG_LIST = 7,
};
struct leat_kafka_config_row {
    const char *name, *documentation;
    enum leat_kafka_config_type type;
    bool read_only, is_default;
    char value[LEAT_KAFKA_CONFIG_VALUE_BYTES];
};

/** One configuration of a topic into its settings. value null: the default. creating: also what
 * can't be changed later. *change: enum leat_stream_change, or-ed to. Thread: any.
 * Errors: LEAT_E_CONFIG; the sentence names the configuration. */
leat_err leat_kafka_config_set(struct leat_stream_settings *settings, uint32_t *change,
                               struct leat_kafka_string name, struct leat_kafka_string value,
                               bool creating, struct leat_error *error) LEAT_NODISCARD;
/** All of a topic, one after the other; false: there is no such index. Thread: any. */
bool leat_kafka_config_get(const struct leat_stream_settings *settings, uint32_t index,
                           struct leat_kafka_config_row *out);
/** The same of this node. Thread: core. */
bool leat_kafka_config_get_node(struct leat_core *core, uint32_t index,
                                struct leat_kafka_config_row *out);

#endif
