/* SPDX-License-Identifier: Apache-2.0 */
#include "replication/backup/probe.h"

#include "replication/backup/state.h"

static struct leat_writer_seen writer_see(const struct backup_writer *writer)
{
    return (struct leat_writer_seen){
        .at = writer,
        .node = writer->node,
        .incarnation = writer->incarnation,
        .arena = writer->rmem,
        .at_store = writer->at_store,
        .fenced = writer->fenced,
        .moves = writer->moves,
    };
}

static bool see(const struct replica *rep, struct leat_replica_seen *out_seen)
{
    if (!rep) return false;
    *out_seen = (struct leat_replica_seen){
        .at = rep,
        .seg = rep->seg,
        .handle = rep->handle,
        .written = rep->seg && backup_is_written(rep),
        .busy = rep->busy > 0,
        .adopting = rep->adopting,
        .move_wanted = rep->move_wanted,
        .damaged = rep->damaged,
        .dropping = rep->dropping,
        .drop_wanted = rep->drop_wanted,
        .leave = rep->leave,
        .owner_epoch = rep->owner_epoch,
    };
    if (rep->writer) out_seen->writer = writer_see(rep->writer);
    return true;
}

bool leat_backup_see(const struct leat_backup *backup, uint64_t handle,
                     struct leat_replica_seen *out_seen)
{
    return see(backup_find(backup, handle), out_seen);
}

bool leat_backup_see_segment(const struct leat_segment *seg, struct leat_replica_seen *out_seen)
{
    return seg->role == LEAT_SEGMENT_REPLICA && see(seg->log_pointer, out_seen);
}

bool leat_backup_see_next(const struct leat_backup *backup, struct leat_replica_seen *seen)
{
    if (!backup) return false;
    const struct replica *before = seen->at;
    const struct leat_list *next = before ? before->link.next : backup->replicas.next;
    return next != &backup->replicas && see(LEAT_CONTAINER(next, const struct replica, link), seen);
}

bool leat_backup_see_of(const struct leat_backup *backup, struct leat_log_ref log,
                        struct leat_replica_seen *seen)
{
    const struct replica *before = seen->at;
    const struct leat_list *head = backup_bucket(backup, log);
    const struct leat_list *next = before ? before->by_log.next : head->next;
    for (; next != head; next = next->next) {
        const struct replica *rep = LEAT_CONTAINER(next, const struct replica, by_log);
        if (rep->seg && leat_log_ref_equal(rep->seg->log, log)) return see(rep, seen);
    }
    return false;
}

bool leat_backup_see_writer(const struct leat_backup *backup, struct leat_writer_seen *seen)
{
    const struct backup_writer *before = seen->at;
    const struct leat_list *next = before ? before->link.next : backup->writers.next;
    if (next == &backup->writers) return false;
    *seen = writer_see(LEAT_CONTAINER(next, const struct backup_writer, link));
    return true;
}

unsigned leat_backup_serving(const struct leat_backup *backup)
{
    return backup->serves;
}

unsigned leat_backup_moving(const struct leat_backup *backup)
{
    return backup->moves;
}
