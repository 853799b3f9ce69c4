/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches from the frame to the answer, by fetch.c alone: when a fetch is answered and when it waits, what is told of
 * each log, who is asked before that, what is sent, and what becomes of the fetch as its connection goes. */
#include "broker/data/core_data.h"
#include "tests/broker/fetch_rig.h"

static const char one[] = "admits 1 fetch, its only?\nadmits 1 logs, its only?\n";

/* ---- answers ---- */

static void fetch_with_enough_is_answered(void **state)
{
    (void)state;
    begin();
    has(0, LEAT_OK, 200);
    it.end_missing = true; /* the next request for the log that has records hears it */
    assert_int_equal(frame(5, 2, 100, 1000, 500), LEAT_HANDLED);
    assert_said("admits 1 fetch, its only?\n"
                "admits 2 logs, its only?\n"
                "answer 5, with 200 bytes\n"
                "  OK 200 bytes, 5 to 60\n"
                "  LOG_INCOMPLETE 0 bytes, 5 to 60: the log's end is missing, and may come back\n"
                "owes\n"
                "lend\n"
                "send 3\n");
    assert_int_equal(it.items, 0); /* however long its connection takes for the rest */
    assert_int_equal(it.peer.reads, 1);
    assert_int_equal(alone.cores[0].counters.fetched_bytes, 200);
    assert_int_equal(alone.cores[0].counters.fetched_records, 20);
    assert_int_equal(it.peer.requests, 1);
    sent(0);
    assert_said("back\n"
                "leave\n"
                "taken\n"
                "drained\n");
    end();
}

static void fetch_of_several_runs_ends_with_the_last(void **state)
{
    (void)state;
    begin();
    has(0, LEAT_OK, 200), has(1, LEAT_OK, 300);
    assert_int_equal(frame(5, 2, 100, 1000, 500), LEAT_HANDLED);
    assert_int_equal(it.send_count, 2);
    assert_int_equal(it.sends[0]->iov_count, 3);
    assert_int_equal(it.sends[1]->iov_count, 4);
    assert_int_equal(it.peer.reads, 2);
    sent(1);
    assert_int_equal(it.fetches, 1);
    sent(0);
    end();
}

/* Goal: a fetch waits for the bytes that it asks for, and no longer than it says. A fetch does not wait where a log
 * refused, where the next batch would be too much, or where records are left to the next request, as waiting is of no
 * use there; records are left only by a fetch that has read a byte of the same log. */
static void fetch_waits_for_what_it_asks_for(void **state)
{
    (void)state;
    enum { LITTLE, ENOUGH, NO_TIME, NOTHING, REFUSED, FULL };
    enum { LEFT = FULL + 1, BYTE, EMPTY, STOPPING, LARGE, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        uint32_t bytes = i == REFUSED || i == EMPTY ? 0 : i == BYTE ? 1 : 100;
        has(0, i == REFUSED ? LEAT_E_DAMAGED : LEAT_OK, bytes);
        it.full = i == FULL;
        it.left = i == LEFT || i == BYTE || i == EMPTY;
        it.later = i == STOPPING;
        uint32_t min = i == ENOUGH ? 100 : i == NOTHING ? 0 : i == LARGE ? UINT32_MAX : 101;
        (void)frame(5, 1, min, i == LARGE ? 100 : 1000, i == NO_TIME ? 0 : 500);
        if (i == STOPPING) {
            alone.cores[0].stopping = true;
            it.later = false;
            assert_true(leat_fetch_read_at(it.last));
            leat_fetch_finish(it.last);
        }
        if (i == LITTLE || i == EMPTY) {
            char expected[256];
            snprintf(expected, sizeof expected, "%s%swait until %llu\n", one,
                     i == LITTLE ? "drop reads\n" : "",
                     (unsigned long long)alone.now_us + 500 * 1000);
            assert_said(expected);
            leat_fetch_stop(&alone.cores[0]);
            assert_said("wake\n");
            assert_true(it.last->over_deadline);
            assert_true(leat_list_empty(&it.last->link)); /* its watches come back first */
            leat_fetch_run(it.last);
        }
        assert_int_equal(it.send_count, bytes > 0);
        if (bytes > 0) sent(0);
        end();
    }
}

/* Goal: limits of what is asked for: a byte at least, no more than an answer may have, and no longer than a minute. */
static void what_is_asked_for_has_limits(void **state)
{
    (void)state;
    static const struct {
        uint32_t min, max, wait_ms, min_bytes, max_bytes;
        uint64_t wait_us;
    } rows[] = {
        {1, 0, 5, 1, 1, 5000},
        {5, 1, 5, 1, 1, 5000},
        {5, LEAT_FETCH_BYTES_MAX + 1, 5, 5, LEAT_FETCH_BYTES_MAX, 5000},
        {5, LEAT_FETCH_BYTES_MAX - 1, 5, 5, LEAT_FETCH_BYTES_MAX - 1, 5000},
        {5, 10, LEAT_FETCH_WAIT_MS_MAX, 5, 10, 1000ull * LEAT_FETCH_WAIT_MS_MAX},
        {5, 10, LEAT_FETCH_WAIT_MS_MAX + 1, 5, 10, 1000ull * LEAT_FETCH_WAIT_MS_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        it.later = true;
        (void)frame(5, 1, rows[i].min, rows[i].max, rows[i].wait_ms);
        assert_int_equal(it.last->min_bytes, rows[i].min_bytes);
        assert_int_equal(it.last->max_bytes, rows[i].max_bytes);
        assert_int_equal(it.last->bytes_max, rows[i].max_bytes);
        assert_true(it.last->deadline_us == alone.now_us + rows[i].wait_us);
        assert_int_equal(it.last->items->max_bytes, UINT32_MAX);
        assert_true(it.last->buffer_wait.on_buffer == leat_fetch_on_buffer);
        assert_true(it.last->timer.on_expired == leat_fetch_on_timer);
        assert_ptr_equal(it.last->buffer_wait.owner, it.last);
        assert_ptr_equal(it.last->timer.owner, it.last);
        struct leat_list line; /* for a buffer: the fetch leaves the line as it goes */
        leat_list_init(&line);
        leat_list_push_back(&line, &it.last->buffer_wait.link);
        leat_fetch_free(it.last);
        assert_true(leat_list_empty(&line));
        end();
    }
}

/* Goal: a connection that was slow gets no more than it takes, and waits for no more. */
static void slow_connection_gets_less(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        it.peer.borrowed.answer_bytes_max = i == 0 ? 100 : i == 1 ? 1000 : 2000;
        has(0, LEAT_OK, 100);
        (void)frame(5, 1, 500, 1000, 500);
        assert_int_equal(it.last->bytes_max, i == 0 ? 100 : 1000);
        assert_int_equal(it.send_count, i == 0);
        if (i == 0) sent(0);
        if (i > 0) leat_fetch_free(it.last);
        end();
    }
    begin();
    it.slow = true;
    struct leat_list other, *line = &alone.cores[0].data->deferred_fetches;
    leat_list_init(&other);
    leat_list_push_back(line, &other);
    (void)frame(5, 1, 500, 1000, 500);
    assert_ptr_equal(line->next, &other); /* it comes behind others */
    assert_ptr_equal(other.next, &it.last->link);
    leat_list_remove(&other);
    leat_fetch_free(it.last);
    end();
}

/* Goal: each round begins anew. */
static void round_begins_anew(void **state)
{
    (void)state;
    begin();
    has(0, LEAT_E_DAMAGED, 0);
    it.results[0].resume = 70;
    it.full = true;
    it.later = true;
    (void)frame(5, 1, 500, 1000, 500);
    struct leat_fetch *fetch = it.last;
    fetch->state = LEAT_FETCH_UNWATCHING;
    fetch->bytes = 3, fetch->records = 4, fetch->refused = fetch->full = fetch->called = true;
    fetch->items->result.code = LEAT_E_DAMAGED;
    fetch->items->result.bytes = 9;
    fetch->items->result.resume = 9;
    fetch->items->watch_from = 50;
    fetch->items->result.next.segment = 9;
    leat_fetch_run(fetch);
    assert_int_equal(fetch->state, LEAT_FETCH_RUNNING);
    assert_ptr_equal(fetch->at, fetch->items);
    assert_false(fetch->refused || fetch->full || fetch->called);
    assert_int_equal(fetch->bytes + fetch->records, 0);
    assert_int_equal(fetch->items->result.code, LEAT_OK);
    assert_int_equal(fetch->items->result.bytes + fetch->items->result.resume, 0);
    assert_int_equal(fetch->items->result.next.segment, 0);
    assert_int_equal(fetch->items->watch_from, 40);
    leat_fetch_free(fetch);
    end();
}

/* ---- what is told of each log ---- */

static void refusals_are_told_in_words(void **state)
{
    (void)state;
    static const struct {
        leat_err code;
        bool end_missing;
        const char *row;
    } rows[] = {
        {LEAT_OK, false, "  OK 0 bytes, 5 to 60\n"},
        {LEAT_E_OFFSET_OUT_OF_RANGE, false,
         "  OFFSET_OUT_OF_RANGE 0 bytes, 5 to 60: offset 40 of stream 7 "
         "streamlet 1 log 0 is outside the valid range 5 to 60\n"},
        {LEAT_E_STARTING, false, "  STARTING 0 bytes, 5 to 60: it comes\n"},
        {LEAT_E_UNKNOWN_STREAM, false, "  UNKNOWN_STREAM 0 bytes, 5 to 60: it has gone\n"},
        /* Nothing was read, and the log waits for its end: the reader is not at the end. */
        {LEAT_OK, true,
         "  LOG_INCOMPLETE 0 bytes, 5 to 60: the log's end is missing, and may come back\n"},
        {LEAT_E_DAMAGED, true, "  DAMAGED 0 bytes, 5 to 60\n"}, /* refused for its own reason */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        has(0, rows[i].code, 0);
        it.end_missing = rows[i].end_missing;
        (void)frame(5, 1, 1, 1000, 0);
        char expected[512];
        snprintf(expected, sizeof expected, "%sanswer 5, with 0 bytes\n%sleave\n", one,
                 rows[i].row);
        assert_said(expected);
        end();
    }
}

/* Goal: a refusal has the words of the log's state at the time of the answer; where the state has changed since the
 * refusal, the answer has the code alone. */
static void refusal_of_a_route_is_told_as_it_is_now(void **state)
{
    (void)state;
    begin(); /* nor is it said of another reason that the coordinators could not be asked */
    it.route = LEAT_E_STARTING;
    it.later = true;
    (void)frame(5, 1, 1, 1000, 500);
    it.route = LEAT_OK;
    it.later = false;
    said_enough();
    leat_fetch_run(it.last);
    assert_said("answer 5, with 0 bytes\n  STARTING 0 bytes, 0 to 0\nleave\n");
    end();
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.route = LEAT_E_NOT_OWNER;
        it.later = true;
        (void)frame(5, 1, 1, 1000, 500);
        if (i == 1) it.route = LEAT_E_UNKNOWN_STREAM;
        it.later = false;
        said_enough();
        leat_fetch_run(it.last);
        assert_said(i == 0
                        ? "answer 5, with 0 bytes\n  NOT_OWNER 0 bytes, 0 to 0: not here\nleave\n"
                        : "answer 5, with 0 bytes\n  NOT_OWNER 0 bytes, 0 to 0\nleave\n");
        end();
    }
}

/* ---- the coordinators are asked ---- */

/* Goal: only the owner may say that an offset is too high; nothing that was read is held so long. */
static void offset_that_is_too_high_is_told_by_the_owner_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        it.clustered = true;
        has(0, LEAT_E_OFFSET_OUT_OF_RANGE, 0), has(1, LEAT_OK, 200);
        it.results[0].acked_offset = 39;
        assert_int_equal(frame(5, 2, 1, 1000, 500), LEAT_HANDLED);
        assert_said("admits 1 fetch, its only?\nadmits 2 logs, its only?\ndrop reads\nconfirm\n");
        assert_int_equal(it.last->state, LEAT_FETCH_CONFIRMING);
        if (i == 1) it.route = LEAT_E_NOT_OWNER;
        if (i == 3) it.route = LEAT_E_STARTING;
        struct leat_list other, *line = &alone.cores[0].data->ready_fetches;
        leat_list_init(&other);
        leat_list_push_back(line, &other);
        confirmed(i >= 2 ? LEAT_E_TIMEOUT : LEAT_OK);
        assert_ptr_equal(line->next, &other); /* it comes behind others */
        assert_ptr_equal(other.next, &it.last->link);
        leat_list_remove(&other);
        assert_int_equal(it.last->state, LEAT_FETCH_UNWATCHING);
        assert_false(it.last->items->next->confirmed);
        leat_list_remove(&it.last->link);
        leat_fetch_run(it.last);
        static const char *const rows[] = {
            "  OFFSET_OUT_OF_RANGE 0 bytes, 5 to 39: offset 40 of stream 7 streamlet 1 log 0 is "
            "outside the valid range 5 to 39\n",
            "  NOT_OWNER 0 bytes, 5 to 39: not here\n",
            "  STARTING 0 bytes, 5 to 39: the offset is beyond what this node has, and whether it "
            "is "
            "still the owner can't be found out now: try again\n",
            "  STARTING 0 bytes, 5 to 39: not here\n"};
        char expected[512];
        snprintf(expected, sizeof expected,
                 "answer 5, with 200 bytes\n%s  OK 200 bytes, 5 to 60\nowes\nlend\nsend 4\n",
                 rows[i]);
        assert_said(expected);
        sent(0);
        end();
    }
}

/* Goal: a node that was not the owner when it was asked says so, whatever holds when the answer is written. */
static void node_that_is_not_the_owner_says_no_more(void **state)
{
    (void)state;
    begin();
    it.clustered = true;
    has(0, LEAT_E_OFFSET_OUT_OF_RANGE, 0);
    it.results[0].acked_offset = 39;
    (void)frame(5, 1, 1, 1000, 500);
    it.route = LEAT_E_NOT_OWNER;
    confirmed(LEAT_OK);
    it.route = LEAT_OK;
    leat_list_remove(&it.last->link);
    said_enough();
    leat_fetch_run(it.last);
    assert_said("answer 5, with 0 bytes\n  NOT_OWNER 0 bytes, 5 to 39\nleave\n");
    end();
}

/* Goal: nobody is asked for what another node could not know better. */
static void coordinators_are_asked_only_where_it_matters(void **state)
{
    (void)state;
    enum { ALONE, TOO_LOW, OTHER_CODE, AT_THE_END, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        it.clustered = i != ALONE;
        has(0, i == OTHER_CODE ? LEAT_E_DAMAGED : LEAT_E_OFFSET_OUT_OF_RANGE, 0);
        it.results[0].acked_offset = i == TOO_LOW ? 60 : i == AT_THE_END ? 40 : 39;
        (void)frame(5, 1, 1, 1000, 500);
        assert_null(it.confirm);
        end();
    }
}

/* Goal: a node that stops can't find out any more. */
static void question_ends_with_the_node(void **state)
{
    (void)state;
    begin();
    it.clustered = true;
    has(0, LEAT_E_OFFSET_OUT_OF_RANGE, 0);
    it.results[0].acked_offset = 39;
    (void)frame(5, 1, 1, 1000, 500);
    struct leat_list asked;
    leat_list_init(&asked);
    leat_list_push_back(&asked, &it.confirm->link);
    leat_fetch_stop(&alone.cores[0]);
    assert_true(leat_list_empty(&asked)); /* nobody is told */
    assert_int_equal(it.last->items->refused, LEAT_E_STARTING);
    assert_ptr_equal(alone.cores[0].data->ready_fetches.next, &it.last->link);
    leat_fetch_free(it.last);
    end();
}

/* ---- frames ---- */

static void frame_is_checked(void **state)
{
    (void)state;
    begin();
    alone.cores[0].stopping = true;
    assert_int_equal(frame(5, 1, 1, 1000, 0), LEAT_HANDLED);
    assert_said("refuse 5 STARTING: the server is stopping\n");
    alone.cores[0].stopping = false;
    static const uint32_t counts[] = {0, LEAT_FETCH_LOGS_MAX + 1};
    for (unsigned i = 0; i < 2; i++) {
        uint8_t bytes[8192] = {0};
        struct leat_msg_writer writer;
        struct leat_msg_fetch body = {.log_count = counts[i]};
        leat_msg_writer_init(&writer, bytes, sizeof bytes);
        leat_msg_fetch_write(&writer, &body);
        struct leat_frame sent_frame = {
            .request = 5, .control = bytes, .control_bytes = sizeof bytes};
        assert_int_equal(leat_fetch_frame(&it.peer, &sent_frame), LEAT_HANDLED);
        char expected[256];
        snprintf(expected, sizeof expected,
                 "refuse 5 TOO_MANY: a fetch names 1 to 1024 logs, not %u\n", counts[i]);
        assert_said(expected);
    }
    uint8_t most[8192] = {0}; /* so many may be named, but these are none */
    struct leat_msg_writer most_writer;
    leat_msg_writer_init(&most_writer, most, sizeof most);
    leat_msg_fetch_write(&most_writer, &(struct leat_msg_fetch){.log_count = LEAT_FETCH_LOGS_MAX});
    struct leat_frame bad = {.request = 5, .control = most, .control_bytes = sizeof most};
    assert_int_equal(leat_fetch_frame(&it.peer, &bad), LEAT_HANDLED);
    assert_said(
        "admits 1 fetch, its only?\nadmits 1024 logs, its only?\nnarrow logs\nleave\n"
        "refuse 5 INVALID: log 1 of the fetch is not [stream, streamlet, log, epoch, from]\n");
    bad = (struct leat_frame){.request = 5, .control = (const uint8_t *)"\x07", .control_bytes = 1};
    assert_int_equal(leat_fetch_frame(&it.peer, &bad), LEAT_HANDLED);
    assert_said(
        "refuse 5 INVALID: the control body of a fetch is not [min bytes, max bytes, wait ms, "
        "[log...]]\n");
    uint8_t bytes[64] = {0};
    struct leat_msg_writer writer;
    struct leat_msg_fetch body = {.min_bytes = 1, .max_bytes = 2, .log_count = 2};
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_fetch_write(&writer, &body);
    leat_msg_fetch_log_write(&writer, &(struct leat_msg_fetch_log){.log = {7, 1, 0}, .epoch = 9});
    bad = (struct leat_frame){
        .request = 5, .control = bytes, .control_bytes = (uint32_t)writer.used + 3};
    assert_int_equal(leat_fetch_frame(&it.peer, &bad), LEAT_HANDLED);
    assert_said(
        "admits 1 fetch, its only?\nadmits 2 logs, its only?\nnarrow logs\nleave\n"
        "refuse 5 INVALID: log 2 of the fetch is not [stream, streamlet, log, epoch, from]\n");
    end();
}

static void bytes_behind_a_frames_body_refuse_it(void **state)
{
    (void)state;
    begin();
    uint8_t bytes[64] = {0};
    struct leat_msg_writer writer;
    struct leat_msg_fetch body = {.min_bytes = 1, .max_bytes = 2, .log_count = 1};
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_fetch_write(&writer, &body);
    leat_msg_fetch_log_write(&writer, &(struct leat_msg_fetch_log){.log = {7, 1, 0}, .epoch = 9});
    struct leat_frame longer = {
        .request = 5, .control = bytes, .control_bytes = (uint32_t)writer.used + 1};
    assert_int_equal(leat_fetch_frame(&it.peer, &longer), LEAT_HANDLED);
    assert_said("admits 1 fetch, its only?\nadmits 1 logs, its only?\nleave\n"
                "refuse 5 INVALID: bytes follow the control body of the fetch\n");
    end();
}

static void structs_are_taken_at_once(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        if (i == 0) it.no_fetch = true;
        if (i == 1) it.no_items = true;
        if (i == 2) it.no_width = true;
        it.peer.requests = 1; /* another one is under way */
        it.peer.stock.called = true;
        assert_int_equal(frame(5, 3, 1, 1000, 0), LEAT_HELD);
        assert_said(i == 0 ? "admits 1 fetch?\nnarrow fetches\nwait for 1 fetch\n"
                           : "admits 1 fetch?\nadmits 3 logs?\nnarrow fetches\nwait for 3 logs\n");
        assert_true(it.peer.stock.called);
        it.no_fetch = it.no_items = it.no_width = false;
        assert_int_equal(frame(5, 3, 1, 1000, 0), LEAT_HANDLED);
        assert_false(it.peer.stock.called);
        it.peer.requests = 0;
        end();
    }
}

/* ---- sending ---- */

/* Goal: a fetch that waits until its connection holds less goes on when the connection does. */
static void limited_fetches_go_on_when_something_has_left(void **state)
{
    (void)state;
    for (unsigned enough = 0; enough < 2; enough++) {
        begin();
        struct leat_list waiting;
        leat_list_init(&waiting);
        has(0, LEAT_OK, 200);
        (void)frame(5, 1, 1, 1000, 0);
        leat_list_push_back(&it.peer.limited, &waiting);
        struct leat_list other, *ready = &alone.cores[0].data->ready_fetches;
        leat_list_init(&other);
        leat_list_push_back(ready, &other);
        it.enough = enough;
        said_enough();
        sent(0);
        assert_said("back\nleave\ntaken\ndrained\n");
        assert_ptr_equal(ready->next, &other); /* behind others */
        assert_ptr_equal(waiting.next, enough ? &it.peer.limited : ready);
        leat_list_remove(&other);
        leat_list_remove(&waiting);
        end();
    }
}

static void connection_that_closes_is_sent_nothing(void **state)
{
    (void)state;
    begin();
    has(0, LEAT_OK, 200);
    it.peer.closing = true;
    (void)frame(5, 1, 1, 1000, 0);
    assert_int_equal(it.send_count, 0);
    assert_said("admits 1 fetch, its only?\nadmits 1 logs, its only?\nanswer 5, with 200 bytes\n"
                "  OK 200 bytes, 5 to 60\ndrop reads\nleave\n");
    end();
}

/* ---- another front end ---- */

static void on_ready(struct leat_fetch *fetch)
{
    assert_ptr_equal(fetch->owner, &it);
    it.ready = fetch;
    said("ready");
}

static struct leat_fetch *door(void)
{
    struct leat_fetch *fetch = leat_fetch_begin(&it.peer, true, 2, 1, 1000, 0, on_ready, &it);
    for (uint32_t i = 0; i < 2; i++)
        (void)leat_fetch_add(
            fetch,
            &(struct leat_msg_fetch_log){.log = {ALONE_STREAM, 1, i}, .epoch = 9, .offset = 40},
            77);
    assert_int_equal(fetch->item_count, 2);
    assert_int_equal(fetch->items->max_bytes, 77);
    assert_int_equal(fetch->items->next->home, 1);
    leat_fetch_start(fetch);
    return fetch;
}

static void fetch_of_another_door_is_sent_by_it(void **state)
{
    (void)state;
    begin();
    has(0, LEAT_OK, 200), has(1, LEAT_OK, 100);
    struct leat_fetch *fetch = door();
    assert_said("admits 1 fetch, its only?\nadmits 2 logs, its only?\nready\n");
    assert_int_equal(fetch->state, LEAT_FETCH_READY);
    leat_fetch_send(fetch, fetch->items);
    assert_said("owes\nlend\nsend 3\n"); /* that log's alone */
    leat_fetch_end(fetch);
    assert_said("drop reads\n"); /* what is not wanted */
    sent(0);
    end();
}

/* Goal: a fetch of another protocol listener stays until that listener ends the fetch, also where the network takes its
 * answers at once. */
static void fetch_of_another_door_stays_until_its_end(void **state)
{
    (void)state;
    begin();
    has(0, LEAT_OK, 200), has(1, LEAT_OK, 100);
    struct leat_fetch *fetch = door();
    leat_fetch_send(fetch, fetch->items);
    sent(0);
    assert_int_equal(it.fetches, 1);
    leat_fetch_send(fetch, fetch->items->next);
    leat_fetch_end(fetch);
    assert_int_equal(it.send_count, 2);
    sent(1);
    said_enough();
    end();
}

/* Goal: a fetch of another protocol listener that gives way has no bytes of any log afterwards; a fetch that came in a
 * frame is refused. */
static void fetch_that_gives_way_is_refused(void **state)
{
    (void)state;
    begin();
    has(0, LEAT_OK, 200);
    struct leat_fetch *fetch = door();
    said_enough();
    leat_list_push_back(&alone.cores[0].data->ready_fetches, &fetch->link);
    leat_fetch_refuse(fetch);
    assert_said("drop reads\nready\n");
    assert_true(leat_list_empty(&fetch->link));
    assert_int_equal(fetch->bytes, 0);
    assert_int_equal(fetch->items->result.code, LEAT_E_AGAIN);
    assert_int_equal(fetch->items->result.bytes, 0);
    assert_int_equal(fetch->items->next->result.code, LEAT_E_AGAIN);
    leat_fetch_end(fetch);
    end();
    begin();
    it.later = true;
    (void)frame(5, 1, 1, 1000, 0);
    said_enough();
    leat_fetch_refuse(it.last);
    assert_said("refuse 5 AGAIN: others wait for what this request holds until earlier answers are "
                "taken: try again\nleave\n");
    end();
}

/* ---- its connection goes ---- */

/* Goal: parts of a fetch that are under way elsewhere end there; all else is freed at once, and counts no more. */
static void connection_that_goes_takes_its_fetches_along(void **state)
{
    (void)state;
    enum { RUNNING, WAITING, CONFIRMING, BUFFER, DEFERRED, SENDING, DOOR, OTHERS, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        struct leat_peer other = {.core = &alone.cores[0]};
        struct leat_list line;
        leat_list_init(&line);
        it.later = i == RUNNING || i == BUFFER || i == OTHERS;
        it.slow = i == DEFERRED;
        it.clustered = i == CONFIRMING;
        if (i == CONFIRMING) has(0, LEAT_E_OFFSET_OUT_OF_RANGE, 0), it.results[0].acked_offset = 39;
        if (i == SENDING || i == DOOR) has(0, LEAT_OK, 200);
        if (i == DOOR)
            (void)door();
        else
            (void)frame(5, 1, 1, 1000, 500);
        if (i == BUFFER) leat_list_push_back(&line, &it.last->buffer_wait.link);
        if (i == CONFIRMING) leat_list_push_back(&line, &it.last->confirm.link);
        if (i == BUFFER) it.last->buffer = &it;
        said_enough();
        leat_fetch_peer_closed(i == OTHERS ? &other : &it.peer);
        static const char *const expected[CASES] = {"",
                                                    "wake\n",
                                                    "leave\n",
                                                    "give the buffer\nleave\n",
                                                    "leave\n",
                                                    "",
                                                    "drop reads\nleave\n",
                                                    ""};
        assert_said(expected[i]);
        assert_true(leat_list_empty(&line)); /* nobody is given to what is gone */
        bool there = i == RUNNING || i == WAITING || i == SENDING || i == OTHERS;
        assert_int_equal(it.fetches, there);
        if (i == OTHERS) {
            assert_ptr_equal(it.last->peer, &it.peer);
            leat_fetch_free(it.last);
        } else if (i == RUNNING) { /* its read comes back */
            assert_null(it.last->peer);
            it.later = false;
            has(0, LEAT_OK, 200);
            assert_true(leat_fetch_read_at(it.last));
            leat_fetch_finish(it.last); /* what it brings goes back */
            said_enough();
        } else if (i == WAITING) {
            leat_fetch_free(it.last);
        } else if (i == SENDING) {
            assert_int_equal(it.peer.reads, 1);
            sent(0);
            assert_said("back\nleave\n"); /* nobody is to be told */
            it.peer.reads = 0;
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fetch_with_enough_is_answered),
        cmocka_unit_test(fetch_of_several_runs_ends_with_the_last),
        cmocka_unit_test(fetch_waits_for_what_it_asks_for),
        cmocka_unit_test(what_is_asked_for_has_limits),
        cmocka_unit_test(slow_connection_gets_less),
        cmocka_unit_test(round_begins_anew),
        cmocka_unit_test(refusals_are_told_in_words),
        cmocka_unit_test(refusal_of_a_route_is_told_as_it_is_now),
        cmocka_unit_test(offset_that_is_too_high_is_told_by_the_owner_alone),
        cmocka_unit_test(node_that_is_not_the_owner_says_no_more),
        cmocka_unit_test(coordinators_are_asked_only_where_it_matters),
        cmocka_unit_test(question_ends_with_the_node),
        cmocka_unit_test(frame_is_checked),
        cmocka_unit_test(bytes_behind_a_frames_body_refuse_it),
        cmocka_unit_test(structs_are_taken_at_once),
        cmocka_unit_test(limited_fetches_go_on_when_something_has_left),
        cmocka_unit_test(connection_that_closes_is_sent_nothing),
        cmocka_unit_test(fetch_of_another_door_is_sent_by_it),
        cmocka_unit_test(fetch_of_another_door_stays_until_its_end),
        cmocka_unit_test(fetch_that_gives_way_is_refused),
        cmocka_unit_test(connection_that_goes_takes_its_fetches_along),
    };
    return cmocka_run_group_tests_name("broker fetch", tests, NULL, NULL);
}
