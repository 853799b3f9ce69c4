/* SPDX-License-Identifier: Apache-2.0 */
/* The newest segment below a segment, by below.c alone: what this node looks for, what it asks other nodes, how it
 * reads their answers, and how it answers them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/ownership/below.h"
#include "tests/broker/alone_calls.h"
#include "wire/entry.h"
#include "wire/message.h"

enum { REPLICAS = 8 };
static const struct leat_log_ref LOG = {ALONE_STREAM, 1, 1};

static struct {
    struct leat_member members[4];
    struct leat_replica_info replicas[REPLICAS];
    size_t replica_count;
    struct leat_ask *ask;
    uint32_t behind; /* so many rows of an answer lie behind its array */
    leat_err ask_rc;
    bool there, comes; /* the log; or it is on its way here */
    struct leat_below below;
} it;

/* ---- what it calls ---- */

leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error)
{
    struct leat_msg_reader reader;
    struct leat_log_ref ref;
    (void)error;
    assert_int_equal(core->index, 0);
    assert_int_equal(kind, LEAT_KIND_LOG_BELOW);
    leat_msg_reader_init(&reader, control, control_bytes);
    assert_int_equal(leat_msg_read_array(&reader), 2);
    leat_msg_log_ref_read(&reader, &ref);
    uint64_t segment = leat_msg_read_u64(&reader);
    assert_true(leat_msg_read_done(&reader));
    said("ask %llu: %s, %llu", (unsigned long long)incarnation, ref_text(ref),
         (unsigned long long)segment);
    if (it.ask_rc == LEAT_OK) it.ask = ask;
    return it.ask_rc;
}
void leat_backup_each(struct leat_backup *backup, const struct leat_log_ref *log, bool scan,
                      void (*each)(void *arg, const struct leat_replica_info *info), void *arg)
{
    assert_ptr_equal(backup, &it);
    assert_true(leat_log_ref_equal(*log, LOG));
    assert_false(scan);
    said("look here");
    for (size_t i = 0; i < it.replica_count; i++)
        each(arg, &it.replicas[i]);
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, ref.log);
    return it.there ? (void *)&it : NULL;
}
bool leat_takeover_is_under_way(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, 0);
    assert_true(leat_log_ref_equal(ref, LOG));
    return it.comes;
}

/* ---- the tests' own ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    for (unsigned i = 0; i < 4; i++) {
        it.members[i].self = i == 1;
        it.members[i].info.incarnation = 200 + i;
        it.members[i].info.state = i == 2 ? LEAT_NODE_DOWN : LEAT_NODE_UP;
        alone.cores[0].members.rows[alone.cores[0].members.count++] = &it.members[i];
    }
    alone.cores[0].data->replicate->backup = (void *)&it;
    alone.node.life = LEAT_LIFE_UP;
}

static void end(void)
{
    assert_int_equal(calls.open, 0);
    alone_end();
}

static struct leat_replica_info *replica(uint64_t segment, uint32_t epoch, uint32_t bytes)
{
    struct leat_replica_info *info = &it.replicas[it.replica_count++];
    *info = (struct leat_replica_info){.log = LOG,
                                       .segment = {segment},
                                       .epoch = {epoch},
                                       .state = LEAT_SEGMENT_CLOSED,
                                       .prefix_id = {bytes, 7}};
    return info;
}

static void on_done(struct leat_below *below, leat_err rc)
{
    assert_ptr_equal(below->owner, &it);
    said("done %s: segment %llu, epoch %u, %u candidates, the first %u bytes on %u nodes",
         leat_err_name(rc), (unsigned long long)below->found.segment, below->found.epoch,
         below->found.count, below->found.candidates[0].prefix_id.bytes,
         below->found.candidates[0].nodes);
}

static void looks(uint64_t segment)
{
    memset(&it.below, 0xa5, sizeof it.below);
    it.below.core = &alone.cores[0];
    it.below.ref = LOG;
    it.below.segment = segment;
    it.below.on_done = on_done;
    it.below.owner = &it;
    leat_below_start(&it.below);
}

/* A node's answer: rows of so many fields. */
struct told {
    uint64_t segment;
    uint32_t bytes, crc, epoch, fields;
};
static void node_answers(leat_err rc, const struct told *rows, uint32_t count)
{
    uint8_t bytes[512];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, count - it.behind);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t fields[] = {
            rows[i].segment, rows[i].bytes, rows[i].crc, rows[i].epoch, 1, 2};
        leat_msg_write_array(&writer, rows[i].fields);
        for (uint32_t k = 0; k < rows[i].fields; k++)
            leat_msg_write_u64(&writer, fields[k]);
    }
    struct leat_frame frame = {.control = bytes, .control_bytes = (uint32_t)writer.used};
    struct leat_ask *ask = it.ask;
    assert_non_null(ask);
    it.ask = NULL;
    ask->on_done(ask, rc, &frame, "why");
}

/* ---- asking ---- */

/* Goal: this node is asked first, then each other node that is up, one node after the other. */
static void all_nodes_that_are_up_are_asked(void **state)
{
    (void)state;
    begin();
    (void)replica(3, 2, 500);
    looks(4);
    assert_said("look here\nmail to 0\n"); /* never from within */
    alone_deliver();
    assert_said("ask 200: 7/1/1, 4\n");
    node_answers(LEAT_OK, &(struct told){4, 600, 7, 3, 4}, 1);
    assert_said("ask 203: 7/1/1, 4\n");
    node_answers(LEAT_OK, &(struct told){4, 600, 7, 3, 4}, 1);
    assert_said("done OK: segment 4, epoch 3, 1 candidates, the first 600 bytes on 2 nodes\n");
    end();
}

/* Goal: a node that was down when it was its turn, and is expected back, was not asked, though it is up at the end. */
static void node_that_was_down_in_its_turn_is_missed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        begin();
        if (i == 1) it.members[2].info.draining = true;
        if (i == 2) it.members[2].info.state = LEAT_NODE_GONE;
        looks(4);
        alone_deliver();
        assert_false(it.below.missed); /* not yet */
        node_answers(LEAT_OK, NULL, 0);
        it.members[2].info.state = LEAT_NODE_UP;
        node_answers(LEAT_OK, NULL, 0);
        said_enough();
        assert_int_equal(it.below.missed, i == 0);
        end();
    }
}

static void node_that_cant_be_asked_ends_it(void **state)
{
    (void)state;
    begin();
    looks(4);
    said_enough();
    it.ask_rc = LEAT_E_AGAIN;
    alone_deliver();
    assert_said("ask 200: 7/1/1, 4\n"
                "done AGAIN: segment 0, epoch 0, 0 candidates, the first 0 bytes on 0 nodes\n");
    it.ask_rc = LEAT_OK;
    looks(4);
    alone_deliver();
    said_enough();
    node_answers(LEAT_E_STARTING, NULL, 0);
    assert_said("done STARTING: segment 0, epoch 0, 0 candidates, the first 0 bytes on 0 nodes\n");
    end();
}

/* Goal: only whole closed replicas up to there count, and none that an attempt of recovery made. */
static void replicas_here_that_count(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        begin();
        alone.cores[0].members.count = 0;
        struct leat_replica_info *info = replica(4, 2, 500);
        if (i == 1) info->state = LEAT_SEGMENT_HIBERNATED;
        if (i == 2) info->incomplete = true;
        if (i == 3) info->damaged = true;
        if (i == 4) info->provisional = true;
        if (i == 5) info->segment.v = 5;
        looks(4);
        alone_deliver();
        said_enough();
        assert_int_equal(it.below.found.count, i == 0);
        end();
    }
}

/* Goal: rows of other versions are read as far as they go; a row past the asked segment, or an impossible row, is
 * passed over. */
static void answers_are_read_as_far_as_they_go(void **state)
{
    (void)state;
    static const struct {
        struct told row;
        uint32_t count, epoch;
    } rows[] = {
        {{4, 600, 7, 3, 4}, 1, 3}, {{4, 600, 7, 3, 3}, 1, 0}, {{4, 600, 7, 3, 6}, 1, 3},
        {{4, 600, 7, 3, 2}, 0, 0}, {{5, 600, 7, 3, 4}, 0, 0}, {{3, 600, 7, 3, 4}, 1, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin();
        alone.cores[0].members.count = 1;
        looks(4);
        alone_deliver();
        node_answers(LEAT_OK, &rows[i].row, 1);
        said_enough();
        assert_int_equal(it.below.found.count, rows[i].count);
        assert_int_equal(it.below.found.epoch, rows[i].epoch);
        end();
    }
    for (uint32_t behind = 0; behind < 3; behind++) {
        begin();
        alone.cores[0].members.count = 1;
        looks(4);
        alone_deliver();
        static const struct told two[] = {{4, 600, 7, 3, 5}, {4, 700, 7, 3, 4}};
        it.behind = behind;
        node_answers(LEAT_OK, two, 2);
        assert_int_equal(it.below.found.count, 2 - behind);
        if (behind == 0) assert_int_equal(it.below.found.candidates[1].prefix_id.bytes, 700);
        said_enough();
        end();
    }
}

/* ---- what can be a segment, and how many claims are kept ---- */

static void claims_are_kept_within_bounds(void **state)
{
    (void)state;
    static const struct {
        uint32_t bytes;
        bool counts;
    } rows[] = {{LEAT_ENTRY_HEADER_BYTES - 1, false},
                {LEAT_ENTRY_HEADER_BYTES, true},
                {LEAT_SEGMENT_BYTES_MAX, true},
                {LEAT_SEGMENT_BYTES_MAX + 1, false}};
    for (unsigned i = 0; i < 4; i++) {
        struct leat_below_found found = {0};
        leat_below_add(&found, 4, 1, (struct leat_prefix_id){rows[i].bytes, 1});
        assert_int_equal(found.count, rows[i].counts);
    }
    struct leat_below_found found = {0};
    for (uint32_t i = 0; i <= LEAT_BELOW_CANDIDATES_MAX; i++)
        leat_below_add(&found, 4, 1, (struct leat_prefix_id){1000, i});
    assert_int_equal(found.count, LEAT_BELOW_CANDIDATES_MAX);
    leat_below_add(&found, 4, 1, (struct leat_prefix_id){1000, 2}); /* one more node has it */
    assert_int_equal(found.candidates[2].nodes, 2);
    assert_int_equal(leat_below_best(&found).crc, 2);
    found.candidates[3].prefix_id.bytes = 9000; /* longer, and fewer have it */
    assert_int_equal(leat_below_best(&found).crc, 2);
    found.candidates[3].prefix_id.bytes = 1000;
    assert_true(leat_below_pass(&found));
    assert_int_equal(found.count, LEAT_BELOW_CANDIDATES_MAX - 1);
    for (uint32_t i = 0; i < found.count; i++)
        assert_int_not_equal(found.candidates[i].prefix_id.crc, 2);
    leat_below_add(
        &found, 4, 1,
        (struct leat_prefix_id){1001, 0}); /* other bytes, though its checksum is the same */
    assert_int_equal(found.count, LEAT_BELOW_CANDIDATES_MAX);
}

/* ---- answering ---- */

static void asked(struct leat_log_ref ref, uint64_t segment)
{
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 2);
    leat_msg_log_ref_write(&writer, &ref);
    leat_msg_write_u64(&writer, segment);
    alone_call(leat_call_below, &writer);
}

/* Goal: the log's core answers first, and core 0 behind all that the log's core has sent. */
static void what_is_here_is_answered(void **state)
{
    (void)state;
    begin();
    (void)replica(4, 2, 500), (void)replica(4, 2, 600);
    asked(LOG, 4);
    assert_said("mail to 1\n");
    alone_deliver();
    assert_said("mail to 0\n");
    alone_deliver();
    assert_said("look here\nmail to 1\n");
    alone_deliver();
    assert_said("answer\n");
    struct leat_msg_reader reader;
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(leat_msg_read_array(&reader), 4);
        assert_int_equal(leat_msg_read_u64(&reader), 4);
        assert_int_equal(leat_msg_read_u64(&reader), 500 + 100 * i);
        assert_int_equal(leat_msg_read_u64(&reader), 7);
        assert_int_equal(leat_msg_read_u64(&reader), 2);
    }
    assert_true(leat_msg_read_done(&reader));
    end();
}

/* Goal: "nothing" is not said while the log is here, comes, or can't be looked for. */
static void nothing_is_not_said_too_soon(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        begin();
        if (i == 0) it.there = true;
        if (i == 1) it.comes = true;
        if (i == 2) alone.node.life = LEAT_LIFE_COMES_UP;
        if (i == 3) alone.cores[0].stopping = true;
        if (i == 4) alone.cores[0].data->replicate->backup = NULL;
        asked(LOG, 4);
        alone_deliver_all();
        static const char *const last[] = {"refuse AGAIN\n",    "refuse AGAIN\n",
                                           "refuse STARTING\n", "refuse STARTING\n",
                                           "refuse STARTING\n", "answer\n"};
        char expected[256];
        snprintf(expected, sizeof expected, "mail to 1\nmail to 0\n%smail to 1\n%s",
                 i == 5 ? "look here\n" : "", last[i]);
        assert_said(expected);
        end();
    }
}

static void question_is_checked(void **state)
{
    (void)state;
    begin();
    uint8_t bytes[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_write_array(&writer, 1);
    leat_msg_log_ref_write(&writer, &LOG);
    leat_msg_write_u64(&writer, 4);
    alone_call(leat_call_below, &writer);
    assert_said("refuse INVALID: the control body of log below is not [[stream, streamlet, log], "
                "segment]\n");
    writer.used = 3;
    bytes[0] = 0x92;
    alone_call(leat_call_below, &writer);
    assert_said("refuse INVALID: the control body of log below is not [[stream, streamlet, log], "
                "segment]\n");
    asked((struct leat_log_ref){ALONE_STREAM, ALONE_STREAMLETS, 1}, 4);
    assert_said("refuse UNKNOWN_LOG\n");
    asked((struct leat_log_ref){ALONE_STREAM, 1, ALONE_LOGS}, 4);
    assert_said("refuse UNKNOWN_LOG\n");
    alone.no_stream = true;
    for (unsigned seen = 0; seen < 2; seen++) {
        alone.cores[1].data->stream_seen = ALONE_STREAM - 1 + seen;
        asked(LOG, 4);
        assert_said(seen ? "refuse UNKNOWN_STREAM\n" : "refuse STARTING\n");
    }
    calls.none = true;
    asked(LOG, 4);
    assert_said("");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_nodes_that_are_up_are_asked),
        cmocka_unit_test(node_that_was_down_in_its_turn_is_missed),
        cmocka_unit_test(node_that_cant_be_asked_ends_it),
        cmocka_unit_test(replicas_here_that_count),
        cmocka_unit_test(answers_are_read_as_far_as_they_go),
        cmocka_unit_test(claims_are_kept_within_bounds),
        cmocka_unit_test(what_is_here_is_answered),
        cmocka_unit_test(nothing_is_not_said_too_soon),
        cmocka_unit_test(question_is_checked),
    };
    return cmocka_run_group_tests_name("broker below_call", tests, NULL, NULL);
}
