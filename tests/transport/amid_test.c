/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of tcp and rpc: a target that fails, or is let go of, while its attaching or its writes are under way. */
#include "tests/transport/data_rig.h"

/* Its port alone, without the choice: what the choice does not do may be done to the target. */
static struct rig *rig_plain(void)
{
    struct rig *rig = rig_new(LEAT_RMEM_NONE);
    rig->writer = &rig->transport->data[LEAT_RMEM_TCP - LEAT_RMEM_RPC];
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
    trace_begin();
    return rig;
}

static struct rig *rig_plain_attached(void)
{
    struct rig *rig = rig_plain();
    up();
    ends(0, LEAT_OK);
    TRACE_IS("ATTACH arena 8\n"
             "attached tcp\n");
    return rig;
}

static void rig_end(struct rig *rig)
{
    leat_rmem_detach(rig->target);
    mails();
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* Goal: a target that is detached while the backup is asked stays until the answer, which nobody hears of. */
static void detached_target_waits_for_its_answer(void **state)
{
    (void)state;
    for (unsigned refused = 0; refused < 2; refused++) {
        struct rig *rig = rig_plain();
        up();
        leat_rmem_detach(rig->target);
        mails();
        assert_int_equal(rig->transport->target_count, 1);
        ends(0, refused ? LEAT_E_NOT_FOUND : LEAT_OK);
        assert_int_equal(rig->transport->target_count, 0);
        TRACE_IS("ATTACH arena 8\n");
        rig_free(rig);
    }
}

/* Goal: a target that fails while the backup is asked is not attached by the answer, and its failure is reported once
 * the answer is there. */
static void failed_target_is_not_attached_by_its_answer(void **state)
{
    (void)state;
    struct rig *rig = rig_plain();
    up();
    down(LEAT_E_TIMEOUT);
    TRACE_IS("ATTACH arena 8\n");
    ends(0, LEAT_OK);
    TRACE_IS("failed TIMEOUT \"it went\"\n");
    rig_end(rig);
}

/* Goal: a target that has failed, or is attached, is not attached again, whatever else its link says. */
static void link_attaches_a_target_once(void **state)
{
    (void)state;
    struct rig *rig = rig_plain();
    down(LEAT_E_TIMEOUT);
    up();
    TRACE_IS("failed TIMEOUT \"it went\"\n");
    rig_end(rig);
    rig = rig_plain_attached();
    up();
    TRACE_IS("");
    rig_end(rig);
}

/* Goal: a target that fails refuses writes at once, also while the bytes of earlier writes are still the link's; what
 * waited for room is not sent any more. */
static void failing_target_takes_and_sends_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_plain_attached();
    net.room = 1;
    (void)write_one(rig, 0, 0);
    (void)write_one(rig, 1, 64);
    net.room = CALLS_MAX;
    done_says(1, 1, LEAT_E_CANCELLED, 16);
    (void)write_one(rig, 2, 0);
    TRACE_IS("WRITE t1 n1 arena 8 @0 of 1\n"
             "2: CLOSED\n");
    ends(0, LEAT_OK);
    TRACE_IS("done 0: CANCELLED\n"
             "done 1: CANCELLED\n"
             "failed CANCELLED \"the backup refused a write: cancelled before it was done\"\n");
    rig_end(rig);
}

/* Goal: a target that is detached takes no writes, and sends none that waited for room. */
static void detached_target_takes_and_sends_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_plain_attached();
    net.room = 1;
    (void)write_one(rig, 0, 0);
    (void)write_one(rig, 1, 64);
    net.room = CALLS_MAX;
    leat_rmem_detach(rig->target);
    (void)write_one(rig, 2, 0);
    TRACE_IS("WRITE t1 n1 arena 8 @0 of 1\n"
             "2: CLOSED\n");
    ends(0, LEAT_OK);
    TRACE_IS("done 0: CANCELLED\n"
             "done 1: CANCELLED\n");
    assert_int_equal(rig->transport->target_count, 0);
    rig_free(rig);
}

/* Goal: a write that waits when its target fails has ended before the failure is reported. */
static void waiting_write_ends_before_the_failure_is_told(void **state)
{
    (void)state;
    struct rig *rig = rig_plain_attached();
    net.room = 1;
    (void)write_one(rig, 0, 0);
    (void)write_one(rig, 1, 64);
    done_says(1, 1, LEAT_OK, 16);
    net.room = CALLS_MAX;
    net.call_rc = LEAT_E_CLOSED; /* found when the waiting write is sent */
    ends(0, LEAT_OK);
    TRACE_IS("WRITE t1 n1 arena 8 @0 of 1\n"
             "done 0: OK\n"
             "done 1: CLOSED\n"
             "failed CLOSED \"the connection was closed; whether the last requests took effect is "
             "unknown\"\n");
    rig_end(rig);
}

/* Goal: what the backup says of writes counts for nothing after a failure, in another message, or a second time: the
 * write that has the place of an ended write has not ended. */
static void word_that_does_not_count_ends_nothing(void **state)
{
    (void)state;
    struct rig *rig = rig_plain_attached();
    (void)write_one(rig, 0, 0);
    (void)write_one(rig, 1, 64);
    ends(1, LEAT_E_CLOSED);
    done_says(1, 1, LEAT_OK, 16);
    ends(0, LEAT_OK);
    TRACE_IS("WRITE t1 n1 arena 8 @0 of 1\n"
             "WRITE t1 n2 arena 8 @64 of 1\n"
             "done 0: CLOSED\n"
             "done 1: CLOSED\n"
             "failed CLOSED \"so it says\"\n");
    rig_end(rig);

    rig = rig_plain_attached();
    for (unsigned i = 0; i < LEAT_RMEM_WINDOW; i++)
        (void)write_one(rig, i, 0);
    while (net.call_count)
        ends(0, LEAT_OK);
    trace_begin();
    struct leat_data_done done = {.number = 1, .target = 1};
    struct leat_frame frame = {
        .kind = LEAT_DATA_WRITE, .control = (const uint8_t *)&done, .control_bytes = sizeof done};
    struct leat_link_ticket ticket = {.request = 9};
    net.link->options.handler->on_request(net.link->options.handler->owner, net.link, &frame,
                                          &ticket);
    mails();
    TRACE_IS("9: UNSUPPORTED\n");
    done_says(1, 1, LEAT_OK, 16);
    (void)write_one(rig, LEAT_RMEM_WINDOW, 64);
    ends(0, LEAT_OK);
    done_says(1, 1, LEAT_OK, 16);
    TRACE_IS("done 0: OK\n"
             "WRITE t1 n129 arena 8 @64 of 1\n");
    done_says(1, LEAT_RMEM_WINDOW, LEAT_OK, 16);
    assert_null(strstr(trace_text, "done 128"));
    trace_begin();
    done_says(1, LEAT_RMEM_WINDOW + 1, LEAT_OK, 16);
    TRACE_IS("done 128: OK\n");
    rig_end(rig);
}

/* Goal: each incarnation but none, 0, is one that is up. */
static void first_incarnation_is_attached(void **state)
{
    (void)state;
    struct rig *rig = rig_new(LEAT_RMEM_TCP);
    assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 1),
                     LEAT_OK);
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_OK);
    leat_rmem_detach(rig->target);
    mails();
    assert_int_equal(leat_transport_node_set(rig->transport, NODE, "backup", "there:1", 0),
                     LEAT_OK);
    assert_int_equal(attach(rig, NODE, 1u << LEAT_RMEM_TCP), LEAT_E_UNSUPPORTED);
    TRACE_IS("open there:1 for backup/1 actor 3 purpose 3\n"
             "close\n"
             "UNSUPPORTED \"it is not up\"\n");
    rig_free(rig);
}

/* Goal: a transport that ends takes the links and targets of all its nodes along, and ends once. */
static void transport_takes_its_targets_along(void **state)
{
    (void)state;
    size_t before = leat_mem_bytes(LEAT_MEM_NET);
    struct rig *rig = rig_new(LEAT_RMEM_NONE);
    rig->writer = &rig->transport->data[LEAT_RMEM_TCP - LEAT_RMEM_RPC];
    assert_int_equal(leat_transport_node_set(rig->transport, 0, "first", "there:2", 7), LEAT_OK);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(attach(rig, 0, 1u << LEAT_RMEM_TCP), LEAT_OK);
    trace_begin();
    leat_transport_destroy(&rig->transport);
    assert_null(rig->transport);
    leat_transport_destroy(&rig->transport);
    TRACE_IS("close\n");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_NET), before);
    free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(detached_target_waits_for_its_answer),
        TRACE_TEST(failed_target_is_not_attached_by_its_answer),
        TRACE_TEST(link_attaches_a_target_once),
        TRACE_TEST(failing_target_takes_and_sends_nothing),
        TRACE_TEST(detached_target_takes_and_sends_nothing),
        TRACE_TEST(waiting_write_ends_before_the_failure_is_told),
        TRACE_TEST(word_that_does_not_count_ends_nothing),
        TRACE_TEST(first_incarnation_is_attached),
        TRACE_TEST(transport_takes_its_targets_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
