/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of the owner, what they tell, and a coordinator that is down at times. */
#include "tests/replication/world_parts.h"

enum { RECORD_BYTES = 40 };

/* ---- the coordinator ---- */
static void on_versions(void *owner, struct leat_primary *primary,
                        const struct leat_rep_version *rows, size_t count)
{
    struct world *world = owner;
    (void)primary;
    LEAT_ASSERT(!world->versions_asked && count <= 64);
    world->versions_asked = true;
    world->version_count = count;
    memcpy(world->version_rows, rows, count * sizeof *rows);
    world->versions_at_us = world_later(world, 4 * world->message_us_max);
}

struct world_log *world_log_of(struct world *world, struct leat_log_ref ref)
{
    for (unsigned i = 0; i < world->log_count; i++)
        if (leat_log_ref_equal(world->logs[i].ref, ref)) return &world->logs[i];
    return NULL;
}

void world_versions_event(struct world *world)
{
    world->versions_asked = false;
    bool heard = !world->coordinator_down;
    bool answered = heard && world_below(world, 5) != 0;
    for (size_t i = 0; heard && i < world->version_count; i++) {
        struct world_log *log = world_log_of(world, world->version_rows[i].log);
        LEAT_ASSERT_CMP(world->version_rows[i].epoch.v, ==, (uint32_t)WORLD_EPOCH);
        world_check_stamps(world, log, world->version_rows[i].version);
        if (world->version_rows[i].version > log->version)
            log->version = world->version_rows[i].version;
    }
    leat_primary_versions_done(world->primary, answered ? LEAT_OK : LEAT_E_TIMEOUT);
}

static void log_on_opening(void *owner, struct leat_log *log)
{
    struct world_log *mine = owner;
    (void)log;
    mine->opening = true;
    mine->opening_version = leat_primary_opening(mine->rep);
    mine->opening_at_us = world_later(mine->world, 4 * mine->world->message_us_max);
}

void world_opening_event(struct world_log *log)
{
    struct world *world = log->world;
    log->opening = false;
    bool heard = !world->coordinator_down && !world->stream_deleted;
    bool answered = heard && world_below(world, 5) != 0;
    if (heard) {
        world_check_stamps(world, log, log->opening_version);
        log->opened = true;
        if (log->opening_version > log->version) log->version = log->opening_version;
    }
    leat_err rc = world->stream_deleted ? LEAT_E_UNKNOWN_STREAM
                  : answered            ? LEAT_OK
                                        : LEAT_E_TIMEOUT;
    leat_primary_opened(log->rep, rc);
    leat_log_opened(log->log, rc);
}

/* ---- logs ---- */
static void log_on_dirty(void *owner, struct leat_log *log)
{
    (void)log;
    ((struct world_log *)owner)->dirty = true;
}
static void log_on_acked(void *owner, struct leat_log *log)
{
    struct world_log *mine = owner;
    mine->acked = leat_log_acked_offset(log);
    world_check(mine->world);
}
static void log_on_room(void *owner, struct leat_log *log)
{
    (void)owner;
    (void)log;
}
static void on_room_rep(void *owner, struct leat_primary_log *rep)
{
    (void)owner;
    (void)rep;
}

static void on_append_acked(struct leat_append *append, leat_err rc)
{
    struct world_batch *batch = append->owner;
    batch->used = false;
    if (rc) {
        batch->log->failed++;
        return;
    }
    LEAT_ASSERT_CMP(append->first_offset, <, leat_log_acked_offset(batch->log->log));
}

bool world_append(struct world_log *log, uint32_t bytes)
{
    static uint8_t buffer[65536 + 1024];
    uint8_t value[RECORD_BYTES];
    struct leat_batch_builder builder;
    struct world_batch *slot = NULL;
    struct leat_batch batch;
    struct leat_error error;
    for (unsigned i = 0; i < WORLD_BATCHES_MAX && !slot; i++)
        if (!log->batches[i].used) slot = &log->batches[i];
    if (!slot) return false;
    leat_batch_builder_init(&builder, buffer, bytes + 512);
    for (uint32_t done = 0; done < bytes; done += RECORD_BYTES) {
        memset(value, (int)(log->next_value & 0x7f), sizeof value);
        memcpy(value, &log->next_value, sizeof log->next_value);
        if (leat_batch_builder_add(&builder, 1000, NULL, 0, value, sizeof value, NULL, 0, 0)) break;
        log->next_value++;
    }
    uint32_t count = leat_batch_builder_finish(&builder, LEAT_CODEC_NONE, -1, -1, -1);
    leat_err rc = leat_batch_check(buffer, count, &batch, NULL);
    LEAT_ASSERT(rc == LEAT_OK);
    slot->append = (struct leat_append){.on_acked = on_append_acked, .owner = slot};
    slot->log = log;
    rc = leat_log_append(log->log, &batch, &slot->append, &error);
    slot->used = rc == LEAT_OK;
    return slot->used;
}

bool world_is_idle(const struct world_log *log)
{
    for (unsigned i = 0; i < WORLD_BATCHES_MAX; i++)
        if (log->batches[i].used) return false;
    return true;
}

void world_log_open(struct world *world, unsigned index)
{
    struct world_log *log = &world->logs[index];
    struct world_node *owner = &world->nodes[0];
    log->world = world;
    log->ref = (struct leat_log_ref){1 + index, index, 0}; /* each of a stream of its own */
    struct leat_primary_log_options rep_options = {.ref = log->ref,
                                                   .epoch = {WORLD_EPOCH},
                                                   .copies = world->copies,
                                                   .min_copies = world->min_copies,
                                                   .durability = world->durability,
                                                   .version = 1,
                                                   .owner = log};
    leat_err rc = leat_primary_log_create(world->primary, &rep_options, NULL, 0, &log->rep);
    LEAT_ASSERT(rc == LEAT_OK);
    struct leat_store_port store_port = leat_primary_port(log->rep);
    struct leat_log_options options = {
        .ref = log->ref,
        .epoch = {WORLD_EPOCH},
        .stream_name = "s",
        .settings = {.streamlets = 4,
                     .logs = 1,
                     .copies = world->copies,
                     .segment_bytes_max = (uint32_t)world->segment_bytes_max,
                     .retention_bytes = world->retention_bytes},
        .incarnation = 1,
        .durability = world->durability,
        .hibernate_after_us = world->hibernate_after_us,
        .producer_expiry_ms = 1000 * 1000,
        .events = {log_on_dirty, log_on_acked, log_on_room, log_on_opening, NULL, NULL},
        .owner = log,
    };
    memcpy(options.cluster_id, world_cluster, sizeof world_cluster);
    struct leat_log_tail tail = {0};
    rc = leat_log_create(&owner->env, &store_port, &owner->timers, &options, NULL, 0, &tail,
                         &log->log);
    LEAT_ASSERT(rc == LEAT_OK);
}

struct leat_primary_events world_primary_events(void)
{
    return (struct leat_primary_events){.on_versions = on_versions, .on_room = on_room_rep};
}

struct world *world_ready(uint64_t seed, unsigned nodes, unsigned copies,
                          enum leat_durability durability)
{
    struct world *world = world_new(seed, nodes, copies, 1, durability, 0);
    world_append_all(world, 5, 1000);
    LEAT_ASSERT(world_settle(world, 10 * 1000 * 1000));
    world_run(world, 1000 * 1000); /* also those whose sessions came late */
    return world;
}
