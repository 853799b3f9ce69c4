/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a node reports to a recovery: see filter.h. */
#include "broker/ownership/filter.h"
#include "base/bug.h"
#include "coordinator/metadata/tail.h"

/* The replica says nothing of its log but that the segment before it was closed: recovery asks for this earlier
 * segment next. */
static bool has_no_records(const struct leat_replica_row *row)
{
    if (row->kind == LEAT_REPLICA_MARK) return row->only_start;
    return row->kind == LEAT_REPLICA_CLOSED && row->next_offset == row->base_offset;
}

/* SUBTLE: a segment before several segments without records is kept, too. (1) Segment 2 was closed without a record,
 * and segment 3 has just begun. (2) Another node has segment 2 open, with its start entry alone. This node was away,
 * and lacks segment 1. (3) Its open replica is the lowest, so recovery asks for segment 1, which is here. If segment
 * 1 was left out, the log would wait for a segment that every node has. */
static bool is_before_one_without_records(const struct leat_replica_row *rows, size_t count,
                                          size_t at)
{
    uint64_t next = rows[at].segment + 1;
    for (size_t i = at + 1; i < count && rows[i].segment <= next; i++)
        if (rows[i].segment == next && has_no_records(&rows[i]) &&
            !(rows[i].kind == LEAT_REPLICA_CLOSED && LEAT_BUG(COPY_HIDES)))
            return !LEAT_BUG(ONE_WITHOUT_RECORDS) || i + 1 == count ||
                   !has_no_records(&rows[i + 1]);
    return false;
}

/* A replica of the highest segment that may be left of the log. All of these are reported, closed or not, because the
 * coordinators prefer a closed replica. */
static bool is_of(const struct leat_replica_row *row, const struct leat_tail_row *left)
{
    return left->prefix.bytes > 0 && row->segment == left->segment && row->epoch.v == left->epoch.v;
}

/* Why the highest closed segment is kept: another node may have the only open replica, of the next segment. Or the
 * other node's open replica is of this very segment, which is closed here because a failed recovery attempt made a
 * copy. */
size_t leat_rows_filter(struct leat_replica_row *rows, size_t count,
                        const struct leat_log_record *record)
{
    uint64_t highest = 0;
    size_t lost = count, kept = 0; /* lost: the last lost row */
    struct leat_tail_row left = {0};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind == LEAT_REPLICA_LOST) lost = i;
        if (rows[i].kind == LEAT_REPLICA_CLOSED) highest = rows[i].segment;
        const struct leat_tail_row row = leat_tail_row_of(&rows[i], 0);
        if (record->opened && leat_tail_may_be_left(record, &row) &&
            leat_tail_order(&row, &left) > 0)
            left = row;
    }
    for (size_t i = 0; i < count; i++) {
        const struct leat_replica_row *row = &rows[i];
        bool tail = !record->opened && row->segment == record->tail.segment;
        if (row->kind == LEAT_REPLICA_LOST && i != lost) continue;
        if (i == lost || is_of(row, &left) || row->kind == LEAT_REPLICA_MARK || tail ||
            row->segment == highest || is_before_one_without_records(rows, count, i))
            rows[kept++] = *row;
    }
    return kept;
}
