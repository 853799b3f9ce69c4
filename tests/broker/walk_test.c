/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that come, change and go, by walk.c and news.c alone: what each core does about them, in which round, in how
 * many pieces, and when they may be told of. */
#include "broker/admin/core_admin.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/data/seek.h"
#include "broker/data/stream.h"
#include "tests/broker/walk_rig.h"

/* ---- it comes ---- */

static void stream_comes_over_all_cores_twice(void **state)
{
    (void)state;
    begin();
    leat_node_on_stream(&alone.node, alone.desc);
    assert_said("mail to 0\n");
    assert_int_equal(atomic_load(&alone.node.highest_stream), ALONE_STREAM);
    alone_deliver();
    assert_said("core 0: put\n"
                "core 0: make 7/0/0, epoch 5\n"
                "core 0: make 7/1/0, epoch 5\n"
                "mail to 1\n");
    assert_false(it.streams[0].published);
    alone_deliver();
    assert_said("core 1: put\n"
                "core 1: make 7/0/1, epoch 5\n"
                "core 1: make 7/1/1, epoch 5\n"
                "mail to 0\n");
    alone_deliver();
    assert_said("core 0: publish\n"
                "mail to 1\n");
    assert_false(it.streams[1].published);
    assert_int_equal(it.begun_refs, 3); /* the walk's, and each core's */
    alone_deliver();
    assert_said("core 1: publish\n");
    assert_int_equal(it.begun_refs, 2);
    assert_false(alone.cores[0].data->logs_missing);
    end();
}

/* Goal: a log that was given up, and is this node's again, is asked for, or made by the tick where nobody has begun
 * it. */
static void log_that_is_ours_again_comes_back(void **state)
{
    (void)state;
    enum { BEGUN, NOT_BEGUN, OTHERS, NO_STREAM, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        is_there();
        it.begun_told = i != NOT_BEGUN;
        it.streams[1].begun = (struct leat_begun *)(void *)&it.row;
        alone.desc->streamlets[1].owner = i == OTHERS ? ALONE_SELF + 1 : ALONE_SELF;
        if (i == NO_STREAM) alone.cores[1].data->streams_by_id[0] = NULL;
        said_enough();
        leat_walk_log_released(&alone.cores[1], (struct leat_log_ref){ALONE_STREAM, 1, 1});
        assert_said(i == BEGUN ? "core 1: ask for 7/1/1, epoch 9\n" : "");
        assert_int_equal(alone.cores[1].data->logs_missing, i == NOT_BEGUN);
        assert_int_equal(it.streams[1].logs_missing, i == NOT_BEGUN);
        if (i == NO_STREAM) alone.cores[1].data->streams_by_id[0] = &it.streams[1];
        end();
    }
}

static unsigned ready;
static void on_ready(struct leat_stream_wait *wait)
{
    assert_ptr_equal(wait->owner, &it);
    ready++;
}

/* Goal: a caller that waits for a stream is told when every core has its logs of the stream. */
static void who_waits_for_a_stream_is_told(void **state)
{
    (void)state;
    begin();
    struct leat_stream_wait wait = {.id = ALONE_STREAM, .on_ready = on_ready, .owner = &it},
                            other = {.id = ALONE_STREAM + 1, .on_ready = on_ready, .owner = &it};
    leat_list_push_back(&alone.cores[1].admin->stream_awaits, &other.link);
    leat_list_push_back(&alone.cores[1].admin->stream_awaits, &wait.link);
    ready = 0;
    leat_node_on_stream(&alone.node, alone.desc);
    for (unsigned i = 0; i < 3; i++)
        alone_deliver();
    assert_int_equal(ready, 0);
    alone_deliver();
    assert_int_equal(ready, 1);
    assert_ptr_equal(alone.cores[1].admin->stream_awaits.next, &other.link);
    assert_ptr_equal(alone.cores[1].admin->stream_awaits.prev, &other.link);
    said_enough();
    end();
}

/* Goal: a core that comes up makes its own logs first, and then what has come meanwhile. */
static void core_that_comes_up_makes_them_later(void **state)
{
    (void)state;
    begin();
    alone.cores[0].adopted = false;
    leat_node_on_stream(&alone.node, alone.desc);
    alone_deliver();
    assert_said("mail to 0\ncore 0: put\nmail to 1\n");
    leat_walk_on_adopted(&alone.cores[0]); /* it is on its way */
    assert_said("");
    assert_true(it.streams[0].logs_missing && alone.cores[0].data->logs_missing);
    carried();
    said_enough();
    it.streams[0].logs_missing = alone.cores[0].data->logs_missing = false;
    leat_walk_on_adopted(&alone.cores[0]);
    assert_true(alone.cores[0].adopted);
    assert_said("core 0: make 7/0/0, epoch 5\n"
                "core 0: make 7/1/0, epoch 5\n");
    assert_false(it.streams[0].logs_missing);
    end();
}

/* ---- what is made of each log ---- */

static void logs_that_have_begun_are_asked_for(void **state)
{
    (void)state;
    begin();
    it.begun_told = true;
    alone.desc->streamlets[0].owner = ALONE_SELF + 1; /* not this node's */
    leat_node_on_stream(&alone.node, alone.desc);
    carried();
    assert_said("mail to 0\n"
                "core 0: put\n"
                "core 0: ask for 7/1/0, epoch 9\n"
                "mail to 1\n"
                "core 1: put\n"
                "core 1: ask for 7/1/1, epoch 9\n"
                "mail to 0\n"
                "core 0: publish\n"
                "mail to 1\n"
                "core 1: publish\n");
    end();
}

static void core_that_stops_makes_none(void **state)
{
    (void)state;
    begin();
    alone.cores[0].stopping = true;
    it.streams[0].logs_missing = true; /* as it was */
    leat_node_on_stream(&alone.node, alone.desc);
    alone_deliver();
    assert_said("mail to 0\ncore 0: put\nmail to 1\n");
    assert_true(it.streams[0].logs_missing);
    carried();
    said_enough();
    leat_walk_on_adopted(&alone.cores[0]);
    assert_said("");
    assert_true(it.streams[0].logs_missing);
    end();
}

/* Goal: that logs are missing is told once, not with each change. */
static void stream_whose_logs_were_missing_is_not_told_of_again(void **state)
{
    (void)state;
    begin();
    it.create = LEAT_E_DISK;
    it.streams[0].logs_missing = true;
    leat_node_on_stream(&alone.node, alone.desc);
    alone_deliver();
    assert_said("mail to 0\ncore 0: put\ncore 0: make 7/0/0, epoch 5\ncore 0: make 7/1/0, epoch 5\n"
                "mail to 1\n");
    assert_true(it.streams[0].logs_missing);
    it.create = LEAT_OK;
    carried();
    said_enough();
    end();
}

/* Goal: a log that can't be made now is told of once, and made by a later tick. */
static void log_that_cant_be_made_is_made_later(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        if (i == 0) it.create = LEAT_E_DISK;
        if (i > 0) it.no_heap = true;
        if (i == 2)
            for (unsigned q = 0; q < ALONE_CORES; q++)
                it.streams[q].has_groups = true;
        leat_node_on_stream(&alone.node, alone.desc);
        alone_deliver();
        static const char *const expected[] = {
            "mail to 0\ncore 0: put\ncore 0: make 7/0/0, epoch 5\n"
            "node log error: stream \"orders\", streamlet 0, log 0 can't be made\n"
            "core 0: make 7/1/0, epoch 5\nmail to 1\n",
            ("mail to 0\ncore 0: put\n"
             "node log info: logs of stream \"orders\" wait for memory that segments give "
             "back\nmail "
             "to 1\n"),
            ("mail to 0\ncore 0: put\ncore 0: make 7/0/0, epoch 5\ncore 0: make 7/1/0, epoch 5\n"
             "mail to 1\n")};
        assert_said(expected[i]);
        assert_int_equal(it.streams[0].logs_missing, i < 2);
        assert_int_equal(alone.cores[0].data->logs_missing, i < 2);
        carried();
        said_enough();
        leat_walk_make_missing(&alone.cores[0]);
        if (i == 0) assert_said("core 0: make 7/0/0, epoch 5\ncore 0: make 7/1/0, epoch 5\n");
        if (i > 0) assert_said(""); /* told before */
        it.create = LEAT_OK, it.no_heap = false;
        leat_walk_make_missing(&alone.cores[0]);
        assert_said(i < 2 ? "core 0: make 7/0/0, epoch 5\ncore 0: make 7/1/0, epoch 5\n" : "");
        assert_false(it.streams[0].logs_missing || alone.cores[0].data->logs_missing);
        leat_walk_make_missing(&alone.cores[0]);
        assert_said("");
        end();
    }
}

/* Goal: missing logs are not made here where their stream still comes, as the stream's arrival makes them; a core that
 * stops makes no logs. */
static void missing_logs_are_made_where_they_may_be(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        is_there();
        struct leat_core *core = &alone.cores[0];
        it.there[0][0] = it.there[0][1] = false;
        it.streams[0].logs_missing = core->data->logs_missing = true;
        if (i == 4) it.streams[0].logs_missing = false; /* another stream's */
        if (i == 1) it.streams[0].published = false;
        if (i == 2) core->stopping = true;
        if (i == 3) core->missing->under_way = true;
        leat_walk_make_missing(core);
        assert_said(i == 0 ? "core 0: make 7/0/0, epoch 5\ncore 0: make 7/1/0, epoch 5\n" : "");
        assert_int_equal(core->data->logs_missing, i != 0 && i != 4);
        assert_int_equal(it.streams[0].logs_missing, i != 0 && i != 4);
        end();
    }
}

/* ---- it changes ---- */

/* Goal: logs that are there are told the settings, and what is known of the logs; logs that go are not told. */
static void stream_that_changes_is_told_to_its_logs(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begin();
        is_there();
        it.there[0][1] = it.there[1][0] = it.there[1][1] = false;
        alone.desc->streamlets[1].owner = ALONE_SELF + 1;
        it.begun_told = i == 1;
        if (i == 2) it.logs[0][0].state = LEAT_PARTITION_GOES;
        if (i == 3) it.logs[0][0].log = NULL;
        if (i == 4) it.logs[0][0].copies = NULL;
        leat_node_on_stream(&alone.node, alone.desc);
        alone_deliver();
        static const char *const expected[] = {
            "mail to 0\ncore 0: put\nsettings: 3 copies\nleast copies: 2\nmail to 1\n",
            ("mail to 0\ncore 0: put\nsettings: 3 copies\nleast copies: 2\nlook at 7/0/0 "
             "again\nmail to 1\n"),
            "mail to 0\ncore 0: put\nmail to 1\n", "mail to 0\ncore 0: put\nmail to 1\n",
            "mail to 0\ncore 0: put\nsettings: 3 copies\nmail to 1\n"};
        assert_said(expected[i]);
        it.begun_told = false;
        carried();
        said_enough();
        end();
    }
}

/* Goal: a log goes that has another owner now, or an earlier epoch. A log whose loss was accepted has a later epoch,
 * and stays. */
static void logs_of_other_owners_are_given_up(void **state)
{
    (void)state;
    enum { STAYS, OTHERS, EPOCH, LATER, STOPPING, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        is_there();
        it.there[0][1] = it.there[1][0] = it.there[1][1] = false;
        struct leat_stream_desc *next =
            calloc(1, sizeof *next + ALONE_STREAMLETS * sizeof next->streamlets[0]);
        assert_non_null(next);
        memcpy(next, alone.desc, sizeof *next + ALONE_STREAMLETS * sizeof next->streamlets[0]);
        next->streamlets[1].owner = ALONE_SELF + 1;
        if (i == OTHERS) next->streamlets[0].owner = ALONE_SELF + 1;
        if (i == EPOCH || i == LATER || i == STOPPING) next->streamlets[0].epoch.v = 6;
        if (i == LATER) it.logs[0][0].epoch.v = 7;
        if (i == STOPPING) alone.cores[0].stopping = true;
        leat_node_on_stream(&alone.node, next);
        said_enough();
        alone_deliver();
        bool goes = i == OTHERS || i == EPOCH;
        /* Once in one piece with the news, and again at its turn. */
        char expected[512];
        snprintf(expected, sizeof expected, "core 0: put\n%s%smail to 1\n",
                 goes ? "give up 7/0/0\ngive up 7/0/0\n" : "",
                 i == OTHERS || i == STOPPING ? "" : "settings: 3 copies\nleast copies: 2\n");
        assert_said(expected);
        carried();
        said_enough();
        free(next);
        end();
    }
}

/* Goal: a log of a streamlet that was not there before has no earlier owner to give it up. */
static void streamlets_that_are_new_are_made(void **state)
{
    (void)state;
    begin();
    is_there();
    it.there[0][1] = it.there[1][1] = false;
    struct leat_stream_desc *before = calloc(1, sizeof *before + sizeof before->streamlets[0]);
    assert_non_null(before);
    memcpy(before, alone.desc, sizeof *before + sizeof before->streamlets[0]);
    before->streamlet_count = 1;
    it.streams[0].desc = it.streams[1].desc = before;
    leat_node_on_stream(&alone.node, alone.desc);
    alone_deliver();
    assert_said("mail to 0\n"
                "core 0: put\n"
                "settings: 3 copies\n"
                "least copies: 2\n"
                "core 0: make 7/1/0, epoch 5\n"
                "mail to 1\n");
    carried();
    said_enough();
    free(before);
    end();
}

static void homes_of_groups_are_told(void **state)
{
    (void)state;
    begin();
    leat_list_push_back(&alone.cores[0].data->home_logs, &it.home.home);
    leat_node_on_stream(&alone.node, alone.desc);
    alone_deliver();
    assert_said("mail to 0\n"
                "core 0: put\n"
                "core 0: make 7/0/0, epoch 5\n"
                "core 0: make 7/1/0, epoch 5\n"
                "groups: stream 7 has changed\n"
                "mail to 1\n");
    carried();
    said_enough();
    leat_node_on_stream_deleted(&alone.node, ALONE_STREAM);
    alone_deliver();
    assert_said_first("mail to 0\ngroups: stream 7 is deleted\n");
    carried();
    said_enough();
    it.home.ref.stream = ALONE_STREAM; /* its own goes */
    leat_node_on_stream_deleted(&alone.node, ALONE_STREAM);
    alone_deliver();
    assert_said("mail to 0\nmail to 1\n");
    carried();
    said_enough();
    end();
}

/* ---- it goes ---- */

static void stream_goes_over_all_cores_twice(void **state)
{
    (void)state;
    begin();
    is_there();
    it.there[1][1] = false;
    alone.cores[0].data->replicate->backup = (void *)&it;
    leat_node_on_stream_deleted(&alone.node, ALONE_STREAM);
    assert_said("mail to 0\n");
    alone_deliver();
    assert_said("the backup: stream 7 is deleted\n"
                "wake 7/0/0\n"
                "delete 7/0/0\n"
                "wake 7/1/0\n"
                "delete 7/1/0\n"
                "mail to 1\n");
    assert_true(it.streams[0].deleted && !it.streams[0].published);
    assert_true(leat_partition_goes(&it.logs[0][0]));
    alone_deliver();
    assert_said("wake 7/0/1\n"
                "delete 7/0/1\n"
                "mail to 0\n");
    it.on_gone(it.gone_arg, (void *)&it);
    assert_said("destroy 7/0/1\n");
    alone_deliver();
    assert_said("core 0: remove\n"
                "mail to 1\n"); /* as its logs on this core go already */
    alone_deliver();
    assert_said("core 1: remove\n");
    assert_null(it.by_id[0][0]);
    assert_null(it.by_id[1][0]);
    end();
}

static void stream_that_is_not_here_goes(void **state)
{
    (void)state;
    begin();
    leat_node_on_stream_deleted(&alone.node, ALONE_STREAM);
    carried();
    assert_said("mail to 0\nmail to 1\nmail to 0\nmail to 1\n");
    end();
}

/* Goal: a log that is drained for a move goes too. A log that already goes for another reason is left alone. */
static void log_is_deleted_unless_it_goes_otherwise(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        enum leat_partition_state before = (enum leat_partition_state)(i / 4);
        bool moving = before == LEAT_PARTITION_DRAINS, given_up = i & 1, stopping = i & 2;
        bool drained = before == LEAT_PARTITION_DRAINED;
        begin();
        struct leat_partition *partition = &it.logs[0][0];
        partition->state = before;
        partition->moving = moving ? (void *)&it : NULL;
        partition->give_up = given_up ? (void *)&it : NULL;
        alone.cores[0].stopping = stopping;
        leat_partition_delete(&alone.cores[0], partition);
        bool goes =
            before == LEAT_PARTITION_SERVES || ((moving || drained) && !given_up && !stopping);
        assert_said(!goes    ? ""
                    : moving ? "its move is told\nwake 7/0/0\ndelete 7/0/0\n"
                             : "wake 7/0/0\ndelete 7/0/0\n");
        if (goes) {
            assert_int_equal(partition->state, LEAT_PARTITION_GOES);
            it.on_gone(it.gone_arg, (void *)&it);
            assert_said(stopping ? "destroy 7/0/0\ncore 0 has one log less to stop\n"
                                 : "destroy 7/0/0\n");
        }
        end();
    }
}

/* ---- in pieces ---- */

/* Goal: a turn carries a limited amount of news, and the rest follows; other news wait behind it. */
static void news_are_carried_in_pieces(void **state)
{
    (void)state;
    begin();
    alone.cores[0].data->news->left = LEAT_NEWS_STREAM_COST + 2; /* for the stream, and one log */
    leat_node_on_stream(&alone.node, alone.desc);
    leat_node_on_streams_given(&alone.node, 50);
    said_enough();
    alone_deliver();
    assert_said("core 0: put\ncore 0: make 7/0/0, epoch 5\nmail to 0\n"); /* it goes on by itself */
    alone_deliver();
    assert_said("");
    assert_int_equal(alone.cores[0].data->stream_seen, 0);
    leat_news_turn_end(&alone.cores[0]);
    assert_int_equal(alone.cores[0].data->news->left, LEAT_NEWS_WORK);
    alone_deliver();
    assert_said("core 0: make 7/1/0, epoch 5\nmail to 1\n");
    assert_int_equal(alone.cores[0].data->stream_seen, 50);
    carried();
    said_enough();
    end();
}

/* Goal: a stream counts, and so does each of the news. */
static void news_cost_what_they_are(void **state)
{
    (void)state;
    begin();
    alone.cores[0].data->news->left = LEAT_NEWS_STREAM_COST + 1;
    leat_node_on_stream(&alone.node, alone.desc);
    alone_deliver();
    assert_said("mail to 0\ncore 0: put\nmail to 0\n"); /* and nothing is left for a log */
    carried();
    said_enough();
    end();
}

static void core_that_stops_carries_them_at_once(void **state)
{
    (void)state;
    begin();
    is_there();
    alone.cores[0].data->news->left = 0;
    alone.cores[0].stopping = true;
    leat_node_on_stream_deleted(&alone.node, ALONE_STREAM);
    said_enough();
    alone_deliver();
    assert_said("wake 7/0/0\ndelete 7/0/0\nwake 7/1/0\ndelete 7/1/0\nmail to 1\n");
    carried();
    said_enough();
    end();
}

static void missing_logs_are_made_in_pieces(void **state)
{
    (void)state;
    begin();
    is_there();
    struct leat_core *core = &alone.cores[0];
    it.there[0][0] = it.there[0][1] = false;
    it.streams[0].logs_missing = core->data->logs_missing = true;
    core->data->news->left = 2;
    leat_walk_make_missing(core);
    assert_said("core 0: make 7/0/0, epoch 5\nmail to 0\n");
    assert_true(core->missing->under_way);
    leat_news_turn_end(core);
    alone_deliver();
    assert_said("core 0: make 7/1/0, epoch 5\n");
    assert_false(core->missing->under_way);
    assert_int_equal(core->missing->at, 0);
    assert_null(core->missing->stream);
    end();
}

/* Goal: a stream that comes when nothing of this turn's work is left is looked at in the next turn. */
static void missing_logs_behind_others_wait_for_their_turn(void **state)
{
    (void)state;
    static struct leat_stream before;
    begin();
    is_there();
    struct leat_core *core = &alone.cores[0];
    it.there[0][0] = it.there[0][1] = false;
    struct leat_stream **row = &it.by_id[0][it.by_id[0][1] == &it.streams[0]];
    assert_ptr_equal(*row, &it.streams[0]);
    before.by_id_next = &it.streams[0];
    *row = &before;
    it.streams[0].logs_missing = core->data->logs_missing = true;
    core->data->news->left = 2; /* the walk itself takes one, and the other stream takes one */
    leat_walk_make_missing(core);
    assert_said("mail to 0\n");
    assert_true(core->missing->under_way && it.streams[0].logs_missing);
    leat_news_turn_end(core);
    alone_deliver();
    assert_said("core 0: make 7/0/0, epoch 5\ncore 0: make 7/1/0, epoch 5\n");
    *row = &it.streams[0];
    end();
}

/* ---- ids that were given ---- */

static void highest_id_is_remembered(void **state)
{
    (void)state;
    begin();
    static const uint32_t told[] = {50, 40, 51}, highest[] = {50, 50, 51};
    for (unsigned i = 0; i < 3; i++) {
        leat_node_on_streams_given(&alone.node, told[i]);
        assert_int_equal(atomic_load(&alone.node.highest_stream), highest[i]);
        alone_deliver();
        assert_int_equal(alone.cores[0].data->stream_seen, highest[i]);
        assert_said("mail to 0\n");
    }
    leat_mem_fail_at(1);
    leat_node_on_streams_given(&alone.node, 60);
    leat_mem_fail_at(0);
    assert_said("");
    assert_int_equal(atomic_load(&alone.node.highest_stream), 60);
    end();
}

/* ---- catching up, and streams by name ---- */

static leat_err caught;
static void on_caught_up(struct leat_catch_up *catch_up, leat_err rc)
{
    assert_ptr_equal(catch_up->owner, &it);
    caught = rc;
    said("caught up");
}

/* Goal: behind the barrier it goes the way that news go, over all cores twice, and comes back. */
static void catching_up_goes_behind_the_news(void **state)
{
    (void)state;
    begin();
    struct leat_catch_up catch_up;
    memset(&catch_up, 0xa5, sizeof catch_up);
    catch_up.address = 44;
    catch_up.on_done = on_caught_up;
    catch_up.owner = &it;
    leat_catch_up(&alone.cores[1], &catch_up);
    alone_deliver();
    assert_said("mail to 0\nbarrier for 44, within 2000000 us\n");
    it.request->rc = LEAT_E_AGAIN;
    alone.cores[0].data->news->left = 0; /* core 0 has had its share in this turn */
    it.request->on_done(it.request);
    assert_said("mail to 0\n");
    leat_news_turn_end(&alone.cores[0]);
    carried();
    assert_said("mail to 1\nmail to 0\nmail to 1\nmail to 1\ncaught up\n");
    assert_int_equal(caught, LEAT_E_AGAIN);
    end();
}

static unsigned again;
static void on_again(struct leat_stream_seek *seek)
{
    assert_ptr_equal(seek->owner, &it);
    again++;
}

static void stream_is_sought_by_name(void **state)
{
    (void)state;
    struct leat_stream *stream;
    struct leat_error error;
    begin();
    is_there();
    struct leat_core *core = &alone.cores[1];
    struct leat_stream_seek seek = {.on_again = on_again, .owner = &it};
    assert_int_equal(leat_stream_seek(core, &seek, "orders", 6, &stream, &error), LEAT_OK);
    assert_ptr_equal(stream, &it.streams[1]);
    it.streams[1].published = false; /* it comes, or goes */
    again = 0;
    assert_int_equal(leat_stream_seek(core, &seek, "orders", 6, &stream, &error), LEAT_E_AGAIN);
    assert_int_equal(error.code, LEAT_OK);
    assert_ptr_equal(it.streams[1].waiters.next, &seek.wait.link);
    seek.wait.on_ready(&seek.wait);
    assert_int_equal(again, 1);
    leat_list_remove(&seek.wait.link);
    assert_int_equal(leat_stream_seek(core, &seek, "none", 4, &stream, &error),
                     LEAT_E_UNKNOWN_STREAM);
    assert_string_equal(error.text, "no stream is named \"none\""); /* alone, nobody is asked */
    assert_said("");
    static const leat_err codes[] = {LEAT_OK, LEAT_E_AGAIN, LEAT_E_TIMEOUT};
    static const char *const texts[] = {"no stream is named \"none\"",
                                        "no stream \"none\" is known here, and the coordinators "
                                        "can't be asked for it now: no leader",
                                        "no stream \"none\" is known here, and no leader among the "
                                        "coordinators says whether there is "
                                        "one: try again"};
    core->members.links = (void *)&it;
    for (unsigned i = 0; i < 3; i++) {
        seek = (struct leat_stream_seek){.on_again = on_again, .owner = &it};
        again = 0;
        assert_int_equal(leat_stream_seek(core, &seek, "none", 4, &stream, &error), LEAT_E_AGAIN);
        assert_int_equal(error.code, LEAT_OK);
        alone_deliver();
        it.request->rc = leat_error_set(&it.request->error, codes[i], "no leader");
        it.request->on_done(it.request);
        carried();
        assert_int_equal(again, 1);
        assert_int_equal(leat_stream_seek(core, &seek, "none", 4, &stream, &error),
                         i == 0 ? LEAT_E_UNKNOWN_STREAM : LEAT_E_TIMEOUT);
        assert_string_equal(error.text, texts[i]);
    }
    core->members.links = NULL;
    char name[130], text[200];
    memset(name, 'n', sizeof name);
    for (size_t bytes = 119; bytes <= 122; bytes++) { /* views, which may be longer than is shown */
        seek = (struct leat_stream_seek){.on_again = on_again, .owner = &it};
        assert_int_equal(leat_stream_seek(core, &seek, name, bytes, &stream, &error),
                         LEAT_E_UNKNOWN_STREAM);
        snprintf(text, sizeof text, "no stream is named \"%.*s\"", bytes < 120 ? (int)bytes : 120,
                 name);
        assert_string_equal(error.text, text);
    }
    said_enough();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_comes_over_all_cores_twice),
        cmocka_unit_test(log_that_is_ours_again_comes_back),
        cmocka_unit_test(who_waits_for_a_stream_is_told),
        cmocka_unit_test(core_that_comes_up_makes_them_later),
        cmocka_unit_test(logs_that_have_begun_are_asked_for),
        cmocka_unit_test(core_that_stops_makes_none),
        cmocka_unit_test(stream_whose_logs_were_missing_is_not_told_of_again),
        cmocka_unit_test(log_that_cant_be_made_is_made_later),
        cmocka_unit_test(missing_logs_are_made_where_they_may_be),
        cmocka_unit_test(stream_that_changes_is_told_to_its_logs),
        cmocka_unit_test(logs_of_other_owners_are_given_up),
        cmocka_unit_test(streamlets_that_are_new_are_made),
        cmocka_unit_test(homes_of_groups_are_told),
        cmocka_unit_test(stream_goes_over_all_cores_twice),
        cmocka_unit_test(stream_that_is_not_here_goes),
        cmocka_unit_test(log_is_deleted_unless_it_goes_otherwise),
        cmocka_unit_test(news_are_carried_in_pieces),
        cmocka_unit_test(news_cost_what_they_are),
        cmocka_unit_test(core_that_stops_carries_them_at_once),
        cmocka_unit_test(missing_logs_are_made_in_pieces),
        cmocka_unit_test(missing_logs_behind_others_wait_for_their_turn),
        cmocka_unit_test(highest_id_is_remembered),
        cmocka_unit_test(catching_up_goes_behind_the_news),
        cmocka_unit_test(stream_is_sought_by_name),
    };
    return cmocka_run_group_tests_name("broker walk", tests, NULL, NULL);
}
