/* SPDX-License-Identifier: Apache-2.0 */
#include "kafka/handlers/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/handlers/cluster.h"

/* How a configuration is kept in a stream's settings. */
enum config_kind {
    CONFIG_FIXED, /* streams are so, and not otherwise */
    CONFIG_RETENTION_MS,
    CONFIG_RETENTION_BYTES,
    CONFIG_SEGMENT_BYTES,
    CONFIG_MIN_COPIES,
    CONFIG_BATCH_BYTES,
    CONFIG_TIMESTAMPS,
    CONFIG_DURABILITY,
    CONFIG_FLUSH, /* the same, by Kafka's name */
    CONFIG_COMPRESSION,
    CONFIG_SEGMENT_BYTES_USED, /* to be seen only */
    CONFIG_VALIDATE,
};
struct config {
    const char *name;
    enum config_kind kind;
    enum leat_kafka_config_type type;
    uint32_t change;   /* enum leat_stream_change; 0: only when the topic is made */
    const char *fixed; /* the only value */
    const char *documentation;
};

_Static_assert(LEAT_BATCH_BYTES_MAX == 2097152 && LEAT_BATCH_BYTES_LIMIT_MIN == 128,
               "max.message.bytes, below");

static const struct config configs[] = {
    {"cleanup.policy", CONFIG_FIXED, LEAT_KAFKA_CONFIG_LIST, 0, "delete",
     "Old segments are deleted. There is no compaction."},
    {"compression.type", CONFIG_COMPRESSION, LEAT_KAFKA_CONFIG_STRING, LEAT_CHANGE_COMPRESSION,
     NULL, "Kept, and told. Batches are stored as the producer compressed them, whatever it says."},
    {"flush.messages", CONFIG_FLUSH, LEAT_KAFKA_CONFIG_LONG, 0, NULL,
     "leat.durability by Kafka's name: 1 is disk, 9223372036854775807 is memory. Chosen when the "
     "topic is made."},
    {"leat.durability", CONFIG_DURABILITY, LEAT_KAFKA_CONFIG_STRING, 0, NULL,
     "When an append counts: memory (in the memory of all copies) or disk (flushed on all copies). "
     "Chosen when the topic is made."},
    {"leat.segment.bytes", CONFIG_SEGMENT_BYTES_USED, LEAT_KAFKA_CONFIG_INT, 0, NULL,
     "What segments grow to at most: the largest power of two that is not above segment.bytes, "
     "8388608 at most."},
    {"leat.validate", CONFIG_VALIDATE, LEAT_KAFKA_CONFIG_STRING, LEAT_CHANGE_VALIDATE, NULL,
     "What is checked of compressed batches before they are acknowledged: full (each record) or "
     "crc (the "
     "checksum alone: what a producer sends may stop all consumers of a partition)."},
    {"max.message.bytes", CONFIG_BATCH_BYTES, LEAT_KAFKA_CONFIG_INT, LEAT_CHANGE_BATCH_BYTES, NULL,
     "The largest batch that is taken, as it is sent: 128 to 2097152 bytes."},
    {"message.timestamp.type", CONFIG_TIMESTAMPS, LEAT_KAFKA_CONFIG_STRING, LEAT_CHANGE_APPEND_TIME,
     NULL,
     "CreateTime: records keep the times that their producers gave them. LogAppendTime: they get "
     "that "
     "of their append."},
    {"min.insync.replicas", CONFIG_MIN_COPIES, LEAT_KAFKA_CONFIG_INT, LEAT_CHANGE_MIN_COPIES, NULL,
     "Copies that an append needs at least, the owner's included."},
    {"retention.bytes", CONFIG_RETENTION_BYTES, LEAT_KAFKA_CONFIG_LONG, LEAT_CHANGE_RETENTION_BYTES,
     NULL, "Bytes kept of each partition; -1: all."},
    {"retention.ms", CONFIG_RETENTION_MS, LEAT_KAFKA_CONFIG_LONG, LEAT_CHANGE_RETENTION_MS, NULL,
     "How long records are kept; -1: for ever."},
    {"segment.bytes", CONFIG_SEGMENT_BYTES, LEAT_KAFKA_CONFIG_INT, LEAT_CHANGE_SEGMENT_BYTES, NULL,
     "At least 16384. Kept, and told; what segments grow to is leat.segment.bytes."},
};
enum { CONFIG_COUNT = sizeof configs / sizeof *configs };

static const struct config *config_find(struct leat_kafka_string name)
{
    for (size_t i = 0; i < CONFIG_COUNT; i++)
        if (name.bytes == (int32_t)strlen(configs[i].name) &&
            memcmp(configs[i].name, name.text, (size_t)name.bytes) == 0)
            return &configs[i];
    return NULL;
}

static bool text_is(struct leat_kafka_string value, const char *text)
{
    return value.bytes == (int32_t)strlen(text) && memcmp(value.text, text, strlen(text)) == 0;
}

/* A whole number, alone. */
static bool number_of(struct leat_kafka_string value, int64_t *out)
{
    char text[32], *end;
    if (value.bytes <= 0 || value.bytes >= (int32_t)sizeof text) return false;
    memcpy(text, value.text, (size_t)value.bytes);
    text[value.bytes] = '\0';
    if ((text[0] < '0' || text[0] > '9') && text[0] != '-') return false;
    *out = strtoll(text, &end, 10);
    return *end == '\0' && *out != INT64_MAX && *out != INT64_MIN;
}

static leat_err refuse_value(const struct config *config, struct leat_kafka_string value,
                             const char *allowed, struct leat_error *error)
{
    return leat_error_set(error, LEAT_E_CONFIG, "%s can't be \"%.*s\": %s", config->name,
                          value.bytes > 64 ? 64 : (int)value.bytes, value.text, allowed);
}

/* A client that asks for Kafka's 1 GiB is told 1 GiB again: otherwise tools that compare current values with wanted
 * values would change it for ever. */
static leat_err segment_bytes_set(const struct config *config,
                                  struct leat_stream_settings *settings,
                                  struct leat_kafka_string value, int64_t number,
                                  struct leat_error *error)
{
    if (number < LEAT_SEGMENT_BYTES_MIN || number > INT32_MAX)
        return refuse_value(config, value, "it is 16384 to 2147483647 bytes", error);
    uint32_t bytes = LEAT_SEGMENT_BYTES_MIN;
    while (bytes < LEAT_SEGMENT_BYTES_MAX && (int64_t)bytes * 2 <= number)
        bytes *= 2;
    settings->segment_bytes_max = bytes;
    settings->segment_bytes_asked = bytes == number ? 0 : (uint32_t)number;
    return LEAT_OK;
}

/* The numbers are stored: only add. */
static const char *const compressions[] = {"producer", "uncompressed", "gzip",
                                           "snappy",   "lz4",          "zstd"};
enum { COMPRESSIONS = sizeof compressions / sizeof *compressions };

static leat_err compression_set(const struct config *config, struct leat_stream_settings *settings,
                                struct leat_kafka_string value, struct leat_error *error)
{
    for (uint32_t i = 0; i < COMPRESSIONS; i++) {
        if (!text_is(value, compressions[i])) continue;
        settings->compression_asked = i;
        return LEAT_OK;
    }
    return refuse_value(config, value, "it is producer, uncompressed, gzip, snappy, lz4 or zstd",
                        error);
}

static const char flush_never[] = "9223372036854775807"; /* as Kafka's tools show "never" */

static leat_err flush_set(const struct config *config, struct leat_stream_settings *settings,
                          struct leat_kafka_string value, struct leat_error *error)
{
    if (text_is(value, "1"))
        settings->durability = LEAT_DURABILITY_DISK;
    else if (text_is(value, flush_never))
        settings->durability = LEAT_DURABILITY_MEMORY;
    else
        return refuse_value(
            config, value,
            "it is 1 (acked when flushed) or 9223372036854775807 (acked from memory)", error);
    return LEAT_OK;
}

static leat_err durability_set(const struct config *config, struct leat_stream_settings *settings,
                               struct leat_kafka_string value, struct leat_error *error)
{
    if (text_is(value, "memory"))
        settings->durability = LEAT_DURABILITY_MEMORY;
    else if (text_is(value, "disk"))
        settings->durability = LEAT_DURABILITY_DISK;
    else
        return refuse_value(config, value, "it is memory or disk", error);
    return LEAT_OK;
}

static leat_err timestamps_set(const struct config *config, struct leat_stream_settings *settings,
                               struct leat_kafka_string value, struct leat_error *error)
{
    settings->append_time = text_is(value, "LogAppendTime");
    if (!settings->append_time && !text_is(value, "CreateTime"))
        return refuse_value(config, value, "it is CreateTime or LogAppendTime", error);
    return LEAT_OK;
}

static leat_err validate_set(const struct config *config, struct leat_stream_settings *settings,
                             struct leat_kafka_string value, struct leat_error *error)
{
    bool crc = text_is(value, "crc");
    if (!crc && !text_is(value, "full"))
        return refuse_value(config, value, "it is full or crc", error);
    settings->validate = crc ? LEAT_VALIDATE_CRC : LEAT_VALIDATE_FULL;
    return LEAT_OK;
}

static leat_err number_set(const struct config *config, struct leat_stream_settings *settings,
                           struct leat_kafka_string value, struct leat_error *error)
{
    int64_t number;
    if (!number_of(value, &number))
        return refuse_value(config, value, "it is a whole number", error);
    const bool is_retention =
        config->kind == CONFIG_RETENTION_MS || config->kind == CONFIG_RETENTION_BYTES;
    if (is_retention && number < -1)
        return refuse_value(config, value, "it is not negative, or -1 to keep all", error);
    switch (config->kind) {
    case CONFIG_RETENTION_MS:
        settings->retention_ms = number < 0 ? 0 : number == 0 ? 1 : number;
        return LEAT_OK;
    case CONFIG_RETENTION_BYTES:
        settings->retention_bytes = number < 0 ? 0 : number == 0 ? 1 : number;
        return LEAT_OK;
    case CONFIG_MIN_COPIES:
        if (number < 1 || number > LEAT_COPIES_MAX)
            return refuse_value(config, value, "a segment has 1 to 8 copies", error);
        if (settings->copies > 0 && number > settings->copies)
            return refuse_value(config, value, "the topic has fewer copies", error);
        settings->min_copies = (uint32_t)number;
        return LEAT_OK;
    case CONFIG_BATCH_BYTES:
        if (number < LEAT_BATCH_BYTES_LIMIT_MIN || number > LEAT_BATCH_BYTES_MAX)
            return refuse_value(config, value, "a batch may have 128 to 2097152 bytes", error);
        settings->batch_bytes_max = (uint32_t)number;
        return LEAT_OK;
    default:
        return segment_bytes_set(config, settings, value, number, error);
    }
}

static void default_set(const struct config *config, struct leat_stream_settings *settings)
{
    switch (config->kind) {
    case CONFIG_RETENTION_MS:
        settings->retention_ms = 0;
        break;
    case CONFIG_RETENTION_BYTES:
        settings->retention_bytes = 0;
        break;
    case CONFIG_SEGMENT_BYTES:
        settings->segment_bytes_max = LEAT_SEGMENT_BYTES_MAX;
        settings->segment_bytes_asked = 0;
        break;
    case CONFIG_COMPRESSION:
        settings->compression_asked = 0;
        break;
    case CONFIG_MIN_COPIES:
        settings->min_copies = settings->copies / 2 + 1;
        break;
    case CONFIG_BATCH_BYTES:
        settings->batch_bytes_max = LEAT_BATCH_BYTES_MAX;
        break;
    case CONFIG_TIMESTAMPS:
        settings->append_time = false;
        break;
    case CONFIG_VALIDATE:
        settings->validate = LEAT_VALIDATE_FULL;
        break;
    default:
        break;
    }
}

static void row_value(const struct config *config, const struct leat_stream_settings *settings,
                      struct leat_kafka_config_row *out)
{
    int64_t number = 0;
    switch (config->kind) {
    case CONFIG_FIXED:
        snprintf(out->value, sizeof out->value, "%s", config->fixed);
        out->is_default = true;
        return;
    case CONFIG_DURABILITY:
        out->is_default = settings->durability != LEAT_DURABILITY_MEMORY;
        snprintf(out->value, sizeof out->value, "%s", out->is_default ? "disk" : "memory");
        return;
    case CONFIG_FLUSH:
        out->is_default = settings->durability != LEAT_DURABILITY_MEMORY;
        snprintf(out->value, sizeof out->value, "%s", out->is_default ? "1" : flush_never);
        return;
    case CONFIG_COMPRESSION:
        out->is_default = settings->compression_asked == 0;
        /* A later version may know more of them. */
        snprintf(out->value, sizeof out->value, "%s",
                 settings->compression_asked < COMPRESSIONS
                     ? compressions[settings->compression_asked]
                     : compressions[0]);
        return;
    case CONFIG_TIMESTAMPS:
        out->is_default = !settings->append_time;
        snprintf(out->value, sizeof out->value, "%s",
                 settings->append_time ? "LogAppendTime" : "CreateTime");
        return;
    case CONFIG_VALIDATE:
        out->is_default = settings->validate == LEAT_VALIDATE_FULL;
        snprintf(out->value, sizeof out->value, "%s", out->is_default ? "full" : "crc");
        return;
    case CONFIG_RETENTION_MS:
        number = settings->retention_ms > 0 ? settings->retention_ms : -1;
        out->is_default = number == -1;
        break;
    case CONFIG_RETENTION_BYTES:
        number = settings->retention_bytes > 0 ? settings->retention_bytes : -1;
        out->is_default = number == -1;
        break;
    case CONFIG_MIN_COPIES:
        number = settings->min_copies;
        out->is_default = settings->min_copies == settings->copies / 2 + 1;
        break;
    case CONFIG_BATCH_BYTES:
        number = settings->batch_bytes_max;
        out->is_default = settings->batch_bytes_max == LEAT_BATCH_BYTES_MAX;
        break;
    case CONFIG_SEGMENT_BYTES:
        number = settings->segment_bytes_asked != 0 ? settings->segment_bytes_asked
                                                    : settings->segment_bytes_max;
        out->is_default = number == LEAT_SEGMENT_BYTES_MAX;
        break;
    case CONFIG_SEGMENT_BYTES_USED:
        number = settings->segment_bytes_max;
        out->is_default = number == LEAT_SEGMENT_BYTES_MAX;
        break;
    }
    snprintf(out->value, sizeof out->value, "%" PRId64, number);
}

bool leat_kafka_config_get(const struct leat_stream_settings *settings, uint32_t index,
                           struct leat_kafka_config_row *out)
{
    if (index >= CONFIG_COUNT) return false;
    const struct config *config = &configs[index];
    *out = (struct leat_kafka_config_row){.name = config->name,
                                          .documentation = config->documentation,
                                          .type = config->type,
                                          .read_only = config->change == 0};
    row_value(config, settings, out);
    return true;
}

leat_err leat_kafka_config_set(struct leat_stream_settings *settings, uint32_t *change,
                               struct leat_kafka_string name, struct leat_kafka_string value,
                               bool creating, struct leat_error *error)
{
    const struct config *config = config_find(name);
    if (config == NULL)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "there is no configuration \"%.*s\" of topics here",
                              name.bytes > 100 ? 100 : (int)name.bytes, name.text);
    struct leat_kafka_config_row row = {0};
    row_value(config, settings, &row);
    const bool settled =
        (config->change == 0 && !creating) || config->kind == CONFIG_SEGMENT_BYTES_USED;
    if (value.text == NULL && (!settled || row.is_default)) {
        default_set(config, settings);
        *change |= config->change;
        return LEAT_OK;
    }
    if (value.text == NULL)
        return leat_error_set(
            error, LEAT_E_CONFIG,
            "%s can't go back to its default: it is chosen when the topic is made", config->name);
    if (config->kind == CONFIG_FIXED) {
        if (text_is(value, config->fixed)) return LEAT_OK;
        char allowed[80];
        snprintf(allowed, sizeof allowed, "here it is always \"%s\"", config->fixed);
        return refuse_value(config, value, allowed, error);
    }
    if (settled) {
        if (text_is(value, row.value)) return LEAT_OK;
        return refuse_value(config, value,
                            config->kind == CONFIG_SEGMENT_BYTES_USED
                                ? "it follows from segment.bytes"
                                : "it is chosen when the topic is made",
                            error);
    }
    *change |= config->change;
    if (config->kind == CONFIG_DURABILITY) return durability_set(config, settings, value, error);
    if (config->kind == CONFIG_FLUSH) return flush_set(config, settings, value, error);
    if (config->kind == CONFIG_COMPRESSION) return compression_set(config, settings, value, error);
    if (config->kind == CONFIG_TIMESTAMPS) return timestamps_set(config, settings, value, error);
    if (config->kind == CONFIG_VALIDATE) return validate_set(config, settings, value, error);
    return number_set(config, settings, value, error);
}

/* ---- of a node: read only; the values that can be chosen are flags of the server ---- */

struct node_config {
    const char *name;
    const char *value; /* NULL: node_value() tells */
    enum leat_kafka_config_type type;
    enum node_config_kind {
        NODE_FIXED,
        NODE_ADVERTISED,
        NODE_LISTENERS,
        NODE_ID,
        NODE_RACK,
        NODE_DIRECTORY,
        NODE_AUTO_CREATE,
        NODE_PARTITIONS,
        NODE_COPIES,
        NODE_OFFSETS_RETENTION,
    } kind;
};
static const struct node_config node_configs[] = {
    {"advertised.listeners", NULL, LEAT_KAFKA_CONFIG_STRING, NODE_ADVERTISED},
    {"auto.create.topics.enable", NULL, LEAT_KAFKA_CONFIG_BOOLEAN, NODE_AUTO_CREATE},
    {"broker.id", NULL, LEAT_KAFKA_CONFIG_INT, NODE_ID},
    {"broker.rack", NULL, LEAT_KAFKA_CONFIG_STRING, NODE_RACK},
    {"compression.type", "producer", LEAT_KAFKA_CONFIG_STRING, NODE_FIXED},
    {"default.replication.factor", NULL, LEAT_KAFKA_CONFIG_INT, NODE_COPIES},
    {"delete.topic.enable", "true", LEAT_KAFKA_CONFIG_BOOLEAN, NODE_FIXED},
    {"listeners", NULL, LEAT_KAFKA_CONFIG_STRING, NODE_LISTENERS},
    {"log.cleanup.policy", "delete", LEAT_KAFKA_CONFIG_LIST, NODE_FIXED},
    {"log.dirs", NULL, LEAT_KAFKA_CONFIG_STRING, NODE_DIRECTORY},
    {"log.message.timestamp.type", "CreateTime", LEAT_KAFKA_CONFIG_STRING, NODE_FIXED},
    {"log.retention.bytes", "-1", LEAT_KAFKA_CONFIG_LONG, NODE_FIXED},
    {"log.retention.ms", "-1", LEAT_KAFKA_CONFIG_LONG, NODE_FIXED},
    {"log.segment.bytes", "8388608", LEAT_KAFKA_CONFIG_INT, NODE_FIXED},
    {"message.max.bytes", "2097152", LEAT_KAFKA_CONFIG_INT, NODE_FIXED},
    {"node.id", NULL, LEAT_KAFKA_CONFIG_INT, NODE_ID},
    {"num.partitions", NULL, LEAT_KAFKA_CONFIG_INT, NODE_PARTITIONS},
    {"offsets.retention.minutes", NULL, LEAT_KAFKA_CONFIG_INT, NODE_OFFSETS_RETENTION},
    {"unclean.leader.election.enable", "false", LEAT_KAFKA_CONFIG_BOOLEAN, NODE_FIXED},
};
_Static_assert(LEAT_SEGMENT_BYTES_MAX == 8388608, "log.segment.bytes");

static void node_value(struct leat_core *core, const struct node_config *config,
                       struct leat_kafka_config_row *out)
{
    const struct leat_front_node node = leat_front_node(core);
    const struct leat_kafka_door *door = leat_kafka_core(core)->door;
    const struct leat_kafka_options *options = &door->options;
    const char *bound = door->door.bound_address;
    /* -1: they are kept until the group or the topic is deleted. */
    int64_t minutes = node.offsets_retention_us / 60000000;
    char *value = out->value;
    const size_t room = sizeof out->value;
    switch (config->kind) {
    case NODE_FIXED:
        snprintf(value, room, "%s", config->value);
        return;
    case NODE_ADVERTISED:
        snprintf(value, room, "PLAINTEXT://%s",
                 options->advertise != NULL ? options->advertise : bound);
        out->is_default = options->advertise == NULL;
        return;
    case NODE_LISTENERS:
        snprintf(value, room, "PLAINTEXT://%s", bound);
        return;
    case NODE_ID:
        snprintf(value, room, "%d", (int)leat_kafka_self_id(core));
        return;
    case NODE_RACK:
        snprintf(value, room, "%s", node.rack != NULL ? node.rack : "");
        return;
    case NODE_DIRECTORY: /* as DescribeLogDirs calls it */
        snprintf(value, room, "%s", node.name);
        return;
    case NODE_AUTO_CREATE:
        snprintf(value, room, "%s", node.auto_create ? "true" : "false");
        out->is_default = node.auto_create;
        return;
    case NODE_PARTITIONS:
        snprintf(value, room, "%u", options->partitions);
        out->is_default = options->partitions == 1;
        return;
    case NODE_COPIES:
        snprintf(value, room, "%u", options->copies);
        out->is_default = options->copies == 1;
        return;
    case NODE_OFFSETS_RETENTION:
        snprintf(value, room, "%" PRId64, minutes > 0 ? minutes : -1);
        out->is_default = minutes == 0;
        return;
    }
}

bool leat_kafka_config_get_node(struct leat_core *core, uint32_t index,
                                struct leat_kafka_config_row *out)
{
    if (index >= sizeof node_configs / sizeof *node_configs) return false;
    const struct node_config *config = &node_configs[index];
    *out = (struct leat_kafka_config_row){
        .name = config->name, .type = config->type, .read_only = true, .is_default = true};
    node_value(core, config, out);
    return true;
}
