/* SPDX-License-Identifier: Apache-2.0 */
/* Appends for another core's log, those of another front end, and whose turn it is when a log has room again: append.c
 * alone. */
#include "broker/data/core_data.h"
#include "tests/broker/append_rig.h"

/* ---- to another core and back ---- */

static void append_goes_to_its_logs_core_and_back(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}};
    assert_int_equal(frame(5, 1, batches, 2, 2), LEAT_HANDLED);
    assert_said("admits 1 parts, its only?\nmail to 1\n");
    assert_int_equal(alone.cores[0].data->forward_bytes, 30);
    assert_int_equal(atomic_load(&alone.node.forwards_bytes), 30);
    alone_deliver();
    assert_said("append to b: 10 bytes, 2 records, up to 500, of 7\n"
                "append to b: 20 bytes, 3 records, up to 500, of 7\n");
    acked(1, LEAT_OK);
    assert_said("");
    acked(0, LEAT_OK);
    assert_said("mail to 0\n");
    assert_int_equal(alone.cores[1].counters.appended_records, 5);
    assert_int_equal(alone.cores[1].counters.appended_bytes, 30);
    assert_int_equal(alone.cores[0].counters.appended_records, 0);
    answers();
    assert_said("");
    alone_deliver();
    assert_int_equal(alone.cores[0].data->forward_bytes, 0);
    answers();
    assert_said("answer 5: OK 100 OK 110\n");
    end();
}

/* Goal: a refusal by the log on another core is answered here. */
static void refusal_of_another_core_comes_back(void **state)
{
    (void)state;
    begin();
    it.appends[0] = LEAT_E_SEQUENCE_GAP;
    assert_int_equal(frame_plain(5, 1), LEAT_HANDLED);
    alone_deliver_all();
    answers();
    assert_said("answer 5: SEQUENCE_GAP 0 the log says no\n");
    end();
    begin();
    it.gone = true;
    it.absent = LEAT_E_UNKNOWN_STREAM;
    assert_int_equal(frame_plain(5, 1), LEAT_HANDLED);
    alone_deliver_all();
    answers();
    assert_said("answer 5: UNKNOWN_STREAM 0 no such stream\n");
    end();
}

/* Goal: the core of the log asks who owns the log. The request does not come back before that. */
static void owner_is_asked_for_on_the_core_of_the_log(void **state)
{
    (void)state;
    for (unsigned moved = 0; moved < 2; moved++) {
        begin();
        it.clustered = true;
        alone.desc->streamlets[1].epoch.v = 9;
        it.appends[0] = LEAT_E_SEQUENCE_GAP;
        assert_int_equal(frame_plain(5, 1), LEAT_HANDLED);
        alone_deliver_all();
        answers();
        assert_non_null(it.confirm);
        said_enough();
        it.route = moved ? LEAT_E_NOT_OWNER : LEAT_OK;
        it.route_core = 1;
        it.confirm->on_done(it.confirm, LEAT_OK);
        assert_said("mail to 0\n");
        alone_deliver();
        answers();
        assert_said(moved ? "answer 5: NOT_OWNER 0 this node does not own the log\n"
                          : "answer 5: SEQUENCE_GAP 0 the log says no\n");
        end();
    }
}

/* Goal: the bytes under way of a core, and of all cores, have limits: up to both, and no byte more. */
static void bytes_between_cores_have_limits(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        bool refused = i & 1;
        begin();
        if (i / 2 == 0) alone.cores[0].data->forward_bytes_max = refused ? 19 : 20;
        if (i / 2 == 1) alone.node.forwards_bytes_max = refused ? 19 : 20;
        if (i / 2 == 2) leat_mem_fail_at(refused ? 1 : 0);
        assert_int_equal(frame_plain(4, 1), LEAT_HANDLED);
        leat_mem_fail_at(0);
        if (i / 2 == 2 && refused) {
            answers();
            assert_said("answer 4: NO_MEMORY 0 the memory budget is used up\n");
            end();
            continue;
        }
        assert_int_equal(frame_plain(5, 1), LEAT_HANDLED);
        assert_int_equal(alone.mail_count, refused ? 1 : 2); /* it is refused here */
        assert_int_equal(alone.cores[0].data->forward_bytes, refused ? 10 : 20);
        alone_deliver(), alone_deliver();
        acked(0, LEAT_OK);
        if (!refused) acked(1, LEAT_OK);
        alone_deliver_all();
        answers();
        char expected[256];
        snprintf(expected, sizeof expected, "answer 4: OK 100\nanswer 5: %s%s\n",
                 refused ? "AGAIN 0 " : "OK 110", refused ? leat_err_text(LEAT_E_AGAIN) : "");
        assert_said(expected);
        end();
    }
}

/* ---- room ---- */

/* Goal: a forwarded request comes back when all of it is acked, and not while a part waits for room. */
static void forwarded_request_comes_back_whole(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}};
    it.appends[1] = LEAT_E_AGAIN;
    assert_int_equal(frame(5, 1, batches, 2, 2), LEAT_HANDLED);
    alone_deliver();
    said_enough();
    acked(0, LEAT_OK);
    assert_said("");
    leat_append_on_room(&it.partition[1]);
    said_enough();
    acked(1, LEAT_OK);
    assert_said("mail to 0\n");
    alone_deliver();
    answers();
    assert_said("answer 5: OK 100 OK 110\n");
    end();
}

/* Goal: requests for a log keep their order: a request that comes while others wait goes to the end of the line. */
static void forwarded_requests_wait_in_line(void **state)
{
    (void)state;
    begin();
    it.appends[0] = LEAT_E_AGAIN;
    assert_int_equal(frame(1, 1, &(struct batch){11, PLAIN, 0, 1}, 1, 1), LEAT_HANDLED);
    assert_int_equal(frame(2, 1, &(struct batch){12, PLAIN, 0, 1}, 1, 1), LEAT_HANDLED);
    assert_int_equal(frame(3, 1, &(struct batch){13, PLAIN, 0, 1}, 1, 1), LEAT_HANDLED);
    said_enough();
    alone_deliver_all();
    assert_said(
        "append to b: 11 bytes, 1 records, up to 500, of 7\n"); /* the others stand in line */
    it.appends[2] = LEAT_E_AGAIN;
    leat_append_on_room(&it.partition[1]);
    assert_said("append to b: 11 bytes, 1 records, up to 500, of 7\n"
                "append to b: 12 bytes, 1 records, up to 500, of 7\n");
    leat_append_on_room(&it.partition[1]);
    assert_said("append to b: 12 bytes, 1 records, up to 500, of 7\n"
                "append to b: 13 bytes, 1 records, up to 500, of 7\n");
    for (unsigned i = 0; i < 3; i++)
        acked(i, LEAT_OK);
    alone_deliver_all();
    answers();
    assert_said("answer 1: OK 100\nanswer 2: OK 110\nanswer 3: OK 120\n");
    end();
}

/* Goal: each of several connections' requests goes on, when there is room for all. */
static void room_is_for_all_that_wait(void **state)
{
    (void)state;
    begin();
    it.appends[0] = it.appends[1] = LEAT_E_AGAIN;
    assert_int_equal(frame_plain(1, 1), LEAT_HANDLED);
    alone_deliver();
    struct leat_peer other = {.core = &alone.cores[1]}; /* of the log's core itself */
    leat_list_init(&other.room.by_log), leat_list_init(&other.room.by_time);
    other.room.peer = &it.peer;
    leat_list_push_back(&it.partition[1].blocked, &other.room.by_log);
    leat_list_push_back(&alone.cores[1].data->room_waits, &other.room.by_time);
    it.append_at = 2;
    said_enough();
    leat_append_on_room(&it.partition[1]);
    assert_said("append to b: 10 bytes, 2 records, up to 500, of 7\nresume\n");
    assert_true(leat_list_empty(&other.room.by_time));
    acked(0, LEAT_OK);
    alone_deliver_all();
    answers();
    said_enough();
    end();
}

/* Goal: a forwarded request that waits too long is refused, and no connection is resumed for that. */
static void forwarded_request_expires(void **state)
{
    (void)state;
    begin();
    it.appends[0] = LEAT_E_AGAIN;
    assert_int_equal(frame_plain(5, 1), LEAT_HANDLED);
    alone_deliver();
    it.unpack_waits = true; /* of the connection: not this one's matter */
    alone.now_us += LEAT_APPEND_ROOM_US;
    said_enough();
    leat_append_expire(&alone.cores[1]);
    assert_said("mail to 0\n");
    assert_true(leat_list_empty(&it.partition[1].blocked));
    alone_deliver();
    answers();
    assert_said(
        "answer 5: AGAIN 0 no room in the log for 15 s: memory or disk can't keep up; send it "
        "again\n");
    end();
}

/* Goal: each waiting request has a deadline of its own, counted from its first refusal. */
static void forwarded_requests_expire_in_turn(void **state)
{
    (void)state;
    begin();
    struct leat_core *core = &alone.cores[1];
    it.appends[0] = LEAT_E_AGAIN;
    for (uint32_t number = 0; number < 3; number++) {
        assert_int_equal(frame_plain(number, 1), LEAT_HANDLED);
        alone_deliver();
        alone.now_us += 1000;
    }
    alone.now_us += LEAT_APPEND_ROOM_US - 3000;
    for (uint32_t number = 0; number < 3; number++, alone.now_us += 1000) {
        leat_append_expire(core);
        alone_deliver_all();
        answers();
        char expected[256];
        snprintf(expected, sizeof expected,
                 "answer %u: AGAIN 0 no room in the log for 15 s: memory or disk can't keep up; "
                 "send it again\n",
                 number);
        assert_said(expected);
    }
    end();
}

/* ---- compressed ones are checked before they go ---- */

/* Goal: bytes behind the last batch belong to no batch, whatever they look like, and are not checked. */
static void stray_bytes_are_not_checked(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {{10, PACKED, 0, 2}, {20, PACKED, 0, 3}};
    assert_int_equal(frame(5, 1, batches, 2, 1), LEAT_HANDLED);
    assert_said("unpack 10 bytes\nmail to 1\n");
    alone_deliver();
    acked(0, LEAT_OK);
    alone_deliver_all();
    answers();
    assert_said("answer 5: OK 100\n");
    end();
}

static void compressed_batches_are_checked_before_they_go(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {
        {10, PACKED, 0, 2}, {20, PLAIN, 0, 3}, {30, PACKED, 0, 4}};
    it.unpacks[1] = LEAT_E_AGAIN;
    it.unpack_waits = true;
    assert_int_equal(frame(5, 1, batches, 3, 3), LEAT_HELD);
    assert_said("admits 2 parts, its only?\nunpack 10 bytes\nunpack 30 bytes\npause\n");
    assert_true(leat_list_empty(&it.partition[1].blocked));
    leat_list_remove(&it.peer.room.by_time);
    it.unpack_waits = false;
    assert_int_equal(frame(5, 1, batches, 3, 3), LEAT_HANDLED);
    assert_said("unpack 30 bytes\nleave unpack\nmail to 1\n");
    assert_null(it.peer.append_now);
    alone_deliver();
    assert_said("append to b: 10 bytes, 2 records, up to 700, of 7\n"
                "append to b: 20 bytes, 3 records, up to 500, of 7\n"
                "append to b: 30 bytes, 4 records, up to 700, of 7\n");
    for (unsigned i = 0; i < 3; i++)
        acked(i, LEAT_OK);
    alone_deliver_all();
    answers();
    said_enough();
    end();
}

/* Goal: the batches before a wrong batch are appended; the refusal has the words of the check that found the fault. */
static void compressed_batch_that_is_wrong_is_refused_there(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PACKED, 0, 3}, {30, PACKED, 0, 4}};
        if (i == 0) it.unpacks[0] = LEAT_E_CORRUPT;
        if (i == 1) batches[1].check = LEAT_E_INVALID;
        assert_int_equal(frame(5, 1, batches, 3, 3), LEAT_HANDLED);
        assert_said(i == 0 ? "admits 2 parts, its only?\nunpack 20 bytes\nmail to 1\n"
                           : "admits 2 parts, its only?\nmail to 1\n");
        alone_deliver();
        acked(0, LEAT_OK);
        alone_deliver_all();
        answers();
        assert_said(i == 0 ? "answer 5: OK 100 CORRUPT 0 CANCELLED 0 bad records\n"
                           : "answer 5: OK 100 INVALID 0 CANCELLED 0 it is wrong\n");
        end();
    }
}

/* Goal: what was found to be wrong with a batch is not told of one in front of it, which was refused otherwise. */
static void refusal_has_its_own_words(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PACKED, 0, 3}};
        it.unpacks[0] = LEAT_E_CORRUPT;
        if (i == 0) it.appends[0] = LEAT_E_SEQUENCE_GAP;
        if (i == 1) it.gone = true, it.absent = LEAT_E_STARTING;
        if (i == 2) it.appends[0] = LEAT_E_AGAIN;
        assert_int_equal(frame(5, 1, batches, 2, 2), LEAT_HANDLED);
        alone_deliver();
        if (i == 2) {
            alone.now_us += LEAT_APPEND_ROOM_US;
            leat_append_expire(&alone.cores[1]);
        }
        alone_deliver_all();
        answers();
        char expected[256];
        snprintf(expected, sizeof expected, "answer 5: %s\n",
                 i == 0 ? "SEQUENCE_GAP 0 CANCELLED 0 the log says no"
                 : i == 1
                     ? "STARTING 0 CANCELLED 0 the server is starting or stopping"
                     : "AGAIN 0 CANCELLED 0 no room in the log for 15 s: memory or disk can't keep "
                       "up; send it again");
        assert_said(expected);
        end();
    }
}

/* Goal: nothing is asked for where no stream says so, or the frame is too short. */
static void nothing_is_checked_without_need(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        static const struct batch batches[] = {{10, PACKED, 0, 2}, {20, PACKED, 0, 3}};
        if (i == 0) alone.no_stream = true;
        if (i == 1) alone.desc->settings.validate = LEAT_VALIDATE_FULL + 1;
        if (i == 2) it.cut = 1;
        assert_int_equal(frame(5, 1, batches, 2, 2), LEAT_HANDLED);
        assert_said(i == 2 ? "admits 1 parts, its only?\nunpack 10 bytes\nmail to 1\n"
                           : "admits 1 parts, its only?\nmail to 1\n");
        alone_deliver();
        assert_said(i == 2 ? "append to b: 10 bytes, 2 records, up to 700, of 7\n"
                           : "append to b: 10 bytes, 2 records, up to 500, of 7\n"
                             "append to b: 20 bytes, 3 records, up to 500, of 7\n");
        acked(0, LEAT_OK);
        if (i < 2) acked(1, LEAT_OK);
        alone_deliver_all();
        answers();
        said_enough();
        end();
    }
}

/* Goal: a request whose turn to be uncompressed does not come is refused here: nothing of it has been sent. */
static void turn_that_does_not_come_ends_it_here(void **state)
{
    (void)state;
    for (unsigned closed = 0; closed < 2; closed++) {
        begin();
        static const struct batch batch = {10, PACKED, 0, 2};
        it.unpacks[0] = LEAT_E_AGAIN;
        it.unpack_waits = true;
        assert_int_equal(frame(5, 1, &batch, 1, 1), LEAT_HELD);
        said_enough();
        if (closed) {
            leat_append_peer_closed(&it.peer);
            it.peer.conn = NULL;
            assert_said("leave unpack\nleave unpack\n");
            answers();
        } else {
            alone.now_us += LEAT_APPEND_ROOM_US;
            leat_append_expire(&alone.cores[0]);
            assert_said("leave unpack\nresume\n");
            assert_int_equal(frame(5, 1, &batch, 1, 1), LEAT_HANDLED);
            answers();
            assert_said(
                "answer 5: AGAIN 0 no turn for 15 s to have compressed batches checked: many are "
                "sent; send it again\n");
        }
        assert_int_equal(alone.mail_count, 0);
        end();
    }
}

/* ---- another front end ---- */

static void on_done(struct leat_append_request *request)
{
    assert_ptr_equal(request->owner, &it);
    it.done = request;
    said("done");
}

static struct leat_append_request *door(uint32_t log, uint32_t count)
{
    return leat_append_begin(&it.peer, true, (struct leat_log_ref){ALONE_STREAM, 1, log}, 9, count,
                             on_done, &it);
}

static void append_of_another_door_is_told(void **state)
{
    (void)state;
    static const uint8_t payload[10] = {10, PLAIN, 0, 2};
    for (uint32_t log = 0; log < 2; log++) {
        begin();
        struct leat_append_request *request = door(log, 1);
        assert_int_equal(it.peer.requests, 0); /* it counts its own */
        assert_int_equal(leat_append_take(request, payload, 10), LEAT_HANDLED);
        alone_deliver_all();
        assert_null(it.done);
        said_enough();
        acked(0, LEAT_OK);
        alone_deliver_all();
        assert_said(log == 0 ? "done\n" : "mail to 0\ndone\n");
        assert_ptr_equal(it.done, request);
        assert_int_equal(request->first.rc, LEAT_OK);
        assert_true(leat_list_empty(&it.peer.answers));
        leat_append_end(request);
        end();
    }
}

/* Goal: a refused append is reported at once, also from within; its bytes are not looked at. */
static void append_of_another_door_is_refused(void **state)
{
    (void)state;
    static const uint8_t payload[10] = {10, PLAIN, 0, 2};
    begin();
    it.route = LEAT_E_NOT_OWNER;
    struct leat_append_request *request = door(0, 1);
    assert_said("done\n");
    assert_int_equal(request->rc, LEAT_E_NOT_OWNER);
    assert_string_equal(request->text, "not here");
    assert_int_equal(leat_append_take(request, payload, 10), LEAT_HANDLED);
    assert_said("");
    leat_append_end(request);
    it.no_request = true;
    assert_null(door(0, 1));
    said_enough();
    end();
}

/* Goal: an append of another protocol listener is not reported as done while its frame is held: the listener would free
 * the append. */
static void append_of_another_door_whose_frame_is_held_is_told_later(void **state)
{
    (void)state;
    static const uint8_t payload[30] = {10, PLAIN, 0, 2, 0, 0, 0, 0, 0, 0, 20, PLAIN, 0, 3};
    for (unsigned closed = 0; closed < 2; closed++) {
        begin();
        it.appends[1] = LEAT_E_AGAIN;
        struct leat_append_request *request = door(0, 2);
        assert_int_equal(leat_append_take(request, payload, 30), LEAT_HELD);
        assert_ptr_equal(it.peer.append_now, request);
        alone.now_us += LEAT_APPEND_ROOM_US;
        leat_append_expire(&alone.cores[0]);
        acked(0, LEAT_OK);
        assert_null(it.done);
        said_enough();
        if (closed)
            leat_append_peer_closed(&it.peer);
        else
            assert_int_equal(leat_append_take(request, payload, 30), LEAT_HANDLED);
        assert_said("leave unpack\ndone\n");
        assert_int_equal(request->first.rc, LEAT_OK);
        assert_int_equal(request->first.next->rc, LEAT_E_AGAIN);
        leat_append_end(request);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_goes_to_its_logs_core_and_back),
        cmocka_unit_test(refusal_of_another_core_comes_back),
        cmocka_unit_test(owner_is_asked_for_on_the_core_of_the_log),
        cmocka_unit_test(bytes_between_cores_have_limits),
        cmocka_unit_test(forwarded_request_comes_back_whole),
        cmocka_unit_test(forwarded_requests_wait_in_line),
        cmocka_unit_test(room_is_for_all_that_wait),
        cmocka_unit_test(forwarded_request_expires),
        cmocka_unit_test(forwarded_requests_expire_in_turn),
        cmocka_unit_test(stray_bytes_are_not_checked),
        cmocka_unit_test(compressed_batches_are_checked_before_they_go),
        cmocka_unit_test(compressed_batch_that_is_wrong_is_refused_there),
        cmocka_unit_test(refusal_has_its_own_words),
        cmocka_unit_test(nothing_is_checked_without_need),
        cmocka_unit_test(turn_that_does_not_come_ends_it_here),
        cmocka_unit_test(append_of_another_door_is_told),
        cmocka_unit_test(append_of_another_door_is_refused),
        cmocka_unit_test(append_of_another_door_whose_frame_is_held_is_told_later),
    };
    return cmocka_run_group_tests_name("broker append_forward", tests, NULL, NULL);
}
