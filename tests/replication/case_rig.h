/* SPDX-License-Identifier: Apache-2.0 */
/* A primary with one log and its head, segment 0, on nodes 1 and 2 of three. Each case has a primary of its own, and
 * does not end it: the end would check state that the case changed. For one test program only. */
#ifndef LEAT_TESTS_REPLICATION_CASE_RIG_H
#define LEAT_TESTS_REPLICATION_CASE_RIG_H

#include "tests/replication/primary_rig.h"

static struct rig *rig;
static struct rep_set *set;
static struct rep_copy *copy;
static struct leat_primary_log *owned;

static inline void known(void)
{
    set = rep_set_find(rig->log, 0);
    copy = set->copies[0];
    owned = rig->log;
    rig->quiet = false;
}

/* A head on nodes 1 and 2, begun up to 128. */
static inline void begin_at(enum leat_durability durability)
{
    size_t used = trace_used;
    rig = rig_new(3);
    rig->quiet = true;
    rig_log_new(rig, durability, 3);
    rig_reserve(rig, 0);
    rig_stored(rig, LEAT_STORE_RESERVE, LEAT_OK);
    rig_answer_at(rig, 1, LEAT_REP_OPEN, 10, 4096);
    rig_answer_at(rig, 2, LEAT_REP_OPEN, 20, 8192);
    rig_commit(rig, 0, 0, 128);
    rig_wrote(rig, 1, LEAT_OK);
    rig_wrote(rig, 2, LEAT_OK);
    (void)leat_primary_opening(rig->log);
    leat_primary_opened(rig->log, LEAT_OK);
    rig_mails(rig);
    known();
    trace_text[trace_used = used] = '\0';
}

static inline void begun(void)
{
    begin_at(LEAT_DURABILITY_MEMORY);
}

/* Nothing is to be looked at again so far. */
static inline void calm(void)
{
    leat_timer_stop(&rig->timers, &rig->primary->timer);
}

/* What begun() makes, closed with both copies, and calm. */
static inline void closed_at_128(void)
{
    begun();
    calm();
    set->state = REP_SET_CLOSED;
    set->seg->state = LEAT_SEGMENT_CLOSED;
    set->seg->prefix_id = (struct leat_prefix_id){128, 128};
    set->copies[0]->state = set->copies[1]->state = REP_COPY_CLOSED;
    set->copies[0]->peer->open_count = set->copies[1]->peer->open_count = 0;
}

static inline void armed_trace(void)
{
    const struct leat_timer *timer = &rig->primary->timer;
    if (leat_timer_armed(timer))
        trace(", again in %lld us", (long long)(timer->at_us - rig->now_us));
    trace("\n");
}

/* begin makes it, `change` is what is different in it, act makes the call and says what came of it. */
#define CASE(begin, act, ...)                                                                      \
    do {                                                                                           \
        (begin)();                                                                                 \
        __VA_ARGS__;                                                                               \
        trace("%s: ", #__VA_ARGS__);                                                               \
        (act)();                                                                                   \
    } while (0)

#define CASE_AS_IT_IS(begin, act) CASE(begin, act, (void)0)

#endif
