/* SPDX-License-Identifier: Apache-2.0 */
/* A core with one stock of structs for requests: see stock_rig.h. */
#include "tests/broker/stock_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "broker/data/core_data.h"

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

static leat_err conn_send_copy(struct leat_conn *conn, const void *bytes, size_t count)
{
    (void)bytes, (void)count;
    conn->answers++;
    return LEAT_OK;
}

static const char *conn_peer(const struct leat_conn *conn)
{
    (void)conn;
    return "a peer";
}

struct desk *desk_new(void)
{
    struct desk *desk = calloc(1, sizeof *desk);
    assert_non_null(desk);
    desk->net = (struct leat_net){.ctx = desk,
                                  .pause = conn_pause,
                                  .resume = conn_resume,
                                  .close = conn_close,
                                  .send_copy = conn_send_copy,
                                  .peer = conn_peer};
    struct leat_core *core = &desk->core;
    core_world_set(core, &desk->world, &desk->node, &desk->net);
    leat_list_init(&core->answer_peers);
    leat_list_init(&core->wanted_stocks);
    leat_list_init(&core->data->fetches);
    leat_list_init(&core->data->ready_fetches);
    assert_int_equal(leat_stock_init(&desk->stock, core, ELEMENT, 2 * COUNT), LEAT_OK);
    for (unsigned i = 0; i < COUNT; i++) /* an address may have the other half */
        assert_non_null(leat_stock_take(&desk->stock, NULL));
    for (unsigned i = 0; i < PEERS; i++) {
        struct leat_peer *peer = &desk->peers[i];
        peer->core = core;
        peer->conn = &desk->conns[i];
        peer->requests = 1;
        leat_list_init(&peer->stock.link);
        leat_list_init(&peer->answers);
        peer->address = i;
        assert_true(leat_sharer_join(core, peer));
    }
    return desk;
}

void desk_free(struct desk *desk)
{
    for (unsigned i = 0; i < PEERS; i++)
        while (desk->count[i] > 0)
            leat_stock_give(&desk->stock, desk->taken[i][--desk->count[i]], &desk->peers[i],
                            desk->peers[i].sharer);
    assert_int_equal(desk->stock.left, COUNT);
    assert_int_equal(desk->core.counters.own_bytes, 0);
    leat_stock_fini(&desk->stock);
    for (unsigned i = 0; i < PEERS; i++)
        leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    free(desk);
}

bool asks(struct desk *desk, unsigned i, bool only)
{
    void *element = leat_stock_take_for(&desk->stock, &desk->peers[i], only);
    if (element == NULL) return false;
    memset(element, (int)i, ELEMENT);
    desk->taken[i][desk->count[i]++] = element;
    return true;
}

void ends(struct desk *desk, unsigned i)
{
    leat_stock_give(&desk->stock, desk->taken[i][--desk->count[i]], &desk->peers[i],
                    desk->peers[i].sharer);
}

void desk_gather(struct desk *desk, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        leat_sharer_leave(&desk->core, desk->peers[i].sharer);
        desk->peers[i].address = 100;
        assert_true(leat_sharer_join(&desk->core, &desk->peers[i]));
        desk->peers[i].stock.own_bytes = LEAT_PEER_OWN_BYTES_MOST;
    }
}

void desk_end_all(struct desk *desk)
{
    for (unsigned i = 0; i < PEERS; i++)
        while (desk->count[i] > 0)
            ends(desk, i);
    for (unsigned i = 0; i < PEERS; i++)
        desk->peers[i].stock.own_bytes = 0;
}
