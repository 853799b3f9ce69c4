/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that a recovery wants here, by collect.c alone: what is here is flushed, what is not is pulled and tried again
 * for a while. */
#include "broker/data/core_data.h"
#include "broker/ownership/collect.h"
#include "tests/broker/collect_rig.h"

static void asks(void)
{
    leat_node_on_pull(&alone.node, &it.wanted);
    assert_said("mail to 0\n");
    alone_deliver();
}

static const char pull_said[] =
    "pull 7/1/0 segment 4 1000:4 next 50 version 3 provisional, from 13 10\n";
static const char flush_said[] = "flush 7/1/0 segment 4 1000:4\n";

static void pull_ends(leat_err rc)
{
    struct leat_backup_pull *pull = it.pulling;
    it.pulling = NULL;
    pull->on_done(pull, rc);
}

/* ---- from others ---- */

static void copy_is_pulled_from_its_sources(void **state)
{
    (void)state;
    begin();
    asks();
    assert_said(pull_said);
    pull_ends(LEAT_OK);
    assert_said("pulled OK\n");
    end();
}

/* Goal: only nodes that are known, and not itself. */
static void sources_are_those_that_are_known(void **state)
{
    (void)state;
    begin();
    it.wanted.source_count = 3;
    snprintf(it.wanted.sources[1].node, sizeof it.wanted.sources[1].node, "n9");
    snprintf(it.wanted.sources[2].node, sizeof it.wanted.sources[2].node, "n2");
    asks();
    assert_said("pull 7/1/0 segment 4 1000:4 next 50 version 3 provisional, from 13 12\n");
    pull_ends(LEAT_E_NOT_FOUND);
    assert_said("pulled NOT_FOUND: segment 4 can't be had: not found\n");
    end();
    begin(); /* another node of its name: not what it calls itself */
    snprintf(alone.node.name, sizeof alone.node.name, "nx");
    snprintf(it.wanted.sources[0].node, sizeof it.wanted.sources[0].node, "n1");
    asks();
    assert_said("pull 7/1/0 segment 4 1000:4 next 50 version 3 provisional, from 10\n");
    pull_ends(LEAT_OK);
    said_enough();
    end();
}

/* Goal: as long as a source is busy it is asked again, a hundred times; a connection that broke, five. */
static void sources_are_asked_again(void **state)
{
    (void)state;
    static const struct {
        leat_err rc;
        unsigned tries;
        const char *ends;
    } rows[] = {
        {LEAT_E_AGAIN, 100, "pulled AGAIN: segment 4 can't be had: "},
        {LEAT_E_CLOSED, 5, "pulled CLOSED: segment 4 can't be had: "},
        {LEAT_E_NOT_FOUND, 1, "pulled NOT_FOUND: segment 4 can't be had: not found\n"},
        {LEAT_E_DISK, 1, "pulled DISK: segment 4 can't be had: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        asks();
        assert_said(pull_said);
        for (unsigned tries = 1; tries < rows[i].tries; tries++) {
            pull_ends(rows[i].rc);
            assert_said("timer 10000\n");
            expire();
            assert_said(pull_said);
        }
        pull_ends(rows[i].rc);
        assert_said_first(rows[i].ends);
        assert_null(it.timer);
        end();
    }
}

static void core_that_stops_asks_no_more(void **state)
{
    (void)state;
    begin();
    asks();
    said_enough();
    alone.cores[0].stopping = true;
    pull_ends(LEAT_E_AGAIN);
    assert_said_first("pulled AGAIN");
    end();
}

static void pull_that_cant_begin_is_tried_again_or_fails(void **state)
{
    (void)state;
    begin();
    it.pull = LEAT_E_AGAIN;
    asks();
    said_enough();
    expire();
    assert_said("pull 7/1/0 segment 4 1000:4 next 50 version 3 provisional, from 13 10\n"
                "timer 10000\n");
    it.pull = LEAT_E_NO_MEMORY;
    expire();
    assert_said("pull 7/1/0 segment 4 1000:4 next 50 version 3 provisional, from 13 10\n"
                "pulled NO_MEMORY: segment 4 can't be had: the memory budget is used up\n");
    end();
}

/* ---- here ---- */

/* Goal: a copy that is here is flushed, whether it is any of the coordinator's sources or only known to be whole. */
static void copy_that_is_here_is_flushed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        struct leat_pull_source *own = &it.wanted.sources[i == 3 ? 0 : 1];
        it.holds = i != 1 && i != 3;
        if (i != 0) snprintf(own->node, sizeof own->node, "n1");
        asks();
        assert_said(flush_said);
        it.on_flushed(it.flush_arg, i == 2 ? LEAT_E_DISK : LEAT_OK);
        assert_said_first(i == 2 ? "pulled DISK: segment 4 can't be had: " : "pulled OK\n");
        end();
    }
}

static void place_behind_the_last_source_is_none(void **state)
{
    (void)state;
    begin();
    snprintf(it.wanted.sources[2].node, sizeof it.wanted.sources[2].node, "n1");
    asks();
    assert_said(pull_said);
    pull_ends(LEAT_OK);
    said_enough();
    end();
}

static void flush_that_cant_begin_is_tried_again(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.holds = true;
        it.flush = i == 0 ? LEAT_E_AGAIN : LEAT_E_NO_MEMORY;
        asks();
        assert_said("flush 7/1/0 segment 4 1000:4\ntimer 10000\n");
        for (unsigned tries = 2; tries < 100; tries++)
            expire();
        said_enough();
        expire();
        assert_said_first(i == 0 ? "flush 7/1/0 segment 4 1000:4\npulled AGAIN"
                                 : "flush 7/1/0 segment 4 1000:4\npulled NO_MEMORY");
        end();
    }
}

/* Goal: a copy that should be here, and is not, is pulled from the other nodes. */
static void copy_that_is_not_here_after_all_is_pulled(void **state)
{
    (void)state;
    begin();
    it.flush = LEAT_E_NOT_FOUND;
    snprintf(it.wanted.sources[1].node, sizeof it.wanted.sources[1].node, "n1");
    asks();
    assert_said("flush 7/1/0 segment 4 1000:4\n"
                "pull 7/1/0 segment 4 1000:4 next 50 version 3 provisional, from 13\n");
    pull_ends(LEAT_OK);
    said_enough();
    end();
}

/* ---- not at all ---- */

static void node_that_cant_refuses(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        if (i == 0) alone.node.life = LEAT_LIFE_COMES_UP;
        if (i == 1) alone.cores[0].data->replicate->backup = NULL;
        if (i == 2) alone.cores[0].stopping = true;
        if (i == 3) leat_mem_fail_at(1);
        asks();
        leat_mem_fail_at(0);
        leat_err rc = i == 3 ? LEAT_E_NO_MEMORY : LEAT_E_STARTING;
        char expected[256];
        snprintf(expected, sizeof expected, "pulled %s: %s\n", leat_err_name(rc),
                 leat_err_text(rc));
        assert_said(expected);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copy_is_pulled_from_its_sources),
        cmocka_unit_test(sources_are_those_that_are_known),
        cmocka_unit_test(sources_are_asked_again),
        cmocka_unit_test(core_that_stops_asks_no_more),
        cmocka_unit_test(pull_that_cant_begin_is_tried_again_or_fails),
        cmocka_unit_test(copy_that_is_here_is_flushed),
        cmocka_unit_test(place_behind_the_last_source_is_none),
        cmocka_unit_test(flush_that_cant_begin_is_tried_again),
        cmocka_unit_test(copy_that_is_not_here_after_all_is_pulled),
        cmocka_unit_test(node_that_cant_refuses),
    };
    return cmocka_run_group_tests_name("broker collect_pull", tests, NULL, NULL);
}
