/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of many pieces: how many are done in a turn of the loop, how many are under way, and what they leave of
 * both to others. The test plays the loop, and whatever the pieces wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/front/pieces.h"
#include "tests/broker/parts.h"

enum { REQUESTS = 4, PIECES = 10000, TURNS_MAX = 100000 };

struct leat_conn {
    bool paused, closed;
};

struct work {
    struct leat_kafka_pieces pieces; /* first */
    struct desk *desk;
    struct leat_conn conn;
    struct leat_peer peer;
    struct leat_kafka_conn kafka;
    struct leat_kafka_request request;
    uint32_t done, of_turn, begun, ended, fails_at;
    bool waits;   /* for something */
    bool at_once; /* what it waits for is there */
    void *under_way[PIECES], *memories[PIECES];
    uint32_t memory_count;
};

struct desk {
    struct leat_core core;
    struct core_world world;
    struct leat_node node;
    struct leat_net net;
    struct leat_kafka_core door;
    struct work works[REQUESTS];
    uint64_t cost_us;
};

static void conn_pause(struct leat_conn *conn)
{
    conn->paused = true;
}
static void conn_resume(struct leat_conn *conn)
{
    conn->paused = false;
}

static void conn_close(struct leat_conn *conn)
{
    conn->closed = true;
}
static const char *conn_peer(const struct leat_conn *conn)
{
    (void)conn;
    return "nobody";
}

static enum leat_kafka_piece work_next(struct leat_kafka_pieces *pieces)
{
    struct work *work = (struct work *)pieces;
    if (work->done == PIECES) return LEAT_KAFKA_PIECE_NONE;
    if (work->fails_at != 0 && work->done == work->fails_at) return LEAT_KAFKA_PIECE_FAILED;
    work->done++;
    work->of_turn++;
    work->desk->world.now_us += work->desk->cost_us;
    if (!work->waits) return LEAT_KAFKA_PIECE_DONE;
    const uint8_t zeros[100] = {0};
    uint8_t *memory = leat_kafka_pieces_begin(pieces, sizeof zeros);
    assert_non_null(memory);
    assert_memory_equal(memory, zeros, sizeof zeros);
    memset(memory, 0xa5, sizeof zeros);
    bool known = false;
    for (uint32_t i = 0; i < work->memory_count; i++)
        known |= work->memories[i] == memory;
    if (!known) work->memories[work->memory_count++] = memory;
    work->under_way[work->begun++] = memory;
    if (work->at_once) leat_kafka_pieces_end(pieces, work->under_way[work->ended++]);
    return LEAT_KAFKA_PIECE_DONE;
}

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->node.options.cores = 1;
    core_world_set(&desk->core, &desk->world, &desk->node, &desk->net);
    desk->core.front = &desk->door;
    desk->net = (struct leat_net){.ctx = desk,
                                  .pause = conn_pause,
                                  .resume = conn_resume,
                                  .close = conn_close,
                                  .peer = conn_peer};
    desk->door.share.bytes_max = 1 << 20;
    leat_list_init(&desk->core.answer_peers);
    leat_pace_init(&desk->core);
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct work *work = &desk->works[i];
        struct leat_peer *peer = &work->peer;
        work->kafka.peer = peer;
        work->desk = desk;
        peer->core = &desk->core;
        peer->conn = &work->conn;
        peer->address = i;
        leat_list_init(&peer->answers);
        leat_pace_peer_init(&peer->pace);
        assert_true(leat_sharer_join(&desk->core, peer));
        leat_kafka_arena_init(&work->request.arena, &desk->door.share, 1 << 20);
        work->request.conn = &work->kafka;
        work->kafka.first = work->kafka.last = &work->request;
        work->request.core = &desk->core;
        work->pieces.request = &work->request;
        work->pieces.response = work;
        work->pieces.next = work_next;
    }
    return desk;
}

static void desk_free(struct desk *desk)
{
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct work *work = &desk->works[i];
        work->peer.conn = NULL;
        leat_pace_forget(&work->peer);
        leat_kafka_arena_fini(&work->request.arena);
        leat_sharer_leave(&desk->core, work->peer.sharer);
    }
    free(desk);
}

static void turn(struct desk *desk)
{
    struct leat_mail *mail = desk->world.mail;
    desk->world.mail = NULL;
    for (unsigned i = 0; i < REQUESTS; i++)
        desk->works[i].of_turn = 0;
    if (mail != NULL) mail->deliver(&desk->core, mail);
    leat_pace_turn_end(&desk->core);
}

/* As soon as it is its turn: in the next one at the latest. */
static void start(struct work *work)
{
    if (!leat_pace_begin(&work->peer)) {
        turn(work->desk);
        assert_true(leat_pace_begin(&work->peer));
    }
    leat_kafka_pieces_start(&work->pieces);
    leat_pace_end(&work->peer);
}

/* Of the pieces under way the piece that was begun first ends. */
static void one_ends(struct work *work)
{
    assert_in_range(work->ended, 0, work->begun - 1);
    leat_kafka_pieces_end(&work->pieces, work->under_way[work->ended++]);
}

/* Goal: so many in a turn, and no longer than a turn has time; in between others begin something. */
static void pieces_are_done_in_turns(void **state)
{
    (void)state;
    static const uint64_t costs_us[] = {1, 100, 0};
    for (unsigned c = 0; c < 3; c++) {
        struct desk *desk = desk_new();
        struct work *work = &desk->works[0];
        const uint32_t mosts[] = {LEAT_PACE_TURN_US + LEAT_KAFKA_PIECES_TURN_MAX,
                                  LEAT_PACE_TURN_US / 100 + 8,
                                  LEAT_PACE_CALLED_MAX * LEAT_KAFKA_PIECES_TURN_MAX};
        const uint32_t most = mosts[c]; /* without time: of all that are called */
        desk->cost_us = costs_us[c];
        start(work);
        leat_pace_turn_end(&desk->core);
        unsigned turns = 1;
        for (; !work->request.done; turns++) {
            assert_in_range(turns, 0, TURNS_MAX);
            assert_in_range(work->of_turn + desk->works[1].of_turn, 1, most);
            turn(desk);
            if (turns != 5 || desk->cost_us == 0) continue;
            start(&desk->works[1]); /* another address, amid the first */
            leat_pace_turn_end(&desk->core);
            assert_in_range(desk->works[1].done, 1, most);
            assert_false(work->request.done);
        }
        assert_in_range(turns, PIECES / most, TURNS_MAX);
        assert_int_equal(work->done, PIECES);
        assert_ptr_equal(work->request.response, work);
        desk_free(desk);
    }
}

/* Goal: few are under way at a time, with memory for as many, however many there are; the answer waits for the last. */
static void pieces_wait_in_their_request(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct work *work = &desk->works[0];
    work->waits = true;
    start(work);
    while (!work->request.done) {
        assert_in_range(work->begun - work->ended, 1, LEAT_KAFKA_PIECES_AT_ONCE);
        assert_int_equal(work->begun - work->ended, work->peer.sharer->front.begun);
        one_ends(work);
        turn(desk);
    }
    assert_int_equal(work->done, PIECES);
    assert_int_equal(work->ended, PIECES);
    assert_in_range(work->memory_count, 1, LEAT_KAFKA_PIECES_AT_ONCE);
    assert_int_equal(desk->door.begun, 0);
    desk_free(desk);
}

/* Goal: a piece that ends at once does not begin the next piece from within itself, and leaves nothing after the
 * answer. */
static void pieces_that_end_at_once_are_done_one_by_one(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct work *work = &desk->works[0];
    work->waits = work->at_once = true;
    desk->cost_us = 1;
    start(work);
    while (!work->request.done)
        turn(desk);
    assert_false(work->pieces.queued);
    assert_int_equal(work->ended, PIECES);
    assert_int_equal(work->memory_count, 1);
    turn(desk);
    assert_int_equal(work->done, PIECES);
    desk_free(desk);
}

/* Goal: requests that wait share the time of a turn, however many are called in one. */
static void pieces_of_many_share_the_time_of_a_turn(void **state)
{
    (void)state;
    enum { COST_US = 100, MOST = 2 * LEAT_PACE_TURN_US / COST_US };
    struct desk *desk = desk_new();
    desk->cost_us = COST_US;
    for (unsigned i = 0; i < REQUESTS; i++)
        start(&desk->works[i]);
    for (unsigned t = 0; t < 20; t++) {
        uint32_t of_turn = 0;
        desk->core.pace.width = LEAT_PACE_CALLED_MAX; /* as behind quiet turns */
        turn(desk);
        for (unsigned i = 0; i < REQUESTS; i++)
            of_turn += desk->works[i].of_turn;
        assert_in_range(of_turn, 1, MOST);
    }
    desk_free(desk);
}

/* Goal: an address has half of what may be under way for all of a core; a request beyond has one. */
static void pieces_of_one_address_leave_half_to_others(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < REQUESTS; i++)
        desk->works[i].waits = true;
    desk->works[0].peer.sharer->front.begun = LEAT_KAFKA_PIECES_BEGUN_MAX / 2 - 2;
    desk->door.begun = LEAT_KAFKA_PIECES_BEGUN_MAX / 2 - 2;
    start(&desk->works[0]);
    assert_int_equal(desk->works[0].begun, 2);
    start(&desk->works[1]);
    assert_int_equal(desk->works[1].begun, LEAT_KAFKA_PIECES_AT_ONCE);
    desk->door.begun = LEAT_KAFKA_PIECES_BEGUN_MAX;
    start(&desk->works[2]);
    assert_int_equal(desk->works[2].begun, 1);
    for (unsigned i = 0; i < 100; i++)
        turn(desk);
    assert_int_equal(desk->works[2].begun, 1);
    one_ends(&desk->works[2]); /* and then the next one */
    for (unsigned i = 0; i < 100; i++)
        turn(desk);
    assert_int_equal(desk->works[2].begun, 2);
    for (unsigned i = 0; i < REQUESTS; i++)
        desk->works[i].peer.conn = NULL;
    for (unsigned i = 0; i < REQUESTS - 1; i++)
        while (desk->works[i].ended < desk->works[i].begun)
            one_ends(&desk->works[i]);
    desk_free(desk);
}

/* Goal: a client has gone: no further piece of its request is begun; the pieces under way end, and then the request. */
static void pieces_of_who_has_gone_are_left(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct work *work = &desk->works[0];
    work->waits = true;
    start(work);
    const uint32_t begun = work->begun;
    work->peer.conn = NULL;
    leat_pace_forget(&work->peer);
    while (work->ended < begun) {
        assert_false(work->request.done);
        one_ends(work);
        turn(desk);
    }
    assert_int_equal(work->begun, begun);
    assert_true(work->request.done);
    assert_null(work->request.response);
    desk_free(desk);
}

/* Goal: where there is no memory for a piece no other begins; there is no answer, and the connection goes, but not
 * before what is under way has ended. */
static void piece_without_memory_ends_its_request(void **state)
{
    (void)state;
    enum { FAILS_AT = LEAT_KAFKA_PIECES_AT_ONCE / 2 };
    struct desk *desk = desk_new();
    struct work *work = &desk->works[0];
    work->waits = true;
    work->fails_at = FAILS_AT;
    start(work);
    for (unsigned i = 0; i < 100; i++)
        turn(desk);
    while (work->ended < FAILS_AT) {
        assert_false(work->request.done);
        assert_false(work->conn.closed);
        one_ends(work);
        turn(desk);
    }
    assert_int_equal(work->begun, FAILS_AT);
    assert_true(work->request.done);
    assert_null(work->request.response);
    assert_true(work->conn.closed);
    assert_int_equal(desk->door.begun, 0);
    assert_int_equal(work->peer.sharer->front.begun, 0);
    desk_free(desk);
}

/* Goal: pieces that end while another request is being handled neither end in the middle of that nor are counted
 * twice, whichever end first, and however many end in one turn. */
static void pieces_that_end_at_once_are_counted_once(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i < 2; i++) {
        desk->works[i].waits = true;
        start(&desk->works[i]);
        leat_pace_turn_end(&desk->core);
    }
    uint32_t round = 0;
    while (!desk->works[0].request.done || !desk->works[1].request.done) {
        uint32_t under_way = 0;
        const bool inside = ++round % 3 == 0 && leat_pace_begin(&desk->works[2].peer);
        for (unsigned i = 0; i < 2; i++) {
            struct work *work = &desk->works[i];
            for (uint32_t most = round * 7 % 40; most > 0 && work->ended < work->begun; most--)
                one_ends(work);
            assert_int_equal(work->peer.sharer->front.begun, work->begun - work->ended);
            under_way += work->begun - work->ended;
        }
        if (inside) leat_pace_end(&desk->works[2].peer);
        assert_int_equal(desk->door.begun, under_way);
        turn(desk);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(desk->works[i].ended, PIECES);
        assert_ptr_equal(desk->works[i].request.response, &desk->works[i]);
    }
    desk_free(desk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_done_in_turns),
        cmocka_unit_test(pieces_wait_in_their_request),
        cmocka_unit_test(pieces_that_end_at_once_are_done_one_by_one),
        cmocka_unit_test(pieces_of_many_share_the_time_of_a_turn),
        cmocka_unit_test(pieces_of_one_address_leave_half_to_others),
        cmocka_unit_test(pieces_of_who_has_gone_are_left),
        cmocka_unit_test(piece_without_memory_ends_its_request),
        cmocka_unit_test(pieces_that_end_at_once_are_counted_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
