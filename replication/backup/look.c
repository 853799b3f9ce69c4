/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas that are longer than their log's decided end: do they begin with the decided prefix?
 *
 * SUBTLE: bytes after a committed end belong to no log, but the bytes before the end may be on no other node.
 *  1. X has acked 0..100, with B's copy. The next write fails on X's disk, so 100..120 is not acked; B has 0..120.
 *  2. The log moves to Y, and its committed end is where it is safe (multilog/move.c): 100.
 *  3. Before Y has the bytes the power goes. X and B come back, and find 0..120, hibernated, or even closed: the last
 *     write is complete on both disks.
 *  4. If only copies of exactly 0..100 counted, the log would wait for good, though two disks have these bytes.
 * The row of such a replica has the prefix id of its whole length, and of no shorter prefix. So its bytes are read,
 * once: the results for the last two ends asked for are kept with each replica. A log has only one end, but two
 * callers may disagree for a while. */
#include <string.h>

#include "base/bug.h"
#include "replication/backup/state.h"

enum { BLOCK_BYTES = 4096 };

struct backup_look {
    struct leat_disk_io io;
    struct leat_backup *backup;
    struct replica *rep;
    struct leat_prefix_id prefix_id;
    void (*on_done)(void *arg, bool begins); /* NULL: no caller waits for the result */
    void *arg;
};

/* Its bytes do not change any more, and are longer than `prefix_id`. */
static bool is_longer(const struct replica *rep, struct leat_prefix_id prefix_id)
{
    const struct leat_segment *seg = rep->seg;
    return seg && seg->state >= LEAT_SEGMENT_HIBERNATED &&
           prefix_id.bytes >= LEAT_ENTRY_HEADER_BYTES && prefix_id.bytes < seg->prefix_id.bytes;
}

static bool is_in_file(const struct replica *rep)
{
    return !rep->seg->buffer && rep->seg->file;
}

static const struct replica_looked *looked_at(const struct replica *rep,
                                              struct leat_prefix_id prefix_id)
{
    for (unsigned i = 0; i < LEAT_BEGINS_MAX; i++)
        if (leat_prefix_id_equal(rep->looked[i].prefix_id, prefix_id)) return &rep->looked[i];
    return NULL;
}

const struct replica_looked *backup_begins(const struct replica *rep,
                                           struct leat_prefix_id prefix_id)
{
    const struct replica_looked *looked =
        is_longer(rep, prefix_id) && is_in_file(rep) ? looked_at(rep, prefix_id) : NULL;
    return looked != NULL && looked->begins ? looked : NULL;
}

/* SUBTLE: results for two ends are kept, since two callers may ask for different ends in turns.
 *  1. One caller asks for end X of a replica; a second caller, without the latest decision, asks for end Y. Both are
 *     told to ask again.
 *  2. X is looked at, then Y. If Y's result replaced X's, X is looked at again when the first caller asks again, and
 *     replaces Y's.
 *  3. So it goes on: neither caller ever finds its result. */
static void looked_put(struct replica *rep, struct replica_looked looked)
{
    memmove(&rep->looked[1], &rep->looked[0], (LEAT_BEGINS_MAX - 1) * sizeof rep->looked[0]);
    rep->looked[0] = looked;
}

static void on_read(struct leat_disk_io *io)
{
    struct backup_look *look = io->owner;
    struct replica *rep = look->rep;
    const struct leat_segment *seg = rep->seg;
    struct leat_scan scan = {0};
    const struct leat_segment_header *header = &scan.header;
    void (*on_done)(void *arg, bool begins) = look->on_done;
    void *arg = look->arg;
    if (!io->rc && io->done_bytes >= look->prefix_id.bytes)
        leat_scan_segment(io->buffer, look->prefix_id.bytes, &scan);
    struct leat_log_ref log = {header->stream, header->streamlet, header->log};
    bool begins = leat_scan_is(&scan, look->prefix_id) && leat_log_ref_equal(log, seg->log) &&
                  header->segment == seg->id.v && header->epoch == seg->epoch.v &&
                  !LEAT_BUG(LONGER_IS_NONE);
    /* Unreadable bytes count as missing: the caller must look elsewhere. */
    looked_put(rep, (struct replica_looked){.prefix_id = look->prefix_id,
                                            .begins = begins,
                                            .next_offset = scan.next_offset,
                                            .max_timestamp_ms = scan.max_timestamp_ms});
    look->backup->looks--;
    leat_mem_free(look);
    backup_idle(rep);
    if (on_done) on_done(arg, begins);
}

static leat_err look_start(struct replica *rep, struct leat_prefix_id prefix_id,
                           void (*on_done)(void *arg, bool begins), void *arg)
{
    struct leat_backup *backup = rep->backup;
    const struct leat_segment *seg = rep->seg;
    if (rep->busy || rep->evicting || rep->move_wanted || backup->looks == BACKUP_LOOKS_MAX)
        return LEAT_E_AGAIN;
    size_t bytes = LEAT_ALIGN_UP(prefix_id.bytes, (uint32_t)BLOCK_BYTES);
    struct backup_look *look =
        leat_mem_calloc(LEAT_MEM_STORE, 1, sizeof *look + bytes + BLOCK_BYTES);
    if (!look) return LEAT_E_NO_MEMORY;
    look->backup = backup;
    look->rep = rep;
    look->prefix_id = prefix_id;
    look->on_done = on_done;
    look->arg = arg;
    look->io = (struct leat_disk_io){
        .kind = LEAT_DISK_READ,
        .file = seg->file,
        .offset = seg->file_offset,
        .buffer = (void *)LEAT_ALIGN_UP((uintptr_t)(look + 1), (uintptr_t)BLOCK_BYTES),
        .bytes = bytes,
        .on_done = on_read,
        .owner = look,
    };
    backup->looks++;
    rep->busy++; /* its place must stay */
    const struct leat_disk *disk = backup->options.env->disk;
    disk->submit(disk->ctx, &look->io);
    return LEAT_OK;
}

static bool may_be_used(const struct replica *rep)
{
    return !rep->damaged && !rep->drop_wanted && !rep->dropping && !rep->adopting &&
           !rep->seg->incomplete && !leat_segment_is_damaged(rep->seg);
}

static bool is_unknown(const struct replica *rep, struct leat_prefix_id prefix_id)
{
    return is_longer(rep, prefix_id) && is_in_file(rep) && looked_at(rep, prefix_id) == NULL &&
           may_be_used(rep);
}

/* A closed replica that begins with `prefix_id`, but whose file does not have all bytes yet. A recovery hears of the
 * replica, but only row and file together can be cut (adopt.c): until the flush has ended the caller must ask again,
 * and must not take the replica for missing. */
static bool begins_in_memory(const struct replica *rep, struct leat_prefix_id prefix_id)
{
    struct leat_scan scan;
    if (!is_longer(rep, prefix_id) || !rep->seg->buffer || !may_be_used(rep)) return false;
    leat_scan_segment(rep->seg->buffer, prefix_id.bytes, &scan);
    return leat_scan_is(&scan, prefix_id);
}

leat_err backup_look(const struct leat_backup *backup, struct leat_log_ref log,
                     struct leat_segment_id segment, struct leat_prefix_id prefix_id,
                     void (*on_done)(void *arg, bool begins), void *arg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    const struct leat_list *head = backup_bucket(backup, log);
    leat_err rc = LEAT_E_NOT_FOUND;
    for (struct leat_list *it = head->next; it != head; it = it->next) {
        struct replica *rep = LEAT_CONTAINER(it, struct replica, by_log);
        if (rep->seg->id.v != segment.v || !leat_log_ref_equal(rep->seg->log, log)) continue;
        if (is_unknown(rep, prefix_id)) return look_start(rep, prefix_id, on_done, arg);
        if (begins_in_memory(rep, prefix_id)) rc = LEAT_E_AGAIN;
    }
    return rc;
}

leat_err leat_backup_look_any(struct leat_backup *backup, struct leat_log_ref log,
                              struct leat_segment_id segment, struct leat_prefix_id prefix_id)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    leat_err rc = backup_look(backup, log, segment, prefix_id, NULL, NULL);
    return rc ? rc : LEAT_E_AGAIN;
}

leat_err leat_backup_look(struct leat_backup *backup, uint64_t handle,
                          struct leat_prefix_id prefix_id, void (*on_done)(void *arg, bool begins),
                          void *arg)
{
    LEAT_ASSERT_OWNER(backup->options.owner);
    struct replica *rep = backup_find(backup, handle);
    if (!rep || !is_unknown(rep, prefix_id)) return LEAT_E_NOT_FOUND;
    return look_start(rep, prefix_id, on_done, arg);
}
