/* SPDX-License-Identifier: Apache-2.0 */
/* A real leatd and what tools of Kafka ask beside topics: who may do what, elections, groups and their offsets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calls.h"

/* ---- access ---- */

static void acls_are_said_to_be_switched_off(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    for (int16_t version = 0; version <= 3; version++) {
        struct leat_kafka_describe_acls_request all = {1,          {NULL, -1}, 1, {NULL, -1},
                                                       {NULL, -1}, 1,          1};
        struct leat_kafka_describe_acls_response *told =
            wire_call(&client, LEAT_KAFKA_DESCRIBE_ACLS, version, &all);
        assert_int_equal(told->error_code, LEAT_KAFKA_SECURITY_DISABLED);
        assert_int_equal(told->resources.count, 0);
        struct leat_kafka_create_acls_request_creation rows[2] = {
            {2, text("t"), 3, text("User:a"), text("*"), 3, 3},
            {2, text("u"), 3, text("User:b"), text("*"), 3, 3}};
        struct leat_kafka_create_acls_request create = {{rows, 2}};
        struct leat_kafka_create_acls_response *made =
            wire_call(&client, LEAT_KAFKA_CREATE_ACLS, version, &create);
        assert_int_equal(made->results.count, 2);
        assert_int_equal(made->results.at[1].error_code, LEAT_KAFKA_SECURITY_DISABLED);
        struct leat_kafka_acl_filter filter = {1, {NULL, -1}, 1, {NULL, -1}, {NULL, -1}, 1, 1};
        struct leat_kafka_delete_acls_request delete = {{&filter, 1}};
        struct leat_kafka_delete_acls_response *gone =
            wire_call(&client, LEAT_KAFKA_DELETE_ACLS, version, &delete);
        assert_int_equal(gone->filter_results.count, 1);
        assert_int_equal(gone->filter_results.at[0].error_code, LEAT_KAFKA_SECURITY_DISABLED);
    }
    wire_close(&client);
}

/* Numbers that Kafka 3.9 without an authorizer answers. */
enum { TOPIC_OPERATIONS = 3576, GROUP_OPERATIONS = 328, CLUSTER_OPERATIONS = 8096 };

static void operations_that_are_allowed_are_told_when_asked_for(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "allowed");
    for (int asks = 0; asks < 2; asks++) {
        for (int16_t version = 8; version <= 12; version++) {
            struct leat_kafka_metadata_request_topic topic = {.name = text("allowed")};
            struct leat_kafka_metadata_request body = {.topics = {&topic, 1},
                                                       .include_cluster_authorized_operations =
                                                           asks,
                                                       .include_topic_authorized_operations = asks};
            struct leat_kafka_metadata_response *told =
                wire_call(&client, LEAT_KAFKA_METADATA, version, &body);
            assert_int_equal(told->topics.at[0].topic_authorized_operations,
                             asks ? TOPIC_OPERATIONS : INT32_MIN);
            if (version <= 10)
                assert_int_equal(told->cluster_authorized_operations,
                                 asks ? CLUSTER_OPERATIONS : INT32_MIN);
        }
        struct leat_kafka_describe_cluster_request cluster = {asks, 1};
        struct leat_kafka_describe_cluster_response *told =
            wire_call(&client, LEAT_KAFKA_DESCRIBE_CLUSTER, 1, &cluster);
        assert_int_equal(told->cluster_authorized_operations,
                         asks ? CLUSTER_OPERATIONS : INT32_MIN);
        struct leat_kafka_string group = text("no-such-group");
        struct leat_kafka_describe_groups_request groups = {{&group, 1}, asks};
        struct leat_kafka_describe_groups_response *described =
            wire_call(&client, LEAT_KAFKA_DESCRIBE_GROUPS, 5, &groups);
        assert_int_equal(described->groups.at[0].authorized_operations,
                         asks ? GROUP_OPERATIONS : INT32_MIN);
    }
    wire_close(&client);
}

/* ---- owners ---- */

static void owners_need_no_election_and_do_not_move(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "elected");
    for (int16_t version = 0; version <= 2; version++) {
        int32_t partitions[2] = {0, 1};
        struct leat_kafka_elect_leaders_request_topic topic = {text("elected"), {partitions, 2}};
        struct leat_kafka_elect_leaders_request body = {0, {&topic, 1}, 1000};
        struct leat_kafka_elect_leaders_response *told =
            wire_call(&client, LEAT_KAFKA_ELECT_LEADERS, version, &body);
        assert_int_equal(told->replica_election_results.count, 1);
        const struct leat_kafka_elect_leaders_response_topic *one =
            &told->replica_election_results.at[0];
        assert_int_equal(one->partition_result.count, 2);
        assert_int_equal(one->partition_result.at[0].error_code, LEAT_KAFKA_ELECTION_NOT_NEEDED);
        assert_int_equal(one->partition_result.at[1].error_code,
                         LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    }
    struct leat_kafka_list_partition_reassignments_request moves = {1000, {NULL, -1}};
    struct leat_kafka_list_partition_reassignments_response *told =
        wire_call(&client, LEAT_KAFKA_LIST_PARTITION_REASSIGNMENTS, 0, &moves);
    assert_int_equal(told->error_code, LEAT_KAFKA_NONE);
    assert_int_equal(told->topics.count, 0);
    wire_close(&client);
}

static int16_t create_assigned(struct wire_client *client, const char *name, int32_t first,
                               int32_t second, int32_t *nodes, int32_t count)
{
    struct leat_kafka_create_topics_request_assignment rows[2] = {{first, {nodes, count}},
                                                                  {second, {nodes, count}}};
    struct leat_kafka_create_topics_request_topic topic = {.name = text(name),
                                                           .num_partitions = -1,
                                                           .replication_factor = -1,
                                                           .assignments = {rows, 2}};
    struct leat_kafka_create_topics_request body = {.topics = {&topic, 1}, .timeout_ms = 1000};
    struct leat_kafka_create_topics_response *made =
        wire_call(client, LEAT_KAFKA_CREATE_TOPICS, 7, &body);
    return made->topics.at[0].error_code;
}

static void assignment_that_leaves_no_choice_is_taken(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    int32_t here = metadata(&client, 12, NULL, 0, false)->brokers.at[0].node_id;
    int32_t twice[2] = {here, here}, other = here + 1;
    assert_int_equal(create_assigned(&client, "assigned", 1, 0, &here, 1), LEAT_KAFKA_NONE);
    assert_int_equal(metadata(&client, 4, "assigned", 1, false)->topics.at[0].partitions.count, 2);
    assert_int_equal(create_assigned(&client, "refused", 0, 0, &here, 1),
                     LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(create_assigned(&client, "refused", 0, 2, &here, 1),
                     LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(create_assigned(&client, "refused", 0, 1, &other, 1),
                     LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(create_assigned(&client, "refused", 0, 1, twice, 2),
                     LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT);
    assert_int_equal(create_assigned(&client, "refused", 0, 1, NULL, 0),
                     LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT);
    for (int32_t wanted = 0; wanted < 2; wanted++) {
        struct leat_kafka_create_partitions_request_assignment one = {
            {wanted == 0 ? &other : &here, 1}};
        struct leat_kafka_create_partitions_request_topic topic = {text("assigned"), 3, {&one, 1}};
        struct leat_kafka_create_partitions_request body = {.topics = {&topic, 1}};
        struct leat_kafka_create_partitions_response *told =
            wire_call(&client, LEAT_KAFKA_CREATE_PARTITIONS, 3, &body);
        assert_int_equal(told->topics.at[0].error_code,
                         wanted == 0 ? LEAT_KAFKA_INVALID_REPLICA_ASSIGNMENT : LEAT_KAFKA_NONE);
    }
    assert_int_equal(metadata(&client, 4, "assigned", 1, false)->topics.at[0].partitions.count, 3);
    wire_close(&client);
}

/* ---- groups ---- */

static int16_t join(struct wire_client *client, const char *group, int32_t session_ms)
{
    struct leat_kafka_join_group_request_protocol protocol = {text("range"), {NULL, 0}};
    struct leat_kafka_join_group_request body = {.group_id = text(group),
                                                 .session_timeout_ms = session_ms,
                                                 .rebalance_timeout_ms = 1000,
                                                 .member_id = text(""),
                                                 .group_instance_id = {NULL, -1},
                                                 .protocol_type = text("consumer"),
                                                 .protocols = {&protocol, 1}};
    struct leat_kafka_join_group_response *told =
        wire_call(client, LEAT_KAFKA_JOIN_GROUP, 4, &body);
    return told->error_code;
}

static void group_without_a_name_is_refused_before_all_else(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    assert_int_equal(join(&client, "", 0), LEAT_KAFKA_INVALID_GROUP_ID);
    assert_int_equal(join(&client, "named", 0), LEAT_KAFKA_INVALID_SESSION_TIMEOUT);
    wire_close(&client);
}

static void newer_group_protocol_is_refused_by_name(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    struct leat_kafka_consumer_group_heartbeat_request body = {
        .group_id = text("newer"), .member_id = text("m"), .rebalance_timeout_ms = 1000};
    for (int16_t version = 0; version <= 1; version++) {
        struct leat_kafka_consumer_group_heartbeat_response *told =
            wire_call(&client, LEAT_KAFKA_CONSUMER_GROUP_HEARTBEAT, version, &body);
        assert_int_equal(told->error_code, LEAT_KAFKA_UNSUPPORTED_VERSION);
        assert_int_equal(told->assignment, -1);
        char sentence[128];
        snprintf(sentence, sizeof sentence, "%.*s", told->error_message.bytes,
                 told->error_message.text);
        assert_non_null(strstr(sentence, "group.protocol=classic"));
    }
    wire_close(&client);
}

static void commit(struct wire_client *client, const char *group, int64_t offset)
{
    struct leat_kafka_offset_commit_request_partition row = {
        .committed_offset = offset, .committed_leader_epoch = -1, .committed_metadata = text("m")};
    struct leat_kafka_offset_commit_request_topic topic = {text("read"), {&row, 1}};
    struct leat_kafka_offset_commit_request body = {.group_id = text(group),
                                                    .generation_id_or_member_epoch = -1,
                                                    .member_id = text(""),
                                                    .group_instance_id = {NULL, -1},
                                                    .topics = {&topic, 1}};
    struct leat_kafka_offset_commit_response *told =
        wire_call(client, LEAT_KAFKA_OFFSET_COMMIT, 8, &body);
    assert_int_equal(told->topics.at[0].partitions.at[0].error_code, LEAT_KAFKA_NONE);
}

static int64_t committed(struct wire_client *client, const char *group)
{
    int32_t zero = 0;
    struct leat_kafka_offset_fetch_request_topic topic = {text("read"), {&zero, 1}};
    struct leat_kafka_offset_fetch_request body = {.group_id = text(group), .topics = {&topic, 1}};
    struct leat_kafka_offset_fetch_response *told =
        wire_call(client, LEAT_KAFKA_OFFSET_FETCH, 5, &body);
    return told->topics.at[0].partitions.at[0].committed_offset;
}

static struct leat_kafka_offset_delete_response *forget(struct wire_client *client,
                                                        const char *group)
{
    struct leat_kafka_offset_delete_request_partition rows[3] = {{0}, {0}, {7}};
    struct leat_kafka_offset_delete_request_topic topic = {text("read"), {rows, 3}};
    struct leat_kafka_offset_delete_request body = {text(group), {&topic, 1}};
    return wire_call(client, LEAT_KAFKA_OFFSET_DELETE, 0, &body);
}

static void group_forgets_offsets_and_restarts_without_them(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "read");
    assert_int_equal(forget(&client, "reader")->error_code, LEAT_KAFKA_GROUP_ID_NOT_FOUND);
    commit(&client, "reader", 0);
    commit(&client, "other", 0);
    assert_int_equal(committed(&client, "reader"), 0);
    struct leat_kafka_offset_delete_response *told = forget(&client, "reader");
    assert_int_equal(told->error_code, LEAT_KAFKA_NONE);
    assert_int_equal(told->topics.at[0].partitions.count, 3);
    assert_int_equal(told->topics.at[0].partitions.at[0].error_code, LEAT_KAFKA_NONE);
    assert_int_equal(told->topics.at[0].partitions.at[2].error_code,
                     LEAT_KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(committed(&client, "reader"), -1);
    assert_int_equal(committed(&client, "other"), 0);
    wire_close(&client);
    assert_int_equal(rig_end(&server, 9), -9);
    char address[32];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    const char *flags[] = {"--kafka", address, "--cores", "2", "--memory", "256M", NULL};
    rig_start(&server, flags);
    wire_open(&client, port);
    assert_int_equal(committed(&client, "reader"), -1);
    assert_int_equal(committed(&client, "other"), 0);
    wire_close(&client);
}

static void groups_are_listed_by_type(void **state)
{
    (void)state;
    struct wire_client client;
    wire_open(&client, port);
    make_topic(&client, "read");
    commit(&client, "typed", 0);
    for (int classic = 0; classic < 2; classic++) {
        struct leat_kafka_string type = text(classic ? "Classic" : "consumer");
        struct leat_kafka_list_groups_request body = {.types_filter = {&type, 1}};
        struct leat_kafka_list_groups_response *told =
            wire_call(&client, LEAT_KAFKA_LIST_GROUPS, 5, &body);
        assert_int_equal(told->error_code, LEAT_KAFKA_NONE);
        assert_int_equal(told->groups.count > 0, classic);
        for (int32_t i = 0; i < told->groups.count; i++)
            assert_memory_equal(told->groups.at[i].group_type.text, "classic", 7);
    }
    wire_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acls_are_said_to_be_switched_off),
        cmocka_unit_test(operations_that_are_allowed_are_told_when_asked_for),
        cmocka_unit_test(owners_need_no_election_and_do_not_move),
        cmocka_unit_test(assignment_that_leaves_no_choice_is_taken),
        cmocka_unit_test(group_without_a_name_is_refused_before_all_else),
        cmocka_unit_test(newer_group_protocol_is_refused_by_name),
        cmocka_unit_test(group_forgets_offsets_and_restarts_without_them),
        cmocka_unit_test(groups_are_listed_by_type),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
