/* SPDX-License-Identifier: Apache-2.0 */
/* A core whose memory for answers and calls the tests fill: see output_rig.h. */
#include "tests/broker/output_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "broker/data/core_data.h"
#include "broker/node/hooks.h"

static size_t conn_copied(const struct leat_conn *conn)
{
    return conn->copied;
}

static size_t conn_queued(const struct leat_conn *conn)
{
    return conn->copied + conn->mapped;
}

static uint64_t conn_taken(const struct leat_conn *conn)
{
    return conn->taken;
}

void conn_takes(struct leat_conn *conn, size_t bytes)
{
    conn->copied -= bytes;
    conn->taken += bytes;
}

static size_t conns_copied(void *ctx)
{
    const struct desk *desk = ctx;
    size_t bytes = 0;
    for (unsigned i = 0; i < PEERS; i++)
        bytes += desk->conns[i].copied;
    return bytes;
}

static size_t conn_copied_near(const struct leat_conn *conn)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < PEERS; i++)
        if (conn->desk->conns[i].address == conn->address) bytes += conn->desk->conns[i].copied;
    return bytes;
}

static void conn_close(struct leat_conn *conn)
{
    conn->closed = true;
}

static void conn_pause(struct leat_conn *conn)
{
    (void)conn;
}

static leat_err conn_send_copy(struct leat_conn *conn, const void *bytes, size_t count)
{
    (void)conn, (void)bytes, (void)count;
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
                                  .queued_bytes = conn_queued,
                                  .taken_bytes = conn_taken,
                                  .copied_bytes = conn_copied,
                                  .copied_bytes_near = conn_copied_near,
                                  .copied_bytes_all = conns_copied,
                                  .pause = conn_pause,
                                  .resume = conn_pause,
                                  .close = conn_close,
                                  .send_copy = conn_send_copy,
                                  .peer = conn_peer};
    desk->node.options.cores = 1;
    desk->node.options.memory_bytes = 512ull * MIB;
    struct leat_core *core = &desk->core;
    desk->node.hooks = &leat_core_hooks;
    core_world_set(core, &desk->world, &desk->node, &desk->net);
    struct leat_list *lists[] = {&core->slow_peers,          &core->owing_peers,
                                 &core->answer_peers,        &core->data->deferred_fetches,
                                 &core->data->ready_fetches, &core->wanted_stocks};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
    leat_output_init(core);
    for (unsigned i = 0; i < PEERS; i++) {
        struct leat_peer *peer = &desk->peers[i];
        peer->core = core;
        peer->conn = &desk->conns[i];
        peer->requests = 1;
        leat_list_init(&peer->slow);
        leat_list_init(&peer->answers);
        leat_list_init(&peer->owing);
        leat_list_init(&peer->output.wait);
        leat_list_init(&peer->output.keep);
        leat_list_init(&peer->output.lasts);
        leat_list_init(&peer->stock.link);
        desk->conns[i].desk = desk;
        desk->conns[i].address = peer->address = i;
        assert_true(leat_sharer_join(core, peer));
    }
    return desk;
}

void desk_free(struct desk *desk)
{
    for (unsigned i = 0; i < PEERS; i++) {
        leat_output_leave(&desk->peers[i]);
        leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    }
    assert_int_equal(desk->core.output.kept, 0);
    assert_true(leat_list_empty(&desk->core.output.keepers));
    assert_true(leat_list_empty(&desk->core.output.lasts));
    assert_false(leat_output_crowded(&desk->core.output));
    free(desk);
}

void desk_move(struct desk *desk, unsigned i)
{
    leat_sharer_leave(&desk->core, desk->peers[i].sharer);
    desk->conns[i].address = desk->peers[i].address = 0;
    assert_true(leat_sharer_join(&desk->core, &desk->peers[i]));
}
