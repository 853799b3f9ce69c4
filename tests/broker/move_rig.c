/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/move_rig.h"

#include "broker/admin/streams.h"
#include "broker/data/call_find.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/net/call.h"

struct move_rig it;

/* ---- what it calls ---- */

struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(core->index, ref.log);
    assert_int_equal(ref.stream, ALONE_STREAM);
    assert_int_equal(ref.streamlet, 1);
    return it.absent[ref.log] ? NULL : &it.partition[ref.log];
}
void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    *out_info = log->info;
}
void leat_log_end(const struct leat_log *log, struct leat_log_tail *out_tail)
{
    *out_tail = log->tail;
}
void leat_log_stop(struct leat_log *log, void (*on_stopped)(void *arg, struct leat_log *log),
                   void *arg)
{
    said("stop %s", log->name);
    log->on_stopped = on_stopped;
    log->arg = arg;
}
void leat_log_go_on(struct leat_log *log)
{
    said("go on %s", log->name);
}
bool leat_primary_log_is_writing(const struct leat_primary_log *rep)
{
    return ((const struct leat_log *)(const void *)rep)->writing;
}
void leat_primary_log_silence(struct leat_primary_log *rep, bool silent)
{
    said("copies of %s %s", ((struct leat_log *)(void *)rep)->name, silent ? "silent" : "speak");
}
void leat_partition_wake(struct leat_partition *partition)
{
    said("wake %s", partition->log->name);
}
void leat_core_log_stopped(struct leat_core *core)
{
    said("core %u has one log less to stop", core->index);
}
void leat_timer_start(struct leat_timers *timers, struct leat_timer *timer, uint64_t delay_us)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    said("timer %llu", (unsigned long long)delay_us);
    timer->heap_index_plus_1 = 1;
    it.timer = timer;
}
void leat_timer_stop(struct leat_timers *timers, struct leat_timer *timer)
{
    assert_ptr_equal(timers, &alone.cores[0].timers);
    assert_int_equal(leat_timer_armed(timer), timer == it.timer);
    said("timer stops");
    it.timer = NULL;
}
leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error)
{
    (void)error;
    assert_int_equal(core->index, 0);
    assert_int_equal(kind, LEAT_KIND_NODE_REPORT);
    assert_int_equal(control_bytes, 2);
    assert_memory_equal(control, "\x91\xc3", 2);
    said("ask %llu for %llu us", (unsigned long long)incarnation,
         (unsigned long long)ask->timeout_us);
    if (it.ask_rc == LEAT_OK) it.ask = ask;
    return it.ask_rc;
}
void leat_coordinate(const struct leat_post *post, struct leat_coordinate *request)
{
    assert_ptr_equal(post, &alone.post);
    assert_int_equal(request->kind, LEAT_COORDINATE_MOVE);
    said("coordinate move to %s, epoch %u, incarnation %llu", request->target, request->epoch.v,
         (unsigned long long)request->incarnation);
    for (size_t i = 0; i < request->log_count; i++)
        said("  %s ends at %s", ref_text(request->logs[i]), tail_text(&request->tails[i]));
    it.request = request;
}
const struct leat_member *leat_member_find(const struct leat_core *core, uint64_t incarnation)
{
    for (uint32_t i = 0; i < core->members.count; i++)
        if (core->members.rows[i]->info.incarnation == incarnation) return core->members.rows[i];
    return NULL;
}

/* Of clients' calls; each is of core 1. */
void *leat_call_create(struct leat_peer *peer, const struct leat_frame *frame, size_t bytes)
{
    (void)peer, (void)frame;
    struct leat_call *call = it.no_call ? NULL : calloc(1, bytes);
    if (call != NULL) call->core = &alone.cores[1];
    return call;
}
bool leat_call_keep(struct leat_call *call, struct leat_call_kept *kept,
                    const struct leat_frame *frame, void (*on_again)(struct leat_stream_seek *seek))
{
    if (it.not_kept) {
        free(call);
        return false;
    }
    memcpy(kept->control, frame->control, frame->control_bytes);
    kept->control_bytes = frame->control_bytes;
    kept->seek.on_again = on_again;
    kept->seek.owner = call;
    return true;
}
const struct leat_stream *leat_call_stream_find(struct leat_call *call, struct leat_call_kept *kept,
                                                struct leat_msg_string name)
{
    said("find \"%.*s\"", (int)name.bytes, name.text);
    it.seek = &kept->seek;
    it.seek_call = call;
    return leat_stream_find(call->core, ALONE_STREAM);
}
void leat_call_writer(struct leat_core *core, struct leat_msg_writer *out_writer)
{
    assert_int_equal(core->index, 1);
    leat_msg_writer_init(out_writer, it.answer, sizeof it.answer);
}
void leat_call_answer(struct leat_call *call, const struct leat_msg_writer *writer)
{
    assert_int_equal(writer->used, 1);
    said("answer %x", it.answer[0]);
    free(call);
}
void leat_call_refuse(struct leat_call *call, leat_err code, const char *refusal)
{
    said("refuse %s: %s", leat_err_name(code), refusal);
    free(call);
}
void leat_call_forward(struct leat_call *call, uint64_t owner, const uint8_t *control,
                       uint32_t control_bytes)
{
    struct leat_msg_streamlet_move move;
    assert_int_equal(leat_msg_streamlet_move_decode(control, control_bytes, &move), LEAT_OK);
    said("forward to %llu: %.*s, %u, %.*s", (unsigned long long)owner, (int)move.stream.bytes,
         move.stream.text, move.streamlet, (int)move.node.bytes, move.node.text);
    free(call);
}
leat_err leat_stream_move_allowed(const struct leat_core *core, const struct leat_stream_desc *desc,
                                  const struct leat_node_info *target, struct leat_error *error)
{
    assert_int_equal(core->index, 1);
    assert_int_equal(desc->id, ALONE_STREAM);
    said("allowed for %s?", target->name);
    return it.allowed == LEAT_OK ? LEAT_OK : leat_error_set(error, it.allowed, "it is full");
}

/* ---- the tests' own ---- */

static void on_done(struct leat_mover *mover)
{
    said("done %s%s%s", leat_err_name(mover->rc), mover->rc == LEAT_OK ? "" : ": ",
         mover->rc == LEAT_OK ? "" : mover->error.text);
    if (mover->rc != LEAT_OK) assert_int_equal(mover->error.code, mover->rc);
}

void begin(void)
{
    static const char *const names[] = {"a", "b"};
    alone_begin();
    memset(&it, 0, sizeof it);
    for (unsigned q = 0; q < ALONE_LOGS; q++) {
        it.logs[q] = (struct leat_log){
            .name = names[q],
            .info = {.state = LEAT_LOG_SERVING, .why = "its disk failed"},
            .tail = {.next_segment = 4 + q, .previous = {100 + q, 10}, .next_offset = 50 + q}};
        it.partition[q] = (struct leat_partition){.ref = {ALONE_STREAM, 1, q},
                                                  .core = &alone.cores[q],
                                                  .log = &it.logs[q],
                                                  .copies = (void *)&it.logs[q]};
    }
    it.target.info = (struct leat_node_info){
        .name = "n2", .incarnation = TARGET, .state = LEAT_NODE_UP, .streamlets = 4};
    it.self.self = true;
    it.self.info =
        (struct leat_node_info){.name = "n1", .incarnation = ALONE_SELF, .state = LEAT_NODE_UP};
    for (unsigned i = 0; i < ALONE_CORES; i++) {
        struct leat_members *members = &alone.cores[i].members;
        members->rows[members->count++] = &it.target;
        members->rows[members->count++] = &it.self;
        leat_movers_init(&alone.cores[i]);
    }
    memset(&it.mover, 0xa5, sizeof it.mover); /* the mover's own fields may have any value */
    it.mover.stream = ALONE_STREAM;
    it.mover.streamlet = 1;
    snprintf(it.mover.target, sizeof it.mover.target, "n2");
    it.mover.on_done = on_done;
    alone.desc->streamlets[1].epoch.v = 9;
}

void end(void)
{
    assert_true(leat_list_empty(&alone.cores[0].movers->all));
    assert_int_equal(alone.cores[0].movers->count, 0);
    alone_end();
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), 0);
}

void start(void)
{
    leat_mover_start(&alone.cores[0], &it.mover);
}

void expire(void)
{
    struct leat_timer *timer = it.timer;
    assert_non_null(timer);
    it.timer = NULL;
    timer->heap_index_plus_1 = 0;
    timer->on_expired(timer);
}

void target_answers(leat_err rc, uint32_t up)
{
    uint8_t bytes[1024];
    struct leat_msg_writer writer;
    struct leat_msg_node_report report = {.known = true, .peer_count = up + 2};
    struct leat_msg_report_peer peer = {.node = {"nx", 2}, .up = true, .transport = {"tcp", 3}};
    leat_msg_writer_init(&writer, bytes, sizeof bytes);
    leat_msg_node_report_write(&writer, &report);
    peer.up = false;
    leat_msg_report_peer_write(&writer, &peer);
    peer.up = true;
    peer.transport.bytes = 0;
    leat_msg_report_peer_write(&writer, &peer);
    peer.transport.bytes = 3;
    for (uint32_t i = 0; i < up; i++)
        leat_msg_report_peer_write(&writer, &peer);
    leat_msg_node_report_end_write(&writer, &report);
    leat_msg_node_report_passed_write(&writer, &report);
    assert_false(writer.overflow);
    struct leat_frame frame = {.control = bytes, .control_bytes = (uint32_t)writer.used - it.cut};
    struct leat_ask *ask = it.ask;
    assert_non_null(ask);
    it.ask = NULL;
    ask->on_done(ask, rc, &frame, "why");
}

void stopped(unsigned q)
{
    it.logs[q].on_stopped(it.logs[q].arg, &it.logs[q]);
}

void coordinators_say(leat_err rc, uint32_t epoch)
{
    struct leat_coordinate *request = it.request;
    it.request = NULL;
    request->rc = leat_error_set(&request->error, rc, "as they say");
    request->epoch.v = epoch;
    request->on_done(request);
}

void to_ask(void)
{
    begin();
    start();
    alone_deliver_all();
    said_enough();
}

void to_stop(void)
{
    to_ask();
    target_answers(LEAT_OK, 1);
    alone_deliver_all();
    said_enough();
}

void to_commit(void)
{
    to_stop();
    stopped(0);
    stopped(1);
    alone_deliver_all();
    said_enough();
}
