/* SPDX-License-Identifier: Apache-2.0 */
/* What a group's home asks of a log's groups, by segment_groups.c alone: of a log of this node on its core, of another
 * node's by its owner, and what a client's call is answered. Log q of streamlet s is on core q. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/data/lookup.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

enum { OTHER = 200 };

static struct {
    struct leat_partition partition;
    struct leat_log_info info;
    bool not_there, front_unknown, no_group, refuses;
    struct leat_ask *ask;
    struct leat_segment_group_query query;
    size_t memory_bytes;
} it;

/* ---- what it calls ---- */

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, ref.log);
    said("look at %s", ref_text(ref));
    return it.not_there ? NULL : &it.partition;
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    assert_ptr_equal(log, &it);
    *out_info = it.info;
}
bool leat_log_front_known(const struct leat_log *log)
{
    assert_ptr_equal(log, &it);
    return !it.front_unknown;
}
leat_err leat_log_group(const struct leat_log *log, uint64_t group, uint64_t *out_first,
                        uint64_t *out_end)
{
    assert_ptr_equal(log, &it);
    if (it.no_group) return LEAT_E_NOT_FOUND;
    *out_first = 1;
    *out_end = 1000 + group;
    return LEAT_OK;
}
bool leat_node_heap_refuses(const struct leat_node *node, uint64_t now_us)
{
    (void)node, (void)now_us;
    return false;
}
leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error)
{
    struct leat_msg_reader reader;
    assert_ptr_equal(core, &alone.cores[1]);
    assert_int_equal(kind, LEAT_KIND_SEGMENT_GROUP);
    leat_msg_reader_init(&reader, control, control_bytes);
    assert_int_equal(leat_msg_read_array(&reader), 4);
    uint32_t stream = leat_msg_read_u32(&reader), streamlet = leat_msg_read_u32(&reader);
    uint32_t log = leat_msg_read_u32(&reader);
    uint64_t group = leat_msg_read_u64(&reader);
    assert_true(leat_msg_read_done(&reader));
    said("ask %llu for group %llu of %s", (unsigned long long)incarnation,
         (unsigned long long)group, ref_text((struct leat_log_ref){stream, streamlet, log}));
    it.ask = ask;
    return it.refuses ? leat_error_set(error, LEAT_E_AGAIN, "not now") : LEAT_OK;
}

/* ---- the rig ---- */

static void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    it.memory_bytes = leat_mem_bytes(LEAT_MEM_BROKER);
    it.partition.log = (void *)&it;
    it.info = (struct leat_log_info){.state = LEAT_LOG_SERVING, .first_group = 4};
}

static void end(void)
{
    assert_int_equal(calls.open, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), it.memory_bytes);
    alone_end();
}

static void on_done(struct leat_segment_group_query *query)
{
    assert_ptr_equal(query, &it.query);
    assert_null(query->broker);
    said("done");
}

static void asks(uint32_t stream, uint32_t streamlet, uint32_t log)
{
    it.query = (struct leat_segment_group_query){
        .log = {stream, streamlet, log}, .group = 9, .rc = LEAT_E_INVALID, .on_done = on_done};
    leat_segment_group_ask(&alone.cores[1], &it.query);
}

/* ---- segment groups of this node ---- */

static void log_of_this_node_is_asked_on_its_core(void **state)
{
    (void)state;
    begin();
    asks(ALONE_STREAM, 1, 0);
    assert_ptr_equal(it.query.broker, &alone.cores[1]);
    alone_deliver_all();
    assert_said("mail to 0\nlook at 7/1/0\nmail to 1\ndone\n");
    assert_int_equal(it.query.rc, LEAT_OK);
    assert_int_equal(it.query.first_group, 4);
    assert_int_equal(it.query.end_offset, 1009);
    it.no_group = true;
    asks(ALONE_STREAM, 1, 0);
    alone_deliver_all();
    assert_true(it.query.end_offset == UINT64_MAX);
    it.info.first_group = 9;
    asks(ALONE_STREAM, 1, 0);
    alone_deliver_all();
    assert_true(it.query.end_offset == UINT64_MAX);
    it.info.first_group = 10; /* it is gone */
    asks(ALONE_STREAM, 1, 0);
    alone_deliver_all();
    assert_int_equal(it.query.end_offset, 0);
    end();
}

static void log_that_can_not_say_is_no_answer(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        static const leat_err codes[] = {LEAT_E_UNKNOWN_LOG, LEAT_E_UNKNOWN_LOG,
                                         LEAT_E_LOG_INCOMPLETE, LEAT_E_STARTING};
        begin();
        if (i == 0) it.not_there = true;
        if (i == 1) it.partition.state = LEAT_PARTITION_GOES;
        if (i == 2) it.info.state = LEAT_LOG_WAITING;
        if (i == 3) it.front_unknown = true;
        asks(ALONE_STREAM, 0, 1);
        alone_deliver_all();
        assert_said("mail to 1\nlook at 7/0/1\nmail to 1\ndone\n");
        assert_int_equal(it.query.rc, codes[i]);
        assert_int_equal(it.query.first_group, 0);
        end();
    }
    static const struct leat_log_ref none[] = {{ALONE_STREAM + 1, 0, 0},
                                               {ALONE_STREAM, ALONE_STREAMLETS, 0},
                                               {ALONE_STREAM, 0, ALONE_LOGS}};
    for (unsigned i = 0; i < 3; i++) {
        begin();
        asks(none[i].stream, none[i].streamlet, none[i].log);
        alone_deliver_all();
        assert_said("mail to 1\ndone\n");
        assert_int_equal(it.query.rc, LEAT_E_UNKNOWN_LOG);
        end();
    }
}

static void owner_is_asked(void **state)
{
    (void)state;
    uint8_t body[32];
    struct leat_msg_writer writer;
    begin();
    alone.desc->streamlets[1].owner = OTHER;
    asks(ALONE_STREAM, 1, 1);
    assert_said("ask 200 for group 9 of 7/1/1\n");
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, 33);
    leat_msg_write_u64(&writer, 44);
    struct leat_frame answer = {.control = body, .control_bytes = (uint32_t)writer.used};
    it.ask->on_done(it.ask, LEAT_OK, &answer, "");
    assert_said("done\n");
    assert_int_equal(it.query.rc, LEAT_OK);
    assert_int_equal(it.query.first_group, 33);
    assert_int_equal(it.query.end_offset, 44);
    asks(ALONE_STREAM, 1, 1);
    answer.control_bytes--;
    it.ask->on_done(it.ask, LEAT_OK, &answer, "");
    assert_int_equal(it.query.rc, LEAT_E_INVALID);
    asks(ALONE_STREAM, 1, 1);
    it.ask->on_done(it.ask, LEAT_E_TIMEOUT, NULL, "late");
    assert_int_equal(it.query.rc, LEAT_E_TIMEOUT);
    said_enough();
    it.refuses = true;
    asks(ALONE_STREAM, 1, 1);
    alone_deliver_all();
    assert_said("ask 200 for group 9 of 7/1/1\nmail to 1\ndone\n");
    assert_int_equal(it.query.rc, LEAT_E_AGAIN);
    leat_mem_fail_at(1);
    asks(ALONE_STREAM, 1, 1);
    leat_mem_fail_at(0);
    alone_deliver_all();
    assert_said("mail to 1\ndone\n");
    assert_int_equal(it.query.rc, LEAT_E_AGAIN);
    end();
}

/* ---- another node's ---- */

static void calls_with(uint32_t fields, uint64_t streamlet)
{
    uint8_t body[64];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, body, sizeof body);
    leat_msg_write_array(&writer, fields);
    leat_msg_write_u64(&writer, ALONE_STREAM);
    leat_msg_write_u64(&writer, streamlet);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_u64(&writer, 9);
    if (fields > 4) leat_msg_write_u64(&writer, 5); /* of a later version */
    alone_call(leat_call_segment_group, &writer);
    alone_deliver_all();
}

static void other_node_is_answered(void **state)
{
    (void)state;
    begin();
    for (uint32_t fields = 4; fields <= 5; fields++) {
        struct leat_msg_reader reader;
        calls_with(fields, 1);
        assert_said("mail to 0\nlook at 7/1/0\nmail to 1\nanswer\n");
        alone_answer(&reader);
        assert_int_equal(leat_msg_read_array(&reader), 2);
        assert_int_equal(leat_msg_read_u64(&reader), 4);
        assert_int_equal(leat_msg_read_u64(&reader), 1009);
        assert_true(leat_msg_read_done(&reader));
    }
    it.front_unknown = true;
    calls_with(4, 1);
    assert_said("mail to 0\nlook at 7/1/0\nmail to 1\nrefuse STARTING\n");
    calls_with(3, 1);
    assert_said(
        "refuse INVALID: a segment group is asked for as [stream, streamlet, log, group]\n");
    calls_with(4, UINT64_C(1) << 32);
    assert_said(
        "refuse INVALID: a segment group is asked for as [stream, streamlet, log, group]\n");
    calls_with(4, 2);
    assert_true(said_one("refuse UNKNOWN_LOG: "));
    calls.none = true;
    calls_with(4, 1);
    assert_said("");
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_of_this_node_is_asked_on_its_core),
        cmocka_unit_test(log_that_can_not_say_is_no_answer),
        cmocka_unit_test(owner_is_asked),
        cmocka_unit_test(other_node_is_answered),
    };
    return cmocka_run_group_tests_name("broker groups_call", tests, NULL, NULL);
}
