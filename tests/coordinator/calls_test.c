/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of the leader of recovery to a node, and the node's report of its replicas: each body decodes to the
 * values that were encoded, both ways; bodies that are malformed, too large or not to be believed are refused; and no
 * node fences a node that no entry has declared crashed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/membership/requests.h"
#include "coordinator/membership/state.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/calls_rig.h"

/* Streamlets 1/0, 1/1, 2/0 and a deleted streamlet, and the nodes that have crashed. */
static void attempt_make(void)
{
    static const struct co_streamlet refs[] = {{2, 0}, {1, 1}, {9, 0}, {1, 0}}; /* not in order */
    it->streamlets = leat_mem_calloc(LEAT_MEM_COORDINATOR, 4, sizeof *it->streamlets);
    it->crashed = leat_mem_calloc(LEAT_MEM_COORDINATOR, 2, sizeof *it->crashed);
    assert_true(it->streamlets && it->crashed);
    for (uint32_t i = 0; i < 4; i++)
        it->streamlets[i].ref = refs[i];
    it->streamlet_count = 4;
    snprintf(it->crashed[0].name, sizeof it->crashed[0].name, "n4");
    it->crashed[0].incarnation = 14;
    snprintf(it->crashed[1].name, sizeof it->crashed[1].name, "n2");
    it->crashed[1].incarnation = 11; /* of before */
    it->crashed_count = 2;
}

static struct leat_replica_row row_any(void)
{
    return (struct leat_replica_row){
        .log = {(uint32_t)below(9), (uint32_t)below(9), (uint32_t)below(9)},
        .segment = leat_xoshiro_next(&dice),
        .kind = LEAT_REPLICA_MARK + (enum leat_replica_kind)below(3),
        .epoch = {(uint32_t)below(UINT32_MAX)},
        .version = (uint32_t)below(UINT32_MAX),
        .prefix_id = {(uint32_t)below(UINT32_MAX), (uint32_t)below(UINT32_MAX)},
        .previous = {(uint32_t)below(UINT32_MAX), (uint32_t)below(UINT32_MAX)},
        .base_offset = leat_xoshiro_next(&dice),
        .next_offset = leat_xoshiro_next(&dice),
        .max_timestamp_ms = (int64_t)leat_xoshiro_next(&dice),
        .only_start = below(2),
        .torn = below(2),
        .durable = below(2),
        .holds_tail = below(2),
        .provisional = below(2)};
}

static void expect_row(const struct leat_replica_row *a, const struct leat_replica_row *b)
{
    assert_true(leat_log_ref_equal(a->log, b->log) && a->segment == b->segment &&
                a->kind == b->kind);
    assert_true(a->epoch.v == b->epoch.v && a->version == b->version);
    assert_true(a->prefix_id.bytes == b->prefix_id.bytes && a->prefix_id.crc == b->prefix_id.crc);
    assert_true(a->previous.bytes == b->previous.bytes && a->previous.crc == b->previous.crc);
    assert_true(a->base_offset == b->base_offset && a->next_offset == b->next_offset);
    assert_true(a->max_timestamp_ms == b->max_timestamp_ms && a->only_start == b->only_start);
    assert_true(a->torn == b->torn && a->durable == b->durable && a->holds_tail == b->holds_tail &&
                a->provisional == b->provisional);
}

/* ---- collecting ---- */

static void expect_asked(const struct leat_collect *collect)
{
    static const struct leat_log_ref logs[] = {{1, 0, 0}, {1, 0, 1}, {1, 1, 0},
                                               {1, 1, 1}, {2, 0, 0}, {2, 0, 1}};
    assert_int_equal(collect->attempt, ATTEMPT);
    assert_int_equal(collect->crashed_count, 2);
    assert_string_equal(collect->crashed[0].name, "n4");
    assert_int_equal(collect->crashed[0].incarnation, 14);
    assert_string_equal(collect->crashed[1].name, "n2");
    assert_int_equal(collect->crashed[1].incarnation, 11);
    assert_int_equal(collect->log_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_true(leat_log_ref_equal(collect->logs[i].log, logs[i]));
        assert_true(collect->logs[i].record.opened);
        assert_int_equal(collect->logs[i].record.stamp_version, i % 4 + 1);
    }
}

static void collect_answer(struct leat_collect *collect, size_t count,
                           struct leat_replica_row *keep)
{
    collect->rows = leat_mem_calloc(LEAT_MEM_COORDINATOR, count + 1, sizeof *collect->rows);
    assert_non_null(collect->rows);
    for (size_t i = 0; i < count; i++)
        collect->rows[i] = keep[i] = row_any();
    collect->row_count = count;
    leat_collected(&post, collect);
}

static void node_is_asked_what_it_holds_and_says_it(void **state)
{
    (void)state;
    static uint8_t payload[65536];
    struct leat_replica_row rows[ROWS];
    attempt_make();
    co_recovery_ask(leader, 1);
    assert_int_equal(state_told, 1);
    assert_int_equal(call->kind, CO_KIND_COLLECT);
    assert_int_equal(call->timeout_us, CO_COLLECT_WAIT_US_MAX);
    struct leat_frame frame = frame_of(payload);
    node->applied = INDEX - 1;
    co_collect_take(node, &frame, &ticket);
    assert_int_equal(behind, 1);
    co_collect_advance(node);
    assert_int_equal(collect_count, 0); /* it has not applied what the leader has */
    node->applied = INDEX;
    co_collect_advance(node);
    co_collect_advance(node);
    assert_int_equal(collect_count, 1);
    expect_asked(collects[0]);
    collect_answer(collects[0], ROWS, rows);
    assert_int_equal(node->recovery->collecting_count, 1);
    mails_deliver(node);
    assert_int_equal(node->recovery->collecting_count, 0);
    assert_true(leat_list_empty(&node->recovery->collects));
    assert_int_equal(answer_rc, LEAT_OK);
    struct co_attempt_said said;
    assert_int_equal(co_attempt_said_decode(answer_control, answer_control_bytes, &said), LEAT_OK);
    assert_int_equal(said.attempt, ATTEMPT);
    answer_arrives(LEAT_OK);
    assert_int_equal(given.calls, 1);
    assert_true(given.incarnation == NODE && given.attempt == ATTEMPT && given.rc == LEAT_OK &&
                given.count == ROWS);
    for (size_t i = 0; i < ROWS; i++)
        expect_row(&given.rows[i], &rows[i]);
}

/* The leader asks itself without a link. */
static void leader_asks_itself(void **state)
{
    (void)state;
    struct leat_replica_row rows[ROWS];
    attempt_make();
    co_recovery_ask(leader, 0);
    assert_null(call);
    co_collect_advance(leader);
    assert_int_equal(collect_count, 1);
    expect_asked(collects[0]);
    collect_answer(collects[0], 3, rows);
    mails_deliver(leader);
    assert_true(given.calls == 1 && given.incarnation == LEADER && given.attempt == ATTEMPT &&
                given.rc == LEAT_OK && given.count == 3);
    expect_row(&given.rows[2], &rows[2]);
    assert_int_equal(answer_rc, (leat_err)-1);
}

/* A node that can't be asked counts as without an answer, at once; a call that is taken back ends without any
 * answer. */
static void node_that_cannot_be_asked_has_no_answer(void **state)
{
    (void)state;
    attempt_make();
    link_rc = LEAT_E_AGAIN;
    co_recovery_ask(leader, 1);
    assert_true(given.calls == 1 && given.rc == LEAT_E_AGAIN && given.incarnation == NODE &&
                given.attempt == ATTEMPT);
    link_rc = LEAT_OK;
    no_peer = true;
    co_recovery_ask(leader, 1);
    assert_true(given.calls == 2 && given.rc == LEAT_E_CLOSED);
    no_peer = false;
    for (uint32_t n = 0; n < 2; n++)
        for (unsigned f = 1; f <= (n ? 1 : 4); f++) {
            leat_mem_fail_at(f);
            co_recovery_ask(leader, n);
            leat_mem_fail_at(0);
            assert_int_equal(given.rc, LEAT_E_NO_MEMORY);
        }
    assert_int_equal(given.calls, 7);
    co_recovery_ask(leader, 1);
    answer_arrives(LEAT_E_TIMEOUT);
    assert_true(given.calls == 8 && given.rc == LEAT_E_TIMEOUT);
    co_recovery_ask(leader, 1);
    answer_arrives(LEAT_E_CANCELLED);
    assert_int_equal(given.calls, 8);
    co_recovery_ask(leader, 1);
    answer_control_bytes = 0;
    answer_payload_bytes = 1;
    answer_payload[0] = 0xc1; /* no rows */
    answer_arrives(LEAT_OK);
    assert_true(given.calls == 9 && given.rc == LEAT_E_INVALID && given.count == 0);
}

/* A fence is for good: it follows entries committed here, for an incarnation that has crashed or has a successor. */
static void nobody_is_fenced_whom_no_entry_declared_crashed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t incarnation;
        bool fenced;
    } cases[] = {{"n4", 14, true}, {"n4", 13, true},  {"n4", 15, false}, {"n2", 12, false},
                 {"n2", 11, true}, {"n2", 13, false}, {"n9", 1, false},  {"", 1, false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (unsigned at = 0; at < 2; at++) {
            struct leat_crashed_node crashed[2] = {{.name = "n4", .incarnation = 14},
                                                   {.name = "n4", .incarnation = 14}};
            snprintf(crashed[at].name, sizeof crashed[at].name, "%s", cases[c].name);
            crashed[at].incarnation = cases[c].incarnation;
            const struct co_collect_asked asked = {crashed, 2, NULL, 0};
            collect_count = 0;
            answer_rc = (leat_err)-1;
            assert_int_equal(co_collect_add(node, ATTEMPT, INDEX, &asked, &ticket), LEAT_OK);
            co_collect_advance(node);
            if (collect_count != cases[c].fenced)
                fail_msg("%s %u", cases[c].name, (unsigned)cases[c].incarnation);
            if (!cases[c].fenced) assert_int_equal(answer_rc, LEAT_E_DENIED);
            if (!cases[c].fenced) continue;
            collects[0]->rc = LEAT_E_DISK;
            leat_collected(&post, collects[0]);
            mails_deliver(node);
            assert_int_equal(answer_rc, LEAT_E_DISK);
        }
    assert_int_equal(node->recovery->collecting_count, 0);
}

/* Goal: what is refused is freed at once, and the list is not followed from there. */
static void collect_after_a_refused_one_comes_in_the_next_turn(void **state)
{
    (void)state;
    struct leat_crashed_node lives = {.name = "n4", .incarnation = 15};
    const struct co_collect_asked refused = {&lives, 1, NULL, 0}, none = {0};
    answer_rc = (leat_err)-1;
    assert_int_equal(co_collect_add(node, 1, INDEX, &refused, &ticket), LEAT_OK);
    assert_int_equal(co_collect_add(node, 2, INDEX, &none, &ticket), LEAT_OK);
    co_collect_advance(node);
    assert_int_equal(answer_rc, LEAT_E_DENIED);
    assert_int_equal(collect_count, 0);
    assert_int_equal(node->recovery->collecting_count, 1);
    co_collect_advance(node);
    assert_int_equal(collect_count, 1);
    assert_int_equal(collects[0]->attempt, 2);
    collects[0]->rc = LEAT_E_DISK;
    leat_collected(&post, collects[0]);
    mails_deliver(node);
    assert_int_equal(node->recovery->collecting_count, 0);
}

static void collecting_has_limits(void **state)
{
    (void)state;
    const struct co_collect_asked none = {0};
    for (unsigned i = 0; i < CO_COLLECTS_MAX; i++)
        assert_int_equal(co_collect_add(node, i, INDEX + (i == 0), &none, &ticket), LEAT_OK);
    assert_int_equal(co_collect_add(node, 9, INDEX, &none, &ticket), LEAT_E_AGAIN);
    co_collect_advance(node);
    assert_int_equal(collect_count, CO_COLLECTS_MAX - 1);
    assert_int_equal(collects[0]->attempt, 1);
    /* One that no answer can hold, and one for which memory lacks. */
    collects[0]->rows = NULL;
    collects[0]->row_count = CO_COLLECT_ROWS_MAX + 1;
    leat_collected(&post, collects[0]);
    mails_deliver(node);
    assert_int_equal(answer_rc, LEAT_E_TOO_LARGE);
    for (unsigned f = 1; f <= 2; f++) {
        leat_collected(&post, collects[f]);
        leat_mem_fail_at(f);
        mails_deliver(node);
        leat_mem_fail_at(0);
        assert_int_equal(answer_rc, LEAT_E_NO_MEMORY);
    }
    link_rc = LEAT_E_CLOSED; /* whoever asked has gone; as many rows as an answer can hold */
    answer_rc = LEAT_OK;
    collects[3]->row_count = CO_COLLECT_ROWS_MAX;
    collects[3]->rows =
        leat_mem_calloc(LEAT_MEM_COORDINATOR, CO_COLLECT_ROWS_MAX, sizeof *collects[3]->rows);
    assert_non_null(collects[3]->rows);
    leat_collected(&post, collects[3]);
    mails_deliver(node);
    assert_int_equal(answer_rc, LEAT_OK);
    assert_int_equal(node->recovery->collecting_count, CO_COLLECTS_MAX - 4);
    for (unsigned f = 1; f <= 3; f++) {
        leat_mem_fail_at(f);
        assert_int_equal(co_collect_add(node, 9, INDEX, &none, &ticket), LEAT_E_NO_MEMORY);
        leat_mem_fail_at(0);
    }
}

/* As many logs as an attempt has, and one more. */
static void logs_of_one_question_are_limited(void **state)
{
    (void)state;
    static struct co_streamlet refs[CO_COLLECT_LOGS_MAX / 2 + 1];
    for (uint32_t i = 0; i < CO_COLLECT_LOGS_MAX / 2 + 1; i++)
        refs[i] = (struct co_streamlet){1, i % 2};
    for (unsigned more = 0; more < 2; more++) {
        const struct co_collect_asked asked = {.streamlets = refs,
                                               .streamlet_count = CO_COLLECT_LOGS_MAX / 2 + more};
        assert_int_equal(co_collect_add(node, 1, INDEX, &asked, &ticket), LEAT_OK);
        co_collect_advance(node);
        assert_int_equal(collect_count, 1);
        if (!more) assert_int_equal(collects[0]->log_count, CO_COLLECT_LOGS_MAX);
        if (more) assert_int_equal(answer_rc, LEAT_E_TOO_LARGE);
    }
    const struct co_collect_asked asked = {.streamlets = refs, .streamlet_count = 1};
    assert_int_equal(co_collect_add(node, 1, INDEX, &asked, &ticket), LEAT_OK);
    leat_mem_fail_at(1);
    co_collect_advance(node);
    leat_mem_fail_at(0);
    assert_int_equal(answer_rc, LEAT_E_NO_MEMORY);
}

/* Of any length but its own; and every number of things that is not one. */
static void question_that_is_malformed_is_refused(void **state)
{
    (void)state;
    static uint8_t payload[65536];
    attempt_make();
    co_recovery_ask(leader, 1);
    struct leat_frame frame = frame_of(payload), cut = frame;
    for (cut.payload_bytes = 0; cut.payload_bytes <= frame.payload_bytes + 1; cut.payload_bytes++) {
        if (cut.payload_bytes == frame.payload_bytes) continue;
        answer_rc = (leat_err)-1;
        co_collect_take(node, &cut, &ticket);
        assert_int_equal(answer_rc, LEAT_E_INVALID);
    }
    cut = frame;
    for (cut.control_bytes = 0; cut.control_bytes < frame.control_bytes; cut.control_bytes++) {
        answer_rc = (leat_err)-1;
        co_collect_take(node, &cut, &ticket);
        assert_int_equal(answer_rc, LEAT_E_INVALID);
    }
    for (unsigned f = 1; f <= 2; f++) {
        leat_mem_fail_at(f);
        co_collect_take(node, &frame, &ticket);
        leat_mem_fail_at(0);
        assert_int_equal(answer_rc, LEAT_E_NO_MEMORY);
    }
    assert_int_equal(node->recovery->collecting_count + behind, 0);
    answer_arrives(LEAT_E_CANCELLED);
}

/* Numbers and names that have no room here, with all that they say there is. */
static void question_of_too_much_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t crashed, name_bytes, streamlets;
        bool fits;
    } cases[] = {{LEAT_NODES_MAX, LEAT_NODE_NAME_BYTES_MAX, CO_COLLECT_LOGS_MAX, true},
                 {LEAT_NODES_MAX + 1, 1, 0, false},
                 {1, LEAT_NODE_NAME_BYTES_MAX + 1, 0, false},
                 {0, 0, CO_COLLECT_LOGS_MAX + 1, false}};
    static uint8_t payload[1024 * 1024];
    char name[LEAT_NODE_NAME_BYTES_MAX + 2];
    memset(name, 'n', sizeof name);
    attempt_make();
    co_recovery_ask(leader, 1);
    struct leat_frame frame = frame_of(payload);
    frame.payload = payload;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct leat_msg_writer w;
        leat_msg_writer_init(&w, payload, sizeof payload);
        leat_msg_write_array(&w, 2);
        leat_msg_write_array(&w, cases[c].crashed);
        for (uint32_t i = 0; i < cases[c].crashed; i++) {
            leat_msg_write_array(&w, 2);
            leat_msg_write_string(&w, name, cases[c].name_bytes);
            leat_msg_write_u64(&w, 1);
        }
        leat_msg_write_array(&w, cases[c].streamlets);
        for (uint32_t i = 0; i < 2 * cases[c].streamlets; i++) {
            if (i % 2 == 0) leat_msg_write_array(&w, 2);
            leat_msg_write_u64(&w, 1);
        }
        frame.payload_bytes = w.used;
        answer_rc = (leat_err)-1;
        co_collect_take(node, &frame, &ticket);
        assert_int_equal(answer_rc, cases[c].fits ? (leat_err)-1 : LEAT_E_INVALID);
        assert_int_equal(node->recovery->collecting_count, 1);
    }
    co_collect_advance(node);
    assert_int_equal(answer_rc, LEAT_E_DENIED); /* no entry says that they crashed */
    answer_arrives(LEAT_E_CANCELLED);
}

/* Rows as other versions may write them: further fields are skipped; rows with fewer fields, or of an unknown kind of
 * replica, are refused. */
static void rows_of_another_form(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 7; c++) {
        uint8_t bytes[512];
        struct leat_msg_writer w;
        struct leat_replica_row *rows = NULL;
        size_t count = 0;
        const uint64_t kinds[] = {1, 3, 0, 4, 1, 1, 1};
        const uint32_t fields = c == 4 ? 18 : c == 5 ? 21 : 19;
        leat_msg_writer_init(&w, bytes, sizeof bytes);
        leat_msg_write_array(&w, 2);
        for (unsigned i = 0; i < 2; i++) {
            leat_msg_write_array(&w, fields);
            for (unsigned k = 0; k < fields; k++) {
                if (k >= 14 && k < 19)
                    leat_msg_write_bool(&w, k == 14);
                else
                    leat_msg_write_u64(&w, k == 4 ? kinds[c] : 100 + k);
            }
        }
        leat_err rc = co_rows_decode(bytes, w.used + (c == 6), &rows, &count);
        const bool right = c < 2 || c == 5;
        if (rc != (right ? LEAT_OK : LEAT_E_INVALID)) fail_msg("case %u", c);
        if (!right) continue;
        assert_int_equal(count, 2);
        assert_int_equal(rows[1].next_offset, 112);
        assert_true(rows[1].only_start && !rows[1].provisional);
        leat_mem_free(rows);
    }
    static uint8_t many[CO_COLLECT_ROWS_MAX + 16];
    struct leat_msg_writer w;
    struct leat_replica_row *rows;
    size_t count;
    leat_msg_writer_init(&w, many, sizeof many);
    leat_msg_write_array(&w, CO_COLLECT_ROWS_MAX + 1);
    assert_int_equal(co_rows_decode(many, sizeof many, &rows, &count), LEAT_E_INVALID);
    /* As many rows as there may be, and one more, all there. */
    for (uint32_t more = 0; more < 2; more++) {
        const size_t capacity = (CO_COLLECT_ROWS_MAX + 1) * 64;
        uint8_t *all = calloc(capacity, 1);
        assert_non_null(all);
        leat_msg_writer_init(&w, all, capacity);
        leat_msg_write_array(&w, CO_COLLECT_ROWS_MAX + more);
        for (uint32_t i = 0; i < CO_COLLECT_ROWS_MAX + more; i++) {
            leat_msg_write_array(&w, 19);
            for (unsigned k = 0; k < 19; k++)
                if (k >= 14)
                    leat_msg_write_bool(&w, false);
                else
                    leat_msg_write_u64(&w, 1);
        }
        assert_false(w.overflow);
        assert_int_equal(co_rows_decode(all, w.used, &rows, &count),
                         more ? LEAT_E_INVALID : LEAT_OK);
        if (!more) assert_int_equal(count, CO_COLLECT_ROWS_MAX);
        if (!more) leat_mem_free(rows);
        free(all);
    }
    const uint8_t empty[] = {0x90};
    leat_mem_fail_at(1);
    assert_int_equal(co_rows_decode(empty, 1, &rows, &count), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    assert_int_equal(co_rows_decode(empty, 1, &rows, &count), LEAT_OK);
    assert_int_equal(count, 0);
    leat_mem_free(rows);
}

/* What the tables know of where logs end. */
static void tails_are_as_the_tables_have_them(void **state)
{
    (void)state;
    struct leat_coordinate request = {.stream_id = 2, .streamlet = 1};
    assert_int_equal(co_tails_answer(node, &request), LEAT_OK);
    assert_true(request.end_count == 2 && request.epoch.v == 41 && request.incarnation == 31);
    for (uint32_t q = 0; q < 2; q++) {
        assert_true(leat_log_ref_equal(request.ends[q].log, (struct leat_log_ref){2, 1, q}));
        assert_int_equal(request.ends[q].epoch.v, 21);
        assert_int_equal(request.ends[q].record.stamp_version, 3 + q);
        assert_int_equal(request.ends[q].waits, q == 0); /* its marks are of epoch 20 */
    }
    leat_mem_free(request.ends);
    struct leat_stream_settings *settings =
        &leat_machine_stream_find(&node->machine, 2)->desc->settings;
    settings->logs = 1; /* a streamlet of one log */
    request.streamlet = 0;
    assert_int_equal(co_tails_answer(node, &request), LEAT_OK);
    assert_int_equal(request.end_count, 1);
    leat_mem_free(request.ends);
    settings->logs = 2;
    request.streamlet = 1;
    leat_mem_fail_at(1);
    assert_int_equal(co_tails_answer(node, &request), LEAT_E_NO_MEMORY);
    leat_mem_fail_at(0);
    request.streamlet = 2;
    assert_int_equal(co_tails_answer(node, &request), LEAT_E_UNKNOWN_STREAM);
    request.stream_id = 4;
    request.streamlet = 0;
    assert_int_equal(co_tails_answer(node, &request), LEAT_E_UNKNOWN_STREAM);
}

/* The room for a question grows with what is asked: many streamlets of few nodes. */
static void many_streamlets_of_few_nodes_are_asked_for(void **state)
{
    (void)state;
    enum { MANY = 500 };
    attempt_make();
    leat_mem_free(it->streamlets);
    it->streamlets = leat_mem_calloc(LEAT_MEM_COORDINATOR, MANY, sizeof *it->streamlets);
    assert_non_null(it->streamlets);
    for (uint32_t i = 0; i < MANY; i++)
        it->streamlets[i].ref = (struct co_streamlet){UINT32_MAX, UINT32_MAX};
    it->streamlet_count = MANY;
    co_recovery_ask(leader, 1);
    assert_non_null(call);
    assert_true(call->payload[0].bytes > 10 * MANY);
    answer_arrives(LEAT_E_TIMEOUT);
}

/* Goal: a question whose link has gone is asked of the tables all the same; and a stream of one log has its log. */
static void question_of_a_link_that_has_gone_is_looked_up(void **state)
{
    (void)state;
    static uint8_t payload[65536];
    const struct leat_link_ticket gone = {.slot = 0, .request = 5};
    attempt_make();
    it->streamlets[0].ref = (struct co_streamlet){3, 1};
    it->streamlet_count = 1;
    leat_machine_stream_find(&node->machine, 3)->desc->settings.logs = 1;
    co_recovery_ask(leader, 1);
    struct leat_frame frame = frame_of(payload);
    co_collect_take(node, &frame, &gone);
    assert_int_equal(behind, 0);
    co_collect_advance(node);
    assert_int_equal(collect_count, 1);
    assert_int_equal(collects[0]->log_count, 1);
    assert_true(leat_log_ref_equal(collects[0]->logs[0].log, (struct leat_log_ref){3, 1, 0}));
    leat_collected(&post, collects[0]);
    mails_deliver(node);
    answer_arrives(LEAT_E_TIMEOUT);
    leat_machine_stream_find(&node->machine, 3)->desc->settings.logs = 2;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(node_is_asked_what_it_holds_and_says_it),
        CALLS_TEST(leader_asks_itself),
        CALLS_TEST(node_that_cannot_be_asked_has_no_answer),
        CALLS_TEST(nobody_is_fenced_whom_no_entry_declared_crashed),
        CALLS_TEST(collecting_has_limits),
        CALLS_TEST(collect_after_a_refused_one_comes_in_the_next_turn),
        CALLS_TEST(logs_of_one_question_are_limited),
        CALLS_TEST(question_that_is_malformed_is_refused),
        CALLS_TEST(question_of_too_much_is_refused),
        CALLS_TEST(rows_of_another_form),
        CALLS_TEST(tails_are_as_the_tables_have_them),
        CALLS_TEST(many_streamlets_of_few_nodes_are_asked_for),
        CALLS_TEST(question_of_a_link_that_has_gone_is_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
