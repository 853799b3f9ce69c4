/* SPDX-License-Identifier: Apache-2.0 */
/* Who has streamlets handed over: clients, by their calls, and a drained node by itself. move.c alone. */
#include "broker/data/core_data.h"
#include "broker/data/seek.h"
#include "tests/broker/move_rig.h"

/* ---- clients' calls ---- */

static void call(const char *stream, uint32_t streamlet, const char *node)
{
    uint8_t bytes[512];
    struct leat_msg_writer writer;
    struct leat_msg_streamlet_move move = {.stream = {stream, (uint32_t)strlen(stream)},
                                           .streamlet = streamlet,
                                           .node = {node, (uint32_t)strlen(node)}};
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_streamlet_move_write(&writer, &move);
    struct leat_peer peer = {.core = &alone.cores[1]};
    struct leat_frame frame = {.control = bytes, .control_bytes = (uint32_t)writer.used};
    leat_call_streamlet_move(&peer, &frame);
}

static void call_moves_a_streamlet(void **state)
{
    (void)state;
    begin();
    call("orders", 1, "n2");
    assert_said("find \"orders\"\nallowed for n2?\nmail to 0\n");
    alone_deliver_all();
    target_answers(LEAT_OK, 1);
    alone_deliver_all();
    stopped(0), stopped(1);
    alone_deliver_all();
    said_enough();
    coordinators_say(LEAT_OK, 12);
    assert_said("node log info: stream 7, streamlet 1 goes to node n2, epoch 12\n"
                "timer stops\nmail to 1\n");
    alone_deliver();
    assert_said("answer 90\n");
    end();
}

static void call_is_refused_as_the_move_is(void **state)
{
    (void)state;
    begin();
    it.absent[0] = true;
    call("orders", 1, "n2");
    alone_deliver_all();
    assert_said("find \"orders\"\nallowed for n2?\nmail to 0\nmail to 0\nmail to 0\nmail to 1\n"
                "mail to 0\nmail to 0\ntimer stops\nmail to 1\n"
                "refuse AGAIN: log 0 of the streamlet is being made or goes already: try again\n");
    end();
}

static void call_for_this_node_itself_is_done(void **state)
{
    (void)state;
    begin();
    call("orders", 1, "n1");
    assert_said("find \"orders\"\nanswer 90\n");
    end();
}

static void call_is_checked_before_anything_stops(void **state)
{
    (void)state;
    static const char invalid[] =
        "refuse INVALID: the control body of streamlet move is not [stream name, streamlet, node "
        "name]\n";
    char longest[LEAT_NODE_NAME_BYTES_MAX + 2];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    begin();
    call("orders", 1, "");
    assert_said(invalid);
    call("orders", 1, longest);
    assert_said(invalid);
    struct leat_peer peer = {.core = &alone.cores[1]};
    struct leat_frame frame = {.control = (const uint8_t *)"\x91\xc3", .control_bytes = 2};
    leat_call_streamlet_move(&peer, &frame);
    assert_said(invalid);
    longest[LEAT_NODE_NAME_BYTES_MAX] = '\0';
    call("orders", 1, longest);
    char expected[512];
    snprintf(expected, sizeof expected,
             "find \"orders\"\nrefuse NOT_FOUND: node \"%.64s\" can't take streamlets: it is not "
             "known\n",
             longest);
    assert_said(expected);
    call("orders", ALONE_STREAMLETS, "n2");
    assert_said("find \"orders\"\nrefuse UNKNOWN_LOG: stream \"orders\" has no streamlet 2\n");
    frame.control = (const uint8_t *)"\x93\xa6orders\x01\xa2n1\xc0";
    for (frame.control_bytes = 12; frame.control_bytes <= 13; frame.control_bytes++)
        leat_call_streamlet_move(&peer, &frame); /* and one with a byte too many */
    assert_said_first("find \"orders\"\nanswer 90\nrefuse INVALID");
    alone.desc->streamlets[1].owner = TARGET;
    call("orders", 1, "n2");
    assert_said("find \"orders\"\nforward to 200: orders, 1, n2\n");
    alone.desc->streamlets[1].owner = ALONE_SELF;
    it.target.info.draining = true;
    call("orders", 1, "n2");
    assert_said("find \"orders\"\nrefuse NOT_FOUND: node \"n2\" can't take streamlets: it is being "
                "drained\n");
    it.target.info.draining = false;
    it.target.info.state = LEAT_NODE_DOWN;
    call("orders", 1, "n2");
    assert_said("find \"orders\"\nrefuse NOT_FOUND: node \"n2\" can't take streamlets: it is not "
                "up\n");
    it.target.info.state = LEAT_NODE_UP;
    it.allowed = LEAT_E_TOO_MANY;
    call("orders", 1, "n2");
    assert_said("find \"orders\"\nallowed for n2?\nrefuse TOO_MANY: it is full\n");
    it.no_call = true;
    call("orders", 1, "n2");
    it.no_call = false, it.not_kept = true;
    call("orders", 1, "n2");
    assert_said("");
    end();
}

/* Goal: a call whose stream is looked for first goes on by itself. */
static void call_waits_for_its_stream(void **state)
{
    (void)state;
    begin();
    alone.no_stream = true;
    call("orders", 1, "n1");
    assert_said("find \"orders\"\n");
    alone.no_stream = false;
    it.seek->on_again(it.seek);
    assert_said("find \"orders\"\nanswer 90\n");
    end();
}

/* ---- a drained node ---- */

static void drains(struct leat_stream **by_id)
{
    begin();
    alone.cores[0].members.links = (void *)&it;
    alone.cores[0].data->streams_by_id = by_id;
    by_id[0] = NULL;
    by_id[1] = &alone.stream;
    alone.cores[0].data->stream_mask = 1;
    alone.stream.published = true;
    alone.desc->streamlets[0].owner = TARGET;
    it.self.info.draining = true;
}

/* Goal: a drained node gives its streamlets, the first of its table first, to the node that owns the fewest, of equals
 * to the node with the lowest incarnation. What the table of nodes says of their streamlets is old, and does not
 * count. */
static void drained_node_gives_its_streamlets_away(void **state)
{
    (void)state;
    enum { MORE = TARGET + 1, LESS, DOWN, DRAINED, OTHERS = 6 };
    static const uint64_t owners[OTHERS] = {TARGET, TARGET, MORE, MORE, LESS, ALONE_SELF};
    struct leat_stream *by_id[2], other = {.published = true};
    static struct leat_member more, less, down, drained;
    drains(by_id);
    struct leat_core *core = &alone.cores[0];
    other.desc = calloc(1, sizeof *other.desc + OTHERS * sizeof other.desc->streamlets[0]);
    assert_non_null(other.desc);
    other.desc->id = ALONE_STREAM + 1;
    other.desc->streamlet_count = OTHERS;
    for (uint32_t s = 0; s < OTHERS; s++)
        other.desc->streamlets[s].owner = owners[s];
    alone.stream.by_id_next = &other;
    more = less = down = drained = it.target;
    snprintf(more.info.name, sizeof more.info.name, "more");
    snprintf(less.info.name, sizeof less.info.name, "less");
    more.info.incarnation = MORE;
    less.info.incarnation = LESS;
    down.info.incarnation = DOWN;
    drained.info.incarnation = DRAINED;
    more.info.streamlets = 0;
    less.info.streamlets = 5;
    down.info.state = LEAT_NODE_DOWN;
    drained.info.draining = true;
    core->members.rows[core->members.count++] = &down;
    core->members.rows[core->members.count++] = &drained;
    core->members.rows[core->members.count++] = &less;
    core->members.rows[core->members.count++] = &more;
    leat_movers_tick(core);
    assert_said("mail to 0\n");
    struct leat_mover *mover = core->movers->drain;
    assert_non_null(mover);
    assert_string_equal(mover->target, "less");
    assert_int_equal(mover->stream, ALONE_STREAM);
    assert_int_equal(mover->streamlet, 1);
    leat_movers_tick(core); /* one at a time */
    assert_said("");
    alone_deliver_all();
    target_answers(LEAT_OK, 1);
    alone_deliver_all();
    stopped(0), stopped(1);
    alone_deliver_all();
    said_enough();
    alone.desc->streamlets[0].owner = ALONE_SELF;
    alone.desc->streamlets[1].owner = LESS;
    other.desc->streamlets[3].owner = other.desc->streamlets[4].owner = ALONE_SELF;
    coordinators_say(LEAT_OK, 12);
    assert_said("node log info: stream 7, streamlet 1 goes to node less, epoch 12\n"
                "timer stops\nmail to 0\n");
    assert_non_null(core->movers->drain);
    assert_int_equal(core->movers->drain->streamlet, 0);
    assert_int_equal(core->movers->drain->stream, ALONE_STREAM);
    assert_string_equal(core->movers->drain->target, "more"); /* the fewest now, as "less" */
    assert_int_equal(core->movers->drain_ticks, 0);
    alone.mail_count = 0;
    leat_movers_fini(core);
    assert_null(core->movers->drain);
    core->movers->count = 0;
    alone.stream.by_id_next = NULL;
    free(other.desc);
    end();
}

/* Goal: a drained node pauses after a streamlet that could not move; the node log names only a refusal that is not to
 * be expected. */
static void drained_node_pauses_after_a_refusal(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct leat_stream *by_id[2];
        drains(by_id);
        struct leat_core *core = &alone.cores[0];
        by_id[i] = &alone.stream; /* wherever it is in the table */
        by_id[1 - i] = NULL;
        leat_movers_tick(core);
        if (i == 0) it.absent[0] = true;
        if (i == 1) it.logs[1].info.state = LEAT_LOG_DAMAGED;
        alone_deliver_all();
        if (i == 0)
            assert_said("mail to 0\nmail to 0\nmail to 1\nmail to 0\nmail to 0\ntimer stops\n");
        else
            assert_said("mail to 0\nmail to 0\nmail to 1\nmail to 0\nmail to 0\ntimer stops\n"
                        "node log warn: drained, but stream 7, streamlet 1 stays for now\n");
        assert_null(core->movers->drain);
        for (unsigned tick = 0; tick < 5; tick++)
            leat_movers_tick(core);
        assert_said("");
        leat_movers_tick(core);
        assert_said("mail to 0\n");
        alone_deliver_all();
        end();
    }
}

static void nothing_is_drained_without_cause(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 11; i++) {
        struct leat_stream *by_id[2];
        drains(by_id);
        struct leat_core *core = &alone.cores[i == 0 ? 1 : 0];
        core->members.links = (void *)&it;
        core->data->streams_by_id = by_id;
        core->data->stream_mask = 1;
        if (i == 1) core->members.links = NULL;
        if (i == 2) core->stopping = true;
        if (i == 3) it.self.info.draining = false;
        if (i == 4) it.self.info.incarnation++;
        if (i == 5) it.target.info.draining = true;
        if (i == 6) alone.stream.published = false;
        if (i == 7) alone.desc->streamlets[1].owner = TARGET;
        if (i == 8) core->data->stream_mask = 0; /* there is no such stream */
        if (i == 9) leat_mem_fail_at(1);
        if (i == 10) alone.desc->streamlet_count = 1; /* the stream has no second one */
        leat_movers_tick(core);
        leat_mem_fail_at(0);
        assert_null(core->movers->drain);
        assert_said("");
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_moves_a_streamlet),
        cmocka_unit_test(call_is_refused_as_the_move_is),
        cmocka_unit_test(call_for_this_node_itself_is_done),
        cmocka_unit_test(call_is_checked_before_anything_stops),
        cmocka_unit_test(call_waits_for_its_stream),
        cmocka_unit_test(drained_node_gives_its_streamlets_away),
        cmocka_unit_test(drained_node_pauses_after_a_refusal),
        cmocka_unit_test(nothing_is_drained_without_cause),
    };
    return cmocka_run_group_tests_name("broker move_call", tests, NULL, NULL);
}
