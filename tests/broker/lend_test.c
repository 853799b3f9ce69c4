/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers for old data, and what slow connections leave in them: had back when others wait, and kept within a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/net/core.h"
#include "broker/net/sharer.h"
#include "tests/broker/parts.h"

enum { PEERS = 4, KIB = 1024 };

/* The network, as far as it is asked here. */
struct leat_conn {
    size_t unsent;
    bool closed;
    struct leat_send *rest;
};

struct desk {
    struct leat_core core;
    struct core_world world;
    struct leat_node node;
    struct leat_net net;
    struct leat_conn conns[PEERS];
    struct leat_peer peers[PEERS];
    struct leat_fetch fetches[PEERS]; /* each has one read, its last */
    struct leat_buffer_wait wait;
    unsigned given;
    void *buffer;
};

static void desk_wake(void *ctx, uint64_t at_us)
{
    (void)ctx;
    (void)at_us;
}
static size_t conn_unsent(const struct leat_conn *conn, const struct leat_send *send)
{
    (void)send;
    return conn->unsent;
}
static void conn_replace(struct leat_conn *conn, struct leat_send *send, struct leat_send *by)
{
    (void)send;
    assert_int_equal(by->iovs[0].bytes, conn->unsent);
    conn->rest = by;
}
static void conn_close(struct leat_conn *conn)
{
    conn->closed = true;
}
static void conn_pause(struct leat_conn *conn)
{
    (void)conn;
}
static const char *conn_peer(const struct leat_conn *conn)
{
    (void)conn;
    return "a peer";
}

static void on_buffer(struct leat_buffer_wait *wait, void *buffer)
{
    struct desk *desk = wait->owner;
    desk->given++;
    desk->buffer = buffer;
}

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->net = (struct leat_net){.ctx = desk,
                                  .unsent_bytes = conn_unsent,
                                  .replace = conn_replace,
                                  .pause = conn_pause,
                                  .close = conn_close,
                                  .peer = conn_peer};
    struct leat_core *core = &desk->core;
    core_world_set(core, &desk->world, &desk->node, &desk->net);
    desk->world.clock.wake_at = desk_wake;
    desk->node.options.cores = 1;
    desk->node.options.memory_bytes = 1ull << 30;
    leat_list_init(&core->data->starved_reads);
    leat_list_init(&core->data->ready_fetches);
    assert_int_equal(leat_timers_init(&core->timers, &desk->world.clock, 4), LEAT_OK);
    assert_int_equal(leat_lender_init(core, PEERS), LEAT_OK);
    core->data->lender->rest_bytes_max = 100 * KIB;
    for (unsigned i = 0; i < PEERS; i++) {
        struct leat_peer *peer = &desk->peers[i];
        struct leat_fetch *fetch = &desk->fetches[i];
        peer->core = core;
        peer->conn = &desk->conns[i];
        leat_list_init(&peer->slow);
        leat_list_init(&peer->limited);
        leat_list_init(&peer->answers);
        leat_borrower_init(&peer->borrowed);
        peer->address = i < 2 ? 0 : i;
        assert_true(leat_sharer_join(core, peer));
        leat_list_init(&fetch->ends.lent);
        fetch->core = core;
        fetch->peer = peer;
        fetch->ends.fetch = fetch;
        fetch->sends_left = 2; /* it goes on */
    }
    desk->wait = (struct leat_buffer_wait){.on_buffer = on_buffer, .owner = desk};
    leat_list_init(&desk->wait.link);
    return desk;
}

static void desk_free(struct desk *desk)
{
    for (unsigned i = 0; i < PEERS; i++) {
        struct leat_send *rest = desk->conns[i].rest;
        if (!rest) continue;
        desk->peers[i].requests++; /* it stays */
        rest->on_sent(rest, LEAT_E_CLOSED);
    }
    assert_int_equal(desk->core.data->lender->rest_bytes, 0);
    for (unsigned i = 0; i < PEERS; i++)
        leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    leat_lender_fini(&desk->core);
    leat_timers_fini(&desk->core.timers);
    free(desk);
}

/* A connection is sent old data, of which it leaves so much; then somebody waits for its buffer. */
static void lends_and_has_back(struct desk *desk, unsigned i, size_t unsent)
{
    struct leat_fetch_read *read = &desk->fetches[i].ends;
    void *others[PEERS];
    unsigned count = 0, given = desk->given;
    desk->conns[i].unsent = unsent;
    desk->peers[i].reads++;
    read->read.disk_buffer = leat_buffer_try(&desk->core);
    assert_non_null(read->read.disk_buffer);
    leat_lend(read);
    while ((others[count] = leat_buffer_try(&desk->core)) != NULL)
        count++;
    leat_buffer_wait(&desk->core, &desk->peers[PEERS - 1], &desk->wait);
    desk->world.now_us += LEAT_LEND_US;
    leat_lend_turn_end(&desk->core);
    assert_int_equal(desk->given, given + 1);
    leat_buffer_give(&desk->core, desk->buffer);
    while (count > 0)
        leat_buffer_give(&desk->core, others[--count]);
}

/* Goal: a slow connection has the rest of its answer in memory of its own, and its next answer is short. */
static void who_is_slow_gives_its_buffer_back_and_has_short_answers(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    lends_and_has_back(desk, 0, 20 * KIB);
    assert_non_null(desk->conns[0].rest);
    assert_int_equal(desk->core.data->lender->rest_bytes, 20 * KIB);
    assert_int_equal(desk->peers[0].borrowed.answer_bytes_max, LEAT_PEER_SLOW_ANSWER_BYTES);
    leat_lend_taken(&desk->peers[0]); /* twice as much next time */
    assert_int_equal(desk->peers[0].borrowed.answer_bytes_max, 2 * LEAT_PEER_SLOW_ANSWER_BYTES);
    assert_int_equal(desk->peers[1].borrowed.answer_bytes_max, 0);
    desk_free(desk);
}

/* Goal: all rests together have a limit. Past the limit the connection that has had a rest for longest is closed, of
 * the address that holds most, and not a connection that has just been sent a large answer. A connection that holds all
 * of the limit alone is not closed. */
static void who_leaves_its_rest_for_longest_is_closed(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    lends_and_has_back(desk, 2, 10 * KIB); /* older than all, of another address */
    lends_and_has_back(desk, 0, 20 * KIB);
    lends_and_has_back(desk, 1, 50 * KIB);
    for (unsigned i = 0; i < PEERS; i++)
        assert_false(desk->conns[i].closed);
    lends_and_has_back(desk, 3, 40 * KIB);
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(desk->conns[i].closed, i == 0);
    assert_int_equal(desk->core.data->lender->rest_bytes, 100 * KIB);
    desk_free(desk);
    desk = desk_new();
    lends_and_has_back(desk, 0, 110 * KIB);
    assert_false(desk->conns[0].closed);
    lends_and_has_back(desk, 2, 10 * KIB); /* one address holds all */
    assert_true(desk->conns[0].closed && !desk->conns[2].closed);
    desk_free(desk);
    desk = desk_new(); /* the address that holds most is not the last one */
    lends_and_has_back(desk, 0, 60 * KIB);
    lends_and_has_back(desk, 2, 10 * KIB);
    lends_and_has_back(desk, 3, 40 * KIB);
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(desk->conns[i].closed, i == 0);
    desk_free(desk);
    desk = desk_new(); /* nor the last address that holds more than the newcomer's */
    lends_and_has_back(desk, 0, 60 * KIB);
    lends_and_has_back(desk, 2, 30 * KIB);
    lends_and_has_back(desk, 3, 20 * KIB);
    for (unsigned i = 0; i < PEERS; i++)
        assert_int_equal(desk->conns[i].closed, i == 0);
    desk_free(desk);
}

/* Goal: a segment that the store wants back is had back when its time to be taken is over, and no other one is. */
static void segments_that_are_wanted_are_had_back(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        const bool wanted = kind & 1, due = kind & 2;
        struct desk *desk = desk_new();
        struct leat_fetch_read *read = &desk->fetches[0].ends;
        static struct leat_segment seg;
        atomic_store(&seg.pins, wanted ? UINT32_MAX : 1);
        desk->conns[0].unsent = 20 * KIB;
        desk->peers[0].reads++;
        read->read.pinned = &seg;
        leat_lend(read);
        desk->world.now_us += LEAT_LEND_US - !due;
        desk->core.data->lender->timer.on_expired(&desk->core.data->lender->timer);
        assert_int_equal(desk->conns[0].rest != NULL, wanted && due);
        leat_lend_end(read);
        desk_free(desk);
    }
}

/* Goal: while requests wait for structs to read with, and none is left, what is lent is had back in time; not before
 * none is left. */
static void structs_that_are_lent_are_had_back(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_core *core = &desk->core;
    struct leat_fetch_read *read = &desk->fetches[0].ends;
    struct leat_list waiting;
    leat_list_init(&waiting);
    desk->conns[0].unsent = 20 * KIB;
    desk->peers[0].reads++;
    read->read.disk_buffer = leat_buffer_try(core);
    leat_lend(read);
    leat_list_push_back(&core->data->starved_reads, &waiting);
    desk->world.now_us += LEAT_LEND_US;
    core->read_pool.left = 1;
    leat_lend_turn_end(core);
    assert_null(desk->conns[0].rest);
    core->read_pool.left = 0;
    leat_lend_turn_end(core);
    assert_non_null(desk->conns[0].rest);
    leat_list_remove(&waiting);
    desk_free(desk);
}

/* Goal: lent memory is looked at again when it may be had back, as soon as a fetch waits for it: for a buffer, or,
 * where no struct to read with is left, for a struct. Otherwise as rarely as memory that the store may want back. */
static void timer_is_set_for_what_is_awaited(void **state)
{
    (void)state;
    enum { SOON = 100 };
    for (unsigned kind = 0; kind < 16; kind++) {
        const bool waits = kind & 1, left = kind & 2, buffer = kind & 4, in_line = kind & 8;
        if (in_line && !buffer) continue;
        struct desk *desk = desk_new();
        struct leat_core *core = &desk->core;
        struct leat_fetch_read *read = &desk->fetches[0].ends;
        struct leat_list waiting;
        void *others[PEERS];
        unsigned count = 0;
        leat_list_init(&waiting);
        desk->conns[0].unsent = 20 * KIB;
        desk->peers[0].reads++;
        if (buffer) read->read.disk_buffer = leat_buffer_try(core);
        leat_lend(read);
        if (in_line) {
            while ((others[count] = leat_buffer_try(core)) != NULL)
                count++;
            leat_buffer_wait(core, &desk->peers[PEERS - 1], &desk->wait);
        }
        if (waits) leat_list_push_back(&core->data->starved_reads, &waiting);
        core->read_pool.left = left;
        desk->world.now_us += LEAT_LEND_US - SOON;
        leat_lend_turn_end(core);
        assert_null(desk->conns[0].rest);
        assert_true(leat_timer_armed(&core->data->lender->timer));
        const bool soon = in_line || (waits && !left);
        assert_int_equal(core->data->lender->timer.at_us,
                         desk->world.now_us + (soon ? SOON : LEAT_LEND_LOOK_US));
        leat_lend_turn_end(core); /* which is soon enough */
        assert_int_equal(core->data->lender->timer.at_us,
                         desk->world.now_us + (soon ? SOON : LEAT_LEND_LOOK_US));
        leat_list_remove(&waiting);
        leat_buffer_wait_end(&desk->peers[PEERS - 1], &desk->wait);
        leat_lend_end(read);
        if (buffer) leat_buffer_give(core, read->read.disk_buffer);
        while (count > 0)
            leat_buffer_give(core, others[--count]);
        desk_free(desk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_slow_gives_its_buffer_back_and_has_short_answers),
        cmocka_unit_test(who_leaves_its_rest_for_longest_is_closed),
        cmocka_unit_test(segments_that_are_wanted_are_had_back),
        cmocka_unit_test(structs_that_are_lent_are_had_back),
        cmocka_unit_test(timer_is_set_for_what_is_awaited),
    };
    return cmocka_run_group_tests_name("broker lend", tests, NULL, NULL);
}
