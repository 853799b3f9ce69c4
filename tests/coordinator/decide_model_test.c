/* SPDX-License-Identifier: Apache-2.0 */
/* Where a log ends, by a second implementation of the rule, over sets instead of rows in their order: half a million
 * worlds of open replicas, closed segments, lost segments, torn ends and differing bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "coordinator/metadata/decide.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/decide_rows.h"

enum { ROWS = 7, EPOCH = 3, VERSION = 2, SEGMENT_MIN = 4, SEGMENT_MAX = 7 };

static const struct leat_log_ref LOG = {7, 1, 2};
static struct leat_xoshiro rng;

static uint64_t below(uint64_t n)
{
    return leat_xoshiro_below(&rng, n);
}

/* ---- by what many nodes hold ---- */

struct given {
    struct leat_log_record record;
    struct leat_replica_row rows[ROWS];
    const struct leat_replica_row *at[ROWS];
    uint32_t nodes[ROWS];
    size_t count;
    struct co_hearing heard;
};

static bool same(struct leat_prefix_id a, struct leat_prefix_id b)
{
    return a.bytes == b.bytes && a.crc == b.crc;
}

/* The next segment of the same writer was the writer's head, so this segment was closed on all its copies. */
static bool overtaken(const struct given *given, const struct leat_replica_row *row)
{
    bool is = false;
    for (size_t i = 0; i < given->count; i++) {
        const struct leat_replica_row *other = &given->rows[i];
        is |= other->segment > row->segment && other->kind != LEAT_REPLICA_LOST &&
              other->epoch.v == row->epoch.v && other->version >= row->version &&
              (other->next_offset != other->base_offset || other->segment != row->segment + 1 ||
               (other->kind == LEAT_REPLICA_CLOSED && !other->provisional));
    }
    return is;
}

static bool counts(const struct given *given, const struct leat_replica_row *row)
{
    return row->kind == LEAT_REPLICA_MARK && row->epoch.v == EPOCH && row->version >= VERSION &&
           !overtaken(given, row);
}

/* The longest mark of a segment; NULL: it has none. */
static const struct leat_replica_row *longest(const struct given *given, uint64_t segment)
{
    const struct leat_replica_row *best = NULL;
    for (size_t i = 0; i < given->count; i++) {
        const struct leat_replica_row *row = &given->rows[i];
        if (counts(given, row) && row->segment == segment &&
            (!best || row->prefix_id.bytes > best->prefix_id.bytes))
            best = row;
    }
    return best;
}

/* A mark of the segment has a whole end, or so many nodes have marks of it as are not damaged at once. */
static bool sure(const struct given *given, uint64_t segment)
{
    bool has[4] = {false};
    unsigned nodes = 0;
    for (size_t i = 0; i < given->count; i++) {
        if (!counts(given, &given->rows[i]) || given->rows[i].segment != segment) continue;
        if (!given->rows[i].torn) return true;
        nodes += !has[given->nodes[i]];
        has[given->nodes[i]] = true;
    }
    return nodes > 0 && nodes >= given->heard.enough;
}

static bool bytes_before(const struct given *given, const struct leat_replica_row *mark)
{
    bool found = mark->previous.bytes == 0;
    for (size_t i = 0; i < given->count; i++)
        found |= given->rows[i].kind != LEAT_REPLICA_LOST &&
                 given->rows[i].segment == mark->segment - 1 &&
                 same(given->rows[i].prefix_id, mark->previous);
    return found;
}

/* The segment in front was closed, and this one begins where that ended. */
static bool closed_in_front(const struct given *given, const struct leat_replica_row *mark)
{
    if (mark->only_start) return bytes_before(given, mark);
    bool found = false;
    for (size_t i = 0; i < given->count; i++)
        found |= given->rows[i].kind == LEAT_REPLICA_CLOSED &&
                 given->rows[i].segment == mark->segment - 1 &&
                 given->rows[i].next_offset == mark->base_offset;
    return found;
}

/* NULL: it waits. */
static const struct leat_replica_row *end_by_marks(const struct given *given)
{
    uint64_t lowest = 0;
    for (uint64_t s = SEGMENT_MAX; s >= SEGMENT_MIN; s--)
        if (longest(given, s)) lowest = s;
    if (lowest == 0) return NULL;
    const struct leat_replica_row *end = NULL;
    for (uint64_t s = SEGMENT_MIN; s <= SEGMENT_MAX && !end; s++)
        if (sure(given, s)) end = longest(given, s);
    if (end && end->segment != lowest && !closed_in_front(given, end)) end = NULL;
    if (!end && given->heard.all) {
        uint64_t last = lowest;
        for (size_t i = 0; i < given->count; i++)
            if (counts(given, &given->rows[i]) && given->rows[i].segment > last &&
                closed_in_front(given, &given->rows[i]))
                last = given->rows[i].segment;
        end = longest(given, last);
    }
    if (!end || (end->only_start && !bytes_before(given, end))) return NULL;
    for (size_t i = 0; i < given->count; i++)
        if (counts(given, &given->rows[i]) && given->rows[i].segment == end->segment &&
            given->rows[i].prefix_id.bytes == end->prefix_id.bytes &&
            !same(given->rows[i].prefix_id, end->prefix_id))
            return NULL;
    return end;
}

/* Prints the case in which the decision differs from the model. */
static void tell(const struct given *given, const struct leat_replica_row *end)
{
    printf("the model ends with segment %d, %d bytes; all heard %d, enough %u\n",
           end ? (int)end->segment : -1, end ? (int)end->prefix_id.bytes : 0, given->heard.all,
           given->heard.enough);
    for (size_t i = 0; i < given->count; i++) {
        const struct leat_replica_row *r = &given->rows[i];
        printf(
            "node %u: kind %d segment %u bytes %u crc %u epoch %u version %u%s%s base %u next %u "
            "previous %u\n",
            given->nodes[i], (int)r->kind, (unsigned)r->segment, r->prefix_id.bytes,
            r->prefix_id.crc, r->epoch.v, r->version, r->torn ? " torn" : "",
            r->only_start ? " only" : "", (unsigned)r->base_offset, (unsigned)r->next_offset,
            r->previous.bytes);
    }
}

static void check_marks(const struct given *given, const struct leat_log_decision *decision,
                        const bool *holds)
{
    const struct leat_replica_row *end = end_by_marks(given);
    if ((decision->kind == LEAT_DECIDED_TAIL) != (end != NULL) ||
        (end && (end->segment != decision->tail.segment ||
                 !same(end->prefix_id, decision->tail.prefix_id))))
        tell(given, end);
    assert_int_equal(decision->kind, end ? LEAT_DECIDED_TAIL : LEAT_DECIDED_WAIT);
    for (size_t i = 0; i < given->count; i++)
        assert_int_equal(holds[i], end && given->rows[i].kind != LEAT_REPLICA_LOST &&
                                       given->rows[i].segment == end->segment &&
                                       same(given->rows[i].prefix_id, end->prefix_id));
    if (!end) return;
    assert_int_equal(decision->tail.segment, end->segment);
    assert_true(same(decision->tail.prefix_id, end->prefix_id));
    assert_int_equal(decision->tail.next_offset, end->next_offset);
    assert_false(decision->tail.jumped);
}

static void check_tail(const struct given *given, const struct leat_log_decision *decision,
                       const bool *holds)
{
    const struct leat_tail_record *tail = &given->record.tail;
    bool left[ROWS] = {false}, named[ROWS] = {false};
    bool found = tail->segment == UINT64_MAX || (tail->jumped && given->heard.all);
    uint64_t last = 0;
    for (size_t i = 0; i < given->count; i++) {
        const struct leat_replica_row *row = &given->rows[i];
        named[i] = tail->prefix_id.bytes > 0 && row->segment == tail->segment &&
                   row->kind != LEAT_REPLICA_LOST &&
                   (row->holds_tail || same(row->prefix_id, tail->prefix_id));
        left[i] = tail->jumped && tail->prefix_id.bytes == 0 && row->kind == LEAT_REPLICA_CLOSED &&
                  row->prefix_id.bytes > 0 && row->segment <= tail->segment;
        found |= named[i];
        if (left[i] && row->segment > last) last = row->segment;
    }
    assert_int_equal(decision->kind, found ? LEAT_DECIDED_TAIL : LEAT_DECIDED_WAIT);
    for (size_t i = 0; i < given->count; i++)
        assert_int_equal(holds[i],
                         found && (named[i] || (left[i] && given->rows[i].segment == last)));
    if (found) assert_memory_equal(&decision->tail, tail, sizeof *tail);
}

/* The bytes of one writer are the same in all copies of a segment: its base offset, and the previous segment that it
 * names. */
static void rows_make(struct given *given)
{
    static const uint32_t lengths[] = {100, 200, 300};
    struct leat_prefix_id previous[SEGMENT_MAX + 1];
    uint64_t base[SEGMENT_MAX + 1];
    for (unsigned s = SEGMENT_MIN; s <= SEGMENT_MAX; s++) {
        uint32_t bytes = below(5) ? lengths[below(3)] : 0;
        previous[s] = (struct leat_prefix_id){bytes, bytes + 1};
        base[s] = s * 1000 + (below(5) == 0);
    }
    const uint64_t differ = below(4) ? 12 : 2;
    given->count = below(ROWS + 1);
    for (size_t i = 0; i < given->count; i++) {
        struct leat_replica_row *row = &given->rows[i];
        uint64_t dice = below(10);
        *row = (struct leat_replica_row){
            .log = LOG,
            .segment = SEGMENT_MIN + below(SEGMENT_MAX - SEGMENT_MIN + 1),
            .kind = dice < 6   ? LEAT_REPLICA_MARK
                    : dice < 9 ? LEAT_REPLICA_CLOSED
                               : LEAT_REPLICA_LOST,
            .epoch = {below(8) ? EPOCH : EPOCH - 1 + 2 * (uint32_t)below(2)},
            .version = below(6) ? VERSION + (uint32_t)below(2) : VERSION - 1,
            .torn = below(3) > 0,
            .holds_tail = below(4) == 0,
            .provisional = below(4) == 0};
        row->only_start = row->kind == LEAT_REPLICA_MARK && below(4) == 0;
        uint32_t bytes = row->only_start ? 64 : below(12) ? lengths[below(3)] : (uint32_t)below(2);
        row->prefix_id = (struct leat_prefix_id){bytes, bytes + 1 + (below(differ) == 0)};
        row->previous = previous[row->segment];
        row->base_offset = base[row->segment];
        /* One that is closed ends where the next begins, or does not. */
        row->next_offset = row->kind == LEAT_REPLICA_MARK
                               ? base[row->segment] + (row->only_start || below(2) ? 0 : bytes)
                           : below(2) ? base[row->segment]
                                      : (row->segment + (below(6) ? 1 : 2)) * 1000;
        given->nodes[i] = (uint32_t)below(4);
        given->at[i] = row;
    }
}

static void decide_replicas_is_the_model(void **state)
{
    (void)state;
    unsigned ended = 0, tails = 0;
    leat_xoshiro_seed(&rng, 1);
    for (unsigned turn = 0; turn < 300000; turn++) {
        struct given given = {.heard = {.enough = 2 + (uint32_t)below(2), .all = below(2)}};
        rows_make(&given);
        given.heard.nodes = given.nodes;
        given.record = (struct leat_log_record){
            .opened = below(3) > 0, .stamp_epoch = {EPOCH}, .stamp_version = VERSION};
        uint32_t bytes = below(3) ? 100 * (uint32_t)(1 + below(3)) : (uint32_t)below(2);
        given.record.tail =
            (struct leat_tail_record){.segment = below(8) ? SEGMENT_MIN + below(4) : UINT64_MAX,
                                      .prefix_id = {bytes, bytes + (bytes > 0)},
                                      .next_offset = below(5000),
                                      .jumped = below(2)};
        bool holds[ROWS];
        memset(holds, 1, sizeof holds); /* whatever was there before */
        struct leat_log_decision decision;
        memset(&decision, 0x55, sizeof decision);
        co_decide_replicas(LOG, &given.record, given.at, given.count, &given.heard, &decision,
                           holds);
        assert_true(leat_log_ref_equal(decision.log, LOG));
        assert_int_equal(decision.kind == LEAT_DECIDED_WAIT, decision.why[0] != '\0');
        if (given.record.opened)
            check_marks(&given, &decision, holds);
        else
            check_tail(&given, &decision, holds);
        ended += given.record.opened && decision.kind == LEAT_DECIDED_TAIL;
        tails += !given.record.opened && decision.kind == LEAT_DECIDED_TAIL;
    }
    assert_true(ended > 50000 && tails > 20000);
}

/* ---- by what this node alone holds ---- */

static void decide_own_marks_is_the_model(void **state)
{
    (void)state;
    leat_xoshiro_seed(&rng, 2);
    for (unsigned turn = 0; turn < 200000; turn++) {
        struct leat_log_record record = {
            .opened = below(2),
            .stamp_epoch = {EPOCH},
            .stamp_version = (uint32_t)below(4),
            .tail = {.segment = below(6) ? below(3) : UINT64_MAX,
                     .prefix_id = {10 + (uint32_t)below(3), (uint32_t)below(2)},
                     .next_offset = below(3),
                     .jumped = below(3) == 0}};
        struct leat_log_marks marks = {
            .log = LOG,
            .has_mark = below(4) > 0,
            .mark_segment = below(3),
            .mark_epoch = {EPOCH - 1 + (uint32_t)below(3)},
            .mark_version = (uint32_t)below(4),
            .mark_prefix_id = {10 + (uint32_t)below(3), (uint32_t)below(2)},
            .mark_next_offset = below(9),
            .mark_only_start = below(2),
            .predecessor_matches = below(2),
            .has_closed = below(4) > 0,
            .closed_segment = below(3),
            .closed_prefix_id = {10 + (uint32_t)below(3), (uint32_t)below(2)},
            .closed_next_offset = below(3),
            .lost = below(2)};
        if (below(2)) snprintf(marks.why, sizeof marks.why, "?");
        const bool any = below(8) > 0;
        struct leat_log_decision decision;
        memset(&decision, 0x55, sizeof decision);
        leat_decide_tail(LOG, &record, any ? &marks : NULL, &decision);
        assert_true(leat_log_ref_equal(decision.log, LOG));
        bool waits = decision.kind == LEAT_DECIDED_WAIT;
        assert_int_equal(waits, decision.why[0] != '\0');
        /* What is lost here is told with it. */
        bool told = strstr(decision.why, "(?)") != NULL;
        assert_null(strstr(decision.why, "()"));
        assert_int_equal(told, waits && any && marks.lost && marks.why[0]);
        if (record.opened) {
            const uint32_t version = marks.mark_version > 0 ? marks.mark_version : 1;
            bool ends = any && marks.has_mark && marks.mark_epoch.v == EPOCH &&
                        version >= record.stamp_version &&
                        (!marks.mark_only_start || marks.predecessor_matches);
            assert_int_equal(!waits, ends);
            if (!ends) continue;
            assert_int_equal(decision.tail.segment, marks.mark_segment);
            assert_true(same(decision.tail.prefix_id, marks.mark_prefix_id));
            assert_int_equal(decision.tail.next_offset, marks.mark_next_offset);
            assert_false(decision.tail.jumped || decision.elsewhere);
            continue;
        }
        const struct leat_tail_record *tail = &record.tail;
        bool closed = marks.has_closed && marks.closed_segment == tail->segment &&
                      (same(marks.closed_prefix_id, tail->prefix_id) ||
                       (marks.closed_prefix_id.bytes > tail->prefix_id.bytes &&
                        marks.closed_next_offset == tail->next_offset));
        bool open = marks.has_mark && marks.mark_segment == tail->segment &&
                    same(marks.mark_prefix_id, tail->prefix_id);
        bool found = tail->segment == UINT64_MAX || (any && (closed || open));
        assert_int_equal(!waits, found || tail->jumped);
        if (waits) continue;
        assert_memory_equal(&decision.tail, tail, sizeof *tail);
        assert_int_equal(decision.elsewhere, !found);
    }
}

/* The reason why a log waits names the replicas that were found. */
static void decide_tells_how_many_of_what_there_are(void **state)
{
    (void)state;
    struct leat_replica_row rows[5] = {
        {.kind = LEAT_REPLICA_MARK, .segment = 4, .epoch = {EPOCH}, .version = 1},
        {.kind = LEAT_REPLICA_MARK, .segment = 4, .epoch = {EPOCH - 1}, .version = 9},
        {.kind = LEAT_REPLICA_MARK, .segment = 4, .epoch = {EPOCH + 1}, .version = 9},
        {.kind = LEAT_REPLICA_LOST, .segment = 6, .epoch = {EPOCH}, .version = 9},
        {.kind = LEAT_REPLICA_LOST, .segment = 5, .epoch = {EPOCH}, .version = 9}};
    const struct leat_replica_row *at[5];
    const uint32_t nodes[5] = {0, 1, 2, 3, 0};
    for (unsigned i = 0; i < 5; i++)
        at[i] = &rows[i];
    struct leat_log_record record = {
        .opened = true, .stamp_epoch = {EPOCH}, .stamp_version = VERSION};
    struct leat_log_decision decision;
    bool holds[5];
    const struct co_hearing heard = {.nodes = nodes, .enough = 2};
    co_decide_replicas(LOG, &record, at, 5, &heard, &decision, holds);
    assert_string_equal(decision.why,
                        "no open segment of epoch 3, version 2 was found (1 of "
                        "older versions, 2 of other epochs; 2 lost the bytes of segment 6)");
    rows[4].segment = 0;
    co_decide_replicas(LOG, &record, at + 4, 1, &heard, &decision, holds);
    assert_non_null(strstr(
        decision.why, "(0 of older versions, 0 of other epochs; 1 lost the bytes of segment 0)"));
    co_decide_replicas(LOG, &record, at, 3, &heard, &decision, holds);
    assert_string_equal(
        decision.why,
        "no open segment of epoch 3, version 2 was found (1 of older versions, 2 of other epochs)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decide_replicas_is_the_model),
        cmocka_unit_test(decide_own_marks_is_the_model),
        cmocka_unit_test(decide_tells_how_many_of_what_there_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
