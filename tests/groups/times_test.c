/* SPDX-License-Identifier: Apache-2.0 */
/* When something ends: sessions, the settling of a group, who is waited for and how long, retention. To the
 * millisecond, as the home log of these tests takes no time. Nothing else runs meanwhile, so the home's own timer has
 * to be right, too. */
#include "classic_rig.h"

enum { MS = 1000, SETTLE_MS = 50, GROUP_SETTLE_MS = 30, SESSION_MS = 2000, REBALANCE_MS = 4000 };

static const uint32_t STREAM = 7;

static struct home *timed_home(void)
{
    struct home *home = home_new(1, false);
    home->calm = true;
    home->settle_us = SETTLE_MS * MS;
    home->classic_settle_us = GROUP_SETTLE_MS * MS;
    home_restart(home);
    struct leat_groups_request wake = {.kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX};
    assert_int_equal(ask(home, &wake), LEAT_OK);
    return home;
}

static uint32_t members(const struct home *home)
{
    struct leat_groups_info info;
    leat_groups_info(home->groups, &info);
    return info.members;
}

static uint32_t groups(const struct home *home)
{
    struct leat_groups_info info;
    leat_groups_info(home->groups, &info);
    return info.groups;
}

/* ---- native groups ---- */

struct joining {
    struct leat_groups_request r;
    bool answered;
};

static void join_again(struct home *home, struct joining *join)
{
    leat_mem_free(join->r.assigned);
    join->r.on_done = home_done;
    join->r.owner = &join->answered;
    join->answered = leat_groups_do(home->groups, &join->r);
}

static void join(struct home *home, struct joining *join, uint32_t session_ms)
{
    *join = (struct joining){.r = {.kind = LEAT_GROUPS_JOIN,
                                   .answer_bytes_max = SIZE_MAX,
                                   .session_ms = session_ms,
                                   .streams = &STREAM,
                                   .stream_count = 1,
                                   .group = "readers"}};
    join_again(home, join);
}

/* The join is answered after that time, and not a millisecond before. */
static void answered_after(struct home *home, struct joining *join, uint64_t ms, leat_err rc)
{
    home_run(home, (ms - 1) * MS);
    assert_false(join->answered);
    home_run(home, MS);
    assert_true(join->answered);
    assert_int_equal(join->r.rc, rc);
}

static leat_err say(struct home *home, enum leat_groups_kind kind, const struct joining *join)
{
    struct leat_groups_request r = {
        .kind = kind, .group = "readers", .generation = join->r.generation};
    memcpy(r.member, join->r.member, sizeof r.member);
    assert_true(leat_groups_do(home->groups, &r));
    return r.rc;
}

static void group_waits_for_more_members_as_long_as_it_settles(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a, b;
    join(home, &a, SESSION_MS);
    home_run(home, 20 * MS);
    join(home, &b, SESSION_MS); /* settles no longer for that */
    answered_after(home, &b, SETTLE_MS - 20, LEAT_OK);
    assert_true(a.answered);
    assert_int_equal(a.r.generation, 1);
    assert_int_equal(b.r.generation, 1);
    assert_int_equal(a.r.assigned_count, UNITS / 2);
    assert_int_equal(b.r.assigned_count, UNITS / 2);
    leat_mem_free(a.r.assigned);
    leat_mem_free(b.r.assigned);
    home_free(home);
}

static void session_begins_anew_with_each_heartbeat_and_join(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a;
    join(home, &a, SESSION_MS);
    answered_after(home, &a, SETTLE_MS, LEAT_OK);
    home_run(home, (SESSION_MS - 1) * MS);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_OK);
    home_run(home, (SESSION_MS - 1) * MS);
    join_again(home, &a); /* its answer was lost: nobody is disturbed */
    assert_true(a.answered);
    assert_int_equal(a.r.rc, LEAT_OK);
    assert_int_equal(a.r.generation, 1);
    assert_int_equal(a.r.assigned_count, UNITS);
    home_run(home, (SESSION_MS - 1) * MS);
    assert_int_equal(members(home), 1);
    home_run(home, MS);
    assert_int_equal(members(home), 0);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_E_UNKNOWN_MEMBER);
    leat_mem_free(a.r.assigned);
    home_free(home);
}

/* Two members; the answers of both. */
static void two(struct home *home, struct joining *a, uint32_t a_ms, struct joining *b,
                uint32_t b_ms)
{
    join(home, a, a_ms);
    join(home, b, b_ms);
    answered_after(home, a, SETTLE_MS, LEAT_OK);
    assert_true(b->answered);
}

static void two_free(struct home *home, struct joining *a, struct joining *b)
{
    leat_mem_free(a->r.assigned);
    leat_mem_free(b->r.assigned);
    home_free(home);
}

/* One member is silent: the other member learns so when the session ends, and waits for no member. */
static void silence_of_one_is_told_to_the_other_when_its_session_ends(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a, b;
    two(home, &a, 5 * SESSION_MS, &b, SESSION_MS);
    home_run(home, (SESSION_MS - 1) * MS);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_OK);
    home_run(home, MS);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_E_STALE_GENERATION);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &b), LEAT_E_UNKNOWN_MEMBER);
    join_again(home, &a);
    answered_after(home, &a, SETTLE_MS, LEAT_OK);
    assert_int_equal(a.r.assigned_count, UNITS);
    assert_int_equal(members(home), 1);
    two_free(home, &a, &b);
}

/* A member that sends only heartbeats is waited for as long as the longest session lasts. */
static void member_that_does_not_join_again_is_waited_for_one_longest_session(void **state)
{
    (void)state;
    for (uint32_t a_ms = SESSION_MS; a_ms <= 2 * SESSION_MS; a_ms += SESSION_MS) {
        struct home *home = timed_home();
        const uint32_t b_ms = 3 * SESSION_MS - a_ms, longest_ms = 2 * SESSION_MS;
        struct joining a, b;
        join(home, &a, a_ms);
        answered_after(home, &a, SETTLE_MS, LEAT_OK);
        join(home, &b, b_ms);
        for (uint32_t ms = 500; ms < longest_ms; ms += 500) {
            home_run(home, 500 * MS);
            assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_E_STALE_GENERATION);
            assert_false(b.answered);
        }
        answered_after(home, &b, 500, LEAT_OK);
        assert_int_equal(b.r.generation, 2);
        assert_int_equal(b.r.assigned_count, UNITS);
        assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_E_UNKNOWN_MEMBER);
        two_free(home, &a, &b);
    }
}

/* A long session of a member that has left counts no more. */
static void member_that_has_left_is_not_waited_for(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a, b;
    two(home, &a, 5 * SESSION_MS, &b, SESSION_MS);
    assert_int_equal(say(home, LEAT_GROUPS_LEAVE, &a), LEAT_OK);
    assert_int_equal(say(home, LEAT_GROUPS_LEAVE, &a), LEAT_E_UNKNOWN_MEMBER);
    struct joining c;
    home_run(home, 10 * MS);
    join(home, &c, SESSION_MS);
    home_run(home, 1000 * MS);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &b), LEAT_E_STALE_GENERATION);
    answered_after(home, &c, SESSION_MS - 1010, LEAT_OK);
    assert_int_equal(c.r.assigned_count, UNITS);
    /* The last one out is recorded at once. */
    unsigned recorded = home->batch_count;
    assert_int_equal(say(home, LEAT_GROUPS_LEAVE, &c), LEAT_OK);
    assert_int_equal(members(home), 0);
    assert_int_equal(home->batch_count, recorded + 1);
    leat_mem_free(c.r.assigned);
    two_free(home, &a, &b);
}

static void join_that_is_cancelled_leaves_a_new_member_out_and_an_old_one_its_session(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a, b, c;
    join(home, &c, SESSION_MS);
    leat_groups_cancel(home->groups, &c.r);
    assert_true(c.answered);
    assert_int_equal(c.r.rc, LEAT_E_CANCELLED);
    home_run(home, SETTLE_MS * MS);
    assert_int_equal(members(home), 0);
    two(home, &a, 5 * SESSION_MS, &b, SESSION_MS);
    assert_int_equal(a.r.assigned_count, UNITS / 2);
    a.r.session_ms++;
    join_again(home, &a);
    home_run(home, 500 * MS);
    b.r.session_ms++; /* says something else, so it has to wait */
    join_again(home, &b);
    leat_groups_cancel(home->groups, &b.r);
    assert_true(b.answered);
    answered_after(home, &a, SESSION_MS + 1, LEAT_OK);
    assert_int_equal(a.r.assigned_count, UNITS);
    two_free(home, &a, &b);
}

/* After a restart they have one session to be heard of, counted from when the home is awake. */
static void members_are_waited_for_one_session_after_a_restart(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a, b;
    two(home, &a, 2 * SESSION_MS, &b, SESSION_MS);
    home_restart(home);
    home_run(home, 5 * SESSION_MS * MS); /* nobody asks for anything: the home sleeps */
    struct leat_groups_request wake = {
        .kind = LEAT_GROUPS_FETCH, .answer_bytes_max = SIZE_MAX, .group = "others"};
    bool answered = false;
    wake.on_done = home_done;
    wake.owner = &answered;
    assert_false(leat_groups_do(home->groups, &wake));
    home_run(home, MS); /* awake */
    assert_true(answered);
    home_run(home, (SESSION_MS - 1) * MS);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_OK);
    home_run(home, MS);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_E_STALE_GENERATION);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &b), LEAT_E_UNKNOWN_MEMBER);
    two_free(home, &a, &b);
}

static void streams_that_change_have_their_readers_share_out_anew(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a;
    join(home, &a, SESSION_MS);
    answered_after(home, &a, SETTLE_MS, LEAT_OK);
    (void)leat_groups_on_stream_changed(home->groups, STREAM + 1);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_OK);
    (void)leat_groups_on_stream_changed(home->groups, STREAM);
    assert_int_equal(say(home, LEAT_GROUPS_HEARTBEAT, &a), LEAT_E_STALE_GENERATION);
    join_again(home, &a);
    answered_after(home, &a, SETTLE_MS, LEAT_OK);
    assert_int_equal(a.r.generation, 2);
    leat_mem_free(a.r.assigned);
    home_free(home);
}

/* ---- what waits for the home log, and what nobody uses ---- */

static leat_err outside_commit(struct home *home, struct joining *commit,
                               struct leat_groups_offset *row)
{
    *row = (struct leat_groups_offset){.log = {7, 0, 0}, .group = -1, .offset = 5};
    *commit = (struct joining){
        .r = {.kind = LEAT_GROUPS_COMMIT, .commits = row, .commit_count = 1, .group = "readers"}};
    commit->r.on_done = home_done;
    commit->r.owner = &commit->answered;
    commit->answered = leat_groups_do(home->groups, &commit->r);
    return commit->answered ? commit->r.rc : LEAT_OK;
}

static void commit_that_is_not_acked_ends_with_a_time_out(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct joining a, commit;
    struct leat_groups_offset row;
    join(home, &a, SESSION_MS);
    answered_after(home, &a, SETTLE_MS, LEAT_OK);
    leat_mem_free(a.r.assigned);
    assert_int_equal(say(home, LEAT_GROUPS_LEAVE, &a), LEAT_OK);
    home_run(home, MS);
    home->mute = true;
    (void)outside_commit(home, &commit, &row);
    answered_after(home, &commit, LEAT_GROUPS_ACK_WAIT_US_MAX / MS, LEAT_E_TIMEOUT);
    home->mute = false;
    home_run(home, MS);
    home_free(home);
}

/* From its last use on, and not a moment sooner; a restart counts as use. */
static void group_without_use_is_kept_for_the_whole_retention(void **state)
{
    (void)state;
    enum { RETENTION_MS = 60 * 1000 };
    struct home *home = timed_home();
    home->retention_us = (uint64_t)RETENTION_MS * MS;
    home_restart(home);
    struct joining a, commit;
    struct leat_groups_offset row;
    join(home, &a, SESSION_MS);
    home_run(home, MS); /* the home wakes first */
    answered_after(home, &a, SETTLE_MS, LEAT_OK);
    leat_mem_free(a.r.assigned);
    assert_int_equal(say(home, LEAT_GROUPS_LEAVE, &a), LEAT_OK);
    home_run(home, (RETENTION_MS - 1) * MS);
    assert_int_equal(groups(home), 1);
    assert_int_equal(outside_commit(home, &commit, &row), LEAT_OK);
    home_run(home, (RETENTION_MS - 1) * MS);
    assert_true(commit.answered);
    assert_int_equal(groups(home), 1);
    home_run(home, MS);
    assert_int_equal(groups(home), 0);
    home_free(home);
}

/* ---- classic groups ---- */

/* A new member that gets its id with the join; the join is held until its generation begins. */
static struct ask_group *member_start(struct home *home, const char *instance, uint32_t session_ms,
                                      uint32_t rebalance_ms)
{
    struct ask_group *a = join_new("", instance, "m");
    a->call.needs_id = false;
    a->r.session_ms = session_ms;
    a->call.rebalance_ms = rebalance_ms;
    start(home, a);
    return a;
}

static void group_answered_after(struct home *home, struct ask_group *a, uint64_t ms, leat_err rc)
{
    home_run(home, (ms - 1) * MS);
    assert_false(a->answered);
    home_run(home, MS);
    assert_true(a->answered);
    assert_int_equal(a->r.rc, rc);
}

static void member_rejoins(struct home *home, struct ask_group *a)
{
    leat_mem_free(a->call.memory);
    start(home, a);
}

static void shared_out(struct home *home, struct ask_group *leader)
{
    struct ask_group *sync = sync_new(leader->r.member, leader->r.generation);
    share_out(sync, &leader->call);
    assert_int_equal(answer_of(home, sync), LEAT_OK);
}

/* Each member that comes restarts the wait to settle, up to the longest rebalance timeout of the members. */
static void new_group_settles_anew_with_each_member(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct ask_group *a = member_start(home, "", SESSION_MS, REBALANCE_MS);
    home_run(home, (GROUP_SETTLE_MS - 1) * MS);
    struct ask_group *b = member_start(home, "", SESSION_MS, REBALANCE_MS);
    group_answered_after(home, b, GROUP_SETTLE_MS, LEAT_OK);
    assert_true(a->answered);
    assert_int_equal(a->r.generation, 1);
    ask_free(a);
    ask_free(b);
    home_free(home);

    home = timed_home();
    struct ask_group *many[8];
    for (unsigned i = 0; i < 8; i++) {
        many[i] = member_start(home, "", SESSION_MS, 0); /* waits for 100 ms, the least there is */
        if (i > 0) assert_false(many[i - 1]->answered);
        if (i < 4) home_run(home, (GROUP_SETTLE_MS - 5) * MS);
        assert_int_equal(many[0]->answered, i == 3);
        if (i == 3) break;
    }
    for (unsigned i = 0; i < 4; i++)
        ask_free(many[i]);
    home_free(home);
}

/* Each request of a member restarts its session. */
static void session_of_a_group_begins_anew_with_what_a_member_says(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct ask_group *a = member_start(home, "", SESSION_MS, REBALANCE_MS);
    group_answered_after(home, a, GROUP_SETTLE_MS, LEAT_OK);
    home_run(home, (SESSION_MS - 1) * MS);
    shared_out(home, a); /* takes 2 ms, as a commit does */
    home_run(home, (SESSION_MS - 3) * MS);
    assert_int_equal(beat(home, a->r.member, "", 1), LEAT_OK);
    home_run(home, (SESSION_MS - 1) * MS);
    assert_int_equal(commit(home, a->r.member, 1, 0, 5, ""), LEAT_OK);
    home_run(home, (SESSION_MS - 3) * MS);
    struct ask_group *sync = sync_new(a->r.member, 1);
    start(home, sync);
    assert_true(sync->answered);
    assert_int_equal(rc_of(sync), LEAT_OK);
    home_run(home, (SESSION_MS - 1) * MS);
    assert_int_equal(members(home), 1);
    home_run(home, MS);
    assert_int_equal(members(home), 0);
    assert_int_equal(beat(home, a->r.member, "", 1), LEAT_E_UNKNOWN_MEMBER);
    ask_free(a);
    home_free(home);
}

/* Told its id and never heard of again: that is no member, and its end disturbs nobody. */
static void id_that_nobody_joins_under_goes_after_a_session_and_disturbs_nobody(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct ask_group *a = member_start(home, "", 10 * SESSION_MS, REBALANCE_MS);
    group_answered_after(home, a, GROUP_SETTLE_MS, LEAT_OK);
    struct ask_group *id = join_new("", "", "m");
    start(home, id);
    assert_true(id->answered);
    assert_int_equal(id->r.rc, LEAT_E_MEMBER_ID_REQUIRED);
    assert_int_equal(members(home), 2);
    shared_out(home, a);
    assert_int_equal(beat(home, id->r.member, "", 1), LEAT_E_UNKNOWN_MEMBER);
    home_run(home, (SESSION_MS - 3) * MS);
    assert_int_equal(members(home), 2);
    home_run(home, 3 * MS);
    assert_int_equal(members(home), 1);
    assert_int_equal(beat(home, a->r.member, "", 1), LEAT_OK);
    /* While a leader shares out, too: it is not waited for, and not dropped with those that are. */
    member_rejoins(home, a);
    home_run(home, 2 * MS);
    assert_true(a->answered);
    assert_int_equal(a->r.generation, 2);
    member_rejoins(home, id);
    assert_int_equal(id->r.rc, LEAT_E_UNKNOWN_MEMBER);
    memset(id->r.member, 0, sizeof id->r.member);
    id->r.session_ms = 5 * SESSION_MS;
    member_rejoins(home, id);
    assert_int_equal(id->r.rc, LEAT_E_MEMBER_ID_REQUIRED);
    struct ask_group *rows = ask_new(LEAT_GROUPS_DESCRIBE, "", 0);
    start(home, rows);
    assert_int_equal(rows->call.member_count, 1);
    ask_free(rows);
    home_run(home, REBALANCE_MS * MS); /* the leader has not shared out, and goes */
    assert_int_equal(members(home), 1);
    home_run(home, REBALANCE_MS * MS); /* a generation without members does not end it */
    assert_int_equal(members(home), 1);
    assert_int_equal(beat(home, a->r.member, "", 2), LEAT_E_UNKNOWN_MEMBER);
    ask_free(id);
    ask_free(a);
    home_free(home);
}

/* A member that has not joined again is waited for up to the longest rebalance timeout; then the member is removed. A
 * member with an instance id stays until its session ends. */
static void group_waits_for_who_has_not_joined_again(void **state)
{
    (void)state;
    const char *const instances[] = {"", "cellar"};
    for (unsigned is_static = 0; is_static < 2; is_static++) {
        struct home *home = timed_home();
        struct ask_group *a = member_start(home, "", 10 * SESSION_MS, SESSION_MS);
        struct ask_group *b =
            member_start(home, instances[is_static], 10 * SESSION_MS, REBALANCE_MS);
        group_answered_after(home, a, GROUP_SETTLE_MS, LEAT_OK);
        assert_true(b->answered);
        shared_out(home, a);
        assert_int_equal(beat(home, b->r.member, instances[is_static], 1), LEAT_OK);
        member_rejoins(home, a); /* it leads, and wants to share out anew */
        home_run(home, 500 * MS);
        assert_int_equal(beat(home, b->r.member, instances[is_static], 1), LEAT_E_REBALANCING);
        group_answered_after(home, a, REBALANCE_MS - 500, LEAT_OK);
        assert_int_equal(a->r.generation, 2);
        assert_int_equal(a->call.member_count, 1 + is_static);
        assert_int_equal(members(home), 1 + is_static);
        ask_free(a);
        ask_free(b);
        home_free(home);
    }
}

/* Nobody but members with instance ids, and they are away: no generation begins for them. */
static void group_of_static_members_that_are_away_waits_for_them(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct ask_group *a = member_start(home, "", SESSION_MS, REBALANCE_MS);
    struct ask_group *b = member_start(home, "cellar", 10 * SESSION_MS, REBALANCE_MS);
    group_answered_after(home, a, GROUP_SETTLE_MS, LEAT_OK);
    shared_out(home, a);
    assert_int_equal(leave(home, a->r.member, ""), LEAT_OK);
    unsigned recorded = home->batch_count;
    home_run(home, 2 * REBALANCE_MS * MS);
    assert_int_equal(members(home), 1);
    assert_int_equal(home->batch_count, recorded);
    member_rejoins(home, b);
    home_run(home, 2 * MS);
    assert_true(b->answered);
    assert_int_equal(b->r.rc, LEAT_OK);
    assert_int_equal(b->r.generation, 2);
    assert_string_equal(b->call.leader, b->r.member);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* A member that never asks for its assignment is removed when the longest rebalance timeout is over, though its session
 * lasts longer. */
static void member_that_does_not_ask_for_its_share_is_dropped(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct ask_group *a = member_start(home, "", 10 * SESSION_MS, REBALANCE_MS);
    struct ask_group *b = member_start(home, "", SESSION_MS, SESSION_MS);
    group_answered_after(home, a, GROUP_SETTLE_MS, LEAT_OK);
    struct ask_group *sync = sync_new(b->r.member, 1); /* while it waits its session does not end */
    start(home, sync);
    home_run(home, (REBALANCE_MS - 1) * MS);
    assert_false(sync->answered);
    assert_int_equal(members(home), 2);
    home_run(home, MS);
    assert_true(sync->answered);
    assert_int_equal(rc_of(sync), LEAT_E_REBALANCING);
    assert_int_equal(members(home), 1);
    home_run(home, (SESSION_MS - 1) * MS); /* and begins anew */
    assert_int_equal(beat(home, b->r.member, "", 1), LEAT_E_REBALANCING);
    ask_free(a);
    ask_free(b);
    home_free(home);
}

/* A member falls silent at the very time at which an id that no member joined under is removed: the other members are
 * told. */
static void silence_of_a_member_is_told_whatever_else_is_silent(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct ask_group *c = member_start(home, "", 20 * SESSION_MS, REBALANCE_MS);
    group_answered_after(home, c, GROUP_SETTLE_MS, LEAT_OK);
    shared_out(home, c);
    struct ask_group *id = join_new("", "", "m");
    id->r.session_ms = 10000;
    start(home, id);
    assert_int_equal(rc_of(id), LEAT_E_MEMBER_ID_REQUIRED);
    uint64_t told_us = home->now_us;
    struct ask_group *a = member_start(home, "", SESSION_MS, REBALANCE_MS);
    member_rejoins(home, c);
    group_answered_after(home, a, REBALANCE_MS, LEAT_OK); /* the id may still join */
    assert_int_equal(c->call.member_count, 2);
    shared_out(home, c);
    for (unsigned ms = 5000; ms <= 8000; ms += 1000) {
        home_run(home, told_us + ms * MS - home->now_us);
        assert_int_equal(beat(home, a->r.member, "", 2), LEAT_OK);
    }
    home_run(home, (SESSION_MS - 1) * MS);
    assert_int_equal(members(home), 3);
    assert_int_equal(beat(home, c->r.member, "", 2), LEAT_OK);
    home_run(home, MS);
    assert_int_equal(members(home), 1);
    assert_int_equal(beat(home, c->r.member, "", 2), LEAT_E_REBALANCING);
    ask_free(a);
    ask_free(c);
    home_free(home);
}

/* After a restart members have one session timeout, and a group that was rebalancing waits for its leader once more. */
static void members_of_a_group_are_waited_for_one_session_after_a_restart(void **state)
{
    (void)state;
    for (unsigned shared = 0; shared < 2; shared++) {
        struct home *home = timed_home();
        struct ask_group *a = member_start(home, "", 2 * SESSION_MS, SESSION_MS / 2);
        group_answered_after(home, a, GROUP_SETTLE_MS, LEAT_OK);
        if (shared) shared_out(home, a);
        home_restart(home);
        home_run(home, 10 * SESSION_MS * MS);
        (void)fetched(home, 0, NULL); /* takes 2 ms, the first of which wakes the home */
        const uint64_t ms = shared ? 2 * SESSION_MS : SESSION_MS / 2;
        home_run(home, (ms - 2) * MS);
        assert_int_equal(members(home), 1);
        home_run(home, MS);
        assert_int_equal(members(home), 0);
        ask_free(a);
        home_free(home);
    }
}

/* A join is cancelled: a member whose id no client knows is removed, any other member keeps its session. */
static void join_to_a_group_that_is_cancelled_ends_a_member_without_a_name(void **state)
{
    (void)state;
    struct home *home = timed_home();
    struct ask_group *a = member_start(home, "", SESSION_MS, REBALANCE_MS);
    leat_groups_cancel(home->groups, &a->r);
    assert_true(a->answered);
    assert_int_equal(a->r.rc, LEAT_E_CANCELLED);
    assert_int_equal(members(home), 0);
    ask_free(a);

    a = member_start(home, "", SESSION_MS, REBALANCE_MS);
    group_answered_after(home, a, GROUP_SETTLE_MS, LEAT_OK);
    shared_out(home, a);
    home_run(home, 1000 * MS);
    struct ask_group *b = member_start(home, "", 10 * SESSION_MS, REBALANCE_MS);
    member_rejoins(home, a);
    leat_groups_cancel(home->groups, &a->r);
    assert_true(a->answered);
    group_answered_after(home, b, SESSION_MS, LEAT_OK);
    assert_string_equal(b->call.leader, b->r.member);
    assert_int_equal(members(home), 1);
    /* A sync that is given up leaves its member in the group. */
    struct ask_group *c = member_start(home, "", SESSION_MS, REBALANCE_MS);
    member_rejoins(home, b);
    home_run(home, 2 * MS);
    assert_true(b->answered && c->answered);
    struct ask_group *sync = sync_new(c->r.member, c->r.generation);
    start(home, sync);
    assert_false(sync->answered);
    leat_groups_cancel(home->groups, &sync->r);
    assert_true(sync->answered);
    assert_int_equal(rc_of(sync), LEAT_E_CANCELLED);
    shared_out(home, b);
    assert_int_equal(beat(home, c->r.member, "", c->r.generation), LEAT_OK);
    ask_free(a);
    ask_free(b);
    ask_free(c);
    home_free(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_waits_for_more_members_as_long_as_it_settles),
        cmocka_unit_test(session_begins_anew_with_each_heartbeat_and_join),
        cmocka_unit_test(silence_of_one_is_told_to_the_other_when_its_session_ends),
        cmocka_unit_test(member_that_does_not_join_again_is_waited_for_one_longest_session),
        cmocka_unit_test(member_that_has_left_is_not_waited_for),
        cmocka_unit_test(join_that_is_cancelled_leaves_a_new_member_out_and_an_old_one_its_session),
        cmocka_unit_test(members_are_waited_for_one_session_after_a_restart),
        cmocka_unit_test(streams_that_change_have_their_readers_share_out_anew),
        cmocka_unit_test(commit_that_is_not_acked_ends_with_a_time_out),
        cmocka_unit_test(group_without_use_is_kept_for_the_whole_retention),
        cmocka_unit_test(new_group_settles_anew_with_each_member),
        cmocka_unit_test(session_of_a_group_begins_anew_with_what_a_member_says),
        cmocka_unit_test(id_that_nobody_joins_under_goes_after_a_session_and_disturbs_nobody),
        cmocka_unit_test(group_waits_for_who_has_not_joined_again),
        cmocka_unit_test(group_of_static_members_that_are_away_waits_for_them),
        cmocka_unit_test(member_that_does_not_ask_for_its_share_is_dropped),
        cmocka_unit_test(silence_of_a_member_is_told_whatever_else_is_silent),
        cmocka_unit_test(members_of_a_group_are_waited_for_one_session_after_a_restart),
        cmocka_unit_test(join_to_a_group_that_is_cancelled_ends_a_member_without_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, nothing_left);
}
