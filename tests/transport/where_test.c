/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes to which a transport's links lead: which nodes are reported, which reports are valid, and what happens to
 * targets when a node's address changes. */
#include "tests/transport/data_rig.h"

enum { LAST = LEAT_TRANSPORT_NODES_MAX - 1 };

static struct rig *rig;

static leat_err set(unsigned number, const char *name, const char *address, uint64_t incarnation)
{
    leat_err rc = leat_transport_node_set(rig->transport, number, name, address, incarnation);
    leat_mem_fail_at(0);
    return rc;
}

static void told(void)
{
    for (unsigned i = 0; i < LEAT_TRANSPORT_NODES_MAX; i++) {
        const struct transport_node *node = leat_transport_node(rig->transport, i);
        if (node)
            trace("%u: %.20s at %.20s/%llu\n", i, node->name, node->address,
                  (unsigned long long)node->incarnation);
    }
}

/* Goal: each number that a node can have is taken, and no other; one that was never there need not be forgotten. */
static void node_has_a_number_that_there_can_be(void **state)
{
    (void)state;
    rig = rig_new(LEAT_RMEM_NONE);
    assert_int_equal(set(0, "first", "there:2", 8), LEAT_OK);
    assert_int_equal(set(LAST, "last", "there:3", 1), LEAT_OK);
    assert_int_equal(set(LAST + 1, "next", "there:4", 9), LEAT_E_INVALID);
    assert_int_equal(set(1, "gone", "there:5", 0), LEAT_OK);
    leat_mem_fail_at(1);
    assert_int_equal(set(2, "large", "there:6", 4), LEAT_E_NO_MEMORY);
    told();
    assert_int_equal(set(LAST, "last", "there:3", 0), LEAT_OK);
    assert_int_equal(set(2, "large", "there:6", 4), LEAT_OK);
    leat_mem_fail_at(1); /* of one that is there nothing is needed */
    assert_int_equal(set(0, "first", "there:7", 8), LEAT_OK);
    told();
    TRACE_IS("0: first at there:2/8\n"
             "5: backup at there:1/7\n"
             "255: last at there:3/1\n"
             "0: first at there:7/8\n"
             "2: large at there:6/4\n"
             "5: backup at there:1/7\n"
             "255: last at there:3/0\n");
    rig_free(rig);
}

/* Goal: names and addresses are as long as there is room for, and nothing is cut to that. */
static void name_is_no_longer_than_there_is_room_for(void **state)
{
    (void)state;
    char name[LEAT_LINK_NODE_NAME_BYTES_MAX + 2], address[LEAT_LINK_ADDRESS_BYTES_MAX + 2];
    rig = rig_new(LEAT_RMEM_NONE);
    memset(name, 'n', sizeof name);
    memset(address, 'a', sizeof address);
    name[LEAT_LINK_NODE_NAME_BYTES_MAX] = address[LEAT_LINK_ADDRESS_BYTES_MAX] = '\0';
    assert_int_equal(set(NODE, name, address, 9), LEAT_OK);
    const struct transport_node *node = leat_transport_node(rig->transport, NODE);
    assert_string_equal(node->name, name);
    assert_string_equal(node->address, address);
    name[LEAT_LINK_NODE_NAME_BYTES_MAX] = 'n';
    name[LEAT_LINK_NODE_NAME_BYTES_MAX + 1] = '\0';
    assert_int_equal(set(NODE, name, "there:1", 10), LEAT_E_INVALID);
    address[LEAT_LINK_ADDRESS_BYTES_MAX] = 'a';
    address[LEAT_LINK_ADDRESS_BYTES_MAX + 1] = '\0';
    assert_int_equal(set(NODE, "backup", address, 10), LEAT_E_INVALID);
    assert_int_equal(node->incarnation, 9);
    assert_int_equal(strlen(node->name), LEAT_LINK_NODE_NAME_BYTES_MAX);
    rig_free(rig);
}

/* Goal: another name, address or incarnation is another node: its former targets fail. A repeated report of the same
 * node changes nothing. */
static void another_node_fails_targets(void **state)
{
    (void)state;
    static const struct {
        const char *name, *address;
        uint64_t incarnation;
    } says[] = {{"backup", "there:1", 7},
                {"other", "there:1", 7},
                {"backup", "there:2", 7},
                {"backup", "there:1", 8}};
    for (unsigned i = 0; i < sizeof says / sizeof *says; i++) {
        rig = rig_attached(LEAT_RMEM_TCP);
        trace("%s at %s/%u\n", says[i].name, says[i].address, (unsigned)says[i].incarnation);
        assert_int_equal(set(NODE, says[i].name, says[i].address, says[i].incarnation), LEAT_OK);
        mails();
        told();
        leat_rmem_detach(rig->target);
        mails();
        rig_free(rig);
    }
    TRACE_IS("backup at there:1/7\n"
             "5: backup at there:1/7\n"
             "other at there:1/7\n"
             "close\n"
             "failed CLOSED \"the node has gone, or moved\"\n"
             "5: other at there:1/7\n"
             "backup at there:2/7\n"
             "close\n"
             "failed CLOSED \"the node has gone, or moved\"\n"
             "5: backup at there:2/7\n"
             "backup at there:1/8\n"
             "close\n"
             "failed CLOSED \"the node has gone, or moved\"\n"
             "5: backup at there:1/8\n");
}

/* Goal: a transport for which there is no memory is none. */
static void transport_without_memory_is_none(void **state)
{
    (void)state;
    struct leat_env env = {0};
    struct leat_transport_options options = {.env = &env};
    struct leat_transport *transport = NULL;
    struct leat_error error;
    leat_mem_fail_at(1);
    leat_err rc = leat_transport_create(&options, &transport, &error);
    leat_mem_fail_at(0);
    assert_int_equal(rc, LEAT_E_NO_MEMORY);
    assert_int_equal(error.code, LEAT_E_NO_MEMORY);
    assert_null(transport);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(node_has_a_number_that_there_can_be),
        TRACE_TEST(name_is_no_longer_than_there_is_room_for),
        TRACE_TEST(another_node_fails_targets),
        TRACE_TEST(transport_without_memory_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
