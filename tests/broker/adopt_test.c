/* SPDX-License-Identifier: Apache-2.0 */
/* A start's last step, by adopt.c alone: which logs a core makes, of which segments, and where they go on; which logs
 * wait, which are asked for elsewhere, and what people are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/partition.h"
#include "broker/node/bringup.h"
#include "broker/ownership/handover.h"
#include "tests/broker/alone.h"

enum { ROWS = 8 };

static struct {
    struct leat_segment segs[ROWS];
    struct leat_found found[ROWS];
    struct leat_found_disposition dispositions[ROWS];
    struct leat_log_decision decisions[4];
    struct leat_begun *begun;
    struct leat_partition partition;
    leat_err create, trouble;
    bool front_unknown, heap_full;
} it;

/* ---- what it calls ---- */

const struct leat_begun_log *leat_begun_find(const struct leat_begun *begun,
                                             struct leat_log_ref ref)
{
    assert_ptr_equal(begun, it.begun);
    for (size_t i = 0; begun != NULL && i < begun->count; i++)
        if (leat_log_ref_equal(begun->rows[i].ref, ref)) return &begun->rows[i];
    return NULL;
}
leat_err leat_partition_create(struct leat_core *core, struct leat_stream *stream,
                               struct leat_log_ref ref, struct leat_epoch epoch,
                               struct leat_segment *const *segs, size_t seg_count,
                               const struct leat_log_tail *tail,
                               struct leat_partition **out_partition)
{
    char ids[128] = "";
    assert_ptr_equal(stream, &alone.stream);
    for (size_t i = 0, used = 0; i < seg_count; i++)
        used += (size_t)snprintf(ids + used, sizeof ids - used, " %llu",
                                 (unsigned long long)segs[i]->id.v);
    said("core %u makes %s, epoch %u, of%s; next %llu at %llu, behind %s%s%s%s%s", core->index,
         ref_text(ref), epoch.v, seg_count > 0 ? ids : " none",
         (unsigned long long)tail->next_segment, (unsigned long long)tail->next_offset,
         prefix_id_text(tail->previous), tail->jumped ? ", jumped" : "",
         tail->backfill_follows ? ", older follow" : "", tail->holes ? ", holes" : "",
         tail->stands_in ? ", stands in" : "");
    if (it.create != LEAT_OK) return it.create;
    it.partition =
        (struct leat_partition){.ref = ref, .core = core, .stream = stream, .log = (void *)&it};
    *out_partition = &it.partition;
    return LEAT_OK;
}
void leat_log_set_state(struct leat_log *log, enum leat_log_state state, const char *why)
{
    assert_ptr_equal(log, &it);
    assert_int_equal(state, LEAT_LOG_WAITING);
    said("it waits: %s", why);
}
bool leat_log_front_known(const struct leat_log *log)
{
    assert_ptr_equal(log, &it);
    return !it.front_unknown;
}
leat_err leat_log_trouble(struct leat_log *log, char *out, size_t bytes)
{
    assert_ptr_equal(log, &it);
    snprintf(out, bytes, "%s", it.trouble == LEAT_OK ? "" : "it is damaged");
    return it.trouble;
}
void leat_node_complain(struct leat_node *node, const char *format, ...)
{
    char line[512];
    va_list args;
    assert_ptr_equal(node, &alone.node);
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    said("complain: %s", line);
}
bool leat_node_heap_admits(struct leat_node *node, uint64_t now_us)
{
    assert_ptr_equal(node, &alone.node);
    assert_int_equal(now_us, alone.now_us);
    said("has the heap room?");
    return !it.heap_full;
}
void leat_takeover_ask(struct leat_core *core, const struct leat_begun_log *row, uint32_t logs)
{
    assert_int_equal(logs, ALONE_LOGS);
    said("core %u asks for %s, epoch %u", core->index, ref_text(row->ref), row->epoch.v);
}
bool leat_takeover_has_holes(struct leat_segment *const *segs, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (segs[i]->id.v != segs[i - 1]->id.v + 1) return true;
    return false;
}
void leat_walk_make_missing(struct leat_core *core)
{
    said("core %u makes what is missing", core->index);
}

/* ---- the tests' own ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    it.begun = calloc(1, sizeof *it.begun + 2 * sizeof it.begun->rows[0]);
    assert_non_null(it.begun);
    alone.stream.begun = it.begun;
    alone.node.found = it.found;
    alone.node.options.cluster.node_address = "n1:1";
}

static void end(void)
{
    free(it.begun);
    leat_mem_free(it.partition.segs);
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
}

static struct leat_log_ref log_of(uint32_t q)
{
    return (struct leat_log_ref){ALONE_STREAM, 1, q};
}

static struct leat_segment *found(uint32_t q, uint64_t segment, enum leat_disposition disposition)
{
    size_t at = alone.node.found_count++;
    it.segs[at] = (struct leat_segment){.log = log_of(q),
                                        .id = {segment},
                                        .prefix_id = {100 + (uint32_t)segment, 7},
                                        .next_offset = 10 * segment + 10};
    it.found[at] = (struct leat_found){.seg = &it.segs[at]};
    it.dispositions[at] = (struct leat_found_disposition){.log = log_of(q),
                                                          .segment = segment,
                                                          .next_offset = 10 * segment + 10,
                                                          .disposition = disposition};
    return &it.segs[at];
}

/* Where it ends: at that segment. */
static struct leat_log_decision *decided(uint32_t q, uint64_t segment)
{
    struct leat_log_decision *decision = &it.decisions[alone.node.decision_count++];
    *decision = (struct leat_log_decision){
        .log = log_of(q),
        .kind = LEAT_DECIDED_TAIL,
        .tail = {.segment = segment,
                 .prefix_id = {100 + (uint32_t)segment, 7},
                 .next_offset = segment == UINT64_MAX ? 0 : 10 * segment + 10},
        .epoch = {9}};
    return decision;
}

static struct leat_begun_log *begins(uint32_t q)
{
    struct leat_begun_log *row = &it.begun->rows[it.begun->count++];
    *row = (struct leat_begun_log){.ref = log_of(q), .epoch = {8}};
    return row;
}

static leat_err adopts(unsigned core)
{
    struct leat_error error = {0};
    struct leat_node *node = &alone.node;
    node->dispositions =
        alone_exact(it.dispositions, node->found_count * sizeof it.dispositions[0]);
    node->decisions = alone_exact(it.decisions, node->decision_count * sizeof it.decisions[0]);
    leat_err rc = leat_adopt_on_core(node, &alone.cores[core], &error);
    free(node->dispositions);
    free(node->decisions);
    if (rc != LEAT_OK) said("error: %s", error.text);
    return rc;
}

/* ---- which logs, of what ---- */

/* Goal: each core makes its own logs, each of its own segments. */
static void cores_make_their_logs_of_their_segments(void **state)
{
    (void)state;
    begin();
    (void)found(0, 2, LEAT_DISPOSITION_SERVED), (void)found(0, 3, LEAT_DISPOSITION_SERVED);
    (void)found(1, 6, LEAT_DISPOSITION_SERVED);
    (void)decided(0, 3), (void)decided(1, 6);
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes 7/1/0, epoch 9, of 2 3; next 4 at 40, behind 103:7, older follow\n"
                "core 0 makes what is missing\n");
    assert_int_equal(it.partition.highest_segment, 3);
    assert_int_equal(it.partition.highest_offset, 40);
    assert_int_equal(it.partition.backfill, LEAT_BACKFILL_DUE);
    assert_int_equal(it.partition.backfill_ticks, LEAT_OLDER_TICKS - 1);
    assert_null(it.partition.segs);
    assert_int_equal(adopts(1), LEAT_OK);
    assert_said("core 1 makes 7/1/1, epoch 9, of 6; next 7 at 70, behind 106:7, older follow\n"
                "core 1 makes what is missing\n");
    alone.no_stream = true;
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes what is missing\n");
    end();
}

/* Goal: found rows of logs that were not decided, in front or behind, are nobody's. */
static void rows_of_other_logs_are_left(void **state)
{
    (void)state;
    begin();
    (void)found(0, 1, LEAT_DISPOSITION_SERVED), (void)found(1, 6, LEAT_DISPOSITION_SERVED);
    it.dispositions[0].log.streamlet = it.segs[0].log.streamlet = 0;
    it.dispositions[0].log.log = it.segs[0].log.log = 1;
    (void)found(1, 7, LEAT_DISPOSITION_SERVED);
    it.dispositions[2].log.stream = ALONE_STREAM + 1;
    (void)decided(1, 6);
    assert_int_equal(adopts(1), LEAT_OK);
    assert_said("core 1 makes 7/1/1, epoch 9, of 6; next 7 at 70, behind 106:7, older follow\n"
                "core 1 makes what is missing\n");
    end();
}

/* Goal: segments that are dropped do not count; segments that are kept count for how far the log went. */
static void dispositions_say_what_a_log_is_made_of(void **state)
{
    (void)state;
    begin();
    (void)found(0, 1, LEAT_DISPOSITION_SERVED), (void)found(0, 2, LEAT_DISPOSITION_KEPT);
    (void)found(0, 3, LEAT_DISPOSITION_REPLICA), (void)found(0, 4, LEAT_DISPOSITION_SERVED);
    (void)found(0, 9, LEAT_DISPOSITION_GONE);
    it.dispositions[1].next_offset = 1000;
    (void)decided(0, 4);
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said(
        "node log warn: log 7/1/0\n"
        "core 0 makes 7/1/0, epoch 9, of 1 4; next 5 at 50, behind 104:7, older follow, holes\n"
        "core 0 makes what is missing\n");
    assert_int_equal(it.partition.highest_segment, 4);
    assert_int_equal(it.partition.highest_offset, 1000);
    end();
}

/* Goal: a corrupt segment is the log's where other nodes have copies, from which the segment is repaired. A segment
 * that never reached its file is the log's only where other nodes know that: not as the first segment, not as the last,
 * and not beside another row of the same segment. */
static void lost_segments_are_the_logs_where_others_have_them(void **state)
{
    (void)state;
    static const struct {
        enum leat_segment_integrity integrity;
        bool duplicate, first, waits;
        uint32_t copies;
        uint64_t tail;
        bool served;
    } rows[] = {
        {LEAT_INTEGRITY_CORRUPT, false, false, false, 2, 6, true},
        {LEAT_INTEGRITY_CORRUPT, false, true, false, 2, 6, true},
        {LEAT_INTEGRITY_CORRUPT, true, false, false, 2, 5, true},
        {LEAT_INTEGRITY_OK, false, false, false, 2, 6, false},
        {LEAT_INTEGRITY_CORRUPT, false, false, false, 1, 6, false},
        {LEAT_INTEGRITY_CORRUPT, false, false, true, 2, 6, false},
        {LEAT_INTEGRITY_MISSING, false, false, false, 2, 6, true},
        {LEAT_INTEGRITY_MISSING, false, true, false, 2, 6, false},
        {LEAT_INTEGRITY_MISSING, true, false, false, 2, 6, false},
        {LEAT_INTEGRITY_MISSING, false, false, false, 2, 5, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        alone.desc->settings.copies = rows[i].copies;
        if (!rows[i].first) (void)found(0, 4, LEAT_DISPOSITION_SERVED);
        struct leat_segment *seg = found(0, 5, LEAT_DISPOSITION_KEPT);
        seg->integrity = rows[i].integrity;
        it.dispositions[alone.node.found_count - 1].duplicate = rows[i].duplicate;
        struct leat_log_decision *decision = decided(0, rows[i].tail);
        if (rows[i].waits) decision->kind = LEAT_DECIDED_WAIT;
        begins(0)->record.opened = true;
        assert_int_equal(adopts(0), LEAT_OK);
        char expected[1024];
        snprintf(expected, sizeof expected, "core 0 makes 7/1/0, epoch 9, of%s%s%s;",
                 rows[i].first ? "" : " 4", rows[i].served ? " 5" : "",
                 rows[i].first && !rows[i].served ? " none" : "");
        assert_said_first(expected);
        end();
    }
}

/* ---- where it goes on ---- */

static void log_goes_on_behind_its_decided_end(void **state)
{
    (void)state;
    begin();
    (void)decided(0, UINT64_MAX); /* the decided log has no segments, a segment of it is here */
    (void)found(0, 0, LEAT_DISPOSITION_KEPT);
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes 7/1/0, epoch 9, of none; next 0 at 0, behind 0:0\n"
                "core 0 makes what is missing\n");
    end();
    begin();
    (void)found(0, 0, LEAT_DISPOSITION_SERVED)->prefix_id; /* which goes on behind the end */
    it.segs[0].prefix_id.bytes = 120;
    (void)decided(0, 0)->tail;
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes 7/1/0, epoch 9, of 0; next 1 at 10, behind 120:7\n"
                "core 0 makes what is missing\n");
    assert_int_equal(it.partition.backfill, LEAT_BACKFILL_NONE);
    end();
    begin();
    (void)found(0, 0, LEAT_DISPOSITION_SERVED); /* where it ends is elsewhere */
    it.segs[0].prefix_id.bytes = 120;
    (void)decided(0, 1);
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes 7/1/0, epoch 9, of 0; next 2 at 20, behind 101:7\n"
                "core 0 makes what is missing\n");
    end();
    begin();
    (void)found(0, 2, LEAT_DISPOSITION_SERVED); /* behind a jump nothing is named */
    decided(0, 2)->tail.jumped = true;
    it.decisions[0].tail.next_offset = 1000;
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said(
        "core 0 makes 7/1/0, epoch 9, of 2; next 3 at 1000, behind 0:0, jumped, older follow\n"
        "core 0 makes what is missing\n");
    end();
}

/* Goal: segments that are missing before or between the log's own are asked for where other nodes may have them. */
static void missing_segments_follow_from_other_nodes(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        bool alone_here = i & 1, hole = i & 2, one_copy = i & 4;
        begin();
        if (alone_here) alone.node.options.cluster.node_address = NULL;
        alone.desc->settings.copies = one_copy ? 1 : 2;
        (void)found(0, hole ? 0 : 1, LEAT_DISPOSITION_SERVED),
            (void)found(0, hole ? 3 : 2, LEAT_DISPOSITION_SERVED);
        (void)decided(0, hole ? 3 : 2);
        assert_int_equal(adopts(0), LEAT_OK);
        bool holes = hole && !alone_here && !one_copy;
        char expected[1024];
        snprintf(expected, sizeof expected,
                 "%score 0 makes 7/1/0, epoch 9, of %s%s%s\ncore 0 makes what is missing\n",
                 holes ? "node log warn: log 7/1/0\n" : "",
                 hole ? "0 3; next 4 at 40, behind 103:7" : "1 2; next 3 at 30, behind 102:7",
                 holes || (!hole && !alone_here) ? ", older follow" : "", holes ? ", holes" : "");
        assert_said(expected);
        assert_int_equal(it.partition.backfill == LEAT_BACKFILL_DUE,
                         holes || (!hole && !alone_here));
        end();
    }
}

static char line[512];
static void see(void *ctx, enum leat_node_log_level level, const char *text)
{
    (void)ctx, (void)level;
    assert_string_equal(line, ""); /* one of each hole, and of nothing else */
    snprintf(line, sizeof line, "%s", text);
}

static void holes_are_named(void **state)
{
    (void)state;
    begin();
    (void)found(0, 1, LEAT_DISPOSITION_SERVED), (void)found(0, 2, LEAT_DISPOSITION_SERVED);
    (void)found(0, 5, LEAT_DISPOSITION_SERVED);
    (void)decided(0, 5);
    leat_node_log_set(see, NULL, LEAT_NODE_LOG_DEBUG);
    assert_int_equal(adopts(0), LEAT_OK);
    assert_string_equal(line,
                        "log 7/1/0: segments 3 to 4 are not here: unless offsets jumped there, "
                        "other nodes are asked for them");
    said_enough();
    end();
}

/* Goal: a log whose streamlet is adopted unchanged keeps the epoch of the streamlet. */
static void log_keeps_the_epoch_of_its_streamlet(void **state)
{
    (void)state;
    begin();
    (void)found(0, 0, LEAT_DISPOSITION_SERVED);
    decided(0, 0)->epoch.v = 0;
    alone.desc->streamlets[1].epoch.v = 6;
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes 7/1/0, epoch 6, of 0; next 1 at 10, behind 100:7\n"
                "core 0 makes what is missing\n");
    end();
}

/* ---- logs that wait ---- */

static void log_that_waits_stands_in_with_what_is_here(void **state)
{
    (void)state;
    begin();
    (void)found(0, 2, LEAT_DISPOSITION_SERVED), (void)found(0, 5, LEAT_DISPOSITION_KEPT);
    struct leat_log_decision *decision = decided(0, 7);
    decision->kind = LEAT_DECIDED_WAIT;
    snprintf(decision->why, sizeof decision->why, "its end is missing");
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes 7/1/0, epoch 9, of 2; next 6 at 30, behind 0:0, stands in\n"
                "it waits: its end is missing\n"
                "complain: stream \"orders\", streamlet 1, log 0 waits: its end is missing. Reads "
                "go on, appends are refused; if the data can't come back: leat log recover orders "
                "--streamlet 1 --log 0 --accept-loss\n"
                "core 0 makes what is missing\n");
    assert_int_equal(it.partition.seg_count, 1);
    assert_ptr_equal(it.partition.segs[0], &it.segs[0]);
    assert_int_equal(it.partition.highest_segment, 5);
    assert_int_equal(it.partition.highest_offset, 60);
    assert_int_equal(it.partition.backfill, LEAT_BACKFILL_NONE);
    end();
    begin(); /* nothing is here */
    decided(0, 7)->kind = LEAT_DECIDED_WAIT;
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said("core 0 makes 7/1/0, epoch 9, of none; next 0 at 0, behind 0:0, stands in\n"
                "it waits: \n"
                "complain: stream \"orders\", streamlet 1, log 0 waits: . Reads go on, appends are "
                "refused; if the data can't come back: leat log recover orders --streamlet 1 --log "
                "0 --accept-loss\n"
                "core 0 makes what is missing\n");
    assert_true(it.partition.highest_segment == UINT64_MAX);
    end();
}

/* Goal: a log whose end is decided, and may be on another node, is taken over like a log that has just moved here. */
static void log_whose_decided_end_is_elsewhere_is_asked_for(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        (void)found(0, 2, LEAT_DISPOSITION_REPLICA);
        decided(0, 2)->kind = LEAT_DECIDED_WAIT;
        if (i != 1) begins(0)->record.opened = i == 2;
        if (i == 3) alone.node.options.cluster.node_address = NULL;
        assert_int_equal(leat_adopt_awaits_tail(&alone.node, &alone.stream, log_of(0)), i == 0);
        assert_int_equal(adopts(0), LEAT_OK);
        if (i == 0)
            assert_said("core 0 asks for 7/1/0, epoch 8\ncore 0 makes what is missing\n");
        else
            assert_said_first(
                "core 0 makes 7/1/0, epoch 9, of none; next 3 at 0, behind 0:0, stands in");
        end();
    }
}

/* Goal: a log whose end is decided and here is made of this end, whatever the tables say of the log. */
static void log_whose_end_is_here_is_made(void **state)
{
    (void)state;
    begin();
    (void)found(0, 0, LEAT_DISPOSITION_SERVED), (void)decided(0, 0);
    (void)begins(0);
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said_first("core 0 makes 7/1/0, epoch 9, of 0; next 1 at 10, behind 100:7\n");
    end();
}

/* Goal: a log that is left to recovery is not made here. */
static void log_left_to_recovery_is_made_later(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        begin();
        (void)found(0, 2, LEAT_DISPOSITION_SERVED);
        decided(0, 2)->left = true;
        it.decisions[0].kind = i == 0 ? LEAT_DECIDED_WAIT : LEAT_DECIDED_TAIL;
        assert_int_equal(adopts(0), LEAT_OK);
        assert_said("core 0 makes what is missing\n");
        assert_true(alone.stream.logs_missing && alone.cores[0].data->logs_missing);
        end();
    }
}

/* ---- fresh logs ---- */

/* Goal: logs without data come last, and wait where there is no room; all other logs have to be made. */
static void fresh_logs_come_after_the_others(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        (void)decided(0, UINT64_MAX);
        (void)decided(0, 3);
        it.decisions[1].log.streamlet = 2;
        if (i == 1) it.heap_full = true;
        if (i == 2) alone.stream.logs_missing = true, it.heap_full = true;
        if (i == 3) alone.stream.has_groups = true;
        if (i == 3) it.heap_full = true;
        assert_int_equal(adopts(0), LEAT_OK);
        static const char *const fresh[] = {
            "has the heap room?\n"
            "core 0 makes 7/1/0, epoch 9, of none; next 0 at 0, behind 0:0\n",
            "has the heap room?\n"
            "node log info: logs of stream \"orders\" wait for memory that segments give back\n",
            "has the heap room?\n",
            "core 0 makes 7/1/0, epoch 9, of none; next 0 at 0, behind 0:0\n"};
        char expected[1024];
        snprintf(expected, sizeof expected, "%s%score 0 makes what is missing\n",
                 "core 0 makes 7/2/0, epoch 9, of none; next 4 at 40, behind 103:7\n", fresh[i]);
        assert_said(expected);
        assert_int_equal(alone.cores[0].data->logs_missing, i == 1 || i == 2);
        assert_int_equal(alone.stream.logs_missing, i == 1 || i == 2);
        end();
    }
}

/* Goal: a log of which anything is here, or was ever told, is not fresh. */
static void log_of_which_anything_is_known_is_not_fresh(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        begin();
        it.heap_full = true;
        struct leat_log_decision *decision = decided(0, UINT64_MAX);
        if (i == 0) (void)found(0, 0, LEAT_DISPOSITION_KEPT);
        if (i == 1) decision->kind = LEAT_DECIDED_WAIT;
        if (i == 2) decision->tail.segment = 0;
        if (i == 3) decision->tail.next_offset = 1;
        if (i == 4) decision->tail.jumped = true;
        if (i == 5) begins(0)->record.opened = true;
        assert_int_equal(adopts(0), LEAT_OK);
        assert_said_first("core 0 makes 7/1/0, epoch 9, of none;");
        assert_false(alone.cores[0].data->logs_missing);
        end();
    }
}

/* Goal: a log that can't be made ends the start, and the error names the log. A log without segments ends the start
 * only where the error can't pass. */
static void log_that_cant_be_made_ends_the_start(void **state)
{
    (void)state;
    static const leat_err errors[] = {LEAT_E_NO_MEMORY, LEAT_E_TOO_MANY, LEAT_E_DISK};
    for (unsigned i = 0; i < 6; i++) {
        bool fresh = i >= 3;
        begin();
        it.create = errors[i % 3];
        (void)decided(0, fresh ? UINT64_MAX : 3);
        bool waits = fresh && errors[i % 3] != LEAT_E_DISK;
        assert_int_equal(adopts(0), waits ? LEAT_OK : errors[i % 3]);
        char expected[1024];
        snprintf(expected, sizeof expected,
                 "%score 0 makes 7/1/0, epoch 9, of none; next %d at %d, behind %s\n",
                 fresh ? "has the heap room?\n" : "", fresh ? 0 : 4, fresh ? 0 : 40,
                 fresh ? "0:0" : "103:7");
        char rest[512];
        snprintf(
            rest, sizeof rest, "error: %s%s%s\n",
            "stream \"orders\", streamlet 1, log 0 can't be opened: ", leat_err_text(errors[i % 3]),
            errors[i % 3] == LEAT_E_TOO_MANY ? ": 131072 on one core; give it more --cores" : "");
        if (waits)
            snprintf(rest, sizeof rest, "%s",
                     "node log info: logs of stream \"orders\" wait for memory that segments give "
                     "back\ncore 0 makes what is missing\n");
        strncat(expected, rest, sizeof expected - strlen(expected) - 1);
        assert_said(expected);
        end();
    }
    begin();
    (void)found(0, 2, LEAT_DISPOSITION_SERVED), (void)decided(0, 2);
    leat_mem_fail_at(1);
    assert_int_equal(adopts(0), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_said_first("error: stream \"orders\", streamlet 1, log 0 can't be opened: ");
    end();
}

/* ---- what is damaged ---- */

static void damage_is_told(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        begin();
        (void)found(0, 0, LEAT_DISPOSITION_SERVED), (void)decided(0, 0);
        it.trouble = i & 1 ? LEAT_E_DAMAGED : LEAT_OK;
        it.front_unknown = i & 2;
        assert_int_equal(adopts(0), LEAT_OK);
        char expected[1024];
        snprintf(
            expected, sizeof expected,
            "core 0 makes 7/1/0, epoch 9, of 0; next 1 at 10, behind 100:7\n%score 0 makes what "
            "is missing\n",
            i & 1 ? "node log error: stream \"orders\", streamlet 1, log 0\n" : "");
        assert_said(expected);
        assert_int_equal(it.partition.damage_untold, i == 2);
        if (i & 1) assert_non_null(alone.cores[0].damaged_sum.what);
        end();
    }
}

/* Goal: where many logs are damaged their count is told at once, and does not wait for a next line. */
static void damage_of_many_logs_is_summed(void **state)
{
    (void)state;
    begin();
    it.trouble = LEAT_E_DAMAGED;
    (void)decided(0, 0);
    for (unsigned i = 0; i <= LEAT_NODE_LOG_SUM_LINES; i++) {
        it.partition = (struct leat_partition){.stream = &alone.stream, .damage_untold = true};
        it.partition.log = (void *)&it;
        leat_adopt_damage_tell(&alone.cores[0], &it.partition);
        assert_false(it.partition.damage_untold);
    }
    said_enough();
    it.trouble = LEAT_OK;
    it.decisions[0].log.log = 1; /* another core's */
    assert_int_equal(adopts(0), LEAT_OK);
    assert_said(
        "node log info: ... and 1 more logs have segments that are missing or damaged (leat "
        "cluster status) in 10 s\n"
        "core 0 makes what is missing\n");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_make_their_logs_of_their_segments),
        cmocka_unit_test(rows_of_other_logs_are_left),
        cmocka_unit_test(dispositions_say_what_a_log_is_made_of),
        cmocka_unit_test(lost_segments_are_the_logs_where_others_have_them),
        cmocka_unit_test(log_goes_on_behind_its_decided_end),
        cmocka_unit_test(missing_segments_follow_from_other_nodes),
        cmocka_unit_test(holes_are_named),
        cmocka_unit_test(log_keeps_the_epoch_of_its_streamlet),
        cmocka_unit_test(log_that_waits_stands_in_with_what_is_here),
        cmocka_unit_test(log_whose_decided_end_is_elsewhere_is_asked_for),
        cmocka_unit_test(log_whose_end_is_here_is_made),
        cmocka_unit_test(log_left_to_recovery_is_made_later),
        cmocka_unit_test(fresh_logs_come_after_the_others),
        cmocka_unit_test(log_of_which_anything_is_known_is_not_fresh),
        cmocka_unit_test(log_that_cant_be_made_ends_the_start),
        cmocka_unit_test(damage_is_told),
        cmocka_unit_test(damage_of_many_logs_is_summed),
    };
    return cmocka_run_group_tests_name("broker adopt", tests, NULL, NULL);
}
