/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/broker/describe_rig.h"
#include "broker/data/call_find.h"
#include "broker/data/lookup.h"
#include "broker/data/partition.h"
#include "broker/net/call.h"

struct describe_rig it;

/* ---- logs ---- */

void leat_log_info(const struct leat_log *log, struct leat_log_info *out_info)
{
    *out_info = log->info;
}
uint64_t leat_log_offsets_lost(const struct leat_log *log)
{
    return log->lost;
}
void leat_log_passed_over(struct leat_log *log, struct leat_log_passed *out)
{
    *out = log->passed;
}
leat_err leat_log_trouble(struct leat_log *log, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", log->trouble == LEAT_OK ? "" : "it is in trouble");
    return log->trouble;
}
bool leat_log_front_known(const struct leat_log *log)
{
    return !log->front_unknown;
}
bool leat_log_lacks_space(const struct leat_log *log)
{
    return log->lacks_space;
}
bool leat_log_reads_wait(const struct leat_log *log)
{
    return log->reads_wait;
}
leat_err leat_log_locate(struct leat_log *log, struct leat_locate_op *op)
{
    struct leat_locate_op asked;
    memset(&asked, 0, sizeof asked);
    asked.what = LEAT_LOCATE_EARLIEST;
    asked.on_done = op->on_done;
    asked.owner = op->owner;
    assert_non_null(op->on_done);
    assert_memory_equal(op, &asked, sizeof asked);
    said("look for the front");
    it.front = op;
    op->value = 77; /* the log's now */
    return log->located;
}
void leat_partition_watch(struct leat_partition *partition)
{
    said("watch %s", ref_text(partition->ref));
}
uint32_t leat_core_of_log(const struct leat_node *node, struct leat_log_ref ref, uint32_t logs)
{
    assert_ptr_equal(node, &alone.node);
    assert_int_equal(logs, ALONE_LOGS);
    assert_in_range(ref.streamlet, 0, alone.desc->streamlet_count - 1);
    return (ref.log + it.shift) % ALONE_CORES;
}
struct leat_partition *leat_partition_find(const struct leat_core *core, struct leat_log_ref ref)
{
    assert_int_equal(ref.stream, ALONE_STREAM);
    if (ref.streamlet >= ALONE_STREAMLETS) return NULL;
    assert_int_equal(core->index, leat_core_of_log(core->node, ref, ALONE_LOGS));
    struct leat_partition *partition = &it.partition[ref.streamlet][ref.log];
    return partition->core != NULL ? partition : NULL;
}
bool leat_node_heap_refuses(const struct leat_node *node, uint64_t now_us)
{
    (void)node, (void)now_us;
    return it.heap_refuses;
}
void leat_primary_log_status(const struct leat_primary_log *rep,
                             struct leat_primary_log_status *out)
{
    assert_ptr_equal(rep, &it.status);
    *out = it.status;
}
void leat_primary_log_each(const struct leat_primary_log *rep,
                           void (*each)(void *arg, const struct leat_rep_segment_status *status),
                           void *arg)
{
    assert_ptr_equal(rep, &it.status);
    for (uint32_t i = 0; i < it.segment_count; i++)
        each(arg, &it.segments[i]);
}

/* ---- streams and nodes ---- */

void leat_stream_desc_ref(struct leat_stream_desc *desc)
{
    desc->refs++;
}
void leat_stream_desc_unref(struct leat_stream_desc *desc)
{
    assert_int_not_equal(desc->refs, 0);
    desc->refs--;
}
const struct leat_stream *leat_call_stream_find(struct leat_call *call, struct leat_call_kept *kept,
                                                struct leat_msg_string name)
{
    assert_ptr_equal(&kept->seek, calls.seek);
    said("find %.*s", (int)name.bytes, name.text);
    if (it.seek == LEAT_OK) return &alone.stream;
    if (it.seek != LEAT_E_AGAIN) leat_call_refuse(call, it.seek, "not found");
    return NULL;
}
leat_err leat_ask_start(struct leat_core *core, struct leat_ask *ask, uint64_t incarnation,
                        enum leat_kind kind, const uint8_t *control, uint32_t control_bytes,
                        struct leat_error *error)
{
    struct leat_msg_reader reader;
    assert_int_equal(core->index, 1);
    assert_int_equal(kind, LEAT_KIND_STREAM_DESCRIBE);
    leat_msg_reader_init(&reader, control, control_bytes);
    uint32_t fields = leat_msg_read_array(&reader);
    struct leat_msg_string name = leat_msg_read_string(&reader);
    assert_true(leat_msg_read_done(&reader));
    said("ask %llu [%.*s] %u", (unsigned long long)incarnation, (int)name.bytes, name.text, fields);
    assert_in_range(it.ask_count, 0, DESCRIBE_ASKS - 1);
    it.asks[it.ask_count++] = ask;
    if (it.ask_count == it.ask_refused)
        return leat_error_set(error, LEAT_E_AGAIN, "it can't be asked");
    return LEAT_OK;
}
uint64_t leat_report_disk_lacks(const struct leat_node *node)
{
    assert_ptr_equal(node, &alone.node);
    said("look at the disk");
    return it.disk_lacks;
}

/* ---- the rig ---- */

static void send(void *ctx, unsigned to, struct leat_mail *mail)
{
    if (to != LEAT_ACTOR_STORE) {
        it.post(ctx, to, mail);
        return;
    }
    assert_null(it.to_store);
    said("mail to the store");
    it.to_store = mail;
}

void deliver_all(void)
{
    alone_deliver_all();
    while (it.to_store != NULL) {
        struct leat_mail *mail = it.to_store;
        it.to_store = NULL;
        mail->deliver(NULL, mail);
        alone_deliver_all();
    }
}

struct leat_log *hosts(uint32_t s, uint32_t q)
{
    struct leat_log *log = &it.logs[s][q];
    uint64_t n = 1000 * (uint64_t)(2 * s + q + 1);
    it.partition[s][q] = (struct leat_partition){
        .ref = {ALONE_STREAM, s, q}, .core = &alone.cores[q], .log = log, .copies = NULL};
    *log = (struct leat_log){
        .info = {.state = LEAT_LOG_DAMAGED,
                 .first_offset = n + 1,
                 .acked_offset = n + 2,
                 .bytes = n + 3,
                 .first_segment = n + 4,
                 .segment_count = n + 5,
                 .group_count = n + 6,
                 .first_group = n + 7,
                 .end_segment = n + 8,
                 .producers = (uint32_t)n + 9,
                 .memory_bytes = n + 10},
        .lost = n + 11,
        .passed = {.bytes = n + 12, .segments = n + 13, .segment = n + 14, .next_offset = n + 15},
        .located = LEAT_E_AGAIN,
    };
    return log;
}

void of_other(uint64_t owner)
{
    alone.desc->streamlets[1].owner = owner;
    memset(it.partition[1], 0, sizeof it.partition[1]);
}

void begin(void)
{
    static const char *const names[] = {"n1", "b", "c"};
    static const uint64_t incarnations[] = {ALONE_SELF, NODE_B, NODE_C};
    alone_begin();
    memset(&it, 0, sizeof it);
    memset(&calls, 0, sizeof calls);
    it.memory_bytes = leat_mem_bytes(LEAT_MEM_BROKER);
    calls.peer.address_number = 99;
    it.post = alone.post.send;
    alone.post.send = send;
    it.store_env = alone.env;
    alone.node.options.store_env = &it.store_env;
    for (uint32_t i = 0; i < ALONE_CORES; i++) {
        for (uint32_t m = 0; m < 3; m++) {
            struct leat_node_info *info = &it.rows[m].info;
            it.rows[m].self = m == 0;
            info->incarnation = incarnations[m];
            info->cores = 7;
            snprintf(info->name, sizeof info->name, "%s", names[m]);
            alone.cores[i].members.rows[m] = &it.rows[m];
        }
        alone.cores[i].members.count = 3;
    }
    for (uint32_t s = 0; s < ALONE_STREAMLETS; s++)
        for (uint32_t q = 0; q < ALONE_LOGS; q++)
            hosts(s, q);
}

void end(void)
{
    assert_int_equal(calls.open, 0);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_BROKER), it.memory_bytes);
    assert_int_equal(alone.desc->refs, 0);
    assert_null(it.to_store);
    alone_end();
}
