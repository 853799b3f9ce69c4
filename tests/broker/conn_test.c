/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by conn.c alone: which connection is let in, when a connection is read, and what is given back when it
 * goes. */
#include "tests/broker/conn_rig.h"

/* ---- coming and going ---- */

static void connection_comes_and_goes(void **state)
{
    (void)state;
    begin();
    assert_true(try_open());
    assert_said("address 9 comes\nmemory beside 3, 5\nsharer on 0\nturn\npace\n"
                "quiet begins\naccount of strangers\nstrangers on 0\n");
    struct leat_peer *peer = it.peer;
    assert_ptr_equal(peer->conn, &it.conn);
    assert_ptr_equal(peer->core, &alone.cores[0]);
    assert_ptr_equal(peer->protocol, &protocol);
    assert_int_equal(peer->address, CONN_BUCKET);
    assert_int_equal(peer->address_number, leat_key_number(net_key(&it.conn)));
    assert_int_equal(connections(0), 4);
    assert_ptr_equal(alone.cores[0].peers.next, &peer->all);
    struct leat_list *lists[] = {&peer->slow,          &peer->owing,         &peer->stock.link,
                                 &peer->answers,       &peer->cut,           &peer->quiet,
                                 &peer->room.by_log,   &peer->room.by_time,  &peer->group_calls,
                                 &peer->limited,       &peer->locators,      &peer->output.wait,
                                 &peer->output.keep,   &peer->output.lasts,  &peer->borrowed.waits,
                                 &peer->borrowed.line, &peer->borrowed.rests};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_true(leat_list_empty(lists[i]));
    leat_peer_known(peer);
    assert_true(peer->greeted);
    assert_said("quiet ends\nquiet begins\naccount of clients\n");
    /* In lists of its core it is no more. */
    struct leat_list slow, owing, answers;
    leat_list_init(&slow), leat_list_init(&owing), leat_list_init(&answers);
    leat_list_push_back(&slow, &peer->slow);
    leat_list_push_back(&owing, &peer->owing);
    leat_list_push_back(&answers, &peer->answers);
    closes(LEAT_E_CLOSED);
    assert_said(WENT "no sharer on 0\n");
    assert_true(leat_list_empty(&slow) && leat_list_empty(&owing) && leat_list_empty(&answers));
    assert_int_equal(connections(0), 3);
    end();
}

/* Goal: a peer lives until its requests are done, and counts as closed until then. */
static void requests_outlive_their_connection(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    struct leat_list answers;
    leat_list_init(&answers);
    leat_list_push_back(&answers, &peer->answers);
    leat_peer_begin(peer);
    leat_peer_begin(peer);
    assert_int_equal(peer->requests, 2);
    it.handler->on_closed(peer, &it.conn, LEAT_E_CLOSED);
    assert_said_first("address goes from 77\n");
    assert_int_equal(peer->requests, 2);
    assert_int_equal(connections(0), 3);
    assert_int_equal(atomic_load(&alone.cores[0].counters.closed_peers), 1);
    leat_peer_end(peer);
    assert_false(leat_list_empty(&answers));
    assert_int_equal(atomic_load(&alone.cores[0].counters.closed_peers), 1);
    assert_said("");
    leat_peer_end(peer);
    assert_said("no sharer on 0\n");
    assert_true(leat_list_empty(&answers));
    assert_int_equal(atomic_load(&alone.cores[0].counters.closed_peers), 0);
    end();
}

static void connection_is_not_let_in(void **state)
{
    (void)state;
    begin();
    it.handler = NULL;
    alone.cores[0].stopping = true;
    assert_false(try_open());
    assert_said("");
    leat_mem_free(it.peer);
    alone.cores[0].stopping = false;
    it.crowded = true;
    assert_false(try_open());
    assert_said("address 9 comes\nnode log info: him refused\n");
    leat_mem_free(it.peer);
    it.crowded = false, it.full = true;
    assert_false(try_open());
    assert_said(
        "address 9 comes\nmemory beside 3, 5\nnode log info: him refused\naddress goes from 77\n");
    leat_mem_free(it.peer);
    it.full = false, it.no_sharer = true;
    assert_false(try_open());
    assert_said("address 9 comes\nmemory beside 3, 5\nsharer on 0\naddress goes from 77\n");
    leat_mem_free(it.peer);
    assert_null(it.handler);
    assert_int_equal(connections(0), 3);
    end();
}

/* Goal: the node log says why this side ended a connection; an end by the peer is no news. */
static void node_log_says_why_it_was_closed(void **state)
{
    (void)state;
    static const struct {
        leat_err why;
        bool told;
    } cases[] = {
        {LEAT_E_TIMEOUT, true}, {LEAT_E_TOO_MANY, true}, {LEAT_E_CLOSED, false}, {LEAT_OK, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)opened();
        closes(cases[i].why);
        assert_said(cases[i].told ? "node log info: him (client) closed\n" WENT "no sharer on 0\n"
                                  : WENT "no sharer on 0\n");
        end();
    }
}

static void connection_is_closed_once(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    leat_peer_close(peer, "it is late");
    assert_true(peer->closing);
    assert_int_equal(peer->paused, LEAT_PAUSE_CLOSING);
    assert_said("node log info: him (client) closed\npause\nclose\n");
    leat_peer_close(peer, "it is late");
    assert_said("");
    peer->closing = false;
    leat_peer_begin(peer);
    it.handler->on_closed(peer, &it.conn, LEAT_OK);
    said_enough();
    leat_peer_close(peer, "it is late");
    leat_peer_pause(peer, LEAT_PAUSE_TURN);
    leat_peer_resume(peer, LEAT_PAUSE_TURN | LEAT_PAUSE_CLOSING);
    peer->paused = 0;
    leat_peer_pause(peer, LEAT_PAUSE_TURN);
    leat_peer_resume(peer, LEAT_PAUSE_TURN);
    assert_said("");
    leat_peer_end(peer);
    end();
}

static void connections_are_all_known(void **state)
{
    (void)state;
    struct leat_peer *peers[3] = {opened()};
    for (unsigned i = 1; i < 3; i++) {
        assert_true(try_open());
        peers[i] = it.peer;
    }
    struct leat_list *link = alone.cores[0].peers.next;
    for (unsigned i = 0; i < 3; i++, link = link->next)
        assert_ptr_equal(link, &peers[i]->all);
    assert_ptr_equal(link, &alone.cores[0].peers);
    assert_int_equal(connections(0), 6);
    said_enough();
    leat_peer_close_all(&alone.cores[0]);
    assert_said("close\nclose\nclose\n");
    for (unsigned i = 0; i < 3; i++)
        it.handler->on_closed(peers[(i + 1) % 3], &it.conn, LEAT_OK);
    assert_true(leat_list_empty(&alone.cores[0].peers));
    assert_int_equal(connections(0), 3);
    said_enough();
    end();
}

static void all_connections_of_a_core_are_closed(void **state)
{
    (void)state;
    (void)opened();
    leat_peer_close_all(&alone.cores[1]);
    assert_said("");
    leat_peer_close_all(&alone.cores[0]);
    assert_said("close\n");
    closes(LEAT_OK);
    end();
}

/* ---- reading ---- */

static void reading_pauses_for_several_reasons(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    leat_peer_pause(peer, LEAT_PAUSE_ROOM);
    assert_said("pause\n");
    leat_peer_pause(peer, LEAT_PAUSE_SLOW);
    assert_int_equal(peer->paused, LEAT_PAUSE_ROOM | LEAT_PAUSE_SLOW);
    leat_peer_resume(peer, LEAT_PAUSE_TURN);
    leat_peer_resume(peer, LEAT_PAUSE_ROOM);
    assert_int_equal(peer->paused, LEAT_PAUSE_SLOW);
    assert_said("");
    leat_peer_resume(peer, LEAT_PAUSE_SLOW);
    assert_said("resume\n");
    leat_peer_resume(peer, LEAT_PAUSE_SLOW);
    assert_said("");
    closes(LEAT_OK);
    end();
}

/* What of so many bytes is used, each of which says where it lies. */
static size_t comes(size_t bytes)
{
    uint8_t data[64];
    size_t want = 7;
    for (unsigned i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)i;
    it.takes = 0;
    size_t used = it.handler->on_bytes(it.peer, &it.conn, data, bytes, &want);
    if (want > 0) said("want %zu", want);
    return used;
}

static void frames_are_taken_one_by_one(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    it.frame_bytes = 10;
    static const enum leat_handled two[] = {LEAT_HANDLED, LEAT_HANDLED, LEAT_SHORT};
    memcpy(it.handled, two, sizeof two);
    assert_int_equal(comes(25), 20);
    assert_said(
        "take at 0 of 25\nexpect nothing\ntake at 10 of 15\nexpect nothing\ntake at 20 of 5\n"
        "expect\nwant 99\n");
    assert_true(peer->heard);
    assert_int_equal(comes(20), 20); /* no part of another has come */
    assert_said(
        "take at 0 of 20\nexpect nothing\ntake at 10 of 10\nexpect nothing\ntake at 0 of 0\n"
        "want 99\n");
    it.handled[1] = LEAT_HELD;
    assert_int_equal(comes(25), 10);
    assert_said("take at 0 of 25\nexpect nothing\ntake at 10 of 15\nexpect nothing\n");
    it.handled[1] = LEAT_LEFT;
    assert_int_equal(comes(25), 20);
    assert_said("take at 0 of 25\nexpect nothing\ntake at 10 of 15\nexpect nothing\n");
    peer->paused = LEAT_PAUSE_ROOM;
    assert_int_equal(comes(25), 0);
    assert_said("");
    peer->paused = 0;
    closes(LEAT_OK);
    end();
}

static void connection_is_read_from_while_it_takes_its_answers(void **state)
{
    (void)state;
    struct leat_peer *peer = opened();
    it.handled[0] = LEAT_HELD;
    it.slow = true;
    assert_int_equal(comes(5), 0); /* it owes nothing, and nobody looks */
    assert_said("take at 0 of 5\nexpect nothing\n");
    it.conn.queued = 1;
    assert_int_equal(comes(5), 0);
    assert_said("slow?\n");
    it.slow = false;
    assert_int_equal(comes(5), 0);
    assert_said("slow?\ntake at 0 of 5\nexpect nothing\n");
    it.conn.queued = 0;
    peer->requests = LEAT_PEER_REQUESTS_MAX - 1;
    assert_int_equal(comes(5), 0);
    assert_said("take at 0 of 5\nexpect nothing\n");
    peer->requests++;
    assert_int_equal(comes(5), 0);
    assert_int_equal(peer->paused, LEAT_PAUSE_REQUESTS);
    assert_said("pause\n");
    peer->paused = 0, peer->requests = 0;
    it.over_share = true;
    assert_int_equal(comes(5), 0);
    assert_int_equal(peer->paused, LEAT_PAUSE_REQUESTS);
    assert_said("pause\n");
    peer->paused = 0;
    closes(LEAT_OK);
    end();
}

static void reading_goes_on_when_half_of_the_requests_are_done(void **state)
{
    (void)state;
    enum { HALF = LEAT_PEER_REQUESTS_MAX / 2 };
    struct leat_peer *peer = opened();
    peer->requests = HALF + 2;
    leat_peer_pause(peer, LEAT_PAUSE_REQUESTS);
    said_enough();
    leat_peer_end(peer);
    assert_said("");
    it.over_share = true;
    leat_peer_end(peer);
    assert_said("");
    it.over_share = false;
    peer->requests++;
    leat_peer_end(peer);
    assert_int_equal(peer->paused, 0);
    assert_said("resume\n");
    leat_peer_pause(peer, LEAT_PAUSE_ROOM); /* not for its requests */
    leat_peer_end(peer);
    assert_int_equal(peer->paused, LEAT_PAUSE_ROOM);
    peer->requests = 2;
    leat_peer_end(peer);
    assert_said("pause\n");
    leat_peer_end(peer); /* what comes next is its only one */
    assert_said("structs again\n");
    peer->paused = 0, peer->requests = 1;
    leat_peer_end(peer);
    assert_said("");
    closes(LEAT_OK);
    end();
}

/* ---- to another core ---- */

static struct leat_peer *moved(void)
{
    struct leat_peer *peer = opened();
    peer->append_now = (void *)&it;
    peer->moved_request = 41;
    struct leat_list answers;
    leat_list_init(&answers);
    leat_list_push_back(&answers, &peer->answers);
    leat_peer_move(peer, 1);
    assert_true(leat_list_empty(&answers));
    assert_said("expect nothing\nquiet ends\nno batch\nno turn\nno structs\nno output\n"
                "no sharer on 0\nmove to 1\n");
    assert_true(leat_list_empty(&alone.cores[0].peers));
    assert_int_equal(connections(0), 3);
    assert_ptr_equal(it.baggage, peer);
    assert_ptr_equal(peer->core, &alone.cores[1]);
    assert_null(peer->append_now);
    peer->conn = NULL;
    it.handler = NULL;
    return peer;
}

static void connection_moves_to_another_core(void **state)
{
    (void)state;
    struct leat_peer *peer = moved();
    assert_ptr_equal(it.on_moved(&alone.cores[1], &it.conn, peer, &it.handler), peer);
    assert_said("sharer on 1\nquiet begins\non moved to 1, tag 41\n");
    assert_int_equal(connections(1), 1);
    assert_ptr_equal(peer->conn, &it.conn);
    assert_ptr_equal(alone.cores[1].peers.next, &peer->all);
    closes(LEAT_OK);
    assert_said(WENT "no sharer on 1\n");
    end();
    peer = moved();
    protocol.on_moved = NULL; /* it wants to know nothing of it */
    assert_ptr_equal(it.on_moved(&alone.cores[1], &it.conn, peer, &it.handler), peer);
    assert_said("sharer on 1\nquiet begins\n");
    closes(LEAT_OK);
    end();
}

static void connection_that_moves_is_refused(void **state)
{
    (void)state;
    struct leat_peer *peer = moved();
    it.no_sharer = true;
    assert_null(it.on_moved(&alone.cores[1], &it.conn, peer, &it.handler));
    assert_said("sharer on 1\naddress goes from 77\n");
    assert_int_equal(connections(1), 0);
    end();
    peer = moved();
    alone.cores[1].stopping = true;
    assert_null(it.on_moved(&alone.cores[1], &it.conn, peer, &it.handler));
    assert_said("address goes from 77\n");
    assert_null(it.handler);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connection_comes_and_goes),
        cmocka_unit_test(requests_outlive_their_connection),
        cmocka_unit_test(connection_is_not_let_in),
        cmocka_unit_test(node_log_says_why_it_was_closed),
        cmocka_unit_test(connection_is_closed_once),
        cmocka_unit_test(connections_are_all_known),
        cmocka_unit_test(all_connections_of_a_core_are_closed),
        cmocka_unit_test(reading_pauses_for_several_reasons),
        cmocka_unit_test(frames_are_taken_one_by_one),
        cmocka_unit_test(connection_is_read_from_while_it_takes_its_answers),
        cmocka_unit_test(reading_goes_on_when_half_of_the_requests_are_done),
        cmocka_unit_test(connection_moves_to_another_core),
        cmocka_unit_test(connection_that_moves_is_refused),
    };
    return cmocka_run_group_tests_name("broker conn", tests, NULL, NULL);
}
