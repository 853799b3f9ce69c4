/* SPDX-License-Identifier: Apache-2.0 */
/* A node by node.c alone: how its memory is parted, what each part is told when it is opened, and what becomes of the
 * rest when one can't be. All parts are the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/node/bringup.h"
#include "broker/node/hooks.h"
#include "broker/ownership/collect.h"
#include "tests/broker/alone.h"

enum {
    MIB = 1024 * 1024,
    CORES = 2,
    MEMORY = 900 * MIB,
    FRAMES = 4000,
    BUFFERS = 3,
    INHERITED = 3
};
#define STEP ((uint64_t)LEAT_ARENA_STEP_BYTES)

static struct {
    struct leat_node_options options;
    struct leat_node *node;
    struct core_parts parts[4];
    struct leat_env core_envs[CORES], coordinator_env;
    struct leat_random random;
    struct leat_net links;
    struct leat_door door;
    uint64_t pool, own_pool;
    leat_err core, door_rc, identity, boot, store, coordinator, marks;
    struct leat_store_options store_options;
    const struct leat_arena *inherited[INHERITED]; /* the first of those that the store was given */
    unsigned left_count;
    struct leat_coordinator_options coordinator_options;
    struct leat_error error;
    bool no_error;
    size_t memory_bytes;
} it;

/* ---- its parts ---- */

uint64_t leat_node_overhead(uint64_t memory_bytes, uint32_t cores, uint32_t *out_buffers_per_core,
                            uint64_t *out_frame_bytes_per_core)
{
    assert_int_equal(memory_bytes, it.options.memory_bytes);
    assert_int_equal(cores, it.options.cores);
    *out_buffers_per_core = BUFFERS;
    *out_frame_bytes_per_core = FRAMES;
    return 0;
}
uint64_t leat_node_pool_bytes(uint64_t memory_bytes, uint32_t cores)
{
    assert_int_equal(memory_bytes, it.options.memory_bytes);
    assert_int_equal(cores, it.options.cores);
    return it.pool;
}
uint64_t leat_node_own_pool_bytes(uint64_t pool_bytes, bool clustered)
{
    assert_int_equal(pool_bytes, it.pool);
    return clustered ? it.own_pool : pool_bytes;
}
uint64_t leat_node_least_memory(uint32_t cores)
{
    return (100 + (uint64_t)cores) * MIB;
}
/* Numbers of their own. */
#define BUDGET(name, plus)                                                                         \
    uint64_t name(uint64_t memory_bytes, uint32_t cores)                                           \
    {                                                                                              \
        return memory_bytes + 10 * (uint64_t)cores + (plus);                                       \
    }
BUDGET(leat_node_heap_room, 1)
BUDGET(leat_node_forwards_bytes, 2)
BUDGET(leat_node_links_bytes, 3)
uint64_t leat_node_peers_bytes(uint64_t memory_bytes)
{
    return memory_bytes + 4;
}
uint64_t leat_node_tables_bytes(uint64_t memory_bytes)
{
    return memory_bytes + 5;
}
void leat_segment_integrity_enter(struct leat_segment *seg, enum leat_segment_integrity to)
{
    seg->integrity = to;
}
void leat_addresses_init(struct leat_addresses *addresses, const struct leat_random *random,
                         uint32_t most)
{
    (void)addresses;
    assert_ptr_equal(random, &it.random);
    said("addresses %u", most);
}
void leat_groups_room_init(struct leat_groups_room *room, const struct leat_random *random,
                           uint64_t bytes_max)
{
    assert_ptr_equal(random, &it.random);
    room->bytes_max = bytes_max;
    said("groups");
}
leat_err leat_core_init(struct leat_core *core, struct leat_node *node, uint32_t index,
                        const struct leat_env *env, uint32_t buffer_count, uint64_t frame_bytes_max)
{
    assert_ptr_equal(core, &node->cores[index]);
    assert_ptr_equal(env, &it.core_envs[index]);
    assert_int_equal(buffer_count, BUFFERS);
    assert_int_equal(frame_bytes_max, FRAMES);
    said("core %u", index);
    core->node = node;
    core->index = index;
    core_parts_set(core, &it.parts[index]);
    return index == 1 ? it.core : LEAT_OK;
}
void leat_core_fini(struct leat_core *core)
{
    said("no core %u", core->index);
}
static leat_err door_open(struct leat_door *door, struct leat_core *core)
{
    assert_ptr_equal(door, &it.door);
    said("door on %u", core->index);
    return core->index == 1 ? it.door_rc : LEAT_OK;
}
#define STARTS(name, words, rc)                                                                    \
    leat_err name(struct leat_node *node, struct leat_error *error)                                \
    {                                                                                              \
        (void)node;                                                                                \
        said("%s", words);                                                                         \
        return (rc) == LEAT_OK ? LEAT_OK : leat_error_set(error, rc, "no %s", words);              \
    }
STARTS(leat_node_boot_begin, "boot", it.boot)
STARTS(leat_found_marks, "marks", it.marks)
leat_err leat_node_identity(struct leat_node *node, struct leat_error *error)
{
    said("identity");
    memcpy(node->cluster_id, "0123456789abcdef", 16);
    return it.identity == LEAT_OK ? LEAT_OK : leat_error_set(error, it.identity, "no identity");
}
leat_err leat_store_open(const struct leat_env *env, const struct leat_store_options *options,
                         struct leat_store **out_store, struct leat_error *error)
{
    assert_ptr_equal(env, &alone.env);
    said("store");
    it.store_options = *options;
    for (size_t i = 0; i < options->inherited_count && i < INHERITED; i++)
        it.inherited[i] = options->inherited[i];
    if (it.store != LEAT_OK) return leat_error_set(error, it.store, "no store");
    *out_store = (void *)&it;
    return LEAT_OK;
}
void leat_store_close(struct leat_store **store)
{
    if (*store != NULL) said("no store");
}
struct leat_store_port leat_store_port(struct leat_store *store)
{
    return (struct leat_store_port){.ctx = store};
}
void leat_store_complaints(const struct leat_store *store,
                           void (*each)(void *arg, const char *line), void *arg)
{
    assert_ptr_equal(store, &it);
    each(arg, "a row is damaged");
}
leat_err leat_coordinator_open(const struct leat_env *env,
                               const struct leat_coordinator_options *options,
                               struct leat_coordinator **out_coordinator, struct leat_error *error)
{
    assert_ptr_equal(env, &it.coordinator_env);
    said("coordinator");
    it.coordinator_options = *options;
    if (it.coordinator != LEAT_OK) return leat_error_set(error, it.coordinator, "no coordinator");
    *out_coordinator = (void *)&it;
    return LEAT_OK;
}
void leat_stream_desc_unref(struct leat_stream_desc *desc)
{
    if (desc != NULL) said("stream %u is let go", desc->id);
}
void leat_coordinator_close(struct leat_coordinator **coordinator)
{
    if (*coordinator != NULL) said("no coordinator");
}
static void net_limit(void *ctx, enum leat_net_account account, size_t bytes)
{
    assert_ptr_equal(ctx, &it);
    assert_int_equal(account, LEAT_NET_NODES);
    said("links %zu", bytes - it.options.memory_bytes);
}
const struct leat_core_hooks leat_core_hooks;
bool leat_core_hooks_full(const struct leat_core_hooks *hooks)
{
    assert_ptr_equal(hooks, &leat_core_hooks);
    return true;
}
/* Not called. */
#define NEVER(name, ...)                                                                           \
    void name(__VA_ARGS__)                                                                         \
    {                                                                                              \
        fail();                                                                                    \
    }
NEVER(leat_node_on_stream, void *owner, struct leat_stream_desc *desc)
NEVER(leat_node_on_stream_deleted, void *owner, uint32_t stream_id)
NEVER(leat_node_on_streams_given, void *owner, uint32_t highest)
NEVER(leat_node_on_node, void *owner, const struct leat_node_info *info)
NEVER(leat_node_on_collect, void *owner, struct leat_collect *collect)
NEVER(leat_node_on_pull, void *owner, struct leat_pull *pull)
NEVER(leat_node_on_standing, void *owner, enum leat_standing standing)
uint64_t leat_node_pool_less(void *owner)
{
    (void)owner;
    fail();
    return 0;
}
void leat_node_bring_up(struct leat_node *node)
{
    (void)node;
    said("bring up");
}
#define OF_SEGMENT(name, type, words)                                                              \
    void name(type *of, struct leat_segment *seg)                                                  \
    {                                                                                              \
        (void)of, (void)seg;                                                                       \
        said("%s", words);                                                                         \
    }
OF_SEGMENT(leat_backup_on_flushed, struct leat_backup, "backup flushed")
OF_SEGMENT(leat_backup_on_evict_wanted, struct leat_backup, "backup evict")
OF_SEGMENT(leat_backup_on_damaged, struct leat_backup, "backup damaged")
OF_SEGMENT(leat_log_on_flushed, struct leat_log, "log flushed")
OF_SEGMENT(leat_log_on_evict_wanted, struct leat_log, "log evict")
bool leat_log_on_damaged(struct leat_log *log, const struct leat_segment *seg, bool told)
{
    (void)log, (void)seg;
    said("log damaged%s", told ? ", told" : "");
    return false;
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    it.memory_bytes = leat_mem_bytes(LEAT_MEM_BROKER);
    it.random.ctx = &it;
    it.links = (struct leat_net){.ctx = &it, .limit = net_limit};
    it.core_envs[0] = it.core_envs[1] = it.coordinator_env = alone.env;
    it.core_envs[0].random = &it.random;
    it.coordinator_env.net = &it.links;
    it.door.core_open = door_open;
    it.pool = 10 * STEP;
    it.own_pool = 7 * STEP;
    it.options = (struct leat_node_options){.cores = CORES,
                                            .memory_bytes = MEMORY,
                                            .connections_per_address = 9,
                                            .door = &it.door,
                                            .core_envs = it.core_envs,
                                            .store_env = &alone.env,
                                            .coordinator_env = &it.coordinator_env};
}

static leat_err create(void)
{
    it.node = NULL;
    return leat_node_create(&it.options, &it.node, &it.error);
}

#define CORES_BEGIN "addresses 9\ngroups\nlinks 23\ncore 0\ndoor on 0\ncore 1\n"
#define ALL         CORES_BEGIN "door on 1\nidentity\nboot\nstore\ncoordinator\nmarks\n"

static void end(void)
{
    if (it.node != NULL) {
        leat_node_destroy(&it.node);
        assert_null(it.node);
        assert_said("no core 0\nno core 1\nno coordinator\nno store\n");
    }
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), it.memory_bytes);
    alone_end();
}

/* ---- memory ---- */

static void server_alone_has_the_whole_pool(void **state)
{
    (void)state;
    begin();
    assert_int_equal(create(), LEAT_OK);
    assert_said(ALL);
    struct leat_node *node = it.node;
    assert_ptr_equal(node->hooks, &leat_core_hooks);
    assert_int_equal(node->pool_bytes, it.pool);
    assert_int_equal(node->copies_bytes, 0);
    assert_int_equal(node->copies_first_bytes, it.pool - STEP);
    assert_int_equal(node->writer_bytes_max, STEP);
    assert_int_equal(node->heap_room_bytes, MEMORY + 21);
    assert_int_equal(node->forwards_bytes_max, MEMORY + 22);
    assert_int_equal(node->peers_place_bytes, MEMORY + 4);
    assert_int_equal(node->groups_room.bytes_max, MEMORY + 5);
    assert_string_equal(node->name, "leat");
    assert_string_equal(node->listen_address, "127.0.0.1:7700");
    assert_string_equal(node->version, "unknown");
    assert_ptr_equal(leat_node_core(node, 1), &node->cores[1]);
    assert_ptr_equal(leat_node_store(node), &it);
    assert_ptr_equal(leat_node_coordinator(node), &it);
    assert_ptr_equal(node->store_port.ctx, &it);
    assert_int_equal(atomic_load(&node->complaint_count), 1);
    assert_string_equal(node->complaints[0], "a row is damaged");
    end();
}

/* Goal: two who write here have room for a step each at least, and each has half. */
static void copies_of_others_have_their_part(void **state)
{
    (void)state;
    static const struct {
        uint64_t own_steps, copies_steps, writer_steps;
    } cases[] = {{10, 2, 1}, {9, 2, 1}, {8, 2, 1}, {7, 3, 1}, {6, 4, 2}, {5, 5, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        it.options.cluster.node_address = "here:1";
        it.own_pool = cases[i].own_steps * STEP;
        assert_int_equal(create(), LEAT_OK);
        assert_int_equal(it.node->pool_bytes, it.own_pool);
        assert_int_equal(it.node->copies_bytes, cases[i].copies_steps * STEP);
        assert_int_equal(it.node->writer_bytes_max, cases[i].writer_steps * STEP);
        said_enough();
        end();
    }
}

static void budget_that_is_too_small_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint64_t memory;
        uint32_t cores;
        const char *text;
    } cases[] = {
        {MIB - 1, 1,
         "a memory budget of 1048575 bytes is too small: 1 core needs at least 101 MiB (--memory)"},
        {MIB, 1, "a memory budget of 1 MiB is too small: 1 core needs at least 101 MiB (--memory)"},
        {99 * MIB, 2,
         "a memory budget of 99 MiB is too small: 2 cores need at least 102 MiB (--memory) (fewer "
         "need less: --cores)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        it.pool = 0;
        it.options.memory_bytes = cases[i].memory;
        it.options.cores = cases[i].cores;
        assert_int_equal(create(), LEAT_E_CONFIG);
        assert_string_equal(it.error.text, cases[i].text);
        assert_said("");
        assert_null(it.node);
        end();
    }
}

/* ---- parts ---- */

static void parts_are_told_what_they_need(void **state)
{
    (void)state;
    begin();
    it.options.name = "n1", it.options.listen_address = "l:1", it.options.version = "v9";
    it.options.flush_delay_us = 77;
    it.options.scrub_bytes_per_second = 78;
    it.options.raft_snapshot_bytes_min = 79, it.options.raft_segment_bytes = 80;
    assert_int_equal(create(), LEAT_OK);
    assert_string_equal(it.node->name, "n1");
    assert_string_equal(it.node->listen_address, "l:1");
    assert_string_equal(it.node->version, "v9");
    const struct leat_store_options *store = &it.store_options;
    assert_int_equal(store->memory_bytes, it.pool);
    assert_int_equal(store->flush_delay_us, 77);
    assert_int_equal(store->scrub_bytes_per_second, 78);
    assert_memory_equal(store->cluster_id, "0123456789abcdef", 16);
    assert_null(store->less_bytes);
    assert_ptr_equal(store->owner, it.node);
    assert_int_equal(store->inherited_count, 0);
    const struct leat_coordinator_options *coordinator = &it.coordinator_options;
    assert_int_equal(coordinator->cores, CORES);
    assert_memory_equal(coordinator->cluster_id, "0123456789abcdef", 16);
    assert_ptr_equal(coordinator->owner, it.node);
    assert_int_equal(coordinator->snapshot_bytes_min, 79);
    assert_int_equal(coordinator->raft_segment_bytes, 80);
    assert_null(coordinator->node_address);
    assert_null(coordinator->on_standing);
    said_enough();
    end();
    begin();
    it.options.name = it.options.listen_address = ""; /* as good as none */
    assert_int_equal(create(), LEAT_OK);
    assert_string_equal(it.node->name, "leat");
    assert_int_equal(it.store_options.flush_delay_us, LEAT_NODE_FLUSH_DELAY_US);
    said_enough();
    end();
}

static void host_each(void *ctx, void (*each)(void *arg, struct leat_rmem_arena *arena), void *arg)
{
    struct leat_rmem_arena *arenas = ctx;
    for (unsigned i = 0; i < it.left_count; i++)
        each(arg, &arenas[i % INHERITED]);
}
static void host_retire(void *ctx, struct leat_rmem_arena *arena)
{
    said("retire %u", (unsigned)(arena - (struct leat_rmem_arena *)ctx));
}

/* Goal: the store gets all memory that an earlier process of this node left, to read; memory that the store frees goes
 * back to the host, on core 0. The node looks at no more arenas than there is room for. */
static void memory_of_an_earlier_process_is_the_stores(void **state)
{
    (void)state;
    for (unsigned many = 0; many < 2; many++) {
        struct leat_rmem_arena left[INHERITED] = {0};
        struct leat_rmem_host host = {
            .ctx = left, .each_inherited = host_each, .retire = host_retire};
        uint8_t bytes[INHERITED];
        for (unsigned i = 0; i < INHERITED; i++) {
            left[i] = (struct leat_rmem_arena){
                .base = &bytes[i], .limit_bytes = 9 * STEP, .grown_bytes = (i + 1) * STEP};
            memset(left[i].id, 'a' + (int)i, sizeof left[i].id);
        }
        begin();
        it.left_count = many ? LEAT_RMEM_ARENAS_MAX + 1 : INHERITED;
        it.core_envs[0].rmem_host = alone.env.rmem_host = &host;
        assert_int_equal(create(), LEAT_OK);
        said_enough();
        assert_int_equal(it.store_options.inherited_count, many ? LEAT_RMEM_ARENAS_MAX : INHERITED);
        for (unsigned i = 0; i < INHERITED; i++) {
            const struct leat_arena *arena = it.inherited[i];
            assert_ptr_equal(arena->base, &bytes[i]);
            assert_int_equal(arena->limit_bytes, 9 * STEP);
            assert_int_equal(arena->grown_bytes, (i + 1) * STEP);
            assert_int_equal(arena->inherited_bytes, (i + 1) * STEP);
            assert_memory_equal(arena->pool_id, left[i].id, sizeof arena->pool_id);
        }
        it.store_options.on_inherited_free(it.node, 1);
        assert_said("mail to 0\n");
        alone_deliver();
        assert_said("retire 1\n");
        it.core_envs[0].rmem_host = alone.env.rmem_host = NULL;
        end();
    }
}

static uint64_t heap_bytes(void *ctx)
{
    (void)ctx;
    return 0;
}

static void coordinator_of_a_cluster_is_told_of_it(void **state)
{
    (void)state;
    static const char *const voters[] = {"a:1", "b:1"};
    begin();
    it.options.name = "n1";
    it.options.heap_bytes = heap_bytes;
    it.options.cluster = (struct leat_node_cluster){.node_address = "here:1",
                                                    .key = (void *)&it.door,
                                                    .coordinators = voters,
                                                    .coordinator_count = 2,
                                                    .ping_ms = 3,
                                                    .suspect_ms = 4,
                                                    .confirm_ms = 5,
                                                    .strangers_max = 6};
    assert_int_equal(create(), LEAT_OK);
    const struct leat_coordinator_options *coordinator = &it.coordinator_options;
    assert_ptr_equal(coordinator->node_name, it.node->name);
    assert_string_equal(coordinator->node_address, "here:1");
    assert_ptr_equal(coordinator->voters, voters);
    assert_int_equal(coordinator->voter_count, 2);
    assert_ptr_equal(coordinator->hub, &it.node->hub);
    assert_ptr_equal(coordinator->key, &it.door);
    assert_int_equal(coordinator->strangers_max, 6);
    assert_int_equal(coordinator->ping_ms, 3);
    assert_int_equal(coordinator->suspect_ms, 4);
    assert_int_equal(coordinator->confirm_ms, 5);
    assert_non_null(coordinator->on_collect);
    assert_non_null(coordinator->on_pull);
    assert_non_null(coordinator->on_standing);
    assert_non_null(it.store_options.less_bytes);
    said_enough();
    end();
}

static void node_is_not_created_without_one_of_its_parts(void **state)
{
    (void)state;
    static const char *const gone = "no core 0\nno core 1\n";
    const struct {
        leat_err *fails;
        const char *text, *begun, *closed;
    } cases[] = {{&it.core, "no memory for core 1", CORES_BEGIN, ""},
                 {&it.door_rc, "no memory for core 1", CORES_BEGIN "door on 1\n", ""},
                 {&it.identity, "no identity", CORES_BEGIN "door on 1\nidentity\n", ""},
                 {&it.boot, "no boot", CORES_BEGIN "door on 1\nidentity\nboot\n", ""},
                 {&it.store, "no store", CORES_BEGIN "door on 1\nidentity\nboot\nstore\n", ""},
                 {&it.coordinator, "no coordinator",
                  CORES_BEGIN "door on 1\nidentity\nboot\nstore\ncoordinator\n", "no store\n"},
                 {&it.marks, "no marks", ALL, "no coordinator\nno store\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char expected[512];
        begin();
        *cases[i].fails = LEAT_E_DISK;
        assert_int_equal(create(), LEAT_E_DISK);
        assert_int_equal(it.error.code, LEAT_E_DISK);
        assert_string_equal(it.error.text, cases[i].text);
        snprintf(expected, sizeof expected, "%s%s%s", cases[i].begun, gone, cases[i].closed);
        assert_said(expected);
        assert_null(it.node);
        end();
    }
}

static void node_is_not_created_without_memory(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        begin();
        leat_mem_fail_at(i);
        assert_int_equal(create(), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
        assert_string_equal(it.error.text, "no memory for the node");
        assert_said(i == 1 ? "" : "addresses 9\ngroups\nlinks 23\n");
        end();
    }
    struct leat_rmem_host host = {.each_inherited = host_each};
    begin();
    it.core_envs[0].rmem_host = &host;
    leat_mem_fail_at(4); /* for the arenas that an earlier process left */
    assert_int_equal(create(), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_string_equal(it.error.text, "no memory for the node");
    assert_said(CORES_BEGIN "door on 1\nidentity\nboot\nno core 0\nno core 1\n");
    end();
    begin();
    it.coordinator_env.net = NULL; /* nobody links to it */
    it.options.door = NULL;
    assert_int_equal(create(), LEAT_OK);
    assert_said("addresses 9\ngroups\ncore 0\ncore 1\nidentity\nboot\nstore\ncoordinator\nmarks\n");
    end();
}

/* Goal: a node that ends before its cut lets go of the streams of all that it found. */
static void node_lets_go_of_the_streams_that_it_found(void **state)
{
    (void)state;
    begin();
    assert_int_equal(create(), LEAT_OK);
    said_enough();
    struct leat_stream_desc descs[2] = {{.id = 3}, {.id = 4}};
    it.node->dispositions = leat_mem_calloc(LEAT_MEM_BROKER, 4, sizeof *it.node->dispositions);
    assert_non_null(it.node->dispositions);
    it.node->found_count = 3;
    it.node->dispositions[0].desc = &descs[0];
    it.node->dispositions[2].desc = &descs[1];
    leat_node_destroy(&it.node);
    assert_said("no core 0\nno core 1\nno coordinator\nno store\n"
                "stream 3 is let go\nstream 4 is let go\n");
    leat_node_destroy(&it.node); /* no node: nothing */
    assert_said("");
    assert_int_equal(create(), LEAT_OK);
    said_enough();
    it.node->found_count = 3; /* and no fates yet */
    end();
}

/* ---- what parts tell ---- */

/* Goal: news of a segment from the store reaches the actor that has the segment; where none has it the news stays with
 * the store. */
static void segments_reach_whoever_has_them(void **state)
{
    (void)state;
    begin();
    assert_int_equal(create(), LEAT_OK);
    said_enough();
    const struct leat_store_events *events = &it.store_options.events;
    struct leat_core *core = &it.node->cores[1];
    struct leat_segment seg = {.log_pointer = (void *)&it,
                               .owner_actor = LEAT_ACTOR_CORE_0 + 1,
                               .role = LEAT_SEGMENT_REPLICA};
    events->on_flushed(core, &seg);
    events->on_evict_wanted(core, &seg);
    events->on_damaged(core, &seg);
    assert_said("backup flushed\nbackup evict\nbackup damaged\n");
    seg.role = LEAT_SEGMENT_OWN;
    events->on_flushed(core, &seg);
    events->on_evict_wanted(core, &seg);
    events->on_damaged(core, &seg);
    assert_said("log flushed\nlog evict\nlog damaged, told\n");
    assert_false(seg.flushed || leat_segment_is_damaged(&seg));
    for (unsigned i = 0; i < 2; i++) {
        seg.flushed = false, seg.integrity = LEAT_INTEGRITY_OK;
        if (i == 0)
            seg.owner_actor--;
        else
            seg.owner_actor++, seg.log_pointer = NULL;
        events->on_flushed(core, &seg);
        events->on_evict_wanted(core, &seg);
        events->on_damaged(core, &seg);
        assert_said("");
        assert_true(seg.flushed && leat_segment_is_damaged(&seg));
    }
    end();
}

static void node_comes_up_when_it_has_started_and_its_coordinator_is_ready(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        begin();
        assert_int_equal(create(), LEAT_OK);
        said_enough();
        it.node->cores[0].env = &alone.env;
        for (unsigned i = 0; i < 2; i++) {
            if (i == first) {
                leat_node_start(it.node);
                assert_int_equal(it.node->started_us, alone.now_us);
            } else {
                it.coordinator_options.on_ready(it.node);
                assert_true(said_one("mail to "));
                alone_deliver_all();
            }
            assert_said(i == 0 ? "" : "bring up\n");
        }
        assert_int_equal(it.node->life, LEAT_LIFE_COMES_UP);
        leat_node_start(it.node); /* once */
        it.coordinator_options.on_ready(it.node);
        alone_deliver_all();
        assert_said("mail to 0\n");
        end();
    }
}

/* Goal: a node that was stopped before it came up stays down, whatever comes then. */
static void stopped_node_does_not_come_up(void **state)
{
    (void)state;
    begin();
    assert_int_equal(create(), LEAT_OK);
    said_enough();
    it.node->cores[0].env = &alone.env;
    leat_node_enter(it.node, LEAT_LIFE_GIVES_UP); /* as leat_node_stop() */
    leat_node_start(it.node);
    it.coordinator_options.on_ready(it.node);
    assert_true(said_one("mail to "));
    alone_deliver_all();
    assert_said("");
    assert_int_equal(it.node->life, LEAT_LIFE_GIVES_UP);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_alone_has_the_whole_pool),
        cmocka_unit_test(copies_of_others_have_their_part),
        cmocka_unit_test(budget_that_is_too_small_is_refused),
        cmocka_unit_test(parts_are_told_what_they_need),
        cmocka_unit_test(memory_of_an_earlier_process_is_the_stores),
        cmocka_unit_test(coordinator_of_a_cluster_is_told_of_it),
        cmocka_unit_test(node_is_not_created_without_one_of_its_parts),
        cmocka_unit_test(node_is_not_created_without_memory),
        cmocka_unit_test(node_lets_go_of_the_streams_that_it_found),
        cmocka_unit_test(segments_reach_whoever_has_them),
        cmocka_unit_test(node_comes_up_when_it_has_started_and_its_coordinator_is_ready),
        cmocka_unit_test(stopped_node_does_not_come_up),
    };
    return cmocka_run_group_tests_name("broker node", tests, NULL, NULL);
}
