/* SPDX-License-Identifier: Apache-2.0 */
/* Reports about replicas: to recovery, to status and to the operator. */
#include "replication/backup/state.h"

/* ---- looking ---- */
static void info_of(const struct replica *rep, bool scan, struct leat_replica_info *out)
{
    const struct leat_segment *seg = rep->seg;
    *out = (struct leat_replica_info){
        .log = seg->log,
        .segment = seg->id,
        .epoch = seg->epoch,
        .version = seg->version,
        .state = seg->state,
        .incomplete = seg->incomplete,
        .settled = rep->settled,
        .provisional = seg->provisional,
        .damaged = rep->damaged,
        .prefix_id = seg->prefix_id,
        .base_offset = seg->base_offset,
        .next_offset = seg->next_offset,
        .max_timestamp_ms = seg->max_timestamp_ms,
        .writer = seg->writer,
        .handle = rep->handle,
        .seg = seg,
    };
    for (unsigned i = 0, known = 0; i < LEAT_BEGINS_MAX; i++)
        if (backup_begins(rep, rep->looked[i].prefix_id))
            out->begins[known++] = rep->looked[i].prefix_id;
    bool disk = seg->durability == LEAT_DURABILITY_DISK;
    out->durable = seg->state == LEAT_SEGMENT_HIBERNATED ||
                   (seg->state == LEAT_SEGMENT_CLOSED &&
                    (seg->flushed || (disk && rep->flushed >= seg->prefix_id.bytes)));
    if (seg->state == LEAT_SEGMENT_HIBERNATED) {
        out->mark = !rep->damaged && !seg->incomplete;
        out->torn = seg->integrity == LEAT_INTEGRITY_TORN;
        out->only_start = seg->next_offset == seg->base_offset;
        return;
    }
    if (!scan || seg->state == LEAT_SEGMENT_CLOSED || !seg->buffer) return;
    struct leat_scan found;
    leat_scan_segment(seg->buffer, seg->capacity, &found);
    if (!found.has_header || found.header.stream != seg->log.stream ||
        found.header.epoch != seg->epoch.v || found.header.segment != seg->id.v)
        found = (struct leat_scan){0};
    out->prefix_id = (struct leat_prefix_id){found.bytes, found.crc};
    out->previous = found.previous;
    out->base_offset = found.base_offset;
    out->next_offset = found.next_offset;
    out->max_timestamp_ms = found.max_timestamp_ms;
    out->durable = disk && rep->flushed >= found.bytes;
    out->only_start = leat_scan_only_start(&found);
    out->damaged |= found.damaged;
    out->mark =
        found.started && !found.closed && !found.damaged && !seg->incomplete && !rep->damaged;
    if (found.closed) out->state = LEAT_SEGMENT_CLOSED;
    if (found.started && out->state == LEAT_SEGMENT_RESERVED) out->state = LEAT_SEGMENT_OPEN;
}

void leat_backup_collect(struct leat_backup *backup,
                         bool (*wanted)(void *arg, struct leat_log_ref log),
                         void (*each)(void *arg, const struct leat_replica_info *info), void *arg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
        struct leat_replica_info info;
        if (!rep->seg || rep->dropping || rep->drop_wanted || rep->move_wanted) continue;
        if (!wanted(arg, rep->seg->log)) continue;
        info_of(rep, true, &info);
        each(arg, &info);
    }
}

void leat_backup_each(struct leat_backup *backup, const struct leat_log_ref *log, bool scan,
                      void (*each)(void *arg, const struct leat_replica_info *info), void *arg)
{
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
        struct leat_replica_info info;
        if (!rep->seg || (log && !leat_log_ref_equal(rep->seg->log, *log))) continue;
        info_of(rep, scan, &info);
        each(arg, &info);
    }
}

void leat_backup_status(const struct leat_backup *backup, struct leat_backup_status *out)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct leat_store_usage usage;
    leat_store_usage(backup->options.store, &usage);
    *out = (struct leat_backup_status){
        .replicas = backup->replica_count,
        .writers = backup->writer_count,
        .arena_used_bytes = usage.arenas_used,
        .unflushed_bytes = usage.arenas_used,
        .flush_bytes_per_second = usage.flush_bytes_per_second,
        .accounts = backup->accounts,
    };
    LEAT_LIST_EACH(&backup->replicas, it)
    {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
        if (!rep->seg) continue;
        if (rep->seg->state == LEAT_SEGMENT_HIBERNATED) out->replicas_hibernated++;
        if (rep->seg->state < LEAT_SEGMENT_HIBERNATED) out->replicas_open++;
        if (!rep->settled) out->replicas_unsettled++;
    }
}

const struct leat_rep_accounts *leat_backup_accounts(const struct leat_backup *backup)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    return &backup->accounts;
}
