/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to consumer groups, by groups_calls.c alone: on which core or node the home is, what stands in the way to
 * it and back, and what becomes of a request when its client goes. */
#include "base/bytes.h"
#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "tests/broker/groups_calls_rig.h"

/* ---- where the home is ---- */

static void stream_that_is_sought_is_decoded_anew(void **state)
{
    (void)state;
    begin();
    it.seek = LEAT_E_AGAIN;
    asks(join(0, 2));
    assert_said("seek orders for 99\n");
    memset(it.body, 0, BODY);
    it.seek = LEAT_OK;
    it.sought->on_again(it.sought);
    assert_said("seek orders for 99\nseek x for 99\n" HOME);
    alone_deliver_all();
    said_enough();
    it.seek = LEAT_E_UNKNOWN_STREAM;
    asks(join(0, 2));
    assert_said("seek orders for 99\nrefuse UNKNOWN_STREAM: not there\n");
    end();
}

static void homes_are_made_when_they_are_asked_for(void **state)
{
    (void)state;
    static const struct {
        leat_err rc;
        const char *expected;
    } rows[] = {
        {LEAT_OK, HOME},
        {LEAT_E_STREAM_EXISTS, HOME},
        {LEAT_E_INVALID, "refuse AGAIN: too few nodes\n"},
        {LEAT_E_TOO_MANY, "refuse TOO_MANY: too few nodes\n"},
    };
    for (unsigned i = 0; i < 4; i++) {
        begin();
        it.none = true;
        leaves("s", 1, "m", 1);
        assert_said("make leat.sets for 99\n");
        it.none = false;
        it.maker->rc = rows[i].rc;
        leat_error_set(&it.maker->error, rows[i].rc, "too few nodes");
        it.maker->on_done(it.maker);
        assert_said(rows[i].expected);
        alone_deliver_all();
        end();
    }
    begin();
    it.none = true;
    leaves("s", 1, "m", 1);
    said_enough();
    it.maker->on_done(it.maker); /* it has not come here yet */
    assert_said("refuse AGAIN: the home of consumer groups is being made, try again\n");
    end();
}

static void homes_that_are_not_told_of_yet_are_waited_for(void **state)
{
    (void)state;
    begin();
    alone.stream.published = false;
    leaves("s", 1, "m", 1);
    assert_said("");
    struct leat_list *link = leat_list_pop_front(&alone.stream.waiters);
    assert_non_null(link);
    alone.stream.published = true;
    struct leat_stream_wait *wait = LEAT_CONTAINER(link, struct leat_stream_wait, link);
    wait->on_ready(wait);
    assert_said(HOME);
    alone_deliver_all(), said_enough();
    alone.stream.published = false;
    leaves("s", 1, "m", 1);
    calls.peer.conn = NULL; /* its client has gone meanwhile */
    link = leat_list_pop_front(&alone.stream.waiters);
    wait = LEAT_CONTAINER(link, struct leat_stream_wait, link);
    wait->on_ready(wait);
    assert_said("refuse CANCELLED\n");
    end();
}

static void other_node_is_the_home(void **state)
{
    (void)state;
    begin();
    alone.desc->streamlets[1].owner = 55;
    leaves("s", 1, "m", 1);
    assert_said("hand on to 55\n");
    assert_int_equal(it.forwarded_bytes, it.writer.used + 10);
    assert_memory_equal(it.forwarded, it.body, it.writer.used);
    assert_memory_equal(it.forwarded + it.writer.used, "\x91\xcf\0\0\0\0\0\0\0\x63", 10);
    for (unsigned more = 0; more < 2; more++) {
        struct leat_msg_writer *writer = fetch(1);
        memset(it.body + writer->used, 0, BODY - writer->used);
        uint32_t bytes = LEAT_CONTROL_BYTES_MAX - 10 + more;
        it.body[0]++; /* a field of a newer version, which is not read */
        it.body[writer->used] = 0xc6;
        leat_put_be32(it.body + writer->used + 1, bytes - writer->used - 5);
        writer->used = bytes;
        asks(writer);
        assert_said(more == 0 ? "hand on to 55\n" : "refuse TOO_LARGE\n");
    }
    /* A request that another node has handed on: the number of its client's address follows the request. */
    alone.desc->streamlets[1].owner = ALONE_SELF;
    calls.by_link = true;
    calls.peer.conn = NULL;
    calls.peer.address_number = 0;
    static const char *const tails[] = {"\x91\xcf\0\0\0\0\0\0\1\2", "\x90\xcf\0\0\0\0\0\0\1\2",
                                        "\x91\xce\0\0\0\0\0\0\1\2"};
    for (unsigned i = 0; i < 3; i++) {
        struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_LEAVE);
        leat_msg_group_leave_write(writer, &(struct leat_msg_group_leave){{"s", 1}, {"m", 1}});
        memcpy(it.body + writer->used, tails[i], 10);
        writer->used += 10;
        asks(writer);
        alone_deliver_all();
        assert_said(i == 0 ? HOME AT_HOME "leave \"s\" \"m\" generation 0 of 258, 1024 bytes\n" BACK
                                          "answer\n"
                           : HOME AT_HOME "leave \"s\" \"m\" generation 0 of 0, 1024 bytes\n" BACK
                                          "answer\n");
    }
    struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_LEAVE);
    leat_msg_group_leave_write(writer, &(struct leat_msg_group_leave){{"s", 1}, {"m", 1}});
    writer->used += 9; /* no address */
    asks(writer);
    alone_deliver_all();
    assert_said("refuse INVALID: malformed request to a consumer group\n");
    writer = body(LEAT_KIND_GROUP_LEAVE); /* too short for an address */
    leat_msg_group_leave_write(writer, &(struct leat_msg_group_leave){{"s", 1}, {"m", 1}});
    memmove(it.body + 16, it.body, writer->used);
    writer->bytes = it.body + 16;
    memcpy(writer->bytes + writer->used - 10, "\x91\xcf", 2);
    asks(writer);
    alone_deliver_all();
    assert_said(HOME AT_HOME "leave \"s\" \"m\" generation 0 of 0, 1024 bytes\n" BACK "answer\n");
    asks(join(0, 1)); /* of other nodes all count as one */
    assert_true(said_one("seek orders for 18446744073709551615\n"));
    alone_deliver_all();
    end();
}

static void home_is_not_served(void **state)
{
    (void)state;
    static const char *const not_served =
        "refuse STARTING: the group's home log is not served right now\n";
    for (unsigned i = 0; i < 4; i++) {
        begin();
        leaves("s", 1, "m", 1);
        it.none = i == 0;
        it.no_partition = i == 1;
        it.partition.state = i == 2 ? LEAT_PARTITION_GOES : LEAT_PARTITION_SERVES;
        if (i == 3) it.partition.groups = NULL;
        alone_deliver();
        assert_said(i == 0 ? HOME BACK : HOME AT_HOME BACK);
        alone_deliver();
        assert_said(not_served);
        end();
    }
    begin();
    it.home = 1; /* 7/0/1, on core 1 */
    leaves("s", 1, "m", 1);
    alone_deliver_all();
    assert_said(BACK "core 1: home 7/0/1\n" LEAVE BACK "answer\n");
    end();
}

/* Goal: an isolated node sends requests of members neither to its own home nor to another node's. */
static void isolated_node_knows_no_home(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.stands = LEAT_E_NOT_OWNER;
        if (i == 1) alone.desc->streamlets[1].owner = 55;
        leaves("s", 1, "m", 1);
        assert_said("refuse NOT_OWNER: not confirmed\n");
        alone_deliver_all();
        end();
    }
}

static void groups_refuse(void **state)
{
    (void)state;
    begin_waiting();
    it.request->rc = leat_error_set(&it.request->error, LEAT_E_UNKNOWN_MEMBER, "who");
    it.request->on_done(it.request);
    alone_deliver();
    assert_said(BACK "refuse UNKNOWN_MEMBER: who\n");
    end();
    begin_waiting();
    it.request->rc = LEAT_E_TIMEOUT;
    it.request->on_done(it.request);
    alone_deliver();
    assert_said(BACK "refuse TIMEOUT\n");
    end();
}

static void long_answer_is_asked_for_again(void **state)
{
    (void)state;
    begin();
    it.answer_bytes = 1032;
    leaves("s", 1, "m", 1);
    alone_deliver(), alone_deliver();
    assert_said(HOME AT_HOME LEAVE BACK "hold 1161\n" HOME);
    it.waits = true;
    alone_deliver();
    assert_said(AT_HOME "leave \"s\" \"m\" generation 0 of 99, 2185 bytes\n");
    calls.peer.conn = NULL;
    it.deaf = true;
    leat_groups_peer_closed(&calls.peer);
    alone_deliver_all();
    assert_said(HOME "cancel\n" BACK); /* its answer is waited for */
    it.request->on_done(it.request);
    alone_deliver();
    assert_said(BACK "answer\n");
    end();
}

static void long_answer_finds_no_room(void **state)
{
    (void)state;
    begin();
    it.answer_bytes = 1025;
    it.full = true;
    leaves("s", 1, "m", 1);
    alone_deliver_all();
    assert_said(
        HOME AT_HOME LEAVE BACK
        "hold 1153\nrefuse AGAIN: the memory of this core for answers is full of those that "
        "clients have not taken: try again\n");
    end();
    for (unsigned i = 0; i < 2; i++) {
        begin_waiting();
        it.request->rc = i == 0 ? LEAT_E_NO_MEMORY : LEAT_E_TOO_MANY;
        it.request->answer_bytes = 1024 + i;
        it.request->on_done(it.request);
        alone_deliver();
        assert_said(i == 0 ? BACK "refuse NO_MEMORY\n" : BACK "refuse TOO_MANY\n");
        end();
    }
}

/* ---- its client goes ---- */

static void client_goes_while_its_request_waits(void **state)
{
    (void)state;
    begin_waiting();
    calls.peer.conn = NULL;
    leat_groups_peer_closed(&calls.peer);
    assert_said(HOME);
    leat_groups_peer_closed(&calls.peer); /* it is on its way */
    assert_said("");
    alone_deliver();
    assert_said("cancel\n" BACK BACK);
    alone_deliver(); /* the request comes first */
    assert_said("");
    assert_int_equal(calls.open, 1);
    alone_deliver();
    assert_said("refuse CANCELLED\n");
    end();
}

static void client_goes_while_its_request_is_back(void **state)
{
    (void)state;
    begin_waiting();
    it.request->on_done(it.request);
    leat_groups_peer_closed(&calls.peer);
    assert_said(BACK HOME);
    alone_deliver();
    assert_said("");
    alone_deliver(); /* it waits nowhere */
    assert_said(BACK);
    alone_deliver();
    assert_said("refuse CANCELLED\n");
    end();
}

/* Goal: the home's log fails as the request arrives. The request is on its way back when its client goes, and nobody
 * may touch the request at the home. */
static void client_goes_while_its_request_is_back_that_failed(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) { /* or is answered without a wait */
        begin();
        it.waits = it.fails = waits;
        leaves("s", 1, "m", 1);
        alone_deliver();
        assert_said(HOME AT_HOME LEAVE BACK);
        leat_groups_peer_closed(&calls.peer);
        assert_said(HOME);
        alone_deliver();
        assert_said("");
        alone_deliver(); /* it waits nowhere */
        assert_said(BACK);
        alone_deliver();
        assert_said("refuse CANCELLED\n");
        end();
    }
}

static void client_goes_before_its_request_is_on_its_way(void **state)
{
    (void)state;
    begin();
    it.none = true;
    leaves("s", 1, "m", 1);
    leat_groups_peer_closed(&calls.peer);
    assert_said("make leat.sets for 99\n");
    it.none = false;
    calls.peer.conn = NULL;
    it.maker->on_done(it.maker);
    assert_said("refuse CANCELLED\n");
    end();
}

/* Goal: all requests of a connection that closes are cancelled. */
static void all_requests_of_a_closed_connection_are_cancelled(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 2; i++)
        leaves("s", 1, "m", 1);
    assert_said(HOME HOME);
    leat_groups_peer_closed(&calls.peer);
    assert_said(HOME HOME);
    alone_deliver_all();
    said_enough();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_that_is_sought_is_decoded_anew),
        cmocka_unit_test(homes_are_made_when_they_are_asked_for),
        cmocka_unit_test(homes_that_are_not_told_of_yet_are_waited_for),
        cmocka_unit_test(other_node_is_the_home),
        cmocka_unit_test(home_is_not_served),
        cmocka_unit_test(isolated_node_knows_no_home),
        cmocka_unit_test(groups_refuse),
        cmocka_unit_test(long_answer_is_asked_for_again),
        cmocka_unit_test(long_answer_finds_no_room),
        cmocka_unit_test(client_goes_while_its_request_waits),
        cmocka_unit_test(client_goes_while_its_request_is_back),
        cmocka_unit_test(client_goes_while_its_request_is_back_that_failed),
        cmocka_unit_test(client_goes_before_its_request_is_on_its_way),
        cmocka_unit_test(all_requests_of_a_closed_connection_are_cancelled),
    };
    return cmocka_run_group_tests_name("broker groups_home", tests, NULL, NULL);
}
