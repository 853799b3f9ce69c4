/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends by what a node found of its own at its start: metadata/tail.h's rule, with one node to hear. */
#include "coordinator/metadata/decide.h"

#include <stdio.h>

#include "coordinator/metadata/tail.h"

/* A prefix id that no replica has. */
static const struct leat_prefix_id NOWHERE = {UINT32_MAX, 0};

static struct leat_tail_row row_of_mark(const struct leat_log_marks *marks)
{
    return (struct leat_tail_row){
        .segment = marks->mark_segment,
        .state = LEAT_TAIL_OPEN,
        .epoch = marks->mark_epoch,
        .generation = marks->mark_version ? marks->mark_version : 1,
        .prefix = marks->mark_prefix_id,
        .previous = marks->predecessor_matches ? (struct leat_prefix_id){0, 0} : NOWHERE,
        .next_offset = marks->mark_next_offset,
        .flags = marks->mark_only_start ? LEAT_TAIL_ONLY_START : 0,
    };
}

/* A longer segment that ends at the recorded offset is right as well: only the close entry can have been added,
 * because a segment with a tail record never takes appends again, and this node wrote the segment itself. */
static struct leat_tail_row row_of_closed(const struct leat_log_marks *marks,
                                          const struct leat_tail_record *end)
{
    bool closed_after = marks->closed_segment == end->segment &&
                        marks->closed_prefix_id.bytes > end->prefix_id.bytes &&
                        marks->closed_next_offset == end->next_offset;
    return (struct leat_tail_row){
        .segment = marks->closed_segment,
        .state = LEAT_TAIL_CLOSED,
        .prefix = marks->closed_prefix_id,
        .next_offset = marks->closed_next_offset,
        .flags = closed_after ? LEAT_TAIL_HAS_DECIDED : 0,
    };
}

void leat_decide_tail(struct leat_log_ref log, const struct leat_log_record *record,
                      const struct leat_log_marks *marks, struct leat_log_decision *out_decision)
{
    /* The node's own replica is enough. After an accepted loss the log goes on without the lost records. */
    const struct leat_tail_question question = {.record = record, .majority = 1, .all_heard = true};
    struct leat_tail_row rows[2];
    struct leat_tail tail;
    char why[LEAT_TAIL_TEXT_BYTES];
    size_t count = 0;
    if (marks && marks->has_mark) rows[count++] = row_of_mark(marks);
    if (marks && marks->has_closed) rows[count++] = row_of_closed(marks, &record->tail);
    leat_tail_decide(&question, rows, count, &tail);
    *out_decision =
        (struct leat_log_decision){.log = log,
                                   .kind = tail.ends ? LEAT_DECIDED_TAIL : LEAT_DECIDED_WAIT,
                                   .tail = tail.end,
                                   .elsewhere = tail.reason == LEAT_TAIL_GIVEN_UP};
    if (tail.ends) return;
    leat_tail_text(&tail, record, why);
    if (marks && marks->lost && marks->why[0])
        snprintf(out_decision->why, sizeof out_decision->why, "%.140s (%s)", why, marks->why);
    else
        snprintf(out_decision->why, sizeof out_decision->why, "%s", why);
}
