/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/made_rig.h"
#include "broker/admin/core_admin.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"

struct made_rig it;

/* ---- what it calls ---- */

leat_err leat_stream_name_check(const char *name, size_t bytes, struct leat_error *error)
{
    assert_non_null(name);
    assert_in_range(bytes, 1, 64);
    return it.name == LEAT_OK ? LEAT_OK : leat_error_set(error, it.name, "no name");
}
uint64_t leat_heap_share(uint64_t logs, uint64_t nodes)
{
    return nodes > 2 ? logs / (nodes - 1) : logs;
}
uint64_t leat_node_heap_most(const struct leat_node *node)
{
    assert_ptr_equal(node, &alone.node);
    return it.room;
}
struct leat_stream *leat_stream_find_name(const struct leat_core *of, const char *name,
                                          size_t bytes)
{
    assert_ptr_equal(of, core);
    assert_int_equal(bytes, 6);
    assert_memory_equal(name, "orders", 6);
    return it.named ? &alone.stream : NULL;
}
static void said_rate(const char *what, const struct leat_rate *rate, uint64_t now_us,
                      struct leat_rate_limit limit, uint32_t count)
{
    assert_int_equal(now_us, alone.now_us);
    said("%s %u of %s: %llu, %llu", what, count,
         rate == &core->admin->creates         ? "all"
         : rate == &it.sharer.creates          ? "own"
         : rate == &core->admin->creates_asked ? "all asked"
         : rate == &it.sharer.creates_asked    ? "own asked"
                                               : "?",
         (unsigned long long)limit.burst, (unsigned long long)limit.per_second);
}
static bool is_own(const struct leat_rate *rate)
{
    return rate == &it.sharer.creates || rate == &it.sharer.creates_asked;
}
bool leat_rate_has(const struct leat_rate *rate, uint64_t now_us, struct leat_rate_limit limit,
                   uint32_t count)
{
    said_rate("has", rate, now_us, limit, count);
    return !it.full_own;
}
bool leat_rate_take(struct leat_rate *rate, uint64_t now_us, struct leat_rate_limit limit,
                    uint32_t count)
{
    said_rate("take", rate, now_us, limit, count);
    return is_own(rate) ? !it.full_half : !it.full_all;
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    assert_int_equal(request->wait_us_max, 0);
    assert_null(request->desc);
    said("coordinate %d \"%s\" for %llu: change %u, %u x %u, cores %u of %llu", request->kind,
         request->name, (unsigned long long)request->asker, request->change,
         request->settings.streamlets, request->settings.logs, request->cores,
         (unsigned long long)request->incarnation);
    it.request = request;
}
void leat_stream_desc_unref(struct leat_stream_desc *desc)
{
    assert_ptr_equal(desc, alone.desc);
    it.unrefs++;
}
leat_err leat_stream_seek(struct leat_core *of, struct leat_stream_seek *seek, const char *name,
                          size_t bytes, struct leat_stream **out_stream, struct leat_error *error)
{
    assert_ptr_equal(of, core);
    assert_int_equal(bytes, strlen(name));
    assert_int_equal(seek->catch_up.address, 99);
    said("seek %s%s", name, seek->caught_up ? ", caught up" : "");
    it.seek = seek;
    leat_err rc = it.sought[it.seeks++ % 3];
    seek->caught_up = true;
    *out_stream = rc == LEAT_OK ? &alone.stream : NULL;
    if (rc == LEAT_E_AGAIN) return rc;
    return rc == LEAT_OK ? LEAT_OK : leat_error_set(error, rc, "not there");
}
void leat_catch_up(struct leat_core *of, struct leat_catch_up *catch_up)
{
    assert_ptr_equal(of, core);
    said("catch up for %llu", (unsigned long long)catch_up->address);
    it.catch_up = catch_up;
}

static uint64_t heap_bytes(void *ctx)
{
    assert_ptr_equal(ctx, &it);
    return it.heap;
}

/* ---- the rig ---- */

void begin(void)
{
    alone_begin();
    memset(&it, 0, sizeof it);
    leat_list_init(&alone.stream.waiters);
    leat_list_init(&core->admin->stream_awaits);
    alone.node.options.memory_bytes = 64 << 20;
    core->data->streams_by_id = it.buckets;
    core->data->stream_mask = 1;
    for (uint32_t i = 0; i < 4; i++) {
        it.rows[i].info.state = i == 3 ? LEAT_NODE_DOWN : LEAT_NODE_UP;
        core->members.rows[i] = &it.rows[i];
    }
}

void end(void)
{
    assert_int_equal(atomic_load(&alone.node.logs_making), 0);
    said_enough();
    alone_end();
}

/* Memory is counted; so many nodes are up, and one is down; `other` is taken beside logs. */
void begin_counted(uint32_t up, uint64_t logs, uint64_t other)
{
    begin();
    alone.node.options.heap_bytes = heap_bytes;
    alone.node.options.heap_ctx = &it;
    core->members.rows[up] = &it.rows[3];
    core->members.count = up + 1;
    core->logs_known = logs;
    it.heap = leat_heap_share(logs, up) * HEAP + other;
}
