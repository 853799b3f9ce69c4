/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends: every story of lost or invented data as a row of a table; names and settings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/metadata/decide.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/decide_rows.h"

static const struct leat_log_ref LOG = {7, 1, 2};

static struct leat_log_record record_tail(uint64_t segment, uint32_t bytes, uint32_t crc,
                                          uint64_t next_offset)
{
    return (struct leat_log_record){
        .tail = {.segment = segment, .prefix_id = {bytes, crc}, .next_offset = next_offset}};
}

static struct leat_log_record record_opened(uint32_t epoch)
{
    return (struct leat_log_record){.opened = true, .stamp_epoch = {epoch}};
}

static struct leat_log_marks mark(uint64_t segment, uint32_t epoch, uint32_t bytes, uint32_t crc,
                                  uint64_t next_offset)
{
    return (struct leat_log_marks){.log = LOG,
                                   .has_mark = true,
                                   .mark_segment = segment,
                                   .mark_epoch = {epoch},
                                   .mark_prefix_id = {bytes, crc},
                                   .mark_next_offset = next_offset,
                                   .highest_segment = segment};
}

static struct leat_log_marks closed(uint64_t segment, uint32_t bytes, uint32_t crc,
                                    uint64_t next_offset)
{
    return (struct leat_log_marks){.log = LOG,
                                   .has_closed = true,
                                   .closed_segment = segment,
                                   .closed_prefix_id = {bytes, crc},
                                   .closed_next_offset = next_offset,
                                   .highest_segment = segment};
}

static struct leat_log_decision decide(struct leat_log_record record,
                                       const struct leat_log_marks *marks)
{
    struct leat_log_decision decision;
    leat_decide_tail(LOG, &record, marks, &decision);
    assert_true(leat_log_ref_equal(decision.log, LOG));
    if (decision.kind == LEAT_DECIDED_WAIT) assert_true(decision.why[0] != 0); /* loudly */
    return decision;
}

/* A new log has the tail record {none, 0}: it is empty, and nothing needs to be found. */
static void decide_new_log_is_empty(void **state)
{
    (void)state;
    struct leat_log_decision d = decide(record_tail(UINT64_MAX, 0, 0, 0), NULL);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
    assert_true(d.tail.segment == UINT64_MAX);
    assert_int_equal(d.tail.next_offset, 0);
}

/* An owner's first segment that started, but was never committed as opened, is not believed: the
 * tail record stands. It can hold nothing acked. */
static void decide_unopened_first_segment_leaves_the_tail_record(void **state)
{
    (void)state;
    struct leat_log_marks marks = mark(0, 3, 500, 0x11, 9);
    struct leat_log_decision d = decide(record_tail(UINT64_MAX, 0, 0, 0), &marks);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
    assert_true(d.tail.segment == UINT64_MAX);
}

/* Opened, and nothing is found: lost or elsewhere, in any case not empty (docs/stories.md 1 and 3). */
static void decide_opened_without_mark_waits(void **state)
{
    (void)state;
    assert_int_equal(decide(record_opened(3), NULL).kind, LEAT_DECIDED_WAIT);
}

/* N-1 closed and nothing open looks like a healthy idle log, but idle logs are hibernated (docs/stories.md 1). */
static void decide_opened_with_closed_segments_only_waits(void **state)
{
    (void)state;
    struct leat_log_marks marks = closed(4, 1000, 0x22, 100);
    assert_int_equal(decide(record_opened(3), &marks).kind, LEAT_DECIDED_WAIT);
}

static void decide_opened_with_mark_of_its_epoch_takes_it(void **state)
{
    (void)state;
    struct leat_log_marks marks = mark(5, 3, 800, 0x33, 120);
    struct leat_log_decision d = decide(record_opened(3), &marks);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
    assert_int_equal(d.tail.segment, 5);
    assert_int_equal(d.tail.prefix_id.bytes, 800);
    assert_int_equal(d.tail.prefix_id.crc, 0x33);
    assert_int_equal(d.tail.next_offset, 120);
    assert_false(d.tail.jumped);
}

/* Epochs must be equal, not merely as high: a stalled attempt's segment is empty (docs/stories.md 5). */
static void decide_mark_of_another_epoch_waits(void **state)
{
    (void)state;
    struct leat_log_marks higher = mark(6, 4, 64, 0x44, 120), lower = mark(6, 2, 64, 0x44, 120);
    assert_int_equal(decide(record_opened(3), &higher).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide(record_opened(3), &lower).kind, LEAT_DECIDED_WAIT);
}

/* A copy that was lost missed the raising of the version, and acks that came after it: it does not
 * count, however right its epoch is. A version at least the coordinator's does: it is written on the
 * copies before the coordinator takes it. */
static void decide_mark_of_a_lower_version_waits(void **state)
{
    (void)state;
    struct leat_log_record record = record_opened(3);
    struct leat_log_marks marks = mark(5, 3, 800, 0x33, 120);
    const struct {
        uint32_t stamp, mark;
        enum leat_decision wanted;
    } rows[] = {
        {1, 1, LEAT_DECIDED_TAIL}, {2, 1, LEAT_DECIDED_WAIT}, {2, 2, LEAT_DECIDED_TAIL},
        {2, 3, LEAT_DECIDED_TAIL}, {7, 6, LEAT_DECIDED_WAIT}, {0, 1, LEAT_DECIDED_TAIL},
        {1, 0, LEAT_DECIDED_TAIL}, {2, 0, LEAT_DECIDED_WAIT}, /* 0: not said, hence the first */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        record.stamp_version = rows[i].stamp;
        marks.mark_version = rows[i].mark;
        struct leat_log_decision d = decide(record, &marks);
        assert_int_equal(d.kind, rows[i].wanted);
        if (rows[i].wanted == LEAT_DECIDED_WAIT)
            assert_non_null(strstr(d.why, "1 of older versions"));
    }
    /* A tail record is no matter of versions. */
    record = record_tail(5, 800, 0x33, 120);
    record.stamp_version = 9;
    assert_int_equal(decide(record, &marks).kind, LEAT_DECIDED_TAIL);
}

/* Only a start entry: the predecessor must be there as the chain names it. */
static void decide_only_start_needs_its_predecessor(void **state)
{
    (void)state;
    struct leat_log_marks marks = mark(6, 3, 256, 0x55, 120);
    marks.mark_only_start = true;
    assert_int_equal(decide(record_opened(3), &marks).kind, LEAT_DECIDED_WAIT);
    marks.predecessor_matches = true;
    assert_int_equal(decide(record_opened(3), &marks).kind, LEAT_DECIDED_TAIL);
}

/* A replica whose bytes did not survive is named in the wait (docs/stories.md 6 and 9). */
static void decide_lost_bytes_are_named(void **state)
{
    (void)state;
    struct leat_log_marks marks = {
        .log = LOG, .lost = true, .highest_segment = 3, .why = "segment 3: its pool is gone"};
    struct leat_log_decision d = decide(record_opened(3), &marks);
    assert_int_equal(d.kind, LEAT_DECIDED_WAIT);
    assert_non_null(strstr(d.why, "its pool is gone"));
}

/* The seal is the commit: whatever else is found, the record says where the log ends (docs/stories.md 2). */
static void decide_tail_record_wins_over_marks(void **state)
{
    (void)state;
    struct leat_log_marks marks = mark(6, 9, 4000, 0x66, 300);
    marks.has_closed = true;
    marks.closed_segment = 5;
    marks.closed_prefix_id = (struct leat_prefix_id){1000, 0x22};
    marks.closed_next_offset = 100;
    struct leat_log_decision d = decide(record_tail(5, 1000, 0x22, 100), &marks);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
    assert_int_equal(d.tail.segment, 5);
    assert_int_equal(d.tail.next_offset, 100);
}

/* The record's bytes must be there: exactly the recorded bytes, neither others nor fewer. */
static void decide_tail_record_needs_its_bytes(void **state)
{
    (void)state;
    struct leat_log_record record = record_tail(5, 1000, 0x22, 100);
    struct leat_log_marks exact = closed(5, 1000, 0x22, 100), other = closed(5, 1000, 0x23, 100),
                          shorter = closed(5, 900, 0x22, 90), wrong = closed(4, 1000, 0x22, 100),
                          open = mark(5, 2, 1000, 0x22, 100), open_short = mark(5, 2, 900, 1, 90);
    assert_int_equal(decide(record, NULL).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide(record, &exact).kind, LEAT_DECIDED_TAIL);
    assert_int_equal(decide(record, &other).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide(record, &shorter).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide(record, &wrong).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide(record, &open).kind, LEAT_DECIDED_TAIL);
    assert_int_equal(decide(record, &open_short).kind, LEAT_DECIDED_WAIT);
    assert_non_null(strstr(decide(record, NULL).why, "segment 5"));
}

/* Cutting added a close entry in earlier versions: longer, and ending at the same offset, is still
 * the recorded one. */
static void decide_tail_record_accepts_the_close_entry(void **state)
{
    (void)state;
    struct leat_log_marks cut = closed(5, 1096, 0x77, 100), grown = closed(5, 1096, 0x77, 101);
    assert_int_equal(decide(record_tail(5, 1000, 0x22, 100), &cut).kind, LEAT_DECIDED_TAIL);
    assert_int_equal(decide(record_tail(5, 1000, 0x22, 100), &grown).kind, LEAT_DECIDED_WAIT);
}

/* Accepted loss: offsets have jumped, and the bytes that were given up are not asked for. */
static void decide_accepted_loss_stands(void **state)
{
    (void)state;
    struct leat_log_record record = record_tail(5, 0, 0, 5000);
    record.tail.jumped = true;
    struct leat_log_decision d = decide(record, NULL);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
    assert_true(d.tail.jumped && d.elsewhere);
    assert_int_equal(d.tail.next_offset, 5000);
    record.tail.prefix_id = (struct leat_prefix_id){1000, 0x22};
    struct leat_log_marks left = closed(5, 1000, 0x22, 100), other = closed(5, 1000, 0x23, 100);
    assert_false(decide(record, &left).elsewhere);
    assert_true(decide(record, &other).elsewhere);
}

/* ---- by what many nodes hold ---- */

static struct leat_replica_row replica(uint64_t segment, uint32_t epoch, uint32_t version,
                                       uint32_t bytes, uint64_t next_offset)
{
    return (struct leat_replica_row){.log = LOG,
                                     .segment = segment,
                                     .kind = LEAT_REPLICA_MARK,
                                     .epoch = {epoch},
                                     .version = version,
                                     .prefix_id = {bytes, bytes + 1},
                                     .base_offset = next_offset,
                                     .next_offset = next_offset};
}

static struct leat_log_decision decide_rows(struct leat_log_record record,
                                            const struct leat_replica_row *a,
                                            const struct leat_replica_row *b, bool *out_holds)
{
    struct leat_log_decision decision;
    const struct leat_replica_row *rows[2] = {a, b};
    const uint32_t nodes[2] = {0, 1};
    const struct co_hearing heard = {.nodes = nodes, .enough = 2};
    co_decide_replicas(LOG, &record, rows, (a != NULL) + (b != NULL), &heard, &decision, out_holds);
    if (decision.kind == LEAT_DECIDED_WAIT) assert_true(decision.why[0] != 0);
    return decision;
}

/* The end is the lowest segment with an open replica, at its longest length; a node with exactly this replica is a
 * holder. */
static void decide_replicas_takes_the_longest_of_the_lowest(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_log_record record = record_opened(3);
    record.stamp_version = 2;
    struct leat_replica_row longer = replica(5, 3, 2, 900, 130),
                            shorter = replica(5, 3, 3, 800, 120),
                            higher = replica(6, 3, 2, 100, 130);
    struct leat_log_decision d = decide_rows(record, &shorter, &longer, holds);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
    assert_int_equal(d.tail.prefix_id.bytes, 900);
    assert_int_equal(d.tail.next_offset, 130);
    assert_true(holds[1] && !holds[0]);
    d = decide_rows(record, &higher, &shorter, holds);
    assert_int_equal(d.tail.segment, 5);
    assert_true(holds[1] && !holds[0]);
}

/* A copy that its owner went on without, or of another ownership, is none. */
static void decide_replicas_passes_over_old_marks(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_log_record record = record_opened(3);
    record.stamp_version = 2;
    struct leat_replica_row old = replica(4, 3, 1, 900, 130), other = replica(4, 2, 9, 900, 130),
                            current = replica(5, 3, 2, 800, 120);
    assert_int_equal(decide_rows(record, &old, &other, holds).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide_rows(record, &old, &current, holds).tail.segment, 5);
    assert_int_equal(decide_rows(record, NULL, NULL, holds).kind, LEAT_DECIDED_WAIT);
    struct leat_replica_row closed_one = current;
    closed_one.kind = LEAT_REPLICA_CLOSED;
    assert_int_equal(decide_rows(record, &closed_one, NULL, holds).kind, LEAT_DECIDED_WAIT);
}

/* Its predecessor may be on any node, by the bytes that the start entry names. */
static void decide_replicas_needs_the_predecessor_anywhere(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_replica_row begun = replica(6, 3, 1, 64, 130), before = replica(5, 3, 1, 900, 130);
    begun.only_start = true;
    begun.previous = before.prefix_id;
    before.kind = LEAT_REPLICA_CLOSED;
    assert_int_equal(decide_rows(record_opened(3), &begun, NULL, holds).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide_rows(record_opened(3), &begun, &before, holds).tail.segment, 6);
    before.prefix_id.crc++;
    assert_int_equal(decide_rows(record_opened(3), &begun, &before, holds).kind, LEAT_DECIDED_WAIT);
}

struct heard_rows {
    const struct leat_replica_row *rows[3];
    uint32_t nodes[3];
    size_t count;
    bool all;
};

static struct leat_log_decision decide_heard(const struct heard_rows *given)
{
    struct leat_log_decision decision;
    struct leat_log_record record = record_opened(3);
    bool holds[3];
    const struct co_hearing heard = {.nodes = given->nodes, .enough = 2, .all = given->all};
    co_decide_replicas(LOG, &record, given->rows, given->count, &heard, &decision, holds);
    return decision;
}

/* A flipped bit in what was acked last leaves what a torn write would leave. */
static void decide_replicas_waits_for_more_than_one_torn_end(void **state)
{
    (void)state;
    struct leat_replica_row torn = replica(5, 3, 1, 800, 120), whole = replica(5, 3, 1, 900, 130),
                            other = replica(5, 3, 1, 850, 125);
    torn.torn = other.torn = true;
    struct heard_rows alone = {{&torn}, {0}, 1, false}, all = {{&torn}, {0}, 1, true};
    assert_int_equal(decide_heard(&alone).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide_heard(&all).tail.next_offset, 120);
    struct heard_rows with_whole = {{&torn, &whole}, {0, 1}, 2, false};
    assert_int_equal(decide_heard(&with_whole).tail.next_offset, 130);
    struct heard_rows most = {{&torn, &other}, {0, 1}, 2, false};
    assert_int_equal(decide_heard(&most).tail.next_offset, 125);
    struct heard_rows same_node = {{&torn, &other}, {1, 1}, 2, false};
    assert_int_equal(decide_heard(&same_node).kind, LEAT_DECIDED_WAIT);
    struct leat_replica_row longer = other;
    longer.prefix_id.bytes = 950;
    longer.next_offset = 135;
    struct heard_rows longest = {{&longer, &whole}, {0, 1}, 2, false};
    assert_int_equal(decide_heard(&longest).tail.next_offset, 135);
}

/* The bit flipped in the close entry of a segment: the log did not end there. */
static void decide_replicas_goes_past_a_torn_end_that_was_closed_elsewhere(void **state)
{
    (void)state;
    struct leat_replica_row torn = replica(5, 3, 1, 800, 130), next = replica(6, 3, 1, 300, 140),
                            closed_one = replica(5, 3, 1, 900, 130);
    torn.torn = true;
    next.base_offset = 130;
    closed_one.kind = LEAT_REPLICA_CLOSED;
    struct heard_rows known = {{&torn, &next, &closed_one}, {0, 1, 1}, 3, false};
    assert_int_equal(decide_heard(&known).tail.segment, 6);
    /* Its records show that the log went on, whoever was heard. */
    struct heard_rows unknown = {{&torn, &next}, {0, 1}, 2, false};
    assert_int_equal(decide_heard(&unknown).tail.segment, 6);
    unknown.all = true;
    assert_int_equal(decide_heard(&unknown).tail.segment, 6);
    /* It had only begun: what it names has to be the closed one. */
    next.only_start = true;
    next.next_offset = 130;
    next.previous = closed_one.prefix_id;
    assert_int_equal(decide_heard(&known).tail.segment, 6);
    next.previous.crc++;
    assert_int_equal(decide_heard(&known).kind, LEAT_DECIDED_WAIT);
    known.all = true;
    assert_int_equal(decide_heard(&known).tail.segment, 5);
}

/* The close entry of segment 5 was damaged. Of segment 6, in which the log went on, one node has everything that was
 * acked, and another node has only the start entry, which shows that segment 5 comes before: the longer replica of
 * segment 6 is the end, in whatever order the nodes answer. */
static void decide_replicas_takes_the_longest_where_a_start_shows_the_way(void **state)
{
    (void)state;
    struct leat_replica_row before = replica(5, 3, 1, 900, 130), whole = replica(6, 3, 1, 300, 140),
                            start = replica(6, 3, 1, 64, 130);
    before.torn = start.torn = start.only_start = true; /* the close entry of 5 was hit */
    whole.previous = start.previous = before.prefix_id;
    whole.base_offset = start.base_offset = 130;
    struct heard_rows orders[] = {{{&before, &whole, &start}, {0, 1, 2}, 3, true},
                                  {{&before, &start, &whole}, {0, 2, 1}, 3, true},
                                  {{&whole, &start, &before}, {1, 2, 0}, 3, true}};
    for (unsigned i = 0; i < 3; i++) {
        struct leat_log_decision d = decide_heard(&orders[i]);
        assert_int_equal(d.tail.segment, 6);
        assert_int_equal(d.tail.prefix_id.bytes, 300);
    }
}

/* ---- every small case of an older segment that is damaged on one node ---- */

enum { CASE_NODES = 3, CASE_STATES = 3 };
enum case_older { OLDER_NONE, OLDER_CLOSED, OLDER_DAMAGED }; /* damaged: its row says open */
enum case_head { HEAD_NONE, HEAD_WHOLE, HEAD_TORN };         /* torn: behind what was acked */

struct one_case {
    enum case_older older[CASE_NODES];
    enum case_head head[CASE_NODES];
    bool records_hit; /* of the older one, or but its close entry */
    bool all;
};

/* Segment 5 has offsets up to 130, and is closed; 6, up to 140, is acked: so 5 was closed on all its copies. */
static struct leat_log_decision decide_case(const struct one_case *given)
{
    static struct leat_replica_row rows[2 * CASE_NODES];
    const struct leat_replica_row *all[2 * CASE_NODES];
    uint32_t nodes[2 * CASE_NODES];
    bool holds[2 * CASE_NODES];
    size_t count = 0;
    for (uint32_t n = 0; n < CASE_NODES; n++) {
        if (given->older[n] != OLDER_NONE) {
            rows[count] = replica(5, 3, 1, 900, 130);
            rows[count].base_offset = 100;
            rows[count].kind =
                given->older[n] == OLDER_CLOSED ? LEAT_REPLICA_CLOSED : LEAT_REPLICA_MARK;
            if (given->older[n] == OLDER_DAMAGED) {
                rows[count].torn = true;
                rows[count].prefix_id.bytes = given->records_hit ? 700 : 800;
                rows[count].next_offset = given->records_hit ? 120 : 130;
            }
            nodes[count++] = n;
        }
        if (given->head[n] != HEAD_NONE) {
            rows[count] = replica(6, 3, 1, 300, 140);
            rows[count].base_offset = 130;
            rows[count].previous = replica(5, 3, 1, 900, 130).prefix_id;
            rows[count].torn = given->head[n] == HEAD_TORN;
            nodes[count++] = n;
        }
    }
    for (size_t i = 0; i < count; i++)
        all[i] = &rows[i];
    struct leat_log_decision decision;
    struct leat_log_record record = record_opened(3);
    const struct co_hearing heard = {.nodes = nodes, .enough = 2, .all = given->all};
    co_decide_replicas(LOG, &record, all, count, &heard, &decision, holds);
    return decision;
}

/* Goal: one corrupt copy of an older segment never says where a log ends while a whole copy of that segment and the
 * head are reported; and no decision waits for more reports when all nodes have reported. */
static void decide_replicas_of_a_damaged_older_segment_ends_behind_the_head(void **state)
{
    (void)state;
    unsigned decided = 0, waits = 0, codes = 4 * 9 * 9 * 9;
    for (unsigned code = 0; code < codes; code++) {
        struct one_case it = {.records_hit = code & 1, .all = code & 2};
        unsigned rest = code / 4, damaged = 0, closed_ones = 0, heads = 0, whole_heads = 0;
        for (unsigned n = 0; n < CASE_NODES; n++, rest /= CASE_STATES * CASE_STATES) {
            it.older[n] = rest % CASE_STATES;
            it.head[n] = rest / CASE_STATES % CASE_STATES;
            damaged += it.older[n] == OLDER_DAMAGED;
            closed_ones += it.older[n] == OLDER_CLOSED;
            heads += it.head[n] != HEAD_NONE;
            whole_heads += it.head[n] == HEAD_WHOLE;
        }
        if (damaged > 1 || closed_ones == 0 || heads == 0) continue;
        struct leat_log_decision d = decide_case(&it);
        if (d.kind == LEAT_DECIDED_TAIL) {
            assert_int_equal(d.tail.segment, 6);
            assert_int_equal(d.tail.next_offset, 140);
        } else { /* a torn head on one node, and another may come */
            assert_true(!it.all && whole_heads == 0 && heads == 1);
        }
        decided += d.kind == LEAT_DECIDED_TAIL;
        waits += d.kind != LEAT_DECIDED_TAIL;
    }
    assert_true(decided > 1000 && waits > 50);
}

/* Equal lengths and different bytes: one of the replicas is corrupt, and no node knows which. */
static void decide_replicas_that_differ_wait(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_replica_row a = replica(5, 3, 1, 900, 130), b = a;
    b.prefix_id.crc++;
    struct leat_log_decision d = decide_rows(record_opened(3), &a, &b, holds);
    assert_int_equal(d.kind, LEAT_DECIDED_WAIT);
    assert_non_null(strstr(d.why, "differ"));
}

/* A tail record stands wherever its bytes are, also as the beginning of more. */
static void decide_replicas_finds_a_standing_tail(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_log_record record = record_tail(5, 800, 801, 120);
    struct leat_replica_row exact = replica(5, 1, 1, 800, 120), more = replica(5, 1, 1, 900, 130);
    assert_int_equal(decide_rows(record, &more, NULL, holds).kind, LEAT_DECIDED_WAIT);
    more.holds_tail = true;
    assert_int_equal(decide_rows(record, &more, NULL, holds).kind, LEAT_DECIDED_TAIL);
    assert_true(holds[0]);
    assert_int_equal(decide_rows(record, &exact, NULL, holds).kind, LEAT_DECIDED_TAIL);
    assert_int_equal(decide_rows(record_tail(UINT64_MAX, 0, 0, 0), NULL, NULL, holds).kind,
                     LEAT_DECIDED_TAIL);
}

/* A closed replica that goes on after the record's end, at the same offset, may be another writer's. Its node compares
 * the replica's beginning with the record. */
static void decide_replicas_counts_no_longer_copy_by_its_offset(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_log_record record = record_tail(5, 800, 801, 120);
    struct leat_replica_row other = replica(5, 1, 1, 900, 120), exact = replica(5, 3, 1, 800, 120);
    other.kind = exact.kind = LEAT_REPLICA_CLOSED;
    assert_int_equal(decide_rows(record, &other, NULL, holds).kind, LEAT_DECIDED_WAIT);
    assert_false(holds[0]);
    assert_int_equal(decide_rows(record, &other, &exact, holds).kind, LEAT_DECIDED_TAIL);
    assert_true(!holds[0] && holds[1]);
    other.holds_tail = true;
    assert_int_equal(decide_rows(record, &other, NULL, holds).kind, LEAT_DECIDED_TAIL);
    assert_true(holds[0]);
    other.kind = LEAT_REPLICA_LOST;
    assert_int_equal(decide_rows(record, &other, NULL, holds).kind, LEAT_DECIDED_WAIT);
}

/* After an accepted loss the log goes on without what was given up, and not without what was left, while
 * a node may have that which was not asked. */
static void decide_replicas_waits_for_what_an_operator_left(void **state)
{
    (void)state;
    bool holds[3];
    struct leat_log_decision d;
    struct leat_log_record record = record_tail(5, 0, 0, 5000);
    record.tail.jumped = true;
    struct leat_replica_row first = replica(0, 0, 1, 300, 30), last = replica(1, 0, 1, 400, 90),
                            behind = replica(6, 0, 1, 400, 95);
    first.kind = last.kind = behind.kind = LEAT_REPLICA_CLOSED;
    const struct leat_replica_row *rows[] = {&first, &last, &behind};
    const uint32_t nodes[] = {0, 1, 2};
    struct co_hearing heard = {.nodes = nodes, .enough = 1};
    co_decide_replicas(LOG, &record, rows, 3, &heard, &d, holds);
    assert_int_equal(d.kind, LEAT_DECIDED_WAIT);
    assert_non_null(strstr(d.why, "left"));
    heard.all = true;
    co_decide_replicas(LOG, &record, rows, 3, &heard, &d, holds);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
    assert_true(d.tail.jumped && d.tail.next_offset == 5000);
    assert_true(!holds[0] && holds[1] && !holds[2]); /* who shall own it */
    co_decide_replicas(LOG, &record, rows, 0, &heard, &d, holds);
    assert_int_equal(d.kind, LEAT_DECIDED_TAIL);
}

/* Where the log's record names the end that an operator left, one node that has this end is enough. */
static void decide_replicas_finds_what_an_operator_left(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_log_record record = record_tail(5, 800, 801, 5000);
    record.tail.jumped = true;
    struct leat_replica_row left = replica(5, 0, 1, 800, 120), other = replica(4, 0, 1, 700, 90);
    left.kind = other.kind = LEAT_REPLICA_CLOSED;
    assert_int_equal(decide_rows(record, &other, NULL, holds).kind, LEAT_DECIDED_WAIT);
    assert_int_equal(decide_rows(record, &other, &left, holds).kind, LEAT_DECIDED_TAIL);
    assert_true(!holds[0] && holds[1]);
}

/* A replica that lost its bytes decides nothing, whatever it was; the operator is told of the loss. */
static void decide_replicas_tells_of_what_is_lost(void **state)
{
    (void)state;
    bool holds[2];
    struct leat_replica_row gone = replica(5, 3, 1, 0, 0), mark = replica(5, 3, 1, 800, 120);
    gone.kind = LEAT_REPLICA_LOST;
    struct leat_log_decision d = decide_rows(record_opened(3), &gone, NULL, holds);
    assert_int_equal(d.kind, LEAT_DECIDED_WAIT);
    assert_non_null(strstr(d.why, "1 lost the bytes of segment 5"));
    assert_int_equal(decide_rows(record_opened(3), &gone, &mark, holds).tail.prefix_id.bytes, 800);
    assert_true(holds[1] && !holds[0]);
    gone.prefix_id = mark.prefix_id;
    assert_int_equal(decide_rows(record_tail(5, 800, 801, 120), &gone, NULL, holds).kind,
                     LEAT_DECIDED_WAIT);
}

/* Of a log that waits, the most that can be read later is kept: closed replicas before open replicas, no open replica
 * of an epoch that had ended, and of closed replicas that differ the part that all of them have. */
static void decide_best_of_what_is_left(void **state)
{
    (void)state;
    struct co_recover_log log = {.ref = LOG, .seen = record_opened(3), .row_count = 4};
    struct co_row rows[4] = {{.row = replica(9, 2, 1, 100, 90)},
                             {.row = replica(5, 3, 1, 300, 50)},
                             {.row = replica(6, 3, 1, 200, 70)},
                             {.row = replica(6, 3, 1, 400, 75)}};
    struct co_recovery recovery = {.rows = rows, .row_count = 4};
    struct leat_tail_record best;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.segment, 6);
    assert_int_equal(best.prefix_id.bytes, 400);
    assert_int_equal(best.next_offset, 75);
    rows[2].row.kind = LEAT_REPLICA_CLOSED;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.prefix_id.bytes, 200);
    rows[3].row.kind = LEAT_REPLICA_CLOSED;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.prefix_id.bytes, 200);
    log.row_count = 1;
    assert_false(co_recovery_best(&recovery, &log, &best));
}

/* A provisional replica counts as left only in the log's present epoch: later epochs may have given its offsets to
 * other records. */
static void decide_provisional_copies_of_other_epochs_are_not_left(void **state)
{
    (void)state;
    struct co_recover_log log = {.ref = LOG, .seen = record_opened(3), .row_count = 2};
    struct co_row rows[2] = {{.row = replica(6, 2, 1, 200, 70)},
                             {.row = replica(5, 2, 1, 100, 50)}};
    struct co_recovery recovery = {.rows = rows, .row_count = 2};
    struct leat_tail_record best;
    for (int i = 0; i < 2; i++)
        rows[i].row.kind = LEAT_REPLICA_CLOSED;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.segment, 6);
    rows[0].row.provisional = true;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.segment, 5);
    rows[1].row.provisional = true;
    assert_false(co_recovery_best(&recovery, &log, &best));
    rows[0].row.epoch.v = 3;
    assert_true(co_recovery_best(&recovery, &log, &best));
    assert_int_equal(best.segment, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decide_new_log_is_empty),
        cmocka_unit_test(decide_unopened_first_segment_leaves_the_tail_record),
        cmocka_unit_test(decide_opened_without_mark_waits),
        cmocka_unit_test(decide_opened_with_closed_segments_only_waits),
        cmocka_unit_test(decide_opened_with_mark_of_its_epoch_takes_it),
        cmocka_unit_test(decide_mark_of_another_epoch_waits),
        cmocka_unit_test(decide_mark_of_a_lower_version_waits),
        cmocka_unit_test(decide_only_start_needs_its_predecessor),
        cmocka_unit_test(decide_lost_bytes_are_named),
        cmocka_unit_test(decide_tail_record_wins_over_marks),
        cmocka_unit_test(decide_tail_record_needs_its_bytes),
        cmocka_unit_test(decide_tail_record_accepts_the_close_entry),
        cmocka_unit_test(decide_accepted_loss_stands),
        cmocka_unit_test(decide_replicas_takes_the_longest_of_the_lowest),
        cmocka_unit_test(decide_replicas_passes_over_old_marks),
        cmocka_unit_test(decide_replicas_needs_the_predecessor_anywhere),
        cmocka_unit_test(decide_replicas_waits_for_more_than_one_torn_end),
        cmocka_unit_test(decide_replicas_goes_past_a_torn_end_that_was_closed_elsewhere),
        cmocka_unit_test(decide_replicas_takes_the_longest_where_a_start_shows_the_way),
        cmocka_unit_test(decide_replicas_of_a_damaged_older_segment_ends_behind_the_head),
        cmocka_unit_test(decide_replicas_that_differ_wait),
        cmocka_unit_test(decide_replicas_finds_a_standing_tail),
        cmocka_unit_test(decide_replicas_counts_no_longer_copy_by_its_offset),
        cmocka_unit_test(decide_replicas_waits_for_what_an_operator_left),
        cmocka_unit_test(decide_replicas_finds_what_an_operator_left),
        cmocka_unit_test(decide_replicas_tells_of_what_is_lost),
        cmocka_unit_test(decide_best_of_what_is_left),
        cmocka_unit_test(decide_provisional_copies_of_other_epochs_are_not_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
