/* SPDX-License-Identifier: Apache-2.0 */
/* A segment and its copies at the primary: the next request, the answers, and the reports; each condition by itself. */
#include "tests/replication/case_rig.h"

/* ---- one copy's next step ---- */

static void step(void)
{
    const struct rep_peer *peer = copy->peer;
    rep_copy_step(copy);
    trace("-> state %u%s%s%s%s%s sent %u done %u\n", copy->state, copy->counted ? " counted" : "",
          copy->incomplete ? " part" : "", copy->asked_whole ? " asked" : "",
          !leat_list_empty(&copy->in_batch) && copy->in_batch.next == &peer->flush.waiting
              ? " flush"
              : "",
          !leat_list_empty(&copy->in_batch) && copy->in_batch.next == &peer->restamp.waiting
              ? " restamp"
              : "",
          copy->sent, copy->done);
}

static void is_part(void)
{
    copy->incomplete = true;
    copy->counted = false;
}

static void on_disk(void)
{
    owned->options.durability = LEAT_DURABILITY_DISK;
    copy->flushed = 127;
}

static void copy_is_made_what_it_should_be(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, step);
    CASE(begun, step, copy->stamp = 0);
    CASE(begun, step, copy->stamp = 0, set->state = REP_SET_HIBERNATING,
         set->seg->prefix_id.bytes = 1);
    CASE(begun, step, copy->stamp = 0, copy->batched = true);
    CASE(begun, step, copy->stamp = 0, copy->state = REP_COPY_OPENING);
    CASE(begun, step, copy->stamp = 0, copy->state = REP_COPY_CLOSED);
    CASE(begun, step, copy->stamp = 0, set->target = 192);
    CASE(begun, step, set->target = 192, set->dropping = true);
    CASE(begun, step, set->target = 192, set->seg->buffer = NULL);
    CASE(begun, step, set->target = 192, copy->session--);
    CASE(begun, step, set->target = 192, rig->write_rc = LEAT_E_CLOSED);
    CASE(begun, step, set->target = 192, rig->primary->options.window = 0);
    CASE(begun, step, on_disk());
    CASE(begun, step, on_disk(), copy->flushed = 128);
    CASE(begun, step, on_disk(), copy->stamp = 0);
    TRACE_IS(
        "(void)0: -> state 1 counted sent 128 done 128\n"
        "copy->stamp = 0: -> state 1 counted restamp sent 128 done 128\n"
        "copy->stamp = 0, set->state = REP_SET_HIBERNATING, set->seg->prefix_id.bytes = 1: -> "
        "state 1 "
        "counted "
        "sent 128 done 128\n"
        "copy->stamp = 0, copy->batched = true: -> state 1 counted sent 128 done 128\n"
        "copy->stamp = 0, copy->state = REP_COPY_OPENING: -> state 0 counted sent 128 done 128\n"
        "copy->stamp = 0, copy->state = REP_COPY_CLOSED: -> state 3 counted sent 128 done 128\n"
        "copy->stamp = 0, set->target = 192: n1 write @4224+64 from s0+128\n"
        "-> state 1 counted restamp sent 192 done 128\n"
        "set->target = 192, set->dropping = true: -> state 1 counted sent 128 done 128\n"
        "set->target = 192, set->seg->buffer = NULL: -> state 1 counted sent 128 done 128\n"
        "set->target = 192, copy->session--: -> state 1 counted sent 128 done 128\n"
        "set->target = 192, rig->write_rc = LEAT_E_CLOSED: -> state 1 counted sent 128 done 128\n"
        "set->target = 192, rig->primary->options.window = 0: -> state 1 counted sent 128 done "
        "128\n"
        "on_disk(): -> state 1 counted flush sent 128 done 128\n"
        "on_disk(), copy->flushed = 128: -> state 1 counted sent 128 done 128\n"
        "on_disk(), copy->stamp = 0: -> state 1 counted restamp sent 128 done 128\n");
}

static void copy_that_is_a_part_counts_before_it_is_whole(void **state)
{
    (void)state;
    CASE(begun, step, is_part());
    CASE(begun, step, is_part(), copy->sent = 127, set->seg->buffer = NULL);
    CASE(begun, step, is_part(), copy->done = 127);
    CASE(begun, step, is_part(), copy->writes = 1);
    CASE(begun, step, is_part(), on_disk());
    CASE(begun, step, is_part(), on_disk(), copy->flushed = 128);
    CASE(begun, step, is_part(), set->state = REP_SET_RESERVED);
    CASE(begun, step, is_part(), set->target = copy->sent = copy->done = 0);
    CASE(begun, step, is_part(), copy->batched = true);
    CASE(begun, step, is_part(), set->seg->buffer = NULL);
    TRACE_IS(
        "is_part(): n1 COMPLETE s0 h10 v1 d1 part 128:128, 10 s\n"
        "-> state 1 counted part asked sent 128 done 128\n"
        "is_part(), copy->sent = 127, set->seg->buffer = NULL: -> state 1 part sent 127 done 128\n"
        "is_part(), copy->done = 127: -> state 1 counted part sent 128 done 127\n"
        "is_part(), copy->writes = 1: -> state 1 counted part sent 128 done 128\n"
        "is_part(), on_disk(): -> state 1 counted part flush sent 128 done 128\n"
        "is_part(), on_disk(), copy->flushed = 128: n1 COMPLETE s0 h10 v1 d2 part 128:128, 10 s\n"
        "-> state 1 counted part asked sent 128 done 128\n"
        "is_part(), set->state = REP_SET_RESERVED: -> state 1 counted part sent 128 done 128\n"
        "is_part(), set->target = copy->sent = copy->done = 0: -> state 1 part sent 0 done 0\n"
        "is_part(), copy->batched = true: -> state 1 part sent 128 done 128\n"
        "is_part(), set->seg->buffer = NULL: -> state 1 counted part sent 128 done 128\n");
}

static void is_closed(void)
{
    set->state = REP_SET_CLOSED;
    set->seg->prefix_id = (struct leat_prefix_id){128, 128};
}

static void wants_hibernated(void)
{
    set->state = REP_SET_HIBERNATING;
    set->seg->prefix_id = (struct leat_prefix_id){128, 128};
}

static void copy_is_closed_hibernated_and_resumed(void **state)
{
    (void)state;
    CASE(begun, step, is_closed());
    CASE(begun, step, is_closed(), copy->done = 127);
    CASE(begun, step, is_closed(), copy->writes = 1);
    CASE(begun, step, is_closed(), copy->state = REP_COPY_HIBERNATED);
    CASE(begun, step, wants_hibernated());
    CASE(begun, step, wants_hibernated(), copy->done = 127, set->target = 127);
    CASE(begun, step, wants_hibernated(), copy->writes = 1);
    CASE(begun, step, wants_hibernated(), set->target = 127);
    CASE(begun, step, wants_hibernated(), on_disk());
    CASE(begun, step, copy->state = REP_COPY_HIBERNATED);
    CASE(begun, step, wants_hibernated(), copy->state = REP_COPY_HIBERNATED);
    TRACE_IS(
        "is_closed(): n1 CLOSE s0 h10 v1 d1 128:128, 2 s\n"
        "-> state 1 counted sent 128 done 128\n"
        "is_closed(), copy->done = 127: -> state 1 counted sent 128 done 127\n"
        "is_closed(), copy->writes = 1: -> state 1 counted sent 128 done 128\n"
        "is_closed(), copy->state = REP_COPY_HIBERNATED: -> state 2 counted sent 128 done 128\n"
        "wants_hibernated(): n1 HIBERNATE s0 h10 v1 d1 128:128, 10 s\n"
        "-> state 1 counted sent 128 done 128\n"
        "wants_hibernated(), copy->done = 127, set->target = 127: -> state 1 counted sent 128 done "
        "127\n"
        "wants_hibernated(), copy->writes = 1: -> state 1 counted sent 128 done 128\n"
        "wants_hibernated(), set->target = 127: -> state 1 counted sent 128 done 128\n"
        "wants_hibernated(), on_disk(): -> state 1 counted flush sent 128 done 128\n"
        "copy->state = REP_COPY_HIBERNATED: n1 RESUME s0 h10 v1 d1, 10 s\n"
        "-> state 2 counted sent 128 done 128\n"
        "wants_hibernated(), copy->state = REP_COPY_HIBERNATED: -> state 2 counted sent 128 done "
        "128\n");
}

/* ---- a copy that is lost ---- */

static void lost(void)
{
    set->refused[0] = 7;
    rep_copy_lost(copy);
    trace("-> %u copies, need %u version %u%s%s%s%s\n", set->copy_count, owned->need,
          owned->version, owned->held_us == rig->now_us ? " held" : "",
          set->lost_us == rig->now_us ? " lost" : "", set->refused[0] ? " refused" : "",
          leat_list_empty(&owned->dirty_link) ? "" : " dirty");
}

static void lost_copy_raises_the_version_where_it_may_mislead(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, lost);
    CASE(begun, lost, copy->stamp_sent = 4);
    CASE(begun, lost, copy->stamp_sent = 4, owned->version = 9);
    CASE(begun, lost, owned->need = 5, owned->version = 5);
    CASE(begun, lost, owned->need = owned->version = owned->known = 5);
    CASE(begun, lost, set->state = REP_SET_RESERVED);
    CASE(begun, lost, set->state = REP_SET_CLOSED);
    CASE(begun, lost, set->dropping = true);
    CASE(begun, lost, set->state = REP_SET_HIBERNATING);
    CASE(begun, lost, copy->incomplete = true);
    CASE(begun, lost, copy->incomplete = copy->asked_whole = true);
    CASE(begun, lost, copy->state = REP_COPY_OPENING, copy->peer->open_count = 0);
    TRACE_IS(
        "(void)0: -> 1 copies, need 2 version 2 held dirty\n"
        "copy->stamp_sent = 4: -> 1 copies, need 5 version 5 held dirty\n"
        "copy->stamp_sent = 4, owned->version = 9: -> 1 copies, need 5 version 9 held dirty\n"
        "owned->need = 5, owned->version = 5: -> 1 copies, need 5 version 5 dirty\n"
        "owned->need = owned->version = owned->known = 5: -> 1 copies, need 5 version 5 held "
        "dirty\n"
        "set->state = REP_SET_RESERVED: -> 1 copies, need 0 version 1 dirty\n"
        "set->state = REP_SET_CLOSED: -> 1 copies, need 0 version 1 lost dirty\n"
        "set->dropping = true: -> 1 copies, need 0 version 1 dirty\n"
        "set->state = REP_SET_HIBERNATING: -> 1 copies, need 2 version 2 held lost dirty\n"
        "copy->incomplete = true: -> 1 copies, need 0 version 1 dirty\n"
        "copy->incomplete = copy->asked_whole = true: -> 1 copies, need 2 version 2 held dirty\n"
        "copy->state = REP_COPY_OPENING, copy->peer->open_count = 0: -> 1 copies, need 0 version 1 "
        "dirty\n");
}

/* ---- commits ---- */

static bool commit_was_answered;

static void on_commit(struct leat_store_req *req)
{
    trace("%s ", leat_err_name(req->rc));
    commit_was_answered = true;
}

static struct leat_store_req committing;

static void commits(void)
{
    begun();
    committing = (struct leat_store_req){.to_bytes = 128, .on_done = on_commit};
    set->commit = &committing;
    set->local_state = REP_LOCAL_ANSWERED;
}

static void commits_on_disk(void)
{
    commits();
    owned->options.durability = LEAT_DURABILITY_DISK;
    set->copies[0]->flushed = set->copies[1]->flushed = 128;
}

static void try_it(void)
{
    rep_set_commit_try(set);
    trace("->%s%s\n", set->commit ? " waits" : "",
          set->local_state == REP_LOCAL_ANSWERED ? " done here" : "");
}

static void commit_is_answered_when_all_that_counts_has_it(void **state)
{
    (void)state;
    CASE_AS_IT_IS(commits, try_it);
    CASE(commits, try_it, set->commit = NULL);
    CASE(commits, try_it, set->local_state = REP_LOCAL_ASKED);
    CASE(commits, try_it, set->local_rc = LEAT_E_DISK);
    CASE(commits, try_it, owned->fenced = true);
    CASE(commits, try_it, owned->need = 2, owned->version = 2);
    CASE(commits, try_it, owned->need = owned->known = 2);
    CASE(commits, try_it, owned->need = owned->known = set->stamped = 2);
    CASE(commits, try_it, owned->need = owned->known = set->stamped = 2,
         set->copies[0]->stamp = set->copies[1]->stamp = 2);
    CASE(commits, try_it, owned->need = owned->known = set->stamped = set->copies[1]->stamp = 2,
         copy->counted = false);
    CASE(commits, try_it, copy->done = 127);
    CASE(commits, try_it, copy->done = 127, copy->counted = false);
    CASE(commits, try_it, copy->done = 127, copy->counted = false, copy->incomplete = true,
         owned->options.min_copies = 3);
    CASE(commits, try_it, copy->state = REP_COPY_OPENING, owned->options.min_copies = 3);
    CASE(commits, try_it, owned->options.min_copies = 3);
    CASE(commits, try_it, owned->options.min_copies = 4);
    CASE(commits, try_it, set->local_state = REP_LOCAL_IDLE);
    CASE_AS_IT_IS(commits_on_disk, try_it);
    CASE(commits_on_disk, try_it, set->local_state = REP_LOCAL_IDLE);
    CASE(commits_on_disk, try_it, set->local_rc = LEAT_E_DISK);
    CASE(commits_on_disk, try_it, copy->flushed = 127);
    CASE(commits_on_disk, try_it, copy->flushed = 127, copy->counted = false);
    TRACE_IS("(void)0: OK ->\n"
             "set->commit = NULL: -> done here\n"
             "set->local_state = REP_LOCAL_ASKED: -> waits\n"
             "set->local_rc = LEAT_E_DISK: OK ->\n"
             "owned->fenced = true: STALE_EPOCH -> done here\n"
             "owned->need = 2, owned->version = 2: -> waits done here\n"
             "owned->need = owned->known = 2: -> waits done here\n"
             "owned->need = owned->known = set->stamped = 2: -> waits done here\n"
             "owned->need = owned->known = set->stamped = 2, set->copies[0]->stamp = "
             "set->copies[1]->stamp = 2: OK ->\n"
             "owned->need = owned->known = set->stamped = set->copies[1]->stamp = 2, copy->counted "
             "= false: OK ->\n"
             "copy->done = 127: -> waits done here\n"
             "copy->done = 127, copy->counted = false: OK ->\n"
             "copy->done = 127, copy->counted = false, copy->incomplete = true, "
             "owned->options.min_copies = 3: -> waits done here\n"
             "copy->state = REP_COPY_OPENING, owned->options.min_copies = 3: -> waits done here\n"
             "owned->options.min_copies = 3: OK ->\n"
             "owned->options.min_copies = 4: -> waits done here\n"
             "set->local_state = REP_LOCAL_IDLE: OK ->\n"
             "(void)0: OK ->\n"
             "set->local_state = REP_LOCAL_IDLE: -> waits\n"
             "set->local_rc = LEAT_E_DISK: DISK -> done here\n"
             "copy->flushed = 127: -> waits done here\n"
             "copy->flushed = 127, copy->counted = false: OK ->\n");
}

/* ---- a set's next step ---- */

static void step_set(void)
{
    rep_set_step(set);
    trace("-> %u copies%s%s%s%s%s%s%s\n", set->copy_count,
          set->local_state == REP_LOCAL_ASKED ? " busy" : "",
          set->local_state == REP_LOCAL_ANSWERED ? " done" : "", set->stamp_busy ? " stamping" : "",
          set->state == REP_SET_HIBERNATED || set->state == REP_SET_RESUMING ? " hibernated" : "",
          rep_set_is_hibernated(set) ? " to be hibernated" : "", owned->lacking ? " lacking" : "",
          set->close || set->hibernate || set->resume ? " waits" : "");
}

static void asks(struct leat_store_req **which)
{
    committing = (struct leat_store_req){.on_done = on_commit};
    *which = &committing;
    set->seg->prefix_id = (struct leat_prefix_id){128, 128};
}

static void local(leat_err rc)
{
    set->local_state = REP_LOCAL_ANSWERED;
    set->local_rc = rc;
}

static void both(enum rep_copy_state state)
{
    set->copies[0]->state = set->copies[1]->state = (uint8_t)state;
}

static void own_copy_is_stamped_like_the_others(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, step_set);
    CASE(begun, step_set, set->stamped = 0);
    CASE(begun, step_set, set->stamped = 0, set->stamp_busy = true);
    CASE(begun, step_set, set->stamped = 0, set->state = REP_SET_CLOSED);
    CASE(begun, step_set, set->stamped = 0, set->state = REP_SET_RESUMING);
    CASE(begun, step_set, set->stamped = 0, set->state = REP_SET_HIBERNATING);
    CASE(begun, step_set, set->stamped = 0, set->stamp_retry_us = rig->now_us);
    CASE(begun, step_set, set->stamped = 0, set->stamp_retry_us = rig->now_us + 1);
    TRACE_IS(
        "(void)0: -> 2 copies\n"
        "set->stamped = 0: store STAMP s0 v1 role0 writer100\n"
        "-> 2 copies stamping\n"
        "set->stamped = 0, set->stamp_busy = true: -> 2 copies stamping\n"
        "set->stamped = 0, set->state = REP_SET_CLOSED: -> 2 copies\n"
        "set->stamped = 0, set->state = REP_SET_RESUMING: -> 2 copies hibernated\n"
        "set->stamped = 0, set->state = REP_SET_HIBERNATING: -> 2 copies to be hibernated\n"
        "set->stamped = 0, set->stamp_retry_us = rig->now_us: store STAMP s0 v1 role0 writer100\n"
        "-> 2 copies stamping\n"
        "set->stamped = 0, set->stamp_retry_us = rig->now_us + 1: -> 2 copies lacking\n");
}

static void copies_go(void)
{
    while (set->copy_count)
        rep_copy_remove(set->copies[set->copy_count - 1]);
    asks(&set->drop);
    set->dropping = true;
}

/* Goal: nothing writes from a segment any more, and nothing of it is under way here, before it is dropped. */
static void own_segment_is_dropped_last(void **state)
{
    (void)state;
    CASE(begun, step_set, copies_go());
    CASE(begun, step_set, copies_go(), set->writes = 1);
    CASE(begun, step_set, copies_go(), set->local_state = REP_LOCAL_ASKED);
    CASE(begun, step_set, copies_go(), set->stamp_busy = true);
    TRACE_IS("copies_go(): store DROP s0\n"
             "-> 0 copies busy\n"
             "copies_go(), set->writes = 1: -> 0 copies\n"
             "copies_go(), set->local_state = REP_LOCAL_ASKED: -> 0 copies busy\n"
             "copies_go(), set->stamp_busy = true: -> 0 copies stamping\n");
}

static void hibernates(void)
{
    asks(&set->hibernate);
    set->state = REP_SET_HIBERNATING;
}

static void resumes(void)
{
    asks(&set->resume);
    set->state = REP_SET_RESUMING;
}

static void close_hibernate_and_resume_go_here_first(void **state)
{
    (void)state;
    CASE(begun, step_set, asks(&set->close));
    CASE(begun, step_set, asks(&set->close), set->local_state = REP_LOCAL_ASKED);
    CASE(begun, step_set, asks(&set->close), set->stamp_busy = true);
    CASE(begun, step_set, asks(&set->close), local(LEAT_OK));
    CASE(begun, step_set, asks(&set->close), local(LEAT_E_DISK));
    CASE(begun, step_set, hibernates());
    CASE(begun, step_set, hibernates(), set->writes = 1);
    CASE(begun, step_set, hibernates(), set->stamp_busy = true);
    CASE(begun, step_set, hibernates(), copy->incomplete = true);
    CASE(begun, step_set, hibernates(), local(LEAT_OK));
    CASE(begun, step_set, hibernates(), local(LEAT_E_DISK));
    CASE(begun, step_set, hibernates(), local(LEAT_OK), both(REP_COPY_HIBERNATED));
    CASE(begun, step_set, hibernates(), local(LEAT_OK),
         set->copies[1]->state = REP_COPY_HIBERNATED);
    CASE(begun, step_set, resumes());
    CASE(begun, step_set, resumes(), set->local_state = REP_LOCAL_ASKED);
    CASE(begun, step_set, resumes(), local(LEAT_OK));
    CASE(begun, step_set, resumes(), local(LEAT_E_NO_MEMORY));
    CASE(begun, step_set, resumes(), local(LEAT_OK), both(REP_COPY_HIBERNATED));
    TRACE_IS(
        "asks(&set->close): store CLOSE s0\n"
        "-> 2 copies busy waits\n"
        "asks(&set->close), set->local_state = REP_LOCAL_ASKED: -> 2 copies busy waits\n"
        "asks(&set->close), set->stamp_busy = true: -> 2 copies stamping waits\n"
        "asks(&set->close), local(LEAT_OK): OK -> 2 copies\n"
        "asks(&set->close), local(LEAT_E_DISK): DISK -> 2 copies\n"
        "hibernates(): n2 HIBERNATE s0 h20 v1 d1 128:128, 10 s\n"
        "n1 HIBERNATE s0 h10 v1 d1 128:128, 10 s\n"
        "store HIBERNATE s0\n"
        "-> 2 copies busy to be hibernated waits\n"
        "hibernates(), set->writes = 1: n2 HIBERNATE s0 h20 v1 d1 128:128, 10 s\n"
        "n1 HIBERNATE s0 h10 v1 d1 128:128, 10 s\n"
        "-> 2 copies to be hibernated waits\n"
        "hibernates(), set->stamp_busy = true: n2 HIBERNATE s0 h20 v1 d1 128:128, 10 s\n"
        "n1 HIBERNATE s0 h10 v1 d1 128:128, 10 s\n"
        "-> 2 copies stamping to be hibernated waits\n"
        "hibernates(), copy->incomplete = true: n2 HIBERNATE s0 h20 v1 d1 128:128, 10 s\n"
        "n1 COMPLETE s0 h10 v1 d1 part 128:128, 10 s\n"
        "-> 2 copies to be hibernated waits\n"
        "hibernates(), local(LEAT_OK): n2 HIBERNATE s0 h20 v1 d1 128:128, 10 s\n"
        "n1 HIBERNATE s0 h10 v1 d1 128:128, 10 s\n"
        "-> 2 copies done hibernated to be hibernated waits\n"
        "hibernates(), local(LEAT_E_DISK): n2 HIBERNATE s0 h20 v1 d1 128:128, 10 s\n"
        "n1 HIBERNATE s0 h10 v1 d1 128:128, 10 s\n"
        "DISK -> 2 copies\n"
        "hibernates(), local(LEAT_OK), both(REP_COPY_HIBERNATED): OK -> 2 copies hibernated to be "
        "hibernated\n"
        "hibernates(), local(LEAT_OK), set->copies[1]->state = REP_COPY_HIBERNATED: n1 HIBERNATE "
        "s0 h10 v1 d1 "
        "128:128, 10 s\n"
        "-> 2 copies done hibernated to be hibernated waits\n"
        "resumes(): store RESUME s0\n"
        "-> 2 copies busy hibernated waits\n"
        "resumes(), set->local_state = REP_LOCAL_ASKED: -> 2 copies busy hibernated waits\n"
        "resumes(), local(LEAT_OK): OK -> 2 copies\n"
        "resumes(), local(LEAT_E_NO_MEMORY): NO_MEMORY -> 2 copies hibernated to be hibernated\n"
        "resumes(), local(LEAT_OK), both(REP_COPY_HIBERNATED): n2 RESUME s0 h20 v1 d1 128:128, 10 "
        "s\n"
        "n1 RESUME s0 h10 v1 d1 128:128, 10 s\n"
        "-> 2 copies done waits\n");
}

/* ---- what is told ---- */

static void on_segment(void *arg, const struct leat_rep_segment_status *told)
{
    (void)arg;
    trace(" s%llu%s%s of %u:", (unsigned long long)told->segment.v, told->closed ? " closed" : "",
          told->misplaced ? " misplaced" : "", told->wanted);
    for (unsigned i = 0; i < told->count; i++)
        trace(" n%u%s%s%s %u", rig_node_of(told->copies[i].node), told->copies[i].closed ? "c" : "",
              told->copies[i].hibernated ? "p" : "", told->copies[i].complete ? "" : "!",
              told->copies[i].bytes);
}

static void told(void)
{
    struct leat_primary_status all;
    struct leat_primary_log_status one;
    struct leat_rep_places places;
    leat_primary_status(rig->primary, &all);
    leat_primary_log_status(owned, &one);
    bool some = leat_primary_log_places(owned, &places);
    trace("%u logs, lack %llu/%llu, misplaced %llu, below %llu, held %llu; log %u of %u/%u lacks "
          "%llu v%u%s%s;",
          (unsigned)all.logs, (unsigned long long)all.segments_under_replicated,
          (unsigned long long)all.logs_under_replicated, (unsigned long long)all.segments_misplaced,
          (unsigned long long)all.logs_below_min, (unsigned long long)all.logs_suspended,
          one.copies_now, one.min_copies, one.copies, (unsigned long long)one.segments_lacking,
          one.version, one.suspended ? " held" : "", one.below_min ? " below" : "");
    leat_primary_log_each(owned, on_segment, NULL);
    trace("; %s", some ? "on" : "nowhere");
    for (unsigned i = 0; i < places.count; i++)
        trace(" n%u%s", rig_node_of(places.nodes[i]), i < places.whole ? "" : "!");
    trace("\n");
}

static void peers(void)
{
    struct leat_rep_peer_status out[4] = {{0}};
    size_t count = leat_primary_peers(rig->primary, out, 2);
    trace("%zu, kinds %u:", count, leat_primary_transports(rig->primary));
    for (unsigned i = 0; i < 3; i++)
        trace(" %u%s%s%s \"%s\" %llu %u;", out[i].node, out[i].up ? " up" : "",
              out[i].attached ? " attached" : "", out[i].says_gone ? " gone" : "",
              out[i].transport ? out[i].transport : "-", (unsigned long long)out[i].load_bytes,
              out[i].replicas);
    trace("\n");
}

static void segments_and_their_copies_are_told(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, told);
    CASE(begun, told, set->misplaced = true);
    CASE(begun, told, set->seg->integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(begun, told, set->state = REP_SET_RESERVING);
    CASE(begun, told, set->dropping = true);
    CASE(begun, told, set->state = REP_SET_RESERVED);
    CASE(begun, told, set->state = REP_SET_CLOSED);
    CASE(begun, told, copy->incomplete = true);
    CASE(begun, told, copy->state = REP_COPY_OPENING);
    CASE(begun, told, copy->state = REP_COPY_CLOSED);
    CASE(begun, told, copy->state = REP_COPY_HIBERNATED);
    CASE(begun, told, owned->need = 2);
    CASE(begun, told, owned->options.min_copies = 4);
    CASE(begun, told, owned->options.min_copies = 5);
    CASE(begun, told, owned->options.copies = 2);
    TRACE_IS(
        "(void)0: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 3 of 2/3 lacks 0 v1; s0 "
        "of 2: n1 128 n2 128; on n1 n2\n"
        "set->misplaced = true: 1 logs, lack 0/0, misplaced 1, below 0, held 0; log 3 of 2/3 "
        "lacks 0 v1; s0 misplaced of 2: n1 128 n2 128; on n1 n2\n"
        "set->seg->integrity = LEAT_INTEGRITY_CORRUPT: 1 logs, lack 1/1, misplaced 0, below 0, "
        "held 0; log 3 of "
        "2/3 lacks 1 v1; s0 of 2: n1 128 n2 128; on n1 n2\n"
        "set->state = REP_SET_RESERVING: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 0 of "
        "2/3 lacks 0 v1; s0 of 2: n1 128 n2 128; nowhere\n"
        "set->dropping = true: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 0 of 2/3 "
        "lacks 0 v1; s0 of 2: n1 128 n2 128; nowhere\n"
        "set->state = REP_SET_RESERVED: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 3 of "
        "2/3 "
        "lacks 0 v1; s0 of 2: n1 128 n2 128; nowhere\n"
        "set->state = REP_SET_CLOSED: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 3 of 2/3 "
        "lacks 0 v1; s0 closed of 2: n1 128 n2 128; on n1 n2\n"
        "copy->incomplete = true: 1 logs, lack 1/1, misplaced 0, below 0, held 0; log 2 of "
        "2/3 lacks 1 v1; s0 of 2: n1! 128 n2 128; on n2 n1!\n"
        "copy->state = REP_COPY_OPENING: 1 logs, lack 1/1, misplaced 0, below 0, held 0; log "
        "2 of 2/3 lacks 1 v1; s0 of 2: n2 128; on n2\n"
        "copy->state = REP_COPY_CLOSED: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 3 "
        "of 2/3 lacks 0 v1; s0 of 2: n1c 128 n2 128; on n1 n2\n"
        "copy->state = REP_COPY_HIBERNATED: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 3 "
        "of 2/3 lacks 0 v1; s0 of 2: n1p 128 n2 128; on n1 n2\n"
        "owned->need = 2: 1 logs, lack 0/0, misplaced 0, below 0, held 1; log 3 of 2/3 lacks "
        "0 v1 held; s0 of 2: n1 128 n2 128; on n1 n2\n"
        "owned->options.min_copies = 4: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 3 "
        "of 4/3 lacks 0 v1; s0 of 2: n1 128 n2 128; on n1 n2\n"
        "owned->options.min_copies = 5: 1 logs, lack 0/0, misplaced 0, below 1, held 0; log 3 "
        "of 5/3 lacks 0 v1 below; s0 of 2: n1 128 n2 128; on n1 n2\n"
        "owned->options.copies = 2: 1 logs, lack 0/0, misplaced 0, below 0, held 0; log 3 of "
        "2/2 lacks 0 v1; s0 of 1: n1 128 n2 128; on n1 n2\n");
}

static void refuses(leat_err rc)
{
    copy->peer->refused = rc;
    copy->peer->state = REP_PEER_UP;
}

/* Closed, and one of its copies is gone. */
static void settled(void)
{
    begun();
    is_closed();
    both(REP_COPY_CLOSED);
    copy->peer->open_count = set->copies[1]->peer->open_count = 0;
    rep_copy_remove(set->copies[1]);
    rep_set_settle(set);
}

static void segments_that_are_settled_are_told(void **state)
{
    (void)state;
    CASE_AS_IT_IS(settled, told);
    CASE(settled, told, copy->incomplete = true);
    CASE(settled, told, set->misplaced = true);
    TRACE_IS("(void)0: 1 logs, lack 1/1, misplaced 0, below 0, held 0; log 2 of 2/3 lacks 1 v1; s0 "
             "closed of 2: n1c 128; on n1\n"
             "copy->incomplete = true: 1 logs, lack 1/1, misplaced 0, below 0, held 0; log 1 of "
             "2/3 lacks 1 v1; s0 closed of 2: n1c! 128; on n1!\n"
             "set->misplaced = true: 1 logs, lack 1/1, misplaced 1, below 0, held 0; log 2 of 2/3 "
             "lacks 1 v1; s0 closed misplaced of 2: n1c 128; on n1\n");
}

static void nodes_are_told(void **state)
{
    (void)state;
    CASE_AS_IT_IS(begun, peers);
    CASE(begun, peers, copy->peer->state = REP_PEER_DOWN);
    CASE(begun, peers, copy->peer->state = REP_PEER_UP);
    CASE(begun, peers, refuses(LEAT_E_STALE_EPOCH));
    CASE(begun, peers, refuses(LEAT_E_STARTING));
    CASE(begun, peers, copy->peer->refused = LEAT_E_STALE_EPOCH);
    CASE(begun, peers, copy->peer->load_bytes = 77, copy->peer->open_count = 3);
    TRACE_IS(
        "(void)0: 3, kinds 8: 0 up attached \"shm\" 0 1; 1 up attached \"shm\" 0 1; 0 \"-\" 0 0;\n"
        "copy->peer->state = REP_PEER_DOWN: 3, kinds 8: 0 \"\" 0 1; 1 up attached \"shm\" 0 1; 0 "
        "\"-\" 0 0;\n"
        "copy->peer->state = REP_PEER_UP: 3, kinds 8: 0 up \"\" 0 1; 1 up attached \"shm\" 0 1; 0 "
        "\"-\" 0 0;\n"
        "refuses(LEAT_E_STALE_EPOCH): 3, kinds 8: 0 up gone \"\" 0 1; 1 up attached \"shm\" 0 1; 0 "
        "\"-\" 0 0;\n"
        "refuses(LEAT_E_STARTING): 3, kinds 8: 0 up \"\" 0 1; 1 up attached \"shm\" 0 1; 0 \"-\" 0 "
        "0;\n"
        "copy->peer->refused = LEAT_E_STALE_EPOCH: 3, kinds 8: 0 up attached \"shm\" 0 1; 1 up "
        "attached \"shm\" 0 1; 0 \"-\" 0 0;\n"
        "copy->peer->load_bytes = 77, copy->peer->open_count = 3: 3, kinds 8: 0 up attached "
        "\"shm\" 77 3; 1 up attached \"shm\" 0 1; 0 \"-\" 0 0;\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TRACE_TEST(copy_is_made_what_it_should_be),
        TRACE_TEST(copy_that_is_a_part_counts_before_it_is_whole),
        TRACE_TEST(copy_is_closed_hibernated_and_resumed),
        TRACE_TEST(lost_copy_raises_the_version_where_it_may_mislead),
        TRACE_TEST(commit_is_answered_when_all_that_counts_has_it),
        TRACE_TEST(own_copy_is_stamped_like_the_others),
        TRACE_TEST(own_segment_is_dropped_last),
        TRACE_TEST(close_hibernate_and_resume_go_here_first),
        TRACE_TEST(segments_and_their_copies_are_told),
        TRACE_TEST(segments_that_are_settled_are_told),
        TRACE_TEST(nodes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
