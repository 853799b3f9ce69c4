/* SPDX-License-Identifier: Apache-2.0 */
/* What a log holds: segments that come, are damaged, repaired, given up, or missing; each condition by itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/node_log.h"
#include "poke.h"

static void node_log(void *ctx, enum leat_node_log_level level, const char *line)
{
    (void)ctx;
    (void)level;
    const char *text = strstr(line, "log 1/0/0");
    trace("\"%s\" ", text ? text : line);
}

static int setup(void **state)
{
    leat_node_log_set(node_log, NULL, LEAT_NODE_LOG_WARN);
    return trace_setup(state);
}

static int teardown(void **state)
{
    (void)state;
    leat_node_log_set(NULL, NULL, LEAT_NODE_LOG_ERROR);
    return 0;
}

#define HOLDS_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void four(void)
{
    segments(4);
}

/* ---- given up ---- */
static void given_up(void)
{
    it->dirty = false;
    it->passed_look = true, it->skip = LOG_SKIP_GOES;
    log_damage_name(it);
    bool some = log_damage_give_up(it);
    trace("-> %s%s seen %u, reads %u of them", some ? "one" : "none",
          it->skip == LOG_SKIP_ASKED ? ", asked" : "", it->passed_seen, it->reads_in_flight);
    for (uint32_t i = 0; i < it->slot_count; i++)
        trace(" %u", slot(i)->file_reads);
    trace("\n");
}

static void answered(void)
{
    given_up();
    while (fake->queued)
        one_done();
    trace("   then%s%s%s seen %u, reads %u:", it->skip == LOG_SKIP_ASKED ? " asked" : "",
          it->skip == LOG_SKIP_FAILED ? " failed" : "", it->passed_look ? " look" : "",
          it->passed_seen, it->reads_in_flight);
    for (uint32_t i = 0; i < it->slot_count; i++)
        trace(" %u%s%s%u", slot(i)->file_reads, slot(i)->given_up ? "g" : "-",
              slot(i)->front_given_up ? "f" : "-", (unsigned)slot(i)->seg->passed_bytes);
    trace("%s\n", it->dirty ? ", dirty" : "");
}

static void fails(void)
{
    fake->fail_kinds = 1u << LEAT_STORE_GIVE_UP;
    fake->fail_rc = LEAT_E_DISK;
    fake->fail_request_at = fake->requests + 1;
}

static void rots(uint32_t index)
{
    slot(index)->seg->integrity = LEAT_INTEGRITY_CORRUPT;
    slot(index)->repair = LOG_REPAIR_LOST;
}

static void passes(uint32_t index, uint32_t count)
{
    slot(index)->seg->passed_bytes = count;
}

static void next_thing_that_is_lost_is_given_up(void **state)
{
    (void)state;
    CASE_AS_IT_IS(four, given_up);
    CASE(four, given_up, rots(1));
    CASE(four, given_up, rots(1), rots(2));
    CASE(four, given_up, rots(1), slot(1)->changing = true);
    CASE(four, given_up, rots(1), slot(1)->dropping = true);
    CASE(four, given_up, rots(1), rots(2), slot(1)->changing = true);
    CASE(four, given_up, rots(1), slot(1)->repair = LOG_REPAIR_NONE);
    CASE(four, given_up, rots(1), slot(1)->seg->integrity = LEAT_INTEGRITY_OK);
    CASE(four, given_up, rots(1), slot(1)->given_up = true);
    CASE(four, given_up, rots(1), slot(1)->closed = false);
    CASE(four, given_up, it->state = LEAT_LOG_DAMAGED, rots(1));
    CASE(four, given_up, it->state = LEAT_LOG_DAMAGED, rots(1), it->slot_count = 2);
    CASE(four, given_up, it->first_offset = 200, rots(1));
    CASE(four, given_up, it->first_offset = 1300, rots(3));
    CASE(four, given_up, it->first_offset = 300, it->state = LEAT_LOG_DAMAGED, rots(1),
         it->slot_count = 2);
    CASE(four, given_up, slot(1)->seg->base_offset += 3);
    CASE(four, given_up, slot(1)->seg->base_offset += 3, it->state = LEAT_LOG_DAMAGED);
    CASE(four, given_up, slot(1)->seg->base_offset += 3, slot(1)->front_given_up = true);
    CASE(four, given_up, slot(1)->seg->base_offset += 3, slot(1)->joint = LOG_JOINT_JUMPED);
    CASE(four, given_up, slot(1)->seg->base_offset += 3, it->backfill = LOG_BACKFILL_FOLLOWS);
    CASE(four, given_up, slot(1)->seg->base_offset += 3, it->backfill = LOG_BACKFILL_FOLLOWS,
         it->holes = true);
    CASE(four, given_up, passes(1, 7));
    CASE(four, given_up, passes(1, 7), slot(1)->closed = false);
    CASE(four, given_up, passes(1, 7), slot(1)->changing = true);
    CASE(four, given_up, passes(1, 7), slot(1)->dropping = true);
    CASE(four, given_up, passes(1, 7), rots(2));
    TRACE_IS(
        "(void)0: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "rots(1): GIVE_UP s1 it passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
        "rots(1), rots(2): GIVE_UP s1 it passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
        "rots(1), slot(1)->changing = true: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "rots(1), slot(1)->dropping = true: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "rots(1), rots(2), slot(1)->changing = true: GIVE_UP s2 it passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 0 1 0 0\n"
        "rots(1), slot(1)->repair = LOG_REPAIR_NONE: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "rots(1), slot(1)->seg->integrity = LEAT_INTEGRITY_OK: -> none seen 0, reads 0 of them 0 0 "
        "0 0 0\n"
        "rots(1), slot(1)->given_up = true: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "rots(1), slot(1)->closed = false: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "it->state = LEAT_LOG_DAMAGED, rots(1): -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "it->state = LEAT_LOG_DAMAGED, rots(1), it->slot_count = 2: GIVE_UP s1 it passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 1\n"
        "it->first_offset = 200, rots(1): -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "it->first_offset = 1300, rots(3): -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "it->first_offset = 300, it->state = LEAT_LOG_DAMAGED, rots(1), it->slot_count = 2: "
        "GIVE_UP s1 it passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 1\n"
        "slot(1)->seg->base_offset += 3: GIVE_UP s1 its front passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
        "slot(1)->seg->base_offset += 3, it->state = LEAT_LOG_DAMAGED: -> none seen 0, reads 0 of "
        "them 0 0 0 0 0\n"
        "slot(1)->seg->base_offset += 3, slot(1)->front_given_up = true: -> none seen 0, reads 0 "
        "of them 0 0 0 0 0\n"
        "slot(1)->seg->base_offset += 3, slot(1)->joint = LOG_JOINT_JUMPED: -> none seen 0, reads "
        "0 of them 0 0 0 0 0\n"
        "slot(1)->seg->base_offset += 3, it->backfill = LOG_BACKFILL_FOLLOWS: GIVE_UP s1 its front "
        "passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
        "slot(1)->seg->base_offset += 3, it->backfill = LOG_BACKFILL_FOLLOWS, it->holes = true: -> "
        "none seen 0, reads 0 of them 0 0 0 0 0\n"
        "passes(1, 7): GIVE_UP s1 passed 0\n"
        "-> one, asked seen 7, reads 1 of them 0 1 0 0 0\n"
        "passes(1, 7), slot(1)->closed = false: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "passes(1, 7), slot(1)->changing = true: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "passes(1, 7), slot(1)->dropping = true: -> none seen 0, reads 0 of them 0 0 0 0 0\n"
        "passes(1, 7), rots(2): GIVE_UP s2 it passed 0\n"
        "-> one, asked seen 0, reads 1 of them 0 0 1 0 0\n");
}

static void giving_up_that_fails_leaves_all_as_it_was(void **state)
{
    (void)state;
    CASE(four, answered, rots(1));
    CASE(four, answered, rots(1), fails());
    CASE(four, answered, rots(1), it->passed_seen = 1);
    CASE(four, answered, slot(1)->seg->base_offset += 3);
    CASE(four, answered, slot(1)->seg->base_offset += 3, fails());
    CASE(four, answered, passes(1, 7));
    CASE(four, answered, passes(1, 1), fails());
    CASE(four, answered, passes(1, 7), fails());
    TRACE_IS("rots(1): GIVE_UP s1 it passed 0\n"
             "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
             "   then look seen 0, reads 0: 0--0 0g-0 0--0 0--0 0--0, dirty\n"
             "rots(1), fails(): GIVE_UP s1 it passed 0\n"
             "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
             "   then failed look seen 0, reads 0: 0--0 0--0 0--0 0--0 0--0, dirty\n"
             "rots(1), it->passed_seen = 1: GIVE_UP s1 it passed 0\n"
             "-> one, asked seen 1, reads 1 of them 0 1 0 0 0\n"
             "   then look seen 0, reads 0: 0--0 0g-0 0--0 0--0 0--0, dirty\n"
             "slot(1)->seg->base_offset += 3: GIVE_UP s1 its front passed 0\n"
             "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
             "   then look seen 0, reads 0: 0--0 0-f0 0--0 0--0 0--0, dirty\n"
             "slot(1)->seg->base_offset += 3, fails(): GIVE_UP s1 its front passed 0\n"
             "-> one, asked seen 0, reads 1 of them 0 1 0 0 0\n"
             "   then failed look seen 0, reads 0: 0--0 0--0 0--0 0--0 0--0, dirty\n"
             "passes(1, 7): GIVE_UP s1 passed 0\n"
             "-> one, asked seen 7, reads 1 of them 0 1 0 0 0\n"
             "   then look seen 0, reads 0: 0--0 0--0 0--0 0--0 0--0, dirty\n"
             "passes(1, 1), fails(): GIVE_UP s1 passed 0\n"
             "-> one, asked seen 1, reads 1 of them 0 1 0 0 0\n"
             "   then failed look seen 0, reads 0: 0--0 0--1 0--0 0--0 0--0, dirty\n"
             "passes(1, 7), fails(): GIVE_UP s1 passed 0\n"
             "-> one, asked seen 7, reads 1 of them 0 1 0 0 0\n"
             "   then failed look seen 0, reads 0: 0--0 0--7 0--0 0--0 0--0, dirty\n");
}

static void failed_look(void)
{
    it->skip = LOG_SKIP_GOES, log_damage_name(it);
    log_damage_give_up(it) ? (void)0 : trace("none ");
    it->passed_look = false;
    fake->fail_request_at = fake->requests + 1;
    while (fake->queued)
        one_done();
    trace("-> %slook\n", it->passed_look ? "" : "no ");
}

static void bytes_that_were_not_noted_are_looked_for_again(void **state)
{
    (void)state;
    CASE(four, failed_look, fails(), rots(1));
    CASE(four, failed_look, fails(), it->passed_look = true, passes(2, 1));
    CASE(four, failed_look, fails(), it->passed_look = false, passes(2, 1));
    TRACE_IS("fails(), rots(1): GIVE_UP s1 it passed 0\n"
             "-> no look\n"
             "fails(), it->passed_look = true, passes(2, 1): GIVE_UP s2 passed 0\n"
             "-> look\n"
             "fails(), it->passed_look = false, passes(2, 1): none -> no look\n");
}

static void passed(void)
{
    struct leat_log_passed out;
    leat_log_passed_over(it, &out);
    trace("-> %llu bytes in %llu, s%llu next %llu%s\n", (unsigned long long)out.bytes,
          (unsigned long long)out.segments, (unsigned long long)out.segment,
          (unsigned long long)out.next_offset, it->passed_look ? ", look" : "");
}

static void bytes_that_were_passed_over_are_summed_up(void **state)
{
    (void)state;
    CASE(four, passed, it->passed_look = true);
    CASE(four, passed, it->passed_look = true, passes(1, 7));
    CASE(four, passed, it->passed_look = false, passes(1, 7));
    CASE(four, passed, it->passed_look = true, passes(1, 7), passes(2, 1));
    CASE(four, passed, it->passed_look = true, passes(4, 5));
    TRACE_IS(
        "it->passed_look = true: -> 0 bytes in 0, s0 next 0\n"
        "it->passed_look = true, passes(1, 7): -> 7 bytes in 1, s1 next 200, look\n"
        "it->passed_look = false, passes(1, 7): -> 0 bytes in 0, s0 next 0\n"
        "it->passed_look = true, passes(1, 7), passes(2, 1): -> 8 bytes in 2, s2 next 750, look\n"
        "it->passed_look = true, passes(4, 5): -> 0 bytes in 0, s0 next 0, look\n");
}

/* ---- what operators hear ---- */
static void trouble(void)
{
    char out[400];
    leat_err rc = leat_log_trouble(it, out, sizeof out);
    trace("-> %s \"%s\"%s\n", leat_err_name(rc), out, it->damage_look ? ", look" : "");
}

static void trouble_is_told_in_words(void **state)
{
    (void)state;
    CASE(four, trouble, it->damage_look = true);
    CASE(four, trouble, it->damage_look = true, it->backfill = LOG_BACKFILL_FOLLOWS);
    CASE(four, trouble, it->damage_look = true, it->restored = LOG_FRONT_UNKNOWN);
    CASE(four, trouble, it->damage_look = true, rots(1));
    CASE(four, trouble, it->damage_look = false, rots(1));
    CASE(four, trouble, it->damage_look = true, rots(1), rots(2));
    CASE(four, trouble, it->damage_look = true, rots(1), rots(2), rots(3));
    CASE(four, trouble, it->damage_look = true, rots(1), rots(2), rots(3), rots(0));
    CASE(four, trouble, it->damage_look = true, slot(1)->seg->base_offset += 3);
    CASE(four, trouble, it->damage_look = true, slot(2)->seg->base_offset += 3,
         slot(2)->seg->id.v = 3);
    CASE(four, trouble, it->damage_look = true, slot(2)->seg->base_offset += 3,
         slot(2)->seg->id.v = 4);
    CASE(four, trouble, it->damage_look = true, it->first_offset = 50, rots(0), rots(1));
    CASE(four, trouble, it->damage_look = true, it->first_offset = 99, rots(0));
    CASE(four, trouble, it->damage_look = true, it->first_offset = 100, rots(0));
    CASE(four, trouble, it->damage_look = true, it->first_offset = 250, rots(0), rots(1), rots(2));
    CASE(four, trouble, it->damage_look = true, slot(1)->seg->next_offset = 100, rots(1));
    CASE(four, trouble, leat_log_set_state(it, LEAT_LOG_WAITING, "waits"));
    CASE(four, trouble, leat_log_set_state(it, LEAT_LOG_DAMAGED, "rots"));
    CASE(four, trouble, leat_log_set_state(it, LEAT_LOG_STOPPED, "stands"));
    TRACE_IS(
        "it->damage_look = true: -> OK \"\"\n"
        "it->damage_look = true, it->backfill = LOG_BACKFILL_FOLLOWS: -> OK \"\", look\n"
        "it->damage_look = true, it->restored = LOG_FRONT_UNKNOWN: -> OK \"\", look\n"
        "it->damage_look = true, rots(1): -> DAMAGED \"segment 1 with offsets 100 to 199 is "
        "damaged\", look\n"
        "it->damage_look = false, rots(1): -> OK \"\"\n"
        "it->damage_look = true, rots(1), rots(2): -> DAMAGED \"segment 1 with offsets 100 to 199 "
        "is damaged, segment 2 with offsets 200 to 749 is damaged\", look\n"
        "it->damage_look = true, rots(1), rots(2), rots(3): -> DAMAGED \"segment 1 with offsets "
        "100 to 199 is damaged, segment 2 with offsets 200 to 749 is damaged, and 1 places more\", "
        "look\n"
        "it->damage_look = true, rots(1), rots(2), rots(3), rots(0): -> DAMAGED \"segment 0 with "
        "offsets 0 to 99 is damaged, segment 1 with offsets 100 to 199 is damaged, and 2 places "
        "more\", look\n"
        "it->damage_look = true, slot(1)->seg->base_offset += 3: -> DAMAGED \"offsets 100 to 102 "
        "are damaged\", look\n"
        "it->damage_look = true, slot(2)->seg->base_offset += 3, slot(2)->seg->id.v = 3: -> "
        "DAMAGED \"segment 2 with offsets 200 to 202 is missing\", look\n"
        "it->damage_look = true, slot(2)->seg->base_offset += 3, slot(2)->seg->id.v = 4: -> "
        "DAMAGED \"segments 2 to 3 with offsets 200 to 202 are missing\", look\n"
        "it->damage_look = true, it->first_offset = 50, rots(0), rots(1): -> DAMAGED \"segment 0 "
        "with offsets 50 to 99 is damaged, segment 1 with offsets 100 to 199 is damaged\", look\n"
        "it->damage_look = true, it->first_offset = 99, rots(0): -> DAMAGED \"segment 0 with "
        "offsets 99 to 99 is damaged\", look\n"
        "it->damage_look = true, it->first_offset = 100, rots(0): -> OK \"\"\n"
        "it->damage_look = true, it->first_offset = 250, rots(0), rots(1), rots(2): -> DAMAGED "
        "\"segment 2 with offsets 250 to 749 is damaged\", look\n"
        "it->damage_look = true, slot(1)->seg->next_offset = 100, rots(1): -> DAMAGED \"segment 1 "
        "with no record of the log is damaged, offsets 100 to 199 are damaged\", look\n"
        "leat_log_set_state(it, LEAT_LOG_WAITING, \"waits\"): -> LOG_INCOMPLETE \"waits\", look\n"
        "leat_log_set_state(it, LEAT_LOG_DAMAGED, \"rots\"): -> DAMAGED \"rots\", look\n"
        "leat_log_set_state(it, LEAT_LOG_STOPPED, \"stands\"): -> DISK \"stands\", look\n");
}

static void trouble_in_few_bytes(void)
{
    char out[64];
    for (size_t n = 1; n < 64; n += 31) {
        memset(out, '#', sizeof out);
        leat_err rc = leat_log_trouble(it, out, n);
        trace("-> %s %zu \"%s\"%c\n", leat_err_name(rc), n, out, out[n]);
    }
}

static void trouble_is_cut_where_there_is_no_room(void **state)
{
    (void)state;
    CASE(four, trouble_in_few_bytes, it->damage_look = true, rots(1), rots(2), rots(3));
    TRACE_IS("it->damage_look = true, rots(1), rots(2), rots(3): -> DAMAGED 1 \"\"#\n"
             "-> DAMAGED 32 \"segment 1 with offsets 100 to 1\"#\n"
             "-> DAMAGED 63 \"segment 1 with offsets 100 to 199 is damaged, segment 2 with o\"#\n");
}

/* ---- segments that come later ---- */
static void told_done(void)
{
    it->dirty = false;
    leat_log_older_done(it, false);
    trace("->%s%s%s%s\n", log_backfill_runs(it) ? " follow" : "",
          it->backfill >= LOG_BACKFILL_LOOKED ? " looked" : "", it->damage_look ? " look" : "",
          it->dirty ? " dirty" : "");
}

static void two_of_four(void)
{
    four();
    it->slot_begin += 2;
    it->slot_count -= 2;
    it->backfill = LOG_BACKFILL_FOLLOWS;
    it->damage_look = false;
}

static void older_segments_that_do_not_come_are_told_once(void **state)
{
    (void)state;
    CASE_AS_IT_IS(two_of_four, told_done);
    CASE(two_of_four, told_done, it->backfill = LOG_BACKFILL_AGAIN);
    CASE(two_of_four, told_done, it->backfill = LOG_BACKFILL_NONE);
    CASE(two_of_four, told_done, it->first_segment = 2);
    CASE(two_of_four, told_done, it->first_segment = 2, it->backfill = LOG_BACKFILL_AGAIN);
    CASE(two_of_four, told_done, it->first_segment = 1);
    TRACE_IS("(void)0: \"log 1/0/0 of s: segment 1 is on no node that is up: reads in front of "
             "segment 2 wait\" -> looked look dirty\n"
             "it->backfill = LOG_BACKFILL_AGAIN: -> looked look dirty\n"
             "it->backfill = LOG_BACKFILL_NONE: ->\n"
             "it->first_segment = 2: -> looked look dirty\n"
             "it->first_segment = 2, it->backfill = LOG_BACKFILL_AGAIN: -> looked look dirty\n"
             "it->first_segment = 1: \"log 1/0/0 of s: segment 1 is on no node that is up: reads "
             "in front of segment 2 wait\" -> looked look dirty\n");
}

static void front_given_up(void)
{
    it->dirty = false;
    leat_log_front_give_up(it, it->options.remade);
    trace("-> s%llu/%llu at %llu/%llu%s\n", (unsigned long long)it->first_segment,
          (unsigned long long)it->trim_segment, (unsigned long long)it->first_offset,
          (unsigned long long)it->trim_offset, it->dirty ? ", dirty" : "");
}

static void accepted(void)
{
    two_of_four();
    it->front_accepted = true;
}

static void what_went_with_an_accepted_loss_is_not_waited_for(void **state)
{
    (void)state;
    CASE_AS_IT_IS(accepted, front_given_up);
    CASE(accepted, front_given_up, it->front_accepted = false);
    CASE(accepted, front_given_up, it->front_accepted = false, it->options.remade = true);
    CASE(accepted, front_given_up, it->restored = LOG_FRONT_UNKNOWN);
    CASE(accepted, front_given_up, it->first_segment = it->trim_segment = 2);
    CASE(accepted, front_given_up, it->trim_segment = 1);
    CASE(accepted, front_given_up, it->first_offset = it->trim_offset = slot(0)->seg->base_offset);
    CASE(accepted, front_given_up,
         it->first_offset = it->trim_offset = slot(0)->seg->base_offset + 1);
    CASE(accepted, front_given_up,
         it->first_offset = it->trim_offset = slot(0)->seg->base_offset - 1);
    TRACE_IS("(void)0: \"log 1/0/0 of s: segments 0 to 1 went with what an operator gave up\" -> "
             "s2/2 at 200/200, dirty\n"
             "it->front_accepted = false: -> s0/0 at 0/0\n"
             "it->front_accepted = false, it->options.remade = true: \"log 1/0/0 of s: segments 0 "
             "to 1 went with what an operator gave up\" -> s2/2 at 200/200, dirty\n"
             "it->restored = LOG_FRONT_UNKNOWN: -> s0/0 at 0/0\n"
             "it->first_segment = it->trim_segment = 2: -> s2/2 at 0/0\n"
             "it->trim_segment = 1: -> s0/1 at 0/0\n"
             "it->first_offset = it->trim_offset = slot(0)->seg->base_offset: \"log 1/0/0 of s: "
             "segments 0 to 1 went with what an operator gave up\" -> s2/2 at 200/200, dirty\n"
             "it->first_offset = it->trim_offset = slot(0)->seg->base_offset + 1: \"log 1/0/0 of "
             "s: segments 0 to 1 went with what an operator gave up\" -> s2/2 at 201/201, dirty\n"
             "it->first_offset = it->trim_offset = slot(0)->seg->base_offset - 1: \"log 1/0/0 of "
             "s: segments 0 to 1 went with what an operator gave up\" -> s2/2 at 200/200, dirty\n");
}

static struct leat_segment comes;
static uint8_t a_byte;

static void added(void)
{
    uint64_t closed = it->closed_bytes, memory = it->memory_bytes;
    it->dirty = false;
    leat_err rc = leat_log_segment_add(it, &comes);
    trace("-> %s, %llu closed %llu memory more, held", leat_err_name(rc),
          (unsigned long long)(it->closed_bytes - closed),
          (unsigned long long)(it->memory_bytes - memory));
    for (uint32_t i = 0; i < it->slot_count; i++)
        trace(" %llu%s%s%s%s%s", (unsigned long long)slot(i)->seg->id.v, slot(i)->closed ? "c" : "",
              slot(i)->given_up ? "g" : "", slot(i)->front_given_up ? "f" : "",
              log_slot_is_lost(slot(i)) ? "l" : "", slot(i)->seg->flushed ? "" : "!");
    trace("%s%s%s\n", it->passed_look ? ", look" : "", it->dirty ? ", dirty" : "",
          comes.log_pointer == it && comes.post == it->env->post ? ", its own" : "");
    if (rc == LEAT_OK) comes.buffer = NULL;
}

static void one_comes(void)
{
    two_of_four();
    slot(2)->seg->flushed = true;
    comes = (struct leat_segment){.id = {1},
                                  .capacity = 16384,
                                  .state = LEAT_SEGMENT_CLOSED,
                                  .prefix_id = {5000, 1},
                                  .base_offset = 50,
                                  .next_offset = 100};
}

static void segment_that_comes_takes_its_place(void **state)
{
    (void)state;
    CASE_AS_IT_IS(one_comes, added);
    CASE(one_comes, added, comes.buffer = &a_byte);
    CASE(one_comes, added, comes.given_up = true);
    CASE(one_comes, added, comes.front_given_up = true);
    CASE(one_comes, added, comes.passed_bytes = 1);
    CASE(one_comes, added, comes.integrity = LEAT_INTEGRITY_CORRUPT);
    CASE(one_comes, added, comes.id.v = 2);
    CASE(one_comes, added, comes.id.v = 3);
    CASE(one_comes, added, comes.id.v = it->next_segment);
    CASE(one_comes, added, comes.id.v = it->next_segment - 1);
    CASE(one_comes, added, slot(1)->seg->id.v = 30, it->next_segment = 40, comes.id.v = 29);
    CASE(one_comes, added, it->ending = LOG_DELETING);
    CASE(one_comes, added, it->ending = LOG_RELEASING);
    CASE(one_comes, added, it->restored = LOG_FRONT_UNKNOWN);
    TRACE_IS("(void)0: -> OK, 5000 closed 0 memory more, held 1c 2c 3c 4, dirty, its own\n"
             "comes.buffer = &a_byte: -> OK, 5000 closed 16384 memory more, held 1c! 2c 3c 4, "
             "dirty, its own\n"
             "comes.given_up = true: -> OK, 5000 closed 0 memory more, held 1cg 2c 3c 4, dirty, "
             "its own\n"
             "comes.front_given_up = true: -> OK, 5000 closed 0 memory more, held 1cf 2c 3c 4, "
             "dirty, its own\n"
             "comes.passed_bytes = 1: -> OK, 5000 closed 0 memory more, held 1c 2c 3c 4, look, "
             "dirty, its own\n"
             "comes.integrity = LEAT_INTEGRITY_CORRUPT: -> OK, 5000 closed 0 memory more, held 1cl "
             "2c 3c 4, dirty, its own\n"
             "comes.id.v = 2: -> EXISTS, 0 closed 0 memory more, held 2c 3c 4\n"
             "comes.id.v = 3: -> EXISTS, 0 closed 0 memory more, held 2c 3c 4\n"
             "comes.id.v = it->next_segment: -> NOT_OWNER, 0 closed 0 memory more, held 2c 3c 4\n"
             "comes.id.v = it->next_segment - 1: -> EXISTS, 0 closed 0 memory more, held 2c 3c 4\n"
             "slot(1)->seg->id.v = 30, it->next_segment = 40, comes.id.v = 29: -> OK, 5000 closed "
             "0 memory more, held 2c 29c 30c 4, dirty, its own\n"
             "it->ending = LOG_DELETING: -> NOT_OWNER, 0 closed 0 memory more, held 2c 3c 4\n"
             "it->ending = LOG_RELEASING: -> NOT_OWNER, 0 closed 0 memory more, held 2c 3c 4\n"
             "it->restored = LOG_FRONT_UNKNOWN: -> AGAIN, 0 closed 0 memory more, held 2c 3c 4\n");
}

/* ---- repairing ---- */

static leat_err damaged_rc;
static leat_err on_damaged(void *owner, const struct leat_segment *seg)
{
    (void)owner;
    trace("damaged s%llu ", (unsigned long long)seg->id.v);
    return damaged_rc;
}

static void slot_tell(void)
{
    static const char *const names[] = {"", " repairing", " repairing refused", " lost",
                                        " repairing lost"};
    const struct log_slot *s = slot(1);
    trace(
        "%s%s%s%s%s%s%s, reads %u/%u, again %llu%s\n", names[s->repair],
        s->damage_told ? " told" : "", leat_segment_is_damaged(s->seg) ? " corrupt" : "",
        s->seg->integrity == LEAT_INTEGRITY_MISSING ? " unwritten" : "",
        s->seg->flushed ? " flushed" : "", s->joint ? " joint" : "", it->damage_look ? " look" : "",
        s->file_reads, it->reads_in_flight,
        (unsigned long long)(s->repair_not_before_us ? s->repair_not_before_us - fake->now_us : 0),
        it->dirty ? ", dirty" : "");
}

static void asks(void)
{
    four();
    it->options.events.on_damaged = on_damaged;
    it->damage_look = false;
    damaged_rc = LEAT_OK;
}

static void found_damaged(void)
{
    bool repaired = log_slot_is_repaired(it, slot(1));
    trace("-> %s:", repaired ? "is repaired" : "is not");
    slot_tell();
}

static void damaged_segment_is_asked_for(void **state)
{
    (void)state;
    CASE_AS_IT_IS(asks, found_damaged);
    CASE(asks, found_damaged, slot(1)->repair = LOG_REPAIR_SOUGHT);
    CASE(asks, found_damaged, it->options.events.on_damaged = NULL);
    CASE(asks, found_damaged, damaged_rc = LEAT_E_NOT_FOUND);
    CASE(asks, found_damaged, damaged_rc = LEAT_E_AGAIN, slot(1)->repair = LOG_REPAIR_LOST);
    CASE(asks, found_damaged, slot(1)->repair_not_before_us = fake->now_us);
    CASE(asks, found_damaged, slot(1)->repair_not_before_us = fake->now_us + 1);
    TRACE_IS("(void)0: damaged s1 -> is repaired: repairing corrupt flushed joint look, reads 0/0, "
             "again 0\n"
             "slot(1)->repair = LOG_REPAIR_SOUGHT: -> is repaired: repairing flushed joint, reads "
             "0/0, again 0\n"
             "it->options.events.on_damaged = NULL: -> is not: lost corrupt flushed joint look, "
             "reads 0/0, again 0\n"
             "damaged_rc = LEAT_E_NOT_FOUND: damaged s1 -> is not: lost corrupt flushed joint "
             "look, reads 0/0, again 0\n"
             "damaged_rc = LEAT_E_AGAIN, slot(1)->repair = LOG_REPAIR_LOST: damaged s1 -> is "
             "repaired: lost corrupt flushed joint look, reads 0/0, again 0\n"
             "slot(1)->repair_not_before_us = fake->now_us: damaged s1 -> is repaired: repairing "
             "corrupt flushed joint look, reads 0/0, again 0\n"
             "slot(1)->repair_not_before_us = fake->now_us + 1: -> is not: corrupt flushed joint "
             "look, reads 0/0, again 1\n");
}

static bool told_already;
static struct leat_segment *scrubbed;

static void scrub_finds(void)
{
    leat_log_on_damaged(it, scrubbed, told_already);
    trace("->");
    slot_tell();
}

static void what_the_scrub_finds_is_asked_for(void **state)
{
    (void)state;
    CASE(asks, scrub_finds, scrubbed = slot(1)->seg);
    CASE(asks, scrub_finds, scrubbed = slot(1)->seg, slot(1)->damage_told = true);
    CASE(asks, scrub_finds, scrubbed = slot(1)->seg, told_already = true);
    told_already = false;
    CASE(asks, scrub_finds, scrubbed = slot(1)->seg, slot(1)->closed = false);
    CASE(asks, scrub_finds, scrubbed = slot(1)->seg, slot(1)->dropping = true);
    CASE(asks, scrub_finds, scrubbed = &comes, comes.id.v = 1);
    CASE(asks, scrub_finds, scrubbed = &comes, comes.id.v = 99);
    TRACE_IS(
        "scrubbed = slot(1)->seg: damaged s1 -> repairing corrupt flushed joint look, reads 0/0, "
        "again 0\n"
        "scrubbed = slot(1)->seg, slot(1)->damage_told = true: damaged s1 -> repairing told "
        "corrupt flushed joint look, reads 0/0, again 0\n"
        "scrubbed = slot(1)->seg, told_already = true: damaged s1 -> repairing told corrupt "
        "flushed joint look, reads 0/0, again 0\n"
        "scrubbed = slot(1)->seg, slot(1)->closed = false: -> flushed joint, reads 0/0, again 0\n"
        "scrubbed = slot(1)->seg, slot(1)->dropping = true: -> flushed joint, reads 0/0, again 0\n"
        "scrubbed = &comes, comes.id.v = 1: -> flushed joint, reads 0/0, again 0\n"
        "scrubbed = &comes, comes.id.v = 99: -> flushed joint, reads 0/0, again 0\n");
}

static struct leat_prefix_id prefix_id;
static struct leat_segment_id named;

static void repair_begins(void)
{
    struct leat_segment *seg = leat_log_repair_begin(it, named, prefix_id);
    assert_true(seg == NULL || seg == slot(1)->seg);
    trace("-> %s:", seg ? "it is written" : "no");
    slot_tell();
}

static void repairing(void)
{
    asks();
    slot(1)->repair = LOG_REPAIR_SOUGHT;
    slot(1)->seg->integrity = LEAT_INTEGRITY_CORRUPT;
    prefix_id = slot(1)->seg->prefix_id;
    named.v = 1;
}

static void bytes_are_taken_for_what_is_repaired_alone(void **state)
{
    (void)state;
    CASE_AS_IT_IS(repairing, repair_begins);
    CASE(repairing, repair_begins, it->ending = LOG_DELETING);
    CASE(repairing, repair_begins, it->ending = LOG_RELEASING);
    CASE(repairing, repair_begins, it->ending = LOG_STOPPING);
    CASE(repairing, repair_begins, it->resting = true);
    CASE(repairing, repair_begins, named.v = 77);
    CASE(repairing, repair_begins, slot(1)->repair = LOG_REPAIR_NONE);
    CASE(repairing, repair_begins, slot(1)->dropping = true);
    CASE(repairing, repair_begins, prefix_id.bytes++);
    CASE(repairing, repair_begins, prefix_id.crc++);
    TRACE_IS(
        "(void)0: -> it is written: repairing corrupt flushed joint, reads 1/1, again 0\n"
        "it->ending = LOG_DELETING: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n"
        "it->ending = LOG_RELEASING: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n"
        "it->ending = LOG_STOPPING: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n"
        "it->resting = true: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n"
        "named.v = 77: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n"
        "slot(1)->repair = LOG_REPAIR_NONE: -> no: corrupt flushed joint, reads 0/0, again 0\n"
        "slot(1)->dropping = true: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n"
        "prefix_id.bytes++: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n"
        "prefix_id.crc++: -> no: repairing corrupt flushed joint, reads 0/0, again 0\n");
}

static leat_err repair_rc;

static void repair_ends(void)
{
    (void)leat_log_repair_begin(it, named, prefix_id);
    it->dirty = it->damage_look = slot(1)->seg->flushed = false;
    slot(1)->seg->integrity = LEAT_INTEGRITY_MISSING;
    slot(1)->damage_told = true;
    slot(1)->joint = LOG_JOINT_CHAINED;
    bool over = leat_log_repair_end(it, named, repair_rc);
    trace("-> %s:", over ? "over" : "goes on");
    slot_tell();
}

static void what_the_store_says_ends_the_repairing(void **state)
{
    (void)state;
    CASE(repairing, repair_ends, repair_rc = LEAT_OK);
    CASE(repairing, repair_ends, repair_rc = LEAT_OK, slot(1)->repair = LOG_REPAIR_LOST_SOUGHT);
    CASE(repairing, repair_ends, repair_rc = LEAT_E_INVALID, slot(1)->repair = LOG_REPAIR_REFUSED);
    CASE(repairing, repair_ends, repair_rc = LEAT_E_NOT_FOUND);
    CASE(repairing, repair_ends, repair_rc = LEAT_E_DISK_FULL);
    CASE(repairing, found_damaged, leat_log_repair_give_up(it, named));
    CASE(repairing, found_damaged, named.v = 99, it->dirty = false,
         leat_log_repair_give_up(it, named));
    CASE(repairing, found_damaged, leat_log_repair_give_up(it, named),
         fake->now_us += LEAT_LOG_REPAIR_AGAIN_US);
    TRACE_IS(
        "repair_rc = LEAT_OK: -> over: flushed, reads 0/0, again 0, dirty\n"
        "repair_rc = LEAT_OK, slot(1)->repair = LOG_REPAIR_LOST_SOUGHT: -> over: flushed, reads "
        "0/0, again 0, dirty\n"
        "repair_rc = LEAT_E_INVALID, slot(1)->repair = LOG_REPAIR_REFUSED: -> over: lost told "
        "corrupt unwritten joint look, reads 0/0, again 30000000, dirty\n"
        "repair_rc = LEAT_E_NOT_FOUND: -> goes on: repairing told corrupt unwritten joint, reads "
        "0/0, again 0, dirty\n"
        "repair_rc = LEAT_E_DISK_FULL: -> goes on: repairing refused told corrupt unwritten joint "
        "look, reads 0/0, again 0, dirty\n"
        "leat_log_repair_give_up(it, named): -> is not: lost corrupt flushed joint look, reads "
        "0/0, again 30000000, dirty\n"
        "named.v = 99, it->dirty = false, leat_log_repair_give_up(it, named): -> is repaired: "
        "repairing corrupt flushed joint, reads 0/0, again 0\n"
        "leat_log_repair_give_up(it, named), fake->now_us += LEAT_LOG_REPAIR_AGAIN_US: damaged s1 "
        "-> is repaired: repairing lost corrupt flushed joint look, reads 0/0, again 0, dirty\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOLDS_TEST(next_thing_that_is_lost_is_given_up),
        HOLDS_TEST(giving_up_that_fails_leaves_all_as_it_was),
        HOLDS_TEST(bytes_that_were_not_noted_are_looked_for_again),
        HOLDS_TEST(bytes_that_were_passed_over_are_summed_up),
        HOLDS_TEST(trouble_is_told_in_words),
        HOLDS_TEST(trouble_is_cut_where_there_is_no_room),
        HOLDS_TEST(older_segments_that_do_not_come_are_told_once),
        HOLDS_TEST(what_went_with_an_accepted_loss_is_not_waited_for),
        HOLDS_TEST(segment_that_comes_takes_its_place),
        HOLDS_TEST(damaged_segment_is_asked_for),
        HOLDS_TEST(what_the_scrub_finds_is_asked_for),
        HOLDS_TEST(bytes_are_taken_for_what_is_repaired_alone),
        HOLDS_TEST(what_the_store_says_ends_the_repairing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
