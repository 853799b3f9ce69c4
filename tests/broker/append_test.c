/* SPDX-License-Identifier: Apache-2.0 */
/* Appends to logs of the connection's own core, by append.c alone: what is appended, refused and answered, and in which
 * order. */
#include "broker/data/core_data.h"
#include "tests/broker/append_rig.h"

/* ---- acks and answers ---- */

static void append_is_answered_when_it_is_acked(void **state)
{
    (void)state;
    begin();
    assert_int_equal(frame_plain(5, 0), LEAT_HANDLED);
    assert_said("append to a: 10 bytes, 2 records, up to 500, of 7\n");
    answers();
    assert_said("");
    acked(0, LEAT_OK);
    answers();
    assert_said("answer 5: OK 100\n");
    assert_int_equal(alone.cores[0].counters.appended_records, 2);
    assert_int_equal(alone.cores[0].counters.appended_bytes, 10);
    assert_int_equal(alone.cores[1].counters.appended_bytes, 0);
    end();
}

/* Goal: answers leave in the order of the requests, however these are acked. */
static void answers_keep_the_order_of_requests(void **state)
{
    (void)state;
    static const unsigned orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (unsigned i = 0; i < 6; i++) {
        unsigned answered = 0;
        bool done[3] = {false};
        begin();
        for (uint32_t number = 0; number < 3; number++)
            assert_int_equal(frame_plain(number, 0), LEAT_HANDLED);
        for (unsigned k = 0; k < 3; k++) {
            char expected[256] = "";
            acked(orders[i][k], LEAT_OK);
            done[orders[i][k]] = true;
            for (size_t used = 0; answered < 3 && done[answered]; answered++)
                used += (size_t)snprintf(expected + used, sizeof expected - used,
                                         "answer %u: OK %u\n", answered, 100 + 10 * answered);
            assert_int_equal(leat_list_empty(&it.peer.answers), expected[0] == '\0');
            answers();
            assert_said(expected);
        }
        end();
    }
}

/* Goal: the counters count a duplicate batch once, and a batch that was not acked not at all; each batch is answered by
 * its own outcome. */
static void batches_are_answered_one_by_one(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {
        {10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}, {30, PLAIN, 0, 4}, {40, PLAIN, 0, 5}};
    assert_int_equal(frame(5, 0, batches, 4, 4), LEAT_HANDLED);
    assert_said("admits 3 parts, its only?\n"
                "append to a: 10 bytes, 2 records, up to 500, of 7\n"
                "append to a: 20 bytes, 3 records, up to 500, of 7\n"
                "append to a: 30 bytes, 4 records, up to 500, of 7\n"
                "append to a: 40 bytes, 5 records, up to 500, of 7\n");
    it.waiting[1]->duplicate = true;
    acked(3, LEAT_OK);
    acked(2, LEAT_E_STALE_EPOCH);
    acked(0, LEAT_OK);
    answers();
    assert_said("");
    acked(1, LEAT_OK);
    answers();
    assert_said("answer 5: OK 100 OK 110 STALE_EPOCH 120 OK 130\n");
    assert_int_equal(alone.cores[0].counters.appended_records, 7);
    assert_int_equal(alone.cores[0].counters.appended_bytes, 50);
    end();
}

/* Goal: the batches after a refused batch are not looked at; the batches before have been appended, and their acks are
 * waited for. */
static void batch_that_is_refused_ends_its_request(void **state)
{
    (void)state;
    enum { BY_LOG, BY_CHECK, BY_ITS_RECORDS, TOO_SHORT, TOO_LONG, CASES };
    static const char *const expected[CASES] = {
        "answer 5: OK 100 SEQUENCE_GAP 0 CANCELLED 0 the log says no\n",
        "answer 5: OK 100 INVALID 0 CANCELLED 0 it is wrong\n",
        "answer 5: OK 100 CORRUPT 0 CANCELLED 0 bad records\n",
        "answer 5: OK 100 CORRUPT 0 CANCELLED 0 batch 2 of 3 does not fit the frame's payload\n",
        "answer 5: OK 100 CORRUPT 0 CANCELLED 0 batch 2 of 3 does not fit the frame's payload\n",
    };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}, {30, PLAIN, 0, 4}};
        uint32_t sent = 3;
        if (i == BY_LOG) it.appends[1] = LEAT_E_SEQUENCE_GAP;
        if (i == BY_CHECK) batches[1].check = LEAT_E_INVALID;
        if (i == BY_ITS_RECORDS) batches[1].codec = PACKED, it.unpacks[0] = LEAT_E_CORRUPT;
        if (i == TOO_SHORT) sent = 1;
        it.cut = i == TOO_LONG ? 31 : 0; /* the last byte of its second batch */
        assert_int_equal(frame(5, 0, batches, sent, 3), LEAT_HANDLED);
        assert_int_equal(it.waiting_count, 1);
        answers();
        assert_said("");
        acked(0, LEAT_OK);
        answers();
        assert_said(expected[i]);
        end();
    }
}

static void first_batch_refused_is_answered_at_once(void **state)
{
    (void)state;
    begin();
    it.appends[0] = LEAT_E_PRODUCER_FENCED;
    assert_int_equal(frame_plain(5, 0), LEAT_HANDLED);
    answers();
    assert_said("answer 5: PRODUCER_FENCED 0 the log says no\n");
    assert_int_equal(alone.cores[0].counters.appended_records, 0);
    end();
}

/* Goal: bytes behind the last batch are nobody's. */
static void stray_bytes_are_ignored(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}};
    assert_int_equal(frame(5, 0, batches, 2, 1), LEAT_HANDLED);
    acked(0, LEAT_OK);
    answers();
    assert_said("answer 5: OK 100\n");
    end();
}

/* Goal: connections are answered in the order in which they have something to be answered. */
static void connection_is_answered_behind_those_before_it(void **state)
{
    (void)state;
    begin();
    struct leat_list other, *line = &alone.cores[0].answer_peers;
    leat_list_init(&other);
    assert_int_equal(frame_plain(5, 0), LEAT_HANDLED);
    leat_list_push_back(line, &other);
    acked(0, LEAT_OK);
    assert_ptr_equal(line->next, &other);
    assert_ptr_equal(other.next, &it.peer.answers);
    assert_ptr_equal(line->prev, &it.peer.answers);
    leat_list_remove(&other);
    answers();
    said_enough();
    end();
}

/* ---- refused whole ---- */

static void request_is_refused_whole(void **state)
{
    (void)state;
    enum { NONE, MANY, STOPPING, ROUTE, BODY, CASES };
    static const char *const expected[CASES] = {
        "answer 5: error TOO_MANY: an append carries 1 to 1024 batches, not 0\n",
        "answer 5: error TOO_MANY: an append carries 1 to 1024 batches, not 1025\n",
        "answer 5: error STARTING: the server is stopping\n",
        "answer 5: error NOT_OWNER: not here\n",
        "answer 5: error INVALID: the control body of an append is not [stream, streamlet, log, "
        "epoch, "
        "batches]\n",
    };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        static const struct batch batch = {10, PLAIN, 0, 2};
        if (i == STOPPING) alone.cores[0].stopping = true;
        if (i == ROUTE) it.route = LEAT_E_NOT_OWNER;
        if (i == BODY) {
            struct leat_frame sent = {
                .request = 5, .control = (const uint8_t *)"\x91\x07", .control_bytes = 2};
            assert_int_equal(leat_append_frame(&it.peer, &sent), LEAT_HANDLED);
            assert_said(""); /* no structs are asked for */
        } else {
            assert_int_equal(frame(5, 0, &batch, 1,
                                   i == NONE   ? 0
                                   : i == MANY ? 1025
                                               : 1),
                             LEAT_HANDLED);
        }
        assert_int_equal(it.append_at, 0);
        answers();
        assert_said(expected[i]);
        end();
    }
}

/* Goal: a log that is not here, or goes, is refused by what is known of it. */
static void log_that_is_not_here_is_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        it.gone = i != 1;
        it.partition[0].state = i == 1 ? LEAT_PARTITION_GOES : LEAT_PARTITION_SERVES;
        it.absent = i == 2 ? LEAT_E_NO_MEMORY : LEAT_E_STARTING;
        assert_int_equal(frame_plain(5, 0), LEAT_HANDLED);
        assert_int_equal(it.append_at, 0);
        answers();
        char expected[256];
        snprintf(expected, sizeof expected, "answer 5: %s 0 %s\n", leat_err_name(it.absent),
                 i == 2 ? "the heap is full" : leat_err_text(LEAT_E_STARTING));
        assert_said(expected);
        end();
    }
}

/* ---- structs ---- */

/* Goal: all structs of a request are taken at once, or it waits. */
static void structs_are_taken_at_once(void **state)
{
    (void)state;
    static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}, {30, PLAIN, 0, 4}};
    begin();
    it.no_parts = true;
    assert_int_equal(frame(5, 0, batches, 3, 3), LEAT_HELD);
    assert_said("admits 2 parts, its only?\n"
                "wait for 2 parts, its only\n");
    it.no_parts = false, it.no_width = true;
    assert_int_equal(frame(5, 0, batches, 3, 3), LEAT_HELD);
    assert_said("admits 2 parts, its only?\n"
                "wait for 2 parts, its only\n");
    it.no_width = false, it.no_request = true;
    assert_int_equal(frame(5, 0, batches, 3, 3), LEAT_HELD);
    assert_said("admits 2 parts, its only?\n"
                "narrow\n");
    it.no_request = false;
    assert_int_equal(frame_plain(4, 0), LEAT_HANDLED); /* one batch needs no parts */
    assert_said("append to a: 10 bytes, 2 records, up to 500, of 7\n");
    assert_int_equal(frame(5, 0, batches, 3, 3), LEAT_HANDLED); /* beside another one */
    assert_said("admits 2 parts?\n"
                "append to a: 10 bytes, 2 records, up to 500, of 7\n"
                "append to a: 20 bytes, 3 records, up to 500, of 7\n"
                "append to a: 30 bytes, 4 records, up to 500, of 7\n");
    assert_int_equal(it.parts, 2);
    for (unsigned i = 0; i < 4; i++)
        acked(i, LEAT_OK);
    answers();
    said_enough();
    end();
}

/* Goal: a request takes no more parts than a request may have, whatever its frame says. */
static void parts_are_taken_up_to_the_limit(void **state)
{
    (void)state;
    begin();
    static const struct batch batch = {10, PLAIN, 0, 2};
    assert_int_equal(frame(5, 0, &batch, 1, LEAT_APPEND_BATCHES_MAX), LEAT_HANDLED);
    assert_int_equal(it.parts, LEAT_APPEND_BATCHES_MAX - 1);
    acked(0, LEAT_OK);
    assert_int_equal(frame(6, 0, &batch, 1, LEAT_APPEND_BATCHES_MAX + 1), LEAT_HANDLED);
    assert_int_equal(it.parts, LEAT_APPEND_BATCHES_MAX - 1);
    leat_list_remove(&it.peer.answers);
    leat_append_answer(&it.peer);
    assert_int_equal(it.parts, 0);
    said_enough();
    end();
}

/* ---- waiting for room ---- */

/* Goal: nothing is appended twice: the frame comes again, and goes on with the batch that found no room. */
static void append_waits_for_room(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}};
    it.appends[1] = it.appends[2] = LEAT_E_AGAIN;
    assert_int_equal(frame(5, 0, batches, 2, 2), LEAT_HELD);
    assert_said("admits 1 parts, its only?\n"
                "append to a: 10 bytes, 2 records, up to 500, of 7\n"
                "append to a: 20 bytes, 3 records, up to 500, of 7\n"
                "pause\n");
    assert_non_null(it.peer.append_now);
    assert_ptr_equal(it.peer.room.peer, &it.peer);
    assert_int_equal(it.peer.room.deadline_us, alone.now_us + LEAT_APPEND_ROOM_US);
    assert_ptr_equal(it.partition[0].blocked.next, &it.peer.room.by_log);
    assert_ptr_equal(alone.cores[0].data->room_waits.next, &it.peer.room.by_time);
    alone.now_us += 1000;
    leat_append_on_room(&it.partition[0]);
    assert_said("resume\n");
    assert_true(leat_list_empty(&it.partition[0].blocked));
    assert_true(leat_list_empty(&alone.cores[0].data->room_waits));
    assert_int_equal(frame(5, 0, batches, 2, 2), LEAT_HELD);
    assert_said("append to a: 20 bytes, 3 records, up to 500, of 7\n"
                "pause\n");
    assert_int_equal(it.peer.room.deadline_us, alone.now_us - 1000 + LEAT_APPEND_ROOM_US);
    acked(0, LEAT_OK);
    leat_append_on_room(&it.partition[0]);
    said_enough();
    assert_int_equal(frame(5, 0, batches, 2, 2), LEAT_HANDLED);
    assert_said("append to a: 20 bytes, 3 records, up to 500, of 7\n"
                "leave unpack\n");
    assert_null(it.peer.append_now);
    assert_int_equal(it.peer.room.deadline_us, 0);
    answers();
    assert_said(""); /* all of it is taken, and not all of it is acked */
    acked(1, LEAT_OK);
    answers();
    assert_said("answer 5: OK 100 OK 110\n");
    end();
}

/* Goal: an append stands in line once, however often its frame comes. */
static void append_stands_in_line_once(void **state)
{
    (void)state;
    begin();
    it.appends[0] = it.appends[1] = LEAT_E_AGAIN;
    assert_int_equal(frame_plain(5, 0), LEAT_HELD);
    assert_int_equal(frame_plain(5, 0), LEAT_HELD);
    const struct leat_list *blocked = &it.partition[0].blocked,
                           *waits = &alone.cores[0].data->room_waits;
    assert_ptr_equal(blocked->next, &it.peer.room.by_log);
    assert_ptr_equal(blocked->next->next, blocked);
    assert_ptr_equal(waits->next, &it.peer.room.by_time);
    assert_ptr_equal(waits->next->next, waits);
    assert_int_equal(frame_plain(5, 0), LEAT_HANDLED);
    leat_list_remove(&it.peer.room.by_log);
    leat_list_remove(&it.peer.room.by_time);
    acked(0, LEAT_OK);
    answers();
    said_enough();
    end();
}

/* Goal: batches that found no room in time are refused; batches that were taken are waited for. */
static void room_that_does_not_come_refuses_the_rest(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}};
    it.appends[1] = LEAT_E_AGAIN;
    assert_int_equal(frame(5, 0, batches, 2, 2), LEAT_HELD);
    said_enough();
    alone.now_us += LEAT_APPEND_ROOM_US - 1;
    leat_append_expire(&alone.cores[0]);
    assert_said("");
    alone.now_us += 1;
    leat_append_expire(&alone.cores[0]);
    assert_said("resume\n");
    assert_true(leat_list_empty(&it.partition[0].blocked));
    acked(0, LEAT_OK);
    answers();
    assert_said(""); /* its frame is still held */
    assert_int_equal(frame(5, 0, batches, 2, 2), LEAT_HANDLED);
    assert_int_equal(it.append_at, 2);
    answers();
    assert_said("answer 5: OK 100 AGAIN 0 no room in the log for 15 s: memory or disk can't keep "
                "up; send it again\n");
    end();
}

/* Goal: so is a batch whose turn to be checked does not come; the batch stands in no log's line. */
static void turn_that_does_not_come_refuses_the_rest(void **state)
{
    (void)state;
    begin();
    static const struct batch batch = {10, PACKED, 0, 2};
    it.unpacks[0] = LEAT_E_AGAIN;
    it.unpack_waits = true;
    assert_int_equal(frame(5, 0, &batch, 1, 1), LEAT_HELD);
    assert_said("unpack 10 bytes\n"
                "pause\n");
    assert_true(leat_list_empty(&it.partition[0].blocked));
    alone.now_us += LEAT_APPEND_ROOM_US;
    leat_append_expire(&alone.cores[0]);
    assert_said("leave unpack\nresume\n");
    assert_int_equal(frame(5, 0, &batch, 1, 1), LEAT_HANDLED);
    answers();
    assert_said("answer 5: AGAIN 0 no turn for 15 s to have compressed batches checked: many are "
                "sent; send it again\n");
    end();
}

/* ---- compressed batches ---- */

/* Goal: compressed batches are checked once, where the stream asks for that, and have the times of their records. */
static void compressed_batch_is_checked_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        static const struct batch batch = {10, PACKED, 0, 2};
        if (i == 1) alone.desc->settings.validate = LEAT_VALIDATE_FULL + 1;
        it.appends[0] = LEAT_E_AGAIN;
        if (i == 2) it.unpacks[0] = LEAT_E_AGAIN;
        assert_int_equal(frame(5, 0, &batch, 1, 1), LEAT_HELD);
        leat_append_on_room(&it.partition[0]);
        if (i == 2) assert_int_equal(frame(5, 0, &batch, 1, 1), LEAT_HELD);
        leat_append_on_room(&it.partition[0]);
        assert_int_equal(frame(5, 0, &batch, 1, 1), LEAT_HANDLED);
        if (i == 0)
            assert_said("unpack 10 bytes\n"
                        "append to a: 10 bytes, 2 records, up to 700, of 7\n"
                        "pause\n"
                        "resume\n"
                        "append to a: 10 bytes, 2 records, up to 700, of 7\n"
                        "leave unpack\n");
        else if (i == 1)
            assert_said("append to a: 10 bytes, 2 records, up to 500, of 7\n"
                        "pause\n"
                        "resume\n"
                        "append to a: 10 bytes, 2 records, up to 500, of 7\n"
                        "leave unpack\n");
        else
            assert_said("unpack 10 bytes\n"
                        "pause\n"
                        "resume\n"
                        "unpack 10 bytes\n"
                        "append to a: 10 bytes, 2 records, up to 700, of 7\n"
                        "pause\n"
                        "resume\n"
                        "append to a: 10 bytes, 2 records, up to 700, of 7\n"
                        "leave unpack\n");
        acked(0, LEAT_OK);
        answers();
        assert_said("answer 5: OK 100\n");
        end();
    }
}

/* ---- the connection goes ---- */

/* Goal: batches that were given to logs go on to their acks, and nobody is answered; a frame that is half taken
 * ends. */
static void connection_that_closes_leaves_what_was_taken(void **state)
{
    (void)state;
    begin();
    static const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}};
    assert_int_equal(frame_plain(4, 0), LEAT_HANDLED);
    it.appends[2] = LEAT_E_AGAIN;
    assert_int_equal(frame(5, 0, batches, 2, 2), LEAT_HELD);
    said_enough();
    leat_append_peer_closed(&it.peer);
    it.peer.conn = NULL;
    assert_said("leave unpack\n"
                "leave unpack\n");
    assert_true(leat_list_empty(&it.partition[0].blocked));
    assert_true(leat_list_empty(&alone.cores[0].data->room_waits));
    acked(0, LEAT_OK), acked(1, LEAT_OK);
    answers();
    assert_said("");
    assert_int_equal(alone.cores[0].counters.appended_records, 4);
    end();
    begin(); /* nothing is under way */
    leat_append_peer_closed(&it.peer);
    assert_said("");
    end();
}

/* Goal: nor is a request answered that was refused while its frame was still held. */
static void connection_that_closes_after_a_refusal(void **state)
{
    (void)state;
    begin();
    it.appends[0] = LEAT_E_AGAIN;
    assert_int_equal(frame_plain(5, 0), LEAT_HELD);
    alone.now_us += LEAT_APPEND_ROOM_US;
    leat_append_expire(&alone.cores[0]);
    leat_append_peer_closed(&it.peer);
    it.peer.closing = true;
    answers();
    assert_said("");
    end();
}

/* ---- refusals that rest on what is not acked ---- */

/* Goal: a log's refusal for a producer's sequences is answered once all batches that the log has appended are acked;
 * where an ack fails, this failure is answered instead. Other refusals do not depend on earlier batches. */
static void refusal_of_a_producer_waits_for_acks(void **state)
{
    (void)state;
    static const leat_err refusals[] = {LEAT_E_SEQUENCE_GAP, LEAT_E_UNKNOWN_PRODUCER,
                                        LEAT_E_PRODUCER_FENCED, LEAT_E_TOO_MANY_PRODUCERS};
    static const char *const told[] = {
        "answer 5: OK 100 SEQUENCE_GAP 0 CANCELLED 0 the log says no\n",
        "answer 5: OK 100 UNKNOWN_PRODUCER 0 CANCELLED 0 the log says no\n",
        "answer 5: OK 100 PRODUCER_FENCED 0 CANCELLED 0 the log says no\n",
        "answer 5: OK 100 TOO_MANY_PRODUCERS 0 CANCELLED 0 the log says no\n",
    };
    for (unsigned i = 0; i < 8; i++) {
        const bool waits = i % 4 < 3, fails = i >= 4 && waits;
        begin();
        const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}, {30, PLAIN, 0, 4}};
        it.unacked = true;
        it.clustered = true; /* their acks say who owns the log: nobody else is asked */
        it.appends[1] = refusals[i % 4];
        assert_int_equal(frame(5, 0, batches, 3, 3), LEAT_HANDLED);
        assert_int_equal(it.waiting_count, waits ? 2 : 1);
        assert_null(it.confirm);
        said_enough();
        acked(0, LEAT_OK);
        answers();
        assert_said(waits ? "" : told[3]);
        if (waits) {
            acked(1, fails ? LEAT_E_NOT_OWNER : LEAT_OK);
            answers();
            assert_said(
                fails ? "answer 5: OK 100 NOT_OWNER 0 CANCELLED 0 this node does not own the log\n"
                      : told[i % 4]);
        }
        assert_int_equal(alone.cores[0].counters.appended_records, 2);
        end();
    }
}

/* Goal: where all is acked, a node that may own the log no more says so only once the coordinators were asked. */
static void sequence_is_refused_by_the_owner_alone(void **state)
{
    (void)state;
    static const struct {
        leat_err refusal, asked, route;
        const char *told;
    } cases[] = {
        {LEAT_E_SEQUENCE_GAP, LEAT_OK, LEAT_OK,
         "answer 5: OK 100 SEQUENCE_GAP 0 CANCELLED 0 the log says no\n"},
        {LEAT_E_UNKNOWN_PRODUCER, LEAT_OK, LEAT_OK,
         "answer 5: OK 100 UNKNOWN_PRODUCER 0 CANCELLED 0 the log says no\n"},
        {LEAT_E_PRODUCER_FENCED, LEAT_OK, LEAT_E_NOT_OWNER,
         "answer 5: OK 100 NOT_OWNER 0 CANCELLED 0 this node does not own the log\n"},
        {LEAT_E_SEQUENCE_GAP, LEAT_OK, LEAT_E_STALE_EPOCH,
         "answer 5: OK 100 STALE_EPOCH 0 CANCELLED 0 the epoch is older than the log's owner "
         "epoch\n"},
        {LEAT_E_SEQUENCE_GAP, LEAT_E_TIMEOUT, LEAT_OK,
         "answer 5: OK 100 STARTING 0 CANCELLED 0 the server is starting or stopping\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        const struct batch batches[] = {{10, PLAIN, 0, 2}, {20, PLAIN, 0, 3}, {30, PLAIN, 0, 4}};
        it.clustered = true;
        alone.desc->streamlets[1].epoch.v = 9;
        it.appends[1] = cases[i].refusal;
        assert_int_equal(frame(5, 0, batches, 3, 3), LEAT_HANDLED);
        assert_int_equal(it.waiting_count, 1);
        acked(0, LEAT_OK);
        said_enough();
        answers();
        assert_said("");
        it.route = cases[i].route;
        assert_non_null(it.confirm);
        it.confirm->on_done(it.confirm, cases[i].asked);
        answers();
        assert_said(cases[i].told);
        it.route = LEAT_OK;
        end();
    }
    begin(); /* nothing rests on sequences */
    it.clustered = true;
    it.appends[0] = LEAT_E_TOO_MANY_PRODUCERS;
    assert_int_equal(frame_plain(5, 0), LEAT_HANDLED);
    assert_null(it.confirm);
    said_enough();
    answers();
    said_enough();
    end();
}

/* ---- large answers ---- */

/* Goal: answers are gathered, and go in pieces that fit. */
static void answers_go_in_pieces(void **state)
{
    (void)state;
    begin();
    static const struct batch batch = {10, PLAIN, 0, 2};
    for (uint32_t i = 0; i < 8; i++) {
        it.appends[i] = LEAT_E_SEQUENCE_GAP;
        assert_int_equal(frame(i, 0, &batch, 1, LEAT_APPEND_BATCHES_MAX), LEAT_HANDLED);
    }
    said_enough();
    leat_list_remove(&it.peer.answers);
    leat_append_answer(&it.peer);
    assert_said("send\n"
                "send\n");
    size_t at = 0;
    for (uint32_t i = 0; i < 8; i++) {
        struct leat_frame answer;
        size_t want;
        assert_int_equal(leat_frame_decode(it.answer + at, it.answer_bytes - at, &answer, &want),
                         LEAT_OK);
        assert_int_equal(answer.request, i);
        at += answer.frame_bytes;
    }
    assert_int_equal(at, it.answer_bytes); /* and nothing between them */
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_is_answered_when_it_is_acked),
        cmocka_unit_test(answers_keep_the_order_of_requests),
        cmocka_unit_test(batches_are_answered_one_by_one),
        cmocka_unit_test(batch_that_is_refused_ends_its_request),
        cmocka_unit_test(first_batch_refused_is_answered_at_once),
        cmocka_unit_test(refusal_of_a_producer_waits_for_acks),
        cmocka_unit_test(sequence_is_refused_by_the_owner_alone),
        cmocka_unit_test(stray_bytes_are_ignored),
        cmocka_unit_test(connection_is_answered_behind_those_before_it),
        cmocka_unit_test(request_is_refused_whole),
        cmocka_unit_test(log_that_is_not_here_is_refused),
        cmocka_unit_test(structs_are_taken_at_once),
        cmocka_unit_test(parts_are_taken_up_to_the_limit),
        cmocka_unit_test(append_waits_for_room),
        cmocka_unit_test(append_stands_in_line_once),
        cmocka_unit_test(room_that_does_not_come_refuses_the_rest),
        cmocka_unit_test(turn_that_does_not_come_refuses_the_rest),
        cmocka_unit_test(compressed_batch_is_checked_once),
        cmocka_unit_test(connection_that_closes_leaves_what_was_taken),
        cmocka_unit_test(connection_that_closes_after_a_refusal),
        cmocka_unit_test(answers_go_in_pieces),
    };
    return cmocka_run_group_tests_name("broker append", tests, NULL, NULL);
}
