/* SPDX-License-Identifier: Apache-2.0 */
/* lend.c by itself: who gets a buffer, what is had back from slow connections and in which order, and what is kept of
 * what they have not taken. Network, fetches and timers are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lend.h"
#include "broker/net/sharer.h"
#include "tests/broker/alone.h"

enum { PEERS = 4, READS = 4, WAITS = 4, RESTS_MAX = 100 };

static struct {
    struct leat_net net;
    struct leat_peer peers[PEERS];
    struct leat_sharer sharers[PEERS];
    struct leat_fetch fetches[PEERS];
    struct leat_fetch_read reads[READS];
    size_t unsent[READS]; /* what the connection has not taken of it */
    struct leat_send *rests[READS];
    struct leat_buffer_wait waits[WAITS];
    struct leat_list starved;
    void *got; /* the buffer that was given last */
    bool wanted, struct_comes;
} it;
static size_t bytes_before;

static struct leat_core *core_of(void)
{
    return &alone.cores[0];
}

/* ---- what it calls ---- */

static unsigned read_of(const struct leat_send *send)
{
    for (unsigned r = 0; r < READS; r++)
        if (send == &it.reads[r].send) return r;
    fail();
    return 0;
}
static unsigned number(const struct leat_peer *peer)
{
    return (unsigned)(peer - it.peers);
}
static size_t net_unsent(const struct leat_conn *conn, const struct leat_send *send)
{
    assert_ptr_equal(conn, &it);
    return it.unsent[read_of(send)];
}
static void net_replace(struct leat_conn *conn, struct leat_send *send, struct leat_send *by)
{
    unsigned r = read_of(send);
    assert_ptr_equal(conn, &it);
    assert_int_equal(by->iov_count, 1);
    assert_int_equal(by->iovs[0].bytes, it.unsent[r]);
    said("rest %u: %zu bytes", r, by->iovs[0].bytes);
    it.rests[r] = by;
}
void leat_fetch_read_sent(struct leat_fetch_read *read)
{
    void *buffer = read->read.disk_buffer;
    said("back %u", read_of(&read->send));
    leat_lend_end(read);
    if (it.struct_comes) core_of()->read_pool.left = 1;
    read->read.disk_buffer = NULL;
    if (buffer != NULL) leat_buffer_give(core_of(), buffer);
}
void leat_fetch_call_limited(struct leat_peer *peer)
{
    said("call limited %u", number(peer));
}
void leat_peer_begin(struct leat_peer *peer)
{
    peer->requests++;
}
void leat_peer_end(struct leat_peer *peer)
{
    assert_in_range(peer->requests, 1, 1000);
    peer->requests--;
}
void leat_peer_drained(struct leat_peer *peer)
{
    assert_in_range(peer->requests, 1, 1000); /* it is not gone meanwhile */
    said("drained %u", number(peer));
}
void leat_peer_close(struct leat_peer *peer, const char *why)
{
    said("close %u: %s", number(peer), why);
    peer->closing = true;
}
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(timers, &core_of()->timers);
    timer->at_us = alone.now_us + delay_us;
    timer->heap_index_plus_1 = 1;
}
bool leat_segment_is_wanted_back(const struct leat_segment *seg)
{
    assert_ptr_equal(seg, &it);
    return it.wanted;
}
uint64_t leat_node_rest_bytes(uint64_t memory_bytes, uint32_t cores)
{
    assert_int_equal(memory_bytes, 77);
    assert_int_equal(cores, ALONE_CORES);
    return RESTS_MAX;
}
static void on_buffer(struct leat_buffer_wait *wait, void *buffer)
{
    assert_non_null(buffer);
    said("buffer for %u", (unsigned)(wait - it.waits));
    it.got = buffer;
}

/* ---- the tests' own ---- */

/* Connections 0 and 1 are of one address, each further connection has an address of its own. */
static void begin(uint32_t buffers)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    struct leat_core *core = core_of();
    it.net = (struct leat_net){.unsent_bytes = net_unsent, .replace = net_replace};
    core->net = &it.net;
    alone.node.options.memory_bytes = 77;
    leat_list_init(&core->data->starved_reads);
    leat_list_init(&it.starved);
    assert_int_equal(leat_lender_init(core, buffers), LEAT_OK);
    for (unsigned p = 0; p < PEERS; p++) {
        it.peers[p].core = core;
        it.peers[p].conn = (void *)&it;
        it.peers[p].sharer = &it.sharers[p < 2 ? 0 : p];
        leat_borrower_init(&it.peers[p].borrowed);
        it.fetches[p].core = core;
        it.fetches[p].peer = &it.peers[p];
    }
    for (unsigned r = 0; r < READS; r++)
        leat_list_init(&it.reads[r].lent);
    for (unsigned w = 0; w < WAITS; w++) {
        it.waits[w].on_buffer = on_buffer;
        leat_list_init(&it.waits[w].link);
    }
}

/* The connection takes its rest, or is gone. */
static void taken(unsigned r)
{
    struct leat_send *rest = it.rests[r];
    assert_non_null(rest);
    it.rests[r] = NULL;
    rest->on_sent(rest, LEAT_OK);
}

static void end(void)
{
    for (unsigned r = 0; r < READS; r++)
        if (it.rests[r] != NULL) taken(r);
    assert_int_equal(core_of()->data->lender->rest_bytes, 0);
    assert_true(leat_list_empty(&core_of()->data->lender->rests));
    for (unsigned p = 0; p < PEERS; p++) {
        assert_int_equal(it.peers[p].requests, 0);
        assert_int_equal(it.sharers[p].rest_bytes, 0);
    }
    leat_lender_fini(core_of());
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
    said_enough();
    alone_end();
}

/* A run of batches is on its way to that connection, which leaves so much of it: from a buffer, or from a segment. */
static void lend(unsigned r, unsigned p, size_t unsent, bool from_buffer)
{
    struct leat_fetch_read *read = &it.reads[r];
    it.unsent[r] = unsent;
    read->fetch = &it.fetches[p];
    read->read.pinned = from_buffer ? NULL : (void *)&it;
    read->read.disk_buffer = from_buffer ? leat_buffer_try(core_of()) : NULL;
    assert_true(!from_buffer || read->read.disk_buffer != NULL);
    leat_lend(read);
}

/* The same from the only buffer, which somebody then waits for until it has come back. */
static void slow(unsigned r, unsigned p, size_t unsent)
{
    lend(r, p, unsent, true);
    leat_buffer_wait(core_of(), &it.peers[PEERS - 1], &it.waits[0]);
    alone.now_us += LEAT_LEND_US;
    leat_lend_turn_end(core_of());
    leat_buffer_wait_end(&it.peers[PEERS - 1], &it.waits[0]);
    void *buffer = it.reads[r].read.disk_buffer;
    leat_buffer_give(core_of(), buffer != NULL ? buffer : it.got);
}

static const char *rest_said(unsigned r, unsigned bytes)
{
    static char line[128];
    snprintf(line, sizeof line, "rest %u: %u bytes\nback %u\nbuffer for 0\n", r, bytes, r);
    return line;
}

static const char slowly[] = "it takes its answers too slowly, and others need the memory";

static void assert_closed(unsigned p, const char *then)
{
    char expected[512];
    snprintf(expected, sizeof expected, "close %u: %s\n%s", p, slowly, then);
    assert_said(expected);
}

/* ---- buffers ---- */

static void connections_get_buffers_in_turn(void **state)
{
    (void)state;
    begin(1);
    void *buffer = leat_buffer_try(core_of());
    assert_null(leat_buffer_try(core_of()));
    leat_buffer_wait(core_of(), &it.peers[0], &it.waits[0]);
    leat_buffer_wait(core_of(), &it.peers[0], &it.waits[1]);
    leat_buffer_wait(core_of(), &it.peers[0], &it.waits[2]);
    leat_buffer_wait(core_of(), &it.peers[1], &it.waits[3]);
    for (unsigned i = 0; i < 4; i++) {
        assert_null(leat_buffer_try(core_of()));
        leat_buffer_give(core_of(), buffer);
    }
    assert_said("buffer for 0\nbuffer for 3\nbuffer for 1\nbuffer for 2\n");
    leat_buffer_give(core_of(), buffer); /* nobody waits any more */
    assert_said("");
    assert_ptr_equal(leat_buffer_try(core_of()), buffer);
    end();
}

static void wait_that_ends_is_given_no_buffer(void **state)
{
    (void)state;
    begin(1);
    void *buffer = leat_buffer_try(core_of());
    leat_buffer_wait(core_of(), &it.peers[0], &it.waits[0]);
    leat_buffer_wait(core_of(), &it.peers[0], &it.waits[1]);
    leat_buffer_wait(core_of(), &it.peers[1], &it.waits[2]);
    leat_buffer_wait_end(&it.peers[1], &it.waits[3]); /* it does not wait */
    leat_buffer_wait_end(&it.peers[0], &it.waits[0]); /* the other one keeps the place */
    leat_buffer_give(core_of(), buffer);
    assert_said("buffer for 1\n");
    leat_buffer_wait_end(&it.peers[1], &it.waits[2]);
    leat_buffer_give(core_of(), buffer);
    assert_said("");
    assert_ptr_equal(leat_buffer_try(core_of()), buffer);
    end();
}

/* ---- what is had back ---- */

static void oldest_answers_give_their_buffers_back(void **state)
{
    (void)state;
    begin(3);
    lend(0, 0, 10, true);
    alone.now_us++;
    lend(1, 1, 10, true);
    alone.now_us++;
    lend(2, 2, 10, true);
    alone.now_us += LEAT_LEND_US - 1; /* the third's time is not over */
    leat_lend_turn_end(core_of());
    assert_said(""); /* nobody waits */
    for (unsigned w = 0; w < 3; w++)
        leat_buffer_wait(core_of(), &it.peers[3], &it.waits[w]);
    leat_lend_turn_end(core_of());
    assert_said("rest 0: 10 bytes\nback 0\nbuffer for 0\nrest 1: 10 bytes\nback 1\nbuffer for 1\n");
    leat_lend_end(&it.reads[2]); /* it has been taken meanwhile */
    alone.now_us += LEAT_LEND_US;
    leat_lend_turn_end(core_of());
    assert_said("");
    end();
}

/* Goal: what has been taken already comes back by itself, as does what a connection had that is gone: the next one's is
 * had back. */
static void nothing_is_kept_of_answers_that_are_over(void **state)
{
    (void)state;
    enum { TAKEN, CLOSING, CLOSED, GONE, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin(2);
        lend(0, 0, i == TAKEN ? 0 : 10, true);
        lend(1, 2, 1, true); /* as little as there can be */
        if (i == CLOSING) it.peers[0].closing = true;
        if (i == CLOSED) it.peers[0].conn = NULL;
        if (i == GONE) it.fetches[0].peer = NULL;
        leat_buffer_wait(core_of(), &it.peers[3], &it.waits[0]);
        alone.now_us += LEAT_LEND_US;
        leat_lend_turn_end(core_of());
        assert_said("rest 1: 1 bytes\nback 1\nbuffer for 0\n");
        assert_int_equal(it.peers[0].borrowed.answer_bytes_max, 0);
        assert_int_equal(it.peers[2].borrowed.answer_bytes_max, LEAT_PEER_SLOW_ANSWER_BYTES);
        end();
    }
}

/* Goal: while somebody waits for a struct to read with, and none is left, what was lent first is had back first,
 * wherever it lies: as much as it takes, and nothing whose time is not over. */
static void oldest_answers_give_their_structs_back(void **state)
{
    (void)state;
    enum { BUFFER_FIRST, SEGMENT_FIRST, NO_BUFFER, NO_SEGMENT, NOBODY, LEFT, BOTH, CASES };
    static const char buffer[] = "rest 0: 10 bytes\nback 0\n",
                      segment[] = "rest 1: 20 bytes\nback 1\n",
                      both[] = "rest 0: 10 bytes\nback 0\nrest 1: 20 bytes\nback 1\n";
    static const char *const expected[CASES] = {buffer, segment, segment, buffer, "", "", both};
    for (unsigned i = 0; i < CASES; i++) {
        begin(1);
        struct leat_core *core = core_of();
        if (i == SEGMENT_FIRST) lend(1, 1, 20, false), alone.now_us++;
        if (i != NO_BUFFER) lend(0, 0, 10, true);
        if (i != NO_SEGMENT && i != SEGMENT_FIRST) alone.now_us++, lend(1, 1, 20, false);
        if (i != NOBODY) leat_list_push_back(&core->data->starved_reads, &it.starved);
        core->read_pool.left = i == LEFT;
        it.struct_comes = i != BOTH;
        alone.now_us += LEAT_LEND_US;
        leat_lend_turn_end(core);
        assert_said(expected[i]);
        leat_list_remove(&it.starved);
        end();
    }
}

/* ---- when it looks again ---- */

static void core_that_lends_nothing_is_not_woken(void **state)
{
    (void)state;
    begin(1);
    leat_lend_turn_end(core_of());
    assert_false(leat_timer_armed(&core_of()->data->lender->timer));
    end();
}

/* Goal: a look that is due is put off by no turn, however often the core turns; otherwise segments that the store wants
 * back would never be had back on a busy core. */
static void busy_core_looks_at_segments_in_time(void **state)
{
    (void)state;
    begin(1);
    lend(0, 0, 10, false);
    uint64_t begun_us = alone.now_us;
    for (unsigned turns = 0; turns < 5; turns++, alone.now_us += 1000) {
        leat_lend_turn_end(core_of());
        assert_int_equal(core_of()->data->lender->timer.at_us, begun_us + LEAT_LEND_LOOK_US);
    }
    leat_lend_end(&it.reads[0]);
    end();
}

/* Goal: who begins to wait need not wait for the look that was set before: it comes when the first of what may help is
 * due. */
static void look_comes_sooner_for_those_who_wait(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin(1);
        struct leat_core *core = core_of();
        uint64_t first_us = alone.now_us;
        if (i == 2) lend(1, 1, 20, false), alone.now_us += 50;
        lend(0, 0, 10, true);
        if (i == 1) alone.now_us += 50, lend(1, 1, 20, false);
        leat_lend_turn_end(core);
        if (i == 0)
            leat_buffer_wait(core, &it.peers[3], &it.waits[0]);
        else
            leat_list_push_back(&core->data->starved_reads, &it.starved);
        core->read_pool.left = 0;
        leat_lend_turn_end(core);
        assert_int_equal(core->data->lender->timer.at_us, first_us + LEAT_LEND_US);
        leat_list_remove(&it.starved);
        leat_lend_end(&it.reads[0]), leat_lend_end(&it.reads[1]);
        end();
    }
}

static void segments_that_are_wanted_are_had_back_at_the_look(void **state)
{
    (void)state;
    begin(1);
    it.wanted = true;
    lend(0, 0, 10, false);
    alone.now_us += LEAT_LEND_US;
    lend(1, 1, 10, false);
    alone.now_us += LEAT_LEND_US - 1;
    struct leat_timer *timer = &core_of()->data->lender->timer;
    timer->on_expired(timer);
    assert_said("rest 0: 10 bytes\nback 0\n");
    leat_lend_end(&it.reads[1]);
    end();
}

/* ---- rests ---- */

/* Goal: a connection that has taken its rest goes on, with the fetches that waited for that, and with requests. No byte
 * of the rest counts any more. */
static void connection_that_takes_its_rest_goes_on(void **state)
{
    (void)state;
    static const unsigned rests[] = {60, 1};
    for (unsigned i = 0; i < 2; i++) {
        begin(1);
        slow(0, 0, rests[i]);
        assert_said(rest_said(0, rests[i]));
        assert_int_equal(it.peers[0].requests, 1);
        assert_int_equal(it.peers[0].borrowed.rest_bytes, rests[i]);
        taken(0);
        assert_said("call limited 0\ndrained 0\n");
        assert_int_equal(it.peers[0].borrowed.rest_bytes, 0);
        slow(1, 1, 10);
        slow(2, 2, 50);
        said_enough();
        slow(3, 3, 45); /* the address has 10 now, not 70 */
        assert_closed(2, rest_said(3, 45));
        end();
    }
}

/* Goal: a rest is as old as the connection's oldest that it has still not taken. */
static void age_of_rests_begins_anew_when_all_are_taken(void **state)
{
    (void)state;
    for (unsigned all = 0; all < 2; all++) {
        begin(1);
        slow(0, 0, 10);
        slow(1, 0, 25);
        slow(2, 1, 35);
        taken(0);
        if (all) taken(1), slow(1, 0, 25);
        said_enough();
        slow(3, 2, 41);
        assert_closed(all ? 1 : 0, rest_said(3, 41));
        end();
    }
}

/* Goal: as many are closed as it takes, also those with a single byte; their rests count no more at once. */
static void rests_are_closed_until_there_is_room(void **state)
{
    (void)state;
    begin(1);
    slow(0, 0, 1);
    slow(1, 1, 60);
    said_enough();
    slow(2, 2, 45);
    char expected[512];
    snprintf(expected, sizeof expected, "close 0: %s\nclose 1: %s\n%s", slowly, slowly,
             rest_said(2, 45));
    assert_said(expected);
    assert_int_equal(core_of()->data->lender->rest_bytes, 45);
    end();
}

/* Goal: a connection that would hold more than any other is closed itself, whether the connection has a rest yet or
 * not, and the rest that it leaves is not kept. A connection that would hold as much as another goes first, too. */
static void connection_that_would_hold_most_is_closed(void **state)
{
    (void)state;
    static const unsigned others[] = {50, 55, 40}, before[] = {0, 0, 10}, more[] = {60, 55, 55};
    for (unsigned i = 0; i < 3; i++) {
        begin(1);
        slow(0, 0, others[i]);
        if (before[i] > 0) slow(1, 2, before[i]);
        said_enough();
        slow(2, 2, more[i]);
        assert_closed(2, "");
        assert_int_equal(core_of()->data->lender->rest_bytes, others[i]);
        end();
    }
}

static void of_addresses_that_hold_as_much_the_older_rest_goes(void **state)
{
    (void)state;
    begin(1);
    slow(0, 2, 40);
    slow(1, 0, 40);
    said_enough();
    slow(2, 3, 30);
    assert_closed(2, rest_said(2, 30));
    end();
}

static void rest_without_memory_closes_its_connection(void **state)
{
    (void)state;
    begin(1);
    lend(0, 0, 10, true);
    leat_buffer_wait(core_of(), &it.peers[3], &it.waits[0]);
    alone.now_us += LEAT_LEND_US;
    leat_mem_fail_at(1);
    leat_lend_turn_end(core_of());
    leat_mem_fail_at(0);
    assert_said("close 0: it takes its answers too slowly, and there is no memory for them\n");
    end();
}

/* ---- answers after a rest ---- */

static void answers_grow_until_they_are_as_large_as_before(void **state)
{
    (void)state;
    begin(1);
    uint32_t *max = &it.peers[0].borrowed.answer_bytes_max;
    leat_lend_taken(&it.peers[0]); /* it was never slow */
    assert_int_equal(*max, 0);
    slow(0, 0, 10);
    for (uint32_t bytes = LEAT_PEER_SLOW_ANSWER_BYTES; bytes < LEAT_FETCH_BYTES_MAX; bytes *= 2) {
        assert_int_equal(*max, bytes);
        leat_lend_taken(&it.peers[0]);
    }
    leat_lend_taken(&it.peers[0]);
    assert_int_equal(*max, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_get_buffers_in_turn),
        cmocka_unit_test(wait_that_ends_is_given_no_buffer),
        cmocka_unit_test(oldest_answers_give_their_buffers_back),
        cmocka_unit_test(nothing_is_kept_of_answers_that_are_over),
        cmocka_unit_test(oldest_answers_give_their_structs_back),
        cmocka_unit_test(core_that_lends_nothing_is_not_woken),
        cmocka_unit_test(busy_core_looks_at_segments_in_time),
        cmocka_unit_test(look_comes_sooner_for_those_who_wait),
        cmocka_unit_test(segments_that_are_wanted_are_had_back_at_the_look),
        cmocka_unit_test(connection_that_takes_its_rest_goes_on),
        cmocka_unit_test(age_of_rests_begins_anew_when_all_are_taken),
        cmocka_unit_test(rests_are_closed_until_there_is_room),
        cmocka_unit_test(connection_that_would_hold_most_is_closed),
        cmocka_unit_test(of_addresses_that_hold_as_much_the_older_rest_goes),
        cmocka_unit_test(rest_without_memory_closes_its_connection),
        cmocka_unit_test(answers_grow_until_they_are_as_large_as_before),
    };
    return cmocka_run_group_tests_name("broker lend_back", tests, NULL, NULL);
}
