/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches that wait, by fetch_wait.c alone: for logs here and on other cores to move, for time, for structs and for
 * their own connection; which fetch is woken when, and that the fetch goes on once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "tests/broker/alone.h"

enum { FETCHES = 4, ITEMS = 3 };

static struct {
    struct leat_peer peers[FETCHES];
    struct leat_fetch fetches[FETCHES];
    struct leat_fetch_item items[FETCHES][ITEMS]; /* of log 7/1/0, 7/1/1 and 7/1/0 again */
    struct leat_partition partition[ALONE_CORES];
    uint64_t acked[ALONE_CORES];
    bool gone, slow, enough, more; /* more: a read is under way elsewhere */
    struct leat_wanted wanted;
    unsigned not_of;     /* the fetch that nobody wants anything of */
    unsigned free_later; /* structs that come free while the ready ones run */
    bool in_line;        /* others stood in line for structs at the last read */
} it;

static unsigned number(const struct leat_fetch *fetch)
{
    return (unsigned)(fetch - it.fetches);
}

/* ---- what it calls ---- */

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, ref.log);
    return it.gone ? NULL : &it.partition[ref.log];
}
uint64_t leat_log_acked_offset(const struct leat_log *log)
{
    return *(const uint64_t *)(const void *)log;
}
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    said("timer %llu", (unsigned long long)delay_us);
    timer->heap_index_plus_1 = 1;
}
bool leat_fetch_peer_holds_enough(const struct leat_peer *peer)
{
    assert_non_null(peer);
    return it.enough;
}
bool leat_fetch_read_at(struct leat_fetch *fetch)
{
    said("read at %u", number(fetch));
    it.in_line = !leat_list_empty(&alone.cores[0].data->starved_reads);
    fetch->at = fetch->at->next;
    if (alone.cores[0].read_pool.left > 0) alone.cores[0].read_pool.left--;
    if (it.free_later > 0) alone.cores[0].read_pool.left += it.free_later, it.free_later = 0;
    return !it.more;
}
void leat_fetch_finish(struct leat_fetch *fetch)
{
    said("finish %u", number(fetch));
}
void leat_fetch_free(struct leat_fetch *fetch)
{
    said("free %u", number(fetch));
}
void leat_fetch_run(struct leat_fetch *fetch)
{
    said("run %u", number(fetch));
}
void leat_fetch_refuse(struct leat_fetch *fetch)
{
    said("refuse %u", number(fetch));
}
bool leat_peer_is_slow(struct leat_peer *peer)
{
    assert_non_null(peer);
    return it.slow;
}
void leat_stocks_wanted(struct leat_core *core, struct leat_wanted *out_wanted)
{
    assert_int_equal(core->index, 0);
    *out_wanted = it.wanted;
}
bool leat_wanted_of(struct leat_wanted *wanted, struct leat_sharer *sharer, uint32_t count)
{
    assert_int_equal(count, ITEMS);
    unsigned of = (unsigned)(uintptr_t)sharer - 1;
    if (of == it.not_of) return false;
    wanted->of_all -= wanted->of_all > 0;
    return true;
}

/* ---- the tests' own ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    struct leat_core *core = &alone.cores[0];
    struct leat_list *const lists[] = {&core->data->ready_fetches, &core->data->starved_reads,
                                       &core->data->deferred_fetches, &core->data->fetches};
    for (unsigned i = 0; i < 4; i++)
        leat_list_init(lists[i]);
    it.not_of = FETCHES;
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        it.partition[q] = (struct leat_partition){
            .ref = {ALONE_STREAM, 1, q}, .core = &alone.cores[q], .log = (void *)&it.acked[q]};
        leat_list_init(&it.partition[q].waiters);
    }
    for (unsigned f = 0; f < FETCHES; f++) {
        struct leat_fetch *fetch = &it.fetches[f];
        it.peers[f].core = core;
        leat_list_init(&it.peers[f].slow);
        *fetch = (struct leat_fetch){.core = core,
                                     .peer = &it.peers[f],
                                     .sharer = (void *)(uintptr_t)(f + 1),
                                     .deadline_us = alone.now_us + 500,
                                     .item_count = ITEMS,
                                     .items = it.items[f]};
        leat_list_init(&fetch->link);
        leat_list_init(&fetch->by_core);
        for (unsigned i = 0; i < ITEMS; i++) {
            uint32_t log = i == 1 ? 1 : 0;
            it.items[f][i] =
                (struct leat_fetch_item){.fetch = fetch,
                                         .next = i + 1 < ITEMS ? &it.items[f][i + 1] : NULL,
                                         .want = {.log = {ALONE_STREAM, 1, log}, .offset = 40},
                                         .home = log,
                                         .watch_from = 40};
            leat_list_init(&it.items[f][i].waiting);
        }
    }
    it.acked[0] = it.acked[1] = 40;
}

static void end(void)
{
    for (uint32_t q = 0; q < ALONE_CORES; q++)
        assert_true(leat_list_empty(&it.partition[q].waiters));
    said_enough();
    alone_end();
}

static bool is_ready(unsigned f)
{
    return !leat_list_empty(&it.fetches[f].link);
}

/* It goes on: out of whatever list it is in. */
static void taken(unsigned f)
{
    leat_list_remove(&it.fetches[f].link);
    it.fetches[f].state = LEAT_FETCH_RUNNING; /* as the next round would have it */
}

/* A fetch that waits at its logs, here and on the other core. */
static void waits(void)
{
    begin();
    leat_fetch_wait(&it.fetches[0]);
    alone_deliver_all();
    said_enough();
    assert_false(is_ready(0));
}

/* ---- a log moves ---- */

static void fetch_stands_at_all_its_logs(void **state)
{
    (void)state;
    begin();
    leat_fetch_wait(&it.fetches[0]);
    assert_said("timer 500\nmail to 1\n");
    assert_int_equal(it.fetches[0].state, LEAT_FETCH_WAITING);
    assert_ptr_equal(it.partition[0].waiters.next, &it.items[0][0].waiting);
    assert_ptr_equal(it.partition[0].waiters.prev, &it.items[0][2].waiting);
    alone_deliver();
    assert_ptr_equal(it.partition[1].waiters.next, &it.items[0][1].waiting);
    assert_int_equal(it.fetches[0].watches_out, 1);
    it.acked[0] = 41;
    leat_fetch_on_acked(&it.partition[0]);
    assert_said("mail to 1\n"); /* the other core gives its watch back */
    assert_int_equal(it.fetches[0].state, LEAT_FETCH_UNWATCHING);
    assert_true(leat_list_empty(&it.partition[0].waiters));
    assert_false(is_ready(0));
    alone_deliver();
    assert_said("mail to 0\n");
    assert_false(is_ready(0));
    alone_deliver();
    assert_true(is_ready(0));
    assert_int_equal(it.fetches[0].watches_out, 0);
    assert_int_equal(it.items[0][1].mails_out, 0);
    taken(0);
    end();
}

static void log_of_another_core_wakes_it(void **state)
{
    (void)state;
    waits();
    leat_fetch_on_acked(&it.partition[1]);
    assert_said("mail to 0\n");
    alone_deliver();
    assert_true(is_ready(0));
    assert_said(""); /* there is nothing to be given back */
    assert_int_equal(it.fetches[0].watches_out, 0);
    assert_int_equal(it.items[0][1].mails_out, 0);
    assert_false(it.fetches[0].over_deadline);
    taken(0);
    end();
}

/* Goal: both at once: a watch that is told, and given back, counts once. */
static void both_cores_wake_it_at_once(void **state)
{
    (void)state;
    waits();
    leat_fetch_on_acked(&it.partition[1]); /* its mail is under way */
    leat_fetch_on_acked(&it.partition[0]);
    assert_said("mail to 0\nmail to 1\n");
    alone_deliver();
    assert_false(is_ready(0));
    alone_deliver_all();
    assert_true(is_ready(0));
    assert_int_equal(it.fetches[0].watches_out, 0);
    assert_int_equal(it.items[0][1].mails_out, 0);
    taken(0);
    end();
}

/* Goal: a log of another core wakes it in each round, whatever ended the round before. */
static void log_of_another_core_wakes_it_again(void **state)
{
    (void)state;
    waits();
    leat_fetch_on_acked(&it.partition[0]);
    alone_deliver_all();
    assert_true(is_ready(0));
    taken(0);
    leat_fetch_wait(&it.fetches[0]);
    alone_deliver_all();
    assert_false(is_ready(0));
    leat_fetch_on_acked(&it.partition[1]);
    alone_deliver_all();
    assert_true(is_ready(0));
    assert_int_equal(it.fetches[0].watches_out, 0);
    taken(0);
    said_enough();
    end();
}

/* Goal: a log that has moved, or is not there, is not waited for; the fetch is woken once, however many logs tell
 * it. */
static void log_that_has_moved_is_not_waited_for(void **state)
{
    (void)state;
    enum { MOVED_HERE, MOVED_THERE, GONE, GOING, STOPPING, CASES };
    for (unsigned i = 0; i < CASES; i++) {
        begin();
        if (i == MOVED_HERE) it.acked[0] = 41;
        if (i == MOVED_THERE) it.acked[1] = 41;
        if (i == GONE) it.gone = true;
        if (i == GOING) it.partition[0].state = LEAT_PARTITION_GOES;
        if (i == STOPPING) alone.cores[1].stopping = true;
        leat_fetch_wait(&it.fetches[0]);
        alone_deliver_all();
        assert_true(is_ready(0));
        assert_int_equal(it.fetches[0].state, LEAT_FETCH_UNWATCHING);
        assert_int_equal(it.fetches[0].watches_out, 0);
        assert_int_equal(it.items[0][1].mails_out, 0);
        taken(0);
        end();
    }
}

/* Goal: by position nothing tells what comes next: any move wakes. */
static void fetch_by_position_waits_for_any_move(void **state)
{
    (void)state;
    begin();
    struct leat_fetch_item *item = &it.items[0][0];
    it.fetches[0].items = item;
    item->next = NULL;
    item->want.by_position = true;
    item->want.offset = item->watch_from = 0;
    item->result.acked_offset = 40;
    leat_fetch_wait(&it.fetches[0]);
    assert_int_equal(item->watch_from, 40);
    assert_false(is_ready(0));
    leat_fetch_on_acked(&it.partition[0]);
    assert_true(is_ready(0));
    taken(0);
    it.fetches[0].state = LEAT_FETCH_RUNNING;
    item->watch_from = 39; /* it has read up to there */
    leat_fetch_wait(&it.fetches[0]);
    assert_int_equal(item->watch_from, 39);
    assert_true(is_ready(0));
    taken(0);
    end();
}

/* ---- time ---- */

static void time_wakes_it(void **state)
{
    (void)state;
    waits();
    it.fetches[0].timer.owner = &it.fetches[0];
    leat_fetch_on_timer(&it.fetches[0].timer);
    assert_true(it.fetches[0].over_deadline);
    alone_deliver_all();
    assert_true(is_ready(0));
    taken(0);
    end();
    for (unsigned i = 0; i < 2; i++) {
        begin();
        it.fetches[0].items[1].home = 0, it.fetches[0].items[1].want.log.log = 0;
        it.fetches[0].deadline_us = alone.now_us + i;
        leat_fetch_wait(&it.fetches[0]);
        assert_said(i == 0 ? "" : "timer 1\n");
        assert_int_equal(it.fetches[0].over_deadline, i == 0);
        assert_int_equal(is_ready(0), i == 0);
        if (i == 1) { /* the timer goes on over a second round */
            leat_fetch_on_acked(&it.partition[0]);
            taken(0);
            leat_fetch_wait(&it.fetches[0]);
            assert_said("");
            leat_fetch_on_acked(&it.partition[0]);
        }
        taken(0);
        end();
    }
}

/* Goal: a fetch that is awake is not woken again. */
static void fetch_is_woken_once(void **state)
{
    (void)state;
    begin();
    it.fetches[0].state = LEAT_FETCH_RUNNING;
    leat_fetch_wake(&it.fetches[0]);
    assert_false(is_ready(0));
    it.fetches[0].state = LEAT_FETCH_UNWATCHING;
    leat_fetch_wake(&it.fetches[0]);
    leat_fetch_wake(&it.fetches[0]);
    assert_ptr_equal(alone.cores[0].data->ready_fetches.next, &it.fetches[0].link);
    assert_ptr_equal(alone.cores[0].data->ready_fetches.prev, &it.fetches[0].link);
    it.fetches[1].state = LEAT_FETCH_UNWATCHING;
    leat_fetch_wake(&it.fetches[1]); /* behind it */
    leat_fetch_wake(&it.fetches[0]);
    assert_ptr_equal(alone.cores[0].data->ready_fetches.next, &it.fetches[0].link);
    assert_ptr_equal(it.fetches[0].link.next, &it.fetches[1].link);
    assert_ptr_equal(it.fetches[1].link.next, &alone.cores[0].data->ready_fetches);
    taken(0), taken(1);
    end();
}

/* ---- at the end of a turn ---- */

static void ready(unsigned f, enum leat_fetch_state state)
{
    it.fetches[f].state = state;
    leat_list_push_back(&alone.cores[0].data->ready_fetches, &it.fetches[f].link);
}

static void ready_fetches_go_on_in_order(void **state)
{
    (void)state;
    begin();
    ready(0, LEAT_FETCH_UNWATCHING);
    ready(1, LEAT_FETCH_RUNNING);
    ready(2, LEAT_FETCH_UNWATCHING);
    it.fetches[1].at = &it.items[1][1];
    it.fetches[2].peer = NULL;
    leat_fetch_run_ready(&alone.cores[0]);
    assert_said("run 0\nread at 1\nread at 1\nfinish 1\nfree 2\n");
    ready(1, LEAT_FETCH_RUNNING);
    it.fetches[1].at = &it.items[1][1];
    it.more = true;
    leat_fetch_run_ready(&alone.cores[0]);
    assert_said("read at 1\n"); /* it is under way elsewhere */
    ready(1, LEAT_FETCH_RUNNING);
    it.fetches[1].at = NULL;
    leat_fetch_run_ready(&alone.cores[0]);
    assert_said("finish 1\n");
    end();
}

/* Goal: nothing is read for a connection that does not take its answers, until the connection does. */
static void slow_readers_are_deferred(void **state)
{
    (void)state;
    begin();
    struct leat_core *core = &alone.cores[0];
    struct leat_list slow;
    leat_list_init(&slow);
    it.slow = true;
    ready(0, LEAT_FETCH_UNWATCHING), ready(1, LEAT_FETCH_UNWATCHING),
        ready(2, LEAT_FETCH_UNWATCHING);
    leat_fetch_run_ready(core);
    assert_said("");
    leat_list_push_back(&slow, &it.peers[0].slow);
    leat_list_push_back(&slow, &it.peers[1].slow);
    it.fetches[1].peer = NULL;
    leat_fetch_undefer(core);
    assert_ptr_equal(core->data->deferred_fetches.next, &it.fetches[0].link);
    assert_ptr_equal(core->data->deferred_fetches.prev, &it.fetches[0].link);
    it.slow = false;
    leat_fetch_run_ready(core);
    assert_said("free 1\nrun 2\n");
    taken(0);
    end();
}

/* Goal: a fetch that was deferred before its first read begins with its first log: the fetch has nothing to be answered
 * yet. */
static void deferred_fetch_begins(void **state)
{
    (void)state;
    begin();
    it.fetches[0].state = LEAT_FETCH_RUNNING;
    it.fetches[0].at = NULL;
    leat_list_push_back(&alone.cores[0].data->deferred_fetches, &it.fetches[0].link);
    leat_fetch_undefer(&alone.cores[0]);
    leat_fetch_run_ready(&alone.cores[0]);
    assert_said("run 0\n");
    end();
}

/* Goal: as many of those who stand in line as there are structs; and again where some come free. */
static void those_in_line_are_called(void **state)
{
    (void)state;
    for (unsigned left = 0; left <= 2; left++) {
        begin();
        struct leat_core *core = &alone.cores[0];
        for (unsigned f = 0; f < 3; f++) {
            it.fetches[f].state = LEAT_FETCH_RUNNING;
            it.fetches[f].at = &it.items[f][2];
            leat_list_push_back(&core->data->starved_reads, &it.fetches[f].link);
        }
        core->read_pool.left = left;
        leat_fetch_run_ready(core);
        static const char *const expected[] = {"", "read at 0\nfinish 0\n",
                                               "read at 0\nfinish 0\nread at 1\nfinish 1\n"};
        assert_said(expected[left]);
        assert_int_equal(it.fetches[0].called, left > 0);
        assert_int_equal(it.fetches[2].called, 0);
        if (left == 1) {
            core->read_pool.left = 1;
            it.free_later = 1; /* the fetch that is called gives a struct back */
            leat_fetch_run_ready(core);
            assert_said("read at 1\nfinish 1\nread at 2\nfinish 2\n");
        }
        for (unsigned f = 0; f < 3; f++)
            taken(f);
        end();
    }
}

/* Goal: a new fetch finds the fetches in line still there, and goes behind them. */
static void newcomer_does_not_overtake_those_in_line(void **state)
{
    (void)state;
    begin();
    it.fetches[0].at = &it.items[0][0], it.fetches[1].at = &it.items[1][0];
    leat_list_push_back(&alone.cores[0].data->starved_reads, &it.fetches[0].link);
    it.fetches[0].state = LEAT_FETCH_RUNNING;
    ready(1, LEAT_FETCH_RUNNING);
    alone.cores[0].read_pool.left = 1;
    it.more = true; /* it is in line, too */
    leat_fetch_run_ready(&alone.cores[0]);
    assert_said("read at 1\n");
    assert_true(it.in_line);
    taken(0);
    end();
}

/* ---- giving way ---- */

/* Goal: as many fetches as are wanted give way, of the address of which they are wanted. Fetches that wait for data are
 * answered; fetches that wait for their own connection are refused. */
static void fetches_give_way(void **state)
{
    (void)state;
    begin();
    struct leat_core *core = &alone.cores[0];
    for (unsigned f = 0; f < FETCHES; f++) {
        it.fetches[f].state = LEAT_FETCH_WAITING;
        leat_list_push_back(&core->data->fetches, &it.fetches[f].by_core);
    }
    leat_fetch_give_way(core);
    assert_said("");
    it.wanted.of_all = 2;
    it.not_of = 1;
    it.fetches[0].state = LEAT_FETCH_SENDING; /* not one that waits */
    leat_fetch_give_way(core);
    assert_false(it.fetches[0].over_deadline || it.fetches[1].over_deadline);
    assert_true(it.fetches[2].over_deadline && it.fetches[3].over_deadline);
    assert_int_equal(it.fetches[2].state, LEAT_FETCH_UNWATCHING);
    it.wanted.of_all = 0, it.wanted.of_own = 1;
    leat_fetch_give_way(core);
    assert_false(it.fetches[1].over_deadline);
    it.not_of = FETCHES;
    it.wanted.of_all = 1; /* and as many of an address */
    leat_fetch_give_way(core);
    assert_true(it.fetches[1].over_deadline);
    for (unsigned f = 0; f < FETCHES; f++)
        taken(f), leat_list_remove(&it.fetches[f].by_core);
    end();
}

static void fetch_that_waits_for_its_connection_is_refused(void **state)
{
    (void)state;
    static const enum leat_fetch_state states[] = {LEAT_FETCH_RUNNING, LEAT_FETCH_UNWATCHING,
                                                   LEAT_FETCH_READY, LEAT_FETCH_CONFIRMING};
    for (unsigned i = 0; i < 4 * 32; i++) {
        enum leat_fetch_state is = states[i / 32];
        bool slow = i & 1, enough = i & 2, linked = i & 4, closing = i & 8, gone = i & 16;
        begin();
        struct leat_core *core = &alone.cores[0];
        struct leat_fetch *fetch = &it.fetches[0];
        struct leat_list others;
        leat_list_init(&others);
        fetch->state = is;
        leat_list_push_back(&core->data->fetches, &fetch->by_core);
        if (slow) leat_list_push_back(&others, &it.peers[0].slow);
        if (linked) leat_list_push_back(&core->data->deferred_fetches, &fetch->link);
        it.enough = enough;
        it.peers[0].closing = closing;
        if (gone) fetch->peer = NULL;
        it.wanted.of_all = 1;
        leat_fetch_give_way(core);
        bool waiting = is == LEAT_FETCH_READY
                           ? slow
                           : is != LEAT_FETCH_CONFIRMING && linked && (slow || enough);
        assert_said(waiting && !closing && !gone ? "refuse 0\n" : "");
        taken(0);
        leat_list_remove(&fetch->by_core);
        leat_list_remove(&it.peers[0].slow);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fetch_stands_at_all_its_logs),
        cmocka_unit_test(log_of_another_core_wakes_it),
        cmocka_unit_test(both_cores_wake_it_at_once),
        cmocka_unit_test(log_of_another_core_wakes_it_again),
        cmocka_unit_test(log_that_has_moved_is_not_waited_for),
        cmocka_unit_test(fetch_by_position_waits_for_any_move),
        cmocka_unit_test(time_wakes_it),
        cmocka_unit_test(fetch_is_woken_once),
        cmocka_unit_test(ready_fetches_go_on_in_order),
        cmocka_unit_test(slow_readers_are_deferred),
        cmocka_unit_test(deferred_fetch_begins),
        cmocka_unit_test(those_in_line_are_called),
        cmocka_unit_test(newcomer_does_not_overtake_those_in_line),
        cmocka_unit_test(fetches_give_way),
        cmocka_unit_test(fetch_that_waits_for_its_connection_is_refused),
    };
    return cmocka_run_group_tests_name("broker fetch_wait", tests, NULL, NULL);
}
