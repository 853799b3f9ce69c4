/* SPDX-License-Identifier: Apache-2.0 */
/* Where copies should lie, and what is done about those that don't; each condition by itself. */
#include "tests/replication/case_rig.h"

static bool poor(void)
{
    return set->misplaced;
}

/* Node 2 is on node 1's host, and node 3 on one of its own. */
static void crowded(void)
{
    begun();
    struct rep_peer *second = rig_peer(rig, 2);
    memcpy(second->node.host, "h1", 3);
    rep_place_judge(set);
    rig->primary->places = 5;
    rig->now_us += 10 * 1000 * 1000;
    assert_true(poor());
}

/* ---- heads ---- */

static void roll(void)
{
    bool rolls = rep_better_roll(owned, set->seg);
    trace("-> %s, looked at %u rolled at %u; log %u at %u; next in %lld\n", rolls ? "rolls" : "no",
          set->places, set->rolled_places, owned->rolls, owned->rolled_places,
          (long long)rig->primary->rolls_at_us - (long long)rig->now_us);
}

static void rolled(uint32_t places, uint32_t rolls)
{
    owned->rolled_places = places;
    owned->rolls = rolls;
}

static void head_is_rolled_where_a_better_place_is(void **state)
{
    (void)state;
    CASE_AS_IT_IS(crowded, roll);
    CASE(crowded, roll, set->misplaced = false);
    CASE(crowded, roll, set->state = REP_SET_CLOSED);
    CASE(crowded, roll, set->dropping = true);
    CASE(crowded, roll, owned->releasing = true);
    CASE(crowded, roll, set->seg->copies_pointer = NULL);
    CASE(crowded, roll, set->places = 5);
    CASE(crowded, roll, set->places = 4);
    CASE(crowded, roll, set->rolled_places = 5);
    CASE(crowded, roll, set->rolled_places = 4);
    CASE(crowded, roll, rolled(5, REP_ROLLS_MAX));
    CASE(crowded, roll, rolled(5, REP_ROLLS_MAX - 1));
    CASE(crowded, roll, rolled(4, REP_ROLLS_MAX));
    CASE(crowded, roll, rig->primary->rolls_at_us = rig->now_us + REP_ROLLS_AHEAD_US);
    CASE(crowded, roll, rig->primary->rolls_at_us = rig->now_us + REP_ROLLS_AHEAD_US - 1);
    CASE(crowded, roll, rig_peer(rig, 3)->state = REP_PEER_UP);
    CASE(crowded, roll, rig_peer(rig, 3)->node.draining = true);
    CASE(crowded, roll, memcpy(rig_peer(rig, 3)->node.host, "h1", 3));
    CASE(crowded, roll, memcpy(rig_peer(rig, 3)->node.host, "h0", 3));
    TRACE_IS(
        "(void)0: -> rolls, looked at 0 rolled at 5; log 1 at 5; next in 50000\n"
        "set->misplaced = false: -> no, looked at 0 rolled at 0; log 0 at 0; next in -11001000\n"
        "set->state = REP_SET_CLOSED: -> no, looked at 0 rolled at 0; log 0 at 0; next in "
        "-11001000\n"
        "set->dropping = true: -> no, looked at 0 rolled at 0; log 0 at 0; next in -11001000\n"
        "owned->releasing = true: -> no, looked at 0 rolled at 0; log 0 at 0; next in -11001000\n"
        "set->seg->copies_pointer = NULL: -> no, looked at 0 rolled at 0; log 0 at 0; next in "
        "-11001000\n"
        "set->places = 5: -> no, looked at 5 rolled at 0; log 0 at 0; next in -11001000\n"
        "set->places = 4: -> rolls, looked at 4 rolled at 5; log 1 at 5; next in 50000\n"
        "set->rolled_places = 5: -> no, looked at 0 rolled at 5; log 0 at 0; next in -11001000\n"
        "set->rolled_places = 4: -> rolls, looked at 0 rolled at 5; log 1 at 5; next in 50000\n"
        "rolled(5, REP_ROLLS_MAX): -> no, looked at 5 rolled at 0; log 3 at 5; next in -11001000\n"
        "rolled(5, REP_ROLLS_MAX - 1): -> rolls, looked at 0 rolled at 5; log 3 at 5; next in "
        "50000\n"
        "rolled(4, REP_ROLLS_MAX): -> rolls, looked at 0 rolled at 5; log 1 at 5; next in 50000\n"
        "rig->primary->rolls_at_us = rig->now_us + REP_ROLLS_AHEAD_US: -> no, looked at 0 rolled "
        "at 0; log 0 at 0; next in 1000000\n"
        "rig->primary->rolls_at_us = rig->now_us + REP_ROLLS_AHEAD_US - 1: -> rolls, looked at 0 "
        "rolled at 5; log 1 at 5; next in 1049999\n"
        "rig_peer(rig, 3)->state = REP_PEER_UP: -> no, looked at 5 rolled at 0; log 0 at 0; next "
        "in "
        "-11001000\n"
        "rig_peer(rig, 3)->node.draining = true: -> no, looked at 5 rolled at 0; log 0 at 0; next "
        "in -11001000\n"
        "memcpy(rig_peer(rig, 3)->node.host, \"h1\", 3): -> no, looked at 5 rolled at 0; log 0 at "
        "0; next in -11001000\n"
        "memcpy(rig_peer(rig, 3)->node.host, \"h0\", 3): -> no, looked at 5 rolled at 0; log 0 at "
        "0; next in -11001000\n");
}

/* ---- closed segments ---- */

static void both(enum rep_copy_state state)
{
    set->copies[0]->state = set->copies[1]->state = (uint8_t)state;
}

static void crowded_closed(void)
{
    crowded();
    set->state = REP_SET_CLOSED;
    set->seg->state = LEAT_SEGMENT_CLOSED;
    set->seg->prefix_id = (struct leat_prefix_id){128, 128};
    both(REP_COPY_CLOSED);
    rep_place_note(set);
    rig->primary->crowded_left = 1;
    rig->primary->crowded_again_us = 0;
}

static void begin_better(void)
{
    struct leat_primary *primary = rig->primary;
    const struct rep_copy *made = rep_better_begin(primary, rig->now_us);
    trace("-> %s, %u copies, left %u of %u, again in %lld, retry in %lld, looked at %u%s, next "
          "%lld\n",
          made ? made->peer->node.name : "none", set->copy_count, primary->crowded_left,
          primary->crowded_count,
          primary->crowded_again_us ? (long long)(primary->crowded_again_us - rig->now_us) : -1,
          (long long)set->retry_us - (long long)rig->now_us, set->places,
          set->refused[0] || set->refused[1] ? " refused" : "",
          (long long)rep_better_next_us(primary, rig->now_us));
}

static void refused_by(unsigned node)
{
    unsigned number = rig_number(node);
    set->refused[number / 64] |= UINT64_C(1) << (number % 64);
}

static void segment_gets_a_copy_where_it_lies_better(void **state)
{
    (void)state;
    CASE_AS_IT_IS(crowded_closed, begin_better);
    CASE(crowded_closed, begin_better, rig->primary->crowded_left = 0);
    CASE(crowded_closed, begin_better, rig->primary->crowded_left = 9);
    CASE(crowded_closed, begin_better, rig->primary->crowded_left = 0,
         rig->primary->crowded_again_us = rig->now_us);
    CASE(crowded_closed, begin_better, rig->primary->crowded_left = 0,
         rig->primary->crowded_again_us = rig->now_us + 1);
    CASE(crowded_closed, begin_better, set->places = 5);
    CASE(crowded_closed, begin_better, set->retry_us = rig->now_us);
    CASE(crowded_closed, begin_better, set->retry_us = rig->now_us + 1);
    CASE(crowded_closed, begin_better, refused_by(3));
    CASE(crowded_closed, begin_better, rig_peer(rig, 3)->state = REP_PEER_UP);
    CASE(crowded_closed, begin_better, rig_peer(rig, 3)->state = REP_PEER_UP, refused_by(2));
    CASE(crowded_closed, begin_better, set->dropping = true);
    CASE(crowded_closed, begin_better, set->seg->integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(crowded_closed, begin_better, copy->found = true);
    CASE(crowded_closed, begin_better, copy->incomplete = true);
    CASE(crowded_closed, begin_better, copy->writes = 1);
    CASE(crowded_closed, begin_better, copy->batched = true);
    CASE(crowded_closed, begin_better, copy->state = REP_COPY_HIBERNATED);
    CASE(crowded_closed, begin_better, owned->options.copies = 2);
    CASE(crowded_closed, begin_better, owned->options.copies = 2, copy->found = true);
    TRACE_IS(
        "(void)0: n3 OPEN s0 h0 v1 d1 part, 2 s\n"
        "-> n3, 3 copies, left 0 of 1, again in 2000000, retry in -11001000, looked at 0, next "
        "2000000\n"
        "rig->primary->crowded_left = 0: -> none, 2 copies, left 0 of 1, again in -1, retry in "
        "-11001000, looked at 0, next -1\n"
        "rig->primary->crowded_left = 9: n3 OPEN s0 h0 v1 d1 part, 2 s\n"
        "-> n3, 3 copies, left 0 of 1, again in 2000000, retry in -11001000, looked at 0, next "
        "2000000\n"
        "rig->primary->crowded_left = 0, rig->primary->crowded_again_us = rig->now_us: n3 OPEN s0 "
        "h0 v1 d1 part, 2 s\n"
        "-> n3, 3 copies, left 0 of 1, again in 2000000, retry in -11001000, looked at 0, next "
        "2000000\n"
        "rig->primary->crowded_left = 0, rig->primary->crowded_again_us = rig->now_us + 1: -> "
        "none, 2 copies, left 0 of 1, again in 1, retry in -11001000, looked at 0, next 1\n"
        "set->places = 5: -> none, 2 copies, left 0 of 1, again in -1, retry in -11001000, looked "
        "at 5, next -1\n"
        "set->retry_us = rig->now_us: n3 OPEN s0 h0 v1 d1 part, 2 s\n"
        "-> n3, 3 copies, left 0 of 1, again in 2000000, retry in 0, looked at 0, next 2000000\n"
        "set->retry_us = rig->now_us + 1: -> none, 2 copies, left 0 of 1, again in 2000000, retry "
        "in 1, looked at 0, next 2000000\n"
        "refused_by(3): -> none, 2 copies, left 0 of 1, again in 2000000, retry in 2000000, looked "
        "at 0, next 2000000\n"
        "rig_peer(rig, 3)->state = REP_PEER_UP: -> none, 2 copies, left 0 of 1, again in -1, retry "
        "in "
        "-11001000, looked at 5, next -1\n"
        "rig_peer(rig, 3)->state = REP_PEER_UP, refused_by(2): -> none, 2 copies, left 0 of 1, "
        "again "
        "in 2000000, retry in 2000000, looked at 0, next 2000000\n"
        "set->dropping = true: -> none, 2 copies, left 0 of 1, again in 2000000, retry in "
        "-11001000, looked at 0, next 2000000\n"
        "set->seg->integrity = LEAT_INTEGRITY_CORRUPT: -> none, 2 copies, left 0 of 1, again in "
        "2000000, retry in "
        "-11001000, looked at 0, next 2000000\n"
        "copy->found = true: -> none, 2 copies, left 0 of 1, again in 2000000, retry in -11001000, "
        "looked at 0, next 2000000\n"
        "copy->incomplete = true: -> none, 2 copies, left 0 of 1, again in 2000000, retry in "
        "-11001000, looked at 0, next 2000000\n"
        "copy->writes = 1: -> none, 2 copies, left 0 of 1, again in 2000000, retry in -11001000, "
        "looked at 0, next 2000000\n"
        "copy->batched = true: -> none, 2 copies, left 0 of 1, again in 2000000, retry in "
        "-11001000, looked at 0, next 2000000\n"
        "copy->state = REP_COPY_HIBERNATED: -> none, 2 copies, left 0 of 1, again in 2000000, "
        "retry in "
        "-11001000, looked at 0, next 2000000\n"
        "owned->options.copies = 2: n1 DROP s0 h10 v1 d1, 2 s\n"
        "-> none, 2 copies, left 0 of 1, again in 2000000, retry in -11001000, looked at 0, next "
        "2000000\n"
        "owned->options.copies = 2, copy->found = true: -> none, 2 copies, left 0 of 1, again in "
        "2000000, retry in -11001000, looked at 0, next 2000000\n");
}

static void note(void)
{
    struct leat_primary *primary = rig->primary;
    primary->crowded_left = 0;
    calm();
    rep_place_note(set);
    trace("-> %u crowded, left %u%s", primary->crowded_count, primary->crowded_left,
          leat_list_empty(&set->crowded) ? "" : ", it");
    armed_trace();
}

static void segment_that_lies_badly_is_noted_once(void **state)
{
    (void)state;
    CASE_AS_IT_IS(crowded_closed, note);
    CASE(crowded_closed, note, set->places = 5);
    CASE(crowded_closed, note, set->state = REP_SET_STARTED);
    CASE(crowded_closed, note, set->dropping = true);
    CASE(crowded_closed, note, set->misplaced = false);
    CASE(crowded_closed, note, rig_peer(rig, 3)->state = REP_PEER_UP);
    CASE(crowded, note, set->state = REP_SET_CLOSED);
    CASE(crowded, note, set->misplaced = false);
    CASE(crowded_closed, note, rep_place_forget(set), rep_place_forget(set));
    TRACE_IS("(void)0: -> 1 crowded, left 1, it, again in 20000 us\n"
             "set->places = 5: -> 1 crowded, left 0, it\n"
             "set->state = REP_SET_STARTED: -> 0 crowded, left 0\n"
             "set->dropping = true: -> 0 crowded, left 0\n"
             "set->misplaced = false: -> 0 crowded, left 0\n"
             "rig_peer(rig, 3)->state = REP_PEER_UP: -> 1 crowded, left 0, it\n"
             "set->state = REP_SET_CLOSED: -> 1 crowded, left 1, it, again in 20000 us\n"
             "set->misplaced = false: -> 0 crowded, left 0\n"
             "rep_place_forget(set), rep_place_forget(set): -> 1 crowded, left 1, it, again in "
             "20000 us\n");
}

/* ---- one that lacks copies ---- */

static void lacks(void)
{
    begun();
    rig->now_us += 100 * 1000 * 1000;
    set->state = REP_SET_CLOSED;
    set->seg->state = LEAT_SEGMENT_CLOSED;
    set->seg->prefix_id = (struct leat_prefix_id){128, 128};
    both(REP_COPY_CLOSED);
    set->copies[1]->peer->open_count = copy->peer->open_count = 0;
    rep_copy_remove(set->copies[1]);
    rep_set_settle(set);
    rig->primary->recopy_us = rig->now_us;
    rig->primary->recopy_bytes = 0;
}

static void passed(uint64_t rate, uint64_t us)
{
    rig->primary->options.recopy_bytes_per_second = rate;
    rig->primary->recopy_us -= us;
}

static void recopy(void)
{
    struct leat_primary *primary = rig->primary;
    rep_recopy_step(primary, rig->now_us);
    trace("-> %s at %s, %u copies, allowed %llu, retry in %lld%s since %lld\n",
          primary->recopy ? "it" : "none",
          primary->recopy_copy ? primary->recopy_copy->peer->node.name : "none", set->copy_count,
          (unsigned long long)primary->recopy_bytes,
          (long long)set->retry_us - (long long)rig->now_us, set->refused[0] ? " refused" : "",
          primary->lacks_since_us ? (long long)(rig->now_us - primary->lacks_since_us) : -1);
}

static void nobody_else(void)
{
    rig_peer(rig, 2)->state = rig_peer(rig, 3)->state = REP_PEER_UP;
}

static void what_may_be_copied_grows_with_time(void **state)
{
    (void)state;
    CASE(lacks, recopy, passed(200 * 1000, 0));
    CASE(lacks, recopy, passed(200 * 1000, 1000));
    CASE(lacks, recopy, passed(200 * 1000, 1000 * 1000));
    CASE(lacks, recopy, passed(200 * 1000, 90 * 1000 * 1000));
    CASE(lacks, recopy, passed(200 * 1000, 1000 * 1000), rig->primary->recopy_bytes = 62143);
    CASE(lacks, recopy, passed(200 * 1000, 1000 * 1000), rig->primary->recopy_bytes = 62145);
    CASE(lacks, recopy, passed(10 * REP_STAGING_BYTES + 10, 1000 * 1000));
    TRACE_IS("passed(200 * 1000, 0): n2 OPEN s0 h0 v1 d1 part, 2 s\n"
             "-> it at n2, 2 copies, allowed 0, retry in -101001000 since 0\n"
             "passed(200 * 1000, 1000): n2 OPEN s0 h0 v1 d1 part, 2 s\n"
             "-> it at n2, 2 copies, allowed 200, retry in -101001000 since 0\n"
             "passed(200 * 1000, 1000 * 1000): n2 OPEN s0 h0 v1 d1 part, 2 s\n"
             "-> it at n2, 2 copies, allowed 200000, retry in -101001000 since 0\n"
             "passed(200 * 1000, 90 * 1000 * 1000): n2 OPEN s0 h0 v1 d1 part, 2 s\n"
             "-> it at n2, 2 copies, allowed 200000, retry in -101001000 since 0\n"
             "passed(200 * 1000, 1000 * 1000), rig->primary->recopy_bytes = 62143: n2 OPEN s0 h0 "
             "v1 d1 part, 2 s\n"
             "-> it at n2, 2 copies, allowed 262143, retry in -101001000 since 0\n"
             "passed(200 * 1000, 1000 * 1000), rig->primary->recopy_bytes = 62145: n2 OPEN s0 h0 "
             "v1 d1 part, 2 s\n"
             "-> it at n2, 2 copies, allowed 262144, retry in -101001000 since 0\n"
             "passed(10 * REP_STAGING_BYTES + 10, 1000 * 1000): n2 OPEN s0 h0 v1 d1 part, 2 s\n"
             "-> it at n2, 2 copies, allowed 262145, retry in -101001000 since 0\n");
}

static void segment_that_lacks_a_copy_is_copied(void **state)
{
    (void)state;
    CASE_AS_IT_IS(lacks, recopy);
    CASE(lacks, recopy, set->lost_us = rig->now_us);
    CASE(lacks, recopy, set->retry_us = rig->now_us);
    CASE(lacks, recopy, set->retry_us = rig->now_us + 1);
    CASE(lacks, recopy, set->dropping = true);
    CASE(lacks, recopy, set->seg->integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(lacks, recopy, set->seg->integrity = LEAT_INTEGRITY_CORRUPT, set->seg->buffer = NULL);
    CASE(lacks, recopy, nobody_else(), refused_by(1));
    CASE(lacks, recopy, refused_by(2), refused_by(3));
    CASE(begun, recopy, rig->primary->lacks_since_us = 5);
    CASE(begun, recopy, rig->primary->lacks_since_us = 5,
         rig->primary->accounts.recopied_bytes = 2048, rig_peer(rig, 1)->audited_us = 9);
    TRACE_IS(
        "(void)0: n2 OPEN s0 h0 v1 d1 part, 2 s\n"
        "-> it at n2, 2 copies, allowed 0, retry in -101001000 since 0\n"
        "set->lost_us = rig->now_us: -> none at none, 1 copies, allowed 0, retry in -101001000 "
        "since 0\n"
        "set->retry_us = rig->now_us: n2 OPEN s0 h0 v1 d1 part, 2 s\n"
        "-> it at n2, 2 copies, allowed 0, retry in 0 since 0\n"
        "set->retry_us = rig->now_us + 1: -> none at none, 1 copies, allowed 0, retry in 1 since "
        "0\n"
        "set->dropping = true: -> none at none, 1 copies, allowed 0, retry in -101001000 since 0\n"
        "set->seg->integrity = LEAT_INTEGRITY_CORRUPT: n2 OPEN s0 h0 v1 d1 part, 2 s\n"
        "-> it at n2, 2 copies, allowed 0, retry in -101001000 since 0\n"
        "set->seg->integrity = LEAT_INTEGRITY_CORRUPT, set->seg->buffer = NULL: -> none at none, 1 "
        "copies, allowed 0, "
        "retry in -101001000 since 0\n"
        "nobody_else(), refused_by(1): -> none at none, 1 copies, allowed 0, retry in 2000000 "
        "since 0\n"
        "refused_by(2), refused_by(3): -> none at none, 1 copies, allowed 0, retry in 2000000 "
        "since 0\n"
        "rig->primary->lacks_since_us = 5: -> none at none, 2 copies, allowed 6710886, retry in "
        "-1001000 since -1\n"
        "rig->primary->lacks_since_us = 5, rig->primary->accounts.recopied_bytes = 2048, "
        "rig_peer(rig, 1)->audited_us = 9: -> none at none, 2 copies, allowed 6710886, retry in "
        "-1001000 since -1\n");
}

/* ---- places ---- */

static void choose(void)
{
    trace("->");
    for (unsigned i = 0; i < 3; i++) {
        const struct rep_peer *peer = rep_place_choose(set);
        trace(" %s", peer ? peer->node.name : "none");
    }
    rep_place_judge(set);
    trace("%s%s\n", set->misplaced ? ", misplaced" : "",
          rep_place_may_come(rig->primary) ? ", one may come" : "");
}

static void one_copy(void)
{
    begun();
    rep_copy_remove(set->copies[1]);
    rig->random_step = 1;
}

static void rack_of(unsigned node, const char *rack)
{
    snprintf(rig_peer(rig, node)->node.rack, sizeof rig_peer(rig, node)->node.rack, "%s", rack);
}

static void copy_is_placed_where_it_shares_least(void **state)
{
    (void)state;
    CASE_AS_IT_IS(one_copy, choose);
    CASE(one_copy, choose, rig->random_step = 0);
    CASE(one_copy, choose, rig_peer(rig, 2)->load_bytes = 1);
    CASE(one_copy, choose, rig_peer(rig, 3)->load_bytes = 1);
    CASE(one_copy, choose, rig_peer(rig, 3)->load_bytes = 1, rig_peer(rig, 2)->open_count = 1);
    CASE(one_copy, choose, rig_peer(rig, 3)->load_bytes = LEAT_SEGMENT_BYTES_MIN + 1,
         rig_peer(rig, 2)->open_count = 1);
    CASE(one_copy, choose, refused_by(2));
    CASE(one_copy, choose, refused_by(3));
    CASE(one_copy, choose, refused_by(2), refused_by(3));
    CASE(one_copy, choose, rig_peer(rig, 2)->node.draining = true);
    CASE(one_copy, choose, rig_peer(rig, 2)->state = REP_PEER_UP);
    CASE(one_copy, choose, rig_peer(rig, 2)->state = REP_PEER_DOWN);
    CASE(one_copy, choose, memcpy(rig_peer(rig, 2)->node.host, "h1", 3));
    CASE(one_copy, choose, memcpy(rig_peer(rig, 2)->node.host, "h0", 3));
    CASE(one_copy, choose, rack_of(1, "r"), rack_of(2, "r"));
    CASE(one_copy, choose, rack_of(1, "r"), rack_of(2, "r"), rack_of(3, "r"));
    CASE(one_copy, choose, rack_of(1, "r"), rack_of(2, "r"), nobody_else(),
         rig_peer(rig, 2)->state = REP_PEER_ATTACHED);
    CASE(one_copy, choose, memcpy(rig_peer(rig, 1)->node.host, "h0", 3));
    TRACE_IS("(void)0: -> n2 n3 n2\n"
             "rig->random_step = 0: -> n2 n2 n2\n"
             "rig_peer(rig, 2)->load_bytes = 1: -> n3 n3 n3\n"
             "rig_peer(rig, 3)->load_bytes = 1: -> n2 n2 n2\n"
             "rig_peer(rig, 3)->load_bytes = 1, rig_peer(rig, 2)->open_count = 1: -> n3 n3 n3\n"
             "rig_peer(rig, 3)->load_bytes = LEAT_SEGMENT_BYTES_MIN + 1, rig_peer(rig, "
             "2)->open_count = 1: -> n2 n2 n2\n"
             "refused_by(2): -> n3 n3 n3\n"
             "refused_by(3): -> n2 n2 n2\n"
             "refused_by(2), refused_by(3): -> none none none\n"
             "rig_peer(rig, 2)->node.draining = true: -> n3 n3 n3\n"
             "rig_peer(rig, 2)->state = REP_PEER_UP: -> n3 n3 n3, one may come\n"
             "rig_peer(rig, 2)->state = REP_PEER_DOWN: -> n3 n3 n3\n"
             "memcpy(rig_peer(rig, 2)->node.host, \"h1\", 3): -> n3 n3 n3\n"
             "memcpy(rig_peer(rig, 2)->node.host, \"h0\", 3): -> n3 n3 n3\n"
             "rack_of(1, \"r\"), rack_of(2, \"r\"): -> n3 n3 n3\n"
             "rack_of(1, \"r\"), rack_of(2, \"r\"), rack_of(3, \"r\"): -> n2 n3 n2\n"
             "rack_of(1, \"r\"), rack_of(2, \"r\"), nobody_else(), rig_peer(rig, 2)->state = "
             "REP_PEER_ATTACHED: -> n2 n2 n2, one may come\n"
             "memcpy(rig_peer(rig, 1)->node.host, \"h0\", 3): -> n2 n3 n2, misplaced\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(head_is_rolled_where_a_better_place_is),
        TRACE_TEST(segment_gets_a_copy_where_it_lies_better),
        TRACE_TEST(segment_that_lies_badly_is_noted_once),
        TRACE_TEST(what_may_be_copied_grows_with_time),
        TRACE_TEST(segment_that_lacks_a_copy_is_copied),
        TRACE_TEST(copy_is_placed_where_it_shares_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
