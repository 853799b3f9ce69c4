/* SPDX-License-Identifier: Apache-2.0 */
/* A core as an actor: its state, and the end of a turn. */
#include "broker/net/core.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/admin/calls.h"
#include "broker/data/core_data.h"
#include "broker/data/news.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/serve.h"
#include "broker/node/bringup.h"
#include "broker/node/stop.h"
#include "broker/node/walk.h"
#include "broker/ownership/calls.h"
#include "broker/ownership/handover.h"

static void core_on_wake(void *actor);
static void core_on_turn_end(void *actor);
static void core_on_tick(struct leat_timer *timer);
static void core_on_slow_tick(struct leat_timer *timer);
static void core_on_room_timer(struct leat_timer *timer);

static void core_check(const void *actor)
{
    const struct leat_core *core = actor;
    leat_core_check(actor);
    leat_takeovers_check(actor);
    if (core->members.links) leat_links_check(core->members.links);
}

const struct leat_actor_ops leat_core_actor = {core_on_wake, core_on_turn_end, core_check};

/* ---- life ---- */

enum { OWN_FETCHES_MAX = LEAT_PEER_OWN_BYTES / LEAT_FETCH_STRUCT_BYTES + 1 };

/* State of a core that belongs to the libraries above net/. */
static leat_err parts_make(struct leat_core *core)
{
    core->missing = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *core->missing);
    if (core->missing == NULL) return LEAT_E_NO_MEMORY;
    leat_err rc = leat_core_data_make(core);
    if (rc == LEAT_OK) rc = leat_core_admin_make(core);
    if (rc == LEAT_OK) rc = leat_core_ownership_make(core);
    return rc;
}

static leat_err stocks_init(struct leat_core *core)
{
    const struct leat_node_options *options = &core->node->options;
    struct leat_stock *stock;
    size_t bytes;
    uint32_t count;
    leat_err rc = LEAT_OK;
    for (size_t i = 0; rc == LEAT_OK && (stock = leat_core_stock(core, i, &bytes, &count)) != NULL;
         i++)
        rc = leat_stock_init(stock, core, bytes, count);
    core->calls_max = leat_node_structs(options->memory_bytes, options->cores, LEAT_CORE_CALLS_MAX);
    return rc;
}

leat_err leat_core_init(struct leat_core *core, struct leat_node *node, uint32_t index,
                        const struct leat_env *env, uint32_t buffer_count, uint64_t frame_bytes_max)
{
    core->node = node;
    core->index = index;
    if (parts_make(core) != LEAT_OK) return LEAT_E_NO_MEMORY;
    core->env = env;
    core->net = env->net;
    core->closed_sum.what = "connections were refused or closed";
    core->wait_sum.what = "streams have logs that wait for memory";
    core->net->limit(core->net->ctx, LEAT_NET_CLIENTS, leat_node_intake_bytes(frame_bytes_max));
    core->net->limit(core->net->ctx, LEAT_NET_NODES,
                     leat_node_links_bytes(node->options.memory_bytes, node->options.cores));
    core->link_peer.core = core;
    core->link_peer.requests = 1; /* never given back: link_peer is no connection, and never ends */
    leat_list_init(&core->link_peer.answers);
    leat_list_init(&core->link_peer.group_calls);
    leat_list_init(&core->link_peer.limited);
    leat_list_init(&core->link_peer.locators);
    leat_borrower_init(&core->link_peer.borrowed);
    leat_list_init(&core->link_peer.output.wait);
    leat_list_init(&core->link_peer.output.keep);
    leat_list_init(&core->link_peer.output.lasts);
    leat_list_init(&core->link_peer.stock.link);
    struct leat_list *lists[] = {&core->peers,         &core->slow_peers,   &core->owing_peers,
                                 &core->wanted_stocks, &core->answer_peers, &core->cut_peers,
                                 &core->strangers,     &core->idle_peers};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
    leat_core_data_init(core);
    leat_output_init(core);
    leat_pace_init(core);
    core->tick.on_expired = core_on_tick;
    core->slow_tick.on_expired = core_on_slow_tick;
    core->room_timer.on_expired = core_on_room_timer;
    core->tick.owner = core->slow_tick.owner = core->room_timer.owner = core;

    bool tables = leat_core_tables_init(core);
    core->scratch = leat_mem_calloc(LEAT_MEM_BROKER, LEAT_CORE_SCRATCH_BYTES, 1);
    leat_err rc = leat_unpack_init(core);
    core->link_peer.address = UINT32_MAX; /* other nodes share one account here */
    if (rc == LEAT_OK && !leat_sharer_join(core, &core->link_peer)) rc = LEAT_E_NO_MEMORY;
    if (!tables || core->scratch == NULL) return LEAT_E_NO_MEMORY;

    if (rc == LEAT_OK) rc = stocks_init(core);
    if (rc == LEAT_OK) rc = leat_core_buffers_init(core, buffer_count);
    /* A log arms at most four timers, a fetch one, also a fetch in a connection's own struct; a home has one. */
    if (rc == LEAT_OK)
        rc = leat_timers_init(&core->timers, env->clock,
                              4 * LEAT_CORE_LOGS_MAX + LEAT_CORE_FETCHES_MAX +
                                  LEAT_CORE_PEERS_MAX * OWN_FETCHES_MAX + LEAT_GROUPS_HOMES +
                                  LEAT_MEMBER_TIMERS + LEAT_PRIMARY_TIMERS + LEAT_BACKUP_TIMERS +
                                  16);
    return rc;
}

static void parts_fini(struct leat_core *core)
{
    leat_core_ownership_fini(core);
    struct leat_door *door = core->node->options.door;
    if (door != NULL) door->core_close(door, core);
    leat_core_admin_fini(core);
    leat_core_logs_free(core);
    leat_members_fini(core);
    leat_timers_fini(&core->timers);
    leat_stock_fini(&core->append_pool);
    leat_stock_fini(&core->part_pool);
    leat_stock_fini(&core->fetch_pool);
    leat_stock_fini(&core->item_pool);
    leat_stock_fini(&core->read_pool);
    leat_mem_free(core->scratch);
    leat_unpack_fini(core);
    if (core->link_peer.sharer != NULL) leat_sharer_leave(core, core->link_peer.sharer);
}

void leat_core_fini(struct leat_core *core)
{
    if (core->takeovers != NULL) parts_fini(core); /* NULL: there was no memory for its parts */
    leat_core_ownership_free(core);
    leat_core_admin_free(core);
    leat_core_data_free(core);
    leat_mem_free(core->missing);
}

/* ---- events ---- */

static void core_on_wake(void *actor)
{
    struct leat_core *core = actor;
    leat_timers_run(&core->timers);
}

static void core_answer(struct leat_peer *peer)
{
    peer->protocol->answer(peer);
}

static void core_on_turn_end(void *actor)
{
    struct leat_core *core = actor;

    /* Seal what was gathered. In memory this acks at once, so answers below go out in this turn. */
    struct leat_list *link;
    while ((link = leat_list_pop_front(&core->data->dirty_logs)) != NULL) {
        struct leat_partition *partition = LEAT_CONTAINER(link, struct leat_partition, dirty);
        if (partition->last_damaged && !leat_partition_goes(partition) && !core->stopping)
            leat_partition_give_up(partition);
        leat_log_turn_end(partition->log);
    }
    leat_unpack_turn_end(core);
    if (core->ending) leat_core_ending(core);
    leat_core_data_turn_end(core);
    if (leat_output_crowded(&core->output)) leat_output_resume(core);
    do {
        while ((link = leat_list_pop_front(&core->answer_peers)) != NULL)
            core_answer(LEAT_CONTAINER(link, struct leat_peer, answers));
    } while (!leat_list_empty(&core->wanted_stocks) && leat_stocks_call(core));
    if (!leat_list_empty(&core->data->room_waits) && !leat_timer_armed(&core->room_timer))
        leat_timer_start(&core->timers, &core->room_timer, LEAT_APPEND_ROOM_US / 8);
    if ((!leat_list_empty(&core->slow_peers) || leat_output_crowded(&core->output) ||
         !leat_list_empty(&core->wanted_stocks)) &&
        !leat_timer_armed(&core->slow_tick))
        leat_timer_start(&core->timers, &core->slow_tick, LEAT_SLOW_TICK_US);
    leat_pace_turn_end(core);
    leat_news_turn_end(core);
    if (!leat_timer_armed(&core->tick) && !core->stopped)
        leat_timer_start(&core->timers, &core->tick, LEAT_TICK_US);
}

static void core_on_tick(struct leat_timer *timer)
{
    struct leat_core *core = timer->owner;
    leat_timer_start(&core->timers, &core->tick, LEAT_TICK_US);
    leat_heap_tick(core);
    leat_walk_make_missing(core);
    leat_partition_care(core);
    leat_movers_tick(core);
    leat_peer_tick(core);
    leat_stocks_tick(core);
    leat_output_tick(core);
}

static void core_on_slow_tick(struct leat_timer *timer)
{
    leat_peer_slow_tick(timer->owner);
    leat_fetch_give_way(timer->owner);
}

static void core_on_room_timer(struct leat_timer *timer)
{
    leat_append_expire(timer->owner);
}
