/* SPDX-License-Identifier: Apache-2.0 */
/* The assertions on an actor's links between two turns: each rule is broken once, in structs that the test makes up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "link/internal.h"
#include "tests/broken.h"

enum { WAITS, IS_UP, IS_STRANGE, LINKS };

static struct leat_links links;
static struct leat_link made[LINKS], *table[LINKS + 2]; /* the last row is past the table */
static struct leat_link *waits = &made[WAITS], *up = &made[IS_UP], *strange = &made[IS_STRANGE];
static struct leat_link_call calls[2];
static struct leat_link_handler handler;
static uint8_t something;

/* A link that waits for its next attempt, a link that is up and has two calls, and a stranger. */
static void sound(void)
{
    links = (struct leat_links){.next_us = 1000,
                                .ping_us = 500,
                                .silence_us = 2000,
                                .strangers_max = 4,
                                .stranger_count = 1,
                                .origin_count = 1,
                                .origins = {{.count = 1}},
                                .table = table,
                                .table_capacity = LINKS + 1,
                                .count = LINKS};
    table[LINKS] = table[LINKS + 1] = NULL;
    links.timer.heap_index_plus_1 = 1;
    leat_list_init(&links.strangers);
    for (uint32_t i = 0; i < LINKS; i++) {
        made[i] = (struct leat_link){.links = &links, .slot = i};
        leat_list_init(&made[i].calls);
        leat_list_init(&made[i].strange);
        table[i] = &made[i];
    }
    waits->try_at_us = 1000;
    up->state = LINK_UP;
    up->was_up = true;
    up->net = (void *)&something;
    up->mac_in = up->mac_out = (void *)&something;
    up->handler = &handler;
    up->heard_us = 400;
    up->pinged_us = 500;
    up->call_count = 2;
    up->slots_out = 1;
    up->queued_bytes = 64;
    for (unsigned i = 0; i < 2; i++) {
        calls[i] = (struct leat_link_call){.link = up, .deadline_us = 1000 + i, .sent = i == 0};
        leat_list_push_back(&up->calls, &calls[i].list);
    }
    strange->state = LINK_NONCE;
    strange->accepted = true;
    strange->net = (void *)&something;
    leat_list_push_back(&links.strangers, &strange->strange);
}

/* `rule` is broken by the statements; NULL: no rule is. */
#define LINKS_BROKEN(rule, ...)                                                                    \
    do {                                                                                           \
        sound();                                                                                   \
        assert_broken(NULL, leat_links_check(&links));                                             \
        __VA_ARGS__;                                                                               \
        assert_broken(rule, leat_links_check(&links));                                             \
    } while (0)

static void actor_is_checked(void **state)
{
    (void)state;
    static const char armed[] = "leat_timer_armed(&links->timer) == (links->next_us != UINT64_MAX)";
    LINKS_BROKEN("count == links->count", links.count++);
    LINKS_BROKEN("count == links->count", table[WAITS] = NULL);
    LINKS_BROKEN("!links->sweeping", links.sweeping = true);
    LINKS_BROKEN(armed, links.timer.heap_index_plus_1 = 0);
    LINKS_BROKEN("links->free_slot_count <= (uint32_t)LINK_SLOTS_KEPT_MAX",
                 links.free_slot_count = LINK_SLOTS_KEPT_MAX + 1);
    LINKS_BROKEN("links->fence_count <= links->fence_capacity", links.fence_count = 1);
    LINKS_BROKEN(NULL, links.fence_count = links.fence_capacity = 1);
}

static void strangers_are_checked(void **state)
{
    (void)state;
    static const char proving[] = "link->state == LINK_NONCE || link->state == LINK_HELLO";
    LINKS_BROKEN("link->accepted", strange->accepted = false);
    LINKS_BROKEN(proving, strange->state = LINK_CLOSING);
    LINKS_BROKEN("links->origins[i].count > 0", links.origin_count = 2);
    LINKS_BROKEN("links->origins[i].count <= links->strangers_max / 2", links.origins[0].count = 3);
    LINKS_BROKEN("count == links->stranger_count", leat_list_remove(&strange->strange));
    LINKS_BROKEN("counted == links->stranger_count", links.origins[0].count = 2);
    LINKS_BROKEN("counted == links->stranger_count", links.origin_count = 0);
}

static void link_is_checked(void **state)
{
    (void)state;
    static const char place[] = "link->links == links && link->slot == slot";
    static const char connected[] = "(link->net != NULL) == (link->state != LINK_WAITING)";
    static const char keys[] = "!proving || (link->mac_in != NULL && link->mac_out != NULL)";
    static const char no_keys[] =
        "link->state >= LINK_HELLO || (link->mac_in == NULL && link->mac_out == NULL)";
    LINKS_BROKEN(place, up->links = NULL);
    LINKS_BROKEN(place, table[LINKS] = up, table[IS_UP] = NULL);
    LINKS_BROKEN("link->entered == 0", up->entered = 1);
    LINKS_BROKEN(connected, up->net = NULL);
    LINKS_BROKEN(connected, waits->net = (void *)&something);
    LINKS_BROKEN("!link->accepted || link->state >= LINK_NONCE", waits->accepted = true);
    LINKS_BROKEN("!link->gone || link->state == LINK_CLOSING", up->gone = true);
    LINKS_BROKEN(NULL, up->gone = true, up->state = LINK_CLOSING);
    LINKS_BROKEN("link->was_up || link->state != LINK_UP", up->was_up = false);
    LINKS_BROKEN("link->handler != NULL || link->state != LINK_UP", up->handler = NULL);
    LINKS_BROKEN(keys, up->mac_in = NULL);
    LINKS_BROKEN(keys, up->mac_out = NULL);
    LINKS_BROKEN(keys, strange->state = LINK_HELLO);
    LINKS_BROKEN(no_keys, waits->mac_in = (void *)&something);
    LINKS_BROKEN(no_keys, strange->mac_out = (void *)&something);
}

/* Goal: of a peer's link only the last connection is up. */
static void connections_are_checked(void **state)
{
    (void)state;
    static const char earlier[] =
        "other == NULL || other->state != LINK_UP || !leat_link_is_earlier(other, link)";
#define TWO_UP(rule, ...)                                                                          \
    LINKS_BROKEN(rule, *waits = *up, waits->slot = WAITS, waits->call_count = 0,                   \
                 waits->accepted = up->accepted = true, leat_list_init(&waits->calls),             \
                 waits->peer.incarnation = up->peer.incarnation = 5,                               \
                 waits->opener = (struct leat_link_opener){7, 2},                                  \
                 up->opener = (struct leat_link_opener){7, 3}, __VA_ARGS__)
    TWO_UP(earlier, (void)0);
    TWO_UP(earlier, waits->opener.connection = 4);
    TWO_UP(NULL, waits->state = LINK_CLOSING);
    TWO_UP(NULL, up->state = LINK_CLOSING);
    TWO_UP(NULL, table[LINKS + 1] = waits, table[WAITS] = NULL, links.count--);
    TWO_UP(NULL, waits->opener.link = 8);
    TWO_UP(NULL, waits->opener.link = up->opener.link = 0);
    TWO_UP(NULL, waits->peer.incarnation = 6);
    TWO_UP(NULL, waits->peer.incarnation = up->peer.incarnation = 0);
    TWO_UP(NULL, waits->peer.node[0] = 'x');
}

/* Goal: the actor's timer is due for a link in each of its states. */
static void time_is_checked(void **state)
{
    (void)state;
    static const char due[] = "links->next_us <= due_us(link)";
    LINKS_BROKEN(due, waits->try_at_us = 999);
    LINKS_BROKEN(due, up->pinged_us = 499);
    LINKS_BROKEN(NULL, up->pinged_us = 499, up->heard_us = 500);
    LINKS_BROKEN(due, links.next_us = UINT64_MAX);
    LINKS_BROKEN(due, links.silence_us = 999); /* the stranger is here since 0 */
    LINKS_BROKEN(NULL, links.silence_us = 1000);
    strange->accepted = false;
    leat_list_remove(&strange->strange);
    links.stranger_count = links.origin_count = 0;
    strange->state = LINK_CONNECTING;
    assert_broken(NULL, leat_links_check(&links));
    links.silence_us = 999;
    assert_broken(due, leat_links_check(&links));
    strange->state = LINK_CLOSING;
    assert_broken(NULL, leat_links_check(&links));
}

static void calls_are_checked(void **state)
{
    (void)state;
    static const char sent[] = "!call->sent || (!call->one_way && !call->early)";
    static const char in_time[] =
        "link->state != LINK_UP || link->links->next_us <= call->deadline_us";
    static const char counted[] = "count == link->call_count";
    LINKS_BROKEN("call->link == link", calls[1].link = waits);
    LINKS_BROKEN(sent, calls[0].one_way = true);
    LINKS_BROKEN(sent, calls[0].early = true);
    LINKS_BROKEN(NULL, calls[1].one_way = calls[1].early = true);
    LINKS_BROKEN(in_time, calls[1].deadline_us = 999);
    LINKS_BROKEN(NULL, calls[1].deadline_us = 999, up->state = LINK_CLOSING);
    LINKS_BROKEN(counted, up->call_count = 1);
    LINKS_BROKEN(counted, leat_list_remove(&calls[0].list));
    LINKS_BROKEN("count == 0 || link->state == LINK_UP || link->state == LINK_CLOSING",
                 up->state = LINK_HELLO);
    static struct leat_link_call many[LEAT_LINK_CALLS_MAX];
    sound();
    for (unsigned i = 0; i < LEAT_LINK_CALLS_MAX; i++) {
        many[i] = (struct leat_link_call){.link = up, .deadline_us = UINT64_MAX};
        leat_list_push_back(&up->calls, &many[i].list);
    }
    up->call_count += LEAT_LINK_CALLS_MAX;
    assert_broken("count <= (uint32_t)LEAT_LINK_CALLS_MAX", leat_links_check(&links));
}

static void queue_is_checked(void **state)
{
    (void)state;
    static const char bytes[] = "(link->slots_out == 0) == (link->queued_bytes == 0)";
    LINKS_BROKEN(bytes, up->slots_out = 0);
    LINKS_BROKEN(bytes, up->queued_bytes = 0);
    LINKS_BROKEN(NULL, up->queued_bytes = up->slots_out = 0);
    LINKS_BROKEN("link->slots_out == 0 || link->net != NULL",
                 waits->queued_bytes = waits->slots_out = 1);
    LINKS_BROKEN("link->request_count <= (uint32_t)LEAT_LINK_REQUESTS_MAX",
                 up->request_count = LEAT_LINK_REQUESTS_MAX + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actor_is_checked), cmocka_unit_test(strangers_are_checked),
        cmocka_unit_test(link_is_checked),  cmocka_unit_test(connections_are_checked),
        cmocka_unit_test(time_is_checked),  cmocka_unit_test(calls_are_checked),
        cmocka_unit_test(queue_is_checked),
    };
    return cmocka_run_group_tests_name("link check", tests, NULL, NULL);
}
