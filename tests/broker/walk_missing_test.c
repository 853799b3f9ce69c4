/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that could not be made at once, by walk.c and news.c alone: in which streams they are sought, where the search
 * goes on, and that nothing is left of a stream that has them all or goes. */
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "tests/broker/walk_rig.h"

#define MADE "core 0: make 7/0/0, epoch 5\ncore 0: make 7/1/0, epoch 5\n"

/* The stream is on core 0, and its logs are missing there. */
static struct leat_core *lacks_logs(void)
{
    begin();
    is_there();
    struct leat_core *core = &alone.cores[0];
    it.there[0][0] = it.there[0][1] = false;
    it.streams[0].logs_missing = core->data->logs_missing = true;
    return core;
}

/* Goal: streams of all buckets are looked at, the last bucket's, too. */
static void missing_logs_are_sought_in_all_buckets(void **state)
{
    (void)state;
    for (unsigned comes_up = 0; comes_up < 2; comes_up++) {
        struct leat_core *core = lacks_logs();
        it.by_id[0][0] = NULL;
        it.by_id[0][core->data->stream_mask] = &it.streams[0];
        if (comes_up)
            leat_walk_on_adopted(core);
        else
            leat_walk_make_missing(core);
        assert_said(MADE);
        assert_false(core->missing->under_way);
        end();
    }
}

/* Goal: a search that is cut off amid a stream goes on with this stream, and not with the first of its bucket. */
static void search_goes_on_with_the_stream_where_it_was_cut_off(void **state)
{
    (void)state;
    static struct leat_stream before;
    struct leat_core *core = lacks_logs();
    before.by_id_next = &it.streams[0];
    it.by_id[0][0] = &before;
    core->data->news->left = 3; /* for the walk, the stream before, and one log */
    leat_walk_make_missing(core);
    assert_said("core 0: make 7/0/0, epoch 5\nmail to 0\n");
    leat_news_turn_end(core);
    alone_deliver();
    assert_said("core 0: make 7/1/0, epoch 5\n");
    assert_false(core->missing->under_way);
    it.by_id[0][0] = &it.streams[0];
    end();
}

/* Goal: a stream that goes, and lacks no log, asks for no other look. */
static void stream_that_lacks_nothing_asks_for_no_look(void **state)
{
    (void)state;
    struct leat_core *core = lacks_logs();
    it.streams[0].logs_missing = it.streams[0].published = false;
    leat_walk_make_missing(core);
    assert_said("");
    assert_false(core->data->logs_missing);
    it.streams[0].logs_missing = it.streams[0].published = true;
    leat_walk_make_missing(core); /* no look was asked for */
    assert_said("");
    end();
}

/* Goal: a stream whose missing logs are made, as it changes or as its core comes up, lacks none any more. */
static void stream_whose_logs_are_made_lacks_none(void **state)
{
    (void)state;
    for (unsigned comes_up = 0; comes_up < 2; comes_up++) {
        struct leat_core *core = lacks_logs();
        if (comes_up)
            leat_walk_on_adopted(core);
        else
            leat_node_on_stream(&alone.node, alone.desc);
        carried();
        said_enough();
        assert_true(it.there[0][0] && it.there[0][1]);
        assert_false(it.streams[0].logs_missing);
        end();
    }
}

/* Goal: each core pays for a stream, the second like the first: nothing is left for logs in this turn. */
static void each_core_pays_for_the_stream(void **state)
{
    (void)state;
    begin();
    alone.cores[1].data->news->left = LEAT_NEWS_STREAM_COST;
    leat_node_on_stream(&alone.node, alone.desc);
    alone_deliver();
    said_enough();
    alone_deliver();
    assert_said("core 1: put\nmail to 1\n");
    carried();
    said_enough();
    end();
}

/* Goal: a stream that changes gives back what was known of its logs before, and one that goes what was known of its
 * places. */
static void what_was_known_of_a_stream_goes(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 2; i++) {
        leat_node_on_stream(&alone.node, alone.desc);
        carried();
        assert_int_equal(it.begun_refs, ALONE_CORES); /* each core's */
    }
    assert_int_equal(it.forgotten, 0);
    leat_node_on_stream_deleted(&alone.node, ALONE_STREAM);
    carried();
    assert_int_equal(it.forgotten, ALONE_CORES);
    said_enough();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_logs_are_sought_in_all_buckets),
        cmocka_unit_test(search_goes_on_with_the_stream_where_it_was_cut_off),
        cmocka_unit_test(stream_that_lacks_nothing_asks_for_no_look),
        cmocka_unit_test(stream_whose_logs_are_made_lacks_none),
        cmocka_unit_test(each_core_pays_for_the_stream),
        cmocka_unit_test(what_was_known_of_a_stream_goes),
    };
    return cmocka_run_group_tests_name("broker walk_missing", tests, NULL, NULL);
}
