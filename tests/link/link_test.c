/* SPDX-License-Identifier: Apache-2.0 */
/* Links between simulated processes: hello and its refusals, calls, losses, limits, silence. */
#include "tests/link/rig.h"

static const uint8_t words[] = {0x93, 1, 2, 3};

/* ---- tests ---- */

/* A connection lands on the core that hello names, modulo the peer's cores, and both sides know
 * each other; a call is answered; the accepting side may call too. */
static void link_up_calls_both_ways(void **state)
{
    (void)state;
    open_with(left, 1, (struct leat_link_options){.address = "right:1", .to_actor = 5});
    run(SECOND);
    struct end *near = &left->ends[1], *far = &right->ends[5 % CORES];
    assert_int_equal(near->ups, 1);
    assert_int_equal(far->ups, 1);
    assert_non_null(far->accepted);
    assert_string_equal(leat_link_peer(near->link)->node, "right");
    assert_int_equal(leat_link_peer(near->link)->incarnation, 12);
    assert_string_equal(leat_link_peer(far->accepted)->node, "left");
    uint8_t data[2][1000];
    memset(data, 0x5a, sizeof data);
    struct caller there = {.call = {.kind = KIND_ECHO,
                                    .control = words,
                                    .control_bytes = sizeof words,
                                    .payload = there.iov,
                                    .payload_count = 2}};
    there.iov[0] = (struct leat_iov){data[0], 1000};
    there.iov[1] = (struct leat_iov){data[1], 1000};
    struct caller back = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(left, 1, &there);
    call_start(right, 2, &back);
    run(SECOND);
    assert_int_equal(there.done, 1);
    assert_true(there.matched);
    assert_int_equal(far->first_byte, 0x5a);
    assert_int_equal(back.done, 1);
    assert_true(back.matched);
}

/* A peer with another cluster id, an unknown purpose or another name than expected is refused with the reason, and the
 * opener goes on trying. */
static void link_refused_says_why(void **state)
{
    (void)state;
    static const struct {
        uint8_t cluster;
        unsigned purpose;
        const char *expect;
        uint64_t expect_incarnation;
        leat_err rc;
    } rows[] = {
        {8, LEAT_LINK_SERVE, NULL, 0, LEAT_E_WRONG_CLUSTER},
        {7, LEAT_LINK_DATA, NULL, 0, LEAT_E_UNSUPPORTED},
        {7, LEAT_LINK_SERVE, "other", 0, LEAT_E_NOT_FOUND},
        {7, LEAT_LINK_SERVE, "right", 99, LEAT_E_NOT_FOUND},
        {0, LEAT_LINK_SERVE, NULL, 0, LEAT_E_STARTING},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[16], address[16];
        snprintf(name, sizeof name, "third%u", i);
        snprintf(address, sizeof address, "third%u:1", i);
        struct node *third = node_make((struct setup){
            .name = name, .address = address, .cluster = rows[i].cluster, .incarnation = 13});
        open_with(third, 0,
                  (struct leat_link_options){.address = "right:1",
                                             .purpose = rows[i].purpose,
                                             .expect_node = rows[i].expect,
                                             .expect_incarnation = rows[i].expect_incarnation});
        run(10 * SECOND);
        assert_int_equal(third->ends[0].ups, 0);
        assert_int_equal(third->ends[0].last_down.code, rows[i].rc);
        assert_in_range(third->ends[0].downs_unborn, 8, 60); /* the pause grows to a second */
        sim_process_die(third->process, SIM_DEATH_KILL);
        run(SECOND);
    }
    assert_int_equal(right->ends[0].requests, 0);
}

/* Nodes without a cluster meet where the service lets strangers in, and only there. */
static void link_strangers_meet_where_allowed(void **state)
{
    (void)state;
    struct node *open =
        node_make((struct setup){.name = "open", .address = "open:1", .strangers = true});
    struct node *other =
        node_make((struct setup){.name = "other", .address = "other:1", .strangers = true});
    open_with(other, 0, (struct leat_link_options){.address = "open:1", .stranger = true});
    open_with(open, 1, (struct leat_link_options){.address = "other:1", .to_actor = 2});
    run(5 * SECOND);
    assert_int_equal(other->ends[0].ups, 1);
    assert_int_equal(open->ends[1].ups, 0);
    assert_int_equal(open->ends[1].last_down.code, LEAT_E_STARTING);
}

struct fencing {
    struct end *end;
    const char *name;
    uint64_t incarnation;
};
static void fence_now(void *arg)
{
    struct fencing *fencing = arg;
    assert_int_equal(leat_links_fence(fencing->end->links, fencing->name, fencing->incarnation),
                     LEAT_OK);
}

/* A fenced incarnation is cut off at once and stays out; its successor is welcome. */
static void link_fenced_incarnation_is_cut_and_stays_out(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    struct fencing fencing = {&right->ends[0], "left", 11};
    assert_true(sim_process_enter(right->process, fence_now, &fencing));
    run(3 * SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(left->ends[0].downs, 1);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_STALE_EPOCH);
    assert_null(right->ends[0].accepted);
    sim_process_die(left->process, SIM_DEATH_KILL);
    struct node *again = node_make(
        (struct setup){.name = "left", .address = "left:1", .cluster = 7, .incarnation = 14});
    open_with(again, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    assert_int_equal(again->ends[0].ups, 1);
}

/* Goal: this node has fenced the peer, and the link to that peer does not fail with STALE_EPOCH: on a link that this
 * node opened, that code means that the peer has fenced this node. */
static void link_to_a_fenced_peer_is_not_refused_by_it(void **state)
{
    (void)state;
    struct fencing fencing = {&left->ends[0], "right", 1000};
    assert_true(sim_process_enter(left->process, fence_now, &fencing));
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    assert_int_equal(left->ends[0].ups, 0);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_NOT_FOUND);
}

/* A peer that dies: calls end with CLOSED exactly once; when it is back so is the link. */
static void link_lost_fails_calls_and_comes_back(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    struct caller held = {
        .call = {.kind = KIND_HOLD, .control = words, .control_bytes = sizeof words}};
    call_start(left, 0, &held);
    run(SECOND);
    assert_int_equal(held.done, 0);
    assert_int_equal(right->ends[0].held_count, 1);
    sim_process_die(right->process, SIM_DEATH_KILL);
    run(2 * SECOND);
    assert_int_equal(held.done, 1);
    assert_int_equal(held.rc, LEAT_E_CLOSED);
    assert_int_equal(left->ends[0].downs, 1);
    assert_true(left->ends[0].downs_unborn > 2);
    struct caller refused = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(left, 0, &refused);
    assert_int_equal(refused.started, LEAT_E_CLOSED);
    struct node *again = node_make(
        (struct setup){.name = "right", .address = "right:1", .cluster = 7, .incarnation = 15});
    run(3 * SECOND);
    assert_int_equal(left->ends[0].ups, 2);
    assert_int_equal(leat_link_peer(left->ends[0].link)->incarnation, 15);
    assert_int_equal(held.done, 1);
    (void)again;
}

/* A machine without power says nothing: silence ends the link within its bound, and a call's own
 * time limit ends the call before. */
static void link_silent_peer_is_cut(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    struct caller limited = {.call = {.kind = KIND_HOLD,
                                      .control = words,
                                      .control_bytes = sizeof words,
                                      .timeout_us = 300 * 1000}};
    struct caller unlimited = {
        .call = {.kind = KIND_HOLD, .control = words, .control_bytes = sizeof words}};
    right->process->cut_off_until_us = world->now_us + 60 * SECOND;
    call_start(left, 0, &limited);
    call_start(left, 0, &unlimited);
    run(SECOND);
    assert_int_equal(limited.done, 1);
    assert_int_equal(limited.rc, LEAT_E_TIMEOUT);
    assert_int_equal(unlimited.done, 0);
    assert_int_equal(left->ends[0].downs, 0);
    run(2 * SECOND);
    assert_int_equal(unlimited.done, 1);
    assert_int_equal(unlimited.rc, LEAT_E_CLOSED);
    assert_int_equal(left->ends[0].downs, 1);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_TIMEOUT);
    assert_int_equal(right->ends[0].downs, 1); /* the other side noticed too */
}

/* Idle links stay up by pings alone. */
static void link_idle_stays_up(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(120 * SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(left->ends[0].downs, 0);
    assert_int_equal(right->ends[0].downs, 0);
}

/* Answers may come in any order and long after; a late one after its call's time is no harm. */
static void link_answers_late_and_reversed_find_their_calls(void **state)
{
    (void)state;
    enum { CALLS = 200 };
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    static struct caller callers[CALLS];
    static uint8_t bodies[CALLS][4];
    memset(callers, 0, sizeof callers);
    for (unsigned i = 0; i < CALLS; i++) {
        memcpy(bodies[i], &i, sizeof i);
        callers[i].call = (struct leat_link_call){.kind = KIND_HOLD,
                                                  .control = bodies[i],
                                                  .control_bytes = 4,
                                                  .timeout_us = i % 10 == 3 ? 1000 : 0};
        call_start(left, 0, &callers[i]);
    }
    run(SECOND);
    struct end *far = &right->ends[0];
    assert_int_equal(far->held_count, CALLS);
    for (unsigned i = CALLS; i-- > 0;) {
        uint8_t body[4];
        memcpy(body, &i, sizeof i);
        /* No events run in between, so entering for each is the same as a turn. */
        right->process->world->entered = right->process;
        leat_link_answer(far->links, &far->held[i], body, 4);
        right->process->world->entered = NULL;
    }
    run(SECOND);
    struct caller last = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(left, 0, &last);
    struct caller back = {
        .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
    call_start(right, 0, &back); /* its turn's end sends what was answered above */
    run(SECOND);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(callers[i].done, 1);
        assert_int_equal(callers[i].rc, i % 10 == 3 ? LEAT_E_TIMEOUT : LEAT_OK);
        if (i % 10 != 3) assert_true(callers[i].matched);
    }
    assert_true(last.matched);
    assert_int_equal(left->ends[0].downs, 0);
}

/* Too many calls, too many bytes, too large: refused by name, nothing else harmed. */
static void link_limits_refuse_by_name(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    static struct caller callers[LEAT_LINK_CALLS_MAX + 1];
    memset(callers, 0, sizeof callers);
    for (unsigned i = 0; i <= LEAT_LINK_CALLS_MAX; i++) {
        callers[i].call = (struct leat_link_call){
            .kind = KIND_HOLD, .control = words, .control_bytes = sizeof words};
        call_start(left, 0, &callers[i]);
        assert_int_equal(callers[i].started, i < LEAT_LINK_CALLS_MAX ? LEAT_OK : LEAT_E_AGAIN);
    }
    static uint8_t large[LEAT_FRAME_BYTES_MAX];
    static struct caller heavy[16];
    memset(heavy, 0, sizeof heavy);
    struct leat_link_options accepted = {.address = "right:1", .to_actor = 1};
    open_with(left, 1, accepted);
    run(SECOND);
    unsigned again = 0;
    for (unsigned i = 0; i < 16; i++) {
        heavy[i].iov[0] = (struct leat_iov){large, i == 0 ? sizeof large : sizeof large / 2};
        heavy[i].call = (struct leat_link_call){.kind = KIND_ECHO,
                                                .control = words,
                                                .control_bytes = sizeof words,
                                                .payload = heavy[i].iov,
                                                .payload_count = 1};
        call_start(left, 1, &heavy[i]);
        if (i == 0) assert_int_equal(heavy[i].started, LEAT_E_TOO_LARGE);
        if (heavy[i].started == LEAT_E_AGAIN) again++;
    }
    assert_int_equal(again, 0); /* 60 of 64 MiB */
    for (unsigned i = 0; i < 2; i++) {
        static struct caller more[2];
        more[i] = (struct caller){.call = heavy[1].call};
        call_start(left, 1, &more[i]);
        assert_int_equal(more[i].started, i == 0 ? LEAT_E_AGAIN : LEAT_E_AGAIN);
    }
    run(30 * SECOND);
    for (unsigned i = 1; i < 16; i++)
        assert_true(heavy[i].matched);
    assert_int_equal(left->ends[1].downs, 0);
}

struct closing {
    struct end *end;
};
static void close_now(void *arg)
{
    leat_link_close(&((struct closing *)arg)->end->link);
}
static void destroy_now(void *arg)
{
    struct end *end = arg;
    end->link = NULL;
    leat_links_destroy(&end->links);
}

/* Closing a link, or all of them, ends calls with CANCELLED and tells nobody else anything. */
static void link_closed_cancels_calls(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        open_with(left, i, (struct leat_link_options){.address = "right:1"});
        run(SECOND);
        struct caller held = {
            .call = {.kind = KIND_HOLD, .control = words, .control_bytes = sizeof words}};
        call_start(left, i, &held);
        run(SECOND);
        struct closing closing = {&left->ends[i]};
        if (i == 0)
            assert_true(sim_process_enter(left->process, close_now, &closing));
        else
            assert_true(sim_process_enter(left->process, destroy_now, &left->ends[i]));
        run(SECOND);
        assert_int_equal(held.done, 1);
        assert_int_equal(held.rc, LEAT_E_CANCELLED);
        assert_int_equal(left->ends[i].downs, 0);
        assert_null(right->ends[0].accepted);
        /* The answer comes too late for anybody. */
        right->process->world->entered = right->process;
        leat_link_answer(right->ends[0].links, &right->ends[0].held[i], words, sizeof words);
        right->process->world->entered = NULL;
        run(SECOND);
    }
}

/* Under resets, partitions and restarts for many seeds: messages of one connection keep their
 * order, every call that started ends exactly once, and in the end the link works. */
static void link_under_faults_keeps_order_and_ends_calls(void **state)
{
    (void)state;
    enum { ROUNDS = 40, CALLS = 20, SEEDS = 60 };
    static struct caller callers[ROUNDS][CALLS];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        teardown_world(NULL);
        world = sim_world_create(1000 + seed, false);
        left = node_make(
            (struct setup){.name = "left", .address = "left:1", .cluster = 7, .incarnation = 11});
        right = node_make(
            (struct setup){.name = "right", .address = "right:1", .cluster = 7, .incarnation = 12});
        memset(callers, 0, sizeof callers);
        open_with(left, 0, (struct leat_link_options){.address = "right:1"});
        for (unsigned i = 0; i < ROUNDS; i++) {
            for (unsigned c = 0; c < CALLS; c++) {
                struct caller *caller = &callers[i][c];
                bool hold = sim_rng_chance(&world->work, 200);
                caller->call = (struct leat_link_call){
                    .kind = hold ? KIND_HOLD : KIND_ECHO,
                    .control = words,
                    .control_bytes = sizeof words,
                    .timeout_us = sim_rng_chance(&world->work, 500) ? 20000 : 0};
                call_start(left, 0, caller);
            }
            switch (sim_rng_below(&world->fault, 6)) {
            case 0:
                sim_net_reset(right->process, 700);
                break;
            case 1:
                right->process->cut_off_until_us =
                    world->now_us + sim_rng_below(&world->fault, 4 * SECOND);
                break;
            case 2:
                right->process->paused_until_us =
                    world->now_us + sim_rng_below(&world->fault, 3 * SECOND);
                break;
            default:
                break;
            }
            run(sim_rng_below(&world->fault, SECOND / 2));
        }
        run(20 * SECOND);
        assert_true(leat_link_is_up(left->ends[0].link));
        sim_net_reset(right->process, 1000);
        run(10 * SECOND); /* what was held ends with its connection */
        for (unsigned i = 0; i < ROUNDS; i++)
            for (unsigned c = 0; c < CALLS; c++)
                assert_int_equal(callers[i][c].done, callers[i][c].started == LEAT_OK);
        struct caller last = {
            .call = {.kind = KIND_ECHO, .control = words, .control_bytes = sizeof words}};
        call_start(left, 0, &last);
        assert_int_equal(last.started, LEAT_OK);
        run(SECOND);
        assert_true(last.matched);
    }
}

struct telling {
    struct end *end;
    uint64_t number;
    leat_err rc;
};
static void tell_now(void *arg)
{
    struct telling *telling = arg;
    telling->rc =
        leat_link_tell(telling->end->link, KIND_COUNT, &telling->number, sizeof telling->number);
}

/* One-way messages arrive once each, in order. */
static void link_tells_arrive_in_order(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    for (uint64_t i = 0; i < 5000; i++) {
        struct telling telling = {&left->ends[0], i, LEAT_OK};
        assert_true(sim_process_enter(left->process, tell_now, &telling));
        assert_int_equal(telling.rc, LEAT_OK);
        if (i % 100 == 0) run(100);
    }
    run(5 * SECOND);
    assert_int_equal(right->ends[0].counted, 5000);
    assert_false(right->ends[0].out_of_order);
}

/* Goal: what a peer sent over an earlier connection of its link reaches nobody, once the link's next connection is up;
 * connections of other links stay. */
static void link_earlier_connections_say_nothing(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    open_with(left, 1, (struct leat_link_options){.address = "right:1", .to_actor = 0});
    run(SECOND);
    struct end *far = &right->ends[0];
    assert_int_equal(far->ups, 2);
    sim_net_late(left->process, 1000, world->now_us + SECOND);
    struct telling late = {&left->ends[0], 7, LEAT_OK};
    assert_true(sim_process_enter(left->process, tell_now, &late));
    assert_int_equal(late.rc, LEAT_OK);
    run(8 * SECOND);
    assert_int_equal(left->ends[0].ups, 2);
    assert_int_equal(far->ups, 4);
    assert_int_equal(far->counted, 0);
    assert_int_equal(far->downs, 2);
    for (uint64_t i = 0; i < 2; i++) {
        struct telling telling = {&left->ends[i], i, LEAT_OK};
        assert_true(sim_process_enter(left->process, tell_now, &telling));
        assert_int_equal(telling.rc, LEAT_OK);
        run(SECOND);
        assert_int_equal(far->counted, i + 1);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup_world, teardown_world)
    const struct CMUnitTest tests[] = {
        T(link_up_calls_both_ways),
        T(link_refused_says_why),
        T(link_strangers_meet_where_allowed),
        T(link_fenced_incarnation_is_cut_and_stays_out),
        T(link_to_a_fenced_peer_is_not_refused_by_it),
        T(link_lost_fails_calls_and_comes_back),
        T(link_silent_peer_is_cut),
        T(link_idle_stays_up),
        T(link_answers_late_and_reversed_find_their_calls),
        T(link_limits_refuse_by_name),
        T(link_closed_cancels_calls),
        T(link_under_faults_keeps_order_and_ends_calls),
        T(link_tells_arrive_in_order),
        T(link_earlier_connections_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
