#include "kafka/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/cluster.h"

/* What a configuration is in a stream's settings. */
enum config_kind {
    CONFIG_FIXED, /* streams are so, and not otherwise */
    CONFIG_RETENTION_MS,
    CONFIG_RETENTION_BYTES,
    CONFIG_SEGMENT_BYTES,
    CONFIG_MIN_COPIES,
    CONFIG_BATCH_BYTES,
    CONFIG_TIMESTAMPS,
    CONFIG_DURABILITY,
};
struct config {
    const char *name;
    enum config_kind kind;
    enum leat_kafka_config_type type;
    uint32_t change;   /* enum leat_stream_change; 0: only when the topic is made */
    const char *fixed; /* the one value */
    const char *documentation;
};

_Static_assert(LEAT_BATCH_BYTES_MAX == 2097152 && LEAT_BATCH_BYTES_LIMIT_MIN == 128,
               "max.message.bytes, below");

static const struct config configs[] = {
    {"cleanup.policy", CONFIG_FIXED, LEAT_KAFKA_CONFIG_LIST, 0, "delete",
     "Old segments are deleted. There is no compaction."},
    {"compression.type", CONFIG_FIXED, LEAT_KAFKA_CONFIG_STRING, 0, "producer",
     "Batches are kept as the producer compressed them."},
    {"leat.durability", CONFIG_DURABILITY, LEAT_KAFKA_CONFIG_STRING, 0, NULL,
     "When an append counts: memory (in the memory of all copies) or disk (flushed on all copies). "
     "Chosen when the topic is made."},
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
     "Segments grow to at most this: the largest power of two that is not above it, 16 KiB to 8 "
     "MiB."},
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

static leat_err segment_bytes_set(const struct config *config, uint32_t *out,
                                  struct leat_kafka_string value, int64_t number,
                                  struct leat_error *error)
{
    if (number < LEAT_SEGMENT_BYTES_MIN)
        return refuse_value(config, value, "a segment has at least 16384 bytes", error);
    uint32_t bytes = LEAT_SEGMENT_BYTES_MIN;
    while (bytes < LEAT_SEGMENT_BYTES_MAX && (int64_t)bytes * 2 <= number)
        bytes *= 2;
    *out = bytes;
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
        return segment_bytes_set(config, &settings->segment_bytes_max, value, number, error);
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
    case CONFIG_TIMESTAMPS:
        out->is_default = !settings->append_time;
        snprintf(out->value, sizeof out->value, "%s",
                 settings->append_time ? "LogAppendTime" : "CreateTime");
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
        number = settings->segment_bytes_max;
        out->is_default = settings->segment_bytes_max == LEAT_SEGMENT_BYTES_MAX;
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
    const bool settled = config->change == 0 && !creating;
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
        return refuse_value(config, value, "it is chosen when the topic is made", error);
    }
    *change |= config->change;
    if (config->kind == CONFIG_DURABILITY) return durability_set(config, settings, value, error);
    if (config->kind == CONFIG_TIMESTAMPS) return timestamps_set(config, settings, value, error);
    return number_set(config, settings, value, error);
}

bool leat_kafka_config_get_node(struct leat_core *core, uint32_t index,
                                struct leat_kafka_config_row *out)
{
    static const struct {
        const char *name, *value;
        enum leat_kafka_config_type type;
    } fixed[] = {
        {"num.partitions", "1", LEAT_KAFKA_CONFIG_INT},
        {"default.replication.factor", "1", LEAT_KAFKA_CONFIG_INT},
        {"message.max.bytes", "2097152", LEAT_KAFKA_CONFIG_INT},
        {"log.cleanup.policy", "delete", LEAT_KAFKA_CONFIG_LIST},
        {"log.message.timestamp.type", "CreateTime", LEAT_KAFKA_CONFIG_STRING},
        {"compression.type", "producer", LEAT_KAFKA_CONFIG_STRING},
        {"delete.topic.enable", "true", LEAT_KAFKA_CONFIG_BOOLEAN},
    };
    enum { FIXED_COUNT = sizeof fixed / sizeof *fixed };
    *out = (struct leat_kafka_config_row){.read_only = true, .is_default = true};
    if (index < FIXED_COUNT) {
        out->name = fixed[index].name;
        out->type = fixed[index].type;
        snprintf(out->value, sizeof out->value, "%s", fixed[index].value);
        return true;
    }
    if (index > FIXED_COUNT) return false;
    out->name = "auto.create.topics.enable";
    out->type = LEAT_KAFKA_CONFIG_BOOLEAN;
    snprintf(out->value, sizeof out->value, "%s",
             core->node->options.auto_create ? "true" : "false");
    return true;
}
