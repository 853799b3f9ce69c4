/* SPDX-License-Identifier: Apache-2.0 */
/* A backup's reports on a replica and its work with it: each field by itself, on both sides. The bytes are in memory
 * unless a case says otherwise, and the store answers by hand. */
#include "tests/replication/backup_rig.h"

static struct rig *rig;
static struct replica *rep;
static struct leat_segment *seg;
static struct backup_writer *writer;
static struct leat_prefix_id asked;
static bool asked_whole;

/* Closed, whole, in memory, opened by w1. */
static void begin(void)
{
    rig = rig_new();
    rep = rig_found(rig, 7, LEAT_SEGMENT_CLOSED, 3);
    seg = rep->seg;
    seg->buffer = rig->image;
    seg->file = (struct leat_file *)(void *)rig->image;
    seg->passed_bytes = 9;
    writer = backup_writer_find(rig->backup, "w1", 11);
    asked = seg->prefix_id;
    asked_whole = true;
}

static void end(void)
{
    seg->buffer = NULL;
    seg->file = NULL;
    rig_free(rig);
}

/* No answer comes to a request that a case has made. */
static void forget(void)
{
    for (unsigned i = 0; i < rig->req_count; i++)
        if (rig->reqs[i] != &rep->evict) backup_request_put(rig->reqs[i]->owner);
    rig->req_count = 0;
}

/* `change` is what is different in it, act makes the call and says what came of it; then all is as it was. */
#define CASE(act, ...)                                                                             \
    do {                                                                                           \
        struct replica rep_was = *rep;                                                             \
        struct leat_segment seg_was = *seg;                                                        \
        struct backup_writer writer_was = *writer;                                                 \
        struct leat_prefix_id asked_was = asked;                                                   \
        __VA_ARGS__;                                                                               \
        trace("%s: ", #__VA_ARGS__);                                                               \
        (act)();                                                                                   \
        forget();                                                                                  \
        *rep = rep_was;                                                                            \
        *seg = seg_was;                                                                            \
        *writer = writer_was;                                                                      \
        asked = asked_was;                                                                         \
        asked_whole = true;                                                                        \
    } while (0)

#define CASE_AS_IT_IS(act) CASE(act, (void)0)

/* ---- a piece of it for another node ---- */

static void serve(void)
{
    uint8_t control[REP_PULL_BYTES_MAX];
    struct rep_pull pull = {.log = rig_log,
                            .segment = {7},
                            .prefix_id = asked,
                            .from = 0,
                            .count = 16,
                            .whole = asked_whole};
    unsigned busy = rep->busy;
    rig_hear(rig, &rig_w2, LEAT_REP_PULL, control, rep_pull_encode(&pull, control));
    assert_int_equal(rep->busy, busy);
    assert_int_equal(rig->backup->serves, 0);
}

static void looked(struct leat_prefix_id prefix_id, bool begins)
{
    rep->looked[1] = (struct replica_looked){.prefix_id = prefix_id, .begins = begins};
}

static void piece_is_served_of_what_claims_to_have_it(void **state)
{
    (void)state;
    begin();
    CASE_AS_IT_IS(serve);
    CASE(serve, rep->damaged = true);
    CASE(serve, rep->drop_wanted = true, rep->busy = 1);
    CASE(serve, rep->dropping = true);
    CASE(serve, seg->incomplete = true);
    CASE(serve, seg->integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(serve, rep->adopting = true);
    CASE(serve, seg->id.v = 8);
    CASE(serve, seg->log.log = 4);
    CASE(serve, asked.crc++);
    CASE(serve, asked.bytes -= 8);
    CASE(serve, asked.bytes = sizeof(struct leat_entry) - 1);
    CASE(serve, asked.bytes = seg->capacity + 8);
    CASE(serve, seg->capacity = asked.bytes);
    CASE(serve, seg->capacity = asked.bytes - 1);
    CASE(serve, asked = rig->ends[1]);
    CASE(serve, asked = rig->ends[1], rep->move_wanted = true, rep->busy = 1);
    CASE(serve, rep->move_wanted = true, rep->busy = 1);
    CASE(serve, seg->state = LEAT_SEGMENT_OPEN);
    CASE(serve, seg->state = LEAT_SEGMENT_HIBERNATED);
    CASE(serve, seg->state = LEAT_SEGMENT_OPEN, seg->prefix_id.bytes = 0);
    CASE(serve, seg->state = LEAT_SEGMENT_OPEN, asked.crc++);
    CASE(serve, rig->backup->serves = 0, asked = rig->ends[2]);
    end();
    TRACE_IS(
        "(void)0: 3: answer piece 16, begins 0100, passed 9\n"
        "rep->damaged = true: 4: NOT_FOUND\n"
        "rep->drop_wanted = true, rep->busy = 1: 5: NOT_FOUND\n"
        "rep->dropping = true: 6: NOT_FOUND\n"
        "seg->incomplete = true: 7: NOT_FOUND\n"
        "seg->integrity = LEAT_INTEGRITY_CORRUPT: 8: NOT_FOUND\n"
        "rep->adopting = true: 9: NOT_FOUND\n"
        "seg->id.v = 8: 10: NOT_FOUND\n"
        "seg->log.log = 4: 11: NOT_FOUND\n"
        "asked.crc++: 12: NOT_FOUND\n"
        "asked.bytes -= 8: 13: NOT_FOUND\n"
        "asked.bytes = sizeof(struct leat_entry) - 1: 14: NOT_FOUND\n"
        "asked.bytes = seg->capacity + 8: 15: NOT_FOUND\n"
        "seg->capacity = asked.bytes: 16: answer piece 16, begins 0100, passed 9\n"
        "seg->capacity = asked.bytes - 1: 17: NOT_FOUND\n"
        "asked = rig->ends[1]: 18: answer piece 16, begins 0100, passed 0\n"
        "asked = rig->ends[1], rep->move_wanted = true, rep->busy = 1: 19: NOT_FOUND\n"
        "rep->move_wanted = true, rep->busy = 1: 20: answer piece 16, begins 0100, passed 9\n"
        "seg->state = LEAT_SEGMENT_OPEN: 21: answer piece 16, begins 0100, passed 0\n"
        "seg->state = LEAT_SEGMENT_HIBERNATED: 22: answer piece 16, begins 0100, passed 9\n"
        "seg->state = LEAT_SEGMENT_OPEN, seg->prefix_id.bytes = 0: 23: answer piece 16, begins "
        "0100, passed 0\n"
        "seg->state = LEAT_SEGMENT_OPEN, asked.crc++: 24: NOT_FOUND\n"
        "rig->backup->serves = 0, asked = rig->ends[2]: 25: answer piece 16, begins 0100, "
        "passed 0\n");
}

/* ---- what is told of it ---- */

static void tell(void *arg, const struct leat_replica_info *info)
{
    trace("%s%u/%u/%u s%llu e%u v%u state %u%s%s%s%s%s%s%s%s", (const char *)arg, info->log.stream,
          info->log.streamlet, info->log.log, (unsigned long long)info->segment.v, info->epoch.v,
          info->version, (unsigned)info->state, info->incomplete ? " part" : "",
          info->settled ? " settled" : "", info->damaged ? " damaged" : "",
          info->provisional ? " provisional" : "", info->torn ? " torn" : "",
          info->mark ? " mark" : "", info->only_start ? " start" : "",
          info->durable ? " durable" : "");
    trace(" %u:%u after %u, %llu..%llu max %lld by %llu", info->prefix_id.bytes,
          info->prefix_id.crc != 0, info->previous.bytes, (unsigned long long)info->base_offset,
          (unsigned long long)info->next_offset, (long long)info->max_timestamp_ms,
          (unsigned long long)info->writer);
    for (unsigned i = 0; i < LEAT_BEGINS_MAX; i++)
        if (info->begins[i].bytes) trace(" begins %u", info->begins[i].bytes);
    trace("%s\n", info->handle == rep->handle && info->seg == seg ? "" : " of another");
}

static void info(void)
{
    trace("\n");
    leat_backup_each(rig->backup, NULL, false, tell, (void *)(uintptr_t) "  unread ");
    leat_backup_each(rig->backup, &rig_log, true, tell, (void *)(uintptr_t) "  read ");
}

static void replica_that_is_closed_or_hibernated_is_told_as_it_says(void **state)
{
    (void)state;
    begin();
    CASE_AS_IT_IS(info);
    CASE(info, seg->log.streamlet = 9);
    CASE(info, rep->damaged = true);
    CASE(info, seg->incomplete = seg->provisional = rep->settled = true);
    CASE(info, seg->flushed = true);
    CASE(info, seg->durability = LEAT_DURABILITY_DISK, rep->flushed = seg->prefix_id.bytes);
    CASE(info, seg->durability = LEAT_DURABILITY_DISK, rep->flushed = seg->prefix_id.bytes - 1);
    CASE(info, seg->state = LEAT_SEGMENT_HIBERNATED);
    CASE(info, seg->state = LEAT_SEGMENT_HIBERNATED, rep->damaged = true);
    CASE(info, seg->state = LEAT_SEGMENT_HIBERNATED, seg->incomplete = true);
    CASE(info, seg->state = LEAT_SEGMENT_HIBERNATED, seg->integrity = LEAT_INTEGRITY_TORN);
    CASE(info, seg->state = LEAT_SEGMENT_HIBERNATED, seg->next_offset = 100);
    CASE(info, seg->buffer = NULL, looked(rig->ends[1], true));
    CASE(info, seg->buffer = NULL, looked(rig->ends[1], false));
    CASE(info, looked(rig->ends[1], true));
    CASE(info, seg->buffer = NULL, looked(seg->prefix_id, true));
    end();
    TRACE_IS(
        "(void)0: \n"
        "  unread 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->log.streamlet = 9: \n"
        "  unread 1/9/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "rep->damaged = true: \n"
        "  unread 1/2/3 s7 e5 v1 state 4 damaged 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 damaged 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->incomplete = seg->provisional = rep->settled = true: \n"
        "  unread 1/2/3 s7 e5 v1 state 4 part settled provisional 752:1 after 0, 100..102 max 5002 "
        "by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 part settled provisional 752:1 after 0, 100..102 max 5002 "
        "by "
        "11\n"
        "seg->flushed = true: \n"
        "  unread 1/2/3 s7 e5 v1 state 4 durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->durability = LEAT_DURABILITY_DISK, rep->flushed = seg->prefix_id.bytes: \n"
        "  unread 1/2/3 s7 e5 v1 state 4 durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->durability = LEAT_DURABILITY_DISK, rep->flushed = seg->prefix_id.bytes - 1: \n"
        "  unread 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->state = LEAT_SEGMENT_HIBERNATED: \n"
        "  unread 1/2/3 s7 e5 v1 state 3 mark durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 3 mark durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->state = LEAT_SEGMENT_HIBERNATED, rep->damaged = true: \n"
        "  unread 1/2/3 s7 e5 v1 state 3 damaged durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 3 damaged durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->state = LEAT_SEGMENT_HIBERNATED, seg->incomplete = true: \n"
        "  unread 1/2/3 s7 e5 v1 state 3 part durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 3 part durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->state = LEAT_SEGMENT_HIBERNATED, seg->integrity = LEAT_INTEGRITY_TORN: \n"
        "  unread 1/2/3 s7 e5 v1 state 3 torn mark durable 752:1 after 0, 100..102 max 5002 by "
        "11\n"
        "  read 1/2/3 s7 e5 v1 state 3 torn mark durable 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->state = LEAT_SEGMENT_HIBERNATED, seg->next_offset = 100: \n"
        "  unread 1/2/3 s7 e5 v1 state 3 mark start durable 752:1 after 0, 100..100 max 5002 by "
        "11\n"
        "  read 1/2/3 s7 e5 v1 state 3 mark start durable 752:1 after 0, 100..100 max 5002 by 11\n"
        "seg->buffer = NULL, looked(rig->ends[1], true): \n"
        "  unread 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11 begins 456\n"
        "  read 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11 begins 456\n"
        "seg->buffer = NULL, looked(rig->ends[1], false): \n"
        "  unread 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "looked(rig->ends[1], true): \n"
        "  unread 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "seg->buffer = NULL, looked(seg->prefix_id, true): \n"
        "  unread 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n");
}

static void is_open(unsigned entries)
{
    seg->state = LEAT_SEGMENT_OPEN;
    memset(rig->image + rig->ends[entries].bytes, 0, RIG_CAPACITY - rig->ends[entries].bytes);
}

static void replica_that_is_open_is_told_as_its_bytes_say(void **state)
{
    (void)state;
    begin();
    CASE(info, seg->state = LEAT_SEGMENT_OPEN);
    CASE(info, is_open(2));
    CASE(info, is_open(2), seg->state = LEAT_SEGMENT_RESERVED);
    CASE(info, is_open(2), seg->incomplete = true);
    CASE(info, is_open(2), rep->damaged = true);
    CASE(info, is_open(2), seg->buffer = NULL);
    CASE(info, is_open(2), seg->epoch.v++);
    CASE(info, is_open(2), seg->id.v++);
    CASE(info, is_open(2), seg->log.stream++);
    CASE(info, is_open(2), seg->durability = LEAT_DURABILITY_DISK,
         rep->flushed = rig->ends[2].bytes);
    CASE(info, is_open(2), seg->durability = LEAT_DURABILITY_DISK,
         rep->flushed = rig->ends[2].bytes - 1);
    CASE(info, is_open(1));
    CASE(info, is_open(0));
    end();
    TRACE_IS(
        "seg->state = LEAT_SEGMENT_OPEN: \n"
        "  unread 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 4 752:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2): \n"
        "  unread 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 mark 656:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2), seg->state = LEAT_SEGMENT_RESERVED: \n"
        "  unread 1/2/3 s7 e5 v1 state 1 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 mark 656:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2), seg->incomplete = true: \n"
        "  unread 1/2/3 s7 e5 v1 state 2 part 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 part 656:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2), rep->damaged = true: \n"
        "  unread 1/2/3 s7 e5 v1 state 2 damaged 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 damaged 656:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2), seg->buffer = NULL: \n"
        "  unread 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2), seg->epoch.v++: \n"
        "  unread 1/2/3 s7 e6 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e6 v1 state 2 0:0 after 0, 0..0 max 0 by 11\n"
        "is_open(2), seg->id.v++: \n"
        "  unread 1/2/3 s8 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s8 e5 v1 state 2 0:0 after 0, 0..0 max 0 by 11\n"
        "is_open(2), seg->log.stream++: \n"
        "  unread 2/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2), seg->durability = LEAT_DURABILITY_DISK, rep->flushed = rig->ends[2].bytes: \n"
        "  unread 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 mark durable 656:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(2), seg->durability = LEAT_DURABILITY_DISK, rep->flushed = rig->ends[2].bytes - "
        "1: \n"
        "  unread 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 mark 656:1 after 0, 100..102 max 5002 by 11\n"
        "is_open(1): \n"
        "  unread 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 mark 456:1 after 0, 100..101 max 5001 by 11\n"
        "is_open(0): \n"
        "  unread 1/2/3 s7 e5 v1 state 2 752:1 after 0, 100..102 max 5002 by 11\n"
        "  read 1/2/3 s7 e5 v1 state 2 mark start 256:1 after 0, 100..100 max -1 by 11\n");
}

static void info_of_any(void)
{
    leat_backup_each(rig->backup, NULL, true, tell, (void *)(uintptr_t) "");
}

/* The second batch says that the first batch was acked, and the bytes of the first batch have changed since. */
static void corrupt(void)
{
    rig->acked = true;
    rig_image(rig, 7);
    is_open(2);
    rig->image[rig->ends[0].bytes + 100] ^= 1;
}

/* Goal: bytes that an earlier use has left in the memory belong to no log here; acked bytes that can't be read are
 * damage. */
static void bytes_that_are_not_its_own_or_have_rotted_are_told(void **state)
{
    (void)state;
    begin();
    CASE(info_of_any, is_open(2), seg->log.stream++);
    CASE(info_of_any, corrupt());
    end();
    TRACE_IS(
        "is_open(2), seg->log.stream++: 2/2/3 s7 e5 v1 state 2 0:0 after 0, 0..0 max 0 by 11\n"
        "corrupt(): 1/2/3 s7 e5 v1 state 2 damaged start 256:1 after 44, 100..100 max -1 by 11\n");
}

static bool wanted(void *arg, struct leat_log_ref log)
{
    trace("%u? ", log.log);
    return arg != NULL;
}

static void on_each(void *arg, const struct leat_replica_info *told)
{
    (void)arg;
    trace("told %llu ", (unsigned long long)told->segment.v);
}

static void collect(void)
{
    static int yes;
    leat_backup_collect(rig->backup, wanted, on_each, &yes);
    leat_backup_collect(rig->backup, wanted, on_each, NULL);
    trace("\n");
}

static void what_is_on_its_way_out_is_not_collected(void **state)
{
    (void)state;
    begin();
    CASE_AS_IT_IS(collect);
    CASE(collect, rep->dropping = true);
    CASE(collect, rep->drop_wanted = true);
    CASE(collect, rep->move_wanted = true);
    CASE(collect, rep->damaged = true);
    CASE(collect, seg->log.log = 5);
    end();
    TRACE_IS("(void)0: 3? told 7 3? \n"
             "rep->dropping = true: \n"
             "rep->drop_wanted = true: \n"
             "rep->move_wanted = true: \n"
             "rep->damaged = true: 3? told 7 3? \n"
             "seg->log.log = 5: 5? told 7 5? \n");
}

static void status(void)
{
    struct leat_backup_status out;
    leat_backup_status(rig->backup, &out);
    trace("%llu, open %llu hibernated %llu unsettled %llu\n", (unsigned long long)out.replicas,
          (unsigned long long)out.replicas_open, (unsigned long long)out.replicas_hibernated,
          (unsigned long long)out.replicas_unsettled);
}

static void replicas_are_counted_by_their_state(void **state)
{
    (void)state;
    begin();
    CASE_AS_IT_IS(status);
    CASE(status, rep->settled = true);
    CASE(status, seg->state = LEAT_SEGMENT_HIBERNATED);
    CASE(status, seg->state = LEAT_SEGMENT_OPEN);
    CASE(status, seg->state = LEAT_SEGMENT_RESERVED);
    end();
    TRACE_IS("(void)0: 1, open 0 hibernated 0 unsettled 1\n"
             "rep->settled = true: 1, open 0 hibernated 0 unsettled 0\n"
             "seg->state = LEAT_SEGMENT_HIBERNATED: 1, open 0 hibernated 1 unsettled 1\n"
             "seg->state = LEAT_SEGMENT_OPEN: 1, open 1 hibernated 0 unsettled 1\n"
             "seg->state = LEAT_SEGMENT_RESERVED: 1, open 1 hibernated 0 unsettled 1\n");
}

/* ---- what is done with it ---- */

static void flags(void)
{
    trace("->%s%s%s%s%s%s busy %u%s\n", rep->drop_wanted ? " drop" : "",
          rep->dropping ? " dropping" : "", rep->evicting ? " evicting" : "",
          rep->leave ? " leave" : "", rep->settled ? " settled" : "",
          leat_segment_is_damaged(seg) ? " corrupt" : "", rep->busy, rep->gone_us ? " gone" : "");
}

static void idle(void)
{
    backup_idle(rep);
    flags();
}

static void flushed(void)
{
    seg->log_pointer = rep;
    leat_backup_on_flushed(rig->backup, seg);
    flags();
}

static void evict_wanted(void)
{
    seg->log_pointer = rep;
    leat_backup_on_evict_wanted(rig->backup, seg);
    flags();
}

static void what_is_in_its_file_leaves_memory(void **state)
{
    (void)state;
    begin();
    CASE(idle, rep->busy = 1, seg->flushed = true);
    CASE(idle, rep->busy = 1);
    CASE(idle, rep->busy = 2, seg->flushed = true);
    CASE(idle, rep->busy = 1, seg->flushed = true, seg->state = LEAT_SEGMENT_HIBERNATED);
    CASE(idle, rep->busy = 1, seg->flushed = true, seg->buffer = NULL);
    CASE(idle, rep->busy = 1, seg->flushed = rep->evicting = true);
    CASE(idle, rep->busy = 1, seg->flushed = rep->dropping = true);
    CASE(idle, rep->busy = 1, seg->flushed = rep->drop_wanted = true);
    CASE_AS_IT_IS(flushed);
    CASE(flushed, rep->busy = 1);
    CASE(flushed, rep->evicting = true);
    CASE_AS_IT_IS(evict_wanted);
    CASE(evict_wanted, seg->flushed = true);
    CASE(evict_wanted, seg->flushed = true, rep->busy = 1);
    end();
    TRACE_IS("rep->busy = 1, seg->flushed = true: store EVICT s7\n"
             "-> evicting busy 0\n"
             "rep->busy = 1: -> busy 0\n"
             "rep->busy = 2, seg->flushed = true: -> busy 1\n"
             "rep->busy = 1, seg->flushed = true, seg->state = LEAT_SEGMENT_HIBERNATED: -> busy 0\n"
             "rep->busy = 1, seg->flushed = true, seg->buffer = NULL: -> busy 0\n"
             "rep->busy = 1, seg->flushed = rep->evicting = true: -> evicting busy 0\n"
             "rep->busy = 1, seg->flushed = rep->dropping = true: -> dropping busy 0\n"
             "rep->busy = 1, seg->flushed = rep->drop_wanted = true: store DROP s7\n"
             "-> drop dropping busy 1\n"
             "(void)0: store EVICT s7\n"
             "-> evicting busy 0\n"
             "rep->busy = 1: -> busy 1\n"
             "rep->evicting = true: -> evicting busy 0\n"
             "(void)0: -> busy 0\n"
             "seg->flushed = true: store EVICT s7\n"
             "-> evicting busy 0\n"
             "seg->flushed = true, rep->busy = 1: -> busy 1\n");
}

static void drop_for_another(void)
{
    backup_drop_for_another(rep);
    flags();
}

static void is_written(enum leat_segment_state state)
{
    rep->writer = writer;
    seg->state = state;
}

static void place_stays_while_its_writer_may_write(void **state)
{
    (void)state;
    begin();
    CASE_AS_IT_IS(drop_for_another);
    CASE(drop_for_another, rep->busy = 1);
    CASE(drop_for_another, is_written(LEAT_SEGMENT_RESERVED));
    CASE(drop_for_another, is_written(LEAT_SEGMENT_OPEN));
    CASE(drop_for_another, is_written(LEAT_SEGMENT_OPEN), writer->fenced = true);
    CASE(drop_for_another, is_written(LEAT_SEGMENT_OPEN), rep->writer = NULL);
    CASE(drop_for_another, is_written(LEAT_SEGMENT_HIBERNATED));
    CASE(drop_for_another, is_written(LEAT_SEGMENT_HIBERNATED), rep->busy = 1);
    CASE(drop_for_another, is_written(LEAT_SEGMENT_CLOSED), rep->busy = 1);
    end();
    TRACE_IS("(void)0: store DROP s7\n"
             "-> drop dropping busy 1\n"
             "rep->busy = 1: -> drop busy 1\n"
             "is_written(LEAT_SEGMENT_RESERVED): store DROP s7 leave\n"
             "-> drop dropping leave busy 1\n"
             "is_written(LEAT_SEGMENT_OPEN): store DROP s7 leave\n"
             "-> drop dropping leave busy 1\n"
             "is_written(LEAT_SEGMENT_OPEN), writer->fenced = true: store DROP s7\n"
             "-> drop dropping busy 1\n"
             "is_written(LEAT_SEGMENT_OPEN), rep->writer = NULL: store DROP s7\n"
             "-> drop dropping busy 1\n"
             "is_written(LEAT_SEGMENT_HIBERNATED): store DROP s7\n"
             "-> drop dropping busy 1\n"
             "is_written(LEAT_SEGMENT_HIBERNATED), rep->busy = 1: -> drop leave busy 1\n"
             "is_written(LEAT_SEGMENT_CLOSED), rep->busy = 1: -> drop busy 1\n");
}

static void log_dropped(void)
{
    const struct leat_segment_range nothing = {0};
    leat_backup_drop_log(rig->backup, rig_log, (struct leat_epoch){6}, &nothing);
    flags();
}

static void stream_deleted(void)
{
    leat_backup_stream_deleted(rig->backup, 1);
    flags();
}

static void found_damaged(void)
{
    seg->log_pointer = rep;
    leat_backup_on_damaged(rig->backup, seg);
    flags();
}

static void replica_goes_with_its_log_or_stream(void **state)
{
    (void)state;
    begin();
    CASE(log_dropped, rep->owner_epoch.v = 6);
    CASE(log_dropped, rep->owner_epoch.v = 7);
    CASE(log_dropped, seg->log.log++);
    CASE(log_dropped, is_written(LEAT_SEGMENT_OPEN));
    CASE_AS_IT_IS(stream_deleted);
    CASE(stream_deleted, seg->log.stream++);
    CASE(stream_deleted, is_written(LEAT_SEGMENT_OPEN));
    CASE(stream_deleted, is_written(LEAT_SEGMENT_OPEN), writer->fenced = true);
    CASE(found_damaged, rep->settled = true);
    CASE(found_damaged, rep->settled = true, seg->integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(found_damaged, rep->settled = true, seg->state = LEAT_SEGMENT_HIBERNATED);
    end();
    TRACE_IS(
        "rep->owner_epoch.v = 6: store DROP s7\n"
        "-> drop dropping busy 1\n"
        "rep->owner_epoch.v = 7: -> busy 0\n"
        "seg->log.log++: -> busy 0\n"
        "is_written(LEAT_SEGMENT_OPEN): store DROP s7 leave\n"
        "-> drop dropping leave busy 1\n"
        "(void)0: store DROP s7\n"
        "-> drop dropping busy 1 gone\n"
        "seg->log.stream++: -> busy 0\n"
        "is_written(LEAT_SEGMENT_OPEN): -> busy 0 gone\n"
        "is_written(LEAT_SEGMENT_OPEN), writer->fenced = true: store DROP s7\n"
        "-> drop dropping busy 1 gone\n"
        "rep->settled = true: -> corrupt busy 0\n"
        "rep->settled = true, seg->integrity = LEAT_INTEGRITY_CORRUPT: -> settled corrupt busy 0\n"
        "rep->settled = true, seg->state = LEAT_SEGMENT_HIBERNATED: -> settled busy 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(piece_is_served_of_what_claims_to_have_it),
        TRACE_TEST(replica_that_is_closed_or_hibernated_is_told_as_it_says),
        TRACE_TEST(replica_that_is_open_is_told_as_its_bytes_say),
        TRACE_TEST(bytes_that_are_not_its_own_or_have_rotted_are_told),
        TRACE_TEST(what_is_on_its_way_out_is_not_collected),
        TRACE_TEST(replicas_are_counted_by_their_state),
        TRACE_TEST(what_is_in_its_file_leaves_memory),
        TRACE_TEST(place_stays_while_its_writer_may_write),
        TRACE_TEST(replica_goes_with_its_log_or_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
