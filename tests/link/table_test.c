/* SPDX-License-Identifier: Apache-2.0 */
/* link/links.c, life.c and fences.c alone, the table: making links and ending them, who is fenced, of which cluster a
 * node is; each bound and each allocation that fails. */
#include "tests/link/links_alone.h"

/* Goal: each option that is not given has its default, and each option that is given is kept. */
static void links_are_made_as_they_are_asked_for(void **state)
{
    (void)state;
    struct leat_link_hub hub = {{NULL}};
    struct leat_timers timers = {0};
    struct leat_links_options options = {.env = &env, .key = &key, .timers = &timers, .hub = &hub};
    leat_mem_fail_at(1);
    assert_int_equal(leat_links_create(&options, &links, &error), LEAT_E_NO_MEMORY);
    assert_string_equal(error.text, "no memory for links");
    assert_int_equal(leat_links_create(&options, &links, &error), LEAT_OK);
    assert_ptr_equal(atomic_load(&hub.by_actor[2]), links);
    assert_ptr_equal(links->env, &env);
    assert_ptr_equal(links->key, &key);
    assert_ptr_equal(links->timers, &timers);
    assert_ptr_equal(links->hub, &hub);
    assert_int_equal(links->ping_us, LINK_PING_US);
    assert_int_equal(links->silence_us, LINK_SILENCE_US);
    assert_int_equal(links->retry_us_min, LINK_RETRY_US_MIN);
    assert_int_equal(links->retry_us_max, LINK_RETRY_US_MAX);
    assert_int_equal(links->queued_bytes_max, LEAT_LINK_QUEUED_BYTES_MAX);
    assert_int_equal(links->strangers_max, LEAT_LINK_STRANGERS_MAX);
    assert_true(links->next_us == UINT64_MAX);
    assert_true(leat_list_empty(&links->strangers));
    struct leat_links *at = links;
    leat_links_destroy(&at);
    links = NULL;
    assert_null(at);
    assert_null(atomic_load(&hub.by_actor[2]));
    TRACE_IS("no timer\nslots\n");
    leat_links_destroy(&at); /* none */
    TRACE_IS("");
    options.ping_us = 1;
    options.silence_us = 2;
    options.retry_us_min = 3;
    options.retry_us_max = 4;
    options.queued_bytes_max = 5;
    options.strangers_max = LEAT_LINK_STRANGERS_MIN;
    options.identity.incarnation = 6;
    options.services[LEAT_LINK_SERVE].handler = &handler;
    assert_int_equal(leat_links_create(&options, &links, &error), LEAT_OK);
    assert_int_equal(links->ping_us, 1);
    assert_int_equal(links->silence_us, 2);
    assert_int_equal(links->retry_us_min, 3);
    assert_int_equal(links->retry_us_max, 4);
    assert_int_equal(links->queued_bytes_max, 5);
    assert_int_equal(links->strangers_max, LEAT_LINK_STRANGERS_MIN);
    assert_int_equal(leat_links_identity(links)->incarnation, 6);
    assert_ptr_equal(links->services[LEAT_LINK_SERVE].handler, &handler);
    leat_links_destroy(&links);
}

/* Goal: a link opens later, for the purpose of its options; the link gets the first free slot and a new number. */
static void open_takes_the_first_free_place(void **state)
{
    (void)state;
    struct leat_link *all[17], *again = NULL;
    creates();
    for (unsigned i = 0; i < 17; i++) {
        assert_int_equal(opens("host:1", LEAT_LINK_SERVE, i ? NULL : "n", &all[i]), LEAT_OK);
        assert_int_equal(all[i]->slot, i);
        assert_int_equal(all[i]->connection, i + 1);
        assert_ptr_equal(links->table[i], all[i]);
        assert_int_equal(links->table_capacity, i < 16 ? 16 : 32);
        assert_true((uintptr_t)links->table[links->table_capacity] == UINTPTR_MAX);
        TRACE_IS(i ? "" : "timer 0\n");
    }
    for (unsigned i = 17; i < 32; i++)
        assert_null(links->table[i]);
    const struct leat_link *link = all[0];
    assert_ptr_equal(link->handler, &handler);
    assert_int_equal(link->purpose, LEAT_LINK_SERVE);
    assert_int_equal(link->to_actor, 5);
    assert_true(link->stranger && !link->accepted && !link->net);
    assert_int_equal(link->expect_incarnation, 9);
    assert_string_equal(link->expect_node, "n");
    assert_null(all[1]->expect_node);
    assert_string_equal(link->address, "host:1");
    assert_int_equal(link->state, LINK_WAITING);
    assert_int_equal(link->try_at_us, 10000);
    assert_int_equal(link->since_us, 10000);
    assert_int_equal(link->heard_us, 10000);
    assert_ptr_equal(link->links, links);
    assert_true(leat_list_empty(&link->calls) && leat_list_empty(&link->strange));
    assert_int_equal(links->count, 17);
    leat_link_close(&all[3]);
    assert_null(all[3]);
    assert_null(links->table[3]);
    assert_int_equal(links->count, 16);
    assert_int_equal(opens("host:1", 1, NULL, &again), LEAT_OK);
    assert_int_equal(again->slot, 3);
    assert_int_equal(again->connection, 18);
    leat_link_close(&all[3]); /* none */
    assert_int_equal(links->count, 17);
}

/* Goal: a link that can't be opened is refused with the reason, at each bound, and leaves nothing behind. */
static void open_refuses_by_name(void **state)
{
    (void)state;
    struct leat_link *link = NULL;
    char address[140], text[200];
    creates();
    memset(address, 'h', sizeof address);
    memcpy(address, "x:", 2);
    address[128] = 0;
    assert_int_equal(opens(address, 1, NULL, &link), LEAT_E_INVALID);
    snprintf(text, sizeof text, "\"%.100s\" is not HOST:PORT", address);
    assert_string_equal(error.text, text);
    assert_int_equal(opens("host", 1, NULL, &link), LEAT_E_INVALID);
    assert_string_equal(error.text, "\"host\" is not HOST:PORT");
    for (unsigned i = 0; i < 2; i++) {
        unsigned purpose = i ? LEAT_LINK_PURPOSES : 0;
        assert_int_equal(opens("h:1", purpose, NULL, &link), LEAT_E_INVALID);
        snprintf(text, sizeof text, "a link has no purpose %u", purpose);
        assert_string_equal(error.text, text);
    }
    for (unsigned n = 0; n < 3; n++) { /* the table, the link, and, as there is a table, the name */
        leat_mem_fail_at(n == 0 ? 1 : 2);
        assert_int_equal(opens("h:1", 1, "n", &link), LEAT_E_NO_MEMORY);
        assert_string_equal(error.text, "no memory for a link");
        assert_int_equal(links->count, 0);
    }
    leat_mem_fail_at(0);
    links->count = LEAT_LINKS_MAX + 3;
    links->stranger_count = 3;
    assert_int_equal(opens("h:1", 1, NULL, &link), LEAT_E_TOO_MANY);
    assert_string_equal(error.text, "more than 1024 links");
    links->stranger_count = 4;
    address[127] = 0;
    assert_int_equal(opens(address, LEAT_LINK_PURPOSES - 1, NULL, &link), LEAT_OK);
    assert_string_equal(link->address, address);
    links->count = LEAT_LINKS_MAX + LINK_ENDING_MAX;
    links->stranger_count = LINK_ENDING_MAX + 1;
    assert_int_equal(opens("h:1", 1, NULL, &link), LEAT_E_NO_MEMORY);
    assert_null(leat_link_make(links));
    links->count--;
    struct leat_link *last = leat_link_make(links);
    assert_non_null(last);
    links->count = 2;
    links->stranger_count = 0;
    links->closing = true;
    assert_null(leat_link_make(links));
    links->closing = false;
}

/* Goal: another address is for the next attempt; what is none changes nothing. */
static void readdress_takes_addresses_only(void **state)
{
    (void)state;
    char address[140];
    creates();
    struct leat_link *link = in_state(LINK_UP);
    memset(address, 'h', sizeof address);
    memcpy(address, "x:", 2);
    address[128] = 0;
    assert_int_equal(leat_link_readdress(link, address), LEAT_E_INVALID);
    assert_int_equal(leat_link_readdress(link, "host"), LEAT_E_INVALID);
    assert_string_equal(leat_link_address(link), "h:1");
    address[127] = 0;
    assert_int_equal(leat_link_readdress(link, address), LEAT_OK);
    assert_string_equal(leat_link_address(link), address);
    assert_int_equal(link->state, LINK_UP);
    TRACE_IS("");
    ends(link);
}

/* Goal: a link is freed once it is closed, has no connection, and no callback of it runs. */
static void link_goes_when_nothing_refers_to_it(void **state)
{
    (void)state;
    creates();
    struct leat_link *link = in_state(LINK_UP), *closed = link;
    leat_link_close(&closed);
    TRACE_IS("no stranger 0\nclose conn\n");
    assert_true(link->gone);
    assert_int_equal(link->state, LINK_CLOSING);
    leat_link_enter(link);
    assert_false(leat_link_leave(link)); /* its connection is not closed yet */
    assert_int_equal(links->count, 1);
    leat_link_enter(link);
    leat_link_enter(link);
    link->net = NULL;
    assert_false(leat_link_leave(link)); /* another callback of it runs */
    assert_int_equal(links->count, 1);
    assert_false(leat_link_leave(link));
    assert_int_equal(links->count, 0);
    link = closed = in_state(LINK_WAITING);
    leat_link_enter(link);
    assert_true(leat_link_leave(link));
    leat_link_enter(link);
    leat_link_close(&closed);
    TRACE_IS("");
    assert_int_equal(links->count, 1);
    assert_false(leat_link_leave(link));
    assert_int_equal(links->count, 0);
}

/* Goal: links that end with their connections keep their leat_links until then, and no new link is made. */
static void destroy_waits_for_connections(void **state)
{
    (void)state;
    creates();
    struct leat_link *up = in_state(LINK_UP), *gone = in_state(LINK_UP), *closed = gone;
    (void)in_state(LINK_WAITING);
    leat_link_close(&closed);
    trace_begin();
    struct leat_links *at = links;
    leat_links_destroy(&links);
    TRACE_IS("no timer\nno stranger 0\nclose conn\n");
    assert_true(at->closing);
    assert_int_equal(at->count, 2);
    for (unsigned i = 0; i < 2; i++) {
        struct leat_link *link = i ? up : gone;
        link->net = NULL;
        leat_link_enter(link);
        assert_false(leat_link_leave(link));
        TRACE_IS(i ? "slots\n" : "");
    }
}

/* Goal: a fence is for a node's name and its incarnations up to a number; the number only grows, and a fenced peer is
 * disconnected. */
static void fence_cuts_and_keeps_out(void **state)
{
    (void)state;
    creates();
    struct leat_link *one = in_state(LINK_UP), *two = in_state(LINK_HELLO);
    snprintf(one->peer.node, sizeof one->peer.node, "n");
    two->peer = one->peer;
    one->peer.incarnation = two->peer.incarnation = 5;
    struct leat_link_identity peer = one->peer;
    assert_false(leat_links_fenced(links, &peer));
    assert_int_equal(leat_links_fence(links, "m", 9), LEAT_OK);
    assert_int_equal(leat_links_fence(links, "n", 4), LEAT_OK);
    TRACE_IS("");
    for (unsigned i = 0; i < 7; i++) {
        const uint64_t fence[] = {4, 4, 4, 3, 5, 5, 0}, incarnation[] = {0, 4, 5, 4, 5, 6, 5};
        const bool fenced[] = {false, true, false, true, true, false, true};
        assert_int_equal(leat_links_fence(links, "n", fence[i]), LEAT_OK);
        peer.incarnation = incarnation[i];
        assert_int_equal(leat_links_fenced(links, &peer), fenced[i]);
        TRACE_IS(i == 4 ? "no stranger 0\nclose conn\n" : "");
    }
    assert_int_equal(one->why.code, LEAT_E_STALE_EPOCH);
    assert_string_equal(one->why.text, "this incarnation was declared gone");
    assert_int_equal(two->state, LINK_HELLO);
    assert_int_equal(links->fence_count, 2);
    ends(one);
    ends(two);
}

/* Goal: there is room for a limited number of fenced names, and their memory may fail; existing fences stay. */
static void fences_have_a_bound(void **state)
{
    (void)state;
    char name[300];
    creates();
    leat_mem_fail_at(1);
    assert_int_equal(leat_links_fence(links, "0", 1), LEAT_E_NO_MEMORY);
    assert_int_equal(links->fence_count, 0);
    for (unsigned i = 0; i < LEAT_LINK_FENCES_MAX; i++) {
        snprintf(name, sizeof name, "%u", i);
        if (i == 8) {
            leat_mem_fail_at(1);
            assert_int_equal(leat_links_fence(links, name, 1), LEAT_E_NO_MEMORY);
            leat_mem_fail_at(0);
            assert_int_equal(links->fence_count, 8);
            assert_int_equal(links->fence_capacity, 8);
        }
        assert_int_equal(leat_links_fence(links, name, i + 1), LEAT_OK);
    }
    assert_int_equal(links->fence_capacity, LEAT_LINK_FENCES_MAX);
    assert_int_equal(leat_links_fence(links, "more", 1), LEAT_E_TOO_MANY);
    assert_int_equal(leat_links_fence(links, "7", 50), LEAT_OK);
    for (unsigned i = 0; i < LEAT_LINK_FENCES_MAX; i++) {
        struct leat_link_identity peer = {.incarnation = i == 7 ? 50 : i + 1};
        snprintf(peer.node, sizeof peer.node, "%u", i);
        assert_true(leat_links_fenced(links, &peer));
        peer.incarnation++;
        assert_false(leat_links_fenced(links, &peer));
    }
}

/* Goal: a node that joins a cluster disconnects peers of another cluster, and no others. */
static void identity_cuts_who_is_of_another_cluster(void **state)
{
    (void)state;
    static const uint8_t clusters[] = {8, 7, 0, 8, 9};
    struct leat_link *all[5];
    struct leat_link_identity identity = {.incarnation = 4};
    creates();
    for (unsigned i = 0; i < 5; i++) {
        all[i] = in_state(i == 3 ? LINK_HELLO : LINK_UP);
        all[i]->peer.cluster_id[15] = clusters[i];
    }
    leat_links_identity_set(links, &identity);
    TRACE_IS("");
    assert_int_equal(leat_links_identity(links)->incarnation, 4);
    identity.cluster_id[15] = 7;
    leat_links_identity_set(links, &identity);
    TRACE_IS("no stranger 0\nclose conn\nno stranger 4\nclose conn\n");
    assert_int_equal(all[0]->why.code, LEAT_E_WRONG_CLUSTER);
    assert_string_equal(all[0]->why.text, "the peer is of another cluster");
    assert_int_equal(leat_links_identity(links)->cluster_id[15], 7);
    for (unsigned i = 0; i < 5; i++)
        all[i]->net = NULL;
}

/* Goal: a link answers questions about itself with its own values. */
static void link_answers_questions(void **state)
{
    (void)state;
    creates();
    struct leat_link *link = in_state(LINK_HELLO);
    int user;
    link->net = NULL;
    assert_false(leat_link_is_up(link));
    link->state = LINK_UP;
    assert_true(leat_link_is_up(link));
    assert_ptr_equal(leat_link_peer(link), &link->peer);
    assert_ptr_equal(leat_link_links(link), links);
    assert_false(leat_link_accepted(link));
    assert_int_equal(leat_link_purpose_of(link), LEAT_LINK_DATA);
    assert_null(leat_link_user(link));
    leat_link_user_set(link, &user);
    assert_ptr_equal(leat_link_user(link), &user);
    link->queued_bytes = 66;
    assert_int_equal(leat_link_queued_bytes(link), 66);
    assert_int_equal(leat_link_heard_us(link), 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LINKS_TEST(links_are_made_as_they_are_asked_for),
        LINKS_TEST(open_takes_the_first_free_place),
        LINKS_TEST(open_refuses_by_name),
        LINKS_TEST(readdress_takes_addresses_only),
        LINKS_TEST(link_goes_when_nothing_refers_to_it),
        LINKS_TEST(destroy_waits_for_connections),
        LINKS_TEST(fence_cuts_and_keeps_out),
        LINKS_TEST(fences_have_a_bound),
        LINKS_TEST(identity_cuts_who_is_of_another_cluster),
        LINKS_TEST(link_answers_questions),
    };
    return cmocka_run_group_tests_name("link-table", tests, NULL, NULL);
}
