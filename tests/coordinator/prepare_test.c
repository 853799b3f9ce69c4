/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt of recovery between collecting and committing, against a plain second telling of its rules: over
 * worlds drawn by dice, what is decided of each log, who waits for what, who owns each streamlet, on which nodes
 * copies are made, and the entry byte by byte. Where a log ends by its rows is metadata/tail.c's, which has
 * tests of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/random.h"
#include "coordinator/membership/state.h"
#include "coordinator/metadata/assign.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/decide_rows.h"
#include "tests/coordinator/prepare_rig.h"

/* ---- the rules, told again ---- */

static bool is_up(uint32_t node)
{
    return machine->nodes[node].info.state == LEAT_NODE_UP && !machine->nodes[node].info.crashed;
}

/* Nobody is left who may have more: of this incarnation, up for so long. */
static bool nobody_is_left(uint64_t up_us)
{
    for (uint32_t i = 0; i < machine->node_count; i++) {
        const struct leat_node_info *info = &machine->nodes[i].info;
        bool gone =
            info->state == LEAT_NODE_GONE || (info->state == LEAT_NODE_DOWN && info->draining);
        bool heard = info->state == LEAT_NODE_UP && co_node_heard(it, i) &&
                     it->seen[i].incarnation == info->incarnation &&
                     it->now_us - it->seen[i].since_us >= up_us;
        if (!gone && !heard) return false;
    }
    return true;
}

static const struct leat_stream_settings *settings_of(const struct co_recover_streamlet *streamlet)
{
    return &leat_machine_stream_find(machine, streamlet->ref.stream)->desc->settings;
}

static unsigned expected_waits;
static void expect_wait(const struct co_recover_log *log, const char *why)
{
    if (expected_waits >= waited_count)
        fail_msg("log %u does not wait: %s", (unsigned)(log - it->logs), why);
    assert_int_equal(waited[expected_waits].log, log - it->logs);
    assert_string_equal(waited[expected_waits++].why, why);
}

static void expect_wait_of_copies(const struct co_recover_streamlet *streamlet,
                                  const struct co_recover_log *log, const char *why)
{
    char more[320];
    uint16_t owner =
        leat_machine_stream_find(machine, streamlet->ref.stream)->owners[streamlet->ref.streamlet];
    if (settings_of(streamlet)->copies > 1 || owner == LEAT_OWNER_NONE ||
        machine->nodes[owner].info.state == LEAT_NODE_UP)
        snprintf(more, sizeof more, "%s", why);
    else
        snprintf(more, sizeof more,
                 "it has one copy, and node n%u, which served it, is down; %.150s", owner, why);
    expect_wait(log, more);
}

/* Its rows of nodes that live, by node and segment: those are sorted by now. */
static size_t rows_of(const struct co_recover_log *log, struct co_row **out)
{
    size_t count = 0;
    for (size_t i = 0; i < it->row_count; i++)
        if (leat_log_ref_equal(it->rows[i].row.log, log->ref) && is_up(it->rows[i].node))
            out[count++] = &it->rows[i];
    return count;
}

static void expect_before(const struct co_recover_log *log, struct co_row **rows, size_t count)
{
    const struct leat_replica_row *names = NULL;
    for (size_t i = 0; i < count; i++)
        if (log->seen.opened && rows[i]->holds && rows[i]->row.kind == LEAT_REPLICA_MARK &&
            rows[i]->row.only_start)
            names = &rows[i]->row;
    assert_int_equal(log->before.bytes, names ? names->previous.bytes : 0);
    assert_int_equal(log->before.crc, names ? names->previous.crc : 0);
    if (names) assert_int_equal(log->before_next_offset, names->base_offset);
    for (size_t i = 0; i < count; i++) {
        const struct leat_replica_row *row = &rows[i]->row;
        bool is = names && row->kind != LEAT_REPLICA_LOST &&
                  row->segment == log->tail.segment - 1 &&
                  row->prefix_id.bytes == names->previous.bytes &&
                  row->prefix_id.crc == names->previous.crc;
        assert_int_equal(rows[i]->before, is);
    }
}

/* Decided or not as its rows say. */
static bool expect_decided(const struct co_recover_streamlet *streamlet,
                           const struct co_recover_log *log, char why[240])
{
    struct co_row *rows[ROWS_MAX];
    const struct leat_replica_row *of[ROWS_MAX];
    uint32_t nodes[ROWS_MAX];
    bool holds[ROWS_MAX];
    size_t count = rows_of(log, rows);
    struct leat_log_decision decision;
    for (size_t i = 0; i < count; i++) {
        of[i] = &rows[i]->row;
        nodes[i] = rows[i]->node;
    }
    struct co_hearing heard = {nodes, settings_of(streamlet)->copies / 2 + 1, nobody_is_left(0)};
    co_decide_replicas(log->ref, &log->seen, of, count, &heard, &decision, holds);
    snprintf(why, 240, "%s", decision.why);
    assert_int_equal(log->undecided, decision.kind == LEAT_DECIDED_WAIT);
    for (size_t i = 0; i < it->row_count; i++) /* who died since counts for no copy */
        if (leat_log_ref_equal(it->rows[i].row.log, log->ref) && !is_up(it->rows[i].node))
            assert_false(it->rows[i].holds || it->rows[i].before);
    if (log->undecided) return false;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(rows[i]->holds, holds[i]);
    assert_memory_equal(&log->tail.segment, &decision.tail.segment, sizeof decision.tail.segment);
    assert_int_equal(log->tail.prefix_id.bytes, decision.tail.prefix_id.bytes);
    assert_int_equal(log->tail.prefix_id.crc, decision.tail.prefix_id.crc);
    assert_int_equal(log->tail.next_offset, decision.tail.next_offset);
    assert_int_equal(log->tail.jumped, decision.tail.jumped);
    expect_before(log, rows, count);
    return true;
}

static bool is_served(const struct co_recover_streamlet *streamlet,
                      const struct co_recover_log *log)
{
    return !streamlet->takes && (!log->seen.opened || log->seen.stamp_epoch.v == log->seen_epoch.v);
}

/* A streamlet of one copy, of which one log waits, waits whole where it would get another owner. */
static void expect_decisions(bool last, uint32_t waits)
{
    uint32_t expected = 0;
    expected_waits = 0;
    for (uint32_t s = 0; s < it->streamlet_count; s++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[s];
        bool decided[2] = {false}, any_waits = false;
        for (uint32_t q = 0; q < streamlet->logs; q++) {
            struct co_recover_log *log = &it->logs[streamlet->first + q];
            char why[240];
            if (is_served(streamlet, log)) {
                assert_int_equal(log->decision,
                                 log->seen.opened ? LEAT_RECOVER_WAITS : LEAT_RECOVER_STANDS);
                continue;
            }
            const bool undecided = log->undecided,
                       alone = settings_of(streamlet)->copies == 1 && streamlet->takes;
            if (alone &&
                undecided) { /* by itself, or for another's sake: that is told apart below */
                any_waits = true;
                continue;
            }
            decided[q] = expect_decided(streamlet, log, why);
            expected += !decided[q];
            assert_int_equal(log->decision, !decided[q]        ? LEAT_RECOVER_WAITS
                                            : log->seen.opened ? LEAT_RECOVER_TAIL
                                                               : LEAT_RECOVER_STANDS);
            if (!decided[q] && last) expect_wait_of_copies(streamlet, log, why);
        }
        if (!any_waits) continue;
        uint32_t by_themselves = 0;
        for (unsigned pass = 0; pass < 2; pass++)
            for (uint32_t q = 0; q < streamlet->logs; q++) {
                struct co_recover_log copy = it->logs[streamlet->first + q],
                                      *log = &it->logs[streamlet->first + q];
                struct co_row *rows[ROWS_MAX];
                const struct leat_replica_row *of[ROWS_MAX];
                uint32_t nodes[ROWS_MAX];
                bool holds[ROWS_MAX];
                struct leat_log_decision decision;
                size_t count = rows_of(&copy, rows);
                for (size_t i = 0; i < count; i++) {
                    of[i] = &rows[i]->row;
                    nodes[i] = rows[i]->node;
                }
                struct co_hearing heard = {nodes, 1, nobody_is_left(0)};
                co_decide_replicas(log->ref, &log->seen, of, count, &heard, &decision, holds);
                bool alone = decision.kind == LEAT_DECIDED_WAIT;
                assert_true(log->undecided);
                assert_int_equal(log->decision, LEAT_RECOVER_WAITS);
                if (alone != (pass == 0)) continue;
                expected++;
                by_themselves += alone;
                if (last)
                    expect_wait_of_copies(streamlet, log,
                                          alone ? decision.why
                                                : "the only copy of its streamlet's logs is away");
            }
        assert_true(by_themselves > 0); /* for nothing none waits */
    }
    assert_int_equal(waits, expected);
    assert_int_equal(waited_count, expected_waits);
    for (size_t i = 1; i < it->row_count; i++) {
        const struct co_row *a = &it->rows[i - 1], *b = &it->rows[i];
        int order = leat_log_ref_order(a->row.log, b->row.log);
        bool sorted =
            order < 0 || (order == 0 && (a->node < b->node ||
                                         (a->node == b->node && a->row.segment <= b->row.segment)));
        assert_true(sorted);
    }
}

/* ---- owners and copies ---- */

static bool row_counts(const struct co_row *row, const struct co_recover_log *log, uint32_t node,
                       bool before, bool durable)
{
    return leat_log_ref_equal(row->row.log, log->ref) && row->node == node &&
           (before ? row->before : row->holds) && (!durable || row->row.durable);
}
static bool has(const struct co_recover_log *log, uint32_t node, bool before, bool durable)
{
    for (size_t i = 0; i < it->row_count; i++)
        if (row_counts(&it->rows[i], log, node, before, durable)) return true;
    return false;
}

static bool decided_any(const struct co_recover_log *log)
{
    return log->decision != LEAT_RECOVER_WAITS;
}

/* Nothing of it is decided, and all were heard: the node that had it, or whoever has fewest. */
static int answers_for(const struct co_recover_streamlet *streamlet)
{
    int best = -1;
    for (uint32_t q = 0; q < streamlet->logs; q++)
        if (!it->logs[streamlet->first + q].undecided) return -1;
    if (!nobody_is_left(CO_ALL_HEARD_US)) return -1;
    uint16_t had =
        leat_machine_stream_find(machine, streamlet->ref.stream)->owners[streamlet->ref.streamlet];
    if (had != LEAT_OWNER_NONE && co_node_heard(it, had)) return had;
    for (uint32_t i = machine->node_count; i-- > 0;)
        if (co_node_heard(it, i) && is_up(i) && !machine->nodes[i].info.draining &&
            (best < 0 || machine->nodes[i].info.streamlets <= machine->nodes[best].info.streamlets))
            best = (int)i;
    return best;
}

struct load {
    uint64_t streamlets[LEAT_NODES_MAX], logs[LEAT_NODES_MAX];
};

/* Not draining before draining, with room before without, then who holds most, then who has least, then the first. */
static int best_owner(const struct co_recover_streamlet *streamlet, const struct load *load,
                      const struct co_recover_log *seen)
{
    int best = -1;
    uint64_t best_rank = 0;
    for (uint32_t i = machine->node_count; i-- > 0;) {
        const struct leat_machine_node *node = &machine->nodes[i];
        if (!co_node_heard(it, i) || !is_up(i)) continue;
        uint64_t logs = node->logs + load->logs[i] + streamlet->logs, held = 0;
        bool room = node->info.logs_most == 0 || logs <= node->info.logs_most;
        for (uint32_t q = 0; q < streamlet->logs; q++) {
            const struct co_recover_log *log = &seen[streamlet->first + q];
            held += decided_any(log) && has(log, i, false, false);
        }
        uint64_t rank = (node->info.draining ? 0 : 1u << 30) + (room ? 1u << 29 : 0) +
                        (held << 16) + (1000 - node->info.streamlets - load->streamlets[i]);
        if (best >= 0 && rank < best_rank) continue;
        best = (int)i;
        best_rank = rank;
    }
    return best;
}

static struct co_task expected_tasks[TASKS_MAX];
static uint32_t expected_task_count;

static void expect_copies(uint32_t index, uint32_t owner, uint32_t copies, bool disk, bool before)
{
    const struct co_recover_log *log = &it->logs[index];
    bool shall[LEAT_NODES_MAX] = {false}, is[LEAT_NODES_MAX] = {false};
    uint32_t have = 0;
    for (uint32_t i = 0; i < machine->node_count; i++)
        have += is[i] = has(log, i, before, disk);
    if (!is[owner] && (!before || have < copies)) shall[owner] = true, have++;
    for (unsigned holders = 1; holders < 2; holders--)
        for (uint32_t n = 1; n < machine->node_count; n++) {
            uint32_t i = (owner + n) % machine->node_count;
            if (have >= copies || is[i] || shall[i] || !co_node_heard(it, i) || !is_up(i)) continue;
            if (holders && !has(log, i, before, false)) continue;
            shall[i] = true;
            have++;
        }
    for (uint32_t i = 0; i < machine->node_count; i++)
        if (shall[i]) expected_tasks[expected_task_count++] = (struct co_task){index, i, before};
}

static uint32_t nodes_at_least(void)
{
    uint32_t live = 0, back = 0;
    for (uint32_t i = 0; i < machine->node_count; i++) {
        live += is_up(i);
        back += machine->nodes[i].info.state == LEAT_NODE_DOWN && !machine->nodes[i].info.draining;
    }
    return live >= 2 || live + back < 2 ? (live + back < 2 ? live + back : live) : 2;
}

static int task_order(const void *left, const void *right)
{
    const struct co_task *a = left, *b = right;
    return a->node != b->node ? (a->node < b->node ? -1 : 1) : 0;
}

/* Owners first, all of them; then logs in their order. `seen` is what was decided before. */
static void expect_plan(const struct co_recover_log *seen)
{
    struct load load = {0};
    uint32_t able = 0;
    expected_task_count = expected_waits = 0;
    for (uint32_t i = 0; i < machine->node_count; i++)
        able += co_node_heard(it, i) && is_up(i);
    for (uint32_t s = 0; s < it->streamlet_count; s++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[s];
        uint64_t owner = streamlet->seen_owner;
        int node = streamlet->takes ? answers_for(streamlet) : -1;
        if (streamlet->takes && node < 0) node = best_owner(streamlet, &load, seen);
        if (node >= 0) {
            owner = machine->nodes[node].info.incarnation;
            load.streamlets[node]++;
            load.logs[node] += streamlet->logs;
        }
        if (streamlet->owner != owner) fail_msg("seed %u: streamlet %u", (unsigned)it->attempt, s);
        for (uint32_t q = 0; q < streamlet->logs && streamlet->takes && node < 0; q++)
            if (seen[streamlet->first + q].decision != LEAT_RECOVER_WAITS)
                expect_wait(&it->logs[streamlet->first + q], "no node is up that could own it");
    }
    for (uint32_t s = 0; s < it->streamlet_count; s++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[s];
        const struct leat_stream_settings *settings = settings_of(streamlet);
        uint32_t copies =
            settings->min_copies < nodes_at_least() ? settings->min_copies : nodes_at_least();
        const struct leat_machine_node *owner =
            leat_machine_incarnation_find(machine, streamlet->owner);
        for (uint32_t q = 0; q < streamlet->logs && owner; q++) {
            const struct co_recover_log *log = &seen[streamlet->first + q];
            bool lacks = log->decision == LEAT_RECOVER_TAIL ||
                         (log->decision == LEAT_RECOVER_STANDS && streamlet->takes);
            if (!lacks || log->tail.segment == UINT64_MAX || log->tail.jumped) continue;
            if (streamlet->takes && streamlet->owner == streamlet->seen_owner && able == 0)
                continue; /* it waits already */
            if (able < copies) {
                expect_wait(&it->logs[streamlet->first + q],
                            "too few of the nodes that are up answer to hold its end");
                continue;
            }
            bool disk = settings->durability == LEAT_DURABILITY_DISK;
            expect_copies(streamlet->first + q, leat_machine_node_index(machine, owner), copies,
                          disk, false);
            if (log->before.bytes)
                expect_copies(streamlet->first + q, leat_machine_node_index(machine, owner), copies,
                              disk, true);
        }
    }
    assert_int_equal(waited_count, expected_waits);
    /* Of each node one behind the other, in the order of logs. */
    assert_int_equal(it->task_count, expected_task_count);
    assert_int_equal(it->tasks_open, expected_task_count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < machine->node_count && expected_task_count; i++) {
        assert_int_equal(it->pulls[i].next, at);
        for (uint32_t t = 0; t < expected_task_count; t++) {
            if (expected_tasks[t].node != i) continue;
            assert_int_equal(task_order(&it->tasks[at], &expected_tasks[t]), 0);
            assert_int_equal(it->tasks[at].log, expected_tasks[t].log);
            assert_int_equal(it->tasks[at++].before, expected_tasks[t].before);
        }
        assert_int_equal(it->pulls[i].end, at);
    }
}

/* ---- the entry ---- */

static bool is_wanted(const struct co_recover_streamlet *streamlet,
                      const struct co_recover_log *seen)
{
    bool all_wait = true, any = false;
    for (uint32_t q = 0; q < streamlet->logs; q++) {
        const struct co_recover_log *log = &seen[streamlet->first + q];
        bool tells = nobody_is_left(CO_ALL_HEARD_US) && log->undecided && log->seen.opened &&
                     !decided_any(log);
        all_wait = all_wait && !decided_any(log);
        any = any || log->decision == LEAT_RECOVER_TAIL || (decided_any(log) && streamlet->takes);
        any = any || (tells && !streamlet->takes && log->seen.heard != machine->next_incarnation);
    }
    return any || (all_wait && streamlet->takes && answers_for(streamlet) >= 0);
}

static void expect_numbers(struct leat_msg_reader *reader, const uint64_t *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_true(leat_msg_read_u64(reader) == values[i]);
}

/* Whether the replica may have acked records. A lost or empty replica has none; any other replica of the log's stamp
 * epoch may have some. A replica of another epoch has none if the log had no segment when the stamp epoch began, or if
 * the record names the place where that epoch began, and the replica lies after that place. In the segment of that
 * place the replica must have exactly that end, if the record has its length. Any other replica of another epoch must
 * be closed and not provisional. */
static bool is_left(const struct leat_log_record *record, const struct leat_replica_row *row)
{
    const struct leat_tail_record *began = &record->began;
    if (row->kind == LEAT_REPLICA_LOST || row->prefix_id.bytes == 0) return false;
    if (row->epoch.v == record->stamp_epoch.v) return true;
    if (began->segment == UINT64_MAX) return false;
    if (began->prefix_id.bytes > 0 || began->jumped) {
        if (row->segment > began->segment) return false;
        if (row->segment == began->segment && began->prefix_id.bytes > 0)
            return row->holds_tail || (row->prefix_id.bytes == began->prefix_id.bytes &&
                                       row->prefix_id.crc == began->prefix_id.crc);
    }
    return row->kind == LEAT_REPLICA_CLOSED && !row->provisional;
}

/* The best that is left: of the highest segment, as the latest owner wrote it, a closed copy, the shortest, or else the
 * longest that is open; cut where the epoch began. */
static struct leat_tail_record best_left(const struct co_recover_log *log)
{
    struct leat_tail_record best = {.segment = UINT64_MAX};
    uint64_t best_rank = 0;
    for (size_t i = 0; i < it->row_count; i++) {
        const struct leat_replica_row *row = &it->rows[i].row;
        const bool closed = row->kind == LEAT_REPLICA_CLOSED;
        if (!leat_log_ref_equal(row->log, log->ref) || !is_left(&log->seen, row)) continue;
        uint64_t rank =
            (row->segment + 1) << 48 | (uint64_t)row->epoch.v << 40 |
            (closed ? (uint64_t)1 << 39 | (1000 - row->prefix_id.bytes) : row->prefix_id.bytes);
        if (rank <= best_rank) continue;
        best_rank = rank;
        best = (struct leat_tail_record){
            .segment = row->segment, .prefix_id = row->prefix_id, .next_offset = row->next_offset};
        const struct leat_tail_record *began = &log->seen.began;
        if (row->epoch.v == log->seen.stamp_epoch.v || row->segment != began->segment ||
            began->prefix_id.bytes == 0)
            continue;
        best.prefix_id = began->prefix_id;
        if (!began->jumped) best.next_offset = began->next_offset;
    }
    return best;
}

static void expect_row(struct leat_msg_reader *reader, const struct co_recover_log *log)
{
    const bool tells =
        nobody_is_left(CO_ALL_HEARD_US) && log->undecided && log->seen.opened && !decided_any(log);
    const bool tail = log->decision == LEAT_RECOVER_TAIL;
    struct leat_tail_record is = log->tail;
    assert_int_equal(leat_msg_read_array(reader), tail ? 9 : tells ? 10 : 5);
    expect_numbers(reader,
                   (uint64_t[]){log->ref.log, log->seen_epoch.v,
                                log->seen.opened ? log->seen.stamp_epoch.v : 0,
                                log->seen.opened ? log->seen.stamp_version : 0,
                                (uint64_t)log->decision},
                   5);
    if (tells) is = best_left(log);
    if (tail || tells)
        expect_numbers(
            reader, (uint64_t[]){is.segment, is.prefix_id.bytes, is.prefix_id.crc, is.next_offset},
            4);
    if (tells) expect_numbers(reader, (uint64_t[]){machine->next_incarnation}, 1);
}

static unsigned expect_command(size_t bytes, const struct co_recover_log *seen)
{
    struct leat_msg_reader reader;
    uint32_t count = 0;
    for (uint32_t s = 0; s < it->streamlet_count; s++)
        count += is_wanted(&it->streamlets[s], seen);
    if (count == 0) {
        assert_int_equal(bytes, 0);
        return 0;
    }
    leat_msg_reader_init(&reader, it->command, bytes);
    assert_int_equal(leat_msg_read_array(&reader), 7);
    expect_numbers(&reader,
                   (uint64_t[]){LEAT_COMMAND_VERSION, LEAT_COMMAND_ASSIGN, LEAT_ASSIGN_RECOVERY, 0,
                                it->attempt, 0},
                   6);
    assert_int_equal(leat_msg_read_array(&reader), count);
    for (uint32_t s = 0; s < it->streamlet_count; s++) {
        const struct co_recover_streamlet *streamlet = &it->streamlets[s];
        if (!is_wanted(streamlet, seen)) continue;
        assert_int_equal(leat_msg_read_array(&reader), 6);
        expect_numbers(&reader,
                       (uint64_t[]){streamlet->ref.stream, streamlet->ref.streamlet,
                                    streamlet->seen_owner, streamlet->seen_epoch.v,
                                    streamlet->owner},
                       5);
        assert_int_equal(leat_msg_read_array(&reader), streamlet->logs);
        for (uint32_t q = 0; q < streamlet->logs; q++)
            expect_row(&reader, &seen[streamlet->first + q]);
    }
    assert_true(leat_msg_read_done(&reader));
    assert_int_equal(it->next_streamlet, it->streamlet_count);
    assert_int_equal(co_recovery_command(coordinator), 0);
    return count;
}

static void recovery_is_prepared_as_its_rules_say(void **state)
{
    (void)state;
    unsigned tasks = 0, wanted = 0, waits = 0;
    for (uint64_t seed = 1; seed <= 12000; seed++) {
        world_make(seed);
        const bool last = seed % 4 != 0;
        if (seed % 3 == 0) { /* it was tried before all had answered */
            const size_t all = it->row_count;
            it->row_count /= 2;
            (void)co_recovery_decide(coordinator, false);
            assert_int_equal(waited_count, 0);
            it->row_count = all;
            it->sorted = false;
        }
        uint32_t undecided = co_recovery_decide(coordinator, last);
        expect_decisions(last, undecided);
        waits += undecided;
        waited_count = 0;
        struct co_recover_log seen[LOGS_MAX];
        memcpy(seen, it->logs, sizeof seen);
        assert_int_equal(co_recovery_plan(coordinator), LEAT_OK);
        expect_plan(seen);
        tasks += expected_task_count;
        memcpy(seen, it->logs, sizeof seen);
        wanted += expect_command(co_recovery_command(coordinator), seen);
        world_end();
    }
    assert_true(tasks > 9000 && wanted > 9000 && waits > 9000);
}

/* An attempt of many logs is several entries, each below its limit, none of a streamlet twice. */
static void entry_takes_as_many_streamlets_as_fit(void **state)
{
    (void)state;
    enum { MANY = 16000 };
    world_make(1);
    free(it->streamlets);
    it->streamlets = calloc(MANY, sizeof *it->streamlets);
    assert_non_null(it->streamlets);
    it->streamlet_count = MANY;
    it->logs[0] = (struct co_recover_log){.decision = LEAT_RECOVER_STANDS, .seen_epoch = {3}};
    for (uint32_t i = 0; i < MANY; i++)
        it->streamlets[i] =
            (struct co_recover_streamlet){.ref = {1, i}, .logs = 1, .takes = i % 5 != 0};
    const uint32_t each =
        (CO_RECOVER_COMMAND_BYTES - LEAT_ASSIGN_HEAD_BYTES_MAX) / LEAT_ASSIGN_ROW_BYTES_MAX;
    uint32_t next = 0, total = 0;
    for (size_t bytes; (bytes = co_recovery_command(coordinator)) > 0;) {
        struct leat_msg_reader reader;
        leat_msg_reader_init(&reader, it->command, bytes);
        (void)leat_msg_read_array(&reader);
        leat_msg_skip_n(&reader, 6);
        uint32_t count = leat_msg_read_array(&reader);
        total += count;
        for (uint32_t i = 0; i < count; i++) {
            while (next % 5 == 0)
                next++; /* those are served, and nothing is said of them */
            assert_int_equal(leat_msg_read_array(&reader), 6);
            (void)leat_msg_read_u64(&reader);
            assert_int_equal(leat_msg_read_u64(&reader), next++);
            leat_msg_skip_n(&reader, 4);
        }
        assert_true(leat_msg_read_done(&reader));
        assert_int_equal(count, total < MANY / 5 * 4 ? each : count < each ? count : each);
    }
    assert_int_equal(total, MANY / 5 * 4);
    /* Without memory for it nothing is said, and nothing is passed over. */
    it->next_streamlet = 0;
    leat_mem_fail_at(1);
    assert_int_equal(co_recovery_command(coordinator), 0);
    leat_mem_fail_at(0);
    assert_int_equal(it->next_streamlet, 0);
    world_end();
}

/* More rows of one log than are looked at: the rest counts for nothing. */
static void rows_beyond_those_that_are_looked_at_count_for_nothing(void **state)
{
    (void)state;
    enum { LOOKED_AT = 256 };
    for (uint32_t more = 0; more < 3; more++) {
        world_make(1);
        machine->nodes[0].info.state = LEAT_NODE_UP;
        machine->nodes[0].info.crashed = false;
        it->streamlet_count = it->log_count = it->streamlets[0].logs = 1;
        it->streamlets[0].takes = true;
        it->logs[0].seen =
            (struct leat_log_record){.opened = true, .stamp_epoch = {2}, .stamp_version = 1};
        it->row_count = LOOKED_AT - 1 + more;
        for (size_t i = 0; i < it->row_count; i++)
            it->rows[i] = (struct co_row){
                .row = {.log = it->logs[0].ref, .segment = i, .kind = LEAT_REPLICA_LOST}};
        (void)co_recovery_decide(coordinator, false);
        assert_int_equal(it->logs[0].row_count, more < 2 ? LOOKED_AT - 1 + more : LOOKED_AT);
        world_end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recovery_is_prepared_as_its_rules_say),
        cmocka_unit_test(entry_takes_as_many_streamlets_as_fit),
        cmocka_unit_test(rows_beyond_those_that_are_looked_at_count_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
