/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes and leaders that clients of Kafka are told, by a node that is up and by a node that is isolated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "broker/net/core.h"
#include "kafka/handlers/cluster.h"

enum { SELF = 100, OTHER = 101 };

static struct {
    struct leat_node node;
    struct leat_core core;
    struct leat_kafka_core own;
    struct leat_kafka_door door;
    struct leat_member rows[2];
} it;

static void begin(unsigned standing)
{
    memset(&it, 0, sizeof it);
    it.core.node = &it.node;
    it.node.cores = &it.core;
    it.node.options.cores = 1;
    it.node.incarnation = SELF;
    atomic_store(&it.node.standing, standing);
    it.door.options.advertise = "self:9092";
    it.own.door = &it.door;
    leat_front_own_set(&it.core, &it.own);
    static const char *const addresses[] = {"self:9092", "other:9093"};
    for (unsigned i = 0; i < 2; i++) {
        it.rows[i] = (struct leat_member){.core = &it.core, .number = i, .self = i == 0};
        it.rows[i].info.incarnation = SELF + i;
        it.rows[i].info.state = LEAT_NODE_UP;
        memcpy(it.rows[i].info.kafka_address, addresses[i], strlen(addresses[i]) + 1);
        it.core.members.rows[i] = &it.rows[i];
    }
    it.core.members.count = 2;
}

/* Goal: a node that is isolated, or was declared crashed, names the other nodes as ever, and itself neither as a node
 * nor as a leader; clients are told to look for another leader. */
static void node_that_is_isolated_is_not_named(void **state)
{
    (void)state;
    static const unsigned stands[] = {0, LEAT_STANDING_CONFIRMED, LEAT_STANDING_ALONE,
                                      LEAT_STANDING_CRASHED};
    struct leat_stream_desc *desc = calloc(1, sizeof *desc + 2 * sizeof desc->streamlets[0]);
    assert_non_null(desc);
    desc->streamlet_count = desc->settings.streamlets = 2;
    desc->settings.logs = 1;
    desc->streamlets[0].owner = SELF;
    desc->streamlets[1].owner = OTHER;
    for (unsigned i = 0; i < 4; i++) {
        const bool up = i < 2;
        begin(stands[i]);
        struct leat_kafka_node nodes[3];
        assert_int_equal(leat_kafka_nodes(&it.core, nodes, 3), up ? 2 : 1);
        const struct leat_kafka_node *other = &nodes[up];
        assert_int_equal(nodes[0].id, up ? 1 : 2);
        assert_int_equal(other->id, 2);
        assert_int_equal(other->port, 9093);
        assert_int_equal(leat_kafka_node_id(&it.core, SELF), up ? 1 : -1);
        assert_int_equal(leat_kafka_node_id(&it.core, OTHER), 2);
        int32_t leader, epoch;
        leat_kafka_leader_of(&it.core, desc, 0, &leader, &epoch);
        assert_int_equal(leader, up ? 1 : -1);
        leat_kafka_leader_of(&it.core, desc, 1, &leader, &epoch);
        assert_int_equal(leader, 2);
        struct leat_log_ref log;
        uint32_t home;
        assert_int_equal(leat_kafka_partition_find(&it.core, desc, 0, -1, &log, &home),
                         up ? LEAT_KAFKA_NONE : LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(leat_kafka_partition_find(&it.core, desc, 1, -1, &log, &home),
                         LEAT_KAFKA_NOT_LEADER_OR_FOLLOWER);
    }
    free(desc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_that_is_isolated_is_not_named),
    };
    return cmocka_run_group_tests_name("kafka isolated", tests, NULL, NULL);
}
