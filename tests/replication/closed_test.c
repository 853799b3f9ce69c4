/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of closed segments, and replicas that a node tells of: which copy is surplus, which place is better, which
 * replica counts. A primary alone. */
#include "tests/replication/case_rig.h"

static void surplus(void)
{
    rep_set_surplus(set);
    trace(".\n");
}

/* Goal: of more copies than wanted the worst placed copy goes, or any; no copy goes while a request is under way, or
 * while a copy is not known to count. */
static void copy_that_is_one_too_many_goes(void **state)
{
    (void)state;
    CASE_AS_IT_IS(closed_at_128, surplus);
    CASE(closed_at_128, surplus, owned->options.copies = 2);
    CASE(closed_at_128, surplus, owned->options.copies = 2, memcpy(copy->peer->node.host, "h0", 3));
    CASE(closed_at_128, surplus, owned->options.copies = 2,
         memcpy(set->copies[1]->peer->node.host, "h0", 3));
    CASE(closed_at_128, surplus, owned->options.copies = 2, copy->incomplete = true);
    CASE(closed_at_128, surplus, owned->options.copies = 2, copy->found = true);
    CASE(closed_at_128, surplus, owned->options.copies = 2, copy->writes = 1);
    CASE(closed_at_128, surplus, owned->options.copies = 2, copy->batched = true);
    CASE(closed_at_128, surplus, owned->options.copies = 2, copy->state = REP_COPY_OPEN);
    CASE(closed_at_128, surplus, owned->options.copies = 2, set->state = REP_SET_STARTED);
    CASE(closed_at_128, surplus, owned->options.copies = 2, set->dropping = true);
    CASE(closed_at_128, surplus, owned->options.copies = 2, set->close = (void *)set);
    CASE(closed_at_128, surplus, owned->options.copies = 2, set->evict = (void *)set);
    CASE(closed_at_128, surplus, owned->options.copies = 2,
         set->seg->integrity = LEAT_INTEGRITY_CORRUPT);
    TRACE_IS("(void)0: .\n"
             "owned->options.copies = 2: n1 DROP s0 h10 v1 d1, 2 s\n"
             ".\n"
             "owned->options.copies = 2, memcpy(copy->peer->node.host, \"h0\", 3): n1 DROP s0 h10 "
             "v1 d1, 2 s\n"
             ".\n"
             "owned->options.copies = 2, memcpy(set->copies[1]->peer->node.host, \"h0\", 3): n2 "
             "DROP s0 h20 v1 d1, 2 s\n"
             ".\n"
             "owned->options.copies = 2, copy->incomplete = true: .\n"
             "owned->options.copies = 2, copy->found = true: .\n"
             "owned->options.copies = 2, copy->writes = 1: .\n"
             "owned->options.copies = 2, copy->batched = true: .\n"
             "owned->options.copies = 2, copy->state = REP_COPY_OPEN: .\n"
             "owned->options.copies = 2, set->state = REP_SET_STARTED: .\n"
             "owned->options.copies = 2, set->dropping = true: .\n"
             "owned->options.copies = 2, set->close = (void *)set: .\n"
             "owned->options.copies = 2, set->evict = (void *)set: .\n"
             "owned->options.copies = 2, set->seg->integrity = LEAT_INTEGRITY_CORRUPT: .\n");
}

static void begin_better(void)
{
    leat_mem_fail_at(1);
    const struct rep_copy *begun_one = rep_better_begin(rig->primary, rig->now_us);
    leat_mem_fail_at(0);
    trace("without memory %s, ", begun_one ? "begun" : "not begun");
    begun_one = rep_better_begin(rig->primary, rig->now_us + 10 * 1000 * 1000);
    trace("-> %s, %u copies\n", begun_one ? begun_one->peer->node.name : "none", set->copy_count);
}

static void lies_badly(void)
{
    closed_at_128();
    memcpy(copy->peer->node.host, "h0", 3);
    rep_place_judge(set);
}

/* Goal: a better place is made use of where there is memory to ask for it. */
static void better_place_is_asked_for_a_copy(void **state)
{
    (void)state;
    CASE_AS_IT_IS(lies_badly, begin_better);
    CASE(lies_badly, begin_better, rig_peer(rig, 3)->node.draining = true);
    TRACE_IS(
        "(void)0: without memory not begun, n3 OPEN s0 h0 v1 d1 part, 2 s\n"
        "-> n3, 3 copies\n"
        "rig_peer(rig, 3)->node.draining = true: without memory not begun, -> none, 2 copies\n");
}

/* Node 3 shares a rack with this one, node 4 nothing; or the other way round. */
static void two_are_better(unsigned near)
{
    closed_at_128();
    rig->quiet = true;
    rig_node_up(rig, 4);
    rig->quiet = false;
    memcpy(rig->primary->options.self.rack, "r", 2);
    memcpy(rig_peer(rig, near)->node.rack, "r", 2);
    memcpy(copy->peer->node.host, "h0", 3);
    rep_place_judge(set);
}

static void node_3_is_near(void)
{
    two_are_better(3);
}

static void node_4_is_near(void)
{
    two_are_better(4);
}

/* Goal: of several better places the best is chosen, whichever is looked at first. */
static void best_of_better_places_is_asked(void **state)
{
    (void)state;
    CASE_AS_IT_IS(node_3_is_near, begin_better);
    CASE_AS_IT_IS(node_4_is_near, begin_better);
    CASE(node_3_is_near, begin_better, rig_peer(rig, 4)->node.draining = true);
    TRACE_IS("(void)0: without memory not begun, n4 OPEN s0 h0 v1 d1 part, 2 s\n"
             "-> n4, 3 copies\n"
             "(void)0: without memory not begun, n3 OPEN s0 h0 v1 d1 part, 2 s\n"
             "-> n3, 3 copies\n"
             "rig_peer(rig, 4)->node.draining = true: without memory not begun, n3 OPEN s0 h0 v1 "
             "d1 part, 2 s\n"
             "-> n3, 3 copies\n");
}

static void look_at_all(void)
{
    rig->primary->crowded_left = rig->primary->crowded_count;
    const struct rep_copy *begun_one = rep_better_begin(rig->primary, rig->now_us);
    trace("-> %s, %s\n", begun_one ? "begun" : "none",
          set->places == rig->primary->places ? "judged" : "looked at again");
}

static void nowhere(void)
{
    lies_badly();
    rig_peer(rig, 3)->node.draining = true;
}

/* Goal: where no place is better that is so until something changes; where one has refused it is asked again. */
static void segment_without_a_better_place_is_judged(void **state)
{
    (void)state;
    CASE_AS_IT_IS(nowhere, look_at_all);
    for (unsigned i = 0; i < LEAT_REP_NODES_MAX / 64; i++)
        CASE(nowhere, look_at_all, set->refused[i] = UINT64_C(1) << 63);
    CASE(nowhere, look_at_all, set->refused[0] = 1);
    CASE(nowhere, look_at_all, set->retry_us = rig->now_us + 1);
    CASE(nowhere, look_at_all, copy->found = true);
    TRACE_IS("(void)0: -> none, judged\n"
             "set->refused[i] = UINT64_C(1) << 63: -> none, looked at again\n"
             "set->refused[i] = UINT64_C(1) << 63: -> none, looked at again\n"
             "set->refused[i] = UINT64_C(1) << 63: -> none, looked at again\n"
             "set->refused[i] = UINT64_C(1) << 63: -> none, looked at again\n"
             "set->refused[0] = 1: -> none, looked at again\n"
             "set->retry_us = rig->now_us + 1: -> none, looked at again\n"
             "copy->found = true: -> none, looked at again\n");
}

static uint64_t row_handle;
static uint32_t row_bytes, row_state, row_epoch;
static unsigned row_node;
static bool without_memory;

static void row_comes(void)
{
    uint8_t control[128];
    struct leat_msg_writer writer;
    struct rep_row row = {.handle = row_handle,
                          .log = {1, 2, 3},
                          .epoch = {row_epoch},
                          .version = 1,
                          .state = row_state,
                          .prefix_id = {row_bytes, 128}};
    rig->quiet = true;
    rep_audit_all(rig_peer(rig, row_node));
    rig_pass(rig, 20 * 1000);
    rig->quiet = false;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_array(&writer, 1);
    rep_row_write(&writer, &row);
    leat_mem_fail_at(without_memory);
    rig_answer_bytes(rig, row_node, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
    leat_mem_fail_at(0);
    trace("-> %u copies\n", set->copy_count);
}

/* Node 1 is asked for what it has; its copy is replica 10 there, unless it has gone. */
static void told_by_node_1(void)
{
    closed_at_128();
    for (unsigned i = 1; i <= 3; i++)
        rig_peer(rig, i)->node.draining = true;
    row_handle = 11;
    row_node = 1;
    without_memory = false;
    row_bytes = 128;
    row_state = LEAT_SEGMENT_CLOSED;
    row_epoch = RIG_EPOCH;
}

static void of_an_owner_before(void)
{
    set->seg->epoch.v = row_epoch = RIG_EPOCH - 1;
}

/* Goal: a closed replica counts where its bytes are the same, its node has no other copy, and a copy is lacking; else
 * it is dropped when there are enough copies. A replica of an earlier owner that may hold more is cut to the decided
 * end. */
static void closed_replica_is_judged(void **state)
{
    (void)state;
    CASE(told_by_node_1, row_comes, row_handle = 10);
    CASE(told_by_node_1, row_comes, row_handle = 10, row_state = LEAT_SEGMENT_RESERVED);
    CASE_AS_IT_IS(told_by_node_1, row_comes);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy));
    CASE(told_by_node_1, row_comes, rep_copy_remove(set->copies[1]));
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), row_bytes = 64);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), set->seg->prefix_id.crc++);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), set->close = (void *)set);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), row_state = LEAT_SEGMENT_OPEN);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), of_an_owner_before(), row_bytes = 64);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), of_an_owner_before(), row_bytes = 256);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), of_an_owner_before(), row_epoch--,
         row_bytes = 256);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), row_bytes = 256);
    CASE(told_by_node_1, row_comes, rep_copy_remove(set->copies[1]), of_an_owner_before(),
         row_bytes = 256);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), of_an_owner_before(), row_bytes = 64,
         row_state = LEAT_SEGMENT_OPEN);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), of_an_owner_before(), row_bytes = 256,
         rig_peer(rig, 1)->seal_busy = true);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), of_an_owner_before(), row_bytes = 256,
         set->close = (void *)set);
    CASE(told_by_node_1, row_comes, owned->silent = true);
    CASE(told_by_node_1, row_comes, set->dropping = true);
    CASE(told_by_node_1, row_comes, set->seg->integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(told_by_node_1, row_comes, row_epoch++);
    CASE(told_by_node_1, row_comes, rep_copy_remove(copy), without_memory = true);
    CASE(told_by_node_1, row_comes, row_node = 3);
    CASE(told_by_node_1, row_comes, row_node = 3, copy->state = REP_COPY_OPEN, copy->writes = 1);
    TRACE_IS(
        "row_handle = 10: n1 SETTLE h10=KEEP/e5/p1, 10 s\n"
        "-> 2 copies\n"
        "row_handle = 10, row_state = LEAT_SEGMENT_RESERVED: -> 1 copies\n"
        "(void)0: n1 SETTLE h11=DROP/e5/p0, 10 s\n"
        "-> 2 copies\n"
        "rep_copy_remove(copy): n1 SETTLE h11=KEEP/e5/p1, 10 s\n"
        "-> 2 copies\n"
        "rep_copy_remove(set->copies[1]): -> 1 copies\n"
        "rep_copy_remove(copy), row_bytes = 64: -> 1 copies\n"
        "rep_copy_remove(copy), set->seg->prefix_id.crc++: -> 1 copies\n"
        "rep_copy_remove(copy), set->close = (void *)set: -> 1 copies\n"
        "rep_copy_remove(copy), row_state = LEAT_SEGMENT_OPEN: -> 1 copies\n"
        "rep_copy_remove(copy), of_an_owner_before(), row_bytes = 64: -> 1 copies\n"
        "rep_copy_remove(copy), of_an_owner_before(), row_bytes = 256: n1 SEAL s0 h11 v1 d1 "
        "128:128 e4/5, 10 s\n"
        "-> 1 copies\n"
        "rep_copy_remove(copy), of_an_owner_before(), row_epoch--, row_bytes = 256: -> 1 copies\n"
        "rep_copy_remove(copy), row_bytes = 256: -> 1 copies\n"
        "rep_copy_remove(set->copies[1]), of_an_owner_before(), row_bytes = 256: -> 1 copies\n"
        "rep_copy_remove(copy), of_an_owner_before(), row_bytes = 64, row_state = "
        "LEAT_SEGMENT_OPEN: n1 SEAL s0 h11 v1 d1 128:128 e4/5, 10 s\n"
        "-> 1 copies\n"
        "rep_copy_remove(copy), of_an_owner_before(), row_bytes = 256, rig_peer(rig, 1)->seal_busy "
        "= true: -> 1 copies\n"
        "rep_copy_remove(copy), of_an_owner_before(), row_bytes = 256, set->close = (void *)set: "
        "-> 1 copies\n"
        "owned->silent = true: -> 2 copies\n"
        "set->dropping = true: -> 2 copies\n"
        "set->seg->integrity = LEAT_INTEGRITY_CORRUPT: -> 2 copies\n"
        "row_epoch++: -> 2 copies\n"
        "rep_copy_remove(copy), without_memory = true: -> 1 copies\n"
        "row_node = 3: n3 SETTLE h11=DROP/e5/p0, 10 s\n"
        "-> 2 copies\n"
        "row_node = 3, copy->state = REP_COPY_OPEN, copy->writes = 1: -> 2 copies\n");
}

/* Goal: the known copies count while older segments are still to come; no node is asked to cut a replica for which
 * there is no place. */
static void closed_replica_is_judged_amid_what_comes(void **state)
{
    (void)state;
    CASE(told_by_node_1, row_comes, row_node = 3, of_an_owner_before(), row_bytes = 256,
         copy->state = REP_COPY_OPENING);
    CASE(told_by_node_1, row_comes, row_handle = 10, owned->options.backfill_follows = true);
    CASE(told_by_node_1, row_comes, row_handle = 10, owned->options.unsure.end = 1);
    CASE(told_by_node_1, row_comes, row_handle = 10, copy->writes = 1, rep_copy_remove(copy));
    TRACE_IS(
        "row_node = 3, of_an_owner_before(), row_bytes = 256, copy->state = REP_COPY_OPENING: -> 2 "
        "copies\n"
        "row_handle = 10, owned->options.backfill_follows = true: n1 SETTLE h10=KEEP/e5/p1, 10 s\n"
        "-> 2 copies\n"
        "row_handle = 10, owned->options.unsure.end = 1: n1 SETTLE h10=KEEP/e5/p1, 10 s\n"
        "-> 2 copies\n"
        "row_handle = 10, copy->writes = 1, rep_copy_remove(copy): -> 1 copies\n");
}

static struct rep_op *op_of(enum leat_rep_kind kind)
{
    static struct rep_op op;
    op.call.kind = (uint16_t)kind;
    return &op;
}

/* Node 3 has an open one of the head, which nobody knows. */
static void head_told_by_node_3(void)
{
    begun();
    calm();
    row_handle = 31;
    row_node = 3;
    without_memory = false;
    row_bytes = 0;
    row_state = LEAT_SEGMENT_OPEN;
    row_epoch = RIG_EPOCH;
}

/* Goal: a replica is dropped where there are enough replicas without it. A replica that is being dropped is none of
 * these, nor is an incomplete replica. */
static void open_replica_is_judged(void **state)
{
    (void)state;
    CASE_AS_IT_IS(head_told_by_node_3, row_comes);
    CASE(head_told_by_node_3, row_comes, copy->op = op_of(LEAT_REP_HIBERNATE));
    CASE(head_told_by_node_3, row_comes, copy->op = op_of(LEAT_REP_DROP));
    CASE(head_told_by_node_3, row_comes, set->copies[1]->op = op_of(LEAT_REP_DROP));
    CASE(head_told_by_node_3, row_comes, copy->incomplete = true);
    CASE(head_told_by_node_3, row_comes, set->copies[1]->incomplete = true);
    CASE(head_told_by_node_3, row_comes, copy->found = true);
    CASE(head_told_by_node_3, row_comes, set->copies[1]->state = REP_COPY_OPENING);
    CASE(head_told_by_node_3, row_comes, owned->need = owned->known + 1);
    CASE(head_told_by_node_3, row_comes, owned->options.copies = 4);
    CASE(head_told_by_node_3, row_comes, set->seg = NULL, set->state = REP_SET_RESERVING,
         row_state = LEAT_SEGMENT_CLOSED);
    CASE(head_told_by_node_3, row_comes, set->seg = NULL, set->state = REP_SET_RESERVING,
         row_epoch--, copy->incomplete = true);
    TRACE_IS("(void)0: n3 SETTLE h31=DROP/e5/p0, 10 s\n"
             "-> 2 copies\n"
             "copy->op = op_of(LEAT_REP_HIBERNATE): n3 SETTLE h31=DROP/e5/p0, 10 s\n"
             "-> 2 copies\n"
             "copy->op = op_of(LEAT_REP_DROP): -> 2 copies\n"
             "set->copies[1]->op = op_of(LEAT_REP_DROP): -> 2 copies\n"
             "copy->incomplete = true: -> 2 copies\n"
             "set->copies[1]->incomplete = true: -> 2 copies\n"
             "copy->found = true: -> 2 copies\n"
             "set->copies[1]->state = REP_COPY_OPENING: -> 2 copies\n"
             "owned->need = owned->known + 1: -> 2 copies\n"
             "owned->options.copies = 4: -> 2 copies\n"
             "set->seg = NULL, set->state = REP_SET_RESERVING, row_state = LEAT_SEGMENT_CLOSED: n3 "
             "SETTLE h31=DROP/e5/p0, 10 s\n"
             "-> 2 copies\n"
             "set->seg = NULL, set->state = REP_SET_RESERVING, row_epoch--, copy->incomplete = "
             "true: -> 2 copies\n");
}

/* Dirties the stack, so that a function that reads memory that it has not written finds these words. */
static void stack_dirty(uint64_t word)
{
    volatile uint64_t dirt[8 * 1024];
    for (size_t i = 0; i < sizeof dirt / sizeof *dirt; i++)
        dirt[i] = word;
}

static void kept_is_settled(void)
{
    rig->quiet = true;
    row_comes();
    trace_begin();
    stack_dirty(row_handle);
    rig_answer_bytes(rig, row_node, LEAT_REP_SETTLE, LEAT_OK, (const uint8_t *)"\x90", 1);
    trace("-> %u copies%s\n", set->copy_count, copy->found ? ", one is found" : "");
}

/* Goal: a backup that refuses no row of the KEEP request has the replica. */
static void replica_that_is_not_refused_is_there(void **state)
{
    (void)state;
    CASE(told_by_node_1, kept_is_settled, row_handle = 10, copy->found = true);
    TRACE_IS("-> 2 copies\n");
}

/* Goal: an answer that says to have more rows than there may be is none. */
static void answer_of_too_many_rows_is_none(void **state)
{
    (void)state;
    for (uint32_t count = LEAT_REP_BATCH_MAX; count <= LEAT_REP_BATCH_MAX + 1; count++) {
        static uint8_t control[64 * 1024];
        struct leat_msg_writer writer;
        told_by_node_1();
        struct rep_row row = {.log = {1, 2, 3}, .segment = {9}, .epoch = {RIG_EPOCH}};
        rig->quiet = true;
        rep_audit_all(rig_peer(rig, 1));
        rig_pass(rig, 20 * 1000);
        leat_msg_writer_init(&writer, control, sizeof control);
        leat_msg_write_array(&writer, 2);
        leat_msg_write_u64(&writer, 0);
        leat_msg_write_array(&writer, count);
        for (row.handle = 1; row.handle <= count; row.handle++)
            rep_row_write(&writer, &row);
        rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
        trace("%u rows: %u settled\n", count, rig_peer(rig, 1)->settle_sent);
    }
    TRACE_IS("512 rows: 512 settled\n"
             "513 rows: 0 settled\n");
}

/* Goal: a row that is cut short is none. */
static void answer_that_is_cut_short_is_none(void **state)
{
    (void)state;
    uint8_t control[128];
    struct leat_msg_writer writer;
    struct rep_row row = {.handle = 12, .log = {1, 2, 3}, .segment = {9}, .epoch = {RIG_EPOCH}};
    told_by_node_1();
    rig->quiet = true;
    rep_audit_all(rig_peer(rig, 1));
    rig_pass(rig, 20 * 1000);
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_array(&writer, 1);
    rep_row_write(&writer, &row);
    rig->quiet = false;
    trace_begin();
    rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used - 1);
    TRACE_IS("");
}

static void unknown_row(void)
{
    set->id.v = 9; /* the row is of 0 */
    row_comes();
}

/* Goal: while older segments of a log are still to come nothing of it is called unknown; when they are here, it is. */
static void unknown_replica_goes_when_the_log_is_whole(void **state)
{
    (void)state;
    CASE_AS_IT_IS(told_by_node_1, unknown_row);
    CASE(told_by_node_1, unknown_row, owned->options.backfill_follows = true);
    CASE(told_by_node_1, unknown_row, owned->options.backfill_follows = true,
         leat_primary_log_whole(owned));
    CASE(told_by_node_1, unknown_row, owned->options.unsure.end = 1);
    TRACE_IS("(void)0: n1 SETTLE h11=DROP/e5/p0, 10 s\n"
             "-> 2 copies\n"
             "owned->options.backfill_follows = true: -> 2 copies\n"
             "owned->options.backfill_follows = true, leat_primary_log_whole(owned): n1 SETTLE "
             "h11=DROP/e5/p0, 10 s\n"
             "-> 2 copies\n"
             "owned->options.unsure.end = 1: -> 2 copies\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(copy_that_is_one_too_many_goes),
        TRACE_TEST(better_place_is_asked_for_a_copy),
        TRACE_TEST(best_of_better_places_is_asked),
        TRACE_TEST(segment_without_a_better_place_is_judged),
        TRACE_TEST(closed_replica_is_judged),
        TRACE_TEST(closed_replica_is_judged_amid_what_comes),
        TRACE_TEST(unknown_replica_goes_when_the_log_is_whole),
        TRACE_TEST(open_replica_is_judged),
        TRACE_TEST(replica_that_is_not_refused_is_there),
        TRACE_TEST(answer_of_too_many_rows_is_none),
        TRACE_TEST(answer_that_is_cut_short_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
