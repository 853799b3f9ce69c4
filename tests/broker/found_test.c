/* SPDX-License-Identifier: Apache-2.0 */
/* What a start finds, by found.c alone: what is told of each log, and what becomes of each segment by what was decided.
 * Both are compared with what a plain telling of the rules says, over many random findings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/node/bringup.h"
#include "tests/broker/alone.h"

enum { ROWS = 12, UNKNOWN = 9 }; /* UNKNOWN: a stream that no table has */
static struct {
    struct leat_segment segs[ROWS];
    struct leat_found *found; /* [ROWS] */
    size_t count;
    struct leat_log_decision *decisions; /* [ROWS]; then as many as there are */
    bool awaits;
    leat_err cut, forget, done;
    bool failed; /* by the rules */
    char expected[16 * 1024];
    size_t used;
} it;

/* ---- what it calls ---- */
const struct leat_found *leat_store_found(const struct leat_store *store, size_t *out_count)
{
    assert_ptr_equal(store, &it);
    *out_count = it.count;
    return it.found;
}
void leat_store_role_set(struct leat_store *store, struct leat_segment *seg,
                         enum leat_segment_role role, uint64_t writer)
{
    assert_ptr_equal(store, &it);
    assert_int_equal(writer, seg->writer);
    said("%zu: role %d", (size_t)(seg - it.segs), role);
}
void leat_store_found_hibernate(struct leat_store *store, const struct leat_found *found)
{
    assert_ptr_equal(store, &it);
    said("%zu: hibernate", (size_t)(found - it.found));
}
leat_err leat_store_cut(struct leat_store *store, struct leat_segment *seg,
                        struct leat_prefix_id prefix_id, uint64_t next_offset,
                        int64_t max_timestamp_ms)
{
    assert_ptr_equal(store, &it);
    said("%zu: cut %s next %llu time %lld", (size_t)(seg - it.segs), prefix_id_text(prefix_id),
         (unsigned long long)next_offset, (long long)max_timestamp_ms);
    return it.cut;
}
leat_err leat_store_forget(struct leat_store *store, struct leat_segment *seg)
{
    assert_ptr_equal(store, &it);
    said("%zu: forget", (size_t)(seg - it.segs));
    return it.forget;
}
void leat_stream_desc_ref(struct leat_stream_desc *desc)
{
    atomic_fetch_add(&desc->refs, 1);
}
void leat_stream_desc_unref(struct leat_stream_desc *desc)
{
    if (desc != NULL) assert_true(atomic_fetch_sub(&desc->refs, 1) > 0);
}
leat_err leat_store_cut_done(struct leat_store *store)
{
    assert_ptr_equal(store, &it);
    said("done");
    return it.done;
}
bool leat_adopt_awaits_tail(const struct leat_node *node, const struct leat_stream *stream,
                            struct leat_log_ref ref)
{
    assert_ptr_equal(node, &alone.node);
    assert_ptr_equal(stream, &alone.stream);
    assert_int_equal(ref.stream, ALONE_STREAM);
    return it.awaits;
}
void leat_node_complain(struct leat_node *node, const char *format, ...)
{
    char line[256];
    va_list args;
    assert_ptr_equal(node, &alone.node);
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    said("complain: %s", line);
}
bool leat_scan_only_start(const struct leat_scan *scan)
{
    return scan->acked_bytes == 1;
}

/* ---- findings ---- */

static uint64_t chance_state;
static uint32_t chance(uint32_t of)
{
    chance_state = chance_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(chance_state >> 33) % of;
}

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    it.decisions = calloc(ROWS, sizeof *it.decisions);
    it.found = (struct leat_found *)calloc(ROWS + 1, sizeof *it.found) + 1;
    it.found[-1].seg = it.segs; /* no row, though of the first row's log */
    alone.cores[1].env = NULL, alone.cores[1].node = NULL; /* core 0 alone is asked */
    alone.node.store = (void *)&it;
    atomic_store(&alone.node.highest_stream, UNKNOWN);
}

static void end(void)
{
    leat_mem_free(alone.node.marks);
    leat_mem_free(alone.node.dispositions);
    free(it.found - 1), free(it.decisions);
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
}

/* The tables end where their memory does: a sanitizer sees a look behind the last decision. */
static void dispositions_make(void)
{
    size_t bytes = alone.node.decision_count * sizeof *it.decisions;
    alone.node.decisions = it.decisions = realloc(it.decisions, bytes > 0 ? bytes : 1);
    alone.node.found = it.found, alone.node.found_count = it.count;
    leat_found_dispositions(&alone.node);
}

static struct leat_found *row(struct leat_log_ref log, uint64_t segment, enum leat_found_kind kind)
{
    struct leat_segment *seg = &it.segs[it.count];
    struct leat_found *found = &it.found[it.count++];
    *seg = (struct leat_segment){.log = log,
                                 .id = {segment},
                                 .epoch = {3},
                                 .version = 2,
                                 .prefix_id = {100 + (uint32_t)segment, 7},
                                 .base_offset = 10 * segment,
                                 .next_offset = 10 * segment + 10,
                                 .writer = 55,
                                 .state = kind == LEAT_FOUND_CLOSED ? LEAT_SEGMENT_CLOSED
                                                                    : LEAT_SEGMENT_OPEN};
    *found = (struct leat_found){.seg = seg, .kind = kind};
    found->scan = (struct leat_scan){.bytes = 100 + (uint32_t)segment,
                                     .crc = 7,
                                     .started = true,
                                     .base_offset = 10 * segment,
                                     .next_offset = 10 * segment + 10,
                                     .max_timestamp_ms = 1000 + (int64_t)segment};
    return found;
}

static struct leat_log_ref log_of(uint32_t q)
{
    return (struct leat_log_ref){ALONE_STREAM, 1, q};
}

/* ---- marks ---- */

static struct leat_log_marks *marks(void)
{
    struct leat_error error;
    assert_int_equal(leat_found_marks(&alone.node, &error), LEAT_OK);
    assert_ptr_equal(alone.node.found, it.found);
    assert_int_equal(alone.node.found_count, it.count);
    return alone.node.marks;
}

static void marks_are_told_of_each_log(void **state)
{
    (void)state;
    begin();
    (void)row(log_of(0), 1, LEAT_FOUND_CLOSED);
    struct leat_found *mark = row(log_of(0), 2, LEAT_FOUND_MARK);
    mark->scan.previous = it.segs[0].prefix_id;
    mark->scan.bytes = 77, mark->scan.crc = 8;
    mark->seg->epoch.v = 6, mark->seg->version = 4;
    mark->scan.next_offset = 25;
    snprintf(row(log_of(1), 5, LEAT_FOUND_LOST)->why, sizeof mark->why, "its memory went");
    snprintf(row(log_of(1), 8, LEAT_FOUND_LOST)->why, sizeof mark->why, "another");
    const struct leat_log_marks *of = marks();
    assert_int_equal(alone.node.mark_count, 2);
    assert_true(leat_log_ref_equal(of[0].log, log_of(0)));
    assert_true(of[0].has_mark && of[0].has_closed && !of[0].lost && of[0].predecessor_matches);
    assert_int_equal(of[0].mark_segment, 2);
    assert_int_equal(of[0].mark_epoch.v, 6);
    assert_int_equal(of[0].mark_version, 4);
    assert_string_equal(prefix_id_text(of[0].mark_prefix_id), "77:8");
    assert_int_equal(of[0].mark_next_offset, 25);
    assert_int_equal(of[0].closed_segment, 1);
    assert_string_equal(prefix_id_text(of[0].closed_prefix_id), "101:7");
    assert_int_equal(of[0].closed_next_offset, 20);
    assert_int_equal(of[0].highest_segment, 2);
    assert_string_equal(of[0].why, "");
    assert_true(leat_log_ref_equal(of[1].log, log_of(1)));
    assert_true(!of[1].has_mark && !of[1].has_closed && of[1].lost && !of[1].predecessor_matches);
    assert_int_equal(of[1].highest_segment, 8);
    assert_string_equal(of[1].why, "its memory went");
    end();
}

static void marks_without_findings_or_memory(void **state)
{
    (void)state;
    struct leat_error error;
    begin();
    (void)marks();
    assert_int_equal(alone.node.mark_count, 0);
    end();
    begin();
    (void)row(log_of(0), 1, LEAT_FOUND_CLOSED), (void)row(log_of(1), 1, LEAT_FOUND_CLOSED);
    leat_mem_fail_at(1);
    assert_int_equal(leat_found_marks(&alone.node, &error), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_string_equal(error.text, "no memory for the marks of 2 logs");
    end();
}

/* A mark that another row has replaced, or behind which the log went on, is none. */
static bool counts(size_t first, size_t end, size_t at)
{
    const struct leat_found *found = &it.found[at];
    if (found->kind != LEAT_FOUND_MARK) return false;
    for (size_t i = first; i < end; i++) {
        const struct leat_found *other = &it.found[i];
        if (i == at) continue;
        if (other->seg->id.v == found->seg->id.v && other->kind == LEAT_FOUND_CLOSED &&
            other->seg->role == LEAT_SEGMENT_OWN)
            return false;
        if (other->seg->id.v > found->seg->id.v && other->kind != LEAT_FOUND_LOST &&
            other->seg->epoch.v == found->seg->epoch.v &&
            other->seg->version >= found->seg->version &&
            (other->scan.next_offset > other->scan.base_offset ||
             other->seg->id.v > found->seg->id.v + 1 ||
             (other->kind == LEAT_FOUND_CLOSED && !other->seg->provisional)))
            return false;
    }
    return true;
}

static void assert_marks(const struct leat_log_marks *of, size_t first, size_t end)
{
    const struct leat_found *mark = NULL, *closed = NULL;
    bool lost = false, matches = false;
    for (size_t i = first; i < end; i++) {
        if (it.found[i].kind == LEAT_FOUND_CLOSED) closed = &it.found[i];
        lost |= it.found[i].kind == LEAT_FOUND_LOST;
        if (mark == NULL && counts(first, end, i)) mark = &it.found[i];
    }
    assert_int_equal(of->lost, lost);
    assert_int_equal(of->has_closed, closed != NULL);
    if (closed != NULL) assert_int_equal(of->closed_segment, closed->seg->id.v);
    assert_int_equal(of->has_mark, mark != NULL);
    assert_int_equal(of->highest_segment, it.segs[end - 1].id.v);
    if (mark == NULL) return;
    struct leat_prefix_id named = mark->scan.previous;
    for (size_t i = first; i < end; i++)
        matches |=
            it.found[i].kind == LEAT_FOUND_CLOSED && it.segs[i].id.v + 1 == mark->seg->id.v &&
            it.segs[i].prefix_id.bytes == named.bytes && it.segs[i].prefix_id.crc == named.crc;
    assert_int_equal(of->mark_segment, mark->seg->id.v);
    assert_int_equal(of->mark_version, mark->seg->version);
    assert_int_equal(of->mark_only_start, mark->scan.acked_bytes == 1);
    assert_int_equal(of->predecessor_matches, named.bytes == 0 || matches);
}

/* Up to five rows of a log, two of one segment at most. */
static size_t rows_random(struct leat_log_ref log)
{
    size_t first = it.count;
    uint64_t segment = 1 + chance(3);
    for (uint32_t i = 0, rows = 1 + chance(5); i < rows; i++) {
        struct leat_found *found =
            row(log, segment, (enum leat_found_kind)(LEAT_FOUND_CLOSED + chance(3)));
        found->seg->epoch.v = 3 + (chance(4) == 0);
        found->seg->version = 2 + chance(2);
        found->seg->prefix_id.bytes -= chance(8) == 0;
        found->seg->prefix_id.crc += chance(8) == 0;
        found->seg->provisional = chance(4) == 0;
        found->seg->role = chance(4) == 0 ? LEAT_SEGMENT_REPLICA : LEAT_SEGMENT_OWN;
        found->scan.next_offset -= chance(3) == 0 ? 10 : 0;
        found->scan.started = chance(5) != 0;
        found->scan.acked_bytes = chance(2);
        found->seg->integrity = chance(3) == 0 ? LEAT_INTEGRITY_CORRUPT : LEAT_INTEGRITY_OK;
        found->behind_bytes = chance(3) == 0 ? 30 : 0;
        if (chance(3) != 0)
            found->scan.previous = (struct leat_prefix_id){99 + (uint32_t)segment, 7};
        if (chance(8) == 0) found->scan.previous.crc = 8;
        if (chance(3) == 0) found->seg->buffer = (uint8_t *)"";
        if (chance(3) == 0) found->seg->file = (void *)&it;
        if (chance(6) == 0 && found->kind != LEAT_FOUND_CLOSED)
            found->seg->state = LEAT_SEGMENT_HIBERNATED;
        if (chance(4) == 0) found->scan.bytes -= 1;
        if (chance(5) == 0) { /* offsets jumped in front of it */
            found->seg->base_offset += UINT64_C(1) << 40;
            found->scan.next_offset += UINT64_C(1) << 40;
            found->scan.base_offset += UINT64_C(1) << 40;
        }
        bool duplicate = it.count - first >= 2 && it.segs[it.count - 2].id.v == segment;
        segment += duplicate ? 1 : chance(3);
    }
    return first;
}

static void marks_are_what_the_rules_say(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 20000; seed++) {
        begin();
        chance_state = seed;
        (void)rows_random(log_of(0));
        size_t second = rows_random(log_of(1));
        const struct leat_log_marks *of = marks();
        assert_int_equal(alone.node.mark_count, 2);
        assert_marks(&of[0], 0, second);
        assert_marks(&of[1], second, it.count);
        end();
    }
}

/* ---- what becomes of each ---- */

/* What is to be said, by the rules. */
static void expect(const char *format, ...) LEAT_PRINTF(1, 2);
static void expect(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(it.expected + it.used, sizeof it.expected - it.used - 1, format, args);
    va_end(args);
    it.used += (size_t)bytes;
    it.expected[it.used++] = '\n';
    it.expected[it.used] = '\0';
}

/* A row, and what matters of it. */
struct seen {
    size_t at;
    const struct leat_found *found, *duplicate;
    const struct leat_log_decision *decision;
    bool known, copied, waits, last;
};

static struct seen seen_of(size_t at)
{
    const struct leat_found *found = &it.found[at];
    struct seen seen = {.at = at, .found = found, .last = true};
    bool ours = found->seg->log.stream == ALONE_STREAM;
    for (size_t i = 0; i < it.count; i++) {
        if (i == at || !leat_log_ref_equal(it.segs[i].log, found->seg->log)) continue;
        if (it.segs[i].id.v == found->seg->id.v) seen.duplicate = &it.found[i];
        if (i > at) seen.last = false;
    }
    for (size_t i = 0; i < alone.node.decision_count; i++)
        if (leat_log_ref_equal(it.decisions[i].log, found->seg->log))
            seen.decision = &it.decisions[i];
    seen.known = ours && !alone.no_stream && !alone.stream.deleted;
    seen.copied = seen.known && alone.desc->settings.copies > 1 &&
                  alone.node.options.cluster.node_address != NULL;
    seen.waits = seen.known && it.awaits;
    return seen;
}

static enum leat_disposition hibernated(const struct seen *seen)
{
    expect("%zu: role %d", seen->at, LEAT_SEGMENT_REPLICA);
    expect("%zu: hibernate", seen->at);
    return LEAT_DISPOSITION_REPLICA;
}

static enum leat_disposition forgotten(const struct seen *seen)
{
    expect("%zu: forget", seen->at);
    it.failed = it.forget != LEAT_OK;
    return LEAT_DISPOSITION_GONE;
}

static void passed_over(const struct seen *seen)
{
    const struct leat_found *found = seen->found;
    if (found->kind != LEAT_FOUND_MARK || found->behind_bytes == 0 || alone.no_stream) return;
    expect("node log warn: stream \"orders\", streamlet 1, log %u ends at offset %llu, %u bytes "
           "into segment %llu",
           found->seg->log.log, (unsigned long long)found->scan.next_offset, found->scan.bytes,
           (unsigned long long)found->seg->id.v);
}

static bool has_records(const struct leat_found *found)
{
    return found->scan.started && found->scan.next_offset > found->scan.base_offset;
}

/* Nothing on disk is touched: closed segments are served, and other segments that can be read as far as they are
 * valid. */
static enum leat_disposition served_as_it_is(const struct seen *seen)
{
    const struct leat_segment *seg = seen->found->seg;
    bool valid = has_records(seen->found) && seg->prefix_id.bytes == seen->found->scan.bytes &&
                 (seg->buffer != NULL || seg->file != NULL);
    return seen->found->kind == LEAT_FOUND_CLOSED || valid ? LEAT_DISPOSITION_SERVED
                                                           : LEAT_DISPOSITION_KEPT;
}

/* Which of two rows of a segment counts: the whole one, else the first. */
static bool duplicate_is_better(const struct seen *seen)
{
    if (seen->duplicate == NULL) return false;
    bool corrupt = leat_segment_is_damaged(seen->found->seg),
         other = leat_segment_is_damaged(seen->duplicate->seg);
    return corrupt != other ? corrupt : seen->duplicate < seen->found;
}

static enum leat_disposition disposition_undecided(const struct seen *seen)
{
    if (seen->known) return hibernated(seen);
    if (seen->found->seg->log.stream <= atomic_load(&alone.node.highest_stream))
        return forgotten(seen);
    if (seen->at == 0 || !leat_log_ref_equal(it.segs[seen->at - 1].log, seen->found->seg->log))
        expect("complain: segments of stream %u are here, which the coordinator does not know: "
               "kept, not served",
               seen->found->seg->log.stream);
    return LEAT_DISPOSITION_KEPT;
}

static enum leat_disposition disposition_waiting(const struct seen *seen)
{
    if (seen->decision->left || seen->waits) {
        if (seen->known && !seen->copied && seen->last) passed_over(seen);
        return hibernated(seen);
    }
    if (seen->duplicate != NULL) {
        bool closed = seen->found->kind == LEAT_FOUND_CLOSED,
             other = seen->duplicate->kind == LEAT_FOUND_CLOSED;
        if (closed != other ? other : duplicate_is_better(seen)) return LEAT_DISPOSITION_KEPT;
    }
    return served_as_it_is(seen);
}

/* A segment before the end that is not whole: other nodes have it, unless offsets jump after it. */
static bool others_have(const struct seen *seen)
{
    const struct leat_tail_record *tail = &seen->decision->tail;
    uint64_t behind = tail->next_offset;
    for (size_t i = it.count; i-- > seen->at + 1;)
        if (leat_log_ref_equal(it.segs[i].log, seen->found->seg->log) &&
            it.segs[i].id.v > seen->found->seg->id.v)
            behind = it.segs[i].base_offset;
    return seen->copied && seen->found->seg->id.v < tail->segment &&
           behind >> 40 == seen->found->scan.next_offset >> 40;
}

static enum leat_disposition disposition_open(const struct seen *seen)
{
    const struct leat_found *found = seen->found;
    const struct leat_tail_record *tail = &seen->decision->tail;
    bool ends = found->seg->id.v == tail->segment;
    bool duplicate = seen->duplicate != NULL && (found->kind == LEAT_FOUND_LOST || !ends);
    if (duplicate && seen->duplicate->kind == LEAT_FOUND_CLOSED) return forgotten(seen);
    if (found->kind == LEAT_FOUND_MARK && ends && !tail->jumped) {
        if (tail->prefix_id.bytes == found->scan.bytes) passed_over(seen);
        expect("%zu: cut %s next %llu time %lld", seen->at, prefix_id_text(tail->prefix_id),
               (unsigned long long)tail->next_offset, (long long)found->scan.max_timestamp_ms);
        return LEAT_DISPOSITION_SERVED;
    }
    if (tail->jumped) {
        struct leat_prefix_id valid = {found->scan.bytes, found->scan.crc};
        if (!has_records(found)) return forgotten(seen);
        expect("%zu: cut %s next %llu time %lld", seen->at, prefix_id_text(valid),
               (unsigned long long)found->scan.next_offset,
               (long long)found->scan.max_timestamp_ms);
        return it.cut == LEAT_OK ? LEAT_DISPOSITION_SERVED : forgotten(seen);
    }
    if (found->seg->state == LEAT_SEGMENT_OPEN && others_have(seen)) return LEAT_DISPOSITION_KEPT;
    return served_as_it_is(seen);
}

static enum leat_disposition disposition_decided(const struct seen *seen)
{
    const struct leat_found *found = seen->found;
    const struct leat_tail_record *tail = &seen->decision->tail;
    if (tail->segment == UINT64_MAX || found->seg->id.v > tail->segment) return forgotten(seen);
    if (found->kind != LEAT_FOUND_CLOSED) return disposition_open(seen);
    bool same = seen->duplicate != NULL && seen->duplicate->kind == LEAT_FOUND_CLOSED &&
                seen->duplicate->seg->prefix_id.bytes == found->seg->prefix_id.bytes &&
                seen->duplicate->seg->prefix_id.crc == found->seg->prefix_id.crc;
    return same && duplicate_is_better(seen) ? forgotten(seen) : LEAT_DISPOSITION_SERVED;
}

static enum leat_disposition disposition_by_the_rules(const struct seen *seen)
{
    if (seen->decision == NULL) return disposition_undecided(seen);
    return seen->decision->kind == LEAT_DECIDED_WAIT ? disposition_waiting(seen)
                                                     : disposition_decided(seen);
}

static void decide_random(struct leat_log_ref log)
{
    struct leat_log_decision *decision = &it.decisions[alone.node.decision_count++];
    uint64_t segment = 1 + chance(5);
    *decision =
        (struct leat_log_decision){.log = log,
                                   .kind = chance(2) == 0 ? LEAT_DECIDED_WAIT : LEAT_DECIDED_TAIL,
                                   .left = chance(2),
                                   .tail = {.segment = chance(8) == 0 ? UINT64_MAX : segment,
                                            .prefix_id = {100 + (uint32_t)segment - chance(2), 7},
                                            .next_offset = 10 * segment + 10,
                                            .jumped = chance(3) == 0}};
}

/* The states of closed segments that are served unchanged: they count as closed. */
static void assert_states(const enum leat_segment_state *before)
{
    for (size_t i = 0; i < it.count; i++) {
        struct seen seen = seen_of(i);
        const struct leat_found_disposition *disposition = &alone.node.dispositions[i];
        bool cut = seen.decision != NULL && seen.decision->kind == LEAT_DECIDED_TAIL &&
                   (seen.decision->tail.jumped || it.segs[i].id.v == seen.decision->tail.segment) &&
                   it.found[i].kind != LEAT_FOUND_LOST;
        if (disposition->disposition == LEAT_DISPOSITION_SERVED && !cut)
            assert_true(it.segs[i].state == LEAT_SEGMENT_CLOSED || seen.decision->tail.jumped);
        if (disposition->disposition != LEAT_DISPOSITION_SERVED)
            assert_int_equal(it.segs[i].state, before[i]);
        assert_int_equal(disposition->segment, it.segs[i].id.v);
        assert_int_equal(disposition->next_offset, it.found[i].kind == LEAT_FOUND_CLOSED
                                                       ? it.segs[i].next_offset
                                                       : it.found[i].scan.next_offset);
    }
}

static void segments_fare_as_the_rules_say(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 40000; seed++) {
        enum leat_segment_state before[ROWS];
        enum leat_disposition dispositions[ROWS];
        uint32_t passed[ROWS];
        begin();
        chance_state = seed;
        it.awaits = chance(3) == 0;
        it.cut = chance(3) == 0 ? LEAT_E_DISK : LEAT_OK;
        it.forget = chance(8) == 0 ? LEAT_E_DISK : LEAT_OK;
        alone.no_stream = chance(8) == 0;
        alone.stream.deleted = chance(8) == 0;
        alone.desc->settings.copies = 1 + chance(2);
        if (chance(3) != 0) alone.node.options.cluster.node_address = "n1:1";
        atomic_store(&alone.node.highest_stream, UNKNOWN - chance(4)); /* 6: it knows no stream */
        (void)rows_random(log_of(0));
        (void)rows_random(chance(3) == 0 ? (struct leat_log_ref){UNKNOWN, 0, 0} : log_of(1));
        bool later = chance(2); /* in no order */
        if (later && chance(8) != 0) decide_random(log_of(1));
        if (chance(8) != 0) decide_random(log_of(0));
        if (!later && chance(8) != 0) decide_random(log_of(1));
        if (it.cut != LEAT_OK) /* that of a decided end is an error of the start */
            for (size_t i = 0; i < alone.node.decision_count; i++)
                it.decisions[i].tail.jumped = true;
        size_t end_at = 0;
        for (size_t i = 0; i < it.count && !it.failed; i++, end_at++) {
            struct seen seen = seen_of(i);
            size_t used = it.used;
            before[i] = it.segs[i].state;
            dispositions[i] = disposition_by_the_rules(&seen);
            it.expected[it.used] = '\0';
            passed[i] =
                strstr(it.expected + used, "node log") != NULL ? it.found[i].behind_bytes : 0;
        }
        if (!it.failed) expect("done");
        const uint32_t refs = atomic_load(&alone.desc->refs);
        dispositions_make();
        alone.no_stream = true; /* the store's thread looks into no table of core 0 */
        assert_int_equal(leat_found_cut(&alone.node), it.failed ? it.forget : LEAT_OK);
        assert_int_equal(atomic_load(&alone.desc->refs), refs);
        assert_string_equal(alone.node.passed_sum.what,
                            "logs end in front of bytes that are no whole write");
        assert_said(it.expected);
        for (size_t i = 0; i < end_at; i++) {
            assert_int_equal(alone.node.dispositions[i].disposition, dispositions[i]);
            assert_true(leat_log_ref_equal(alone.node.dispositions[i].log, it.segs[i].log));
            assert_int_equal(it.segs[i].passed_bytes, passed[i]);
        }
        if (!it.failed) assert_states(before);
        end();
    }
}

/* Goal: each log's decision is found among any number of decisions, in whatever order they came. */
static void decisions_are_found_among_many(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < 200; seed++) {
        begin();
        chance_state = seed;
        for (uint32_t q = 0; q < ROWS; q++)
            (void)row(log_of(q), 4, LEAT_FOUND_MARK);
        uint32_t count = chance(ROWS + 1);
        for (uint32_t i = 0; i < count; i++)
            it.decisions[i] =
                (struct leat_log_decision){.log = log_of(i),
                                           .kind = LEAT_DECIDED_TAIL,
                                           .tail = {.segment = 4, .prefix_id = {i, 1}}};
        for (uint32_t i = count; i > 1; i--) {
            uint32_t other = chance(i);
            struct leat_log_decision moved = it.decisions[i - 1];
            it.decisions[i - 1] = it.decisions[other];
            it.decisions[other] = moved;
        }
        alone.node.decision_count = count;
        dispositions_make();
        assert_int_equal(leat_found_cut(&alone.node), LEAT_OK);
        size_t used = 0;
        for (uint32_t q = 0; q < ROWS; q++)
            used += (size_t)snprintf(it.expected + used, sizeof it.expected - used,
                                     q < count ? "%u: cut %u:1 next 0 time 1004\n"
                                               : "%u: role 1\n%u: hibernate\n",
                                     q, q);
        snprintf(it.expected + used, sizeof it.expected - used, "done\n");
        assert_said(it.expected);
        for (uint32_t i = 1; i < count; i++)
            assert_int_equal(it.decisions[i].log.log, i);
        end();
    }
}

/* Goal: of two rows of a segment, the maker of the log is told which row never got its bytes to its file: the other row
 * is the segment. */
static void duplicate_is_told_of(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        (void)row(log_of(0), 2, i & 1 ? LEAT_FOUND_LOST : LEAT_FOUND_MARK);
        (void)row(log_of(0), 2, LEAT_FOUND_LOST);
        it.decisions[0] = (struct leat_log_decision){
            .log = log_of(0), .kind = LEAT_DECIDED_TAIL, .tail = {.segment = i & 2 ? 2 : 3}};
        alone.node.decision_count = 1;
        dispositions_make();
        assert_int_equal(leat_found_cut(&alone.node), LEAT_OK);
        assert_int_equal(alone.node.dispositions[0].duplicate, (i & 1) || !(i & 2));
        assert_true(alone.node.dispositions[1].duplicate);
        said_enough();
        end();
    }
}

/* Goal: an operation that the store can't do ends the start, and the start says so. */
static void start_fails_with_its_store(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        (void)row(log_of(0), 4, LEAT_FOUND_MARK), (void)row(log_of(0), 5, LEAT_FOUND_MARK);
        it.decisions[0] = (struct leat_log_decision){
            .log = log_of(0), .kind = LEAT_DECIDED_TAIL, .tail = {.segment = 4}};
        alone.node.decision_count = 1;
        if (i == 0) it.cut = LEAT_E_DISK;
        if (i == 1) it.forget = LEAT_E_DISK;
        if (i == 2) it.done = LEAT_E_DISK;
        if (i == 3) leat_mem_fail_at(1);
        dispositions_make();
        leat_mem_fail_at(0);
        leat_err rc = i == 3 ? LEAT_E_NO_MEMORY : LEAT_E_DISK;
        assert_int_equal(leat_found_cut(&alone.node), rc);
        if (i != 3)
            assert_null(alone.node.dispositions[0].desc); /* once: leat_node_destroy() asks again */
        assert_int_equal(alone.node.error.code, rc);
        char text[256];
        snprintf(text, sizeof text, "can't close the segments that were open at the end: %s",
                 leat_err_text(rc));
        assert_string_equal(alone.node.error.text, text);
        static const char *const expected[] = {
            "0: cut 0:0 next 0 time 1004\n", "0: cut 0:0 next 0 time 1004\n1: forget\n",
            "0: cut 0:0 next 0 time 1004\n1: forget\ndone\n", ""};
        assert_said(expected[i]);
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_told_of_each_log),
        cmocka_unit_test(marks_without_findings_or_memory),
        cmocka_unit_test(marks_are_what_the_rules_say),
        cmocka_unit_test(segments_fare_as_the_rules_say),
        cmocka_unit_test(decisions_are_found_among_many),
        cmocka_unit_test(duplicate_is_told_of),
        cmocka_unit_test(start_fails_with_its_store),
    };
    return cmocka_run_group_tests_name("broker found", tests, NULL, NULL);
}
