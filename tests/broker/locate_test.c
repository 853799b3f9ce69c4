/* SPDX-License-Identifier: Apache-2.0 */
/* Where logs begin and end, by locate.c and confirm.c alone: which log is asked when, on whose turn, with whose buffer,
 * and what is told before the coordinators were asked. */
#include "tests/broker/locate_rig.h"

/* ---- step by step ---- */

static void places_are_asked_one_after_the_other(void **state)
{
    (void)state;
    for (uint32_t log = 0; log < 2; log++) {
        begin();
        struct locator *at = locates(0, 0, log, 2);
        assert_said("mail to 0\n"); /* never from within */
        alone_deliver();
        assert_said(log == 0 ? "mail to 0\n" : "mail to 1\n");
        alone_deliver();
        assert_said(log == 0 ? "mail to 0\n" : "mail to 1\n"); /* its turn */
        alone_deliver();
        assert_said(log == 0 ? "locate 3 0 5 in 7/1/0\nmail to 0\n"
                             : "locate 3 0 5 in 7/1/1\nmail to 0\n");
        alone_deliver();
        said_enough();
        alone_deliver_all();
        char expected[256];
        snprintf(expected, sizeof expected,
                 "mail to %u\nlocate 3 1 5 in 7/1/%u\nmail to 0\ndone 0\n", log, log);
        assert_said(expected);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(at->found[i].code, LEAT_OK);
            assert_int_equal(at->found[i].offset, 1000 + i);
            assert_int_equal(at->found[i].timestamp_ms, 2000 + i);
            assert_int_equal(at->found[i].position.segment, 17);
            assert_int_equal(at->epochs[i].v, 7);
            assert_int_equal(at->ranges[i].first.segment, 16);
            assert_int_equal(at->ranges[i].end.segment, 40);
        }
        end();
    }
}

static void places_that_are_not_here_are_refused_as_they_are(void **state)
{
    (void)state;
    begin();
    it.place = LEAT_E_NOT_OWNER;
    struct locator *at = locates(0, 0, 0, 2);
    said_enough();
    alone_deliver_all();
    assert_said("done 0\n");
    assert_int_equal(at->found[0].code, LEAT_E_NOT_OWNER);
    assert_int_equal(at->found[1].code, LEAT_E_NOT_OWNER);
    end();
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.gone = i == 0;
        it.partition[0].state = i == 1 ? LEAT_PARTITION_GOES : LEAT_PARTITION_SERVES;
        it.absent = LEAT_E_STARTING;
        at = locates(0, 0, 0, 1);
        said_enough();
        alone_deliver_all();
        assert_said("mail to 0\nmail to 0\nmail to 0\ndone 0\n");
        assert_int_equal(at->found[0].code, LEAT_E_STARTING);
        end();
    }
}

/* Goal: results that nobody wants are not written. */
static void results_that_are_not_wanted_are_left_out(void **state)
{
    (void)state;
    begin();
    struct locator *at = locates(0, 0, 0, 1);
    at->locator.epochs = NULL;
    at->locator.ranges = NULL;
    alone_deliver_all();
    assert_int_equal(at->found[0].offset, 1000);
    said_enough();
    end();
}

static void log_that_answers_later_is_waited_for(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        begin();
        it.later = true;
        it.reads_wait = waits;
        struct locator *at = locates(0, 0, 1, 1);
        alone_deliver(), alone_deliver();
        said_enough();
        alone_deliver();
        assert_said(waits ? "locate 3 0 5 in 7/1/1\nwatch 7/1/1\n" : "locate 3 0 5 in 7/1/1\n");
        located(LEAT_OK);
        assert_said("mail to 0\n");
        alone_deliver();
        assert_said("done 0\n");
        assert_int_equal(at->found[0].offset, 1000);
        end();
    }
}

/* Goal: segments on a node that is down are not lost. Only what the log itself has read counts. */
static void damage_is_hoped_for(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        bool later = i & 1, damaged = i & 2;
        unsigned log = i / 4; /* 0: there; 1: gone meanwhile; 2: another one */
        begin();
        it.later = later;
        it.hope = LEAT_E_STARTING;
        it.rc = LEAT_E_DAMAGED;
        it.read_rc = damaged ? LEAT_E_DAMAGED : LEAT_OK;
        struct locator *at = locates(0, 0, 0, 1);
        alone_deliver(), alone_deliver(), alone_deliver();
        said_enough();
        if (later) {
            it.gone = log == 1;
            if (log == 2) it.partition[0].log = (void *)&it;
            located(LEAT_E_DAMAGED);
        }
        alone_deliver_all();
        bool hopes = damaged && (!later || log == 0);
        assert_int_equal(at->found[0].code, hopes ? LEAT_E_STARTING : LEAT_E_DAMAGED);
        said_enough();
        end();
    }
}

/* Goal: a place that was found is told, though a place beside it could not be read. */
static void what_is_found_beside_damage_is_told(void **state)
{
    (void)state;
    begin();
    it.hope = LEAT_E_STARTING;
    it.read_rc = LEAT_E_DAMAGED;
    struct locator *at = locates(0, 0, 0, 1);
    alone_deliver_all();
    assert_int_equal(at->found[0].code, LEAT_OK);
    assert_int_equal(at->found[0].offset, 1000);
    said_enough();
    end();
}

/* ---- buffers ---- */

/* Goal: the same place again with a buffer, which is given back after that one place. */
static void place_that_has_left_memory_is_looked_at_with_a_buffer(void **state)
{
    (void)state;
    begin();
    it.rc = LEAT_E_NO_MEMORY;
    struct locator *at = locates(0, 0, 0, 2);
    alone_deliver(), alone_deliver(), alone_deliver();
    said_enough();
    it.rc = LEAT_OK;
    alone_deliver(), alone_deliver(), alone_deliver();
    assert_said("buffer?\nmail to 0\nmail to 0\nlocate 3 0 5 in 7/1/0, with a buffer\nmail to 0\n");
    alone_deliver();
    assert_said("give the buffer\nmail to 0\n");
    it.rc = LEAT_E_NO_MEMORY;
    alone_deliver(), alone_deliver();
    assert_said("mail to 0\nlocate 3 1 5 in 7/1/0\nmail to 0\n");
    alone_deliver_all(); /* with a buffer there is none: so it is */
    assert_said("buffer?\nmail to 0\nmail to 0\nlocate 3 1 5 in 7/1/0, with a buffer\nmail to 0\n"
                "give the buffer\ndone 0\n");
    assert_int_equal(at->found[1].code, LEAT_E_NO_MEMORY);
    end();
}

/* Goal: a locate waits for a buffer, and gives the buffer back unused where its connection has gone by then. */
static void buffer_is_waited_for(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 2; gone++) {
        begin();
        it.rc = LEAT_E_NO_MEMORY;
        it.no_buffer = true;
        (void)locates(0, 3, 0, 1);
        alone_deliver_all();
        said_enough();
        assert_non_null(it.waiting);
        if (gone) it.peers[3].conn = NULL;
        it.rc = LEAT_OK;
        it.no_buffer = false;
        it.waiting->on_buffer(it.waiting, leat_buffer_try(&alone.cores[0]));
        assert_said("buffer?\nmail to 0\n"); /* not from within */
        alone_deliver_all();
        assert_said(gone ? "give the buffer\ndone 0\n"
                         : "mail to 0\nmail to 0\nlocate 3 0 5 in 7/1/0, with a buffer\nmail to 0\n"
                           "give the buffer\ndone 0\n");
        end();
    }
}

/* ---- whose turn ---- */

/* Goal: a connection has one locate at work; all locates of a link, which stands for many connections, are at work. */
static void connection_has_one_at_work(void **state)
{
    (void)state;
    begin();
    (void)locates(0, 0, 0, 1), (void)locates(1, 0, 0, 1), (void)locates(2, 0, 0, 1);
    assert_said("mail to 0\n");
    alone_deliver_all();
    assert_said("mail to 0\nmail to 0\nlocate 3 0 5 in 7/1/0\nmail to 0\nmail to 0\ndone 0\n"
                "mail to 0\nmail to 0\nlocate 3 100 5 in 7/1/0\nmail to 0\nmail to 0\ndone 1\n"
                "mail to 0\nmail to 0\nlocate 3 200 5 in 7/1/0\nmail to 0\ndone 2\n");
    end();
    begin();
    struct locator *one = locates(0, LOCATORS, 0, 1), *other = locates(1, LOCATORS, 0, 1);
    assert_said("mail to 0\nmail to 0\n");
    alone_deliver_all();
    assert_int_equal(one->found[0].offset, 1000); /* without a connection of its own */
    assert_int_equal(other->found[0].offset, 1100);
    assert_true(leat_list_empty(&alone.cores[0].link_peer.locators));
    said_enough();
    end();
}

/* Goal: a locate of a link that ends begins no other locate of the link: all of them were begun. */
static void each_of_a_link_is_begun_once(void **state)
{
    (void)state;
    begin();
    (void)locates(0, LOCATORS, 0, 1);
    struct locator *other = locates(1, LOCATORS, 0, 1);
    while (it.op == NULL)
        alone_deliver();
    it.later = true;
    said_enough();
    alone_deliver_all();
    assert_said("done 0\nlocate 3 100 5 in 7/1/0\n");
    located(LEAT_OK);
    alone_deliver_all();
    assert_said("mail to 0\ndone 1\n");
    assert_int_equal(other->found[0].offset, 1100);
    end();
}

/* Goal: addresses have turns, and within an address its connections; a callback looks at one log. */
static void addresses_have_turns(void **state)
{
    (void)state;
    begin();
    /* Of three connections of one address and two others. */
    it.peers[2].address_number = 50;
    it.peers[3].address_number = 51;
    it.peers[4].address_number = 52;
    for (unsigned i = 0; i < 5; i++)
        (void)locates(i, i, 1, 1);
    for (unsigned i = 0; i < 10; i++)
        alone_deliver(); /* all stand in the log's core's line */
    said_enough();
    static const unsigned order[] = {0, 3, 4, 1, 2};
    for (unsigned i = 0; i < 5; i++) {
        char expected[256];
        while (alone.to[0] == 0)
            alone_deliver();
        said_enough();
        alone_deliver();
        snprintf(expected, sizeof expected, "locate 3 %u 5 in 7/1/1\nmail to 0\n%s", 100 * order[i],
                 i < 4 ? "mail to 1\n" : "");
        assert_said(expected);
    }
    alone_deliver_all();
    said_enough();
    end();
}

/* Goal: a batch that was begun is uncompressed to its end, piece by piece, before anything else is looked at. */
static void batch_is_uncompressed_in_pieces(void **state)
{
    (void)state;
    begin();
    it.seeks = true;
    it.steps = 2;
    (void)locates(0, 0, 0, 1), (void)locates(1, 2, 0, 1);
    for (unsigned i = 0; i < 4; i++)
        alone_deliver();
    said_enough();
    static const char *const expected[] = {"locate 3 0 5 in 7/1/0\nmail to 0\n",
                                           "step of 0\nmail to 0\n", "step of 0\nmail to 0\n",
                                           "step of 0\nmail to 0\nmail to 0\n"};
    for (unsigned i = 0; i < 4; i++) {
        alone_deliver();
        assert_said(expected[i]);
    }
    alone_deliver();
    assert_said("done 0\n");
    alone_deliver();
    assert_said("locate 3 100 5 in 7/1/0\nmail to 0\n");
    alone_deliver_all();
    assert_said("step of 100\nmail to 0\ndone 1\n");
    end();
}

/* Goal: batches whose reads end later are uncompressed in the order in which the reads end. */
static void batches_are_uncompressed_in_order(void **state)
{
    (void)state;
    begin();
    it.later = true;
    (void)locates(0, 0, 0, 1);
    alone_deliver_all();
    struct leat_locate_op *first = it.op;
    (void)locates(1, 2, 0, 1);
    alone_deliver_all();
    said_enough();
    it.op->seeks = first->seeks = true;
    located(LEAT_OK);
    it.op = first;
    located(LEAT_OK);
    assert_said("mail to 0\n"); /* one turn is under way */
    it.steps = 1;
    alone_deliver_all();
    assert_said("step of 100\nmail to 0\n"
                "step of 100\nmail to 0\nmail to 0\ndone 1\nstep of 0\nmail to 0\ndone 0\n");
    end();
}

/* ---- the coordinators are asked ---- */

/* Goal: only the owner may say that there is no such offset. The coordinators are asked for the owner after the log was
 * looked at, in the epoch that the log had then. A server alone need not ask. */
static void offset_out_of_range_is_told_by_the_owner_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        it.rc = LEAT_E_OFFSET_OUT_OF_RANGE;
        if (i != 3) alone.cores[0].members.links = (void *)&it;
        struct locator *at = locates(0, 0, 0, 1);
        alone_deliver(), alone_deliver(), alone_deliver();
        said_enough();
        alone_deliver();
        if (i == 3) {
            assert_said("done 0\n");
            assert_int_equal(at->found[0].code, LEAT_E_OFFSET_OUT_OF_RANGE);
            end();
            continue;
        }
        assert_said("catch up\n");
        alone.desc->streamlets[1].epoch.v = 6;
        if (i == 1) it.route = LEAT_E_NOT_OWNER;
        caught_up(i == 2 ? LEAT_E_AGAIN : LEAT_OK);
        assert_said(i == 2 ? "done 0\n" : "route 7/1/0, epoch 5\ndone 0\n");
        static const leat_err codes[] = {LEAT_E_OFFSET_OUT_OF_RANGE, LEAT_E_NOT_OWNER,
                                         LEAT_E_STARTING};
        assert_int_equal(at->found[0].code, codes[i]);
        assert_int_equal(at->found[0].offset, 1000);
        end();
    }
}

/* Goal: an answer that another node could not know better is given at once. */
static void coordinators_are_asked_of_offsets_alone(void **state)
{
    (void)state;
    static const leat_err codes[] = {LEAT_OK, LEAT_E_DAMAGED, LEAT_E_DISK};
    for (unsigned i = 0; i < 3; i++) {
        begin();
        it.rc = codes[i];
        alone.cores[0].members.links = (void *)&it;
        struct locator *at = locates(0, 0, 0, 1);
        alone_deliver_all();
        assert_null(it.catching_up);
        assert_int_equal(at->found[0].code, codes[i]);
        said_enough();
        end();
    }
}

/* Goal: one catching up is under way at a time; a locate that asks meanwhile waits for the next catching up. */
static void one_question_is_under_way(void **state)
{
    (void)state;
    begin();
    it.rc = LEAT_E_OFFSET_OUT_OF_RANGE;
    alone.cores[0].members.links = (void *)&it;
    (void)locates(0, 0, 0, 1);
    alone_deliver_all();
    (void)locates(1, 2, 0, 1), (void)locates(2, 4, 0, 1);
    alone_deliver_all();
    said_enough();
    caught_up(LEAT_OK);
    assert_said("route 7/1/0, epoch 5\ndone 0\ncatch up\n");
    caught_up(LEAT_OK);
    assert_said("route 7/1/0, epoch 5\ndone 1\nroute 7/1/0, epoch 5\ndone 2\n");
    assert_null(it.catching_up);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_are_asked_one_after_the_other),
        cmocka_unit_test(places_that_are_not_here_are_refused_as_they_are),
        cmocka_unit_test(results_that_are_not_wanted_are_left_out),
        cmocka_unit_test(log_that_answers_later_is_waited_for),
        cmocka_unit_test(damage_is_hoped_for),
        cmocka_unit_test(what_is_found_beside_damage_is_told),
        cmocka_unit_test(place_that_has_left_memory_is_looked_at_with_a_buffer),
        cmocka_unit_test(buffer_is_waited_for),
        cmocka_unit_test(connection_has_one_at_work),
        cmocka_unit_test(each_of_a_link_is_begun_once),
        cmocka_unit_test(addresses_have_turns),
        cmocka_unit_test(batch_is_uncompressed_in_pieces),
        cmocka_unit_test(batches_are_uncompressed_in_order),
        cmocka_unit_test(offset_out_of_range_is_told_by_the_owner_alone),
        cmocka_unit_test(coordinators_are_asked_of_offsets_alone),
        cmocka_unit_test(one_question_is_under_way),
    };
    return cmocka_run_group_tests_name("broker locate", tests, NULL, NULL);
}
