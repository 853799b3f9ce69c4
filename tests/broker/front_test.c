/* SPDX-License-Identifier: Apache-2.0 */
/* What front ends see of streams, nodes and connections: broker/front.h, broker/front_logs.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/stream.h"
#include "broker/front_logs.h"
#include "broker/net/core.h"
#include "tests/broker/parts.h"

enum {
    ROWS = 4,
    STREAMS = 6,
    WAITING = 2,
    INTERNAL = 4 /* streams by their index, and id 1 more */
};

struct desk {
    struct leat_core core;
    struct leat_core_data data;
    struct leat_node node;
    struct leat_stream streams[STREAMS];
    struct leat_stream_desc descs[STREAMS];
    struct leat_stream *by_id[ROWS], *by_name[ROWS];
};

static struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->core.node = &desk->node;
    desk->core.data = &desk->data;
    desk->core.data->streams_by_id = desk->by_id;
    desk->core.data->streams_by_name = desk->by_name;
    desk->core.data->stream_mask = ROWS - 1;
    desk->core.data->stream_count = STREAMS;
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct leat_stream *stream = &desk->streams[i];
        struct leat_stream_desc *desc = &desk->descs[i];
        desc->id = i + 1;
        memcpy(desc->name, "stream", 6);
        desc->name[6] = (char)('a' + i);
        desc->internal = i == INTERNAL;
        stream->desc = desc;
        stream->published = i != WAITING;
        leat_list_init(&stream->waiters);
        struct leat_stream **by_id = &desk->by_id[desc->id & (ROWS - 1)];
        struct leat_stream **by_name = &desk->by_name[leat_name_hash(desc->name, 7) & (ROWS - 1)];
        stream->by_id_next = *by_id;
        *by_id = stream;
        stream->by_name_next = *by_name;
        *by_name = stream;
    }
    return desk;
}

static void streams_are_found_when_all_cores_serve_them(void **state)
{
    struct desk *desk = desk_new();
    bool served = true;
    (void)state;
    for (uint32_t i = 0; i < STREAMS; i++) {
        const struct leat_stream_desc *desc = i == WAITING ? NULL : &desk->descs[i];
        const char *name = desk->descs[i].name;
        assert_ptr_equal(leat_front_stream(&desk->core, i + 1), desc);
        assert_ptr_equal(leat_front_stream_named(&desk->core, name, 7), desc);
        assert_ptr_equal(leat_front_stream_heard(&desk->core, name, 7, &served), &desk->descs[i]);
        assert_int_equal(served, i != WAITING);
        assert_ptr_equal(leat_front_stream_heard(&desk->core, name, 7, NULL), &desk->descs[i]);
    }
    assert_null(leat_front_stream(&desk->core, STREAMS + 1));
    assert_null(leat_front_stream_named(&desk->core, "stream", 6));
    assert_null(leat_front_stream_heard(&desk->core, "streamz", 7, &served));
    struct leat_stream_wait wait = {0};
    leat_front_stream_wait(&desk->core, WAITING + 1, &wait);
    assert_ptr_equal(leat_list_pop_front(&desk->streams[WAITING].waiters), &wait.link);
    free(desk);
}

static void all_streams_are_told_once(void **state)
{
    struct desk *desk = desk_new();
    const struct leat_stream_desc *desc = NULL;
    unsigned told = 0;
    (void)state;
    while ((desc = leat_front_stream_next(&desk->core, desc)) != NULL) {
        assert_int_equal(told & 1u << desc->id, 0);
        told |= 1u << desc->id;
    }
    assert_int_equal(told,
                     1u << 1 | 1u << 2 | 1u << 4 | 1u << 6); /* neither WAITING nor INTERNAL */
    assert_int_equal(leat_front_stream_count(&desk->core), STREAMS);
    for (uint32_t i = 0; i < STREAMS; i++)
        desk->streams[i].published = false;
    assert_null(leat_front_stream_next(&desk->core, NULL));
    free(desk);
}

static void nodes_have_numbers(void **state)
{
    struct desk *desk = desk_new();
    struct leat_member rows[3] = {
        {.number = 0, .info = {.incarnation = 7, .state = LEAT_NODE_DOWN}},
        {.number = 1, .info = {.incarnation = 8, .state = LEAT_NODE_UP}},
        {.number = 2, .info = {.incarnation = 9, .state = LEAT_NODE_UP}},
    };
    (void)state;
    assert_int_equal(leat_front_self_number(&desk->core), -1);
    for (uint32_t i = 0; i < 3; i++)
        desk->core.members.rows[desk->core.members.count++] = &rows[i];
    assert_int_equal(leat_front_self_number(&desk->core), -1);
    rows[1].self = true;
    assert_int_equal(leat_front_self_number(&desk->core), 1);
    rows[1].self = false;
    rows[0].self = true;
    assert_int_equal(leat_front_self_number(&desk->core), 0);
    assert_int_equal(leat_front_node_count(&desk->core), 3);
    assert_ptr_equal(leat_front_node_info(&desk->core, 2), &rows[2].info);
    assert_int_equal(leat_front_node_number(&desk->core, 7), 0);
    assert_int_equal(leat_front_node_number(&desk->core, 9), 2);
    assert_int_equal(leat_front_node_number(&desk->core, 10), -1);
    free(desk);
}

static void a_connection_is_told_as_it_is(void **state)
{
    struct desk *desk = desk_new();
    struct leat_peer peer = {.core = &desk->core};
    (void)state;
    leat_list_init(&desk->core.answer_peers);
    struct leat_list *lists[] = {&peer.answers, &peer.output.wait, &peer.stock.link};
    for (size_t i = 0; i < 3; i++)
        leat_list_init(lists[i]);
    assert_false(leat_peer_is_there(&peer) || leat_peer_is_closing(&peer) ||
                 leat_peer_is_paused(&peer) || leat_peer_is_known(&peer) ||
                 leat_peer_waits_for_room(&peer) || leat_peer_waits_for_structs(&peer));
    assert_string_equal(leat_peer_client(&peer), "");
    peer.greeted = true;
    assert_true(leat_peer_is_known(&peer) && !leat_peer_is_closing(&peer));
    peer.closing = true;
    assert_true(leat_peer_is_closing(&peer) && !leat_peer_is_paused(&peer));
    peer.paused = LEAT_PAUSE_SLOW;
    assert_true(leat_peer_is_paused(&peer));
    leat_peer_answer_later(&peer);
    leat_peer_answer_later(&peer); /* once */
    struct leat_peer other = {.core = &desk->core};
    leat_list_init(&other.answers);
    leat_peer_answer_later(&other);
    assert_ptr_equal(leat_list_pop_front(&desk->core.answer_peers), &peer.answers);
    assert_ptr_equal(leat_list_pop_front(&desk->core.answer_peers), &other.answers);
    assert_true(leat_list_empty(&desk->core.answer_peers));
    struct leat_list line;
    leat_list_init(&line);
    leat_list_push_back(&line, &peer.stock.link);
    assert_true(leat_peer_waits_for_structs(&peer) && !leat_peer_waits_for_room(&peer));
    leat_peer_name_note(&peer, "", 0);
    leat_peer_name_note(&peer, "f", 1); /* the first, however short */
    leat_peer_name_note(&peer, "second", 6);
    assert_string_equal(peer.name, "f");
    assert_int_equal(leat_front_asks(&peer), UINT64_MAX);
    peer.address_number = 5;
    assert_int_equal(leat_front_asks(&peer), 5);
    free(desk);
}

/* Goal: a connection that is refused leaves nothing behind. */
static void a_refused_connection_takes_no_memory(void **state)
{
    struct desk *desk = desk_new();
    const struct leat_conn_handler *handler = NULL;
    const struct leat_protocol protocol = {0};
    (void)state;
    const size_t before = leat_mem_bytes(LEAT_MEM_BROKER);
    desk->core.stopping = true;
    assert_null(leat_peer_accepted(&desk->core, NULL, &protocol, 8, &handler));
    desk->core.stopping = false;
    leat_mem_fail_at(1);
    assert_null(leat_peer_accepted(&desk->core, NULL, &protocol, 8, &handler));
    leat_mem_fail_at(0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), before);
    assert_null(handler);
    free(desk);
}

/* Goal: a front end has structs of its own, and gives all of them back; where a part has no memory nothing is left. */
static void a_front_end_has_structs_of_its_own(void **state)
{
    struct desk *desk = desk_new();
    struct leat_stock *stock = NULL;
    (void)state;
    const size_t before = leat_mem_bytes(LEAT_MEM_BROKER);
    for (unsigned i = 1; i <= 2; i++) {
        leat_mem_fail_at(i);
        assert_int_equal(leat_front_stock_open(&desk->core, 64, 3, &stock), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_null(stock);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), before);
    }
    leat_front_stock_close(&stock); /* none: nothing */
    assert_int_equal(leat_front_stock_open(&desk->core, 64, 3, &stock), LEAT_OK);
    assert_non_null(stock);
    const size_t one = sizeof *stock + (size_t)3 * 64;
    assert_true(leat_mem_bytes(LEAT_MEM_BROKER) - before < one + sizeof *stock / 2);
    leat_front_stock_left(stock, 2);
    assert_int_equal(stock->left, 2);
    leat_front_stock_close(&stock);
    assert_null(stock);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), before);
    free(desk);
}

/* Goal: all nodes are up unless one is down that may come back, this node apart. A log is on the core that all nodes
 * reckon it to be on. */
static void nodes_and_cores_are_told_alike(void **state)
{
    struct desk *desk = desk_new();
    struct leat_member rows[2] = {{.number = 0, .info = {.state = LEAT_NODE_UP}},
                                  {.number = 1, .info = {.state = LEAT_NODE_UP}}};
    (void)state;
    assert_true(leat_all_nodes_up(&desk->core)); /* a server alone */
    for (uint32_t i = 0; i < 2; i++)
        desk->core.members.rows[desk->core.members.count++] = &rows[i];
    assert_true(leat_all_nodes_up(&desk->core));
    for (uint32_t i = 0; i < 2; i++) {
        rows[i].info.state = LEAT_NODE_DOWN;
        assert_false(leat_all_nodes_up(&desk->core));
        rows[i].info.state = LEAT_NODE_UP;
    }
    const struct leat_log_ref ref = {.stream = 3, .streamlet = 2, .log = 1};
    desk->node.options.cores = 7;
    assert_int_equal(leat_core_of_log(&desk->node, ref, 5), (3 + 2 * 5 + 1) % 7);
    free(desk);
}

static void mail_ignore(void *actor, struct leat_mail *mail)
{
    (void)actor, (void)mail;
}

/* Goal: a front end sees a core and its node as they are, keeps something of its own there, and sends mail. */
static void a_core_is_told_as_it_is(void **state)
{
    struct desk *desk = desk_new();
    struct core_world world = {.mail = NULL};
    struct leat_mail mail = {.deliver = NULL};
    (void)state;
    core_world_set(&desk->core, &world, &desk->node, NULL);
    memset(desk->node.cluster_id, 'c', sizeof desk->node.cluster_id);
    assert_memory_equal(leat_front_node(&desk->core).cluster_id, desk->node.cluster_id,
                        sizeof desk->node.cluster_id);
    assert_false(leat_front_stops(&desk->core));
    desk->core.stopping = true;
    assert_true(leat_front_stops(&desk->core));
    for (unsigned i = 0; i <= LEAT_STANDING_CRASHED; i++) {
        atomic_store(&desk->node.standing, i); /* 0: a server alone */
        assert_int_equal(leat_front_node(&desk->core).isolated, i >= LEAT_STANDING_ALONE);
    }
    leat_front_own_set(&desk->core, &mail);
    assert_ptr_equal(leat_front_own(&desk->core), &mail);
    leat_front_mail(&desk->core, 0, &mail, mail_ignore);
    assert_ptr_equal(world.mail, &mail);
    assert_true(mail.deliver == mail_ignore);
    desk->node.options.memory_bytes = 1ull << 30;
    desk->node.options.cores = 2;
    assert_int_equal(leat_front_structs(&desk->core, 1000), leat_node_structs(1ull << 30, 2, 1000));
    free(desk);
}

/* Goal: a connection that pipelines and waits for structs asks again when it hurries; one that waits for its only
 * request keeps its place. */
static void who_hurries_asks_again(void **state)
{
    (void)state;
    for (unsigned only = 0; only < 2; only++) {
        struct desk *desk = desk_new();
        struct leat_peer peer = {.core = &desk->core};
        struct leat_stock stock;
        struct core_world world = {.mail = NULL};
        core_world_set(&desk->core, &world, &desk->node, NULL);
        leat_list_init(&desk->core.answer_peers);
        leat_list_init(&desk->core.wanted_stocks);
        leat_list_init(&peer.answers);
        leat_list_init(&peer.stock.link);
        assert_true(leat_sharer_join(&desk->core, &peer));
        assert_int_equal(leat_stock_init(&stock, &desk->core, 64, 1), LEAT_OK);
        leat_stock_wait(&stock, &peer, only, 1);
        leat_peer_hurry(&peer);
        assert_int_equal(leat_list_empty(&peer.stock.link), !only);
        leat_stock_leave(&peer);
        leat_stock_fini(&stock);
        leat_sharer_leave(&desk->core, peer.sharer);
        free(desk);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_front_end_has_structs_of_its_own),
        cmocka_unit_test(streams_are_found_when_all_cores_serve_them),
        cmocka_unit_test(all_streams_are_told_once),
        cmocka_unit_test(nodes_have_numbers),
        cmocka_unit_test(a_connection_is_told_as_it_is),
        cmocka_unit_test(a_refused_connection_takes_no_memory),
        cmocka_unit_test(nodes_and_cores_are_told_alike),
        cmocka_unit_test(a_core_is_told_as_it_is),
        cmocka_unit_test(who_hurries_asks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
