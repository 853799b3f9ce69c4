/* SPDX-License-Identifier: Apache-2.0 */
/* The primary's record of a node after a change of the node; each field by itself. */
#include "tests/replication/case_rig.h"

static struct leat_rep_node node;

static void met(void)
{
    begun();
    struct rep_peer *peer = rig_peer(rig, 1);
    node = peer->node;
    peer->cut = true;
    peer->left_us = 7;
    peer->refused = LEAT_E_STALE_EPOCH;
}

static void is_set(void)
{
    calm();
    uint32_t places = rig->primary->places;
    leat_primary_node_set(rig->primary, &node);
    const struct rep_peer *peer = rig->primary->peers[node.number];
    if (!peer) {
        trace("-> not known\n");
        return;
    }
    trace("-> %s of %llu on %s in \"%s\"%s%s%s%s left %llu %s, places %u more, %u attached, %u "
          "copies",
          peer->node.name, (unsigned long long)peer->node.incarnation, peer->node.host,
          peer->node.rack, peer->state != REP_PEER_DOWN ? " up" : "",
          peer->state == REP_PEER_ATTACHED ? " attached" : "", peer->cut ? " cut" : "",
          peer->node.draining ? " draining" : "", (unsigned long long)peer->left_us,
          leat_err_name(peer->refused), rig->primary->places - places, rig->primary->attached_count,
          set->copy_count);
    armed_trace();
}

static void set_name(const char *name)
{
    snprintf(node.name, sizeof node.name, "%s", name);
}

static void set_host(const char *host)
{
    snprintf(node.host, sizeof node.host, "%s", host);
}

static void is_new(void)
{
    node.number = 40;
}

static void goes_down(void)
{
    rig->quiet = true;
    rig_peer_down(rig, 1);
    rig->quiet = false;
}

static void node_is_taken_as_it_is_told(void **state)
{
    (void)state;
    CASE_AS_IT_IS(met, is_set);
    CASE(met, is_set, set_name("other"));
    CASE(met, is_set, set_name(""));
    CASE(met, is_set, set_host("h7"));
    CASE(met, is_set, node.rack[0] = 'r');
    CASE(met, is_set, node.draining = true);
    CASE(met, is_set, node.incarnation++);
    CASE(met, is_set, node.incarnation++, goes_down());
    CASE(met, is_set, is_new());
    CASE(met, is_set, is_new(), set_name(""));
    CASE(met, is_set, is_new(), leat_mem_fail_at(1));
    leat_mem_fail_at(0);
    TRACE_IS("(void)0: -> n1 of 101 on h1 in \"\" up attached cut left 7 STALE_EPOCH, places 0 "
             "more, 3 attached, 2 copies\n"
             "set_name(\"other\"): -> other of 101 on h1 in \"\" up attached cut left 7 "
             "STALE_EPOCH, places 0 more, 3 attached, 2 copies\n"
             "set_name(\"\"): -> 0 of 101 on h1 in \"\" up attached cut left 7 STALE_EPOCH, places "
             "0 more, 3 attached, 2 copies\n"
             "set_host(\"h7\"): -> n1 of 101 on h7 in \"\" up attached cut left 7 STALE_EPOCH, "
             "places 1 more, 3 attached, 2 copies\n"
             "node.rack[0] = 'r': -> n1 of 101 on h1 in \"r\" up attached cut left 7 STALE_EPOCH, "
             "places 1 more, 3 attached, 2 copies\n"
             "node.draining = true: -> n1 of 101 on h1 in \"\" up attached cut draining left 7 "
             "STALE_EPOCH, places 1 more, 3 attached, 2 copies\n"
             "node.incarnation++: detach n1\n"
             "-> n1 of 102 on h1 in \"\" up left 0 OK, places 0 more, 2 attached, 1 copies, again "
             "in 0 us\n"
             "node.incarnation++, goes_down(): -> n1 of 102 on h1 in \"\" left 0 OK, "
             "places 0 more, 2 attached, 2 copies\n"
             "is_new(): -> n1 of 101 on h1 in \"\" left 0 OK, places 0 more, 3 attached, 2 copies\n"
             "is_new(), set_name(\"\"): -> 40 of 101 on h1 in \"\" left 0 OK, places 0 more, 3 "
             "attached, 2 copies\n"
             "is_new(), leat_mem_fail_at(1): -> not known\n");
}

static void self_is_no_peer_of_its_own(void **state)
{
    (void)state;
    met();
    node.number = RIG_SELF;
    set_name("me");
    leat_primary_node_set(rig->primary, &node);
    assert_null(rig->primary->peers[RIG_SELF]);
    assert_string_equal(rig->primary->options.self.name, "me");
}

/* Goal: a node that there is no memory for takes none. */
static void node_without_memory_takes_none(void **state)
{
    (void)state;
    begun();
    node = rig_node(1);
    is_new();
    size_t bytes = leat_mem_bytes(LEAT_MEM_STORE);
    for (unsigned at = 1; at <= 8; at++) {
        leat_mem_fail_at(at);
        leat_primary_node_set(rig->primary, &node);
        assert_null(rig->primary->peers[node.number]);
        assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), bytes);
    }
    leat_mem_fail_at(0);
}

/* Goal: a session begins with an audit of all replicas of its backup, whatever an earlier session knew. */
static void session_begins_anew(void **state)
{
    (void)state;
    begun();
    struct rep_peer *peer = rig_peer(rig, 1);
    peer->audit_from = 256;
    peer->audited_us = rig->now_us;
    peer->refused = LEAT_E_STALE_EPOCH;
    rig->quiet = true;
    rig_target_failed(rig, 1);
    rig_pass(rig, REP_RETRY_US);
    rig_grant(rig, 1);
    rig_attached(rig, 1);
    assert_int_equal(peer->refused, LEAT_OK);
    rig->quiet = false;
    trace_begin();
    rig_pass(rig, 1000);
    TRACE_IS("n1 AUDIT from0 all, 10 s\n");
    calm();
    rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, (const uint8_t *)"\x92\x07\x90", 3);
    armed_trace();
    TRACE_IS(", again in 20000 us\n");
    rig_pass(rig, 20 * 1000);
    TRACE_IS("n1 AUDIT from7 all, 10 s\n");
    uint8_t control[128];
    struct leat_msg_writer writer;
    leat_msg_writer_init(&writer, control, sizeof control);
    leat_msg_write_array(&writer, 2);
    leat_msg_write_u64(&writer, 0);
    leat_msg_write_array(&writer, 1);
    rep_row_write(&writer, &(struct rep_row){.handle = 12,
                                             .log = {1, 2, 3},
                                             .segment = {7},
                                             .epoch = {RIG_EPOCH},
                                             .state = LEAT_SEGMENT_CLOSED});
    rig_answer_bytes(rig, 1, LEAT_REP_AUDIT, LEAT_OK, control, writer.used);
    TRACE_IS("n1 SETTLE h12=DROP/e5/p0, 10 s\n");
}

static unsigned length(const struct leat_list *list)
{
    unsigned count = 0;
    for (const struct leat_list *it = list->next; it != list; it = it->next)
        count++;
    return count;
}

/* Segment 1 is to be opened on two nodes, which have as many requests as they may. */
static void crowded(void)
{
    begun();
    for (unsigned i = 1; i <= 3; i++)
        rig_peer(rig, i)->ops = LEAT_REP_CALLS_MAX;
    rig_reserve(rig, 1);
    leat_list_push_back(&rig->primary->ops_free, &rep_op_get(rig->primary)->link);
    set = rep_set_find(rig->log, 1);
    calm();
}

static void take_turns(void)
{
    const struct rep_op *op = set->copy_count ? set->copies[0]->op : NULL;
    struct rep_peer *peer = op ? op->peer : NULL;
    for (unsigned i = 1; i <= 3; i++) {
        if (!peer && !leat_list_empty(&rig_peer(rig, i)->ops_waiting)) peer = rig_peer(rig, i);
    }
    unsigned idle = length(&rig->primary->ops_free);
    rep_peer_ops(peer);
    trace("-> %u wait, %u more are free", length(&peer->ops_waiting),
          length(&rig->primary->ops_free) - idle);
    armed_trace();
}

static void forgotten(void)
{
    while (set->copy_count)
        rep_copy_remove(set->copies[0]);
}

static void some_leave(void)
{
    for (unsigned i = 1; i <= 3; i++)
        rig_peer(rig, i)->ops = LEAT_REP_CALLS_MAX - 1;
}

/* Goal: a node has so many requests at a time, and the next in its turn; one that nobody wants any more is not made. */
static void requests_wait_for_their_turn(void **state)
{
    (void)state;
    CASE_AS_IT_IS(crowded, take_turns);
    CASE(crowded, take_turns, some_leave());
    CASE(crowded, take_turns, some_leave(), rig->call_rc = LEAT_E_AGAIN);
    CASE(crowded, take_turns, some_leave(), forgotten());
    TRACE_IS("store RESERVE s1 1/2/3 e5 v1 cap65536 d1\n"
             "(void)0: -> 1 wait, 0 more are free\n"
             "store RESERVE s1 1/2/3 e5 v1 cap65536 d1\n"
             "some_leave(): n1 OPEN s1 h0 v1 d1, 2 s\n"
             "-> 0 wait, 0 more are free\n"
             "store RESERVE s1 1/2/3 e5 v1 cap65536 d1\n"
             "some_leave(), rig->call_rc = LEAT_E_AGAIN: -> 1 wait, 0 more are free, again in "
             "20000 us\n"
             "store RESERVE s1 1/2/3 e5 v1 cap65536 d1\n"
             "some_leave(), forgotten(): -> 0 wait, 1 more are free\n");
}

static void on_idle(void *arg)
{
    (void)arg;
    trace("idle\n");
}

/* Goal: a log is given up when the store has answered what was asked for any of its segments, closed ones too: requests
 * and stamps; and where nothing was asked, at once. */
static void log_is_given_up_when_the_store_is_done(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        begun();
        if (i & 1) leat_list_remove(&set->link);
        if (i & 1) leat_list_push_back(&owned->settled, &set->link);
        calm();
        rig_mails(rig);
        trace_begin();
        if (i < 2) set->local_state = REP_LOCAL_ASKED;
        if (i == 2 || i == 3) set->stamp_busy = true;
        leat_primary_log_release(owned, on_idle, NULL);
        rig_mails(rig);
        TRACE_IS(i == 4 ? "idle\n" : "");
        set->local_state = REP_LOCAL_IDLE;
        set->stamp_busy = false;
        rep_mark_dirty(owned);
        rig_mails(rig);
        TRACE_IS(i == 4 ? "" : "idle\n");
    }
}

/* Goal: a log is writing while bytes of any of its segments are under way. */
static void log_writes_while_bytes_are_under_way(void **state)
{
    (void)state;
    begun();
    rig->quiet = true;
    assert_false(leat_primary_log_is_writing(owned));
    rig_commit(rig, 0, 128, 256);
    assert_true(leat_primary_log_is_writing(owned));
    leat_list_remove(&set->link);
    leat_list_push_back(&owned->settled, &set->link);
    assert_true(leat_primary_log_is_writing(owned));
    set->writes = 0;
    assert_false(leat_primary_log_is_writing(owned));
    trace_begin();
}

/* Goal: all logs that wait are looked at again with the next tick. */
static void logs_that_wait_are_all_looked_at(void **state)
{
    (void)state;
    struct leat_primary_log *logs[3];
    begun();
    rig->quiet = true;
    for (uint32_t i = 0; i < 3; i++) {
        struct leat_primary_log_options options = rig_log_options(LEAT_DURABILITY_MEMORY, 3);
        options.ref.log += 1 + i;
        assert_int_equal(leat_primary_log_create(rig->primary, &options, NULL, 0, &logs[i]),
                         LEAT_OK);
    }
    rig_mails(rig);
    for (unsigned i = 0; i < 3; i++)
        rep_wait(logs[i]);
    rig_pass(rig, REP_TICK_US + 1);
    for (unsigned i = 0; i < 3; i++)
        assert_true(leat_list_empty(&logs[i]->waits_link));
    trace_begin();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(node_is_taken_as_it_is_told),
        TRACE_TEST(self_is_no_peer_of_its_own),
        TRACE_TEST(node_without_memory_takes_none),
        TRACE_TEST(session_begins_anew),
        TRACE_TEST(requests_wait_for_their_turn),
        TRACE_TEST(log_is_given_up_when_the_store_is_done),
        TRACE_TEST(log_writes_while_bytes_are_under_way),
        TRACE_TEST(logs_that_wait_are_all_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
