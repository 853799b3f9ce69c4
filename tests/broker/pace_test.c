/* SPDX-License-Identifier: Apache-2.0 */
/* Which request of whom goes on in which turn of the event loop: connections that have a pipeline each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/net/core.h"
#include "tests/broker/parts.h"

enum { PEERS = 8, TURNS_MAX = 1000, DONE_MAX = 4096 };

struct leat_conn {
    bool paused;
};

struct desk {
    struct leat_core core;
    struct core_world world;
    struct leat_node node;
    struct leat_net net;
    struct leat_conn conns[PEERS];
    struct leat_peer peers[PEERS];
    unsigned wants[PEERS];   /* requests that lie there */
    unsigned owed[PEERS];    /* answers */
    uint64_t cost_us[PEERS]; /* of each of its requests */
    uint64_t answer_us[PEERS];
    unsigned done[DONE_MAX], done_count; /* in this order */
    unsigned answered[PEERS];
};

static void conn_pause(struct leat_conn *conn)
{
    conn->paused = true;
}
static void conn_resume(struct leat_conn *conn)
{
    conn->paused = false;
}

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->net = (struct leat_net){.ctx = desk, .pause = conn_pause, .resume = conn_resume};
    core_world_set(&desk->core, &desk->world, &desk->node, &desk->net);
    leat_list_init(&desk->core.answer_peers);
    leat_pace_init(&desk->core);
    for (unsigned i = 0; i < PEERS; i++) {
        desk->peers[i].core = &desk->core;
        desk->peers[i].conn = &desk->conns[i];
        desk->peers[i].address = i;
        leat_list_init(&desk->peers[i].answers);
        leat_pace_peer_init(&desk->peers[i].pace);
        assert_true(leat_sharer_join(&desk->core, &desk->peers[i]));
    }
    return desk;
}

static void comes_from(struct desk *desk, unsigned i, uint32_t address)
{
    leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    desk->peers[i].address = address;
    assert_true(leat_sharer_join(&desk->core, &desk->peers[i]));
}

static void desk_free(struct desk *desk)
{
    for (unsigned i = 0; i < PEERS; i++)
        leat_pace_forget(&desk->peers[i]);
    assert_int_equal(desk->core.pace.addresses.count, 0);
    for (unsigned i = 0; i < PEERS; i++)
        leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    free(desk);
}

/* Its bytes are presented: as much of its pipeline is taken as may be. */
static void reads(struct desk *desk, unsigned i)
{
    while (desk->wants[i] > 0 && !desk->conns[i].paused) {
        if (!leat_pace_begin(&desk->peers[i])) {
            assert_true(desk->conns[i].paused);
            return;
        }
        desk->world.now_us += desk->cost_us[i];
        leat_pace_end(&desk->peers[i]);
        desk->wants[i]--;
        assert_true(desk->done_count < DONE_MAX);
        desk->done[desk->done_count++] = i;
    }
}

static void answers(struct desk *desk, unsigned i)
{
    while (desk->owed[i] > 0 && leat_pace_answer(&desk->peers[i])) {
        desk->world.now_us += desk->answer_us[i];
        leat_pace_end(&desk->peers[i]);
        desk->owed[i]--;
        desk->answered[i]++;
    }
}

/* Mail, then what can be read, then the end. Returns how many requests were done. */
static unsigned turn(struct desk *desk)
{
    unsigned before = desk->done_count;
    struct leat_mail *mail = desk->world.mail;
    struct leat_list *link;
    desk->world.mail = NULL;
    if (mail) mail->deliver(&desk->core, mail);
    for (unsigned i = 0; i < PEERS; i++)
        reads(desk, i);
    while ((link = leat_list_pop_front(&desk->core.answer_peers)) != NULL)
        answers(desk, (unsigned)(LEAT_CONTAINER(link, struct leat_peer, answers) - desk->peers));
    leat_pace_turn_end(&desk->core);
    return desk->done_count - before;
}

/* Goal: however many requests lie there, a turn has one of a connection; when all is done nothing goes on. */
static void a_turn_has_one_request_of_a_connection(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->wants[0] = 100;
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(turn(desk), 1);
    assert_int_equal(turn(desk), 0);
    assert_null(desk->world.mail); /* a core without work is not woken */
    assert_int_equal(desk->wants[0], 0);
    desk_free(desk);
}

/* Goal: a single request is served between two requests of connections that pipeline, and before all waiting
 * pipelines. */
static void one_request_goes_between_two_of_a_pipeline(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i + 1 < PEERS; i++) {
        desk->wants[i] = 50;
        desk->cost_us[i] = 10000;
        comes_from(desk, i, i / 2); /* two of one address have no more of a turn */
    }
    for (unsigned i = 0; i < 30; i++)
        assert_true(turn(desk) <= 1); /* each costs more than there is for a turn */
    desk->wants[PEERS - 1] = 1;
    for (unsigned i = 0; desk->wants[PEERS - 1] > 0; i++) {
        assert_true(i < 2);
        (void)turn(desk);
    }
    while (desk->world.mail)
        (void)turn(desk);
    assert_int_equal(desk->done_count, (PEERS - 1) * 50 + 1);
    desk_free(desk);
}

/* Goal: when a turn's time is over nothing begins, also if nobody waited before. */
static void a_turn_ends_when_its_time_is_over(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < PEERS; i++) {
        desk->wants[i] = 1;
        desk->cost_us[i] = LEAT_PACE_TURN_US;
    }
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(turn(desk), 1);
    desk_free(desk);
}

/* Goal: the connections of an address share the time of the address. */
static void addresses_have_turns_however_many_connections_they_have(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    unsigned count[2] = {0, 0};
    for (unsigned i = 0; i < PEERS; i++) {
        desk->wants[i] = 400;
        desk->cost_us[i] = 3000;
        comes_from(desk, i, i > 0);
    }
    for (unsigned i = 0; i < 200; i++)
        (void)turn(desk);
    for (unsigned i = 0; i < desk->done_count; i++)
        count[desk->done[i] > 0]++;
    assert_in_range(count[0], desk->done_count / 2 - 20, desk->done_count / 2 + 20);
    desk_free(desk);
}

/* Goal: cheap ones are many in a turn, of as many connections. */
static void cheap_requests_of_many_connections_share_a_turn(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < PEERS; i++)
        desk->wants[i] = 100;
    unsigned turns = 0;
    while (desk->done_count < PEERS * 100) {
        assert_true(turns++ < 120);
        (void)turn(desk);
    }
    desk_free(desk);
}

/* Goal: answers that all waited for the same event are not all written in one turn, and each connection that still has
 * answers is called again. */
static void answers_are_written_as_long_as_a_turn_has_time(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->owed[0] = desk->owed[1] = 20;
    desk->answer_us[0] = desk->answer_us[1] = 5000;
    for (unsigned i = 0; i < 2; i++)
        leat_list_push_back(&desk->core.answer_peers, &desk->peers[i].answers);
    for (unsigned turns = 0; desk->owed[0] + desk->owed[1] > 0; turns++) {
        unsigned before = desk->answered[0] + desk->answered[1];
        assert_true(turns < TURNS_MAX);
        (void)turn(desk);
        assert_int_equal(desk->answered[0] + desk->answered[1], before + 1);
    }
    assert_null(desk->world.mail);
    desk_free(desk);
}

struct work {
    struct leat_pace_step step;
    struct desk *desk;
    unsigned runs;
    bool inside; /* its time was counted */
};

static void work_run(struct leat_pace_step *step)
{
    struct work *work = LEAT_CONTAINER(step, struct work, step);
    work->inside =
        work->desk->core.pace.inside && work->desk->core.pace.from_us == work->desk->world.now_us;
    work->desk->world.now_us += 5000;
    work->runs++;
    work->desk->done_count++;
}

/* Goal: works that waited for the same event become ready at once, and are not all done in one turn; the work of a
 * closed connection waits for no turn. */
static void work_that_has_waited_is_done_in_turns(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct work works[PEERS][2];
    for (unsigned i = 0; i < PEERS * 2; i++) {
        works[i / 2][i % 2] = (struct work){.desk = desk};
        leat_pace_run(&desk->peers[i / 2], &works[i / 2][i % 2].step, work_run);
    }
    assert_int_equal(desk->done_count, 1);
    leat_pace_turn_end(&desk->core);
    desk->peers[PEERS - 1].conn = NULL;
    leat_pace_forget(&desk->peers[PEERS - 1]);
    assert_int_equal(desk->done_count, 1 + 2);
    while (desk->done_count < PEERS * 2)
        assert_int_equal(turn(desk), 1);
    assert_int_equal(turn(desk), 0);
    assert_null(desk->world.mail);
    for (unsigned i = 0; i < PEERS * 2; i++)
        assert_int_equal(works[i / 2][i % 2].runs, 1);
    desk_free(desk);
}

/* Goal: work of nobody who could wait, or amid a request, is done at once. */
static void work_that_can_not_wait_is_done_at_once(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 2; gone++) {
        struct desk *desk = desk_new();
        struct work works[3] = {{.desk = desk}, {.desk = desk}, {.desk = desk}};
        leat_pace_run(&desk->peers[0], &works[0].step, work_run); /* uses this turn up */
        assert_int_equal(works[0].runs, 1);
        leat_pace_run(&desk->peers[1], &works[1].step, work_run);
        assert_int_equal(works[1].runs, 0);
        if (gone) desk->peers[2].conn = NULL;
        desk->core.pace.inside = !gone;
        leat_pace_run(&desk->peers[2], &works[2].step, work_run);
        assert_int_equal(works[2].runs, 1);
        desk->core.pace.inside = false;
        while (works[1].runs == 0)
            (void)turn(desk);
        assert_true(works[1].inside);
        assert_int_equal(works[2].runs, 1);
        desk_free(desk);
    }
}

/* Goal: the rest of a request is done at its turn, by the function that was named last; the rest of a closed connection
 * is done at once. */
static void rest_of_a_request_is_left_for_a_later_turn(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct work work = {.desk = desk}, other = {.desk = desk};
    desk->world.now_us = 77;
    assert_true(leat_pace_begin(&desk->peers[0]));
    assert_true(desk->core.pace.inside);
    assert_int_equal(desk->core.pace.from_us, 77);
    assert_true(leat_pace_again(&desk->peers[0], &work.step, work_run));
    assert_true(leat_pace_again(&desk->peers[0], &other.step, work_run));
    leat_pace_end(&desk->peers[0]);
    assert_int_equal(work.runs, 0);
    assert_non_null(desk->world.mail);
    leat_pace_turn_end(&desk->core);
    assert_int_equal(turn(desk), 1);
    assert_int_equal(work.runs, 1);
    assert_int_equal(turn(desk), 1);
    assert_int_equal(other.runs, 1);
    assert_int_equal(turn(desk), 0);
    struct leat_conn *conn = desk->peers[0].conn;
    desk->peers[0].conn = NULL;
    assert_false(leat_pace_again(&desk->peers[0], &work.step, work_run));
    desk->peers[0].conn = conn;
    leat_mem_fail_at(1); /* its address is not known to wait for anything */
    assert_false(leat_pace_again(&desk->peers[1], &work.step, work_run));
    leat_mem_fail_at(0);
    assert_int_equal(work.runs, 1);
    assert_null(desk->world.mail);
    desk_free(desk);
}

/* Goal: a turn is over when none of its time is left. The answer to the request that began in the turn is written all
 * the same, and no other answer of the connection. */
static void last_answers_of_a_turn(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_peer *peers = desk->peers;
    desk->core.pace.left_us = 1;
    assert_true(leat_pace_begin(&peers[4]));
    desk->core.pace.left_us = 1;
    desk->world.now_us = 78;
    assert_true(leat_pace_answer(&peers[0]));
    assert_true(desk->core.pace.inside);
    assert_int_equal(desk->core.pace.from_us, 78);
    desk->core.pace.left_us = 0;
    assert_false(leat_pace_answer(&peers[1]));
    assert_true(peers[1].pace.answer_waits);
    desk->core.pace.left_us = 1;
    assert_false(leat_pace_begin(&peers[5])); /* one waits */
    peers[2].pace.frame_due = true;           /* it was called for its request */
    assert_true(leat_pace_begin(&peers[2]));
    desk->core.pace.left_us = 0;
    assert_true(leat_pace_answer(&peers[2]));
    assert_false(leat_pace_answer(&peers[2]));
    leat_mem_fail_at(1); /* without memory for its address nobody waits */
    assert_true(leat_pace_answer(&peers[3]));
    leat_mem_fail_at(0);
    leat_pace_turn_end(&desk->core);
    desk->core.pace.left_us = 0;
    assert_false(leat_pace_answer(&peers[2])); /* begun in an earlier turn */
    peers[2].pace.answer_due = true;
    assert_true(leat_pace_answer(&peers[2]));
    assert_false(leat_pace_answer(&peers[2]));
    desk_free(desk);
}

/* Goal: a connection that goes leaves no place behind, and is not paused any more. */
static void who_goes_waits_no_more(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    desk->wants[0] = desk->wants[1] = 3;
    desk->owed[0] = 1;
    (void)turn(desk);
    assert_true(desk->conns[0].paused);
    leat_pace_forget(&desk->peers[0]);
    assert_false(desk->conns[0].paused);
    desk->wants[0] = 0;
    while (desk->world.mail)
        (void)turn(desk);
    assert_int_equal(desk->wants[1], 0);
    desk_free(desk);
}

/* Goal: the first turn calls one connection that waits; then twice as many in each turn, up to a limit, until a turn
 * has used half of its time. */
static void as_many_are_called_as_have_been_cheap(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_pace *pace = &desk->core.pace;
    uint32_t width = 1;
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(pace->width, width);
        pace->left_us = LEAT_PACE_TURN_US / 2 + 1;
        leat_pace_turn_end(&desk->core);
        if (width < LEAT_PACE_CALLED_MAX) width *= 2;
    }
    pace->left_us = LEAT_PACE_TURN_US / 2;
    leat_pace_turn_end(&desk->core);
    assert_int_equal(pace->width, 1);
    desk_free(desk);
}

/* Goal: a request takes some of a turn's time, however short it is. A connection without a second request in the same
 * turn does not wait. */
static void request_alone_does_not_wait(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 3; i++) {
        desk->wants[0] = 1;
        reads(desk, 0);
        assert_int_equal(desk->wants[0], 0);
        assert_int_equal(desk->core.pace.left_us, LEAT_PACE_TURN_US - LEAT_PACE_COST_US_MIN);
        leat_pace_turn_end(&desk->core);
    }
    assert_null(desk->world.mail);
    desk_free(desk);
}

static void mail_deliver(struct desk *desk)
{
    struct leat_mail *mail = desk->world.mail;
    desk->world.mail = NULL;
    assert_non_null(mail);
    mail->deliver(&desk->core, mail);
}

static struct desk *desk_with_work(struct work *works, unsigned count)
{
    struct desk *desk = desk_new();
    desk->core.pace.left_us = 0;
    for (unsigned i = 0; i < count; i++) {
        works[i] = (struct work){.desk = desk};
        leat_pace_run(&desk->peers[i], &works[i].step, work_run);
    }
    assert_int_equal(desk->done_count, 0);
    desk->core.pace.width = count;
    return desk;
}

/* Goal: one connection is called even where requests have used the turn up; another one only while time is left, to the
 * microsecond. */
static void one_is_called_in_any_turn_and_more_while_time_is_left(void **state)
{
    (void)state;
    const int64_t left[] = {0, 5000, 5001};
    const unsigned done[] = {1, 1, 2};
    for (unsigned i = 0; i < 3; i++) {
        struct work works[3];
        struct desk *desk = desk_with_work(works, 3);
        desk->core.pace.left_us = left[i];
        mail_deliver(desk); /* each work takes 5 ms */
        assert_int_equal(desk->done_count, done[i]);
        desk_free(desk);
    }
}

/* Goal: work waits behind work that waits, though this turn has time; it is done at once while a microsecond is left.
 * */
static void work_waits_behind_others_and_for_time(void **state)
{
    (void)state;
    struct work works[3];
    struct desk *desk = desk_with_work(works, 1);
    desk->core.pace.left_us = LEAT_PACE_TURN_US;
    works[1] = works[2] = works[0];
    leat_pace_run(&desk->peers[1], &works[1].step, work_run);
    assert_int_equal(desk->done_count, 0);
    mail_deliver(desk);
    desk->core.pace.left_us = LEAT_PACE_TURN_US;
    mail_deliver(desk);
    assert_int_equal(desk->done_count, 2);
    desk->core.pace.left_us = 1;
    leat_pace_run(&desk->peers[2], &works[2].step, work_run);
    assert_int_equal(desk->done_count, 3);
    desk_free(desk);
}

/* Goal: connections that are called for their answers write them, in their order, though the turn's time is over by
 * then; a call for an answer is no call for a request, and the next call is for no answer. */
static void called_answers_are_written(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_peer *peers = desk->peers;
    struct leat_pace *pace = &desk->core.pace;
    pace->left_us = 0;
    for (unsigned i = 0; i < 2; i++)
        assert_false(leat_pace_answer(&peers[i]));
    leat_pace_turn_end(&desk->core);
    pace->width = 2;
    mail_deliver(desk);
    assert_ptr_equal(desk->core.answer_peers.next, &peers[0].answers);
    assert_ptr_equal(desk->core.answer_peers.prev, &peers[1].answers);
    pace->left_us = 0;
    for (unsigned i = 0; i < 2; i++) {
        leat_list_remove(&peers[i].answers);
        assert_false(leat_pace_begin(&peers[i])); /* its request has its own turn */
        assert_true(leat_pace_answer(&peers[i]));
        leat_pace_end(&peers[i]);
    }
    leat_pace_turn_end(&desk->core);
    pace->width = 2;
    mail_deliver(desk);
    assert_true(leat_list_empty(&desk->core.answer_peers));
    pace->left_us = 0;
    assert_true(leat_pace_begin(&peers[0]));
    assert_true(leat_pace_begin(&peers[1]));
    leat_pace_end(&peers[1]);
    desk_free(desk);
}

/* Goal: a connection that comes back has been called for nothing. */
static void who_comes_back_has_not_been_called(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_peer *peer = &desk->peers[0];
    peer->pace.frame_due = peer->pace.answer_due = peer->pace.answer_waits = true;
    leat_pace_forget(peer);
    desk->core.pace.left_us = 0;
    assert_false(leat_pace_begin(peer));
    assert_false(leat_pace_answer(peer));
    desk_free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_has_one_request_of_a_connection),
        cmocka_unit_test(one_request_goes_between_two_of_a_pipeline),
        cmocka_unit_test(a_turn_ends_when_its_time_is_over),
        cmocka_unit_test(addresses_have_turns_however_many_connections_they_have),
        cmocka_unit_test(cheap_requests_of_many_connections_share_a_turn),
        cmocka_unit_test(answers_are_written_as_long_as_a_turn_has_time),
        cmocka_unit_test(work_that_has_waited_is_done_in_turns),
        cmocka_unit_test(work_that_can_not_wait_is_done_at_once),
        cmocka_unit_test(rest_of_a_request_is_left_for_a_later_turn),
        cmocka_unit_test(last_answers_of_a_turn),
        cmocka_unit_test(who_goes_waits_no_more),
        cmocka_unit_test(as_many_are_called_as_have_been_cheap),
        cmocka_unit_test(request_alone_does_not_wait),
        cmocka_unit_test(one_is_called_in_any_turn_and_more_while_time_is_left),
        cmocka_unit_test(work_waits_behind_others_and_for_time),
        cmocka_unit_test(called_answers_are_written),
        cmocka_unit_test(who_comes_back_has_not_been_called),
    };
    return cmocka_run_group_tests_name("broker pace", tests, NULL, NULL);
}
