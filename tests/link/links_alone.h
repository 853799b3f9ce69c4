/* SPDX-License-Identifier: Apache-2.0 */
/* link/links.c, life.c and fences.c alone: what they call of the rest of link/, of the network, the timers and the
 * node log is played here (--wrap), each is a line of the trace. For one test program only. */
#ifndef LEAT_TESTS_LINK_LINKS_ALONE_H
#define LEAT_TESTS_LINK_LINKS_ALONE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "link/internal.h"
#include "tests/trace.h"

static struct {
    uint64_t now_us, random, call_due_us;
    bool no_memory, no_connect, expiry_cuts, expiry_closes, connect_closes;
} played;
static struct leat_links *links;
static struct leat_env env;
static struct leat_error error;

void __wrap_leat_link_connect(struct leat_link *link);
void __wrap_leat_link_connect(struct leat_link *link)
{
    trace("connect %u\n", link->slot);
    links->closing |= played.connect_closes; /* all, by who is told of a failure */
    link->since_us = played.now_us;
    if (played.no_connect)
        leat_link_retry_later(link);
    else
        link->state = LINK_CONNECTING;
}
bool __wrap_leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags,
                                 uint32_t number, const void *control, uint32_t bytes,
                                 struct leat_link_call *call, struct leat_link_answer *answer,
                                 bool close_after);
bool __wrap_leat_link_frame_send(struct leat_link *link, uint16_t kind, uint8_t flags,
                                 uint32_t number, const void *control, uint32_t bytes,
                                 struct leat_link_call *call, struct leat_link_answer *answer,
                                 bool close_after)
{
    bool usual = kind == LEAT_NODE_KIND_PING && flags == 0 && number == 0 && bytes == 1 &&
                 memcmp(control, "\x90", 1) == 0 && !call && !answer && !close_after;
    trace("ping %u%s\n", link->slot, usual ? "" : " otherwise");
    return !played.no_memory;
}
void __wrap_leat_link_calls_expire(struct leat_link *link, uint64_t now_us, uint64_t *next_us);
void __wrap_leat_link_calls_expire(struct leat_link *link, uint64_t now_us, uint64_t *next_us)
{
    trace("expire %u\n", link->slot);
    assert_int_equal(now_us, played.now_us);
    assert_true(*next_us == UINT64_MAX && link->entered == 1);
    if (played.call_due_us) *next_us = played.call_due_us;
    if (played.expiry_cuts) leat_link_cut(link, LEAT_E_TIMEOUT, "a call");
    if (played.expiry_closes) leat_link_close(&link);
}
void __wrap_leat_link_stranger_end(struct leat_link *link);
void __wrap_leat_link_stranger_end(struct leat_link *link)
{
    trace("no stranger %u\n", link->slot);
}
void __wrap_leat_links_slots_free(struct leat_links *at);
void __wrap_leat_links_slots_free(struct leat_links *at)
{
    (void)at;
    trace("slots\n");
}
void __wrap_leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t us);
void __wrap_leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t us)
{
    (void)timers;
    assert_ptr_equal(timer, &links->timer);
    trace("timer %llu\n", (unsigned long long)us);
}
void __wrap_leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer);
void __wrap_leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer)
{
    (void)timers;
    (void)timer;
    trace("no timer\n");
}
void __wrap_leat_node_log_sum_tell(struct leat_node_log_sum *sum, uint64_t now_us);
void __wrap_leat_node_log_sum_tell(struct leat_node_log_sum *sum, uint64_t now_us)
{
    trace("%s %llu\n", sum->what, (unsigned long long)now_us);
}
/* New rows of the table, and one row after it, are filled with 0xff, so that no code relies on zeros. */
void *__real_leat_mem_realloc(enum leat_mem_tag tag, void *block, size_t count, size_t bytes);
void *__wrap_leat_mem_realloc(enum leat_mem_tag tag, void *block, size_t count, size_t bytes);
void *__wrap_leat_mem_realloc(enum leat_mem_tag tag, void *block, size_t count, size_t bytes)
{
    bool table = block == links->table && bytes == sizeof *links->table;
    uint8_t *made = __real_leat_mem_realloc(tag, block, count + table, bytes);
    size_t was = links->table_capacity;
    if (made && table) memset(made + was * bytes, 0xff, (count + 1 - was) * bytes);
    return made;
}
static uint64_t clock_now(void *ctx)
{
    (void)ctx;
    return played.now_us;
}
static uint64_t random_next(void *ctx)
{
    (void)ctx;
    return played.random;
}
static void net_close(struct leat_conn *conn)
{
    trace("close %s\n", (const char *)conn);
}

/* ---- the port ---- */

static const struct leat_link_handler handler;
static const struct leat_key key;
static char conn[] = "conn";
enum { PING = 100, SILENCE = 1000, RETRY_MIN = 20, RETRY_MAX = 500 };

static int begin(void **state)
{
    (void)state;
    static const struct leat_clock clock = {.now_us = clock_now};
    static const struct leat_random random = {.next = random_next};
    static const struct leat_post post = {.self = 2};
    static const struct leat_net net = {.close = net_close};
    memset(&played, 0, sizeof played);
    memset(&error, 0, sizeof error);
    played.now_us = 10000;
    env = (struct leat_env){.clock = &clock, .random = &random, .post = &post, .net = &net};
    links = NULL;
    trace_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    leat_mem_fail_at(0);
    if (links) leat_links_destroy(&links);
    return leat_mem_bytes(LEAT_MEM_NET) != 0;
}

#define LINKS_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

static void creates(void)
{
    struct leat_links_options options = {.env = &env,
                                         .key = &key,
                                         .ping_us = PING,
                                         .silence_us = SILENCE,
                                         .retry_us_min = RETRY_MIN,
                                         .retry_us_max = RETRY_MAX};
    assert_int_equal(leat_links_create(&options, &links, &error), LEAT_OK);
    trace_begin();
}

static leat_err opens(const char *address, unsigned purpose, const char *node,
                      struct leat_link **out)
{
    struct leat_link_options options = {.address = address,
                                        .to_actor = 5,
                                        .purpose = purpose,
                                        .expect_node = node,
                                        .expect_incarnation = 9,
                                        .handler = &handler,
                                        .stranger = true};
    return leat_link_open(links, &options, out, &error);
}

/* A link in a state, with a connection where it has one; the timer is not armed. */
static struct leat_link *in_state(enum leat_link_state state)
{
    struct leat_link *link = NULL;
    assert_int_equal(opens("h:1", LEAT_LINK_DATA, NULL, &link), LEAT_OK);
    link->state = state;
    if (state != LINK_WAITING) link->net = (struct leat_conn *)conn;
    links->next_us = UINT64_MAX;
    trace_begin();
    return link;
}

/* Its connection has ended, for good: it is no more. */
static void ends(struct leat_link *link)
{
    link->net = NULL;
    link->gone = true;
    leat_link_enter(link);
    assert_false(leat_link_leave(link));
    trace_begin();
}

#endif
