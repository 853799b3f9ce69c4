/* SPDX-License-Identifier: Apache-2.0 */
/* A whole node: its parts, and how it is created. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/core_data.h"
#include "broker/data/replicate.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"
#include "broker/node/hooks.h"
#include "broker/node/walk.h"
#include "broker/ownership/collect.h"

static leat_err node_open_parts(struct leat_node *node, struct leat_error *error);
static void node_on_coordinator_ready(void *owner);
static void node_on_evict_wanted(void *actor, struct leat_segment *seg);
static void node_on_flushed(void *actor, struct leat_segment *seg);
static void node_on_damaged(void *actor, struct leat_segment *seg);

enum {
    MIB = 1024 * 1024,
    NODE_WRITERS_MIN = 2, /* each has no more of the memory for replicas */
    COPIES_BYTES_MIN = NODE_WRITERS_MIN * LEAT_ARENA_STEP_BYTES,
};

/* ---- life ---- */

static void copy_text(char *to, size_t capacity, const char *from, const char *otherwise)
{
    snprintf(to, capacity, "%s", from != NULL && from[0] != '\0' ? from : otherwise);
}

leat_err leat_node_create(const struct leat_node_options *options, struct leat_node **out_node,
                          struct leat_error *error)
{
    LEAT_ASSERT_CMP(options->cores, >=, 1);
    LEAT_ASSERT_CMP(options->cores, <=, LEAT_CORES_MAX);
    uint32_t buffers;
    uint64_t frame_bytes;
    (void)leat_node_overhead(options->memory_bytes, options->cores, &buffers, &frame_bytes);
    uint64_t pool_bytes = leat_node_pool_bytes(options->memory_bytes, options->cores);
    if (pool_bytes == 0)
        return leat_error_set(error, LEAT_E_CONFIG,
                              "a memory budget of %llu %s is too small: %u core%s at least %llu "
                              "MiB (--memory)%s",
                              (unsigned long long)(options->memory_bytes < MIB
                                                       ? options->memory_bytes
                                                       : options->memory_bytes / MIB),
                              options->memory_bytes < MIB ? "bytes" : "MiB", options->cores,
                              options->cores == 1 ? " needs" : "s need",
                              (unsigned long long)(leat_node_least_memory(options->cores) / MIB),
                              options->cores == 1 ? "" : " (fewer need less: --cores)");

    struct leat_node *node = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *node);
    if (node == NULL) return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the node");
    node->options = *options;
    LEAT_ASSERT(leat_core_hooks_full(&leat_core_hooks));
    node->hooks = &leat_core_hooks;
    leat_addresses_init(&node->addresses, options->core_envs[0].random,
                        options->connections_per_address);
    leat_groups_room_init(&node->groups_room, options->core_envs[0].random,
                          leat_node_tables_bytes(options->memory_bytes));
    copy_text(node->name, sizeof node->name, options->name, "leat");
    copy_text(node->listen_address, sizeof node->listen_address, options->listen_address,
              "127.0.0.1:7700");
    copy_text(node->version, sizeof node->version, options->version, "unknown");
    node->pool_bytes = leat_node_own_pool_bytes(pool_bytes, options->cluster.node_address != NULL);
    /* The nodes that write here share the rest of the pool: with three copies at least two. Each needs a step. */
    node->copies_bytes = pool_bytes - node->pool_bytes;
    if (options->cluster.node_address != NULL && node->copies_bytes < COPIES_BYTES_MIN)
        node->copies_bytes = COPIES_BYTES_MIN;
    node->copies_first_bytes = pool_bytes - LEAT_ARENA_STEP_BYTES;
    node->writer_bytes_max =
        LEAT_ALIGN_DOWN(node->copies_bytes / NODE_WRITERS_MIN, (uint64_t)LEAT_ARENA_STEP_BYTES);
    if (node->writer_bytes_max == 0) node->writer_bytes_max = LEAT_ARENA_STEP_BYTES;
    node->heap_room_bytes = leat_node_heap_room(options->memory_bytes, options->cores);
    node->peers_place_bytes = leat_node_peers_bytes(options->memory_bytes);
    node->forwards_bytes_max = leat_node_forwards_bytes(options->memory_bytes, options->cores);
    const struct leat_net *links = options->coordinator_env->net;
    if (links != NULL)
        links->limit(links->ctx, LEAT_NET_NODES,
                     leat_node_links_bytes(options->memory_bytes, options->cores));
    leat_err rc = LEAT_OK;
    node->complaints =
        leat_mem_calloc(LEAT_MEM_BROKER, LEAT_COMPLAINTS_MAX, sizeof *node->complaints);
    node->cores = leat_mem_calloc(LEAT_MEM_BROKER, options->cores, sizeof *node->cores);
    if (node->complaints == NULL || node->cores == NULL)
        rc = leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the node");
    for (uint32_t i = 0; rc == LEAT_OK && i < options->cores; i++) {
        rc = leat_core_init(&node->cores[i], node, i, &options->core_envs[i], buffers, frame_bytes);
        if (rc == LEAT_OK && options->door != NULL)
            rc = options->door->core_open(options->door, &node->cores[i]);
        if (rc != LEAT_OK) rc = leat_error_set(error, rc, "no memory for core %u", i);
    }
    if (rc == LEAT_OK) rc = leat_node_identity(node, error);
    if (rc == LEAT_OK) rc = leat_node_boot_begin(node, error);
    if (rc == LEAT_OK) rc = node_open_parts(node, error);
    if (rc == LEAT_OK) rc = leat_found_marks(node, error);
    if (rc != LEAT_OK) {
        leat_node_destroy(&node);
        return rc;
    }
    *out_node = node;
    return LEAT_OK;
}

/* The store has put it into the node log. */
static void node_complain_store(void *arg, const char *line)
{
    leat_complaint_keep(arg, line);
}

/* ---- memory that an earlier process of this node left, with replicas that other nodes wrote into it ---- */

struct leat_inherited {
    struct leat_mail mail;
    struct leat_rmem_arena *rmem;
    struct leat_arena arena; /* as the store sees it: to be read only */
};

static void inherited_see(void *arg, struct leat_rmem_arena *rmem)
{
    struct leat_node *node = arg;
    struct leat_inherited *inherited = NULL;
    if (node->inherited_count < LEAT_RMEM_ARENAS_MAX)
        inherited = leat_mem_calloc(LEAT_MEM_BROKER, 1, sizeof *inherited);
    if (inherited == NULL) {
        leat_node_log_warn("replicas of node %s, left in memory, can't be looked at", rmem->writer);
        return;
    }
    inherited->rmem = rmem;
    inherited->arena = (struct leat_arena){.base = rmem->base,
                                           .limit_bytes = rmem->limit_bytes,
                                           .grown_bytes = rmem->grown_bytes,
                                           .inherited_bytes = rmem->grown_bytes};
    memcpy(inherited->arena.pool_id, rmem->id, sizeof inherited->arena.pool_id);
    node->inherited[node->inherited_count++] = inherited;
}

/* On core 0, where the port lives. */
static void inherited_deliver_retire(void *actor, struct leat_mail *mail)
{
    struct leat_inherited *inherited = LEAT_CONTAINER(mail, struct leat_inherited, mail);
    const struct leat_rmem_host *host = ((struct leat_core *)actor)->env->rmem_host;
    host->retire(host->ctx, inherited->rmem);
}

/* On the store's thread. */
static void inherited_on_free(void *owner, size_t index)
{
    struct leat_node *node = owner;
    const struct leat_post *post = node->options.store_env->post;
    struct leat_inherited *inherited = node->inherited[index];
    inherited->mail.deliver = inherited_deliver_retire;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &inherited->mail);
}

static leat_err node_open_store(struct leat_node *node, struct leat_store_options *store,
                                struct leat_error *error)
{
    const struct leat_rmem_host *host = node->options.core_envs[0].rmem_host;
    struct leat_arena *arenas[LEAT_RMEM_ARENAS_MAX];
    if (host != NULL) {
        node->inherited = leat_mem_calloc(LEAT_MEM_BROKER, LEAT_RMEM_ARENAS_MAX, sizeof(void *));
        if (node->inherited == NULL)
            return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the node");
        host->each_inherited(host->ctx, inherited_see, node);
        for (size_t i = 0; i < node->inherited_count; i++)
            arenas[i] = &node->inherited[i]->arena;
        store->inherited = arenas;
        store->inherited_count = node->inherited_count;
        store->on_inherited_free = inherited_on_free;
    }
    return leat_store_open(node->options.store_env, store, &node->store, error);
}

static leat_err node_open_parts(struct leat_node *node, struct leat_error *error)
{
    const struct leat_node_options *options = &node->options;
    struct leat_store_options store = {
        .memory_bytes = node->pool_bytes,
        .flush_delay_us =
            options->flush_delay_us ? options->flush_delay_us : LEAT_NODE_FLUSH_DELAY_US,
        .scrub_bytes_per_second = options->scrub_bytes_per_second,
        .events = {node_on_evict_wanted, node_on_flushed, node_on_damaged},
        .less_bytes = options->heap_bytes != NULL ? leat_node_pool_less : NULL,
        .owner = node,
        .cpu_ns = options->cluster.thread_cpu_ns,
    };
    memcpy(store.cluster_id, node->cluster_id, sizeof store.cluster_id);
    leat_err rc = node_open_store(node, &store, error);
    if (rc != LEAT_OK) return rc;
    node->store_port = leat_store_port(node->store);
    leat_store_complaints(node->store, node_complain_store, node);

    struct leat_coordinator_options coordinator = {
        .cores = options->cores,
        .on_stream = leat_node_on_stream,
        .on_stream_deleted = leat_node_on_stream_deleted,
        .on_streams_given = leat_node_on_streams_given,
        .on_node = leat_node_on_node,
        .on_ready = node_on_coordinator_ready,
        .owner = node,
        .snapshot_bytes_min = options->raft_snapshot_bytes_min,
        .raft_segment_bytes = options->raft_segment_bytes,
    };
    memcpy(coordinator.cluster_id, node->cluster_id, sizeof coordinator.cluster_id);
    const struct leat_node_cluster *cluster = &options->cluster;
    if (cluster->node_address != NULL) {
        coordinator.node_name = node->name;
        coordinator.node_address = cluster->node_address;
        coordinator.voters = cluster->coordinators;
        coordinator.voter_count = cluster->coordinator_count;
        coordinator.hub = &node->hub;
        coordinator.key = cluster->key;
        coordinator.strangers_max = cluster->strangers_max;
        coordinator.ping_ms = cluster->ping_ms;
        coordinator.suspect_ms = cluster->suspect_ms;
        coordinator.confirm_ms = cluster->confirm_ms;
        coordinator.on_collect = leat_node_on_collect;
        coordinator.on_pull = leat_node_on_pull;
        coordinator.on_standing = leat_node_on_standing;
    }
    return leat_coordinator_open(options->coordinator_env, &coordinator, &node->coordinator, error);
}

void leat_node_destroy(struct leat_node **nodep)
{
    struct leat_node *node = *nodep;
    *nodep = NULL;
    if (node == NULL) return;
    for (uint32_t i = 0; node->cores != NULL && i < node->options.cores; i++)
        if (node->cores[i].node != NULL) leat_core_fini(&node->cores[i]);
    leat_coordinator_close(&node->coordinator);
    leat_store_close(&node->store);
    for (uint32_t i = 0; node->complaints != NULL && i < LEAT_COMPLAINTS_MAX; i++)
        leat_mem_free(node->complaints[i]);
    for (size_t i = 0; i < node->inherited_count; i++)
        leat_mem_free(node->inherited[i]);
    leat_mem_free(node->inherited);
    leat_mem_free(node->complaints);
    leat_mem_free(node->decisions);
    leat_mem_free(node->marks);
    for (size_t i = 0; node->dispositions != NULL && i < node->found_count; i++)
        leat_stream_desc_unref(node->dispositions[i].desc); /* no cut has dropped it */
    leat_mem_free(node->dispositions);
    leat_mem_free(node->cores);
    leat_mem_free(node);
}

struct leat_core *leat_node_core(struct leat_node *node, uint32_t core)
{
    LEAT_ASSERT_CMP(core, <, node->options.cores);
    return &node->cores[core];
}

struct leat_store *leat_node_store(struct leat_node *node)
{
    return node->store;
}

struct leat_coordinator *leat_node_coordinator(struct leat_node *node)
{
    return node->coordinator;
}

/* ---- events of the parts ---- */

/* A segment on its way from one owner to another has neither log nor replica, or is another
 * actor's by now: what the store tells meanwhile only leaves its mark. */
static bool is_at_home(const struct leat_core *core, const struct leat_segment *seg)
{
    return seg->log_pointer != NULL && seg->owner_actor == LEAT_ACTOR_CORE_0 + core->index;
}

static void node_on_evict_wanted(void *actor, struct leat_segment *seg)
{
    const struct leat_core *core = actor;
    if (!is_at_home(core, seg)) return; /* told again when memory is short again */
    if (seg->role == LEAT_SEGMENT_REPLICA)
        leat_backup_on_evict_wanted(core->data->replicate->backup, seg);
    else
        leat_log_on_evict_wanted(seg->log_pointer, seg);
}

static void node_on_flushed(void *actor, struct leat_segment *seg)
{
    const struct leat_core *core = actor;
    if (!is_at_home(core, seg))
        seg->flushed = true;
    else if (seg->role == LEAT_SEGMENT_REPLICA)
        leat_backup_on_flushed(core->data->replicate->backup, seg);
    else
        leat_log_on_flushed(seg->log_pointer, seg);
}

static void node_on_damaged(void *actor, struct leat_segment *seg)
{
    const struct leat_core *core = actor;
    if (!is_at_home(core, seg)) /* The log or the backup that gets the segment has it repaired */
        leat_segment_damage_found(seg);
    else if (seg->role == LEAT_SEGMENT_REPLICA)
        leat_backup_on_damaged(core->data->replicate->backup, seg);
    else
        (void)leat_log_on_damaged(seg->log_pointer, seg, true);
}

static void node_deliver_coordinator_ready(void *actor, struct leat_mail *mail)
{
    struct leat_node *node = LEAT_CONTAINER(mail, struct leat_node, ready_mail);
    (void)actor;
    if (node->life == LEAT_LIFE_MADE) leat_node_enter(node, LEAT_LIFE_READY);
    if (node->life != LEAT_LIFE_STARTED) return; /* not yet, or stopped meanwhile */
    leat_node_enter(node, LEAT_LIFE_COMES_UP);
    leat_node_bring_up(node);
}

static void node_on_coordinator_ready(void *owner)
{
    struct leat_node *node = owner;
    const struct leat_post *post = node->options.coordinator_env->post;
    node->ready_mail.deliver = node_deliver_coordinator_ready;
    post->send(post->ctx, LEAT_ACTOR_CORE_0, &node->ready_mail);
}

void leat_node_start(struct leat_node *node)
{
    const struct leat_core *core = &node->cores[0];
    node->started_us = leat_core_now(core);
    if (node->life == LEAT_LIFE_MADE) leat_node_enter(node, LEAT_LIFE_STARTED);
    if (node->life != LEAT_LIFE_READY) return; /* not yet, or stopped already */
    leat_node_enter(node, LEAT_LIFE_COMES_UP);
    leat_node_bring_up(node);
}

/* ---- complaints ---- */
