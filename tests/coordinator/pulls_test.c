/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of the leader of recovery to a node to make copies, and the node's report of the results, both ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coordinator/membership/state.h"
#include "coordinator/recovery/attempt.h"
#include "tests/coordinator/calls_rig.h"

/* ---- pulling ---- */

/* Each log is held by n2 (twice) and n3, and by n4, which has crashed; a task for the tail and one for the segment
 * before. */
static void tasks_make(uint32_t count)
{
    it->logs = leat_mem_calloc(LEAT_MEM_COORDINATOR, count, sizeof *it->logs);
    it->rows = leat_mem_calloc(LEAT_MEM_COORDINATOR, 4 * (size_t)count, sizeof *it->rows);
    it->tasks = leat_mem_calloc(LEAT_MEM_COORDINATOR, count, sizeof *it->tasks);
    assert_true(it->logs && it->rows && it->tasks);
    for (uint32_t i = 0; i < count; i++) {
        it->logs[i] = (struct co_recover_log){
            .ref = {1 + i % 4, i / 2 % 2, i % 2},
            .seen = {.opened = true, .stamp_epoch = {50 + i}, .stamp_version = 60 + i},
            .tail = {.segment = 70 + i, .prefix_id = {80 + i, 90 + i}, .next_offset = 100 + i},
            .before = {110 + i, 120 + i},
            .before_next_offset = 130 + i,
            .row_first = 4 * i,
            .row_count = 4};
        const uint32_t nodes[] = {2, 2, 3, 4};
        for (uint32_t k = 0; k < 4; k++)
            it->rows[4 * i + k] = (struct co_row){
                .node = nodes[k], .holds = i % 2 == 0 || k == 2, .before = i % 2 == 1 && k != 2};
        it->tasks[i] = (struct co_task){i, 1, i % 2 == 1};
    }
    it->task_count = it->tasks_open = count;
    it->pulls[1].end = count;
}

/* For task i: the tail from n2 and n3, or the segment before it from n2. */
static void expect_pull(const struct leat_pull *pull, uint32_t i)
{
    const bool before = i % 2 == 1;
    assert_int_equal(pull->attempt, ATTEMPT);
    assert_true(leat_log_ref_equal(pull->log, (struct leat_log_ref){1 + i % 4, i / 2 % 2, i % 2}));
    assert_int_equal(pull->segment, before ? 69 + i : 70 + i);
    assert_int_equal(pull->prefix_id.bytes, before ? 110 + i : 80 + i);
    assert_int_equal(pull->prefix_id.crc, before ? 120 + i : 90 + i);
    assert_int_equal(pull->next_offset, before ? 130 + i : 100 + i);
    assert_int_equal(pull->epoch.v, 50 + i);
    assert_int_equal(pull->version, 60 + i);
    assert_int_equal(pull->durability, i % 4 == 0
                                           ? LEAT_DURABILITY_MEMORY
                                           : LEAT_DURABILITY_DISK); /* also of one that is gone */
    assert_int_equal(pull->source_count, before ? 1 : 2);
    for (uint32_t k = 0; k < pull->source_count; k++) {
        char name[8], address[16];
        snprintf(name, sizeof name, "n%u", 2 + k);
        snprintf(address, sizeof address, "host%u:%u", 2 + k, 2 + k);
        assert_string_equal(pull->sources[k].node, name);
        assert_string_equal(pull->sources[k].node_address, address);
        assert_int_equal(pull->sources[k].incarnation, 12 + k);
    }
}

static void node_is_asked_for_copies_and_says_what_came_of_them(void **state)
{
    (void)state;
    static uint8_t payload[65536];
    tasks_make(LOGS);
    it->pulls[1].next = 2;
    for (unsigned local = 0; local < 2; local++) {
        struct leat_coordinator *asked = local ? leader : node;
        leader->incarnation = local ? NODE : LEADER; /* then the leader is the one to make them */
        it->pulls[1].in_flight = 0;
        co_recovery_pull(leader, 1);
        assert_int_equal(it->pulls[1].in_flight, LOGS - 2);
        co_recovery_pull(leader, 1); /* one message at a time */
        assert_int_equal(call != NULL, !local);
        if (!local) {
            struct leat_frame frame = frame_of(payload);
            assert_int_equal(call->kind, CO_KIND_PULL);
            assert_int_equal(call->timeout_us, CO_PULL_US_MAX);
            co_pull_take(node, &frame, &ticket);
        }
        assert_int_equal(pull_count, LOGS - 2);
        for (uint32_t i = 0; i < LOGS - 2; i++)
            expect_pull(pulls[i], i + 2);
        given.calls = 0;
        for (uint32_t i = LOGS - 2; i-- > 0;) {
            pulls[i]->rc = i % 3 ? LEAT_OK : LEAT_E_DISK;
            snprintf(pulls[i]->error.text, sizeof pulls[i]->error.text, "copy %u", i);
            leat_pulled(&post, pulls[i]);
            if (i == 0) assert_int_equal(asked->recovery->pulling_count, 1);
            mails_deliver(asked);
        }
        assert_int_equal(asked->recovery->pulling_count, 0);
        assert_true(leat_list_empty(&asked->recovery->pullings));
        if (!local) {
            struct leat_msg_reader reader;
            leat_msg_reader_init(&reader, answer_control, answer_control_bytes);
            (void)leat_msg_read_array(&reader);
            struct leat_msg_string text = leat_msg_read_string(&reader);
            assert_memory_equal(text.text, "copy 0", 6); /* the first that failed */
            answer_arrives(LEAT_OK);
        }
        assert_int_equal(given.calls, 1);
        assert_true(given.incarnation == NODE && given.attempt == ATTEMPT &&
                    given.count == LOGS - 2);
        for (uint32_t i = 0; i < LOGS - 2; i++)
            assert_int_equal(given.codes[i], i % 3 ? LEAT_OK : LEAT_E_DISK);
        pull_count = 0;
    }
}

/* Goal: of copies that are all made nothing is said but that they are. */
static void copies_that_are_all_made_have_no_text(void **state)
{
    (void)state;
    static uint8_t payload[65536];
    tasks_make(LOGS);
    co_recovery_pull(leader, 1);
    struct leat_frame frame = frame_of(payload);
    co_pull_take(node, &frame, &ticket);
    assert_int_equal(pull_count, LOGS);
    for (uint32_t i = 0; i < LOGS; i++) {
        pulls[i]->rc = LEAT_OK;
        snprintf(pulls[i]->error.text, sizeof pulls[i]->error.text, "none");
        leat_pulled(&post, pulls[i]);
        mails_deliver(node);
    }
    struct leat_msg_reader reader;
    leat_msg_reader_init(&reader, answer_control, answer_control_bytes);
    (void)leat_msg_read_array(&reader);
    assert_int_equal(leat_msg_read_string(&reader).bytes, 0);
    answer_arrives(LEAT_OK);
    assert_int_equal(given.count, LOGS);
    for (uint32_t i = 0; i < LOGS; i++)
        assert_int_equal(given.codes[i], LEAT_OK);
}

/* Goal: the leader makes as many copies at once as a message holds, and hears of each; or of none, without memory. A
 * sanitizer sees a code behind the last. */
static void leader_hears_of_as_many_copies_as_a_message_holds(void **state)
{
    (void)state;
    tasks_make(CO_PULLS_MAX);
    it->pulls[0].end = CO_PULLS_MAX;
    leat_mem_fail_at(1);
    co_recovery_pull(leader, 0);
    leat_mem_fail_at(0);
    for (unsigned made = 0; made < 2; made++) {
        assert_true(given.calls == 1 && given.incarnation == LEADER);
        assert_int_equal(given.count, CO_PULLS_MAX);
        for (uint32_t i = 0; i < CO_PULLS_MAX; i++)
            assert_int_equal(given.codes[i], made ? LEAT_OK : LEAT_E_NO_MEMORY);
        if (made) break;
        given.calls = 0;
        it->pulls[0].in_flight = 0;
        co_recovery_pull(leader, 0);
        assert_int_equal(pull_count, CO_PULLS_MAX);
        for (uint32_t i = 0; i < CO_PULLS_MAX; i++) {
            pulls[i]->rc = LEAT_OK;
            leat_pulled(&post, pulls[i]);
            mails_deliver(leader);
        }
    }
    assert_int_equal(leader->recovery->pulling_count, 0);
}

/* Nodes with rows of the task's own log, each once, none that lacks what is wanted; as many as a message holds. */
static void sources_are_the_nodes_that_hold_it(void **state)
{
    (void)state;
    static uint8_t payload[65536];
    const struct {
        uint32_t rows;
        struct {
            uint32_t node;
            bool holds;
        } row[LEAT_PULL_SOURCES_MAX + 1];
        const char *sources;
    } logs[] = {
        {1, {{2, true}}, "n2"},
        {1, {{2, true}}, "n2"}, /* though the row before, of another log, is of that node too */
        {5, {{3, false}, {3, true}, {3, true}, {0, true}, {2, false}}, "n3n0"}};
    tasks_make(LOGS);
    uint32_t at = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const bool many = i == 3;
        it->tasks[i].before = false;
        it->logs[i].row_first = at;
        it->logs[i].row_count = many ? LEAT_PULL_SOURCES_MAX + 1 : logs[i].rows;
        for (uint32_t k = 0; k < it->logs[i].row_count; k++)
            it->rows[at++] = (struct co_row){.node = many ? k % 2 : logs[i].row[k].node,
                                             .holds = many || logs[i].row[k].holds};
    }
    it->pulls[1].end = 4;
    co_recovery_pull(leader, 1);
    struct leat_frame frame = frame_of(payload);
    co_pull_take(node, &frame, &ticket);
    assert_int_equal(pull_count, 4);
    for (uint32_t i = 0; i < 3; i++) {
        char all[64] = "";
        for (uint32_t k = 0; k < pulls[i]->source_count; k++)
            snprintf(all + 2 * (size_t)k, sizeof all - 2 * (size_t)k, "%.2s",
                     pulls[i]->sources[k].node);
        assert_string_equal(all, logs[i].sources);
    }
    assert_int_equal(pulls[3]->source_count, LEAT_PULL_SOURCES_MAX);
    answer_arrives(LEAT_E_CANCELLED);
}

static void copies_are_asked_for_in_messages_that_hold_them(void **state)
{
    (void)state;
    static uint8_t payload[1 << 20];
    tasks_make(CO_PULLS_MAX + 3);
    co_recovery_pull(leader, 2);
    assert_null(call); /* nothing is to be made there */
    co_recovery_pull(leader, 1);
    struct leat_frame frame = frame_of(payload);
    co_pull_take(node, &frame, &ticket);
    assert_int_equal(pull_count, CO_PULLS_MAX);
    answer_arrives(LEAT_E_CANCELLED);
    assert_int_equal(given.calls, 0);
    it->pulls[1].in_flight = 0;
    it->pulls[1].next = CO_PULLS_MAX;
    co_recovery_pull(leader, 1);
    frame = frame_of(payload);
    co_pull_take(node, &frame, &ticket);
    assert_int_equal(pull_count, CO_PULLS_MAX + 3);
    expect_pull(pulls[CO_PULLS_MAX + 2], CO_PULLS_MAX + 2);
    answer_arrives(LEAT_E_CANCELLED);
}

static void expect_all_failed(leat_err rc, unsigned calls)
{
    assert_int_equal(given.calls, calls);
    assert_true(given.incarnation == NODE && given.attempt == ATTEMPT && given.count == LOGS);
    for (uint32_t i = 0; i < LOGS; i++)
        assert_int_equal(given.codes[i], rc);
    it->pulls[1].in_flight = 0;
}

static void node_that_cannot_be_asked_for_copies_made_none(void **state)
{
    (void)state;
    tasks_make(LOGS);
    link_rc = LEAT_E_AGAIN;
    co_recovery_pull(leader, 1);
    expect_all_failed(LEAT_E_AGAIN, 1);
    link_rc = LEAT_OK;
    no_peer = true;
    co_recovery_pull(leader, 1);
    expect_all_failed(LEAT_E_CLOSED, 2);
    no_peer = false;
    for (unsigned f = 1; f <= 2; f++) {
        leat_mem_fail_at(f);
        co_recovery_pull(leader, 1);
        leat_mem_fail_at(0);
        expect_all_failed(LEAT_E_NO_MEMORY, 2 + f);
    }
    co_recovery_pull(leader, 1);
    answer_arrives(LEAT_E_TIMEOUT);
    expect_all_failed(LEAT_E_TIMEOUT, 5);
}

static void answer_about_copies_that_is_malformed_is_none(void **state)
{
    (void)state;
    tasks_make(LOGS);
    for (unsigned c = 0; c < 4; c++) { /* right; one code less, one more; cut off */
        const uint32_t count = LOGS + (c == 2) - (c == 1);
        struct leat_msg_writer w;
        leat_msg_writer_init(&w, answer_control, sizeof answer_control);
        leat_msg_write_array(&w, 2);
        leat_msg_write_string(&w, "", 0);
        leat_msg_write_array(&w, count);
        for (uint32_t i = 0; i < count; i++)
            leat_msg_write_u64(&w, LEAT_E_DISK);
        answer_control_bytes = w.used - (c == 3);
        answer_payload_bytes = 0;
        co_recovery_pull(leader, 1);
        answer_arrives(LEAT_OK);
        expect_all_failed(c == 0 ? LEAT_E_DISK : LEAT_E_INVALID, c + 1);
    }
}

static void copies_that_are_malformed_or_too_many_are_refused(void **state)
{
    (void)state;
    static uint8_t payload[65536];
    tasks_make(LOGS);
    co_recovery_pull(leader, 1);
    struct leat_frame frame = frame_of(payload), cut = frame;
    for (cut.payload_bytes = 0; cut.payload_bytes <= frame.payload_bytes + 1; cut.payload_bytes++) {
        if (cut.payload_bytes == frame.payload_bytes) continue;
        answer_rc = (leat_err)-1;
        co_pull_take(node, &cut, &ticket);
        assert_int_equal(answer_rc, LEAT_E_INVALID);
    }
    cut = frame;
    cut.control_bytes = 0;
    answer_rc = (leat_err)-1;
    co_pull_take(node, &cut, &ticket);
    assert_int_equal(answer_rc, LEAT_E_INVALID);
    for (unsigned f = 1; f <= 2; f++) {
        answer_rc = (leat_err)-1;
        leat_mem_fail_at(f);
        co_pull_take(node, &frame, &ticket);
        leat_mem_fail_at(0);
        assert_int_equal(answer_rc, LEAT_E_NO_MEMORY);
    }
    assert_int_equal(pull_count + node->recovery->pulling_count, 0);
    for (unsigned i = 0; i < CO_PULLINGS_MAX; i++)
        co_pull_take(node, &frame, &ticket);
    assert_int_equal(answer_rc, LEAT_E_NO_MEMORY); /* none since */
    assert_int_equal(node->recovery->pulling_count, CO_PULLINGS_MAX);
    co_pull_take(node, &frame, &ticket);
    assert_int_equal(answer_rc, LEAT_E_AGAIN);
    answer_arrives(LEAT_E_CANCELLED);
}

/* Goal: a copy that names more sources than there is room for is refused, whether the last source follows or not. */
static void copy_of_too_many_sources_is_refused(void **state)
{
    (void)state;
    enum { MANY = 100 * 1000 };
    static uint8_t payload[32 * MANY];
    tasks_make(LOGS);
    co_recovery_pull(leader, 1);
    struct leat_frame frame = frame_of(payload);
    for (uint32_t most = 0; most < 2; most++)
        for (uint32_t more = 0; more <= most; more++) {
            const struct leat_pull pull = {.log = {1, 0, 0},
                                           .source_count = LEAT_PULL_SOURCES_MAX + most};
            struct leat_msg_writer w;
            leat_msg_writer_init(&w, payload, sizeof payload);
            co_pulls_said_write(&w, 1);
            co_pull_said_write(&w, &pull);
            for (uint32_t i = 0; i < LEAT_PULL_SOURCES_MAX + more; i++)
                co_pull_source_write(&w, &(struct co_pull_source){{"n2", 2}, {"h:2", 3}, 12});
            frame.payload_bytes = w.used;
            pull_count = 0;
            answer_rc = (leat_err)-1;
            co_pull_take(node, &frame, &ticket);
            assert_int_equal(pull_count, most == 0);
            assert_int_equal(answer_rc, most == 0 ? (leat_err)-1 : LEAT_E_INVALID);
        }
    /* So many that they would not even fit into the memory of all copies of a message. */
    const struct leat_pull pull = {.log = {1, 0, 0}, .source_count = MANY};
    struct leat_msg_writer w;
    leat_msg_writer_init(&w, payload, sizeof payload);
    co_pulls_said_write(&w, 1);
    co_pull_said_write(&w, &pull);
    for (uint32_t i = 0; i < MANY; i++)
        co_pull_source_write(&w, &(struct co_pull_source){{"n2", 2}, {"h:2", 3}, 12});
    assert_false(w.overflow);
    frame.payload_bytes = w.used;
    answer_rc = (leat_err)-1;
    co_pull_take(node, &frame, &ticket);
    assert_int_equal(answer_rc, LEAT_E_INVALID);
    answer_arrives(LEAT_E_CANCELLED);
}

/* A source whose name has no room: whoever was asked with an empty one would ask nobody. */
static void copies_from_a_name_that_is_too_long_are_refused(void **state)
{
    (void)state;
    static uint8_t payload[65536], longer[65536];
    enum { LONG = LEAT_NODE_NAME_BYTES_MAX + 1 };
    tasks_make(1);
    co_recovery_pull(leader, 1);
    struct leat_frame frame = frame_of(payload);
    const uint8_t *name = memmem(frame.payload, frame.payload_bytes, "\xa2n2", 3);
    assert_non_null(name);
    for (unsigned more = 0; more < 2; more++) {
        const size_t before = (size_t)(name - frame.payload), bytes = LONG - 1 + more;
        struct leat_frame changed = frame;
        memcpy(longer, frame.payload, before);
        longer[before] = 0xda; /* a string, and its length in two bytes */
        longer[before + 1] = (uint8_t)(bytes >> 8);
        longer[before + 2] = (uint8_t)bytes;
        memset(longer + before + 3, 'n', bytes);
        memcpy(longer + before + 3 + bytes, name + 3, frame.payload_bytes - before - 3);
        changed.payload = longer;
        changed.payload_bytes = (uint32_t)(frame.payload_bytes + bytes);
        answer_rc = (leat_err)-1;
        co_pull_take(node, &changed, &ticket);
        assert_int_equal(answer_rc, more ? LEAT_E_INVALID : (leat_err)-1);
        assert_int_equal(node->recovery->pulling_count, 1);
    }
    answer_arrives(LEAT_E_CANCELLED);
}

/* Goal: more copies or sources than there is room for, or none, are refused, whoever asks; as many as there is room for
 * are made. */
static void copies_and_sources_are_counted(void **state)
{
    (void)state;
    static uint8_t payload[65536], counted[1 << 20];
    static const struct {
        uint32_t copies, sources;
        leat_err rc;
    } rows[] = {
        {0, 1, LEAT_E_INVALID},
        {1, 0, LEAT_E_INVALID},
        {1, 1, LEAT_OK},
        {1, LEAT_PULL_SOURCES_MAX, LEAT_OK},
        {1, LEAT_PULL_SOURCES_MAX + 1, LEAT_E_INVALID},
        {CO_PULLS_MAX, 1, LEAT_OK},
        {CO_PULLS_MAX + 1, 1, LEAT_E_INVALID},
    };
    tasks_make(1);
    co_recovery_pull(leader, 1);
    struct leat_frame frame = frame_of(payload);
    unsigned expected = 0;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct leat_pull pull = {
            .log = {1, 0, 0}, .durability = LEAT_DURABILITY_DISK, .source_count = rows[r].sources};
        const struct co_pull_source source = {{"n2", 2}, {"host2:2", 7}, 12};
        struct leat_msg_writer w;
        leat_msg_writer_init(&w, counted, sizeof counted);
        co_pulls_said_write(&w, rows[r].copies);
        for (uint32_t i = 0; i < rows[r].copies; i++) {
            co_pull_said_write(&w, &pull);
            for (uint32_t k = 0; k < pull.source_count; k++)
                co_pull_source_write(&w, &source);
        }
        assert_false(w.overflow);
        frame.payload = counted;
        frame.payload_bytes = (uint32_t)w.used;
        answer_rc = (leat_err)-1;
        co_pull_take(node, &frame, &ticket);
        assert_int_equal(answer_rc, rows[r].rc == LEAT_OK ? (leat_err)-1 : rows[r].rc);
        if (rows[r].rc == LEAT_OK) expected += rows[r].copies;
        assert_int_equal(pull_count, expected);
    }
    answer_arrives(LEAT_E_CANCELLED);
}

/* The leader asks itself without a link: without memory it copies nothing, and says so. */
static void leader_without_memory_makes_no_copies(void **state)
{
    (void)state;
    tasks_make(LOGS);
    it->pulls[0].end = LOGS;
    leat_mem_fail_at(1);
    co_recovery_pull(leader, 0);
    leat_mem_fail_at(0);
    assert_true(given.calls == 1 && given.incarnation == LEADER && given.count == LOGS);
    assert_int_equal(given.codes[0], LEAT_E_NO_MEMORY);
    assert_int_equal(pull_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CALLS_TEST(node_is_asked_for_copies_and_says_what_came_of_them),
        CALLS_TEST(copies_that_are_all_made_have_no_text),
        CALLS_TEST(leader_hears_of_as_many_copies_as_a_message_holds),
        CALLS_TEST(sources_are_the_nodes_that_hold_it),
        CALLS_TEST(copies_are_asked_for_in_messages_that_hold_them),
        CALLS_TEST(node_that_cannot_be_asked_for_copies_made_none),
        CALLS_TEST(answer_about_copies_that_is_malformed_is_none),
        CALLS_TEST(copies_that_are_malformed_or_too_many_are_refused),
        CALLS_TEST(copy_of_too_many_sources_is_refused),
        CALLS_TEST(copies_from_a_name_that_is_too_long_are_refused),
        CALLS_TEST(copies_and_sources_are_counted),
        CALLS_TEST(leader_without_memory_makes_no_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
