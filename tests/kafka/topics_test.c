/* SPDX-License-Identifier: Apache-2.0 */
/* A real leatd and the life of a topic as Kafka's clients ask for it: made, grown, described, deleted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calls.h"
#include "kafka/handlers/config.h"

static bool is(struct leat_kafka_string got, const char *wanted)
{
    return got.bytes == (int32_t)strlen(wanted) && memcmp(got.text, wanted, strlen(wanted)) == 0;
}

static bool names(struct leat_kafka_string sentence, const char *what)
{
    char copy[512];
    snprintf(copy, sizeof copy, "%.*s", sentence.bytes, sentence.text);
    return strstr(copy, what) != NULL;
}

struct config {
    const char *name, *value, *told; /* told: how it is described; NULL: as it was given */
};

static struct leat_kafka_create_topics_response_topic
create(struct wire_client *client, int16_t version, const char *name, int32_t partitions,
       const struct config *configs, int32_t count, bool validate_only)
{
    struct leat_kafka_create_topics_request_config rows[16] = {0};
    for (int32_t i = 0; i < count; i++)
        rows[i] = (struct leat_kafka_create_topics_request_config){text(configs[i].name),
                                                                   text(configs[i].value)};
    struct leat_kafka_create_topics_request_topic topic = {.name = text(name),
                                                           .num_partitions = partitions,
                                                           .replication_factor = 1,
                                                           .configs = {rows, count}};
    struct leat_kafka_create_topics_request body = {
        .topics = {&topic, 1}, .timeout_ms = 1000, .validate_only = validate_only};
    struct leat_kafka_create_topics_response *answer =
        wire_call(client, LEAT_KAFKA_CREATE_TOPICS, version, &body);
    assert_int_equal(answer->topics.count, 1);
    assert_true(is(answer->topics.at[0].name, name));
    return answer->topics.at[0];
}

/* How many partitions the topic has; 0: there is no such topic. */
static int32_t partitions_of(struct wire_client *client, const char *name)
{
    struct leat_kafka_metadata_response *answer = metadata(client, 4, name, 1, false);
    if (answer->topics.at[0].error_code == LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION) return 0;
    assert_int_equal(answer->topics.at[0].error_code, LEAT_KAFKA_NONE);
    return answer->topics.at[0].partitions.count;
}

static void expect_config(struct wire_client *client, const char *topic,
                          const struct config *config)
{
    for (int16_t version = 0; version <= 4; version++) {
        struct leat_kafka_string key = text(config->name);
        struct leat_kafka_describe_configs_request_resource resource = {2, text(topic), {&key, 1}};
        struct leat_kafka_describe_configs_request body = {{&resource, 1}, true, true};
        struct leat_kafka_describe_configs_response *answer =
            wire_call(client, LEAT_KAFKA_DESCRIBE_CONFIGS, version, &body);
        assert_int_equal(answer->results.at[0].error_code, LEAT_KAFKA_NONE);
        assert_int_equal(answer->results.at[0].configs.count, 1);
        assert_true(is(answer->results.at[0].configs.at[0].value,
                       config->told != NULL ? config->told : config->value));
    }
}

/* ---- creation ---- */

static void topic_is_made_with_its_configurations(void **state)
{
    (void)state;
    static const struct config given[] = {
        {"retention.ms", "86400000", NULL},
        {"retention.bytes", "1073741824", NULL},
        {"segment.bytes", "1073741824", NULL},
        {"max.message.bytes", "1000", NULL},
        {"message.timestamp.type", "LogAppendTime", NULL},
        {"min.insync.replicas", "1", NULL},
        {"compression.type", "lz4", NULL},
        {"cleanup.policy", "delete", NULL},
        {"leat.durability", "memory", NULL},
        {"leat.validate", "crc", NULL},
    };
    enum { GIVEN = sizeof given / sizeof *given };
    struct wire_client client;
    wire_open(&client, port);
    for (int16_t version = 0; version <= 7; version++) {
        char name[16];
        snprintf(name, sizeof name, "made-%d", version);
        assert_int_equal(create(&client, version, name, 3, given, GIVEN, false).error_code,
                         LEAT_KAFKA_NONE);
        assert_int_equal(partitions_of(&client, name), 3);
    }
    for (int i = 0; i < GIVEN; i++)
        expect_config(&client, "made-0", &given[i]);
    static const struct config used[] = {{"leat.segment.bytes", "8388608", NULL},
                                         {"flush.messages", "9223372036854775807", NULL}};
    for (int i = 0; i < 2; i++)
        expect_config(&client, "made-0", &used[i]);
    static const struct config by_flush = {"flush.messages", "9223372036854775807", NULL};
    static const struct config memory = {"leat.durability", "memory", NULL};
    assert_int_equal(create(&client, 7, "by-flush", 1, &by_flush, 1, false).error_code,
                     LEAT_KAFKA_NONE);
    expect_config(&client, "by-flush", &memory);
    /* It is there already; and another one was only to be looked at. */
    assert_int_equal(create(&client, 7, "made-0", 3, given, GIVEN, false).error_code,
                     LEAT_KAFKA_TOPIC_ALREADY_EXISTS);
    static const struct config unknown = {"no.such.thing", "1", NULL};
    assert_int_equal(create(&client, 7, "made-0", 3, &unknown, 1, false).error_code,
                     LEAT_KAFKA_TOPIC_ALREADY_EXISTS);
    assert_int_equal(create(&client, 7, "looked-at", 3, given, GIVEN, true).error_code,
                     LEAT_KAFKA_NONE);
    assert_int_equal(partitions_of(&client, "looked-at"), 0);
    wire_close(&client);
}

/* Nothing is accepted that would not be done: the topic is not made, and the sentence says why. */
static void topic_with_a_configuration_that_is_not_here_is_not_made(void **state)
{
    (void)state;
    static const struct config refused[] = {
        {"cleanup.policy", "compact", NULL},  {"cleanup.policy", "compact,delete", NULL},
        {"compression.type", "brotli", NULL}, {"flush.messages", "1000", NULL},
        {"flush.ms", "1000", NULL},           {"message.timestamp.type", "Sometimes", NULL},
        {"min.insync.replicas", "2", NULL}, /* of one copy */
        {"max.message.bytes", "100", NULL},   {"retention.ms", "-2", NULL},
        {"retention.bytes", "-2", NULL},      {"preallocate", "true", NULL},
        {"no.such.thing", "1", NULL},
    };
    struct wire_client client;
    wire_open(&client, port);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct leat_kafka_create_topics_response_topic made =
            create(&client, 7, "refused", 1, &refused[i], 1, false);
        if (made.error_code != LEAT_KAFKA_INVALID_CONFIG)
            fail_msg("%s=%s: %d", refused[i].name, refused[i].value, made.error_code);
        if (!names(made.error_message, refused[i].name))
            fail_msg("%s=%s: %.*s", refused[i].name, refused[i].value, made.error_message.bytes,
                     made.error_message.text);
        assert_int_equal(partitions_of(&client, "refused"), 0);
    }
    assert_int_equal(create(&client, 7, "not a name", 1, NULL, 0, false).error_code,
                     LEAT_KAFKA_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(create(&client, 7, "refused", 0, NULL, 0, false).error_code,
                     LEAT_KAFKA_INVALID_PARTITIONS);
    wire_close(&client);
}

/* ---- the older way to alter configurations ---- */

static int16_t alter_all(struct wire_client *client, int16_t version, const struct config *config,
                         bool validate_only)
{
    struct leat_kafka_alter_configs_request_config row = {text(config->name), text(config->value)};
    struct leat_kafka_alter_configs_request_resource resource = {2, text("altered"), {&row, 1}};
    struct leat_kafka_alter_configs_request body = {{&resource, 1}, validate_only};
    struct leat_kafka_alter_configs_response *answer =
        wire_call(client, LEAT_KAFKA_ALTER_CONFIGS, version, &body);
    assert_int_equal(answer->results.count, 1);
    if (answer->results.at[0].error_code != LEAT_KAFKA_NONE)
        assert_true(names(answer->results.at[0].error_message, config->name));
    return answer->results.at[0].error_code;
}

/* A configuration that the request does not name goes back to its default, except for a configuration that can't be
 * changed. */
static void alter_configs_sets_back_what_it_does_not_name(void **state)
{
    (void)state;
    static const struct config first[] = {{"retention.ms", "86400000", NULL},
                                          {"max.message.bytes", "1000", NULL},
                                          {"message.timestamp.type", "LogAppendTime", NULL},
                                          {"leat.durability", "memory", NULL},
                                          {"segment.bytes", "1000000", NULL},
                                          {"compression.type", "zstd", NULL},
                                          {"leat.validate", "crc", NULL}};
    static const struct config then[] = {
        {"retention.bytes", "5000", NULL},      {"retention.ms", "-1", NULL},
        {"max.message.bytes", "2097152", NULL}, {"message.timestamp.type", "CreateTime", NULL},
        {"leat.durability", "memory", NULL},    {"segment.bytes", "8388608", NULL},
        {"compression.type", "producer", NULL}, {"leat.validate", "full", NULL}};
    static const struct config unknown = {"flush.ms", "5", NULL};
    struct wire_client client;
    wire_open(&client, port);
    for (int16_t version = 0; version <= 2; version++) {
        struct leat_kafka_string gone = text("altered");
        struct leat_kafka_delete_topics_request delete = {.topic_names = {&gone, 1},
                                                          .timeout_ms = 1000};
        assert_int_equal(create(&client, 7, "altered", 1, first, 7, false).error_code,
                         LEAT_KAFKA_NONE);
        assert_int_equal(alter_all(&client, version, &unknown, false), LEAT_KAFKA_INVALID_CONFIG);
        assert_int_equal(alter_all(&client, version, &then[0], true), LEAT_KAFKA_NONE);
        for (size_t i = 0; i < 7; i++)
            expect_config(&client, "altered", &first[i]);
        assert_int_equal(alter_all(&client, version, &then[0], false), LEAT_KAFKA_NONE);
        for (size_t i = 0; i < 8; i++)
            expect_config(&client, "altered", &then[i]);
        (void)wire_call(&client, LEAT_KAFKA_DELETE_TOPICS, 5, &delete);
    }
    wire_close(&client);
}

/* ---- growth ---- */

static struct leat_kafka_create_partitions_response_topic enlarge(struct wire_client *client,
                                                                  int16_t version, const char *name,
                                                                  int32_t count, bool validate_only)
{
    struct leat_kafka_create_partitions_request_topic topic = {.name = text(name), .count = count};
    topic.assignments.count = -1;
    struct leat_kafka_create_partitions_request body = {
        .topics = {&topic, 1}, .timeout_ms = 1000, .validate_only = validate_only};
    struct leat_kafka_create_partitions_response *answer =
        wire_call(client, LEAT_KAFKA_CREATE_PARTITIONS, version, &body);
    assert_int_equal(answer->topics.count, 1);
    return answer->topics.at[0];
}

static void topic_grows_and_never_shrinks(void **state)
{
    (void)state;
    struct wire_client client;
    uint8_t batch[4096];
    uint32_t bytes = make_batch(batch, 2, "kept", -1, -1);
    wire_open(&client, port);
    assert_int_equal(create(&client, 7, "grown", 1, NULL, 0, false).error_code, LEAT_KAFKA_NONE);
    assert_int_equal(produce(&client, 7, "grown", batch, bytes).error_code, LEAT_KAFKA_NONE);
    for (int16_t version = 0; version <= 3; version++) {
        assert_int_equal(enlarge(&client, version, "grown", version + 3, true).error_code,
                         LEAT_KAFKA_NONE);
        assert_int_equal(partitions_of(&client, "grown"), version == 0 ? 1 : version + 1);
        assert_int_equal(enlarge(&client, version, "grown", version + 2, false).error_code,
                         LEAT_KAFKA_NONE);
        assert_int_equal(partitions_of(&client, "grown"), version + 2);
    }
    struct leat_kafka_create_partitions_response_topic refused =
        enlarge(&client, 3, "grown", 4, false);
    assert_int_equal(refused.error_code, LEAT_KAFKA_INVALID_PARTITIONS);
    assert_true(names(refused.error_message, "5 partitions"));
    assert_int_equal(enlarge(&client, 3, "nowhere", 4, false).error_code,
                     LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    /* What was there stays where it was. */
    struct fetching f = {.name = "grown", .epoch = -1};
    assert_int_equal(fetch_one(&client, 11, f).records.count, bytes);
    wire_close(&client);
}

/* ---- deletion ---- */

static void topic_deleted_is_gone_for_all_and_named_no_more(void **state)
{
    (void)state;
    struct wire_client client, other;
    wire_open(&client, port);
    wire_open(&other, port);
    for (int16_t version = 0; version <= 6; version++) {
        struct leat_kafka_string gone = text("short-lived");
        struct leat_kafka_delete_topics_request_topic row = {.name = gone};
        struct leat_kafka_delete_topics_request body = {.timeout_ms = 1000};
        make_topic(&client, "short-lived");
        if (version == 6) {
            row.name.text = NULL;
            row.name.bytes = -1;
            row.topic_id = metadata(&client, 12, "short-lived", 1, false)->topics.at[0].topic_id;
        }
        body.topics.at = &row;
        body.topics.count = version == 6;
        body.topic_names.at = &gone;
        body.topic_names.count = version < 6;
        for (int again = 0; again < 2; again++) {
            struct leat_kafka_delete_topics_response *answer =
                wire_call(&client, LEAT_KAFKA_DELETE_TOPICS, version, &body);
            assert_int_equal(answer->topics.count, 1);
            assert_int_equal(answer->topics.at[0].error_code,
                             again == 0     ? LEAT_KAFKA_NONE
                             : version == 6 ? LEAT_KAFKA_UNKNOWN_TOPIC_ID
                                            : LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
            assert_int_equal(partitions_of(&client, "short-lived"), 0);
            assert_int_equal(partitions_of(&other, "short-lived"), 0);
        }
    }
    wire_close(&client);
    wire_close(&other);
}

/* ---- who is there ---- */

static void cluster_is_described_as_metadata_tells_it(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    struct leat_kafka_metadata_response *told = metadata(&client, 12, NULL, 0, false);
    assert_int_equal(told->brokers.count, 1);
    int32_t id = told->brokers.at[0].node_id, controller = told->controller_id;
    char cluster[64];
    snprintf(cluster, sizeof cluster, "%.*s", told->cluster_id.bytes, told->cluster_id.text);
    assert_int_equal(strlen(cluster), 22);
    for (int16_t version = 0; version <= 1; version++) {
        struct leat_kafka_describe_cluster_request body = {0};
        body.endpoint_type = 1;
        struct leat_kafka_describe_cluster_response *answer =
            wire_call(&client, LEAT_KAFKA_DESCRIBE_CLUSTER, version, &body);
        assert_int_equal(answer->error_code, LEAT_KAFKA_NONE);
        assert_true(is(answer->cluster_id, cluster));
        assert_int_equal(answer->controller_id, controller);
        assert_int_equal(answer->brokers.count, 1);
        assert_int_equal(answer->brokers.at[0].broker_id, id);
        assert_true(is(answer->brokers.at[0].host, "127.0.0.1"));
        assert_int_equal(answer->brokers.at[0].port, port);
    }
    wire_close(&client);
}

/* ---- configurations of a broker ---- */

struct broker_config {
    const char *name, *value;
    bool given; /* by a flag */
};

/* Exactly these rows: a tool compares what it finds with what it wants. */
static void expect_broker_configs(unsigned at, const struct broker_config *wanted, int32_t count)
{
    enum { BROKER = 4, STATIC_BROKER_CONFIG = 4, DEFAULT_CONFIG = 5 };
    struct wire_client client;
    wire_open(&client, at);
    for (int16_t version = 0; version <= 4; version++) {
        struct leat_kafka_describe_configs_request_resource resource = {
            BROKER, text("0"), {NULL, -1}};
        struct leat_kafka_describe_configs_request body = {{&resource, 1}, true, false};
        struct leat_kafka_describe_configs_response *answer =
            wire_call(&client, LEAT_KAFKA_DESCRIBE_CONFIGS, version, &body);
        assert_int_equal(answer->results.at[0].error_code, LEAT_KAFKA_NONE);
        assert_int_equal(answer->results.at[0].configs.count, count);
        for (int32_t i = 0; i < count; i++) {
            const struct leat_kafka_describe_configs_response_config *row =
                &answer->results.at[0].configs.at[i];
            if (!is(row->name, wanted[i].name) || !is(row->value, wanted[i].value))
                fail_msg("row %d is %.*s = %.*s, not %s = %s", (int)i, row->name.bytes,
                         row->name.text, row->value.bytes, row->value.text, wanted[i].name,
                         wanted[i].value);
            assert_true(row->read_only);
            if (version == 0)
                assert_int_equal(row->is_default, !wanted[i].given);
            else
                assert_int_equal(row->config_source,
                                 wanted[i].given ? STATIC_BROKER_CONFIG : DEFAULT_CONFIG);
        }
    }
    wire_close(&client);
}

static int32_t node_id_of(unsigned at)
{
    struct wire_client client;
    wire_open(&client, at);
    int32_t id = metadata(&client, 12, NULL, 0, false)->brokers.at[0].node_id;
    wire_close(&client);
    return id;
}

/* Configurations chosen by flags are reported as chosen, and as defaults where there was no flag. */
static void broker_configurations_are_those_of_its_flags(void **state)
{
    (void)state;
    struct rig_server other;
    char address[32], here[64], id[16];
    unsigned at = wire_free_port();
    snprintf(address, sizeof address, "127.0.0.1:%u", at);
    snprintf(here, sizeof here, "PLAINTEXT://%s", address);
    const char *flags[] = {"--kafka", address,  "--cores", "1", "--memory",
                           "256M",    "--node", "n7",      NULL};
    const char *chosen[] = {"--kafka",
                            address,
                            "--cores",
                            "1",
                            "--memory",
                            "256M",
                            "--node",
                            "n7",
                            "--kafka-advertise",
                            "outside.example:19092",
                            "--auto-create",
                            "no",
                            "--num-partitions",
                            "6",
                            "--default-replication-factor",
                            "3",
                            "--offsets-retention",
                            "604800",
                            NULL};
    rig_dir(&other);
    for (int given = 0; given < 2; given++) {
        rig_start(&other, given ? chosen : flags);
        snprintf(id, sizeof id, "%d", (int)node_id_of(at));
        const struct broker_config wanted[] = {
            {"advertised.listeners", given ? "PLAINTEXT://outside.example:19092" : here, given},
            {"auto.create.topics.enable", given ? "false" : "true", given},
            {"broker.id", id, false},
            {"broker.rack", "", false},
            {"compression.type", "producer", false},
            {"default.replication.factor", given ? "3" : "1", given},
            {"delete.topic.enable", "true", false},
            {"listeners", here, false},
            {"log.cleanup.policy", "delete", false},
            {"log.dirs", "n7", false},
            {"log.message.timestamp.type", "CreateTime", false},
            {"log.retention.bytes", "-1", false},
            {"log.retention.ms", "-1", false},
            {"log.segment.bytes", "8388608", false},
            {"message.max.bytes", "2097152", false},
            {"node.id", id, false},
            {"num.partitions", given ? "6" : "1", given},
            {"offsets.retention.minutes", given ? "10080" : "-1", given},
            {"unclean.leader.election.enable", "false", false},
        };
        expect_broker_configs(at, wanted, (int32_t)(sizeof wanted / sizeof *wanted));
        assert_int_equal(rig_end(&other, 15), 0);
    }
    rig_remove_dir(&other);
}

/* ---- how many at once ---- */

/* Goal: for one topic no more configurations are looked at than a piece of work has time for, however often the request
 * names them. */
static void configurations_named_too_often_are_refused(void **state)
{
    (void)state;
    enum { MOST = LEAT_KAFKA_CONFIGS_NAMED_MAX };
    static struct leat_kafka_string keys[MOST + 1];
    static struct leat_kafka_create_topics_request_config rows[MOST + 1];
    static struct leat_kafka_alter_configs_request_config all[MOST + 1];
    static struct leat_kafka_incremental_alter_configs_request_config some[MOST + 1];
    for (int32_t i = 0; i <= MOST; i++) {
        keys[i] = rows[i].name = all[i].name = some[i].name = text("retention.ms");
        rows[i].value = all[i].value = some[i].value = text("5000");
    }
    struct wire_client client;
    wire_open(&client, port);
    for (int32_t count = MOST + 1; count >= MOST; count--) {
        const int16_t wanted = count > MOST ? LEAT_KAFKA_INVALID_REQUEST : LEAT_KAFKA_NONE;
        struct leat_kafka_create_topics_request_topic topic = {.name = text("named-often"),
                                                               .num_partitions = 1,
                                                               .replication_factor = 1,
                                                               .configs = {rows, count}};
        struct leat_kafka_create_topics_request make = {.topics = {&topic, 1}, .timeout_ms = 1000};
        const struct leat_kafka_create_topics_response *made =
            wire_call(&client, LEAT_KAFKA_CREATE_TOPICS, 7, &make);
        assert_int_equal(made->topics.at[0].error_code, wanted);
    }
    for (int32_t count = MOST; count <= MOST + 1; count++) {
        const int16_t wanted = count > MOST ? LEAT_KAFKA_INVALID_REQUEST : LEAT_KAFKA_NONE;
        struct leat_kafka_describe_configs_request_resource asked = {
            2, text("named-often"), {keys, count}};
        struct leat_kafka_describe_configs_request describe = {{&asked, 1}, false, false};
        const struct leat_kafka_describe_configs_response *told =
            wire_call(&client, LEAT_KAFKA_DESCRIBE_CONFIGS, 4, &describe);
        assert_int_equal(told->results.at[0].error_code, wanted);
        struct leat_kafka_alter_configs_request_resource whole = {
            2, text("named-often"), {all, count}};
        struct leat_kafka_alter_configs_request set = {{&whole, 1}, false};
        const struct leat_kafka_alter_configs_response *changed =
            wire_call(&client, LEAT_KAFKA_ALTER_CONFIGS, 2, &set);
        assert_int_equal(changed->results.at[0].error_code, wanted);
        struct leat_kafka_incremental_alter_configs_request_resource part = {
            2, text("named-often"), {some, count}};
        struct leat_kafka_incremental_alter_configs_request step = {{&part, 1}, false};
        const struct leat_kafka_incremental_alter_configs_response *stepped =
            wire_call(&client, LEAT_KAFKA_INCREMENTAL_ALTER_CONFIGS, 1, &step);
        assert_int_equal(stepped->results.at[0].error_code, wanted);
    }
    wire_close(&client);
}

enum { NAMED = 300, LARGE = 31000, AT_ONCE = 1024, REQUESTS = 4, TRIES = 1000000, CHANGES = 30 };
enum { PARTS = 16 };

static char many[REQUESTS * AT_ONCE][16];

/* One core: all topics are created through it. */
static unsigned one_core_start(struct rig_server *other)
{
    char address[32];
    unsigned at = wire_free_port();
    snprintf(address, sizeof address, "127.0.0.1:%u", at);
    const char *flags[] = {"--kafka", address, "--cores", "1", "--memory", "2G", NULL};
    rig_dir(other);
    rig_start(other, flags);
    for (unsigned i = 0; i < REQUESTS * AT_ONCE; i++)
        snprintf(many[i], sizeof many[i], "many%u", i);
    return at;
}

/* 200 names at once, then 10 a second: what is refused is made when it is asked for again, by either door. */
static void topics_that_are_named_are_made_at_a_rate(void **state)
{
    (void)state;
    static struct leat_kafka_metadata_request_topic rows[NAMED];
    struct rig_server other;
    struct wire_client client;
    struct rig_conn conn;
    struct rig_stream stream;
    wire_open(&client, one_core_start(&other));
    for (int i = 0; i < NAMED; i++)
        rows[i].name = text(many[i]);
    struct leat_kafka_metadata_request all = {.topics = {rows, NAMED},
                                              .allow_auto_topic_creation = true};
    struct leat_kafka_metadata_response *told = wire_call(&client, LEAT_KAFKA_METADATA, 4, &all);
    unsigned made = 0, tries = 0;
    const char *refused[2] = {NULL, NULL};
    for (int i = 0; i < NAMED; i++) {
        int16_t code = told->topics.at[i].error_code;
        made += code == LEAT_KAFKA_NONE;
        if (code == LEAT_KAFKA_NONE) continue;
        assert_int_equal(code, LEAT_KAFKA_LEADER_NOT_AVAILABLE);
        refused[refused[0] == NULL ? 0 : 1] = many[i];
    }
    assert_true(made >= 100); /* half of what all addresses may have at once */
    assert_non_null(refused[1]);
    leat_err rc = LEAT_E_STARTING;
    rig_open(&other, &conn, 0);
    for (; rc == LEAT_E_STARTING && tries < TRIES; tries++)
        rc = rig_metadata(&conn, refused[0], true, &stream);
    assert_int_equal(rc, LEAT_OK);
    int16_t code = LEAT_KAFKA_LEADER_NOT_AVAILABLE;
    for (; code == LEAT_KAFKA_LEADER_NOT_AVAILABLE && tries < TRIES; tries++)
        code = metadata(&client, 4, refused[1], 1, true)->topics.at[0].error_code;
    assert_int_equal(code, LEAT_KAFKA_NONE);
    rig_close(&conn);
    wire_close(&client);
    assert_int_equal(rig_end(&other, 15), 0);
    rig_remove_dir(&other);
}

static int32_t send_create_many(struct wire_client *client, int16_t version, char (*names)[16])
{
    static struct leat_kafka_create_topics_request_topic rows[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        rows[i] = (struct leat_kafka_create_topics_request_topic){
            .name = text(names[i]), .num_partitions = PARTS, .replication_factor = 1};
    struct leat_kafka_create_topics_request body = {.topics = {rows, AT_ONCE}, .timeout_ms = 60000};
    return wire_send(client, LEAT_KAFKA_CREATE_TOPICS, version, &body);
}

/* How many were made. The others were refused by this code; out_refused: the last of them, or NULL. */
static unsigned created_of_many(struct wire_client *client, int16_t version, int32_t correlation,
                                char (*names)[16], int16_t refusal, const char **out_refused)
{
    unsigned made = 0;
    struct leat_kafka_create_topics_response *told =
        wire_answer(client, LEAT_KAFKA_CREATE_TOPICS, version, correlation);
    *out_refused = NULL;
    assert_int_equal(told->topics.count, AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++) {
        int16_t code = told->topics.at[i].error_code;
        made += code == LEAT_KAFKA_NONE;
        if (code == LEAT_KAFKA_NONE) continue;
        assert_int_equal(code, refusal);
        *out_refused = names[i];
    }
    return made;
}

static int16_t change_large(struct wire_client *client)
{
    struct leat_kafka_alter_configs_request_config row = {text("retention.ms"), text("100000")};
    struct leat_kafka_alter_configs_request_resource resource = {2, text("large"), {&row, 1}};
    struct leat_kafka_alter_configs_request body = {{&resource, 1}, false};
    struct leat_kafka_alter_configs_response *answer =
        wire_call(client, LEAT_KAFKA_ALTER_CONFIGS, 2, &body);
    return answer->results.at[0].error_code;
}

/* Logs of one address: 32,768 at once, then 2,000 a second. Clients know of the quota from version 6 on. All requests
 * are on their way before the first is answered, and of topics with 16 logs a slow machine makes more than the 125 a
 * second that it may. */
static void topics_beyond_the_rate_are_throttled_and_made_when_asked_for_again(void **state)
{
    (void)state;
    static const int16_t versions[REQUESTS] = {6, 6, 6, 5};
    struct rig_server other;
    struct wire_client client;
    int32_t numbers[REQUESTS];
    unsigned made = 0;
    const char *refused[REQUESTS];
    wire_open(&client, one_core_start(&other));
    (void)metadata(&client, 4, NULL, 0, false); /* who has asked for something may ask for much */
    assert_int_equal(create(&client, 6, "large", LARGE, NULL, 0, false).error_code,
                     LEAT_KAFKA_NONE);
    for (int r = 0; r < REQUESTS; r++)
        numbers[r] = send_create_many(&client, versions[r], many + r * AT_ONCE);
    for (int r = 0; r < REQUESTS; r++)
        made += created_of_many(&client, versions[r], numbers[r], many + r * AT_ONCE,
                                versions[r] < 6 ? LEAT_KAFKA_REQUEST_TIMED_OUT
                                                : LEAT_KAFKA_THROTTLING_QUOTA_EXCEEDED,
                                &refused[r]);
    assert_true(made >= (32768 - LARGE) / PARTS);
    for (int r = 2; r < REQUESTS; r++) {
        assert_non_null(refused[r]);
        int16_t code = LEAT_KAFKA_THROTTLING_QUOTA_EXCEEDED;
        for (unsigned tries = 0; tries < TRIES && code == LEAT_KAFKA_THROTTLING_QUOTA_EXCEEDED;
             tries++)
            code = create(&client, 6, refused[r], 1, NULL, 0, false).error_code;
        assert_int_equal(code, LEAT_KAFKA_NONE);
    }
    /* A change of it takes as long as a thousand logs. */
    int16_t changed = LEAT_KAFKA_NONE;
    for (unsigned i = 0; i < CHANGES && changed == LEAT_KAFKA_NONE; i++)
        changed = change_large(&client);
    assert_int_equal(changed, LEAT_KAFKA_REQUEST_TIMED_OUT);
    wire_close(&client);
    assert_int_equal(rig_end(&other, 15), 0);
    rig_remove_dir(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topic_is_made_with_its_configurations),
        cmocka_unit_test(topic_with_a_configuration_that_is_not_here_is_not_made),
        cmocka_unit_test(alter_configs_sets_back_what_it_does_not_name),
        cmocka_unit_test(topic_grows_and_never_shrinks),
        cmocka_unit_test(topic_deleted_is_gone_for_all_and_named_no_more),
        cmocka_unit_test(cluster_is_described_as_metadata_tells_it),
        cmocka_unit_test(broker_configurations_are_those_of_its_flags),
        cmocka_unit_test(configurations_named_too_often_are_refused),
        cmocka_unit_test(topics_that_are_named_are_made_at_a_rate),
        cmocka_unit_test(topics_beyond_the_rate_are_throttled_and_made_when_asked_for_again),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
