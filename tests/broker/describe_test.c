/* SPDX-License-Identifier: Apache-2.0 */
/* A stream is described, by describe.c alone: each field of its logs, what other nodes say of their logs, and what is
 * said of a log that is not known. */
#include "broker/admin/calls.h"
#include "tests/broker/describe_rig.h"

enum { ROWS = 4 };

/* What was answered. */
static struct {
    uint32_t fields, rows, nodes;
    struct leat_msg_log_info log[ROWS];
    char text[ROWS][400];
    uint64_t incarnation[4];
    char name[4][16];
} shown;

static void call_describe(void)
{
    uint8_t body[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_string(&writer, "orders", 6);
    calls.kind = LEAT_KIND_STREAM_DESCRIBE;
    alone_call(leat_call_stream_describe, &writer);
}

static void read_answer(void)
{
    struct leat_msg_reader reader;
    struct leat_stream_settings settings;
    alone_answer(&reader);
    memset(&shown, 0, sizeof shown);
    shown.fields = leat_msg_read_array(&reader);
    struct leat_msg_string name = leat_msg_read_string(&reader);
    assert_int_equal(name.bytes, 6);
    assert_memory_equal(name.text, "orders", 6);
    assert_int_equal(leat_msg_read_u32(&reader), ALONE_STREAM);
    leat_msg_settings_read(&reader, &settings);
    assert_int_equal(settings.copies, 3);
    shown.rows = leat_msg_read_array(&reader);
    for (uint32_t i = 0; i < shown.rows; i++) {
        struct leat_msg_log_info row;
        leat_msg_log_info_read(&reader, &row);
        if (i >= ROWS) continue;
        shown.log[i] = row;
        snprintf(shown.text[i], sizeof shown.text[i], "%.*s", (int)row.text.bytes, row.text.text);
    }
    if (shown.fields == 5) shown.nodes = leat_msg_read_array(&reader);
    for (uint32_t i = 0; i < shown.nodes; i++) {
        assert_int_equal(leat_msg_read_array(&reader), 2);
        uint64_t incarnation = leat_msg_read_u64(&reader);
        name = leat_msg_read_string(&reader);
        if (i >= 4) continue;
        shown.incarnation[i] = incarnation;
        snprintf(shown.name[i], sizeof shown.name[i], "%.*s", (int)name.bytes, name.text);
    }
    assert_true(leat_msg_read_done(&reader));
}

/* It is described, and nothing has to be waited for. */
static void describe(void)
{
    call_describe();
    deliver_all();
    assert_int_equal(calls.open, 0);
    said_enough();
    read_answer();
}

static void assert_row(uint32_t at, leat_err code, const char *text)
{
    assert_int_equal(shown.log[at].code, code);
    assert_string_equal(shown.text[at], text);
}

/* That row has what the log of this node said, as hosts() made it. */
static void assert_own_row(uint32_t at)
{
    const struct leat_msg_log_info *row = &shown.log[at];
    uint64_t n = 1000 * (uint64_t)(at + 1);
    assert_int_equal(row->at.streamlet, at / 2);
    assert_int_equal(row->at.log, at % 2);
    assert_int_equal(row->at.owner, ALONE_SELF);
    assert_int_equal(row->at.epoch, 5);
    assert_int_equal(row->at.lane, (7 + at) % 2);
    assert_int_equal(row->state, LEAT_LOG_DAMAGED);
    assert_int_equal(row->first_offset, n + 1);
    assert_int_equal(row->acked_offset, n + 2);
    assert_int_equal(row->bytes, n + 3);
    assert_int_equal(row->first_segment, n + 4);
    assert_int_equal(row->segments, n + 5);
    assert_int_equal(row->groups, n + 6);
    assert_int_equal(row->first_group, n + 7);
    assert_int_equal(row->end_segment, n + 8);
    assert_int_equal(row->producers, n + 9);
    assert_int_equal(row->memory_bytes, n + 10);
    assert_int_equal(row->offsets_lost, n + 11);
    assert_int_equal(row->passed_bytes, n + 12);
    assert_int_equal(row->passed_segments, n + 13);
    assert_int_equal(row->passed_segment, n + 14);
    assert_int_equal(row->passed_offset, n + 15);
}

/* ---- of this node ---- */

static void each_log_is_asked_on_its_core(void **state)
{
    (void)state;
    begin();
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nmail to 1\nmail to 1\nanswer\n");
    read_answer();
    assert_int_equal(shown.fields, 5);
    assert_int_equal(shown.rows, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_own_row(i);
        assert_row(i, LEAT_OK, "");
        assert_int_equal(shown.log[i].copies, 1);
        assert_int_equal(shown.log[i].copies_min, 1);
        assert_int_equal(shown.log[i].copies_now, 1);
        assert_int_equal(shown.log[i].segments_lacking, 0);
    }
    assert_int_equal(shown.nodes, 1);
    assert_int_equal(shown.incarnation[0], ALONE_SELF);
    assert_string_equal(shown.name[0], "n1");
    end();
}

static void first_log_may_be_on_any_core(void **state)
{
    (void)state;
    begin();
    it.shift = 1;
    describe();
    for (uint32_t i = 0; i < 4; i++)
        assert_own_row(i);
    end();
}

static void copies_are_as_replication_has_them(void **state)
{
    (void)state;
    begin();
    it.partition[0][1].copies = (void *)&it.status;
    it.status = (struct leat_primary_log_status){
        .copies = 4, .min_copies = 3, .copies_now = 2, .segments_lacking = 9, .suspended = true};
    describe();
    assert_int_equal(shown.log[1].copies, 4);
    assert_int_equal(shown.log[1].copies_min, 3);
    assert_int_equal(shown.log[1].copies_now, 2);
    assert_int_equal(shown.log[1].segments_lacking, 9);
    assert_true(shown.log[1].suspended);
    assert_false(shown.log[1].below_min);
    it.status.suspended = false, it.status.below_min = true;
    describe();
    assert_false(shown.log[1].suspended);
    assert_true(shown.log[1].below_min);
    end();
}

/* Goal: the trouble that an operator has to hear first is said. */
static void trouble_is_told(void **state)
{
    (void)state;
    begin();
    it.logs[0][0].trouble = LEAT_E_DAMAGED;
    it.logs[0][0].lacks_space = true, it.logs[0][0].front_unknown = true;
    it.logs[0][0].located = LEAT_OK;
    it.logs[0][1].front_unknown = true;
    it.logs[0][1].located = LEAT_OK;
    it.partition[1][0].log = NULL; /* on its way */
    it.partition[1][1].core = NULL;
    it.partition[0][1].state = LEAT_PARTITION_GOES;
    describe();
    assert_row(0, LEAT_E_DAMAGED, "it is in trouble");
    assert_row(1, LEAT_E_STARTING,
               "where it begins is not known yet: its last segment is still being read");
    assert_row(2, LEAT_E_STARTING,
               "the log is not ready here: it is being made, moved or taken over, or the server "
               "stops; try again");
    assert_int_equal(shown.log[3].code, LEAT_E_STARTING);
    assert_int_equal(shown.log[2].first_offset, 0);
    alone.stream.logs_missing = true;
    it.heap_refuses = true;
    describe();
    assert_int_equal(shown.log[2].code, LEAT_E_NO_MEMORY);
    atomic_store(&alone.node.standing, LEAT_STANDING_ALONE);
    it.logs[0][1].front_unknown = false;
    describe();
    assert_row(0, LEAT_E_DAMAGED, "it is in trouble");
    assert_row(1, LEAT_E_STARTING,
               "its state is not known: this node does not know whether it is still up: ask "
               "another one for metadata, or wait");
    assert_own_row(1);
    end();
}

/* Goal: that a disk was full when a log asked last is not told when there is space by now. */
static void full_disk_is_looked_at_again(void **state)
{
    (void)state;
    begin();
    it.logs[0][1].lacks_space = it.logs[1][0].lacks_space = true;
    it.logs[0][0].trouble = LEAT_E_DAMAGED;
    it.disk_lacks = 1;
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nmail to 1\nmail to 1\nmail to the store\n"
                "look at the disk\nmail to 1\nanswer\n");
    read_answer();
    static const char full[] = "the disk of its node is full: appends that need another segment "
                               "are refused. Make space there";
    char text[512];
    snprintf(text, sizeof text, "%s: trim or delete streams, or give them a shorter retention",
             full);
    assert_row(1, LEAT_E_DISK_FULL, text);
    assert_row(2, LEAT_E_DISK_FULL, text);
    assert_row(3, LEAT_OK, "");
    alone.node.options.cluster.node_address = "here:1";
    describe();
    snprintf(text, sizeof text, "%s, or take it to another node by `leat streamlet move`", full);
    assert_row(1, LEAT_E_DISK_FULL, text);
    it.disk_lacks = 0;
    describe();
    assert_row(0, LEAT_E_DAMAGED, "it is in trouble");
    assert_row(1, LEAT_OK, "");
    assert_row(2, LEAT_OK, "");
    it.logs[0][0].trouble = LEAT_OK;
    it.logs[0][0].lacks_space = true;
    describe();
    for (uint32_t i = 0; i < 4; i++)
        assert_row(i, LEAT_OK, "");
    end();
}

/* ---- where a log begins ---- */

static void front_is_waited_for(void **state)
{
    (void)state;
    begin();
    it.logs[0][0].front_unknown = true;
    it.logs[0][1].front_unknown = it.logs[0][1].reads_wait = true;
    it.logs[1][1].front_unknown = true;
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nlook for the front\n");
    it.logs[0][0].front_unknown = false;
    it.front->on_done(it.front);
    assert_said("mail to 0\n");
    deliver_all();
    assert_said("mail to 1\nlook for the front\nwatch 7/0/1\n");
    it.logs[0][1].front_unknown = false;
    it.front->on_done(it.front);
    assert_said("mail to 1\n");
    deliver_all();
    assert_said("look for the front\n");
    it.front->rc = LEAT_E_STARTING; /* for as long as a read waits: it is not known, and shown so */
    it.front->on_done(it.front);
    deliver_all();
    assert_said("mail to 1\nmail to 1\nanswer\n");
    read_answer();
    for (uint32_t i = 0; i < 4; i++)
        assert_own_row(i);
    assert_row(0, LEAT_OK, "");
    assert_row(1, LEAT_OK, "");
    assert_int_equal(shown.log[3].code, LEAT_E_STARTING);
    end();
}

static void front_of_a_log_that_goes_is_not_waited_for(void **state)
{
    (void)state;
    begin();
    it.logs[0][0].front_unknown = true;
    it.partition[0][0].state = LEAT_PARTITION_GOES;
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nmail to 1\nmail to 1\nanswer\n");
    end();
}

/* Goal: however many logs' fronts are not known, no further one is waited for after a second. */
static void fronts_are_waited_for_a_second_in_all(void **state)
{
    (void)state;
    begin();
    for (uint32_t i = 0; i < 4; i++)
        it.logs[i / 2][i % 2].front_unknown = true;
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nlook for the front\n");
    alone.now_us += 999999;
    it.front->on_done(it.front); /* and is not known yet: it is looked for again */
    deliver_all();
    assert_said("mail to 0\nlook for the front\n");
    alone.now_us++;
    it.front->on_done(it.front);
    deliver_all();
    assert_said("mail to 0\nmail to 1\nmail to 1\nanswer\n");
    read_answer();
    assert_int_equal(shown.log[3].code, LEAT_E_STARTING);
    /* Where one was waited for in vain, the others are not either. */
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nlook for the front\n");
    alone.now_us += 5;
    it.front->rc = LEAT_E_STARTING;
    it.front->on_done(it.front);
    deliver_all();
    assert_said("mail to 0\nmail to 1\nmail to 1\nanswer\n");
    end();
}

/* ---- of other nodes ---- */

/* What the owner of streamlet 1 answers: rows of these logs, which are otherwise zeros. */
struct row {
    uint32_t streamlet, log, offset;
    const char *text;
};
static void answers(unsigned ask, uint32_t id, const struct row *rows, uint32_t count, uint32_t cut)
{
    static uint8_t body[4096];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, 4);
    leat_msg_write_string(&writer, "orders", 6);
    leat_msg_write_u64(&writer, id);
    leat_msg_settings_write(&writer, &alone.desc->settings);
    leat_msg_write_array(&writer, count);
    for (uint32_t i = 0; i < count; i++) {
        struct leat_msg_log_info row = {
            .at = {.streamlet = rows[i].streamlet, .log = rows[i].log, .owner = NODE_B},
            .acked_offset = rows[i].offset,
            .copies = 3, /* what comes behind the text is no end of it */
            .text = {rows[i].text, (uint32_t)strlen(rows[i].text)}};
        leat_msg_log_info_write(&writer, &row);
    }
    assert_false(writer.overflow);
    struct leat_frame frame = {.control = body, .control_bytes = (uint32_t)writer.used - cut};
    it.asks[ask]->on_done(it.asks[ask], LEAT_OK, &frame, "");
}

static void call_both(void)
{
    it.ask_count = 0;
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nmail to 1\nmail to 1\nask 200 [orders] 1\n");
}

static void owners_say_what_is_theirs(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {1, 0, 71, ""}, {1, 1, 72, "it is ill"}, {0, 1, 73, "not its own"}};
    begin();
    of_other(NODE_B);
    call_both();
    answers(0, ALONE_STREAM, rows, 3, 0);
    assert_said("answer\n");
    read_answer();
    assert_own_row(0);
    assert_own_row(1);
    assert_row(1, LEAT_OK, "");
    assert_int_equal(shown.log[2].acked_offset, 71);
    assert_row(2, LEAT_OK, "");
    assert_int_equal(shown.log[3].acked_offset, 72);
    assert_row(3, LEAT_OK, "it is ill");
    assert_int_equal(shown.nodes, 2);
    assert_int_equal(shown.incarnation[1], NODE_B);
    assert_string_equal(shown.name[1], "b");
    /* A longer text is cut. */
    char text[300];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    call_both();
    answers(0, ALONE_STREAM, (struct row[]){{1, 0, 5, text}, {1, 1, 6, text + 43}}, 2, 0);
    said_enough();
    read_answer();
    assert_int_equal(strlen(shown.text[2]), 255);
    assert_int_equal(strlen(shown.text[3]), 255);
    assert_memory_equal(shown.text[2], text, 255);
    call_both();
    answers(0, ALONE_STREAM, (struct row[]){{1, 0, 5, text + 45}}, 1, 0);
    said_enough();
    read_answer();
    assert_int_equal(strlen(shown.text[2]), 254);
    call_both();
    answers(0, ALONE_STREAM,
            (struct row[]){{1, 0, 5, "longer"}, {1, 0, 6, "short"}, {1, 1, 7, "x"}}, 3, 0);
    said_enough();
    read_answer();
    assert_row(2, LEAT_OK, "short");
    assert_row(3, LEAT_OK, "x");
    call_both();
    answers(0, ALONE_STREAM, (struct row[]){{1, 0, 5, text + 45}}, 1, 0);
    said_enough();
    read_answer();
    assert_int_equal(shown.log[3].code, LEAT_E_UNKNOWN_LOG); /* of that it said nothing */
    assert_int_equal(shown.log[3].at.owner, NODE_B);
    assert_int_equal(shown.log[3].at.lane, (7 + 3) % 7);
    end();
}

static void answer_that_makes_no_sense_is_not_taken(void **state)
{
    (void)state;
    static const struct row outside[] = {
        {1, 2, 1, ""}, {0, 2, 1, ""}, {2, 0, 1, ""}, {UINT32_MAX, 1, 1, ""}};
    begin();
    of_other(NODE_B);
    for (unsigned i = 0; i < 7; i++) {
        call_both();
        if (i < 4)
            answers(0, ALONE_STREAM, &outside[i], 1, 0);
        else if (i == 4)
            answers(0, ALONE_STREAM + 1, NULL, 0, 0); /* another stream of that name */
        else if (i == 5)
            answers(0, ALONE_STREAM, (struct row[]){{1, 0, 71, "long enough"}}, 1, 25);
        else
            answers(0, ALONE_STREAM, NULL, 0, 1);
        assert_said("answer\n");
        read_answer();
        assert_row(0, LEAT_OK, "");
        assert_row(2, LEAT_E_AGAIN, "its state is not known: its answer can't be read");
        assert_row(3, LEAT_E_AGAIN, "its state is not known: its answer can't be read");
    }
    end();
}

static void owner_that_does_not_answer_is_named(void **state)
{
    (void)state;
    begin();
    of_other(NODE_B);
    call_both();
    it.asks[0]->on_done(it.asks[0], LEAT_E_TIMEOUT, NULL, "it is late");
    assert_said("answer\n");
    read_answer();
    assert_own_row(1);
    assert_row(1, LEAT_OK, "");
    assert_row(2, LEAT_E_AGAIN, "its state is not known: it is late");
    assert_row(3, LEAT_E_AGAIN, "its state is not known: it is late");
    it.ask_refused = 1;
    it.ask_count = 0;
    describe();
    assert_row(2, LEAT_E_AGAIN, "its state is not known: it can't be asked");
    assert_int_equal(shown.nodes, 2);
    it.rows[2].info.incarnation = 0; /* it has not come up: nobody was asked for it */
    it.ask_count = 0;
    describe();
    assert_int_equal(shown.nodes, 2);
    alone.desc->streamlets[1].owner = 999; /* no node that is known */
    it.ask_count = 0;
    describe();
    assert_int_equal(shown.nodes, 1);
    assert_row(2, LEAT_E_AGAIN, "its state is not known: it can't be asked");
    assert_int_equal(shown.log[2].at.lane, (7 + 2) % 2);
    end();
}

/* Goal: another node that asks is told of this node's own logs, and nobody else is asked. */
static void other_node_is_told_of_own_logs(void **state)
{
    (void)state;
    begin();
    of_other(NODE_B);
    calls.by_link = true;
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nmail to 1\nmail to 1\nanswer\n");
    read_answer();
    assert_int_equal(shown.fields, 4);
    assert_int_equal(shown.rows, 2);
    assert_own_row(0);
    assert_own_row(1);
    end();
}

/* Goal: it does not matter which streamlets are whose, or how many nodes have some. */
static void all_owners_are_asked_at_a_time(void **state)
{
    (void)state;
    begin();
    of_other(NODE_B);
    alone.desc->streamlets[0].owner = NODE_C;
    memset(it.partition, 0, sizeof it.partition);
    call_describe();
    deliver_all();
    assert_said("find orders\nmail to 0\nmail to 1\nmail to 1\nask 300 [orders] 1\n"
                "ask 200 [orders] 1\n");
    answers(1, ALONE_STREAM, (struct row[]){{1, 0, 5, "of b"}}, 1, 0);
    assert_said("");
    answers(0, ALONE_STREAM, (struct row[]){{0, 1, 6, "of c"}}, 1, 0);
    assert_said("answer\n");
    read_answer();
    assert_row(1, LEAT_OK, "of c");
    assert_row(2, LEAT_OK, "of b");
    assert_int_equal(shown.nodes, 3);
    assert_int_equal(shown.incarnation[1], NODE_C);
    assert_int_equal(shown.incarnation[2], NODE_B);
    end();
}

/* ---- large streams ---- */

static void large_stream(uint32_t streamlets)
{
    struct leat_stream_desc *desc =
        calloc(1, sizeof *desc + streamlets * sizeof desc->streamlets[0]);
    assert_non_null(desc);
    memcpy(desc, alone.desc, sizeof *desc);
    free(alone.desc);
    alone.desc = alone.stream.desc = desc;
    desc->streamlet_count = streamlets;
    for (uint32_t s = 0; s < streamlets; s++) {
        desc->streamlets[s].owner = 1000 + s % (streamlets / 2); /* two streamlets each */
        desc->streamlets[s].epoch.v = 5;
    }
}

static void streamlet_without_an_owner_is_asked_for(void **state)
{
    (void)state;
    begin();
    of_other(0);
    it.ask_refused = 1;
    describe();
    assert_int_equal(it.ask_count, 1);
    assert_row(2, LEAT_E_AGAIN, "its state is not known: it can't be asked");
    end();
}

/* Goal: each other owner is asked once, all at a time, and no more of them than a cluster has nodes. */
static void each_owner_is_asked_once(void **state)
{
    (void)state;
    begin();
    large_stream(6);
    call_describe();
    deliver_all();
    said_one("find orders\n");
    assert_said("mail to 0\nmail to 1\nmail to 1\nask 1000 [orders] 1\nask 1001 [orders] 1\n"
                "ask 1002 [orders] 1\n");
    for (unsigned i = 0; i < 3; i++)
        it.asks[i]->on_done(it.asks[i], LEAT_E_TIMEOUT, NULL, "late");
    it.ask_count = 0;
    large_stream(2 * LEAT_NODES_MAX + 2);
    it.ask_refused = 2;
    call_describe();
    deliver_all();
    assert_int_equal(it.ask_count, LEAT_NODES_MAX);
    said_enough();
    for (unsigned i = 0; i < LEAT_NODES_MAX; i++) {
        assert_said("");
        if (i != 1) it.asks[i]->on_done(it.asks[i], LEAT_E_TIMEOUT, NULL, "late");
    }
    assert_said("answer\n");
    read_answer();
    assert_int_equal(shown.rows, 2 * (2 * LEAT_NODES_MAX + 2));
    assert_row(0, LEAT_E_AGAIN, "its state is not known: late");
    end();
}

/* ---- refusals ---- */

static void describe_is_refused(void **state)
{
    (void)state;
    uint8_t body[8];
    struct leat_msg_writer writer;
    begin();
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, 1);
    leat_msg_write_u64(&writer, 5);
    alone_call(leat_call_stream_describe, &writer);
    assert_said("refuse INVALID: the control body of stream describe is not [name]\n");
    calls.not_kept = true;
    call_describe();
    assert_said("refuse TOO_LARGE: too long\n");
    calls.not_kept = false;
    calls.none = true;
    call_describe();
    assert_said("");
    calls.none = false;
    it.seek = LEAT_E_UNKNOWN_STREAM;
    call_describe();
    assert_said("find orders\nrefuse UNKNOWN_STREAM: not found\n");
    it.seek = LEAT_E_AGAIN;
    call_describe();
    assert_said("find orders\n");
    it.seek = LEAT_OK;
    calls.seek->on_again(calls.seek);
    deliver_all();
    assert_said("find orders\nmail to 0\nmail to 1\nmail to 1\nanswer\n");
    for (unsigned i = 1; i <= 2; i++) {
        leat_mem_fail_at(i);
        call_describe();
        leat_mem_fail_at(0);
        assert_said("find orders\nrefuse AGAIN\n");
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_log_is_asked_on_its_core),
        cmocka_unit_test(first_log_may_be_on_any_core),
        cmocka_unit_test(copies_are_as_replication_has_them),
        cmocka_unit_test(trouble_is_told),
        cmocka_unit_test(full_disk_is_looked_at_again),
        cmocka_unit_test(front_is_waited_for),
        cmocka_unit_test(front_of_a_log_that_goes_is_not_waited_for),
        cmocka_unit_test(fronts_are_waited_for_a_second_in_all),
        cmocka_unit_test(owners_say_what_is_theirs),
        cmocka_unit_test(answer_that_makes_no_sense_is_not_taken),
        cmocka_unit_test(owner_that_does_not_answer_is_named),
        cmocka_unit_test(other_node_is_told_of_own_logs),
        cmocka_unit_test(all_owners_are_asked_at_a_time),
        cmocka_unit_test(streamlet_without_an_owner_is_asked_for),
        cmocka_unit_test(each_owner_is_asked_once),
        cmocka_unit_test(describe_is_refused),
    };
    return cmocka_run_group_tests_name("broker describe", tests, NULL, NULL);
}
