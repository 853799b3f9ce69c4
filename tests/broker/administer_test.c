/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change the cluster, and how many connections there may be from one address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/admin/calls.h"
#include "broker/net/addresses.h"
#include "wire/frame.h"

struct leat_conn {
    enum leat_origin origin;
};

static enum leat_origin conn_origin(const struct leat_conn *conn)
{
    return conn->origin;
}
static const char *conn_peer(const struct leat_conn *conn)
{
    (void)conn;
    return "10.0.0.7:5000";
}

/* Goal: these three requests, and no other one, and not from another machine. */
static void what_changes_the_cluster_is_for_this_machine(void **state)
{
    (void)state;
    unsigned count = 0;
    for (unsigned kind = 0; kind <= UINT16_MAX; kind++)
        count += leat_administers((uint16_t)kind);
    assert_int_equal(count, 3);
    assert_true(leat_administers(LEAT_KIND_NODE_CHANGE));
    assert_true(leat_administers(LEAT_KIND_STREAMLET_MOVE));
    assert_true(leat_administers(LEAT_KIND_LOG_RECOVER));
    const struct leat_net net = {.origin = conn_origin};
    struct leat_core core = {.net = &net};
    struct leat_conn conn;
    struct leat_peer peer = {.core = &core, .conn = &conn};
    conn.origin = LEAT_ORIGIN_NETWORK;
    assert_false(leat_peer_may_administer(&peer));
    conn.origin = LEAT_ORIGIN_MACHINE;
    assert_true(leat_peer_may_administer(&peer));
    conn.origin = LEAT_ORIGIN_OWNER;
    assert_true(leat_peer_may_administer(&peer));
}

/* Goal: a refused client is told where its request came from and which path takes such requests; a path that is too
 * long, or none, is described. */
static void refusal_names_the_path_that_takes_the_request(void **state)
{
    (void)state;
    const struct leat_net net = {.peer = conn_peer};
    char path[128];
    struct leat_node node = {.name = "node1"};
    struct leat_core core = {.net = &net, .node = &node};
    struct leat_conn conn;
    struct leat_peer peer = {.core = &core, .conn = &conn};
    for (unsigned bytes = 0; bytes <= 91; bytes += bytes == 0 ? 90 : 1) {
        char expected[512];
        struct leat_error error = {0};
        memset(path, 'p', sizeof path);
        path[bytes] = '\0';
        node.options.admin_path = bytes > 0 ? path : NULL;
        leat_administer_refusal(&peer, &error);
        snprintf(expected, sizeof expected,
                 "what changes the cluster is not taken from 10.0.0.7:5000, another machine: on "
                 "the machine "
                 "of node node1, as its leatd's account or root, say -b unix:%s",
                 bytes == 90 ? path : "leatd.sock in its data directory");
        assert_int_equal(error.code, LEAT_E_DENIED);
        assert_string_equal(error.text, expected);
    }
}

static uint64_t draw(void *ctx)
{
    return ++*(uint64_t *)ctx * UINT64_C(0x9e3779b97f4a7c15);
}

/* Goal: a refused connection takes no place, and each connection that leaves frees a place. */
static void an_address_has_so_many_connections(void **state)
{
    (void)state;
    enum { MOST = 5 };
    uint64_t drawn = 0;
    const struct leat_random random = {&drawn, draw, NULL};
    const uint8_t one[LEAT_NET_KEY_BYTES] = {1}, other[LEAT_NET_KEY_BYTES] = {2};
    struct leat_addresses *addresses = calloc(1, sizeof *addresses);
    uint32_t bucket = 0, bucket_of_other;
    assert_non_null(addresses);
    leat_addresses_init(addresses, &random, MOST);
    for (unsigned i = 0; i < MOST; i++)
        assert_true(leat_addresses_join(addresses, one, &bucket));
    for (unsigned i = 0; i < 3; i++)
        assert_false(leat_addresses_join(addresses, one, &bucket));
    assert_true(leat_addresses_join(addresses, other, &bucket_of_other));
    assert_int_not_equal(bucket, bucket_of_other);
    for (unsigned i = 0; i < MOST; i++)
        leat_addresses_leave(addresses, bucket);
    for (unsigned i = 0; i < MOST; i++)
        assert_true(leat_addresses_join(addresses, one, &bucket));
    assert_false(leat_addresses_join(addresses, one, &bucket));
    free(addresses);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_the_cluster_is_for_this_machine),
        cmocka_unit_test(refusal_names_the_path_that_takes_the_request),
        cmocka_unit_test(an_address_has_so_many_connections),
    };
    return cmocka_run_group_tests_name("broker administer", tests, NULL, NULL);
}
