/* SPDX-License-Identifier: Apache-2.0 */
/* A core as an actor: its state, and the end of a turn. */
#include "broker/net/core.h"

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/admin/calls.h"
#include "broker/admin/core_admin.h"
#include "broker/admin/places.h"
#include "broker/data/append.h"
#include "broker/data/confirm.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lend.h"
#include "broker/data/news.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/data/stream.h"
#include "broker/node/bringup.h"
#include "broker/node/stop.h"
#include "broker/node/walk.h"
#include "broker/ownership/handover.h"
#include "broker/ownership/move.h"

static void core_on_wake(void *actor);
static void core_on_turn_end(void *actor);
static void core_on_tick(struct leat_timer *timer);
static void core_on_slow_tick(struct leat_timer *timer);
static void core_on_room_timer(struct leat_timer *timer);

static void core_check(const void *actor)
{
    leat_core_check(actor);
    leat_takeovers_check(actor);
}

const struct leat_actor_ops leat_core_actor = {core_on_wake, core_on_turn_end, core_check};

/* ---- life ---- */

enum { OWN_FETCHES_MAX = LEAT_PEER_OWN_BYTES / LEAT_FETCH_STRUCT_BYTES + 1 };

/* State of a core that belongs to the libraries above net/. */
struct core_parts {
    struct leat_core_data data;
    struct leat_replicate replicate;
    struct leat_confirmer confirmer;
    struct leat_lender lender;
    struct leat_news_line news;
    struct leat_core_admin admin;
    struct leat_placer placer;
    struct leat_missing missing;
    struct leat_takeovers takeovers;
    struct leat_mends mends;
    struct leat_movers movers;
};

static leat_err parts_init(struct leat_core *core)
{
    struct core_parts *parts = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *parts);
    if (parts == NULL) return LEAT_E_NO_MEMORY;
    core->data = &parts->data;
    core->data->replicate = &parts->replicate;
    core->data->confirmer = &parts->confirmer;
    core->data->lender = &parts->lender;
    core->data->news = &parts->news;
    core->admin = &parts->admin;
    core->admin->placer = &parts->placer;
    core->missing = &parts->missing;
    core->takeovers = &parts->takeovers;
    core->mends = &parts->mends;
    core->movers = &parts->movers;
    return LEAT_OK;
}

static void parts_fini(struct leat_core *core)
{
    leat_mem_free(LEAT_CONTAINER(core->data, struct core_parts, data));
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

static void data_lists_init(struct leat_core_data *data)
{
    struct leat_list *lists[] = {
        &data->dirty_logs,       &data->opening_logs,  &data->care_logs, &data->idle_logs,
        &data->room_waits,       &data->home_logs,     &data->fetches,   &data->ready_fetches,
        &data->deferred_fetches, &data->starved_reads, &data->locates,   &data->locating};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        leat_list_init(lists[i]);
}

/* false: there is no memory for one of the tables; leat_core_fini() frees the tables that were made. */
static bool data_tables_init(struct leat_core_data *data)
{
    data->partition_mask = 1023;
    data->stream_mask = 255;
    data->partitions =
        leat_mem_calloc(LEAT_MEM_BROKER, data->partition_mask + 1, sizeof *data->partitions);
    data->streams_by_id =
        leat_mem_calloc(LEAT_MEM_BROKER, data->stream_mask + 1, sizeof *data->streams_by_id);
    data->streams_by_name =
        leat_mem_calloc(LEAT_MEM_BROKER, data->stream_mask + 1, sizeof *data->streams_by_name);
    data->openers = leat_mem_calloc(LEAT_MEM_BROKER, LEAT_OPENERS_MAX, sizeof *data->openers);
    return data->partitions != NULL && data->streams_by_id != NULL &&
           data->streams_by_name != NULL && data->openers != NULL;
}

leat_err leat_core_init(struct leat_core *core, struct leat_node *node, uint32_t index,
                        const struct leat_env *env, uint32_t buffer_count, uint64_t frame_bytes_max)
{
    core->node = node;
    core->index = index;
    if (parts_init(core) != LEAT_OK) return LEAT_E_NO_MEMORY;
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
    data_lists_init(core->data);
    leat_list_init(&core->admin->stream_awaits);
    leat_list_init(&core->admin->producer_waits);
    leat_restore_budget_init(&core->data->restore_budget,
                             leat_node_warm_bytes(node->options.memory_bytes, node->options.cores));
    leat_news_init(core);
    leat_output_init(core);
    leat_pace_init(core);
    core->data->forward_bytes_max =
        leat_node_forward_bytes(node->options.memory_bytes, node->options.cores);
    leat_confirmer_init(core);
    leat_places_init(core);
    leat_takeovers_init(core);
    leat_mends_init(core);
    leat_movers_init(core);
    core->tick.on_expired = core_on_tick;
    core->slow_tick.on_expired = core_on_slow_tick;
    core->room_timer.on_expired = core_on_room_timer;
    core->tick.owner = core->slow_tick.owner = core->room_timer.owner = core;

    bool tables = data_tables_init(core->data);
    core->scratch = leat_mem_calloc(LEAT_MEM_BROKER, LEAT_CORE_SCRATCH_BYTES, 1);
    leat_err rc = leat_unpack_init(core);
    core->link_peer.address = UINT32_MAX; /* other nodes share one account here */
    if (rc == LEAT_OK && !leat_sharer_join(core, &core->link_peer)) rc = LEAT_E_NO_MEMORY;
    if (!tables || core->scratch == NULL) return LEAT_E_NO_MEMORY;

    if (rc == LEAT_OK) rc = stocks_init(core);
    if (rc == LEAT_OK) rc = leat_lender_init(core, buffer_count);
    /* A log arms at most four timers, a fetch one, also a fetch in a connection's own struct; a home has one. */
    if (rc == LEAT_OK)
        rc = leat_timers_init(&core->timers, env->clock,
                              4 * LEAT_CORE_LOGS_MAX + LEAT_CORE_FETCHES_MAX +
                                  LEAT_CORE_PEERS_MAX * OWN_FETCHES_MAX + LEAT_GROUPS_HOMES +
                                  LEAT_MEMBER_TIMERS + LEAT_PRIMARY_TIMERS + LEAT_BACKUP_TIMERS +
                                  16);
    return rc;
}

void leat_core_fini(struct leat_core *core)
{
    if (core->data == NULL) return; /* there was no memory for anything */
    leat_takeovers_fini(core);
    leat_mends_fini(core);
    leat_movers_fini(core);
    struct leat_door *door = core->node->options.door;
    if (door != NULL) door->core_close(door, core);
    leat_producer_ids_fini(core);
    leat_places_fini(core);
    for (uint32_t i = 0; core->data->partitions != NULL && i <= core->data->partition_mask; i++)
        while (core->data->partitions[i] != NULL)
            leat_partition_destroy(core->data->partitions[i]);
    for (uint32_t i = 0; core->data->streams_by_id != NULL && i <= core->data->stream_mask; i++)
        while (core->data->streams_by_id[i] != NULL) {
            leat_places_forget(core, core->data->streams_by_id[i]);
            leat_stream_remove(core, core->data->streams_by_id[i]);
        }
    leat_members_fini(core);
    leat_timers_fini(&core->timers);
    leat_stock_fini(&core->append_pool);
    leat_stock_fini(&core->part_pool);
    leat_stock_fini(&core->fetch_pool);
    leat_stock_fini(&core->item_pool);
    leat_stock_fini(&core->read_pool);
    leat_mem_free(core->data->partitions);
    leat_mem_free(core->data->streams_by_id);
    leat_mem_free(core->data->streams_by_name);
    leat_mem_free(core->data->openers);
    leat_mem_free(core->scratch);
    leat_unpack_fini(core);
    leat_lender_fini(core);
    if (core->link_peer.sharer != NULL) leat_sharer_leave(core, core->link_peer.sharer);
    parts_fini(core);
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
    if (!leat_list_empty(&core->data->opening_logs)) leat_partition_send_openings(core);
    leat_lend_turn_end(core);
    if (!leat_list_empty(&core->data->ready_fetches) ||
        !leat_list_empty(&core->data->starved_reads))
        leat_fetch_run_ready(core);
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
