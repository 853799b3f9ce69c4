/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the world, and its printout. */
#include "tests/replication/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/private.h"

/* ---- the rule ---- */
static void check_mark(void *arg, const struct leat_replica_info *info)
{
    struct world *world = arg;
    struct world_log *log = world_log_of(world, info->log);
    if (!log || !log->opened || !info->mark) return;
    if (info->epoch.v != WORLD_EPOCH || info->version < log->version) return;
    world->marks_seen++;
    if (info->next_offset >= log->acked) return;
    fprintf(stderr,
            "log %u: a mark in segment %llu of version %u (the coordinator has %u) ends at %llu, "
            "acked is %llu\n",
            log->ref.streamlet, (unsigned long long)info->segment.v, info->version, log->version,
            (unsigned long long)info->next_offset, (unsigned long long)log->acked);
    abort();
}

void world_check(struct world *world)
{
    world->checks++;
    for (unsigned i = 1; i < world->node_count; i++)
        if (world->nodes[i].alive)
            leat_backup_each(world->nodes[i].backup, NULL, true, check_mark, world);
}

void world_check_stamps(struct world *world, const struct world_log *log, uint32_t version)
{
    LEAT_LIST_EACH(&log->rep->active, it)
    {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        if (!rep_set_is_started(set) || rep_set_is_closed(set) || set->dropping) continue;
        LEAT_ASSERT_CMP(set->seg->version, >=, version);
        for (unsigned i = 0; i < set->copy_count; i++) {
            const struct rep_copy *copy = set->copies[i];
            const struct world_node *node = &world->nodes[copy->peer->node.number];
            if (copy->incomplete || copy->state == REP_COPY_OPENING || !node->alive) continue;
            if (node->incarnation != copy->peer->node.incarnation) continue;
            const struct replica *rep = backup_find(node->backup, copy->handle);
            LEAT_ASSERT(rep && rep->seg);
            LEAT_ASSERT_CMP(rep->seg->version, >=, version);
        }
    }
}

static const uint8_t *bytes_of(const struct leat_segment *seg)
{
    if (seg->buffer) return seg->buffer;
    return seg->file->now + seg->file_offset;
}

struct compare {
    struct world *world;
    struct world_log *log;
    bool whole;
};

/* What the owner means by its copy there; NULL: that node has died, which is not known yet, or has been asked to
 * drop it, as one too many, and may have done so. */
static const struct leat_segment *replica_of(const struct world_node *node,
                                             const struct rep_set *set)
{
    if (!node->alive) return NULL;
    for (unsigned i = 0; i < set->copy_count; i++) {
        const struct rep_copy *copy = set->copies[i];
        if (copy->peer->node.number != node->number) continue;
        if (copy->peer->node.incarnation != node->incarnation) return NULL;
        if (copy->op && copy->op->call.kind == LEAT_REP_DROP) return NULL;
        const struct replica *rep = backup_find(node->backup, copy->handle);
        LEAT_ASSERT(rep && rep->seg && !rep->damaged);
        return rep->seg;
    }
    return NULL;
}

static void compare_segment(void *arg, const struct leat_rep_segment_status *status)
{
    struct compare *compare = arg;
    struct rep_set *set = rep_set_find(compare->log->rep, status->segment.v);
    if (set->dropping) return;
    if (status->count < status->wanted) compare->whole = false;
    if (!status->closed) return;
    for (unsigned i = 0; i < status->count; i++) {
        const struct world_node *node = &compare->world->nodes[status->copies[i].node];
        if (!status->copies[i].closed) {
            compare->whole = false;
            continue;
        }
        const struct leat_segment *copy = replica_of(node, set);
        if (!copy) continue;
        LEAT_ASSERT_CMP(copy->prefix_id.bytes, ==, set->seg->prefix_id.bytes);
        LEAT_ASSERT_CMP(copy->prefix_id.crc, ==, set->seg->prefix_id.crc);
        LEAT_ASSERT_CMP(copy->base_offset, ==, set->seg->base_offset);
        LEAT_ASSERT_CMP(copy->next_offset, ==, set->seg->next_offset);
        const uint8_t *here = bytes_of(set->seg), *there = bytes_of(copy);
        if (memcmp(here, there, copy->prefix_id.bytes) == 0) continue;
        uint32_t at = 0;
        while (here[at] == there[at])
            at++;
        fprintf(stderr,
                "log %u segment %llu: node %u differs from byte %u of %u (in memory %d %d)\n",
                compare->log->ref.streamlet, (unsigned long long)status->segment.v, node->number,
                at, copy->prefix_id.bytes, copy->buffer != NULL, set->seg->buffer != NULL);
        abort();
    }
}

bool world_is_whole(struct world *world)
{
    struct compare compare = {.world = world, .whole = true};
    for (unsigned i = 0; i < world->log_count; i++) {
        compare.log = &world->logs[i];
        leat_primary_log_each(compare.log->rep, compare_segment, &compare);
        if (rep_is_held(compare.log->rep)) compare.whole = false;
    }
    return compare.whole;
}

void world_check_after_death(struct world *world)
{
    bool seen[WORLD_LOGS_MAX] = {false};
    for (unsigned n = 1; n < world->node_count; n++) {
        struct world_node *node = &world->nodes[n];
        if (node->alive) world_node_kill(world, n, false);
        world_node_start(world, n);
    }
    world_check(world);
    struct world_node *owner = &world->nodes[0];
    fake_kill(&owner->disk);
    struct leat_store *old = owner->store;
    (void)old;
    world_drop_store(owner);
    struct leat_error error = {0};
    struct leat_store_options options = {.memory_bytes = WORLD_STORE_BYTES};
    memcpy(options.cluster_id, world_cluster, sizeof world_cluster);
    leat_err rc = leat_store_open(&owner->disk.env, &options, &owner->store, &error);
    LEAT_ASSERT(rc == LEAT_OK);
    size_t count;
    const struct leat_found *found = leat_store_found(owner->store, &count);
    for (size_t i = 0; i < count; i++) {
        struct world_log *log = world_log_of(world, found[i].seg->log);
        LEAT_ASSERT(found[i].kind != LEAT_FOUND_LOST);
        if (found[i].kind != LEAT_FOUND_MARK || !log->opened) continue;
        LEAT_ASSERT_CMP(found[i].seg->version, >=, log->version);
        LEAT_ASSERT_CMP(found[i].scan.next_offset, >=, log->acked);
        seen[log->ref.streamlet] = true;
    }
    for (unsigned i = 0; i < world->log_count; i++)
        LEAT_ASSERT(!world->logs[i].opened || seen[i]);
    owner->disk.store = NULL;
}

/* ---- for people ---- */
static void dump_sets(const struct leat_list *head)
{
    for (const struct leat_list *it = head->next; it != head; it = it->next) {
        const struct rep_set *set = LEAT_CONTAINER(it, const struct rep_set, link);
        fprintf(stderr,
                "    segment %llu state %d%s target %u writes %u local %d stamp %d v%u keeps "
                "%d%d%d%d%d%d%d\n",
                (unsigned long long)set->id.v, (int)set->state, set->dropping ? " dropping" : "",
                set->target, set->writes, (int)set->local_state, set->stamp_busy,
                set->seg ? set->seg->version : 0, set->reserve != NULL, set->commit != NULL,
                set->close != NULL, set->hibernate != NULL, set->resume != NULL, set->drop != NULL,
                set->evict != NULL);
        for (unsigned i = 0; i < set->copy_count; i++) {
            const struct rep_copy *copy = set->copies[i];
            fprintf(stderr,
                    "      node %u state %u%s%s sent %u done %u flushed %u writes %u stamp %u/%u "
                    "op %d kind %d batched %d waits %d\n",
                    copy->peer->node.number, copy->state, copy->incomplete ? " incomplete" : "",
                    copy->counted ? " counted" : "", copy->sent, copy->done, copy->flushed,
                    copy->writes, copy->stamp, copy->stamp_sent, copy->op != NULL,
                    copy->op ? copy->op->call.kind - LEAT_REP_ATTACH : -1, copy->batched,
                    !leat_list_empty(&copy->in_batch));
        }
    }
}

void world_dump(struct world *world)
{
    for (unsigned i = 1; i < world->node_count; i++) {
        const struct world_node *node = &world->nodes[i];
        const struct rep_peer *peer = world->primary->peers[i];
        struct leat_backup_status status = {0};
        if (node->backup) leat_backup_status(node->backup, &status);
        fprintf(stderr,
                "node %u alive %d link %d at %llu session %d ops %u replicas "
                "%u open %u hibernated %u unsettled %u used %llu\n",
                i, node->alive, node->link_up, (unsigned long long)node->link_at_us,
                peer ? (int)peer->state : -1, peer ? peer->ops : 0, status.replicas,
                status.replicas_open, status.replicas_hibernated, status.replicas_unsettled,
                (unsigned long long)status.arena_used_bytes);
    }
    for (unsigned i = 0; i < world->log_count; i++) {
        const struct world_log *log = &world->logs[i];
        struct leat_log_info info;
        leat_log_info(log->log, &info);
        fprintf(stderr,
                "log %u state %d %s next %llu acked %llu opened %d version %u: rep version %u need "
                "%u known %u opening %d opened %d busy %d\n",
                i, info.state, info.why, (unsigned long long)info.next_offset,
                (unsigned long long)info.acked_offset, log->opened, log->version, log->rep->version,
                log->rep->need, log->rep->known, log->rep->opening, log->rep->opened,
                log->rep->version_busy);
        dump_sets(&log->rep->active);
        fprintf(stderr, "   settled\n");
        dump_sets(&log->rep->settled);
    }
}
