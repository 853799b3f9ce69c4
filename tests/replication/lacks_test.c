/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that lack copies: when copies are given up, what is told and counted, what waits for a new copy, and how a
 * new copy is written. A primary alone. */
#include "tests/replication/case_rig.h"

static void ends(enum leat_store_req_kind kind)
{
    rig->quiet = true;
    rig_end(rig, kind, 0, 128);
    rig->quiet = false;
    trace("-> %u copies\n", set->copy_count);
}

static void is_closed(void)
{
    ends(LEAT_STORE_CLOSE);
}

static void is_hibernated(void)
{
    ends(LEAT_STORE_HIBERNATE);
}

/* Goal: copies that acks did not need yet are given up when a segment is closed or hibernated. */
static void copies_that_do_not_count_are_given_up_at_an_end(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, is_closed);
    CASE(begun, is_closed, copy->counted = false);
    CASE_AS_IT_IS(begun, is_hibernated);
    CASE(begun, is_hibernated, copy->counted = false);
    CASE(begun, is_hibernated, copy->counted = set->copies[1]->counted = false);
    TRACE_IS("(void)0: -> 2 copies\n"
             "copy->counted = false: -> 1 copies\n"
             "(void)0: -> 2 copies\n"
             "copy->counted = false: -> 1 copies\n"
             "copy->counted = set->copies[1]->counted = false: -> 0 copies\n");
}

static void status(void)
{
    struct leat_primary_status status;
    leat_primary_status(rig->primary, &status);
    trace("-> %llu segments of %llu logs lack copies\n",
          (unsigned long long)status.segments_under_replicated,
          (unsigned long long)status.logs_under_replicated);
}

/* Goal: a segment lacks copies while it is there, and is to stay. */
static void segments_that_lack_copies_are_told(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, status);
    CASE(begun, status, rep_copy_remove(copy));
    CASE(begun, status, rep_copy_remove(copy), set->dropping = true);
    CASE(begun, status, rep_copy_remove(copy), set->state = REP_SET_RESERVING);
    CASE(begun, status, set->seg->integrity = LEAT_INTEGRITY_CORRUPT);
    TRACE_IS("(void)0: -> 0 segments of 0 logs lack copies\n"
             "rep_copy_remove(copy): -> 1 segments of 1 logs lack copies\n"
             "rep_copy_remove(copy), set->dropping = true: -> 0 segments of 0 logs lack copies\n"
             "rep_copy_remove(copy), set->state = REP_SET_RESERVING: -> 0 segments of 0 logs lack "
             "copies\n"
             "set->seg->integrity = LEAT_INTEGRITY_CORRUPT: -> 1 segments of 1 logs lack copies\n");
}

static void version(void)
{
    calm();
    rep_version_step(owned);
    trace("-> %s\n", leat_list_empty(&owned->version_link) ? "not told" : "in line");
}

static void raised_without(void)
{
    begun();
    owned->need = owned->version = 2;
    rep_copy_remove(copy);
    set->stamped = set->copies[0]->stamp = 2;
    owned->held_us = rig->now_us - rig->primary->options.open_wait_us;
}

/* Goal: a generation is sent without a new copy when the wait for the copy is over, or when no node can take the
 * copy. */
static void version_waits_for_a_copy_so_long(void **state)
{
    (void)state;
    CASE_AS_IT_IS(raised_without, version);
    CASE(raised_without, version, owned->held_us++);
    CASE(raised_without, version, owned->held_us++, rig_peer(rig, 1)->node.draining = true,
         rig_peer(rig, 3)->node.draining = true);
    CASE(raised_without, version, owned->options.min_copies = 3);
    TRACE_IS("(void)0: -> in line\n"
             "owned->held_us++: -> not told\n"
             "owned->held_us++, rig_peer(rig, 1)->node.draining = true, rig_peer(rig, "
             "3)->node.draining = true: -> in line\n"
             "owned->options.min_copies = 3: -> not told\n");
}

static void tell(void)
{
    struct leat_primary *primary = rig->primary;
    rep_recopy_step(primary, rig->now_us);
    trace("-> lacks since %llu, %llu had been copied\n",
          (unsigned long long)primary->lacks_since_us, (unsigned long long)primary->lacks_bytes);
}

static void lacking(void)
{
    closed_at_128();
    rig->now_us = 5000 * 1000;
    for (unsigned i = 1; i <= 3; i++)
        rig_peer(rig, i)->node.draining = true;
    rep_copy_remove(copy);
    rep_set_settle(set);
    rig->primary->accounts.recopied_bytes = 77;
}

/* Goal: since when copies are missing, and what had been copied then, stays until none is. */
static void what_is_missing_is_counted_from_its_beginning(void **state)
{
    (void)state;
    CASE_AS_IT_IS(lacking, tell);
    CASE(lacking, tell, rig->primary->lacks_since_us = 4, rig->primary->lacks_bytes = 44);
    CASE(lacking, tell, owned->options.copies = 2, rep_set_settle(set));
    CASE(lacking, tell, owned->options.copies = 2, rep_set_settle(set),
         rig->primary->lacks_since_us = 4, rig->primary->lacks_bytes = 44);
    TRACE_IS("(void)0: -> lacks since 5000000, 77 had been copied\n"
             "rig->primary->lacks_since_us = 4, rig->primary->lacks_bytes = 44: -> lacks since 4, "
             "44 had been copied\n"
             "owned->options.copies = 2, rep_set_settle(set): -> lacks since 0, 0 had been copied\n"
             "owned->options.copies = 2, rep_set_settle(set), rig->primary->lacks_since_us = 4, "
             "rig->primary->lacks_bytes = 44: -> lacks since 0, 44 had been copied\n");
}

static void wanted(void)
{
    trace("-> %d\n", rep_head_copy_wanted(owned, set->seg));
}

/* Goal: a head that is not hibernated is wanted for a copy at once, where there is a node for it. */
static void open_head_is_wanted_at_once(void **state)
{
    (void)state;
    CASE(begun, wanted, rep_copy_remove(copy), set->lost_us = rig->now_us);
    CASE(begun, wanted, rep_copy_remove(copy), set->lost_us = rig->now_us,
         set->state = REP_SET_HIBERNATING);
    CASE(begun, wanted, rep_copy_remove(copy), rig_peer(rig, 1)->node.draining = true,
         rig_peer(rig, 3)->node.draining = true);
    TRACE_IS("rep_copy_remove(copy), set->lost_us = rig->now_us: -> 1\n"
             "rep_copy_remove(copy), set->lost_us = rig->now_us, set->state = REP_SET_HIBERNATING: "
             "-> 0\n"
             "rep_copy_remove(copy), rig_peer(rig, 1)->node.draining = true, rig_peer(rig, "
             "3)->node.draining = true: -> 0\n");
}

static void made_anew(void)
{
    closed_at_128();
    for (unsigned i = 0; i < RIG_CAPACITY; i++)
        rig->buffers[0][i] = (uint8_t)(i * 7);
    copy->state = REP_COPY_OPEN;
    copy->peer->open_count = 1;
    copy->incomplete = true;
    copy->sent = copy->done = 0;
    rig->primary->recopy = set;
    rig->primary->recopy_copy = copy;
    rig->primary->recopy_us = rig->now_us;
    rig->primary->recopy_bytes = 4096;
}

static void recopy(void)
{
    rep_recopy_step(rig->primary, rig->now_us);
    bool same = copy->sent <= 128 && memcmp(rig->primary->staging, rig->buffers[0] + copy->done,
                                            copy->sent - copy->done) == 0;
    trace("-> %s, sent %u of %u, %llu left%s%s\n", same ? "as it is" : "other bytes", copy->sent,
          set->seg->prefix_id.bytes, (unsigned long long)rig->primary->recopy_bytes,
          rig->primary->reading ? ", reading" : "", rig->primary->recopy ? "" : ", done");
}

/* Goal: a new copy gets the bytes that it lacks, out of memory or of the file, at the permitted rate and one piece at a
 * time. */
static void copy_that_is_made_anew_gets_what_is_missing(void **state)
{
    (void)state;
    CASE_AS_IT_IS(made_anew, recopy);
    CASE(made_anew, recopy, copy->sent = copy->done = 100);
    CASE(made_anew, recopy, copy->sent = copy->done = 128);
    CASE(made_anew, recopy, set->seg->buffer = NULL);
    CASE(made_anew, recopy, rig->primary->recopy_bytes = 127);
    CASE(made_anew, recopy, rig->primary->recopy_bytes = 128);
    CASE(made_anew, recopy, rig->primary->recopy_bytes = 27, copy->sent = copy->done = 100);
    CASE(made_anew, recopy, copy->state = REP_COPY_OPENING);
    CASE(made_anew, recopy, copy->state = REP_COPY_CLOSED);
    CASE(made_anew, recopy, copy->writes = 1);
    CASE(made_anew, recopy, copy->session--);
    CASE(made_anew, recopy, copy->session--, set->seg->buffer = NULL);
    CASE(made_anew, recopy, set->dropping = true);
    CASE(made_anew, recopy, rig->primary->reading = true);
    CASE(made_anew, recopy, rig->write_rc = LEAT_E_CLOSED);
    TRACE_IS("(void)0: n1 write @4096+128 from staging\n"
             "-> as it is, sent 128 of 128, 3968 left\n"
             "copy->sent = copy->done = 100: n1 write @4196+28 from staging\n"
             "-> as it is, sent 128 of 128, 4068 left\n"
             "copy->sent = copy->done = 128: -> as it is, sent 128 of 128, 4096 left\n"
             "set->seg->buffer = NULL: read 65536+4096\n"
             "-> as it is, sent 0 of 128, 4096 left, reading\n"
             "rig->primary->recopy_bytes = 127: -> as it is, sent 0 of 128, 127 left\n"
             "rig->primary->recopy_bytes = 128: n1 write @4096+128 from staging\n"
             "-> as it is, sent 128 of 128, 0 left\n"
             "rig->primary->recopy_bytes = 27, copy->sent = copy->done = 100: -> as it is, sent "
             "100 of 128, 27 left\n"
             "copy->state = REP_COPY_OPENING: -> as it is, sent 0 of 128, 4096 left\n"
             "copy->state = REP_COPY_CLOSED: -> as it is, sent 0 of 128, 4096 left, done\n"
             "copy->writes = 1: -> as it is, sent 0 of 128, 4096 left\n"
             "copy->session--: -> as it is, sent 0 of 128, 4096 left\n"
             "copy->session--, set->seg->buffer = NULL: -> as it is, sent 0 of 128, 4096 left\n"
             "set->dropping = true: -> as it is, sent 0 of 128, 4096 left\n"
             "rig->primary->reading = true: -> as it is, sent 0 of 128, 4096 left, reading\n"
             "rig->write_rc = LEAT_E_CLOSED: -> as it is, sent 0 of 128, 4096 left\n");
}

/* Goal: each segment that lacks a copy has its turn, though the only node for those before it refuses them again and
 * again. */
static void segments_that_lack_copies_take_turns(void **state)
{
    (void)state;
    struct rep_set lacking[3];
    struct leat_segment seg = {.state = LEAT_SEGMENT_CLOSED};
    begun();
    calm();
    rig->now_us += rig->primary->options.grace_us;
    for (unsigned i = 1; i <= 2; i++)
        rig_peer(rig, i)->node.draining = true;
    for (unsigned i = 0; i < 3; i++) {
        lacking[i] = (struct rep_set){
            .log = owned, .seg = &seg, .id = {5 + i}, .capacity = 4096, .state = REP_SET_CLOSED};
        leat_list_init(&lacking[i].link);
        leat_list_init(&lacking[i].crowded);
        leat_list_push_back(&rig->primary->deficit, &lacking[i].deficit);
    }
    for (unsigned i = 0; i < 3; i++) {
        rep_recopy_step(rig->primary, rig->now_us);
        rig->now_us += 10 * REP_RETRY_US;
        rig->quiet = true;
        rig_refuse(rig, 3, LEAT_REP_OPEN, LEAT_E_DISK_FULL);
        rig->quiet = false;
    }
    for (unsigned i = 0; i < 3; i++)
        leat_list_remove(&lacking[i].deficit);
    TRACE_IS("n3 OPEN s5 h0 v1 d1 part 1/2/3 cap 4096 e0/5, 2 s\n"
             "n3 OPEN s6 h0 v1 d1 part 1/2/3 cap 4096 e0/5, 2 s\n"
             "n3 OPEN s7 h0 v1 d1 part 1/2/3 cap 4096 e0/5, 2 s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(copies_that_do_not_count_are_given_up_at_an_end),
        TRACE_TEST(segments_that_lack_copies_are_told),
        TRACE_TEST(version_waits_for_a_copy_so_long),
        TRACE_TEST(what_is_missing_is_counted_from_its_beginning),
        TRACE_TEST(open_head_is_wanted_at_once),
        TRACE_TEST(copy_that_is_made_anew_gets_what_is_missing),
        TRACE_TEST(segments_that_lack_copies_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
