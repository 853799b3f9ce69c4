/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change the cluster, and how many connections there may be from one address. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "broker/admin/administer.h"
#include "broker/net/addresses.h"
#include "wire/frame.h"

struct leat_conn {
    enum leat_origin origin;
};

static enum leat_origin conn_origin(const struct leat_conn *conn)
{
    return conn->origin;
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

static uint64_t draw(void *ctx)
{
    return ++*(uint64_t *)ctx * UINT64_C(0x9e3779b97f4a7c15);
}

/* Goal: who was refused holds no place, and each that leaves makes one. */
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
        cmocka_unit_test(an_address_has_so_many_connections),
    };
    return cmocka_run_group_tests_name("broker administer", tests, NULL, NULL);
}
