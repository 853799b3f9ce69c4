/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that clients make, delete and ask for, by meta.c alone: what is allowed first, which node does it, and each
 * field of the answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "tests/broker/alone_calls.h"
#include "wire/message.h"

enum { STREAMS = 4 };

static struct {
    leat_err name, create, work;
    struct leat_maker *maker;
    struct leat_deleter *deleter;
    struct leat_seeker *seeker;
    struct leat_pace_step *step;
    struct leat_sharer sharer;
    struct leat_member members[4];
    struct leat_stream streams[STREAMS];
    struct leat_stream *buckets[2];
    uint8_t *body;
    struct leat_msg_writer writer;
} it;

/* ---- what it calls ---- */

leat_err leat_stream_name_allowed(struct leat_msg_string name, struct leat_error *error)
{
    said("name %.*s", (int)name.bytes, name.text);
    return it.name == LEAT_OK ? LEAT_OK : leat_error_set(error, it.name, "a bad name");
}
leat_err leat_stream_create_allowed(const struct leat_core *core, struct leat_msg_string name,
                                    const struct leat_stream_settings *settings,
                                    struct leat_error *error)
{
    assert_ptr_equal(core, &alone.cores[1]);
    said("size %.*s %u x %u", (int)name.bytes, name.text, settings->streamlets, settings->logs);
    return it.create == LEAT_OK ? LEAT_OK : leat_error_set(error, it.create, "no room");
}
leat_err leat_stream_work_allowed(struct leat_core *core, struct leat_sharer *asks,
                                  const struct leat_stream_desc *desc,
                                  const struct leat_stream_settings *settings,
                                  struct leat_error *error)
{
    assert_ptr_equal(core, &alone.cores[1]);
    assert_ptr_equal(asks, &it.sharer);
    assert_null(desc);
    said("work %u x %u", settings->streamlets, settings->logs);
    return it.work == LEAT_OK ? LEAT_OK : leat_error_set(error, it.work, "too fast");
}
void leat_maker_start(struct leat_core *core, struct leat_maker *maker, const char *name,
                      size_t name_bytes, const struct leat_stream_settings *settings)
{
    assert_ptr_equal(core, &alone.cores[1]);
    said("make %.*s %u x %u for %llu", (int)name_bytes, name, settings->streamlets, settings->logs,
         (unsigned long long)maker->address);
    it.maker = maker;
}
void leat_deleter_start(struct leat_deleter *deleter, const char *name, size_t name_bytes)
{
    assert_ptr_equal(deleter->core, &alone.cores[1]);
    said("delete %.*s for %llu", (int)name_bytes, name, (unsigned long long)deleter->address);
    it.deleter = deleter;
}
void leat_seeker_start(struct leat_seeker *seeker)
{
    assert_ptr_equal(seeker->core, &alone.cores[1]);
    assert_ptr_equal(seeker->sharer, &it.sharer);
    assert_int_equal(seeker->settings.logs, 0);
    said("seek for %llu%s%s", (unsigned long long)seeker->address,
         seeker->may_create ? ", may make" : "", seeker->all ? ", all" : "");
    for (uint32_t i = 0; i < seeker->count && i < 4; i++)
        said(" %s", seeker->names[i]);
    it.seeker = seeker;
}
struct leat_stream *leat_stream_find_name(const struct leat_core *core, const char *name,
                                          size_t bytes)
{
    assert_ptr_equal(core, &alone.cores[1]);
    assert_int_equal(bytes, strlen(name));
    for (unsigned i = 0; i < STREAMS; i++)
        if (strcmp(it.streams[i].desc->name, name) == 0) return &it.streams[i];
    return NULL;
}
void leat_pace_run(struct leat_peer *peer, struct leat_pace_step *step,
                   void (*run)(struct leat_pace_step *step))
{
    assert_ptr_equal(peer, &calls.peer);
    said("its turn");
    step->run = run;
    it.step = step;
}
uint32_t leat_lane_of_log(struct leat_log_ref ref, uint32_t logs, uint32_t cores)
{
    return ref.stream * 1000 + ref.streamlet * 100 + ref.log * 10 + logs + 3 * cores;
}
uint32_t leat_member_cores(const struct leat_core *core, uint64_t incarnation)
{
    assert_ptr_equal(core, &alone.cores[1]);
    return (uint32_t)incarnation * 2;
}

/* ---- the rig ---- */

static void member(uint32_t at, const char *name, enum leat_node_state state)
{
    struct leat_member *row = &it.members[at];
    row->info = (struct leat_node_info){.incarnation = 10 + at, .cores = 3 + at, .state = state};
    snprintf(row->info.name, sizeof row->info.name, "%s", name);
    snprintf(row->info.address, sizeof row->info.address, "%s:7", name);
    alone.cores[1].members.rows[at] = row;
    alone.cores[1].members.count = at + 1;
}

static void begin(void)
{
    static const char *const names[STREAMS] = {"orders", "b", "c", "leat.sets"};
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    it.body = malloc(512 * 1024);
    assert_non_null(it.body);
    calls.peer.conn = (void *)&it;
    calls.peer.sharer = &it.sharer;
    calls.peer.address_number = 99;
    alone.node.options.auto_create = true;
    memcpy(alone.node.cluster_id, "0123456789abcdef", 16);
    snprintf(alone.node.bound_address, sizeof alone.node.bound_address, "l:1");
    alone.cores[1].data->streams_by_id = it.buckets;
    alone.cores[1].data->stream_mask = 1;
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct leat_stream_desc *desc =
            calloc(1, sizeof *desc + 2 * sizeof alone.desc->streamlets[0]);
        assert_non_null(desc);
        snprintf(desc->name, sizeof desc->name, "%s", names[i]);
        desc->id = 4 + i;
        desc->settings = alone.desc->settings;
        desc->streamlet_count = 2;
        desc->streamlets[0].owner = 100, desc->streamlets[1].owner = 11;
        desc->streamlets[0].epoch.v = 5, desc->streamlets[1].epoch.v = 6;
        desc->internal = i == 3;
        it.streams[i] = (struct leat_stream){.desc = desc, .published = i != 2};
        it.streams[i].by_id_next = it.buckets[desc->id % 2];
        it.buckets[desc->id % 2] = &it.streams[i];
    }
}

static void end(void)
{
    for (unsigned i = 0; i < STREAMS; i++)
        free(it.streams[i].desc);
    free(it.body);
    assert_int_equal(calls.open, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
    said_enough();
    alone_end();
}

static struct leat_msg_writer *body(uint32_t fields)
{
    leat_msg_writer_init(&it.writer, it.body, 512 * 1024);
    leat_msg_write_array(&it.writer, fields);
    return &it.writer;
}

/* ---- made and deleted ---- */

static void create(uint32_t fields)
{
    struct leat_msg_writer *writer = body(fields);
    const struct leat_stream_settings settings = {.streamlets = 3, .logs = 4};
    if (fields >= 1) leat_msg_write_string(writer, "b", 1);
    if (fields >= 2) leat_msg_settings_write(writer, &settings);
    alone_call(leat_call_stream_create, writer);
}

#define ALLOWED "name b\nsize b 3 x 4\nwork 3 x 4\n"

static void stream_is_made(void **state)
{
    (void)state;
    begin();
    create(2);
    assert_said(ALLOWED "make b 3 x 4 for 99\n");
    it.maker->id = ALONE_STREAM;
    alone.desc->settings.streamlets = 55;
    it.maker->on_done(it.maker);
    assert_said("answer\n");
    struct leat_msg_reader reader;
    struct leat_stream_settings settings;
    alone_answer(&reader);
    assert_int_equal(leat_msg_read_array(&reader), 2);
    assert_int_equal(leat_msg_read_u64(&reader), ALONE_STREAM);
    leat_msg_settings_read(&reader, &settings);
    assert_int_equal(settings.streamlets, 55);
    assert_true(leat_msg_read_done(&reader));
    create(1); /* all by default; another node's clients count as one */
    assert_true(said_one("name b\n") && said_one("size b 0 x 0\n"));
    said_enough();
    alone.no_stream = true;
    it.maker->id = ALONE_STREAM;
    it.maker->on_done(it.maker);
    assert_said("refuse UNKNOWN_STREAM: deleted as it was created\n");
    create(2);
    said_enough();
    it.maker->rc = leat_error_set(&it.maker->error, LEAT_E_STREAM_EXISTS, "it is there");
    it.maker->on_done(it.maker);
    assert_said("refuse STREAM_EXISTS: it is there\n");
    end();
}

static void stream_is_not_made(void **state)
{
    (void)state;
    begin();
    create(0);
    assert_said("refuse INVALID: the control body of stream create is not [name, settings]\n");
    it.work = LEAT_E_AGAIN;
    create(2);
    assert_said(ALLOWED "refuse AGAIN: too fast\n");
    it.create = LEAT_E_TOO_MANY;
    create(2);
    assert_said("name b\nsize b 3 x 4\nrefuse TOO_MANY: no room\n");
    it.name = LEAT_E_BAD_NAME;
    create(2);
    assert_said("name b\nrefuse BAD_NAME: a bad name\n");
    calls.none = true;
    create(2);
    alone_call(leat_call_stream_delete, body(0));
    alone_call(leat_call_metadata, body(0));
    assert_said("");
    end();
}

static void delete (void)
{
    struct leat_msg_writer *writer = body(1);
    leat_msg_write_string(writer, "b", 1);
    alone_call(leat_call_stream_delete, writer);
}

static void stream_is_deleted(void **state)
{
    (void)state;
    begin();
    delete ();
    assert_said("name b\ndelete b for 99\n");
    it.deleter->on_done(it.deleter);
    assert_said("answer\n");
    assert_int_equal(calls.answer_bytes, 1);
    assert_int_equal(calls.answer[0], 0x90);
    delete ();
    said_enough();
    it.deleter->rc = leat_error_set(&it.deleter->error, LEAT_E_TIMEOUT, "no leader");
    it.deleter->on_done(it.deleter);
    assert_said("refuse TIMEOUT: no leader\n");
    it.name = LEAT_E_BAD_NAME;
    delete ();
    assert_said("name b\nrefuse BAD_NAME: a bad name\n");
    alone_call(leat_call_stream_delete, body(0));
    assert_said("refuse INVALID: the control body of stream delete is not [name]\n");
    end();
}

/* ---- metadata ---- */

/* [[name...], may make, nodes only] as far as so many fields go. */
static void ask(uint32_t fields, uint32_t count, const char *const *names, bool may_create,
                bool nodes_only)
{
    struct leat_msg_writer *writer = body(fields);
    leat_msg_write_array(writer, count);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = names != NULL ? names[i] : "n";
        leat_msg_write_string(writer, name, strlen(name));
    }
    if (fields >= 2) leat_msg_write_bool(writer, may_create);
    if (fields >= 3) leat_msg_write_bool(writer, nodes_only);
    alone_call(leat_call_metadata, writer);
}

static struct leat_msg_reader answer;

static void assert_node(uint64_t incarnation, const char *name, const char *address, uint32_t lanes)
{
    struct leat_msg_node node;
    leat_msg_node_read(&answer, &node);
    assert_false(answer.failed);
    assert_int_equal(node.incarnation, incarnation);
    assert_int_equal(node.name.bytes, strlen(name));
    assert_memory_equal(node.name.text, name, node.name.bytes);
    assert_int_equal(node.address.bytes, strlen(address));
    assert_memory_equal(node.address.text, address, node.address.bytes);
    assert_int_equal(node.lanes, lanes);
}

static void assert_head(uint32_t nodes)
{
    alone_answer(&answer);
    assert_int_equal(leat_msg_read_array(&answer), 3);
    struct leat_msg_string id = leat_msg_read_string(&answer);
    assert_int_equal(id.bytes, 16);
    assert_memory_equal(id.text, "0123456789abcdef", 16);
    assert_int_equal(leat_msg_read_array(&answer), nodes);
}

static void assert_stream(uint32_t at, bool with_logs)
{
    const struct leat_stream_desc *desc = it.streams[at].desc;
    struct leat_msg_stream stream;
    leat_msg_stream_read(&answer, &stream);
    assert_false(answer.failed);
    assert_int_equal(stream.code, LEAT_OK);
    assert_int_equal(stream.id, desc->id);
    assert_int_equal(stream.name.bytes, strlen(desc->name));
    assert_memory_equal(stream.name.text, desc->name, stream.name.bytes);
    assert_int_equal(stream.settings.copies, 3);
    assert_int_equal(stream.log_count, with_logs ? 2 * desc->settings.logs : 0);
    for (uint32_t i = 0; i < stream.log_count; i++) {
        struct leat_msg_log log;
        uint32_t s = i / desc->settings.logs, q = i % desc->settings.logs;
        leat_msg_log_read(&answer, &log);
        assert_false(answer.failed);
        assert_int_equal(log.streamlet, s);
        assert_int_equal(log.log, q);
        assert_int_equal(log.owner, s == 0 ? 100 : 11);
        assert_int_equal(log.epoch, 5 + s);
        assert_int_equal(log.lane, leat_lane_of_log((struct leat_log_ref){desc->id, s, q},
                                                    desc->settings.logs, s == 0 ? 200 : 22));
    }
}

static void sought(void)
{
    it.seeker->on_done(it.seeker);
    assert_said("its turn\n");
    it.step->run(it.step);
}

static void streams_that_are_named_are_told_of(void **state)
{
    (void)state;
    static const char *const names[] = {"b", "c", "d", "orders"};
    begin();
    ask(2, 4, names, true, false);
    assert_said("seek for 99, may make\n b\n c\n d\n orders\n");
    leat_error_set(&it.seeker->errors[2], LEAT_E_TOO_MANY, "no room");
    sought();
    assert_said("answer\n");
    assert_head(1);
    assert_node(100, "n1", "l:1", 2);
    assert_int_equal(leat_msg_read_array(&answer), 4);
    assert_stream(1, true);
    for (unsigned i = 0; i < 2; i++) {
        struct leat_msg_stream stream;
        leat_msg_stream_read(&answer, &stream);
        assert_int_equal(stream.code, i == 0 ? LEAT_E_UNKNOWN_STREAM : LEAT_E_TOO_MANY);
        assert_int_equal(stream.log_count, 0);
        assert_int_equal(stream.name.text[0], i == 0 ? 'c' : 'd');
        const char *text = i == 0 ? "no stream is named 'c': see 'leat stream list', or make it "
                                    "with 'leat stream create'"
                                  : "no room";
        assert_int_equal(stream.text.bytes, strlen(text));
        assert_memory_equal(stream.text.text, text, stream.text.bytes);
    }
    assert_stream(0, true);
    assert_true(leat_msg_read_done(&answer));
    end();
}

static void all_nodes_are_told_of(void **state)
{
    (void)state;
    begin();
    member(0, "d", LEAT_NODE_DOWN);
    member(1, "u", LEAT_NODE_UP);
    member(2, "n1", LEAT_NODE_UP);
    it.members[2].self = true;
    member(3, "g", LEAT_NODE_GONE);
    alone.node.options.cluster.advertise = "a:2";
    ask(3, 0, NULL, false, true);
    assert_said("answer\n");
    assert_head(3);
    assert_node(100, "n1", "a:2", 2);
    assert_node(11, "u", "u:7", 4);
    assert_node(10, "d", "", 3);
    assert_int_equal(leat_msg_read_array(&answer), 0);
    assert_true(leat_msg_read_done(&answer));
    end();
}

/* Goal: a node that is isolated, or was declared crashed, names itself as down, and the other nodes as ever. */
static void node_that_is_isolated_is_down_by_its_own_word(void **state)
{
    (void)state;
    static const unsigned stands[] = {0, LEAT_STANDING_CONFIRMED, LEAT_STANDING_ALONE,
                                      LEAT_STANDING_CRASHED};
    for (unsigned i = 0; i < 4; i++) {
        begin();
        member(0, "u", LEAT_NODE_UP);
        atomic_store(&alone.node.standing, stands[i]);
        ask(3, 0, NULL, false, true);
        assert_said("answer\n");
        assert_head(2);
        assert_node(100, "n1", i < 2 ? "l:1" : "", 2);
        assert_node(10, "u", "u:7", 3);
        assert_int_equal(leat_msg_read_array(&answer), 0);
        assert_true(leat_msg_read_done(&answer));
        atomic_store(&alone.node.standing, 0);
        end();
    }
}

static void all_streams_are_told_of(void **state)
{
    (void)state;
    for (unsigned large = 0; large < 2; large++) {
        begin();
        if (large) it.streams[0].desc->settings.logs = 9000; /* not with its logs */
        ask(3, 0, NULL, true, false);
        assert_said("seek for 99, may make, all\n");
        sought();
        assert_said("answer\n");
        assert_head(1);
        assert_node(100, "n1", "l:1", 2);
        assert_int_equal(leat_msg_read_array(&answer), 2);
        assert_stream(0, !large);
        assert_stream(1, !large);
        assert_true(leat_msg_read_done(&answer));
        end();
    }
}

static void nobody_is_answered_who_has_gone(void **state)
{
    (void)state;
    static const char *const names[] = {"b"};
    begin();
    for (unsigned i = 0; i < 2; i++) {
        calls.by_link = i == 1;
        ask(2, 1, names, true, false);
        calls.peer.conn = NULL;
        said_enough();
        sought();
        assert_said(i == 0 ? "refuse CLOSED\n" : "answer\n");
    }
    end();
}

static void metadata_is_asked_for_in_bounds(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', sizeof name);
    const char *const names[] = {name};
    begin();
    ask(1, 1024, NULL, false, false);
    assert_true(said_one("seek for 99\n"));
    assert_int_equal(it.seeker->count, 1024);
    it.seeker->count = 1; /* all would not fit here */
    said_enough();
    sought();
    said_enough();
    ask(1, 1025, NULL, false, false);
    assert_said("refuse TOO_MANY: metadata is asked for as [[name...], may create], 1024 names at "
                "most\n");
    alone_call(leat_call_metadata, body(1));
    assert_said("refuse INVALID: metadata is asked for as [[name...], may create], 1024 names at "
                "most\n");
    name[250] = '\0';
    ask(2, 1, names, false, false);
    assert_said("refuse BAD_NAME: a stream name has 1 to 249 bytes\n");
    name[249] = '\0';
    ask(2, 1, names, false, false);
    assert_true(said_one("seek for 99\n"));
    assert_string_equal(it.seeker->names[0], name);
    said_enough();
    sought();
    said_enough();
    ask(3, 1, NULL, false, true);
    assert_said("refuse INVALID: malformed metadata request\n");
    struct leat_msg_writer *writer = body(2);
    leat_msg_write_array(writer, 0);
    leat_msg_write_u64(writer, 7); /* is no answer to a question */
    alone_call(leat_call_metadata, writer);
    assert_said("refuse INVALID: metadata is asked for as [[name...], may create], 1024 names at "
                "most\n");
    writer = body(1);
    leat_msg_write_array(writer, 1);
    leat_msg_write_u64(writer, 7);
    alone_call(leat_call_metadata, writer);
    assert_said("refuse BAD_NAME: a stream name has 1 to 249 bytes\n");
    for (unsigned n = 1; n <= 2; n++) {
        leat_mem_fail_at(n);
        ask(2, 1, NULL, false, false);
        leat_mem_fail_at(0);
        assert_said("refuse AGAIN\n");
    }
    alone.node.options.auto_create = false;
    ask(2, 1, NULL, true, false);
    assert_said("seek for 99\n n\n");
    sought();
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stream_is_made),
        cmocka_unit_test(stream_is_not_made),
        cmocka_unit_test(stream_is_deleted),
        cmocka_unit_test(streams_that_are_named_are_told_of),
        cmocka_unit_test(all_nodes_are_told_of),
        cmocka_unit_test(node_that_is_isolated_is_down_by_its_own_word),
        cmocka_unit_test(all_streams_are_told_of),
        cmocka_unit_test(nobody_is_answered_who_has_gone),
        cmocka_unit_test(metadata_is_asked_for_in_bounds),
    };
    return cmocka_run_group_tests_name("broker meta", tests, NULL, NULL);
}
