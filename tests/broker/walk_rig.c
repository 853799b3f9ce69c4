/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/walk_rig.h"
#include "broker/admin/calls.h"
#include "broker/admin/core_admin.h"
#include "broker/data/begun.h"
#include "broker/data/core_data.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/stream.h"

struct walk_rig it;
static size_t bytes_before;

/* ---- what it calls ---- */

struct leat_stream *leat_stream_find(const struct leat_core *core, uint32_t id)
{
    return id == ALONE_STREAM ? core->data->streams_by_id[0] : NULL;
}
struct leat_stream *leat_stream_find_name(const struct leat_core *core, const char *name,
                                          size_t bytes)
{
    return bytes == 6 && memcmp(name, "orders", 6) == 0 ? core->data->streams_by_id[0] : NULL;
}
leat_err leat_stream_put(struct leat_core *core, struct leat_stream_desc *desc,
                         struct leat_stream **out_stream)
{
    struct leat_stream *stream = &it.streams[core->index];
    said("core %u: put", core->index);
    if (core->data->streams_by_id[0] == NULL) leat_list_init(&stream->waiters);
    core->data->streams_by_id[0] = stream;
    stream->desc = desc;
    *out_stream = stream;
    return LEAT_OK;
}
void leat_stream_publish(struct leat_stream *stream)
{
    said("core %zu: publish", (size_t)(stream - it.streams));
    stream->published = true;
}
void leat_stream_remove(struct leat_core *core, struct leat_stream *stream)
{
    assert_ptr_equal(stream, &it.streams[core->index]);
    said("core %u: remove", core->index);
    core->data->streams_by_id[0] = NULL;
}
void leat_stream_desc_ref(struct leat_stream_desc *desc)
{
    assert_non_null(desc);
    it.desc_refs++;
}
void leat_stream_desc_unref(struct leat_stream_desc *desc)
{
    assert_non_null(desc);
    it.desc_refs--;
}
struct leat_begun *leat_begun_of(const struct leat_coordinator *coordinator,
                                 const struct leat_stream_desc *desc, uint64_t incarnation)
{
    assert_ptr_equal(coordinator, &it);
    assert_non_null(desc);
    assert_int_equal(incarnation, ALONE_SELF);
    it.begun_refs++;
    return (struct leat_begun *)(void *)&it.row;
}
struct leat_begun *leat_begun_ref(struct leat_begun *begun)
{
    if (begun != NULL) it.begun_refs++;
    return begun;
}
void leat_begun_unref(struct leat_begun *begun)
{
    if (begun != NULL) it.begun_refs--;
}
const struct leat_begun_log *leat_begun_find(const struct leat_begun *begun,
                                             struct leat_log_ref ref)
{
    if (begun == NULL || !it.begun_told) return NULL;
    it.row = (struct leat_begun_log){.ref = ref, .epoch = {9}};
    return &it.row;
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    bool here = ref.stream == ALONE_STREAM && ref.log == core->index;
    return here && it.there[core->index][ref.streamlet] ? &it.logs[core->index][ref.streamlet]
                                                        : NULL;
}
leat_err leat_partition_create(struct leat_core *core, struct leat_stream *stream,
                               struct leat_log_ref ref, struct leat_epoch epoch,
                               struct leat_segment *const *segs, size_t seg_count,
                               const struct leat_log_tail *tail,
                               struct leat_partition **out_partition)
{
    static const struct leat_log_tail empty;
    assert_ptr_equal(stream, &it.streams[core->index]);
    assert_null(segs);
    assert_int_equal(seg_count, 0);
    assert_memory_equal(tail, &empty, sizeof empty);
    assert_int_equal(ref.log, core->index);
    said("core %u: make %s, epoch %u", core->index, ref_text(ref), epoch.v);
    if (it.create != LEAT_OK) return it.create;
    it.there[core->index][ref.streamlet] = true;
    *out_partition = &it.logs[core->index][ref.streamlet];
    return LEAT_OK;
}
void leat_partition_destroy(struct leat_partition *partition)
{
    said("destroy %s", ref_text(partition->ref));
    it.there[partition->ref.log][partition->ref.streamlet] = false;
}
void leat_partition_give_up(struct leat_partition *partition)
{
    said("give up %s", ref_text(partition->ref));
}
void leat_partition_wake(struct leat_partition *partition)
{
    assert_true(leat_partition_goes(partition));
    said("wake %s", ref_text(partition->ref));
}
static void on_logs_stopped(struct leat_core *core)
{
    said("core %u has one log less to stop", core->index);
    core->data->logs_to_stop = 1;
}
void leat_log_stop(struct leat_log *log, void (*on_stopped)(void *arg, struct leat_log *log),
                   void *arg)
{
    fail_msg("log %p is stopped for %p", (void *)log, on_stopped == NULL ? NULL : arg);
}
void leat_log_delete(struct leat_log *log, void (*on_gone)(void *arg, struct leat_log *log),
                     void *arg)
{
    assert_ptr_equal(log, &it);
    it.on_gone = on_gone;
    it.gone_arg = arg;
    said("delete %s", ref_text(((struct leat_partition *)arg)->ref));
}
void leat_log_settings_set(struct leat_log *log, const struct leat_stream_settings *settings)
{
    assert_ptr_equal(log, &it);
    said("settings: %u copies", settings->copies);
}
void leat_primary_log_min_copies_set(struct leat_primary_log *rep, uint32_t min_copies)
{
    assert_ptr_equal(rep, &it.row);
    said("least copies: %u", min_copies);
}
void leat_move_part_gone(struct leat_move_part *part)
{
    assert_ptr_equal(part, &it);
    said("its move is told");
}
void leat_takeover_ask(struct leat_core *core, const struct leat_begun_log *row, uint32_t logs)
{
    assert_int_equal(logs, ALONE_LOGS);
    assert_int_equal(core->index, row->ref.log);
    said("core %u: ask for %s, epoch %u", core->index, ref_text(row->ref), row->epoch.v);
}
void leat_places_forget(struct leat_core *core, struct leat_stream *stream)
{
    assert_ptr_equal(stream, &it.streams[core->index]);
    it.forgotten++;
}
void leat_takeover_look(struct leat_partition *partition, const struct leat_begun_log *row,
                        uint32_t logs)
{
    assert_int_equal(logs, ALONE_LOGS);
    assert_true(leat_log_ref_equal(partition->ref, row->ref));
    said("look at %s again", ref_text(partition->ref));
}
bool leat_node_heap_admits(struct leat_node *node, uint64_t now_us)
{
    assert_ptr_equal(node, &alone.node);
    assert_int_equal(now_us, alone.now_us);
    return !it.no_heap;
}
void leat_backup_stream_deleted(struct leat_backup *backup, uint32_t stream)
{
    assert_ptr_equal(backup, &it);
    said("the backup: stream %u is deleted", stream);
}
uint32_t leat_groups_on_stream_changed(struct leat_groups *groups, uint32_t stream)
{
    assert_ptr_equal(groups, &it.home);
    said("groups: stream %u has changed", stream);
    return it.set_rows;
}
uint32_t leat_groups_on_stream_deleted(struct leat_groups *groups, uint32_t stream)
{
    assert_ptr_equal(groups, &it.home);
    said("groups: stream %u is deleted", stream);
    return it.set_rows;
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    assert_int_equal(request->kind, LEAT_COORDINATE_BARRIER);
    said("barrier for %llu, within %llu us", (unsigned long long)request->asker,
         (unsigned long long)request->wait_us_max);
    it.request = request;
}

/* ---- the tests' own ---- */

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    alone.node.coordinator = (void *)&it;
    atomic_store(&alone.node.incarnation_told, ALONE_SELF);
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        struct leat_core *core = &alone.cores[q];
        core->data->streams_by_id = it.by_id[q];
        core->data->stream_mask = 1;
        core->adopted = true;
        leat_list_init(&core->admin->stream_awaits);
        leat_list_init(&core->data->home_logs);
        core->data->logs_to_stop = 1;
        core->data->on_logs_stopped = on_logs_stopped;
        leat_news_init(core);
        for (uint32_t s = 0; s < ALONE_STREAMLETS; s++)
            it.logs[q][s] = (struct leat_partition){.ref = {ALONE_STREAM, s, q},
                                                    .core = core,
                                                    .log = (void *)&it,
                                                    .copies = (void *)&it.row,
                                                    .epoch = {5}};
    }
    it.home = (struct leat_partition){.ref = {3, 0, 0}, .groups = (void *)&it.home};
    leat_list_init(&it.home.home);
}

void end(void)
{
    assert_int_equal(it.desc_refs, 0);
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
}

void is_there(void)
{
    for (uint32_t q = 0; q < ALONE_CORES; q++) {
        it.streams[q].desc = alone.desc;
        it.streams[q].published = true;
        leat_list_init(&it.streams[q].waiters);
        it.by_id[q][0] = &it.streams[q];
        for (uint32_t s = 0; s < ALONE_STREAMLETS; s++)
            it.there[q][s] = true;
    }
}

void carried(void)
{
    for (unsigned i = 0; alone_deliver(); i++) {
        assert_in_range(i, 0, 1000);
        for (uint32_t q = 0; q < ALONE_CORES; q++)
            leat_news_turn_end(&alone.cores[q]);
    }
}
