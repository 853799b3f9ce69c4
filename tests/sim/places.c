/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the memory that a node has for others' replicas, looked at while one-sided writes go there.
 *
 * No place comes back to its arena, nor serves another segment, while a write may still reach the place: neither a
 * write that is under way nor a write of an owner that has not heard that the place is no longer its own
 * (docs/replication.md). Each write is followed from its posting until its last bytes arrive, by the handle of the
 * replica that its writer means. As long as the arena is not revoked, this replica has to lie where the write arrives,
 * or the place has to be kept for nobody. It does not matter whether anybody reads the bytes later. */
#include <stdio.h>

#include "broker/probe.h"
#include "replication/backup/probe.h"
#include "replication/primary/probe.h"
#include "store/probe.h"
#include "tests/sim/scenario.h"

static bool has(const struct leat_segment *seg, const uint8_t *from, uint32_t bytes)
{
    return seg->buffer && from >= seg->buffer && from + bytes <= seg->buffer + seg->capacity;
}

static bool writer_of(const struct leat_backup *backup, const struct leat_rmem_arena *arena,
                      struct leat_writer_seen *out_writer)
{
    *out_writer = (struct leat_writer_seen){0};
    while (leat_backup_see_writer(backup, out_writer))
        if (out_writer->arena == arena) return true;
    return false;
}

static bool replica_at(const struct leat_backup *backup, const uint8_t *from, uint32_t bytes,
                       struct leat_replica_seen *out_rep)
{
    *out_rep = (struct leat_replica_seen){0};
    while (leat_backup_see_next(backup, out_rep))
        if (out_rep->seg && !out_rep->dropping && has(out_rep->seg, from, bytes)) return true;
    return false;
}

static void place_check(const struct sim_rmem_reach *reach)
{
    const struct sim_server *server = reach->to->owner;
    const struct leat_node *node = server->node;
    if (!node || !leat_node_has_cores(node) || !leat_node_backup(node)) return;
    const struct leat_backup *backup = leat_node_backup(node);
    const uint8_t *from = reach->arena->base + reach->offset;
    struct leat_replica_seen rep;
    struct leat_writer_seen writer;
    if (leat_backup_see(backup, reach->place, &rep) && rep.seg && !rep.dropping &&
        has(rep.seg, from, reach->bytes))
        return;
    if (!writer_of(backup, reach->arena, &writer) || !writer.at_store) return;
    bool another = replica_at(backup, from, reach->bytes, &rep);
    char where[80] = "that the next segment may have";
    if (another && rep.writer.at == writer.at)
        snprintf(where, sizeof where, "of segment %llu of log id %u/%u/%u",
                 (unsigned long long)rep.seg->id.v, rep.seg->log.stream, rep.seg->log.streamlet,
                 rep.seg->log.log);
    else if (another || !leat_store_any_free(writer.at_store, reach->offset, reach->bytes))
        return; /* kept for nobody */
    sim_fail(server->scenario->world,
             "A1 lost-write: %u bytes that %s wrote to replica %llx at %s %s in a place %s",
             reach->bytes, reach->from->name, (unsigned long long)reach->place, server->name,
             reach->posted ? "are to arrive" : "arrive", where);
}

void sim_places_watch(struct scenario *scenario)
{
    /* Replication alone writes there, and the transports pass its writes on as they are. */
    scenario->world->rmem_place = leat_write_handle;
    scenario->world->on_rmem_reach = place_check;
}
