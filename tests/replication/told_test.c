/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a log's copies for operators and clients at each step of the log's life: a primary alone, whose world
 * answers by hand. */
#include "tests/replication/primary_rig.h"

static void segment_trace(void *arg, const struct leat_rep_segment_status *status)
{
    (void)arg;
    trace("  s%llu%s%s %u of %u:", (unsigned long long)status->segment.v,
          status->closed ? " closed" : "", status->misplaced ? " misplaced" : "", status->count,
          status->wanted);
    for (unsigned i = 0; i < status->count; i++)
        trace(" n%u%s%s%s %u", rig_node_of(status->copies[i].node),
              status->copies[i].closed ? " closed" : "",
              status->copies[i].hibernated ? " hibernated" : "",
              status->copies[i].complete ? "" : " part", status->copies[i].bytes);
    trace("\n");
}

/* Traces the whole status. */
static void told(const struct rig *rig, const char *when)
{
    struct leat_primary_status all;
    struct leat_primary_log_status log;
    struct leat_rep_places places;
    leat_primary_status(rig->primary, &all);
    leat_primary_log_status(rig->log, &log);
    trace("%s\n", when);
    trace("  logs %u lacking %u below %u held %u, segments lacking %u misplaced %u\n", all.logs,
          all.logs_under_replicated, all.logs_below_min, all.logs_suspended,
          all.segments_under_replicated, all.segments_misplaced);
    trace("  v%u %u of %u, at least %u, lacking %llu%s%s\n", log.version, log.copies_now,
          log.copies, log.min_copies, (unsigned long long)log.segments_lacking,
          log.suspended ? " suspended" : "", log.below_min ? " below" : "");
    bool any = leat_primary_log_places(rig->log, &places);
    trace("  places %s:", any ? "yes" : "no");
    for (unsigned i = 0; i < places.count; i++)
        trace(" n%u%s", rig_node_of(places.nodes[i]), i < places.whole ? "" : " part");
    trace("\n");
    leat_primary_log_each(rig->log, segment_trace, NULL);
}

static struct rig *rig_logged(unsigned nodes)
{
    struct rig *rig = rig_new(nodes);
    rig->quiet = true;
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    return rig;
}

static void begun(struct rig *rig, uint64_t id)
{
    size_t used = trace_used;
    rig_reserve(rig, id);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10 + id, 4096 * (1 + id));
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20 + id, 8192 * (1 + id));
    rig_commit(rig, id, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    trace_text[trace_used = used] = '\0';
}

static void first_segment_is_reserved(struct rig *rig)
{
    told(rig, "new");
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    told(rig, "being opened at one");
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    told(rig, "reserved");
    TRACE_IS("new\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 0 of 3, at least 2, lacking 0\n"
             "  places no:\n"
             "being opened at one\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 0 of 3, at least 2, lacking 0\n"
             "  places no:\n"
             "  s0 1 of 2: n2 0\n"
             "log RESERVE s0: OK\n"
             "reserved\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places no:\n"
             "  s0 2 of 2: n1 0 n2 0\n");
}

static void both_segments_have_bytes(struct rig *rig)
{
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    (void)leat_primary_opening(rig->log);
    leat_primary_opened(rig->log, LEAT_OK);
    begun(rig, 1);
    trace_begin();
    told(rig, "two segments");
    TRACE_IS("two segments\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places yes: n1 n2\n"
             "  s0 2 of 2: n1 128 n2 128\n"
             "  s1 2 of 2: n1 128 n2 128\n");
}

static void one_is_closed_the_other_hibernated(struct rig *rig)
{
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    trace_begin();
    told(rig, "one being closed");
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_end(rig, LEAT_STORE_HIBERNATE, 1, 128);
    rig_answer(rig, 1, LEAT_REP_HIBERNATE);
    told(rig, "the other being hibernated");
    TRACE_IS("one being closed\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places yes: n1 n2\n"
             "  s0 closed 2 of 2: n1 closed 128 n2 128\n"
             "  s1 2 of 2: n1 128 n2 128\n"
             "log CLOSE s0: OK\n"
             "the other being hibernated\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places yes: n1 n2\n"
             "  s0 closed 2 of 2: n1 closed 128 n2 closed 128\n"
             "  s1 2 of 2: n1 hibernated 128 n2 128\n");
}

static void one_is_dropped_another_reserved(struct rig *rig)
{
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_DROP, .seg = &rig->segs[0]});
    trace_begin();
    told(rig, "one being dropped");
    rig_reserve(rig, 2);
    told(rig, "one being reserved");
    TRACE_IS("one being dropped\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places yes: n1 n2\n"
             "  s0 closed 2 of 2: n1 closed 128 n2 closed 128\n"
             "  s1 2 of 2: n1 hibernated 128 n2 128\n"
             "one being reserved\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places yes: n1 n2\n"
             "  s0 closed 2 of 2: n1 closed 128 n2 closed 128\n"
             "  s1 2 of 2: n1 hibernated 128 n2 128\n"
             "  s2 0 of 2:\n");
}

/* Goal: as the name says, from nothing to a segment that is dropped. */
static void each_step_of_a_log_is_told(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(2);
    first_segment_is_reserved(rig);
    both_segments_have_bytes(rig);
    one_is_closed_the_other_hibernated(rig);
    one_is_dropped_another_reserved(rig);
    rig_free(rig);
}

/* Goal: the status shows the copies of the newest segment, also while an older segment is added or evicted: the older
 * segment's copies say nothing of the copies that the next append gets. */
static void newest_segment_is_told_of_while_older_ones_are_active(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(2);
    begun(rig, 1);
    (void)leat_primary_opening(rig->log);
    leat_primary_opened(rig->log, LEAT_OK);
    rig->segs[0].id.v = 0;
    rig->segs[0].state = LEAT_SEGMENT_CLOSED;
    trace_begin();
    assert_int_equal(leat_primary_log_add(rig->log, &rig->segs[0]), LEAT_OK);
    told(rig, "an older one is added");
    TRACE_IS("an older one is added\n"
             "  logs 1 lacking 1 below 0 held 0, segments lacking 1 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 1\n"
             "  places yes: n1 n2\n"
             "  s0 closed 0 of 2:\n"
             "  s1 2 of 2: n1 128 n2 128\n");
    struct rep_set *older = rep_set_find(rig->log, 0);
    older->writes++;
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_EVICT, .seg = &rig->segs[0]});
    trace_begin();
    told(rig, "it is being evicted");
    TRACE_IS("it is being evicted\n"
             "  logs 1 lacking 1 below 0 held 0, segments lacking 1 misplaced 0\n"
             "  v1 3 of 3, at least 2, lacking 1\n"
             "  places yes: n1 n2\n"
             "  s0 closed 0 of 2:\n"
             "  s1 2 of 2: n1 128 n2 128\n");
    older->writes--;
    rig_free(rig);
}

/* Goal: the status shows a missing copy, and that acks wait for it, until the copy is there again; a copy that is being
 * made does not count. */
static void loss_is_told_until_it_is_made_good(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(3);
    begun(rig, 0);
    (void)leat_primary_opening(rig->log);
    leat_primary_opened(rig->log, LEAT_OK);
    rig_peer_down(rig, 1);
    trace_begin();
    told(rig, "lost");
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 4096);
    told(rig, "being made");
    TRACE_IS("lost\n"
             "  logs 1 lacking 1 below 0 held 1, segments lacking 1 misplaced 0\n"
             "  v2 2 of 3, at least 2, lacking 1 suspended\n"
             "  places yes: n2\n"
             "  s0 1 of 2: n2 128\n"
             "being made\n"
             "  logs 1 lacking 1 below 0 held 1, segments lacking 1 misplaced 0\n"
             "  v2 2 of 3, at least 2, lacking 1 suspended\n"
             "  places yes: n2 n3 part\n"
             "  s0 2 of 2: n2 128 n3 part 0\n");
    rig_stored(rig, LEAT_STORE_STAMP, LEAT_OK);
    rig_answer_rows(rig, 2, LEAT_REP_RESTAMP, LEAT_OK);
    rig_wrote(rig, 3, LEAT_OK);
    rig_answer(rig, 3, LEAT_REP_COMPLETE);
    told(rig, "made, not known");
    leat_primary_versions_done(rig->primary, LEAT_OK);
    rig_mails(rig);
    told(rig, "known");
    rig->segs[0].integrity = LEAT_INTEGRITY_CORRUPT;
    told(rig, "the own one is damaged");
    rig->segs[0].integrity = LEAT_INTEGRITY_OK;
    TRACE_IS("made, not known\n"
             "  logs 1 lacking 0 below 0 held 1, segments lacking 0 misplaced 0\n"
             "  v2 3 of 3, at least 2, lacking 0 suspended\n"
             "  places yes: n2 n3\n"
             "  s0 2 of 2: n2 128 n3 128\n"
             "known\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 0\n"
             "  v2 3 of 3, at least 2, lacking 0\n"
             "  places yes: n2 n3\n"
             "  s0 2 of 2: n2 128 n3 128\n"
             "the own one is damaged\n"
             "  logs 1 lacking 1 below 0 held 0, segments lacking 1 misplaced 0\n"
             "  v2 3 of 3, at least 2, lacking 1\n"
             "  places yes: n2 n3\n"
             "  s0 2 of 2: n2 128 n3 128\n");
    rig_peer_down(rig, 2);
    rig_peer_down(rig, 3);
    told(rig, "alone");
    TRACE_IS("alone\n"
             "  logs 1 lacking 1 below 1 held 1, segments lacking 1 misplaced 0\n"
             "  v4 1 of 3, at least 2, lacking 1 suspended below\n"
             "  places yes:\n"
             "  s0 0 of 2:\n");
    rig_free(rig);
}

/* Goal: nodes that are met for the first time, and have refused nothing, are not called missing for 30 s. */
static void nodes_that_are_coming_are_not_missing(void **state)
{
    (void)state;
    static const leat_err reasons[] = {LEAT_OK,        LEAT_E_STARTING,    LEAT_E_AGAIN,
                                       LEAT_E_TIMEOUT, LEAT_E_STALE_EPOCH, LEAT_E_NO_MEMORY};
    struct leat_primary_log_status status;
    for (unsigned i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        struct rig *rig = rig_logged(0);
        struct leat_rep_node node = rig_node(1);
        leat_primary_log_status(rig->log, &status);
        assert_true(status.below_min);
        leat_primary_node_set(rig->primary, &node);
        leat_primary_log_status(rig->log, &status);
        assert_true(status.below_min); /* not up */
        rig_peer_up(rig, 1);
        if (i) rig_refuse(rig, 1, LEAT_REP_ATTACH, reasons[i]);
        leat_primary_log_status(rig->log, &status);
        trace("%s: %d", leat_err_name(reasons[i]), status.below_min);
        rig_pass(rig, REP_COMING_US - 1);
        leat_primary_log_status(rig->log, &status);
        trace(" %d", status.below_min);
        rig_pass(rig, 1);
        leat_primary_log_status(rig->log, &status);
        trace(" %d\n", status.below_min);
        rig_free(rig);
    }
    TRACE_IS("OK: 0 0 1\n"
             "STARTING: 0 0 1\n"
             "AGAIN: 0 0 1\n"
             "TIMEOUT: 0 0 1\n"
             "STALE_EPOCH: 1 1 1\n"
             "NO_MEMORY: 1 1 1\n");
    struct rig *rig = rig_logged(1);
    leat_primary_log_status(rig->log, &status);
    assert_false(status.below_min);
    rig_peer_down(rig, 1);
    rig_peer_up(rig, 1);
    leat_primary_log_status(rig->log, &status);
    assert_true(status.below_min); /* it was there before */
    rig_free(rig);
    rig = rig_logged(0);
    struct leat_rep_node node = rig_node(1);
    leat_primary_node_set(rig->primary, &node);
    rig_peer_up(rig, 1);
    rig_peer_down(rig, 1);
    rig_peer_up(rig, 1);
    leat_primary_log_status(rig->log, &status);
    assert_true(status.below_min); /* its link has been lost before */
    rig_free(rig);
}

/* Goal: whole copies are listed before copies that are being made, in whatever order they were added. */
static void whole_copies_are_told_of_first(void **state)
{
    (void)state;
    struct rig *rig = rig_new(4);
    rig->quiet = true;
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 5);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    for (unsigned i = 1; i <= 4; i++)
        rig_answer_at(rig, i, LEAT_REP_OPEN, 10 * i, 4096);
    rig_commit(rig, 0, 0, 128);
    struct rep_set *set = rep_set_find(rig->log, 0);
    trace_begin();
    for (unsigned parts = 0; parts < 16; parts++) {
        struct leat_rep_places places;
        for (unsigned i = 0; i < 4; i++)
            set->copies[i]->incomplete = parts >> i & 1;
        assert_true(leat_primary_log_places(rig->log, &places));
        trace("%u of %u:", places.whole, places.count);
        for (unsigned i = 0; i < places.count; i++)
            trace(" n%u", rig_node_of(places.nodes[i]));
        trace("\n");
    }
    TRACE_IS("4 of 4: n1 n2 n3 n4\n"
             "3 of 4: n2 n3 n4 n1\n"
             "3 of 4: n1 n3 n4 n2\n"
             "2 of 4: n3 n4 n1 n2\n"
             "3 of 4: n1 n2 n4 n3\n"
             "2 of 4: n2 n4 n3 n1\n"
             "2 of 4: n1 n4 n3 n2\n"
             "1 of 4: n4 n2 n3 n1\n"
             "3 of 4: n1 n2 n3 n4\n"
             "2 of 4: n2 n3 n1 n4\n"
             "2 of 4: n1 n3 n2 n4\n"
             "1 of 4: n3 n2 n1 n4\n"
             "2 of 4: n1 n2 n3 n4\n"
             "1 of 4: n2 n1 n3 n4\n"
             "1 of 4: n1 n2 n3 n4\n"
             "0 of 4: n1 n2 n3 n4\n");
    for (unsigned i = 0; i < 4; i++)
        set->copies[i]->incomplete = false;
    rig_free(rig);
}

/* ---- copies that lie together ---- */

static void host_set(struct rig *rig, unsigned number, const char *host)
{
    struct leat_rep_node node = rig_node(number);
    snprintf(node.host, sizeof node.host, "%s", host);
    leat_primary_node_set(rig->primary, &node);
}

/* Goal: when a node comes that breaks fewer placement preferences, a closed segment gets a copy on that node, and gives
 * up its worst placed copy once the new copy is whole; a head is to be rolled, once. */
static void copy_that_lies_badly_moves_when_a_node_comes(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(2);
    host_set(rig, 1, "h0"); /* with the owner */
    begun(rig, 0);
    begun(rig, 1);
    (void)leat_primary_opening(rig->log);
    leat_primary_opened(rig->log, LEAT_OK);
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_pass(rig, 100 * 1000);
    trace_begin();
    told(rig, "no better place");
    assert_false(rig->store_port.roll_wanted(rig->store_port.ctx, &rig->segs[1]));
    rig_node_up(rig, 3);
    rig->quiet = false;
    assert_true(rig->store_port.roll_wanted(rig->store_port.ctx, &rig->segs[1]));
    assert_false(rig->store_port.roll_wanted(rig->store_port.ctx, &rig->segs[1]));
    rig_pass(rig, 40 * 1000);
    TRACE_IS("no better place\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 2\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places yes: n2 n1\n"
             "  s0 closed misplaced 2 of 2: n2 closed 128 n1 closed 128\n"
             "  s1 misplaced 2 of 2: n2 128 n1 128\n"
             "n3 AUDIT from0 all, 10 s\n"
             "n3 OPEN s0 h0 v1 d1 part to 1000/2000, 2 s\n");
    rig_answer_at(rig, 3, LEAT_REP_OPEN, 30, 0x10000);
    rig_pass(rig, 20 * 1000);
    rig_wrote(rig, 3, LEAT_OK);
    TRACE_IS("n3 write @65536+128 from staging\n"
             "n3 CLOSE s0 h30 v1 d1 part 128:128 to 1000/2000, 2 s\n");
    rig_answer(rig, 3, LEAT_REP_CLOSE);
    TRACE_IS("n1 DROP s0 h10 v1 d1 to 1000/2000, 2 s\n");
    rig_answer(rig, 1, LEAT_REP_DROP);
    rig_audits_answer(rig);
    told(rig, "moved");
    rig_pass(rig, 5 * 1000 * 1000);
    TRACE_IS("moved\n"
             "  logs 1 lacking 0 below 0 held 0, segments lacking 0 misplaced 1\n"
             "  v1 3 of 3, at least 2, lacking 0\n"
             "  places yes: n2 n1\n"
             "  s0 closed 2 of 2: n2 closed 128 n3 closed 128\n"
             "  s1 misplaced 2 of 2: n2 128 n1 128\n");
    rig_free(rig);
}

static void place_set(struct rig *rig, unsigned number, const char *host, const char *rack)
{
    struct leat_rep_node node = rig_node(number);
    snprintf(node.host, sizeof node.host, "%s", host);
    snprintf(node.rack, sizeof node.rack, "%s", rack);
    leat_primary_node_set(rig->primary, &node);
}

/* Goal: a better node may share its host with the copy that the node would replace, but not with another copy. */
static void better_node_may_share_with_the_copy_that_goes(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(2);
    snprintf(rig->primary->options.self.rack, sizeof rig->primary->options.self.rack, "r");
    place_set(rig, 1, "h1", "r"); /* in the owner's rack */
    begun(rig, 0);
    rig_node_up(rig, 3);
    place_set(rig, 3, "h1", "q");
    rep_place_judge(rep_set_find(rig->log, 0));
    assert_true(rig->store_port.roll_wanted(rig->store_port.ctx, &rig->segs[0]));
    place_set(rig, 3, "h2", "q"); /* with the other copy it may not */
    rep_set_find(rig->log, 0)->rolled_places = 0;
    assert_false(rig->store_port.roll_wanted(rig->store_port.ctx, &rig->segs[0]));
    trace_begin();
    rig_free(rig);
}

/* Goal: where all that would be better refuse, they are asked again after four seconds. */
static void better_place_that_refuses_is_asked_again(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(2);
    host_set(rig, 1, "h0");
    begun(rig, 0);
    begun(rig, 1);
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_node_up(rig, 3);
    rig_pass(rig, 40 * 1000);
    rig_audits_answer(rig);
    trace_begin();
    for (unsigned i = 0; i < 3; i++) {
        rig_refuse(rig, 3, LEAT_REP_OPEN, LEAT_E_AGAIN);
        uint64_t from_us = rig->now_us;
        while (rig->call_count == 0 && rig->now_us < from_us + 20 * 1000 * 1000)
            rig_pass(rig, 1000);
        trace("after %llu ms\n", (unsigned long long)(rig->now_us - from_us) / 1000);
    }
    TRACE_IS("after 3960 ms\n"
             "after 4000 ms\n"
             "after 4000 ms\n");
    rig_free(rig);
}

/* Goal: heads of one log are rolled three times for better places until the nodes change again; of all logs as many as
 * twenty in a second. */
static void heads_are_rolled_a_few_times(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(2);
    host_set(rig, 1, "h0");
    begun(rig, 0);
    rig_node_up(rig, 3);
    struct rep_set *set = rep_set_find(rig->log, 0);
    for (unsigned change = 0; change < 2; change++) {
        unsigned rolls = 0;
        while (rolls < 10) {
            set->rolled_places = set->places = 0; /* as if it were the next head */
            if (!rep_better_roll(rig->log, &rig->segs[0])) break;
            rolls++;
        }
        assert_int_equal(rolls, REP_ROLLS_MAX);
        rep_place_nodes_changed(rig->primary);
    }
    rig->now_us += 10 * 1000 * 1000;
    for (unsigned second = 0; second < 2; second++) {
        unsigned rolls = 0;
        while (rolls < 100) {
            set->rolled_places = set->places = rig->log->rolls = 0;
            if (!rep_better_roll(rig->log, &rig->segs[0])) break;
            rolls++;
        }
        assert_int_equal(rolls, REP_ROLLS_AHEAD_US / REP_ROLL_US);
        rig->now_us += REP_ROLLS_AHEAD_US;
    }
    for (unsigned i = 0; i < 6; i++) {
        set->rolled_places = set->places = rig->log->rolls = 0;
        set->misplaced = i != 0;
        set->state = i == 1 ? REP_SET_CLOSED : REP_SET_STARTED;
        set->dropping = i == 2;
        rig->log->releasing = i == 3;
        if (i == 4) set->rolled_places = rig->primary->places;
        if (i == 5) set->places = rig->primary->places;
        assert_false(rep_better_roll(rig->log, &rig->segs[0]));
    }
    set->rolled_places = set->places = 0;
    set->state = REP_SET_STARTED;
    set->dropping = rig->log->releasing = false;
    assert_true(rep_better_roll(rig->log, &rig->segs[0]));
    trace_begin();
    rig_free(rig);
}

/* Goal: a closed segment's copy that lies badly goes only when nothing at all is under way with the segment. */
static void surplus_waits_until_a_segment_is_still(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(2);
    host_set(rig, 1, "h0");
    begun(rig, 0);
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    struct rep_set *set = rep_set_find(rig->log, 0);
    struct leat_store_req any;
    rig->log->options.copies = rig->log->options.min_copies = 2; /* one is too many now */
    rig->quiet = false;
    for (unsigned i = 0; i <= 10; i++)
        for (unsigned k = 0; k < 2; k++) {
            struct rep_copy *copy = set->copies[k];
            trace_begin();
            set->state = i != 0 ? REP_SET_CLOSED : REP_SET_STARTED;
            set->dropping = i == 1;
            set->close = i == 2 ? &any : NULL;
            set->evict = i == 3 ? &any : NULL;
            rig->segs[0].integrity = i == 4 ? LEAT_INTEGRITY_CORRUPT : LEAT_INTEGRITY_OK;
            copy->state = i == 5 ? REP_COPY_OPEN : REP_COPY_CLOSED;
            copy->incomplete = i == 6;
            copy->found = i == 7;
            copy->writes = i == 8;
            copy->batched = i == 9;
            if (i == 10 && k == 0) continue;
            rep_set_surplus(set);
            copy->state = REP_COPY_CLOSED;
            copy->incomplete = copy->found = copy->batched = false;
            copy->writes = 0;
            if (i < 10)
                TRACE_IS("");
            else
                TRACE_IS("n1 DROP s0 h10 v1 d1 to 1000/2000, 2 s\n");
        }
    rig_free(rig);
}

/* Goal: how much two nodes share. */
static void what_nodes_share_is_their_host_or_rack(void **state)
{
    (void)state;
    static const struct {
        const char *host, *rack;
        bool draining;
    } nodes[] = {{"a", "", false},  {"a", "r", false}, {"b", "r", false}, {"c", "r", false},
                 {"d", "q", false}, {"e", "", false},  {"a", "", true}};
    for (unsigned i = 0; i < sizeof nodes / sizeof *nodes; i++)
        for (unsigned k = 0; k < sizeof nodes / sizeof *nodes; k++) {
            struct leat_rep_node a = {.draining = nodes[i].draining},
                                 b = {.draining = nodes[k].draining};
            snprintf(a.host, sizeof a.host, "%s", nodes[i].host);
            snprintf(a.rack, sizeof a.rack, "%s", nodes[i].rack);
            snprintf(b.host, sizeof b.host, "%s", nodes[k].host);
            snprintf(b.rack, sizeof b.rack, "%s", nodes[k].rack);
            trace("%u%s%s", rep_place_shared(&a, &b), rep_place_differs(&a, &b) ? "" : "=",
                  k + 1 < sizeof nodes / sizeof *nodes ? " " : "\n");
        }
    TRACE_IS("2= 2 0 0 0 0 2\n"
             "2 2= 1 1 0 0 2\n"
             "0 1 2= 1 0 0 0\n"
             "0 1 1 2= 0 0 0\n"
             "0 0 0 0 2= 0 0\n"
             "0 0 0 0 0 2= 0\n"
             "2 2 0 0 0 0 2=\n");
}

/* Goal: a copy goes to the least loaded of five random nodes among the nodes that share least; no node is drawn twice,
 * and no draining, refusing or unattached node is drawn. */
static void place_of_a_copy_is_the_least_loaded_of_the_best(void **state)
{
    (void)state;
    struct rig *rig = rig_logged(6);
    rig->random_step = 1;
    struct rep_set *set = rep_set_new(rig->log, (struct leat_segment_id){9}, RIG_CAPACITY);
    for (unsigned i = 1; i <= 6; i++)
        rig_peer(rig, i)->load_bytes = 1000 * 1000 * i;
    host_set(rig, 1, "h0");
    snprintf(rig_peer(rig, 2)->node.rack, sizeof rig_peer(rig, 2)->node.rack, "r");
    snprintf(rig->primary->options.self.rack, sizeof rig->primary->options.self.rack, "r");
    trace("n%u", rig_node_of(rep_place_choose(set)->node.number));
    rig_peer(rig, 3)->open_count = 100;
    trace(" n%u", rig_node_of(rep_place_choose(set)->node.number));
    rig_peer(rig, 4)->node.draining = true;
    trace(" n%u", rig_node_of(rep_place_choose(set)->node.number));
    set->refused[0] |= 1u << rig_number(5);
    trace(" n%u", rig_node_of(rep_place_choose(set)->node.number));
    rig_peer_down(rig, 6);
    trace(" n%u", rig_node_of(rep_place_choose(set)->node.number));
    set->refused[rig_number(3) / 64] |= UINT64_C(1) << rig_number(3) % 64;
    trace(" n%u", rig_node_of(rep_place_choose(set)->node.number));
    assert_non_null(rep_copy_new(set, rig_peer(rig, 2)));
    trace(" n%u", rig_node_of(rep_place_choose(set)->node.number));
    rig_peer_down(rig, 1);
    trace(" %d\n", rep_place_choose(set) != NULL);
    TRACE_IS("n3 n4 n3 n3 n3 n2 n1 0\n");
    rep_place_judge(set);
    assert_true(set->misplaced);
    rig->primary->options.self.rack[0] = '\0';
    rep_place_judge(set);
    assert_false(set->misplaced);
    assert_false(rep_place_may_come(rig->primary));
    rig_peer_up(rig, 1);
    assert_true(rep_place_may_come(rig->primary));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(each_step_of_a_log_is_told),
        TRACE_TEST(newest_segment_is_told_of_while_older_ones_are_active),
        TRACE_TEST(loss_is_told_until_it_is_made_good),
        TRACE_TEST(nodes_that_are_coming_are_not_missing),
        TRACE_TEST(whole_copies_are_told_of_first),
        TRACE_TEST(copy_that_lies_badly_moves_when_a_node_comes),
        TRACE_TEST(better_node_may_share_with_the_copy_that_goes),
        TRACE_TEST(better_place_that_refuses_is_asked_again),
        TRACE_TEST(heads_are_rolled_a_few_times),
        TRACE_TEST(surplus_waits_until_a_segment_is_still),
        TRACE_TEST(what_nodes_share_is_their_host_or_rack),
        TRACE_TEST(place_of_a_copy_is_the_least_loaded_of_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
