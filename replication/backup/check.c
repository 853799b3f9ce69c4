/* SPDX-License-Identifier: Apache-2.0 */
/* What is true of the replicas and their writers between two turns, whatever came in the turn before. */
#include "replication/backup/state.h"

/* How many replicas are looked at: in slow builds all, in other builds the replicas that came last. */
#ifdef LEAT_SLOW_CHECKS
enum { REPLICAS_LOOKED_AT = BACKUP_SLOTS_MAX };
#else
enum { REPLICAS_LOOKED_AT = 16 };
#endif

/* No request is under way: until its answer the store may change the segment on its own thread. */
static bool is_at_rest(const struct replica *rep)
{
    return rep->busy == 0 && !rep->evicting;
}

/* The fenced node may still write into its arena. What lies there is not looked at: it was moved, or counts for
 * nothing. */
static bool is_exposed(const struct replica *rep)
{
    const struct backup_writer *writer = rep->writer;
    const struct leat_segment *seg = rep->seg;
    if (!writer || !writer->fenced || !writer->rmem || !seg->buffer) return false;
    if (rep->damaged || rep->drop_wanted || seg->state == LEAT_SEGMENT_CLOSED) return false;
    uintptr_t base = (uintptr_t)writer->arena.base, at = (uintptr_t)seg->buffer;
    return at >= base && at - base < writer->arena.limit_bytes;
}

static void rest_check(const struct replica *rep)
{
    const struct leat_segment *seg = rep->seg;
    LEAT_ASSERT(seg->log_pointer == rep);
    LEAT_ASSERT_CMP(seg->role, ==, LEAT_SEGMENT_REPLICA);
    /* What a file says of a replica that was found at a start is not checked: a forged file may say anything. */
    LEAT_ASSERT(!rep->writer || rep->flushed <= seg->capacity);
    LEAT_ASSERT(!is_exposed(rep));
}

static void replica_check(const struct leat_backup *backup, const struct replica *rep)
{
    uint32_t slot = (uint32_t)rep->handle - 1;
    LEAT_ASSERT(rep->backup == backup);
    LEAT_ASSERT_CMP(slot, <, backup->slot_count);
    LEAT_ASSERT(backup->slots[slot] == rep);
    LEAT_ASSERT_CMP(rep->handle >> 32, ==, backup->generations[slot]);
    LEAT_ASSERT(rep->seg != NULL || rep->busy > 0); /* it is being opened */
    LEAT_ASSERT((rep->seg != NULL) == !leat_list_empty(&rep->by_log));
    /* A replica that becomes a log's own segment is used for nothing else. */
    LEAT_ASSERT(!rep->adopting || (rep->busy > 0 && !rep->dropping && !rep->evicting));
    LEAT_ASSERT(!rep->dropping || (rep->busy > 0 && rep->drop_wanted));
    LEAT_ASSERT(!rep->leave || rep->drop_wanted);
    /* Else the fence that waits for the replica would wait for ever. */
    LEAT_ASSERT(!rep->move_wanted || (rep->busy > 0 && rep->writer && rep->writer->fenced));
    if (rep->seg != NULL && is_at_rest(rep)) rest_check(rep);
}

static void writer_check(const struct leat_backup *backup, const struct backup_writer *writer)
{
    LEAT_ASSERT(writer->backup == backup);
    LEAT_ASSERT_CMP(writer->attach_count, <=, (unsigned)BACKUP_ATTACHES_MAX);
    /* Requests to attach wait for memory only. */
    LEAT_ASSERT(writer->attach_count == 0 || (!writer->ready && !writer->fenced));
    LEAT_ASSERT(!writer->starved || !writer->ready);
    LEAT_ASSERT(writer->rmem != NULL || (writer->fenced && writer->at_store == NULL));
    LEAT_ASSERT(!writer->failed || writer->at_store == NULL);
    LEAT_ASSERT(!writer->retiring || (writer->fenced && writer->moves == 0));
    /* The arena of a fenced writer goes when no replica has to move out of it any more, and the writer goes after its
     * arena and its replicas. */
    LEAT_ASSERT(!writer->fenced || !writer->at_store || writer->moves > 0 || writer->retiring);
    LEAT_ASSERT(writer->rmem != NULL || writer->replicas > 0 || writer->growing != NULL);
}

/* What the replicas add up to. */
struct sums {
    uint32_t replicas, written, opening;
    unsigned moving, busy;
};

static void writers_check(const struct leat_backup *backup, const struct sums *sums)
{
    unsigned count = 0, moves = 0;
    uint32_t replicas = 0;
    LEAT_LIST_EACH(&backup->writers, it)
    {
        const struct backup_writer *writer = LEAT_CONTAINER(it, const struct backup_writer, link);
        writer_check(backup, writer);
        count++;
        moves += writer->moves;
        replicas += writer->replicas;
    }
    LEAT_ASSERT_CMP(count, ==, backup->writer_count);
    LEAT_ASSERT_CMP(moves, ==, backup->moves);
    LEAT_ASSERT(backup->moves > 0 || leat_list_empty(&backup->fences));
    LEAT_ASSERT_CMP(sums->written, <=, replicas);
    LEAT_ASSERT_CMP(sums->moving, <=, moves);
    LEAT_ASSERT(sums->replicas < backup->replica_count || sums->written == replicas);
}

static void sums_check(const struct leat_backup *backup, const struct sums *sums)
{
    LEAT_ASSERT_CMP(sums->replicas, ==, backup->replica_count);
    LEAT_ASSERT((sums->opening == 0) == (backup->opening_bytes == 0));
    /* Each of these keeps a replica in its place. */
    LEAT_ASSERT_CMP(backup->serves + backup->looks, <=, sums->busy);
}

void leat_backup_check(const struct leat_backup *backup)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct sums sums = {0};
    const struct leat_list *it = backup->replicas.prev;
    for (; it != &backup->replicas && sums.replicas < REPLICAS_LOOKED_AT; it = it->prev) {
        const struct replica *rep = LEAT_CONTAINER(it, const struct replica, link);
        replica_check(backup, rep);
        sums.replicas++;
        sums.written += rep->writer != NULL;
        sums.opening += rep->writer != NULL && rep->seg == NULL;
        sums.moving += rep->move_wanted;
        sums.busy += rep->busy;
    }
    if (it == &backup->replicas) sums_check(backup, &sums);
    LEAT_ASSERT_CMP(backup->slot_free_hint, <=, backup->replica_count); /* no slot below is free */
    LEAT_ASSERT_CMP(backup->serves, <=, (unsigned)BACKUP_SERVES_MAX);
    LEAT_ASSERT_CMP(backup->looks, <=, (unsigned)BACKUP_LOOKS_MAX);
    LEAT_ASSERT_CMP(backup->pulls, <=, (unsigned)LEAT_BACKUP_PULLS_MAX);
    LEAT_ASSERT_CMP(backup->fenced_count, <=, (unsigned)BACKUP_FENCED_MAX);
    writers_check(backup, &sums);
}
