/* SPDX-License-Identifier: Apache-2.0 */
/* The segments that the store found at a start: as rows for the coordinator, and each segment's disposition by the
 * coordinator's decision. */
#include <string.h>

#include "base/bug.h"
#include "base/log_rows.h"
#include "base/mem.h"
#include "base/node_log.h"
#include "broker/data/lookup.h"
#include "broker/data/stream.h"
#include "broker/net/core.h"
#include "broker/node/bringup.h"
#include "coordinator/metadata/tail.h"

/* ---- marks ---- */

static bool same_log(const struct leat_found *a, const struct leat_found *b)
{
    return leat_log_ref_equal(a->seg->log, b->seg->log);
}

/* SUBTLE: a second row of the same segment of the same log.
 *  1. The power goes before segment 4 is flushed. Segment 4 is the first missing segment here, so it is fetched as an
 *     older segment, into a row of its own.
 *  2. The next start finds both rows. A log has each of its segments once.
 * A second row also comes about where the first row was damaged, the segment was fetched again, and the first row is
 * readable again. */
static const struct leat_found *duplicate_of(const struct leat_node *node,
                                             const struct leat_found *found)
{
    const struct leat_found *end = node->found + node->found_count;
    for (int side = -1; side <= 1; side += 2) {
        const struct leat_found *other = found + side;
        bool there = other >= node->found && other < end && same_log(other, found);
        if (there && other->seg->id.v == found->seg->id.v) return other;
    }
    return NULL;
}

/* A whole copy of the segment came from another node, for the log: `found` does not say where the log ends. */
static bool is_replaced(const struct leat_node *node, const struct leat_found *found)
{
    const struct leat_found *duplicate = duplicate_of(node, found);
    return duplicate != NULL && duplicate->kind == LEAT_FOUND_CLOSED &&
           duplicate->seg->role != LEAT_SEGMENT_REPLICA;
}

static struct leat_tail_row row_of(const struct leat_found *found)
{
    const enum leat_tail_state states[] = {[LEAT_FOUND_CLOSED] = LEAT_TAIL_CLOSED,
                                           [LEAT_FOUND_MARK] = LEAT_TAIL_OPEN,
                                           [LEAT_FOUND_LOST] = LEAT_TAIL_MISSING};
    return (struct leat_tail_row){.segment = found->seg->id.v,
                                  .state = states[found->kind],
                                  .epoch = found->seg->epoch,
                                  .generation = found->seg->version,
                                  .base_offset = found->scan.base_offset,
                                  .next_offset = found->scan.next_offset,
                                  .flags = found->seg->provisional ? LEAT_TAIL_PROVISIONAL : 0};
}

static bool went_on(const struct leat_found *found, size_t count, size_t at)
{
    const struct leat_tail_row row = row_of(&found[at]);
    for (size_t i = at + 1; i < count; i++) {
        const struct leat_tail_row later = row_of(&found[i]);
        if (leat_tail_went_on(&row, &later)) return true;
    }
    return false;
}

/* The open replica that is reported to the coordinator: the lowest open replica after which the log did not go on.
 * The log need not end there. leat_tail_decide() says where the log ends, and needs the log's record: only open
 * replicas of its stamp count. A start has no record yet, so it asks the rule without a record (leat_tail_went_on()),
 * and leat_decide_tail() asks the rest of the rule for the replica that is found here. If an earlier epoch left an
 * open replica of a lower segment, this replica is reported, which is not of the stamp: the log waits, and recovery
 * decides by all replicas. */
static const struct leat_found *mark_of_log(const struct leat_node *node,
                                            const struct leat_found *found, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (found[i].kind == LEAT_FOUND_MARK && !is_replaced(node, &found[i]) &&
            !went_on(found, count, i))
            return &found[i];
    return NULL;
}

static void marks_of_log(const struct leat_node *node, const struct leat_found *found, size_t count,
                         struct leat_log_marks *marks)
{
    const struct leat_found *mark = mark_of_log(node, found, count);
    memset(marks, 0, sizeof *marks);
    marks->log = found[0].seg->log;
    marks->highest_segment = found[count - 1].seg->id.v;
    for (size_t i = 0; i < count; i++) {
        const struct leat_segment *seg = found[i].seg;
        switch (found[i].kind) {
        case LEAT_FOUND_CLOSED:
            marks->has_closed = true;
            marks->closed_segment = seg->id.v;
            marks->closed_prefix_id = seg->prefix_id;
            marks->closed_next_offset = seg->next_offset;
            break;
        case LEAT_FOUND_MARK:
            break;
        case LEAT_FOUND_LOST:
            marks->lost = true;
            if (marks->why[0] == '\0') memcpy(marks->why, found[i].why, sizeof marks->why);
            break;
        }
    }
    if (mark == NULL) return;
    marks->has_mark = true;
    marks->mark_segment = mark->seg->id.v;
    marks->mark_epoch = mark->seg->epoch;
    marks->mark_version = mark->seg->version;
    marks->mark_prefix_id = (struct leat_prefix_id){mark->scan.bytes, mark->scan.crc};
    marks->mark_next_offset = mark->scan.next_offset;
    marks->mark_only_start = leat_scan_only_start(&mark->scan);
    const struct leat_prefix_id *named = &mark->scan.previous;
    marks->predecessor_matches = named->bytes == 0;
    for (size_t i = 0; i < count && named->bytes != 0; i++)
        if (found[i].kind == LEAT_FOUND_CLOSED && found[i].seg->id.v + 1 == mark->seg->id.v &&
            leat_prefix_id_equal(found[i].seg->prefix_id, *named))
            marks->predecessor_matches = true;
}

leat_err leat_found_marks(struct leat_node *node, struct leat_error *error)
{
    node->found = leat_store_found(node->store, &node->found_count);
    size_t logs = 0;
    for (size_t i = 0; i < node->found_count; i++)
        if (i == 0 || !same_log(&node->found[i - 1], &node->found[i])) logs++;
    node->marks = leat_mem_calloc(LEAT_MEM_BROKER, logs + 1, sizeof *node->marks);
    if (node->marks == NULL)
        return leat_error_set(error, LEAT_E_NO_MEMORY, "no memory for the marks of %zu logs", logs);
    for (size_t i = 0; i < node->found_count;) {
        size_t end = i + 1;
        while (end < node->found_count && same_log(&node->found[i], &node->found[end]))
            end++;
        marks_of_log(node, &node->found[i], end - i, &node->marks[node->mark_count++]);
        i = end;
    }
    return LEAT_OK;
}

/* ---- what becomes of each segment ---- */

static const struct leat_log_decision *decision_find(const struct leat_node *node,
                                                     struct leat_log_ref ref)
{
    size_t at = LEAT_LOG_ROWS_FROM(node->decisions, node->decision_count, log, ref);
    if (at == node->decision_count || !leat_log_ref_equal(node->decisions[at].log, ref))
        return NULL;
    return &node->decisions[at];
}

static void sort_decisions(struct leat_node *node)
{
    /* Handed over per stream and in order as a rule; insertion sort then only looks. */
    for (size_t i = 1; i < node->decision_count; i++) {
        struct leat_log_decision moved = node->decisions[i];
        size_t at = i;
        for (; at > 0 && leat_log_ref_order(node->decisions[at - 1].log, moved.log) > 0; at--)
            node->decisions[at] = node->decisions[at - 1];
        if (at != i) node->decisions[at] = moved;
    }
}

/* This copy alone says where its log ends. Bytes after this end are no whole write: the write was torn, and never
 * acked; or it was acked, and was damaged later. */
static void passed_over_note(struct leat_node *node, const struct leat_found *found,
                             const struct leat_found_disposition *disposition)
{
    struct leat_segment *seg = found->seg;
    const struct leat_clock *clock = node->cores[0].env->clock;
    if (found->kind != LEAT_FOUND_MARK || found->behind_bytes == 0 || disposition->desc == NULL)
        return;
    seg->passed_bytes = found->behind_bytes; /* in its row, with the cut */
    leat_node_log_summed(
        &node->passed_sum, clock->now_us(clock->ctx), LEAT_NODE_LOG_WARN,
        "stream \"%s\", streamlet %u, log %u ends at offset %llu, %u bytes into segment %llu: at "
        "least %u bytes behind that are no whole write, and are passed over. They were being "
        "written when "
        "the power went, and acknowledged to nobody; or they were acknowledged, and the disk has "
        "damaged "
        "them: one copy can't tell (docs/operations.md)",
        disposition->desc->name, seg->log.streamlet, seg->log.log,
        (unsigned long long)found->scan.next_offset, found->scan.bytes,
        (unsigned long long)seg->id.v, found->behind_bytes);
}

static bool is_last(const struct leat_node *node, const struct leat_found *found)
{
    return found + 1 == node->found + node->found_count || !same_log(found, found + 1);
}

/* The segment belongs to another owner, or to an owner that is not known yet: the owner says what becomes of it. */
static leat_err cut_for_another(struct leat_node *node, const struct leat_found *found,
                                enum leat_disposition *out_disposition)
{
    *out_disposition = LEAT_DISPOSITION_REPLICA;
    leat_store_role_set(node->store, found->seg, LEAT_SEGMENT_REPLICA, found->seg->writer);
    leat_store_found_hibernate(node->store, found);
    return LEAT_OK;
}

/* Segments of a log that no stream has: dropped only where the coordinator is known to have
 * deleted the stream, i.e. where it has given out higher ids since. */
static leat_err cut_orphan(struct leat_node *node, const struct leat_found *found, bool known,
                           enum leat_disposition *out_disposition)
{
    uint32_t highest = atomic_load_explicit(&node->highest_stream, memory_order_relaxed);
    *out_disposition = LEAT_DISPOSITION_KEPT;
    if (known) return cut_for_another(node, found, out_disposition); /* went elsewhere meanwhile */
    if (found->seg->log.stream <= highest) {
        *out_disposition = LEAT_DISPOSITION_GONE;
        return leat_store_forget(node->store, found->seg);
    }
    if (found == node->found || !same_log(found - 1, found))
        leat_node_complain(node,
                           "segments of stream %u are here, which the coordinator does not know: "
                           "kept, not served",
                           found->seg->log.stream);
    return LEAT_OK;
}

/* A log that waits: nothing is touched on disk. What is valid of a segment that lost its end can
 * be read all the same: for this run it counts as closed where it is valid. */
static leat_err cut_nothing(const struct leat_found *found, enum leat_disposition *out_disposition)
{
    struct leat_segment *seg = found->seg;
    bool readable = found->kind == LEAT_FOUND_CLOSED;
    if (!readable && found->scan.started && found->scan.next_offset > found->scan.base_offset &&
        seg->prefix_id.bytes == found->scan.bytes && (seg->buffer != NULL || seg->file != NULL)) {
        seg->state = LEAT_SEGMENT_CLOSED;
        readable = true;
    }
    *out_disposition = readable ? LEAT_DISPOSITION_SERVED : LEAT_DISPOSITION_KEPT;
    return LEAT_OK;
}

static bool is_the_same(const struct leat_found *a, const struct leat_found *b)
{
    return a->kind == b->kind && leat_prefix_id_equal(a->seg->prefix_id, b->seg->prefix_id);
}

/* SUBTLE: a part of an older segment is not served if other nodes may have the whole segment.
 *  1. The row of segment 4 says that it was being written, and its file is damaged in the middle; 5 to 7 are closed.
 *  2. If the first part is served, segment 4 counts as closed at that end: readers continue with 5 without an error.
 *  3. Other nodes get copies of that part as the log's data, and their complete replicas do not count.
 * So segment 4 is missing, and is fetched from other nodes like a segment whose row is damaged. The rule does not hold
 * before an offset gap: no start entry names the segment there, and an operator has accepted what is left of it. */
static bool is_on_others(const struct leat_node *node, const struct leat_found *found,
                         const struct leat_found_disposition *disposition,
                         const struct leat_tail_record *tail)
{
    if (!disposition->copied || found->seg->id.v >= tail->segment) return false;
    const struct leat_found *end = node->found + node->found_count, *next = found + 1;
    while (next < end && same_log(next, found) && next->seg->id.v == found->seg->id.v)
        next++;
    bool there = next < end && same_log(next, found);
    uint64_t behind = there ? next->seg->base_offset : tail->next_offset;
    return behind >> LEAT_GAP_BITS == found->scan.next_offset >> LEAT_GAP_BITS;
}

/* Of two rows of one segment: the whole one. */
static bool is_better(const struct leat_found *duplicate, const struct leat_found *found)
{
    bool damaged = leat_segment_is_damaged(found->seg);
    return leat_segment_is_damaged(duplicate->seg) != damaged ? damaged : duplicate < found;
}

/* Of two rows of one segment: the row that a waiting log does not take. */
static bool is_second(const struct leat_node *node, const struct leat_found *found)
{
    const struct leat_found *duplicate = duplicate_of(node, found);
    if (duplicate == NULL) return false;
    bool closed = found->kind == LEAT_FOUND_CLOSED, other = duplicate->kind == LEAT_FOUND_CLOSED;
    return closed != other ? other : is_better(duplicate, found);
}

static leat_err cut_one(struct leat_node *node, const struct leat_found *found,
                        struct leat_found_disposition *disposition)
{
    struct leat_segment *seg = found->seg;
    const struct leat_log_decision *decision = decision_find(node, seg->log);
    if (decision == NULL)
        return cut_orphan(node, found, disposition->known, &disposition->disposition);
    /* SUBTLE: what is left to recovery is not served here for reading meanwhile. (1) For that an open
     * segment counts as closed; (2) its streamlet gets an owner, so it is handed on as a replica, and
     * a closed one is no mark; (3) where it was the last mark of the newest version its log waits
     * for ever, with all its bytes here. */
    if (decision->kind == LEAT_DECIDED_WAIT &&
        ((decision->left && !LEAT_BUG(LEFT_IS_SERVED)) || disposition->tail_waits)) {
        /* Recovery has nothing else to go by. */
        if (disposition->known && !disposition->copied && is_last(node, found))
            passed_over_note(node, found, disposition);
        return cut_for_another(node, found, &disposition->disposition);
    }
    if (decision->kind == LEAT_DECIDED_WAIT && is_second(node, found)) {
        disposition->disposition = LEAT_DISPOSITION_KEPT; /* a log has each of its segments once */
        return LEAT_OK;
    }
    if (decision->kind == LEAT_DECIDED_WAIT) return cut_nothing(found, &disposition->disposition);
    const struct leat_tail_record *tail = &decision->tail;
    bool none = tail->segment == UINT64_MAX;
    disposition->disposition = LEAT_DISPOSITION_GONE;
    if (none || seg->id.v > tail->segment) return leat_store_forget(node->store, seg);
    disposition->disposition = LEAT_DISPOSITION_SERVED;
    const struct leat_found *duplicate = duplicate_of(node, found);
    if (found->kind == LEAT_FOUND_CLOSED) {
        if (duplicate != NULL && is_better(duplicate, found) && is_the_same(duplicate, found)) {
            disposition->disposition = LEAT_DISPOSITION_GONE;
            return leat_store_forget(node->store, seg);
        }
        return LEAT_OK;
    }
    if (found->kind != LEAT_FOUND_LOST && seg->id.v == tail->segment) duplicate = NULL;
    disposition->duplicate = duplicate != NULL;
    if (duplicate != NULL && duplicate->kind == LEAT_FOUND_CLOSED) {
        disposition->disposition = LEAT_DISPOSITION_GONE;
        return leat_store_forget(node->store, seg);
    }
    if (found->kind == LEAT_FOUND_MARK && seg->id.v == tail->segment && !tail->jumped) {
        if (tail->prefix_id.bytes == found->scan.bytes) passed_over_note(node, found, disposition);
        return leat_store_cut(node->store, seg, tail->prefix_id, tail->next_offset,
                              found->scan.max_timestamp_ms);
    }
    if (tail->jumped) {
        /* An operator gave up what is missing; what is valid of this segment stays readable. */
        struct leat_prefix_id valid = {found->scan.bytes, found->scan.crc};
        if (found->scan.started && found->scan.next_offset > found->scan.base_offset &&
            leat_store_cut(node->store, seg, valid, found->scan.next_offset,
                           found->scan.max_timestamp_ms) == LEAT_OK)
            return LEAT_OK;
        disposition->disposition = LEAT_DISPOSITION_GONE;
        return leat_store_forget(node->store, seg);
    }
    /* An older, damaged segment: only the offsets of its missing records become unavailable. */
    disposition->disposition = LEAT_DISPOSITION_KEPT;
    if (seg->state == LEAT_SEGMENT_OPEN && is_on_others(node, found, disposition, tail))
        return LEAT_OK;
    return cut_nothing(found, &disposition->disposition);
}

void leat_found_dispositions(struct leat_node *node)
{
    node->dispositions =
        leat_mem_calloc(LEAT_MEM_BROKER, node->found_count + 1, sizeof *node->dispositions);
    for (size_t i = 0; node->dispositions != NULL && i < node->found_count; i++) {
        struct leat_log_ref ref = node->found[i].seg->log;
        const struct leat_stream *stream = leat_stream_find(&node->cores[0], ref.stream);
        bool known = stream != NULL && !stream->deleted;
        if (stream != NULL) {
            leat_stream_desc_ref(stream->desc);
            node->dispositions[i].desc = stream->desc;
        }
        node->dispositions[i].known = known;
        node->dispositions[i].copied = known && node->options.cluster.node_address != NULL &&
                                       stream->desc->settings.copies > 1;
        node->dispositions[i].tail_waits = known && leat_adopt_awaits_tail(node, stream, ref);
    }
}

leat_err leat_found_cut(struct leat_node *node)
{
    leat_err rc = LEAT_OK;
    sort_decisions(node);
    node->passed_sum.what = "logs end in front of bytes that are no whole write";
    if (node->dispositions == NULL) rc = LEAT_E_NO_MEMORY;
    for (size_t i = 0; rc == LEAT_OK && i < node->found_count; i++) {
        struct leat_found_disposition *disposition = &node->dispositions[i];
        disposition->log = node->found[i].seg->log;
        disposition->segment = node->found[i].seg->id.v;
        disposition->next_offset = node->found[i].kind == LEAT_FOUND_CLOSED
                                       ? node->found[i].seg->next_offset
                                       : node->found[i].scan.next_offset;
        rc = cut_one(node, &node->found[i], disposition);
    }
    for (size_t i = 0; node->dispositions != NULL && i < node->found_count; i++) {
        leat_stream_desc_unref(node->dispositions[i].desc);
        node->dispositions[i].desc = NULL;
    }
    leat_node_log_sum_tell(&node->passed_sum, node->passed_sum.since_us + LEAT_NODE_LOG_SUM_US);
    if (rc == LEAT_OK) rc = leat_store_cut_done(node->store);
    if (rc != LEAT_OK)
        leat_error_set(&node->error, rc, "can't close the segments that were open at the end: %s",
                       leat_err_text(rc));
    return rc;
}
