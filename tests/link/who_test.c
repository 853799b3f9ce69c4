/* SPDX-License-Identifier: Apache-2.0 */
/* Which peers are let in, compared with a model of the rule, and when a link, a call or a pause ends. */
#include "tests/link/rig.h"

static const uint8_t words[] = "a question";

static void world_again(void)
{
    static uint64_t seed = 1000;
    sim_world_destroy(&world);
    world = sim_world_create(seed++, false);
}

/* ---- who is let in ---- */

struct side {
    uint8_t cluster;
    uint64_t incarnation;
    bool strangers;
};

static leat_err expected(const struct side *opener, const struct side *acceptor)
{
    if (opener->cluster && acceptor->cluster && opener->cluster != acceptor->cluster)
        return LEAT_E_WRONG_CLUSTER;
    bool known =
        opener->cluster && acceptor->cluster && opener->incarnation && acceptor->incarnation;
    return known || (opener->strangers && acceptor->strangers) ? LEAT_OK : LEAT_E_STARTING;
}

static void link_lets_in_whom_both_sides_let_in(void **state)
{
    (void)state;
    static const uint8_t clusters[] = {0, 7, 8};
    for (unsigned i = 0; i < 96; i++) {
        struct side opener = {clusters[i % 3], i / 3 % 2 ? 11 : 0, i / 6 % 2},
                    acceptor = {i / 12 % 2 ? 7 : 0, i / 24 % 2 ? 12 : 0, i / 48 % 2};
        world_again();
        left = node_make((struct setup){.name = "left",
                                        .address = "left:1",
                                        .cluster = opener.cluster,
                                        .incarnation = opener.incarnation});
        right = node_make((struct setup){.name = "right",
                                         .address = "right:1",
                                         .cluster = acceptor.cluster,
                                         .incarnation = acceptor.incarnation,
                                         .strangers = acceptor.strangers});
        open_with(left, 0,
                  (struct leat_link_options){.address = "right:1", .stranger = opener.strangers});
        run(SECOND / 4);
        leat_err rc = expected(&opener, &acceptor);
        if ((left->ends[0].ups > 0) != (rc == LEAT_OK)) fail_msg("case %u", i);
        assert_int_equal(left->ends[0].ups, rc == LEAT_OK);
        if (rc != LEAT_OK) assert_int_equal(left->ends[0].last_down.code, rc);
        if (rc != LEAT_OK) continue;
        const struct leat_link_identity *peer = leat_link_peer(left->ends[0].link);
        assert_string_equal(peer->node, "right");
        assert_int_equal(peer->incarnation, acceptor.incarnation);
        assert_int_equal(peer->cores, CORES);
        peer = leat_link_peer(right->ends[0].accepted);
        assert_string_equal(peer->node, "left");
        assert_int_equal(peer->incarnation, opener.incarnation);
    }
}

static void link_opened_to_somebody_else_does_not_come_up(void **state)
{
    (void)state;
    const struct {
        const char *node;
        uint64_t incarnation;
        bool up;
    } cases[] = {{"right", 12, true}, {"right", 0, true},   {NULL, 12, true},
                 {"righ", 12, false}, {"right", 11, false}, {"right", 13, false}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_with(left, 0,
                  (struct leat_link_options){.address = "right:1",
                                             .expect_node = cases[i].node,
                                             .expect_incarnation = cases[i].incarnation});
        unsigned ups = left->ends[0].ups;
        run(SECOND / 4);
        assert_int_equal(left->ends[0].ups - ups, cases[i].up);
        if (!cases[i].up) assert_int_equal(left->ends[0].last_down.code, LEAT_E_NOT_FOUND);
    }
}

/* The names are written into the node log. */
static void link_names_of_nodes_are_checked(void **state)
{
    (void)state;
    const struct {
        const char *name;
        bool up;
    } names[] = {{"n", true},      {"a b", true},     {"", false},       {"\x01n", false},
                 {"n\x1f", false}, {"n\x7fn", false}, {"\xc3\xbc", true}};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        world_again();
        left = node_make((struct setup){
            .name = names[i].name, .address = "left:1", .cluster = 7, .incarnation = 11});
        right = node_make((struct setup){.name = "right",
                                         .address = "right:1",
                                         .cluster = 7,
                                         .incarnation = 12,
                                         .strangers = true});
        open_with(left, 0, (struct leat_link_options){.address = "right:1", .stranger = true});
        run(SECOND / 4);
        assert_int_equal(left->ends[0].ups, names[i].up);
        if (!names[i].up) assert_int_equal(left->ends[0].last_down.code, LEAT_E_INVALID);
    }
}

static leat_err opened;
static void open_only(void *arg)
{
    struct leat_link_options *options = arg;
    options->handler = &left->ends[0].handler;
    opened = leat_link_open(left->ends[0].links, options, &left->ends[0].link, NULL);
}

static leat_err open_rc(struct leat_link_options options)
{
    assert_true(sim_process_enter(left->process, open_only, &options));
    return opened;
}

static void link_is_opened_for_a_purpose_at_an_address(void **state)
{
    (void)state;
    char longest[LEAT_LINK_ADDRESS_BYTES_MAX + 2];
    memset(longest, 'a', sizeof longest);
    memcpy(longest + sizeof longest - 3, ":1", 3); /* one more than may be */
    const unsigned serve = LEAT_LINK_SERVE;
    assert_int_equal(open_rc((struct leat_link_options){.address = "right", .purpose = serve}),
                     LEAT_E_INVALID);
    assert_int_equal(open_rc((struct leat_link_options){.address = longest, .purpose = serve}),
                     LEAT_E_INVALID);
    assert_int_equal(open_rc((struct leat_link_options){.address = longest + 1, .purpose = serve}),
                     LEAT_OK);
    assert_int_equal(leat_link_readdress(left->ends[0].link, longest), LEAT_E_INVALID);
    assert_int_equal(leat_link_readdress(left->ends[0].link, "right"), LEAT_E_INVALID);
    assert_int_equal(leat_link_readdress(left->ends[0].link, "right:1"), LEAT_OK);
    run(SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(open_rc((struct leat_link_options){.address = "right:1"}), LEAT_E_INVALID);
    assert_int_equal(
        open_rc((struct leat_link_options){.address = "right:1", .purpose = LEAT_LINK_PURPOSES}),
        LEAT_E_INVALID);
    assert_int_equal(
        open_rc((struct leat_link_options){.address = "right:1", .purpose = LEAT_LINK_REPLICATE}),
        LEAT_OK);
    run(SECOND);
    assert_int_equal(left->ends[0].ups, 1);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_UNSUPPORTED); /* nobody serves that */
}

static void link_comes_to_the_core_that_it_is_for(void **state)
{
    (void)state;
    const unsigned to[] = {0, 1, 2, 4, 5};
    for (unsigned i = 0; i < sizeof to / sizeof *to; i++) {
        struct end *end = &right->ends[to[i] % CORES];
        unsigned ups = end->ups;
        open_with(left, 0, (struct leat_link_options){.address = "right:1", .to_actor = to[i]});
        run(SECOND / 4);
        assert_int_equal(end->ups, ups + 1);
        assert_int_equal(left->ends[0].ups, i + 1);
    }
    open_with(left, 1,
              (struct leat_link_options){.address = "right:1", .to_actor = LEAT_ACTOR_COORDINATOR});
    run(SECOND / 4);
    assert_int_equal(left->ends[1].ups, 0);
    assert_int_equal(left->ends[1].last_down.code, LEAT_E_STARTING);
}

/* ---- fences ---- */

struct fencing {
    struct end *end;
    const char *name;
    uint64_t incarnation;
    leat_err rc;
};
static void fence_now(void *arg)
{
    struct fencing *fencing = arg;
    fencing->rc = leat_links_fence(fencing->end->links, fencing->name, fencing->incarnation);
}
static leat_err fence(struct node *node, const char *name, uint64_t incarnation)
{
    struct fencing fencing = {&node->ends[0], name, incarnation, LEAT_OK};
    assert_true(sim_process_enter(node->process, fence_now, &fencing));
    return fencing.rc;
}

/* A fence covers one node, up to an incarnation; the incarnation never goes back, and a peer that is not up yet has no
 * incarnation. */
static void link_fence_is_for_incarnations_up_to_one(void **state)
{
    (void)state;
    for (uint64_t incarnation = 9; incarnation <= 12; incarnation++) {
        for (unsigned late = 0; late < 2; late++) {
            world_again();
            left = node_make((struct setup){.name = "left",
                                            .address = "left:1",
                                            .cluster = 7,
                                            .incarnation = incarnation == 9 ? 0 : incarnation});
            right = node_make((struct setup){.name = "right",
                                             .address = "right:1",
                                             .cluster = 7,
                                             .incarnation = 12,
                                             .strangers = true});
            struct leat_link_options options = {.address = "right:1", .stranger = true};
            if (late) open_with(left, 0, options);
            run(SECOND / 4);
            assert_int_equal(left->ends[0].ups, late);
            assert_int_equal(fence(right, "lef", 100), LEAT_OK);
            assert_int_equal(fence(right, "left", 11), LEAT_OK);
            assert_int_equal(fence(right, "left", 5), LEAT_OK);
            if (!late) open_with(left, 0, options);
            run(SECOND / 4);
            bool out = incarnation == 10 || incarnation == 11;
            assert_int_equal(left->ends[0].ups, late || !out);
            assert_int_equal(left->ends[0].downs, late && out);
            assert_int_equal(right->ends[0].accepted == NULL, out);
            if (out) assert_int_equal(left->ends[0].last_down.code, LEAT_E_STALE_EPOCH);
        }
    }
}

static void link_fences_have_a_limit_and_forget_none(void **state)
{
    (void)state;
    char name[16];
    for (unsigned i = 0; i < LEAT_LINK_FENCES_MAX; i++) {
        snprintf(name, sizeof name, "node-%u", i);
        assert_int_equal(fence(right, name, 3), LEAT_OK);
    }
    assert_int_equal(fence(right, "left", 11), LEAT_E_TOO_MANY);
    assert_int_equal(fence(right, "node-0", 11), LEAT_OK); /* one that is there grows */
    struct node *first = node_make(
        (struct setup){.name = "node-0", .address = "first:1", .cluster = 7, .incarnation = 11});
    open_with(first, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND / 4);
    assert_int_equal(first->ends[0].ups, 0);
    assert_int_equal(first->ends[0].last_down.code, LEAT_E_STALE_EPOCH);
}

/* ---- a node that learns who it is ---- */

static void identity_now(void *arg)
{
    struct leat_link_identity identity = *leat_links_identity(left->ends[0].links);
    memset(identity.cluster_id, *(uint8_t *)arg, sizeof identity.cluster_id);
    leat_links_identity_set(left->ends[0].links, &identity);
}

static void link_of_another_cluster_is_cut_when_a_node_joins_one(void **state)
{
    (void)state;
    for (unsigned peer = 0; peer <= 7; peer += 7) {
        for (unsigned joins = 0; joins < 3; joins++) {
            world_again();
            left = node_make((struct setup){
                .name = "left", .address = "left:1", .incarnation = 11, .strangers = true});
            right = node_make((struct setup){.name = "right",
                                             .address = "right:1",
                                             .cluster = (uint8_t)peer,
                                             .incarnation = 12,
                                             .strangers = true});
            open_with(left, 0, (struct leat_link_options){.address = "right:1", .stranger = true});
            run(SECOND / 4);
            assert_int_equal(left->ends[0].ups, 1);
            uint8_t cluster = joins == 0 ? 0 : joins == 1 ? 7 : 8;
            assert_true(sim_process_enter(left->process, identity_now, &cluster));
            run(SECOND / 4);
            bool other = peer == 7 && cluster == 8;
            assert_int_equal(left->ends[0].downs, other);
            if (other) assert_int_equal(left->ends[0].last_down.code, LEAT_E_WRONG_CLUSTER);
        }
    }
}

/* ---- time ---- */

static void until(uint64_t at_us)
{
    if (at_us > world->now_us) run(at_us - world->now_us);
}

/* Nothing heard for two seconds, counted from the last word. */
static void link_is_cut_two_seconds_after_the_last_word(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    right->process->cut_off_until_us = world->now_us + 60 * SECOND;
    run(SECOND / 100);
    uint64_t heard_us = leat_link_heard_us(left->ends[0].link);
    assert_true(heard_us + SECOND > world->now_us);
    until(heard_us + 2 * SECOND - 1000);
    assert_int_equal(left->ends[0].downs, 0);
    until(heard_us + 2 * SECOND + 1000);
    assert_int_equal(left->ends[0].downs, 1);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_TIMEOUT);
    /* An attempt that nobody answers ends as late. */
    unsigned unborn = left->ends[0].downs_unborn;
    uint64_t began_us = world->now_us;
    run(2 * SECOND - SECOND / 20);
    assert_int_equal(left->ends[0].downs_unborn, unborn);
    until(began_us + 2 * SECOND + SECOND / 10);
    assert_int_equal(left->ends[0].downs_unborn, unborn + 1);
    assert_int_equal(left->ends[0].last_down.code, LEAT_E_TIMEOUT);
}

/* An idle link asks after half a second, and no more often. */
static void link_asks_after_half_a_second_of_silence(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    uint64_t heard_us = leat_link_heard_us(left->ends[0].link), longest_us = 0;
    unsigned words_heard = 0;
    for (unsigned ms = 0; ms < 10000; ms++) {
        run(1000);
        uint64_t now_heard_us = leat_link_heard_us(left->ends[0].link);
        if (now_heard_us == heard_us) continue;
        words_heard++;
        if (now_heard_us - heard_us > longest_us) longest_us = now_heard_us - heard_us;
        heard_us = now_heard_us;
    }
    assert_true(longest_us >= SECOND / 2 - 10000 && longest_us <= SECOND / 2 + 50000);
    assert_in_range(words_heard, 18,
                    42); /* one word of each side, or an answer, each half second */
}

/* The pause doubles from 20 ms to a second, a random half of it taken off; word of the peer ends it. */
static void link_tries_again_after_a_pause_that_doubles(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "nobody:1"});
    uint64_t before_us = 0, least_us = UINT64_MAX, most_us = 0;
    for (unsigned attempt = 0; attempt < 40; attempt++) {
        for (unsigned unborn = left->ends[0].downs_unborn; left->ends[0].downs_unborn == unborn;)
            run(500);
        uint64_t took_us = world->now_us - before_us;
        before_us = world->now_us;
        if (attempt == 0) continue;
        uint64_t pause_us = attempt - 1 < 6 ? (uint64_t)20000 << (attempt - 1) : SECOND;
        if (took_us < pause_us / 2 || took_us > pause_us + 20000)
            fail_msg("attempt %u after %u us", attempt, (unsigned)took_us);
        if (pause_us < SECOND) continue;
        if (took_us < least_us) least_us = took_us;
        if (took_us > most_us) most_us = took_us;
    }
    assert_true(least_us < SECOND * 6 / 10 && most_us > SECOND * 9 / 10);
    unsigned unborn = left->ends[0].downs_unborn;
    run(100000);
    assert_int_equal(left->ends[0].downs_unborn, unborn);
    left->process->world->entered = left->process;
    leat_link_retry(left->ends[0].link);
    left->process->world->entered = NULL;
    run(SECOND);
    assert_true(left->ends[0].downs_unborn >= unborn + 5); /* from 20 ms on again */
}

/* A call's time, to the millisecond. */
static void link_call_ends_when_its_time_is_over(void **state)
{
    (void)state;
    open_with(left, 0, (struct leat_link_options){.address = "right:1"});
    run(SECOND);
    const uint64_t times_us[] = {100000, 250000, 1500000};
    static struct caller calls[3];
    uint64_t began_us = world->now_us;
    for (unsigned i = 0; i < 3; i++) {
        calls[i] = (struct caller){.call = {.kind = KIND_HOLD,
                                            .control = words,
                                            .control_bytes = sizeof words,
                                            .timeout_us = times_us[2 - i]}};
        call_start(left, 0, &calls[i]);
    }
    for (unsigned i = 3; i-- > 0;) {
        until(began_us + times_us[2 - i] - 1000);
        assert_int_equal(calls[i].done, 0);
        until(began_us + times_us[2 - i] + 1000);
        assert_int_equal(calls[i].done, 1);
        assert_int_equal(calls[i].rc, LEAT_E_TIMEOUT);
    }
    assert_int_equal(left->ends[0].downs, 0);
}

int main(void)
{
#define WORLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup_world, teardown_world)
    const struct CMUnitTest tests[] = {
        WORLD_TEST(link_lets_in_whom_both_sides_let_in),
        WORLD_TEST(link_names_of_nodes_are_checked),
        WORLD_TEST(link_opened_to_somebody_else_does_not_come_up),
        WORLD_TEST(link_is_opened_for_a_purpose_at_an_address),
        WORLD_TEST(link_comes_to_the_core_that_it_is_for),
        WORLD_TEST(link_fence_is_for_incarnations_up_to_one),
        WORLD_TEST(link_fences_have_a_limit_and_forget_none),
        WORLD_TEST(link_of_another_cluster_is_cut_when_a_node_joins_one),
        WORLD_TEST(link_is_cut_two_seconds_after_the_last_word),
        WORLD_TEST(link_asks_after_half_a_second_of_silence),
        WORLD_TEST(link_tries_again_after_a_pause_that_doubles),
        WORLD_TEST(link_call_ends_when_its_time_is_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
