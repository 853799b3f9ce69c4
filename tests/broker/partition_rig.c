/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/partition_rig.h"
#include "broker/data/core_data.h"

#include "broker/admin/calls.h"
#include "broker/data/append.h"
#include "broker/data/begun.h"
#include "broker/data/fetch.h"
#include "broker/data/partition.h"
#include "broker/node/bringup.h"

struct partition_rig it;
static size_t bytes_before, rows_before;

/* ---- what it calls ---- */

leat_err leat_replicate_attach(struct leat_partition *partition, struct leat_segment *const *segs,
                               size_t seg_count, const struct leat_log_tail *tail,
                               struct leat_store_port *out_store_port)
{
    (void)segs;
    said("attach, %zu segments%s%s", seg_count, tail->backfill_follows ? ", older follow" : "",
         partition->holes ? ", holes" : "");
    *out_store_port = (struct leat_store_port){0};
    if (it.attach == LEAT_OK && !it.no_copies) partition->copies = (void *)&it;
    return it.attach;
}
void leat_replicate_detach(struct leat_partition *partition)
{
    said("detach");
    partition->copies = NULL;
}
enum leat_durability leat_replicate_durability(const struct leat_stream_settings *settings)
{
    assert_ptr_equal(settings, &alone.desc->settings);
    return LEAT_DURABILITY_DISK;
}
leat_err leat_groups_attach(struct leat_partition *partition, struct leat_log_options *options)
{
    assert_non_null(options);
    said("attach groups");
    partition->groups = (void *)&it;
    if (it.groups == LEAT_OK)
        leat_list_push_back(&partition->core->data->home_logs, &partition->home);
    return it.groups;
}
void leat_groups_log_made(struct leat_partition *partition)
{
    assert_non_null(partition->log);
    said("groups: the log is made");
}
void leat_groups_destroy(struct leat_groups **groups)
{
    if (*groups != NULL) said("destroy groups");
    *groups = NULL;
}
void leat_groups_on_room(struct leat_groups *groups)
{
    assert_ptr_equal(groups, &it);
    said("groups: room");
}
leat_err leat_log_create(const struct leat_env *env, const struct leat_store_port *store_port,
                         struct leat_timers *timers, const struct leat_log_options *options,
                         struct leat_segment *const *segs, size_t seg_count,
                         const struct leat_log_tail *tail, struct leat_log **out_log)
{
    (void)store_port, (void)segs, (void)seg_count;
    assert_ptr_equal(env, &alone.env);
    assert_ptr_equal(timers, &alone.cores[0].timers);
    said("create the log, next %llu", (unsigned long long)tail->next_segment);
    it.hibernate_us = options->hibernate_after_us;
    if (it.create != LEAT_OK) return it.create;
    struct leat_log *log = calloc(1, sizeof *log);
    assert_non_null(log);
    log->ref = options->ref;
    log->options = *options;
    log->info.memory_bytes = 1;
    *out_log = log;
    return LEAT_OK;
}
void leat_log_destroy(struct leat_log **log)
{
    said("destroy the log");
    free(*log);
    *log = NULL;
}
struct leat_segment_range leat_takeover_unsure(const struct leat_partition *partition,
                                               struct leat_segment *const *segs, size_t count,
                                               const struct leat_log_tail *tail)
{
    (void)partition, (void)segs, (void)tail;
    return (struct leat_segment_range){count, count + 3};
}
void leat_partition_delete(struct leat_core *core, struct leat_partition *partition)
{
    assert_ptr_equal(core, partition->core);
    said("delete %s", ref_text(partition->ref));
}
void leat_append_on_room(struct leat_partition *partition)
{
    said("room in %s", ref_text(partition->ref));
}
void leat_fetch_on_acked(struct leat_partition *partition)
{
    said("acked in %s", ref_text(partition->ref));
}
void leat_move_part_gone(struct leat_move_part *part)
{
    assert_ptr_equal(part, &it);
    said("its move is told that it has gone");
}
bool leat_node_heap_is_full(const struct leat_node *node, uint64_t left_bytes, uint64_t bytes)
{
    assert_ptr_equal(node, &alone.node);
    said("is the heap full, by %llu, with %llu left?", (unsigned long long)bytes,
         (unsigned long long)left_bytes);
    return it.heap_full;
}
bool leat_node_heap_refuses(const struct leat_node *node, uint64_t now_us)
{
    assert_ptr_equal(node, &alone.node);
    assert_int_equal(now_us, alone.now_us);
    return it.heap_refuses;
}
bool leat_node_pool_pressed(const struct leat_node *node, uint64_t now_us)
{
    assert_ptr_equal(node, &alone.node);
    assert_int_equal(now_us, alone.now_us);
    return it.pressed;
}
const struct leat_begun_log *leat_begun_find(const struct leat_begun *begun,
                                             struct leat_log_ref ref)
{
    (void)begun, (void)ref;
    return it.row;
}
void leat_member_words(const struct leat_core *core, uint64_t incarnation, char *out,
                       size_t capacity)
{
    assert_ptr_equal(core, &alone.cores[0]);
    snprintf(out, capacity, "node %llu", (unsigned long long)incarnation);
}
leat_err leat_repair_ask(const struct leat_partition *partition, const struct leat_segment *seg)
{
    said("repair %llu of %s", (unsigned long long)seg->id.v, ref_text(partition->ref));
    return LEAT_E_NO_MEMORY;
}
void leat_adopt_damage_tell(struct leat_core *core, struct leat_partition *partition)
{
    assert_ptr_equal(core, &alone.cores[0]);
    said("tell the damage of %s", ref_text(partition->ref));
}
void leat_takeover_older(struct leat_partition *partition)
{
    said("older of %s", ref_text(partition->ref));
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    assert_int_equal(request->kind, LEAT_COORDINATE_OPENED);
    assert_int_equal(request->incarnation, ALONE_SELF);
    said("coordinate opened, epoch %u, version %u, of %zu: %s", request->epoch.v, request->version,
         request->log_count, ref_text(request->logs[0]));
    it.requests[it.request_count++] = request;
}
uint32_t leat_primary_opening(struct leat_primary_log *rep)
{
    assert_ptr_equal(rep, &it);
    return it.version++;
}
void leat_primary_opened(struct leat_primary_log *rep, leat_err rc)
{
    assert_ptr_equal(rep, &it);
    said("copies opened %s", leat_err_name(rc));
}
void leat_log_opened(struct leat_log *log, leat_err rc)
{
    said("%s opened %s", ref_text(log->ref), leat_err_name(rc));
}
void leat_log_care(struct leat_log *log)
{
    said("care for %s", ref_text(log->ref));
}
void leat_log_hibernate_after_set(struct leat_log *log, uint64_t hibernate_after_us)
{
    (void)log;
    it.hibernate_us = hibernate_after_us;
}
void leat_log_abandon(struct leat_log *log)
{
    said("abandon %s", ref_text(log->ref));
}
void leat_primary_log_abandon(struct leat_primary_log *rep)
{
    assert_ptr_equal(rep, &it);
    said("abandon its copies");
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    *out_info = log->info;
}
bool leat_log_reads_wait(const struct leat_log *log)
{
    return log->reads_wait;
}
void leat_log_reads_expire(struct leat_log *log)
{
    said("reads of %s expire", ref_text(log->ref));
}
const struct leat_segment *leat_log_first_held(const struct leat_log *log)
{
    return log->first;
}
const struct leat_segment *leat_log_held(const struct leat_log *log, uint64_t segment)
{
    assert_int_equal(segment, 5);
    return log->held;
}
void leat_node_complain(struct leat_node *node, const char *format, ...)
{
    char line[512];
    va_list args;
    assert_ptr_equal(node, &alone.node);
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    said("complain: %s", line);
}

/* ---- the tests' own ---- */

struct leat_core *core_of_all(void)
{
    return &alone.cores[0];
}

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    rows_before = leat_mem_bytes(LEAT_MEM_ROWS);
    memset(&it, 0, sizeof it);
    it.version = 1;
    struct leat_core *core = &alone.cores[0];
    core->index = 3;
    core->data->partitions = leat_mem_calloc(LEAT_MEM_ROWS, 1, sizeof *core->data->partitions);
    core->data->openers = calloc(LEAT_OPENERS_MAX, sizeof *core->data->openers);
    assert_non_null(core->data->openers);
    leat_list_init(&core->data->care_logs);
    leat_list_init(&core->data->idle_logs);
    leat_list_init(&core->data->dirty_logs);
    leat_list_init(&core->data->opening_logs);
    leat_list_init(&core->data->room_waits);
    leat_list_init(&core->data->home_logs);
}

void end(void)
{
    struct leat_core *core = &alone.cores[0];
    for (uint32_t i = 0; i <= core->data->partition_mask; i++)
        while (core->data->partitions[i] != NULL) {
            core->data->partitions[i]->moving = NULL;
            leat_partition_destroy(core->data->partitions[i]);
        }
    assert_int_equal(core->data->partition_count, 0);
    assert_int_equal(atomic_load(&alone.node.partition_count), 0);
    assert_true(leat_list_empty(&core->data->home_logs));
    assert_true(leat_list_empty(&core->data->care_logs) && leat_list_empty(&core->data->idle_logs));
    assert_true(leat_list_empty(&core->data->dirty_logs) &&
                leat_list_empty(&core->data->opening_logs));
    leat_mem_free(core->data->partitions);
    free(core->data->openers);
    said_enough();
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_ROWS), rows_before);
}

struct leat_partition *make(uint32_t number)
{
    struct leat_partition *partition;
    const struct leat_log_tail tail = {.next_segment = 3};
    assert_int_equal(leat_partition_create(&alone.cores[0], &alone.stream,
                                           (struct leat_log_ref){ALONE_STREAM, 1, number},
                                           (struct leat_epoch){9}, NULL, 0, &tail, &partition),
                     LEAT_OK);
    return partition;
}
