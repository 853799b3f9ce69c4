/* SPDX-License-Identifier: Apache-2.0 */
/* Whose compressed batch is checked when: turns of the event loop with peers that have one each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/net/core.h"
#include "broker/net/sharer.h"
#include "tests/broker/parts.h"

enum { PEERS = 8, DONE_MAX = 128, KIB = 1024, MIB = 1024 * KIB, TURNS_MAX = 1000 };

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
    struct leat_batch batches[PEERS];    /* without bytes: it has none to be checked */
    unsigned done[DONE_MAX], done_count; /* in this order */
    uint8_t *small, *medium, *large;
    uint32_t small_bytes, medium_bytes, large_bytes;
};

static void conn_pause(struct leat_conn *conn)
{
    conn->paused = true;
}
static void conn_resume(struct leat_conn *conn)
{
    conn->paused = false;
}

static uint8_t *varint_put(uint8_t *at, uint64_t value)
{
    for (value <<= 1; value >= 0x80; value >>= 7) /* zigzag, of what is not negative */
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* One record, whose value has so many bytes. */
static uint8_t *batch_make(uint32_t bytes, uint32_t *out_bytes)
{
    struct leat_batch_builder builder;
    size_t capacity = bytes + 4 * KIB;
    uint8_t *plain = calloc(1, capacity), *packed = calloc(1, capacity), length[8];
    assert_true(plain && packed);
    leat_batch_builder_init(&builder, plain, capacity);
    assert_int_equal(leat_batch_builder_add(&builder, 1, NULL, 0, "", 0, NULL, 0, 0), LEAT_OK);
    (void)leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    size_t length_bytes = (size_t)(varint_put(length, bytes) - length);
    /* Attributes, two deltas, no key; the value; no headers. */
    uint8_t *at = varint_put(plain + LEAT_BATCH_HEADER_BYTES, 4 + length_bytes + bytes + 1);
    memcpy(at, "\0\0\0\1", 4);
    at += 4;
    at = varint_put(at, bytes);
    memset(at, 0, bytes + 1);
    at += bytes + 1;
    assert_int_equal(leat_batch_compress(plain, (uint32_t)(at - plain), LEAT_CODEC_ZSTD, 1, packed,
                                         capacity, out_bytes),
                     LEAT_OK);
    free(plain);
    return packed;
}

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->net = (struct leat_net){.ctx = desk, .pause = conn_pause, .resume = conn_resume};
    core_world_set(&desk->core, &desk->world, &desk->node, &desk->net);
    assert_int_equal(leat_unpack_init(&desk->core), LEAT_OK);
    for (unsigned i = 0; i < PEERS; i++) {
        struct leat_peer *peer = &desk->peers[i];
        peer->core = &desk->core;
        peer->conn = &desk->conns[i];
        peer->address = i;
        leat_list_init(&peer->room.by_time);
        leat_turn_init(&peer->unpack.turn);
        assert_true(leat_sharer_join(&desk->core, peer));
    }
    desk->small = batch_make(100, &desk->small_bytes);
    desk->medium = batch_make(300 * KIB, &desk->medium_bytes);
    desk->large = batch_make(LEAT_BATCH_BYTES_MAX + MIB, &desk->large_bytes);
    return desk;
}

static void desk_free(struct desk *desk)
{
    for (unsigned i = 0; i < PEERS; i++)
        leat_unpack_forget(&desk->peers[i]);
    assert_int_equal(desk->core.unpack.addresses.count, 0);
    assert_null(desk->core.unpack.at);
    for (unsigned i = 0; i < PEERS; i++)
        leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    leat_unpack_fini(&desk->core);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_WIRE), 0);
    free(desk->small);
    free(desk->medium);
    free(desk->large);
    free(desk);
}

static void brings(struct desk *desk, unsigned i, const uint8_t *bytes, uint32_t count)
{
    assert_int_equal(leat_batch_check(bytes, count, &desk->batches[i], NULL), LEAT_OK);
}

/* Its frame comes, or comes again. */
static leat_err asks(struct desk *desk, unsigned i)
{
    struct leat_error error = {LEAT_OK, ""};
    leat_err rc = leat_unpack(&desk->peers[i], &desk->batches[i], &error);
    if (rc == LEAT_E_AGAIN) {
        leat_peer_pause(&desk->peers[i], LEAT_PAUSE_ROOM);
        return rc;
    }
    assert_int_equal(rc, LEAT_OK);
    desk->batches[i].bytes = NULL;
    assert_true(desk->done_count < DONE_MAX);
    desk->done[desk->done_count++] = i;
    return rc;
}

static void turn(struct desk *desk)
{
    struct leat_mail *mail = desk->world.mail;
    leat_unpack_turn_end(&desk->core);
    desk->world.mail = NULL;
    if (mail) mail->deliver(&desk->core, mail);
    for (unsigned i = 0; i < PEERS; i++)
        if (desk->batches[i].bytes && !desk->conns[i].paused) (void)asks(desk, i);
}

/* Goal: a turn checks a limited amount of bytes. A batch that comes meanwhile waits behind the batches that were
 * there. */
static void a_turn_checks_so_much_and_who_waits_is_called(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    unsigned small = 0;
    for (leat_err rc = LEAT_OK; rc == LEAT_OK; small++) { /* however small, each costs something */
        assert_true(small < 100);
        brings(desk, 0, desk->small, desk->small_bytes);
        rc = asks(desk, 0);
    }
    turn(desk);
    assert_null(desk->batches[0].bytes);
    desk->done_count = 0;
    brings(desk, 1, desk->medium, desk->medium_bytes);
    brings(desk, 2, desk->small, desk->small_bytes);
    turn(desk);
    assert_int_equal(desk->done_count, 0); /* the first is half done, and no other begins */
    turn(desk);
    brings(desk, 3, desk->small, desk->small_bytes);
    assert_int_equal(asks(desk, 3), LEAT_E_AGAIN); /* the second has waited for longer */
    while (desk->done_count < 3)
        turn(desk);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(desk->done[i], i + 1);
    desk_free(desk);
}

/* Goal: a batch that is half done, of a connection that is not read, keeps nobody waiting. */
static void one_that_can_not_come_keeps_nobody_waiting(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    brings(desk, 0, desk->medium, desk->medium_bytes);
    brings(desk, 1, desk->small, desk->small_bytes);
    turn(desk);
    leat_peer_pause(&desk->peers[0], LEAT_PAUSE_SLOW); /* it takes no answers */
    for (unsigned i = 0; i < 10; i++)
        turn(desk);
    assert_int_equal(desk->done_count, 1);
    assert_int_equal(desk->done[0], 1);
    leat_peer_resume(&desk->peers[0], LEAT_PAUSE_SLOW);
    for (unsigned i = 0; i < 10; i++)
        turn(desk);
    assert_int_equal(desk->done_count, 2);
    desk_free(desk);
}

/* Goal: a batch that is larger than any honest batch makes way once for the batches of which that is not known. */
static void a_large_one_makes_way_and_is_done_all_the_same(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    for (unsigned i = 0; i + 1 < PEERS; i++)
        brings(desk, i, desk->large, desk->large_bytes);
    brings(desk, PEERS - 1, desk->small, desk->small_bytes);
    for (unsigned i = 0; desk->done_count < PEERS; i++) {
        assert_true(i < TURNS_MAX);
        turn(desk);
    }
    assert_int_equal(desk->done[0], PEERS - 1);
    for (unsigned i = 0; i < PEERS; i++) /* the next large one makes way again */
        assert_false(desk->peers[i].unpack.tried);
    desk_free(desk);
}

/* Goal: a batch that is half done goes on in the next turn, however often its connection asks in this one. */
static void a_turn_is_over_for_whoever_began_it(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    brings(desk, 0, desk->medium, desk->medium_bytes);
    struct leat_error error;
    leat_mem_fail_at(1);
    assert_int_equal(leat_unpack(&desk->peers[0], &desk->batches[0], &error), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_string_equal(error.text, "no memory to check a compressed batch");
    assert_int_equal(asks(desk, 0), LEAT_E_AGAIN);
    uint64_t at_bytes = desk->core.unpack.at_bytes;
    assert_int_equal(desk->peers[0].unpack.turn.used, at_bytes);
    assert_int_equal((int64_t)at_bytes, 256 * KIB - desk->core.unpack.left);
    desk->world.mail = NULL, desk->core.unpack.mailed = false;
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(asks(desk, 0), LEAT_E_AGAIN);
        assert_int_equal(desk->core.unpack.at_bytes, at_bytes);
        assert_non_null(desk->world.mail); /* it is called for that */
    }
    desk->core.unpack.left = 0;
    assert_int_equal(asks(desk, 0), LEAT_E_AGAIN);
    assert_int_equal(desk->core.unpack.at_bytes, at_bytes);
    desk->core.unpack.left = 1; /* which is enough for a piece */
    (void)asks(desk, 0);
    assert_true(desk->core.unpack.at_bytes > at_bytes);
    for (unsigned i = 0; desk->done_count < 1; i++) {
        assert_true(i < TURNS_MAX);
        turn(desk);
    }
    uint64_t used = desk->peers[0].unpack.turn.used;
    leat_unpack_turn_end(&desk->core);
    brings(desk, 0, desk->small, desk->small_bytes);
    assert_int_equal(asks(desk, 0), LEAT_OK);
    assert_int_equal(desk->peers[0].unpack.turn.used, used + 4096); /* however small it is */
    assert_int_equal(desk->core.unpack.left, 256 * KIB - 4096);
    assert_in_range(desk->core.unpack.at_bytes, 1, 4095); /* of this one alone */
    desk_free(desk);
}

/* Goal: a core without batches to check is not woken. A connection that is called waits no more by time. */
static void who_is_called_waits_no_more(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_list by_time;
    leat_list_init(&by_time);
    brings(desk, 0, desk->medium, desk->medium_bytes);
    brings(desk, 1, desk->small, desk->small_bytes);
    assert_int_equal(asks(desk, 0), LEAT_E_AGAIN);
    assert_int_equal(asks(desk, 1), LEAT_E_AGAIN);
    leat_list_push_back(&by_time, &desk->peers[0].room.by_time);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(leat_unpack_waits(&desk->peers[i]), i < 2);
    turn(desk);
    assert_true(leat_list_empty(&by_time));
    for (unsigned i = 0; desk->done_count < 2; i++) {
        assert_true(i < 10);
        turn(desk);
    }
    turn(desk);
    assert_null(desk->world.mail);
    for (unsigned i = 0; i < 2; i++)
        assert_false(leat_unpack_waits(&desk->peers[i]));
    desk_free(desk);
}

/* Goal: a connection that no longer asks keeps nobody waiting: neither with its place in line, nor with a batch that is
 * half checked. */
static void who_leaves_keeps_nobody_waiting(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    brings(desk, 0, desk->medium, desk->medium_bytes);
    brings(desk, 1, desk->small, desk->small_bytes);
    brings(desk, 2, desk->small, desk->small_bytes);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(asks(desk, i), LEAT_E_AGAIN);
    leat_unpack_leave(&desk->peers[1]); /* not the one whose batch is half checked */
    assert_ptr_equal(desk->core.unpack.at, &desk->peers[0]);
    assert_false(leat_unpack_waits(&desk->peers[1]));
    leat_unpack_leave(&desk->peers[0]);
    assert_false(leat_unpack_waits(&desk->peers[0]));
    desk->batches[0].bytes = desk->batches[1].bytes = NULL;
    turn(desk);
    assert_int_equal(desk->done_count, 1);
    assert_int_equal(desk->done[0], 2);
    desk_free(desk);
}

/* Goal: a connection that comes back has used nothing, has not been called, and its batch has not made way. */
static void who_comes_back_begins_anew(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    brings(desk, 0, desk->small, desk->small_bytes);
    assert_int_equal(asks(desk, 0), LEAT_OK);
    assert_true(desk->peers[0].unpack.turn.used > 0);
    desk->peers[0].unpack.due = desk->peers[0].unpack.tried = true;
    leat_unpack_forget(&desk->peers[0]);
    assert_int_equal(desk->peers[0].unpack.turn.used, 0);
    assert_false(desk->peers[0].unpack.due);
    assert_false(desk->peers[0].unpack.tried);
    desk_free(desk);
}

/* Goal: a batch begins when the connection was called or nobody waits, no other batch is half checked, and the turn
 * has a byte left. A call is for one batch. */
static void batch_begins_in_its_turn(void **state)
{
    (void)state;
    struct desk *desk = desk_new();
    struct leat_unpack *unpack = &desk->core.unpack;
    brings(desk, 0, desk->small, desk->small_bytes);
    brings(desk, 1, desk->medium, desk->medium_bytes);
    brings(desk, 2, desk->small, desk->small_bytes);
    unpack->left = 0;
    assert_int_equal(asks(desk, 0), LEAT_E_AGAIN);
    leat_unpack_leave(&desk->peers[0]);
    unpack->left = 1;
    assert_int_equal(asks(desk, 0), LEAT_OK);
    leat_unpack_turn_end(&desk->core);
    assert_int_equal(asks(desk, 1), LEAT_E_AGAIN); /* half checked */
    leat_unpack_turn_end(&desk->core);
    assert_int_equal(asks(desk, 2), LEAT_E_AGAIN);
    assert_ptr_equal(unpack->at, &desk->peers[1]);
    leat_unpack_leave(&desk->peers[1]);
    brings(desk, 0, desk->small, desk->small_bytes);
    desk->peers[0].unpack.due = true;
    assert_int_equal(asks(desk, 0), LEAT_OK);
    brings(desk, 0, desk->small, desk->small_bytes);
    assert_int_equal(asks(desk, 0), LEAT_E_AGAIN); /* another connection waits */
    desk_free(desk);
}

/* One piece of a large batch of connection 0 is checked, so that `bytes` of the batch are; others wait. */
static bool makes_way_at(uint64_t bytes, uint64_t *out_piece, bool tried, bool others,
                         bool others_tried)
{
    struct desk *desk = desk_new();
    struct leat_unpack *unpack = &desk->core.unpack;
    brings(desk, 0, desk->large, desk->large_bytes);
    assert_int_equal(asks(desk, 0), LEAT_E_AGAIN);
    if (others) {
        brings(desk, 1, desk->small, desk->small_bytes);
        desk->peers[1].unpack.tried = others_tried;
        assert_int_equal(asks(desk, 1), LEAT_E_AGAIN);
    }
    desk->peers[0].unpack.tried = tried;
    leat_unpack_turn_end(&desk->core);
    const uint64_t before = unpack->at_bytes;
    if (bytes > 0) unpack->at_bytes = bytes - *out_piece;
    assert_int_equal(asks(desk, 0), LEAT_E_AGAIN);
    if (bytes == 0) *out_piece = unpack->at_bytes - before;
    if (bytes > 0) assert_int_equal(unpack->at_bytes, bytes);
    const bool way = unpack->at == NULL;
    assert_int_equal(way, desk->peers[0].unpack.tried != tried);
    desk_free(desk);
    return way;
}

/* Goal: a batch makes way once so many bytes of it are checked, and only for a batch that has not made way itself. */
static void who_makes_way_for_whom(void **state)
{
    (void)state;
    const uint64_t edge = LEAT_BATCH_BYTES_MAX;
    uint64_t piece = 0;
    assert_false(makes_way_at(0, &piece, false, true, false));
    assert_true(piece > 0);
    assert_false(makes_way_at(edge - 1, &piece, false, true, false));
    assert_true(makes_way_at(edge, &piece, false, true, false));
    assert_false(makes_way_at(edge, &piece, true, true, false));
    assert_false(makes_way_at(edge, &piece, false, true, true));
    assert_false(makes_way_at(edge, &piece, false, false, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_checks_so_much_and_who_waits_is_called),
        cmocka_unit_test(one_that_can_not_come_keeps_nobody_waiting),
        cmocka_unit_test(a_turn_is_over_for_whoever_began_it),
        cmocka_unit_test(a_large_one_makes_way_and_is_done_all_the_same),
        cmocka_unit_test(who_is_called_waits_no_more),
        cmocka_unit_test(who_leaves_keeps_nobody_waiting),
        cmocka_unit_test(who_comes_back_begins_anew),
        cmocka_unit_test(batch_begins_in_its_turn),
        cmocka_unit_test(who_makes_way_for_whom),
    };
    return cmocka_run_group_tests_name("broker unpack", tests, NULL, NULL);
}
