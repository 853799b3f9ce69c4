/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/groups_calls_rig.h"
#include "broker/admin/calls.h"
#include "broker/admin/streams.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/data/seek.h"
#include "broker/net/call.h"

struct groups_calls_rig it;

/* ---- what it calls ---- */

leat_err leat_log_append(struct leat_log *log, const struct leat_batch *batch,
                         struct leat_append *append, struct leat_error *error)
{
    assert_ptr_equal(log, &it);
    assert_ptr_equal(batch, &it.forwarded);
    assert_ptr_equal(append, &it.home);
    said("append");
    if (it.append != LEAT_OK && !it.append_silent) leat_error_set(error, it.append, "broken");
    return it.append;
}
struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id)
{
    assert_ptr_equal(core, it.partition.core);
    return id == 3 ? &it.other : NULL;
}
void leat_segment_group_ask(struct leat_core *core, struct leat_segment_group_query *query)
{
    assert_ptr_equal(core, it.partition.core);
    assert_ptr_equal(query, &it);
    said("groups");
}
uint64_t leat_node_group_bytes(uint64_t memory_bytes)
{
    return memory_bytes / 2;
}
leat_err leat_groups_create(const struct leat_groups_options *options,
                            struct leat_groups **out_groups)
{
    it.options = *options;
    if (it.create == LEAT_OK) *out_groups = (void *)&it.options;
    return it.create;
}
struct leat_log_app leat_groups_app(struct leat_groups *groups)
{
    assert_ptr_equal(groups, &it.options);
    return (struct leat_log_app){.ctx = &it};
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out)
{
    assert_ptr_equal(log, &it);
    memset(out, 0, sizeof *out);
    out->unloaded = it.unloaded;
}
void leat_groups_is_read(struct leat_groups *groups)
{
    assert_ptr_equal(groups, &it.options);
    said("is read");
}
leat_err leat_stream_seek(struct leat_core *core, struct leat_stream_seek *seek, const char *name,
                          size_t bytes, struct leat_stream **out_stream, struct leat_error *error)
{
    assert_ptr_equal(core, &alone.cores[1]);
    said("seek %.*s for %llu", (int)bytes, name, (unsigned long long)seek->catch_up.address);
    it.sought = seek;
    if (it.seek == LEAT_E_AGAIN) return LEAT_E_AGAIN;
    if (it.seek != LEAT_OK) return leat_error_set(error, it.seek, "not there");
    *out_stream = name[0] == 'x' ? &it.other : &alone.stream;
    return LEAT_OK;
}
struct leat_stream *leat_stream_find_name(const struct leat_core *core, const char *name,
                                          size_t bytes)
{
    assert_true(core == &alone.cores[0] || core == &alone.cores[1]);
    assert_int_equal(bytes, 9);
    assert_memory_equal(name, "leat.sets", 9);
    return it.none ? NULL : &alone.stream;
}
struct leat_stream_settings leat_groups_stream_settings(void)
{
    return (struct leat_stream_settings){.logs = 44};
}
void leat_maker_start(struct leat_core *core, struct leat_maker *maker, const char *name,
                      size_t name_bytes, const struct leat_stream_settings *settings)
{
    assert_ptr_equal(core, &alone.cores[1]);
    assert_int_equal(settings->logs, 44);
    said("make %.*s for %llu", (int)name_bytes, name, (unsigned long long)maker->address);
    it.maker = maker;
}
uint32_t leat_groups_home(const char *group, size_t bytes)
{
    assert_int_equal(bytes, strlen(group));
    return it.home;
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    said("core %u: home %s", core->index, ref_text(ref));
    return it.no_partition ? NULL : &it.partition;
}
leat_err leat_node_stands(const struct leat_node *node, struct leat_error *error)
{
    assert_ptr_equal(node, &alone.node);
    return it.stands == LEAT_OK ? LEAT_OK : leat_error_set(error, it.stands, "not confirmed");
}
bool leat_call_hold(struct leat_call *call, size_t bytes)
{
    assert_non_null(call);
    said("hold %zu", bytes);
    return !it.full;
}
void leat_call_forward(struct leat_call *call, uint64_t owner, const uint8_t *control,
                       uint32_t control_bytes)
{
    said("hand on to %llu", (unsigned long long)owner);
    it.forwarded_bytes = control_bytes;
    size_t tail = control_bytes < sizeof it.forwarded ? control_bytes : sizeof it.forwarded;
    memcpy(it.forwarded, control + control_bytes - tail, tail);
    calls.open--;
    free(call);
}

static void said_request(const struct leat_groups_request *request)
{
    static const char *const kinds[] = {"join", "heartbeat", "leave", "commit", "fetch"};
    assert_in_range(request->kind, 0, 4);
    said("%s \"%s\" \"%s\" generation %u of %llu, %zu bytes", kinds[request->kind], request->group,
         request->member, request->generation, (unsigned long long)request->address,
         request->answer_bytes_max);
    if (request->kind == LEAT_GROUPS_JOIN) {
        said(" mode %d session %u", request->mode, request->session_ms);
        for (uint32_t i = 0; i < request->stream_count; i++)
            said(" stream %u", request->streams[i]);
    }
    for (size_t i = 0; i < request->commit_count && i < 4; i++)
        said(" commit %s group %lld at %llu", ref_text(request->commits[i].log),
             (long long)request->commits[i].group, (unsigned long long)request->commits[i].offset);
    for (size_t i = 0; i < request->log_count && i < 4; i++)
        said(" log %s", ref_text(request->logs[i]));
}
bool leat_groups_do(struct leat_groups *groups, struct leat_groups_request *request)
{
    assert_ptr_equal(groups, &it.options);
    assert_int_equal(request->rc, LEAT_OK);
    said_request(request);
    it.request = request;
    if (it.answer_bytes > request->answer_bytes_max) {
        request->rc = LEAT_E_NO_MEMORY;
        request->answer_bytes = it.answer_bytes;
    }
    if (it.fails) request->on_done(request);
    return !it.waits;
}
void leat_groups_cancel(struct leat_groups *groups, struct leat_groups_request *request)
{
    assert_ptr_equal(groups, &it.options);
    assert_ptr_equal(request, it.request);
    said("cancel");
    if (it.deaf) return;
    request->rc = LEAT_E_CANCELLED;
    request->on_done(request);
}

/* ---- the rig ---- */

struct leat_msg_writer *body(uint16_t kind)
{
    calls.kind = kind;
    leat_msg_writer_init(&it.writer, it.body, BODY);
    return &it.writer;
}

void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    it.body = malloc(BODY);
    assert_non_null(it.body);
    calls.peer.core = &alone.cores[1];
    calls.peer.conn = (void *)&it;
    calls.peer.address_number = 99;
    leat_list_init(&calls.peer.group_calls);
    leat_list_init(&alone.stream.waiters);
    leat_list_init(&alone.cores[0].data->home_logs);
    alone.stream.published = true;
    it.home = 2; /* 7/1/0, on core 0 */
    static struct leat_stream_desc other;
    other = (struct leat_stream_desc){.id = 3, .settings = {.logs = 5}};
    other.streamlet_count = 6;
    it.other.desc = &other;
    it.partition = (struct leat_partition){.ref = {ALONE_STREAM, 1, 1},
                                           .core = &alone.cores[0],
                                           .log = (void *)&it,
                                           .stream = &alone.stream,
                                           .groups = (void *)&it.options};
}

void end(void)
{
    assert_int_equal(calls.open, 0);
    assert_true(leat_list_empty(&calls.peer.group_calls));
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_TEST), 0);
    free(it.body);
    said_enough();
    alone_end();
}

void asks(const struct leat_msg_writer *writer)
{
    alone_call(leat_call_group, writer);
}

void leaves(const char *group, size_t group_bytes, const char *member, size_t member_bytes)
{
    struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_LEAVE);
    leat_msg_group_leave_write(writer,
                               &(struct leat_msg_group_leave){{group, (uint32_t)group_bytes},
                                                              {member, (uint32_t)member_bytes}});
    asks(writer);
}

struct leat_msg_writer *join(uint32_t mode, uint32_t streams)
{
    struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_JOIN);
    leat_msg_group_join_write(
        writer, &(struct leat_msg_group_join){{"s", 1}, {"m", 1}, mode, 500, streams});
    for (uint32_t i = 0; i < streams; i++)
        leat_msg_write_string(writer, i % 2 == 0 ? "orders" : "x", i % 2 == 0 ? 6 : 1);
    return writer;
}

struct leat_msg_writer *commit(uint32_t rows)
{
    struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_COMMIT);
    leat_msg_group_commit_write(writer,
                                &(struct leat_msg_group_commit){{"s", 1}, {"", 0}, 8, rows});
    for (uint32_t i = 0; i < rows; i++)
        leat_msg_group_offset_write(
            writer, &(struct leat_msg_group_offset){{3, 4, i}, (int64_t)i - 1, 100 + i});
    return writer;
}

struct leat_msg_writer *fetch(uint32_t logs)
{
    struct leat_msg_writer *writer = body(LEAT_KIND_GROUP_FETCH);
    leat_msg_group_fetch_write(writer, &(struct leat_msg_group_fetch){{"s", 1}, logs});
    for (uint32_t i = 0; i < logs; i++)
        leat_msg_log_ref_write(writer, &(struct leat_log_ref){3, 4, i});
    return writer;
}

/* A leave that waits at its home. */
void begin_waiting(void)
{
    begin();
    it.waits = true;
    leaves("s", 1, "m", 1);
    alone_deliver();
    assert_said(HOME AT_HOME LEAVE);
}
