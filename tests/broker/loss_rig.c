/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/loss_rig.h"
#include "broker/data/begun.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/data/route.h"
#include "broker/ownership/calls.h"

struct loss_rig it;
static size_t bytes_before;

/* ---- what it calls ---- */

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, 0);
    assert_true(leat_log_ref_equal(ref, it.partition.ref));
    return it.there ? &it.partition : NULL;
}
const struct leat_begun_log *leat_begun_find(const struct leat_begun *begun,
                                             struct leat_log_ref ref)
{
    if (begun == NULL) return NULL;
    assert_true(leat_log_ref_equal(ref, it.partition.ref));
    return &it.begun;
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    assert_int_equal(request->kind, LEAT_COORDINATE_ACCEPT_LOSS);
    assert_int_equal(request->log_count, 1);
    said("coordinate loss of %s, epoch %u, incarnation %llu: %s, at least %llu%s",
         ref_text(request->logs[0]), request->epoch.v, (unsigned long long)request->incarnation,
         tail_text(&request->tails[0]), (unsigned long long)request->next_offset,
         request->stands_in ? ", stands in" : "");
    it.request = request;
}
void leat_core_log_stop(struct leat_core *core, struct leat_partition *partition)
{
    assert_int_equal(core->index, 0);
    assert_ptr_equal(partition, &it.partition);
    said("stop the log with its core");
}
void leat_core_log_stopped(struct leat_core *core)
{
    said("core %u has one log less to stop", core->index);
}
leat_err leat_partition_absent(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, 0);
    assert_true(leat_log_ref_equal(ref, it.partition.ref));
    return it.absent;
}
const char *leat_partition_absent_words(leat_err absent)
{
    return leat_err_name(absent);
}
void leat_partition_destroy(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    said("destroy the partition");
    leat_mem_free(partition->segs);
    partition->segs = NULL;
    it.there = false;
}
void leat_partition_give_up(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    said("give up");
}
void leat_partition_give_up_go_on(struct leat_partition *partition, bool copies_idle)
{
    assert_ptr_equal(partition, &it.partition);
    said("give up, go on%s", copies_idle ? ", copies idle" : "");
}
leat_err leat_partition_open(struct leat_partition *partition, struct leat_segment *const *segs,
                             size_t seg_count, const struct leat_log_tail *tail)
{
    assert_ptr_equal(partition, &it.partition);
    assert_ptr_equal(segs, partition->segs);
    assert_false(tail->stands_in);
    assert_int_equal(tail->previous.bytes, 0);
    said("open, epoch %u, of %zu segments, next %llu at %llu%s%s%s", partition->epoch.v, seg_count,
         (unsigned long long)tail->next_segment, (unsigned long long)tail->next_offset,
         tail->jumped ? ", jumped" : "", tail->backfill_follows ? ", older follow" : "",
         tail->holes ? ", holes" : "");
    return it.open;
}
void leat_partition_wake(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    said("wake");
}
void leat_replicate_detach(struct leat_partition *partition)
{
    assert_ptr_equal(partition, &it.partition);
    said("detach");
}
void leat_groups_destroy(struct leat_groups **groups)
{
    assert_ptr_equal(groups, &it.partition.groups);
    said("destroy the groups");
}
bool leat_takeover_has_holes(struct leat_segment *const *segs, size_t count)
{
    return count > 1 && segs[1]->id.v != segs[0]->id.v + 1;
}
void leat_takeover_look(struct leat_partition *partition, const struct leat_begun_log *row,
                        uint32_t logs)
{
    assert_ptr_equal(partition, &it.partition);
    assert_ptr_equal(row, &it.begun);
    assert_int_equal(logs, ALONE_LOGS);
    said("look at what is known now");
}
void leat_partition_delete(struct leat_core *core, struct leat_partition *partition)
{
    assert_int_equal(core->index, 0);
    assert_ptr_equal(partition, &it.partition);
    assert_false(leat_partition_goes(partition) || partition->recover != NULL);
    said("delete");
}

/* ---- the log ---- */

size_t leat_log_closed(const struct leat_log *log, struct leat_segment **out)
{
    assert_ptr_equal(log, &it);
    for (size_t i = 0; i < it.info.segment_count; i++)
        out[i] = &it.segs[i];
    return it.info.segment_count;
}
bool leat_log_damage_find(const struct leat_log *log, uint64_t *at, struct leat_log_damage *out)
{
    assert_ptr_equal(log, &it);
    if (*at >= it.damage_count) return false;
    *out = it.damages[(*at)++];
    return true;
}
void leat_log_destroy(struct leat_log **log)
{
    assert_ptr_equal(*log, &it);
    said("destroy the log");
}
void leat_log_skip_missing(struct leat_log *log, void (*on_done)(void *arg, struct leat_log *log),
                           void *arg)
{
    assert_ptr_equal(log, &it);
    assert_true(it.partition.skipping_missing);
    said("skip missing");
    it.on_skipped = on_done;
    it.skip_arg = arg;
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    assert_ptr_equal(log, &it);
    *out_info = it.info;
}
void leat_log_passed_over(struct leat_log *log, struct leat_log_passed *out)
{
    assert_ptr_equal(log, &it);
    *out = it.passed;
}
void leat_log_stop(struct leat_log *log, void (*on_stopped)(void *arg, struct leat_log *log),
                   void *arg)
{
    assert_ptr_equal(log, &it);
    said("stop the log");
    it.on_stopped = on_stopped;
    it.stop_arg = arg;
}
leat_err leat_log_trouble(struct leat_log *log, char *out, size_t bytes)
{
    assert_ptr_equal(log, &it);
    snprintf(out, bytes, "%s", it.trouble == LEAT_OK ? "" : "offsets 3 to 5 are damaged");
    return it.trouble;
}
void leat_primary_log_release(struct leat_primary_log *rep, void (*on_idle)(void *arg), void *arg)
{
    assert_ptr_equal(rep, &it.segs);
    said("release copies");
    it.on_idle = on_idle;
    it.idle_arg = arg;
}

/* ---- the tests' own ---- */

void begin(void)
{
    alone_begin();
    bytes_before = leat_mem_bytes(LEAT_MEM_BROKER);
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    calls.log = (struct leat_log_ref){ALONE_STREAM, 1, 0};
    it.there = true;
    it.partition = (struct leat_partition){.ref = calls.log,
                                           .core = &alone.cores[0],
                                           .stream = &alone.stream,
                                           .log = (void *)&it,
                                           .copies = (void *)&it.segs,
                                           .epoch = {9},
                                           .highest_segment = 4,
                                           .highest_offset = 60,
                                           .highest_prefix_id = {100, 7}};
    leat_list_init(&it.partition.home);
    it.info = (struct leat_log_info){.state = LEAT_LOG_WAITING,
                                     .why = "its end is missing",
                                     .first_offset = 10,
                                     .acked_offset = 50,
                                     .next_offset = 40,
                                     .segment_count = 2,
                                     .end_segment = 4};
    for (size_t i = 0; i < 3; i++)
        it.segs[i].id.v = 2 + i;
    alone.stream.begun = (struct leat_begun *)(void *)&it.begun;
    alone.node.options.cluster.node_address = "n1:1";
}

void end(void)
{
    assert_int_equal(calls.open, 0);
    leat_mem_free(it.partition.segs);
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), bytes_before);
}

static void calls_with(bool accept_loss)
{
    uint8_t bytes[128];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_recover_write(&writer, &(struct leat_msg_recover){{"orders", 6}, 1, 0, accept_loss});
    alone_call(leat_call_recover, &writer);
    assert_said("find orders/1/0\nmail to 0\n");
    alone_deliver();
}

void accepts(void)
{
    calls_with(true);
}

void wonders(void)
{
    calls_with(false);
}

void coordinators_say(leat_err rc)
{
    struct leat_coordinate *request = it.request;
    assert_non_null(request);
    it.request = NULL;
    request->rc = leat_error_set(&request->error, rc, "as they say");
    if (rc == LEAT_OK) request->next_offset = 1000;
    if (rc == LEAT_OK) request->epoch.v = 10;
    request->on_done(request);
}

void to_stop(void)
{
    begin();
    accepts();
    coordinators_say(LEAT_OK);
    said_enough();
    assert_non_null(it.on_stopped);
}

void stopped(void)
{
    it.on_stopped(it.stop_arg, it.partition.log);
}

void idle(void)
{
    it.on_idle(it.idle_arg);
}

void skipped(void)
{
    it.on_skipped(it.skip_arg, it.partition.log);
}

uint64_t answered_offset(void)
{
    struct leat_msg_reader reader;
    struct leat_msg_recovered told;
    alone_answer(&reader);
    leat_msg_recovered_read(&reader, &told);
    assert_false(reader.failed);
    return told.next_offset;
}
