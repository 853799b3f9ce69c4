/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that come: the next segment becomes this node's own. See takeover.h. */
#include "base/assert.h"
#include "base/bug.h"
#include "base/bytes.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/replicate.h"
#include "broker/ownership/takeover.h"

void leat_pull_from_all(const struct leat_core *core, struct leat_backup_pull *pull)
{
    LEAT_ASSERT_OWNER(core);
    pull->node_count = 0;
    for (uint32_t i = 0; i < core->members.count; i++) {
        const struct leat_member *member = core->members.rows[i];
        if (member->self || member->info.state != LEAT_NODE_UP) continue;
        pull->nodes[pull->node_count++] = member->number;
    }
}

/* No node has an older segment, and no node that is down may have one. */
static void none_left(struct leat_takeover *takeover)
{
    if (takeover->state == TAKEOVER_OLDER) takeover_enter(takeover, TAKEOVER_NONE_LEFT);
    takeover_to_home(takeover);
}

/* No node gives out this segment, the newest before the offset gap: an older segment is looked for next. */
static void lost_left(struct leat_takeover *takeover)
{
    takeover->nowhere = 0;
    takeover->prefix_id = (struct leat_prefix_id){0, 0};
    if (takeover->segment == 0) {
        none_left(takeover);
        return;
    }
    takeover->segment--;
    takeover_pause(takeover, LEAT_TAKEOVER_TICK_US);
}

/* SUBTLE: it may be that no node gives out the replica that most nodes report.
 *  1. Nothing names segment 5. X has a replica that a recovery attempt cut, and B has the log's own replica.
 *  2. Y wants X's replica, and X does not give it out: one of its bits has flipped.
 *  3. If Y went on with segment 4, B would be told to drop segment 5. */
static bool next_left(struct leat_takeover *takeover)
{
    if (!takeover->nowhere || !takeover->all_asked || !leat_below_pass(&takeover->left))
        return false;
    takeover->prefix_id = leat_below_best(&takeover->left);
    takeover->failures = takeover->nowhere = 0;
    takeover_pause(takeover, LEAT_TAKEOVER_TICK_US);
    return true;
}

static void missing(struct leat_takeover *takeover, leat_err rc)
{
    takeover->failures++;
    /* A node with a damaged replica counts as a node without a replica. */
    bool nowhere = rc == LEAT_E_NOT_FOUND || rc == LEAT_E_DAMAGED;
    takeover->nowhere = nowhere ? takeover->nowhere + 1 : 0;
    if (takeover->state == TAKEOVER_TAIL) {
        const struct leat_core *core = takeover_core(takeover);
        uint64_t now_us = leat_core_now(takeover_core(takeover));
        if (takeover->nowhere == 1) takeover->missing_us = now_us;
        bool all_asked = takeover->all_asked || LEAT_BUG(LEFT_UNAWAITED);
        if (takeover->tail.jumped && takeover->nowhere && all_asked &&
            now_us >= takeover->missing_us + LEAT_TAKEOVER_MISSING_US) {
            if (!next_left(takeover)) lost_left(takeover);
            return;
        }
        uint64_t patience_us =
            leat_all_nodes_up(core) ? LEAT_TAKEOVER_NOWHERE_US : LEAT_TAKEOVER_AWAY_US;
        if (takeover->nowhere && now_us >= takeover->missing_us + patience_us) {
            takeover_enter(takeover, TAKEOVER_ABSENT);
            takeover_to_home(takeover);
        } else {
            takeover_pause(takeover, takeover->failures < 10 ? LEAT_TAKEOVER_TICK_US
                                                             : 10 * LEAT_TAKEOVER_TICK_US);
        }
        return;
    }
    /* The log's last owner may not have given the segment to its backup yet. Reads wait meanwhile. */
    uint64_t now_us = leat_core_now(takeover_core(takeover));
    if (takeover->failures == 1) takeover->missing_us = now_us;
    if (now_us < takeover->missing_us + LEAT_TAKEOVER_MISSING_US &&
        !(takeover->repeated && rc == LEAT_E_NOT_FOUND)) {
        takeover_pause(takeover, LEAT_TAKEOVER_TICK_US);
        return;
    }
    if (next_left(takeover)) return;
    /* leat_takeover_older() begins the next search. */
    bool all_up = leat_all_nodes_up(takeover_core(takeover));
    takeover_enter(takeover, all_up ? TAKEOVER_MISSING : TAKEOVER_NODE_DOWN);
    takeover->busy = false;
    takeover_kick(takeover_core(takeover));
}

static void on_pulled(struct leat_backup_pull *pull, leat_err rc)
{
    struct leat_takeover *takeover = pull->owner;
    takeover->busy = false;
    if (rc == LEAT_OK)
        takeover_kick(takeover_core(takeover));
    else if (leat_err_class(rc) == LEAT_CLASS_RETRY)
        takeover_pause(takeover, 5 * LEAT_TAKEOVER_TICK_US);
    else
        missing(takeover, rc);
}

static void pull_start(struct leat_core *core, struct leat_takeover *takeover)
{
    takeover->pull = (struct leat_backup_pull){.log = takeover->ref,
                                               .segment = {takeover->segment},
                                               .prefix_id = takeover->prefix_id,
                                               .next_offset = takeover->next_offset,
                                               .whole = takeover->left.count > 0,
                                               .on_done = on_pulled,
                                               .owner = takeover};
    leat_pull_from_all(core, &takeover->pull);
    takeover->all_asked = leat_all_nodes_up(core);
    leat_err rc = leat_backup_pull(core->data->replicate->backup, &takeover->pull);
    if (rc == LEAT_E_AGAIN)
        takeover_pause(takeover, LEAT_TAKEOVER_TICK_US);
    else if (rc != LEAT_OK)
        missing(takeover, rc);
}

static void on_adopted(void *arg, leat_err rc, struct leat_segment *seg)
{
    struct leat_takeover *takeover = arg;
    if (rc != LEAT_OK) {
        missing(takeover, rc);
        return;
    }
    takeover->seg = seg;
    takeover_start_read(takeover);
}

/* ---- before an offset gap nothing names the segment ---- */

/* SUBTLE: a node that is down may have a newer segment, unless the newest possible segment was found.
 *  1. Segments 0 to 5 are left before an offset gap; X and B have segment 5, and segment 4 is also on Y.
 *  2. X and B die, and Y gets the log. No node that is up has a segment newer than 4.
 *  3. If Y went on with segment 4, X and B would be told to drop segment 5 when they are back.
 * The same, if X was down only when it was to be asked, and has started again before the last node has answered. */
static void on_below(struct leat_below *below, leat_err rc)
{
    struct leat_takeover *takeover = below->owner;
    bool found = below->found.count > 0;
    takeover->busy = false;
    takeover->all_asked =
        takeover->all_asked && !below->missed && leat_all_nodes_up(takeover_core(takeover));
    if (rc != LEAT_OK && rc != LEAT_E_UNKNOWN_STREAM) {
        takeover_pause(takeover, 5 * LEAT_TAKEOVER_TICK_US);
    } else if (found && (takeover->all_asked || below->found.segment == below->segment)) {
        takeover->left = below->found;
        takeover->prefix_id = leat_below_best(&takeover->left);
        takeover->segment = takeover->left.segment;
        takeover->next_offset = 0;
        takeover_kick(takeover_core(takeover));
    } else if (!found && takeover->all_asked) {
        none_left(takeover);
    } else {
        missing(takeover, LEAT_E_NOT_FOUND);
    }
}

static void below_start(struct leat_core *core, struct leat_takeover *takeover)
{
    takeover->left.count = 0;
    takeover->below = (struct leat_below){.core = core,
                                          .ref = takeover->ref,
                                          .segment = takeover->segment,
                                          .on_done = on_below,
                                          .owner = takeover};
    takeover->all_asked = leat_all_nodes_up(core);
    takeover->busy = true;
    leat_below_start(&takeover->below);
}

/* SUBTLE: before an offset gap no record names where the log ended. A longer replica here is not cut to the length
 * that other nodes have: it is a candidate of its own.
 *  1. Before the gap two nodes have segment 5 as an attempt of recovery cut it. This node has the log's own segment
 *     5, which is longer.
 *  2. The two cut replicas are tried first, and are damaged on both disks.
 *  3. If this node had cut its replica to their length, the log's own bytes would be gone. The replica is the next
 *     candidate instead (next_left()). */
void takeover_get(struct leat_core *core, struct leat_takeover *takeover)
{
    LEAT_ASSERT_OWNER(core);
    if (takeover->tail.segment == UINT64_MAX) {
        takeover_to_home(takeover); /* the log has no segments */
        return;
    }
    if (takeover->prefix_id.bytes == 0) {
        below_start(core, takeover);
        return;
    }
    takeover->busy = true;
    leat_err rc =
        leat_backup_adopt(core->data->replicate->backup, takeover->ref, takeover->epoch,
                          (struct leat_segment_id){takeover->segment}, takeover->prefix_id,
                          takeover->next_offset, INT64_MIN, takeover->home, on_adopted, takeover);
    if (rc == LEAT_E_NOT_FOUND && takeover->left.count == 0)
        rc = leat_backup_look_any(core->data->replicate->backup, takeover->ref,
                                  (struct leat_segment_id){takeover->segment}, takeover->prefix_id);
    if (rc == LEAT_E_NOT_FOUND)
        pull_start(core, takeover);
    else if (rc != LEAT_OK)
        takeover_pause(takeover, LEAT_TAKEOVER_TICK_US);
}

/* ---- the segment's start entry, which names the segment before it ---- */

/* One block of the start entry is read, as a rule. With many producers the entry is longer, and only its checksum
 * makes it valid: then the whole entry is read. */
static bool start_reserve(struct leat_takeover *takeover, uint32_t bytes)
{
    return leat_disk_read_reserve(&takeover->read, LEAT_MEM_BROKER, bytes);
}

static void start_submit(struct leat_takeover *takeover, const struct leat_disk *disk,
                         const struct leat_segment *seg, void (*on_done)(struct leat_disk_io *io))
{
    takeover->segment_bytes = seg->prefix_id.bytes;
    leat_disk_read_start(&takeover->read, disk, seg->file, seg->file_offset, takeover->read.room,
                         on_done, takeover);
}

/* Where the start entry ends, if it is longer than the bytes that were read; 0: the whole entry was read. */
static uint32_t start_longer(const struct leat_takeover *takeover)
{
    const struct leat_disk_read *read = &takeover->read;
    uint32_t end =
        leat_log_start_end(read->bytes, leat_disk_read_count(read), takeover->segment_bytes);
    return end > read->room ? end : 0;
}

/* SUBTLE: a replica with a damaged start entry counts for nothing here, and another replica is fetched.
 *  1. One bit of the start entry of segment 5 flips on the new owner's disk: the catalogue still has the right prefix
 *     id of the segment, but its start entry names no predecessor.
 *  2. Segment 5 is taken for the first segment of the log, so all segments seem to have come.
 *  3. A node with segments 0 to 4 asks whether they are needed, is told "no", and drops them. So does every other
 *     node. */
static void start_damaged(struct leat_takeover *takeover)
{
    struct leat_segment *seg = takeover->seg;
    struct leat_backup *backup = takeover_core(takeover)->data->replicate->backup;
    leat_err rc = leat_backup_take_own(backup, seg, takeover->node->incarnation, true);
    if (rc == LEAT_OK) { /* else no memory: takeovers_step() comes here again */
        takeover->seg = NULL;
        leat_node_log_warn(
            "log %u/%u/%u: the start of segment %llu can't be read here: it is looked for "
            "on other nodes",
            takeover->ref.stream, takeover->ref.streamlet, takeover->ref.log,
            (unsigned long long)takeover->segment);
    }
    takeover_pause(takeover, LEAT_TAKEOVER_TICK_US);
}

static void start_known(struct leat_takeover *takeover, const uint8_t *bytes, uint32_t count)
{
    if (!leat_log_start_find(bytes, count, &takeover->start)) {
        if (!LEAT_BUG(UNREADABLE_IS_FIRST)) {
            start_damaged(takeover);
            return;
        }
        takeover->start = (struct leat_start){.first_segment = takeover->segment};
        takeover->first_retained = takeover->segment;
    }
    if (takeover->state == TAKEOVER_TAIL) takeover->first_retained = takeover->start.first_segment;
    takeover_to_home(takeover);
}

static void on_start_read(struct leat_disk_io *io)
{
    struct leat_takeover *takeover = io->owner;
    uint32_t longer = start_longer(takeover);
    if (longer == 0)
        start_known(takeover, takeover->read.bytes, leat_disk_read_count(&takeover->read));
    else if (start_reserve(takeover, longer))
        start_submit(takeover, takeover_core(takeover)->env->disk, takeover->seg, on_start_read);
    else
        takeover_pause(takeover,
                       LEAT_TAKEOVER_TICK_US); /* no memory: takeovers_step() reads it anew */
}

void takeover_start_read(struct leat_takeover *takeover)
{
    LEAT_ASSERT_OWNER(takeover_core(takeover));
    const struct leat_segment *seg = takeover->seg;
    if (seg->buffer != NULL) {
        start_known(takeover, seg->buffer, seg->prefix_id.bytes);
        return;
    }
    if (!start_reserve(takeover, 1)) {
        takeover_pause(takeover, LEAT_TAKEOVER_TICK_US);
        return;
    }
    takeover->busy = true;
    start_submit(takeover, takeover_core(takeover)->env->disk, seg, on_start_read);
}

/* ---- a log that serves: segments that it lacks are looked for again ----
 *
 * A hole is a run of missing segments, between two segments of the log or before its first. A pass searches all holes,
 * one after the other. */

/* SUBTLE: if the segment after a hole names no predecessor, no node is asked for the missing segments.
 *  1. X has segments 0 to 3. Segment 4 was lost, and an operator gave it up; X goes on with segment 5, after an
 *     offset gap.
 *  2. B, which was thought to be lost, comes back with segment 4, and is told to drop it.
 *  3. X starts anew. If X asked for the segments before segment 5, the records that were given up would be there
 *     again. */
static bool hole_is_jump(const struct leat_takeover *takeover, struct leat_partition *partition)
{
    if (takeover->hole_end == 0 || takeover->start.previous.bytes != 0) return false;
    leat_log_hole_jumped(partition->log, takeover->hole_end);
    return true;
}

static void older_free(struct leat_takeover *takeover, struct leat_partition *partition)
{
    if (partition != NULL)
        leat_partition_watch(partition); /* otherwise the tick skips an idle log */
    leat_disk_read_free(&takeover->read);
    leat_mem_free(takeover);
}

static void older_later(struct leat_takeover *takeover, struct leat_partition *partition)
{
    if (partition != NULL) leat_backfill_soon(partition);
    older_free(takeover, partition);
}

/* SUBTLE: a segment's predecessor is not missing while the segment's start entry can't be read here and other nodes
 * may have the segment.
 *  1. X starts with segments 0 to 3 and 5. A bit of the start entry of segment 5 has flipped, so nothing names
 *     segment 4.
 *  2. No node was asked for segment 4. Another node is asked for the bytes of segment 5, and has them.
 *  3. If segment 4 was called missing meanwhile, an operator could give up segment 4, though the other node has it.
 * Nor are segments of other holes missing before nodes were asked for them: only the end of a pass calls segments
 * missing. */
static void hole_is_passed(struct leat_partition *partition, const struct leat_segment *after,
                           bool between)
{
    if (between) partition->hole_below = after->id.v;
    if (between && leat_takeover_goes_on(partition))
        leat_backfill_soon(partition);
    else
        (void)leat_takeover_pass_over(partition, false);
}

/* The start entry of the segment after the hole can't be read. The hole waits until that segment is repaired, or is
 * known to be lost. */
static void older_unnamed(struct leat_takeover *takeover, struct leat_partition *partition,
                          const struct leat_segment *after)
{
    if (after->buffer != NULL || leat_log_on_damaged(partition->log, after, false)) {
        hole_is_passed(partition, after, takeover->hole_end != 0);
        older_free(takeover, partition);
    } else {
        older_later(takeover, partition);
    }
}

/* On the log's core: the start entry of the segment after the hole names the wanted segment. Then the takeover goes to
 * core 0. */
static void older_begin(struct leat_takeover *takeover, struct leat_partition *partition,
                        const struct leat_segment *after, const uint8_t *bytes, uint32_t count)
{
    bool found = leat_log_start_find(bytes, count, &takeover->start);
    if (!found || takeover->start.base_offset != takeover->next_offset) {
        older_unnamed(takeover, partition, after);
        return;
    }
    if (hole_is_jump(takeover, partition)) {
        older_later(takeover, partition);
        return;
    }
    takeover->prefix_id = takeover->start.previous;
    takeover_send(takeover);
}

static void on_older_read(struct leat_disk_io *io)
{
    struct leat_takeover *takeover = io->owner;
    const struct leat_core *core = &takeover->node->cores[takeover->home];
    struct leat_partition *partition = leat_partition_find(core, takeover->ref);
    const struct leat_segment *after =
        partition != NULL ? leat_log_held(partition->log, takeover->segment + 1) : NULL;
    /* The log may have gone to another node meanwhile, or the segment have been trimmed: these bytes say nothing. */
    bool same = after != NULL && after->file == io->file && after->file_offset == io->offset;
    uint32_t longer = start_longer(takeover);
    if (same && longer == 0)
        older_begin(takeover, partition, after, takeover->read.bytes,
                    leat_disk_read_count(&takeover->read));
    else if (same && start_reserve(takeover, longer))
        start_submit(takeover, core->env->disk, after, on_older_read);
    else
        older_later(takeover, partition); /* or there is no memory */
}

/* ---- which hole: between two segments, the newest first; then before the first segment ---- */

static bool next_hole(const struct leat_partition *partition, struct leat_log_hole *out_hole,
                      bool *out_between)
{
    const struct leat_segment *first = leat_log_first_held(partition->log);
    uint64_t retained = leat_log_first_retained(partition->log);
    *out_between =
        partition->holes && leat_log_hole_find(partition->log, partition->hole_below, out_hole);
    if (*out_between) return true;
    if (first == NULL || first->id.v <= retained) return false;
    *out_hole = (struct leat_log_hole){first, retained};
    return true;
}

bool leat_takeover_goes_on(const struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_log_hole hole;
    bool between;
    return next_hole(partition, &hole, &between);
}

bool leat_takeover_pass_over(struct leat_partition *partition, bool front)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_log_hole hole;
    bool holes = partition->holes && leat_log_hole_find(partition->log, UINT64_MAX, &hole);
    bool whole = front && !holes;
    leat_backfill_enter(partition, whole ? LEAT_BACKFILL_NONE : LEAT_BACKFILL_DUE);
    partition->backfill_node_down = !whole && partition->backfill_pass_node_down;
    partition->backfill_pass_node_down = false;
    partition->hole_below = UINT64_MAX;
    leat_log_older_done(partition->log, partition->backfill_node_down);
    if (!whole) return false;
    partition->holes = false;
    leat_log_holes_end(partition->log);
    if (partition->copies != NULL) leat_primary_log_whole(partition->copies);
    return true;
}

void leat_takeover_older(struct leat_partition *partition)
{
    LEAT_ASSERT_OWNER(partition->core);
    struct leat_core *core = partition->core;
    const struct leat_segment *first = leat_log_first_held(partition->log);
    struct leat_log_hole hole;
    bool between;
    if (first != NULL && first->id.v > 0 && !leat_log_front_known(partition->log)) {
        partition->backfill_ticks--; /* read from the disk first: the next tick comes here again */
        return;
    }
    if (!next_hole(partition, &hole, &between)) {
        (void)leat_takeover_pass_over(partition, true);
        return;
    }
    if (hole.behind->integrity == LEAT_INTEGRITY_MISSING &&
        hole.behind->buffer == NULL) { /* its repair comes first: its start entry is not here */
        if (leat_log_on_damaged(partition->log, hole.behind, false))
            hole_is_passed(partition, hole.behind, between);
        return;
    }
    struct leat_takeover *takeover = takeover_create(core, partition->ref, partition->epoch);
    if (takeover == NULL || !start_reserve(takeover, 1)) {
        leat_mem_free(takeover);
        return; /* no memory: the next tick tries again */
    }
    leat_backfill_enter(partition, LEAT_BACKFILL_UNDER_WAY);
    takeover->repeated = true;
    takeover->state = TAKEOVER_OLDER;
    takeover->first_retained = hole.first;
    takeover->hole_end = between ? hole.behind->id.v : 0;
    takeover->segment = hole.behind->id.v - 1;
    takeover->next_offset = hole.behind->base_offset;
    if (hole.behind->buffer != NULL) {
        older_begin(takeover, partition, hole.behind, hole.behind->buffer,
                    hole.behind->prefix_id.bytes);
        return;
    }
    start_submit(takeover, core->env->disk, hole.behind, on_older_read);
}
