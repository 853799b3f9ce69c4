/* SPDX-License-Identifier: Apache-2.0 */
/* A core by core.c alone: which parts the core has when it begins and what is given back, in which order a turn ends,
 * and what its timers do. All parts are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/core_admin.h"
#include "broker/admin/places.h"
#include "broker/data/append.h"
#include "broker/data/core_data.h"
#include "broker/data/fetch.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"
#include "broker/node/bringup.h"
#include "broker/node/stop.h"
#include "tests/broker/alone.h"

enum { BUFFERS = 3, FRAMES = 4000, MEMORY = 77000 };

static struct {
    struct leat_net net;
    struct leat_sharer sharer;
    leat_err unpack, pools, second_pool, lender, timers;
    bool no_sharer;
    unsigned stock_calls; /* of leat_stocks_call(): so often somebody was called */
    struct leat_peer *called;
    size_t memory_bytes;
} it;

static struct leat_core *the_core(void)
{
    return &alone.cores[1];
}

/* ---- its parts ---- */

/* A call of a part, with the core. */
#define CALLED(name, words)                                                                        \
    void name(struct leat_core *core)                                                              \
    {                                                                                              \
        assert_ptr_equal(core, the_core());                                                        \
        said("%s", words);                                                                         \
    }
CALLED(leat_news_init, "news init")
CALLED(leat_output_init, "output init")
CALLED(leat_pace_init, "pace init")
CALLED(leat_confirmer_init, "confirmer init")
CALLED(leat_places_init, "places init")
CALLED(leat_takeovers_init, "takeovers init")
CALLED(leat_repairs_init, "repairs init")
CALLED(leat_movers_init, "movers init")
CALLED(leat_takeovers_fini, "takeovers fini")
CALLED(leat_repairs_fini, "repairs fini")
CALLED(leat_movers_fini, "movers fini")
CALLED(leat_producer_ids_fini, "ids fini")
CALLED(leat_places_fini, "places fini")
CALLED(leat_members_fini, "members fini")
CALLED(leat_unpack_fini, "unpack fini")
CALLED(leat_lender_fini, "lender fini")
CALLED(leat_unpack_turn_end, "unpack")
CALLED(leat_core_ending, "ending")
CALLED(leat_partition_send_openings, "openings")
CALLED(leat_lend_turn_end, "lend")
CALLED(leat_fetch_run_ready, "fetches")
CALLED(leat_output_resume, "output")
CALLED(leat_pace_turn_end, "pace")
CALLED(leat_news_turn_end, "news")
CALLED(leat_heap_tick, "heap tick")
CALLED(leat_walk_make_missing, "missing")
CALLED(leat_partition_care, "care")
CALLED(leat_movers_tick, "movers tick")
CALLED(leat_peer_tick, "peers tick")
CALLED(leat_stocks_tick, "stocks tick")
CALLED(leat_output_tick, "output tick")
CALLED(leat_peer_slow_tick, "slow peers")
CALLED(leat_fetch_give_way, "give way")
CALLED(leat_append_expire, "appends expire")

leat_err leat_unpack_init(struct leat_core *core)
{
    assert_ptr_equal(core, the_core());
    said("unpack init");
    return it.unpack;
}
/* Two stocks are enough. */
struct leat_stock *leat_core_stock(struct leat_core *core, size_t i, size_t *out_bytes,
                                   uint32_t *out_count)
{
    assert_ptr_equal(core, the_core());
    *out_bytes = 50 + i;
    *out_count = 60 + (uint32_t)i;
    return i == 0 ? &core->append_pool : i == 1 ? &core->part_pool : NULL;
}
leat_err leat_stock_init(struct leat_stock *stock, struct leat_core *core, size_t element_bytes,
                         uint32_t count)
{
    assert_ptr_equal(core, the_core());
    assert_ptr_equal(stock, element_bytes == 50 ? &core->append_pool : &core->part_pool);
    said("stock init %u x %zu", count, element_bytes);
    return element_bytes == 50 ? it.pools : it.second_pool;
}
uint32_t leat_node_structs(uint64_t memory_bytes, uint32_t cores, uint32_t most)
{
    assert_int_equal(memory_bytes, MEMORY);
    assert_int_equal(cores, ALONE_CORES);
    return most + 1;
}
void leat_places_forget(struct leat_core *core, struct leat_stream *stream)
{
    assert_ptr_equal(core, the_core());
    said("forget places of %u", stream->desc->id);
}
leat_err leat_lender_init(struct leat_core *core, uint32_t buffer_count)
{
    assert_ptr_equal(core, the_core());
    said("lender init %u", buffer_count);
    return it.lender;
}
leat_err leat_timers_init(struct leat_timers *timers, const struct leat_clock *clock,
                          uint32_t capacity)
{
    assert_ptr_equal(timers, &the_core()->timers);
    assert_ptr_equal(clock, &alone.clock);
    /* What docs and headers say of each that arms some. */
    assert_int_equal(capacity,
                     4 * LEAT_CORE_LOGS_MAX + LEAT_CORE_FETCHES_MAX +
                         LEAT_CORE_PEERS_MAX * (LEAT_PEER_OWN_BYTES / LEAT_FETCH_STRUCT_BYTES + 1) +
                         LEAT_GROUPS_HOMES + LEAT_MEMBER_TIMERS + LEAT_PRIMARY_TIMERS +
                         LEAT_BACKUP_TIMERS + 16);
    said("timers init");
    return it.timers;
}
void leat_timers_fini(struct leat_timers *timers)
{
    assert_ptr_equal(timers, &the_core()->timers);
    said("timers fini");
}
void leat_timers_run(struct leat_timers *timers)
{
    assert_ptr_equal(timers, &the_core()->timers);
    said("timers run");
}
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    struct leat_core *core = the_core();
    assert_ptr_equal(timers, &core->timers);
    said("start %s: %llu us",
         timer == &core->tick        ? "tick"
         : timer == &core->slow_tick ? "slow tick"
                                     : "room timer",
         (unsigned long long)delay_us);
    timer->heap_index_plus_1 = 1;
}
bool leat_sharer_join(struct leat_core *core, struct leat_peer *peer)
{
    assert_ptr_equal(peer, &core->link_peer);
    said("sharer of %x", peer->address);
    if (!it.no_sharer) peer->sharer = &it.sharer;
    return !it.no_sharer;
}
void leat_sharer_leave(struct leat_core *core, struct leat_sharer *sharer)
{
    assert_ptr_equal(core, the_core());
    assert_ptr_equal(sharer, &it.sharer);
    said("no sharer");
}
void leat_stock_fini(struct leat_stock *stock)
{
    struct leat_core *core = the_core();
    struct leat_stock *const stocks[] = {&core->append_pool, &core->part_pool, &core->fetch_pool,
                                         &core->item_pool, &core->read_pool};
    for (unsigned i = 0; i < 5; i++)
        if (stock == stocks[i]) said("stock %u fini", i);
}
bool leat_stocks_call(struct leat_core *core)
{
    said("stocks");
    if (it.stock_calls == 0) return false;
    it.stock_calls--;
    leat_list_push_back(&core->answer_peers, &it.called->answers);
    return true;
}
void leat_restore_budget_init(struct leat_restore_budget *restore_budget, uint64_t bytes_max)
{
    assert_ptr_equal(restore_budget, &the_core()->data->restore_budget);
    said("restore budget %llu", (unsigned long long)bytes_max);
}
void leat_log_turn_end(struct leat_log *log)
{
    said("seal %u", (unsigned)(uintptr_t)log);
}
void leat_core_check(const void *actor)
{
    assert_ptr_equal(actor, the_core());
    said("check the logs");
}
void leat_takeovers_check(const struct leat_core *core)
{
    assert_ptr_equal(core, the_core());
    said("check the takeovers");
}
void leat_links_check(const struct leat_links *links)
{
    assert_ptr_equal(links, the_core()->members.links);
    said("check the links");
}
void leat_partition_give_up(struct leat_partition *partition)
{
    said("give up %u", (unsigned)(uintptr_t)partition->log);
}
void leat_partition_destroy(struct leat_partition *partition)
{
    struct leat_core *core = the_core();
    said("destroy %u", partition->ref.log);
    core->data->partitions[leat_partition_hash(partition->ref) & core->data->partition_mask] =
        partition->hash_next;
}
void leat_stream_remove(struct leat_core *core, struct leat_stream *stream)
{
    said("remove %u", stream->desc->id);
    core->data->streams_by_id[stream->desc->id & core->data->stream_mask] = stream->by_id_next;
}
/* Parts of the budget: numbers of their own. */
uint64_t leat_node_intake_bytes(uint64_t frame_bytes)
{
    return frame_bytes + 1;
}
uint64_t leat_node_links_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return memory_bytes + 10 * (uint64_t)cores + 1;
}
uint64_t leat_node_warm_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return memory_bytes + 10 * (uint64_t)cores + 2;
}
uint64_t leat_node_forward_bytes(uint64_t memory_bytes, uint32_t cores)
{
    return memory_bytes + 10 * (uint64_t)cores + 3;
}
static void net_limit(void *ctx, enum leat_net_account account, size_t bytes)
{
    assert_ptr_equal(ctx, &it);
    said("%s: %zu",
         account == LEAT_NET_CLIENTS ? "clients"
         : account == LEAT_NET_NODES ? "nodes"
                                     : "others",
         bytes);
}
static void door_close(struct leat_door *door, struct leat_core *core)
{
    assert_ptr_equal(door, alone.node.options.door);
    assert_ptr_equal(core, the_core());
    said("door close");
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    the_core()->data->replicate = NULL; /* parts are its own */
    memset(&it, 0, sizeof it);
    it.memory_bytes = leat_mem_bytes(LEAT_MEM_BROKER);
    it.net = (struct leat_net){.ctx = &it, .limit = net_limit};
    alone.env.net = &it.net;
    alone.node.options.memory_bytes = MEMORY;
    memset(the_core(), 0, sizeof *the_core());
}

static leat_err init(void)
{
    return leat_core_init(the_core(), &alone.node, 1, &alone.env, BUFFERS, FRAMES);
}

#define PARTS "places init\ntakeovers init\nrepairs init\nmovers init\n"
#define BEGINS                                                                                     \
    PARTS "clients: 4001\nnodes: 77021\nrestore budget 77022\nnews init\nconfirmer init\n"         \
          "output init\npace init\nunpack init\n"
#define STOCKS "stock init 60 x 50\nstock init 61 x 51\n"
#define ENDS                                                                                       \
    "members fini\ntimers fini\nstock 0 fini\nstock 1 fini\nstock 2 fini\nstock 3 fini\n"          \
    "stock 4 fini\nunpack fini\n"

#define FINI "takeovers fini\nrepairs fini\nmovers fini\nids fini\nplaces fini\n"

static void end(bool shared)
{
    leat_core_fini(the_core());
    assert_said(shared ? FINI ENDS "no sharer\nlender fini\n" : FINI ENDS "lender fini\n");
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), it.memory_bytes);
    alone_end();
}

static struct leat_core *made(void)
{
    begin();
    assert_int_equal(init(), LEAT_OK);
    said_enough();
    return the_core();
}

/* ---- life ---- */

static void core_has_its_parts(void **state)
{
    (void)state;
    begin();
    assert_int_equal(init(), LEAT_OK);
    assert_said(BEGINS "sharer of ffffffff\n" STOCKS "lender init 3\ntimers init\n");
    struct leat_core *core = the_core();
    assert_ptr_equal(core->node, &alone.node);
    assert_int_equal(core->index, 1);
    assert_ptr_equal(core->env, &alone.env);
    assert_ptr_equal(core->net, &it.net);
    assert_string_equal(core->closed_sum.what, "connections were refused or closed");
    assert_string_equal(core->wait_sum.what, "streams have logs that wait for memory");
    assert_int_equal(core->calls_max, LEAT_CORE_CALLS_MAX + 1);
    assert_int_equal(core->data->forward_bytes_max, MEMORY + 20 + 3);
    assert_ptr_equal(core->link_peer.core, core);
    assert_int_equal(core->link_peer.requests, 1);
    struct leat_peer *peer = &core->link_peer;
    struct leat_list *lists[] = {&peer->answers,
                                 &peer->group_calls,
                                 &peer->limited,
                                 &peer->locators,
                                 &peer->output.wait,
                                 &peer->output.keep,
                                 &peer->output.lasts,
                                 &peer->stock.link,
                                 &core->peers,
                                 &core->slow_peers,
                                 &core->owing_peers,
                                 &core->wanted_stocks,
                                 &core->answer_peers,
                                 &core->cut_peers,
                                 &core->data->dirty_logs,
                                 &core->data->opening_logs,
                                 &core->data->care_logs,
                                 &core->data->idle_logs,
                                 &core->data->room_waits,
                                 &core->data->home_logs,
                                 &core->admin->stream_awaits,
                                 &core->data->fetches,
                                 &core->data->ready_fetches,
                                 &core->data->starved_reads,
                                 &core->data->locates,
                                 &core->data->locating,
                                 &core->admin->producer_waits,
                                 &core->strangers,
                                 &core->idle_peers,
                                 &core->data->deferred_fetches,
                                 &peer->borrowed.waits,
                                 &peer->borrowed.line,
                                 &peer->borrowed.rests};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        assert_true(leat_list_empty(lists[i]));
    assert_int_equal(core->data->partition_mask, 1023);
    assert_int_equal(core->data->stream_mask, 255);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER) - it.memory_bytes,
                     sizeof(struct core_parts) + (1024 + 2 * 256) * sizeof(void *) +
                         LEAT_OPENERS_MAX * sizeof(struct leat_opener) + LEAT_CORE_SCRATCH_BYTES);
    assert_ptr_equal(core->tick.owner, core);
    assert_ptr_equal(core->slow_tick.owner, core);
    assert_ptr_equal(core->room_timer.owner, core);
    end(true);
}

static void core_does_not_begin(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 4; i++) { /* parts of node, data, admin, ownership */
        begin();
        leat_mem_fail_at(i);
        assert_int_equal(init(), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        leat_core_fini(the_core());
        assert_said(i < 3 ? "" : i == 3 ? "lender fini\n" : "places init\nlender fini\n");
        assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), it.memory_bytes);
        alone_end();
    }
    for (unsigned i = 5; i <= 9; i++) {
        begin();
        leat_mem_fail_at(i);
        assert_int_equal(init(), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_said(BEGINS "sharer of ffffffff\n");
        end(true);
    }
    begin();
    it.unpack = LEAT_E_DISK; /* whatever it is */
    assert_int_equal(init(), LEAT_E_DISK);
    assert_said(BEGINS);
    end(false);
    begin();
    it.no_sharer = true;
    assert_int_equal(init(), LEAT_E_NO_MEMORY);
    assert_said(BEGINS "sharer of ffffffff\n");
    end(false);
    leat_err *const fails[] = {&it.pools, &it.second_pool, &it.lender, &it.timers};
    static const char *const expected[] = {
        BEGINS "sharer of ffffffff\nstock init 60 x 50\n", BEGINS "sharer of ffffffff\n" STOCKS,
        BEGINS "sharer of ffffffff\n" STOCKS "lender init 3\n",
        BEGINS "sharer of ffffffff\n" STOCKS "lender init 3\ntimers init\n"};
    for (unsigned i = 0; i < 4; i++) {
        begin();
        *fails[i] = LEAT_E_DISK;
        assert_int_equal(init(), LEAT_E_DISK);
        assert_said(expected[i]);
        end(true);
    }
}

static void all_that_it_has_goes_with_it(void **state)
{
    (void)state;
    struct leat_core *core = made();
    struct leat_door door = {.core_close = door_close};
    static struct leat_stream streams[3];
    static struct leat_partition partition[2], first, last;
    alone.node.options.door = &door;
    static const uint32_t ids[] = {1, 256, 255}; /* the first bucket, and the last */
    for (uint32_t i = 0; i < 3; i++) {
        struct leat_stream_desc *desc = calloc(1, sizeof *desc);
        desc->id = ids[i];
        streams[i].desc = desc;
        struct leat_stream **at = &core->data->streams_by_id[ids[i] & 255];
        streams[i].by_id_next = *at;
        *at = &streams[i];
    }
    for (uint32_t q = 0; q < 2; q++) {
        partition[q].ref = (struct leat_log_ref){7, 0, q};
        struct leat_partition **at =
            &core->data->partitions[leat_partition_hash(partition[q].ref) & 1023];
        partition[q].hash_next = *at;
        *at = &partition[q];
    }
    for (first.ref = (struct leat_log_ref){7, 1, 0};
         (leat_partition_hash(first.ref) & 1023) != 0;) /* the first bucket */
        first.ref.log++;
    core->data->partitions[0] = &first;
    for (last.ref = (struct leat_log_ref){7, 0, 2};
         (leat_partition_hash(last.ref) & 1023) != 1023;) /* the last bucket */
        last.ref.log++;
    core->data->partitions[1023] = &last;
    leat_core_fini(core);
    assert_true(core->data == NULL && core->takeovers == NULL && core->repairs == NULL &&
                core->movers == NULL);
    leat_core_data_free(core); /* there is nothing left to be freed */
    leat_core_ownership_free(core);
    assert_true(said_one("takeovers fini\n") && said_one("repairs fini\n") &&
                said_one("movers fini\n") && said_one("door close\n") && said_one("ids fini\n") &&
                said_one("places fini\n"));
    assert_true(said_one("forget places of 256\n") && said_one("forget places of 1\n") &&
                said_one("forget places of 255\n"));
    char destroyed[40];
    snprintf(destroyed, sizeof destroyed, "destroy %u\n", first.ref.log);
    assert_true(said_one(destroyed));
    assert_true(said_one("destroy 0\n") ? said_one("destroy 1\n")
                                        : said_one("destroy 1\n") && said_one("destroy 0\n"));
    snprintf(destroyed, sizeof destroyed, "destroy %u\n", last.ref.log);
    assert_true(said_one(destroyed));
    assert_said("remove 256\nremove 1\nremove 255\n" ENDS "no sharer\nlender fini\n");
    for (uint32_t i = 0; i < 3; i++)
        free(streams[i].desc);
    alone_end();
}

/* ---- turns ---- */

#define QUIET "unpack\nlend\npace\nnews\n"
#define TICK  "start tick: 1000000 us\n"

static void turn_end(void)
{
    leat_core_actor.on_turn_end(the_core());
}

/* Goal: all parts of a core are checked after a turn; a server alone has no links. */
static void turn_is_checked(void **state)
{
    (void)state;
    struct leat_core *core = made();
    leat_core_actor.check(core);
    assert_said("check the logs\ncheck the takeovers\n");
    core->members.links = (void *)core;
    leat_core_actor.check(core);
    assert_said("check the logs\ncheck the takeovers\ncheck the links\n");
    core->members.links = NULL;
    end(true);
}

static void answer(struct leat_peer *peer)
{
    said("answer to %s", peer->name);
}

static void turn_ends_where_nothing_was_done(void **state)
{
    (void)state;
    struct leat_core *core = made();
    for (unsigned i = 0; i < LEAT_OUTPUT_LINES; i++)
        leat_list_init(&core->output.lines[i].ring);
    turn_end();
    assert_said(QUIET TICK);
    turn_end();
    assert_said(QUIET);
    core->tick.heap_index_plus_1 = 0;
    core->stopped = true;
    turn_end();
    assert_said(QUIET);
    leat_core_actor.on_wake(core);
    assert_said("timers run\n");
    end(true);
}

/* Goal: appends that a turn has gathered are sealed before fetches look, and fetches look before answers are
 * written. */
static void turn_ends_in_order(void **state)
{
    (void)state;
    struct leat_core *core = made();
    for (unsigned i = 0; i < LEAT_OUTPUT_LINES; i++)
        leat_list_init(&core->output.lines[i].ring);
    static const struct leat_protocol protocol = {.answer = answer};
    static const struct leat_segment last;
    struct leat_partition partition[4] = {
        {.log = (void *)1},
        {.log = (void *)2, .last_damaged = &last},
        {.log = (void *)3, .last_damaged = &last, .state = LEAT_PARTITION_GOES}};
    struct leat_peer peers[2] = {{.protocol = &protocol, .name = "a"},
                                 {.protocol = &protocol, .name = "b"}};
    struct leat_list links[6];
    for (unsigned i = 0; i < 3; i++)
        leat_list_push_back(&core->data->dirty_logs, &partition[i].dirty);
    leat_list_push_back(&core->answer_peers, &peers[0].answers);
    leat_list_push_back(&core->data->opening_logs, &links[0]);
    leat_list_push_back(&core->data->ready_fetches, &links[1]);
    leat_list_push_back(&core->data->room_waits, &links[2]);
    leat_list_push_back(&core->wanted_stocks, &links[3]);
    leat_list_push_back(&core->output.lines[1].ring, &links[4]);
    core->ending = true;
    it.called = &peers[1];
    it.stock_calls = 1;
    core->tick.heap_index_plus_1 = 1;
    turn_end();
    assert_said(
        "seal 1\ngive up 2\nseal 2\nseal 3\nunpack\nending\nopenings\nlend\nfetches\noutput\n"
        "answer to a\nstocks\nanswer to b\nstocks\nstart room timer: 1875000 us\n"
        "start slow tick: 20000 us\npace\nnews\n");
    core->ending = false, core->stopping = true;
    leat_list_push_back(&core->data->dirty_logs, &partition[1].dirty);
    leat_list_remove(&links[0]);
    leat_list_remove(&links[1]);
    leat_list_remove(&links[3]);
    leat_list_remove(&links[4]);
    leat_list_push_back(&core->data->starved_reads, &links[1]);
    turn_end(); /* both timers run already */
    assert_said("seal 2\nunpack\nlend\nfetches\npace\nnews\n");
    core->slow_tick.heap_index_plus_1 = 0;
    leat_list_remove(&links[1]);
    turn_end();
    assert_said(QUIET);
    struct leat_list *const slow[] = {&core->slow_peers, &core->output.lines[2].ring,
                                      &core->wanted_stocks};
    static const char *const before[] = {"", "output\n", "stocks\n"};
    for (unsigned i = 0; i < 3; i++) {
        leat_list_push_back(slow[i], &links[5]);
        for (unsigned turn = 0; turn < 2;
             turn++) { /* it runs: the second turn must not put it off */
            char expected[128];
            turn_end();
            snprintf(expected, sizeof expected, "unpack\nlend\n%s%space\nnews\n", before[i],
                     turn == 0 ? "start slow tick: 20000 us\n" : "");
            assert_said(expected);
        }
        core->slow_tick.heap_index_plus_1 = 0;
        leat_list_remove(&links[5]);
    }
    end(true);
}

static void timers_expire(void **state)
{
    (void)state;
    struct leat_core *core = made();
    core->tick.on_expired(&core->tick);
    assert_said(TICK
                "heap tick\nmissing\ncare\nmovers tick\npeers tick\nstocks tick\noutput tick\n");
    core->slow_tick.on_expired(&core->slow_tick);
    assert_said("slow peers\ngive way\n");
    core->room_timer.on_expired(&core->room_timer);
    assert_said("appends expire\n");
    end(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core_has_its_parts),
        cmocka_unit_test(core_does_not_begin),
        cmocka_unit_test(all_that_it_has_goes_with_it),
        cmocka_unit_test(turn_is_checked),
        cmocka_unit_test(turn_ends_where_nothing_was_done),
        cmocka_unit_test(turn_ends_in_order),
        cmocka_unit_test(timers_expire),
    };
    return cmocka_run_group_tests_name("broker core", tests, NULL, NULL);
}
