/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of tcp and rpc over a link. */
#include "tests/transport/data_rig.h"

/* Goal: a target's link is opened when it is needed; attached is who was asked about and answered so. */
static void target_is_attached_over_its_link(void **state)
{
    (void)state;
    for (unsigned refused = 0; refused < 2; refused++) {
        struct rig *rig = rig_new(LEAT_RMEM_NONE);
        assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
        (void)write_one(rig, 0, 0);
        up();
        up();
        ends(0, refused ? LEAT_E_NOT_FOUND : LEAT_OK);
        (void)write_one(rig, 0, 0);
        leat_rmem_detach(rig->target);
        if (!refused) ends(0, LEAT_OK);
        mails();
        assert_int_equal(rig->transport->target_count, 0);
        if (refused)
            TRACE_IS("open there:1 for backup/7 actor 3 purpose 3\n"
                     "0: CLOSED\n"
                     "ATTACH arena 8\n"
                     "failed NOT_FOUND \"so it says\"\n"
                     "0: CLOSED\n");
        else
            TRACE_IS("open there:1 for backup/7 actor 3 purpose 3\n"
                     "0: CLOSED\n"
                     "ATTACH arena 8\n"
                     "attached tcp\n"
                     "WRITE t1 n1 arena 8 @0 of 1\n"
                     "done 0: CANCELLED\n");
        rig_free(rig);
    }
}

/* Goal: a target that can't be attached is refused with the reason, and leaves nothing. */
static void attach_that_can_not_be_is_refused(void **state)
{
    (void)state;
    struct rig *rig = rig_new(LEAT_RMEM_NONE);
    (void)attach(rig, NODE, 0);
    (void)attach(rig, NODE, 1u << LEAT_RMEM_RPC); /* never chosen */
    (void)attach(rig, NODE + 1, 1u << LEAT_RMEM_TCP);
    (void)attach(rig, LEAT_TRANSPORT_NODES_MAX, 1u << LEAT_RMEM_TCP);
    net.open_rc = LEAT_E_NO_MEMORY;
    (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
    net.open_rc = LEAT_OK;
    for (uint64_t n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
        leat_mem_fail_at(0);
    }
    rig->transport->target_count = LEAT_RMEM_TARGETS_MAX;
    (void)attach(rig, NODE, 1u << LEAT_RMEM_TCP);
    rig->transport->target_count = 0;
    struct leat_rmem_grant nonsense = {.bytes = 3, .data = {9, 9, 9}};
    struct leat_rmem_target *target;
    leat_err rc =
        rig->writer->attach(rig->writer->ctx, NODE, &nonsense, &handler, rig, &target, NULL);
    trace("%s\n", leat_err_name(rc));
    TRACE_IS("UNSUPPORTED \"the backup does not offer tcp\"\n"
             "UNSUPPORTED \"the backup does not offer tcp\"\n"
             "UNSUPPORTED \"it is not up\"\n"
             "UNSUPPORTED \"it is not up\"\n"
             "open there:1 for backup/7 actor 3 purpose 3\n"
             "NO_MEMORY \"no\"\n"
             "NO_MEMORY \"no memory to attach an arena\"\n"
             "open there:1 for backup/7 actor 3 purpose 3\n"
             "NO_MEMORY \"no memory to attach an arena\"\n"
             "TOO_MANY \"1024 targets are attached already\"\n"
             "INVALID\n");
    rig_free(rig);
}

/* Goal: tcp: writes end in order. A write ends when its bytes have left and the backup has said that this write or a
 * later write is in place. An answer that makes no sense ends nothing. */
static void tcp_writes_end_as_the_backup_says(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_TCP);
    for (unsigned i = 0; i < 4; i++)
        (void)write_one(rig, i, 64 * i);
    TRACE_IS("WRITE t1 n1 arena 8 @0 of 1\n"
             "WRITE t1 n2 arena 8 @64 of 1\n"
             "WRITE t1 n3 arena 8 @128 of 1\n"
             "WRITE t1 n4 arena 8 @192 of 1\n");
    ends(0, LEAT_OK);
    done_says(1, 0, LEAT_OK, 16);
    done_says(1, 5, LEAT_OK, 16); /* more than there are */
    done_says(2, 1, LEAT_OK, 16); /* another target */
    done_says(1, 1, LEAT_OK, 15);
    done_says(1, 1, LEAT_OK, 17);
    TRACE_IS("");
    done_says(1, 1, LEAT_OK, 16);
    done_says(1, 1, LEAT_OK, 16);
    TRACE_IS("done 0: OK\n");
    done_says(1, 3, LEAT_OK, 16); /* their bytes are still the link's */
    TRACE_IS("");
    ends(1, LEAT_OK);
    ends(0, LEAT_OK);
    TRACE_IS("done 1: OK\n"
             "done 2: OK\n");
    done_says(1, 4, LEAT_E_CANCELLED, 16);
    ends(0, LEAT_OK);
    TRACE_IS("done 3: CANCELLED\n"
             "failed CANCELLED \"the backup refused a write: cancelled before it was done\"\n");
    (void)write_one(rig, 5, 0);
    struct leat_frame frame = {.kind = LEAT_DATA_WRITE};
    struct leat_link_ticket ticket = {.request = 9};
    net.link->options.handler->on_request(net.link->options.handler->owner, net.link, &frame,
                                          &ticket);
    TRACE_IS("5: CLOSED\n"
             "9: UNSUPPORTED\n");
    leat_rmem_detach(rig->target);
    mails();
    rig_free(rig);
}

/* Goal: rpc: an answer of its own to each, and still in order; after one that failed none counts. */
static void rpc_writes_end_in_order(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_RPC);
    for (unsigned i = 0; i < 4; i++)
        (void)write_one(rig, i, 64 * i);
    ends(2, LEAT_OK);
    TRACE_IS("REQUEST t1 n1 arena 8 @0 of 1\n"
             "REQUEST t1 n2 arena 8 @64 of 1\n"
             "REQUEST t1 n3 arena 8 @128 of 1\n"
             "REQUEST t1 n4 arena 8 @192 of 1\n");
    ends(0, LEAT_OK);
    TRACE_IS("done 0: OK\n");
    ends(0, LEAT_E_CANCELLED);
    TRACE_IS("done 1: CANCELLED\n"
             "done 2: CANCELLED\n");
    ends(0, LEAT_OK);
    TRACE_IS("done 3: CANCELLED\n"
             "failed CANCELLED \"so it says\"\n");
    leat_rmem_detach(rig->target);
    mails();
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* Goal: as many as the window are under way, the rest waits, also where the link has no room; none is lost or
 * overtaken. */
static void writes_beyond_the_window_wait(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_RPC);
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW + 3; i++)
        (void)write_one(rig, i, 0);
    assert_int_equal(net.call_count, LEAT_RMEM_WINDOW);
    trace_begin();
    ends(0, LEAT_OK);
    TRACE_IS("done 0: OK\n"
             "REQUEST t1 n129 arena 8 @0 of 1\n");
    net.room = 0;
    ends(0, LEAT_OK);
    ends(0, LEAT_OK);
    TRACE_IS("done 1: OK\n"
             "done 2: OK\n");
    net.room = CALLS_MAX;
    ends(0, LEAT_OK);
    TRACE_IS("done 3: OK\n"
             "REQUEST t1 n130 arena 8 @0 of 1\n"
             "REQUEST t1 n131 arena 8 @0 of 1\n");
    unsigned left = 0;
    for (; net.call_count; left++)
        ends(0, LEAT_OK);
    trace_begin();
    assert_int_equal(left, LEAT_RMEM_WINDOW + 3 - 4);
    leat_rmem_detach(rig->target);
    mails();
    rig_free(rig);
}

/* Goal: a link that ends, or a node that has gone, ends all writes, and then tells so once; its bytes are let go of
 * first. */
static void link_that_ends_fails_its_targets(void **state)
{
    (void)state;
    for (unsigned way = 0; way < 4; way++) {
        struct rig *rig = rig_attached(LEAT_RMEM_TCP);
        for (unsigned i = 0; i < 3; i++) {
            if (i == 2) net.room = 0; /* it waits */
            (void)write_one(rig, i, 0);
        }
        ends(0, LEAT_OK);
        trace_begin();
        if (way == 0) down(LEAT_E_TIMEOUT);
        if (way == 1)
            assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 0),
                             LEAT_OK);
        if (way == 2)
            assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:2", 7),
                             LEAT_OK);
        if (way == 3)
            assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 7),
                             LEAT_OK);
        mails();
        trace("and then\n");
        ends(0, way == 3 ? LEAT_OK : LEAT_E_CLOSED);
        (void)write_one(rig, 3, 0);
        if (way == 0)
            TRACE_IS("done 0: TIMEOUT\n"
                     "and then\n"
                     "done 1: TIMEOUT\n"
                     "done 2: TIMEOUT\n"
                     "failed TIMEOUT \"it went\"\n"
                     "3: CLOSED\n");
        else if (way == 3)
            TRACE_IS("and then\n");
        else
            TRACE_IS("close\n"
                     "done 0: CLOSED\n"
                     "and then\n"
                     "done 1: CLOSED\n"
                     "done 2: CLOSED\n"
                     "failed CLOSED \"the node has gone, or moved\"\n"
                     "3: CLOSED\n");
        leat_rmem_detach(rig->target);
        mails();
        while (net.call_count)
            ends(0, LEAT_E_CANCELLED);
        rig_free(rig);
    }
}

/* Goal: after a detach no events of the target are reported, and each of its writes ends once, when its bytes are
 * free. */
static void detached_target_ends_its_writes(void **state)
{
    (void)state;
    struct rig *rig = rig_attached(LEAT_RMEM_TCP);
    for (unsigned i = 0; i < 3; i++) {
        if (i == 2) net.room = 0;
        (void)write_one(rig, i, 0);
    }
    trace_begin();
    leat_rmem_detach(rig->target);
    mails();
    TRACE_IS("");
    ends(1, LEAT_OK);
    TRACE_IS("");
    ends(0, LEAT_OK);
    TRACE_IS("done 0: CANCELLED\n"
             "done 1: CANCELLED\n"
             "done 2: CANCELLED\n");
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* Goal: an error names the transport that was asked for and does not work. */
static void transports_are_named(void **state)
{
    (void)state;
    struct leat_env env = {0};
    struct leat_error error;
    struct leat_transport *transport = NULL;
    for (int kind = LEAT_RMEM_NONE; kind < LEAT_RMEM_KINDS; kind++) {
        struct leat_transport_options options = {.env = &env, .only = (enum leat_rmem_kind)kind};
        leat_err rc = leat_transport_create(&options, &transport, &error);
        trace("%s%s%s\n", leat_err_name(rc), rc ? ": " : "", rc ? error.text : "");
        if (!rc) leat_transport_destroy(&transport);
    }
    TRACE_IS("OK\n"
             "CONFIG: replication by rpc does not work on this node\n"
             "CONFIG: replication by tcp does not work on this node\n"
             "CONFIG: replication by shm does not work on this node\n"
             "CONFIG: replication by verbs does not work on this node: no device\n");
}

/* Goal: with links there is tcp, and rpc only where it was brought. */
static void rpc_is_there_where_it_was_brought(void **state)
{
    struct leat_env env = {0};
    struct leat_error error;
    struct leat_transport *transport = NULL;
    struct leat_transport_options options = {.env = &env, .links = (struct leat_links *)&env};
    (void)state;
    options.only = LEAT_RMEM_TCP;
    assert_int_equal(leat_transport_create(&options, &transport, &error), LEAT_OK);
    leat_transport_destroy(&transport);
    options.only = LEAT_RMEM_RPC;
    assert_int_equal(leat_transport_create(&options, &transport, &error), LEAT_E_CONFIG);
    assert_string_equal(error.text, "replication by rpc does not work on this node");
    options.baseline = &rig_rpc;
    assert_int_equal(leat_transport_create(&options, &transport, &error), LEAT_OK);
    leat_transport_destroy(&transport);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(target_is_attached_over_its_link),
        TRACE_TEST(attach_that_can_not_be_is_refused),
        TRACE_TEST(tcp_writes_end_as_the_backup_says),
        TRACE_TEST(rpc_writes_end_in_order),
        TRACE_TEST(writes_beyond_the_window_wait),
        TRACE_TEST(link_that_ends_fails_its_targets),
        TRACE_TEST(detached_target_ends_its_writes),
        TRACE_TEST(transports_are_named),
        cmocka_unit_test(rpc_is_there_where_it_was_brought),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
