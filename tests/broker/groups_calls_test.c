/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to consumer groups, by groups_calls.c alone: what each request says to its home, how it is answered, and
 * which are refused before; and what groups ask of the broker. */
#include "broker/admin/calls.h"
#include "broker/data/core_data.h"
#include "tests/broker/groups_calls_rig.h"

/* ---- what groups need ---- */

static void home_has_its_groups(void **state)
{
    (void)state;
    struct leat_log_options options = {0};
    for (uint32_t copies = 1; copies <= 2; copies++) {
        begin();
        alone.node.options.offsets_retention_us = 123;
        alone.node.options.memory_bytes = 456;
        alone.desc->settings.copies = copies;
        it.partition.groups = NULL;
        assert_int_equal(leat_groups_attach(&it.partition, &options), LEAT_OK);
        assert_ptr_equal(it.partition.groups, &it.options);
        assert_ptr_equal(options.app.ctx, &it);
        assert_ptr_equal(alone.cores[0].data->home_logs.next, &it.partition.home);
        assert_ptr_equal(it.options.env, &alone.env);
        assert_ptr_equal(it.options.timers, &alone.cores[0].timers);
        assert_int_equal(it.options.home, 3);
        assert_int_equal(it.options.retention_us, 123);
        assert_int_equal(it.options.group_bytes_max, 228);
        assert_int_equal(it.options.followed, copies == 2);
        assert_ptr_equal(it.options.room, &alone.node.groups_room);
        assert_ptr_equal(it.options.ctx, &it.partition);
        end();
    }
    begin();
    it.create = LEAT_E_NO_MEMORY;
    assert_int_equal(leat_groups_attach(&it.partition, &options), LEAT_E_NO_MEMORY);
    assert_true(leat_list_empty(&alone.cores[0].data->home_logs));
    end();
}

static void groups_ask_their_broker(void **state)
{
    (void)state;
    struct leat_log_options options = {0};
    uint32_t streamlets = 0, logs = 0;
    begin();
    assert_int_equal(leat_groups_attach(&it.partition, &options), LEAT_OK);
    const struct leat_groups_broker *broker = &it.options.broker;
    assert_true(broker->stream_size(&it.partition, 3, &streamlets, &logs));
    assert_int_equal(streamlets, 6);
    assert_int_equal(logs, 5);
    assert_false(broker->stream_size(&it.partition, 4, &streamlets, &logs));
    broker->group(&it.partition, (void *)&it);
    assert_said("groups\n");
    static const leat_err codes[] = {LEAT_OK, LEAT_E_AGAIN, LEAT_E_DISK, LEAT_E_DISK};
    for (unsigned i = 0; i < 4; i++) {
        it.append = codes[i];
        it.append_silent = i == 3;
        assert_int_equal(broker->append(&it.partition, (void *)&it.forwarded, (void *)&it.home),
                         codes[i]);
        assert_said(i < 2 ? "append\n"
                          : "append\nnode log error: consumer groups of home 3 can't be written\n");
    }
    it.partition.state = LEAT_PARTITION_GOES;
    assert_int_equal(broker->append(&it.partition, (void *)&it.forwarded, (void *)&it.home),
                     LEAT_E_STARTING);
    assert_said("");
    leat_groups_log_made(&it.partition);
    assert_said("is read\n");
    it.unloaded = true;
    leat_groups_log_made(&it.partition);
    assert_said("");
    end();
}

/* ---- what is said to the home ---- */

static void member_joins(void **state)
{
    (void)state;
    for (uint32_t mode = 0; mode < 2; mode++) {
        begin();
        asks(join(mode, 2));
        assert_said("seek orders for 99\nseek x for 99\n" HOME);
        it.waits = true;
        alone_deliver();
        assert_said(mode == 0 ? AT_HOME "join \"s\" \"m\" generation 0 of 99, 1024 bytes\n"
                                        " mode 0 session 500\n stream 7\n stream 3\n"
                              : AT_HOME "join \"s\" \"m\" generation 0 of 99, 1024 bytes\n"
                                        " mode 1 session 500\n stream 7\n stream 3\n");
        snprintf(it.request->member, sizeof it.request->member, "m-1");
        it.request->generation = 9;
        it.request->assigned_count = 2;
        it.request->assigned = leat_mem_calloc(LEAT_MEM_TEST, 2, sizeof *it.request->assigned);
        it.request->assigned[0] = (struct leat_groups_assigned){{3, 4, 5}, 6, 7};
        it.request->assigned[1] = (struct leat_groups_assigned){{7, 1, 0}, 0, 1};
        it.request->on_done(it.request);
        assert_said(BACK);
        alone_deliver();
        assert_said("answer\n");
        struct leat_msg_writer *expected = body(0);
        leat_msg_group_joined_write(expected, &(struct leat_msg_group_joined){{"m-1", 3}, 9, 2});
        leat_msg_group_share_write(expected, &(struct leat_msg_group_share){{3, 4, 5}, 6, 7, 0});
        leat_msg_group_share_write(expected, &(struct leat_msg_group_share){{7, 1, 0}, 0, 1, 0});
        assert_int_equal(calls.answer_bytes, expected->used);
        assert_memory_equal(calls.answer, it.body, expected->used);
        end();
    }
}

static void answered_with_nothing(const char *expected)
{
    alone_deliver();
    assert_said(expected);
    alone_deliver();
    assert_said("answer\n");
    assert_int_equal(calls.answer_bytes, 1);
    assert_int_equal(calls.answer[0], 0x90);
}

static void member_goes_on_leaves_and_commits(void **state)
{
    (void)state;
    begin();
    struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_HEARTBEAT);
    leat_msg_group_heartbeat_write(writer,
                                   &(struct leat_msg_group_heartbeat){{"s", 1}, {"m", 1}, 6});
    asks(writer);
    assert_said(HOME);
    answered_with_nothing(AT_HOME "heartbeat \"s\" \"m\" generation 6 of 99, 1024 bytes\n" BACK);
    leaves("s", 1, "m", 1);
    assert_said(HOME);
    answered_with_nothing(AT_HOME LEAVE BACK);
    asks(commit(2));
    assert_said(HOME);
    answered_with_nothing(AT_HOME "commit \"s\" \"\" generation 8 of 99, 1024 bytes\n"
                                  " commit 3/4/0 group -1 at 100\n"
                                  " commit 3/4/1 group 0 at 101\n" BACK);
    asks(commit(0));
    assert_said(HOME);
    answered_with_nothing(AT_HOME "commit \"s\" \"\" generation 8 of 99, 1024 bytes\n" BACK);
    end();
}

static void offsets_are_fetched(void **state)
{
    (void)state;
    begin();
    it.waits = true;
    asks(fetch(2));
    alone_deliver();
    assert_said(HOME AT_HOME "fetch \"s\" \"\" generation 0 of 99, 1024 bytes\n"
                             " log 3/4/0\n log 3/4/1\n");
    it.request->generation = 5;
    it.request->offset_count = 2;
    it.request->offsets = leat_mem_calloc(LEAT_MEM_TEST, 2, sizeof *it.request->offsets);
    it.request->offsets[0] =
        (struct leat_groups_offset){.log = {3, 4, 1}, .group = -1, .offset = 8};
    it.request->offsets[1] = (struct leat_groups_offset){.log = {3, 5, 0}, .group = 2, .offset = 9};
    it.request->on_done(it.request);
    alone_deliver();
    assert_said(BACK "answer\n");
    struct leat_msg_writer *expected = body(0);
    leat_msg_group_fetched_write(expected, &(struct leat_msg_group_fetched){5, 2});
    leat_msg_group_offset_write(expected, &(struct leat_msg_group_offset){{3, 4, 1}, -1, 8});
    leat_msg_group_offset_write(expected, &(struct leat_msg_group_offset){{3, 5, 0}, 2, 9});
    assert_int_equal(calls.answer_bytes, expected->used);
    assert_memory_equal(calls.answer, it.body, expected->used);
    end();
}

/* ---- what is refused ---- */

static void names_have_bounds(void **state)
{
    (void)state;
    static const char *const bad = "refuse BAD_NAME: a consumer group's name has 1 to 249 bytes, "
                                   "none of them zero\n";
    static const char *const malformed = "refuse INVALID: malformed request to a consumer group\n";
    char name[256];
    memset(name, 'n', sizeof name);
    begin();
    leaves(name, 249, name, 63);
    assert_said(HOME);
    alone_deliver_all();
    said_enough();
    leaves(name, 250, name, 63);
    assert_said(bad);
    leaves(name, 0, name, 63);
    assert_said(bad);
    leaves("a\0b", 3, name, 63);
    assert_said(bad);
    leaves(name, 249, name, 64);
    assert_said(malformed);
    leaves(name, 249, "\0", 1);
    assert_said(malformed);
    leaves(name, 1, name, 0);
    assert_said(HOME);
    alone_deliver_all();
    said_enough();
    struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_LEAVE);
    leat_msg_write_array(writer, 2);
    leat_msg_write_string(writer, "s", 1);
    asks(writer);
    assert_said(malformed);
    writer = body(LEAT_KIND_GROUP_LEAVE); /* no name is there, good or bad */
    leat_msg_write_array(writer, 2);
    asks(writer);
    assert_said(malformed);
    end();
}

/* Of each kind. */
static void names_are_checked(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 4; i++) {
        struct leat_msg_writer *writer = i == 0 ? join(0, 1) : i == 1 ? commit(1) : fetch(1);
        if (i == 3) {
            writer = body(LEAT_KIND_GROUP_HEARTBEAT);
            leat_msg_group_heartbeat_write(
                writer, &(struct leat_msg_group_heartbeat){{"s", 1}, {"m", 1}, 6});
        }
        assert_int_equal(it.body[2], 's');
        it.body[2] = '\0';
        asks(writer);
        assert_said(
            "refuse BAD_NAME: a consumer group's name has 1 to 249 bytes, none of them zero\n");
    }
    end();
}

/* Goal: a request with bytes after its body is refused, of each kind. */
static void nothing_follows_a_body(void **state)
{
    (void)state;
    begin();
    for (unsigned i = 0; i < 4; i++) {
        struct leat_msg_writer *writer = i == 0 ? join(0, 1) : i == 1 ? commit(1) : fetch(1);
        leat_msg_write_u64(writer, 1);
        if (i == 3) leat_msg_write_u64(writer, UINT64_MAX); /* as many as a node adds: 10 */
        asks(writer);
        if (i == 0) assert_true(said_one("seek orders "));
        assert_said("refuse INVALID: malformed request to a consumer group\n");
    }
    end();
}

static void cut_short(struct leat_msg_writer *writer)
{
    writer->used--;
    asks(writer);
    assert_true(said_one("refuse INVALID: malformed request to a consumer group\n"));
    assert_said("");
}

static void lists_have_bounds(void **state)
{
    (void)state;
    begin();
    it.waits = true;
    asks(join(0, LEAT_GROUPS_STREAMS_MAX)), alone_deliver();
    assert_int_equal(it.request->stream_count, LEAT_GROUPS_STREAMS_MAX);
    it.request->on_done(it.request);
    alone_deliver(), said_enough();
    it.waits = false;
    asks(join(0, LEAT_GROUPS_STREAMS_MAX + 1));
    assert_said("refuse TOO_MANY: a member names 1 to 16 streams, not 17\n");
    asks(join(0, 0));
    assert_said("refuse TOO_MANY: a member names 1 to 16 streams, not 0\n");
    for (unsigned streams = 0; streams < 2; streams++) {
        asks(join(2, streams));
        assert_said("refuse INVALID: malformed request to a consumer group\n");
    }
    struct leat_msg_writer *writer = join(0, 1);
    writer->used--;
    asks(writer);
    assert_said("refuse INVALID: malformed request to a consumer group\n");
    asks(commit(LEAT_GROUPS_COMMIT_ROWS_MAX));
    assert_said(HOME);
    alone_deliver_all(), said_enough();
    asks(commit(LEAT_GROUPS_COMMIT_ROWS_MAX + 1));
    assert_said("refuse TOO_MANY: a commit has at most 32768 rows, not 32769\n");
    cut_short(commit(2));
    asks(fetch(LEAT_GROUPS_LOGS_MAX));
    assert_said(HOME);
    alone_deliver_all(), said_enough();
    asks(fetch(LEAT_GROUPS_LOGS_MAX + 1));
    assert_said(
        "refuse TOO_MANY: a group's offsets are asked for of at most 32768 logs at once, not "
        "32769\n");
    cut_short(fetch(2));
    end();
}

static void lack_of_memory_is_told(void **state)
{
    (void)state;
    begin();
    calls.none = true;
    asks(commit(1));
    assert_said("");
    calls.none = false;
    for (unsigned n = 1; n <= 2; n++)
        for (unsigned i = 0; i < 2; i++) {
            const struct leat_msg_writer *writer = i == 0 ? commit(1) : fetch(1);
            leat_mem_fail_at(n);
            asks(writer);
            leat_mem_fail_at(0);
            assert_said(n == 1 ? "refuse AGAIN\n" : "refuse NO_MEMORY\n");
        }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(home_has_its_groups), cmocka_unit_test(groups_ask_their_broker),
        cmocka_unit_test(member_joins),        cmocka_unit_test(member_goes_on_leaves_and_commits),
        cmocka_unit_test(offsets_are_fetched), cmocka_unit_test(names_have_bounds),
        cmocka_unit_test(names_are_checked),   cmocka_unit_test(nothing_follows_a_body),
        cmocka_unit_test(lists_have_bounds),   cmocka_unit_test(lack_of_memory_is_told),
    };
    return cmocka_run_group_tests_name("broker groups_calls", tests, NULL, NULL);
}
