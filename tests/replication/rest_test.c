/* SPDX-License-Identifier: Apache-2.0 */
/* What is waited for, and for how long; what is there before and after; what is said. Each condition by itself, at a
 * primary alone. */
#include "tests/replication/case_rig.h"

#include "base/node_log.h"

static uint64_t second_us;
static leat_err second_rc;

static void node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx, (void)level;
    trace("%s\n", line);
}

/* ---- copies that are needed ---- */

/* Goal: a commit that waits for more copies than there are is done when so many are not needed any more. */
static void commit_goes_on_when_fewer_copies_are_needed(void **state)
{
    (void)state;
    begun();
    leat_primary_log_min_copies_set(rig->log, 3);
    rig_mails(rig);
    copy->incomplete = true;
    set->state = REP_SET_RESERVED; /* nothing is asked of it */
    rig_commit(rig, 0, 128, 192);
    set->state = REP_SET_RESERVED;
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    TRACE_IS("n1 write @4224+64 from s0+128\n"
             "n2 write @8320+64 from s0+128\n");
    leat_primary_log_min_copies_set(rig->log, 3);
    assert_int_equal(rig->mail_count, 0); /* as it is */
    leat_primary_log_min_copies_set(rig->log, 2);
    rig_mails(rig);
    TRACE_IS("log COMMIT s0: OK\n");
}

static void reserving(void)
{
    size_t used = trace_used;
    rig = rig_new(1);
    rig->quiet = true;
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    set = rep_set_find(rig->log, 0);
    copy = set->copies[0];
    owned = rig->log;
    rig->quiet = false;
    trace_text[trace_used = used] = '\0';
}

static void reserve(void)
{
    rep_set_step(set);
    trace("-> %s%s\n", set->reserve ? "waits" : "answered", set->dropping ? ", undone" : "");
}

static void late(void)
{
    set->since_us = rig->now_us - rig->primary->options.open_wait_us;
}

/* Two of three copies are there, of the first segment under a new owner; the third has not answered. */
static void taken_over(uint64_t us)
{
    set->id.v = 1;
    set->since_us = rig->now_us - us;
    owned->options.min_copies = 1;
}

/* Goal: a segment is there when enough copies are; more of them, and too few, are waited for as long as is allowed. */
static void reserve_waits_for_copies(void **state)
{
    (void)state;
    CASE_AS_IT_IS(reserving, reserve);
    CASE(reserving, reserve, late());
    CASE(reserving, reserve, late(), set->since_us++);
    CASE(reserving, reserve, copy->state = REP_COPY_OPEN);
    CASE(reserving, reserve, copy->state = REP_COPY_OPEN, rig_peer(rig, 1)->state = REP_PEER_DOWN);
    CASE(reserving, reserve, rep_copy_remove(copy), rig_peer(rig, 1)->state = REP_PEER_UP);
    CASE(reserving, reserve, rep_copy_remove(copy), rig_peer(rig, 1)->node.draining = true);
    CASE(reserving, reserve, rep_copy_remove(copy), rig_peer(rig, 1)->node.draining = true, late());
    CASE(reserving, reserve, set->id.v = 1, set->since_us = rig->now_us - REP_LAST_COPY_US);
    CASE(reserving, reserve, taken_over(REP_LAST_COPY_US));
    CASE(reserving, reserve, taken_over(REP_LAST_COPY_US - 1));
    CASE(reserving, reserve, taken_over(REP_LAST_COPY_US), owned->opened = true);
    CASE(reserving, reserve, taken_over(REP_LAST_COPY_US), set->id.v = 0);
    CASE(reserving, reserve, set->local_rc = LEAT_E_DISK);
    CASE(reserving, reserve, set->local_state = REP_LOCAL_IDLE);
    TRACE_IS(
        "(void)0: -> waits\n"
        "late(): -> waits, undone\n"
        "late(), set->since_us++: -> waits\n"
        "copy->state = REP_COPY_OPEN: log RESERVE s0: OK\n"
        "-> answered\n"
        "copy->state = REP_COPY_OPEN, rig_peer(rig, 1)->state = REP_PEER_DOWN: log RESERVE s0: OK\n"
        "-> answered\n"
        "rep_copy_remove(copy), rig_peer(rig, 1)->state = REP_PEER_UP: -> waits\n"
        "rep_copy_remove(copy), rig_peer(rig, 1)->node.draining = true: -> waits\n"
        "rep_copy_remove(copy), rig_peer(rig, 1)->node.draining = true, late(): -> waits, undone\n"
        "set->id.v = 1, set->since_us = rig->now_us - REP_LAST_COPY_US: -> waits\n"
        "taken_over(REP_LAST_COPY_US): log RESERVE s0: OK\n"
        "-> answered\n"
        "taken_over(REP_LAST_COPY_US - 1): -> waits\n"
        "taken_over(REP_LAST_COPY_US), owned->opened = true: -> waits\n"
        "taken_over(REP_LAST_COPY_US), set->id.v = 0: -> waits\n"
        "set->local_rc = LEAT_E_DISK: -> waits, undone\n"
        "set->local_state = REP_LOCAL_IDLE: -> waits\n");
}

/* ---- before and after ---- */

/* Goal: a closed segment that is being dropped does not count as badly placed. */
static void segment_that_goes_is_none_that_lies_badly(void **state)
{
    (void)state;
    begun();
    rig->quiet = true;
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    set->misplaced = true;
    rep_place_note(set);
    assert_int_equal(rig->primary->crowded_count, 1);
    rep_copy_remove(set->copies[0]);
    rep_copy_remove(set->copies[0]);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    set->misplaced = true;
    rep_place_note(set);
    assert_int_equal(rig->primary->crowded_count, 1);
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_DROP, .seg = &rig->segs[0]});
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    assert_null(rep_set_find(rig->log, 0));
    assert_int_equal(rig->primary->crowded_count, 0);
    assert_true(leat_list_empty(&rig->primary->crowded));
    trace_begin();
}

static void short_of_copies(void)
{
    begun();
    rig->quiet = true;
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rep_copy_lost(set->copies[0]);
    rep_copy_lost(set->copies[0]);
    assert_false(leat_list_empty(&rig->primary->deficit));
    for (unsigned i = 1; i <= 3; i++)
        rig_peer(rig, i)->node.draining = true;
}

/* Goal: a segment that is being dropped is in no list of work. */
static void what_goes_has_nothing_to_be_done(void **state)
{
    (void)state;
    short_of_copies();
    rig_ask(rig, (struct leat_store_req){.kind = LEAT_STORE_DROP, .seg = &rig->segs[0]});
    rig_stored(rig, LEAT_STORE_DROP, LEAT_OK);
    assert_null(rep_set_find(rig->log, 0));
    assert_true(leat_list_empty(&rig->primary->deficit));
    short_of_copies();
    leat_list_push_back(&rig->primary->versions, &owned->version_link);
    rep_wait(owned);
    rep_mark_dirty(owned);
    leat_primary_log_destroy(&rig->log);
    assert_true(leat_list_empty(&rig->primary->deficit));
    assert_true(leat_list_empty(&rig->primary->versions));
    assert_true(leat_list_empty(&rig->primary->waits));
    assert_true(leat_list_empty(&rig->primary->dirty));
    assert_true(leat_list_empty(&rig->primary->logs));
    trace_begin();
}

/* Goal: one message to the own actor is enough for all logs that need a look. */
static void mail_to_oneself_is_one(void **state)
{
    (void)state;
    begun();
    rig_mails(rig);
    rep_mark_dirty(owned);
    leat_list_remove(&owned->dirty_link);
    rep_mark_dirty(owned);
    assert_int_equal(rig->mail_count, 1);
    rig->mails[0]->deliver(rig, rig->mails[0]);
    rep_mark_dirty(owned);
    assert_int_equal(rig->mail_count, 2);
    trace_begin();
}

static void log_step(void)
{
    calm();
    rep_log_step(owned);
    trace("-> %s", leat_list_empty(&owned->waits_link) ? "done" : "waits");
    armed_trace();
}

/* Goal: a log is looked at again where time alone may change something: a version is held, a copy is lacking. */
static void log_waits_for_time(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, log_step);
    CASE(begun, log_step, owned->need = 2, owned->version_busy = true);
    CASE(begun, log_step, owned->need = 2, owned->opened = false);
    CASE(begun, log_step, rig_peer(rig, 3)->node.draining = true, owned->options.copies = 4);
    CASE(begun, log_step, owned->releasing = true);
    TRACE_IS("(void)0: -> done\n"
             "owned->need = 2, owned->version_busy = true: -> waits, again in 20000 us\n"
             "owned->need = 2, owned->opened = false: -> done\n"
             "rig_peer(rig, 3)->node.draining = true, owned->options.copies = 4: -> waits, again "
             "in 2000 us\n"
             "owned->releasing = true: -> done\n");
}

static void settled(void)
{
    for (unsigned i = 0; i < 2; i++)
        rep_set_settle(set);
    trace("-> %llu segments, %s\n", (unsigned long long)rig->primary->accounts.segments,
          leat_list_empty(&set->deficit) ? "full" : "lacks copies");
}

static void closed_one(void)
{
    begun();
    set->state = REP_SET_CLOSED;
    set->copies[0]->state = set->copies[1]->state = REP_COPY_CLOSED;
}

/* Goal: a segment is counted when it is on as many nodes as wanted for the first time. */
static void segment_is_counted_once(void **state)
{
    (void)state;
    CASE_AS_IT_IS(closed_one, settled);
    CASE(closed_one, settled, rep_copy_remove(copy));
    CASE(closed_one, settled, set->state = REP_SET_STARTED);
    TRACE_IS("(void)0: -> 1 segments, full\n"
             "rep_copy_remove(copy): -> 0 segments, lacks copies\n"
             "set->state = REP_SET_STARTED: -> 0 segments, full\n");
}

/* Goal: whether other things are in a head's way is the store's to say, where it says anything. */
static void store_says_what_is_in_the_way(void **state)
{
    (void)state;
    begun();
    assert_null(rig->primary->options.store.in_the_way);
    assert_false(rig->store_port.in_the_way(rig->store_port.ctx, set->seg));
    rig->primary->options.store.in_the_way = rig_safe;
    assert_true(rig->store_port.in_the_way(rig->store_port.ctx, set->seg));
    trace_begin();
}

static void send_versions(void)
{
    calm();
    leat_list_push_back(&rig->primary->versions, &owned->version_link);
    rep_versions_send(rig->primary);
    trace("-> %s%s", owned->version_busy ? "told" : "not told",
          leat_list_empty(&owned->waits_link) ? "" : ", waits");
    armed_trace();
}

/* Goal: a generation that is no longer ready to be sent when its turn comes waits. */
static void version_that_is_not_ready_waits(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, send_versions);
    CASE(begun, send_versions, set->stamped = 0);
    CASE(begun, send_versions, rig->primary->versions_busy = true);
    CASE(begun, send_versions, rig->primary->versions_retry_us = rig->now_us);
    CASE(begun, send_versions, rig->primary->versions_retry_us = rig->now_us + 1);
    TRACE_IS(
        "(void)0: versions 1/2/3=e5v1\n"
        "-> told\n"
        "set->stamped = 0: -> not told, waits, again in 20000 us\n"
        "rig->primary->versions_busy = true: -> not told\n"
        "rig->primary->versions_retry_us = rig->now_us: versions 1/2/3=e5v1\n"
        "-> told\n"
        "rig->primary->versions_retry_us = rig->now_us + 1: -> not told, again in 200000 us\n");
}

static void came(void)
{
    struct rep_peer *peer = rig_peer(rig, 1);
    rep_peer_came(peer);
    trace("-> took %llu\n", (unsigned long long)peer->took_us);
}

static void left(uint64_t left_us, uint64_t now_us)
{
    struct rep_peer *peer = rig_peer(rig, 1);
    peer->took_us = peer->took_at_us = 0;
    peer->left_us = left_us;
    peer->left_after_us = 7000;
    rig->now_us = now_us;
}

/* Goal: a backup that was given up and comes back at once counts as slow for that time. */
static void who_is_back_at_once_was_slow(void **state)
{
    (void)state;
    CASE(begun, came, left(1000, 1000 + 499999));
    CASE(begun, came, left(1000, 1000 + 500000));
    CASE(begun, came, left(0, 1000));
    TRACE_IS("left(1000, 1000 + 499999): -> took 7000\n"
             "left(1000, 1000 + 500000): -> took 0\n"
             "left(0, 1000): -> took 0\n");
}

/* Goal: bytes that are being read for a copy when its log goes are not used. */
static void piece_that_is_read_for_a_log_that_went_is_none(void **state)
{
    (void)state;
    short_of_copies();
    rig_peer(rig, 1)->node.draining = false;
    rig->segs[0].buffer = NULL;
    rig_pass(rig, 2 * rig->primary->options.grace_us);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 11, 4096);
    rig_pass(rig, 1000 * 1000);
    assert_int_equal(rig->io_count, 1);
    assert_ptr_equal(rig->primary->read_set, set);
    leat_primary_log_destroy(&rig->log);
    assert_null(rig->primary->read_set);
    rig->ios[0]->done_bytes = 128;
    rig->ios[0]->on_done(rig->ios[0]);
    assert_false(rig->primary->reading);
    assert_int_equal(rig->write_count, 0);
    trace_begin();
}

static void chosen(void)
{
    for (uint64_t i = 0; i < 6; i++) {
        rig->random = i;
        const struct rep_peer *peer = rep_place_choose(set);
        trace(" %s", peer ? peer->node.name : "-");
    }
    trace("\n");
}

/* A log without copies; node 2 is on this host, the others are elsewhere. */
static void one_here(void)
{
    size_t used = trace_used;
    rig = rig_new(4);
    rig->quiet = true;
    rig_log_new(rig, LEAT_DURABILITY_MEMORY, 3);
    set = rep_set_new(rig->log, (struct leat_segment_id){0}, RIG_CAPACITY);
    memcpy(rig_peer(rig, 2)->node.host, "h0", 3);
    rig->quiet = false;
    trace_text[trace_used = used] = '\0';
}

/* Goal: a new copy goes to a node that shares least, also if a node that shares more comes earlier in the list. */
static void node_is_chosen_of_those_that_share_least(void **state)
{
    (void)state;
    CASE_AS_IT_IS(one_here, chosen);
    CASE(one_here, chosen, memcpy(rig_peer(rig, 1)->node.host, "h0", 3));
    CASE(one_here, chosen, rig_peer(rig, 3)->load_bytes = 1);
    CASE(one_here, chosen, rig_peer(rig, 3)->state = rig_peer(rig, 4)->state = REP_PEER_UP);
    CASE(one_here, chosen, rig_peer(rig, 1)->node.draining = true);
    TRACE_IS("(void)0:  n1 n3 n4 n1 n3 n4\n"
             "memcpy(rig_peer(rig, 1)->node.host, \"h0\", 3):  n3 n4 n3 n4 n3 n4\n"
             "rig_peer(rig, 3)->load_bytes = 1:  n1 n3 n4 n1 n3 n4\n"
             "rig_peer(rig, 3)->state = rig_peer(rig, 4)->state = REP_PEER_UP:  n1 n1 n1 n1 n1 n1\n"
             "rig_peer(rig, 1)->node.draining = true:  n3 n4 n3 n4 n3 n4\n");
}

static void wanted(void)
{
    trace("-> %d\n", rep_head_copy_wanted(owned, set->seg));
}

/* Hibernated, and since then one copy less. */
static void hibernated_without(uint64_t us)
{
    set->state = REP_SET_HIBERNATING;
    rep_copy_remove(copy);
    set->lost_us = rig->now_us - us;
}

/* Goal: a head is wanted while a copy of it is being made, also where there are enough. */
static void head_is_wanted_while_a_copy_is_made(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, wanted);
    CASE(begun, wanted, copy->incomplete = true);
    CASE(begun, wanted, copy->state = REP_COPY_OPENING);
    CASE(begun, wanted, hibernated_without(rig->primary->options.grace_none_us));
    CASE(begun, wanted, hibernated_without(rig->primary->options.grace_none_us - 1));
    CASE(begun, wanted, copy->incomplete = true, set->state = REP_SET_CLOSED);
    CASE(begun, wanted, copy->incomplete = true, set->dropping = true);
    CASE(begun, wanted, copy->incomplete = true, set->state = REP_SET_RESERVED);
    CASE(begun, wanted, copy->incomplete = true, owned->releasing = true);
    CASE(begun, wanted, copy->incomplete = true, owned->fenced = true);
    CASE(begun, wanted, copy->incomplete = true, set->seg->copies_pointer = NULL);
    TRACE_IS("(void)0: -> 0\n"
             "copy->incomplete = true: -> 1\n"
             "copy->state = REP_COPY_OPENING: -> 1\n"
             "hibernated_without(rig->primary->options.grace_none_us): -> 1\n"
             "hibernated_without(rig->primary->options.grace_none_us - 1): -> 0\n"
             "copy->incomplete = true, set->state = REP_SET_CLOSED: -> 0\n"
             "copy->incomplete = true, set->dropping = true: -> 0\n"
             "copy->incomplete = true, set->state = REP_SET_RESERVED: -> 0\n"
             "copy->incomplete = true, owned->releasing = true: -> 0\n"
             "copy->incomplete = true, owned->fenced = true: -> 0\n"
             "copy->incomplete = true, set->seg->copies_pointer = NULL: -> 0\n");
}

/* Goal: in one tick so many segments are looked at for a better place, and no more. */
static void few_segments_are_looked_at_in_a_tick(void **state)
{
    (void)state;
    begun();
    calm();
    leat_list_push_back(&rig->primary->crowded, &set->crowded); /* as if there were more */
    rig->primary->crowded_count = rig->primary->crowded_left = 3 * REP_CROWDED_LOOKS;
    set->places = rig->primary->places;
    assert_null(rep_better_begin(rig->primary, rig->now_us));
    assert_int_equal(rig->primary->crowded_left, 2 * REP_CROWDED_LOOKS);
    rig->primary->crowded_count = 4;
    assert_null(rep_better_begin(rig->primary, rig->now_us));
    assert_int_equal(rig->primary->crowded_left, 0);
}

/* Goal: a closed segment for whose copy there is no memory is copied later. */
static void segment_without_memory_is_copied_later(void **state)
{
    (void)state;
    begun();
    rig->quiet = true;
    rig_end(rig, LEAT_STORE_CLOSE, 0, 128);
    rig_stored(rig, LEAT_STORE_CLOSE, LEAT_OK);
    rig_answer(rig, 1, LEAT_REP_CLOSE);
    rig_answer(rig, 2, LEAT_REP_CLOSE);
    rep_copy_lost(set->copies[0]);
    calm();
    rig->quiet = false;
    for (uint64_t n = 1; n <= 3; n++) {
        uint64_t us = rig->now_us + rig->primary->options.grace_us;
        while (n == 2 && !leat_list_empty(&rig->primary->ops_free))
            leat_mem_free(
                LEAT_CONTAINER(leat_list_pop_front(&rig->primary->ops_free), struct rep_op, link));
        leat_mem_fail_at(n);
        rep_recopy_step(rig->primary, us);
        leat_mem_fail_at(0);
        trace("%llu: %u copies, %s\n", (unsigned long long)n, set->copy_count,
              rig->primary->recopy ? "copied" : "later");
    }
    TRACE_IS("log CLOSE s0: OK\n"
             "1: 1 copies, later\n"
             "2: 1 copies, later\n"
             "n1 OPEN s0 h0 v1 d1 part to 1000/2000, 2 s\n"
             "3: 2 copies, copied\n");
}

static void silent(void)
{
    calm();
    struct rep_peer *left = rep_silence_shed(rig->primary, rig->now_us);
    if (left) rep_peer_lost(left);
    trace(".\n");
}

static void missed(uint64_t heard_ms, uint64_t wrote_ms)
{
    struct rep_peer *peer = rig_peer(rig, 1);
    peer->missed = 4;
    peer->heard_us = rig->now_us - heard_ms * 1000;
    peer->wrote_us = rig->now_us - wrote_ms * 1000;
    peer->took_us = 0;
}

static void written_long_ago(void)
{
    begun();
    calm();
    rig->primary->options.quiet_us = 300 * 1000;
    set->target = 192;
    rig->quiet = true;
    rep_copy_write(copy);
    rig->quiet = false;
    rig->now_us += 400 * 1000;
}

/* Goal: the node log says why a backup is given up: for a missing answer, or for writes that do not end. */
static void why_a_backup_is_left_is_said(void **state)
{
    (void)state;
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_DEBUG);
    CASE_AS_IT_IS(written_long_ago, silent);
    CASE(written_long_ago, silent, rig_peer(rig, 1)->missed = 4);
    CASE(written_long_ago, silent, rig_peer(rig, 1)->missed = 3);
    CASE(written_long_ago, silent, rig->now_us += 1600 * 1000);
    CASE(written_long_ago, silent, missed(400, 200));
    CASE(written_long_ago, silent, missed(200, 400));
    CASE(written_long_ago, silent, missed(300, 400));
    CASE(written_long_ago, silent, missed(350, 400));
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    TRACE_IS("(void)0: .\n"
             "rig_peer(rig, 1)->missed = 4: replication: node n1 has not answered for 400 ms, in "
             "which others have: it is left\n"
             "cut n1\n"
             "detach n1\n"
             ".\n"
             "rig_peer(rig, 1)->missed = 3: .\n"
             "rig->now_us += 1600 * 1000: replication: node n1 has not taken a write for 2000 ms: "
             "it is left\n"
             "cut n1\n"
             "detach n1\n"
             ".\n"
             "missed(400, 200): .\n"
             "missed(200, 400): .\n"
             "missed(300, 400): replication: node n1 has not answered for 300 ms, in which others "
             "have: it is left\n"
             "cut n1\n"
             "detach n1\n"
             ".\n"
             "missed(350, 400): replication: node n1 has not answered for 350 ms, in which others "
             "have: it is left\n"
             "cut n1\n"
             "detach n1\n"
             ".\n");
}

static void refuses(void)
{
    for (unsigned i = 0; i < 2; i++) {
        if (i == 1) rig->now_us += second_us;
        rig->quiet = true;
        leat_primary_peer_up(rig->primary, rig_number(1));
        rig_answer_bytes(rig, 1, LEAT_REP_ATTACH, i ? second_rc : LEAT_E_AGAIN, NULL, 0);
        rig_peer(rig, 1)->retry_us = 0;
        calm();
    }
    trace(".\n");
}

static void alone(void)
{
    size_t used = trace_used;
    rig = rig_new(0);
    rig->now_us += 100 * 1000 * 1000;
    struct leat_rep_node node = rig_node(1);
    leat_primary_node_set(rig->primary, &node);
    trace_text[trace_used = used] = '\0';
}

/* Goal: the reason why a node can't be attached is logged once, again after a while, and when the reason changes. */
static void refusal_is_said_once_in_a_while(void **state)
{
    (void)state;
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_DEBUG);
    second_rc = LEAT_E_AGAIN;
    CASE(alone, refuses, second_us = REP_REFUSAL_TELL_US - 1);
    CASE(alone, refuses, second_us = REP_REFUSAL_TELL_US);
    CASE(alone, refuses, second_us = 1, second_rc = LEAT_E_STARTING);
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    TRACE_IS(
        "second_us = REP_REFUSAL_TELL_US - 1: replication: node n1 cannot be attached: not now: a "
        "named limit is reached, try again\n"
        ".\n"
        "second_us = REP_REFUSAL_TELL_US: replication: node n1 cannot be attached: not now: a "
        "named limit is reached, try again\n"
        "replication: node n1 cannot be attached: not now: a named limit is reached, try again\n"
        ".\n"
        "second_us = 1, second_rc = LEAT_E_STARTING: replication: node n1 cannot be attached: not "
        "now: a named limit is reached, try again\n"
        "replication: node n1 cannot be attached yet: the server is starting or stopping\n"
        ".\n");
}

/* Goal: each option that is not given has its default. */
static void options_that_are_not_given_have_their_values(void **state)
{
    (void)state;
    rig = rig_new(0);
    const struct leat_primary_options *o = &rig->primary->options;
    trace(
        "answer %llu flush %llu open %llu grace %llu %llu %llu audit %llu recopy %llu window %u\n",
        (unsigned long long)o->answer_us, (unsigned long long)o->flush_us,
        (unsigned long long)o->open_wait_us, (unsigned long long)o->grace_us,
        (unsigned long long)o->grace_crashed_us, (unsigned long long)o->grace_none_us,
        (unsigned long long)o->audit_us, (unsigned long long)o->recopy_bytes_per_second, o->window);
    TRACE_IS("answer 2000000 flush 10000000 open 2000000 grace 60000000 20000000 1000000 audit "
             "30000000 recopy 67108864 window 4\n");
    rig_free(rig);
}

static void timer(void)
{
    rig->quiet = true;
    calm();
    rig->primary->timer.on_expired(&rig->primary->timer);
    trace("-> ");
    armed_trace();
}

static void idle(void)
{
    size_t used = trace_used;
    rig = rig_new(2);
    trace_text[trace_used = used] = '\0';
}

/* Goal: the timer is short where no event may ever end a wait; else the timer runs until something is due. */
static void timer_looks_soon_where_somebody_waits(void **state)
{
    (void)state;
    CASE_AS_IT_IS(idle, timer);
    CASE(idle, timer, rig_peer(rig, 1)->state = REP_PEER_UP,
         rig_peer(rig, 1)->retry_us = UINT64_MAX);
    CASE(idle, timer, rig_peer(rig, 1)->state = REP_PEER_DOWN);
    CASE(idle, timer, rig->primary->crowded_again_us = rig->now_us + 7777);
    TRACE_IS("(void)0: -> , again in 30000000 us\n"
             "rig_peer(rig, 1)->state = REP_PEER_UP, rig_peer(rig, 1)->retry_us = UINT64_MAX: -> , "
             "again "
             "in 20000 us\n"
             "rig_peer(rig, 1)->state = REP_PEER_DOWN: -> , again in 30000000 us\n"
             "rig->primary->crowded_again_us = rig->now_us + 7777: -> , again in 7777 us\n");
}

/* Goal: a primary gives back all memory that it has allocated for its nodes. */
static void memory_of_nodes_is_given_back(void **state)
{
    (void)state;
    size_t before = leat_mem_bytes(LEAT_MEM_STORE);
    rig = rig_new(3);
    assert_true(leat_mem_bytes(LEAT_MEM_STORE) > before);
    rig_free(rig);
    assert_int_equal(leat_mem_bytes(LEAT_MEM_STORE), before);
    trace_begin();
}

static leat_err source_rc;

static leat_err source(void *ctx, void *base, size_t bytes, struct leat_error *error)
{
    (void)ctx, (void)base;
    trace("source of %zu bytes\n", bytes);
    return source_rc ? leat_error_set(error, source_rc, "no more pages") : LEAT_OK;
}

/* Goal: a card is told where closed segments are copied from; where it can't be, that is said. */
static void card_is_told_of_the_place_to_copy_from(void **state)
{
    (void)state;
    rig = rig_new(0);
    struct leat_primary_options options = rig->primary->options;
    struct leat_rmem rmem = *options.rmem;
    options.rmem = &rmem;
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_DEBUG);
    for (unsigned i = 0; i < 3; i++) {
        struct leat_primary *primary = NULL;
        rmem.source = i ? source : NULL;
        source_rc = i == 2 ? LEAT_E_NO_MEMORY : LEAT_OK;
        assert_int_equal(leat_primary_create(&options, &primary), LEAT_OK);
        leat_primary_destroy(&primary);
        trace("--\n");
    }
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    TRACE_IS("--\n"
             "source of 262144 bytes\n"
             "--\n"
             "source of 262144 bytes\n"
             "replication: closed segments can't be copied again over RDMA: no more pages\n"
             "--\n");
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(commit_goes_on_when_fewer_copies_are_needed),
        TRACE_TEST(reserve_waits_for_copies),
        TRACE_TEST(segment_that_goes_is_none_that_lies_badly),
        TRACE_TEST(what_goes_has_nothing_to_be_done),
        TRACE_TEST(mail_to_oneself_is_one),
        TRACE_TEST(log_waits_for_time),
        TRACE_TEST(segment_is_counted_once),
        TRACE_TEST(store_says_what_is_in_the_way),
        TRACE_TEST(piece_that_is_read_for_a_log_that_went_is_none),
        TRACE_TEST(version_that_is_not_ready_waits),
        TRACE_TEST(who_is_back_at_once_was_slow),
        TRACE_TEST(node_is_chosen_of_those_that_share_least),
        TRACE_TEST(head_is_wanted_while_a_copy_is_made),
        TRACE_TEST(few_segments_are_looked_at_in_a_tick),
        TRACE_TEST(segment_without_memory_is_copied_later),
        TRACE_TEST(why_a_backup_is_left_is_said),
        TRACE_TEST(refusal_is_said_once_in_a_while),
        TRACE_TEST(options_that_are_not_given_have_their_values),
        TRACE_TEST(timer_looks_soon_where_somebody_waits),
        TRACE_TEST(memory_of_nodes_is_given_back),
        TRACE_TEST(card_is_told_of_the_place_to_copy_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
